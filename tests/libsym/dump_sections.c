/* SPDX-License-Identifier: MIT */
/*
 * dump_sections FILE FOLDER [split]: writes each debug section of a file, as libsym sees it, to FOLDER/NAME, where NAME
 * has no `.debug_` in front. Prints what was wrong, if anything, and the ranges of code as "code START END".
 */
#include "debug_bytes.h"
#include "elf_private.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const names[DEBUG_IDS] = {"info",        "abbrev",  "str",    "line_str",
                                             "str_offsets", "addr",    "ranges", "rnglists",
                                             "line",        "cu_index"};

static int dump(struct symint_debug_sections *s, const char *folder)
{
    for (int id = 0; id < DEBUG_IDS; id++) {
        char path[4096];
        uint64_t size = s->at[id].size;
        if (size == 0)
            continue;
        const uint8_t *bytes = symint_debug_bytes(s, id, 0, size);
        if (bytes == NULL)
            continue;
        snprintf(path, sizeof(path), "%s/%s", folder, names[id]);
        FILE *f = fopen(path, "wb");
        if (f == NULL || fwrite(bytes, 1, (size_t)size, f) != size || fclose(f) != 0)
            return 1;
    }
    if (s->why[0] != '\0')
        printf("%s\n", s->why);
    for (size_t i = 0; i < s->code_count; i++)
        printf("code %" PRIx64 " %" PRIx64 "\n", s->code[i].start, s->code[i].end);
    return 0;
}

int main(int argc, char **argv)
{
    struct stat st;
    struct symint_elf *e;
    enum sym_miss miss;
    const char *why = "";
    struct symint_debug_sections s;
    int fd = argc >= 3 ? open(argv[1], O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0 || fstat(fd, &st) != 0)
        return 2;
    struct symint_input input = {
        .fd = fd, .size = (uint64_t)st.st_size, .stored_bytes = (uint64_t)st.st_blocks * 512};
    if (symint_elf_open(&input, &e, &miss, &why) != 0 || e == NULL ||
        symint_elf_read_sections(e, &miss, &why) != 0 ||
        symint_debug_open(e, argc > 3 && strcmp(argv[3], "split") == 0, &s) != 0) {
        fprintf(stderr, "dump_sections: %s: %s\n", argv[1], why);
        return 2;
    }
    int rc = dump(&s, argv[2]);
    symint_debug_close(&s);
    symint_elf_free(e);
    close(fd);
    return rc;
}
