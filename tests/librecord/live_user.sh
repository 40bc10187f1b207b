#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A user without rights records programs of his own, launched and running ones.
# shellcheck source=_live.sh
. "$(dirname "$0")/_live.sh"
if [ "$paranoid" -gt 2 ]; then
    echo "kernel.perf_event_paranoid is $paranoid: users cannot record"
    exit 77
fi
user_folder

as_user "$user_record" --summary=json -o "$folder/launched.spool" -- "$user_workload" threads 200 2>launched.all ||
    failed "launched: exit status $?: $(cat launched.all)"
sort_messages launched
cp "$folder/launched.spool" .
fold launched
check launched threads
[ "$(field launched mode)" = inherit ] || failed "launched: mode $(field launched mode)"

as_user "$user_workload" --ready "$folder/pid" --gate "$folder/gate" fork 400 &
started+=($!)
wait_until 10 test -s "$folder/pid" || die "the workload does not begin"
as_user "$user_record" --summary=json -o "$folder/attached.spool" -p "$(cat "$folder/pid")" 2>attached.all &
recorder=$!
sleep 0.6
as_user touch "$folder/gate"
finish attached
cp "$folder/attached.spool" .
fold attached
check attached fork

exit $bad
