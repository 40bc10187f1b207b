#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# --summary, --modules, --threads and --stacks, counted again from what stackpulse reads of the same files.
. "$(dirname "$0")/_common.sh"

# field KEY FILE: the number (or true, false, null) of a key at the top of a one-line object.
field() {
    sed -n "s/.*[{,]\"$1\":\([^,}]*\)[,}].*/\1/p" "$2"
}

# The table of counts that came with the fixtures.
rows=0
while IFS='|' read -r _ file magic modules frames samples stack_frames python tail _; do
    file=$(echo $file)
    run 0 "$spoolcat" -q --summary --json "$FIXTURES/stackpulse/$file"
    got="SPULSE$(field version out) $(field modules out) $(field frames out)"
    [ "$got" = "$(echo $magic $modules $frames)" ] || die "$file: $got"
    grep -q "\"interval_ns\":[0-9]*,\"samples\":$(echo $samples)," out || die "$file: samples"
    [ "$(field frames_in_samples out)" = "$(echo $stack_frames)" ] || die "$file: frames in stacks"
    [ "$(field cut_tail out)" = "$([ $tail = yes ] && echo true || echo false)" ] || die "$file: tail"
    rows=$((rows + 1))
done < <(grep '^| [a-z0-9]*/.*\.spool |' "$FIXTURES/stackpulse/README.md")
[ $rows -ge 18 ] || die "only $rows rows"

# Everything about frames and modules, counted sample by sample.
cat >count.awk <<'AWK'
/"type":"sample"/ {
    match($0, /"process_id":-?[0-9]+/); pid = substr($0, RSTART + 13, RLENGTH - 13)
    match($0, /"stack_id":[0-9]+/); stack = substr($0, RSTART + 11, RLENGTH - 11)
    if (!(stack in stacks)) { stacks[stack] = 1; distinct++ }
    by_stack[pid " " stack]++
    rest = substr($0, index($0, "\"frames\":[") + 10)
    depth = 0
    split("", hit)
    while (match(rest, /\[[0-9]+,"[ukt]",[^]]*\]/)) {
        frame = substr(rest, RSTART + 1, RLENGTH - 2)
        rest = substr(rest, RSTART + RLENGTH)
        split(frame, part, ",")
        depth++
        if (part[2] == "\"k\"") kernel++
        if (part[2] == "\"t\"") truncated++
        else if (part[3] != "null") hit[part[3]] = 1
    }
    if (depth > deepest) deepest = depth
    for (module in hit) modules[module]++
}
END {
    print "summary", distinct + 0, deepest + 0, kernel + 0, truncated + 0
    for (module in modules) print "module", module, modules[module]
    for (key in by_stack) print "stack", key, by_stack[key]
}
AWK
for name in synth/basic synth/churn synth/unpinned synth/deep synth/churn-half kernel/syscalls-O2 \
    ladder/ladder-O2-smallstack ladder/exec-chain python/py312; do
    spool=$FIXTURES/stackpulse/$name.spool
    gzip -dc "$FIXTURES/stackpulse/$name.dump.jsonl.gz" | awk -f count.awk | sort >expected
    {
        run 0 "$spoolcat" -q --summary --json "$spool"
        echo summary "$(field distinct_stacks out)" "$(field max_depth out)" "$(field kernel_frames out)" "$(field truncated_stacks out)"
        run 0 "$spoolcat" -q --modules --json "$spool"
        sed -n 's/^{"id":\([0-9]*\),.*"samples":\([1-9][0-9]*\)}$/module \1 \2/p' out
        run 0 "$spoolcat" -q --stacks --no-symbols --json "$spool"
        sed -n 's/^{"pid":\(-\{0,1\}[0-9]*\),"stack":\([0-9]*\),"samples":\([0-9]*\),.*/stack \1 \2 \3/p' out >stacks
        cat stacks
    } | sort >got
    sort -s -c -k4,4nr stacks || die "$name: stacks are not sorted"
    diff -u expected got >difference || die "$name: $(head -20 difference)"
done

# Frames of a stack: a kernel frame, an address with its module, the marker.
run 0 "$spoolcat" --stacks --no-symbols --json "$cases/truncation-marker.spool"
equal out '{"pid":7,"stack":0,"samples":1,"frames":[{"kind":"truncated","abs":null,"module":null,"inlined":false,"origin":"address","flags":["truncated"]}]}
{"pid":7,"stack":1,"samples":1,"frames":[{"kind":"user","abs":4224,"module":{"id":0,"path":"/bin/a","rel":384},"inlined":false,"origin":"address","flags":[]},{"kind":"truncated","abs":null,"module":null,"inlined":false,"origin":"address","flags":["truncated"]}]}'
run 0 "$spoolcat" --stacks "$cases/truncation-marker.spool"
equal out '1 sample of a 7, stack 0
                  [truncated]

1 sample of a 7, stack 1
             1080 a+0x180 (/bin/a)
                  [truncated]
'
run 0 "$spoolcat" --stacks --json --kallsyms="$FIXTURES/stackpulse/kernel/kallsyms.txt" "$FIXTURES/stackpulse/kernel/syscalls-O2.spool"
grep -q '{"kind":"kernel","abs":[0-9]*,"module":null,"name":"show_map_vma","offset":[0-9]*,"file":null,"line":null,"column":null,"inlined":false,"origin":"kernel","flags":\[\]}' out || die "no kernel names"

# Modules and threads to the byte.
run 0 "$spoolcat" --modules --json "$cases/deactivate-process.spool"
[ "$(sed 's/,"samples":.*//' out)" = '{"id":0,"pid":7,"start":4096,"end":8192,"file_offset":256,"path":"/bin/a","build_id":null,"kernel":false,"retired":1
{"id":1,"pid":8,"start":4096,"end":8192,"file_offset":256,"path":"/bin/a","build_id":null,"kernel":false,"retired":null
{"id":2,"pid":7,"start":4096,"end":8192,"file_offset":256,"path":"[kernel]","build_id":null,"kernel":true,"retired":null' ] ||
    die "$(<out)"
run 0 "$spoolcat" --threads --json "$synth/backwards.spool"
gzip -dc "$synth/backwards.dump.jsonl.gz" | awk '/"type":"sample"/ {
    match($0, /"timestamp_ns":[0-9]+/); time = substr($0, RSTART + 15, RLENGTH - 15) + 0
    match($0, /"process_id":.*"thread_id":[0-9]+/); key = substr($0, RSTART, RLENGTH)
    sub(/process_id/, "pid", key); sub(/thread_id/, "tid", key)
    if (n[key]++ == 0 || time < first[key]) first[key] = time
    if (time > last[key]) last[key] = time
} END {
    for (key in n)
        printf "%s,\"name\":null,\"samples\":%d,\"first_ns\":%.0f,\"last_ns\":%.0f}\n", key, n[key], first[key], last[key]
}' | sort >expected
sed 's/^{"id":[0-9]*,//' out | sort >got
diff -u expected got || die "threads"

# Selection.
run 0 "$spoolcat" --summary --json --pid=1001 "$synth/basic.spool"
grep -q '"samples":1519,' out && grep -q '"processes":\[{"pid":1001,"name":"app","samples":1519}\],' out || die "$(<out)"
run 0 "$spoolcat" --summary --json --pid=5 "$synth/basic.spool"
grep -q '"samples":0,"first_ns":null,"last_ns":null,"span_ns":null,"processes":\[\],"threads":\[\],' out || die "$(<out)"
grep -q '"mean_depth":null,"max_depth":0,' out || die "$(<out)"
run 0 "$spoolcat" --threads --json --to=1s "$synth/basic.spool"
run 0 "$spoolcat" --stacks --json --no-symbols --comm='ap?' --tid=1001,1003 "$synth/basic.spool"
[ "$(sed 's/.*"samples":\([0-9]*\),.*/\1/' out | awk '{ n += $1 } END { print n }')" = 1015 ] || die "selected stacks"

# Empty spools and the annotations.
for view in --summary --modules --threads --stacks; do
    run 0 "$spoolcat" $view --json "$cases/empty-v3.spool"
    equal err ''
    run 0 "$spoolcat" $view "$cases/empty-v3.spool"
done
# note PID PATH: an annotation's module record, for ids below 128 and paths below 128 bytes.
id=0
note() {
    printf "\\1\\$(printf %03o $id)\\$(printf %03o $(($1 * 2)))\\0\\0\\0\\0\\0\\0\\0\\0\\$(printf %03o ${#2})%s" "$2"
    id=$((id + 1))
}
{
    printf 'SPULSE3\0\1\1'
    note 7 '[spool:comm] my app'
    note 7 '[spool:thread] 9 worker 1'
    note 7 '[spool:event] cycles 999'
    note 7 '[spool:a-key-that-has-24-bytes] value'
    note 7 '[spool:lost] 12'
    printf '\2\0\1\5\3\0\377\377\377\377\17\0\4\0\16\11\5\2\0\0'
} >notes
run 0 "$spoolcat" --summary --json notes
grep -q '"processes":\[{"pid":7,"name":"my app","samples":1}\],"threads":\[{"pid":7,"tid":9,"name":"worker 1","samples":1}\],"modules":0,' out || die "$(<out)"
grep -q '"annotations":{"event":"cycles 999".*},"lost":12}$' out || die "$(<out)"
run 0 "$spoolcat" --summary notes
grep -q '^event            cycles 999$' out && grep -q 'worker 1$' out || die "$(<out)"
grep -q '^a-key-that-has-24-bytes value$' out || die "$(<out)"
grep -q '^gaps             0, 0.000 s (off CPU, all threads added up)$' out || die "$(<out)"

# Damage: nothing of the spool that failed is printed, the others are.
for view in --summary --modules --threads --stacks; do
    run 1 "$spoolcat" $view --json "$cases/negative-delta-underflow.spool"
    equal out ''
    run 0 "$spoolcat" $view --json --salvage "$cases/negative-delta-underflow.spool"
    [ -s out ] || die "$view: nothing salvaged"
    [ "$(wc -l <err)" = 1 ] || die "$view: $(<err)"
    cat "$synth/churn-cut.spool" | "$spoolcat" -q $view --json >piped
    "$spoolcat" -q $view --json "$synth/churn-cut.spool" >filed
    same <(sed 's/^{"file":"[^"]*",//' piped) <(sed 's/^{"file":"[^"]*",//' filed)
done

# Options that do not apply.
for view in modules threads; do
    run 2 "$spoolcat" --$view --no-symbols notes
    equal err "spoolcat: --no-symbols does not apply to --$view (see --help)"
done
run 2 "$spoolcat" --summary --no-symbols notes
equal err 'spoolcat: --no-symbols does not apply to --summary without an option that shapes stacks (see --help)'
run 2 "$spoolcat" --pid=1 notes
equal err 'spoolcat: --pid does not apply to --records (see --help)'
run 2 "$spoolcat" --summary --modules notes
equal err 'spoolcat: --summary and --modules contradict each other (see --help)'
run 0 "$spoolcat" --summary --summary notes
