# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2154 # sourced by run, whose variables it uses
# The tools against perf on the same samples: a program is recorded with perf once a day, its perf.data is turned into
# a spool (perf_text spool), and both ways lead from there to collapsed stacks. perf_text fold is the step that perf
# needs behind perf script. The spool has what perf.data has: offsets in files, kernel addresses, no names.
#   PERF_HZ=N  samples a second, 20000 unless given

perf_fields=comm,pid,tid,time,event,ip,sym,dso

make_perf() {
    local demo=$root/tests/fixtures/stackpulse/demo
    perf_folder=$cache/perf
    perf_works=
    if ! command -v perf >/dev/null; then
        echo "perf: left out, there is no perf here"
        return
    fi
    find "$cache" -name perf.data -mtime +0 -delete
    if [ ! -f "$perf_folder/perf.data" ] || [ ! -f "$perf_folder/samples.spool" ]; then
        mkdir -p "$perf_folder"
        cc -O2 -fno-omit-frame-pointer -o "$perf_folder/ladder" "$demo/ladder.c" -ldl -lpthread
        (cd "$perf_folder" && perf record -q -e cpu-clock -F "${PERF_HZ:-20000}" -g -o perf.data ./ladder lrts 2000) \
            >/dev/null 2>"$work/perf.log" || {
            echo "perf: left out, it cannot record here: $(tail -n 1 "$work/perf.log")"
            rm -f "$perf_folder/perf.data"
            return
        }
        perf script -i "$perf_folder/perf.data" --show-mmap-events -F $perf_fields 2>/dev/null |
            "$bin/perf_text" spool >"$perf_folder/samples.spool"
    fi
    perf_works=1
    echo "perf: $(stat -c %s "$perf_folder/perf.data") bytes of perf.data, $(stat -c %s "$perf_folder/samples.spool") of spool"
}

measure_perf() {
    [ -n "$perf_works" ] || return 0
    tool perf "$work/perf.folded" sh -c "perf script -i '$perf_folder/perf.data' -F $perf_fields 2>/dev/null |
        '$bin/perf_text' fold"
    tool perf-folded "$work/ours.folded" "$bin/spool2folded" --quiet "$perf_folder/samples.spool"
    tool perf-stats "$work/perf.stats" sh -c "perf report --stats -i '$perf_folder/perf.data' 2>/dev/null"
    tool perf-summary "$work/ours.summary" "$bin/spoolcat" --summary --quiet "$perf_folder/samples.spool"
    if [ -x "$bin/spool2pprof" ]; then
        tool perf-pprof "$work/ours.pb.gz" "$bin/spool2pprof" --quiet -o - "$perf_folder/samples.spool"
        # Nothing that is packaged converts to this format. This one reads and writes it, the same profile.
        ! command -v go >/dev/null || tool perf-go /dev/null \
            sh -c "go tool pprof -symbolize=none -proto -output '$work/go.pb.gz' '$work/ours.pb.gz' 2>/dev/null"
    fi
    [ ! -x "$bin/spool2speedscope" ] || tool perf-script "$work/perf.script" \
        sh -c "perf script -i '$perf_folder/perf.data' -F $perf_fields 2>/dev/null" # which speedscope imports
    [ ! -x "$bin/spool2speedscope" ] ||
        tool perf-speedscope "$work/ours.json" "$bin/spool2speedscope" --quiet "$perf_folder/samples.spool"
}

report_perf() {
    [ -n "$perf_works" ] || return 0
    local samples theirs
    samples=$(awk '{ n += $NF } END { print n }' "$work/ours.folded")
    theirs=$(awk '{ n += $NF } END { print n }' "$work/perf.folded")
    printf '\n%-44s %8s %8s %8s %9s\n' "$samples samples recorded by perf ($theirs)" "median s" min max "peak MiB"
    row perf "perf script | perf_text fold"
    row perf-folded "spool2folded"
    row perf-pprof "spool2pprof"
    row perf-speedscope "spool2speedscope"
    row perf-script "perf script, which speedscope imports"
    row perf-go "go tool pprof -proto: reads and writes ours"
    row perf-stats "perf report --stats"
    row perf-summary "spoolcat --summary"
    echo
    ratio "perf script and folding / spool2folded" "" "$(seconds perf)" "$(seconds perf-folded)"
}
