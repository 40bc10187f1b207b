/* SPDX-License-Identifier: MIT */
/*
 * The attributes. All events of a session have the same sample_type, clock and registers, so that their
 * records can share rings and be read alike.
 */
#include "event.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "event_refusal.h"
#include "kernel_limits.h"
#include "spool/record.h"

#define SAMPLE_TYPE                                                                 \
    (PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | \
     PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD)
#define READ_FORMAT (PERF_FORMAT_ID | PERF_FORMAT_LOST)
#define RING_SIZE_MIN ((size_t)64 << 10) /* what halving stops at */

/* A signal may end the call before it did anything. Returns a descriptor or -errno. */
static int perf_event_open(struct perf_event_attr *attr, pid_t tid, int cpu)
{
    long fd;

    do {
        fd = syscall(SYS_perf_event_open, attr, tid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
    } while (fd < 0 && errno == EINTR);
    return fd < 0 ? -errno : (int)fd;
}

/* What is the same for the events that fill a ring and the one that owns it. */
static void init_attr(struct perf_event_attr *attr, size_t ring_size_bytes)
{
    memset(attr, 0, sizeof *attr);
    attr->size = sizeof *attr;
    attr->sample_type = SAMPLE_TYPE;
    attr->sample_id_all = 1;
    attr->read_format = READ_FORMAT;
    attr->use_clockid = 1;
    attr->clockid = CLOCK_MONOTONIC;
    attr->watermark = 1;
    attr->wakeup_watermark = (uint32_t)(ring_size_bytes / 4);
    attr->exclude_kernel = 1;
    attr->exclude_hv = 1;
}

static uint64_t sample_type(bool kernel)
{
    return SAMPLE_TYPE | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER |
           (kernel ? PERF_SAMPLE_CALLCHAIN : 0);
}

static void sampling_attr(const struct event_config *config, const struct event_where *where,
                          const struct event_attempt *attempt, struct perf_event_attr *attr)
{
    init_attr(attr, where->ring_size_bytes);
    attr->type = attempt->cpu_clock ? PERF_TYPE_SOFTWARE : PERF_TYPE_HARDWARE;
    attr->config = attempt->cpu_clock ? PERF_COUNT_SW_CPU_CLOCK : PERF_COUNT_HW_CPU_CYCLES;
    attr->freq = 1;
    attr->sample_freq = config->frequency_hz;
    attr->sample_type = sample_type(attempt->kernel);
    attr->sample_regs_user = recordint_perfrec_regs_mask(ARCH_NATIVE);
    attr->sample_stack_user = config->stack_size_bytes;
    attr->exclude_callchain_user = attempt->kernel;
    attr->exclude_kernel = !attempt->kernel;
    attr->exclude_guest = attempt->exclude_guest;
    attr->mmap = 1;
    attr->mmap2 = 1;
    attr->comm = 1;
    attr->comm_exec = 1;
    attr->task = 1;
    /* Code that the kernel generates matters where its frames do. */
    attr->ksymbol = attempt->kernel;
    attr->bpf_event = attempt->kernel;
    attr->inherit = where->inherit != EVENT_INHERIT_NONE;
    attr->inherit_thread = where->inherit == EVENT_INHERIT_THREADS;
    attr->disabled = where->disabled;
    attr->enable_on_exec = where->enable_on_exec;
}

static void describe(const struct event_where *where, char *text, size_t size)
{
    if (where->tid == -1)
        snprintf(text, size, "all processes on CPU %d", where->cpu);
    else if (where->tid == 0)
        snprintf(text, size, "this thread");
    else
        snprintf(text, size, "thread %ld", (long)where->tid);
}

int recordint_event_open(struct event_config *config, const struct event_where *where,
                         struct record_errbuf *error)
{
    struct event_attempt attempt = {config->cpu_clock, config->kernel, config->exclude_guest};
    struct event_facts facts;
    struct perf_event_attr attr;
    char what[64];
    int fd;

    for (;;) {
        sampling_attr(config, where, &attempt, &attr);
        fd = perf_event_open(&attr, where->tid, where->cpu);
        if (fd >= 0)
            break;
        recordint_event_facts(where->tid, where->cpu, &facts);
        if (!recordint_event_next_attempt(config, &attempt, -fd, &facts)) {
            describe(where, what, sizeof what);
            return recordint_event_refuse(config, what, where->tid, where->cpu, attempt.kernel, -fd,
                                          &facts, error);
        }
    }
    /* Only now: a refusal may be about this thread alone, and the next one is tried as asked. */
    if (!config->settled) {
        config->kernel_refused = config->kernel && !attempt.kernel;
        config->kernel = attempt.kernel;
        config->cpu_clock = attempt.cpu_clock;
        config->exclude_guest = attempt.exclude_guest;
        config->settled = true;
    }
    return fd;
}

int recordint_event_open_owner(int cpu, size_t ring_size_bytes, struct record_errbuf *error)
{
    const struct event_config config = {.cpu_clock = true, .settled = true};
    struct event_facts facts;
    struct perf_event_attr attr;
    char what[64];
    int fd;

    init_attr(&attr, ring_size_bytes);
    attr.type = PERF_TYPE_SOFTWARE;
    attr.config = PERF_COUNT_SW_DUMMY;
    fd = perf_event_open(&attr, 0, cpu);
    if (fd >= 0)
        return fd;
    recordint_event_facts(0, cpu, &facts);
    snprintf(what, sizeof what, "the ring buffer of CPU %d", cpu);
    return recordint_event_refuse(&config, what, 0, cpu, false, -fd, &facts, error);
}

int recordint_event_map(int fd, size_t size_bytes, struct ring *r, struct record_errbuf *error)
{
    int64_t mlock_kb;
    int system;

    for (;;) {
        system = recordint_ring_map(r, fd, size_bytes);
        if (system == 0)
            return 0;
        if ((system != EPERM && system != ENOMEM) || size_bytes / 2 < RING_SIZE_MIN)
            break;
        size_bytes /= 2;
    }
    if (!recordint_limits_sysctl("perf_event_mlock_kb", &mlock_kb))
        mlock_kb = -1;
    return recordint_event_refuse_ring(size_bytes, system, mlock_kb,
                                       recordint_limits_memlock_bytes(), error);
}

int recordint_event_redirect(int fd, int owner_fd, struct record_errbuf *error)
{
    if (ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, owner_fd) == 0)
        return 0;
    return recordint_error_set(error, RECORD_ERR_UNSUPPORTED, errno,
                               "an event cannot write to the ring buffer of its CPU: %s",
                               strerror(errno));
}

int recordint_event_enable(int fd)
{
    return ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) == 0 ? 0 : errno;
}

int recordint_event_disable(int fd)
{
    return ioctl(fd, PERF_EVENT_IOC_DISABLE, 0) == 0 ? 0 : errno;
}

bool recordint_event_lost(int fd, uint64_t *lost)
{
    uint64_t values[3]; /* count, id, lost: READ_FORMAT */

    if (read(fd, values, sizeof values) != (ssize_t)sizeof values)
        return false;
    *lost = values[2];
    return true;
}

void recordint_event_layout(const struct event_config *config, struct perfrec_layout *out)
{
    memset(out, 0, sizeof *out);
    out->sample_type = sample_type(config->kernel);
    out->sample_regs_user = recordint_perfrec_regs_mask(ARCH_NATIVE);
    out->arch = ARCH_NATIVE;
}

const char *recordint_event_name(const struct event_config *config)
{
    return config->cpu_clock ? "cpu-clock" : "cycles";
}
