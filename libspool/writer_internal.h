/* SPDX-License-Identifier: MIT */
/*
 * A writer's state and its checks, shared by writer.c, writer_check.c, writer_put.c and mapping.c, and two switches
 * for the project's own tests. The shared library exports none of it.
 */
#ifndef SPOOLINT_WRITER_INTERNAL_H
#define SPOOLINT_WRITER_INTERNAL_H

#include "error.h"
#include "intern.h"
#include "record.h"
#include "spool/spool.h"

/* What the checks of pinned frames need of a module. */
struct module_facts {
    uint64_t file_offset;
    uint64_t size; /* end - start, 0 when end is not above start: then no frame fits */
};

/* Of modules with ids that follow each other. Freed when all of them are retired, so that mappings that come and go for
 * hours leave next to nothing. */
enum { MODULES_A_CHUNK = 256 };
struct module_chunk {
    unsigned retired;
    struct module_facts facts[MODULES_A_CHUNK];
};

/* Who gives out the ids of frames, stack nodes and threads. */
enum id_mode {
    IDS_UNDECIDED,
    IDS_INTERNED, /* spool_writer_sample */
    IDS_GIVEN     /* spool_writer_put */
};

enum writer_state { WRITER_NEW, WRITER_OPEN, WRITER_FINISHED };

struct spool_writer {
    enum writer_state state;
    enum id_mode mode;
    uint32_t version;
    uint32_t id_count_max;
    bool old_versions;
    bool plain; /* annotations are checked and left out */

    spool_write_fn *write;
    void *user;
    int fd;
    struct byte_buffer buffer;
    uint64_t handed_over; /* bytes that the output took */

    struct module_chunk **modules; /* NULL: all retired */
    uint8_t *retired;              /* a bit a module */
    size_t module_capacity;        /* a multiple of MODULES_A_CHUNK */
    uint32_t module_count;
    struct intern ids; /* its counters serve both modes */
    uint64_t time_ns;  /* of the last sample */

    int sticky; /* an output error or 0 */
    struct error_state sticky_error;
    struct error_state error; /* the latest */
};

#define writer_misuse(w, ...) spoolint_error_set(&(w)->error, SPOOL_ERR_MISUSE, __VA_ARGS__)

/* What every call on an open writer begins with: 0, the sticky error, or ERR_MISUSE when it is not open. */
int spoolint_writer_ready(struct spool_writer *w);

/* Whether ids may come from there; mode is set only once a record was taken. Returns 0 or ERR_MISUSE. */
int spoolint_writer_check_mode(struct spool_writer *w, enum id_mode mode);

/* Puts a record that passed all checks into the buffer. */
int spoolint_writer_emit(struct spool_writer *w, const struct spool_record *rec);
/* Likewise a sample, whose time the next one counts from. */
int spoolint_writer_put_sample(struct spool_writer *w, uint64_t time_ns, int64_t delta_ns,
                               uint32_t thread, uint32_t stack);
/* Checks and writes a module record, whose type says what it is: an ordinary module, a JIT module or an annotation.
 * The module's own id is not looked at. */
int spoolint_writer_put_module(struct spool_writer *w, enum spool_record_type type,
                               const struct spool_module *module);

/* The module's frames will not come any more: what is kept of them may be forgotten. Should one come all the same, it is
 * defined again. */
void spoolint_writer_retire(struct spool_writer *w, uint32_t module_id);

/* Each check returns 0, or sets the writer's error and returns its code. */
int spoolint_writer_id_limit_error(struct spool_writer *w, const char *what);
bool spoolint_writer_bad_pid(const struct spool_writer *w, int32_t pid);
int spoolint_writer_pid_error(struct spool_writer *w, const char *what, int32_t pid);
int spoolint_writer_check_thread(struct spool_writer *w, const char *what, int32_t pid,
                                 uint64_t tid);
/* *delta_ns: from the last sample to time_ns. */
int spoolint_writer_check_delta(struct spool_writer *w, uint64_t time_ns, int64_t *delta_ns);
int spoolint_writer_check_frame_kind(struct spool_writer *w, enum spool_frame_kind kind,
                                     bool kernel, uint32_t module_id, uint64_t address);
int spoolint_writer_check_module(struct spool_writer *w, const struct spool_module *m);
int spoolint_writer_check_header(struct spool_writer *w, const struct spool_header *h);

/* Lets the writer be opened for versions 1 and 2, so that fixtures of them can be written again. */
void spoolint_writer_allow_old_versions(struct spool_writer *w);

/* Makes ids end below `count` instead of at the format's limit, which takes too long to reach. */
void spoolint_writer_limit_ids(struct spool_writer *w, uint32_t count);

#endif
