#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Chains of inlined functions and lines against llvm-symbolizer's, for programs of many compilers, options and layouts:
# 10,000 addresses of each.
#
# DWARF_FIXTURES=all builds every fixture, which takes minutes; else one for each thing that a producer does otherwise.
# DWARF_ONLY='NAME...' builds these. The sanitized build takes fewer: it is for the memory of the reader, which the damaged
# files of dwarf_damage.sh look after, too.
set -u
. "$(dirname "$0")/_dwarf.sh"
needs rustc as ld dwz dwp llvm-dwp aarch64-linux-gnu-gcc

# ---- compilers, optimisation, versions ----

# plain COMPILER LEVEL VERSION [OPTION]...: a fixture of one of these
plain()
{
    local compiler=$1 level=$2 version=$3
    shift 3
    duo program "$compiler" "-O$level" "-gdwarf-$version" "$@"
    differ "$compiler -O$level DWARF $version${1:+ $*}" program
}

for level in 0 1 2 3 s; do
    for version in 2 3 4 5; do
        for compiler in gcc clang; do
            eval "fixture_${compiler}_O${level}_v$version() { plain $compiler $level $version; }"
        done
    done
done

fixture_gcc_64bit_v5() { plain gcc 2 5 -gdwarf64; }
fixture_gcc_64bit_v3() { plain gcc 2 3 -gdwarf64; }
fixture_gcc_64bit_v4() { plain gcc 2 4 -gdwarf64; }
fixture_clang_64bit_v4() { plain clang 2 4 -gdwarf64; }
fixture_clang_64bit_v5() { plain clang 2 5 -gdwarf64; }
fixture_gcc_strict_v3() { plain gcc 2 3 -gstrict-dwarf; }
fixture_gcc_strict_v5() { plain gcc 2 5 -gstrict-dwarf; }
fixture_gcc_no_views() { plain gcc 2 5 -gno-as-loc-support -gno-variable-location-views; }
fixture_gcc_no_columns() { plain gcc 2 5 -gno-column-info; }
fixture_gcc_g1() { plain gcc 2 5 -g1; }
fixture_gcc_g3() { plain gcc 2 5 -g3; }
fixture_gcc_sections() { plain gcc 2 5 -ffunction-sections; }
fixture_clang_g1() { plain clang 2 5 -g1; }
fixture_clang_g1_v4() { plain clang 2 4 -gmlt; }
fixture_clang_profile() { plain clang 2 4 -fdebug-info-for-profiling; }
fixture_clang_simple_names() { plain clang 2 5 -Xclang -gsimple-template-names=simple; }
fixture_clang_pie_relative() { plain clang 2 5 -fdebug-compilation-dir=.; }
fixture_clang_blocks() { plain clang 2 5 -fuse-ld=lld -fbasic-block-sections=all; }
fixture_gcc_prefix() { plain gcc 2 5 "-ffile-prefix-map=$sources=/somewhere/./else//"; }

fixture_types_gcc_v4() { plain gcc 2 4 -fdebug-types-section; }
fixture_types_clang_v5() { plain clang 2 5 -fdebug-types-section; }
fixture_types_gcc_v5() { plain gcc 0 5 -fdebug-types-section; }
fixture_types_clang_v4() { plain clang 2 4 -fdebug-types-section; }

fixture_lto_gcc() { plain gcc 2 5 -flto; }
fixture_lto_clang() { plain clang 2 5 -flto -fuse-ld=lld; }
fixture_lto_gcc_v4() { plain gcc 2 4 -flto; }
fixture_lto_gcc_types() { plain gcc 3 5 -flto -fdebug-types-section; }
fixture_lto_gcc_partitions() { plain gcc 2 5 -flto -flto-partition=1to1; }
fixture_lto_clang_thin() { plain clang 2 5 -flto=thin -fuse-ld=lld; }

fixture_stl_gcc() # and two units that have inline functions in common
{
    g++ -std=c++17 -O2 -g -c "$sources/shapes.cc"
    gcc -O1 -g -DNO_MAIN -c "$sources/pieces.c"
    g++ -std=c++17 -O2 -g "$sources/engine.cc" shapes.o pieces.o -pthread -o program
    differ "containers, g++ -O2" program
}
fixture_stl_clang()
{
    clang++ -std=c++17 -O2 -g -c "$sources/shapes.cc"
    clang -O1 -g -DNO_MAIN -c "$sources/pieces.c"
    clang++ -std=c++17 -O2 -g "$sources/engine.cc" shapes.o pieces.o -pthread -o program
    differ "containers, clang++ -O2" program
}
fixture_stl_gcc_O0()
{
    g++ -std=c++17 -O0 -g -gdwarf-4 -c "$sources/shapes.cc"
    gcc -O1 -g -DNO_MAIN -c "$sources/pieces.c"
    g++ -std=c++17 -O0 -g "$sources/engine.cc" shapes.o pieces.o -pthread -o program
    differ "containers, g++ -O0" program
}

fixture_inlined_constructor() # S4: without a linkage name it has its class in front, where there is a class
{
    clang++ -O2 -g1 "$sources/constructor.cc" -o program # an entry with the name Foo, and that is all
    differ "clang++ -g1" program
    clang++ -O2 -gline-tables-only -gdwarf-4 "$sources/constructor.cc" -o program
    differ "clang++ -gline-tables-only" program
    # What is local to a unit has no linkage name from gcc.
    g++ -O2 -g -DNAMESPACE= "$sources/constructor.cc" -o program
    differ "g++, a constructor" program
    for name in 'Foo::Foo' 'Bar::Bar'; do
        grep -qxF "(anonymous namespace)::$name" ours || failed "no (anonymous namespace)::$name"
    done
    ! grep -qxE 'Foo|Bar' ours || failed "a name without its class"
}

fixture_c() # with the nested function of gcc
{
    gcc -O2 -g "$sources/pieces.c" -o program
    differ "C, gcc -O2" program
    gcc -O0 -g -gdwarf-4 -no-pie "$sources/pieces.c" -o program
    differ "C, gcc -O0 -no-pie" program
}

# ---- Rust, assembly, other machines ----

fixture_rust()
{
    rustc -g "$sources/ledger.rs" -o program
    differ "rustc -g" program
}
fixture_rust_O()
{
    rustc -g -O "$sources/ledger.rs" -o program
    differ "rustc -g -O" program
    rustc -g -C opt-level=3 -C lto "$sources/ledger.rs" -o program
    differ "rustc -g -O, LTO" program
    rustc -g -O -C link-arg=-fuse-ld=lld "$sources/ledger.rs" -o program
    differ "rustc -g -O, lld" program
}

fixture_assembly()
{
    local version
    for version in 2 3 4 5; do
        as "--gdwarf-$version" "$sources/plain.s" -o plain.o
        ld plain.o -o plain
        differ "as, DWARF $version" plain
    done
    as "$sources/located.s" -o located.o
    ld located.o -o located
    differ "rows of a generator" located
    clang -c -g "$sources/plain.s" -o plain.o
    ld.lld plain.o -o plain
    differ "clang's assembler" plain
}

fixture_aarch64()
{
    aarch64-linux-gnu-gcc -O2 -g "$sources/pieces.c" -o program
    differ "C, aarch64" program
}

# foreign LABEL TARGET: another byte order or word, without a C library of that machine
foreign()
{
    clang++ -std=c++17 --target="$2" ${3:+"$3"} -fPIC -O2 -g -c "$sources/engine.cc"
    ld.lld -shared engine.o -o program
    differ "$1" program
}
fixture_big_endian() { foreign "64 bits, big endian" powerpc64 -mabi=elfv2; }
fixture_32bit() { foreign "32 bits" i686-linux-gnu; }
fixture_big_endian_32bit() { foreign "32 bits, big endian" powerpc-linux-gnu; }

# ---- removed and folded functions ----

# dead LABEL COMPILER OPTION...: S17. Their answers are about a program that never had the removed functions.
dead()
{
    local label=$1 compiler=$2 name
    shift 2
    "$compiler" -O2 -g -ffunction-sections -Wl,--gc-sections "$@" -DDEAD "$sources/pieces.c" -o program
    "$compiler" -O2 -g -ffunction-sections -Wl,--gc-sections "$@" "$sources/pieces.c" -o twin
    objcopy -O binary -j .text program program.text
    objcopy -O binary -j .text twin twin.text
    cmp -s program.text twin.text || failed "$label: not the same code"
    nm program | grep -q live_behind || failed "$label: too much removed"
    ! nm program | grep -q dead_large || failed "$label: not removed"
    differ "removed functions, $label" program twin
    ! grep -q '^dead_' ours || failed "$label: a function that is not there"
    for name in main _start live_behind; do
        "$work/chains" program <<<"$(address_of program $name)" >answer
        [ "$(sed -n '/^$/q; N; P' answer | tail -n 1)" = "$name" ] || failed "$label: $name is $(head -n 1 answer)"
    done
}
fixture_dead_gcc_bfd() { dead "gcc, bfd, PIE" gcc -pie -fPIE; }
fixture_dead_clang_lld() { dead "clang, lld, PIE" clang -fuse-ld=lld -pie -fPIE; }
fixture_dead_gcc_v4() { dead "gcc, bfd, DWARF 4" gcc -gdwarf-4 -pie -fPIE; }
fixture_dead_gcc_lld() { dead "gcc, lld, PIE" gcc -fuse-ld=lld -pie -fPIE; }
fixture_dead_clang_bfd() { dead "clang, bfd, PIE" clang -pie -fPIE; }
fixture_dead_clang_bfd_v4() { dead "clang, bfd, PIE, DWARF 4" clang -gdwarf-4 -pie -fPIE; }
fixture_dead_clang_gold() { dead "clang, gold, PIE" clang -fuse-ld=gold -pie -fPIE; }
fixture_dead_gcc_bfd_fixed() { dead "gcc, bfd" gcc -no-pie; }
fixture_dead_gcc_lld_fixed() { dead "gcc, lld" gcc -fuse-ld=lld -no-pie; }
fixture_dead_clang_bfd_fixed() { dead "clang, bfd" clang -no-pie; }
fixture_dead_clang_lld_fixed() { dead "clang, lld" clang -fuse-ld=lld -no-pie; }
fixture_dead_gcc_lld_v3() { dead "gcc, lld, DWARF 3" gcc -fuse-ld=lld -gdwarf-3 -pie -fPIE; }

fixture_folded() { plain clang 2 5 -ffunction-sections -fuse-ld=lld -Wl,--icf=all; }
fixture_folded_gcc() { plain gcc 2 4 -ffunction-sections -fuse-ld=lld -Wl,--icf=all; }

# ---- where the debug information lies ----

# split COMPILER VERSION PACKER [OPTION]...: .dwo files beside the program, then a package of them
split()
{
    local compiler=$1 version=$2 packer=$3 label
    label="split, $compiler, DWARF $version"
    shift 3
    duo program "$compiler" -O2 "-gdwarf-$version" -gsplit-dwarf "$@"
    duo whole "$compiler" -O2 "-gdwarf-$version" "$@"
    differ "$label" program whole
    "$packer" -e program -o program.dwp
    rm -f ./*.dwo
    differ "$label, $packer" program whole
    rm program.dwp
    "$work/chains" program <<<"$(address_of program main)" >answer
    [ "$(head -n 1 answer)" = main ] || failed "$label, files removed: main is $(head -n 1 answer)"
}
fixture_split_gcc_v4() { split gcc 4 dwp; }
fixture_split_clang_v5() { split clang 5 llvm-dwp; }
fixture_split_gcc_v5() { split gcc 5 llvm-dwp; }
fixture_split_clang_v4() { split clang 4 llvm-dwp; }
fixture_split_clang_v4_dwp() { split clang 4 dwp; }
fixture_split_gcc_types() { split gcc 4 dwp -fdebug-types-section; }
fixture_split_clang_types() { split clang 5 llvm-dwp -fdebug-types-section; }
fixture_split_clang_inlining() { split clang 5 llvm-dwp -fsplit-dwarf-inlining; }

one_line() # <answers: the places of a chain in a line, without names and first lines of functions
{
    awk '/^  Function start/ { next } /^[^ ]/ { if (n++) printf "|"; next } /^$/ { print ""; n = 0; next } { printf "%s", $0 }'
}

fixture_dwz()
{
    cp "$work/base" one
    duo two gcc -Os -g
    dwz one -o packed
    differ "dwz" packed one
    cp one one.m
    cp two two.m
    dwz -m common.debug one.m two.m
    [ -s common.debug ] || failed "dwz -m made no common file"
    differ "dwz -m" one.m one
    differ "dwz -m, the other" two.m two
    rm common.debug # S9: entries that cannot be named are left out, the others are as before
    "$work/chains" -p "$addresses" one.m >addresses
    "$work/chains" -v one <addresses | one_line >full
    "$work/chains" -v one.m <addresses | one_line >alone
    paste -d'\n' full alone | awk '
        NR % 2 { whole = $0; next }
        {
            n = split(whole, a, "|")
            m = split($0, b, "|")
            for (i = k = 1; i <= n && k <= m; i++)
                if (a[i] == b[k])
                    k++
            bad += k <= m || a[n] != b[m] || m < 1
            less += m < n
        }
        END { exit bad > 0 || less == 0 }' || failed "dwz -m without the common file: other entries"
    "$work/chains" -v one.m <addresses >ours
    ! grep -q '(anonymous namespace)::(anonymous namespace)' ours || failed "dwz -m: scopes without a name are not unnamed"
    "$work/chains" one.m <<<"$(address_of one.m main)" >answer
    [ "$(head -n 1 answer)" = main ] || failed "dwz -m without the common file: main is $(head -n 1 answer)"
}

fixture_stripped()
{
    local id
    cp "$work/base" program
    objcopy --only-keep-debug program program.debug
    objcopy -S --add-gnu-debuglink=program.debug program stripped
    differ "debug link" stripped program
    id=$(readelf -n program | sed -n 's/.*Build ID: //p')
    mkdir -p "store/.build-id/${id:0:2}"
    mv program.debug "store/.build-id/${id:0:2}/${id:2}.debug"
    differ "debug file by build id" stripped program --debug-dir "$PWD/store"
    # clang writes no .debug_aranges (S18), and lld lays files out otherwise
    duo other clang -O2 -g -fuse-ld=lld -Wl,--build-id
    ! readelf -SW other | grep -q debug_aranges || failed "clang wrote .debug_aranges"
    objcopy --only-keep-debug --compress-debug-sections other other.debug
    objcopy -S --add-gnu-debuglink=other.debug other other_stripped
    differ "debug link, lld, compressed" other_stripped other
}

fixture_compressed()
{
    local way
    cp "$work/base" program
    for way in zlib zlib-gnu zstd; do # S19
        objcopy --compress-debug-sections=$way program packed || {
            [ $way = zstd ] || return 1
            continue
        }
        case "$way ${SYM_LIBS:-}" in
        'zstd '*-lzstd*) ;;
        'zstd '*) continue ;; # not compiled in
        esac
        cmp -s program packed && failed "$way: not compressed"
        differ "$way" packed program
    done
}

# code_sections FILE: NAME ADDRESS OFFSET SIZE a line, decimal
code_sections()
{
    local name address offset size
    readelf -SW "$1" | sed -n 's/^ *\[ *[0-9]*\] \([^ ]*\)  *PROGBITS  *\([0-9a-f ]*\) *AXG* .*/\1 \2/p' |
        while read -r name address offset size _; do
            echo "$name $((16#$address)) $((16#$offset)) $((16#$size))"
        done
}

# Addresses of a relocatable file are file offsets. They are compared with those of a program that is linked from it, so
# that each section has addresses of its own there.
relocatable() # LABEL COMPILER OPTION...
{
    local label=$1 compiler=$2
    shift 2
    "$compiler" "$@" -DNO_MAIN -Dopaque=opaque_c -c "$sources/pieces.c" -o c.o
    "$compiler" -std=c++17 "$@" -DENGINE_ALONE -c "$sources/engine.cc" -o cc.o
    ld -r cc.o c.o -o module.o
    code_sections module.o >parts
    {
        echo 'SECTIONS { . = 0x400000;'
        while read -r name _; do
            echo ". = ALIGN(0x1000); $name : { *($name) }"
        done <parts
        echo '}'
    } >script
    ld -T script -e 0 --unresolved-symbols=ignore-all --no-warn-rwx-segments module.o -o linked
    code_sections linked >linked_parts
    "$work/chains" -p "$addresses" linked >addresses
    while read -r address; do
        echo $((address))
    done <addresses | awk '
        FILENAME == "parts" { offset[$1] = $3; next }
        FILENAME == "linked_parts" { name[++n] = $1; start[n] = $2; size[n] = $4; next }
        {
            for (i = 1; i <= n; i++)
                if ($1 >= start[i] && $1 < start[i] + size[i])
                    printf "0x%x\n", $1 - start[i] + offset[name[i]]
        }' parts linked_parts - >moved
    differ "relocatable, $label" module.o linked
}
fixture_relocatable() { relocatable "gcc" gcc -O2 -g; }
fixture_relocatable_clang() { relocatable "clang" clang -O2 -g -gdwarf-4; }
fixture_relocatable_sections() { relocatable "gcc, sections" gcc -O2 -gdwarf-4 -ffunction-sections; }

fixture_comparison_fails() # so that a difference is seen
{
    cp "$work/base" program
    differ equal program >counts
    awk '/^  Line: / && ++n % 1000 == 7 { print "  Line: 1"; next } { print }' ours >wrong
    ! "$work/compare_chains" wrong symbols addresses theirs wrong >said || failed "other lines were not seen"
    awk '/^[^ ]/ && ++n % 1000 == 7 { print "wrong_name"; next } { print }' ours >wrong
    ! "$work/compare_chains" wrong symbols addresses theirs wrong >said || failed "other names were not seen"
    awk '/^[^ ]/ && ++n % 1000 == 7 { print "one_more"; print "  Line: 0" } { print }' ours >wrong
    ! "$work/compare_chains" wrong symbols addresses theirs wrong >said || failed "other depths were not seen"
}

ordinary="stl_gcc rust gcc_64bit_v5 clang_Os_v2 gcc_O0_v3 types_gcc_v4 lto_gcc lto_clang split_gcc_v4 split_clang_v5 dwz stripped
compressed relocatable c assembly big_endian inlined_constructor dead_gcc_bfd dead_clang_lld folded comparison_fails"
if [ -n "${DWARF_ONLY:-}" ]; then
    names=$DWARF_ONLY
elif [ "${DWARF_FIXTURES:-}" = all ]; then
    names=$(compgen -A function fixture_ | sed 's/^fixture_//')
elif [ -n "${SANITIZE_FLAGS:-}" ]; then
    addresses=2000
    names="gcc_64bit_v5 types_gcc_v4 split_clang_v5 dwz assembly relocatable"
else
    names=$ordinary
fi
duo base gcc -O2 -g
# shellcheck disable=SC2086 # a list of words
run_fixtures $names
