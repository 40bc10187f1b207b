#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Where the debug information of a program leads: source files nowhere, supplementary and split files to no place outside
# of the sysroot. Names without end, and files that the user may not read.
. "$(dirname "$0")/_security.sh"
need_strace
for tool in gcc objcopy readelf; do command -v $tool >/dev/null || skip_test "no $tool"; done

mkdir -p image/opt image"$PWD/outside" nothing outside
mkfifo fifo image/opt/fifo
ln -s "$PWD/outside" image/opt/link

# program NAME ADDRESS...: a spool of samples at these addresses of image/opt/NAME
program() {
    local name=$1 address
    shift
    {
        printf 'version 4\ninterval 10ms\nmodule m 40 0x400000-0x4000000 0 "/opt/%s"\nsample 10ms 40 40' "$name"
        for address; do printf ' m+0x%x' $((0x$address - 0x400000)); done
        echo
    } | make "$name.spool"
}
addresses() { # FILE PATTERN
    readelf -sW "$1" | awk -v pattern="$2" '$4 == "FUNC" && $8 ~ pattern { print $2 }'
}
# shellcheck disable=SC2054 # commas of the linker
link=(-nostdlib -static -Wl,-e,main -Wl,-Ttext-segment=0x400000 -Wl,-z,noseparate-code -Wl,--build-id)

# inside SPOOL TOOL...: with the sysroot; no file of this folder outside of it is opened.
inside() {
    local spool=$1 tool
    shift
    for tool; do
        # shellcheck disable=SC2086
        traced timeout 60 $BIN/$tool --sysroot image --debug-dir nothing --perf-map-dir nothing "$spool"
        grep -qa source out || die "$tool $spool: no name in its output: $(head -c 500 out)"
        grep "^$PWD/" reached | grep -vE "^$PWD/($spool|image/opt/[a-z]+)\$" >wrong || :
        equal wrong ''
        ! grep -E '^(/dev|/etc)/' opened >wrong || die "it opens $(<wrong)"
        wrote_nothing
        reached_no_other
    done
}

# 1: paths in line tables
{
    number=0
    for path in "$PWD/fifo" ../../fifo /opt/fifo /dev/zero /etc/passwd ../../../../../../../etc/passwd "$PWD/outside/abs.c" \
        ../link/x.c . / 'http://127.0.0.1:9/x.c'; do
        number=$((number + 1))
        printf '# 1 "%s"\nint source%d(int x) { return x * %d; }\n' "$path" $number $number
    done
    printf '# 1 "main.c"\nint main(void) { return 0; }\n'
} >lines.i
echo 'int secret;' >outside/abs.c
gcc -g -O0 "${link[@]}" -o image/opt/lines lines.i
# shellcheck disable=SC2046
program lines $(addresses image/opt/lines '^source')
inside lines.spool "spool2folded --with-lines" "spool2pprof --gzip-level 0" spool2speedscope "spoolcat --samples --json"
# No call at all has one of them.
! grep -E 'fifo|/dev/zero|passwd|(abs|x)\.c|http' looked >wrong || die "it looks at a source file: $(<wrong)"
run 0 "$BIN/spool2folded" --with-lines --sysroot image lines.spool
for line in fifo:1 zero:1 passwd:1 abs.c:1; do
    grep -qF "$line" out || die "$line is not shown: $(<out)"
done

# 2: split files: an absolute path, one that climbs, one through a link, one of a FIFO
echo 'int source(int x) { return x + 1; } int main(void) { return source(0); }' >split.c
for out in "$PWD/outside/absolute.o" ../../../../../../../../../../../..$PWD/outside/climbs.o link/linked.o piped.o; do
    name=${out##*/}
    name=${name%.o}
    case $name in
    climbs) (cd / && gcc -g -O0 -gsplit-dwarf "-fdebug-prefix-map=/=/opt" -c -o "${out#../}" "$OLDPWD/split.c") ;;
    absolute) gcc -g -O0 -gsplit-dwarf -c -o "$out" split.c ;;
    *) (cd image/opt && gcc -g -O0 -gsplit-dwarf "-fdebug-prefix-map=$PWD=/opt" -c -o "$out" ../../split.c) ;;
    esac
    case $name in absolute | climbs) object=outside/$name.o ;; *) object=image/opt/$out ;; esac
    gcc "${link[@]}" -o "image/opt/$name" "$object"
    [ "$name" != piped ] || { rm image/opt/piped.dwo && mkfifo image/opt/piped.dwo; }
    # shellcheck disable=SC2046
    program "$name" $(addresses "image/opt/$name" '^source$')
    inside "$name.spool" "spool2folded --with-lines"
    grep -q "/$name\.dwo$" looked || die "it does not look for $name.dwo: $(<looked)"
done

# 3: supplementary files
# Names that stand in one (DW_FORM_GNU_strp_alt) make it wanted.
gcc -gdwarf-4 -O0 -dA -S -o alt.s split.c
sed -i '/(DW_AT_name)/{n;s/0xe\b/0x1f21/}' alt.s
grep -q 0x1f21 alt.s || die "no name in alt.s has the form"
gcc "${link[@]}" -o plain alt.s
id=$(printf '\\x%s' $(seq 10 29))
for path in "$PWD/outside/alt" ../../../../outside/alt /opt/link/alt fifo; do
    # shellcheck disable=SC2059
    { printf '%s\0' "$path" && printf "$id"; } >alt
    cp plain outside/alt
    objcopy --add-section .gnu_debugaltlink=alt plain image/opt/alternate
    # shellcheck disable=SC2046
    program alternate $(addresses plain '^source$')
    inside alternate.spool "spool2folded --with-lines"
    grep -q "${path##*/}$" looked || die "it does not look for $path: $(<looked)"
done

# Nobody read a FIFO: a writer that does not wait finds no reader. (What was opened is checked above.)
for file in fifo image/opt/fifo image/opt/piped.dwo; do
    # shellcheck disable=SC2016
    ! timeout 0.1 bash -c 'echo x >"$1"' - $file || die "somebody reads $file"
done

# 4: names of 1 MiB, of a function, its symbol and its source file
{
    long=$(head -c 1048576 /dev/zero | tr '\0' n)
    printf '# 1 "%s"\n' "source$long"
    echo "int source$long(int x) { return x * 2; } int main(void) { return 0; }"
} >long.i
gcc -g -O0 "${link[@]}" -o image/opt/long long.i
# shellcheck disable=SC2046
program long $(readelf -sW image/opt/long | awk '$4 == "FUNC" && $8 !~ /^main/ { print $2 }')
for option in --demangle=none --with-lines; do
    run 0 "$BIN/spool2folded" $option --sysroot image long.spool
    grep -q 'sourcen' out || die "no long name: $(head -c 200 out)"
    [ "$(wc -c <out)" -le 66000 ] || die "$(wc -c <out) bytes of output"
done
for tool in spool2speedscope "spool2pprof --gzip-level 0" "spoolcat --samples"; do
    # shellcheck disable=SC2086
    run 0 $BIN/$tool --sysroot image long.spool
    [ "$(wc -c <out)" -le 140000 ] || die "$(wc -c <out) bytes of output"
done

# 5: what the user may not read
as_user=()
if [ "$(id -u)" = 0 ]; then
    as_user=(setpriv --reuid=65534 --regid=65534 --clear-groups)
    chmod 755 . && chmod -R a+rX image
    "${as_user[@]}" test -x "$BIN/spool2folded" -a -r lines.spool -a -r image/opt 2>/dev/null || as_user=(none)
fi
if [ "${as_user[*]}" = none ]; then
    echo "files that may not be read: skipped, root cannot run the tools as another user here"
else
    chmod 0 image/opt/lines
    ASAN_OPTIONS='' UBSAN_OPTIONS='' LSAN_OPTIONS=detect_leaks=0 run 0 "${as_user[@]}" "$BIN/spool2folded" -v --sysroot image lines.spool
    grep -q 'lines+0x' out || die "names out of a file that may not be read: $(<out)"
    grep -qi 'permission\|may not be read\|unreadable' err || die "it does not say why: $(<err)"
    chmod 644 image/opt/lines
fi
