/* SPDX-License-Identifier: MIT */
/* Lets every allocation of symint_fdes_read fail, one after the other. Leaks are the sanitizer's
 * business. */
#include "eh_image.h"

#include "../alloc_fault.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

static void without_memory_nothing_is_kept(void **state)
{
    (void)state;
    const struct eh_file f = {.vaddr = EH_ABOVE};
    const struct eh_style s = {.encoding = 0x3b}; /* needs the dynamic section, too */
    struct image_buffer b = eh_begin(&f, 0x10000);
    size_t cie = eh_cie(&b, &s);
    for (uint64_t i = 0; i < 300; i++) /* in no order, and more than the table has room for */
        eh_fde(&b, &f, &s, cie, EH_TEXT + i * 7 % 300, 1);
    size_t size;
    uint8_t *data = eh_build(&f, &b, &size);
    FILE *file = tmpfile();
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, size, file), size);
    assert_int_equal(fflush(file), 0);
    struct symint_input input = {.fd = fileno(file), .size = size};
    struct symint_elf *e;
    struct symint_fdes fdes;
    enum sym_miss miss;
    const char *why;
    assert_int_equal(symint_elf_open(&input, &e, &miss, &why), 0);
    assert_int_equal(symint_elf_read_sections(e, &miss, &why), 0);
    long n = 0;
    for (;;) {
        alloc.countdown = ++n;
        int rc = symint_fdes_read(e, &fdes);
        bool failed = alloc.countdown == 0;
        alloc.countdown = 0;
        assert_int_equal(rc, failed ? SYM_ERR_NOMEM : 0);
        if (!failed)
            break;
        assert_null(fdes.start);
        assert_int_equal(fdes.count, 0);
    }
    assert_true(n > 9);
    assert_int_equal(fdes.count, 300);
    symint_fdes_free(&fdes);
    symint_elf_free(e);
    fclose(file);
    free(data);
    free(b.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(without_memory_nothing_is_kept)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
