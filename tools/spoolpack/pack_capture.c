/* SPDX-License-Identifier: MIT */
/*
 * Packing what belongs to one capture: kernel symbols and perf maps. A capture may be packed again when it has grown,
 * or where its kernel and processes are not: spools of one capture are beginnings of one another, so of two such files
 * the larger one has more, and stays.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "pack_private.h"
#include "report.h"

static void append_name(const struct packing *p, const char *file, struct text_buffer *out)
{
    text_printf(out, "captures/%s/%s", p->manifest.capture, file);
}

/* Stores what was packed, unless there is more already, and lists what is there then. Frees the bytes. */
static int put(struct packing *p, const char *file, struct sym_packed *packed,
               struct manifest_files *files)
{
    struct text_buffer name = {0};
    struct stored stored;
    int rc = 0;

    append_name(p, file, &name);
    if (packed->data && packed->size_bytes > 0)
        rc = store_replace(p->store, name.data, packed->data, packed->size_bytes, true, &stored);
    if (rc == 0)
        rc = pack_add_existing(p, files, name.data);
    free(packed->data);
    text_free(&name);
    return rc;
}

/* ---- the kernel ---- */

static void find_kernel_missing(struct packing *p)
{
    struct manifest *m = &p->manifest;
    const char *detail, *why = symbols_kernel_text(p->symbols, &detail);
    struct text_buffer text = {0};

    if (m->kernel_named_count > 0)
        return;
    text_printf(&text, "%s%s%s", why ? why : sym_miss_text(SYM_MISS_NO_SYMBOL), *detail ? "; " : "",
                detail);
    m->kernel_missing = text.data;
    text_printf(&p->report, "no symbols: [kernel.kallsyms] (");
    text_append(&p->report, text.data, text.size);
    text_printf(&p->report, "): ");
    text_counted(&p->report, p->collected.kernel_samples, "sample", "samples");
    text_append_byte(&p->report, '\n');
}

int pack_kernel(struct packing *p)
{
    const struct collected *c = &p->collected;
    struct manifest *m = &p->manifest;
    enum manifest_level level = earlier_level(&p->earlier);
    struct sym_pack_options options = {.size = sizeof options, .level = SYM_LEVEL_LINES};
    struct sym_packed packed = {0};
    uint64_t earlier_named = earlier_kernel_named(&p->earlier);

    if (c->kernel_count == 0)
        return 0;
    if (p->level == MANIFEST_NAMES && level == MANIFEST_NAMES)
        options.level = SYM_LEVEL_NAMES;
    m->kernel_address_count = c->kernel_count;
    if (!p->options->symbols.no_kernel_symbols) {
        if (sym_pack_kernel(symbols_context(p->symbols), c->kernel, c->kernel_count, &options,
                            &packed) < 0)
            return pack_symbols_error(p);
        m->kernel_address_count = packed.address_count;
        m->kernel_named_count = packed.named_count;
        if (packed.named_count == 0) {
            free(packed.data);
            packed.data = NULL;
        }
    }
    if (put(p, "kernel.syms", &packed, &m->kernel_files) < 0)
        return -1;
    packed = (struct sym_packed){0};
    if (m->kernel_named_count > 0 &&
        sym_pack_kallsyms(symbols_context(p->symbols), c->kernel, c->kernel_count, &packed) < 0)
        return pack_symbols_error(p);
    if (put(p, "kallsyms", &packed, &m->kernel_files) < 0)
        return -1;
    if (m->kernel_named_count < earlier_named)
        m->kernel_named_count =
            earlier_named < m->kernel_address_count ? earlier_named : m->kernel_address_count;
    find_kernel_missing(p);
    return 0;
}

/* ---- perf maps ---- */

static void find_map_missing(struct packing *p, const struct collected_process *process,
                             struct manifest_map *map)
{
    const char *path, *why = symbols_perf_map_text(p->symbols, map->pid, &path);
    struct text_buffer name = {0}, reason = {0};

    if (map->files.count > 0)
        return;
    if (!why)
        why = p->options->symbols.perf_maps == SYM_PERF_MAPS_NONE
                  ? "perf maps are not used"
                  : sym_miss_text(SYM_MISS_NOT_IN_PERF_MAP);
    text_printf(&reason, "%s%s%s", path, *path ? ": " : "", why);
    text_printf(&name, "perf-%" PRId32 ".map", map->pid);
    report_miss(&p->report, name.data, name.size, why, reason.data, process->samples);
    text_free(&name);
    map->missing = reason.data;
}

static int pack_map(struct packing *p, const struct collected_process *process)
{
    struct manifest *m = &p->manifest;
    bool whole = p->level == MANIFEST_FULL;
    struct manifest_map map = {.pid = process->pid, .address_count = process->address_count};
    struct sym_packed packed = {0};
    char name[32];

    if (process->pid <= 0)
        return 0;
    if (sym_pack_perf_map(symbols_context(p->symbols), process->pid,
                          whole ? NULL : process->addresses, whole ? 0 : process->address_count,
                          &packed) < 0)
        return pack_symbols_error(p);
    snprintf(name, sizeof name, "perf-%" PRId32 ".map", process->pid);
    if (put(p, name, &packed, &map.files) < 0)
        return -1;
    /* Addresses of no mapping at all are seldom code. */
    if (map.files.count == 0 && !process->has_memory)
        return 0;
    find_map_missing(p, process, &map);
    p->maps.count++;
    p->maps.missing += map.files.count == 0 && p->options->symbols.perf_maps != SYM_PERF_MAPS_NONE;
    m->maps[m->map_count++] = map;
    return 0;
}

int pack_maps(struct packing *p)
{
    const struct collected *c = &p->collected;

    p->manifest.maps = cli_zeroed(c->process_count, sizeof *p->manifest.maps);
    for (size_t i = 0; i < c->process_count; i++)
        if (pack_map(p, &c->processes[i]) < 0)
            return -1;
    return 0;
}
