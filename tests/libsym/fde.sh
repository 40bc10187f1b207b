#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Compares libsym's reading of .eh_frame with readelf's, on objects of several compilers, linkers and machines,
# with and without section headers. With sanitizers the files are read, too, but not by readelf, which takes most of the
# time: what libsym answers is the same as in a plain build, where it is compared.
set -u
. "$(dirname "$0")/_libsym.sh"
needs readelf awk gcc
with_libsym fdes fdes.c

# ---- sources ----

cat >all.cc <<'EOT'
#include <map>
#include <string>
#include <vector>
struct Base { virtual ~Base() {} virtual int f(int x) const { return x; } };
template <class T> struct Box : Base { T t; Box(T v) : t(v) {} int f(int x) const override { return int(t) + x; } };
template struct Box<int>;
template struct Box<char>;
static int throws(int x) { if (x > 100) throw std::string("x"); return x; }
__attribute__((cold, noinline)) void cold(int x) { throw x; }
int dead(int x) { return x * 7; }
int main(int argc, char **)
{
    std::map<std::string, std::vector<int>> m;
    m["x"].push_back(argc);
    if (argc > 1000) cold(argc);
    try { return throws(argc) + Box<int>(argc).f(1) + int(m.size()); }
    catch (const std::string &s) { return int(s.size()); }
}
EOT
# Needs no header and no library.
cat >bare.c <<'EOT'
static int __attribute__((noinline)) one(int x) { return x * 3; }
int __attribute__((noinline)) two(int x, int (*f)(int)) { return f(x) + one(x); }
__attribute__((cold, noinline)) int three(int x) { return x + 1; }
int __attribute__((section(".text.hot"))) four(int x, int (*f)(int)) { return f(x) - two(x, f); }
int five(int x) { char a[x + 1]; a[x] = 1; return two(a[0], one) + three(x); }
EOT

# ---- comparing ----

# Ranges as readelf prints them; libsym's result has each start once, with its longest range, and no empty one.
by_readelf()
{
    readelf --debug-dump=frames "$1" 2>/dev/null | awk '
        /^Contents of the / { eh = $4 == ".eh_frame" }
        eh && match($0, /pc=[0-9a-f]+\.\.[0-9a-f]+/) {
            split(substr($0, RSTART + 3, RLENGTH - 3), pc, /\.\./)
            start = pc[1] "" # a text: 0e10 is no power of ten
            stop = pc[2] ""
            while (length(start) < 16) start = "0" start
            while (length(stop) < 16) stop = "0" stop
            if (start != stop && !(start in end && end[start] "" > stop)) end[start] = stop
        }
        END { for (start in end) print start, end[start] }' | LC_ALL=C sort
}

compare() # ROW FILE
{
    local row=$1 file=$2 count
    if [ -n "${SANITIZE_FLAGS:-}" ]; then
        ./fdes "$file" >want
    else
        by_readelf "$file" >want
    fi
    count=$(wc -l <want)
    if ! ./fdes "$file" >got || [ "$count" -eq 0 ] || ! cmp -s want got; then
        printf '%-44s FAIL, %d ranges\n' "$row" "$count"
        diff want got | head -n 10
        failures=$((failures + 1))
    else
        printf '%-44s %6d ranges\n' "$row" "$count"
    fi
    checked=$((checked + count))
    # The same file without section headers: e_shoff, e_shnum and e_shstrndx are 0.
    cp "$file" bare
    chmod u+w bare
    if [ "$(od -An -tu1 -j4 -N1 bare | tr -d ' ')" = 2 ]; then
        dd if=/dev/zero of=bare bs=1 seek=40 count=8 conv=notrunc status=none
        dd if=/dev/zero of=bare bs=1 seek=60 count=4 conv=notrunc status=none
    else
        dd if=/dev/zero of=bare bs=1 seek=32 count=4 conv=notrunc status=none
        dd if=/dev/zero of=bare bs=1 seek=48 count=4 conv=notrunc status=none
    fi
    # A static program of bfd has no .eh_frame_hdr.
    readelf -lW "$file" | grep -q GNU_EH_FRAME || return
    if ! ./fdes bare >got || ! cmp -s want got; then
        printf '%-44s FAIL\n' "$row, no sections"
        diff want got | head -n 10
        failures=$((failures + 1))
    fi
}

skip()
{
    printf '%-44s skipped: %s\n' "$1" "$2"
}

# build ROW COMPILER ARGS...: compares what comes out, unless this machine cannot.
build()
{
    local row=$1
    shift
    case ${SANITIZE_FLAGS:+$row} in *' static' | *' gc-sections') return ;; esac # as long as all others, and no other layout
    if ! command -v "$1" >/dev/null; then
        skip "$row" "no $1"
    elif ! "$@" -o out >build.log 2>&1; then
        skip "$row" "$(tail -n 1 build.log)"
    else
        compare "$row" out
    fi
}

for cxx in g++ clang++; do
    command -v $cxx >/dev/null || { skip "$cxx" "no $cxx"; continue; }
    $cxx -fPIC -O2 -c all.cc -o pic.o && $cxx -fno-pie -O0 -c all.cc -o nopie.o &&
        $cxx -fPIE -O1 -ffunction-sections -c all.cc -o sections.o || exit 1
    for linker in bfd lld gold; do
        command -v ld.$linker >/dev/null || { skip "$cxx $linker" "no ld.$linker"; continue; }
        build "$cxx $linker pie" $cxx -fuse-ld=$linker -pie pic.o
        [ $cxx$linker = clang++gold ] && continue # nothing new, and time
        build "$cxx $linker no-pie" $cxx -fuse-ld=$linker -no-pie nopie.o
        build "$cxx $linker static" $cxx -fuse-ld=$linker -static pic.o
        build "$cxx $linker gc-sections" $cxx -fuse-ld=$linker -Wl,--gc-sections sections.o
        build "$cxx $linker shared" $cxx -fuse-ld=$linker -shared pic.o
        build "$cxx $linker no .eh_frame_hdr" $cxx -fuse-ld=$linker -Wl,--no-eh-frame-hdr pic.o
    done
    build "$cxx large code model" $cxx -mcmodel=large -fno-pie -no-pie -O1 all.cc
done
# The results of `ld -r` may have terminators in the middle.
if gcc -O1 -c bare.c -o bare1.o && gcc -O1 -c -Dtwo=two2 -Dthree=three2 -Dfour=four2 -Dfive=five2 bare.c -o bare2.o &&
    crtend=$(gcc -print-file-name=crtend.o) && ld -r bare1.o "$crtend" bare2.o -o both.o 2>build.log; then
    build "ld -r with a terminator inside" gcc -shared -nostdlib both.o bare1.o -z muldefs
else
    skip "ld -r" "$(tail -n 1 build.log)"
fi
if command -v rustc >/dev/null; then
    echo 'fn main() { println!("{:?}", std::env::args().collect::<Vec<_>>()); }' >all.rs
    build "rustc" rustc -O all.rs
else
    skip "rustc" "no rustc"
fi
build "gcc -m32" gcc -m32 -shared -nostdlib -fPIC -O2 bare.c
build "gcc -mx32" gcc -mx32 -shared -nostdlib -fPIC -O2 bare.c
build "aarch64 gcc" aarch64-linux-gnu-gcc -O2 -shared -nostdlib -fPIC bare.c
for target in i386 aarch64 riscv64 powerpc64 powerpc mips mips64el; do
    build "$target clang lld shared" clang --target=$target-linux-gnu -fuse-ld=lld -shared -nostdlib -fPIC \
        -O2 -fasynchronous-unwind-tables bare.c
    build "$target clang lld no-pie" clang --target=$target-linux-gnu -fuse-ld=lld -no-pie -nostdlib -fno-pic \
        -Wl,-e,five -O2 -fasynchronous-unwind-tables bare.c
done
# What is installed.
for dir in /lib/x86_64-linux-gnu /lib/aarch64-linux-gnu /usr/lib64; do
    for lib in libc.so.6 libm.so.6 libgcc_s.so.1 libstdc++.so.6 ld-linux-x86-64.so.2 ld-linux-aarch64.so.1; do
        [ -f $dir/$lib ] && compare "$dir/$lib" $dir/$lib
    done
done

echo "$checked ranges compared, $failures failures"
[ "$checked" -gt 0 ] && [ "$failures" -eq 0 ]
