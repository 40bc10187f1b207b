/* SPDX-License-Identifier: MIT */
/* Finding the files of a module: the binary, and those with its symbols and debug information. */
#ifndef SYMINT_LOCATE_H
#define SYMINT_LOCATE_H

#include "archive.h"
#include "boot.h"
#include "dwarf.h"
#include "elf.h"
#include "openfile.h"
#include "spool/sym.h"
#include "strtab.h"

struct symint_debuginfod;

/* Where files may be: what the options and the capture say. */
struct symint_search_options {
    const char *sysroot;                       /* NULL: "/", or the root of the process */
    const struct sym_archive *const *archives; /* of sym_options.symbol_dirs */
    size_t archive_count;
    const char *const *debug_dirs;
    size_t debug_dir_count;
    const struct symint_system *system;
    struct symint_debuginfod *debuginfod; /* NULL: no server may be asked */
    enum symint_boot boot;
    bool boot_certain;     /* by boot id */
    bool has_capture_time; /* when the capture began */
    uint64_t capture_time_us;
    const char *capture_id; /* the name of its folder in archives; NULL: it has none */
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
    bool no_download; /* not worth asking a server for */
};

struct symint_located {
    struct symint_elf *elf;     /* with its index; NULL: miss tells why */
    struct symint_dwarf *dwarf; /* NULL: no debug information */
    enum sym_miss miss;
    bool unverified;    /* used although nothing says that it is the recorded file */
    bool complete;      /* program and symbols: as good for every file of that build */
    const char *detail; /* of a miss, or of what is missing; in the arena; "": nothing to say */
};

/* Finds the file of a module and those with its symbols and its debug information, checks that
 * they are the recorded ones and builds the index. elf and dwarf are the caller's to free. Options
 * must live as long as dwarf does. 0 or SYM_ERR_NOMEM. */
int symint_locate(struct symint_arena *arena, const struct symint_search_options *options,
                  const struct symint_wanted *wanted, struct symint_located *out);

/* The files that symint_locate would use, as they were found. */
struct symint_found {
    struct symint_debug_file program; /* of the vdso without a descriptor */
    struct symint_debug_file debug;   /* that with debug information, else that with symbols */
    char *beside; /* the program's path in the root of what has these, malloc'ed; NULL: none */
};

/* Finds and checks them. What was not found has no elf; nor has `debug` when it is the program.
 * All is the caller's to close and to free, whatever is returned. 0 or SYM_ERR_NOMEM. */
int symint_locate_files(struct symint_arena *arena, const struct symint_search_options *options,
                        const struct symint_wanted *wanted, struct symint_found *out);

#endif
