#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# For each library: the functions declared in the public header, those of the export map, those the shared
# library exports and those of its manual page, in the synopsis and in the text, are the same. Their version is named by
# the ABI's.
set -u
bad=0

# declared HEADER: names of the functions it declares, as the compiler sees them; the project's own only.
declared() {
    "$CC" -std=c11 -E -P -I"$(dirname "$(dirname "$1")")" "$1" |
        tr -s '[:space:]' ' ' | sed 's/[;{}]/\n/g' |
        sed -E 's/__attribute__ *\(\([^)]*\)\)//g' | grep -v typedef |
        grep -oE "\b$2_[a-z0-9_]+ *\(" | tr -d ' (' | sort -u
}

same() { # WHAT FILE OTHER_FILE
    if ! diff "$2" "$3" >differences; then
        echo "$1:"
        cat differences
        bad=1
    fi
}

major=$(sed -nE 's/^ +VERSION ([0-9]+)\..*/\1/p' "$SRC/CMakeLists.txt")
for name in spool record sym; do
    folder=$SRC/lib$name
    node=$(sed -n '1s/ {$//p' "$folder/lib$name.map")
    [ "$node" = "${name^^}_$major" ] || { echo "lib$name.map: version $node, not ${name^^}_$major" && bad=1; }
    declared "$folder/include/spool/$name.h" "$name" >declared
    sed -nE "s/^ +([a-z0-9_]+);.*/\1/p" "$folder/lib$name.map" | sort >mapped
    nm -D --defined-only "$BUILD/lib/lib$name.so" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' |
        sort >exported
    [ -s declared ] || { echo "no function found in $name.h" && bad=1; }
    same "lib$name: header (<) and map (>) differ" declared mapped
    same "lib$name: header (<) and shared library (>) differ" declared exported

    page=$folder/lib$name.3
    if [ ! -e "$page" ]; then
        echo "lib$name: no $page"
        bad=1
        continue
    fi
    # What .Fn and .Fo name, with arguments in the synopsis and in the text behind it; types of functions
    # (sym_native_fn) are written the same way.
    : >all_of
    awk -v stem="${name}_" '
        /^\.Sh / { part = $2 == "SYNOPSIS" ? "shown" : "explained" }
        /^\.F[no] / && match($2, stem "[a-z0-9_]+") { print substr($2, RSTART, RLENGTH) >part }
        /^\.Ar x Ns Fn _/ { print $NF >"all_of" }' "$page"
    # `x_new' and `x_free' are explained once for all handles.
    grep -f <(sed 's/$/$/' all_of) declared >>explained
    for part in shown explained; do
        grep -v '_fn$' $part | sort -u >in_page
        same "lib$name: header (<) and what is $part in the manual page (>) differ" declared in_page
    done
    rm -f shown explained all_of
done
exit $bad
