#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# pprof_text.pl MODE [INDEX]: reads a profile as protoc --decode prints it and says
#   check      nothing, or its faults (exit 1): what readers reject or misread, and spool2pprof must not write
#   totals     the sum of each sample type: "TYPE/UNIT SUM"
#   functions  the names, sorted, each once
#   folded     stacks as spool2folded --root=none writes them, weighed by sample type INDEX (from 0)
#   read       as check; without faults, files totals and folded of index 0 in the folder INDEX
#   labels     samples of each label, by sample type INDEX: "KEY=VALUE SUM", numbers as "KEY=#VALUE UNIT SUM"
# Integers are exact up to 2^63 - 1.
use strict;
use warnings;
use integer;

my ($mode, $index) = (@ARGV, 0);
my %escaped = (n => "\n", r => "\r", t => "\t", '"' => '"', "'" => "'", '\\' => '\\');

sub unescape {
    my ($text) = @_;
    $text =~ s/\\(?:([0-7]{3})|(.))/defined $1 ? chr oct $1 : $escaped{$2}/ge;
    return $text;
}

# A message is a hash of lists; order within a field is kept.
my $profile = {};
my @open = ($profile);
my $line_no = 0;
while (<STDIN>) {
    $line_no++;
    if (/^ *(\w+) \{$/)                  { my $m = {}; push @{ $open[-1]{$1} }, $m; push @open, $m }
    elsif (/^ *\}$/)                     { pop @open }
    elsif (/^ *(\w+): "(.*)"$/)          { push @{ $open[-1]{$1} }, unescape($2) }
    elsif (/^ *(\w+): (-?\w+)$/)         { push @{ $open[-1]{$1} }, $2 }
    else                                 { die "pprof_text.pl: line $line_no is not understood: $_" }
}

sub list { my ($m, $field) = @_; return @{ $m->{$field} // [] } }
sub one { my ($m, $field) = @_; return $m->{$field} ? $m->{$field}[0] : 0 }

my @strings = list($profile, 'string_table');
sub text { my ($m, $field) = @_; return $strings[ one($m, $field) ] // '' }

# By id, not by position: check says whether that is the same.
my %location = map { one($_, 'id') => $_ } list($profile, 'location');
my %function = map { one($_, 'id') => $_ } list($profile, 'function');

# ---- check ----

my $faults = 0;
sub fault { print "@_\n"; $faults++; exit 1 if $faults >= 20 }

# The index of a string must be one.
sub check_strings {
    my ($what, $m, @fields) = @_;
    for my $field (@fields) {
        my $i = one($m, $field);
        fault("$what: $field is string $i of " . @strings) if $i < 0 || $i >= @strings;
    }
}

# Ids are 1 to N in order, and in order of first use, so all are used.
sub check_ids {
    my ($what, $objects, $uses) = @_;
    my $next = 1;
    for my $id (map { one($_, 'id') } @$objects) {
        fault("$what $next has the id $id") if $id != $next;
        $next++;
    }
    my %seen;
    my @first = grep { !$seen{$_}++ } @$uses;
    for my $id (@first) { fault("$what $id is referred to and is not there") if $id < 1 || $id > @$objects }
    for my $id (1 .. @$objects) { fault("$what $id is not used") unless $seen{$id} }
    return @first;
}

sub in_order {
    my ($what, @first) = @_;
    my $next = 1;
    for my $id (@first) { fault("$what $id is used before $next") if $id != $next; $next++ }
}

sub check {
    fault('string_table[0] is not empty') unless @strings && $strings[0] eq '';
    my %seen;
    for (@strings) { fault("string twice: $_") if $seen{$_}++ }
    for my $s (@strings) { fault("string with a control: $s") if $s =~ /[\x00-\x1f\x7f]/ }
    for my $field (qw(time_nanos duration_nanos period period_type default_sample_type)) {
        fault("$field is there twice") if list($profile, $field) > 1;
    }
    for my $field (qw(drop_frames keep_frames doc_url)) { fault("$field is there") if $profile->{$field} }
    fault('no period_type') unless $profile->{period_type};
    my @types = list($profile, 'sample_type');
    check_strings("sample type", $_, qw(type unit)) for @types, list($profile, 'period_type');

    my $default = text($profile, 'default_sample_type');
    my @names = map { text($_, 'type') . '/' . text($_, 'unit') } @types;
    fault("sample types @names") unless "@names" =~ m{^samples/count( cpu/nanoseconds)?$};
    fault("default_sample_type $default") if $default ne (@types == 2 ? 'cpu' : 'samples');

    my (@location_uses, %distinct, $n);
    for my $sample (list($profile, 'sample')) {
        my @values = list($sample, 'value');
        my @locations = list($sample, 'location_id');
        $n++;
        fault("sample $n: " . @values . ' values') if @values != @types;
        fault("sample $n: no value above 0: @values") if grep { $_ <= 0 } @values;
        fault("sample $n: no location") unless @locations;
        push @location_uses, @locations;
        my @labels;
        for my $label (list($sample, 'label')) {
            check_strings("sample $n: label", $label, qw(key str num_unit));
            fault("sample $n: a label is number and string, or neither")
                if defined $label->{str} ? defined $label->{num} || defined $label->{num_unit} : !$label->{num_unit};
            push @labels, text($label, 'key');
        }
        fault("sample $n: labels @labels") if "@labels" ne join ' ', sort @labels;
        my $key = join '|', "@locations", map { my $l = $_; join ',', map { one($l, $_) } qw(key str num num_unit) } list($sample, 'label');
        # With --timestamps each sample has its own label, or the same one as another of the same moment.
        fault("sample $n is sample $distinct{$key} again") if $distinct{$key} && "@labels" !~ /timestamp_ns/;
        $distinct{$key} = $n;
    }
    in_order('location', check_ids('location', [ list($profile, 'location') ], \@location_uses));

    my (@function_uses, @mapping_uses, %same);
    for my $l (list($profile, 'location')) {
        my $id = one($l, 'id');
        push @mapping_uses, one($l, 'mapping_id');
        push @function_uses, map { one($_, 'function_id') } list($l, 'line');
        my $key = join ' ', one($l, 'mapping_id'), one($l, 'address'), map { one($_, 'function_id') . ':' . one($_, 'line') } list($l, 'line');
        fault("location $id is location $same{$key} again") if $same{$key};
        $same{$key} = $id;
    }
    in_order('function', check_ids('function', [ list($profile, 'function') ], \@function_uses));
    # The main binary is mapping 1, used or not.
    check_ids('mapping', [ list($profile, 'mapping') ], [ (list($profile, 'mapping') ? 1 : ()), @mapping_uses ]);

    %same = ();
    for my $f (list($profile, 'function')) {
        my $id = one($f, 'id');
        check_strings("function $id", $f, qw(name system_name filename));
        fault("function $id has no name") if text($f, 'name') eq '';
        fault("function $id: system_name is the name") if text($f, 'name') eq text($f, 'system_name');
        my $key = join ' ', map { one($f, $_) } qw(name system_name filename start_line);
        fault("function $id is function $same{$key} again") if $same{$key};
        $same{$key} = $id;
    }
    for my $m (list($profile, 'mapping')) { check_strings('mapping ' . one($m, 'id'), $m, qw(filename build_id)) }
    for my $c (list($profile, 'comment')) { fault("comment is string $c of " . @strings) if $c < 1 || $c >= @strings }
}

# ---- the rest ----

sub folded_name {
    my ($name) = @_;
    $name =~ tr/;/:/;
    $name =~ s/ (?=[0-9]+\.?[0-9]*\z)/_/;
    return $name;
}

sub folded {
    my (%weight, %frames);
    for my $id (keys %location) {
        my @lines = list($location{$id}, 'line'); # innermost first
        $frames{$id} = [ map { folded_name(text($function{ one($_, 'function_id') }, 'name')) } reverse @lines ];
        $frames{$id} = [ $location{$id}{address}[0] ] unless @lines;
    }
    for my $sample (list($profile, 'sample')) {
        my $line = join ';', map { @{ $frames{$_} } } reverse list($sample, 'location_id');
        $line = "_$line" if $line =~ /^[#{]/;
        $weight{$line} += $sample->{value}[$index];
    }
    print "$_ $weight{$_}\n" for sort keys %weight;
}

sub totals {
    my @types = list($profile, 'sample_type');
    my @sums = (0) x @types;
    for my $sample (list($profile, 'sample')) { $sums[$_] += $sample->{value}[$_] for 0 .. $#types }
    print text($types[$_], 'type'), '/', text($types[$_], 'unit'), " $sums[$_]\n" for 0 .. $#types;
}

sub labels {
    my %weight;
    for my $sample (list($profile, 'sample')) {
        for my $label (list($sample, 'label')) {
            my $value = $label->{str} ? text($label, 'str') : '#' . one($label, 'num') . ' ' . text($label, 'num_unit');
            $weight{ text($label, 'key') . "=$value" } += $sample->{value}[$index];
        }
    }
    print "$_ $weight{$_}\n" for sort keys %weight;
}

sub functions {
    my %names = map { text($_, 'name') => 1 } values %function;
    print "$_\n" for sort keys %names;
}

sub into { # FILE MODE
    my ($file, $print) = @_;
    open my $out, '>', $file or die "$file: $!\n";
    my $before = select $out;
    $print->();
    select $before;
    close $out or die "$file: $!\n";
}

sub read_all {
    my $folder = $index;
    check();
    return if $faults;
    $index = 0;
    into("$folder/totals", \&totals);
    into("$folder/folded", \&folded);
}

my %modes = (check => \&check, read => \&read_all, totals => \&totals, functions => \&functions, folded => \&folded, labels => \&labels);
die "usage: pprof_text.pl check|read|totals|functions|folded|labels [INDEX]\n" unless $modes{ $mode // '' };
$modes{$mode}->();
exit($faults > 0);
