# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2034 # used by those that source it
# One disturbed run after another, and what must hold after each; to be sourced. A test sets for each of its scenarios
#   scenario  its name           tool     the program's name, as in its messages
#   command   what is run        begin    a function: folder d becomes what it was before
#   complete  a function: whether d and standard output (got) are as without a fault
#   intact    a function: whether d is as before, or complete, after a failure
#   input     a file that reaches it through a pipe, as got leaves it by one; empty: none
#   sound     a function: whether d is as it must be after all ends
#   strict    yes: it does what it can, and what is not complete has an exit status that says so
# and calls undisturbed, then disturbed. FAULTS=all: every call and fault in place of some.
. "$(dirname "${BASH_SOURCE[0]}")/_common.sh"
shopt -s nullglob dotglob
fault=$BUILD/tests/fault
[ -x "$fault" ] || { echo "no fault injection on this machine" && exit 77; }
status=0
"$fault" counts read EIO 0 true 2>err || status=$?
[ $status != 77 ] || { cat err && exit 77; }
# No leak check where a process is traced: it would trace it itself.
export ASAN_OPTIONS="${ASAN_OPTIONS:-}:detect_leaks=0" SOURCE_DATE_EPOCH=1700000000

declare -A text=([EIO]='Input/output error' [ENOSPC]='No space left on device' [EMFILE]='*o*file*'
    [EACCES]='Permission denied' [ENOMEM]='*emory' [EPERM]='Operation not permitted' [EINVAL]='Invalid argument'
    [EAGAIN]='Resource temporarily unavailable' [ENOSYS]='Function not implemented' [zero]='*')
runs=0 troubles=0 input=

trouble() {
    echo "$where: $*: exit $status: ${news[*]:-$(head -c 600 err)}"
    troubles=$((troubles + 1))
}

# run_with SYSCALL FAULT N: sets status, fired and lines, the lines of standard error.
run_with() {
    begin
    status=0
    : >counts
    if [ -z "$input" ]; then
        { "$fault" counts "$1" "$2" "$3" "${command[@]}" >got 2>err </dev/null || status=$?; } 2>/dev/null
    else
        cat "$input" | { "$fault" counts "$1" "$2" "$3" "${command[@]}" 2>err || echo $? >status; } | cat >got
        [ ! -s status ] || read -r status <status
        : >status
    fi
    runs=$((runs + 1))
    mapfile -t lines <counts
    fired=0
    [ ${#lines[@]} = 0 ] || fired=${lines[-1]#fired }
    mapfile -t lines <err
}

# The run that all others are compared with; which calls there are.
undisturbed() {
    local name count
    run_with read EIO 999999
    [ $status = 0 ] || die "$scenario: exit $status: $(<err)"
    cp err expected.err
    mapfile -t expected_lines <expected.err
    keep
    declare -gA calls=()
    while read -r name count; do
        [ "$name" = fired ] || calls[$name]=$((${calls[$name]:-0} + count))
    done <counts
}

sound() { :; }

# The lines that only this run wrote. What was left alone then stands in a line of its own.
new_lines() {
    local line
    news=()
    for line in "${lines[@]}"; do
        [[ $line != *': nothing was removed' ]] || continue
        [[ $'\n'"${expected_lines[*]/%/$'\n'}" == *"$line"* ]] || news+=("$line")
    done
}

# judge SYSCALL FAULT: the run that has just been.
judge() {
    new_lines
    local temporary=(d/.spooltools-* d/.tmp-* d/*/.tmp-* d/*/*/.tmp-* d/*/*/*/.tmp-*)
    [ ${#temporary[@]} = 0 ] || [ "$1" = unlink ] || [ "${judge_temporary:-yes}" = no ] || { trouble "left ${temporary[*]}" && rm -rf d; }
    sound || trouble 'a store that is not whole'
    case $status in
    0)
        if ! complete; then
            if [ "$2" = EINTR ] || [ "$2" = short ]; then
                trouble 'another document'
            elif [ ${#news[@]} = 0 ] || [ "${strict:-no}" = yes ]; then
                trouble 'another document and no word of it'
            fi
        fi
        ;;
    1 | 125)
        if [ "$2" = EINTR ] || [ "$2" = short ]; then
            trouble 'gave up'
        elif [ ${#news[@]} = 0 ] || { [ ${#news[@]} != 1 ] && [ "${strict:-no}" = no ]; }; then
            [ "${findings:-no}" = yes ] && [ -s got ] && return
            trouble "${#news[@]} messages"
        elif [[ ${news[0]} != "$tool: "*${text[$2]}* ]]; then
            trouble 'an unclear message'
        fi
        intact || trouble 'damage'
        ;;
    *) trouble 'no exit status of this program' ;;
    esac
}

# points COUNT: those of 1 to COUNT that are tried: the last one, or with few=yes one in between.
points() {
    if [ "${FAULTS:-}" = all ] || { (($1 <= 2)) && [ "${few:-no}" = no ]; }; then
        for ((n = 1; n <= $1; n++)); do echo $n; done
    elif [ "${few:-no}" = yes ]; then
        echo $((($1 * 2 + 2) / 3))
    else
        echo "$1"
    fi
}

# disturbed SYSCALL FAULT...: faults one at a time, those that end in "+" in all later calls too, those that end in "/" in
# every other call.
disturbed() {
    local call=$1 kind n numbers
    shift
    [ -n "${calls[$call]:-}" ] || return 0
    # A sanitizer has memory of its own, and ends the program when it gets none.
    [ -z "${SANITIZE_FLAGS:-}" ] || [[ $call != @(mmap|mremap|munmap|madvise) ]] || return 0
    for kind; do
        case $kind in
        */) numbers=0 ;;
        *) numbers=$(points "${calls[$call]}") ;;
        esac
        for n in $numbers; do
            [[ $kind != *+ ]] || n=$n+
            where="$scenario: $call ${kind%[+/]} $n"
            run_with "$call" "${kind%[+/]}" "$n"
            [ "$fired" != 0 ] || [ $status = 142 ] || continue
            judge "$call" "${kind%[+/]}"
        done
    done
}

# What a file system, a full disk, a limit or a signal makes of calls.
all_faults() {
    # A sanitized build takes its time.
    [ -z "${SANITIZE_FLAGS:-}" ] || [ "${FAULTS:-}" = all ] || { few_faults && return; }
    disturbed read EIO EINTR/ ${short_reads-short/}
    disturbed pread64 EIO EINTR/ short/
    disturbed write EIO ENOSPC ENOSPC+ zero+ EINTR/ short/
    disturbed pwrite64 ENOSPC EINTR/ short/
    disturbed openat EMFILE EACCES EMFILE+
    disturbed close EIO EINTR/
    disturbed lseek EINVAL
    disturbed mmap ENOMEM ENOMEM+
    disturbed mremap ENOMEM
    disturbed munmap ENOMEM
    disturbed madvise EINVAL
    disturbed fstat EIO
    disturbed getdents64 EIO
    disturbed rename EACCES EIO
    disturbed link EPERM
    disturbed unlink EACCES
    disturbed mkdir ENOSPC
    disturbed access EACCES
    disturbed readlink EIO
    disturbed fsync EIO # of a folder
    [ "${FAULTS:-}" = all ] || few=yes disturbed fsync EIO # of a file
    disturbed ftruncate EIO ENOSPC EINTR/
    disturbed fallocate ENOSPC EINTR/
    disturbed fchmod EPERM
    disturbed chown EPERM
    disturbed utimensat EPERM
    disturbed fcntl EINVAL
    disturbed ioctl EINVAL
    disturbed flock ENOMEM EINTR/
    disturbed getrandom ENOSYS
    disturbed memfd_create EMFILE
    disturbed dup EMFILE
    disturbed clone EAGAIN
}

# Of programs that share their files with one that had all of them.
few_faults() {
    [ "${FAULTS:-}" != all ] || { all_faults && return; }
    local few=yes
    disturbed read EIO ${short_reads-short/}
    disturbed write ENOSPC zero+ EINTR/ short/
    disturbed openat EMFILE
    disturbed mmap ENOMEM
    disturbed fstat EIO
    disturbed rename EACCES
    disturbed fsync EIO
}

# one_file_begins, one_file_is_complete, one_file_is_intact: of documents d/out.
one_file_begins() {
    [ -d d ] || mkdir d
    echo old >d/out
}
one_file_kept() { cp d/out expected.out; }
one_file_is_complete() { cmp -s d/out expected.out; }
one_file_is_intact() {
    local content=
    read -r content <d/out && [ "$content" = old ]
}

converter() { # NAME TOOL ARGUMENT...
    scenario=$1 tool=$2 command=("$BIN/$2" "${@:3}" -o d/out)
    begin() { one_file_begins; }
    keep() { one_file_kept; }
    complete() { one_file_is_complete; }
    intact() { one_file_is_intact; }
    rm -rf d
}
