# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# What tests of profiles share; to be sourced by a shell test, in its folder. A profile is gzip'd or bare.
# go tool pprof runs with its settings, copies and binaries in the folder pprof here, and without a network.
# Whatever fails ends the test, or the $(...) it stands in (set -e). SAMPLE_TYPE below is samples or cpu.
#
#   pprof_need                      skips the test where go, protoc or perl is not there
#   pprof_decode FILE               the message as text; not UTF-8, an unknown field, bytes behind the end: fails
#   pprof_check FILE                fails on what readers reject or misread (pprof_text.pl)
#   pprof_read FILE                 pprof_check, which leaves its totals and its stacks by samples in pprof/totals and
#                                   pprof/folded: one start of each program for all three
#   pprof_total FILE SAMPLE_TYPE    the exact sum, or nothing when there is no such type
#   pprof_functions FILE            names of functions, sorted
#   pprof_folded FILE SAMPLE_TYPE   stacks as spool2folded --root=none writes them
#   pprof_labels FILE SAMPLE_TYPE   KEY=VALUE SUM, numbers as KEY=#VALUE UNIT SUM, sorted
#   expect_silent ARGUMENT...       go tool pprof ARGUMENT...: exit 0 and nothing on standard error
#   pprof_flat_cum FILE SAMPLE_TYPE what pprof -top says: FLAT CUM NAME, whole numbers, by name, without " (inline)"
#   pprof_top_total FILE SAMPLE_TYPE  the total that pprof -top says
#   pprof_proto OUT FILE...         the profile that pprof makes of one or several
set -o pipefail
_pprof_folder=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
mkdir -p pprof/none
export HOME=$PWD/pprof PPROF_TMPDIR=$PWD/pprof PPROF_BINARY_PATH=$PWD/pprof/none PPROF_TOOLS=$PWD/pprof/none
export XDG_CONFIG_HOME=$HOME XDG_CACHE_HOME=$HOME GOPROXY=off GOTOOLCHAIN=local GOTELEMETRY=off GOFLAGS=
export http_proxy=http://127.0.0.1:9 https_proxy=http://127.0.0.1:9

die() {
    echo "FAILED: $*" >&2
    exit 1
}

pprof_need() {
    local program
    for program in go protoc perl; do
        command -v $program >/dev/null || {
            echo "no $program (scripts/deps consumers)"
            exit 77
        }
    done
    # The program itself: go takes as long to start as it does.
    _pprof_program=$(go tool -n pprof) || die "go has no pprof"
}

_pprof_index() { # SAMPLE_TYPE: its place in every profile of ours
    case $1 in
    samples) echo 0 ;;
    cpu) echo 1 ;;
    *) die "no sample type $1" ;;
    esac
}

# _pprof_decode FILE: the text in pprof/decode.txt.
_pprof_decode() {
    local bare=$1 magic=
    LC_ALL=C IFS='' read -r -d '' -n 2 magic <"$1" || true # what is shorter, or has a zero, is for protoc to refuse
    if [ "$magic" = $'\x1f\x8b' ]; then
        bare=pprof/decode.pb
        gzip -dc <"$1" >$bare || die "$1: gzip refuses it"
    fi
    protoc --proto_path="$_pprof_folder" --decode=perftools.profiles.Profile profile.proto \
        <"$bare" >pprof/decode.txt 2>pprof/decode.err || die "$1: protoc refuses it: $(head -3 pprof/decode.err)"
    [ ! -s pprof/decode.err ] || die "$1: protoc says: $(head -3 pprof/decode.err)"
    ! grep -nE '^ *[0-9]+(:| \{)' pprof/decode.txt || die "$1: unknown fields"
}
pprof_decode() {
    _pprof_decode "$1"
    cat pprof/decode.txt
}

_pprof_text() { # FILE MODE [INDEX]
    _pprof_decode "$1"
    shift
    LC_ALL=C perl "$_pprof_folder/pprof_text.pl" "$@" <pprof/decode.txt
}

# One gzip member with time 0, no name, OS 3, and nothing behind it.
_pprof_envelope() { # FILE
    perl -MCompress::Raw::Zlib -e '
        open my $in, "<:raw", $ARGV[0] or die "$!\n";
        my $bytes = do { local $/; <$in> };
        exit 0 if substr($bytes, 0, 2) ne "\x1f\x8b";
        my $head = substr $bytes, 0, 10;
        die "gzip header " . unpack("H*", $head) . "\n" if $head !~ /^\x1f\x8b\x08\x00\x00{4}.\x03$/s;
        my $z = Compress::Raw::Zlib::Inflate->new(-WindowBits => WANT_GZIP, -ConsumeInput => 1) or die "no zlib\n";
        $z->inflate($bytes, my $out) == Z_STREAM_END or die "gzip: not whole\n";
        die "bytes behind the gzip member\n" if length $bytes;' "$1"
}

pprof_check() {
    local said
    said=$(_pprof_envelope "$1" 2>&1) || die "$1: $said"
    said=$(_pprof_text "$1" check) || die "$1: $said"
}
pprof_read() {
    local said
    said=$(_pprof_envelope "$1" 2>&1) || die "$1: $said"
    rm -f pprof/totals pprof/folded
    said=$(_pprof_text "$1" read pprof) || die "$1: $said"
}
pprof_total() {
    _pprof_text "$1" totals | awk -v type="$2" 'index($1, type "/") == 1 { print $2 }'
}
pprof_functions() {
    _pprof_text "$1" functions
}
pprof_folded() {
    _pprof_text "$1" folded "$(_pprof_index "$2")"
}
pprof_labels() {
    _pprof_text "$1" labels "$(_pprof_index "$2")"
}

expect_silent() {
    "$_pprof_program" "$@" 2>pprof/err </dev/null || die "go tool pprof $*: exit $?: $(head -3 pprof/err)"
    [ ! -s pprof/err ] || die "go tool pprof $* says: $(head -3 pprof/err)"
}

_pprof_top() { # FILE SAMPLE_TYPE
    local unit=()
    [ "$2" = samples ] || unit=(-unit=ns)
    expect_silent -top -sample_index="$2" "${unit[@]}" -nodefraction=0 -edgefraction=0 -nodecount=1000000 "$1"
}
pprof_flat_cum() {
    _pprof_top "$1" "$2" | perl -ne '
        next unless $in_list ||= /^ +flat +flat%/;
        next unless /^ *(\d+)(?:ns)? +\S+ +\S+ +(\d+)(?:ns)? +\S+  (.*)$/;
        my ($flat, $cum, $name) = ($1, $2, $3);
        $name =~ s/ \((?:partial-)?inline\)$//;
        print "$flat $cum $name\n";' | LC_ALL=C sort -k3
}
pprof_top_total() {
    # "Duration: 60ms, Total samples = 30000000ns (50.00%)" or, without a duration, only in "... of 30ns total"
    _pprof_top "$1" "$2" | sed -nE 's/^Showing nodes accounting for .* of ([0-9]+)(ns)? total$/\1/p'
}

pprof_proto() {
    local out=$1
    shift
    "$_pprof_program" -proto -output="$out" "$@" >pprof/err 2>&1 </dev/null ||
        die "go tool pprof -proto $*: $(head -3 pprof/err)"
    ! grep -vE '^Generating report in ' pprof/err || die "go tool pprof -proto $* says more"
}
