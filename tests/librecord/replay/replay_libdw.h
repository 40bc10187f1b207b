/* SPDX-License-Identifier: MIT */
/*
 * The same walk by libdw's unwind tables: rows come from libdw, which shares no code with ours, and are applied
 * here. It knows unwind data only: where there is none it ends.
 */
#ifndef REPLAY_LIBDW_H
#define REPLAY_LIBDW_H

#include "replay_process.h"
#include "replay_world.h"

enum libdw_end {
    LIBDW_COMPLETE, /* return address undefined or 0 */
    LIBDW_NO_CFI,   /* no unwind data here */
    LIBDW_UNMAPPED, /* the return address lies in nothing executable */
    LIBDW_READ,     /* needed bytes that were not copied */
    LIBDW_STUCK,    /* CFA not above the last one */
    LIBDW_DEPTH,
    LIBDW_EXPRESSION /* needed a register that is not known, or is beyond what we evaluate */
};

struct libdw_walk {
    uint64_t address[REPLAY_FRAMES]; /* as struct unwind_frame's */
    size_t count;
    enum libdw_end end;
    /* What the walk stood at for each frame, if wanted: registers, the CFA of the frame below, and whether it
     * is the first or one that a signal interrupted; and whether it is a signal frame itself. */
    struct libdw_state {
        struct regs regs;
        uint64_t cfa;
        bool leaf;
        bool signal;
    } * state; /* REPLAY_FRAMES of them, or NULL */
};

struct libdw_files;

/* Exits with 2 when there is no memory. Files are opened when they are hit and kept. */
struct libdw_files *libdw_files_new(const struct replay *replay);
void libdw_files_free(struct libdw_files *files);

void libdw_files_walk(struct libdw_files *files, const struct replay_sample *sample,
                      struct libdw_walk *out);

#endif
