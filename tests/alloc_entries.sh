#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Every exported function of the libraries is called in a test_alloc*.c of its library: with allocations that fail, or, where
# it needs none, with all of them failing.
set -eu
missing=0
for library in libspool librecord libsym; do
    cat "$SRC/tests/$library"/test_alloc*.c | sed -E 's|/\*.*\*/||; s|^ \*.*||' >calls
    sed -nE 's/^ +([a-z_]+);.*/\1/p' "$SRC/$library/$library.map" >exported
    [ "$(wc -l <exported)" -gt 30 ] || {
        echo "$library.map: only $(wc -l <exported) names were read"
        exit 1
    }
    while read -r name; do
        grep -qE "(^|[^A-Za-z0-9_])$name\(" calls && continue
        echo "$library: $name is in no test of failing allocations (tests/$library/test_alloc*.c)"
        missing=1
    done <exported
done
exit $missing
