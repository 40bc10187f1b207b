/* SPDX-License-Identifier: MIT */
/*
 * What should be there is gathered from the manifests and from the names of pieces, sorted by name, and each file is
 * read once. Where several manifests name a file differently, a later pack has put more into it: one of them must be
 * right.
 */
#include "check.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "archive_open.h"
#include "capture_id.h"
#include "cli.h"
#include "hash.h"
#include "manifests.h"
#include "output.h"
#include "piece_name.h"
#include "progress.h"

/* libsym reads none that are larger. */
#define PIECE_BYTES_MAX ((uint64_t)1 << 30)

/* Somebody says that a file is there. */
struct claim {
    char *name;
    char *
        who; /* the manifest, its spool and what it is for; NULL: the file's own name says its hash */
    uint64_t size_bytes;
    char sha256[PACK_HASH_SIZE]; /* of a piece: the beginning */
};

struct check {
    struct sym_archive *archive;
    bool quiet;
    struct tool_output out;
    struct text_buffer line;
    struct claim *claims;
    size_t claim_count, claim_capacity;
    uint64_t capture_count, file_count, bytes, faults;
    char last_capture[CAPTURE_ID_SIZE];
};

/* ---- lines ---- */

/* Names may have anything in them. */
static void print_line(struct check *c)
{
    struct text_buffer shown = {0};

    text_display(c->line.data, c->line.size, &shown);
    output_write(&c->out, shown.data, shown.size);
    output_byte(&c->out, '\n');
    text_free(&shown);
    c->line.size = 0;
}

static void fault_line(struct check *c)
{
    c->faults++;
    print_line(c);
}

/* Goes on with ": NAME" of the file after who wants it. */
static void begin_line(struct check *c, const struct claim *claim)
{
    text_printf(&c->line, "%s%s%s", claim->who ? claim->who : "", claim->who ? ": " : "",
                claim->name);
}

/* ---- gathering ---- */

static struct claim *add_claim(struct check *c, const char *name)
{
    c->claims = cli_grow(c->claims, &c->claim_capacity, c->claim_count, sizeof *c->claims);
    c->claims[c->claim_count] = (struct claim){.name = text_copy(name, strlen(name))};
    return &c->claims[c->claim_count++];
}

/* What a manifest says of a module, a process or the kernel. */
static void add_part(struct check *c, const char *whose, const char *what,
                     const struct manifest_files *files, const char *missing)
{
    struct text_buffer who = {0};

    text_printf(&who, "%s: %s", whose, what);
    for (size_t i = 0; i < files->count; i++) {
        struct claim *claim = add_claim(c, files->items[i].name);

        claim->who = text_copy(who.data, who.size);
        claim->size_bytes = files->items[i].size_bytes;
        memcpy(claim->sha256, files->items[i].sha256, sizeof claim->sha256);
    }
    if (missing && !c->quiet) {
        text_printf(&c->line, "%s: %s", who.data, missing);
        print_line(c);
    }
    text_free(&who);
}

static int add_manifest(void *user, const char *name, const struct manifest *m, const char *why)
{
    struct check *c = user;
    struct text_buffer whose = {0};

    if (!m) {
        text_printf(&c->line, "%s: %s", name, why);
        fault_line(c);
        return 0;
    }
    c->capture_count += strcmp(c->last_capture, m->capture) != 0;
    strcpy(c->last_capture, m->capture);
    text_printf(&whose, "%s: %s", name, m->spool_name ? m->spool_name : "standard input");
    for (size_t i = 0; i < m->module_count; i++)
        add_part(c, whose.data, m->modules[i].path ? m->modules[i].path : "[no path]",
                 &m->modules[i].files, m->modules[i].missing);
    for (size_t i = 0; i < m->map_count; i++) {
        char what[40];

        snprintf(what, sizeof what, "perf map of process %" PRId32, m->maps[i].pid);
        add_part(c, whose.data, what, &m->maps[i].files, m->maps[i].missing);
    }
    add_part(c, whose.data, "kernel", &m->kernel_files, m->kernel_missing);
    text_free(&whose);
    return 0;
}

static int add_pieces(struct check *c, const char *folder)
{
    struct manifests_names names;
    struct text_buffer path = {0};
    int rc = manifests_list(c->archive, folder, &names);

    for (size_t i = 0; rc == 0 && i < names.count; i++) {
        const char *name = names.items[i].name;

        if (names.items[i].is_folder || !piece_name_is_valid(name))
            continue;
        path.size = 0;
        text_printf(&path, "%s/%s", folder, name);
        memcpy(add_claim(c, path.data)->sha256, name, PIECE_DIGITS);
    }
    manifests_free_names(&names);
    text_free(&path);
    return rc;
}

/* .build-id/xx/yyyy.syms: not deeper. */
static int walk(struct check *c, const char *folder, unsigned depth)
{
    struct manifests_names names;
    struct text_buffer path = {0};
    int rc = manifests_list(c->archive, folder, &names);

    for (size_t i = 0; rc == 0 && i < names.count; i++) {
        if (!names.items[i].is_folder)
            continue;
        path.size = 0;
        text_printf(&path, "%s/%s", folder, names.items[i].name);
        if (depth == 0)
            rc = walk(c, path.data, 1);
        else if (piece_name_is_folder(names.items[i].name))
            rc = add_pieces(c, path.data);
    }
    manifests_free_names(&names);
    text_free(&path);
    return rc;
}

/* Nothing is looked for behind a link or in a file, so all would seem to be whole. */
static int find_strangers(struct check *c, const char *folder, bool (*is_ours)(const char *name))
{
    struct manifests_names names;
    int rc = manifests_list(c->archive, folder, &names);

    for (size_t i = 0; rc == 0 && i < names.count; i++) {
        if (names.items[i].is_folder || !is_ours(names.items[i].name))
            continue;
        text_printf(&c->line, "%s%s%s: not a folder", folder, *folder ? "/" : "",
                    names.items[i].name);
        fault_line(c);
    }
    manifests_free_names(&names);
    return rc;
}

static bool is_top(const char *name)
{
    return strcmp(name, ".build-id") == 0 || strcmp(name, "captures") == 0;
}

static int gather(struct check *c)
{
    int rc = find_strangers(c, "", is_top);

    if (rc == 0)
        rc = find_strangers(c, "captures", capture_id_is_valid);
    if (rc == 0)
        rc = manifests_each(c->archive, NULL, add_manifest, c);
    return rc == 0 ? walk(c, ".build-id", 0) : rc;
}

/* ---- files ---- */

/* 0, or -1 and *why. Of a file that has more than `most` bytes there is no hash, only *size_bytes: one that is mostly
 * holes takes no room, but ages to read. */
static int hash_file(const struct check *c, const char *name, uint64_t most, uint64_t *size_bytes,
                     char sha256[PACK_HASH_SIZE], const char **why)
{
    char buffer[16384];
    struct pack_hash hash;
    struct stat status;
    int fd, rc = sym_archive_open_file(c->archive, name, &fd);
    ssize_t n = -1;

    *why = rc == SYM_ERR_NOT_FOUND ? "is missing"
           : rc == SYM_ERR_FORMAT  ? "is no regular file, or leads out of the archive"
                                   : NULL;
    if (rc < 0 && !*why)
        *why = manifests_error_text(rc);
    if (rc < 0)
        return -1;
    *size_bytes = 0;
    if (fstat(fd, &status) == 0 && (uint64_t)status.st_size > most) {
        *size_bytes = (uint64_t)status.st_size;
        sha256[0] = '\0';
        close(fd);
        return 0;
    }
    pack_hash_begin(&hash);
    while ((n = read(fd, buffer, sizeof buffer)) > 0 || (n < 0 && errno == EINTR)) {
        if (n < 0)
            continue;
        pack_hash_add(&hash, buffer, (size_t)n);
        *size_bytes += (uint64_t)n;
    }
    if (n < 0)
        *why = strerror(errno);
    close(fd);
    pack_hash_end(&hash, sha256);
    return n < 0 ? -1 : 0;
}

static bool is_true(const struct claim *claim, uint64_t size_bytes, const char *sha256)
{
    return claim->size_bytes == size_bytes && strcmp(claim->sha256, sha256) == 0;
}

static void say_false(struct check *c, const struct claim *claim, uint64_t size_bytes)
{
    begin_line(c, claim);
    if (claim->size_bytes != size_bytes)
        text_printf(&c->line, " has %" PRIu64 " bytes, not %" PRIu64, size_bytes,
                    claim->size_bytes);
    else
        text_printf(&c->line, " has another SHA-256");
    fault_line(c);
}

/* How many bytes a file may have for one of the claims to be true. */
static uint64_t most_bytes(const struct claim *claims, size_t count)
{
    uint64_t most = 0;

    for (size_t i = 0; i < count; i++)
        if (claims[i].who && claims[i].size_bytes > most)
            most = claims[i].size_bytes;
    return most > 0 ? most : PIECE_BYTES_MAX;
}

/* All that is claimed of one file. */
static void check_file(struct check *c, const struct claim *claims, size_t count)
{
    char sha256[PACK_HASH_SIZE];
    uint64_t size_bytes;
    const char *why;
    bool claimed = false, confirmed = false;

    if (hash_file(c, claims[0].name, most_bytes(claims, count), &size_bytes, sha256, &why) < 0) {
        for (size_t i = 0; i < count; i++) {
            begin_line(c, &claims[i]);
            text_printf(&c->line, " %s", why);
            fault_line(c);
        }
        return;
    }
    c->file_count++;
    c->bytes += size_bytes;
    for (size_t i = 0; i < count; i++) {
        claimed |= claims[i].who != NULL;
        confirmed |= claims[i].who && is_true(&claims[i], size_bytes, sha256);
        if (claims[i].who || strncmp(claims[i].sha256, sha256, PIECE_DIGITS) == 0)
            continue;
        text_printf(&c->line, "%s: its bytes are not those of its name", claims[i].name);
        fault_line(c);
    }
    for (size_t i = 0; claimed && !confirmed && i < count; i++)
        if (claims[i].who)
            say_false(c, &claims[i], size_bytes);
}

static int compare_claims(const void *a, const void *b)
{
    const struct claim *x = a, *y = b;
    int order = strcmp(x->name, y->name);

    if (order == 0 && (!x->who || !y->who))
        order = (x->who != NULL) - (y->who != NULL);
    return order != 0 ? order : x->who ? strcmp(x->who, y->who) : 0;
}

static void check_files(struct check *c)
{
    if (c->claim_count > 0)
        qsort(c->claims, c->claim_count, sizeof *c->claims, compare_claims);
    for (size_t begin = 0, end; begin < c->claim_count; begin = end) {
        for (end = begin + 1;
             end < c->claim_count && strcmp(c->claims[begin].name, c->claims[end].name) == 0;)
            end++;
        progress_work("checking files", begin, c->claim_count);
        check_file(c, c->claims + begin, end - begin);
    }
}

static void summarize(struct check *c)
{
    text_counted(&c->line, c->capture_count, "capture", "captures");
    text_printf(&c->line, ", ");
    text_counted(&c->line, c->file_count, "file", "files");
    text_printf(&c->line, ", ");
    text_bytes(&c->line, c->bytes);
    text_printf(&c->line, ": ");
    if (c->faults > 0)
        text_counted(&c->line, c->faults, "fault", "faults");
    else
        text_printf(&c->line, "whole");
    print_line(c);
}

static void check_free(struct check *c)
{
    for (size_t i = 0; i < c->claim_count; i++) {
        free(c->claims[i].name);
        free(c->claims[i].who);
    }
    free(c->claims);
    text_free(&c->line);
    sym_archive_free(c->archive);
}

int pack_check(const char *store, bool quiet)
{
    struct check c = {.quiet = quiet, .archive = archive_open(store)};
    int rc;

    if (!c.archive)
        return -1;
    if (output_open(&c.out, NULL, false) < 0) {
        check_free(&c);
        return -1;
    }
    if (*sym_archive_fault(c.archive)) {
        text_printf(&c.line, "%s: %s", store, sym_archive_fault(c.archive));
        fault_line(&c);
    }
    rc = gather(&c);
    if (rc == 0 && !*sym_archive_fault(c.archive) && !archive_is_store(c.archive)) {
        cli_error("%s: no store: it has no folder captures", store);
        rc = -1;
    } else if (rc < 0) {
        cli_error("%s: %s", store, manifests_error_text(rc));
    } else {
        check_files(&c);
        summarize(&c);
    }
    if (archive_told(&c.out) < 0 || c.faults > 0)
        rc = -1;
    check_free(&c);
    return rc < 0 ? -1 : 0;
}
