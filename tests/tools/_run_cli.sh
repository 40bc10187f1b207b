#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# _run_cli.sh TEST.sh WORKDIR: runs a shell test in WORKDIR, which it empties first. If any of these lie
# beside TEST.sh, they say what must come out; without them only the exit status counts (77: skipped):
#   TEST.sh.stdout.exact  standard output, byte for byte
#   TEST.sh.stderr.glob   standard error, a shell pattern for each line; a line "..." stands for any lines
#   TEST.sh.exit          the exit status (0 when there is no such file)
# The tools are first in PATH. BIN, FIXTURES, SRC, BUILD, CC, CMAKE, VERSION and SANITIZE_FLAGS (empty in a
# plain build) come from ctest.
set -u
test=$1
work=$2

rm -rf "$work" "$work".std* "$work".sanitizer*
mkdir -p "$work" && cd "$work" || exit 1
export PATH="$BIN:$PATH" LC_ALL=C TZ=UTC
unset SPOOL_DEBUG_DIRS DEBUGINFOD_URLS

# Sanitizer reports go to files: a tool that dies in the middle of a pipeline is noticed all the same.
export ASAN_OPTIONS="${ASAN_OPTIONS:-}:log_path=$work.sanitizer"
export UBSAN_OPTIONS="${UBSAN_OPTIONS:-}:log_path=$work.sanitizer"
export LSAN_OPTIONS="${LSAN_OPTIONS:-}:log_path=$work.sanitizer"

# lines_match FILE PATTERNS: whether each line of FILE matches its pattern.
lines_match() {
    local -a lines patterns
    mapfile -t lines <"$1"
    mapfile -t patterns <"$2"
    match_from 0 0
}
match_from() {
    local line=$1 pattern=$2
    while ((pattern < ${#patterns[@]})); do
        if [ "${patterns[pattern]}" = ... ]; then
            for ((; line <= ${#lines[@]}; line++)); do
                match_from "$line" $((pattern + 1)) && return 0
            done
            return 1
        fi
        # shellcheck disable=SC2053 # the right side is meant as a pattern
        ((line < ${#lines[@]})) && [[ ${lines[line]} == ${patterns[pattern]} ]] || return 1
        line=$((line + 1))
        pattern=$((pattern + 1))
    done
    ((line == ${#lines[@]}))
}

bad=0
fail() {
    echo "FAILED: $*"
    bad=1
}

if [ -e "$test.stdout.exact" ] || [ -e "$test.stderr.glob" ] || [ -e "$test.exit" ]; then
    bash "$test" >"$work.stdout" 2>"$work.stderr" </dev/null
    status=$?
    expected=0
    [ -e "$test.exit" ] && expected=$(<"$test.exit")
    if [ "$status" = 77 ] && [ "$expected" != 77 ]; then
        cat "$work.stdout" "$work.stderr"
        exit 77
    fi
    [ "$status" = "$expected" ] || fail "exit status $status, expected $expected"
    if [ -e "$test.stdout.exact" ]; then
        diff -u "$test.stdout.exact" "$work.stdout" || fail "standard output differs"
    fi
    if [ -e "$test.stderr.glob" ] && ! lines_match "$work.stderr" "$test.stderr.glob"; then
        fail "standard error does not match; expected:"
        cat "$test.stderr.glob"
    fi
    [ $bad = 0 ] || { echo "standard error was:" && cat "$work.stderr"; }
else
    bash "$test" </dev/null
    status=$?
    if [ "$status" = 77 ]; then
        exit 77
    fi
    [ "$status" = 0 ] || fail "exit status $status"
fi

for report in "$work".sanitizer*; do
    [ -e "$report" ] || continue
    fail "a sanitizer reports:"
    cat "$report"
done
exit $bad
