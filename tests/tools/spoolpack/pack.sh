#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What is packed, where it goes, and that it says the same as the files it came from.
. "$(dirname "$0")/_common.sh"
command -v jq >/dev/null || { echo "no jq"; exit 77; }
cp "$o2" cap.spool

# names OPTION...: stacks with lines, of cap.spool unless another is named, without this machine's files.
names() {
    "$spool2folded" "${nowhere[@]}" --with-lines "$@"
}
"$spool2folded" --with-lines "${files[@]}" cap.spool >expected

# A folder, tar files, and standard output say the same.
run 0 "$spoolpack" "${files[@]}" -o store cap.spool
equal out ''
equal err 'spoolpack: cap.spool: 1 of 3 files has no symbols on this machine (--verbose names them)'
clean store
for archive in a.tar a.tar.gz a.tgz; do
    run 0 "$spoolpack" -q "${files[@]}" -o $archive cap.spool
    equal err ''
    run 0 "$spoolpack" --check -q $archive
done
"$spoolpack" -q "${files[@]}" -o - cap.spool | gzip -dc >stdout.tar
for archive in store a.tar a.tar.gz a.tgz stdout.tar; do
    names --symbols $archive cap.spool >got
    same expected got
done
[ "$(tar tf a.tar | tail -1)" = "$(cd store && ls captures/*/manifest-*)" ] || die "the manifest is not the last file of a tar file"

# The manifest.
[ "$(manifest store .spool.sha256)" = "$(sha256sum <cap.spool | cut -d' ' -f1)" ] || die "the spool's hash"
[ "$(basename store/captures/*/*)" = "manifest-$(sha256sum <cap.spool | cut -c-16).json" ] || die "$(ls store/captures/*)"
[ "$(manifest store '.spool.bytes, .spool.name, .level')" = "$(stat -c%s cap.spool)
cap.spool
lines" ] || die "the spool: $(<manifest.json)"
[ "$(manifest store '.modules[] | "\(.path) \(.named) of \(.addresses)"')" = '/opt/demo/ladder-O2 15 of 15
/opt/demo/plugin.so 3 of 3
/usr/lib/x86_64-linux-gnu/libc.so.6 0 of 4' ] || die "modules: $(<manifest.json)"
manifest store '.modules[2].missing' | grep -q 'No such file' || die "no reason: $(<manifest.json)"
manifest store '.modules[].files[] | "\(.sha256)  store/\(.name)"' | sha256sum -c --quiet || die "hashes"
[ "$(find store -type f | wc -l)" = 3 ] || die "$(find store)"

# A pack on a machine that has nothing takes nothing away, and adds nothing.
(cd store && sha256sum .build-id/*/*/*) >before
run 0 "$spoolpack" -v "${nowhere[@]}" -o store cap.spool
grep -qx 'packed cap.spool: 3 modules, 22 addresses, 81.8 % with a name; 0 B new, 2 files were there' err || die "$(<err)"
grep -q '^no symbols: /usr/lib/x86_64-linux-gnu/libc.so.6 (.*No such file or directory): 1,381 samples' err || die "$(<err)"
(cd store && sha256sum .build-id/*/*/*) >after
same before after
clean store
[ "$(manifest store '.modules[0].named, (.modules[0].files | length)')" = '15
1' ] || die "forgotten: $(<manifest.json)"

# Another spool of the same program: only the addresses that are new.
make other.spool <<'END'
interval 10ms
module app 77 0x400000-0x500000 0 /opt/demo/ladder-O2
sample 10ms 77 77 app+0x1150
sample +10ms 77 77 app+0x1151
END
run 0 "$spoolpack" -q "${files[@]}" -o store other.spool
[ "$(find store -name '*.lines' | wc -l)" = 3 ] || die "$(find store)"
run 0 "$spoolpack" -v "${files[@]}" -o store other.spool
grep -q '; 0 B new, 1 file was there$' err || die "$(<err)"
clean store

# Repacking: an archive as the source.
run 0 "$spoolpack" -q "${nowhere[@]}" --symbols a.tgz -o again cap.spool
names --symbols again cap.spool >got
same expected got

# Less and more: names alone, then lines, then the files.
run 0 "$spoolpack" -q "${files[@]}" --level=names -o levels cap.spool
[ -n "$(find levels -name '*.names')" ] && [ -z "$(find levels -name '*.lines')" ] || die "$(find levels)"
"$spool2folded" "${files[@]}" --no-inlines cap.spool >expected.names
"$spool2folded" "${nowhere[@]}" --no-inlines --symbols levels cap.spool >got
same expected.names got
run 0 "$spoolpack" -q "${files[@]}" -o levels cap.spool
names --symbols levels cap.spool >got
same expected got
run 0 "$spoolpack" -q "${files[@]}" --level=full -o levels cap.spool
[ "$(find levels -name '*.debug' | wc -l)" = 2 ] || die "$(find levels)"
id=$(manifest levels '.modules[0].key')
cmp "$FIXTURES/sysroot/opt/demo/ladder-O2" "levels/.build-id/${id::2}/${id:2}.debug" || die "the debug file"
rm -r levels/.build-id/*/*.syms
names --symbols levels cap.spool >got
same expected got

# Kernel symbols and perf maps, and that a pack without them leaves those that are there.
make jit.spool <<'END'
interval 10ms
module heap 40 0x1000-0x2000 0 //anon
module heap2 41 0x1000-0x2000 0 //anon
kernel-module text 0xffffffff81000000-0xffffffff82000000 0 [kernel.kallsyms]_text
sample 10ms 40 40 heap+0x10
sample +10ms 40 40 heap+0x110
sample +10ms 41 41 text+0x10 heap2+0x10
sample +10ms 41 41 text+0x110 heap2+0x10
sample +10ms 42 42 0x123
END
mkdir maps
printf '1000 20 one\n1100 20 two\n1200 20 three\n' >maps/perf-40.map
printf 'ffffffff8100%s\n' '0000 T start' '0100 T next' '0200 T after' '0300 T end' >maps/kallsyms
here=("${nowhere[@]}" --perf-map-dir maps --kallsyms maps/kallsyms)
run 0 "$spoolpack" -v "${here[@]}" -o jit jit.spool
[[ $(<err) == *'spoolpack: jit.spool: 1 of 2 perf maps has no symbols on this machine'* ]] || die "$(<err)"
grep -qx 'no symbols: perf-41.map (maps/perf-41.map: no such file): 2 samples' err || die "$(<err)"
clean jit
"$spool2folded" "${here[@]}" jit.spool >expected.jit
for i in 1 2; do
    "$spool2folded" "${nowhere[@]}" --symbols jit jit.spool >got
    same expected.jit got
    [ "$(cat jit/captures/*/perf-40.map)" = '1000 20 one
1100 20 two' ] || die "the perf map"
    run 0 "$spoolpack" -q "${nowhere[@]}" --no-kernel-symbols -o jit jit.spool
    [ "$(manifest jit '.kernel.named, (.kernel.files | length), (.perf_maps[0].files | length)')" = '2
2
1' ] || die "forgotten: $(<manifest.json)"
    clean jit
done
# A beginning of the capture, whole or cut off: the same capture, and what is there of the rest stays.
size=$(stat -c%s jit.spool)
head -c $((size - 26)) jit.spool >begin.spool
"$spool2folded" --no-symbols -q begin.spool >out
grep -q '_text+0x10 ' out && ! grep -q '_text+0x110' out || die "the beginning is not one: $(<out)"
run 0 "$spoolpack" -q "${here[@]}" -o jit begin.spool
[ "$(ls -d jit/captures/* | wc -l) $(ls jit/captures/*/manifest-* | wc -l)" = '1 2' ] || die "$(find jit)"
clean jit
"$spool2folded" "${nowhere[@]}" --symbols jit jit.spool >got
same expected.jit got
rm -r jit
run 0 "$spoolpack" -q "${here[@]}" -o jit begin.spool
run 0 "$spoolpack" -q "${here[@]}" -o jit jit.spool
clean jit
"$spool2folded" "${nowhere[@]}" --symbols jit jit.spool >got
same expected.jit got
run 0 "$spoolpack" -q "${here[@]}" --level=full -o jit jit.spool
cmp maps/perf-40.map jit/captures/*/perf-40.map || die "not the whole perf map"

# Standard input, a FIFO and gzip are the same capture. Their hashes are of their own bytes.
for how in stdin pipe fifo gzip; do
    rm -rf input
    case $how in
    stdin) run=("$spoolpack" -q "${files[@]}" -o input) && "${run[@]}" <cap.spool ;;
    pipe) cat cap.spool | "$spoolpack" -q "${files[@]}" -o input - ;;
    fifo)
        mkfifo fifo
        cat cap.spool >fifo &
        "$spoolpack" -q "${files[@]}" -o input fifo
        ;;
    gzip)
        gzip -nc cap.spool >cap.spool.gz
        "$spoolpack" -q "${files[@]}" -o input cap.spool.gz
        ;;
    esac
    [ "$(ls input/captures)" = "$(manifest again .capture)" ] || die "$how is another capture"
    hash=$(sha256sum <cap.spool | cut -d' ' -f1) name=null
    [ $how != fifo ] || name=fifo
    [ $how != gzip ] || hash=$(sha256sum <cap.spool.gz | cut -d' ' -f1) name=cap.spool.gz
    [ "$(manifest input '.spool.sha256, .spool.name')" = "$hash
$name" ] || die "$how: $(<manifest.json)"
done

# The same bytes from the same spools.
export SOURCE_DATE_EPOCH=1700000000
run 0 "$spoolpack" -q "${files[@]}" -o one.tar.gz cap.spool jit.spool
(umask 077 && TMPDIR=$PWD "$spoolpack" -q "${files[@]}" -o two.tar.gz cap.spool jit.spool)
same one.tar.gz two.tar.gz
tar xzf one.tar.gz --one-top-level=unpacked
clean unpacked
names --symbols unpacked cap.spool >got
same expected got

# Packs at once.
for i in 1 2 3 4; do
    "$spoolpack" -q "${files[@]}" -o busy cap.spool other.spool &
done
wait
clean busy
names --symbols busy cap.spool >got
same expected got

# A program without a build id goes by its hash.
printf 'int main(void) { volatile int i = 0; while (i < 1000) i++; return 0; }\n' >plain.c
mkdir root
"$CC" -g -Wl,--build-id=none -o root/plain plain.c
make plain.spool <<END
interval 10ms
module plain 40 0x400000-0x500000 0 /plain
sample 10ms 40 40 plain+0x$(nm root/plain | awk '$3 == "main" { print $1 }')
END
run 0 "$spoolpack" "${nowhere[@]}" --sysroot root --level=full -o plain plain.spool
equal err ''
[ "$(manifest plain '.modules[0] | .key, .unverified, (.files | length), .missing')" = "$(sha256sum <root/plain | cut -c-40)
true
1
a file without a build id cannot be found again" ] || die "$(<manifest.json)"
clean plain
names --symbols plain plain.spool >got
"$spool2folded" "${nowhere[@]}" --sysroot root --with-lines plain.spool >expected
same expected got
grep -q 'main (.*plain.c:1)' got || die "$(<got)"

# A stripped program: where its functions begin is packed, too; and their names once its debug file is there. Both spools
# are about the same build, of which only the second one is certain.
"$CC" -g -Wl,--build-id=0x0123456789abcdef -o numbered plain.c
mkdir -p debug/.build-id/01 bare
objcopy --only-keep-debug numbered debug/.build-id/01/23456789abcdef.debug
strip -o bare/plain numbered
at=$((0x$(nm numbered | awk '$3 == "main" { print $1 }')))
for spool in doubtful certain; do
    make $spool.spool <<END
interval 10ms
module plain 40 0x400000-0x500000 0 /plain
$([ $spool = doubtful ] || echo 'note 40 build-id "0 0123456789abcdef"')
sample 10ms 40 40 plain+$((at + 1))
sample +10ms 40 40 plain+$((at + 5))
$([ $spool = certain ] || echo "sample +10ms 40 40 plain+$((at + 9))")
END
done
for spool in doubtful certain; do
    for debug in nowhere debug; do
        run 0 "$spoolpack" -q "${nowhere[@]}" --sysroot bare --debug-dir $debug -o bare.store $spool.spool
        "$spool2folded" --sysroot bare --debug-dir $debug --perf-map-dir nowhere --with-lines $spool.spool >expected
        names --symbols bare.store $spool.spool >got
        [ $spool-$debug = certain-nowhere ] || same expected got
        clean bare.store
    done
    "$BIN/spoolcat" --samples --json --sysroot bare --debug-dir debug $spool.spool >expected
    "$BIN/spoolcat" --samples --json "${nowhere[@]}" --symbols bare.store $spool.spool >got
    same expected got
    grep -q unverified got || [ $spool = certain ] || die "doubt is lost: $(<got)"
done
grep -q '"name":"main"' got || die "$(<got)"
[ "$(find bare.store -name '*.lines' | wc -l)" = 2 ] || die "pieces: $(find bare.store)"
# A debug file that is here knows more than what was packed without it; and so does the smaller piece then.
run 0 "$spoolpack" -q "${nowhere[@]}" --sysroot bare -o fewer.store doubtful.spool
"$spool2folded" --sysroot bare --debug-dir debug --symbols fewer.store certain.spool >got
grep -q ';main ' got || die "packed symbols hide a debug file: $(<got)"
run 0 "$spoolpack" -q --sysroot bare --debug-dir debug --symbols fewer.store -o other.store certain.spool
"$spool2folded" "${nowhere[@]}" --symbols other.store certain.spool >got
grep -q ';main ' got || die "packed symbols hide a debug file from packing: $(<got)"
run 0 "$spoolpack" -q "${nowhere[@]}" --sysroot bare --debug-dir debug -o fewer.store certain.spool
"$BIN/spoolcat" --samples --json "${nowhere[@]}" --symbols fewer.store certain.spool >got

# With a recorded build id, a file of which the store has everything is not looked for: also of what is no code.
id=94d81b76857beec8f87aa226f63ad902468a63f7
leaf=0x$(nm "$FIXTURES/sysroot/opt/demo/ladder-O2" | awk '$3 == "c" { print $1 }')
for name in known.spool more.spool; do
    make $name <<END
interval 10ms
module ladder 40 0x555500000000-0x555500010000 0 /opt/demo/ladder-O2
note 40 build-id "0 $id"
sample 10ms 40 40 ladder+$leaf ladder+0xfff0 ladder+$([ $name = known.spool ] && echo 0x1200 || echo 0x1300)
END
done
run 0 "$spoolpack" -q "${files[@]}" -o recorded known.spool
named() { jq -c '.modules[0] | .named, .addresses, .unverified, .missing' recorded/captures/*/manifest-*.json; }
named >expected
pieces=$(ls "recorded/.build-id/${id::2}/${id:2}.syms")
rm recorded/captures/*/manifest-*.json
run 0 "$spoolpack" -q "${nowhere[@]}" -o recorded known.spool
named >got
same expected got
[ "$(ls "recorded/.build-id/${id::2}/${id:2}.syms")" = "$pieces" ] || die 'another piece'
rm recorded/captures/*/manifest-*.json
run 0 "$spoolpack" -v "${nowhere[@]}" -o recorded more.spool
jq -e '.modules[0].named < .modules[0].addresses' recorded/captures/*/manifest-*.json >got || die "$(named)"

# A manifest that knows the build id of one module of a file only, as the spool was shorter then.
make two.spool <<END
interval 10ms
module first 40 0x555500000000-0x555500010000 0 /opt/demo/ladder-O2
sample 10ms 40 40 first+$leaf
module second 41 0x555600000000-0x555600010000 0 /opt/demo/ladder-O2
sample 20ms 41 41 second+$leaf second+0x1200
END
head -c $(($(grep -abo /opt/demo/ladder-O2 two.spool | tail -1 | cut -d: -f1) - 20)) two.spool >short.spool
run 0 "$spoolpack" -q --salvage "${files[@]}" -o short short.spool
[ "$(manifest short '.modules[0].module_ids | length')" = 1 ] || die "$(<manifest.json)"
run 0 "$spoolpack" -q "${files[@]}" --symbols short -o mixed two.spool
run 0 "$spoolpack" -q "${files[@]}" -o plainly two.spool
manifest plainly '.modules[] | .key, .addresses, .named' >expected
manifest mixed '.modules[] | .key, .addresses, .named' >got
same expected got
names --symbols plainly two.spool >expected
names --symbols mixed two.spool >got
same expected got

# Nothing but a header; a damaged spool; one that is none.
make empty.spool <<'END'
interval 10ms
END
run 0 "$spoolpack" -o nothing empty.spool
equal err ''
[ "$(ls nothing/captures)" = "$(sha256sum <empty.spool | cut -c-32)" ] || die "$(find nothing)"
clean nothing
run 1 "$spoolpack" -q "${files[@]}" -o damaged.tar cap.spool "$cases/unknown-tag-9.spool"
[ ! -e damaged.tar ] || die "an archive in spite of a damaged spool"
run 0 "$spoolpack" -q --salvage "${files[@]}" -o damaged.tar cap.spool "$cases/unknown-tag-9.spool"
run 1 "$spoolpack" --strict -o damaged "$synth/churn-cut.spool"
run 1 "$spoolpack" -o damaged plain.c
[ -z "$(find damaged -type f)" ] || die "$(find damaged)"

# What is in the way, and what cannot be written.
echo >file
run 1 "$spoolpack" -o file cap.spool
equal err 'spoolpack: file: is there and is no folder (the name of an archive in one file ends in .tar.gz, .tgz or .tar)'
run 1 "$spoolpack" -o none/store cap.spool
equal err 'spoolpack: none/store: making the folder failed: No such file or directory'
cp a.tar.gz before.tar.gz
for name in a.tar.gz link.tgz; do
    ln -sf a.tar.gz link.tgz
    run 1 "$spoolpack" -q "${nowhere[@]}" -o $name cap.spool
    equal err "spoolpack: $name: exists: -o FILE names another, --force replaces it"
    same before.tar.gz a.tar.gz
done
run 0 "$spoolpack" -q "${nowhere[@]}" --force -o a.tar.gz cap.spool
! cmp -s before.tar.gz a.tar.gz || die "--force replaces nothing"
run 0 "$spoolpack" -q --force "${files[@]}" -o absent.tar.gz cap.spool
run 0 "$spoolpack" --check -q absent.tar.gz
mkdir dir.tar
run 1 "$spoolpack" -o dir.tar cap.spool
equal err 'spoolpack: dir.tar: is a directory'
for folder in .build-id captures; do
    cp -r store linked
    mv linked/$folder elsewhere
    ln -s ../elsewhere linked/$folder
    (cd elsewhere && find . -type f -printf '%p %T@\n' | sort) >before
    run 1 "$spoolpack" -q "${files[@]}" -o linked cap.spool
    equal err "spoolpack: linked/$folder: a link, where the store has a folder"
    (cd elsewhere && find . -type f -printf '%p %T@\n' | sort) >after
    same before after
    rm -r linked elsewhere
done
run 1 env TMPDIR="$PWD/none" "$spoolpack" -o damaged <(cat cap.spool)
grep -q "temporary file in $PWD/none: No such file or directory" err || die "$(<err)"
cp -r store before.store
for ignored in '' 'trap "" XFSZ;'; do
    status=0
    bash -c "$ignored ulimit -f 1; exec \"\$@\"" - "$spoolpack" "${files[@]}" --level=full -o store cap.spool >out 2>err || status=$?
    [ $status != 0 ] || die "packed in spite of ulimit"
    [ -z "$(find store -name '.tmp-*')" ] || die "temporary files: $(find store)"
done
grep -q 'File too large' err || die "$(<err)"
clean store
names --symbols store cap.spool >got
"$spool2folded" --with-lines "${files[@]}" cap.spool >expected
same expected got

# Out of descriptors all is packed or nothing, and why is said: the files are no worse for it.
run 0 "$spoolpack" -q "${files[@]}" -o all.tar.gz cap.spool
"$spool2folded" "${files[@]}" cap.spool >expected
short=0
for ((limit = 4; limit <= 24; limit++)); do
    status=0
    bash -c "ulimit -n $limit; exec \"\$@\"" - "$spoolpack" -q "${files[@]}" -o few.tar.gz cap.spool >out 2>err || status=$?
    [ $status != 127 ] || continue # the loader was short
    [ $status = 0 ] || grep -qE '^spoolpack: .*[Tt]oo many open files' err || die "$limit descriptors: status $status: $(<err)"
    ! grep -q '^spoolpack: symbols: too many open files' err || short=$((short + 1))
    [ $status != 0 ] || names --symbols few.tar.gz cap.spool >got
    [ $status != 0 ] || names --symbols all.tar.gz cap.spool | diff - got || die "$limit descriptors: symbols are missing"
    [ $status = 0 ] || [ ! -e few.tar.gz ] || die "$limit descriptors: an archive in spite of $(<err)"
    rm -f few.tar.gz
    bash -c "ulimit -n $limit; exec \"\$@\"" - "$spool2folded" "${files[@]}" cap.spool >got 2>err || continue
    diff expected got || die "$limit descriptors: names are missing"
done
((short > 0)) || die "descriptors were never short while symbols were read"
