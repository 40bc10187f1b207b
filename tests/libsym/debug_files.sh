#!/bin/bash
# SPDX-License-Identifier: MIT
# Which file debug information comes from (symbolization.md section 4, 2 to 4), what of it is refused, and the words for it.
set -u
. "$(dirname "$0")/_libsym.sh"
needs nm strip objcopy readelf gcc dwz
SYM_LIBS="${SYM_LIBS:--liberty -lpthread -lz -llzma} -Wl,--wrap=symint_dwarf_open"
with_libsym opened opened.c
SYM_LIBS="${SYM_LIBS% -Wl,--wrap=symint_dwarf_open}" with_libsym chains chains.c

failures=0
checked=0

fail() {
    echo "FAIL $row: $*"
    failures=$((failures + 1))
}

# says EXPECTED ARG...: the first line of `opened`, the work folder left out
says() {
    local expected=$1 got
    shift
    got=$(./opened "$@" | sed "s#$work#.#g; q")
    checked=$((checked + 1))
    [ "$got" = "$expected" ] || fail "'$got' instead of '$expected' ($*)"
}

# tells PATTERN ARG...: the last line
tells() {
    local pattern=$1 got
    shift
    got=$(./opened "$@" | tail -n 1)
    checked=$((checked + 1))
    grep -q -- "$pattern" <<<"$got" || fail "'$got' does not say '$pattern' ($*)"
}

build_id() { readelf -n "$1" 2>/dev/null | sed -n 's/.*Build ID: //p'; }
stored() { # DIR FILE ID: FILE as the debug file of a build id
    mkdir -p "$1/.build-id/${3:0:2}" && cp "$2" "$1/.build-id/${3:0:2}/${3:2}.debug"
}

cat >prog.c <<'CODE'
#include <stdio.h>
__attribute__((noinline)) int outer(int x) { return x * 3 + getchar(); }
int main(void) { return outer(getchar()); }
CODE
gcc -g -O1 -Wl,--build-id -o prog prog.c || exit 1
gcc -g -O2 -Wl,--build-id -DX=1 -falign-functions=128 -o other prog.c || exit 1
id=$(build_id prog)
objcopy --only-keep-debug prog prog.debug
strip -o stripped prog
strip -g -o named prog
objcopy --only-keep-debug named named.debug
strip --strip-all -R .debug_line -o neither prog

row="debug information of the binary itself"
says "debug ./prog 0 ./prog" --debug-dir nowhere locate "$work/prog"
stored d1 prog.debug "$id"
says "debug ./prog 0 ./prog" --debug-dir d1 locate "$work/prog"
tells "^found: $" --debug-dir d1 locate "$work/prog"
for packed in zlib zlib-gnu; do
    objcopy --compress-debug-sections=$packed prog packed-$packed
    says "debug ./packed-$packed 0 ./packed-$packed" --debug-dir nowhere locate "$work/packed-$packed"
done

row="a binary with symbols, and a debug file"
says "debug ./d1/.build-id/${id:0:2}/${id:2}.debug 0 ./named" --debug-dir d1 locate "$work/named"
tells "^found: $" --debug-dir d1 locate "$work/named"
row="a binary with symbols, and no debug file, is nothing to speak of"
says "found: " --debug-dir nowhere locate "$work/named"
row="a stripped binary"
says "debug ./d1/.build-id/${id:0:2}/${id:2}.debug 0 ./stripped" --debug-dir d1 locate "$work/stripped"
row="symbol folders are first"
stored folder prog.debug "$id"
says "debug ./folder/.build-id/${id:0:2}/${id:2}.debug 0 ./named" --symbols folder --debug-dir d1 locate "$work/named"

row="a debug file that has symbols only, then another"
stored d2 named.debug "$id"
says "debug ./d1/.build-id/${id:0:2}/${id:2}.debug 0 ./stripped" --debug-dir d2 --debug-dir d1 locate "$work/stripped"
says "found: " --debug-dir d2 locate "$work/named"
row="symbols in one file, debug information in another"
strip --strip-debug -o half.debug prog.debug 2>/dev/null
objcopy --strip-unneeded --keep-section='.debug*' prog.debug bare.debug 2>/dev/null
objcopy --remove-section .symtab --remove-section .strtab bare.debug 2>/dev/null
stored d3 bare.debug "$id"
says "debug ./d3/.build-id/${id:0:2}/${id:2}.debug 0 ./stripped" --debug-dir d3 --debug-dir d2 locate "$work/stripped"

row="a debug file that is wrong is told"
stored d4 other "$id"
says "found: d4/.build-id/${id:0:2}/${id:2}.debug: its build id is $(build_id other), not $id" --debug-dir d4 locate "$work/named"
head -c 40 prog.debug >cut && stored d5 cut "$id"
tells "^found: d5/.*: its ELF header is cut off" --debug-dir d5 locate "$work/named"
mkdir -p "d6/.build-id/${id:0:2}" && mkfifo "d6/.build-id/${id:0:2}/${id:2}.debug"
tells "^found: d6/.*: not a regular file" --debug-dir d6 locate "$work/named"
row="but not when another one is right"
says "debug ./d1/.build-id/${id:0:2}/${id:2}.debug 0 ./named" --debug-dir d4 --debug-dir d1 locate "$work/named"
tells "^found: $" --debug-dir d4 --debug-dir d1 locate "$work/named"
row="other code with that build id"
gcc -g -O2 -Wl,--build-id="0x$id" -DX=1 -falign-functions=4096 -o same_id prog.c
stored d7 same_id "$id"
tells "d7/.*: its code is not that of $work/named" --debug-dir d7 locate "$work/named"

row="debug link"
gcc -g -O1 -Wl,--build-id=none -o noid prog.c
objcopy --only-keep-debug noid noid.debug
strip -g -o linked noid && objcopy --add-gnu-debuglink=noid.debug linked
says "debug ./noid.debug 0 ./linked" --debug-dir nowhere locate "$work/linked"
printf x >>noid.debug
says "found: ./noid.debug: its CRC-32 is not the one that ./linked names" --debug-dir nowhere locate "$work/linked"
row="debug file of a program that was moved"
fixed=00112233445566778899aabbccddeeff00112233
for base in 400000 10000000; do
    gcc -g -O1 -no-pie -Wl,--build-id=0x$fixed -Wl,-Ttext-segment=0x$base -o moved$base prog.c
done
objcopy --only-keep-debug moved400000 moved.debug && stored d8 moved.debug $fixed
strip -g -o moved moved10000000
says "debug ./d8/.build-id/00/${fixed#00}.debug fc00000 ./moved" --debug-dir d8 locate "$work/moved"

row="the program is gone"
says "debug ./d1/.build-id/${id:0:2}/${id:2}.debug 0 /gone/prog" --debug-dir d1 --build-id "$id" locate /gone/prog
says "debug ./d3/.build-id/${id:0:2}/${id:2}.debug 0 /gone/prog" --debug-dir d3 --build-id "$id" locate /gone/prog

row="sysroot"
mkdir -p image/opt image/usr/lib && cp named image/opt/prog && stored image/usr/lib/debug prog.debug "$id"
says "debug ./image/usr/lib/debug/.build-id/${id:0:2}/${id:2}.debug 0 /opt/prog" --sysroot image locate /opt/prog
# A debug file of another root does not know where the program is.
mkdir -p image2/opt && cp named image2/opt/prog
says "debug ./d1/.build-id/${id:0:2}/${id:2}.debug 0 -" --sysroot image2 --debug-dir "$work/d1" locate /opt/prog

# ---- supplementary files ----

# Enough of the same for dwz to move it.
for n in 1 2; do
    {
        for k in $(seq 40); do echo "struct s$k { int a$k; long b$k; struct s$k *next$k; }; struct s$k v$k;"; done
        echo "int main$n(void) { return $n; } int main(void) { return 0; }"
    } >alt$n.c
    gcc -g -gdwarf-4 -Wl,--build-id -o alt$n alt$n.c || exit 1
done
mkdir -p usr/.dwz usr/.build-id/ab usr/bin
cp alt1 usr/bin/ && cp alt2 usr/bin/
(cd usr && dwz -m .dwz/common.debug -M ../.dwz/common.debug bin/alt1 bin/alt2) || skip_test "dwz makes no common file"
altid=$(build_id usr/.dwz/common.debug)

row="supplementary file beside"
says "file ./usr/.dwz/common.debug ./usr/bin/../.dwz/common.debug" --debug-dir nowhere alt "$work/usr/bin/alt1"
says "file ./usr/.dwz/common.debug usr/bin/../.dwz/common.debug" --debug-dir nowhere alt usr/bin/alt1
says "none: " --debug-dir nowhere alt "$work/prog"
row="by a symbolic link to the debug file"
mkdir links && ln -s "$work/usr/bin/alt1" links/absolute && ln -s ../links/absolute links/relative && ln -s usr/bin short
says "file ./usr/.dwz/common.debug ./usr/bin/../.dwz/common.debug" --debug-dir nowhere alt links/relative
row="by a symbolic link to its folder"
says "file ./usr/.dwz/common.debug short/../.dwz/common.debug" --debug-dir nowhere alt short/alt1
row="by a loop of links"
ln -s loop links/loop
checked=$((checked + 1))
./opened alt links/loop 2>&1 | grep -q "Too many levels" || fail "a loop is a file"
row="supplementary file by build id"
cp usr/bin/alt1 lonely
tells "^none: $work/../.dwz/common.debug: No such file" --debug-dir nowhere alt "$work/lonely"
stored d9 usr/.dwz/common.debug "$altid"
says "file ./d9/.build-id/${altid:0:2}/${altid:2}.debug d9/.build-id/${altid:0:2}/${altid:2}.debug" --debug-dir d9 alt "$work/lonely"
says "file ./d9/.build-id/${altid:0:2}/${altid:2}.debug d9/.build-id/${altid:0:2}/${altid:2}.debug" --symbols d9 --debug-dir nowhere alt "$work/lonely"
row="supplementary file of another build"
mkdir -p usr2/.dwz usr2/bin && cp usr/bin/alt1 usr2/bin/ && cp prog usr2/.dwz/common.debug
tells "usr2/bin/../.dwz/common.debug: its build id is not the one that the debug file names" --debug-dir nowhere alt usr2/bin/alt1
says "file ./d9/.build-id/${altid:0:2}/${altid:2}.debug d9/.build-id/${altid:0:2}/${altid:2}.debug" --debug-dir d9 alt usr2/bin/alt1
row="supplementary file that is none"
rm usr2/.dwz/common.debug && mkfifo usr2/.dwz/common.debug
tells "common.debug: not a regular file" --debug-dir nowhere alt usr2/bin/alt1
row="supplementary file that climbs out of the sysroot"
mkdir -p image3/bin && cp usr/bin/alt1 image3/bin/
objcopy --remove-section .gnu_debugaltlink image3/bin/alt1 image3/bin/climbs
{ printf '../../../usr/.dwz/common.debug\0' && sed 's/../\\x&/g' <<<"$altid" | xargs -0 printf %b | head -c 20; } >link
objcopy --add-section .gnu_debugaltlink=link image3/bin/climbs
tells "image3/bin/../../../usr/.dwz/common.debug: No such file" --sysroot image3 --debug-dir nowhere alt /bin/climbs
mkdir -p image3/usr/.dwz && cp usr/.dwz/common.debug image3/usr/.dwz/
says "file ./image3/usr/.dwz/common.debug /bin/../../../usr/.dwz/common.debug" --sysroot image3 --debug-dir nowhere alt /bin/climbs
ln -s "$work/usr/bin/alt1" image3/bin/ours
checked=$((checked + 1))
./opened --sysroot image3 alt /bin/ours 2>&1 | grep -q "No such file" || fail "a link out of the sysroot is followed"
row="absolute name"
{ printf '/usr/.dwz/common.debug\0' && tail -c 20 link; } >link2
objcopy --remove-section .gnu_debugaltlink image3/bin/alt1 image3/bin/absolute && objcopy --add-section .gnu_debugaltlink=link2 image3/bin/absolute
says "file ./image3/usr/.dwz/common.debug /usr/.dwz/common.debug" --sysroot image3 --debug-dir nowhere alt /bin/absolute
row="damaged .gnu_debugaltlink"
n=0
for bytes in 'no end' '' '\0' 'name\0' '\0id' "$(printf 'x%.0s' $(seq 5000))\\0id"; do
    # shellcheck disable=SC2059 # a format
    printf "$bytes" >link3
    objcopy --remove-section .gnu_debugaltlink lonely broken
    objcopy --add-section .gnu_debugaltlink=link3 broken
    tells "^none: $work/broken: .*\(damaged\|empty or too long\)" --debug-dir d9 alt "$work/broken"
    n=$((n + 1))
done
row="DWARF 5"
for n in 1 2; do gcc -g -gdwarf-5 -Wl,--build-id -o sup$n alt$n.c; done
if dwz --dwarf-5 -5 -m common5.debug -M common5.debug sup1 sup2 2>/dev/null && readelf -SW sup1 | grep -q '\.debug_sup'; then
    says "file ./common5.debug ./common5.debug" --debug-dir nowhere alt "$work/sup1"
    says "none: " --debug-dir nowhere alt "$work/common5.debug"
    mv common5.debug away && cp prog common5.debug
    tells "common5.debug: its build id is not" --debug-dir nowhere alt "$work/sup1"
else
    echo "DWARF 5 supplementary files: not tried, this dwz makes none"
fi

# ---- split files ----

mkdir -p build/obj src bin
(cd build && gcc -g -O1 -gsplit-dwarf -Wl,--build-id -o ../bin/split ../prog.c) || exit 1
dwo=$(cd build && ls ../bin/*.dwo ./*.dwo 2>/dev/null | head -n 1)
mv "build/$dwo" build/obj/one.dwo || exit 1

row="split file relative to its comp_dir"
says "file ./build/obj/one.dwo ./build/obj/one.dwo" split bin/split - "$work/build" obj/one.dwo
row="absolute name of a split file"
says "file ./build/obj/one.dwo ./build/obj/one.dwo" split bin/split - /nowhere "$work/build/obj/one.dwo"
row="split file beside"
tells "^none: /nowhere/obj/one.dwo: No such file" split bin/split - /nowhere obj/one.dwo
tells "^none: /nowhere/obj/: No such file" split bin/split - /nowhere obj/
cp build/obj/one.dwo src/one.dwo && cp bin/split src/prog
says "file ./src/one.dwo src/one.dwo" split bin/split src/prog /nowhere obj/one.dwo
says "file ./src/one.dwo src/one.dwo" split src/prog bin/split /nowhere obj/one.dwo
says "file ./src/one.dwo src/one.dwo" split src/prog - - one.dwo
says "file ./build/obj/one.dwo build/obj/one.dwo" split bin/split build/prog relative obj/one.dwo
(cd src && ../opened split prog - - obj/one.dwo | grep -q "^file $work/src/one.dwo one.dwo$") || fail "a program without a folder"
row="split file in a symbol folder"
mkdir hollow
says "file ./src/one.dwo src/one.dwo" --symbols hollow --symbols src split bin/split - /nowhere obj/one.dwo
tells "^none: bin/..: not a regular file" --symbols src split bin/split - /nowhere x/..
row="split file that is none"
cp prog src/two.dwo
tells "^none: src/two.dwo: it has no .debug_info.dwo" split src/prog - /nowhere two.dwo
mkfifo src/three.dwo
tells "^none: $work/src/three.dwo: not a regular file" split src/prog - "$work/src" three.dwo
tells "^none: .*src/prog: .* empty or too long" split src/prog - "$work" ""
tells "^none: .*src/prog: .* empty or too long" split src/prog - "$work" "$(printf 'x%.0s' $(seq 5000))"
tells "^none: .*src/prog: .* empty or too long" split src/prog - "/$(printf 'x%.0s' $(seq 5000))" a
row="split file inside the sysroot"
mkdir -p image4/bin image4/build/obj && cp bin/split image4/bin/
tells "^none: image4/build/obj/one.dwo: No such file" --sysroot image4 split /bin/split - /build obj/one.dwo
tells "^none: image4/../../../$work/build/obj/one.dwo: No such file" --sysroot image4 split /bin/split - "/../../../$work/build" obj/one.dwo
cp build/obj/one.dwo image4/build/obj/
says "file ./image4/build/obj/one.dwo /build/obj/one.dwo" --sysroot image4 split /bin/split - /build obj/one.dwo

# of another build, at the place that the program names; the right one is beside the program, or nowhere
row="split file of another build"
mkdir place elsewhere
(cd place && gcc -g -O1 -gsplit-dwarf -o one ../prog.c && mv ./*.dwo right && mv one ../elsewhere/one) || exit 1
name=$(readelf --debug-dump=info elsewhere/one 2>/dev/null | sed -n 's/.*dwo_name.*: //p' | head -n 1)
mv place/right "elsewhere/${name##*/}"
outer=$(nm elsewhere/one | awk '$3 == "outer" { print "0x" $1 }')
./chains -v elsewhere/one <<<"$outer" >right
grep -q 'start line: 2' right || fail "the right file: $(<right)"
(cd place && gcc -g -O2 -DOTHER -gsplit-dwarf -o one ../prog.c && rm one && test -f "$name") || exit 1
./chains -v elsewhere/one <<<"$outer" >got
cmp -s got right || fail "a stale file hides the right one: $(<got)"
./chains -d elsewhere/one <<<"$outer" >said
[ "$(<said)" = "found: " ] || fail "but says '$(<said)'"
rm "elsewhere/${name##*/}"
./chains -d elsewhere/one <<<"$outer" >said
grep -q "place/$name: it is not the split file that was built with the program" said || fail "says '$(<said)'"
checked=$((checked + 4))

# ---- packages ----

row="package"
says "none: " package bin/split
pack=
for tool in dwp llvm-dwp llvm-dwp-14; do command -v $tool >/dev/null && pack=$tool && break; done
if [ -n "$pack" ]; then
    $pack -o pack.dwp build/obj/one.dwo || exit 1
    cp pack.dwp bin/split.dwp
    says "file ./bin/split.dwp bin/split.dwp" package bin/split
    rm bin/split.dwp && cp bin/split bin/split.debug && cp pack.dwp bin/split.debug.dwp
    says "file ./bin/split.debug.dwp bin/split.debug.dwp" package bin/split.debug
    mv bin/split.debug.dwp bin/split.dwp
    says "file ./bin/split.dwp bin/split.dwp" package bin/split.debug
    row="package beside the program"
    mv bin/split.debug d1/ && mkdir -p prg && cp pack.dwp prg/name.dwp
    says "file ./prg/name.dwp prg/name.dwp" package d1/split.debug prg/name
    row="package beside what a link by build id leads to"
    ln -s ../bin/split links/split
    says "file ./bin/split.dwp links/../bin/split.dwp" package links/split
    row="package in a symbol folder"
    says "file ./prg/name.dwp prg/name.dwp" --symbols prg package src/prog /gone/name
    row="package that is none"
    cp prog src/prog.dwp
    says "none: src/prog.dwp: it has no .debug_cu_index" package src/prog
else
    echo "packages: skipped, no dwp and no llvm-dwp"
fi

echo "$checked checks, $failures failures"
[ $failures -eq 0 ]
