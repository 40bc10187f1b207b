#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Public cases about processes and threads: O21, O27, O31 to O33.
. "$(dirname "$0")/_cases.sh"

# pprof#1002, PR #619: the id 0 is an id.
O21() {
    make <<'END'
version 3
interval 10ms
module a 0 0x10000-0x20000 0 /bin/idle
sample 10ms 0 0 a+0x10
END
    to_folded --root=thread
    folded 'idle-0;0;idle+0x10 1'
    to_pprof
    pprof '.sample[0].label[] | select(.key == "pid" or .key == "tid") | "\(.key) \(.num // 0) \(.num_unit)"' 'pid 0 pid
tid 0 tid'
    to_speedscope
    speedscope '.profiles[0].name' 'idle 0 / 0 (main)'
    go_pprof -tags || return 0
    grep -A1 -E '^ *pid:' go.out | grep -qE '(^|[^0-9])0( ?pid)?$' || die "$(<go.out)"
}

two_threads() {
    make <<'END'
interval 10ms
names f main
comm 40 app
thread 40 40 "the main"
thread 40 41 worker
samples 3 10ms 10ms 40 40 main
samples 5 10ms 12ms 40 41 f main
END
}

# perf_data_converter#104: threads by number and by name.
O27() {
    two_threads
    to_pprof
    pprof '[.sample[].labels | "\(.pid) \(.tid) \(.process) \(.thread)"] | sort | join(", ")' \
        '40 40 app the main, 40 41 app worker'
    pprof '[.sample[0].label[] | "\(.key)=\(.num_unit // "")"] | join(" ")' 'pid=pid process= thread= tid=tid'
    if go_pprof -tags; then
        for tag in pid: tid: process: thread: worker 'the main'; do
            grep -qF "$tag" go.out || die "$tag: $(<go.out)"
        done
        go_pprof -top -tagfocus tid=41
        ! grep -q ' main$' go.out || grep -q ' f$' go.out || die "$(<go.out)"
        go_pprof -top -tagroot process
        grep -q ' app$' go.out || die "$(<go.out)"
    fi
    to_pprof --labels=pid,thread
    pprof '[.sample[].label[].key] | unique | join(" ")' 'pid thread'
    to_pprof --labels=
    pprof '[.sample[].label[]] | length' 0
    to_speedscope
    speedscope '[.profiles[].name] | join(", ")' 'all threads (aggregated), app 40 / worker 41, app 40 / the main 40 (main)'
    speedscope '.profiles[0].busy' 80000000
    to_speedscope --no-overview
    speedscope '[.profiles[].name] | join(", ")' 'app 40 / worker 41, app 40 / the main 40 (main)'
    to_speedscope --merge-threads
    speedscope '[.profiles[].name] | join(", ")' 'all threads (aggregated)'
}

# gprofiler#431, FlameGraph#241, #357: the root is the process, whatever a thread is called.
O31() {
    make <<'END'
interval 10ms
names f
comm 40 server
thread 40 40 server
thread 40 41 http
sample 10ms 40 40 f
sample 20ms 40 41 f
thread 40 40 accept-loop
thread 40 41 "http idle"
sample 30ms 40 40 f
sample 40ms 40 41 f
END
    convert
    folded 'server;f 4'
    pprof '[.sample[].labels.process] | unique | join(" ")' server
    pprof '[.sample[].labels | "\(.tid) \(.thread)"] | sort | unique | join(", ")' \
        '40 accept-loop, 40 server, 41 http, 41 http idle'
    speedscope '[.profiles[1:][].name | startswith("server 40 / ")] | unique | join(" ")' true
    speedscope '.profiles | length' 3 # one profile a thread
    to_folded --root=pid
    folded 'server-40;f 4'
}

# py-spy#439, PR #440; pyroscope#3989, #4584: threads that are called the same.
O32() {
    make <<'END'
interval 10ms
names f
comm 40 app
thread 40 41 worker
thread 40 42 worker
thread 40 43 worker
samples 9 10ms 10ms 40 41-43 f
END
    to_speedscope --no-overview
    speedscope '[.profiles[].name] | join(", ")' 'app 40 / worker 41, app 40 / worker 42, app 40 / worker 43'
    to_pprof
    pprof '.sample | length' 3
    to_folded --root=thread
    folded 'app-40;worker-41;f 3
app-40;worker-42;f 3
app-40;worker-43;f 3'
    # The same threads of another capture are others.
    cp cap cap2
    inputs=(cap cap2)
    to_speedscope --no-overview
    speedscope '.profiles | length' 6
    speedscope '[.profiles[].name | select(endswith(" #2"))] | length' 3
    # Two processes that are called the same.
    inputs=(cap)
    make <<'END'
interval 10ms
names f
comm 40 app
comm 50 app
sample 10ms 40 40 f
sample 20ms 50 50 f
END
    to_speedscope
    speedscope '[.profiles[].name] | join(", ")' 'all threads (aggregated), app 40 / 40 (main), app 50 / 50 (main)'
    speedscope '[.profiles[0].runs[].stack | join("|")] | sort | join(" ")' 'app 40|f app 50|f'
}

# speedscope#513, perfview#1325, dotnet/diagnostics#3493: 300 threads.
O33() {
    {
        printf '%s\n' 'interval 10ms' 'names f g main' 'comm 40 app'
        for ((i = 0; i < 300; i++)); do
            printf 'samples %d 10ms %dms 40 %d f main\n' $((1000 - i)) $((i + 10)) $((100 + i))
            # idle for a while, and something else after it
            printf 'samples 100 10ms 30s 40 %d g main\n' $((100 + i))
        done
    } | make
    to_speedscope
    # The 256 busiest, the others together, and all of them in front.
    speedscope '.profiles | length' 258
    speedscope '[.profiles[].name] | .[0], .[1], .[256], .[257]' 'all threads (aggregated)
app 40 / 100
app 40 / 355
other threads (44)'
    speedscope '.profiles[0].busy == ([.profiles[1:][].busy] | add)' true
    speedscope '.profiles[0].busy / 10000000' $((300 * 1000 - 300 * 299 / 2 + 300 * 100))
    if [ -e speedscope.json ]; then
        merged=$(stat -c %s speedscope)
        to_speedscope --no-merge-runs
        [ $((merged * 10)) -lt "$(stat -c %s speedscope)" ] ||
            die "$merged bytes, and $(stat -c %s speedscope) with an entry a sample"
    fi
    to_speedscope --max-profiles 3
    speedscope '[.profiles[].name] | join(", ")' \
        'all threads (aggregated), app 40 / 100, app 40 / 101, app 40 / 102, other threads (297)'
    to_pprof
    pprof '[.sample[].labels.tid] | unique | length' 300
    to_folded
    folded "app;main;f $((300 * 1000 - 300 * 299 / 2))
app;main;g 30000"
}

run_cases
