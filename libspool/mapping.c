/* SPDX-License-Identifier: MIT */
/*
 * The live mappings of recorded processes, and which module and deactivation records a change of them makes. Which file
 * a mapping is of, and when it was seen, is the caller's business.
 *
 * The records are those of stackpulse, byte for byte. For a mapping that is not live yet, in this order:
 *   - a module deactivation for each mapping of the process that it overlaps
 *   - a module for each piece that remains of them, mapping by mapping, left before right, the right one with its file
 *     offset moved along
 *   - a module for the mapping
 * Mappings are visited by id or by address, as the caller chose. Pieces never meet an equal mapping: those of a process
 * are disjoint.
 *
 * A change is checked and has all its memory before its first record is written, and is made when its last one has
 * been, so that a refused or failed change leaves the table as it was.
 */
#include <stdlib.h>
#include <string.h>

#include "format.h"
#include "writer_internal.h"

/* Pieces of a mapping and copies for children have the path in common. */
struct shared_path {
    size_t users;
    size_t size;
    char text[];
};

struct mapping {
    struct spool_module fields; /* path is that of `path` */
    struct shared_path *path;
};

/* The addresses that belong to a mapping. Of a process, that is all of it; of the kernel, what newer ones leave. */
struct range {
    uint64_t start;
    uint64_t end;
    struct mapping *mapping;
};

/* Disjoint, by ascending start. */
struct ranges {
    struct range *items;
    size_t count, capacity;
};

struct process {
    int32_t pid;
    uint64_t generation;
    struct ranges live; /* never empty */
};

struct spool_mappings {
    struct spool_writer *w;
    enum spool_mapping_order order;

    struct process **slots; /* open addressing, at most half full */
    size_t slot_count;      /* a power of two, or 0 */
    size_t process_count;
    uint64_t generation; /* the last one given out: none is given out twice */

    /* Kernel mappings are never retired and overlap freely. */
    struct mapping **kernel; /* by start, then id */
    size_t kernel_count, kernel_capacity;
    struct ranges kernel_live; /* the newest at each address */

    struct mapping **visit; /* scratch */
    size_t visit_capacity;
};

/* ---- memory ---- */

static int no_memory(struct spool_mappings *m)
{
    return spoolint_error_set(&m->w->error, SPOOL_ERR_NOMEM, "out of memory for the mapping table");
}

/* Makes room for `wanted` elements. Returns the array, moved perhaps; NULL: out of memory, it is as it was. */
static void *grow(void *array, size_t *capacity, size_t wanted, size_t element_bytes)
{
    size_t target = *capacity < 8 ? 8 : *capacity + *capacity / 2;
    void *grown;

    if (target < wanted)
        target = wanted;
    if (target > SIZE_MAX / element_bytes)
        return NULL;
    grown = realloc(array, target * element_bytes);
    if (grown)
        *capacity = target;
    return grown;
}

static bool reserve_ranges(struct ranges *r, size_t wanted)
{
    struct range *grown;

    if (wanted <= r->capacity)
        return true;
    grown = grow(r->items, &r->capacity, wanted, sizeof *grown);
    if (grown)
        r->items = grown;
    return grown != NULL;
}

static bool reserve_pointers(struct mapping ***array, size_t *capacity, size_t wanted)
{
    struct mapping **grown;

    if (wanted <= *capacity)
        return true;
    grown = grow(*array, capacity, wanted, sizeof(struct mapping *));
    if (grown)
        *array = grown;
    return grown != NULL;
}

/* Takes `path` for the mapping's own when it is not NULL. NULL: out of memory. */
static struct mapping *mapping_new(const struct spool_module *fields, struct shared_path *path)
{
    struct mapping *x = malloc(sizeof *x);

    if (!x)
        return NULL;
    if (path) {
        path->users++;
    } else {
        path = malloc(sizeof *path + fields->path_size + 1);
        if (!path) {
            free(x);
            return NULL;
        }
        path->users = 1;
        path->size = fields->path_size;
        if (path->size > 0)
            memcpy(path->text, fields->path, path->size);
        path->text[path->size] = '\0';
    }
    x->path = path;
    x->fields = *fields;
    x->fields.id = SPOOL_NO_ID;
    x->fields.path = path->text;
    x->fields.jit_symbols = NULL;
    x->fields.jit_symbol_count = 0;
    x->fields.retired_at_frame = SPOOL_NOT_RETIRED;
    return x;
}

static void mapping_free(struct mapping *x)
{
    if (!x)
        return;
    if (--x->path->users == 0)
        free(x->path);
    free(x);
}

static void process_free(struct process *p)
{
    if (!p)
        return;
    for (size_t i = 0; i < p->live.count; i++)
        mapping_free(p->live.items[i].mapping);
    free(p->live.items);
    free(p);
}

/* ---- processes ---- */

static size_t home_slot(int32_t pid, size_t slot_count)
{
    return (size_t)((uint32_t)pid * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (slot_count - 1);
}

/* The slot of a process, or the free one where it belongs. */
static size_t process_slot(struct process *const *slots, size_t slot_count, int32_t pid)
{
    size_t i = home_slot(pid, slot_count);

    while (slots[i] && slots[i]->pid != pid)
        i = (i + 1) & (slot_count - 1);
    return i;
}

static struct process *find_process(const struct spool_mappings *m, int32_t pid)
{
    return m->slot_count == 0 ? NULL : m->slots[process_slot(m->slots, m->slot_count, pid)];
}

/* Room for one process more. */
static bool reserve_slot(struct spool_mappings *m)
{
    size_t slot_count = m->slot_count == 0 ? 16 : m->slot_count * 2;
    struct process **slots;

    if ((m->process_count + 1) * 2 <= m->slot_count)
        return true;
    slots = calloc(slot_count, sizeof(struct process *));
    if (!slots)
        return false;
    for (size_t i = 0; i < m->slot_count; i++)
        if (m->slots[i])
            slots[process_slot(slots, slot_count, m->slots[i]->pid)] = m->slots[i];
    free(m->slots);
    m->slots = slots;
    m->slot_count = slot_count;
    return true;
}

static void insert_process(struct spool_mappings *m, struct process *p)
{
    m->slots[process_slot(m->slots, m->slot_count, p->pid)] = p;
    m->process_count++;
}

/* Closes the gap at once: marks of removed entries would add up with every short process. */
static void remove_process(struct spool_mappings *m, struct process *p)
{
    size_t mask = m->slot_count - 1;
    size_t gap = process_slot(m->slots, m->slot_count, p->pid);

    for (size_t i = (gap + 1) & mask; m->slots[i]; i = (i + 1) & mask) {
        size_t home = home_slot(m->slots[i]->pid, m->slot_count);

        if (((i - home) & mask) >= ((i - gap) & mask)) {
            m->slots[gap] = m->slots[i];
            gap = i;
        }
    }
    m->slots[gap] = NULL;
    m->process_count--;
    process_free(p);
}

/* ---- ranges ---- */

/* The first range that ends above the address. */
static size_t first_ending_above(const struct ranges *r, uint64_t address)
{
    size_t low = 0, high = r->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (r->items[middle].end > address)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* The first range that starts at the address or above. */
static size_t first_starting_from(const struct ranges *r, uint64_t address)
{
    size_t low = 0, high = r->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (r->items[middle].start >= address)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* A new mapping's place among ranges. */
struct place {
    size_t first, past; /* the ranges that it overlaps; none when they are equal */
    bool left, right;   /* whether something remains of the first and of the last of them */
};

static struct place find_place(const struct ranges *r, uint64_t start, uint64_t end)
{
    struct place at = {.first = first_ending_above(r, start)};

    at.past = first_starting_from(r, end);
    if (at.first < at.past) {
        at.left = r->items[at.first].start < start;
        at.right = r->items[at.past - 1].end > end;
    }
    return at;
}

/* Puts the new mapping in place of what it overlaps; `left` and `right` are the owners of what remains. There is room
 * for it. */
static void put_in_place(struct ranges *r, const struct place *at, struct mapping *left,
                         struct mapping *added, struct mapping *right)
{
    const struct spool_module *m = &added->fields;
    struct range with[3];
    size_t count = 0;

    if (at->left)
        with[count++] = (struct range){r->items[at->first].start, m->start, left};
    with[count++] = (struct range){m->start, m->end, added};
    if (at->right)
        with[count++] = (struct range){m->end, r->items[at->past - 1].end, right};
    memmove(r->items + at->first + count, r->items + at->past,
            (r->count - at->past) * sizeof *r->items);
    memcpy(r->items + at->first, with, count * sizeof *with);
    r->count += count;
    r->count -= at->past - at->first;
}

/* ---- what is written ---- */

static int compare_ids(const void *a, const void *b)
{
    uint32_t left = (*(struct mapping *const *)a)->fields.id;
    uint32_t right = (*(struct mapping *const *)b)->fields.id;

    return (left > right) - (left < right);
}

/* Fills m->visit with the mappings of ranges in the table's order. false: out of memory. */
static bool visit(struct spool_mappings *m, const struct range *items, size_t count)
{
    if (!reserve_pointers(&m->visit, &m->visit_capacity, count))
        return false;
    for (size_t i = 0; i < count; i++)
        m->visit[i] = items[i].mapping;
    if (m->order == SPOOL_MAPPING_BY_ID && count > 1)
        qsort(m->visit, count, sizeof(struct mapping *), compare_ids);
    return true;
}

static int write_mapping(struct spool_mappings *m, struct mapping *x)
{
    return x ? spool_writer_module(m->w, &x->fields, &x->fields.id) : 0;
}

/* Whether `m` is the mapping that is live. A generation of 0 is one that was not known. */
static bool is_live(const struct spool_module *live, const struct spool_module *m)
{
    return live->start == m->start && live->end == m->end && live->pid == m->pid &&
           live->file_offset == m->file_offset && live->inode == m->inode &&
           live->dev_major == m->dev_major && live->dev_minor == m->dev_minor &&
           (live->inode_gen == m->inode_gen || m->inode_gen == 0) &&
           live->path_size == m->path_size &&
           (m->path_size == 0 || memcmp(live->path, m->path, m->path_size) == 0);
}

/* Whether the writer would take the mapping and `pieces` of others. */
static int check_records(struct spool_mappings *m, const struct spool_module *mapping,
                         uint32_t pieces)
{
    int rc = spoolint_writer_check_module(m->w, mapping);

    if (rc == 0 && m->w->id_count_max - m->w->module_count <= pieces)
        rc = spoolint_writer_id_limit_error(m->w, "modules");
    return rc;
}

/* ---- mappings of processes ---- */

static struct mapping *new_left_piece(const struct mapping *old, uint64_t end)
{
    struct spool_module piece = old->fields;

    piece.end = end;
    return mapping_new(&piece, old->path);
}

static struct mapping *new_right_piece(const struct mapping *old, uint64_t start)
{
    struct spool_module piece = old->fields;
    uint64_t moved = start - piece.start;

    piece.file_offset =
        piece.file_offset > UINT64_MAX - moved ? UINT64_MAX : piece.file_offset + moved;
    piece.start = start;
    return mapping_new(&piece, old->path);
}

static struct process *process_new(int32_t pid)
{
    struct process *p = calloc(1, sizeof *p);

    if (p)
        p->pid = pid;
    return p;
}

/* Writes what a change is made of: m->visit[0..retired) go, pieces and mapping come. */
static int write_change(struct spool_mappings *m, size_t retired, struct mapping *left,
                        struct mapping *right, bool right_first, struct mapping *added)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < retired; i++)
        rc = spool_writer_deactivate_module(m->w, m->visit[i]->fields.id);
    if (rc == 0)
        rc = write_mapping(m, right_first ? right : left);
    if (rc == 0)
        rc = write_mapping(m, right_first ? left : right);
    return rc < 0 ? rc : write_mapping(m, added);
}

/* Replaces what overlaps the mapping; p is its process, already in the table or not (`fresh`). */
static int replace(struct spool_mappings *m, struct process *p, bool fresh, const struct place *at,
                   const struct spool_module *mapping, struct shared_path *path, uint32_t *id)
{
    struct ranges *live = &p->live;
    size_t over_count = at->past - at->first;
    const struct range *over = over_count > 0 ? &live->items[at->first] : NULL;
    struct mapping *left = NULL, *right = NULL, *added = NULL;
    bool right_first = false;
    int rc = SPOOL_ERR_NOMEM;

    if ((fresh && !reserve_slot(m)) || !visit(m, over, over_count))
        goto fail;
    if (at->left && !(left = new_left_piece(over[0].mapping, mapping->start)))
        goto fail;
    if (at->right && !(right = new_right_piece(over[over_count - 1].mapping, mapping->end)))
        goto fail;
    if (left && right)
        right_first = m->order == SPOOL_MAPPING_BY_ID &&
                      over[over_count - 1].mapping->fields.id < over[0].mapping->fields.id;
    added = mapping_new(mapping, path);
    if (!added || !reserve_ranges(live, live->count + 3))
        goto fail;
    rc = write_change(m, over_count, left, right, right_first, added);
    if (rc < 0)
        goto fail;
    for (size_t i = at->first; i < at->past; i++)
        mapping_free(live->items[i].mapping);
    put_in_place(live, at, left, added, right);
    if (fresh)
        insert_process(m, p);
    if (fresh || over_count > 0)
        p->generation = ++m->generation;
    if (id)
        *id = added->fields.id;
    return 0;

fail:
    mapping_free(left);
    mapping_free(right);
    mapping_free(added);
    return rc == SPOOL_ERR_NOMEM && m->w->sticky == 0 ? no_memory(m) : rc;
}

static int apply_to_process(struct spool_mappings *m, const struct spool_module *mapping,
                            struct shared_path *path, uint32_t *id)
{
    struct process *p = find_process(m, mapping->pid);
    bool fresh = p == NULL;
    struct place at = {0};
    int rc;

    if (p) {
        at = find_place(&p->live, mapping->start, mapping->end);
        /* An equal one can only be the one that it overlaps. */
        if (at.past - at.first == 1 && is_live(&p->live.items[at.first].mapping->fields, mapping)) {
            if (id)
                *id = p->live.items[at.first].mapping->fields.id;
            return 0;
        }
    }
    rc = check_records(m, mapping, (uint32_t)at.left + at.right);
    if (rc < 0)
        return rc;
    if (fresh && !(p = process_new(mapping->pid)))
        return no_memory(m);
    rc = replace(m, p, fresh, &at, mapping, path, id);
    if (rc < 0 && fresh)
        process_free(p);
    return rc;
}

/* ---- mappings of the kernel ---- */

/* The first kernel mapping that starts at the address or above. */
static size_t first_kernel_from(const struct spool_mappings *m, uint64_t start)
{
    size_t low = 0, high = m->kernel_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (m->kernel[middle]->fields.start >= start)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static int apply_to_kernel(struct spool_mappings *m, const struct spool_module *mapping,
                           uint32_t *id)
{
    struct ranges *live = &m->kernel_live;
    size_t i = first_kernel_from(m, mapping->start);
    struct mapping *added;
    struct place at;
    int rc;

    for (; i < m->kernel_count && m->kernel[i]->fields.start == mapping->start; i++)
        if (is_live(&m->kernel[i]->fields, mapping)) {
            if (id)
                *id = m->kernel[i]->fields.id;
            return 0;
        }
    rc = check_records(m, mapping, 0);
    if (rc < 0)
        return rc;
    added = mapping_new(mapping, NULL);
    if (!added || !reserve_pointers(&m->kernel, &m->kernel_capacity, m->kernel_count + 1) ||
        !reserve_ranges(live, live->count + 2)) {
        mapping_free(added);
        return no_memory(m);
    }
    rc = write_mapping(m, added);
    if (rc < 0) {
        mapping_free(added);
        return rc;
    }
    memmove(m->kernel + i + 1, m->kernel + i, (m->kernel_count - i) * sizeof(struct mapping *));
    m->kernel[i] = added;
    m->kernel_count++;
    at = find_place(live, mapping->start, mapping->end);
    put_in_place(live, &at, at.left ? live->items[at.first].mapping : NULL, added,
                 at.right ? live->items[at.past - 1].mapping : NULL);
    if (id)
        *id = added->fields.id;
    return 0;
}

/* ---- API ---- */

struct spool_mappings *spool_mappings_new(struct spool_writer *w, enum spool_mapping_order order)
{
    struct spool_mappings *m = calloc(1, sizeof *m);

    if (m) {
        m->w = w;
        m->order = order;
    }
    return m;
}

void spool_mappings_free(struct spool_mappings *m)
{
    if (!m)
        return;
    for (size_t i = 0; i < m->slot_count; i++)
        process_free(m->slots[i]);
    for (size_t i = 0; i < m->kernel_count; i++)
        mapping_free(m->kernel[i]);
    free(m->slots);
    free(m->kernel);
    free(m->kernel_live.items);
    free(m->visit);
    free(m);
}

int spool_mappings_apply(struct spool_mappings *m, const struct spool_module *mapping, uint32_t *id)
{
    struct spool_module fields = *mapping;
    int rc = spoolint_writer_ready(m->w);

    if (id)
        *id = SPOOL_NO_ID;
    if (rc < 0)
        return rc;
    if (fields.jit)
        return writer_misuse(m->w, "JIT module as a mapping");
    if (fields.end <= fields.start)
        return 0;
    if (!fields.kernel)
        return apply_to_process(m, &fields, NULL, id);
    /* As it is stored: kernel mappings of version 4 have no process in which they could differ. */
    if (m->w->version >= FORMAT_VERSION_ORIGIN)
        fields.pid = -1;
    return apply_to_kernel(m, &fields, id);
}

int spool_mappings_deactivate(struct spool_mappings *m, int32_t pid)
{
    struct process *p = find_process(m, pid);
    int rc = spoolint_writer_ready(m->w);

    if (rc < 0 || !p)
        return rc;
    rc = spool_writer_deactivate_process(m->w, pid);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < p->live.count; i++)
        spoolint_writer_retire(m->w, p->live.items[i].mapping->fields.id);
    remove_process(m, p);
    return 0;
}

int spool_mappings_clone(struct spool_mappings *m, int32_t parent, int32_t child)
{
    const struct process *p = find_process(m, parent);
    int rc = spoolint_writer_ready(m->w);
    struct mapping **copies;
    size_t count;

    if (rc < 0 || !p || parent == child)
        return rc;
    count = p->live.count;
    copies = malloc(count * sizeof(struct mapping *));
    if (!copies || !visit(m, p->live.items, count)) {
        free(copies);
        return no_memory(m);
    }
    memcpy(copies, m->visit, count * sizeof(struct mapping *)); /* applying visits, too */
    for (size_t i = 0; rc == 0 && i < count; i++) {
        struct spool_module copy = copies[i]->fields;

        copy.pid = child;
        rc = apply_to_process(m, &copy, copies[i]->path, NULL);
    }
    free(copies);
    return rc;
}

static const struct mapping *find_mapping(const struct spool_mappings *m, int32_t pid, bool kernel,
                                          uint64_t address)
{
    const struct ranges *live = &m->kernel_live;
    size_t i;

    if (!kernel) {
        const struct process *p = find_process(m, pid);

        if (!p)
            return NULL;
        live = &p->live;
    }
    i = first_ending_above(live, address);
    return i < live->count && live->items[i].start <= address ? live->items[i].mapping : NULL;
}

int spool_mappings_find(const struct spool_mappings *m, int32_t pid, bool kernel, uint64_t address,
                        struct spool_module *out)
{
    const struct mapping *x = find_mapping(m, pid, kernel, address);

    if (!x)
        return 0;
    *out = x->fields;
    return 1;
}

void spool_mappings_frame(const struct spool_mappings *m, int32_t pid, bool kernel,
                          uint64_t address, struct spool_writer_frame *out)
{
    const struct mapping *x = find_mapping(m, pid, kernel, address);

    *out = (struct spool_writer_frame){.kind = SPOOL_FRAME_UNPINNED,
                                       .kernel = kernel,
                                       .module_id = SPOOL_NO_ID,
                                       .address = address};
    /* Beyond 64 bits there is no offset in a file; readers see it the same way. */
    if (!x || address - x->fields.start > UINT64_MAX - x->fields.file_offset)
        return;
    out->kind = SPOOL_FRAME_PINNED;
    out->module_id = x->fields.id;
    out->address = address - x->fields.start + x->fields.file_offset;
}

int spool_mappings_next(const struct spool_mappings *m, int32_t pid, size_t *at,
                        struct spool_module *out)
{
    const struct process *p = find_process(m, pid);

    if (!p || *at >= p->live.count)
        return 0;
    *out = p->live.items[(*at)++].mapping->fields;
    return 1;
}

uint64_t spool_mappings_generation(const struct spool_mappings *m, int32_t pid)
{
    const struct process *p = find_process(m, pid);

    return p ? p->generation : 0;
}
