/* SPDX-License-Identifier: MIT */
/*
 * Not a secret and not a signature: whoever can write spools can make two with one id. It keeps captures apart that
 * nobody made for that, in folders whose names say nothing about them.
 */
#include "capture_id.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Two 64-bit states; the second takes in what the first has become, so they do not collide together. */
struct mix {
    uint64_t a, b;
};

static uint64_t stir(uint64_t x)
{
    x = (x ^ (x >> 29)) * UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 32)) * UINT64_C(0xd6e8feb86659fd93);
    return x ^ (x >> 29);
}

static void add_number(struct mix *m, uint64_t number)
{
    m->a = stir(m->a ^ number) + UINT64_C(0x632be59bd9b4e019);
    m->b = stir((m->b << 23 | m->b >> 41) ^ m->a) + number;
}

static void add_bytes(struct mix *m, const char *bytes, size_t size)
{
    uint64_t word = 0;

    add_number(m, size);
    for (size_t i = 0; i < size; i++) {
        word = word << 8 | (unsigned char)bytes[i];
        if (i % 8 == 7 || i + 1 == size) {
            add_number(m, word);
            word = 0;
        }
    }
}

bool capture_id_is_valid(const char *text)
{
    size_t size = strspn(text, "0123456789abcdef");

    return size == CAPTURE_ID_SIZE - 1 && text[size] == '\0';
}

static const struct spool_module *first_mapping(const struct spool_reader *reader)
{
    struct spool_counts counts;

    spool_reader_counts(reader, &counts);
    for (uint32_t id = 0; id < counts.modules; id++) {
        const struct spool_module *m = spool_reader_module(reader, id);

        if (m) /* no annotation */
            return m;
    }
    return NULL;
}

bool capture_id(struct spool_reader *reader, char id[CAPTURE_ID_SIZE])
{
    const struct spool_header *h = spool_reader_header(reader);
    const struct spool_module *m = h ? first_mapping(reader) : NULL;
    struct mix mix = {0, 0};

    id[0] = '\0';
    if (!m)
        return false;
    add_number(&mix, h->start_us);
    add_number(&mix, h->interval_ns);
    add_number(&mix, h->has_origin);
    if (h->has_origin) {
        add_number(&mix, h->origin.monotonic_ns);
        add_number(&mix, h->origin.sign < 0);
        add_number(&mix, h->origin.seconds);
        add_number(&mix, h->origin.nanoseconds);
    }
    add_number(&mix, (uint64_t)(int64_t)m->pid);
    add_number(&mix, m->kernel);
    add_number(&mix, m->start);
    add_number(&mix, m->end);
    add_number(&mix, m->file_offset);
    add_number(&mix, m->inode);
    add_number(&mix, m->dev_major);
    add_number(&mix, m->dev_minor);
    add_bytes(&mix, m->path, m->path_size);
    add_number(&mix, 0); /* the last of the path goes through both once more */
    snprintf(id, CAPTURE_ID_SIZE, "%016" PRIx64 "%016" PRIx64, stir(mix.a), stir(mix.b));
    return true;
}
