/* SPDX-License-Identifier: MIT */
/* Names of output frames: clean, never empty, the same in every document. */
#include "frames.h"

#include <inttypes.h>
#include <string.h>

void frame_names_free(struct frame_names *n)
{
    text_free(&n->name);
    text_free(&n->file);
    text_free(&n->module);
    text_free(&n->raw);
}

size_t frames_count(const struct resolved *r)
{
    return r->frame_count ? r->frame_count : 1;
}

/* Pseudo names stand in brackets, so that no reader takes them for files. */
static void name_module(struct frame_names *n, const struct resolved *r, bool jit)
{
    const char *pseudo = NULL, *path;
    size_t size;

    if (r->module && r->module->jit)
        pseudo = "[jit]";
    else if (!r->module && r->kernel)
        pseudo = "[kernel.kallsyms]";
    else if (!r->module)
        pseudo = jit ? "[perf-map]" : "[unknown]";
    if (pseudo) {
        text_clean(pseudo, strlen(pseudo), &n->module);
        return;
    }
    path = sym_display_path(r->module->path, r->module->path_size, &size);
    text_clean(path, size, &n->module);
}

uint64_t frames_shown_address(const struct resolved *r, const struct sym_frame *s)
{
    if (s && s->origin == SYM_ORIGIN_FDE)
        return s->function_start;
    return r->module ? r->rel : r->abs;
}

/* The base name of the module proper: generated code keeps apart what the pseudo name would fold together. */
static void name_unresolved(struct frame_names *n, const struct resolved *r,
                            const struct sym_frame *s, bool module_only)
{
    const char *base = n->module.data;

    if (r->module) {
        size_t size;
        const char *path = sym_display_path(r->module->path, r->module->path_size, &size);

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
static void take_symbol(struct frame_names *n, const struct sym_frame *s, struct out_frame *out)
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
        text_clean(s->file, strlen(s->file), &n->file);
        out->file = n->file.data;
    }
    if (s->raw_name) {
        text_clean(s->raw_name, strlen(s->raw_name), &n->raw);
        out->linkage = n->raw.data;
    }
}

void frames_name(struct frame_names *n, const struct resolved *r, size_t index,
                 const struct shape_options *shape, struct out_frame *out)
{
    const struct sym_frame *s = index < r->frame_count ? &r->frames[index] : NULL;

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
    out->level_count = (uint32_t)frames_count(r);
    if (r->kernel) {
        out->flags |= FRAME_KERNEL;
        out->kind = SYM_KIND_KERNEL;
    }
    if (r->unpinned)
        out->flags |= FRAME_UNPINNED;
    if (r->module && r->module->jit)
        out->flags |= FRAME_JIT;
    if (s)
        take_symbol(n, s, out);
    name_module(n, r, out->flags & FRAME_JIT);
    out->module = n->module.data;
    out->module_size = n->module.size;
    if (s && s->name) {
        text_clean(s->name, strlen(s->name), &n->name);
        out->flags |= FRAME_NAMED;
    } else {
        name_unresolved(n, r, s, shape->unresolved_module);
    }
    take_name(n, shape, out);
}
