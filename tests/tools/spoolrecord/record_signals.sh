#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Signals: the first finishes the spool, the command goes on and is waited for; a second one ends the tool.
. "$(dirname "$0")/_common.sh"
command -v perl >/dev/null || { echo "no perl in PATH" && exit 77; }

# status_of PID EXPECTED
status_of() {
    local status=0
    wait "$1" || status=$?
    [ $status = "$2" ] || die "status $status instead of $2: $(cat err)"
}

# waits: till it says that it waits for the command.
waits() {
    local i
    for ((i = 0; i < 1000; i++)); do
        ! grep -q 'waiting for the command' err || return 0
        sleep 0.01
    done
    die "it does not say that it waits: $(cat err)"
}

for signal in INT TERM HUP; do
    rm -f profile.spool ready on went-on
    in_foreground "$fake" sh -c 'echo >ready; until [ -s on ]; do sleep 0.02; done; echo >went-on; exit 9' 2>err
    wait_for ready
    kill -$signal $pid
    sleep 0.1
    echo >on
    status_of $pid 9
    has profile.spool '^finish$'
    [ -e went-on ] || die "SIG$signal: the command was not waited for"
    has err '1,234 samples'

    # Two at once are one request, as timeout(1) makes it; a later one ends the waiting.
    rm -f profile.spool ready
    in_foreground "$fake" sh -c 'echo >ready; exec sleep 100' 2>err
    wait_for ready
    command_pid=$(pgrep -P $pid)
    kill -$signal $pid
    kill -TERM $pid
    waits
    has profile.spool '^finish$'
    sleep 0.1
    kill -0 $pid || die "SIG$signal: it does not wait"
    kill -$signal $pid
    status_of $pid $((128 + $(kill -l $signal)))
    kill $command_pid || die "SIG$signal: the command was ended"
done

# Processes go on, and the status is 0.
sleep 100 &
target=$!
rm -f profile.spool
in_foreground "$fake" -p $target 2>err
wait_for profile.spool
kill -INT $pid
status_of $pid 0
has profile.spool '^finish$'
kill $target

# A recorder that hangs is ended by the second signal, and the spool stays.
rm -f profile.spool ready
FAKE_STOP=never in_foreground "$fake" sh -c 'echo >ready; exec sleep 1' 2>err
wait_for ready
kill -TERM $pid
sleep 0.3
kill -TERM $pid
status_of $pid 143
has profile.spool '^command$'

# While only the command is waited for, SIGTERM has no other meaning; SIGINT has.
for signal in TERM INT; do
    rm -f profile.spool on
    in_foreground "$fake" -d 10ms sh -c 'until [ -s on ]; do sleep 0.02; done' 2>err
    waits
    kill -$signal $pid
    if [ $signal = TERM ]; then
        status_of $pid 143
        echo >on
    else
        sleep 0.1
        echo >on
        status_of $pid 0
    fi
done

# On a terminal the command gets the signal as well.
command -v script >/dev/null || { echo "no script in PATH" && exit 77; }
rm -f profile.spool ready
cat >handles <<'END'
trap 'echo >got; exit 21' INT
echo >ready
while :; do sleep 0.05; done
END
mkfifo keys
exec 3<>keys
# The shell between them, whichever it is, outlives the signal.
in_foreground script -qec "trap : INT; '$fake' sh handles; echo status \$? >status" typescript <&3 >/dev/null
wait_for ready
printf '\003' >&3
wait_for status
wait $pid
exec 3>&-
[ -e got ] || die "the command did not get SIGINT"
equal status 'status 21'
has profile.spool '^finish$'
