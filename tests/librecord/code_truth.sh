#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Rows from instructions against unwind data (code_truth.c), over libraries of both machines: the share of wrong ones,
# which must be none, where the truth is known.
set -u
here=$(cd "$(dirname "$0")" && pwd)

# shellcheck disable=SC2086 # a list of options
"$CC" -std=gnu11 -D_GNU_SOURCE -O2 ${SANITIZE_FLAGS:-} -iquote "$SRC/librecord" "$here/code_truth.c" \
    "$BUILD/lib/librecord.a" -lz -o code_truth || exit 1

bad=0
looked=0
for file in "$(gcc -print-file-name=libc.so.6)" "$(g++ -print-file-name=libstdc++.so.6)" /usr/lib/llvm-*/lib/libLLVM-*.so.1 \
    /usr/aarch64-linux-gnu/lib/libc.so.6 /usr/aarch64-linux-gnu/lib/libstdc++.so.6; do
    [ -e "$file" ] || continue
    # Sanitized, the smaller ones have to do.
    [ -z "${SANITIZE_FLAGS:-}" ] || [ "$(stat -Lc %s "$file")" -lt 20000000 ] || continue
    echo "== ${file##*/}"
    ./code_truth "$file" || bad=1
    looked=$((looked + 1))
done
[ $looked -ge 2 ] || { echo "FAILED: only $looked files were found"; bad=1; }
exit $bad
