#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The record view to the byte: the worked examples of the format's specification, as JSON and as text.
. "$(dirname "$0")/_common.sh"

# spool NAME HEX...
spool() {
    local name=$1
    shift
    printf "$(printf '%s' "$*" | tr -d ' \n' | sed 's/../\\x&/g')" >"$name"
}

spool v1 53 50 55 4c 53 45 31 00 c0 84 3d e8 07 01 00 0e 80 20 80 40 00 00 00 02 2f 61 \
    02 00 01 80 a0 02 03 00 ff ff ff ff 0f 00 02 01 00 10 03 01 00 01 04 00 0e 07 05 90 4e 00 01 \
    05 cf 0f 00 01 06 f0 2e 0e 01 07 0e
run 0 "$spoolcat" --records --json v1
equal err ''
equal out '{"rec":"header","off":0,"version":1,"start_us":1000000,"interval_us":1000}
{"rec":"module","off":13,"id":0,"pid":7,"start":4096,"end":8192,"file_offset":0,"inode":0,"dev_major":0,"dev_minor":0,"inode_gen":0,"kernel":false,"path":"/a"}
{"rec":"frame","off":26,"id":0,"kind":"unpinned","abs":36864,"mode":"user"}
{"rec":"stack","off":32,"id":0,"prefix":null,"frame":0,"depth":1}
{"rec":"frame","off":40,"id":1,"kind":"pinned","module":0,"rel":16,"abs":4112,"mode":"user"}
{"rec":"stack","off":44,"id":1,"prefix":0,"frame":1,"depth":2}
{"rec":"thread","off":48,"id":0,"pid":7,"tid":7}
{"rec":"sample","off":52,"index":0,"delta":5000,"ts":5000,"thread":0,"pid":7,"tid":7,"stack":1}
{"rec":"sample","off":57,"index":1,"delta":-1000,"ts":4000,"thread":0,"pid":7,"tid":7,"stack":1}
{"rec":"python","off":62,"ts":6000,"pid":7,"on":true}
{"rec":"deactivate_process","off":67,"pid":7}
{"rec":"end","version":1,"samples":2,"modules":1,"frames":2,"stacks":2,"threads":1,"python":1,"truncated":false,"kept":69}'
run 0 "$spoolcat" v1
equal out '         0  header             version=1 start_us=1000000 interval_us=1000
        13  module             id=0 pid=7 start=0x1000 end=0x2000 file_offset=0x0 inode=0 dev_major=0 dev_minor=0 inode_gen=0 kernel=false path=/a
        26  frame              id=0 kind=unpinned abs=0x9000 mode=user
        32  stack              id=0 prefix=- frame=0 depth=1
        40  frame              id=1 kind=pinned module=0 rel=0x10 abs=0x1010 mode=user
        44  stack              id=1 prefix=0 frame=1 depth=2
        48  thread             id=0 pid=7 tid=7
        52  sample             index=0 delta=5000 ts=5000 thread=0 pid=7 tid=7 stack=1
        57  sample             index=1 delta=-1000 ts=4000 thread=0 pid=7 tid=7 stack=1
        62  python             ts=6000 pid=7 on=true
        67  deactivate_process pid=7
         -  end                version=1 samples=2 modules=1 frames=2 stacks=2 threads=1 python=1 truncated=false kept=69'

# Two generations of a mapping; the module deactivation.
spool v2 53 50 55 4c 53 45 32 00 00 00 01 00 0e 80 20 80 40 00 00 00 04 2f 6f 6c 64 02 00 01 80 2a \
    03 00 ff ff ff ff 0f 00 04 00 0e 08 05 14 00 00 08 00
run 0 "$spoolcat" --json v2
[ "$(tail -2 out | head -1)" = '{"rec":"deactivate_module","off":46,"module":0}' ] || die "$(<out)"

# Version 3: marker, kernel frame.
spool v3 53 50 55 4c 53 45 33 00 01 01 01 00 0e 80 80 80 02 80 c0 80 02 80 20 63 08 02 11 00 \
    06 2f 62 69 6e 2f 78 02 00 05 00 03 00 ff ff ff ff 0f 00 02 01 00 90 20 03 01 00 01 \
    02 02 03 90 80 80 88 f8 ff ff ff ff 01 03 02 01 02 04 00 0e 0b 05 d0 0f 00 02 04 01 0e 0c \
    05 d0 0f 01 01
run 0 "$spoolcat" --json v3
[ "$(grep '"frame","off"' out)" = '{"rec":"frame","off":35,"id":0,"kind":"truncated"}
{"rec":"frame","off":47,"id":1,"kind":"pinned","module":0,"rel":4112,"abs":4194320,"mode":"user"}
{"rec":"frame","off":56,"id":2,"kind":"unpinned","abs":18446744071578845200,"mode":"kernel"}' ] || die "$(<out)"

# Version 4: origin, JIT module. Then a kernel module, and a path that is not UTF-8.
spool v4 53 50 55 4c 53 45 34 00 00 92 c2 e8 04 01 80 a8 d6 b9 07 02 80 e2 cf aa 06 05 \
    09 00 0e 80 80 02 80 82 02 00 00 00 00 00 00 0b 5b 6a 69 74 2d 31 2d 32 2d 33 5d \
    02 80 80 02 c0 80 02 01 66 c0 80 02 80 82 02 01 67 \
    02 00 00 41 03 00 ff ff ff ff 0f 00 04 00 0e 09 05 c8 d1 ac f3 0e 00 00 \
    01 01 01 80 20 80 40 00 00 00 00 00 01 02 2f 6b \
    01 02 0e 80 20 80 40 00 00 00 00 00 00 09 2f ff 22 5c 20 0a e2 82 41 \
    09 03 0e 80 20 80 40 00 00 00 00 00 00 00 00
run 0 "$spoolcat" --json v4
equal err ''
equal out '{"rec":"header","off":0,"version":4,"start_us":0,"interval_ns":10101010,"origin":{"monotonic_ns":2000000000,"sign":1,"secs":1700000000,"nanos":5}}
{"rec":"module","off":26,"id":0,"pid":7,"start":32768,"end":33024,"file_offset":0,"inode":0,"dev_major":0,"dev_minor":0,"inode_gen":0,"kernel":false,"path":"[jit-1-2-3]","jit":[{"start":32768,"end":32832,"name":"f"},{"start":32832,"end":33024,"name":"g"}]}
{"rec":"frame","off":70,"id":0,"kind":"pinned","module":0,"rel":65,"abs":32833,"mode":"user"}
{"rec":"stack","off":74,"id":0,"prefix":null,"frame":0,"depth":1}
{"rec":"thread","off":82,"id":0,"pid":7,"tid":9}
{"rec":"sample","off":86,"index":0,"delta":2000000100,"ts":2000000100,"thread":0,"pid":7,"tid":9,"stack":0}
{"rec":"module","off":94,"id":1,"pid":null,"start":4096,"end":8192,"file_offset":0,"inode":0,"dev_major":0,"dev_minor":0,"inode_gen":0,"kernel":true,"path":"/k"}
{"rec":"module","off":110,"id":2,"pid":7,"start":4096,"end":8192,"file_offset":0,"inode":0,"dev_major":0,"dev_minor":0,"inode_gen":0,"kernel":false,"path":"/�\"\\ \u000a�A","path_hex":"2fff225c200ae28241"}
{"rec":"module","off":133,"id":3,"pid":7,"start":4096,"end":8192,"file_offset":0,"inode":0,"dev_major":0,"dev_minor":0,"inode_gen":0,"kernel":false,"path":"","jit":[]}
{"rec":"end","version":4,"samples":1,"modules":4,"frames":1,"stacks":1,"threads":1,"python":0,"truncated":false,"kept":148}'
run 0 "$spoolcat" v4
grep -q ' interval_ns=10101010 origin.monotonic_ns=2000000000 origin.sign=1 origin.secs=1700000000 origin.nanos=5$' out || die "$(<out)"
grep -q ' path=\[jit-1-2-3\] jit=2 0x8000-0x8040:f 0x8040-0x8100:g$' out || die "$(<out)"
grep -q ' id=1 pid=- ' out || die "$(<out)"
grep -Fq ' path="/\xff\"\\ \x0a\xe2\x82A"' out || die "$(<out)"
grep -q ' path="" jit=0$' out || die "$(<out)"
head -c 13 v4 >v4-no-origin
printf '\0' >>v4-no-origin
run 0 "$spoolcat" --json v4-no-origin
[ "$(head -1 out)" = '{"rec":"header","off":0,"version":4,"start_us":0,"interval_ns":10101010,"origin":null}' ] || die "$(<out)"

# An annotation is shown as the module record that it is.
spool note 53 50 55 4c 53 45 33 00 01 01 01 00 0e 00 00 00 00 00 00 00 00 10 \
    5b 73 70 6f 6f 6c 3a 63 6f 6d 6d 5d 20 61 70 70
run 0 "$spoolcat" --json note
[ "$(sed -n 2p out)" = '{"rec":"module","off":10,"id":0,"pid":7,"start":0,"end":0,"file_offset":0,"inode":0,"dev_major":0,"dev_minor":0,"inode_gen":0,"kernel":false,"path":"[spool:comm] app"}' ] || die "$(<out)"
grep -q '"end","version":3,"samples":0,"modules":1,' out || die "$(<out)"

# Several spools, one after another.
run 0 "$spoolcat" --json v1 v2
"$spoolcat" --json v1 >expected
"$spoolcat" --json v2 >>expected
same out expected

# Color only where it is asked for.
run 0 "$spoolcat" --color=always v1
grep -q "$(printf '\033')" out || die "no color"
sed "s/$(printf '\033')\[[0-9]*m//g" out >plain
run 0 "$spoolcat" --color=auto v1
same out plain

# The report.
run 0 "$spoolcat" -v v1
equal err 'v1: version 1, 69 B, 2 samples over 0.00 s, 1 process, 1 thread'
