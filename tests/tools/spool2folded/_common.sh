# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2034 # used by those that source it
# What the shell tests of spool2folded share; to be sourced.
. "$(dirname "${BASH_SOURCE[0]}")/../_common.sh"
spool2folded=$BIN/spool2folded

# total FILE: the sum of the counts.
total() {
    awk '{ n += $NF } END { print n + 0 }' "$1"
}
