/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as what /proc and /sys say, by the first byte: maps, stat and status files, arguments of a command, a list of
 * CPUs. Processes choose names and paths, and a file may be cut anywhere.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kernel_limits.h"
#include "procfs_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define SHORT_LINE 60000 /* longer ones are cut */

/* NUL-terminated, of exactly the size. */
static char *copy_text(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);

    if (text == NULL)
        abort();
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    return text;
}

static void check_map(const struct procfs_map *map)
{
    if (map->start >= map->end || map->path == NULL || map->path[0] == ' ')
        abort();
}

static void expect_same(const struct procfs_map *a, const struct procfs_map *b)
{
    if (a->start != b->start || a->end != b->end || a->executable != b->executable ||
        a->file_offset != b->file_offset || a->dev_major != b->dev_major ||
        a->dev_minor != b->dev_minor || a->inode != b->inode || strcmp(a->path, b->path) != 0)
        abort();
}

/* The mappings of a file are those of its lines, one by one. */
static void read_maps(const uint8_t *data, size_t size)
{
    static int fd = -1;
    char path[40];
    struct procfs_maps *maps;
    struct procfs_map map, line;

    if (fd < 0)
        fd = memfd_create("maps", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, 0) != 0 || pwrite(fd, data, size, 0) != (ssize_t)size)
        abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (recordint_procfs_maps_open_path(path, &maps) != 0)
        abort();
    while (size > 0) {
        const uint8_t *newline = memchr(data, '\n', size);
        size_t length = newline != NULL ? (size_t)(newline - data) : size;
        char *text;

        if (length > SHORT_LINE || newline == NULL)
            break;
        text = copy_text(data, length);
        if (recordint_procfs_parse_map(text, &line)) {
            check_map(&line);
            if (recordint_procfs_maps_next(maps, &map) != 1)
                abort();
            expect_same(&map, &line);
        }
        free(text);
        data += length + 1;
        size -= length + 1;
    }
    while (recordint_procfs_maps_next(maps, &map) == 1) {
        if (size <= SHORT_LINE)
            abort(); /* what has no newline was broken off */
        check_map(&map);
    }
    recordint_procfs_maps_free(maps);
}

static void quote(const uint8_t *data, size_t size)
{
    const char *arguments;
    char *copy, *text;
    size_t room;

    if (size == 0)
        return;
    room = 1 + data[0];
    copy = copy_text(data + 1, size - 1);
    arguments = copy;
    text = malloc(room);
    if (text == NULL)
        abort();
    memset(text, 'x', room);
    recordint_procfs_quote(arguments, size - 1, text, room);
    if (memchr(text, '\0', room) == NULL)
        abort();
    free(text);
    free(copy);
}

static void read_cpus(const char *text)
{
    int *cpus;
    size_t count = recordint_limits_parse_cpus(text, &cpus);

    for (size_t i = 0; i < count; i++)
        if (cpus[i] < 0 || (i > 0 && cpus[i - 1] >= cpus[i]))
            abort();
    free(cpus);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct procfs_stat stat;
    char *text;
    uint8_t kind;

    if (size == 0)
        return 0;
    kind = data[0] % 5;
    data++;
    size--;
    if (kind == 0) {
        read_maps(data, size);
        return 0;
    }
    if (kind == 1) {
        quote(data, size);
        return 0;
    }
    text = copy_text(data, size);
    if (kind == 2) {
        (void)!recordint_procfs_parse_stat(text, &stat);
    } else if (kind == 3) {
        (void)recordint_procfs_parse_status(text, "NSpid:");
        (void)recordint_procfs_parse_status(text, "Tgid:");
    } else {
        read_cpus(text);
    }
    free(text);
    return 0;
}
