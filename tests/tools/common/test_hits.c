/* SPDX-License-Identifier: MIT */
/* Samples of modules: once a sample and file, whatever recursion, processes and selection. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "../spool2folded/make_spool.h"
#include "hits.h"
#include "inputs.h"

static void a_sample_counts_once_for_each_file_of_its_stack(void **state)
{
    struct number_list both[] = {{(uint64_t[]){1, 2}, 2}, {(uint64_t[]){2}, 1}};
    static const uint64_t expected[][5] = {{3, 5, 1, 5, 0}, {0, 2, 0, 2, 0}};
    struct maker m;

    (void)state;
    maker_open(&m, 0);
    assert_int_equal(maker_module(&m, 1, 0x10000, 0x10000, "/bin/app"), 0);
    assert_int_equal(maker_module(&m, 1, 0x30000, 0x10000, "/lib/libc.so"), 1);
    assert_int_equal(maker_module(&m, 1, 0x50000, 0x10000, "/lib/libm.so"), 2);
    assert_int_equal(maker_module(&m, 2, 0x70000, 0x10000, "/lib/libc.so"), 3);
    assert_int_equal(maker_module(&m, 2, 0x90000, 0x10000, "/lib/unused.so"), 4);
    maker_put(&m, 1, 1, 1, "0+10;1+10;0+20;1+20");
    maker_put(&m, 2, 1, 1, "0+10;1+10;0+20;1+20");
    maker_put(&m, 3, 1, 1, "0+10;$30010;2+1;@ffffffff81000010");
    maker_put(&m, 4, 2, 2, "3+10;3+10");
    maker_put(&m, 5, 2, 2, "[truncated];$70010");
    maker_finish(&m);
    for (size_t i = 0; i < 2; i++) {
        struct select_options select = {.has_pids = true, .pids = both[i]};
        struct aggregate_options options = {.select = &select};
        struct aggregate a;
        struct tool_input in;
        uint64_t *hits;

        assert_int_equal(inputs_open(m.path, &in), 0);
        assert_int_equal(aggregate_read(&a, &options, &in, NULL), 0);
        assert_int_equal(aggregate_finish(&a), 0);
        hits = hits_count(in.reader, &a);
        for (size_t module = 0; module < 5; module++)
            assert_int_equal(hits[module], expected[i][module]);
        free(hits);
        aggregate_free(&a);
        inputs_close(&in);
    }
    maker_close(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sample_counts_once_for_each_file_of_its_stack),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
