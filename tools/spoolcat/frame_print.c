/* SPDX-License-Identifier: MIT */
/* The text and the JSON of a frame: spoolcat(1), OUTPUT. */
#include "frame_print.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "json.h"

void frame_print_init(struct frame_print *p, bool json, const struct tool_options *o)
{
    *p = (struct frame_print){.json = json,
                              .no_symbols = o->symbols.no_symbols,
                              .module_names = o->shape.unresolved_module};
    labels_init(&p->texts);
}

void frame_print_free(struct frame_print *p)
{
    labels_free(&p->texts);
    free(p->hidden);
    text_free(&p->line);
}

/* ---- text ------------------------------------------------------------------------------------ */

/* "     55d0c4a01136 main+0x16 (/usr/bin/app) app.c:12" */
static void write_line(struct frame_print *p, const struct out_frame *f)
{
    struct text_buffer *line = &p->line;

    if (f->flags & FRAME_PLACEHOLDER) {
        text_printf(line, "%18s", "");
        text_append(line, f->name, f->name_size);
        text_append_byte(line, '\n');
        return;
    }
    text_printf(line, "%17" PRIx64 " ", f->abs);
    text_append(line, f->name, f->name_size);
    if (f->flags & FRAME_NAMED)
        text_printf(line, "+0x%" PRIx64, f->offset);
    text_append(line, " (", 2);
    if (f->source_module != NULL) {
        text_append_clean(line, f->module_path, f->module_path_size);
    } else {
        text_printf(line, f->flags & FRAME_KERNEL ? "[kernel.kallsyms]" : "[unknown]");
    }
    text_append_byte(line, ')');
    if (f->flags & FRAME_INLINED)
        text_printf(line, " (inlined)");
    if (f->file != NULL) {
        text_append_byte(line, ' ');
        text_append(line, f->file, strlen(f->file));
        if (f->line > 0)
            text_printf(line, ":%" PRIu32, f->line);
    }
    text_append_byte(line, '\n');
}

/* ---- JSON ------------------------------------------------------------------------------------ */

/* key with its comma and colon: ",\"abs\":". */
static void write_number(struct text_buffer *line, const char *key, uint64_t number, bool known)
{
    if (known)
        text_printf(line, "%s%" PRIu64, key, number);
    else
        text_printf(line, "%snull", key);
}

static void write_name(struct text_buffer *line, const char *key, const char *name, size_t size)
{
    text_printf(line, "%s", key);
    if (name != NULL)
        json_append_text(line, name, size);
    else
        text_printf(line, "null");
}

static void write_flags(struct text_buffer *line, const struct out_frame *f, bool hidden)
{
    static const struct {
        uint32_t flag;
        const char *name;
    } names[] = {{SYM_FLAG_PYTHON_RUNTIME, "python_runtime"},
                 {SYM_FLAG_PYTHON_EVAL, "python_eval"},
                 {SYM_FLAG_HIDDEN, "hidden"},
                 {SYM_FLAG_JIT, "jit"},
                 {SYM_FLAG_ANONYMOUS, "anonymous"},
                 {SYM_FLAG_TRUNCATED, "truncated"},
                 {SYM_FLAG_UNVERIFIED, "unverified"}};
    uint32_t flags = f->sym != NULL ? f->sym->flags : 0;
    const char *separator = "";

    if (f->flags & FRAME_TRUNCATED)
        flags |= SYM_FLAG_TRUNCATED;
    if (f->flags & FRAME_JIT)
        flags |= SYM_FLAG_JIT;
    if (hidden)
        flags |= SYM_FLAG_HIDDEN;
    text_printf(line, ",\"flags\":[");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if ((flags & names[i].flag) == 0)
            continue;
        text_printf(line, "%s\"%s\"", separator, names[i].name);
        separator = ",";
    }
    text_append(line, "]}", 2);
}

/* The name in JSON: null where nothing names the frame, for module+0xOFF can be made of the other keys; but
 * placeholders are nothing but a name, and --unresolved=module asks for one. The marker is known by its kind. */
static bool has_name(const struct frame_print *p, const struct out_frame *f)
{
    if (f->flags & FRAME_PLACEHOLDER)
        return !(f->flags & FRAME_TRUNCATED);
    return (f->flags & FRAME_NAMED) || p->module_names;
}

static void write_object(struct frame_print *p, const struct out_frame *f, bool hidden)
{
    struct text_buffer *line = &p->line;
    bool placeholder = f->flags & FRAME_PLACEHOLDER, named = has_name(p, f);

    text_printf(line, "{\"kind\":\"%s\"",
                placeholder                 ? "truncated"
                : f->flags & FRAME_PYTHON   ? "python"
                : (f->flags & FRAME_KERNEL) ? "kernel"
                                            : "user");
    write_number(line, ",\"abs\":", f->abs, !placeholder);
    if (f->source_module == NULL) {
        text_printf(line, ",\"module\":null");
    } else {
        text_printf(line, ",\"module\":{\"id\":%" PRIu32 ",\"path\":", f->module_id);
        json_append_text(line, f->module_path, f->module_path_size);
        text_printf(line, ",\"rel\":%" PRIu64 "}", f->rel);
    }
    if (!p->no_symbols || named)
        write_name(line, ",\"name\":", named ? f->name : NULL, f->name_size);
    if (!p->no_symbols) {
        write_number(line, ",\"offset\":", f->offset, f->flags & FRAME_NAMED);
        write_name(line, ",\"file\":", f->file, f->file != NULL ? strlen(f->file) : 0);
        write_number(line, ",\"line\":", f->line, f->line > 0);
        write_number(line, ",\"column\":", f->column, f->column > 0);
    }
    text_printf(line, ",\"inlined\":%s,\"origin\":\"%s\"",
                f->flags & FRAME_INLINED ? "true" : "false", sym_origin_text(f->origin));
    write_flags(line, f, hidden);
}

/* ---- labels and stacks ----------------------------------------------------------------------- */

static uint32_t intern(struct frame_print *p)
{
    return labels_intern(&p->texts, p->line.data, p->line.size);
}

uint32_t frame_print_label(void *user, const struct out_frame *frame)
{
    struct frame_print *p = user;
    uint32_t label;

    p->line.size = 0;
    if (!p->json) {
        write_line(p, frame);
        return intern(p);
    }
    write_object(p, frame, false);
    label = intern(p);
    p->hidden = cli_grow(p->hidden, &p->hidden_capacity, label, sizeof *p->hidden);
    p->hidden[label] = label;
    if (frame->flags & FRAME_MACHINERY) {
        p->line.size = 0;
        write_object(p, frame, true);
        p->hidden[label] = intern(p);
    }
    return label;
}

void frame_print_stack(const struct frame_print *p, struct tool_output *out,
                       const struct otree *tree, uint32_t node, bool python)
{
    bool first = true;

    for (; node != OTREE_ROOT; node = tree->nodes[node].parent) {
        uint32_t label = tree->nodes[node].label;
        const char *text;
        size_t size;

        if (p->json && !first)
            output_byte(out, ',');
        first = false;
        text = labels_text(&p->texts, p->json && python ? p->hidden[label] : label, &size);
        output_write(out, text, size);
    }
}
