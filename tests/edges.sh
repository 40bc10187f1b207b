#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Data flows one way, spool -> sym -> tool, through public headers only: who may include and link what.
set -u
cd "$SRC" || exit 1
bad=0

refuse() { # WHY MATCHES
    [ -n "$2" ] || return 0
    printf '%s:\n%s\n' "$1" "$2"
    bad=1
}

# Sources, without what is only data of tests.
sources=$(find lib* tools tests \( -path tests/fixtures -o -path tests/consumers \) -prune -o \
    \( -name '*.[ch]' -o -name '*.cc' \) -print | sort)
includes() { # FILE...
    grep -HE '^[ \t]*#[ \t]*include[ \t]*["<]' "$@"
}

# shellcheck disable=SC2086 # file names have no blanks
refuse 'ARCHITECTURE.md, "Who may include whom"' "$(
    includes $sources |
        awk -f tests/_edges.awk stage=names <(echo "$sources") stage=tables ARCHITECTURE.md stage=includes - | sort
)"
# shellcheck disable=SC2086
refuse "paths out of the own folder" "$(includes $sources | grep -E '^(lib|tools).*["<][^">]*\.\./')"

# Every source has its place in the document; a header of the same name goes with it.
words() { grep -oE '[A-Za-z0-9_./-]+\.(c|h|sh|proto|md)\b' | sort -u; }
named=" $(words <ARCHITECTURE.md | sed 's|.*/||' | tr '\n' ' ') "
refuse 'say in ARCHITECTURE.md what it is for, where its neighbours are' "$(
    for source in $(echo "$sources" | grep -E '^(lib|tools)' | grep -vE '/include/|/main\.c$'); do
        case "$named" in *" ${source##*/} "*) continue ;; esac
        case "$source" in *.h) [ -e "${source%.h}.c" ] && continue ;; esac
        echo "$source"
    done
)"
# But for the table of headers, whose stale entries were found above.
# shellcheck disable=SC2016 # nothing in there is the shell's
refuse 'ARCHITECTURE.md names a file that there is not' "$(
    find . -path './build*' -prune -o -path ./.git -prune -o -type f -printf '%P\n' |
        awk 'NR == FNR { for (path = $0; ; sub(/^[^\/]*\//, "", path)) { there[path] = 1; if (path !~ /\//) next } }
            !($0 in there)' - <(grep -v '^| `[a-z0-9_./-]*\.h` |' ARCHITECTURE.md | words)
)"

# What was built: nothing of the tools needs a library's inner function.
for archive in "$BUILD"/lib/libtool*.a; do
    refuse "$(basename "$archive") uses internal functions" \
        "$(nm --undefined-only "$archive" 2>/dev/null | grep -oE '\b(spoolint|symint|recordint)_[a-z0-9_]+')"
done

# Inner functions carry the inner prefix: a static link sees them all.
for name in spool record sym; do
    refuse "lib$name.a: global names without the prefix ${name}_ or ${name}int_" "$(
        nm --defined-only --extern-only "$BUILD/lib/lib$name.a" 2>/dev/null |
            awk 'NF == 3 { print $3 }' | grep -vE "^(${name}|${name}int)_|^(_|\.)|^asan|^__" | sort -u
    )"
done

listed=" $(cat CMakeLists.txt lib*/CMakeLists.txt tools/CMakeLists.txt | tr '()/\n' '    ') "
refuse "sources that no CMakeLists.txt lists" "$(
    for source in $(echo "$sources" | grep -E '^(lib|tools)[^ ]*\.c$'); do
        case "$listed" in
        *" ${source##*/} "*) ;;
        *) [ "${source##*/}" = main.c ] || echo "$source" ;;
        esac
    done
)"
refuse "file names that exist twice" "$(
    find lib* tools tests \( -path tests/fixtures -o -path '*/include' \) -prune -o -name '*.[ch]' ! -name main.c -printf '%f\n' | sort | uniq -d
)"
exit $bad
