#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What the tools open, write, connect to and run, whatever a spool names: as the system sees it.
. "$(dirname "$0")/_security.sh"
need_strace

mkdir -p image/opt nothing maps
mkfifo image/opt/fifo fifo
mkdir image/opt/folder
echo secret >secret
ln -s "$PWD/secret" image/opt/out
ln -s ../../secret image/opt/climbs
truncate -s 1T image/opt/sparse
echo '900000 10 mapped' >map
ln -s "$PWD/map" maps/perf-41.map # the user named this folder
program=$FIXTURES/sysroot/opt/demo/ladder-O2
cp "$program" image/opt/other
{
    printf 'version 4\ninterval 10ms\norigin 1s 1000s\nnote 40 host "Linux 6.1 x86_64 here"\n'
    printf 'note 40 kernel "../../../../../../../../%s/secret - -"\n' "$PWD"
    number=0
    sample=
    for path in /dev/zero /dev/tty /dev/null /proc/self/mem /proc/kcore /proc/kmsg /sys/kernel/notes relative ../../secret \
        "$PWD/fifo" /opt/fifo /opt/folder /opt/out /opt/climbs /opt/sparse /opt/other '/opt/new\nline' '/opt/\x1b[31m' \
        '/opt/nul\0secret' /opt/../../../../../../../etc/passwd "$PWD"; do
        number=$((number + 1))
        printf 'module m%d 40 0x%x-0x%x 0x1000 "%s"\n' $number $((number * 0x100000)) $((number * 0x100000 + 0x10000)) "$path"
        sample="$sample m$number+0x1010"
    done
    printf 'module anon 41 0x900000-0xa00000 0 "//anon"\nkernel-module k 0xffffffff81000000-0xffffffff82000000 0 "[kernel]"\n'
    printf 'note 40 build-id "15 1122334455667788990011223344556677889900"\n'
    printf 'sample 10ms 40 40 %s k+0x10\nsample +10ms 41 41 anon\n' "$sample"
} >text
make hostile.spool <text

# 1: without a sysroot, and in one. Nothing but regular files, none of the kernel's own, none outside.
# /proc, /sys and /boot are looked at for the kernel, by fixed names.
allowed='^(hostile\.spool|\.|/proc/self/fd/[0-9]+|/proc/kallsyms|/proc/stat|/proc/sys/kernel/(osrelease|random/boot_id)|/sys/kernel/notes|/proc/4[01]/(stat|status)|/proc/[0-9]+/fd/[0-9]+)$'
for tool in "$BIN/spool2folded" "$BIN/spool2pprof --gzip-level 0" "$BIN/spool2speedscope" "$BIN/spoolcat --samples"; do
    for where in "--sysroot image" ""; do
        # shellcheck disable=SC2086 # lists of options
        DEBUGINFOD_URLS=http://127.0.0.1:9 traced timeout 60 $tool $where --perf-map-dir maps --debug-dir nothing hostile.spool
        [ -s out ] || die "no output: $tool $where: $(<err)"
        grep -vE "$allowed" opened >wrong || :
        equal wrong ''
        # Behind handles: files of ours, and of these only what the modules may name.
        case $where in
        '') ours="(hostile.spool|map)|/etc/passwd" ;; # what the user may read
        *) ours='(image/opt/(other|sparse)|hostile.spool|map)' ;;
        esac
        grep -E "^$PWD/|^/dev/|^/etc/passwd|^/proc/.*(mem|kcore|kmsg)\$" reached | grep -vE "^($PWD/$ours)\$" >wrong || :
        equal wrong ''
        wrote_nothing
        reached_no_other
        ! grep -qaE 'root:x|^secret' out || die "it shows what is outside"
    done
done

# 2: what was really opened behind the handles is regular, and inside: fstat is asked before, so no FIFO has a reader.
# shellcheck disable=SC2094
! timeout 1 bash -c 'echo x >fifo' || die "somebody reads the FIFO"

# 3: --no-symbols opens the spool.
for tool in spool2folded spool2speedscope "spoolcat --samples" "spool2pprof --gzip-level 0"; do
    # shellcheck disable=SC2086
    traced $BIN/$tool --no-symbols hostile.spool
    equal opened hostile.spool
    wrote_nothing
done
for view in --records --summary --modules --threads; do
    traced "$BIN/spoolcat" $view hostile.spool
    equal opened hostile.spool
    wrote_nothing
done

# 4: -o writes FILE, by way of a temporary file beside it, and nothing else.
traced "$BIN/spool2folded" --no-symbols -o made hostile.spool
sed 's/[^"]*"\([^"]*\)".*/\1/' written | grep -vE '^(\./)?\.?(made|spooltools)[^/]*$' >wrong || :
equal wrong ''
[ -s made ] && [ "$(find . -maxdepth 1 -newer hostile.spool -type f ! -name hostile.spool | wc -l)" -ge 1 ]
[ -z "$(find . -maxdepth 1 -name '.made*' -o -maxdepth 1 -name '.spooltools*')" ] || die "a temporary file is left"

# 5: what a converter looks at by itself, whether it is there or not: of a process that lives, as of one that is gone, on
# the kernel that runs.
boot=$(cat /proc/sys/kernel/random/boot_id 2>/dev/null) || boot=-
cat <<END | make plain.spool
version 4
interval 10ms
origin 1s $(date +%s)s
note $$ kernel "$(uname -r) - $boot"
module m $$ 0x400000-0x500000 0x1000 "/opt/demo/ladder-O2"
module anon $$ 0xa00000-0xb00000 0 "//anon"
module gone 2147483647 0xa00000-0xb00000 0 "//anon"
kernel-module k 0xffffffff81000000-0xffffffff82000000 0 "[kernel]"
kernel-module x 0xffffffffc0000000-0xffffffffc0100000 0 "ext4"
sample 10ms $$ $$ m+0x1010 anon k+0x10 x+0x10
sample +10ms 2147483647 2147483647 gone k+0x20
END
release=$(uname -r | sed 's/\./\\./g')
pid="($$|2147483647)"
fixed='/proc/(stat|kallsyms|sys/kernel/(osrelease|random/boot_id)|self/(root|ns/mnt|fd/[0-9]+))|/sys/kernel/notes'
fixed="$fixed|/proc/$pid/(stat|status|root|ns/mnt|exe|map_files/[0-9a-f]+-[0-9a-f]+)"
fixed="$fixed|\.|/tmp|(\.|/tmp|/proc/$pid/root/tmp)/perf-[0-9]+\.map"
fixed="$fixed|(/usr/lib/debug)?(/boot/(System\.map|vmlinux)-$release|/lib/modules/$release(/(.*/)?(System\.map|vmlinux|[^/]*\.ko[.a-z]*))?)"
fixed="$fixed|/usr/lib/debug/(.*/)?([0-9a-f]+|ladder-O2)\.debug|/opt/demo/(\.debug/)?ladder-O2(\.debug)?|$FIXTURES/sysroot|plain\.spool"
for where in "" "--sysroot $FIXTURES/sysroot"; do
    # shellcheck disable=SC2086
    traced "$BIN/spool2folded" $where plain.spool
    grep -vxE "$fixed" looked >wrong || :
    equal wrong ''
    for path in /proc/stat /proc/sys/kernel/random/boot_id /proc/$$/stat /proc/2147483647/stat ./perf-2147483647.map \
        /tmp/perf-2147483647.map /opt/demo/ladder-O2 plain.spool; do
        grep -qxF "$path" looked || die "it does not look at $path"
    done
done

# 6: no tool takes other rights. (The recorder may be refused what it needs.)
status=0
strace -f -qq -o calls -e trace=/^set.*[ug]id,capset,execve "$BIN/spoolrecord" -q -o recorded -- /bin/true >out 2>err </dev/null || status=$?
grep -q 'execve(".*spoolrecord"' calls || die "spoolrecord did not run: status $status: $(<err)"
! grep -vE 'execve|setsid|\+\+\+|---' calls >wrong || die "it takes rights: $(<wrong)"
