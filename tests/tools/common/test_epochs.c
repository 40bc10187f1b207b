/* SPDX-License-Identifier: MIT */
/* When the names of the kernel change: which `ksymbol` annotations begin an epoch, and that no
 * others do. */
#include "../spool2folded/make_spool.h"

#include "aggregate.h"

#define KERNEL UINT64_C(0xffffffffc0000000)

struct subject {
    struct maker maker;
    struct tool_input input;
    struct aggregate aggregate;
};

static void begin(struct subject *s)
{
    maker_open(&s->maker, 0);
}

/* Registers code, or with length 0 and a NULL name unregisters it. */
static void note(struct subject *s, uint64_t address, uint64_t length, const char *name)
{
    char value[128];

    snprintf(value, sizeof value, "0x%llx %llu %s", (unsigned long long)address,
             (unsigned long long)length, name ? name : "");
    maker_note(&s->maker, 1, "ksymbol", value);
}

/* A module record that only looks like an annotation. */
static void malformed(struct subject *s, const char *path)
{
    struct spool_module module = {.pid = 1, .path = path, .path_size = strlen(path)};

    assert_int_equal(spool_writer_module(s->maker.writer, &module, NULL), 0);
}

static void sample(struct subject *s, uint64_t address)
{
    char stack[64];

    snprintf(stack, sizeof stack, "$10;@%llx", (unsigned long long)address);
    maker_put(&s->maker, 1, 1, 1, stack);
}

/* Reads it all, as a process or thread at a time. */
static void count(struct subject *s, bool per_thread, bool epochs)
{
    struct aggregate_options options = {.per_thread = per_thread, .epochs = epochs};

    if (s->maker.writer)
        maker_finish(&s->maker);
    assert_int_equal(inputs_open(s->maker.path, &s->input), 0);
    assert_int_equal(aggregate_read(&s->aggregate, &options, &s->input, NULL), 0);
    assert_int_equal(aggregate_finish(&s->aggregate), 0);
}

static void done(struct subject *s)
{
    aggregate_free(&s->aggregate);
    inputs_close(&s->input);
}

static void expect(struct subject *s, uint32_t epochs, uint32_t sources)
{
    for (int per_thread = 0; per_thread < 2; per_thread++) {
        count(s, per_thread, true);
        assert_int_equal(s->aggregate.epochs.now + 1, epochs);
        assert_int_equal(names_source_count(s->aggregate.names), sources);
        for (uint32_t i = 0; i < sources; i++) {
            struct source source;

            names_get_source(s->aggregate.names, i, &source);
            assert_int_equal(source.group, 0);
        }
        done(s);
        count(s, per_thread, false);
        assert_int_equal(names_source_count(s->aggregate.names), 1);
        assert_int_equal(s->aggregate.epochs.event_count, 0);
        done(s);
    }
}

static void an_address_with_two_programs_one_after_the_other_has_four_epochs(void **state)
{
    struct subject s;

    (void)state;
    begin(&s);
    sample(&s, KERNEL + 0x110);
    note(&s, KERNEL + 0x100, 0x40, "bpf_prog_a");
    sample(&s, KERNEL + 0x110);
    sample(&s, KERNEL + 0x110);
    note(&s, KERNEL + 0x100, 0, NULL);
    sample(&s, KERNEL + 0x110);
    note(&s, KERNEL + 0x100, 0x40, "bpf_prog_b");
    sample(&s, KERNEL + 0x110);
    expect(&s, 4, 4);
    count(&s, false, true);
    assert_int_equal(s.aggregate.epochs.event_count, 3);
    for (uint32_t i = 0; i < 4; i++) {
        struct source source;

        names_get_source(s.aggregate.names, i, &source);
        assert_int_equal(source.kernel_epoch, i);
        if (i < 3)
            assert_int_equal(s.aggregate.epochs.events[i].time, i + 1);
    }
    assert_int_equal(s.aggregate.epochs.events[2].address, KERNEL + 0x100);
    assert_int_equal(s.aggregate.epochs.events[2].length_bytes, 0x40);
    assert_memory_equal(s.aggregate.epochs.events[2].name, "bpf_prog_b", 10);
    assert_int_equal(s.aggregate.epochs.events[1].length_bytes, 0);
    assert_true(epochs_differ(&s.aggregate.epochs, KERNEL + 0x110));
    assert_true(epochs_differ(&s.aggregate.epochs, KERNEL + 0xfff));
    assert_false(epochs_differ(&s.aggregate.epochs, KERNEL + 0x1000));
    assert_false(epochs_differ(&s.aggregate.epochs, KERNEL - 1));
    done(&s);
    maker_close(&s.maker);
}

static void programs_where_nobody_was_sampled_begin_nothing(void **state)
{
    struct subject s;

    (void)state;
    begin(&s);
    sample(&s, KERNEL + 0x10);
    maker_put(&s.maker, 1, 1, 1, "$ffffffffc0100010"); /* not of the kernel */
    for (unsigned i = 0; i < 5000; i++) {
        char name[32];

        snprintf(name, sizeof name, "bpf_prog_%u", i);
        note(&s, KERNEL + 0x1000 + i % 3000 * 0x1000, 0x800, name);
        if (i % 2)
            note(&s, KERNEL + 0x1000 + i % 3000 * 0x1000, 0, NULL);
        sample(&s, KERNEL + 0x10 + i % 16);
    }
    expect(&s, 1, 1);
    count(&s, false, true);
    assert_int_equal(s.aggregate.epochs.event_count, 7500);
    assert_false(epochs_differ(&s.aggregate.epochs, KERNEL + 0x1010)); /* within one epoch */
    done(&s);
    maker_close(&s.maker);
}

static void frames_count_from_their_definition_on(void **state)
{
    struct subject s;

    (void)state;
    begin(&s);
    note(&s, KERNEL, 0x1000, "loaded before");
    sample(&s, KERNEL + 0x10);
    sample(&s, KERNEL + 0x20);
    expect(&s, 1, 1);
    maker_close(&s.maker);

    begin(&s);
    note(&s, KERNEL, 0x1000, "loaded before");
    sample(&s, KERNEL + 0x10);
    note(&s, KERNEL, 0, NULL); /* who was sampled in it has another name from here on */
    sample(&s, KERNEL + 0x10);
    expect(&s, 2, 2);
    maker_close(&s.maker);
}

static void an_end_speaks_for_all_that_began_there(void **state)
{
    struct subject s;

    (void)state;
    begin(&s);
    note(&s, KERNEL + 0xff0, 0x3000, "four pages");
    sample(&s, KERNEL + 0x3f00);
    note(&s, KERNEL + 0xff0, 0, NULL);
    sample(&s, KERNEL + 0x3f00);
    expect(&s, 2, 2);
    count(&s, false, true);
    assert_true(epochs_differ(&s.aggregate.epochs, KERNEL + 0x3f00));
    assert_false(epochs_differ(&s.aggregate.epochs, KERNEL + 0x4000));
    done(&s);
    maker_close(&s.maker);

    begin(&s); /* an end without a beginning: its page */
    sample(&s, KERNEL + 0x3f00);
    sample(&s, KERNEL + 0x10);
    note(&s, KERNEL + 0x2000, 0, NULL);
    sample(&s, KERNEL + 0x3f00);
    expect(&s, 1, 1);
    maker_close(&s.maker);

    begin(&s); /* a shorter one in place of a longer one */
    note(&s, KERNEL, 0x4000, "long");
    sample(&s, KERNEL + 0x3f00);
    note(&s, KERNEL, 0x10, "short");
    sample(&s, KERNEL + 0x3f00);
    expect(&s, 2, 2);
    maker_close(&s.maker);
}

static void a_large_range_is_not_looked_at_page_by_page(void **state)
{
    struct subject s;

    (void)state;
    begin(&s);
    note(&s, KERNEL, UINT64_C(1) << 29, "no frame is known yet");
    sample(&s, KERNEL - 0x1000);
    for (unsigned i = 0; i < 3; i++)
        note(&s, KERNEL, (UINT64_C(1) << 29) + i, "large");
    sample(&s, KERNEL - 0x1000);
    expect(&s, 4, 2);
    count(&s, false, true);
    assert_true(epochs_differ(&s.aggregate.epochs, KERNEL + 0x1fffffff));
    assert_false(epochs_differ(&s.aggregate.epochs, KERNEL - 1));
    done(&s);
    maker_close(&s.maker);
}

static void what_cannot_be_is_ignored(void **state)
{
    struct subject s;

    (void)state;
    begin(&s);
    sample(&s, UINT64_MAX - 1);
    sample(&s, KERNEL);
    note(&s, UINT64_MAX - 1, 3, "beyond the end of memory");
    note(&s, KERNEL, UINT64_MAX, "beyond the end of memory");
    note(&s, KERNEL, 16, NULL); /* no name */
    malformed(&s, "[spool:ksymbol] 0xffffffffc0000000 x f");
    malformed(&s, "[spool:ksymbol] 0x1ffffffffc0000000 1 f");
    malformed(&s, "[spool:ksymbol] 18446744072635809792");
    sample(&s, KERNEL);
    expect(&s, 1, 1);
    maker_close(&s.maker);

    begin(&s);
    sample(&s, UINT64_MAX - 1);
    sample(&s, KERNEL);
    note(&s, UINT64_MAX - 1, 2, "the last two bytes");
    maker_note(&s.maker, 1, "ksymbol", "18446744072635809792 16 f"); /* decimal */
    sample(&s, KERNEL);
    expect(&s, 3, 2);
    count(&s, false, true);
    assert_true(epochs_differ(&s.aggregate.epochs, UINT64_MAX));
    assert_true(epochs_differ(&s.aggregate.epochs, KERNEL));
    assert_false(epochs_differ(&s.aggregate.epochs, 0));
    done(&s);
    maker_close(&s.maker);
}

static void an_epoch_splits_who_is_sampled_in_it_and_nobody_else(void **state)
{
    struct subject s;

    (void)state;
    begin(&s);
    sample(&s, KERNEL);
    maker_put(&s.maker, 2, 2, 2, "$10");
    maker_put(&s.maker, 3, 3, 3, "$10");
    note(&s, KERNEL, 16, "f");
    sample(&s, KERNEL);
    maker_put(&s.maker, 4, 3, 4, "$10");
    maker_note(&s.maker, 1, "comm", "other");
    sample(&s, KERNEL);
    for (int per_thread = 0; per_thread < 2; per_thread++) {
        static const uint32_t groups[2][6] = {{0, 1, 2, 0, 2, 5}, {0, 1, 2, 0, 4, 5}};

        count(&s, per_thread, true);
        assert_int_equal(names_source_count(s.aggregate.names), 6);
        for (uint32_t i = 0; i < 6; i++) {
            struct source source;

            names_get_source(s.aggregate.names, i, &source);
            assert_int_equal(source.kernel_epoch, i >= 3);
            assert_int_equal(source.group, groups[per_thread][i]);
        }
        done(&s);
    }
    maker_close(&s.maker);
}

/* Against the plain meaning: an epoch begins where the page of a frame defined before is touched. */
static void random_programs_and_samples_agree_with_the_plain_rule(void **state)
{
    uint64_t seed = 5;

    (void)state;
    for (unsigned round = 0; round < 40; round++) {
        bool sampled[8] = {false}, touched[8] = {false};
        uint64_t extent[8][4] = {{0}}; /* last page + 1, by page and quarter */
        uint32_t epochs = 1;
        struct subject s;

        begin(&s);
        for (unsigned i = 0; i < 60; i++) {
            uint32_t page = random_below(&seed, 8), quarter = random_below(&seed, 4);
            uint64_t address = KERNEL + page * 0x1000 + quarter * 0x400;
            uint32_t length = random_below(&seed, 3) ? random_below(&seed, 0x1800) : 0;
            uint32_t last = page;
            bool begins = false;

            if (random_below(&seed, 2)) {
                sample(&s, address);
                sampled[page] = true;
                continue;
            }
            note(&s, address, length, length ? "f" : NULL);
            if (length)
                last = (uint32_t)((address + length - 1 - KERNEL) >> 12);
            if (extent[page][quarter] > last + 1)
                last = (uint32_t)extent[page][quarter] - 1;
            if (length)
                extent[page][quarter] = ((address + length - 1 - KERNEL) >> 12) + 1;
            for (uint32_t p = page; p <= last && p < 8; p++) {
                begins |= sampled[p];
                touched[p] = true;
            }
            epochs += begins;
        }
        sample(&s, KERNEL);
        count(&s, false, true);
        assert_int_equal(s.aggregate.epochs.now + 1, epochs);
        for (uint32_t p = 0; p < 8; p++)
            assert_int_equal(epochs_differ(&s.aggregate.epochs, KERNEL + p * 0x1000 + 7),
                             touched[p] && epochs > 1);
        done(&s);
        maker_close(&s.maker);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_address_with_two_programs_one_after_the_other_has_four_epochs),
        cmocka_unit_test(programs_where_nobody_was_sampled_begin_nothing),
        cmocka_unit_test(frames_count_from_their_definition_on),
        cmocka_unit_test(an_end_speaks_for_all_that_began_there),
        cmocka_unit_test(a_large_range_is_not_looked_at_page_by_page),
        cmocka_unit_test(what_cannot_be_is_ignored),
        cmocka_unit_test(an_epoch_splits_who_is_sampled_in_it_and_nobody_else),
        cmocka_unit_test(random_programs_and_samples_agree_with_the_plain_rule),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
