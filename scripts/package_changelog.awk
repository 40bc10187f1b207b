# SPDX-License-Identifier: MIT
# CHANGELOG.md as a Debian changelog: an entry for each version, a change for each list item, lines of 80 columns.
# Variables: version, of what is not released yet; maintainer; today, a date.
function wrap(text, mark,    words, count, i, line) {
    count = split(text, words, " ")
    line = "  " mark
    for (i = 1; i <= count; i++) {
        if (length(line) + 1 + length(words[i]) > 80) {
            print line
            line = "   "
        }
        line = line " " words[i]
    }
    print line
}
function end_item() {
    if (item == "")
        return
    if (begun++ == 0)
        printf "%sspooltools (%s) unstable; urgency=medium\n\n", separator, number
    if (part != "")
        printf "%s  [ %s ]\n", (begun > 1 ? "\n" : ""), part
    wrap(item, "*")
    item = part = ""
}
function end_version(    command, rfc) {
    end_item()
    if (!begun)
        return
    command = "LC_ALL=C date -u -R -d " day
    command | getline rfc
    close(command)
    printf "\n -- %s  %s\n", maintainer, rfc
    separator = "\n"
    begun = 0
}
/^## \[/ {
    end_version()
    number = substr($2, 2, index($2, "]") - 2)
    day = today
    if (number == "Unreleased")
        number = version
    else if ($4 ~ /^[0-9]+-[0-9]+-[0-9]+$/)
        day = $4
    next
}
/^### / { end_item(); part = substr($0, 5); next }
/^- / { end_item(); item = substr($0, 3); next }
/^  / && item != "" { item = item " " $0; next }
{ end_item() }
END { end_version() }
