/* SPDX-License-Identifier: MIT */
/* The boot rule: equal boot ids, else a capture that began after this boot did. */
#include "boot.h"

#include "openfile.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const struct symint_system symint_system = {
    .proc = "/proc",
    .kallsyms = "/proc/kallsyms",
    .boot_id = "/proc/sys/kernel/random/boot_id",
    .stat = "/proc/stat",
    .notes = "/sys/kernel/notes",
    .osrelease = "/proc/sys/kernel/osrelease",
};

char *symint_read_small(const char *path, size_t *size)
{
    int fd;
    int error;
    enum sym_miss miss;
    char *text = NULL;
    if (symint_open_regular(NULL, path, &fd, &miss, &error) != 0 || fd < 0)
        return NULL;
    if (symint_read_all(fd, (size_t)16 * 1024 * 1024, &text, size) != 0)
        text = NULL;
    close(fd);
    return text;
}

/* Boot ids are written with and without dashes, in either case. */
static int next_digit(const char **p)
{
    while (**p == '-')
        ++*p;
    char c = **p;
    if (c == '\0' || c == '\n' || c == ' ')
        return -1;
    ++*p;
    return c >= 'A' && c <= 'F' ? c - 'A' + 'a' : c;
}

static bool same_boot_id(const char *a, const char *b)
{
    size_t count = 0;
    for (;; count++) {
        int x = next_digit(&a);
        if (x != next_digit(&b))
            return false;
        if (x < 0)
            return count > 0;
    }
}

bool symint_boot_time_s(const struct symint_system *system, uint64_t *seconds)
{
    size_t size;
    char *stat = symint_read_small(system->stat, &size);
    if (stat == NULL)
        return false;
    const char *line = strncmp(stat, "btime ", 6) == 0 ? stat : strstr(stat, "\nbtime ");
    *seconds = 0;
    if (line != NULL)
        *seconds = strtoull(line + (*line == '\n' ? 7 : 6), NULL, 10); /* rounded down */
    free(stat);
    return *seconds > 0;
}

enum symint_boot symint_boot_compare(const struct sym_capture *capture,
                                     const struct symint_system *system)
{
    size_t size;
    uint64_t boot_s;
    if (capture->boot_id != NULL && capture->boot_id[0] != '\0') {
        char *id = symint_read_small(system->boot_id, &size);
        if (id != NULL) {
            bool same = same_boot_id(capture->boot_id, id);
            free(id);
            return same ? SYMINT_BOOT_SAME : SYMINT_BOOT_OTHER;
        }
    }
    if (!capture->has_start_time || !symint_boot_time_s(system, &boot_s))
        return SYMINT_BOOT_UNKNOWN;
    return capture->start_time_us / 1000000 >= boot_s ? SYMINT_BOOT_SAME : SYMINT_BOOT_OTHER;
}
