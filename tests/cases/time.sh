#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Public cases about time and weights: O13 to O19 and O29.
. "$(dirname "$0")/_cases.sh"

# What a viewer shows of the first profile: its runs as stack:weight in milliseconds.
runs='[.profiles[0].runs[] | "\(.stack | join(">")):\(.weight / 1000000)"] | join(" ")'

# py-spy#231, speedscope#393: busy for a second, idle for nine, busy for a second.
O13() {
    make <<'END'
interval 10ms
names f
comm 40 app
samples 100 10ms 10ms 40 41 f
samples 100 10ms 10010ms 40 41 f
END
    to_folded --weight=time
    folded 'app;f 2000000'
    to_pprof
    pprof '[.sample[].value | join(" ")] | join(", ")' '200 2000000000'
    pprof '.duration_nanos' 11000000000 # latest - earliest + interval
    to_speedscope
    speedscope "$runs" 'f:1000 :9000 f:1000'
    speedscope '.profiles[0] | .busy, .idle, .endValue' '2000000000
9000000000
11000000000'
    to_speedscope --no-merge-runs
    speedscope '.profiles[0] | .busy, .idle, .endValue, .entries' '2000000000
9000000000
11000000000
201'
    # Samples have no gaps between them.
    to_speedscope --weight=samples
    speedscope '.profiles[0] | .unit, .busy, .idle, .endValue' 'none
200
0
200'
}

# py-spy#430, PR #434: the axis ends with the last sample's interval.
O14() {
    make <<'END'
interval 10ms
names f
comm 40 app
samples 100 10ms 5s 40 41 f
END
    to_speedscope
    speedscope '.profiles[0] | .endValue, .busy, .gaps' '1000000000
1000000000
0'
    to_pprof
    pprof '.duration_nanos' 1000000000
}

# rbspy#386: as many weights as samples (decode_speedscope.mjs complains), on everything that was recorded.
O15() {
    local documents=()
    for spool in "$stackpulse"/ladder/*.spool "$stackpulse"/python/*.spool "$stackpulse"/kernel/*.spool \
        "$stackpulse"/synth/{basic,churn,unpinned,deep,backwards}.spool; do
        inputs=("$spool")
        common=(--sysroot "$FIXTURES/sysroot" --perf-map-dir "$stackpulse/python")
        for options in '' --no-merge-runs --weight=samples --merge-threads; do
            # shellcheck disable=SC2086 # none or one
            converter spool2speedscope "$(basename "$spool")$options" $options || continue
            documents+=("$(basename "$spool")$options")
        done
        to_folded
        # All threads together are what was sampled.
        to_speedscope --weight=samples --no-overview
        speedscope '[.profiles[].busy] | add' "$(awk '{ n += $NF } END { print n }' folded)"
    done
    [ ${#documents[@]} = 0 ] || node "$helpers/decode_speedscope.mjs" --faults "${documents[@]}" 2>faults ||
        die "spool2speedscope: $(head -3 faults)"
}

# rbspy#367, PR #371: samples that are not in order.
O16() {
    make <<'END'
interval 10ms
names a b c d
comm 40 app
sample 50ms 40 41 a
sample 20ms 40 41 b
sample -10ms 40 41 c
sample 40ms 40 41 d
sample 40ms 40 41 a
END
    to_speedscope
    speedscope "$runs" 'c:10 b:10 :10 d:10 a:20'
    to_folded --timeline
    folded 'app;c 1
app;b 1
app;d 1
app;a 2'
    # Jitter: what comes early follows without a gap, and nothing is lost.
    make <<'END'
interval 10ms
names a b
comm 40 app
sample 10ms 40 41 a
sample 14ms 40 41 b
sample 23ms 40 41 a
sample 50ms 40 41 b
sample 64ms 40 41 a
sample 79ms 40 41 b
END
    to_speedscope
    # zero is at 0; ends: 10, 20, 30; 40-30 >= 5: gap of 10, end 50; 54-50 < 5: end 60; 69-60 >= 5: gap of 9
    speedscope "$runs" 'a:10 b:10 a:10 :10 b:10 a:10 :9 b:10'
    speedscope '.profiles[0] | .busy, .endValue' '60000000
79000000'
    # An end beyond the last moment: five samples at once.
    make <<'END'
interval 10ms
names a
comm 40 app
samples 5 0 10ms 40 41 a
END
    to_speedscope
    speedscope '.profiles[0] | .busy, .endValue' '50000000
50000000'
}

# sentry PR #116234: a lone sample has a weight.
O17() {
    make <<'END'
interval 10ms
names f
comm 40 app
sample 123s 40 41 f
END
    to_speedscope
    speedscope "$runs" f:10
    speedscope '.profiles[0].endValue' 10000000
    to_pprof
    pprof '.sample[0].value | join(" ")' '1 10000000'
    pprof '.duration_nanos' 10000000
    to_folded --weight=time
    folded 'app;f 10000'
}

# inferno#170, PR #367: sums that do not fit.
O18() {
    make <<'END'
interval 5000000000000000000
names f g
comm 40 app
sample 1ms 40 41 f
END
    to_folded --weight=time
    folded 'app;f 5000000000000000'
    to_pprof
    pprof '.sample[0].value[1] | tostring' 5000000000000000000
    make <<'END'
interval 5000000000000000000
names f
comm 40 app
sample 1ms 40 41 f
sample 2ms 40 41 f
END
    refused '' spool2folded --weight=time
    refused '' spool2pprof
    refused '' spool2speedscope --weight=time
    to_folded
    folded 'app;f 2'
    to_speedscope --weight=samples
    speedscope '.profiles[0].busy' 2
    # On different stacks, too: it is the sum of all that does not fit.
    make <<'END'
interval 5000000000000000000
names f g
comm 40 app
sample 1ms 40 41 f
sample 2ms 40 41 g
END
    refused '' spool2folded --weight=time
    refused '' spool2pprof
    # JSON readers have doubles: 2^53 is the end there.
    make <<'END'
interval 9007199254740993
names f
comm 40 app
sample 1ms 40 41 f
END
    refused '' spool2speedscope --weight=time
    # Without an interval there is no time.
    make <<'END'
names f
comm 40 app
sample 1ms 40 41 f
END
    refused '' spool2folded --weight=time
    refused '' spool2speedscope --weight=time
    to_speedscope
    speedscope '.profiles[0] | .unit, .busy' 'none
1'
    to_pprof
    pprof '[.sample_type[].type] | join(" ")' samples
    pprof '.default_sample_type, .period, "\(.period_type.type)/\(.period_type.unit)"' 'samples
1
samples/count'
}

# austin-python PR #7: microseconds in version 3, nanoseconds in version 4, and the same output.
O19() {
    for version in 3 4; do
        {
            printf 'version %d\n' $version
            cat <<'END'
interval 10ms
comm 40 app
thread 40 41 worker
module app 40 0x10000-0x20000 0x1000 /x/app inode 7 dev 8:2
sample 10ms 40 41 app+0x1010 app+0x1020
sample 20ms 40 41 app+0x1010
sample 60ms 40 41 app+0x1020
sample 60ms 40 40 app+0x1020 [truncated]
END
        } | make version$version
    done
    for tool in 'spool2folded --weight=time' 'spool2folded --weight=time --timeline' 'spool2pprof --gzip-level=0' \
        'spool2pprof --timestamps' spool2speedscope 'spool2speedscope --no-merge-runs'; do
        have "${tool%% *}" || continue
        for version in 3 4; do
            # shellcheck disable=SC2086 # a command line
            $BIN/$tool "${common[@]}" <version$version >out$version || die "$tool: version $version"
        done
        [ -s out3 ] || die "$tool: nothing"
        cmp out3 out4 || die "$tool: the versions differ"
    done
}

# pprof-rs PR #90: both kinds of values, and time as the one to begin with.
O29() {
    make <<'END'
interval 10ms
names f main
comm 40 app
sample 10ms 40 41 f main
sample 20ms 40 41 f main
sample 60ms 40 41 main
END
    to_pprof
    pprof '[.sample_type[] | "\(.type)/\(.unit)"] | join(" ")' 'samples/count cpu/nanoseconds'
    pprof '.default_sample_type, "\(.period_type.type)/\(.period_type.unit)", .period' 'cpu
cpu/nanoseconds
10000000'
    pprof '[.sample[].value | join(" ")] | join(", ")' '2 20000000, 1 10000000'
    pprof 'has("time_nanos")' false # no wall clock is known
    if go_pprof -raw; then
        grep -qx 'samples/count cpu/nanoseconds\[dflt\]' go.out || die "$(<go.out)"
        grep -qx 'Period: 10000000' go.out || grep -q '^Period' go.out || die "$(<go.out)"
    fi
    # A wall clock: of the header, and of an annotation.
    make <<'END'
interval 10ms
origin 1s 1700000000000000005
names f
comm 40 app
sample 3s 40 41 f
sample 2s 40 41 f
END
    to_pprof
    pprof '.time_nanos | tostring' 1700000001000000005
    to_pprof --timestamps
    pprof '[.sample[].labels.timestamp_ns | tostring] | join(" ")' '1700000001000000005 1700000002000000005'
    make <<'END'
interval 10ms
names f
note 40 clock "1000000000 1700000000000000007"
sample 2s 40 41 f
END
    to_pprof
    pprof '.time_nanos | tostring' 1700000001000000007
}

run_cases
