/* SPDX-License-Identifier: MIT */
/*
 * The file is a header, a table of attributes (what each event's records consist of) and the records as the rings
 * had them, one ring's batch after the other's: they have to be sorted.
 *
 *     magic size attr_size {attrs: offset size} {data: offset size} ...
 *     attrs: perf_event_attr {ids: offset size}, attr_size bytes each
 */
#include "perf_data.h"

#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Fields of a sample that stand before what we need and whose size we do not know. */
#define REFUSED (PERF_SAMPLE_READ | PERF_SAMPLE_RAW | PERF_SAMPLE_BRANCH_STACK)
#define NEEDED (PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER)

struct layout {
    uint64_t sample_type;
    uint64_t regs_user;
    size_t time_from_end; /* of records that are no samples */
};

static void die(const char *path, const char *what)
{
    fprintf(stderr, "unwind_replay: %s: %s\n", path, what);
    exit(2);
}

static uint64_t u64_at(const uint8_t *p)
{
    uint64_t value;

    memcpy(&value, p, sizeof value);
    return value;
}

static int32_t i32_at(const uint8_t *p)
{
    int32_t value;

    memcpy(&value, p, sizeof value);
    return value;
}

/* ---- header ---- */

/* Into memory of huge pages, where there are such: with small ones, most of the time of a walk goes into their
 * tables, which says nothing of the walk. */
static void read_file(struct perf_data *data, const char *path)
{
    struct stat status;
    void *bytes;
    size_t got = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0 || fstat(fd, &status) != 0)
        die(path, "cannot be opened");
    data->size = (size_t)status.st_size;
    bytes = mmap(NULL, data->size + 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (bytes == MAP_FAILED)
        die(path, "does not fit into memory");
    data->bytes = bytes;
    madvise(bytes, data->size + 1, MADV_HUGEPAGE);
    while (got < data->size) {
        ssize_t n = read(fd, data->bytes + got, data->size - got);

        if (n <= 0)
            die(path, "cannot be read");
        got += (size_t)n;
    }
    close(fd);
}

/* Where sample ids end in: TIME, and what follows it. */
static size_t time_from_end(uint64_t sample_type)
{
    static const uint64_t behind[] = {PERF_SAMPLE_TIME, PERF_SAMPLE_ID, PERF_SAMPLE_STREAM_ID,
                                      PERF_SAMPLE_CPU, PERF_SAMPLE_IDENTIFIER};
    size_t size = 0;

    for (size_t i = 0; i < sizeof behind / sizeof behind[0]; i++)
        size += (sample_type & behind[i]) != 0 ? 8 : 0;
    return size;
}

static bool inside(const struct perf_data *data, uint64_t offset, uint64_t size)
{
    return offset <= data->size && size <= data->size - offset;
}

static void read_layout(const struct perf_data *data, const char *path, struct layout *out,
                        uint64_t *records, uint64_t *records_size)
{
    uint64_t attr_size, attrs, attrs_size;

    if (data->size < 104 || memcmp(data->bytes, "PERFILE2", 8) != 0)
        die(path, "is no perf.data");
    attr_size = u64_at(data->bytes + 16);
    attrs = u64_at(data->bytes + 24);
    attrs_size = u64_at(data->bytes + 32);
    *records = u64_at(data->bytes + 40);
    *records_size = u64_at(data->bytes + 48);
    if (attr_size < PERF_ATTR_SIZE_VER3 + 16 || attrs_size < attr_size ||
        !inside(data, attrs, attrs_size) || *records > data->size || *records % 8 != 0)
        die(path, "has a header that makes no sense");
    if (*records_size == 0 || *records_size > data->size - *records)
        *records_size = data->size - *records; /* perf was killed */
    for (uint64_t at = 0; attr_size <= attrs_size - at; at += attr_size) {
        struct perf_event_attr attr;

        memset(&attr, 0, sizeof attr);
        memcpy(&attr, data->bytes + attrs + at,
               attr_size - 16 < sizeof attr ? attr_size - 16 : sizeof attr);
        if (at > 0 && (attr.sample_type != out->sample_type ||
                       attr.sample_regs_user != out->regs_user || !attr.sample_id_all))
            die(path, "has events of different layouts");
        out->sample_type = attr.sample_type;
        out->regs_user = attr.sample_regs_user;
        if ((out->sample_type & NEEDED) != NEEDED || (out->sample_type & REFUSED) != 0)
            die(path, "was not recorded by perf record --call-graph dwarf");
    }
    out->time_from_end = time_from_end(out->sample_type);
}

/* ---- records ---- */

/* DWARF's number of the kernel's register; REG_COUNT: none of interest. */
static unsigned dwarf_number(unsigned perf_number)
{
#if defined(__x86_64__)
    static const uint8_t low[] = {0, 3, 2, 1, 4, 5, 6, 7, 16};

    if (perf_number < sizeof low)
        return low[perf_number];
    return perf_number >= 16 && perf_number < 24 ? perf_number - 8 : REG_COUNT;
#else
    return perf_number < REG_COUNT ? perf_number : REG_COUNT;
#endif
}

struct cursor {
    const uint8_t *at;
    size_t left;
    bool failed;
};

static const uint8_t *take(struct cursor *c, uint64_t size)
{
    const uint8_t *p = c->at;

    if (c->failed || size > c->left) {
        c->failed = true;
        return NULL;
    }
    c->at += size;
    c->left -= size;
    return p;
}

static uint64_t take_u64(struct cursor *c)
{
    const uint8_t *p = take(c, 8);

    return p != NULL ? u64_at(p) : 0;
}

static bool parse_sample(const struct layout *layout, struct cursor *c, struct perf_event *out)
{
    static const uint64_t words[] = {PERF_SAMPLE_ADDR, PERF_SAMPLE_ID, PERF_SAMPLE_STREAM_ID,
                                     PERF_SAMPLE_CPU, PERF_SAMPLE_PERIOD};
    const uint8_t *ids;
    uint64_t size;

    out->kind = PERF_DATA_SAMPLE;
    if ((layout->sample_type & PERF_SAMPLE_IDENTIFIER) != 0)
        take(c, 8);
    if ((layout->sample_type & PERF_SAMPLE_IP) != 0)
        take(c, 8);
    ids = take(c, 8);
    out->pid = ids != NULL ? i32_at(ids) : -1;
    out->time_ns = take_u64(c);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if ((layout->sample_type & words[i]) != 0)
            take(c, 8);
    if ((layout->sample_type & PERF_SAMPLE_CALLCHAIN) != 0) {
        size = take_u64(c);
        take(c, size > c->left / 8 ? c->left + 1 : size * 8);
    }
    if (take_u64(c) != PERF_SAMPLE_REGS_ABI_64)
        return false;
    for (unsigned i = 0; i < 64; i++) {
        unsigned reg = dwarf_number(i);

        if ((layout->regs_user >> i & 1) == 0)
            continue;
        size = take_u64(c);
        if (reg < REG_COUNT)
            reg_set(&out->sample.regs, reg, size);
    }
    size = take_u64(c);
    out->sample.stack = take(c, size);
    out->sample.stack_size = size > 0 ? (size_t)take_u64(c) : 0;
    return !c->failed && out->sample.stack_size <= size;
}

static bool parse_mmap(const struct perf_event_header *header, const uint8_t *record,
                       size_t body_end, struct perf_event *out)
{
    bool second = header->type == PERF_RECORD_MMAP2;
    size_t name = second ? 72 : 40;

    if (body_end <= name)
        return false;
    out->kind = PERF_DATA_MMAP;
    out->pid = i32_at(record + 8);
    out->mmap.start = u64_at(record + 16);
    out->mmap.end = out->mmap.start + u64_at(record + 24);
    out->mmap.file_offset = u64_at(record + 32);
    out->mmap.path = (const char *)record + name;
    out->mmap.executable = second ? (i32_at(record + 64) & PROT_EXEC) != 0
                                  : (header->misc & PERF_RECORD_MISC_MMAP_DATA) == 0;
    return out->mmap.end > out->mmap.start && memchr(record + name, '\0', body_end - name) != NULL;
}

/* Returns false for what is of no interest. */
static bool parse(const struct layout *layout, const struct perf_event_header *header,
                  const uint8_t *record, struct perf_event *out)
{
    struct cursor c = {record + sizeof *header, header->size - sizeof *header, false};

    memset(out, 0, sizeof *out);
    if (header->type == PERF_RECORD_SAMPLE)
        return parse_sample(layout, &c, out);
    if (header->type >= 64 || c.left < layout->time_from_end + 24)
        return false; /* perf's own, or too short for a pid and a sample id */
    out->time_ns = u64_at(record + header->size - layout->time_from_end);
    out->pid = i32_at(record + 8);
    switch (header->type) {
    case PERF_RECORD_MMAP:
    case PERF_RECORD_MMAP2:
        return parse_mmap(header, record, header->size - layout->time_from_end, out);
    case PERF_RECORD_COMM:
        out->kind = PERF_DATA_EXEC;
        return (header->misc & PERF_RECORD_MISC_COMM_EXEC) != 0;
    case PERF_RECORD_FORK:
        out->kind = PERF_DATA_FORK;
        out->parent_pid = i32_at(record + 12);
        return out->pid != out->parent_pid;
    default:
        return false;
    }
}

static int by_time(const void *a, const void *b)
{
    const struct perf_event *x = a, *y = b;

    if (x->time_ns != y->time_ns)
        return x->time_ns < y->time_ns ? -1 : 1;
    return 0;
}

static struct perf_event *append(struct perf_data *data, size_t *room)
{
    if (data->count == *room) {
        *room = *room == 0 ? 1024 : *room * 2;
        data->events = realloc(data->events, *room * sizeof *data->events);
        if (data->events == NULL)
            die("perf.data", "no memory");
    }
    return &data->events[data->count];
}

void perf_data_open(struct perf_data *data, const char *path, size_t max_samples)
{
    struct layout layout;
    uint64_t at, size;
    size_t room = 0;

    memset(data, 0, sizeof *data);
    read_file(data, path);
    read_layout(data, path, &layout, &at, &size);
    for (uint64_t end = at + size; end - at >= sizeof(struct perf_event_header);) {
        struct perf_event_header header;
        struct perf_event *event = append(data, &room);

        memcpy(&header, data->bytes + at, sizeof header);
        if (header.size < sizeof header || header.size > end - at)
            break; /* cut off */
        if (parse(&layout, &header, data->bytes + at, event) &&
            (event->kind != PERF_DATA_SAMPLE || data->sample_count < max_samples)) {
            data->sample_count += event->kind == PERF_DATA_SAMPLE;
            data->count++;
        }
        at += header.size;
    }
    /* glibc's qsort is a merge sort, which keeps equal times in order, while memory is there for it. */
    qsort(data->events, data->count, sizeof *data->events, by_time);
}

void perf_data_close(struct perf_data *data)
{
    free(data->events);
    munmap(data->bytes, data->size + 1);
    memset(data, 0, sizeof *data);
}
