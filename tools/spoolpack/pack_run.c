/* SPDX-License-Identifier: MIT */
/*
 * The run over the spools: each is read to its end, what it hit is packed, and its manifest is written when everything
 * that it names is in the store.
 */
#include "pack_run.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "archive_open.h"
#include "capture_id.h"
#include "cli.h"
#include "input_bytes.h"
#include "notes.h"
#include "pack_private.h"
#include "progress.h"
#include "report.h"

/* ---- what the parts share ---- */

int pack_symbols_error(struct packing *p)
{
    cli_error("symbols: %s", sym_context_error(symbols_context(p->symbols)));
    return -1;
}

char *pack_copy(const char *text)
{
    return text ? text_copy(text, strlen(text)) : NULL;
}

void pack_add_file(struct manifest_files *files, const char *name, const struct stored *stored)
{
    struct manifest_file *f;

    for (size_t i = 0; i < files->count; i++)
        if (strcmp(files->items[i].name, name) == 0)
            return;
    files->items = cli_realloc(files->items, files->count + 1, sizeof *files->items);
    f = &files->items[files->count++];
    f->name = pack_copy(name);
    f->size_bytes = stored->size_bytes;
    strcpy(f->sha256, stored->sha256);
}

int pack_add_existing(struct packing *p, struct manifest_files *files, const char *name)
{
    struct stored stored;
    int rc = store_find(p->store, name, &stored);

    if (rc > 0)
        pack_add_file(files, name, &stored);
    return rc < 0 ? -1 : 0;
}

/* ---- the manifest ---- */

/* A word of an annotation, malloc'ed; NULL: there is none, or "-". */
static char *copy_word(const struct notes *notes, const char *key, unsigned index)
{
    const char *value = notes_value(notes, key);
    char word[256];

    if (!value || !notes_word(value, index, word, sizeof word) || strcmp(word, "-") == 0)
        return NULL;
    return pack_copy(word);
}

/* 2026-11-30T13:45:00Z; builds that are to be the same again set SOURCE_DATE_EPOCH. */
static char *packed_at(void)
{
    const char *epoch = getenv("SOURCE_DATE_EPOCH");
    time_t now = time(NULL);
    char text[sizeof "2026-11-30T13:45:00Z" + 16] = "";
    struct tm broken_down;
    uint64_t seconds;

    if (epoch && cli_parse_u64(epoch, &seconds) == CLI_VALUE_OK && seconds < UINT64_C(1) << 37)
        now = (time_t)seconds;
    if (!gmtime_r(&now, &broken_down) ||
        strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &broken_down) == 0)
        text[0] = '\0';
    return pack_copy(text);
}

/* Everything that does not depend on symbols. */
static int describe(struct packing *p, const struct input_bytes *bytes)
{
    struct manifest *m = &p->manifest;
    const struct notes *notes = &p->aggregate->notes;
    const struct spool_header *header = spool_reader_header(p->input->reader);
    char id[CAPTURE_ID_SIZE];

    if (input_bytes_hash(bytes, p->input, m->spool_sha256, &m->spool_bytes) < 0)
        return -1;
    if (!capture_id(p->input->reader, id)) {
        memcpy(id, m->spool_sha256, sizeof id - 1);
        id[sizeof id - 1] = '\0';
    }
    m->capture = pack_copy(id);
    m->spool_name = p->input->path ? pack_copy(inputs_base_name(p->input->path)) : NULL;
    m->samples = p->aggregate->file_samples;
    m->start_us = header->start_us;
    m->host = pack_copy(notes_value(notes, "host"));
    m->kernel_release = copy_word(notes, "kernel", 0);
    if (!m->kernel_release)
        m->kernel_release = copy_word(notes, "host", 1);
    m->kernel_build_id = copy_word(notes, "kernel", 1);
    m->boot_id = copy_word(notes, "kernel", 2);
    m->packed_at = packed_at();
    m->level = p->level;
    store_set_time(p->store, m->start_us / 1000000);
    return 0;
}

static int write_manifest(struct packing *p)
{
    struct text_buffer text = {0}, name = {0};
    struct stored stored;
    int rc;

    manifest_append(&p->manifest, &text);
    text_printf(&name, "captures/%s/manifest-%.16s.json", p->manifest.capture,
                p->manifest.spool_sha256);
    rc = store_replace(p->store, name.data, text.data, text.size, false, &stored);
    text_free(&name);
    text_free(&text);
    return rc;
}

/* ---- messages ---- */

static void add_part(struct text_buffer *out, const struct pack_tally *tally, const char *singular,
                     const char *plural, bool *many)
{
    if (tally->missing == 0)
        return;
    *many |= out->size > 0 || tally->missing > 1;
    if (out->size > 0)
        text_append(out, " and ", 5);
    text_number(out, tally->missing);
    text_append(out, " of ", 4);
    text_counted(out, tally->count, singular, plural);
}

/* What was not wanted is not missed. */
static void warn_missing(const struct packing *p)
{
    struct text_buffer what = {0};
    bool many = false;

    add_part(&what, &p->files, "file", "files", &many);
    if (p->manifest.kernel_missing && !p->options->symbols.no_kernel_symbols) {
        many |= what.size > 0;
        text_printf(&what, "%sthe kernel", what.size > 0 ? " and " : "");
    }
    add_part(&what, &p->maps, "perf map", "perf maps", &many);
    if (what.size > 0)
        cli_warn("%s: %s %s no symbols on this machine%s", p->input->name, what.data,
                 many ? "have" : "has", p->options->verbose ? "" : " (--verbose names them)");
    text_free(&what);
}

static void report_packed(const struct packing *p, uint64_t new_bytes)
{
    const struct manifest *m = &p->manifest;
    uint64_t addresses = m->kernel_address_count, named = m->kernel_named_count;
    struct text_buffer line = {0};

    for (size_t i = 0; i < m->module_count; i++) {
        addresses += m->modules[i].address_count;
        named += m->modules[i].named_count;
    }
    text_append(&line, "packed ", 7);
    text_append_display(&line, p->input->name, strlen(p->input->name));
    text_append(&line, ": ", 2);
    text_counted(&line, m->module_count, "module", "modules");
    text_append(&line, ", ", 2);
    text_counted(&line, addresses, "address", "addresses");
    if (addresses > 0)
        text_printf(&line, ", %.1f %% with a name", 100.0 * (double)named / (double)addresses);
    text_append(&line, "; ", 2);
    text_bytes(&line, new_bytes);
    text_append(&line, " new, ", 6);
    text_counted(&line, p->files_there, "file was there", "files were there");
    text_append_byte(&line, '\n');
    cli_report_lines(&line);
    cli_report_lines(&p->report);
    text_free(&line);
}

/* ---- a spool ---- */

static int open_known(struct packing *p)
{
    const char *folder = store_folder(p->store);

    if (!folder)
        return 0;
    p->known = archive_open(folder);
    return p->known ? 0 : -1;
}

/* Everything about an input that was read to its end. */
static int pack_input(struct packing *p, const struct input_bytes *bytes)
{
    uint64_t before = store_new_bytes(p->store), new_bytes;
    char id[CAPTURE_ID_SIZE];
    int rc = describe(p, bytes);

    if (rc == 0)
        rc = open_known(p);
    if (rc == 0)
        rc = earlier_read(&p->earlier, p->store, p->manifest.capture);
    if (rc == 0)
        rc = symbols_begin(p->symbols, p->input, p->aggregate);
    if (rc == 0)
        rc = collect(p->input->reader, p->aggregate, p->symbols, &p->collected);
    if (rc == 0)
        rc = pack_modules(p);
    /* Without an id, nobody would find the rest. */
    if (rc == 0 && capture_id(p->input->reader, id)) {
        rc = pack_kernel(p);
        if (rc == 0)
            rc = pack_maps(p);
    }
    new_bytes = store_new_bytes(p->store) - before;
    if (rc == 0)
        rc = write_manifest(p);
    if (rc < 0)
        return -1;
    warn_missing(p);
    if (p->options->verbose)
        report_packed(p, new_bytes);
    return 0;
}

static void free_packing(struct packing *p)
{
    sym_archive_free(p->known);
    collected_free(&p->collected);
    earlier_free(&p->earlier);
    manifest_free(&p->manifest);
    text_free(&p->report);
}

static int read_and_pack(const struct packing *shared, const char *path, struct progress *progress)
{
    struct packing p = *shared;
    struct tool_input input;
    struct input_bytes bytes;
    struct aggregate aggregate = {0};
    struct aggregate_options how = {.epochs = symbols_of_kernel(&p.options->symbols)};
    int rc;

    if (input_bytes_open(path, &input, &bytes) < 0)
        return -1;
    progress_input(progress, &input);
    rc = aggregate_read(&aggregate, &how, &input, progress);
    rc = inputs_finish(&input, rc, p.options) == INPUT_FAILED ? -1 : aggregate_finish(&aggregate);
    progress_input_end(progress);
    p.input = &input;
    p.aggregate = &aggregate;
    if (rc == 0)
        rc = pack_input(&p, &bytes);
    free_packing(&p);
    aggregate_free(&aggregate);
    inputs_close(&input);
    return rc;
}

static int pack_inputs(const struct packing *shared)
{
    const struct tool_options *o = shared->options;
    struct progress progress;
    int rc = 0;

    progress_begin(&progress, o);
    /* What one spool lacks, others need not: but a tar file is there with all of them or not at all. */
    for (size_t i = 0; i < o->input_count && (rc == 0 || store_folder(shared->store)); i++)
        if (read_and_pack(shared, o->inputs[i], &progress) < 0)
            rc = -1;
    progress_end(&progress);
    return rc;
}

int pack_run(const struct tool_options *options, enum manifest_level level)
{
    struct packing shared = {.options = options, .level = level};
    int rc = symbols_check_folders(&options->symbols);

    if (rc == 0)
        shared.symbols = symbols_new(&options->symbols, &options->shape);
    if (shared.symbols)
        shared.store = store_open(options->output);
    rc = shared.store ? pack_inputs(&shared) : -1;
    if (rc == 0)
        rc = store_finish(shared.store);
    store_free(shared.store);
    symbols_free(shared.symbols);
    return rc;
}
