#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Debug files from servers: only when told to, bounded in time, each build id
# once, and what a server sends is checked like any file.
set -u
. "$(dirname "$0")/_libsym.sh"
needs strip objcopy readelf nm gcc
with_libsym ask ask.c
with_libsym fetch fetch.c
"$CC" -O1 -D_GNU_SOURCE -o serve "$here/serve_debug.c" || exit 1
export HOME=$work DEBUGINFOD_CACHE_PATH=$work/cache
unset DEBUGINFOD_URLS DEBUGINFOD_TIMEOUT DEBUGINFOD_PROGRESS DEBUGINFOD_VERBOSE XDG_CACHE_HOME http_proxy all_proxy HTTP_PROXY ALL_PROXY
id0=0011223344556677889900112233445566778899
id1=1111223344556677889900112233445566778899
case $(DEBUGINFOD_URLS=http://127.0.0.1:1 ./fetch 1000 1000 $id0) in
*"not compiled in"*) skip_test "libsym was built without debuginfod" ;;
*"cannot be loaded"*) skip_test "no libdebuginfod.so.1" ;;
esac

servers=
at_exit() {
    # shellcheck disable=SC2086 # a list
    [ -z "$servers" ] || kill $servers 2>/dev/null
}

serve() { # MODE: a server whose port is $port and whose requests are in $log
    log=$work/log.$1
    : >"$log"
    : >port
    ./serve "$1" "$work/files" "$log" >port 2>"$work/serve.err" & # ctest waits for whoever has its pipe
    servers="$servers $!"
    while [ ! -s port ]; do sleep 0.02; done
    port=$(cat port)
    rm -rf cache
}

# gives EXPECTED FILE_MS RUN_MS ID...: answers joined by "|", in the time of the run and some
gives() {
    local expected=$1 got begin=$EPOCHREALTIME ms
    shift
    got=$(./fetch "$@" | paste -sd '|')
    ms=$(((${EPOCHREALTIME/[.,]/} - ${begin/[.,]/}) / 1000))
    checked=$((checked + 1))
    [ "$got" = "$expected" ] || fail "'$got' instead of '$expected' ($*)"
    [ $ms -lt $(($2 + 6000)) ] || fail "took $ms ms"
}

cat >prog.c <<'CODE'
#include <stdio.h>
__attribute__((noinline)) static int inner(int x) { return x * 3 + getchar(); }
__attribute__((noinline)) int outer(int x) { return inner(x) + 1; }
int main(void) { return outer(getchar()); }
CODE
gcc -g -O1 -Wl,--build-id -o prog prog.c || exit 1
id=$(readelf -n prog | sed -n 's/.*Build ID: //p')
strip -o stripped prog
read -r offset vaddr < <(readelf -lW prog | awk '$1 == "LOAD" && $0 ~ / R E / { print $2, $3 }')
inner=$(printf '%x' $((0x$(nm prog | awk '$3 == "inner" { print $1 }') - vaddr + offset + 4)))
mkdir files
objcopy --only-keep-debug prog "files/$id"
size=$(stat -c %s "files/$id")

# says PATTERN ARG...: what ask prints
says() {
    local pattern=$1 got
    shift
    got=$(./ask "$@")
    checked=$((checked + 1))
    grep -q -- "$pattern" <<<"$got" || fail "'$got' does not say '$pattern' ($*)"
}

serve files
export DEBUGINFOD_URLS=http://127.0.0.1:$port
row="without the option nothing is asked"
says " - .* fde" --debug-dir nowhere "$work/stripped" "$inner"
[ ! -s "$log" ] || fail "$(cat "$log")"
row="a module that is not worth it"
says " - .* fde" --debuginfod --no-download --debug-dir nowhere "$work/stripped" "$inner"
[ ! -s "$log" ] || fail "$(cat "$log")"
row="a file of the system is first"
mkdir -p "d1/.build-id/${id:0:2}" && cp "files/$id" "d1/.build-id/${id:0:2}/${id:2}.debug"
says " inner .* symtab" --debuginfod --debug-dir d1 "$work/stripped" "$inner"
[ ! -s "$log" ] || fail "$(cat "$log")"
row="a file is found and used"
says " inner .* symtab" --debuginfod --debug-dir nowhere "$work/stripped" "$inner"
[ "$(grep -c "GET /buildid/$id/debuginfo" "$log")" = 1 ] || fail "$(cat "$log")"
row="a build id is asked for once"
rm -rf cache && : >"$log"
gives "$size bytes|$size bytes|debuginfod: no server has it|debuginfod: no server has it" 10000 30000 "$id" "$id" $id0 $id0
[ "$(wc -l <"$log")" = 2 ] || fail "$(cat "$log")"
row="what is not there"
mv "files/$id" away && rm -rf cache
says "state .*: debuginfod: no server has it" --debuginfod --debug-dir nowhere "$work/stripped" "$inner"
row="a file of another build"
gcc -g -O2 -Wl,--build-id -o other prog.c && objcopy --only-keep-debug other "files/$id" && rm -rf cache
says "state .*: its build id is $(readelf -n other | sed -n 's/.*Build ID: //p'), not $id" --debuginfod --debug-dir nowhere "$work/stripped" "$inner"
row="a file that is none"
echo text >"files/$id" && rm -rf cache
says "state .*: it has no ELF header" --debuginfod --debug-dir nowhere "$work/stripped" "$inner"
mv away "files/$id"

row="no server is named"
DEBUGINFOD_URLS='' gives "debuginfod: DEBUGINFOD_URLS names no server" 1000 1000 "$id"
DEBUGINFOD_URLS='  ' says "state .*: debuginfod: DEBUGINFOD_URLS names no server" --debuginfod --debug-dir nowhere "$work/stripped" "$inner"

row="a closed port"
rm -rf cache
closed=$port
at_exit
servers=
while (exec 3<>"/dev/tcp/127.0.0.1/$closed") 2>/dev/null; do sleep 0.05; done
DEBUGINFOD_URLS=http://127.0.0.1:$closed gives "debuginfod: Connection refused|debuginfod: Connection refused" 10000 30000 $id0 $id1

row="a silent server"
serve silent
export DEBUGINFOD_URLS=http://127.0.0.1:$port
gives "debuginfod: no answer in time|debuginfod: no answer in time|debuginfod: no answer in time" 1000 2000 $id0 $id1 "$id"
[ "$(grep -c GET "$log")" = 1 ] || fail "a server that did not answer is asked again: $(cat "$log")"
row="two silent servers"
: >"$log" && rm -rf cache
DEBUGINFOD_URLS="$DEBUGINFOD_URLS http://127.0.0.1:$port/" gives "debuginfod: no answer in time|debuginfod: no answer in time|debuginfod: no answer in time" 1000 20000 $id0 $id1 "$id"
row="a server that is too slow"
serve drip
export DEBUGINFOD_URLS=http://127.0.0.1:$port
gives "debuginfod: no answer in time|debuginfod: not asked, the servers have taken too long before" 1000 1000 "$id" $id0

echo "$checked checks, $failures failures"
[ $failures -eq 0 ]
