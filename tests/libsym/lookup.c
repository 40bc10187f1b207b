/* SPDX-License-Identifier: MIT */
/*
 * lookup [-a] FILE: names the addresses on standard input, for tests/libsym/_compare.sh.
 *
 * A line is OFFSET [PGOFF], both hexadecimal: a file offset and the offset of the mapping it is
 * seen through. With -a it is an address as the file states it. Prints "OFFSET NAME START ORIGIN",
 * "-" for what is unknown; START is in the terms of OFFSET.
 */
#include "context.h"
#include "origin_name.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int by_address(const char *path)
{
    struct stat st;
    struct symint_elf *elf;
    enum sym_miss miss;
    const char *why = "";
    const char *note;
    int fd;
    int error;
    uint64_t address;
    if (symint_open_regular(NULL, path, &fd, &miss, &error) != 0 || fd < 0 || fstat(fd, &st) != 0) {
        fprintf(stderr, "lookup: %s: cannot be opened\n", path);
        return 1;
    }
    struct symint_input input = {.fd = fd, .size = (uint64_t)st.st_size};
    if (symint_elf_open(&input, &elf, &miss, &why) != 0 || elf == NULL ||
        symint_elf_index(elf, NULL, &miss, &why, &note) != 0) {
        fprintf(stderr, "lookup: %s: %s\n", path, why);
        close(fd);
        return 1;
    }
    close(fd);
    while (scanf("%" SCNx64, &address) == 1) {
        uint32_t number = symint_elf_find(elf, address);
        if (number == SYMINT_NO_SYMBOL) {
            printf("%" PRIx64 " - - -\n", address);
            continue;
        }
        struct symint_symbol s = symint_elf_symbol(elf, number);
        bool named = s.name_size > 0; /* not where only unwind data tell of a function */
        printf("%" PRIx64 " %.*s %" PRIx64 " %s\n", address, named ? (int)s.name_size : 1,
               named ? s.name : "-", s.start, origin_name(s.origin));
    }
    symint_elf_free(elf);
    return 0;
}

static int by_offset(const char *relative)
{
    char *path = realpath(relative, NULL); /* modules have absolute paths */
    struct sym_context *c = sym_context_new();
    struct sym_options options = {
        .size = sizeof(options), .demangle = SYM_DEMANGLE_NONE, .no_inlines = true};
    char line[256];
    int rc = c == NULL ? SYM_ERR_NOMEM : sym_context_open(c, &options);
    while (rc == 0 && fgets(line, sizeof(line), stdin) != NULL) {
        char *end;
        uint64_t offset = strtoull(line, &end, 16);
        uint64_t pgoff = strtoull(end, NULL, 16);
        struct sym_module m = {.size = sizeof(m),
                               .path = path,
                               .start = 0x10000000 + pgoff,
                               .end = UINT64_MAX,
                               .file_offset = pgoff};
        struct sym_query q = {.abs = 0x10000000 + offset, .rel = offset};
        const struct sym_frame *f;
        size_t count;
        rc = sym_module_add(c, &m, &q.module);
        if (rc == 0)
            rc = sym_resolve(c, &q, &f, &count);
        if (rc != 0)
            break;
        if (f->name == NULL)
            printf("%" PRIx64 " - - -\n", offset);
        else
            printf("%" PRIx64 " %s %" PRIx64 " %s\n", offset, f->name, f->function_start,
                   origin_name(f->origin));
    }
    if (rc != 0)
        fprintf(stderr, "lookup: %s\n", c != NULL ? sym_context_error(c) : sym_error_text(rc));
    sym_context_free(c);
    free(path);
    return rc != 0;
}

int main(int argc, char **argv)
{
    bool address = argc == 3 && strcmp(argv[1], "-a") == 0;
    if (argc != 2 && !address) {
        fprintf(stderr, "usage: lookup [-a] FILE\n");
        return 2;
    }
    return address ? by_address(argv[2]) : by_offset(argv[1]);
}
