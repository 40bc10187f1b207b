/* SPDX-License-Identifier: MIT */
/* Interned frame texts: equal texts are one number, and the ranks are the order of the bytes. */
#include "../spool2folded/make_spool.h"

#include "labels.h"

static void equal_texts_have_one_number(void **state)
{
    struct labels l;
    const char *text;
    size_t size;

    (void)state;
    labels_init(&l);
    assert_int_equal(labels_intern(&l, "main", 4), 0);
    assert_int_equal(labels_intern(&l, "mai", 3), 1);
    assert_int_equal(labels_intern(&l, "main()", 4), 0);
    assert_int_equal(labels_intern(&l, "", 0), 2);
    assert_int_equal(labels_intern(&l, "", 0), 2);
    assert_int_equal(labels_intern(&l, "a\0b", 3), 3);
    assert_int_equal(labels_intern(&l, "a\0c", 3), 4);
    assert_int_equal(labels_intern(&l, "a\0b", 3), 3);
    text = labels_text(&l, 1, &size);
    assert_int_equal(size, 3);
    assert_memory_equal(text, "mai", 3);
    labels_text(&l, 2, &size);
    assert_int_equal(size, 0);
    labels_free(&l);
}

static void texts_of_any_size_and_number_are_found_again(void **state)
{
    enum { COUNT = 100000 };
    struct labels l;
    char *big = malloc(1 << 20), text[32];
    size_t size;

    (void)state;
    assert_non_null(big);
    memset(big, 'x', 1 << 20);
    labels_init(&l);
    for (uint32_t i = 0; i < COUNT; i++) {
        snprintf(text, sizeof text, "function_%u", i * 7919u);
        assert_int_equal(labels_intern(&l, text, strlen(text)), i);
    }
    assert_int_equal(labels_intern(&l, big, 1 << 20), COUNT);
    assert_int_equal(labels_intern(&l, big, (1 << 20) - 1), COUNT + 1);
    for (uint32_t i = 0; i < COUNT; i++) {
        snprintf(text, sizeof text, "function_%u", i * 7919u);
        assert_int_equal(labels_intern(&l, text, strlen(text)), i);
        assert_memory_equal(labels_text(&l, i, &size), text, strlen(text));
        assert_int_equal(size, strlen(text));
    }
    labels_free(&l);
    free(big);
}

struct item {
    char text[40];
    size_t size;
    uint32_t place;
};

static int compare_items(const void *a, const void *b)
{
    const struct item *x = a, *y = b;
    int order = memcmp(x->text, y->text, x->size < y->size ? x->size : y->size);

    return order ? order : (x->size > y->size) - (x->size < y->size);
}

/* Without ';' inside, as spool2folded makes them: lines that go on below sort by the text with
 * its ';'. */
static void ranks_are_the_order_of_bytes_with_and_without_semicolon(void **state)
{
    static const char bytes[] = "\x01 !09:<=Aaz~\x7f\xc3\xff";
    static struct item items[4000];
    uint64_t seed = 5;

    (void)state;
    for (unsigned round = 0; round < 20; round++) {
        struct labels l;
        uint32_t *ranks;

        labels_init(&l);
        for (unsigned i = 0; i < 400; i++) {
            char text[8];
            size_t size = random_below(&seed, 5);

            for (size_t k = 0; k < size; k++)
                text[k] = bytes[random_below(&seed, sizeof bytes - 1)];
            labels_intern(&l, text, size);
        }
        for (uint32_t i = 0; i < 2 * l.count; i++) {
            size_t size;
            const char *text = labels_text(&l, i / 2, &size);

            memcpy(items[i].text, text, size);
            if (i % 2)
                items[i].text[size++] = ';';
            items[i].size = size;
            items[i].place = i;
        }
        qsort(items, 2 * l.count, sizeof items[0], compare_items);
        ranks = labels_rank(&l);
        for (uint32_t i = 0; i < 2 * l.count; i++)
            assert_int_equal(ranks[items[i].place], i);
        free(ranks);
        labels_free(&l);
    }
}

static void no_label_at_all_has_no_ranks(void **state)
{
    struct labels l;

    (void)state;
    labels_init(&l);
    free(labels_rank(&l));
    labels_free(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_texts_have_one_number),
        cmocka_unit_test(texts_of_any_size_and_number_are_found_again),
        cmocka_unit_test(ranks_are_the_order_of_bytes_with_and_without_semicolon),
        cmocka_unit_test(no_label_at_all_has_no_ranks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
