#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What spool2pprof writes of every readable fixture is read by protoc and by go tool pprof, which find what the spool
# holds: its samples, their time, and the names that spool2folded writes.
set -eu
. "$(dirname "$0")/_pprof.sh"
pprof_need

# Nothing of this machine has a say.
common=(-q --sysroot "$FIXTURES/sysroot" --perf-map-dir "$PWD")

# facts SPOOL: its samples, and its interval in nanoseconds
facts() {
    local summary pattern='"interval_ns":([0-9]+),"samples":([0-9]+)'
    summary=$("$BIN/spoolcat" --summary --json "$1" 2>/dev/null)
    [[ $summary =~ $pattern ]] && echo "${BASH_REMATCH[2]} ${BASH_REMATCH[1]}"
}

# accepted NAME SPOOL SAMPLES INTERVAL OPTION...: what all readers must agree on. Leaves NAME.pb.gz, and
# its stacks in pprof/folded.
accepted() {
    local name=$1 spool=$2 expected="samples/count $3"
    [ "$4" = 0 ] || expected+=$'\n'"cpu/nanoseconds $(($3 * $4))"
    shift 4
    "$BIN/spool2pprof" "${common[@]}" "$@" "$spool" >"$name.pb.gz" 2>err || die "$name: $(<err)"
    pprof_read "$name.pb.gz"
    [ "$(<pprof/totals)" = "$expected" ] || die "$name: totals instead of $expected"
}

# by_pprof NAME SPOOL SAMPLES [MODE...]: what go tool pprof says of NAME.pb.gz, in these modes as well.
by_pprof() {
    local name=$1 mode
    for mode in -raw "${@:4}"; do
        # it would look for the libraries that nothing named
        expect_silent $mode -symbolize=none "$name.pb.gz" >pprof.$mode
    done
    [ "$3" = 0 ] || expect_silent -top -symbolize=none -sample_index=samples "$name.pb.gz" | grep -q " of $3 total" ||
        die "$name: pprof counts other samples than $3"
    pprof_proto again.pb.gz -symbolize=none "$name.pb.gz"
    pprof_folded again.pb.gz samples | diff -u pprof/folded - || die "$name: pprof writes other stacks"
    [ "$3" = 0 ] || expect_silent -top -symbolize=none -diff_base="$name.pb.gz" "$name.pb.gz" >diff.txt
}

read=0
for spool in "$FIXTURES"/stackpulse/*/*.spool; do
    name=$(basename "$spool" .spool)
    "$BIN/spool2folded" "${common[@]}" --root=none "$spool" >folded 2>/dev/null || continue
    line=$(facts "$spool") || die "$name: no facts"
    samples=${line% *} interval=${line#* }
    ((interval <= 1000000000000)) || continue # sums beyond 64 bits: tests/tools/spool2pprof/damage.sh
    accepted "$name" "$spool" "$samples" "$interval"
    diff -u folded pprof/folded >difference || die "$name: $(head -20 difference)"
    case $spool in
    */cases/*) # a sample or two: what is special about them is not the profile
        expect_silent -raw -symbolize=none "$name.pb.gz" >pprof.raw
        ;;
    */synth/*) by_pprof "$name" "$spool" "$samples" ;;
    *) by_pprof "$name" "$spool" "$samples" -traces -tags ;;
    esac
    read=$((read + 1))
done
((read >= 60)) || die "only $read fixtures were read"

# The ways of writing it. They change neither stacks nor totals.
o2=$FIXTURES/stackpulse/ladder/ladder-O2.spool
line=$(facts "$o2")
"$BIN/spool2folded" "${common[@]}" --root=none "$o2" >folded
for options in --labels= --labels=pid,thread --timestamps "--timestamps --labels=" --gzip-level=0 --gzip-level=9 \
    --inline-locations "--comment=one --comment=two"; do
    # shellcheck disable=SC2086 # several words
    accepted way "$o2" "${line% *}" "${line#* }" $options
    diff -u folded pprof/folded || die "$options: other stacks"
    by_pprof way "$o2" "${line% *}" -traces -tags
done

# Addresses alone: real places, no names.
"$BIN/spool2pprof" -q --unsymbolized "$o2" >bare.pb.gz
pprof_check bare.pb.gz
[ -z "$(pprof_functions bare.pb.gz)" ] || die "--unsymbolized has names: $(pprof_functions bare.pb.gz)"
pprof_decode bare.pb.gz >bare.txt
grep -q 'has_' bare.txt && die "--unsymbolized sets flags"
[ "$(grep -c '^location' bare.txt)" = "$(pprof_decode way.pb.gz | grep -c '^location')" ] || die "other locations"
exit 0
