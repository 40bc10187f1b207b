# SPDX-License-Identifier: MIT
# What names.sh and machine.sh share: a work folder with the program `lookup` in it, and comparing what it says with
# what readelf says (_expect.awk). Sourced.
. "$(dirname "${BASH_SOURCE[0]}")/_libsym.sh"
needs nm strip readelf awk gcc
with_libsym lookup lookup.c

# verdict ROW SYMBOLS ANSWERS: compares and counts.
verdict()
{
    local total bad
    awk -v mode=check -f "$here/_expect.awk" "$2" "$3" >differences
    read -r total bad < <(tail -n 1 differences)
    total=${total:-0}
    checked=$((checked + total))
    printf '%-48s %7d addresses of %d symbols' "$1" "$total" "$(grep -vc '^0 ' "$2")"
    if [ "$total" -eq 0 ] || [ "$bad" -gt 0 ]; then
        echo ": FAIL, $bad differences"
        sed '$d' differences
        failures=$((failures + 1))
    else
        echo
    fi
}

failed()
{
    echo "FAIL $1"
    failures=$((failures + 1))
}

# answer_by_address FILE <addresses: what lookup says, of the file's own tables only.
answer_by_address()
{
    ./lookup -a "$1"
}

# answer_by_offset FILE <addresses: the same by the public functions, which take file offsets and look for separate
# debug files, too. Addresses outside the segments with code have no offset and are left out.
answer_by_offset()
{
    local hex='function hex(s,   i, n) {
        sub(/^0x/, "", s)
        for (i = 1; i <= length(s); i++)
            n = n * 16 + index("0123456789abcdef", substr(s, i, 1)) - 1
        return n + 0
    }
    function tohex(n,   high) {
        high = int(n / 16777216)
        return high > 0 ? sprintf("%x%06x", high, n - high * 16777216) : sprintf("%x", n)
    }'
    readelf -lW "$1" | awk '$1 == "LOAD" && $0 ~ / R?.?E / { print $2, $3, $5 }' >segments
    # OFFSET PGOFF, and the address to put back in its place.
    awk "$hex"'
        FNR == NR { offset[++n] = hex($1); vaddr[n] = hex($2); size[n] = hex($3); next }
        {
            v = hex($1)
            for (i = 1; i <= n; i++)
                if (v >= vaddr[i] && v < vaddr[i] + size[i]) {
                    print tohex(v - vaddr[i] + offset[i]), tohex(offset[i] - offset[i] % 4096), $1
                    break
                }
        }' segments - >offsets
    ./lookup "$1" <offsets >offset_answers || return 1
    paste -d' ' offsets offset_answers |
        awk "$hex"'{ print $3, $5, $6 == "-" ? "-" : tohex(hex($6) + hex($3) - hex($1)), $7 }'
}
