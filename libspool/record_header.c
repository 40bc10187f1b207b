/* SPDX-License-Identifier: MIT */
/*
 * The header behind a spool's magic: decoding and encoding it.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "error.h"
#include "format.h"
#include "record.h"

static int refuse_header(struct error_state *e, const char *format, uint64_t value)
    __attribute__((format(printf, 2, 0)));

static int refuse_header(struct error_state *e, const char *format, uint64_t value)
{
    char detail[SPOOLINT_ERROR_SIZE];

    /* cppcheck-suppress wrongPrintfScanfArgNum ; every format has one 64-bit conversion */
    snprintf(detail, sizeof detail, format, value);
    return spoolint_error_set(e, SPOOL_ERR_CORRUPT, "header has %s", detail);
}

static int header_stopped(const struct cursor *c, struct error_state *e)
{
    if (c->state == CURSOR_SHORT)
        return DECODE_SHORT;
    return spoolint_error_set(e, SPOOL_ERR_CORRUPT, "header has a number of more than 64 bits");
}

static int decode_origin(struct cursor *c, struct spool_header *h, struct error_state *e)
{
    uint64_t selector = cursor_uv(c), nanoseconds;
    int64_t sign;

    if (c->state != CURSOR_OK)
        return header_stopped(c, e);
    if (selector > 1)
        return refuse_header(e, "clock origin selector %" PRIu64 " instead of 0 or 1", selector);
    if (selector == 0)
        return DECODE_OK;
    h->origin.monotonic_ns = cursor_uv(c);
    sign = cursor_sv(c);
    if (c->state != CURSOR_OK)
        return header_stopped(c, e);
    if (sign != 1 && sign != -1)
        return spoolint_error_set(e, SPOOL_ERR_CORRUPT,
                                  "header has clock origin sign %" PRId64 " instead of 1 or -1",
                                  sign);
    h->origin.sign = (int32_t)sign;
    h->origin.seconds = cursor_uv(c);
    nanoseconds = cursor_uv(c);
    if (c->state != CURSOR_OK)
        return header_stopped(c, e);
    if (nanoseconds > FORMAT_NANOSECONDS_MAX)
        return refuse_header(e, "%" PRIu64 " nanoseconds in its clock origin", nanoseconds);
    h->origin.nanoseconds = (uint32_t)nanoseconds;
    if (h->origin.seconds > (uint64_t)INT64_MAX &&
        (sign == 1 || h->origin.seconds > (uint64_t)INT64_MAX + 1 || nanoseconds != 0))
        return refuse_header(e, "a clock origin %" PRIu64 " seconds from 1970, beyond 64 bits",
                             h->origin.seconds);
    h->has_origin = true;
    return DECODE_OK;
}

int spoolint_record_decode_header(struct cursor *c, struct spool_header *h, struct error_state *e)
{
    uint64_t interval;

    h->start_us = cursor_uv(c);
    interval = cursor_uv(c);
    if (c->state != CURSOR_OK)
        return header_stopped(c, e);
    if (h->version >= FORMAT_VERSION_ORIGIN) {
        h->interval_ns = interval;
        return decode_origin(c, h, e);
    }
    h->interval_us = interval;
    h->interval_ns = interval > UINT64_MAX / 1000 ? UINT64_MAX : interval * 1000;
    return DECODE_OK;
}

void spoolint_record_encode_header(struct byte_buffer *b, const struct spool_header *h)
{
    uint8_t *p;

    if (!spoolint_buffer_reserve(b, FORMAT_MAGIC_SIZE + 7 * FORMAT_VARINT_MAX_SIZE))
        return;
    p = b->data + b->size;
    memcpy(p, FORMAT_MAGIC_STEM, FORMAT_MAGIC_STEM_SIZE);
    p[FORMAT_MAGIC_STEM_SIZE] = (uint8_t)('0' + h->version);
    p[FORMAT_MAGIC_STEM_SIZE + 1] = 0;
    p = varint_write(p + FORMAT_MAGIC_SIZE, h->start_us);
    if (h->version < FORMAT_VERSION_ORIGIN) {
        p = varint_write(p, h->interval_us);
    } else {
        p = varint_write(p, h->interval_ns);
        p = varint_write(p, h->has_origin);
        if (h->has_origin) {
            p = varint_write(p, h->origin.monotonic_ns);
            p = varint_write(p, zigzag_encode(h->origin.sign));
            p = varint_write(p, h->origin.seconds);
            p = varint_write(p, h->origin.nanoseconds);
        }
    }
    b->size = (size_t)(p - b->data);
}
