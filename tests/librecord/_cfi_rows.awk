# SPDX-License-Identifier: MIT
# From readelf --debug-dump=frames-interp to the lines of cfi_rows, in the file's order. Appended "" keeps addresses
# from being compared as numbers: 0e10 is no power of ten.
BEGIN {
    n = split("rax rdx rcx rbx rsi rdi rbp rsp r8 r9 r10 r11 r12 r13 r14 r15 ra sp", list, " ")
    for (i = 1; i <= n; i++) kept[list[i]] = 1
    for (i = 0; i < 31; i++) kept["x" i] = 1
}
function flush(    i) {
    for (i = 1; i <= rows; i++) print loc[i], text[i]
    rows = 0
}
function add(at, line) {
    if (rows > 0 && loc[rows] "" == at "") rows-- # no byte has the row before
    loc[++rows] = at
    text[rows] = line
}
/ CIE | FDE / && $1 ~ /^[0-9a-f]+$/ {
    flush()
    columns = 0
    in_cie = $4 == "CIE"
    cie = $1
    if (in_cie) {
        of_cie[cie] = ""
        next
    }
    for (i = 5; i <= NF; i++) {
        if ($i ~ /^cie=/) cie = substr($i, 5)
        if ($i ~ /^pc=/) {
            split(substr($i, 4), pc, /\.\./)
            start = pc[1] ""
            stop = pc[2] ""
        }
    }
    # Without instructions there is no table, and the CIE's row holds.
    if (start != stop && start !~ /^0+$/) add(start, of_cie[cie])
    next
}
$1 == "LOC" {
    columns = NF
    for (i = 2; i <= NF; i++) name[i] = $i
    next
}
columns > 0 && $1 ~ /^[0-9a-f]+$/ {
    while (match($0, /[rx][0-9]+ \([a-z0-9]+\)/)) { # r1 (rdx)
        alias = substr($0, RSTART, RLENGTH)
        sub(/^.*\(/, "", alias)
        sub(/\)/, "", alias)
        $0 = substr($0, 1, RSTART - 1) alias substr($0, RSTART + RLENGTH)
    }
    if (NF != columns) next
    line = $2
    for (i = 3; i <= NF; i++)
        if ($i != "u" && name[i] in kept) line = line " " name[i] "=" $i
    if (in_cie) of_cie[cie] = line
    else if (start !~ /^0+$/ && start != stop && $1 "" < stop) add($1, line)
}
END { flush() }
