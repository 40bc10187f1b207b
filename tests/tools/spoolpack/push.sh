#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The commands of README.md that send profiles to databases, with something local in their place.
. "$(dirname "$0")/_common.sh"
. "$(dirname "$0")/_fleet.sh"
for program in node curl jq; do
    command -v $program >/dev/null || { echo "no $program"; exit 77; }
done
unset http_proxy HTTP_PROXY all_proxy ALL_PROXY
captures 3 spools
mkdir profiles database
for spool in spools/*; do
    name=$(basename "$spool" .spool)
    "$BIN/spool2pprof" -q "${files[@]}" -o "profiles/$name.pb.gz" "$spool"
    node "$SRC/tests/decode_pprof.mjs" "profiles/$name.pb.gz" >profile.json || die "no profile: $name"
    grep -q '"plugin_spin"' profile.json || die "no names: $name"
done

node "$(dirname "$0")/profile_stub.mjs" database &
stub=$!
trap 'kill $stub' EXIT
for ((i = 0; i < 1500; i++)); do
    [ ! -e database/port ] || break
    sleep 0.02
done
PYROSCOPE=127.0.0.1:$(<database/port)
PARCA=$PYROSCOPE

# sent COMMAND LINES: each profile arrives as it is, and the database is told this.
sent() {
    rm -f database/log
    eval "$1" >out 2>err
    equal out ''
    equal err ''
    equal database/log "$2"
}
sent "$(readme /ingest)" 'pyroscope host0 1700000000 1700000002
pyroscope host1 1700000060 1700000062
pyroscope host2 1700000120 1700000122'
sent "$(readme /api/profiles/writeraw)" 'parca host0
parca host1
parca host2'
for i in 0 1 2 3 4 5; do
    same "profiles/host$((i % 3))-$((1700000000 + i % 3 * 60)).pb.gz" database/$i.pb.gz
done

# What the database refuses, or what is not there, is told.
rm profiles/host1-1700000060.pb.gz
eval "$(readme /ingest)" >out 2>err
grep -qx 'not sent: host1-1700000060' err || die "$(<err)"
[ "$(grep -c '^not sent' err)" = 1 ] || die "$(<err)"
PARCA=$PARCA/elsewhere
eval "$(readme /api/profiles/writeraw)" >out 2>err
[ "$(grep -c '^not sent' err)" = 2 ] || die "$(<err)"
