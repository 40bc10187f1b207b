# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2034 # used by those that source it
# What the tests of the example programs share; to be sourced. BIN, BUILD and CC are set, the folder is empty.
set -u
export LC_ALL=C
examples=$BIN/examples
bad=0

failed() {
    echo "FAILED: $*"
    bad=1
}

# run STATUS COMMAND...: runs it with out and err as its output, and expects this exit status.
run() {
    local expected=$1 status=0
    shift
    timeout 60 "$@" >out 2>err || status=$?
    [ $status = "$expected" ] || failed "exit status $status instead of $expected: $* ($(head -n 3 err))"
}

# says PATTERN: the last run told this, in one line, and nothing else
says() {
    # shellcheck disable=SC2053 # the right side is a pattern
    [[ $(<err) == $1 && $(wc -l <err) == 1 ]] || failed "instead of $1: $(head -n 3 err)"
}

# silent: it told nothing
silent() {
    [ ! -s err ] || failed "messages: $(head -n 3 err)"
}

# closed COMMAND...: a reader that goes away, and a disk that is full, are no success.
closed() {
    local status
    { timeout 60 "$@" 2>err; echo $? >status; } | true
    status=$(<status)
    [ "$status" = 141 ] || [ "$status" = 1 ] || failed "exit status $status with a closed pipe: $*"
    [ ! -e /dev/full ] || {
        timeout 60 "$@" >/dev/full 2>err
        status=$?
        [ $status = 1 ] && [[ $(<err) == *": writing: No space left on device" ]] ||
            failed "exit status $status on a full disk: $(<err)"
    }
}
