# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# What --help says the options are; to be sourced. A line of options begins with blanks and a `-`, and the options end at
# the first two blanks; --[no-]name is two of them.

# option_names: the options in each line of standard input, separated by blanks; those of a pair in lines of their own.
option_names() {
    awk '{
        names = ""
        while (match($0, /(^|[ ,])-(-(\[no-\])?[a-z0-9][a-z0-9-]*|[A-Za-z0-9])/)) {
            name = substr($0, RSTART, RLENGTH)
            $0 = substr($0, RSTART + RLENGTH)
            sub(/^[ ,]/, "", name)
            if (sub(/\[no-\]/, "", name)) print "--no-" substr(name, 3)
            names = names (names == "" ? "" : " ") name
        }
        if (names != "") print names
    }'
}

# help_options TOOL: a line for each of its options, with the names that it has.
help_options() {
    "$BIN/$1" --help | sed -nE '/^ +-/ { s/^ +//; s/  .*//; p; }' | option_names
}
