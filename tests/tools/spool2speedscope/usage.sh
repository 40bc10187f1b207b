#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The command line: help, manual page, usage errors.
. "$(dirname "$0")/_common.sh"
page=$(dirname "$0")/../../../tools/spool2speedscope/spool2speedscope.1
cp "$cases/one-sample.spool" in

run 0 "$spool2speedscope" --help
equal err ''
awk 'length > 79 { print; bad = 1 } END { exit bad }' out || die "--help is too wide"
grep -q -- '--\[no-\]overview ' out || die "no --[no-]overview in --help"
run 0 "$spool2speedscope" --version
[[ $(head -1 out) == 'spool2speedscope '[0-9]*.[0-9]*.[0-9]* ]] || die "$(<out)"

# Every option of --help stands in the manual page, and the other way round.
"$spool2speedscope" --help | sed -n 's/^  *\(-., \)\{0,1\}--\(\[no-\]\)\{0,1\}\([a-z-]*\).*/\3/p' | sort -u >in-help
grep -o 'Fl -[a-z-]*' "$page" | sed 's/Fl -//' | grep -vxE 'no-(overview|merge-runs|inlines)' | sort -u >in-page
diff in-help in-page || die "--help (<) and spool2speedscope.1 (>) have different options"

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
