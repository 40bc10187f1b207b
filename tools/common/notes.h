/* SPDX-License-Identifier: MIT */
/*
 * What a spool says about itself in annotations, names apart (names.h): build ids, machine, kernel, losses.
 */
#ifndef TOOLS_NOTES_H
#define TOOLS_NOTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "spool/spool.h"

#define NOTES_BUILD_ID_MAX 64 /* bytes */

/* A note that stands once: the latest value of its key. */
struct note {
    const char *key; /* key_size bytes, borrowed from the reader */
    size_t key_size;
    const char *value;
    size_t value_size;
};

struct build_id_note {
    uint32_t module;
    uint32_t order; /* of the note in the file */
    uint8_t size_bytes;
    uint8_t bytes[NOTES_BUILD_ID_MAX];
};

struct notes {
    /* cmdline, host, kernel, event, clock, lost, end and unknown keys, in the order of their first sight */
    struct note *once;
    size_t once_count, once_capacity;
    struct build_id_note *build_ids; /* ascending module after notes_finish, each once */
    size_t build_id_count, build_id_capacity;
    bool lost_known; /* something was said about losses */
    uint64_t lost;
};

void notes_free(struct notes *n);

/* Takes an annotation in. */
void notes_record(struct notes *n, const struct spool_annotation *a);

/* To be called once all records were seen. */
void notes_finish(struct notes *n);

/* The build id of a module; NULL when unknown. */
const uint8_t *notes_build_id(const struct notes *n, uint32_t module, size_t *size_bytes);

/* The latest value of a key; NULL when there is none. */
const char *notes_value(const struct notes *n, const char *key);

/* Bytes from hex digits, at most NOTES_BUILD_ID_MAX of them; their number, 0 when the text is not of that form. */
size_t notes_hex(const char *text, size_t size, uint8_t *bytes);

/* Copies blank-separated word number `index` of a value into out; false when there is none or it is too long. */
bool notes_word(const char *value, unsigned index, char *out, size_t out_size);

#endif
