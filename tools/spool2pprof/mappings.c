/* SPDX-License-Identifier: MIT */
/* From modules of spools to mappings of one profile. */
#include "mappings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "notes.h"
#include "trim.h"

#define KERNEL_START UINT64_C(0x8000000000000000)

/* What makes two ranges one mapping. Compared as bytes, so there is no padding. */
enum mapping_identity { BY_NAME = 0, BY_BUILD_ID, BY_PLACE, PSEUDO };

struct mapping_key {
    uint32_t identity; /* enum mapping_identity */
    uint32_t text;     /* name or build id */
    uint64_t file_offset;
    uint64_t size;  /* rounded up to pages */
    uint64_t start; /* BY_PLACE: this range of ... */
    int32_t pid;    /* ... this process */
    uint32_t zero;
};

/* The main binary of a process, if it is that of the profile. */
struct main_module {
    int32_t pid;
    uint32_t program; /* module id: the first file that is no library */
    uint32_t named;   /* the first module with a name */
};

void mappings_init(struct mappings *m, struct stringtable *strings,
                   const struct trim_list *trim_paths)
{
    memset(m, 0, sizeof *m);
    m->trim_paths = trim_paths;
    m->strings = strings;
    m->main = MAPPINGS_NONE;
    labels_init(&m->keys);
}

void mappings_free(struct mappings *m)
{
    labels_free(&m->keys);
    free(m->items);
    free(m->used);
    free(m->by_module);
    free(m->mains);
    text_free(&m->text);
    text_free(&m->path);
}

static uint32_t intern(struct mappings *m, const struct mapping_key *key,
                       const struct mapping *mapping)
{
    uint32_t number = labels_intern(&m->keys, (const char *)key, sizeof *key);

    if (number < m->count)
        return number;
    m->items = cli_grow(m->items, &m->capacity, m->count, sizeof *m->items);
    m->items[m->count] = *mapping;
    return m->count++;
}

/* ---- what is no module ---- */

static uint32_t pseudo_mapping(struct mappings *m, const char *name)
{
    struct mapping mapping = {.pseudo = true};
    struct mapping_key key = {.identity = PSEUDO};

    mapping.filename = key.text = stringtable_text(m->strings, name, strlen(name));
    return intern(m, &key, &mapping);
}

static uint32_t build_id_text(struct mappings *m, const uint8_t *bytes, size_t size)
{
    m->text.size = 0;
    text_append_hex(&m->text, bytes, size);
    return stringtable_text(m->strings, m->text.data, m->text.size);
}

/* Every process has the same kernel, so it is one mapping, over all addresses that a kernel may have. */
static uint32_t kernel_mapping(struct mappings *m)
{
    struct mapping mapping = {
        .start = KERNEL_START, .limit = UINT64_MAX, .pseudo = true, .symbolizable = true};
    struct mapping_key key = {.identity = PSEUDO};
    const char *note = notes_value(&m->input->aggregate->notes, "kernel");
    uint8_t bytes[NOTES_BUILD_ID_MAX];
    char hex[2 * NOTES_BUILD_ID_MAX + 1];
    size_t size = 0;

    mapping.filename = stringtable_text(m->strings, "[kernel.kallsyms]", 17);
    key.text = mapping.filename;
    if (note && notes_word(note, 1, hex, sizeof hex))
        size = notes_hex(hex, strlen(hex), bytes);
    if (size > 0) {
        mapping.build_id = build_id_text(m, bytes, size);
        key.identity = BY_BUILD_ID;
        key.text = mapping.build_id;
        key.start = KERNEL_START;
    }
    return intern(m, &key, &mapping);
}

/* ---- modules ---- */

static bool is_file(const struct spool_module *module)
{
    return !sym_is_anonymous_path(module->path, module->path_size) && module->path[0] != '[';
}

/* The path as it is shown; that a file was removed while it ran is not part of its name. */
static uint32_t filename_text(struct mappings *m, const struct spool_module *module, bool file)
{
    static const char deleted[] = " (deleted)";
    size_t size, suffix = sizeof deleted - 1;
    const char *path = trim_module(m->trim_paths, module, &m->path, &size);

    if (file && size > suffix && memcmp(path + size - suffix, deleted, suffix) == 0)
        size -= suffix;
    text_clean(path, size, &m->text);
    return stringtable_text(m->strings, m->text.data, m->text.size);
}

static uint32_t make_module(struct mappings *m, const struct spool_module *module)
{
    bool file = is_file(module);
    struct mapping mapping = {
        .start = module->start,
        .limit = module->end,
        .file_offset = module->file_offset,
        .filename = filename_text(m, module, file),
        .symbolizable = file || module->kernel,
    };
    struct mapping_key key = {
        .identity = BY_NAME,
        .text = mapping.filename,
        .file_offset = mapping.file_offset,
        .size = (module->end - module->start + 0xfff) & ~UINT64_C(0xfff),
    };
    size_t size = 0;
    const uint8_t *build_id = mapping.symbolizable
                                  ? notes_build_id(&m->input->aggregate->notes, module->id, &size)
                                  : NULL;

    if (build_id) {
        mapping.build_id = build_id_text(m, build_id, size);
        key.identity = BY_BUILD_ID;
        key.text = mapping.build_id;
    } else if (!module->kernel && sym_is_anonymous_path(module->path, module->path_size)) {
        key.identity = BY_PLACE; /* what lies there is this process's own */
        key.start = module->start;
        key.size = module->end - module->start;
        key.pid = module->pid;
    }
    return intern(m, &key, &mapping);
}

static uint32_t of_module(struct mappings *m, const struct spool_module *module)
{
    uint32_t *known = &m->by_module[module->id];

    if (*known == MAPPINGS_NONE)
        *known = module->jit ? pseudo_mapping(m, "[jit]") : make_module(m, module);
    return *known;
}

uint32_t mappings_of_frame(struct mappings *m, const struct out_frame *frame, uint64_t *address)
{
    uint32_t mapping;

    *address = frame->abs;
    if (frame->source_module) {
        mapping = of_module(m, frame->source_module);
        if (!frame->source_module->jit)
            *address += m->items[mapping].start - frame->source_module->start;
        return mapping;
    }
    if (frame->flags & FRAME_KERNEL)
        return kernel_mapping(m);
    return pseudo_mapping(m, frame->flags & FRAME_JIT ? "[perf-map]" : "[unknown]");
}

/* ---- the main binary ---- */

static bool is_library(const char *name, size_t size)
{
    if (size >= 3 && (memcmp(name, "ld-", 3) == 0 || memcmp(name + size - 3, ".so", 3) == 0))
        return true;
    for (size_t i = 0; i + 4 <= size; i++)
        if (memcmp(name + i, ".so.", 4) == 0)
            return true;
    return false;
}

static bool is_program(const struct spool_module *module)
{
    size_t size;
    const char *name;

    if (!is_file(module) || module->path[0] != '/')
        return false;
    name = sym_display_path(module->path, module->path_size, &size);
    return !is_library(name, size);
}

static int by_pid_and_module(const void *a, const void *b)
{
    const struct main_module *x = a, *y = b;

    if (x->pid != y->pid)
        return x->pid < y->pid ? -1 : 1;
    return (x->named > y->named) - (x->named < y->named);
}

/* The main binaries of all processes of an input: its named modules sorted, then those of a process made one. */
static void find_mains(struct mappings *m)
{
    struct spool_counts counts;
    size_t capacity = 0, kept = 0;

    spool_reader_counts(m->input->reader, &counts);
    m->main_count = 0;
    for (uint32_t id = 0; id < counts.modules; id++) {
        const struct spool_module *module = spool_reader_module(m->input->reader, id);

        if (!module || module->kernel || module->jit || module->path_size == 0)
            continue;
        if (module->end <= module->start) /* legal, but it maps nothing */
            continue;
        m->mains = cli_grow(m->mains, &capacity, m->main_count, sizeof *m->mains);
        m->mains[m->main_count++] = (struct main_module){
            .pid = module->pid, .program = is_program(module) ? id : SPOOL_NO_ID, .named = id};
    }
    if (m->main_count > 1)
        qsort(m->mains, m->main_count, sizeof *m->mains, by_pid_and_module);
    for (size_t i = 0; i < m->main_count; i++) {
        if (kept == 0 || m->mains[kept - 1].pid != m->mains[i].pid)
            m->mains[kept++] = m->mains[i];
        else if (m->mains[kept - 1].program == SPOOL_NO_ID)
            m->mains[kept - 1].program = m->mains[i].program;
    }
    m->main_count = kept;
}

void mappings_begin(struct mappings *m, const struct stacks_input *input)
{
    struct spool_counts counts;

    m->input = input;
    m->has_process = false;
    spool_reader_counts(input->reader, &counts);
    m->by_module = cli_realloc(m->by_module, counts.modules, sizeof *m->by_module);
    for (uint32_t id = 0; id < counts.modules; id++)
        m->by_module[id] = MAPPINGS_NONE;
    free(m->mains);
    m->mains = NULL;
    find_mains(m);
}

static uint32_t main_of_process(struct mappings *m, int32_t pid)
{
    size_t low = 0, high = m->main_count;
    uint32_t id;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (m->mains[middle].pid < pid)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == m->main_count || m->mains[low].pid != pid)
        return MAPPINGS_NONE;
    id = m->mains[low].program != SPOOL_NO_ID ? m->mains[low].program : m->mains[low].named;
    return of_module(m, spool_reader_module(m->input->reader, id));
}

void mappings_count(struct mappings *m, int32_t pid, uint64_t samples)
{
    if (!m->has_process || m->process != pid) {
        m->has_process = true;
        m->process = pid;
        m->process_main = main_of_process(m, pid);
        m->process_samples = 0;
    }
    m->process_samples += samples;
    if (m->process_samples > m->main_samples) {
        m->main_samples = m->process_samples;
        m->main = m->process_main;
    }
}

/* ---- the document ---- */

static void list(struct mappings *m, uint32_t mapping)
{
    if (m->items[mapping].used)
        return;
    m->items[mapping].used = true;
    m->used = cli_grow(m->used, &m->used_capacity, m->used_count, sizeof *m->used);
    m->used[m->used_count++] = mapping;
}

void mappings_use(struct mappings *m, uint32_t mapping, uint32_t flags)
{
    list(m, mapping);
    m->items[mapping].flags |= flags;
}

/* Readers take the first mapping for the program. */
void mappings_number(struct mappings *m)
{
    uint32_t *order, n = 0;

    if (m->main != MAPPINGS_NONE)
        list(m, m->main);
    order = cli_realloc(NULL, m->used_count, sizeof *order);
    if (m->main != MAPPINGS_NONE)
        order[n++] = m->main;
    for (int pseudo = 0; pseudo < 2; pseudo++)
        for (uint32_t i = 0; i < m->used_count; i++)
            if (m->used[i] != m->main && m->items[m->used[i]].pseudo == (pseudo == 1))
                order[n++] = m->used[i];
    for (uint32_t i = 0; i < n; i++)
        m->items[order[i]].id = i + 1;
    free(m->used);
    m->used = order;
    m->used_capacity = m->used_count;
}
