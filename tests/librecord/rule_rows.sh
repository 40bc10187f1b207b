#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# For every row of libraries of both machines the compact rule does what the decoded row does, and nearly all rows have
# a compact rule. Of the largest library, and when sanitized, some FDEs stand for all unless RULE_ROWS_ALL is set.
set -u
here=$(cd "$(dirname "$0")" && pwd)
SRC=${SRC:-$(cd "$here/../.." && pwd)}
CC=${CC:-gcc}

for tool in aarch64-linux-gnu-gcc gcc clang ldd; do
    command -v $tool >/dev/null || { echo "skipped: no $tool"; exit 77; }
done

# shellcheck disable=SC2086 # a list of options
"$CC" -std=gnu11 -D_GNU_SOURCE -O2 ${SANITIZE_FLAGS:-} -iquote "$SRC/librecord" -o rule_rows \
    "$here/rule_rows.c" "$BUILD/lib/librecord.a" -lz || exit 1

# Realigned and variable frames, frames that need more than one step to make, all saved registers, those of floating
# point among them.
cat >frames.c <<'EOS'
#include <alloca.h>
#include <stdarg.h>
void out(void *);
int call(int x, int (*f)(int));
#ifdef __x86_64__
__attribute__((force_align_arg_pointer))
#endif
int realigned(int x) { __attribute__((aligned(64))) char a[64]; out(a); char *b = alloca(x); out(b); return a[0] + b[0]; }
int large(int x) { char a[70000]; out(a); return a[x]; }
int larger(int x) { char a[1 << 20]; out(a); return call(a[x], large); }
double floats(double a, double b, double c, double (*f)(double))
{
    double d = f(a), e = f(b), g = f(c), h = f(a * b), i = f(b * c), j = f(a * c);
    return f(d) * e + f(e) * g + f(g) * h + f(h) * i + f(i) * j + f(j) * d + a * b * c;
}
int variadic(int n, ...) { va_list l; int s = 0; va_start(l, n); while (n-- > 0) s += call(va_arg(l, int), large); va_end(l); return s; }
#define BUSY(n) int busy##n(int a, int b, int c, int d, int (*f)(int)) { \
    int g = f(a) + n, h = f(b), i = f(c), j = f(d), k = f(g), l = f(h); out(&l); return f(g + i) * h + f(i * j) * k + f(k * l) * a + b * c * d; }
BUSY(1) BUSY(2) BUSY(3)
EOS

failures=0
rows() { # OPTION... FILE
    ./rule_rows "$@" | tee line
    [ "${PIPESTATUS[0]}" -eq 0 ] || { echo "FAIL: $*"; failures=$((failures + 1)); }
}
kinds() { # KIND: that the file just compared has rows of it, -KIND: that it has none
    case $1 in
    -*) grep -q " ${1#-} " line && { echo "FAIL: rows are ${1#-}"; failures=$((failures + 1)); } ;;
    *) grep -q " $1 " line || { echo "FAIL: no row is $1"; failures=$((failures + 1)); } ;;
    esac
}

built() { # COMPILER OPTION...
    "$@" -fPIC -shared -nostdlib -o frames.so frames.c || exit 1
    rows --limit 10 frames.so # some are meant to need it
}
built gcc -O2
kinds realigned
built gcc -O0
built clang -O2
for option in "" -fomit-frame-pointer -mbranch-protection=standard -mbranch-protection=pac-ret+leaf -Os -O0; do
    # shellcheck disable=SC2086
    built aarch64-linux-gnu-gcc -O2 $option
done
built clang --target=aarch64-linux-gnu -fuse-ld=lld -O2 -mbranch-protection=standard
kinds -generic

some() { # N SANITIZED_N FILE
    local every=$1
    [ -z "${SANITIZE_FLAGS:-}" ] || every=$2
    [ -z "${RULE_ROWS_ALL:-}" ] || every=1
    rows --every "$every" "$3"
}
library() { # of this machine NAME
    ldd "$(command -v clang)" | awk -v name="$1" 'index($1, name) == 1 { print $3; exit }'
}
some 1 1 "$(library libc.so)"
kinds sigreturn
kinds PLT
some 1 4 "$(library libstdc++.so)"
large=$(library libLLVM)
some 3 200 "${large:-$(command -v clang)}"
cross=/usr/aarch64-linux-gnu/lib
some 1 4 $cross/libc.so.6
for name in libstdc++.so.6 libasan.so.8; do # what its compiler brings has other numbers with other versions
    [ -f $cross/$name ] && some 1 4 $cross/$name
done

[ "$failures" -eq 0 ]
