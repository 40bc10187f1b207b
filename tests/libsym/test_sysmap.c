/* SPDX-License-Identifier: MIT */
/* System.map: where it is looked for, what of it counts, and that a shift is right or not found.
 * The map is made up: 20,000 functions between the ways in and the end of the text. */
#include "context.h"
#include "kaslr.h"
#include "sysmap.h"

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

enum { FUNCTIONS = 20000, STEP_X86 = 2 * 1024 * 1024, STEP_ARM = 65536 };

static uint64_t seed;

static uint32_t draw(uint32_t limit)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((seed >> 33) % limit);
}

/* ---- a kernel ---- */

struct function {
    char name[40];
    uint64_t start;
    uint64_t size;
};

struct kernel {
    bool arm;
    uint64_t base;
    uint64_t etext;
    struct function functions[FUNCTIONS];
    size_t system_calls[300];
    size_t system_call_count;
};

/* Every kernel drawn has other functions at other places, but the ways in where they always
 * are. */
static void make_kernel(struct kernel *k, bool arm)
{
    static const char *const x86[] = {"entry_SYSCALL_64", "entry_SYSCALL_64_after_hwframe",
                                      "asm_exc_page_fault", "asm_sysvec_apic_timer_interrupt",
                                      "ret_from_fork_asm"};
    static const char *const x86_far[] = {"do_syscall_64", "exc_page_fault",
                                          "x64_sys_call",  "sysvec_apic_timer_interrupt",
                                          "ret_from_fork", "kthread"};
    static const char *const arm64[] = {"el0t_64_sync", "el0t_64_irq", "el1h_64_irq",
                                        "ret_from_fork", "__unused"};
    static const char *const arm64_far[] = {"el0_svc",        "do_el0_svc", "invoke_syscall",
                                            "el0_svc_common", "el0_da",     "kthread"};
    k->arm = arm;
    k->base = arm ? 0xffff800080000000 : 0xffffffff81000000;
    k->system_call_count = 0;
    uint64_t at = k->base + 0x80;
    for (size_t i = 0; i < FUNCTIONS; i++) {
        struct function *f = &k->functions[i];
        size_t far = (i - 5) % 3000;
        if (i < 5)
            snprintf(f->name, sizeof(f->name), "%s", arm ? arm64[i] : x86[i]);
        else if (far == 100 && i / 3000 < 6)
            snprintf(f->name, sizeof(f->name), "%s", arm ? arm64_far[i / 3000] : x86_far[i / 3000]);
        else if (i % 80 == 7) {
            snprintf(f->name, sizeof(f->name), "__%s_sys_%zu", arm ? "arm64" : "x64", i);
            k->system_calls[k->system_call_count++] = i;
        } else
            snprintf(f->name, sizeof(f->name), "f%zu", i);
        f->start = at;
        f->size = i < 5 ? 48 : i % 80 == 7 || far == 100 ? 64 + 16 * draw(6) : 16 * (1 + draw(100));
        at += f->size;
    }
    k->etext = at;
}

static char *map_of(const struct kernel *k, size_t *size)
{
    char *text = malloc(FUNCTIONS * 64 + 1024);
    size_t n = 0;
    assert_non_null(text);
    n += (size_t)sprintf(text + n, "%016llx T _text\n%016llx T _stext\n",
                         (unsigned long long)k->base, (unsigned long long)k->base);
    for (size_t i = 0; i < FUNCTIONS; i++)
        n += (size_t)sprintf(text + n, "%016llx %c %s\n", (unsigned long long)k->functions[i].start,
                             i % 2 ? 'T' : 't', k->functions[i].name);
    uint64_t init = (k->etext + 0x800000) & ~0xfffull;
    n += (size_t)sprintf(text + n,
                         "%016llx T _etext\n%016llx D some_data\n%016llx D _edata\n"
                         "%016llx T _sinittext\n%016llx t init_function\n%016llx T _einittext\n"
                         "%016llx B _end\n",
                         (unsigned long long)k->etext, (unsigned long long)k->etext + 0x1000,
                         (unsigned long long)k->etext + 0x200000, (unsigned long long)init,
                         (unsigned long long)init + 0x10, (unsigned long long)init + 0x100,
                         (unsigned long long)init + 0x10000);
    *size = n;
    return text;
}

/* ---- captures of it ---- */

struct capture {
    uint64_t addresses[2048];
    size_t count;
};

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* A lookup address inside a function, never in its first bytes. */
static void sample(struct capture *c, const struct kernel *k, const char *name, size_t function,
                   uint64_t shift)
{
    /* The named ones are the first five and one of every 3,000. */
    for (size_t i = 0; name != NULL && i < FUNCTIONS; i += i == 4 ? 101 : i < 4 ? 1 : 3000)
        if (strcmp(k->functions[i].name, name) == 0)
            function = i;
    const struct function *f = &k->functions[function];
    c->addresses[c->count++] = f->start + 5 + draw((uint32_t)f->size - 5) + shift;
}

/* At least `wanted` addresses of stacks that come in by system calls, page faults and a timer. */
static void make_capture(struct capture *c, const struct kernel *k, size_t wanted, uint64_t shift)
{
    static const char *const ways[2][3][3] = {
        {{"entry_SYSCALL_64_after_hwframe", "do_syscall_64", "x64_sys_call"},
         {"asm_exc_page_fault", "exc_page_fault", NULL},
         {"asm_sysvec_apic_timer_interrupt", "sysvec_apic_timer_interrupt", NULL}},
        {{"el0t_64_sync", "el0_svc", "do_el0_svc"},
         {"el0t_64_sync", "el0_da", NULL},
         {"el1h_64_irq", NULL, NULL}}};
    c->count = 0;
    while (c->count < wanted) {
        uint32_t way = draw(4) < 2 ? 0 : 1 + draw(2);
        for (size_t i = 0; i < 3 && ways[k->arm][way][i] != NULL; i++)
            sample(c, k, ways[k->arm][way][i], 0, shift);
        if (way == 0)
            sample(c, k, NULL, k->system_calls[draw((uint32_t)k->system_call_count)], shift);
        for (uint32_t i = 2 + draw(6); i > 0; i--)
            sample(c, k, NULL, 5 + draw(FUNCTIONS - 5), shift);
    }
    qsort(c->addresses, c->count, sizeof(c->addresses[0]), compare);
}

static enum sym_kernel_state find(const struct kernel *map, const struct sym_kernel *kernel,
                                  uint64_t *shift)
{
    struct symint_kernel k;
    enum sym_kernel_state state;
    const char *why;
    size_t size;
    char *text = map_of(map, &size);
    assert_int_equal(symint_sysmap_parse(&k, text, size, kernel, &state, &why), 0);
    *shift = k.shift;
    if (state == SYM_KERNEL_UNKNOWN_SHIFT)
        assert_true(why[0] != '\0');
    symint_kernel_free(&k);
    return state;
}

static enum sym_kernel_state find_for(const struct kernel *map, const struct capture *c,
                                      uint64_t *shift)
{
    return find(map, &(struct sym_kernel){.needed = c->addresses, .needed_count = c->count}, shift);
}

static struct kernel kernel;
static struct kernel other;
static struct capture capture;

/* Returns how many of 30 shifts were found; none may be wrong. */
static unsigned found_of_30(bool arm, size_t wanted)
{
    unsigned found = 0;
    seed = 11 + wanted;
    make_kernel(&kernel, arm);
    for (unsigned round = 0; round < 30; round++) {
        uint64_t shift = (uint64_t)draw(arm ? 0x1000000 : 400) * (arm ? STEP_ARM : STEP_X86);
        uint64_t got;
        make_capture(&capture, &kernel, wanted, shift);
        if (find_for(&kernel, &capture, &got) != SYM_KERNEL_OK)
            continue;
        found++;
        assert_int_equal(got, shift);
    }
    return found;
}

static void sampled_addresses_tell_the_shift(void **state)
{
    (void)state;
    (void)found_of_30(false, 4);
    assert_true(found_of_30(false, 100) >= 27);
    assert_int_equal(found_of_30(false, 1000), 30);
    (void)found_of_30(true, 4);
    assert_true(found_of_30(true, 100) >= 20);
    assert_int_equal(found_of_30(true, 1000), 30);
}

static void addresses_without_a_way_in_tell_nothing(void **state)
{
    (void)state;
    uint64_t shift;
    seed = 5;
    for (int arm = 0; arm < 2; arm++) {
        make_kernel(&kernel, arm);
        for (unsigned round = 0; round < 30; round++) {
            capture.count = 0;
            while (capture.count < 20 + round * 60)
                capture.addresses[capture.count++] =
                    kernel.base + STEP_X86 + draw((uint32_t)(kernel.etext - kernel.base));
            qsort(capture.addresses, capture.count, sizeof(capture.addresses[0]), compare);
            assert_int_equal(find_for(&kernel, &capture, &shift), SYM_KERNEL_UNKNOWN_SHIFT);
        }
    }
}

static void the_map_of_another_kernel_fits_at_no_shift(void **state)
{
    (void)state;
    uint64_t shift;
    for (int arm = 0; arm < 2; arm++) {
        for (unsigned round = 0; round < 30; round++) {
            seed = 1000 + round;
            make_kernel(&kernel, arm);
            make_kernel(&other, arm);
            make_capture(&capture, &other, 20 + round * 60, 0x4000000);
            assert_int_equal(find_for(&kernel, &capture, &shift), SYM_KERNEL_UNKNOWN_SHIFT);
        }
    }
}

/* 100 addresses all over the text and some of ways in. */
static void check_few(const char *const *names, size_t count)
{
    uint64_t shift;
    seed = 41;
    make_kernel(&kernel, false);
    capture.count = 0;
    for (size_t i = 0; i < 100; i++)
        sample(&capture, &kernel, NULL, 10 + 199 * i, STEP_X86);
    for (size_t i = 0; i < count; i++)
        sample(&capture, &kernel, names[i], 0, STEP_X86);
    qsort(capture.addresses, capture.count, sizeof(capture.addresses[0]), compare);
    assert_int_equal(find_for(&kernel, &capture, &shift), SYM_KERNEL_UNKNOWN_SHIFT);
}

static void a_few_hits_among_many_addresses_are_no_proof(void **state)
{
    (void)state;
    check_few((const char *const[]){"do_syscall_64", "kthread"}, 2);
}

static void neighbours_among_the_ways_in_count_once(void **state)
{
    (void)state;
    check_few((const char *const[]){"entry_SYSCALL_64_after_hwframe", "asm_exc_page_fault",
                                    "asm_sysvec_apic_timer_interrupt", "ret_from_fork_asm"},
              4);
}

/* All of 1,000 in the right functions but some in padding or first bytes. */
static void addresses_where_no_code_runs_are_a_veto(void **state)
{
    (void)state;
    uint64_t shift;
    seed = 3;
    make_kernel(&kernel, false);
    make_capture(&capture, &kernel, 1000, 0x200000);
    assert_int_equal(find_for(&kernel, &capture, &shift), SYM_KERNEL_OK);
    for (size_t i = 0; i < 300; i++)
        capture.addresses[i * 3] = kernel.functions[60 * i + 20].start + 1 + 0x200000;
    qsort(capture.addresses, capture.count, sizeof(capture.addresses[0]), compare);
    assert_int_equal(find_for(&kernel, &capture, &shift), SYM_KERNEL_UNKNOWN_SHIFT);
    make_capture(&capture, &kernel, 1000, 0x200000);
    for (size_t i = 0; i < 20; i++) {
        struct function *f = &kernel.functions[900 * i + 1234];
        snprintf(f->name, sizeof(f->name), "__pfx_f%zu", i);
        capture.addresses[i * 45] = f->start + 7 + 0x200000;
    }
    qsort(capture.addresses, capture.count, sizeof(capture.addresses[0]), compare);
    assert_int_equal(find_for(&kernel, &capture, &shift), SYM_KERNEL_UNKNOWN_SHIFT);
}

static void a_range_of_the_kernel_tells_the_shift(void **state)
{
    (void)state;
    const uint64_t shift = 0x1c000000;
    uint64_t got;
    seed = 21;
    make_kernel(&kernel, false);
    /* Two addresses of no way in: they tell nothing themselves. */
    uint64_t needed[] = {kernel.functions[100].start + 8 + shift,
                         kernel.functions[9000].start + 9 + shift};
    struct sym_kernel_range range = {kernel.base + shift, 0xffffffffc0000000, kernel.base + shift,
                                     "[kernel.kallsyms]_text", 0};
    struct sym_kernel k = {.needed = needed, .needed_count = 2, .ranges = &range, .range_count = 1};
    assert_int_equal(find(&kernel, &k, &got), SYM_KERNEL_OK);
    assert_int_equal(got, shift);
    range.name = "[kernel.kallsyms]_stext, cut here";
    range.name_size = 23;
    assert_int_equal(find(&kernel, &k, &got), SYM_KERNEL_OK);
    range.name_size = 0;
    assert_int_equal(find(&kernel, &k, &got), SYM_KERNEL_UNKNOWN_SHIFT); /* no such symbol */
    range.name = "[kernel.kallsyms]_text";
    range.file_offset = kernel.base; /* where it was before it was moved */
    assert_int_equal(find(&kernel, &k, &got), SYM_KERNEL_UNKNOWN_SHIFT);
    range.file_offset = kernel.base + shift + 0x1000; /* no legal shift */
    assert_int_equal(find(&kernel, &k, &got), SYM_KERNEL_UNKNOWN_SHIFT);
    range.file_offset = kernel.base + shift + STEP_X86;
    needed[0] = kernel.base + shift; /* not in the text then */
    assert_int_equal(find(&kernel, &k, &got), SYM_KERNEL_UNKNOWN_SHIFT);
    /* Moved so little that addresses are in the text without the shift, too. */
    range.start = kernel.base + STEP_X86;
    range.file_offset = kernel.base;
    needed[0] = kernel.functions[8000].start + 8;
    needed[1] = kernel.functions[9000].start + 8;
    assert_int_equal(find(&kernel, &k, &got), SYM_KERNEL_UNKNOWN_SHIFT);
}

static void the_size_of_a_range_tells_the_shift(void **state)
{
    (void)state;
    const uint64_t shift = 0x1c000000;
    uint64_t got;
    seed = 22;
    make_kernel(&kernel, false);
    uint64_t needed[] = {kernel.functions[100].start + 8 + shift};
    struct sym_kernel_range range = {kernel.base + shift, kernel.etext + shift, 0,
                                     "[kernel.kallsyms]", 0};
    struct sym_kernel k = {.needed = needed, .needed_count = 1, .ranges = &range, .range_count = 1};
    assert_int_equal(find(&kernel, &k, &got), SYM_KERNEL_OK);
    assert_int_equal(got, shift);
    range.end = (range.end + 4095) & ~4095ull;
    assert_int_equal(find(&kernel, &k, &got), SYM_KERNEL_OK);
    range.end += 4096;
    assert_int_equal(find(&kernel, &k, &got), SYM_KERNEL_UNKNOWN_SHIFT);
    range.end = kernel.etext + 0x200000 + shift; /* with its data */
    assert_int_equal(find(&kernel, &k, &got), SYM_KERNEL_OK);
    range.name = "[some_module]";
    assert_int_equal(find(&kernel, &k, &got), SYM_KERNEL_UNKNOWN_SHIFT);
}

static void addresses_of_modules_do_not_count(void **state)
{
    (void)state;
    uint64_t got;
    seed = 23;
    for (int arm = 0; arm < 2; arm++) {
        make_kernel(&kernel, arm);
        make_capture(&capture, &kernel, 1000, 0x400000);
        uint64_t module = arm ? kernel.base - 0x1000000 : 0xffffffffc0000000;
        for (size_t i = 0; i < 500; i++)
            capture.addresses[capture.count++] = module + i * 16;
        qsort(capture.addresses, capture.count, sizeof(capture.addresses[0]), compare);
        assert_int_equal(find_for(&kernel, &capture, &got), SYM_KERNEL_OK);
        assert_int_equal(got, 0x400000);
    }
    /* Where kernels that stay in place have their modules, only ranges tell. */
    make_kernel(&kernel, false);
    make_capture(&capture, &kernel, 1000, 0);
    for (size_t i = 0; i < 500; i++)
        capture.addresses[capture.count++] = 0xffffffffa0000000 + i * 16;
    assert_int_equal(find_for(&kernel, &capture, &got), SYM_KERNEL_UNKNOWN_SHIFT);
    const struct sym_kernel_range ranges[] = {{0xffffffffa0001000, 0xffffffffa0002000, 0, "[b]", 0},
                                              {0xffffffffa0000000, 0xffffffffa0001000, 0, "[a]",
                                               0}};
    struct sym_kernel k = {.needed = capture.addresses,
                           .needed_count = capture.count,
                           .ranges = ranges,
                           .range_count = 2};
    assert_int_equal(find(&kernel, &k, &got), SYM_KERNEL_OK);
    assert_int_equal(got, 0);
}

static void a_text_that_is_no_map_is_none(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "nonsense\n",
        "ffffffffffffffff B The real System.map is in the linux-image-<version>-dbg package\n",
        "ffffffff81000000 T _stext\nffffffff81000010 T f\n", /* without an end */
        "ffffffff81000000 T _etext\nffffffff81000010 T _stext\n",
        "0000000000000000 T _stext\n0000000000000000 T _etext\n"};
    const uint64_t needed[] = {0xffffffff81000008};
    struct sym_kernel k = {.needed = needed, .needed_count = 1};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct symint_kernel map;
        enum sym_kernel_state got;
        const char *why;
        assert_int_equal(
            symint_sysmap_parse(&map, strdup(texts[i]), strlen(texts[i]), &k, &got, &why), 0);
        assert_int_equal(got, SYM_KERNEL_NONE);
        symint_kernel_free(&map);
    }
}

/* ---- with files ---- */

static char folder[64];

static int make_folder(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/test_sysmap.XXXXXX");
    return mkdtemp(folder) != NULL ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof(command), "rm -rf %s", folder);
    return system(command);
}

static void put(const char *path, const char *text, size_t size)
{
    char name[256];
    snprintf(name, sizeof(name), "%s/%s", folder, path);
    for (char *p = strchr(name + strlen(folder) + 1, '/'); p != NULL; p = strchr(p + 1, '/')) {
        *p = '\0';
        (void)mkdir(name, 0755);
        *p = '/';
    }
    FILE *f = fopen(name, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, size, f), size);
    fclose(f);
}

static struct sym_context *open_context(const char *const *dirs, size_t dir_count)
{
    struct sym_context *c = sym_context_new();
    struct sym_options o = {
        .size = sizeof(o), .sysroot = folder, .symbol_dirs = dirs, .symbol_dir_count = dir_count};
    assert_non_null(c);
    assert_int_equal(sym_context_open(c, &o), 0);
    assert_int_equal(sym_capture_begin(c,
                                       &(struct sym_capture){.size = sizeof(struct sym_capture),
                                                             .boot_id = "of some other machine"}),
                     0);
    return c;
}

static const struct sym_frame *ask(struct sym_context *c, uint64_t address)
{
    const struct sym_frame *f;
    size_t count;
    struct sym_query q = {.module = SYM_NO_MODULE, .kernel = true, .abs = address};
    assert_int_equal(sym_resolve(c, &q, &f, &count), 0);
    assert_int_equal(count, 1);
    return f;
}

static void names_come_from_the_map_of_the_release(void **state)
{
    (void)state;
    static const char *const places[] = {"usr/lib/debug/lib/modules/6.1-x/System.map",
                                         "usr/lib/debug/boot/System.map-6.1-x",
                                         "lib/modules/6.1-x/build/System.map",
                                         "lib/modules/6.1-x/System.map", "boot/System.map-6.1-x"};
    static const char stub[] = "ffffffffffffffff B The real System.map is elsewhere\n";
    const uint64_t shift = 0x2000000;
    size_t size;
    seed = 31;
    make_kernel(&kernel, false);
    make_capture(&capture, &kernel, 500, shift);
    uint64_t end = kernel.etext + shift;
    capture.addresses[capture.count++] = 0xffffffffc0001000;
    struct sym_kernel k = {.size = sizeof(k),
                           .release = "6.1-x",
                           .needed = capture.addresses,
                           .needed_count = capture.count};
    struct sym_context *c = open_context(NULL, 0);
    assert_int_equal(sym_kernel_load(c, &k), 0);
    assert_int_equal(sym_kernel_state(c), SYM_KERNEL_OTHER_BOOT);
    assert_non_null(strstr(sym_kernel_detail(c), "no System.map of 6.1-x in /boot"));
    put("boot/System.map-6.1-x", stub, strlen(stub));
    assert_int_equal(sym_kernel_load(c, &k), 0);
    assert_int_equal(sym_kernel_state(c), SYM_KERNEL_OTHER_BOOT);
    char *text = map_of(&kernel, &size);
    for (size_t i = 0; i < 5; i++) {
        char detail[128];
        put(places[i], text, size);
        assert_int_equal(sym_kernel_load(c, &k), 0);
        assert_int_equal(sym_kernel_state(c), SYM_KERNEL_OK);
        snprintf(detail, sizeof(detail), "/%s: moved by 0x2000000", places[i]);
        assert_string_equal(sym_kernel_detail(c), detail);
    }
    free(text);
    for (size_t i = 0; i + 1 < capture.count; i++) {
        const struct sym_frame *f = ask(c, capture.addresses[i]);
        assert_non_null(f->name);
        assert_int_equal(f->origin, SYM_ORIGIN_SYSMAP);
        assert_int_equal(f->flags, SYM_FLAG_UNVERIFIED);
        assert_int_equal(f->function_start + f->offset, capture.addresses[i]);
        assert_true(f->function_start >= kernel.base + shift);
    }
    assert_int_equal(ask(c, 0xffffffffc0001000)->miss, SYM_MISS_NO_SYMBOL);
    assert_int_equal(ask(c, end)->miss, SYM_MISS_NO_SYMBOL);
    assert_int_equal(ask(c, kernel.base)->miss, SYM_MISS_NO_SYMBOL);
    sym_context_free(c);
}

static void the_last_function_ends_with_the_text(void **state)
{
    (void)state;
    size_t size;
    const char *why;
    enum sym_kernel_state got;
    struct symint_kernel map;
    struct symint_kernel_symbol s;
    seed = 33;
    make_kernel(&kernel, false);
    make_capture(&capture, &kernel, 500, 0);
    const uint64_t init = ((kernel.etext + 0x800000) & ~0xfffull) + 0xff;
    capture.addresses[capture.count++] = kernel.etext - 1;
    capture.addresses[capture.count++] = init;
    struct sym_kernel k = {.needed = capture.addresses, .needed_count = capture.count};
    char *text = map_of(&kernel, &size);
    strstr(text, " T _etext")[1] = 'D'; /* not every label is one of code */
    strstr(text, " T _einittext")[1] = 'D';
    assert_int_equal(symint_sysmap_parse(&map, text, size, &k, &got, &why), 0);
    assert_int_equal(got, SYM_KERNEL_OK);
    assert_true(symint_kernel_find(&map, kernel.etext - 1, &s));
    assert_int_equal(s.end, kernel.etext);
    assert_true(symint_kernel_find(&map, init, &s));
    assert_memory_equal(s.name, "init_function", s.name_size);
    assert_false(symint_kernel_find(&map, init + 1, &s));
    symint_kernel_free(&map);
}

static void a_symbol_folder_comes_first(void **state)
{
    (void)state;
    size_t size;
    char dir[96];
    char detail[160];
    seed = 32;
    make_kernel(&kernel, false);
    make_capture(&capture, &kernel, 500, 0);
    char *text = map_of(&kernel, &size);
    put("symbols/System.map-6.2", text, size);
    put("boot/System.map-6.2", text, size);
    free(text);
    snprintf(dir, sizeof(dir), "%s/symbols", folder);
    const char *dirs[] = {dir};
    struct sym_kernel k = {.size = sizeof(k),
                           .release = "6.2",
                           .needed = capture.addresses,
                           .needed_count = capture.count};
    struct sym_context *c = open_context(dirs, 1);
    assert_int_equal(sym_kernel_load(c, &k), 0);
    snprintf(detail, sizeof(detail), "%s/System.map-6.2: moved by 0x0", dir);
    assert_string_equal(sym_kernel_detail(c), detail);
    /* A map, but not of this kernel. */
    capture.count = 0;
    while (capture.count < 100)
        sample(&capture, &kernel, NULL, 1000 + capture.count * 10, 0);
    k.needed_count = capture.count;
    assert_int_equal(sym_kernel_load(c, &k), 0);
    assert_int_equal(sym_kernel_state(c), SYM_KERNEL_UNKNOWN_SHIFT);
    assert_non_null(strstr(sym_kernel_detail(c), "/System.map-6.2: "));
    assert_int_equal(ask(c, capture.addresses[0])->miss, SYM_MISS_KERNEL);
    sym_context_free(c);
}

static void a_restricted_kallsyms_leaves_it_to_the_map(void **state)
{
    (void)state;
    char paths[2][96];
    size_t size;
    snprintf(paths[0], sizeof(paths[0]), "%s/kallsyms", folder);
    snprintf(paths[1], sizeof(paths[1]), "%s/boot_id", folder);
    put("kallsyms", "0000000000000000 T f\n", 21);
    put("boot_id", "abc\n", 4);
    const struct symint_system files = {.kallsyms = paths[0],
                                        .boot_id = paths[1],
                                        .stat = "/nonexistent",
                                        .notes = "/nonexistent",
                                        .osrelease = "/nonexistent"};
    seed = 34;
    make_kernel(&kernel, true);
    make_capture(&capture, &kernel, 800, 0x12340000);
    struct sym_kernel k = {.size = sizeof(k),
                           .release = "6.3",
                           .needed = capture.addresses,
                           .needed_count = capture.count};
    struct sym_context *c = open_context(NULL, 0);
    c->system = &files;
    assert_int_equal(sym_capture_begin(c, &(struct sym_capture){.size = sizeof(struct sym_capture),
                                                                .boot_id = "abc"}),
                     0);
    assert_int_equal(sym_kernel_load(c, &k), 0);
    assert_int_equal(sym_kernel_state(c), SYM_KERNEL_RESTRICTED);
    assert_non_null(strstr(sym_kernel_detail(c), "no System.map of 6.3"));
    char *text = map_of(&kernel, &size);
    put("lib/modules/6.3/System.map", text, size);
    free(text);
    assert_int_equal(sym_kernel_load(c, &k), 0);
    assert_int_equal(sym_kernel_state(c), SYM_KERNEL_OK);
    assert_string_equal(sym_kernel_detail(c), "/lib/modules/6.3/System.map: moved by 0x12340000");
    sym_context_free(c);
}

static void a_release_does_not_leave_the_folders(void **state)
{
    (void)state;
    static const char *const releases[] = {"../6.1-x", "a/b", "..", "", "/"};
    struct sym_context *c = open_context(NULL, 0);
    const uint64_t needed[] = {0xffffffff81000000};
    for (size_t i = 0; i < sizeof(releases) / sizeof(releases[0]); i++) {
        struct sym_kernel k = {
            .size = sizeof(k), .release = releases[i], .needed = needed, .needed_count = 1};
        assert_int_equal(sym_kernel_load(c, &k), 0);
        assert_int_equal(sym_kernel_state(c), SYM_KERNEL_OTHER_BOOT);
        assert_string_equal(sym_kernel_detail(c), "the recorded kernel release is not a valid one");
    }
    sym_context_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sampled_addresses_tell_the_shift),
        cmocka_unit_test(addresses_without_a_way_in_tell_nothing),
        cmocka_unit_test(the_map_of_another_kernel_fits_at_no_shift),
        cmocka_unit_test(a_few_hits_among_many_addresses_are_no_proof),
        cmocka_unit_test(neighbours_among_the_ways_in_count_once),
        cmocka_unit_test(addresses_where_no_code_runs_are_a_veto),
        cmocka_unit_test(a_range_of_the_kernel_tells_the_shift),
        cmocka_unit_test(the_size_of_a_range_tells_the_shift),
        cmocka_unit_test(addresses_of_modules_do_not_count),
        cmocka_unit_test(a_text_that_is_no_map_is_none),
        cmocka_unit_test(names_come_from_the_map_of_the_release),
        cmocka_unit_test(the_last_function_ends_with_the_text),
        cmocka_unit_test(a_symbol_folder_comes_first),
        cmocka_unit_test(a_restricted_kallsyms_leaves_it_to_the_map),
        cmocka_unit_test(a_release_does_not_leave_the_folders),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
