#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Damaged input (cli.md section 3), sums that do not fit, spools without an interval, and what the profile says of it.
. "$(dirname "$0")/_common.sh"

command -v protoc >/dev/null || { echo "no protoc in PATH" && exit 77; }
pprof=("$spool2pprof" --no-symbols --gzip-level=0)
decode() { # FILE: its text
    protoc --proto_path="$SRC/tests/consumers" --decode=perftools.profiles.Profile profile.proto <"$1"
}
comments() { # FILE: the comments, one a line
    decode "$1" >decoded
    mapfile -t strings < <(sed -n 's/^string_table: "\(.*\)"$/\1/p' decoded)
    for i in $(sed -n 's/^comment: //p' decoded); do
        echo "${strings[i]}"
    done
}

# A cut tail: the kept prefix, a warning, a comment.
cp "$synth/churn-cut.spool" cut
for option in --progress=never --salvage; do
    run 0 "${pprof[@]}" $option cut
    equal err 'spool2pprof: cut: cut off at byte 122901; kept 2999 samples'
    [ "$(comments out | tail -1)" = 'capture was cut off' ] || die "$(comments out)"
done
run 1 "${pprof[@]}" --strict cut
equal out ''

# Corruption: nothing, or what stands before it.
kept=$("${pprof[@]}" cut 2>&1 >prefix | sed -n 's/.*cut off at byte \([0-9]*\);.*/\1/p')
head -c "$kept" cut >corrupt
printf '\xee and more' >>corrupt
for options in --labels=pid --timestamps "-o file"; do
    # shellcheck disable=SC2086 # several words
    run 1 "${pprof[@]}" $options corrupt
    equal out ''
    [ ! -e file ] || die "a file in spite of an error"
done
for option in --labels=pid --timestamps; do
    run 0 "${pprof[@]}" --salvage $option --comment=mine corrupt
    comments out >said
    [ "$(sed -n '1p;$p' said)" = "mine"$'\n'"salvaged: damage at byte $kept" ] || die "$(<said)"
done

# Losses and truncated stacks add up over all inputs; equal comments are one.
make lossy <<'END'
interval 1ms
names f
note 1 lost 3
sample 1ms 1 1 f
sample 2ms 1 1 f [truncated]
END
run 0 "${pprof[@]}" --comment=x --comment=x lossy lossy
comments out >said
equal said 'x
6 samples lost while recording
2 stacks truncated'

# No interval: no time, and a warning, whichever input it is.
make timeless <<'END'
names f
sample 1ms 1 1 f
END
for inputs in "timeless lossy" "lossy timeless" "timeless"; do
    for option in --labels=pid --timestamps; do
        # shellcheck disable=SC2086 # several words
        run 0 "${pprof[@]}" $option $inputs
        equal err 'spool2pprof: timeless: states no sample interval, so samples have no time'
        decode out >decoded
        [ "$(grep -c '^sample_type' decoded)" = 1 ] || die "$inputs: time without an interval"
        ! grep -q '"cpu"' decoded || die "$inputs: cpu"
        grep -q '^period: 1$' decoded || die "$inputs: no period"
    done
done
# An input without samples does not matter.
printf 'interval 0\n' | make none
run 0 "${pprof[@]}" lossy none
equal err ''

# Nothing at all is a whole profile.
run 0 "${pprof[@]}" none
equal err 'spool2pprof: the spool has no samples'
decode out >decoded
[ "$(grep -c '^sample {' decoded)" = 0 ] && grep -q '^default_sample_type' decoded || die "$(<decoded)"

# Sums that do not fit are an error, never negative.
make huge <<'END'
interval 9223372036854775807ns
names f
sample 1ms 1 1 f
END
run 0 "${pprof[@]}" huge
decode out | grep -q 'value: 9223372036854775807' || die "the largest sum"
for option in --labels=pid --timestamps; do
    run 1 "${pprof[@]}" $option huge huge
    equal err 'spool2pprof: the sum of sample times exceeds 2^63-1 ns'
    equal out ''
done
run 0 "${pprof[@]}" huge huge timeless
exit 0
