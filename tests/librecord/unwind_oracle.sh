#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Stacks of a program that interrupts itself, in code as compilers make it with and without optimisation and frame
# pointers: cached, uncached and libdw's frames are the same.
set -u
here=$(cd "$(dirname "$0")" && pwd)

echo '#include <elfutils/libdwfl.h>' | "$CC" -E - >/dev/null 2>&1 || {
    echo "skipped: no elfutils/libdwfl.h"
    exit 77
}

# The sampler is built once; the workload is what is interrupted, and never sanitized.
# shellcheck disable=SC2086 # lists of options
"$CC" -std=gnu11 -D_GNU_SOURCE -O2 -g ${SANITIZE_FLAGS:-} -iquote "$SRC/librecord" -c "$here/unwind_oracle.c" || exit 1

bad=0
run() { # COMPILER OPTION...
    local compiler=$1
    shift
    command -v "$compiler" >/dev/null || {
        echo "skipped: no $compiler"
        exit 77
    }
    echo "== $compiler $*"
    "$compiler" -std=gnu11 -D_GNU_SOURCE "$@" -iquote "$here" -c "$here/unwind_workload.c" -o workload.o || exit 1
    # shellcheck disable=SC2086
    "$CC" ${SANITIZE_FLAGS:-} unwind_oracle.o workload.o "$BUILD/lib/librecord.a" -ldw -lelf -lz -lpthread \
        -Wl,-z,lazy -o oracle || exit 1
    ./oracle 1200 || bad=1
}

run gcc -O2
if [ -z "${SANITIZE_FLAGS:-}" ]; then # what is sanitized is the same each time
    run gcc -O0
    run gcc -Os -fno-omit-frame-pointer
    run clang -O2
fi
exit $bad
