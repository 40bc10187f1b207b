#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Debug links as objcopy writes them and .gnu_debugdata as distributions make it, with objcopy and xz.
set -eu
. "$(dirname "$0")/_libsym.sh"
needs objcopy xz
with_libsym dump dump_debuginfo.c

echo 'static int a(int x) { return x + 1; } int b(int x) { return a(x); } int main(void) { return b(-1); }' >p.c
"$CC" -g -O0 -o program p.c
objcopy --only-keep-debug program program.debug
objcopy -S --add-gnu-debuglink=program.debug program stripped

mkdir out
cp program.debug out/
[ "$(./dump stripped out)" = "link: program.debug, same" ] || die "$(./dump stripped out)"
printf x >>out/program.debug
[ "$(./dump stripped out)" = "link: program.debug, other" ] || die "$(./dump stripped out)"
rm out/program.debug
[ "$(./dump stripped out)" = "link: program.debug, absent" ] || die "$(./dump stripped out)"
[ "$(./dump program out)" = "" ] || die "$(./dump program out)"

objcopy -S -K a -K b -K main program.debug mini
for options in "" -0 -9e "--check=sha256" "--check=none" "--block-size=1KiB" "-T2 --block-size=1KiB" "--x86 --lzma2"; do
    # shellcheck disable=SC2086
    xz $options -c mini >mini.xz
    objcopy --add-section .gnu_debugdata=mini.xz stripped packed
    rm -f out/unpacked
    ./dump packed out >said || die "xz $options"
    case "$SYM_LIBS" in
    *-llzma*)
        [ "$(<said)" = "link: program.debug, absent" ] || die "xz $options: $(<said)"
        cmp mini out/unpacked || die "xz $options"
        ;;
    *)
        grep -qx 'it has .gnu_debugdata, and xz is not compiled in' said || die "xz $options: $(<said)"
        [ ! -e out/unpacked ] || die "unpacked without liblzma"
        ;;
    esac
done
echo "links and packed symbol files are read"
