/* SPDX-License-Identifier: MIT */
/*
 * What the kernel tells beside samples: mappings, names, forks, ends, losses; and reading it all again from /proc
 * when some of it may have been lost.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "procfs.h"
#include "session.h"

static void copy_name(char *to, size_t size, const char *name)
{
    snprintf(to, size, "%s", name);
}

static int handle_mmap(struct record_session *s, const struct perfrec *rec)
{
    struct process *p = recordint_process_find(s, rec->pid);
    struct spool_module m = {
        .pid = rec->pid,
        .start = rec->mmap.start,
        .end = rec->mmap.start + rec->mmap.size,
        .file_offset = rec->mmap.file_offset,
        .inode = rec->mmap.inode,
        .dev_major = rec->mmap.dev_major,
        .dev_minor = rec->mmap.dev_minor,
        .inode_gen = rec->mmap.inode_gen,
        .path = rec->mmap.path,
        .path_size = strlen(rec->mmap.path),
    };

    if (p == NULL || p->before_exec || rec->mmap.kernel || !rec->mmap.executable || m.end < m.start)
        return 0;
    /* What was mapped before the maps were read may have been replaced by then. */
    if (rec->time_ns < p->maps_ns)
        return 0;
    return recordint_process_map(s, p, &m, rec->time_ns);
}

/* A command has begun: its events are on, also where sampling had been switched off. */
static int begin_command(struct record_session *s, struct process *p)
{
    p->muted = !p->on;
    for (size_t i = 0; i < s->counter_count; i++) {
        if (s->counters[i].tid != p->pid)
            continue;
        s->counters[i].on_exec = false;
        if (p->muted)
            (void)recordint_event_disable(s->counters[i].fd);
    }
    return s->options.cmdline == NULL ? recordint_note_cmdline(s, p, NULL) : 0;
}

static int handle_exec(struct record_session *s, struct process *p, uint64_t time_ns)
{
    bool begins = p->before_exec;
    struct thread *t, *next;
    int rc;

    /* The thread that execs is the only one left, under the process's id. */
    for (t = p->threads; t != NULL; t = next) {
        next = t->next;
        if (t->tid != p->pid)
            recordint_thread_end(s, t);
    }
    rc = recordint_process_exec(s, p, time_ns);
    return rc == 0 && begins ? begin_command(s, p) : rc;
}

static int handle_comm(struct record_session *s, const struct perfrec *rec)
{
    struct process *p = recordint_process_find(s, rec->pid);
    struct thread *t;
    int rc = 0;

    if (p == NULL || rec->tid <= 0)
        return 0;
    if (rec->comm.exec)
        rc = handle_exec(s, p, rec->time_ns);
    t = recordint_thread_get(s, p, rec->tid);
    if (t == NULL)
        return recordint_out_of_memory(s);
    if (rec->comm.exec)
        t->covered = p->mode != RECORD_MODE_NONE;
    copy_name(t->name, sizeof t->name, rec->comm.name);
    if (rc == 0 && rec->pid == rec->tid) {
        copy_name(p->name, sizeof p->name, rec->comm.name);
        rc = recordint_note_comm(s, p);
    }
    if (rc == 0 && t->sampled)
        rc = recordint_note_thread(s, t);
    else
        t->noted = false; /* before its first sample */
    return rc;
}

static int handle_fork(struct record_session *s, const struct perfrec *rec)
{
    struct process *parent = recordint_process_find(s, rec->task.parent_pid);
    char name[sizeof((struct thread *)0)->name] = "";
    struct thread *by, *t;
    struct process *p;
    int rc;

    if (parent == NULL || rec->pid <= 0 || rec->tid <= 0)
        return 0;
    by = recordint_idmap_get(&s->threads, (uint32_t)rec->task.parent_tid);
    if (by != NULL) /* which may be a leftover that ends with this record */
        memcpy(name, by->name, sizeof name);
    if (rec->pid != rec->task.parent_pid) {
        if (s->options.no_inherit)
            return 0;
        rc = recordint_process_fork(s, parent, name, rec->pid, rec->time_ns);
        if (rc < 0)
            return rc;
    }
    p = recordint_process_find(s, rec->pid);
    if (p == NULL)
        return 0;
    t = recordint_thread_get(s, p, rec->tid);
    if (t == NULL)
        return recordint_out_of_memory(s);
    if (t->name[0] == '\0')
        memcpy(t->name, name, sizeof t->name);
    if (p->mode == RECORD_MODE_PER_THREAD)
        p->wants_events = p->wants_events || !t->covered;
    else
        t->covered = true; /* the event of its maker is handed on */
    return 0;
}

static int handle_exit(struct record_session *s, const struct perfrec *rec)
{
    struct process *p = recordint_process_find(s, rec->pid);
    struct thread *t;

    if (p == NULL || rec->tid <= 0)
        return 0;
    t = recordint_idmap_get(&s->threads, (uint32_t)rec->tid);
    if (t != NULL && t->process == p)
        recordint_thread_end(s, t);
    if (p->threads != NULL)
        return 0;
    /* Threads whose making was lost keep it too. */
    if (s->threads_unsure && record_process_exists(rec->pid))
        return 0;
    return recordint_process_end(s, p, rec->time_ns);
}

static bool is_sample(const void *data, size_t size)
{
    struct perf_event_header header = {0};

    if (size >= sizeof header)
        memcpy(&header, data, sizeof header);
    return header.type == PERF_RECORD_SAMPLE;
}

void recordint_records_missed(struct record_session *s)
{
    s->loss_seen = true;
    s->threads_unsure = true;
}

int recordint_record(struct record_session *s, const void *data, size_t size)
{
    struct perfrec rec;

    if (recordint_perfrec_parse(&s->layout, data, size, &rec) < 0) {
        s->counts.corrupt_records++;
        if (!is_sample(data, size))
            recordint_records_missed(s);
        return 0;
    }
    switch (rec.kind) {
    case PERFREC_SAMPLE:
        return recordint_sample(s, &rec);
    case PERFREC_MMAP:
        return handle_mmap(s, &rec);
    case PERFREC_COMM:
        return handle_comm(s, &rec);
    case PERFREC_FORK:
        return handle_fork(s, &rec);
    case PERFREC_EXIT:
        return handle_exit(s, &rec);
    case PERFREC_LOST:
        s->lost_in_records += rec.lost_count;
        recordint_records_missed(s);
        break;
    case PERFREC_LOST_SAMPLES:
        s->lost_before_ring += rec.lost_count;
        break;
    case PERFREC_THROTTLE:
        s->counts.throttled += rec.throttled;
        break;
    case PERFREC_KSYMBOL:
        if (s->config.kernel && rec.ksymbol.name[0] != '\0')
            return recordint_note_ksymbol(s, rec.ksymbol.address,
                                          rec.ksymbol.registered ? rec.ksymbol.size : 0,
                                          rec.ksymbol.name);
        break;
    case PERFREC_OTHER:
        break;
    }
    return 0;
}

/* ---- after a loss ---- */

static bool is_listed(const pid_t *tids, size_t count, pid_t tid)
{
    size_t low = 0, high = count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (tids[middle] == tid)
            return true;
        if (tids[middle] < tid)
            low = middle + 1;
        else
            high = middle;
    }
    return false;
}

/* Threads and mappings as they are now. Where descriptors are short the process stays due, for the next second. */
static int reread(struct record_session *s, struct process *p)
{
    struct thread *t, *next;
    pid_t *tids = NULL;
    ssize_t count;
    bool added;
    int rc;

    p->rescan_due = false;
    count = recordint_procfs_threads(p->pid, &tids);
    if (count < 0) {
        if (errno == ENOMEM)
            return recordint_out_of_memory(s);
        p->rescan_due = errno == EMFILE || errno == ENFILE;
        return 0; /* else it is gone: its end comes as a record, or is found once a second */
    }
    for (t = p->threads; t != NULL; t = next) {
        next = t->next;
        if (!is_listed(tids, (size_t)count, t->tid))
            recordint_thread_end(s, t);
    }
    for (ssize_t i = 0; i < count; i++) {
        t = recordint_thread_get(s, p, tids[i]);
        if (t == NULL) {
            free(tids);
            return recordint_out_of_memory(s);
        }
        if (t->name[0] == '\0')
            (void)recordint_procfs_comm(p->pid, tids[i], t->name);
        if (p->mode == RECORD_MODE_PER_THREAD)
            p->wants_events = p->wants_events || !t->covered;
        else
            t->covered = true; /* by the event of who made it: a second one would count it twice */
    }
    free(tids);
    if (p->name[0] == '\0' && recordint_procfs_comm(p->pid, 0, p->name) == 0) {
        rc = recordint_note_comm(s, p);
        if (rc < 0)
            return rc;
    }
    recordint_process_renew(s, p);
    return recordint_process_read_maps(s, p, true, recordint_now_ns(), &added);
}

int recordint_recover(struct record_session *s)
{
    struct process *p;
    size_t at = 0;
    int rc = 0;

    if (s->loss_seen) {
        s->loss_seen = false;
        s->counts.lifecycle_gaps++;
        while ((p = recordint_idmap_next(&s->processes, &at)) != NULL)
            p->rescan_due = true;
    }
    at = 0;
    while (rc == 0 && (p = recordint_idmap_next(&s->processes, &at)) != NULL)
        if (p->rescan_due)
            rc = reread(s, p);
    return rc;
}
