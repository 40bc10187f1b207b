/* SPDX-License-Identifier: MIT */
/* The walk through code of this program whose unwind data is written by hand. */
#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "unwind.h"

#if defined(__x86_64__)

/* code_ends_in_call's last instruction is a call, and what follows at once is a signal trampoline with data of its
 * own or another function; code_plain_sigreturn has none. */
__asm__(".text\n"
        "code_leaf:\n"
        "\t.cfi_startproc\n"
        "\tnop\n"
        "\tret\n"
        "\t.cfi_endproc\n"
        "code_ends_in_call:\n"
        "\t.cfi_startproc\n"
        "\tsubq $24, %rsp\n"
        "\t.cfi_def_cfa_offset 32\n"
        "\tcall code_leaf\n"
        "\t.cfi_endproc\n"
        "code_follows:\n"
        "\t.cfi_startproc\n"
        "\tnop\n"
        "\tcall code_leaf\n"
        "\t.cfi_endproc\n"
        "code_trampoline:\n"
        "\t.cfi_startproc\n"
        "\t.cfi_signal_frame\n"
        "\t.cfi_def_cfa_offset 16\n"
        "\tnop\n"
        "\tnop\n"
        "\t.cfi_endproc\n"
        "code_outermost:\n"
        "\t.cfi_startproc\n"
        "\t.cfi_undefined rip\n"
        "\tnop\n"
        "\tnop\n"
        "\t.cfi_endproc\n"
        "\t.skip 16, 0x90\n"
        "code_plain_sigreturn:\n"
        "\tmovq $15, %rax\n"
        "\tsyscall\n"
        "\tnop\n");

extern const char code_leaf[], code_ends_in_call[], code_follows[], code_trampoline[],
    code_outermost[], code_plain_sigreturn[];

#define STACK UINT64_C(0x7ffd0000)
#define AT(label) ((uint64_t)(uintptr_t)(label))

struct world {
    struct unwind_space space;
    struct unwind_range range;
    uint64_t stack[128];
    struct unwind_frame frames[16];
    struct unwind_result result;
};

static bool find(void *user, uint64_t address, struct unwind_range *out)
{
    const struct world *w = user;

    *out = w->range;
    return address >= w->range.start && address < w->range.end;
}

static int setup(void **state)
{
    struct world *w = test_calloc(1, sizeof *w);
    FILE *maps = fopen("/proc/self/maps", "re");
    char line[512];
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

    assert_non_null(maps);
    while (fgets(line, sizeof line, maps) != NULL) {
        sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64, &w->range.start, &w->range.end,
               &w->range.file_offset);
        if (AT(code_leaf) >= w->range.start && AT(code_leaf) < w->range.end)
            break;
    }
    fclose(maps);
    assert_true(fd >= 0);
    assert_int_equal(recordint_image_open_fd(fd, &w->range.image), 0);
    close(fd);
    w->range.file = true;
    w->range.rules = recordint_rule_table_new();
    w->space.find = find;
    w->space.user = w;
    w->space.cache = recordint_unwind_cache_new();
    assert_non_null(w->range.rules);
    assert_non_null(w->space.cache);
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;

    recordint_unwind_cache_free(w->space.cache);
    recordint_rule_table_free(w->range.rules);
    recordint_image_free(w->range.image);
    test_free(w);
    return 0;
}

/* Three times: the rule is made, is in the cache, and is made again. */
static void expect(struct world *w, uint64_t pc, enum unwind_end end, size_t count,
                   const uint64_t *address)
{
    struct unwind_cache *cache = w->space.cache;
    struct unwind_input input;

    memset(&input, 0, sizeof input);
    input.arch = ARCH_X86_64;
    reg_set(&input.regs, REG_X86_RIP, pc);
    reg_set(&input.regs, REG_X86_RSP, STACK);
    input.stack = (const uint8_t *)w->stack;
    input.stack_size = sizeof w->stack;
    for (int round = 0; round < 3; round++) {
        w->space.cache = round < 2 ? cache : NULL;
        recordint_unwind(&w->space, &input, w->frames, 16, &w->result);
        assert_int_equal(w->result.end, end);
        assert_int_equal(w->result.count, count);
        for (size_t i = 0; i < count; i++)
            assert_int_equal(w->frames[i].address, address[i]);
    }
    w->space.cache = cache;
}

static void a_return_behind_the_last_instruction_is_of_the_function_before(void **state)
{
    struct world *w = *state;
    const uint64_t frames[] = {AT(code_leaf), AT(code_follows) - 1, AT(code_outermost)};

    w->stack[0] = AT(code_follows);
    w->stack[1 + 3] = AT(code_outermost) + 1;
    expect(w, AT(code_leaf), UNWIND_COMPLETE, 3, frames);
    assert_false(w->result.signal);
}

static void a_return_to_the_first_byte_of_a_trampoline_is_of_the_trampoline(void **state)
{
    struct world *w = *state;
    /* What it interrupted is at its exact pc too, as a leaf. */
    const uint64_t frames[] = {AT(code_leaf), AT(code_trampoline), AT(code_follows),
                               AT(code_outermost)};

    w->stack[0] = AT(code_trampoline);
    w->stack[1 + 1] = AT(code_follows);
    w->stack[3] = AT(code_outermost) + 1;
    expect(w, AT(code_leaf), UNWIND_COMPLETE, 4, frames);
    assert_true(w->result.signal);
}

static void a_sample_at_the_byte_before_a_trampoline_is_none_of_it(void **state)
{
    struct world *w = *state;
    const uint64_t frames[] = {AT(code_trampoline) - 1, AT(code_outermost)};

    w->stack[0] = AT(code_outermost) + 1;
    expect(w, AT(code_trampoline) - 1, UNWIND_COMPLETE, 2, frames);
    assert_false(w->result.signal);
}

static void a_trampoline_without_unwind_data_is_known_by_its_instructions(void **state)
{
    struct world *w = *state;
    const uint64_t frames[] = {AT(code_leaf), AT(code_plain_sigreturn), AT(code_follows),
                               AT(code_outermost)};

    w->stack[0] = AT(code_plain_sigreturn);
    w->stack[1 + 5 + 15] = STACK + 512; /* rsp */
    w->stack[1 + 5 + 16] = AT(code_follows);
    w->stack[64] = AT(code_outermost) + 1;
    expect(w, AT(code_leaf), UNWIND_COMPLETE, 4, frames);
    assert_true(w->result.signal);
    assert_false(w->result.guessed);
}

static void a_signal_that_interrupted_a_jump_to_nowhere_is_crossed(void **state)
{
    struct world *w = *state;
    const uint64_t frames[] = {AT(code_leaf), AT(code_plain_sigreturn), 0, AT(code_follows) - 1,
                               AT(code_outermost)};

    w->stack[0] = AT(code_plain_sigreturn);
    w->stack[1 + 5 + 15] = STACK + 512;
    w->stack[1 + 5 + 16] = 0;
    w->stack[64] = AT(code_follows); /* behind a call, so it was one */
    w->stack[65 + 3] = AT(code_outermost) + 1;
    expect(w, AT(code_leaf), UNWIND_COMPLETE, 5, frames);
    assert_true(w->result.guessed);
}

#define with_world(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_world(a_return_behind_the_last_instruction_is_of_the_function_before),
        with_world(a_return_to_the_first_byte_of_a_trampoline_is_of_the_trampoline),
        with_world(a_sample_at_the_byte_before_a_trampoline_is_none_of_it),
        with_world(a_trampoline_without_unwind_data_is_known_by_its_instructions),
        with_world(a_signal_that_interrupted_a_jump_to_nowhere_is_crossed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
    puts("skipped: the code is x86-64's");
    return 77;
}

#endif
