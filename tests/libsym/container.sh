#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A runtime in a container, with process ids, mounts and a root of its own: its perf map is found there by
# the id that the container knows, as long as it lives, and then beside the capture.
set -u
. "$(dirname "$0")/_libsym.sh"
parent=
at_exit()
{
    [ -z "$parent" ] || kill -KILL "$parent" 2>/dev/null # and its child with it
}
needs unshare chroot
with_libsym ask container.c

# What runs inside: it writes its map, says so, and waits to be killed (or a minute).
cat >runtime.c <<'END'
#include <stdio.h>
#include <unistd.h>
int main(void)
{
    char path[64];
    sprintf(path, "/tmp/perf-%d.map", (int)getpid());
    FILE *f = fopen(path, "w");
    if (f == NULL || fputs("1000 100 inside\n", f) < 0 || fclose(f) != 0 || (f = fopen("/ready", "w")) == NULL)
        return 1;
    fprintf(f, "%d\n", (int)getpid());
    fclose(f);
    sleep(60);
    return 0;
}
END
mkdir -p root/tmp beside
"$CC" -O1 -static -o root/runtime runtime.c 2>build.log || skip_test "no static C library: $(tail -n 1 build.log)"

# Not root: a user namespace may give what is needed.
flags=(--fork --kill-child --pid --mount)
[ "$(id -u)" = 0 ] || flags+=(--user --map-root-user)
unshare "${flags[@]}" chroot root /runtime 2>unshare.log &
parent=$!
for _ in $(seq 300); do
    [ -s root/ready ] && break
    kill -0 "$parent" 2>/dev/null || break
    sleep 0.1
done
[ -s root/ready ] || skip_test "no namespaces: $(cat unshare.log)"
inner=$(cat root/ready)
container= # the child of unshare
for stat in /proc/[0-9]*/stat; do
    read -r line 2>/dev/null <"$stat" || continue
    rest=${line##*) }
    # shellcheck disable=SC2086
    set -- $rest
    [ "$2" = "$parent" ] && container=${stat#/proc/} && container=${container%/stat}
done
[ -n "$container" ] || { echo "FAIL: unshare has no child"; exit 1; }
[ ! -e "/tmp/perf-$container.map" ] || skip_test "a process that is gone left /tmp/perf-$container.map"

expect() # WHAT EXPECTED ARGS...
{
    local what=$1 expected=$2 got
    shift 2
    got=$(./ask "$@") || got="exit status $?"
    if [ "$got" != "$expected" ]; then
        echo "FAIL: $what: \"$got\" instead of \"$expected\""
        failures=$((failures + 1))
    fi
}

read_map="inside (NONE) /proc/$container/root/tmp/perf-$inner.map"
expect "alive" "$read_map" "$container"
# Older than the process: of the container's last life.
touch -d '1 hour ago' "root/tmp/perf-$inner.map"
expect "an old map" "- (STALE) /proc/$container/root/tmp/perf-$inner.map" "$container"
touch "root/tmp/perf-$inner.map"
expect "alive again" "$read_map" "$container"

kill -KILL "$container"
wait "$parent" 2>/dev/null
parent=
expect "dead" "- (NO_FILE) /tmp/perf-$container.map" "$container"
expect "dead, no copy" "- (NO_FILE) /tmp/perf-$container.map" "$container" beside
cp "root/tmp/perf-$inner.map" "beside/perf-$container.map"
expect "dead, with a copy beside the capture" "inside (NONE) beside/perf-$container.map" "$container" beside

echo "$inner inside, $container outside, $failures failures"
[ "$failures" = 0 ]
