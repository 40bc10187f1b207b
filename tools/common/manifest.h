/* SPDX-License-Identifier: MIT */
/*
 * The manifest of a packed capture: what was packed for which spool, and what could not be. In an archive it is
 * captures/ID/manifest-HASH.json, HASH being the first 16 digits of the spool's SHA-256: several packs of one capture
 * (while it grows, at another level) stand beside each other.
 */
#ifndef TOOLS_MANIFEST_H
#define TOOLS_MANIFEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "spool/sym.h"
#include "text.h"

#define MANIFEST_VERSION 1
#define MANIFEST_SHA256_SIZE 65 /* hex digits and NUL */

/* A file of the archive. Texts of these structs are malloc'ed and the struct's; NULL is null in JSON. */
struct manifest_file {
    char *name; /* in the archive: ".build-id/ab/cdef.syms/0123.lines" */
    uint64_t size_bytes;
    char sha256[MANIFEST_SHA256_SIZE]; /* of its bytes */
};

struct manifest_files {
    struct manifest_file *items;
    size_t count;
};

enum manifest_level { MANIFEST_NOTHING = 0, MANIFEST_NAMES, MANIFEST_LINES, MANIFEST_FULL };

/* A file that frames lie in. */
struct manifest_module {
    char *path;     /* as recorded */
    char *build_id; /* as recorded, hex */
    /* The build id that names its files in .build-id: the recorded one, else that of the file that was found, else the
     * first 40 digits of the file's SHA-256; NULL: missing. */
    char *key;
    enum manifest_level level; /* the most that is stored about it */
    bool unverified;           /* nothing said that the file found was the recorded one */
    uint32_t *module_ids;      /* in the spool: those that frames lie in, ascending */
    size_t module_id_count;
    uint64_t samples;                    /* with a frame in it */
    uint64_t address_count, named_count; /* distinct addresses; of them with a function's name */
    struct manifest_files files;         /* that say so, those packed before included */
    char *missing; /* why there is none, or why there is less than asked for; NULL: whole */
};

struct manifest_map {
    int32_t pid;
    uint64_t address_count;
    struct manifest_files files; /* none or one */
    char *missing;
};

struct manifest {
    char *capture;                           /* ID */
    char *spool_name;                        /* base name; NULL: standard input */
    char spool_sha256[MANIFEST_SHA256_SIZE]; /* of its bytes as they lie there */
    uint64_t spool_bytes;
    uint64_t samples;
    uint64_t start_us; /* as its header has it */
    char *host;        /* the annotation's text */
    char *kernel_release, *kernel_build_id, *boot_id;
    char *packed_at; /* 2026-11-30T13:45:00Z */
    enum manifest_level level;
    struct manifest_module *modules;
    size_t module_count;
    struct manifest_map *maps;
    size_t map_count;
    uint64_t kernel_address_count, kernel_named_count;
    struct manifest_files kernel_files;
    char *kernel_missing;
};

void manifest_free(struct manifest *m);

/* As indented JSON onto the end of a buffer; ends with a line break. */
void manifest_append(const struct manifest *m, struct text_buffer *out);

/* The same without blanks and on one line, its first member "file": what --list --json prints. */
void manifest_append_line(const struct manifest *m, const char *file, struct text_buffer *out);

/* "names", "lines" or "full". */
const char *manifest_level_name(enum manifest_level level);

/* Whether it is a name of a file below the folder it is used in: relative, without empty parts, "." and "..". */
bool manifest_name_is_safe(const char *name);

/* Larger ones are not worth being read. */
#define MANIFEST_BYTES_MAX ((size_t)64 << 20)

/* Reads one from untrusted text. 0, or -1 and *why (static) with *offset, the byte at fault; *m is free then. Unknown
 * keys are left out; names of files that would lead out of the archive are a fault. */
int manifest_read(const char *text, size_t size, struct manifest *m, const char **why,
                  size_t *offset);

#endif
