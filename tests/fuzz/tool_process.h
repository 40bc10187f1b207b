/* SPDX-License-Identifier: MIT */
/*
 * Runs a tool inside a fuzzer: main of its main.c, which the build calls main_of_TOOL, ends where it calls exit(), and
 * what it says goes to a buffer. The linker wraps exit, write, close, realloc, free and cli_parse for this (--wrap in
 * tests/CMakeLists.txt). Only one file of a program includes this.
 */
#ifndef TOOL_PROCESS_H
#define TOOL_PROCESS_H

#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "fuzz_check.h"
#include "text.h"

typedef int tool_main(int argc, char **argv);
tool_main main_of_spool2folded, main_of_spool2pprof, main_of_spool2speedscope, main_of_spoolcat,
    main_of_spoolpack, main_of_spoolrecord;

#define TOOL_MESSAGES_MAX ((size_t)1 << 20)

/* What a run came to. */
struct tool_result {
    int status;
    bool parsed;    /* the command line was taken */
    char *messages; /* what was written to standard error, NUL-terminated; until the next run */
    size_t messages_size;
    uint64_t printed; /* bytes written to standard output */
};

/* Called where the command line was taken, for a look at it; NULL: nobody. True: the run ends there. */
typedef bool tool_parsed(const struct tool_options *options);

/* The one run. */
static struct {
    bool on;
    jmp_buf end;
    int status;
    bool parsed;
    tool_parsed *look;
    struct tool_options options;
    char *messages;
    size_t messages_size;
    uint64_t printed;
    /* While it parses: blocks that would leak if it were ended there. */
    bool tracks;
    void **blocks;
    size_t block_count, block_capacity;
} tool;

void __real_exit(int status) __attribute__((noreturn));
ssize_t __real_write(int fd, const void *data, size_t size);
int __real_close(int fd);
void *__real_realloc(void *old, size_t size);
void __real_free(void *block);
int __real_cli_parse(const struct cli_tool *t, int argc, char **argv, struct tool_options *out,
                     void *own);
void __wrap_exit(int status) __attribute__((noreturn));

void __wrap_exit(int status)
{
    if (!tool.on)
        __real_exit(status);
    tool.status = status;
    longjmp(tool.end, 1);
}

ssize_t __wrap_write(int fd, const void *data, size_t size)
{
    size_t kept = TOOL_MESSAGES_MAX - tool.messages_size;

    if (!tool.on || fd > STDERR_FILENO)
        return __real_write(fd, data, size);
    if (fd == STDOUT_FILENO)
        tool.printed += size;
    if (fd == STDERR_FILENO) {
        if (kept > size)
            kept = size;
        memcpy(tool.messages + tool.messages_size, data, kept);
        tool.messages_size += kept;
    }
    return (ssize_t)size;
}

int __wrap_close(int fd)
{
    return tool.on && fd >= 0 && fd <= STDERR_FILENO ? 0 : __real_close(fd);
}

static void tool_forget_block(void *block)
{
    for (size_t i = tool.block_count; block != NULL && i-- > 0;)
        if (tool.blocks[i] == block) {
            tool.blocks[i] = tool.blocks[--tool.block_count];
            return;
        }
}

void *__wrap_realloc(void *old, size_t size)
{
    void *block = __real_realloc(old, size);

    if (!tool.tracks || block == NULL)
        return block;
    tool_forget_block(old);
    if (tool.block_count == tool.block_capacity) {
        tool.block_capacity = tool.block_capacity == 0 ? 64 : 2 * tool.block_capacity;
        tool.blocks = __real_realloc(tool.blocks, tool.block_capacity * sizeof *tool.blocks);
        CHECK(tool.blocks != NULL);
    }
    tool.blocks[tool.block_count++] = block;
    return block;
}

void __wrap_free(void *block)
{
    if (tool.tracks)
        tool_forget_block(block);
    __real_free(block);
}

int __wrap_cli_parse(const struct cli_tool *t, int argc, char **argv, struct tool_options *out,
                     void *own)
{
    int rc;

    tool.tracks = true;
    rc = __real_cli_parse(t, argc, argv, &tool.options, own);
    tool.parsed = true;
    if (tool.look != NULL && tool.look(&tool.options))
        __wrap_exit(rc);
    tool.tracks = false;
    tool.block_count = 0;
    *out = tool.options;
    memset(&tool.options, 0, sizeof tool.options);
    return rc;
}

/* Frees what the command line made of a run that ended within it. */
static void tool_clean_up(void)
{
    static const char *const usage[] = {"", NULL};
    static const struct cli_tool nothing = {
        .name = "nothing", .purpose = "", .usage = usage, .command = true};
    char name[] = "nothing", *argv[] = {name, NULL};
    struct tool_options options;

    cli_free(&tool.options);
    /* cli.c keeps what was given until it parses the next time. */
    CHECK(__real_cli_parse(&nothing, 1, argv, &options, NULL) == 0);
    while (tool.block_count > 0)
        __real_free(tool.blocks[--tool.block_count]);
    tool.tracks = false;
}

/* argv ends with NULL. Runs within runs there are none. */
static struct tool_result tool_run(tool_main *run, tool_parsed *look, int argc, char **argv)
{
    if (tool.messages == NULL)
        tool.messages = malloc(TOOL_MESSAGES_MAX + 1);
    CHECK(tool.messages != NULL);
    tool.messages_size = 0;
    tool.printed = 0;
    tool.parsed = false;
    tool.look = look;
    tool.on = true;
    if (setjmp(tool.end) == 0)
        tool.status = run(argc, argv);
    tool.on = false;
    cli_set_before_message(NULL);
    if (tool.tracks)
        tool_clean_up();
    tool.messages[tool.messages_size] = '\0';
    return (struct tool_result){tool.status, tool.parsed, tool.messages, tool.messages_size,
                                tool.printed};
}

/* Lines that begin and end as they should, of characters that show: nothing may drive a terminal. Returns how many. */
static size_t tool_check_lines(const char *text, size_t size)
{
    size_t lines = 0;

    CHECK(size == 0 || text[size - 1] == '\n');
    for (size_t at = 0; at < size;) {
        uint32_t code;
        size_t length = text_decode(text + at, size - at, &code);

        CHECK(code != TEXT_BAD && code != 0x7f && (code >= 0x20 || code == '\n'));
        CHECK(code < 0x80 || code > 0x9f);
        lines += code == '\n';
        at += length;
    }
    return lines;
}

#endif
