/* SPDX-License-Identifier: MIT */
/*
 * How far a kernel was moved against its vmlinux. Three witnesses, the first that says something is
 * believed: the range of the kernel that the recorder wrote down (perf: where `_text` or `_stext`
 * lay), kallsyms of the same boot, whose functions all lie one distance above those of the file,
 * and the sampled addresses, as for a System.map (kaslr.c).
 */
#include "elf_private.h"
#include "segments.h"
#include "strtab.h"
#include "sysmap.h"
#include "vmlinux.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_TEXT ((size_t)256 * 1024 * 1024)
#define MAX_NAME 512u
#define MAX_WITNESSES ((size_t)1024) /* functions of kallsyms that are compared */
#define MIN_WITNESSES ((size_t)4)    /* so many are not wrong by chance */

/* ---- the recorded range ---- */

static bool ends_with(const struct sym_kernel_range *r, const char *suffix)
{
    size_t size = r->name_size > 0 ? r->name_size : strlen(r->name);
    size_t n = strlen(suffix);
    return size > n && memcmp(r->name + size - n, suffix, n) == 0;
}

/* As in kaslr.c; on x86-64 the image stays in its GiB. */
static bool is_possible(const struct symint_vmlinux *v, uint64_t shift)
{
    if (v->elf->machine == EM_X86_64)
        return shift % (UINT64_C(2) * 1024 * 1024) == 0 && shift < (uint64_t)1024 * 1024 * 1024;
    return shift % 65536 == 0;
}

/* perf puts the address of the symbol into the file offset, other recorders only begin the range
 * there. */
static bool from_ranges(struct symint_vmlinux *v, const struct sym_kernel *kernel,
                        const struct symint_kernel_names *names)
{
    for (size_t i = 0; i < kernel->range_count; i++) {
        const struct sym_kernel_range *r = &kernel->ranges[i];
        if (!symint_is_kernel_range(r) || r->start >= r->end)
            continue;
        const char *symbol = ends_with(r, "]_text")    ? "_text"
                             : ends_with(r, "]_stext") ? "_stext"
                                                       : NULL;
        uint64_t value = symbol != NULL ? symint_kernel_names_value(names, symbol) : 0;
        if (value == 0)
            continue;
        bool inside = r->file_offset >= r->start && r->file_offset < r->end;
        v->shift = (inside ? r->file_offset : r->start) - value;
        if (is_possible(v, v->shift))
            return true;
    }
    return false;
}

/* ---- kallsyms ---- */

static int compare_distances(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* The value that most of them have, and how many; 0 of them when two have as many. */
static uint64_t most_frequent(uint64_t *values, size_t count, size_t *votes)
{
    uint64_t best = 0;
    size_t second = 0;
    *votes = 0;
    qsort(values, count, sizeof(*values), compare_distances);
    for (size_t i = 0; i < count;) {
        size_t k = i;
        while (k < count && values[k] == values[i])
            k++;
        if (k - i > *votes) {
            second = *votes;
            *votes = k - i;
            best = values[i];
        } else if (k - i > second) {
            second = k - i;
        }
        i = k;
    }
    *votes = *votes == second ? 0 : *votes;
    return best;
}

/* Functions of the kernel proper out of a table, by the hash of their names. */
static int choose_witnesses(const struct symint_kernel *table, struct symint_pair *witnesses,
                            size_t *count)
{
    size_t stride = table->count / MAX_WITNESSES + 1;
    *count = 0;
    for (size_t i = 0; i < table->count; i += stride) {
        struct symint_kernel_symbol s = symint_kernel_symbol(table, &table->entries[i]);
        if (s.owner_size == 0)
            witnesses[(*count)++] =
                (struct symint_pair){.key = symint_kernel_name_hash(s.name, s.name_size),
                                     .value = (uint32_t)i};
    }
    return symint_sort_pairs(witnesses, *count);
}

/* The first witness of a hash, count: none. */
static size_t find_witness(const struct symint_pair *witnesses, size_t count, uint64_t hash)
{
    size_t low = 0;
    size_t high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (witnesses[middle].key < hash)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && witnesses[low].key == hash ? low : count;
}

/* Each function that both know gives a distance. Static ones of one name give wrong ones too, but
 * the right one is among those of nearly every function; else they are two kernels. */
static int from_table(struct symint_vmlinux *v, const struct symint_kernel *table,
                      const struct symint_kernel_names *names, bool *found, bool *refused)
{
    size_t room = 4 * MAX_WITNESSES;
    struct symint_pair *witnesses = malloc(MAX_WITNESSES * sizeof(*witnesses));
    uint64_t *distances = malloc(room * sizeof(*distances));
    bool *known = calloc(MAX_WITNESSES, sizeof(*known));
    size_t count = 0;
    size_t distance_count = 0;
    size_t known_count = 0;
    size_t votes;
    *found = false;
    int rc = witnesses == NULL || distances == NULL || known == NULL ? SYM_ERR_NOMEM : 0;
    if (rc == 0)
        rc = choose_witnesses(table, witnesses, &count);
    for (uint64_t i = 1; rc == 0 && i < names->count && distance_count < room; i++) {
        struct symint_kernel_name n;
        if (!symint_kernel_names_at(names, i, &n) || !n.code)
            continue;
        uint64_t hash = symint_kernel_name_hash(n.name, strnlen(n.name, MAX_NAME));
        size_t w = find_witness(witnesses, count, hash);
        for (; w < count && witnesses[w].key == hash && distance_count < room; w++) {
            distances[distance_count++] = table->entries[witnesses[w].value].start - n.value;
            known_count += !known[w];
            known[w] = true;
        }
    }
    if (rc == 0 && known_count > 0) {
        v->shift = most_frequent(distances, distance_count, &votes);
        *found = votes > 0 && votes >= (known_count + 1) / 2 && is_possible(v, v->shift);
        *refused = !*found && known_count >= MIN_WITNESSES;
    }
    if (rc == 0 && !*found && !*refused && table->text_address != 0) {
        uint64_t value = symint_kernel_names_value(names, "_text");
        v->shift = table->text_address - value;
        *found = value != 0 && is_possible(v, v->shift);
    }
    free(witnesses);
    free(distances);
    free(known);
    return rc;
}

/* ---- sampled addresses ---- */

/* The file's symbols in the form of a System.map, malloc'ed; *text NULL: it would be too large. */
static int to_map(const struct symint_kernel_names *names, char **text, size_t *size)
{
    struct symint_kernel_name n;
    size_t room = 1;
    *text = NULL;
    *size = 0;
    for (uint64_t i = 1; i < names->count && room <= MAX_TEXT; i++)
        if (symint_kernel_names_at(names, i, &n))
            room += 20 + strnlen(n.name, MAX_NAME);
    if (room > MAX_TEXT)
        return 0;
    char *map = symint_scratch_alloc(room, 1);
    if (map == NULL)
        return SYM_ERR_NOMEM;
    for (uint64_t i = 1; i < names->count; i++) {
        if (!symint_kernel_names_at(names, i, &n) || strcspn(n.name, " \t\r\n") != strlen(n.name) ||
            strnlen(n.name, MAX_NAME) == MAX_NAME)
            continue;
        char type = n.code ? (n.global ? 'T' : 't') : (n.global ? 'D' : 'd');
        *size += (size_t)snprintf(map + *size, room - *size, "%016llx %c %s\n",
                                  (unsigned long long)n.value, type, n.name);
    }
    map[*size] = '\0';
    *text = map;
    return 0;
}

static int from_addresses(struct symint_vmlinux *v, const struct sym_kernel *kernel,
                          const struct symint_kernel_names *names, bool *found, const char **why)
{
    struct symint_kernel map;
    enum sym_kernel_state state;
    char *text;
    size_t size;
    *found = false;
    if (kernel->needed_count == 0)
        return 0;
    int rc = to_map(names, &text, &size);
    if (rc != 0 || text == NULL)
        return rc;
    const char *reason;
    rc = symint_sysmap_parse(&map, text, size, kernel, &state, &reason);
    if (rc != 0)
        return rc;
    *found = state == SYM_KERNEL_OK;
    if (*found)
        v->shift = map.shift;
    else if (reason[0] != '\0')
        *why = reason;
    symint_kernel_free(&map);
    return 0;
}

/* Where nothing vouches for the file, kallsyms come first: they tell whether it is that kernel. */
static int find_shift(struct symint_vmlinux *v, const struct sym_kernel *kernel,
                      const struct symint_kernel *table, const struct symint_kernel_names *names,
                      const char **how)
{
    static const char by_range[] = "by the recorded range of the kernel";
    bool refused = false;
    *how = by_range;
    if (!v->unverified && from_ranges(v, kernel, names)) {
        v->placed = true;
        return 0;
    }
    int rc = table != NULL ? from_table(v, table, names, &v->placed, &refused) : 0;
    if (rc != 0 || v->placed || refused) {
        *how = refused ? "its functions do not lie as in kallsyms" : "by kallsyms";
        return rc;
    }
    if (v->unverified && from_ranges(v, kernel, names)) {
        v->placed = true;
        return 0;
    }
    const char *why = "nothing tells how far the kernel was moved";
    rc = from_addresses(v, kernel, names, &v->placed, &why);
    *how = v->placed ? "by the sampled addresses" : why;
    return rc;
}

int symint_vmlinux_place(struct symint_vmlinux *v, const struct sym_kernel *kernel,
                         const struct symint_kernel *table, const char **how)
{
    struct symint_kernel_names names;
    *how = "";
    v->placed = false;
    if (v->elf == NULL)
        return 0;
    int rc = symint_kernel_names_read(v->names.elf, &names);
    if (rc == 0)
        rc = find_shift(v, kernel, table, &names, how);
    symint_kernel_names_free(&names);
    return rc;
}
