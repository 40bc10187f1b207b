#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The command line: help, usage errors.
. "$(dirname "$0")/_common.sh"
cp "$cases/one-sample.spool" in

run 0 "$spool2speedscope" --help
equal err ''
grep -q -- '--\[no-\]overview ' out || die "no --[no-]overview in --help"
run 0 "$spool2speedscope" --version
[[ $(head -1 out) == 'spool2speedscope '[0-9]*.[0-9]*.[0-9]* ]] || die "$(<out)"

# usage TEXT ARGS...
usage() {
    local text=$1
    shift
    run 2 "$spool2speedscope" "$@"
    equal out ''
    equal err "spool2speedscope: $text (see --help)"
}
usage "--weight: 'x' is not one of time, samples" --weight=x in
usage "option '--overview' takes no value" --overview=yes in
usage "option '--name' needs a value (TEXT)" in --name
usage "--max-profiles: '0' is not in 1 to 4294967295" --max-profiles 0 in
usage "--max-profiles: 'all' is not a number" --max-profiles all in
usage "--no-overview would leave nothing of --merge-threads" --no-overview --merge-threads in
usage "--max-profiles is about threads, which --merge-threads does not show" --merge-threads --max-profiles 2 in
usage "--[no-]merge-runs is about time, which --merge-threads does not show" --merge-threads --no-merge-runs in
usage "unknown option '--timeline'" --timeline in

# The last of several counts.
"$spool2speedscope" --no-symbols --merge-threads --no-overview --overview "$synth/basic.spool" >both
"$spool2speedscope" --no-symbols --merge-threads "$synth/basic.spool" >one
same both one
