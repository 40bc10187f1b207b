/* SPDX-License-Identifier: MIT */
/*
 * Files that debug information refers to: supplementary files, packages and split files
 * (symbolization.md section 4, 3 and 4). What a file says of another one is a claim: only regular
 * files inside the root are opened, and what they are is checked.
 */
#include "debug_files.h"

#include "debug_paths.h"
#include "debuginfod.h"
#include "dwarf_cursor.h"
#include "elf_private.h"
#include "locate.h"
#include "openfile.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_LINKS 40         /* as the kernel allows */
#define MAX_NAME_BYTES 16384 /* of a section that names a file */

/* ---- opening ---- */

void symint_debug_file_close(struct symint_debug_file *f)
{
    symint_elf_free(f->elf);
    if (f->fd >= 0)
        close(f->fd);
    free(f->path);
    free(f->root);
    *f = (struct symint_debug_file){.fd = -1};
}

int symint_debug_file_read(struct symint_debug_file *f, enum sym_miss *miss, const char **why)
{
    struct stat st;
    *miss = SYM_MISS_UNREADABLE;
    *why = "its size is unknown";
    if (fstat(f->fd, &st) != 0 || st.st_size < 0)
        return 0;
    struct symint_input input = {
        .fd = f->fd, .size = (uint64_t)st.st_size, .stored_bytes = (uint64_t)st.st_blocks * 512};
    int rc = symint_elf_open(&input, &f->elf, miss, why);
    if (rc == 0 && f->elf != NULL)
        rc = symint_elf_read_sections(f->elf, miss, why);
    return rc;
}

struct symint_root symint_debug_file_root(const struct symint_debug_file *f)
{
    return (struct symint_root){f->root, f->archive};
}

const char *symint_debug_file_archive(const struct symint_debug_file *f)
{
    return f->archive != NULL ? symint_shown_root(f->root) : "";
}

int symint_debug_file_open(struct symint_root root, char *path, struct symint_debug_file *out,
                           enum sym_miss *miss, const char **why)
{
    int error;
    *out = (struct symint_debug_file){.fd = -1, .path = path, .archive = root.archive};
    if (path == NULL)
        return SYM_ERR_NOMEM;
    int rc = symint_root_open_regular(root, path, &out->fd, miss, &error);
    if (rc == 0 && root.path != NULL && (out->root = strdup(root.path)) == NULL)
        rc = SYM_ERR_NOMEM;
    if (rc != 0 || out->fd < 0) {
        *why = error != 0 ? strerror(error) : sym_miss_text(*miss);
        errno = error;
        return rc;
    }
    rc = symint_debug_file_read(out, miss, why);
    errno = 0;
    return rc;
}

int symint_debug_file_again(const struct symint_debug_file *from, struct symint_debug_file *out)
{
    enum sym_miss miss;
    const char *why;
    *out = (struct symint_debug_file){.fd = fcntl(from->fd, F_DUPFD_CLOEXEC, 0),
                                      .archive = from->archive};
    if (out->fd < 0) /* too many are open: as good as no memory for one more */
        return SYM_ERR_NOMEM;
    out->path = strdup(from->path);
    out->root = from->root != NULL ? strdup(from->root) : NULL;
    int rc = SYM_ERR_NOMEM;
    if (out->path != NULL && (from->root == NULL || out->root != NULL))
        rc = symint_debug_file_read(out, &miss, &why);
    if (rc != 0 || out->elf == NULL || miss != SYM_MISS_NONE)
        symint_debug_file_close(out);
    return rc;
}

/* ---- a search ---- */

/* What a file says of its supplementary file. */
struct supplement {
    char *name;        /* malloc'ed */
    const uint8_t *id; /* in the same memory */
    size_t id_size;
};

struct file_search;

/* Whether a file is the one that is looked for. 1: it is, and may have been taken; 0 with *why (static) telling what is
 * wrong with it; SYM_ERR_NOMEM. */
typedef int check_fn(const struct file_search *s, struct symint_debug_file *f, const char **why);

struct file_search {
    struct symint_arena *arena;
    const struct symint_search_options *options;
    const struct symint_debug_file *from;
    check_fn *check;
    const struct supplement *wanted; /* for check: a supplementary file, ... */
    symint_take_split_fn *take;      /* ... or a split file */
    void *user;
    bool tell_absence;
    struct symint_debug_file *out;
    const char *why;
    bool told_wrong; /* why is about a file that was there */
};

static int tell(struct file_search *s, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static int tell(struct file_search *s, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    s->why = symint_arena_print(s->arena, format, arguments);
    va_end(arguments);
    return s->why == NULL ? SYM_ERR_NOMEM : 0;
}

/* A candidate failed. The first that was there is told, else the first of all. */
static int tell_candidate(struct file_search *s, const struct symint_debug_file *f,
                          struct symint_root root, enum sym_miss miss, const char *why)
{
    bool absent = miss == SYM_MISS_NO_FILE;
    if (s->told_wrong || (absent && (!s->tell_absence || s->why[0] != '\0')))
        return 0;
    s->told_wrong = !absent;
    return tell(s, "%s%s: %s", symint_shown_root(root.path), f->path, why);
}

/* Takes an opened candidate, unless miss and why say already what is wrong with it. 1: it is the
 * one, and in s->out; 0; SYM_ERR_NOMEM. */
static int consider(struct file_search *s, struct symint_debug_file *f, struct symint_root root,
                    enum sym_miss miss, const char *why)
{
    int rc = 0;
    if (f->elf != NULL && miss == SYM_MISS_NONE) {
        rc = s->check(s, f, &why);
        if (rc == 1) {
            *s->out = *f;
            s->why = "";
            return 1;
        }
        miss = SYM_MISS_BUILD_ID;
    }
    if (rc == 0)
        rc = tell_candidate(s, f, root, miss, why);
    symint_debug_file_close(f);
    return rc;
}

/* Tries a candidate; takes path. As consider. */
static int try_file(struct file_search *s, struct symint_root root, char *path)
{
    struct symint_debug_file f;
    enum sym_miss miss;
    const char *why = "";
    int rc = symint_debug_file_open(root, path, &f, &miss, &why);
    if (rc == 0)
        return consider(s, &f, root, miss, why);
    symint_debug_file_close(&f);
    return rc;
}

/* A name that a file states is one that the system takes. */
static bool is_usable_name(const char *name)
{
    size_t size = strnlen(name, PATH_MAX);
    return size > 0 && size < PATH_MAX;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

/* A path that is relative to the folder of a file, malloc'ed; NULL: out of memory. */
static char *in_folder_of(const char *file, const char *path)
{
    size_t size = symint_folder_size(file);
    bool here = size == 0 && file[0] != '/';
    return symint_join("%.*s%s%s", (int)size, file, here ? "" : "/", path);
}

/* By base name in archives. */
static int try_archives(struct file_search *s, const char *name, const char *ending)
{
    const char *base = base_name(name);
    int rc = 0;
    if (base[0] == '\0' || strcmp(base, ".") == 0 || strcmp(base, "..") == 0)
        return 0;
    for (size_t i = 0; i < s->options->archive_count && rc == 0; i++)
        rc = try_file(s, symint_in_archive(s->options->archives[i]),
                      symint_join("/%s%s", base, ending));
    return rc;
}

/* ---- supplementary files ---- */

/* .gnu_debugaltlink: a path, NUL, the build id. False: damaged. */
static bool parse_alt_link(uint8_t *bytes, size_t size, struct supplement *out)
{
    const uint8_t *nul = memchr(bytes, 0, size);
    if (nul == NULL)
        return false;
    out->name = (char *)bytes;
    out->id = nul + 1;
    out->id_size = size - (size_t)(nul + 1 - bytes);
    return true;
}

/* .debug_sup: version, whether this is a supplementary file, a path, a checksum that dwz makes the
 * build id. False: damaged. */
static bool parse_sup(const struct symint_elf *e, const uint8_t *bytes, size_t size,
                      struct supplement *out, bool *is_supplement)
{
    struct symint_cursor c = {.at = bytes, .end = bytes + size, .swap = e->swap};
    size_t name_size;
    if (cursor_u16(&c) != 5)
        return false;
    *is_supplement = cursor_u8(&c) != 0;
    const char *name = cursor_text(&c, &name_size);
    uint64_t id_size = cursor_uleb(&c);
    if (c.failed || name == NULL || id_size > cursor_left(&c))
        return false;
    *out = (struct supplement){(char *)(uintptr_t)name, c.at, (size_t)id_size};
    return true;
}

/* Reads a section that is small if it is what it should be. 0 with *bytes NULL: it is not. */
static int load_small(const struct symint_elf *e, const char *name, uint8_t **bytes, size_t *size)
{
    enum sym_miss miss;
    const struct section *s = symint_elf_section(e, name);
    *bytes = NULL;
    if (s == NULL || s->size > MAX_NAME_BYTES)
        return 0;
    *size = (size_t)s->size;
    return symint_elf_load_section(e, s, bytes, &miss);
}

/* 0 with out->name NULL and *present telling whether there is a damaged one; SYM_ERR_NOMEM. */
static int read_supplement(const struct symint_elf *e, struct supplement *out, uint8_t **memory,
                           bool *present)
{
    size_t size = 0;
    bool is_supplement = false;
    *out = (struct supplement){0};
    *present = symint_elf_section(e, ".gnu_debugaltlink") != NULL;
    int rc = load_small(e, ".gnu_debugaltlink", memory, &size);
    if (rc != 0 || *present) {
        if (*memory != NULL && !parse_alt_link(*memory, size, out))
            out->name = NULL;
        return rc;
    }
    *present = symint_elf_section(e, ".debug_sup") != NULL;
    rc = load_small(e, ".debug_sup", memory, &size);
    if (*memory != NULL && !parse_sup(e, *memory, size, out, &is_supplement))
        out->name = NULL;
    if (is_supplement) { /* which has none of its own */
        out->name = NULL;
        *present = false;
    }
    return rc;
}

/* Whether a file is the supplementary file with that checksum by DWARF 5's own word. */
static bool has_checksum(const struct symint_debug_file *f, const struct supplement *w)
{
    uint8_t *bytes;
    size_t size = 0;
    struct supplement is = {0};
    bool is_supplement = false;
    if (load_small(f->elf, ".debug_sup", &bytes, &size) != 0 || bytes == NULL)
        return false;
    bool same = parse_sup(f->elf, bytes, size, &is, &is_supplement) && is_supplement &&
                is.id_size == w->id_size && memcmp(is.id, w->id, w->id_size) == 0;
    free(bytes);
    return same;
}

static int check_supplement(const struct file_search *s, struct symint_debug_file *f,
                            const char **why)
{
    const struct supplement *w = s->wanted;
    size_t size;
    const uint8_t *id = symint_elf_build_id(f->elf, &size);
    *why = size > 0 ? "its build id is not the one that the debug file names"
                    : "it has no build id, and the debug file names one";
    return (size == w->id_size && memcmp(id, w->id, size) == 0) || has_checksum(f, w);
}

/* Where the last part of a path leads as a symbolic link: the new path, malloc'ed; NULL: it is
 * none, or there is no memory. root: a handle, below 0: ours. */
static char *follow_link(const struct sym_archive *archive, int root, const char *path)
{
    char target[PATH_MAX];
    char *next = NULL;
    if (archive != NULL)
        next = symint_archive_read_link(archive, path);
    else if (symint_read_link_in(root, path, target, sizeof(target)) > 0)
        next = strdup(target);
    if (next == NULL || next[0] == '/')
        return next;
    char *joined = in_folder_of(path, next);
    free(next);
    return joined;
}

/* The path of a file behind the symbolic links that its last part may be, malloc'ed. NULL: out of
 * memory. Links in the folders above are left to the system, which leads `..` right. */
static char *real_place(const struct symint_debug_file *f)
{
    const char *shown = symint_shown_root(f->root);
    char *path = strdup(f->path);
    int root = -1;
    if (f->archive == NULL && shown[0] != '\0' &&
        (root = open(shown, O_PATH | O_DIRECTORY | O_CLOEXEC)) < 0)
        return path;
    for (int links = 0; path != NULL && links < MAX_LINKS && strlen(path) < PATH_MAX; links++) {
        char *next = follow_link(f->archive, root, path);
        if (next == NULL)
            break;
        free(path);
        path = next;
    }
    if (root >= 0)
        close(root);
    return path;
}

static int try_named_supplement(struct file_search *s, const struct supplement *w)
{
    struct symint_root root = symint_debug_file_root(s->from);
    if (!is_usable_name(w->name))
        return tell(s, "%s%s: it names a supplementary file by a path that is empty or too long",
                    symint_shown_root(root.path), s->from->path);
    if (w->name[0] == '/')
        return try_file(s, root, strdup(w->name));
    char *place = real_place(s->from);
    if (place == NULL)
        return SYM_ERR_NOMEM;
    char *path = in_folder_of(place, w->name);
    free(place);
    return try_file(s, root, path);
}

static int try_stored_supplement(struct file_search *s, const struct supplement *w)
{
    const struct symint_search_options *o = s->options;
    struct symint_root root = symint_debug_file_root(s->from);
    const char *dir;
    int rc = 0;
    if (!symint_is_file_id(w->id_size))
        return 0;
    for (size_t i = 0; i < o->archive_count && rc == 0; i++)
        rc = try_file(s, symint_in_archive(o->archives[i]),
                      symint_build_id_path("", w->id, w->id_size, ".debug"));
    for (size_t i = 0; rc == 0 && (dir = symint_debug_dir(o, i)) != NULL; i++) {
        if (root.archive == NULL && symint_shown_root(root.path)[0] != '\0' && dir[0] == '/')
            rc = try_file(s, root, symint_build_id_path(dir, w->id, w->id_size, ".debug"));
        if (rc == 0)
            rc = try_file(s, symint_in_folder(NULL),
                          symint_build_id_path(dir, w->id, w->id_size, ".debug"));
    }
    return rc;
}

/* Asks servers. What they say is told behind what was absent. */
static int try_served_supplement(struct file_search *s, const struct supplement *w)
{
    struct symint_debug_file f = {.fd = -1};
    enum sym_miss miss;
    const char *why = "";
    if (s->options->debuginfod == NULL || !symint_is_file_id(w->id_size))
        return 0;
    int rc =
        symint_debuginfod_find(s->options->debuginfod, w->id, w->id_size, &f.fd, &f.path, &why);
    if (rc == 0 && f.fd < 0)
        return s->told_wrong ? 0 : tell(s, "%s; %s", s->why, why);
    if (rc == 0)
        rc = symint_debug_file_read(&f, &miss, &why);
    if (rc == 0)
        return consider(s, &f, symint_in_folder(NULL), miss, why);
    symint_debug_file_close(&f);
    return rc;
}

int symint_find_supplementary(struct symint_arena *arena,
                              const struct symint_search_options *options,
                              const struct symint_debug_file *from, struct symint_debug_file *out,
                              const char **why)
{
    struct supplement wanted;
    uint8_t *memory = NULL;
    bool present;
    struct file_search s = {.arena = arena,
                            .options = options,
                            .from = from,
                            .check = check_supplement,
                            .wanted = &wanted,
                            .tell_absence = true,
                            .out = out,
                            .why = ""};
    *out = (struct symint_debug_file){.fd = -1};
    int rc = read_supplement(from->elf, &wanted, &memory, &present);
    if (rc == 0 && present && (wanted.name == NULL || wanted.id_size == 0))
        rc = tell(&s, "%s%s: what it says of its supplementary file is damaged",
                  symint_shown_root(from->root), from->path);
    else if (rc == 0 && present)
        rc = try_named_supplement(&s, &wanted);
    if (rc == 0 && wanted.name != NULL && wanted.id_size > 0)
        rc = try_stored_supplement(&s, &wanted);
    if (rc == 0 && wanted.name != NULL && wanted.id_size > 0)
        rc = try_served_supplement(&s, &wanted);
    free(memory);
    *why = s.why;
    return rc < 0 ? rc : 0;
}

/* ---- packages and split files ---- */

static int check_package(const struct file_search *s, struct symint_debug_file *f, const char **why)
{
    (void)s;
    *why = "it has no .debug_cu_index";
    return symint_elf_section(f->elf, ".debug_cu_index") != NULL;
}

static int check_split(const struct file_search *s, struct symint_debug_file *f, const char **why)
{
    *why = "it has no .debug_info.dwo";
    return symint_elf_section(f->elf, ".debug_info.dwo") != NULL ||
                   symint_elf_section(f->elf, ".zdebug_info.dwo") != NULL
               ? s->take(s->user, f, why)
               : 0;
}

/* FILE.dwp, also for FILE.debug. */
static int try_package(struct file_search *s, struct symint_root root, const char *path)
{
    static const char ending[] = ".debug";
    size_t size = strlen(path);
    size_t stem = sizeof(ending) - 1;
    int rc = try_file(s, root, symint_join("%s.dwp", path));
    if (rc == 0 && size > stem && strcmp(path + size - stem, ending) == 0)
        rc = try_file(s, root, symint_join("%.*s.dwp", (int)(size - stem), path));
    return rc;
}

int symint_find_package(struct symint_arena *arena, const struct symint_search_options *options,
                        const struct symint_debug_file *from, const char *program,
                        struct symint_debug_file *out, const char **why)
{
    struct file_search s = {.arena = arena,
                            .options = options,
                            .from = from,
                            .check = check_package,
                            .out = out,
                            .why = ""};
    *out = (struct symint_debug_file){.fd = -1};
    struct symint_root root = symint_debug_file_root(from);
    bool other = program != NULL && strcmp(program, from->path) != 0;
    int rc = try_package(&s, root, from->path);
    if (rc == 0) { /* what a link by build id leads to has a better name */
        char *place = real_place(from);
        rc = place == NULL ? SYM_ERR_NOMEM : 0;
        if (rc == 0 && strcmp(place, from->path) != 0)
            rc = try_package(&s, root, place);
        free(place);
    }
    if (rc == 0 && other)
        rc = try_package(&s, root, program);
    if (rc == 0 && other &&
        from->archive != NULL) /* its path is the capture's word, not the archive's */
        rc = try_package(&s, symint_in_folder(options->sysroot), program);
    if (rc == 0)
        rc = try_archives(&s, program != NULL ? program : from->path, ".dwp");
    *why = s.why;
    return rc < 0 ? rc : 0;
}

int symint_find_split(struct symint_arena *arena, const struct symint_search_options *options,
                      const struct symint_debug_file *from, const char *program,
                      const char *comp_dir, const char *dwo_name, symint_take_split_fn *take,
                      void *user, const char **why)
{
    struct symint_debug_file taken = {.fd = -1}; /* nothing is left of it */
    struct file_search s = {.arena = arena,
                            .options = options,
                            .from = from,
                            .check = check_split,
                            .take = take,
                            .user = user,
                            .tell_absence = true,
                            .out = &taken,
                            .why = ""};
    const char *beside = program != NULL ? program : from->path;
    const char *base = base_name(dwo_name);
    struct symint_root root = symint_debug_file_root(from);
    int rc;
    if (!is_usable_name(dwo_name) || (comp_dir != NULL && strnlen(comp_dir, PATH_MAX) == PATH_MAX))
        rc = tell(&s, "%s%s: it names a split file by a path that is empty or too long",
                  symint_shown_root(from->root), from->path);
    else if (dwo_name[0] == '/')
        rc = try_file(&s, root, strdup(dwo_name));
    else if (comp_dir != NULL && comp_dir[0] == '/')
        rc = try_file(&s, root, symint_join("%s/%s", comp_dir, dwo_name));
    else
        rc = try_file(&s, root, in_folder_of(beside, dwo_name));
    if (rc == 0 && base[0] != '\0')
        rc = try_file(&s, root, in_folder_of(beside, base));
    if (rc == 0 && base[0] != '\0' && beside != from->path)
        rc = try_file(&s, root, in_folder_of(from->path, base));
    if (rc == 0)
        rc = try_archives(&s, dwo_name, "");
    *why = s.why;
    return rc < 0 ? rc : 0;
}
