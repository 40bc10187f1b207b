/* SPDX-License-Identifier: MIT */
/*
 * libspool: reading and writing spools, the sample files of CPU stack recorders.
 *
 * A spool is a header followed by records in the order in which a recorder made them: modules (mapped
 * files), frames, stack nodes, threads, samples, and notes on what ended or changed. A definition always
 * stands before its first use, so one forward pass over any byte stream is enough. spool(5) is the format;
 * versions 1 to 4 are read, 3 and 4 are written.
 *
 * A reader in five lines:
 *
 *     struct spool_reader *r = spool_reader_new();
 *     struct spool_record rec;
 *     int rc = r ? spool_reader_open_fd(r, fd) : SPOOL_ERR_NOMEM;
 *     while (rc >= 0 && (rc = spool_reader_next(r, &rec)) > 0)
 *         if (rec.type == SPOOL_RECORD_SAMPLE)
 *             use(rec.sample.time_ns, rec.sample.pid, rec.sample.stack);
 *     if (rc < 0)
 *         fprintf(stderr, "%s\n", r ? spool_reader_error(r) : spool_error_text(rc));
 *     spool_reader_free(r);
 *
 * A complete program, which follows a spool that is being written, is live_top.c in share/doc/spooltools/examples.
 *
 * Conventions of the whole header:
 *   - A function that can fail returns int: 0 or positive is success, negative is one of SPOOL_ERR_*.
 *   - A handle is used by one thread at a time; different handles are independent of each other.
 *     Only the functions that free accept NULL for one.
 *   - The library never prints, exits, installs signal handlers or closes a descriptor it was lent.
 *   - Every text it returns is NUL-terminated and belongs to the handle.
 *   - A program runs with every later library of the major version that it was compiled against: structs keep
 *     their size, or carry it, and enumerations may get more values. Pass over those you do not know.
 */
#ifndef SPOOL_SPOOL_H
#define SPOOL_SPOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define SPOOL_MUST_CHECK __attribute__((warn_unused_result))
#else
#define SPOOL_MUST_CHECK
#endif

/* ---- errors ------------------------------------------------------------------------------------ */

/* The same numbers mean the same in every library of this project; a number is never reused. */
enum {
    SPOOL_ERR_NOMEM = -1,   /* out of memory */
    SPOOL_ERR_IO = -2,      /* reading or writing failed; the text has the system's reason */
    SPOOL_ERR_FORMAT = -3,  /* not a spool; the text says what it is when that is known */
    SPOOL_ERR_VERSION = -4, /* a spool of a version this library does not know */
    SPOOL_ERR_CORRUPT = -5, /* a spool that breaks a rule of the format */
    SPOOL_ERR_TRUNCATED =
        -6,               /* the input ends inside the header (a cut tail is no error, see below) */
    SPOOL_ERR_LIMIT = -7, /* legal, but beyond what this library or the format's ids can hold */
    SPOOL_ERR_MISUSE = -8 /* the caller broke a rule of this header; nothing was changed */
};

/* The constant's own name ("SPOOL_ERR_IO"; "SPOOL_OK" for 0 and above, "SPOOL_ERR_UNKNOWN" for a code
 * this library never returns). Static storage, never NULL. */
const char *spool_error_name(int code);

/* A short English text for a code ("input or output failed"). Static storage, never NULL. Where a handle
 * is at hand, its own text (spool_reader_error, spool_writer_error) says more. */
const char *spool_error_text(int code);

/* The library's version, "MAJOR.MINOR.PATCH". Static storage. */
const char *spool_version(void);

/* ---- records ------------------------------------------------------------------------------------ */

/* "None" where an id is expected: a root node's prefix, the module of an unpinned frame. Ids of every
 * kind are dense, start at 0 and end at 2^32 - 2. */
#define SPOOL_NO_ID UINT32_MAX

/* spool_module.retired_at_frame of a module that has not been retired (yet). */
#define SPOOL_NOT_RETIRED UINT64_MAX

enum spool_record_type {
    SPOOL_RECORD_MODULE = 1,
    SPOOL_RECORD_FRAME = 2,
    SPOOL_RECORD_STACK = 3,
    SPOOL_RECORD_THREAD = 4,
    SPOOL_RECORD_SAMPLE = 5,
    SPOOL_RECORD_PYTHON = 6,
    SPOOL_RECORD_DEACTIVATE_PROCESS = 7,
    SPOOL_RECORD_DEACTIVATE_MODULE = 8,
    SPOOL_RECORD_JIT_MODULE = 9,
    SPOOL_RECORD_ANNOTATION = 256 /* a module record that carries a note instead of a mapping */
};

/* Relation of a monotonic clock to the wall clock (version 4 headers). */
struct spool_origin {
    uint64_t monotonic_ns; /* monotonic clock at the origin */
    int32_t sign;          /* 1: the wall time is after 1970, -1: before */
    uint64_t seconds;      /* its distance from 1970-01-01T00:00:00Z, whole seconds ... */
    uint32_t nanoseconds;  /* ... and the rest, 0 to 999,999,999 */
};

struct spool_header {
    uint32_t version;  /* 1 to 4 */
    uint64_t start_us; /* anchor of the timeline, microseconds since 1970 by convention; 0: none */
    uint64_t interval_us; /* versions 1-3: nominal sample interval as stored; 0 in version 4 */
    uint64_t interval_ns; /* nominal sample interval, nanoseconds; 0: unknown. In versions 1-3
                             interval_us x 1000, at most 2^64-1 */
    bool has_origin;      /* version 4 only */
    struct spool_origin origin;
};

/* A name inside generated code: [start, end) are absolute addresses, start < end. */
struct spool_jit_symbol {
    uint64_t start;
    uint64_t end;
    const char *name; /* valid UTF-8; may hold NUL bytes, so name_size counts */
    size_t name_size; /* bytes without the terminating NUL */
};

/* A range of a process's (or the kernel's) address space and the file behind it. */
struct spool_module {
    uint32_t id;
    int32_t pid; /* of a kernel module: as stored, without a meaning */
    bool kernel;
    bool jit;       /* tag 9: generated code, with its names */
    uint64_t start; /* absolute; may be at or above end, then nothing belongs to it */
    uint64_t end;
    uint64_t file_offset; /* of start */
    uint64_t inode;
    uint32_t dev_major; /* these three are 0 in versions 1 and 2 */
    uint32_t dev_minor;
    uint64_t inode_gen;
    const char *path; /* versions 1-3: valid UTF-8; version 4: any bytes; may hold NUL bytes */
    size_t path_size; /* bytes without the terminating NUL */
    const struct spool_jit_symbol *jit_symbols; /* ascending start; may overlap */
    size_t jit_symbol_count;
    uint64_t retired_at_frame; /* number of frames when it was retired, or SPOOL_NOT_RETIRED */
};

enum spool_frame_kind {
    SPOOL_FRAME_PINNED = 0,   /* names its module */
    SPOOL_FRAME_UNPINNED = 1, /* an absolute address; spool_reader_locate finds the module */
    SPOOL_FRAME_TRUNCATED = 2 /* the marker of a stack that was not walked to its root */
};

/* Addresses lie inside the calling instruction already (spool(5), frame): nothing subtracts again. */
struct spool_frame {
    uint32_t id;
    enum spool_frame_kind kind;
    bool kernel;        /* a pinned frame has its module's mode */
    uint32_t module_id; /* pinned: the module, else SPOOL_NO_ID */
    uint64_t
        rel; /* pinned: address in the file's offsets; unpinned: the absolute address; marker: 0 */
    uint64_t abs; /* absolute address; marker: 0 */
};

/* A node of the stack forest. The node's own frame is the leaf, its prefix the caller chain. */
struct spool_stack {
    uint32_t id;
    uint32_t prefix; /* SPOOL_NO_ID: this frame is the root */
    uint32_t frame;
    uint32_t depth; /* number of frames, 1 for a root */
};

struct spool_thread {
    uint32_t id;
    int32_t pid;
    uint64_t tid;
};

struct spool_sample {
    uint64_t index;   /* 0 for the first sample of the file */
    int64_t delta_ns; /* to the previous sample record of the file */
    uint64_t time_ns; /* monotonic clock; not necessarily in order */
    uint32_t thread;
    uint32_t stack;
    int32_t pid; /* of the thread */
    uint64_t tid;
};

/* From here on the process is (on) or is no longer (off) a Python interpreter that writes a perf map. */
struct spool_python {
    uint64_t
        time_ns; /* monotonic clock, not part of the sample clock; 0: known when recording began */
    int32_t pid;
    bool on;
};

/* What an annotation is about; the text of the others is kept under SPOOL_NOTE_OTHER. */
enum spool_note_key {
    SPOOL_NOTE_OTHER = 0,
    SPOOL_NOTE_COMM,   /* text: process name */
    SPOOL_NOTE_THREAD, /* number[0]: thread id; text: its name */
    SPOOL_NOTE_BUILD_ID, /* number[0]: module id; text: lower- or upper-case hex, an even number of digits;
                            spool_reader_build_id has the latest as bytes */
    SPOOL_NOTE_CMDLINE, /* text */
    SPOOL_NOTE_HOST,    /* text: sysname release machine nodename */
    SPOOL_NOTE_KERNEL,  /* text: RELEASE BUILD_ID BOOT_ID */
    SPOOL_NOTE_KSYMBOL, /* number[0]: address; number[1]: length, 0 = gone; text: name */
    SPOOL_NOTE_EVENT,   /* number[0]: frequency, Hz; text: NAME FREQUENCY_HZ */
    SPOOL_NOTE_CLOCK,   /* number[0]: monotonic ns; number[1]: wall clock ns, both taken together */
    SPOOL_NOTE_LOST,    /* number[0]: samples lost so far */
    SPOOL_NOTE_END      /* number[0..2]: samples, lost, truncated stacks */
};

/* A note that the format has no record for (annotations in spool(5)). It takes a module id but maps
 * nothing; the module record that carries it is in `module`. */
struct spool_annotation {
    struct spool_module module;
    int32_t pid;
    enum spool_note_key key;
    const char
        *key_text; /* what stands between "[spool:" and "]"; key_size bytes, not terminated */
    size_t key_size;
    const char *value; /* all behind the blank, NUL-terminated; "" when there is none */
    size_t value_size;
    const char *text; /* the part of value that the key's comment calls text, NUL-terminated */
    size_t text_size;
    uint64_t number[3]; /* as the key's comment says; else 0 */
};

/* One record. Pointers inside stay valid until spool_reader_free. */
struct spool_record {
    enum spool_record_type type;
    uint64_t offset_bytes; /* of the record's tag in the (unpacked) spool */
    union {
        struct spool_module module; /* MODULE, JIT_MODULE */
        struct spool_frame frame;
        struct spool_stack stack;
        struct spool_thread thread;
        struct spool_sample sample;
        struct spool_python python;
        int32_t deactivated_pid;     /* DEACTIVATE_PROCESS */
        uint32_t deactivated_module; /* DEACTIVATE_MODULE: a module id */
        struct spool_annotation annotation;
    };
};

/* ---- reading ------------------------------------------------------------------------------------ */

struct spool_reader;

/* A reader that has no input yet. NULL: out of memory. Free it with spool_reader_free. */
struct spool_reader *spool_reader_new(void);

/* Frees the reader and all that was borrowed from it. NULL is accepted. */
void spool_reader_free(struct spool_reader *r);

/* Reads the header of a spool from a descriptor: a file, pipe or socket, or gzip of a spool (known by its
 * first bytes). The descriptor stays the caller's, is read from its present position on with read(2)
 * alone, and must stay open until the last spool_reader_next. A reader is opened once.
 * Returns 0; ERR_FORMAT, ERR_VERSION, ERR_TRUNCATED (an empty input included), ERR_CORRUPT, ERR_IO,
 * ERR_NOMEM; ERR_MISUSE when it was opened before. */
SPOOL_MUST_CHECK int spool_reader_open_fd(struct spool_reader *r, int fd);

/* The same from memory, which must stay unchanged until spool_reader_free. */
SPOOL_MUST_CHECK int spool_reader_open_memory(struct spool_reader *r, const void *data,
                                              size_t size);

/* Decodes the next record into *out.
 *   1   a record; *out is the caller's, what it points to the reader's
 *   0   the end: of the input, or of its last complete record when the tail is cut off, which is no error
 *       and is told by spool_reader_cut_tail. Further calls return 0 again
 *   <0  ERR_CORRUPT, ERR_IO, ERR_LIMIT, ERR_NOMEM; ERR_MISUSE before a successful open. Further calls
 *       repeat it. All that was decoded before stays usable through the functions below. */
SPOOL_MUST_CHECK int spool_reader_next(struct spool_reader *r, struct spool_record *out);

/* Like spool_reader_open_fd, for an input that is still being written: a 0 of spool_reader_next says that no
 * complete record is there now, and the next call looks again. The beginning of a record stays where it is
 * until the rest has come, however long that takes (a wrong length in it waits for ever, and takes no memory
 * for what has not come); spool_reader_cut_tail tells that one is there. Everything else is as for an input
 * that is complete, and errors stay.
 *   - The header must be there: a regular file that ends inside it is ERR_TRUNCATED. A pipe or socket is
 *     waited for until it has the header or its end; spool_reader_next never waits, whether the descriptor is
 *     in blocking mode or not (its flags are not touched; nobody else may read from it meanwhile).
 *   - A regular file that is found shorter than what was read of it is ERR_IO.
 *   - gzip gives what can be unpacked of what is there: a writer that wants to be followed flushes
 *     (Z_SYNC_FLUSH) or appends members. An incomplete member waits like an incomplete record. */
SPOOL_MUST_CHECK int spool_reader_open_tail_fd(struct spool_reader *r, int fd);

/* Whether the last 0 of spool_reader_next was final: all writers of the pipe or socket have closed it, and what
 * was in it has been read. Never true for a regular file, nor for a reader that was opened otherwise. */
bool spool_reader_tail_ended(const struct spool_reader *r);

/* Bounds how much of a tail's input is read: not more than `bytes` in all, counted like
 * spool_reader_input_bytes; for writers that tell how far they have got. May be called before the open call,
 * which then finds no more either (a pipe is not waited for beyond it), and at any time later; a bound below
 * what has been read ends reading there. UINT64_MAX, as at first: no bound. */
void spool_reader_tail_limit(struct spool_reader *r, uint64_t bytes);

/* What went wrong, in one line without a file name: what, at which byte, with the numbers; "no error" as
 * long as nothing did. Never NULL. Valid until the next call on the reader. */
const char *spool_reader_error(const struct spool_reader *r);

/* The first error's code, 0 if there is none. */
int spool_reader_error_code(const struct spool_reader *r);

/* The header; NULL before a successful open. Valid until spool_reader_free. */
const struct spool_header *spool_reader_header(const struct spool_reader *r);

/* Whether the end was reached inside a record (or inside gzip data). Final when next has returned 0; of a tail
 * it tells what the last call of next found. */
bool spool_reader_cut_tail(const struct spool_reader *r);

/* Bytes of the (unpacked) spool up to the end of the last decoded record: the accepted prefix once next
 * has returned 0 or an error. */
uint64_t spool_reader_kept_bytes(const struct spool_reader *r);

/* Bytes taken from the input so far, packed if it is packed; for progress. */
uint64_t spool_reader_input_bytes(const struct spool_reader *r);

/* Whether the input is gzip. */
bool spool_reader_is_gzip(const struct spool_reader *r);

/* ---- reading: the definitions seen so far -------------------------------------------------------- */

/* Numbers of records decoded so far. */
struct spool_counts {
    uint32_t modules;     /* module ids in use: modules, JIT modules and annotations */
    uint32_t annotations; /* of them */
    uint32_t frames;
    uint32_t stacks;
    uint32_t threads;
    uint64_t samples;
    uint64_t python;
};
void spool_reader_counts(const struct spool_reader *r, struct spool_counts *out);

/* A module by id. NULL when the id is not defined or belongs to an annotation. Valid until the next call
 * of spool_reader_next (the table may move); what it points to until spool_reader_free. */
const struct spool_module *spool_reader_module(const struct spool_reader *r, uint32_t id);

/* The build id of a module as bytes, 1 to 64 of them: what the latest build-id annotation so far says of it. Recorders
 * write it when a frame of the module is first sampled, so that it comes after the module, and perhaps never. NULL and
 * *size 0: none was recorded so far, or the id is not a module's. Valid until spool_reader_free. It goes into
 * sym_module.build_id and .build_id_size (spool/sym.h) as it is. */
const uint8_t *spool_reader_build_id(const struct spool_reader *r, uint32_t module, size_t *size);

/* The annotation that took a module id: true and *out filled; false when the id is not an annotation's. What
 * *out points to is valid until spool_reader_free. */
bool spool_reader_annotation(const struct spool_reader *r, uint32_t id,
                             struct spool_annotation *out);

/* A frame, stack node or thread by id. true and *out filled; false when the id is not defined. */
bool spool_reader_frame(const struct spool_reader *r, uint32_t id, struct spool_frame *out);
bool spool_reader_stack(const struct spool_reader *r, uint32_t id, struct spool_stack *out);
bool spool_reader_thread(const struct spool_reader *r, uint32_t id, struct spool_thread *out);

/* Walks a stack from its leaf to its root: puts up to `capacity` frame ids of the chain that begins at
 * *node into frames and moves *node to the node after them, SPOOL_NO_ID when the root was passed. Returns
 * the number put. Start with *node = a stack id; an undefined id gives 0 and SPOOL_NO_ID. Chains may be
 * millions long; nothing is copied but the ids. */
size_t spool_reader_walk(const struct spool_reader *r, uint32_t *node, uint32_t *frames,
                         size_t capacity);

/* The same as a view, for programs that visit many stacks: nodes[id].prefix and .frame for all ids below
 * the number of stacks. Valid until the next call of spool_reader_next. */
struct spool_stack_node {
    uint32_t prefix; /* SPOOL_NO_ID at a root */
    uint32_t frame;
};
const struct spool_stack_node *spool_reader_stack_nodes(const struct spool_reader *r);

/* The module that frame `frame` belongs to in a sample of process `pid`, and its address there in the
 * file's offsets. Pinned frames name their module. An unpinned frame belongs to the youngest module that
 * was defined and not retired where the frame record stands, of the same process (a kernel frame: of the
 * kernel), and contains the address; the answer never changes while more is read (spool(5), section on
 * finding the module). Answers are remembered.
 *   1  *module_id and *rel are set
 *   0  no module (always so for the marker and for an undefined frame); *module_id is SPOOL_NO_ID
 *   ERR_NOMEM: the search could not be prepared; the reader itself stays usable */
SPOOL_MUST_CHECK int spool_reader_locate(struct spool_reader *r, uint32_t frame, int32_t pid,
                                         uint32_t *module_id, uint64_t *rel);

/* The absolute addresses of all kernel frames defined so far, ascending, each once. *addresses belongs to
 * the reader and is valid until the next call of this function or of spool_reader_next. Returns 0 or
 * ERR_NOMEM. */
SPOOL_MUST_CHECK int spool_reader_kernel_addresses(struct spool_reader *r,
                                                   const uint64_t **addresses, size_t *count);

/* ---- reading: time ------------------------------------------------------------------------------- */

/* Microseconds on the timeline that begins with header.start_us at the first sample of the file; a time
 * before that sample counts as start_us, and a sum beyond 2^64-1 as that. Without samples: start_us. */
uint64_t spool_reader_timeline_us(const struct spool_reader *r, uint64_t time_ns);

/* Wall clock, nanoseconds counted upwards from seconds (which may be negative). */
struct spool_wall_time {
    int64_t seconds;      /* since 1970-01-01T00:00:00Z */
    uint32_t nanoseconds; /* 0 to 999,999,999 */
};

/* Exact wall time of a monotonic time by the header's origin or, without one, by the latest `clock`
 * annotation so far. Returns 1 and fills *out; 0 when neither is known; ERR_LIMIT when the time cannot be
 * represented. */
int spool_reader_wall_time(const struct spool_reader *r, uint64_t time_ns,
                           struct spool_wall_time *out);

/* ---- a snapshot: all samples in memory ------------------------------------------------------------ */

/* For programs that want random access and have the memory (16 bytes a sample). */
struct spool_snapshot;

/* An empty snapshot; NULL: out of memory. Free it with spool_snapshot_free, which accepts NULL. */
struct spool_snapshot *spool_snapshot_new(void);
void spool_snapshot_free(struct spool_snapshot *s);

/* Reads a whole spool. Returns 0 or the reader's error; after an error in the record part the samples
 * before it are there. Ownership of descriptor and memory as in spool_reader_open_*; the descriptor is
 * not used after the call. A snapshot is loaded once. */
SPOOL_MUST_CHECK int spool_snapshot_load_fd(struct spool_snapshot *s, int fd);
SPOOL_MUST_CHECK int spool_snapshot_load_memory(struct spool_snapshot *s, const void *data,
                                                size_t size);

uint64_t spool_snapshot_sample_count(const struct spool_snapshot *s);

/* Sample number `index` in file order: true and *out filled, false when there is none. */
bool spool_snapshot_sample(const struct spool_snapshot *s, uint64_t index,
                           struct spool_sample *out);

/* The reader behind it, for header, definitions, time, error text. It belongs to the snapshot; next
 * returns 0 on it. */
struct spool_reader *spool_snapshot_reader(struct spool_snapshot *s);

/* ---- a tail: batches of a growing spool ------------------------------------------------------------- */

/* For programs that process a spool while it is written and drop what belongs to a module or process when it
 * ends: on top of spool_reader_open_tail_fd, record after record is gathered into batches. A batch ends after
 * 16,384 samples, right after every deactivation record, or where the input has no more complete record:
 *
 *     while ((rc = spool_tail_poll(tail, &batch)) >= 0) {
 *         use(batch.samples, batch.sample_count);
 *         drop(batch.retired_modules, batch.retired_module_count);
 *         if (batch.ended || batch.finished)
 *             break;
 *         if (!batch.more)
 *             sleep_or_poll(fd);
 *     }
 */
struct spool_tail;

/* A tail without input; NULL: out of memory. Free it with spool_tail_free, which accepts NULL. */
struct spool_tail *spool_tail_new(void);
void spool_tail_free(struct spool_tail *t);

/* Opens the spool as spool_reader_open_tail_fd does, with its results, and decodes the first batch, so that the
 * definitions are there. An error met in doing that is not this call's, but spool_tail_poll's. */
SPOOL_MUST_CHECK int spool_tail_open_fd(struct spool_tail *t, int fd);

/* What was read since the batch before. The arrays belong to the tail and are valid until the next poll. The
 * first batch is what the open call read; whoever looks at the reader only after that knows its definitions
 * already, so its ranges are empty (they begin where the next ones will) and kernel_changed is false. */
struct spool_tail_batch {
    const struct spool_sample *samples;
    size_t sample_count; /* at most 16,384 */

    /* New ids: begin <= id < end. Those of modules include annotations (spool_reader_annotation). */
    uint32_t modules_begin, modules_end;
    uint32_t frames_begin, frames_end;

    /* Processes of samples, user modules, annotations, python records and deactivations, each once, in the order
     * in which they were seen. */
    const int32_t *pids;
    size_t pid_count;

    /* The deactivation that ended the batch. Of a process: it, and its modules that were not retired yet, by
     * ascending id, without annotations. Of a module: the module, even if it had been retired before. */
    const uint32_t *retired_modules;
    size_t retired_module_count;
    const int32_t *retired_pids;
    size_t retired_pid_count;

    bool kernel_changed; /* a kernel module was defined or retired */
    bool finished; /* the recorder's `end` annotation has been read, in this batch or before */
    bool ended;    /* nothing will come any more: spool_reader_tail_ended */
    bool
        more; /* poll again at once: the batch ended early and there are unread bytes, perhaps only a part of a
                  record; or an error is next; first batch: or the input has grown since the open call */
};

/* Discards the last batch and decodes the next one; the first call returns that of the open call.
 *   1   *out is filled, something was read
 *   0   *out is filled, but nothing was read: no complete record is there
 *   <0  as spool_reader_next, and again at every later call. What was read before an error was a batch */
SPOOL_MUST_CHECK int spool_tail_poll(struct spool_tail *t, struct spool_tail_batch *out);

/* The reader behind it: for definitions, time, limit and error text. It belongs to the tail; its open and next
 * functions must not be called. */
struct spool_reader *spool_tail_reader(struct spool_tail *t);

/* ---- writing ------------------------------------------------------------------------------------- */

struct spool_writer;

/* A writer without output. NULL: out of memory. Free it with spool_writer_free, which accepts NULL and
 * writes nothing: what was not flushed or finished is lost. */
struct spool_writer *spool_writer_new(void);
void spool_writer_free(struct spool_writer *w);

/* Opens the writer on a descriptor, which stays the caller's, and puts the header into its buffer.
 * header->version is 3 or 4; interval_us counts in version 3, interval_ns and the origin in version 4.
 * Returns 0; ERR_MISUSE for a header that no reader would accept or a writer that is open already;
 * ERR_NOMEM. */
SPOOL_MUST_CHECK int spool_writer_open_fd(struct spool_writer *w, int fd,
                                          const struct spool_header *header);

/* The same with a function that takes the bytes: it returns 0 when it took all of them, or an errno value.
 * It is called with whole records only and must not call back into the writer. */
typedef int spool_write_fn(void *user, const void *data, size_t size);
SPOOL_MUST_CHECK int spool_writer_open_callback(struct spool_writer *w, spool_write_fn *write,
                                                void *user, const struct spool_header *header);

/* One frame of a sample to be written. */
struct spool_writer_frame {
    enum spool_frame_kind kind;
    bool kernel;        /* pinned: ignored, the module's mode counts */
    uint32_t module_id; /* pinned: the module */
    uint64_t address;   /* pinned: address in the file's offsets; unpinned: absolute; marker: 0 */
};

/* Defines a module; module->id and retired_at_frame are ignored, the next dense id is stored in *id when
 * it is not NULL. A jit module (version 4 only) needs file and identity fields as given. The path is
 * copied; path NULL with path_size 0 is the empty path.
 * Returns 0, ERR_MISUSE (a field the version cannot store, e.g. a path that is not UTF-8 in version 3),
 * ERR_LIMIT (ids used up), or the sticky error below. */
SPOOL_MUST_CHECK int spool_writer_module(struct spool_writer *w, const struct spool_module *module,
                                         uint32_t *id);

/* Writes a sample: frames[0] is the leaf, the truncated marker, if any, is last. Frames, stack nodes and
 * the thread are defined where they are new, in the order that stackpulse uses. frame_count 0 writes and
 * changes nothing.
 * Returns 0; ERR_MISUSE (a frame outside its module, a delta beyond 63 bits, a marker that is not the root
 * or has an address, ids out of the version's range), then nothing was written; ERR_LIMIT; ERR_NOMEM. */
SPOOL_MUST_CHECK int spool_writer_sample(struct spool_writer *w, uint64_t time_ns, int32_t pid,
                                         uint64_t tid, const struct spool_writer_frame *frames,
                                         size_t frame_count);

/* The remaining records. Each returns 0, ERR_MISUSE when a reader would refuse the record, or the sticky
 * error. */
SPOOL_MUST_CHECK int spool_writer_python(struct spool_writer *w, uint64_t time_ns, int32_t pid,
                                         bool on);
SPOOL_MUST_CHECK int spool_writer_deactivate_process(struct spool_writer *w, int32_t pid);
SPOOL_MUST_CHECK int spool_writer_deactivate_module(struct spool_writer *w, uint32_t module_id);

/* Writes the annotation "[spool:KEY] VALUE" about a process (pid >= 1). key is 1 to 32 of a-z, 0-9, '-'.
 * Bytes of value that are not UTF-8 become U+FFFD, and a value that would make the path longer than 4096
 * bytes is cut at a character. value NULL is none. */
SPOOL_MUST_CHECK int spool_writer_annotate(struct spool_writer *w, int32_t pid, const char *key,
                                           const char *value);

/* With plain, spool_writer_annotate checks its arguments, returns 0 and writes nothing: the spool has no module
 * record but those of mappings. Records of spool_writer_put are written all the same. May be called at any time,
 * and counts from then on. */
void spool_writer_set_plain(struct spool_writer *w, bool plain);

/* Low level: writes a decoded record as it is, for programs that filter or convert spools record by
 * record. Ids must be the next dense ones and references defined, as in a file; frame records give
 * module_id and rel (pinned) or abs; sample records time_ns, thread and stack (delta_ns, index, pid and
 * tid are ignored). FRAME, STACK, THREAD and SAMPLE records and spool_writer_sample do not mix in one
 * writer. Returns as above. */
SPOOL_MUST_CHECK int spool_writer_put(struct spool_writer *w, const struct spool_record *record);

/* Hands all buffered bytes to the output; ends on a record boundary. */
SPOOL_MUST_CHECK int spool_writer_flush(struct spool_writer *w);

/* Flushes and ends the spool: further calls are ERR_MISUSE. The descriptor is neither synced nor closed. */
SPOOL_MUST_CHECK int spool_writer_finish(struct spool_writer *w);

/* Bytes of the spool so far, those in the buffer included. */
uint64_t spool_writer_bytes(const struct spool_writer *w);

/* Errors of output (ERR_IO, ERR_NOMEM) are sticky: later output could not be decoded, so nothing more is
 * written and every later call returns the first error again. ERR_MISUSE and ERR_LIMIT are not: the
 * refused record was not written and the writer goes on. The text is the latest error's, "no error" before
 * any. Never NULL, valid until the next call. */
const char *spool_writer_error(const struct spool_writer *w);

/* ---- writing: the mappings of recorded processes --------------------------------------------------- */

/* In which order several mappings are retired or copied by one call; all else is the same. */
enum spool_mapping_order {
    SPOOL_MAPPING_BY_ID = 0, /* ascending module id, like stackpulse 0.2.0 to 0.5.x; our default */
    SPOOL_MAPPING_BY_ADDRESS = 1 /* ascending start, like 0.9 and later */
};

/* The live executable mappings of all processes, each with its module id. Every change writes the module and
 * deactivation records that stackpulse would write for it. While there is a table, mappings are defined and
 * retired through it alone (annotations, JIT modules and samples go to the writer as ever). Mappings of one
 * process are disjoint: a new one retires what it overlaps, and what is left of that on either side becomes
 * a mapping, with a module id, of its own. Mappings of the kernel belong to no process, may overlap, and are
 * never retired.
 *
 * A call that changes the table returns 0 or an error, whose text is spool_writer_error's: the writer's sticky
 * one, ERR_MISUSE when the writer is not open, ERR_NOMEM, and what is said below. ERR_NOMEM is sticky when
 * the writer was short of memory, and not when the table was; spool_writer_flush tells, and the call may be
 * made again. An apply or deactivate that fails has changed nothing; a clone may have been done in part. */
struct spool_mappings;

/* A table without mappings. The writer, open or not yet, is borrowed and must outlive it. NULL: out of memory. Free
 * it with spool_mappings_free, which writes nothing and accepts NULL. */
struct spool_mappings *spool_mappings_new(struct spool_writer *w, enum spool_mapping_order order);
void spool_mappings_free(struct spool_mappings *m);

/* A mapping was seen; its id and retired_at_frame are ignored, the path is copied. One that is live with equal
 * fields is kept as it is, and so is one that differs only in an inode generation that the new one does not
 * know (0). Stores the module id of the mapping in *id unless id is NULL; SPOOL_NO_ID when it was ignored because
 * its end is not above its start, or was not taken.
 * ERR_MISUSE for a field that the version cannot store and for a jit module, ERR_LIMIT when ids run out. */
SPOOL_MUST_CHECK int spool_mappings_apply(struct spool_mappings *m,
                                          const struct spool_module *mapping, uint32_t *id);

/* The process was replaced (exec), has ended, or its mappings are about to be read again: forgets them and
 * retires their modules. Without mappings, nothing is written. */
SPOOL_MUST_CHECK int spool_mappings_deactivate(struct spool_mappings *m, int32_t pid);

/* The child was forked: applies a copy of each of the parent's mappings to it. Returns as apply does. */
SPOOL_MUST_CHECK int spool_mappings_clone(struct spool_mappings *m, int32_t parent, int32_t child);

/* Finds the live mapping that has the address: of the process, or with `kernel` of the kernel (the highest id;
 * pid is ignored). 1: it is in *out, whose path is the table's and valid until the mappings change; 0: there
 * is none, *out is unchanged. */
int spool_mappings_find(const struct spool_mappings *m, int32_t pid, bool kernel, uint64_t address,
                        struct spool_module *out);

/* The frame of an address for spool_writer_sample: pinned to the mapping that spool_mappings_find finds, or unpinned
 * when there is none or the address in its file would exceed 64 bits. Good until the mappings change. */
void spool_mappings_frame(const struct spool_mappings *m, int32_t pid, bool kernel,
                          uint64_t address, struct spool_writer_frame *out);

/* Walks the mappings of a process by ascending start, from *at = 0 on. 1: a mapping, like that of
 * spool_mappings_find, and *at is moved on; 0: no more. The process's mappings must not change meanwhile. */
int spool_mappings_next(const struct spool_mappings *m, int32_t pid, size_t *at,
                        struct spool_module *out);

/* A number that changes whenever a live mapping of the process was replaced, cut or removed, for those who keep
 * answers of spool_mappings_find; not when one was added to free space. 0 for a process without mappings; another
 * number never comes again in one table, not even for another process. */
uint64_t spool_mappings_generation(const struct spool_mappings *m, int32_t pid);

#ifdef __cplusplus
}
#endif

#endif
