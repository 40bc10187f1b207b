#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Archives answer as the files do that they were made of: documents on a machine without those files are the same, byte
# for byte, from a folder, a tar file and a gzip'd one.
. "$(dirname "$0")/../_common.sh"

elsewhere=(--sysroot "$PWD/elsewhere" --debug-dir "$PWD/elsewhere" --perf-map-dir "$PWD/elsewhere")
mkdir elsewhere

# documents NAME SPOOL OPTION...: what the tools make of a spool with these options.
documents() {
    local name=$1 spool=$2
    shift 2
    mkdir -p "$name"
    "$BIN/spoolcat" --samples --json "$@" "$spool" >"$name/samples" 2>"$name/samples.err"
    "$BIN/spool2folded" --with-lines --demangle=short "$@" "$spool" >"$name/folded" 2>"$name/folded.err"
    "$BIN/spool2folded" --no-inlines --annotate "$@" "$spool" >"$name/no-inlines" 2>"$name/no-inlines.err"
    "$BIN/spool2pprof" --gzip-level 0 -o "$name/pprof" "$@" "$spool" 2>"$name/pprof.err"
}

# compare NAME NAME
compare() {
    diff -r -q "$1" "$2" || die "$2 is not what $1 is: $(diff -r "$1" "$2" | head -n 4)"
}

# named FOLDER: how many frames of its samples have a name, at least one.
named() {
    grep -o '"name":"' "$1/samples" | wc -l
}

check() { # NAME SPOOL OPTION...
    local name=$1 spool=$2
    shift 2
    documents "$name-files" "$spool" "$@"
    run 0 "$BIN/spoolpack" -o "$name-store" "$@" "$spool"
    run 0 "$BIN/spoolpack" -o "$name.tar.gz" "$@" "$spool"
    run 0 "$BIN/spoolpack" -o "$name.tar" "$@" "$spool"
    documents "$name-from-store" "$spool" "${elsewhere[@]}" --symbols "$name-store"
    compare "$name-files" "$name-from-store"
    [ "$(named "$name-from-store")" -gt 0 ] || die "$name: no frame has a name"
    documents "$name-from-tar" "$spool" "${elsewhere[@]}" --symbols "$name.tar"
    compare "$name-files" "$name-from-tar"
    documents "$name-from-tar.gz" "$spool" "${elsewhere[@]}" --symbols "$name.tar.gz"
    compare "$name-files" "$name-from-tar.gz"
}

here=(--sysroot "$FIXTURES/sysroot" --debug-dir "$PWD/elsewhere" --perf-map-dir "$PWD/elsewhere")

# No build ids were recorded: the manifest knows them.
check ladder "$o2" "${here[@]}"
check kernel "$stackpulse/kernel/syscalls-O2.spool" "${here[@]}" --kallsyms "$stackpulse/kernel/kallsyms.txt"
check python "$stackpulse/python/py312.spool" --sysroot "$FIXTURES/sysroot" --perf-map-dir "$stackpulse/python"

# A pipe, a gzip'd copy and a cut one are the same capture.
gzip -c "$o2" >copy.spool.gz
documents gzip-files copy.spool.gz "${here[@]}"
documents gzip-archive copy.spool.gz "${elsewhere[@]}" --symbols ladder.tar.gz
compare gzip-files gzip-archive
head -c 9000 "$o2" >cut.spool
documents cut-files cut.spool "${here[@]}"
documents cut-archive cut.spool "${elsewhere[@]}" --symbols ladder-store
compare cut-files cut-archive

# Names alone: the functions, neither lines nor what is inlined.
run 0 "$BIN/spoolpack" --level=names -o names-store "${here[@]}" "$o2"
"$BIN/spool2folded" --no-inlines --annotate "${elsewhere[@]}" --symbols names-store "$o2" >names
same names ladder-files/no-inlines
"$BIN/spoolcat" --samples --json "${elsewhere[@]}" --symbols names-store "$o2" >names.samples
! grep -q '"line":[1-9]' names.samples || die "an archive of names has lines"

# The debug files themselves, which other programs find by build id.
run 0 "$BIN/spoolpack" --level=full -o full-store "${here[@]}" "$o2"
cmp full-store/.build-id/94/d81b76857beec8f87aa226f63ad902468a63f7.debug "$FIXTURES/sysroot/opt/demo/ladder-O2" ||
    die "the debug file was not packed"
documents full "$o2" "${elsewhere[@]}" --symbols full-store
compare ladder-files full
rm -r full-store/.build-id/*/*.syms
"$BIN/spool2folded" --with-lines --demangle=short "${elsewhere[@]}" --symbols full-store "$o2" >full.folded
same full.folded ladder-files/folded

# A damaged piece is told once, and the rest is used.
piece=$(find ladder-store/.build-id/94 -name '*.lines')
cp -r ladder-store damaged-store
printf x | dd of="damaged-store/${piece#*/}" bs=1 seek=200 conv=notrunc status=none
run 0 "$BIN/spool2folded" "${elsewhere[@]}" --symbols damaged-store "$o2"
grep -q "damaged-store/${piece#*/}: its checksum is not that of its bytes" err || die "damage is not told: $(cat err)"
[ "$(grep -c . err)" = 1 ] || die "more than the damage is told: $(cat err)"
grep -q 'plugin_spin' out || die "the rest of a damaged archive is not used"
! grep -q ';mix ' out || die "a damaged piece is used"

# A cut tar file likewise.
head -c "$(($(stat -c %s ladder.tar.gz) / 2))" ladder.tar.gz >cut.tar.gz
run 0 "$BIN/spool2folded" "${elsewhere[@]}" --symbols cut.tar.gz "$o2"
grep -q 'cut.tar.gz' err || die "a cut tar file is not told: $(cat err)"

# Another build than the recorded one is not in the archive: nothing of it is used.
run 0 "$BIN/spool2folded" "${elsewhere[@]}" --symbols ladder-store "$stackpulse/ladder/ladder-O0.spool"
! grep -q ';mix' out || die "symbols of another program were used"
