/* SPDX-License-Identifier: MIT */
/*
 * Who is recorded: processes and threads as records of the kernel and /proc tell of them, what they map
 * (libspool's table has the mappings themselves) and whether they are Python runtimes.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "procfs.h"
#include "session.h"

struct process *recordint_process_find(struct record_session *s, pid_t pid)
{
    return pid > 0 ? recordint_idmap_get(&s->processes, (uint32_t)pid) : NULL;
}

void recordint_process_renew(struct record_session *s, struct process *p)
{
    p->epoch = ++s->epochs;
}

struct process *recordint_process_new(struct record_session *s, pid_t pid)
{
    struct process *p = calloc(1, sizeof *p);
    struct procfs_stat stat;

    if (p == NULL)
        return NULL;
    p->pid = pid;
    recordint_process_renew(s, p);
    if (recordint_idmap_put(&s->processes, (uint32_t)pid, p) < 0) {
        free(p);
        return NULL;
    }
    if (recordint_procfs_stat(pid, 0, &stat) == 0)
        p->start_ticks = stat.start_ticks;
    p->rescans_left = RESCANS_A_SECOND;
    s->counts.processes++;
    return p;
}

static void free_process(struct record_session *s, struct process *p)
{
    while (p->threads != NULL)
        recordint_thread_end(s, p->threads);
    recordint_idmap_remove(&s->processes, (uint32_t)p->pid);
    recordint_idmap_free(&p->unknown_pages);
    free(p);
}

int recordint_process_end(struct record_session *s, struct process *p, uint64_t time_ns)
{
    int rc = recordint_process_set_python(s, p, false, time_ns);

    if (rc == 0)
        rc = recordint_spool_result(s, spool_mappings_deactivate(s->mappings, p->pid));
    free_process(s, p);
    return rc;
}

void recordint_processes_sweep_files(struct record_session *s)
{
    struct spool_module m;
    struct process *p;
    size_t at = 0;

    if (!recordint_image_files_due(s->files))
        return;
    while ((p = recordint_idmap_next(&s->processes, &at)) != NULL) {
        size_t mapping = 0;

        while (spool_mappings_next(s->mappings, p->pid, &mapping, &m) > 0)
            recordint_image_files_mapped(s->files, &m);
        recordint_process_renew(s, p); /* cached answers may point to what goes */
    }
    recordint_image_files_sweep(s->files);
}

void recordint_processes_free(struct record_session *s)
{
    struct process *p;

    for (;;) {
        size_t at = 0;

        p = recordint_idmap_next(&s->processes, &at);
        if (p == NULL)
            break;
        free_process(s, p);
    }
    recordint_idmap_free(&s->processes);
    recordint_idmap_free(&s->threads);
}

/* ---- threads ---- */

static void unlink_thread(struct thread *t)
{
    *t->link = t->next;
    if (t->next != NULL)
        t->next->link = t->link;
}

static void link_thread(struct process *p, struct thread *t)
{
    t->process = p;
    t->next = p->threads;
    t->link = &p->threads;
    if (t->next != NULL)
        t->next->link = &t->next;
    p->threads = t;
}

struct thread *recordint_thread_get(struct record_session *s, struct process *p, pid_t tid)
{
    struct thread *t = recordint_idmap_get(&s->threads, (uint32_t)tid);

    if (t != NULL && t->process == p)
        return t;
    if (t != NULL) /* its end was lost, and the id is used again */
        recordint_thread_end(s, t);
    t = calloc(1, sizeof *t);
    if (t == NULL || recordint_idmap_put(&s->threads, (uint32_t)tid, t) < 0) {
        free(t);
        return NULL;
    }
    t->tid = tid;
    link_thread(p, t);
    return t;
}

void recordint_thread_end(struct record_session *s, struct thread *t)
{
    unlink_thread(t);
    recordint_idmap_remove(&s->threads, (uint32_t)t->tid);
    free(t);
}

/* ---- mappings ---- */

static bool all_digits(const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (text[i] < '0' || text[i] > '9')
            return false;
    return size > 0;
}

/* "3", "3.12", "3.13t": what stands behind "python" in the name of an interpreter; also nothing. */
static bool is_version(const char *text, size_t size)
{
    const char *dot;

    if (size == 0)
        return true;
    while (size > 0 && (text[size - 1] == 't' || text[size - 1] == 'd'))
        size--;
    dot = memchr(text, '.', size);
    if (dot == NULL)
        return all_digits(text, size);
    return all_digits(text, (size_t)(dot - text)) &&
           all_digits(dot + 1, size - (size_t)(dot - text) - 1);
}

bool recordint_is_python(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;
    const char *end;

    if (strncmp(name, "libpython", 9) == 0) {
        end = strstr(name + 9, ".so");
        return end != NULL && end > name + 9 && is_version(name + 9, (size_t)(end - (name + 9)));
    }
    if (strncmp(name, "python", 6) != 0)
        return false;
    end = strstr(name, " (deleted)");
    return is_version(name + 6, end != NULL ? (size_t)(end - (name + 6)) : strlen(name + 6));
}

int recordint_process_set_python(struct record_session *s, struct process *p, bool on,
                                 uint64_t time_ns)
{
    if (p->python == on)
        return 0;
    p->python = on;
    return recordint_spool_result(s, spool_writer_python(s->writer, time_ns, p->pid, on));
}

int recordint_process_map(struct record_session *s, struct process *p, const struct spool_module *m,
                          uint64_t time_ns)
{
    int rc = recordint_spool_result(s, spool_mappings_apply(s->mappings, m, NULL));

    if (rc == 0 && p->unknown_pages.count > 0)
        recordint_idmap_free(&p->unknown_pages);
    if (rc == 0 && recordint_is_python(m->path))
        rc = recordint_process_set_python(s, p, true, time_ns);
    return rc;
}

/* Takes away the lines that overlap a live mapping; both are in ascending order. Returns how many stay. */
static size_t drop_taken(struct record_session *s, pid_t pid, struct spool_module *lines,
                         size_t count)
{
    struct spool_module m;
    size_t at = 0, kept = 0;
    bool more = spool_mappings_next(s->mappings, pid, &at, &m) > 0;

    for (size_t i = 0; i < count; i++) {
        while (more && m.end <= lines[i].start)
            more = spool_mappings_next(s->mappings, pid, &at, &m) > 0;
        if (more && m.start < lines[i].end)
            free((char *)(uintptr_t)lines[i].path);
        else
            lines[kept++] = lines[i];
    }
    return kept;
}

/* Retires what the maps do not show any more. */
static int retire_missing(struct record_session *s, struct process *p,
                          const struct spool_module *lines, size_t count, bool *retired)
{
    struct spool_module m;
    size_t at = 0, line = 0;

    *retired = false;
    while (spool_mappings_next(s->mappings, p->pid, &at, &m) > 0) {
        while (line < count && lines[line].end <= m.start)
            line++;
        if (line == count || lines[line].start > m.start || lines[line].end < m.end ||
            lines[line].inode != m.inode) {
            *retired = true;
            break;
        }
    }
    if (!*retired)
        return 0;
    recordint_process_renew(s, p);
    return recordint_spool_result(s, spool_mappings_deactivate(s->mappings, p->pid));
}

static void free_lines(struct spool_module *lines, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free((char *)(uintptr_t)lines[i].path);
    free(lines);
}

static bool keep_line(const struct procfs_map *line, pid_t pid, struct spool_module **lines,
                      size_t *count)
{
    struct spool_module *grown;
    struct spool_module m = {
        .pid = pid,
        .start = line->start,
        .end = line->end,
        .file_offset = line->file_offset,
        .inode = line->inode,
        .dev_major = line->dev_major,
        .dev_minor = line->dev_minor,
    };

    /* As the kernel's own records describe memory without a file, be it named by prctl. */
    if (line->path[0] == '\0' || strncmp(line->path, "[anon:", 6) == 0)
        m.file_offset = line->start;
    m.path = strdup(line->path[0] == '\0' ? "//anon" : line->path);
    if (m.path == NULL)
        return false;
    m.path_size = strlen(m.path);
    if ((*count & (*count - 1)) == 0) {
        grown = realloc(*lines, (*count == 0 ? 1 : 2 * *count) * sizeof *grown);
        if (grown == NULL) {
            free((char *)(uintptr_t)m.path);
            return false;
        }
        *lines = grown;
    }
    (*lines)[(*count)++] = m;
    return true;
}

/* The executable lines of the maps, as a thread of the process has them; none where they cannot be read. Returns 0
 * or an error. */
static int read_lines(struct record_session *s, struct process *p, pid_t tid,
                      struct spool_module **lines, size_t *count)
{
    struct procfs_maps *maps;
    struct procfs_map line;
    int system = recordint_procfs_maps_open(tid, &maps);
    bool kept = true;

    if ((system == EACCES || system == EPERM) && !p->maps_refused) {
        p->maps_refused = true;
        recordint_log(
            s, RECORD_LOG_WARNING,
            "the mappings of process %d cannot be read (that needs root or CAP_SYS_PTRACE): "
            "frames in what it has mapped before have no file",
            (int)p->pid);
    }
    if (system == ENOMEM)
        return recordint_out_of_memory(s);
    if (system == EMFILE || system == ENFILE)
        p->rescan_due = true; /* once there are descriptors again */
    if (system != 0)
        return 0;
    while (kept && recordint_procfs_maps_next(maps, &line) > 0)
        if (line.executable)
            kept = keep_line(&line, p->pid, lines, count);
    recordint_procfs_maps_free(maps);
    return kept ? 0 : recordint_out_of_memory(s);
}

int recordint_process_read_maps(struct record_session *s, struct process *p, bool all,
                                uint64_t time_ns, bool *added)
{
    struct spool_module *lines = NULL;
    uint64_t begun_ns = recordint_now_ns();
    size_t count = 0;
    int rc;

    *added = false;
    if (p->before_exec)
        return 0;
    rc = read_lines(s, p, p->pid, &lines, &count);
    /* A first thread that has ended maps nothing any more, although others live. */
    if (rc == 0 && count == 0 && p->threads != NULL && p->threads->tid != p->pid)
        rc = read_lines(s, p, p->threads->tid, &lines, &count);
    if (rc == 0 && all && count > 0) {
        rc = retire_missing(s, p, lines, count, added);
        p->maps_ns = begun_ns;
    }
    if (!all)
        count = drop_taken(s, p->pid, lines, count);
    for (size_t i = 0; rc == 0 && i < count; i++) {
        rc = recordint_process_map(s, p, &lines[i], time_ns);
        *added = true;
    }
    free_lines(lines, count);
    return rc;
}

int recordint_process_exec(struct record_session *s, struct process *p, uint64_t time_ns)
{
    int rc;

    p->before_exec = false;
    p->maps_ns = 0; /* what was read since goes with the rest; its records follow */
    recordint_process_renew(s, p);
    recordint_idmap_free(&p->unknown_pages);
    rc = recordint_spool_result(s, spool_mappings_deactivate(s->mappings, p->pid));
    return rc < 0 ? rc : recordint_process_set_python(s, p, false, time_ns);
}

int recordint_process_fork(struct record_session *s, struct process *parent, const char *name,
                           pid_t child, uint64_t time_ns)
{
    struct process *p = recordint_process_find(s, child);
    struct procfs_stat stat;
    int rc = 0;

    if (p != NULL) {
        /* What was read of it already is newer than this record. A leftover whose end was lost is not. */
        if (recordint_procfs_stat(child, 0, &stat) == 0 ? stat.start_ticks == p->start_ticks
                                                        : !s->loss_seen)
            return 0;
        rc = recordint_process_end(s, p, time_ns);
        if (rc < 0)
            return rc;
    }
    p = recordint_process_new(s, child);
    if (p == NULL)
        return recordint_out_of_memory(s);
    p->mode = parent->mode;
    p->on = parent->on;
    p->muted = parent->muted;
    p->wants_events = parent->mode == RECORD_MODE_PER_THREAD;
    snprintf(p->name, sizeof p->name, "%s", name[0] != '\0' ? name : parent->name);
    if (parent->python)
        rc = recordint_process_set_python(s, p, true, time_ns);
    if (rc == 0)
        rc = recordint_spool_result(s, spool_mappings_clone(s->mappings, parent->pid, child));
    if (rc == 0 && p->name[0] != '\0')
        rc = recordint_note_comm(s, p);
    return rc;
}
