#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Recorded and packed on one machine, converted on another one, where none of its files is: the same documents. Machine A
# is a mount namespace whose programs lie in a file system of its own, and are gone with it; machine B one that has booted
# another time, and knows nothing of A's kernel. The programs are builds of record_archive.cc: with debug information,
# stripped with debug files by debug link and by build id, without anything, deleted while they run, in a container with
# a root and process ids of its own; each runs inlined functions, generated code, the vdso and the kernel as well.
. "$(dirname "$0")/_common.sh"

store=$PWD/store
a=$PWD/a # machine A's file system

# documents NAME SPOOL OPTION...: what the tools make of it.
documents() {
    local name=$1 spool=$2
    shift 2
    mkdir -p "$name"
    "$BIN/spoolcat" --samples --json "$@" "$spool" >"$name/samples" 2>"$name/samples.err"
    "$BIN/spool2folded" --with-lines --annotate "$@" "$spool" >"$name/folded" 2>"$name/folded.err"
    "$BIN/spool2pprof" --gzip-level 0 -o "$name/pprof" "$@" "$spool" 2>"$name/pprof.err"
}

# program NAME DEFINITION...: builds it with debug information.
program() {
    local name=$1
    shift
    "$CC" -x c++ -O2 -g "-DNAME=in_$name" "$@" -o "$a/bin/$name" "$here/record_archive.cc"
}

# stop PID...: with what it started; the shell's word about it is not wanted.
stop() {
    kill -KILL "$@" 2>/dev/null || :
    wait "$@" 2>/dev/null || :
}

# Perf maps are in the one place that both machines share.
remove_maps() {
    local ready
    for ready in ready.*; do
        [ ! -s "$ready" ] || rm -f "/tmp/perf-$(cat "$ready").map"
    done
}

# ---- machine A ----

build_programs() {
    mkdir "$a/bin" "$a/debug" "$a/root"
    program plain -Wl,--build-id
    program linked -Wl,--build-id=none
    mkdir -p "$a/debug/$a/bin"
    objcopy --only-keep-debug "$a/bin/linked" "$a/debug/$a/bin/linked.dbg"
    strip "$a/bin/linked"
    objcopy --add-gnu-debuglink="$a/debug/$a/bin/linked.dbg" "$a/bin/linked"
    program numbered -Wl,--build-id=0x1122334455667788
    mkdir -p "$a/debug/.build-id/11"
    objcopy --only-keep-debug "$a/bin/numbered" "$a/debug/.build-id/11/22334455667788.debug"
    strip "$a/bin/numbered"
    program unnumbered -Wl,--build-id=none
    program deleted -Wl,--build-id -DDELETED
    program boxed -Wl,--build-id
    mkdir -p "$a/root/tmp"
    # shellcheck disable=SC2046 # words
    cp --parents -L $(ldd "$a/bin/boxed" | grep -o '/[^ ]*') "$a/root"
    mv "$a/bin/boxed" "$a/root/boxed"
}

# A command that ends before it is packed.
record_commands() {
    # shellcheck disable=SC2016 # for the inner shell
    run 0 "$spoolrecord" -q -k -o commands.spool sh -c \
        'cd "$1"; for i in plain linked numbered unnumbered; do "$1/bin/$i" "$2.$i" 0.2 & done; wait' sh "$a" "$PWD/ready"
    run 0 "$spoolrecord" -q --plain -o no-build-ids.spool "$a/bin/plain" "$PWD/ready.no-build-ids" 0.2
    run 0 "$BIN/spoolpack" -o "$store" commands.spool no-build-ids.spool
    documents a-commands commands.spool
    documents a-no-build-ids no-build-ids.spool
}

# child_of PID: its child, which pgrep could tell, too, if it was everywhere.
child_of() {
    cat /proc/"$1"/task/*/children
}

# Processes of which one has no file any more and one's are in a container; packed while they live.
record_processes() {
    local box deleted boxed
    unshare --fork --kill-child --pid --mount chroot "$a/root" /boxed /tmp/ready 100 &
    box=$!
    "$a/bin/deleted" "$PWD/ready.deleted" 100 &
    deleted=$!
    # shellcheck disable=SC2064 # as they are now
    trap "stop $box $deleted" EXIT
    wait_for "$a/root/tmp/ready"
    wait_for ready.deleted
    boxed=$(child_of $box)
    gone "$a/bin/deleted"
    run 0 "$spoolrecord" -q -k -o processes.spool -p "$deleted,${boxed% }" -d 0.6 --pack "$store"
    documents a-processes processes.spool
    stop $box $deleted
    trap - EXIT
}

# Its -X perf, where there is one that has it.
record_python() {
    local python
    for python in python3 python3.12 python3.13 python3.14; do
        "$python" -X perf -c 'import sys; sys.exit(not sys.is_stack_trampoline_active())' 2>/dev/null || continue
        cat >"$a/work.py" <<'PYTHON'
import os, sys, time
def in_script(end):
    while time.process_time() < end:
        sum(range(1000))
with open(sys.argv[1], "w") as f:
    print(os.getpid(), file=f)
in_script(0.5)
PYTHON
        run 0 "$spoolrecord" -q -k -o python.spool "$python" -X perf "$a/work.py" "$PWD/ready.python"
        run 0 "$BIN/spoolpack" -o "$store" python.spool
        documents a-python python.spool
        return
    done
    echo "left out: Python with perf support, which is not here"
}

machine_a() {
    export SPOOL_DEBUG_DIRS=$a/debug
    mount -t tmpfs machine-a "$a"
    grep -m 1 ' _text$' /proc/kallsyms | grep -v '^0* ' >kernel.names || :
    build_programs
    record_commands
    record_processes
    record_python
    remove_maps
}

# ---- machine B ----

# compare NAME NAME
compare() {
    diff -r -q "$1" "$2" || die "$2 is not what $1 is: $(diff -r "$1" "$2" | head -n 4)"
}

# frames NAME: a line in the file `frames` for each frame of its samples.
frames() {
    jq -r '.frames[] | [.kind, .origin, .name // "-", if .inlined then "inlined" else "-" end, .line // 0,
        .module.id // "-", .module.path // "-", .flags[]] | @tsv' "$1/samples" >frames
}

# count PATTERN: how many frames match.
count() {
    grep -Pc -- "$1" frames || :
}

# needs PATTERN...: some frame matches each.
needs() {
    local pattern
    for pattern in "$@"; do
        [ "$(count "$pattern")" -gt 0 ] || die "$name: no frame matches '$pattern'"
    done
}

# needs_program NAME: functions, inlined ones, lines, both mappings, and generated code.
needs_program() {
    needs "^user\telf\twork::in_$1\([^\t]*\t-\t[1-9][^\t]*\t[^\t]*\t[^\t]*/$1( \(deleted\))?(\t|$)" \
        "^user\telf\t(void )?work::expanded<[^\t]*\tinlined\t[1-9][^\t]*\t[^\t]*\t[^\t]*/$1( \(deleted\))?(\t|$)" \
        "^user\tperf-map\tgenerated_in_$1\t" "^python\tperf-map\tscripted_in_$1( |\t)"
    [ "$(grep -P "^user\telf\tcopied\(.*/$1( \(deleted\))?(\t|$)" frames | cut -f 6 | sort -u | wc -l)" = 2 ] ||
        die "$name: $1 has not two mappings"
}

# Names, which would be the same if there were none.
names_are_there() {
    local program
    frames "b-$name-store"
    case $name in
    commands) for program in plain linked numbered unnumbered; do needs_program $program; done ;;
    processes) for program in deleted boxed; do needs_program $program; done ;;
    no-build-ids) needs_program plain ;;
    python) needs "^python\tperf-map\tin_script( |\t)" ;;
    esac
    if [ -s kernel.names ] && [ "$(count '^kernel')" -gt 0 ]; then
        needs "^kernel\tkernel\t[^-]"
    elif [ "$name" != no-build-ids ]; then
        echo "left out: $name: kernel frames, which are not permitted"
    fi
    echo "$name: $(wc -l <frames) frames, $(count '^[^\t]*\t[^\t]*\t[^-\t]') named, $(count '\tinlined\t') inlined," \
        "$(count '\tkernel\t[^-]') of the kernel, $(count '\tperf-map\t') generated"
}

# Nothing of machine A can be reached.
nothing_is_left() {
    gone "$a"/* /tmp/perf-"$(cat ready.plain)".map
    documents b-nothing commands.spool "${nowhere[@]}"
    frames b-nothing
    [ "$(count '\t(work|generated|scripted|copied|main)')" = 0 ] || die "machine B has programs of machine A"
    [ "$(count '^kernel\tkernel')" = 0 ] || die "machine B names machine A's kernel"
}

machine_b() {
    local spool name archive
    local nowhere=(--sysroot "$PWD/nothing" --debug-dir "$PWD/nothing" --perf-map-dir "$PWD/nothing")
    mkdir nothing
    echo 01234567-89ab-cdef-0123-456789abcdef >boot_id
    mount --bind boot_id /proc/sys/kernel/random/boot_id
    mount --bind /dev/null /proc/kallsyms
    nothing_is_left
    tar -czf tarred.tar.gz -C "$store" .
    run 0 "$BIN/spoolpack" -o repacked.tar.gz "${nowhere[@]}" --symbols "$store" ./*.spool
    for spool in *.spool; do
        name=${spool%.spool}
        for archive in "$store" tarred.tar.gz repacked.tar.gz; do
            documents "b-$name-${archive##*/}" "$spool" "${nowhere[@]}" --symbols "$archive"
            compare "a-$name" "b-$name-${archive##*/}"
        done
        names_are_there
    done
    run 0 "$BIN/spoolpack" --check -q "$store" repacked.tar.gz tarred.tar.gz
}

# ---- both ----

here=$(dirname "$0")
if [ $# -gt 0 ]; then
    "$1"
    exit
fi
for tool in unshare chroot objcopy strip jq; do
    command -v $tool >/dev/null || { echo "no $tool in PATH" && exit 77; }
done
need_perf
mkdir a
on_machine=(unshare --mount)
if ! "${on_machine[@]}" mount -t tmpfs none "$a" 2>unshare.err; then
    on_machine+=(--user --map-root-user)
    "${on_machine[@]}" mount -t tmpfs none "$a" 2>unshare.err || { echo "no namespaces: $(cat unshare.err)" && exit 77; }
fi
trap remove_maps EXIT
"${on_machine[@]}" bash "$0" machine_a
[ -z "$(ls a)" ] || die "files of machine A are still there"
"${on_machine[@]}" bash "$0" machine_b
