#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Which file a module's names come from: the recorded path, roots, symbol
# folders, stores by build id, debug links, what a stripped file carries, deleted files; and what is refused.
set -u
. "$(dirname "$0")/_libsym.sh"
needs nm strip objcopy readelf gcc xz
with_libsym ask ask.c
lzma=
case $SYM_LIBS in *-llzma*) lzma=1 ;; esac

# says EXPECTED ARG...: what the first line of ask is, but for offset and start
says() {
    local expected=$1 got
    shift
    got=$(./ask "$@" | awk 'NR == 1 { $1 = $3 = ""; gsub(/  */, " "); sub(/^ /, ""); print }')
    checked=$((checked + 1))
    [ "$got" = "$expected" ] || fail "'$got' instead of '$expected' ($*)"
}

# tells PATTERN ARG...: the state line
tells() {
    local pattern=$1 got
    shift
    got=$(./ask "$@" | tail -n 1)
    checked=$((checked + 1))
    grep -q -- "$pattern" <<<"$got" || fail "'$got' does not say '$pattern' ($*)"
}

cat >prog.c <<'CODE'
#include <stdio.h>
__attribute__((noinline)) static int inner(int x) { return x * 3 + getchar(); }
__attribute__((noinline)) int outer(int x) { return inner(x) + 1; }
int main(void) { return outer(getchar()); }
CODE
gcc -g -O1 -Wl,--build-id -o prog prog.c || exit 1
cp prog other && gcc -g -O2 -DX -Wl,--build-id=0x11223344556677889900aabbccddeeff00112233 -o other prog.c
id=$(readelf -n prog | sed -n 's/.*Build ID: //p')
store=.build-id/${id:0:2}/${id:2}

# The file offset of a function, its mapping's offset and size.
read -r offset vaddr _ filesz < <(readelf -lW prog | awk '$1 == "LOAD" && $0 ~ / R E / { print $2, $3, $4, $5 }')
inner=$(nm prog | awk '$3 == "inner" { print $1 }')
at=$(printf '%x' $((0x$inner - vaddr + offset + 4)))
map=(--map "${offset#0x}" "$(printf '%x' $((((filesz + 4095) / 4096) * 4096)))")

objcopy --only-keep-debug prog prog.debug
strip -o stripped prog

row="recorded path"
says "inner symtab unverified" "$work/prog" "$at"
says "inner symtab" --build-id "$id" "$work/prog" "$at"
says "- address" --build-id "$id" "$work/other" "$at"
tells "its build id is 1122.*the recorded one $id" --build-id "$id" "$work/other" "$at"
tells "No such file" "$work/absent" "$at"

row="file that did not change since"
touch -d '1 hour ago' prog
says "inner symtab unverified" --same-boot "$work/prog" "$at"

row="sysroot"
mkdir -p image/opt && cp prog image/opt/prog
ln -s /opt/prog image/link
says "inner symtab" --sysroot image --build-id "$id" /opt/prog "$at"
says "inner symtab" --sysroot image --build-id "$id" /link "$at"
tells "image/opt/nothing: No such file" --sysroot image /opt/nothing "$at"

row="symbol folder"
mkdir -p folder/opt && cp prog folder/opt/prog
says "inner symtab" --symbols folder --build-id "$id" /opt/prog "$at"
says "inner symtab unverified" --symbols folder /opt/prog "$at"
cp prog folder/base && mkdir hollow
says "inner symtab" --symbols folder --build-id "$id" /elsewhere/base "$at"
says "inner symtab" --symbols hollow --symbols folder --build-id "$id" /elsewhere/base "$at"
says "- address" --symbols folder --build-id "$id" /elsewhere/unknown "$at"
cp other folder/wrong
tells "folder/wrong: its build id is" --symbols folder --build-id "$id" /elsewhere/wrong "$at"
row="symbol folder, a path that climbs out of it"
says "- address" --symbols folder/opt --build-id "$id" "/../base" "$at"

row="store by build id"
mkdir -p "debug/$(dirname "$store")" && cp prog "debug/$store"
says "inner symtab" --debug-dir debug --build-id "$id" /gone/prog "$at"
mkdir -p "image2/usr/lib/debug/$(dirname "$store")" && cp prog "image2/usr/lib/debug/$store"
says "inner symtab" --sysroot image2 --build-id "$id" /gone/prog "$at"
says "inner symtab" --symbols debug --build-id "$id" /gone/prog "$at"

row="debug file by build id"
mkdir -p "d1/$(dirname "$store")" && cp prog.debug "d1/$store.debug"
says "inner symtab" --debug-dir d1 --build-id "$id" "$work/stripped" "$at"
says "inner symtab unverified" --debug-dir d1 "$work/stripped" "$at"
says "inner symtab" --debug-dir absent --debug-dir d1 --build-id "$id" "$work/stripped" "$at"
tells "stripped: stripped, and no debug file for build id $id in nowhere" --debug-dir nowhere "$work/stripped" "$at"
says "- fde unverified" --debug-dir nowhere "$work/stripped" "$at"
mkdir -p "d2/$(dirname "$store")" && cp other "d2/$store.debug"
tells "d2/.*its build id is 1122.*not $id" --debug-dir d2 "$work/stripped" "$at"

row="stripped copy in a symbol folder"
mkdir copies && cp stripped copies/prog
says "inner symtab" --symbols copies --debug-dir nowhere --build-id "$id" "$work/prog" "$at"
says "- fde unverified" --symbols copies --debug-dir nowhere /gone/prog "$at"

row="debug file of a program that was moved"
fixed=0x00112233445566778899aabbccddeeff00112233
for base in 400000 10000000; do
    gcc -g -O1 -no-pie -Wl,--build-id=$fixed -Wl,-Ttext-segment=0x$base -o moved$base prog.c
    objcopy --only-keep-debug moved$base moved$base.debug
done
gcc -g -O1 -no-pie -Wl,--build-id=$fixed -fno-inline -o moved_other prog.c -Wl,--defsym=x=1 -DY -lm \
    -Wl,--whole-archive -Wl,--no-whole-archive -O3 -falign-functions=4096
mkdir -p d4/.build-id/00 d5/.build-id/00
cp moved400000.debug "d4/.build-id/00/${fixed#0x00}.debug"
objcopy --only-keep-debug moved_other "d5/.build-id/00/${fixed#0x00}.debug"
strip -o stripped_moved moved10000000
read -r o v < <(readelf -lW moved10000000 | awk '$1 == "LOAD" && $0 ~ / R E / { print $2, $3 }')
a=$(printf '%x' $((0x$(nm moved10000000 | awk '$3 == "inner" { print $1 }') - v + o + 4)))
says "inner symtab unverified" --debug-dir d4 "$work/stripped_moved" "$a"
# Other code with that build id is not believed.
says "- fde unverified" --debug-dir d5 "$work/stripped_moved" "$a"

row="debug file, the program is gone"
says "inner symtab" "${map[@]}" --debug-dir d1 --build-id "$id" /gone/prog "$at"
says "- address" "${map[@]}" --debug-dir d1 /gone/prog "$at"
# A part of a mapping does not tell where the code began.
says "- address" --map "${offset#0x}" 2000 --debug-dir d1 --build-id "$id" /gone/prog "$at"
if command -v ld.lld >/dev/null; then
    row="debug file of an lld program"
    gcc -g -O1 -fuse-ld=lld -Wl,--build-id=sha1 -o lldprog prog.c
    lldid=$(readelf -n lldprog | sed -n 's/.*Build ID: //p')
    mkdir -p "d1/.build-id/${lldid:0:2}" && objcopy --only-keep-debug lldprog "d1/.build-id/${lldid:0:2}/${lldid:2}.debug"
    read -r o v f < <(readelf -lW lldprog | awk '$1 == "LOAD" && $0 ~ / R E / { print $2, $3, $5 }')
    a=$(printf '%x' $((0x$(nm lldprog | awk '$3 == "inner" { print $1 }') - v + o + 4)))
    first=$((o & ~4095))
    says "inner symtab" --map "$(printf '%x' $first)" "$(printf '%x' $((((o + f + 4095) & ~4095) - first)))" \
        --debug-dir d1 --build-id "$lldid" /gone/lldprog "$a"
else
    echo "debug file of an lld program: skipped, no ld.lld"
fi

row="debug link"
gcc -g -O1 -Wl,--build-id=none -o noid prog.c
a=$(printf '%x' $((0x$(nm noid | awk '$3 == "inner" { print $1 }') + 4)))
objcopy --only-keep-debug noid noid.debug
strip -o linked noid && objcopy --add-gnu-debuglink=noid.debug linked
says "inner symtab unverified" "$work/linked" "$a"
mkdir -p .debug && mv noid.debug .debug/
says "inner symtab unverified" "$work/linked" "$a"
mkdir -p "d3$work" && mv .debug/noid.debug "d3$work/"
says "inner symtab unverified" --debug-dir d3 "$work/linked" "$a"
mkdir -p image3/bin image3/usr/lib/debug/bin && cp linked image3/bin/ && cp "d3$work/noid.debug" image3/usr/lib/debug/bin/
says "inner symtab unverified" --sysroot image3 /bin/linked "$a"
tells "no debug file noid.debug beside it or in nowhere" --debug-dir nowhere "$work/linked" "$a"
cp "d3$work/noid.debug" . && printf x >>noid.debug
says "- fde unverified" --debug-dir nowhere "$work/linked" "$a"
tells "noid.debug: its CRC-32 is not the one that" --debug-dir nowhere "$work/linked" "$a"
row="debug link to the file itself"
cp linked self && objcopy --remove-section .gnu_debuglink self && cp self t && mv t selfname
objcopy --add-gnu-debuglink=selfname self 2>/dev/null && mv self selfname
says "- fde unverified" --debug-dir nowhere "$work/selfname" "$a"

row="symbols that a stripped file carries"
nm -D prog --format=posix --defined-only | awk '{ print $1 }' | sort >dynamic
nm prog --format=posix --defined-only | awk '$2 ~ /[Tt]/ { print $1 }' | sort >functions
comm -13 dynamic functions >keep
objcopy -S --remove-section .gdb_index --remove-section .comment --keep-symbols=keep prog.debug mini 2>/dev/null
rm -f mini.xz && xz mini
objcopy --add-section .gnu_debugdata=mini.xz stripped carrying
if [ -n "$lzma" ]; then
    says "inner minidebug" --debug-dir nowhere --build-id "$id" "$work/carrying" "$at"
else
    says "- fde" --debug-dir nowhere --build-id "$id" "$work/carrying" "$at"
    tells "xz is not compiled in" --debug-dir nowhere "$work/carrying" "$at"
fi
says "inner symtab" --debug-dir d1 --build-id "$id" "$work/carrying" "$at"
head -c 100 mini.xz >cut.xz && objcopy --add-section .gnu_debugdata=cut.xz stripped carrying2
says "- fde" --debug-dir nowhere --build-id "$id" "$work/carrying2" "$at"

row="deleted file"
says "inner symtab" --build-id "$id" "$work/prog (deleted)" "$at"
says "- address" "$work/prog (deleted)" "$at"
tells "was deleted, and no build id was recorded" "$work/prog (deleted)" "$at"
says "- address" --build-id "$id" "$work/other (deleted)" "$at"
cp prog "odd (deleted)"
says "inner symtab unverified" "$work/odd (deleted)" "$at"

row="deleted file of a live process"
cp prog running
mkfifo wait
./running <wait &
pid=$!
exec 9>wait
for _ in $(seq 100); do # until it runs the program
    grep -q "$work/running" "/proc/$pid/maps" 2>/dev/null && break
    sleep 0.05
done
range=$(awk -v p="$work/running" '$6 == p && $2 ~ /x/ { print $1; exit }' "/proc/$pid/maps")
inode=$(stat -c %i running)
mv other running # something else has its name
read -r first last <<<"${range/-/ }"
says "inner symtab unverified" --map "${offset#0x}" "$last" --live "$pid" "$first" "$last" "$work/running (deleted)" "$at"
says "- address" --inode 1 --map "${offset#0x}" "$last" --live "$pid" "$first" "$last" "$work/running (deleted)" "$at"
says "inner symtab" --inode "$inode" --map "${offset#0x}" "$last" --live "$pid" "$first" "$last" "$work/running (deleted)" "$at"
exec 9>&-
wait "$pid"
says "- address" --map "${offset#0x}" "$last" --live "$pid" "$first" "$last" "$work/running (deleted)" "$at"

row="program of a container"
mkdir -p "croot$work" && sed 's/inner/in_container/' prog.c >croot.c && gcc -static -O1 -o "croot$work/both" croot.c &&
    gcc -static -O1 -o both prog.c
if [ "$(id -u)" = 0 ]; then # who may chroot
    mkfifo wait2
    chroot croot "$work/both" <wait2 &
    pid=$!
    exec 9>wait2
    for _ in $(seq 100); do
        grep -q "both" "/proc/$pid/maps" 2>/dev/null && break
        sleep 0.05
    done
    read -r o v < <(readelf -lW "croot$work/both" | awk '$1 == "LOAD" && $0 ~ / R E / { print $2, $3 }')
    a=$(printf '%x' $((0x$(nm "croot$work/both" | awk '$3 == "in_container" { print $1 }') - v + o + 4)))
    range=$(awk '$6 ~ /both$/ && $2 ~ /x/ { print $1; exit }' "/proc/$pid/maps")
    read -r first last <<<"${range/-/ }"
    says "in_container symtab unverified" --map "${o#0x}" "$last" --live "$pid" "$first" "$last" "$work/both" "$a"
    exec 9>&-
    wait "$pid"
    says "inner symtab unverified" --map "${o#0x}" "$last" --live "$pid" "$first" "$last" "$work/both" "$a"
else
    echo "program of a container: not tried, chroot is not permitted"
fi

row="clang -g1, functions without a linkage name in DWARF" # inlined ones come with DWARF
if command -v clang++ >/dev/null; then
    cat >foo.cc <<'CODE'
volatile int sink;
struct Bar { __attribute__((noinline)) Bar(int x) { sink = x; } };
struct Foo { Bar bar; Foo(int x) : bar(x + 1) { sink = x; } };
__attribute__((noinline)) int use(int x) { Foo f(x); return sink; }
int main(int argc, char **) { return use(argc); }
CODE
    clang++ -g1 -O1 -no-pie -o foo foo.cc
    read -r o v < <(readelf -lW foo | awk '$1 == "LOAD" && $0 ~ / R E / { print $2, $3 }')
    a=$(printf '%x' $((0x$(nm foo | awk '$3 ~ /BarC2Ei$/ { print $1 }') - v + o + 1)))
    says "Bar::Bar(int) symtab unverified" "$work/foo" "$a"
else
    echo "clang -g1: skipped, no clang++"
fi

row="files that are no files"
mkfifo fifo
says "- address" --symbols . --build-id "$id" /x/fifo "$at"
tells "not a regular file" "$work/fifo" "$at"
says "- address" --symbols . "[heap]" "$at"
printf 'text' >text
tells "no ELF header" "$work/text" "$at"

if [ "$(uname -m)" = x86_64 ] || [ "$(uname -m)" = aarch64 ]; then
    row="vdso"
    range=$(awk '$6 == "[vdso]" { print $1 }' /proc/self/maps)
    read -r first last <<<"${range/-/ }"
    if [ -n "$first" ]; then
        size=$(printf '%x' $((0x$last - 0x$first)))
        ./ask --same-boot --map 0 "$size" '[vdso]' $(seq -f %.0f 0 16 99999 | while read -r n; do [ "$n" -lt $((0x$size)) ] && printf '%x ' "$n"; done) >vdso
        grep -q 'gettime .* dynsym unverified$' vdso || fail "$(tail -n 1 vdso)"
        ./ask --map 0 "$size" '[vdso]' 800 | grep -q '^800 - ' || fail "a vdso of another boot has a name"
        ./ask --same-boot --map 0 4000000 '[vdso]' 800 | grep -q '^800 - ' || fail "a vdso of another size has a name"
    else
        echo "vdso: skipped, this kernel gives none"
    fi
fi

echo "$checked checks, $failures failures"
[ $failures -eq 0 ]
