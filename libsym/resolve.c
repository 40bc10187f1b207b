/* SPDX-License-Identifier: MIT */
/*
 * Lookups: the one place that knows the order in which names are looked for. Every answer is kept
 * until the context is freed, so equal questions cost one hash lookup.
 */
#include "chain.h"
#include "context.h"
#include "demangle.h"
#include "facts.h"
#include "python.h"
#include "resolve_kernel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_NATIVE_FRAMES ((size_t)65536)

/* ---- answers ---- */

/* What an answer depends on decides its key. */
enum answer_kind {
    ANSWER_FILE,    /* file, segment, rel */
    ANSWER_PACKED,  /* file, what of it is mapped, rel */
    ANSWER_NATIVE,  /* file, rel; of memory without a file: module, rel */
    ANSWER_JIT,     /* module, abs */
    ANSWER_PERF,    /* module or none, process, abs */
    ANSWER_KERNEL,  /* module or none, generation of the table, abs */
    ANSWER_KSYMBOL, /* module or none, generation of the table and event, abs */
    ANSWER_ADDRESS  /* module or none, reason, kernel, rel or abs */
};

static struct symint_answer answer_key(enum answer_kind kind, uint32_t who, uint64_t b,
                                       uint64_t address)
{
    return (struct symint_answer){.a = (uint64_t)kind << 32 | who, .b = b, .address = address};
}

static size_t answer_slot(const struct sym_context *c, const struct symint_answer *key)
{
    uint64_t h = symint_mix(key->address ^ c->strings.seed);
    h = symint_mix(h ^ key->a ^ key->b * 0x9e3779b97f4a7c15u);
    size_t at = (size_t)h & (c->answer_capacity - 1);
    while (c->answers[at].frames != NULL &&
           (c->answers[at].address != key->address || c->answers[at].a != key->a ||
            c->answers[at].b != key->b))
        at = (at + 1) & (c->answer_capacity - 1);
    return at;
}

/* Whether the answer was given before; then *key is all of it. */
static bool recall(const struct sym_context *c, struct symint_answer *key)
{
    if (c->answer_count == 0)
        return false;
    size_t at = answer_slot(c, key);
    if (c->answers[at].frames == NULL)
        return false;
    *key = c->answers[at];
    return true;
}

/* Room for that many more answers. */
static int reserve_answers(struct sym_context *c, size_t more)
{
    size_t capacity = c->answer_capacity == 0 ? 1024 : c->answer_capacity;
    while (c->answer_count + more > capacity / 8 * 5)
        capacity *= 2;
    if (capacity == c->answer_capacity)
        return 0;
    struct symint_answer *old = c->answers;
    size_t old_capacity = c->answer_capacity;
    struct symint_answer *answers = symint_table_alloc(capacity, sizeof(*answers));
    if (answers == NULL)
        return SYM_ERR_NOMEM;
    memset(answers, 0, capacity * sizeof(*answers));
    c->answers = answers;
    c->answer_capacity = capacity;
    for (size_t i = 0; i < old_capacity; i++)
        if (old[i].frames != NULL)
            answers[answer_slot(c, &old[i])] = old[i];
    free(old);
    return 0;
}

static int remember(struct sym_context *c, const struct symint_answer *answer)
{
    int rc = reserve_answers(c, 1);
    if (rc != 0)
        return rc;
    c->answers[answer_slot(c, answer)] = *answer;
    c->answer_count++;
    return 0;
}

/* Stores a chain of one frame. */
static int remember_frame(struct sym_context *c, struct symint_answer *key,
                          const struct sym_frame *frame)
{
    struct sym_frame *copy = symint_arena_alloc(&c->strings.arena, sizeof(*copy));
    if (copy == NULL)
        return SYM_ERR_NOMEM;
    *copy = *frame;
    key->frames = copy;
    key->count = 1;
    return remember(c, key);
}

/* ---- looking up ---- */

struct lookup {
    struct sym_context *c;
    const struct sym_query *query;
    struct symint_module *module; /* NULL: none */
    uint32_t who;                 /* module handle or SYM_NO_MODULE, for keys */
    bool kernel;
    struct symint_answer answer; /* the result */
};

/* What every frame of the query starts with. */
static struct sym_frame blank_frame(const struct lookup *l)
{
    struct sym_frame f = {.kind = l->kernel ? SYM_KIND_KERNEL : SYM_KIND_USER};
    f.function_start = l->module != NULL ? l->query->rel : l->query->abs;
    if (l->module != NULL && !l->kernel) {
        f.flags |= l->module->anonymous ? SYM_FLAG_ANONYMOUS : 0;
        f.flags |= l->module->jit ? SYM_FLAG_JIT : 0;
        f.flags |= l->module->python_runtime ? SYM_FLAG_PYTHON_RUNTIME : 0;
    }
    return f;
}

/* Sets start and offset from the start in absolute terms. Addresses in a module's own terms
 * differ by a constant, so the distance is the same. */
static void set_start(struct sym_frame *f, uint64_t distance)
{
    f->offset = distance;
    f->function_start -= distance;
}

static int answer_address(struct lookup *l, enum sym_miss miss)
{
    struct sym_frame f = blank_frame(l);
    l->answer =
        answer_key(ANSWER_ADDRESS, l->who, (uint64_t)miss << 1 | l->kernel, f.function_start);
    if (recall(l->c, &l->answer))
        return 0;
    f.miss = miss;
    return remember_frame(l->c, &l->answer, &f);
}

/* Name, and for Python's entries file and kind, of generated code. */
static int set_generated_name(struct sym_context *c, struct sym_frame *f, const char *entry,
                              size_t size)
{
    const char *name;
    const char *file;
    size_t name_size;
    size_t file_size;
    if (symint_split_python(entry, size, &name, &name_size, &file, &file_size)) {
        if (f->kind == SYM_KIND_USER)
            f->kind = SYM_KIND_PYTHON;
        entry = name;
        size = name_size;
        if (file_size > 0) {
            struct symint_text *t = symint_intern_name(&c->strings, file, file_size);
            if (t == NULL)
                return SYM_ERR_NOMEM;
            f->file = t->text;
        }
    }
    struct symint_text *t = symint_intern_name(&c->strings, entry, size);
    if (t == NULL)
        return SYM_ERR_NOMEM;
    f->name = t->text;
    return 0;
}

static int answer_jit(struct lookup *l, const struct symint_jit_name *name)
{
    l->answer = answer_key(ANSWER_JIT, l->who, l->query->rel, l->query->abs);
    if (recall(l->c, &l->answer))
        return 0;
    struct sym_frame f = blank_frame(l);
    f.origin = SYM_ORIGIN_JIT;
    f.flags |= SYM_FLAG_JIT;
    set_start(&f, l->query->abs - name->start);
    int rc = set_generated_name(l->c, &f, name->name->text, name->name->size);
    return rc != 0 ? rc : remember_frame(l->c, &l->answer, &f);
}

/* Asks the process's perf map. 1 and the answer is there; 0 and *miss tells why not. */
static int try_perf_map(struct lookup *l, enum sym_miss *miss)
{
    const struct symint_process *process;
    const struct sym_query *q = l->query;
    if (!symint_perf_map_allowed(l->c, q->pid)) {
        *miss = SYM_MISS_DISABLED;
        return 0;
    }
    int rc = symint_process_get(l->c, q->pid, &process);
    if (rc != 0)
        return rc;
    const struct symint_perf_entry *e = symint_perf_map_find(&process->map, q->abs);
    const char *text = e != NULL ? process->map.text + e->name : NULL;
    if (e != NULL && l->c->options.perf_maps == SYM_PERF_MAPS_AUTO && !q->python_allowed &&
        e->name_size >= 4 && memcmp(text, "py::", 4) == 0)
        e = NULL;
    if (e == NULL) {
        *miss = process->miss == SYM_MISS_NONE ? SYM_MISS_NOT_IN_PERF_MAP : SYM_MISS_NO_PERF_MAP;
        return 0;
    }
    uint64_t shift = l->module != NULL ? q->abs - q->rel : 0;
    l->answer =
        answer_key(ANSWER_PERF, l->who,
                   symint_mix(shift ^ symint_mix(l->c->capture_generation)) ^ (uint32_t)q->pid,
                   q->abs);
    if (recall(l->c, &l->answer))
        return 1;
    struct sym_frame f = blank_frame(l);
    f.origin = SYM_ORIGIN_PERF_MAP;
    f.flags |= SYM_FLAG_JIT;
    set_start(&f, q->abs - e->start);
    rc = set_generated_name(l->c, &f, text, e->name_size);
    if (rc == 0)
        rc = remember_frame(l->c, &l->answer, &f);
    return rc != 0 ? rc : 1;
}

/* Code that was there for a time. The answer depends on the event that put it there. */
static int answer_ksymbol(struct lookup *l, uint32_t event)
{
    const struct symint_ksymbols *k = &l->c->ksymbols;
    const struct symint_ksymbol_event *e = &k->events[event];
    uint64_t shift = l->module != NULL ? l->query->abs - l->query->rel : 0;
    uint64_t which = (uint64_t)l->c->kernel_generation << 32 | event;
    l->answer =
        answer_key(ANSWER_KSYMBOL, l->who, symint_mix(shift ^ symint_mix(which)), l->query->abs);
    if (recall(l->c, &l->answer))
        return 0;
    struct symint_text *t = symint_intern_name(&l->c->strings, k->names + e->name, e->name_size);
    if (t == NULL)
        return SYM_ERR_NOMEM;
    struct sym_frame f = blank_frame(l);
    f.origin = SYM_ORIGIN_KALLSYMS;
    f.name = t->text;
    set_start(&f, l->query->abs - e->address);
    return remember_frame(l->c, &l->answer, &f);
}

static int answer_kernel(struct lookup *l)
{
    uint32_t event;
    switch (symint_ksymbols_find(&l->c->ksymbols, l->query->abs, l->query->time, &event)) {
    case SYMINT_KSYMBOL_NAMED:
        return answer_ksymbol(l, event);
    case SYMINT_KSYMBOL_NOTHING:
        return answer_address(l, SYM_MISS_NO_SYMBOL);
    case SYMINT_KSYMBOL_UNTOUCHED:
        break;
    }
    if (l->c->kernel_state != SYM_KERNEL_OK)
        return answer_address(l, SYM_MISS_KERNEL);
    uint64_t shift = l->module != NULL ? l->query->abs - l->query->rel : 0;
    l->answer = answer_key(ANSWER_KERNEL, l->who, symint_mix(shift) ^ l->c->kernel_generation,
                           l->query->abs);
    if (recall(l->c, &l->answer))
        return 0;
    struct sym_frame blank = blank_frame(l);
    int rc = symint_kernel_frames(l->c, &blank, l->query->abs, l->module, &l->answer.frames,
                                  &l->answer.count);
    if (rc != 0)
        return rc;
    if (l->answer.count == 0)
        return answer_address(l, SYM_MISS_NO_SYMBOL);
    return remember(l->c, &l->answer);
}

static void set_python_flags(const struct lookup *l, struct sym_frame *f)
{
    const char *name = f->raw_name != NULL ? f->raw_name : f->name;
    if (l->module->python_runtime && name != NULL && symint_is_python_eval(name))
        f->flags |= SYM_FLAG_PYTHON_EVAL;
}

/* `NAME@plt`, with NAME readable. */
static int set_stub_name(struct sym_context *c, struct sym_frame *f, const char *name, size_t size)
{
    static const char suffix[] = "@plt";
    size_t stem_size = size - (sizeof(suffix) - 1);
    struct symint_text *t = symint_intern_name(&c->strings, name, size);
    if (t == NULL)
        return SYM_ERR_NOMEM;
    if (t->display == NULL && size > sizeof(suffix) - 1 &&
        memcmp(name + stem_size, suffix, sizeof(suffix) - 1) == 0) {
        struct symint_text *stem = symint_intern_name(&c->strings, name, stem_size);
        const char *display =
            stem != NULL ? symint_display(&c->strings, stem, c->options.demangle) : NULL;
        if (display == NULL)
            return SYM_ERR_NOMEM;
        size_t room = strlen(display) + sizeof(suffix);
        char *text = symint_arena_alloc(&c->strings.arena, room);
        if (text == NULL)
            return SYM_ERR_NOMEM;
        snprintf(text, room, "%s%s", display, suffix);
        t->display = display == stem->text ? t->text : text;
    }
    f->name = t->display != NULL ? t->display : t->text;
    f->raw_name = f->name == t->text ? NULL : t->text;
    return 0;
}

/* What a symbol says about the address, `distance` bytes behind its start. */
static int set_symbol(const struct lookup *l, struct sym_frame *f,
                      const struct symint_symbol *symbol, uint64_t distance)
{
    int rc = 0;
    f->origin = symbol->origin;
    set_start(f, distance);
    if (symbol->origin == SYM_ORIGIN_FDE) {
        f->miss = SYM_MISS_NO_SYMBOL;
        return 0;
    }
    if (symbol->origin == SYM_ORIGIN_PLT)
        rc = set_stub_name(l->c, f, symbol->name, symbol->name_size);
    else
        rc = symint_set_linkage_name(l->c, f, symbol->name, symbol->name_size);
    set_python_flags(l, f);
    return rc;
}

/* The frames of what is known of the address. */
static int frames_of(struct lookup *l, const struct symint_facts *facts)
{
    struct symint_physical p = {.blank = blank_frame(l),
                                .vaddr = facts->vaddr,
                                .symbol_start = facts->symbol.start,
                                .has_symbol = facts->symbol.name != NULL,
                                .dwarf_origin = SYM_ORIGIN_DWARF};
    int rc = 0;
    p.frame = p.blank;
    p.blank.flags |= facts->chain_unverified ? SYM_FLAG_UNVERIFIED : 0;
    if (facts->has_symbol) {
        p.frame.flags |= facts->symbol_unverified ? SYM_FLAG_UNVERIFIED : 0;
        rc = set_symbol(l, &p.frame, &facts->symbol, facts->vaddr - facts->symbol.start);
    } else {
        p.frame.miss = SYM_MISS_NO_SYMBOL;
    }
    return rc == 0
               ? symint_chain_frames(l->c, &facts->chain, &p, &l->answer.frames, &l->answer.count)
               : rc;
}

/* An address of the module's file, as its symbols and debug information have it. */
static int answer_image(struct lookup *l, struct symint_image *image)
{
    const struct sym_options *o = &l->c->options;
    struct symint_dwarf_want want = {.inlines = !o->no_inlines, .lines = !o->no_lines};
    struct symint_facts facts;
    int rc = symint_facts_in_image(l->c, l->module, image, &want, l->query->rel, &facts);
    if (rc == 0) {
        struct sym_frame f = blank_frame(l);
        f.miss = SYM_MISS_OUTSIDE;
        return remember_frame(l->c, &l->answer, &f);
    }
    if (rc > 0)
        rc = frames_of(l, &facts);
    if (rc == 0 && image->located.dwarf != NULL)
        symint_image_account(&l->c->registry, image);
    return rc == 0 ? remember(l->c, &l->answer) : rc;
}

/* What packed symbols are asked for. */
enum packed_part {
    PACKED_NAMED, /* what they have of that very address, with a name, or that it has none */
    PACKED_EXACT, /* without one, too */
    PACKED_AROUND /* the function around it */
};

/* 1 and the answer is there; 0: packed symbols have nothing. */
static int try_packed(struct lookup *l, enum packed_part part)
{
    struct symint_module *m = l->module;
    struct symint_facts facts;
    int rc = symint_module_load_packed(&l->c->registry, &l->c->strings, m, &l->c->search);
    if (rc <= 0)
        return rc;
    l->answer =
        answer_key(ANSWER_PACKED, m->file,
                   symint_mix(m->file_offset ^ symint_mix(m->end - m->start)), l->query->rel);
    if (recall(l->c, &l->answer))
        return 1;
    rc = symint_facts_in_packed(l->c, m, part != PACKED_AROUND, false, l->query->rel, &facts);
    if (rc <= 0)
        return rc;
    if (part == PACKED_NAMED && !symint_facts_named(&facts) && !facts.final)
        return 0;
    rc = frames_of(l, &facts);
    if (rc == 0)
        rc = remember(l->c, &l->answer);
    return rc == 0 ? 1 : rc;
}

static int answer_file(struct lookup *l)
{
    struct symint_registry *r = &l->c->registry;
    struct symint_module *m = l->module;
    const struct symint_file *file = r->files[m->file];
    int rc = try_packed(l, PACKED_NAMED);
    if (rc != 0)
        return rc < 0 ? rc : 0;
    /* Most questions were asked before: those need no index. */
    bool known = file->image != NULL && m->placed == file->image->serial;
    uint64_t place = (uint64_t)file->generation << 32 | m->place.segment;
    if (known) {
        l->answer =
            answer_key(ANSWER_FILE, m->file, place ^ symint_mix(m->place.shift), l->query->rel);
        if (recall(l->c, &l->answer))
            return 0;
    }
    struct symint_image *image = symint_module_load(r, &l->c->strings, m, &l->c->search);
    if (image == NULL)
        return SYM_ERR_NOMEM;
    if (image->located.elf == NULL) {
        rc = try_packed(l, PACKED_EXACT);
        if (rc == 0)
            rc = try_packed(l, PACKED_AROUND);
        return rc == 0 ? answer_address(l, image->located.miss) : rc < 0 ? rc : 0;
    }
    place = (uint64_t)file->generation << 32 | m->place.segment;
    l->answer = answer_key(ANSWER_FILE, m->file, place ^ symint_mix(m->place.shift), l->query->rel);
    return recall(l->c, &l->answer) ? 0 : answer_image(l, image);
}

/* ---- the caller's own symbolizer ---- */

static int copy_text(struct sym_context *c, const char *text, const char **out)
{
    *out = NULL;
    if (text == NULL)
        return 0;
    struct symint_text *t = symint_intern(&c->strings, text, strlen(text));
    if (t == NULL)
        return SYM_ERR_NOMEM;
    *out = t->text;
    return 0;
}

static int copy_native_frame(struct lookup *l, const struct sym_frame *from, struct sym_frame *to)
{
    struct sym_context *c = l->c;
    *to = blank_frame(l);
    to->line = from->line;
    to->column = from->column;
    to->start_line = from->start_line;
    to->inlined = from->inlined;
    to->function_start = from->function_start;
    to->offset = from->offset;
    to->origin = from->origin;
    to->flags |= from->flags;
    int rc = copy_text(c, from->file, &to->file);
    if (rc != 0)
        return rc;
    if (from->name == NULL && from->raw_name != NULL) {
        rc = symint_set_linkage_name(c, to, from->raw_name, strlen(from->raw_name));
    } else {
        rc = copy_text(c, from->name, &to->name);
        if (rc == 0)
            rc = copy_text(c, from->raw_name, &to->raw_name);
        if (to->raw_name == to->name) /* interned: equal texts are one */
            to->raw_name = NULL;
    }
    if (to->name == NULL)
        to->miss = SYM_MISS_NO_SYMBOL;
    else if (to->origin == SYM_ORIGIN_ADDRESS)
        to->origin = SYM_ORIGIN_SYMTAB; /* it has a name, so it is more than an address */
    set_python_flags(l, to);
    return rc;
}

/* Asks the callback, with more room as long as it wants more. The number of frames or an error. */
static int call_native(struct lookup *l, const struct symint_file *file)
{
    struct sym_context *c = l->c;
    const uint8_t *id = file->build_id->size > 0 ? (const uint8_t *)file->build_id->text : NULL;
    size_t wanted = c->native_capacity == 0 ? 16 : c->native_capacity;
    for (;;) {
        if (wanted > c->native_capacity) {
            struct sym_frame *frames = realloc(c->native_frames, wanted * sizeof(*frames));
            if (frames == NULL)
                return SYM_ERR_NOMEM;
            c->native_frames = frames;
            c->native_capacity = wanted;
        }
        memset(c->native_frames, 0, c->native_capacity * sizeof(*c->native_frames));
        int n =
            c->options.native(c->options.native_user, file->path->text, id, file->build_id->size,
                              l->query, c->native_frames, c->native_capacity);
        if (n < 0 || (size_t)n <= c->native_capacity)
            return n;
        if ((size_t)n > MAX_NATIVE_FRAMES)
            return SYM_ERR_LIMIT;
        wanted = (size_t)n;
    }
}

/* Remembers that the callback leaves this address to what comes behind it: an answer of no frames. */
static int remember_pass(struct lookup *l)
{
    static const struct sym_frame none;
    l->answer.frames = &none;
    l->answer.count = 0;
    return remember(l->c, &l->answer);
}

/* miss: the reason to give when the callback has no answer. *passed: whether it has left the address to others. */
static int answer_native(struct lookup *l, enum sym_miss miss, bool *passed)
{
    struct sym_context *c = l->c;
    const struct symint_file *file = c->registry.files[l->module->file];
    /* Mappings of one file share answers. What no file names is another thing in each place and process. */
    bool anonymous = l->module->anonymous;
    l->answer = answer_key(ANSWER_NATIVE, anonymous ? l->who : l->module->file,
                           (uint64_t)miss << 1 | anonymous, l->query->rel);
    *passed = false;
    if (recall(c, &l->answer)) {
        *passed = l->answer.count == 0;
        return 0;
    }
    int n = call_native(l, file);
    if (n == SYM_NATIVE_PASS) {
        *passed = true;
        return remember_pass(l);
    }
    if (n < 0)
        return n;
    if (n == 0) {
        struct sym_frame f = blank_frame(l);
        f.miss = miss;
        return remember_frame(c, &l->answer, &f);
    }
    struct sym_frame *frames = symint_arena_alloc(&c->strings.arena, (size_t)n * sizeof(*frames));
    if (frames == NULL)
        return SYM_ERR_NOMEM;
    for (int i = 0; i < n; i++) {
        int rc = copy_native_frame(l, &c->native_frames[i], &frames[i]);
        if (rc != 0)
            return rc;
    }
    frames[n - 1].inlined = false; /* the last one is the physical function */
    l->answer.frames = frames;
    l->answer.count = (size_t)n;
    return remember(c, &l->answer);
}

/* ---- the order ---- */

static int find_answer(struct lookup *l)
{
    const struct sym_context *c = l->c;
    if (l->module != NULL) {
        const struct symint_jit_name *name = symint_module_jit_name(l->module, l->query->abs);
        if (name != NULL)
            return answer_jit(l, name);
        if (l->module->jit)
            return answer_address(l, SYM_MISS_NO_JIT_NAME);
    }
    if (c->options.no_native)
        return answer_address(l, SYM_MISS_DISABLED);
    if (l->kernel)
        return answer_kernel(l);

    enum sym_miss miss = SYM_MISS_NO_SYMBOL;
    bool anonymous = l->module != NULL && l->module->anonymous;
    if (l->module == NULL || anonymous) {
        int rc = try_perf_map(l, &miss);
        if (rc != 0)
            return rc < 0 ? rc : 0;
    }
    if (l->module == NULL)
        return answer_address(l, SYM_MISS_NO_MODULE);
    if (c->options.native != NULL) {
        bool passed;
        int rc = answer_native(l, miss, &passed);
        if (rc != 0 || !passed)
            return rc;
    }
    return anonymous ? answer_address(l, miss) : answer_file(l);
}

int sym_resolve(struct sym_context *c, const struct sym_query *query,
                const struct sym_frame **frames, size_t *count)
{
    if (!c->open)
        return symint_fail(c, SYM_ERR_MISUSE, "the context is not open");
    struct sym_query before;
    if (query->return_address) {
        before = *query;
        before.abs--;
        before.rel--;
        before.return_address = false; /* for a native function, which is to look up what it sees */
        query = &before;
    }
    struct lookup l = {.c = c, .query = query, .who = query->module, .kernel = query->kernel};
    if (query->module != SYM_NO_MODULE) {
        if (query->module >= c->registry.count)
            return symint_fail(c, SYM_ERR_MISUSE, "module %u of %u", query->module,
                               c->registry.count);
        l.module = &c->registry.modules[query->module];
        l.kernel |= l.module->kernel;
    }
    int rc = find_answer(&l);
    if (rc != 0)
        return symint_fail_plain(c, rc);
    *frames = l.answer.frames;
    *count = l.answer.count;
    return 0;
}

/* ---- many at once ---- */

static uint64_t address_of(const struct sym_query *q)
{
    return q->module == SYM_NO_MODULE ? q->abs : q->rel;
}

static bool same_query(const struct sym_query *a, const struct sym_query *b)
{
    return a->module == b->module && a->pid == b->pid && a->kernel == b->kernel &&
           a->python_allowed == b->python_allowed && a->abs == b->abs && a->rel == b->rel &&
           a->time == b->time && a->return_address == b->return_address;
}

/* The order in which tables are walked from one end to the other: by module, then address. */
static int sort_queries(const struct sym_query *queries, uint32_t count, struct symint_pair *order)
{
    for (uint32_t i = 0; i < count; i++)
        order[i] = (struct symint_pair){.key = address_of(&queries[i]), .value = i};
    int rc = symint_sort_pairs(order, count);
    for (uint32_t i = 0; i < count; i++)
        order[i].key = queries[order[i].value].module;
    return rc != 0 ? rc : symint_sort_pairs(order, count);
}

#define MIN_GROUP 64 /* queries of a module that are worth being grouped */

/* Debug information is read unit by unit, and the code of one unit lies in several places: cold code, what runs at the
 * start, the rest. Where something is wrong the order stays as it is. */
static void group_by_unit(struct sym_context *c, const struct sym_query *queries,
                          struct symint_pair *order, uint32_t count)
{
    const struct sym_query *first = &queries[order[0].value];
    struct symint_module *m =
        first->module < c->registry.count ? &c->registry.modules[first->module] : NULL;
    if (m == NULL || count < MIN_GROUP || m->kernel || m->jit || m->anonymous || first->kernel ||
        c->options.native != NULL || c->options.no_native)
        return;
    /* What is packed needs no order, and often is all. */
    if (symint_module_load_packed(&c->registry, &c->strings, m, &c->search) != 0)
        return;
    const struct symint_image *image = symint_module_load(&c->registry, &c->strings, m, &c->search);
    if (image == NULL || image->located.elf == NULL || image->located.dwarf == NULL)
        return;
    for (uint32_t i = 0; i < count; i++) {
        const struct sym_query *q = &queries[order[i].value];
        uint64_t vaddr;
        bool inside =
            symint_elf_vaddr(image->located.elf, q->rel - q->return_address, &m->place, &vaddr);
        order[i].key = inside ? symint_dwarf_unit(image->located.dwarf, vaddr) : UINT32_MAX;
    }
    (void)symint_sort_pairs(order, count); /* without memory it stays as it was */
}

/* The same for each module of a batch, which is sorted by module. */
static void group_modules(struct sym_context *c, const struct sym_query *queries,
                          struct symint_pair *order, uint32_t count)
{
    for (uint32_t begin = 0, end; begin < count; begin = end) {
        uint64_t module = order[begin].key;
        for (end = begin; end < count && order[end].key == module;)
            end++;
        group_by_unit(c, queries, order + begin, end - begin);
    }
}

#define BATCH ((size_t)1 << 20) /* sorted at a time: 32 MiB */

int sym_resolve_many(struct sym_context *c, const struct sym_query *queries, size_t count,
                     struct sym_answer *answers)
{
    if (count > 0 && (queries == NULL || answers == NULL))
        return symint_fail(c, SYM_ERR_MISUSE, "%zu queries but no list of them or of answers",
                           count);
    size_t most = count < BATCH ? count : BATCH;
    struct symint_pair *order = symint_scratch_alloc(most, sizeof(*order));
    if (order == NULL)
        return symint_fail_plain(c, SYM_ERR_NOMEM);
    int rc = 0;
    for (size_t at = 0; at < count && rc == 0; at += most) {
        uint32_t n = (uint32_t)(count - at < most ? count - at : most);
        rc = sort_queries(queries + at, n, order);
        uint32_t distinct = 0;
        for (uint32_t i = 0; i < n && rc == 0; i++)
            distinct += i == 0 || !same_query(&queries[at + order[i].value],
                                              &queries[at + order[i - 1].value]);
        if (rc == 0 && distinct > c->answer_count)
            rc = reserve_answers(c, distinct - c->answer_count);
        if (rc == 0)
            group_modules(c, queries + at, order, n);
        if (rc != 0)
            symint_fail_plain(c, rc);
        for (uint32_t i = 0; i < n && rc == 0; i++) {
            size_t here = at + order[i].value;
            size_t before = i > 0 ? at + order[i - 1].value : here;
            if (i > 0 && same_query(&queries[here], &queries[before]))
                answers[here] = answers[before];
            else
                rc = sym_resolve(c, &queries[here], &answers[here].frames, &answers[here].count);
        }
    }
    free(order);
    return rc;
}
