#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# For each library: the functions declared in the public header, those of the export map, those the shared
# library exports and those its manual page explains are the same. Their version is named by the ABI's.
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
    # What .Fn and .Fo name; types of functions (sym_native_fn) are written the same way.
    sed -nE 's/^\.F[no] //p' "$page" | grep -oE "^[^,(]*" |
        awk -v stem="${name}_" '{ if (match($0, stem "[a-z0-9_]+")) print substr($0, RSTART, RLENGTH) }' |
        grep -v '_fn$' | sort -u >explained
    same "lib$name: header (<) and manual page (>) differ" declared explained
done
exit $bad
