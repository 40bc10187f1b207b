#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Each option once, with what it makes of the recorded spools.
. "$(dirname "$0")/_common.sh"

# lines OPTION... : out of ladder-O2, with frames of libc as [libc.so.6], recursion folded and without inlined functions,
# to be readable.
lines() {
    run 0 "$spool2folded" "${files[@]}" --no-inlines --unresolved=module --fold-recursion "$@" "$o2"
    if [ -s out ]; then equal err ''; else [[ $(<err) == 'spool2folded: no sample selected of 1381: '?* ]] || die "$(<err)"; fi
}

lines
equal out 'ladder-O2;[libc.so.6];worker;a;b;c 786
ladder-O2;_start;[libc.so.6];main;a;b;c 200
ladder-O2;_start;[libc.so.6];main;plugin_entry;plugin_spin 196
ladder-O2;_start;[libc.so.6];main;rec;c 199'
cp out plain

# Output
lines --root=none
equal out '[libc.so.6];worker;a;b;c 786
_start;[libc.so.6];main;a;b;c 200
_start;[libc.so.6];main;plugin_entry;plugin_spin 196
_start;[libc.so.6];main;rec;c 199'
lines --root=process
same out plain
lines --root=pid
sed 's/^ladder-O2;/ladder-O2-20135;/' plain >expected
same expected out
lines --root=thread
equal out 'ladder-O2-20135;20135;_start;[libc.so.6];main;a;b;c 200
ladder-O2-20135;20135;_start;[libc.so.6];main;plugin_entry;plugin_spin 196
ladder-O2-20135;20135;_start;[libc.so.6];main;rec;c 199
ladder-O2-20135;20261;[libc.so.6];worker;a;b;c 198
ladder-O2-20135;20262;[libc.so.6];worker;a;b;c 197
ladder-O2-20135;20263;[libc.so.6];worker;a;b;c 198
ladder-O2-20135;20264;[libc.so.6];worker;a;b;c 193'
lines --weight=samples
same out plain
lines --weight=time # an interval of 2,004 microseconds
equal out 'ladder-O2;[libc.so.6];worker;a;b;c 1575144
ladder-O2;_start;[libc.so.6];main;a;b;c 400800
ladder-O2;_start;[libc.so.6];main;plugin_entry;plugin_spin 392784
ladder-O2;_start;[libc.so.6];main;rec;c 398796'
lines --annotate # nothing of the kernel, no JIT
same out plain
lines --with-modules --frame-filter=plugin
equal out 'ladder-O2;_start (ladder-O2);[libc.so.6] (libc.so.6);main (ladder-O2);plugin_entry (plugin.so);plugin_spin (plugin.so) 196'
lines --with-addresses --root-at=plugin_entry --frame-filter=plugin
[ "$(total out)" = 196 ] || die "$(<out)"
grep -qx 'ladder-O2;plugin_entry 0x[0-9a-f]*;plugin_spin 0x[0-9a-f]* [0-9]*' out || die "$(<out)"
lines --timeline
equal out 'ladder-O2;_start;[libc.so.6];main;a;b;c 200
ladder-O2;_start;[libc.so.6];main;rec;c 199
ladder-O2;_start;[libc.so.6];main;plugin_entry;plugin_spin 196
ladder-O2;[libc.so.6];worker;a;b;c 198
ladder-O2;[libc.so.6];worker;a;b;c 193
ladder-O2;[libc.so.6];worker;a;b;c 198
ladder-O2;[libc.so.6];worker;a;b;c 197'
lines --reverse
equal out 'c;b;a;main;[libc.so.6];_start;ladder-O2 200
c;b;a;worker;[libc.so.6];ladder-O2 786
c;rec;main;[libc.so.6];_start;ladder-O2 199
plugin_spin;plugin_entry;main;[libc.so.6];_start;ladder-O2 196'

# Selecting samples
lines --pid 20135
same out plain
lines --pid 1
equal out ''
lines --tid 20261,20262 --tid=20264
equal out 'ladder-O2;[libc.so.6];worker;a;b;c 588'
lines --comm 'lad*'
same out plain
lines --comm 'ladder-O[13-9]' --comm x
equal out ''
lines --thread '*' # no thread has a name
equal out ''
lines --to 100ms
equal out 'ladder-O2;_start;[libc.so.6];main;a;b;c 22'
lines --from 0.1s --to 2s
total out >first
lines --from 2
total out >>first
equal out 'ladder-O2;[libc.so.6];worker;a;b;c 711'
lines --to 100000us
total out >>first
[ "$(awk '{ n += $1 } END { print n }' first)" = 1381 ] || die "the parts of time do not add up"

# Shaping stacks
kernel=$stackpulse/kernel/syscalls-O2.spool
kallsyms=(--kallsyms "$stackpulse/kernel/kallsyms.txt")
run 0 "$spool2folded" "${files[@]}" "${kallsyms[@]}" --kernel=keep "$kernel"
[ "$(total out)" = 400 ] || die "$(total out) samples"
run 0 "$spool2folded" "${files[@]}" "${kallsyms[@]}" --kernel=only "$kernel"
[ "$(total out)" = 192 ] || die "$(total out) samples"
! grep -v do_syscall_64 out | grep -v sysvec_apic_timer_interrupt || die "a stack without kernel frames"
run 0 "$spool2folded" "${files[@]}" --kernel=drop "$kernel"
[ "$(total out)" = 400 ] || die "$(total out) samples"
! grep -q do_syscall_64 out || die "kernel frames"
run 0 "$spool2folded" "${files[@]}" --kernel=only --no-kernel-symbols "$kernel"
! grep -q do_syscall_64 out || die "kernel names"
grep -q ';0xffffffff[0-9a-f]* ' out || die "no kernel addresses"
run 0 "$spool2folded" "${files[@]}" --kernel=only --no-kernel-symbols --unresolved=module --fold-recursion --root=none "$kernel"
[ "$(total out)" = 192 ] || die "$(total out) samples"
grep -q ';\[libc.so.6\];\[kernel.kallsyms\] ' out || die "$(head -3 out)"
run 0 "$spool2folded" "${files[@]}" "${kallsyms[@]}" --annotate "$kernel"
grep -q ';main;syscalls;.*;entry_SYSCALL_64_after_hwframe_\[k\];do_syscall_64_\[k\]' out || die "no _[k]"
! grep -q 'main_\[k\]' out || die "_[k] on main"

python=$stackpulse/python/py312.spool
maps=(--sysroot "$PWD" --perf-map-dir "$stackpulse/python")
run 0 "$spool2folded" "${maps[@]}" "$python"
grep -q '^python3.12;\[truncated\];fib [0-9]*$' out || die "no fib"
! grep -q 'fib;libpython' out || die "the interpreter is shown"
[ "$(total out)" = 298 ] || die "$(total out) samples"
run 0 "$spool2folded" "${maps[@]}" --runtime=hide --annotate "$python"
grep -q ';fib_\[j\] ' out || die "no fib_[j]"
run 0 "$spool2folded" "${maps[@]}" --runtime=show "$python"
grep -q ';fib;libpython3.12.so.1.0+0x' out || die "the interpreter is not shown"
for mode in none 1,2; do
    run 0 "$spool2folded" --sysroot "$PWD" --perf-maps=$mode "$python"
    ! grep -q ';fib' out || die "--perf-maps=$mode: fib"
done
for mode in auto all 21639 1,21639; do
    run 0 "$spool2folded" "${maps[@]}" --perf-maps=$mode "$python"
    grep -q ';fib ' out || die "--perf-maps=$mode: no fib"
done

lines --frame-filter='^(rec|plugin_)'
equal out 'ladder-O2;_start;[libc.so.6];main;plugin_entry;plugin_spin 196
ladder-O2;_start;[libc.so.6];main;rec;c 199'
lines --root-at='^main$'
equal out 'ladder-O2;[libc.so.6];worker;a;b;c 786
ladder-O2;main;a;b;c 200
ladder-O2;main;plugin_entry;plugin_spin 196
ladder-O2;main;rec;c 199'
lines --skip-below='^(main|worker)$'
equal out 'ladder-O2;[libc.so.6];worker 786
ladder-O2;_start;[libc.so.6];main 595'
lines --max-depth 3
equal out 'ladder-O2;[2 frames omitted];a;b;c 786
ladder-O2;[2 frames omitted];main;plugin_entry;plugin_spin 196
ladder-O2;[2 frames omitted];main;rec;c 199
ladder-O2;[3 frames omitted];a;b;c 200'
run 0 "$spool2folded" "${files[@]}" --no-inlines --max-depth=2 --frame-filter=rec --unresolved=address "$o2"
equal out 'ladder-O2;[24 frames omitted];rec;c 199'
run 0 "$spool2folded" "${files[@]}" --no-inlines --tid 20261 "$o2"
equal out 'ladder-O2;libc.so.6+0x1098eb;libc.so.6+0x891f4;worker;a;b;c 198'
for mode in full short none; do
    lines --demangle=$mode # C has nothing to demangle
    same out plain
done

# Stacks that were cut are all under [truncated], behind the root frames.
run 0 "$spool2folded" "${files[@]}" --root=pid "$stackpulse/ladder/ladder-O2-smallstack.spool"
[ "$(grep -c '\[truncated\]' out)" -gt 0 ] || die "no [truncated]"
! grep '\[truncated\]' out | grep -qv '^ladder-O2-[0-9]*;\[truncated\];' || die "[truncated] inside a stack"

# Symbols
run 0 "$spool2folded" --no-symbols "$o2"
! grep -q main out || die "names with --no-symbols"
grep -q '^ladder-O2;ladder-O2+0x1350;libc.so.6+0x27304;' out || die "$(head -2 out)"
run 0 "$spool2folded" --sysroot "$PWD" --perf-map-dir "$PWD" "$o2"
! grep -q main out || die "names from an empty sysroot"
# Files of names that cannot be used cost a warning at most.
run 0 "$spool2folded" "${files[@]}" --no-kernel-symbols "$kernel"
cp out expected
printf 'nonsense\n' >bad
for file in absent bad .; do
    run 0 "$spool2folded" --kallsyms $file "${files[@]}" "$kernel" "$kernel"
    [[ $(<err) == "spool2folded: $file: "*'; kernel frames stay addresses' ]] || die "$(<err)"
    [ "$(wc -l <err)" = 1 ] || die "$(<err)"
    run 0 "$spool2folded" -q --kallsyms $file "${files[@]}" "$kernel"
    equal err ''
    same out expected
done
mkdir hostile
truncate -s 1G hostile/perf-21639.map
limit=500000
[ -z "${SANITIZE_FLAGS:-}" ] || limit=unlimited # a sanitizer's own memory is beyond any limit
run 0 bash -c "ulimit -v $limit; exec \"\$@\"" - "$spool2folded" --sysroot "$PWD" --perf-map-dir hostile "$python"
[[ $(<err) == 'spool2folded: Python functions have no names: '* ]] || die "$(<err)"
[ "$(total out)" = 298 ] || die "$(total out) samples"
! grep -q ';fib' out || die "fib from a hole"

# Programs: two of them, one after exec.
run 0 "$spool2folded" "${files[@]}" --root=pid "$stackpulse/ladder/exec-chain.spool"
[ "$(cut -d';' -f1 out | sort -u | tr '\n' ' ')" = 'ladder-O0-20566 ladder-O2-20567 ' ] || die "$(cut -d';' -f1 out | sort -u)"

# An empty spool is an empty document.
run 0 "$spool2folded" --root=thread --annotate "$cases/empty-v3.spool"
equal out ''
equal err 'spool2folded: the spool has no samples'

# flamegraph.pl takes it all.
script=
for candidate in /usr/share/perl5/Devel/NYTProf/flamegraph.pl "$(command -v flamegraph.pl || true)"; do
    [ -n "$candidate" ] && [ -r "$candidate" ] && script=$candidate
done
if [ -n "$script" ]; then
    "$spool2folded" "${files[@]}" "${kallsyms[@]}" --root=none "$kernel" "$o2" | perl "$script" >graph.svg 2>graph.err
    equal graph.err ''
    grep -q '<title>all (1,781 samples, 100%)</title>' graph.svg || die "$(grep -o '<title>all[^/]*' graph.svg)"
    # a function's samples are those of the lines that have it
    for frame in main do_syscall_64 plugin_spin; do
        lines=$("$spool2folded" "${files[@]}" "${kallsyms[@]}" --root=none "$kernel" "$o2" |
            awk -v f="$frame" '{ n = $NF; sub(/ [0-9]*$/, ""); if (index(";" $0 ";", ";" f ";")) t += n } END { print t }')
        drawn=$(sed -n "s/.*<title>$frame (\([0-9,]*\) samples.*/\1/p" graph.svg | tr -d , | awk '{ n += $1 } END { print n }')
        [ "$lines" = "$drawn" ] || die "$frame: $lines in the lines, $drawn in the graph"
    done
    if grep -q flamechart "$script"; then
        "$spool2folded" "${files[@]}" --timeline "$o2" | perl "$script" --flamechart >chart.svg 2>graph.err
        equal graph.err ''
    else
        echo "left out: this flamegraph.pl draws no flame charts"
    fi
else
    echo "left out: flamegraph.pl is not installed"
fi
