/* SPDX-License-Identifier: MIT */
/*
 * Spools for the tests of the pipeline and of spool2folded, made by libspool's writer in memory
 * files: version 4 with one JIT module that holds all names of a test, so that any text can be the
 * name of a frame.
 */
#ifndef TESTS_MAKE_SPOOL_H
#define TESTS_MAKE_SPOOL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "spool/spool.h"

#define MAKER_JIT_BASE UINT64_C(0x10000000)
#define MAKER_JIT_STEP 16u
#define MAKER_INTERVAL_NS 1000000u

struct maker {
    struct spool_writer *writer;
    int fd;
    char path[32];
    uint32_t jit; /* the module of the names */
    const char *const *names;
    size_t name_count;
};

static inline void maker_open(struct maker *m, uint64_t interval_ns)
{
    struct spool_header header = {.version = 4, .interval_ns = interval_ns};

    memset(m, 0, sizeof *m);
    m->fd = memfd_create("spool", MFD_CLOEXEC);
    assert_true(m->fd >= 0);
    snprintf(m->path, sizeof m->path, "/proc/self/fd/%d", m->fd);
    m->writer = spool_writer_new();
    assert_non_null(m->writer);
    assert_int_equal(spool_writer_open_fd(m->writer, m->fd, &header), 0);
}

static inline uint32_t maker_module(struct maker *m, int32_t pid, uint64_t start, uint64_t size,
                                    const char *path)
{
    struct spool_module module = {.pid = pid,
                                  .start = start,
                                  .end = start + size,
                                  .inode = 1,
                                  .path = path,
                                  .path_size = strlen(path)};
    uint32_t id;

    assert_int_equal(spool_writer_module(m->writer, &module, &id), 0);
    return id;
}

static inline uint32_t maker_kernel_module(struct maker *m, uint64_t start, uint64_t size,
                                           const char *path)
{
    struct spool_module module = {.kernel = true,
                                  .pid = -1,
                                  .start = start,
                                  .end = start + size,
                                  .path = path,
                                  .path_size = strlen(path)};
    uint32_t id;

    assert_int_equal(spool_writer_module(m->writer, &module, &id), 0);
    return id;
}

/* The names that frames of maker_put can have. */
static inline void maker_names(struct maker *m, const char *const *names, size_t count)
{
    struct spool_jit_symbol *symbols = calloc(count, sizeof *symbols);
    struct spool_module module = {.pid = 1,
                                  .jit = true,
                                  .start = MAKER_JIT_BASE,
                                  .end = MAKER_JIT_BASE + MAKER_JIT_STEP * (count + 1),
                                  .path = "[jit-0-10000000-1000]",
                                  .path_size = strlen("[jit-0-10000000-1000]"),
                                  .jit_symbols = symbols,
                                  .jit_symbol_count = count};

    assert_non_null(symbols);
    for (size_t i = 0; i < count; i++) {
        symbols[i].start = MAKER_JIT_BASE + MAKER_JIT_STEP * i;
        symbols[i].end = symbols[i].start + MAKER_JIT_STEP;
        symbols[i].name = names[i];
        symbols[i].name_size = strlen(names[i]);
    }
    assert_int_equal(spool_writer_module(m->writer, &module, &m->jit), 0);
    free(symbols);
    m->names = names;
    m->name_count = count;
}

static inline struct spool_writer_frame maker_name_frame(const struct maker *m, size_t index)
{
    assert_true(index <= m->name_count);
    return (struct spool_writer_frame){
        .kind = SPOOL_FRAME_PINNED, .module_id = m->jit, .address = MAKER_JIT_STEP * index + 1};
}

/* One frame from its text: a name of maker_names, %N (number N of them), [truncated], @HEX
 * (kernel address), $HEX (user address), ID+HEX (pinned to a module). */
static inline struct spool_writer_frame maker_frame(const struct maker *m, const char *text)
{
    char *end;

    for (size_t i = 0; i < m->name_count; i++)
        if (strcmp(m->names[i], text) == 0)
            return maker_name_frame(m, i);
    if (text[0] == '%')
        return maker_name_frame(m, strtoul(text + 1, NULL, 10));
    if (strcmp(text, "[truncated]") == 0)
        return (struct spool_writer_frame){.kind = SPOOL_FRAME_TRUNCATED};
    if (text[0] == '@' || text[0] == '$')
        return (struct spool_writer_frame){.kind = SPOOL_FRAME_UNPINNED,
                                           .kernel = text[0] == '@',
                                           .address = strtoull(text + 1, NULL, 16)};
    {
        struct spool_writer_frame f = {.kind = SPOOL_FRAME_PINNED};

        f.module_id = (uint32_t)strtoul(text, &end, 10);
        assert_true(end > text && *end == '+');
        f.address = strtoull(end + 1, NULL, 16);
        return f;
    }
}

/* Writes a sample; the stack is root first, frames with ';' between. */
static inline void maker_put(struct maker *m, uint64_t time_ns, int32_t pid, uint64_t tid,
                             const char *stack)
{
    struct spool_writer_frame frames[256];
    char *copy = strdup(stack), *rest = copy, *token;
    size_t n = 256;

    assert_non_null(copy);
    while ((token = strsep(&rest, ";")) != NULL) {
        assert_true(n > 0);
        frames[--n] = maker_frame(m, token);
    }
    free(copy);
    assert_int_equal(spool_writer_sample(m->writer, time_ns, pid, tid, frames + n, 256 - n), 0);
}

static inline void maker_note(struct maker *m, int32_t pid, const char *key, const char *value)
{
    assert_int_equal(spool_writer_annotate(m->writer, pid, key, value), 0);
}

/* Ends writing; m->path can be opened then, any number of times. */
static inline void maker_finish(struct maker *m)
{
    assert_int_equal(spool_writer_finish(m->writer), 0);
    spool_writer_free(m->writer);
    m->writer = NULL;
}

static inline void maker_close(struct maker *m)
{
    spool_writer_free(m->writer);
    close(m->fd);
}

/* ---- standard error of what is tested ---- */

struct capture {
    FILE *file;
    int saved;
};

static inline void capture_begin(struct capture *c)
{
    fflush(stderr);
    c->file = tmpfile();
    assert_non_null(c->file);
    c->saved = dup(STDERR_FILENO);
    dup2(fileno(c->file), STDERR_FILENO);
}

/* What was written; malloc'ed. */
static inline char *capture_end(struct capture *c)
{
    char *text;
    long size;

    dup2(c->saved, STDERR_FILENO);
    close(c->saved);
    fseek(c->file, 0, SEEK_END);
    size = ftell(c->file);
    rewind(c->file);
    text = calloc(1, (size_t)size + 1);
    assert_non_null(text);
    assert_int_equal(fread(text, 1, (size_t)size, c->file), size);
    fclose(c->file);
    return text;
}

/* ---- random numbers that are the same everywhere ---- */

static inline uint32_t random_below(uint64_t *seed, uint32_t limit)
{
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)((*seed >> 33) % limit);
}

#endif
