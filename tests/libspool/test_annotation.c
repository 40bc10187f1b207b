/* SPDX-License-Identifier: MIT */
/* Which module records are annotations, what they say, and how one is spelt. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "annotation.h"
#include "format.h"
#include "utf8.h"

static struct spool_module module_of(const char *path)
{
    return (struct spool_module){.id = 9, .pid = 7, .path = path, .path_size = strlen(path)};
}

static struct spool_annotation parse(const char *path)
{
    struct spool_module m = module_of(path);
    struct spool_annotation a;

    if (!spoolint_annotation_parse(&m, &a))
        fail_msg("'%s' is no annotation", path);
    assert_int_equal(a.pid, 7);
    assert_int_equal(a.module.id, 9);
    assert_ptr_equal(a.module.path, path);
    assert_int_equal(strlen(a.value), a.value_size);
    assert_int_equal(strlen(a.text), a.text_size);
    return a;
}

static void refuse(const char *path)
{
    struct spool_module m = module_of(path);
    struct spool_annotation a;

    if (spoolint_annotation_parse(&m, &a))
        fail_msg("'%s' is an annotation", path);
}

static void every_known_key_gives_its_numbers_and_text(void **state)
{
    static const struct {
        const char *path;
        enum spool_note_key key;
        const char *text;
        uint64_t number[3];
    } cases[] = {
        {"[spool:comm] a b", SPOOL_NOTE_COMM, "a b", {0}},
        {"[spool:comm]", SPOOL_NOTE_COMM, "", {0}},
        {"[spool:thread] 12 V8 Worker 3", SPOOL_NOTE_THREAD, "V8 Worker 3", {12}},
        {"[spool:thread] 12 ", SPOOL_NOTE_THREAD, "", {12}},
        {"[spool:thread] 18446744073709551615 x", SPOOL_NOTE_THREAD, "x", {UINT64_MAX}},
        {"[spool:build-id] 3 00fFab", SPOOL_NOTE_BUILD_ID, "00fFab", {3}},
        {"[spool:build-id] 4294967294 ab", SPOOL_NOTE_BUILD_ID, "ab", {4294967294u}},
        {"[spool:cmdline] sh -c 'a b'", SPOOL_NOTE_CMDLINE, "sh -c 'a b'", {0}},
        {"[spool:host] Linux 6.1 x86_64 h", SPOOL_NOTE_HOST, "Linux 6.1 x86_64 h", {0}},
        {"[spool:kernel] 6.1 - 12-34", SPOOL_NOTE_KERNEL, "6.1 - 12-34", {0}},
        {"[spool:ksymbol] 0xffffffffC0000000 128 bpf_prog x",
         SPOOL_NOTE_KSYMBOL,
         "bpf_prog x",
         {UINT64_C(0xffffffffc0000000), 128}},
        {"[spool:ksymbol] 4096 0 f", SPOOL_NOTE_KSYMBOL, "f", {4096, 0}},
        {"[spool:event] cpu cycles 999", SPOOL_NOTE_EVENT, "cpu cycles 999", {999}},
        {"[spool:clock] 1 1700000000000000005",
         SPOOL_NOTE_CLOCK,
         "",
         {1, UINT64_C(1700000000000000005)}},
        {"[spool:lost] 0", SPOOL_NOTE_LOST, "", {0}},
        {"[spool:end] 100 2 3", SPOOL_NOTE_END, "", {100, 2, 3}},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct spool_annotation a = parse(cases[i].path);

        assert_int_equal(a.key, cases[i].key);
        assert_string_equal(a.text, cases[i].text);
        for (int k = 0; k < 3; k++)
            assert_int_equal(a.number[k], cases[i].number[k]);
    }
}

static void an_unknown_key_is_kept_with_its_text(void **state)
{
    struct spool_annotation a = parse("[spool:0-new-key] some value");

    (void)state;
    assert_int_equal(a.key, SPOOL_NOTE_OTHER);
    assert_int_equal(a.key_size, 9);
    assert_memory_equal(a.key_text, "0-new-key", 9);
    assert_string_equal(a.value, "some value");
    assert_string_equal(a.text, "some value");
    a = parse("[spool:x]");
    assert_int_equal(a.key, SPOOL_NOTE_OTHER);
    assert_string_equal(a.value, "");
    a = parse("[spool:x] ");
    assert_string_equal(a.value, "");
    a = parse("[spool:commx] a");
    assert_int_equal(a.key, SPOOL_NOTE_OTHER);
    a = parse("[spool:com] a");
    assert_int_equal(a.key, SPOOL_NOTE_OTHER);
    a = parse("[spool:abcdefghijklmnopqrstuvwxyz012345] a"); /* 32 */
    assert_int_equal(a.key_size, 32);
}

static void a_value_that_does_not_parse_makes_an_ordinary_module(void **state)
{
    static const char *const paths[] = {
        "[spool:thread]",
        "[spool:thread] 12",
        "[spool:thread] 0 x",
        "[spool:thread] -1 x",
        "[spool:thread] +1 x",
        "[spool:thread]  1 x",
        "[spool:thread] x 1",
        "[spool:thread] 0x10 x",
        "[spool:thread] 18446744073709551616 x",
        "[spool:thread] 99999999999999999999999 x",
        "[spool:build-id] 3",
        "[spool:build-id] 3 ",
        "[spool:build-id] 3 abc",
        "[spool:build-id] 3 xx",
        "[spool:build-id] 3 ab ",
        "[spool:build-id] 3 ab cd",
        "[spool:build-id] 4294967295 ab",
        "[spool:build-id] ab 3",
        "[spool:ksymbol] 0x 1 f",
        "[spool:ksymbol] 0xg 1 f",
        "[spool:ksymbol] 0x10000000000000000 1 f",
        "[spool:ksymbol] 0x1 1",
        "[spool:ksymbol] 0x1",
        "[spool:ksymbol]",
        "[spool:event]",
        "[spool:event] 99",
        "[spool:event]  99",
        "[spool:event] cycles",
        "[spool:event] cycles ",
        "[spool:event] cycles 99Hz",
        "[spool:clock] 1",
        "[spool:clock] 1 ",
        "[spool:clock] 1 2 ",
        "[spool:clock] 1 2 3",
        "[spool:clock] 1 -2",
        "[spool:lost]",
        "[spool:lost] ",
        "[spool:lost] x",
        "[spool:lost] 1 2",
        "[spool:end] 1 2",
        "[spool:end] 1 2 3 4",
        "[spool:end] 1  2 3",
    };

    (void)state;
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
        refuse(paths[i]);
}

static void a_build_id_has_1_to_64_bytes(void **state)
{
    char path[200] = "[spool:build-id] 1 ";
    size_t at = strlen(path);

    (void)state;
    for (size_t digits = 1; digits <= 140; digits++) {
        path[at + digits - 1] = 'a';
        path[at + digits] = '\0';
        if (digits % 2 == 0 && digits <= 128)
            parse(path);
        else
            refuse(path);
    }
}

static void a_path_of_another_form_makes_an_ordinary_module(void **state)
{
    static const char *const paths[] = {
        "",
        "[",
        "[spool:",
        "[spool:]",
        "[spool:] x",
        "[spool:comm",
        "[spool:comm x",
        "[spool:comm]x",
        "[spool:comm ] x",
        "[spool:Comm] x",
        "[spool:c_m] x",
        "[spool:c\xc3\xa9] x",
        " [spool:comm] x",
        "[Spool:comm] x",
        "[spool:abcdefghijklmnopqrstuvwxyz0123456] a", /* 33 */
        "[spool:comm] \xff",
        "[spool:comm] \xc3",
        "[vdso]",
        "/bin/sh",
    };

    (void)state;
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
        refuse(paths[i]);
}

static void a_nul_in_the_path_makes_an_ordinary_module(void **state)
{
    struct spool_module m = module_of("");
    struct spool_annotation a;

    (void)state;
    m.path = "[spool:comm] a\0b";
    m.path_size = 16;
    assert_false(spoolint_annotation_parse(&m, &a));
    m.path_size = 15;
    assert_false(spoolint_annotation_parse(&m, &a));
    m.path_size = 14;
    assert_true(spoolint_annotation_parse(&m, &a));
}

static void a_module_that_maps_something_is_no_annotation(void **state)
{
    struct spool_module m[12];
    struct spool_annotation a;

    (void)state;
    for (size_t i = 0; i < 12; i++)
        m[i] = module_of("[spool:comm] x");
    m[0].kernel = true;
    m[1].jit = true;
    m[2].pid = 0;
    m[3].pid = -1;
    m[4].start = 1;
    m[5].end = 1;
    m[6].file_offset = 1;
    m[7].inode = 1;
    m[8].dev_major = 1;
    m[9].dev_minor = 1;
    m[10].inode_gen = 1;
    for (size_t i = 0; i < 11; i++)
        assert_false(spoolint_annotation_parse(&m[i], &a));
    assert_true(spoolint_annotation_parse(&m[11], &a));
}

static void a_path_has_at_most_4096_bytes(void **state)
{
    char path[FORMAT_NOTE_PATH_MAX + 2] = "[spool:comm] ";

    (void)state;
    memset(path + 13, 'x', sizeof path - 13);
    path[FORMAT_NOTE_PATH_MAX] = '\0';
    parse(path);
    path[FORMAT_NOTE_PATH_MAX] = 'x';
    path[FORMAT_NOTE_PATH_MAX + 1] = '\0';
    refuse(path);
}

static void parsing_stays_inside_the_path(void **state)
{
    static const char *const paths[] = {"[spool:comm] x",          "[spool:thread] 1 x",
                                        "[spool:build-id] 1 ab",   "[spool:end] 1 2 3",
                                        "[spool:ksymbol] 0x1 1 f", "[spool:event] c 1",
                                        "[spool:lost] 1",          "[spool:ksymbol] 0x12 34 f"};

    (void)state;
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        for (size_t size = 0; size <= strlen(paths[i]); size++) {
            struct spool_module m = module_of("");
            struct spool_annotation a;
            char *exact = malloc(size + (size == 0)); /* not terminated: the sanitizer watches */

            assert_non_null(exact);
            memcpy(exact, paths[i], size);
            m.path = exact;
            m.path_size = size;
            spoolint_annotation_parse(&m, &a);
            free(exact);
        }
    }
}

/* ---- spelling ---- */

static char spelt[FORMAT_NOTE_PATH_MAX + 1];

static const char *spell(const char *key, const char *value)
{
    size_t size;

    memset(spelt, 'X', sizeof spelt);
    size = spoolint_annotation_path(key, value, spelt);
    if (size == 0)
        return NULL;
    assert_int_equal(strlen(spelt), size);
    assert_int_equal(spoolint_utf8_valid_prefix(spelt, size), size);
    return spelt;
}

static void a_path_is_spelt_as_it_is_parsed(void **state)
{
    (void)state;
    assert_string_equal(spell("comm", "a b"), "[spool:comm] a b");
    assert_string_equal(spell("comm", NULL), "[spool:comm]");
    assert_string_equal(spell("comm", ""), "[spool:comm]");
    assert_string_equal(parse(spell("thread", "5 \xc3\xa9")).text, "\xc3\xa9");
}

static void a_bad_key_is_not_spelt(void **state)
{
    (void)state;
    assert_null(spell("", "x"));
    assert_null(spell("Comm", "x"));
    assert_null(spell("a b", "x"));
    assert_null(spell("a]", "x"));
    assert_null(spell("abcdefghijklmnopqrstuvwxyz0123456", "x"));
    assert_non_null(spell("abcdefghijklmnopqrstuvwxyz012345", "x"));
}

static void bytes_that_are_not_utf8_become_replacement_characters(void **state)
{
    (void)state;
    assert_string_equal(spell("comm", "\xff"), "[spool:comm] \xef\xbf\xbd");
    assert_string_equal(spell("comm", "a\xff\xfe\xc3\xa9"),
                        "[spool:comm] a\xef\xbf\xbd\xef\xbf\xbd\xc3\xa9");
    /* A character that was cut is one bad sequence. */
    assert_string_equal(spell("comm", "a\xe2\x82z\xf0\x9f\x98"),
                        "[spool:comm] a\xef\xbf\xbdz\xef\xbf\xbd");
}

static void a_long_value_is_cut_at_a_character(void **state)
{
    static char value[10000];

    (void)state;
    memset(value, 'v', sizeof value - 1);
    assert_int_equal(strlen(spell("comm", value)), FORMAT_NOTE_PATH_MAX);
    /* 4096 - 13 = 4083 bytes of room; four-byte characters that begin at every offset. */
    for (size_t shift = 0; shift < 4; shift++) {
        memset(value, 'v', shift);
        for (size_t at = shift; at + 4 < sizeof value; at += 4)
            memcpy(value + at, "\xf0\x9f\x98\x80", 4);
        assert_int_equal(strlen(spell("comm", value)), 13 + shift + (4083 - shift) / 4 * 4);
        parse(spelt);
    }
    /* The same for replacements, three bytes each. */
    for (size_t shift = 0; shift < 3; shift++) {
        memset(value, 'v', shift);
        memset(value + shift, 0xff, sizeof value - 1 - shift);
        assert_int_equal(strlen(spell("comm", value)), 13 + shift + (4083 - shift) / 3 * 3);
        parse(spelt);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_known_key_gives_its_numbers_and_text),
        cmocka_unit_test(an_unknown_key_is_kept_with_its_text),
        cmocka_unit_test(a_value_that_does_not_parse_makes_an_ordinary_module),
        cmocka_unit_test(a_build_id_has_1_to_64_bytes),
        cmocka_unit_test(a_path_of_another_form_makes_an_ordinary_module),
        cmocka_unit_test(a_nul_in_the_path_makes_an_ordinary_module),
        cmocka_unit_test(a_module_that_maps_something_is_no_annotation),
        cmocka_unit_test(a_path_has_at_most_4096_bytes),
        cmocka_unit_test(parsing_stays_inside_the_path),
        cmocka_unit_test(a_path_is_spelt_as_it_is_parsed),
        cmocka_unit_test(a_bad_key_is_not_spelt),
        cmocka_unit_test(bytes_that_are_not_utf8_become_replacement_characters),
        cmocka_unit_test(a_long_value_is_cut_at_a_character),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
