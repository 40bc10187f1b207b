# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2034 # used by those that source it
# What the shell tests of spoolrecord share; to be sourced. fake is the tool over fake_record.c.
. "$(dirname "${BASH_SOURCE[0]}")/../_common.sh"
spoolrecord=$BIN/spoolrecord
fake=$BUILD/tests/fake_record/spoolrecord

# has FILE PATTERN...: each extended regular expression matches a line of FILE.
has() {
    local file=$1 pattern
    shift
    for pattern in "$@"; do
        grep -Eq -- "$pattern" "$file" || die "no line of $file matches '$pattern': $(head -c 500 "$file")"
    done
}

# hasnt FILE PATTERN
hasnt() {
    ! grep -E -- "$2" "$1" || die "$1 has a line that matches '$2'"
}

# gone FILE...
gone() {
    local file
    for file in "$@"; do
        [ ! -e "$file" ] || die "$file is there"
    done
}

# wait_for FILE: till it has contents, ten seconds at most.
wait_for() {
    local i
    for ((i = 0; i < 1000; i++)); do
        [ ! -s "$1" ] || return 0
        sleep 0.01
    done
    die "$1 did not come"
}

# in_foreground COMMAND...: starts it with signals as by default, which a background job of a script has not; pid is its id.
in_foreground() {
    perl -e '$SIG{$_} = "DEFAULT" for qw(INT TERM HUP); exec @ARGV or die' "$@" <&0 &
    pid=$!
}

# need_perf: skips the rest where the kernel lets nobody sample.
need_perf() {
    local status=0
    "$spoolrecord" -q -o perf-probe.spool true 2>perf-probe.err || status=$?
    if [ $status = 125 ] && grep -Eq 'perf_event|seccomp|not permitted|denied|kernel' perf-probe.err; then
        echo "sampling is not permitted here: $(head -1 perf-probe.err)"
        exit 77
    fi
    [ $status = 0 ] || die "recording 'true' ends with $status: $(cat perf-probe.err)"
    rm -f perf-probe.*
}
