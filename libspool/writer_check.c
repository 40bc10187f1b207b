/* SPDX-License-Identifier: MIT */
/*
 * What a writer refuses: everything that a reader of the same version would, before a byte of it is written.
 */
#include <inttypes.h>

#include "format.h"
#include "utf8.h"
#include "writer_internal.h"

/* A symbol's three varints, for the limit on the size of a JIT module. */
#define JIT_SYMBOL_OVERHEAD ((size_t)3 * FORMAT_VARINT_MAX_SIZE)

int spoolint_writer_id_limit_error(struct spool_writer *w, const char *what)
{
    return spoolint_error_set(&w->error, SPOOL_ERR_LIMIT, "no more than %" PRIu32 " %s fit a spool",
                              w->id_count_max, what);
}

bool spoolint_writer_bad_pid(const struct spool_writer *w, int32_t pid)
{
    return w->version >= FORMAT_VERSION_ORIGIN && pid < 1;
}

int spoolint_writer_pid_error(struct spool_writer *w, const char *what, int32_t pid)
{
    return writer_misuse(w, "%s with process id %" PRId32 ": version %" PRIu32 " needs 1 or more",
                         what, pid, w->version);
}

int spoolint_writer_check_thread(struct spool_writer *w, const char *what, int32_t pid,
                                 uint64_t tid)
{
    if (spoolint_writer_bad_pid(w, pid))
        return spoolint_writer_pid_error(w, what, pid);
    if (w->version >= FORMAT_VERSION_ORIGIN && (tid < 1 || tid > FORMAT_TID_MAX_V4))
        return writer_misuse(w, "%s with thread id %" PRIu64 ": version %" PRIu32 " needs 1 to %u",
                             what, tid, w->version, FORMAT_TID_MAX_V4);
    return 0;
}

int spoolint_writer_check_delta(struct spool_writer *w, uint64_t time_ns, int64_t *delta_ns)
{
    uint64_t distance = time_ns >= w->time_ns ? time_ns - w->time_ns : w->time_ns - time_ns;
    uint64_t limit = time_ns >= w->time_ns ? (uint64_t)INT64_MAX : (uint64_t)INT64_MAX + 1;

    if (distance > limit)
        return writer_misuse(w,
                             "sample at %" PRIu64
                             " ns is more than 63 bits away from the one before it, at %" PRIu64
                             " ns",
                             time_ns, w->time_ns);
    *delta_ns = (int64_t)(time_ns - w->time_ns); /* two's complement, and within its range */
    return 0;
}

static int check_pinned(struct spool_writer *w, uint32_t module_id, uint64_t address)
{
    const struct module_facts *m;

    if (module_id >= w->module_count)
        return writer_misuse(w, "frame in module %" PRIu32 " of %" PRIu32, module_id,
                             w->module_count);
    if (w->modules[module_id / MODULES_A_CHUNK] == NULL)
        return 0; /* retired long ago */
    m = &w->modules[module_id / MODULES_A_CHUNK]->facts[module_id % MODULES_A_CHUNK];
    if (address < m->file_offset || address - m->file_offset >= m->size)
        return writer_misuse(w,
                             "frame at 0x%" PRIx64 " lies outside module %" PRIu32
                             ", which has 0x%" PRIx64 " bytes from 0x%" PRIx64 " on",
                             address, module_id, m->size, m->file_offset);
    return 0;
}

int spoolint_writer_check_frame_kind(struct spool_writer *w, enum spool_frame_kind kind,
                                     bool kernel, uint32_t module_id, uint64_t address)
{
    switch (kind) {
    case SPOOL_FRAME_PINNED:
        return check_pinned(w, module_id, address);
    case SPOOL_FRAME_UNPINNED:
        return 0;
    case SPOOL_FRAME_TRUNCATED:
        if (address != 0 || kernel)
            return writer_misuse(w, "truncated-stack marker with %s",
                                 address != 0 ? "an address" : "the kernel's mode");
        return 0;
    }
    return writer_misuse(w, "frame of unknown kind %d", (int)kind);
}

static int check_jit_symbols(struct spool_writer *w, const struct spool_module *m)
{
    uint64_t bytes = m->path_size;

    if (w->version < FORMAT_VERSION_ORIGIN)
        return writer_misuse(w, "JIT module in version %" PRIu32, w->version);
    if (m->kernel)
        return writer_misuse(w, "JIT module of the kernel");
    if (m->jit_symbol_count > FORMAT_JIT_SYMBOLS_MAX)
        return writer_misuse(w, "JIT module with %zu symbols, above %u", m->jit_symbol_count,
                             FORMAT_JIT_SYMBOLS_MAX);
    for (size_t i = 0; i < m->jit_symbol_count; i++) {
        const struct spool_jit_symbol *s = &m->jit_symbols[i];

        if (s->start >= s->end || s->start < m->start || s->end > m->end)
            return writer_misuse(w,
                                 "JIT symbol %zu at 0x%" PRIx64 "-0x%" PRIx64
                                 " is not inside 0x%" PRIx64 "-0x%" PRIx64,
                                 i, s->start, s->end, m->start, m->end);
        if (s->name_size == 0 && s->name && *s->name)
            return writer_misuse(w, "JIT symbol %zu has a name but not its size", i);
        if (s->name_size > FORMAT_JIT_NAME_MAX)
            return writer_misuse(w, "JIT symbol %zu has a name of %zu bytes, above %u", i,
                                 s->name_size, FORMAT_JIT_NAME_MAX);
        if (s->name_size > 0 && spoolint_utf8_valid_prefix(s->name, s->name_size) != s->name_size)
            return writer_misuse(w, "JIT symbol %zu has a name that is not UTF-8", i);
        if (i > 0 && s->start < m->jit_symbols[i - 1].start)
            return writer_misuse(w, "JIT symbol %zu starts before the one in front of it", i);
        bytes += s->name_size + JIT_SYMBOL_OVERHEAD;
    }
    if (bytes > FORMAT_JIT_BYTES_LIMIT)
        return spoolint_error_set(&w->error, SPOOL_ERR_LIMIT,
                                  "JIT module of %" PRIu64 " bytes, above %u", bytes,
                                  FORMAT_JIT_BYTES_LIMIT);
    return 0;
}

int spoolint_writer_check_module(struct spool_writer *w, const struct spool_module *m)
{
    if (!m->kernel && spoolint_writer_bad_pid(w, m->pid))
        return spoolint_writer_pid_error(w, "module", m->pid);
    if (w->version < FORMAT_VERSION_IDENTITY &&
        (m->dev_major != 0 || m->dev_minor != 0 || m->inode_gen != 0))
        return writer_misuse(w, "module with a device or generation in version %" PRIu32,
                             w->version);
    if (m->path_size == 0 && m->path && *m->path)
        return writer_misuse(w, "module with a path but without its size");
    if (m->path_size > FORMAT_PATH_LIMIT)
        return spoolint_error_set(&w->error, SPOOL_ERR_LIMIT,
                                  "module with a path of %zu bytes, above %u", m->path_size,
                                  FORMAT_PATH_LIMIT);
    if (w->version < FORMAT_VERSION_ORIGIN && m->path_size > 0 &&
        spoolint_utf8_valid_prefix(m->path, m->path_size) != m->path_size)
        return writer_misuse(w, "module with a path that is not UTF-8 in version %" PRIu32,
                             w->version);
    if (m->jit) {
        int rc = check_jit_symbols(w, m);

        if (rc < 0)
            return rc;
    }
    return w->module_count < w->id_count_max ? 0 : spoolint_writer_id_limit_error(w, "modules");
}

int spoolint_writer_check_header(struct spool_writer *w, const struct spool_header *h)
{
    const struct spool_origin *o = &h->origin;
    uint32_t oldest = w->old_versions ? FORMAT_VERSION_MIN : FORMAT_VERSION_IDENTITY;

    if (h->version < oldest || h->version > FORMAT_VERSION_MAX)
        return writer_misuse(w, "version %" PRIu32 " is not written, only %" PRIu32 " to %d",
                             h->version, oldest, FORMAT_VERSION_MAX);
    if (h->version < FORMAT_VERSION_ORIGIN || !h->has_origin)
        return 0;
    if (o->sign != 1 && o->sign != -1)
        return writer_misuse(w, "clock origin with sign %" PRId32, o->sign);
    if (o->nanoseconds > FORMAT_NANOSECONDS_MAX)
        return writer_misuse(w, "clock origin with %" PRIu32 " nanoseconds", o->nanoseconds);
    /* As a signed count of seconds with nanoseconds counted upwards: -2^63 is the last one. */
    if (o->seconds > INT64_MAX &&
        (o->sign != -1 || o->seconds != (uint64_t)INT64_MAX + 1 || o->nanoseconds != 0))
        return writer_misuse(w, "clock origin %" PRIu64 " seconds away from 1970", o->seconds);
    return 0;
}
