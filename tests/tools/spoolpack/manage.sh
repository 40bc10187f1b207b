#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# --check, --list and --prune of stores that are made by hand here: whole, damaged, with strangers and links in them.
. "$SRC/tests/tools/_common.sh"
spoolpack=$BIN/spoolpack
one=00112233445566778899aabbccddeeff
two=ffeeddccbbaa99887766554433221100
sha0=$(printf '%064d' 0)

# piece FOLDER KIND TEXT: a piece of packed symbols, as far as its name goes; prints that.
piece() {
    local hash
    hash=$(printf '%s' "$3" | sha256sum | cut -c1-32)
    mkdir -p "store/$1"
    printf '%s' "$3" >"store/$1/$hash.$2"
    echo "$1/$hash.$2"
}

# file NAME: the entry of a manifest.
file() {
    jq -nc --arg name "$1" --arg sha "$(sha256sum <"store/$1" | cut -c1-64)" \
        --argjson bytes "$(stat -c %s "store/$1")" '{name: $name, bytes: $bytes, sha256: $sha}'
}

# manifest CAPTURE NUMBER SPOOL MODULES KERNEL_FILES
manifest() {
    mkdir -p "store/captures/$1"
    jq -n --arg capture "$1" --arg spool "$3" --arg sha "$sha0" --argjson modules "$4" --argjson kernel "$5" '
        {version: 1, capture: $capture, packed_at: "2026-11-30T13:45:00Z", level: "lines",
         spool: {name: $spool, sha256: $sha, bytes: 10, samples: 41233, start_us: 1700000000000000},
         machine: {host: null}, future: [1.5],
         modules: $modules, perf_maps: [{pid: 7, addresses: 1, files: [], missing: "no such file"}],
         kernel: {addresses: 2, named: 1, files: $kernel, missing: null}}' \
        >"store/captures/$1/manifest-$2.json"
}

# module PATH MISSING FILE...
module() {
    local path=$1 missing=$2
    shift 2
    for name in "$@"; do file "$name"; done |
        jq -sc --arg path "$path" --argjson missing "$missing" \
            '{path: $path, build_id: "abcd", key: "abcd", module_ids: [1, 3], addresses: 8, named: 6, files: .,
              missing: $missing}'
}

make_store() {
    rm -rf store
    mkdir -p "store/captures/$one" store/.build-id
    a=$(piece .build-id/ab/cd.syms lines 'what is known of some')
    b=$(piece .build-id/ab/cd.syms names 'addresses of that file')
    c=$(piece .build-id/12/34.syms lines 'another file')
    printf kernel >"store/captures/$one/kernel.syms"
    printf elf >store/.build-id/12/34.debug
    manifest $one 0123456789abcdef cap.spool "[$(module /usr/bin/foo null "$a" "$b")]" \
        "[$(file captures/$one/kernel.syms)]"
    manifest $two fedcba9876543210 $'b\e.spool' \
        "[$(module /usr/bin/bar '"no lines"' "$c" .build-id/12/34.debug)]" '[]'
}

check() { # STATUS LINES
    run "$1" "$spoolpack" --check -q store
    equal out "$2"
    equal err ''
}

m1=captures/$one/manifest-0123456789abcdef.json
m2=captures/$two/manifest-fedcba9876543210.json
s1='cap.spool (capture 00112233)'
s2='b\x1b.spool (capture ffeeddcc)'

# A whole store. What could not be packed is said, and is no fault.
make_store
check 0 '2 captures, 5 files, 64 B: whole'
run 0 "$spoolpack" --check store
equal out "$s1: perf map of process 7: no such file
$s2: /usr/bin/bar: no lines
$s2: perf map of process 7: no such file
2 captures, 5 files, 64 B: whole"
for tar in store.tar store.tar.gz; do
    tar -C store -caf $tar .
    cp out expected
    run 0 "$spoolpack" --check $tar
    same expected out
done

run 0 "$spoolpack" --check -q store store.tar
equal out '2 captures, 5 files, 64 B: whole
2 captures, 5 files, 64 B: whole'

# Where the progress line and these lines share a terminal, it is taken away first.
if command -v script >/dev/null; then
    script -qec "stty cols 80; $spoolpack --check --progress=always store" /dev/null </dev/null 2>/dev/null >seen || true
    grep -q 'checking files' seen || die "no progress: $(<seen)"
    tr -d '\n' <seen | grep -q "checking files[^$(printf '\r')]*$(printf '\r\033\\[K')cap.spool " || die "the line stays: $(<seen)"
fi

# A later pack may have put more into a file of the capture.
printf 'more of the kernel' >"store/captures/$one/kernel.syms"
check 1 "$s1: kernel: captures/$one/kernel.syms has 18 bytes, not 6
2 captures, 5 files, 76 B: 1 fault"
manifest $one aaaaaaaaaaaaaaaa cap.spool '[]' "[$(file captures/$one/kernel.syms)]"
check 0 '2 captures, 5 files, 76 B: whole'

# Damage of every kind, each in a line.
make_store
printf 'What is known of some' >"store/$a"
rm "store/$b"
printf ELF >store/.build-id/12/34.debug
mkfifo "store/.build-id/12/34.syms/$(printf '%032d' 1).lines"
echo '{"version": 1,' >"store/captures/$two/manifest-0.json"
cp "store/$m1" "store/captures/$two/manifest-1.json"
jq '.kernel.files[0].name = "../out"' "store/$m1" >"store/captures/$one/manifest-2.json"
echo out >out_of_it
check 1 "captures/$one/manifest-2.json: byte $(grep -bo '"../out"' "store/captures/$one/manifest-2.json" |
    cut -d: -f1): the name of a file that is not in the archive
captures/$two/manifest-0.json: byte 15: a key is missing
captures/$two/manifest-1.json: it is of capture $one
$s2: /usr/bin/bar: .build-id/12/34.debug has another SHA-256
.build-id/12/34.syms/00000000000000000000000000000001.lines is no regular file, or leads out of the archive
$s1: /usr/bin/foo: $b is missing
$a: its bytes are not those of its name
$s1: /usr/bin/foo: $a has another SHA-256
2 captures, 4 files, 42 B: 8 faults"
# Files of holes are not read to their ends.
truncate -s 500G "store/$a" "store/.build-id/12/34.syms/$(printf '%032d' 2).lines"
run 1 timeout 60 "$spoolpack" --check -q store
grep -qx "$s1: /usr/bin/foo: $a has 536870912000 bytes, not 21" out || die "$(<out)"
grep -qx ".build-id/12/34.syms/$(printf '%032d' 2).lines: its bytes are not those of its name" out || die "$(<out)"
run 1 "$spoolpack" --check absent
equal err 'spoolpack: absent: No such file or directory'
run 1 env TMPDIR="$PWD/absent" "$spoolpack" --check store.tar.gz
equal err "spoolpack: store.tar.gz: temporary file in $PWD/absent: No such file or directory"

# What cannot be looked into is not whole.
mkdir strange
mv store/.build-id store/captures strange
ln -s ../strange/captures store
echo >store/.build-id
check 1 '.build-id: not a folder
captures: not a folder
0 captures, 0 files, 0 B: 2 faults'
cp out expected_strange
tar -C store -cf strange.tar captures .build-id
run 1 "$spoolpack" --check strange.tar
same expected_strange out
rm store/captures store/.build-id
mkdir store/captures
ln -s ../../strange/captures/$one store/captures
check 1 "captures/$one: not a folder
0 captures, 0 files, 0 B: 1 fault"
rm -r store/captures
mv strange/captures strange/.build-id store

# The list: what can be read of it.
run 1 "$spoolpack" --list store
equal out 'spool        start                 host  samples  level  files  size  addresses  named  missing
cap.spool    2023-11-14T22:13:20Z  -      41,233  lines      3  49 B         10  70.0%        1
b\x1b.spool  2023-11-14T22:13:20Z  -      41,233  lines      2  15 B         10  70.0%        2'
[ "$(wc -l <err)" = 3 ] || die "$(<err)"
grep -qx "spoolpack: store: captures/$two/manifest-1.json: it is of capture $one" err || die "$(<err)"
make_store
run 0 "$spoolpack" --list --json store
[ "$(wc -l <out)" = 2 ] || die "$(<out)"
head -1 out | jq -S 'del(.file)' >listed
jq -S 'del(.future) | .machine += {kernel_release: null, kernel_build_id: null, boot_id: null}
       | .modules[] += {level: null, unverified: false, samples: 0}' "store/$m1" >expected
same expected listed
[ "$(tail -1 out | jq -r .file)" = "$m2" ] || die "$(tail -1 out)"
# Oldest first, whatever their ids are; the host is the first word of its note.
jq '.spool.start_us = 1600000000000000 | .machine.host = "web\u001b1 6.1.0 x86_64"' "store/$m2" >changed
mv changed "store/$m2"
jq '.spool |= del(.start_us)' "store/$m1" >"store/captures/$one/manifest-0.json"
jq '.machine.host = ""' "store/$m1" >"store/captures/$one/manifest-1.json"
run 0 "$spoolpack" --list store
awk '{ print $1, $2, $3 }' out >columns
equal columns 'spool start host
b\x1b.spool 2020-09-13T12:26:40Z web\x1b1
cap.spool 2023-11-14T22:13:20Z -
cap.spool 2023-11-14T22:13:20Z -
cap.spool - -'
mkdir empty
run 1 "$spoolpack" --list empty
equal out ''
equal err "spoolpack: empty: not a store of spoolpack: it has no folder captures"
run 1 "$spoolpack" --check empty
equal err "spoolpack: empty: not a store of spoolpack: it has no folder captures"

# Prune: what a manifest names stays, and so does what is young, what is a link, and what is not the store's.
prune() { # STATUS LINES OPTION...
    local status=$1 lines=$2
    shift 2
    run "$status" "$spoolpack" --prune "$@" store
    equal out "$lines"
}
old() { find store -exec touch -h -d '3 days ago' {} +; }
make_store
d=$(piece .build-id/ff/00.syms lines 'of no manifest')
e=$(piece .build-id/ab/cd.syms lines 'nor this')
mkdir -p "store/captures/${one//0/1}" store/captures/mine store/.build-id/ee outside
printf kernel >"store/captures/${one//0/1}/kernel.syms"
echo mine >store/captures/mine/file
echo mine >store/mine
echo out >outside/file
ln -s ../../outside store/.build-id/ab/99.syms
ln -s ../../../outside/file store/.build-id/ab/99.debug
printf half >"store/captures/$one/.tmp-12-abcdef"
gone=".build-id/ab/cd.syms/${e##*/}
.build-id/ee/
$d
.build-id/ff/00.syms/
.build-id/ff/
captures/$one/.tmp-12-abcdef
captures/${one//0/1}/kernel.syms
captures/${one//0/1}/"
prune 0 '0 files, 0 B removed'
old
touch "store/$d"
prune 0 "$(grep -v /ff/ <<<"$gone")
3 files, 18 B would be removed" --dry-run
prune 0 '0 files, 0 B would be removed' --dry-run --older-than=400000s
cp -a store quiet
run 0 "$spoolpack" --prune -q quiet
equal out ''
equal err ''
[ ! -e "quiet/.build-id/ab/cd.syms/${e##*/}" ] || die "nothing was removed quietly"
rm -r quiet
prune 0 "$gone
4 files, 32 B would be removed" --dry-run --older-than=0s
find store | sort >before
old
prune 0 "$gone
4 files, 32 B removed"
find store | sort >after
diff before after | sed -n 's/^< store.//p' | sort >removed
sed 's,/$,,' <<<"$gone" | sort >expected
same expected removed
[ "$(<outside/file)" = out ] || die 'a file outside of the store'
check 0 '2 captures, 5 files, 64 B: whole'
prune 0 '0 files, 0 B removed'

# A capture goes with its folder; what it alone needs then, with the next prune.
rm -r "store/captures/$two"
old
prune 0 ".build-id/12/34.debug
$c
.build-id/12/34.syms/
.build-id/12/
2 files, 15 B removed"
check 0 '1 capture, 3 files, 49 B: whole'

# Where not all manifests are known, and where there are none to go by, everything stays.
make_store
echo nonsense >"store/$m2"
old
find store | sort >before
prune 1 ''
equal err "spoolpack: store/$m2: byte 0: no JSON value
spoolpack: store: nothing was removed"
make_store
mv "store/captures/$two" elsewhere
ln -s ../../elsewhere "store/captures/$two"
old
prune 1 ''
equal err "spoolpack: store/captures/$two: a link; what it leads to is not known, so nothing is removed"
rm -r store/captures
prune 1 ''
equal err 'spoolpack: store/captures: No such file or directory; nothing is removed from what is no store'
[ -e "store/$c" ] || die 'removed from what is no store'
run 1 "$spoolpack" --prune store.tar
equal err 'spoolpack: store.tar: not a folder'
