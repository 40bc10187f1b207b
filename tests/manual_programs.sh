#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The C programs in libspool(3), libsym(3) and the README compile, and print what they are said to. That of librecord(3) is
# run by librecord/manual_example.sh.
. "$(dirname "$0")/_manual.sh"
make() {
    "$BUILD/tests/spoolmake" >"$1"
}

# prints EXPECTED: what the last program printed
prints() {
    [ "$(<out)" = "$1" ] || failed "$what: instead of
$1
it printed
$(<out)"
}

make threads.spool <<'END'
version 3
module app 7 0x400000-0x500000 0x1000 /bin/app
sample 1ms 7 7 app+0x1010 app+0x1200 [truncated]
samples 4 1ms 2ms 7 8 app+0x1010
sample 10ms 9 9 0x123
END

# ---- README.md ----

awk -v RS='```c\n' 'NR > 1 { sub(/```.*/, ""); printf "%s", $0 > ("readme" NR - 1 ".c") }' "$SRC/README.md"
[ -s readme1.c ] || failed "no program in README.md"
for source in readme*.c; do
    what="README.md, ${source%.c}"
    build "${source%.c}" libspool
    ./"${source%.c}" <threads.spool >out || failed "$what: exit status $?"
    prints 6
    ! ./"${source%.c}" <"$0" >out 2>err || failed "$what: this is a spool"
    grep -q . err || failed "$what: no word about what is no spool"
done

# ---- libspool(3) ----

what="libspool(3), samples of threads"
program libspool/libspool.3 1 >threads.c
build threads libspool
./threads <threads.spool >out || failed "$what: exit status $?"
prints "7/7: 1
7/8: 4
9/9: 1"
head -c -2 threads.spool | ./threads >out 2>err || failed "$what, cut: exit status $?"
grep -qx 'cut off at byte [0-9]*' err || failed "$what, cut: $(<err)"

what="libspool(3), frames of a sample; writing"
{
    echo '#include <inttypes.h>
#include <spool/spool.h>
#include <stdio.h>'
    program libspool/libspool.3 2
    program libspool/libspool.3 3
    echo '
int main(int argc, char **argv)
{
    struct spool_reader *r = argc == 1 ? spool_reader_new() : NULL;
    struct spool_record rec;
    int rc = r ? spool_reader_open_fd(r, 0) : write_one();

    (void)argv;
    while (r && rc >= 0 && (rc = spool_reader_next(r, &rec)) > 0)
        if (rec.type == SPOOL_RECORD_SAMPLE && rec.sample.tid != 8)
            rc = show(r, &rec.sample);
    spool_reader_free(r);
    return rc < 0;
}'
} >parts.c
build parts libspool
./parts <threads.spool >out || failed "$what: exit status $?"
prints "/bin/app+0x1010
/bin/app+0x1200
(not walked further)
0x123"
./parts write >one.spool || failed "$what: exit status $?"
./parts <one.spool >out || failed "$what: exit status $?"
prints "/bin/true+0x123"
spoolcat --samples one.spool | grep -q '/bin/true' || failed "$what: spoolcat --samples one.spool"

# ---- libsym(3) ----

cat >app.c <<'END'
__attribute__((noinline)) int hot(int n) { return n * 3 + 1; }
int main(int argc, char **argv) { (void)argv; return hot(argc); }
END
"$CC" -O1 -Wl,--build-id=sha1 -o app app.c || exit 1
hot=0x$(nm app | sed -n 's/^0*\([0-9a-f]*\) T hot$/\1/p')
# What nm says is an address; a spool has the place in the file.
read -r file_offset address < <(readelf -lW app | awk '/LOAD/ && / R E / { print $2, $3; exit }')
offset=$((hot - address + file_offset))
id=$(readelf -nW app | sed -n 's/.*Build ID: *//p')
if [ ${#id} != 40 ] || [ "$hot" = 0x ]; then
    failed "app has no build id, or no hot"
fi
mkdir -p "store/.build-id/${id:0:2}" empty
cp app "store/.build-id/${id:0:2}/${id:2}"

what="libsym(3), an address"
{
    echo '#include <spool/sym.h>
#include <stdio.h>
#include <stdlib.h>
static void name(uint64_t start, uint64_t end, uint64_t pgoff, int32_t pid, uint64_t pc)
{'
    program libsym/libsym.3 2 | sed "s|/usr/bin/cat|$PWD/app|"
    echo "}
int main(void) { name(0x10000000, 0x20000000, 0, 7, 0x10000000 + $offset); return 0; }"
} >address.c
build address libsym
./address >out || failed "$what: exit status $?"
prints hot

what="libsym(3), frames of a spool"
program libsym/libsym.3 1 >naming.c
build naming libsym libspool

# try EXPECTED [ARGUMENT]...: of the spool on standard input
try() {
    local expected=$1
    shift
    make app.spool
    ./naming "$@" <app.spool >out 2>err || failed "$what: exit status $?"
    [ ! -s err ] || failed "$what: $(<err)"
    prints "$expected"
}

# The file is gone; the archive has it under the build id, which comes after the samples.
gone() {
    cat <<END
version 4
module app 7 0x10000000-0x20000000 0 /nowhere/app
sample 1ms 7 7 app+$offset
note 7 build-id "0 ${id^^}"
END
}
try "0x$(printf %x $((0x10000000 + offset))): no such file" < <(gone)
try "0x$(printf %x $((0x10000000 + offset))): no such file" empty < <(gone)
try hot empty store < <(gone)

# It is there: the same build or not, and whether that can be told.
here() {
    cat <<END
version 4
$1
module app 7 0x10000000-0x20000000 0 $PWD/app $(stat -c 'inode %i dev %Hd:%Ld' app)
$2
sample 1ms 7 7 app+$offset [truncated]
END
}
try hot < <(here "" "note 7 build-id \"0 $id\"")
try "0x$(printf %x $((0x10000000 + offset))): the file is another build than the recorded one" < <(here "" 'note 7 build-id "0 00ff"')
try "hot (unverified)" < <(here "" "")
# A capture of this boot and kernel saw this very file, if it began in a later second; of another, nobody knows.
now="start $(($(date +%s) + 2))000000"
try hot < <(here "$now" "note 7 host \"Linux $(uname -r) x86_64 here\"")
try "hot (unverified)" < <(here "$now" 'note 7 host "Linux 1.2.3 x86_64 there"')
try "hot (unverified)" < <(here "$now" 'note 7 kernel "- - 00000000-0000-4000-8000-000000000000"')

# Kernel code, by the names in an archive.
printf '%s\n' 'ffffffff81000000 T _stext' 'ffffffff81000100 T do_work' 'ffffffff81000200 T _etext' >store/kallsyms
try do_work store <<'END'
version 4
note 7 kernel "6.1.0 00ff 00000000-0000-4000-8000-000000000000"
sample 1ms 7 7 @0xffffffff81000110
END
try "0xffffffff81000110: no kernel symbols" empty <<'END'
version 4
note 7 kernel "6.1.0 00ff 00000000-0000-4000-8000-000000000000"
sample 1ms 7 7 @0xffffffff81000110
END
exit $bad
