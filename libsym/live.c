/* SPDX-License-Identifier: MIT */
/*
 * Reading /proc/PID. A process id says little by itself: it may have been given to another process
 * since, it may be another machine's, and inside a container the process has another one. What is
 * said here about a process that is not the capture's ends as a wrong name, so doubt means no.
 */
#include "live.h"

#include "openfile.h"
#include "strtab.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_PATH 4096 /* bytes of a path or a link's text, as the kernel has it */
/* Larger than any time of a real system, small enough to be multiplied. */
#define MAX_SECONDS ((uint64_t)1 << 40)

/* `/proc/WHO/NAME`. False: too long. */
static bool proc_path(char path[MAX_PATH], const struct symint_system *system, const char *who,
                      const char *name)
{
    int n = snprintf(path, MAX_PATH, "%s/%s/%s", system->proc, who, name);
    return n > 0 && n < MAX_PATH;
}

static char *read_proc(const struct symint_system *system, const char *who, const char *name)
{
    char path[MAX_PATH];
    size_t size;
    return proc_path(path, system, who, name) ? symint_read_small(path, &size) : NULL;
}

/* ---- numbers ---- */

/* State and start of a process, the fields 3 and 22 of its `stat`. The second field is its name in
 * parentheses, in which there may be blanks and parentheses. */
static bool parse_stat(const char *stat, char *state, uint64_t *start_ticks)
{
    const char *p = strrchr(stat, ')');
    if (p == NULL || p[1] != ' ' || p[2] == '\0' || p[2] == '\n')
        return false;
    *state = p[2];
    p++;
    for (int field = 3; field < 22; field++) {
        p = strchr(p + 1, ' ');
        if (p == NULL)
            return false;
    }
    if (p[1] < '0' || p[1] > '9')
        return false;
    *start_ticks = strtoull(p + 1, NULL, 10);
    return true;
}

static uint64_t start_time_us(const struct symint_system *system, uint64_t ticks)
{
    uint64_t boot_s;
    long per_second = sysconf(_SC_CLK_TCK);
    if (per_second <= 0 || !symint_boot_time_s(system, &boot_s) || boot_s > MAX_SECONDS ||
        ticks / (uint64_t)per_second > MAX_SECONDS)
        return 0;
    uint64_t rest = ticks % (uint64_t)per_second;
    return (boot_s + ticks / (uint64_t)per_second) * 1000000 +
           rest * 1000000 / (uint64_t)per_second;
}

/* A line of `status`, behind its key: blanks and numbers. NULL: there is none. */
static const char *find_line(const char *status, const char *key)
{
    size_t size = strlen(key);
    for (const char *p = status; p != NULL; p = strchr(p, '\n')) {
        p += *p == '\n';
        if (strncmp(p, key, size) == 0)
            return p + size;
    }
    return NULL;
}

/* The last number of a line; 0: none, or no process id. */
static int32_t last_number(const char *line)
{
    long last = 0;
    char *end;
    while (*line == ' ' || *line == '\t') {
        long number = strtol(line, &end, 10);
        if (end == line)
            break;
        last = number;
        line = end;
    }
    return last > 0 && last <= INT32_MAX ? (int32_t)last : 0;
}

/* The id in the innermost namespace, and whether this is a process at all: /proc also has folders
 * of threads, which it does not list. */
static void read_status(const struct symint_system *system, const char *who, int32_t pid,
                        struct symint_live *out)
{
    char *status = read_proc(system, who, "status");
    if (status == NULL)
        return;
    const char *group = find_line(status, "Tgid:");
    const char *inner = find_line(status, "NSpid:");
    if (group != NULL && last_number(group) != pid)
        out->present = false;
    if (inner != NULL && last_number(inner) > 0)
        out->inner_pid = last_number(inner);
    free(status);
}

/* ---- roots ---- */

struct root {
    dev_t device;
    ino_t inode;
    char mounts[64]; /* `mnt:[4026531841]` */
};

static bool read_root(const struct symint_system *system, const char *who, struct root *out)
{
    char path[MAX_PATH];
    struct stat st;
    if (!proc_path(path, system, who, "root") || stat(path, &st) != 0 ||
        !proc_path(path, system, who, "ns/mnt"))
        return false;
    ssize_t size = readlink(path, out->mounts, sizeof(out->mounts) - 1);
    if (size <= 0)
        return false;
    out->mounts[size] = '\0';
    out->device = st.st_dev;
    out->inode = st.st_ino;
    return true;
}

/* What may not be looked at gets an id of its own. */
static void compare_roots(const struct symint_system *system, const char *who, int32_t pid,
                          struct symint_live *out)
{
    struct root theirs;
    struct root ours;
    uint64_t id;
    if (read_root(system, who, &theirs)) {
        if (read_root(system, "self", &ours) && theirs.device == ours.device &&
            theirs.inode == ours.inode && strcmp(theirs.mounts, ours.mounts) == 0)
            return;
        id = symint_mix(symint_mix((uint64_t)theirs.device) ^ (uint64_t)theirs.inode);
        for (const char *p = theirs.mounts; *p != '\0'; p++)
            id = symint_mix(id ^ (unsigned char)*p);
    } else {
        id = symint_mix(symint_mix((uint64_t)pid << 32) ^ out->start_time_us);
    }
    out->own_root = true;
    out->root_id = id != 0 ? id : 1;
}

/* ---- for other files ---- */

static enum symint_age compare_age(const struct sym_capture *capture, uint64_t start_us)
{
    if (start_us <= SYMINT_CLOCK_SLACK_US || (!capture->has_end_time && !capture->has_start_time))
        return SYMINT_AGE_UNKNOWN;
    uint64_t time_us = capture->has_end_time ? capture->end_time_us : capture->start_time_us;
    return start_us - SYMINT_CLOCK_SLACK_US <= time_us ? SYMINT_AGE_OLD_ENOUGH : SYMINT_AGE_YOUNGER;
}

void symint_live_read(const struct symint_system *system, const struct sym_capture *capture,
                      enum symint_boot boot, int32_t pid, struct symint_live *out)
{
    char who[16];
    char state = '\0';
    uint64_t ticks = 0;
    *out = (struct symint_live){.inner_pid = pid};
    if (pid <= 0)
        return;
    snprintf(who, sizeof(who), "%" PRId32, pid);
    char *stat = read_proc(system, who, "stat");
    if (stat == NULL)
        return;
    out->present = parse_stat(stat, &state, &ticks);
    free(stat);
    if (out->present)
        read_status(system, who, pid, out);
    if (!out->present)
        return;
    out->start_time_us = start_time_us(system, ticks);
    out->age = compare_age(capture, out->start_time_us);
    /* One that has ended and whose parent has not noticed has neither root nor files. */
    out->alive = boot == SYMINT_BOOT_SAME && out->age == SYMINT_AGE_OLD_ENOUGH && state != 'Z' &&
                 state != 'X';
    if (out->alive)
        compare_roots(system, who, pid, out);
}

char *symint_live_root(const struct symint_system *system, int32_t pid)
{
    size_t room = strlen(system->proc) + 32;
    char *path = malloc(room);
    if (path != NULL)
        snprintf(path, room, "%s/%" PRId32 "/root", system->proc, pid);
    return path;
}

static bool is_link_to(const char *link, const char *path)
{
    char text[MAX_PATH];
    ssize_t size = readlink(link, text, sizeof(text));
    return size > 0 && (size_t)size == strlen(path) && memcmp(text, path, (size_t)size) == 0;
}

void symint_live_open_held(const struct symint_system *system, int32_t pid, uint64_t start,
                           uint64_t end, const char *path, int *fd)
{
    char who[16];
    char range[64];
    char link[MAX_PATH];
    enum sym_miss miss;
    int error;
    *fd = -1;
    if (pid <= 0)
        return;
    snprintf(who, sizeof(who), "%" PRId32, pid);
    snprintf(range, sizeof(range), "map_files/%" PRIx64 "-%" PRIx64, start, end);
    const char *const names[] = {range, "exe"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && *fd < 0; i++)
        if (proc_path(link, system, who, names[i]) && is_link_to(link, path) &&
            symint_open_regular(NULL, link, fd, &miss, &error) != 0)
            *fd = -1;
}
