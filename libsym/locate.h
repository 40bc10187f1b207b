/* SPDX-License-Identifier: MIT */
/* Finding the files of a module: the binary, and that with its symbols. Never the network. */
#ifndef SYMINT_LOCATE_H
#define SYMINT_LOCATE_H

#include "boot.h"
#include "elf.h"
#include "openfile.h"
#include "spool/sym.h"
#include "strtab.h"

/* Where files may be: what the options and the capture say. */
struct symint_search_options {
    const char *sysroot; /* NULL: "/", or the root of the process */
    const char *const *symbol_dirs;
    size_t symbol_dir_count;
    const char *const *debug_dirs;
    size_t debug_dir_count;
    const struct symint_system *system;
    enum symint_boot boot;
    bool boot_certain;     /* by boot id */
    bool has_capture_time; /* when the capture began */
    uint64_t capture_time_us;
};

/* Which file is wanted: what a mapping says about it. */
struct symint_wanted {
    const char *path; /* NUL-terminated */
    size_t path_size;
    const uint8_t *build_id;
    size_t build_id_size; /* 0: not recorded */
    uint64_t start, end;  /* of the mapping */
    int32_t live_pid;     /* a process that lives and has it mapped; 0: none */
    bool live_root;       /* its root is not ours */
    uint64_t inode;       /* 0: not recorded */
    uint32_t dev_major, dev_minor;
    bool has_file_state;
    uint64_t file_size_bytes;
    int64_t file_mtime_ns;
};

struct symint_located {
    struct symint_elf *elf; /* with its index; NULL: miss tells why */
    enum sym_miss miss;
    bool unverified; /* used although nothing says that it is the recorded file */
    bool complete;   /* program and symbols: as good for every file of that build */
    const char *
        detail; /* of a miss, or of symbols that are missing; in the arena; "" for nothing to say */
};

/* Finds the file of a module and that with its symbols, checks that they are the recorded ones and
 * builds the index. 0 or SYM_ERR_NOMEM. */
int symint_locate(struct symint_arena *arena, const struct symint_search_options *options,
                  const struct symint_wanted *wanted, struct symint_located *out);

#endif
