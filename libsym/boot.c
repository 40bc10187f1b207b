/* SPDX-License-Identifier: MIT */
/* The boot rule: equal boot ids, else a capture that began after this boot did; and what the running
 * kernel is. */
#include "boot.h"

#include "elf.h"
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
    if (symint_open_system(path, &fd, &miss, &error) != 0 || fd < 0)
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
    const char *what;
    return capture->start_time_us / 1000000 >= boot_s &&
                   !symint_boot_other_kernel(system, capture->release, NULL, 0, &what)
               ? SYMINT_BOOT_SAME
               : SYMINT_BOOT_OTHER;
}

/* ---- the running kernel ---- */

bool symint_boot_other_kernel(const struct symint_system *system, const char *release,
                              const uint8_t *build_id, size_t build_id_size, const char **what)
{
    bool other = false;
    size_t size;
    if (release != NULL && release[0] != '\0') {
        char *running = symint_read_small(system->osrelease, &size);
        if (running != NULL) {
            running[strcspn(running, "\n")] = '\0';
            other = running[0] != '\0' && strcmp(running, release) != 0;
        }
        free(running);
        *what = "release";
    }
    if (!other && build_id != NULL && build_id_size > 0) {
        char *notes = symint_read_small(system->notes, &size);
        size_t id_size;
        const uint8_t *id =
            notes != NULL ? symint_note_build_id((const uint8_t *)notes, size, 4, false, &id_size)
                          : NULL;
        other =
            id != NULL && (id_size != build_id_size || memcmp(id, build_id, build_id_size) != 0);
        free(notes);
        *what = "build id";
    }
    return other;
}
