/* SPDX-License-Identifier: MIT */
/*
 * Mappings by process while events go by in order of time. A view is made when a sample comes after a change.
 * The recorder has a model of its own, tested elsewhere: this one is simple and copies a lot.
 */
#include "replay_process.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct process {
    int32_t pid;
    struct replay_view now;
    size_t room;
    struct replay_view *view; /* of now; NULL: to be made */
};

struct model {
    struct replay *replay;
    struct process *processes;
    size_t count;
    uint64_t generation; /* the last one given out */
};

static void *grown(void *p, size_t count, size_t size)
{
    /* Powers of two only: room is what count last reached. */
    if (count != 0 && (count & (count - 1)) != 0)
        return p;
    p = realloc(p, (count == 0 ? 1 : count * 2) * size);
    if (p == NULL) {
        fprintf(stderr, "unwind_replay: no memory\n");
        exit(2);
    }
    return p;
}

static struct process *process_of(struct model *model, int32_t pid)
{
    for (size_t i = model->count; i-- > 0;)
        if (model->processes[i].pid == pid)
            return &model->processes[i];
    model->processes = grown(model->processes, model->count, sizeof *model->processes);
    memset(&model->processes[model->count], 0, sizeof *model->processes);
    model->processes[model->count].pid = pid;
    model->processes[model->count].now.generation = ++model->generation;
    return &model->processes[model->count++];
}

static uint32_t module_of(struct replay *replay, const char *path)
{
    for (size_t i = 0; i < replay->path_count; i++)
        if (strcmp(replay->paths[i], path) == 0)
            return (uint32_t)i;
    replay->paths = grown(replay->paths, replay->path_count, sizeof *replay->paths);
    replay->paths[replay->path_count] = path;
    return (uint32_t)replay->path_count++;
}

static void set_mappings(struct process *process, struct replay_mapping *mappings, size_t count)
{
    free(process->now.mappings);
    process->now.mappings = mappings;
    process->now.count = count;
    process->view = NULL;
}

static struct replay_mapping *allocate(size_t count)
{
    struct replay_mapping *m = calloc(count == 0 ? 1 : count, sizeof *m);

    if (m == NULL) {
        fprintf(stderr, "unwind_replay: no memory\n");
        exit(2);
    }
    return m;
}

/* Puts a new mapping among the old ones, which it cuts. */
static void map(struct model *model, const struct perf_event *event)
{
    struct process *process = process_of(model, event->pid);
    struct replay_mapping *to = allocate(process->now.count + 2);
    struct replay_mapping added = {event->mmap.start, event->mmap.end, event->mmap.file_offset, 0};
    bool placed = !event->mmap.executable, cut = false;
    size_t count = 0;

    if (event->mmap.executable)
        added.module = module_of(model->replay, event->mmap.path);
    for (size_t i = 0; i < process->now.count; i++) {
        const struct replay_mapping *old = &process->now.mappings[i];

        if (old->start < added.start) { /* what is left in front of it */
            to[count] = *old;
            to[count++].end = old->end < added.start ? old->end : added.start;
        }
        if (!placed && old->end > added.start) {
            to[count++] = added;
            placed = true;
        }
        if (old->end > added.end) { /* and behind */
            to[count] = *old;
            if (old->start < added.end) {
                to[count].start = added.end;
                to[count].file_offset += added.end - old->start;
            }
            count++;
        }
        cut = cut || (old->start < added.end && old->end > added.start);
    }
    if (!placed)
        to[count++] = added;
    if (!event->mmap.executable && !cut) {
        free(to);
        return;
    }
    set_mappings(process, to, count);
    if (cut)
        process->now.generation = ++model->generation;
}

static void fork_process(struct model *model, const struct perf_event *event)
{
    size_t count = process_of(model, event->parent_pid)->now.count;
    struct replay_mapping *copy = allocate(count);
    struct process *child = process_of(model, event->pid); /* which may move the others */

    if (count > 0)
        memcpy(copy, process_of(model, event->parent_pid)->now.mappings, count * sizeof *copy);
    set_mappings(child, copy, count);
    child->now.generation = ++model->generation;
}

static const struct replay_view *view_of(struct model *model, int32_t pid)
{
    struct process *process = process_of(model, pid);
    struct replay *replay = model->replay;

    if (process->view == NULL) {
        process->view = calloc(1, sizeof *process->view);
        if (process->view == NULL)
            exit(2);
        *process->view = process->now;
        process->view->mappings = allocate(process->now.count);
        if (process->now.count > 0)
            memcpy(process->view->mappings, process->now.mappings,
                   process->now.count * sizeof *process->now.mappings);
        replay->views = grown(replay->views, replay->view_count, sizeof(struct replay_view *));
        replay->views[replay->view_count++] = process->view;
    }
    return process->view;
}

void replay_prepare(struct replay *replay, const struct perf_data *data)
{
    struct model model = {replay, NULL, 0, 0};

    memset(replay, 0, sizeof *replay);
    for (size_t i = 0; i < data->count; i++) {
        const struct perf_event *event = &data->events[i];

        switch (event->kind) {
        case PERF_DATA_SAMPLE:
            replay->samples = grown(replay->samples, replay->count, sizeof *replay->samples);
            replay->samples[replay->count].event = event;
            replay->samples[replay->count++].view = view_of(&model, event->pid);
            break;
        case PERF_DATA_MMAP:
            if (event->pid > 0)
                map(&model, event);
            break;
        case PERF_DATA_FORK:
            fork_process(&model, event);
            break;
        case PERF_DATA_EXEC: {
            struct process *process = process_of(&model, event->pid);

            set_mappings(process, NULL, 0);
            process->now.generation = ++model.generation;
            break;
        }
        }
    }
    for (size_t i = 0; i < model.count; i++)
        free(model.processes[i].now.mappings);
    free(model.processes);
}

void replay_free(struct replay *replay)
{
    for (size_t i = 0; i < replay->view_count; i++) {
        free(replay->views[i]->mappings);
        free(replay->views[i]);
    }
    free(replay->views);
    free(replay->samples);
    free(replay->paths);
    memset(replay, 0, sizeof *replay);
}
