/* SPDX-License-Identifier: MIT */
/*
 * Makes spools of any size for benchmarks and tests, deterministic by seed, shaped like the
 * synthetic fixtures of stackpulse (tests/fixtures/stackpulse/synth). What is written is what the
 * interning writer would write of the same samples, but ids are kept beside the model, so that 10
 * million samples take seconds.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "spool/spool.h"

#define NONE UINT32_MAX
#define BLOCK_SAMPLES (UINT64_C(1) << 20)
#define PERIOD_NS 1001001u /* 999 Hz */
#define START_NS UINT64_C(5000000000)
#define EVENT_EVERY 150u /* samples between changes of the modules, where the shape has any */
#define FIRST_PID 1000

#define KERNEL_BASE UINT64_C(0xffffffff81000000)
#define KERNEL_SIZE UINT64_C(0xd00000)
#define KERNEL_FRAMES 3000u
#define JIT_SLOTS 6u
#define JIT_SIZE UINT64_C(0x10000)
#define JIT_SYMBOLS 16u
#define PROGRAM_SIZE (UINT64_C(1) << 32)
#define PIECES_MAX 3u
/* Of a process: the stacks that do not branch off another one. The last begins at a marker. */
#define ROOT_STACKS 16u
/* The frames of a thread's start, which its stacks share. */
#define ENTRY_FRAMES 3u

enum shape { SHAPE_BASIC, SHAPE_CHURN, SHAPE_UNPINNED, SHAPE_DEEP, SHAPE_JIT };

static const char *const shape_names[] = {"basic", "churn", "unpinned", "deep", "jit"};

struct options {
    uint64_t samples; /* with `bytes`: those that have all stacks among them */
    uint64_t bytes;   /* 0: as many as the samples take */
    uint64_t stacks;
    uint64_t threads;
    uint64_t processes;
    uint64_t depth;
    uint64_t modules;
    uint64_t seed;
    uint64_t version;
    enum shape shape;
    bool stats;
    const char *output;
    const char *program;  /* with `offsets`: all frames are at offsets in this file */
    const char *offsets;  /* a file, hexadecimal, one a line */
    const char *build_id; /* of the program, as it is recorded; NULL: it is not */
};

/* What is mapped now at a part of a slot. */
struct piece {
    uint64_t start;
    uint64_t end;
    uint64_t file_offset;
    uint32_t module;
};

/* A place where a file, or generated code, is always mapped, if not always by the same module. */
struct slot {
    uint64_t start;
    uint64_t size;
    uint64_t file_offset;
    uint64_t inode;
    int32_t pid;
    bool kernel;
    bool jit;
    char text[64];
    const char *path; /* NULL: text */
    struct piece pieces[PIECES_MAX];
    uint32_t piece_count;
};

struct frame {
    uint64_t address;
    uint32_t slot; /* pinned only */
    enum spool_frame_kind kind;
    uint32_t id;
    uint32_t tag; /* what id was written for: a module, or for loose frames the epoch */
};

/* A node of the forest of all stacks there will be. */
struct node {
    uint32_t parent;
    uint32_t frame;
    uint32_t epoch; /* id is right as long as this is the present one */
    uint32_t id;
    uint32_t written_prefix;
    uint32_t written_frame;
    uint32_t depth;
    bool kernel;
    bool sampled;
};

struct process {
    int32_t pid;
    uint32_t first_slot;
    uint32_t slot_count;
    uint32_t first_frame;
    uint32_t frame_count;
    uint32_t *stacks; /* nodes, in the order of their first sample */
    uint32_t stack_count;
    uint32_t stack_capacity;
};

/* Samples once written, with whatever time is before them: what a sample record has of time is a difference. */
struct block {
    uint8_t *bytes;
    size_t size;
    size_t capacity;
    uint64_t samples;
    uint64_t depth_sum;
    bool taking;
};

struct generator {
    const struct options *o;
    int fd;
    struct block block;
    uint64_t repeated_bytes; /* which the writer does not know of */
    uint64_t random;
    struct spool_writer *w;
    struct slot *slots;
    uint32_t slot_count;
    struct process *processes;
    struct frame *frames;
    uint32_t frame_count;
    uint32_t kernel_frames; /* first */
    uint32_t marker_frame;
    struct node *nodes;
    uint32_t node_count;
    uint32_t node_capacity;
    uint32_t *by_content; /* hash of nodes by parent and frame */
    uint32_t hash_size;
    uint32_t *thread_ids;
    uint32_t *chain; /* scratch */
    uint32_t chain_capacity;
    uint32_t epoch;
    double branch_more; /* probability that a new stack has one more new node */
    uint64_t stacks_used;
    /* written so far */
    uint32_t module_ids, frame_ids, stack_ids, threads_defined;
    uint64_t samples, depth_sum;
};

/* ---- helpers ---- */

static _Noreturn void die(const char *what, const char *why)
{
    fprintf(stderr, "spoolgen: %s: %s\n", what, why);
    exit(1);
}

static void *allocate(size_t count, size_t size)
{
    void *p = calloc(count, size);

    if (p == NULL)
        die("memory", "none left");
    return p;
}

static uint32_t *grow(uint32_t *array, uint32_t *capacity)
{
    *capacity = *capacity == 0 ? 1024 : *capacity * 2;
    array = realloc(array, *capacity * sizeof *array);
    if (array == NULL)
        die("memory", "none left");
    return array;
}

/* splitmix64 */
static uint64_t next_random(struct generator *g)
{
    uint64_t z = g->random += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* 0 to below 1 */
static double fraction(struct generator *g)
{
    return (double)(next_random(g) >> 11) * 0x1p-53;
}

static uint32_t below(struct generator *g, uint32_t limit)
{
    return (uint32_t)((next_random(g) >> 32) * limit >> 32);
}

static bool chance(struct generator *g, double probability)
{
    return fraction(g) < probability;
}

static int write_all(int fd, const uint8_t *bytes, size_t size)
{
    while (size > 0) {
        ssize_t n = write(fd, bytes, size);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? errno : EIO;
        bytes += n;
        size -= (size_t)n;
    }
    return 0;
}

static int take_bytes(void *user, const void *data, size_t size)
{
    struct generator *g = user;
    struct block *b = &g->block;

    if (b->taking) {
        if (b->size + size > b->capacity) {
            b->capacity = 2 * (b->size + size);
            b->bytes = realloc(b->bytes, b->capacity);
            if (b->bytes == NULL)
                die("memory", "none left");
        }
        memcpy(b->bytes + b->size, data, size);
        b->size += size;
    }
    return write_all(g->fd, data, size);
}

static void check(struct generator *g, int rc)
{
    if (rc < 0)
        die("output", spool_writer_error(g->w));
}

static void put(struct generator *g, const struct spool_record *rec)
{
    check(g, spool_writer_put(g->w, rec));
}

/* ---- modules ---- */

/* Writes a module for [start, end) of a slot and puts it at the end of its pieces. */
static void map_piece(struct generator *g, struct slot *s, uint64_t start, uint64_t end,
                      uint64_t file_offset)
{
    struct spool_jit_symbol symbols[JIT_SYMBOLS];
    char names[JIT_SYMBOLS][32];
    const char *path = s->path != NULL ? s->path : s->text;
    struct spool_module m = {
        .pid = s->pid,
        .kernel = s->kernel,
        .jit = s->jit,
        .start = start,
        .end = end,
        .file_offset = file_offset,
        .inode = s->inode,
        .path = path,
        .path_size = strlen(path),
    };

    if (s->inode != 0) {
        m.dev_major = 254;
        m.dev_minor = 1;
        m.inode_gen = 1;
    }
    if (s->jit) {
        uint64_t step = (end - start) / JIT_SYMBOLS;

        for (unsigned i = 0; i < JIT_SYMBOLS; i++) {
            int size = snprintf(names[i], sizeof names[i], "jit_%" PRIu32 "_%u", g->module_ids, i);

            symbols[i] = (struct spool_jit_symbol){
                .start = start + i * step,
                .end = start + (i + 1) * step - 16,
                .name = names[i],
                .name_size = (size_t)size,
            };
        }
        m.jit_symbols = symbols;
        m.jit_symbol_count = JIT_SYMBOLS;
    }
    s->pieces[s->piece_count++] = (struct piece){start, end, file_offset, g->module_ids};
    check(g, spool_writer_module(g->w, &m, &g->module_ids));
    g->module_ids++;
    g->epoch++;
}

static void map_slot(struct generator *g, struct slot *s)
{
    map_piece(g, s, s->start, s->start + s->size, s->file_offset);
}

static void unmap_slot(struct generator *g, struct slot *s)
{
    for (uint32_t i = 0; i < s->piece_count; i++)
        check(g, spool_writer_deactivate_module(g->w, s->pieces[i].module));
    s->piece_count = 0;
    g->epoch++;
}

/* Something new in the middle, as stackpulse's mapping table records it: what remains on both sides
 * is retired and defined again. */
static void replace_middle(struct generator *g, struct slot *s)
{
    uint64_t left = s->start + s->size / 4 / 4096 * 4096;
    uint64_t right = s->start + s->size / 2 / 4096 * 4096;

    unmap_slot(g, s);
    map_piece(g, s, s->start, left, s->file_offset);
    map_piece(g, s, right, s->start + s->size, s->file_offset + (right - s->start));
    map_piece(g, s, left, right, 0x1000);
}

static void reregister(struct generator *g, const struct process *p)
{
    check(g, spool_writer_deactivate_process(g->w, p->pid));
    for (uint32_t i = 0; i < p->slot_count; i++) {
        struct slot *s = &g->slots[p->first_slot + i];

        s->piece_count = 0;
        map_slot(g, s);
    }
}

/* One change of the modules. */
static void change_modules(struct generator *g)
{
    struct process *p = &g->processes[below(g, (uint32_t)g->o->processes)];
    struct slot *s;
    uint32_t kind = below(g, 10);

    if (g->o->shape == SHAPE_JIT) {
        s = &g->slots[p->first_slot + p->slot_count - 1 - below(g, JIT_SLOTS)];
        unmap_slot(g, s);
        map_slot(g, s);
        return;
    }
    s = &g->slots[p->first_slot + below(g, p->slot_count)];
    if (kind == 0) {
        reregister(g, p);
    } else if (kind < 5) {
        replace_middle(g, s);
    } else {
        unmap_slot(g, s);
        map_slot(g, s);
    }
}

/* ---- the model: slots, frames, nodes ---- */

/* One process that has one file mapped, all of it: its frames are where the user says. */
static void make_program(struct generator *g)
{
    struct slot *s = &g->slots[g->slot_count++];

    g->processes[0] = (struct process){.pid = FIRST_PID, .first_slot = 1, .slot_count = 1};
    *s = (struct slot){.start = UINT64_C(0x555500000000),
                       .size = PROGRAM_SIZE,
                       .pid = FIRST_PID,
                       .path = g->o->program};
    map_slot(g, s);
    if (g->o->build_id != NULL) {
        char value[200];

        snprintf(value, sizeof value, "%u %s", s->pieces[0].module, g->o->build_id);
        check(g, spool_writer_annotate(g->w, FIRST_PID, "build-id", value));
    }
}

static void make_slots(struct generator *g)
{
    uint32_t jit_slots = g->o->shape == SHAPE_JIT ? JIT_SLOTS : 0;
    uint32_t per_process = (uint32_t)g->o->modules + jit_slots;
    struct slot *s;

    g->slots = allocate(1 + (size_t)per_process * g->o->processes, sizeof *g->slots);
    g->processes = allocate(g->o->processes, sizeof *g->processes);
    s = &g->slots[g->slot_count++];
    *s = (struct slot){.start = KERNEL_BASE, .size = KERNEL_SIZE, .kernel = true, .pid = -1};
    strcpy(s->text, "[kernel.kallsyms]_text");
    map_slot(g, s);
    if (g->o->program != NULL) {
        make_program(g);
        return;
    }
    for (uint32_t i = 0; i < g->o->processes; i++) {
        struct process *p = &g->processes[i];
        uint64_t libraries = UINT64_C(0x7f0000000000) + ((uint64_t)below(g, 0xff0000) << 12);

        p->pid = FIRST_PID + (int32_t)i * 100;
        p->first_slot = g->slot_count;
        p->slot_count = per_process;
        for (uint32_t j = 0; j < per_process; j++) {
            s = &g->slots[g->slot_count++];
            s->pid = p->pid;
            s->size = (UINT64_C(256) + below(g, 256)) << 12;
            if (j >= g->o->modules) {
                s->jit = true;
                s->size = JIT_SIZE;
                s->start = UINT64_C(0x7e0000000000) + j * 2 * JIT_SIZE;
                snprintf(s->text, sizeof s->text, "[jit-1-%" PRIx64 "-%" PRIx64 "]", s->start,
                         s->size);
            } else if (j == 0) {
                s->start = UINT64_C(0x555500000000) + ((uint64_t)below(g, 0xaaa00) << 12);
                s->inode = 10000;
                strcpy(s->text, "/opt/demo/app");
            } else {
                s->start = libraries + j * UINT64_C(0x1000000);
                s->file_offset = j % 4 * UINT64_C(0x1000);
                s->inode = 10000 + j;
                snprintf(s->text, sizeof s->text, "/usr/lib/demo/libm%03" PRIu32 ".so.1", j);
            }
            map_slot(g, s);
        }
    }
}

/* Address number i of a slot: all below its size are different. */
static uint64_t slot_address(const struct slot *s, uint32_t i)
{
    return s->start + (uint64_t)i * 1000003 % s->size;
}

static void add_marker(struct generator *g)
{
    g->marker_frame = g->frame_count;
    g->frames[g->frame_count++] =
        (struct frame){.kind = SPOOL_FRAME_TRUNCATED, .slot = NONE, .id = NONE};
}

static void read_offsets(struct generator *g)
{
    FILE *f = fopen(g->o->offsets, "r");
    uint32_t capacity = 0;
    char line[64];
    char *end;

    if (f == NULL)
        die(g->o->offsets, strerror(errno));
    while (fgets(line, sizeof line, f) != NULL) {
        uint64_t offset = strtoull(line, &end, 16);

        if (end == line || *end != '\n' || offset >= PROGRAM_SIZE)
            die(g->o->offsets, "a line is not an offset");
        if (g->frame_count + 1 >= capacity) { /* the marker needs one too */
            capacity = capacity == 0 ? 1024 : capacity * 2;
            g->frames = realloc(g->frames, capacity * sizeof *g->frames);
            if (g->frames == NULL)
                die("memory", "none left");
        }
        g->frames[g->frame_count++] =
            (struct frame){.slot = 1, .address = g->slots[1].start + offset, .id = NONE};
    }
    fclose(f);
    if (g->frame_count < 2 * ENTRY_FRAMES)
        die(g->o->offsets, "too few offsets");
    g->processes[0].frame_count = g->frame_count;
    add_marker(g);
}

static void make_frames(struct generator *g)
{
    double loose = g->o->shape == SHAPE_UNPINNED ? 0.27 : 0.02;
    uint64_t wanted = g->o->stacks / 8 / g->o->processes;
    uint32_t per_process = (uint32_t)(wanted < 800 ? 800 : wanted);

    g->frames =
        allocate(1 + KERNEL_FRAMES + (size_t)per_process * g->o->processes, sizeof *g->frames);
    for (uint32_t i = 0; i < g->o->processes; i++) {
        struct process *p = &g->processes[i];

        p->first_frame = g->frame_count;
        p->frame_count = per_process;
        for (uint32_t j = 0; j < per_process; j++) {
            struct frame *f = &g->frames[g->frame_count++];
            uint32_t slot = p->first_slot + (chance(g, 0.3) ? 0 : below(g, p->slot_count));

            *f = (struct frame){.slot = slot, .address = slot_address(&g->slots[slot], j)};
            if (j >= 2 * ENTRY_FRAMES && chance(g, loose)) {
                f->kind = SPOOL_FRAME_UNPINNED;
                f->slot = NONE;
                if (g->o->shape != SHAPE_UNPINNED || chance(g, 0.5))
                    f->address = UINT64_C(0x7e8000000000) + ((uint64_t)i << 32) + j * UINT64_C(64);
            }
            f->id = NONE;
        }
    }
    g->kernel_frames = g->frame_count;
    for (uint32_t j = 0; j < KERNEL_FRAMES; j++)
        g->frames[g->frame_count++] =
            (struct frame){.address = slot_address(&g->slots[0], j), .id = NONE};
    add_marker(g);
}

static void rehash(struct generator *g)
{
    free(g->by_content);
    g->hash_size = g->hash_size == 0 ? 4096 : g->hash_size * 2;
    g->by_content = malloc(g->hash_size * sizeof *g->by_content);
    if (g->by_content == NULL)
        die("memory", "none left");
    memset(g->by_content, 0xff, g->hash_size * sizeof *g->by_content);
}

static uint32_t *find_place(struct generator *g, uint32_t parent, uint32_t frame)
{
    uint64_t h = ((uint64_t)parent << 32 | frame) * UINT64_C(0x9e3779b97f4a7c15);
    uint32_t i;

    h = (h ^ h >> 32) * UINT64_C(0xd6e8feb86659fd93);
    for (i = (uint32_t)(h >> 32) & (g->hash_size - 1); g->by_content[i] != NONE;
         i = (i + 1) & (g->hash_size - 1)) {
        const struct node *n = &g->nodes[g->by_content[i]];

        if (n->parent == parent && n->frame == frame)
            break;
    }
    return &g->by_content[i];
}

/* The node of this content, made if it is not there. */
static uint32_t child(struct generator *g, uint32_t parent, uint32_t frame, bool kernel)
{
    uint32_t *place;

    if (g->node_count >= g->hash_size / 2) {
        rehash(g);
        for (uint32_t i = 0; i < g->node_count; i++)
            *find_place(g, g->nodes[i].parent, g->nodes[i].frame) = i;
    }
    place = find_place(g, parent, frame);
    if (*place != NONE)
        return *place;
    if (g->node_count == g->node_capacity) {
        g->node_capacity = g->node_capacity == 0 ? 4096 : g->node_capacity * 2;
        g->nodes = realloc(g->nodes, g->node_capacity * sizeof *g->nodes);
        if (g->nodes == NULL)
            die("memory", "none left");
    }
    *place = g->node_count;
    g->nodes[g->node_count] = (struct node){
        .parent = parent,
        .frame = frame,
        .id = NONE,
        .depth = parent == NONE ? 1 : g->nodes[parent].depth + 1,
        .kernel = kernel,
    };
    return g->node_count++;
}

/* Some functions are called more than others. */
static uint32_t pick_frame(struct generator *g, const struct process *p, bool kernel)
{
    double x = fraction(g);

    return kernel ? g->kernel_frames + (uint32_t)(x * x * KERNEL_FRAMES)
                  : p->first_frame + (uint32_t)(x * x * p->frame_count);
}

/* Where a new stack branches off: from the root in the beginning, else from a stack that is there,
 * at `depth` or nearer to the root. */
static uint32_t branch(struct generator *g, const struct process *p, uint32_t depth, bool kernel)
{
    uint32_t node = NONE;

    if (p->stack_count >= ROOT_STACKS) {
        node = p->stacks[below(g, p->stack_count)];
        while (g->nodes[node].parent != NONE &&
               (g->nodes[node].depth > depth || (g->nodes[node].kernel && !kernel)))
            node = g->nodes[node].parent;
        return node;
    }
    if (p->stack_count == ROOT_STACKS - 1)
        return child(g, NONE, g->marker_frame, false);
    for (uint32_t i = 0; i < ENTRY_FRAMES; i++)
        node = child(g, node, p->first_frame + p->stack_count % 2 * ENTRY_FRAMES + i, false);
    return node;
}

/* A stack that no sample had yet. */
static uint32_t new_stack(struct generator *g, struct process *p)
{
    uint32_t depth = 1 + (uint32_t)((double)g->o->depth * (0.75 + 0.5 * fraction(g)));
    uint32_t added = 1, kernel_frames = 0;
    uint32_t node;

    while (chance(g, g->branch_more))
        added++;
    if (g->o->shape == SHAPE_DEEP && chance(g, 0.02))
        depth *= 4;
    if (g->o->program == NULL && chance(g, 0.1))
        kernel_frames = 1 + below(g, 3);
    node = branch(g, p, depth > added ? depth - added : 1, kernel_frames > 0);
    if (p->stack_count < ROOT_STACKS && depth > g->nodes[node].depth + added)
        added = depth - g->nodes[node].depth;
    for (uint32_t i = 0; i < added || g->nodes[node].sampled; i++) {
        bool kernel = g->nodes[node].kernel || (kernel_frames > 0 && i + kernel_frames >= added);

        node = child(g, node, pick_frame(g, p, kernel), kernel);
    }
    g->nodes[node].sampled = true;
    if (p->stack_count == p->stack_capacity)
        p->stacks = grow(p->stacks, &p->stack_capacity);
    p->stacks[p->stack_count++] = node;
    g->stacks_used++;
    return node;
}

/* ---- writing ---- */

static uint32_t write_frame(struct generator *g, struct frame *f)
{
    struct spool_record rec = {.type = SPOOL_RECORD_FRAME};
    uint32_t tag = 0;

    rec.frame.kind = f->kind;
    if (f->kind == SPOOL_FRAME_UNPINNED) {
        tag = g->epoch;
        rec.frame.abs = f->address;
    } else if (f->kind == SPOOL_FRAME_PINNED) {
        const struct slot *s = &g->slots[f->slot];
        const struct piece *piece = s->pieces;

        while (f->address < piece->start || f->address >= piece->end)
            piece++; /* the pieces cover the slot */
        tag = piece->module;
        rec.frame.module_id = piece->module;
        rec.frame.rel = f->address - piece->start + piece->file_offset;
    }
    if (f->id != NONE && f->tag == tag)
        return f->id;
    f->id = g->frame_ids++;
    f->tag = tag;
    rec.frame.id = f->id;
    put(g, &rec);
    return f->id;
}

static uint32_t write_stack(struct generator *g, uint32_t leaf)
{
    struct spool_record rec = {.type = SPOOL_RECORD_STACK};
    uint32_t count = 0;
    uint32_t n;

    for (n = leaf; n != NONE && g->nodes[n].epoch != g->epoch; n = g->nodes[n].parent) {
        if (count == g->chain_capacity)
            g->chain = grow(g->chain, &g->chain_capacity);
        g->chain[count++] = n;
    }
    while (count > 0) {
        struct node *node = &g->nodes[g->chain[--count]];
        uint32_t frame = write_frame(g, &g->frames[node->frame]);
        uint32_t prefix = node->parent == NONE ? SPOOL_NO_ID : g->nodes[node->parent].id;

        node->epoch = g->epoch;
        if (node->id != NONE && node->written_prefix == prefix && node->written_frame == frame)
            continue;
        node->id = g->stack_ids++;
        node->written_prefix = prefix;
        node->written_frame = frame;
        rec.stack.id = node->id;
        rec.stack.prefix = prefix;
        rec.stack.frame = frame;
        put(g, &rec);
    }
    return g->nodes[leaf].id;
}

static void write_sample(struct generator *g, uint64_t time_ns, uint32_t thread, uint32_t node)
{
    struct spool_record rec = {.type = SPOOL_RECORD_SAMPLE};
    uint32_t stack = write_stack(g, node);

    if (g->thread_ids[thread] == NONE) {
        struct spool_record def = {.type = SPOOL_RECORD_THREAD};
        int32_t pid = g->processes[thread % g->o->processes].pid;

        def.thread.id = g->thread_ids[thread] = g->threads_defined++;
        def.thread.pid = pid;
        def.thread.tid = (uint64_t)pid + thread / g->o->processes;
        put(g, &def);
    }
    rec.sample.time_ns = time_ns;
    rec.sample.thread = g->thread_ids[thread];
    rec.sample.stack = stack;
    put(g, &rec);
    g->samples++;
    g->depth_sum += g->nodes[node].depth;
}

/* The sample number at which new stack number k is due: many in the beginning, fewer later. */
static uint64_t due(struct generator *g, uint64_t k)
{
    double x = ((double)k + fraction(g)) / (double)g->o->stacks;

    return (uint64_t)((0.75 * x * x + 0.25 * x) * (double)g->o->samples);
}

/* Of the stacks there are the early ones are the hot ones: frequency falls with rank^-0.75. */
static uint32_t pick_stack(struct generator *g, const struct process *p)
{
    double x = fraction(g);

    x *= x;
    return p->stacks[(uint32_t)(x * x * p->stack_count)];
}

static bool unfinished(const struct generator *g)
{
    return g->o->bytes > 0 ? spool_writer_bytes(g->w) + g->repeated_bytes < g->o->bytes
                           : g->samples < g->o->samples;
}

/* Where all is defined and nothing changes, a block of samples is taken and repeated: making each anew would take longer
 * than reading it. */
static void repeat_samples(struct generator *g)
{
    struct block *b = &g->block;

    if (!b->taking && b->size == 0) {
        check(g, spool_writer_flush(g->w));
        b->taking = true;
        b->samples = g->samples;
        b->depth_sum = g->depth_sum;
    }
    if (!b->taking || g->samples - b->samples < BLOCK_SAMPLES)
        return;
    check(g, spool_writer_flush(g->w));
    b->taking = false;
    b->samples = g->samples - b->samples;
    b->depth_sum = g->depth_sum - b->depth_sum;
    while (spool_writer_bytes(g->w) + g->repeated_bytes + b->size <= g->o->bytes) {
        int error = write_all(g->fd, b->bytes, b->size);

        if (error != 0)
            die("output", strerror(error));
        g->repeated_bytes += b->size;
        g->samples += b->samples;
        g->depth_sum += b->depth_sum;
    }
}

static void write_samples(struct generator *g)
{
    const struct options *o = g->o;
    bool events = o->shape == SHAPE_CHURN || o->shape == SHAPE_UNPINNED || o->shape == SHAPE_JIT;
    uint32_t spacing = PERIOD_NS / (uint32_t)o->threads;
    uint64_t round_ns = START_NS;
    uint64_t next_due = due(g, 0);

    for (uint64_t round = 0; unfinished(g); round++, round_ns += PERIOD_NS) {
        if (o->bytes > 0 && !events && g->samples >= o->samples)
            repeat_samples(g);
        for (uint32_t t = 0; t < o->threads && unfinished(g); t++) {
            struct process *p = &g->processes[t % o->processes];
            uint64_t time_ns = round_ns + (uint64_t)t * spacing + below(g, spacing / 4 + 1);
            uint64_t left = o->samples - g->samples;
            uint32_t node;

            if (round > 0 && chance(g, 0.1))
                continue; /* not on a CPU */
            if (events && g->samples > 0 && g->samples % EVENT_EVERY == 0)
                change_modules(g);
            if (p->stack_count == 0 ||
                (g->stacks_used < o->stacks &&
                 (g->samples >= next_due || left <= o->stacks - g->stacks_used))) {
                node = new_stack(g, p);
                next_due = due(g, g->stacks_used);
            } else {
                node = pick_stack(g, p);
            }
            write_sample(g, time_ns, t, node);
        }
    }
}

static void generate(struct generator *g, int fd)
{
    const struct options *o = g->o;
    struct spool_header header = {
        .version = (uint32_t)o->version,
        .start_us = o->version == 3 ? UINT64_C(1700000000000000) : 0,
        .interval_us = 1001,
        .interval_ns = PERIOD_NS,
        .has_origin = true,
        .origin = {.monotonic_ns = START_NS, .sign = 1, .seconds = 1700000000, .nanoseconds = 5},
    };
    bool python = o->shape == SHAPE_CHURN;

    g->random = o->seed;
    g->branch_more = o->shape == SHAPE_DEEP ? 0.86 : 0.61;
    g->w = spool_writer_new();
    if (g->w == NULL)
        die("memory", "none left");
    g->fd = fd;
    check(g, spool_writer_open_callback(g->w, take_bytes, g, &header));
    make_slots(g);
    if (o->program != NULL)
        read_offsets(g);
    else
        make_frames(g);
    g->thread_ids = allocate(o->threads, sizeof *g->thread_ids);
    memset(g->thread_ids, 0xff, o->threads * sizeof *g->thread_ids);
    if (python)
        check(g, spool_writer_python(g->w, 0, FIRST_PID, true));
    write_samples(g);
    if (python)
        check(g, spool_writer_python(g->w, START_NS * 2, FIRST_PID, false));
    check(g, spool_writer_finish(g->w));
}

static void release(struct generator *g)
{
    spool_writer_free(g->w);
    for (uint32_t i = 0; i < g->o->processes; i++)
        free(g->processes[i].stacks);
    free(g->processes);
    free(g->slots);
    free(g->frames);
    free(g->nodes);
    free(g->by_content);
    free(g->thread_ids);
    free(g->chain);
    free(g->block.bytes);
}

/* ---- command line ---- */

static _Noreturn void usage(int status)
{
    fputs("usage: spoolgen [--samples N] [--bytes N] [--stacks N] [--threads N] [--processes N]\n"
          "                [--depth N] [--modules N] [--seed N] [--version 3|4]\n"
          "                [--shape basic|churn|unpinned|deep|jit] [--stats] [-o FILE]\n"
          "       spoolgen --program PATH --offsets FILE [--build-id HEX] [--samples N] ...\n"
          "with --program, all frames are at the offsets in PATH that FILE lists, hexadecimal,\n"
          "one a line, and the threads belong to one process\n"
          "with --bytes, more samples follow until the spool has that size; but for changes of "
          "modules,\n"
          "nothing more is defined in them; where no module changes, they repeat themselves\n",
          status == 0 ? stdout : stderr);
    exit(status);
}

static uint64_t number(const char *option, const char *text, uint64_t low, uint64_t high)
{
    char *end;
    unsigned long long value;

    errno = 0;
    value = strtoull(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || *text == '-' || value < low || value > high) {
        fprintf(stderr, "spoolgen: --%s takes a number from %" PRIu64 " to %" PRIu64 "\n", option,
                low, high);
        exit(2);
    }
    return value;
}

static enum shape shape_named(const char *name)
{
    for (int i = 0; i < (int)(sizeof shape_names / sizeof shape_names[0]); i++)
        if (strcmp(name, shape_names[i]) == 0)
            return (enum shape)i;
    usage(2);
}

static struct options parse(int argc, char **argv)
{
    static const struct option longs[] = {
        {"samples", required_argument, NULL, 'n'},
        {"bytes", required_argument, NULL, 'B'},
        {"stacks", required_argument, NULL, 's'},
        {"threads", required_argument, NULL, 't'},
        {"processes", required_argument, NULL, 'p'},
        {"depth", required_argument, NULL, 'd'},
        {"modules", required_argument, NULL, 'm'},
        {"seed", required_argument, NULL, 'r'},
        {"version", required_argument, NULL, 'v'},
        {"shape", required_argument, NULL, 'S'},
        {"stats", no_argument, NULL, 'x'},
        {"output", required_argument, NULL, 'o'},
        {"program", required_argument, NULL, 'P'},
        {"offsets", required_argument, NULL, 'O'},
        {"build-id", required_argument, NULL, 'b'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    struct options o = {
        .samples = 10000000, .threads = 16, .processes = 4, .modules = 12, .seed = 1};
    int c;

    while ((c = getopt_long(argc, argv, "o:h", longs, NULL)) != -1) {
        switch (c) {
        case 'n':
            o.samples = number("samples", optarg, 1, 1000000000000);
            break;
        case 'B':
            o.bytes = number("bytes", optarg, 1, 1000000000000000);
            break;
        case 's':
            o.stacks = number("stacks", optarg, 1, 1000000000);
            break;
        case 't':
            o.threads = number("threads", optarg, 1, 100000);
            break;
        case 'p':
            o.processes = number("processes", optarg, 1, 10000);
            break;
        case 'd':
            o.depth = number("depth", optarg, 2, 100000);
            break;
        case 'm':
            o.modules = number("modules", optarg, 1, 10000);
            break;
        case 'r':
            o.seed = number("seed", optarg, 0, UINT64_MAX);
            break;
        case 'v':
            o.version = number("version", optarg, 3, 4);
            break;
        case 'S':
            o.shape = shape_named(optarg);
            break;
        case 'x':
            o.stats = true;
            break;
        case 'o':
            o.output = optarg;
            break;
        case 'P':
            o.program = optarg;
            break;
        case 'O':
            o.offsets = optarg;
            break;
        case 'b':
            o.build_id = optarg;
            break;
        case 'h':
            usage(0);
        default:
            usage(2);
        }
    }
    if (optind != argc || (o.program == NULL) != (o.offsets == NULL) ||
        (o.program == NULL && o.build_id != NULL) || (o.program != NULL && o.shape != SHAPE_BASIC))
        usage(2);
    if (o.program != NULL)
        o.processes = 1;
    if (o.version == 0)
        o.version = o.shape == SHAPE_JIT ? 4 : 3;
    if (o.depth == 0)
        o.depth = o.shape == SHAPE_DEEP ? 78 : 19;
    if (o.processes > o.samples)
        o.processes = o.samples;
    if (o.threads < o.processes)
        o.threads = o.processes;
    if (o.stacks == 0)
        o.stacks = o.samples / 25 * 3; /* 12 % */
    if (o.stacks < o.processes)
        o.stacks = o.processes;
    if (o.stacks > o.samples || (o.shape == SHAPE_JIT && o.version == 3)) {
        fputs("spoolgen: more stacks than samples, or generated code in version 3\n", stderr);
        exit(2);
    }
    return o;
}

int main(int argc, char **argv)
{
    struct options o = parse(argc, argv);
    struct generator g = {.o = &o};
    int fd = STDOUT_FILENO;

    if (o.output != NULL && strcmp(o.output, "-") != 0)
        fd = open(o.output, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0)
        die(o.output, strerror(errno));
    if (isatty(fd))
        die("standard output", "is a terminal");
    generate(&g, fd);
    if (close(fd) != 0)
        die("output", strerror(errno));
    if (o.stats)
        fprintf(stderr,
                "bytes %" PRIu64 "\nsamples %" PRIu64 "\ndistinct stacks %" PRIu64
                "\nstack nodes %" PRIu32 "\nframes %" PRIu32 "\nmodules %" PRIu32
                "\nthreads %" PRIu32 "\nmean depth %.2f\n",
                spool_writer_bytes(g.w) + g.repeated_bytes, g.samples, g.stacks_used, g.stack_ids,
                g.frame_ids, g.module_ids, g.threads_defined,
                (double)g.depth_sum / (double)g.samples);
    release(&g);
    return 0;
}
