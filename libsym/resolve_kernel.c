/* SPDX-License-Identifier: MIT */
/*
 * Kernel addresses: packed symbols of the capture answer for the very addresses they were made for. Else the name is
 * that of vmlinux in its own code, else that of kallsyms or System.map; inlined functions and lines come from the DWARF
 * of vmlinux or of a module's file; and where nothing of that knows the address, packed symbols tell the function
 * around it. KSYMBOL records, which override all of this, are resolve.c's business.
 */
#include "resolve_kernel.h"

#include "chain.h"

#include <stdlib.h>
#include <string.h>

/* What names an address of vmlinux, kallsyms or System.map. */
struct found {
    struct symint_vmlinux_symbol symbol; /* name NULL: none */
    struct symint_kernel_symbol line;    /* name NULL: none */
    uint64_t line_start, line_end; /* of the table's entry, whether or not it names; 0: none */
    struct symint_dwarf *dwarf;    /* NULL: none */
    uint64_t vaddr;                /* in terms of vmlinux, or of dwarf */
    bool in_vmlinux;
    bool unverified; /* what DWARF says */
};

/* ---- who knows the address ---- */

/* Whether lines of the table take over from an unsized symbol where they start closer. */
static bool lines_take_over(const struct sym_context *c, const struct found *f)
{
    return f->symbol.sizeless && !c->kernel.sysmap;
}

static void choose(const struct sym_context *c, struct found *f)
{
    if (f->symbol.name == NULL || f->line.name == NULL)
        return;
    bool closer = lines_take_over(c, f) && f->line.start - c->vmlinux.shift > f->symbol.start;
    if (closer)
        f->symbol.name = NULL;
    else
        f->line.name = NULL;
}

/* The build id of a kernel module that was recorded; empty: none, or the mapping is the kernel. */
static const uint8_t *recorded_id(const struct sym_context *c, const struct symint_module *m,
                                  size_t *size)
{
    *size = 0;
    if (m == NULL)
        return NULL;
    const struct symint_file *file = c->registry.files[m->file];
    struct sym_kernel_range range = {.name = file->path->text, .name_size = file->path->size};
    if (file->path->size == 0 || symint_is_kernel_range(&range))
        return NULL;
    *size = file->build_id->size;
    return (const uint8_t *)file->build_id->text;
}

static int find(struct sym_context *c, uint64_t address, const struct symint_module *module,
                struct found *f)
{
    *f = (struct found){0};
    if (symint_kernel_find(&c->kernel, address, &f->line)) {
        f->line_start = f->line.start;
        f->line_end = f->line.end;
    } else {
        f->line.name = NULL;
    }
    f->in_vmlinux = symint_vmlinux_address(&c->vmlinux, address, &f->vaddr);
    if (f->in_vmlinux) {
        if (!symint_vmlinux_find_symbol(&c->vmlinux, f->vaddr, &f->symbol))
            f->symbol.name = NULL;
        choose(c, f);
        f->dwarf = c->vmlinux.dwarf;
        f->unverified = c->vmlinux.unverified;
        return 0;
    }
    if (f->line.name == NULL || f->line.owner_size == 0)
        return 0;
    size_t size;
    const uint8_t *id = recorded_id(c, module, &size);
    return symint_kmodules_find(&c->kmodules, &c->strings.arena, &c->search, &f->line, address, id,
                                size, &f->dwarf, &f->vaddr, &f->unverified);
}

/* ---- facts ---- */

/* The name of a symbol with its module behind one blank, however the file had it. */
static struct symint_text *line_name(struct sym_context *c, const struct symint_kernel_symbol *s)
{
    if (s->owner_size == 0)
        return symint_intern_name(&c->strings, s->name, s->name_size);
    size_t size = s->name_size + 1 + s->owner_size;
    char *name = malloc(size);
    if (name == NULL)
        return NULL;
    memcpy(name, s->name, s->name_size); /* NOLINT(analyzer-null-argument): it has an owner */
    name[s->name_size] = ' ';
    memcpy(name + s->name_size + 1, s->owner, s->owner_size);
    struct symint_text *t = symint_intern_name(&c->strings, name, size);
    free(name);
    return t;
}

/* Narrows the extent, which has vaddr's address in it, to [start, end) in the terms of vaddr. */
static void narrow(struct symint_facts *out, uint64_t vaddr, uint64_t start, uint64_t end)
{
    if (vaddr - start < out->vaddr - out->extent_start)
        out->extent_start = out->vaddr - (vaddr - start);
    if (end - vaddr < out->extent_end - out->vaddr)
        out->extent_end = out->vaddr + (end - vaddr);
}

/* Where the same symbol is the one that names. */
static void set_extent(const struct sym_context *c, const struct found *f, struct symint_facts *out)
{
    uint64_t start;
    uint64_t end;
    out->extent_start = 0;
    out->extent_end = UINT64_MAX;
    if (symint_vmlinux_extent(&c->vmlinux, out->vaddr - c->vmlinux.shift, &start, &end))
        narrow(out, out->vaddr - c->vmlinux.shift, start, end);
    bool line = f->line.name != NULL || (f->symbol.name != NULL && lines_take_over(c, f));
    if (line && f->line_end > 0)
        narrow(out, out->vaddr, f->line_start, f->line_end);
    else if (line && c->kernel.count > 0) /* where the next line begins is not known any more */
        narrow(out, out->vaddr, out->extent_start, out->vaddr + 1);
}

/* The physical function as the symbols have it. */
static int set_symbol(struct sym_context *c, const struct found *f, struct symint_facts *out)
{
    struct symint_text *t;
    if (f->symbol.name != NULL) {
        out->symbol.origin = SYM_ORIGIN_VMLINUX;
        out->symbol_unverified = c->vmlinux.unverified;
        out->symbol.start = f->symbol.start + c->vmlinux.shift;
        t = symint_intern_name(&c->strings, f->symbol.name, f->symbol.name_size);
    } else {
        out->symbol.origin = c->kernel.sysmap ? SYM_ORIGIN_SYSMAP : SYM_ORIGIN_KALLSYMS;
        out->symbol_unverified = c->kernel.sysmap;
        out->symbol.start = f->line.start;
        t = line_name(c, &f->line);
        /* A name of kallsyms stays, for it has the module behind it. Inlined functions have none: the physical one
         * tells. */
        out->name_stays = true;
    }
    if (t == NULL)
        return SYM_ERR_NOMEM;
    out->has_symbol = true;
    out->symbol.name = t->text;
    out->symbol.name_size = t->size;
    set_extent(c, f, out);
    return 0;
}

/* Puts the pieces of the function where they are in memory. Next to a name that stays nobody asks for them. */
static int move_pieces(struct sym_context *c, uint64_t shift, struct symint_facts *out)
{
    struct symint_dwarf_chain *chain = &out->chain;
    if (out->name_stays)
        chain->piece_count = 0;
    if (chain->piece_count > c->kernel_piece_capacity) {
        struct symint_code_range *grown =
            realloc(c->kernel_pieces, chain->piece_count * sizeof(*grown));
        if (grown == NULL)
            return SYM_ERR_NOMEM;
        c->kernel_pieces = grown;
        c->kernel_piece_capacity = chain->piece_count;
    }
    for (size_t i = 0; i < chain->piece_count; i++)
        c->kernel_pieces[i] = (struct symint_code_range){chain->pieces[i].start + shift,
                                                         chain->pieces[i].end + shift};
    chain->pieces = c->kernel_pieces;
    return 0;
}

static int ask_files(struct sym_context *c, uint64_t address, const struct symint_module *module,
                     const struct sym_options *options, struct symint_facts *out)
{
    struct found f;
    *out = (struct symint_facts){.vaddr = address};
    int rc = find(c, address, module, &f);
    if (rc == 0 && (f.symbol.name != NULL || f.line.name != NULL))
        rc = set_symbol(c, &f, out);
    if (rc != 0 || f.dwarf == NULL || options == NULL)
        return rc;
    out->chain_unverified = f.unverified;
    const struct symint_dwarf_want want = {.inlines = !options->no_inlines,
                                           .lines = !options->no_lines,
                                           .likely = f.symbol.name != NULL,
                                           .start = out->symbol.start - (address - f.vaddr)};
    rc = symint_dwarf_lookup(f.dwarf, &c->strings, &want, f.vaddr, &out->chain);
    return rc == 0 ? move_pieces(c, address - f.vaddr, out) : rc;
}

/* A line alone is no answer. */
static bool names_something(const struct symint_facts *f)
{
    bool named = f->has_symbol && f->symbol.name != NULL;
    for (size_t i = 0; !named && i < f->chain.count; i++)
        named = f->chain.levels[i].name != NULL;
    return named;
}

/* What packed symbols of that level or more have of the very address; more counts first. 1, 0 or SYM_ERR_NOMEM. */
static int ask_packed(struct sym_context *c, uint64_t address, enum sym_level least,
                      const struct sym_options *options, struct symint_facts *out)
{
    const struct symint_packed_set *set = &c->kernel_packed;
    int rc = 0;
    for (int level = SYM_LEVEL_LINES; level >= (int)least; level--)
        for (size_t i = 0; rc == 0 && i < set->count; i++)
            if ((int)symint_packed_level(set->items[i]) == level)
                rc = symint_packed_exact(set->items[i], &c->strings, options, address, out);
    return rc > 0 ? names_something(out) : rc;
}

static int ask_packed_around(struct sym_context *c, uint64_t address, struct symint_facts *out)
{
    const struct symint_packed_set *set = &c->kernel_packed;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < set->count; i++)
        rc = symint_packed_around(set->items[i], address, out);
    return rc > 0 ? names_something(out) : rc;
}

int symint_kernel_facts(struct sym_context *c, uint64_t address, const struct symint_module *module,
                        const struct sym_options *options, enum sym_level level,
                        struct symint_facts *out)
{
    int rc = ask_packed(c, address, level, options, out);
    if (rc != 0)
        return rc;
    rc = ask_files(c, address, module, options, out);
    if (rc != 0 || names_something(out))
        return rc != 0 ? rc : 1;
    rc = level > SYM_LEVEL_NAMES ? ask_packed(c, address, SYM_LEVEL_NAMES, options, out) : 0;
    return rc != 0 ? rc : ask_packed_around(c, address, out);
}

/* ---- frames ---- */

/* Names of symbols are not demangled: the kernel's own messages print them so. */
static int set_frame(struct sym_context *c, const struct symint_facts *facts,
                     struct sym_frame *frame)
{
    struct symint_text *t =
        symint_intern_name(&c->strings, facts->symbol.name, facts->symbol.name_size);
    if (t == NULL)
        return SYM_ERR_NOMEM;
    frame->name = t->text;
    frame->miss = SYM_MISS_NONE;
    frame->origin = facts->symbol.origin;
    frame->flags |= facts->symbol_unverified ? SYM_FLAG_UNVERIFIED : 0;
    frame->offset = facts->vaddr - facts->symbol.start;
    frame->function_start -= frame->offset;
    return 0;
}

int symint_kernel_frames(struct sym_context *c, const struct sym_frame *blank, uint64_t address,
                         const struct symint_module *module, const struct sym_frame **frames,
                         size_t *count)
{
    struct symint_facts facts;
    *count = 0;
    int rc = symint_kernel_facts(c, address, module, &c->options, SYM_LEVEL_NAMES, &facts);
    if (rc <= 0)
        return rc;
    bool named = facts.has_symbol && facts.symbol.name != NULL;
    struct symint_physical physical = {.blank = *blank,
                                       .frame = *blank,
                                       .vaddr = address,
                                       .has_symbol = named,
                                       .symbol_start = facts.symbol.start,
                                       .name_stays = named && facts.name_stays,
                                       .dwarf_origin = SYM_ORIGIN_VMLINUX};
    physical.frame.miss = SYM_MISS_NO_SYMBOL;
    physical.blank.flags |= facts.chain_unverified ? SYM_FLAG_UNVERIFIED : 0;
    rc = named ? set_frame(c, &facts, &physical.frame) : 0;
    if (rc == 0)
        rc = symint_chain_frames(c, &facts.chain, &physical, frames, count);
    if (rc == 0 && *count == 1 && (*frames)[0].name == NULL)
        *count = 0;
    return rc;
}
