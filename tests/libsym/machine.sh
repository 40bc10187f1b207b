#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Compares libsym's names with what readelf says (_expect.awk), on the libraries and compilers that are installed
# here: first, middle and last byte of the functions and the byte behind them. Of large files only every N-th
# function, so that the whole takes less than a minute.
#   MACHINE_BUDGET=N   functions per file, 10000 unless given
set -u
# shellcheck source=_compare.sh
. "$(dirname "$0")/_compare.sh"

files=0

# step_of SYMBOLS: how many functions to go on each time
step_of()
{
    local count
    count=$(wc -l <"$1")
    echo $((count / ${MACHINE_BUDGET:-10000} + 1))
}

# compare FILE
compare()
{
    readelf -SsW "$1" 2>/dev/null | awk -v mode=extract -f "$here/_expect.awk" | sort >symbols
    grep -qv '^0 ' symbols || return # a program without dynamic symbols
    awk -v mode=queries -v step="$(step_of symbols)" -f "$here/_expect.awk" symbols | sort -u >addresses
    files=$((files + 1))
    if answer_by_address "$1" <addresses >answers; then
        verdict "$1" symbols answers
    else
        failed "$1: lookup failed"
    fi
}

# compare_debug FILE DEBUG-FILE: the tables are DEBUG-FILE's .symtab and FILE's .dynsym.
compare_debug()
{
    {
        readelf -SsW "$2" 2>/dev/null | awk -v mode=extract -v table=symtab -f "$here/_expect.awk"
        readelf -SsW "$1" 2>/dev/null | awk -v mode=extract -v table=dynsym -f "$here/_expect.awk" | grep -v '^0 '
    } | sort >symbols
    awk -v mode=queries -v step="$(step_of symbols)" -f "$here/_expect.awk" symbols | sort -u >addresses
    files=$((files + 1))
    if answer_by_offset "$1" <addresses >answers; then
        verdict "$1 with $2" symbols answers
    else
        failed "$1 with $2: lookup failed"
    fi
}

# ---- which files ----

libraries()
{
    local compiler
    for dir in /lib /usr/lib /lib64 /usr/lib64 /lib/*-linux-gnu /usr/lib/*-linux-gnu /lib32; do
        ls "$dir"/libc.so.6 "$dir"/libm.so.6 "$dir"/libstdc++.so.6 "$dir"/libgcc_s.so.1 "$dir"/ld-linux*.so.* \
            "$dir"/libLLVM*.so* 2>/dev/null
    done
    for compiler in gcc clang; do
        command -v $compiler >/dev/null || continue
        $compiler -print-prog-name=cc1plus
        $compiler -print-file-name=libstdc++.so.6
        $compiler -print-file-name=libgcc_s.so.1
        realpath "$(command -v $compiler)"
    done
    if command -v rustc >/dev/null; then
        ls "$(rustc --print sysroot)"/lib/lib*.so* "$(rustc --print sysroot)"/lib/rustlib/*/lib/libstd-*.so 2>/dev/null
    fi
}

libraries | while read -r file; do
    [ -f "$file" ] && readelf -hW "$file" >/dev/null 2>&1 && realpath "$file"
done | sort -u >files

while read -r file; do
    compare "$file"
done <files

# The names of a stripped library are those of its debug file (Debian: libc6-dbg).
libc=$(grep '/libc\.so\.6$' files | grep -v lib32 | head -n 1)
id=$(readelf -nW "${libc:-/nonexistent}" 2>/dev/null | sed -n 's/.*Build ID: //p')
debug=/usr/lib/debug/.build-id/$(echo "$id" | cut -c 1-2)/$(echo "$id" | cut -c 3-).debug
if [ -n "$id" ] && [ -f "$debug" ]; then
    compare_debug "$libc" "$debug"
else
    printf '%-64s skipped: no %s\n' "debug files" "$debug"
fi

echo "$checked addresses of $files files compared, $failures failures"
[ "$checked" -gt 0 ] && [ "$failures" -eq 0 ]
