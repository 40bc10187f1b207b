/* SPDX-License-Identifier: MIT */
/* Describing the modules of a spool to libsym, once each. The kernel is in symbols_kernel.c. */
#include "symbols_private.h"

#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "hits.h"
#include "packed_ids.h"
#include "symbols_open.h"
#include "text.h"

struct symbols *symbols_new(const struct symbol_options *o, const struct shape_options *shape)
{
    struct symbols *s = cli_zeroed(1, sizeof *s);

    s->options = o;
    if (o->no_symbols)
        return s;
    if (o->vmlinux && !symbols_vmlinux_fault(o->vmlinux))
        s->vmlinux = o->vmlinux;
    s->context = sym_context_new();
    if (s->context && symbols_open_context(s->context, o, shape) == 0)
        return s;
    if (!s->context)
        cli_error("symbols: out of memory");
    symbols_free(s);
    return NULL;
}

/* Each file of packed symbols that could not be used, once. */
static void warn_packed(const struct symbols *s)
{
    const char *fault;

    for (size_t i = 0; s->context && (fault = sym_packed_fault(s->context, i)) != NULL; i++)
        cli_warn("--symbols %s; the rest is used", fault);
}

void symbols_free(struct symbols *s)
{
    if (!s)
        return;
    warn_packed(s);
    sym_context_free(s->context);
    free(s->handles);
    free(s->module_hits);
    packed_ids_free(s->packed_ids);
    free(s->needed);
    free(s->build_id_note);
    free(s);
}

/* ---- an input ---- */

/* Wall time of a sample, by a clock origin or `clock` note. */
static bool wall_time_us(const struct symbols *s, uint64_t time_ns, uint64_t *us)
{
    struct spool_wall_time wall;

    if (s->aggregate->file_samples == 0 || spool_reader_wall_time(s->reader, time_ns, &wall) <= 0 ||
        wall.seconds < 0 || (uint64_t)wall.seconds > UINT64_MAX / 1000001)
        return false;
    *us = (uint64_t)wall.seconds * 1000000 + wall.nanoseconds / 1000;
    return true;
}

/* The capture's start in wall time: the timeline's anchor, else the first sample. */
static bool start_time_us(const struct symbols *s, uint64_t *us)
{
    *us = spool_reader_header(s->reader)->start_us;
    return *us > 0 || wall_time_us(s, s->aggregate->file_first_ns, us);
}

/* The folder a path leads to, malloc'ed; NULL for standard input. */
static char *folder_of(const char *path)
{
    const char *slash = path ? strrchr(path, '/') : NULL;

    if (!path)
        return NULL;
    if (!slash || slash == path) /* "cap.spool" and "/cap.spool" */
        return text_copy(slash ? "/" : ".", 1);
    return text_copy(path, (size_t)(slash - path));
}

/* What archives have of the capture. That of the one before stays when it is the same: nobody is warned twice. */
static void look_into_archives(struct symbols *s)
{
    char id[CAPTURE_ID_SIZE];

    if (!capture_id(s->reader, id) || strcmp(id, s->capture) != 0) {
        packed_ids_free(s->packed_ids);
        s->packed_ids = NULL;
        strcpy(s->capture, id);
        if (id[0] != '\0') {
            s->packed_ids = packed_ids_read(s->context, &s->options->symbol_dirs, id);
            symbols_warn_foreign(s->context, s->options, id, s->path ? s->path : "standard input");
        }
    }
    s->kallsyms = symbols_archive_has(s->context, s->options, s->capture, "kallsyms");
    s->kernel_packed =
        s->kallsyms || symbols_archive_has(s->context, s->options, s->capture, "kernel.syms");
}

static int begin_capture(struct symbols *s, const char *path)
{
    struct sym_capture capture = {.size = sizeof capture};
    const struct notes *notes = &s->aggregate->notes;
    char boot_id[128], release[256], *folder = folder_of(path);
    int rc;

    if (symbols_note_word(notes_value(notes, "kernel"), 2, boot_id, sizeof boot_id))
        capture.boot_id = boot_id;
    if (symbols_find_release(notes, release, sizeof release))
        capture.release = release;
    capture.has_start_time = start_time_us(s, &capture.start_time_us);
    if (!s->early)
        capture.has_end_time = wall_time_us(s, s->aggregate->file_high_ns, &capture.end_time_us);
    capture.folder = folder;
    look_into_archives(s);
    if (s->capture[0] != '\0')
        capture.id = s->capture;
    rc = sym_capture_begin(s->context, &capture);
    free(folder);
    if (rc == 0)
        return 0;
    cli_error("symbols: %s", sym_context_error(s->context));
    return -1;
}

/* ---- inputs ---- */

static void begin_input(struct symbols *s, const struct tool_input *in, const struct aggregate *a)
{
    s->reader = in->reader;
    s->aggregate = a;
    s->path = in->path;
    s->python_marks = names_has_python_marks(a->names);
    s->handle_count = 0;
    free(s->module_hits);
    s->module_hits = NULL;
}

/* Modules that came since get their handles. */
static void grow_handles(struct symbols *s)
{
    struct spool_counts counts;
    size_t from = s->handle_count;

    spool_reader_counts(s->reader, &counts);
    if (counts.modules <= from)
        return;
    s->handle_count = s->early ? (size_t)counts.modules + counts.modules / 2 : counts.modules;
    s->handles = cli_realloc(s->handles, s->handle_count, sizeof *s->handles);
    for (size_t i = from; i < s->handle_count; i++)
        s->handles[i] = SYM_NO_MODULE;
    if (!s->early)
        return;
    s->build_id_note =
        cli_extend(s->build_id_note, from, s->handle_count, sizeof *s->build_id_note);
}

int symbols_begin(struct symbols *s, const struct tool_input *in, const struct aggregate *a)
{
    begin_input(s, in, a);
    s->early = false;
    grow_handles(s);
    if (!s->context)
        return 0;
    if (s->options->debuginfod)
        s->module_hits = hits_count(s->reader, a);
    return begin_capture(s, in->path) < 0 ? -1 : symbols_load_kernel(s);
}

void symbols_begin_early(struct symbols *s, const struct tool_input *in, const struct aggregate *a)
{
    begin_input(s, in, a);
    s->early = true;
    s->capture_begun = s->kernel_loaded = s->kernel_whole = false;
    s->needed_count = s->not_needed = s->loaded_ksymbols = 0;
    s->build_id_notes_seen = 0;
}

uint32_t symbols_generation(const struct symbols *s)
{
    return s->generation;
}

/* ---- frames ---- */

/* Notes in the order of the file, as they are before notes_finish. */
static const uint8_t *find_early_build_id(struct symbols *s, uint32_t module, size_t *size_bytes)
{
    const struct notes *notes = &s->aggregate->notes;

    for (; s->build_id_notes_seen < notes->build_id_count; s->build_id_notes_seen++) {
        uint32_t about = notes->build_ids[s->build_id_notes_seen].module;

        if (about < s->handle_count)
            s->build_id_note[about] = (uint32_t)s->build_id_notes_seen + 1;
    }
    if (s->build_id_note[module] == 0)
        return NULL;
    *size_bytes = notes->build_ids[s->build_id_note[module] - 1].size_bytes;
    return notes->build_ids[s->build_id_note[module] - 1].bytes;
}

/* A file that hardly any sample hit is not worth a download: fewer than 100 of them, and fewer than 1 %. */
static bool is_rare(const struct symbols *s, uint32_t module)
{
    uint64_t hits = s->module_hits ? s->module_hits[module] : UINT64_MAX;

    return hits < 100 && hits * 100 < s->aggregate->samples;
}

static int describe(struct symbols *s, const struct spool_module *m, uint32_t *handle)
{
    struct sym_jit_name *jit = NULL;
    struct sym_module module = {
        .size = sizeof module,
        .path = m->path,
        .path_size = m->path_size,
        .start = m->start,
        .end = m->end,
        .file_offset = m->file_offset,
        .kernel = m->kernel,
        .jit = m->jit,
        .pid = m->kernel ? 0 : m->pid,
        .inode = m->inode,
        .dev_major = m->dev_major,
        .dev_minor = m->dev_minor,
        .no_download = is_rare(s, m->id),
    };
    int rc;

    module.build_id = s->early ? find_early_build_id(s, m->id, &module.build_id_size)
                               : notes_build_id(&s->aggregate->notes, m->id, &module.build_id_size);
    if (!module.build_id && !m->kernel && !m->jit) {
        const struct packed_id *packed = packed_ids_find(s->packed_ids, m->id);

        if (packed) {
            module.build_id = packed->bytes;
            module.build_id_size = packed->size_bytes;
            module.build_id_assumed = packed->unverified;
        }
    }
    if (m->jit_symbol_count > 0) {
        jit = cli_realloc(NULL, m->jit_symbol_count, sizeof *jit);
        for (size_t i = 0; i < m->jit_symbol_count; i++)
            jit[i] = (struct sym_jit_name){.start = m->jit_symbols[i].start,
                                           .end = m->jit_symbols[i].end,
                                           .name = m->jit_symbols[i].name,
                                           .name_size = m->jit_symbols[i].name_size};
        module.jit_names = jit;
        module.jit_name_count = m->jit_symbol_count;
    }
    rc = sym_module_add(s->context, &module, handle);
    free(jit);
    return rc;
}

/* Whether there is a mapping now, which says which capture it is, and was none when it began. */
static bool is_known_late(const struct symbols *s)
{
    struct spool_counts counts;

    if (s->capture[0] != '\0')
        return false;
    spool_reader_counts(s->reader, &counts);
    return counts.modules > counts.annotations;
}

/* Makes up for what symbols_begin does. */
static int begin_frame(struct symbols *s, const struct spool_frame *f)
{
    if (!s->capture_begun || is_known_late(s)) {
        s->generation += s->capture_begun;
        s->kernel_loaded = s->kernel_whole = false;
        if (begin_capture(s, s->path) < 0)
            return -1;
    }
    s->capture_begun = true;
    s->python_marks = names_has_python_marks(s->aggregate->names);
    grow_handles(s);
    return f->kernel ? symbols_update_kernel(s, f->abs) : 0;
}

static int fail(const struct symbols *s)
{
    cli_error("symbols: %s", sym_context_error(s->context));
    return -1;
}

/* The handle of a module, which is described first where that was not done. 0 or SYM_ERR_*. */
static int find_handle(struct symbols *s, const struct spool_module *module, uint32_t *handle)
{
    int rc = 0;

    if (s->handles[module->id] == SYM_NO_MODULE)
        rc = describe(s, module, &s->handles[module->id]);
    *handle = s->handles[module->id];
    return rc;
}

struct sym_context *symbols_context(struct symbols *s)
{
    return s->context;
}

int symbols_module_handle(struct symbols *s, uint32_t module_id, uint32_t *handle)
{
    const struct spool_module *module = spool_reader_module(s->reader, module_id);

    *handle = SYM_NO_MODULE;
    if (!s->context || !module)
        return 0;
    return find_handle(s, module, handle) < 0 ? fail(s) : 0;
}

int symbols_resolve(struct symbols *s, uint32_t frame, const struct source *source,
                    struct resolved *out)
{
    struct spool_frame f;
    struct sym_query q = {.module = SYM_NO_MODULE, .pid = source->pid};
    int rc;

    memset(out, 0, sizeof *out);
    out->module_id = SPOOL_NO_ID;
    if (!spool_reader_frame(s->reader, frame, &f) || f.kind == SPOOL_FRAME_TRUNCATED) {
        out->truncated = true;
        return 0;
    }
    out->kernel = f.kernel;
    out->unpinned = f.kind == SPOOL_FRAME_UNPINNED;
    out->abs = f.abs;
    rc = spool_reader_locate(s->reader, frame, source->pid, &out->module_id, &out->rel);
    if (rc < 0) {
        cli_error("out of memory");
        return -1;
    }
    if (rc > 0)
        out->module = spool_reader_module(s->reader, out->module_id);
    /* Which module an unpinned frame has, and what a perf map says, depends on the process. */
    out->per_process =
        !f.kernel && (f.kind == SPOOL_FRAME_UNPINNED || !out->module ||
                      sym_is_anonymous_path(out->module->path, out->module->path_size));
    /* What may come later, or a load of more of the kernel, can change any of its names. */
    out->per_epoch = f.kernel && (s->early || epochs_differ(&s->aggregate->epochs, f.abs));
    if (!s->context)
        return 0;
    if (s->early && begin_frame(s, &f) < 0)
        return -1;
    if (out->module && find_handle(s, out->module, &q.module) < 0)
        return fail(s);
    q.kernel = f.kernel;
    q.abs = out->abs;
    q.rel = out->rel;
    q.time = source->kernel_epoch;
    q.python_allowed = source->python || !s->python_marks;
    rc = sym_resolve(s->context, &q, &out->frames, &out->frame_count);
    return rc < 0 ? fail(s) : 0;
}

/* ---- many frames at once ---- */

/* Frames that are asked for at a time, some 5 MiB. */
#define PREPARED_FRAMES ((size_t)1 << 16)

/* By frame: whether it is in a stack that counts. NULL: all may be. */
static uint8_t *mark_frames(const struct symbols *s, const struct spool_counts *counts)
{
    const struct aggregate *a = s->aggregate;
    const struct spool_stack_node *nodes = spool_reader_stack_nodes(s->reader);
    uint8_t *frames, *stacks;

    if (a->everything)
        return NULL;
    frames = cli_zeroed(counts->frames, 1);
    stacks = cli_zeroed(counts->stacks, 1);
    for (size_t i = 0; i < a->cell_count; i++) {
        for (uint32_t at = a->cells[i].stack; at != SPOOL_NO_ID && !stacks[at];
             at = nodes[at].prefix) {
            stacks[at] = 1;
            frames[nodes[at].frame] = 1;
        }
    }
    free(stacks);
    return frames;
}

/* Whether a frame's name is the same in all processes and epochs, and in a file that takes time to be looked up: makes
 * the query then. 1, 0 or -1 after an error message. */
static int make_query(struct symbols *s, uint32_t frame, struct sym_query *q)
{
    const struct spool_module *module;
    struct spool_frame f;

    if (!spool_reader_frame(s->reader, frame, &f) || f.kind != SPOOL_FRAME_PINNED || f.kernel)
        return 0;
    module = spool_reader_module(s->reader, f.module_id);
    if (!module || module->kernel || module->jit ||
        sym_is_anonymous_path(module->path, module->path_size))
        return 0;
    *q = (struct sym_query){.pid = module->pid, .abs = f.abs, .rel = f.rel};
    return find_handle(s, module, &q->module) < 0 ? fail(s) : 1;
}

int symbols_prepare(struct symbols *s)
{
    struct spool_counts counts;
    struct sym_query *queries;
    struct sym_answer *answers;
    uint8_t *used;
    size_t n = 0, room;
    int rc = 0;

    if (!s->context)
        return 0;
    spool_reader_counts(s->reader, &counts);
    used = mark_frames(s, &counts);
    room = counts.frames < PREPARED_FRAMES ? counts.frames : PREPARED_FRAMES;
    queries = cli_realloc(NULL, room, sizeof *queries);
    answers = cli_realloc(NULL, room, sizeof *answers);
    for (uint32_t frame = 0; frame < counts.frames && rc >= 0; frame++) {
        rc = !used || used[frame] ? make_query(s, frame, &queries[n]) : 0;
        n += rc > 0;
        if (rc >= 0 && n > 0 && (n == room || frame + 1 == counts.frames)) {
            rc = sym_resolve_many(s->context, queries, n, answers) < 0 ? fail(s) : 0;
            n = 0;
        }
    }
    free(queries);
    free(answers);
    free(used);
    return rc < 0 ? -1 : 0;
}

/* ---- for the report ---- */

const char *symbols_miss_text(const struct symbols *s, uint32_t module_id, const char **detail)
{
    enum sym_miss miss;

    *detail = "";
    if (!s->context || module_id >= s->handle_count || s->handles[module_id] == SYM_NO_MODULE)
        return sym_miss_text(SYM_MISS_DISABLED);
    miss = sym_module_state(s->context, s->handles[module_id], detail);
    return miss == SYM_MISS_NONE ? NULL : sym_miss_text(miss);
}

const char *symbols_debug_text(const struct symbols *s, uint32_t module_id)
{
    const char *detail;

    if (symbols_miss_text(s, module_id, &detail) || *detail == '\0')
        return NULL;
    /* So it is with most files of a system, and nothing is wrong with them. */
    return strstr(detail, ": stripped, and no") ? NULL : detail;
}

const char *symbols_perf_map_text(const struct symbols *s, int32_t pid, const char **path)
{
    struct sym_perf_map_state state;

    *path = "";
    if (!s->context || !sym_perf_map_state(s->context, pid, &state))
        return NULL;
    if (state.miss == SYM_MISS_NONE && state.entries > 0)
        return NULL;
    *path = state.path;
    return state.miss == SYM_MISS_NONE ? "no entries" : sym_miss_text(state.miss);
}
