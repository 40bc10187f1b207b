#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# System calls that fail, are interrupted or do less than asked, in all that spoolpack does: no store is ever damaged, and
# what is said of it is true. FAULTS=all: all of them, which takes minutes.
. "$(dirname "$0")/../_faults.sh"
tool=spoolpack spoolpack=$BIN/spoolpack
cp "$o2" cap.spool
mkdir nowhere

# A store as it was in folder `before`, changed by the command.
begin() {
    rm -rf d
    cp -a before d
}
keep() {
    rm -rf expected
    cp -a d expected
    cp got expected.out
}
complete() { [ -d d ] && diff -r d expected >/dev/null && cmp -s got expected.out; }
# Pieces may have come, or gone that nobody wants; what manifests say stays true.
intact() { :; }
sound() {
    [ ! -d d ] || complete || [ -z "$(find d -name 'manifest-*')" ] || "$spoolpack" --check -q d >check.out 2>&1 ||
        { cat check.out && false; }
}

mkdir before
scenario='pack' command=("$spoolpack" -v "${files[@]}" -o d cap.spool)
undisturbed
all_faults

# Into a store that has manifests; files are copied.
"$spoolpack" -q "${files[@]}" --level=names -o before cap.spool
scenario='pack files' command=("$spoolpack" -v "${files[@]}" --level=full -o d cap.spool)
undisturbed
few_faults

# With pieces to merge and temporary files to remove.
rm -rf before one.spool
"$spoolmake" >one.spool <<'MAKE'
interval 10ms
module app 77 0x400000-0x500000 0 /opt/demo/ladder-O2
sample 10ms 77 77 app+0x1150
sample +10ms 77 77 app+0x1151
MAKE
for spool in one cap; do "$spoolpack" -q "${files[@]}" -o before $spool.spool; done
for folder in before/.build-id/*; do touch "$folder/.tmp-abcdef"; done
find before -exec touch -d '3 days ago' {} +
scenario='prune' command=("$spoolpack" --prune d)
undisturbed
grep -q tmp expected.out || die "nothing to prune: $(cat expected.out)"
judge_temporary=no strict=yes
few_faults
disturbed read EIO
disturbed getdents64 EIO

# Reading alone. What is wrong with a store is said on standard output.
sound() { :; }
findings=yes judge_temporary=no
scenario='list' command=("$spoolpack" --list d)
undisturbed
few_faults
find before -name '.tmp-*' -delete
scenario='check' command=("$spoolpack" --check d)
undisturbed
few_faults

findings=no judge_temporary=yes strict=no

# A tar file is a document like any other.
tar czf store.tar.gz -C before .
one_file_tar() {
    converter "$@"
    mkdir d
    begin() { rm -f d/out*; }
    keep() { cp d/out.tar.gz expected.out; }
    complete() { cmp -s d/out.tar.gz expected.out; }
    intact() { [ ! -e d/out.tar.gz ]; }
    sound() { :; }
}
one_file_tar 'pack into tar' spoolpack
command=("$spoolpack" -v "${files[@]}" -o d/out.tar.gz cap.spool)
undisturbed
few_faults

# And so is one that is read: it is unpacked into a file without a name, or refused.
converter 'names from tar' spool2folded -v --sysroot nowhere --perf-map-dir nowhere --symbols store.tar.gz cap.spool
sound() { :; }
undisturbed
few_faults
echo "$runs runs"
[ $troubles = 0 ] || die "$troubles troubles"
