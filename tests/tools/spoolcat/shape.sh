#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Shaping options: --stacks and --summary agree with collapsed stacks on samples and on the multiset of stacks.
. "$(dirname "$0")/_common.sh"
spool2folded=$BIN/spool2folded
spoolmake=$BUILD/tests/spoolmake
kernel=$FIXTURES/stackpulse/kernel/syscalls-O2.spool
python=$FIXTURES/stackpulse/python

# Reads the files folded, stacks (text) and stacks.json, and says what differs, or last: samples, stacks, frames and depth.
# Lines of --stacks become collapsed stacks: the name is what stands between address and " (module)", less the offset
# that functions have behind it, and modules, whose own base name it is then, keep.
cat >agree.awk <<'AWK'
FILENAME == "folded" {
    k = split($0, part, ";"); n += $NF; f += k * $NF; if (k > d) d = k
    lines++
    stack = $0; sub(/ [0-9]+$/, "", stack); want[stack] += $NF
    next
}
FILENAME == "stacks.json" {
    if (match($0, /"samples":[0-9]+/)) json += substr($0, RSTART + 10, RLENGTH - 10)
    next
}
/^[0-9]+ samples? of / { samples = $1; line = ""; next }
/^$/ { got[line] += samples; next }
/^                  \[/ { name = substr($0, 19) }
!/^                  \[/ {
    name = $0
    sub(/^ *[0-9a-f]+ /, "", name)
    sub(/ \((\/|\[)[^()]*(\(deleted\))?\)( \(inlined\))?( [^ ]*)?$/, "", name)
    base = name
    if (sub(/\+0x[0-9a-f]+$/, "", base) && !index($0, "/" base ")") && !index($0, "/" base " (deleted)") && !index($0, "(" base ")"))
        name = base
}
{ line = line == "" ? name : name ";" line }
END {
    for (stack in want) if (want[stack] != got[stack]) { print "collapsed: " stack " " want[stack]; bad = 1 }
    for (stack in got) if (!(stack in want)) { print "--stacks: " stack " " got[stack]; bad = 1 }
    if (json + 0 != n + 0) { print "samples of JSON: " json + 0 " instead of " n + 0; bad = 1 }
    if (!bad) print n + 0, lines + 0, f + 0, d + 0
    exit bad
}
AWK

# agree SPOOL OPTION...
agree() {
    local spool=$1 said samples stacks frames depth
    shift
    "$spool2folded" -q --root=none "$@" "$spool" >folded && "$spoolcat" -q --stacks "$@" "$spool" >stacks &&
        "$spoolcat" -q --stacks --json "$@" "$spool" >stacks.json || die "$spool $*: exit status $?"
    said=$(awk -f agree.awk folded stacks stacks.json) || die "$spool $*: ${said:0:1000}"
    [ $# -gt "${shared:-0}" ] || return 0 # no shaping option: of the recorded stacks
    read -r samples stacks frames depth <<<"$said"
    run 0 "$spoolcat" -q --summary --json "$@" "$spool"
    [[ $(<out) =~ \"interval_ns\":[0-9]*,\"samples\":$samples,.*\"distinct_stacks\":$stacks,\"frames_in_samples\":$frames,.*\"max_depth\":$depth, ]] ||
        die "$spool $*: $samples samples, $stacks stacks, $frames frames, depth $depth: $(<out)"
}

shapes=('' --kernel=drop --kernel=only --runtime=show --max-depth=1 --max-depth=4 --fold-recursion --unresolved=module
    --frame-filter=work '--root-at=main --skip-below=w' '--kernel=drop --max-depth=2 --fold-recursion' --demangle=none)
for shape in "${shapes[@]}"; do
    shared=1
    names=(--kallsyms="$FIXTURES/stackpulse/kernel/kallsyms.txt")
    [[ $shape != *kernel=drop* ]] || names=(--no-kernel-symbols) # a file of dropped names is refused
    # shellcheck disable=SC2086 # several words
    agree "$kernel" "${names[@]}" $shape
    shared=2
    # shellcheck disable=SC2086
    agree "$python/py312.spool" --no-kernel-symbols --perf-map-dir="$python" $shape
    # With sanitizers the two that have all kinds of frames will do.
    [ -z "${SANITIZE_FLAGS:-}" ] || continue
    # shellcheck disable=SC2086
    agree "$FIXTURES/stackpulse/ladder/ladder-O2-smallstack.spool" --no-kernel-symbols --sysroot="$FIXTURES/sysroot" $shape
    shared=1
    # shellcheck disable=SC2086
    [[ $shape == *demangle* ]] || agree "$synth/deep.spool" --no-symbols $shape
done
shared=0
agree "$kernel" --no-symbols --kernel=only --from=100ms --to=400ms
agree "$synth/basic.spool" --no-symbols --pid=1001 --max-depth=2

# Hidden frames are gone, and have a flag where they are shown.
run 0 "$spoolcat" --stacks --json --perf-map-dir="$python" "$python/py312.spool"
! grep -q '"hidden"' out || die "hidden frames are shown"
run 0 "$spoolcat" --stacks --json --runtime=show --perf-map-dir="$python" "$python/py312.spool"
grep '"kind":"python"' out | grep -q '"flags":\["python_runtime",\("python_eval",\)\{0,1\}"hidden"' || die "no hidden frames"
! grep -v '"kind":"python"' out | grep -q '"hidden"' || die "a hidden frame without a Python one"

# Placeholders in both forms; no option is ignored.
"$spoolmake" >made <<'END'
version 3
interval 10ms
module a 7 0x1000-0x2000 0 /opt/a
comm 7 app
thread 7 9 worker
sample 1s 7 7 a+0x10 a+0x20 a+0x30
sample +10ms 7 9 @0xffffffff81000010
END
run 0 "$spoolcat" --stacks --no-symbols --max-depth=1 made
equal out '1 sample of app 7, stack 2
             1010 a+0x10 (/opt/a)
                  [2 frames omitted]

1 sample of app 7, stack 3
 ffffffff81000010 0xffffffff81000010 ([kernel.kallsyms])
'
run 0 "$spoolcat" --stacks --json --no-symbols --kernel=drop --max-depth=1 --unresolved=module made
equal out '{"pid":7,"stack":2,"samples":1,"frames":[{"kind":"user","abs":4112,"module":{"id":0,"path":"/opt/a","rel":16},"name":"[a]","inlined":false,"origin":"address","flags":[]},{"kind":"truncated","abs":null,"module":null,"name":"[2 frames omitted]","inlined":false,"origin":"address","flags":[]}]}
{"pid":7,"stack":3,"samples":1,"frames":[{"kind":"truncated","abs":null,"module":null,"name":"[no frames]","inlined":false,"origin":"address","flags":[]}]}'
# Threads have names in all views.
run 0 "$spoolcat" --stacks --no-symbols --thread=work* made
[ "$(grep -c ' of app' out)" = 1 ] || die "--thread"
run 0 "$spoolcat" --modules --json --thread=worker made
grep -q '"samples":0}' out || die "--modules --thread"
# Times and threads of a summary are those of the samples that are left.
run 0 "$spoolcat" --summary --json --no-symbols --kernel=only made
grep -q '"samples":1,"first_ns":1010000000,"last_ns":1010000000,"span_ns":0,"processes":\[{"pid":7,"name":"app","samples":1}\],"threads":\[{"pid":7,"tid":9,"name":"worker","samples":1}\],' out ||
    die "$(<out)"

# One stack of two forms: a kernel address that had two names.
"$spoolmake" >bpf <<'END'
version 3
note 7 ksymbol "0xffffffffc0000000 0x100 bpf_one"
sample 1s 7 7 @0xffffffffc0000010
note 7 ksymbol "0xffffffffc0000000 0 bpf_one"
note 7 ksymbol "0xffffffffc0000000 0x100 bpf_two"
samples 2 1ms +1ms 7 7 @0xffffffffc0000010
END
run 0 "$spoolcat" --stacks bpf
equal out '2 samples of - 7, stack 0
 ffffffffc0000010 bpf_two+0x10 ([kernel.kallsyms])

1 sample of - 7, stack 0
 ffffffffc0000010 bpf_one+0x10 ([kernel.kallsyms])
'
run 0 "$spoolcat" --summary --json --frame-filter=two bpf
grep -q '"samples":2,' out || die "$(<out)"

# Of no samples none are left.
echo 'version 4' | "$spoolmake" >none
run 0 "$spoolcat" --summary --json --frame-filter=. none
grep -q '"samples":0,"first_ns":null,' out || die "$(<out)"

# The report is that of the converters.
run 0 "$spoolcat" --stacks -v --sysroot=. made
cp err report
run 0 "$spool2folded" -v --sysroot=. made
same report err
grep -q '^no symbols: /opt/a (.*): 1 sample$' err || die "$(<err)"

# Of samples that are printed as they come, too: of the selected ones, and behind all of them.
for spool in made bpf; do
    for options in --no-symbols --sysroot=. '--sysroot=. --from 1ms' '--sysroot=. --max-depth=1'; do
        # shellcheck disable=SC2086 # several words
        run 0 "$spoolcat" --stacks -v $options $spool
        cp err report
        # shellcheck disable=SC2086
        run 0 "$spoolcat" --samples -v $options $spool
        same report err
    done
done

# Where they mean nothing, they are refused.
for view in records modules threads; do
    run 2 "$spoolcat" --$view --kernel=drop made
    equal err "spoolcat: --kernel does not apply to --$view (see --help)"
done
