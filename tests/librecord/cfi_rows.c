/* SPDX-License-Identifier: MIT */
/*
 * cfi_rows FILE: prints each row of each FDE as _cfi_rows.awk makes them of readelf's:
 * "ADDRESS CFA REGISTER=RULE...", without registers that have no rule or are undefined, which readelf does
 * not tell apart.
 * cfi_rows --time FILE: prints the nanoseconds of a row at a random address of a random FDE.
 */
#include "cfi.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char *register_name(enum arch arch, unsigned reg, char text[16])
{
    static const char *const x86[] = {"rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", "r8",
                                      "r9",  "r10", "r11", "r12", "r13", "r14", "r15", "ra"};
    if (arch == ARCH_X86_64)
        return reg < 17 ? x86[reg] : "?";
    if (reg == 31)
        return "sp";
    snprintf(text, 16, "x%u", reg);
    return text;
}

static void print_rule(enum arch arch, const struct cfi_rule *rule)
{
    char text[16];
    switch (rule->kind) {
    case CFI_SAME_VALUE:
        printf("s");
        break;
    case CFI_OFFSET:
        printf("c%+" PRId64, rule->offset);
        break;
    case CFI_VAL_OFFSET:
        printf("v%+" PRId64, rule->offset);
        break;
    case CFI_REGISTER:
        printf("%s", register_name(arch, rule->reg, text));
        break;
    case CFI_EXPRESSION:
        printf("exp");
        break;
    case CFI_VAL_EXPRESSION:
        printf("vexp");
        break;
    case CFI_UNSPECIFIED:
    case CFI_UNDEFINED:
        printf("u");
        break;
    }
}

static void print_row(enum arch arch, uint64_t address, const struct cfi_row *row)
{
    char text[16];
    printf("%016" PRIx64 " ", address);
    if (row->cfa_is_expression)
        printf("exp");
    else
        printf("%s%+" PRId64, register_name(arch, row->cfa_reg, text), row->cfa_offset);
    for (unsigned reg = 0; reg < REG_COUNT; reg++) {
        const struct cfi_rule *rule = &row->reg[reg];
        if (rule->kind == CFI_UNSPECIFIED || rule->kind == CFI_UNDEFINED)
            continue;
        printf(" %s=", reg == row->return_register ? "ra" : register_name(arch, reg, text));
        print_rule(arch, rule);
    }
    printf("\n");
}

/* The rows of [start, end), each where the one before says it ends. */
static int print_fde(struct image *image, uint64_t start, uint64_t end)
{
    static struct cfi_row row;
    static struct cfi_row last;
    for (uint64_t address = start; address < end; address = row.end) {
        enum cfi_result result = recordint_cfi_row(image, address, &row);
        if (result != CFI_FOUND || row.start != address || row.end <= address || row.end > end) {
            fprintf(stderr,
                    "cfi_rows: %" PRIx64 " in %" PRIx64 "..%" PRIx64 ": result %d, %" PRIx64
                    "..%" PRIx64 "\n",
                    address, start, end, (int)result, row.start, row.end);
            return 1;
        }
        last = row;
        if (recordint_cfi_row(image, row.end - 1, &row) != CFI_FOUND || row.start != address ||
            row.end != last.end) {
            fprintf(stderr, "cfi_rows: %" PRIx64 ": its last byte has another row\n", address);
            return 1;
        }
        print_row(recordint_image_arch(image), address, &row);
    }
    return 0;
}

static int print_all(struct image *image)
{
    int failed = 0;
    uint64_t start;
    uint64_t end;
    for (size_t at = 0; recordint_cfi_next_fde(image, &at, &start, &end);)
        failed |= print_fde(image, start, end);
    return failed;
}

static uint64_t cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static int time_rows(struct image *image)
{
    enum { ADDRESSES = 1 << 16, ROUNDS = 9 };
    static struct cfi_row row;
    static uint64_t addresses[ADDRESSES];
    uint64_t start;
    uint64_t end;
    uint64_t fdes = 0;
    uint64_t random = 88172645463325252;
    for (size_t at = 0; recordint_cfi_next_fde(image, &at, &start, &end);)
        fdes++;
    if (fdes == 0)
        return 1;
    uint64_t *ranges = calloc(fdes, 2 * sizeof(*ranges));
    if (ranges == NULL)
        return 1;
    size_t n = 0;
    for (size_t at = 0; n < fdes && recordint_cfi_next_fde(image, &at, &start, &end); n++) {
        ranges[2 * n] = start;
        ranges[2 * n + 1] = end > start ? end - start : 1;
    }
    for (size_t i = 0; i < ADDRESSES; i++) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        size_t fde = random % fdes;
        addresses[i] = ranges[2 * fde] + (random >> 32) % ranges[2 * fde + 1];
    }
    free(ranges);
    for (int round = 0; round < ROUNDS; round++) {
        size_t found = 0;
        uint64_t before = cpu_ns();
        for (size_t i = 0; i < ADDRESSES; i++)
            found += recordint_cfi_row(image, addresses[i], &row) == CFI_FOUND;
        printf("%" PRIu64 " FDEs, %zu of %d rows, %.0f ns each\n", fdes, found, ADDRESSES,
               (double)(cpu_ns() - before) / ADDRESSES);
    }
    return 0;
}

int main(int argc, char **argv)
{
    bool timing = argc == 3 && strcmp(argv[1], "--time") == 0;
    if (argc != 2 && !timing) {
        fprintf(stderr, "usage: cfi_rows FILE | --time FILE\n");
        return 2;
    }
    const char *path = argv[timing ? 2 : 1];
    struct image *image;
    int fd = open(path, O_RDONLY);
    if (fd < 0 || recordint_image_open_fd(fd, &image) != 0) {
        perror(path);
        return 1;
    }
    close(fd);
    int failed = timing ? time_rows(image) : print_all(image);
    recordint_image_free(image);
    return failed;
}
