#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Compares libsym's reading of .debug_line with libdw's: every row of every sequence, of two compilers, every version
# of DWARF, and with functions that the linker removed.
set -u
. "$(dirname "$0")/_libsym.sh"
needs gcc clang ld.lld
SYM_LIBS="${SYM_LIBS:--liberty -lpthread -lz -llzma} -ldw" with_libsym line_rows line_rows.c

mkdir -p inc/deep
cat >inc/deep/box.h <<'EOT'
template <class T> struct Box { T t; explicit Box(T v) : t(v) {} T f(int x) const { return x > 3 ? t + T(x) : t; } };
EOT
cat >inc/add.h <<'EOT'
static inline int add(int x, int y) { return x > y ? x + y : x - y; }
EOT
# No header of the library: there are many compilations.
cat >one.cc <<'EOT'
#include "inc/add.h"
#include <deep/box.h>
int dead(int x) { return add(x, 7) * x; }
template <class F> static void each(int *from, int *to, F f)
{
    for (; from != to; from++)
        *from = f(*from) ? add(*from, 1) : 0;
}
__attribute__((noinline)) static int used(int *v, int n)
{
    int sum = 0;
    each(v, v + n, [&](int a) { sum += a; return add(a, 3) < sum; });
    return v[0] + sum;
}
__attribute__((cold, noinline)) int rare(int x) { throw x; }
int other(int);
int main(int argc, char **argv)
{
    int v[64];
    for (int i = 0; i < argc && i < 64; i++)
        v[i] = Box<long>(argv[i][0]).f(argc) + Box<short>(i).f(3);
    if (argc > 1000) return rare(argc);
    try {
        return used(v, argc) + other(argc);
    } catch (int x) {
        return x;
    }
}
EOT
cat >two.cc <<'EOT'
#include "./inc//add.h"
#include <deep/box.h>
int unused(int x) { return Box<long>(x).f(2) > 7; }
int other(int x)
{
#line 70000 "generated.y"
    return add(x, 2)
           + Box<char>('a').f(x);
}
EOT

bad=0
compare() # NAME COMMAND...
{
    local name=$1
    shift
    "$@" -o program 2>build.log || { echo "FAIL: $name: $(head -n 3 build.log)"; bad=1; return; }
    ./line_rows program >rows.log 2>&1 || { echo "FAIL: $name:"; cat rows.log; bad=1; }
}

flags=(-Iinc one.cc two.cc)
gone=(-ffunction-sections "-Wl,--gc-sections")
for version in 2 3 4 5; do
    if [ $version != 3 ]; then
        compare "gcc $version" g++ -O2 -gdwarf-$version "${flags[@]}"
        compare "clang $version, unused functions" clang++ -O2 -gdwarf-$version "${flags[@]}" "${gone[@]}" -fuse-ld=lld
    fi
    if [ $version != 4 ] && [ $version != 2 ]; then
        compare "gcc $version, unused functions" g++ -O1 -gdwarf-$version "${flags[@]}" "${gone[@]}"
        compare "clang $version" clang++ -O1 -gdwarf-$version "${flags[@]}"
    fi
done
for version in 4 5; do # 64-bit DWARF
    compare "gcc $version wide" g++ -O2 -gdwarf64 -gdwarf-$version "${flags[@]}" "${gone[@]}"
done
# Absolute and relative directories of compilation.
compare "a folder with another name" g++ -O1 -g "-fdebug-prefix-map=$PWD=." "${flags[@]}"
compare "absolute sources" clang++ -O1 -g -I"$PWD/inc" "$PWD/one.cc" "$PWD/../${PWD##*/}/two.cc"
exit $bad
