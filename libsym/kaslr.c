/* SPDX-License-Identifier: MIT */
/*
 * The shift of a kernel that chose its own place at boot. A wrong one would name everything, and
 * everything wrongly, so it is found with confidence or not at all. There are two ways.
 *
 * 1. The capture has a range of the kernel proper. The recorder either wrote into file_offset
 *    where the symbol in the range's name lay (`[kernel.kallsyms]_text`; perf does), which counts
 *    only when that is inside the range, so that an address of the unshifted kernel is not taken
 *    for it; or the range has exactly the size of the map's text, or of its text and data.
 *
 * 2. Else the sampled addresses must tell. A legal shift puts all addresses of the kernel's text
 *    between _stext and _etext, and few are legal (multiples of 2 MiB on x86-64, of 64 KiB
 *    elsewhere). Among them the right one lets many addresses fall into *anchors*: functions that
 *    are small against the whole text and that nearly every kernel stack passes through, as the
 *    ways in from user space and the system calls. Were the shift wrong, an address would be in
 *    an anchor only by chance, which is calculated:
 *      - Anchors closer together than 4 KiB count as one cluster, hit or not, however many
 *        addresses it has: one hot function of another kernel may lie over a cluster and give
 *        many hits, but they are not independent.
 *      - Of N addresses at least one hits a cluster of b bytes by chance with a probability of at
 *        most N * b / text. The sum over all clusters is the mean number of clusters hit, and
 *        Chernoff's bound says how unlikely k of them are: ln P <= -(k ln(k / mean) - k + mean).
 *      - Ways in (few, tiny) and system calls (hundreds) have sums of their own, since the former
 *        would drown in the latter. Their product as evidence is worth P (1 - ln P) (Fisher).
 *      - All shifts that are legal for these addresses could have been lucky: P is multiplied by
 *        their number.
 *    Below one in a million, and a thousand times less likely by chance than the second best
 *    shift, it is taken.
 *
 * Both have vetoes. A lookup address lies inside an instruction, and that of a call is never in
 * the first bytes of a function; only an interrupted function's own address may be. So no right
 * shift has many addresses in first bytes. The padding before functions (`__pfx_NAME`) is never
 * executed.
 *
 * What this cannot tell is another build of the same release whose text differs by a few bytes
 * somewhere: a System.map has no build id. That is why names from it are flagged as unverified.
 */
#include "kaslr.h"

#include "segments.h"
#include "strtab.h"

#include <stdlib.h>
#include <string.h>

#define CLUSTER_GAP 4096u
#define MAX_ANCHOR 65536u /* bytes; what is larger is no anchor */
#define MAX_ANCHORS 2048u /* a map with more of them (real ones have some 500) gets no shift */
#define LN_CHANCE (-13.8) /* one in a million */
#define LN_LEAD 7.0       /* a thousand times */

/* x86-64: the kernel is in the first of two GiB at the end, modules and BPF in the other. */
#define X86_IMAGE_START UINT64_C(0xffffffff80000000)
#define X86_IMAGE_END UINT64_C(0xffffffffc0000000)

enum class { WAY_IN, SYSTEM_CALL, CLASSES };

struct anchor {
    uint64_t start;
    uint64_t end;
    uint32_t cluster;
};

struct cluster {
    uint64_t bytes;
    enum class class;
};

struct search {
    const struct symint_kernel *map;
    const struct symint_kernel_layout *layout;
    bool x86;
    uint64_t step;       /* shifts are multiples of it */
    uint64_t *addresses; /* of needed, those that may be in the kernel's text */
    size_t count;
    struct anchor *anchors;
    size_t anchor_count;
    struct cluster *clusters;
    size_t cluster_count;
};

struct best {
    double ln_chance; /* 0: nothing speaks for it */
    double second;
    uint64_t shift;
    double tried; /* shifts that put the addresses where code is */
};

/* ---- anchors ---- */

static bool has_prefix(const struct symint_kernel_symbol *s, const char *prefix)
{
    size_t n = strlen(prefix);
    return s->name_size >= n && memcmp(s->name, prefix, n) == 0;
}

static bool is_name(const struct symint_kernel_symbol *s, const char *name)
{
    return s->name_size > 0 && s->name[0] == name[0] && s->name_size == strlen(name) &&
           has_prefix(s, name);
}

/* For a start: most names are no anchor's by their first letters. Every text has a NUL behind. */
static bool may_be_anchor(const char *name)
{
    if (name[0] == '_')
        return name[1] == '_' && (name[2] == 'x' || name[2] == 'a');
    return name[0] != '\0' && strchr("acdeikrsx", name[0]) != NULL;
}

static bool anchor_class(const struct symint_kernel_symbol *s, enum class *class)
{
    static const char *const ways_in[] = {
        "entry_SYSCALL_64_after_hwframe", "do_syscall_64", "asm_exc_page_fault", "exc_page_fault",
        "asm_common_interrupt", "common_interrupt", "asm_sysvec_apic_timer_interrupt",
        "sysvec_apic_timer_interrupt", "asm_sysvec_call_function_single",
        "sysvec_call_function_single", "asm_sysvec_reschedule_ipi", "sysvec_reschedule_ipi",
        "ret_from_fork", "ret_from_fork_asm", "kthread",
        /* AArch64 */
        "el0t_64_sync", "el0t_64_sync_handler", "el0t_64_irq", "el0t_64_irq_handler",
        "el1h_64_sync", "el1h_64_sync_handler", "el1h_64_irq", "el1h_64_irq_handler", "el0_svc",
        "el0_svc_common", "el0_svc_common.constprop.0", "do_el0_svc", "invoke_syscall", "el0_da",
        "el0_ia", "el0_interrupt", "el1_interrupt", "el1_abort", "do_mem_abort"};
    *class = SYSTEM_CALL;
    if (s->name[0] == '_')
        return has_prefix(s, "__x64_sys_") || has_prefix(s, "__arm64_sys_");
    if (is_name(s, "x64_sys_call")) /* a large one, so it would not do among the ways in */
        return true;
    *class = WAY_IN;
    for (size_t i = 0; i < sizeof(ways_in) / sizeof(ways_in[0]); i++)
        if (is_name(s, ways_in[i]))
            return true;
    return false;
}

static void add_anchor(struct search *s, const struct symint_kernel_symbol *f, enum class class)
{
    const struct anchor *last = s->anchor_count > 0 ? &s->anchors[s->anchor_count - 1] : NULL;
    if (last == NULL || f->start - last->end > CLUSTER_GAP)
        s->clusters[s->cluster_count++] = (struct cluster){0, class};
    struct cluster *c = &s->clusters[s->cluster_count - 1];
    c->bytes += f->end - f->start;
    c->class = c->class == WAY_IN ? WAY_IN : class;
    s->anchors[s->anchor_count++] =
        (struct anchor){f->start, f->end, (uint32_t)s->cluster_count - 1};
}

static bool in_text(const struct symint_kernel_layout *l, uint64_t address)
{
    return address >= l->stext && address < l->etext;
}

/* Twice over the symbols: how many anchors, then which. */
static int find_anchors(struct search *s)
{
    for (int pass = 0; pass < 2; pass++) {
        size_t count = 0;
        for (size_t i = 0; i < s->map->count; i++) {
            const struct symint_kernel_entry *e = &s->map->entries[i];
            struct symint_kernel_symbol f;
            enum class class;
            if (!may_be_anchor(s->map->text + e->name) || !in_text(s->layout, e->start) ||
                e->end - e->start > MAX_ANCHOR)
                continue;
            f = symint_kernel_symbol(s->map, e);
            s->x86 |= pass == 0 && is_name(&f, "entry_SYSCALL_64");
            if (!anchor_class(&f, &class))
                continue;
            count++;
            if (pass == 1)
                add_anchor(s, &f, class);
        }
        if (pass == 1 || count > MAX_ANCHORS)
            break;
        s->anchors = symint_table_alloc(count, sizeof(*s->anchors));
        s->clusters = symint_table_alloc(count, sizeof(*s->clusters));
        if (s->anchors == NULL || s->clusters == NULL)
            return SYM_ERR_NOMEM;
    }
    s->step = s->x86 ? 2 * 1024 * 1024 : 65536;
    return 0;
}

/* ---- addresses ---- */

/* Those of the needed addresses that are in no range of something else. */
static int choose_addresses(struct search *s, const struct sym_kernel *kernel)
{
    size_t ranges = 0;
    uint64_t covered = 0; /* up to here */
    s->addresses = symint_table_alloc(kernel->needed_count, sizeof(*s->addresses));
    struct symint_pair *order = symint_table_alloc(kernel->range_count, sizeof(*order));
    if (s->addresses == NULL || order == NULL) {
        free(order);
        return SYM_ERR_NOMEM;
    }
    for (size_t i = 0; i < kernel->range_count; i++)
        if (kernel->ranges[i].name != NULL && !symint_is_kernel_range(&kernel->ranges[i]))
            order[ranges++] =
                (struct symint_pair){.key = kernel->ranges[i].start, .value = (uint32_t)i};
    int rc = symint_sort_pairs(order, ranges);
    for (size_t i = 0, r = 0; rc == 0 && i < kernel->needed_count; i++) {
        uint64_t a = kernel->needed[i];
        for (; r < ranges && order[r].key <= a; r++) {
            uint64_t end = kernel->ranges[order[r].value].end;
            covered = end > covered ? end : covered;
        }
        if (a < covered || (s->x86 && (a < X86_IMAGE_START || a >= X86_IMAGE_END)))
            continue;
        if (s->count == 0 || a > s->addresses[s->count - 1])
            s->addresses[s->count++] = a;
    }
    free(order);
    return rc;
}

/* The number of addresses below a limit. */
static size_t rank(const struct search *s, uint64_t limit)
{
    size_t low = 0;
    size_t high = s->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (s->addresses[middle] < limit)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The number of addresses in a part of the map at a shift; 0 where that part would wrap. */
static size_t count_in(const struct search *s, uint64_t start, uint64_t end, uint64_t shift)
{
    if (start >= end || end > UINT64_MAX - shift)
        return 0;
    return rank(s, end + shift) - rank(s, start + shift);
}

/* ---- vetoes ---- */

/* Whether addresses are where no right shift has them. */
static bool is_impossible(const struct search *s, uint64_t shift)
{
    size_t inside = 0;
    size_t first_bytes = 0;
    size_t padding = 0;
    size_t e = 0;
    for (size_t i = 0; i < s->count; i++) {
        uint64_t a = s->addresses[i] - shift;
        if (s->addresses[i] < shift || !in_text(s->layout, a))
            continue;
        inside++;
        while (e + 1 < s->map->count && s->map->entries[e + 1].start <= a)
            e++;
        const struct symint_kernel_entry *entry = &s->map->entries[e];
        if (a < entry->start || a >= entry->end)
            continue;
        if (entry->size > 6 && memcmp(s->map->text + entry->name, "__pfx_", 6) == 0)
            padding++;
        else
            first_bytes += a - entry->start < 4;
    }
    return inside == 0 || first_bytes > 3 + inside / 10 || padding > 1 + inside / 200;
}

/* ---- the first way: a range of the kernel ---- */

/* Where the symbol named behind the brackets of a range's name is in the map, 0: no such one. */
static uint64_t reference(const struct search *s, const struct sym_kernel_range *r)
{
    size_t size = r->name_size > 0 ? r->name_size : strlen(r->name);
    const char *bracket = memchr(r->name, ']', size);
    if (bracket == NULL)
        return 0;
    struct symint_kernel_symbol symbol = {.name = bracket + 1};
    symbol.name_size = size - (size_t)(bracket + 1 - r->name);
    return is_name(&symbol, "_text")    ? s->layout->text
           : is_name(&symbol, "_stext") ? s->layout->stext
                                        : 0;
}

/* The size of the range is that of an image from `start` to one of the ends, to the byte or to
 * the page. */
static bool is_size(const struct search *s, uint64_t start, uint64_t size)
{
    const uint64_t ends[] = {s->layout->etext, s->layout->edata, s->layout->end};
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
        if (start != 0 && ends[i] > start &&
            (size == ends[i] - start || size == ((ends[i] - start + 4095) & ~UINT64_C(4095))))
            return true;
    return false;
}

static bool fits_range(const struct search *s, const struct sym_kernel_range *r, uint64_t shift)
{
    const struct symint_kernel_layout *l = s->layout;
    if (shift % s->step != 0)
        return false;
    size_t inside = rank(s, r->end) - rank(s, r->start);
    return inside > 0 &&
           inside == count_in(s, l->stext, l->etext, shift) +
                         count_in(s, l->init_start, l->init_end, shift) &&
           !is_impossible(s, shift);
}

static bool from_ranges(const struct search *s, const struct sym_kernel *kernel, uint64_t *shift)
{
    const struct symint_kernel_layout *l = s->layout;
    for (size_t i = 0; i < kernel->range_count; i++) {
        const struct sym_kernel_range *r = &kernel->ranges[i];
        if (!symint_is_kernel_range(r) || r->start >= r->end)
            continue;
        uint64_t symbol = reference(s, r);
        if (symbol != 0 && r->file_offset >= r->start && r->file_offset < r->end &&
            r->file_offset >= symbol && fits_range(s, r, r->file_offset - symbol)) {
            *shift = r->file_offset - symbol;
            return true;
        }
        const uint64_t starts[] = {l->text, l->stext};
        for (size_t k = 0; k < 2; k++)
            if (is_size(s, starts[k], r->end - r->start) && r->start >= starts[k] &&
                fits_range(s, r, r->start - starts[k])) {
                *shift = r->start - starts[k];
                return true;
            }
    }
    return false;
}

/* ---- the second way: anchors ---- */

/* The natural logarithm, good to some six digits: the C library's is in a library of its own. */
static double ln(double x)
{
    int exponent = 0;
    if (x <= 0)
        return -1e9;
    while (x > 1.5) {
        x /= 2;
        exponent++;
    }
    while (x < 0.75) {
        x *= 2;
        exponent--;
    }
    double z = (x - 1) / (x + 1); /* at most 1/5 */
    double q = z * z;
    return exponent * 0.69314718056 + 2 * z * (1 + q * (1.0 / 3 + q * (1.0 / 5 + q / 7)));
}

/* ln of the chance that k or more clusters of a class are hit, mean expected. */
static double ln_tail(double k, double mean)
{
    return k <= mean ? 0 : -(k * ln(k / mean) - k + mean);
}

/* ln of the chance to see what this shift shows if it is wrong. `hit` has room for a mark of each
 * cluster. */
static double ln_chance(const struct search *s, uint64_t shift, size_t inside, bool *hit)
{
    double hits[CLASSES] = {0};
    double mean[CLASSES] = {0};
    double text = (double)(s->layout->etext - s->layout->stext);
    memset(hit, 0, s->cluster_count * sizeof(*hit));
    for (size_t i = 0; i < s->anchor_count; i++) {
        const struct anchor *a = &s->anchors[i];
        if (!hit[a->cluster])
            hit[a->cluster] = count_in(s, a->start, a->end, shift) > 0;
    }
    for (size_t i = 0; i < s->cluster_count; i++) {
        double chance = (double)inside * (double)s->clusters[i].bytes / text;
        mean[s->clusters[i].class] += chance < 1 ? chance : 1;
        hits[s->clusters[i].class] += hit[i];
    }
    double sum =
        ln_tail(hits[WAY_IN], mean[WAY_IN]) + ln_tail(hits[SYSTEM_CALL], mean[SYSTEM_CALL]);
    double fisher = sum + ln(1 - sum);
    return fisher < 0 ? fisher : 0;
}

static void try_shift(const struct search *s, uint64_t shift, bool *hit, struct best *best)
{
    const struct symint_kernel_layout *l = s->layout;
    size_t inside = count_in(s, l->stext, l->etext, shift);
    if (inside == 0 ||
        (s->x86 && inside + count_in(s, l->init_start, l->init_end, shift) != s->count))
        return;
    best->tried++;
    double chance = ln_chance(s, shift, inside, hit);
    if (chance < best->ln_chance) {
        best->second = best->ln_chance;
        best->ln_chance = chance;
        best->shift = shift;
    } else if (chance < best->second) {
        best->second = chance;
    }
}

/* All shifts that keep the image where x86-64 has it. */
static void try_all(const struct search *s, bool *hit, struct best *best)
{
    uint64_t last = s->layout->end > s->layout->etext ? s->layout->end : s->layout->etext;
    if (s->layout->stext < X86_IMAGE_START || last >= X86_IMAGE_END)
        return;
    for (uint64_t shift = 0; shift <= X86_IMAGE_END - last; shift += s->step)
        try_shift(s, shift, hit, best);
}

static int compare_shifts(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Where the image may be anywhere, only shifts that let an address hit a way in are worth a try,
 * but every one that puts an address into the text could have been lucky. */
static int try_hits(const struct search *s, bool *hit, struct best *best)
{
    enum { MAX_SHIFTS = 4096 };
    size_t count = 0;
    uint64_t *shifts = malloc(MAX_SHIFTS * sizeof(*shifts));
    if (shifts == NULL)
        return SYM_ERR_NOMEM;
    size_t stride = s->count / 4096 + 1;
    for (size_t i = 0; i < s->anchor_count; i++) {
        const struct anchor *a = &s->anchors[i];
        if (s->clusters[a->cluster].class != WAY_IN)
            continue;
        for (size_t k = 0; k < s->count && count < MAX_SHIFTS; k += stride) {
            if (s->addresses[k] < a->start)
                continue;
            uint64_t shift = (s->addresses[k] - a->start) / s->step * s->step;
            if (s->addresses[k] - shift < a->end)
                shifts[count++] = shift;
        }
    }
    qsort(shifts, count, sizeof(*shifts), compare_shifts);
    for (size_t i = 0; i < count; i++)
        if (i == 0 || shifts[i] != shifts[i - 1])
            try_shift(s, shifts[i], hit, best);
    free(shifts);
    uint64_t places = (s->layout->etext - s->layout->stext) / s->step + 2;
    best->tried = (double)places * (double)s->count;
    return 0;
}

static int from_anchors(const struct search *s, bool *found, uint64_t *shift, const char **why)
{
    struct best best = {0};
    bool *hit = malloc(s->cluster_count + 1);
    if (hit == NULL)
        return SYM_ERR_NOMEM;
    int rc = 0;
    if (s->x86)
        try_all(s, hit, &best);
    else
        rc = try_hits(s, hit, &best);
    free(hit);
    if (rc != 0)
        return rc;
    *shift = best.shift;
    *why = "the sampled addresses do not tell how far the kernel was moved";
    if (best.ln_chance == 0 || best.ln_chance + ln(best.tried) > LN_CHANCE)
        return 0;
    if (best.ln_chance > best.second - LN_LEAD)
        *why = "the sampled addresses allow more than one place of the kernel";
    else if (is_impossible(s, best.shift))
        *why = "sampled addresses lie where the kernel has no code";
    else
        *found = true;
    return 0;
}

int symint_kaslr_find(const struct symint_kernel *map, const struct symint_kernel_layout *layout,
                      const struct sym_kernel *kernel, bool *found, uint64_t *shift,
                      const char **why)
{
    struct search s = {.map = map, .layout = layout};
    *found = false;
    *shift = 0;
    *why = "no sampled address is in the kernel's text";
    int rc = find_anchors(&s);
    if (rc == 0)
        rc = choose_addresses(&s, kernel);
    if (rc == 0 && s.count > 0) {
        *found = from_ranges(&s, kernel, shift);
        if (!*found)
            rc = from_anchors(&s, found, shift, why);
    }
    free(s.addresses);
    free(s.anchors);
    free(s.clusters);
    return rc;
}
