#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What a user is told who gets little: nothing selected, nothing recorded, no names.
. "$(dirname "$0")/_common.sh"

# hint TEXT OPTION... : the only line on standard error.
hint() {
    local text=$1
    shift
    run 0 "$spool2folded" "$@" in
    equal err "${text:+spool2folded: $text}"
}

make in <<'END'
interval 1ms
names f main
comm 40 app
comm 50 make
sample 1ms 40 41 f main
sample 2001ms 40 42 f main
sample 3ms 50 50 f
END
none='no sample selected of 3'
hint "$none: the spool's processes are 40, 50" --pid=7
hint "$none: the spool's processes are 40, 50" --pid=7 --tid=41
hint "$none: the spool's threads are 41, 42, 50" --tid=7
hint "$none" --pid=40 --tid=50
hint "$none: no process name matches --comm; there are app, make" --comm='ap'
hint "$none: no thread name matches --thread" --comm='a*' --thread=x
hint "$none: the spool covers 0 s to 2.00 s" --from=3s
hint "$none: no frame matches --frame-filter" --frame-filter='^g$'
hint "$none: no stack has kernel frames, which spoolrecord records with --kernel" --kernel=only
hint '' --pid=7 -q
hint '' --pid=40

# Many ids are a few and a number.
for ((i = 1; i <= 20; i++)); do echo "sample ${i}ms $i $i f"; done | cat <(echo 'names f') - | make in
hint "no sample selected of 20: the spool's processes are 1, 2, 3, 4, 5, 6 and 14 more" --pid=77

# Nothing was recorded. Where a cut tail was told of, that is enough.
cp "$cases/empty-v3.spool" in
hint 'the spool has no samples'
hint '' -q
run 0 "$spool2folded" in in
equal err 'spool2folded: the spools have no samples'
printf '\x06' >>in
run 0 "$spool2folded" in
[[ $(<err) == 'spool2folded: in: cut off at byte '*'; kept 0 samples' ]] || die "$(<err)"

# Files of another machine. Whoever has said where they are, is not told how to.
cp "$o2" in
sed -i 's|/opt/demo|/opt/none|g; s|/usr/lib/|/usr/non/|g' in
names='no frame has a name from its file: --symbols, --sysroot or --debug-dir find the files of another machine'
hint "$names (--verbose says what is missing)"
hint '' -q
hint '' --no-symbols
mkdir root
hint '' --sysroot=root
hint '' --symbols=root

# Python without perf maps.
cp "$stackpulse/python/py312.spool" in
python='Python functions have no names: python -X perf (3.12 or newer) writes perf maps'
hint "$python, which --perf-map-dir finds elsewhere" --sysroot=root --perf-map-dir=root
hint '' --sysroot=root --perf-map-dir="$stackpulse/python"
hint '' --sysroot=root --perf-maps=none
