#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Debug sections as other tools pack and relocate them: packed ones must become the same bytes again, and those of
# object files what a linker makes of them that puts each section at its file offset.
set -eu
. "$(dirname "$0")/_libsym.sh"
needs objcopy readelf nm clang ld.lld gcc
with_libsym dump dump_sections.c
with_libsym lookup lookup.c
zstd=
case ${SYM_LIBS:-} in *-lzstd*) zstd=1 ;; esac

# dumped FILE FOLDER [split]: dumps what libsym sees, which must not complain
dumped() {
    rm -rf "$2"
    mkdir -p "$2"
    ./dump "$1" "$2" ${3:-} >"$2.said" || die "dump $1"
    ! grep -v '^code ' "$2.said" || die "$1: complaint"
    [ -n "$(ls "$2")" ] || die "$1: no section"
}

# extracted FILE FOLDER [SUFFIX]: the same by objcopy, for a linked file
extracted() {
    local name
    rm -rf "$2"
    mkdir -p "$2"
    for name in info abbrev str line_str str_offsets addr ranges rnglists line cu_index; do
        objcopy -O binary --only-section=.debug_$name${3:-} --set-section-flags .debug_$name${3:-}=alloc "$1" "$2/$name"
        [ -s "$2/$name" ] || rm "$2/$name"
    done
}

same() { # WHAT FOLDER OTHER
    diff -r "$2" "$3" || die "$1"
    checked=$((checked + 1))
}

cat >p.c <<'CODE'
static inline int g(int x) { return x * 3 + 1; }
int f1(int x) { return g(x) + 2; }
int f2(int x) { return g(x) * x; }
static int h(int x) { return x - 1; }
int (*p)(int) = h;
static int never(int x) { return x; }
int cold(int x) { return f1(f2(x)) + (x > 5 ? never(x) : h(x)); }
int main(void) { return p(3) - 2; }
CODE

# ---- packed ----

for compiler in "gcc -gdwarf-4" "clang -gdwarf-5"; do
    $compiler -O1 p.c -o plain
    extracted plain expected
    dumped plain got
    same "$compiler" expected got
    for packing in zlib zlib-gnu zstd; do
        objcopy --compress-debug-sections=$packing plain packed 2>objcopy.log || continue # an old objcopy
        readelf -SW packed | grep -Eq '\.zdebug_info|\.debug_info .* C ' || die "objcopy does not pack by $packing"
        if [ $packing = zstd ] && [ -z "$zstd" ]; then
            rm -rf got
            mkdir got
            ./dump packed got | grep -qx 'its debug sections are packed by zstd, which is not compiled in' ||
                die "zstd is not missed"
            continue
        fi
        dumped packed got
        same "$compiler $packing" expected got
    done
done
clang -gdwarf-5 -O1 -Wl,--emit-relocs p.c -o kept # relocations that were applied
readelf -SW kept | grep -q '\.rela\.debug_info' || die "no relocations were kept"
extracted kept expected
dumped kept got
same "kept relocations" expected got
clang -gdwarf-5 -gsplit-dwarf -O1 -c p.c -o split.o
extracted split.dwo expected .dwo
dumped split.dwo got split
same "split" expected got
objcopy --compress-debug-sections=zlib split.dwo packed.dwo
dumped packed.dwo got split
same "packed split" expected got

# ---- relocated ----

# script FILE: for a linker that puts each section of an object file at its file offset
script() {
    echo "SECTIONS {"
    readelf -SW "$1" | sed -n 's/^ *\[ *[0-9]*\] *\(\..*\)$/\1/p' |
        awk '$2 ~ /^(PROGBITS|NOBITS|X86_64_UNWIND|INIT_ARRAY|NOTE)$/ {
            alloc = $7 ~ /A/
            printf "%s 0x%s : { *(%s) }\n", $1, alloc && $2 != "NOBITS" ? $4 : "0", $1
        }'
    echo "/DISCARD/ : { *(.eh_frame) *(.ARM.exidx*) *(.llvm_addrsig) } }"
}

# linked_of SCRIPT OBJECT
linked_of() {
    ld.lld -O0 -e 0 --no-check-sections --unresolved-symbols=ignore-all -T "$1" "$2" -o linked || die "linking $2"
}

relocated() { # COMPILER...: to p.o
    "$@" -c p.c -o p.o
    script p.o >p.lds
    linked_of p.lds p.o
    dumped linked expected
    dumped p.o got
    same "$*" expected got
}

# The same for p.o with its sections packed, which is linked unpacked, but with the offsets of the packed one.
relocated_and_packed() { # PACKING
    objcopy --compress-debug-sections="$1" p.o packed.o 2>objcopy.log || return 0
    objcopy --decompress-debug-sections packed.o again.o
    script packed.o | sed 's/^\.zdebug/.debug/; s/\*(\.zdebug/*(.debug/' >packed.lds
    linked_of packed.lds again.o
    dumped linked expected
    dumped packed.o got
    same "$1, relocated" expected got
}

relocated gcc -gdwarf-4 -O1 -ffunction-sections
relocated clang -gdwarf-4 -O1
relocated gcc -gdwarf-5 -O1 -ffunction-sections
for packing in zlib zlib-gnu ${zstd:+zstd}; do
    relocated_and_packed $packing
done
for machine in i386-linux-gnu armv7-linux-gnueabi aarch64-linux-gnu; do
    relocated clang -target $machine -ffreestanding -g -O1 -ffunction-sections
done

# ---- symbols of an object file ----

gcc -g -O1 -ffunction-sections -c p.c -o p.o
dumped p.o got
readelf -SW p.o | sed -n 's/^ *\[ *\([0-9]*\)\] *\(.*\)$/\1 \2/p' | awk '{ print $1, $5 }' >section_offsets
readelf -sW p.o | awk '
    NR == FNR { offset[$1] = $2; next }
    $4 == "FUNC" { print offset[$7], $2, $8 }' section_offsets - >functions
[ "$(wc -l <functions)" -ge 5 ] || die "readelf lists no functions"
while read -r section value name; do
    address=$(printf '%x' $((0x$section + 0x$value)))
    [ "$(echo "$address" | ./lookup p.o)" = "$address $name $address elf" ] ||
        [ "$(echo "$address" | ./lookup p.o | cut -d' ' -f1-3)" = "$address $name $address" ] ||
        die "$name: $(echo "$address" | ./lookup p.o)"
    grep -q "^code $address " got.said || die "$name is no code: $(<got.said)"
    checked=$((checked + 1))
done <functions
[ "$(echo 10 | ./lookup p.o | cut -d' ' -f2)" = - ] || die "the ELF header has a name"
# A debug file of its own has no offsets of the code: the program's are used.
objcopy --only-keep-debug p.o p.debug
[ "$(echo "$address" | ./lookup p.debug | cut -d' ' -f2)" = - ] || die "a debug file alone names code"
objcopy --strip-all --keep-symbol=never_there --add-gnu-debuglink=p.debug p.o stripped.o 2>log || cat log
readelf -SW stripped.o | sed -n 's/^ *\[ *\([0-9]*\)\] *\(.*\)$/\1 \2/p' | awk '{ print $2, $5 }' >stripped_offsets
offset=$(awk '$1 == ".text.f2" { print $2 }' stripped_offsets)
offset=$(printf '%x' "0x$offset")
[ "$(echo "$offset" | ./lookup stripped.o | cut -d' ' -f1-3)" = "$offset f2 $offset" ] ||
    die "debug link: $(echo "$offset" | ./lookup stripped.o)"
echo "$checked files and symbols agree"
