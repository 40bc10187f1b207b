# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# What tests share that run the examples of documents; to be sourced.

# incomplete COMMAND: whether the shell would read on behind it.
incomplete() {
    [[ $1 == *\\ ]] || ! bash -n -c "$1" 2>/dev/null
}

# same_lines FILE TEXT: whether FILE holds the lines of TEXT, of which `...` stands for any.
same_lines() {
    pattern=$2 awk '
        BEGIN { n = split(ENVIRON["pattern"], want, "\n") }
        { got[NR] = $0 }
        function match_from(i, j) {
            if (j > n) return i > NR
            if (want[j] == "...") { for (; i <= NR + 1; i++) if (match_from(i, j + 1)) return 1; return 0 }
            return i <= NR && got[i] == want[j] && match_from(i + 1, j + 1)
        }
        END { exit !match_from(1, 1) }' "$1"
}
