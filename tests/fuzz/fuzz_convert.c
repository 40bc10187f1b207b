/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as a spool for the tools, with options that the first bytes pick: main of the tool as it is, from the file to
 * the document. It ends with a status, says what it says in lines that show, and a document is one that its reader takes.
 * Symbols come from no file.
 */
#include <stdint.h>
#include <sys/mman.h>

#include "json_read.h"
#include "tool_process.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What an option may go with: a tool, or a view of spoolcat that selects samples, shapes stacks, names frames. */
enum {
    FOLDED = 1,
    PPROF = 2,
    SPEEDSCOPE = 4,
    CAT = 8,
    SELECTING = 16,
    SHAPING = 32,
    NAMING = 64,
    CONVERTING = SELECTING | SHAPING | NAMING
};

/* What an input may pick among: a byte for each. The first choice is to have none of it. */
static const struct {
    unsigned goes_with;
    const char *options[5];
} choices[] = {
    {SHAPING, {"--kernel=drop", "--kernel=only"}},
    {SHAPING, {"--frame-filter=main", "--frame-filter=^[a-m]", "--frame-filter=0x|\\+"}},
    {SHAPING, {"--root-at=main", "--root-at=[aeiou]$", "--root-at=^.*$"}},
    {SHAPING, {"--skip-below=main", "--skip-below=[0-9]", "--skip-below="}},
    {SHAPING, {"--max-depth=1", "--max-depth=2", "--max-depth=100"}},
    {SHAPING, {"--fold-recursion"}},
    {SHAPING, {"--unresolved=module"}},
    {SHAPING, {"--trim-path=/=", "--trim-path=/usr=/opt/a"}},
    {FOLDED | PPROF | SPEEDSCOPE | CAT, {"--strict", "--salvage"}},
    {SELECTING, {"--pid=7", "--pid=-1,0,1,7,8,40", "--tid=0,1,2,7,41"}},
    {SELECTING, {"--comm=a*", "--comm=[!x]*", "--thread=*", "--thread=?"}},
    {SELECTING, {"--from=1ns", "--from=10ms", "--to=10ms", "--to=1ns"}},
    {FOLDED | PPROF | SPEEDSCOPE | CAT, {"--verbose", "--progress=always", "--quiet"}},
    {FOLDED, {"--root=none", "--root=pid", "--root=thread"}},
    {FOLDED, {"--weight=time"}},
    {FOLDED, {"--annotate", "--with-modules", "--with-addresses", "--reverse"}},
    {FOLDED, {"--timeline"}},
    {PPROF, {"--labels=", "--labels=pid,thread", "--labels=process"}},
    {PPROF, {"--timestamps"}},
    {PPROF, {"--gzip-level=1", "--comment=a"}},
    {SPEEDSCOPE, {"--weight=samples", "--weight=time"}},
    {SPEEDSCOPE, {"--no-overview", "--merge-threads", "--max-profiles=1"}},
    {SPEEDSCOPE, {"--no-merge-runs"}},
    {SPEEDSCOPE, {"--name=a\"b"}},
    {CAT, {"--color=always", "--json"}},
};

#define CHOICES (sizeof choices / sizeof choices[0])

/* What is run, by the first byte. */
static const struct {
    const char *name;
    tool_main *run;
    unsigned kind;
    const char *options[3];
} runs[] = {
    {"spool2folded", main_of_spool2folded, FOLDED | CONVERTING, {NULL}},
    {"spool2pprof", main_of_spool2pprof, PPROF | CONVERTING, {"--gzip-level=0"}},
    {"spool2speedscope", main_of_spool2speedscope, SPEEDSCOPE | CONVERTING, {NULL}},
    {"spoolcat", main_of_spoolcat, CAT, {"--records"}},
    {"spoolcat", main_of_spoolcat, CAT | SELECTING | NAMING, {"--samples"}},
    {"spoolcat", main_of_spoolcat, CAT | SELECTING, {"--summary"}},
    {"spoolcat", main_of_spoolcat, CAT | SELECTING, {"--modules"}},
    {"spoolcat", main_of_spoolcat, CAT | SELECTING, {"--threads"}},
    {"spoolcat", main_of_spoolcat, CAT | SELECTING | NAMING, {"--stacks"}},
    {"spoolcat", main_of_spoolcat, CAT | CONVERTING, {"--stacks", "--unresolved=address"}},
    {"spoolcat", main_of_spoolcat, CAT | CONVERTING, {"--samples", "--runtime=hide"}},
    {"spoolcat", main_of_spoolcat, CAT | CONVERTING, {"--summary", "--kernel=keep"}},
};

#define RUNS (sizeof runs / sizeof runs[0])

struct arguments {
    const char *at[64];
    size_t count;
};

static void add(struct arguments *a, const char *argument)
{
    CHECK(a->count + 1 < sizeof a->at / sizeof a->at[0]);
    a->at[a->count++] = argument;
}

static bool has(const struct arguments *a, const char *argument)
{
    for (size_t i = 0; i < a->count; i++)
        if (strcmp(a->at[i], argument) == 0)
            return true;
    return false;
}

/* ---- documents ---- */

static void check_json(const char *text, size_t size)
{
    struct json_reader r;

    json_read_start(&r, text, size);
    while (json_read_next(&r) > 0)
        ;
    if (r.fault != NULL)
        fprintf(stderr, "%s at byte %zu of %.*s\n", r.fault, r.at, (int)size, text);
    CHECK(r.fault == NULL);
    json_read_free(&r);
}

static void check_json_lines(const char *text, size_t size)
{
    while (size > 0) {
        const char *end = memchr(text, '\n', size);

        CHECK(end != NULL);
        check_json(text, (size_t)(end - text));
        size -= (size_t)(end + 1 - text);
        text = end + 1;
    }
}

/* FRAME;FRAME... NUMBER */
static void check_folded(const char *text, size_t size)
{
    while (size > 0) {
        const char *end = memchr(text, '\n', size), *digit;

        CHECK(end != NULL && end > text && text[0] != ';');
        for (digit = end; digit > text && digit[-1] >= '0' && digit[-1] <= '9';)
            digit--;
        CHECK(digit < end && digit > text + 1 && digit[-1] == ' ');
        CHECK(memchr(text, '\0', (size_t)(end - text)) == NULL);
        size -= (size_t)(end + 1 - text);
        text = end + 1;
    }
}

static bool take_varint(const uint8_t **at, const uint8_t *end, uint64_t *value)
{
    *value = 0;
    for (unsigned shift = 0; shift < 70 && *at < end; shift += 7) {
        uint8_t byte = *(*at)++;

        *value |= (uint64_t)(byte & 0x7f) << shift;
        if ((byte & 0x80) == 0)
            return true;
    }
    return false;
}

/* The fields of a Profile one after the other up to the end of the message; its first text is empty. */
static void check_profile(const uint8_t *at, size_t size)
{
    const uint8_t *end = at + size;
    uint64_t tag, value, texts = 0;

    while (at < end) {
        CHECK(take_varint(&at, end, &tag) && take_varint(&at, end, &value));
        CHECK(tag >> 3 >= 1 && tag >> 3 <= 15 && ((tag & 7) == 0 || (tag & 7) == 2));
        if ((tag & 7) == 0)
            continue;
        CHECK(value <= (uint64_t)(end - at));
        CHECK(tag >> 3 != 6 || texts++ > 0 || value == 0);
        at += value;
    }
    CHECK(texts > 0);
}

static void check_document(unsigned kind, const struct arguments *a, const uint8_t *data,
                           size_t size)
{
    const char *text = (const char *)data;

    if ((kind & FOLDED) != 0)
        check_folded(text, size);
    else if ((kind & SPEEDSCOPE) != 0)
        check_json(text, size);
    else if ((kind & CAT) != 0 && has(a, "--json"))
        check_json_lines(text, size);
    else if ((kind & CAT) != 0 && !has(a, "--color=always"))
        tool_check_lines(text, size);
    else if ((kind & PPROF) != 0 && has(a, "--gzip-level=1"))
        CHECK(size > 18 && data[0] == 0x1f && data[1] == 0x8b);
    else if ((kind & PPROF) != 0)
        check_profile(data, size);
}

/* ---- the run ---- */

static void put_file(int *fd, char path[40], const uint8_t *data, size_t size)
{
    if (*fd < 0)
        *fd = memfd_create("spool", MFD_CLOEXEC);
    CHECK(*fd >= 0 && ftruncate(*fd, 0) == 0);
    CHECK(pwrite(*fd, data, size, 0) == (ssize_t)size);
    snprintf(path, 40, "/proc/self/fd/%d", *fd);
}

static void read_document(int fd, unsigned kind, const struct arguments *a)
{
    size_t size = (size_t)lseek(fd, 0, SEEK_END);
    uint8_t *data = malloc(size + 1);

    CHECK(data != NULL && pread(fd, data, size, 0) == (ssize_t)size);
    check_document(kind, a, data, size);
    free(data);
}

/* Without files there are still names: of generated code, which the spool has, and of modules. */
static void add_symbol_options(struct arguments *a, uint8_t pick)
{
    if (pick % 3 == 0) {
        add(a, "--no-symbols");
        return;
    }
    add(a, "--sysroot=/proc/self/fdinfo");
    add(a, "--debug-dir=/proc/self/fdinfo");
    add(a, "--perf-maps=none");
    add(a, "--no-kernel-symbols");
    add(a, pick % 3 == 1 ? "--demangle=short" : "--runtime=show");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int in = -1, out = -1;
    char in_path[40], out_path[40];
    struct arguments a = {0};
    struct tool_result result;
    size_t which;

    if (size < 3 + CHOICES)
        return 0;
    which = data[0] % RUNS;
    put_file(&in, in_path, data + 3 + CHOICES, size - 3 - CHOICES);
    put_file(&out, out_path, NULL, 0);
    add(&a, runs[which].name);
    for (size_t i = 0; i < 3 && runs[which].options[i] != NULL; i++)
        add(&a, runs[which].options[i]);
    for (size_t i = 0; i < CHOICES; i++) {
        size_t pick = data[3 + i] % 6;

        if ((choices[i].goes_with & runs[which].kind) != 0 && pick > 0 &&
            choices[i].options[pick - 1] != NULL)
            add(&a, choices[i].options[pick - 1]);
    }
    if ((runs[which].kind & NAMING) != 0)
        add_symbol_options(&a, data[1]);
    add(&a, "-o");
    add(&a, out_path);
    add(&a, in_path);
    if (data[2] % 4 == 3) /* twice the same: everything in it meets itself */
        add(&a, in_path);
    result = tool_run(runs[which].run, NULL, (int)a.count, (char **)(uintptr_t)a.at);
    if (!result.parsed) { /* options that contradict each other */
        CHECK(result.status == EXIT_USAGE);
        return 0;
    }
    CHECK(result.status == EXIT_OK || result.status == EXIT_FAILED);
    CHECK(result.printed == 0);
    if (!has(&a, "--progress=always"))
        tool_check_lines(result.messages, result.messages_size);
    CHECK(result.status == EXIT_OK || result.messages_size > 0);
    if (result.status == EXIT_OK)
        read_document(out, runs[which].kind, &a);
    return 0;
}
