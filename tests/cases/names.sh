#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Public cases about names: O1 to O7 and O22.
. "$(dirname "$0")/_cases.sh"

# anonymous SAMPLES...: a capture of process 40, app, whose code is at 0x10000 and named by perf-40.map alone; its samples
# are lines of spoolmake.
anonymous() {
    {
        printf '%s\n' 'interval 10ms' 'comm 40 app' 'module anon 40 0x10000-0x20000 0 //anon' "$@"
    } | make
}

# FlameGraph#192: not cut at the first parenthesis.
O1() {
    perf_map 40 0x10000 'f<(E)1>::g(int)' main
    anonymous 'sample 10ms 40 41 0x10001 0x10101'
    convert_samples
    folded 'app;main;f<(E)1>::g(int) 1'
    stacks 'main|f<(E)1>::g(int) 1'
    flamegraph || return 0
    # Old versions write '<' as '('.
    grep -qE 'f(&lt;|\()\(E\)1(&gt;|\))::g\(int\) \(1 samples' titles || die "$(<titles)"
}

# py-spy PR #234: a number at the end of a frame is no second count.
O2() {
    perf_map 40 0x10000 'worker 12' main 'x 1.5'
    anonymous 'sample 10ms 40 41 0x10001 0x10101' 'sample 20ms 40 41 0x10001 0x10101' 'sample 30ms 40 41 0x10101' \
        'sample 40ms 40 41 0x10201 0x10001'
    convert_samples
    folded 'app;main 1
app;main;worker_12 2
app;worker_12;x_1.5 1'
    stacks 'main 1
main|worker 12 2
worker 12|x 1.5 1'
    flamegraph || return 0
    grep -qF 'all (4 samples, 100%)' titles || die "$(<titles)"
    grep -qF 'worker_12 (2 samples, 50.00%)' titles || die "$(<titles)"
}

# pprof PR #669: semicolons, colons, blanks and line breaks in names.
O3() {
    make <<'END'
name one "a;b"
name two "a:b"
name three "a b"
name four "a\nb"
name five "a\0b\x7f\xc2\x85\xe2\x80\xa8"
names main
comm 40 app
sample 1ms 40 41 one main
sample 2ms 40 41 two main
sample 3ms 40 41 three main
sample 4ms 40 41 four main
sample 5ms 40 41 five main
END
    convert_samples
    # Equal clean names are one frame; a b with blanks that replace controls at its end is that name, too.
    folded 'app;main;a b 3
app;main;a:b 2'
    stacks 'main|a b 3
main|a:b 1
main|a;b 1'
    speedscope '[.frames[].name] | sort | join(", ")' 'a b, a:b, a;b, main'
    go_pprof -top || return 0
    grep -qE ' a;b$' go.out || die "$(<go.out)"
}

# FlameGraph PR #66, speedscope#393: blanks in the name of a thread.
O4() {
    make <<'END'
interval 1ms
names main
comm 40 "my app"
thread 40 41 "V8 Worker 3"
sample 1ms 40 41 main
END
    to_folded --root=thread
    folded 'my_app-40;V8_Worker_3-41;main 1'
    to_pprof
    pprof '.sample[0].labels | "\(.process), \(.thread)"' 'my app, V8 Worker 3'
    to_speedscope
    speedscope '.profiles[0].name' 'my app 40 / V8 Worker 3 41'
}

# tidb#52215, pyroscope-go#100, pyroscope PR #2620: bytes that are not UTF-8, in symbol, module and thread.
O5() {
    perf_map 40 0x10000 'sym\xffbol'
    make <<'END'
interval 1ms
comm 40 "a\xffpp"
thread 40 41 "w\xffk"
# as no writer of ours would, but others might
module note 40 0-0 0 "[spool:thread] 42 v\xffk"
module anon 40 0x10000-0x20000 0 //anon
module lib 40 0x30000-0x40000 0 "/x/li\xff.so"
sample 1ms 40 41 0x10001 lib+0x10
sample 1ms 40 42 0x10001 lib+0x10
END
    convert
    bad=$'\xef\xbf\xbd'
    folded "a${bad}pp;li$bad.so+0x10;sym${bad}bol 2"
    for file in folded speedscope; do
        [ ! -e $file ] || iconv -f UTF-8 -t UTF-8 $file >/dev/null || die "$file is not UTF-8"
    done
    pprof '.sample[0].stack | join("|")' "li$bad.so+0x10|sym${bad}bol"
    pprof '.sample[0].labels.thread' "w${bad}k"
    pprof '[.mapping[].filename] | map(select(startswith("/x"))) | .[]' "/x/li$bad.so"
    speedscope '[.frames[].name] | sort | join("|")' "li$bad.so+0x10|sym${bad}bol"
    speedscope '[.profiles[].name | select(endswith("41"))] | .[]' "a${bad}pp 40 / w${bad}k 41"
    [ -e pprof.json ] && have protoc || return 0
    # As a string, field 6 is checked.
    sed 's/bytes string_table/string string_table/' "$SRC/tools/spool2pprof/profile.proto" >profile.proto 2>proto.err || return 0
    gzip -dc pprof.pb.gz | protoc --proto_path=. --decode=perftools.profiles.Profile profile.proto >decoded ||
        die "protoc does not decode it"
    grep -q 'string_table: "w' decoded || die "$(<decoded)"
}

# pprof#705, PR #717: names that pprof takes for mangled ones.
O6() {
    perf_map 40 0x10000 'F[int]' 'v<int>::p(int)' 'py::<module>:x.py' 'std::vector<int>::push_back(int const&)'
    anonymous 'sample 10ms 40 41 0x10001 0x10101 0x10201 0x10301'
    convert_samples
    folded 'app;std::vector<int>::push_back(int const&);<module>;v<int>::p(int);F[int] 1'
    stacks 'std::vector<int>::push_back(int const&)|<module>|v<int>::p(int)|F[int] 1'
    pprof '[.function[] | .system_name // empty] | length' 0
    go_pprof -top || return 0
    for name in 'F[int]' 'v<int>::p(int)' '<module>' 'std::vector<int>::push_back(int const&)'; do
        grep -qF "%  $name" go.out || die "$name: $(<go.out)"
    done
}

# flamegraph-rs#362: Rust's new mangling.
O7() {
    mkdir root
    common=(--sysroot root --perf-map-dir .)
    cat >rust.c <<'END'
void foo(void) __asm__("_RNvCs1234_7mycrate3foo");
void foo(void) { __asm__ volatile(""); }
END
    # shellcheck disable=SC2086 # a list
    "$CC" -shared -fPIC -O1 rust.c -o root/librust.so || die "$CC"
    place root/librust.so _RNvCs1234_7mycrate3foo
    make <<END
comm 40 app
module lib 40 0x10000-0x20000 0 /librust.so
sample 1ms 40 41 lib+$offset
END
    convert_samples
    folded 'app;mycrate::foo 1'
    stacks 'mycrate::foo 1'
    pprof '.function[0].system_name' _RNvCs1234_7mycrate3foo
    convert_samples --demangle=none
    folded 'app;_RNvCs1234_7mycrate3foo 1'
    stacks '_RNvCs1234_7mycrate3foo 1'
}

# pprof#386, go#25740: a file that was deleted.
O22() {
    make <<'END'
module app 40 0x10000-0x20000 0 "/x/app (deleted)"
sample 1ms 40 41 app+0x10
END
    convert_samples
    folded 'app;app+0x10 1'
    stacks 'app+0x10 1'
    pprof '.mapping[0].filename' /x/app
    speedscope '.frames[0].file' /x/app
    go_pprof -top || return 0
    grep -qx 'File: app' go.out || die "$(<go.out)"
}

run_cases
