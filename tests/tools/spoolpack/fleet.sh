#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Many spools and one store: packs of the same programs run at once, converters at once read what they left, and packs
# that are killed leave temporary files and no damage. The commands of the converters are those of README.md.
. "$(dirname "$0")/_common.sh"
. "$(dirname "$0")/_fleet.sh"
writers=4
count=200
[ -z "${SANITIZE_FLAGS:-}" ] || count=30
nproc() { echo $writers; } # for README.md's commands
captures $count spools
mkdir profiles expected

# pack STORE N: all spools, N to a process.
pack() {
    find spools -name '*.spool' -print0 | sort -z -t- -k2 |
        xargs -0 -P $writers -n "$2" "$spoolpack" -q "${files[@]}" -o "$1" || die "a pack failed"
}

pack store 1
clean store
pieces=$(find store/.build-id -type f | wc -l)
grep -q "^$count captures, $pieces files, .*: whole$" out || die "$(<out)"
# A piece is what was new to a pack. Those of one set of addresses may run at once and find the same, beside different
# other new ones.
for syms in store/.build-id/*/*.syms; do
    pieces=$(find "$syms" -type f | wc -l)
    ((pieces > 1 && pieces <= sets + writers)) || die "$syms has $pieces pieces"
done

# The same again: only manifests are written.
(cd store && find .build-id -type f -exec sha256sum {} + | sort) >before
pack store 25
clean store
(cd store && find .build-id -type f -exec sha256sum {} + | sort) >after
same before after

# Every document is that of the files, which only this makes with them; those of one set of addresses are the same but
# for the time.
eval "$(readme 'profiles/${n%.spool}.pb.gz')"
for ((i = 0; i < sets; i++)); do
    echo "host$((i % 7))-$((1700000000 + i * 60))"
done | xargs -P $writers -n 8 bash -c '
    for n; do '"$BIN/spool2pprof -q ${files[*]@Q}"' -o "expected/$n.pb.gz" "spools/$n.spool" || exit 255; done' bash
perl -MIO::Uncompress::Gunzip=gunzip -e '
    my ($count, $sets) = @ARGV;
    sub profile { # FOLDER, CAPTURE: its bytes with the time of the first one in place of its own
        my ($folder, $i) = @_;
        my ($time, $first) = map {
            my $t = ($_ * 60 + 1700000000) * 1000000000;
            join "", map { chr(($t >> 7 * $_ & 127) | ($_ < 8 ? 128 : 0)) } 0 .. 8;
        } $i, $i % $sets;
        my $name = sprintf "$folder/host%d-%d.pb.gz", $i % 7, 1700000000 + $i * 60;
        gunzip($name => \my $bytes) or die "$name: $!\n";
        return $bytes =~ s/\x48\Q$time\E/\x48$first/r;
    }
    for my $i (0 .. $count - 1) {
        profile("profiles", $i) eq profile("expected", $i % $sets) or die "profile $i is not that of the files\n";
    }' $count $sets

run 0 "$BIN/spool2pprof" -q "${files[@]}" --gzip-level 0 -o all.expected spools/*.spool
eval "$(readme 'all.pb.gz')"
gzip -dc all.pb.gz >all
same all.expected all

# The other commands, of some of them.
mkdir -p few/spools few/profiles few/samples
cp spools/host0-170000[0-1]*.spool few/spools
mv store few
cd few
if parallel --version 2>/dev/null | grep -q GNU; then
    eval "$(readme 'parallel -0')"
    [ "$(find profiles -type f | wc -l)" = "$(find spools -type f | wc -l)" ] || die "parallel has left some out"
    for p in profiles/*; do same "../$p" "$p"; done
fi
eval "$(readme 'spoolcat --samples')"
[ "$(find samples -type f | wc -l)" = "$(find spools -type f | wc -l)" ] || die "not all samples were printed"
"$BIN/spoolcat" --samples --json "${files[@]}" spools/host0-1700000000.spool >expected.jsonl
gzip -dc samples/host0-1700000000.jsonl.gz >got.jsonl
same expected.jsonl got.jsonl
grep -q '"name":"plugin_spin"' got.jsonl || die "no names: $(head -1 got.jsonl)"
cd ..

# Packs that are killed at any time, beside one that was not.
"$spoolpack" -q "${files[@]}" -o killed spools/host1-1700000060.spool
for ms in 001 003 006 010 015 020 025 030 040 050; do
    { timeout -s KILL 0.$ms "$spoolpack" -q "${files[@]}" -o killed spools/*-1700000*.spool; } 2>/dev/null || true
done
# One that has surely begun a file: it copies a large one.
mkdir -p root/opt/demo
cp "$FIXTURES/sysroot/opt/demo/"* root/opt/demo
truncate -s +64M root/opt/demo/ladder-O0
"$spoolpack" -q --sysroot root --perf-map-dir "$PWD" --level=full -o killed spools/host0-1700000000.spool &
pack=$!
until compgen -G 'killed/.build-id/d7/.tmp-*' >/dev/null; do
    kill -0 $pack || die "the pack was too fast"
done
kill -KILL $pack
wait $pack 2>/dev/null || true
compgen -G 'killed/.build-id/d7/.tmp-*' >/dev/null || die "the pack was not killed in time"
run 0 "$spoolpack" --check -q killed
grep -q ': whole$' out || die "$(<out)"
run 0 "$spoolpack" --prune killed
compgen -G 'killed/.build-id/d7/.tmp-*' >/dev/null || die "what is young was removed"
run 0 "$spoolpack" --prune --older-than 0 killed
grep -q '^\.build-id/d7/\.tmp-' out || die "$(<out)"
clean killed

# It can be used as any other.
pack killed 25
clean killed
"$BIN/spool2pprof" -q "${nowhere[@]}" --symbols killed --gzip-level 0 -o all spools/*.spool
same all.expected all
