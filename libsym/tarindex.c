/* SPDX-License-Identifier: MIT */
/*
 * The members of a tar file, sorted. Names are walked as a kernel walks them in a root of its own: links and `..`
 * lead to other members or nowhere. Folders need no member of their own.
 */
#include "tarindex.h"

#include "spool/sym.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_MEMBERS ((size_t)1 << 20)
#define MAX_NAME_BYTES \
    ((size_t)64 * 1024 * 1024) /* of all of them: gzip makes many out of little */
#define MAX_LINKS 40           /* as the kernel allows */
#define MAX_REST 16384         /* bytes of path and links that are still to be walked */
/* Names in a path and all its links; a folder's path has 64 at most (openfile.c). */
#define MAX_STEPS 256

/* ---- building ---- */

int symint_tar_index_add(struct symint_tar_index *x, const struct symint_tar_member *member)
{
    struct symint_tar_member m = *member;
    size_t name_size = strlen(m.name);
    size_t link_size = m.link != NULL ? strlen(m.link) : 0;
    if (x->count == MAX_MEMBERS || x->name_bytes + name_size + link_size > MAX_NAME_BYTES)
        return SYM_ERR_LIMIT;
    struct symint_tar_member *members =
        symint_grow(x->members, x->count, &x->capacity, sizeof(*members), 16);
    if (members == NULL)
        return SYM_ERR_NOMEM;
    x->members = members;
    m.order = (uint32_t)x->count;
    m.name = symint_arena_copy(&x->arena, m.name, name_size);
    if (m.link != NULL)
        m.link = symint_arena_copy(&x->arena, m.link, link_size);
    if (m.name == NULL || (member->link != NULL && m.link == NULL))
        return SYM_ERR_NOMEM;
    x->name_bytes += name_size + link_size;
    x->members[x->count++] = m;
    return 0;
}

void symint_tar_index_free(struct symint_tar_index *x)
{
    free(x->members);
    symint_arena_free(&x->arena);
    *x = (struct symint_tar_index){0};
}

bool symint_tar_normalize(char *name)
{
    char *to = name;
    if (name[0] == '/' || strlen(name) >= SYMINT_TAR_NAME_BYTES)
        return false;
    for (const char *from = name; *from != '\0';) {
        size_t size = strcspn(from, "/");
        if (size == 2 && from[0] == '.' && from[1] == '.')
            return false;
        if (size > 0 && !(size == 1 && from[0] == '.')) {
            if (to != name)
                *to++ = '/';
            memmove(to, from, size);
            to += size;
        }
        from += size;
        from += strspn(from, "/");
    }
    *to = '\0';
    return true;
}

/* ---- order ---- */

/* A slash is below all else: what is in a folder follows it, and names in a folder are in bytewise order. */
static int rank(char c)
{
    return c == '\0' ? 0 : c == '/' ? 1 : (unsigned char)c + 1;
}

static int compare_names(const char *a, const char *b)
{
    while (*a != '\0' && *a == *b) {
        a++;
        b++;
    }
    return rank(*a) - rank(*b);
}

static int compare_members(const void *a, const void *b)
{
    const struct symint_tar_member *x = a;
    const struct symint_tar_member *y = b;
    int order = compare_names(x->name, y->name);
    return order != 0 ? order : (x->order > y->order) - (x->order < y->order);
}

/* The first member that has that name or a later one. */
static size_t lower_bound(const struct symint_tar_index *x, const char *name)
{
    size_t low = 0;
    size_t high = x->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare_names(x->members[middle].name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* ---- hard links ---- */

/* What a hard link was made to: the last member of that name before it. NULL: none. */
static const struct symint_tar_member *target_of(const struct symint_tar_index *x,
                                                 const struct symint_tar_member *m)
{
    size_t low = lower_bound(x, m->link);
    size_t high = x->count;
    size_t first = low;
    while (low < high) { /* the first that is of another name, or not before the link */
        size_t middle = low + (high - low) / 2;
        const struct symint_tar_member *it = &x->members[middle];
        if (strcmp(it->name, m->link) == 0 && it->order < m->order)
            low = middle + 1;
        else
            high = middle;
    }
    const struct symint_tar_member *found = low > first ? &x->members[low - 1] : NULL;
    return found != NULL && (found->kind == SYMINT_TAR_FILE || found->kind == SYMINT_TAR_LINK)
               ? found
               : NULL;
}

/* Puts what hard links lead to in their place, in the order of the file: they may lead to one another. */
static int resolve_hard_links(struct symint_tar_index *x)
{
    uint32_t *places = malloc((x->count + 1) * sizeof(*places));
    if (places == NULL)
        return SYM_ERR_NOMEM;
    for (size_t i = 0; i < x->count; i++)
        places[x->members[i].order] = (uint32_t)i;
    for (size_t i = 0; i < x->count; i++) {
        struct symint_tar_member *m = &x->members[places[i]];
        const struct symint_tar_member *to =
            m->kind == SYMINT_TAR_HARD_LINK ? target_of(x, m) : NULL;
        if (to == NULL)
            continue;
        const char *name = m->name;
        uint32_t order = m->order;
        *m = *to;
        m->name = name;
        m->order = order;
    }
    free(places);
    return 0;
}

int symint_tar_index_finish(struct symint_tar_index *x, size_t *dangling)
{
    size_t kept = 0;
    *dangling = 0;
    if (x->count == 0)
        return 0;
    qsort(x->members, x->count, sizeof(*x->members), compare_members);
    int rc = resolve_hard_links(x);
    if (rc != 0)
        return rc;
    for (size_t i = 0; i < x->count; i++) {
        if (x->members[i].kind == SYMINT_TAR_HARD_LINK) {
            ++*dangling;
            continue;
        }
        if (kept > 0 && strcmp(x->members[kept - 1].name, x->members[i].name) == 0)
            kept--;
        x->members[kept++] = x->members[i];
    }
    x->count = kept;
    return 0;
}

/* ---- finding ---- */

struct walk {
    const struct symint_tar_index *index;
    char path[SYMINT_TAR_NAME_BYTES]; /* of folders up to here, as members have it */
    size_t size;
    int links;
    int steps;
    bool keep_link;
    char rest[MAX_REST];
};

/* The member of the walk's path; NULL: there is none, and *folder tells whether something is in it. */
static const struct symint_tar_member *member_here(const struct walk *w, bool *folder)
{
    size_t at = lower_bound(w->index, w->path);
    const struct symint_tar_member *m = at < w->index->count ? &w->index->members[at] : NULL;
    *folder = w->size == 0;
    if (m == NULL || w->size == 0)
        return NULL;
    if (strcmp(m->name, w->path) == 0) {
        *folder = m->kind == SYMINT_TAR_FOLDER;
        return m;
    }
    *folder = strncmp(m->name, w->path, w->size) == 0 && m->name[w->size] == '/';
    return NULL;
}

static void go_up(struct walk *w)
{
    while (w->size > 0 && w->path[--w->size] != '/')
        ;
    w->path[w->size] = '\0';
}

/* Puts the target of a link in front of the rest, which begins with a slash or is nothing. 0 or an errno. */
static int follow_link(struct walk *w, const char *target, size_t at)
{
    size_t size = strlen(target);
    size_t left = strlen(w->rest + at);
    if (++w->links > MAX_LINKS)
        return ELOOP;
    if (size + left + 1 > sizeof(w->rest))
        return ENAMETOOLONG;
    memmove(w->rest + size, w->rest + at, left + 1);
    memcpy(w->rest, target, size);
    if (target[0] == '/')
        w->path[w->size = 0] = '\0';
    else
        go_up(w);
    return 0;
}

/* One step; *at is where the rest goes on. -1 to go on, 0 at the end, or an errno. */
static int step(struct walk *w, size_t *at, const struct symint_tar_member **out)
{
    bool folder;
    *at += strspn(w->rest + *at, "/");
    const char *name = w->rest + *at;
    size_t size = strcspn(name, "/");
    *at += size;
    if (size == 0) {
        *out = NULL;
        return 0;
    }
    if (size == 1 && name[0] == '.')
        return -1;
    if (size == 2 && name[0] == '.' && name[1] == '.') {
        go_up(w);
        return -1;
    }
    if (w->size + size + 2 > sizeof(w->path) || ++w->steps > MAX_STEPS)
        return ENAMETOOLONG;
    if (w->size > 0)
        w->path[w->size++] = '/';
    memcpy(w->path + w->size, name, size);
    w->size += size;
    w->path[w->size] = '\0';
    const struct symint_tar_member *m = member_here(w, &folder);
    bool last = w->rest[*at] == '\0';
    if (m != NULL && m->kind == SYMINT_TAR_LINK && !(last && w->keep_link)) {
        int error = follow_link(w, m->link, *at);
        *at = 0;
        return error != 0 ? error : -1;
    }
    if (folder)
        return -1;
    if (m == NULL)
        return ENOENT;
    *out = m;
    return last ? 0 : ENOTDIR;
}

static int walk_to(struct walk *w, const char *name, const struct symint_tar_member **out)
{
    size_t at = 0;
    int rc = -1;
    size_t size = strlen(name);
    *out = NULL;
    if (size >= sizeof(w->rest))
        return ENAMETOOLONG;
    memcpy(w->rest, name, size + 1);
    w->path[0] = '\0';
    while (rc < 0)
        rc = step(w, &at, out);
    return rc;
}

int symint_tar_find(const struct symint_tar_index *x, const char *name, bool link,
                    const struct symint_tar_member **out)
{
    struct walk w;
    w.index = x;
    w.size = 0;
    w.links = 0;
    w.steps = 0;
    w.keep_link = link;
    return walk_to(&w, name, out);
}

int symint_tar_list(const struct symint_tar_index *x, const char *folder, symint_tar_list_fn *fn,
                    void *user)
{
    struct walk w;
    const struct symint_tar_member *m;
    char name[SYMINT_TAR_NAME_BYTES];
    int rc = 0;
    w.index = x;
    w.size = 0;
    w.links = 0;
    w.steps = 0;
    w.keep_link = false;
    if (walk_to(&w, folder, &m) != 0 || m != NULL)
        return 0;
    size_t prefix = w.size > 0 ? w.size + 1 : 0;
    size_t i = lower_bound(x, w.path);
    if (i < x->count && w.size > 0 && strcmp(x->members[i].name, w.path) == 0)
        i++;
    while (rc == 0 && i < x->count) {
        m = &x->members[i];
        if (w.size > 0 && (strncmp(m->name, w.path, w.size) != 0 || m->name[w.size] != '/'))
            break;
        const char *part = m->name + prefix;
        size_t size = strcspn(part, "/");
        bool is_folder = part[size] == '/' || m->kind == SYMINT_TAR_FOLDER;
        memcpy(name, part, size);
        name[size] = '\0';
        /* What is in it comes right behind. */
        do
            i++;
        while (i < x->count && strncmp(x->members[i].name, m->name, prefix + size) == 0 &&
               x->members[i].name[prefix + size] == '/');
        rc = fn(user, name, is_folder);
    }
    return rc;
}
