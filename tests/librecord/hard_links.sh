#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Each instruction of a program is unwound to _start, however it was linked and wherever its unwind tables are.
# shellcheck source=_step.sh
. "$(dirname "$0")/_step.sh"

# link NAME [COMPILER] OPTION...
link() {
    local name=$1
    shift
    build "$name" hard_links.c "$@"
    step "./$name"
}

sections() { # PROGRAM: names of those that are loaded or not
    readelf -SW "$1" | sed -n 's/^ *\[ *[0-9]*\] \([^ ]*\) .*/\1/p'
}

# Parts that run rarely have an FDE of their own.
link pie gcc -pie
nm pie | grep -q 'split[.]cold' || { echo "FAILED: no split.cold in it" && bad=1; }
link no_pie gcc -no-pie
link static gcc -static -fno-omit-frame-pointer # neither have some of these
link static_pie gcc -static-pie
need ld.lld
link lld gcc -fuse-ld=lld -Wl,-z,lazy -fno-omit-frame-pointer # its linkage stubs have no unwind data
link clang clang
need ld.gold
link gold gcc -fuse-ld=gold
link one_segment gcc -Wl,-z,noseparate-code -fcf-protection

# No search table: a list of all FDEs.
link no_header gcc -Wl,--no-eh-frame-hdr
sections no_header | grep -q eh_frame_hdr && { echo "FAILED: there is a search table" && bad=1; }

# BOLT leaves the old table where it was, under a name like the new one's. The program header points to the new one.
head -c 3000 /dev/zero | tr '\0' '\021' >old
objcopy --rename-section .eh_frame=.eh_frame.new --rename-section .eh_frame_hdr=.eh_frame_hdr.new \
    --add-section .eh_frame=old pie two_tables || exit 1
[ "$(sections two_tables | grep -c '^[.]eh_frame')" = 3 ] || { echo "FAILED: two_tables has not two" && bad=1; }
step ./two_tables
for bolt in llvm-bolt llvm-bolt-15; do # where there is one, what it makes
    command -v $bolt >/dev/null || continue
    build relocations hard_links.c gcc -Wl,--emit-relocs
    $bolt relocations -o bolted --reorder-blocks=ext-tsp --split-functions >bolt.log 2>&1 || continue
    step ./bolted
    break
done

# R3: nothing but .debug_frame, as it is, compressed in both ways, and beside an .eh_frame of C library's start only.
no_eh="-fno-asynchronous-unwind-tables -fno-unwind-tables"
# shellcheck disable=SC2086
link debug_frame gcc $no_eh
sections debug_frame | grep -q '^[.]debug_frame' || { echo "FAILED: no .debug_frame" && bad=1; }
for way in zlib zlib-gnu; do
    objcopy --compress-debug-sections=$way debug_frame "debug_frame_$way" || exit 1
    step "./debug_frame_$way"
done
exit $bad
