#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Damaged input (cli.md section 3): what is printed, what is said, and the exit status.
. "$(dirname "$0")/_common.sh"

"$spoolcat" --json "$synth/churn.spool" >whole

# A cut tail: the kept prefix and a warning.
cp "$synth/churn-cut.spool" cut
run 0 "$spoolcat" --json cut
equal err 'spoolcat: cut: cut off at byte 122901; kept 2999 samples'
grep -q '"samples":2999,.*"truncated":true,"kept":122901}$' out || die "$(tail -1 out)"
head -n -2 whole >prefix # less the last sample and the end
head -n -1 out >got
same got prefix
run 0 "$spoolcat" --salvage --json cut
same <(head -n -1 out) prefix
equal err 'spoolcat: cut: cut off at byte 122901; kept 2999 samples'
run 0 "$spoolcat" -q --json cut
equal err ''
# With --strict it is an error. What had been streamed stays, but no end; with -o there is no file.
run 1 "$spoolcat" --strict --json cut
equal err 'spoolcat: cut: cut off at byte 122901 after 2999 samples'
same out prefix
run 1 "$spoolcat" --strict -q -o file cut
equal err 'spoolcat: cut: cut off at byte 122901 after 2999 samples'
[ ! -e file ] || die "a file in spite of the error"
run 0 "$spoolcat" --strict --json "$synth/churn.spool"
same out whole

# Corruption: all that stands before it, exit 1, no end.
head -c 100000 "$synth/churn.spool" >corrupt
"$spoolcat" -q --json corrupt | head -n -1 >prefix
kept=$("$spoolcat" -q --json corrupt | sed -n 's/.*"kept":\([0-9]*\)}$/\1/p')
head -c "$kept" "$synth/churn.spool" >corrupt
printf '\xee and more' >>corrupt
message="spoolcat: corrupt: record at byte $kept has tag 238, which version 3 does not have"
samples=$(grep -c '"rec":"sample"' prefix)
run 1 "$spoolcat" --json corrupt
equal err "$message; --salvage uses the $samples samples before it"
same out prefix
run 1 "$spoolcat" --strict --json corrupt
equal err "$message"
same out prefix
run 1 "$spoolcat" --json -o file corrupt
equal err "$message; --salvage uses the $samples samples before it"
equal out ''
[ ! -e file ] || die "a file in spite of the error"
# Salvaged: every record before it, a complete document, exit 0.
run 0 "$spoolcat" --salvage --json corrupt
equal err "$message; kept $samples samples"
same <(head -n -1 out) prefix
grep -q "^{\"rec\":\"end\",.*\"samples\":$samples,.*\"truncated\":true,\"kept\":$kept}\$" out || die "$(tail -1 out)"
run 0 "$spoolcat" --salvage --json -o file -q corrupt
equal err ''
[ "$(wc -l <file)" = "$(($(wc -l <prefix) + 1))" ] || die "the salvaged file"

# Not a spool, whatever the options.
printf '\x7fELF\2\1\1\0\0\0\0\0\0\0\0\0' >elf
for option in --json --strict --salvage; do
    run 1 "$spoolcat" $option elf
    [[ $(<err) == 'spoolcat: elf: '*ELF* ]] || die "$(<err)"
    equal out ''
    run 1 "$spoolcat" $option /dev/null
    [[ $(<err) == 'spoolcat: /dev/null: '*empty* ]] || die "$(<err)"
done
printf 'SPULSE5\0\0\0' >newer
run 1 "$spoolcat" newer
[[ $(<err) == 'spoolcat: newer: '*5* ]] || die "$(<err)"

# One bad spool among others: the others are shown; a file would lack one, so there is none.
cp "$cases/one-sample.spool" good
"$spoolcat" --json good >one
run 1 "$spoolcat" --json good elf good
same out <(cat one one)
[ "$(wc -l <err)" = 1 ] || die "$(<err)"
run 1 "$spoolcat" --json -o file2 good elf good
[ ! -e file2 ] || die "a file in spite of the error"

# Cut at every byte: header cuts are errors, everything else ends with records and at most a warning.
size=$(stat -c %s "$cases/stack-tree.spool")
for ((i = 0; i < size; i++)); do
    head -c $i "$cases/stack-tree.spool" >part # the only process but the tool
    status=0
    "$spoolcat" --json part >out 2>err || status=$?
    if ((i < 11)); then
        [ $status = 1 ] || die "header cut at $i: exit $status"
        [ -s err ] || die "header cut at $i: no message"
    else
        [ $status = 0 ] || die "cut at $i: exit $status"
        mapfile -t lines <out
        [[ ${lines[-1]} == *'"rec":"end"'* ]] || die "cut at $i: no end"
    fi
done
