#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# custom_symbolizer: every address of a program against llvm-symbolizer, by offset and through mappings; names of our own;
# return addresses; logs with other text; what is wrong.
. "$(dirname "$0")/_examples.sh"
symbolizer=$examples/custom_symbolizer

cat >program.c <<'END'
static inline __attribute__((always_inline)) int twice(int x)
{
    return x * 2 + (x > 7 ? x / 3 : 0);
}
static inline __attribute__((always_inline)) int four_times(int x)
{
    return twice(twice(x));
}
__attribute__((noinline, noreturn)) void leave(void)
{
    for (;;)
        __asm__ volatile("");
}
__attribute__((noinline)) int work(int x)
{
    return four_times(x) - twice(x + 1);
}
__attribute__((noinline)) void last_call(void)
{
    leave();
}
int main(int argc, char **argv)
{
    (void)argv;
    if (argc > 5)
        last_call();
    return work(argc);
}
END
"$CC" -O2 -g -o program program.c || exit 1
program=$PWD/program

# Addresses in symbol tables and offsets in the file may differ.
read -r code_offset code_address code_size < <(readelf -lW program | awk '$1 == "LOAD" && / R E / { print $2, $3, $5 }')
to_offset() {
    printf '0x%x' $(($1 - code_address + code_offset))
}
function_range() { # NAME: start and size
    nm -S program | awk -v name="$1" '$4 == name { print "0x" $1, "0x" $2 }'
}

# ---- every byte of two functions, many times: chains and lines ----
: >addresses
for function in work main; do
    read -r start size < <(function_range $function)
    for ((i = 0; i < size; i++)); do
        printf '0x%x\n' $((start + i)) >>addresses
    done
done
while read -r address; do
    echo "$program $(to_offset "$address")"
done <addresses >asked
if command -v llvm-symbolizer >/dev/null; then
    # NAME and FILE:LINE:COLUMN in turn, an empty line behind each address; all but the last of them are inlined.
    llvm-symbolizer --obj=program --inlining <addresses | awk '
        function flush() { for (i = 1; i <= n; i++) print chain[i] (i < n ? " (inlined)" : ""); n = 0 }
        $0 == "" { flush(); print "-"; half = 0; next }
        !half { chain[++n] = "    " $0; half = 1; next }
        { sub(/:[0-9]+$/, ""); chain[n] = chain[n] " at " $0; half = 0 }' >expected
    run 0 "$symbolizer" <asked
    silent
    sed 's/^[^ ].*//' out | awk 'NR > 1 && $0 == "" { print "-" } $0 != "" { print } END { print "-" }' >got
    # Bytes of line 0 are known by their function alone.
    sed -i 's/ at [^ ]*:0$//; s/ at [^ ]*:0 (inl/ (inl/' expected got
    diff expected got >differences || failed "llvm-symbolizer (<) says: $(head -n 20 differences)"
    [ "$(grep -c 'twice at .*/program.c:3 (inlined)' got)" -gt 5 ] || failed "no inlined functions: $(head got)"
else
    echo "left out: no llvm-symbolizer"
fi

# More than a batch, with the same addresses again: answers stay with their lines.
run 0 "$symbolizer" <asked
mv out once
for ((lines = 0; lines <= 5000; lines += $(wc -l <asked))); do
    cat asked >&3
    cat once
done 3>many >many.expected
run 0 "$symbolizer" <many
cmp -s out many.expected || failed "many answers differ from those of the same question by itself"

# ---- a log of a process: mappings, text, names of no file ----
base=$((0x555500000000))
{
    printf '%x-%x r--p 00000000 00:00 0 %s\n' $base $((base + code_address)) "$program"
    printf '%x-%x r-xp %08x 00:00 0                    %s\n' $((base + code_address)) \
        $((base + code_address + code_size)) "$((code_offset))" "$program"
    echo "7f0000000000-7f0000010000 rwxp 00000000 00:00 0 "
} >maps
read -r work _ < <(function_range work)
read -r last_call last_size < <(function_range last_call)
printf '%x 20 generated\n%x 10 _ZN2vm7executeEPKc\n%x 4 replaced\n' $((base + work)) $((0x7f0000000100)) \
    $((0x7f0000000200)) | sort >names
cat >log <<END
*** crashed ***
#0 $(printf '0x%x' $((base + last_call)))
#1 0x7f0000000104
 x 0x7f0000000110

#2 0x123
END
run 0 "$symbolizer" -m maps -n names <log
silent
sed -i 's/program.c:\(19\|20\)$/program.c:LINE/' out # of the brace or of its name: compilers differ
diff - out <<END || failed "the log is not named"
*** crashed ***
#0 $(printf '0x%x' $((base + last_call)))
    last_call at $PWD/program.c:LINE
#1 0x7f0000000104
    vm::execute(char const*)
 x 0x7f0000000110
    ?? ($("$symbolizer" -m maps <<<0x7f0000000110 | sed -n 's/.*(\(.*\))/\1/p'))

#2 0x123
    ?? (the address is in no module)
END
# Names of our own come before those of files.
run 0 "$symbolizer" -n names -m maps < <(printf '0x%x\n' $((base + work + 0x1f)) $((base + work + 0x20)))
[ "$(sed -n 2p out)" = "    generated" ] || failed "an own name: $(<out)"
! grep -q generated <(tail -n +3 out) || failed "an own name behind its end: $(<out)"

# A call that never returns is the last instruction of its function: what it would return to is another one's.
printf '0x%x\n' $((base + last_call)) $((base + last_call + last_size)) >backtrace
run 0 "$symbolizer" -b -m maps <backtrace
[ "$(grep -c '    last_call at ' out)" = 2 ] || failed "a return address: $(<out)"
run 0 "$symbolizer" -m maps <backtrace
[ "$(grep -c '    last_call at ' out)" = 1 ] || failed "no return address: $(<out)"

# ---- what is wrong ----
run 0 "$symbolizer" </dev/null
equal=$(<out)
[ -z "$equal" ] || failed "nothing was asked: $equal"
printf '/etc/hostname 0x10\n/no such file 0x10\nesc\033[2J\n%s' "$program 0x" >odd
run 0 "$symbolizer" <odd
grep -qx 'esc?\[2J' out || failed "an escape sequence: $(<out)"
[ "$(grep -c '?? (' out)" -ge 2 ] || failed "files that are none: $(<out)"
printf 'x\0y 0x1\n' >odd
run 0 "$symbolizer" <odd
[ "$(head -n 1 out)" = 'x?y 0x1' ] && [ "$(wc -l <out)" = 2 ] || failed "a byte of 0 in a line: $(<out)"
run 1 "$symbolizer" -m /dev/zero </dev/null
says "custom_symbolizer: /dev/zero: line 1: too long, or no text"
echo '20 zz name' >bad
run 1 "$symbolizer" -n bad </dev/null
says "custom_symbolizer: bad: line 1: not START SIZE NAME"
printf '20 10 a\n2f 10 b\n' >bad
run 1 "$symbolizer" -n bad </dev/null
says "custom_symbolizer: bad: line 2: not behind the range before it"
echo 'ffffffffffffffff 2 a' >bad
run 1 "$symbolizer" -n bad </dev/null
says "custom_symbolizer: bad: line 1: not behind *"
echo '1000-2000 r-xp' >bad
run 1 "$symbolizer" -m bad </dev/null
says "custom_symbolizer: bad: line 1: not a line of /proc/PID/maps"
run 1 "$symbolizer" -m nosuch </dev/null
says "custom_symbolizer: nosuch: No such file or directory"
run 1 "$symbolizer" -m / </dev/null
says "custom_symbolizer: /: Is a directory"
run 1 "$symbolizer" </
says "custom_symbolizer: standard input: Is a directory"
run 2 "$symbolizer" 0x10
says "custom_symbolizer: usage: *"
run 2 "$symbolizer" -x
closed "$symbolizer" <many
exit $bad
