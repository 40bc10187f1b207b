#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# --pack over librecord, a kernel and spoolpack: programs that were deleted or replaced are packed while they run.
. "$(dirname "$0")/_common.sh"
need_perf

cat >burn.c <<'END'
#include <unistd.h>
volatile unsigned long sink;
static inline __attribute__((always_inline)) void expanded(void)
{
    for (int i = 0; i < 100000; i++)
        sink += (unsigned long)i * 7;
}
__attribute__((noinline)) static void NAME(void)
{
    expanded();
    sink++;
}
int main(void)
{
    for (;;)
        NAME();
}
END
"$CC" -O1 -g -Wl,--build-id -DNAME=in_first -o first burn.c
"$CC" -O1 -g -Wl,--build-id -DNAME=in_other -o other burn.c

# names ARCHIVE SPOOL: its stacks, by the archive alone
mkdir empty
names() {
    "$BIN/spool2folded" --root=none --symbols "$1" --debug-dir empty --sysroot empty "$2" >folded
}

target=
trap '[ -z "$target" ] || kill $target' EXIT
for when in before meanwhile; do
    for store in "$when" "$when.tar.gz"; do
        cp first running
        ./running &
        target=$!
        sleep 0.1
        if [ $when = before ]; then
            rm running
        else
            (sleep 0.3 && cp other new && mv new running) &
        fi
        run 0 "$spoolrecord" -q --force -o cap.spool -p $target -d 0.6 --pack "$store"
        kill $target
        wait $target 2>/dev/null || :
        target=
        rm -f running
        names "$store" cap.spool
        has folded '(^|;)main;in_first;expanded [1-9]'
        hasnt folded in_other
    done
done

# A command that goes on; another capture in the same store; the status is the command's.
cp first running
# shellcheck disable=SC2016 # for the inner shell
run 3 "$spoolrecord" -q --force -o cap.spool -d 0.4 --pack before \
    sh -c './running & p=$!; sleep 0.1; rm running; sleep 1; kill $p; exit 3'
names before cap.spool
has folded 'in_first;expanded [1-9]'
[ "$("$BIN/spoolpack" --list --json before | grep -c '"capture"\|"id"')" -ge 2 ] || die "$("$BIN/spoolpack" --list before)"
"$BIN/spoolpack" --check before >checked || die "$(cat checked)"

# A store that can be written no longer: the spool is there all the same.
# shellcheck disable=SC2016 # for the inner shell
run 1 "$spoolrecord" -q --force -o cap.spool --pack late sh -c './first & p=$!; sleep 0.2; kill $p; : >late'
has err 'symbols were not packed: spoolpack ended with status 1$'
[ -s cap.spool ] || die "no spool"
"$BIN/spoolcat" --summary --strict cap.spool >summary || die "the spool is not whole"
