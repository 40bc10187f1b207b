/* SPDX-License-Identifier: MIT */
/*
 * The hand-made spools of tests/fixtures/stackpulse/cases, one rule each: the reader says of every
 * one what stackpulse says of it, be it records or a refusal.
 */
#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "dump_lines.h"

#define CASES_COUNT 84 /* so that none goes missing unseen */

/* What stackpulse's refusals are here, where it is not a broken rule of the record part. */
struct refusal {
    const char *begins;
    int code;
    const char *text; /* ours, or a part of it */
};

static const struct refusal refusals[] = {
    {"invalid stackpulse spool magic", SPOOL_ERR_FORMAT, "not a spool"},
    {"frame address outside referenced module 0", SPOOL_ERR_CORRUPT, "beyond the end of module 0"},
    {"frame address precedes module 0 file offset", SPOOL_ERR_CORRUPT, "below file offset"},
    {"frame id 1 did not match expected 0", SPOOL_ERR_CORRUPT, "has id 1 instead of 0"},
    {"frame id 9 did not match expected 1", SPOOL_ERR_CORRUPT, "has id 9 instead of 1"},
    {"frame module references missing id 0", SPOOL_ERR_CORRUPT, "refers to module 0 of 0"},
    {"invalid spool varint", SPOOL_ERR_CORRUPT, "has a number of more than 64 bits at byte "},
    {"invalid utf-8 sequence of 1 bytes from index 5", SPOOL_ERR_CORRUPT,
     "not UTF-8 at its byte 5"},
    {"module 0 end precedes module start", SPOOL_ERR_CORRUPT, "refers to module 0, which ends at"},
    {"module deactivation references missing id 0", SPOOL_ERR_CORRUPT, "refers to module 0 of 0"},
    {"module device major too large", SPOOL_ERR_CORRUPT, "has device major 4294967296"},
    {"module device minor too large", SPOOL_ERR_CORRUPT, "has device minor 4294967296"},
    {"module id 1 did not match expected 0", SPOOL_ERR_CORRUPT, "has id 1 instead of 0"},
    {"process id 2147483648 out of range", SPOOL_ERR_CORRUPT, "has process id 2147483648"},
    {"sample stack references missing id 0", SPOOL_ERR_CORRUPT, "refers to stack 0 of 0"},
    {"sample thread references missing id 0", SPOOL_ERR_CORRUPT, "refers to thread 0 of 0"},
    {"sample timestamp delta -11 out of range", SPOOL_ERR_CORRUPT, "time delta of -11 ns"},
    {"sample timestamp delta 2 out of range", SPOOL_ERR_CORRUPT, "time delta of 2 ns"},
    {"spool byte range overflow", SPOOL_ERR_CORRUPT, "leads beyond 2^64-1"},
    {"stack frame references missing id 0", SPOOL_ERR_CORRUPT, "refers to frame 0 of 0"},
    {"stack id 1 did not match expected 0", SPOOL_ERR_CORRUPT, "has id 1 instead of 0"},
    {"stack prefix id too large", SPOOL_ERR_CORRUPT, "refers to prefix "},
    {"stack prefix references missing id 0", SPOOL_ERR_CORRUPT, "refers to prefix 0 of 0"},
    {"stack prefix references missing id 1", SPOOL_ERR_CORRUPT, "refers to prefix 1 of 1"},
    {"targeted module deactivation requires spool version 2", SPOOL_ERR_CORRUPT,
     "has tag 8, which version 1 does not have"},
    {"thread id 1 did not match expected 0", SPOOL_ERR_CORRUPT, "has id 1 instead of 0"},
    {"truncated stack marker has nonzero payload", SPOOL_ERR_CORRUPT,
     "is a truncated-stack marker with address"},
    {"unknown spool record tag 0", SPOOL_ERR_CORRUPT, "has tag 0, which version 3"},
    {"unknown spool record tag 255", SPOOL_ERR_CORRUPT, "has tag 255, which version 3"},
    {"unknown spool record tag 9", SPOOL_ERR_CORRUPT, "has tag 9, which version 3"},
    {"truncated spool byte range", SPOOL_ERR_TRUNCATED, ""},
    {"truncated spool varint", SPOOL_ERR_TRUNCATED, "ends inside the header"},
};

static void compare_refusal(const struct dump_spool *s, const char *expected)
{
    const char *text = spool_reader_error(s->reader);

    /* "SPULSE4", which stackpulse 0.5.1 did not know yet, and a header of version 4 that is cut
     * off. */
    if (strstr(dump_path, "/magic-wrong.") != NULL) {
        assert_int_equal(s->rc, SPOOL_ERR_TRUNCATED);
        return;
    }
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        size_t size = strlen(refusals[i].begins);

        if (strncmp(expected, refusals[i].begins, size) != 0)
            continue;
        if (s->rc != refusals[i].code || strstr(text, refusals[i].text) == NULL)
            dump_fail("%d \"%s\" for \"%.60s\"", s->rc, text, expected);
        if (s->rc == SPOOL_ERR_CORRUPT && strstr(text, "record at byte ") == NULL)
            dump_fail("no place in \"%s\"", text);
        if (spool_reader_cut_tail(s->reader))
            dump_fail("refused and cut off");
        return;
    }
    dump_fail("unknown refusal: %.60s", expected);
}

static void compare_case(const char *spool_path)
{
    struct bytes b = {0};
    struct dump_spool s;
    struct dump_counts seen;
    char path[600];
    char *expected;

    snprintf(path, sizeof path, "%.*s.expected", (int)(strlen(spool_path) - 6), spool_path);
    bytes_file(&b, spool_path);
    expected = dump_load(path);
    dump_spool_read(&s, b.data, b.size);
    if (strncmp(expected, "error: ", 7) == 0) {
        if (s.rc == 0)
            dump_fail("accepted");
        compare_refusal(&s, expected + 7);
    } else {
        if (s.rc < 0)
            dump_fail("%s", spool_reader_error(s.reader));
        dump_compare(&s, expected, &seen);
    }
    dump_spool_free(&s);
    free(expected);
    bytes_free(&b);
}

static void every_case_reads_as_stackpulse_reads_it(void **state)
{
    glob_t found;

    (void)state;
    assert_int_equal(glob(FIXTURES_DIR "/stackpulse/cases/*.spool", 0, NULL, &found), 0);
    assert_int_equal(found.gl_pathc, CASES_COUNT);
    for (size_t i = 0; i < found.gl_pathc; i++)
        compare_case(found.gl_pathv[i]);
    globfree(&found);
}

static void every_case_ends_where_a_cut_of_it_ends_when_it_is_whole(void **state)
{
    glob_t found;

    (void)state;
    assert_int_equal(glob(FIXTURES_DIR "/stackpulse/cases/*.spool", 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        struct bytes b = {0};
        struct dump_spool whole;

        bytes_file(&b, found.gl_pathv[i]);
        dump_spool_read(&whole, b.data, b.size);
        for (size_t cut = 0; whole.rc == 0 && cut < b.size; cut++) {
            struct dump_spool s;

            dump_spool_read(&s, b.data, cut);
            assert_int_equal(s.rc, spool_reader_header(s.reader) ? 0 : SPOOL_ERR_TRUNCATED);
            assert_true(s.rc == 0 || cut < spool_reader_kept_bytes(whole.reader));
            assert_in_range(s.sample_count, 0, whole.sample_count);
            for (size_t k = 0; k < s.sample_count; k++)
                assert_int_equal(s.samples[k].time_ns, whole.samples[k].time_ns);
            dump_spool_free(&s);
        }
        dump_spool_free(&whole);
        bytes_free(&b);
    }
    globfree(&found);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_case_reads_as_stackpulse_reads_it),
        cmocka_unit_test(every_case_ends_where_a_cut_of_it_ends_when_it_is_whole),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
