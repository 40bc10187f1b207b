/* SPDX-License-Identifier: MIT */
/* Names of output frames: clean, never empty, the same in every document. */
#include "frames.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "trim.h"

/* What a frame shows of a name or path: no real one is longer, and each frame costs the length of its texts. */
#define TEXT_MAX ((size_t)64 * 1024)
#define LONG_TEXT 1024 /* cleaning one takes longer than finding it */

void frame_names_free(struct frame_names *n)
{
    text_free(&n->name);
    text_free(&n->file);
    text_free(&n->module);
    text_free(&n->raw);
    text_free(&n->source_path);
    text_free(&n->module_path);
    if (!n->long_texts)
        return;
    for (uint32_t i = 0; i < n->long_labels.count; i++)
        free(n->long_texts[i].clean);
    free(n->long_texts);
    labels_free(&n->long_labels);
}

/* ---- long texts ---- */

/* Only as much of a text as is shown, in whole characters. */
static size_t shown_size(const char *text, size_t size)
{
    size_t cut = TEXT_MAX;

    if (size <= TEXT_MAX)
        return size;
    while (cut > TEXT_MAX - 3 && ((unsigned char)text[cut] & 0xc0) == 0x80)
        cut--;
    return cut;
}

static struct long_text *add_long_text(struct frame_names *n, uint32_t label)
{
    n->long_texts = cli_grow(n->long_texts, &n->long_capacity, label, sizeof *n->long_texts);
    return memset(&n->long_texts[label], 0, sizeof *n->long_texts);
}

/* `buffer` has room for what is cleaned. */
static struct long_text *long_text(struct frame_names *n, const char *text, size_t size,
                                   struct text_buffer *buffer)
{
    size_t shown = shown_size(text, size);
    uint32_t known, label;
    struct long_text *entry;

    if (!n->long_texts)
        labels_init(&n->long_labels);
    known = n->long_labels.count;
    /* What is cut is another text than one that is as long. */
    label = labels_intern(&n->long_labels, text, shown < size ? TEXT_MAX + 1 : size);
    if (label < known)
        return &n->long_texts[label];
    entry = add_long_text(n, label);
    text_clean(text, shown, buffer);
    if (shown < size)
        text_append(buffer, "...", 3);
    entry->size = buffer->size;
    entry->clean = text_copy(buffer->data, buffer->size);
    return entry;
}

/* A clean text, which ends in a NUL. */
static const char *clean_text(struct frame_names *n, const char *text, size_t size,
                              struct text_buffer *buffer)
{
    if (size >= LONG_TEXT)
        return long_text(n, text, size, buffer)->clean;
    text_clean(text, size, buffer);
    return buffer->data;
}

/* ---- names ---- */

size_t frames_count(const struct resolved *r, const struct shape_options *shape)
{
    return r->frame_count && !shape->no_inlines ? r->frame_count : 1;
}

/* What libsym says of an output frame; NULL when it was not asked. */
static const struct sym_frame *level_of(const struct resolved *r, size_t index,
                                        const struct shape_options *shape)
{
    if (shape->no_inlines && r->frame_count > 0)
        index = r->frame_count - 1;
    return index < r->frame_count ? &r->frames[index] : NULL;
}

/* Every frame of a module has its name in its own: a file may claim any path, the kernel gives none above PATH_MAX. */
#define MODULE_NAME_MAX 4095

static const char *module_base(const struct out_frame *out, size_t *size)
{
    const char *path = out->module_path, *base;
    size_t path_size = out->module_path_size;

    if (path_size > MODULE_NAME_MAX && path[0] != '[') { /* the base name is at its end */
        path += path_size - MODULE_NAME_MAX;
        path_size = MODULE_NAME_MAX;
    }
    base = sym_display_path(path, path_size, size);
    if (*size > MODULE_NAME_MAX)
        *size = MODULE_NAME_MAX;
    return base;
}

/* Pseudo names stand in brackets, so that no reader takes them for files. */
static void name_module(struct frame_names *n, const struct resolved *r, struct out_frame *out)
{
    const char *pseudo = NULL, *path;
    size_t size;

    if (r->module && r->module->jit)
        pseudo = "[jit]";
    else if (!r->module && r->kernel)
        pseudo = "[kernel.kallsyms]";
    else if (!r->module)
        pseudo = out->flags & FRAME_JIT ? "[perf-map]" : "[unknown]";
    if (pseudo) {
        text_clean(pseudo, strlen(pseudo), &n->module);
    } else {
        path = module_base(out, &size);
        text_clean(path, size, &n->module);
    }
    out->module = n->module.data;
    out->module_size = n->module.size;
}

uint64_t frames_shown_address(const struct resolved *r, const struct sym_frame *s)
{
    if (s && s->origin == SYM_ORIGIN_FDE)
        return s->function_start;
    return r->module ? r->rel : r->abs;
}

/* The base name of the module proper: generated code keeps apart what the pseudo name would fold together. */
static void name_unresolved(struct frame_names *n, const struct resolved *r,
                            const struct sym_frame *s, bool module_only,
                            const struct out_frame *out)
{
    const char *base = n->module.data;

    if (r->module) {
        size_t size;
        const char *path = module_base(out, &size);

        text_clean(path, size, &n->raw);
        base = n->raw.data;
    }
    n->name.size = 0;
    if (module_only)
        text_printf(&n->name, base[0] == '[' ? "%s" : "[%s]", base);
    else if (r->module)
        text_printf(&n->name, "%s+0x%" PRIx64, base, frames_shown_address(r, s));
    else
        text_printf(&n->name, "0x%" PRIx64, frames_shown_address(r, s));
}

static uint32_t match_flags(const struct shape_options *shape, const char *name)
{
    uint32_t flags = 0;

    if (shape->has_frame_filter && regexec(&shape->frame_filter, name, 0, NULL, 0) == 0)
        flags |= FRAME_FILTER;
    if (shape->has_root_at && regexec(&shape->root_at, name, 0, NULL, 0) == 0)
        flags |= FRAME_ROOT_AT;
    if (shape->has_skip_below && regexec(&shape->skip_below, name, 0, NULL, 0) == 0)
        flags |= FRAME_SKIP_BELOW;
    return flags;
}

static void take_name(struct frame_names *n, const struct shape_options *shape,
                      struct out_frame *out)
{
    out->name = n->name.data;
    out->name_size = n->name.size;
    out->flags |= match_flags(shape, out->name);
}

/* The name that libsym gives. */
static void take_symbol_name(struct frame_names *n, const char *name,
                             const struct shape_options *shape, struct out_frame *out)
{
    size_t size = strnlen(name, TEXT_MAX + 1);
    struct long_text *entry;

    out->flags |= FRAME_NAMED;
    if (size < LONG_TEXT) {
        text_clean(name, size, &n->name);
        take_name(n, shape, out);
        return;
    }
    entry = long_text(n, name, size, &n->name);
    if (!entry->matched)
        entry->flags = match_flags(shape, entry->clean);
    entry->matched = true;
    out->name = entry->clean;
    out->name_size = entry->size;
    out->flags |= entry->flags;
}

void frames_placeholder(struct frame_names *n, const char *name, const struct shape_options *shape,
                        struct out_frame *out)
{
    memset(out, 0, sizeof *out);
    out->flags = FRAME_PLACEHOLDER;
    out->module_id = SPOOL_NO_ID;
    out->level_count = 1;
    text_clean(name, strlen(name), &n->name);
    take_name(n, shape, out);
}

/* What libsym says of this level of the chain. */
static void take_symbol(struct frame_names *n, const struct sym_frame *s,
                        const struct shape_options *shape, struct out_frame *out)
{
    out->sym = s;
    out->origin = s->origin;
    out->kind = s->kind;
    out->miss = s->miss;
    out->line = s->line;
    out->column = s->column;
    out->start_line = s->start_line;
    out->offset = s->offset;
    if (s->kind == SYM_KIND_PYTHON)
        out->flags |= FRAME_PYTHON;
    if (s->flags & SYM_FLAG_PYTHON_RUNTIME)
        out->flags |= FRAME_MACHINERY;
    if (s->flags & SYM_FLAG_JIT)
        out->flags |= FRAME_JIT;
    if (s->inlined)
        out->flags |= FRAME_INLINED;
    if (s->file) {
        size_t size;
        const char *path = trim_path(&shape->trim_paths, s->file, strnlen(s->file, TEXT_MAX + 1),
                                     &n->source_path, &size);

        out->file = clean_text(n, path, size, &n->file);
    }
    if (s->raw_name)
        out->linkage = clean_text(n, s->raw_name, strnlen(s->raw_name, TEXT_MAX + 1), &n->raw);
}

void frames_name(struct frame_names *n, const struct resolved *r, size_t index,
                 const struct shape_options *shape, struct out_frame *out)
{
    const struct sym_frame *s = level_of(r, index, shape);

    if (r->truncated) {
        frames_placeholder(n, "[truncated]", shape, out);
        out->flags |= FRAME_TRUNCATED;
        return;
    }
    memset(out, 0, sizeof *out);
    out->abs = r->abs;
    out->rel = r->rel;
    out->source_module = r->module;
    out->module_id = r->module_id;
    out->level = (uint32_t)index;
    out->level_count = (uint32_t)frames_count(r, shape);
    if (r->kernel) {
        out->flags |= FRAME_KERNEL;
        out->kind = SYM_KIND_KERNEL;
    }
    if (r->unpinned)
        out->flags |= FRAME_UNPINNED;
    if (r->module && r->module->jit)
        out->flags |= FRAME_JIT;
    if (s)
        take_symbol(n, s, shape, out);
    if (r->module)
        out->module_path =
            trim_module(&shape->trim_paths, r->module, &n->module_path, &out->module_path_size);
    name_module(n, r, out);
    if (s && s->name) {
        take_symbol_name(n, s->name, shape, out);
    } else {
        name_unresolved(n, r, s, shape->unresolved_module, out);
        take_name(n, shape, out);
    }
}
