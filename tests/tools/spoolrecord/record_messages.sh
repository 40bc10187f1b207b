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

# Progress, of recordings that all run at once, each in a folder of its own.
sleep 100 &
target=$!
trap 'kill $target' EXIT
# recording NAME ARGUMENT...: NAME/err is what the tool says without a terminal.
recording() {
    mkdir "$1"
    (cd "$1" && exec "$fake" "${@:2}" 2>err </dev/null) &
    recordings+=($!)
}
# on_terminal NAME ARGUMENTS: NAME/typescript is what is to be seen on one.
on_terminal() {
    mkdir "$1"
    (cd "$1" && exec script -qec "'$fake' $2" typescript >/dev/null) &
    recordings+=($!)
}
recordings=()
recording lines --progress=always sleep 1.3
recording few sleep 0.8
if command -v script >/dev/null; then
    on_terminal drawn "-d 1.5 -p $target"
    on_terminal quiet "-q --summary=none -d 1 -p $target"
    on_terminal never "--progress=never --summary=none -d 1 -p $target"
    on_terminal beside '--summary=none sleep 1'
    on_terminal elsewhere '--summary=none sleep 1 >/dev/null'
    on_terminal asked '--summary=none --progress=always sleep 1'
fi
wait "${recordings[@]}"

# Lines where there is no terminal and they are asked for.
has lines/err '^spoolrecord: profile\.spool: [0-9.]+ s, 1,234 samples, [0-9]+ B$'
[ "$(wc -l <few/err)" = 1 ] || die "$(cat few/err)"
# On a terminal: one line that is drawn over itself and taken away.
command -v script >/dev/null || { echo "no script in PATH" && exit 77; }
tr '\r' '\n' <drawn/typescript >drawn/lines
has drawn/lines 'profile\.spool: 0\.[5-9] s, 1,234 samples, [0-9]+ B' 'profile\.spool: 1,234 samples in 1\.'
[ "$(grep -c ' s, 1,234 samples' drawn/lines)" -ge 3 ] || die "drawn $(grep -c ' s, 1,234' drawn/lines) times"
hasnt quiet/typescript 'samples'
hasnt never/typescript 'samples'
# A command that prints on the terminal is left alone, unless progress is asked for.
hasnt beside/typescript 'samples'
has elsewhere/typescript '1,234 samples'
has asked/typescript '1,234 samples'
