#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The examples of the manual page, each of them run, and one for each option.
. "$(dirname "$0")/../_man_examples.sh"
may_warn='files? .*no symbols on this machine' # cap.spool has a library that is not there
man_examples spoolpack
exit "$bad"
