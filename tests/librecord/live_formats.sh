#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Programs of other makes than C's: Go, the vdso, 32 bits.
# shellcheck source=_live.sh
. "$(dirname "$0")/_live.sh"

# R3: Go has .debug_frame alone, compressed, and switches stacks in its runtime, which its unwind data know
# nothing of: there a walk stops, marked.
command -v go >/dev/null || { echo "no go in PATH" && exit 77; }
cp "$here/hard_go.go" .
GOFLAGS='' GO111MODULE=off GOCACHE=$PWD/cache go build -o hard_go hard_go.go || die "go does not build"
readelf -SW hard_go | grep -q '[.]eh_frame' && failed "go: there is an .eh_frame"
record go -- ./hard_go
fold go
awk -F ';' '
    BEGIN {
        n = split("main.a main.b,main.b main.b,main.b main.c,main.c main.leaf,main.a main.allocate", pairs, ",")
        for (i = 1; i <= n; i++)
            legal[pairs[i]] = 1
    }
    {
        count = $NF
        sub(/.* /, "", count)
        sub(/ [0-9]+$/, "", $NF)
        samples += count
        if ($1 == "[truncated]" && $2 ~ /^(time.now|runtime[.](systemstack|systemstack_switch|morestack|mcall|asmcgocall|rt0_go|sigtramp|sigreturn).*)$/)
            system_stack += count
        else if ($1 == "[truncated]")
            cut += count
        previous = bs = 0
        for (i = 1; i <= NF; i++) {
            bs += $i == "main.b"
            if ($i !~ /^main[.](a|b|c|leaf|allocate)$/)
                continue
            if (previous == 0 ? $i != "main.a" && $1 != "[truncated]" : i != previous + 1 || !legal[$previous " " $i])
                illegal += count
            previous = i
        }
        if ($NF == "main.leaf" && $1 == "runtime.goexit.abi0")
            bs == 21 ? whole += count : illegal += count
    }
    END {
        printf "go: %d samples, %d whole ones of main.leaf, %d on the system stack, %d cut, %d illegal\n", samples, whole, system_stack, cut, illegal
        # a slow machine interrupts threads more often, and few samples make a percent of one
        exit !(samples >= 50 && whole * 2 > samples && cut * 50 <= samples + 100 && illegal == 0)
    }' go.folded || failed "go: $(head -n 5 go.folded)"

# The vdso's code has callers, and a name where it has symbols.
gcc -O2 -g "$here/hard_vdso.c" -o hard_vdso || die "no hard_vdso"
record vdso -- ./hard_vdso
fold vdso --with-modules
awk '
    { n += $NF; gsub(/ \((hard_vdso|libc[^;)]*)\)/, "") }
    /;main;ask;.*\[vdso\]/ { vdso += $NF }
    !/^_start;/ { cut += $NF }
    /\[vdso\]/ && !/;__libc_start_call_main;main;ask(;(clock_gettime|gettimeofday|__[^;[]*))*(;[^;]*\[vdso\][^;]*)+ [0-9]+$/ { illegal += $NF }
    END {
        printf "vdso: %d samples, %d in it, %d cut, %d illegal\n", n, vdso, cut, illegal
        exit !(n >= 50 && vdso * 4 > n && cut * 100 <= n + 100 && illegal == 0)
    }' vdso.folded || failed "vdso: $(cat vdso.folded)"

# Of 32 bits only the address is known, and that is told.
gcc -m32 -nostdlib -static "$here/hard_32bit.S" -o hard_32bit || die "no hard_32bit"
if ./hard_32bit 2>/dev/null; then
    record narrow -- ./hard_32bit
    fold narrow
    [ "$(field narrow errors.register_capture)" -ge 50 ] || failed "32 bits: $(cat narrow.json)"
    [ "$(field narrow errors.register_capture)" = "$(field narrow samples)" ] || failed "32 bits: not all are counted: $(cat narrow.json)"
    awk '!/^\[truncated\];[^;]* [0-9]+$/ { exit 1 }' narrow.folded || failed "32 bits: $(cat narrow.folded)"
else
    left_out "programs of 32 bits: this kernel runs none"
fi
exit $bad
