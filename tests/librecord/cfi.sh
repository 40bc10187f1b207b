#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Compares every row of the unwind tables of programs and libraries with readelf's and libdw's: of both machines, with
# .eh_frame_hdr and without, with .debug_frame alone, compressed or not, with and without section headers. With
# CFI_ALL=1 those of the largest library there is, too, which takes a minute.
set -u
here=$(cd "$(dirname "$0")" && pwd)
SRC=${SRC:-$(cd "$here/../.." && pwd)}
CC=${CC:-gcc}
export LC_ALL=C
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1

for tool in readelf aarch64-linux-gnu-readelf aarch64-linux-gnu-gcc gcc g++ awk; do
    command -v $tool >/dev/null || { echo "skipped: no $tool"; exit 77; }
done
echo '#include <elfutils/libdw.h>' | "$CC" -E - >/dev/null 2>&1 || { echo "skipped: no elfutils/libdw.h"; exit 77; }

library=$BUILD/lib/librecord.a
for program in cfi_rows cfi_libdw; do
    libs=-lz
    [ $program = cfi_libdw ] && libs="-ldw -lelf -lz"
    # shellcheck disable=SC2086 # lists of options
    "$CC" -std=gnu11 -D_GNU_SOURCE -O2 ${SANITIZE_FLAGS:-} -iquote "$SRC/librecord" -o $program \
        "$here/$program.c" "$library" $libs || exit 1
done

failures=0
checked=0

fail() { # ROW WHY
    printf '%-44s FAIL: %s\n' "$1" "$2"
    failures=$((failures + 1))
}

by_readelf() # FILE
{
    local readelf=readelf
    [ "$(od -An -tu1 -j18 -N1 "$1" | tr -d ' ')" = 183 ] && readelf=aarch64-linux-gnu-readelf
    $readelf --debug-dump=frames-interp "$1" 2>/dev/null | awk -f "$here/_cfi_rows.awk" | sort -u
}

rows() # ROW FILE WANT: ours against lines of readelf
{
    ./cfi_rows "$2" >unsorted 2>errors || { fail "$1" "$(head -n 1 errors)"; return; }
    sort -u unsorted >got
    cmp -s "$3" got || { fail "$1" "not as readelf"; diff "$3" got | head -n 10; }
}

compare() # ROW FILE
{
    local row=$1 file=$2 count
    by_readelf "$file" >want
    count=$(wc -l <want)
    [ "$count" -gt 0 ] || { fail "$row" "readelf shows no rows"; return; }
    rows "$row" "$file" want
    ./cfi_libdw "$file" >libdw.out 2>errors || { fail "$row" "not as libdw"; head -n 10 errors; }
    printf '%-44s %7d rows\n' "$row" "$count"
    checked=$((checked + count))
}

# The same rows without section headers: e_shoff, e_shnum and e_shstrndx are 0.
without_sections() # ROW FILE
{
    by_readelf "$2" >want
    cp "$2" bare && chmod u+w bare
    dd if=/dev/zero of=bare bs=1 seek=40 count=8 conv=notrunc status=none
    dd if=/dev/zero of=bare bs=1 seek=60 count=4 conv=notrunc status=none
    rows "$1, no sections" bare want
}

cat >all.cc <<'EOS'
#include <map>
#include <string>
#include <vector>
struct Base { virtual ~Base() {} virtual int f(int x) const { return x; } };
template <class T> struct Box : Base { T t; Box(T v) : t(v) {} int f(int x) const override { return int(t) + x; } };
template struct Box<int>;
static int throws(int x) { if (x > 100) throw std::string("x"); return x; }
__attribute__((cold, noinline)) void cold(int x) { throw x; }
int main(int argc, char **)
{
    std::map<std::string, std::vector<int>> m;
    m["x"].push_back(argc);
    if (argc > 1000) cold(argc);
    try { return throws(argc) + Box<int>(argc).f(1) + int(m.size()); }
    catch (const std::string &s) { return int(s.size()); }
}
EOS
# Realigned stacks, early returns, alloca; needs no header and no library.
cat >bare.c <<'EOS'
void out(void *);
int __attribute__((noinline)) one(int x) { return x * 3; }
int two(int x, int (*f)(int)) { if (x < 3) return x; int y = f(x) + one(x); if (y > 9) return f(y); return y + f(x + y); }
int aligned(int x) { __attribute__((aligned(64))) char a[64]; char b[x + 1]; out(a); out(b); return one(a[0] + b[0]); }
int five(int x) { char a[x + 1]; a[x] = 1; return two(a[0], one); }
double many(double a, int b, int (*f)(int)) { double s = a; for (int i = 0; i < b; i++) s += f(i) * a; return s; }
#define F(n) int f##n(int x, int (*f)(int)) { int y = f(x) * n; if (y > n) return f(y); return y + f(x + y); }
F(1) F(2) F(3) F(4) F(5) F(6) F(7) F(8) F(9) F(10) F(11) F(12)
__attribute__((weak)) void out(void *p) { *(volatile char *)p = 1; }
EOS

build() { # ROW SECTIONS COMMAND...: compares what comes out, whose sections' lines match a pattern
    local row=$1 sections=$2
    shift 2
    rm -f out
    "$@" -o out >build.log 2>&1 || { fail "$row" "$(tail -n 1 build.log)"; return; }
    readelf -SW out | tr '\n' ';' | grep -Eq "$sections" || { fail "$row" "no $sections"; return; }
    compare "$row" out
}

eh='eh_frame_hdr .*eh_frame '
debug=' [.]debug_frame '
tables='-fno-asynchronous-unwind-tables -fno-unwind-tables -g'
build "g++ -O2" "$eh" g++ -O2 all.cc
without_sections "g++ -O2" out
build "no .eh_frame_hdr" '[.]fini [^;]*;[^;]* [.]eh_frame ' gcc -O2 -shared -fPIC -Wl,--no-eh-frame-hdr bare.c
build "static" "eh_frame " gcc -O2 -static -x c - < <(echo 'int main(void) { return 0; }')
# shellcheck disable=SC2086 # lists of options
for version in 1 3 4; do
    build "debug_frame, CIEs of version $version" "$debug" gcc -O2 -shared -nostdlib -fPIC $tables \
        -Wa,--gdwarf-cie-version=$version bare.c
done
# shellcheck disable=SC2086
build "debug_frame, zlib" "${debug}[^;]* C " gcc -O2 -shared -nostdlib -fPIC $tables -gz=zlib bare.c
# shellcheck disable=SC2086
build "debug_frame, zlib-gnu" ' [.]zdebug_frame ' gcc -O2 -shared -nostdlib -fPIC $tables -gz=zlib-gnu bare.c
# shellcheck disable=SC2086
build "debug_frame and .eh_frame" "eh_frame .*$debug" gcc -O2 -shared -fPIC $tables bare.c
if command -v clang >/dev/null; then
    build "clang" "$eh" clang -O2 -shared -fPIC bare.c
    # shellcheck disable=SC2086
    build "clang, 64-bit debug_frame" "$debug" clang -O2 -shared -nostdlib -fPIC $tables -gdwarf-5 -gdwarf64 bare.c
    build "clang, large code model" "$eh" clang -mcmodel=large -O2 -fPIC -shared bare.c
fi
build "AArch64" "$eh" aarch64-linux-gnu-gcc -O2 -shared -fPIC bare.c
without_sections "AArch64" out
build "AArch64, branch protection" "$eh" aarch64-linux-gnu-gcc -O2 -shared -fPIC -mbranch-protection=standard bare.c
# shellcheck disable=SC2086
build "AArch64, debug_frame" "$debug" aarch64-linux-gnu-gcc -O2 -shared -nostdlib -fPIC $tables -mbranch-protection=standard bare.c

# What is installed.
compare_installed() { # GLOB
    local file
    for file in $1; do
        [ -f "$file" ] && compare "$file" "$file" && return
    done
    printf '%-44s is not installed\n' "$1"
}
libc=$(ldd ./cfi_rows | awk '/libc\.so/ { print $3 }')
compare_installed "$libc"
compare_installed "/lib64/ld-linux-x86-64.so.2 /lib/ld-linux-aarch64.so.1"
compare_installed "$(gcc -print-file-name=libstdc++.so.6)"
compare_installed "/usr/aarch64-linux-gnu/lib/libc.so.6"
compare_installed "/usr/aarch64-linux-gnu/lib/libstdc++.so.6"
[ -z "${CFI_ALL:-}" ] || compare_installed "$(ldd "$(command -v clang)" | awk '/libLLVM/ { print $3; exit }')"
compare_installed "/usr/bin/gdb /usr/bin/cmake /usr/bin/ld.lld"
without_sections "libc" "$libc"

echo "$checked rows compared, $failures failures"
[ "$checked" -gt 0 ] && [ "$failures" -eq 0 ]
