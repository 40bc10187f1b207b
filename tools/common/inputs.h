/* SPDX-License-Identifier: MIT */
/*
 * FILE or "-" to a spool reader, the one wording of every read failure, and what a tool does
 * about damaged input. Everything here reports to the user itself; callers only decide what
 * comes next.
 */
#ifndef TOOLS_INPUTS_H
#define TOOLS_INPUTS_H

#include "follow.h"
#include "options.h"
#include "spool/spool.h"

struct tool_input {
    struct spool_reader *reader;
    int fd;
    const char *name;      /* the path as given, or "standard input" */
    const char *path;      /* as given; NULL: standard input */
    bool regular;          /* a file, not a pipe or the like */
    bool has_size;         /* of which it is known how much of it is left */
    uint64_t size_bytes;   /* of what will be read from it, packed if it is packed */
    struct follow *follow; /* how it is waited for; NULL: not here */
};

enum input_end {
    INPUT_OK = 0,   /* read to its end, or to its cut tail: go on */
    INPUT_SALVAGED, /* read up to the damage, and --salvage says that this is wanted: go on */
    INPUT_FAILED    /* reported: nothing may be written from it, exit 1 */
};

/* Opens path ("-": standard input) and reads the header. 0, or -1 after an error message; *in
 * needs no inputs_close then, but may have one. A folder, a terminal and all that is no spool
 * are refused. */
int inputs_open(const char *path, struct tool_input *in);

/* The same for an input that is used while it arrives (follow.h). f is the input's until inputs_close. */
int inputs_open_growing(const char *path, struct follow *f, struct tool_input *in);

/* As spool_reader_next; waits for an input that grows. */
static inline int inputs_next(struct tool_input *in, struct spool_record *rec)
{
    return in->follow == NULL ? spool_reader_next(in->reader, rec) : follow_next(in, rec);
}

/* Closes the file of an input that has been read to its end; what the reader has read stays. */
void inputs_close_descriptor(struct tool_input *in);

/* Frees the reader and all it lent; closes the file. */
void inputs_close(struct tool_input *in);

/* To be called once with the last result of spool_reader_next: 0 or an error. Prints the warning
 * or the error that the damage rules ask for (the manual pages, DAMAGED INPUT) and tells what becomes of the
 * tool. */
enum input_end inputs_finish(struct tool_input *in, int rc, const struct tool_options *o);

/* Byte offset of the damage that inputs_finish answered INPUT_SALVAGED for: the record at fault
 * begins here. */
uint64_t inputs_damage_offset(const struct tool_input *in);

/* How messages name a path of the command line. */
const char *inputs_name(const char *path);

/* The same without its folder. */
const char *inputs_base_name(const char *path);

#endif
