/* SPDX-License-Identifier: MIT */
/*
 * Several manifests may speak of one module: packed at another time, on another machine. Archives come in the order of
 * the options, and the first one that vouches for its file is believed; else the first one.
 */
#include "packed_ids.h"

#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "manifests.h"

struct mention {
    uint32_t module_id;
    uint32_t id; /* in ids; ascending in the order of reading */
    bool unverified;
};

struct packed_ids {
    struct packed_id *ids;
    size_t id_count, id_capacity;
    struct mention *mentions; /* in the end sorted, each module once */
    size_t mention_count, mention_capacity;
    const char *archive; /* being read */
};

static void add_module(struct packed_ids *p, const struct manifest_module *m)
{
    struct packed_id *id;
    uint8_t bytes[NOTES_BUILD_ID_MAX];
    size_t size = m->key ? notes_hex(m->key, strlen(m->key), bytes) : 0;

    if (size == 0 || p->id_count == UINT32_MAX)
        return;
    p->ids = cli_grow(p->ids, &p->id_capacity, p->id_count, sizeof *p->ids);
    id = &p->ids[p->id_count];
    *id = (struct packed_id){.size_bytes = (uint8_t)size, .unverified = m->unverified};
    memcpy(id->bytes, bytes, size);
    for (size_t i = 0; i < m->module_id_count; i++) {
        p->mentions =
            cli_grow(p->mentions, &p->mention_capacity, p->mention_count, sizeof *p->mentions);
        p->mentions[p->mention_count++] = (struct mention){.module_id = m->module_ids[i],
                                                           .id = (uint32_t)p->id_count,
                                                           .unverified = m->unverified};
    }
    p->id_count++;
}

static int add_manifest(void *user, const char *name, const struct manifest *m, const char *why)
{
    struct packed_ids *p = user;

    if (!m)
        cli_warn("%s: %s: %s; it is not used", p->archive, name, why);
    for (size_t i = 0; m && i < m->module_count; i++)
        if (!m->modules[i].build_id)
            add_module(p, &m->modules[i]);
    return 0;
}

static int compare_mentions(const void *a, const void *b)
{
    const struct mention *x = a, *y = b;

    if (x->module_id != y->module_id)
        return x->module_id < y->module_id ? -1 : 1;
    if (x->unverified != y->unverified)
        return x->unverified ? 1 : -1;
    return (x->id > y->id) - (x->id < y->id);
}

static int compare_module(const void *key, const void *mention)
{
    uint32_t id = *(const uint32_t *)key, other = ((const struct mention *)mention)->module_id;

    return (id > other) - (id < other);
}

static void sort(struct packed_ids *p)
{
    size_t kept = 0;

    qsort(p->mentions, p->mention_count, sizeof *p->mentions, compare_mentions);
    for (size_t i = 0; i < p->mention_count; i++)
        if (kept == 0 || p->mentions[kept - 1].module_id != p->mentions[i].module_id)
            p->mentions[kept++] = p->mentions[i];
    p->mention_count = kept;
}

struct packed_ids *packed_ids_read(const struct sym_context *context,
                                   const struct text_list *archives, const char *capture)
{
    struct packed_ids *p = cli_zeroed(1, sizeof *p);

    for (size_t i = 0; i < archives->count; i++) {
        const struct sym_archive *a = sym_context_archive(context, i);
        int rc;

        p->archive = archives->items[i];
        rc = a ? manifests_each(a, capture, add_manifest, p) : 0;
        if (rc < 0)
            cli_warn("%s: captures/%s: %s", p->archive, capture, sym_error_text(rc));
    }
    if (p->mention_count == 0) {
        packed_ids_free(p);
        return NULL;
    }
    sort(p);
    return p;
}

void packed_ids_free(struct packed_ids *p)
{
    if (!p)
        return;
    free(p->ids);
    free(p->mentions);
    free(p);
}

const struct packed_id *packed_ids_find(const struct packed_ids *p, uint32_t module_id)
{
    const struct mention *found =
        p ? bsearch(&module_id, p->mentions, p->mention_count, sizeof *p->mentions, compare_module)
          : NULL;

    return found ? &p->ids[found->id] : NULL;
}
