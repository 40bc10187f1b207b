/* SPDX-License-Identifier: MIT */
/*
 * What is found without unwind data, measured where there is some: each heuristic at each frame, with the registers
 * that the frame had, and whole walks that see no unwind data at all. The truth is libdw's walk of stacks whose
 * walk by ours is complete and the same.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "replay_modes.h"
#include "unwind_walk.h"

static int top_of_stack(struct walk *w)
{
    return recordint_walk_top_of_stack(w, false);
}

static int by_code(struct walk *w)
{
    struct unwind_space *space = w->space;
    struct unwind_space uncached = *space; /* what is kept there is for code without unwind data */
    const struct rule none = {.kind = RULE_NONE};
    const struct rule *rule;
    int end = UNWIND_NO_RULE;

    uncached.cache = NULL;
    w->space = &uncached;
    rule = recordint_walk_code_rule(w, walk_pc(w) - (w->leaf ? 0 : 1), &none);
    if (rule->kind == RULE_SIMPLE)
        end = recordint_walk_code_step(w, rule);
    w->space = space;
    return end;
}

/* The place for more: name, and the step by itself. */
const struct replay_heuristic replay_heuristics[] = {
    {"frame-pointer", recordint_walk_frame_pointer},
    {"top-of-stack", top_of_stack},
    {"by-code", by_code},
};
const size_t replay_heuristic_count = sizeof replay_heuristics / sizeof replay_heuristics[0];

#define HEURISTICS_MAX 8

struct score {
    size_t tried, given, right;
    size_t above; /* a wrong one, but a caller of a caller */
};

struct hidden {
    size_t stacks, truth;   /* frames of the true chains */
    size_t given, is_false; /* frames given; those that are not in the true chain, in order */
    size_t skipped;         /* true frames left out between two that were given */
    size_t cut;             /* and behind the last one */
    size_t whole;           /* stacks with all frames and no others */
};

static void try_each(struct replay_world *world, const struct replay_sample *sample,
                     const struct libdw_walk *truth, size_t i, struct score (*scores)[2])
{
    const struct libdw_state *state = &truth->state[i];

    for (size_t h = 0; h < replay_heuristic_count; h++) {
        struct score *score = &scores[h][state->leaf ? 0 : 1];
        struct walk w;

        memset(&w, 0, sizeof w);
        w.space = &world->space;
        w.arch = ARCH_NATIVE;
        w.regs = state->regs;
        w.cfa = state->cfa;
        w.leaf = state->leaf;
        w.copy.bytes = sample->event->sample.stack;
        w.copy.start = sample->event->sample.regs.value[reg_sp(ARCH_NATIVE)];
        w.copy.size = sample->event->sample.stack_size;
        score->tried++;
        if (replay_heuristics[h].step(&w) != WALK_ON)
            continue;
        score->given++;
        for (size_t at = i + 1; at < truth->count; at++) {
            if (walk_pc(&w) != truth->state[at].regs.value[reg_pc(ARCH_NATIVE)])
                continue;
            score->right += at == i + 1;
            score->above += at > i + 1;
            break;
        }
    }
}

static void compare_hidden(const struct replay_walk *walk, const struct libdw_walk *truth,
                           struct hidden *n)
{
    size_t next = 0, false_here = 0, skipped_here = 0;

    for (size_t i = 0; i < walk->result.count; i++) {
        size_t at = next;

        while (at < truth->count && truth->address[at] != walk->frame[i].address)
            at++;
        if (at == truth->count) {
            false_here++;
            continue;
        }
        skipped_here += at - next;
        next = at + 1;
    }
    n->stacks++;
    n->truth += truth->count;
    n->given += walk->result.count;
    n->is_false += false_here;
    n->skipped += skipped_here;
    n->cut += truth->count - next;
    n->whole += false_here == 0 && skipped_here == 0 && next == truth->count;
}

static bool is_same(const struct replay_walk *walk, const struct libdw_walk *truth)
{
    bool same = walk->result.end == UNWIND_COMPLETE && !walk->result.guessed &&
                walk->result.count == truth->count && truth->end == LIBDW_COMPLETE;

    for (size_t i = 0; same && i < truth->count; i++)
        same = truth->address[i] == walk->frame[i].address;
    return same;
}

static void print_scores(struct score (*scores)[2])
{
    for (size_t h = 0; h < replay_heuristic_count; h++) {
        for (int outer = 0; outer < 2; outer++) {
            const struct score *s = &scores[h][outer];

            printf("%s %s tried %zu given %zu (%.2f %%) right %zu skips %zu false %zu (%.3f %% of "
                   "given)\n",
                   replay_heuristics[h].name, outer != 0 ? "outer" : "leaf", s->tried, s->given,
                   replay_percent(s->given, s->tried), s->right, s->above,
                   s->given - s->right - s->above,
                   replay_percent(s->given - s->right - s->above, s->given));
        }
    }
}

int replay_blind(const struct replay *replay)
{
    static struct replay_walk walk;
    static struct libdw_walk truth;
    static struct score scores[HEURISTICS_MAX][2];
    struct replay_world world;
    struct libdw_files *libdw = libdw_files_new(replay);
    struct hidden n = {0};

    truth.state = calloc(REPLAY_FRAMES, sizeof *truth.state);
    if (truth.state == NULL)
        return 2;
    replay_world_init(&world, replay, false);
    for (size_t i = 0; i < replay->count; i++) {
        const struct replay_sample *sample = &replay->samples[i];

        world.hidden = false;
        replay_world_walk(&world, sample, &walk);
        libdw_files_walk(libdw, sample, &truth);
        if (!is_same(&walk, &truth))
            continue;
        world.hidden = true;
        for (size_t frame = 0; frame + 1 < truth.count; frame++)
            if (!truth.state[frame].signal)
                try_each(&world, sample, &truth, frame, scores);
        replay_world_walk(&world, sample, &walk);
        compare_hidden(&walk, &truth, &n);
    }
    print_scores(scores);
    printf(
        "hidden stacks %zu whole %zu (%.2f %%) frames %zu given %zu false %zu (%.3f %% of given) "
        "skipped %zu (%.3f %%) cut %zu (%.2f %%)\n",
        n.stacks, n.whole, replay_percent(n.whole, n.stacks), n.truth, n.given, n.is_false,
        replay_percent(n.is_false, n.given), n.skipped, replay_percent(n.skipped, n.truth), n.cut,
        replay_percent(n.cut, n.truth));
    free(truth.state);
    replay_world_free(&world);
    libdw_files_free(libdw);
    return n.stacks > 0 ? 0 : 1;
}
