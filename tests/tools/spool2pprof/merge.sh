#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Several spools as one profile are what go tool pprof makes of their single profiles, in whatever grouping.
. "$(dirname "$0")/_common.sh"
. "$SRC/tests/consumers/_pprof.sh"
pprof_need

# One program at two places, with equal and with other stacks; another process; another interval.
make a <<'END'
interval 10ms
name f f
module app 1 0x1000-0x3000 0 /opt/app
comm 1 app
sample 1ms 1 1 f app+0x10
sample 2ms 1 1 app+0x20 app+0x10
sample 3ms 1 2 f app+0x10
END
make b <<'END'
interval 5ms
name f f
module app 1 0x51000-0x53000 0 /opt/app
module lib 1 0x70000-0x71000 0x1000 /opt/lib.so
comm 1 app
sample 1ms 1 1 f app+0x10
sample 2ms 1 1 lib+0x1020 app+0x10
END
make c <<'END'
interval 10ms
module app 7 0x1000-0x3000 0 /opt/app
module other 7 0x9000-0xa000 0 //anon
sample 1ms 7 7 app+0x20 app+0x10
sample 1ms 7 7 other+0x20 app+0x10
END

# agrees OUT FILE...: the same stacks, labels, totals.
agrees() {
    local i kinds=() type
    for i in 1 2; do # each is decoded once
        _pprof_decode "${!i}"
        for type in 0 1; do
            LC_ALL=C perl "$_pprof_folder/pprof_text.pl" folded $type <pprof/decode.txt
            LC_ALL=C perl "$_pprof_folder/pprof_text.pl" labels $type <pprof/decode.txt
        done >side$i
        kinds[i]="$(grep -c '^sample {' pprof/decode.txt) samples, $(grep -c '^mapping {' pprof/decode.txt) mappings"
    done
    diff -u side1 side2 || die "$1 and $2: other stacks or labels"
    [ "${kinds[1]}" = "${kinds[2]}" ] || die "$1 and $2: ${kinds[*]}"
}

for spool in a b c "a b" "b a" "b c" "a b c" "c b a" "a a"; do
    # shellcheck disable=SC2086 # a list
    "$spool2pprof" --no-symbols $spool >"${spool// /}.pb.gz"
    pprof_check "${spool// /}.pb.gz"
done
for spool in "a b" "b a" "b c" "a b c" "c b a" "a a"; do
    singles=()
    for single in $spool; do
        singles+=("$single.pb.gz")
    done
    pprof_proto theirs.pb.gz -symbolize=none "${singles[@]}"
    agrees "${spool// /}.pb.gz" theirs.pb.gz
done
# In any grouping.
pprof_proto grouped.pb.gz -symbolize=none ab.pb.gz c.pb.gz
agrees abc.pb.gz grouped.pb.gz
pprof_proto grouped.pb.gz -symbolize=none a.pb.gz bc.pb.gz
agrees abc.pb.gz grouped.pb.gz

# The file of the one is the file of the other, where it was first.
pprof_decode ab.pb.gz >decoded
[ "$(grep -c memory_start decoded)" = 2 ] || die "mappings of one file: $(grep memory_start decoded)"
grep -q 'memory_start: 4096$' decoded || die "not the first range"
exit 0
