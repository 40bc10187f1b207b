#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Stacks of a program that interrupts itself, on AArch64 in an emulator and on this machine: the unwinder, cached and
# not, and libgcc's find the same frames, in code as compilers make it with and without unwind data, frame pointers,
# and signed return addresses (R4).
set -u
here=$(cd "$(dirname "$0")" && pwd)
SRC=${SRC:-$(cd "$here/../.." && pwd)}

for tool in qemu-aarch64 aarch64-linux-gnu-gcc gcc; do
    command -v $tool >/dev/null || { echo "skipped: no $tool"; exit 77; }
done

# There is no zlib for the other machine; nothing here is compressed.
mkdir other || exit 1
cat >other/zlib.h <<'EOS'
typedef unsigned long uLong, uLongf;
#define Z_OK 0
static inline int uncompress(unsigned char *to, uLongf *size, const unsigned char *from, uLong from_size)
{
    (void)to, (void)size, (void)from, (void)from_size;
    return -3;
}
EOS
echo "#include \"$SRC/librecord/unwind.h\"" >unwinder.h
sources=
for name in rule rule_cache cfi_entry cfi_expr cfi_find cfi_program code_a64 code_row code_x86 image image_section \
    lazy_bytes; do
    sources="$sources $SRC/librecord/$name.c"
done
sources="$sources $(echo "$SRC"/librecord/unwind*.c)"

# One instruction at a time, so that a signal may find each of them; the option has two names.
qemu="qemu-aarch64 -cpu max -L /usr/aarch64-linux-gnu"
for option in -one-insn-per-tb -singlestep; do
    qemu-aarch64 --help 2>&1 | grep -q -e "$option" && { step=$option; break; }
done

bad=0
run() { # WHAT COMPILER "OBJECTS" SAMPLES "RUNNER" "LINK OPTIONS" "OPTIONS OF WORKLOAD" "OPTIONS OF CHAIN" [ARGUMENT]
    echo "== $1"
    # shellcheck disable=SC2086 # lists of options
    "$2" -std=gnu11 -D_GNU_SOURCE $7 -iquote "$here" -c "$here/unwind_workload.c" -o workload.o &&
        "$2" -std=gnu11 -D_GNU_SOURCE -fno-toplevel-reorder $8 -iquote "$here" -c "$here/unwind_chain.c" -o chain.o &&
        "${LINK:-$2}" $3 workload.o chain.o $6 -lpthread -o self || exit 1
    # shellcheck disable=SC2086
    timeout 120 $5 ./self "$4" ${9:-} || { echo "FAIL: $1"; bad=1; }
}

gcc -std=gnu11 -D_GNU_SOURCE -O2 -I. -iquote "$SRC/librecord" -iquote "$here" -c "$here/unwind_self.c" || exit 1
# shellcheck disable=SC2086 # a list of options
LINK=${CC:-gcc} run "this machine" gcc "unwind_self.o" 400 "" "$BUILD/lib/librecord.a -lz ${SANITIZE_FLAGS:-}" "-O2" "-O2"

[ -z "${SANITIZE_FLAGS:-}" ] || exit $bad # the rest would be the same

# shellcheck disable=SC2086 # a list of files
(cd other && aarch64-linux-gnu-gcc -std=gnu11 -D_GNU_SOURCE -O1 -I. -I.. -iquote "$SRC/librecord" -iquote "$here" -c \
    $sources "$here/unwind_self.c") || exit 1
a64() { # WHAT SAMPLES LINK WORKLOAD CHAIN [ARGUMENT]
    run "AArch64, $1" aarch64-linux-gnu-gcc "$(echo other/*.o)" "$2" "$qemu $step" "$3" "$4" "$5" "${6:-}"
}
a64 "shared libraries, lazily bound" 150 "-Wl,-z,lazy" "-O1" "-O0"
a64 "no frame pointers" 150 "-static" "-O2 -fomit-frame-pointer -mbranch-protection=bti" "-O2 -fomit-frame-pointer"
a64 "signed" 100 "-static" "-O2 -mbranch-protection=standard" "-O2 -mbranch-protection=standard"
a64 "signed in leaves too" 100 "-static" "-Os -mbranch-protection=pac-ret+leaf" "-O1 -mbranch-protection=pac-ret+leaf"
a64 "no unwind data, signed" 80 "-static" "-O0" \
    "-O2 -fno-asynchronous-unwind-tables -fno-unwind-tables -fno-omit-frame-pointer -mbranch-protection=standard" undescribed
exit $bad
