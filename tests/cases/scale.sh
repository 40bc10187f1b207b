#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Public cases about size: O28 and O34, a tenth of them, or all with SPOOL_LARGE=1.
. "$(dirname "$0")/_cases.sh"

large=${SPOOL_LARGE:-0}

# peak COMMAND...: runs it, and says on descriptor 3 how many KiB of memory it had at most.
peak() {
    "$BUILD/tests/cost" "$@" 3>cost.peak || return
    cut -d ' ' -f 2 cost.peak >&3
}

# records N: N samples of one stack, each 10 ms after the one before, with padded numbers: 31 bytes a sample.
records() {
    printf 'interval 10ms\nnames f main\ncomm 40 app\nsample 10ms 40 41 f main\nraw %s %d\n' \
        0580dac489808080808000"80808080808080808000""81808080808080808000" $(($1 - 1)) | "$SPOOLMAKE"
}

# perf_data_converter#123, #141: a spool above 2 GiB through a pipe, in memory that does not grow.
O28() {
    local many=8700000 few=800000 size # 257 MiB
    [ "$large" = 0 ] || many=70000000
    size=$(records $few | wc -c)
    [ $((size / few)) = 31 ] || die "$size bytes"
    for tool in spool2folded 'spool2folded --timeline --weight=time' spool2pprof 'spool2pprof --labels=' \
        spool2speedscope 'spool2speedscope --merge-threads'; do
        have "${tool%% *}" || continue
        for samples in $few $many; do
            # shellcheck disable=SC2086 # a command line
            records $samples | peak $BIN/$tool "${common[@]}" >document 3>peak.$samples || die "$tool of $samples samples"
            [ "$(stat -c %s document)" -lt 10000 ] || die "$tool: $(stat -c %s document) bytes"
            case $tool in
            *time*) [ "$(<document)" = "app;main;f ${samples}0000" ] || die "$tool: $(<document)" ;;
            spool2folded) [ "$(<document)" = "app;main;f $samples" ] || die "$tool: $(<document)" ;;
            spool2pprof*)
                equal "$tool" "$(node "$helpers/decode_pprof.mjs" document | jq -r '.sample[].value | join(" ")')" \
                    "$samples ${samples}0000000"
                ;;
            *)
                equal "$tool" "$(node "$helpers/decode_speedscope.mjs" document | jq -r '.profiles[] | .busy, .idle')" \
                    "${samples}0000000
0"
                ;;
            esac
        done
        # A few hundred KiB are the allocator's and, with sanitizers, of what is kept of freed memory.
        [ $(($(<peak.$many) - $(<peak.$few))) -lt 8192 ] ||
            die "$tool: $(<peak.$few) KiB for $few samples, $(<peak.$many) KiB for $many"
    done
}

# speedscope#340, PR #385; firefox profiler#4500, #4980: ten million samples that do not merge.
O34() {
    local samples=1000000 limit
    [ "$large" = 0 ] || samples=10000000
    printf '%s\n' 'interval 1ms' 'names f g main' 'comm 40 app' \
        "samples $samples 1ms 1ms 40 41-44 f main | g main | g f main" | "$SPOOLMAKE" >cap
    to_folded
    [ "$(awk '{ n += $NF } END { print n }' folded)" = $samples ] || die "$(<folded)"
    if converter spool2pprof pprof.pb.gz; then
        node "$helpers/decode_pprof.mjs" pprof.pb.gz >pprof.json || die "spool2pprof"
        pprof '[.sample[].value[0]] | add' $samples
        pprof '.sample | length' 12
    fi
    have spool2speedscope || return 0
    peak "$BIN/spool2speedscope" cap >speedscope 2>spool2speedscope.err 3>memory || die "$(<spool2speedscope.err)"
    if [ "$(stat -c %s speedscope)" -gt $((128 << 20)) ]; then
        [ "$(wc -l <spool2speedscope.err)" = 1 ] || die "$(<spool2speedscope.err)"
        grep -q -e '--merge-threads' spool2speedscope.err || die "$(<spool2speedscope.err)"
    else
        [ ! -s spool2speedscope.err ] || die "$(<spool2speedscope.err)"
        node "$helpers/decode_speedscope.mjs" speedscope --summary >speedscope.json || die "spool2speedscope"
        speedscope '.profiles | length' 5
        speedscope '[.profiles[1:][].busy] | add' ${samples}000000
    fi
    # Runs beyond 64 MiB go to a file.
    limit=$((192 << 10))
    [ -z "${SANITIZE_FLAGS-}" ] || limit=$((limit * 4))
    [ "$(<memory)" -lt $limit ] || die "$(<memory) KiB of memory"
    [ "$(head -c 11 speedscope)" = '{"$schema":' ] && [ "$(tail -c 2 speedscope)" = '}' ] || die "an unfinished document"
    # What the warning recommends is small.
    to_speedscope --merge-threads
    speedscope '.profiles[] | .busy, .entries' "${samples}000000
3"
    [ ! -e speedscope.json ] || [ "$(stat -c %s speedscope)" -lt 10000 ] || die "$(stat -c %s speedscope) bytes"
}

run_cases
