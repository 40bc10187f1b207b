/* SPDX-License-Identifier: MIT */
/*
 * Records as they are given: the caller has the ids, which must be those that a reader expects.
 */
#include <inttypes.h>

#include "intern.h"
#include "writer_internal.h"

static int check_next_id(struct spool_writer *w, const char *what, uint32_t id, uint32_t next)
{
    if (id != next)
        return writer_misuse(w, "%s %" PRIu32 ", where the next id is %" PRIu32, what, id, next);
    return 0;
}

static int check_new_id(struct spool_writer *w, const char *what, const char *plural, uint32_t id,
                        uint32_t next)
{
    int rc = check_next_id(w, what, id, next);

    if (rc == 0 && next >= w->id_count_max)
        rc = spoolint_writer_id_limit_error(w, plural);
    return rc;
}

static int check_reference(struct spool_writer *w, const char *what, uint32_t id, uint32_t count)
{
    if (id >= count)
        return writer_misuse(w, "record refers to %s %" PRIu32 " of %" PRIu32, what, id, count);
    return 0;
}

static int put_module(struct spool_writer *w, enum spool_record_type type,
                      const struct spool_module *m)
{
    int rc = check_next_id(w, "module", m->id, w->module_count);

    return rc < 0 ? rc : spoolint_writer_put_module(w, type, m);
}

/* The records that define ids or use them. */
static int put_with_ids(struct spool_writer *w, const struct spool_record *rec)
{
    struct intern *ids = &w->ids;
    int64_t delta_ns = 0;
    int rc = spoolint_writer_check_mode(w, IDS_GIVEN);

    if (rc < 0)
        return rc;
    switch (rec->type) {
    case SPOOL_RECORD_FRAME: {
        const struct spool_frame *f = &rec->frame;

        rc = check_new_id(w, "frame", "frames", f->id, ids->frame_count);
        if (rc == 0)
            rc = spoolint_writer_check_frame_kind(w, f->kind, f->kernel, f->module_id,
                                                  f->kind == SPOOL_FRAME_PINNED ? f->rel : f->abs);
        if (rc == 0)
            ids->frame_count++;
        break;
    }
    case SPOOL_RECORD_STACK:
        rc = check_new_id(w, "stack node", "stack nodes", rec->stack.id, ids->stack_count);
        if (rc == 0 && rec->stack.prefix != SPOOL_NO_ID)
            rc = check_reference(w, "stack node", rec->stack.prefix, ids->stack_count);
        if (rc == 0)
            rc = check_reference(w, "frame", rec->stack.frame, ids->frame_count);
        if (rc == 0)
            ids->stack_count++;
        break;
    case SPOOL_RECORD_THREAD:
        rc = check_new_id(w, "thread", "threads", rec->thread.id, ids->thread_count);
        if (rc == 0)
            rc = spoolint_writer_check_thread(w, "thread", rec->thread.pid, rec->thread.tid);
        if (rc == 0)
            ids->thread_count++;
        break;
    default:
        rc = spoolint_writer_check_delta(w, rec->sample.time_ns, &delta_ns);
        if (rc == 0)
            rc = check_reference(w, "thread", rec->sample.thread, ids->thread_count);
        if (rc == 0)
            rc = check_reference(w, "stack node", rec->sample.stack, ids->stack_count);
        if (rc < 0)
            return rc;
        w->mode = IDS_GIVEN;
        return spoolint_writer_put_sample(w, rec->sample.time_ns, delta_ns, rec->sample.thread,
                                          rec->sample.stack);
    }
    if (rc < 0)
        return rc;
    w->mode = IDS_GIVEN;
    return spoolint_writer_emit(w, rec);
}

int spool_writer_put(struct spool_writer *w, const struct spool_record *record)
{
    int rc = spoolint_writer_ready(w);

    if (rc < 0)
        return rc;
    switch (record->type) {
    case SPOOL_RECORD_MODULE:
    case SPOOL_RECORD_JIT_MODULE:
        return put_module(w, record->type, &record->module);
    case SPOOL_RECORD_ANNOTATION:
        return put_module(w, record->type, &record->annotation.module);
    case SPOOL_RECORD_FRAME:
    case SPOOL_RECORD_STACK:
    case SPOOL_RECORD_THREAD:
    case SPOOL_RECORD_SAMPLE:
        return put_with_ids(w, record);
    case SPOOL_RECORD_PYTHON:
        return spool_writer_python(w, record->python.time_ns, record->python.pid,
                                   record->python.on);
    case SPOOL_RECORD_DEACTIVATE_PROCESS:
        return spool_writer_deactivate_process(w, record->deactivated_pid);
    case SPOOL_RECORD_DEACTIVATE_MODULE:
        return spool_writer_deactivate_module(w, record->deactivated_module);
    }
    return writer_misuse(w, "record of unknown type %d", (int)record->type);
}
