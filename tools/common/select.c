/* SPDX-License-Identifier: MIT */
/* Evaluation of the selection options. Globs work on bytes: the tools run in the C locale. */
#include "select.h"

#include <fnmatch.h>
#include <stdlib.h>

#include "text.h"

bool select_everything(const struct select_options *o)
{
    return !o->has_pids && !o->has_tids && !select_asks_names(o) && !o->has_from && !o->has_to;
}

static bool contains(const struct number_list *list, uint64_t number)
{
    size_t low = 0, high = list->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (list->items[middle] == number)
            return true;
        if (list->items[middle] < number)
            low = middle + 1;
        else
            high = middle;
    }
    return false;
}

bool select_ids(const struct select_options *o, int32_t pid, uint64_t tid)
{
    /* Versions 1 to 3 allow negative process ids; the parser stores them in this form as well. */
    if (o->has_pids && !contains(&o->pids, (uint64_t)(int64_t)pid))
        return false;
    return !o->has_tids || contains(&o->tids, tid);
}

bool select_time(const struct select_options *o, uint64_t first_ns, uint64_t time_ns)
{
    uint64_t at_ns = time_ns < first_ns ? 0 : time_ns - first_ns;

    if (o->has_from && at_ns < o->from_ns)
        return false;
    return !o->has_to || at_ns < o->to_ns;
}

bool select_asks_names(const struct select_options *o)
{
    return o->comm_globs.count > 0 || o->thread_globs.count > 0;
}

static bool any_glob(const struct text_list *globs, const char *name)
{
    if (globs->count == 0)
        return true;
    if (name == NULL)
        return false;
    for (size_t i = 0; i < globs->count; i++) {
        if (fnmatch(globs->items[i], name, 0) == 0)
            return true;
    }
    return false;
}

bool select_names(const struct select_options *o, const char *comm, const char *thread)
{
    return any_glob(&o->comm_globs, comm) && any_glob(&o->thread_globs, thread);
}

bool select_source(const struct select_options *o, const struct source *source)
{
    char *comm = source->comm ? text_copy(source->comm, source->comm_size) : NULL;
    char *thread = source->thread ? text_copy(source->thread, source->thread_size) : NULL;
    bool selected = select_names(o, comm, thread);

    free(comm);
    free(thread);
    return selected;
}
