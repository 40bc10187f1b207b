# SPDX-License-Identifier: MIT
# What the tests of DWARF share: the program `chains`, comparing what it says with what llvm-symbolizer says, and fixtures,
# which are built when they are needed: the sources are in tests/fixtures/dwarf. Sourced.
. "$(dirname "${BASH_SOURCE[0]}")/_libsym.sh"
needs gcc g++ clang clang++ ld.lld llvm-symbolizer nm readelf objcopy strip
sources=$SRC/tests/fixtures/dwarf
with_libsym chains chains.c
gcc -std=gnu11 -O1 -o compare_chains "$here/compare_chains.c" || exit 1
addresses=${DWARF_ADDRESSES:-10000} # of a fixture

failed() # WHY
{
    echo "FAIL $1"
    return 1
}

# ---- fixtures ----

# run_fixtures NAME...: runs the functions fixture_NAME, two at once, each in a folder of that name. What they print
# comes in the order of the names. Fails if one of them does.
run_fixtures()
{
    local name running=0 bad=0
    for name in "$@"; do
        mkdir "$work/$name"
        (
            cd "$work/$name" || exit 1
            bad=0
            set -E
            trap 'bad=1' ERR # a step that fails does not end it
            "fixture_$name"
            exit $bad
        ) >"$work/$name.out" 2>&1 &
        echo $! >"$work/$name.pid"
        running=$((running + 1))
        if [ "$running" -ge 2 ]; then
            wait -n
            running=$((running - 1))
        fi
    done
    for name in "$@"; do
        if wait "$(<"$work/$name.pid")"; then
            cat "$work/$name.out"
        else
            sed "s/^/$name: /" "$work/$name.out"
            bad=$((bad + 1))
        fi
        [ -n "${DWARF_KEEP:-}" ] || rm -rf "${work:?}/$name"
    done
    [ "$bad" -eq 0 ] || failed "$bad of $# fixtures"
}

# duo OUTPUT COMPILER OPTION...: a program of two units, C++ and C. COMPILER is gcc or clang.
duo()
{
    local output=$1 compiler=$2 plus=g++
    shift 2
    [ "$compiler" = gcc ] || plus=clang++
    "$compiler" "$@" -DNO_MAIN -Dopaque=opaque_c -c "$sources/pieces.c" -o "$output.c.o"
    "$plus" -std=c++17 "$@" -DENGINE_ALONE "$sources/engine.cc" "$output.c.o" -o "$output"
}

# ---- comparing ----

symbolizer() # FILE <addresses
{
    llvm-symbolizer --obj="$1" --output-style=LLVM --inlines --functions=linkage --no-demangle --verbose
}

# differ LABEL FILE [TWIN [OPTION]...]: compares the answers about FILE with those of llvm-symbolizer about TWIN, which
# has the same code and debug information that it can read. Options are those of chains. A file `moved` has the addresses
# in FILE, if they are not those in TWIN.
differ()
{
    local label=$1 file=$2 twin=${3:-$2} bad=0
    shift 2
    [ $# -eq 0 ] || shift
    if [ -s moved ]; then
        cp moved our_addresses
    else
        "$work/chains" -p "$addresses" "$twin" >addresses
        cp addresses our_addresses
    fi
    symbolizer "$twin" <addresses >theirs 2>their_errors || failed "llvm-symbolizer $label: $(<their_errors)"
    # Once more one by one and otherwise for the plain build alone: it takes long under sanitizers.
    if [ -n "${SANITIZE_FLAGS:-}" ]; then
        "$work/chains" -v "$@" "$file" <our_addresses >ours || bad=1
    else
        "$work/chains" -v -c "$@" "$file" <our_addresses >ours || bad=1
    fi
    nm -aS "$twin" >symbols
    "$work/compare_chains" "$label" symbols addresses theirs ours || bad=1
    return $bad
}

# same LABEL ONE OTHER: the library says the same about two files with the same code
same()
{
    "$work/chains" -p "$addresses" "$2" >addresses
    "$work/chains" -v "$2" <addresses >first
    "$work/chains" -v "$3" <addresses >second
    cmp -s first second || {
        diff first second | head -n 20
        failed "$1: other answers"
    }
}

# address_of FILE SYMBOL: hexadecimal
address_of()
{
    nm "$1" | awk -v name="$2" '$3 == name { print "0x" $1; exit }'
}
