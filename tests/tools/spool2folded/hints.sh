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
hint "no frame matches --root-at '^g$'" --root-at='^g$'
hint "no frame matches --skip-below 'x|y'" --skip-below='x|y' --root-at='^f$'
hint '' --root-at=main --skip-below=f
hint '' --root-at='^g$' -q
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
where='--sysroot, --debug-dir or --symbols say where files are'
hint "in: 100 % of user frames have no name, most of them in /opt/none/ladder-O2 (no such file); $where, --verbose lists all"
run 0 "$spool2folded" in in
equal err "spool2folded: 100 % of user frames have no name, most of them in /opt/none/ladder-O2 (no such file); $where, \
--verbose lists all"
run 0 "$spool2folded" -v in
[[ $(tail -n 1 err) == "spool2folded: in: "*"; $where" || $(head -n 1 err) == "spool2folded: in: "*"; $where" ]] || die "$(<err)"
hint '' -q
hint '' --no-symbols
mkdir root
hint '' --sysroot=root
hint '' --symbols=root

# A part of them: above a fifth. In one of two files, or a few frames.
# partly FRAME...: a stack of 4 frames that have no name and so many that recorded names do.
partly() {
    make in <<END
names f $*
module gone 40 0x10000-0x20000 0 "/opt/none/a"
module other 40 0x20000-0x30000 0 "/opt/none/b"
sample 1ms 40 40 gone+0x10 gone+0x20 gone+0x30 other+0x10 f $*
END
}
partly a b c d e
hint "in: 40 % of user frames have no name, most of them in /opt/none/a (no such file); $where, --verbose lists all"
hint '' -q
partly a b c d e f1 g h i j k l m n o
hint ''

# Python without perf maps.
cp "$stackpulse/python/py312.spool" in
python='Python functions have no names: python -X perf (3.12 or newer) writes perf maps, -X perf_jit does not'
hint "$python; --perf-map-dir finds them elsewhere" --sysroot=root --perf-map-dir=root
hint '' --sysroot=root --perf-map-dir="$stackpulse/python"
hint '' --sysroot=root --perf-maps=none
