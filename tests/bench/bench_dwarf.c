/* SPDX-License-Identifier: MIT */
/*
 * Times libsym on the debug information of one file, by nothing but its public header. Addresses are
 * those that the file states, hexadecimal, one a line of standard input. See tests/bench/dwarf.bash.
 *
 *   addresses FILE N SEED  prints N random addresses of FILE's .text
 *   offsets FILE N SEED    the same as offsets in the file, which is what spools have
 *   answer FILE            one sym_resolve_many for all addresses; prints the chains as
 *                          llvm-symbolizer does, for a comparison with other programs
 *   passes FILE            prints "seconds X KEY NUMBER ...": from opening to the last answer of one
 *                          sym_resolve_many; then nanoseconds an address of the same addresses again
 *                          (sorted_ns, shuffled_ns, single_ns by sym_resolve) and of as many others,
 *                          for which the tables are there but no answer is (other_many_ns,
 *                          other_single_ns); frames and checksum tell what the first pass has found
 *   read FILE              the loop beside it: reads the debug sections into fresh memory and adds up
 *                          their bytes
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "spool/sym.h"

#define LOAD_ADDRESS UINT64_C(0x7f0000000000)
#define PAGE UINT64_C(4096)
#define ORDER_SEED 1
#define OTHER_SEED 0x5eed

struct addresses {
    uint64_t *items;
    size_t count;
    size_t capacity;
};

/* What is needed of an ELF file to ask for its addresses. */
struct image {
    const char *path;
    int fd;
    Elf64_Phdr code; /* the executable segment that holds .text */
    Elf64_Shdr text;
};

static _Noreturn void die(const char *what, const char *why)
{
    fprintf(stderr, "bench_dwarf: %s: %s\n", what, why);
    exit(1);
}

/* On a machine that others use, processor time is what can be compared (BENCH_CPU=1). */
static double now(void)
{
    struct timespec t;

    clock_gettime(getenv("BENCH_CPU") ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
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
    return memset(need(malloc(count * item_size + 1)), 1, count * item_size + 1);
}

/* splitmix64 */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* ---- the file ---- */

static void read_at(const struct image *f, void *out, size_t size, uint64_t offset)
{
    if (pread(f->fd, out, size, (off_t)offset) != (ssize_t)size)
        die(f->path, "cannot be read, or is too short");
}

static void find_text(struct image *f, const Elf64_Ehdr *h)
{
    Elf64_Shdr names;
    char name[6];

    read_at(f, &names, sizeof names, h->e_shoff + (uint64_t)h->e_shstrndx * sizeof names);
    for (unsigned i = 1; i < h->e_shnum; i++) {
        read_at(f, &f->text, sizeof f->text, h->e_shoff + i * sizeof f->text);
        read_at(f, name, sizeof name, names.sh_offset + f->text.sh_name);
        if (memcmp(name, ".text", sizeof name) == 0 && f->text.sh_size > 0)
            return;
    }
    die(f->path, "no .text");
}

/* Returns the sum of the bytes, so that they are looked at; *size is how many they are. */
static uint64_t read_debug_sections(const struct image *f, const Elf64_Ehdr *h, uint64_t *size)
{
    Elf64_Shdr names, section;
    char name[7];
    uint64_t sum = 0;

    *size = 0;
    read_at(f, &names, sizeof names, h->e_shoff + (uint64_t)h->e_shstrndx * sizeof names);
    for (unsigned i = 1; i < h->e_shnum; i++) {
        uint8_t *bytes;

        read_at(f, &section, sizeof section, h->e_shoff + i * sizeof section);
        read_at(f, name, sizeof name, names.sh_offset + section.sh_name);
        if (memcmp(name, ".debug_", sizeof name) != 0)
            continue;
        bytes = need(malloc(section.sh_size + 1));
        read_at(f, bytes, section.sh_size, section.sh_offset);
        for (uint64_t at = 0; at < section.sh_size; at++)
            sum += bytes[at];
        *size += section.sh_size;
        free(bytes);
    }
    return sum;
}

static struct image open_image(const char *path)
{
    struct image f = {.path = path, .fd = open(path, O_RDONLY | O_CLOEXEC)};
    Elf64_Ehdr h;

    if (f.fd < 0)
        die(path, strerror(errno));
    read_at(&f, &h, sizeof h, 0);
    if (memcmp(h.e_ident, ELFMAG, SELFMAG) != 0 || h.e_ident[EI_CLASS] != ELFCLASS64)
        die(path, "not a 64-bit ELF file");
    find_text(&f, &h);
    for (unsigned i = 0; i < h.e_phnum; i++) {
        read_at(&f, &f.code, sizeof f.code, h.e_phoff + i * sizeof f.code);
        if (f.code.p_type == PT_LOAD && (f.code.p_flags & PF_X) != 0 &&
            f.text.sh_addr - f.code.p_vaddr < f.code.p_filesz)
            return f;
    }
    die(path, "no segment holds .text");
}

static uint64_t random_address(const struct image *f, uint64_t *state)
{
    return f->text.sh_addr + next_random(state) % f->text.sh_size;
}

static void print_random(const char *path, size_t count, uint64_t seed, bool offsets)
{
    struct image f = open_image(path);
    uint64_t less = offsets ? f.text.sh_addr - f.text.sh_offset : 0;

    for (size_t i = 0; i < count; i++)
        printf("0x%012" PRIx64 "\n", random_address(&f, &seed) - less); /* sortable */
}

/* ---- addresses ---- */

static void add_address(struct addresses *a, uint64_t address)
{
    if (a->count == a->capacity) {
        a->capacity = a->capacity == 0 ? 4096 : a->capacity * 2;
        a->items = need(realloc(a->items, a->capacity * sizeof *a->items));
    }
    a->items[a->count++] = address;
}

/* All of standard input, with a NUL. */
static char *read_input(void)
{
    size_t size = 0, capacity = 1 << 20;
    char *text = need(malloc(capacity));
    ssize_t n;

    while ((n = read(STDIN_FILENO, text + size, capacity - size - 1)) > 0) {
        size += (size_t)n;
        if (size == capacity - 1)
            text = need(realloc(text, capacity *= 2));
    }
    if (n < 0)
        die("standard input", strerror(errno));
    text[size] = '\0';
    return text;
}

/* The value of a hexadecimal digit; 16 and more: it is none. */
static unsigned digit_of(char c)
{
    unsigned letter = ((unsigned char)c | 0x20u) - 'a';

    return c >= '0' && c <= '9' ? (unsigned)(c - '0') : letter < 6 ? letter + 10 : 16;
}

static struct addresses read_addresses(void)
{
    struct addresses a = {0};
    char *text = read_input();

    for (const char *at = text; *at != '\0'; at++) {
        uint64_t address = 0;
        const char *first = at += at[0] == '0' && at[1] == 'x' ? 2 : 0;

        for (unsigned digit; (digit = digit_of(*at)) < 16; at++)
            address = address << 4 | digit;
        if (at == first || at - first > 16 || *at != '\n')
            die("standard input", "a line is not an address");
        add_address(&a, address);
    }
    free(text);
    if (a.count == 0)
        die("standard input", "no addresses");
    return a;
}

static struct addresses other_addresses(const struct image *f, size_t count)
{
    struct addresses a = {0};
    uint64_t state = OTHER_SEED;

    while (a.count < count)
        add_address(&a, random_address(f, &state));
    return a;
}

static int compare_addresses(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

static void shuffle(struct addresses *a)
{
    uint64_t state = ORDER_SEED;

    for (size_t i = a->count; i > 1; i--) {
        size_t k = next_random(&state) % i;
        uint64_t address = a->items[i - 1];

        a->items[i - 1] = a->items[k];
        a->items[k] = address;
    }
}

/* ---- asking ---- */

/* A context with one module: the executable segment as a loader maps it. */
static struct sym_context *open_context(const struct image *f, const char *path, uint32_t *module)
{
    struct sym_options options = {.size = sizeof options, .demangle = SYM_DEMANGLE_NONE};
    struct sym_context *c = need(sym_context_new());
    uint64_t down = f->code.p_vaddr % PAGE;
    struct sym_module m = {
        .size = sizeof m,
        .path = path,
        .start = LOAD_ADDRESS + f->code.p_vaddr - down,
        .end = LOAD_ADDRESS + (f->code.p_vaddr + f->code.p_memsz + PAGE - 1) / PAGE * PAGE,
        .file_offset = f->code.p_offset - down,
    };

    if (sym_context_open(c, &options) != 0)
        die("sym_context_open", sym_context_error(c));
    if (sym_module_add(c, &m, module) != 0)
        die(path, sym_context_error(c));
    return c;
}

static struct sym_query query_of(const struct image *f, uint32_t module, uint64_t address)
{
    return (struct sym_query){.module = module,
                              .abs = LOAD_ADDRESS + address,
                              .rel = address - f->code.p_vaddr + f->code.p_offset};
}

static struct sym_query *queries_of(const struct image *f, uint32_t module,
                                    const struct addresses *a)
{
    struct sym_query *queries = table(a->count, sizeof *queries);

    for (size_t i = 0; i < a->count; i++)
        queries[i] = query_of(f, module, a->items[i]);
    return queries;
}

static void ask_many(struct sym_context *c, const struct sym_query *queries, size_t count,
                     struct sym_answer *answers)
{
    if (sym_resolve_many(c, queries, count, answers) != 0)
        die("sym_resolve_many", sym_context_error(c));
}

static double many_ns(struct sym_context *c, const struct image *f, uint32_t module,
                      const struct addresses *a)
{
    struct sym_query *queries = queries_of(f, module, a);
    struct sym_answer *answers = table(a->count, sizeof *answers);
    double begin = now();

    ask_many(c, queries, a->count, answers);
    begin = now() - begin;
    free(queries);
    free(answers);
    return begin / (double)a->count * 1e9;
}

static double single_ns(struct sym_context *c, const struct image *f, uint32_t module,
                        const struct addresses *a)
{
    struct sym_query *queries = queries_of(f, module, a);
    double begin = now();

    for (size_t i = 0; i < a->count; i++) {
        const struct sym_frame *frames;
        size_t count;

        if (sym_resolve(c, &queries[i], &frames, &count) != 0)
            die("sym_resolve", sym_context_error(c));
    }
    begin = now() - begin;
    free(queries);
    return begin / (double)a->count * 1e9;
}

/* ---- answers ---- */

static const char *text_of(const char *text)
{
    return text == NULL ? "??" : text;
}

static const char *name_of(const struct sym_frame *f)
{
    return text_of(f->raw_name != NULL ? f->raw_name : f->name);
}

/* Text on its way to standard output: what stdio does for a few bytes would take a tenth of the whole time. */
static struct {
    size_t used;
    char bytes[(size_t)256 * 1024];
} output;

static void write_out(const char *bytes, size_t size)
{
    while (size > 0) {
        ssize_t n = write(STDOUT_FILENO, bytes, size);

        if (n < 0)
            die("standard output", strerror(errno));
        bytes += n;
        size -= (size_t)n;
    }
}

static void flush_output(void)
{
    write_out(output.bytes, output.used);
    output.used = 0;
}

/* Room for that many bytes. */
static char *room_of(size_t size)
{
    if (size > sizeof output.bytes - output.used)
        flush_output();
    return output.bytes + output.used;
}

static void put_text(const char *text, char last)
{
    size_t size = strlen(text);
    char *to = room_of(size + 1);

    if (size >= sizeof output.bytes) { /* longer than all the room there is */
        write_out(text, size);
        size = 0;
    }
    memcpy(to, text, size);
    to[size] = last;
    output.used += size + 1;
}

/* The digits of the numbers below a thousand, which are most lines and columns. */
static struct {
    char digits[3];
    uint8_t count;
} small_numbers[1000];

static void fill_small_numbers(void)
{
    for (unsigned i = 0; i < 1000; i++) {
        char text[4];
        int n = snprintf(text, sizeof text, "%u", i);

        memcpy(small_numbers[i].digits, text, sizeof small_numbers[i].digits);
        small_numbers[i].count = (uint8_t)n;
    }
}

static void put_number(uint32_t number, char last)
{
    char digits[10];
    size_t first = sizeof digits;
    char *to = room_of(sizeof digits + 1);

    if (number < 1000) {
        memcpy(to, small_numbers[number].digits, sizeof small_numbers[number].digits);
        to[small_numbers[number].count] = last;
        output.used += small_numbers[number].count + 1u;
        return;
    }
    do
        digits[--first] = (char)('0' + number % 10);
    while ((number /= 10) != 0);
    memcpy(to, digits + first, sizeof digits - first);
    to[sizeof digits - first] = last;
    output.used += sizeof digits - first + 1;
}

static void print_answers(const struct sym_answer *answers, size_t count)
{
    fill_small_numbers();
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < answers[i].count; k++) {
            const struct sym_frame *f = &answers[i].frames[k];

            put_text(name_of(f), '\n');
            put_text(text_of(f->file), ':');
            put_number(f->line, ':');
            put_number(f->column, '\n');
        }
        *room_of(1) = '\n';
        output.used++;
    }
    flush_output();
}

static uint64_t mix(uint64_t sum, const char *text)
{
    for (; *text != '\0'; text++)
        sum = (sum ^ (uint8_t)*text) * UINT64_C(0x100000001b3);
    return sum;
}

/* So that a run that finds nothing is seen. It does not depend on the order of addresses. */
static void print_found(const struct sym_answer *answers, size_t count)
{
    uint64_t frames = 0, inlined = 0, lines = 0, checksum = 0;

    for (size_t i = 0; i < count; i++) {
        frames += answers[i].count;
        for (size_t k = 0; k < answers[i].count; k++) {
            const struct sym_frame *f = &answers[i].frames[k];

            inlined += f->inlined;
            lines += f->line != 0;
            checksum += mix(mix(f->line * UINT64_C(31) + f->column, name_of(f)), text_of(f->file));
        }
    }
    printf(" frames %" PRIu64 " inlined %" PRIu64 " lines %" PRIu64 " checksum %016" PRIx64, frames,
           inlined, lines, checksum);
}

/* ---- modes ---- */

static void run_answer(const char *path)
{
    struct image f = open_image(path);
    char *absolute = need(realpath(path, NULL));
    struct addresses a = read_addresses();
    uint32_t module;
    struct sym_context *c = open_context(&f, absolute, &module);
    struct sym_query *queries = queries_of(&f, module, &a);
    struct sym_answer *answers = need(malloc(a.count * sizeof *answers));

    ask_many(c, queries, a.count, answers);
    print_answers(answers, a.count);
}

static void run_passes(const char *path)
{
    struct image f = open_image(path);
    char *absolute = need(realpath(path, NULL));
    struct addresses a = read_addresses();
    struct addresses other = other_addresses(&f, a.count);
    struct sym_answer *answers = table(a.count, sizeof *answers);
    struct sym_query *queries = queries_of(&f, 0, &a);
    uint32_t module;
    struct sym_context *c;
    struct rusage usage;
    double begin = now();

    c = open_context(&f, absolute, &module);
    for (size_t i = 0; i < a.count; i++)
        queries[i].module = module;
    ask_many(c, queries, a.count, answers);
    printf("seconds %.5f", now() - begin);
    getrusage(RUSAGE_SELF, &usage);
    printf(" peak_kib %ld", usage.ru_maxrss);
    print_found(answers, a.count);

    qsort(a.items, a.count, sizeof *a.items, compare_addresses);
    printf(" sorted_ns %.1f", many_ns(c, &f, module, &a));
    shuffle(&a);
    printf(" shuffled_ns %.1f", many_ns(c, &f, module, &a));
    printf(" single_ns %.1f", single_ns(c, &f, module, &a));
    other.count /= 2;
    printf(" other_many_ns %.1f", many_ns(c, &f, module, &other));
    other.items += other.count;
    printf(" other_single_ns %.1f\n", single_ns(c, &f, module, &other));
    sym_context_free(c);
}

static void run_read(const char *path)
{
    struct image f = open_image(path);
    uint64_t size, sum;
    Elf64_Ehdr h;
    double begin = now();

    read_at(&f, &h, sizeof h, 0);
    sum = read_debug_sections(&f, &h, &size);
    printf("seconds %.5f bytes %" PRIu64 " checksum %" PRIx64 "\n", now() - begin, size, sum);
}

static _Noreturn void usage(void)
{
    fputs("usage: bench_dwarf addresses|offsets FILE N SEED\n"
          "       bench_dwarf answer|passes|read FILE\n",
          stderr);
    exit(2);
}

int main(int argc, char **argv)
{
    if (argc == 5 && (strcmp(argv[1], "addresses") == 0 || strcmp(argv[1], "offsets") == 0))
        print_random(argv[2], strtoull(argv[3], NULL, 10), strtoull(argv[4], NULL, 10),
                     argv[1][0] == 'o');
    else if (argc == 3 && strcmp(argv[1], "answer") == 0)
        run_answer(argv[2]);
    else if (argc == 3 && strcmp(argv[1], "read") == 0)
        run_read(argv[2]);
    else if (argc == 3 && strcmp(argv[1], "passes") == 0)
        run_passes(argv[2]);
    else
        usage();
    return 0;
}
