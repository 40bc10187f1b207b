#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The files of a module as sym_module_files hands them over, and that copies of them in a symbol archive answer as they do.
set -u
. "$(dirname "$0")/_libsym.sh"
needs nm strip objcopy readelf gcc dwz
with_libsym found found.c

# finds EXPECTED ARG...: kinds and paths of the files, the work folder left out
finds() {
    local expected=$1 got
    shift
    got=$(./found "$@" </dev/null | sed "s#$work#.#g" | awk '{ printf "%s%s %s", (NR > 1 ? ", " : ""), $1, $4 }')
    checked=$((checked + 1))
    [ "$got" = "$expected" ] || fail "'$got' instead of '$expected' ($*)"
}

build_id() { readelf -n "$1" 2>/dev/null | sed -n 's/.*Build ID: //p'; }

# mapping FILE: options for the mapping of its code; offsets: of every second byte of its code
mapping() {
    readelf -lW "$1" | awk '$1 == "LOAD" && $0 ~ / R E / { print $2, $5 }' | {
        read -r offset size
        echo "--map ${offset#0x} $(printf '%x' $(((size + 4095) / 4096 * 4096)))"
    }
}
offsets() {
    readelf -lW "$1" | awk '$1 == "LOAD" && $0 ~ / R E / { print $2, $5 }' | {
        read -r offset size
        # shellcheck disable=SC2046 # numbers
        printf '%x\n' $(seq $((offset)) 2 $((offset + size - 1)))
    }
}

# archived FILE [OTHER]...: whether copies of its files answer as they do. FILE and the others are moved to gone.
archived() {
    local file=$1 id args
    shift
    id=$(build_id "$file")
    read -ra args <<<"--build-id $id $(mapping "$file")"
    offsets "$file" >asked
    rm -rf archive
    ./found "${args[@]}" --store archive "$work/$file" </dev/null >/dev/null
    ./found "${args[@]}" --chains "$work/$file" <asked >before
    mkdir -p gone && mv "$@" "$file" gone/
    ./found "${args[@]}" --symbols archive --chains "$work/$file" <asked >after
    checked=$((checked + 1))
    cmp -s before after || fail "other answers: $(diff before after | head -n 6)"
    tar -C archive -czf archive.tar.gz .
    ./found "${args[@]}" --symbols archive.tar.gz --chains "$work/$file" <asked >after
    cmp -s before after || fail "other answers from a tar file: $(diff before after | head -n 6)"
    grep -q ', inlined, elf' after || fail "no inlined function: $(head -n 3 after)"
    grep -q 'prog\.c:[1-9]' after || fail "no lines"
}

cat >prog.c <<'CODE'
#include <stdio.h>
CODE
# Enough of the same for dwz to move it.
for k in $(seq 40); do echo "struct s$k { int a$k; long b$k; struct s$k *next$k; }; struct s$k v$k;"; done >>prog.c
cat >>prog.c <<'CODE'
static inline __attribute__((always_inline)) int inner(int x) { return x * 3 + getchar(); }
__attribute__((noinline)) static int outer(int x) { return inner(x) + 1; }
int main(void) { return outer(getchar()) + inner(X); }
CODE
gcc -g -O1 -gdwarf-4 -DX=1 -Wl,--build-id -o prog prog.c || exit 1
gcc -g -O1 -gdwarf-4 -DX=2 -Wl,--build-id -o twin prog.c || exit 1
id=$(build_id prog)

row="a program with everything in it"
finds "program ./prog" "$work/prog"
[ "$(./found "$work/prog" </dev/null)" = "program $id $(stat -c %s prog) $work/prog" ] || fail "$(./found "$work/prog")"
row="another build"
finds "" --build-id "$(build_id twin)" "$work/prog"
row="no file"
finds "" "$work/absent"
finds "" '[heap]'
finds "" ''
row="a program without names"
strip -o stripped prog
finds "program ./stripped" "$work/stripped"
row="a sysroot"
mkdir -p image/bin && cp prog image/bin/
finds "program image/bin/prog" --sysroot image /bin/prog

row="debug file by debug link"
objcopy --only-keep-debug prog linked.debug
strip -o linked prog && objcopy --add-gnu-debuglink=linked.debug linked
finds "program ./linked, debug ./linked.debug" "$work/linked"
row="debug file that adds lines to names"
strip -g -o named prog
objcopy --add-gnu-debuglink=linked.debug named
finds "program ./named, debug ./linked.debug" "$work/named"
row="debug file that has names only"
objcopy --only-keep-debug named names.debug
strip -o bare prog && objcopy --add-gnu-debuglink=names.debug bare
finds "program ./bare, debug ./names.debug" "$work/bare"
row="the program is gone"
mkdir -p "store/.build-id/${id:0:2}" && cp linked.debug "store/.build-id/${id:0:2}/${id:2}.debug"
finds "debug store/.build-id/${id:0:2}/${id:2}.debug" --debug-dir store --build-id "$id" /gone/prog

row="archive of a program and its debug file"
archived linked linked.debug
row="archive of a program with everything in it"
cp prog whole
archived whole

row="supplementary file"
cp prog dwz1 && cp twin dwz2 && dwz -m common.debug -M common.debug dwz1 dwz2 || skip_test "dwz makes no common file"
finds "program ./dwz1, supplementary ./common.debug" "$work/dwz1"
objcopy --only-keep-debug dwz1 sup.debug
strip -o sup dwz1 && objcopy --add-gnu-debuglink=sup.debug sup
finds "program ./sup, debug ./sup.debug, supplementary ./common.debug" "$work/sup"
row="archive with a supplementary file"
archived sup sup.debug common.debug
mv gone/common.debug .
archived dwz1 common.debug

row="package"
pack=
for tool in dwp llvm-dwp llvm-dwp-14; do command -v $tool >/dev/null && pack=$tool && break; done
if [ -n "$pack" ]; then
    for version in 4 5; do
        [ $version = 4 ] || [ "${pack#llvm}" != "$pack" ] || command -v llvm-dwp >/dev/null || continue
        [ $version = 4 ] || pack=llvm-dwp
        gcc -g -O1 -gdwarf-$version -gsplit-dwarf -DX=3 -Wl,--build-id -c -o split.o prog.c
        gcc -Wl,--build-id -o split split.o
        finds "program ./split" "$work/split"
        $pack -o split.dwp split.dwo || exit 1
        finds "program ./split, package ./split.dwp" "$work/split"
        cp split apart && cp split.dwp apart.dwp && objcopy --only-keep-debug split apart.debug
        strip apart && objcopy --add-gnu-debuglink=apart.debug apart
        finds "program ./apart, debug ./apart.debug, package ./apart.dwp" "$work/apart"
        row="archive with a package, DWARF $version"
        archived split split.dwp split.dwo
        archived apart apart.debug apart.dwp
    done
    row="a package beside a program that has no split file"
    cp prog lone && : >lone.dwp
    finds "program ./lone" "$work/lone"
else
    echo "packages: skipped, no dwp and no llvm-dwp"
fi

row="deleted files of a live process"
for when in before since; do
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
    read -r first last <<<"${range/-/ }"
    read -ra live <<<"--build-id $id $(mapping prog) --live $pid $first $last"
    if [ $when = before ]; then
        rm running
        path="$work/running (deleted)"
    else
        cp twin other && mv other running # something else has its name
        path=$work/running
    fi
    finds "program $(sed "s#$work#.#" <<<"${path% *}")" "${live[@]}" "$path"
    rm -rf archive
    ./found "${live[@]}" --store archive "$path" </dev/null >/dev/null
    cmp -s prog "archive/.build-id/${id:0:2}/${id:2}.debug" || fail "$when: not the deleted file"
    exec 9>&-
    wait "$pid"
    finds "" "${live[@]}" "$path"
    rm -f running wait
done

if [ "$(uname -m)" = x86_64 ] || [ "$(uname -m)" = aarch64 ]; then
    row="vdso"
    range=$(awk '$6 == "[vdso]" { print $1 }' /proc/self/maps)
    read -r first last <<<"${range/-/ }"
    if [ -n "$first" ]; then
        finds "program [vdso]" --map 0 "$(printf '%x' $((0x$last - 0x$first)))" '[vdso]'
        rm -rf archive
        ./found --store archive --map 0 "$(printf '%x' $((0x$last - 0x$first)))" '[vdso]' </dev/null >/dev/null
        readelf --dyn-syms -W "$(find archive -type f)" | grep -q gettime || fail "no ELF file"
    else
        echo "vdso: skipped, this kernel gives none"
    fi
fi

echo "$checked checks, $failures failures"
[ $failures -eq 0 ]
