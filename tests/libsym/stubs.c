/* SPDX-License-Identifier: MIT */
/*
 * stubs [-c] [-n] [-t] FILE: prints the stubs of a file, for tests/libsym/plt.sh: "START END NAME",
 * addresses as the file states them. With -n slots that a resolver fills are named after it where the
 * file's symbols know it. With -c the symbols were not indexed before. With -t it prints the time
 * that finding them takes, in microseconds, and their number.
 */
#include "elf_private.h"
#include "plt.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char *by_symbol(void *user, uint64_t vaddr, size_t *size)
{
    const struct symint_elf *e = user;
    uint32_t number = symint_elf_find(e, vaddr);
    if (number == SYMINT_NO_SYMBOL)
        return NULL;
    struct symint_symbol s = symint_elf_symbol(e, number);
    *size = s.name_size;
    return s.start == vaddr ? s.name : NULL;
}

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

int main(int argc, char **argv)
{
    struct stat st;
    struct symint_elf *elf = NULL;
    enum sym_miss miss;
    const char *why = "";
    const char *note = "";
    bool names = false;
    bool times = false;
    bool cold = false;
    int option;
    while ((option = getopt(argc, argv, "cnt")) != -1) {
        names |= option == 'n';
        cold |= option == 'c';
        times |= option == 't';
    }
    int fd = optind < argc ? open(argv[optind], O_RDONLY) : -1;
    if (fd < 0 || fstat(fd, &st) != 0) {
        fprintf(stderr, "usage: stubs [-c] [-n] [-t] FILE\n");
        return 2;
    }
    struct symint_input input = {.fd = fd, .size = (uint64_t)st.st_size};
    if (symint_elf_open(&input, &elf, &miss, &why) != 0 || elf == NULL ||
        (!cold && symint_elf_index(elf, NULL, &miss, &why, &note) != 0) ||
        symint_elf_read_sections(elf, &miss, &why) != 0 || miss != SYM_MISS_NONE) {
        fprintf(stderr, "stubs: %s: %s\n", argv[optind], why);
        return 1;
    }
    struct symint_plt plt = {0};
    double best = 1e9;
    for (int i = 0; i < (times ? 20 : 1); i++) {
        symint_plt_free(&plt);
        double start = now_us();
        if (symint_plt_read(elf, names ? by_symbol : NULL, elf, &plt) != 0)
            return 1;
        double took = now_us() - start;
        best = took < best ? took : best;
    }
    if (times)
        printf("%.0f us, %zu stubs\n", best, plt.count);
    for (size_t i = 0; i < plt.count && !times; i++)
        printf("%" PRIx64 " %" PRIx64 " %s\n", plt.stubs[i].start, plt.stubs[i].end,
               plt.names + plt.stubs[i].name);
    symint_plt_free(&plt);
    symint_elf_free(elf);
    close(fd);
    return 0;
}
