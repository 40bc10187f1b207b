/* SPDX-License-Identifier: MIT */
/* The boot rule: equal boot ids, else a capture that began after this boot did; and what the running
 * kernel is. */
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

/* The GNU build id among ELF notes in the machine's own byte order: name size, descriptor size,
 * type, then name and descriptor, each filled up to 4 bytes. NULL: there is none. */
static const uint8_t *find_build_id(const char *notes, size_t size, size_t *id_size)
{
    size_t at = 0;
    while (size - at >= 12) {
        uint32_t name_size;
        uint32_t data_size;
        uint32_t type;
        memcpy(&name_size, notes + at, 4);
        memcpy(&data_size, notes + at + 4, 4);
        memcpy(&type, notes + at + 8, 4);
        uint64_t data = at + 12 + (((uint64_t)name_size + 3) & ~UINT64_C(3));
        uint64_t next = data + (((uint64_t)data_size + 3) & ~UINT64_C(3));
        if (data + data_size > size)
            return NULL;
        if (type == 3 && name_size == 4 && data_size > 0 &&
            memcmp(notes + at + 12, "GNU", 4) == 0) {
            *id_size = data_size;
            return (const uint8_t *)notes + data;
        }
        if (next >= size)
            return NULL;
        at = (size_t)next;
    }
    return NULL;
}

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
        const uint8_t *id = notes != NULL ? find_build_id(notes, size, &id_size) : NULL;
        other =
            id != NULL && (id_size != build_id_size || memcmp(id, build_id, build_id_size) != 0);
        free(notes);
        *what = "build id";
    }
    return other;
}
