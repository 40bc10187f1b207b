/* SPDX-License-Identifier: MIT */
/* Sources that show the same labels are one. */
#include "labelsets.h"

#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "envelope.h"

/* What a set shows, and nothing that it does not show. Compared as bytes, so there is no padding. */
struct labelset_key {
    uint64_t tid;
    int32_t pid;
    uint32_t process; /* texts; STRINGTABLE_EMPTY: unknown */
    uint32_t thread;
    uint32_t zero;
};

void labelsets_init(struct labelsets *s, unsigned wanted, struct stringtable *strings)
{
    memset(s, 0, sizeof *s);
    s->wanted = wanted;
    s->strings = strings;
    labels_init(&s->keys);
}

void labelsets_free(struct labelsets *s)
{
    labels_free(&s->keys);
    free(s->bytes);
    text_free(&s->packed);
    text_free(&s->clean);
}

/* The number of a clean name. */
static uint32_t name_text(struct labelsets *s, const char *name, size_t size)
{
    if (!name || size == 0)
        return STRINGTABLE_EMPTY;
    text_clean(name, size, &s->clean);
    return stringtable_text(s->strings, s->clean.data, s->clean.size);
}

uint32_t labelsets_of(struct labelsets *s, const struct source *source)
{
    struct labelset_key key = {0};
    uint32_t set;

    if (s->wanted & LABEL_PID)
        key.pid = source->pid;
    if (s->wanted & LABEL_TID)
        key.tid = source->tid;
    if (s->wanted & LABEL_PROCESS)
        key.process = name_text(s, source->comm, source->comm_size);
    if (s->wanted & LABEL_THREAD)
        key.thread = name_text(s, source->thread, source->thread_size);
    set = labels_intern(&s->keys, (const char *)&key, sizeof key);
    if (set >= s->bytes_capacity) {
        size_t old = s->bytes_capacity;

        s->bytes_capacity = old ? old * 2 : 64;
        s->bytes = cli_realloc(s->bytes, s->bytes_capacity, sizeof *s->bytes);
        for (size_t i = old; i < s->bytes_capacity; i++)
            s->bytes[i].begin = SIZE_MAX;
    }
    return set;
}

/* The unit keeps the number 0, which is not on the wire, from being taken for no number. */
static void pack_number(struct labelsets *s, const char *key, int64_t number)
{
    uint32_t index = stringtable_index_of(s->strings, key);

    envelope_pack_label(&s->packed,
                        &(struct envelope_label){.key = index, .num = number, .num_unit = index});
}

static void pack_name(struct labelsets *s, const char *key, uint32_t text)
{
    struct envelope_label label = {0};

    if (text == STRINGTABLE_EMPTY)
        return;
    label.key = stringtable_index_of(s->strings, key);
    label.str = stringtable_index(s->strings, text);
    envelope_pack_label(&s->packed, &label);
}

static void pack(struct labelsets *s, uint32_t set)
{
    struct labelset_key key;
    size_t size;

    memcpy(&key, labels_text(&s->keys, set, &size), sizeof key);
    s->bytes[set].begin = s->packed.size;
    if (s->wanted & LABEL_PID)
        pack_number(s, "pid", key.pid);
    if (s->wanted & LABEL_PROCESS)
        pack_name(s, "process", key.process);
    if (s->wanted & LABEL_THREAD)
        pack_name(s, "thread", key.thread);
    if (s->wanted & LABEL_TID)
        pack_number(s, "tid", (int64_t)key.tid);
    s->bytes[set].size = s->packed.size - s->bytes[set].begin;
}

const char *labelsets_packed(struct labelsets *s, uint32_t set, size_t *size)
{
    if (s->bytes[set].begin == SIZE_MAX)
        pack(s, set);
    *size = s->bytes[set].size;
    return *size > 0 ? s->packed.data + s->bytes[set].begin : NULL;
}
