# SPDX-License-Identifier: MIT
# Compares the tables of ARCHITECTURE.md, "Who may include whom", with #include lines. Reads, in this order: the names
# of all source files; ARCHITECTURE.md; lines FILE:#include .... Set `stage` to names, tables and includes before each.
# Prints what to change in a table, a line each; nothing when they agree.

function base(path) { sub(/.*\//, "", path); return path }

# The part a file belongs to: its folder; a public header belongs to its library.
function part_of(file) {
    sub(/\/[^\/]*$/, "", file)
    sub(/\/include\/spool$/, "", file)
    return file
}

function is_system(header) {
    return header ~ /^(sys|linux|asm|arpa|net|netinet)\// || header in system_headers
}

# What outsiders may not do does not bind tests: they compare with other libraries and look inside of ours.
function is_test(file) { return file ~ /^tests\// }

BEGIN {
    count = split("alloca assert ctype dirent dlfcn elf endian errno fcntl fnmatch ftw getopt glob inttypes langinfo " \
                  "limits link locale malloc math poll pthread pwd regex sched search setjmp signal spawn stdarg stdatomic " \
                  "stdbool stddef stdint stdio stdlib string strings termios threads time ucontext unistd wchar",
                  names, " ")
    for (i = 1; i <= count; i++)
        system_headers[names[i] ".h"] = 1
}

stage == "names" {
    if ($0 !~ /\/include\//)
        path_of[base($0)] = $0
    next
}

stage == "tables" && /^## / { inside = $0 == "## Who may include whom" }
stage == "tables" && inside && /^\|/ {
    split($0, cells, /[ ]*\|[ ]*/)
    if (cells[2] == "part" || cells[2] == "header") {
        kind = cells[2]
    } else if (cells[2] !~ /^-+$/) {
        gsub(/`/, "")
        split($0, cells, /[ ]*\|[ ]*/)
        rows[kind, cells[2]] = 1
        count = split(cells[3], targets, /[ ]*,[ ]*/)
        for (i = 1; i <= count; i++) {
            if ((kind, cells[2], targets[i]) in allowed)
                print "twice in the row of " cells[2] ": " targets[i]
            allowed[kind, cells[2], targets[i]] = 1
        }
        row_count++
    }
}
stage == "tables" { next }

# FILE:#include <HEADER> or "HEADER"
{
    file = substr($0, 1, index($0, ":") - 1)
    match($0, /[<"][^>"]*[>"]/)
    quoted = substr($0, RSTART, 1) == "\""
    header = substr($0, RSTART + 1, RLENGTH - 2)
    part = part_of(file)

    if (header ~ /^spool\/(spool|record|sym)\.h$/)
        target = header
    else if (quoted && base(header) in path_of)
        target = part_of(path_of[base(header)])
    else
        target = ""

    # No table can allow this.
    inside_of_another = target ~ /^(lib|tools\/)/ && target != "tools/common" && !is_test(file) && target != part
    if (inside_of_another)
        print file " includes " header ", which is the inside of " target

    if (target != "" && target != part && !inside_of_another) {
        seen["part", part, target] = 1
        if (!(("part", part, target) in allowed)) {
            if (!(("part", part) in rows))
                print file " includes " header ": add the row \"| " part " | " target " |\" to the parts"
            else
                print file " includes " header ": add \"" target "\" to the row of " part
            allowed["part", part, target] = 1
        }
    }

    # What only some files may include: inner headers of a library, and those of libraries that are not ours.
    outside = target == "" && !is_system(header)
    if (!is_test(file) && (outside || ("header", header) in rows)) {
        name = base(file)
        seen["header", header, name] = 1
        if (!(("header", header, name) in allowed)) {
            if (!(("header", header) in rows))
                print file " includes " header ", neither ours nor the system's: add the row \"| " header " | " name \
                      " |\" to the headers"
            else
                print file " includes " header ": add \"" name "\" to the row of " header
        }
    }
}

END {
    if (row_count < 10)
        print "no tables found"
    for (edge in allowed)
        if (!(edge in seen)) {
            split(edge, cells, SUBSEP)
            print "nothing makes it necessary any more: remove \"" cells[3] "\" from the row of " cells[2]
        }
}
