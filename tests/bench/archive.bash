# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2154 # sourced by run, whose variables it uses
# The part of tests/bench/run that measures symbol archives: what it takes to pack a spool of a large program (cppcheck, see
# dwarf.bash), once and again, and to convert it by the archive in place of debug information. Only with PARTS=archive.
#   DWARF_PROGRAM=FILE    another program; an ELF file with .debug_info
#   ARCHIVE_SPOOL="..."   options for spoolgen, for another spool than one of 100,000 samples on 8,000 stacks, which takes
#                         little time itself

make_archive() {
    local options build_id level
    [ -x "$bin/spoolpack" ] || { echo "archive: no $bin/spoolpack" >&2; exit 1; }
    archive_program=${DWARF_PROGRAM:-$cache/dwarf/cppcheck}
    [ -f "$archive_program" ] || "$root/tests/bench/dwarf_programs" "$cache/dwarf"
    archive_program=$(realpath "$archive_program")
    "$bin/bench_dwarf" offsets "$archive_program" 5400 2 >"$work/archive.offsets"
    build_id=(--build-id "$(readelf -n "$archive_program" | sed -n 's/.*Build ID: //p')") # as spoolrecord does
    read -ra options <<<"${ARCHIVE_SPOOL:---samples 100000 --stacks 8000}"
    for n in 1 2; do # two captures of one program, in part on the same stacks
        "$bin/spoolgen" "${options[@]}" --seed $n --program "$archive_program" --offsets "$work/archive.offsets" \
            "${build_id[@]}" --stats -o "$work/archive$n.spool" 2>"$work/archive.stats"
    done
    mkdir "$work/nothing" # a root in which the program is not
    for level in names lines full; do
        "$bin/spoolpack" -q --level=$level -o "$work/archive-$level" "$work/archive1.spool"
    done
    "$bin/spoolpack" -q -o "$work/archive.tar.gz" "$work/archive1.spool"
    archive_bytes=$(archive_size "$work/archive-lines")
    cp -r "$work/archive-lines" "$work/archive-more"
    "$bin/spoolpack" -q -o "$work/archive-more" "$work/archive2.spool"
    echo "archive: $archive_program, $(($(stat -c %s "$archive_program") / 1000000)) MB;" \
        "spool: $(tr '\n' ',' <"$work/archive.stats" | sed 's/,$//; s/,/, /g')"
    archive_same
}

# archive_size FOLDER: bytes of the files in it
archive_size() {
    find "$1" -type f -printf '%s\n' | awk '{ n += $1 } END { print n + 0 }'
}

# Archives are to give what the program gives.
archive_same() {
    local store
    "$bin/spool2folded" --quiet --with-lines "$work/archive1.spool" >"$work/archive.expected"
    for store in archive-lines archive-full archive.tar.gz; do
        "$bin/spool2folded" --quiet --with-lines --symbols "$work/$store" --sysroot "$work/nothing" \
            "$work/archive1.spool" | cmp -s - "$work/archive.expected" || echo "archive: $store gives OTHER lines"
    done
}

# archive_convert NAME OPTION...
archive_convert() {
    local name=$1 tool
    shift
    for tool in spool2folded spool2pprof; do
        tool "archive-$tool-$name" "$work/converted" "$bin/$tool" --quiet "$@" "$work/archive1.spool"
    done
}

measure_archive() {
    local level
    for level in names lines full; do
        rm -rf "$work/packed-now"
        tool "archive-pack-$level" /dev/null "$bin/spoolpack" -q --level=$level -o "$work/packed-now" "$work/archive1.spool"
        tool "archive-again-$level" /dev/null "$bin/spoolpack" -q --level=$level -o "$work/packed-now" "$work/archive2.spool"
        tool "archive-known-$level" /dev/null "$bin/spoolpack" -q --level=$level -o "$work/packed-now" "$work/archive2.spool"
    done
    rm -rf "$work/packed-now" "$work/packed-now.tar.gz"
    tool archive-pack-tar /dev/null "$bin/spoolpack" -q -o "$work/packed-now.tar.gz" "$work/archive1.spool"
    rm -f "$work/packed-now.tar.gz"
    archive_convert bare --no-symbols
    archive_convert dwarf
    archive_convert lines --symbols "$work/archive-lines" --sysroot "$work/nothing"
    archive_convert names --symbols "$work/archive-names" --sysroot "$work/nothing"
    archive_convert full --symbols "$work/archive-full" --sysroot "$work/nothing"
    archive_convert tar --symbols "$work/archive.tar.gz" --sysroot "$work/nothing"
    rm -f "$work/converted"
}

report_archive() {
    local tool level
    printf '\n%-44s %8s %8s %8s %9s\n' "$rounds rounds" "median s" min max "peak MiB"
    for tool in spool2folded spool2pprof; do
        row "archive-$tool-bare" "$tool --no-symbols"
        row "archive-$tool-dwarf" "$tool, DWARF of the program"
        row "archive-$tool-lines" "$tool --symbols, lines"
        row "archive-$tool-names" "$tool --symbols, names"
        row "archive-$tool-full" "$tool --symbols, full"
        row "archive-$tool-tar" "$tool --symbols, lines in a tar.gz"
    done
    for level in names lines full; do
        row "archive-pack-$level" "spoolpack --level=$level"
        row "archive-again-$level" "the same, another spool into that store"
        row "archive-known-$level" "the same, one of which it has everything"
    done
    row archive-pack-tar "spoolpack -o FILE.tar.gz"
    echo
    for tool in spool2folded spool2pprof; do
        ratio "$tool: lines archive / DWARF" 1 "$(seconds "archive-$tool-lines")" "$(seconds "archive-$tool-dwarf")"
        ratio "$tool: names archive / DWARF" 1 "$(seconds "archive-$tool-names")" "$(seconds "archive-$tool-dwarf")"
    done
    for level in names lines full; do
        printf '%-62s %9d\n' "bytes of the $level archive" "$(archive_size "$work/archive-$level")"
    done
    printf '%-62s %9d\n' "bytes of the tar.gz, lines" "$(stat -c %s "$work/archive.tar.gz")"
    printf '%-62s %9d\n' "bytes that the second spool adds to lines" \
        "$(($(archive_size "$work/archive-more") - archive_bytes))"
}
