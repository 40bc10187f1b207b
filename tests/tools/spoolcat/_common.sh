# SPDX-License-Identifier: MIT
# What the shell tests of spoolcat share; to be sourced. BIN and FIXTURES are set, the folder is empty.
set -eu
export LC_ALL=C
spoolcat=$BIN/spoolcat
cases=$FIXTURES/stackpulse/cases
synth=$FIXTURES/stackpulse/synth

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
        [ ! -s "$1" ] || die "$1 is not empty: $(head -3 "$1")"
    else
        printf '%s\n' "$2" | diff -u - "$1" || die "$1 differs"
    fi
}

# same FILE FILE
same() {
    cmp "$1" "$2" || die "$1 and $2 differ"
}
