/* SPDX-License-Identifier: MIT */
/*
 * What gives memory to the libraries, failing on demand: the n-th allocation alone, all from the n-th on, or those above a
 * size. For test_alloc*.c, which are linked with --wrap for each function here (ALLOC_FUNCTIONS in CMakeLists.txt); a
 * program includes it once. What the C library and others allocate for themselves in a call is failed with the call:
 * a stream, a folder's, a decoder, a thread. qsort does without, and mapping a file is not memory.
 */
#ifndef TEST_ALLOC_FAULT_H
#define TEST_ALLOC_FAULT_H

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <zlib.h>

static struct {
    long countdown; /* the allocation that fails, 1: the next one; 0: none */
    bool stays;     /* all after it fail, too */
    bool failed;    /* one did */
    size_t largest; /* bytes; larger ones fail, too; 0: no limit */
    /* Asked for so far, freed or not. */
    unsigned long count;
    size_t bytes;
} alloc;

static inline bool alloc_fails(size_t size)
{
    alloc.count++;
    alloc.bytes += size;
    if (alloc.largest != 0 && size > alloc.largest) {
        errno = ENOMEM;
        return true;
    }
    if (alloc.countdown == 0)
        return false;
    if (alloc.countdown > 1) {
        alloc.countdown--;
        return false;
    }
    if (!alloc.stays)
        alloc.countdown = 0;
    alloc.failed = true;
    errno = ENOMEM;
    return true;
}

/* Makes allocation n (1: the next one) of what follows fail, and with `stays` all after it. */
static inline void alloc_fail_at(long n, bool stays)
{
    alloc.failed = false;
    alloc.stays = stays;
    alloc.countdown = n;
}

/* Ends it: whether an allocation failed. */
static inline bool alloc_stop(void)
{
    alloc.countdown = 0;
    alloc.stays = false;
    return alloc.failed;
}

/* Between the two nothing fails: for what a test needs itself on the way. */
static inline long alloc_pause(void)
{
    const long countdown = alloc.countdown;

    alloc.countdown = 0;
    return countdown;
}

static inline void alloc_resume(long countdown)
{
    alloc.countdown = countdown;
}

#define ALLOC_ATTEMPTS_MAX 5000

/* Calls `run` with the first, the second ... allocation failing until none is left to fail, twice: with the others
 * succeeding and with all after it failing. Returns the number of allocations, negative when there was no end of them. */
static inline long alloc_try_each(void (*run)(void *arg), void *arg)
{
    long n = 0;

    for (int stays = 0; stays < 2; stays++) {
        n = 0;
        do {
            if (++n == ALLOC_ATTEMPTS_MAX)
                return -1;
            alloc_fail_at(n, stays);
            run(arg);
        } while (alloc_stop());
    }
    return n - 1;
}

/* ---- the functions ---- */

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
char *__real_strdup(const char *text);
char *__real_strndup(const char *text, size_t size);
FILE *__real_fopen(const char *path, const char *mode);
DIR *__real_opendir(const char *path);
DIR *__real_fdopendir(int fd);
void *__real_mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*start)(void *), void *arg);
int __real_inflateInit_(z_streamp z, const char *version, int size);
int __real_inflateInit2_(z_streamp z, int bits, const char *version, int size);
/* Not every program has these. */
void *__real_ZSTD_createDCtx(void) __attribute__((weak));
void *__real_libdeflate_alloc_decompressor(void) __attribute__((weak));

void *__wrap_malloc(size_t size)
{
    return alloc_fails(size) ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return alloc_fails(count * size) ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *old, size_t size)
{
    return alloc_fails(size) ? NULL : __real_realloc(old, size);
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
    return alloc_fails(size) ? NULL : __real_aligned_alloc(alignment, size);
}

char *__wrap_strdup(const char *text)
{
    return alloc_fails(strlen(text) + 1) ? NULL : __real_strdup(text);
}

char *__wrap_strndup(const char *text, size_t size)
{
    return alloc_fails(size + 1) ? NULL : __real_strndup(text, size);
}

FILE *__wrap_fopen(const char *path, const char *mode)
{
    return alloc_fails(sizeof(FILE)) ? NULL : __real_fopen(path, mode);
}

DIR *__wrap_opendir(const char *path)
{
    return alloc_fails(1) ? NULL : __real_opendir(path);
}

DIR *__wrap_fdopendir(int fd)
{
    return alloc_fails(1) ? NULL : __real_fdopendir(fd);
}

void *__wrap_mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
    /* Room that is reserved is not asked for yet. */
    if ((flags & MAP_ANONYMOUS) != 0 && alloc_fails(0))
        return MAP_FAILED;
    return __real_mmap(at, size, protection, flags, fd, offset);
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*start)(void *), void *arg)
{
    return alloc_fails(1) ? EAGAIN : __real_pthread_create(thread, attributes, start, arg);
}

int __wrap_inflateInit_(z_streamp z, const char *version, int size)
{
    return alloc_fails(1) ? Z_MEM_ERROR : __real_inflateInit_(z, version, size);
}

int __wrap_inflateInit2_(z_streamp z, int bits, const char *version, int size)
{
    return alloc_fails(1) ? Z_MEM_ERROR : __real_inflateInit2_(z, bits, version, size);
}

void *__wrap_ZSTD_createDCtx(void)
{
    return alloc_fails(1) ? NULL : __real_ZSTD_createDCtx();
}

void *__wrap_libdeflate_alloc_decompressor(void)
{
    return alloc_fails(1) ? NULL : __real_libdeflate_alloc_decompressor();
}

#endif
