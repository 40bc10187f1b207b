#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Packs the build with cpack, reads the Debian packages, and installs, uses and removes them: by dpkg in a copy of this
# system that nobody else sees, where mounting one is allowed, else unpacked into a folder.
set -eu

say() { echo "== $*"; }
die() {
    echo "FAILED: $*"
    exit 1
}
command -v dpkg-shlibdeps >/dev/null || {
    echo "no dpkg-shlibdeps (Debian: dpkg-dev)"
    exit 77
}
cache() { sed -n "s/^$1:[A-Z]*=//p" "$BUILD/CMakeCache.txt"; }
lib=usr/$(cache CMAKE_INSTALL_LIBDIR)
arch=$(dpkg --print-architecture)
here=$SRC/tests/install
doc=usr/share/doc

say "pack"
# Of what is made the modes do not depend on the user's; xz takes longer than the rest of the test.
(umask 077 && cd "$BUILD" && "${CMAKE%cmake}cpack" -G DEB -B "$OLDPWD/debs" -D CPACK_DEBIAN_COMPRESSION_TYPE=none) \
    >cpack.log 2>&1 || { cat cpack.log && die "cpack"; }
! grep -i warning cpack.log || die "cpack warns"
debs=$(cd debs && printf '%s ' *.deb)
expected=
for package in librecord1 libspool1 libspooltools-dev libsym1 spooltools; do
    expected="$expected${package}_${VERSION}_$arch.deb "
done
[ "$debs" = "$expected" ] || die "packages: $debs"

say "files"
"$CMAKE" --install "$BUILD" --prefix "$PWD/plain/usr" >install.log || { cat install.log && die "install"; }
mkdir all
for package in librecord1 libspool1 libspooltools-dev libsym1 spooltools; do
    deb=debs/${package}_${VERSION}_$arch.deb
    dpkg-deb -c "$deb" >"$package.list"
    dpkg-deb -x "$deb" all
    dpkg-deb -e "$deb" "$package.control"
    # Folders and programs may be entered and run by all, nothing be changed but by root.
    ! grep -vE '^(drwxr-xr-x|-rw-r--r--|lrwxrwxrwx) root/root |^-rwxr-xr-x root/root .* \./usr/bin/' "$package.list" ||
        die "$package: modes"
    sed -E 's/^([^ ]+ +){5}\.\///; s/ -> .*//; /\/$/d; /^$/d' "$package.list" | sort >"$package.files"
    for file in changelog.gz copyright; do
        grep -qx "$doc/$package/$file" "$package.files" || die "$package has no $file"
    done
    gzip -t "all/$doc/$package/changelog.gz"
    (cd all && md5sum --quiet -c "../$package.control/md5sums") || die "$package: md5sums"
done
# What is installed is in exactly one package, manual pages packed, and what else is in a package is its documents.
sort ./*.files >packed
uniq -d packed >twice
[ ! -s twice ] || die "in two packages: $(cat twice)"
(cd plain && find usr ! -type d) | sed -E 's,^(usr/share/man/.*),\1.gz,' | sort >installed
grep -vE "^$doc/[^/]+/(changelog\.gz|copyright)\$" packed | diff installed - || die "installed and packed files differ"

has() { # PACKAGE PATTERN...: files the package has; of these patterns no other one has any
    local package=$1 pattern
    shift
    for pattern in "$@"; do
        grep -qE "^$pattern\$" "$package.files" || die "$package has no $pattern"
        [ "$(grep -lE "^$pattern\$" ./*.files)" = "./$package.files" ] || die "$pattern is not in $package only"
    done
}
for name in spool record sym; do
    has "lib${name}1" "$lib/lib$name\.so\.1" "$lib/lib$name\.so\.$VERSION"
    has libspooltools-dev "usr/include/spool/$name\.h" "$lib/lib$name\.a" "$lib/lib$name\.so" \
        "$lib/pkgconfig/lib$name\.pc" "$lib/cmake/spool/spool-$name-targets\.cmake" "usr/share/man/man3/lib$name\.3\.gz"
    printf 'lib%s 1 lib%s1 (>= %s)\n' $name $name "$VERSION" |
        cmp - "lib${name}1.control/shlibs" || die "shlibs of lib$name"
    echo "activate-noawait ldconfig" | cmp - "lib${name}1.control/triggers" || die "triggers of lib$name"
    readelf -d "all/$lib/lib$name.so.1" | grep -q "SONAME.*\[lib$name\.so\.1\]" || die "soname of lib$name"
    ! readelf -SW "all/$lib/lib$name.so.1" "all/$lib/lib$name.a" | grep -E ' \.debug_info' ||
        die "lib$name has debug information"
done
has libspooltools-dev "$lib/cmake/spool/spool-config\.cmake"
has spooltools usr/bin/.* usr/share/man/man1/.* usr/share/man/man5/spool\.5\.gz
for tool in "$SRC"/tools/*/main.c; do
    tool=$(basename "$(dirname "$tool")")
    has spooltools "usr/bin/$tool" "usr/share/man/man1/$tool\.1\.gz"
    ! readelf -SW "all/usr/bin/$tool" | grep -E ' \.(debug_info|symtab)' || die "$tool is not stripped"
done
[ -z "$(find . -path './*.control/*' -name 'p[or][se]*')" ] || die "a package runs scripts"

say "fields"
field() { sed -n "s/^$2: //p" "$1.control/control"; }
field_is() { # PACKAGE FIELD PATTERN
    [[ "$(field "$1" "$2")" =~ ^$3$ ]] || die "$1: $2: $(field "$1" "$2")"
}
needs() { # PACKAGE PACKAGE...: on nothing else does it depend
    local package=$1 got
    shift
    got=$(field "$package" Depends | sed 's/, /\n/g' | sed 's/ .*//; s/t64$//; /^libc6$/d' | sort | tr '\n' ' ')
    [ "$got" = "$(printf '%s\n' "$@" | sort | tr '\n' ' ')" ] || die "$package depends on $got"
}
linked=(zlib1g) with=(libc6-dev libiberty-dev zlib1g-dev)
case "$SYM_LIBS" in *-llzma*) linked+=(liblzma5) with+=(liblzma-dev) ;; esac
case "$SYM_LIBS" in *-lzstd*) linked+=(libzstd1) with+=(libzstd-dev) ;; esac
case "$SYM_LIBS" in *-ldeflate*) linked+=(libdeflate0) with+=(libdeflate-dev) ;; esac
needs libspool1 zlib1g
needs librecord1 zlib1g libspool1
needs libsym1 "${linked[@]}"
needs spooltools "${linked[@]}" libnettle8 libprotobuf-c1
needs libspooltools-dev "${with[@]}" libspool1 librecord1 libsym1
[[ $(field librecord1 Depends) == *"libspool1 (>= $VERSION)"* ]] || die "librecord1 takes any libspool1"
[[ $(field libspooltools-dev Depends) == *"libsym1 (= $VERSION)"* ]] || die "libspooltools-dev takes any libsym1"
suggests=
[ "$(cache SPOOL_WITH_DEBUGINFOD)" != ON ] || suggests=libdebuginfod1
field_is libsym1 Suggests "$suggests"
field_is spooltools Suggests "$suggests"
for package in *.control; do
    package=${package%.control}
    case $package in *-dev) section=libdevel ;; lib*) section=libs ;; *) section=devel ;; esac
    field_is "$package" Section $section
    field_is "$package" Architecture "$arch"
    field_is "$package" Version "$VERSION"
    field_is "$package" Source spooltools
    field_is "$package" Maintainer '.+ <.+@.+>'
    field_is "$package" Description '.{20,80}'
    [ "$(sed -n '/^Description/,/^[A-Z]/s/^ //p' "$package.control/control" | wc -w)" -gt 15 ] ||
        die "$package: a short description"
done
[ "$(sed -n 's/^Description: //p' ./*.control/control | sort | uniq -d)" = "" ] || die "packages are described alike"
parsed=$(zcat "all/$doc/spooltools/changelog.gz" | dpkg-parsechangelog -l- -S Version 2>&1)
[ "$parsed" = "$VERSION" ] || die "changelog: $parsed"

say "use"
cat >use.sh <<'USE'
set -eu
root=$1 # of the packages; nothing where they are installed
for tool in "$root"/usr/bin/spool*; do
    [ "$("$tool" --version | head -n 1)" = "${tool##*/} $VERSION" ] || { echo "$tool: $("$tool" --version)" && exit 1; }
done
if [ -z "$root" ]; then
    ldconfig -p >cached
    for name in spool record sym; do
        grep -qE "lib$name\.so\.1 .*=> (/usr)?/${lib#usr/}/lib$name\.so\.1" cached ||
            { echo "ldconfig does not know lib$name" && exit 1; }
        man -w 3 "lib$name" >/dev/null
    done
    man -w spoolcat >/dev/null
    man -w 5 spool >/dev/null
else
    export PKG_CONFIG_SYSROOT_DIR=$root LD_LIBRARY_PATH=$root/$lib
fi
export PKG_CONFIG_PATH=$root/$lib/pkgconfig
for name in spool record sym; do
    "$CC" -o "use_$name" "$here/use_$name.c" $(pkg-config --cflags --libs "lib$name")
    "./use_$name" >/dev/null
    ldd "./use_$name" | grep -q "lib$name\.so\.1 => $root/.*lib$name\.so\.1" || { ldd "./use_$name" && exit 1; }
done
spool=$FIXTURES/stackpulse/ladder/ladder-O2.spool
"$root/usr/bin/spool2folded" --sysroot "$FIXTURES/sysroot" "$spool" 2>/dev/null | grep -q 'worker;.*mix'
"$root/usr/bin/spool2pprof" --sysroot "$FIXTURES/sysroot" -o ladder.pb.gz "$spool" 2>/dev/null
gzip -t ladder.pb.gz
USE
export lib here VERSION CC FIXTURES SRC

cat >installed.sh <<'INSTALLED'
# In a mount namespace: what is written goes to a file system in memory over this system's.
set -eu
fail() {
    echo "$*"
    exit 1
}
mkdir memory
mount -t tmpfs memory memory || exit 77
mkdir memory/upper memory/work memory/root
mount -t overlay overlay -o "lowerdir=/,upperdir=$PWD/memory/upper,workdir=$PWD/memory/work" memory/root || exit 77
mkdir -p memory/root/tmp/packages "memory/root$SRC"
mount --bind "$SRC" "memory/root$SRC"
mount --rbind /dev memory/root/dev
mount --rbind /proc memory/root/proc
cp debs/*.deb use.sh memory/root/tmp/packages/
rm -f memory/root/var/lib/man-db/auto-update # its index takes longer than all else
in_root() { chroot memory/root env -C /tmp/packages "$@"; }
known() { in_root dpkg-query -W -f '${Package} ${Status}\n' | sort; }

known >before
in_root sh -c 'dpkg -i *.deb' >dpkg.log 2>&1 || fail "$(cat dpkg.log)"
in_root bash use.sh ""
in_root dpkg --purge libspooltools-dev librecord1 libspool1 libsym1 spooltools >dpkg.log 2>&1 || fail "$(cat dpkg.log)"
if grep -i warning dpkg.log; then exit 1; fi
known | diff before -
in_root ldconfig -p >cached
if grep -E "lib(spool|record|sym)\.so\.1" cached; then fail "ldconfig was not run"; fi
# Nothing stays but notes of dpkg and of the dynamic linker. A character device marks what was removed.
for path in $(cat packed) usr/include/spool "$lib/cmake/spool" usr/share/doc/{libspool1,libspooltools-dev}; do
    [ ! -e "memory/root/$path" ] || fail "left over: $path"
done
left=$(cd memory/upper && find ./usr ./etc ./var ! -type d ! -type c ! -path './var/lib/dpkg/*' ! -path './var/log/*' \
    ! -path './var/cache/*' ! -path ./etc/ld.so.cache)
[ -z "$left" ] || fail "left over: $left"
INSTALLED
rc=77
if [ "$(id -u)" = 0 ] && unshare -m true && ! dpkg -s libspool1 >/dev/null 2>&1; then
    rc=0
    unshare -m --propagation private bash installed.sh || rc=$?
    [ $rc = 0 ] || [ $rc = 77 ] || die "installed by dpkg"
fi
if [ $rc = 77 ]; then
    echo "no system to install into: unpacked only"
    bash use.sh "$PWD/all" || die "unpacked"
fi

say "Debian's folders"
# A build for /usr has its libraries in the folder of the architecture, where they need no run path.
"$CMAKE" -S "$SRC" -B usr -DCMAKE_INSTALL_PREFIX=/usr -DSPOOL_BUILD_TESTS=OFF -DSPOOL_BUILD_TOOLS=OFF \
    -DCMAKE_C_COMPILER="$CC" >configure.log 2>&1 || { cat configure.log && die "cmake"; }
triplet=$("$CC" -print-multiarch)
grep -q "/lib/$triplet/librecord.so" usr/librecord/cmake_install.cmake || die "not in the folder of the architecture"
! grep -q 'ORIGIN' usr/librecord/cmake_install.cmake || die "a run path"
# Without tools there is no package of them, and spool(5) goes with the libraries.
! grep -E '^set\(CPACK_COMPONENTS_ALL.*[";]spooltools[";]' usr/CPackConfig.cmake ||
    die "tools that are not built are packed"
grep -A3 'COMPONENT.*libspooltools-dev' usr/libspool/cmake_install.cmake | grep -q 'spool\.5' ||
    die "spool(5) is in no package"
echo "packages work"
