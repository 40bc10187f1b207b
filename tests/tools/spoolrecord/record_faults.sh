#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# System calls that fail, are interrupted or do less than asked, in all that spoolrecord does: it says so, and what it has
# written can be read. FAULTS=all: all of them, which takes minutes.
. "$(dirname "$0")/../_faults.sh"
tool=spoolrecord
"$BIN/spoolrecord" -q -o probe.spool true 2>err || { echo "no recording here: $(<err)" && exit 77; }

begin() {
    rm -rf d
    mkdir d
}
keep() { :; }
complete() {
    "$BIN/spoolcat" --records --strict -q "${spool:-d/out}" >records 2>&1 && grep -q 'thread' records
}
intact() { # as far as it was written
    [ ! -s "${spool:-d/out}" ] || "$BIN/spoolcat" --records -q "${spool:-d/out}" >records 2>&1
}
command=("$BIN/spoolrecord" --summary=none -o d/out true) scenario=record
undisturbed
short_reads= # the kernel gives no second piece of a setting
few_faults
disturbed perf_event_open EMFILE EACCES EINTR/
disturbed ppoll EINTR/ EINVAL
disturbed wait EINTR/
disturbed pidfd ENOSYS EMFILE
disturbed pipe2 EMFILE
disturbed socketpair EMFILE
disturbed sendmsg EINTR/
disturbed recvmsg EINTR/
disturbed setpriority EPERM

# A process that is there, and must not be said to be none.
sleep 1000 &
target=$!
trap 'kill $target' EXIT
command=("$BIN/spoolrecord" --summary=none --duration 20ms -o d/out -p $target) scenario=attach
undisturbed
few=yes disturbed openat EMFILE
disturbed getdents64 EIO

# Into a pipe, which somebody else may have made non-blocking.
spool=got
command=("$BIN/spoolrecord" --summary=none -o - true) scenario='record into a pipe'
: >input
input=input
undisturbed
disturbed write EIO ENOSPC zero+ EINTR/ EAGAIN/ short/
disturbed close EIO
echo "$runs runs"
[ $troubles = 0 ] || die "$troubles troubles"
