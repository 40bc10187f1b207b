/* SPDX-License-Identifier: MIT */
/*
 * Stands in for DWARF: linked into the tools in place of symbols_resolve (--wrap), so that the whole way from a chain of
 * inlined functions to a document is tested before there is a reader of DWARF, and independently of any compiler. The
 * file that FAKE_LINES names has a line for each address with such a chain:
 *
 *     OFFSET LEVEL[|LEVEL]...       innermost first; OFFSET in hex, in whatever module
 *     LEVEL is NAME@FILE:LINE:START START is the first line of the function
 *
 * The rest is as the real function says.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbols.h"

int __real_symbols_resolve(struct symbols *s, uint32_t frame, const struct source *source,
                           struct resolved *out);
int __wrap_symbols_resolve(struct symbols *s, uint32_t frame, const struct source *source,
                           struct resolved *out);

enum { CHAINS_MAX = 256, LEVELS_MAX = 16 };

struct chain {
    uint64_t offset;
    size_t count;
    struct sym_frame levels[LEVELS_MAX];
};

static struct chain chains[CHAINS_MAX];
static size_t chain_count;
static char *text; /* what the chains point into */

/* A mistake in the file of a test. assert would be away in Release builds. */
static void need(bool good)
{
    if (good)
        return;
    fputs("fake_lines: FAKE_LINES is absent, too long or not of that form\n", stderr);
    abort();
}

/* Ends a text at the next `stop`; what is behind it. */
static char *cut(char *from, char stop)
{
    char *at = strchr(from, stop);

    need(at != NULL);
    *at = '\0';
    return at + 1;
}

static void add_chain(char *line)
{
    struct chain *c = &chains[chain_count++];
    char *rest, *level;

    need(chain_count <= CHAINS_MAX);
    c->offset = strtoull(line, &rest, 16);
    rest++;
    while ((level = strsep(&rest, "|")) != NULL) {
        struct sym_frame *f = &c->levels[c->count++];
        char *file = cut(level, '@'), *number = cut(file, ':'), *start = cut(number, ':');

        need(c->count <= LEVELS_MAX);
        *f = (struct sym_frame){.name = level,
                                .file = file,
                                .line = (uint32_t)strtoul(number, NULL, 10),
                                .start_line = (uint32_t)strtoul(start, NULL, 10),
                                .inlined = rest != NULL,
                                .origin = SYM_ORIGIN_DWARF};
    }
}

static void read_chains(void)
{
    const char *path = getenv("FAKE_LINES");
    FILE *f = path ? fopen(path, "r") : NULL;
    char *rest, *line;
    size_t size;

    need(f != NULL);
    text = calloc(1, 1 << 16);
    need(text != NULL);
    size = fread(text, 1, (1 << 16) - 1, f);
    need(size > 0);
    fclose(f);
    rest = text;
    while ((line = strsep(&rest, "\n")) != NULL)
        if (*line != '\0')
            add_chain(line);
}

int __wrap_symbols_resolve(struct symbols *s, uint32_t frame, const struct source *source,
                           struct resolved *out)
{
    int rc = __real_symbols_resolve(s, frame, source, out);

    if (!text)
        read_chains();
    if (rc < 0 || !out->module || !out->frames)
        return rc;
    for (size_t i = 0; i < chain_count; i++)
        if (chains[i].offset == out->rel) {
            out->frames = chains[i].levels;
            out->frame_count = chains[i].count;
        }
    return rc;
}
