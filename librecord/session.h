/* SPDX-License-Identifier: MIT */
/*
 * What the files of a recording session share: the session itself, its processes and threads, and who does
 * what with them. recorder.c has the interface and the loop.
 */
#ifndef RECORD_SESSION_H
#define RECORD_SESSION_H

#include "code_pages.h"
#include "event.h"
#include "idmap.h"
#include "image_files.h"
#include "order.h"
#include "perfrec.h"
#include "record_error.h"
#include "ring.h"
#include "unwind.h"

#include "spool/record.h"
#include "spool/spool.h"

struct thread {
    pid_t tid;
    struct process *process;
    char name[64]; /* "": not known */
    bool noted;    /* the name stands in the spool */
    bool covered;  /* an event counts it, opened for it or inherited */
    bool sampled;
    struct thread *next;  /* of the process */
    struct thread **link; /* what points to this one: thousands of threads may end at once */
};

/* A process that is recorded, until its last thread has ended. */
struct process {
    pid_t pid;
    uint64_t start_ticks; /* 0: not known */
    char name[64];
    bool python;
    bool before_exec;   /* a command that has not been started: what is mapped is not its own */
    bool rescan_due;    /* records may have been lost: read its mappings and threads again */
    bool wants_events;  /* has threads that no event covers yet */
    bool maps_refused;  /* and said so */
    bool cover_refused; /* likewise */
    bool on;            /* sampled, if need be from its exec on */
    bool muted;         /* it is not to be sampled, although events may be on */
    bool gone;          /* a second ago: no record is left of it by now */
    uint64_t maps_ns; /* when all its mappings were read: older records say nothing new; 0: never */
    enum record_mode mode;
    struct thread *threads;
    uint64_t
        epoch; /* of what it maps, by the mapping table or otherwise: none is given out twice */
    uint64_t mapped_generation; /* of the mapping table in that epoch */
    /* Pages where nothing is mapped by the latest maps read; forgotten when mappings change. */
    struct idmap unknown_pages;
    unsigned rescans_left; /* of this second */
};

/* A sampling event, or the owner of a ring. */
struct counter {
    int fd;
    pid_t tid;         /* -1: of a whole CPU */
    bool on_exec;      /* starts by itself */
    struct ring *ring; /* its own, else NULL: redirected */
    bool hung_up;      /* its thread has ended: no use waiting for it */
};

/* The ring of a CPU and the event that owns it. */
struct cpu_ring {
    int cpu;
    int fd;
    struct ring ring;
};

enum session_state { SESSION_NEW, SESSION_OPEN, SESSION_FINISHED };

struct record_session {
    enum session_state state;
    bool opened; /* tried once, also in vain */
    struct record_errbuf error;
    int sticky; /* ERR_IO, ERR_NOMEM, ERR_LIMIT of ids: the spool cannot go on */
    bool frequency_refused;
    uint32_t refused_hz, limit_hz;

    struct record_options options; /* cmdline points to cmdline_copy */
    char *cmdline_copy;
    record_log_fn *log;
    void *log_user;
    uint64_t fault_logged_ns[RECORD_FAULT_COUNT];

    struct spool_writer *writer;
    struct spool_mappings *mappings;
    uint64_t flushed_ns;

    struct event_config config;
    struct perfrec_layout layout;
    struct order *order;
    struct cpu_ring *cpus; /* NULL before the first attach */
    size_t cpu_count;
    struct counter *counters;
    size_t counter_count, counter_capacity;
    struct pollfd *polled; /* what the latest poll waited for */
    size_t polled_capacity;
    size_t thread_ring_size; /* of rings of single threads; 0: none yet */
    uint64_t files_limit;    /* descriptors */
    bool kernel_refusal_told;
    bool files_refusal_told;
    bool kernel_threads_told;

    struct idmap processes; /* struct process by pid */
    struct idmap threads;   /* struct thread by tid */
    pid_t first_pid;        /* of the notes about the whole recording; 0: none yet */
    struct image_files *files;
    struct unwind_cache *cache;    /* of all processes, by their epochs */
    struct rule_table *code_rules; /* made from instructions */
    struct code_pages *code_pages;
    uint64_t epochs;
    uint8_t *noted_build_ids; /* a bit a module */
    size_t noted_build_ids_size;

    uint64_t round_ns;         /* when the previous round began; 0: none yet */
    uint64_t second_ns;        /* when the once-a-second work was done last */
    uint64_t lost_in_records;  /* sum of LOST */
    uint64_t lost_before_ring; /* sum of LOST_SAMPLES */
    uint64_t lost_closed;      /* LOST of counters that are closed */
    uint64_t lost_noted;
    uint64_t corrupt_in_rings; /* as of the latest round */
    bool loss_seen;            /* since the latest rescan */
    bool
        threads_unsure; /* threads may have been missed: an end of all known ones is looked at twice */

    struct unwind_frame *unwound;
    struct spool_writer_frame *frames;
    struct record_summary counts; /* what is counted on the way; the rest is filled in when asked */
    uint64_t begun_ns, ended_ns;
};

/* How often in a second unknown addresses may make us read a process's maps. */
#define RESCANS_A_SECOND 20

/* ---- recorder.c ---- */

uint64_t recordint_now_ns(void); /* CLOCK_MONOTONIC */
void recordint_log(struct record_session *s, enum record_log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* What calls on an open session begin with: 0 or the error to return. */
int recordint_ready(struct record_session *s);
/* Takes a result of libspool's writer or mapping table: 0 and above is 0, an error becomes ours. */
int recordint_spool_result(struct record_session *s, int rc);
int recordint_out_of_memory(struct record_session *s);
/* Reads all that the kernel has told so far, records of this moment too: who must know which threads and children
 * there are cannot wait for the next round. May end processes. Returns 0 or an error. */
int recordint_catch_up(struct record_session *s);

/* ---- processes.c: who is recorded, what they map ---- */

struct process *recordint_process_find(struct record_session *s, pid_t pid);
/* Makes a process that is not there yet. NULL: out of memory. */
struct process *recordint_process_new(struct record_session *s, pid_t pid);
/* Forgets it: Python off, mappings retired, at a time (0: now). Returns 0 or an error of the spool. */
int recordint_process_end(struct record_session *s, struct process *p, uint64_t time_ns);
/* Answers about the process's addresses that were kept do not hold any more. */
void recordint_process_renew(struct record_session *s, struct process *p);
/* Frees files that no process maps any more, when there are many. Not while a stack is walked. */
void recordint_processes_sweep_files(struct record_session *s);
/* Frees all, writing nothing. */
void recordint_processes_free(struct record_session *s);

/* The thread of a process, made when it is not there; one of that id in another process is moved. */
struct thread *recordint_thread_get(struct record_session *s, struct process *p, pid_t tid);
void recordint_thread_end(struct record_session *s, struct thread *t);

/* A mapping seen at a time: to the table, and the Python marker with it. Returns 0 or an error. */
int recordint_process_map(struct record_session *s, struct process *p, const struct spool_module *m,
                          uint64_t time_ns);
/* Applies /proc/PID/maps. all: whatever it says now; else only what lies in free space. *added: something new.
 * A process that is gone is no error. */
int recordint_process_read_maps(struct record_session *s, struct process *p, bool all,
                                uint64_t time_ns, bool *added);
/* After an exec: nothing of before holds. */
int recordint_process_exec(struct record_session *s, struct process *p, uint64_t time_ns);
/* A fork: the child starts as its parent is, under the name of the thread that made it ("": not known). */
int recordint_process_fork(struct record_session *s, struct process *parent, const char *name,
                           pid_t child, uint64_t time_ns);
int recordint_process_set_python(struct record_session *s, struct process *p, bool on,
                                 uint64_t time_ns);
bool recordint_is_python(const char *path);

/* ---- record_notes.c: annotations ---- */

int recordint_note_session(struct record_session *s,
                           pid_t pid); /* host, clock, event, kernel; once */
int recordint_note_comm(struct record_session *s, const struct process *p);
int recordint_note_thread(struct record_session *s, struct thread *t);
/* text NULL: what /proc says now, if anything. */
int recordint_note_cmdline(struct record_session *s, const struct process *p, const char *text);
int recordint_note_build_id(struct record_session *s, pid_t pid, uint32_t module, const char *hex);
int recordint_note_ksymbol(struct record_session *s, uint64_t address, uint32_t size,
                           const char *name);
int recordint_note_lost(struct record_session *s);
int recordint_note_end(struct record_session *s);

/* ---- attach.c: events and rings ---- */

/* Opens events for the threads of a process that none covers. Returns their number or an error; on an error
 * what was opened is closed again. */
int recordint_attach_threads(struct record_session *s, struct process *p, bool on_exec);
int recordint_attach_enable(struct record_session *s, bool on);
/* Switches on the events that were opened since there were `first` of them. */
int recordint_attach_start(struct record_session *s, size_t first);
/* Closes the events of a process's threads. */
void recordint_attach_forget(struct record_session *s, const struct process *p);
/* Closes events that have no thread any more. */
void recordint_attach_sweep(struct record_session *s);
void recordint_attach_close_all(struct record_session *s);
uint64_t recordint_attach_lost(
    struct record_session *s); /* LOST of all events, closed ones included */

/* ---- sideband.c, sampler.c: records ---- */

int recordint_record(struct record_session *s, const void *data, size_t size);
int recordint_sample(struct record_session *s, const struct perfrec *rec);
/* Records of any kind are missing: what they told is to be read from /proc. */
void recordint_records_missed(struct record_session *s);
/* Reads mappings and threads of processes that need it after a loss. */
int recordint_recover(struct record_session *s);

/* ---- faults.c ---- */

/* Counts it, and tells of it at most once a second and kind: the stack's last frame is at address. */
void recordint_fault(struct record_session *s, enum record_fault fault, const struct perfrec *rec,
                     uint64_t address);

#endif
