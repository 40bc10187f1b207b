/* SPDX-License-Identifier: MIT */
/*
 * The files of kernel modules. A module is a relocatable file: where the kernel put its sections
 * is not recorded, but kallsyms tell where each function lies, so an address is found again as a
 * distance from the start of its function. In such a file the address of a byte is its file offset
 * (elf.c, debug_bytes.c). Packed files (.ko.xz, .ko.zst) are not read.
 */
#include "kmodule.h"

#include "debug_paths.h"
#include "elf_private.h"
#include "kernel_names.h"
#include "kmodule_tree.h"
#include "segments.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_FILES ((size_t)65536)
#define MAX_SAME_NAME 64  /* functions of one name; with more of them it is not decided */
#define MAX_PADDING 32u   /* bytes between functions of a module */
#define MAX_RECORDED 256u /* modules found by their build id alone */

struct symint_kmodule {
    char *name; /* with `_` for `-`; malloc'ed */
    char *path;
    struct symint_root root; /* of options */
    uint32_t order;          /* in which it was found */
    bool recorded;           /* looked for by build id */
    bool tried;
    bool unverified;
    struct symint_debug_file file; /* closed: of no use */
    struct symint_dwarf *dwarf;
    struct symint_kernel_names names;
    struct symint_pair *by_name; /* hash of the name, symbol */
    size_t by_name_count;
};

/* ---- the list ---- */

static void forget(struct symint_kmodule *f)
{
    symint_dwarf_free(f->dwarf);
    if (f->file.path != NULL)
        symint_debug_file_close(&f->file);
    symint_kernel_names_free(&f->names);
    free(f->by_name);
    f->dwarf = NULL;
    f->by_name = NULL;
    f->by_name_count = 0;
}

void symint_kmodules_free(struct symint_kmodules *m)
{
    for (size_t i = 0; i < m->count; i++) {
        forget(&m->files[i]);
        free(m->files[i].name);
        free(m->files[i].path);
    }
    free(m->files);
    *m = (struct symint_kmodules){0};
}

void symint_kmodules_begin(struct symint_kmodules *m, const char *release,
                           uint64_t dwarf_limit_bytes)
{
    if (!symint_is_release(release))
        release = "";
    if (strcmp(m->release, release) != 0)
        symint_kmodules_free(m);
    memcpy(m->release, release, strlen(release) + 1);
    m->dwarf_limit_bytes = dwarf_limit_bytes;
}

struct adding {
    struct symint_kmodules *m;
    struct symint_root root;
    bool recorded;
};

/* The name of a module has `_` where that of its file may have `-`. */
static char *module_name(const char *name, size_t size)
{
    char *copy = malloc(size + 1);
    if (copy == NULL)
        return NULL;
    for (size_t i = 0; i < size; i++)
        copy[i] = name[i] == '-' ? '_' : name[i];
    copy[size] = '\0';
    return copy;
}

static int add_file(void *user, const char *path, const char *name, size_t name_size)
{
    const struct adding *a = user;
    struct symint_kmodules *m = a->m;
    if (m->count >= MAX_FILES)
        return 0;
    struct symint_kmodule *files =
        symint_grow(m->files, m->count, &m->capacity, sizeof(*files), 64);
    if (files == NULL)
        return SYM_ERR_NOMEM;
    m->files = files;
    struct symint_kmodule f = {.name = module_name(name, name_size),
                               .path = strdup(path),
                               .root = a->root,
                               .order = (uint32_t)m->count,
                               .recorded = a->recorded,
                               .file = {.fd = -1}};
    if (f.name == NULL || f.path == NULL) {
        free(f.name);
        free(f.path);
        return SYM_ERR_NOMEM;
    }
    m->files[m->count++] = f;
    return 0;
}

static int compare_files(const void *a, const void *b)
{
    const struct symint_kmodule *x = a;
    const struct symint_kmodule *y = b;
    int order = strcmp(x->name, y->name);
    return order != 0 ? order : (x->order > y->order) - (x->order < y->order);
}

/* Lists the modules of the release: those of the debug folders first. */
static int walk_trees(struct symint_kmodules *m, const struct symint_search_options *options)
{
    struct adding inside = {m, symint_in_folder(options->sysroot), false};
    struct adding ours = {m, symint_in_folder(NULL), false};
    char folder[4096];
    const char *dir;
    int rc = 0;
    for (size_t i = 0; rc == 0 && (dir = symint_debug_dir(options, i)) != NULL; i++) {
        int n = snprintf(folder, sizeof(folder), "%s/lib/modules/%s", dir, m->release);
        if (n < 0 || n >= (int)sizeof(folder))
            continue;
        if (options->sysroot != NULL && dir[0] == '/')
            rc = symint_kmodule_walk(options->sysroot, folder, add_file, &inside);
        if (rc == 0)
            rc = symint_kmodule_walk(NULL, folder, add_file, &ours);
    }
    snprintf(folder, sizeof(folder), "/lib/modules/%s", m->release);
    if (rc == 0)
        rc = symint_kmodule_walk(options->sysroot, folder, add_file, &inside);
    if (rc == 0 && m->count > 0)
        qsort(m->files, m->count, sizeof(*m->files), compare_files);
    return rc;
}

/* ---- one file ---- */

/* The value of KEY=VALUE in .modinfo; false: it has none, or there is no such section here. */
static int read_modinfo(const struct symint_elf *e, const char *key, char *value, size_t room,
                        bool *found)
{
    enum sym_miss miss;
    uint8_t *data = NULL;
    size_t key_size = strlen(key);
    const struct section *s = symint_elf_section(e, ".modinfo");
    *found = false;
    int rc = s != NULL ? symint_elf_load_section(e, s, &data, &miss) : 0;
    if (data == NULL)
        return rc;
    for (size_t at = 0; !*found && at < s->size;) {
        const char *text = (const char *)data + at;
        size_t size = strlen(text);
        *found = size > key_size && text[key_size] == '=' && memcmp(text, key, key_size) == 0;
        if (*found)
            snprintf(value, room, "%s", text + key_size + 1);
        at += size + 1;
    }
    free(data);
    return 0;
}

/* Whether a file is that module's. The release stands in front of what else vermagic says. */
static int check_module(const struct symint_kmodules *m, struct symint_kmodule *f,
                        const uint8_t *build_id, size_t build_id_size, bool *good)
{
    char value[512];
    bool found;
    size_t size;
    const struct symint_elf *e = f->file.elf;
    const uint8_t *id = symint_elf_build_id(e, &size);
    bool same = build_id_size > 0 && size == build_id_size && memcmp(id, build_id, size) == 0;
    *good = false;
    if (!e->relocatable || (build_id_size > 0 && !same))
        return 0;
    int rc = read_modinfo(e, "name", value, sizeof(value), &found);
    for (char *p = value; rc == 0 && found && *p != '\0'; p++)
        *p = *p == '-' ? '_' : *p;
    if (rc != 0 || (found && strcmp(value, f->name) != 0))
        return rc;
    rc = read_modinfo(e, "vermagic", value, sizeof(value), &found);
    if (rc != 0)
        return rc;
    if (found)
        value[strcspn(value, " ")] = '\0';
    *good = same || !found || strcmp(value, m->release) == 0;
    f->unverified = !same;
    return 0;
}

/* Its functions by the hash of their names. */
static int index_names(struct symint_kmodule *f)
{
    struct symint_kernel_name n;
    int rc = symint_kernel_names_read(f->file.elf, &f->names);
    if (rc != 0 || f->names.count == 0 || f->names.count > UINT32_MAX)
        return rc;
    f->by_name = symint_table_alloc((size_t)f->names.count, sizeof(*f->by_name));
    if (f->by_name == NULL)
        return SYM_ERR_NOMEM;
    for (uint64_t i = 1; i < f->names.count; i++)
        if (symint_kernel_names_at(&f->names, i, &n) && n.code)
            f->by_name[f->by_name_count++] = (struct symint_pair){
                .key = symint_kernel_name_hash(n.name, strnlen(n.name, SYMINT_MAX_NAME)),
                .value = (uint32_t)i};
    return symint_sort_pairs(f->by_name, f->by_name_count);
}

/* Opens a file at its first use. */
static int open_module(struct symint_kmodules *m, struct symint_kmodule *f,
                       struct symint_arena *arena, const struct symint_search_options *options,
                       const uint8_t *build_id, size_t build_id_size)
{
    struct symint_debug_file dwarf = {.fd = -1};
    enum sym_miss miss;
    const char *why;
    bool good = false;
    f->tried = true;
    int rc = symint_debug_file_open(f->root, strdup(f->path), &f->file, &miss, &why);
    if (rc == 0 && f->file.elf != NULL && miss == SYM_MISS_NONE &&
        symint_elf_has_debug_info(f->file.elf))
        rc = check_module(m, f, build_id, build_id_size, &good);
    if (rc == 0 && good)
        rc = index_names(f);
    if (rc == 0 && f->by_name_count > 0)
        rc = symint_debug_file_again(&f->file, &dwarf);
    if (rc == 0 && dwarf.elf != NULL)
        rc = symint_dwarf_open(options, arena, &dwarf, f->path, 0, &f->dwarf);
    if (rc != 0 || f->dwarf == NULL)
        forget(f);
    else
        symint_dwarf_limit(f->dwarf, m->dwarf_limit_bytes);
    return rc;
}

/* ---- one function ---- */

/* Where the function of kallsyms is in the file; 0: not there, or which of several is not decided.
 * One that fills what kallsyms leave for it is it. */
static uint64_t find_function(const struct symint_kmodule *f,
                              const struct symint_kernel_symbol *symbol, uint64_t distance)
{
    uint64_t hash = symint_kernel_name_hash(symbol->name, symbol->name_size);
    uint64_t extent = symbol->end - symbol->start;
    uint64_t any = 0;
    uint64_t filling = 0;
    size_t any_count = 0;
    size_t filling_count = 0;
    size_t low = 0;
    size_t high = f->by_name_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (f->by_name[middle].key < hash)
            low = middle + 1;
        else
            high = middle;
    }
    for (size_t i = low; i < f->by_name_count && f->by_name[i].key == hash; i++) {
        struct symint_kernel_name n;
        if (i - low >= MAX_SAME_NAME)
            return 0;
        if (!symint_kernel_names_at(&f->names, f->by_name[i].value, &n) ||
            strlen(n.name) != symbol->name_size ||
            memcmp(n.name, symbol->name, symbol->name_size) != 0 ||
            (n.size > 0 && (distance >= n.size || n.size > extent)))
            continue;
        any = n.section_offset + n.value;
        any_count++;
        if (n.size > 0 && extent - n.size < MAX_PADDING) {
            filling = any;
            filling_count++;
        }
    }
    return any_count == 1 ? any : filling_count == 1 ? filling : 0;
}

/* Adds .build-id/xx/yyyy.debug of a folder or archive for a module that no tree has. */
static int add_recorded_in(struct symint_kmodules *m, struct symint_root root, const char *dir,
                           const struct symint_kernel_symbol *symbol, const uint8_t *id,
                           size_t size)
{
    struct adding adding = {m, root, true};
    char *path = symint_build_id_path(dir, id, size, ".debug");
    if (path == NULL)
        return SYM_ERR_NOMEM;
    int rc = add_file(&adding, path, symbol->owner + 1, symbol->owner_size - 2);
    free(path);
    return rc;
}

static int add_recorded(struct symint_kmodules *m, const struct symint_search_options *options,
                        const struct symint_kernel_symbol *symbol, const uint8_t *id, size_t size)
{
    const char *dir;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < options->archive_count; i++)
        rc = add_recorded_in(m, symint_in_archive(options->archives[i]), "", symbol, id, size);
    for (size_t i = 0; rc == 0 && (dir = symint_debug_dir(options, i)) != NULL; i++) {
        if (options->sysroot != NULL && dir[0] == '/')
            rc = add_recorded_in(m, symint_in_folder(options->sysroot), dir, symbol, id, size);
        if (rc == 0)
            rc = add_recorded_in(m, symint_in_folder(NULL), dir, symbol, id, size);
    }
    qsort(m->files, m->count, sizeof(*m->files), compare_files);
    return rc;
}

/* The first file of a name, m->count: none. */
static size_t first_of(const struct symint_kmodules *m, const char *name)
{
    size_t low = 0;
    size_t high = m->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(m->files[middle].name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < m->count && strcmp(m->files[low].name, name) == 0 ? low : m->count;
}

/* Asks the files of a name, of which the first with debug information counts. *recorded: one of
 * them was looked for by build id. */
static int ask_files(struct symint_kmodules *m, const char *name, struct symint_arena *arena,
                     const struct symint_search_options *options, const uint8_t *build_id,
                     size_t build_id_size, struct symint_kmodule **found, bool *recorded)
{
    int rc = 0;
    *found = NULL;
    *recorded = false;
    for (size_t i = first_of(m, name);
         rc == 0 && *found == NULL && i < m->count && strcmp(m->files[i].name, name) == 0; i++) {
        struct symint_kmodule *f = &m->files[i];
        if (!f->tried)
            rc = open_module(m, f, arena, options, build_id, build_id_size);
        *found = f->dwarf != NULL ? f : NULL;
        *recorded |= f->recorded;
    }
    return rc;
}

int symint_kmodules_find(struct symint_kmodules *m, struct symint_arena *arena,
                         const struct symint_search_options *options,
                         const struct symint_kernel_symbol *symbol, uint64_t address,
                         const uint8_t *build_id, size_t build_id_size, struct symint_dwarf **dwarf,
                         uint64_t *vaddr, bool *unverified)
{
    struct symint_kmodule *f = NULL;
    bool recorded;
    int rc = 0;
    *dwarf = NULL;
    if (symbol->owner_size < 3 || (m->release[0] == '\0' && build_id_size == 0))
        return 0;
    char *name = module_name(symbol->owner + 1, symbol->owner_size - 2);
    if (name == NULL)
        return SYM_ERR_NOMEM;
    if (!m->walked && m->release[0] != '\0')
        rc = walk_trees(m, options);
    m->walked = true;
    if (rc == 0)
        rc = ask_files(m, name, arena, options, build_id, build_id_size, &f, &recorded);
    if (rc == 0 && f == NULL && !recorded && build_id_size >= 2 && m->recorded < MAX_RECORDED) {
        m->recorded++;
        rc = add_recorded(m, options, symbol, build_id, build_id_size);
        if (rc == 0)
            rc = ask_files(m, name, arena, options, build_id, build_id_size, &f, &recorded);
    }
    free(name);
    if (rc != 0 || f == NULL)
        return rc;
    uint64_t start = find_function(f, symbol, address - symbol->start);
    *dwarf = start != 0 ? f->dwarf : NULL;
    *vaddr = start + (address - symbol->start);
    *unverified = f->unverified;
    return 0;
}
