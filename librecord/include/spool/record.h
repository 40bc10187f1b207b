/* SPDX-License-Identifier: MIT */
/*
 * librecord: samples the stacks of running programs into a spool.
 *
 * A session opens sampling events of the kernel (perf_event_open) on processes that exist or on a command
 * that is about to start, follows their threads, children and mappings, walks each sampled stack by the
 * unwind tables of the files mapped (else by frame pointers or instructions), and writes what it finds
 * through libspool. It has no thread of its own: the program polls.
 *
 * Recording a command, without the checks (stack_histogram.c in share/doc/spooltools/examples has them):
 *
 *     struct record_options o;
 *     struct record_session *s = record_session_new();
 *     struct record_command *c = record_command_new();
 *     record_options_init(&o, sizeof o);
 *     record_session_open_fd(s, fd, &o);
 *     record_command_prepare(c, argv, NULL);               // forked, stopped before its exec
 *     record_session_attach_command(s, c);
 *     record_command_run(c);
 *     while (record_session_process_count(s, 0) > 0)
 *         record_session_poll(s, 100);
 *     record_session_finish(s);
 *     record_command_wait(c, &status);
 *
 * Needs Linux 6.0 on x86-64 or AArch64. Under kernel.perf_event_paranoid 2 a user may record programs of
 * the same user; kernel frames and other users' programs need more (record_session_error says what).
 *
 * Conventions, as in spool/spool.h:
 *   - A function that can fail returns int: 0 or positive is success, negative is one of RECORD_ERR_*.
 *   - A handle is used by one thread at a time, a session always by the thread that opened it (events are
 *     bound to it). Different handles are independent.
 *   - The library never prints, exits, installs signal handlers or closes a descriptor it was lent. It
 *     raises RLIMIT_NOFILE to the hard limit when a session opens.
 *   - Every text it returns is NUL-terminated and belongs to the handle.
 *   - ERR_IO, ERR_NOMEM, and ERR_LIMIT once the spool's ids are used up, are the end of a session: every later call
 *     returns it again. Two shortages of memory are not: a stack stops (no_rule) in a file for whose unwind
 *     tables there is no memory, and a record that goes round a ring's end is skipped (corrupt_records), after
 *     which threads and mappings are read again, as after any loss.
 */
#ifndef SPOOL_RECORD_H
#define SPOOL_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define RECORD_MUST_CHECK __attribute__((warn_unused_result))
#else
#define RECORD_MUST_CHECK
#endif

/* ---- errors ------------------------------------------------------------------------------------ */

/* Numbers mean the same in every library of this project; a number is never reused. */
enum {
    RECORD_ERR_NOMEM = -1, /* out of memory */
    RECORD_ERR_IO = -2,    /* the spool cannot be written; nothing is written any more */
    RECORD_ERR_LIMIT = -7, /* beyond a limit: of the kernel (the text has both numbers) or of ids */
    RECORD_ERR_MISUSE = -8, /* the caller broke a rule of this header; nothing was changed */
    RECORD_ERR_PERMISSION =
        -20, /* the kernel refuses; the text names the setting, its value, ways out */
    RECORD_ERR_UNSUPPORTED = -21, /* this kernel, machine or container cannot do it */
    RECORD_ERR_NO_PROCESS = -22,  /* there is no such process (any more) */
    RECORD_ERR_COMMAND = -23 /* the command cannot be run; record_command_errno has the reason */
};

/* The constant's own name ("RECORD_ERR_IO"; "RECORD_OK" for 0 and above, "RECORD_ERR_UNKNOWN" for a code
 * that is not ours), and a short English text. Static storage, never NULL. */
const char *record_error_name(int code);
const char *record_error_text(int code);

/* The library's version, "MAJOR.MINOR.PATCH". Static storage. */
const char *record_version(void);

/* ---- options ------------------------------------------------------------------------------------ */

/* The largest user stack that the kernel copies: a multiple of 8 that leaves room in a record of 64 KiB. */
#define RECORD_STACK_SIZE_MAX 65528u

/* record_options.frequency_hz: the kernel's highest rate. */
#define RECORD_FREQUENCY_MAX UINT32_MAX

enum record_event {
    RECORD_EVENT_AUTO = 0, /* cycles, or cpu-clock where there is no such counter */
    RECORD_EVENT_CYCLES = 1,
    RECORD_EVENT_CPU_CLOCK = 2
};

struct record_options {
    size_t size;           /* of the struct that the caller knows, set by record_options_init */
    uint32_t frequency_hz; /* samples a second of each thread while on a CPU, >= 1; default 999 */
    uint32_t
        stack_size_bytes; /* user stack copied with each sample, rounded down to a multiple of 8,
                                  8 to RECORD_STACK_SIZE_MAX; more is clamped and said so; default 32768 */
    enum record_event event;
    bool kernel; /* kernel frames as well; default no */
    bool
        no_inherit; /* do not follow processes that targets make from now on (threads always are) */
    uint64_t
        ring_size_bytes; /* ring buffer of each CPU, rounded up to a power of two of pages; 0 (default):
                                 room for 200 ms of samples, 1 to 16 MiB */
    uint32_t spool_version; /* 3 (default) or 4 */
    bool plain;             /* no annotations: what stackpulse itself would have written */
    bool has_start;         /* header field instead of the time of opening ... */
    uint64_t start_us;      /* ... microseconds since 1970 */
    bool has_interval;      /* header field instead of 10^6 / frequency_hz rounded down ... */
    uint64_t interval_us;   /* ... microseconds */
    const char *
        cmdline; /* for the annotation `cmdline` of a command's process, NULL: read from /proc. Copied. */
};

/* Fills in the defaults above. size is sizeof(struct record_options) as the caller was compiled: it may grow. */
void record_options_init(struct record_options *options, size_t size);

/* ---- session ------------------------------------------------------------------------------------ */

struct record_session;
struct record_command;

/* NULL: out of memory. Free it with record_session_free, which accepts NULL, stops sampling, resumes what is
 * still stopped and writes nothing: what was not flushed or finished is lost. Processes go on. */
struct record_session *record_session_new(void);
void record_session_free(struct record_session *s);

/* Checks the options, reads the kernel's limits, and begins a spool on a descriptor, which stays the
 * caller's, or with a function that takes the bytes: it returns 0 when it took all of them, or an errno
 * value. It is called with whole records only, during calls on the session, and must not call back into that. The header has been written when this returns 0. A session is opened once, be it
 * in vain.
 * Returns 0, ERR_LIMIT (a frequency above the kernel's; see record_session_frequency_error), ERR_UNSUPPORTED
 * (kernel before 6.0, another machine), ERR_IO, ERR_MISUSE, ERR_NOMEM. */
typedef int record_write_fn(void *user, const void *data, size_t size);
RECORD_MUST_CHECK int record_session_open_fd(struct record_session *s, int fd,
                                             const struct record_options *options);
RECORD_MUST_CHECK int record_session_open_callback(struct record_session *s, record_write_fn *write,
                                                   void *user,
                                                   const struct record_options *options);

/* Notices: what the session did otherwise than asked (smaller rings, no kernel frames, another mode), and a
 * few samples' worth of each kind of unwinding fault, at most one a second and kind. One line, no full stop. */
enum record_log_level { RECORD_LOG_DEBUG = 0, RECORD_LOG_INFO = 1, RECORD_LOG_WARNING = 2 };
typedef void record_log_fn(void *user, enum record_log_level level, const char *text);
void record_session_set_log(struct record_session *s, record_log_fn *log, void *user);

enum {
    RECORD_ATTACH_NO_STOP =
        1 << 0, /* do not stop the process while attaching: threads and mappings made
                                           meanwhile may be missed until the next refresh */
    RECORD_ATTACH_DESCENDANTS = 1 << 1, /* its descendants too, all stopped at the same time */
    RECORD_ATTACH_DISABLED = 1 << 2     /* leave sampling off until record_session_enable */
};

/* Samples a process that runs already, from now on; may be called for several, at any time. It is stopped
 * (SIGSTOP) while its threads and mappings are read, and resumed if it was not stopped before. A process
 * that is a target already is refreshed.
 * Returns 0; ERR_NO_PROCESS (also one that ends meanwhile); ERR_PERMISSION; ERR_LIMIT (descriptors used up
 * in every mode); ERR_UNSUPPORTED; ERR_IO; ERR_NOMEM; ERR_MISUSE. After any of these but ERR_IO, ERR_NOMEM
 * and a spool whose ids are used up (ERR_LIMIT too) the session goes on with the targets it has. */
RECORD_MUST_CHECK int record_session_attach(struct record_session *s, pid_t pid, unsigned flags);

/* Samples a prepared command from its exec on. Returns as record_session_attach. */
RECORD_MUST_CHECK int record_session_attach_command(struct record_session *s,
                                                    struct record_command *c);

/* Looks for threads of a target that no event covers and opens events for them. ESRCH of a thread that ended
 * meanwhile is no error. Returns the number of threads added, or as record_session_attach. */
RECORD_MUST_CHECK int record_session_refresh_threads(struct record_session *s, pid_t pid);

/* Switches sampling of all targets on or off. Switched off, the kernel tells nothing either: threads and mappings
 * are read again when sampling is switched on. Returns 0, ERR_UNSUPPORTED (the kernel refuses), or an error as
 * record_session_poll does. */
RECORD_MUST_CHECK int record_session_enable(struct record_session *s);
RECORD_MUST_CHECK int record_session_disable(struct record_session *s);

/* Waits until there is something to read, at most timeout_ms (0: do not wait; -1: no limit but the 100 ms
 * after which rings are looked at anyway), then reads what there is and writes it. Samples younger than the
 * previous call stay in the rings until the next one, so that records of several CPUs come in order. Flushes the
 * output at least once a second. EINTR is a return of 0.
 * Returns the number of samples written, ERR_IO, ERR_LIMIT (ids), ERR_NOMEM, ERR_MISUSE. */
RECORD_MUST_CHECK int record_session_poll(struct record_session *s, int timeout_ms);

/* 1 when a ring holds records, 0 when none does. */
int record_session_pending(const struct record_session *s);

/* Hands everything written so far to the output; it then ends on a record boundary. Returns 0 or an error
 * as record_session_poll does. */
RECORD_MUST_CHECK int record_session_flush(struct record_session *s);

/* The targets that have not ended: roots, what was added, and followed children. record_session_process_count
 * does not count `except` (0: counts all). record_session_processes stores up to max of them, ascending, and
 * returns how many there are. Both ask the kernel, so that they are right without a poll in between. */
size_t record_session_process_count(struct record_session *s, pid_t except);
size_t record_session_processes(struct record_session *s, pid_t *pids, size_t max);

/* 1 when that target has not ended, else 0 (also for a process that is no target). */
int record_session_process_active(struct record_session *s, pid_t pid);

/* Stops sampling, reads all that is left in the rings, writes the closing notes and flushes. Afterwards only
 * the functions that read counters, texts and the summary are allowed.
 * Returns 0 or an error as record_session_poll does; the session is finished then, too. */
RECORD_MUST_CHECK int record_session_finish(struct record_session *s);

/* The text of the latest error, "no error" before any. Never NULL, valid until the next call. */
const char *record_session_error(const struct record_session *s);

/* After ERR_LIMIT for a frequency: what was asked for and the kernel's limit. Returns 1, 0 when there was no
 * such error. */
int record_session_frequency_error(const struct record_session *s, uint32_t *asked_hz,
                                   uint32_t *limit_hz);

/* ---- counters ----------------------------------------------------------------------------------- */

/* Why a stack was not walked to its root, or not at all. */
enum record_fault {
    RECORD_FAULT_REGISTERS_MISSING =
        0, /* the kernel gave no user registers (kernel thread, exiting task) */
    RECORD_FAULT_REGISTER_CAPTURE, /* it gave other registers than asked for (a 32-bit task) */
    RECORD_FAULT_STACK_READ,       /* an address outside the stack was needed */
    RECORD_FAULT_STACK_TRUNCATED, /* the copied part of the stack ended: a larger stack size helps */
    RECORD_FAULT_NO_PROGRESS,     /* the same frame again */
    RECORD_FAULT_NULL_RETURN_ADDRESS, /* return address 0 where the stack should go on */
    RECORD_FAULT_MOVED_BACKWARDS,     /* a caller's frame below its callee's */
    RECORD_FAULT_OVERFLOW,            /* an address computed beyond 64 bits */
    RECORD_FAULT_DEPTH_LIMIT,         /* more than RECORD_DEPTH_MAX frames */
    RECORD_FAULT_NO_RULE, /* no unwind information, no credible frame pointer, no telling code */
    RECORD_FAULT_UPROBE,  /* a return address replaced by a uretprobe */
    RECORD_FAULT_COUNT    /* not a fault: how many this version has */
};

/* Room for those of later versions. */
#define RECORD_FAULTS_MAX 32

/* Frames of a sample, kernel and user together, at most. */
#define RECORD_DEPTH_MAX 1024

/* Counts by fault: a plain value, copied by assignment. */
struct record_faults {
    uint64_t count[RECORD_FAULTS_MAX];
};

/* 0 for a number that is no fault. */
uint64_t record_faults_get(const struct record_faults *f, enum record_fault fault);
uint64_t record_faults_total(const struct record_faults *f);
bool record_faults_any(const struct record_faults *f);
void record_faults_reset(struct record_faults *f);

/* Walks the counts that are not zero: start with *at = 0. Returns 1 and the next one, 0 at the end. */
int record_faults_next(const struct record_faults *f, unsigned *at, enum record_fault *fault,
                       uint64_t *count);

/* "stack_truncated": as in JSON. And in words: "the copied part of the stack ended". Static storage, "unknown" for others. */
const char *record_fault_name(enum record_fault fault);
const char *record_fault_text(enum record_fault fault);

/* A report with a line for each count that is not zero and its share of `samples`, most first. Writes at
 * most size bytes with the NUL and returns the length it needs without it, as snprintf does. */
size_t record_faults_report(const struct record_faults *f, uint64_t samples, char *text,
                            size_t size);

/* How threads are covered; what record_summary.mode says. */
enum record_mode {
    RECORD_MODE_NONE = 0,   /* nothing attached yet */
    RECORD_MODE_INHERIT,    /* an event for each thread and CPU, inherited by what they create */
    RECORD_MODE_PER_THREAD, /* an event a thread with a ring of its own: descriptors were short */
    RECORD_MODE_SYSTEM_WIDE /* an event a CPU for all processes, filtered: descriptors were short */
};
const char *record_mode_name(
    enum record_mode mode); /* "inherit", "per-thread", "system-wide", "none" */

struct record_summary {
    uint64_t sample_events;  /* sample records of the kernel that are about targets */
    uint64_t samples;        /* samples in the spool */
    uint64_t lost_events;    /* records of any kind that the kernel had no room for */
    uint64_t lost_samples;   /* of them, what the kernel says were samples (LOST of read_format) */
    uint64_t lifecycle_gaps; /* times that threads and mappings had to be read again after a loss */
    bool kernel_enabled;
    const char *event; /* "cycles", "cpu-clock", "" before the first attach; static storage */
    uint32_t frequency_hz;
    uint64_t missing_pid; /* samples without a process of our namespace ... */
    uint64_t missing_tid;
    uint64_t idle_tid; /* ... of thread 0 */
    uint64_t missing_timestamp;
    uint64_t empty_stack;      /* samples with no frame at all */
    uint64_t truncated_stacks; /* samples that end in the marker, for any reason */
    uint64_t guessed_stacks;   /* samples with a frame that was found without unwind information */
    uint64_t ignored_user_callchain; /* frames of user callchains that were not asked for */
    uint64_t
        excluded_kernel; /* samples that hit the kernel and have no frame left without kernel frames */
    uint64_t throttled;       /* times that the kernel throttled an event */
    uint64_t corrupt_records; /* of a ring, skipped; threads and mappings are read again then */
    uint64_t rescans; /* times that /proc/PID/maps was read again because an address was unknown */
    struct record_faults faults;
    uint64_t bytes;       /* of the spool so far */
    uint64_t duration_ns; /* from the first attach until now, or until finish */
    uint32_t processes;   /* targets seen */
    uint32_t threads;     /* threads with a sample */
    enum record_mode mode;
    uint64_t ring_size_bytes; /* of each ring */
    uint64_t reserved[16];    /* for counters of later versions; 0 */
};

/* The counters so far. */
void record_session_summary(const struct record_session *s, struct record_summary *out);

/* ---- commands ----------------------------------------------------------------------------------- */

/* A child process that waits before its exec until it is told to run.
 * NULL: out of memory. record_command_free accepts NULL; a command that was prepared and never run is killed and
 * reaped, one that runs is left alone. */
struct record_command *record_command_new(void);
void record_command_free(struct record_command *c);

/* All zero but size is as if there were none. */
struct record_command_options {
    size_t size;          /* sizeof(struct record_command_options): it may grow */
    int stdout_fd;        /* above 0: the command's standard output; 0, -1: it has ours */
    bool default_signals; /* SIGINT, SIGTERM, SIGPIPE as by default in the child */
};

/* Forks. argv ends with NULL, argv[0] is looked up in PATH as execvp does. options NULL: inherit everything.
 * The child has no descriptor of ours but 0, 1 and 2 and those without CLOEXEC.
 * Signals that the caller handles are by default in the child at once. argv may change when this returns.
 * Returns 0, ERR_COMMAND (fork or a descriptor refused, see record_command_errno; the handle is as new),
 * ERR_MISUSE. */
RECORD_MUST_CHECK int record_command_prepare(struct record_command *c, char *const argv[],
                                             const struct record_command_options *options);

/* The process id, 0 before it was prepared. */
pid_t record_command_pid(const struct record_command *c);

/* Lets it exec, and waits until it has. Returns 0; ERR_COMMAND when it could not: record_command_errno then
 * has the errno value of execvp (ENOENT: not found), and it has been reaped. */
RECORD_MUST_CHECK int record_command_run(struct record_command *c);
int record_command_errno(const struct record_command *c);

/* Without waiting: 1 and the status as of waitpid when it has ended, 0 when not, ERR_NO_PROCESS (the caller reaped
 * it, or ignores SIGCHLD), ERR_MISUSE. Wait: waits for one that was run; EINTR returns 0. Once it has ended both
 * keep returning 1. status may be NULL. */
RECORD_MUST_CHECK int record_command_try_wait(struct record_command *c, int *status);
RECORD_MUST_CHECK int record_command_wait(struct record_command *c, int *status);

/* ---- helpers ------------------------------------------------------------------------------------ */

/* kernel.perf_event_max_sample_rate. Returns 1, or 0 when it cannot be read. */
int record_max_sample_rate(uint32_t *hz);

/* 1 when the process exists and is no zombie, else 0. */
int record_process_exists(pid_t pid);

/* Sends SIGINT, SIGKILL. Returns 0, ERR_NO_PROCESS, ERR_PERMISSION. */
RECORD_MUST_CHECK int record_process_interrupt(pid_t pid);
RECORD_MUST_CHECK int record_process_kill(pid_t pid);

/* A descriptor that becomes readable when the process ends; the caller closes it. Returns it, or
 * ERR_NO_PROCESS, ERR_LIMIT (descriptors), ERR_UNSUPPORTED. record_exit_fd_wait waits on one, at most
 * timeout_ms (-1: no limit): 1 ended, 0 not yet or EINTR, ERR_MISUSE: no descriptor. */
RECORD_MUST_CHECK int record_exit_fd_open(pid_t pid);
int record_exit_fd_wait(int fd, int timeout_ms);

/* The children of a process, theirs, and so on, ascending; without itself. Stores up to max and returns how
 * many there are (0 also for a process that does not exist, and when memory runs out). */
size_t record_descendants(pid_t pid, pid_t *pids, size_t max);

/* The address inside the file of a runtime address in a mapping [start, end) of the file at file_offset:
 * address - start + file_offset. Returns 1, 0 when the address is outside or the sum exceeds 64 bits. */
int record_file_address(uint64_t start, uint64_t end, uint64_t file_offset, uint64_t address,
                        uint64_t *out);

#ifdef __cplusplus
}
#endif

#endif
