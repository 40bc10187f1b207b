/* SPDX-License-Identifier: MIT */
/*
 * Where the file of a mapping is looked for, in this order: the mapping's own link (map_files, also of deleted
 * files; needs privileges), the path as the process sees it, its program, the path as another target and as we see it,
 * and at last the process's memory, which has all of the file that unwinding needs. A file with another inode is
 * another file.
 */
#include "image_open.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "procfs.h"

/* Opens a path when it is a regular file with the mapping's inode. The device is not compared: file systems
 * with subvolumes or layers show another one in mappings than in stat. Whoever is recorded can put a FIFO or a link to
 * a device there, and to open these does something already: so it is looked at first, by a handle that does nothing. */
static int open_same(const char *path, const struct spool_module *m, bool *short_of_files)
{
    int handle = open(path, O_PATH | O_CLOEXEC), fd = -1;
    char again[40];
    struct stat st;

    if (handle >= 0 && (fstat(handle, &st) != 0 || !S_ISREG(st.st_mode) ||
                        (m->inode != 0 && st.st_ino != m->inode))) {
        close(handle);
        return -1;
    }
    if (handle >= 0) {
        snprintf(again, sizeof again, "/proc/self/fd/%d", handle);
        fd = open(again, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    }
    if (fd < 0)
        *short_of_files = *short_of_files || errno == EMFILE || errno == ENFILE;
    if (handle >= 0)
        close(handle);
    return fd;
}

int recordint_image_open_mapped(const struct spool_module *m, pid_t other_root,
                                bool *short_of_files)
{
    char path[4096 + 64];
    int fd;

    *short_of_files = false;
    snprintf(path, sizeof path, "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, (int)m->pid, m->start,
             m->end);
    fd = open_same(path, m, short_of_files);
    if (fd >= 0 || m->path[0] != '/')
        return fd;
    if (snprintf(path, sizeof path, "/proc/%d/root%s", (int)m->pid, m->path) < (int)sizeof path)
        fd = open_same(path, m, short_of_files);
    if (fd < 0) {
        snprintf(path, sizeof path, "/proc/%d/exe", (int)m->pid);
        fd = m->inode != 0 ? open_same(path, m, short_of_files) : -1;
    }
    if (fd < 0 && other_root > 0 && other_root != m->pid &&
        snprintf(path, sizeof path, "/proc/%d/root%s", (int)other_root, m->path) < (int)sizeof path)
        fd = open_same(path, m, short_of_files);
    if (fd < 0)
        fd = open_same(m->path, m, short_of_files);
    return fd;
}

/* ---- out of the process's memory ---- */

struct rebuilt {
    uint8_t *bytes;
    uint64_t size;
    uint64_t header; /* where the file's beginning is mapped; 0: it is not */
};

/* Whether a line of the maps shows a part of the mapping's file (or of the vdso). */
static bool shows_file(const struct procfs_map *line, const struct spool_module *m)
{
    if (m->inode == 0)
        return line->start == m->start && strcmp(line->path, m->path) == 0;
    return line->inode == m->inode && strcmp(line->path, m->path) == 0;
}

/* Reads one mapping to where it lies in the file. What cannot be read stays zero. */
static void read_part(int mem, const struct procfs_map *line, uint64_t offset, struct rebuilt *out)
{
    uint64_t size = line->end - line->start;
    uint64_t done = 0;

    while (done < size) {
        ssize_t n =
            pread(mem, out->bytes + offset + done, size - done, (off_t)(line->start + done));

        if (n <= 0)
            break;
        done += (uint64_t)n;
    }
}

static uint64_t part_offset(const struct procfs_map *line, const struct spool_module *m)
{
    return m->inode == 0 ? 0 : line->file_offset; /* the vdso's offset is its address or 0 */
}

/* Whether what is mapped is an ELF file at all. Generated code often lies in large sparse files without a name: to
 * read these costs time, and memory here as well as in the process. */
static bool begins_as_elf(int mem, const struct rebuilt *file)
{
    char magic[SELFMAG];

    return file->header != 0 &&
           pread(mem, magic, sizeof magic, (off_t)file->header) == (ssize_t)sizeof magic &&
           memcmp(magic, ELFMAG, SELFMAG) == 0;
}

/* The file's pages as far as the process maps them, each at its offset: headers, code and unwind tables are
 * among them. */
static bool rebuild(const struct spool_module *m, uint64_t most, struct rebuilt *out)
{
    struct procfs_maps *maps = NULL;
    struct procfs_map line;
    char path[64];
    bool fits = true;
    int mem;

    *out = (struct rebuilt){NULL, 0, 0};
    if (recordint_procfs_maps_open(m->pid, &maps) != 0)
        return false;
    while (recordint_procfs_maps_next(maps, &line) > 0) {
        uint64_t offset = part_offset(&line, m), size = line.end - line.start;

        if (!shows_file(&line, m))
            continue;
        if (size > most || offset > most - size)
            fits = false;
        else if (offset + size > out->size)
            out->size = offset + size;
        if (offset == 0)
            out->header = line.start;
    }
    recordint_procfs_maps_free(maps);
    if (out->size == 0 || !fits)
        return false;
    snprintf(path, sizeof path, "/proc/%d/mem", (int)m->pid);
    mem = open(path, O_RDONLY | O_CLOEXEC);
    if (mem < 0)
        return false;
    out->bytes = begins_as_elf(mem, out) ? calloc(1, out->size) : NULL;
    if (out->bytes == NULL || recordint_procfs_maps_open(m->pid, &maps) != 0) {
        close(mem);
        free(out->bytes);
        return false;
    }
    while (recordint_procfs_maps_next(maps, &line) > 0) {
        uint64_t offset = part_offset(&line, m), size = line.end - line.start;

        if (shows_file(&line, m) && size <= out->size && offset <= out->size - size)
            read_part(mem, &line, offset, out);
    }
    recordint_procfs_maps_free(maps);
    close(mem);
    return true;
}

/* Our own vdso is the same for all processes of this boot, if the size is the same (32-bit ones differ). */
static struct image *own_vdso(const struct spool_module *m)
{
    struct spool_module own = *m;
    struct procfs_maps *maps;
    struct procfs_map line;
    struct image *image = NULL;

    if (recordint_procfs_maps_open(getpid(), &maps) != 0)
        return NULL;
    while (recordint_procfs_maps_next(maps, &line) > 0) {
        if (strcmp(line.path, "[vdso]") != 0 || line.end - line.start != m->end - m->start)
            continue;
        own.start = line.start;
        own.end = line.end;
        if (recordint_image_open_memory((const void *)(uintptr_t)own.start, own.end - own.start,
                                        &image) != 0)
            image = NULL;
        break;
    }
    recordint_procfs_maps_free(maps);
    return image;
}

struct image *recordint_image_open_memory_of(const struct spool_module *m, uint64_t most)
{
    struct image *image = NULL;
    struct rebuilt bytes;

    if (strcmp(m->path, "[vdso]") == 0) {
        image = own_vdso(m);
        if (image != NULL)
            return image;
    }
    if (!rebuild(m, most, &bytes) ||
        recordint_image_open_malloced(bytes.bytes, bytes.size, &image) != 0)
        return NULL;
    return image;
}
