# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2034 # used by those that source it
# What the shell tests of the tools share; to be sourced. BIN, FIXTURES and BUILD are set, the folder is empty.
set -eu
export LC_ALL=C
spoolmake=$BUILD/tests/spoolmake
stackpulse=$FIXTURES/stackpulse
cases=$stackpulse/cases
synth=$stackpulse/synth
o2=$stackpulse/ladder/ladder-O2.spool
# The demo's binaries and nothing of this machine: neither its libraries nor its perf maps.
files=(--sysroot "$FIXTURES/sysroot" --perf-map-dir "$PWD")

die() {
    echo "FAILED: $*" >&2
    exit 1
}

# run STATUS COMMAND...: runs it with out and err as its output, and expects this exit status.
run() {
    local expected=$1 status=0
    shift
    "$@" >out 2>err </dev/null || status=$?
    [ $status = "$expected" ] || die "exit status $status instead of $expected: $* ($(head -3 err))"
}

# equal FILE TEXT: FILE holds exactly TEXT and a line break; nothing when TEXT is empty.
equal() {
    if [ -z "$2" ]; then
        [ ! -s "$1" ] || die "$1 is not empty: $(head -c 300 "$1")"
    else
        printf '%s\n' "$2" | diff -u - "$1" || die "$1 differs"
    fi
}

# same FILE FILE
same() {
    cmp "$1" "$2" || die "$1 and $2 differ"
}

# make FILE: the spool that standard input describes.
make() {
    "$spoolmake" >"$1"
}
