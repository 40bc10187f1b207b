/* SPDX-License-Identifier: MIT */
/*
 * Small questions to /proc, /sys and the resource limits. None of them is kept: limits change while we run.
 */
#include "kernel_limits.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#define CPU_MAX 65535u /* more than any kernel can be built for */

/* Reads a small file whole; returns false when it cannot be or is too large. */
static bool read_small(const char *path, char *text, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t length = 0;
    ssize_t n = 0;

    if (fd < 0)
        return false;
    while (length < size && (n = read(fd, text + length, size - length)) > 0)
        length += (size_t)n;
    close(fd);
    if (n < 0 || length == size)
        return false;
    text[length] = 0;
    return true;
}

bool recordint_limits_sysctl(const char *name, int64_t *value)
{
    char path[128], text[64], *end;
    long long number;

    if (snprintf(path, sizeof path, "/proc/sys/kernel/%s", name) >= (int)sizeof path ||
        !read_small(path, text, sizeof text))
        return false;
    number = strtoll(text, &end, 10);
    if (end == text)
        return false;
    *value = number;
    return true;
}

/* ---- CPUs ---- */

static bool parse_number(const char **at, uint32_t *value)
{
    uint32_t n = 0;

    if (**at < '0' || **at > '9')
        return false;
    for (; **at >= '0' && **at <= '9'; (*at)++) {
        n = n * 10 + (uint32_t)(**at - '0');
        if (n > CPU_MAX)
            return false;
    }
    *value = n;
    return true;
}

/* One pass over a list; cpus NULL: only counts. 0: not a list of ascending numbers. */
static size_t walk_cpus(const char *text, int *cpus)
{
    uint32_t first, last, next = 0;
    size_t count = 0;

    for (;;) {
        if (!parse_number(&text, &first))
            return 0;
        last = first;
        if (*text == '-') {
            text++;
            if (!parse_number(&text, &last))
                return 0;
        }
        if (first < next || last < first)
            return 0;
        for (uint32_t cpu = first; cpu <= last; cpu++, count++)
            if (cpus != NULL)
                cpus[count] = (int)cpu;
        next = last + 1;
        if (*text != ',')
            break;
        text++;
    }
    return *text == 0 || *text == '\n' ? count : 0;
}

size_t recordint_limits_parse_cpus(const char *text, int **cpus)
{
    size_t count = walk_cpus(text, NULL);

    *cpus = NULL;
    if (count == 0)
        return 0;
    *cpus = malloc(count * sizeof(int));
    return *cpus == NULL ? 0 : walk_cpus(text, *cpus);
}

size_t recordint_limits_online_cpus(int **cpus)
{
    char text[8192];
    long online;

    if (read_small("/sys/devices/system/cpu/online", text, sizeof text) &&
        walk_cpus(text, NULL) > 0)
        return recordint_limits_parse_cpus(text, cpus);
    online = sysconf(_SC_NPROCESSORS_ONLN);
    if (online < 1)
        online = 1;
    *cpus = malloc((size_t)online * sizeof(int));
    if (*cpus == NULL)
        return 0;
    for (int i = 0; i < (int)online; i++)
        (*cpus)[i] = i;
    return (size_t)online;
}

/* ---- resource limits ---- */

static uint64_t limit_value(rlim_t limit)
{
    return limit == RLIM_INFINITY ? UINT64_MAX : (uint64_t)limit;
}

uint64_t recordint_limits_raise_files(void)
{
    struct rlimit limit, raised;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return 0;
    if (limit.rlim_cur != limit.rlim_max) {
        raised = limit;
        raised.rlim_cur = limit.rlim_max;
        if (setrlimit(RLIMIT_NOFILE, &raised) == 0)
            limit = raised;
    }
    return limit_value(limit.rlim_cur);
}

uint64_t recordint_limits_memlock_bytes(void)
{
    struct rlimit limit;

    return getrlimit(RLIMIT_MEMLOCK, &limit) == 0 ? limit_value(limit.rlim_cur) : 0;
}

/* ---- kernel and rings ---- */

bool recordint_limits_kernel_at_least(unsigned major, unsigned minor)
{
    struct utsname name;
    unsigned has_major, has_minor;

    /* NOLINTNEXTLINE(cert-err34-c): the numbers are the running kernel's, and small */
    if (uname(&name) != 0 || sscanf(name.release, "%u.%u", &has_major, &has_minor) != 2)
        return false;
    return has_major > major || (has_major == major && has_minor >= minor);
}

size_t recordint_limits_ring_size(uint32_t frequency_hz, uint32_t stack_size_bytes)
{
    const uint64_t sample_size = 512 + (uint64_t)stack_size_bytes; /* with registers, callchain */
    const uint64_t needed = (uint64_t)frequency_hz * sample_size / 5;
    size_t size = (size_t)1 << 20;

    while (size < needed && size < (size_t)16 << 20)
        size *= 2;
    return size;
}
