# SPDX-License-Identifier: MIT
# The part of tests/bench/run that measures libsym (bench_symbols.c). Not run by itself.
#
# The limits are for a library with 137,000 functions. Those of distributions are stripped; of what a
# package or rustup installs unstripped, the compiler's own libraries of Rust come nearest. Without
# them, and with SYMBOLS=made, one is assembled.
#
# The peer is llvm-symbolizer: of the programs that packages bring it is the one that sorts the
# symbols once and searches them (libdw's dwfl_module_addrsym and addr2line -S of elfutils look
# at every symbol for every address). Both sides are a whole process that reads addresses in random
# order as text and prints names as text, not demangled.
functions_wanted=137000
peer_addresses=200000

# The candidate nearest to that many functions, if one is not too far off.
choose_symbols() {
    local file count best= distance off
    for file in "$(rustc --print sysroot 2>/dev/null)"/lib/lib{LLVM,rustc_driver}* /usr/lib/*/libLLVM*.so* \
        /usr/lib/llvm-*/lib/libLLVM*.so*; do
        [ -f "$file" ] || continue
        count=$("$bin/bench_symbols" read "$file" 2>/dev/null | sed -n 's/.*functions \([0-9]*\).*/\1/p')
        off=$((${count:-0} > functions_wanted ? ${count:-0} - functions_wanted : functions_wanted - ${count:-0}))
        if [ "$off" -lt $((functions_wanted / 4)) ] && [ "$off" -lt "${distance:-$functions_wanted}" ]; then
            best=$file
            distance=$off
        fi
    done
    echo "$best"
}

# Functions of 16 to 271 bytes with C++ names, a tenth of them local, some with an alias; the table
# is not in the order of addresses.
assemble_symbols() { # OUTPUT
    awk -v n=$functions_wanted 'BEGIN {
        print ".text"
        for (i = 0; i < n; i++) {
            k = i * 7919 % n # a prime: every number once
            name = sprintf("_ZN7library6detail7mappingILi%dEE9function%dEPKcRNS_7contextEm", k % 512, k)
            if (k % 10 != 0) printf ".globl %s\n", name
            if (k % 16 == 0) printf ".globl alias%d\n.set alias%d,%s\n", k, k, name
            printf ".p2align 4\n.type %s,@function\n%s:\n.skip %d,0x90\n.size %s,.-%s\n",
                name, name, 16 + k * 2654435761 % 256, name, name
        }
        print ".section .note.GNU-stack,\"\",@progbits"
    }' >"$work/symbols.s"
    "${CC:-cc}" -shared -nostdlib -o "$1" "$work/symbols.s"
    rm "$work/symbols.s"
}

make_symbols() {
    symbols=${SYMBOLS:-$(choose_symbols)}
    if [ -z "$symbols" ] || [ "$symbols" = made ]; then
        symbols=$cache/symbols-$functions_wanted.so
        if [ ! -f "$symbols" ]; then
            assemble_symbols "$work/symbols.so"
            mv "$work/symbols.so" "$symbols"
        fi
    fi
    "$bin/bench_symbols" addresses "$symbols" $peer_addresses >"$work/addresses"
    kallsyms=/proc/kallsyms
    if ! grep -q '^0*[1-9a-f][0-9a-f]* [tT]' $kallsyms 2>/dev/null; then
        echo "symbols: no addresses in $kallsyms (kernel.kptr_restrict), not measured" >&2
        kallsyms=
    fi
    echo "symbols: $symbols"
}

measure_symbols() {
    loop symbols-read "$bin/bench_symbols" read "$symbols"
    loop symbols-index "$bin/bench_symbols" index "$symbols"
    loop symbols-public "$bin/bench_symbols" index-public "$symbols"
    loop symbols-lookup "$bin/bench_symbols" lookup "$symbols"
    loop symbols-resolve "$bin/bench_symbols" resolve "$symbols"
    loop symbols-demangle "$bin/bench_symbols" demangle "$symbols"
    [ -z "$kallsyms" ] || loop kallsyms "$bin/bench_symbols" kallsyms "$kallsyms"
    tool symbols-answer "$work/names-ours" "$bin/bench_symbols" answer "$symbols" <"$work/addresses"
    if command -v llvm-symbolizer >/dev/null; then
        tool symbols-peer "$work/names-peer" llvm-symbolizer --obj="$symbols" --no-demangle --functions=linkage \
            --no-inlines <"$work/addresses"
    fi
}

# scaled TEXT NAME COLUMN FACTOR UNIT [LIMIT]: a median times FACTOR, and whether it is within the limit
scaled() {
    [ -s "$work/$2.$3" ] || return 0
    awk -v text="$1" -v v="$(column "$2" "$3" median)" -v low="$(column "$2" "$3" min)" \
        -v high="$(column "$2" "$3" max)" -v factor="$4" -v unit="$5" -v limit="${6:-}" 'BEGIN {
            printf "%-56s %8.2f %8.2f %8.2f %s", text, v * factor, low * factor, high * factor, unit
            if (limit != "") printf "  (limit %s)%s", limit, v * factor <= limit ? "" : "  EXCEEDED"
            printf "\n"
        }'
}

report_symbols() {
    local functions limit
    functions=$(column symbols-read functions median)
    limit=$(awk -v n="$functions" -v wanted=$functions_wanted 'BEGIN { printf "%.1f", 30 * n / wanted }')
    printf '\n%-56s %8s %8s %8s\n' "$functions functions, $rounds rounds" median min max
    scaled "reading the bytes of the symbol tables" symbols-read seconds 1000 ms
    scaled "open and index" symbols-index seconds 1000 ms "$limit"
    scaled "the same by sym_module_add and sym_resolve" symbols-public seconds 1000 ms "$limit"
    scaled "plain binary search, random addresses" symbols-lookup bare_ns 1 ns
    scaled "symint_elf_find, random addresses" symbols-lookup ns 1 ns 100
    scaled "sym_resolve, distinct addresses" symbols-resolve cold_ns 1 ns
    scaled "sym_resolve, again" symbols-resolve warm_ns 1 ns 2500
    scaled "sym_resolve_many, distinct addresses" symbols-resolve many_ns 1 ns
    scaled "bare cplus_demangle, distinct names" symbols-demangle bare 1000 ms
    scaled "interning and demangling, distinct names" symbols-demangle seconds 1000 ms
    scaled "kallsyms: reading" kallsyms read 1000 ms
    scaled "kallsyms: sym_kernel_load" kallsyms seconds 1000 ms
    scaled "kallsyms: sym_kernel_load for 2,000 addresses" kallsyms needed 1000 ms
    scaled "libsym, $peer_addresses addresses, a whole process" symbols-answer seconds 1000 ms
    scaled "llvm-symbolizer, the same" symbols-peer seconds 1000 ms

    echo
    ratio "index / reading the bytes" "" "$(seconds symbols-index)" "$(seconds symbols-read)"
    ratio "lookup / plain binary search" 1 "$(column symbols-lookup ns median)" \
        "$(column symbols-lookup bare_ns median)"
    ratio "demangling / bare loop that keeps its results" 1.10 "$(column symbols-demangle kept_ratio median)" 1
    ratio "demangling / bare loop that forgets them" "" "$(column symbols-demangle ratio median)" 1
    if [ -s "$work/kallsyms.seconds" ]; then
        ratio "kallsyms / (reading + 5 ms)" 1 "$(seconds kallsyms)" "$(kallsyms_budget)"
        ratio "kallsyms for 2,000 addresses / (reading + 5 ms)" 1 "$(column kallsyms needed median)" \
            "$(kallsyms_budget)"
    fi
    if [ -s "$work/symbols-peer.seconds" ]; then
        ratio "llvm-symbolizer / libsym" "" "$(seconds symbols-peer)" "$(seconds symbols-answer)"
        # A block of its output is name, place, empty line.
        awk 'NR % 3 == 1' "$work/names-peer" | paste -d '\n' - "$work/names-ours" | awk '
            NR % 2 == 1 { peer = $0; next }
            { n++; same += peer == $0 }
            END { printf "%-62s %6.2f\n", "addresses with the same name, %", same / n * 100 }'
    fi
}

kallsyms_budget() {
    awk -v read="$(column kallsyms read median)" 'BEGIN { print read + 0.005 }'
}
