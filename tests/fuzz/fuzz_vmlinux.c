/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as what tells about a kernel. The input is six pieces, each behind its size of two bytes: numbers for ranges
 * and sampled addresses, kallsyms, the notes, the boot id, and the stat file of the running system, the release; the rest
 * is its ELF file. What that names contains the address, and is asked for once more by what is around it.
 */
#include "kernel.h"
#include "vmlinux.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { NUMBERS, KALLSYMS, NOTES, BOOT_ID, STAT, RELEASE, IMAGE, PIECES };

#define NEEDED_MAX 16

struct piece {
    const uint8_t *data;
    size_t size;
    char path[40]; /* of a file that has it */
};

static void cut(const uint8_t *data, size_t size, struct piece pieces[PIECES])
{
    static int fds[PIECES];
    for (size_t i = 0; i < PIECES; i++) {
        struct piece *p = &pieces[i];
        size_t claimed = size;
        if (i != IMAGE) {
            claimed = size >= 2 ? data[0] | (size_t)data[1] << 8 : 0;
            size_t skipped = size >= 2 ? 2 : size;
            data += skipped;
            size -= skipped;
        }
        p->data = data;
        p->size = claimed < size ? claimed : size;
        data += p->size;
        size -= p->size;
        if (fds[i] == 0)
            fds[i] = memfd_create("piece", MFD_CLOEXEC);
        if (fds[i] < 0 || ftruncate(fds[i], 0) != 0 ||
            pwrite(fds[i], p->data, p->size, 0) != (ssize_t)p->size)
            abort();
        snprintf(p->path, sizeof(p->path), "/proc/self/fd/%d", fds[i]);
    }
}

static uint64_t number_at(const struct piece *p, size_t at)
{
    uint64_t value = 0;
    for (size_t i = 0; i < 8 && at + i < p->size; i++)
        value |= (uint64_t)p->data[at + i] << 8 * i;
    return value;
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void ask_image(const struct symint_vmlinux *v, uint64_t address)
{
    uint64_t vaddr, start, end;
    struct symint_vmlinux_symbol s, next;
    if (!symint_vmlinux_address(v, address, &vaddr))
        return;
    if (vaddr + v->shift != address)
        abort();
    if (symint_vmlinux_extent(v, vaddr, &start, &end) && (vaddr < start || vaddr >= end))
        abort();
    if (symint_vmlinux_find_symbol(v, vaddr, &s) &&
        (s.start > vaddr || s.name_size == 0 || s.name == NULL))
        abort();
    if (symint_vmlinux_next_symbol(v, vaddr, &next) && (next.start < vaddr || next.name_size == 0))
        abort();
}

static void ask_table(const struct symint_kernel *k, uint64_t address)
{
    struct symint_kernel_symbol s;
    if (symint_kernel_find(k, address, &s) &&
        (address < s.start || address >= s.end || s.name_size == 0))
        abort();
    if (symint_kernel_after(k, address, &s) && s.start <= address)
        abort();
}

static void load(const struct sym_kernel *kernel, const struct symint_system *system,
                 enum symint_boot boot)
{
    static const char *const nowhere[] = {"/proc/self/fdinfo"};
    struct symint_search_options options = {.system = system,
                                            .boot = boot,
                                            .sysroot = nowhere[0],
                                            .debug_dirs = nowhere,
                                            .debug_dir_count = 1};
    struct symint_arena arena = {0};
    struct symint_vmlinux v = {0};
    struct symint_kernel k = {0};
    enum sym_kernel_state state = SYM_KERNEL_NONE;
    int error = 0;
    int rc = symint_vmlinux_find(&v, &arena, &options, kernel, &error);
    if (rc != 0 && (kernel->vmlinux == NULL || rc == SYM_ERR_NOMEM))
        abort();
    rc = symint_kernel_load(&k, &v, kernel, &options, boot, system, &state, &error);
    if (rc == SYM_ERR_NOMEM)
        abort();
    for (size_t i = 0; i < kernel->needed_count; i++) {
        for (int around = -1; around <= 1; around++) {
            if (v.elf != NULL && v.placed)
                ask_image(&v, kernel->needed[i] + (uint64_t)around);
            if (rc == 0)
                ask_table(&k, kernel->needed[i] + (uint64_t)around);
        }
    }
    symint_kernel_free(&k);
    symint_vmlinux_free(&v);
    symint_arena_free(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct piece pieces[PIECES];
    uint64_t needed[NEEDED_MAX];
    char release[64], boot_text[64];
    cut(data, size, pieces);
    const struct piece *numbers = &pieces[NUMBERS];
    uint8_t flags = numbers->size > 0 ? numbers->data[0] : 0;
    struct sym_kernel_range ranges[] = {
        {number_at(numbers, 1), number_at(numbers, 9), number_at(numbers, 17),
         (flags & 1) != 0 ? "[kernel.kallsyms]_stext" : "[kernel.kallsyms]_text", 0},
        {0xffffffffc0000000, 0xffffffffc0100000, 0, "[mod]", 0}};
    size_t count = 0;
    for (size_t at = 25; at < numbers->size && count < NEEDED_MAX; at += 8)
        needed[count++] = number_at(numbers, at);
    qsort(needed, count, sizeof(needed[0]), compare);
    snprintf(release, sizeof(release), "%.*s", (int)(pieces[RELEASE].size & 63),
             (const char *)pieces[RELEASE].data);
    snprintf(boot_text, sizeof(boot_text), "%.*s", (int)(pieces[BOOT_ID].size & 63),
             (const char *)pieces[BOOT_ID].data);
    struct symint_system system = {.proc = "/proc/self/fdinfo",
                                   .kallsyms = pieces[KALLSYMS].path,
                                   .boot_id = pieces[BOOT_ID].path,
                                   .stat = pieces[STAT].path,
                                   .notes = pieces[NOTES].path,
                                   .osrelease = pieces[RELEASE].path};
    struct sym_capture capture = {.size = sizeof(capture),
                                  .boot_id = (flags & 32) != 0 ? boot_text : NULL,
                                  .has_start_time = true,
                                  .start_time_us = number_at(numbers, 1)};
    static const uint8_t id[] = {1, 2, 3, 4, 5, 6, 7, 8};
    struct sym_kernel kernel = {
        .size = sizeof(kernel),
        .kallsyms = (flags & 2) != 0 ? pieces[KALLSYMS].path : NULL,
        .vmlinux = (flags & 4) != 0 ? pieces[IMAGE].path : NULL,
        .release = (flags & 8) != 0 ? release : NULL,
        .build_id = (flags & 16) != 0 ? id : NULL,
        .build_id_size = (flags & 16) != 0 ? sizeof(id) : 0,
        .needed = needed,
        .needed_count = count,
        .ranges = ranges,
        .range_count = (flags & 64) != 0 ? 2 : 0,
    };
    enum symint_boot boot = symint_boot_compare(&capture, &system);
    load(&kernel, &system, boot);
    if (boot != SYMINT_BOOT_SAME && (flags & 128) != 0)
        load(&kernel, &system, SYMINT_BOOT_SAME);
    return 0;
}
