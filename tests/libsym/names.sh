#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Compares libsym's names with what readelf says, on objects of several compilers, linkers and kinds: the first,
# the middle and the last byte of every function, and the byte behind it.
set -u
# shellcheck source=_compare.sh
. "$(dirname "$0")/_compare.sh"

# ---- sources ----

cat >all.c <<'EOF'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define NOINLINE __attribute__((noinline, noclone))
volatile int sink;
static NOINLINE int local_one(int x) { return x * 3 + sink; }
NOINLINE int global_one(int x) { return local_one(x) + 1; }
__attribute__((weak)) NOINLINE int weak_one(int x) { return x - sink; }
NOINLINE int hidden_one(int x);
__attribute__((visibility("hidden"))) NOINLINE int hidden_one(int x) { return x ^ sink; }
NOINLINE int target_of_aliases(int x) { return x + 100 * sink; }
__attribute__((alias("target_of_aliases"))) int the_alias(int x);
__attribute__((alias("target_of_aliases"))) int __the_alias(int x);
__attribute__((alias("target_of_aliases"), weak)) int _weak_alias(int x);
static __attribute__((alias("target_of_aliases"), used)) int a(int x);
NOINLINE char *strtok_like(char *s) { return s + sink; }
__attribute__((alias("strtok_like"), visibility("hidden"))) char *__GI_strtok_like(char *s);
static NOINLINE int chosen(int x) { return x + sink; }
static int (*choose(void))(int) { return chosen; }
int by_ifunc(int x) __attribute__((ifunc("choose")));
__attribute__((cold)) NOINLINE void unlikely(const char *s) { fputs(s, stderr); abort(); }
NOINLINE int has_cold_part(int x) { if (__builtin_expect(x == 12345, 0)) unlikely("x"); return x + sink; }
int sizeless_one(int);
int sizeless_two(int);
int main(int argc, char **argv)
{
    char text[] = "text";
    return global_one(argc) + weak_one(argc) + hidden_one(argc) + the_alias(argc) + by_ifunc(argc) +
           (int)strlen(strtok_like(text)) + has_cold_part(argc) + sizeless_one(argc) + sizeless_two(argc) +
           (argv[0] != 0);
}
EOF
# Functions without .size, a local label, and a sized one that contains a label.
cat >asm.s <<'EOF'
    .text
    .globl sizeless_one
    .type sizeless_one, %function
sizeless_one:
    nop
    nop
    nop
.Llocal:
    ret
    .globl sizeless_two
sizeless_two:
    nop
    ret
    .globl sized_outer
    .type sized_outer, %function
sized_outer:
    nop
label_inside:
    nop
    ret
    .size sized_outer, . - sized_outer
    .section .note.GNU-stack,"",%progbits
EOF
cat >all.cc <<'EOF'
#include <map>
#include <string>
#include <vector>
namespace space {
struct Base { virtual ~Base(); virtual int f(int) const; };
Base::~Base() {}
int Base::f(int x) const { return x; }
template <class T> struct Box : Base { T t; Box(T v); int f(int) const override; };
template <class T> __attribute__((noinline)) Box<T>::Box(T v) : t(v) {}
template <class T> __attribute__((noinline)) int Box<T>::f(int x) const { return int(t) + x; }
template struct Box<int>;
template struct Box<char>;
}
namespace { __attribute__((noinline)) int hidden(int x) { static int n; return n += x; } }
int main(int argc, char **)
{
    std::map<std::string, std::vector<int>> m;
    m["x"].push_back(argc);
    space::Box<int> b(argc);
    auto lambda = [&](int x) { return hidden(x) + b.f(x); };
    return lambda(argc) + int(m.size());
}
EOF
cat >all.rs <<'EOF'
use std::collections::HashMap;
trait Shape { fn area(&self) -> u64; }
struct Square(u64);
impl Shape for Square { #[inline(never)] fn area(&self) -> u64 { self.0 * self.0 } }
#[inline(never)] fn total<T: Shape>(v: &[T]) -> u64 { v.iter().map(|s| s.area()).sum() }
fn main() {
    let mut m = HashMap::new();
    m.insert("a", total(&[Square(3), Square(std::env::args().count() as u64)]));
    println!("{:?}", m);
}
EOF

# ---- comparing ----

# compare ROW FILE [STEP]: only every STEP-th function.
compare()
{
    readelf -SsW "$2" 2>/dev/null | awk -v mode=extract -f "$here/_expect.awk" | sort >symbols
    awk -v mode=queries -v step="${3:-1}" -f "$here/_expect.awk" symbols | sort -u >addresses
    if answer_by_offset "$2" <addresses >answers; then
        verdict "$1" symbols answers
    else
        failed "$1: lookup failed"
    fi
}

# expect ROW FILE SYMBOL-IN-NM NAME: the name at the start of a symbol.
expect()
{
    local address got
    address=$(nm "$2" | awk -v s="$3" '$3 == s { print $1 }' | head -n 1)
    got=$(echo "$address" | ./lookup -a "$2" | awk '{ print $2 }')
    if [ "$got" != "$4" ]; then
        echo "FAIL $1: at $3: $got instead of $4"
        failures=$((failures + 1))
    fi
}

skip()
{
    printf '%-44s skipped: %s\n' "$1" "$2"
}

# build OUTPUT COMPILER ARGS...: 1 when this machine cannot.
build()
{
    local out=$1
    shift
    "$@" -o "$out" >build.log 2>&1
}

compilers='gcc clang' levels='-O0 -O2'
[ -z "${SANITIZE_FLAGS:-}" ] || compilers=gcc levels=-O2 # names are those of a plain build, where all are compared
for cc in $compilers; do
    command -v $cc >/dev/null || { skip "$cc" "no $cc"; continue; }
    for linker in bfd lld; do
        command -v ld.$linker >/dev/null || { skip "$cc $linker" "no ld.$linker"; continue; }
        for pie in -pie -no-pie; do
            code=-fPIE
            [ $pie = -no-pie ] && code=-fno-pie
            for level in $levels; do
                [ $pie$level = -no-pie-O0 ] && continue # nothing new, and time
                row="$cc $linker $pie $level"
                build prog $cc -fuse-ld=$linker $pie $code $level -rdynamic all.c asm.s ||
                    { skip "$row" "$(tail -n 1 build.log)"; continue; }
                compare "$row" prog
                expect "$row" prog __the_alias the_alias
                expect "$row" prog __GI_strtok_like strtok_like
                expect "$row" prog sizeless_two sizeless_two
                expect "$row" prog label_inside sized_outer
                strip -o stripped prog
                compare "$row stripped" stripped
            done
        done
        row="$cc $linker shared"
        if build lib.so $cc -fuse-ld=$linker -shared -fPIC -O2 all.c asm.s; then
            compare "$row" lib.so
            strip -o stripped.so lib.so
            compare "$row stripped" stripped.so
        else
            skip "$row" "$(tail -n 1 build.log)"
        fi
        # Removed functions leave no name behind, and those that stay keep theirs (S17).
        row="$cc $linker gc-sections"
        echo 'void dead(void) { __asm__ volatile(".rept 100000\n nop\n .endr"); }' >dead.c
        if build gc $cc -fuse-ld=$linker -ffunction-sections -O1 -Wl,--gc-sections all.c asm.s dead.c; then
            compare "$row" gc
            expect "$row" gc main main
            expect "$row" gc _start _start
        else
            skip "$row" "$(tail -n 1 build.log)"
        fi
    done
done
for cxx in g++ clang++; do
    for linker in bfd lld; do
        case ${SANITIZE_FLAGS:+$cxx-$linker} in g++-lld | clang++-bfd) continue ;; esac
        row="$cxx $linker"
        if ! command -v $cxx >/dev/null || ! command -v ld.$linker >/dev/null; then
            skip "$row" "no $cxx or no ld.$linker"
        elif build cxx $cxx -fuse-ld=$linker -O1 all.cc; then
            compare "$row" cxx
        else
            skip "$row" "$(tail -n 1 build.log)"
        fi
    done
done
if ! command -v rustc >/dev/null; then
    skip "rustc" "no rustc"
elif build rust rustc -O all.rs; then
    compare "rustc" rust
else
    skip "rustc" "$(tail -n 1 build.log)"
fi
# Some symbols stripped: the others keep to their own bytes (S3).
if build prog gcc all.c asm.s && strip -N local_one -N chosen -o some prog; then
    compare "some symbols stripped" some
fi

echo "$checked addresses compared, $failures failures"
[ "$checked" -gt 0 ] && [ "$failures" -eq 0 ]
