/* SPDX-License-Identifier: MIT */
/*
 * Times libsym on the symbol tables of one file, each beside a loop that does the least anybody
 * could do. A line of output is "seconds X KEY NUMBER ..."; see tests/bench/run.
 *
 *   index FILE          opens FILE and indexes its symbol tables
 *   index-public FILE   the same through sym_resolve: describes a module and asks for one address
 *   read FILE           the loop beside both: reads the bytes of those tables into fresh memory
 *   lookup FILE         10 million random addresses in the index; bare: a plain binary search
 *   resolve FILE        sym_resolve: a million distinct addresses (cold), then 3 million of these
 *                       (warm), and sym_resolve_many of a million in a context of its own (many)
 *   kallsyms FILE       sym_kernel_load: all of it, and for 2,000 addresses (needed); read: the
 *                       kernel's share
 *   demangle FILE       every distinct name interned and demangled; ratio: to a loop of cplus_demangle
 *                       that forgets its results (bare), kept_ratio: to one that keeps them
 *   addresses FILE N    prints N random code addresses of FILE
 *   answer FILE         names the addresses on standard input, for a comparison with other programs
 */
#include "context.h"
#include "demangle.h"
#include "elf_private.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libiberty/demangle.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define LOOKUPS ((size_t)10 * 1000 * 1000)
#define DISTINCT ((size_t)1000 * 1000)
#define REPEATED ((size_t)3 * 1000 * 1000)
#define NEEDED ((size_t)2000)
#define ALTERNATIONS 7 /* of two measurements whose difference or ratio counts */
#define LOAD_ADDRESS UINT64_C(0x7f0000000000)

static _Noreturn void die(const char *what, const char *why)
{
    fprintf(stderr, "bench_symbols: %s: %s\n", what, why);
    exit(1);
}

/* On a machine that others use, processor time is what can be compared (BENCH_CPU=1). */
static double now(void)
{
    struct timespec t;

    clock_gettime(getenv("BENCH_CPU") ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int compare_seconds(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double *seconds, size_t count)
{
    qsort(seconds, count, sizeof *seconds, compare_seconds);
    return seconds[count / 2];
}

static void print_peak(void)
{
    struct rusage usage_self;

    getrusage(RUSAGE_SELF, &usage_self);
    printf(" peak_kib %ld\n", usage_self.ru_maxrss);
}

static uint64_t random_state = 0x853c49e6748fea9bu;

static uint64_t next_random(void)
{
    random_state += 0x9e3779b97f4a7c15u;
    return symint_mix(random_state);
}

static void *need(void *memory)
{
    if (memory == NULL)
        die("memory", strerror(ENOMEM));
    return memory;
}

/* Filled before it is used, so that its page faults are not measured. */
static void *table(size_t count, size_t item_size)
{
    return memset(need(symint_table_alloc(count, item_size)), 0, count * item_size);
}

/* ---- a file ---- */

struct file {
    const char *path;
    struct symint_input input;
    struct symint_elf *elf;
};

static struct file open_file(const char *path)
{
    struct file f = {.path = path};
    enum sym_miss miss;
    const char *why = "out of memory";
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0 || fstat(fd, &st) < 0)
        die(path, strerror(errno));
    f.input = (struct symint_input){.fd = fd, .size = (uint64_t)st.st_size};
    if (symint_elf_open(&f.input, &f.elf, &miss, &why) != 0 || f.elf == NULL)
        die(path, why);
    return f;
}

static void index_file(struct file *f)
{
    enum sym_miss miss;
    const char *why = "out of memory";
    const char *note;

    if (symint_elf_index(f->elf, NULL, &miss, &why, &note) != 0 || miss != SYM_MISS_NONE)
        die(f->path, why);
}

static void close_file(struct file *f)
{
    symint_elf_free(f->elf);
    close(f->input.fd);
}

static void read_sections(struct file *f)
{
    enum sym_miss miss;
    const char *why = "out of memory";

    if (symint_elf_read_sections(f->elf, &miss, &why) != 0 || miss != SYM_MISS_NONE)
        die(f->path, why);
}

static bool is_symbol_table(const struct file *f, uint64_t i)
{
    const struct section *s = &f->elf->sections[i];

    return (s->type == SHT_SYMTAB || s->type == SHT_DYNSYM) && s->link < f->elf->section_count;
}

/* A random file offset in executable code and the address it has there. */
static uint64_t random_offset(const struct file *f, uint64_t *vaddr)
{
    uint64_t total = 0;
    uint64_t at;
    uint32_t i;

    for (i = 0; i < f->elf->segment_count; i++)
        total += f->elf->segments[i].executable ? f->elf->segments[i].size : 0;
    if (total == 0)
        die(f->path, "no executable code");
    at = next_random() % total;
    for (i = 0; !f->elf->segments[i].executable || at >= f->elf->segments[i].size; i++)
        at -= f->elf->segments[i].executable ? f->elf->segments[i].size : 0;
    *vaddr = f->elf->segments[i].vaddr + at;
    return f->elf->segments[i].offset + at;
}

/* ---- the public way ---- */

static struct sym_context *new_context(enum sym_demangle demangle)
{
    struct sym_options options = {.size = sizeof options, .demangle = demangle};
    struct sym_context *c = need(sym_context_new());

    if (sym_context_open(c, &options) != 0)
        die("sym_context_open", sym_context_error(c));
    return c;
}

/* One mapping of the whole file. */
static uint32_t add_module(struct sym_context *c, const char *path)
{
    char *absolute = realpath(path, NULL);
    struct sym_module m = {.size = sizeof m,
                           .path = absolute,
                           .start = LOAD_ADDRESS,
                           .end = LOAD_ADDRESS + ((uint64_t)1 << 40)};
    uint32_t handle;

    if (absolute == NULL)
        die(path, strerror(errno));
    if (sym_module_add(c, &m, &handle) != 0)
        die(path, sym_context_error(c));
    free(absolute);
    return handle;
}

static struct sym_query query_of(uint32_t module, uint64_t offset)
{
    return (struct sym_query){.module = module, .abs = LOAD_ADDRESS + offset, .rel = offset};
}

static const struct sym_frame *resolve(struct sym_context *c, const struct sym_query *q)
{
    const struct sym_frame *frames;
    size_t count;

    if (sym_resolve(c, q, &frames, &count) != 0)
        die("sym_resolve", sym_context_error(c));
    return &frames[count - 1];
}

/* ---- index ---- */

static void run_index(const char *path)
{
    double begin = now();
    struct file f = open_file(path);

    index_file(&f);
    printf("seconds %.5f", now() - begin);
    close_file(&f);
    print_peak();
}

static void run_index_public(const char *path)
{
    struct file f = open_file(path);
    uint64_t vaddr;
    uint64_t offset = random_offset(&f, &vaddr);
    double begin;
    struct sym_context *c;
    struct sym_query q;

    close_file(&f);
    begin = now();
    c = new_context(SYM_DEMANGLE_NONE);
    q = query_of(add_module(c, path), offset);
    (void)resolve(c, &q);
    printf("seconds %.5f", now() - begin);
    sym_context_free(c);
    print_peak();
}

/* functions: what the limit of an index is scaled by. */
static void run_read(const char *path)
{
    double begin = now();
    struct file f = open_file(path);
    uint64_t functions = 0;
    uint64_t size = f.elf->wide ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);
    double seconds;
    enum sym_miss miss;
    uint8_t *data[2];

    read_sections(&f);
    for (uint64_t i = 1; i < f.elf->section_count; i++) {
        const struct section *s = &f.elf->sections[i];
        const struct section *strings =
            &f.elf->sections[s->link < f.elf->section_count ? s->link : 0];

        if (!is_symbol_table(&f, i))
            continue;
        if (symint_elf_load_section(f.elf, s, &data[0], &miss) != 0 || data[0] == NULL ||
            symint_elf_load_section(f.elf, strings, &data[1], &miss) != 0 || data[1] == NULL)
            die(path, "its symbol tables cannot be read");
        for (uint64_t at = 0; s->type == SHT_SYMTAB && s->size - at >= size; at += size) {
            uint8_t type = data[0][at + (f.elf->wide ? 4 : 12)] & 15;

            functions += (type == STT_FUNC || type == STT_GNU_IFUNC) &&
                         get16(f.elf, data[0] + at + (f.elf->wide ? 6 : 14)) != SHN_UNDEF;
        }
        free(data[0]);
        free(data[1]);
    }
    seconds = now() - begin;
    printf("seconds %.5f functions %" PRIu64, seconds, functions);
    close_file(&f);
    print_peak();
}

/* ---- lookup ---- */

static size_t plain_search(const uint64_t *starts, size_t count, uint64_t address)
{
    size_t low = 0;
    size_t high = count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (starts[middle] <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void run_lookup(const char *path)
{
    struct file f = open_file(path);
    uint64_t *addresses = table(LOOKUPS, sizeof *addresses);
    uint64_t *starts;
    size_t count;
    uint64_t checksum = 0;
    double begin, bare, found;

    index_file(&f);
    for (size_t i = 0; i < LOOKUPS; i++)
        (void)random_offset(&f, &addresses[i]);
    count = f.elf->index.count;
    starts = table(count + 1, sizeof *starts);
    memcpy(starts, f.elf->index.start, count * sizeof *starts);

    begin = now();
    for (size_t i = 0; i < LOOKUPS; i++)
        checksum += plain_search(starts, count, addresses[i]);
    bare = now() - begin;
    begin = now();
    for (size_t i = 0; i < LOOKUPS; i++)
        checksum += symint_elf_find(f.elf, addresses[i]);
    found = now() - begin;
    printf("seconds %.4f bare %.4f ns %.2f bare_ns %.2f count %zu segments %zu checksum %" PRIu64,
           found, bare, found / LOOKUPS * 1e9, bare / LOOKUPS * 1e9, LOOKUPS, count, checksum);
    free(addresses);
    free(starts);
    close_file(&f);
    print_peak();
}

static void shuffle(struct sym_query *queries, size_t count)
{
    for (size_t i = count; i > 1; i--) {
        size_t k = next_random() % i;
        struct sym_query q = queries[i - 1];

        queries[i - 1] = queries[k];
        queries[k] = q;
    }
}

static int compare_offsets(const void *a, const void *b)
{
    const struct sym_query *x = a;
    const struct sym_query *y = b;

    return (x->rel > y->rel) - (x->rel < y->rel);
}

/* Distinct ones, in random order. Returns how many. */
static size_t make_queries(const struct file *f, uint32_t module, struct sym_query *queries,
                           size_t most)
{
    size_t count = 0;
    uint64_t vaddr;

    for (size_t i = 0; i < most; i++)
        queries[i] = query_of(module, random_offset(f, &vaddr));
    qsort(queries, most, sizeof *queries, compare_offsets);
    for (size_t i = 0; i < most; i++)
        if (count == 0 || queries[count - 1].rel != queries[i].rel)
            queries[count++] = queries[i];
    shuffle(queries, count);
    return count;
}

static void run_resolve(const char *path)
{
    struct file f = open_file(path);
    struct sym_context *c = new_context(SYM_DEMANGLE_NONE);
    struct sym_context *d = new_context(SYM_DEMANGLE_NONE);
    struct sym_query *queries = table(DISTINCT, sizeof *queries);
    struct sym_answer *answers = table(DISTINCT, sizeof *answers);
    uint32_t *order = table(REPEATED, sizeof *order);
    size_t count = make_queries(&f, add_module(c, path), queries, DISTINCT);
    uint64_t vaddr;
    uint64_t named = 0;
    double begin, cold, warm, many;
    struct sym_query first = query_of(add_module(d, path), random_offset(&f, &vaddr));

    for (size_t i = 0; i < REPEATED; i++)
        order[i] = (uint32_t)(next_random() % count);
    first.module = queries[0].module; /* both contexts have one module */
    (void)resolve(c, &first);         /* the index is measured elsewhere */
    (void)resolve(d, &first);

    begin = now();
    for (size_t i = 0; i < count; i++)
        named += resolve(c, &queries[i])->name != NULL;
    cold = now() - begin;
    begin = now();
    for (size_t i = 0; i < REPEATED; i++)
        named += resolve(c, &queries[order[i]])->name != NULL;
    warm = now() - begin;
    begin = now();
    if (sym_resolve_many(d, queries, count, answers) != 0)
        die("sym_resolve_many", sym_context_error(d));
    many = now() - begin;
    printf("seconds %.4f cold_ns %.1f warm_ns %.1f many_ns %.1f named %" PRIu64, cold + warm + many,
           cold / (double)count * 1e9, warm / REPEATED * 1e9, many / (double)count * 1e9, named);
    free(queries);
    free(answers);
    free(order);
    sym_context_free(c);
    sym_context_free(d);
    close_file(&f);
    print_peak();
}

/* ---- kallsyms ---- */

/* Reads the file as libsym must, but keeps nothing. */
static double time_read(const char *path, char *buffer, size_t size)
{
    double begin = now();
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n;

    if (fd < 0)
        die(path, strerror(errno));
    while ((n = read(fd, buffer, size)) > 0)
        continue;
    if (n < 0)
        die(path, strerror(errno));
    close(fd);
    return now() - begin;
}

static int compare_u64(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* Addresses a little behind random entries, sorted. */
static void pick_needed(const char *path, uint64_t *needed, uint64_t *lines)
{
    FILE *in = fopen(path, "r");
    char line[1024];
    size_t count = 0;

    if (in == NULL)
        die(path, strerror(errno));
    for (*lines = 0; fgets(line, sizeof line, in) != NULL; (*lines)++) {
        char *end;
        uint64_t address = strtoull(line, &end, 16);
        size_t at = count < NEEDED ? count : next_random() % (*lines + 1);

        if (end[0] != ' ' || strchr("tTwW", end[1]) == NULL || address == 0)
            continue;
        if (at < NEEDED)
            needed[at] = address + 4;
        count += count < NEEDED;
    }
    fclose(in);
    if (count < NEEDED)
        die(path, "too few addresses of code, or none but 0");
    qsort(needed, NEEDED, sizeof *needed, compare_u64);
}

static double time_load(struct sym_context *c, const char *path, const uint64_t *needed)
{
    struct sym_kernel k = {.size = sizeof k,
                           .kallsyms = path,
                           .needed = needed,
                           .needed_count = needed != NULL ? NEEDED : 0};
    double begin = now();

    if (sym_kernel_load(c, &k) != 0 || sym_kernel_state(c) != SYM_KERNEL_OK)
        die(path, sym_context_error(c));
    return now() - begin;
}

static void run_kallsyms(const char *path)
{
    static uint64_t needed[NEEDED];
    size_t size = (size_t)1 << 20;
    char *buffer = table(size, 1);
    double bare[ALTERNATIONS], full[ALTERNATIONS], some[ALTERNATIONS];
    struct sym_context *c;
    uint64_t lines;

    pick_needed(path, needed, &lines);
    for (size_t i = 0; i < ALTERNATIONS; i++) {
        bare[i] = time_read(path, buffer, size);
        c = new_context(SYM_DEMANGLE_NONE);
        full[i] = time_load(c, path, NULL);
        sym_context_free(c);
        c = new_context(SYM_DEMANGLE_NONE);
        some[i] = time_load(c, path, needed);
        sym_context_free(c);
    }
    printf("seconds %.5f read %.5f needed %.5f lines %" PRIu64, median(full, ALTERNATIONS),
           median(bare, ALTERNATIONS), median(some, ALTERNATIONS), lines);
    free(buffer);
    print_peak();
}

/* ---- demangle ---- */

struct names {
    const struct symint_text **text;
    size_t count;
    struct symint_strings distinct;
};

/* Every distinct name of a function, without its version. */
static void collect_names(struct file *f, struct names *n)
{
    uint64_t size = f->elf->wide ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);
    enum sym_miss miss;

    read_sections(f);
    for (uint64_t i = 1; i < f->elf->section_count; i++) {
        const struct section *s = &f->elf->sections[i];
        uint8_t *symbols;
        uint8_t *strings;
        uint64_t strings_size;

        if (!is_symbol_table(f, i))
            continue;
        strings_size = f->elf->sections[s->link].size;
        if (symint_elf_load_section(f->elf, s, &symbols, &miss) != 0 || symbols == NULL ||
            symint_elf_load_section(f->elf, &f->elf->sections[s->link], &strings, &miss) != 0 ||
            strings == NULL)
            die(f->path, "its symbol tables cannot be read");
        n->text = need(realloc(n->text, (n->count + s->size / size) * sizeof *n->text));
        for (uint64_t at = 0; s->size - at >= size; at += size) {
            uint32_t name = get32(f->elf, symbols + at);
            const char *text = (const char *)strings + (name < strings_size ? name : 0);
            size_t before = n->distinct.count;
            struct symint_text *t;

            if ((symbols[at + (f->elf->wide ? 4 : 12)] & 15) != STT_FUNC)
                continue;
            t = need(symint_intern(&n->distinct, text, symint_cut_version(text, strlen(text))));
            if (n->distinct.count > before)
                n->text[n->count++] = t;
        }
        free(symbols);
        free(strings);
    }
}

static double time_display(const struct names *n, size_t *changed)
{
    struct symint_strings strings = {.seed = 1};
    double begin = now();

    *changed = 0;
    for (size_t i = 0; i < n->count; i++) {
        struct symint_text *t = symint_intern_name(&strings, n->text[i]->text, n->text[i]->size);

        if (t == NULL || symint_display(&strings, t, SYM_DEMANGLE_FULL) == NULL)
            die("demangling", strerror(ENOMEM));
        *changed += t->display != t->text;
    }
    symint_strings_free(&strings);
    return now() - begin;
}

/* kept: where the results go, NULL: they are freed at once. */
static double time_cplus_demangle(const struct names *n, char **kept, size_t *changed)
{
    double begin = now();

    *changed = 0;
    for (size_t i = 0; i < n->count; i++) {
        char *text = cplus_demangle(n->text[i]->text, DMGL_PARAMS | DMGL_ANSI | DMGL_AUTO);

        *changed += text != NULL;
        if (kept != NULL)
            kept[i] = text;
        else
            free(text);
    }
    for (size_t i = 0; kept != NULL && i < n->count; i++)
        free(kept[i]);
    return now() - begin;
}

static void run_demangle(const char *path)
{
    struct file f = open_file(path);
    struct names n = {.distinct.seed = 1};
    double ours[ALTERNATIONS], bare[ALTERNATIONS], ratio[ALTERNATIONS], kept_ratio[ALTERNATIONS];
    size_t changed, bare_changed;
    char **kept;

    collect_names(&f, &n);
    kept = table(n.count + 1, sizeof *kept);
    for (size_t i = 0; i < ALTERNATIONS; i++) {
        ours[i] = time_display(&n, &changed);
        bare[i] = time_cplus_demangle(&n, NULL, &bare_changed);
        ratio[i] = ours[i] / bare[i];
        kept_ratio[i] = ours[i] / time_cplus_demangle(&n, kept, &bare_changed);
    }
    printf("seconds %.4f bare %.4f ratio %.4f kept_ratio %.4f count %zu demangled %zu "
           "bare_demangled %zu",
           median(ours, ALTERNATIONS), median(bare, ALTERNATIONS), median(ratio, ALTERNATIONS),
           median(kept_ratio, ALTERNATIONS), n.count, changed, bare_changed);
    free(kept);
    free(n.text);
    symint_strings_free(&n.distinct);
    close_file(&f);
    print_peak();
}

/* ---- for other programs ---- */

static void run_addresses(const char *path, size_t count)
{
    struct file f = open_file(path);
    uint64_t vaddr;

    for (size_t i = 0; i < count; i++) {
        (void)random_offset(&f, &vaddr);
        printf("0x%" PRIx64 "\n", vaddr);
    }
    close_file(&f);
}

/* The offset that the address has in the file. */
static uint64_t offset_of(const struct file *f, uint64_t vaddr)
{
    for (uint32_t i = 0; i < f->elf->segment_count; i++) {
        const struct segment *s = &f->elf->segments[i];

        if (s->executable && vaddr >= s->vaddr && vaddr - s->vaddr < s->size)
            return vaddr - s->vaddr + s->offset;
    }
    return UINT64_MAX;
}

static void run_answer(const char *path)
{
    struct file f = open_file(path);
    struct sym_context *c = new_context(SYM_DEMANGLE_NONE);
    uint32_t module = add_module(c, path);
    size_t count = 0;
    size_t capacity = 1024;
    struct sym_query *queries = need(malloc(capacity * sizeof *queries));
    struct sym_answer *answers;
    char line[64];

    while (fgets(line, sizeof line, stdin) != NULL) {
        if (count == capacity) {
            capacity *= 2;
            queries = need(realloc(queries, capacity * sizeof *queries));
        }
        queries[count++] = query_of(module, offset_of(&f, strtoull(line, NULL, 16)));
    }
    answers = need(calloc(count + 1, sizeof *answers));
    if (sym_resolve_many(c, queries, count, answers) != 0)
        die("sym_resolve_many", sym_context_error(c));
    for (size_t i = 0; i < count; i++) {
        const struct sym_frame *frame = &answers[i].frames[answers[i].count - 1];

        puts(frame->name != NULL ? frame->name : "??");
    }
    free(queries);
    free(answers);
    sym_context_free(c);
    close_file(&f);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(const char *path);
    } modes[] = {
        {"index", run_index},       {"index-public", run_index_public},
        {"read", run_read},         {"lookup", run_lookup},
        {"resolve", run_resolve},   {"kallsyms", run_kallsyms},
        {"demangle", run_demangle}, {"answer", run_answer},
    };

    if (argc == 4 && strcmp(argv[1], "addresses") == 0) {
        run_addresses(argv[2], (size_t)strtoull(argv[3], NULL, 10));
        return 0;
    }
    for (size_t i = 0; argc == 3 && i < sizeof modes / sizeof modes[0]; i++) {
        if (strcmp(argv[1], modes[i].name) == 0) {
            modes[i].run(argv[2]);
            return 0;
        }
    }
    fputs("usage: bench_symbols index|index-public|read|lookup|resolve|kallsyms|demangle|answer "
          "FILE\n"
          "       bench_symbols addresses FILE COUNT\n",
          stderr);
    return 2;
}
