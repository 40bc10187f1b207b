#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# -o, standard output and their failures; the same input gives the same bytes, whichever way it comes.
. "$(dirname "$0")/_common.sh"

pprof=("$spool2pprof" --no-symbols)
cp "$synth/churn.spool" in
"${pprof[@]}" in >expected

run 0 "${pprof[@]}" in
same out expected
equal err ''
run 0 "${pprof[@]}" in -o file
equal out ''
same file expected
cat in | "${pprof[@]}" >piped
same piped expected
gzip -c in >in.gz
run 0 "${pprof[@]}" in.gz
same out expected
run 0 "${pprof[@]}" --timestamps in
mv out events
cat in | "${pprof[@]}" --timestamps >piped
same piped events

# One gzip member without time and name, of no system in particular; level 0 is what is in it.
[ "$(head -c 10 expected | od -An -tx1 | cut -c1-24)" = " 1f 8b 08 00 00 00 00 00" ] || die "gzip header"
[ "$(head -c 10 expected | tail -c 1 | od -An -tx1)" = " 03" ] || die "gzip header: system"
gzip -dc expected >bare
run 0 "${pprof[@]}" --gzip-level 0 in
same out bare
for level in 1 9; do
    run 0 "${pprof[@]}" --gzip-level $level in
    gzip -dc out | cmp - bare || die "level $level packs something else"
done

# A failure leaves the old file alone.
echo old >file
run 1 "${pprof[@]}" -o file "$cases/unknown-tag-255.spool"
equal file old
run 1 "${pprof[@]}" -o file in absent
equal file old
run 1 "${pprof[@]}" --timestamps -o file in absent
equal file old
run 2 "${pprof[@]}" --labels=x -o file in
equal file old

# A full disk, a closed descriptor, a closed pipe.
for options in "" --timestamps --gzip-level=0; do
    if [ -w /dev/full ]; then
        status=0
        # shellcheck disable=SC2086 # one word or none
        "${pprof[@]}" $options in >/dev/full 2>err || status=$?
        [ $status = 1 ] || die "full disk, $options: exit $status"
        equal err 'spool2pprof: standard output: write failed: No space left on device'
    fi
    set +e
    # shellcheck disable=SC2086
    "${pprof[@]}" --gzip-level=0 $options "$synth/deep.spool" in in in in in in 2>err | head -c 1 >out
    status=${PIPESTATUS[0]}
    set -e
    [ "$status" = 141 ] || [ "$status" = 0 ] || die "closed pipe, $options: exit $status"
    equal err ''
done
status=0
"${pprof[@]}" in >&- 2>err || status=$?
[ $status = 1 ] || die "closed standard output: exit $status"

# A module that ends before it starts maps nothing, so it is no program either.
make odd <<'END'
module a 7 0x3000-0x2000 0 /first
module b 7 0x4000-0x5000 0 /second
sample 1ms 7 7 b
END
run 0 "${pprof[@]}" --gzip-level=0 odd
grep -aq /second out || die "no /second"
if grep -aq /first out; then
    die "a mapping for /first"
fi

# No terminal gets it.
if command -v script >/dev/null; then
    script -qec "$spool2pprof --no-symbols in" /dev/null >out 2>&1 </dev/null && die "a profile on a terminal"
    grep -q 'terminal' out || die "$(<out)"
fi
exit 0
