# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2034 # used by those that source it
# What the tests that record running programs share; to be sourced. BIN, SRC and BUILD are set, the folder is empty. The
# programs recorded are modes of workload.c; workload.graph has their stacks. Exit status 77 where the kernel does not let
# this user record anything. What needs root or a setting is left out with a line that says so.
set -u
export LC_ALL=C
spoolrecord=$BIN/spoolrecord
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
workload=$BUILD/tests/workload
hz=999
bad=0

failed() {
    echo "FAILED: $*"
    bad=1
}

die() {
    echo "FAILED: $*"
    exit 1
}

left_out() {
    echo "left out: $*"
}

"$workload" probe || exit $?
command -v jq >/dev/null || { echo "no jq in PATH" && exit 77; }
[ -x "$spoolrecord" ] || die "no $spoolrecord"
paranoid=$(cat /proc/sys/kernel/perf_event_paranoid)

# Whatever this test started and did not wait for ends with it.
started=()
end_started() {
    [ ${#started[@]} = 0 ] || kill -CONT "${started[@]}" 2>/dev/null
    [ ${#started[@]} = 0 ] || kill -KILL "${started[@]}" 2>/dev/null
}
trap end_started EXIT

# record NAME [OPTION]... [-- COMMAND...]: records into NAME.spool; NAME.err has the messages, NAME.json the summary, NAME.status
# the exit status. Fails when recording did.
record() {
    local name=$1 status=0
    shift
    timeout 60 "$spoolrecord" --force --summary=json -o "$name.spool" "$@" 2>"$name.all" </dev/null || status=$?
    echo "$status" >"$name.status"
    sort_messages "$name"
    [ "$status" = 0 ] || failed "$name: exit status $status: $(head -n 3 "$name.err")"
}

# sort_messages NAME: the messages in NAME.all to NAME.err, the summary to NAME.json.
sort_messages() {
    grep '^{' "$1.all" >"$1.json" || true
    grep -v '^{' "$1.all" >"$1.err" || true
}

# field NAME KEY: of the summary
field() {
    jq -r ".$2 // 0" "$1.json"
}

# fold NAME [OPTION]...: NAME.folded, without a frame in front of the stacks
fold() {
    local name=$1
    shift
    "$BIN/spool2folded" --quiet --root=none "$@" "$name.spool" >"$name.folded" ||
        failed "$name: spool2folded ends with status $?"
}

# check NAME MODE [AWK_OPTION]...: NAME.folded has no stack that cannot be, and enough of those that must be.
# MODE may be empty: no stack must be.
check() {
    local name=$1 mode=$2
    shift 2
    awk -v mode="$mode" "$@" -f "$here/check_stacks.awk" "$here/workload.graph" "$name.folded" >"$name.check" ||
        failed "$name: $(cat "$name.check")"
}

# count NAME samples|truncated|illegal: of the last check
count() {
    awk -v key="$2" '{ for (i = 1; i < NF; i++) if ($i == key) n = $(i + 1) } END { print n + 0 }' "$1.check"
}

# at_least A B, within PERCENT A B: numbers
at_least() {
    awk -v a="$1" -v b="$2" 'BEGIN { exit !(a >= b) }'
}
within() {
    awk -v p="$1" -v a="$2" -v b="$3" 'BEGIN { d = a - b; if (d < 0) d = -d; exit !(d * 100 <= p * b) }'
}

# wait_until SECONDS COMMAND...: whether it came true in time
wait_until() {
    local rounds=$(($1 * 50))
    shift
    until "$@"; do
        [ $((rounds--)) -gt 0 ] || return 1
        sleep 0.02
    done
}

# start NAME MODE [MS [N]]: runs the workload up to its gate. NAME.pid is its process id; open NAME lets it go on.
start() {
    local name=$1
    shift
    rm -f "$name.pid" "$name.gate" "$name.report"
    "$workload" --report "$name.report" --ready "$name.pid" --gate "$name.gate" "$@" 2>"$name.workload" &
    started+=($!)
    wait_until 10 test -s "$name.pid" || die "$name: the workload does not begin: $(cat "$name.workload")"
}
open() {
    touch "$1.gate"
}

# events_open PID: whether that recorder has as many events open as a moment ago, and any
events_open() {
    local n=0 fd
    for fd in /proc/"$1"/fd/*; do
        case $(readlink "$fd") in *perf_event*) n=$((n + 1)) ;; esac
    done
    [ $n -gt 0 ] && [ "$n" = "$events_before" ] && return 0
    events_before=$n
    sleep 0.08
    return 1
}

# record_attached NAME OPTION...: starts a recorder in the background and waits until its events are open. recorder is its process.
record_attached() {
    local name=$1
    shift
    "$spoolrecord" --force --summary=json -o "$name.spool" "$@" 2>"$name.all" </dev/null &
    recorder=$!
    started+=("$recorder")
    events_before=-1
    wait_until 10 events_open "$recorder" || failed "$name: no event is open: $(head -n 3 "$name.all")"
}

# finish NAME: waits for that recorder
finish() {
    local status=0
    wait "$recorder" || status=$?
    echo $status >"$1.status"
    sort_messages "$1"
    [ $status = 0 ] || failed "$1: exit status $status: $(head -n 3 "$1.err")"
}

# as_user COMMAND...: runs it as somebody without rights: this user, or nobody when that is root
nobody=65534
as_user() {
    if [ "$(id -u)" = 0 ]; then
        setpriv --reuid=$nobody --regid=$nobody --clear-groups --inh-caps=-all "$@"
    else
        "$@"
    fi
}

# user_folder: a folder with the programs in it that such a user can read and write; sets folder, user_record, user_workload.
user_folder() {
    folder=$(mktemp -d)
    trap 'end_started; rm -rf "$folder"' EXIT
    cp "$spoolrecord" "$workload" "$BUILD"/tests/workload_plugin_*.so "$folder"
    [ "$(id -u)" != 0 ] || chown -R $nobody "$folder"
    user_record=$folder/spoolrecord
    user_workload=$folder/workload
}
