#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Compares the stubs that libsym finds with two other opinions, for the layouts of several linkers and machines:
#   labels  where bfd sees stubs (objdump's `<sin@plt>:`): the first, the middle and the last byte of each
#   slots   what the disassembly and readelf's relocations say, also where bfd has no labels: every jump through
#           a slot, every pushed relocation number, every header
# With sanitizers the same files are read, but what is found is not compared: it is what a plain build finds.
set -u
. "$(dirname "$0")/_libsym.sh"
needs objdump readelf nm strip awk gcc g++
with_libsym stubs stubs.c

# ---- sources ----

cat >prog.cc <<'EOF'
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <new>
int main(int argc, char **)
{
    void *p = malloc(argc);
    void *q = operator new(argc);
    printf("%f %p %p\n", sin(argc) + cos(argc), p, q);
    void (*volatile release)(void *) = free; // with the call, one of .plt.got
    free(p);
    release(nullptr);
    operator delete(q);
    return 0;
}
EOF
sed 's/int main(int argc, char \*\*)/extern "C" int run(int argc)/' prog.cc >lib.cc
# The same in C without headers, for machines that have none installed.
cat >prog.c <<'EOF'
double sin(double), cos(double);
void *malloc(unsigned long), free(void *);
int printf(const char *, ...);
int run(int argc)
{
    void (*volatile release)(void *) = free;
    void *p = malloc(argc);
    printf("%f %p\n", sin(argc) + cos(argc), p);
    free(p);
    release(0);
    return 0;
}
EOF
cat >start.c <<'EOF'
int run(int);
void _start(void) { run(1); for (;;); }
EOF
cat >needed.c <<'EOF'
double sin(double x) { return x; }
double cos(double x) { return x; }
void *malloc(unsigned long n) { return (void *)n; }
void free(void *p) { (void)p; }
int printf(const char *f, ...) { return f != 0; }
EOF
# A slot that a resolver of the file itself fills; the function has the resolver's address.
resolver='choose|by_ifunc'
cat >ifunc.c <<'EOF'
static int chosen(int x) { return x; }
static int (*choose(void))(int) { return chosen; }
int by_ifunc(int x) __attribute__((ifunc("choose"), visibility("hidden")));
int call_ifunc(int x) { return by_ifunc(x) + 1; }
EOF
cat >call.c <<'EOF'
int call_ifunc(int);
int main(void) { return call_ifunc(1); }
EOF

# ---- comparing ----

common='
function hex(s,   i, n) {
    n = 0
    s = tolower(s)
    sub(/^0x/, "", s)
    for (i = 1; i <= length(s); i++)
        n = n * 16 + index("0123456789abcdef", substr(s, i, 1)) - 1
    return n
}
function tohex(n,   s, d) {
    s = ""
    do {
        d = n % 16
        s = substr("0123456789abcdef", d + 1, 1) s
        n = (n - d) / 16
    } while (n > 0)
    return s
}
function signed_hex(s) { return s ~ /^-/ ? -hex(substr(s, 2)) : hex(s) }'

# Where each label begins, "ADDRESS NAME", and "@ADDRESS SIZE" for each instruction but padding.
labels_of='
/^[0-9a-f]+ <.*>:$/ { name = $2; sub(/^</, "", name); sub(/>:$/, "", name); print $1, name; next }
/^ *[0-9a-f]+:\t/ {
    split($0, field, "\t")
    address = field[1]
    gsub(/[ :]/, "", address)
    gsub(/ /, "", field[2])
    if (field[2] ~ /^(cc|0+)$/) next
    print "@" address, length(field[2]) / 2
}'

# "ADDRESS NAME" of the slots, and "#NUMBER ADDRESS" for the relocations of .plt.
relocations()
{
    awk '
        /^Relocation section/ { plt = $3 ~ /^.\.rela?\.plt.$/; number = 0; next }
        $3 ~ /^R_/ {
            if (plt) print "#" number++, $1
            if ($3 ~ /IRELATIV/) { if (NF >= 4) print $1, "*ABS*+0x" $4 }
            else if ($3 ~ /JUMP_SL|GLOB_DA/) { name = $5; sub(/@.*/, "", name); print $1, name }
        }' readelf
}

# "ADDRESS NAME slot" for the instructions of one section, from files `relocations` and `plain`.
expect_slots='
FILENAME == "relocations" && /^#/ { by_number[substr($1, 2)] = hex($2); next }
FILENAME == "relocations" { name[hex($1)] = $2 "@plt"; next }
function expect(at, slot) {
    if (!(slot in name)) return
    any = 1
    last = name[slot]
    print at, last, "slot"
}
!/^ *[0-9a-f]+:\t/ { next }
{
    at = $1
    sub(/:$/, "", at)
}
match($0, /# (0x)?[0-9a-f]+/) { # x86-64
    target = hex(substr($0, RSTART + 2, RLENGTH - 2))
    if ($2 == "push" && section == ".plt" && !any) header = at
    if ($2 ~ /jmp/ || $3 ~ /jmp/ || $0 ~ /%r11/) expect(at, target)
    next
}
$2 ~ /^(jmp|mov)$/ && match($0, /-?0x[0-9a-f]+\(%ebx\)/) { # i386
    target = substr($0, RSTART, RLENGTH - 6)
    sub(/^-0x/, "-", target)
    expect(at, hex(got) + signed_hex(target))
    next
}
($2 == "jmp" && match($0, /\*0x[0-9a-f]+$/)) || ($2 == "mov" && match($0, /0x[0-9a-f]+,%eax/)) {
    target = substr($0, RSTART, RLENGTH)
    gsub(/[*]|,%eax/, "", target)
    expect(at, hex(target))
    next
}
$2 == "push" && $3 ~ /^0x/ && section == ".plt" && !any { header = at; next }
$2 == "push" && $3 ~ /^\$0x/ {
    number = hex(substr($3, 4))
    if (machine == "i386") number /= 8
    # lld pushes 0 for what a resolver fills.
    if (last !~ /^\*ABS/ && number in by_number) expect(at, by_number[number])
}
$2 == "adrp" && $3 == "x16," { page = hex($4) }
$2 == "ldr" && $3 ~ /^[xw]17,/ && $4 ~ /^\[x16/ {
    offset = NF > 4 ? $5 : 0
    gsub(/[#\]]/, "", offset)
    expect(at, page + offset)
}
$2 == "stp" && $3 == "x16," && section == ".plt" { header = at }
END { if (any && header != "") print header, "header", "slot" }'

# "ADDRESS NAME label" for three bytes of each stub that has a label. A label reaches to the next one, the
# last to the last instruction that is no padding.
expect_labels='
function add(at) { print tohex(at), name, "label" }
function put(end) {
    if (name == "") return
    add(start); add(int((start + end) / 2)); add(end - 1)
}
/^@/ { last = hex(substr($1, 2)) + $2; next }
{
    put(hex($1))
    name = ""
    if ($2 !~ /@plt$/) next
    start = hex($1); name = $2
    sub(/@[^+@]*@plt$/, "@plt", name)
}
END { put(last) }'

judge='
FILENAME == "found" {
    start[n] = hex($1); end[n] = hex($2)
    name[n] = substr($0, index($0, $3))
    if (start[n] >= end[n] || (n > 0 && start[n] < end[n - 1])) { bad++; print "    not in order: " $0 }
    n++
    next
}
{
    at = hex($1)
    low = 0; high = n
    while (low < high) {
        middle = int((low + high) / 2)
        if (end[middle] <= at) low = middle + 1; else high = middle
    }
    is = low < n && start[low] <= at ? name[low] : "-"
    want = $2 == "header" ? "<plt header>" : $2
    count[$3]++
    used[low] = 1
    if (is != want) { bad++; if (bad <= 10) print "    " $1 ": " is " instead of " want " (" $3 ")" }
}
END {
    for (i = 0; i < n; i++) # nothing is invented
        if (!(i in used) && name[i] != "<plt header>") { bad++; print "    only here: " tohex(start[i]) " " name[i] }
    print count["label"] + 0, count["slot"] + 0, bad + 0 >"counts"
}'

# compare ROW FILE OBJDUMP LABELS SLOTS: at least so many of each must have been compared. LABELS is "-" where
# bfd takes stubs to be 16 bytes long and they are not.
compare()
{
    local row=$1 file=$2 objdump=$3 least_labels=$4 least_slots=$5
    local got machine labels slots bad section found
    ./stubs "$file" >found 2>errors || { fail "$row" "stubs: $(cat errors)"; return; }
    ./stubs -c "$file" | cmp -s - found || { fail "$row" "other names with an index"; return; }
    if [ -n "${SANITIZE_FLAGS:-}" ]; then
        mapfile -t found <found
        checked=$((checked + ${#found[@]}))
        # Each has one slot, or two with a header or a number.
        [ ${#found[@]} -ge $(((least_slots + 1) / 2)) ] || fail "$row" "${#found[@]} stubs"
        return
    fi
    readelf -hSdrW "$file" >readelf 2>/dev/null
    relocations >relocations
    got=$(awk '$2 == "(PLTGOT)" { print $3; exit }' readelf)
    machine=
    grep -q 'Machine:.*80386' readelf && machine=i386
    : >expected
    for section in .plt .plt.sec .plt.got .plt.bnd .iplt; do
        grep -q " \\$section  *PROGBITS" readelf || continue
        "$objdump" -d -w -j $section "$file" >listing
        cut -f 1,3- listing >plain
        awk "$labels_of" listing >labels
        [ "$least_labels" = - ] || awk "$common$expect_labels" labels >>expected
        awk "$common$expect_slots" section=$section got="$got" machine="$machine" relocations plain >>expected
    done
    awk "$common$judge" n=0 found expected >differences
    read -r labels slots bad <counts
    checked=$((checked + labels + slots))
    printf '%-56s %5d stubs, %5d addresses by labels, %5d by slots' "$row" "$(wc -l <found)" "$labels" "$slots"
    if [ "$bad" -gt 0 ] || [ "$labels" -lt "${least_labels/-/0}" ] || [ "$slots" -lt "$least_slots" ]; then
        echo ": FAIL, $bad differences"
        cat differences
        failures=$((failures + 1))
    else
        echo
    fi
}

fail()
{
    echo "FAIL $1: $2"
    failures=$((failures + 1))
}

skip()
{
    printf '%-56s skipped: %s\n' "$1" "$2"
}

# build OUTPUT COMPILER ARGS...
build()
{
    local out=$1
    shift
    "$@" -o "$out" >build.log 2>&1
}

# expect ROW FILE NAME...: a stub has each of the names (patterns).
expect()
{
    local row=$1 file=$2 name
    shift 2
    ./stubs -n "$file" >found
    for name in "$@"; do
        grep -qE " ($name)@plt$" found || fail "$row" "no $name"
    done
}

have_lld=
command -v ld.lld >/dev/null && have_lld=1

# layouts LABELS SLOTS ROW FLAGS: a program, also stripped, and a library.
layouts()
{
    local labels=$1 slots=$2 row=$3
    shift 3
    case "$*" in
    *lld*) [ -n "$have_lld" ] || { skip "$row" "no ld.lld"; return; } ;;
    *gold*) command -v ld.gold >/dev/null || { skip "$row" "no ld.gold"; return; } ;;
    esac
    if build prog g++ "$@" prog-cc.o; then
        compare "$row" prog objdump "$labels" "$slots"
        expect "$row" prog sin cos malloc free printf _Znwm
        ./stubs prog >before
        strip -o stripped prog
        ./stubs stripped | cmp -s - before || fail "$row" "other names when stripped"
    else
        fail "$row" "$(tail -n 1 build.log)"
    fi
    if build lib.so g++ "$@" -shared lib-cc.o; then
        compare "$row, shared" lib.so objdump "$labels" "$slots"
        expect "$row, shared" lib.so sin cos malloc free printf _Znwm
    else
        fail "$row, shared" "$(tail -n 1 build.log)"
    fi
}

protection=
[ "$(gcc -dumpmachine | cut -d- -f1)" = x86_64 ] && protection=-fcf-protection
# shellcheck disable=SC2086
for source in prog lib; do
    build $source-cc.o g++ -c -fPIC -fno-builtin $protection $source.cc || { cat build.log; exit 1; }
done

case $(gcc -dumpmachine) in
x86_64-*)
    layouts 18 13 "lazy" -Wl,-z,lazy
    layouts 18 13 "now" -Wl,-z,now
    layouts 18 13 "lazy ibtplt" -Wl,-z,lazy,-z,ibtplt
    layouts 18 13 "now ibtplt" -Wl,-z,now,-z,ibtplt
    layouts 18 13 "lazy gold" -fuse-ld=gold -Wl,-z,lazy
    layouts 18 13 "lazy lld" -fuse-ld=lld -Wl,-z,lazy
    layouts 18 6 "now lld" -fuse-ld=lld -Wl,-z,now
    layouts 18 13 "lld force-ibt" -fuse-ld=lld -Wl,-z,force-ibt
    layouts - 13 "lazy lld retpolineplt" -fuse-ld=lld -Wl,-z,lazy,-z,retpolineplt
    layouts - 6 "now lld retpolineplt" -fuse-ld=lld -Wl,-z,now,-z,retpolineplt

    if build prog g++ -fno-builtin -no-pie -fno-pie -Wl,-z,lazy prog.cc; then
        compare "lazy no-pie" prog objdump 18 13
    else
        fail "lazy no-pie" "$(tail -n 1 build.log)"
    fi
    if build prog g++ -fno-builtin -fno-plt -Wl,-z,now prog.cc; then
        compare "no-plt" prog objdump 0 0
    else
        fail "no-plt" "$(tail -n 1 build.log)"
    fi
    if build static gcc -static -O1 -fno-builtin -w ifunc.c call.c prog.c -lm; then
        compare "static" static objdump 0 10
        expect "static" static "$resolver" strlen
    else
        skip "static" "$(tail -n 1 build.log)"
    fi
    for linker in bfd lld; do
        [ $linker = lld ] && [ -z "$have_lld" ] && continue
        if build lib.so gcc -fuse-ld=$linker -shared -fPIC -O1 -fno-builtin -w ifunc.c prog.c; then
            compare "ifunc $linker" lib.so objdump 3 8
            expect "ifunc $linker" lib.so "$resolver"
        else
            fail "ifunc $linker" "$(tail -n 1 build.log)"
        fi
    done

    # Without a C library of their own: -m32 and -mx32 need none here.
    for machine in -m32 -mx32; do
        for flags in "" "-Wl,-z,now" "-Wl,-z,ibtplt -fcf-protection" "-fuse-ld=lld" \
            "-fuse-ld=lld -Wl,-z,lazy,-z,retpolineplt" "-fuse-ld=lld -Wl,-z,now,-z,retpolineplt"; do
            labels=15
            case $machine$flags in
            -mx32*lld*) continue ;; # lld has no such output
            *lld*) [ -n "$have_lld" ] || continue ;;
            esac
            case $flags in *retpoline*) labels=- ;; esac
            row="${machine#-} $flags"
            bare="$machine -O1 -w -ffreestanding -fno-builtin -nostdlib -fno-stack-protector"
            # shellcheck disable=SC2086
            if { [ -n "$flags" ] || build needed.so gcc $bare -shared -fPIC needed.c; } && build lib.so gcc $bare -shared -fPIC $flags prog.c; then
                compare "$row shared" lib.so objdump $labels 5
            else
                fail "$row shared" "$(tail -n 1 build.log)"
            fi
            # shellcheck disable=SC2086
            if build prog gcc $bare -no-pie -fno-pic $flags start.c prog.c needed.so; then
                compare "$row no-pie" prog objdump $labels 5
            else
                fail "$row no-pie" "$(tail -n 1 build.log)"
            fi
        done
    done
    ;;
aarch64-*)
    layouts 18 6 "lazy" -Wl,-z,lazy
    layouts 18 6 "lazy lld" -fuse-ld=lld -Wl,-z,lazy
    ;;
esac

# AArch64: 16 and 24 byte stubs, from another machine too.
if ! command -v aarch64-linux-gnu-gcc >/dev/null || ! command -v aarch64-linux-gnu-objdump >/dev/null; then
    skip "aarch64" "no aarch64-linux-gnu-gcc"
else
    for flags in "" "-mbranch-protection=standard -Wl,-z,force-bti" "-Wl,-z,pac-plt" \
        "-mbranch-protection=standard -Wl,-z,force-bti,-z,pac-plt" "-no-pie -fno-pie -Wl,-z,lazy" \
        "-no-pie -fno-pie -mbranch-protection=standard -Wl,-z,force-bti,-z,pac-plt"; do
        row="aarch64 $flags"
        # shellcheck disable=SC2086
        if build prog aarch64-linux-gnu-gcc -w -fno-builtin $flags -nostartfiles start.c prog.c -lm; then
            compare "$row" prog aarch64-linux-gnu-objdump 15 5
            expect "$row" prog sin cos malloc free printf
        else
            fail "$row" "$(tail -n 1 build.log)"
        fi
    done
    if build static aarch64-linux-gnu-gcc -static -O1 ifunc.c call.c; then
        compare "aarch64 static" static aarch64-linux-gnu-objdump 0 4
        expect "aarch64 static" static "$resolver"
    else
        fail "aarch64 static" "$(tail -n 1 build.log)"
    fi
    if build prog.o aarch64-linux-gnu-gcc -c -w -fPIC -fno-builtin prog.c && [ -n "$have_lld" ]; then
        for flags in "" "-z force-bti" "-z pac-plt" "-z force-bti -z pac-plt"; do
            labels=15
            [ "$flags" = "-z force-bti" ] && labels=-
            # shellcheck disable=SC2086
            if build lib.so ld.lld -shared $flags prog.o; then
                compare "aarch64 lld $flags" lib.so aarch64-linux-gnu-objdump $labels 5
            else
                fail "aarch64 lld $flags" "$(tail -n 1 build.log)"
            fi
        done
    else
        skip "aarch64 lld" "no ld.lld"
    fi
fi

# Libraries as they are installed.
patterns=('libc.so.6' 'libstdc++.so.6')
[ -n "${SANITIZE_FLAGS:-}" ] || patterns+=('libLLVM-*.so*' 'libclang-cpp.so*') # large, and no other layout
for pattern in "${patterns[@]}"; do
    for folder in /lib/x86_64-linux-gnu /usr/lib/x86_64-linux-gnu /lib/aarch64-linux-gnu /usr/lib/aarch64-linux-gnu \
        /usr/lib64; do
        for lib in "$folder"/$pattern; do
            [ -f "$lib" ] || continue
            compare "$(basename "$lib")" "$lib" objdump 3 3
            break 2
        done
    done
done

echo "$checked addresses compared, $failures failures"
[ "$checked" -gt 0 ] && [ "$failures" -eq 0 ]
