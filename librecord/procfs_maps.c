/* SPDX-License-Identifier: MIT */
/*
 * Reading /proc/PID/maps line by line. A process may have a million mappings: memory is one buffer.
 */
#include "procfs.h"

#include "procfs_text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Longer lines have a path that no open() takes (PATH_MAX, each byte escaped by four): they are cut. */
#define LINE_SIZE_MAX 65536

struct procfs_maps {
    int fd;
    size_t begin; /* unread bytes are text[begin] to text[end - 1] */
    size_t end;
    bool in_cut_line; /* what comes up to the next newline belongs to a line handed out */
    char text[LINE_SIZE_MAX + 1]; /* room for a NUL */
};

int recordint_procfs_maps_open_path(const char *path, struct procfs_maps **out)
{
    struct procfs_maps *m = malloc(sizeof(*m));
    if (m == NULL)
        return ENOMEM;
    m->begin = 0;
    m->end = 0;
    m->in_cut_line = false;
    m->fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (m->fd < 0) {
        int error = errno;
        free(m);
        return error;
    }
    *out = m;
    return 0;
}

int recordint_procfs_maps_open(pid_t pid, struct procfs_maps **out)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
    return recordint_procfs_maps_open_path(path, out);
}

void recordint_procfs_maps_free(struct procfs_maps *maps)
{
    if (maps == NULL)
        return;
    close(maps->fd);
    free(maps);
}

/* Adds bytes behind the unread ones; there is room. Returns false at the end, which is also an error: the process
 * has ended, and the kernel has said all that it will. */
static bool fill(struct procfs_maps *m)
{
    ssize_t n;
    memmove(m->text, m->text + m->begin, m->end - m->begin);
    m->end -= m->begin;
    m->begin = 0;
    do
        n = read(m->fd, m->text + m->end, LINE_SIZE_MAX - m->end);
    while (n < 0 && errno == EINTR);
    if (n <= 0)
        return false;
    m->end += (size_t)n;
    return true;
}

/* The next line, NULL at the end. A line without newline at the end of the file was broken off: not returned. */
static char *next_line(struct procfs_maps *m)
{
    for (;;) {
        char *line = m->text + m->begin;
        char *newline = memchr(line, '\n', m->end - m->begin);
        bool was_cut = m->in_cut_line;
        if (newline != NULL) {
            *newline = '\0';
            m->begin = (size_t)(newline + 1 - m->text);
            m->in_cut_line = false;
            if (!was_cut)
                return line;
        } else if (m->end - m->begin == LINE_SIZE_MAX) {
            m->text[m->end] = '\0';
            m->begin = m->end;
            m->in_cut_line = true;
            if (!was_cut)
                return line;
        } else if (!fill(m)) {
            return NULL;
        }
    }
}

/* A number of that base and the character behind it ('\0': any end, which stays). */
static bool take(const char **at, unsigned base, char after, uint64_t *out)
{
    uint64_t value = 0;
    const char *p = *at;
    for (;; p++) {
        unsigned digit = *p >= '0' && *p <= '9'                 ? (unsigned)(*p - '0')
                         : base == 16 && *p >= 'a' && *p <= 'f' ? (unsigned)(*p - 'a') + 10
                                                                : 16;
        if (digit >= base)
            break;
        if (__builtin_mul_overflow(value, base, &value) ||
            __builtin_add_overflow(value, digit, &value))
            return false;
    }
    if (p == *at || (after != '\0' && *p != after))
        return false;
    *at = after != '\0' ? p + 1 : p;
    *out = value;
    return true;
}

static void unescape_newlines(char *path)
{
    char *to = strstr(path, "\\012");
    if (to == NULL)
        return;
    for (const char *from = to; *from != '\0';) {
        bool escaped = strncmp(from, "\\012", 4) == 0;
        *to++ = escaped ? '\n' : *from;
        from += escaped ? 4 : 1;
    }
    *to = '\0';
}

bool recordint_procfs_parse_map(char *line, struct procfs_map *out)
{
    const char *at = line;
    uint64_t major;
    uint64_t minor;
    if (!take(&at, 16, '-', &out->start) || !take(&at, 16, ' ', &out->end) ||
        out->start >= out->end || strnlen(at, 5) < 5 || at[4] != ' ')
        return false;
    out->executable = at[2] == 'x';
    at += 5;
    if (!take(&at, 16, ' ', &out->file_offset) || !take(&at, 16, ':', &major) ||
        !take(&at, 16, ' ', &minor) || major > UINT32_MAX || minor > UINT32_MAX ||
        !take(&at, 10, '\0', &out->inode) || (*at != '\0' && *at != ' '))
        return false;
    out->dev_major = (uint32_t)major;
    out->dev_minor = (uint32_t)minor;
    at += strspn(at, " "); /* to the column of paths; a path begins with none */
    char *path = line + (at - line);
    unescape_newlines(path);
    out->path = path;
    return true;
}

int recordint_procfs_maps_next(struct procfs_maps *maps, struct procfs_map *out)
{
    char *line;
    while ((line = next_line(maps)) != NULL)
        if (recordint_procfs_parse_map(line, out))
            return 1;
    return 0;
}
