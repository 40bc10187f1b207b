/* SPDX-License-Identifier: MIT */
/*
 * A walk over any stack with any registers through a file whose unwind tables are any bytes: with caches it finds the same
 * as without, of generated code what it is in each round. A file's entries are all from the input, or heads that hold around programs from the input, as bytes alone
 * seldom get beyond a head.
 */
#include <stdlib.h>

#include "../librecord/frame_image.h"
#include "rule_cache.h"
#include "unwind.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CODE UINT64_C(0x7f0000001000)
#define JIT UINT64_C(0x7f0000100000)
#define PROBES UINT64_C(0x7fffffffe000)
#define STACK UINT64_C(0x7ffd00000000)
#define STACK_WORDS 64
#define FRAMES_MAX 128

struct input {
    const uint8_t *at;
    const uint8_t *end;
};

static uint8_t take(struct input *in)
{
    return in->at < in->end ? *in->at++ : 0;
}

static uint64_t take_number(struct input *in, unsigned bytes)
{
    uint64_t value = 0;

    for (unsigned i = 0; i < bytes; i++)
        value |= (uint64_t)take(in) << 8 * i;
    return value;
}

/* A value as registers and stacks have them: an address of code or of the stack, a number. */
static uint64_t take_value(struct input *in)
{
    uint8_t kind = take(in);

    switch (kind & 7) {
    case 0:
    case 1:
        return CODE + take_number(in, 2) % FRAME_TEXT_SIZE;
    case 2:
        return JIT + take(in);
    case 3:
        return PROBES + take(in);
    case 4:
    case 5:
        return STACK + take_number(in, 2) % (8 * STACK_WORDS + 64);
    case 6:
        return take(in);
    default:
        return take_number(in, 8);
    }
}

/* Up to as many bytes of the input as its next one says. */
static size_t take_bytes(struct input *in, const uint8_t **bytes)
{
    size_t size = take(in), left = (size_t)(in->end - in->at);

    if (size > left)
        size = left;
    *bytes = in->at;
    in->at += size;
    return size;
}

/* A CIE and FDEs that share the code among them, with programs of the input. */
static void make_entries(struct input *in, enum arch arch, struct bytes *eh, struct bytes *header)
{
    static const char *const letters[] = {"zR", "zRS", "zRB", "zRSB"};
    struct frame_style style = {.encoding = 0x1b, .letters = letters[take(in) & 3]};
    unsigned count = 1 + (take(in) & 7);
    uint64_t each = FRAME_TEXT_SIZE / count;
    const uint8_t *code;

    style.code_align = arch == ARCH_AARCH64 ? 4 : 1;
    style.return_register = arch == ARCH_AARCH64 ? 30 : 16;
    style.code_size = take_bytes(in, &style.code);
    if (style.code_size == 0)
        style.code = NULL;
    size_t cie = put_cie(eh, &style);
    put_header(header, 3, count);
    for (unsigned i = 0; i < count; i++) {
        size_t code_size = take_bytes(in, &code);
        size_t fde = put_fde(eh, &style, cie, FRAME_TEXT + i * each, each, code, code_size);

        put_search(header, FRAME_TEXT + i * each, fde);
    }
    put(eh, 0, 4);
}

static struct image *make_image(struct input *in, enum arch arch, uint8_t flags)
{
    static struct bytes built, eh, header;
    struct frame_file file = {.machine = arch == ARCH_AARCH64 ? EM_AARCH64 : 0, .eh = &eh};
    struct image *image = NULL;
    const uint8_t *bytes;

    eh.size = header.size = 0;
    if ((flags & 2) != 0) {
        make_entries(in, arch, &eh, &header);
    } else {
        for (unsigned i = 0; i < 8; i++) {
            size_t size = take_bytes(in, &bytes);

            put_bytes(&eh, bytes, size);
        }
        size_t size = take_bytes(in, &bytes);

        put_bytes(&header, bytes, size);
    }
    if ((flags & 4) == 0)
        file.header = &header;
    frame_build(&file, &built);
    if (recordint_image_open_memory(built.data, built.size, &image) != 0)
        abort();
    return image;
}

/* ---- what is mapped ---- */

struct world {
    struct image *image;
    struct rule_table *rules;
    struct rule_table *code_rules;
    uint32_t code_round;
    uint8_t code[96]; /* readable of generated code */
};

static bool find(void *user, uint64_t address, struct unwind_range *out)
{
    const struct world *w = user;

    if (address >= CODE && address < CODE + FRAME_TEXT_SIZE)
        *out = (struct unwind_range){.start = CODE,
                                     .end = CODE + FRAME_TEXT_SIZE,
                                     .file_offset = FRAME_TEXT_OFFSET,
                                     .module = 1,
                                     .image = w->image,
                                     .rules = w->rules,
                                     .file = true};
    else if (address >= JIT && address < JIT + 0x1000)
        *out = (struct unwind_range){.start = JIT, .end = JIT + 0x1000, .module = 2};
    else if (address >= PROBES && address < PROBES + 0x1000)
        *out = (struct unwind_range){
            .start = PROBES, .end = PROBES + 0x1000, .module = 3, .trampoline = true};
    else
        return false;
    return true;
}

static size_t read_code(void *user, uint64_t address, void *out, size_t size)
{
    const struct world *w = user;

    if (address < JIT || address - JIT >= sizeof w->code)
        return 0;
    if (size > sizeof w->code - (address - JIT))
        size = (size_t)(sizeof w->code - (address - JIT));
    memcpy(out, w->code + (address - JIT), size);
    return size;
}

/* ---- the walk ---- */

struct walked {
    struct unwind_frame frames[FRAMES_MAX];
    struct unwind_result result;
};

static void walk(struct world *w, const struct unwind_input *input, struct unwind_cache *cache,
                 struct walked *out)
{
    struct unwind_space space = {.find = find,
                                 .user = w,
                                 .cache = cache,
                                 .generation = 1,
                                 .read_code = read_code,
                                 .code_rules = w->code_rules,
                                 .code_round = w->code_round};

    recordint_unwind(&space, input, out->frames, FRAMES_MAX, &out->result);
    if (out->result.count > FRAMES_MAX)
        abort();
}

static void expect_same(const struct walked *a, const struct walked *b)
{
    if (a->result.count != b->result.count || a->result.end != b->result.end ||
        a->result.guessed != b->result.guessed || a->result.by_code != b->result.by_code ||
        a->result.signal != b->result.signal)
        abort();
    for (size_t i = 0; i < a->result.count; i++)
        if (a->frames[i].address != b->frames[i].address ||
            a->frames[i].module != b->frames[i].module)
            abort();
}

static void make_input(struct input *in, enum arch arch, struct unwind_input *out,
                       uint64_t stack[STACK_WORDS])
{
    unsigned words = take(in) % (STACK_WORDS + 1);

    *out = (struct unwind_input){.arch = arch, .stack = (const uint8_t *)stack};
    out->stack_size = 8 * words;
    if (arch == ARCH_AARCH64)
        out->pac_mask = UINT64_C(0xff7f000000000000);
    for (unsigned i = 0; i < STACK_WORDS; i++)
        stack[i] = take_value(in);
    for (unsigned reg = 0; reg < (arch == ARCH_AARCH64 ? REG_COUNT : REG_X86_RIP + 1u); reg++)
        reg_set(&out->regs, reg, take_value(in));
    reg_set(&out->regs, reg_sp(arch), STACK);
    reg_set(&out->regs, reg_pc(arch), CODE + take_number(in, 2) % FRAME_TEXT_SIZE);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct walked plain, cached, again;
    struct input in = {data, data + size};
    uint8_t flags = take(&in);
    enum arch arch = (flags & 1) != 0 ? ARCH_AARCH64 : ARCH_X86_64;
    struct world w = {.image = make_image(&in, arch, flags),
                      .rules = recordint_rule_table_new(),
                      .code_rules = recordint_rule_table_new(),
                      .code_round = 1};
    struct unwind_cache *cache = recordint_unwind_cache_new();
    uint64_t stack[STACK_WORDS];
    struct unwind_input input;

    if (w.rules == NULL || w.code_rules == NULL || cache == NULL)
        abort();
    for (size_t i = 0; i < sizeof w.code; i++)
        w.code[i] = (flags & 8) != 0 ? take(&in) : 0xff;
    make_input(&in, arch, &input, stack);
    if ((flags & 16) != 0)
        reg_set(&input.regs, reg_pc(arch), JIT + take(&in) % sizeof w.code);
    walk(&w, &input, NULL, &plain);
    walk(&w, &input, cache, &cached);
    walk(&w, &input, cache, &again);
    expect_same(&plain, &cached);
    expect_same(&plain, &again);
    /* The code is other code a round later. */
    for (size_t i = 0; i < sizeof w.code; i++)
        w.code[i] ^= (flags & 32) != 0 ? take(&in) : 0;
    w.code_round++;
    walk(&w, &input, NULL, &plain);
    walk(&w, &input, cache, &again);
    expect_same(&plain, &again);
    recordint_unwind_cache_free(cache);
    recordint_rule_table_free(w.code_rules);
    recordint_rule_table_free(w.rules);
    recordint_image_free(w.image);
    return 0;
}
