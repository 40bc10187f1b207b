/* SPDX-License-Identifier: MIT */
/*
 * Which files are opened for debug information, for tests/libsym/debug_files.sh. Linked with
 * -Wl,--wrap=symint_dwarf_open. Prints paths as the system knows them, or why there is none.
 *   opened [OPTION]... locate PATH          "debug FILE BIAS PROGRAM", "-" for none; then the detail
 *   opened [OPTION]... alt FILE             the supplementary file
 *   opened [OPTION]... package FILE [PROGRAM]
 *   opened [OPTION]... split FILE PROGRAM COMP_DIR NAME   "-" for a PROGRAM or COMP_DIR that is not known
 *   --sysroot DIR, --symbols DIR, --debug-dir DIR   as the tools' options; FILE is inside the sysroot
 *   --inside N   FILE is in the archive of that --symbols, from 0 on
 *   --build-id HEX   recorded build id
 */
#include "debug_files.h"
#include "dwarf.h"
#include "locate.h"
#include "strtab.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void print_file(const char *what, const struct symint_debug_file *f)
{
    char link[64];
    char path[4096] = "";
    snprintf(link, sizeof(link), "/proc/self/fd/%d", f->fd);
    ssize_t n = readlink(link, path, sizeof(path) - 1);
    path[n > 0 ? n : 0] = '\0';
    printf("%s %s", what, path);
}

int __wrap_symint_dwarf_open(const struct symint_search_options *options,
                             struct symint_arena *arena, struct symint_debug_file *file,
                             const char *program, uint64_t bias, struct symint_dwarf **out);

int __wrap_symint_dwarf_open(const struct symint_search_options *options,
                             struct symint_arena *arena, struct symint_debug_file *file,
                             const char *program, uint64_t bias, struct symint_dwarf **out)
{
    (void)options;
    (void)arena;
    print_file("debug", file);
    printf(" %" PRIx64 " %s%s\n", bias, program != NULL ? program : "-",
           symint_elf_has_debug_info(file->elf) ? "" : " (nothing in it)");
    symint_debug_file_close(file);
    *out = NULL;
    return 0;
}

static size_t parse_hex(const char *text, uint8_t *bytes, size_t room)
{
    size_t size = 0;
    for (; size < room && text[0] != '\0' && text[1] != '\0'; text += 2) {
        char digits[3] = {text[0], text[1], '\0'};
        bytes[size++] = (uint8_t)strtoul(digits, NULL, 16);
    }
    return size;
}

static int locate(struct symint_arena *arena, const struct symint_search_options *options,
                  struct symint_wanted *wanted, const char *path)
{
    struct symint_located located;
    wanted->path = path;
    wanted->path_size = strlen(path);
    wanted->end = UINT64_C(1) << 40;
    if (symint_locate(arena, options, wanted, &located) != 0)
        return 1;
    printf("%s: %s\n", located.elf != NULL ? "found" : sym_miss_text(located.miss), located.detail);
    symint_elf_free(located.elf);
    symint_dwarf_free(located.dwarf);
    return 0;
}

static struct sym_archive *open_archive(const char *path)
{
    struct sym_archive *a = sym_archive_new();
    if (a != NULL && sym_archive_open(a, path) == 0)
        return a;
    fprintf(stderr, "opened: %s\n", a != NULL ? sym_archive_error(a) : "out of memory");
    exit(2);
}

static void close_archives(struct sym_archive **archives, size_t count)
{
    for (size_t i = 0; i < count; i++)
        sym_archive_free(archives[i]);
}

/* Any split file will do. */
static int take_first(void *user, struct symint_debug_file *f, const char **why)
{
    struct symint_debug_file *out = user;
    (void)why;
    *out = *f;
    *f = (struct symint_debug_file){.fd = -1};
    return 1;
}

static const char *optional(const char *text)
{
    return strcmp(text, "-") == 0 ? NULL : text;
}

int main(int argc, char **argv)
{
    struct sym_archive *archives[8] = {NULL};
    const char *debug_dirs[8];
    uint8_t id[64];
    struct symint_search_options options = {.archives = (const struct sym_archive *const *)archives,
                                            .debug_dirs = debug_dirs};
    struct symint_wanted wanted = {.build_id = id};
    struct symint_arena arena = {0};
    int at = 1;
    int inside = -1;
    for (; at + 1 < argc && strncmp(argv[at], "--", 2) == 0; at += 2) {
        if (strcmp(argv[at], "--sysroot") == 0)
            options.sysroot = argv[at + 1];
        else if (strcmp(argv[at], "--symbols") == 0 && options.archive_count < 8)
            archives[options.archive_count++] = open_archive(argv[at + 1]);
        else if (strcmp(argv[at], "--debug-dir") == 0 && options.debug_dir_count < 8)
            debug_dirs[options.debug_dir_count++] = argv[at + 1];
        else if (strcmp(argv[at], "--inside") == 0)
            inside = atoi(argv[at + 1]);
        else if (strcmp(argv[at], "--build-id") == 0)
            wanted.build_id_size = parse_hex(argv[at + 1], id, sizeof(id));
    }
    if (at + 1 >= argc)
        return 2;
    const char *what = argv[at++];
    if (strcmp(what, "locate") == 0) {
        int rc = locate(&arena, &options, &wanted, argv[at]);
        close_archives(archives, options.archive_count);
        symint_arena_free(&arena);
        return rc;
    }
    struct symint_root root =
        inside >= 0 ? symint_in_archive(archives[inside]) : symint_in_folder(options.sysroot);
    struct symint_debug_file from;
    struct symint_debug_file out = {.fd = -1};
    enum sym_miss miss;
    const char *why = "";
    int rc = symint_debug_file_open(root, strdup(argv[at++]), &from, &miss, &why);
    if (rc != 0 || miss != SYM_MISS_NONE) {
        fprintf(stderr, "opened: %s: %s\n", argv[at - 1], why);
        symint_debug_file_close(&from);
        return 2;
    }
    const char *program = at < argc ? optional(argv[at]) : NULL;
    if (strcmp(what, "alt") == 0)
        rc = symint_find_supplementary(&arena, &options, &from, &out, &why);
    else if (strcmp(what, "package") == 0)
        rc = symint_find_package(&arena, &options, &from, program, &out, &why);
    else if (strcmp(what, "split") == 0 && at + 2 < argc)
        rc = symint_find_split(&arena, &options, &from, program, optional(argv[at + 1]),
                               argv[at + 2], take_first, &out, &why);
    else
        rc = 2;
    if (rc == 0 && out.elf != NULL) {
        print_file("file", &out);
        printf(" %s%s\n", symint_debug_file_archive(&out), out.path);
    } else {
        printf("none: %s\n", why);
    }
    symint_debug_file_close(&out);
    symint_debug_file_close(&from);
    symint_arena_free(&arena);
    close_archives(archives, options.archive_count);
    return rc;
}
