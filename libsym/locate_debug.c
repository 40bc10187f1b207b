/* SPDX-License-Identifier: MIT */
/*
 * What a binary lacks of symbols and debug information, from other files: by build id in archives and in debug
 * directories, by debug link, from servers. A file counts that has something which is missing still.
 */
#include "debug_paths.h"
#include "debuginfo.h"
#include "debuginfod.h"
#include "locate_private.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* The build id that a debug file must have: the recorded one, else the binary's. */
static const uint8_t *debug_id(const struct symint_search *s, size_t *size)
{
    if (s->binary.elf != NULL)
        return symint_elf_build_id(s->binary.elf, size);
    *size = s->wanted->build_id_size;
    return s->wanted->build_id;
}

static bool is_complete(const struct symint_search *s)
{
    return s->symbols != NULL && s->info != NULL;
}

/* Whether it is the binary itself, by another name. */
static bool is_binary(const struct symint_search *s, const struct symint_debug_file *f)
{
    struct stat here;
    struct stat there;
    return s->binary.fd >= 0 && fstat(s->binary.fd, &here) == 0 && fstat(f->fd, &there) == 0 &&
           here.st_dev == there.st_dev && here.st_ino == there.st_ino;
}

/* Whether a file belongs to the binary, by its build id, else by the CRC-32 of a link (NULL:
 * none). 1; 0 and the detail tells; SYM_ERR_NOMEM. */
static int check_debug(struct symint_search *s, const struct symint_debug_file *f,
                       const uint32_t *crc32)
{
    size_t want_size;
    size_t size;
    uint64_t bias;
    uint32_t is;
    const uint8_t *want = debug_id(s, &want_size);
    const uint8_t *id = symint_elf_build_id(f->elf, &size);
    const char *root = symint_shown_root(f->root);
    bool same = want_size > 0 && size == want_size && memcmp(id, want, size) == 0;
    if (!same && crc32 == NULL)
        return symint_search_detail(s, "%s%s: its build id is %s, not %s", root, f->path,
                                    size > 0 ? symint_hex(id, size).text : "absent",
                                    symint_hex(want, want_size).text);
    if (!same && (!symint_file_crc32(f->fd, &is) || is != *crc32))
        return symint_search_detail(s, "%s%s: its CRC-32 is not the one that %s%s names", root,
                                    f->path, symint_shown_root(s->binary.root), s->binary.path);
    if (s->binary.elf != NULL && !symint_elf_bias(s->binary.elf, f->elf, &bias))
        return symint_search_detail(s, "%s%s: its code is not that of %s%s", root, f->path,
                                    symint_shown_root(s->binary.root), s->binary.path);
    return 1;
}

/* Keeps a file that has something which is missing. */
static void take_debug(struct symint_search *s, struct symint_debug_file *f)
{
    bool symbols = s->symbols == NULL && symint_elf_has_symtab(f->elf);
    bool info = s->info == NULL && symint_elf_has_debug_info(f->elf);
    if (!symbols && !info)
        return;
    struct symint_debug_file *kept = &s->debug[s->debug[0].elf != NULL];
    *kept = *f;
    *f = (struct symint_debug_file){.fd = -1};
    s->symbols = symbols ? kept : s->symbols;
    s->info = info ? kept : s->info;
}

/* Takes an opened candidate. 1: nothing is missing any more; 0; SYM_ERR_NOMEM. */
static int consider(struct symint_search *s, struct symint_debug_file *f, const uint32_t *crc32)
{
    int rc = is_binary(s, f) ? 0 : check_debug(s, f, crc32);
    if (rc == 1)
        take_debug(s, f);
    symint_debug_file_close(f);
    if (rc < 0 || !is_complete(s))
        return rc < 0 ? rc : 0;
    if (s->binary.elf != NULL)
        s->out->detail = ""; /* those that were refused do not matter any more */
    return 1;
}

/* Tries a debug file; takes path. As consider. */
static int try_debug(struct symint_search *s, struct symint_root root, char *path,
                     const uint32_t *crc32)
{
    struct symint_debug_file f;
    enum sym_miss miss;
    const char *why = "";
    int rc = symint_debug_file_open(root, path, &f, &miss, &why);
    if (rc == 0 && f.elf != NULL && miss == SYM_MISS_NONE)
        return consider(s, &f, crc32);
    if (rc == 0 && miss != SYM_MISS_NO_FILE && s->out->detail[0] == '\0')
        rc = symint_search_detail(s, "%s%s: %s", symint_shown_root(root.path), f.path, why);
    symint_debug_file_close(&f);
    return rc;
}

static int search_by_id(struct symint_search *s)
{
    const struct symint_search_options *o = s->options;
    size_t size;
    const uint8_t *id = debug_id(s, &size);
    const char *dir;
    int rc = 0;
    if (!symint_is_file_id(size))
        return 0;
    for (size_t i = 0; i < o->archive_count && rc == 0; i++)
        rc = try_debug(s, symint_in_archive(o->archives[i]),
                       symint_build_id_path("", id, size, ".debug"), NULL);
    for (size_t i = 0; rc == 0 && (dir = symint_debug_dir(o, i)) != NULL; i++) {
        if (s->root != NULL && dir[0] == '/')
            rc = try_debug(s, symint_in_folder(s->root),
                           symint_build_id_path(dir, id, size, ".debug"), NULL);
        if (rc == 0)
            rc = try_debug(s, symint_in_folder(NULL), symint_build_id_path(dir, id, size, ".debug"),
                           NULL);
    }
    return rc;
}

static int search_by_link(struct symint_search *s)
{
    struct symint_debug_link link;
    const struct symint_search_options *o = s->options;
    if (s->binary.elf == NULL || s->binary.fd < 0 || !symint_debug_link_read(s->binary.elf, &link))
        return 0;
    const char *path = s->binary.path;
    struct symint_root root = symint_debug_file_root(&s->binary);
    int length = (int)symint_folder_size(path);
    const char *dir;
    int rc = 0;
    for (size_t i = 0; i < o->archive_count && rc == 0; i++)
        rc = try_debug(s, symint_in_archive(o->archives[i]), symint_join("/%s", link.name),
                       &link.crc32);
    if (rc == 0)
        rc = try_debug(s, root, symint_join("%.*s/%s", length, path, link.name), &link.crc32);
    if (rc == 0)
        rc =
            try_debug(s, root, symint_join("%.*s/.debug/%s", length, path, link.name), &link.crc32);
    for (size_t i = 0; rc == 0 && path[0] == '/' && (dir = symint_debug_dir(o, i)) != NULL; i++) {
        if (root.path != NULL && dir[0] == '/')
            rc = try_debug(s, root, symint_join("%s%.*s/%s", dir, length, path, link.name),
                           &link.crc32);
        if (rc == 0)
            rc = try_debug(s, symint_in_folder(NULL),
                           symint_join("%s%.*s/%s", dir, length, path, link.name), &link.crc32);
    }
    return rc;
}

/* Asks servers. That they do not have it is worth a word only where names are missing. */
static int search_servers(struct symint_search *s)
{
    size_t size;
    const uint8_t *id = debug_id(s, &size);
    struct symint_debug_file f = {.fd = -1};
    enum sym_miss miss;
    const char *why = "";
    if (s->options->debuginfod == NULL || s->wanted->no_download || !symint_is_file_id(size) ||
        s->wanted->path[0] != '/')
        return 0;
    int rc = symint_debuginfod_find(s->options->debuginfod, id, size, &f.fd, &f.path, &why);
    if (rc == 0 && f.fd < 0)
        return s->out->detail[0] == '\0' ? symint_search_detail(s, "%s: %s", s->wanted->path, why)
                                         : 0;
    if (rc == 0)
        rc = symint_debug_file_read(&f, &miss, &why);
    if (rc == 0 && f.elf != NULL && miss == SYM_MISS_NONE)
        return consider(s, &f, NULL);
    if (rc == 0 && s->out->detail[0] == '\0')
        rc = symint_search_detail(s, "%s: %s", f.path, why);
    symint_debug_file_close(&f);
    return rc;
}

/* The debug directories as one text, as far as there is room. */
static void list_debug_dirs(const struct symint_search_options *o, char *text, size_t room)
{
    size_t used = 0;
    const char *dir;
    for (size_t i = 0; used < room && (dir = symint_debug_dir(o, i)) != NULL; i++) {
        int n = snprintf(text + used, room - used, "%s%s", i > 0 ? ", " : "", dir);
        used += n > 0 ? (size_t)n : 0;
    }
}

/* Says where no file with the symbols was found. That there is no debug information is no news. */
static int describe_absence(struct symint_search *s)
{
    char dirs[1024] = "";
    size_t size;
    const uint8_t *id = debug_id(s, &size);
    struct symint_debug_link link;
    const char *root = symint_shown_root(s->binary.root);
    if (s->out->detail[0] != '\0' || s->binary.elf == NULL || s->symbols != NULL)
        return 0;
    list_debug_dirs(s->options, dirs, sizeof(dirs));
    if (size > 0)
        return symint_search_detail(s, "%s%s: stripped, and no debug file for build id %s in %s",
                                    root, s->binary.path, symint_hex(id, size).text, dirs);
    if (symint_debug_link_read(s->binary.elf, &link))
        return symint_search_detail(s, "%s%s: stripped, and no debug file %s beside it or in %s",
                                    root, s->binary.path, link.name, dirs);
    return symint_search_detail(
        s, "%s%s: stripped, and it has no build id or debug link to find its debug file by", root,
        s->binary.path);
}

int symint_search_debug(struct symint_search *s)
{
    size_t size;
    debug_id(s, &size);
    int rc = search_by_id(s);
    if (rc == 0)
        rc = search_by_link(s);
    /* The binary may be a stripped copy of what lies at the recorded path. */
    if (rc == 0 && s->binary.elf != NULL && size > 0 && s->wanted->path[0] == '/')
        rc = try_debug(s, symint_in_folder(s->root), strdup(s->wanted->path), NULL);
    if (rc == 0)
        rc = search_servers(s);
    return rc < 0 ? rc : describe_absence(s);
}
