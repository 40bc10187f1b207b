/* SPDX-License-Identifier: MIT */
/* Describing the kernel of a spool to libsym: once for an input that was read, again and again for one that grows. */
#include "symbols_private.h"

#include <stdlib.h>
#include <string.h>

#include "cli.h"

bool symbols_note_word(const char *note, unsigned index, char *word, size_t size)
{
    return note && notes_word(note, index, word, size) && strcmp(word, "-") != 0;
}

bool symbols_find_release(const struct notes *notes, char *release, size_t size)
{
    return symbols_note_word(notes_value(notes, "kernel"), 0, release, size) ||
           symbols_note_word(notes_value(notes, "host"), 1, release, size);
}

/* What the notes know of the kernel that was sampled: its release and build id. */
struct kernel_identity {
    char release[256];
    uint8_t build_id[NOTES_BUILD_ID_MAX];
};

static void identify_kernel(const struct notes *notes, struct kernel_identity *identity,
                            struct sym_kernel *kernel)
{
    char hex[2 * NOTES_BUILD_ID_MAX + 1];

    if (symbols_find_release(notes, identity->release, sizeof identity->release))
        kernel->release = identity->release;
    if (symbols_note_word(notes_value(notes, "kernel"), 1, hex, sizeof hex))
        kernel->build_id_size = notes_hex(hex, strlen(hex), identity->build_id);
    if (kernel->build_id_size > 0)
        kernel->build_id = identity->build_id;
}

/* The kernel's modules as ranges, malloc'ed. */
static struct sym_kernel_range *list_ranges(struct spool_reader *reader, size_t *count)
{
    struct sym_kernel_range *ranges = NULL;
    size_t capacity = 0;
    struct spool_counts counts;

    *count = 0;
    spool_reader_counts(reader, &counts);
    for (uint32_t id = 0; id < counts.modules; id++) {
        const struct spool_module *m = spool_reader_module(reader, id);

        if (!m || !m->kernel || m->start >= m->end)
            continue;
        ranges = cli_grow(ranges, &capacity, *count, sizeof *ranges);
        ranges[(*count)++] = (struct sym_kernel_range){
            .start = m->start,
            .end = m->end,
            .file_offset = m->file_offset,
            .name = m->path_size > 0 ? m->path : NULL,
            .name_size = m->path_size,
        };
    }
    return ranges;
}

/* A file of names that cannot be used never fails a conversion. */
static bool is_file_error(int rc)
{
    return rc == SYM_ERR_NOT_FOUND || rc == SYM_ERR_IO || rc == SYM_ERR_FORMAT;
}

/* Whether it is this file that failed. NULL: no. */
static bool error_names(const struct symbols *s, const char *path)
{
    return path && strncmp(sym_context_error(s->context), path, strlen(path)) == 0;
}

/* Kallsyms of an archive are as good as named: what is wrong with them is said, too. */
static void warn_kallsyms(struct symbols *s)
{
    const char *detail = sym_kernel_detail(s->context);

    if (!s->kallsyms || s->kallsyms_warned || !strstr(detail, "kallsyms: "))
        return;
    s->kallsyms_warned = true;
    cli_warn("%s; %s", detail,
             sym_kernel_state(s->context) == SYM_KERNEL_OK ? "not used"
                                                           : "kernel frames stay addresses");
}

/* needed: NULL for everything. */
static int load_kernel(struct symbols *s, const uint64_t *needed, size_t needed_count)
{
    struct sym_kernel kernel = {
        .size = sizeof kernel, .needed = needed, .needed_count = needed_count};
    struct kernel_identity identity;
    struct sym_kernel_range *ranges;
    int rc;

    kernel.kallsyms = s->options->kallsyms;
    identify_kernel(&s->aggregate->notes, &identity, &kernel);
    kernel.ranges = ranges = list_ranges(s->reader, &kernel.range_count);
    kernel.ksymbols = s->aggregate->epochs.events;
    kernel.ksymbol_count = s->aggregate->epochs.event_count;
    kernel.vmlinux = s->vmlinux;
    rc = sym_kernel_load(s->context, &kernel);
    if (is_file_error(rc) && error_names(s, s->vmlinux)) {
        cli_warn("--vmlinux %s; it is not used", sym_context_error(s->context));
        kernel.vmlinux = s->vmlinux = NULL;
        rc = sym_kernel_load(s->context, &kernel);
    }
    free(ranges);
    s->kernel_loaded = true;
    if (is_file_error(rc)) {
        if (!s->kallsyms_warned)
            cli_warn("%s; kernel frames stay addresses", sym_context_error(s->context));
        s->kallsyms_warned = true;
        return 0;
    }
    if (rc < 0)
        cli_error("%s", sym_context_error(s->context));
    else
        warn_kallsyms(s);
    return rc < 0 ? -1 : 0;
}

static int list_needed(struct symbols *s, const uint64_t **needed, size_t *count)
{
    if (spool_reader_kernel_addresses(s->reader, needed, count) >= 0)
        return 0;
    cli_error("out of memory");
    return -1;
}

int symbols_load_kernel(struct symbols *s)
{
    const uint64_t *needed;
    size_t count;

    if (s->options->no_kernel_symbols)
        return 0;
    if (list_needed(s, &needed, &count) < 0)
        return -1;
    if (count == 0 && !s->options->kallsyms && !s->kernel_packed)
        return 0;
    return load_kernel(s, needed, count);
}

/* ---- the kernel of an input that is still being read ---- */

/* Every change of BPF programs is worth a load of the kernel, until there are so many that they may be meant to take
 * time; then every sixteenth part of them. */
#define KSYMBOL_LOADS_MAX 256
/* The same for addresses that the last load was not asked for. */
#define NEEDED_LOADS_MAX 64

static int compare_addresses(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

static bool ksymbols_grew(const struct symbols *s)
{
    size_t more = s->aggregate->epochs.event_count - s->loaded_ksymbols;

    if (s->ksymbol_loads < KSYMBOL_LOADS_MAX)
        return more > 0;
    return more > s->loaded_ksymbols / 16;
}

static bool needed_grew(struct symbols *s, uint64_t address)
{
    if (s->kernel_whole || (s->needed_count > 0 && bsearch(&address, s->needed, s->needed_count,
                                                           sizeof address, compare_addresses)))
        return false;
    s->not_needed++;
    return s->needed_loads < NEEDED_LOADS_MAX || s->not_needed > s->needed_count / 16;
}

static int load_needed(struct symbols *s)
{
    const uint64_t *needed;
    size_t count;

    if (list_needed(s, &needed, &count) < 0)
        return -1;
    s->needed = cli_realloc(s->needed, count, sizeof *needed);
    if (count > 0)
        memcpy(s->needed, needed, count * sizeof *needed);
    s->needed_count = count;
    s->not_needed = 0;
    s->needed_loads++;
    return load_kernel(s, s->needed, count);
}

/* A kallsyms is taken whole; a System.map can be moved only with addresses to compare. */
int symbols_update_kernel(struct symbols *s, uint64_t address)
{
    bool first = !s->kernel_loaded;

    if (s->options->no_kernel_symbols || (!first && !ksymbols_grew(s) && !needed_grew(s, address)))
        return 0;
    s->ksymbol_loads += s->aggregate->epochs.event_count > s->loaded_ksymbols;
    s->loaded_ksymbols = s->aggregate->epochs.event_count;
    s->generation += !first;
    if (first || s->kernel_whole) {
        if (load_kernel(s, NULL, 0) < 0)
            return -1;
        s->kernel_whole =
            sym_kernel_state(s->context) == SYM_KERNEL_OK || s->options->kallsyms || s->kallsyms;
        if (s->kernel_whole)
            return 0;
    }
    return load_needed(s);
}

/* ---- for the report ---- */

const char *symbols_kernel_text(const struct symbols *s, const char **detail)
{
    enum sym_kernel_state state;

    *detail = "";
    if (s->options->no_kernel_symbols)
        return sym_miss_text(SYM_MISS_DISABLED);
    if (!s->context || !s->kernel_loaded)
        return NULL;
    *detail = sym_kernel_detail(s->context);
    state = sym_kernel_state(s->context);
    return state == SYM_KERNEL_OK ? NULL : sym_kernel_state_text(state);
}

bool symbols_kernel_restricted(const struct symbols *s)
{
    return s->context && s->kernel_loaded && sym_kernel_state(s->context) == SYM_KERNEL_RESTRICTED;
}

const char *symbols_vmlinux_text(const struct symbols *s)
{
    const char *detail;

    if (!s->context || !s->kernel_loaded || !s->options->vmlinux)
        return NULL;
    detail = sym_kernel_detail(s->context);
    return *detail ? detail : NULL;
}
