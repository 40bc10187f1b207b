/* SPDX-License-Identifier: MIT */
/*
 * The descendants of a process, from the lists of children that the kernel keeps for each thread
 * (CONFIG_PROC_CHILDREN), or where it has none from everybody's parent. Processes come and go and ids are used
 * again meanwhile, so neither need be a tree: each process is entered once.
 */
#include "procfs.h"

#include "procfs_text.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PID_LIMIT (4u << 20)          /* the kernel's own (PID_MAX_LIMIT) */
#define CHILDREN_SIZE_MAX (64u << 20) /* PID_LIMIT numbers and blanks */
#define PASSES_MAX 4

struct tree {
    pid_t *pids; /* found so far; those from `next` on were not asked for their children */
    size_t count;
    size_t capacity;
    uint8_t *seen; /* a bit for each id below PID_LIMIT */
};

/* Enters a process unless it was seen. Returns false: out of memory. */
static bool tree_add(struct tree *t, pid_t pid)
{
    if (pid <= 0 || (unsigned)pid >= PID_LIMIT || (t->seen[pid / 8] >> pid % 8 & 1) != 0)
        return true;
    if (t->count == t->capacity) {
        size_t capacity = t->capacity == 0 ? 64 : t->capacity * 2;
        pid_t *larger = realloc(t->pids, capacity * sizeof(*larger));
        if (larger == NULL)
            return false;
        t->pids = larger;
        t->capacity = capacity;
    }
    t->seen[pid / 8] = (uint8_t)(t->seen[pid / 8] | 1u << pid % 8);
    t->pids[t->count++] = pid;
    return true;
}

/* An empty tree below pid, which is seen so that it cannot be below itself. */
static bool tree_start(struct tree *t, pid_t pid)
{
    *t = (struct tree){.seen = calloc(PID_LIMIT / 8, 1)};
    if (t->seen == NULL || !tree_add(t, pid))
        return false;
    t->count = 0;
    return true;
}

static void tree_end(struct tree *t)
{
    free(t->pids);
    free(t->seen);
    *t = (struct tree){0};
}

static int compare_pids(const void *a, const void *b)
{
    pid_t x = *(const pid_t *)a;
    pid_t y = *(const pid_t *)b;
    return (x > y) - (x < y);
}

/* ---- by lists of children ---- */

/* Enters the children of a thread. Returns false: out of memory. */
static bool add_children_of_thread(const char *proc, pid_t pid, pid_t tid, struct tree *t)
{
    char path[PATH_MAX];
    char *text;
    size_t size;
    bool ok = true;
    snprintf(path, sizeof(path), "%s/%d/task/%d/children", proc, (int)pid, (int)tid);
    int rc = recordint_procfs_read(path, CHILDREN_SIZE_MAX, &text, &size);
    if (rc != 0)
        return rc != ENOMEM;
    for (char *at = text; ok;) {
        char *end;
        long child = strtol(at, &end, 10);
        if (end == at)
            break;
        if (child > 0 && child < (long)PID_LIMIT)
            ok = tree_add(t, (pid_t)child);
        at = end;
    }
    free(text);
    return ok;
}

static bool add_children(const char *proc, pid_t pid, struct tree *t)
{
    char path[PATH_MAX];
    pid_t *tids;
    bool ok = true;
    snprintf(path, sizeof(path), "%s/%d/task", proc, (int)pid);
    ssize_t threads = recordint_procfs_numbers(path, &tids);
    if (threads < 0)
        return errno != ENOMEM;
    for (ssize_t i = 0; i < threads && ok; i++)
        ok = add_children_of_thread(proc, pid, tids[i], t);
    free(tids);
    return ok;
}

static bool walk_children(const char *proc, pid_t pid, bool deep, struct tree *t)
{
    if (!tree_start(t, pid) || !add_children(proc, pid, t))
        return false;
    for (size_t i = 0; deep && i < t->count; i++)
        if (!add_children(proc, t->pids[i], t))
            return false;
    if (t->count > 1)
        qsort(t->pids, t->count, sizeof(*t->pids), compare_pids);
    return true;
}

/* A list may skip a child while another one ends (proc(5)): walks until two walks agree. */
static bool walk_children_twice(const char *proc, pid_t pid, bool deep, struct tree *t)
{
    bool ok = walk_children(proc, pid, deep, t);
    bool same = false;
    for (int pass = 1; ok && !same && pass < PASSES_MAX; pass++) {
        struct tree again;
        ok = walk_children(proc, pid, deep, &again);
        same = ok && again.count == t->count &&
               (t->count == 0 || memcmp(again.pids, t->pids, t->count * sizeof(*t->pids)) == 0);
        tree_end(t);
        *t = again;
    }
    return ok;
}

/* ---- by parents ---- */

struct parent_of {
    pid_t parent;
    pid_t pid;
};

static int compare_parents(const void *a, const void *b)
{
    const struct parent_of *x = a;
    const struct parent_of *y = b;
    if (x->parent != y->parent)
        return x->parent < y->parent ? -1 : 1;
    return (x->pid > y->pid) - (x->pid < y->pid);
}

/* All processes with their parents, sorted by these. Returns false: out of memory. */
static bool list_parents(const char *proc, struct parent_of **list, size_t *count)
{
    char path[PATH_MAX];
    pid_t *pids;
    *count = 0;
    *list = NULL;
    ssize_t processes = recordint_procfs_numbers(proc, &pids);
    if (processes <= 0)
        return processes == 0 || errno != ENOMEM;
    *list = malloc((size_t)processes * sizeof(**list));
    for (ssize_t i = 0; i < processes && *list != NULL; i++) {
        struct procfs_stat stat;
        snprintf(path, sizeof(path), "%s/%d/stat", proc, (int)pids[i]);
        if (recordint_procfs_stat_of(path, &stat) == 0)
            (*list)[(*count)++] = (struct parent_of){.parent = stat.parent, .pid = pids[i]};
    }
    free(pids);
    if (*list != NULL)
        qsort(*list, *count, sizeof(**list), compare_parents);
    return *list != NULL;
}

/* Enters those whose parent is pid. */
static bool add_by_parent(const struct parent_of *list, size_t count, pid_t pid, struct tree *t)
{
    size_t low = 0;
    size_t high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (list[middle].parent < pid)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < count && list[low].parent == pid; low++)
        if (!tree_add(t, list[low].pid))
            return false;
    return true;
}

static bool walk_parents(const char *proc, pid_t pid, bool deep, struct tree *t)
{
    struct parent_of *list = NULL;
    size_t count = 0;
    bool ok = tree_start(t, pid) && list_parents(proc, &list, &count) &&
              add_by_parent(list, count, pid, t);
    for (size_t i = 0; ok && deep && i < t->count; i++)
        ok = add_by_parent(list, count, t->pids[i], t);
    free(list);
    if (ok && t->count > 1)
        qsort(t->pids, t->count, sizeof(*t->pids), compare_pids);
    return ok;
}

/* ---- for other files ---- */

/* Those below a process, or only its children. */
static ssize_t list_below(const char *proc, pid_t pid, bool deep, pid_t **pids)
{
    char path[PATH_MAX];
    struct tree t = {0};
    *pids = NULL;
    if (pid <= 0)
        return 0;
    snprintf(path, sizeof(path), "%s/thread-self/children", proc);
    bool ok = access(path, R_OK) == 0 ? walk_children_twice(proc, pid, deep, &t)
                                      : walk_parents(proc, pid, deep, &t);
    ssize_t count = -1;
    if (ok) {
        count = (ssize_t)t.count;
        if (count > 0) {
            *pids = t.pids;
            t.pids = NULL;
        }
    }
    tree_end(&t);
    return count;
}

ssize_t recordint_procfs_descendants_in(const char *proc, pid_t pid, pid_t **pids)
{
    return list_below(proc, pid, true, pids);
}

ssize_t recordint_procfs_descendants(pid_t pid, pid_t **pids)
{
    return list_below("/proc", pid, true, pids);
}

ssize_t recordint_procfs_children(pid_t pid, pid_t **pids)
{
    return list_below("/proc", pid, false, pids);
}
