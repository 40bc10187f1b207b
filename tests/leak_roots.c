// SPDX-License-Identifier: MIT
// Part of every sanitized program, first of its objects: says where LeakSanitizer is to look for pointers. By itself it reads
// all writable bytes of the program, 9 MB of which are tables of the sanitizer: this took longer than most tests do.
// What it says here leaves out these alone. Were anything else left out, leaks would be reported that are none.
#include <elf.h>
#include <link.h>
#include <stddef.h>

const char *__lsan_default_options(void);
void __lsan_register_root_region(const void *begin, size_t size);

const char *__lsan_default_options(void)
{
    return "use_globals=0"; // but those registered below
}

// The sanitizer's objects precede this one in each section, and those of the program follow it.
static char first_zero[1];
extern char __bss_start[], _end[];

static void add(const char *begin, const char *end)
{
    if (begin < end)
        __lsan_register_root_region(begin, (size_t)(end - begin));
}

static int add_module(struct dl_phdr_info *module, size_t size, void *data)
{
    (void)size;
    (void)data;
    for (int i = 0; i < module->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &module->dlpi_phdr[i];
        if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_W))
            continue;
        const char *begin = (const char *)(module->dlpi_addr + segment->p_vaddr);
        const char *end = begin + segment->p_memsz;
        if (begin <= first_zero && first_zero < end) {
            add(begin, __bss_start);
            add(first_zero, _end);
        } else {
            add(begin, end);
        }
    }
    return 0;
}

// At the end, before the sanitizer looks, so that it knows of libraries that were loaded late.
__attribute__((destructor)) static void add_roots(void)
{
    dl_iterate_phdr(add_module, NULL);
}
