/* SPDX-License-Identifier: MIT */
/* The annotations of one spool that are not names of processes and threads. */
#include "notes.h"

#include <stdlib.h>
#include <string.h>

#include "cli.h"

void notes_free(struct notes *n)
{
    free(n->once);
    free(n->build_ids);
    memset(n, 0, sizeof *n);
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

size_t notes_hex(const char *text, size_t size, uint8_t *bytes)
{
    if (size % 2 != 0 || size / 2 > NOTES_BUILD_ID_MAX)
        return 0;
    for (size_t i = 0; i < size; i += 2) {
        int high = hex_value(text[i]), low = hex_value(text[i + 1]);

        if (high < 0 || low < 0)
            return 0;
        bytes[i / 2] = (uint8_t)(high << 4 | low);
    }
    return size / 2;
}

static void take_build_id(struct notes *n, const struct spool_annotation *a)
{
    struct build_id_note *b;
    uint8_t bytes[NOTES_BUILD_ID_MAX];
    size_t size = notes_hex(a->text, a->text_size, bytes);

    if (size == 0 || a->number[0] > UINT32_MAX)
        return;
    n->build_ids =
        cli_grow(n->build_ids, &n->build_id_capacity, n->build_id_count, sizeof *n->build_ids);
    b = &n->build_ids[n->build_id_count++];
    b->module = (uint32_t)a->number[0];
    b->order = a->module.id;
    b->size_bytes = (uint8_t)size;
    memcpy(b->bytes, bytes, size);
}

static struct note *find_once(const struct notes *n, const char *key, size_t key_size)
{
    for (size_t i = 0; i < n->once_count; i++)
        if (n->once[i].key_size == key_size && memcmp(n->once[i].key, key, key_size) == 0)
            return &n->once[i];
    return NULL;
}

/* Unknown keys are kept, but a file of nothing but new keys must not cost quadratic time. */
#define ONCE_MAX 256

static void take_once(struct notes *n, const struct spool_annotation *a)
{
    struct note *note = find_once(n, a->key_text, a->key_size);

    if (!note) {
        if (n->once_count >= ONCE_MAX && a->key == SPOOL_NOTE_OTHER)
            return;
        n->once = cli_grow(n->once, &n->once_capacity, n->once_count, sizeof *n->once);
        note = &n->once[n->once_count++];
        note->key = a->key_text;
        note->key_size = a->key_size;
    }
    note->value = a->value;
    note->value_size = a->value_size;
}

void notes_record(struct notes *n, const struct spool_annotation *a)
{
    switch (a->key) {
    case SPOOL_NOTE_COMM:
    case SPOOL_NOTE_THREAD:
    case SPOOL_NOTE_KSYMBOL:
        return;
    case SPOOL_NOTE_BUILD_ID:
        take_build_id(n, a);
        return;
    case SPOOL_NOTE_LOST:
        n->lost = a->number[0];
        n->lost_known = true;
        break;
    case SPOOL_NOTE_END:
        n->lost = a->number[1];
        n->lost_known = true;
        break;
    default:
        break;
    }
    take_once(n, a);
}

/* By module; of two notes about one module the later stands first. */
static int compare_build_ids(const void *a, const void *b)
{
    const struct build_id_note *x = a, *y = b;

    if (x->module != y->module)
        return x->module > y->module ? 1 : -1;
    return (x->order < y->order) - (x->order > y->order);
}

void notes_finish(struct notes *n)
{
    size_t unique = 0;

    if (n->build_id_count > 1)
        qsort(n->build_ids, n->build_id_count, sizeof *n->build_ids, compare_build_ids);
    for (size_t i = 0; i < n->build_id_count; i++)
        if (i == 0 || n->build_ids[i].module != n->build_ids[unique - 1].module)
            n->build_ids[unique++] = n->build_ids[i];
    n->build_id_count = unique;
}

const uint8_t *notes_build_id(const struct notes *n, uint32_t module, size_t *size_bytes)
{
    size_t low = 0, high = n->build_id_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (n->build_ids[middle].module < module)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == n->build_id_count || n->build_ids[low].module != module)
        return NULL;
    *size_bytes = n->build_ids[low].size_bytes;
    return n->build_ids[low].bytes;
}

const char *notes_value(const struct notes *n, const char *key)
{
    const struct note *note = find_once(n, key, strlen(key));

    return note ? note->value : NULL;
}

bool notes_word(const char *value, unsigned index, char *out, size_t out_size)
{
    size_t length;

    for (; value && *value == ' '; value++)
        ;
    while (value && *value && index > 0) {
        value += strcspn(value, " ");
        value += strspn(value, " ");
        index--;
    }
    length = value ? strcspn(value, " ") : 0;
    if (length == 0 || length >= out_size)
        return false;
    memcpy(out, value, length);
    out[length] = '\0';
    return true;
}
