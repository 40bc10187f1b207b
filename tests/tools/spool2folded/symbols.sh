#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Where names come from besides the recorded files: separate debug files, folders of symbols, unwind data, and what the
# report says when there are none. The demo's ladder-O2, taken apart with objcopy.
. "$(dirname "$0")/_common.sh"
for tool in objcopy readelf nm; do
    if ! command -v "$tool" >/dev/null; then
        echo "skipped: no $tool"
        exit 77
    fi
done
program=$FIXTURES/sysroot/opt/demo/ladder-O2
id=$(readelf -n "$program" | sed -n 's/.*Build ID: //p')
store=.build-id/${id:0:2}
kernel=$stackpulse/kernel/syscalls-O2.spool
python=$stackpulse/python/py312.spool

mkdir -p root/opt/demo "debug/$store" empty "by-id/$store" by-path/opt/demo by-name maps kernel nothing
objcopy --strip-all "$program" root/opt/demo/ladder-O2
objcopy --only-keep-debug "$program" "debug/$store/${id:2}.debug"
cp "$program" "by-id/$store/${id:2}"
cp "$program" by-path/opt/demo/
cp "$program" by-name/
cp "$stackpulse"/python/perf-*.map maps/
cp "$stackpulse/kernel/kallsyms.txt" kernel/kallsyms

# named OPTION...: the worker's frames have their names; unnamed OPTION...: they have not.
named() {
    run 0 "$spool2folded" --perf-map-dir "$PWD/nothing" "$@" "$o2"
    grep -q ';worker;a;b;c ' out || die "no names: $* ($(tail -1 out))"
}
unnamed() {
    run 0 "$spool2folded" --perf-map-dir "$PWD/nothing" "$@" "$o2"
    ! grep -q 'worker' out || die "names: $*"
    [ "$(total out)" = 1381 ] || die "$(total out) samples: $*"
}

# Kernel symbols of a folder: the first that has some, and a file that is named comes before any.
run 0 "$spool2folded" "${files[@]}" --kallsyms kernel/kallsyms "$kernel"
cp out expected
run 0 "$spool2folded" "${files[@]}" --symbols nothing --symbols kernel "$kernel"
same expected out
run 0 "$spool2folded" "${files[@]}" --no-kernel-symbols "$kernel"
cp out bare
run 0 "$spool2folded" "${files[@]}" --symbols kernel --no-kernel-symbols "$kernel"
same bare out
run 0 "$spool2folded" "${files[@]}" --symbols kernel --kallsyms absent "$kernel"
equal err 'spool2folded: absent: No such file or directory; kernel frames stay addresses'
same bare out
mkdir bad
echo nonsense >bad/kallsyms
run 0 "$spool2folded" "${files[@]}" --symbols bad "$kernel" "$kernel"
equal err 'spool2folded: bad/kallsyms: no line of it is a kernel symbol; kernel frames stay addresses'
run 0 "$spool2folded" "${files[@]}" --symbols bad --symbols kernel "$kernel"
equal err 'spool2folded: bad/kallsyms: no line of it is a kernel symbol; not used'
same expected out

# Debug files: options replace the environment, which replaces /usr/lib/debug.
unnamed --sysroot root --debug-dir empty
named --sysroot root --debug-dir debug
named --sysroot root --debug-dir empty --debug-dir "$PWD/debug"
SPOOL_DEBUG_DIRS=debug named --sysroot root
SPOOL_DEBUG_DIRS=:absent::debug: named --sysroot root
SPOOL_DEBUG_DIRS=debug unnamed --sysroot root --debug-dir empty
for nothing in '' : ::; do
    SPOOL_DEBUG_DIRS=$nothing unnamed --sysroot root
done

# Folders of symbols are asked first.
unnamed --sysroot empty --symbols nothing
for folder in by-path by-name; do
    named --sysroot empty --symbols nothing --symbols $folder
done
# No build id was recorded, so none may be guessed.
unnamed --sysroot empty --symbols by-id
named --sysroot root --symbols debug --debug-dir empty
run 0 "$spool2folded" --sysroot empty --symbols maps "$python"
grep -q ';fib ' out || die "no fib of maps/perf-21639.map"

# A perf map beside the capture, which standard input has not.
cp "$python" maps/cap.spool
cp maps/cap.spool nothing/
run 0 "$spool2folded" --sysroot empty maps/cap.spool
grep -q ';fib ' out || die "no fib of the perf map beside the spool"
(cd maps && run 0 "$spool2folded" --sysroot "$OLDPWD/empty" cap.spool && grep -q ';fib ' out) || die "no fib in its folder"
rm maps/out maps/err
run 0 "$spool2folded" --sysroot empty nothing/cap.spool
! grep -q ';fib ' out || die "a fib from nowhere"
(cd maps && "$spool2folded" --sysroot "$OLDPWD/empty" <cap.spool >../out)
! grep -q ';fib ' out || die "standard input has a folder"

# Unwind data: each address of a function without a name is its beginning.
unnamed --sysroot root --debug-dir empty --root=none
tr ';' '\n' <out | sed -n 's/^ladder-O2+0x\([0-9a-f]*\).*/\1/p' | sort -u >starts
nm "$program" | awk '{ sub(/^0*/, ""); if ($2 ~ /[tT]/) print $1 }' | sort >functions
[ -s starts ] || die "no frame of ladder-O2"
[ -z "$(comm -23 starts functions)" ] || die "no function begins at: $(comm -23 starts functions | tr '\n' ' ')"
run 0 "$spool2folded" --sysroot root --debug-dir empty --perf-map-dir nothing --unresolved=module --fold-recursion "$o2"
grep -qx 'ladder-O2;\[libc.so.6\];\[ladder-O2\] 786' out || die "$(<out)"

# The report: what a stripped file costs, and why; nothing of it counts as named.
run 0 "$spool2folded" -v --sysroot root --debug-dir empty --perf-map-dir nothing "$o2"
grep -qx 'named 0.0 % of frames, 0 stacks truncated' err || die "$(<err)"
grep -q '^no symbols: /opt/demo/ladder-O2 (.*stripped.*): 1,381 samples$' err || die "$(<err)"
run 0 "$spool2folded" -v --sysroot root --debug-dir debug --perf-map-dir nothing "$o2"
! grep -q '^no symbols: /opt/demo/ladder-O2' err || die "$(<err)"

# A file that is no kernel: -v says what became of it.
run 0 "$spool2folded" -v --sysroot "$FIXTURES/sysroot" --kallsyms kernel/kallsyms --vmlinux "$program" "$kernel"
grep -q "^vmlinux: $program: " err || die "$(<err)"
