/* SPDX-License-Identifier: MIT */
/*
 * chains [-i] [-v] [-c] [--debug-dir DIR] FILE: resolves the addresses on standard input, hexadecimal and as the ELF file
 * states them, through the public API, and prints what `llvm-symbolizer --inlines --functions=linkage --no-demangle` prints.
 * Of a relocatable file an address is the file offset of the byte.
 *   -i  no inlined functions
 *   -v  as with --verbose, which tells first lines of functions
 *   -c  asks again, one by one in shuffled order, and fails unless the answers are the same; and without inlined
 *       functions and without lines, where what is left must be a part of them
 * chains -d FILE: as above, but prints what the library says of the file, in one line
 * chains -p COUNT FILE: prints COUNT addresses of code but linkage stubs, the same ones every time: all of it if it is
 * smaller, else first and last bytes of functions, small sections, and the rest anywhere.
 */
#include "spool/sym.h"

#include <elf.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct program {
    uint8_t *bytes;
    size_t size;
    bool wide, swap, relocatable;
};

struct table { /* of program headers, sections or symbols */
    uint64_t offset, entry_size, count;
};

static void die(const char *what, const char *which)
{
    fprintf(stderr, "chains: %s: %s\n", which, what);
    exit(1);
}

static void *need(void *memory)
{
    if (memory == NULL)
        die("out of memory", "chains");
    return memory;
}

static void read_program(const char *path, struct program *p)
{
    FILE *f = fopen(path, "rb");
    if (f == NULL || fseek(f, 0, SEEK_END) != 0)
        die("cannot be opened", path);
    p->size = (size_t)ftell(f);
    rewind(f);
    p->bytes = need(malloc(p->size + 1));
    if (fread(p->bytes, 1, p->size, f) != p->size || p->size < sizeof(Elf64_Ehdr) ||
        memcmp(p->bytes, ELFMAG, SELFMAG) != 0)
        die("no ELF file", path);
    fclose(f);
    p->wide = p->bytes[EI_CLASS] == ELFCLASS64;
    p->swap = p->bytes[EI_DATA] == ELFDATA2MSB;
}

static uint64_t number(const struct program *p, uint64_t offset, unsigned size)
{
    uint64_t value = 0;
    if (offset > p->size || size > p->size - offset)
        die("a header leads outside", "file");
    for (unsigned i = 0; i < size; i++)
        value = value << 8 | p->bytes[offset + (p->swap ? i : size - 1 - i)];
    return value;
}

#define FIELD(p, offset, type, field)                                  \
    ((p)->wide ? number((p), (offset) + offsetof(Elf64_##type, field), \
                        sizeof(((Elf64_##type *)0)->field))            \
               : number((p), (offset) + offsetof(Elf32_##type, field), \
                        sizeof(((Elf32_##type *)0)->field)))

static struct table sections_of(const struct program *p)
{
    return (struct table){FIELD(p, 0, Ehdr, e_shoff), FIELD(p, 0, Ehdr, e_shentsize),
                          FIELD(p, 0, Ehdr, e_shnum)};
}

/* ---- addresses ---- */

struct addresses {
    uint64_t *at;
    size_t count, room;
};

static void put(struct addresses *a, uint64_t address)
{
    if (a->count == a->room) {
        a->room = a->room * 2 + 1024;
        a->at = need(realloc(a->at, a->room * sizeof(*a->at)));
    }
    a->at[a->count++] = address;
}

static uint64_t next_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 33;
}

/* A range of code: `address` of its first byte in the terms of the driver. */
struct code {
    uint64_t address, vaddr, size;
    uint64_t section;
};

/* Linkage stubs have names that nobody else gives. */
static bool is_stubs(const struct program *p, uint64_t section_names, uint64_t section)
{
    static const char *const names[] = {".plt", ".iplt"};
    uint64_t at = FIELD(p, section_names, Shdr, sh_offset) + FIELD(p, section, Shdr, sh_name);
    for (size_t i = 0; i < 2; i++)
        if (at + strlen(names[i]) < p->size &&
            memcmp(p->bytes + at, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

static size_t find_code(const struct program *p, struct code *out, size_t room)
{
    struct table t = sections_of(p);
    uint64_t section_names = t.offset + FIELD(p, 0, Ehdr, e_shstrndx) * t.entry_size;
    size_t n = 0;
    for (uint64_t i = 0; i < t.count && n < room; i++) {
        uint64_t s = t.offset + i * t.entry_size;
        uint64_t flags = FIELD(p, s, Shdr, sh_flags);
        if (FIELD(p, s, Shdr, sh_type) != SHT_PROGBITS || (flags & SHF_EXECINSTR) == 0 ||
            (flags & SHF_ALLOC) == 0 || FIELD(p, s, Shdr, sh_size) == 0 ||
            is_stubs(p, section_names, s))
            continue;
        out[n].vaddr = FIELD(p, s, Shdr, sh_addr);
        out[n].address = p->relocatable ? FIELD(p, s, Shdr, sh_offset) : out[n].vaddr;
        out[n].size = FIELD(p, s, Shdr, sh_size);
        out[n++].section = i;
    }
    return n;
}

static void pick_functions(const struct program *p, const struct code *code, size_t code_count,
                           struct addresses *out)
{
    struct table t = sections_of(p);
    for (uint64_t i = 0; i < t.count; i++) {
        uint64_t s = t.offset + i * t.entry_size;
        if (FIELD(p, s, Shdr, sh_type) != SHT_SYMTAB)
            continue;
        uint64_t first = FIELD(p, s, Shdr, sh_offset);
        uint64_t entry = FIELD(p, s, Shdr, sh_entsize);
        for (uint64_t k = 0; entry > 0 && k < FIELD(p, s, Shdr, sh_size) / entry; k++) {
            uint64_t symbol = first + k * entry;
            uint64_t size = FIELD(p, symbol, Sym, st_size);
            uint64_t value = FIELD(p, symbol, Sym, st_value);
            if ((FIELD(p, symbol, Sym, st_info) & 0xf) != STT_FUNC || size == 0)
                continue;
            for (size_t c = 0; c < code_count; c++) {
                if (code[c].section != FIELD(p, symbol, Sym, st_shndx))
                    continue;
                uint64_t start = value - (p->relocatable ? 0 : code[c].vaddr) + code[c].address;
                put(out, start);
                put(out, start + size - 1);
            }
        }
    }
}

static int by_address(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void print_sorted(struct addresses *a)
{
    qsort(a->at, a->count, sizeof(*a->at), by_address);
    for (size_t i = 0; i < a->count; i++)
        if (i == 0 || a->at[i] != a->at[i - 1])
            printf("0x%" PRIx64 "\n", a->at[i]);
}

static int pick(const struct program *p, size_t want)
{
    struct code code[512];
    size_t count = find_code(p, code, 512);
    uint64_t total = 0;
    uint64_t state = 20260101;
    struct addresses some = {0}, edges = {0};
    for (size_t c = 0; c < count; c++)
        total += code[c].size;
    for (size_t c = 0; c < count; c++)
        if (total <= want || (code[c].size <= 512 && some.count + code[c].size <= want / 8))
            for (uint64_t i = 0; i < code[c].size; i++)
                put(&some, code[c].address + i);
    if (total > want) {
        pick_functions(p, code, count, &edges);
        for (size_t i = 0; i < edges.count; i++)
            if (next_random(&state) % edges.count < want / 4)
                put(&some, edges.at[i]);
        while (some.count < want) {
            uint64_t at = (next_random(&state) << 31 | next_random(&state)) % total;
            size_t c = 0;
            for (; at >= code[c].size; c++)
                at -= code[c].size;
            put(&some, code[c].address + at);
        }
    }
    print_sorted(&some);
    free(some.at);
    free(edges.at);
    return 0;
}

/* ---- answers ---- */

/* File offset of an address; 0 (nothing that runs) where there is none. */
static uint64_t offset_of(const struct program *p, uint64_t vaddr)
{
    struct table t = {FIELD(p, 0, Ehdr, e_phoff), FIELD(p, 0, Ehdr, e_phentsize),
                      FIELD(p, 0, Ehdr, e_phnum)};
    if (p->relocatable)
        return vaddr;
    for (uint64_t i = 0; i < t.count; i++) {
        uint64_t h = t.offset + i * t.entry_size;
        uint64_t start = FIELD(p, h, Phdr, p_vaddr);
        if (FIELD(p, h, Phdr, p_type) == PT_LOAD && (FIELD(p, h, Phdr, p_flags) & PF_X) != 0 &&
            vaddr >= start && vaddr - start < FIELD(p, h, Phdr, p_filesz))
            return vaddr - start + FIELD(p, h, Phdr, p_offset);
    }
    return 0;
}

static const char *raw_of(const struct sym_frame *f)
{
    const char *name = f->raw_name != NULL ? f->raw_name : f->name;
    return name != NULL ? name : "??";
}

static void print_frame(const struct sym_frame *f, bool verbose)
{
    const char *file = f->file != NULL ? f->file : "??";
    if (!verbose) {
        printf("%s\n%s:%" PRIu32 ":%" PRIu32 "\n", raw_of(f), file, f->line, f->column);
        return;
    }
    printf("%s\n  Filename: %s\n", raw_of(f), file);
    if (f->start_line != 0)
        printf("  Function start line: %" PRIu32 "\n", f->start_line);
    printf("  Line: %" PRIu32 "\n  Column: %" PRIu32 "\n", f->line, f->column);
}

static bool same_text(const char *a, const char *b)
{
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

static bool same_answer(const struct sym_answer *a, const struct sym_frame *frames, size_t count)
{
    if (a->count != count)
        return false;
    for (size_t i = 0; i < count; i++) {
        const struct sym_frame *x = &a->frames[i], *y = &frames[i];
        if (!same_text(raw_of(x), raw_of(y)) || !same_text(x->file, y->file) ||
            x->line != y->line || x->column != y->column || x->start_line != y->start_line ||
            x->inlined != y->inlined || x->function_start != y->function_start ||
            x->origin != y->origin)
            return false;
    }
    return true;
}

static struct sym_context *open_context(const struct sym_options *options, const char *path,
                                        uint32_t *handle)
{
    struct sym_context *c = sym_context_new();
    struct sym_module m = {
        .size = sizeof(m), .path = path, .start = UINT64_C(1) << 40, .end = UINT64_C(1) << 47};
    if (c == NULL || sym_context_open(c, options) != 0 || sym_module_add(c, &m, handle) != 0)
        die(c != NULL ? sym_context_error(c) : "out of memory", path);
    return c;
}

/* The physical function alone, with the line in it: `a` is the whole chain. */
static bool is_outer(const struct sym_answer *a, const struct sym_frame *frames, size_t count)
{
    const struct sym_frame *x = &a->frames[a->count - 1];
    return count == 1 && same_text(raw_of(x), raw_of(frames)) && same_text(x->file, frames->file) &&
           x->line == frames->line && x->column == frames->column &&
           x->function_start == frames->function_start && !frames->inlined;
}

/* The chain with an innermost entry that has no line. */
static bool is_lineless(const struct sym_answer *a, const struct sym_frame *frames, size_t count)
{
    if (a->count != count || frames->line != 0 || frames->file != NULL || frames->column != 0 ||
        !same_text(raw_of(a->frames), raw_of(frames)))
        return false;
    struct sym_answer rest = {a->frames + 1, count - 1};
    return same_answer(&rest, frames + 1, count - 1);
}

typedef bool same_fn(const struct sym_answer *a, const struct sym_frame *frames, size_t count);

/* Number of addresses that get another answer one by one in another order, from a context of their own. */
static size_t ask_again(const struct sym_options *options, const char *path, same_fn *same,
                        struct sym_query *queries, const struct sym_answer *answers, size_t count)
{
    uint32_t handle;
    struct sym_context *c = open_context(options, path, &handle);
    size_t *order = need(malloc((count + 1) * sizeof(*order)));
    uint64_t state = 7;
    size_t different = 0;
    for (size_t i = 0; i < count; i++) {
        size_t other = (size_t)(next_random(&state) % (i + 1));
        order[i] = order[other];
        order[other] = i;
    }
    for (size_t i = 0; i < count; i++) {
        const struct sym_frame *frames;
        size_t n;
        struct sym_query q = queries[order[i]];
        q.module = handle;
        if (sym_resolve(c, &q, &frames, &n) != 0)
            die(sym_context_error(c), path);
        if (same(&answers[order[i]], frames, n))
            continue;
        if (different++ < 5)
            fprintf(stderr, "chains: %s: another answer %sat file offset 0x%" PRIx64 "\n", path,
                    options->no_inlines ? "without inlines "
                    : options->no_lines ? "without lines "
                                        : "",
                    q.rel);
    }
    free(order);
    sym_context_free(c);
    return different;
}

static int resolve(const char *path, const struct program *p, const struct sym_options *options,
                   bool verbose, bool again, bool detail)
{
    struct addresses a = {0};
    uint64_t address;
    uint32_t handle;
    const char *said;
    while (scanf("%" SCNx64, &address) == 1)
        put(&a, address);
    struct sym_context *c = open_context(options, path, &handle);
    struct sym_query *queries = need(calloc(a.count + 1, sizeof(*queries)));
    struct sym_answer *answers = need(calloc(a.count + 1, sizeof(*answers)));
    for (size_t i = 0; i < a.count; i++) {
        uint64_t offset = offset_of(p, a.at[i]);
        queries[i] = (struct sym_query){
            .module = handle, .abs = (UINT64_C(1) << 40) + offset, .rel = offset};
    }
    if (sym_resolve_many(c, queries, a.count, answers) != 0)
        die(sym_context_error(c), path);
    for (size_t i = 0; i < a.count && !detail; i++) {
        for (size_t k = 0; k < answers[i].count; k++)
            print_frame(&answers[i].frames[k], verbose);
        putchar('\n');
    }
    size_t different = 0;
    if (again) {
        struct sym_options outer = *options, lineless = *options;
        outer.no_inlines = true;
        lineless.no_lines = true;
        different = ask_again(options, path, same_answer, queries, answers, a.count) +
                    ask_again(&outer, path, is_outer, queries, answers, a.count) +
                    ask_again(&lineless, path, is_lineless, queries, answers, a.count);
    }
    enum sym_miss miss = sym_module_state(c, handle, &said);
    if (detail)
        printf("%s: %s\n", sym_miss_text(miss), said);
    sym_context_free(c);
    free(a.at);
    free(queries);
    free(answers);
    return different > 0;
}

int main(int argc, char **argv)
{
    const char *debug_dir = NULL;
    bool verbose = false, again = false, detail = false;
    size_t want = 0;
    struct sym_options options = {.size = sizeof(options),
                                  .demangle = SYM_DEMANGLE_NONE,
                                  .perf_maps = SYM_PERF_MAPS_NONE,
                                  .debug_dirs = &debug_dir};
    int at = 1;
    for (; at + 1 < argc && argv[at][0] == '-'; at++) {
        if (strcmp(argv[at], "-i") == 0)
            options.no_inlines = true;
        else if (strcmp(argv[at], "-v") == 0)
            verbose = true;
        else if (strcmp(argv[at], "-c") == 0)
            again = true;
        else if (strcmp(argv[at], "-d") == 0)
            detail = true;
        else if (strcmp(argv[at], "-p") == 0)
            want = strtoull(argv[++at], NULL, 10);
        else if (strcmp(argv[at], "--debug-dir") == 0)
            debug_dir = argv[++at];
        else
            break;
    }
    if (at + 1 != argc)
        die("no such option or no file", at < argc ? argv[at] : "");
    options.debug_dir_count = debug_dir != NULL;

    struct program p = {0};
    char *path = realpath(argv[at], NULL); /* modules have absolute paths */
    if (path == NULL)
        die("no such file", argv[at]);
    read_program(path, &p);
    p.relocatable = FIELD(&p, 0, Ehdr, e_type) == ET_REL;
    int status = want > 0 ? pick(&p, want) : resolve(path, &p, &options, verbose, again, detail);
    free(p.bytes);
    free(path);
    return status;
}
