#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Summary, notices, losses and progress.
. "$(dirname "$0")/_common.sh"
command -v jq >/dev/null || { echo "no jq in PATH" && exit 77; }

# JSON: exactly these keys, one line, nothing else with -q.
run 0 "$fake" -q --summary=json true
[ "$(wc -l <err)" = 1 ] || die "$(cat err)"
equal out ''
jq -r 'keys_unsorted | join(" ")' err >keys
equal keys "sample_events samples lost_events lifecycle_gaps kernel_enabled event frequency_hz missing_pid missing_tid \
idle_tid missing_timestamp empty_stack truncated_stacks ignored_user_callchain throttled errors bytes duration_ns \
processes threads mode"
[ "$(jq -r '[.samples, .event, .kernel_enabled, .mode, .errors.no_rule, .frequency_hz] | join(",")' err)" = \
    1234,cpu-clock,false,inherit,0,999 ] || die "$(cat err)"
[ "$(jq .bytes err)" = "$(stat -c %s profile.spool)" ] ||
    die "$(jq .bytes err) bytes"

run 0 "$fake" --force --summary=none true
equal err ''
run 0 "$fake" --force -q true
equal err ''
run 0 "$fake" --force -q --summary=text true
has err '1,234 samples'

# Losses are told in any case.
for options in '' -q --summary=none; do
    # shellcheck disable=SC2086 # or no option
    FAKE_SUMMARY=lost run 0 "$fake" --force $options true
    has err '^lost 1,300 events, 1,000 of them samples \(44\.8 %\): a larger --buffer'
done
FAKE_SUMMARY=lost run 0 "$fake" --force -q --summary=json true
[ "$(jq .lost_events err)" = 1300 ] || die "$(cat err)"

FAKE_SUMMARY=cut run 0 "$fake" --force true
has err '^40 stacks do not reach the root \(3\.2 %\); --verbose tells why$' \
    '^2\.4 % of the stacks are larger than the 32768 bytes copied of each: --stack-size 65528 gets more of them$'
FAKE_SUMMARY=cut run 0 "$fake" --force -v --stack-size 64K true
has err '^40 stacks do not reach the root \(3\.2 %\)$' '^no_rule: 10 of 1234$' '65528 bytes .*the kernel copies no more$'

# Notices, by level.
FAKE_LOG='2 no kernel frames here' run 0 "$fake" --force true
has err '^spoolrecord: no kernel frames here$'
FAKE_LOG='1 65536 clamped to 65528' run 0 "$fake" --force --stack-size 64K true
has err '^spoolrecord: 65536 clamped to 65528$'
FAKE_LOG='2 no kernel frames here' run 0 "$fake" --force -q true
equal err ''
FAKE_LOG='0 a fault' run 0 "$fake" --force true
hasnt err fault
FAKE_LOG='0 a fault' run 0 "$fake" --force -v true
has err '^spoolrecord: a fault$'

# Progress: lines where there is no terminal and they are asked for.
run 0 "$fake" --force --progress=always sleep 1.3
has err '^spoolrecord: profile\.spool: [0-9.]+ s, 1,234 samples, [0-9]+ B$'
run 0 "$fake" --force sleep 0.8
[ "$(wc -l <err)" = 1 ] || die "$(cat err)"

# Children that run already.
sleep 60 &
target=$!
FAKE_DESCENDANTS=2 run 0 "$fake" --force -q --summary=text -d 0.1 -p $target
gone_text() { grep -q "$1" err && die "it says $1: $(cat err)"; return 0; }
gone_text 'run already'
FAKE_DESCENDANTS=2 run 0 "$fake" --force -d 0.1 -p $target
has err "^spoolrecord: process $target has 2 children that run already, not recorded without --descendants$"
FAKE_DESCENDANTS=1 run 0 "$fake" --force -d 0.1 -p $target
has err "process $target has 1 child that runs already, not recorded"
FAKE_DESCENDANTS=2 run 0 "$fake" --force --descendants -d 0.1 -p $target
gone_text 'run already'
kill $target

# On a terminal: one line that is drawn over itself and taken away.
command -v script >/dev/null || { echo "no script in PATH" && exit 77; }
sleep 100 &
target=$!
trap 'kill $target' EXIT
script -qec "'$fake' --force -d 1.5 -p $target" typescript >/dev/null
tr '\r' '\n' <typescript >lines
has lines 'profile\.spool: 0\.[5-9] s, 1,234 samples, [0-9]+ B' 'profile\.spool: 1,234 samples in 1\.'
[ "$(grep -c ' s, 1,234 samples' lines)" -ge 3 ] || die "drawn $(grep -c ' s, 1,234' lines) times"
for options in -q --progress=never; do
    script -qec "'$fake' --force $options --summary=none -d 1 -p $target" typescript >/dev/null
    hasnt typescript 'samples'
done
# A command that prints on the terminal is left alone, unless progress is asked for.
script -qec "'$fake' --force --summary=none sleep 1" typescript >/dev/null
hasnt typescript 'samples'
script -qec "'$fake' --force --summary=none sleep 1 >/dev/null" typescript >/dev/null
has typescript '1,234 samples'
script -qec "'$fake' --force --summary=none --progress=always sleep 1" typescript >/dev/null
has typescript '1,234 samples'
