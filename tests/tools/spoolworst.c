/* SPDX-License-Identifier: MIT */
/*
 * spoolworst SHAPE N: a spool, or another input, of some 10 N to 60 N bytes on standard output, of a shape that makes a
 * reader do as much as its bytes allow. The bytes are written as the format states them, behind the writer's back.
 * tests/cases/worst.sh measures what becomes of the work when N grows.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MODULE = 1, FRAME, STACK, THREAD, SAMPLE, PYTHON, DEACTIVATE, DEACTIVATE_MODULE, JIT };
enum { USER = 1, KERNEL = 3 };

#define PID 40
#define NO_PREFIX 0xffffffffu
#define BASE UINT64_C(0x7f0000000000)

static uint32_t modules, frames, stacks, threads;

static void uv(uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        putchar((int)(value & 0x7f) | 0x80);
    putchar((int)value);
}

static void sv(int64_t value)
{
    uv((uint64_t)value << 1 ^ (uint64_t)(value >> 63));
}

static void bytes(const char *text, size_t size)
{
    uv(size);
    fwrite(text, 1, size, stdout);
}

static void header(unsigned version)
{
    printf("SPULSE%u", version);
    putchar(0);
    uv(0);
    uv(version == 4 ? 10000000 : 10000);
    if (version == 4)
        uv(0);
}

static uint32_t module_record(int tag, int pid, uint64_t start, uint64_t end, uint64_t offset,
                              bool kernel, const char *path, size_t path_size)
{
    putchar(tag);
    uv(modules);
    sv(pid);
    uv(start);
    uv(end);
    uv(offset);
    uv(0);
    uv(0);
    uv(0);
    uv(0);
    putchar(kernel);
    bytes(path, path_size);
    return modules++;
}

static uint32_t module(uint64_t start, uint64_t end)
{
    return module_record(MODULE, PID, start, end, 0, false, "/m", 2);
}

static void note(const char *key, const char *value)
{
    char text[256];
    int size = snprintf(text, sizeof text, "[spool:%s] %s", key, value);

    module_record(MODULE, PID, 0, 0, 0, false, text, (size_t)size);
}

static uint32_t frame(uint64_t code, uint64_t address)
{
    putchar(FRAME);
    uv(frames);
    uv(code);
    uv(address);
    return frames++;
}

static uint32_t stack(uint32_t prefix, uint32_t leaf)
{
    putchar(STACK);
    uv(stacks);
    uv(prefix);
    uv(leaf);
    return stacks++;
}

static uint32_t thread(int pid, uint64_t tid)
{
    putchar(THREAD);
    uv(threads);
    sv(pid);
    uv(tid);
    return threads++;
}

static void sample(int64_t delta, uint32_t of_thread, uint32_t of_stack)
{
    putchar(SAMPLE);
    sv(delta);
    uv(of_thread);
    uv(of_stack);
}

static void deactivate_module(uint32_t id)
{
    putchar(DEACTIVATE_MODULE);
    uv(id);
}

/* A frame of its own, as a stack of its own, sampled. */
static void sampled_frame(uint64_t code, uint64_t address)
{
    sample(1000000, 0, stack(NO_PREFIX, frame(code, address)));
}

static uint32_t chain(uint32_t n)
{
    uint32_t top = NO_PREFIX;

    for (uint32_t i = 0; i < n; i++)
        top = stack(top, frame(USER, BASE + i));
    return top;
}

/* ---- stacks ---- */

static void deep(uint32_t n)
{
    uint32_t top = chain(n);

    for (uint32_t i = 0; i < n; i++)
        sample(1000000, 0, top);
}

/* Every stack of a chain. */
static void prefixes(uint32_t n)
{
    chain(n);
    for (uint32_t i = 0; i < n; i++)
        sample(1000000, 0, i);
}

/* A deep stack under each of many names of its process. */
static void renamed(uint32_t n)
{
    uint32_t top = chain(n);

    for (uint32_t i = 0; i < n / 2; i++) {
        char name[16];

        snprintf(name, sizeof name, "%x", i);
        note("comm", name);
        sample(1000000, 0, top);
    }
}

static void recursive(uint32_t n)
{
    uint32_t top = NO_PREFIX, one = frame(USER, BASE);

    for (uint32_t i = 0; i < n; i++)
        top = stack(top, one);
    sample(0, 0, top);
}

/* ---- modules ---- */

/* Each in the one before, and what is in none but the first few. */
static void nested(uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        module(BASE + i, BASE + 2 * UINT64_C(1000000) - i);
    for (uint32_t i = 0; i < n; i++)
        sampled_frame(USER, BASE + i / 2);
}

/* All over the same place, retired one by one. */
static void retired(uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        module(BASE, BASE + 4096);
    for (uint32_t i = n; i-- > 0;) {
        deactivate_module(i);
        sampled_frame(USER, BASE + i % 4096);
    }
}

static void replaced(uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        uint32_t id = module(BASE + i % 7, BASE + 4096);

        sampled_frame(USER, BASE + 10);
        deactivate_module(id);
    }
}

/* Processes that end, each deactivated many times over. */
static void ended(uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        module(BASE, BASE + 4096);
        putchar(DEACTIVATE);
        sv(PID);
        sampled_frame(USER, BASE);
    }
}

/* One module, whose path is as long as the frames are many. */
static void long_path(uint32_t n)
{
    char *path = malloc((size_t)n * 8 + 2);

    if (path == NULL)
        exit(1);
    memset(path, 'p', (size_t)n * 8 + 2);
    path[0] = '/';
    module_record(MODULE, PID, BASE, BASE + n + 1, 0, false, path, (size_t)n * 8);
    for (uint32_t i = 0; i < n; i++)
        sampled_frame(0, i);
    free(path);
}

/* One function of generated code, whose name is as long as the frames are many. */
static void long_name(uint32_t n)
{
    size_t size = (size_t)n * 64;
    char *name = malloc(size);

    if (name == NULL)
        exit(1);
    memset(name, 'n', size);
    module_record(JIT, PID, BASE, BASE + n, 0, false, "[jit-1-1-1]", 11);
    uv(1);
    uv(BASE);
    uv(BASE + n);
    bytes(name, size);
    for (uint32_t i = 0; i < n; i++)
        sampled_frame(0, i);
    free(name);
}

/* The symbols of a module of generated code, each in the one before. */
static void jit(uint32_t n)
{
    module_record(JIT, PID, BASE, BASE + 2 * (uint64_t)n + 1, 0, false, "[jit-1-1-1]", 11);
    uv(n);
    for (uint32_t i = 0; i < n; i++) {
        char name[16];
        int size = snprintf(name, sizeof name, "j%x", i);

        uv(BASE + i);
        uv(BASE + 2 * (uint64_t)n - i);
        bytes(name, (size_t)size);
    }
    for (uint32_t i = 0; i < n; i++)
        sampled_frame(0, i * 2);
}

/* ---- names ---- */

static void thread_renamed(uint32_t n)
{
    uint32_t one = stack(NO_PREFIX, frame(USER, BASE));

    for (uint32_t i = 0; i < n; i++) {
        char name[32];

        snprintf(name, sizeof name, "%d %x", PID, i % 1000);
        note("thread", name);
        sample(1000000, 0, one);
    }
}

static uint64_t inverse(uint64_t odd)
{
    uint64_t x = odd;

    for (int i = 0; i < 6; i++)
        x *= 2 - odd * x;
    return x;
}

/* Threads whose numbers were one slot to a hash without a seed. */
static void thread_numbers(uint32_t n)
{
    uint32_t one = stack(NO_PREFIX, frame(USER, BASE));

    for (uint32_t i = 0; i < n; i++) {
        uint64_t h = (uint64_t)i << 32 | i;

        h *= inverse(0xd6e8feb86659fd93u);
        sample(1000000, thread(PID, (h ^ PID) * inverse(0x9e3779b97f4a7c15u)), one);
    }
}

static void processes(uint32_t n)
{
    uint32_t one = stack(NO_PREFIX, frame(USER, BASE));

    for (uint32_t i = 0; i < n; i++)
        sample(1000000, thread((int)i + 100, i + 100), one);
}

static void notes(uint32_t n)
{
    uint32_t one = stack(NO_PREFIX, frame(USER, BASE));

    for (uint32_t i = 0; i < n; i++) {
        char key[32], value[32];

        snprintf(key, sizeof key, "key-%x", i);
        note(key, "v");
        snprintf(value, sizeof value, "%u 0123456789abcdef", modules);
        module(BASE + i, BASE + i + 1);
        note("build-id", value);
        sample(1000000, 0, one);
    }
}

static void python(uint32_t n)
{
    uint32_t one = stack(NO_PREFIX, frame(USER, BASE));

    for (uint32_t i = 0; i < n; i++) {
        putchar(PYTHON);
        uv(i);
        sv(PID);
        putchar((int)(i & 1));
        if (i % 2 == 0)
            module(BASE, BASE + 1);
        sample(1000000, 0, one);
    }
}

/* ---- the kernel ---- */

/* Programs that come and go under a frame that was defined before all of them. */
static void ksymbols(uint32_t n)
{
    uint32_t one = stack(NO_PREFIX, frame(KERNEL, UINT64_C(0xffffffffc0000000)));

    for (uint32_t i = 0; i < n; i++) {
        char value[64];

        snprintf(value, sizeof value, "18446744072635809792 %u p%x", i % 2 == 0 ? 262144 : 0, i);
        note("ksymbol", value);
        sample(1000000, 0, one);
    }
}

static void kernel_modules(uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        module_record(MODULE, -1, UINT64_C(0xffffffffc0000000) + i,
                      UINT64_C(0xffffffffd0000000) - i, 0, true, "[m]", 3);
    for (uint32_t i = 0; i < n; i++)
        sampled_frame(KERNEL, UINT64_C(0xffffffffc0000000) + i);
}

/* ---- time ---- */

/* Each sample before all others. */
static void backwards(uint32_t n)
{
    uint32_t one = stack(NO_PREFIX, frame(USER, BASE)),
             other = stack(NO_PREFIX, frame(USER, BASE + 1));

    sample((int64_t)n * 1000000, 0, one);
    for (uint32_t i = 0; i < n; i++)
        sample(-1000000, i % 2, i % 4 < 2 ? one : other);
}

/* From one end to the other, and back. */
static void far_apart(uint32_t n)
{
    uint32_t one = stack(NO_PREFIX, frame(USER, BASE)),
             other = stack(NO_PREFIX, frame(USER, BASE + 1));
    int64_t step = (int64_t)n * 100000000;

    for (uint32_t i = 0; i < n; i++, step -= 50000000)
        sample(i % 2 == 0 ? step : -step + 1, i % 2, i % 4 < 2 ? one : other);
}

/* A gap behind every sample. */
static void gaps(uint32_t n)
{
    uint32_t one = stack(NO_PREFIX, frame(USER, BASE));

    for (uint32_t i = 0; i < n; i++)
        sample(1000000000, i % 2, one);
}

/* ---- other inputs ---- */

static void perf_map(uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        printf("%" PRIx64 " %x n%x\n", BASE + i, 2 * (n - i), i);
}

/* Addresses in the ranges of perf_map, in no module. */
static void mapped(uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        sampled_frame(USER, BASE + 2 * (uint64_t)i);
}

/* Half of them at one address, in the worst order. */
static void kallsyms(uint32_t n)
{
    for (uint32_t i = n; i-- > 0;)
        printf("%" PRIx64 " %c s%x%s\n", UINT64_C(0xffffffff81000000) + (i < n / 2 ? 0 : i),
               i % 3 == 0 ? 't' : 'T', i, i % 5 == 0 ? "\t[m]" : "");
}

static void kernel_frames(uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        sampled_frame(KERNEL, UINT64_C(0xffffffff81000000) + i);
}

/* ---- debug information: assembler, of code at CODE ---- */

#define CODE 0x401000u
#define CODE_EACH 16u

static void program(uint32_t n, const char *abbrev, unsigned abbrev_step, const char *entries)
{
    printf(".text\n.globl _start\n_start: .skip %u, 0x90\n", n * CODE_EACH);
    printf(".section .debug_abbrev\n%s", abbrev);
    printf(".section .debug_info\n");
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = CODE + i * CODE_EACH;

        printf(".long 2f - 1f\n1: .short 4\n.long %u\n.byte 8\n", i * abbrev_step);
        printf(".byte 1\n.quad %u\n.long %u\n", at, CODE_EACH);
        printf(".byte 2\n.quad %u\n.long %u\n%s.byte 0\n2:\n", at, CODE_EACH - 8, entries);
    }
}

/* A list of ranges that all units have a function of. */
static void shared_ranges(uint32_t n)
{
    program(n,
            ".byte 1, 0x11, 1, 0x11, 1, 0x12, 6, 0, 0, 2, 0x2e, 0, 0x11, 1, 0x12, 6, 0, 0\n"
            ".byte 3, 0x2e, 0, 0x55, 0x17, 0, 0, 0\n",
            0, ".byte 3\n.long 0\n");
    printf(".section .debug_ranges\n.quad -1, %u\n", CODE);
    for (uint32_t i = 0; i < n; i++)
        printf(".quad %u, %u\n", i * CODE_EACH, i * CODE_EACH + 1);
    printf(".quad 0, 0\n");
}

/* Tables of abbreviations that begin inside of each other and end together. */
static void nested_abbrevs(uint32_t n)
{
    static const char one[] = ".byte 1, 0x11, 1, 0x11, 1, 0x12, 6, 0, 0\n";
    char text[256];

    snprintf(text, sizeof text, ".rept %u\n%s.endr\n.byte 2, 0x2e, 0, 0x11, 1, 0x12, 6, 0, 0, 0\n",
             n, one);
    program(n, text, 9, "");
}

/* A line table that all units have. */
static void shared_lines(uint32_t n)
{
    printf(".text\n.globl _start\n_start: .skip %u, 0x90\n", n * CODE_EACH);
    printf(".section .debug_abbrev\n.byte 1, 0x11, 0, 0x11, 1, 0x12, 6, 0x10, 0x17, 0, 0, 0\n");
    printf(".section .debug_info\n");
    for (uint32_t i = 0; i < n; i++)
        printf(".long 2f - 1f\n1: .short 4\n.long 0\n.byte 8\n.byte 1\n.quad %u\n.long %u, 0\n2:\n",
               CODE + i * CODE_EACH, CODE_EACH);
    printf(".section .debug_line\n.long 2f - 1f\n1: .short 4\n.long 4f - 3f\n"
           "3: .byte 1, 1, 1, 0xff, 4, 4, 0, 1, 1\n.byte 0\n.asciz \"f\"\n.byte 0, 0, 0, 0\n"
           "4: .byte 0, 9, 2\n.quad %u\n.rept %u\n.byte 2, 1, 3, 1, 1\n.endr\n"
           ".byte 2, 1, 0, 1, 1\n2:\n",
           CODE, n * 4);
}

/* A function in many pieces. */
static void many_pieces(uint32_t n)
{
    printf(".text\n.globl _start\n_start: .skip %u, 0x90\n", n * CODE_EACH);
    printf(".section .debug_abbrev\n.byte 1, 0x11, 1, 0x11, 1, 0x12, 6, 0, 0\n"
           ".byte 2, 0x2e, 0, 3, 8, 0x55, 0x17, 0, 0, 0\n");
    printf(".section .debug_info\n.long 2f - 1f\n1: .short 4\n.long 0\n.byte 8\n"
           ".byte 1\n.quad %u\n.long %u\n.byte 2\n.asciz \"f\"\n.long 0\n.byte 0\n2:\n",
           CODE, n * CODE_EACH);
    printf(".section .debug_ranges\n.quad -1, %u\n", CODE);
    for (uint32_t i = n; i-- > 0;)
        printf(".quad %u, %u\n", i * CODE_EACH, i * CODE_EACH + 8);
    printf(".quad 0, 0\n");
}

/* Frames in all units. */
static void of_program(uint32_t n)
{
    module_record(MODULE, PID, CODE, CODE + n * CODE_EACH, 0x1000, false, "/program", 8);
    for (uint32_t i = 0; i < n; i++)
        sampled_frame(0, 0x1000 + i * CODE_EACH + 1);
}

static const struct shape {
    const char *name;
    void (*make)(uint32_t n);
    unsigned version; /* 0: no spool */
} shapes[] = {
    {"deep", deep, 4},
    {"prefixes", prefixes, 4},
    {"renamed", renamed, 4},
    {"recursive", recursive, 4},
    {"nested", nested, 4},
    {"retired", retired, 4},
    {"replaced", replaced, 4},
    {"ended", ended, 4},
    {"long-path", long_path, 4},
    {"long-name", long_name, 4},
    {"jit", jit, 4},
    {"thread-renamed", thread_renamed, 4},
    {"thread-numbers", thread_numbers, 3},
    {"processes", processes, 4},
    {"notes", notes, 4},
    {"python", python, 4},
    {"ksymbols", ksymbols, 4},
    {"kernel-modules", kernel_modules, 4},
    {"backwards", backwards, 4},
    {"far-apart", far_apart, 4},
    {"gaps", gaps, 4},
    {"mapped", mapped, 4},
    {"kernel-frames", kernel_frames, 4},
    {"of-program", of_program, 4},
    {"perf-map", perf_map, 0},
    {"kallsyms", kallsyms, 0},
    {"shared-ranges", shared_ranges, 0},
    {"nested-abbrevs", nested_abbrevs, 0},
    {"shared-lines", shared_lines, 0},
    {"many-pieces", many_pieces, 0},
};

int main(int argc, char **argv)
{
    const char *name = argc == 3 ? argv[1] : "";
    unsigned long n = argc == 3 ? strtoul(argv[2], NULL, 10) : 0;

    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        if (strcmp(name, shapes[i].name) != 0 || n == 0 || n > 10000000)
            continue;
        if (shapes[i].version > 0) {
            header(shapes[i].version);
            thread(PID, PID);
            thread(PID, PID + 1);
        }
        shapes[i].make((uint32_t)n);
        return fflush(stdout) != 0;
    }
    fprintf(stderr, "usage: spoolworst SHAPE N\n");
    return 2;
}
