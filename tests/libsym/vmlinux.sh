#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Kernel names from vmlinux: which file is used, how far the kernel was moved, what kallsyms and the files of modules add.
# The kernel is made up: 8,000 functions between the ways in, some C with inlined functions, laid out as on x86-64.
set -eu
. "$(dirname "$0")/_libsym.sh"
needs gcc ld objcopy strip nm readelf addr2line awk
[ "$(gcc -dumpmachine | cut -d- -f1)" = x86_64 ] || skip_test "the kernel is one of x86-64"
with_libsym ask ask_kernel.c
failed=0
fail() {
    echo "FAILED: $*"
    failed=1
}
release=6.1.0-test
shift_hex=1c000000

# ---- a kernel ----

cat >kernel.c <<'END'
#define NOINLINE __attribute__((noinline, used))
volatile int sink;
static inline __attribute__((always_inline)) void innermost(int x)
{
    sink = x * 3;
    sink = x / 7;
}
static inline __attribute__((always_inline)) void middle(int x)
{
    sink = 1;
    innermost(x + sink);
    sink = 2;
}
NOINLINE void outer(int x)
{
    sink = 0;
    middle(x);
    middle(x + 1);
    sink = 4;
}
NOINLINE long sys_read(long x)
{
    return sink + x;
}
long SyS_read(long x) __attribute__((alias("sys_read")));
long do_it_all(long x) __attribute__((alias("do_it")));
NOINLINE long do_it(long x)
{
    return sink - x;
}
__attribute__((section(".init.text"), used)) void start_kernel(void)
{
    outer(sink);
}
END
awk 'BEGIN {
    srand(7)
    split("entry_SYSCALL_64 entry_SYSCALL_64_after_hwframe asm_exc_page_fault asm_sysvec_apic_timer_interrupt ret_from_fork_asm", near, " ")
    split("do_syscall_64 exc_page_fault x64_sys_call sysvec_apic_timer_interrupt ret_from_fork kthread", far, " ")
    print ".section .text.head,\"ax\""
    for (i = 0; i < 8000; i++) {
        name = i < 5 ? near[i + 1] : i % 1300 == 105 && i < 7800 ? far[int(i / 1300) + 1] : i % 80 == 7 ? "__x64_sys_" i : "f" i
        size = i < 5 ? 48 : i % 80 == 7 || i % 1300 == 105 ? 64 + 16 * int(rand() * 6) : 16 * (1 + int(rand() * 50))
        printf ".globl %s\n.type %s,@function\n%s: .skip %d,0x90\n.size %s,%d\n", name, name, name, size, name, size
    }
    print "unsized: .skip 64,0x90"
}' >functions.s
cat >kernel.ld <<'END'
PHDRS { text PT_LOAD FLAGS(5); data PT_LOAD FLAGS(6); init PT_LOAD FLAGS(7); note PT_NOTE; }
SECTIONS {
    . = 0xffffffff81000000;
    .text : { _text = .; _stext = .; *(.text.head) *(.text .text.*) . = ALIGN(4096); _etext = .; } :text
    .note.gnu.build-id : { *(.note.gnu.build-id) } :text :note
    .rodata : { *(.rodata .rodata.*) *(.eh_frame) } :text
    . = ALIGN(0x200000);
    .data : { *(.data .data.*) *(.bss .bss.*) _edata = .; } :data
    . = ALIGN(4096);
    .init.text : { _sinittext = .; *(.init.text) _einittext = .; } :init
    _end = .;
}
END
gcc -c -O2 -g -ffreestanding -fno-pic -mcmodel=kernel -mno-red-zone -fno-stack-protector -fcf-protection=none \
    -fno-asynchronous-unwind-tables -o kernel.o kernel.c
gcc -c -o functions.o functions.s
link_kernel() { # OUTPUT [LD OPTION]...
    local output=$1
    shift
    ld -static -z noexecstack -T kernel.ld "$@" -o "$output" functions.o kernel.o 2>ld.said || {
        cat ld.said
        exit 1
    }
}
build_id() { # FILE
    readelf -n "$1" | awk '/Build ID/ { print $3 }'
}
link_kernel vmlinux --build-id=sha1
id=$(build_id vmlinux)
echo 'int another;' >more.c
link_kernel other --build-id=0x0123456789abcdef0123456789abcdef01234567
nm vmlinux | sort >symbols

add() { # HEX HEX: their sum, 64 bits
    printf '%016x' $((0x$1 + 0x$2))
}
symbol() { # NAME [SHIFT]: its address in memory
    local value
    value=$(awk -v n="$1" '$3 == n { print $1; exit }' symbols)
    [ -n "$value" ] || { echo "no symbol $1" >&2 && exit 1; }
    add "$value" "${2-$shift_hex}"
}
moved() { # the kernel's kallsyms; without most functions they are as good
    local address type name
    awk '$2 ~ /[tTwW]/ && $3 !~ /^f[0-9]/ { print $1, $2, $3 }' symbols | while read -r address type name; do
        printf '%016x %s %s\n' $((0x$address + 0x$shift_hex)) "$type" "$name"
    done
    echo "$(add "$(symbol unsized 0)" $(printf %x $((0x$shift_hex + 32)))) t closer"
}
moved >kallsyms
sed 's/^[0-9a-f]*/0000000000000000/' kallsyms >restricted

outer=$(symbol outer)
inside=$(add "$outer" 8)
read_at=$(add "$(symbol sys_read)" 1)
it=$(add "$(symbol do_it)" 1)

expect() { # WHAT PATTERN ASK-ARGUMENT...: some line of the answer is matched
    local what=$1 pattern=$2
    shift 2
    ./ask "$@" >said || fail "$what: exit $?"
    grep -Eq -- "$pattern" said || fail "$what: no $pattern in: $(<said)"
}
refuse() { # the same: none is
    local what=$1 pattern=$2
    shift 2
    ./ask "$@" >said || fail "$what: exit $?"
    ! grep -Eq -- "$pattern" said || fail "$what: $pattern in: $(<said)"
}

# ---- which file ----

recorded=(--release "$release" --build-id "$id" --kallsyms kallsyms)
expect "a named file with the recorded build id" '^[0-9a-f]+ outer\+0x8 vmlinux [^(]*$' \
    "${recorded[@]}" --vmlinux vmlinux "$inside"
expect "its detail" "^state kernel symbols are loaded: vmlinux: moved by 0x$shift_hex, by kallsyms\$" \
    "${recorded[@]}" --vmlinux vmlinux "$inside"
expect "one of another build" ' outer\+0x8 kallsyms ' "${recorded[@]}" --vmlinux other "$inside"
expect "what is said of it" "^state .*: other: it has the build id 0123.*, the recorded one is $id" \
    "${recorded[@]}" --vmlinux other "$inside"
expect "nothing was recorded" ' outer\+0x8 vmlinux .*\(unverified\)' --kallsyms kallsyms --vmlinux other "$inside"
expect "a file that is not there" '^warning /none: ' "${recorded[@]}" --vmlinux /none "$inside"
expect "the others count all the same" ' outer\+0x8 kallsyms ' "${recorded[@]}" --vmlinux /none "$inside"
expect "a file that is no ELF file" '^warning .*: not an ELF file' "${recorded[@]}" --vmlinux kallsyms "$inside"

mkdir -p root/boot root/lib/modules/$release/build root/usr/lib/debug/boot root/usr/lib/debug/.build-id/"${id:0:2}"
mkdir -p root/usr/lib/debug/lib/modules/$release mine/.build-id/"${id:0:2}"
for place in root/boot/vmlinux-$release root/lib/modules/$release/build/vmlinux root/usr/lib/debug/boot/vmlinux-$release \
    root/usr/lib/debug/lib/modules/$release/vmlinux root/usr/lib/debug/.build-id/"${id:0:2}/${id:2}.debug" \
    mine/vmlinux mine/.build-id/"${id:0:2}/${id:2}"; do
    cp vmlinux "$place"
    found=$place
    [ "${place%%/*}" = root ] && found=${place#root}
    expect "found as $place" "^state .*: $found: moved" --sysroot root --symbols mine "${recorded[@]}" "$inside"
    refuse "a release of another folder" "vmlinux" --sysroot root --release ../../etc --kallsyms kallsyms "$inside"
    refuse "without a build id only a named file counts" ' vmlinux ' --sysroot root --symbols mine --release $release \
        --kallsyms kallsyms "$inside"
    cp other "$place"
    refuse "another build as $place" ' vmlinux ' --sysroot root --symbols mine "${recorded[@]}" "$inside"
    rm "$place"
done

# A file without symbols or debug information goes with its debug file.
objcopy --only-keep-debug vmlinux root/usr/lib/debug/.build-id/"${id:0:2}/${id:2}.debug"
strip -o stripped vmlinux
expect "symbols of a debug file" ' outer\+0x8 vmlinux ' --sysroot root "${recorded[@]}" --vmlinux stripped "$inside"
expect "a debug file alone" ' outer\+0x8 vmlinux ' "${recorded[@]}" --sysroot root "$inside"
rm root/usr/lib/debug/.build-id/"${id:0:2}/${id:2}.debug"
expect "a stripped one alone" "^state .*: stripped: it has no symbol table" "${recorded[@]}" --vmlinux stripped "$inside"

# ---- which name ----

given=("${recorded[@]}" --vmlinux vmlinux)
expect "no wrapper of a system call" ' sys_read\+0x1 vmlinux ' "${given[@]}" "$read_at"
expect "the longer name" ' do_it_all\+0x1 vmlinux ' "${given[@]}" "$it"
expect "code of the start" ' start_kernel\+0x2 vmlinux ' "${given[@]}" "$(add "$(symbol start_kernel)" 2)"
expect "an unsized symbol" ' unsized\+0x10 vmlinux ' "${given[@]}" "$(add "$(symbol unsized)" 10)"
expect "does not hide a closer line" ' closer\+0x8 kallsyms ' "${given[@]}" "$(add "$(symbol unsized)" 28)"
expect "a BPF program over it" ' bpf_prog_x\+0x4 kallsyms ' "${given[@]}" --ksymbol "$outer" 10 bpf_prog_x "$(add "$outer" 4)"

# ---- the shift ----

text=$(symbol _text)
for name in '[kernel.kallsyms]_text' '[kernel.kallsyms]_stext' '[kernel]_text'; do
    for offset in "$text" 0; do # perf's way; another recorder's
        expect "by a range $name $offset" ' outer\+0x8 vmlinux ' --release $release --build-id "$id" --vmlinux vmlinux --whole \
            --range "$text" ffffffff9fffffff "$offset" "$name" "$inside"
        grep -q "by the recorded range" said || fail "by a range: $(<said)"
    done
done
refuse "an impossible range" ' vmlinux ' --release $release --build-id "$id" --vmlinux vmlinux --whole \
    --range "$(add "$text" 1000)" ffffffff9fffffff 0 '[kernel.kallsyms]_text' "$inside"
expect "data has no name" '^[0-9a-f]+ -\+0x0 address ' --release $release --build-id "$id" --vmlinux vmlinux --whole \
    --range "$text" ffffffff9fffffff "$text" '[kernel.kallsyms]_text' "$(symbol sink)"
alone=(--release $release --build-id "$id" --vmlinux vmlinux)
expect "nothing tells it" '^state .*: vmlinux: nothing tells how far the kernel was moved' "${alone[@]}" --whole "$inside"
expect "one address does not" '^[0-9a-f]+ -\+0x0 address ' "${alone[@]}" "$inside"
also=()
for name in entry_SYSCALL_64_after_hwframe do_syscall_64 x64_sys_call asm_exc_page_fault exc_page_fault \
    asm_sysvec_apic_timer_interrupt sysvec_apic_timer_interrupt ret_from_fork_asm ret_from_fork kthread \
    __x64_sys_87 __x64_sys_887 __x64_sys_1687 __x64_sys_2487 __x64_sys_6407 __x64_sys_7607 f100 f2000 f4000 f7000; do
    also+=(--also "$(add "$(symbol $name)" 7)")
done
expect "by sampled addresses" ' outer\+0x8 vmlinux ' "${alone[@]}" "${also[@]}" "$inside"
expect "and says so" "^state .*: vmlinux: moved by 0x$shift_hex, by the sampled addresses; modules have no names: " \
    "${alone[@]}" "${also[@]}" "$inside"
expect "with restricted kallsyms too" ' outer\+0x8 vmlinux ' "${alone[@]}" --kallsyms restricted "${also[@]}" "$inside"
expect "which are mentioned" 'every kernel address reads as 0' "${alone[@]}" --kallsyms restricted "${also[@]}" "$inside"
# Kallsyms of another kernel under a file that nothing vouches for: every function lies elsewhere.
awk '{ printf "%s%05x %s %s\n", substr($1, 1, 11), (NR * 7919) % 1048576, $2, $3 }' kallsyms >scrambled
expect "a file that contradicts kallsyms" 'do not lie as in kallsyms' --vmlinux vmlinux --kallsyms scrambled --whole "$inside"

# ---- chains and lines ----

# The chain of every address of a function as addr2line has it: "NAME FILE:LINE" innermost first.
chains() { # FILE SECTION FIRST SIZE
    local a
    for ((a = 0; a < $4; a++)); do
        printf '%x\n' $((0x$3 + a))
    done | addr2line -a -i -f -e "$1" ${2:+-j "$2"} | awk '
        /^0x/ { n++; next }
        !name { name = $0; next }
        { sub(/ \(discriminator.*/, ""); sub(/.*\//, ""); print n, name, $0; name = "" }'
}
# The same as libsym has it.
ours() { # FIRST SIZE ASK-ARGUMENT...
    local a address addresses=() first=$1 size=$2
    shift 2
    for ((a = 0; a < size; a++)); do
        printf -v address %x $((0x$first + a))
        addresses+=("$address")
    done
    ./ask "$@" "${addresses[@]}" | awk '
        /^state/ { exit }
        $1 != last { n++; last = $1 }
        { sub(/ \[[a-z_]*\]/, ""); sub(/\+0x[0-9a-f]*$/, "", $2); print n, $2, $4 }'
}
size=$((0x$(nm -S vmlinux | awk '$4 == "outer" { print $2 }')))
chains vmlinux "" "$(symbol outer 0)" $size >expected
ours "$outer" $size "${given[@]}" >got
grep -q ' innermost ' expected || fail "the kernel has no inlined functions"
cmp -s expected got || fail "chains of vmlinux: $(diff expected got | head -n 5)"
# Without inlined functions the line is the one in the physical function.
awk '$1 != last && last != "" { print line } { last = $1; line = $0 } END { print line }' expected >lines
ours "$outer" $size --no-inlines "${given[@]}" >got
cmp -s lines got || fail "lines of the physical function: $(diff lines got | head -n 5)"
refuse "no lines" 'kernel.c:[1-9].*vmlinux|outer.*kernel.c:[1-9]' --no-lines --no-inlines "${given[@]}" "$inside"
expect "DWARF of a debug file" 'outer\+0x8 vmlinux kernel.c:[1-9]' "${recorded[@]}" --vmlinux vmlinux "$inside"

# ---- modules ----

cat >one.c <<'END'
__attribute__((section(".modinfo"), used)) static const char modinfo[] = "license=GPL\0name=mod_x\0vermagic=6.1.0-test SMP mod_unload ";
int module_sink;
static inline __attribute__((always_inline)) void module_inline(int x)
{
    *(volatile int *)&module_sink = x;
}
__attribute__((noinline, used)) static int twice(int x)
{
    module_inline(x * 2);
    return x + 1;
}
__attribute__((section(".text.unlikely"), noinline)) void cold(int x)
{
    module_inline(x - 1);
}
int module_start(int x)
{
    module_inline(x);
    cold(x);
    return twice(x) + 3;
}
END
cat >two.c <<'END'
extern int module_sink;
__attribute__((noinline, used)) static int twice(int x)
{
    for (int i = 0; i < x; i++)
        *(volatile int *)&module_sink = x * i;
    *(volatile int *)&module_sink = 77;
    *(volatile int *)&module_sink = 78;
    *(volatile int *)&module_sink = 79;
    *(volatile int *)&module_sink = 80;
    *(volatile int *)&module_sink = 81;
    return x + 2;
}
int module_other(int x)
{
    return twice(x + 5);
}
END
gcc -c -O2 -g -ffreestanding -fno-pic -mcmodel=kernel -fcf-protection=none -fno-asynchronous-unwind-tables one.c two.c
ld -r --build-id=sha1 -o mod-x.ko two.o one.o
module_id=$(build_id mod-x.ko)
tree=root/lib/modules/$release/kernel/net/deep
mkdir -p $tree
cp mod-x.ko $tree/
# .text lies at one place, .text.unlikely at another.
readelf -SW mod-x.ko | awk '{ gsub(/[][]/, " ") } $2 == ".text" { print $1 } ' >section_number
text_number=$(<section_number)
readelf -sW mod-x.ko | awk '$4 == "FUNC"' >functions
place_module() {
    cat kallsyms
    awk -v text="$text_number" '{ printf "%s %s %s %s\n", ($7 == text ? "100000" : "200000"), $2, $5, $8 }' functions |
        while read -r base value bind name; do
            echo "$(add ffffffffc0000000 "$(printf %x $((0x$base + 0x$value)))") $([ "$bind" = LOCAL ] && echo t || echo T) $name	[mod_x]"
        done
}
place_module >with_module
in_module() { # NAME [N]: the address in memory of the Nth function of that name
    awk -v n="$1" -v k="${2:-1}" '$3 == n && $4 == "[mod_x]" && --k == 0 { print $1 }' with_module
}
module=(--sysroot root --release $release --kallsyms with_module)
at=$(in_module module_start)
expect "a module's function" ' module_start \[mod_x\]\+0x1 kallsyms ' "${module[@]}" "$(add "$at" 1)"
expect "its line" ' module_start \[mod_x\]\+0x1 kallsyms one.c:[1-9][0-9]*$' "${module[@]}" "$(add "$at" 1)"
expect "BPF over a module" ' bpf_prog_y\+0x1 kallsyms ' "${module[@]}" --ksymbol "$at" 10 bpf_prog_y "$(add "$at" 1)"
compare_module() { # NAME SECTION [N] ASK-ARGUMENT...
    local name=$1 section=$2 n=$3 value bytes
    shift 3
    read -r value bytes < <(awk -v n="$name" -v k="$n" '$8 == n && --k == 0 { print $2, $3 }' functions)
    chains mod-x.ko "$section" "$value" "$bytes" >expected
    ours "$(in_module "$name" "$n")" "$bytes" "$@" >got
    cmp -s expected got || fail "chains of $name $n: $(diff expected got | head -n 5)"
}
compare_module module_start .text 1 "${module[@]}"
compare_module module_other .text 1 "${module[@]}"
compare_module cold .text.unlikely 1 "${module[@]}"
compare_module twice .text 1 "${module[@]}"
compare_module twice .text 2 "${module[@]}"

expect "an inlined function has no module in its name" ' module_inline\+0x[0-9a-f]+ vmlinux one.c:5 \(inlined\) \(unverified\)' \
    "${module[@]}" "$(add "$at" 3)"
here=(--module ffffffffc0100000 ffffffffc0300000 /lib/modules/$release/kernel/net/deep/mod-x.ko)
expect "the recorded build id" ' module_start \[mod_x\]\+0x1 kallsyms one.c:[1-9][0-9]*$' "${module[@]}" "${here[@]}" "$module_id" "$(add "$at" 1)"
expect "another one" ' module_start \[mod_x\]\+0x1 kallsyms -:0' "${module[@]}" "${here[@]}" 0123456789 "$(add "$at" 1)"
rm $tree/mod-x.ko
expect "no file" ' module_start \[mod_x\]\+0x1 kallsyms -:0' "${module[@]}" "$(add "$at" 1)"
mkdir -p root/usr/lib/debug/.build-id/"${module_id:0:2}"
cp mod-x.ko root/usr/lib/debug/.build-id/"${module_id:0:2}/${module_id:2}.debug"
expect "by its build id" ' kallsyms one.c:[1-9][0-9]*$' "${module[@]}" "${here[@]}" "$module_id" "$(add "$at" 1)"
sed 's/vermagic=6.1.0-test/vermagic=6.1.9-test/' mod-x.ko >$tree/mod-x.ko
expect "of another release" ' module_start \[mod_x\]\+0x1 kallsyms -:0' "${module[@]}" "$(add "$at" 1)"
sed 's/name=mod_x/name=mod_y/' mod-x.ko >$tree/mod-x.ko
expect "of another name" ' module_start \[mod_x\]\+0x1 kallsyms -:0' "${module[@]}" "$(add "$at" 1)"
ln -s .. $tree/loop
mkdir -p root/usr/lib/debug/lib/modules/$release/kernel
cp mod-x.ko root/usr/lib/debug/lib/modules/$release/kernel/mod_x.ko.debug
expect "a debug file" ' module_start \[mod_x\]\+0x1 kallsyms one.c:[1-9]' "${module[@]}" "$(add "$at" 1)"

# ---- packed ----

# What was packed gives on another machine, where nothing else is, what its sources gave on this one.
cp $tree/mod-x.ko bad.ko
sed 's/name=mod_y/name=mod_x/' bad.ko >$tree/mod-x.ko
mkdir -p store/captures/one
packed=store/captures/one/kernel.syms
every=()
for ((a = 0; a < size; a++)); do
    every+=("$(printf %x $((0x$outer + a)))")
done
for ((a = 0; a < 24; a++)); do
    every+=("$(printf %x $((0x$at + a)))")
done
every+=("$read_at" "$it" "$(add "$(symbol start_kernel)" 2)" "$(add "$(symbol unsized)" 10)" "$(add "$(symbol unsized)" 28)"
    "$(symbol sink)" "$(add "$(symbol f4000)" 3)" "$(add "$(symbol f7999)" 1)")
from=("${module[@]}" "${here[@]}" "$module_id" --build-id "$id" --vmlinux vmlinux)
to=(--sysroot nothing --debug-dir nothing --release $release --build-id "$id" "${here[@]}" "$module_id" --symbols store --capture one)
answers() { # ASK-ARGUMENT...: frames alone
    ./ask "$@" "${every[@]}" | grep -v '^state'
}
for level in lines names; do
    rm -f $packed
    ./ask "${from[@]}" --pack $level $packed "${every[@]}" >said || fail "packing $level: $(<said)"
    for shape in '' --no-inlines --no-lines '--no-inlines --no-lines'; do
        [ $level = lines ] || [ "$shape" = '--no-inlines --no-lines' ] || continue
        # shellcheck disable=SC2086 # options
        answers "${from[@]}" $shape >expected
        # At level names there is not even the line of a call.
        [ $level = lines ] || sed -Ei 's/ [^ :]+:[0-9]+/ -:0/' expected
        # shellcheck disable=SC2086
        answers "${to[@]}" $shape >got
        cmp -s expected got || fail "packed $level $shape: $(diff expected got | head -n 5)"
    done
done
grep -q 'outer+0x8 vmlinux' got || fail "packed names have no outer: $(head -n 3 got)"
expect "what is said of them" "^state kernel symbols are loaded: $packed: [1-9][0-9]* addresses\$" "${to[@]}" "$outer"
expect "another address of a packed function" ' f4000\+0x5 vmlinux ' "${to[@]}" "$(add "$(symbol f4000)" 5)"
# The same as lines: of vmlinux alone, and with kallsyms and modules. Lines cannot say that data between two parts of the
# code have no name.
named() {
    answers "$@" | awk -v data="$(symbol sink)" '$2 !~ /^-/ && $1 != data { sub(/ (vmlinux|kallsyms) .*/, ""); print }'
}
for with in "--release $release --build-id $id --vmlinux vmlinux --range $text ffffffff9fffffff $text [kernel.kallsyms]_text" "${from[*]}"; do
    # shellcheck disable=SC2086 # options
    ./ask $with --pack-kallsyms lines "${every[@]}" >said || fail "packing kallsyms: $(<said)"
    # shellcheck disable=SC2086
    named $with --no-inlines >expected
    named --whole --sysroot nothing --kallsyms lines >got
    [ -s expected ] && cmp -s expected got || fail "packed kallsyms: $(diff expected got | head -n 5)"
done

[ $failed = 0 ] || exit 1
echo "kernel names come from vmlinux and from the files of modules"
