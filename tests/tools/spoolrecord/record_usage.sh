#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The command line: help, usage errors, and that each option reaches the recorder.
. "$(dirname "$0")/_common.sh"

run 0 "$fake" --help
equal err ''
has out '^Usage: spoolrecord \[OPTION\]\.\.\. \[--\] COMMAND \[ARG\]\.\.\.$' '^Sampling:$' '125'
hasnt out 'SPOOL'
run 0 "$fake" --version
equal out "spoolrecord $VERSION
spool versions written: 3 4"

# usage TEXT ARGS...
usage() {
    local text=$1
    shift
    run 2 "$fake" "$@"
    equal out ''
    equal err "spoolrecord: $text (see --help)"
    gone profile.spool
}
usage 'neither a COMMAND nor --pid was given'
usage 'neither a COMMAND nor --pid was given' --
usage "'true': a COMMAND and --pid contradict each other" -p 1 true
usage '--descendants goes with --pid only' --descendants true
usage '--pack needs a spool in a file' --pack d -o - true
usage '--force needs a spool in a file' --force -o /dev/stdout true
usage '--quiet and --verbose contradict each other' -qv true
usage '--quiet and --progress=always contradict each other' -q --progress=always true
usage "--event: 'clock' is not one of auto, cycles, cpu-clock" --event=clock true
usage "--format: '2' is not one of 3, 4" --format=2 true
usage "--duration: '0': nothing happens in no time" -d 0 true
usage "--stack-size: '7': a stack has 8 bytes at least" --stack-size 7 true
usage "--buffer: '0': a buffer has room for something" --buffer 0 true
usage "--output: '': no name of a file" -o '' true
usage '--output was given more than once' -o a -o b true
usage '--pid: no process id was given' -p ''
usage '--pid: no process id was given' --pid=
usage "unknown option '--frobnicate'" --frobnicate true
usage "unknown option '-g': stacks are always recorded" -g true
usage "unknown option '-a': whole systems are not recorded, --pid takes processes" -ag
usage "unknown option '-c': samples are taken by time, --frequency says how many a second" -qc 100000 true
usage "unknown option '-e', did you mean --event?" -e cycles true
usage "unknown option '-h', did you mean --help?" -h
usage "unknown option '-s'" -s true # --stack-size, --start-time, --summary
usage "unknown option '--='" --=x true
usage "option '--kernel' takes no value" --kernel=keep true
usage "option '--duration' needs a value (T)" --duration
for bad in x 1,x 1, ,1 0 -1 2147483648 1..2 ''; do
    run 2 "$fake" -p "$bad"
    has err '^spoolrecord: --pid: '
done
for bad in 0 x -1 4294967295 1.5 MAX; do
    run 2 "$fake" -F "$bad" true
    has err '^spoolrecord: --frequency: '
done
for bad in 5x s -1 1m; do
    run 2 "$fake" -d "$bad" true
    has err '^spoolrecord: --duration: '
done

# opened OPTIONS TEXT: what the recorder is opened with.
opened() {
    local text=$1
    shift
    run 0 "$fake" -q --force "$@" true
    head -1 profile.spool >first
    has first "$text"
}
opened '^open frequency=999 stack=32768 event=0 kernel=0 no_inherit=0 ring=0 version=3 plain=0 start=0,0 interval=0,0$'
opened 'frequency=49 ' -F 49
opened 'frequency=4294967295 ' --frequency=max
opened 'stack=65536 ' --stack-size 64K
opened 'stack=4294967295 ' --stack-size 16G
opened 'event=1 ' --event=cycles
opened 'event=2 ' --event cpu-clock
opened 'kernel=1 ' -k
opened 'no_inherit=1 ' --no-inherit
opened 'ring=1048576 ' --buffer 1M
opened 'version=4 ' --format=4
opened 'plain=1 ' --plain
opened 'start=1,17 interval=1,0$' --start-time 17 --interval=0

# What follows the command's name is its own; so is what follows --.
run 0 "$fake" -q --force echo -q --help -- x
equal out '-q --help -- x'
printf '#!/bin/sh\necho "$@"\n' >./-cmd
chmod +x ./-cmd
PATH=$PWD:$PATH run 0 "$fake" -q --force -- -cmd -p 1
equal out '-p 1'

# -p: sorted, each once.
sleep 100 &
one=$!
sleep 100 &
two=$!
trap 'kill $one $two' EXIT
run 0 "$fake" -q --force -d 10ms -p "$two,$one" -p "$one" --descendants
equal profile.spool "$(head -1 profile.spool)
attach flags=6
attach flags=6
enable
finish"
