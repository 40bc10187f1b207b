#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Generated code without unwind data (generated.c): told by its instructions or by a frame pointer where these hold, cut
# and marked where not; never a frame that was not there.
# shellcheck source=_live.sh
. "$(dirname "$0")/_live.sh"

case $(uname -m) in
x86_64) ;;
*) echo "generated.c has no code for $(uname -m)" && exit 77 ;;
esac
gcc -std=gnu11 -O2 -fomit-frame-pointer -g -Wall -Wextra -Werror "$here/generated.c" -o generated || die "generated.c"

# stacks NAME MODE: NAME.stacks has the stacks in generated code: "COUNT main;outer;G;middle;G;inner". What runs outside of
# them is left out: start and end of the program, and the loop of main.
stacks() {
    record "$1" -- ./generated "$2" 0.5
    fold "$1"
    awk '{ count = $NF; sub(/ [0-9]+$/, ""); gsub(/\/\/anon\+0x[0-9a-f]*/, "G") }
         /(^|;)(outer|middle|inner|spin|plain|G)(;|$)/ {
             cut = sub(/^\[truncated\];/, "")
             if (!cut && !sub(/^_start;__libc_start_main[^;]*;(__libc_start_call_main;)?main;/, "main;")) $0 = "unrooted;" $0
             sub(/;spin$/, "")
             seen[(cut ? "cut " : "whole ") $0] += count
         }
         END { for (stack in seen) print seen[stack], stack }' "$1.folded" | sort -rn >"$1.stacks"
}

# only NAME PATTERN [SHARE]: all stacks match, but for that share of samples; and there are some
only() {
    awk -v pattern="$2" -v share="${3:-0}" '{ n += $1; k = $0; sub(/^[0-9]+ /, "", k); if (k !~ pattern) { other += $1; print } }
        END { printf "%d samples, %d others\n", n, other; exit !(n > 300 && other <= share * n) }' "$1.stacks" >"$1.others" ||
        failed "$1: $(cat "$1.others")"
    echo "$1: $(tail -n 1 "$1.others")"
}

# Where the program is within a call from G into C, or in G itself.
chain='whole main;outer(;G(;middle(;G(;inner)?)?)?)?$'
stacks trampoline trampoline
only trampoline "^$chain"
stacks frames frames
only frames "^$chain"
stacks leaf leaf
only leaf '^whole main;outer(;plain(;middle(;plain(;inner(;G(;G)?)?)?)?)?)?$'

# Its callers cannot be told, and what is in the registers and on the stack must not be taken for them.
stacks neither neither
only neither '^(cut (G;inner|G;middle|G)|whole main;outer)$'
[ "$(field neither truncated_stacks)" -gt 300 ] || failed "neither: the stacks are not counted: $(cat neither.json)"

# Each sample is of one of the two layouts. The wrong one leads to no return address, but for what calls made in the other
# layout have left in a frame that writes nothing of its own: code that changes under its addresses cannot be told better.
stacks rewritten rewritten
only rewritten "^($chain|cut (G;)?(middle;)?G(;inner)?\$)" 0.01

# V8 keeps frame pointers, in code that no file has and in builtins of its own without unwind data, which call each other
# through code that jumps on.
if command -v node >/dev/null; then
    cat >work.js <<'END'
function leaf(n) { let s = 0; for (let i = 0; i < n; i++) s += Math.sqrt(i) * i % 7; return s }
function recurse(d) { return d == 0 ? leaf(3000) : recurse(d - 1) + 1 }
function sorts() { return [5, 3, 1, 9, 7, 2].sort((a, b) => { leaf(50); return a - b }) }
function main() { while (process.cpuUsage().user < 7e5) { recurse(20); sorts(); [1, 2, 3].map(x => leaf(x * 100)) } }
main()
END
    record node -- node work.js
    n=$(field node samples)
    cut=$(field node truncated_stacks)
    echo "node: $n samples, $cut cut"
    [ "$n" -gt 300 ] && [ $((cut * 50)) -le "$n" ] || failed "node: $cut of $n stacks are cut: $(head -n 5 node.err)"
else
    left_out "V8: there is no node"
fi

exit $bad
