/* SPDX-License-Identifier: MIT */
/*
 * Names and states of processes and threads as annotations and Python runtime records of spool(5) state them. Texts are
 * borrowed from the reader, which must outlive this.
 */
#include "names.h"

#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "spool/sym.h"
#include "spread.h"

struct text {
    const char *data; /* NULL: none */
    size_t size;
};

/* A process between two deactivations: what its first file says it is called. */
struct life {
    uint32_t before; /* the last life of the process before it that has a file; NAMES_NONE: none */
    struct text file_name;
};

struct process {
    int32_t pid;
    uint32_t life;    /* the current one */
    uint32_t state;   /* current index in states, NAMES_NONE: changed since */
    struct text comm; /* latest annotation */
    struct text first_comm;
    struct text first_file; /* base name of the first file of all lives */
    bool python;
    bool python_ending;  /* off was said; the next module record makes it true (an exec) */
    uint32_t generation; /* counts the changes that give its threads other sources */
};

/* A process in one state. */
struct state {
    uint32_t process;
    uint32_t life;
    struct text comm; /* data NULL: none known at that time */
    bool python;
    uint32_t kernel_epoch;
};

struct thread_name {
    int32_t pid;
    uint64_t tid;
    struct text latest;
    struct text first;
    uint32_t generation; /* counts its changes */
};

struct source_entry {
    uint32_t state;
    uint32_t group; /* struct source has the meaning */
    uint64_t tid;
    uint32_t thread_number;
    struct text thread;
};

/* What is known of a thread of the spool. */
struct spool_thread_entry {
    uint64_t tid;
    uint32_t source;          /* good as long as ... */
    uint32_t generation;      /* ... the process is of this generation */
    uint32_t name_generation; /* ... and, with per_thread, its name of this one */
    uint32_t kernel_epoch;    /* ... and in this epoch */
    uint32_t process;
    uint32_t name; /* with per_thread: index in thread_names */
};

struct names {
    bool per_thread;
    bool python_marks;
    uint32_t kernel_epoch;
    struct process *processes;
    size_t process_count, process_capacity;
    struct life *lives;
    size_t life_count, life_capacity;
    struct state *states;
    size_t state_count, state_capacity;
    struct source_entry *sources;
    size_t source_count, source_capacity;
    struct thread_name *thread_names;
    size_t thread_name_count, thread_name_capacity;
    struct spool_thread_entry *threads;
    size_t thread_count, thread_capacity;
    /* Open hashes of indexes + 1; 0 is free. */
    uint32_t *process_slots, *thread_name_slots;
    size_t process_slot_count, thread_name_slot_count;
    struct spread spread;
};

struct names *names_new(bool per_thread)
{
    struct names *n = cli_realloc(NULL, 1, sizeof *n);

    memset(n, 0, sizeof *n);
    n->spread = spread_new();
    n->per_thread = per_thread;
    return n;
}

void names_free(struct names *n)
{
    if (!n)
        return;
    free(n->processes);
    free(n->lives);
    free(n->states);
    free(n->sources);
    free(n->thread_names);
    free(n->threads);
    free(n->process_slots);
    free(n->thread_name_slots);
    free(n);
}

/* ---- tables ---- */

static size_t hash_ids(const struct names *n, int32_t pid, uint64_t tid)
{
    return (size_t)spread_number(&n->spread, spread_number(&n->spread, tid) ^ (uint32_t)pid);
}

static uint32_t new_life(struct names *n, uint32_t before)
{
    n->lives = cli_grow(n->lives, &n->life_capacity, n->life_count, sizeof *n->lives);
    n->lives[n->life_count] = (struct life){.before = before};
    return (uint32_t)n->life_count++;
}

static uint32_t *find_process_slot(const struct names *n, int32_t pid)
{
    size_t i = hash_ids(n, pid, 0) & (n->process_slot_count - 1);

    while (n->process_slots[i] && n->processes[n->process_slots[i] - 1].pid != pid)
        i = (i + 1) & (n->process_slot_count - 1);
    return &n->process_slots[i];
}

static struct process *find_process(const struct names *n, int32_t pid)
{
    uint32_t *slot;

    if (n->process_slot_count == 0)
        return NULL;
    slot = find_process_slot(n, pid);
    return *slot ? &n->processes[*slot - 1] : NULL;
}

static struct process *make_process(struct names *n, int32_t pid)
{
    struct process *found = find_process(n, pid);
    uint32_t id;

    if (found)
        return found;
    if (n->process_count * 2 >= n->process_slot_count) {
        n->process_slot_count = n->process_slot_count ? n->process_slot_count * 2 : 16;
        n->process_slots =
            cli_realloc(n->process_slots, n->process_slot_count, sizeof *n->process_slots);
        memset(n->process_slots, 0, n->process_slot_count * sizeof *n->process_slots);
        for (size_t i = 0; i < n->process_count; i++)
            *find_process_slot(n, n->processes[i].pid) = (uint32_t)i + 1;
    }
    id = (uint32_t)n->process_count;
    n->processes =
        cli_grow(n->processes, &n->process_capacity, n->process_count, sizeof *n->processes);
    n->processes[id] = (struct process){.pid = pid, .state = NAMES_NONE};
    n->process_count++;
    n->processes[id].life = new_life(n, NAMES_NONE);
    *find_process_slot(n, pid) = id + 1;
    return &n->processes[id];
}

static uint32_t *find_thread_name_slot(const struct names *n, int32_t pid, uint64_t tid)
{
    size_t i = hash_ids(n, pid, tid) & (n->thread_name_slot_count - 1);

    for (; n->thread_name_slots[i]; i = (i + 1) & (n->thread_name_slot_count - 1)) {
        const struct thread_name *t = &n->thread_names[n->thread_name_slots[i] - 1];

        if (t->pid == pid && t->tid == tid)
            break;
    }
    return &n->thread_name_slots[i];
}

static struct thread_name *find_thread_name(const struct names *n, int32_t pid, uint64_t tid)
{
    uint32_t *slot;

    if (n->thread_name_slot_count == 0)
        return NULL;
    slot = find_thread_name_slot(n, pid, tid);
    return *slot ? &n->thread_names[*slot - 1] : NULL;
}

static struct thread_name *make_thread_name(struct names *n, int32_t pid, uint64_t tid)
{
    struct thread_name *found = find_thread_name(n, pid, tid);

    if (found)
        return found;
    if (n->thread_name_count * 2 >= n->thread_name_slot_count) {
        n->thread_name_slot_count = n->thread_name_slot_count ? n->thread_name_slot_count * 2 : 16;
        n->thread_name_slots = cli_realloc(n->thread_name_slots, n->thread_name_slot_count,
                                           sizeof *n->thread_name_slots);
        memset(n->thread_name_slots, 0, n->thread_name_slot_count * sizeof *n->thread_name_slots);
        for (size_t i = 0; i < n->thread_name_count; i++)
            *find_thread_name_slot(n, n->thread_names[i].pid, n->thread_names[i].tid) =
                (uint32_t)i + 1;
    }
    n->thread_names = cli_grow(n->thread_names, &n->thread_name_capacity, n->thread_name_count,
                               sizeof *n->thread_names);
    found = &n->thread_names[n->thread_name_count++];
    *found = (struct thread_name){.pid = pid, .tid = tid};
    *find_thread_name_slot(n, pid, tid) = (uint32_t)n->thread_name_count;
    return found;
}

/* ---- records ---- */

/* Samples from here on belong to another source of this process. */
static void changed(struct process *p)
{
    p->state = NAMES_NONE;
    p->generation++;
}

static bool same_text(struct text a, struct text b)
{
    return a.size == b.size && (a.data == NULL) == (b.data == NULL) &&
           (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

static bool is_file(const struct spool_module *m)
{
    return !m->kernel && !m->jit && m->path_size > 0 && m->path[0] != '[' &&
           !sym_is_anonymous_path(m->path, m->path_size);
}

static void take_module(struct names *n, const struct spool_module *m)
{
    struct process *p;
    struct life *life;

    if (m->kernel)
        return;
    p = make_process(n, m->pid);
    life = &n->lives[p->life];
    if (!life->file_name.data && is_file(m))
        life->file_name.data = sym_display_path(m->path, m->path_size, &life->file_name.size);
    if (!p->first_file.data)
        p->first_file = life->file_name;
    if (!p->python_ending)
        return;
    p->python_ending = false;
    p->python = false;
    changed(p);
}

/* The life that names samples of a life: itself, else the last named one before it, else NAMES_NONE. `before` leads to
 * named lives only, so this is one step. */
static uint32_t named_life(const struct names *n, uint32_t life)
{
    return n->lives[life].file_name.data ? life : n->lives[life].before;
}

static void take_annotation(struct names *n, const struct spool_annotation *a)
{
    struct text text = {.data = a->text, .size = a->text_size};

    if (a->key == SPOOL_NOTE_COMM) {
        struct process *p = make_process(n, a->pid);

        if (!p->first_comm.data)
            p->first_comm = text;
        if (same_text(p->comm, text))
            return;
        p->comm = text;
        changed(p);
        return;
    }
    if (a->key == SPOOL_NOTE_THREAD) {
        struct thread_name *t = make_thread_name(n, a->pid, a->number[0]);

        if (!t->first.data)
            t->first = text;
        if (same_text(t->latest, text))
            return;
        t->latest = text;
        t->generation++;
    }
}

static void take_thread(struct names *n, const struct spool_thread *th)
{
    struct process *p = make_process(n, th->pid);

    n->threads = cli_grow(n->threads, &n->thread_capacity, n->thread_count, sizeof *n->threads);
    n->threads[n->thread_count] = (struct spool_thread_entry){
        .tid = th->tid,
        .source = NAMES_NONE,
        .process = (uint32_t)(p - n->processes),
    };
    if (n->per_thread)
        n->threads[n->thread_count].name =
            (uint32_t)(make_thread_name(n, th->pid, th->tid) - n->thread_names);
    n->thread_count++;
}

uint32_t names_thread(const struct names *n, uint32_t spool_thread)
{
    return n->threads[spool_thread].name;
}

void names_begin_epoch(struct names *n, uint32_t epoch)
{
    n->kernel_epoch = epoch;
}

void names_record(struct names *n, const struct spool_record *rec)
{
    struct process *p;

    switch (rec->type) {
    case SPOOL_RECORD_MODULE:
    case SPOOL_RECORD_JIT_MODULE:
        take_module(n, &rec->module);
        return;
    case SPOOL_RECORD_ANNOTATION:
        take_annotation(n, &rec->annotation);
        return;
    case SPOOL_RECORD_THREAD:
        take_thread(n, &rec->thread);
        return;
    case SPOOL_RECORD_PYTHON:
        n->python_marks = true;
        p = make_process(n, rec->python.pid);
        p->python_ending = !rec->python.on && p->python;
        if (!rec->python.on || p->python)
            return;
        p->python = true;
        changed(p);
        return;
    case SPOOL_RECORD_DEACTIVATE_PROCESS:
        p = make_process(n, rec->deactivated_pid);
        p->life = new_life(n, named_life(n, p->life));
        changed(p);
        return;
    default:
        return;
    }
}

/* ---- sources ---- */

static uint32_t current_state(struct names *n, struct process *p)
{
    uint32_t before = p->state;

    if (before != NAMES_NONE && n->states[before].kernel_epoch == n->kernel_epoch)
        return before;
    n->states = cli_grow(n->states, &n->state_capacity, n->state_count, sizeof *n->states);
    n->states[n->state_count] = (struct state){.process = (uint32_t)(p - n->processes),
                                               .life = p->life,
                                               .comm = p->comm,
                                               .python = p->python,
                                               .kernel_epoch = n->kernel_epoch};
    p->state = (uint32_t)n->state_count++;
    if (!n->per_thread) {
        /* States and sources are the same then. */
        n->sources = cli_grow(n->sources, &n->source_capacity, n->source_count, sizeof *n->sources);
        n->sources[n->source_count++] = (struct source_entry){
            .state = p->state,
            .group = before != NAMES_NONE ? n->sources[before].group : p->state,
        };
    }
    return p->state;
}

uint32_t names_source(struct names *n, const struct spool_sample *sample)
{
    struct spool_thread_entry *t = &n->threads[sample->thread];
    struct process *p = &n->processes[t->process];
    const struct thread_name *name = n->per_thread ? &n->thread_names[t->name] : NULL;
    uint32_t state, group;
    bool same = t->source != NAMES_NONE && t->generation == p->generation &&
                (!name || t->name_generation == name->generation);

    if (same && t->kernel_epoch == n->kernel_epoch)
        return t->source;
    t->generation = p->generation;
    t->kernel_epoch = n->kernel_epoch;
    state = current_state(n, p);
    if (!name) {
        t->source = state;
        return state;
    }
    t->name_generation = name->generation;
    n->sources = cli_grow(n->sources, &n->source_capacity, n->source_count, sizeof *n->sources);
    group = same ? n->sources[t->source].group : (uint32_t)n->source_count;
    n->sources[n->source_count] = (struct source_entry){.state = state,
                                                        .group = group,
                                                        .tid = t->tid,
                                                        .thread_number = t->name,
                                                        .thread = name->latest};
    t->source = (uint32_t)n->source_count++;
    return t->source;
}

uint32_t names_source_count(const struct names *n)
{
    return (uint32_t)n->source_count;
}

/* The file name of a life; one without any file (the last samples of a process that has ended) takes that of the one
 * before it. */
static struct text life_name(const struct names *n, uint32_t life)
{
    struct text none = {0};

    life = named_life(n, life);
    return life == NAMES_NONE ? none : n->lives[life].file_name;
}

void names_get_source(const struct names *n, uint32_t source, struct source *out)
{
    const struct source_entry *e = &n->sources[source];
    const struct state *s = &n->states[e->state];
    const struct process *p = &n->processes[s->process];
    struct text comm = s->comm.data ? s->comm : p->first_comm;
    struct text thread = e->thread;

    if (!comm.data)
        comm = life_name(n, s->life);
    if (!comm.data)
        comm = p->first_file; /* sampled before its first module */
    if (n->per_thread && !thread.data) {
        const struct thread_name *name = find_thread_name(n, p->pid, e->tid);

        if (name)
            thread = name->first;
    }
    *out = (struct source){.pid = p->pid,
                           .tid = e->tid,
                           .thread_number = e->thread_number,
                           .comm = comm.data,
                           .comm_size = comm.size,
                           .thread = thread.data,
                           .thread_size = thread.size,
                           .python = s->python,
                           .kernel_epoch = s->kernel_epoch,
                           .group = e->group};
}

const char *names_of_thread(const struct names *n, int32_t pid, uint64_t tid, size_t *size)
{
    const struct thread_name *name = find_thread_name(n, pid, tid);

    *size = name ? name->latest.size : 0;
    return name ? name->latest.data : NULL;
}

const char *names_of_process(const struct names *n, int32_t pid, size_t *size)
{
    const struct process *p = find_process(n, pid);
    struct text name = {0};

    if (p)
        name = p->comm.data ? p->comm : life_name(n, p->life);
    *size = name.size;
    return name.data;
}

bool names_has_python_marks(const struct names *n)
{
    return n->python_marks;
}
