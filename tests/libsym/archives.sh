#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Lookups in symbol folders packed by tar give what the folders give, whatever format tar was told to write.
set -u
. "$(dirname "$0")/_libsym.sh"
needs nm strip objcopy readelf gcc tar gzip
with_libsym ask ask.c
SYM_LIBS="${SYM_LIBS:--liberty -lpthread -lz -llzma} -Wl,--wrap=symint_dwarf_open"
with_libsym opened opened.c

# same PROGRAM ARG...: what it says of each packed archive is what it says of the folder, but for its name
same() {
    local expected got archive program=$1
    shift
    expected=$("$program" --symbols folder "$@")
    for archive in packed/*; do
        got=$("$program" --symbols "$archive" "$@" | sed "s#$archive#folder#g; s#/memfd:spooltools (deleted)#MEMORY#")
        checked=$((checked + 1))
        [ "$got" = "$(sed "s#$work/folder/[^ ]*#MEMORY#" <<<"$expected")" ] && continue
        echo "FAIL $archive: '$got' instead of '$expected' ($*)"
        failures=$((failures + 1))
    done
}

# has PATTERN: what the folder gives, so that all being equal means something
has() {
    local pattern=$1
    shift
    checked=$((checked + 1))
    "$@" | grep -q -- "$pattern" && return
    echo "FAIL: '$("$@")' does not say '$pattern' ($*)"
    failures=$((failures + 1))
}

build_id() { readelf -n "$1" 2>/dev/null | sed -n 's/.*Build ID: //p'; }

cat >prog.c <<'CODE'
#include <stdio.h>
__attribute__((noinline)) static int inner(int x) { return x * 3 + getchar(); }
int main(void) { return inner(getchar()); }
CODE
gcc -g -O1 -Wl,--build-id -o prog prog.c || exit 1
id=$(build_id prog)
at=$(printf '%x' $((0x$(nm prog | awk '$3 == "inner" { print $1 }') + 4)))
objcopy --only-keep-debug prog prog.debug
strip -o stripped prog

# A deep one, for names longer than a header has room for.
deep=folder/usr/lib/$(printf 'long%.0s' $(seq 18))/$(printf 'name%.0s' $(seq 18))
mkdir -p "folder/.build-id/${id:0:2}" folder/opt "$deep"
cp prog.debug "folder/.build-id/${id:0:2}/${id:2}.debug"
cp prog "$deep/prog"
cp prog folder/opt/base
ln -s ../opt/base folder/usr/linked
ln -s /opt folder/absolute
ln folder/opt/base folder/opt/hard
ln -s ../../../outside folder/climbs
cp prog outside
ln -s "$work/prog" folder/away
printf 'no ELF' >folder/text

mkdir packed
for format in ustar gnu pax v7; do
    names=.
    [ $format = v7 ] && names="--exclude=./usr/lib ."
    [ $format = gnu ] && names=$(cd folder && ls -A)
    # shellcheck disable=SC2086 # several names
    tar --format=$format -C folder -cf packed/$format.tar $names || exit 1
done
gzip -c packed/pax.tar >packed/pax.tgz && rm packed/pax.tar
{ head -c 5000 packed/gnu.tar | gzip && tail -c +5001 packed/gnu.tar | gzip; } >packed/streams
cp packed/v7.tar . && rm packed/v7.tar

has '^[0-9a-f]* inner [0-9a-f]* symtab$' ./ask --symbols folder --build-id "$id" "${deep#folder}/prog" "$at"
same ./ask --build-id "$id" "${deep#folder}/prog" "$at"
has ' inner ' ./ask --symbols v7.tar --build-id "$id" /opt/base "$at"
for path in /usr/linked /opt/base /absolute/base /x/hard /opt/hard; do
    same ./ask --build-id "$id" $path "$at"
    same ./ask $path "$at"
done
same ./ask --build-id "$id" "$work/stripped" "$at"
has ' inner ' ./ask --symbols packed/gnu.tar --build-id "$id" "$work/stripped" "$at"

# Nothing leads out.
for path in /climbs /away /../outside "$work/outside2"; do
    has '^[0-9a-f]* - ' ./ask --symbols folder "$path" "$at"
    same ./ask "$path" "$at"
done
# What is wrong is told with the name of the archive.
has 'state .*: folder/text: it has no ELF header' ./ask --symbols folder /x/text "$at"
same ./ask /x/text "$at"
has "folder/opt/base: its build id is $id, the recorded one aabbccdd" ./ask --symbols folder --build-id aabbccdd /opt/base "$at"
same ./ask --build-id aabbccdd /opt/base "$at"

# Debug information, and what it refers to.
has "^debug .*/folder/.build-id" ./opened --symbols folder --debug-dir nowhere locate "$work/stripped"
same ./opened --debug-dir nowhere locate "$work/stripped"
if command -v dwz >/dev/null; then
    for n in 1 2; do
        { for k in $(seq 40); do echo "struct s$k { int a$k; long b$k; struct s$k *next$k; }; struct s$k v$k;"; done
            echo "int main$n(void) { return $n; } int main(void) { return 0; }"; } >alt$n.c
        gcc -g -gdwarf-4 -Wl,--build-id -o alt$n alt$n.c || exit 1
    done
    mkdir -p folder/.dwz folder/bin folder/links && cp alt1 alt2 folder/bin
    (cd folder && dwz -m .dwz/common -M ../.dwz/common bin/alt1 bin/alt2) || skip_test "dwz makes no common file"
    ln -s ../bin/alt1 folder/links/alt
    for packed in packed/*.tar; do tar -C folder -f "$packed" -r ./.dwz ./bin ./links || exit 1; done
    rm packed/pax.tgz packed/streams
    for name in /bin/alt1 /links/alt; do
        has '^file .*/folder/.dwz/common folder.*/bin/../.dwz/common$' ./opened --symbols folder --inside 0 alt $name
        same ./opened --inside 0 --debug-dir nowhere alt $name
    done
else
    echo "supplementary files: skipped, no dwz"
fi

# Archives that cannot be opened.
for bad in absent outside/x; do
    checked=$((checked + 1))
    ./ask --symbols $bad /x 0 2>&1 | grep -q "^ask: $bad: No such file\|^ask: $bad: Not a directory" || failures=$((failures + 1))
done
checked=$((checked + 1))
./ask --symbols prog /x 0 2>&1 | grep -q "^ask: prog: neither a folder nor a tar file" || failures=$((failures + 1))

echo "$checked checks, $failures failures"
[ $failures -eq 0 ]
