#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Documents of spool2speedscope by speedscope's schema and by what that cannot say; stacks are those of spool2folded.
set -eu
export LC_ALL=C
here=$(dirname "$0")
. "$here/_speedscope.sh"
stackpulse=$FIXTURES/stackpulse
convert=("$BIN/spool2speedscope" --sysroot "$FIXTURES/sysroot" --perf-map-dir "$PWD" --no-kernel-symbols)
folded=("$BIN/spool2folded" --sysroot "$FIXTURES/sysroot" --perf-map-dir "$PWD" --no-kernel-symbols --root=none)

speedscope_need

check() {
    node "$here/speedscope_check.mjs" "$@"
}

# Every readable fixture is a valid document, in each form, and an aggregated one has the stacks of spool2folded.
documents=()
compared=()
for spool in "$stackpulse"/*/*.spool; do
    name=$(basename "$spool")
    "${convert[@]}" -q -o "$name.json" "$spool" 2>err || continue
    documents+=("$name.json")
    for options in --weight=samples --no-merge-runs "--max-profiles 1" --no-overview; do
        # shellcheck disable=SC2086 # two words
        "${convert[@]}" -q $options -o "$name$options.json" "$spool"
        documents+=("$name$options.json")
    done
    "${convert[@]}" -q --merge-threads --weight=samples -o "$name.merged.json" "$spool"
    documents+=("$name.merged.json")
    # With several processes there is a frame more.
    grep -q '"name":"[^"]* [0-9]*"}' "$name.merged.json" || compared+=("$spool")
done
[ ${#documents[@]} -gt 100 ] || die "${#documents[@]} documents"
check "${documents[@]}" >/dev/null || die "documents are not valid"
[ ${#compared[@]} -gt 20 ] || die "${#compared[@]} compared"
merged=("${compared[@]##*/}")
merged=("${merged[@]/%/.merged.json}")
check --folded 0 --beside "${merged[@]}" || die "documents are not valid"
for spool in "${compared[@]}"; do
    "${folded[@]}" -q "$spool" >expected
    [ -s expected ] || continue
    diff expected "${spool##*/}.merged.json.folded" || die "$spool: other stacks than spool2folded's"
done
