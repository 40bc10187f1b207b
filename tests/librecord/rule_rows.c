/* SPDX-License-Identifier: MIT */
/*
 * rule_rows [--every N] [--limit PERCENT] [--generic] FILE...: for each row of each FDE (of every Nth FDE), applies the
 * compact rule and the decoded row to the same pseudo-random registers and stack: all that a step changes must be the
 * same. Prints how many rows have which kind of rule, and how many rules are distinct. Fails where something differs,
 * or where more rows than the limit (1 %, AArch64 2 %) need decoding at each frame; --generic lists those.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "unwind.c" /* for its steps; the library's own then stays out of the program */

#define COPY UINT64_C(0x7ffd00000000)
/* The lowest place that a rule can have is 256 KiB below the CFA. */
#define COPY_WORDS (40u << 10)
#define PAC UINT64_C(0xff7f000000000000)
#define SHOWN_MAX 10

static const char *const kind_names[] = {"none",      "stop",      "simple",  "PLT",
                                         "realigned", "sigreturn", "generic", "trampoline"};

/* Where the CFA comes to lie. */
enum situation {
    FITS,      /* all that is read was copied */
    AT_END,    /* at the end of the copy: some of it, or nothing */
    AT_START,  /* at its start: places below are not there */
    BACKWARDS, /* not above the last one */
    SAME,      /* at the last one */
    UNKNOWN,   /* registers are missing */
    HUGE,      /* beyond 64 bits, perhaps */
    SITUATIONS
};

static uint64_t stack[COPY_WORDS];
static uint64_t state = 88172645463325252;

static uint64_t random_word(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state * UINT64_C(0x2545f4914f6cdd1d);
}

static void fill_stack(void)
{
    for (size_t i = 0; i < COPY_WORDS; i++) {
        uint64_t word = random_word();

        stack[i] = (word & 7) == 0   ? 0
                   : (word & 7) < 3  ? COPY + (word >> 8) % sizeof stack
                   : (word & 7) == 3 ? word
                                     : word >> 17;
    }
}

/* How far below the CFA places lie that the row reads. */
static uint64_t reach_of(const struct cfi_row *row)
{
    int64_t lowest = 0;

    for (unsigned reg = 0; reg < REG_COUNT; reg++)
        if (row->reg[reg].kind == CFI_OFFSET && row->reg[reg].offset < lowest)
            lowest = row->reg[reg].offset;
    return (uint64_t)-lowest;
}

static uint64_t cfa_for(enum situation situation, uint64_t reach)
{
    uint64_t some = random_word() % 16 * 8;

    switch (situation) {
    case AT_END:
        return COPY + sizeof stack - 64 + random_word() % (reach / 8 + 16) * 8;
    case AT_START:
        return COPY + random_word() % (reach / 8 + 2) * 8 + ((some & 8) != 0 ? 0 : 4);
    case HUGE:
        return UINT64_MAX - 64 + some;
    default:
        return COPY + reach + some;
    }
}

/* Registers such that the CFA lies there, as far as that can be had. */
static void make_walk(struct walk *w, enum arch arch, const struct rule *rule, uint64_t cfa,
                      enum situation situation)
{
    memset(w, 0, sizeof *w);
    w->arch = arch;
    w->pac_mask = arch == ARCH_AARCH64 ? PAC : 0;
    w->copy = (struct stack_copy){(const uint8_t *)stack, COPY, sizeof stack};
    for (unsigned reg = 0; reg <= reg_pc(arch); reg++)
        reg_set(&w->regs, reg,
                (random_word() & 1) != 0 ? random_word() : COPY + random_word() % sizeof stack);
    switch (rule->kind) {
    case RULE_REALIGNED: /* what the CFA is lies on the stack */
        w->regs.value[rule->cfa_register] = cfa;
        if (situation == FITS &&
            (cfa + (uint64_t)(int64_t)rule->cfa_offset - COPY) / 8 < COPY_WORDS)
            stack[(cfa + (uint64_t)(int64_t)rule->cfa_offset - COPY) / 8] = cfa + 16;
        break;
    case RULE_SIGRETURN:
        w->regs.value[REG_X86_RSP] = cfa;
        break;
    default:
        w->regs.value[rule->cfa_register] = cfa - (uint64_t)(int64_t)rule->cfa_offset;
        break;
    }
    w->leaf = (random_word() & 1) != 0;
    w->cfa = situation == BACKWARDS ? cfa + 8 : situation == SAME ? cfa : COPY;
    if (situation == SAME && (random_word() & 1) != 0) /* and perhaps the same return address */
        w->regs.value[reg_pc(arch)] = w->regs.value[REG_A64_LR] & ~w->pac_mask;
    if (situation == UNKNOWN)
        w->regs.known &= random_word() | random_word() | UINT64_C(1) << reg_pc(arch);
}

static int apply(struct walk *w, const struct rule *rule)
{
    switch (rule->kind) {
    case RULE_STOP:
        return UNWIND_COMPLETE;
    case RULE_SIMPLE:
    case RULE_PLT:
        return w->arch == ARCH_X86_64 ? step_x86(w, rule) : step_aarch64(w, rule);
    case RULE_REALIGNED:
        return step_realigned(w, rule);
    default:
        return recordint_walk_sigreturn(w);
    }
}

static bool same(const struct walk *a, int end_a, const struct walk *b, int end_b)
{
    if (end_a != end_b || a->regs.known != b->regs.known || a->cfa != b->cfa ||
        a->leaf != b->leaf || a->signal != b->signal || a->elsewhere != b->elsewhere ||
        a->guessed != b->guessed)
        return false;
    for (uint64_t known = a->regs.known; known != 0; known &= known - 1) {
        unsigned reg = (unsigned)__builtin_ctzll(known);

        if (a->regs.value[reg] != b->regs.value[reg])
            return false;
    }
    return true;
}

struct count {
    uint64_t rows, kind[RULE_TRAMPOLINE + 1], ends[UNWIND_NO_REGISTERS + 1], on;
    unsigned wrong;
    bool list_generic;
};

static void show(struct count *n, const struct walk *a, int end_a, const struct walk *b, int end_b,
                 uint64_t address, enum situation situation)
{
    if (n->wrong++ >= SHOWN_MAX)
        return;
    fprintf(stderr,
            "rule_rows: %" PRIx64 ", situation %d: by rule end %d, cfa %" PRIx64 ", known %" PRIx64
            "; by row end %d, cfa %" PRIx64 ", known %" PRIx64 "\n",
            address, (int)situation, end_a, a->cfa, a->regs.known, end_b, b->cfa, b->regs.known);
    for (unsigned reg = 0; reg < REG_COUNT; reg++)
        if (a->regs.value[reg] != b->regs.value[reg])
            fprintf(stderr, "    register %u: %" PRIx64 " and %" PRIx64 "\n", reg,
                    a->regs.value[reg], b->regs.value[reg]);
}

static void compare(struct count *n, enum arch arch, const struct cfi_row *row,
                    const struct rule *rule)
{
    uint64_t reach = reach_of(row);

    if (reach > sizeof stack / 2)
        reach = sizeof stack / 2;
    if (rule->kind == RULE_REALIGNED)
        reach = 256;
    for (int situation = 0; situation < SITUATIONS; situation++) {
        struct walk a, b;
        int end_a, end_b;

        make_walk(&a, arch, rule, cfa_for((enum situation)situation, reach),
                  (enum situation)situation);
        b = a;
        end_a = apply(&a, rule);
        end_b = recordint_walk_row(&b, row, 0);
        if (!same(&a, end_a, &b, end_b))
            show(n, &a, end_a, &b, end_b, row->start, (enum situation)situation);
        if (end_b == WALK_ON)
            n->on++;
        else
            n->ends[end_b]++;
    }
}

/* The rule that the walk would make for an address of the row. */
static bool is_made(enum arch arch, struct image *image, uint64_t address, const struct rule *rule)
{
    struct rule made;

    recordint_rule_make(arch, image, address, &made);
    made.flags &= (uint8_t) ~(RULE_BEFORE_START | RULE_START);
    if (memcmp(&made, rule, sizeof made) == 0)
        return true;
    fprintf(stderr, "rule_rows: %" PRIx64 ": kind %u, of its row %u\n", address, made.kind,
            rule->kind);
    return false;
}

static void check_fde(struct count *n, struct image *image, struct rule_table *rules,
                      uint64_t start, uint64_t end)
{
    enum arch arch = recordint_image_arch(image);
    static struct cfi_row row;
    struct rule rule;

    for (uint64_t address = start; address < end; address = row.end) {
        if (recordint_cfi_row(image, address, &row) != CFI_FOUND || row.start != address ||
            row.end <= address) {
            fprintf(stderr, "rule_rows: %" PRIx64 " in %" PRIx64 "..%" PRIx64 ": no row\n", address,
                    start, end);
            n->wrong++;
            return;
        }
        recordint_rule_from_row(arch, &row, &rule);
        n->rows++;
        n->kind[rule.kind]++;
        recordint_rule_table_put(rules, address, &rule);
        n->wrong +=
            !is_made(arch, image, address, &rule) || !is_made(arch, image, row.end - 1, &rule);
        if (rule.kind != RULE_GENERIC)
            compare(n, arch, &row, &rule);
        else if (n->list_generic)
            printf("%" PRIx64 "\n", address);
    }
}

static bool check_file(const char *path, uint64_t every, double limit, bool list_generic)
{
    struct count n = {.list_generic = list_generic};
    struct rule_table *rules = recordint_rule_table_new();
    struct image *image = NULL;
    int fd = open(path, O_RDONLY);
    uint64_t start, end, fdes = 0;
    double generic;

    if (fd < 0 || rules == NULL || recordint_image_open_fd(fd, &image) != 0) {
        perror(path);
        exit(2);
    }
    close(fd);
    for (size_t at = 0; recordint_cfi_next_fde(image, &at, &start, &end); fdes++)
        if (fdes % every == 0)
            check_fde(&n, image, rules, start, end);
    generic = n.rows == 0 ? 0 : 100.0 * (double)n.kind[RULE_GENERIC] / (double)n.rows;
    if (limit < 0)
        limit = recordint_image_arch(image) == ARCH_X86_64 ? 1 : 2;
    printf("%s: %" PRIu64 " FDEs, %" PRIu64 " rows, %zu distinct rules;", path,
           (fdes + every - 1) / every, n.rows, recordint_rule_table_rules(rules));
    for (size_t kind = 0; kind <= RULE_TRAMPOLINE; kind++)
        if (n.kind[kind] != 0)
            printf(" %s %" PRIu64 " (%.2f %%)", kind_names[kind], n.kind[kind],
                   100.0 * (double)n.kind[kind] / (double)n.rows);
    printf("; %" PRIu64 " steps, %" PRIu64 " truncated, %" PRIu64 " backwards, %" PRIu64
           " in place, %u wrong\n",
           n.on, n.ends[UNWIND_TRUNCATED], n.ends[UNWIND_BACKWARDS], n.ends[UNWIND_NO_PROGRESS],
           n.wrong);
    recordint_image_free(image);
    if (n.rows == 0 || generic > limit || recordint_rule_table_rules(rules) >= 65535)
        n.wrong++;
    recordint_rule_table_free(rules);
    return n.wrong == 0;
}

int main(int argc, char **argv)
{
    uint64_t every = 1;
    double limit = -1;
    bool list_generic = false, good = true;
    int i = 1;

    for (; i < argc && argv[i][0] == '-'; i++) {
        if (strcmp(argv[i], "--generic") == 0)
            list_generic = true;
        else if (strcmp(argv[i], "--every") == 0 && i + 1 < argc)
            every = strtoull(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--limit") == 0 && i + 1 < argc)
            limit = strtod(argv[++i], NULL);
    }
    if (i == argc || every == 0) {
        fprintf(stderr, "usage: rule_rows [--every N] [--limit PERCENT] [--generic] FILE...\n");
        return 2;
    }
    fill_stack();
    for (; i < argc; i++)
        good = check_file(argv[i], every, limit, list_generic) && good;
    return good ? 0 : 1;
}
