#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# --follow: files that grow piece by piece, pipes, and everything that ends it.
. "$(dirname "$0")/_common.sh"
basic=$synth/basic.spool
size=$(stat -c %s "$basic")

# until COMMAND...: it succeeds within 20 seconds.
until_true() {
    local i
    for ((i = 0; i < 400; i++)); do
        "$@" && return 0
        sleep 0.05
    done
    die "never: $*"
}
begun() { [ "$(find d -name '.spooltools-*')" ]; }

# start ARGS...: spoolcat in the background, out and err its output, $pid.
start() {
    : >out
    "$spoolcat" "$@" >out 2>err </dev/null &
    pid=$!
}
# ended STATUS
ended() {
    local status=0
    wait $pid || status=$?
    [ $status = "$1" ] || die "exit status $status instead of $1: $(<err)"
}

"$spoolcat" --records "$basic" >records
"$spoolcat" --samples --no-symbols "$basic" >samples
head -n -1 records >records.shown # all but its end
cp samples samples.shown

# ---- a file that grows, in pieces that end anywhere, the header included ----
for view in records samples; do
    options=()
    [ $view = records ] || options=(--no-symbols)
    : >growing
    start --$view "${options[@]}" --follow growing
    for ((at = 0; at < size; at += 7919)); do
        tail -c +$((at + 1)) "$basic" | head -c 7919 >>growing
        ((at > 30000)) || sleep 0.02
    done
    until_true cmp -s $view.shown out
    kill -INT $pid
    ended 0
    equal err ''
    same $view out
done

# Whole records are shown at once, a partial one waits.
head -c 20000 "$basic" >growing
"$spoolcat" -q --samples --no-symbols growing >part
start --samples --no-symbols --follow growing
until_true cmp -s part out
sleep 0.3
tail -c +20001 "$basic" | head -c 1 >>growing
sleep 0.2
tail -c +20002 "$basic" >>growing
until_true cmp -s samples out
kill -0 $pid || die "ended by itself: $(<err)"
kill -INT $pid # or it would say later that the file has become shorter
ended 0
# A signal ends it at once, and well.
for signal in INT TERM HUP; do
    start --samples --no-symbols --follow growing
    until_true cmp -s samples out
    began=$(date +%s%N)
    kill -$signal $pid
    ended 0
    (($(date +%s%N) - began < 2000000000)) || die "SIG$signal took longer than 2 s"
    equal err ''
    same samples out
done

# ---- views that print at the end, with -o ----
head -c 20000 "$basic" >growing
mkdir d
for view in summary stacks modules threads; do
    echo old >d/file
    options=()
    [ $view != stacks ] || options=(--no-symbols)
    start --$view --json "${options[@]}" --follow -o d/file growing
    until_true begun
    sleep 0.3
    [ "$(<d/file)" = old ] || die "$view: replaced before its end"
    kill -INT $pid
    ended 0
    equal err '' # what was there when it was stopped was no end
    "$spoolcat" -q --$view --json "${options[@]}" growing >expected
    same <(sed 's/"bytes":[0-9]*,//' d/file) <(sed 's/"bytes":[0-9]*,//' expected)
    [ "$(ls -A d)" = file ] || die "$view: $(ls -A d)"
done
# A second signal does not wait: here standard output is full.
mkfifo full
sleep 30 <full &
holder=$!
"$spoolcat" --records --follow "$basic" >full 2>err &
pid=$!
sleep 0.4
kill -TERM $pid
sleep 0.2
kill -0 $pid 2>/dev/null || die "ended with output left"
kill -TERM $pid
ended 143
kill $holder

# ---- the recorder's last record ----
"$spoolmake" >whole <<'END'
version 3
interval 10ms
comm 7 app
samples 5 10ms 1s 7 7 0x10 0x20
note 7 end "5 0 0"
END
run 0 timeout 20 "$spoolcat" --samples --no-symbols --follow whole
"$spoolcat" --samples --no-symbols whole >expected
same expected out
head -c -3 whole >growing
start --samples --no-symbols --follow growing
until_true cmp -s expected out
kill -0 $pid || die "ended before the last record"
tail -c 3 whole >>growing
ended 0

# The report comes when it has ended.
for view in stacks samples; do
    head -c -3 whole >growing
    start --$view -v --follow growing
    [ $view = stacks ] || until_true grep -q '^app 7/7 1.040' out
    equal err ''
    tail -c 3 whole >>growing
    ended 0
    grep -qx 'used 5 samples, 1 distinct stack, 2 distinct frames' err || die "$(<err)"
    grep -qx 'no symbols: \[unknown\] (the address is in no module): 5 samples' err || die "$(<err)"
done

# ---- --idle ----
run 0 timeout 20 "$spoolcat" --records --follow --idle 200ms "$basic"
same records out
run 0 timeout 20 "$spoolcat" --records --follow --idle 0 "$basic"
same records out
head -c 20000 "$basic" >growing # inside a record: that is an end like any other
run 0 timeout 20 "$spoolcat" --records --follow --idle 100ms growing
grep -q '^spoolcat: growing: cut off at byte 1[0-9]*; kept [0-9]* samples$' err || die "$(<err)"
run 1 timeout 20 "$spoolcat" --records --strict --follow --idle 100ms growing
: >growing
run 1 timeout 20 "$spoolcat" --records --follow --idle 100ms growing
[ "$(wc -l <err)" = 1 ] || die "an empty file: $(<err)"

# ---- pipes ----
mkfifo pipe
start --samples --no-symbols --follow pipe
exec 9>pipe
head -c 20000 "$basic" >&9
until_true cmp -s part out
tail -c +20001 "$basic" >&9
until_true cmp -s samples out
kill -0 $pid || die "ended before the pipe"
exec 9>&- # its writer is gone
ended 0
equal err ''
start --samples --no-symbols --follow pipe
exec 9>pipe
head -c 20000 "$basic" >&9
until_true cmp -s part out
kill -INT $pid # while it is blocked
ended 0
same part out
exec 9>&-
timeout 20 "$spoolcat" --records --follow --idle 200ms pipe >out 2>err & # its writer stays
pid=$!
exec 9>pipe
cat "$basic" >&9
ended 0
same records out
exec 9>&-

# ---- gzip, damage, a file that shrinks ----
gzip -c "$basic" >packed.gz
run 0 timeout 20 "$spoolcat" --records --follow --idle 200ms packed.gz
same records out
run 1 timeout 20 "$spoolcat" --records --follow "$cases/unknown-tag-9.spool"
[ "$(wc -l <err)" = 1 ] || die "damage: $(<err)"
cp "$basic" growing
echo old >d/file
for output in out d/file; do
    if [ $output = out ]; then
        start --samples --no-symbols --follow growing
        until_true cmp -s samples out
    else
        start --samples --no-symbols --follow -o d/file growing
        until_true begun
        sleep 0.3
    fi
    truncate -s 1000 growing
    ended 1
    grep -q '^spoolcat: growing: the file has become shorter: it has 1000 bytes, ' err || die "$(<err)"
    cp "$basic" growing
done
equal d/file old
[ "$(ls -A d)" = file ] || die "$(ls -A d)"

# The magic of gzip may come in two pieces, as any other.
head -c 1 packed.gz >growing
start --records --follow --idle 1.5s growing
sleep 0.2
tail -c +2 packed.gz >>growing
ended 0
same records out

# ---- usage ----
run 2 "$spoolcat" --follow whole growing
equal err 'spoolcat: --follow takes one SPOOL, not 2 (see --help)'
run 2 "$spoolcat" --idle=1s whole
equal err 'spoolcat: --idle needs --follow (see --help)'
run 2 "$spoolcat" --follow --idle=soon whole
