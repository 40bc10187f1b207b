/* SPDX-License-Identifier: MIT */
/* What a registry keeps of files with debug information: within its limits, and what it says. The
 * reader of debug information is one that this test plays. */
#include "context.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

struct symint_dwarf {
    struct symint_debug_file file;
    uint64_t bytes;
    uint64_t limit;
    const char *detail;
};

static struct symint_dwarf *newest;
static int live;

int __wrap_symint_dwarf_open(const struct symint_search_options *options,
                             struct symint_arena *arena, struct symint_debug_file *file,
                             const char *program, uint64_t bias, struct symint_dwarf **out);
void __wrap_symint_dwarf_free(struct symint_dwarf *d);
uint64_t __wrap_symint_dwarf_bytes(const struct symint_dwarf *d);
void __wrap_symint_dwarf_limit(struct symint_dwarf *d, uint64_t bytes);
const char *__wrap_symint_dwarf_detail(const struct symint_dwarf *d);
int __wrap_symint_dwarf_lookup(struct symint_dwarf *d, struct symint_strings *strings,
                               const struct symint_dwarf_want *want, uint64_t vaddr,
                               struct symint_dwarf_chain *out);

int __wrap_symint_dwarf_open(const struct symint_search_options *options,
                             struct symint_arena *arena, struct symint_debug_file *file,
                             const char *program, uint64_t bias, struct symint_dwarf **out)
{
    (void)options;
    (void)arena;
    assert_non_null(file->elf);
    assert_true(file->fd >= 0);
    assert_true(symint_elf_has_debug_info(file->elf));
    assert_string_equal(program, file->path);
    assert_int_equal(bias, 0);
    newest = calloc(1, sizeof(*newest));
    assert_non_null(newest);
    newest->file = *file;
    newest->detail = "";
    live++;
    *out = newest;
    return 0;
}

void __wrap_symint_dwarf_free(struct symint_dwarf *d)
{
    if (d == NULL)
        return;
    symint_debug_file_close(&d->file);
    free(d);
    live--;
}

uint64_t __wrap_symint_dwarf_bytes(const struct symint_dwarf *d)
{
    return d->bytes;
}

void __wrap_symint_dwarf_limit(struct symint_dwarf *d, uint64_t bytes)
{
    d->limit = bytes;
}

const char *__wrap_symint_dwarf_detail(const struct symint_dwarf *d)
{
    return d->detail;
}

int __wrap_symint_dwarf_lookup(struct symint_dwarf *d, struct symint_strings *strings,
                               const struct symint_dwarf_want *want, uint64_t vaddr,
                               struct symint_dwarf_chain *out)
{
    (void)d;
    (void)strings;
    (void)want;
    (void)vaddr;
    *out = (struct symint_dwarf_chain){0};
    return 0;
}

/* ---- files ---- */

#define FILES 5

static char folder[] = "/tmp/images.XXXXXX";
static char paths[FILES][64];

/* Libraries with symbols and debug information. */
static int make_files(void **state)
{
    char command[512];
    (void)state;
    if (mkdtemp(folder) == NULL)
        return -1;
    for (int i = 0; i < FILES; i++) {
        snprintf(paths[i], sizeof(paths[i]), "%s/%d", folder, i);
        snprintf(
            command, sizeof(command),
            "echo 'int f%d(void) { return %d; }' | ${CC:-cc} -g -shared -nostdlib -x c -o %s - "
            "-Wl,--build-id=none",
            i, i, paths[i]);
        if (system(command) != 0)
            return -1;
    }
    return 0;
}

static int remove_files(void **state)
{
    (void)state;
    for (int i = 0; i < FILES; i++)
        unlink(paths[i]);
    return rmdir(folder);
}

struct registry {
    struct sym_context *c;
    uint32_t modules[FILES];
};

static void open_registry(struct registry *r, uint64_t memory_limit_bytes)
{
    struct sym_options options = {.size = sizeof(options),
                                  .memory_limit_bytes = memory_limit_bytes};
    live = 0;
    r->c = sym_context_new();
    assert_non_null(r->c);
    assert_int_equal(sym_context_open(r->c, &options), 0);
    for (int i = 0; i < FILES; i++) {
        struct sym_module m = {.size = sizeof(m), .path = paths[i], .end = 1 << 20};
        assert_int_equal(sym_module_add(r->c, &m, &r->modules[i]), 0);
    }
}

static struct symint_image *load(struct registry *r, int i)
{
    struct symint_image *image =
        symint_module_load(&r->c->registry, &r->c->strings, &r->c->registry.modules[r->modules[i]],
                           &r->c->search);
    assert_non_null(image);
    return image;
}

static void bytes_grow_with_lookups(void **state)
{
    struct registry r;
    (void)state;
    open_registry(&r, 0);
    struct symint_image *image = load(&r, 0);
    assert_non_null(image->located.dwarf);
    assert_int_equal(newest->limit, (uint64_t)128 << 20);
    uint64_t before = sym_context_table_bytes(r.c);
    newest->bytes = 5000;
    symint_image_account(&r.c->registry, image);
    assert_int_equal(sym_context_table_bytes(r.c), before + 5000);
    newest->bytes = 100;
    symint_image_account(&r.c->registry, image);
    assert_int_equal(sym_context_table_bytes(r.c), before + 100);
    assert_int_equal(sym_module_invalidate(r.c, r.modules[0]), 0);
    assert_int_equal(sym_context_table_bytes(r.c), 0);
    assert_int_equal(live, 0);
    sym_context_free(r.c);
}

static void growth_drops_the_images_that_were_not_used_for_long(void **state)
{
    struct registry r;
    (void)state;
    open_registry(&r, 1 << 20);
    struct symint_image *old = load(&r, 0);
    struct symint_image *young = load(&r, 1);
    newest->bytes = 2 << 20;
    symint_image_account(&r.c->registry, young);
    assert_null(old->located.elf);
    assert_null(old->located.dwarf);
    assert_non_null(young->located.dwarf); /* one file may exceed the limit alone */
    assert_int_equal(live, 1);
    old = load(&r, 0); /* read again, and now the other one goes */
    assert_non_null(old->located.dwarf);
    assert_null(young->located.dwarf);
    assert_int_equal(live, 1);
    sym_context_free(r.c);
    assert_int_equal(live, 0);
}

static void there_are_no_more_open_files_than_the_limit(void **state)
{
    struct registry r;
    struct symint_image *images[FILES];
    (void)state;
    open_registry(&r, 0);
    assert_in_range(r.c->registry.dwarf_limit, 1, 64);
    r.c->registry.dwarf_limit = 2;
    for (int i = 0; i < FILES; i++) {
        images[i] = load(&r, i);
        if (i == 1)
            load(&r, 0); /* used last: the other one goes */
        assert_in_range(live, 1, 2);
    }
    assert_null(images[1]->located.dwarf);
    assert_non_null(images[FILES - 1]->located.dwarf);
    assert_non_null(images[FILES - 2]->located.dwarf);
    sym_context_free(r.c);
    assert_int_equal(live, 0);
}

static void what_lookups_miss_is_told(void **state)
{
    struct registry r;
    const char *detail;
    (void)state;
    open_registry(&r, 0);
    struct symint_image *image = load(&r, 0);
    assert_int_equal(sym_module_state(r.c, r.modules[0], &detail), SYM_MISS_NONE);
    assert_string_equal(detail, "");
    newest->detail = "a.dwo: No such file";
    symint_image_account(&r.c->registry, image);
    sym_module_state(r.c, r.modules[0], &detail);
    assert_string_equal(detail, "a.dwo: No such file");
    image->located.detail = "b: damaged";
    newest->detail = "c.dwo: No such file";
    symint_image_account(&r.c->registry, image);
    sym_module_state(r.c, r.modules[0], &detail);
    assert_string_equal(detail, "b: damaged; c.dwo: No such file");
    sym_context_free(r.c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_grow_with_lookups),
        cmocka_unit_test(growth_drops_the_images_that_were_not_used_for_long),
        cmocka_unit_test(there_are_no_more_open_files_than_the_limit),
        cmocka_unit_test(what_lookups_miss_is_told),
    };
    return cmocka_run_group_tests(tests, make_files, remove_files);
}
