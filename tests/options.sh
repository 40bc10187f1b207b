#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# For each tool: the options of --help and those that its manual page explains, in lines of .It, are the same, short ones
# included.
set -u
. "$(dirname "$0")/_options.sh"
bad=0

for main in "$SRC"/tools/*/main.c; do
    tool=$(basename "$(dirname "$main")")
    help_options "$tool" | tr ' ' '\n' | sort -u >in_help
    # `.It Fl q , Fl -quiet` or `.It Fl q , Fl Fl quiet`; the lists of other sections speak of options, too.
    sed -n '/^\.Sh OPTIONS/,/^\.Sh [^O]/p' "$SRC/tools/$tool/$tool.1" | grep '^\.It ' |
        sed -E 's/\bFl Fl ([a-z])/--\1/g; s/\bFl (-?[A-Za-z])/-\1/g' | option_names |
        tr ' ' '\n' | sort -u >in_page
    [ "$(wc -l <in_help)" -gt 10 ] || { echo "$tool --help: found only: $(<in_help)" && bad=1; }
    if ! diff in_help in_page >differences; then
        echo "$tool: --help (<) and the manual page (>) differ:"
        grep '^[<>]' differences
        bad=1
    fi
done
exit $bad
