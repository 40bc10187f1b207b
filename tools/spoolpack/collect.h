/* SPDX-License-Identifier: MIT */
/* What the frames of a spool hit: which addresses of which files, of the kernel, and of memory without a file. */
#ifndef SPOOLPACK_COLLECT_H
#define SPOOLPACK_COLLECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregate.h"
#include "hash.h"
#include "spool/spool.h"
#include "spool/sym.h"
#include "symbols.h"

/* Hex digits of the longest build id and NUL. */
#define COLLECT_KEY_SIZE (2 * NOTES_BUILD_ID_MAX + 1)

/* A file that frames lie in: modules with one path, one recorded build id and one file behind them. */
struct collected_file {
    const char *path; /* as recorded; the reader's, path_size bytes */
    size_t path_size;
    char build_id[COLLECT_KEY_SIZE]; /* as recorded; "": not recorded */
    char key[COLLECT_KEY_SIZE]; /* that, else of the file found, else its hash; "": no such file */
    bool hashed;                /* the key is the file's hash */
    bool unverified; /* nothing says that it is the recorded file; not known when build_id is */
    uint32_t handle; /* of its first module */
    uint32_t *module_ids; /* ascending */
    size_t module_id_count;
    struct sym_query *queries; /* ascending rel, each address of each kind of mapping once */
    size_t query_count;
    size_t address_count; /* distinct rel */
    uint64_t samples;     /* with a frame in it */
};

/* A process with frames in memory that no file stands behind. */
struct collected_process {
    int32_t pid;
    bool has_memory;     /* some of them in a mapping; the others may be no code at all */
    uint64_t *addresses; /* ascending, each once */
    size_t address_count;
    uint64_t samples; /* with such a frame */
};

struct collected {
    struct collected_file *files; /* by path, build id and key */
    size_t file_count;
    struct collected_process *processes; /* by process id */
    size_t process_count;
    struct sym_query *kernel; /* ascending address and time, each pair once */
    size_t kernel_count;
    uint64_t kernel_samples; /* with a kernel frame */
};

/* Collects from an input that was read, counted (aggregate_finish) and begun (symbols_begin). 0, or -1 after an error
 * message; collected_free in any case. */
int collect(struct spool_reader *reader, const struct aggregate *a, struct symbols *symbols,
            struct collected *out);
void collected_free(struct collected *c);

#endif
