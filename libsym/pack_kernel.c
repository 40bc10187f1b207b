/* SPDX-License-Identifier: MIT */
/*
 * Packing what is known of kernel addresses. A capture has one such file, which is replaced as a whole when a later pack
 * of the same capture knows more: so it is written with what was there before.
 */
#include "pack_kernel.h"

#include "pack.h"
#include "packed.h"
#include "resolve_kernel.h"
#include "strtab.h"

#include <stdlib.h>

/* ---- which addresses ---- */

static int take_query(struct sym_context *c, const struct sym_query *q, struct symint_pair *out,
                      size_t *count)
{
    uint32_t event;
    bool kernel = q->kernel;
    if (q->module != SYM_NO_MODULE) {
        if (q->module >= c->registry.count)
            return symint_fail(c, SYM_ERR_MISUSE, "module %u of %u", q->module, c->registry.count);
        kernel |= c->registry.modules[q->module].kernel;
    }
    uint64_t address = q->abs - q->return_address;
    if (kernel &&
        symint_ksymbols_find(&c->ksymbols, address, q->time, &event) == SYMINT_KSYMBOL_UNTOUCHED)
        out[(*count)++] = (struct symint_pair){.key = address, .value = q->module};
    return 0;
}

int symint_kernel_addresses(struct sym_context *c, const struct sym_query *queries, size_t count,
                            struct symint_pair **addresses, size_t *address_count)
{
    size_t n = 0;
    *address_count = 0;
    *addresses = NULL;
    if (!c->open)
        return symint_fail(c, SYM_ERR_MISUSE, "the context is not open");
    if (count > 0 && queries == NULL)
        return symint_fail(c, SYM_ERR_MISUSE, "%zu queries but no list of them", count);
    struct symint_pair *pairs = symint_scratch_alloc(count, sizeof(*pairs));
    if (pairs == NULL)
        return symint_fail_plain(c, SYM_ERR_NOMEM);
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < count; i++)
        rc = take_query(c, &queries[i], pairs, &n);
    if (rc == 0 && symint_sort_pairs(pairs, n) != 0)
        rc = symint_fail_plain(c, SYM_ERR_NOMEM);
    if (rc != 0) {
        free(pairs);
        return rc;
    }
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if (kept == 0 || pairs[kept - 1].key != pairs[i].key)
            pairs[kept++] = pairs[i];
        else if (pairs[i].value < pairs[kept - 1].value)
            pairs[kept - 1].value = pairs[i].value;
    *addresses = pairs;
    *address_count = kept;
    return 0;
}

const struct symint_module *symint_address_module(const struct sym_context *c,
                                                  const struct symint_pair *address)
{
    return address->value != SYM_NO_MODULE ? &c->registry.modules[address->value] : NULL;
}

/* ---- what is known ---- */

struct packing {
    struct sym_context *c;
    enum sym_level level;
    struct symint_packed_set known;
    struct symint_packer *packer;
    size_t added; /* addresses that are not known at that level yet */
};

static bool is_known(const struct packing *p, uint64_t address)
{
    bool known = false;
    for (size_t i = 0; !known && i < p->known.count; i++)
        known = symint_packed_has(p->known.items[i], address, p->level);
    return known;
}

/* What was packed before, at a level of `least` or more. 1, 0 or SYM_ERR_NOMEM. */
static int recall(const struct packing *p, uint64_t address, enum sym_level least,
                  struct symint_facts *out)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < p->known.count; i++)
        if (symint_packed_level(p->known.items[i]) >= least)
            rc = symint_packed_exact(p->known.items[i], &p->c->strings, NULL, address, out);
    return rc;
}

/* Packs one address. 1; 0: nothing names it; an error. */
static int pack_address(struct packing *p, const struct symint_pair *address)
{
    const bool names = p->level == SYM_LEVEL_NAMES;
    const struct sym_options all = {.no_inlines = names, .no_lines = names};
    struct symint_facts facts;
    int rc = recall(p, address->key, p->level, &facts);
    if (rc == 0 && p->c->kernel_state == SYM_KERNEL_OK) {
        rc = symint_kernel_facts(p->c, address->key, symint_address_module(p->c, address), &all,
                                 p->level, &facts);
        p->added += rc > 0;
    }
    if (rc == 0)
        rc = recall(p, address->key, SYM_LEVEL_NAMES, &facts);
    if (rc <= 0)
        return rc;
    rc = symint_packer_add(p->packer, &facts);
    return rc == 0 ? 1 : rc;
}

static int pack_addresses(struct packing *p, const struct symint_pair *addresses, size_t count,
                          struct sym_packed *out)
{
    int rc = 0;
    out->address_count = count;
    for (size_t i = 0; i < count; i++)
        out->known_count += is_known(p, addresses[i].key);
    if (out->known_count == count) {
        out->named_count = count; /* nothing else is packed */
        return 0;
    }
    p->packer = symint_packer_new(p->level, NULL, p->c->strings.seed);
    if (p->packer == NULL)
        return SYM_ERR_NOMEM;
    for (size_t i = 0; rc >= 0 && i < count; i++) {
        rc = pack_address(p, &addresses[i]);
        out->named_count += rc > 0;
    }
    if (rc >= 0 && p->added > 0)
        rc = symint_packer_finish(p->packer, &out->data, &out->size_bytes);
    return rc < 0 ? rc : 0;
}

int sym_pack_kernel(struct sym_context *c, const struct sym_query *queries, size_t count,
                    const struct sym_pack_options *options, struct sym_packed *out)
{
    struct symint_pair *addresses;
    size_t address_count;
    struct sym_pack_options o;
    *out = (struct sym_packed){0};
    if (!symint_pack_options(options, &o))
        return symint_fail(c, SYM_ERR_MISUSE, "options for packing that do not exist");
    struct packing p = {.c = c, .level = o.level};
    int rc = symint_kernel_addresses(c, queries, count, &addresses, &address_count);
    if (rc != 0)
        return rc;
    if (o.known_count > 0 && c->capture.id != NULL)
        rc = symint_packed_load_kernel(&p.known, o.known, o.known_count, c->capture.id);
    if (rc == 0)
        rc = pack_addresses(&p, addresses, address_count, out);
    symint_packer_free(p.packer);
    symint_packed_set_free(&p.known);
    free(addresses);
    if (rc != 0) {
        *out = (struct sym_packed){0};
        return symint_fail_plain(c, rc);
    }
    return 0;
}
