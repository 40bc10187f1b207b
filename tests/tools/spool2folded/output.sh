#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# -o, standard output and their failures: full disk, closed pipe, folders, FIFOs, links, signals.
. "$(dirname "$0")/_common.sh"

folded=("$spool2folded" --no-symbols)
cp "$synth/churn.spool" in
"${folded[@]}" in >expected

# leftovers: nothing but what is listed lies in folder d.
leftovers() {
    [ "$(ls -A d)" = "$1" ] || die "in d: $(ls -A d)"
}

mkdir d
run 0 "${folded[@]}" in -o d/new
equal out ''
same d/new expected
leftovers new
chmod 600 d/new
run 0 "${folded[@]}" -o d/new in
same d/new expected
[ "$(stat -c %a d/new)" = 600 ] || die "mode $(stat -c %a d/new)"
run 0 "${folded[@]}" --output=- in
same out expected

# Links: the target is replaced. What is not regular is written directly.
echo old >d/new
ln -s new d/link
run 0 "${folded[@]}" -o d/link in
[ -L d/link ] || die "the link is gone"
same d/new expected
rm d/*
run 0 "${folded[@]}" -o /dev/null in
[ -c /dev/null ] || die "/dev/null was replaced"
mkfifo d/fifo
cat d/fifo >got &
run 0 "${folded[@]}" -o d/fifo in
wait
same got expected
[ -p d/fifo ] || die "the FIFO is gone"
rm d/fifo
run 1 "${folded[@]}" -o d in
equal err 'spool2folded: d: is a directory'
run 1 "${folded[@]}" -o nowhere/x in
[[ $(<err) == 'spool2folded: nowhere/x: '*'No such file or directory' ]] || die "$(<err)"

# A failure leaves the old file alone; so does a usage error.
echo old >d/file
run 1 "${folded[@]}" -o d/file "$cases/unknown-tag-255.spool"
equal d/file old
run 1 "${folded[@]}" -o d/file in absent
equal d/file old
run 1 "${folded[@]}" --timeline -o d/file in absent
equal d/file old
run 1 "${folded[@]}" --weight=time -o d/file "$synth/backwards.spool"
[[ $(<err) == 'spool2folded: '*'backwards.spool: states no sample interval'* ]] || die "$(<err)"
equal d/file old
run 2 "${folded[@]}" --root=all -o d/file in
equal d/file old
leftovers file

# A full disk, a limit, closed descriptors.
if [ -w /dev/full ]; then
    run 1 "${folded[@]}" -o /dev/full in
    equal err 'spool2folded: /dev/full: write failed: No space left on device'
    for form in --root=process --timeline --reverse; do
        status=0
        "${folded[@]}" $form in >/dev/full 2>err || status=$?
        [ $status = 1 ] || die "full standard output: exit $status"
        equal err 'spool2folded: standard output: write failed: No space left on device'
    done
fi
status=0
{ (ulimit -f 8 && "${folded[@]}" -o d/file in) >out 2>err || status=$?; } 2>/dev/null
[ $status != 0 ] || die "a file larger than permitted"
equal d/file old
leftovers file
status=0
"${folded[@]}" in >&- 2>err || status=$?
[ $status = 1 ] || die "closed standard output: exit $status"
equal err 'spool2folded: standard output: write failed: Bad file descriptor'
status=0
"${folded[@]}" <&- >out 2>err || status=$?
[ $status = 1 ] || die "closed standard input: exit $status"
[ "$(wc -l <err)" = 1 ] || die "$(<err)"

# A closed pipe ends it silently.
for form in --root=process --timeline --reverse; do
    set +e
    "${folded[@]}" $form in in in in in in 2>err | head -1 >out
    status=${PIPESTATUS[0]}
    set -e
    [ "$status" = 141 ] || die "closed pipe, $form: exit $status"
    equal err ''
    [ "$(wc -l <out)" = 1 ] || die "closed pipe: $(wc -l <out) lines"
done

# Signals: no partial file, the old one stays, and the status says which. Reading waits at a FIFO that has no end yet.
mkfifo fifo
for signal in TERM INT HUP; do
    # ignored by the shell of a background job, INT would stay ignored
    (
        trap - INT
        exec env --default-signal=INT "${folded[@]}" -o d/file fifo
    ) >out 2>err &
    pid=$!
    exec 9>fifo
    cat in >&9
    for ((i = 0; i < 100; i++)); do
        [ "$(ls -A d | wc -l)" = 2 ] && break
        sleep 0.05
    done
    kill -$signal $pid
    status=0
    wait $pid 2>/dev/null || status=$?
    exec 9>&-
    [ $status = $((128 + $(kill -l $signal))) ] || die "SIG$signal: exit $status"
    equal err ''
    equal d/file old
    leftovers file
done

# A capture is never replaced by what is made of it.
cp "$FIXTURES/stackpulse/cases/one-sample.spool" own.spool
ln -s own.spool own.link
for arguments in "-o own.spool own.spool" "-o own.spool own.link" "-o own.link own.spool"; do
    status=0
    # shellcheck disable=SC2086 # a list
    "$spool2folded" $arguments >out 2>err || status=$?
    [ $status = 2 ] && grep -q 'input and output are the same file' err || die "$arguments: $(<err)"
done
status=0
"$spool2folded" -o own.spool <own.spool >out 2>err || status=$?
[ $status = 2 ] || die "standard input: $(<err)"
cmp -s own.spool "$FIXTURES/stackpulse/cases/one-sample.spool" || die "the capture was changed"
