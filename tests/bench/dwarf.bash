# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2154 # sourced by run, whose variables it uses
# The part of tests/bench/run that measures libsym on debug information (bench_dwarf.c), of cppcheck and the SQLite shell
# built by dwarf_programs, which takes ten minutes once. Not run by itself; without PARTS=dwarf only where that has
# been done.
#   DWARF_PROGRAM=FILE  another program than cppcheck; an ELF file with .debug_info
#   DWARF_SPOOL="..."   options for spoolgen, for another spool to be converted than one of 10 million samples on 8,000
#                       stacks of 19 frames
#
# The peers are llvm-symbolizer, addr2line of binutils and, for few addresses, that of elfutils. All get the same addresses
# in the same order, random ones of .text, with inlined functions and without demangling. What is compared is a whole
# process that reads addresses as text and prints chains as text; frames tells how many it printed.
dwarf_many=100000
dwarf_few=1000
dwarf_small=50000
dwarf_offsets=5400 # of which some 5,000 get into the spool

make_dwarf() {
    local dir=$cache/dwarf options
    [ -x "$bin/bench_dwarf" ] || { echo "dwarf: no $bin/bench_dwarf" >&2; exit 1; }
    dwarf_program=${DWARF_PROGRAM:-$dir/cppcheck}
    dwarf_sqlite=$dir/sqlite3
    if [ ! -x "$dwarf_sqlite" ] || [ ! -f "$dwarf_program" ]; then
        "$root/tests/bench/dwarf_programs" "$dir"
    fi
    dwarf_program=$(realpath "$dwarf_program")
    "$bin/bench_dwarf" addresses "$dwarf_program" $dwarf_many 1 >"$work/shuffled"
    sort "$work/shuffled" >"$work/sorted"
    head -n $dwarf_few "$work/shuffled" >"$work/few"
    [ ! -x "$dwarf_sqlite" ] || "$bin/bench_dwarf" addresses "$dwarf_sqlite" $dwarf_small 1 >"$work/small"
    objcopy --compress-debug-sections=zlib "$dwarf_program" "$work/packed"
    "$bin/bench_dwarf" offsets "$dwarf_program" $dwarf_offsets 2 >"$work/offsets"
    read -ra options <<<"${DWARF_SPOOL:---samples 10000000 --stacks 8000}"
    "$bin/spoolgen" "${options[@]}" --program "$dwarf_program" \
        --offsets "$work/offsets" --stats -o "$work/dwarf.spool" 2>"$work/dwarf.spool.stats"
    readelf -SW "$dwarf_program" | sed 's/^ *\[ *[0-9]*\]//' >"$work/sections"
    dwarf_debug_mb=$(while read -r name _ _ _ size _; do
        case $name in .debug_*) echo $((16#$size)) ;; esac
    done <"$work/sections" | awk '{ n += $1 } END { printf "%.1f", n / 1e6 }')
    echo "dwarf: $dwarf_program, $(($(stat -c %s "$dwarf_program") / 1000000)) MB," \
        "$((16#$(awk '$1 == ".debug_info" { print $5 }' "$work/sections") / 1000000)) MB of .debug_info"
    echo "spool: $(tr '\n' ',' <"$work/dwarf.spool.stats" | sed 's/,$//; s/,/, /g')"
}

# dwarf_ours CASE PROGRAM ADDRESSES, and the same of the peers
dwarf_ours() {
    tool "$1-ours" "$work/$1-ours.out" "$bin/bench_dwarf" answer "$2" <"$3"
}
dwarf_llvm() {
    command -v llvm-symbolizer >/dev/null || return 0
    tool "$1-llvm" "$work/$1-llvm.out" llvm-symbolizer --obj="$2" --no-demangle --inlines --output-style=LLVM <"$3"
}
dwarf_binutils() {
    command -v addr2line >/dev/null || return 0
    tool "$1-binutils" "$work/$1-binutils.out" addr2line -i -f -e "$2" <"$3"
}
dwarf_elfutils() {
    command -v eu-addr2line >/dev/null || return 0
    tool "$1-elfutils" "$work/$1-elfutils.out" eu-addr2line -i -f -e "$2" <"$3"
}

measure_dwarf() {
    local tool order
    dwarf_ours few "$dwarf_program" "$work/few"
    dwarf_llvm few "$dwarf_program" "$work/few"
    dwarf_binutils few "$dwarf_program" "$work/few"
    dwarf_elfutils few "$dwarf_program" "$work/few"
    dwarf_ours packed "$work/packed" "$work/few"
    for order in shuffled sorted; do
        dwarf_ours $order "$dwarf_program" "$work/$order"
        dwarf_llvm $order "$dwarf_program" "$work/$order"
        dwarf_binutils $order "$dwarf_program" "$work/$order"
        loop "$order-passes" "$bin/bench_dwarf" passes "$dwarf_program" <"$work/$order"
    done
    loop dwarf-read "$bin/bench_dwarf" read "$dwarf_program"
    loop few-passes "$bin/bench_dwarf" passes "$dwarf_program" <"$work/few"
    loop packed-passes "$bin/bench_dwarf" passes "$work/packed" <"$work/few"
    if [ -s "$work/small" ]; then
        dwarf_ours small "$dwarf_sqlite" "$work/small"
        dwarf_llvm small "$dwarf_sqlite" "$work/small"
        dwarf_binutils small "$dwarf_sqlite" "$work/small"
        loop small-passes "$bin/bench_dwarf" passes "$dwarf_sqlite" <"$work/small"
    fi
    for tool in spool2folded spool2pprof spool2speedscope; do
        [ -x "$bin/$tool" ] || continue
        local options=()
        [ $tool != spool2speedscope ] || options=(--weight=samples)
        tool "$tool-bare" "$work/converted" "$bin/$tool" --quiet "${options[@]}" --no-symbols "$work/dwarf.spool"
        tool "$tool-named" "$work/converted" "$bin/$tool" --quiet "${options[@]}" "$work/dwarf.spool"
        stat -c %s "$work/converted" >"$work/$tool.size"
    done
    rm -f "$work/converted"
}

# frames_of FILE: those that a peer printed; a frame is two lines, and some put an empty one behind a chain
frames_of() {
    awk 'NF > 0 { n++ } END { printf "%d", n / 2 }' "$1"
}

# dwarf_row TEXT CASE: seconds of each program, and how often ours goes into those of the others
dwarf_row() {
    local peer other cells=
    [ -s "$work/$2-ours.seconds" ] || return 0
    for peer in llvm binutils elfutils; do
        other=-
        [ ! -s "$work/$2-$peer.seconds" ] || other=$(awk -v a="$(seconds "$2-$peer")" -v b="$(seconds "$2-ours")" \
            'BEGIN { printf "%.3f (%.1f x)", a, a / b }')
        cells+=$(printf ' %17s' "$other")
    done
    awk -v text="$1" -v v="$(seconds "$2-ours")" -v low="$(column "$2-ours" seconds min)" \
        -v high="$(column "$2-ours" seconds max)" -v cells="$cells" \
        'BEGIN { printf "%-36s %7.3f %7.3f %7.3f%s\n", text, v, low, high, cells }'
}

# dwarf_limit TEXT VALUE UNIT OPERATOR LIMIT
dwarf_limit() {
    [ -n "$2" ] || return 0
    awk -v text="$1" -v v="$2" -v unit="$3" -v op="$4" -v limit="$5" 'BEGIN {
        met = op == "<=" ? v <= limit : v >= limit
        printf "%-70s %8.3f %-3s (%s %s) %s\n", text, v, unit, op, limit, met ? "met" : "MISSED"
    }'
}

# dwarf_ratio TEXT CASE PEER LIMIT
dwarf_ratio() {
    [ ! -s "$work/$2-$3.seconds" ] ||
        dwarf_limit "$1" "$(awk -v a="$(seconds "$2-$3")" -v b="$(seconds "$2-ours")" 'BEGIN { print a / b }')" x ">=" "$4"
}

# dwarf_number CASE COLUMN FACTOR
dwarf_number() {
    [ ! -s "$work/$1.$2" ] || awk -v v="$(column "$1" "$2" median)" -v factor="$3" 'BEGIN { print v * factor }'
}

# dwarf_same CASE PEER: chains of both that are equal, in percent; and where but names differ. A function without a
# linkage name is called by its name alone there, and here with its scopes in front.
dwarf_same() {
    [ -s "$work/$1-llvm.out" ] || return 0
    awk -v what="$1" 'BEGIN { RS = ""; FS = "\n" }
        NR == FNR { ours[FNR] = $0; next }
        {
            n++
            if (ours[FNR] == $0) { same++; alike++; next }
            count = split(ours[FNR], line, "\n")
            depth += count != NF
            for (i = 2; i <= NF && line[i] == $i; i += 2) {}
            alike += count == NF && i > NF
        }
        END {
            printf "%s: of %d chains equal to llvm-symbolizer%s %.3f %%, but for names %.3f %%, of another depth %d\n",
                what, n, "\047s", same / n * 100, alike / n * 100, depth
        }' "$work/$1-ours.out" "$work/$1-llvm.out"
}

report_dwarf() {
    local case peer tool order
    printf '\n%-36s %7s %7s %7s %17s %17s %17s\n' "seconds, $rounds rounds" libsym min max llvm-symbolizer addr2line eu-addr2line
    dwarf_row "$dwarf_few addresses, random" few
    dwarf_row "the same, sections packed by zlib" packed
    dwarf_row "$dwarf_many addresses, random" shuffled
    dwarf_row "$dwarf_many addresses, sorted" sorted
    dwarf_row "SQLite shell, $dwarf_small addresses" small

    echo
    dwarf_limit "$dwarf_few addresses in a fresh process" "$(seconds few-ours)" s "<=" 0.20
    dwarf_ratio "llvm-symbolizer / libsym" few llvm 3.5
    for order in shuffled sorted; do
        dwarf_limit "$dwarf_many addresses, $order" "$(dwarf_number $order-passes seconds 1)" s "<=" 0.35
        dwarf_ratio "llvm-symbolizer / libsym" $order llvm 8
        dwarf_ratio "addr2line / libsym" $order binutils 15
        dwarf_limit "peak memory" "$(dwarf_number $order-ours peak_kib 0.001024)" MB "<=" 200
    done
    dwarf_limit "the same $dwarf_many again, sorted" "$(dwarf_number shuffled-passes sorted_ns 0.001)" us "<=" 0.75
    dwarf_limit "the same $dwarf_many again, shuffled" "$(dwarf_number shuffled-passes shuffled_ns 0.001)" us "<=" 0.75
    dwarf_limit "one address at a time, random, asked before" "$(dwarf_number shuffled-passes single_ns 0.001)" us "<=" 2.5
    dwarf_limit "one address at a time, random, new" "$(dwarf_number shuffled-passes other_single_ns 0.001)" us "<=" 2.5
    dwarf_limit "SQLite shell, $dwarf_small addresses" "$(dwarf_number small-passes seconds 1)" s "<=" 0.025
    dwarf_limit "$dwarf_many addresses, random / reading the debug sections and adding up their bytes" \
        "$(awk -v a="$(seconds shuffled-passes)" -v b="$(seconds dwarf-read)" 'BEGIN { print a / b }')" x "<=" 10
    dwarf_limit "packed by zlib: more, for each 130 MB" "$(awk -v a="$(seconds packed-passes)" -v b="$(seconds few-passes)" \
        -v mb="$dwarf_debug_mb" 'BEGIN { print (a - b) / mb * 130 }')" s "<=" 0.4
    for tool in spool2folded spool2pprof spool2speedscope; do
        [ -s "$work/$tool-named.seconds" ] || continue
        dwarf_limit "$tool: more than with --no-symbols ($(seconds $tool-bare) s), $(($(cat "$work/$tool.size") / 1000000)) MB" \
            "$(awk -v a="$(seconds $tool-named)" -v b="$(seconds $tool-bare)" 'BEGIN { print a - b }')" s "<=" 0.4
    done

    echo
    for case in few shuffled small; do
        for peer in ours llvm binutils elfutils; do
            [ ! -s "$work/$case-$peer.out" ] || echo "frames printed: $case $peer $(frames_of "$work/$case-$peer.out")"
        done
    done
    for case in few shuffled small; do
        dwarf_same $case
    done
}
