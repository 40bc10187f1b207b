# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# The files that the examples of the manual pages speak of, under the names they have there; to be sourced by
# _man_examples.sh, which has set -eu. make_world FOLDER makes them:
#
#   app, app.c               a program; its debug information says that it was built in /src
#   cap.spool, cap.spool.gz  three seconds of it as process 4711: threads app (4711), worker-1 and worker-2; kernel frames,
#                            a library that is not there, generated code; and 4720, a second one. The recorder's end
#                            note stands at its end
#   before.spool, after.spool, archive/*.spool.gz     of it too
#   python.spool             process 4800, marked as Python, with a perf map
#   cut.spool, broken.spool  cap.spool cut off, and with a damaged record
#   image/                   an image in which app lies; debug/ its debug file by build id
#   maps/perf-*.map, kallsyms.txt, vmlinux            the other symbol files
#   symbols/, store/         what spoolpack makes of cap.spool; store/ holds a leftover file and two pieces to merge
#   profile.proto, *.pb.gz, cap.speedscope.json       what EXAMPLES take from the examples above them

world_needs() {
    local tool
    for tool in ld nm objcopy readelf jq; do
        command -v $tool >/dev/null || { echo "no $tool in PATH" && exit 77; }
    done
}

# A program that can be sampled: `app [SECONDS]`; when told how long, it leaves time for others. Its inlined function has a label for the spools made by hand.
make_app() {
    cat >app.c <<'END'
#include <stdlib.h>
#include <time.h>
#define NOINLINE __attribute__((noinline, used))
volatile unsigned long sink;
static inline __attribute__((always_inline)) void skip_blanks(void)
{
    sink += 1;
    __asm__ volatile(".globl at_skip_blanks\nat_skip_blanks:\n.skip 16, 0" ::: "memory");
    sink += 2;
}
static double seconds(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}
NOINLINE void read_line(void)
{
    for (unsigned long i = 0; i < 20000; i++)
        sink += i;
}
NOINLINE void parse(int real)
{
    if (!real)
        skip_blanks();
    read_line();
    sink++;
}
NOINLINE void walk(int depth)
{
    if (depth > 0)
        walk(depth - 1);
    sink++;
}
NOINLINE void reserve(unsigned long n) __asm__("_ZN4poolIiE7reserveEm");
NOINLINE void reserve(unsigned long n)
{
    sink += n;
}
NOINLINE void worker(void)
{
    reserve(sink);
    sink++;
}
NOINLINE void serve(void)
{
    parse(1);
    walk(3);
    worker();
    sink++;
}
int main(int argc, char **argv)
{
    double end = seconds(CLOCK_MONOTONIC) + (argc > 1 ? atof(argv[1]) : 0.1);

    while (seconds(CLOCK_MONOTONIC) < end) {
        serve();
        if (argc > 1)
            nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL);
    }
    return 0;
}
END
    "$CC" -O1 -g -ffile-prefix-map="$PWD"=/src -Wl,--build-id=sha1 -o app app.c
}

make_world() { # FOLDER
    local world id begin first
    mkdir "$1"
    cd "$1" || exit 1
    world=$PWD
    make_app
    # Where functions lie in the file: all in its one segment of code.
    begin=$(readelf -lW app | awk '$1 == "LOAD" && / R E / { print $2, $3; exit }')
    nm app >names
    objcopy -N at_skip_blanks app
    at() { # NAME
        local address
        address=$(awk -v n="$1" '$3 == n { print $1; exit }' names)
        echo "app+$((0x$address - ${begin#* } + ${begin% *}))"
    }
    id=$(readelf -n app | awk '/Build ID/ { print $3 }')

    first=$((${begin% *}))
    local start=1767225600000000 # the first of January 2026
    head_of() { # PID: what a spool of it begins with
        echo 'version 3'
        echo 'interval 10ms'
        echo "start $start"
        echo "module app $1 0x400000-0x500000 $first \"$world/app\""
        echo "note $1 build-id \"0 $id\""
        echo "note $1 kernel \"6.1.0-app - 01234567-89ab-cdef-0123-456789abcdef\""
        echo "comm $1 app"
        echo "thread $1 $1 app"
        echo "kernel-module kernel 0xffffffff81000000-0xffffffff82000000 0 [kernel.kallsyms]_text"
        echo "module zip $1 0x7f0000000000-0x7f0000100000 0 /opt/zip/libzip.so"
    }
    main=$(at main) serve=$(at serve) parse=$(at parse) line=$(at read_line) blanks=$(at at_skip_blanks)
    walk=$(at walk) worker=$(at worker) reserve=$(at _ZN4poolIiE7reserveEm)
    body_of() { # PID SAMPLES
        cat <<END
thread $1 $(($1 + 1)) worker-1
thread $1 $(($1 + 2)) worker-2
samples $2 10ms 0ms $1 $1 $line $parse $serve $main | $blanks $serve $main | $walk*4 $serve $main | zip+0x1234 $serve $main | @0xffffffff81000220 @0xffffffff81000110 $serve $main
samples $2 10ms 0ms $1 $(($1 + 1))-$(($1 + 2)) $reserve $worker | 0x7fff00000010 $worker
END
    }
    {
        head_of 4711
        body_of 4711 300
        echo "comm 4720 app"
        echo "module app 4720 0x400000-0x500000 $first \"$world/app\""
        echo "samples 20 10ms 1s 4720 4720 $line $parse $serve $main"
        echo "note 4711 end \"620 0 0\""
    } | "$BUILD/tests/spoolmake" >cap.spool
    gzip -k cap.spool
    for name in before after; do
        start=$((start + 3600000000))
        { head_of 4711 && body_of 4711 100; } | "$BUILD/tests/spoolmake" >$name.spool
    done
    mkdir archive
    gzip -c before.spool >archive/monday.spool.gz
    gzip -c after.spool >archive/tuesday.spool.gz
    head -c -3 after.spool >cut.spool
    { cat after.spool && printf '\377'; } >broken.spool

    # Python: its own functions by the map beside the spool, those of the interpreter by the program's symbols.
    printf '.text\n.globl %s\n.type %s,%%function\n%s: .skip 256,0\n.size %s,256\n' \
        {Py_RunMain,Py_RunMain,Py_RunMain,Py_RunMain} {_PyEval_Vector,_PyEval_Vector,_PyEval_Vector,_PyEval_Vector} >python.s
    "$CC" -shared -nostdlib -o python3 python.s
    first=$(($(readelf -lW python3 | awk '$1 == "LOAD" && / R E / { print $2; exit }')))
    {
        printf '%s\n' 'version 3' 'interval 10ms' 'comm 4800 python3' 'python 0 4800 on' \
            "module python 4800 0x400000-0x401000 $first \"$world/python3\""
        run=$(((0x$(nm python3 | awk '/Py_RunMain/ { print $1 }') & 0xfff) + (first & ~0xfff)))
        echo "samples 100 10ms 0ms 4800 4800 0x7fff00001010 python+$((run + 256)) 0x7fff00001110 python+$run"
    } | "$BUILD/tests/spoolmake" >python.spool
    printf '%s\n' '7fff00001000 100 py::load:/srv/app.py' '7fff00001100 100 py::<module>:/srv/app.py' >perf-4800.map

    mkdir -p maps "image$world" "debug/.build-id/${id:0:2}"
    echo '7fff00000000 100 onRequest /srv/app.js:10' >maps/perf-4711.map
    cp app "image$world/"
    objcopy --only-keep-debug app "debug/.build-id/${id:0:2}/${id:2}.debug"

    # A kernel of two functions.
    printf '%s\n' 'ffffffff81000000 T _text' 'ffffffff81000000 T _stext' 'ffffffff81000100 T do_syscall_64' \
        'ffffffff81000200 T ksys_read' 'ffffffff81000300 T _etext' >kallsyms.txt
    printf '.text\n.globl _text,_stext,_etext\n_text: _stext: .skip 256,0\n' >kernel.s
    printf '.globl %s\n.type %s,%%function\n%s: .skip 256,0\n.size %s,256\n' \
        do_syscall_64 do_syscall_64 do_syscall_64 do_syscall_64 ksys_read ksys_read ksys_read ksys_read >>kernel.s
    echo '_etext:' >>kernel.s
    "$CC" -c -o kernel.o kernel.s
    ld -Ttext=0xffffffff81000000 -e _text -o vmlinux kernel.o 2>ld.said || { cat ld.said && exit 1; }

    spoolpack -q --perf-map-dir maps --kallsyms kallsyms.txt -o symbols cap.spool
    cp -r symbols store
    spoolpack -q --perf-map-dir maps --kallsyms kallsyms.txt -o store after.spool
    # What a pack that was killed two hours ago has left behind.
    echo half >"$(dirname "$(find store/.build-id -name '*.lines' | head -n 1)")/.tmp-left"
    # One of the captures was packed last year.
    sed -i 's/"packed_at": *"20[0-9][0-9]/"packed_at":"2025/' "$(grep -rl '"after.spool"' store/captures)"
    find store -type f -exec touch -d '2 hours ago' {} +

    spool2pprof cap.spool -o cap.pb.gz
    spool2pprof --labels= before.spool -o before.pb.gz
    spool2pprof --labels= after.spool -o after.pb.gz
    spool2speedscope cap.spool -o cap.speedscope.json
    cp "$SRC/tests/consumers/profile.proto" .
    rm names kernel.[os] python.s ld.said
}
