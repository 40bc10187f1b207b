/* SPDX-License-Identifier: MIT */
/*
 * Real ELF files, cut at every byte, with every field of their headers set to extreme values, and
 * with bits flipped: each is opened, indexed and asked for addresses. It must end soon and without
 * a crash, and must not take more memory than the size of the file accounts for. Named test_alloc
 * so that the functions that give memory are wrapped, which count. The files are built here by a
 * compiler; a kind that it cannot build is left out.
 */
#include "context.h"
#include "elf_private.h"

#include "../alloc_fault.h"

#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Of one file: what its tables, and the search for its parts, may take at most. */
#define MOST_BYTES(size) ((size_t)64 * (size) + ((size_t)1 << 20))
#define MOST_SECONDS 10 /* for one file; it takes a millisecond */
#define FLIPS 20000

/* ---- the files ---- */

struct object {
    const char *name;
    const char *options; /* of the compiler */
    const char *after;   /* a command on the result, `f` */
    uint8_t *data;       /* NULL: could not be built */
    size_t size;
};

static struct object objects[] = {
    {.name = "shared library", .options = "-shared -fPIC -Wl,-z,noseparate-code"},
    {.name = "program", .options = "-DPROGRAM -fPIE -pie -Wl,-z,noseparate-code"},
    {.name = "program at a fixed address",
     .options = "-DPROGRAM -no-pie -fno-pie -Wl,-z,noseparate-code"},
    {.name = "stripped library",
     .options = "-shared -fPIC -Wl,-z,noseparate-code",
     .after = "strip f"},
    {.name = "static-pie without libc",
     .options = "-DPROGRAM -DSTART -static-pie -nostdlib -fPIE -Wl,-z,noseparate-code"},
    {.name = "library without section headers",
     .options = "-shared -fPIC -Wl,-z,noseparate-code -Wl,--hash-style=both",
     .after =
         "objcopy --strip-section-headers f || { strip f && printf '\\0\\0\\0\\0\\0\\0\\0\\0' | "
         "dd of=f bs=1 seek=40 conv=notrunc && printf '\\0\\0' | dd of=f bs=1 seek=60 "
         "conv=notrunc; }"},
    {.name = "stripped library with a debug link",
     .options = "-shared -fPIC -g -Wl,-z,noseparate-code",
     .after =
         "objcopy --only-keep-debug f f.debug && strip f && objcopy --add-gnu-debuglink=f.debug f"},
    {.name = "debug file",
     .options = "-shared -fPIC -g -Wl,-z,noseparate-code",
     .after = "objcopy --only-keep-debug f f.debug && mv f.debug f"},
    {.name = "32-bit library", .options = "-m32 -shared -fPIC -nostdlib -Wl,-z,noseparate-code"},
};

static const char source[] =
    "int printf(const char *, ...);\n"
    "void *calloc(unsigned long, unsigned long);\n"
    "static int helper(int x) { return x * 3; }\n"
    "int exported(int x) { return helper(x) + 1; }\n"
    "__attribute__((weak)) int weak_one(int x) { return x - 1; }\n"
    "int alias_one(int) __attribute__((alias(\"exported\")));\n"
    "#ifndef START\n"
    "int uses(int x) { return printf(\"%p\", calloc(x, 4)); }\n"
    "#endif\n"
    "#ifdef START\n"
    "void _start(void) { for (;;) exported(1); }\n"
    "#elif defined(PROGRAM)\n"
    "int main(int c, char **v) { return v != 0 ? uses(c) : alias_one(c); }\n"
    "#endif\n";

static char folder[64];

static void put(const char *name, const void *data, size_t size)
{
    char path[128];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, size, f), size);
    assert_int_equal(fclose(f), 0);
}

static void build(struct object *o)
{
    const char *cc = getenv("CC");
    char command[1024];
    char path[128];
    snprintf(command, sizeof(command),
             "cd %s && rm -f f f.debug && { %s -O1 -Wl,--build-id %s -o f source.c && { %s; }; } "
             ">/dev/null 2>&1",
             folder, cc != NULL ? cc : "cc", o->options,
             o->after != NULL ? o->after : "strip -g f");
    snprintf(path, sizeof(path), "%s/f", folder);
    if (system(command) != 0) {
        print_message("left out: %s: cannot be built here\n", o->name);
        return;
    }
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    o->data = malloc(1 << 20);
    assert_non_null(o->data);
    o->size = fread(o->data, 1, 1 << 20, f);
    fclose(f);
    assert_in_range(o->size, 1000, (1 << 20) - 1);
    o->data = realloc(o->data, o->size); /* so that a sanitizer sees what is read behind it */
    assert_non_null(o->data);
    print_message("%s: %zu bytes\n", o->name, o->size);
}

static int build_all(void **state)
{
    (void)state;
    unsigned built = 0;
    strcpy(folder, "/tmp/test_alloc_hostile.XXXXXX");
    if (mkdtemp(folder) == NULL)
        return -1;
    put("source.c", source, sizeof(source) - 1);
    for (size_t i = 0; i < COUNT(objects); i++) {
        build(&objects[i]);
        built += objects[i].data != NULL;
    }
    return built >= 2 ? 0 : -1;
}

static int remove_all(void **state)
{
    char command[128];
    (void)state;
    for (size_t i = 0; i < COUNT(objects); i++)
        free(objects[i].data);
    snprintf(command, sizeof(command), "rm -rf %s", folder);
    return system(command);
}

/* ---- one run ---- */

/* What the program is at, should the alarm or a sanitizer end it: look at it with a debugger. */
static const char *volatile current_object;
static volatile uint64_t current_place;
static volatile uint64_t current_value;

/* Addresses at and around what the program headers say; most are nonsense by now. */
static void ask(const struct symint_elf *e)
{
    for (uint32_t i = 0; i < e->segment_count; i++) {
        const struct segment *s = &e->segments[i];
        for (uint64_t part = 0; part <= 16; part++) {
            uint64_t vaddr;
            uint64_t at = s->size / 16 * part;
            uint32_t number = symint_elf_find(e, s->vaddr + at);
            if (number != SYMINT_NO_SYMBOL) {
                struct symint_symbol symbol = symint_elf_symbol(e, number);
                assert_true(symbol.name_size == 0 || symbol.name[symbol.name_size - 1] != '\0');
                assert_true(symbol.start <= s->vaddr + at);
            }
            struct symint_place place = symint_elf_place(e, s->offset & ~(uint64_t)4095, s->size);
            if (symint_elf_vaddr(e, s->offset + at, &place, &vaddr))
                (void)symint_elf_find(e, vaddr);
        }
    }
    (void)symint_elf_find(e, 0);
    (void)symint_elf_find(e, UINT64_MAX);
}

static void run(const uint8_t *data, size_t size)
{
    struct symint_input input = {.fd = -1, .memory = data, .size = size};
    struct symint_elf *e;
    enum sym_miss miss;
    const char *why = NULL;
    const char *note = NULL;
    size_t id_size;

    alarm(MOST_SECONDS);
    alloc.bytes = 0;
    assert_int_equal(symint_elf_open(&input, &e, &miss, &why), 0);
    if (e == NULL) {
        assert_int_not_equal(miss, SYM_MISS_NONE);
        assert_non_null(why);
    } else {
        (void)symint_elf_build_id(e, &id_size);
        assert_int_equal(symint_elf_index(e, NULL, &miss, &why, &note), 0);
        if (miss != SYM_MISS_NONE)
            assert_non_null(why);
        ask(e);
    }
    symint_elf_free(e);
    if (alloc.bytes > MOST_BYTES(size))
        fail_msg("%s at %llx = %llx: %zu bytes of memory for a file of %zu", current_object,
                 (unsigned long long)current_place, (unsigned long long)current_value, alloc.bytes,
                 size);
    alarm(0);
}

/* ---- tests ---- */

static void files_cut_at_every_byte_are_survived(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(objects); i++) {
        current_object = objects[i].name;
        for (size_t size = 0; objects[i].data != NULL && size <= objects[i].size; size++) {
            /* Memory of its own, so that a sanitizer sees what is read behind it. */
            uint8_t *copy = __real_malloc(size + 1);
            assert_non_null(copy);
            copy = __real_realloc(copy, size > 0 ? size : 1);
            memcpy(copy, objects[i].data, size);
            current_place = size;
            run(copy, size);
            free(copy);
        }
    }
}

static uint64_t get(const struct object *o, size_t at, unsigned bytes)
{
    uint64_t value = 0;
    memcpy(&value, o->data + at, bytes); /* the files are of this machine */
    return value;
}

static size_t extreme_values(const struct object *o, uint64_t original, uint64_t *values)
{
    const uint64_t v[] = {0,
                          1,
                          2,
                          o->size / 2,
                          o->size - 1,
                          o->size,
                          o->size + 1,
                          (uint64_t)1 << 31,
                          UINT32_MAX,
                          (uint64_t)1 << 63,
                          UINT64_MAX,
                          UINT64_MAX - 1,
                          0xffff,
                          0xfffe,
                          original + 1,
                          original - 1,
                          original * 2};
    memcpy(values, v, sizeof(v));
    return COUNT(v);
}

#define MOST_VALUES 20

static void try_field(struct object *o, size_t at, unsigned bytes)
{
    uint64_t values[MOST_VALUES];
    uint8_t saved[8];
    if (at > o->size || bytes > o->size - at)
        return;
    memcpy(saved, o->data + at, bytes);
    size_t count = extreme_values(o, get(o, at, bytes), values);
    for (size_t i = 0; i < count; i++) {
        memcpy(o->data + at, &values[i], bytes);
        current_place = at;
        current_value = values[i];
        run(o->data, o->size);
    }
    memcpy(o->data + at, saved, bytes);
}

struct field {
    size_t at;
    unsigned bytes;
};

/* Fields of the ELF header behind the identification, then of the three kinds of entry. */
static const struct field header64[] = {{4, 1},  {5, 1},  {6, 1},  {7, 1},  {16, 2}, {18, 2},
                                        {20, 4}, {24, 8}, {32, 8}, {40, 8}, {48, 4}, {52, 2},
                                        {54, 2}, {56, 2}, {58, 2}, {60, 2}, {62, 2}};
static const struct field header32[] = {{4, 1},  {5, 1},  {6, 1},  {7, 1},  {16, 2}, {18, 2},
                                        {20, 4}, {24, 4}, {28, 4}, {32, 4}, {36, 4}, {40, 2},
                                        {42, 2}, {44, 2}, {46, 2}, {48, 2}, {50, 2}};

static bool is_wide(const struct object *o)
{
    return o->data[EI_CLASS] == ELFCLASS64;
}

static void every_field_of_the_elf_header_may_be_extreme(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(objects); i++) {
        current_object = objects[i].name;
        const struct field *fields =
            objects[i].data != NULL && is_wide(&objects[i]) ? header64 : header32;
        for (size_t k = 0; objects[i].data != NULL && k < COUNT(header64); k++)
            try_field(&objects[i], fields[k].at, fields[k].bytes);
    }
}

static void every_two_fields_of_the_elf_header_may_be_extreme(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(objects); i++) {
        struct object *o = &objects[i];
        if (o->data == NULL)
            continue;
        const struct field *fields = is_wide(o) ? header64 : header32;
        current_object = o->name;
        for (size_t k = 0; k < COUNT(header64); k++) {
            uint64_t values[MOST_VALUES];
            uint8_t saved[8];
            size_t count = extreme_values(o, get(o, fields[k].at, fields[k].bytes), values);
            memcpy(saved, o->data + fields[k].at, fields[k].bytes);
            for (size_t v = 0; v < count; v++) {
                memcpy(o->data + fields[k].at, &values[v], fields[k].bytes);
                for (size_t m = k + 1; m < COUNT(header64); m++)
                    try_field(o, fields[m].at, fields[m].bytes);
            }
            memcpy(o->data + fields[k].at, saved, fields[k].bytes);
        }
    }
}

/* Every piece of 4 bytes and, in 64-bit files, of 8: whatever the fields of an entry are. */
static void try_table(struct object *o, uint64_t at, uint64_t entry_size, uint64_t count)
{
    for (uint64_t i = 0; i < count * entry_size; i += 4) {
        try_field(o, (size_t)(at + i), 4);
        if (is_wide(o) && i % 8 == 0)
            try_field(o, (size_t)(at + i), 8);
    }
}

static void every_field_of_the_program_headers_may_be_extreme(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(objects); i++) {
        struct object *o = &objects[i];
        current_object = o->name;
        if (o->data != NULL)
            try_table(o, is_wide(o) ? get(o, 32, 8) : get(o, 28, 4),
                      is_wide(o) ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr),
                      get(o, is_wide(o) ? 56 : 44, 2));
    }
}

static void every_field_of_the_section_headers_may_be_extreme(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(objects); i++) {
        struct object *o = &objects[i];
        current_object = o->name;
        if (o->data != NULL)
            try_table(o, is_wide(o) ? get(o, 40, 8) : get(o, 32, 4),
                      is_wide(o) ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr),
                      get(o, is_wide(o) ? 60 : 48, 2));
    }
}

/* The tables that sections of a type have, up to so many bytes of each. */
static void try_sections(struct object *o, uint32_t type, uint64_t most)
{
    uint64_t at = is_wide(o) ? get(o, 40, 8) : get(o, 32, 4);
    uint64_t entry_size = is_wide(o) ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr);
    for (uint64_t i = 0; i < get(o, is_wide(o) ? 60 : 48, 2); i++, at += entry_size) {
        if (get(o, at + 4, 4) != type)
            continue;
        uint64_t offset = is_wide(o) ? get(o, at + 24, 8) : get(o, at + 16, 4);
        uint64_t size = is_wide(o) ? get(o, at + 32, 8) : get(o, at + 20, 4);
        try_table(o, offset, 4, (size < most ? size : most) / 4);
    }
}

static void every_dynamic_entry_and_the_first_symbols_may_be_extreme(void **state)
{
    static const uint32_t types[] = {SHT_DYNAMIC,    SHT_SYMTAB, SHT_DYNSYM, SHT_HASH, SHT_GNU_HASH,
                                     SHT_GNU_versym, SHT_NOTE,   SHT_RELA,   SHT_REL};
    (void)state;
    for (size_t i = 0; i < COUNT(objects); i++) {
        struct object *o = &objects[i];
        current_object = o->name;
        for (size_t k = 0; o->data != NULL && k < COUNT(types); k++)
            try_sections(o, types[k], types[k] == SHT_DYNAMIC ? UINT64_MAX : 256);
        /* Without section headers the dynamic section is where the program header says. */
        for (uint64_t k = 0; o->data != NULL && is_wide(o) && k < get(o, 56, 2); k++) {
            size_t at = (size_t)(get(o, 32, 8) + k * sizeof(Elf64_Phdr));
            if (get(o, at, 4) == PT_DYNAMIC && get(o, 60, 2) == 0)
                try_table(o, get(o, at + 8, 8), 8, get(o, at + 32, 8) / 8);
        }
    }
}

static uint64_t random_state;

static uint64_t next_random(void)
{
    random_state += 0x9e3779b97f4a7c15u;
    return symint_mix(random_state);
}

/* Mostly where headers and tables are; code seldom matters. */
static void twenty_thousand_files_with_flipped_bits_are_survived(void **state)
{
    (void)state;
    random_state = 20240229;
    for (unsigned i = 0; i < FLIPS; i++) {
        struct object *o = &objects[i % COUNT(objects)];
        size_t at[4];
        uint8_t bits[4];
        unsigned flips = 1 + (unsigned)(next_random() % COUNT(at));
        if (o->data == NULL)
            continue;
        current_object = o->name;
        current_place = i;
        for (unsigned k = 0; k < flips; k++) {
            at[k] = (size_t)(next_random() %
                             (next_random() % 2 == 0 && o->size > 1024 ? 1024 : o->size));
            bits[k] = (uint8_t)(1u << next_random() % 8);
            o->data[at[k]] ^= bits[k];
        }
        run(o->data, o->size);
        for (unsigned k = flips; k-- > 0;)
            o->data[at[k]] ^= bits[k];
    }
}

/* The public way, with what it looks for behind the file's back: debug files, build ids. */
static void flipped_files_are_survived_by_the_public_functions(void **state)
{
    char path[128];
    (void)state;
    snprintf(path, sizeof(path), "%s/flipped", folder);
    random_state = 7;
    for (unsigned i = 0; i < FLIPS / 20; i++) {
        struct object *o = &objects[i % COUNT(objects)];
        if (o->data == NULL)
            continue;
        size_t at = (size_t)(next_random() % (i % 2 == 0 ? 1024 : o->size));
        uint8_t bits = (uint8_t)(1u << next_random() % 8);
        current_object = o->name;
        current_place = at;
        o->data[at] ^= bits;
        put("flipped", o->data, o->size);
        o->data[at] ^= bits;

        const char *folders[] = {folder};
        struct sym_options options = {
            .size = sizeof(options), .debug_dirs = folders, .debug_dir_count = 1};
        struct sym_module m = {.size = sizeof(m), .path = path, .start = 0x10000, .end = 0x20000};
        const struct sym_frame *f;
        size_t count;
        alarm(MOST_SECONDS);
        alloc.bytes = 0;
        struct sym_context *c = sym_context_new();
        assert_non_null(c);
        assert_int_equal(sym_context_open(c, &options), 0);
        struct sym_query q = {0};
        assert_int_equal(sym_module_add(c, &m, &q.module), 0);
        for (q.rel = 0; q.rel < o->size + 4096; q.rel += 97) {
            q.abs = m.start + q.rel;
            assert_int_equal(sym_resolve(c, &q, &f, &count), 0);
            assert_true(count >= 1 && (f->name != NULL) == (f->miss == SYM_MISS_NONE));
        }
        sym_context_free(c);
        alarm(0);
        /* Answers and their texts come on top. */
        assert_true(alloc.bytes <= MOST_BYTES(o->size) + ((size_t)4 << 20));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_cut_at_every_byte_are_survived),
        cmocka_unit_test(every_field_of_the_elf_header_may_be_extreme),
        cmocka_unit_test(every_two_fields_of_the_elf_header_may_be_extreme),
        cmocka_unit_test(every_field_of_the_program_headers_may_be_extreme),
        cmocka_unit_test(every_field_of_the_section_headers_may_be_extreme),
        cmocka_unit_test(every_dynamic_entry_and_the_first_symbols_may_be_extreme),
        cmocka_unit_test(twenty_thousand_files_with_flipped_bits_are_survived),
        cmocka_unit_test(flipped_files_are_survived_by_the_public_functions),
    };
    return cmocka_run_group_tests(tests, build_all, remove_all);
}
