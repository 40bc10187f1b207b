# SPDX-License-Identifier: MIT
# awk -v mode=MODE -f check_stacks.awk workload.graph STACKS: compares recorded stacks of a workload (as spool2folded --root=none
# writes them, modules behind the names or not) with its call graph. Prints what cannot be, and counts at the end:
#   samples N truncated N illegal N
# Exit status 1: a stack that cannot be, or less of an expected one than workload.graph says (mode= for none).
#   -v other=REGEX  names of other programs' frames, which may be anything but unresolved

function refuse(why) {
    if (refused++ < 5)
        printf "illegal stack, %d samples: %s: %s\n", count, why, (length(stack) > 600 ? substr(stack, 1, 250) " ... " substr(stack, length(stack) - 250) : stack)
    illegal += count
    is_bad = 1
}

function may_call(from, to) {
    return (from, to) in calls
}

FNR == 1 { file++ }

file == 1 && $1 == "call" {
    for (i = 3; i <= NF; i++) {
        calls[$2, $i] = 1
        if ($i != "*")
            ours[$i] = 1
    }
    next
}
file == 1 && $1 == "expect" && $2 == mode {
    path = ""
    n = split($4, parts, ";")
    for (i = 1; i <= n; i++) {
        repeat = 1
        if (parts[i] ~ /.[*][0-9]+$/) {
            repeat = parts[i]
            sub(/.*[*]/, "", repeat)
            sub(/[*][0-9]+$/, "", parts[i])
        }
        while (repeat-- > 0)
            path = path (path == "" ? "" : ";") parts[i]
    }
    wanted[path] = $3
    short[path] = $4
    next
}
file == 1 { next }

{
    count = $NF
    stack = $0
    sub(/ [0-9]+$/, "", stack)
    samples += count
    is_bad = 0
    gsub(/ \([^;]*\)/, "", stack) # modules
    n = split(stack, frames, ";")
    first = 1
    path = ""
    previous = ""
    before = "" # the last function of the program
    root = frames[1]
    if (root == "[truncated]") {
        truncated += count
        first = 2
        path = root
    }
    for (i = first; i <= n && !is_bad; i++) {
        name = frames[i]
        if (name ~ /memfd:plugin/)
            name = "memfd:plugin"
        if (name ~ /^(0x[0-9a-f]+|\[unknown\]|\?\?)$/ || name ~ /anon.*[+]0x/) {
            refuse("an unresolved frame")
        } else if (name in ours) {
            if (i == first && first == 1)
                refuse("it begins with " name)
            else if (previous == "*") {
                if (may_call("@signal", name) || may_call("@callback", name))
                    ;
                else if (name == "memfd:plugin" && i > 1 && frames[i - 1] ~ /^(call_init|_dl_init|_dl_call_fini|_dl_fini)/)
                    ; # its _init, which has no name there
                else if (before != "" ||
                    !(may_call("@start", name) && (root == "_start" || root == "[truncated]") ||
                    may_call("@thread", name) && (root ~ /clone/ || root == "[truncated]")))
                    refuse("a library calls " name)
            } else if (previous != "" && !may_call(previous, name))
                refuse(previous " calls " name)
            previous = before = name
            path = path (path == "" ? "" : ";") name
        } else {
            if (i == first && first == 1) {
                if (name !~ /^(_start|_dl_start_user|(__)?clone3?)$/ && name !~ /^ld[-a-z0-9_.]*[+]0x/ && (other == "" || name !~ other))
                    refuse("it begins with " name)
            } else if (name ~ /^workload.*[+]0x/ && i < n && (other == "" || name !~ other)) # the last may be in the linkage table
                refuse("a frame without a name")
            else if (previous != "" && previous != "*" && !may_call(previous, "*") && !(i < n && may_call("@signal", frames[i + 1])))
                refuse(previous " calls " name)
            if (previous != "*" && before != "")
                path = path ";*"
            previous = "*"
        }
    }
    if (path in wanted)
        found[path] += count
}

END {
    for (path in wanted)
        if (found[path] * 100 < wanted[path] * samples || samples == 0) {
            printf "%s: %d of %d samples, not %d %%, are in %s\n", mode, found[path], samples, wanted[path], short[path]
            missing = 1
        }
    printf "samples %d truncated %d illegal %d\n", samples, truncated, illegal
    exit illegal > 0 || missing
}
