#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Damaged input (cli.md section 3): what is written, what is said, and the exit status.
. "$(dirname "$0")/_common.sh"

folded=("$spool2folded" --no-symbols)

# A cut tail: the kept prefix and a warning.
cp "$synth/churn-cut.spool" cut
"${folded[@]}" --timeline "$synth/churn.spool" >whole
for option in --progress=never --salvage; do
    run 0 "${folded[@]}" $option cut
    equal err 'spool2folded: cut: cut off at byte 122901; kept 2999 samples'
    [ "$(total out)" = 2999 ] || die "$(total out) samples"
done
run 0 "${folded[@]}" -q cut
equal err ''
for output in - file; do
    run 1 "${folded[@]}" --strict -q -o $output cut
    equal err 'spool2folded: cut: cut off at byte 122901 after 2999 samples'
    equal out ''
done
run 0 "${folded[@]}" --strict --timeline "$synth/churn.spool"
equal err ''
same out whole

# Corruption: nothing is written; salvaged: what stands before it.
head -c 100000 "$synth/churn.spool" >corrupt
"${folded[@]}" -q corrupt >prefix
kept=$("${folded[@]}" corrupt 2>&1 >/dev/null | sed -n 's/.*cut off at byte \([0-9]*\);.*/\1/p')
head -c "$kept" "$synth/churn.spool" >corrupt
printf '\xee and more' >>corrupt
message="spool2folded: corrupt: record at byte $kept has tag 238, which version 3 does not have"
for options in --root=process --strict --timeline --reverse "-o file" "--timeline -o file"; do
    # shellcheck disable=SC2086 # several words
    run 1 "${folded[@]}" $options corrupt
    hint="; --salvage uses the $(total prefix) samples before it"
    [[ $options != *--strict* ]] || hint=
    equal err "$message$hint"
    equal out ''
done
run 0 "${folded[@]}" --salvage corrupt
same out prefix
equal err "$message; kept $(total prefix) samples"
run 0 "${folded[@]}" --salvage -q corrupt
same out prefix
equal err ''
# One bad spool spoils the document.
run 1 "${folded[@]}" "$synth/basic.spool" corrupt "$synth/deep.spool"
equal out ''
run 1 "${folded[@]}" --timeline "$synth/basic.spool" corrupt
equal out ''

# gzip that ends early is a cut tail, a wrong checksum is corruption.
gzip -c "$synth/basic.spool" >whole.gz
size=$(stat -c %s whole.gz)
head -c $((size / 2)) whole.gz >half.gz
run 0 "${folded[@]}" half.gz
[[ $(<err) == 'spool2folded: half.gz: cut off at byte '*'; kept '*' samples' ]] || die "$(<err)"
run 1 "${folded[@]}" --strict half.gz
equal out ''
head -c $((size - 8)) whole.gz >sum.gz
printf 'wrong000' >>sum.gz
run 1 "${folded[@]}" sum.gz
equal out ''
[ "$(wc -l <err)" = 1 ] || die "$(<err)"
run 0 "${folded[@]}" --salvage sum.gz
[ "$(wc -l <err)" = 1 ] || die "$(<err)"
[ "$(total out)" = 3000 ] || die "$(total out) samples"

# Not a spool: the message says what it is, whatever the options.
printf '\x7fELF\2\1\1\0\0\0\0\0\0\0\0\0' >elf
printf 'PERFILE2\150\0\0\0\0\0\0\0' >perf
gzip -c elf >elf.gz
printf 'hello\n' | gzip -c >text.gz
# a Profile: sample_type {type: 1, unit: 2}, string_table "", "samples", "count"
printf '\012\004\010\001\020\002\062\000\062\007samples\062\005count' | gzip -c >pprof.gz
: >empty
printf 'SPULSE5\0\0\0' >newer
for option in --root=process --strict --salvage; do
    for spool in 'elf ELF' 'perf perf' 'empty empty' 'elf.gz ELF' 'text.gz gzip' 'pprof.gz pprof' 'newer 5'; do
        run 1 "${folded[@]}" $option ${spool% *}
        [[ $(<err) == "spool2folded: ${spool% *}: "*"${spool#* }"* ]] || die "${spool% *}: $(<err)"
        [ "$(wc -l <err)" = 1 ] || die "$(<err)"
        equal out ''
    done
done
run 1 "${folded[@]}" newer
[[ $(<err) == *5*'1 to 4'* ]] || die "which versions are read: $(<err)"

# Cut at every byte: a document and at most a warning, or an error of one line and no document.
perl -e 'open my $in, "<:raw", $ARGV[0] or die; my $all = do { local $/; <$in> };
    sub put { open my $out, ">:raw", $_[0] or die; print $out $_[1]; close $out or die }
    for my $i (0 .. length($all) - 1) {
        put("cut.$i", substr($all, 0, $i));
        my $other = $all; substr($other, $i, 1) = "\xff"; put("flipped.$i", $other);
    }' "$cases/stack-tree.spool"
size=$(stat -c %s "$cases/stack-tree.spool")
for ((i = 0; i < size; i++)); do
    status=0
    "${folded[@]}" cut.$i >out 2>err || status=$?
    [ $status = $((i < 11)) ] || die "cut at $i: exit $status"
    mapfile -t said <err
    [ ${#said[@]} -le 1 ] || die "cut at $i: $(<err)"
    [ $status = 0 ] || equal out ''
done
# Every byte of the header and the first records flipped: the same.
for ((i = 0; i < size; i++)); do
    for option in --timeline --salvage; do
        case ${SANITIZE_FLAGS:+$((i % 2))$option} in 0--timeline | 1--salvage) continue ;; esac # one of them
        status=0
        "${folded[@]}" $option flipped.$i >out 2>err || status=$?
        [ $status -le 1 ] || die "byte $i: exit $status"
        mapfile -t said <err
        [ $status = 0 ] || [ ${#said[@]} = 1 ] || die "byte $i: $(<err)"
        [ $status = 0 ] || equal out ''
    done
done
