/* SPDX-License-Identifier: MIT */
/*
 * From what a capture recorded of a module to the files that are the recorded ones: the binary,
 * and for a stripped binary the file with its symbols (symbolization.md section 4). The first
 * candidate that passes the check is used.
 */
#include "locate.h"

#include "debuginfo.h"
#include "live.h"

#include <link.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define MAX_BUILD_ID 64

static const char deleted[] = " (deleted)";
static const char *const default_debug_dirs[] = {"/usr/lib/debug"};

/* A file that was opened; its path is as a person would type it. */
struct opened {
    int fd;
    char *path;
    struct symint_elf *elf;
};

struct search {
    struct symint_arena *arena;
    const struct symint_search_options *options;
    const struct symint_wanted *wanted;
    char *root; /* in which recorded paths lie, malloc'ed; NULL: ours */
    struct opened binary;
    const char *binary_root; /* in which the binary was found; NULL: ours */
    struct opened debug;
    bool root_unknown; /* the process has a root that we may not enter */
    bool outside;      /* a file of ours is tried for a process with a root of its own */
    bool verified;
    struct symint_located *out;
};

/* ---- words ---- */

static int set_detail(struct search *s, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static int set_detail(struct search *s, const char *format, ...)
{
    char text[8192];
    va_list arguments;
    va_start(arguments, format);
    int n = vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    size_t size = n < 0 ? 0 : (size_t)n < sizeof(text) ? (size_t)n : sizeof(text) - 1;
    s->out->detail = symint_arena_copy(s->arena, text, size);
    return s->out->detail == NULL ? SYM_ERR_NOMEM : 0;
}

/* A candidate failed. What is worth telling is the first that was there and was not right, else
 * that the first one was absent. */
static bool worth_telling(struct search *s, enum sym_miss miss)
{
    bool first = s->out->miss == SYM_MISS_NONE ||
                 (s->out->miss == SYM_MISS_NO_FILE && miss != SYM_MISS_NO_FILE);
    if (first)
        s->out->miss = miss;
    return first;
}

struct hex_id {
    char text[2 * MAX_BUILD_ID + 1];
};

static struct hex_id hex(const uint8_t *bytes, size_t size)
{
    struct hex_id h = {{0}};
    for (size_t i = 0; i < size && i < MAX_BUILD_ID; i++)
        snprintf(h.text + 2 * i, 3, "%02x", bytes[i]);
    return h;
}

static char *join(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A formatted text, malloc'ed; NULL: out of memory. */
static char *join(const char *format, ...)
{
    char *text;
    va_list arguments;
    va_start(arguments, format);
    int n = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (n < 0 || (text = malloc((size_t)n + 1)) == NULL)
        return NULL;
    va_start(arguments, format);
    vsnprintf(text, (size_t)n + 1, format, arguments);
    va_end(arguments);
    return text;
}

/* ---- opening ---- */

static void close_file(struct opened *f)
{
    symint_elf_free(f->elf);
    if (f->fd >= 0)
        close(f->fd);
    free(f->path);
    *f = (struct opened){.fd = -1};
}

/* Reads the headers of an open file; takes fd and path. 0 with f->elf, or with none and *miss and
 * *why; SYM_ERR_NOMEM. */
static int open_elf(int fd, char *path, struct opened *f, enum sym_miss *miss, const char **why)
{
    struct stat st;
    *f = (struct opened){.fd = fd, .path = path};
    *miss = SYM_MISS_UNREADABLE;
    *why = "its size is unknown";
    int rc = 0;
    if (fstat(fd, &st) == 0 && st.st_size >= 0) {
        struct symint_input input = {
            .fd = fd, .size = (uint64_t)st.st_size, .stored_bytes = (uint64_t)st.st_blocks * 512};
        rc = symint_elf_open(&input, &f->elf, miss, why);
        if (rc == 0 && f->elf != NULL)
            rc = symint_elf_read_sections(f->elf, miss, why);
    }
    return rc;
}

/* A file inside a root (NULL: ours); takes path. As open_elf; *miss NO_FILE and its like when it
 * could not be opened, with *error. */
static int open_in(const char *root, char *path, struct opened *f, enum sym_miss *miss,
                   const char **why)
{
    int fd = -1;
    int error;
    *f = (struct opened){.fd = -1, .path = path};
    if (path == NULL)
        return SYM_ERR_NOMEM;
    int rc = symint_open_regular(root, path, &fd, miss, &error);
    if (root != NULL && strcmp(root, "/") != 0) {
        f->path = join("%s%s%s", root, path[0] == '/' ? "" : "/", path);
        free(path);
    }
    if (rc == 0 && f->path == NULL)
        rc = SYM_ERR_NOMEM;
    if (rc != 0 || fd < 0) {
        *why = error != 0 ? strerror(error) : sym_miss_text(*miss);
        if (fd >= 0)
            close(fd);
        return rc;
    }
    return open_elf(fd, f->path, f, miss, why);
}

/* ---- is it the recorded file? ---- */

static bool has_inode(const struct search *s, const struct stat *st)
{
    const struct symint_wanted *w = s->wanted;
    return w->inode != 0 && (uint64_t)st->st_ino == w->inode && major(st->st_dev) == w->dev_major &&
           minor(st->st_dev) == w->dev_minor;
}

/* On the same boot a file of the recorded number that has not changed since is that file. */
static bool same_inode(const struct search *s, const struct stat *st)
{
    return has_inode(s, st) && s->options->boot == SYMINT_BOOT_SAME &&
           s->options->has_capture_time && st->st_ctim.tv_sec >= 0 &&
           (uint64_t)st->st_ctim.tv_sec < s->options->capture_time_us / 1000000;
}

/* 1: it is, or nothing says that it is not; 0: it is not, and out tells why; SYM_ERR_NOMEM. */
static int check_identity(struct search *s, const struct opened *f)
{
    const struct symint_wanted *w = s->wanted;
    struct stat st;
    size_t size;
    const uint8_t *id = symint_elf_build_id(f->elf, &size);
    s->verified = false;
    if (w->build_id_size > 0) {
        if (size == w->build_id_size && memcmp(id, w->build_id, size) == 0) {
            s->verified = true;
            return 1;
        }
        if (!worth_telling(s, SYM_MISS_BUILD_ID))
            return 0;
        struct hex_id wants = hex(w->build_id, w->build_id_size);
        if (size == 0)
            return set_detail(s, "%s: it has no build id, recorded was %s", f->path, wants.text);
        return set_detail(s, "%s: its build id is %s, recorded was %s", f->path, hex(id, size).text,
                          wants.text);
    }
    if (f->fd < 0 || fstat(f->fd, &st) != 0)
        return 1;
    if (w->has_file_state) {
        /* Unsigned: a file may claim a time that has no room. */
        uint64_t mtime_ns =
            (uint64_t)st.st_mtim.tv_sec * 1000000000u + (uint64_t)st.st_mtim.tv_nsec;
        s->verified =
            (uint64_t)st.st_size == w->file_size_bytes && mtime_ns == (uint64_t)w->file_mtime_ns;
        if (s->verified)
            return 1;
        if (!worth_telling(s, SYM_MISS_BUILD_ID))
            return 0;
        return set_detail(s, "%s: its size or time of change is not the recorded one", f->path);
    }
    s->verified = same_inode(s, &st);
    if (!s->outside || has_inode(s, &st))
        return 1;
    if (!worth_telling(s, SYM_MISS_NO_FILE))
        return 0;
    return set_detail(s, "%s: the process has a root of its own, and this is another file",
                      f->path);
}

/* Takes a candidate for the binary. 1: it is the one; 0; SYM_ERR_NOMEM. */
static int take_binary(struct search *s, struct opened *f, const char *root)
{
    int rc = check_identity(s, f);
    if (rc != 1) {
        close_file(f);
        return rc;
    }
    s->binary = *f;
    s->binary_root = root;
    return 1;
}

/* Tries a candidate; takes path. */
static int try_binary(struct search *s, const char *root, char *path)
{
    struct opened f;
    enum sym_miss miss;
    const char *why = "";
    int rc = open_in(root, path, &f, &miss, &why);
    if (rc == 0 && f.elf != NULL && miss == SYM_MISS_NONE)
        return take_binary(s, &f, root);
    if (rc == 0 && worth_telling(s, miss))
        rc = set_detail(s, "%s: %s", f.path, why);
    close_file(&f);
    return rc;
}

/* ---- the binary ---- */

/* DIR/.build-id/xx/yyyy and an ending; NULL: out of memory. */
static char *build_id_path(const char *dir, const uint8_t *id, size_t size, const char *ending)
{
    struct hex_id h = hex(id, size);
    return join("%s/.build-id/%.2s/%s%s", dir, h.text, h.text + 2, ending);
}

/* Candidates in folders that the user named, or that debug files lie in, are extra: that they are
 * absent is not worth a word. */
static int try_extra(struct search *s, const char *root, char *path)
{
    enum sym_miss before = s->out->miss;
    const char *detail = s->out->detail;
    int rc = try_binary(s, root, path);
    if (rc == 0 && s->out->miss == SYM_MISS_NO_FILE) {
        s->out->miss = before;
        s->out->detail = detail;
    }
    return rc;
}

/* ID names a file of its own only when it has two bytes at least. */
static bool has_id(const struct symint_wanted *w)
{
    return w->build_id_size >= 2 && w->build_id_size <= MAX_BUILD_ID;
}

static int search_symbol_dirs(struct search *s)
{
    const struct symint_wanted *w = s->wanted;
    bool absolute = w->path[0] == '/';
    const char *base = strrchr(w->path, '/');
    int rc = 0;
    base = base != NULL ? base + 1 : w->path;
    if (strcmp(base, "..") == 0 || strcmp(base, ".") == 0 || w->path[0] == '[')
        base = "";
    for (size_t i = 0; i < s->options->symbol_dir_count && rc == 0; i++) {
        const char *dir = s->options->symbol_dirs[i];
        if (has_id(w))
            rc = try_extra(s, NULL, build_id_path(dir, w->build_id, w->build_id_size, ""));
        if (rc == 0 && absolute)
            rc = try_extra(s, dir, strdup(w->path));
        if (rc == 0 && base[0] != '\0')
            rc = try_extra(s, NULL, join("%s/%s", dir, base));
    }
    return rc;
}

/* The code that the kernel maps into every process, from ours: the same for all of a boot. */
static int try_vdso(struct search *s)
{
    const struct symint_wanted *w = s->wanted;
    uintptr_t address = getauxval(AT_SYSINFO_EHDR);
    const uint8_t *image = NULL;
    struct opened f = {.fd = -1};
    enum sym_miss miss;
    const char *why = "";
    memcpy(&image, &address, sizeof(image));
    if (image == NULL || (s->options->boot != SYMINT_BOOT_SAME && w->build_id_size == 0))
        return 0;
    bool narrow = w->end <= UINT32_MAX; /* of a 32-bit program */
    ElfW(Ehdr) header;
    memcpy(&header, image, sizeof(header));
    uint64_t size = header.e_shoff + (uint64_t)header.e_shnum * header.e_shentsize;
    if ((narrow || w->end - w->start != ((size + 4095) & ~(uint64_t)4095)) && w->build_id_size == 0)
        return 0;
    struct symint_input input = {.fd = -1, .memory = image, .size = size};
    f.path = strdup("[vdso]");
    int rc = f.path == NULL ? SYM_ERR_NOMEM : symint_elf_open(&input, &f.elf, &miss, &why);
    if (rc == 0 && f.elf != NULL)
        rc = symint_elf_read_sections(f.elf, &miss, &why);
    if (rc == 0 && f.elf != NULL && miss == SYM_MISS_NONE) {
        rc = take_binary(s, &f, NULL);
        if (rc == 1)
            s->verified |= s->options->boot_certain;
        return rc;
    }
    close_file(&f);
    return rc;
}

/* What a live process holds of a file that is gone. */
static int try_held(struct search *s)
{
    const struct symint_wanted *w = s->wanted;
    struct opened f;
    enum sym_miss miss;
    const char *why = "";
    int fd;
    struct stat st;
    symint_live_open_held(s->options->system, w->live_pid, w->start, w->end, w->path, &fd);
    if (fd < 0)
        return 0;
    /* A process that has run another file of that name since holds that one. */
    bool same = fstat(fd, &st) == 0 && (uint64_t)st.st_ino == w->inode;
    if (w->inode != 0 && !same) {
        close(fd);
        return 0;
    }
    int rc = open_elf(fd, join("%s%s", s->root != NULL ? s->root : "", w->path), &f, &miss, &why);
    if (f.path == NULL)
        rc = SYM_ERR_NOMEM;
    if (rc == 0 && f.elf != NULL && miss == SYM_MISS_NONE) {
        rc = take_binary(s, &f, s->root);
        if (rc == 1)
            s->verified |= same;
        return rc;
    }
    close_file(&f);
    return rc;
}

/* The recorded path, and what else the kernel's mark for deleted files may mean. */
static int search_path(struct search *s)
{
    const struct symint_wanted *w = s->wanted;
    size_t suffix = sizeof(deleted) - 1;
    s->outside = s->root_unknown;
    int rc = try_binary(s, s->root, strdup(w->path));
    s->outside = false;
    /* Some recorders see paths from outside. */
    if (rc == 0 && w->live_root && s->root != NULL && s->options->sysroot == NULL &&
        s->out->miss == SYM_MISS_NO_FILE) {
        s->outside = true;
        rc = try_extra(s, NULL, strdup(w->path));
        s->outside = false;
    }
    if (rc != 0 || w->path_size <= suffix ||
        memcmp(w->path + w->path_size - suffix, deleted, suffix) != 0)
        return rc;
    if (w->live_pid > 0)
        rc = try_held(s);
    if (rc != 0)
        return rc;
    /* Whatever has its name today is only it when the build id says so. */
    if (w->build_id_size > 0)
        return try_binary(s, s->root, strndup(w->path, w->path_size - suffix));
    if (s->out->miss != SYM_MISS_NO_FILE)
        return 0;
    return set_detail(s, "%s: it was deleted, and no build id was recorded to know another file by",
                      w->path);
}

/* Calls for each place of a debug directory: inside the root first, as it is on this system
 * else. */
typedef int debug_place_fn(struct search *s, const char *root, const char *dir);

static int for_debug_dirs(struct search *s, debug_place_fn *f)
{
    const struct symint_search_options *o = s->options;
    const char *const *dirs = o->debug_dir_count > 0 ? o->debug_dirs : default_debug_dirs;
    size_t count = o->debug_dir_count > 0 ? o->debug_dir_count : 1;
    int rc = 0;
    for (size_t i = 0; i < count && rc == 0; i++) {
        if (s->root != NULL && dirs[i][0] == '/')
            rc = f(s, s->root, dirs[i]);
        if (rc == 0)
            rc = f(s, NULL, dirs[i]);
    }
    return rc;
}

static int try_stored_binary(struct search *s, const char *root, const char *dir)
{
    return try_extra(s, root,
                     build_id_path(dir, s->wanted->build_id, s->wanted->build_id_size, ""));
}

static int find_binary(struct search *s)
{
    const struct symint_wanted *w = s->wanted;
    int rc = search_symbol_dirs(s);
    if (rc == 0 && strcmp(w->path, "[vdso]") == 0)
        rc = try_vdso(s);
    if (rc == 0 && w->path[0] == '/') {
        rc = search_path(s);
    } else if (rc == 0 && worth_telling(s, SYM_MISS_NO_FILE)) {
        /* The kernel gives every file an absolute path. */
        if (strcmp(w->path, "[vdso]") == 0)
            rc = set_detail(s, "%s: that of another boot, or of another kind of program", w->path);
        else
            rc = set_detail(s, "%.4096s: not the name of a file", w->path);
    }
    if (rc == 0 && has_id(w))
        rc = for_debug_dirs(s, try_stored_binary);
    return rc < 0 ? rc : 0;
}

/* ---- the debug file ---- */

/* The build id that a debug file must have: the recorded one, else the binary's. */
static const uint8_t *debug_id(const struct search *s, size_t *size)
{
    if (s->binary.elf != NULL)
        return symint_elf_build_id(s->binary.elf, size);
    *size = s->wanted->build_id_size;
    return s->wanted->build_id;
}

/* Tries a debug file, which is known by its build id, else by the CRC-32 of a link (NULL: none);
 * takes path. 1: it is the one; 0; SYM_ERR_NOMEM. */
static int try_debug(struct search *s, const char *root, char *path, const uint32_t *crc32)
{
    struct opened f;
    enum sym_miss miss;
    const char *why = "";
    struct stat here;
    struct stat there;
    size_t want_size;
    size_t size = 0;
    const uint8_t *want = debug_id(s, &want_size);
    int rc = open_in(root, path, &f, &miss, &why);
    if (rc != 0 || f.elf == NULL || miss != SYM_MISS_NONE) {
        if (rc == 0 && miss != SYM_MISS_NO_FILE && s->out->detail[0] == '\0')
            rc = set_detail(s, "%s: %s", f.path, why);
        close_file(&f);
        return rc;
    }
    bool itself = s->binary.fd >= 0 && fstat(s->binary.fd, &here) == 0 &&
                  fstat(f.fd, &there) == 0 && here.st_dev == there.st_dev &&
                  here.st_ino == there.st_ino;
    const uint8_t *id = symint_elf_build_id(f.elf, &size);
    bool same = want_size > 0 && size == want_size && memcmp(id, want, size) == 0;
    if (!itself && !same && crc32 != NULL) {
        uint32_t is;
        same = symint_file_crc32(f.fd, &is) && is == *crc32;
        if (!same)
            rc = set_detail(s, "%s: its CRC-32 is not the one that %s names", f.path,
                            s->binary.path);
    } else if (!itself && !same) {
        rc = set_detail(s, "%s: its build id is %s, not %s", f.path,
                        size > 0 ? hex(id, size).text : "absent", hex(want, want_size).text);
    }
    if (rc == 0 && same && !itself && symint_elf_has_symtab(f.elf)) {
        s->debug = f;
        if (s->binary.elf != NULL)
            s->out->detail = ""; /* those that were refused do not matter any more */
        return 1;
    }
    close_file(&f);
    return rc;
}

static int try_stored_debug(struct search *s, const char *root, const char *dir)
{
    size_t size;
    const uint8_t *id = debug_id(s, &size);
    return try_debug(s, root, build_id_path(dir, id, size, ".debug"), NULL);
}

static int search_link(struct search *s)
{
    struct symint_debug_link link;
    const struct symint_search_options *o = s->options;
    if (s->binary.elf == NULL || s->binary.fd < 0 || !symint_debug_link_read(s->binary.elf, &link))
        return 0;
    /* The folder in terms of the root, in which the binary's path was given. */
    const char *path = s->binary.path;
    if (s->binary_root != NULL && strcmp(s->binary_root, "/") != 0)
        path += strlen(s->binary_root);
    const char *slash = strrchr(path, '/');
    int length = slash != NULL ? (int)(slash - path) : 0;
    const char *root = s->binary_root;
    int rc = 0;
    for (size_t i = 0; i < o->symbol_dir_count && rc == 0; i++)
        rc = try_debug(s, NULL, join("%s/%s", o->symbol_dirs[i], link.name), &link.crc32);
    if (rc == 0)
        rc = try_debug(s, root, join("%.*s/%s", length, path, link.name), &link.crc32);
    if (rc == 0)
        rc = try_debug(s, root, join("%.*s/.debug/%s", length, path, link.name), &link.crc32);
    const char *const *dirs = o->debug_dir_count > 0 ? o->debug_dirs : default_debug_dirs;
    size_t count = o->debug_dir_count > 0 ? o->debug_dir_count : 1;
    for (size_t i = 0; i < count && rc == 0; i++) {
        if (root != NULL && dirs[i][0] == '/' && path[0] == '/')
            rc = try_debug(s, root, join("%s%.*s/%s", dirs[i], length, path, link.name),
                           &link.crc32);
        if (rc == 0 && path[0] == '/')
            rc = try_debug(s, NULL, join("%s%.*s/%s", dirs[i], length, path, link.name),
                           &link.crc32);
    }
    return rc;
}

/* The debug directories as one text, as far as there is room. */
static void list_debug_dirs(const struct symint_search_options *o, char *text, size_t room)
{
    const char *const *dirs = o->debug_dir_count > 0 ? o->debug_dirs : default_debug_dirs;
    size_t count = o->debug_dir_count > 0 ? o->debug_dir_count : 1;
    size_t used = 0;
    for (size_t i = 0; i < count && used < room; i++) {
        int n = snprintf(text + used, room - used, "%s%s", i > 0 ? ", " : "", dirs[i]);
        used += n > 0 ? (size_t)n : 0;
    }
}

/* Says where no debug file was found. */
static int describe_absence(struct search *s)
{
    char dirs[1024] = "";
    size_t size;
    const uint8_t *id = debug_id(s, &size);
    struct symint_debug_link link;
    if (s->out->detail[0] != '\0')
        return 0;
    list_debug_dirs(s->options, dirs, sizeof(dirs));
    if (size > 0)
        return set_detail(s, "%s: stripped, and no debug file for build id %s in %s",
                          s->binary.path, hex(id, size).text, dirs);
    if (symint_debug_link_read(s->binary.elf, &link))
        return set_detail(s, "%s: stripped, and no debug file %s beside it or in %s",
                          s->binary.path, link.name, dirs);
    return set_detail(s, "%s: stripped, and nothing tells which debug file is its own",
                      s->binary.path);
}

static int find_debug(struct search *s)
{
    size_t size;
    const uint8_t *id = debug_id(s, &size);
    const struct symint_search_options *o = s->options;
    int rc = 0;
    if (size >= 2 && size <= MAX_BUILD_ID) {
        for (size_t i = 0; i < o->symbol_dir_count && rc == 0; i++)
            rc = try_debug(s, NULL, build_id_path(o->symbol_dirs[i], id, size, ".debug"), NULL);
        if (rc == 0)
            rc = for_debug_dirs(s, try_stored_debug);
    }
    if (rc == 0)
        rc = search_link(s);
    /* The binary may be a stripped copy of what lies at the recorded path. */
    if (rc == 0 && s->binary.elf != NULL && size > 0 && s->wanted->path[0] == '/')
        rc = try_debug(s, s->root, strdup(s->wanted->path), NULL);
    if (rc == 0 && s->binary.elf != NULL)
        rc = describe_absence(s);
    return rc < 0 ? rc : 0;
}

/* ---- both ---- */

/* Builds the index of what was found. */
static int build(struct search *s)
{
    enum sym_miss miss;
    const char *why = "";
    const char *note = "";
    struct opened *main = &s->binary;
    struct symint_elf *debug = s->debug.elf;
    if (main->elf == NULL) { /* all that is left of the program */
        main = &s->debug;
        debug = NULL;
        s->verified = true;
    }
    bool symbols = symint_elf_has_symtab(main->elf);
    int rc = symint_elf_index(main->elf, debug, &miss, &why, &note);
    if (rc != 0)
        return rc;
    if (miss != SYM_MISS_NONE) {
        bool told = s->out->detail[0] != '\0' && miss == SYM_MISS_NO_SYMBOLS;
        s->out->miss = miss;
        return told ? 0 : set_detail(s, "%s: %s", main->path, why);
    }
    if (note[0] != '\0')
        rc = set_detail(s, "%s: %s", main->path, note);
    s->out->miss = SYM_MISS_NONE;
    s->out->unverified = !s->verified;
    s->out->complete = main == &s->binary && (symbols || debug != NULL);
    s->out->elf = main->elf;
    main->elf = NULL;
    return rc;
}

/* The root in which recorded paths lie. In place of one that we may not enter it is ours, as it
 * mostly is, if the file has the recorded inode. */
static int choose_root(struct search *s)
{
    const struct symint_search_options *o = s->options;
    if (o->sysroot != NULL) {
        if (strcmp(o->sysroot, "/") == 0)
            return 0;
        s->root = strdup(o->sysroot);
    } else if (s->wanted->live_root) {
        s->root = symint_live_root(o->system, s->wanted->live_pid);
        if (s->root != NULL && access(s->root, X_OK) != 0) {
            free(s->root);
            s->root = NULL;
            s->root_unknown = s->wanted->inode != 0;
            return 0;
        }
    } else {
        return 0;
    }
    return s->root == NULL ? SYM_ERR_NOMEM : 0;
}

int symint_locate(struct symint_arena *arena, const struct symint_search_options *options,
                  const struct symint_wanted *wanted, struct symint_located *out)
{
    struct symint_wanted w = *wanted;
    struct search s = {.arena = arena,
                       .options = options,
                       .wanted = &w,
                       .binary = {.fd = -1},
                       .debug = {.fd = -1},
                       .out = out};
    int rc = 0;
    *out = (struct symint_located){.detail = ""};
    if (memchr(w.path, '\0', w.path_size) != NULL) { /* no file has such a name */
        w.path = "";
        w.path_size = 0;
    }
    rc = choose_root(&s);
    if (rc == 0)
        rc = find_binary(&s);
    if (rc == 0 && s.binary.elf != NULL) {
        out->miss = SYM_MISS_NONE;
        out->detail = "";
    }
    if (rc == 0 && (s.binary.elf == NULL ? has_id(&w) : !symint_elf_has_symtab(s.binary.elf)))
        rc = find_debug(&s);
    if (rc == 0 && (s.binary.elf != NULL || s.debug.elf != NULL))
        rc = build(&s);
    close_file(&s.binary);
    close_file(&s.debug);
    free(s.root);
    return rc;
}
