/* SPDX-License-Identifier: MIT */
/*
 * PROGRAM READY SECONDS: what record_archive.sh records, in several builds that differ in NAME. It runs, by turns,
 * inlined functions, a second mapping of itself, generated code that its perf map names, the vdso and the kernel.
 * Its id is in the file READY then. With DELETED its own file is gone at once.
 */
#include <fcntl.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#ifdef __clang__
#define NOINLINE __attribute__((noinline))
#else
#define NOINLINE __attribute__((noinline, noclone))
#endif
#define QUOTED_(x) #x
#define QUOTED(x) QUOTED_(x)

typedef void copied_fn(uint64_t *state, uint64_t rounds);
enum { COPY_BYTES = 256, ROUNDS = 100000 };

namespace work
{
struct mixer {
    uint64_t state;
    void mix(uint64_t i)
    {
        state = (state ^ i) * UINT64_C(0x9e3779b97f4a7c15);
        state ^= state >> 29;
    }
};

template <int Rounds> static inline __attribute__((always_inline)) void expanded(mixer &m)
{
    for (int i = 0; i < Rounds; i++)
        m.mix((uint64_t)i);
}

NOINLINE static void NAME(mixer &m)
{
    expanded<ROUNDS>(m);
    __asm__ volatile("" ::: "memory");
}
} // namespace work

/* Without calls and data, so that it runs wherever its bytes are. */
NOINLINE static void copied(uint64_t *state, uint64_t rounds)
{
    uint64_t s = *state;

    for (; rounds > 0; rounds--) {
        s = s * 6364136223846793005u + rounds;
        s ^= s >> 31;
        __asm__ volatile("" : "+r"(s));
    }
    *state = s;
}

struct text {
    uintptr_t at;
    uint64_t address, offset, size;
};

static int find_text(struct dl_phdr_info *info, size_t, void *user)
{
    struct text *t = (struct text *)user;

    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];

        if (p->p_type != PT_LOAD || t->at - info->dlpi_addr - p->p_vaddr >= p->p_memsz)
            continue;
        t->address = info->dlpi_addr + p->p_vaddr;
        t->offset = p->p_offset;
        t->size = p->p_filesz;
        return 1;
    }
    return 0;
}

/* The same function in another mapping of the same file. */
static copied_fn *map_twice(const char *path)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    struct text t = {(uintptr_t)copied, 0, 0, 0};
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0 || dl_iterate_phdr(find_text, &t) == 0)
        exit(3);
    uint64_t before = t.offset % page;
    void *again = mmap(NULL, t.size + before, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd,
                       (off_t)(t.offset - before));
    if (again == MAP_FAILED)
        exit(4);
    close(fd);
    return (copied_fn *)((uintptr_t)again + before + (t.at - t.address));
}

/* Two pages of generated code: one that a runtime named, one of a Python function. */
static copied_fn *generate(uint64_t page)
{
    void *code = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE | PROT_EXEC,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char path[64];

    if (code == MAP_FAILED)
        exit(5);
    uint64_t first = (uint64_t)(uintptr_t)code;
    for (int i = 0; i < 2; i++)
        memcpy((char *)code + (uint64_t)i * page, (const void *)(uintptr_t)copied, COPY_BYTES);
    __builtin___clear_cache((char *)code, (char *)code + 2 * page);
    snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)getpid());
    FILE *f = fopen(path, "w");
    if (f == NULL)
        exit(6);
    fprintf(f, "%llx %x generated_" QUOTED(NAME) "\n", (unsigned long long)first, COPY_BYTES);
    fprintf(f, "%llx %x py::scripted_" QUOTED(NAME) ":/srv/script.py\n",
            (unsigned long long)(first + page), COPY_BYTES);
    if (fclose(f) != 0)
        exit(6);
    return (copied_fn *)code;
}

static double now(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    work::mixer m = {1};
    FILE *ready;

    if (argc != 3)
        return 2;
    copied_fn *again = map_twice(argv[0]), *generated = generate(page);
    copied_fn *scripted = (copied_fn *)((uintptr_t)generated + page);
#ifdef DELETED
    if (unlink(argv[0]) != 0)
        return 7;
#endif
    if ((ready = fopen(argv[1], "w")) == NULL || fprintf(ready, "%d\n", (int)getpid()) < 0 ||
        fclose(ready) != 0)
        return 8;
    double end = atof(argv[2]);
    while (now(CLOCK_PROCESS_CPUTIME_ID) < end) {
        work::NAME(m);
        copied(&m.state, ROUNDS);
        again(&m.state, ROUNDS);
        generated(&m.state, ROUNDS);
        scripted(&m.state, ROUNDS);
        for (int i = 0; i < 2000; i++)
            m.state += (uint64_t)(now(CLOCK_MONOTONIC) * 1e9);
        for (int i = 0; i < 4; i++) {
            void *memory = mmap(NULL, 64 * page, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
            if (memory != MAP_FAILED)
                munmap(memory, 64 * page);
        }
    }
    return m.state == 0;
}
