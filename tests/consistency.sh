#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# For every fixture and every row of options the converters and spoolcat agree on samples, time and stacks. The work is
# consistency.mjs's; here are the table and the fixtures.
set -u
stackpulse=$FIXTURES/stackpulse
for program in node jq; do
    if ! command -v $program >/dev/null; then
        echo "no $program in PATH"
        exit 77
    fi
done

# A row a line; '-' stands for no option. Time is compared where samples are selected. PID, TID, COMM, THREAD, FROM and TO are values of the fixture: of its busiest
# thread, and of the middle of its time.
cat >table <<'END'
# samples
-
--pid PID
--tid=TID
--pid 1
--comm COMM
--comm=[a-m]*
--thread=THREAD
--from FROM
--to TO
--from FROM --to TO
# frames
--kernel=drop
--kernel=only
--runtime=show
--frame-filter=[acf]
--root-at=[bdf]
--skip-below=[ce]
--root-at=a --skip-below=c
--max-depth 1
--max-depth=3
--fold-recursion
--fold-recursion --max-depth 2
# frames and what they are called
--demangle=short
--demangle=none
--unresolved=module
--unresolved=module --fold-recursion
--trim-path /usr/=/ --trim-path=/=x/y --no-inlines
--no-symbols
--no-symbols --unresolved=module
--no-kernel-symbols
# together
--tid TID --kernel=drop --max-depth=2 --unresolved=module
--pid PID --from FROM --runtime=show --frame-filter=. --fold-recursion
--kernel=only --root-at=^[a-e] --max-depth 4
END

# run OUTPUT TOOL OPTION...: a tool on the `spools`; everything it says goes to files.
run() {
    local output=$row.$1 tool=$BIN/$2
    shift 2
    "$tool" "$@" "${spools[@]}" >"$output" 2>"$output.err" </dev/null
    echo $? >"$output.status"
}

# one_row OPTION...: all tools with these options.
one_row() {
    local symbols=("${symbols[@]}") own=() option
    for option; do
        case $option in
        --no-symbols | --no-kernel-symbols) ;;
        *) own+=("$option") ;;
        esac
    done
    case " $* " in # no files where none are wanted
    *' --no-symbols '*) symbols=() ;;
    *' --no-kernel-symbols '* | *' --kernel=drop '*) symbols=("${symbols[@]:0:4}") ;;
    esac
    echo "$*" >"$row.options"
    set -- -q "${symbols[@]}" "$@"
    run spool2folded spool2folded --root=none "$@"
    run spool2pprof spool2pprof --gzip-level=0 "$@"
    run spool2speedscope spool2speedscope --no-overview --weight=samples "$@"
    run spoolcat-stacks spoolcat --stacks --json "$@"
    run spoolcat-summary spoolcat --summary --json "$@"
    # a summary takes options for names only where they can change what it counts
    [ "$(<"$row.spoolcat-summary.status")" != 2 ] || run spoolcat-summary spoolcat --summary --json -q "${own[@]}"
    if [ "$part" != frames ]; then
        run spool2folded-time spool2folded --root=none --weight=time "$@"
        run spool2speedscope-time spool2speedscope --no-overview --weight=time "$@"
    fi
}

# The busiest thread of the first spool that has any, and the middle of its time, as words of options.
words_of='[.[] | select(.samples > 0)][0] as $f | ($f.threads // [] | max_by(.samples)) as $t |
    ([$f.processes // [] | .[] | select(.pid == $t.pid)][0].name) as $comm | ($f.span_ns // 4) as $span |
    "PID=\($t.pid // 1)", "TID=\($t.tid // 1)", "COMM=\($comm // "?" | gsub("[^!-~]"; "?"))", "THREAD=\($t.name // "*")",
    "FROM=\($span / 4 | floor)ns", "TO=\($span * 3 / 4 | floor + 1)ns"'

# fixture NAME [SYMBOL_OPTION]... -- SPOOL...
fixture() {
    local fixture=$1 number=0 part word options symbols=() spools row
    shift
    while [ "$1" != -- ]; do
        symbols+=("$1")
        shift
    done
    shift
    spools=("$@")
    mkdir "$fixture"
    # The check for leaks takes as long as all else that a sanitized tool does at its start; the same options lead the
    # same way in each fixture.
    [ "$fixture" = cases ] || local -x ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0
    "$BIN/spoolcat" -q --summary --json "${spools[@]}" >"$fixture/facts"
    local -A words=()
    while IFS='=' read -r word value; do words[$word]=$value; done < <(jq -rs "$words_of" "$fixture/facts")
    while read -r -a options; do
        case ${options[0]} in
        '#')
            part=${options[1]}
            continue
            ;;
        -) options=() ;;
        esac
        for i in "${!options[@]}"; do
            for word in "${!words[@]}"; do
                options[i]=${options[i]/%$word/${words[$word]}}
            done
        done
        number=$((number + 1))
        # With sanitizers every other row, one half here and the other there: any options work alike on each fixture.
        case ${SANITIZE_FLAGS:+$fixture-$((number % 2))} in ladder-O2-0 | python-1) continue ;; esac
        # Of fixtures that are like others but for a few records, two rows of three, in turn.
        case $fixture-$(((number + fixtures) % 3)) in ladders-0 | basic-deep-0 | churn-unpinned-0 | backwards-0) continue ;; esac
        row=$fixture/$number
        one_row "${options[@]}"
    done <table
    node "$SRC/tests/consistency.mjs" "$fixture" >"$fixture.said" || : >"$fixture.bad"
    rm -r "$fixture" # they are large
}

# Two at a time. Sanitizers take ten times as long to start a program: fixtures that differ most must do there.
agree() {
    case ${SANITIZE_FLAGS:+$1} in
    '' | ladder-O2 | python | cases) ;;
    *)
        echo "left out with sanitizers: $1"
        return
        ;;
    esac
    fixtures=$((fixtures + 1))
    while [ "$(jobs -rp | wc -l)" -ge 2 ]; do wait -n; done
    fixture "$@" &
}

fixtures=0
mkdir root
nothing=(--sysroot root --perf-map-dir root)
ladder=("$stackpulse"/ladder/*.spool)
sysroot=(--sysroot "$FIXTURES/sysroot" --perf-map-dir root)
synth=$stackpulse/synth
# What is alike is an input of several spools: starting programs is what takes the time.
agree ladder-O2 "${sysroot[@]}" -- "$stackpulse/ladder/ladder-O2.spool"
agree ladders "${sysroot[@]}" -- "${ladder[@]}"
agree syscalls-O2 "${sysroot[@]}" --kallsyms "$stackpulse/kernel/kallsyms.txt" -- "$stackpulse/kernel/syscalls-O2.spool"
agree python --sysroot root --perf-map-dir "$stackpulse/python" -- "$stackpulse"/python/*.spool
agree basic-deep "${nothing[@]}" -- "$synth"/{basic,basic-v1,deep}.spool
agree churn-unpinned "${nothing[@]}" -- "$synth"/{churn,churn-v2,churn-cut,churn-half,unpinned}.spool
agree backwards "${nothing[@]}" -- "$synth"/backwards.spool

# The cases by whether they state an interval.
with=() without=()
for spool in "$stackpulse"/cases/*.spool; do
    case $(head -c 6 "${spool%.spool}.expected") in
    error:) continue ;;
    esac
    case $("$BIN/spoolcat" -q --summary --json "$spool" | grep -o '"interval_ns":[0-9]*') in
    *:0) without+=("$spool") ;;
    *:18446744073709551615) ;; # no time that fits
    *) with+=("$spool") ;;
    esac
done
[ ${#with[@]} -gt 10 ] || { echo "${#with[@]} cases" && exit 1; }
agree cases "${nothing[@]}" -- "${with[@]}"
if [ ${#without[@]} -gt 0 ]; then agree cases-without-interval "${nothing[@]}" -- "${without[@]}"; fi

wait
bad=$(find . -maxdepth 1 -name '*.bad' | wc -l)
cat ./*.said
[ "$bad" = 0 ] && [ "$(find . -maxdepth 1 -name '*.said' | wc -l)" = $fixtures ]
