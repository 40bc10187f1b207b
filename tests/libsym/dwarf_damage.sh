#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Files with debug information (those of tests/fuzz/corpus/dwarf), cut off and damaged at places all over them: no crash,
# no run of seconds, no memory that the size of the file does not account for. DWARF_DAMAGE_RUNS=N does more of each kind.
set -u
. "$(dirname "$0")/_libsym.sh"
with_libsym damage damage.c ../fuzz/fuzz_dwarf.c
runs=${DWARF_DAMAGE_RUNS:-20}
if [ -n "${SANITIZE_FLAGS:-}" ]; then
    runs=${DWARF_DAMAGE_RUNS:-4} # a sanitized run takes some 15 times as long
    export ASAN_OPTIONS="${ASAN_OPTIONS:-}:max_allocation_size_mb=64"
else
    ulimit -v $((512 * 1024))
fi
./damage "${DWARF_DAMAGE_SEED:-1}" "$runs" "$SRC"/tests/fuzz/corpus/dwarf/* 2>said || {
    echo "FAIL, exit status $?"
    tail -n 40 said
    exit 1
}
echo "$(wc -l <said) damaged files were read"
