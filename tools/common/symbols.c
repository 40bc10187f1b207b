/* SPDX-License-Identifier: MIT */
/* Describing the modules and the kernel of a spool to libsym, once each. */
#include "symbols.h"

#include <stdlib.h>
#include <string.h>

#include "cli.h"

struct symbols {
    const struct symbol_options *options;
    struct sym_context *context; /* NULL with --no-symbols */
    struct spool_reader *reader;
    const struct notes *notes;
    bool python_marks;
    bool kernel_loaded;
    bool kallsyms_warned; /* --kallsyms was complained about: once is enough for all inputs */
    uint32_t *handles;    /* by module id of the present input; SYM_NO_MODULE: not described yet */
    size_t handle_count;
};

struct symbols *symbols_new(const struct symbol_options *o, enum sym_demangle demangle)
{
    struct symbols *s = cli_realloc(NULL, 1, sizeof *s);
    struct sym_options options = {
        .size = sizeof options,
        .sysroot = o->sysroot,
        .demangle = demangle,
        .perf_maps = o->perf_maps,
        .perf_map_dir = o->perf_map_dir,
    };
    int32_t *pids = NULL;
    int rc = 0;

    memset(s, 0, sizeof *s);
    s->options = o;
    if (o->no_symbols)
        return s;
    if (o->perf_map_pids.count > 0) {
        pids = cli_realloc(NULL, o->perf_map_pids.count, sizeof *pids);
        for (size_t i = 0; i < o->perf_map_pids.count; i++)
            pids[i] = (int32_t)o->perf_map_pids.items[i];
        options.perf_map_pids = pids;
        options.perf_map_pid_count = o->perf_map_pids.count;
    }
    s->context = sym_context_new();
    if (s->context)
        rc = sym_context_open(s->context, &options);
    free(pids);
    if (s->context && rc == 0)
        return s;
    cli_error("symbols: %s", s->context ? sym_context_error(s->context) : "out of memory");
    symbols_free(s);
    return NULL;
}

void symbols_free(struct symbols *s)
{
    if (!s)
        return;
    sym_context_free(s->context);
    free(s->handles);
    free(s);
}

/* The capture's start in wall time: the timeline's anchor, else the first sample by a clock origin or `clock` note. */
static bool start_time_us(struct spool_reader *reader, uint64_t first_ns, uint64_t *us)
{
    struct spool_wall_time wall;

    *us = spool_reader_header(reader)->start_us;
    if (*us > 0)
        return true;
    if (spool_reader_wall_time(reader, first_ns, &wall) <= 0 || wall.seconds < 0 ||
        (uint64_t)wall.seconds > UINT64_MAX / 1000001)
        return false;
    *us = (uint64_t)wall.seconds * 1000000 + wall.nanoseconds / 1000;
    return true;
}

static int begin_capture(struct symbols *s, uint64_t first_ns)
{
    struct sym_capture capture = {.size = sizeof capture};
    const char *note = notes_value(s->notes, "kernel");
    char boot_id[128];

    if (note && notes_word(note, 2, boot_id, sizeof boot_id))
        capture.boot_id = boot_id;
    capture.has_start_time = start_time_us(s->reader, first_ns, &capture.start_time_us);
    if (sym_capture_begin(s->context, &capture) == 0)
        return 0;
    cli_error("symbols: %s", sym_context_error(s->context));
    return -1;
}

static int load_kernel(struct symbols *s)
{
    struct sym_kernel kernel = {.size = sizeof kernel, .kallsyms = s->options->kallsyms};
    int rc;

    if (s->options->no_kernel_symbols)
        return 0;
    if (spool_reader_kernel_addresses(s->reader, &kernel.needed, &kernel.needed_count) < 0) {
        cli_error("out of memory");
        return -1;
    }
    if (kernel.needed_count == 0 && !kernel.kallsyms)
        return 0;
    rc = sym_kernel_load(s->context, &kernel);
    s->kernel_loaded = true;
    switch (rc) {
    case SYM_ERR_NOT_FOUND:
    case SYM_ERR_IO:
    case SYM_ERR_FORMAT:
        /* A file of names that cannot be used never fails a conversion (cli.md 5). */
        if (!s->kallsyms_warned)
            cli_warn("%s; kernel frames stay addresses", sym_context_error(s->context));
        s->kallsyms_warned = true;
        return 0;
    default:
        if (rc < 0)
            cli_error("%s", sym_context_error(s->context));
        return rc < 0 ? -1 : 0;
    }
}

int symbols_begin(struct symbols *s, struct spool_reader *reader, const struct notes *notes,
                  const struct names *names, uint64_t first_ns)
{
    struct spool_counts counts;

    s->reader = reader;
    s->notes = notes;
    s->python_marks = names_has_python_marks(names);
    spool_reader_counts(reader, &counts);
    s->handle_count = counts.modules;
    s->handles = cli_realloc(s->handles, s->handle_count ? s->handle_count : 1, sizeof *s->handles);
    for (size_t i = 0; i < s->handle_count; i++)
        s->handles[i] = SYM_NO_MODULE;
    if (!s->context)
        return 0;
    return begin_capture(s, first_ns) < 0 ? -1 : load_kernel(s);
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
    };
    int rc;

    module.build_id = notes_build_id(s->notes, m->id, &module.build_id_size);
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
    if (!s->context)
        return 0;
    if (out->module) {
        q.module = s->handles[out->module_id];
        if (q.module == SYM_NO_MODULE) {
            rc = describe(s, out->module, &q.module);
            if (rc < 0)
                goto fail;
            s->handles[out->module_id] = q.module;
        }
    }
    q.kernel = f.kernel;
    q.abs = out->abs;
    q.rel = out->rel;
    q.python_allowed = source->python || !s->python_marks;
    rc = sym_resolve(s->context, &q, &out->frames, &out->frame_count);
    if (rc == 0)
        return 0;
fail:
    cli_error("symbols: %s", sym_context_error(s->context));
    return -1;
}

const char *symbols_miss_text(const struct symbols *s, uint32_t module_id, const char **detail)
{
    enum sym_miss miss;

    *detail = "";
    if (!s->context || module_id >= s->handle_count || s->handles[module_id] == SYM_NO_MODULE)
        return sym_miss_text(SYM_MISS_DISABLED);
    miss = sym_module_state(s->context, s->handles[module_id], detail);
    return miss == SYM_MISS_NONE ? NULL : sym_miss_text(miss);
}

const char *symbols_kernel_text(const struct symbols *s)
{
    enum sym_kernel_state state;

    if (s->options->no_kernel_symbols)
        return sym_miss_text(SYM_MISS_DISABLED);
    if (!s->context || !s->kernel_loaded)
        return NULL;
    state = sym_kernel_state(s->context);
    return state == SYM_KERNEL_OK ? NULL : sym_kernel_state_text(state);
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
