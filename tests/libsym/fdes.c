/* SPDX-License-Identifier: MIT */
/* fdes FILE: prints "START END" of each function that .eh_frame describes, both hexadecimal, for
 * tests/libsym/fde.sh. */
#include "elf_private.h"
#include "fde.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    struct stat st;
    struct symint_elf *e;
    struct symint_fdes fdes;
    enum sym_miss miss;
    const char *why = "";
    if (argc != 2) {
        fprintf(stderr, "usage: fdes FILE\n");
        return 2;
    }
    int fd = open(argv[1], O_RDONLY);
    if (fd < 0 || fstat(fd, &st) != 0) {
        perror(argv[1]);
        return 1;
    }
    struct symint_input input = {.fd = fd, .size = (uint64_t)st.st_size};
    if (symint_elf_open(&input, &e, &miss, &why) != 0 || e == NULL ||
        symint_elf_read_sections(e, &miss, &why) != 0 || symint_fdes_read(e, &fdes) != 0) {
        fprintf(stderr, "fdes: %s: %s\n", argv[1], why);
        return 1;
    }
    for (size_t i = 0; i < fdes.count; i++) {
        printf("%016" PRIx64 " %016" PRIx64 "\n", fdes.start[i], fdes.end[i]);
        if (symint_fdes_end(&fdes, fdes.start[i]) != fdes.end[i]) {
            fprintf(stderr, "fdes: %s: entry %zu is not found\n", argv[1], i);
            return 1;
        }
    }
    symint_fdes_free(&fdes);
    symint_elf_free(e);
    close(fd);
    return 0;
}
