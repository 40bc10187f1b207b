#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Installs the build and uses it as others would: find_package and pkg-config, shared and static, C and C++.
# Programs of the components spool and record must build where there is neither elfutils nor liblzma, and must not load
# them.
set -eu

here=$SRC/tests/install
case "$CC" in
*clang*) cxx=clang++ ;;
*) cxx=g++ ;;
esac
# Sanitized libraries need sanitized programs.
# shellcheck disable=SC2206 # a list of options
flags=($SANITIZE_FLAGS)
warn=(-Wall -Wextra -Wpedantic -Werror)

say() { echo "== $*"; }
die() {
    echo "FAILED: $*"
    exit 1
}

say "install"
"$CMAKE" --install "$BUILD" --prefix "$PWD/prefix" >install.log || { cat install.log && exit 1; }
for page in "$SRC"/lib*/*.[35] "$SRC"/tools/*/*.1; do
    [ ! -e "$page" ] || [ -e "prefix/share/man/man${page##*.}/${page##*/}" ] || die "${page##*/} is not installed"
done
for tool in prefix/bin/*; do
    "$tool" --version >/dev/null || die "$tool --version"
    name=${tool##*/}
    "$tool" --completion=bash | cmp - "prefix/share/bash-completion/completions/$name" || die "completion of $name for bash"
    "$tool" --completion=zsh | cmp - "prefix/share/zsh/site-functions/_$name" || die "completion of $name for zsh"
done

# Another place, static libraries only: what links there is linked statically, and .pc files that find their files
# there do not depend on where they were installed first.
cp -R prefix moved
find moved -name 'lib*.so*' -delete
pc=$(cd "$(dirname "$(find prefix -name libspool.pc)")" && pwd)
moved_pc=$(cd "$(dirname "$(find moved -name libspool.pc)")" && pwd)
lib=${pc%/pkgconfig}

# The system's packages without those that only libsym needs.
mkdir no-elfutils
cp "$(pkg-config --variable=pcfiledir zlib)/zlib.pc" no-elfutils/
without_elfutils() { env -u PKG_CONFIG_PATH PKG_CONFIG_LIBDIR="$PWD/no-elfutils:${extra_pc:-}" "$@"; }

check_run() { # spool|record|sym PROGRAM [static]
    local expected output needed
    case $1 in
    spool) expected="libspool $VERSION: version 3, start 123 us" ;;
    record) expected="librecord $VERSION: 10 bytes, at most [0-9]* Hz" ;;
    sym) expected="spool::read\(int\)" ;;
    esac
    output=$("$2") || die "$2 exits with $?"
    # shellcheck disable=SC2053 # the right side is a pattern
    [[ $output == $expected ]] || die "$2 prints: $output"
    needed=$(ldd "$2")
    if [ "$1" != sym ] && grep -E 'libelf|libdw|liblzma' <<<"$needed"; then
        die "$2 loads what it does not need"
    fi
    case "${3:-shared}" in
    static) ! grep "lib$1\.so" <<<"$needed" || die "$2 is not static" ;;
    shared) grep -q "lib$1\.so\.1" <<<"$needed" || die "$2 does not load lib$1.so.1" ;;
    esac
}

for name in spool record sym; do
    say "find_package, component $name"
    wrap=
    [ $name = sym ] || wrap=without_elfutils
    $wrap "$CMAKE" -S "$here" -B "cmake-$name" -DCOMPONENT=$name -DCMAKE_PREFIX_PATH="$PWD/prefix" \
        -DCMAKE_C_COMPILER="$CC" -DCMAKE_C_FLAGS="${flags[*]}" >log 2>&1 &&
        "$CMAKE" --build "cmake-$name" >>log 2>&1 || { cat log && die "find_package, $name"; }
    check_run $name "cmake-$name/shared"
    check_run $name "cmake-$name/static" static
done
! grep -riE 'elf|lzma|zstd|deflate' "$lib"/cmake/spool/spool-{spool,record}-targets*.cmake ||
    die "the export set of component spool or record mentions elfutils or a library that unpacks"
# What the static libsym needs is said to users exactly when it was compiled in.
case "$SYM_LIBS" in
*-llzma*) in_pc="zlib, liblzma" in_cmake=0 ;;
*) in_pc="zlib" in_cmake=1 ;;
esac
case "$SYM_LIBS" in *-lzstd*) in_pc="$in_pc, libzstd" ;; esac
case "$SYM_LIBS" in *-ldeflate*) in_pc="$in_pc, libdeflate" ;; esac
grep -qx "Requires.private: $in_pc" "$pc/libsym.pc" || die "libsym.pc: $(grep Requires "$pc/libsym.pc")"
grep -qx "Requires.private: libspool, zlib" "$pc/librecord.pc" || die "librecord.pc: $(grep Requires "$pc/librecord.pc")"
rc=0
grep -q 'LibLZMA::LibLZMA' "$lib/cmake/spool/spool-sym-targets.cmake" || rc=1
[ $rc = $in_cmake ] || die "spool-sym-targets.cmake and the features of libsym differ"

if without_elfutils pkg-config --exists libelf; then
    die "libelf is still there: this test would prove nothing"
fi
compile() { # OUTPUT ARGUMENT...: as a person would, with pkg-config's words at the end
    local output=$1
    shift
    "$CC" -std=c11 "${warn[@]}" "${flags[@]}" -o "$output" "$@" || die "compiling $output"
}
for name in spool record sym; do
    say "pkg-config, lib$name"
    wrap="env PKG_CONFIG_PATH=$pc"
    [ $name = sym ] || wrap="without_elfutils"
    # shellcheck disable=SC2086 # words is a list of options
    {
        words=$(extra_pc=$pc $wrap pkg-config --cflags --libs lib$name) || die "pkg-config lib$name"
        compile "pc-$name-shared" "$here/use_$name.c" $words -Wl,-rpath,"$lib"
        wrap=${wrap//$pc/$moved_pc}
        words=$(extra_pc=$moved_pc $wrap pkg-config --static --cflags --libs lib$name) || die "pkg-config lib$name"
        compile "pc-$name-static" "$here/use_$name.c" $words
    }
    check_run $name "./pc-$name-shared"
    check_run $name "./pc-$name-static" static
done

# ---- more than one component, and those who ask for what is not there ----
say "refusals of find_package"
refused() { # ARGUMENTS MESSAGE: find_package(spool ARGUMENTS) fails and says so
    mkdir -p refused
    printf 'cmake_minimum_required(VERSION 3.20)\nproject(p LANGUAGES NONE)\nfind_package(spool %s)\n' "$1" \
        >refused/CMakeLists.txt
    if "$CMAKE" -S refused -B cmake-refused -DCMAKE_PREFIX_PATH="$PWD/prefix" >log 2>&1; then
        die "find_package(spool $1) succeeds"
    fi
    tr -s '[:space:]' ' ' <log | grep -qF "$2" || { cat log && die "find_package(spool $1) does not say: $2"; }
}
refused "1.0 REQUIRED COMPONENTS record nosuch" "spool has no component nosuch here, but spool, record and sym"
refused "2.0 REQUIRED" 'compatible with requested version "2.0"'
refused "1.1 REQUIRED COMPONENTS sym" "version: $VERSION"

say "examples where they are installed"
installed=$PWD/prefix/share/doc/spooltools/examples
check_examples() { # FOLDER
    local status=0 output
    output=$(cat "$FIXTURES/stackpulse/ladder/ladder-O2.spool" | "$1/live_top" -n 1) || die "$1/live_top exits with $?"
    [[ $output == "the end: 2"*" samples, "*" in all"$'\n'*"self  total  function"$'\n'*% ]] ||
        [[ $output == "the end: "*"% "* ]] || die "$1/live_top prints: $output"
    echo "100 10 _ZN5spool4readEi" >own_names
    output=$("$1/custom_symbolizer" -n own_names <<<"at 0x104") || die "$1/custom_symbolizer exits with $?"
    [ "$output" = $'at 0x104\n    spool::read(int)' ] || die "$1/custom_symbolizer prints: $output"
    output=$("$1/stack_histogram" -p 2147483647 2>&1) || status=$?
    [ $status = 1 ] && [[ $output == "stack_histogram: recording: "* ]] || die "$1/stack_histogram prints: $output"
}
"$CMAKE" -S "$installed" -B cmake-examples -DCMAKE_PREFIX_PATH="$PWD/prefix" -DCMAKE_C_COMPILER="$CC" \
    -DCMAKE_C_FLAGS="${flags[*]} ${warn[*]}" >log 2>&1 &&
    "$CMAKE" --build cmake-examples >>log 2>&1 || { cat log && die "examples by find_package"; }
check_examples ./cmake-examples
cp -R "$installed" made
PKG_CONFIG_PATH=$pc make -C made CC="$CC" CFLAGS="-std=c11 ${flags[*]} ${warn[*]}" LDFLAGS="-Wl,-rpath,$lib" >log 2>&1 ||
    { cat log && die "examples by make"; }
check_examples ./made

say "as a part of another project"
"$CMAKE" -S "$here/fetched" -B cmake-fetched -DSPOOLTOOLS="$SRC" -DCMAKE_C_COMPILER="$CC" >log 2>&1 &&
    "$CMAKE" --build cmake-fetched --target shared >>log 2>&1 || { cat log && die "a part of another project"; }
check_run spool cmake-fetched/shared

if ! command -v "$cxx" >/dev/null; then
    echo "no C++ compiler ($cxx); all of C passed"
    exit 77
fi
for name in spool record sym; do
    say "C++, lib$name"
    # shellcheck disable=SC2046
    "$cxx" -x c++ -std=c++11 "${warn[@]}" "${flags[@]}" -o "cxx-$name" "$here/use_$name.c" \
        $(PKG_CONFIG_PATH=$pc pkg-config --cflags --libs lib$name) -Wl,-rpath,"$lib" || die "C++, lib$name"
    check_run $name "./cxx-$name"
done
say "C++, examples"
mkdir cxx
for name in stack_histogram live_top custom_symbolizer; do
    # shellcheck disable=SC2046
    "$cxx" -x c++ -std=c++11 "${warn[@]}" "${flags[@]}" -o "cxx/$name" "$installed/$name.c" \
        $(PKG_CONFIG_PATH=$pc pkg-config --cflags --libs libspool librecord libsym) -Wl,-rpath,"$lib" || die "C++, $name"
done
check_examples ./cxx
say "C++, a program with record and sym by find_package"
"$CMAKE" -S "$here/cxx" -B cmake-cxx -DSOURCE="$installed/stack_histogram.c" -DCMAKE_PREFIX_PATH="$PWD/prefix" \
    -DCMAKE_CXX_COMPILER="$cxx" -DCMAKE_CXX_FLAGS="${flags[*]}" >log 2>&1 &&
    "$CMAKE" --build cmake-cxx >>log 2>&1 || { cat log && die "C++, record and sym"; }
for kind in shared static; do
    status=0
    cmake-cxx/$kind >log 2>&1 || status=$?
    [ $status = 2 ] && grep -q usage log || { cat log && die "C++, record and sym, $kind"; }
done
echo "all consumers work"
