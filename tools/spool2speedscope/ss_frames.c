/* SPDX-License-Identifier: MIT */
/* Labels of frames, their indexes, and stacks as text. */
#include "ss_frames.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

/* A stack, what stands for its omitted frames, a process in front, brackets and room to the left. */
#define STACK_TEXT_BYTES ((SS_MAX_DEPTH + 2) * sizeof(struct ss_index) + 32)

void ss_frames_init(struct ss_frames *f)
{
    memset(f, 0, sizeof *f);
    labels_init(&f->keys);
    labels_init(&f->files);
    f->stack_text = cli_realloc(NULL, STACK_TEXT_BYTES, 1);
}

void ss_frames_free(struct ss_frames *f)
{
    labels_free(&f->keys);
    labels_free(&f->files);
    free(f->frames);
    free(f->indexes);
    free(f->stack_text);
    text_free(&f->key);
    text_free(&f->file);
}

/* ---- labels ---- */

static uint32_t intern(struct ss_frames *f, const char *name, size_t size, uint32_t file)
{
    uint32_t known = f->keys.count, label;

    f->key.size = 0;
    text_append(&f->key, name, size);
    text_printf(&f->key, "\n%" PRIu32, file); /* no clean name has a line break */
    label = labels_intern(&f->keys, f->key.data, f->key.size);
    if (label < known)
        return label;
    f->frames = cli_grow(f->frames, &f->frame_capacity, label, sizeof *f->frames);
    f->frames[label] = (struct ss_frame){.file = file};
    return label;
}

/* The source file; else the path of the module, or what stands for it. */
static uint32_t file_of(struct ss_frames *f, const struct out_frame *frame)
{
    const struct spool_module *m = frame->source_module;
    const char *path = frame->file, *base;
    size_t size;

    if (path)
        return labels_intern(&f->files, path, strlen(path));
    if (!frame->module)
        return SS_NO_LABEL;
    if (!m || m->jit)
        return labels_intern(&f->files, frame->module, frame->module_size);
    base = sym_display_path(frame->module_path, frame->module_path_size, &size);
    text_clean(frame->module_path, (size_t)(base - frame->module_path) + size, &f->file);
    return labels_intern(&f->files, f->file.data, f->file.size);
}

uint32_t ss_frames_label(struct ss_frames *f, const struct out_frame *frame)
{
    uint32_t label = intern(f, frame->name, frame->name_size, file_of(f, frame));

    if (f->frames[label].line == 0)
        f->frames[label].line = frame->start_line;
    return label;
}

uint32_t ss_frames_root(struct ss_frames *f, const char *name, size_t size)
{
    return intern(f, name, size, SS_NO_LABEL);
}

/* ---- indexes ---- */

/* Marks the labels of stacks with a weight and of what leads to them. A child's number is above its parent's. */
static void mark_tree(struct ss_frames *f, const struct otree *tree)
{
    bool *live = cli_zeroed(tree->count, sizeof *live);

    for (uint32_t id = tree->count; id-- > 1;) {
        if (!live[id] && tree->weights[id] == 0)
            continue;
        live[tree->nodes[id].parent] = true;
        f->indexes[tree->nodes[id].label].size = 1;
    }
    free(live);
}

void ss_frames_number(struct ss_frames *f, const struct otree *tree, const bool *used)
{
    uint32_t index = 0;

    f->indexes = cli_zeroed(f->keys.count, sizeof *f->indexes);
    mark_tree(f, tree);
    for (uint32_t label = 0; label < f->keys.count; label++) {
        struct ss_index *i = &f->indexes[label];
        char digits[16];
        int size;

        if (i->size == 0 && !used[label])
            continue;
        size = snprintf(digits, sizeof digits, ",%" PRIu32, index++);
        i->size = (uint8_t)size;
        memcpy(i->text + sizeof i->text - size, digits, (size_t)size);
    }
}

/* ---- stacks ---- */

/* Puts ",INDEX" in front of what begins at `end`. One copy of a fixed size: what it has too much lies further left. */
static inline char *put_index(char *end, const struct ss_index *i)
{
    memcpy(end - sizeof *i, i, sizeof *i);
    return end - i->size;
}

const char *ss_frames_stack(struct ss_frames *f, const struct otree *tree, uint32_t root,
                            uint32_t node, size_t *size)
{
    const struct otree_node *nodes = tree->nodes;
    char *end = f->stack_text + STACK_TEXT_BYTES, *begin = end - 1;

    *begin = ']';
    for (; node != OTREE_ROOT; node = nodes[node].parent)
        begin = put_index(begin, &f->indexes[nodes[node].label]);
    if (root != SS_NO_LABEL)
        begin = put_index(begin, &f->indexes[root]);
    *begin = '['; /* in place of the first comma */
    *size = (size_t)(end - begin);
    return begin;
}

/* ---- writing ---- */

static void write_frame(const struct ss_frames *f, struct json_writer *w, uint32_t label)
{
    const struct ss_frame *frame = &f->frames[label];
    size_t size;
    const char *text = labels_text(&f->keys, label, &size);

    json_begin(w, '{');
    while (text[size - 1] != '\n')
        size--;
    json_key_string(w, "name", text, size - 1);
    if (frame->file != SS_NO_LABEL) {
        text = labels_text(&f->files, frame->file, &size);
        json_key_string(w, "file", text, size);
    }
    if (frame->line > 0)
        json_key_u64(w, "line", frame->line);
    json_end(w, '}');
}

void ss_frames_write(const struct ss_frames *f, struct json_writer *w)
{
    json_begin(w, '[');
    for (uint32_t label = 0; label < f->keys.count; label++)
        if (f->indexes[label].size > 0)
            write_frame(f, w, label);
    json_end(w, ']');
}
