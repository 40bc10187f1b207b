/* SPDX-License-Identifier: MIT */
/*
 * Decoding of the kernel's records. Numbers are in the machine's own byte order, every field starts at a multiple
 * of its size, and every record but a sample ends in a sample id of fixed size, which is read from the end:
 * what stands before it may grow.
 *
 *     sample      header  identifier  ip  pid tid  time  cpu 0  period  [callchain]  [registers]  [stack]
 *     any other   header  body ...  | pid tid  time  cpu 0  identifier
 */
#include "perfrec.h"

#include <linux/perf_event.h>
#include <string.h>
#include <sys/mman.h>

#define NEEDED                                                                      \
    (PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | \
     PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD)
#define SUPPORTED (NEEDED | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER)

#define MISC_MMAP_BUILD_ID (1u << 14) /* headers before 5.12 have no name for it */

enum {
    HEADER_SIZE = sizeof(struct perf_event_header),
    SAMPLE_TIME_AT = HEADER_SIZE + 24,
    SAMPLE_ID_SIZE = 32,
    SAMPLE_ID_TIME_AT = 8,
    MMAP2_ID_SIZE = 24 /* device, inode and generation, or a build id with its size */
};

/* What is left of a record. A read beyond it yields 0 and marks it, so that a record is checked once. */
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
    const uint8_t *p = take(c, sizeof(uint64_t));
    uint64_t value = 0;

    if (p != NULL)
        memcpy(&value, p, sizeof value);
    return value;
}

static uint32_t take_u32(struct cursor *c)
{
    const uint8_t *p = take(c, sizeof(uint32_t));
    uint32_t value = 0;

    if (p != NULL)
        memcpy(&value, p, sizeof value);
    return value;
}

static uint16_t take_u16(struct cursor *c)
{
    const uint8_t *p = take(c, sizeof(uint16_t));
    uint16_t value = 0;

    if (p != NULL)
        memcpy(&value, p, sizeof value);
    return value;
}

/* A NUL-terminated text, padded to the end of the body. */
static const char *take_text(struct cursor *c)
{
    const uint8_t *p = take(c, c->left);

    if (p == NULL || memchr(p, 0, (size_t)(c->at - p)) == NULL) {
        c->failed = true;
        return "";
    }
    return (const char *)p;
}

static bool is_supported(const struct perfrec_layout *layout)
{
    return (layout->sample_type & NEEDED) == NEEDED && (layout->sample_type & ~SUPPORTED) == 0;
}

/* ---- registers ---- */

uint64_t recordint_perfrec_regs_mask(enum arch arch)
{
    /* The kernel's numbers on x86-64: 0-7 ax bx cx dx si di bp sp, 8 ip, 9 flags, 10-15 segments, 16-23 r8-r15. */
    if (arch == ARCH_X86_64)
        return 0xff03ff;
    return ((uint64_t)1 << 33) - 1; /* x0-x30, sp, pc */
}

/* REG_COUNT: one that we have no use for. */
static unsigned register_of_kernel(enum arch arch, unsigned bit)
{
    static const uint8_t x86_64[] = {0, 3, 2, 1, 4, 5, 6, 7, REG_X86_RIP};

    if (arch == ARCH_AARCH64)
        return bit <= REG_A64_PC ? bit : REG_COUNT;
    if (bit < sizeof x86_64)
        return x86_64[bit];
    return bit >= 16 && bit < 24 ? bit - 8 : REG_COUNT;
}

static void take_registers(struct cursor *c, const struct perfrec_layout *layout,
                           struct perfrec_sample *out)
{
    out->regs_abi = take_u64(c);
    if (out->regs_abi == PERF_SAMPLE_REGS_ABI_NONE)
        return;
    /* A 32-bit task has as many values, each 64 bits wide. */
    for (uint64_t left = layout->sample_regs_user; left != 0; left &= left - 1) {
        unsigned reg = register_of_kernel(layout->arch, (unsigned)__builtin_ctzll(left));
        uint64_t value = take_u64(c);

        if (out->regs_abi == PERF_SAMPLE_REGS_ABI_64 && reg < REG_COUNT)
            reg_set(&out->regs, reg, value);
    }
}

/* ---- samples ---- */

static void take_callchain(struct cursor *c, struct perfrec_sample *out)
{
    uint64_t count = take_u64(c);

    if (count > c->left / sizeof(uint64_t)) {
        c->failed = true;
        return;
    }
    out->callchain = (const uint64_t *)(const void *)take(c, count * sizeof(uint64_t));
    out->callchain_count = (size_t)count;
}

static void take_stack(struct cursor *c, struct perfrec_sample *out)
{
    uint64_t size = take_u64(c);
    uint64_t copied;

    if (size == 0) /* then no number of copied bytes follows */
        return;
    out->stack = take(c, size);
    copied = take_u64(c);
    if (copied > size)
        c->failed = true;
    out->stack_size = (size_t)copied;
    out->stack_full = copied == size;
}

static void take_sample(struct cursor *c, const struct perfrec_layout *layout, struct perfrec *out)
{
    struct perfrec_sample *sample = &out->sample;

    sample->id = take_u64(c);
    sample->ip = take_u64(c);
    out->pid = (int32_t)take_u32(c);
    out->tid = (int32_t)take_u32(c);
    out->time_ns = take_u64(c);
    out->has_time = true;
    out->cpu = take_u32(c);
    take_u32(c);
    sample->period = take_u64(c);
    if ((layout->sample_type & PERF_SAMPLE_CALLCHAIN) != 0)
        take_callchain(c, sample);
    if ((layout->sample_type & PERF_SAMPLE_REGS_USER) != 0)
        take_registers(c, layout, sample);
    if ((layout->sample_type & PERF_SAMPLE_STACK_USER) != 0)
        take_stack(c, sample);
}

/* ---- the other records ---- */

static void take_thread(struct cursor *c, struct perfrec *out)
{
    out->pid = (int32_t)take_u32(c);
    out->tid = (int32_t)take_u32(c);
}

static void take_mmap2_id(struct cursor *c, unsigned misc, struct perfrec_mmap *out)
{
    struct cursor id = {take(c, MMAP2_ID_SIZE), MMAP2_ID_SIZE, false};

    if (c->failed)
        return;
    if ((misc & MISC_MMAP_BUILD_ID) == 0) {
        out->dev_major = take_u32(&id);
        out->dev_minor = take_u32(&id);
        out->inode = take_u64(&id);
        out->inode_gen = take_u64(&id);
        return;
    }
    out->build_id_size = take_u32(&id) & 0xff; /* then three bytes of nothing */
    if (out->build_id_size > sizeof out->build_id)
        c->failed = true;
    else
        memcpy(out->build_id, id.at, out->build_id_size);
}

static void take_mmap(struct cursor *c, const struct perf_event_header *header, struct perfrec *out)
{
    struct perfrec_mmap *map = &out->mmap;

    take_thread(c, out);
    map->start = take_u64(c);
    map->size = take_u64(c);
    map->file_offset = take_u64(c);
    map->kernel = (header->misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL;
    map->executable = (header->misc & PERF_RECORD_MISC_MMAP_DATA) == 0;
    if (header->type == PERF_RECORD_MMAP2) {
        take_mmap2_id(c, header->misc, map);
        map->executable = (take_u32(c) & PROT_EXEC) != 0;
        take_u32(c); /* flags of mmap */
    }
    map->path = take_text(c);
}

static void take_task(struct cursor *c, struct perfrec *out)
{
    out->pid = (int32_t)take_u32(c);
    out->task.parent_pid = (int32_t)take_u32(c);
    out->tid = (int32_t)take_u32(c);
    out->task.parent_tid = (int32_t)take_u32(c);
    take_u64(c); /* the time, by the event's clock as in the sample id */
}

static void take_ksymbol(struct cursor *c, struct perfrec *out)
{
    out->ksymbol.address = take_u64(c);
    out->ksymbol.size = take_u32(c);
    take_u16(c); /* what kind of code it is */
    out->ksymbol.registered = (take_u16(c) & PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER) == 0;
    out->ksymbol.name = take_text(c);
}

static enum perfrec_kind take_body(struct cursor *c, const struct perf_event_header *header,
                                   struct perfrec *out)
{
    switch (header->type) {
    case PERF_RECORD_MMAP:
    case PERF_RECORD_MMAP2:
        take_mmap(c, header, out);
        return PERFREC_MMAP;
    case PERF_RECORD_COMM:
        take_thread(c, out);
        out->comm.exec = (header->misc & PERF_RECORD_MISC_COMM_EXEC) != 0;
        out->comm.name = take_text(c);
        return PERFREC_COMM;
    case PERF_RECORD_FORK:
        take_task(c, out);
        return PERFREC_FORK;
    case PERF_RECORD_EXIT:
        take_task(c, out);
        return PERFREC_EXIT;
    case PERF_RECORD_LOST:
        take_u64(c); /* the event's id */
        out->lost_count = take_u64(c);
        return PERFREC_LOST;
    case PERF_RECORD_LOST_SAMPLES:
        out->lost_count = take_u64(c);
        return PERFREC_LOST_SAMPLES;
    case PERF_RECORD_THROTTLE:
    case PERF_RECORD_UNTHROTTLE:
        take(c, 3 * sizeof(uint64_t)); /* time, event, stream */
        out->throttled = header->type == PERF_RECORD_THROTTLE;
        return PERFREC_THROTTLE;
    case PERF_RECORD_KSYMBOL:
        take_ksymbol(c, out);
        return PERFREC_KSYMBOL;
    default:
        return PERFREC_OTHER;
    }
}

static void take_sample_id(struct cursor *c, struct perfrec *out)
{
    out->pid = (int32_t)take_u32(c);
    out->tid = (int32_t)take_u32(c);
    out->time_ns = take_u64(c);
    out->has_time = !c->failed;
    out->cpu = take_u32(c);
}

int recordint_perfrec_parse(const struct perfrec_layout *layout, const void *data, size_t size,
                            struct perfrec *out)
{
    struct perf_event_header header;
    struct cursor body, sample_id;

    memset(out, 0, sizeof *out);
    if (!is_supported(layout) || size < HEADER_SIZE)
        return -1;
    memcpy(&header, data, sizeof header);
    body = (struct cursor){(const uint8_t *)data + HEADER_SIZE, size - HEADER_SIZE, false};
    if (header.type == PERF_RECORD_SAMPLE) {
        take_sample(&body, layout, out);
        out->kind = PERFREC_SAMPLE;
        out->sample.misc = header.misc;
        return body.failed ? -1 : 0;
    }
    if (body.left < SAMPLE_ID_SIZE)
        return -1;
    body.left -= SAMPLE_ID_SIZE;
    sample_id = (struct cursor){body.at + body.left, SAMPLE_ID_SIZE, false};
    take_sample_id(&sample_id, out);
    out->kind = take_body(&body, &header, out); /* a body's own thread wins over the sample id's */
    return body.failed ? -1 : 0;
}

bool recordint_perfrec_time(const struct perfrec_layout *layout, const void *data, size_t size,
                            uint64_t *time_ns)
{
    struct perf_event_header header;
    size_t at = SAMPLE_TIME_AT;

    if (!is_supported(layout) || size < HEADER_SIZE)
        return false;
    memcpy(&header, data, sizeof header);
    if (header.type != PERF_RECORD_SAMPLE) {
        if (size < HEADER_SIZE + SAMPLE_ID_SIZE)
            return false;
        at = size - SAMPLE_ID_SIZE + SAMPLE_ID_TIME_AT;
    }
    if (size < at + sizeof *time_ns)
        return false;
    memcpy(time_ns, (const uint8_t *)data + at, sizeof *time_ns);
    return true;
}
