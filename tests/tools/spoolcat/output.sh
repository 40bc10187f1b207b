#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# -o, standard output and their failures: full disk, closed pipe, folders, FIFOs, links, signals, rights.
. "$(dirname "$0")/_common.sh"

cp "$synth/churn.spool" in
"$spoolcat" --json in >expected

# leftovers: nothing but what is listed lies in folder d.
leftovers() {
    [ "$(ls -A d)" = "$1" ] || die "in d: $(ls -A d)"
}

mkdir d
run 0 "$spoolcat" --json in -o d/new
equal out ''
same d/new expected
[ "$(stat -c %a d/new)" = "$(printf '%o' $((0666 & ~0$(umask))))" ] || die "mode $(stat -c %a d/new)"
leftovers new

# An old file keeps its mode; - is standard output.
echo old >d/new
chmod 600 d/new
run 0 "$spoolcat" --json -o d/new in
same d/new expected
[ "$(stat -c %a d/new)" = 600 ] || die "mode $(stat -c %a d/new)"
run 0 "$spoolcat" --json --output=- in
same out expected
for name in /dev/stdout /dev/fd/1; do
    echo before >appended
    "$spoolcat" --json -o $name in >>appended
    same <(tail -n +2 appended) expected
    [ "$(head -1 appended)" = before ] || die "$name lost what was there"
done

# Links: the target is replaced or made.
ln -s new d/link
ln -s absent d/dangling
echo old >d/new
run 0 "$spoolcat" --json -o d/link in
[ -L d/link ] || die "the link is gone"
same d/new expected
run 0 "$spoolcat" --json -o d/dangling in
[ -L d/dangling ] || die "the dangling link is gone"
same d/absent expected
rm d/*

# What is not regular is written directly.
run 0 "$spoolcat" -o /dev/null in
[ -c /dev/null ] || die "/dev/null was replaced"
mkfifo d/fifo
cat d/fifo >got &
run 0 "$spoolcat" --json -o d/fifo in
wait
same got expected
[ -p d/fifo ] || die "the FIFO is gone"
rm d/fifo

# A folder, and one that is not there.
run 1 "$spoolcat" -o d in
equal err 'spoolcat: d: is a directory'
run 1 "$spoolcat" -o nowhere/x in
[[ $(<err) == 'spoolcat: nowhere/x: '*'No such file or directory' ]] || die "$(<err)"
run 1 "$spoolcat" d
equal err 'spoolcat: d: is a directory'
run 1 "$spoolcat" nowhere/x
equal err 'spoolcat: nowhere/x: open failed: No such file or directory'
leftovers ''

# A failure leaves the old file alone.
echo old >d/file
head -c 1000 in >bad
printf '\xee' >>bad
cp "$cases/unknown-tag-9.spool" bad
run 1 "$spoolcat" --json -o d/file bad
equal d/file old
leftovers file

# A full disk.
if [ -w /dev/full ]; then
    run 1 "$spoolcat" -o /dev/full in
    equal err 'spoolcat: /dev/full: write failed: No space left on device'
    status=0
    "$spoolcat" in >/dev/full 2>err || status=$?
    [ $status = 1 ] || die "full standard output: exit $status"
    equal err 'spoolcat: standard output: write failed: No space left on device'
    for option in --help --version; do
        status=0
        "$spoolcat" $option >/dev/full 2>err || status=$?
        [ $status = 1 ] || die "$option to a full disk: exit $status"
    done
fi
# A file size limit ends the tool like a full disk would, and leaves nothing.
status=0
(ulimit -f 8 && "$spoolcat" --json -o d/file in) >out 2>err || status=$?
[ $status != 0 ] || die "a file larger than permitted"
equal d/file old
leftovers file

# Closed standard output and input.
status=0
"$spoolcat" in >&- 2>err || status=$?
[ $status = 1 ] || die "closed standard output: exit $status"
equal err 'spoolcat: standard output: write failed: Bad file descriptor'
status=0
"$spoolcat" <&- >out 2>err || status=$?
[ $status = 1 ] || die "closed standard input: exit $status"
[[ $(<err) == 'spoolcat: standard input: '* ]] || die "$(<err)"
run 0 bash -c '"$1" --json -o d/file in >&-' - "$spoolcat" # not needed, so no error
same d/file expected

# A closed pipe: SIGPIPE, and where that is ignored exit 1; silently both times.
for ((i = 0; i < 20; i++)); do cat in; done >/dev/null
many=(in in in in in in in in)
set +e
"$spoolcat" --json "${many[@]}" 2>err | head -1 >out
status=${PIPESTATUS[0]}
set -e
[ "$status" = 141 ] || die "closed pipe: exit $status"
equal err ''
status=$( (
    trap '' PIPE
    set +e
    { "$spoolcat" --json "${many[@]}" 2>err; echo $? >status; } | head -1 >/dev/null
    cat status
))
[ "$status" = 1 ] || die "closed pipe with SIGPIPE ignored: exit $status"
equal err ''

# Signals while it writes: it waits in a FIFO for more input, the temporary file is there.
echo old >d/file
for signal in TERM HUP INT; do
    mkfifo wait
    # bash starts background jobs with SIGINT ignored; env gives the default back.
    env --default-signal=INT "$spoolcat" --json -o d/file wait &
    pid=$!
    exec 9>wait
    head -c 60000 in >&9
    for ((i = 0; i < 100; i++)); do
        [ "$(ls -A d | wc -l)" = 2 ] && break
        sleep 0.05
    done
    [ "$(ls -A d | wc -l)" = 2 ] || die "no temporary file appeared"
    kill -$signal $pid
    status=0
    wait $pid || status=$?
    [ $status = $((128 + $(kill -l $signal))) ] || die "$signal: exit $status"
    exec 9>&-
    equal d/file old
    leftovers file
    rm wait
done

# Rights. Root may read everything, so it becomes nobody.
as_nobody=()
if [ "$(id -u)" = 0 ]; then
    command -v setpriv >/dev/null || exit 0
    as_nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups)
    "${as_nobody[@]}" "$spoolcat" --version >/dev/null 2>&1 || exit 0 # the build is out of its reach
fi
mkdir public
chmod 777 public
cp "$cases/one-sample.spool" public/secret
chmod 0 public/secret
cp "$cases/one-sample.spool" public/in
chmod 755 .
cd public
if "${as_nobody[@]}" test -r in 2>/dev/null; then
    run 1 "${as_nobody[@]}" "$spoolcat" secret
    equal err 'spoolcat: secret: open failed: Permission denied'
    echo old >fixed
    chmod 444 fixed
    run 1 "${as_nobody[@]}" "$spoolcat" -o fixed in
    equal err 'spoolcat: fixed: open failed: Permission denied'
    equal fixed old
    mkdir closed
    chmod 555 closed
    run 1 "${as_nobody[@]}" "$spoolcat" -o closed/x in
    [[ $(<err) == 'spoolcat: closed/x: '*'Permission denied' ]] || die "$(<err)"
fi

# A capture is never replaced by what is made of it.
cp "$FIXTURES/stackpulse/cases/one-sample.spool" own.spool
ln -s own.spool own.link
for arguments in "-o own.spool own.spool" "-o own.spool own.link" "-o own.link own.spool"; do
    status=0
    # shellcheck disable=SC2086 # a list
    "$spoolcat" $arguments >out 2>err || status=$?
    [ $status = 2 ] && grep -q 'input and output are the same file' err || die "$arguments: $(<err)"
done
status=0
"$spoolcat" -o own.spool <own.spool >out 2>err || status=$?
[ $status = 2 ] || die "standard input: $(<err)"
cmp -s own.spool "$FIXTURES/stackpulse/cases/one-sample.spool" || die "the capture was changed"
