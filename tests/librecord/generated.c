/* SPDX-License-Identifier: MIT */
/*
 * generated MODE SECONDS: calls generated code from compiled code without frame pointers and back, several times:
 *   trampoline  allocation, call, release, as CPython's
 *   frames      with a frame pointer; compiled code between
 *   leaf        with a frame pointer; the processor is mostly in the generated code itself, at all its instructions
 *   neither     a frame that neither the frame pointer nor the code ahead tells of
 *   rewritten   a trampoline whose frame size changes every 30 ms, at the same addresses
 * The C functions on the way are outer -> middle -> inner, each calling the next through generated code.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define NOINLINE __attribute__((noinline, noclone, used))

typedef void function(int depth);
typedef void generated(function *next, int depth);

static uint8_t *page;
static generated *through;
static double end_seconds;
static volatile unsigned sink;
static uint8_t frame_bytes;

#if defined(__x86_64__)
/* mov %rdi, %rax; mov %esi, %edi */
#define SHUFFLE 0x48, 0x89, 0xf8, 0x89, 0xf7
static const uint8_t trampoline[] = {SHUFFLE, 0x48, 0x83, 0xec, 0x08, 0xff,
                                     0xd0,    0x48, 0x83, 0xc4, 0x08, 0xc3};
enum { FRAME_AT = 8, RELEASE_AT = 14 };
/* push %rbp; mov %rsp, %rbp; sub $0x20, %rsp; call *%rax; test %eax, %eax; jne .+0; leave; ret */
static const uint8_t frames[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x20, SHUFFLE,
                                 0xff, 0xd0, 0x85, 0xc0, 0x75, 0x00, 0xc9, 0xc3};
/* The same with a loop of 2^20 rounds instead of the shuffle, whose body calls a tiny function with a frame. */
static const uint8_t leaf[] = {
    0x55, 0x48, 0x89, 0xe5,    /* push %rbp; mov %rsp, %rbp */
    0xb9, 0,    0,    0x10, 0, /* mov $1 << 20, %ecx */
    0xe8, 0x05, 0,    0,    0, /* call tiny */
    0xff, 0xc9,                /* dec %ecx */
    0x75, 0xf7,                /* jne: the call */
    0x5d, 0xc3,                /* pop %rbp; ret */
    0x55, 0x48, 0x89, 0xe5,    /* tiny: push %rbp; mov %rsp, %rbp */
    0x90, 0x90, 0x5d, 0xc3,    /* nop; nop; pop %rbp; ret */
};
/* sub $0x18, %rsp; call *%rax; test %eax, %eax; jne .+0; add $0x18, %rsp; ret */
static const uint8_t neither[] = {SHUFFLE, 0x48, 0x83, 0xec, 0x18, 0xff, 0xd0, 0x85,
                                  0xc0,    0x75, 0x00, 0x48, 0x83, 0xc4, 0x18, 0xc3};
#endif

/* Of processor time. */
static double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

NOINLINE static void spin(void)
{
    for (unsigned i = 0; i < 200000; i++)
        sink += i;
}

NOINLINE static void inner(int depth)
{
    if (depth < 0) {
        (*(void (*)(void))(uintptr_t)page)(); /* leaf */
        sink++;
        return;
    }
    spin();
    sink++;
}

NOINLINE static void middle(int depth)
{
    through(inner, depth);
    sink++;
}

NOINLINE static void outer(int depth)
{
    through(middle, depth);
    sink++;
}

NOINLINE static void plain(function *next, int depth)
{
    next(depth);
    sink++;
}

static void rewrite(void)
{
#if defined(__x86_64__)
    static double last;
    double now = seconds();

    if (now - last < 0.03)
        return;
    last = now;
    frame_bytes = frame_bytes == 0x08 ? 0x38 : 0x08;
    page[FRAME_AT] = page[RELEASE_AT] = frame_bytes;
#endif
}

int main(int argc, char **argv)
{
#if defined(__x86_64__)
    static const struct {
        const char *name;
        const uint8_t *code;
        size_t size;
    } modes[] = {{"trampoline", trampoline, sizeof trampoline},
                 {"frames", frames, sizeof frames},
                 {"leaf", leaf, sizeof leaf},
                 {"neither", neither, sizeof neither},
                 {"rewritten", trampoline, sizeof trampoline}};
    const char *mode = argc > 1 ? argv[1] : "";

    page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (argc != 3 || page == MAP_FAILED)
        return 2;
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++)
        if (strcmp(mode, modes[i].name) == 0) {
            memcpy(page, modes[i].code, modes[i].size);
            through = strcmp(mode, "leaf") == 0 ? plain : (generated *)(uintptr_t)page;
        }
    if (through == NULL)
        return 2;
    end_seconds = seconds() + atof(argv[2]);
    while (seconds() < end_seconds) {
        if (strcmp(mode, "rewritten") == 0)
            rewrite();
        outer(through == plain ? -1 : 0);
    }
    return 0;
#else
    (void)argc, (void)argv, (void)plain, (void)outer, (void)rewrite;
    return 77;
#endif
}
