#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# live_top on spools that grow slowly, as a file and a pipe; on damaged ones; and how it ends.
. "$(dirname "$0")/_examples.sh"
top=$examples/live_top
make() {
    "$BUILD/tests/spoolmake" >"$1"
}

make whole <<'END'
version 4
interval 1ms
module lib 7 0x10000-0x20000 0 /nowhere/lib.so
names main "geo::area(int)" parse
name ctl "esc\x1b[2J\xc2\x9b1m"
samples 60 1ms 1ms 7 7 "geo::area(int)" main
samples 30 1ms 100ms 7 7 parse parse main
samples 9 1ms 200ms 7 7 lib+0x10 main
samples 1 1ms 300ms 7 7 ctl [truncated]
note 7 end "100 0 1"
END
# Self, and total however often a function is in a stack; the marker of a cut stack is no function.
table='   self  total  function
  60.0%  60.0%  geo::area(int)
  30.0%  30.0%  parse
   9.0%   9.0%  /nowhere/lib.so
   1.0%   1.0%  esc?[2J?1m
   0.0%  99.0%  main'
last() { # the last screen
    sed -n '/^the end: /,$p' "${1:-out}"
}

run 0 "$top" whole
silent
[ "$(last)" = "the end: 100 samples, 100 in all
$table" ] || failed "a complete spool: $(<out)"
run 0 "$top" -n 2 - <whole
[ "$(last | wc -l)" = 4 ] && [ "$(last | sed -n 4p)" = "  30.0%  30.0%  parse" ] || failed "two rows: $(<out)"
gzip -c whole >whole.gz
run 0 "$top" whole.gz
[ "$(last | tail -n +2)" = "$table" ] || failed "gzip: $(<out)"

# What grows: no screen is of more than what came since the one before, and the last is of everything.
size=$(stat -c %s whole)
slowly() { # in pieces that end inside records, for more than a second
    local at
    for ((at = 0; at < size; at += size / 8)); do
        tail -c +$((at + 1)) whole | head -c $((size / 8))
        sleep 0.17
    done
}
: >growing # by a recorder that has just begun
slowly >>growing &
"$top" --idle 20 growing >growing.out 2>&1 & # ends by the note, not by being idle
growing=$!
slowly | "$top" >pipe.out 2>&1 &
pipe=$!
head -c $((size - 20)) whole >cut
"$top" -i 1 cut >idle.out 2>idle.err &
idle=$!
"$top" cut >interrupted.out 2>&1 &
interrupted=$!

# Nothing comes any more: the writer's end of a pipe, an idle file, an interrupt.
run 0 "$top" <(cat cut)
says "live_top: note: the spool ends inside a record"
[ "$(last | head -n 1)" = "the end: 100 samples, 100 in all" ] || failed "a cut pipe: $(<out)"
for ((i = 0; i < 200; i++)); do
    grep -q '^100 samples' interrupted.out && break
    sleep 0.05
done
kill -INT $interrupted
wait $interrupted || failed "exit status $? after an interrupt"
grep -qx '  60.0%  60.0%  geo::area(int)' <(last interrupted.out) || failed "interrupted: $(<interrupted.out)"
wait $idle || failed "exit status $? when idle"
[ "$(last idle.out | head -n 1)" = "the end: 100 samples, 100 in all" ] || failed "an idle file: $(<idle.out)"
wait $growing || failed "exit status $? of a file that grows"
wait $pipe || failed "exit status $? of a pipe"
for name in growing pipe; do
    [ "$(last $name.out | tail -n +2)" = "$table" ] || failed "$name: $(<$name.out)"
    awk '/^[0-9]+ samples/ { if (all + $1 != $3) exit 1; all = $3; n++ }
        /^the end/ { exit !($3 == $5 && $5 >= all && n >= 1) }' $name.out ||
        failed "$name: screens do not add up: $(<$name.out)"
done

# What is wrong is told, and what was read before it is shown.
{ head -c $((size - 20)) whole && printf '\377\377\377\377\377\377\377\377\377\377\377\377'; } >corrupt
run 1 "$top" corrupt
says "live_top: reading: *at byte*"
[ "$(last | head -n 1)" = "the end: 100 samples, 100 in all" ] || failed "a corrupt file: $(<out)"
: >empty
run 1 "$top" -i 1 empty
says "live_top: empty: *"
run 1 "$top" nosuch
says "live_top: nosuch: No such file or directory"
run 1 "$top" "$0"
says "live_top: *live_top.sh: *"
run 2 "$top" whole whole
says "live_top: usage: *"
run 2 "$top" -n 0 whole
says "live_top: 0: not a number from 1 to 2147483647"
run 2 "$top" --nosuch
closed "$top" whole
exit $bad
