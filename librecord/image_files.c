/* SPDX-License-Identifier: MIT */
/*
 * Where the file of a mapping is looked for, in this order: the mapping's own link (map_files, also of deleted
 * files; needs privileges), the path as the process sees it, its program, the path as another target and as we see it,
 * and at last the process's memory, which has all of the file that unwinding needs. A file with another inode is
 * another file.
 */
#include "image_files.h"

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

/* Of a file rebuilt from memory; larger ones are left alone. */
#define MEMORY_IMAGE_MAX ((uint64_t)256 << 20)
#define TRIES 2

struct entry {
    uint64_t inode;
    uint64_t inode_gen;
    uint32_t dev_major, dev_minor;
    char *path; /* counts where there is no inode */
    uint64_t path_hash;
    unsigned failures;
    struct image_file file;
    struct entry *next;
};

#define BUCKETS 1024

struct image_files {
    struct entry *buckets[BUCKETS];
};

struct image_files *recordint_image_files_new(void)
{
    return calloc(1, sizeof(struct image_files));
}

void recordint_image_files_free(struct image_files *files)
{
    if (files == NULL)
        return;
    for (size_t i = 0; i < BUCKETS; i++) {
        while (files->buckets[i] != NULL) {
            struct entry *e = files->buckets[i];

            files->buckets[i] = e->next;
            recordint_rule_table_free(e->file.rules);
            recordint_image_free(e->file.image);
            free(e->path);
            free(e);
        }
    }
    free(files);
}

bool recordint_image_files_is_file(const char *path)
{
    if (strcmp(path, "[vdso]") == 0)
        return true;
    return path[0] == '/' && strncmp(path, "//anon", 6) != 0 && strncmp(path, "/SYSV", 5) != 0 &&
           strncmp(path, "/dev/zero", 9) != 0 && strncmp(path, "/anon_hugepage", 14) != 0;
}

static uint64_t hash_text(const char *text)
{
    uint64_t h = UINT64_C(14695981039346656037);

    while (*text != '\0')
        h = (h ^ (uint8_t)*text++) * UINT64_C(1099511628211);
    return h;
}

/* /proc/PID/maps does not tell it: 0. */
static bool same_generation(uint64_t a, uint64_t b)
{
    return a == b || a == 0 || b == 0;
}

static struct entry *find_entry(struct image_files *files, const struct spool_module *m)
{
    uint64_t text = m->inode == 0 ? hash_text(m->path) : 0;
    uint64_t h =
        (m->inode ^ text ^ (uint64_t)m->dev_minor << 20) * UINT64_C(0x9e3779b97f4a7c15) >> 54;
    struct entry **bucket = &files->buckets[h % BUCKETS];
    struct entry *e;

    for (e = *bucket; e != NULL; e = e->next)
        if (e->inode == m->inode && e->dev_major == m->dev_major && e->dev_minor == m->dev_minor &&
            same_generation(e->inode_gen, m->inode_gen) && e->path_hash == text &&
            (m->inode != 0 || strcmp(e->path, m->path) == 0))
            return e;
    e = calloc(1, sizeof *e);
    if (e == NULL)
        return NULL;
    e->inode = m->inode;
    e->inode_gen = m->inode_gen;
    e->dev_major = m->dev_major;
    e->dev_minor = m->dev_minor;
    e->path_hash = text;
    if (m->inode == 0 && (e->path = strdup(m->path)) == NULL) {
        free(e);
        return NULL;
    }
    e->next = *bucket;
    *bucket = e;
    return e;
}

/* Opens a path when it is a regular file with the mapping's inode. The device is not compared: file systems
 * with subvolumes or layers show another one in mappings than in stat. */
static int open_same(const char *path, const struct spool_module *m)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat st;

    if (fd < 0)
        return -1;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && (m->inode == 0 || st.st_ino == m->inode))
        return fd;
    close(fd);
    return -1;
}

static int open_file(const struct spool_module *m, pid_t other_root)
{
    char path[4096 + 64];
    int fd;

    snprintf(path, sizeof path, "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, (int)m->pid, m->start,
             m->end);
    fd = open_same(path, m);
    if (fd >= 0 || m->path[0] != '/')
        return fd;
    if (snprintf(path, sizeof path, "/proc/%d/root%s", (int)m->pid, m->path) < (int)sizeof path)
        fd = open_same(path, m);
    if (fd < 0) {
        snprintf(path, sizeof path, "/proc/%d/exe", (int)m->pid);
        fd = m->inode != 0 ? open_same(path, m) : -1;
    }
    if (fd < 0 && other_root > 0 && other_root != m->pid &&
        snprintf(path, sizeof path, "/proc/%d/root%s", (int)other_root, m->path) < (int)sizeof path)
        fd = open_same(path, m);
    if (fd < 0)
        fd = open_same(m->path, m);
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
static bool rebuild(const struct spool_module *m, struct rebuilt *out)
{
    struct procfs_maps *maps = NULL;
    struct procfs_map line;
    char path[64];
    int mem;

    *out = (struct rebuilt){NULL, 0, 0};
    if (recordint_procfs_maps_open(m->pid, &maps) != 0)
        return false;
    while (recordint_procfs_maps_next(maps, &line) > 0) {
        uint64_t offset = part_offset(&line, m), size = line.end - line.start;

        if (shows_file(&line, m) && size <= MEMORY_IMAGE_MAX && offset <= MEMORY_IMAGE_MAX - size &&
            offset + size > out->size)
            out->size = offset + size;
        if (shows_file(&line, m) && offset == 0)
            out->header = line.start;
    }
    recordint_procfs_maps_free(maps);
    if (out->size == 0)
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
        own.pid = getpid();
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

static struct image *open_image(const struct spool_module *m, pid_t other_root)
{
    struct image *image = NULL;
    struct rebuilt bytes;
    int fd;

    if (strcmp(m->path, "[vdso]") == 0) {
        image = own_vdso(m);
        if (image != NULL)
            return image;
    } else {
        fd = open_file(m, other_root);
        if (fd >= 0) {
            if (recordint_image_open_fd(fd, &image) != 0)
                image = NULL;
            close(fd);
            return image; /* the right file: its memory would say no more */
        }
    }
    if (rebuild(m, &bytes)) {
        if (recordint_image_open_memory(bytes.bytes, bytes.size, &image) != 0)
            image = NULL;
        free(bytes.bytes);
    }
    return image;
}

static void describe_build_id(struct image_file *file)
{
    uint8_t id[IMAGE_BUILD_ID_MAX];
    size_t size = recordint_image_build_id(file->image, id);

    for (size_t i = 0; i < size && i < sizeof id; i++)
        snprintf(file->build_id + 2 * i, 3, "%02x", id[i]);
}

const struct image_file *recordint_image_files_get(struct image_files *files,
                                                   const struct spool_module *m, pid_t other_root)
{
    struct entry *e;

    if (!recordint_image_files_is_file(m->path))
        return NULL;
    e = find_entry(files, m);
    if (e == NULL)
        return NULL;
    if (e->file.image != NULL || e->failures == TRIES)
        return &e->file;
    e->file.rules = recordint_rule_table_new();
    e->file.image = e->file.rules != NULL ? open_image(m, other_root) : NULL;
    if (e->file.image == NULL) {
        recordint_rule_table_free(e->file.rules);
        e->file.rules = NULL;
        e->failures++;
        return &e->file;
    }
    describe_build_id(&e->file);
    return &e->file;
}
