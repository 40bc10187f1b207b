#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Exit statuses, and which spools are left behind, over a recorder that fails on demand.
. "$(dirname "$0")/_common.sh"

# The command's status is ours.
run 0 "$fake" true
has err '^profile\.spool: 1,234 samples in [0-9.]+ s, 1 process, 2 threads, [0-9]+ B \(cpu-clock, 999 Hz\)$'
has profile.spool '^finish$'
[ "$(stat -c %a profile.spool)" = 644 ] || die "mode $(stat -c %a profile.spool)"
(umask 077 && run 0 "$fake" -o private.spool true)
[ "$(stat -c %a private.spool)" = 600 ] || die "mode $(stat -c %a private.spool)"
run 7 "$fake" -q --force sh -c 'exit 7'
equal err ''
run 2 "$fake" -q --force sh -c 'exit 2'
run 143 "$fake" -q --force sh -c 'kill -TERM $$'
run 137 "$fake" -q --force sh -c 'kill -KILL $$'
has profile.spool '^finish$'

# What cannot be run leaves no spool, and an older one as it was.
rm -f ./*.spool
echo old >old.spool
touch not-executable
mkdir folder
for output in profile.spool old.spool; do
    force=
    [ $output = profile.spool ] || force=--force
    run 127 "$fake" -o $output $force no-such-command-here
    equal err 'spoolrecord: no-such-command-here: No such file or directory'
    run 126 "$fake" -o $output $force ./not-executable
    equal err 'spoolrecord: ./not-executable: Permission denied'
    run 126 "$fake" -o $output $force ./folder
    FAKE_OPEN='-7 the kernel permits 100 Hz, not 999' run 125 "$fake" -o $output $force touch ran
    equal err 'spoolrecord: the kernel permits 100 Hz, not 999'
    FAKE_ATTACH='-20 kernel.perf_event_paranoid is 4; ask root' run 125 "$fake" -o $output $force touch ran
    equal err 'spoolrecord: kernel.perf_event_paranoid is 4; ask root'
    FAKE_ENABLE='-2 broken' run 125 "$fake" -o $output $force -p $$
    equal err 'spoolrecord: broken'
    FAKE_PREPARE=-1 run 125 "$fake" -o $output $force touch ran
    equal err 'spoolrecord: touch: cannot be started: out of memory'
    gone profile.spool ran
    equal old.spool old
done

# Processes: all or none.
run 125 "$fake" -p $$,2147483647
equal err 'spoolrecord: process 2147483647 does not exist'
run 125 sh -c 'exec "$0" -p $$' "$fake"
has err '^spoolrecord: process [0-9]+ is spoolrecord itself$'
FAKE_ATTACH='-20 attached first' run 125 sh -c 'exec "$0" -p 1,$$' "$fake"
has err '^spoolrecord: process [0-9]+ is spoolrecord itself$'
gone profile.spool
sh -c 'sleep 1; exit 3' &
run 0 "$fake" -p $!
has profile.spool '^finish$'
rm profile.spool

# Failures later leave what was recorded; the command runs to its end, and its status is not asked for.
FAKE_POLL='2 -1 no memory' run 125 "$fake" sh -c 'sleep 0.4; touch went-on; exit 3'
has err '^spoolrecord: out of memory$' '^profile.spool: 1,234 samples'
[ -e went-on ] || die "the command was not waited for"
has profile.spool '^finish$'
FAKE_FINISH='-2 it went wrong' run 125 "$fake" --force -q true
equal err 'spoolrecord: it went wrong'

# So do the help and the version that nobody gets.
for option in --help --version --completion=bash; do
    status=0
    "$fake" $option >/dev/full 2>err || status=$?
    [ $status = 125 ] || die "$option to a full device: status $status"
    "$fake" $option >&- 2>err && die "$option to a closed output: status 0" || status=$?
    [ $status = 125 ] || die "$option to a closed output: status $status"
done

# Children that are left behind end nothing.
FAKE_CHILDREN=1 run 5 "$fake" --force sh -c 'exit 5'
has err '^spoolrecord: 1 child of the command still runs and is recorded no longer$'
FAKE_CHILDREN=3 run 0 "$fake" --force true
has err '^spoolrecord: 3 children of the command still run and are recorded no longer$'

# --duration: recording ends, the command does not.
begun=$SECONDS
run 4 "$fake" --force -d 100ms sh -c 'sleep 0.9; exit 4'
((SECONDS - begun <= 10)) || die "it took $((SECONDS - begun)) s"
has err '^spoolrecord: recording has ended, waiting for the command \(process [0-9]+\)$'
[ "$(sed -n '/samples in 0\.[12]/=' err)" = 1 ] || die "$(cat err)"
sleep 100 &
run 0 "$fake" --force -d 0.1 -p $!
kill $!
