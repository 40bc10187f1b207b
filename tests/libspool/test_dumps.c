/* SPDX-License-Identifier: MIT */
/*
 * The recorded and the synthetic spools of tests/fixtures/stackpulse against what stackpulse reads
 * from them: every module, frame and sample, and where every frame of every sample belongs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "dump_lines.h"

/* The table at the end of the fixtures' README. */
static const struct {
    const char *name;
    struct dump_counts counts;
    bool cut;
} rows[] = {
    {"kernel/syscalls-O2", {4, 269, 0, 400, 4773, true}, false},
    {"ladder/attach-O2", {5, 11, 0, 546, 3822, true}, false},
    {"ladder/exec-chain", {16, 42, 0, 297, 2128, true}, false},
    {"ladder/ladder-O0", {5, 34, 0, 1375, 13541, true}, false},
    {"ladder/ladder-O2-fork", {8, 26, 0, 397, 2916, true}, false},
    {"ladder/ladder-O2-smallstack", {4, 14, 0, 398, 6368, true}, false},
    {"ladder/ladder-O2", {5, 22, 0, 1381, 12466, true}, false},
    {"python/py312", {7, 274, 2, 298, 1546, true}, false},
    {"python/py313", {7, 266, 2, 293, 1590, true}, false},
    {"synth/backwards", {25, 970, 0, 1000, 9978, true}, false},
    {"synth/basic-v1", {17, 2622, 0, 3000, 58282, true}, false},
    {"synth/basic", {17, 2622, 0, 3000, 58282, true}, false},
    {"synth/churn-cut", {82, 5078, 3, 2999, 46814, true}, true},
    {"synth/churn-half", {46, 2865, 3, 1298, 20314, true}, true},
    {"synth/churn-v2", {82, 5078, 3, 3000, 46830, true}, false},
    {"synth/churn", {82, 5078, 3, 3000, 46830, true}, false},
    {"synth/deep", {11, 914, 0, 300, 23305, true}, false},
    {"synth/unpinned", {38, 3816, 0, 2000, 24497, true}, false},
};

static void every_spool_reads_as_stackpulse_reads_it(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct dump_counts *want = &rows[i].counts;
        struct bytes b = {0};
        struct dump_spool s;
        struct dump_counts seen;
        char path[600];
        char *dump;

        snprintf(path, sizeof path, "%s/stackpulse/%s.spool", FIXTURES_DIR, rows[i].name);
        bytes_file(&b, path);
        dump_spool_read(&s, b.data, b.size);
        assert_int_equal(s.rc, 0);
        assert_int_equal(spool_reader_cut_tail(s.reader), rows[i].cut);
        snprintf(path, sizeof path, "%s/stackpulse/%s.dump.jsonl.gz", FIXTURES_DIR, rows[i].name);
        dump = dump_load(path);
        dump_compare(&s, dump, &seen);
        assert_int_equal(seen.modules, want->modules);
        assert_int_equal(seen.frames, want->frames);
        assert_int_equal(seen.python, want->python);
        assert_int_equal(seen.samples, want->samples);
        assert_int_equal(seen.sample_frames, want->sample_frames);
        free(dump);
        dump_spool_free(&s);
        bytes_free(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_spool_reads_as_stackpulse_reads_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
