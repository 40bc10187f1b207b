/* SPDX-License-Identifier: MIT */
/* Kernel code that comes and goes: what was at an address at a time. */
#include "context.h"
#include "ksymbol.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define EVENT(t, a, l, n)                                             \
    {                                                                 \
        .time = (t), .address = (a), .length_bytes = (l), .name = (n) \
    }

static void check(const struct symint_ksymbols *k, uint64_t address, uint64_t time,
                  enum symint_ksymbol_answer answer, const char *name)
{
    uint32_t event = UINT32_MAX;
    enum symint_ksymbol_answer got = symint_ksymbols_find(k, address, time, &event);
    if (got != answer)
        fail_msg("%d instead of %d for %llx at %llu", got, answer, (unsigned long long)address,
                 (unsigned long long)time);
    if (answer == SYMINT_KSYMBOL_NAMED) {
        const struct symint_ksymbol_event *e = &k->events[event];
        assert_int_equal(e->name_size, strlen(name));
        assert_memory_equal(k->names + e->name, name, e->name_size);
    }
}

static void a_program_has_its_name_only_while_it_is_there(void **state)
{
    (void)state;
    const struct sym_ksymbol events[] = {EVENT(10, 0x1000, 0x100, "a"), EVENT(20, 0x1000, 0, "a"),
                                         EVENT(30, 0x1080, 0x100, "b")};
    struct symint_ksymbols k;
    assert_int_equal(symint_ksymbols_build(&k, events, 3), 0);
    check(&k, 0xfff, 15, SYMINT_KSYMBOL_UNTOUCHED, NULL);
    check(&k, 0x1000, 9, SYMINT_KSYMBOL_NOTHING, NULL);
    check(&k, 0x1000, 10, SYMINT_KSYMBOL_NAMED, "a");
    check(&k, 0x10ff, 19, SYMINT_KSYMBOL_NAMED, "a");
    check(&k, 0x1100, 19, SYMINT_KSYMBOL_NOTHING, NULL); /* only later there is something */
    check(&k, 0x1010, 20, SYMINT_KSYMBOL_NOTHING, NULL);
    check(&k, 0x1090, 25, SYMINT_KSYMBOL_NOTHING, NULL);
    check(&k, 0x1090, 30, SYMINT_KSYMBOL_NAMED, "b");
    check(&k, 0x1010, UINT64_MAX, SYMINT_KSYMBOL_NOTHING, NULL);
    check(&k, 0x117f, UINT64_MAX, SYMINT_KSYMBOL_NAMED, "b");
    check(&k, 0x1180, UINT64_MAX, SYMINT_KSYMBOL_UNTOUCHED, NULL);
    symint_ksymbols_free(&k);
}

static void the_latest_of_overlapping_events_decides(void **state)
{
    (void)state;
    const struct sym_ksymbol events[] = {EVENT(1, 0x1000, 0x1000, "wide"),
                                         EVENT(2, 0x1800, 0x100, "inner"),
                                         EVENT(2, 0x1800, 0x80, "same time"),
                                         EVENT(3, 0x1800, 0, ""),
                                         EVENT(4, 0xfffffffffffffff0, 0x100, "wraps")};
    struct symint_ksymbols k;
    assert_int_equal(symint_ksymbols_build(&k, events, 5), 0);
    check(&k, 0x1880, 1, SYMINT_KSYMBOL_NAMED, "wide");
    check(&k, 0x1880, 2, SYMINT_KSYMBOL_NAMED, "inner");
    check(&k, 0x187f, 2, SYMINT_KSYMBOL_NAMED, "same time");
    check(&k, 0x18ff, 3, SYMINT_KSYMBOL_NOTHING, NULL); /* all that began there has ended */
    check(&k, 0x1900, 3, SYMINT_KSYMBOL_NAMED, "wide");
    check(&k, UINT64_MAX - 1, 4, SYMINT_KSYMBOL_NAMED, "wraps");
    symint_ksymbols_free(&k);
}

static void an_end_without_a_beginning_says_little(void **state)
{
    (void)state;
    const struct sym_ksymbol events[] = {EVENT(5, 0x1000, 0, "old")};
    struct symint_ksymbols k;
    assert_int_equal(symint_ksymbols_build(&k, events, 1), 0);
    check(&k, 0x1000, 1, SYMINT_KSYMBOL_NOTHING, NULL);
    check(&k, 0x1000, 5, SYMINT_KSYMBOL_NOTHING, NULL);
    check(&k, 0x1001, 5, SYMINT_KSYMBOL_UNTOUCHED, NULL);
    symint_ksymbols_free(&k);
    assert_int_equal(symint_ksymbols_build(&k, NULL, 0), 0);
    check(&k, 0x1000, 5, SYMINT_KSYMBOL_UNTOUCHED, NULL);
    symint_ksymbols_free(&k);
}

/* What the rules say, event by event. */
static enum symint_ksymbol_answer slow_find(const struct sym_ksymbol *events, size_t count,
                                            uint64_t address, uint64_t time, uint32_t *event)
{
    enum symint_ksymbol_answer answer = SYMINT_KSYMBOL_UNTOUCHED;
    for (size_t i = 0; i < count; i++) {
        uint64_t length = events[i].length_bytes;
        if (length == 0) {
            for (size_t k = i; k-- > 0;) {
                if (events[k].address != events[i].address)
                    continue;
                if (events[k].length_bytes == 0)
                    break;
                length = events[k].length_bytes > length ? events[k].length_bytes : length;
            }
            length = length == 0 ? 1 : length;
        }
        if (address < events[i].address || address - events[i].address >= length)
            continue;
        if (answer == SYMINT_KSYMBOL_UNTOUCHED)
            answer = SYMINT_KSYMBOL_NOTHING;
        if (events[i].time <= time) {
            answer = events[i].length_bytes > 0 ? SYMINT_KSYMBOL_NAMED : SYMINT_KSYMBOL_NOTHING;
            *event = (uint32_t)i;
        }
    }
    return answer;
}

static void random_events_are_found_as_the_rules_say(void **state)
{
    (void)state;
    uint64_t seed = 7;
    for (int round = 0; round < 400; round++) {
        struct sym_ksymbol events[40];
        size_t count = 1 + (size_t)round % 40;
        uint64_t time = 0;
        for (size_t i = 0; i < count; i++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            time += seed >> 60 & 1;
            events[i] = (struct sym_ksymbol)EVENT(time, seed >> 40 & 31, seed >> 50 & 15, "x");
            if ((seed >> 56 & 3) == 0)
                events[i].length_bytes = 0;
        }
        struct symint_ksymbols k;
        assert_int_equal(symint_ksymbols_build(&k, events, count), 0);
        for (uint64_t address = 0; address < 50; address++) {
            for (uint64_t t = 0; t <= time + 1; t++) {
                uint32_t want = UINT32_MAX;
                uint32_t got = UINT32_MAX;
                enum symint_ksymbol_answer answer = slow_find(events, count, address, t, &want);
                assert_int_equal(symint_ksymbols_find(&k, address, t, &got), answer);
                if (answer == SYMINT_KSYMBOL_NAMED)
                    assert_int_equal(got, want);
            }
        }
        symint_ksymbols_free(&k);
    }
}

static void a_multitude_of_overlapping_events_takes_no_time(void **state)
{
    (void)state;
    enum { COUNT = 200000 };
    struct sym_ksymbol *events = calloc(COUNT, sizeof(*events));
    struct symint_ksymbols k;
    uint32_t event;
    assert_non_null(events);
    for (uint64_t i = 0; i < COUNT; i++)
        events[i] = (struct sym_ksymbol)EVENT(i, i * 16, (COUNT - i) * 64, "n");
    clock_t begin = clock();
    assert_int_equal(symint_ksymbols_build(&k, events, COUNT), 0);
    for (uint64_t i = 0; i < COUNT; i++)
        assert_int_equal(symint_ksymbols_find(&k, COUNT * 16 - i, i, &event),
                         i * 16 + (COUNT - i) * 64 > COUNT * 16 - i ? SYMINT_KSYMBOL_NAMED
                                                                    : SYMINT_KSYMBOL_NOTHING);
    assert_true(clock() - begin < 20 * CLOCKS_PER_SEC);
    symint_ksymbols_free(&k);
    free(events);
}

static const struct sym_frame *ask(struct sym_context *c, uint64_t address, uint64_t time)
{
    const struct sym_frame *f;
    size_t count;
    struct sym_query q = {.module = SYM_NO_MODULE, .kernel = true, .abs = address, .time = time};
    assert_int_equal(sym_resolve(c, &q, &f, &count), 0);
    assert_int_equal(count, 1);
    return f;
}

/* Symbolization.md S14: the names of both programs that were at one place, each at its time. */
static void a_context_answers_by_time(void **state)
{
    (void)state;
    char path[] = "/tmp/test_ksymbol.XXXXXX";
    int fd = mkstemp(path);
    static const char text[] = "ffffffffc0001000 t bpf_prog_2_b\t[bpf]\n"
                               "ffffffffc0005000 t other\t[mod]\n";
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
    struct sym_ksymbol events[] = {EVENT(10, 0xffffffffc0001000, 0x100, "bpf_prog_1_a, not this"),
                                   EVENT(20, 0xffffffffc0001000, 0, ""),
                                   EVENT(30, 0xffffffffc0001000, 0x80, "bpf_prog_2_b")};
    events[0].name_size = 12;
    struct sym_kernel k = {
        .size = sizeof(k), .kallsyms = path, .ksymbols = events, .ksymbol_count = 3};
    struct sym_context *c = sym_context_new();
    assert_non_null(c);
    assert_int_equal(sym_context_open(c, NULL), 0);
    assert_int_equal(sym_kernel_load(c, &k), 0);
    const struct sym_frame *first = ask(c, 0xffffffffc0001010, 12);
    assert_string_equal(first->name, "bpf_prog_1_a");
    assert_int_equal(first->origin, SYM_ORIGIN_KALLSYMS);
    assert_int_equal(first->function_start, 0xffffffffc0001000);
    assert_int_equal(first->offset, 0x10);
    assert_ptr_equal(ask(c, 0xffffffffc0001010, 19), first);
    assert_int_equal(ask(c, 0xffffffffc0001010, 5)->miss, SYM_MISS_NO_SYMBOL);
    assert_int_equal(ask(c, 0xffffffffc0001010, 25)->miss, SYM_MISS_NO_SYMBOL);
    assert_string_equal(ask(c, 0xffffffffc0001010, 30)->name, "bpf_prog_2_b");
    assert_string_equal(ask(c, 0xffffffffc0005010, 30)->name, "other [mod]");
    /* Without any file they count, too, and another list replaces them. */
    unlink(path);
    k.ksymbol_count = 1;
    assert_int_equal(sym_kernel_load(c, &k), SYM_ERR_NOT_FOUND);
    assert_string_equal(ask(c, 0xffffffffc0001010, 30)->name, "bpf_prog_1_a");
    assert_int_equal(ask(c, 0xffffffffc0005010, 30)->miss, SYM_MISS_KERNEL);
    assert_string_equal(first->name, "bpf_prog_1_a");
    sym_context_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_program_has_its_name_only_while_it_is_there),
        cmocka_unit_test(the_latest_of_overlapping_events_decides),
        cmocka_unit_test(an_end_without_a_beginning_says_little),
        cmocka_unit_test(random_events_are_found_as_the_rules_say),
        cmocka_unit_test(a_multitude_of_overlapping_events_takes_no_time),
        cmocka_unit_test(a_context_answers_by_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
