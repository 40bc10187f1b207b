/* SPDX-License-Identifier: MIT */
/*
 * The debuginfod client, bounded in time. Of the library itself only what is declared here is
 * known; it keeps files in a cache of its own and has settings of its own in the environment
 * (DEBUGINFOD_CACHE_PATH and others). Its servers are those of DEBUGINFOD_URLS, asked all at once:
 * which of several did not answer is not told, so none is left out alone.
 */
#include "debuginfod.h"

#include "spool/sym.h"
#include "strtab.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LIBRARY "libdebuginfod.so.1"

struct debuginfod_client;
typedef int progress_fn(struct debuginfod_client *client, long a, long b);

/* The functions of the library that are used. */
struct client_calls {
    struct debuginfod_client *(*begin)(void);
    void (*end)(struct debuginfod_client *client);
    void (*set_progressfn)(struct debuginfod_client *client, progress_fn *progress);
    void (*set_user_data)(struct debuginfod_client *client, void *data);
    int (*find_debuginfo)(struct debuginfod_client *client, const unsigned char *id, int id_size,
                          char **path);
};

/* What servers said about a build id. */
struct known_id {
    uint8_t *id;
    size_t size;
    char *path; /* in the client's cache; NULL: there was no file */
    const char *why;
};

struct symint_debuginfod {
    struct symint_debuginfod_limits limits;
    struct client_calls calls;
    struct debuginfod_client *client; /* NULL: not loaded */
    const char *refusal;              /* why nothing more is asked; NULL: it is */
    struct known_id *known;
    size_t known_count;
    size_t known_capacity;
    unsigned failures; /* questions in a row that no server answered */
    uint64_t used_ms;
    uint64_t deadline_ms; /* of the present question */
    bool receiving;       /* a file was on its way */
    bool stopped;         /* by the deadline */
    char failure[160];
};

static uint64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

struct symint_debuginfod *symint_debuginfod_new(const struct symint_debuginfod_limits *limits)
{
    struct symint_debuginfod *d = calloc(1, sizeof(*d));
    if (d != NULL)
        d->limits = *limits;
    return d;
}

void symint_debuginfod_free(struct symint_debuginfod *d)
{
    if (d == NULL)
        return;
    if (d->client != NULL)
        d->calls.end(d->client);
    for (size_t i = 0; i < d->known_count; i++) {
        free(d->known[i].id);
        free(d->known[i].path);
    }
    free(d->known);
    free(d);
}

/* ---- the library ---- */

#ifdef SPOOL_HAVE_DEBUGINFOD

/* dlsym gives a pointer to an object, which C does not turn into one to a function. */
static bool find_call(void *library, const char *name, void *call)
{
    void *address = dlsym(library, name);
    memcpy(call, &address, sizeof(address));
    return address != NULL;
}

/* Once loaded it stays: what it loads in turn does not bear being unloaded. */
static bool load_calls(struct client_calls *c)
{
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    return library != NULL && find_call(library, "debuginfod_begin", &c->begin) &&
           find_call(library, "debuginfod_end", &c->end) &&
           find_call(library, "debuginfod_set_progressfn", &c->set_progressfn) &&
           find_call(library, "debuginfod_set_user_data", &c->set_user_data) &&
           find_call(library, "debuginfod_find_debuginfo", &c->find_debuginfo);
}

/* Whose client it is, which only the library knows. */
static struct symint_debuginfod *owner(struct debuginfod_client *client)
{
    void *library = dlopen(LIBRARY, RTLD_LAZY | RTLD_NOLOAD);
    void *(*get_user_data)(struct debuginfod_client * client);
    struct symint_debuginfod *d = NULL;
    if (library == NULL)
        return NULL;
    if (find_call(library, "debuginfod_get_user_data", &get_user_data))
        d = get_user_data(client);
    dlclose(library); /* less the one that keeps it */
    return d;
}

/* Called by the client once a second or more often. Other than 0: give up. */
static int progress(struct debuginfod_client *client, long a, long b)
{
    struct symint_debuginfod *d = owner(client);
    (void)a;
    if (d == NULL)
        return 1;
    d->receiving |= b > 0;
    d->stopped |= now_ms() >= d->deadline_ms;
    return d->stopped;
}

#endif

/* Makes the client. d->refusal tells when there is none. */
static void load(struct symint_debuginfod *d)
{
    const char *urls = getenv("DEBUGINFOD_URLS");
    if (d->client != NULL || d->refusal != NULL)
        return;
    if (urls == NULL || urls[strspn(urls, " \t\n")] == '\0') {
        d->refusal = "debuginfod: DEBUGINFOD_URLS names no server";
        return;
    }
#ifdef SPOOL_HAVE_DEBUGINFOD
    if (!load_calls(&d->calls)) {
        d->refusal = "debuginfod: " LIBRARY " cannot be loaded, or is too old";
        return;
    }
    d->client = d->calls.begin();
    if (d->client == NULL) {
        d->refusal = "debuginfod: the client cannot be started";
        return;
    }
    d->calls.set_user_data(d->client, d);
    d->calls.set_progressfn(d->client, progress);
#else
    d->refusal = "debuginfod: not compiled in";
#endif
}

/* ---- questions ---- */

static struct known_id *find_known(struct symint_debuginfod *d, const uint8_t *id, size_t size)
{
    for (size_t i = 0; i < d->known_count; i++)
        if (d->known[i].size == size && memcmp(d->known[i].id, id, size) == 0)
            return &d->known[i];
    return NULL;
}

static struct known_id *add_known(struct symint_debuginfod *d, const uint8_t *id, size_t size)
{
    struct known_id *known =
        symint_grow(d->known, d->known_count, &d->known_capacity, sizeof(*known), 16);
    if (known == NULL)
        return NULL;
    d->known = known;
    struct known_id *k = &d->known[d->known_count];
    *k = (struct known_id){.id = malloc(size), .size = size, .why = ""};
    if (k->id == NULL)
        return NULL;
    memcpy(k->id, id, size);
    d->known_count++;
    return k;
}

static unsigned count_servers(void)
{
    const char *urls = getenv("DEBUGINFOD_URLS");
    unsigned count = 0;
    for (size_t n; urls != NULL && (urls += strspn(urls, " \t\n"), n = strcspn(urls, " \t\n")) > 0;
         urls += n)
        count++;
    return count;
}

/* A question that no server answered. Of several servers others may answer the next one. */
static const char *note_failure(struct symint_debuginfod *d, int error)
{
    if (d->stopped)
        snprintf(d->failure, sizeof(d->failure), "debuginfod: no answer in time");
    else
        snprintf(d->failure, sizeof(d->failure), "debuginfod: %s", strerror(error));
    if (!d->receiving && ++d->failures >= (count_servers() > 1 ? 2 : 1))
        d->refusal = d->failure;
    return d->stopped ? "debuginfod: no answer in time" : d->failure;
}

/* Asks for a build id. fd or -1, with k->path or k->why. */
static int ask(struct symint_debuginfod *d, struct known_id *k)
{
    uint64_t begin_ms = now_ms();
    uint64_t left_ms = d->limits.run_ms - d->used_ms;
    char *path = NULL;
    d->deadline_ms = begin_ms + (left_ms < d->limits.file_ms ? left_ms : d->limits.file_ms);
    d->stopped = false;
    d->receiving = false;
    int fd = d->calls.find_debuginfo(d->client, k->id, (int)k->size, &path);
    d->used_ms += now_ms() - begin_ms;
    if (fd >= 0) {
        fcntl(fd, F_SETFD, FD_CLOEXEC);
        d->failures = 0;
        k->path = path;
        return fd;
    }
    if (fd == -ENOMEM) {
        k->why = sym_error_text(SYM_ERR_NOMEM);
    } else if (fd == -ENOENT && !d->stopped) {
        d->failures = 0;
        k->why = "debuginfod: no server has it";
    } else {
        k->why = note_failure(d, -fd);
    }
    if (d->used_ms >= d->limits.run_ms && d->refusal == NULL)
        d->refusal = "debuginfod: not asked, the servers have taken too long before";
    return -1;
}

int symint_debuginfod_find(struct symint_debuginfod *d, const uint8_t *id, size_t id_size, int *fd,
                           char **path, const char **why)
{
    *fd = -1;
    *path = NULL;
    struct known_id *k = find_known(d, id, id_size);
    if (k == NULL) {
        load(d);
        *why = d->refusal;
        if (d->refusal != NULL)
            return 0;
        k = add_known(d, id, id_size);
        if (k == NULL)
            return SYM_ERR_NOMEM;
        *fd = ask(d, k);
    } else if (k->path != NULL) {
        *fd = open(k->path, O_RDONLY | O_CLOEXEC);
    }
    *why = k->why;
    if (*fd < 0 && k->path != NULL)
        *why = "debuginfod: the file is gone from its cache";
    if (*fd < 0)
        return 0;
    *path = k->path != NULL ? strdup(k->path) : NULL;
    if (*path != NULL)
        return 0;
    close(*fd);
    *fd = -1;
    return SYM_ERR_NOMEM;
}
