#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What arrives and what does not: pipes, full disks, readers that leave, damaged input, spilled runs.
. "$(dirname "$0")/_common.sh"
convert=("$spool2speedscope" --no-symbols)

# whole FILE: it looks like one complete document.
whole() {
    [[ $(head -c 14 "$1") == '{"$schema":"ht' && $(tail -c 4 "$1") == ']}}' ]] || die "$1 is not a whole document"
    [ "$(wc -l <"$1")" = 1 ] || die "$1 has $(wc -l <"$1") lines"
}

# A file, a pipe, gzip: the same document; and again.
for spool in basic churn deep; do
    "${convert[@]}" --name x "$synth/$spool.spool" >file
    whole file
    # shellcheck disable=SC2002 # a pipe is wanted
    cat "$synth/$spool.spool" | "${convert[@]}" --name x >pipe
    same file pipe
    gzip -c "$synth/$spool.spool" | "${convert[@]}" --name x - >packed
    same file packed
    "${convert[@]}" --name x -o target "$synth/$spool.spool"
    same file target
done

# Names of the document.
name() {
    sed 's/.*"name":"\([^"]*\)","activeProfileIndex.*/\1/' out
}
run 0 "${convert[@]}" "$synth/basic.spool" "$synth/deep.spool"
[ "$(name)" = 'basic.spool, deep.spool' ] || die "$(name)"
run 0 bash -c '"$@" <"$0"' "$synth/basic.spool" "${convert[@]}"
[ "$(name)" = 'standard input' ] || die "$(name)"
run 0 "${convert[@]}" --name $' a\nb ' "$synth/basic.spool"
[ "$(name)" = 'a b' ] || die "$(name)"

# A reader that leaves, and a full disk.
set +o pipefail
"${convert[@]}" "$synth/churn.spool" 2>err | head -c 10 >/dev/null
equal err ''
if [ -w /dev/full ]; then
    status=0
    "${convert[@]}" "$synth/churn.spool" >/dev/full 2>err || status=$?
    [ $status = 1 ] || die "exit status $status with a full disk"
    equal err 'spool2speedscope: standard output: write failed: No space left on device'
fi

# A cut tail and damage.
cp "$synth/churn-cut.spool" cut
run 0 "${convert[@]}" cut
whole out
equal err 'spool2speedscope: cut: cut off at byte 122901; kept 2999 samples'
run 1 "${convert[@]}" --strict cut
equal out ''
head -c 100000 "$synth/churn.spool" >corrupt
"${convert[@]}" -q --name x corrupt >prefix
kept=$("${convert[@]}" corrupt 2>&1 >/dev/null | sed -n 's/.*cut off at byte \([0-9]*\);.*/\1/p')
head -c "$kept" "$synth/churn.spool" >corrupt
printf '\xee and more' >>corrupt
for options in --weight=time --merge-threads "-o file2"; do
    # shellcheck disable=SC2086 # several words
    run 1 "${convert[@]}" $options corrupt
    equal out ''
    [ ! -e file2 ] || die "file2 was left"
done
run 0 "${convert[@]}" --salvage --name x corrupt
same out prefix
run 1 "${convert[@]}" "$synth/basic.spool" corrupt
equal out ''

# Nothing is selected.
run 0 "${convert[@]}" --pid 99999999 "$synth/basic.spool"
whole out
grep -q '"profiles":\[{"type":"sampled","name":"no samples",' out || die "$(head -c 300 out)"
equal err 'spool2speedscope: no sample selected of '"$("$BIN/spoolcat" --json --summary "$synth/basic.spool" |
    sed 's/.*"samples":\([0-9]*\),"first_ns.*/\1/'): the spool's processes are 1000, 1001"

# More inputs than descriptors.
inputs=()
for ((i = 0; i < 40; i++)); do inputs+=("$cases/one-sample.spool"); done
(
    ulimit -n 30
    "${convert[@]}" "${inputs[@]}" >out
) || die "40 inputs with 30 descriptors"
whole out

# A million samples with a limit for their memory: 64 MiB of runs, definitions, and no arrays of the document.
if [ -x "$BIN/spoolgen" ] && [ -x "$BIN/bare_loops" ] && [ -z "${SANITIZE_FLAGS:-}" ]; then
    "$BIN/spoolgen" --samples 1000000 --stacks 2000 --threads 8 -o many
    "$BIN/bare_loops" run report "${convert[@]}" -q --no-merge-runs many >out
    read -r _ _ _ kib <report
    [ "$kib" -lt 40960 ] || die "$kib KiB for 1,000,000 samples"
    rm many out
else
    echo "left out: memory"
fi
