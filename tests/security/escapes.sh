#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# No byte that drives a terminal gets out raw, whatever names are made of: of spools, perf maps, symbols, source files and
# the command line, in every output and message.
. "$(dirname "$0")/_security.sh"

# All that is to be clean goes into one file, each with a line of ours in front, and is looked at in the end.
# keep WHAT FILE...
keep() {
    printf '\n== %q\n' "$1"
    cat "${@:2}"
} >>all
checked() { # COMMAND...
    "$@" >out 2>err </dev/null || [ $? -lt 128 ] || die "$*: $(cat -v err)"
    [ -s out ] || [ -s err ] || [ -n "${silent:-}" ] || die "no output: $*"
    keep "$*" out err
}
# clean: valid UTF-8 without C0 but tab and newline, DEL and C1
clean() {
    local line
    line=$({
        iconv -f UTF-8 -t UTF-8 all 2>/dev/null | cmp - all 2>&1 | sed -n 's/.* line //p'
        grep -anP '[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]' all | sed 's/:.*//'
    } | head -n 1)
    [ -z "$line" ] || die "a control, or no UTF-8: $(head -n "$line" all | grep -a '^== ' | tail -n 1): $(sed -n "${line}p" all | cat -v)"
}

utf8='\x1b]0;title\x07\x1b[31m\xc2\x9b31m\x7f\x0d\n\t\xe2\x80\xa8;'
any=$utf8'\x9b31m\xff\xed\xa0\x80'
make hostile.spool <<END
version 4
interval 10ms
origin 1s 1000s
comm 40 "process$any"
thread 40 41 "thread$any"
note 40 cmdline "command$any"
note 40 host "host$any"
note 40 kernel "kernel$any - -"
note 40 event "event$any 99"
note 40 other "other$any"
module m 40 0x400000-0x500000 0 "/opt/module$any"
module anon 40 0x900000-0xa00000 0 "//anon"
kernel-module k 0xffffffffc0000000-0xffffffffc0100000 0 "kernel-module$any"
name f "function$utf8"
jit j 40 0x700000-0x800000 "/jit$utf8" 0x700000-0x700100 "jitted$utf8"
sample 10ms 40 41 f m+0x10 anon j k 0x1234
sample +10ms 40 41 m+0x20
END
mkdir -p maps nothing
printf '900000 100 mapped\033[31m\x9b\xc2\x9b\x7f\xff;\n' >maps/perf-40.map
files=(--perf-map-dir maps --sysroot nothing --debug-dir nothing)

for tool in spool2folded spool2speedscope; do
    checked "$BIN/$tool" -v --progress=never "${files[@]}" hostile.spool
    checked "$BIN/$tool" --no-symbols hostile.spool
done
checked "$BIN/spool2folded" --root=thread --with-modules --with-lines --with-addresses "${files[@]}" hostile.spool
grep -q mapped out || die "the perf map is not read"
checked "$BIN/spool2folded" --timeline --unresolved=module "${files[@]}" hostile.spool
for view in records samples summary modules threads stacks; do
    case $view in samples | stacks) options=("${files[@]}") ;; *) options=() ;; esac
    checked "$BIN/spoolcat" --$view --color=never "${options[@]}" hostile.spool
    checked "$BIN/spoolcat" --$view --json "${options[@]}" hostile.spool
    # Colours are ours: nothing is left without them.
    "$BIN/spoolcat" --$view --color=always "${options[@]}" hostile.spool | sed 's/\x1b\[[0-9;]*m//g' >out
    keep "spoolcat --$view --color=always" out
done

# pprof: the texts of the document, one a line.
"$BIN/spool2pprof" --gzip-level 0 --comment $'comment\033[31m\x9b' -v "${files[@]}" hostile.spool >profile 2>err
keep spool2pprof err
if command -v protoc >/dev/null; then
    protoc --decode=perftools.profiles.Profile -I"$SRC/tools/spool2pprof" profile.proto <profile >texts 2>/dev/null ||
        protoc --decode_raw <profile >texts
    grep -E '^(string_table|6): ' texts >strings_of
    grep -q mapped strings_of || die "no texts: $(head -3 texts)"
    ! grep -E '\\(0[0-3][0-7]|177|302\\2[0-3][0-7]|[abfvnrt])' strings_of || die "spool2pprof writes controls"
else
    echo "the texts of spool2pprof: skipped, no protoc"
fi

# Symbols of ELF files and names of source files.
if command -v objcopy >/dev/null; then
    mkdir elf
    printf '# 1 "source\\033[31m\\177.c"\nint named(int x) { return x * 2; }\nint main(void) { return named(1); }\n' >p.i
    if gcc -g -O0 -Wl,--build-id=none -o elf/p p.i 2>/dev/null; then
        objcopy --redefine-sym named=$'symbol\033[31m\x7f\xc2\x9b\xff' elf/p
        at=$(readelf -sW elf/p | awk '$8 ~ /^symbol/ { print "0x" $2; exit }')
        make elf.spool <<END
version 4
interval 10ms
module p 40 0x400000-0x500000 0 /p
sample 10ms 40 40 p+$at
END
        for option in --demangle=none --demangle=full; do
            checked "$BIN/spool2folded" --sysroot elf --with-lines $option elf.spool
            grep -q 'symbol' out || die "no symbol: $(cat -v out)"
        done
        checked "$BIN/spoolcat" --samples --json --sysroot elf elf.spool
        checked "$BIN/spool2speedscope" --sysroot elf elf.spool
    fi
fi

# The command line, in messages of every tool; what is in an archive, in its lists.
odd=$(printf 'odd\033]0;x\007\233\302\233\nline')
cp hostile.spool "$odd.spool"
for tool in spoolcat spool2folded spool2pprof spool2speedscope spoolpack; do
    out=(-o "$odd.$tool")
    checked "$BIN/$tool" "$odd"
    silent=1 checked "$BIN/$tool" -v "$odd.spool" "${out[@]}"
    checked "$BIN/$tool" "--$odd"
    checked "$BIN/$tool" -o "$odd/absent" hostile.spool
done
# What all share
for option in --pid --symbols --perf-maps --root-at; do checked "$BIN/spool2folded" $option "($odd" hostile.spool; done
checked "$BIN/spoolpack" --list "$odd.spoolpack"
checked "$BIN/spoolpack" --check "$odd.spoolpack"
checked "$BIN/spoolrecord" -o "$odd.new" -- "./$odd"
checked "$BIN/spoolrecord" --pack "$odd" -p "$odd"
checked "$BIN/spoolrecord" -o "$odd/absent" -- true
"$BIN/spool2folded" --no-symbols --progress=always "$odd.spool" 2>progress >/dev/null
sed 's/\x1b\[K//g; s/\r//g' progress >out
keep progress out

clean
# It must be able to fail.
for bytes in '\x1b[31m' '\xc2\x9b' '\x9b' '\x7f' '\xed\xa0\x80'; do
    # shellcheck disable=SC2059
    printf "name$bytes" >out
    rm all
    keep bad out
    ! (clean 2>/dev/null) || die "not noticed: $bytes"
done
