/* SPDX-License-Identifier: MIT */
/* The numbers of the format, read by both readers of them, the bounded and the unbounded one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "spool_bytes.h"
#include "varint.h"

/* Reads `size` bytes at the very end of a window: the state, *value and *used. */
static enum cursor_state read_bounded(const uint8_t *data, size_t size, uint64_t *value,
                                      size_t *used)
{
    struct cursor c = {.at = data, .end = data + size};

    *value = cursor_uv(&c);
    *used = (size_t)(c.at - data);
    return c.state;
}

/* What both readers must make of a number whose end is decided inside the bytes. */
static void assert_reads(const uint8_t *data, size_t size, uint64_t expected)
{
    uint8_t padded[32];
    uint64_t value;
    size_t used;

    assert_int_equal(read_bounded(data, size, &value, &used), CURSOR_OK);
    assert_int_equal(value, expected);
    assert_int_equal(used, size);
    /* The unbounded reader may look at ten bytes, of which those behind the number are no matter.
     * */
    for (unsigned fill = 0; fill < 256; fill += 51) {
        memset(padded, (int)fill, sizeof padded);
        memcpy(padded, data, size);
        value = ~expected;
        assert_ptr_equal(varint_read_unbounded(padded, &value), padded + size);
        assert_int_equal(value, expected);
    }
}

static void assert_overlong(const uint8_t *data, size_t size)
{
    uint8_t padded[32];
    uint64_t value;
    size_t used;

    assert_int_equal(read_bounded(data, size, &value, &used), CURSOR_OVERLONG);
    assert_int_equal(value, 0);
    assert_int_equal(used, 0); /* messages name where the number begins */
    for (unsigned fill = 0; fill < 256; fill += 51) {
        memset(padded, (int)fill, sizeof padded);
        memcpy(padded, data, size);
        assert_null(varint_read_unbounded(padded, &value));
    }
}

static void numbers_have_seven_bits_a_byte_lowest_first(void **state)
{
    static const struct {
        const char *hex;
        uint64_t value;
    } rows[] = {
        {"00", 0},
        {"01", 1},
        {"7f", 127},
        {"80 01", 128},
        {"e8 07", 1000},
        {"c0 84 3d", 1000000},
        {"ff 7f", 16383},
        {"80 80 01", 16384},
        {"ff ff 7f", 2097151},
        {"80 80 80 01", 2097152},
        {"ff ff ff 7f", 268435455},
        {"80 80 80 80 01", 268435456},
        {"fe ff ff ff 0f", 4294967294u},
        {"ff ff ff ff 0f", 4294967295u},
        {"80 80 80 80 10", 4294967296u},
        {"80 80 80 80 80 80 80 80 80 01", (uint64_t)1 << 63},
        {"ff ff ff ff ff ff ff ff 7f", UINT64_MAX >> 1},
        {"ff ff ff ff ff ff ff ff ff 01", UINT64_MAX},
        {"ff ff ff ff ff ff ff ff ff 00", UINT64_MAX >> 1},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct bytes b = {0};

        bytes_hex(&b, rows[i].hex);
        assert_reads(b.data, b.size, rows[i].value);
        bytes_free(&b);
    }
}

static void padding_is_accepted_up_to_the_tenth_byte(void **state)
{
    static const uint64_t values[] = {0, 1, 5, 127, 128, 16383, 4294967295u, UINT64_MAX >> 1};

    (void)state;
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        uint8_t data[10];
        size_t shortest = (size_t)(varint_write(data, values[i]) - data);

        for (size_t size = shortest; size <= sizeof data; size++) {
            varint_write(data, values[i]);
            for (size_t k = shortest; k < size; k++) {
                data[k - 1] |= 0x80;
                data[k] = 0;
            }
            assert_reads(data, size, values[i]);
        }
    }
}

static void a_tenth_byte_above_one_is_overlong(void **state)
{
    uint8_t data[10];

    (void)state;
    for (unsigned low = 0x80; low < 0x100; low += 0x7f) {
        memset(data, (int)low, 9);
        for (unsigned tenth = 2; tenth < 0x100; tenth++) {
            data[9] = (uint8_t)tenth;
            assert_overlong(data, sizeof data);
        }
    }
}

static void continuation_bytes_up_to_the_end_are_short_below_ten_and_overlong_at_ten(void **state)
{
    uint8_t data[12];
    uint64_t value;
    size_t used;

    (void)state;
    for (unsigned byte = 0x80; byte < 0x100; byte++) {
        memset(data, (int)byte, sizeof data);
        for (size_t size = 0; size < 10; size++) {
            value = 1;
            assert_int_equal(read_bounded(data, size, &value, &used), CURSOR_SHORT);
            assert_int_equal(value, 0);
            assert_int_equal(used, 0);
        }
        for (size_t size = 10; size <= sizeof data; size++)
            assert_int_equal(read_bounded(data, size, &value, &used), CURSOR_OVERLONG);
    }
}

static void every_value_comes_back_from_its_shortest_form(void **state)
{
    uint64_t seed = 1;

    (void)state;
    for (unsigned i = 0; i < 200000; i++) {
        uint64_t value = random_magnitude(&seed), got;
        struct bytes by_hand = {0};
        uint8_t data[FORMAT_VARINT_MAX_SIZE];
        size_t size = (size_t)(varint_write(data, value) - data), used;

        bytes_uv(&by_hand, value);
        assert_int_equal(size, by_hand.size);
        assert_memory_equal(data, by_hand.data, size);
        bytes_free(&by_hand);
        assert_reads(data, size, value);
        for (size_t cut = 0; cut < size; cut++)
            assert_int_equal(read_bounded(data, cut, &got, &used), CURSOR_SHORT);
    }
}

static void both_readers_agree_on_any_bytes(void **state)
{
    uint64_t seed = 2;

    (void)state;
    for (unsigned i = 0; i < 1000000; i++) {
        uint8_t data[16];
        uint64_t bounded, unbounded = 0, bits[2], tops = random_u64(&seed);
        const uint8_t *end;
        size_t used;
        enum cursor_state cs;

        bits[0] = random_u64(&seed);
        bits[1] = random_u64(&seed);
        memcpy(data, bits, sizeof data);
        for (unsigned k = 0; k < 10; k++)
            if (tops >> k & 1 || i % 2)
                data[k] |= 0x80;
        if (i % 4 == 1)
            data[i / 4 % 10] &= (uint8_t)tops & 1 ? 0x7f : 0x01;
        cs = read_bounded(data, 10, &bounded, &used);
        end = varint_read_unbounded(data, &unbounded);
        assert_int_not_equal(cs, CURSOR_SHORT);
        assert_int_equal(cs == CURSOR_OK, end != NULL);
        if (end != NULL) {
            assert_int_equal(bounded, unbounded);
            assert_ptr_equal(end, data + used);
        }
    }
}

static void signed_numbers_are_zigzag(void **state)
{
    static const struct {
        uint64_t stored;
        int64_t value;
    } rows[] = {
        {0, 0},
        {1, -1},
        {2, 1},
        {3, -2},
        {0x7f, -64},
        {0x80, 64},
        {UINT32_MAX, INT32_MIN},
        {UINT32_MAX - 1, INT32_MAX},
        {(uint64_t)UINT32_MAX + 1, (int64_t)INT32_MAX + 1},
        {(uint64_t)UINT32_MAX + 2, (int64_t)INT32_MIN - 1},
        {UINT64_MAX - 1, INT64_MAX},
        {UINT64_MAX, INT64_MIN},
    };
    uint64_t seed = 3;

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint8_t data[FORMAT_VARINT_MAX_SIZE];
        struct cursor c = {.at = data, .end = varint_write(data, rows[i].stored)};

        assert_true(cursor_sv(&c) == rows[i].value);
        assert_int_equal(c.state, CURSOR_OK);
        assert_true(zigzag_decode(rows[i].stored) == rows[i].value);
        assert_int_equal(zigzag_encode(rows[i].value), rows[i].stored);
    }
    for (unsigned i = 0; i < 100000; i++) {
        uint64_t stored = random_magnitude(&seed);

        assert_int_equal(zigzag_encode(zigzag_decode(stored)), stored);
    }
}

static void a_short_field_stops_the_cursor_where_it_stood(void **state)
{
    static const uint8_t data[] = {0x05, 0x80, 0x80};
    struct cursor c = {.at = data, .end = data + sizeof data};

    (void)state;
    assert_int_equal(cursor_uv(&c), 5);
    assert_int_equal(cursor_uv(&c), 0);
    assert_int_equal(c.state, CURSOR_SHORT);
    assert_ptr_equal(c.at, data + 1);
    assert_int_equal(cursor_uv(&c), 0);
    assert_true(cursor_sv(&c) == 0);
    assert_int_equal(cursor_byte(&c), 0);
    assert_null(cursor_bytes(&c, 1));
    assert_null(cursor_bytes(&c, 0));
    assert_int_equal(c.state, CURSOR_SHORT);
    assert_ptr_equal(c.at, data + 1);
}

static void an_overlong_number_stops_the_cursor_where_it_stood(void **state)
{
    static const uint8_t data[] = {0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
                                   0x80, 0x80, 0x80, 0x02, 0x01, 0x01};
    struct cursor c = {.at = data, .end = data + sizeof data};

    (void)state;
    assert_int_equal(cursor_uv(&c), 0);
    assert_int_equal(cursor_byte(&c), 0);
    assert_null(cursor_bytes(&c, 1));
    assert_int_equal(cursor_uv(&c), 0);
    assert_int_equal(c.state, CURSOR_OVERLONG);
    assert_ptr_equal(c.at, data);
}

static void byte_strings_are_borrowed_when_all_of_them_is_there(void **state)
{
    static const uint8_t data[] = {'a', 'b', 'c'};
    struct cursor c = {.at = data, .end = data + sizeof data};

    (void)state;
    assert_int_equal(cursor_byte(&c), 'a');
    assert_ptr_equal(cursor_bytes(&c, 0), data + 1);
    assert_ptr_equal(cursor_bytes(&c, 2), data + 1);
    assert_ptr_equal(cursor_bytes(&c, 0), data + 3);
    assert_int_equal(c.state, CURSOR_OK);
    assert_int_equal(cursor_byte(&c), 0);
    assert_int_equal(c.state, CURSOR_SHORT);

    for (unsigned bit = 2; bit < 64; bit++) { /* sizes that would wrap a pointer too */
        struct cursor d = {.at = data, .end = data + sizeof data};

        assert_null(cursor_bytes(&d, (uint64_t)1 << bit));
        assert_int_equal(d.state, CURSOR_SHORT);
        assert_ptr_equal(d.at, data);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_have_seven_bits_a_byte_lowest_first),
        cmocka_unit_test(padding_is_accepted_up_to_the_tenth_byte),
        cmocka_unit_test(a_tenth_byte_above_one_is_overlong),
        cmocka_unit_test(continuation_bytes_up_to_the_end_are_short_below_ten_and_overlong_at_ten),
        cmocka_unit_test(every_value_comes_back_from_its_shortest_form),
        cmocka_unit_test(both_readers_agree_on_any_bytes),
        cmocka_unit_test(signed_numbers_are_zigzag),
        cmocka_unit_test(a_short_field_stops_the_cursor_where_it_stood),
        cmocka_unit_test(an_overlong_number_stops_the_cursor_where_it_stood),
        cmocka_unit_test(byte_strings_are_borrowed_when_all_of_them_is_there),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
