/* SPDX-License-Identifier: MIT */
/* Texts of a profile and their order in the document. */
#include "stringtable.h"

#include <stdlib.h>
#include <string.h>

#include "cli.h"

void stringtable_init(struct stringtable *t)
{
    memset(t, 0, sizeof *t);
    labels_init(&t->texts);
    stringtable_index(t, stringtable_text(t, "", 0));
}

void stringtable_free(struct stringtable *t)
{
    labels_free(&t->texts);
    free(t->indexes);
    free(t->order);
}

uint32_t stringtable_text(struct stringtable *t, const char *text, size_t size)
{
    return labels_intern(&t->texts, text, size);
}

uint32_t stringtable_index(struct stringtable *t, uint32_t text)
{
    t->indexes = cli_grow_zeroed(t->indexes, &t->index_capacity, text, sizeof *t->indexes);
    if (t->indexes[text] > 0 || (text == STRINGTABLE_EMPTY && t->count > 0))
        return t->indexes[text];
    t->order = cli_grow(t->order, &t->order_capacity, t->count, sizeof *t->order);
    t->order[t->count] = text;
    return t->indexes[text] = t->count++;
}

uint32_t stringtable_index_of(struct stringtable *t, const char *text)
{
    return stringtable_index(t, stringtable_text(t, text, strlen(text)));
}

const char *stringtable_get(const struct stringtable *t, uint32_t index, size_t *size)
{
    return labels_text(&t->texts, t->order[index], size);
}
