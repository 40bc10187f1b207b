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

includes() { # PATTERN FOLDER...: #include lines whose file matches the pattern
    local pattern=$1
    shift
    grep -rnE --include='*.[ch]' --exclude-dir=examples "^[ \t]*#[ \t]*include[ \t]*[\"<]$pattern" "$@"
}

refuse "libsym must not know spools" "$(includes 'spool/(spool|record)\.h' libsym)"
refuse "librecord must not know symbols" "$(includes 'spool/sym\.h' librecord)"
refuse "libspool must know neither symbols nor recording" "$(includes 'spool/(sym|record)\.h' libspool)"
refuse "nothing may include elfutils" "$(
    grep -rnE --include='*.[ch]' '^[ \t]*#[ \t]*include[ \t]*(<dwarf\.h>|[\"<](libelf|gelf|elfutils/.*|libdw|libdwfl)\.h)' lib* tools
)"
refuse "only debuginfo.c, unpack.c, tarinput.c and packed.c of libsym may include zlib, only the first liblzma" "$(
    includes '(zlib|lzma)(/.*)?\.h' libsym | grep -vE '^libsym/(debuginfo\.c:|(unpack|tarinput|packed)\.c:.*zlib)'
)"
refuse "only unpack.c of libsym may include zstd and libdeflate" "$(
    includes '(zstd|libdeflate)(_.*)?\.h' lib* tools | grep -v '^libsym/unpack\.c:'
)"
refuse "only image_section.c of librecord may include zlib" "$(
    includes 'zlib\.h' librecord | grep -v '^librecord/image_section\.c:'
)"
refuse "only envelope.c of spool2pprof may include protobuf-c and what it generates; it and store_tar.c of spoolpack zlib" "$(
    includes '(protobuf-c(/.*)?|.*\.pb-c|zlib)\.h' lib* tools |
        grep -vE '^(lib(spool|record|sym)/[a-z_]*\.c:.*zlib|tools/spool2pprof/envelope\.c:|tools/spoolpack/store_tar\.c:.*zlib)'
)"
refuse "only hash.h of spoolpack may include nettle" "$(
    includes 'nettle/.*\.h' lib* tools | grep -v '^tools/spoolpack/hash\.h:'
)"
refuse "paths out of the own folder" "$(includes '[^\">]*\.\./' lib* tools)"

# Private headers, by name: file names are unique, so a tool's "table.h" can only be libspool's.
private=$(find libspool librecord libsym -maxdepth 1 -name '*.h' -exec basename {} \; | paste -sd '|' | sed 's/\./\\./g')
# Public ones are written with their folder: spool/record.h is not libspool's record.h.
refuse "tools see public headers only" "$(
    includes "(.*/)?($private)[\">]" tools | grep -vE '[\"<]spool/(spool|record|sym)\.h[\">]'
)"

# Examples are programs of users: public headers of all libraries as installed ones are written, else the system's.
refuse "examples see public headers and the system's only" "$(
    grep -nE '^[ \t]*#[ \t]*include' lib*/examples/*.c |
        grep -vE '<spool/(spool|record|sym)\.h>|<([a-z]+|sys/[a-z]+)\.h>$'
)"

# And what was built: nothing of the tools needs a library's inner function.
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
    for source in lib*/*.c lib*/examples/*.c tools/*/*.c; do
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
