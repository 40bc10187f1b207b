/* SPDX-License-Identifier: MIT */
/* Packing what is known of the addresses of a file, so that it can be looked up without the file. */
#include "pack.h"
#include "context.h"
#include "elf_private.h"
#include "facts.h"
#include "packed.h"

#include <stdlib.h>
#include <string.h>

/* An address that was asked for, and what became of it. */
struct wanted {
    uint32_t module;            /* one of those through which it is seen so */
    uint64_t file_offset, size; /* of that mapping */
    uint64_t offset;            /* of the address */
    uint64_t vaddr;             /* in no segment, or without a file: the offset */
    unsigned rank;              /* how much of it is known already (facts.h) */
    bool known, named;
};

/* One call. */
struct packing {
    struct sym_context *c;
    struct sym_pack_options options;
    struct symint_packed_set known;
    struct symint_packer *packer; /* NULL: nothing was to be added yet */
    struct wanted *list;
    size_t count;
};

/* ---- what was asked for ---- */

bool symint_pack_options(const struct sym_pack_options *options, struct sym_pack_options *out)
{
    *out = (struct sym_pack_options){.size = sizeof(*out)};
    if (options == NULL || options->size > sizeof(*out) ||
        options->size < offsetof(struct sym_pack_options, known))
        return false;
    memcpy(out, options, options->size);
    return out->level >= SYM_LEVEL_NAMES && out->level <= SYM_LEVEL_LINES &&
           (out->known_count == 0 || out->known != NULL);
}

static int compare_numbers(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

/* Processes that have mapped a file alike see the same addresses of it. */
static int compare_wanted(const void *a, const void *b)
{
    const struct wanted *x = a;
    const struct wanted *y = b;
    int order = compare_numbers(x->file_offset, y->file_offset);
    if (order == 0)
        order = compare_numbers(x->size, y->size);
    return order != 0 ? order : compare_numbers(x->offset, y->offset);
}

static bool same_mapping(const struct wanted *a, const struct wanted *b)
{
    return a->file_offset == b->file_offset && a->size == b->size;
}

/* Whether modules have one file. A manifest may know the build id of some of them only: these look like others. 1, 0 or
 * SYM_ERR_NOMEM. */
static int same_file(struct packing *p, uint32_t module, uint32_t first)
{
    const struct symint_registry *r = &p->c->registry;
    const struct symint_file *a = r->files[r->modules[module].file];
    const struct symint_file *b = r->files[r->modules[first].file];
    struct sym_identity x;
    struct sym_identity y;
    if (a->shared == b->shared)
        return 1;
    if (a->path != b->path || !(a->shared == NULL || a->assumed) ||
        !(b->shared == NULL || b->assumed))
        return 0;
    int rc = sym_module_identity(p->c, module, &x);
    if (rc == 0)
        rc = sym_module_identity(p->c, first, &y);
    return rc != 0 ? rc
                   : x.build_id_size == y.build_id_size &&
                         memcmp(x.build_id, y.build_id, x.build_id_size) == 0;
}

/* The distinct addresses of the queries in order. 0, SYM_ERR_NOMEM or SYM_ERR_MISUSE: they are not about one file. */
static int list_wanted(struct packing *p, const struct sym_query *queries, size_t count)
{
    const struct symint_registry *r = &p->c->registry;
    p->list = symint_scratch_alloc(count + 1, sizeof(*p->list));
    if (p->list == NULL)
        return SYM_ERR_NOMEM;
    for (size_t i = 0; i < count; i++) {
        if (queries[i].module >= r->count || queries[i].kernel)
            return SYM_ERR_MISUSE;
        const struct symint_module *m = &r->modules[queries[i].module];
        int same = same_file(p, queries[i].module, queries[0].module);
        if (same <= 0 || m->kernel)
            return same < 0 ? same : SYM_ERR_MISUSE;
        uint64_t offset = queries[i].rel - queries[i].return_address;
        p->list[i] = (struct wanted){.module = queries[i].module,
                                     .file_offset = m->file_offset,
                                     .size = m->end - m->start,
                                     .offset = offset,
                                     .vaddr = offset};
    }
    qsort(p->list, count, sizeof(*p->list), compare_wanted);
    for (size_t i = 0; i < count; i++)
        if (p->count == 0 || compare_wanted(&p->list[p->count - 1], &p->list[i]) != 0)
            p->list[p->count++] = p->list[i];
    return 0;
}

/* ---- one address ---- */

/* What is asked of an address is at that level. */
static unsigned rank(const struct packing *p, const struct symint_facts *facts)
{
    return p->options.level < SYM_LEVEL_LINES && symint_facts_named(facts)
               ? SYMINT_FACTS_WHOLE
               : symint_facts_rank(facts);
}

/* Whether the archives know all there is: of what is in no segment of a program, that it is nothing. */
static bool is_known(const struct packing *p, struct wanted *w)
{
    bool inside = false;
    bool outside = false;
    for (size_t i = 0; i < p->known.count && w->rank < SYMINT_FACTS_WHOLE; i++) {
        struct symint_packed *item = p->known.items[i];
        struct symint_facts facts;
        uint64_t vaddr;
        if (!symint_packed_vaddr(item, w->file_offset, w->size, w->offset, &vaddr)) {
            outside |= !symint_packed_elf(item)->detached;
            continue;
        }
        inside = true;
        if (!symint_packed_has(item, vaddr, p->options.level))
            continue;
        if (symint_packed_exact(item, &p->c->strings, NULL, vaddr, &facts) <= 0)
            facts = (struct symint_facts){.final =
                                              true}; /* there is nothing, and that was looked for */
        w->vaddr = vaddr;
        w->known = true;
        w->named |= symint_facts_named(&facts);
        if (rank(p, &facts) > w->rank)
            w->rank = rank(p, &facts);
    }
    w->known |= outside && !inside;
    return w->rank == SYMINT_FACTS_WHOLE || (outside && !inside);
}

/* What the context would answer with, whole: from packed symbols of its archives, else from the file. 1, 0 or
 * SYM_ERR_NOMEM. */
static int find_facts(struct packing *p, struct symint_module *m, uint64_t offset,
                      struct symint_facts *facts)
{
    struct sym_context *c = p->c;
    bool lines = p->options.level >= SYM_LEVEL_LINES;
    struct symint_dwarf_want want = {.inlines = lines, .lines = lines};
    *facts = (struct symint_facts){.vaddr = offset};
    int rc = symint_module_load_packed(&c->registry, &c->strings, m, &c->search);
    if (rc > 0)
        rc = symint_facts_in_packed(c, m, true, true, offset, facts);
    if (rc < 0 || (rc > 0 && (symint_facts_named(facts) || facts->final)))
        return rc;
    struct symint_image *image = symint_module_load(&c->registry, &c->strings, m, &c->search);
    if (image == NULL)
        return c->registry.load_error;
    if (image->located.elf == NULL)
        return rc > 0 ? rc : symint_facts_in_packed(c, m, false, true, offset, facts);
    rc = symint_facts_in_image(c, m, image, &want, offset, facts);
    if (rc > 0 && facts->has_symbol)
        symint_elf_extent(image->located.elf, facts->vaddr, &facts->extent_start,
                          &facts->extent_end);
    return rc;
}

/* Whose addresses they are: the segments and build id that go into the file. */
static const struct symint_elf *elf_of(const struct packing *p, const struct symint_module *m)
{
    const struct symint_file *file = p->c->registry.files[m->file];
    if (file->image != NULL && file->image->located.elf != NULL)
        return file->image->located.elf;
    return symint_packed_elf(file->shared->packed.items[0]);
}

/* Whether the file lacks nothing: what it does not know now it will not know later. */
static bool is_whole(const struct packing *p, const struct symint_module *m)
{
    const struct symint_image *image = p->c->registry.files[m->file]->image;
    return image != NULL && image->located.dwarf != NULL && !image->located.unverified &&
           image->detail[0] == '\0';
}

/* Packs an address of which the archives know nothing, or not all: what was packed without its debug file is packed
 * again with it. */
static int pack_address(struct packing *p, struct wanted *w)
{
    struct symint_module *m = &p->c->registry.modules[w->module];
    struct symint_facts facts;
    int rc = find_facts(p, m, w->offset, &facts);
    facts.final |= rc > 0 && is_whole(p, m);
    if (rc <= 0 || (w->known && rank(p, &facts) <= w->rank))
        return rc < 0 ? rc : 0;
    w->vaddr = facts.vaddr;
    if (!facts.has_symbol && facts.chain.count == 0 && !facts.final)
        return 0;
    w->known = false;
    w->named = symint_facts_named(&facts);
    /* Of this build they are true. Whether it is the recorded one is a matter of each capture: build_id_assumed. */
    facts.symbol_unverified = false;
    facts.chain_unverified = false;
    if (p->packer == NULL)
        p->packer = symint_packer_new(p->options.level, elf_of(p, m), p->c->strings.seed);
    rc = p->packer == NULL ? SYM_ERR_NOMEM : symint_packer_add(p->packer, &facts);
    struct symint_file *file = p->c->registry.files[m->file];
    if (rc == 0 && file->image != NULL && file->image->located.dwarf != NULL)
        symint_image_account(&p->c->registry, file->image);
    return rc;
}

/* ---- all of them ---- */

/* Puts the addresses of a mapping into the order of the units that have them: debug information is read unit by unit. */
static void sort_by_unit(struct packing *p, struct wanted *list, size_t count)
{
    struct sym_context *c = p->c;
    struct symint_module *m = &c->registry.modules[list[0].module];
    if (count > UINT32_MAX ||
        symint_module_load_packed(&c->registry, &c->strings, m, &c->search) != 0)
        return;
    const struct symint_image *image = symint_module_load(&c->registry, &c->strings, m, &c->search);
    if (image == NULL || image->located.elf == NULL || image->located.dwarf == NULL)
        return;
    struct symint_pair *order = symint_scratch_alloc(count, sizeof(*order));
    struct wanted *sorted = symint_scratch_alloc(count, sizeof(*sorted));
    bool can = order != NULL && sorted != NULL;
    for (size_t i = 0; i < count && can; i++) {
        uint64_t vaddr;
        bool inside = symint_elf_vaddr(image->located.elf, list[i].offset, &m->place, &vaddr);
        order[i].key = inside ? symint_dwarf_unit(image->located.dwarf, vaddr) : UINT32_MAX;
        order[i].value = (uint32_t)i;
    }
    if (can && symint_sort_pairs(order, count) == 0) {
        for (size_t i = 0; i < count; i++)
            sorted[i] = list[order[i].value];
        memcpy(list, sorted, count * sizeof(*list));
    }
    free(sorted);
    free(order);
}

/* Puts the addresses of a mapping that are known to the front. Returns how many. */
static size_t take_known(struct packing *p, size_t begin, size_t end)
{
    size_t known = begin;
    for (size_t i = begin; i < end; i++) {
        if (!is_known(p, &p->list[i]))
            continue;
        struct wanted w = p->list[i];
        p->list[i] = p->list[known];
        p->list[known++] = w;
    }
    return known - begin;
}

/* When all addresses are known, no file is looked for. */
static int pack_all(struct packing *p)
{
    int rc = 0;
    for (size_t begin = 0, end; begin < p->count && rc == 0; begin = end) {
        for (end = begin; end < p->count && same_mapping(&p->list[begin], &p->list[end]);)
            end++;
        begin += take_known(p, begin, end);
        if (begin < end)
            sort_by_unit(p, p->list + begin, end - begin);
        for (size_t i = begin; i < end && rc == 0; i++)
            rc = pack_address(p, &p->list[i]);
    }
    return rc;
}

static int compare_vaddrs(const void *a, const void *b)
{
    const struct wanted *x = a;
    const struct wanted *y = b;
    return compare_numbers(x->vaddr, y->vaddr);
}

/* Counts what became of distinct addresses. */
static void count_results(struct packing *p, struct sym_packed *out)
{
    qsort(p->list, p->count, sizeof(*p->list), compare_vaddrs);
    for (size_t i = 0; i < p->count; i++) {
        if (i > 0 && p->list[i].vaddr == p->list[i - 1].vaddr)
            continue;
        out->address_count++;
        out->known_count += p->list[i].known;
        out->named_count += p->list[i].named;
    }
}

/* What the caller's archives have of the file already. */
static int load_known(struct packing *p)
{
    struct sym_context *c = p->c;
    struct sym_identity identity = {0};
    if (p->count == 0 || p->options.known_count == 0)
        return 0;
    const struct symint_file *file = c->registry.files[c->registry.modules[p->list[0].module].file];
    const struct symint_text *id = file->build_id;
    int rc = 0;
    if (id->size > 0 && id->size <= sizeof(identity.build_id) && !file->assumed) {
        identity.build_id_size = id->size;
        memcpy(identity.build_id, id->text, id->size);
    } else {
        rc = sym_module_identity(c, p->list[0].module, &identity);
    }
    return rc == 0
               ? symint_packed_load_build_id(&p->known, p->options.known, p->options.known_count,
                                             identity.build_id, identity.build_id_size)
               : rc;
}

int sym_pack_files(struct sym_context *c, const struct sym_query *queries, size_t count,
                   const struct sym_pack_options *options, struct sym_packed *out)
{
    struct packing p = {.c = c};
    *out = (struct sym_packed){0};
    if (!c->open || !symint_pack_options(options, &p.options) || (count > 0 && queries == NULL))
        return symint_fail(c, SYM_ERR_MISUSE, "nothing that can be packed");
    int rc = list_wanted(&p, queries, count);
    if (rc == 0)
        rc = load_known(&p);
    if (rc == 0)
        rc = pack_all(&p);
    if (rc == 0 && p.packer != NULL)
        rc = symint_packer_finish(p.packer, &out->data, &out->size_bytes);
    if (rc == 0)
        count_results(&p, out);
    symint_packer_free(p.packer);
    symint_packed_set_free(&p.known);
    free(p.list);
    return rc == 0 ? 0 : symint_fail_plain(c, rc);
}

int sym_module_identity(struct sym_context *c, uint32_t handle, struct sym_identity *out)
{
    *out = (struct sym_identity){0};
    if (handle >= c->registry.count)
        return symint_fail(c, SYM_ERR_MISUSE, "module %u of %u", handle, c->registry.count);
    struct symint_module *m = &c->registry.modules[handle];
    const struct symint_file *file = c->registry.files[m->file];
    int rc = symint_module_load_packed(&c->registry, &c->strings, m, &c->search);
    const uint8_t *id = (const uint8_t *)file->build_id->text;
    size_t size = file->build_id->size;
    out->unverified = file->assumed;
    if (rc == 0) {
        struct symint_image *image = symint_module_load(&c->registry, &c->strings, m, &c->search);
        if (image == NULL)
            return symint_fail_plain(c, c->registry.load_error);
        if (image->located.elf == NULL)
            return 0;
        id = symint_elf_build_id(image->located.elf, &size);
        out->unverified |= image->located.unverified;
    }
    if (rc < 0)
        return symint_fail_plain(c, rc);
    if (size <= sizeof(out->build_id)) {
        out->build_id_size = size;
        if (size > 0)
            memcpy(out->build_id, id, size);
    }
    return 0;
}
