#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# _twice.sh COMMAND...: runs a test, and once more when it fails. For tests that sample programs as they run: what is hit
# depends on what else the machine does meanwhile, and a limit that a machine in use never misses would be no limit. What is
# wrong with the recorder itself fails both times. .ci/run names the tests that took two.
"$@"
status=$?
case $status in 0 | 77) exit $status ;; esac
echo "== second try: exit status $status"
exec "$@"
