/* SPDX-License-Identifier: MIT */
/*
 * code_truth FILE: where the unwind data of FILE and the instructions both tell how to find the caller, they must
 * agree. Looks at the addresses that are certainly an instruction's first byte: where rows begin, where direct
 * calls of known functions return to; on AArch64 at all. Prints how many were compared and each difference; exit
 * status 1 when there is one.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cfi.h"
#include "code_row.h"
#include "rule.h"

struct truth {
    struct image *image;
    enum arch arch;
    uint64_t *starts; /* of FDEs, sorted */
    size_t start_count;
    uint64_t asked, told, compared, after_calls, wrong;
};

static int by_value(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}

/* In a prologue or epilogue a value may be in its register and in memory: each side may tell of either. */
static bool same_saved(const struct cfi_rule *cfi, const struct cfi_rule *code, bool after_call)
{
    if (cfi->kind == CFI_OFFSET && code->kind == CFI_OFFSET)
        return cfi->offset == code->offset;
    return !after_call || code->kind != CFI_OFFSET;
}

static void compare(struct truth *t, const uint8_t *code, size_t size, size_t at, uint64_t address,
                    bool after_call)
{
    static struct cfi_row code_row;
    static struct cfi_row cfi;
    const char *what = NULL;

    t->asked++;
    if (!recordint_code_row(t->arch, code, size, at, after_call, &code_row) &&
        (after_call || !recordint_code_prologue(t->arch, code, size, at, &code_row)))
        return;
    t->told++;
    if (recordint_cfi_row(t->image, address - after_call, &cfi) != CFI_FOUND || cfi.signal_frame ||
        cfi.cfa_is_expression || cfi.cfa_reg != code_row.cfa_reg ||
        cfi.reg[cfi.return_register].kind == CFI_UNDEFINED)
        return; /* not comparable: by another register, or the outermost frame */
    t->compared++;
    t->after_calls += after_call;
    if (cfi.cfa_offset != code_row.cfa_offset)
        what = "CFA";
    for (unsigned reg = 0; reg < REG_COUNT && what == NULL; reg++)
        if ((rule_is_callee_saved(t->arch, reg) || reg == cfi.return_register) &&
            !same_saved(&cfi.reg[reg], &code_row.reg[reg], after_call))
            what = "register";
    if (what == NULL)
        return;
    if (t->wrong++ < 20)
        printf("%" PRIx64 " %s: %s: CFA %" PRIu32 "%+" PRId64 ", by its code %" PRIu32 "%+" PRId64
               "\n",
               address, after_call ? "after a call" : "at", what, cfi.cfa_reg, cfi.cfa_offset,
               code_row.cfa_reg, code_row.cfa_offset);
}

/* Whether the code before is certainly a call: of a function that has an FDE. */
static bool follows_call(const struct truth *t, const uint8_t *code, size_t at, uint64_t address)
{
    int32_t distance;
    uint32_t word;
    uint64_t target;

    if (t->arch == ARCH_AARCH64) {
        if (at < sizeof word)
            return false;
        memcpy(&word, code + at - sizeof word, sizeof word);
        return (word & 0xfc000000) == 0x94000000 || (word & 0xfffffc1f) == 0xd63f0000;
    }
    if (at < 5 || code[at - 5] != 0xe8)
        return false;
    memcpy(&distance, code + at - 4, sizeof distance);
    target = address + (uint64_t)(int64_t)distance;
    return bsearch(&target, t->starts, t->start_count, sizeof target, by_value) != NULL;
}

static void look_at(struct truth *t, uint64_t start, uint64_t end)
{
    static uint8_t code[1 << 20];
    static struct cfi_row row;
    size_t size = (size_t)(end - start);
    uint64_t next_row = start;

    if (size == 0 || size > sizeof code - CODE_AHEAD_MAX)
        return;
    /* As the walk sees it: a little of what follows as well. */
    size = recordint_image_read(t->image, start, code, size + CODE_AHEAD_MAX);
    /* The end as well: a call that never returns may be the last instruction. */
    for (size_t at = 0; at <= end - start && at < size; at++) {
        uint64_t address = start + at;
        size_t before = at < CODE_BEFORE_MAX ? at : CODE_BEFORE_MAX;
        size_t ahead = size - at < CODE_AHEAD_MAX ? size - at : CODE_AHEAD_MAX;
        const uint8_t *window = code + at - before;
        bool boundary = t->arch == ARCH_AARCH64 ? at % 4 == 0 : address == next_row;

        if (address == next_row)
            next_row = recordint_cfi_row(t->image, address, &row) == CFI_FOUND ? row.end : end;
        if (boundary && address < end)
            compare(t, window, before + ahead, before, address, false);
        if (at > 0 && follows_call(t, code, at, address) &&
            at % (t->arch == ARCH_AARCH64 ? 4 : 1) == 0)
            compare(t, window, before + ahead, before, address, true);
    }
}

int main(int argc, char **argv)
{
    struct truth t = {0};
    uint64_t start, end;
    size_t room = 0;
    int fd = argc == 2 ? open(argv[1], O_RDONLY | O_CLOEXEC) : -1;

    if (fd < 0 || recordint_image_open_fd(fd, &t.image) != 0) {
        fprintf(stderr, "code_truth: %s: %s\n", argc == 2 ? argv[1] : "FILE", strerror(errno));
        return 2;
    }
    t.arch = recordint_image_arch(t.image);
    for (size_t at = 0; recordint_cfi_next_fde(t.image, &at, &start, &end);) {
        if (t.start_count == room) {
            room = room == 0 ? 1024 : room * 2;
            t.starts = realloc(t.starts, room * sizeof *t.starts);
            if (t.starts == NULL)
                return 2;
        }
        t.starts[t.start_count++] = start;
    }
    if (t.start_count > 0)
        qsort(t.starts, t.start_count, sizeof *t.starts, by_value);
    for (size_t at = 0; recordint_cfi_next_fde(t.image, &at, &start, &end);)
        look_at(&t, start, end);
    printf("%" PRIu64 " addresses, %" PRIu64 " told by code, %" PRIu64 " compared (%" PRIu64
           " after calls), %" PRIu64 " wrong\n",
           t.asked, t.told, t.compared, t.after_calls, t.wrong);
    free(t.starts);
    recordint_image_free(t.image);
    close(fd);
    return t.wrong != 0 || t.compared < 100;
}
