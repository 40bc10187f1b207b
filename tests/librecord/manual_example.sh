#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The program in librecord(3) compiles, records a command, and tells of one that cannot be run.
. "$(dirname "$0")/../_manual.sh"

"$BUILD/tests/workload" probe || exit $?
program librecord/librecord.3 1 >example.c
build example librecord libspool

# shellcheck disable=SC2016 # for the inner shell
./example busy.spool bash -c 'for ((i = 0; i < 300000; i++)); do :; done' 2>messages || failed "exit status $?: $(cat messages)"
samples=$(sed -n '1s/^\([0-9]*\) samples, [0-9]* records lost$/\1/p' messages)
[ "${samples:-0}" -gt 10 ] || failed "no count of samples, or few: $(cat messages)"
in_spool=$(spoolcat --json --summary busy.spool | grep -oE '"samples":[0-9]+' | head -n 1)
[ "$in_spool" = "\"samples\":$samples" ] || failed "$samples samples told, in the spool $in_spool"

./example nothing.spool ./nosuch 2>messages && failed "a command that is not there is no error"
grep -qx './nosuch: No such file or directory' messages || failed "of a command that is not there: $(cat messages)"
exit $bad
