# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2034 # used by those that source it
# What the shell tests of spool2speedscope share; to be sourced.
. "$(dirname "${BASH_SOURCE[0]}")/../_common.sh"
spool2speedscope=$BIN/spool2speedscope
