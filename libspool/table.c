/* SPDX-License-Identifier: MIT */
/*
 * The definitions of a spool by id, and the search for the module of an unpinned frame. The search structure of a
 * process is built only when a frame asks for it: most spools pin every frame.
 */
#include "table.h"

#include <stdlib.h>
#include <string.h>

#include "annotation.h"
#include "arena.h"
#include "mix.h"
#include "module_index.h"

/* The modules among which a frame's module is searched: those of one process, or those of the kernel. */
struct module_class {
    bool used;
    bool kernel;
    int32_t pid;   /* 0 for the kernel's */
    uint32_t *ids; /* ascending */
    size_t count, capacity;
    size_t live_from; /* all before it are retired */
    size_t indexed;   /* how many of them the index has */
    struct module_index *index;
};

/* An answer of the search. kernel frames are remembered under pid 0: the process does not matter to them. */
struct locate_memo {
    uint32_t frame; /* SPOOL_NO_ID: free */
    int32_t pid;
    uint32_t module;
};

/* Slots of the memo, 96 MiB. Frames times processes have no bound: when half of them are taken, all is forgotten. */
#define MEMO_CAPACITY_MAX ((size_t)1 << 23)

/* Returns the array with room for one more element than count, grown by half so that a table of millions does not
 * double its peak; NULL: out of memory, the array is as it was. */
static void *grow(void *array, size_t *capacity, size_t count, size_t element_bytes)
{
    size_t wanted;
    void *grown;

    if (count < *capacity)
        return array;
    wanted = *capacity < 8 ? 8 : *capacity + *capacity / 2; /* few: there may be many processes */
    if (wanted > SIZE_MAX / element_bytes)
        return NULL;
    grown = realloc(array, wanted * element_bytes);
    if (grown)
        *capacity = wanted;
    return grown;
}

/* Through a void pointer of the table, because a T ** is no void **. */
#define GROW(t, array, capacity, count)                                          \
    (((t)->grown = grow((array), &(capacity), (count), sizeof *(array))) != NULL \
         ? ((array) = (t)->grown, true)                                          \
         : false)

void spoolint_table_init(struct table *t)
{
    memset(t, 0, sizeof *t);
    t->hash_seed = (uintptr_t)t; /* differs from run to run wherever addresses do */
}

void spoolint_table_free(struct table *t)
{
    for (size_t i = 0; i < t->class_capacity; i++) {
        free(t->classes[i].ids);
        spoolint_module_index_free(t->classes[i].index);
    }
    free(t->classes);
    free(t->modules);
    free(t->extras);
    free(t->frames);
    free(t->stacks);
    free(t->depths);
    free(t->threads);
    free(t->memo);
    free(t->kernel_addresses);
    free(t->retired);
    if (t->arena)
        spoolint_arena_free(t->arena);
    spoolint_table_init(t);
}

/* ---- classes ---- */

static size_t hash(uint64_t seed, uint64_t key)
{
    uint64_t h = spoolint_mix(seed, key);

    return (size_t)(h ^ h >> 32);
}

/* The slot of a class, or the free one where it belongs. */
static struct module_class *class_slot(uint64_t seed, struct module_class *classes, size_t capacity,
                                       int32_t pid, bool kernel)
{
    size_t i = hash(seed, (uint64_t)(uint32_t)pid << 1 | kernel) & (capacity - 1);

    while (classes[i].used && (classes[i].pid != pid || classes[i].kernel != kernel))
        i = (i + 1) & (capacity - 1);
    return &classes[i];
}

static struct module_class *find_class(const struct table *t, int32_t pid, bool kernel)
{
    struct module_class *found;

    if (t->class_capacity == 0)
        return NULL;
    found = class_slot(t->hash_seed, t->classes, t->class_capacity, kernel ? 0 : pid, kernel);
    return found->used ? found : NULL;
}

/* NULL: out of memory. */
static struct module_class *make_class(struct table *t, int32_t pid, bool kernel)
{
    struct module_class *slot;

    if (kernel)
        pid = 0;
    if (t->class_count * 2 >= t->class_capacity) {
        size_t capacity = t->class_capacity ? t->class_capacity * 2 : 16;
        struct module_class *classes = calloc(capacity, sizeof *classes);

        if (!classes)
            return NULL;
        for (size_t i = 0; i < t->class_capacity; i++)
            if (t->classes[i].used)
                *class_slot(t->hash_seed, classes, capacity, t->classes[i].pid,
                            t->classes[i].kernel) = t->classes[i];
        free(t->classes);
        t->classes = classes;
        t->class_capacity = capacity;
    }
    slot = class_slot(t->hash_seed, t->classes, t->class_capacity, pid, kernel);
    if (!slot->used) {
        slot->used = true;
        slot->pid = pid;
        slot->kernel = kernel;
        t->class_count++;
    }
    return slot;
}

/* ---- adding ---- */

/* Moves the byte strings of a decoded module from the window to the arena. */
static bool keep_strings(struct table *t, struct spool_module *m)
{
    struct spool_jit_symbol *kept;

    if (!t->arena && !(t->arena = spoolint_arena_new()))
        return false;
    m->path = spoolint_arena_copy_text(t->arena, m->path, m->path_size);
    if (!m->path)
        return false;
    if (m->jit_symbol_count == 0) {
        m->jit_symbols = NULL;
        return true;
    }
    kept = spoolint_arena_alloc(t->arena, m->jit_symbol_count * sizeof *kept, sizeof(void *));
    if (!kept)
        return false;
    for (size_t i = 0; i < m->jit_symbol_count; i++) {
        kept[i] = m->jit_symbols[i];
        kept[i].name = spoolint_arena_copy_text(t->arena, kept[i].name, kept[i].name_size);
        if (!kept[i].name)
            return false;
    }
    m->jit_symbols = kept;
    return true;
}

/* Takes the build id that a note has of a module in front of it. */
static bool keep_build_id(struct table *t, const struct spool_annotation *note)
{
    uint64_t about = note->number[0];
    uint8_t *bytes;

    if (about >= t->module_count || t->extras[about].is_note)
        return true;
    bytes = spoolint_arena_alloc(t->arena, note->text_size / 2, 1);
    if (!bytes)
        return false;
    t->extras[about].build_id = bytes;
    t->extras[about].build_id_size = (uint8_t)spoolint_annotation_bytes(note, bytes);
    return true;
}

int spoolint_table_add_module(struct table *t, struct spool_record *rec)
{
    struct spool_module m = rec->module;
    struct spool_annotation note;
    bool is_note;

    if (!GROW(t, t->modules, t->module_capacity, t->module_count) ||
        !GROW(t, t->extras, t->extra_capacity, t->module_count) || !keep_strings(t, &m))
        return SPOOL_ERR_NOMEM;
    is_note = !m.jit && spoolint_annotation_parse(&m, &note);
    if (is_note && note.key == SPOOL_NOTE_BUILD_ID && !keep_build_id(t, &note))
        return SPOOL_ERR_NOMEM;
    if (!is_note) {
        struct module_class *c = make_class(t, m.pid, m.kernel);

        if (!c || !GROW(t, c->ids, c->capacity, c->count))
            return SPOOL_ERR_NOMEM;
        c->ids[c->count++] = m.id;
    }
    t->modules[m.id] = m;
    t->extras[m.id] = (struct table_module){.is_note = is_note};
    t->module_count++;
    if (!is_note) {
        rec->module = m;
        return 0;
    }
    t->annotation_count++;
    if (note.key == SPOOL_NOTE_CLOCK) {
        t->has_clock = true;
        t->clock_monotonic_ns = note.number[0];
        t->clock_wall_ns = note.number[1];
    }
    rec->type = SPOOL_RECORD_ANNOTATION;
    rec->annotation = note;
    return 0;
}

int spoolint_table_add_frame(struct table *t, const struct spool_frame *frame)
{
    if (!GROW(t, t->frames, t->frame_capacity, t->frame_count))
        return SPOOL_ERR_NOMEM;
    t->frames[t->frame_count++] = (struct table_frame){
        .address = frame->rel,
        .module = frame->kind == SPOOL_FRAME_PINNED ? frame->module_id : t->module_count,
        .kind = (uint8_t)frame->kind,
        .kernel = frame->kernel,
    };
    return 0;
}

int spoolint_table_add_stack(struct table *t, struct spool_stack *stack)
{
    if (!GROW(t, t->stacks, t->stack_capacity, t->stack_count) ||
        !GROW(t, t->depths, t->depth_capacity, t->stack_count))
        return SPOOL_ERR_NOMEM;
    t->stacks[t->stack_count].prefix = stack->prefix;
    t->stacks[t->stack_count].frame = stack->frame;
    t->depths[t->stack_count] = stack->depth;
    t->stack_count++;
    return 0;
}

int spoolint_table_add_thread(struct table *t, const struct spool_thread *thread)
{
    if (!GROW(t, t->threads, t->thread_capacity, t->thread_count))
        return SPOOL_ERR_NOMEM;
    t->threads[t->thread_count++] = *thread;
    return 0;
}

void spoolint_table_retire_module(struct table *t, uint32_t id)
{
    if (t->modules[id].retired_at_frame == SPOOL_NOT_RETIRED)
        t->modules[id].retired_at_frame = t->frame_count;
}

int spoolint_table_retire_process(struct table *t, int32_t pid)
{
    struct module_class *c = find_class(t, pid, false);

    t->retired_count = 0;
    if (!c)
        return 0;
    /* Everything before live_from went at an earlier retirement: a file of deactivations stays linear. */
    for (; c->live_from < c->count; c->live_from++) {
        uint32_t id = c->ids[c->live_from];

        if (t->list_retired && t->modules[id].retired_at_frame == SPOOL_NOT_RETIRED) {
            if (!GROW(t, t->retired, t->retired_capacity, t->retired_count))
                return SPOOL_ERR_NOMEM;
            t->retired[t->retired_count++] = id;
        }
        spoolint_table_retire_module(t, id);
    }
    return 0;
}

/* ---- looking up ---- */

bool spoolint_table_get_frame(const struct table *t, uint32_t id, struct spool_frame *out)
{
    const struct table_frame *f;

    if (id >= t->frame_count)
        return false;
    f = &t->frames[id];
    *out = (struct spool_frame){.id = id,
                                .kind = (enum spool_frame_kind)f->kind,
                                .kernel = f->kernel,
                                .module_id = SPOOL_NO_ID,
                                .rel = f->address,
                                .abs = f->address};
    if (f->kind == SPOOL_FRAME_PINNED) {
        const struct spool_module *m = &t->modules[f->module];

        out->module_id = f->module;
        out->abs = m->start + (f->address - m->file_offset);
    }
    return true;
}

static uint64_t retired_at(const void *user, uint32_t module_id)
{
    const struct table *t = user;

    return t->modules[module_id].retired_at_frame;
}

static struct locate_memo *memo_slot(uint64_t seed, struct locate_memo *memo, size_t capacity,
                                     uint32_t frame, int32_t pid)
{
    size_t i = hash(seed, (uint64_t)frame << 32 | (uint32_t)pid) & (capacity - 1);

    while (memo[i].frame != SPOOL_NO_ID && (memo[i].frame != frame || memo[i].pid != pid))
        i = (i + 1) & (capacity - 1);
    return &memo[i];
}

static void memo_clear(struct locate_memo *memo, size_t capacity)
{
    for (size_t i = 0; i < capacity; i++)
        memo[i].frame = SPOOL_NO_ID;
}

/* A slot for (frame, pid), which may be free. NULL: out of memory. */
static struct locate_memo *memo_find(struct table *t, uint32_t frame, int32_t pid)
{
    if (t->memo_count * 2 >= t->memo_capacity && t->memo_capacity < MEMO_CAPACITY_MAX) {
        size_t capacity = t->memo_capacity ? t->memo_capacity * 2 : 256;
        struct locate_memo *memo = malloc(capacity * sizeof *memo);

        if (!memo)
            return NULL;
        memo_clear(memo, capacity);
        for (size_t i = 0; i < t->memo_capacity; i++)
            if (t->memo[i].frame != SPOOL_NO_ID)
                *memo_slot(t->hash_seed, memo, capacity, t->memo[i].frame, t->memo[i].pid) =
                    t->memo[i];
        free(t->memo);
        t->memo = memo;
        t->memo_capacity = capacity;
    } else if (t->memo_count * 2 >= t->memo_capacity) {
        memo_clear(t->memo, t->memo_capacity);
        t->memo_count = 0;
    }
    return memo_slot(t->hash_seed, t->memo, t->memo_capacity, frame, pid);
}

/* Searches a class for the module of an unpinned frame; SPOOL_NO_ID in *module when there is none. */
static int search_class(struct table *t, struct module_class *c, uint32_t frame, uint32_t *module)
{
    const struct table_frame *f = &t->frames[frame];
    int rc;

    *module = SPOOL_NO_ID;
    if (!c->index && !(c->index = spoolint_module_index_new(retired_at, t)))
        return SPOOL_ERR_NOMEM;
    for (; c->indexed < c->count; c->indexed++) {
        const struct spool_module *m = &t->modules[c->ids[c->indexed]];

        rc = spoolint_module_index_add(
            c->index, &(struct indexed_module){.id = m->id, .start = m->start, .end = m->end});
        if (rc < 0)
            return rc;
    }
    rc = spoolint_module_index_find(c->index, f->address, f->module, frame, module);
    if (rc < 0)
        return rc;
    if (rc > 0) {
        const struct spool_module *m = &t->modules[*module];

        /* A sum beyond 64 bits means no module; an older one is not tried. */
        if (f->address - m->start > UINT64_MAX - m->file_offset)
            rc = 0;
    }
    if (rc == 0)
        *module = SPOOL_NO_ID;
    return 0;
}

int spoolint_table_locate(struct table *t, uint32_t frame, int32_t pid, uint32_t *module_id,
                          uint64_t *rel)
{
    const struct table_frame *f;
    struct module_class *c;
    struct locate_memo *memo;
    const struct spool_module *m;
    int rc;

    *module_id = SPOOL_NO_ID;
    *rel = 0;
    if (frame >= t->frame_count)
        return 0;
    f = &t->frames[frame];
    if (f->kind == SPOOL_FRAME_PINNED) {
        *module_id = f->module;
        *rel = f->address;
        return 1;
    }
    if (f->kind == SPOOL_FRAME_TRUNCATED)
        return 0;
    if (f->kernel)
        pid = 0;
    c = find_class(t, pid, f->kernel);
    if (!c)
        return 0;
    memo = memo_find(t, frame, pid);
    if (!memo)
        return SPOOL_ERR_NOMEM;
    if (memo->frame == SPOOL_NO_ID) {
        uint32_t module;

        rc = search_class(t, c, frame, &module);
        if (rc < 0)
            return rc;
        *memo = (struct locate_memo){.frame = frame, .pid = pid, .module = module};
        t->memo_count++;
    }
    if (memo->module == SPOOL_NO_ID)
        return 0;
    m = &t->modules[memo->module];
    *module_id = memo->module;
    *rel = f->address - m->start + m->file_offset;
    return 1;
}

static int compare_u64(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

int spoolint_table_kernel_addresses(struct table *t, const uint64_t **addresses, size_t *count)
{
    size_t n = 0, unique = 0;

    for (uint32_t i = 0; i < t->frame_count; i++)
        n += t->frames[i].kernel;
    if (n > t->kernel_address_capacity) {
        uint64_t *grown = realloc(t->kernel_addresses, n * sizeof *grown);

        if (!grown)
            return SPOOL_ERR_NOMEM;
        t->kernel_addresses = grown;
        t->kernel_address_capacity = n;
    }
    n = 0;
    for (uint32_t i = 0; i < t->frame_count; i++) {
        struct spool_frame f;

        if (t->frames[i].kernel && spoolint_table_get_frame(t, i, &f))
            t->kernel_addresses[n++] = f.abs;
    }
    if (n > 0)
        qsort(t->kernel_addresses, n, sizeof *t->kernel_addresses, compare_u64);
    for (size_t i = 0; i < n; i++)
        if (i == 0 || t->kernel_addresses[i] != t->kernel_addresses[unique - 1])
            t->kernel_addresses[unique++] = t->kernel_addresses[i];
    *addresses = t->kernel_addresses;
    *count = unique;
    return 0;
}
