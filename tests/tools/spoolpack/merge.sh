#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# --prune merges the pieces that several packs of one program left: documents stay the same, and so does what is young,
# damaged, or named by a manifest of another hand. Wherever it is killed, the store is whole, and the next one goes on.
. "$(dirname "$0")/_common.sh"
here=(--sysroot "$FIXTURES/sysroot" --debug-dir "$PWD/nowhere" --perf-map-dir "$PWD/nowhere")
spools=("$o2" "$stackpulse"/ladder/{ladder-O2-fork,attach-O2,exec-chain}.spool)
ladder=.build-id/94/d81b76857beec8f87aa226f63ad902468a63f7.syms

pack() { # STORE OPTION... SPOOL
    local store=$1
    shift
    run 0 "$spoolpack" -q -o "$store" "${here[@]}" "$@"
}
old() { find "$1" -exec touch -h -d '3 days ago' {} +; }
pieces() { (cd "$1" && find .build-id -name '*.lines' -o -name '*.names') | sort; }

# documents STORE NAME: of all spools
documents() {
    local spool
    for spool in "${spools[@]}"; do
        "$BIN/spool2folded" --with-lines --annotate "${nowhere[@]}" --symbols "$1" "$spool"
        "$BIN/spoolcat" --samples --json "${nowhere[@]}" --symbols "$1" "$spool"
    done >"$2" 2>"$2.err"
}

# Names of one spool, then lines of others: the first names are known with lines later, in part.
pack store --level=names "$stackpulse/ladder/ladder-O0.spool"
pack store --level=names "$stackpulse/ladder/attach-O2.spool"
for spool in "${spools[@]}"; do pack store "$spool"; done
clean store
documents store expected
grep -q ';mix' expected || die 'no names'
old store
cp -a store before
[ "$(pieces store | grep -c "^$ladder")" -gt 2 ] || die "too few pieces to merge: $(pieces store)"

# A dry run tells, and does nothing.
run 0 "$spoolpack" --prune --dry-run store
cp out dry
diff -r before store || die 'a dry run changed the store'
grep -q "^$ladder/[0-9a-f]*.lines: [3-9] pieces would be merged\$" out || die "$(<out)"
! grep -q '/$' out || die "a folder would go: $(<out)"

# One piece of each level for each build id; all that go are named.
run 0 "$spoolpack" --prune store
sed 's/ would be \(merged\|removed\)$/ \1/' dry >expected.out
same expected.out out
clean store
pieces store >left
sed 's,/[^/]*\.,/,' left | sort | uniq -d >twice
equal twice ''
documents store merged
same expected merged
same expected.err merged.err
cp -a store after
jq -r '.modules[].files[].name' store/captures/*/manifest-*.json | sort -u >named
same left named

# What is there already is not packed again, and one piece is not merged.
old store
cp -a store twice.store
run 0 "$spoolpack" --prune twice.store
equal out '0 files, 0 B removed'
diff -r store twice.store || die 'a second run changed the store'
pack store "$o2"
pieces store | diff left - || die 'a piece was added'

# Killed after the new piece was written, between two manifests, and before the old pieces were removed.
resume() { # WHAT
    run 0 "$spoolpack" --check -q killed
    old killed
    run 0 "$spoolpack" --prune killed
    clean killed
    old killed # with two sets of names, the rest is for the next one
    run 0 "$spoolpack" --prune killed
    diff -r after killed || die "killed $1, the store becomes another one"
}
mapfile -t manifests < <(cd after && ls captures/*/manifest-*.json)
for changed in 0 1 ${#manifests[@]}; do
    rm -rf killed
    cp -a before killed
    (cd after && cp --parents $(pieces .) ../killed)
    for manifest in "${manifests[@]:0:changed}"; do cp "after/$manifest" "killed/$manifest"; done
    resume "after $changed manifests"
done

# Young pieces, those of young manifests and those of manifests that are not as spoolpack writes them stay.
untouched() { # WHAT
    cp -a store copy
    run 0 "$spoolpack" --prune store
    diff -r copy store || die "$1: $(<out)"
    equal out '0 files, 0 B removed'
    rm -rf copy store
    cp -a before store
}
rm -rf store
cp -a before store
touch $(pieces store | sed 's,^,store/,')
untouched 'young pieces'
touch store/captures/*/manifest-*.json
untouched 'young manifests'
for manifest in store/captures/*/manifest-*.json; do
    jq '. + {future: 1}' "$manifest" >new && cp new "$manifest"
done
old store
untouched 'manifests of another version'

# A damaged piece is left alone, whatever is made of the others; the fault stays told.
damaged=$(pieces store | grep -m1 "^$ladder.*.lines")
printf x | dd of="store/$damaged" bs=1 seek=200 conv=notrunc status=none
old store
run 0 "$spoolpack" --prune store
[ -e "store/$damaged" ] || die 'a damaged piece was removed'
run 1 "$spoolpack" --check -q store
grep -q "^$damaged: its bytes are not those of its name\$" out || die "$(<out)"

# Nothing is written through links.
rm -rf store
cp -a before store
mv "store/$ladder" outside
ln -s ../../../outside "store/$ladder"
old store
ls outside >files.before
run 0 "$spoolpack" --prune store
ls outside | diff files.before - || die 'a file outside of the store'
