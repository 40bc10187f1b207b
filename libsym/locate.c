/* SPDX-License-Identifier: MIT */
/*
 * From what a capture recorded of a module to the files that are the recorded ones: the binary, and, for what it lacks,
 * files with its symbols and its debug information (the order is in libsym(3), "Files of a module"). The first candidate
 * that passes the check is used. Here: the binary, and what is made of the files.
 */
#include "locate_private.h"

#include "debug_paths.h"
#include "live.h"

#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* ---- words ---- */

int symint_search_detail(struct symint_search *s, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    s->out->detail = symint_arena_print(s->arena, format, arguments);
    va_end(arguments);
    return s->out->detail == NULL ? SYM_ERR_NOMEM : 0;
}

/* A candidate failed. What is worth telling is the first that was there and was not right, else
 * that the first one was absent. */
static bool worth_telling(struct symint_search *s, enum sym_miss miss)
{
    bool first = s->out->miss == SYM_MISS_NONE ||
                 (s->out->miss == SYM_MISS_NO_FILE && miss != SYM_MISS_NO_FILE);
    if (first)
        s->out->miss = miss;
    return first;
}

/* ---- is it the recorded file? ---- */

static bool has_inode(const struct symint_search *s, const struct stat *st)
{
    const struct symint_wanted *w = s->wanted;
    return w->inode != 0 && (uint64_t)st->st_ino == w->inode && major(st->st_dev) == w->dev_major &&
           minor(st->st_dev) == w->dev_minor;
}

/* On the same boot a file of the recorded number that has not changed since is that file. */
static bool same_inode(const struct symint_search *s, const struct stat *st)
{
    return has_inode(s, st) && s->options->boot == SYMINT_BOOT_SAME &&
           s->options->has_capture_time && st->st_ctim.tv_sec >= 0 &&
           (uint64_t)st->st_ctim.tv_sec < s->options->capture_time_us / 1000000;
}

/* 1: it is, or nothing says that it is not; 0: it is not, and out tells why; SYM_ERR_NOMEM. */
static int check_identity(struct symint_search *s, const struct symint_debug_file *f)
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
        struct symint_hex wants = symint_hex(w->build_id, w->build_id_size);
        if (size == 0)
            return symint_search_detail(s, "%s%s: it has no build id, the recorded one is %s",
                                        symint_shown_root(f->root), f->path, wants.text);
        return symint_search_detail(s, "%s%s: its build id is %s, the recorded one %s",
                                    symint_shown_root(f->root), f->path, symint_hex(id, size).text,
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
        return symint_search_detail(s,
                                    "%s%s: its size or modification time is not the recorded one",
                                    symint_shown_root(f->root), f->path);
    }
    s->verified = same_inode(s, &st);
    if (!s->outside || has_inode(s, &st))
        return 1;
    if (!worth_telling(s, SYM_MISS_NO_FILE))
        return 0;
    return symint_search_detail(
        s, "%s%s: the process has another root folder, and this is not its file",
        symint_shown_root(f->root), f->path);
}

/* Takes a candidate for the binary. 1: it is the one; 0; SYM_ERR_NOMEM. */
static int take_binary(struct symint_search *s, struct symint_debug_file *f)
{
    int rc = check_identity(s, f);
    if (rc != 1) {
        symint_debug_file_close(f);
        return rc;
    }
    s->binary = *f;
    return 1;
}

/* Tries a candidate; takes path. */
static int try_binary(struct symint_search *s, struct symint_root root, char *path)
{
    struct symint_debug_file f;
    enum sym_miss miss;
    const char *why = "";
    int rc = symint_debug_file_open(root, path, &f, &miss, &why);
    if (rc == 0 && f.elf != NULL && miss == SYM_MISS_NONE)
        return take_binary(s, &f);
    if (rc == 0 && worth_telling(s, miss))
        rc = symint_search_detail(s, "%s%s: %s", symint_shown_root(root.path), f.path, why);
    symint_debug_file_close(&f);
    return rc;
}

/* ---- the binary ---- */

/* Candidates in folders that the user named, or that debug files lie in, are extra: that they are
 * absent is not worth a word. */
static int try_extra(struct symint_search *s, struct symint_root root, char *path)
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

static int search_archives(struct symint_search *s)
{
    const struct symint_wanted *w = s->wanted;
    bool absolute = w->path[0] == '/';
    const char *base = strrchr(w->path, '/');
    int rc = 0;
    base = base != NULL ? base + 1 : w->path;
    if (strcmp(base, "..") == 0 || strcmp(base, ".") == 0 || w->path[0] == '[')
        base = "";
    for (size_t i = 0; i < s->options->archive_count && rc == 0; i++) {
        struct symint_root root = symint_in_archive(s->options->archives[i]);
        if (symint_is_file_id(w->build_id_size))
            rc = try_extra(s, root, symint_build_id_path("", w->build_id, w->build_id_size, ""));
        if (rc == 0 && absolute)
            rc = try_extra(s, root, strdup(w->path));
        if (rc == 0 && base[0] != '\0')
            rc = try_extra(s, root, symint_join("/%s", base));
    }
    return rc;
}

/* The code that the kernel maps into every process, from ours: the same for all of a boot. */
static int try_vdso(struct symint_search *s)
{
    const struct symint_wanted *w = s->wanted;
    uintptr_t address = getauxval(AT_SYSINFO_EHDR);
    const uint8_t *image = NULL;
    struct symint_debug_file f = {.fd = -1};
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
        rc = take_binary(s, &f);
        if (rc == 1)
            s->verified |= s->options->boot_certain;
        return rc;
    }
    symint_debug_file_close(&f);
    return rc;
}

/* What a live process holds of a file that is gone; link: what the kernel calls that. */
static int try_held(struct symint_search *s, const char *link)
{
    const struct symint_wanted *w = s->wanted;
    struct symint_debug_file f;
    enum sym_miss miss;
    const char *why = "";
    int fd;
    struct stat st;
    symint_live_open_held(s->options->system, w->live_pid, w->start, w->end, link, &fd);
    if (fd < 0)
        return 0;
    /* A process that has run another file of that name since holds that one. */
    bool same = fstat(fd, &st) == 0 && (uint64_t)st.st_ino == w->inode;
    if (w->inode != 0 && !same) {
        close(fd);
        return 0;
    }
    f = (struct symint_debug_file){.fd = fd, .path = strdup(w->path)};
    if (s->root != NULL)
        f.root = strdup(s->root);
    int rc = SYM_ERR_NOMEM;
    if (f.path != NULL && (s->root == NULL || f.root != NULL))
        rc = symint_debug_file_read(&f, &miss, &why);
    if (rc == 0 && f.elf != NULL && miss == SYM_MISS_NONE) {
        rc = take_binary(s, &f);
        if (rc == 1)
            s->verified |= same;
        return rc;
    }
    symint_debug_file_close(&f);
    return rc;
}

/* A file that was deleted, or replaced by another one, after its path was recorded. */
static int try_deleted_since(struct symint_search *s)
{
    if (s->wanted->live_pid <= 0)
        return 0;
    char *link = symint_join("%s%s", s->wanted->path, SYMINT_DELETED);
    int rc = link == NULL ? SYM_ERR_NOMEM : try_held(s, link);
    free(link);
    return rc;
}

/* The recorded path, and what else the kernel's mark for deleted files may mean. */
static int search_path(struct symint_search *s)
{
    const struct symint_wanted *w = s->wanted;
    size_t size = symint_without_deleted(w->path, w->path_size);
    s->outside = s->root_unknown;
    int rc = try_binary(s, symint_in_folder(s->root), strdup(w->path));
    s->outside = false;
    /* Some recorders see paths from outside. */
    if (rc == 0 && w->live_root && s->root != NULL && s->options->sysroot == NULL &&
        s->out->miss == SYM_MISS_NO_FILE) {
        s->outside = true;
        rc = try_extra(s, symint_in_folder(NULL), strdup(w->path));
        s->outside = false;
    }
    if (rc != 0)
        return rc;
    if (size == w->path_size)
        return try_deleted_since(s);
    if (w->live_pid > 0)
        rc = try_held(s, w->path);
    if (rc != 0)
        return rc;
    /* Whatever has its name today is only it when the build id says so. */
    if (w->build_id_size > 0)
        return try_binary(s, symint_in_folder(s->root), strndup(w->path, size));
    if (s->out->miss != SYM_MISS_NO_FILE)
        return 0;
    return symint_search_detail(
        s, "%s: it was deleted, and no build id was recorded by which to know a copy", w->path);
}

/* The stores of debug directories: inside the root first, as they are on this system else. */
static int search_stores(struct symint_search *s)
{
    const struct symint_wanted *w = s->wanted;
    const char *dir;
    int rc = 0;
    for (size_t i = 0; rc == 0 && (dir = symint_debug_dir(s->options, i)) != NULL; i++) {
        if (s->root != NULL && dir[0] == '/')
            rc = try_extra(s, symint_in_folder(s->root),
                           symint_build_id_path(dir, w->build_id, w->build_id_size, ""));
        if (rc == 0)
            rc = try_extra(s, symint_in_folder(NULL),
                           symint_build_id_path(dir, w->build_id, w->build_id_size, ""));
    }
    return rc;
}

static int find_binary(struct symint_search *s)
{
    const struct symint_wanted *w = s->wanted;
    int rc = search_archives(s);
    if (rc == 0 && strcmp(w->path, "[vdso]") == 0)
        rc = try_vdso(s);
    if (rc == 0 && w->path[0] == '/') {
        rc = search_path(s);
    } else if (rc == 0 && worth_telling(s, SYM_MISS_NO_FILE)) {
        /* The kernel gives every file an absolute path. */
        if (strcmp(w->path, "[vdso]") == 0)
            rc = symint_search_detail(
                s, "%s: it is that of another boot, or of another kind of program", w->path);
        else
            rc = symint_search_detail(s, "%.4096s: not the path of a file", w->path);
    }
    if (rc == 0 && symint_is_file_id(w->build_id_size))
        rc = search_stores(s);
    return rc < 0 ? rc : 0;
}

/* ---- what is made of them ---- */

/* The program as the owner of a debug file knows it: in the same root, without the kernel's mark.
 * Malloc'ed, NULL: it is elsewhere or there is no memory, which costs no more than a package. */
static char *program_beside(const struct symint_search *s, const struct symint_debug_file *info)
{
    const char *path = s->binary.elf != NULL ? s->binary.path : s->wanted->path;
    const char *root = s->binary.elf != NULL ? s->binary.root : s->root;
    /* What an archive has beside its debug files is called as the program is. */
    if (path[0] == '[' || (info->archive == NULL &&
                           strcmp(symint_shown_root(root), symint_shown_root(info->root)) != 0))
        return NULL;
    return strndup(path, symint_without_deleted(path, strlen(path)));
}

/* Opens the debug information, if there is some. The index is built. */
static int open_dwarf(struct symint_search *s)
{
    enum sym_miss miss = SYM_MISS_NONE;
    const char *why = "";
    uint64_t bias = 0;
    struct symint_debug_file file;
    int rc = 0;
    if (s->info == NULL || s->info->fd < 0)
        return 0;
    char *program = program_beside(s, s->info);
    if (s->info->elf == NULL) { /* the index has it */
        rc = symint_debug_file_read(s->info, &miss, &why);
    } else if (!symint_elf_bias(s->out->elf, s->info->elf, &bias)) {
        miss = SYM_MISS_DAMAGED;
        why = "its code is not that of the program";
    }
    if (rc == 0 && miss == SYM_MISS_NONE) {
        file = *s->info;
        *s->info = (struct symint_debug_file){.fd = -1};
        rc = symint_dwarf_open(s->options, s->arena, &file, program, bias, &s->out->dwarf);
        /* Both are there: that the program itself is not, or another candidate, is no matter. */
        if (s->out->dwarf != NULL && s->symbols != NULL && !s->told)
            s->out->detail = "";
    } else if (rc == 0 && s->out->detail[0] == '\0') {
        rc = symint_search_detail(s, "%s%s: %s", symint_shown_root(s->info->root), s->info->path,
                                  why);
    }
    free(program);
    return rc;
}

/* Builds the index of what was found. */
static int build(struct symint_search *s)
{
    enum sym_miss miss;
    const char *why = "";
    const char *note = "";
    struct symint_debug_file *main = &s->binary;
    if (main->elf == NULL) { /* all that is left of the program */
        main = s->symbols != NULL ? s->symbols : s->info;
        s->verified = true;
    }
    struct symint_elf *debug = s->symbols != NULL && s->symbols != main ? s->symbols->elf : NULL;
    int rc = symint_elf_index(main->elf, debug, &miss, &why, &note);
    if (rc != 0)
        return rc;
    s->out->elf = main->elf;
    main->elf = NULL;
    bool stripped = s->out->detail[0] != '\0' && miss == SYM_MISS_NO_SYMBOLS;
    if (miss != SYM_MISS_NONE && !stripped)
        note = why;
    s->told = note[0] != '\0';
    if (s->told)
        rc = symint_search_detail(s, "%s%s: %s", symint_shown_root(main->root), main->path, note);
    if (rc == 0)
        rc = open_dwarf(s);
    if (rc != 0)
        return rc;
    if (miss != SYM_MISS_NONE && s->out->dwarf == NULL) {
        symint_elf_free(s->out->elf);
        s->out->elf = NULL;
        s->out->miss = miss;
        return 0;
    }
    s->out->miss = SYM_MISS_NONE;
    s->out->unverified = !s->verified;
    s->out->complete = main == &s->binary && s->symbols != NULL;
    return 0;
}

/* The root in which recorded paths lie. In place of one that we may not enter it is ours, as it
 * mostly is, if the file has the recorded inode. */
static int choose_root(struct symint_search *s)
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

/* Finds the files. w is where what is wanted lies during the search. */
static int search(struct symint_search *s, struct symint_arena *arena,
                  const struct symint_search_options *options, struct symint_wanted *w,
                  struct symint_located *out)
{
    *s = (struct symint_search){.arena = arena,
                                .options = options,
                                .wanted = w,
                                .binary = {.fd = -1},
                                .debug = {{.fd = -1}, {.fd = -1}},
                                .out = out};
    *out = (struct symint_located){.detail = ""};
    if (memchr(w->path, '\0', w->path_size) != NULL) { /* no file has such a name */
        w->path = "";
        w->path_size = 0;
    }
    int rc = choose_root(s);
    if (rc == 0)
        rc = find_binary(s);
    if (rc == 0 && s->binary.elf != NULL) {
        out->miss = SYM_MISS_NONE;
        out->detail = "";
        s->symbols = symint_elf_has_symtab(s->binary.elf) ? &s->binary : NULL;
        s->info = symint_elf_has_debug_info(s->binary.elf) ? &s->binary : NULL;
    }
    if (rc == 0 && (s->symbols == NULL || s->info == NULL) &&
        (s->binary.elf != NULL || symint_is_file_id(w->build_id_size)))
        rc = symint_search_debug(s);
    return rc;
}

static void end_search(struct symint_search *s)
{
    symint_debug_file_close(&s->binary);
    symint_debug_file_close(&s->debug[0]);
    symint_debug_file_close(&s->debug[1]);
    free(s->root);
}

int symint_locate(struct symint_arena *arena, const struct symint_search_options *options,
                  const struct symint_wanted *wanted, struct symint_located *out)
{
    struct symint_wanted w = *wanted;
    struct symint_search s;
    int rc = search(&s, arena, options, &w, out);
    if (rc == 0 && (s.binary.elf != NULL || s.symbols != NULL || s.info != NULL))
        rc = build(&s);
    end_search(&s);
    return rc;
}

int symint_locate_files(struct symint_arena *arena, const struct symint_search_options *options,
                        const struct symint_wanted *wanted, struct symint_found *out)
{
    struct symint_wanted w = *wanted;
    struct symint_located located;
    struct symint_search s;
    *out = (struct symint_found){.program = {.fd = -1}, .debug = {.fd = -1}};
    int rc = search(&s, arena, options, &w, &located);
    struct symint_debug_file *named = s.info != NULL ? s.info : s.symbols;
    if (rc == 0 && named != NULL)
        out->beside = program_beside(&s, named);
    if (rc == 0 && named != NULL && named != &s.binary) {
        out->debug = *named;
        *named = (struct symint_debug_file){.fd = -1};
    }
    if (rc == 0) {
        out->program = s.binary;
        s.binary = (struct symint_debug_file){.fd = -1};
    }
    end_search(&s);
    return rc;
}
