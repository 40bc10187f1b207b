/* SPDX-License-Identifier: MIT */
/* Frames of an answer: the physical function by its symbol or by DWARF, and the functions inlined in it. */
#include "chain.h"

#include "demangle.h"

#include <stdlib.h>

int symint_set_linkage_name(struct sym_context *c, struct sym_frame *f, const char *name,
                            size_t size)
{
    struct symint_text *t = symint_intern_name(&c->strings, name, size);
    const char *display = t != NULL ? symint_display(&c->strings, t, c->options.demangle) : NULL;
    if (display == NULL)
        return SYM_ERR_NOMEM;
    f->name = display;
    f->raw_name = display == t->text ? NULL : t->text;
    return 0;
}

static int shorten(struct sym_context *c, struct sym_frame *f, const struct symint_text *t)
{
    char *text = malloc(t->size + 1);
    if (text == NULL)
        return SYM_ERR_NOMEM;
    const struct symint_text *brief =
        symint_intern(&c->strings, text, symint_shorten(t->text, t->size, text));
    free(text);
    if (brief == NULL)
        return SYM_ERR_NOMEM;
    f->name = brief->text;
    return 0;
}

/* The name that DWARF has for a level, which is a linkage name or one for people already. */
static int set_level_name(struct sym_context *c, struct sym_frame *f,
                          const struct symint_dwarf_level *level, enum sym_origin origin)
{
    struct symint_text *t = level->name;
    f->origin = origin;
    f->miss = SYM_MISS_NONE;
    f->name = t->text;
    f->raw_name = NULL;
    if (!level->linkage)
        return c->options.demangle == SYM_DEMANGLE_SHORT ? shorten(c, f, t) : 0;
    const char *display = symint_display(&c->strings, t, c->options.demangle);
    if (display == NULL)
        return SYM_ERR_NOMEM;
    f->name = display;
    f->raw_name = display == t->text ? NULL : t->text;
    return 0;
}

static void set_place(struct sym_frame *f, const struct symint_dwarf_level *level)
{
    f->file = level->file;
    f->line = level->line;
    f->column = level->column;
    f->start_line = level->start_line;
}

/* The piece of the function that an address is in; NULL: in none. */
static const struct symint_code_range *piece_of(const struct symint_dwarf_chain *chain,
                                                uint64_t vaddr)
{
    for (size_t i = 0; i < chain->piece_count; i++)
        if (vaddr >= chain->pieces[i].start && vaddr < chain->pieces[i].end)
            return &chain->pieces[i];
    return NULL;
}

static bool starts_piece(const struct symint_dwarf_chain *chain, uint64_t start)
{
    for (size_t i = 0; i < chain->piece_count; i++)
        if (chain->pieces[i].start == start)
            return true;
    return false;
}

/* The last frame. A symbol that begins where the function or a piece of it does knows its name best: of `write`, DWARF
 * says `__GI___libc_write`. */
static int build_physical(struct sym_context *c, const struct symint_physical *physical,
                          const struct symint_dwarf_chain *chain, struct sym_frame *out)
{
    *out = physical->frame;
    if (chain->count == 0)
        return 0;
    const struct symint_dwarf_level *level = &chain->levels[chain->count - 1];
    set_place(out, level);
    if (!chain->function || level->name == NULL || physical->name_stays ||
        (physical->has_symbol && starts_piece(chain, physical->symbol_start)))
        return 0;
    const struct symint_code_range *piece = piece_of(chain, physical->vaddr);
    *out = physical->blank;
    set_place(out, level);
    if (piece != NULL) {
        out->offset = physical->vaddr - piece->start;
        out->function_start -= out->offset;
    }
    return set_level_name(c, out, level, physical->dwarf_origin);
}

int symint_chain_frames(struct sym_context *c, const struct symint_dwarf_chain *chain,
                        const struct symint_physical *physical, const struct sym_frame **frames,
                        size_t *count)
{
    size_t inlined = chain->count > 1 ? chain->count - 1 : 0;
    struct sym_frame *chained =
        symint_arena_alloc(&c->strings.arena, (inlined + 1) * sizeof(*chained));
    size_t n = 0;
    if (chained == NULL)
        return SYM_ERR_NOMEM;
    struct sym_frame last;
    int rc = build_physical(c, physical, chain, &last);
    for (size_t i = 0; i < inlined && rc == 0; i++) {
        /* One whose name is in a file that is missing would say nothing. */
        if (chain->levels[i].name == NULL)
            continue;
        struct sym_frame *f = &chained[n++];
        *f = physical->blank;
        f->inlined = true;
        f->function_start = last.function_start;
        f->offset = last.offset;
        set_place(f, &chain->levels[i]);
        rc = set_level_name(c, f, &chain->levels[i], physical->dwarf_origin);
    }
    chained[n++] = last;
    *frames = chained;
    *count = n;
    return rc;
}
