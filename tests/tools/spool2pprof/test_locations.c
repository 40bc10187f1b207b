/* SPDX-License-Identifier: MIT */
/* Frames to locations, mappings apart from what test scripts see: inline chains, and which of them are one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "locations.h"

struct fixture {
    struct stringtable strings;
    struct mappings mappings;
    struct locations locations;
    struct otree tree;
};

static const struct trim_list nothing_trimmed;

static void begin(struct fixture *f)
{
    stringtable_init(&f->strings);
    mappings_init(&f->mappings, &f->strings, &nothing_trimmed);
    locations_init(&f->locations, &f->strings, &f->mappings);
    otree_init(&f->tree);
}

static void end(struct fixture *f)
{
    otree_free(&f->tree);
    locations_free(&f->locations);
    mappings_free(&f->mappings);
    stringtable_free(&f->strings);
}

/* A frame outside all modules. */
static uint32_t label(struct fixture *f, const char *name, uint64_t address, uint32_t level,
                      uint32_t level_count)
{
    struct out_frame frame = {.name = name,
                              .name_size = strlen(name),
                              .abs = address,
                              .level = level,
                              .level_count = level_count};

    return locations_label(&f->locations, &frame);
}

static uint32_t below(struct fixture *f, uint32_t node, uint32_t frame_label)
{
    return otree_child(&f->tree, node, frame_label);
}

static size_t ids(struct fixture *f, uint32_t node)
{
    return locations_of_stack(&f->locations, &f->tree, node);
}

static void equal_frames_are_one_location_with_ids_by_first_use(void **state)
{
    struct fixture f;
    uint32_t main, leaf;

    (void)state;
    begin(&f);
    main = below(&f, OTREE_ROOT, label(&f, "main", 1, 0, 1));
    leaf = below(&f, below(&f, main, label(&f, "f", 2, 0, 1)), label(&f, "f", 2, 0, 1));
    assert_int_equal(ids(&f, leaf), 3);
    assert_int_equal(f.locations.ids[0], 1);
    assert_int_equal(f.locations.ids[1], 1);
    assert_int_equal(f.locations.ids[2], 2);
    assert_int_equal(ids(&f, main), 1);
    assert_int_equal(f.locations.ids[0], 2);
    assert_int_equal(f.locations.count, 2);
    end(&f);
}

static void levels_of_a_chain_are_one_location(void **state)
{
    struct fixture f;
    uint32_t outer, inner, again;

    (void)state;
    begin(&f);
    outer = below(&f, OTREE_ROOT, label(&f, "f", 2, 1, 2));
    inner = below(&f, outer, label(&f, "g", 2, 0, 2));
    assert_int_equal(ids(&f, inner), 1);
    /* the same address called by itself is twice the location */
    again = below(&f, below(&f, inner, label(&f, "f", 2, 1, 2)), label(&f, "g", 2, 0, 2));
    assert_int_equal(ids(&f, again), 2);
    assert_int_equal(f.locations.ids[0], 1);
    assert_int_equal(f.locations.ids[1], 1);
    end(&f);
}

/* --max-depth cuts inside a chain. What is left has the lines that are shown, and no others. */
static void a_cut_chain_is_the_location_of_the_lines_that_are_left(void **state)
{
    struct fixture f;
    uint32_t cut, alone;

    (void)state;
    begin(&f);
    cut = below(&f, OTREE_ROOT, label(&f, "g", 2, 0, 2));
    alone = below(&f, OTREE_ROOT, label(&f, "g", 2, 0, 1));
    assert_int_not_equal(cut, alone);
    assert_int_equal(ids(&f, cut), 1);
    assert_int_equal(ids(&f, alone), 1);
    assert_int_equal(f.locations.count, 1);
    end(&f);
}

static void with_one_line_a_location_every_level_is_one(void **state)
{
    struct fixture f;
    uint32_t node;

    (void)state;
    begin(&f);
    f.locations.one_line = true;
    node = below(&f, OTREE_ROOT, label(&f, "f", 2, 1, 2));
    node = below(&f, node, label(&f, "g", 2, 0, 2));
    assert_int_equal(ids(&f, node), 2);
    assert_int_equal(f.locations.ids[0], 1);
    assert_int_equal(f.locations.ids[1], 2);
    end(&f);
}

static void another_name_at_an_address_is_another_location(void **state)
{
    struct fixture f;

    (void)state;
    begin(&f);
    assert_int_not_equal(label(&f, "f", 2, 0, 1), label(&f, "g", 2, 0, 1));
    assert_int_not_equal(label(&f, "f", 2, 0, 1), label(&f, "f", 3, 0, 1));
    assert_int_equal(label(&f, "f", 2, 0, 1), label(&f, "f", 2, 0, 1));
    end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_frames_are_one_location_with_ids_by_first_use),
        cmocka_unit_test(levels_of_a_chain_are_one_location),
        cmocka_unit_test(a_cut_chain_is_the_location_of_the_lines_that_are_left),
        cmocka_unit_test(with_one_line_a_location_every_level_is_one),
        cmocka_unit_test(another_name_at_an_address_is_another_location),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
