/* SPDX-License-Identifier: MIT */
/* Packed kernel symbols, kallsyms and perf maps: what was packed answers as what it was packed from. */
#include "context.h"
#include "kernel.h"
#include "perfmap.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define MAX 4096
#define TEXT_BYTES ((size_t)1 << 20)

static char folder[64];

/* ---- a kernel ---- */

static const struct sym_kernel_range ranges[] = {
    {.start = 0xffffffff81000000, .end = 0xffffffff81020000, .name = "[kernel.kallsyms]_text"},
    {.start = 0xffffffffc0000000, .end = 0xffffffffc0005000, .name = "[mod_a]"},
    {.start = 0xffffffffc0008000, .end = 0xffffffffc000a800, .name = "/lib/modules/x/mod-b.ko.xz"},
};

static char *put(char *p, uint64_t start, const char *rest)
{
    return p + sprintf(p, "%016llx %s\n", (unsigned long long)start, rest);
}

/* The kernel with several names at one address, two modules as they were loaded, BPF programs between them, gaps. */
static char *make_kallsyms(void)
{
    char *text = malloc(TEXT_BYTES);
    char rest[64];
    assert_non_null(text);
    char *p = put(text, 0xffffffff81000000, "T _text");
    for (unsigned i = 0; i < 400; i++) {
        uint64_t start = 0xffffffff81000000 + i * 0x130u;
        sprintf(rest, "%c f%u", i % 3 == 0 ? 'T' : 't', i);
        p = put(p, start, rest);
        if (i % 7 == 0) {
            sprintf(rest, "W weak_f%u", i);
            p = put(p, start, rest);
        }
        sprintf(rest, "%c inside_%u", i % 2 == 0 ? 'd' : 'R', i);
        p = put(p, start + 0x20, rest); /* no code, so it ends nothing */
    }
    for (unsigned i = 0; i < 40; i++) {
        sprintf(rest, "t b%u\t[mod_b]", i);
        p = put(p, 0xffffffffc0008000 + (i * 17 % 40) * 0x80u, rest);
        sprintf(rest, "%c a%u\t[mod_a]", i % 2 == 0 ? 't' : 'T', i);
        p = put(p, 0xffffffffc0000000 + i * 0x40u, rest);
    }
    p = put(p, 0xffffffffc0003000, "t a_last\t[mod_a]"); /* two pages long */
    p = put(p, 0xffffffffc0006100, "t bpf_prog_one\t[bpf]");
    p = put(p, 0xffffffffc0006300, "t bpf_prog_two\t[bpf]");
    p = put(p, 0xffffffffc000c000, "t bpf_prog_three\t[bpf]");
    p = put(p, 0xffffffffc000d000, "t kprobe\t[__builtin__kprobes]");
    put(p, 0xffffffffff000000, "t far_away");
    return text;
}

/* Ascending addresses all over it. */
static size_t make_addresses(uint64_t *out)
{
    size_t n = 0;
    for (uint64_t a = 0xffffffff80fffff0; a < 0xffffffff81021000; a += 0x4d)
        out[n++] = a;
    for (uint64_t a = 0xffffffffbffffff0; a < 0xffffffffc000f000; a += 0x4d)
        out[n++] = a;
    for (uint64_t a = 0xfffffffffefffff0; a < 0xffffffffff001100; a += 0x155)
        out[n++] = a;
    assert_true(n < MAX);
    return n;
}

static void write_file(const char *name, const void *data, size_t size)
{
    char path[160];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, size, f), size);
    assert_int_equal(fclose(f), 0);
}

static void make_folder(const char *name)
{
    char path[160];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    assert_int_equal(mkdir(path, 0700), 0);
}

static int set_up(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/test_pack_kernel.XXXXXX");
    assert_non_null(mkdtemp(folder));
    make_folder("store");
    make_folder("store/captures");
    make_folder("store/captures/c1");
    make_folder("maps");
    return 0;
}

static int tear_down(void **state)
{
    char command[128];
    (void)state;
    snprintf(command, sizeof(command), "rm -rf %s", folder);
    return system(command);
}

/* ---- contexts ---- */

struct setup {
    bool kallsyms; /* the file in the folder */
    bool store;    /* the archive */
    const uint64_t *needed;
    size_t needed_count;
    const struct sym_ksymbol *ksymbols;
    size_t ksymbol_count;
};

static struct sym_context *open_context(const struct setup *s)
{
    char store[96];
    char file[96];
    snprintf(store, sizeof(store), "%s/store", folder);
    snprintf(file, sizeof(file), "%s/kallsyms", folder);
    const char *const dirs[] = {store};
    struct sym_context *c = sym_context_new();
    assert_non_null(c);
    assert_int_equal(sym_context_open(c, &(struct sym_options){.size = sizeof(struct sym_options),
                                                               .symbol_dirs = dirs,
                                                               .symbol_dir_count = s->store}),
                     0);
    /* Of another boot: nothing of this machine counts. */
    assert_int_equal(sym_capture_begin(
                         c, &(struct sym_capture){.size = sizeof(struct sym_capture),
                                                  .boot_id = "00000000-0000-4000-8000-000000000000",
                                                  .id = "c1"}),
                     0);
    assert_int_equal(sym_kernel_load(c, &(struct sym_kernel){.size = sizeof(struct sym_kernel),
                                                             .kallsyms = s->kallsyms ? file : NULL,
                                                             .needed = s->needed,
                                                             .needed_count = s->needed_count,
                                                             .ranges = ranges,
                                                             .range_count = 3,
                                                             .ksymbols = s->ksymbols,
                                                             .ksymbol_count = s->ksymbol_count}),
                     0);
    return c;
}

static struct sym_query query_of(uint64_t address)
{
    return (struct sym_query){.module = SYM_NO_MODULE, .kernel = true, .abs = address, .time = 5};
}

static const struct sym_frame *ask(struct sym_context *c, uint64_t address)
{
    const struct sym_frame *frames;
    size_t count;
    struct sym_query q = query_of(address);
    assert_int_equal(sym_resolve(c, &q, &frames, &count), 0);
    assert_int_equal(count, 1);
    return frames;
}

static void check_same(const struct sym_frame *a, const struct sym_frame *b, uint64_t address)
{
    if ((a->name == NULL) != (b->name == NULL) ||
        (a->name != NULL && strcmp(a->name, b->name) != 0))
        fail_msg("%s instead of %s at %llx", b->name != NULL ? b->name : "nothing",
                 a->name != NULL ? a->name : "nothing", (unsigned long long)address);
    assert_int_equal(a->function_start, b->function_start);
    assert_int_equal(a->offset, b->offset);
    assert_int_equal(a->origin, b->origin);
    assert_int_equal(a->flags, b->flags);
    assert_int_equal(a->kind, b->kind);
    assert_int_equal(a->miss, b->miss);
}

static struct sym_packed pack(struct sym_context *c, const uint64_t *addresses, size_t count,
                              const struct sym_archive *known)
{
    static struct sym_query queries[MAX];
    struct sym_packed packed;
    for (size_t i = 0; i < count; i++)
        queries[i] = query_of(addresses[i]);
    struct sym_pack_options options = {.size = sizeof(options),
                                       .level = SYM_LEVEL_NAMES,
                                       .known = &known,
                                       .known_count = known != NULL};
    assert_int_equal(sym_pack_kernel(c, queries, count, &options, &packed), 0);
    return packed;
}

static void write_kallsyms(void)
{
    char *text = make_kallsyms();
    write_file("kallsyms", text, strlen(text));
    free(text);
}

/* ---- packed symbols ---- */

static void packed_addresses_answer_as_the_kernel_did(void **state)
{
    (void)state;
    static uint64_t addresses[MAX];
    size_t count = make_addresses(addresses);
    write_kallsyms();
    struct sym_context *a =
        open_context(&(struct setup){.kallsyms = true, .needed = addresses, .needed_count = count});
    struct sym_packed packed = pack(a, addresses, count, NULL);
    assert_non_null(packed.data);
    assert_int_equal(packed.address_count, count);
    assert_int_equal(packed.known_count, 0);
    write_file("store/captures/c1/kernel.syms", packed.data, packed.size_bytes);
    struct sym_context *b = open_context(&(struct setup){.store = true});
    assert_int_equal(sym_kernel_state(b), SYM_KERNEL_OK);
    char detail[128];
    snprintf(detail, sizeof(detail), "%s/store/captures/c1/kernel.syms: %zu addresses", folder,
             packed.named_count);
    assert_string_equal(sym_kernel_detail(b), detail);
    size_t named = 0;
    for (size_t i = 0; i < count; i++) {
        check_same(ask(a, addresses[i]), ask(b, addresses[i]), addresses[i]);
        named += ask(a, addresses[i])->name != NULL;
    }
    assert_int_equal(packed.named_count, named);
    assert_true(named > 1500 && named < count - 100);
    assert_string_equal(ask(b, 0xffffffffc0003000 + 8)->name, "a_last [mod_a]");

    /* The same addresses give the same bytes, in whatever order and how often they come. */
    for (size_t i = 0; i < count / 2; i++) {
        uint64_t swap = addresses[i];
        addresses[i] = addresses[count - 1 - i];
        addresses[count - 1 - i] = swap;
    }
    addresses[count] = addresses[7];
    struct sym_packed again = pack(b, addresses, count + 1, NULL);
    assert_int_equal(again.size_bytes, packed.size_bytes);
    assert_memory_equal(again.data, packed.data, packed.size_bytes);
    free(again.data);
    free(packed.data);
    sym_context_free(a);
    sym_context_free(b);
}

static void other_addresses_get_the_function_around_them(void **state)
{
    (void)state;
    /* In f1, in f399, in the last function of mod_a and in a BPF program. */
    const uint64_t addresses[] = {0xffffffff81000140, 0xffffffff8101da00, 0xffffffffc0004ff0,
                                  0xffffffffc0006110};
    write_kallsyms();
    struct sym_context *a = open_context(&(struct setup){.kallsyms = true});
    struct sym_packed packed = pack(a, addresses, 4, NULL);
    write_file("store/captures/c1/kernel.syms", packed.data, packed.size_bytes);
    free(packed.data);
    sym_context_free(a);
    struct sym_context *b = open_context(&(struct setup){.store = true});
    assert_string_equal(ask(b, 0xffffffff81000130)->name, "f1");
    assert_string_equal(ask(b, 0xffffffff8100025f)->name, "f1");
    assert_null(ask(b, 0xffffffff8100012f)->name);
    assert_null(ask(b, 0xffffffff81000260)->name);
    assert_string_equal(ask(b, 0xffffffff8101ffff)->name, "f399"); /* the range ends there */
    assert_null(ask(b, 0xffffffff81020000)->name);
    assert_string_equal(ask(b, 0xffffffffc0003000)->name, "a_last [mod_a]");
    assert_null(ask(b, 0xffffffffc0005000)->name);
    assert_string_equal(ask(b, 0xffffffffc00062ff)->name, "bpf_prog_one [bpf]");
    assert_null(ask(b, 0xffffffffc0006300)->name);
    sym_context_free(b);

    /* Kallsyms of the kernel know more than the function around. */
    b = open_context(&(struct setup){.store = true, .kallsyms = true});
    assert_string_equal(ask(b, 0xffffffff81000260)->name, "f2");
    assert_string_equal(sym_kernel_detail(b), "");
    sym_context_free(b);
}

static void programs_that_come_and_go_are_left_out(void **state)
{
    (void)state;
    const struct sym_ksymbol events[] = {
        {.time = 1, .address = 0xffffffffc0006100, .length_bytes = 0x80, .name = "bpf_prog_x"}};
    const uint64_t addresses[] = {0xffffffffc0006110, 0xffffffffc0006180};
    write_kallsyms();
    struct setup s = {.kallsyms = true, .ksymbols = events, .ksymbol_count = 1};
    struct sym_context *c = open_context(&s);
    struct sym_packed packed = pack(c, addresses, 2, NULL);
    assert_int_equal(packed.address_count, 1);
    assert_int_equal(packed.named_count, 1);
    write_file("store/captures/c1/kernel.syms", packed.data, packed.size_bytes);
    free(packed.data);
    struct sym_query q = query_of(addresses[0]);
    assert_int_equal(sym_pack_kallsyms(c, &q, 1, &packed), 0);
    assert_null(packed.data);
    assert_int_equal(packed.address_count, 0);
    sym_context_free(c);
    s.kallsyms = false;
    s.store = true;
    c = open_context(&s);
    assert_string_equal(ask(c, addresses[0])->name, "bpf_prog_x");
    assert_string_equal(ask(c, addresses[1])->name, "bpf_prog_one [bpf]");
    sym_context_free(c);
}

static void what_is_known_is_packed_again_only_with_something_new(void **state)
{
    (void)state;
    const uint64_t addresses[] = {0xffffffff81000140, 0xffffffff81001000, 0xffffffffc0000048};
    char store[96];
    struct sym_archive *known = sym_archive_new();
    assert_non_null(known);
    snprintf(store, sizeof(store), "%s/store", folder);
    write_kallsyms();
    struct sym_context *c = open_context(&(struct setup){.kallsyms = true});
    struct sym_packed first = pack(c, addresses, 2, NULL);
    write_file("store/captures/c1/kernel.syms", first.data, first.size_bytes);
    free(first.data);
    assert_int_equal(sym_archive_open(known, store), 0);
    struct sym_packed second = pack(c, addresses, 2, known);
    assert_null(second.data);
    assert_int_equal(second.address_count, 2);
    assert_int_equal(second.known_count, 2);
    assert_int_equal(second.named_count, 2);
    /* One that has no name is nothing new. */
    const uint64_t nowhere[] = {addresses[0], 0xffffffff81020010};
    second = pack(c, nowhere, 2, known);
    assert_null(second.data);
    assert_int_equal(second.named_count, 1);
    /* The file takes the place of the first one, and has what that has: even if nothing else has it now. */
    sym_context_free(c);
    char *text = make_kallsyms();
    char *module = strstr(text, "\nffffffffc0");
    write_file("kallsyms", module + 1, strlen(module + 1));
    free(text);
    c = open_context(&(struct setup){.kallsyms = true});
    second = pack(c, addresses, 3, known);
    assert_int_equal(second.known_count, 2);
    assert_int_equal(second.named_count, 3);
    write_file("store/captures/c1/kernel.syms", second.data, second.size_bytes);
    free(second.data);
    sym_archive_free(known);
    sym_context_free(c);
    c = open_context(&(struct setup){.store = true});
    assert_string_equal(ask(c, addresses[0])->name, "f1");
    assert_string_equal(ask(c, addresses[1])->name, "f13");
    assert_string_equal(ask(c, addresses[2])->name, "a1 [mod_a]");
    sym_context_free(c);
}

static void a_damaged_file_is_told(void **state)
{
    (void)state;
    const uint64_t addresses[] = {0xffffffff81000140};
    write_kallsyms();
    struct sym_context *c = open_context(&(struct setup){.kallsyms = true});
    struct sym_packed packed = pack(c, addresses, 1, NULL);
    packed.data[packed.size_bytes - 2] ^= 1;
    write_file("store/captures/c1/kernel.syms", packed.data, packed.size_bytes);
    free(packed.data);
    sym_context_free(c);
    c = open_context(&(struct setup){.store = true});
    assert_int_equal(sym_kernel_state(c), SYM_KERNEL_OTHER_BOOT);
    assert_non_null(strstr(sym_kernel_detail(c), "captures/c1/kernel.syms: "));
    assert_null(ask(c, addresses[0])->name);
    sym_context_free(c);
    c = open_context(&(struct setup){.store = true, .kallsyms = true});
    assert_int_equal(sym_kernel_state(c), SYM_KERNEL_OK);
    assert_non_null(strstr(sym_kernel_detail(c), "captures/c1/kernel.syms: "));
    assert_string_equal(ask(c, addresses[0])->name, "f1");
    sym_context_free(c);
}

static void nothing_known_is_nothing_packed(void **state)
{
    (void)state;
    const uint64_t address = 0xffffffff81000140;
    struct sym_packed packed;
    struct sym_query q = query_of(address);
    struct sym_pack_options options = {.size = sizeof(options), .level = SYM_LEVEL_LINES};
    struct sym_context *c = open_context(&(struct setup){.store = false});
    assert_int_equal(sym_pack_kernel(c, &q, 1, &options, &packed), 0);
    assert_null(packed.data);
    assert_int_equal(packed.address_count, 1);
    assert_int_equal(packed.named_count, 0);
    assert_int_equal(sym_pack_kallsyms(c, &q, 1, &packed), 0);
    assert_null(packed.data);
    assert_int_equal(sym_pack_kernel(c, NULL, 0, &options, &packed), 0);
    assert_null(packed.data);
    options.level = 7;
    assert_int_equal(sym_pack_kernel(c, &q, 1, &options, &packed), SYM_ERR_MISUSE);
    q.module = 3;
    assert_int_equal(sym_pack_kallsyms(c, &q, 1, &packed), SYM_ERR_MISUSE);
    sym_context_free(c);
}

/* ---- kallsyms ---- */

static struct sym_packed pack_kallsyms(struct sym_context *c, const uint64_t *addresses,
                                       size_t count)
{
    static struct sym_query queries[MAX];
    struct sym_packed packed;
    for (size_t i = 0; i < count; i++)
        queries[i] = query_of(addresses[i]);
    assert_int_equal(sym_pack_kallsyms(c, queries, count, &packed), 0);
    return packed;
}

static void parse(struct symint_kernel *k, const struct sym_packed *packed,
                  const struct sym_kernel *kernel)
{
    enum sym_kernel_state parsed;
    char *copy = malloc(packed->size_bytes + 1);
    assert_non_null(copy);
    memcpy(copy, packed->data, packed->size_bytes);
    copy[packed->size_bytes] = '\0';
    assert_int_equal(symint_kernel_parse(k, copy, packed->size_bytes, kernel, &parsed), 0);
    assert_int_equal(parsed, SYM_KERNEL_OK);
}

static void check_symbol(const struct symint_kernel *from, const struct symint_kernel *packed,
                         uint64_t address, bool end)
{
    struct symint_kernel_symbol a;
    struct symint_kernel_symbol b;
    bool found = symint_kernel_find(from, address, &a);
    if (symint_kernel_find(packed, address, &b) != found)
        fail_msg("%s at %llx", found ? "nothing" : "a name", (unsigned long long)address);
    if (!found)
        return;
    if (a.name_size != b.name_size || memcmp(a.name, b.name, a.name_size) != 0 ||
        a.start != b.start || (end && a.end != b.end))
        fail_msg("%.*s %llx to %llx instead of %.*s %llx to %llx", (int)b.name_size, b.name,
                 (unsigned long long)b.start, (unsigned long long)b.end, (int)a.name_size, a.name,
                 (unsigned long long)a.start, (unsigned long long)a.end);
    assert_int_equal(a.owner_size, b.owner_size);
    if (a.owner_size > 0)
        assert_memory_equal(a.owner, b.owner, a.owner_size);
}

/* Packs some of the addresses; parsed as lines they answer as before, in either mode. */
static void check_kallsyms(const uint64_t *addresses, size_t count, bool sparse)
{
    struct sym_context *c = open_context(&(struct setup){
        .kallsyms = true, .needed = sparse ? addresses : NULL, .needed_count = sparse ? count : 0});
    struct sym_packed packed = pack_kallsyms(c, addresses, count);
    assert_int_equal(packed.address_count, count);
    if (packed.data == NULL) {
        assert_int_equal(packed.named_count, 0);
        sym_context_free(c);
        return;
    }
    const struct sym_kernel kernels[] = {
        {.ranges = ranges, .range_count = 3},
        {.ranges = ranges, .range_count = 3, .needed = addresses, .needed_count = count}};
    for (int i = 0; i < 2; i++) {
        struct symint_kernel k;
        parse(&k, &packed, &kernels[i]);
        for (size_t j = 0; j < count; j++)
            check_symbol(&c->kernel, &k, addresses[j], true);
        symint_kernel_free(&k);
    }
    free(packed.data);
    sym_context_free(c);
}

static void packed_lines_answer_as_all_lines_did(void **state)
{
    (void)state;
    static uint64_t addresses[MAX];
    static uint64_t some[MAX];
    size_t count = make_addresses(addresses);
    uint64_t seed = 3;
    write_kallsyms();
    check_kallsyms(addresses, count, false);
    check_kallsyms(addresses, count, true);
    for (unsigned round = 0; round < 20; round++) {
        size_t n = 0;
        for (size_t i = 0; i < count; i++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            if ((seed >> 40 & ((1u << round % 9) - 1)) == 0)
                some[n++] = addresses[i];
        }
        check_kallsyms(some, n, round % 2 == 0);
    }
    for (size_t i = 0; i < count; i += 13) /* alone */
        check_kallsyms(&addresses[i], 1, true);
}

static void lines_are_those_of_the_kernel(void **state)
{
    (void)state;
    const uint64_t addresses[] = {0xffffffff81000008, 0xffffffff81000398, 0xffffffffc0000041};
    write_kallsyms();
    struct sym_context *c = open_context(&(struct setup){.kallsyms = true});
    struct sym_packed packed = pack_kallsyms(c, addresses, 3);
    assert_int_equal(packed.named_count, 3);
    packed.data = realloc(packed.data, packed.size_bytes + 1);
    packed.data[packed.size_bytes] = '\0';
    assert_string_equal((char *)packed.data, "ffffffff81000000 T f0\n"
                                             "ffffffff81000130 t f1\n"
                                             "ffffffff81000390 T f3\n"
                                             "ffffffff810004c0 t f4\n"
                                             "ffffffffc0000040 T a1\t[mod_a]\n"
                                             "ffffffffc0000080 t a2\t[mod_a]\n");
    free(packed.data);
    sym_context_free(c);
}

/* Another reader does not know where the module ends. */
static void a_long_last_function_is_ended_by_a_label(void **state)
{
    (void)state;
    const uint64_t addresses[] = {0xffffffffc0003010, 0xffffffffc0004ff0, 0xffffffffc0008000};
    write_kallsyms();
    struct sym_context *c = open_context(&(struct setup){.kallsyms = true});
    struct sym_packed packed = pack_kallsyms(c, addresses, 3);
    struct symint_kernel k;
    parse(&k, &packed, NULL);
    for (int i = 0; i < 3; i++)
        check_symbol(&c->kernel, &k, addresses[i], i < 2);
    symint_kernel_free(&k);
    free(packed.data);
    sym_context_free(c);
}

/* ---- perf maps ---- */

static struct sym_context *map_context(const char *maps)
{
    char path[96];
    snprintf(path, sizeof(path), "%s/%s", folder, maps);
    struct sym_context *c = sym_context_new();
    assert_non_null(c);
    assert_int_equal(sym_context_open(c, &(struct sym_options){.size = sizeof(struct sym_options),
                                                               .perf_map_dir = path}),
                     0);
    return c;
}

static const struct sym_frame *ask_map(struct sym_context *c, uint64_t address)
{
    const struct sym_frame *frames;
    size_t count;
    struct sym_query q = {
        .module = SYM_NO_MODULE, .pid = 42, .abs = address, .python_allowed = true};
    assert_int_equal(sym_resolve(c, &q, &frames, &count), 0);
    assert_int_equal(count, 1);
    return frames;
}

static void perf_map_entries_answer_as_before(void **state)
{
    (void)state;
    static const char map[] = "0x1000 100 first\n"
                              "nonsense\n"
                              "001080 0x40  a name with blanks (int, char) \r\n"
                              "10a0 10 py::work:/srv/app/work.py\n"
                              "3000 80 unused\n"
                              "2000 20 old\n"
                              "2000 20 new\n"
                              "fffffffffffff000 ffe last\n";
    const uint64_t addresses[] = {0x1000, 0x10a8, 0x1085, 0x10ff,
                                  0x2001, 0x4000, 0x2001, 0xfffffffffffff800};
    struct sym_packed packed;
    write_file("maps/perf-42.map", map, sizeof(map) - 1);
    struct sym_context *a = map_context("maps");
    assert_int_equal(sym_pack_perf_map(a, 42, addresses, 8, &packed), 0);
    assert_int_equal(packed.address_count, 7);
    assert_int_equal(packed.named_count, 6);
    packed.data = realloc(packed.data, packed.size_bytes + 1);
    packed.data[packed.size_bytes] = '\0';
    assert_string_equal((char *)packed.data, "1000 100 first\n"
                                             "1080 40 a name with blanks (int, char)\n"
                                             "10a0 10 py::work:/srv/app/work.py\n"
                                             "2000 20 new\n"
                                             "fffffffffffff000 ffe last\n");
    write_file("store/perf-42.map", packed.data, packed.size_bytes);
    free(packed.data);
    struct sym_context *b = map_context("store");
    for (int i = 0; i < 8; i++) {
        const struct sym_frame *x = ask_map(a, addresses[i]);
        const struct sym_frame *y = ask_map(b, addresses[i]);
        check_same(x, y, addresses[i]);
        assert_int_equal(x->file != NULL, y->file != NULL);
        if (x->file != NULL)
            assert_string_equal(x->file, y->file);
    }
    assert_string_equal(ask_map(b, 0x10a8)->name, "work");
    sym_context_free(b);

    assert_int_equal(sym_pack_perf_map(a, 42, NULL, 0, &packed), 0);
    write_file("store/perf-42.map", packed.data, packed.size_bytes);
    free(packed.data);
    b = map_context("store");
    for (uint64_t address = 0xff0; address < 0x3100; address++)
        check_same(ask_map(a, address), ask_map(b, address), address);
    sym_context_free(b);

    const uint64_t nowhere[] = {0x9000};
    assert_int_equal(sym_pack_perf_map(a, 42, nowhere, 1, &packed), 0);
    assert_null(packed.data);
    assert_int_equal(sym_pack_perf_map(a, 43, NULL, 0, &packed), 0);
    assert_null(packed.data);
    struct sym_perf_map_state found;
    assert_int_equal(sym_perf_map_state(a, 43, &found), 1);
    assert_int_equal(found.miss, SYM_MISS_NO_FILE);
    assert_int_equal(sym_pack_perf_map(a, 42, NULL, 1, &packed), SYM_ERR_MISUSE);
    sym_context_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(packed_addresses_answer_as_the_kernel_did, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(other_addresses_get_the_function_around_them, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(programs_that_come_and_go_are_left_out, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_known_is_packed_again_only_with_something_new,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_damaged_file_is_told, set_up, tear_down),
        cmocka_unit_test_setup_teardown(nothing_known_is_nothing_packed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(packed_lines_answer_as_all_lines_did, set_up, tear_down),
        cmocka_unit_test_setup_teardown(lines_are_those_of_the_kernel, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_long_last_function_is_ended_by_a_label, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(perf_map_entries_answer_as_before, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
