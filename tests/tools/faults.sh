#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# System calls that fail, are interrupted or do less than asked, in all that converters and spoolcat do. FAULTS=all: all of
# them, which takes minutes.
. "$(dirname "$0")/_faults.sh"
cp "$o2" cap.spool
gzip -nc cap.spool >cap.spool.gz

for tool in spool2folded spool2pprof spool2speedscope; do
    converter $tool $tool -v "${files[@]}" cap.spool
    [ $tool != spool2folded ] || command+=(--with-lines) # reads debug sections late
    undisturbed
    if [ $tool = spool2folded ]; then all_faults; else few_faults; fi
done
# These have no word for a file that has no symbols now; --stacks has.
converter 'spoolcat --records' spoolcat --records cap.spool.gz
undisturbed
few_faults
converter 'spoolcat --samples' spoolcat --samples --json --no-symbols cap.spool
undisturbed
few_faults
converter 'spoolcat --stacks' spoolcat --stacks -v "${files[@]}" cap.spool
undisturbed
few_faults

# More samples than are kept in memory: all that goes wrong with the file for the others is the fault of its folder.
if [ -z "${SANITIZE_FLAGS:-}" ]; then # takes too long in a sanitized build
    make long.spool <<'MAKE'
interval 1us
names f g h
samples 4400000 1us 10ms 7 7 f h | g h
MAKE
    mkdir spill
    export TMPDIR=$PWD/spill
    converter spill spool2speedscope --no-symbols long.spool
    undisturbed
    for point in "openat EACCES ${calls[openat]}" "fallocate ENOSPC 1" "fallocate EIO ${calls[fallocate]}"; do
        # shellcheck disable=SC2086 # words
        run_with $point
        where="$scenario: $point"
        judge ${point% *}
        [ "$status ${lines[*]}" = "1 ${lines[0]}" ] && [[ ${lines[0]} == *": $TMPDIR: no room"* ]] || trouble 'another message'
        [ -z "$(ls spill)" ] || trouble "left $(ls spill)"
    done
    disturbed fallocate EINTR/
    unset TMPDIR
fi

# A pipe at both ends, which somebody else may have made non-blocking.
input=cap.spool.gz
begin() { :; }
keep() { cp got expected.out; }
complete() { cmp -s got expected.out; }
intact() { :; }
for command in "spool2folded --no-symbols" "spool2speedscope --no-symbols" "spoolcat --records"; do
    scenario="piped $command" tool=${command%% *} command=("$BIN/$tool" ${command#* })
    undisturbed
    disturbed read EIO EINTR/ EAGAIN/ short/
    disturbed write EIO zero+ EINTR/ EAGAIN/ short/
    disturbed ppoll EINTR/ EINVAL
    where="$scenario: write EPIPE"
    run_with write EPIPE $(((calls[write] + 1) / 2))
    [ "$status ${lines[*]}" = "1 ${expected_lines[*]}" ] || trouble 'more than exit status 1'
done

# Whoever reads has seen enough: a tool ends by the signal, or, where that is ignored, with exit status 1, and says nothing.
mkfifo pipe
for command in "spool2folded --no-symbols" "spool2pprof --no-symbols" "spool2speedscope --no-symbols" "spoolcat --records" \
    "spoolcat --samples --no-symbols" "spoolcat --stacks --no-symbols"; do
    for expected in 141 1; do
        exec 3<>pipe 4>pipe 3>&- # nobody reads
        status=0
        (
            [ $expected = 141 ] || trap '' PIPE
            # shellcheck disable=SC2086 # words
            exec $command cap.spool
        ) >&4 2>err || status=$?
        exec 4>&-
        where="$command into a closed pipe"
        { [ $status = $expected ] && [ ! -s err ]; } || trouble "exit status $expected was expected"
    done
done
echo "$runs runs"
[ $troubles = 0 ] || die "$troubles troubles"
