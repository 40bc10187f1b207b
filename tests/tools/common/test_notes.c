/* SPDX-License-Identifier: MIT */
/* What a spool says about itself: the latest value of a key, build ids by module, words of a
 * value. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "notes.h"

static void take(struct notes *n, enum spool_note_key key, const char *key_text, const char *value,
                 uint64_t number)
{
    struct spool_annotation a = {.key = key,
                                 .key_text = key_text,
                                 .key_size = strlen(key_text),
                                 .value = value,
                                 .value_size = strlen(value),
                                 .text = value,
                                 .text_size = strlen(value),
                                 .number = {number, 0, 0}};

    notes_record(n, &a);
}

/* A build id of module `module` in annotation (and module record) `order`. */
static void take_build_id(struct notes *n, uint32_t order, uint64_t module, const char *hex)
{
    struct spool_annotation a = {.key = SPOOL_NOTE_BUILD_ID,
                                 .key_text = "build-id",
                                 .key_size = 8,
                                 .value = hex,
                                 .text = hex,
                                 .text_size = strlen(hex),
                                 .number = {module, 0, 0}};

    a.module.id = order;
    notes_record(n, &a);
}

static void nothing_is_known_of_a_spool_without_notes(void **state)
{
    struct notes n = {0};
    size_t size = 7;

    (void)state;
    notes_finish(&n);
    assert_null(notes_value(&n, "host"));
    assert_null(notes_build_id(&n, 0, &size));
    assert_int_equal(n.lost, 0);
    notes_free(&n);
}

static void the_latest_value_of_a_key_stands(void **state)
{
    struct notes n = {0};

    (void)state;
    take(&n, SPOOL_NOTE_HOST, "host", "Linux 6.1 x86_64 a", 0);
    take(&n, SPOOL_NOTE_CMDLINE, "cmdline", "./a", 0);
    take(&n, SPOOL_NOTE_HOST, "host", "Linux 6.1 x86_64 b", 0);
    take(&n, SPOOL_NOTE_OTHER, "hos", "prefix", 0);
    take(&n, SPOOL_NOTE_OTHER, "hostess", "longer", 0);
    notes_finish(&n);
    assert_string_equal(notes_value(&n, "host"), "Linux 6.1 x86_64 b");
    assert_string_equal(notes_value(&n, "hos"), "prefix");
    assert_string_equal(notes_value(&n, "hostess"), "longer");
    assert_string_equal(notes_value(&n, "cmdline"), "./a");
    assert_null(notes_value(&n, "ho"));
    assert_null(notes_value(&n, ""));
    assert_int_equal(n.once_count, 4);
    assert_memory_equal(n.once[0].key, "host", 4); /* in the order in which they came */
    assert_memory_equal(n.once[1].key, "cmdline", 7);
    notes_free(&n);
}

static void names_and_kernel_symbols_are_kept_elsewhere(void **state)
{
    struct notes n = {0};

    (void)state;
    take(&n, SPOOL_NOTE_COMM, "comm", "a", 0);
    take(&n, SPOOL_NOTE_THREAD, "thread", "a", 1);
    take(&n, SPOOL_NOTE_KSYMBOL, "ksymbol", "a", 1);
    notes_finish(&n);
    assert_int_equal(n.once_count, 0);
    assert_null(notes_value(&n, "comm"));
    notes_free(&n);
}

static void losses_are_cumulative_and_the_end_has_the_last_word(void **state)
{
    struct notes n = {0};
    struct spool_annotation end = {.key = SPOOL_NOTE_END,
                                   .key_text = "end",
                                   .key_size = 3,
                                   .value = "100 12 3",
                                   .number = {100, 12, 3}};

    (void)state;
    take(&n, SPOOL_NOTE_LOST, "lost", "4", 4);
    take(&n, SPOOL_NOTE_LOST, "lost", "9", 9);
    assert_int_equal(n.lost, 9);
    notes_record(&n, &end);
    notes_finish(&n);
    assert_int_equal(n.lost, 12);
    assert_string_equal(notes_value(&n, "lost"), "9");
    notes_free(&n);
}

static void build_ids_are_found_by_module_and_the_later_one_counts(void **state)
{
    struct notes n = {0};
    const uint8_t *id;
    size_t size = 0;

    (void)state;
    take_build_id(&n, 1, 7, "00ff");
    take_build_id(&n, 2, 3, "AbCdEf0123456789");
    take_build_id(&n, 3, UINT32_MAX - 1, "01");
    take_build_id(&n, 4, 7, "10a0");
    take_build_id(&n, 5, 7, "ffEE");
    take_build_id(&n, 6, 0, "99");
    notes_finish(&n);
    id = notes_build_id(&n, 3, &size);
    assert_int_equal(size, 8);
    assert_memory_equal(id, "\xab\xcd\xef\x01\x23\x45\x67\x89", 8);
    id = notes_build_id(&n, 7, &size);
    assert_int_equal(size, 2);
    assert_memory_equal(id, "\xff\xee", 2);
    id = notes_build_id(&n, 0, &size);
    assert_int_equal(size, 1);
    assert_memory_equal(id, "\x99", 1);
    assert_non_null(notes_build_id(&n, UINT32_MAX - 1, &size));
    assert_null(notes_build_id(&n, 1, &size));
    assert_null(notes_build_id(&n, 8, &size));
    assert_null(notes_value(&n, "build-id"));
    notes_free(&n);
}

static void a_build_id_that_is_too_long_or_for_no_module_is_ignored(void **state)
{
    char longest[2 * NOTES_BUILD_ID_MAX + 1], longer[2 * NOTES_BUILD_ID_MAX + 3];
    struct notes n = {0};
    size_t size = 0;

    (void)state;
    memset(longest, '5', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    memset(longer, '5', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    take_build_id(&n, 1, 1, longest);
    take_build_id(&n, 2, 2, longer);
    take_build_id(&n, 3, UINT64_C(1) << 32, "aa");
    notes_finish(&n);
    assert_non_null(notes_build_id(&n, 1, &size));
    assert_int_equal(size, NOTES_BUILD_ID_MAX);
    assert_null(notes_build_id(&n, 2, &size));
    assert_null(notes_build_id(&n, 0, &size));
    notes_free(&n);
}

static void many_build_ids_stay_in_order(void **state)
{
    struct notes n = {0};

    (void)state;
    for (uint32_t i = 0; i < 3000; i++) {
        char hex[9];

        snprintf(hex, sizeof hex, "%08x", i);
        take_build_id(&n, i, (i * 7919u) % 1000, hex);
    }
    notes_finish(&n);
    assert_int_equal(n.build_id_count, 1000);
    for (uint32_t i = 2000; i < 3000; i++) {
        uint8_t expected[4] = {0, 0, (uint8_t)(i >> 8), (uint8_t)i};
        size_t size = 0;
        const uint8_t *id = notes_build_id(&n, (i * 7919u) % 1000, &size);

        assert_non_null(id);
        assert_int_equal(size, 4);
        assert_memory_equal(id, expected, 4);
    }
    notes_free(&n);
}

static void a_file_of_nothing_but_new_keys_stays_cheap(void **state)
{
    struct notes n = {0};
    static char keys[2000][16];

    (void)state;
    for (unsigned i = 0; i < 2000; i++) {
        snprintf(keys[i], sizeof keys[i], "key-%u", i);
        take(&n, SPOOL_NOTE_OTHER, keys[i], "v", 0);
    }
    notes_finish(&n);
    assert_true(n.once_count < 2000);
    assert_string_equal(notes_value(&n, "key-0"), "v");
    notes_free(&n);
}

static void strange_keys_do_not_push_out_known_ones(void **state)
{
    struct notes n = {0};
    static char keys[2000][16];

    (void)state;
    for (unsigned i = 0; i < 2000; i++) {
        snprintf(keys[i], sizeof keys[i], "key-%u", i);
        take(&n, SPOOL_NOTE_OTHER, keys[i], "v", 0);
    }
    take(&n, SPOOL_NOTE_KERNEL, "kernel", "6.1 - boot", 0);
    notes_finish(&n);
    assert_non_null(notes_value(&n, "kernel"));
    assert_string_equal(notes_value(&n, "kernel"), "6.1 - boot");
    notes_free(&n);
}

static void words_are_what_stands_between_blanks(void **state)
{
    char word[8];

    (void)state;
    assert_true(notes_word("6.1 - boot", 0, word, sizeof word));
    assert_string_equal(word, "6.1");
    assert_true(notes_word("6.1 - boot", 1, word, sizeof word));
    assert_string_equal(word, "-");
    assert_true(notes_word("6.1 - boot", 2, word, sizeof word));
    assert_string_equal(word, "boot");
    assert_false(notes_word("6.1 - boot", 3, word, sizeof word));
    assert_true(notes_word("  a   b ", 1, word, sizeof word));
    assert_string_equal(word, "b");
    assert_false(notes_word("  a   b ", 2, word, sizeof word));
    assert_false(notes_word("", 0, word, sizeof word));
    assert_false(notes_word("   ", 0, word, sizeof word));
    assert_false(notes_word(NULL, 0, word, sizeof word));
    assert_true(notes_word("1234567", 0, word, sizeof word));
    assert_false(notes_word("12345678", 0, word, sizeof word)); /* no room for it and its end */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_known_of_a_spool_without_notes),
        cmocka_unit_test(the_latest_value_of_a_key_stands),
        cmocka_unit_test(names_and_kernel_symbols_are_kept_elsewhere),
        cmocka_unit_test(losses_are_cumulative_and_the_end_has_the_last_word),
        cmocka_unit_test(build_ids_are_found_by_module_and_the_later_one_counts),
        cmocka_unit_test(a_build_id_that_is_too_long_or_for_no_module_is_ignored),
        cmocka_unit_test(many_build_ids_stay_in_order),
        cmocka_unit_test(a_file_of_nothing_but_new_keys_stays_cheap),
        cmocka_unit_test(strange_keys_do_not_push_out_known_ones),
        cmocka_unit_test(words_are_what_stands_between_blanks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
