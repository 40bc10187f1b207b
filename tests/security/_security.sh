# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2034 # used by those that source it
# What the tests of SECURITY.md share; to be sourced. BIN, FIXTURES, SRC and BUILD are set, the folder is empty.
. "$SRC/tests/tools/_common.sh"
unset SPOOL_DEBUG_DIRS DEBUGINFOD_URLS

skip_test() { # WHY
    echo "skipped: $*"
    exit 77
}

# need_strace: ends the test where nothing may be traced.
need_strace() {
    command -v strace >/dev/null || skip_test "no strace"
    strace -qq -o /dev/null true 2>/dev/null || skip_test "ptrace is not permitted"
    # LeakSanitizer traces as well, which two cannot.
    export ASAN_OPTIONS="${ASAN_OPTIONS:-}:detect_leaks=0" LSAN_OPTIONS="${LSAN_OPTIONS:-}:detect_leaks=0"
}

# traced COMMAND...: runs it, with its output in `out` and `err`, and each in a file, the lines in no order:
#   calls    all that it opens, looks at, makes, connects to and runs
#   opened   the paths that were opened to be read or written; a handle (O_PATH) reads nothing and does not count
#   reached  what these paths led to
#   looked   the paths that any call had, whether they exist or not
#   written  the calls that open a file to be written, make, rename, remove or change one
#   more     the calls that connect, and programs that are run
# But what the loader, the C library and sanitizers open for every program.
traced() {
    local status=0
    local list
    for list in opened reached looked written more; do : >"$list"; done
    strace -f -y -qq -s 4096 -o calls -e trace=%file,%network,%process,memfd_create "$@" >out 2>err </dev/null || status=$?
    [ $status -le 1 ] || die "exit status $status: $* ($(head -3 err))"
    awk '
        function put(file, text) {
            if (!((file, text) in seen))
                print text >file
            seen[file, text] = 1
        }
        function is_of_every_program(path) {
            return path ~ /^\/etc\/ld\.so\.(cache|preload)$|^(\/usr)?\/lib[^ ]*\.so[.0-9]*$|^\/usr\/(lib\/locale|share\/zoneinfo)\/|^\/etc\/localtime$|\/gconv-modules/ ||
                path ~ /^\/proc\/self\/(maps|status|cmdline|environ|exe|task)|^\/sys\/devices\/system\/cpu\/|\/proc\/sys\/vm\/overcommit_memory$/
        }
        {
            sub(/^[0-9]+ +/, "")
            call = $0
            sub(/\(.*/, "", call)
            path = $0
            if (!sub(/^[^"]*"/, "", path) || (at = index(path, "\"")) == 0)
                path = ""
            else
                path = substr(path, 1, at - 1)
            done = $0 ~ / = [0-9]+(<.*>)?$/
        }
        call == "execve" && done && ++runs > command_runs { put("more", $0) }
        call ~ /^(socket|connect|send)/ { put("more", $0) }
        call ~ /^exec/ || is_of_every_program(path) { next }
        path != "" && (call ~ /^(open|.*stat|access|faccessat|readlink|getxattr|name_to_handle|chdir|statx)/) { put("looked", path) }
        # Sanitizers make the folder of their log.
        call ~ /^(creat|rename|unlink|mkdir|rmdir|link|symlink|mknod|chmod|fchmod|chown|truncate|setxattr)/ && !/^mkdir.*EEXIST/ { put("written", $0) }
        call ~ /^open/ && /O_(WRONLY|RDWR|CREAT|TRUNC|APPEND|TMPFILE)/ { put("written", $0) }
        call ~ /^open/ && done && !/O_PATH/ {
            put("opened", path)
            if (sub(/.* = [0-9]+</, "")) {
                sub(/>$/, "")
                put("reached", $0)
            }
        }
    ' command_runs="$([ "$1" = timeout ] && echo 2 || echo 1)" calls
}

# wrote_nothing: it only read.
wrote_nothing() {
    [ ! -s written ] || die "it writes: $(head -3 written)"
}

# reached_no_other: it neither connects nor runs a program.
reached_no_other() {
    [ ! -s more ] || die "it connects or runs: $(head -3 more)"
}
