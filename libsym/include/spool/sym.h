/* SPDX-License-Identifier: MIT */
/*
 * libsym: from the address of a sampled frame to the names a person knows it by.
 *
 * A context holds options, the files it has opened and every answer it has given. The caller
 * describes modules (a path, a file offset, perhaps a build id) and asks for one frame at a time;
 * the answer is a chain, innermost first, whose last entry is the physical function. libsym knows
 * nothing of spools.
 *
 * Order in which a name is looked for: recorded JIT names, the perf map of the process (only for
 * memory that no file stands behind), ELF symbols and DWARF, kernel symbols; else the frame stays
 * an address.
 * An address never gets the name of a function that does not contain it (kernel symbols have no
 * sizes: there the next one ends the one before), and a missing or damaged file is never an error:
 * the answer has no name and says why.
 *
 * Order in which the file of a module is looked for: symbol directories, the recorded path inside
 * the sysroot or the root of the process while it lives, what a live process still holds of a
 * deleted file, the stores of debug directories by build id; and for what it lacks of symbols and
 * debug information its separate debug file: by build id in symbol directories and debug
 * directories, by debug link, from debuginfod servers if sym_options.debuginfod says so; for
 * symbols then the small table that a stripped file carries compressed. A supplementary file (dwz)
 * is looked for where the debug file names it, then by build id likewise; split files in the
 * package beside the debug file or the program, then where they are said to be, then beside the
 * program. A file whose build id is not the recorded one is never used.
 *
 * A complete program is custom_symbolizer.c in share/doc/spooltools/examples. In short:
 *
 *     struct sym_context *c = sym_context_new();
 *     uint32_t m;
 *     int rc = sym_context_open(c, NULL);
 *     if (rc == 0)
 *         rc = sym_module_add(c, &(struct sym_module){.size = sizeof(struct sym_module),
 *                             .path = "/usr/bin/cat", .start = start, .end = end,
 *                             .file_offset = pgoff}, &m);
 *     if (rc == 0)
 *         rc = sym_resolve(c, &(struct sym_query){.module = m, .pid = pid, .abs = pc,
 *                          .rel = pc - start + pgoff}, &frames, &count);
 *
 * Conventions: int results are 0 or positive on success and SYM_ERR_* below zero on failure. One
 * handle, one thread at a time; different contexts are independent. The library never prints, exits
 * or installs signal handlers, and uses no network unless sym_options.debuginfod says so. (One
 * exception that is not ours: libiberty's demangler of D names ends the process when memory runs
 * out in it.)
 *
 * While the major version stays, structs that begin with their size may grow at the end (what a
 * caller's lacks is 0), all others stay as they are, and so does the number of every enumerator.
 * There may be new ones: callers have words for those they do not know from the functions that end
 * in _text.
 */
#ifndef SPOOL_SYM_H
#define SPOOL_SYM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define SYM_MUST_CHECK __attribute__((warn_unused_result))
#else
#define SYM_MUST_CHECK
#endif

/* The numbers mean the same in all libraries of this project (spool/spool.h). */
enum {
    SYM_ERR_NOMEM = -1,     /* out of memory */
    SYM_ERR_IO = -2,        /* a file named by an option could not be read */
    SYM_ERR_FORMAT = -3,    /* a file named by an option is not what it should be */
    SYM_ERR_LIMIT = -7,     /* more modules or names than ids */
    SYM_ERR_MISUSE = -8,    /* the caller broke a rule of this header */
    SYM_ERR_NOT_FOUND = -11 /* a file named by an option does not exist */
};

/* The constant's own name ("SYM_ERR_IO"; "SYM_OK" for 0, "SYM_ERR_UNKNOWN" for what is none) and a
 * short English text. Static storage, never NULL. */
const char *sym_error_name(int code);
const char *sym_error_text(int code);

/* ---- context --------------------------------------------------------------------------------- */

struct sym_context;

enum sym_demangle {
    SYM_DEMANGLE_FULL = 0,
    SYM_DEMANGLE_SHORT, /* without parameters and template arguments */
    SYM_DEMANGLE_NONE   /* names as the symbol table has them, less the @VERSION */
};

enum sym_perf_maps {
    SYM_PERF_MAPS_AUTO = 0, /* every process; `py::` entries only where sym_query.python_allowed */
    SYM_PERF_MAPS_ALL,      /* every process, every entry */
    SYM_PERF_MAPS_NONE,
    SYM_PERF_MAPS_LIST /* like ALL, but only the processes in perf_map_pids */
};

struct sym_query;
struct sym_frame;

/* A symbolizer of the caller's own, asked before the ELF files for every user-space query
 * that has a module and that no JIT name and no perf map answered. It stores up to `capacity`
 * frames, innermost first, into frames (zeroed by the caller; only name, raw_name, file, line,
 * column, start_line, inlined, function_start, offset, origin and flags are read; texts are
 * copied) and returns how many there are; a number above capacity makes libsym call again with
 * that much room. A frame with a raw_name and no name gets the demangled raw_name;
 * function_start is in the terms of query->rel. 0: no answer, the frame stays an address.
 * SYM_NATIVE_PASS: what would have been asked without this function is asked now. Any other negative
 * number: an error of SYM_ERR_*, which sym_resolve returns. path and build id are those of the
 * query's module, for the duration of the call; `query` has the lookup address: of a return address one
 * was taken off already. Answers are remembered by file and query->rel, in memory that no file names by module and
 * query->rel: a function that answers by query->abs needs a module for each place (or one with start 0 and
 * file_offset 0, in which rel is abs). That it passed is remembered, too. */
#define SYM_NATIVE_PASS (-1000) /* no SYM_ERR_*, now or later */
typedef int sym_native_fn(void *user, const char *path, const uint8_t *build_id,
                          size_t build_id_size, const struct sym_query *query,
                          struct sym_frame *frames, size_t capacity);

struct sym_options {
    size_t size;         /* sizeof(struct sym_options), so that the struct can grow */
    const char *sysroot; /* put in front of module paths; NULL: "/" */
    enum sym_demangle demangle;
    enum sym_perf_maps perf_maps;
    /* Where perf-PID.map lie, and nowhere else, as given (sysroot is not added): the user vouches
     * for them. NULL: the process's own /tmp while it lives, else /tmp, else the folder of the
     * capture; and a map in /tmp that another process wrote is not used (sym_capture_begin). */
    const char *perf_map_dir;
    const int32_t *perf_map_pids; /* for SYM_PERF_MAPS_LIST */
    size_t perf_map_pid_count;
    bool no_native;        /* ask no ELF file, perf map or kernel: JIT names and addresses only */
    sym_native_fn *native; /* NULL: ELF symbol tables */
    void *native_user;
    /* Symbol archives: folders or tar files, see below. Asked before anything else, for packed
     * symbols, for files (DIR/.build-id/xx/yyyy, DIR/.build-id/xx/yyyy.debug, DIR/PATH,
     * DIR/BASENAME) and for perf-PID.map and kallsyms (DIR/captures/ID, then DIR). Not inside the
     * sysroot; nothing in one leads out of it. */
    const char *const *symbol_dirs;
    size_t symbol_dir_count;
    /* Where separate debug files lie (DIR/.build-id/xx/yyyy.debug, DIR/FOLDER/DEBUGLINK); an
     * absolute one is looked for inside the sysroot first, then as it is. NULL: /usr/lib/debug. */
    const char *const *debug_dirs;
    size_t debug_dir_count;
    /* Symbol tables of files beyond this many bytes in all are dropped, the least recently used
     * first, and read again when they are needed. 0: 512 MiB. One file may exceed it alone. */
    uint64_t memory_limit_bytes;
    bool no_inlines; /* chains have one entry: the physical function, with the line in it */
    /* Line tables are not read: file, line and column of an innermost entry stay unknown. */
    bool no_lines;
    /* Ask the servers in DEBUGINFOD_URLS for debug files that are not here, through libdebuginfod,
     * which is loaded then: 10 seconds at most for a file, 30 for all, and nothing more when
     * servers do not answer. Not for a vmlinux or a kernel module: a kernel's would take all of
     * that time.
     * Nothing is asked of the network without this. */
    bool debuginfod;
};

/* A context without options. NULL: out of memory. Free with sym_context_free, which accepts
 * NULL. */
struct sym_context *sym_context_new(void);
void sym_context_free(struct sym_context *c);

/* Sets the options (copied; NULL: all defaults) once, before anything else. 0, ERR_NOMEM or
 * ERR_MISUSE; ERR_NOT_FOUND, ERR_IO or ERR_FORMAT for a symbol archive that cannot be opened. One
 * that is damaged can: see sym_archive_fault. */
SYM_MUST_CHECK int sym_context_open(struct sym_context *c, const struct sym_options *options);

/* What failed last, one line naming the file; "no error" before any failure. Never NULL, valid
 * until the next call. */
const char *sym_context_error(const struct sym_context *c);

/* ---- captures -------------------------------------------------------------------------------- */

/* When and where a capture was made. Everything is optional. */
struct sym_capture {
    size_t size;         /* sizeof(struct sym_capture) */
    const char *boot_id; /* as in /proc/sys/kernel/random/boot_id; NULL: not recorded */
    bool has_start_time; /* microseconds since 1970 */
    uint64_t start_time_us;
    bool has_end_time; /* of its last sample */
    uint64_t end_time_us;
    const char *folder;  /* where copies of perf maps may lie beside it; NULL: nowhere */
    const char *release; /* of its kernel, as `uname -r` prints it; NULL: not recorded */
    /* What it is called in symbol archives: the name of its folder below captures/, 1 to 64 letters
     * and digits of ASCII, `_` and `-`; NULL: it is in none. */
    const char *id;
};

/* Says which capture the modules and queries from here on come from; process ids are a capture's
 * own. It decides what this machine may say about it: /proc/kallsyms and running processes (their
 * root, the deleted files they hold, their perf maps) count only for a capture of the same boot,
 * a process only if it is not younger than the capture, and a map in /tmp only if its time does
 * not say that another process wrote it. The same boot is: equal boot ids, or, without one, a
 * start time that is not before this boot and no other release. Without this call nothing is known,
 * and no running process is asked. A module's first query is to come before the next capture
 * begins. What is known of perf maps is forgotten. Texts are copied. 0; ERR_NOMEM; ERR_MISUSE, also
 * for an id that is none. */
SYM_MUST_CHECK int sym_capture_begin(struct sym_context *c, const struct sym_capture *capture);

/* ---- kernel symbols -------------------------------------------------------------------------- */

/* A mapping of the kernel or of one of its modules, as a capture records it. */
struct sym_kernel_range {
    uint64_t start, end;
    uint64_t file_offset;
    const char *name; /* `[kernel.kallsyms]_text`, `[nf_tables]`, a path; NULL: unknown */
    size_t name_size; /* 0: name is NUL-terminated */
};

/* Kernel code that came or went while the capture was made (BPF programs). */
struct sym_ksymbol {
    uint64_t time; /* any clock; the same as in sym_query.time */
    uint64_t address;
    uint64_t length_bytes; /* 0: what began at address is gone */
    const char *name;
    size_t name_size;
};

struct sym_kernel {
    size_t size; /* sizeof(struct sym_kernel) */
    /* A file the user vouches for; NULL: captures/ID/kallsyms of the capture in symbol_dirs, else
     * kallsyms there, which are as good; else /proc/kallsyms if it is the same boot, else, if there
     * is no vmlinux either, the System.map of the release. */
    const char *kallsyms;
    /* Of the kernel that was sampled, to refuse another one's symbols; NULL: unknown. */
    const char *release; /* as `uname -r` prints it */
    const uint8_t *build_id;
    size_t build_id_size;
    /* Sorted addresses: only what answers one of them is kept, and the shift of a System.map, or of
     * a vmlinux when neither a range nor kallsyms tell it, is found with them. NULL: everything is
     * kept, and no System.map can be used. All arrays of this struct are used during the call
     * only. */
    const uint64_t *needed;
    size_t needed_count;
    const struct sym_kernel_range *ranges; /* in any order */
    size_t range_count;
    const struct sym_ksymbol *ksymbols; /* ascending time; of one time in order of occurrence */
    size_t ksymbol_count;
    /* The kernel's ELF file, not inside the sysroot: used if its build id is build_id, or if that
     * is NULL (its names are flagged as unverified then). NULL, or it is another kernel's: with a
     * build_id it is looked for in symbol_dirs (DIR/.build-id/xx/yyyy[.debug], DIR/vmlinux-RELEASE,
     * DIR/vmlinux), debug_dirs (DIR/.build-id/xx/yyyy.debug, DIR/boot/vmlinux-RELEASE,
     * DIR/lib/modules/RELEASE/vmlinux) and, in the sysroot, /boot/vmlinux-RELEASE,
     * /lib/modules/RELEASE/vmlinux and /lib/modules/RELEASE/build/vmlinux.
     * How far the kernel was moved against it is told by a range named `[...]_text` or `_stext` (its
     * file offset if that is in the range, else its start, is where that symbol was), by kallsyms
     * or by the needed addresses. It names addresses in its own code; kallsyms, those of modules
     * and BPF programs. */
    const char *vmlinux;
};

/* Why the kernel has no names, SYM_KERNEL_OK when it has. */
enum sym_kernel_state {
    SYM_KERNEL_NONE = 0, /* sym_kernel_load was not called */
    SYM_KERNEL_OK = 1,
    SYM_KERNEL_OTHER_BOOT = 2,   /* the capture is from another boot, kernel or machine */
    SYM_KERNEL_UNKNOWN_BOOT = 3, /* the capture does not say when it was made */
    SYM_KERNEL_RESTRICTED = 4,   /* every address is 0 (kernel.kptr_restrict) */
    SYM_KERNEL_EMPTY = 5,        /* no usable line */
    SYM_KERNEL_UNREADABLE = 6,
    /* A System.map or vmlinux, but not how far the kernel was moved at its start. */
    SYM_KERNEL_UNKNOWN_SHIFT = 7
};

/* Loads kernel symbols; a second call replaces the first. Returns 0 also when nothing may be used
 * (sym_kernel_state tells); ERR_NOT_FOUND, ERR_IO or ERR_FORMAT only for a file named in
 * `kallsyms`, which leaves the kernel without names, or in `vmlinux`, which does not: what else
 * there is was loaded then. ERR_NOMEM; ERR_MISUSE. ksymbols count whatever becomes of the files.
 *
 * Lines and inlined functions come from the DWARF of the vmlinux and, for functions that kallsyms
 * have as `NAME [module]`, of the module's file: the .ko or .ko.debug of that name below
 * DIR/lib/modules/RELEASE of debug_dirs, then below /lib/modules/RELEASE in the sysroot, then
 * DIR/.build-id/xx/yyyy.debug. It must have the recorded build id if the address has a module with
 * one; else its vermagic, if it has one, must be of the release, and inlined functions are flagged
 * as unverified. Packed modules (.ko.xz, .ko.zst) are not read. Inlined functions have no
 * ` [module]` in their names. */
SYM_MUST_CHECK int sym_kernel_load(struct sym_context *c, const struct sym_kernel *kernel);
enum sym_kernel_state sym_kernel_state(const struct sym_context *c);
/* One short sentence for a state: "from another boot". Static storage. */
const char *sym_kernel_state_text(enum sym_kernel_state state);
/* What was tried and what came of it (a kallsyms in an archive that cannot be used is told here, and
 * the search goes on), e.g. "/boot/System.map-6.1.0-18-amd64: shifted by
 * 0x1c000000" or "/usr/lib/debug/boot/vmlinux-6.1.0-18-amd64: shifted by 0x1c000000, by kallsyms";
 * "" when there is nothing to say. With SYM_KERNEL_OK it may tell why a vmlinux that was named is
 * not used, or why modules have no names. Valid until the next sym_kernel_load. */
const char *sym_kernel_detail(const struct sym_context *c);

/* ---- modules --------------------------------------------------------------------------------- */

#define SYM_NO_MODULE UINT32_MAX

/* A name inside generated code, as in spool/spool.h: absolute [start, end). `py::NAME:FILE` is
 * taken apart as in a perf map; a NUL in it becomes a blank; an empty name or range names
 * nothing. */
struct sym_jit_name {
    uint64_t start;
    uint64_t end;
    const char *name;
    size_t name_size;
};

struct sym_module {
    size_t size;      /* sizeof(struct sym_module) */
    const char *path; /* as recorded, a ` (deleted)` included; looked up on disk only if absolute */
    size_t path_size; /* bytes; 0: path is NUL-terminated (or NULL: no path) */
    /* Of the mapping, absolute; of a file by itself 0 and UINT64_MAX: rel is abs then, the place in the file. */
    uint64_t start, end;
    uint64_t file_offset; /* of start */
    bool kernel;
    bool jit; /* generated code: only jit_names speak for it, even when there are none */
    const uint8_t *build_id; /* NULL when unknown */
    size_t build_id_size;
    /* Ascending start; may overlap: the innermost, then the later wins. */
    const struct sym_jit_name *jit_names;
    size_t jit_name_count;
    /* The process it was mapped in, whose root and held files count while it lives; 0: none. */
    int32_t pid;
    /* What else identifies the file; all 0: unknown. */
    uint64_t inode;
    uint32_t dev_major, dev_minor;
    bool has_file_state; /* the two below are known */
    uint64_t file_size_bytes;
    int64_t file_mtime_ns; /* since 1970 */
    bool no_download;      /* too few samples to ask servers (sym_options.debuginfod) for it */
    /* build_id was not recorded, but found out later: names are flagged as unverified. */
    bool build_id_assumed;
};

/* Registers a mapping (all is copied) and gives its handle. Mappings of one file share the
 * file's tables; no file is opened before the first query. 0, ERR_NOMEM, ERR_LIMIT, ERR_MISUSE. */
SYM_MUST_CHECK int sym_module_add(struct sym_context *c, const struct sym_module *module,
                                  uint32_t *handle);

/* What became of a module's file. */
enum sym_miss {
    SYM_MISS_NONE = 0,        /* named */
    SYM_MISS_NO_FILE = 1,     /* nothing at that path */
    SYM_MISS_UNREADABLE = 2,  /* permission or read error */
    SYM_MISS_NOT_REGULAR = 3, /* a device, FIFO, folder: never opened */
    SYM_MISS_NOT_ELF = 4,
    SYM_MISS_DAMAGED = 5,      /* an ELF file that contradicts itself */
    SYM_MISS_BUILD_ID = 6,     /* another build than the recorded one */
    SYM_MISS_NO_SYMBOLS = 7,   /* no symbol table at all */
    SYM_MISS_OUTSIDE = 8,      /* the address is in no executable segment */
    SYM_MISS_NO_SYMBOL = 9,    /* no symbol covers the address */
    SYM_MISS_NO_PERF_MAP = 10, /* generated code and no map of that process */
    SYM_MISS_NOT_IN_PERF_MAP = 11,
    SYM_MISS_NO_JIT_NAME = 12, /* recorded JIT code without a name there */
    SYM_MISS_KERNEL = 13,      /* a kernel address without kernel symbols; see sym_kernel_state */
    SYM_MISS_NO_MODULE = 14,   /* a user address in no module, and in no perf map */
    SYM_MISS_DISABLED = 15,    /* options say not to look */
    SYM_MISS_TOO_LARGE = 16,   /* a perf map that a limit, or memory, has no room for */
    SYM_MISS_STALE = 17        /* a perf map of another process with that id */
};

/* A short sentence for a reason: "no such file". Static storage, never NULL. */
const char *sym_miss_text(enum sym_miss miss);

/* State of a module's file once a query needed it: SYM_MISS_NONE when its tables were read (or
 * not needed yet), else NO_FILE ... NO_SYMBOLS. *detail, when not NULL, gets one line with the
 * path tried and numbers (valid until sym_context_free), "" when there is nothing to say. With
 * NONE it may tell why there are fewer names than there could be: a stripped file and what became
 * of its debug file, a debug file that is another build's, a supplementary or split file that is
 * not there. What lookups find out is added by and by. */
enum sym_miss sym_module_state(const struct sym_context *c, uint32_t handle, const char **detail);

/* Forgets a module's file: the next query looks for it again. Answers that were given stay valid.
 * 0 or ERR_MISUSE (an unknown handle). */
SYM_MUST_CHECK int sym_module_invalidate(struct sym_context *c, uint32_t handle);

/* Bytes that symbol tables of files take now (what memory_limit_bytes limits). */
uint64_t sym_context_table_bytes(const struct sym_context *c);

/* ---- lookup ---------------------------------------------------------------------------------- */

enum sym_kind { SYM_KIND_USER = 0, SYM_KIND_KERNEL, SYM_KIND_PYTHON };

/* Where a name comes from. Tools print elf for DWARF to PLT, kernel for KALLSYMS to VMLINUX,
 * address for FDE and ADDRESS. Files of packed symbols have these numbers, too. */
enum sym_origin {
    SYM_ORIGIN_ADDRESS = 0,
    SYM_ORIGIN_DWARF = 1,
    SYM_ORIGIN_SYMTAB = 2, /* of the file or of its debug file */
    SYM_ORIGIN_DYNSYM = 3,
    SYM_ORIGIN_MINIDEBUG = 4, /* .gnu_debugdata */
    SYM_ORIGIN_PLT = 5,       /* a stub that jumps to another function: `NAME@plt` */
    SYM_ORIGIN_FDE = 6,       /* no name, but unwind data tell where the function begins */
    SYM_ORIGIN_PERF_MAP = 7,
    SYM_ORIGIN_KALLSYMS = 8, /* and BPF programs by sym_ksymbol */
    SYM_ORIGIN_SYSMAP = 9,
    SYM_ORIGIN_VMLINUX = 10, /* and functions inlined into those of a module, by its DWARF */
    SYM_ORIGIN_JIT = 11
};

/* The short name tools print: "elf", "perf-map", "kernel", "jit" or "address". Static storage. */
const char *sym_origin_text(enum sym_origin origin);

enum {
    SYM_FLAG_PYTHON_RUNTIME = 1u << 0, /* interpreter machinery: the interpreter's own code */
    SYM_FLAG_PYTHON_EVAL = 1u << 1,    /* of it, the evaluation loop */
    SYM_FLAG_HIDDEN = 1u << 2,         /* set by callers that know the stack */
    SYM_FLAG_JIT = 1u << 3,            /* generated code: perf map or recorded JIT name */
    SYM_FLAG_ANONYMOUS = 1u << 4,      /* in memory without a file */
    SYM_FLAG_TRUNCATED = 1u << 5,      /* reserved for the truncated-stack marker */
    SYM_FLAG_UNVERIFIED = 1u << 6      /* named from a file whose identity could not be checked */
};

/* One level of the chain. Each level's line is in its own function: that of the innermost is the
 * line of the address, that of each next one the line of the call. An inlined level has start and
 * offset of the physical function. */
struct sym_frame {
    const char *name;     /* display name; NULL when nothing names the address */
    const char *raw_name; /* linkage name; NULL when it is equal to name or there is none */
    const char *file;     /* source file (Python: script); NULL: unknown */
    uint32_t line;        /* 0: unknown */
    uint32_t column;      /* 0: unknown */
    uint32_t start_line;  /* first line of the function; 0: unknown */
    bool inlined;         /* expanded from the next entry of the chain */
    enum sym_kind kind;
    enum sym_origin origin;
    uint64_t function_start; /* in the terms of the query's rel (with a module, mod 2^64) or abs;
                                of a frame without a name the address itself, offset 0, but
                                with SYM_ORIGIN_FDE the start of the function all the same */
    uint64_t offset;         /* of the queried address from function_start */
    uint32_t flags;          /* SYM_FLAG_* */
    enum sym_miss miss;      /* why there is no name */
};

/* rel is a place in the file, not an ELF address as nm and addr2line have it: program headers tell how these differ.
 * A lookup address is one that lies inside the instruction. Recorders have moved return addresses
 * back by one already; a caller with raw program counters says which ones are return addresses. */
struct sym_query {
    uint32_t module; /* handle, or SYM_NO_MODULE */
    int32_t pid;     /* whose perf map */
    bool kernel;     /* a kernel address */
    /* `py::` entries of the perf map count (spool's Python marks, or no marks at all) */
    bool python_allowed;
    uint64_t abs; /* absolute address: what kernel symbols, perf maps and JIT names are asked for */
    uint64_t rel; /* with a module: abs - start + file_offset, what its file is asked for */
    uint64_t time; /* for a kernel address: when; the clock of sym_ksymbol.time */
    /* abs and rel are return addresses: the byte before them is looked up, and what the frame says
     * is about that byte. False for what a spool records: there this was done. */
    bool return_address;
};

/* Answers a query. *frames gets a chain of *count >= 1 entries, innermost first, which belongs
 * to the context and stays valid, texts included, until sym_context_free. Answers are remembered,
 * so asking again is cheap (and memory grows with the number of distinct ones). 0; ERR_NOMEM;
 * ERR_MISUSE (an unknown handle); what sym_options.native returned. */
SYM_MUST_CHECK int sym_resolve(struct sym_context *c, const struct sym_query *query,
                               const struct sym_frame **frames, size_t *count);

/* Frames of one query: what sym_resolve gives. */
struct sym_answer {
    const struct sym_frame *frames;
    size_t count;
};

/* Answers many queries, in the order in which their files are read fastest; answers[i] is that of
 * queries[i]. As sym_resolve otherwise; after an error the answers are undefined. */
SYM_MUST_CHECK int sym_resolve_many(struct sym_context *c, const struct sym_query *queries,
                                    size_t count, struct sym_answer *answers);

/* ---- symbol archives ------------------------------------------------------------------------- */

/* A folder, or a tar file (plain or gzip'd), that has what captures need of other files:
 *
 *   .build-id/xx/yyyy.debug               debug files by build id, as debuggers look for them
 *   .build-id/xx/yyyy.syms/HASH.names     packed symbols (sym_pack_files): what is known of some
 *   .build-id/xx/yyyy.syms/HASH.lines     addresses of the file with that build id
 *   captures/ID/kernel.syms               packed symbols of the kernel (sym_pack_kernel)
 *   captures/ID/kallsyms, perf-PID.map    what else belongs to one capture (sym_capture.id)
 *
 * HASH is of the file's bytes: files of that name are equal, and none is ever changed. Packed
 * symbols are used before any other file, for the very addresses they were made for, if they have a
 * name; else when no other file is there, and then for other addresses of the functions they know,
 * too. */
struct sym_archive;

/* An archive that is not open yet. NULL: out of memory. Free with sym_archive_free, which accepts
 * NULL. */
struct sym_archive *sym_archive_new(void);
void sym_archive_free(struct sym_archive *a);

/* Opens a folder or tar file, once. 0; ERR_NOT_FOUND, ERR_IO, ERR_FORMAT (it is neither, or no more
 * than the beginning of one could be read and there is no file in that), ERR_NOMEM, ERR_MISUSE. */
SYM_MUST_CHECK int sym_archive_open(struct sym_archive *a, const char *path);

/* Why it was not opened, one line with the path; "no error" when it was, or before. Never NULL,
 * valid as long as the archive. */
const char *sym_archive_error(const struct sym_archive *a);

/* What is wrong with a tar file, with the byte offset; what is before that is used. "": nothing.
 * Valid as long as the archive. */
const char *sym_archive_fault(const struct sym_archive *a);

/* Opens a file by its name in an archive (`captures/ID/manifest.json`), for reading from its start.
 * Names and symbolic links are taken as if the archive were the root: none leads out of it. What is
 * in a tar file is copied. 0 with *fd, the caller's to close; ERR_NOT_FOUND; ERR_IO with errno;
 * ERR_FORMAT (no regular file, or links that lead round in a circle); ERR_NOMEM; ERR_MISUSE. */
SYM_MUST_CHECK int sym_archive_open_file(const struct sym_archive *a, const char *name, int *fd);

/* Calls fn for everything directly in a folder ("": the uppermost), in bytewise order, until fn
 * returns other than 0, which is returned then; else 0, also when there is no such folder; ERR_IO,
 * ERR_NOMEM, ERR_MISUSE (it is not open). name is without the folder. Links are not folders. */
typedef int sym_archive_fn(void *user, const char *name, bool is_folder);
SYM_MUST_CHECK int sym_archive_list(const struct sym_archive *a, const char *folder,
                                    sym_archive_fn *fn, void *user);

/* The archive that was opened for sym_options.symbol_dirs[index]; NULL: there is none. The
 * context's. */
const struct sym_archive *sym_context_archive(const struct sym_context *c, size_t index);

/* What is wrong with files of packed symbols that lookups have met so far: number index, from 0,
 * with the file's path; such a file is not used. NULL: no more. Valid until sym_context_free. */
const char *sym_packed_fault(const struct sym_context *c, size_t index);

/* ---- packing --------------------------------------------------------------------------------- */

enum sym_level {
    SYM_LEVEL_NAMES = 1, /* functions and where they begin and end */
    SYM_LEVEL_LINES      /* inlined functions and lines, too */
};

struct sym_pack_options {
    size_t size; /* sizeof(struct sym_pack_options) */
    enum sym_level level;
    /* What these have at that level is not packed again, unless they have no name or lines for an
     * address that has some now; used during the call only. */
    const struct sym_archive *const *known;
    size_t known_count;
};

/* What became of the distinct addresses that were asked for. */
struct sym_packed {
    /* The file to be stored; malloc'ed, the caller's to free. NULL: nothing to add. */
    uint8_t *data;
    size_t size_bytes;
    size_t address_count;
    size_t known_count; /* of them in options->known already */
    /* Of them have a function's name, known ones included. Of others it is packed where their
     * function begins, if that is known. */
    size_t named_count;
};

/* Packs what is known of the addresses of one file: queries about modules with the same file and
 * build id (sym_module_identity). Where that was recorded and all addresses are in options->known,
 * the file is not looked for. The same queries give the same bytes whatever the context's options
 * for demangling, inlines and lines are. Not packed is whether the file was the recorded one: that
 * is for build_id_assumed to say. 0; ERR_NOMEM; ERR_LIMIT (more than one file can have);
 * ERR_MISUSE. */
SYM_MUST_CHECK int sym_pack_files(struct sym_context *c, const struct sym_query *queries,
                                  size_t count, const struct sym_pack_options *options,
                                  struct sym_packed *out);

/* Packs what is known of kernel addresses (queries with `kernel`), of the present capture; those of
 * BPF programs that sym_ksymbol named are left out. After sym_kernel_load. As above, but a capture
 * has one such file, which takes the place of the one before: unless all addresses are known, data
 * have all of them. */
SYM_MUST_CHECK int sym_pack_kernel(struct sym_context *c, const struct sym_query *queries,
                                   size_t count, const struct sym_pack_options *options,
                                   struct sym_packed *out);

/* The same as lines in the form of kallsyms, with the lines that end them: for other programs. data
 * NULL: none of the addresses has a symbol. 0; ERR_NOMEM; ERR_MISUSE. */
SYM_MUST_CHECK int sym_pack_kallsyms(struct sym_context *c, const struct sym_query *queries,
                                     size_t count, struct sym_packed *out);

/* The lines of the perf map of a process that answer one of the addresses, all of them when
 * addresses is NULL. data NULL: there is no map, or nothing of it answers (sym_perf_map_state). 0;
 * ERR_NOMEM; ERR_MISUSE. */
SYM_MUST_CHECK int sym_pack_perf_map(struct sym_context *c, int32_t pid, const uint64_t *addresses,
                                     size_t count, struct sym_packed *out);

/* Files of packed symbols (sym_pack_files) that are to become one. */
struct sym_piece {
    const uint8_t *data; /* the file's bytes, used during the call only */
    size_t size_bytes;
    /* Set: which of the results has all of it; SYM_NOT_MERGED: it is damaged, speaks of another
     * build id, or there is nothing to merge it with. */
    size_t merged;
};
#define SYM_NOT_MERGED SIZE_MAX

/* What all addresses of some pieces are in: the files to be stored; malloc'ed, the caller's to
 * free. */
struct sym_merged {
    uint8_t *lines; /* those that a piece at level lines had; NULL: there were none */
    size_t lines_bytes;
    uint8_t *names; /* those that only pieces at level names had; NULL: none */
    size_t names_bytes;
};

/* Merges pieces of one build id, those whose addresses are of one file: what is known of a debug
 * file and of its program stays apart. Lookups in the results answer as in the pieces; the same
 * pieces give the same bytes, whatever their order. merged: room for count / 2. 0; ERR_NOMEM;
 * ERR_MISUSE. */
SYM_MUST_CHECK int sym_pack_merge(struct sym_piece *pieces, size_t count, const uint8_t *build_id,
                                  size_t build_id_size, struct sym_merged *merged,
                                  size_t *merged_count);

/* Which file a module's names come from; looks for it if that was not done. */
struct sym_identity {
    size_t build_id_size; /* 0: there is no file, or it has none; see sym_module_files then */
    uint8_t build_id[64];
    bool unverified; /* nothing says that it is the recorded file */
};
/* 0; ERR_NOMEM; ERR_MISUSE (an unknown handle). */
SYM_MUST_CHECK int sym_module_identity(struct sym_context *c, uint32_t handle,
                                       struct sym_identity *out);

enum sym_file_kind {
    SYM_FILE_PROGRAM = 1,   /* the file that was mapped */
    SYM_FILE_DEBUG,         /* that with its debug information, else that with its symbols; absent
                               when it is the program */
    SYM_FILE_SUPPLEMENTARY, /* what dwz took out of it */
    SYM_FILE_PACKAGE        /* its split files (.dwp) */
};
struct sym_file {
    enum sym_file_kind kind;
    int fd;     /* for reading, the caller's to close */
    char *path; /* as it was found, for messages; malloc'ed, the caller's to free */
    size_t build_id_size;
    uint8_t build_id[64];
};
#define SYM_FILES_MAX 4 /* kinds there are in this version */
/* The files that a module's names and lines come from, as far as they are there and `capacity`
 * has room: at most one of each kind, in the order above. Returns how many; ERR_NOMEM;
 * ERR_MISUSE. */
SYM_MUST_CHECK int sym_module_files(struct sym_context *c, uint32_t handle, struct sym_file *files,
                                    size_t capacity);

/* ---- perf maps, for the report --------------------------------------------------------------- */

/* What became of the map of a process, and how many of its lines were unusable (longer than
 * 64 KiB, for one). A map is read whole or not at all: one of more than 256 MiB or 4 Mi entries,
 * or one that memory has no room for, is TOO_LARGE; one with lines but no entry is DAMAGED; one
 * that another process with that id wrote, on another machine or at another time, is STALE. */
struct sym_perf_map_state {
    bool found; /* and read: miss is NONE */
    uint64_t entries;
    uint64_t bad_lines;
    const char *path;   /* that was tried; valid until sym_context_free */
    enum sym_miss miss; /* NONE, NO_FILE, UNREADABLE, NOT_REGULAR, DAMAGED, TOO_LARGE or STALE */
};
/* 1 and *out filled when a query needed that process's map, else 0. */
int sym_perf_map_state(const struct sym_context *c, int32_t pid, struct sym_perf_map_state *out);

/* ---- helpers --------------------------------------------------------------------------------- */

/* Whether a base name is a Python runtime's: `python`, `pythonN[.M]` with optional ABI letters
 * t, d, or `libpythonN[.M][t|d].so*`. */
bool sym_is_python_runtime(const char *basename);

/* The base name of a module path without ` (deleted)`: a pointer into path, its length in *size.
 * Names in brackets and `//anon` are returned whole. */
const char *sym_display_path(const char *path, size_t path_size, size_t *size);

/* Whether a module path stands for memory that no file names (`//anon`, memfd, `[heap]`, the
 * empty path, `/dev/zero`, SysV shared memory, `[anon:...]`), where perf maps apply. */
bool sym_is_anonymous_path(const char *path, size_t path_size);

/* Optional parts compiled in, separated by blanks: "lzma" (for .gnu_debugdata), "zstd" (for debug
 * sections packed so), "libdeflate" (other packed ones faster), "debuginfod" (servers can be
 * asked). Static storage. */
const char *sym_features(void);

/* Demangles one name (C++, Rust, D), keeping clone suffixes as ` [clone .x]`. The result is
 * malloc'ed and the caller's to free; a copy of the name when there is nothing to demangle, or no
 * thread can be started, on whose stack a deeply nested name would be; NULL: out of memory. */
char *sym_demangle_name(const char *raw_name, enum sym_demangle mode);

#ifdef __cplusplus
}
#endif

#endif
