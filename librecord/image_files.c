/* SPDX-License-Identifier: MIT */
/*
 * Which files of mappings are kept, and which of these are open. A file that is mapped stays, with the rules that were
 * made of it; of those that are not, the latest used. How many are kept follows from how many are mapped, as does
 * how often that is looked at. Descriptors have a limit of their own: the file that was not asked for longest is closed
 * and, when more of it is needed, opened again as it was opened first.
 */
#include "image_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "image_open.h"

#define TRIES 2
/* Without a free descriptor none is looked for at each question. */
#define REFUSED_PAUSE 256
/* Files that nobody maps are kept in this number: programs that are run again and again. */
#define UNMAPPED_KEPT 64
/* Bytes of all files rebuilt from memory; what would go beyond is left alone. */
#define COPIED_MAX ((uint64_t)256 << 20)
#define DESCRIPTORS_MIN 4
#define DESCRIPTORS_MAX 256

/* Whether what an inode contains is what it contained. */
struct version {
    uint64_t device, inode, size;
    struct timespec modified, changed;
};

struct entry {
    uint64_t inode; /* 0: the path counts */
    uint64_t inode_gen;
    uint32_t dev_major, dev_minor;
    uint64_t path_hash; /* where it counts */
    struct image_files *files;
    struct spool_module latest; /* mapping asked for; its path is ours */
    pid_t other_root;
    uint32_t newest_id; /* of its mappings */
    unsigned failures;
    bool mapped;
    uint64_t used; /* when it was asked for last, by the count of questions */
    struct version version;
    struct image_file file;
    struct entry *next;
};

/* Replaced ones, of which rules may be in use still. */
struct stale {
    struct image *image;
    struct rule_table *rules;
    struct stale *next;
};

#define BUCKETS 1024

struct image_files {
    struct entry *buckets[BUCKETS];
    size_t count;
    size_t count_due; /* at that number a sweep is due */
    struct stale *stale;
    uint64_t questions;
    struct entry *open[DESCRIPTORS_MAX];
    size_t open_count, open_max;
    uint64_t copied;      /* of COPIED_MAX */
    uint64_t pause_until; /* by the count of questions */
    bool refused;         /* and not told */
};

static size_t due_after(size_t kept)
{
    return 2 * (kept > UNMAPPED_KEPT ? kept : UNMAPPED_KEPT);
}

struct image_files *recordint_image_files_new(uint64_t descriptors)
{
    struct image_files *files = calloc(1, sizeof *files);

    if (files == NULL)
        return NULL;
    files->count_due = due_after(0);
    files->open_max = descriptors / 4 > DESCRIPTORS_MAX   ? DESCRIPTORS_MAX
                      : descriptors / 4 < DESCRIPTORS_MIN ? DESCRIPTORS_MIN
                                                          : (size_t)(descriptors / 4);
    return files;
}

/* ---- descriptors ---- */

static void close_at(struct image_files *files, size_t at)
{
    recordint_image_close_file(files->open[at]->file.image);
    files->open[at] = files->open[--files->open_count];
}

static void close_unused(struct image_files *files)
{
    size_t oldest = 0;

    for (size_t i = 1; i < files->open_count; i++)
        if (files->open[i]->used < files->open[oldest]->used)
            oldest = i;
    close_at(files, oldest);
}

static void forget_open(struct entry *e)
{
    struct image_files *files = e->files;

    for (size_t i = 0; i < files->open_count; i++) {
        if (files->open[i] == e) {
            files->open[i] = files->open[--files->open_count];
            return;
        }
    }
}

/* Makes room for one more, which the caller is to open and to add. */
static void make_room(struct image_files *files)
{
    while (files->open_count >= files->open_max)
        close_unused(files);
}

/* Lowers the limit to half of what is open: others need descriptors, too. Returns false when none is open. */
static bool give_back(struct image_files *files)
{
    size_t wanted = files->open_count / 2;

    if (files->open_count == 0)
        return false;
    files->open_max = wanted > DESCRIPTORS_MIN ? wanted : DESCRIPTORS_MIN;
    while (files->open_count > wanted)
        close_unused(files);
    return true;
}

/* Opens the file of the entry's latest mapping, a descriptor of the caller's. */
static int open_latest(struct entry *e)
{
    struct image_files *files = e->files;
    bool short_of_files;
    int fd;

    make_room(files);
    do {
        fd = recordint_image_open_mapped(&e->latest, e->other_root, &short_of_files);
    } while (fd < 0 && short_of_files && give_back(files));
    if (fd < 0 && short_of_files) {
        files->refused = true;
        files->pause_until = files->questions + REFUSED_PAUSE;
    }
    return fd;
}

static bool same_time(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

static bool read_version(int fd, struct version *out)
{
    struct stat st;

    if (fstat(fd, &st) != 0)
        return false;
    *out = (struct version){(uint64_t)st.st_dev, (uint64_t)st.st_ino, (uint64_t)st.st_size,
                            st.st_mtim, st.st_ctim};
    return true;
}

/* The time of a change is not that of the bytes: it is another when a file is deleted or renamed. */
static bool same_bytes(const struct version *a, const struct version *b)
{
    return a->device == b->device && a->inode == b->inode && a->size == b->size &&
           same_time(&a->modified, &b->modified);
}

/* struct file_source's reopen. */
static int reopen(void *user)
{
    struct entry *e = user;
    struct version now;
    int fd;

    if (e->files->questions < e->files->pause_until)
        return -1;
    fd = open_latest(e);
    if (fd < 0)
        return -1;
    if (!read_version(fd, &now) || !same_bytes(&now, &e->version)) {
        close(fd);
        return -1;
    }
    e->files->open[e->files->open_count++] = e;
    return fd;
}

/* ---- entries ---- */

static void drop_image(struct entry *e)
{
    forget_open(e);
    if (e->file.image != NULL)
        e->files->copied -= recordint_image_copied(e->file.image);
    recordint_rule_table_free(e->file.rules);
    recordint_image_free(e->file.image);
    e->file = (struct image_file){0};
}

static void entry_free(struct entry *e)
{
    drop_image(e);
    free((char *)(uintptr_t)e->latest.path);
    free(e);
}

static void free_stale(struct image_files *files)
{
    while (files->stale != NULL) {
        struct stale *s = files->stale;

        files->stale = s->next;
        recordint_rule_table_free(s->rules);
        recordint_image_free(s->image);
        free(s);
    }
}

void recordint_image_files_free(struct image_files *files)
{
    if (files == NULL)
        return;
    for (size_t i = 0; i < BUCKETS; i++) {
        while (files->buckets[i] != NULL) {
            struct entry *e = files->buckets[i];

            files->buckets[i] = e->next;
            entry_free(e);
        }
    }
    free_stale(files);
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

static struct entry **bucket_of(struct image_files *files, const struct spool_module *m,
                                uint64_t path_hash)
{
    uint64_t h =
        (m->inode ^ path_hash ^ (uint64_t)m->dev_minor << 20) * UINT64_C(0x9e3779b97f4a7c15) >> 54;

    return &files->buckets[h % BUCKETS];
}

static uint64_t path_hash(const struct spool_module *m)
{
    return m->inode == 0 ? hash_text(m->path) : 0;
}

static bool is_of(const struct entry *e, const struct spool_module *m, uint64_t hash)
{
    return e->inode == m->inode && e->dev_major == m->dev_major && e->dev_minor == m->dev_minor &&
           same_generation(e->inode_gen, m->inode_gen) && e->path_hash == hash &&
           (m->inode != 0 || strcmp(e->latest.path, m->path) == 0);
}

/* Keeps where the file is to be looked for. False: out of memory. */
static bool set_latest(struct entry *e, const struct spool_module *m, pid_t other_root)
{
    const char *path = e->latest.path;

    if (path == NULL || strcmp(path, m->path) != 0) {
        path = strdup(m->path);
        if (path == NULL)
            return false;
        free((char *)(uintptr_t)e->latest.path);
    }
    e->latest = *m;
    e->latest.path = path;
    e->other_root = other_root;
    return true;
}

static struct entry *find_entry(struct image_files *files, const struct spool_module *m,
                                pid_t other_root)
{
    uint64_t hash = path_hash(m);
    struct entry **bucket = bucket_of(files, m, hash);
    struct entry *e = *bucket;

    while (e != NULL && !is_of(e, m, hash))
        e = e->next;
    if (e != NULL)
        return set_latest(e, m, other_root) ? e : NULL;
    e = calloc(1, sizeof *e);
    if (e == NULL)
        return NULL;
    *e = (struct entry){.inode = m->inode,
                        .inode_gen = m->inode_gen,
                        .dev_major = m->dev_major,
                        .dev_minor = m->dev_minor,
                        .path_hash = hash,
                        .files = files,
                        .newest_id = m->id,
                        .next = *bucket};
    if (!set_latest(e, m, other_root)) {
        free(e);
        return NULL;
    }
    *bucket = e;
    files->count++;
    return e;
}

/* ---- images ---- */

static void describe_build_id(struct image_file *file)
{
    uint8_t id[IMAGE_BUILD_ID_MAX];
    size_t size = recordint_image_build_id(file->image, id);

    for (size_t i = 0; i < size && i < sizeof id; i++)
        snprintf(file->build_id + 2 * i, 3, "%02x", id[i]);
}

/* Takes the image over. */
static void set_image(struct entry *e, struct image *image)
{
    e->file = (struct image_file){.image = image, .rules = recordint_rule_table_new()};
    if (e->file.rules == NULL) {
        recordint_image_free(image);
        e->file.image = NULL;
        return;
    }
    if (recordint_image_fd(image) >= 0) {
        recordint_image_set_reopen(image, reopen, e);
        e->files->open[e->files->open_count++] = e;
    }
    e->files->copied += recordint_image_copied(image);
    describe_build_id(&e->file);
}

/* The file behind fd, which is closed, for an entry that has no image. */
static void load_file(struct entry *e, int fd)
{
    struct image *image = NULL;
    int rc = -1;

    make_room(e->files);
    do {
        rc = read_version(fd, &e->version) ? recordint_image_open_fd(fd, &image) : -1;
    } while (rc != 0 && errno == EMFILE && give_back(e->files));
    close(fd);
    if (rc == 0)
        set_image(e, image);
}

static void load(struct entry *e)
{
    uint64_t copied = e->files->copied, left = copied < COPIED_MAX ? COPIED_MAX - copied : 0;
    struct image *image;
    bool vdso = strcmp(e->latest.path, "[vdso]") == 0;
    int fd = vdso ? -1 : open_latest(e);

    if (fd >= 0) {
        load_file(e, fd); /* the right file: its memory would say no more */
        return;
    }
    image = recordint_image_open_memory_of(&e->latest, left);
    if (image != NULL)
        set_image(e, image);
}

/* Sets the image aside until nobody can have rules of it any more. Without memory for that it goes on being used. */
static bool put_aside(struct entry *e)
{
    struct stale *s = malloc(sizeof *s);

    if (s == NULL)
        return false;
    *s = (struct stale){e->file.image, e->file.rules, e->files->stale};
    e->files->copied -= recordint_image_copied(s->image);
    recordint_image_close_file(s->image);
    recordint_image_set_reopen(s->image, NULL, NULL);
    forget_open(e);
    e->files->stale = s;
    e->file = (struct image_file){0};
    return true;
}

/* A mapping is new: whether its file is still what was read. */
static void check_version(struct entry *e)
{
    struct version now;
    bool known;
    int fd;

    if (e->version.inode == 0) /* rebuilt from memory */
        return;
    fd = recordint_image_fd(e->file.image);
    fd = fd >= 0 ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : open_latest(e);
    known = fd >= 0 && read_version(fd, &now);
    if (known && !(same_bytes(&now, &e->version) && same_time(&now.changed, &e->version.changed)) &&
        put_aside(e)) {
        load_file(e, fd);
        return;
    }
    if (fd >= 0)
        close(fd);
}

const struct image_file *recordint_image_files_get(struct image_files *files,
                                                   const struct spool_module *m, pid_t other_root)
{
    struct entry *e;

    if (!recordint_image_files_is_file(m->path))
        return NULL;
    e = find_entry(files, m, other_root);
    if (e == NULL)
        return NULL;
    e->used = ++files->questions;
    if (e->file.image != NULL) {
        if (m->id > e->newest_id)
            check_version(e);
    } else if (e->failures < TRIES && files->questions >= files->pause_until) {
        load(e);
        /* Where descriptors were short, it has not been tried. */
        if (e->file.image == NULL && files->questions >= files->pause_until)
            e->failures++;
    }
    if (m->id > e->newest_id)
        e->newest_id = m->id;
    return &e->file;
}

bool recordint_image_files_refused(struct image_files *files)
{
    bool refused = files->refused;

    files->refused = false;
    return refused;
}

/* ---- what is not mapped any more ---- */

bool recordint_image_files_due(const struct image_files *files)
{
    return files->stale != NULL || files->count >= files->count_due;
}

void recordint_image_files_mapped(struct image_files *files, const struct spool_module *m)
{
    uint64_t hash;

    if (!recordint_image_files_is_file(m->path))
        return;
    hash = path_hash(m);
    for (struct entry *e = *bucket_of(files, m, hash); e != NULL; e = e->next)
        e->mapped = e->mapped || is_of(e, m, hash);
}

static int compare_used(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

    return (left > right) - (left < right);
}

/* What is not mapped and was not used since goes: 0 for none, when few are not mapped. */
static uint64_t oldest_kept(struct image_files *files)
{
    uint64_t *used = malloc((files->count + 1) * sizeof *used), oldest = UINT64_MAX;
    size_t count = 0;

    if (used == NULL)
        return oldest;
    for (size_t i = 0; i < BUCKETS; i++)
        for (struct entry *e = files->buckets[i]; e != NULL; e = e->next)
            if (!e->mapped)
                used[count++] = e->used;
    qsort(used, count, sizeof *used, compare_used);
    oldest = count > UNMAPPED_KEPT ? used[count - UNMAPPED_KEPT] : 0;
    free(used);
    return oldest;
}

void recordint_image_files_sweep(struct image_files *files)
{
    uint64_t oldest = oldest_kept(files);

    for (size_t i = 0; i < BUCKETS; i++) {
        struct entry **at = &files->buckets[i];

        while (*at != NULL) {
            struct entry *e = *at;

            if (e->mapped || e->used >= oldest) {
                e->mapped = false;
                at = &e->next;
                continue;
            }
            *at = e->next;
            entry_free(e);
            files->count--;
        }
    }
    free_stale(files);
    files->count_due = due_after(files->count);
}

size_t recordint_image_files_count(const struct image_files *files)
{
    return files->count;
}

size_t recordint_image_files_open(const struct image_files *files)
{
    return files->open_count;
}
