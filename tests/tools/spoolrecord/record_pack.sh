#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# --pack with a spoolpack of our own: when it runs, how, what its failure and signals do.
. "$(dirname "$0")/_common.sh"
command -v perl >/dev/null || { echo "no perl in PATH" && exit 77; }

# Looked for before anything starts; beside the program first, else in PATH.
mkdir bin other
cp "$fake" bin/spoolrecord
plain=$(getconf PATH)
PATH=$plain run 125 bin/spoolrecord --pack symbols touch ran
equal err 'spoolrecord: --pack needs spoolpack, which is not installed'
gone ran profile.spool
cat >other/spoolpack <<'END'
#!/bin/sh
echo "packs $*"
for spool; do :; done
tail -1 "$spool"
exit "${PACK_STATUS:-0}"
END
chmod +x other/spoolpack
PATH=$PWD/other:$plain run 6 bin/spoolrecord --summary=none --pack symbols sh -c 'exit 6'
equal out 'packs -o symbols -- profile.spool
finish'
PATH=$PWD/other:$plain run 0 bin/spoolrecord --force -q --pack all.tar.gz true
has out '^packs -q --force -o all\.tar\.gz -- profile\.spool$'
PATH=$PWD/other:$plain run 0 bin/spoolrecord -o other.spool -q --pack all.tar.gz true
has out '^packs -q -o all\.tar\.gz -- other\.spool$'
sed 's/packs/beside packs/' other/spoolpack >bin/spoolpack
chmod +x bin/spoolpack
PATH=$PWD/other:$plain run 0 bin/spoolrecord -q --force --pack symbols true
has out '^beside packs -q -o symbols '

# Where nothing can be packed, nothing is recorded.
echo >file
mkdir folder folder.tar closed
# refused NAME WHY
refused() {
    run 125 bin/spoolrecord -q --force --pack "$1" touch ran
    equal err "spoolrecord: --pack $1: $2"
    gone ran
}
rule='(the name of an archive in one file ends in .tar.gz, .tgz or .tar)'
refused file "is there and is no folder $rule"
refused new.zip "would become a folder $rule"
refused folder.tar 'is a directory'
ln -s nowhere dangling
refused dangling 'is a symbolic link to nothing'
# in_place SPOOL PACK: the recording and its symbols would be in one place.
in_place() {
    run 125 bin/spoolrecord -q --force -o "$1" --pack "$2" touch ran
    equal err "spoolrecord: --pack $2: is the spool's own name: -o or --pack names another"
    gone ran
}
in_place new.tar.gz new.tar.gz
in_place new.tar.gz ./new.tar.gz
in_place folder/../new.tar "$PWD/new.tar"
in_place new-folder new-folder/
echo spool >same.tgz
ln -s same.tgz link.tgz
in_place same.tgz link.tgz
equal same.tgz spool
gone new.tar.gz new.tar new-folder
refused no/new 'no/: No such file or directory'
refused no/new.tgz 'no/: No such file or directory'
refused file/new 'Not a directory'
echo >there.tgz
run 125 bin/spoolrecord -q -o new.spool --pack there.tgz touch ran
equal err 'spoolrecord: --pack there.tgz: exists: --pack names another, --force replaces it'
gone ran new.spool
PATH=$PWD/other:$plain run 0 bin/spoolrecord -q --force --pack there.tgz true
has out '^beside packs -q --force -o there\.tgz -- '
if [ "$(id -u)" != 0 ]; then
    chmod a-w closed
    refused closed 'Permission denied'
    refused closed/new 'closed/: Permission denied'
fi
PATH=$PWD/other:$plain run 0 bin/spoolrecord -q --force --pack folder true
PATH=$PWD/other:$plain run 0 bin/spoolrecord -q --force --pack folder/new/ true
PATH=$PWD/other:$plain run 0 bin/spoolrecord -q --force --pack folder/new.tar.gz true

# What fails: the pack alone, which a command's own status covers; the recording, after which nothing is packed.
PACK_STATUS=3 run 1 bin/spoolrecord -q --force --pack symbols true
equal err 'spoolrecord: profile.spool: symbols were not packed: spoolpack ended with status 3'
has profile.spool '^finish$'
PACK_STATUS=3 run 7 bin/spoolrecord -q --force --pack symbols sh -c 'exit 7'
run 125 bin/spoolrecord -q --pack symbols -o /dev/null touch ran
equal err 'spoolrecord: /dev/null: --pack needs a regular file, which can be read again'
FAKE_POLL='1 -2 broken' run 125 bin/spoolrecord -q --force --pack symbols sleep 0.2
equal out ''
PATH=$PWD/other:$plain run 127 bin/spoolrecord -q --force --pack symbols no-such-command-here
equal out ''

# While what was recorded still runs: with -p, and with a command that goes on. Its deleted program can be read then. No
# more than others it may take processors away from it.
cat >bin/spoolpack <<'END'
#!/bin/sh
for spool; do :; done
grep -q '^finish$' "$spool" || echo "the spool is not finished"
readlink /proc/"$(cat target)"/exe
cmp /proc/"$(cat target)"/exe program.copy && echo the same
ps -o ni= -p $$ | tr -d ' '
END
cp "$(command -v sleep)" program.copy
cp program.copy program
./program 60 &
target=$!
trap 'kill $target 2>/dev/null || :' EXIT
echo $target >target
sleep 0.1
rm program
run 0 bin/spoolrecord -q --force --pack symbols -d 0.2 -p $target
equal out "$PWD/program (deleted)
the same
$(ps -o ni= -p $$ | tr -d ' ')"
kill $target
cp program.copy program
# shellcheck disable=SC2016 # for the inner shell
run 3 bin/spoolrecord -q --force --pack symbols -d 0.2 sh -c './program 0.8 & echo $! >target; rm program; wait; exit 3'
has out "/program \(deleted\)$" '^the same$'

# Signals: they end the pack as well, and the spool stays.
cat >bin/spoolpack <<'END'
#!/bin/sh
trap 'echo >interrupted; exit 9' INT TERM HUP
echo >packing
n=0
while [ $n -lt 500 ]; do
    sleep 0.02
    n=$((n + 1))
done
END
sleep 100 &
target=$!
for signal in INT TERM HUP; do
    # The first one, when the recording has ended by itself.
    rm -f profile.spool packing interrupted
    in_foreground bin/spoolrecord -q --pack symbols -d 10ms -p $target 2>err
    wait_for packing
    kill -$signal $pid
    status=0
    wait $pid || status=$?
    [ $status = 1 ] || die "SIG$signal: status $status: $(cat err)"
    equal err 'spoolrecord: profile.spool: symbols were not packed: spoolpack ended with status 9'
    has profile.spool '^finish$'
    wait_for interrupted

    # The one that ends the recording does not end the pack; the next one ends both at once.
    rm -f profile.spool packing interrupted
    in_foreground bin/spoolrecord -q --pack symbols -p $target 2>err
    wait_for profile.spool
    kill -$signal $pid
    wait_for packing
    sleep 0.1
    kill -0 $pid || die "SIG$signal: it does not wait for the pack"
    kill -$signal $pid
    status=0
    wait $pid || status=$?
    [ $status = $((128 + $(kill -l $signal))) ] || die "SIG$signal: status $status: $(cat err)"
    has profile.spool '^finish$'
    wait_for interrupted
done
kill $target

# A command that still runs is waited for when its pack was interrupted.
rm -f profile.spool packing
in_foreground bin/spoolrecord -q --pack symbols -d 10ms sh -c 'sleep 0.5; echo >went-on; exit 4' 2>err
wait_for packing
kill -TERM $pid
status=0
wait $pid || status=$?
[ $status = 4 ] || die "status $status: $(cat err)"
[ -e went-on ] || die "the command was not waited for"
