/* SPDX-License-Identifier: MIT */
/*
 * UTF-8 validation by the table "well-formed UTF-8 byte sequences" of Unicode 3.9; nothing is
 * decoded.
 */
#include "utf8.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct sequence {
    unsigned size; /* bytes of the character, or of the maximal bad sequence */
    bool well_formed;
};

/* Judges what begins at p with a byte of 0x80 or more. Only the second byte's range depends on the
 * first: that is where overlong forms, surrogates and all above U+10FFFF are kept out. */
static struct sequence judge(const uint8_t *p, size_t available)
{
    unsigned lead = p[0];
    unsigned low = 0x80, high = 0xbf;
    unsigned size;

    if (lead >= 0xc2 && lead <= 0xdf) {
        size = 2;
    } else if (lead >= 0xe0 && lead <= 0xef) {
        size = 3;
        if (lead == 0xe0)
            low = 0xa0;
        else if (lead == 0xed)
            high = 0x9f;
    } else if (lead >= 0xf0 && lead <= 0xf4) {
        size = 4;
        if (lead == 0xf0)
            low = 0x90;
        else if (lead == 0xf4)
            high = 0x8f;
    } else {
        return (struct sequence){1, false};
    }
    for (unsigned i = 1; i < size; i++) {
        if (i == available || p[i] < low || p[i] > high)
            return (struct sequence){i, false};
        low = 0x80;
        high = 0xbf;
    }
    return (struct sequence){size, true};
}

size_t spoolint_utf8_valid_prefix(const void *data, size_t size)
{
    const uint8_t *p = data;
    size_t at = 0;

    while (at < size) {
        struct sequence s;

        if (p[at] < 0x80) {
            at++;
            /* Paths and names are ASCII nearly always. */
            while (size - at >= 8) {
                uint64_t eight;

                memcpy(&eight, p + at, 8);
                if ((eight & UINT64_C(0x8080808080808080)) != 0)
                    break;
                at += 8;
            }
            continue;
        }
        s = judge(p + at, size - at);
        if (!s.well_formed)
            return at;
        at += s.size;
    }
    return size;
}

size_t spoolint_utf8_bad_sequence(const void *data, size_t size)
{
    const uint8_t *p = data;

    assert(size > 0);
    if (p[0] < 0x80) /* the caller's mistake; still make progress */
        return 1;
    return judge(p, size).size;
}
