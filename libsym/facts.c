/* SPDX-License-Identifier: MIT */
/* Gathering what is known of an address of a file: for frames, and for packing. */
#include "facts.h"

#include "context.h"
#include "packed.h"

int symint_facts_in_image(struct sym_context *c, const struct symint_module *m,
                          const struct symint_image *image, const struct symint_dwarf_want *want,
                          uint64_t offset, struct symint_facts *out)
{
    const struct symint_elf *elf = image->located.elf;
    *out = (struct symint_facts){0};
    if (!symint_elf_vaddr(elf, offset, &m->place, &out->vaddr))
        return 0;
    uint32_t number = symint_elf_find(elf, out->vaddr);
    if (number != SYMINT_NO_SYMBOL) {
        out->has_symbol = true;
        out->symbol = symint_elf_symbol(elf, number);
    }
    bool unverified = image->located.unverified || c->registry.files[m->file]->assumed;
    out->symbol_unverified = unverified;
    out->chain_unverified = unverified;
    if (image->located.dwarf == NULL)
        return 1;
    struct symint_dwarf_want all = *want;
    all.likely = out->has_symbol;
    all.start = out->symbol.start;
    int rc = symint_dwarf_lookup(image->located.dwarf, &c->strings, &all, out->vaddr, &out->chain);
    return rc == 0 ? 1 : rc;
}

int symint_facts_in_packed(struct sym_context *c, const struct symint_module *m, bool exact,
                           bool all, uint64_t offset, struct symint_facts *out)
{
    struct symint_file *file = c->registry.files[m->file];
    struct symint_facts found;
    int rc = 0;
    if (file->shared == NULL)
        return 0;
    const struct symint_packed_set *set = &file->shared->packed;
    for (size_t i = 0; i < set->count; i++) {
        uint64_t vaddr;
        if (!symint_packed_vaddr(set->items[i], m->file_offset, m->end - m->start, offset, &vaddr))
            continue;
        int one = exact ? symint_packed_exact(set->items[i], &c->strings, all ? NULL : &c->options,
                                              vaddr, &found)
                        : symint_packed_around(set->items[i], vaddr, &found);
        if (one < 0)
            return one;
        /* A pack that had no debug file may have come first. */
        if (one == 0 || (rc > 0 && symint_facts_rank(&found) <= symint_facts_rank(out)))
            continue;
        *out = found;
        rc = 1;
        if (!exact || symint_facts_rank(out) == SYMINT_FACTS_WHOLE)
            break;
    }
    if (rc > 0 && file->assumed) {
        out->symbol_unverified = true;
        out->chain_unverified = true;
    }
    return rc;
}

bool symint_facts_named(const struct symint_facts *facts)
{
    const struct symint_dwarf_chain *chain = &facts->chain;
    return facts->symbol.name != NULL ||
           (chain->function && chain->count > 0 && chain->levels[chain->count - 1].name != NULL);
}

unsigned symint_facts_rank(const struct symint_facts *facts)
{
    if (facts->final)
        return SYMINT_FACTS_WHOLE;
    return (symint_facts_named(facts) ? 2 : 0) + (facts->chain.count > 0 ? 1 : 0);
}
