#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Where the spool goes: files that exist, what is no regular file, standard output, full disks, closed pipes.
. "$(dirname "$0")/_common.sh"

# An existing file is refused before anything runs.
echo old >profile.spool
run 125 "$fake" touch ran
equal err 'spoolrecord: profile.spool: exists: -o FILE names another, --force overwrites it'
gone ran
equal profile.spool old
# What is to be recorded is looked at before.
run 127 "$fake" no-such-command-here
equal err 'spoolrecord: no-such-command-here: No such file or directory'
run 127 "$fake" ./no/such
run 127 "$fake" ''
printf 'exit 3\n' >own-script
mkdir path
cp own-script path
PATH=$PWD/path:$PWD/nowhere:$PATH run 126 "$fake" own-script
equal err 'spoolrecord: own-script: Permission denied'
run 126 "$fake" ./path
run 125 "$fake" -p $$,2147483647
equal err 'spoolrecord: process 2147483647 does not exist'
# A file without an interpreter's name is run by a shell, here from the present folder; without PATH by the C library's.
chmod +x own-script
PATH=$PWD/path::$PATH run 3 "$fake" -q -o script.spool own-script
run 0 env -u PATH "$fake" -q -o true.spool true
equal profile.spool old
ln -s profile.spool link.spool
run 125 "$fake" -o link.spool touch ran
equal err 'spoolrecord: link.spool: exists: -o FILE names another, --force overwrites it'
ln -s nowhere dangling.spool
run 125 "$fake" -o dangling.spool touch ran
equal err 'spoolrecord: dangling.spool: open failed: No such file or directory'
mkdir folder
run 125 "$fake" --force -o folder touch ran
equal err 'spoolrecord: folder: is a directory'
run 125 "$fake" -o nowhere/x.spool touch ran
equal err 'spoolrecord: nowhere/x.spool: open failed: No such file or directory'
gone ran
seq 10000 >profile.spool
run 0 "$fake" --force -q -o link.spool true # in place: the link stays
[ -L link.spool ] || die "the link was replaced"
has profile.spool '^open ' '^finish$'
[ "$(wc -l <profile.spool)" = 3 ] || die "the end of the old file is still there"

# What is no regular file is written to.
run 0 "$fake" -q -o /dev/null true
mkfifo fifo
cat fifo >from-fifo &
run 0 "$fake" -q -o fifo true
wait $!
has from-fifo '^finish$'
[ -p fifo ] || die "the FIFO was replaced"
run 0 "$fake" -q -o >(cat >from-shell) true
wait_for from-shell

# Standard output is the spool's alone.
for name in - /dev/stdout; do
    run 3 "$fake" -q -o $name sh -c 'echo hello; exit 3'
    has out '^open ' '^finish$'
    equal err hello
done
"$fake" -q -o - sh -c 'echo "$(readlink /proc/self/fd/1)"' 2>err | cat >out
hasnt out pipe
# Nothing comes of what cannot begin.
run 127 "$fake" -q -o - no-such-command-here
equal out ''

# A full disk: one line, the command goes on, 125.
run 125 "$fake" -o /dev/full sh -c 'sleep 0.3; touch went-on'
has err '^spoolrecord: /dev/full: write failed: No space left on device$'
[ "$(grep -c 'No space' err)" = 1 ] || die "$(cat err)"
[ -e went-on ] || die "the command was not waited for"
# So is a limit, which comes as a signal unless that is ignored; the file stays.
status=0
(ulimit -f 4 && FAKE_POLL_BYTES=10000 exec "$fake" -o big.spool sleep 0.3) 2>err || status=$?
[ $status = 125 ] || die "status $status"
has err '^spoolrecord: big.spool: write failed: File too large$'
[ -s big.spool ] || die "what was recorded is gone"
# A closed pipe, once; and SIGPIPE is no business of the command's.
rm -f went-on
mkfifo closed
(exec 3<closed && sleep 0.2) &
status=0
FAKE_POLL_BYTES=10 "$fake" -q -o closed sh -c 'sleep 0.6; touch went-on' 2>err || status=$?
[ $status = 125 ] || die "status $status"
equal err 'spoolrecord: closed: write failed: Broken pipe'
[ -e went-on ] || die "the command was not waited for"
run 0 "$fake" -q --force perl -e 'print $SIG{PIPE} // "default"'
(trap '' PIPE INT && "$fake" -q --force grep SigIgn /proc/self/status) >out
(trap '' PIPE INT && grep SigIgn /proc/self/status) >expected
same out expected
"$fake" -q --force grep SigIgn /proc/self/status >out
grep SigIgn /proc/self/status >expected
same out expected

# A terminal.
if ! command -v script >/dev/null; then
    echo "no script in PATH"
    exit 77
fi
script -qec "'$fake' -o - touch ran" typescript >/dev/null && die "a terminal was taken"
has typescript '^spoolrecord: standard output: binary output is not written to a terminal'
gone ran
