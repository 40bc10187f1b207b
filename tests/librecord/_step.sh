# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# What the tests with step_oracle.c share; to be sourced in an empty folder.
set -u
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
bad=0

[ "$(uname -m)" = x86_64 ] || {
    echo "skipped: this steps through code of x86-64"
    exit 77
}

# The tracer may be sanitized, what it traces never is.
# shellcheck disable=SC2086 # lists of options
"$CC" -std=gnu11 -D_GNU_SOURCE -O2 -g -Wall -Wextra ${SANITIZE_FLAGS:-} -iquote "$SRC/librecord" -iquote "$here" \
    "$here/step_oracle.c" "$BUILD/lib/librecord.a" -lz -lpthread -o step_oracle || exit 1

need() {
    command -v "$1" >/dev/null || {
        echo "skipped: no $1"
        exit 77
    }
}

# build NAME SOURCE COMPILER OPTION...
build() {
    local name=$1 source=$2 compiler=$3
    shift 3
    need "$compiler"
    "$compiler" -D_GNU_SOURCE -O2 -g -iquote "$here" "$@" "$here/$source" -o "$name" || exit 1
}

# step OPTION... PROGRAM [ARGUMENT]...
step() {
    local status=0
    ./step_oracle "$@" || status=$?
    [ $status != 77 ] || exit 77
    [ $status = 0 ] || {
        echo "FAILED: step_oracle $*"
        bad=1
    }
}
