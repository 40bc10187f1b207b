/* SPDX-License-Identifier: MIT */
/*
 * vmlinux: which file is that of the sampled kernel. Names from another build
 * would all be wrong and look right, so a file that nobody named needs the recorded build id. How
 * far the kernel was moved against it is vmlinux_shift.c.
 */
#include "vmlinux.h"

#include "debug_paths.h"
#include "elf_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct search {
    struct symint_vmlinux *v;
    const struct symint_search_options *options;
    const struct sym_kernel *kernel;
    const char *release; /* NULL: not recorded, or it cannot be part of a path */
    struct symint_hex id;
    struct symint_debug_file image; /* the first one that is right */
    struct symint_debug_file debug; /* one of the same build with what that lacks */
    bool finished;
};

/* ---- identity ---- */

static bool has_symbols(const struct symint_debug_file *f)
{
    return f->elf != NULL && symint_elf_has_symtab(f->elf);
}

static bool has_dwarf(const struct symint_debug_file *f)
{
    return f->elf != NULL && symint_elf_has_debug_info(f->elf);
}

static bool same_id(const struct symint_elf *e, const uint8_t *id, size_t id_size)
{
    size_t size;
    const uint8_t *own = symint_elf_build_id(e, &size);
    return size > 0 && size == id_size && memcmp(own, id, size) == 0;
}

/* Takes a file that was opened, or closes it. */
static void take(struct search *s, struct symint_debug_file *f)
{
    size_t size;
    const uint8_t *id;
    if (s->image.elf == NULL) {
        s->image = *f;
    } else {
        id = symint_elf_build_id(s->image.elf, &size);
        bool more =
            (!has_dwarf(&s->image) && has_dwarf(f)) || (!has_symbols(&s->image) && has_symbols(f));
        if (!more || !same_id(f->elf, id, size)) {
            symint_debug_file_close(f);
            return;
        }
        s->debug = *f;
        s->finished = true;
        return;
    }
    symint_elf_build_id(s->image.elf, &size);
    s->finished = size == 0 || (has_dwarf(&s->image) && has_symbols(&s->image));
}

/* ---- candidates ---- */

/* Tries a file, unless there is all that is wanted; takes path. */
static int try_path(struct search *s, struct symint_root root, char *path)
{
    struct symint_debug_file f;
    enum sym_miss miss;
    const char *why;
    if (s->finished) {
        free(path);
        return 0;
    }
    int rc = symint_debug_file_open(root, path, &f, &miss, &why);
    bool right =
        rc == 0 && f.elf != NULL && miss == SYM_MISS_NONE &&
        (s->image.elf != NULL || same_id(f.elf, s->kernel->build_id, s->kernel->build_id_size));
    if (right)
        take(s, &f);
    else
        symint_debug_file_close(&f);
    return rc;
}

/* By the build id: of the user's file its own. */
static int try_stored(struct search *s, struct symint_root root, const char *dir,
                      const char *ending)
{
    return try_path(s, root,
                    symint_join("%s/.build-id/%.2s/%s%s", dir, s->id.text, s->id.text + 2, ending));
}

static int try_archives(struct search *s)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < s->options->archive_count; i++) {
        struct symint_root root = symint_in_archive(s->options->archives[i]);
        rc = try_stored(s, root, "", "");
        if (rc == 0)
            rc = try_stored(s, root, "", ".debug");
        if (rc == 0 && s->release != NULL)
            rc = try_path(s, root, symint_join("/vmlinux-%s", s->release));
        if (rc == 0)
            rc = try_path(s, root, strdup("/vmlinux"));
    }
    return rc;
}

static int try_debug_dir(struct search *s, struct symint_root root, const char *dir)
{
    int rc = try_stored(s, root, dir, ".debug");
    if (rc == 0 && s->release != NULL)
        rc = try_path(s, root, symint_join("%s/boot/vmlinux-%s", dir, s->release));
    if (rc == 0 && s->release != NULL)
        rc = try_path(s, root, symint_join("%s/lib/modules/%s/vmlinux", dir, s->release));
    return rc;
}

/* An absolute one is looked for inside the sysroot first, then as it is. */
static int try_debug_dirs(struct search *s)
{
    const char *sysroot = s->options->sysroot;
    const char *dir;
    int rc = 0;
    for (size_t i = 0; rc == 0 && (dir = symint_debug_dir(s->options, i)) != NULL; i++) {
        if (sysroot != NULL && dir[0] == '/')
            rc = try_debug_dir(s, symint_in_folder(sysroot), dir);
        if (rc == 0)
            rc = try_debug_dir(s, symint_in_folder(NULL), dir);
    }
    return rc;
}

static int try_places(struct search *s)
{
    int rc = try_archives(s);
    if (rc == 0)
        rc = try_debug_dirs(s);
    if (s->release == NULL)
        return rc;
    struct symint_root root = symint_in_folder(s->options->sysroot);
    if (rc == 0)
        rc = try_path(s, root, symint_join("/boot/vmlinux-%s", s->release));
    if (rc == 0)
        rc = try_path(s, root, symint_join("/lib/modules/%s/vmlinux", s->release));
    if (rc == 0)
        rc = try_path(s, root, symint_join("/lib/modules/%s/build/vmlinux", s->release));
    return rc;
}

/* The file that the user named: SYM_ERR_NOT_FOUND, IO or FORMAT if it is of no use at all. */
static int try_named(struct search *s, int *error)
{
    const struct sym_kernel *k = s->kernel;
    struct symint_vmlinux *v = s->v;
    struct symint_debug_file f;
    enum sym_miss miss;
    const char *why;
    size_t size;
    int rc = symint_debug_file_open(symint_in_folder(NULL), strdup(k->vmlinux), &f, &miss, &why);
    *error = errno;
    if (rc != 0 || f.elf == NULL || miss != SYM_MISS_NONE) {
        symint_debug_file_close(&f);
        return rc != 0                                                       ? rc
               : miss == SYM_MISS_NO_FILE                                    ? SYM_ERR_NOT_FOUND
               : miss == SYM_MISS_UNREADABLE || miss == SYM_MISS_NOT_REGULAR ? SYM_ERR_IO
                                                                             : SYM_ERR_FORMAT;
    }
    const uint8_t *id = symint_elf_build_id(f.elf, &size);
    if (k->build_id_size > 0 && !same_id(f.elf, k->build_id, k->build_id_size)) {
        snprintf(v->detail, sizeof(v->detail), "%.190s: it has %s%s, the recorded one is %s",
                 k->vmlinux, size > 0 ? "the build id " : "no build id", symint_hex(id, size).text,
                 s->id.text);
        symint_debug_file_close(&f);
        return 0;
    }
    v->unverified = k->build_id_size == 0;
    if (size > 0)
        s->id = symint_hex(id, size); /* its debug file is looked for by that */
    take(s, &f);
    return 0;
}

/* ---- the index ---- */

/* What a person knows a file by, malloc'ed; NULL: out of memory. */
static char *shown_path(const struct symint_debug_file *f)
{
    return symint_join("%s%s", symint_debug_file_archive(f), f->path);
}

/* Builds the index, and opens what has DWARF. */
static int use(struct search *s, struct symint_arena *arena)
{
    struct symint_vmlinux *v = s->v;
    struct symint_debug_file dwarf = {.fd = -1};
    enum sym_miss miss = SYM_MISS_NONE;
    const char *why = "it cannot be read";
    const char *note;
    bool other = s->debug.elf != NULL;
    const struct symint_debug_file *symbols =
        has_symbols(&s->image) || !other ? &s->image : &s->debug;
    const struct symint_debug_file *source = has_dwarf(&s->image) || !other ? &s->image : &s->debug;
    int rc = symint_debug_file_again(symbols, &v->names);
    if (rc == 0)
        rc = symint_debug_file_again(source, &dwarf);
    if (rc == 0 && dwarf.elf != NULL)
        rc = symint_dwarf_open(s->options, arena, &dwarf, s->image.path, 0, &v->dwarf);
    s->image.elf->kernel = true;
    if (rc == 0)
        rc = symint_elf_index(s->image.elf, s->debug.elf, &miss, &why, &note);
    if (rc != 0)
        return rc;
    v->path = shown_path(&s->image);
    if (v->path == NULL)
        return SYM_ERR_NOMEM;
    if (miss != SYM_MISS_NONE || v->names.elf == NULL) {
        snprintf(v->detail, sizeof(v->detail), "%.300s: %s", v->path, why);
        return 0;
    }
    v->elf = s->image.elf;
    s->image.elf = NULL;
    return 0;
}

/* What decides which file is found, as one text; malloc'ed, NULL: out of memory. */
static char *question(const struct sym_kernel *k, const char *id)
{
    return symint_join("%s\n%s\n%s", k->vmlinux != NULL ? k->vmlinux : "", id,
                       k->release != NULL ? k->release : "");
}

int symint_vmlinux_find(struct symint_vmlinux *v, struct symint_arena *arena,
                        const struct symint_search_options *options,
                        const struct sym_kernel *kernel, int *error)
{
    struct search s = {.v = v,
                       .options = options,
                       .kernel = kernel,
                       .release = symint_is_release(kernel->release) ? kernel->release : NULL,
                       .id = symint_hex(kernel->build_id, kernel->build_id_size),
                       .image = {.fd = -1},
                       .debug = {.fd = -1}};
    char *wanted = question(kernel, s.id.text);
    *error = 0;
    if (wanted == NULL)
        return SYM_ERR_NOMEM;
    if (v->looked && strcmp(v->wanted, wanted) == 0) {
        free(wanted);
        return 0;
    }
    symint_vmlinux_free(v);
    v->wanted = wanted;
    int named = kernel->vmlinux != NULL ? try_named(&s, error) : 0;
    int rc = symint_is_shortage(named) ? named : 0;
    /* An id of one byte names no file. */
    if (rc == 0 && !s.finished && strlen(s.id.text) >= 4)
        rc = try_places(&s);
    if (rc == 0 && s.image.elf != NULL)
        rc = use(&s, arena);
    symint_debug_file_close(&s.image);
    symint_debug_file_close(&s.debug);
    if (rc != 0) {
        symint_vmlinux_free(v);
        return rc;
    }
    v->looked = named == 0;
    return named;
}

void symint_vmlinux_free(struct symint_vmlinux *v)
{
    symint_elf_free(v->elf);
    if (v->names.path != NULL)
        symint_debug_file_close(&v->names);
    symint_dwarf_free(v->dwarf);
    free(v->path);
    free(v->wanted);
    *v = (struct symint_vmlinux){.names = {.fd = -1}};
}

/* ---- lookup ---- */

bool symint_vmlinux_address(const struct symint_vmlinux *v, uint64_t address, uint64_t *vaddr)
{
    if (v->elf == NULL || !v->placed)
        return false;
    *vaddr = address - v->shift;
    for (uint32_t i = 0; i < v->elf->segment_count; i++) {
        const struct segment *s = &v->elf->segments[i];
        if (s->executable && *vaddr >= s->vaddr && *vaddr - s->vaddr < s->memory_size)
            return true;
    }
    return false;
}

bool symint_vmlinux_extent(const struct symint_vmlinux *v, uint64_t vaddr, uint64_t *start,
                           uint64_t *end)
{
    if (v->elf == NULL || !v->placed)
        return false;
    *start = 0;
    *end = UINT64_MAX;
    for (uint32_t i = 0; i < v->elf->segment_count; i++) {
        const struct segment *s = &v->elf->segments[i];
        const uint64_t bounds[] = {s->vaddr, s->vaddr + s->memory_size};
        for (int b = 0; s->executable && b < 2; b++) {
            if (bounds[b] <= vaddr && bounds[b] > *start)
                *start = bounds[b];
            else if (bounds[b] > vaddr && bounds[b] < *end)
                *end = bounds[b];
        }
    }
    const struct symint_segments *index = &v->elf->index;
    size_t above = symint_segments_above(index, vaddr);
    if (above > 0 && index->start[above - 1] > *start)
        *start = index->start[above - 1];
    if (above < index->count && index->start[above] < *end)
        *end = index->start[above];
    return true;
}

/* The symbol of an entry; false: one without a name of its own. */
static bool read_symbol(const struct symint_vmlinux *v, uint32_t number,
                        struct symint_vmlinux_symbol *out)
{
    if (number == SYMINT_NO_SYMBOL)
        return false;
    struct symint_symbol s = symint_elf_symbol(v->elf, number);
    if (s.origin != SYM_ORIGIN_SYMTAB && s.origin != SYM_ORIGIN_DYNSYM)
        return false;
    *out = (struct symint_vmlinux_symbol){.start = s.start,
                                          .name = s.name,
                                          .name_size = s.name_size,
                                          .sizeless = v->elf->entries[number].sizeless};
    return true;
}

bool symint_vmlinux_find_symbol(const struct symint_vmlinux *v, uint64_t vaddr,
                                struct symint_vmlinux_symbol *out)
{
    return read_symbol(v, symint_elf_find(v->elf, vaddr), out);
}

bool symint_vmlinux_next_symbol(const struct symint_vmlinux *v, uint64_t vaddr,
                                struct symint_vmlinux_symbol *out)
{
    if (v->elf == NULL || !v->placed)
        return false;
    const struct symint_segments *index = &v->elf->index;
    /* Gaps, and pieces of what began before, are few between two symbols. */
    for (size_t i = vaddr > 0 ? symint_segments_above(index, vaddr - 1) : 0, tries = 0;
         i < index->count && tries < 64; i++, tries++)
        if (read_symbol(v, index->owner[i], out) && out->start == index->start[i])
            return true;
    return false;
}
