/* SPDX-License-Identifier: MIT */
/*
 * Perf maps of processes: which file is a process's own, read when a query first needs it. Folders
 * and archives that the user names are taken at their word. /tmp is everyone's and outlives processes and often
 * boots, so a map there must have been written while the capture's process was there.
 */
#include "context.h"
#include "live.h"
#include "openfile.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool symint_perf_map_allowed(const struct sym_context *c, int32_t pid)
{
    switch (c->options.perf_maps) {
    case SYM_PERF_MAPS_NONE:
        return false;
    case SYM_PERF_MAPS_LIST:
        return c->pids != NULL && bsearch(&pid, c->pids, c->options.perf_map_pid_count, sizeof(pid),
                                          symint_compare_pids) != NULL;
    default:
        return true;
    }
}

/* The place of a process in the sorted list, where it is or would be. */
static size_t find_process(const struct sym_context *c, int32_t pid)
{
    size_t low = 0;
    size_t high = c->processes.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (c->processes.list[middle]->pid < pid)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* ---- which file ---- */

struct search {
    struct sym_context *c;
    struct symint_process *p;
    struct symint_live live;
};

/* Keeps why there is no map, of the file that says most: the first one, unless a later one is
 * another process's. */
static void note_miss(struct symint_process *p, enum sym_miss miss, const char *path)
{
    if (p->path == NULL || (p->miss == SYM_MISS_NO_FILE && miss == SYM_MISS_STALE)) {
        p->miss = miss;
        p->path = path;
    }
}

/* Whether a map in a folder of the running system was written by another process than the
 * capture's. A map is appended to as long as its process lives, so its time says that the process
 * was there then. */
static bool is_stale(const struct search *s, const struct stat *st)
{
    const struct sym_context *c = s->c;
    const struct symint_live *live = &s->live;
    uint64_t time_us = 0;
    uint64_t boot_s = 0;
    bool knows_boot = symint_boot_time_s(c->system, &boot_s);
    if (st->st_mtim.tv_sec > 0 && st->st_mtim.tv_sec < INT64_MAX / 1000000)
        time_us = (uint64_t)st->st_mtim.tv_sec * 1000000 + (uint64_t)st->st_mtim.tv_nsec / 1000;
    if (c->boot == SYMINT_BOOT_OTHER)
        return !knows_boot || time_us / 1000000 >= boot_s;
    time_us += SYMINT_CLOCK_SLACK_US;
    if (c->boot == SYMINT_BOOT_SAME && knows_boot && time_us / 1000000 < boot_s)
        return true;
    switch (live->age) {
    case SYMINT_AGE_OLD_ENOUGH: /* the capture's own, if it is the same boot */
        return c->boot == SYMINT_BOOT_SAME && time_us < live->start_time_us;
    case SYMINT_AGE_YOUNGER: /* what was written before it began may be the capture's */
        return time_us >= live->start_time_us;
    default:
        return false;
    }
}

/* Uses the map at a path in a root. `shown` is the path that users see,
 * in the arena. 1: this is the file, whatever came of reading it; 0: go on; SYM_ERR_NOMEM. */
static int try_map(struct search *s, struct symint_root root, const char *path, const char *shown,
                   bool vouched)
{
    struct symint_process *p = s->p;
    enum sym_miss miss;
    struct stat st;
    int error;
    int fd;
    int rc = symint_root_open_regular(root, path, &fd, &miss, &error);
    if (rc != 0)
        return rc;
    bool known = fd >= 0 ? fstat(fd, &st) == 0 : root.path == NULL && stat(path, &st) == 0;
    if (miss != SYM_MISS_NO_FILE && !vouched && known && is_stale(s, &st))
        miss = SYM_MISS_STALE;
    if (miss == SYM_MISS_NO_FILE || miss == SYM_MISS_STALE) {
        note_miss(p, miss, shown);
    } else {
        rc = miss == SYM_MISS_NONE ? symint_perf_map_load(&p->map, fd, &miss) : 0;
        p->miss = miss;
        p->path = shown;
        if (rc == 0)
            rc = 1;
    }
    if (fd >= 0)
        close(fd);
    return rc;
}

/* `ROOT` `FOLDER/perf-PID.map` in the arena; NULL: out of memory. */
static char *map_path(struct search *s, const char *root, const char *folder, int32_t pid)
{
    size_t room = strlen(root) + strlen(folder) + 32;
    char *path = symint_arena_alloc(&s->c->strings.arena, room);
    if (path != NULL)
        snprintf(path, room, "%s%s/perf-%" PRId32 ".map", root, folder, pid);
    return path;
}

/* As try_map, for a folder. */
static int try_folder(struct search *s, const char *folder, int32_t pid, bool vouched)
{
    const char *path = map_path(s, "", folder, pid);
    return path == NULL ? SYM_ERR_NOMEM : try_map(s, symint_in_folder(NULL), path, path, vouched);
}

/* As try_map, for /tmp in the root of a live process that is not ours. When we may not go there,
 * whether it has a map is not known, and the search goes on. */
static int try_root(struct search *s)
{
    char *root = symint_live_root(s->c->system, s->p->pid);
    const char *path = root != NULL ? map_path(s, root, "/tmp", s->live.inner_pid) : NULL;
    int rc = SYM_ERR_NOMEM;
    if (path != NULL && access(root, X_OK) != 0 && errno != ENOENT) {
        note_miss(s->p, SYM_MISS_UNREADABLE, path);
        rc = 0;
    } else if (path != NULL) {
        rc = try_map(s, symint_in_folder(root), path + strlen(root), path, false);
    }
    free(root);
    return rc;
}

/* As try_map, for the places where a process of this machine leaves its map. A runtime in a PID
 * namespace knows only its inner id; an agent outside writes under the one that we know. */
static int try_tmp(struct search *s)
{
    int32_t pid = s->p->pid;
    int rc = 0;
    symint_live_read(s->c->system, &s->c->capture, s->c->boot, pid, &s->live);
    if (s->live.alive && s->live.own_root)
        rc = try_root(s);
    else if (s->live.alive && s->live.inner_pid != pid)
        rc = try_folder(s, "/tmp", s->live.inner_pid, false);
    return rc != 0 ? rc : try_folder(s, "/tmp", pid, false);
}

/* As try_map, for what archives have of a capture; id NULL: of whatever they are used with. */
static int try_archives(struct search *s, int32_t pid, const char *id)
{
    const struct symint_search_options *o = &s->c->search;
    char folder[128] = "";
    int rc = 0;
    if (id != NULL)
        snprintf(folder, sizeof(folder), "/captures/%.64s", id);
    for (size_t i = 0; i < o->archive_count && rc == 0; i++) {
        const char *root = symint_archive_path(o->archives[i]);
        const char *path = map_path(s, root, folder, pid);
        rc = path == NULL
                 ? SYM_ERR_NOMEM
                 : try_map(s, symint_in_archive(o->archives[i]), path + strlen(root), path, true);
    }
    return rc;
}

static bool is_tmp(const char *folder)
{
    struct stat tmp;
    struct stat st;
    return stat("/tmp", &tmp) == 0 && stat(folder, &st) == 0 && st.st_dev == tmp.st_dev &&
           st.st_ino == tmp.st_ino;
}

/* Finds and reads the process's map. 0 or SYM_ERR_NOMEM. */
static int load_map(struct search *s)
{
    const struct sym_options *o = &s->c->options;
    int32_t pid = s->p->pid;
    int rc = 0;
    if (s->c->capture.id != NULL)
        rc = try_archives(s, pid, s->c->capture.id);
    if (rc == 0)
        rc = try_archives(s, pid, NULL);
    if (rc == 0 && o->perf_map_dir != NULL) {
        rc = try_folder(s, o->perf_map_dir, pid, true);
    } else if (rc == 0) {
        rc = try_tmp(s);
        /* A capture that lies in /tmp has no copies beside it, but what anybody left there. */
        if (rc == 0 && s->c->capture.folder != NULL && !is_tmp(s->c->capture.folder))
            rc = try_folder(s, s->c->capture.folder, pid, true);
    }
    return rc < 0 ? rc : 0;
}

/* ---- for other files ---- */

int symint_process_get(struct sym_context *c, int32_t pid, const struct symint_process **out)
{
    size_t at = find_process(c, pid);
    if (at < c->processes.count && c->processes.list[at]->pid == pid) {
        *out = c->processes.list[at];
        return 0;
    }
    struct symint_process **processes = symint_grow(c->processes.list, c->processes.count,
                                                    &c->processes.capacity, sizeof(*processes), 16);
    if (processes == NULL)
        return SYM_ERR_NOMEM;
    c->processes.list = processes;
    struct symint_process *p = symint_arena_alloc(&c->strings.arena, sizeof(*p));
    if (p == NULL)
        return SYM_ERR_NOMEM;
    *p = (struct symint_process){.pid = pid, .miss = SYM_MISS_NO_FILE, .path = ""};
    if (pid > 0) {
        struct search s = {.c = c, .p = p};
        p->path = NULL;
        int rc = load_map(&s);
        if (rc != 0)
            return rc;
    }
    memmove(&c->processes.list[at + 1], &c->processes.list[at],
            (c->processes.count - at) * sizeof(*c->processes.list));
    c->processes.list[at] = p;
    c->processes.count++;
    *out = p;
    return 0;
}

int sym_perf_map_state(const struct sym_context *c, int32_t pid, struct sym_perf_map_state *out)
{
    size_t at = find_process(c, pid);
    if (at == c->processes.count || c->processes.list[at]->pid != pid)
        return 0;
    const struct symint_process *p = c->processes.list[at];
    *out = (struct sym_perf_map_state){.found = p->miss == SYM_MISS_NONE,
                                       .entries = p->map.count,
                                       .bad_lines = p->map.bad_lines,
                                       .path = p->path,
                                       .miss = p->miss};
    return 1;
}

void symint_processes_free(struct symint_processes *p)
{
    for (size_t i = 0; i < p->count; i++)
        symint_perf_map_free(&p->list[i]->map);
    free(p->list);
    *p = (struct symint_processes){0};
}
