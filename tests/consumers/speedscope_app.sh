#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Documents of spool2speedscope in the app: profiles, totals and the hottest function, and what must not crash it.
set -eu
export LC_ALL=C
here=$(dirname "$0")
. "$here/_speedscope.sh"
stackpulse=$FIXTURES/stackpulse
convert=("$BIN/spool2speedscope" --sysroot "$FIXTURES/sysroot" --perf-map-dir "$PWD" --no-kernel-symbols)
folded=("$BIN/spool2folded" --sysroot "$FIXTURES/sysroot" --perf-map-dir "$PWD" --no-kernel-symbols --root=none)

speedscope_need_app

check() {
    node "$here/speedscope_check.mjs" "$@"
}

# open [--each] DOC...: what the app says of each, in DOC.app. One browser takes them all.
open() {
    node "$here/speedscope_app.mjs" --beside "$@" || die "the app does not open: $(grep -A3 '"errors": \[$' ./*.app)"
}

# largest LINES: of "NAME COUNT" lines, added up: "WEIGHT NAME", largest first.
largest() {
    awk -v interval="$interval" '{ n = $NF; sub(/ [0-9]+$/, ""); sum[$0] += n }
        END { for (name in sum) printf "%.0f %s\n", sum[name] * interval, name }' "$1" | sort -k1,1nr -k2
}

# Every profile is there with its own busy weight. Of the first one, which has all samples, total, roots and the hottest
# function are spool2folded's.
spools=(ladder/ladder-O2 ladder/ladder-O2-fork python/py312 kernel/syscalls-O2 synth/churn)
docs=()
for spool in "${spools[@]}"; do
    docs+=("${spool##*/}.speedscope.json")
    "${convert[@]}" -q -o "${docs[-1]}" "$stackpulse/$spool.spool"
done
# Stacks that crash the viewer.
[ -x "$BIN/spoolgen" ] || { echo "no spoolgen (SPOOL_BUILD_BENCH)" && exit 77; }
generated=("$BIN/spool2speedscope" --no-symbols)
"$BIN/spoolgen" --samples 200 --stacks 20 --threads 1 --processes 1 --depth 5000 -o gen.spool
"${generated[@]}" -o deep.json gen.spool 2>err
grep -q 'samples have more than 2000 frames' err || die "no warning of depth: $(<err)"
open --each "${docs[@]}" deep.json
for spool in "${spools[@]}"; do
    doc=${spool##*/}.speedscope.json
    app=$doc.app
    check "$doc" >checked.json
    json checked.json 'd.profiles.map((p) => `${p.busy} ${p.name}`).join("\n")' >expected
    json "$app" 'd.profiles.map((p) => `${p.busyWeight} ${p.name}`).join("\n")' >shown
    diff expected shown || die "$spool: other profiles in the app"

    interval=$("$BIN/spoolcat" -q --summary --json "$stackpulse/$spool.spool" | sed 's/.*"interval_ns":\([0-9]*\).*/\1/')
    "${folded[@]}" -q "$stackpulse/$spool.spool" >stacks
    [ "$(json "$app" 'd.profiles[0].busyWeight')" = "$(awk -v i="$interval" '{ n += $NF } END { printf "%.0f", n * i }' stacks)" ] ||
        die "$spool: another total"
    sed 's/.*;//' stacks >leaves
    largest leaves | head -1 >expected
    json "$app" 'd.profiles[0].bySelf.slice(0, 1).map((f) => `${f.self} ${f.name}`).join("\n")' >shown
    diff expected shown || die "$spool: another hottest function"
    # Several processes have roots of their own, "NAME PID".
    if grep -q '"name": "all threads' "$app" && [ "$("$BIN/spoolcat" -q --summary --json "$stackpulse/$spool.spool" |
        grep -o '"pid":[0-9]*,"name"' | sort -u | wc -l)" -gt 1 ]; then
        "$BIN/spool2folded" -q --root=pid --no-symbols "$stackpulse/$spool.spool" |
            sed 's/^\([^;]*\)-\([0-9]*\);.* \([0-9]*\)$/\1 \2 \3/' >roots
    else
        sed 's/;.* / /' stacks >roots
    fi
    largest roots >expected
    json "$app" 'd.profiles[0].roots.map((f) => `${f.weight} ${f.name}`).join("\n")' | sort -k1,1nr -k2 >shown
    diff expected shown || die "$spool: other roots"
done

# Threads it would take minutes for, gaps that cost it seconds each. Of 258 profiles the first is shown: each would take a
# second, and those above were.
"$BIN/spoolgen" --samples 30000 --stacks 3000 --threads 300 --processes 3 -o gen.spool
"${generated[@]}" -o threads.json gen.spool

"$BIN/spoolgen" --samples 260000 --stacks 12 --threads 1 --processes 1 --depth 2 -o gen.spool
"${generated[@]}" -o gaps.json gen.spool 2>err

check deep.json >/dev/null
check threads.json >threads.checked
[ "$(json threads.checked 'd.profiles.length')" = 258 ] || die "$(json threads.checked 'd.profiles.length') profiles"
[ "$(json threads.checked 'd.profiles[257].name')" = 'other threads (44)' ] || die "$(json threads.checked 'd.profiles[257].name')"
check gaps.json >gaps.checked
[ "$(json gaps.checked 'd.profiles[0].type')" = evented ] || die "20,000 gaps are not evented"

open threads.json gaps.json
[ "$(json threads.json.app 'd.profiles.length')" = 258 ] || die "not every profile is in the app"
[ "$(json gaps.json.app 'd.profiles[0].busyWeight')" = "$(json gaps.checked 'd.profiles[0].busy')" ] ||
    die "events are another time in the app"
