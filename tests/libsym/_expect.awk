# SPDX-License-Identifier: MIT
# The rules by which a symbol names an address once more, written without a look at libsym's code, from what
# readelf says. One program in three steps, so that sort can be used between them:
#
#   readelf -SsW FILE | awk -v mode=extract [-v table=TABLE] -f _expect.awk | sort >symbols
#       TABLE: only the symbols of .symtab or .dynsym (`symtab`, `dynsym`)
#   awk -v mode=queries -v step=N -f _expect.awk symbols
#       addresses at every N-th function: its first, middle and last byte and the one behind it
#   lookup -a FILE <addresses >answers
#   awk -v mode=check -f _expect.awk symbols answers
#       prints up to 10 differences and ends with "ADDRESSES DIFFERENCES"
#
# A line of symbols is "0 ADDRESS SIZE PLT" for a section with code, else
# "TABLE START ORDER SIZE SECTION-END NOTYPE LOCAL WEAK HIDDEN NAME", TABLE 1 for .symtab, 2 for .dynsym; sorted they
# come table by table, in ascending order of the start, at one start the longest first.
# An answer is "ADDRESS NAME START ORIGIN". Numbers are below 2^53, or awk could not compute with them.

BEGIN {
    for (i = 0; i < 4096; i++)
        hex3[sprintf("%03x", i)] = i
    count = 0
    first[1] = first[2] = 1
    last[1] = last[2] = 0
}

function hex(s,   n) {
    s = "00000000000000000" s
    s = substr(s, length(s) - 17)
    n = hex3[substr(s, 1, 3)]
    n = n * 4096 + hex3[substr(s, 4, 3)]
    n = n * 4096 + hex3[substr(s, 7, 3)]
    n = n * 4096 + hex3[substr(s, 10, 3)]
    n = n * 4096 + hex3[substr(s, 13, 3)]
    return n * 4096 + hex3[substr(s, 16, 3)]
}

function tohex(n,   high) {
    high = int(n / 16777216)
    return high > 0 ? sprintf("%x%06x", high, n - high * 16777216) : sprintf("%x", n)
}

# ---- extract ----

mode == "extract" && /^ *\[ *[0-9]+\] / {
    line = $0
    sub(/^ *\[ */, "", line)
    sub(/\]/, "", line)
    n = split(line, f, " ")
    # A name may be missing: then the type comes second.
    at = f[2] ~ /^\./ || f[3] ~ /^[A-Z_]+$/ ? 4 : 3
    if (f[at + 4] !~ /X/ || f[at - 1] == "NULL")
        next
    section_start[f[1]] = hex(f[at])
    section_end[f[1]] = hex(f[at]) + hex(f[at + 2])
    printf "0 %s %.0f %d\n", f[at], hex(f[at + 2]), f[2] ~ /^\.i?plt/
    next
}

mode == "extract" && /^Machine:/ { machine = $0 }
mode == "extract" && /^Symbol table '\.symtab'/ { number = 1 }
mode == "extract" && /^Symbol table '\.dynsym'/ { number = 2 }

mode == "extract" && $1 ~ /^[0-9]+:$/ && number > 0 {
    # Of files whose header does not say GNU (lld): STT_GNU_IFUNC, then STB_GNU_UNIQUE.
    if ($4 == "<OS" && $6 == "10") {
        sub(/<OS specific>: 10/, "IFUNC")
        $0 = $0
    }
    if ($5 == "<OS" && $7 == "10") {
        sub(/<OS specific>: 10/, "UNIQUE")
        $0 = $0
    }
    if (table != "" && (number == 1) != (table == "symtab"))
        next
    if ($4 != "FUNC" && $4 != "IFUNC" && $4 != "NOTYPE")
        next
    i = 7
    if ($7 ~ /^\[/) # `[<other>: 88]`, `[VARIANT_PCS]` before the section
        while ($(i++) !~ /\]$/ && i < NF)
            continue
    section = $i
    name = $(i + 1)
    if (!(section in section_end) || name == "" || name ~ /^\.L/)
        next
    if (name ~ /^\$[xd](\.|$)/) # mapping symbols of AArch64
        next
    value = hex($2)
    if (value < section_start[section] || value >= section_end[section]) {
        # Tools that move code (BOLT) leave stale section numbers behind.
        if (($4 != "FUNC" && $4 != "IFUNC") || $3 == "0")
            next
        for (section in section_end)
            if (value >= section_start[section] && value < section_end[section])
                break
        if (value < section_start[section] || value >= section_end[section])
            next
    }
    bytes = $3 ~ /^0x/ ? hex(substr($3, 3)) : $3 + 0
    hidden = 0
    cut = index(substr(name, 2), "@")
    if (cut > 0) {
        hidden = substr(name, cut + 2, 1) != "@"
        name = substr(name, 1, cut)
    }
    local = $5 == "LOCAL"
    printf "%d %s %016.0f %.0f %.0f %d %d %d %d %s\n", number, $2, 1e15 - bytes, bytes, section_end[section],
        $4 == "NOTYPE", local, $5 == "WEAK", hidden, name
}

# ---- the symbols of the other two ----

mode != "extract" && FNR == NR && $1 == "0" {
    sections++
    code_start[sections] = hex($2)
    code_end[sections] = hex($2) + $3
    code_plt[sections] = $4
    next
}

mode != "extract" && FNR == NR {
    count++
    t = $1
    if (last[t] == 0)
        first[t] = count
    last[t] = count
    start[count] = hex($2)
    size[count] = $4
    end[count] = start[count] + $4
    limit[count] = $5
    if (mode == "check") {
        rank[count] = $6 $7
        weak[count] = $8
        hidden_version[count] = $9
        name_of[count] = $10
        # The furthest end so far tells where a search backwards may stop.
        reach[count] = end[count]
        if (count > first[t] && reach[count - 1] > reach[count])
            reach[count] = reach[count - 1]
    } else if (count % step == 0) {
        print tohex(start[count])
        if (size[count] > 0) {
            print tohex(start[count] + int(size[count] / 2))
            print tohex(end[count] - 1)
            print tohex(end[count])
        }
    }
    next
}

# ---- check ----

# The last symbol of a table that starts at or before an address, 0: none.
function before(t, v,   low, high, middle) {
    low = first[t]
    high = last[t] + 1
    while (low < high) {
        middle = int((low + high) / 2)
        if (start[middle] <= v)
            low = middle + 1
        else
            high = middle
    }
    return low > first[t] ? low - 1 : 0
}

# The innermost sized symbol of a table that contains an address: latest start, then shortest.
function sized(t, v,   i) {
    for (i = before(t, v); i >= first[t] && i > 0 && reach[i] > v; i--)
        if (end[i] > v)
            return i
    return 0
}

function underscores(s) {
    if (s ~ /^(_Z|__Z|_R)/)
        return 0
    match(s, /^_*/)
    return RLENGTH
}

# Rules 2 to 8 for two symbols that cover the same bytes.
function is_better(a, b,   x, y) {
    if (rank[a] != rank[b])
        return rank[a] < rank[b]
    x = underscores(name_of[a])
    y = underscores(name_of[b])
    if (x != y)
        return x < y
    if (hidden_version[a] != hidden_version[b])
        return hidden_version[a] < hidden_version[b]
    if (weak[a] != weak[b])
        return weak[a] < weak[b]
    if (length(name_of[a]) != length(name_of[b]))
        return length(name_of[a]) < length(name_of[b])
    return name_of[a] < name_of[b]
}

function best_of(i,   k, b) {
    b = i
    for (k = i - 1; k > 0 && start[k] == start[i] && end[k] == end[i] && (k >= first[2]) == (i >= first[2]); k--)
        if (is_better(k, b))
            b = k
    for (k = i + 1; k <= count && start[k] == start[i] && end[k] == end[i] && (k >= first[2]) == (i >= first[2]); k++)
        if (is_better(k, b))
            b = k
    return b
}

# The start of the first symbol of a table behind an address; false: none.
function next_start(t, v,   i) {
    i = before(t, v)
    i = i == 0 ? first[t] : i + 1
    if (i > last[t])
        return 0
    following = start[i]
    return 1
}

# The symbol of .symtab without a size that reaches an address, 0: none.
function sizeless(v,   i, e) {
    i = before(1, v)
    if (i == 0 || size[i] > 0 || sized(1, start[i]) || sized(2, start[i]))
        return 0
    e = limit[i]
    if (next_start(1, start[i]) && following < e)
        e = following
    if (next_start(2, start[i]) && following < e)
        e = following
    return v < e ? i : 0
}

# The symbol that names an address, 0: none.
function expected(v,   i) {
    i = sized(1, v)
    if (i == 0)
        i = sizeless(v)
    if (i == 0)
        i = sized(2, v)
    if (i == 0) {
        i = before(2, v)
        if (i > 0 && (size[i] > 0 || start[i] != v))
            i = 0
    }
    return i > 0 ? best_of(i) : 0
}

function in_plt(v,   i) {
    for (i = 1; i <= sections; i++)
        if (code_plt[i] && v >= code_start[i] && v < code_end[i])
            return 1
    return 0
}

mode == "check" && FNR < NR {
    total++
    v = hex($1)
    e = expected(v)
    origin = $4
    if (e > 0) {
        ok = $2 == name_of[e] && hex($3) == start[e] && origin == (last[2] > 0 && e >= first[2] ? "dynsym" : "symtab")
    } else if (origin == "plt") {
        ok = in_plt(v)
    } else if (origin == "dynsym") {
        # One without a size reaches as far as unwind data say.
        i = before(2, v)
        ok = i > 0 && size[i] == 0 && hex($3) == start[i] && $2 == name_of[best_of(i)]
    } else {
        ok = $2 == "-" || origin == "fde"
    }
    if (!ok && ++bad <= 10)
        print "    " $0 "  expected " (e > 0 ? name_of[e] " " tohex(start[e]) : "-")
}

END {
    if (mode == "check")
        print total + 0, bad + 0
}
