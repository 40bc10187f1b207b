/* SPDX-License-Identifier: MIT */
/*
 * bare_record -F HZ -p PID: what spoolrecord is measured against: asks the kernel for the same samples of a process and what it
 * starts, with 32 KiB of stack each, takes them out of the rings and forgets them. Looks at no more than each record's head.
 * Prints "samples N lost N" when the process has ended. See tests/bench/record.bash.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CPUS_MAX 256
#define STACK_BYTES 32768
#define RING_BYTES ((uint64_t)8 << 20)
#define POLL_MS 100

#if defined(__x86_64__)
#define REGISTERS 0xff0fff /* all but the segments */
#else
#define REGISTERS 0x1ffffffff
#endif

struct ring {
    struct perf_event_mmap_page *page;
    const uint8_t *data;
};

static _Noreturn void die(const char *what)
{
    fprintf(stderr, "bare_record: %s: %s\n", what, strerror(errno));
    exit(1);
}

static int open_event(pid_t pid, int cpu, uint64_t hz)
{
    struct perf_event_attr attr = {
        .type = PERF_TYPE_SOFTWARE,
        .size = sizeof attr,
        .config = PERF_COUNT_SW_CPU_CLOCK,
        .sample_freq = hz,
        .sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_REGS_USER |
                       PERF_SAMPLE_STACK_USER,
        .freq = 1,
        .inherit = 1,
        .exclude_kernel = 1,
        .mmap = 1,
        .comm = 1,
        .task = 1,
        .watermark = 1,
        .wakeup_watermark = (uint32_t)(RING_BYTES / 2),
        .sample_regs_user = REGISTERS,
        .sample_stack_user = STACK_BYTES,
    };
    long fd = syscall(SYS_perf_event_open, &attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);

    if (fd < 0)
        die("perf_event_open");
    return (int)fd;
}

static struct ring map_ring(int fd)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    void *memory = mmap(NULL, page + RING_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    if (memory == MAP_FAILED)
        die("mmap");
    return (struct ring){.page = memory, .data = (const uint8_t *)memory + page};
}

static void empty(struct ring *r, uint64_t *samples, uint64_t *lost)
{
    uint64_t head = __atomic_load_n(&r->page->data_head, __ATOMIC_ACQUIRE);
    uint64_t at = r->page->data_tail;

    while (at < head) {
        struct perf_event_header header; /* records are multiples of 8 bytes: a head never wraps */

        memcpy(&header, r->data + at % RING_BYTES, sizeof header);
        *samples += header.type == PERF_RECORD_SAMPLE;
        *lost += header.type == PERF_RECORD_LOST;
        at += header.size;
    }
    __atomic_store_n(&r->page->data_tail, head, __ATOMIC_RELEASE);
}

int main(int argc, char **argv)
{
    static struct pollfd polled[CPUS_MAX];
    static struct ring rings[CPUS_MAX];
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    uint64_t samples = 0, lost = 0;

    if (argc != 5 || strcmp(argv[1], "-F") != 0 || strcmp(argv[3], "-p") != 0) {
        fputs("usage: bare_record -F HZ -p PID\n", stderr);
        return 2;
    }
    if (cpus > CPUS_MAX)
        cpus = CPUS_MAX;
    for (int i = 0; i < cpus; i++) {
        polled[i].fd = open_event((pid_t)atoi(argv[4]), i, strtoull(argv[2], NULL, 10));
        polled[i].events = POLLIN;
        rings[i] = map_ring(polled[i].fd);
    }
    for (long ended = 0; ended < cpus;) {
        if (poll(polled, (nfds_t)cpus, POLL_MS) < 0 && errno != EINTR)
            die("poll");
        ended = 0;
        for (int i = 0; i < cpus; i++) {
            empty(&rings[i], &samples, &lost);
            ended += (polled[i].revents & POLLHUP) != 0;
        }
    }
    printf("samples %llu lost %llu\n", (unsigned long long)samples, (unsigned long long)lost);
    return 0;
}
