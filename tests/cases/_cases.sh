# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2034 # used by those that source it
# What the tests of the converters' public cases share; to be sourced. Each case is a function O1, O2, ...
# that runs in an empty folder of its own; run_cases at the end of a file runs them all, whichever fail.
set -u
export LC_ALL=C
stackpulse=$FIXTURES/stackpulse
helpers=$SRC/tests
export SPOOLMAKE=$BUILD/tests/spoolmake
# No file of this machine has a say: neither libraries nor perf maps.
common=(--sysroot "$PWD/root" --perf-map-dir .)
mkdir -p root
inputs=(cap)

die() {
    echo "FAILED: ${FUNCNAME[-3]-}: $*" >&2
    exit 1
}

for program in jq node; do
    if ! command -v $program >/dev/null; then
        echo "no $program in PATH"
        exit 77
    fi
done

# What there is not is left out, and said at the end.
left_out=$PWD/left_out
: >"$left_out"
have() { # PROGRAM
    case $1 in
    spool2*) [ -x "$BIN/$1" ] ;;
    *) command -v "$1" >/dev/null ;;
    esac || {
        echo "$1" >>"$left_out"
        return 1
    }
}

run_cases() {
    local bad=0 name status
    for name in $(declare -F | awk '$3 ~ /^O[0-9]+/ { print $3 }' | sort -V); do
        mkdir "$name"
        (
            cd "$name" || exit 1
            set -e
            "$name"
        )
        status=$?
        [ $status = 0 ] || { echo "FAILED: $name (exit status $status)" && bad=1; }
        rm -rf "$name"
    done
    sort "$left_out" | uniq -c | sed 's/^ *\([0-9]*\) \(.*\)/left out: \2 is not here (\1 times)/'
    [ ! -s "$left_out" ] || [ $bad != 0 ] || exit 77
    exit $bad
}

# ---- making a capture ----

# make [FILE]: the spool that standard input describes.
make() {
    "$SPOOLMAKE" >"${1:-cap}" || die "spoolmake"
}

# perf_map PID START NAME...: names at START, START + 0x100, ... of a process that has //anon from 0x10000 on. A name may
# have the escapes of printf.
perf_map() {
    local pid=$1 start=$2 name
    shift 2
    for name in "$@"; do
        printf "%x 100 $name\n" "$start" >>"perf-$pid.map"
        start=$((start + 0x100))
    done
}

# ---- converting it ----

# converter TOOL OUTPUT OPTION...: `inputs` through TOOL, which succeeds. Standard error is in TOOL.err. 1: no such tool.
converter() {
    local tool=$1 output=$2
    shift 2
    have "$tool" || return 1
    "$BIN/$tool" "${common[@]}" "$@" "${inputs[@]}" >"$output" 2>"$tool.err" </dev/null ||
        die "$tool $*: exit status $?: $(head -3 "$tool.err")"
}

to_folded() {
    converter spool2folded folded "$@"
}

to_pprof() {
    rm -f pprof.json
    converter spool2pprof pprof.pb.gz "$@" || return 0
    node "$helpers/decode_pprof.mjs" pprof.pb.gz >pprof.json 2>faults || die "spool2pprof $*: $(head -3 faults)"
}

to_speedscope() {
    rm -f speedscope.json
    converter spool2speedscope speedscope "$@" || return 0
    node "$helpers/decode_speedscope.mjs" speedscope >speedscope.json 2>faults ||
        die "spool2speedscope $*: $(head -3 faults)"
}

# convert OPTION...: all three, with options that all have.
convert() {
    to_folded "$@"
    to_pprof "$@"
    to_speedscope "$@"
}

# refused PATTERN TOOL OPTION...: exit status 1, one line that has PATTERN, and no document.
refused() {
    local pattern=$1 tool=$2 status=0
    shift 2
    have "$tool" || return 0
    "$BIN/$tool" "${common[@]}" "$@" "${inputs[@]}" >refused.out 2>refused.err </dev/null || status=$?
    [ $status = 1 ] || die "$tool $*: exit status $status: $(head -3 refused.err)"
    [ ! -s refused.out ] || die "$tool $*: a document in spite of an error"
    [ "$(wc -l <refused.err)" = 1 ] || die "$tool $*: $(<refused.err)"
    grep -q -e "$pattern" refused.err || die "$tool $*: $(<refused.err)"
}

# ---- what came out ----

equal() { # WHAT GOT EXPECTED
    [ "$2" = "$3" ] || die "$1: got
$2
instead of
$3"
}

folded() { # TEXT: the whole document
    equal folded "$(<folded)" "$1"
}

pprof() { # FILTER TEXT: what jq -r makes of the profile (decode_pprof.mjs)
    [ ! -e pprof.json ] || equal "pprof $1" "$(jq -r "$1" pprof.json)" "$2"
}

speedscope() { # FILTER TEXT: the same of the document (decode_speedscope.mjs)
    [ ! -e speedscope.json ] || equal "speedscope $1" "$(jq -r "$1" speedscope.json)" "$2"
}

# Stacks as sorted lines, root first, frames with '|' between, and what they weigh.
sum_up='group_by(.stack) | map("\(.[0].stack | join("|")) \(map(.weight) | add)") | .[]'
pprof_stacks="[.sample[] | {stack, weight: .value[0]}] | $sum_up"
speedscope_stacks="[.profiles[].runs[] | select(.stack != [])] | $sum_up"

# stacks TEXT: both have these stacks, with their samples. Of to_pprof, and of to_speedscope --weight=samples.
stacks() {
    pprof "$pprof_stacks" "$1"
    speedscope "$speedscope_stacks" "$1"
}

# convert_samples OPTION...: as convert, with samples as weights and without the view of all threads.
convert_samples() {
    to_folded "$@"
    to_pprof "$@"
    to_speedscope --weight=samples --no-overview "$@"
}

# go_pprof OPTION...: what `go tool pprof` prints, in go.out and go.err; it succeeds. 1: there is no pprof.
go_pprof() {
    [ -e pprof.json ] || return 1
    have go || return 1
    mkdir -p none
    HOME=$PWD PPROF_TMPDIR=$PWD/none PPROF_BINARY_PATH=$PWD/none PPROF_TOOLS=$PWD/none GOTOOLCHAIN=local GOFLAGS='' \
        go tool pprof "$@" pprof.pb.gz >go.out 2>go.err || die "go tool pprof $*: $(<go.err)"
}

# flamegraph: the titles of the flame graph, one a line, in titles. 1: no flamegraph.pl.
flamegraph() {
    local candidate script=
    for candidate in /usr/share/perl5/Devel/NYTProf/flamegraph.pl "$(command -v flamegraph.pl || true)"; do
        [ -z "$script" ] && [ -r "$candidate" ] && script=$candidate
    done
    [ -n "$script" ] || { echo flamegraph.pl >>"$left_out" && return 1; }
    perl "$script" folded >svg 2>svg.err || die "flamegraph.pl: $(<svg.err)"
    ! grep -q Ignored svg.err || die "flamegraph.pl: $(<svg.err)"
    grep -o '<title>[^<]*' svg | sed 's/<title>//' >titles
}

# place FILE SYMBOL: where the symbol is in an ELF file, as offset (hex with 0x), and its size in bytes.
place() {
    local value segment_offset segment_address
    read -r value size < <(readelf -sW "$1" | awk -v name="$2" '$8 == name { print "0x" $2, $3; exit }')
    [ -n "${value-}" ] || die "no $2 in $1"
    read -r segment_offset segment_address < <(readelf -lW "$1" | awk '$1 == "LOAD" && $7 $8 ~ /E/ { print $2, $3; exit }')
    offset=$(printf '0x%x' $((value - segment_address + segment_offset)))
}
