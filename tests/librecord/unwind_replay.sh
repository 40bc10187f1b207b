#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Stacks of compilers, interpreters, a debugger and signal handlers, as perf record copies them: through the caches,
# without them and by libdw they have the same frames.
#   REPLAY_SAMPLES=N  how many of each program, 600 unless given (with sanitizers 200); and then more programs
#   REPLAY_BLIND=1    also what is found without unwind data
#   REPLAY_KEEP=1     keeps the recorded files, NAME.data
set -u
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=_unwind_replay.sh
. "$here/_unwind_replay.sh"

replay_possible || exit 77
# shellcheck disable=SC2086 # a list of options
replay_build "$BUILD/lib/librecord.a" replay ${SANITIZE_FLAGS:-} || exit 1

[ -z "${SANITIZE_FLAGS:-}" ] && samples=${REPLAY_SAMPLES:-600} || samples=${REPLAY_SAMPLES:-200}
all=${REPLAY_SAMPLES:+yes}
event=cpu-clock
seconds=$((samples / 900 + 1))
bad=0

# check NAME RECORD [ARGUMENT]...
check() {
    local name=$1 record=$2
    shift 2
    echo "== $name"
    "replay_$record" set.data "$event" "$seconds" "$@" || { bad=1 && return; }
    ./replay check --max "$samples" set.data || bad=1
    [ -z "${REPLAY_BLIND:-}" ] || ./replay blind --max "$samples" set.data
    if [ -n "${REPLAY_KEEP:-}" ]; then mv set.data "$name.data"; fi
    rm -f set.data
}
replay_workload() { # FILE EVENT SECONDS MODE
    replay_record "$1" "$2" 60 "$BUILD/tests/workload" "$4" "$((1000 * $3))"
}

check signal workload signal
replay_make_cpp && check cpp cpp || echo "left out: no g++"
replay_make_python
for python in $(if [ -n "$all" ]; then replay_pythons; else replay_pythons | tail -n 1; fi); do
    check "python-$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')" python "$python"
done
if [ -z "${SANITIZE_FLAGS:-}" ] || [ -n "$all" ]; then
    replay_make_rust && check rust rust || echo "left out: no rustc"
    replay_make_gdb && check gdb gdb || echo "left out: no gdb"
fi
[ -z "$all" ] || check realigned workload realigned

# Cut anywhere, a file is read as far as it goes, or refused.
replay_workload cut.data "$event" 1 signal
size=$(stat -c %s cut.data)
for part in 0 50 104 300 $((size / 2)) $((size - 12345)); do
    head -c "$part" cut.data >part.data
    ./replay check part.data >/dev/null 2>&1
    [ $? -le 2 ] || { echo "FAILED: cut to $part bytes" && bad=1; }
done
exit $bad
