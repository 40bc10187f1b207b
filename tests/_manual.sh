# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2034 # used by those that source it
# What tests of the programs in manual pages share; to be sourced. SRC, BUILD, CC are set, the folder is empty.
set -u
export LC_ALL=C
bad=0

failed() {
    echo "FAILED: $*"
    bad=1
}

# program PAGE N: the Nth literal display of a page
program() {
    awk -v wanted="$2" '/^\.Ed/ { inside = 0 } inside && n == wanted { gsub(/\\e/, "\\"); print }
        /^\.Bd -literal/ { inside = 1; n++ }' "$SRC/$1"
}

# build NAME LIBRARY...: compiles NAME.c as users would
build() {
    local name=$1 library includes=() archives=()
    shift
    for library; do
        includes+=("-I$SRC/$library/include")
        archives+=("$BUILD/lib/$library.a")
    done
    # shellcheck disable=SC2086 # lists of options
    "$CC" $SANITIZE_FLAGS -Wall -Wextra -Wpedantic -Werror "${includes[@]}" -o "$name" "$name.c" "${archives[@]}" \
        $SYM_LIBS || {
        echo "FAILED: $name.c does not compile"
        exit 1
    }
}
