#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The report of --verbose, line by line.
. "$(dirname "$0")/_common.sh"

sysroot=$FIXTURES/sysroot
libc=/usr/lib/x86_64-linux-gnu/libc.so.6
cp "$o2" cap.spool

run 0 "$spool2folded" -v "${files[@]}" cap.spool
equal err "cap.spool: version 3, 10.0 KiB, 1,381 samples over 3.91 s, 1 process, 5 threads
used 1,381 samples, 17 distinct stacks, 22 distinct frames
named 81.8 % of frames (elf 81.8), 0 stacks truncated
no symbols: $libc ($sysroot$libc: No such file or directory): 1,381 samples
not verified: 2 files named without a recorded build id to compare: /opt/demo/ladder-O2, /opt/demo/plugin.so"
cp out expected
run 0 "$spool2folded" "${files[@]}" cap.spool
same out expected

# A file is one line for all its processes; the most samples come first, what is not verified last.
run 0 "$spool2folded" -v "${files[@]}" "$stackpulse/ladder/exec-chain.spool"
[ "$(tail -n +4 err)" = "no symbols: $libc ($sysroot$libc: No such file or directory): 271 samples
no symbols: [unknown] (the address is in no module): 26 samples
not verified: 2 files named without a recorded build id to compare: /opt/demo/ladder-O0, /opt/demo/ladder-O2" ] || die "$(<err)"

# Perf maps that are not wanted are no names switched off.
for maps in none 1,2; do
    run 0 "$spool2folded" -v --perf-maps=$maps --sysroot "$sysroot" "$stackpulse/python/py312.spool"
    grep -qx 'no symbols: //anon (perf maps are not used for this process): 291 samples' err || die "$(<err)"
    grep '^no symbols: ' err | sed 's/.*: \([0-9,]*\) samples*$/\1/' | tr -d , >counts
    sort -c -rn counts || die "$(<err)"
done

# What is not selected is not used.
run 0 "$spool2folded" -v "${files[@]}" --frame-filter=plugin_spin cap.spool
[ "$(sed -n 2p err)" = "used 196 samples, 2 distinct stacks, 22 distinct frames" ] || die "$(sed -n 2p err)"
run 0 "$spool2folded" -v "${files[@]}" --pid 1 cap.spool
[ "$(grep -v "^cap.spool: version" err)" = "spool2folded: no sample selected of 1381: the spool's processes are 20135
used 0 samples, 0 distinct stacks, 0 distinct frames
0 stacks truncated" ] || die "$(<err)"

# Without symbols there is nothing to miss.
run 0 "$spool2folded" -v --no-symbols cap.spool
equal err "cap.spool: version 3, 10.0 KiB, 1,381 samples over 3.91 s, 1 process, 5 threads
used 1,381 samples, 17 distinct stacks, 22 distinct frames
named 0.0 % of frames, 0 stacks truncated"

# The kernel, with and without its names.
kernel=$stackpulse/kernel/syscalls-O2.spool
run 0 "$spool2folded" -v "${files[@]}" --kallsyms "$stackpulse/kernel/kallsyms.txt" "$kernel"
[ "$(sed -n 3p err)" = "named 91.8 % of frames (elf 4.5, kernel 87.4), 0 stacks truncated" ] || die "$(sed -n 3p err)"
! grep -q 'kernel.kallsyms' err || die "$(<err)"
run 0 "$spool2folded" -v "${files[@]}" --no-kernel-symbols "$kernel"
grep -q '^no symbols: \[kernel.kallsyms\] (.*): 192 samples$' err || die "$(<err)"
! grep -q 'no symbol covers' err || die "the wrong reason: $(tail -1 err)"
run 0 "$spool2folded" -v "${files[@]}" "$kernel" # recorded elsewhere
grep -q '^no symbols: \[kernel.kallsyms\] (the capture is from another boot.*): 192 samples$' err || echo "kernel: $(tail -1 err)"

# One report an input, in order; after the work.
cp "$synth/basic.spool" other.spool
run 0 "$spool2folded" -v --no-symbols other.spool cap.spool
[ "$(grep -c ': version 3, ' err)" = 2 ] || die "$(<err)"
[[ $(head -1 err) == 'other.spool: version 3, '*' 3,000 samples over '*' 2 processes, 6 threads' ]] || die "$(head -1 err)"
run 1 "$spool2folded" -v --no-symbols other.spool absent
equal err 'spool2folded: absent: open failed: No such file or directory'

# A strange name cannot fake a line.
cp cap.spool $'x\nno symbols: y'
run 0 "$spool2folded" -v --no-symbols $'x\nno symbols: y'
[ "$(wc -l <err)" = 3 ] || die "$(<err)"
[[ $(head -1 err) == 'x\x0ano symbols: y: version 3, '* ]] || die "$(head -1 err)"
