/* SPDX-License-Identifier: MIT */
/* Cells are gathered, so that columns are as wide as what is in them. */
#include "list.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "archive_open.h"
#include "cli.h"
#include "manifests.h"

enum { COLUMNS = 9 };
static const char *const headings[COLUMNS] = {"spool", "start",     "samples", "level",  "files",
                                              "size",  "addresses", "named",   "missing"};
/* Texts to the left, numbers to the right. */
static const bool is_left[COLUMNS] = {true, true, false, true};

struct row {
    struct text_buffer cells[COLUMNS];
};

struct list {
    const char *store;
    struct tool_output *out;
    bool json, unreadable;
    struct text_buffer text;
    struct row *rows;
    size_t count, capacity;
    size_t widths[COLUMNS]; /* in characters */
};

/* ---- what a manifest adds up to ---- */

struct sums {
    uint64_t files, bytes, addresses, named, missing;
};

static void add(struct sums *s, const struct manifest_files *files, uint64_t addresses,
                uint64_t named, const char *missing)
{
    s->files += files->count;
    for (size_t i = 0; i < files->count; i++)
        s->bytes += files->items[i].size_bytes;
    s->addresses += addresses;
    s->named += named;
    s->missing += missing != NULL;
}

static struct sums sum(const struct manifest *m)
{
    struct sums s = {0};

    for (size_t i = 0; i < m->module_count; i++)
        add(&s, &m->modules[i].files, m->modules[i].address_count, m->modules[i].named_count,
            m->modules[i].missing);
    for (size_t i = 0; i < m->map_count; i++) /* how many have a name is not known */
        add(&s, &m->maps[i].files, 0, 0, m->maps[i].missing);
    add(&s, &m->kernel_files, m->kernel_address_count, m->kernel_named_count, m->kernel_missing);
    return s;
}

/* ---- lines ---- */

static size_t characters(const struct text_buffer *text)
{
    size_t n = 0;

    for (size_t i = 0; i < text->size; i++)
        n += (text->data[i] & 0xc0) != 0x80;
    return n;
}

static void put_start(struct text_buffer *cell, uint64_t start_us)
{
    time_t seconds = (time_t)(start_us / 1000000);
    struct tm tm;
    char text[64];

    if (start_us == 0 || !gmtime_r(&seconds, &tm) ||
        strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &tm) == 0)
        strcpy(text, "-");
    text_printf(cell, "%s", text);
}

static struct row *add_row(struct list *l)
{
    l->rows = cli_grow(l->rows, &l->capacity, l->count, sizeof *l->rows);
    memset(&l->rows[l->count], 0, sizeof *l->rows);
    return &l->rows[l->count++];
}

static void measure(struct list *l, const struct row *row)
{
    for (unsigned i = 0; i < COLUMNS; i++) {
        size_t width = characters(&row->cells[i]);

        if (width > l->widths[i])
            l->widths[i] = width;
    }
}

static void add_capture(struct list *l, const struct manifest *m)
{
    struct row *row = add_row(l);
    struct text_buffer *cells = row->cells;
    struct sums s = sum(m);

    if (m->spool_name)
        text_append_display(&cells[0], m->spool_name, strlen(m->spool_name));
    else
        text_printf(&cells[0], "-");
    put_start(&cells[1], m->start_us);
    text_number(&cells[2], m->samples);
    text_printf(&cells[3], "%s", manifest_level_name(m->level));
    text_number(&cells[4], s.files);
    text_bytes(&cells[5], s.bytes);
    text_number(&cells[6], s.addresses);
    if (s.addresses > 0)
        text_printf(&cells[7], "%.1f%%", 100.0 * (double)s.named / (double)s.addresses);
    else
        text_printf(&cells[7], "-");
    text_number(&cells[8], s.missing);
    measure(l, row);
}

static void print_row(const struct list *l, const struct row *row)
{
    for (unsigned i = 0; i < COLUMNS; i++) {
        const struct text_buffer *cell = &row->cells[i];
        size_t pad = l->widths[i] - characters(cell);

        output_printf(l->out, "%s%*s", i > 0 ? "  " : "", is_left[i] ? 0 : (int)pad, "");
        output_write(l->out, cell->data, cell->size);
        if (is_left[i])
            output_printf(l->out, "%*s", (int)pad, "");
    }
    output_byte(l->out, '\n');
}

static int list_manifest(void *user, const char *name, const struct manifest *m, const char *why)
{
    struct list *l = user;

    if (!m) {
        cli_error("%s: %s: %s", l->store, name, why);
        l->unreadable = true;
    } else if (l->json) {
        l->text.size = 0;
        manifest_append_line(m, name, &l->text);
        output_write(l->out, l->text.data, l->text.size);
    } else {
        add_capture(l, m);
    }
    return 0;
}

static void list_free(struct list *l)
{
    for (size_t i = 0; i < l->count; i++)
        for (unsigned k = 0; k < COLUMNS; k++)
            text_free(&l->rows[i].cells[k]);
    free(l->rows);
    text_free(&l->text);
}

int pack_list(const char *store, bool json, struct tool_output *out)
{
    struct list l = {.store = store, .json = json, .out = out};
    struct sym_archive *a = archive_open(store);
    bool is_damaged;
    int rc;

    if (!a)
        return -1;
    if (!archive_is_store(a) && !*sym_archive_fault(a)) {
        cli_error("%s: no store: it has no folder captures", store);
        sym_archive_free(a);
        return -1;
    }
    if (*sym_archive_fault(a))
        cli_warn("%s: %s; what is before is listed", store, sym_archive_fault(a));
    if (!json) {
        struct row *row = add_row(&l);

        for (unsigned i = 0; i < COLUMNS; i++)
            text_printf(&row->cells[i], "%s", headings[i]);
        measure(&l, row);
    }
    rc = manifests_each(a, NULL, list_manifest, &l);
    if (rc < 0)
        cli_error("%s: %s", store, manifests_error_text(rc));
    for (size_t i = 0; l.count > 1 && i < l.count; i++)
        print_row(&l, &l.rows[i]);
    list_free(&l);
    is_damaged = *sym_archive_fault(a) != '\0';
    sym_archive_free(a);
    return rc < 0 || l.unreadable || is_damaged ? -1 : 0;
}
