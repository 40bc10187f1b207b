#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A file, a pipe, a FIFO, a link and gzip of the same bytes: the same output and the same messages, byte for byte.
. "$(dirname "$0")/_common.sh"

# alike NAME OPTION...: compares all ways of reading NAME, whose messages differ in the input's name alone.
alike() {
    local name=$1 status=0 got
    shift
    "$spool2folded" --no-symbols "$@" "$name" >file.out 2>file.err || status=$?
    sed "s|^spool2folded: $name: |spool2folded: standard input: |" file.err >stdin.err

    got=0
    cat "$name" | "$spool2folded" --no-symbols "$@" >out 2>err || got=$?
    [ $got = $status ] && same file.out out && same stdin.err err || die "$name by pipe"
    got=0
    { dd if="$name" bs=1 count=100 2>/dev/null; tail -c +101 "$name"; } |
        "$spool2folded" --no-symbols "$@" - >out 2>err || got=$?
    [ $got = $status ] && same file.out out && same stdin.err err || die "$name by slow pipe"
    got=0
    "$spool2folded" --no-symbols "$@" <"$name" >out 2>err || got=$?
    [ $got = $status ] && same file.out out && same stdin.err err || die "$name by redirection"

    [ -p fifo ] || mkfifo fifo
    cat "$name" >fifo &
    got=0
    "$spool2folded" --no-symbols "$@" fifo >out 2>err || got=$?
    wait
    sed "s|^spool2folded: $name: |spool2folded: fifo: |" file.err >fifo.err
    [ $got = $status ] && same file.out out && same fifo.err err || die "$name by FIFO"

    ln -sf "$name" link
    got=0
    "$spool2folded" --no-symbols "$@" link >out 2>err || got=$?
    sed "s|^spool2folded: $name: |spool2folded: link: |" file.err >link.err
    [ $got = $status ] && same file.out out && same link.err err || die "$name by link"

    gzip -c "$name" >"$name.packed"
    got=0
    "$spool2folded" --no-symbols "$@" <"$name.packed" >out 2>err || got=$?
    [ $got = $status ] && same file.out out && same stdin.err err || die "$name packed"
    { head -c 9 "$name" | gzip -c; tail -c +10 "$name" | gzip -c; } >"$name.packed"
    got=0
    "$spool2folded" --no-symbols "$@" <"$name.packed" >out 2>err || got=$?
    [ $got = $status ] && same file.out out && same stdin.err err || die "$name in members"
}

for spool in "$synth"/{churn,churn-half,churn-cut,basic-v1,backwards}.spool \
    "$cases"/{one-sample,tail-mid-path,tail-tag-only,unknown-tag-9,varint-11-bytes,empty-v2,empty-file,magic-wrong,header-mid-varint}.spool; do
    cp "$spool" "$(basename "$spool" .spool)"
    alike "$(basename "$spool" .spool)" --root=thread
done
alike churn-half --timeline
alike backwards --reverse --salvage
alike unknown-tag-9 --salvage

# The same with names, and a report that gives the size of what was read.
cp "$o2" ladder
run 0 "$spool2folded" "${files[@]}" ladder
cp out expected
cat ladder | "$spool2folded" "${files[@]}" >out
same expected out
run 0 "$spool2folded" -v "${files[@]}" ladder
sed 's/^ladder: /standard input: /' err >expected
cat ladder | "$spool2folded" -v "${files[@]}" >out 2>err
same expected err

# Versions 1, 2 and 3 with the same content give the same output.
"$spool2folded" --no-symbols --root=thread "$synth/basic.spool" >expected
"$spool2folded" --no-symbols --root=thread "$synth/basic-v1.spool" >out
same expected out
"$spool2folded" --no-symbols --root=thread "$synth/churn.spool" >expected
"$spool2folded" --no-symbols --root=thread "$synth/churn-v2.spool" >out
same expected out
[ "$(total out)" = 3000 ] || die "$(total out) samples"

# Sorted, and the same bytes every time.
sed 's/ [0-9]*$//' out >lines
sort -c lines || die "not sorted"
[ -z "$(uniq -d lines)" ] || die "a line twice: $(uniq -d lines | head -1)"

# Several SPOOLs are one document; one of them may be standard input, once.
run 0 "$spool2folded" --no-symbols "$cases/one-sample.spool" "$cases/stack-tree.spool"
equal out "a;a+0x180 2
a;a+0x180;a+0x190;a+0x1a0 1
a;a+0x180;a+0x1a0 1"
"$spool2folded" --no-symbols - "$cases/stack-tree.spool" <"$cases/one-sample.spool" >got
same out got
run 0 "$spool2folded" --no-symbols "$synth"/{basic,churn,deep}.spool
[ "$(total out)" = 6300 ] || die "$(total out) samples in three spools"

# A folder, nothing, a file that may not be read.
mkdir folder
run 1 "$spool2folded" folder
equal err 'spool2folded: folder: is a directory'
mkdir folder/captures
run 1 "$spool2folded" folder
equal err 'spool2folded: folder: is a folder of symbols, not a spool; --symbols takes it'
tar -czf folder.tar.gz folder
run 1 "$spool2folded" folder.tar.gz
equal err 'spool2folded: folder.tar.gz: not a spool but a tar file (a symbol archive is for --symbols)'
run 1 "$spool2folded" absent
equal err 'spool2folded: absent: open failed: No such file or directory'
ln -s absent dangling
run 1 "$spool2folded" "$cases/one-sample.spool" dangling
equal out ''
equal err 'spool2folded: dangling: open failed: No such file or directory'
cp "$cases/one-sample.spool" secret
chmod 000 secret
if [ "$(id -u)" != 0 ]; then
    run 1 "$spool2folded" secret
    equal err 'spool2folded: secret: open failed: Permission denied'
elif command -v setpriv >/dev/null && setpriv --reuid=65534 --regid=65534 --clear-groups test -x "$spool2folded" -a -e secret; then
    run 1 setpriv --reuid=65534 --regid=65534 --clear-groups "$spool2folded" secret
    equal err 'spool2folded: secret: open failed: Permission denied'
else
    echo "left out: no other user who could try an unreadable file"
fi
