# SPDX-License-Identifier: MIT
# What the shell tests of libsym share: a work folder to be in, and programs that are linked with the library. Sourced;
# $here is this folder then. What is to be undone at the end goes into the function at_exit.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
SRC=${SRC:-$(cd "$here/../.." && pwd)}
CC=${CC:-gcc}
export LC_ALL=C
at_exit() { :; }
work=$(mktemp -d) || exit 1
trap 'at_exit; rm -rf "$work"' EXIT
cd "$work" || exit 1

failures=0
checked=0
row= # what is looked at
fail() { # WHY: counts it
    echo "FAIL ${row:+$row: }$*"
    failures=$((failures + 1))
}

die() { # WHY: ends the test
    echo "FAILED: $*"
    exit 1
}

skip_test() { # WHY: ends the test
    echo "skipped: $*"
    exit 77
}

needs() { # TOOL...
    local tool
    for tool in "$@"; do
        command -v "$tool" >/dev/null || skip_test "no $tool"
    done
}

# with_libsym OUTPUT SOURCE...: from this folder, with the library's private headers
with_libsym() {
    local library output=$1
    shift
    if [ -n "${BUILD:-}" ] && [ -f "$BUILD/lib/libsym.a" ]; then
        library=$BUILD/lib/libsym.a
    else
        library=$(echo "$SRC"/libsym/*.c)
    fi
    # shellcheck disable=SC2086 # lists of options
    "$CC" -std=gnu11 -D_GNU_SOURCE -O1 ${SANITIZE_FLAGS:-} ${LEAK_ROOTS:-} -I"$SRC/libsym/include" -iquote "$SRC/libsym" \
        -o "$output" "${@/#/$here/}" $library ${SYM_LIBS:--liberty -lpthread -lz -llzma} || exit 1
}
