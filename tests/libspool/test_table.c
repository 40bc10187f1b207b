/* SPDX-License-Identifier: MIT */
/*
 * Definitions by id and the rule for the module of a frame, against a search that tries every
 * module; and that files made to be slow are not.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "spool_bytes.h"
#include "table.h"

#define ok(call) assert_int_equal(call, 0)

/* CPU seconds that a hostile input may take. Quadratic steps take hundreds of times as long. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CPU_SECONDS_MAX 10.0
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define CPU_SECONDS_MAX 10.0
#endif
#ifndef CPU_SECONDS_MAX
#define CPU_SECONDS_MAX 2.0
#endif

static clock_t stopwatch;

static void start_clock(void)
{
    stopwatch = clock();
}

static void assert_quick(void)
{
    double seconds = (double)(clock() - stopwatch) / CLOCKS_PER_SEC;

    print_message("%.2f s\n", seconds);
    if (seconds > CPU_SECONDS_MAX)
        fail_msg("took %.1f s of CPU time", seconds);
}

static void new_table(struct table *t)
{
    spoolint_table_init(t);
    t->version = 4;
}

/* ---- short forms ---- */

static uint32_t add_with_offset(struct table *t, int32_t pid, bool kernel, uint64_t start,
                                uint64_t end, uint64_t file_offset)
{
    struct spool_record rec = {
        .type = SPOOL_RECORD_MODULE,
        .module = {.id = t->module_count,
                   .pid = pid,
                   .kernel = kernel,
                   .start = start,
                   .end = end,
                   .file_offset = file_offset,
                   .path = "/x",
                   .path_size = 2,
                   .retired_at_frame = SPOOL_NOT_RETIRED},
    };

    ok(spoolint_table_add_module(t, &rec));
    assert_int_equal(rec.type, SPOOL_RECORD_MODULE);
    return rec.module.id;
}

static uint32_t user_module(struct table *t, int32_t pid, uint64_t start, uint64_t end)
{
    return add_with_offset(t, pid, false, start, end, 0);
}

static uint32_t kernel_module(struct table *t, int32_t pid, uint64_t start, uint64_t end)
{
    return add_with_offset(t, pid, true, start, end, 0);
}

static uint32_t add_note(struct table *t, const char *path)
{
    struct spool_record rec = {
        .type = SPOOL_RECORD_MODULE,
        .module = {.id = t->module_count,
                   .pid = 7,
                   .path = path,
                   .path_size = strlen(path),
                   .retired_at_frame = SPOOL_NOT_RETIRED},
    };

    ok(spoolint_table_add_module(t, &rec));
    assert_int_equal(rec.type, SPOOL_RECORD_ANNOTATION);
    return rec.annotation.module.id;
}

static uint32_t add_frame(struct table *t, enum spool_frame_kind kind, bool kernel, uint32_t module,
                          uint64_t rel, uint64_t abs)
{
    struct spool_frame f = {t->frame_count, kind, kernel, module, rel, abs};

    ok(spoolint_table_add_frame(t, &f));
    return f.id;
}

static uint32_t user_frame(struct table *t, uint64_t address)
{
    return add_frame(t, SPOOL_FRAME_UNPINNED, false, SPOOL_NO_ID, address, address);
}

static uint32_t kernel_frame(struct table *t, uint64_t address)
{
    return add_frame(t, SPOOL_FRAME_UNPINNED, true, SPOOL_NO_ID, address, address);
}

static uint32_t pinned_frame(struct table *t, uint32_t module, uint64_t rel)
{
    const struct spool_module *m = &t->modules[module];

    return add_frame(t, SPOOL_FRAME_PINNED, m->kernel, module, rel,
                     m->start + (rel - m->file_offset));
}

static void assert_in(struct table *t, uint32_t frame, int32_t pid, uint32_t module, uint64_t rel)
{
    uint32_t got = 0;
    uint64_t got_rel = 0;

    assert_int_equal(spoolint_table_locate(t, frame, pid, &got, &got_rel), 1);
    assert_int_equal(got, module);
    assert_int_equal(got_rel, rel);
}

static void assert_nowhere(struct table *t, uint32_t frame, int32_t pid)
{
    uint32_t got = 0;
    uint64_t rel = 0;

    assert_int_equal(spoolint_table_locate(t, frame, pid, &got, &rel), 0);
    assert_int_equal(got, SPOOL_NO_ID);
}

/* ---- which module ---- */

static void a_module_holds_its_start_and_not_its_end(void **state)
{
    struct table t;
    uint32_t m, below, first, last, end;

    (void)state;
    new_table(&t);
    m = add_with_offset(&t, 7, false, 0x1000, 0x2000, 0x300);
    below = user_frame(&t, 0xfff);
    first = user_frame(&t, 0x1000);
    last = user_frame(&t, 0x1fff);
    end = user_frame(&t, 0x2000);
    assert_nowhere(&t, below, 7);
    assert_in(&t, first, 7, m, 0x300);
    assert_in(&t, last, 7, m, 0x12ff);
    assert_nowhere(&t, end, 7);
    spoolint_table_free(&t);
}

static void a_module_that_ends_at_or_before_its_start_holds_nothing(void **state)
{
    struct table t;
    uint32_t inside, at;

    (void)state;
    new_table(&t);
    user_module(&t, 7, 0x2000, 0x1000);
    user_module(&t, 7, 0x1800, 0x1800);
    inside = user_frame(&t, 0x1800);
    at = user_frame(&t, 0x2000);
    assert_nowhere(&t, inside, 7);
    assert_nowhere(&t, at, 7);
    spoolint_table_free(&t);
}

static void the_youngest_of_overlapping_modules_wins(void **state)
{
    struct table t;
    uint32_t wide, narrow, inside, beside;

    (void)state;
    new_table(&t);
    wide = user_module(&t, 7, 0x1000, 0x9000);
    narrow = user_module(&t, 7, 0x2000, 0x3000);
    inside = user_frame(&t, 0x2500);
    beside = user_frame(&t, 0x3500);
    assert_in(&t, inside, 7, narrow, 0x500);
    assert_in(&t, beside, 7, wide, 0x2500);
    spoolint_table_free(&t);
}

static void a_module_defined_after_a_frame_never_applies_to_it(void **state)
{
    struct table t;
    uint32_t old, young, before, between;

    (void)state;
    new_table(&t);
    before = user_frame(&t, 0x1500);
    old = user_module(&t, 7, 0x1000, 0x2000);
    between = user_frame(&t, 0x1500);
    assert_in(&t, between, 7, old, 0x500); /* asked before and after: the answer stays */
    young = user_module(&t, 7, 0x1000, 0x2000);
    assert_nowhere(&t, before, 7);
    assert_in(&t, between, 7, old, 0x500);
    assert_in(&t, user_frame(&t, 0x1500), 7, young, 0x500);
    spoolint_table_free(&t);
}

static void a_frame_resolves_differently_for_two_processes(void **state)
{
    struct table t;
    uint32_t seven, eight, f;

    (void)state;
    new_table(&t);
    seven = user_module(&t, 7, 0x1000, 0x2000);
    eight = user_module(&t, 8, 0x1400, 0x2000);
    f = user_frame(&t, 0x1500);
    assert_in(&t, f, 7, seven, 0x500);
    assert_in(&t, f, 8, eight, 0x100);
    assert_nowhere(&t, f, 9);
    assert_in(&t, f, 8, eight, 0x100); /* remembered apart */
    assert_in(&t, f, 7, seven, 0x500);
    spoolint_table_free(&t);
}

static void user_and_kernel_modules_keep_apart(void **state)
{
    struct table t;
    uint32_t user, kernel, user_code, kernel_code;

    (void)state;
    new_table(&t);
    user = user_module(&t, 7, 0x1000, 0x2000);
    kernel = kernel_module(&t, 7, 0x1000, 0x2000); /* the kernel's process id means nothing */
    user_code = user_frame(&t, 0x1500);
    kernel_code = kernel_frame(&t, 0x1500);
    assert_in(&t, user_code, 7, user, 0x500);
    assert_nowhere(&t, user_code, 8);
    for (int32_t pid = -2; pid < 9; pid++)
        assert_in(&t, kernel_code, pid, kernel, 0x500);
    spoolint_table_free(&t);
}

static void process_zero_is_not_the_kernel(void **state)
{
    struct table t;
    uint32_t user, kernel, user_code, kernel_code;

    (void)state;
    new_table(&t);
    t.version = 3; /* where 0 and negative ids are legal */
    user = user_module(&t, 0, 0x1000, 0x2000);
    kernel = kernel_module(&t, 0, 0x1000, 0x2000);
    user_code = user_frame(&t, 0x1500);
    kernel_code = kernel_frame(&t, 0x1500);
    assert_in(&t, user_code, 0, user, 0x500);
    assert_in(&t, kernel_code, 0, kernel, 0x500);
    user = user_module(&t, INT32_MIN, 0x1000, 0x2000);
    assert_in(&t, user_frame(&t, 0x1001), INT32_MIN, user, 1);
    user = user_module(&t, -1, 0x1000, 0x2000);
    assert_in(&t, user_frame(&t, 0x1002), -1, user, 2);
    spoolint_table_free(&t);
}

static void a_retired_module_serves_the_frames_before_its_retirement(void **state)
{
    struct table t;
    uint32_t m, before, after;

    (void)state;
    new_table(&t);
    m = user_module(&t, 7, 0x1000, 0x2000);
    before = user_frame(&t, 0x1500);
    spoolint_table_retire_module(&t, m);
    assert_int_equal(t.modules[m].retired_at_frame, 1);
    after = user_frame(&t, 0x1500);
    assert_in(&t, before, 7, m, 0x500); /* also in a sample after the retirement */
    assert_nowhere(&t, after, 7);
    spoolint_table_free(&t);
}

static void a_module_retired_before_any_frame_serves_none(void **state)
{
    struct table t;
    uint32_t m;

    (void)state;
    new_table(&t);
    m = user_module(&t, 7, 0x1000, 0x2000);
    spoolint_table_retire_module(&t, m);
    assert_int_equal(t.modules[m].retired_at_frame, 0);
    assert_nowhere(&t, user_frame(&t, 0x1500), 7);
    spoolint_table_free(&t);
}

static void the_first_retirement_stands(void **state)
{
    struct table t;
    uint32_t m, between;

    (void)state;
    new_table(&t);
    m = user_module(&t, 7, 0x1000, 0x2000);
    spoolint_table_retire_module(&t, m);
    between = user_frame(&t, 0x1500);
    spoolint_table_retire_module(&t, m);
    spoolint_table_retire_process(&t, 7);
    assert_int_equal(t.modules[m].retired_at_frame, 0);
    assert_nowhere(&t, between, 7);
    spoolint_table_free(&t);
}

static void an_older_module_shows_again_when_the_one_over_it_is_retired(void **state)
{
    struct table t;
    uint32_t old, young, both, one, none;

    (void)state;
    new_table(&t);
    old = user_module(&t, 7, 0x1000, 0x2000);
    young = user_module(&t, 7, 0x1000, 0x2000);
    both = user_frame(&t, 0x1500);
    spoolint_table_retire_module(&t, young);
    one = user_frame(&t, 0x1500);
    spoolint_table_retire_process(&t, 7);
    none = user_frame(&t, 0x1500);
    assert_in(&t, both, 7, young, 0x500);
    assert_in(&t, one, 7, old, 0x500);
    assert_nowhere(&t, none, 7);
    spoolint_table_free(&t);
}

static void a_process_retires_its_own_user_modules_so_far(void **state)
{
    struct table t;
    uint32_t mine, others, kernel, later;

    (void)state;
    new_table(&t);
    mine = user_module(&t, 7, 0x1000, 0x2000);
    others = user_module(&t, 8, 0x1000, 0x2000);
    kernel = kernel_module(&t, 7, 0x8000, 0x9000);
    spoolint_table_retire_process(&t, 7);
    spoolint_table_retire_process(&t, 99); /* unknown: fine */
    later = user_module(&t, 7, 0x4000, 0x5000);
    assert_int_equal(t.modules[mine].retired_at_frame, 0);
    assert_int_equal(t.modules[others].retired_at_frame, SPOOL_NOT_RETIRED);
    assert_int_equal(t.modules[kernel].retired_at_frame, SPOOL_NOT_RETIRED);
    assert_int_equal(t.modules[later].retired_at_frame, SPOOL_NOT_RETIRED);
    user_frame(&t, 0x1500);
    spoolint_table_retire_process(&t, 7); /* takes the later one, at a later frame */
    assert_int_equal(t.modules[mine].retired_at_frame, 0);
    assert_int_equal(t.modules[later].retired_at_frame, 1);
    spoolint_table_retire_module(&t, kernel); /* one by one the kernel's can go */
    assert_int_equal(t.modules[kernel].retired_at_frame, 1);
    spoolint_table_free(&t);
}

static void a_pinned_frame_names_its_module_whatever_else_is_true(void **state)
{
    struct table t;
    uint32_t m, f;
    struct spool_frame got;

    (void)state;
    new_table(&t);
    m = add_with_offset(&t, 7, false, 0x1000, 0x2000, 0x300);
    user_module(&t, 8, 0x1000, 0x2000);
    spoolint_table_retire_module(&t, m);
    f = pinned_frame(&t, m, 0x310);
    assert_in(&t, f, 8, m, 0x310);
    assert_in(&t, f, -5, m, 0x310);
    assert_true(spoolint_table_get_frame(&t, f, &got));
    assert_int_equal(got.kind, SPOOL_FRAME_PINNED);
    assert_int_equal(got.module_id, m);
    assert_int_equal(got.rel, 0x310);
    assert_int_equal(got.abs, 0x1010);
    spoolint_table_free(&t);
}

static void the_marker_and_undefined_frames_have_no_module(void **state)
{
    struct table t;
    struct spool_frame got;
    uint32_t f;

    (void)state;
    new_table(&t);
    user_module(&t, 7, 0, 0x1000);
    kernel_module(&t, 7, 0, 0x1000);
    f = add_frame(&t, SPOOL_FRAME_TRUNCATED, false, SPOOL_NO_ID, 0, 0);
    assert_nowhere(&t, f, 7);
    assert_nowhere(&t, f + 1, 7);
    assert_nowhere(&t, SPOOL_NO_ID, 7);
    assert_true(spoolint_table_get_frame(&t, f, &got));
    assert_int_equal(got.kind, SPOOL_FRAME_TRUNCATED);
    assert_int_equal(got.module_id, SPOOL_NO_ID);
    assert_false(spoolint_table_get_frame(&t, f + 1, &got));
    assert_false(spoolint_table_get_frame(&t, SPOOL_NO_ID, &got));
    spoolint_table_free(&t);
}

static void an_address_in_the_file_beyond_64_bits_means_no_module_at_all(void **state)
{
    struct table t;
    uint32_t last, over;

    (void)state;
    new_table(&t);
    user_module(&t, 7, 0x1000, 0x3000); /* would fit, but is not tried */
    add_with_offset(&t, 7, false, 0x1000, 0x3000, UINT64_MAX - 0x800);
    last = user_frame(&t, 0x1800);
    over = user_frame(&t, 0x1801);
    assert_in(&t, last, 7, 1, UINT64_MAX);
    assert_nowhere(&t, over, 7);
    assert_nowhere(&t, over, 7); /* also when remembered */
    spoolint_table_free(&t);
}

static void annotations_take_ids_and_own_nothing(void **state)
{
    struct table t;
    uint32_t note, m, f;

    (void)state;
    new_table(&t);
    note = add_note(&t, "[spool:comm] seven");
    m = user_module(&t, 7, 0, 0x1000);
    f = user_frame(&t, 0);
    assert_int_equal(note, 0);
    assert_int_equal(m, 1);
    assert_int_equal(t.module_count, 2);
    assert_int_equal(t.annotation_count, 1);
    assert_true(t.extras[note].is_note);
    assert_false(t.extras[m].is_note);
    assert_in(&t, f, 7, m, 0);
    spoolint_table_retire_process(&t, 7); /* does not concern it */
    assert_int_equal(t.modules[note].retired_at_frame, SPOOL_NOT_RETIRED);
    spoolint_table_retire_module(&t, note); /* legal, without effect on anything */
    assert_in(&t, f, 7, m, 0);

    assert_false(t.has_clock);
    add_note(&t, "[spool:clock] 5 1700000000000000000");
    add_note(&t, "[spool:clock] 6 1700000000000000009");
    assert_true(t.has_clock);
    assert_int_equal(t.clock_monotonic_ns, 6);
    assert_int_equal(t.clock_wall_ns, 1700000000000000009u);
    spoolint_table_free(&t);
}

static void a_jit_module_is_a_module_in_every_respect(void **state)
{
    static const struct spool_jit_symbol symbols[] = {{0x8000, 0x8040, "f", 1},
                                                      {0x8040, 0x8100, "g\0g", 3}};
    struct spool_record rec = {
        .type = SPOOL_RECORD_JIT_MODULE,
        .module = {.pid = 7,
                   .jit = true,
                   .start = 0x8000,
                   .end = 0x8100,
                   .path = "[jit-1-2-3]",
                   .path_size = 11,
                   .jit_symbols = symbols,
                   .jit_symbol_count = 2,
                   .retired_at_frame = SPOOL_NOT_RETIRED},
    };
    const struct spool_module *m;
    struct table t;
    uint32_t jit, loose, pinned, after;

    (void)state;
    new_table(&t);
    user_module(&t, 7, 0x8000, 0x9000);
    jit = rec.module.id = 1;
    ok(spoolint_table_add_module(&t, &rec));
    assert_int_equal(rec.type, SPOOL_RECORD_JIT_MODULE);
    loose = user_frame(&t, 0x8041);
    pinned = pinned_frame(&t, jit, 0x41);
    spoolint_table_retire_process(&t, 7);
    after = user_frame(&t, 0x8041);
    assert_in(&t, loose, 7, jit, 0x41);
    assert_in(&t, pinned, 7, jit, 0x41);
    assert_nowhere(&t, after, 7);

    m = &t.modules[jit]; /* a copy of its own of everything, terminated */
    assert_ptr_not_equal(m->jit_symbols, symbols);
    assert_ptr_equal(rec.module.jit_symbols, m->jit_symbols);
    assert_int_equal(m->jit_symbol_count, 2);
    assert_string_equal(m->path, "[jit-1-2-3]");
    assert_string_equal(m->jit_symbols[0].name, "f");
    assert_int_equal(m->jit_symbols[1].start, 0x8040);
    assert_int_equal(m->jit_symbols[1].name_size, 3);
    assert_memory_equal(m->jit_symbols[1].name, "g\0g", 4);
    spoolint_table_free(&t);
}

static void an_annotation_like_path_on_a_jit_module_is_no_annotation(void **state)
{
    struct spool_record rec = {
        .type = SPOOL_RECORD_JIT_MODULE,
        .module = {.pid = 7, .jit = true, .path = "[spool:comm] x", .path_size = 14},
    };
    struct table t;

    (void)state;
    new_table(&t);
    ok(spoolint_table_add_module(&t, &rec));
    assert_int_equal(rec.type, SPOOL_RECORD_JIT_MODULE);
    assert_int_equal(t.annotation_count, 0);
    spoolint_table_free(&t);
}

static void the_kernels_addresses_are_sorted_and_each_once(void **state)
{
    struct table t;
    const uint64_t *addresses;
    size_t count = 9;
    uint32_t k;

    (void)state;
    new_table(&t);
    ok(spoolint_table_kernel_addresses(&t, &addresses, &count));
    assert_int_equal(count, 0);
    k = add_with_offset(&t, -1, true, 0xffff0000, 0xffff8000, 0x10);
    user_frame(&t, 3);
    kernel_frame(&t, UINT64_MAX);
    kernel_frame(&t, 5);
    pinned_frame(&t, k, 0x11);
    kernel_frame(&t, 0xffff0001); /* the same place as the pinned one */
    kernel_frame(&t, 5);
    kernel_frame(&t, 0);
    kernel_frame(&t, 0);
    add_frame(&t, SPOOL_FRAME_TRUNCATED, false, SPOOL_NO_ID, 0, 0);
    ok(spoolint_table_kernel_addresses(&t, &addresses, &count));
    assert_int_equal(count, 4);
    assert_int_equal(addresses[0], 0);
    assert_int_equal(addresses[1], 5);
    assert_int_equal(addresses[2], 0xffff0001);
    assert_int_equal(addresses[3], UINT64_MAX);
    kernel_frame(&t, 6);
    ok(spoolint_table_kernel_addresses(&t, &addresses, &count));
    assert_int_equal(count, 5);
    assert_int_equal(addresses[2], 6);
    spoolint_table_free(&t);
}

/* ---- against a search of everything ---- */

static bool search_all(const struct table *t, uint32_t frame, uint32_t limit, int32_t pid,
                       uint32_t *module, uint64_t *rel)
{
    const struct table_frame *f = &t->frames[frame];

    for (uint32_t i = limit; i-- > 0;) {
        const struct spool_module *m = &t->modules[i];

        if (t->extras[i].is_note || m->kernel != f->kernel || (!f->kernel && m->pid != pid) ||
            f->address < m->start || f->address >= m->end || frame >= m->retired_at_frame)
            continue;
        if (f->address - m->start > UINT64_MAX - m->file_offset)
            return false;
        *module = i;
        *rel = f->address - m->start + m->file_offset;
        return true;
    }
    return false;
}

static void assert_as_searched(struct table *t, const uint32_t *limits, uint32_t frame, int32_t pid)
{
    uint32_t module = SPOOL_NO_ID, got;
    uint64_t rel = 0, got_rel;
    bool found = search_all(t, frame, limits[frame], pid, &module, &rel);

    assert_int_equal(spoolint_table_locate(t, frame, pid, &got, &got_rel), found);
    assert_int_equal(got, module);
    if (found)
        assert_int_equal(got_rel, rel);
}

/* Random modules, retirements, notes and frames in a small space, asked about while it grows. */
static void random_life(uint64_t seed, unsigned steps, unsigned module_share)
{
    struct table t;
    uint32_t *limits = calloc(steps, sizeof *limits);

    assert_non_null(limits);
    new_table(&t);
    for (unsigned i = 0; i < steps; i++) {
        uint64_t r = random_u64(&seed);
        int32_t pid = 1 + (int32_t)(r >> 8) % 3;
        uint64_t start = (r >> 16) % 64;

        if (r % 100 < module_share) {
            add_with_offset(&t, pid < 0 ? -pid : pid, (r >> 40) % 5 == 0, start,
                            start + (r >> 32) % 20, (r >> 48) % 9 == 0 ? UINT64_MAX - 5 : r >> 50);
        } else if (r % 100 < module_share + 5 && t.module_count > 0) {
            spoolint_table_retire_module(&t, (uint32_t)((r >> 20) % t.module_count));
        } else if (r % 100 < module_share + 6) {
            spoolint_table_retire_process(&t, pid);
        } else if (r % 100 < module_share + 8) {
            add_note(&t, "[spool:comm] x");
        } else {
            uint32_t f = (r >> 41) % 4 == 0 ? kernel_frame(&t, start) : user_frame(&t, start);

            limits[f] = t.module_count;
            if (r >> 63)
                assert_as_searched(&t, limits, f, pid);
        }
        if (t.frame_count > 0 && i % 3 == 0)
            assert_as_searched(&t, limits, (uint32_t)(random_u64(&seed) % t.frame_count), pid);
    }
    for (uint32_t f = 0; f < t.frame_count; f += 1 + t.frame_count / 5000)
        for (int32_t pid = 0; pid < 5; pid++)
            assert_as_searched(&t, limits, f, pid);
    free(limits);
    spoolint_table_free(&t);
}

static void the_search_gives_what_trying_every_module_gives(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 300; seed++)
        random_life(seed, 200, 30);
    for (uint64_t seed = 1000; seed < 1010; seed++) {
        random_life(seed, 3000, 10);
        random_life(seed, 3000, 60);
    }
}

/* ---- size ---- */

static void thirty_thousand_overlapping_modules_and_loose_frames_are_quick(void **state)
{
    const uint32_t n = 30000;
    struct table t;

    (void)state;
    start_clock();
    new_table(&t);
    for (uint32_t i = 0; i < n; i++) /* nested: all of them hold the middle */
        user_module(&t, 7, i, (uint64_t)4 * n - i);
    for (uint32_t i = 0; i < n; i++)
        user_frame(&t, 2 * (uint64_t)i);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t youngest = 2 * i <= n - 1 ? 2 * i : n - 1;

        assert_in(&t, i, 7, youngest, 2 * (uint64_t)i - youngest);
        assert_nowhere(&t, i, 8);
    }
    assert_quick();
    spoolint_table_free(&t);
}

static void retired_modules_over_an_address_are_not_passed_one_by_one(void **state)
{
    const uint32_t n = 30000;
    struct table t;

    (void)state;
    start_clock();
    new_table(&t);
    user_module(&t, 7, 0, 0x10000);
    for (uint32_t i = 0; i < n; i++)
        user_module(&t, 7, 0x1000, 0x2000);
    for (uint32_t i = 1; i <= n; i++)
        spoolint_table_retire_module(&t, i);
    for (uint32_t i = 0; i < n; i++)
        assert_in(&t, user_frame(&t, 0x1000 + i % 0x1000), 7, 0, 0x1000 + i % 0x1000);
    assert_quick();
    spoolint_table_free(&t);
}

static void modules_that_come_and_go_between_frames_are_quick(void **state)
{
    const uint32_t n = 30000;
    struct table t;

    (void)state;
    start_clock();
    new_table(&t);
    user_module(&t, 7, 0, 0x10000);
    /* Each is asked about at once, so that the index grows step by step. */
    for (uint32_t i = 1; i < n; i++) {
        uint32_t f;

        assert_int_equal(user_module(&t, 7, 0x1000, 0x2000), i);
        f = user_frame(&t, 0x1800);
        assert_in(&t, f, 7, i, 0x800);
        spoolint_table_retire_module(&t, i);
        assert_in(&t, user_frame(&t, 0x1800), 7, 0, 0x1800);
        assert_in(&t, f, 7, i, 0x800);
    }
    for (uint32_t i = 1; i < n; i++)
        assert_in(&t, 2 * (i - 1), 7, i, 0x800);
    assert_quick();
    spoolint_table_free(&t);
}

static void thirty_thousand_deactivations_of_as_many_modules_are_quick(void **state)
{
    const uint32_t n = 30000;
    struct table t;

    (void)state;
    start_clock();
    new_table(&t);
    for (uint32_t i = 0; i < n; i++)
        user_module(&t, 7, 0x1000, 0x2000);
    for (uint32_t i = 0; i < n; i++)
        spoolint_table_retire_process(&t, 7);
    for (uint32_t i = 0; i < n; i++)
        assert_int_equal(t.modules[i].retired_at_frame, 0);
    for (uint32_t i = 0; i < n; i++) { /* and in turns */
        user_module(&t, 7, 0x1000, 0x2000);
        spoolint_table_retire_process(&t, 7);
        spoolint_table_retire_process(&t, 8);
    }
    assert_quick();
    spoolint_table_free(&t);
}

static void a_frame_is_quick_in_any_number_of_processes(void **state)
{
    const int32_t n = 30000;
    struct table t;
    uint32_t f;

    (void)state;
    start_clock();
    new_table(&t);
    for (int32_t pid = 1; pid <= n; pid++)
        user_module(&t, pid, 0x1000, 0x2000);
    f = user_frame(&t, 0x1234);
    for (int round = 0; round < 3; round++)
        for (int32_t pid = 1; pid <= n; pid++)
            assert_in(&t, f, pid, (uint32_t)pid - 1, 0x234);
    for (int32_t pid = n + 1; pid <= 10 * n; pid++)
        assert_nowhere(&t, f, pid);
    assert_quick();
    spoolint_table_free(&t);
}

static void remembered_answers_are_found_at_once(void **state)
{
    const uint32_t n = 400000;
    struct table t;

    (void)state;
    start_clock();
    new_table(&t);
    user_module(&t, 7, 0, n);
    for (uint32_t i = 0; i < n; i++)
        user_frame(&t, i);
    for (int round = 0; round < 5; round++)
        for (uint32_t i = 0; i < n; i++)
            assert_in(&t, i, 7, 0, i);
    assert_quick();
    spoolint_table_free(&t);
}

static void answers_stay_right_when_more_are_asked_for_than_are_remembered(void **state)
{
    const uint32_t n = 2100; /* squared more than 2^22 */
    struct table t;
    uint32_t module;
    uint64_t rel;

    (void)state;
    new_table(&t);
    for (uint32_t i = 0; i < n; i++)
        user_module(&t, (int32_t)i, i, (uint64_t)2 * n);
    for (uint32_t i = 0; i < n; i++)
        user_frame(&t, i);
    for (uint32_t pid = 0; pid < n; pid++) {
        for (uint32_t i = 0; i < n; i++) {
            int rc = spoolint_table_locate(&t, i, (int32_t)pid, &module, &rel);

            if (rc != (i >= pid) || (rc && (module != pid || rel != i - pid)))
                fail_msg("frame %u in process %u: %d, module %u", i, pid, rc, module);
        }
    }
    spoolint_table_free(&t);
}

/* Process ids whose hashes would stand side by side if the hash were the bare product with 2^64 /
 * phi. */
static void process_ids_chosen_to_collide_are_quick(void **state)
{
    const size_t n = 60000;
    int32_t *pids = malloc(n * sizeof *pids);
    struct table t;
    size_t count = 0;

    (void)state;
    assert_non_null(pids);
    for (uint32_t pid = 1; pid <= INT32_MAX && count < n; pid++)
        if (((uint64_t)pid * 2 * 0x9e3779b97f4a7c15u >> 32 & 0x1ffff) < 8)
            pids[count++] = (int32_t)pid;
    start_clock();
    new_table(&t);
    for (size_t i = 0; i < count; i++)
        user_module(&t, pids[i], 0x1000, 0x2000);
    user_frame(&t, 0x1234);
    for (size_t i = 0; i < count; i++)
        assert_in(&t, 0, pids[i], (uint32_t)i, 0x234);
    for (size_t i = 0; i < count; i++)
        spoolint_table_retire_process(&t, pids[i]);
    assert_quick();
    spoolint_table_free(&t);
    free(pids);
}

static void a_stack_of_a_million_nodes_is_walked_in_pieces(void **state)
{
    const uint32_t n = 1000000;
    struct spool_reader *r = spool_reader_new();
    struct bytes b = {0};
    struct spool_record rec;
    struct spool_stack stack;
    uint32_t frames[1000], node = n - 1, expected = n - 1;
    int rc;

    (void)state;
    start_clock();
    assert_non_null(r);
    bytes_header(&b, 3, 0, 0);
    for (uint32_t i = 0; i < n; i++) {
        bytes_frame(&b, i, CODE_USER, i);
        bytes_stack(&b, i, i == 0 ? ROOT : i - 1, i);
    }
    ok(spool_reader_open_memory(r, b.data, b.size));
    while ((rc = spool_reader_next(r, &rec)) > 0)
        continue;
    assert_int_equal(rc, 0);
    assert_true(spool_reader_stack(r, n - 1, &stack));
    assert_int_equal(stack.depth, n);
    while (node != SPOOL_NO_ID) {
        size_t got = spool_reader_walk(r, &node, frames, 999);

        assert_in_range(got, 1, 999);
        for (size_t i = 0; i < got; i++)
            assert_int_equal(frames[i], expected--);
    }
    assert_int_equal(expected, UINT32_MAX); /* one below 0 */
    assert_int_equal(spool_reader_walk(r, &node, frames, 999), 0);

    node = n - 1; /* without room nothing moves */
    assert_int_equal(spool_reader_walk(r, &node, frames, 0), 0);
    assert_int_equal(node, n - 1);
    node = n; /* undefined */
    assert_int_equal(spool_reader_walk(r, &node, frames, 999), 0);
    assert_int_equal(node, SPOOL_NO_ID);
    node = 2; /* room for exactly all */
    assert_int_equal(spool_reader_walk(r, &node, frames, 3), 3);
    assert_int_equal(node, SPOOL_NO_ID);
    assert_quick();
    spool_reader_free(r);
    bytes_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_module_holds_its_start_and_not_its_end),
        cmocka_unit_test(a_module_that_ends_at_or_before_its_start_holds_nothing),
        cmocka_unit_test(the_youngest_of_overlapping_modules_wins),
        cmocka_unit_test(a_module_defined_after_a_frame_never_applies_to_it),
        cmocka_unit_test(a_frame_resolves_differently_for_two_processes),
        cmocka_unit_test(user_and_kernel_modules_keep_apart),
        cmocka_unit_test(process_zero_is_not_the_kernel),
        cmocka_unit_test(a_retired_module_serves_the_frames_before_its_retirement),
        cmocka_unit_test(a_module_retired_before_any_frame_serves_none),
        cmocka_unit_test(the_first_retirement_stands),
        cmocka_unit_test(an_older_module_shows_again_when_the_one_over_it_is_retired),
        cmocka_unit_test(a_process_retires_its_own_user_modules_so_far),
        cmocka_unit_test(a_pinned_frame_names_its_module_whatever_else_is_true),
        cmocka_unit_test(the_marker_and_undefined_frames_have_no_module),
        cmocka_unit_test(an_address_in_the_file_beyond_64_bits_means_no_module_at_all),
        cmocka_unit_test(annotations_take_ids_and_own_nothing),
        cmocka_unit_test(a_jit_module_is_a_module_in_every_respect),
        cmocka_unit_test(an_annotation_like_path_on_a_jit_module_is_no_annotation),
        cmocka_unit_test(the_kernels_addresses_are_sorted_and_each_once),
        cmocka_unit_test(the_search_gives_what_trying_every_module_gives),
        cmocka_unit_test(thirty_thousand_overlapping_modules_and_loose_frames_are_quick),
        cmocka_unit_test(retired_modules_over_an_address_are_not_passed_one_by_one),
        cmocka_unit_test(modules_that_come_and_go_between_frames_are_quick),
        cmocka_unit_test(thirty_thousand_deactivations_of_as_many_modules_are_quick),
        cmocka_unit_test(a_frame_is_quick_in_any_number_of_processes),
        cmocka_unit_test(remembered_answers_are_found_at_once),
        cmocka_unit_test(answers_stay_right_when_more_are_asked_for_than_are_remembered),
        cmocka_unit_test(process_ids_chosen_to_collide_are_quick),
        cmocka_unit_test(a_stack_of_a_million_nodes_is_walked_in_pieces),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
