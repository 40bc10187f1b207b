/* SPDX-License-Identifier: MIT */
/*
 * Rules from instructions, for generated code and for code of files without unwind data: read, made, kept by runtime
 * address, and made anew where the code may have changed meanwhile.
 */
#include "code_row.h"
#include "rule_cache.h"
#include "unwind_walk.h"

/* The code around a pc. Returns its size, 0: not readable; *at is the pc's place. */
static size_t read_around(struct walk *w, const struct place *place, uint64_t pc, uint8_t *out,
                          size_t *at)
{
    const struct unwind_range *range = &place->range;
    size_t ahead = CODE_AHEAD_MAX, before = CODE_BEFORE_MAX;

    if (pc < range->start || pc >= range->end)
        return 0;
    if (ahead > range->end - pc)
        ahead = (size_t)(range->end - pc);
    if (before > pc - range->start)
        before = (size_t)(pc - range->start);
    *at = before;
    return recordint_walk_code(w, place, pc + ahead, out, before + ahead);
}

/* Makes the rule; false when the code could not be read. */
static bool make(struct walk *w, const struct place *place, uint64_t address, uint8_t flags,
                 struct rule *out)
{
    uint8_t code[CODE_BEFORE_MAX + CODE_AHEAD_MAX];
    struct cfi_row row;
    size_t at;
    size_t size = read_around(w, place, address + (w->leaf ? 0 : 1), code, &at);

    *out = (struct rule){.kind = RULE_NONE};
    if (size == 0)
        return false;
    if (recordint_code_row(w->arch, code, size, at, !w->leaf, &row) ||
        (w->leaf && recordint_code_prologue(w->arch, code, size, at, &row)))
        recordint_rule_from_row(w->arch, &row, out);
    if (out->kind != RULE_SIMPLE)
        *out = (struct rule){.kind = RULE_NONE};
    out->flags = RULE_CODE | flags;
    return true;
}

static struct unwind_cache_entry *entry_of(const struct walk *w, uint64_t address)
{
    const struct unwind_space *space = w->space;
    struct unwind_cache_entry *e;

    if (space->cache == NULL)
        return NULL;
    e = unwind_cache_slot(space->cache, address);
    return unwind_cache_get(space->cache, address, space->generation) == e ? e : NULL;
}

const struct rule *recordint_walk_code_rule(struct walk *w, uint64_t address,
                                            const struct rule *without)
{
    uint8_t flags = without->flags & (RULE_START | RULE_BEFORE_START);
    const struct unwind_space *space = w->space;
    struct unwind_cache_entry *e = entry_of(w, address);
    const struct rule *known = e != NULL && (e->rule->flags & RULE_CODE) != 0 ? e->rule : NULL;
    struct place place;

    if (known != NULL && (e->code_round == 0 || e->code_round == space->code_round))
        return known;
    w->made = (struct rule){.kind = RULE_NONE};
    if (!recordint_walk_place(w, address, &place))
        return &w->made;
    if (!make(w, &place, address, flags, &w->made)) /* the process may have ended meanwhile */
        return known != NULL ? known : &w->made;
    e = entry_of(w, address); /* the place may have been found by a change of the mappings */
    if (e != NULL && space->code_rules != NULL) {
        const struct rule *kept = recordint_rule_table_intern(space->code_rules, &w->made);

        if (kept != NULL) {
            e->rule = kept;
            e->code_round = place.range.image != NULL ? 0 : space->code_round;
        }
    }
    return &w->made;
}

/* The code may have been other code when the sample was taken, or its pc no instruction's first byte: so the return
 * address must look like one. */
int recordint_walk_code_step(struct walk *w, const struct rule *rule)
{
    struct regs before = w->regs;
    uint64_t pc = walk_pc(w), cfa = w->cfa;
    bool leaf = w->leaf;
    int end = recordint_walk_simple(w, rule);

    if (end == UNWIND_COMPLETE)
        return UNWIND_NULL_RETURN; /* nothing says that code without unwind data is outermost */
    if (end != WALK_ON)
        return end;
    if (recordint_walk_may_return(w, pc, walk_pc(w), WALK_BY_CODE)) {
        w->by_code = true;
        return WALK_ON;
    }
    w->regs = before;
    w->cfa = cfa;
    w->leaf = leaf;
    return UNWIND_NO_RULE;
}
