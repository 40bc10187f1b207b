/* SPDX-License-Identifier: MIT */
/*
 * Opening a spool, handing out its records, telling a clean end from a cut tail from damage from more to come. What
 * the bytes mean is record.c's, where they come from input.c's.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "annotation.h"
#include "error.h"
#include "format.h"
#include "input.h"
#include "reader_internal.h"
#include "record.h"
#include "spool/spool.h"
#include "table.h"
#include "varint.h"

/* Wall times need 64 bits of seconds in nanoseconds. */
__extension__ typedef __int128 int128;

enum reader_state { READER_NEW = 0, READER_OPEN, READER_ENDED, READER_FAILED };

/* A sample or stack node is a tag and three varints; with so many bytes ahead none of them can be short. */
#define FAST_MAX_SIZE (1 + 3 * FORMAT_VARINT_MAX_SIZE)

/* A record that is longer than this library keeps and has not come to its end yet. */
struct long_record {
    enum spool_record_type type;
    uint64_t needed; /* its bytes at least */
    uint64_t left;   /* of them have not been seen; 0: there is no such record */
};

struct spool_reader {
    const uint8_t *at; /* tag of the next record, inside window */
    const uint8_t
        *fast_end; /* samples and stack nodes that begin before it lie wholly in the window */
    struct input_window window;
    uint64_t window_offset; /* of window.begin in the spool */
    struct table table;
    struct jit_scratch jit;
    struct spool_header header;
    struct input *input;
    enum reader_state state;
    bool tail; /* the end may not be the end */
    bool cut_tail;
    uint64_t kept_bytes; /* once ended or failed */
    struct long_record long_record;
    struct error_state error;
};

struct spool_reader *spool_reader_new(void)
{
    struct spool_reader *r = calloc(1, sizeof *r);

    if (!r)
        return NULL;
    spoolint_table_init(&r->table);
    r->input = spoolint_input_new();
    if (!r->input) {
        free(r);
        return NULL;
    }
    return r;
}

void spool_reader_free(struct spool_reader *r)
{
    if (!r)
        return;
    spoolint_input_free(r->input);
    spoolint_table_free(&r->table);
    free(r->jit.symbols);
    free(r);
}

static uint64_t offset_of(const struct spool_reader *r, const uint8_t *p)
{
    return r->window_offset + (uint64_t)(p - r->window.begin);
}

/* Ends reading for good: nothing ahead, so that the fast path finds nothing either. */
static void stop(struct spool_reader *r, enum reader_state state)
{
    r->kept_bytes = r->window.begin ? offset_of(r, r->at) : 0;
    r->state = state;
    r->fast_end = r->at;
}

static int fail(struct spool_reader *r, int code)
{
    stop(r, READER_FAILED);
    return code;
}

/* Takes the input's error over. */
static int fail_input(struct spool_reader *r, int code)
{
    spoolint_error_set(&r->error, code, "%s", spoolint_input_error(r->input));
    return fail(r, code);
}

static void set_window(struct spool_reader *r, size_t consumed)
{
    size_t size = (size_t)(r->window.end - r->window.begin);

    r->window_offset += consumed;
    r->at = r->window.begin;
    r->fast_end = size > FAST_MAX_SIZE ? r->window.end - FAST_MAX_SIZE : r->at;
}

/* Makes the window longer behind r->at. A few bytes are tried again with whatever arrives, so that a live pipe is
 * not held up; a long record only after it has doubled, so that decoding it again and again stays linear. */
static int fill(struct spool_reader *r)
{
    size_t have = (size_t)(r->window.end - r->at);
    size_t consumed = (size_t)(r->at - r->window.begin);
    size_t wanted = have < 4096 ? have + 1 : 2 * have;
    int rc = spoolint_input_fill(r->input, &r->window, consumed, wanted);

    set_window(r, consumed); /* the window has moved even when nothing came */
    return rc;
}

/* ---- opening ---- */

struct known_format {
    const char *magic;
    size_t size;
    const char *name;
};

#define MAGIC(bytes, name)             \
    {                                  \
        bytes, sizeof(bytes) - 1, name \
    }
static const struct known_format known_formats[] = {
    MAGIC("PERFILE2", "a perf.data file (perf script shows it)"),
    MAGIC("2ELIFREP", "a perf.data file of the other byte order"),
    MAGIC("\177ELF", "an ELF file"),
    MAGIC("JiTD", "a jitdump"),
    MAGIC("DTiJ", "a jitdump"),
    MAGIC("CHPERF2\0", "a file from before the first release of the format"),
    MAGIC("\x28\xb5\x2f\xfd", "zstd data (only gzip is unpacked here: try zstd -dc)"),
    MAGIC("\xfd"
          "7zXZ",
          "xz data (only gzip is unpacked here: try xz -dc)"),
    MAGIC("BZh", "bzip2 data (only gzip is unpacked here: try bzip2 -dc)"),
    MAGIC("PK\003\004", "a zip archive"),
    MAGIC("\037\213", "gzip data inside gzip data (gzip -dc unpacks one of them)"),
    MAGIC("{", "JSON"),
};

/* profile.proto has no magic: a message that begins with field 1 (sample_type), whose first field is 1 (type). */
static bool looks_like_pprof(const uint8_t *p, size_t size)
{
    return size >= 3 && p[0] == 0x0a && p[1] >= 2 && p[1] < 16 && p[2] == 0x08;
}

/* Its magic does not stand at its beginning. Who sends less than that, and waits, is no writer of spools either. */
static bool looks_like_tar(struct spool_reader *r)
{
    const size_t at = 257;

    while ((size_t)(r->window.end - r->window.begin) < at + 5)
        if (fill(r) <= 0)
            return false;
    return memcmp(r->window.begin + at, "ustar", 5) == 0;
}

static int refuse_format(struct spool_reader *r)
{
    const uint8_t *p = r->window.begin;
    size_t size = (size_t)(r->window.end - p);
    const char *what = NULL;

    for (size_t i = 0; i < sizeof known_formats / sizeof known_formats[0] && !what; i++)
        if (size >= known_formats[i].size &&
            memcmp(p, known_formats[i].magic, known_formats[i].size) == 0)
            what = known_formats[i].name;
    if (!what && looks_like_pprof(p, size))
        what = "a pprof profile (go tool pprof shows it)";
    if (!what && looks_like_tar(r))
        what = "a tar file (a symbol archive is for --symbols)";
    if (!what && spoolint_input_is_gzip(r->input))
        what = "gzip data of another kind";
    if (what)
        return spoolint_error_set(&r->error, SPOOL_ERR_FORMAT, "not a spool but %s", what);
    return spoolint_error_set(&r->error, SPOOL_ERR_FORMAT, "not a spool");
}

static int header_cut(struct spool_reader *r)
{
    size_t size = (size_t)(r->window.end - r->window.begin);

    if (size == 0 && !spoolint_input_gzip_cut(r->input))
        return spoolint_error_set(&r->error, SPOOL_ERR_TRUNCATED, "not a spool but empty");
    return spoolint_error_set(&r->error, SPOOL_ERR_TRUNCATED,
                              "the input ends inside the header, after %zu byte%s", size,
                              size == 1 ? "" : "s");
}

static int check_magic(struct spool_reader *r)
{
    const uint8_t *p = r->window.begin;
    size_t size = (size_t)(r->window.end - p);
    size_t stem = size < FORMAT_MAGIC_STEM_SIZE ? size : FORMAT_MAGIC_STEM_SIZE;
    uint8_t digit = size > FORMAT_MAGIC_STEM_SIZE ? p[FORMAT_MAGIC_STEM_SIZE] : '0';

    if (size == 0) /* p may be NULL */
        return header_cut(r);
    if (size == 1 && p[0] == 0x1f && !spoolint_input_is_gzip(r->input))
        return header_cut(r); /* half of gzip's magic: a growing file may go on */
    if (memcmp(p, FORMAT_MAGIC_STEM, stem) != 0 || digit < '0' || digit > '9')
        return refuse_format(r);
    if (size < FORMAT_MAGIC_SIZE)
        return header_cut(r);
    if (p[FORMAT_MAGIC_SIZE - 1] != 0)
        return refuse_format(r);
    r->header.version = digit - '0';
    if (r->header.version < FORMAT_VERSION_MIN || r->header.version > FORMAT_VERSION_MAX)
        return spoolint_error_set(
            &r->error, SPOOL_ERR_VERSION, "spool version %u; the versions read are %d to %d%s",
            r->header.version, FORMAT_VERSION_MIN, FORMAT_VERSION_MAX,
            r->header.version > FORMAT_VERSION_MAX ? " (a newer release may read it)" : "");
    r->table.version = r->header.version;
    r->at += FORMAT_MAGIC_SIZE;
    return 0;
}

static int read_header(struct spool_reader *r)
{
    int rc = 1;

    while (rc > 0 && (size_t)(r->window.end - r->window.begin) < FORMAT_MAGIC_SIZE)
        rc = fill(r);
    if (rc < 0)
        return fail_input(r, rc);
    rc = check_magic(r);
    if (rc < 0)
        return rc;
    for (;;) {
        struct cursor c = {.at = r->window.begin + FORMAT_MAGIC_SIZE, .end = r->window.end};

        rc = spoolint_record_decode_header(&c, &r->header, &r->error);
        if (rc == DECODE_OK) {
            r->at = c.at;
            return 0;
        }
        if (rc < 0)
            return rc;
        r->at = r->window.begin; /* the magic stays, so that messages can count from it */
        rc = fill(r);
        if (rc < 0)
            return fail_input(r, rc);
        if (rc == 0)
            return header_cut(r);
    }
}

static int open_input(struct spool_reader *r)
{
    int rc;

    r->error = (struct error_state){0}; /* a next before the open may have left one */
    rc = read_header(r);
    if (rc < 0) {
        if (r->window.begin)
            r->at = r->window.begin;
        return fail(r, rc);
    }
    r->state = READER_OPEN;
    return 0;
}

/* A second open is refused without harm to the first. */
static bool opened_before(struct spool_reader *r)
{
    if (r->state == READER_NEW)
        return false;
    if (r->error.code == 0)
        spoolint_error_set(&r->error, SPOOL_ERR_MISUSE, "the reader was opened before");
    return true;
}

int spool_reader_open_fd(struct spool_reader *r, int fd)
{
    if (opened_before(r))
        return SPOOL_ERR_MISUSE;
    spoolint_input_from_fd(r->input, fd);
    return open_input(r);
}

int spool_reader_open_tail_fd(struct spool_reader *r, int fd)
{
    int rc;

    if (opened_before(r))
        return SPOOL_ERR_MISUSE;
    r->tail = true;
    spoolint_input_follow_fd(r->input, fd);
    rc = open_input(r);
    spoolint_input_never_wait(r->input);
    return rc;
}

int spool_reader_open_memory(struct spool_reader *r, const void *data, size_t size)
{
    if (opened_before(r))
        return SPOOL_ERR_MISUSE;
    spoolint_input_from_memory(r->input, data, size);
    return open_input(r);
}

/* ---- records ---- */

/* Adds a definition to the tables, or takes a change in. */
static int take_in(struct spool_reader *r, struct spool_record *rec)
{
    struct table *t = &r->table;

    switch (rec->type) {
    case SPOOL_RECORD_MODULE:
    case SPOOL_RECORD_JIT_MODULE:
        return spoolint_table_add_module(t, rec);
    case SPOOL_RECORD_FRAME:
        return spoolint_table_add_frame(t, &rec->frame);
    case SPOOL_RECORD_STACK:
        return spoolint_table_add_stack(t, &rec->stack);
    case SPOOL_RECORD_THREAD:
        return spoolint_table_add_thread(t, &rec->thread);
    case SPOOL_RECORD_SAMPLE:
        if (t->sample_count++ == 0)
            t->first_time_ns = rec->sample.time_ns;
        t->time_ns = rec->sample.time_ns;
        return 0;
    case SPOOL_RECORD_PYTHON:
        t->python_count++;
        return 0;
    case SPOOL_RECORD_DEACTIVATE_PROCESS:
        return spoolint_table_retire_process(t, rec->deactivated_pid);
    case SPOOL_RECORD_DEACTIVATE_MODULE:
        spoolint_table_retire_module(t, rec->deactivated_module);
        return 0;
    case SPOOL_RECORD_ANNOTATION:
        break; /* only made by spoolint_table_add_module */
    }
    return 0;
}

/* The input has no more, inside a record (`cut`) or between two; of a tail that is the end only once nothing can
 * come. */
static int end(struct spool_reader *r, bool cut)
{
    r->cut_tail = cut || spoolint_input_gzip_cut(r->input);
    if (!r->tail || spoolint_input_ended(r->input))
        stop(r, READER_ENDED);
    return 0;
}

/* Drops what comes of a record that is too long, so that waiting for its end takes no memory. r->at and the empty
 * window stand for its tag. */
static int skip_long_record(struct spool_reader *r)
{
    struct long_record *l = &r->long_record;
    uint64_t skipped = 0;
    int rc = 1;

    if (l->left > 0)
        rc = spoolint_input_skip(r->input, &r->window, l->left, &skipped);
    l->left -= skipped;
    r->window.begin = r->window.end;
    r->at = r->fast_end = r->window.begin;
    if (rc < 0)
        return fail_input(r, rc);
    if (rc == 0)
        return end(r, true);
    spoolint_error_set(&r->error, SPOOL_ERR_LIMIT,
                       "%s record at byte %" PRIu64 " has more than %" PRIu64
                       " bytes, beyond the limit of this reader",
                       spoolint_record_name(l->type), r->window_offset, l->needed);
    return fail(r, SPOOL_ERR_LIMIT);
}

/* A record that is longer than this library keeps: cut off if the input ends in it, else beyond our limit. */
static int too_long(struct spool_reader *r, const struct spool_record *rec, uint64_t needed)
{
    uint64_t have = (uint64_t)(r->window.end - r->at);

    r->long_record = (struct long_record){
        .type = rec->type, .needed = needed, .left = have < needed ? needed - have : 0};
    r->window_offset = offset_of(r, r->at);
    r->window.begin = r->window.end; /* nothing more is looked at */
    return skip_long_record(r);
}

static int next_slow(struct spool_reader *r, struct spool_record *rec)
{
    if (r->state == READER_ENDED)
        return 0;
    if (r->state == READER_FAILED)
        return r->error.code;
    if (r->state == READER_NEW)
        return spoolint_error_set(&r->error, SPOOL_ERR_MISUSE, "the reader has not been opened");
    r->cut_tail = false;
    if (r->long_record.left > 0)
        return skip_long_record(r);
    for (;;) {
        struct cursor c = {.at = r->at, .end = r->window.end};
        uint64_t needed = 0;
        int rc = spoolint_record_decode(&c, offset_of(r, r->at), &r->table, &r->jit, rec, &needed,
                                        &r->error);

        if (rc == DECODE_OK) {
            rc = take_in(r, rec);
            if (rc == 0) {
                r->at = c.at;
                return 1;
            }
            spoolint_error_set(&r->error, rc, "out of memory for the %s record at byte %" PRIu64,
                               spoolint_record_name(rec->type), rec->offset_bytes);
        }
        if (rc < 0)
            return fail(r, rc);
        if (rc == DECODE_TOO_LONG)
            return too_long(r, rec, needed);
        rc = fill(r);
        if (rc < 0)
            return fail_input(r, rc);
        if (rc == 0)
            return end(r, r->at != r->window.end);
    }
}

/* The two records that a spool is made of, decoded without a look at the window's end. What these cannot accept is left
 * to next_slow, which decodes it again and judges it. NULL then, else the end of the record. */
static inline const uint8_t *fast_sample(struct table *t, const uint8_t *p,
                                         struct spool_sample *out)
{
    uint64_t raw, thread, stack, time_ns;
    int64_t delta_ns;

    p = varint_read_unbounded(p, &raw);
    if (p)
        p = varint_read_unbounded(p, &thread);
    if (p)
        p = varint_read_unbounded(p, &stack);
    /* cppcheck-suppress uninitvar ; both are set where p is not NULL */
    if (!p || thread >= t->thread_count || stack >= t->stack_count)
        return NULL;
    delta_ns = zigzag_decode(raw);
    time_ns = t->time_ns + (uint64_t)delta_ns;
    /* The sum left 0 ... 2^64-1 exactly when it moved against the sign of the delta. */
    if ((delta_ns < 0) != (time_ns < t->time_ns))
        return NULL;
    out->delta_ns = delta_ns;
    out->time_ns = time_ns;
    out->thread = (uint32_t)thread;
    out->stack = (uint32_t)stack;
    out->pid = t->threads[thread].pid;
    out->tid = t->threads[thread].tid;
    out->index = t->sample_count;
    if (t->sample_count++ == 0)
        t->first_time_ns = time_ns;
    t->time_ns = time_ns;
    return p;
}

static inline const uint8_t *fast_stack(struct table *t, const uint8_t *p, struct spool_stack *out)
{
    uint32_t count = t->stack_count, depth = 1;
    uint64_t id, prefix, frame;

    p = varint_read_unbounded(p, &id);
    if (p)
        p = varint_read_unbounded(p, &prefix);
    if (p)
        p = varint_read_unbounded(p, &frame);
    if (!p || id != count || count > FORMAT_ID_MAX || frame >= t->frame_count ||
        count >= t->stack_capacity || count >= t->depth_capacity)
        return NULL;
    if (prefix != FORMAT_ID_NONE) {
        if (prefix >= count)
            return NULL;
        depth = t->depths[prefix] + 1;
    }
    t->stacks[count].prefix = out->prefix = (uint32_t)prefix;
    t->stacks[count].frame = out->frame = (uint32_t)frame;
    t->depths[count] = out->depth = depth;
    out->id = count;
    t->stack_count = count + 1;
    return p;
}

int spool_reader_next(struct spool_reader *r, struct spool_record *out)
{
    const uint8_t *p = r->at, *end = NULL;

    if (p < r->fast_end) {
        if (*p == FORMAT_TAG_SAMPLE) {
            end = fast_sample(&r->table, p + 1, &out->sample);
            out->type = SPOOL_RECORD_SAMPLE;
        } else if (*p == FORMAT_TAG_STACK) {
            end = fast_stack(&r->table, p + 1, &out->stack);
            out->type = SPOOL_RECORD_STACK;
        }
    }
    if (!end)
        return next_slow(r, out);
    out->offset_bytes = offset_of(r, p);
    r->at = end;
    return 1;
}

/* ---- state ---- */

int spoolint_reader_fail_nomem(struct spool_reader *r, const char *what)
{
    spoolint_error_set(&r->error, SPOOL_ERR_NOMEM, "out of memory for %s", what);
    return fail(r, SPOOL_ERR_NOMEM);
}

void spoolint_reader_list_retired(struct spool_reader *r)
{
    r->table.list_retired = true;
}

const uint32_t *spoolint_reader_retired(const struct spool_reader *r, size_t *count)
{
    *count = r->table.retired_count;
    return r->table.retired;
}

const struct spool_module *spoolint_reader_any_module(const struct spool_reader *r, uint32_t id)
{
    return &r->table.modules[id];
}

int spoolint_reader_look(struct spool_reader *r)
{
    uint64_t left = r->long_record.left;
    int rc;

    if (r->state != READER_OPEN)
        return r->error.code;
    if (left > 0) {
        rc = skip_long_record(r);
        return rc < 0 ? rc : r->long_record.left < left;
    }
    rc = fill(r);
    return rc < 0 ? fail_input(r, rc) : rc;
}

bool spoolint_reader_has_unread(const struct spool_reader *r)
{
    return r->state == READER_OPEN && r->at != r->window.end;
}

const char *spool_reader_error(const struct spool_reader *r)
{
    return spoolint_error_get(&r->error);
}

int spool_reader_error_code(const struct spool_reader *r)
{
    return r->error.code;
}

const struct spool_header *spool_reader_header(const struct spool_reader *r)
{
    return r->table.version != 0 && (r->state != READER_FAILED || r->kept_bytes != 0) ? &r->header
                                                                                      : NULL;
}

bool spool_reader_cut_tail(const struct spool_reader *r)
{
    return r->cut_tail;
}

bool spool_reader_tail_ended(const struct spool_reader *r)
{
    return r->tail && r->state == READER_ENDED;
}

void spool_reader_tail_limit(struct spool_reader *r, uint64_t bytes)
{
    spoolint_input_limit(r->input, bytes);
}

uint64_t spool_reader_kept_bytes(const struct spool_reader *r)
{
    if (r->state == READER_OPEN)
        return offset_of(r, r->at);
    return r->kept_bytes;
}

uint64_t spool_reader_input_bytes(const struct spool_reader *r)
{
    return spoolint_input_raw_bytes(r->input);
}

bool spool_reader_is_gzip(const struct spool_reader *r)
{
    return spoolint_input_is_gzip(r->input);
}

void spool_reader_counts(const struct spool_reader *r, struct spool_counts *out)
{
    *out = (struct spool_counts){
        .modules = r->table.module_count,
        .annotations = r->table.annotation_count,
        .frames = r->table.frame_count,
        .stacks = r->table.stack_count,
        .threads = r->table.thread_count,
        .samples = r->table.sample_count,
        .python = r->table.python_count,
    };
}

const struct spool_module *spool_reader_module(const struct spool_reader *r, uint32_t id)
{
    if (id >= r->table.module_count || r->table.extras[id].is_note)
        return NULL;
    return &r->table.modules[id];
}

const uint8_t *spool_reader_build_id(const struct spool_reader *r, uint32_t module, size_t *size)
{
    *size = module < r->table.module_count ? r->table.extras[module].build_id_size : 0;
    return *size > 0 ? r->table.extras[module].build_id : NULL;
}

bool spool_reader_annotation(const struct spool_reader *r, uint32_t id,
                             struct spool_annotation *out)
{
    return id < r->table.module_count && r->table.extras[id].is_note &&
           spoolint_annotation_parse(&r->table.modules[id], out);
}

bool spool_reader_frame(const struct spool_reader *r, uint32_t id, struct spool_frame *out)
{
    return spoolint_table_get_frame(&r->table, id, out);
}

bool spool_reader_stack(const struct spool_reader *r, uint32_t id, struct spool_stack *out)
{
    if (id >= r->table.stack_count)
        return false;
    *out = (struct spool_stack){.id = id,
                                .prefix = r->table.stacks[id].prefix,
                                .frame = r->table.stacks[id].frame,
                                .depth = r->table.depths[id]};
    return true;
}

bool spool_reader_thread(const struct spool_reader *r, uint32_t id, struct spool_thread *out)
{
    if (id >= r->table.thread_count)
        return false;
    *out = r->table.threads[id];
    return true;
}

size_t spool_reader_walk(const struct spool_reader *r, uint32_t *node, uint32_t *frames,
                         size_t capacity)
{
    const struct spool_stack_node *nodes = r->table.stacks;
    uint32_t id = *node < r->table.stack_count ? *node : SPOOL_NO_ID;
    size_t n = 0;

    for (; id != SPOOL_NO_ID && n < capacity; id = nodes[id].prefix)
        frames[n++] = nodes[id].frame;
    *node = id;
    return n;
}

const struct spool_stack_node *spool_reader_stack_nodes(const struct spool_reader *r)
{
    return r->table.stacks;
}

int spool_reader_locate(struct spool_reader *r, uint32_t frame, int32_t pid, uint32_t *module_id,
                        uint64_t *rel)
{
    return spoolint_table_locate(&r->table, frame, pid, module_id, rel);
}

int spool_reader_kernel_addresses(struct spool_reader *r, const uint64_t **addresses, size_t *count)
{
    return spoolint_table_kernel_addresses(&r->table, addresses, count);
}

/* ---- time ---- */

uint64_t spool_reader_timeline_us(const struct spool_reader *r, uint64_t time_ns)
{
    uint64_t start_us = r->header.start_us, elapsed_us;

    if (r->table.sample_count == 0 || time_ns <= r->table.first_time_ns)
        return start_us;
    elapsed_us = (time_ns - r->table.first_time_ns) / 1000;
    return elapsed_us > UINT64_MAX - start_us ? UINT64_MAX : start_us + elapsed_us;
}

int spool_reader_wall_time(const struct spool_reader *r, uint64_t time_ns,
                           struct spool_wall_time *out)
{
    const struct spool_origin *o = &r->header.origin;
    const int128 second_ns = 1000000000;
    int128 wall_ns, seconds;

    if (r->header.has_origin) {
        wall_ns = (int128)o->seconds * second_ns + o->nanoseconds;
        if (o->sign < 0)
            wall_ns = -wall_ns;
        wall_ns += (int128)time_ns - o->monotonic_ns;
    } else if (r->table.has_clock) {
        wall_ns = (int128)r->table.clock_wall_ns + time_ns - r->table.clock_monotonic_ns;
    } else {
        return 0;
    }
    seconds = wall_ns / second_ns;
    if (wall_ns % second_ns < 0)
        seconds--;
    if (seconds < INT64_MIN || seconds > INT64_MAX)
        return SPOOL_ERR_LIMIT;
    out->seconds = (int64_t)seconds;
    out->nanoseconds = (uint32_t)(wall_ns - seconds * second_ns);
    return 1;
}
