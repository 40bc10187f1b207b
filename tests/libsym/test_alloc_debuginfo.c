/* SPDX-License-Identifier: MIT */
/* Lets every allocation of unpacking .gnu_debugdata fail, liblzma's included: SYM_ERR_NOMEM, and
 * nothing is left behind (which is the sanitizer's business). */
#include "debuginfo.h"
#include "elf_private.h"

#include "section_image.h"

#include "../alloc_fault.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#ifdef SPOOL_HAVE_LZMA

static void any_allocation_of_unpacking_may_fail(void **state)
{
    (void)state;
    size_t packed_size, image_size;
    uint8_t *bytes = calloc(1, 1000000); /* unpacked, it grows several times */
    assert_non_null(bytes);
    uint8_t *packed = section_image_pack(bytes, 1000000, &packed_size);
    struct section_image image = {.name = ".gnu_debugdata", .data = packed, .size = packed_size};
    uint8_t *file = section_image_build(&image, &image_size);
    struct symint_input input = {.fd = -1, .memory = file, .size = image_size};
    struct symint_elf *e;
    enum sym_miss miss;
    const char *why;
    assert_int_equal(symint_elf_open(&input, &e, &miss, &why), 0);
    assert_non_null(e);
    assert_int_equal(symint_elf_read_sections(e, &miss, &why), 0);
    long n = 1;
    for (;; n++) {
        uint8_t *data = (uint8_t *)1;
        size_t size;
        alloc.failed = false;
        alloc.countdown = n;
        int rc = symint_minidebug_read(e, &data, &size, &why);
        alloc.countdown = 0;
        if (!alloc.failed) {
            assert_int_equal(rc, 0);
            assert_int_equal(size, 1000000);
            assert_memory_equal(data, bytes, size);
            free(data);
            break;
        }
        assert_int_equal(rc, SYM_ERR_NOMEM);
        assert_null(data);
    }
    assert_true(n > 8); /* five of the output, and the decoder's */
    symint_elf_free(e);
    free(file);
    free(packed);
    free(bytes);
}

#endif

static void reading_a_link_allocates_nothing(void **state)
{
    (void)state;
    size_t size;
    struct section_image image = {
        .name = ".gnu_debuglink", .data = "abc\0\1\2\3\4", .size = 8, .big = true};
    uint8_t *file = section_image_build(&image, &size);
    struct symint_input input = {.fd = -1, .memory = file, .size = size};
    struct symint_elf *e;
    struct symint_debug_link link;
    enum sym_miss miss;
    const char *why;
    assert_int_equal(symint_elf_open(&input, &e, &miss, &why), 0);
    assert_non_null(e);
    assert_int_equal(symint_elf_read_sections(e, &miss, &why), 0);
    alloc.failed = false;
    alloc.countdown = 1;
    bool there = symint_debug_link_read(e, &link);
    alloc.countdown = 0;
    assert_true(there);
    assert_false(alloc.failed);
    assert_int_equal(link.crc32, 0x01020304);
    symint_elf_free(e);
    free(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#ifdef SPOOL_HAVE_LZMA
        cmocka_unit_test(any_allocation_of_unpacking_may_fail),
#endif
        cmocka_unit_test(reading_a_link_allocates_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
