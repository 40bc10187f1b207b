#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# All that write are killed by the signals there are at random system calls, between two of which nothing changes for others.
# FAULTS=all: hundreds of times. SEED=N: the same ones again.
. "$(dirname "$0")/_faults.sh"
RANDOM=${SEED:=$(($(date +%N | sed 's/^0*//') % 32768))}
echo "seed $SEED"
rounds=2
[ -z "${SANITIZE_FLAGS:-}" ] || rounds=1
[ "${FAULTS:-}" != all ] || rounds=200
cp "$o2" cap.spool
mkdir nowhere
spoolpack=$BIN/spoolpack

# killed: a scenario with each of the signals, `rounds` times.
killed() {
    local total=0 name count signal round n number
    undisturbed
    for count in "${calls[@]}"; do total=$((total + count)); done
    for ((round = 0; round < rounds; round++)); do
        for signal in SIGKILL SIGTERM SIGINT SIGPIPE; do
            n=$((RANDOM % total + 1))
            where="$scenario: $signal at call $n (seed $SEED)"
            run_with any $signal $n
            number=$(kill -l ${signal#SIG})
            if [ $status = 125 ]; then
                [[ ${lines[*]} == 'spoolrecord: interrupted before the recording began' ]] || trouble 'another message'
            elif [ $status != $((128 + number)) ] && [ $status != 0 ]; then
                trouble 'another exit status'
            fi
            complete || { [ $status != 0 ] && intact; } || trouble damage
            temporary=($(find d -name '.tmp-*' -o -name '.spooltools-*'))
            [ ${#temporary[@]} = 0 ] || [ $signal = SIGKILL ] || trouble "left ${temporary[*]}"
            rm -f "${temporary[@]}" none
        done
    done
}

for tool in spool2folded spool2pprof spool2speedscope; do
    converter $tool $tool --no-symbols cap.spool
    killed
done
converter spoolcat spoolcat --records cap.spool
killed
converter 'pack into tar' spoolpack
mkdir d
command=("$spoolpack" -q "${files[@]}" -o d/out.tar.gz cap.spool)
begin() { rm -f d/out*; }
keep() { cp d/out.tar.gz expected.out; }
complete() { cmp -s d/out.tar.gz expected.out; }
intact() { [ ! -e d/out.tar.gz ]; }
killed

# Into a store, beside another pack: what manifests say is there is there, and the next one has all of it.
"$BIN/spool2folded" --with-lines "${files[@]}" cap.spool >expected.folded
scenario=pack tool=spoolpack command=("$spoolpack" -q "${files[@]}" -o d cap.spool)
begin() {
    wait
    rm -rf d
    "$spoolpack" -q "${files[@]}" --level=names -o d "$synth/churn.spool" &
}
keep() { wait; }
complete() {
    wait
    "$spoolpack" --check -q d >check.out 2>&1 || { cat check.out && return 1; }
    "$spoolpack" -q "${files[@]}" -o d cap.spool
    "$spoolpack" --check -q d >check.out 2>&1 || { cat check.out && return 1; }
    "$BIN/spool2folded" --with-lines --sysroot nowhere --perf-map-dir nowhere --symbols d cap.spool >got.folded
    cmp expected.folded got.folded
}
intact() { false; }
killed

# A recording is complete, or what there is of it is read as a spool that is cut off. Before the header there is nothing.
if "$BIN/spoolrecord" -q -o probe.spool true 2>err; then
    scenario=record tool=spoolrecord command=("$BIN/spoolrecord" -q --force -o d/out true)
    begin() {
        rm -rf d
        mkdir d
    }
    keep() { :; }
    complete() { "$BIN/spoolcat" --records -q --strict d/out >records 2>&1; }
    intact() { [ ! -s d/out ] || "$BIN/spoolcat" --records -q d/out >records 2>&1; }
    killed
else
    echo "no recording here: $(<err)"
fi
echo "$runs runs"
[ $troubles = 0 ] || die "$troubles troubles"
