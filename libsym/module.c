/* SPDX-License-Identifier: MIT */
/* The registry of modules and files, and what a module's path says about it. */
#include "module.h"

#include "debug_paths.h"
#include "python.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHARED_ROOT UINT64_MAX /* no process has this root */
#define DWARF_SHARE 4          /* one file's debug information may take this part of all memory */

/* ---- paths ---- */

static bool has_prefix(const char *p, size_t size, const char *prefix)
{
    size_t n = strlen(prefix);
    return size >= n && memcmp(p, prefix, n) == 0;
}

const char *sym_display_path(const char *path, size_t path_size, size_t *size)
{
    if (path == NULL) {
        *size = 0;
        return "";
    }
    *size = path_size;
    if (has_prefix(path, path_size, "[") || has_prefix(path, path_size, "//anon"))
        return path;
    size_t end = symint_without_deleted(path, path_size);
    size_t begin = end;
    while (begin > 0 && path[begin - 1] != '/')
        begin--;
    if (begin == end) { /* ends in a slash: there is no base name */
        *size = end;
        return path;
    }
    *size = end - begin;
    return path + begin;
}

bool sym_is_anonymous_path(const char *path, size_t path_size)
{
    static const char *const whole[] = {"//anon", "[heap]", "[stack]", "/dev/zero",
                                        "/anon_hugepage"};
    static const char *const begin[] = {"[anon", "[stack:", "/memfd:", "memfd:", "/SYSV", "//anon"};
    if (path == NULL)
        return true;
    size_t size = symint_without_deleted(path, path_size);
    if (size == 0)
        return true;
    for (size_t i = 0; i < sizeof(whole) / sizeof(whole[0]); i++)
        if (size == strlen(whole[i]) && memcmp(path, whole[i], size) == 0)
            return true;
    for (size_t i = 0; i < sizeof(begin) / sizeof(begin[0]); i++)
        if (has_prefix(path, size, begin[i]))
            return true;
    return false;
}

/* ---- JIT names ---- */

/* Names of one start: longest first, then in their own order, so that the sweep leaves the
 * innermost and of equal ones the last. */
static int compare_names(const void *a, const void *b)
{
    const struct sym_jit_name *const *x = a;
    const struct sym_jit_name *const *y = b;
    if ((*x)->start != (*y)->start)
        return (*x)->start < (*y)->start ? -1 : 1;
    if ((*x)->end != (*y)->end)
        return (*x)->end > (*y)->end ? -1 : 1;
    return *x < *y ? -1 : *x > *y;
}

static int copy_names(struct symint_module *m, struct symint_strings *s,
                      const struct sym_module *module)
{
    size_t count = module->jit_name_count;
    if (count == 0)
        return 0;
    if (count >= SYMINT_NO_OWNER)
        return SYM_ERR_LIMIT;
    struct symint_sweep sweep = {0};
    const struct sym_jit_name **order = malloc(count * sizeof(*order));
    m->names = malloc(count * sizeof(*m->names));
    int rc = SYM_ERR_NOMEM;
    if (order == NULL || m->names == NULL)
        goto done;
    bool sorted = true;
    for (size_t i = 0; i < count; i++) {
        order[i] = &module->jit_names[i];
        sorted &= i == 0 || compare_names(&order[i - 1], &order[i]) < 0;
    }
    if (!sorted)
        qsort(order, count, sizeof(*order), compare_names);
    rc = symint_sweep_start(&sweep, &m->name_index, count);
    for (uint32_t i = 0; i < count && rc == 0; i++) {
        const struct sym_jit_name *name = order[i];
        if (name->start >= name->end || name->name_size == 0 || name->name == NULL)
            continue; /* nothing is what it names */
        m->names[i].start = name->start;
        m->names[i].name = symint_intern_name(s, name->name, name->name_size);
        if (m->names[i].name == NULL)
            rc = SYM_ERR_NOMEM;
        else
            symint_sweep_push(&sweep, name->start, name->end, i);
    }
    if (rc == 0)
        symint_sweep_finish(&sweep);
    else if (sweep.out != NULL)
        symint_sweep_abandon(&sweep);
    symint_segments_settle(&m->name_index);
done:
    free(order);
    if (rc != 0) {
        free(m->names);
        m->names = NULL;
    }
    return rc;
}

const struct symint_jit_name *symint_module_jit_name(const struct symint_module *m,
                                                     uint64_t address)
{
    uint32_t owner = symint_segments_find(&m->name_index, address);
    return owner == SYMINT_NO_OWNER ? NULL : &m->names[owner];
}

/* ---- files ---- */

/* Without a build id a file is its inode, as far as it is known, in the root of its process. */
static bool same_file(const struct symint_file *f, const struct symint_file *g)
{
    if (f->path != g->path || f->build_id != g->build_id || f->root_id != g->root_id ||
        f->capture != g->capture || f->assumed != g->assumed)
        return false;
    const struct symint_wanted *w = &f->wanted;
    const struct symint_wanted *v = &g->wanted;
    /* The one path that names several files: the vdso of 64-bit and of 32-bit programs. */
    if (f->path->text[0] == '[' &&
        (w->end - w->start != v->end - v->start || (w->end > UINT32_MAX) != (v->end > UINT32_MAX)))
        return false;
    return f->build_id->size > 0 ||
           (w->inode == v->inode && w->dev_major == v->dev_major && w->dev_minor == v->dev_minor &&
            w->has_file_state == v->has_file_state && w->file_size_bytes == v->file_size_bytes &&
            w->file_mtime_ns == v->file_mtime_ns);
}

/* Of all that same_file compares: a spool may have many modules that differ in one of them alone. */
static uint64_t file_hash(const struct symint_file *f)
{
    const struct symint_wanted *w = &f->wanted;
    uint64_t h = f->path->hash ^ (f->build_id->hash << 1 | f->build_id->hash >> 63) ^ f->root_id;
    h = symint_mix(h ^ (uint64_t)f->capture << 1 ^ f->assumed);
    if (f->path->text[0] == '[')
        h = symint_mix(h ^ (w->end - w->start) ^ (uint64_t)(w->end > UINT32_MAX) << 63);
    if (f->build_id->size > 0)
        return h;
    h = symint_mix(h ^ w->inode);
    h = symint_mix(h ^ ((uint64_t)w->dev_major << 32 | w->dev_minor));
    return w->has_file_state
               ? symint_mix(symint_mix(h ^ w->file_size_bytes) ^ (uint64_t)w->file_mtime_ns)
               : h;
}

static int grow_files(struct symint_registry *r)
{
    struct symint_file **files =
        symint_grow(r->files, r->file_count, &r->file_capacity, sizeof(*files), 16);
    if (files == NULL)
        return SYM_ERR_NOMEM;
    r->files = files;
    if (r->file_count >= r->slot_count / 4 * 3) {
        uint32_t slot_count = r->slot_count == 0 ? 64 : r->slot_count * 2;
        uint32_t *slots = calloc(slot_count, sizeof(*slots));
        if (slots == NULL)
            return SYM_ERR_NOMEM;
        for (uint32_t i = 0; i < r->file_count; i++) {
            uint32_t at = (uint32_t)file_hash(r->files[i]) & (slot_count - 1);
            while (slots[at] != 0)
                at = (at + 1) & (slot_count - 1);
            slots[at] = i + 1;
        }
        free(r->slots);
        r->slots = slots;
        r->slot_count = slot_count;
    }
    return 0;
}

static int describe_file(struct symint_strings *s, const char *path, size_t path_size,
                         const struct sym_module *module, const struct symint_live *live,
                         uint32_t capture, struct symint_file *f)
{
    size_t id_size = module->build_id != NULL ? module->build_id_size : 0;
    f->path = symint_intern(s, path, path_size);
    f->build_id = symint_intern(s, id_size > 0 ? (const char *)module->build_id : "", id_size);
    if (f->path == NULL || f->build_id == NULL)
        return SYM_ERR_NOMEM;
    f->root_id = live->alive ? live->root_id : 0;
    /* What this machine's processes and boot tell about a file holds for their captures only; a
     * build id is the same everywhere. */
    f->capture = id_size > 0 ? 0 : capture;
    f->assumed = id_size > 0 && module->build_id_assumed;
    f->wanted = (struct symint_wanted){
        .path = f->path->text,
        .path_size = path_size,
        .build_id = (const uint8_t *)f->build_id->text,
        .build_id_size = id_size,
        .start = module->start,
        .end = module->end,
        .live_pid = live->alive ? module->pid : 0,
        .live_root = live->alive && live->own_root,
        .inode = module->inode,
        .dev_major = module->dev_major,
        .dev_minor = module->dev_minor,
        .has_file_state = module->has_file_state,
        .file_size_bytes = module->file_size_bytes,
        .file_mtime_ns = module->file_mtime_ns,
        .no_download = module->no_download,
    };
    return 0;
}

/* The file that is equal to the wanted one, which becomes one if there is none yet. */
static int find_file(struct symint_registry *r, struct symint_strings *s,
                     const struct symint_file *wanted, uint32_t *file)
{
    if (r->file_count >= UINT32_MAX / 4)
        return SYM_ERR_LIMIT;
    int rc = grow_files(r);
    if (rc != 0)
        return rc;
    uint32_t at = (uint32_t)file_hash(wanted) & (r->slot_count - 1);
    for (; r->slots[at] != 0; at = (at + 1) & (r->slot_count - 1)) {
        if (same_file(r->files[r->slots[at] - 1], wanted)) {
            *file = r->slots[at] - 1;
            return 0;
        }
    }
    struct symint_file *f = symint_arena_alloc(&s->arena, sizeof(*f));
    if (f == NULL)
        return SYM_ERR_NOMEM;
    *f = *wanted;
    *file = r->file_count;
    r->files[r->file_count++] = f;
    r->slots[at] = r->file_count;
    return 0;
}

static int find_module_file(struct symint_registry *r, struct symint_strings *s, const char *path,
                            size_t path_size, const struct sym_module *module,
                            const struct symint_live *live, uint32_t capture, uint32_t *file)
{
    struct symint_file wanted = {0};
    int rc = describe_file(s, path, path_size, module, live, capture, &wanted);
    if (rc == 0 && wanted.build_id->size > 0) {
        struct symint_file shared = {.build_id = wanted.build_id, .root_id = SHARED_ROOT};
        uint32_t index;
        shared.path = symint_intern(s, "", 0);
        rc = shared.path == NULL ? SYM_ERR_NOMEM : find_file(r, s, &shared, &index);
        if (rc == 0)
            wanted.shared = r->files[index];
    }
    if (rc == 0)
        rc = find_file(r, s, &wanted, file);
    if (rc != 0)
        return rc;
    /* A file that was not found may still be held by this process. */
    struct symint_file *f = r->files[*file];
    f->wanted.no_download &= wanted.wanted.no_download;
    if (wanted.wanted.live_pid > 0 && f->wanted.live_pid != wanted.wanted.live_pid &&
        f->image != NULL && f->image->located.elf == NULL &&
        f->image->located.miss != SYM_MISS_NONE) {
        symint_file_invalidate(r, f);
        f->wanted = wanted.wanted;
    }
    return 0;
}

/* ---- images ---- */

/* The list of images that have an index, the last used first. */
static void unlist(struct symint_registry *r, struct symint_image *image)
{
    if (image->located.elf == NULL)
        return;
    if (image->previous != NULL)
        image->previous->next = image->next;
    else
        r->images = image->next;
    if (image->next != NULL)
        image->next->previous = image->previous;
    image->next = NULL;
    image->previous = NULL;
}

static void list_first(struct symint_registry *r, struct symint_image *image)
{
    image->previous = NULL;
    image->next = r->images;
    if (r->images != NULL)
        r->images->previous = image;
    r->images = image;
}

static void free_located(struct symint_located *l)
{
    symint_elf_free(l->elf);
    symint_dwarf_free(l->dwarf);
    l->elf = NULL;
    l->dwarf = NULL;
}

static void drop_index(struct symint_registry *r, struct symint_image *image)
{
    unlist(r, image);
    if (image->located.dwarf != NULL)
        r->dwarf_count--;
    free_located(&image->located);
    r->table_bytes -= image->bytes;
    image->bytes = 0;
}

/* New files of that build id look for it themselves. */
static void stop_sharing(struct symint_image *image)
{
    if (image->shared != NULL)
        image->shared->image = NULL;
    image->shared = NULL;
}

static void leave_image(struct symint_registry *r, struct symint_file *f)
{
    struct symint_image *image = f->image;
    f->image = NULL;
    if (image == NULL || --image->users > 0)
        return;
    drop_index(r, image);
    stop_sharing(image);
    free(image);
}

/* Drops what was not used for long until the rest is within the limits: indexes for memory, those
 * with debug information, which keeps files open, for descriptors. */
static void keep_limits(struct symint_registry *r, const struct symint_image *keep)
{
    struct symint_image *last = r->images;
    if (r->table_bytes <= r->memory_limit_bytes && r->dwarf_count <= r->dwarf_limit)
        return;
    while (last != NULL && last->next != NULL)
        last = last->next;
    while (last != NULL) {
        struct symint_image *before = last->previous;
        if (last != keep && (r->table_bytes > r->memory_limit_bytes ||
                             (r->dwarf_count > r->dwarf_limit && last->located.dwarf != NULL)))
            drop_index(r, last);
        last = before;
    }
}

/* What the file's debug information turned out to lack, behind what was known before. Without
 * memory it stays untold. */
static void add_detail(struct symint_registry *r, struct symint_image *image)
{
    const char *detail = symint_dwarf_detail(image->located.dwarf);
    if (detail == image->dwarf_detail || detail[0] == '\0')
        return;
    image->dwarf_detail = detail;
    image->detail = detail;
    const char *located = image->located.detail;
    if (located[0] == '\0')
        return;
    char *both = symint_join("%s; %s", located, detail);
    const char *copy = both != NULL ? symint_arena_copy(r->arena, both, strlen(both)) : NULL;
    free(both);
    image->detail = copy != NULL ? copy : located;
}

void symint_image_account(struct symint_registry *r, struct symint_image *image)
{
    if (image->located.elf == NULL)
        return;
    uint64_t bytes = image->index_bytes;
    if (image->located.dwarf != NULL) {
        bytes += symint_dwarf_bytes(image->located.dwarf);
        add_detail(r, image);
    }
    r->table_bytes += bytes - image->bytes;
    image->bytes = bytes;
    keep_limits(r, image);
}

/* Looks for a file, for the first time or after its index was dropped. */
static int locate(struct symint_registry *r, struct symint_strings *s, struct symint_file *f,
                  const struct symint_search_options *options)
{
    struct symint_image *image = f->image;
    struct symint_located located;
    if (image == NULL) {
        image = calloc(1, sizeof(*image));
        if (image == NULL)
            return SYM_ERR_NOMEM;
        image->users = 1;
    }
    const struct symint_file *by = image->by != NULL ? image->by : f;
    int rc = symint_locate(&s->arena, options, &by->wanted, &located);
    if (rc == 0 && located.elf == NULL && by != f) {
        by = f;
        rc = symint_locate(&s->arena, options, &by->wanted, &located);
    }
    if (rc != 0) {
        free_located(&located);
        if (f->image == NULL)
            free(image);
        return rc;
    }
    if (located.elf == NULL && image->users > 1) {
        /* The others look where they know it to be. */
        struct symint_image *own = calloc(1, sizeof(*own));
        if (own == NULL) {
            free_located(&located);
            return SYM_ERR_NOMEM;
        }
        stop_sharing(image);
        image->by = NULL;
        image->users--;
        image = own;
        image->users = 1;
    }
    image->located = located;
    image->detail = located.detail;
    image->dwarf_detail = NULL;
    image->serial = ++r->serial;
    image->by = by;
    f->image = image;
    if (located.elf == NULL) {
        stop_sharing(image);
        return 0;
    }
    if (located.complete && f->shared != NULL && f->shared->image == NULL) {
        f->shared->image = image;
        image->shared = f->shared;
    }
    image->index_bytes = symint_elf_index_bytes(located.elf);
    list_first(r, image);
    if (located.dwarf != NULL) {
        symint_dwarf_limit(located.dwarf, r->memory_limit_bytes / DWARF_SHARE);
        r->dwarf_count++;
    }
    symint_image_account(r, image);
    return 0;
}

struct symint_image *symint_module_load(struct symint_registry *r, struct symint_strings *s,
                                        struct symint_module *m,
                                        const struct symint_search_options *options)
{
    struct symint_file *f = r->files[m->file];
    r->arena = &s->arena;
    if (f->image == NULL && f->shared != NULL && f->shared->image != NULL) {
        f->image = f->shared->image;
        f->image->users++;
    }
    /* An image that once had an index and has none lost it to the limit. */
    bool dropped = f->image != NULL && f->image->located.elf == NULL &&
                   f->image->located.miss == SYM_MISS_NONE;
    if (f->image == NULL || dropped) {
        r->load_error = locate(r, s, f, options);
        if (r->load_error != 0)
            return NULL;
    }
    struct symint_image *image = f->image;
    if (image->located.elf != NULL && r->images != image) {
        unlist(r, image);
        list_first(r, image);
    }
    if (m->placed != image->serial) {
        m->place = (struct symint_place){.segment = SYMINT_NO_SEGMENT};
        if (image->located.elf != NULL)
            m->place = symint_elf_place(image->located.elf, m->file_offset, m->end - m->start);
        m->placed = image->serial;
    }
    return image;
}

int symint_keep_packed_fault(struct symint_registry *r, struct symint_arena *arena,
                             const struct symint_packed_set *set)
{
    if (set->damaged_count == 0 || r->fault_count == MAX_PACKED_FAULTS)
        return 0;
    char text[sizeof(set->detail) + 64];
    int n = set->damaged_count == 1
                ? snprintf(text, sizeof(text), "%s", set->detail)
                : snprintf(text, sizeof(text), "%s (and %zu more of that folder)", set->detail,
                           set->damaged_count - 1);
    for (size_t i = 0; i < r->fault_count; i++)
        if (strcmp(r->faults[i], text) == 0)
            return 0;
    const char *copy = symint_arena_copy(arena, text, n > 0 ? (size_t)n : 0);
    if (copy == NULL)
        return SYM_ERR_NOMEM;
    r->faults[r->fault_count++] = copy;
    return 0;
}

int symint_module_load_packed(struct symint_registry *r, struct symint_strings *s,
                              struct symint_module *m, const struct symint_search_options *options)
{
    struct symint_file *f = r->files[m->file]->shared;
    if (f == NULL || options->archive_count == 0)
        return 0;
    if (!f->packed_loaded) {
        int rc = symint_packed_load_build_id(&f->packed,
                                             (const struct sym_archive *const *)options->archives,
                                             options->archive_count,
                                             (const uint8_t *)f->build_id->text, f->build_id->size);
        if (rc == 0)
            rc = symint_keep_packed_fault(r, &s->arena, &f->packed);
        if (rc != 0) {
            symint_packed_set_free(&f->packed);
            return rc;
        }
        f->packed_loaded = true;
    }
    return f->packed.count > 0;
}

void symint_file_invalidate(struct symint_registry *r, struct symint_file *f)
{
    if (f->image != NULL)
        stop_sharing(f->image);
    leave_image(r, f);
    f->generation++;
}

/* ---- API ---- */

int symint_registry_add(struct symint_registry *r, struct symint_strings *s,
                        const struct sym_module *module, const struct symint_live *live,
                        uint32_t capture, uint32_t *handle)
{
    const char *path = module->path != NULL ? module->path : "";
    size_t path_size = module->path == NULL ? 0 : module->path_size;
    if (path_size == 0)
        path_size = strlen(path);
    if ((module->jit_name_count > 0 && module->jit_names == NULL) ||
        (module->build_id_size > 0 && module->build_id == NULL))
        return SYM_ERR_MISUSE;
    if (r->count >= SYM_NO_MODULE - 1)
        return SYM_ERR_LIMIT;
    struct symint_module *modules =
        symint_grow(r->modules, r->count, &r->capacity, sizeof(*modules), 64);
    if (modules == NULL)
        return SYM_ERR_NOMEM;
    r->modules = modules;
    struct symint_module *m = &r->modules[r->count];
    *m = (struct symint_module){
        .start = module->start,
        .end = module->end,
        .file_offset = module->file_offset,
        .kernel = module->kernel,
        .jit = module->jit,
        .anonymous = sym_is_anonymous_path(path, path_size),
    };
    size_t base_size;
    const char *base = sym_display_path(path, path_size, &base_size);
    m->python_runtime = !m->kernel && symint_is_python_runtime(base, base_size);
    int rc = find_module_file(r, s, path, path_size, module, live, capture, &m->file);
    if (rc == 0)
        rc = copy_names(m, s, module);
    if (rc != 0)
        return rc;
    *handle = r->count++;
    return 0;
}

void symint_registry_free(struct symint_registry *r)
{
    for (uint32_t i = 0; i < r->count; i++) {
        free(r->modules[i].names);
        symint_segments_free(&r->modules[i].name_index);
    }
    for (uint32_t i = 0; i < r->file_count; i++) {
        if (r->files[i]->root_id != SHARED_ROOT) /* those only know an image */
            leave_image(r, r->files[i]);
        symint_packed_set_free(&r->files[i]->packed);
    }
    free(r->modules);
    free(r->files);
    free(r->slots);
    *r = (struct symint_registry){0};
}
