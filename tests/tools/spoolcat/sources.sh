#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A file, a pipe, a FIFO and gzip of the same bytes: the same output and the same messages, byte for byte.
. "$(dirname "$0")/_common.sh"

# alike NAME: compares all ways of reading NAME, whose messages differ in the input's name alone.
alike() {
    local name=$1 status=0 got
    "$spoolcat" --json "$name" >file.out 2>file.err || status=$?
    sed "s|^spoolcat: $name: |spoolcat: standard input: |" file.err >file.stdin.err

    got=0
    cat "$name" | "$spoolcat" --json >out 2>err || got=$?
    [ $got = $status ] && same file.out out && same file.stdin.err err || die "$name by pipe"
    got=0
    # Single bytes at first: short reads at every place of the header and of the first records.
    { dd if="$name" bs=1 count=100 2>/dev/null; tail -c +101 "$name"; } |
        "$spoolcat" --json - >out 2>err || got=$?
    [ $got = $status ] && same file.out out && same file.stdin.err err || die "$name by slow pipe"
    got=0
    "$spoolcat" --json <"$name" >out 2>err || got=$?
    [ $got = $status ] && same file.out out && same file.stdin.err err || die "$name by redirection"

    [ -p fifo ] || mkfifo fifo
    cat "$name" >fifo &
    got=0
    "$spoolcat" --json fifo >out 2>err || got=$?
    wait
    sed "s|^spoolcat: $name: |spoolcat: fifo: |" file.err >fifo.err
    [ $got = $status ] && same file.out out && same fifo.err err || die "$name by FIFO"

    gzip -c "$name" >"$name.packed"
    got=0
    "$spoolcat" --json "$name.packed" >out 2>err || got=$?
    sed "s|^spoolcat: $name: |spoolcat: $name.packed: |" file.err >packed.err
    [ $got = $status ] && same file.out out && same packed.err err || die "$name packed"
    # Members concatenate to one spool.
    { head -c 9 "$name" | gzip -c; tail -c +10 "$name" | gzip -c; } >"$name.packed"
    got=0
    "$spoolcat" --json <"$name.packed" >out 2>err || got=$?
    [ $got = $status ] && same file.out out && same file.stdin.err err || die "$name in members"
}

for spool in "$synth"/churn.spool "$synth"/churn-half.spool "$synth"/basic-v1.spool \
    "$cases"/{one-sample,tail-mid-path,tail-tag-only,unknown-tag-9,varint-11-bytes,path-length-2-63,empty-v2,empty-file,magic-wrong,header-mid-varint}.spool; do
    cp "$spool" "$(basename "$spool" .spool)"
    alike "$(basename "$spool" .spool)"
done

# A gzip that ends early is a cut tail, one with a wrong checksum is corrupt.
gzip -c "$synth/basic.spool" >whole.gz
size=$(stat -c %s whole.gz)
head -c $((size / 2)) whole.gz >half.gz
run 0 "$spoolcat" --json half.gz
[[ $(<err) == 'spoolcat: half.gz: cut off at byte '*'; kept '*' samples' ]] || die "$(<err)"
tail -1 out | grep -q '"truncated":true' || die "$(tail -1 out)"
run 1 "$spoolcat" --strict half.gz
cp whole.gz sum.gz
printf '\xff\xff' | dd of=sum.gz bs=1 seek=$((size - 8)) conv=notrunc 2>/dev/null
cmp -s whole.gz sum.gz && printf '\0\0' | dd of=sum.gz bs=1 seek=$((size - 8)) conv=notrunc 2>/dev/null
run 1 "$spoolcat" --json sum.gz
[ "$(wc -l <err)" = 1 ] || die "$(<err)"

# What the shell gives as standard input need not begin at its beginning.
{ printf 'skipped'; cat "$cases/one-sample.spool"; } >behind
{ dd bs=7 count=1 of=/dev/null 2>/dev/null; "$spoolcat" --json; } <behind >out
"$spoolcat" --json "$cases/one-sample.spool" >expected
same out expected
