#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The examples of the manual page, each of them run, and one for each option.
. "$(dirname "$0")/../_man_examples.sh"
man_examples spoolcat
exit "$bad"
