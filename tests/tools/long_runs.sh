#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Four times the samples take no more memory, in each tool that reads them through a pipe: tests/bench/long, in small.
# spool2speedscope, which keeps runs, is bounded in cases/scale.sh.
set -u
[ -x "$BIN/spoolgen" ] || { echo "no spoolgen: the benchmark programs are not built" && exit 77; }
export SIZES="0.004 0.016" SPEEDSCOPE_SIZES="" GROWING_SIZES="0.002 0.008" STACKS=2000 SLACK_KIB=512
if [ -n "${SANITIZE_FLAGS:-}" ]; then # which keep 8 MB of freed memory, and more of a stack than it takes
    export GROWING_SIZES="" SLACK_KIB=9000
fi
"$SRC/tests/bench/long" "$BUILD"
