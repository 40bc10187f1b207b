#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# --stacks with separate debug files, folders of symbols, and functions of which only the beginning is known.
. "$(dirname "$0")/_common.sh"
for tool in objcopy readelf; do
    if ! command -v "$tool" >/dev/null; then
        echo "skipped: no $tool"
        exit 77
    fi
done
program=$FIXTURES/sysroot/opt/demo/ladder-O2
ladder=$FIXTURES/stackpulse/ladder/ladder-O2.spool
kernel=$FIXTURES/stackpulse/kernel/syscalls-O2.spool
id=$(readelf -n "$program" | sed -n 's/.*Build ID: //p')

mkdir -p root/opt/demo "debug/.build-id/${id:0:2}" kernel empty
objcopy --strip-all "$program" root/opt/demo/ladder-O2
objcopy --only-keep-debug "$program" "debug/.build-id/${id:0:2}/${id:2}.debug"
cp "$FIXTURES/stackpulse/kernel/kallsyms.txt" kernel/kallsyms

run 0 "$spoolcat" --stacks --json --kallsyms=kernel/kallsyms "$kernel"
cp out expected
run 0 "$spoolcat" --stacks --json --symbols=kernel "$kernel"
same expected out

# Text has the function's beginning, JSON the address itself and no name.
run 0 "$spoolcat" --stacks --sysroot root --debug-dir empty "$ladder"
grep -q '^ *[0-9a-f]* ladder-O2+0x1520 (/opt/demo/ladder-O2)$' out || die "no beginning of worker"
! grep -q 'ladder-O2+0x1531' out || die "an address inside worker"
run 0 "$spoolcat" --stacks --json --sysroot root --debug-dir empty "$ladder"
grep -q '"path":"/opt/demo/ladder-O2","rel":5425},"name":null,"offset":null,"file":null,"line":null,"column":null,"inlined":false,"origin":"address"' out ||
    die "$(grep -o '"rel":5425.\{80\}' out | head -1)"

for options in '--debug-dir debug' '--debug-dir empty --symbols debug'; do
    # shellcheck disable=SC2086 # several words
    run 0 "$spoolcat" --stacks --sysroot root $options "$ladder"
    grep -q '^ *[0-9a-f]* worker+0x11 (/opt/demo/ladder-O2) /[^ ]*:[0-9]*$' out || die "no worker: $options"
done
export SPOOL_DEBUG_DIRS=$PWD/debug
run 0 "$spoolcat" --stacks --sysroot root "$ladder"
grep -q ' worker+0x11 ' out || die "no worker by SPOOL_DEBUG_DIRS"
