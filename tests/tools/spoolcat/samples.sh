#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# --samples: text and JSON to the byte, every sample of the fixtures, names as they are known at each point, streaming.
. "$(dirname "$0")/_common.sh"
spoolmake=$BUILD/tests/spoolmake

# ---- to the byte ----
"$spoolmake" >made <<'END'
version 3
interval 10ms
start 1700000000000000
module a 7 0x1000-0x2000 0x100 "/opt/a b"
sample 1s 7 7 a+0x110 a+0x120
note 7 clock "1000000000 1600000000000000005"
comm 7 "my app"
thread 7 9 "worker 1"
sample +2ms 7 9 @0xffffffff81000010 0x9999 [truncated]
comm 7 renamed
sample -1s 7 7 a+0x110 a+0x120
END
run 0 "$spoolcat" --samples --no-symbols made
equal err ''
equal out 'a b 7/7 1.000000000:
             1010 a b+0x110 (/opt/a b)
             1020 a b+0x120 (/opt/a b)

my app 7/9 1.002000000:
 ffffffff81000010 0xffffffff81000010 ([kernel.kallsyms])
             9999 0x9999 ([unknown])
                  [truncated]

renamed 7/7 0.002000000:
             1010 a b+0x110 (/opt/a b)
             1020 a b+0x120 (/opt/a b)
'
a='{"kind":"user","abs":4112,"module":{"id":0,"path":"/opt/a b","rel":272},"name":null,"offset":null,"file":null,"line":null,"column":null,"inlined":false,"origin":"address","flags":[]},{"kind":"user","abs":4128,"module":{"id":0,"path":"/opt/a b","rel":288},"name":null,"offset":null,"file":null,"line":null,"column":null,"inlined":false,"origin":"address","flags":[]}'
run 0 "$spoolcat" --samples --json --sysroot=. made
equal out '{"ts":1000000000,"us":1700000000000000,"wall_ns":null,"pid":7,"tid":7,"comm":"a b","thread":null,"stack":1,"frames":['"$a"']}
{"ts":1002000000,"us":1700000000002000,"wall_ns":1600000000002000005,"pid":7,"tid":9,"comm":"my app","thread":"worker 1","stack":4,"frames":[{"kind":"kernel","abs":18446744071578845200,"module":null,"name":null,"offset":null,"file":null,"line":null,"column":null,"inlined":false,"origin":"address","flags":[]},{"kind":"user","abs":39321,"module":null,"name":null,"offset":null,"file":null,"line":null,"column":null,"inlined":false,"origin":"address","flags":[]},{"kind":"truncated","abs":null,"module":null,"name":null,"offset":null,"file":null,"line":null,"column":null,"inlined":false,"origin":"address","flags":["truncated"]}]}
{"ts":2000000,"us":1700000000000000,"wall_ns":1599999999002000005,"pid":7,"tid":7,"comm":"renamed","thread":null,"stack":1,"frames":['"$a"']}'
run 0 "$spoolcat" --samples --json --no-symbols --kernel=only --max-depth=1 made
equal out '{"ts":1002000000,"us":1700000000002000,"wall_ns":1600000000002000005,"pid":7,"tid":9,"comm":"my app","thread":"worker 1","stack":4,"frames":[{"kind":"kernel","abs":18446744071578845200,"module":null,"inlined":false,"origin":"address","flags":[]},{"kind":"truncated","abs":null,"module":null,"name":"[2 frames omitted]","inlined":false,"origin":"address","flags":[]}]}'
run 0 "$spoolcat" --samples --color=always --no-symbols --tid=9 --kernel=drop --skip-below=0x made
equal out $'\033[32mmy app 7/9 1.002000000:\033[0m\n             9999 0x9999 ([unknown])\n                  [truncated]\n'
# Names select by what is known when the sample comes.
for expected in 'comm=renamed 2000000' 'comm=my* 1002000000' 'thread=worker* 1002000000' 'from=1ms 1002000000' 'comm=a* 1000000000'; do
    run 0 "$spoolcat" --samples --json --no-symbols "--${expected% *}" made
    [ "$(sed 's/{"ts":\([0-9]*\),.*/\1/' out)" = "${expected#* }" ] || die "$expected: $(<out)"
done

# Version 4 has wall time by its origin, before 1970 too, and no timeline.
for origin in '1s 5s:5000000000' '1s -1500000000ns:-1500000000' '1s -1ns:-1' '1s 0s:0' '2s 1s:0'; do
    printf 'version 4\norigin %s\nsample 1s 7 7 0x10\n' "${origin%:*}" | "$spoolmake" >v4
    run 0 "$spoolcat" --samples --json --no-symbols v4
    grep -q "^{\"ts\":1000000000,\"us\":null,\"wall_ns\":${origin#*:},\"pid\":7," out || die "$origin: $(<out)"
done

# ---- the fixtures: every sample, its addresses and modules ----
cat >ours.awk <<'AWK'
{
    match($0, /"ts":[0-9]+/); line = substr($0, RSTART + 5, RLENGTH - 5)
    match($0, /"pid":-?[0-9]+,"tid":[0-9]+/); line = line " " substr($0, RSTART, RLENGTH)
    match($0, /"stack":[0-9]+/); line = line " " substr($0, RSTART, RLENGTH)
    rest = $0
    while (match(rest, /\{"kind":"(user|kernel|truncated)","abs":(null|[0-9]+),"module":(null|\{"id":[0-9]+)/)) {
        part = substr(rest, RSTART, RLENGTH); rest = substr(rest, RSTART + RLENGTH)
        kind = substr(part, 10, 1); abs = part; sub(/.*"abs":/, "", abs); sub(/,.*/, "", abs)
        module = "null"; rel = "null"
        if (part !~ /null$/) {
            module = part; sub(/.*"id":/, "", module)
            match(rest, /"rel":[0-9]+/); rel = substr(rest, RSTART + 6, RLENGTH - 6)
        }
        line = line " " (kind == "t" ? "t" : abs kind module "+" rel)
    }
    print line
}
AWK
cat >theirs.awk <<'AWK'
/"type":"sample"/ {
    match($0, /"timestamp_ns":[0-9]+/); line = substr($0, RSTART + 15, RLENGTH - 15)
    match($0, /"process_id":-?[0-9]+/); line = line " \"pid\":" substr($0, RSTART + 13, RLENGTH - 13)
    match($0, /"thread_id":[0-9]+/); line = line ",\"tid\":" substr($0, RSTART + 12, RLENGTH - 12)
    match($0, /"stack_id":[0-9]+/); line = line " \"stack\":" substr($0, RSTART + 11, RLENGTH - 11)
    rest = substr($0, index($0, "\"frames\":[") + 10)
    while (match(rest, /\[[0-9]+,"[ukt]",[^]]*\]/)) {
        split(substr(rest, RSTART + 1, RLENGTH - 2), part, ",")
        rest = substr(rest, RSTART + RLENGTH)
        kind = substr(part[2], 2, 1)
        line = line " " (kind == "t" ? "t" : part[1] kind part[3] "+" part[4])
    }
    print line
}
AWK
for name in synth/basic synth/churn synth/unpinned synth/deep synth/backwards synth/churn-half kernel/syscalls-O2 \
    ladder/ladder-O2-fork ladder/ladder-O2-smallstack ladder/exec-chain python/py312; do
    spool=$FIXTURES/stackpulse/$name.spool
    gzip -dc "$FIXTURES/stackpulse/$name.dump.jsonl.gz" | awk -f theirs.awk >expected
    run 0 "$spoolcat" -q --samples --json --no-symbols "$spool"
    awk -f ours.awk out >got
    diff expected got >difference || die "$name: $(head -4 difference)"
    [ -s got ] || die "$name: no samples"
    # In text each is one block, with as many frames.
    run 0 "$spoolcat" -q --samples --no-symbols "$spool"
    awk '/^$/ { print blocks++ > "/dev/null"; next } /^[^ ]/ { heads++; next } { frames++ } END { print blocks, heads, frames }' out >counts
    awk '{ n++; f += NF - 3 } END { print n, n, f }' expected | diff - counts || die "$name: blocks, heads and frames"
done

# Names of the program and of Python, frame by frame, as often as stackpulse found them.
cat >names.awk <<'AWK'
{ # NAME+OFFSET of every frame that counts
    line = ""; rest = $0; count = 1
    if (match($0, /^\{"count":[0-9]+/)) count = substr($0, RSTART + 9, RLENGTH - 9)
    while (match(rest, pattern)) {
        part = substr(rest, RSTART, RLENGTH); rest = substr(rest, RSTART + RLENGTH)
        name = part; sub(/.*"name":"/, "", name); sub(/".*/, "", name)
        line = line " " name
    }
    counts[line] += count
}
END { for (line in counts) print counts[line] line }
AWK
python=$FIXTURES/stackpulse/python
run 0 "$spoolcat" --samples --json --no-kernel-symbols --perf-map-dir="$python" "$python/py312.spool"
awk -v pattern='"kind":"python","abs":[0-9]+,"module":[^}]*\\}?,"name":"[^"]*"' -f names.awk out | sort >got
gzip -dc "$python/py312.frames.jsonl.gz" | awk -v pattern='"k":"python"[^}]*"name":"[^"]*"' -f names.awk | sort >expected
diff expected got >difference || die "names of Python: $(head -4 difference)"
[ "$(wc -l <got)" -ge 3 ] || die "few stacks of Python: $(<got)"
run 0 "$spoolcat" --samples --json --sysroot="$FIXTURES/sysroot" "$FIXTURES/stackpulse/ladder/ladder-O0.spool"
awk -v pattern='"path":"/opt/demo/ladder-O0","rel":[0-9]+\\},"name":"[^_"][^"]*","offset":[0-9]+' -f names.awk out | sort >got
gzip -dc "$FIXTURES/stackpulse/ladder/ladder-O0.frames.jsonl.gz" | sed 's/"name":"start"/"name":null/g' |
    awk -v pattern='"name":"[^"]*","module":"ladder-O0"' -f names.awk | sort >expected
diff expected got >difference || die "names of ladder-O0: $(head -4 difference)"

# The samples are those that --stacks counts, with the same frames.
for options in '' --kernel=drop --kernel=only --max-depth=3 '--runtime=show --fold-recursion' '--frame-filter=a --unresolved=module'; do
    for spool in "$python/py312.spool" "$FIXTURES/stackpulse/kernel/syscalls-O2.spool" "$synth/churn.spool"; do
        # shellcheck disable=SC2086 # several words
        set -- $options --perf-map-dir="$python"
        # Names of frames that are dropped are refused.
        [[ $options == *kernel=drop* ]] || set -- "$@" --kallsyms="$FIXTURES/stackpulse/kernel/kallsyms.txt"
        run 0 "$spoolcat" --samples --json "$@" "$spool"
        sed 's/.*"pid":\(-\{0,1\}[0-9]*\),.*,"stack":\([0-9]*\),"frames"/\1 \2/' out | sort | uniq -c | sed 's/^ *//' | sort >got
        run 0 "$spoolcat" --stacks --json "$@" "$spool"
        sed 's/{"pid":\(-\{0,1\}[0-9]*\),"stack":\([0-9]*\),"samples":\([0-9]*\),"frames"/\3 \1 \2/' out | sort >expected
        diff expected got >difference || die "$options $spool: $(head -4 difference)"
    done
done

# ---- what is known at that point ----
"$spoolmake" >bpf <<'END'
version 3
sample 1s 7 7 @0xffffffffc0000010
note 7 ksymbol "0xffffffffc0000000 0x100 bpf_one"
samples 2 1ms +1ms 7 7 @0xffffffffc0000010
note 7 ksymbol "0xffffffffc0000000 0 bpf_one"
sample +1ms 8 8 @0xffffffffc0000010
note 7 ksymbol "0xffffffffc0000000 0x100 bpf_two"
sample +1ms 7 7 @0xffffffffc0000010
sample +1ms 8 8 @0xffffffffc0000010
END
run 0 "$spoolcat" --samples bpf
[ "$(sed -n 's/^ ffffffffc0000010 \([^ ]*\) .*/\1/p' out | tr '\n' ' ')" = \
    '0xffffffffc0000010 bpf_one+0x10 bpf_one+0x10 0xffffffffc0000010 bpf_two+0x10 bpf_two+0x10 ' ] || die "$(<out)"
# From the first mark on, names of Python count in marked processes.
mkdir maps
for pid in 7 8; do echo '5000 100 py::work:/x.py' >maps/perf-$pid.map; done
"$spoolmake" >marks <<'END'
version 3
sample 1s 7 7 0x5010
sample +1ms 8 8 0x5010
python 1s 7 on
sample +1ms 7 7 0x5010
sample +1ms 8 8 0x5010
END
run 0 "$spoolcat" --samples --json --perf-map-dir=maps marks
[ "$(sed 's/.*"frames":\[{"kind":"\([a-z]*\)".*/\1/' out | tr '\n' ' ')" = 'python python python user ' ] || die "$(<out)"

# ---- damage, pipes ----
run 1 "$spoolcat" --samples --no-symbols "$cases/negative-delta-underflow.spool"
[ -s out ] && [ "$(wc -l <err)" = 1 ] || die "not up to the damage: $(<err)"
cp out before
run 1 "$spoolcat" --samples --no-symbols -o made.txt "$cases/negative-delta-underflow.spool"
[ ! -e made.txt ] || die "a file of a damaged spool"
run 0 "$spoolcat" --samples --no-symbols --salvage "$cases/negative-delta-underflow.spool"
same before out
for spool in "$synth/churn.spool" "$synth/churn-cut.spool" "$cases/negative-delta-underflow.spool"; do
    "$spoolcat" --samples --no-symbols "$spool" >filed 2>filed.err || true
    cat "$spool" | "$spoolcat" --samples --no-symbols >piped 2>piped.err || true
    same filed piped
    sed "s|$spool|standard input|" filed.err | diff - piped.err || die "$spool: messages of a pipe"
done
# Samples appear while the pipe stays open.
mkfifo pipe
"$spoolcat" --samples --no-symbols pipe >out 2>err &
reader=$!
exec 9>pipe
cat made >&9
for ((i = 0; i < 200; i++)); do
    [ "$(grep -c ':$' out)" = 3 ] && break
    sleep 0.05
done
"$spoolcat" --samples --no-symbols made | diff - out || die "not shown while the pipe is open"
kill -0 $reader || die "ended before its pipe"
exec 9>&-
wait $reader || die "exit status $?"
