#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# --help of every tool fits a screen: at most 50 lines of at most 80 columns, one line an option.
. "$(dirname "$0")/_common.sh"

for main in "$SRC"/tools/*/main.c; do
    tool=$(basename "$(dirname "$main")")
    run 0 "$tool" --help
    equal err ''
    lines=$(wc -l <out)
    ((lines <= 50)) || die "$tool --help has $lines lines"
    awk 'length > 80 { print; bad = 1 } END { exit bad }' out || die "$tool --help has lines above 80 columns"
    grep -q ' $' out && die "$tool --help has blanks at the end of a line"
    # What is indented is an option, a further synopsis or a further example: no text goes on in a second line.
    grep '^ ' out | grep -vE "^  (-[a-zA-Z], )?--[^ ].*[^ ]  +[^ ]|^       $tool |^          spool" >wrapped &&
        die "$tool --help wraps: $(<wrapped)"
    # No text is without its option, and none is cut off.
    sed -n 's/^  -.*[^ ]   *//p' out | grep -E '[,;:(]$' && die "$tool --help has a text without an end"
    [ "$(tail -1 out | grep -o 'All of it: man .*')" = "All of it: man $tool" ] || die "$tool --help ends with $(tail -1 out)"
    for option in help version completion; do
        sed -n '/^Help:$/,$p' out | grep -q -e "--$option" || die "no --$option at the end of $tool --help"
    done
done
