/* SPDX-License-Identifier: MIT */
/* Perf maps of processes: which file is a process's own, read when a query first needs it. */
#include "context.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

int symint_process_get(struct sym_context *c, int32_t pid, const struct symint_process **out)
{
    size_t at = find_process(c, pid);
    if (at < c->processes.count && c->processes.list[at]->pid == pid) {
        *out = c->processes.list[at];
        return 0;
    }
    if (c->processes.count == c->processes.capacity) {
        size_t capacity = c->processes.capacity == 0 ? 16 : c->processes.capacity * 2;
        struct symint_process **processes =
            realloc(c->processes.list, capacity * sizeof(*processes));
        if (processes == NULL)
            return SYM_ERR_NOMEM;
        c->processes.list = processes;
        c->processes.capacity = capacity;
    }
    struct symint_process *p = symint_arena_alloc(&c->strings.arena, sizeof(*p));
    const char *dir = c->options.perf_map_dir != NULL ? c->options.perf_map_dir : "/tmp";
    size_t room = strlen(dir) + 32;
    char *path = symint_arena_alloc(&c->strings.arena, room);
    if (p == NULL || path == NULL)
        return SYM_ERR_NOMEM;
    snprintf(path, room, "%s/perf-%d.map", dir, (int)pid);
    p->pid = pid;
    p->path = path;
    p->miss = SYM_MISS_NO_FILE;
    if (pid > 0) {
        int rc = symint_perf_map_load(&p->map, path, &p->miss);
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
