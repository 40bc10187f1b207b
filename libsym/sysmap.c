/* SPDX-License-Identifier: MIT */
/*
 * System.map: where that of a release lies, and what of it counts. Its addresses are those the
 * kernel was linked for, so it is worth nothing without the shift (kaslr.c). It knows the kernel
 * proper only: modules and BPF programs get no name from it.
 */
#include "sysmap.h"

#include "debug_paths.h"
#include "kaslr.h"
#include "openfile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_MAP ((size_t)256 * 1024 * 1024)

/* ---- one file ---- */

/* The address of a label, whatever its type; 0: there is none. */
static uint64_t label(const struct symint_kernel *k, size_t size, const char *name)
{
    char pattern[32];
    int n = snprintf(pattern, sizeof(pattern), " %s\n", name);
    const char *at = memmem(k->text, size, pattern, (size_t)n);
    if (at == NULL)
        return 0;
    const char *line = at;
    while (line > k->text && line[-1] != '\n')
        line--;
    return strtoull(line, NULL, 16);
}

static bool read_layout(const struct symint_kernel *k, size_t size, struct symint_kernel_layout *l)
{
    l->text = label(k, size, "_text");
    l->stext = label(k, size, "_stext");
    l->etext = label(k, size, "_etext");
    l->init_start = label(k, size, "_sinittext");
    l->init_end = label(k, size, "_einittext");
    l->edata = label(k, size, "_edata");
    l->end = label(k, size, "_end");
    if (l->init_start >= l->init_end || l->init_start < l->etext)
        l->init_start = l->init_end = 0;
    return l->stext != 0 && l->stext < l->etext;
}

/* Keeps what is in the code, and ends it there. */
static void keep_code(struct symint_kernel *k, const struct symint_kernel_layout *l)
{
    size_t kept = 0;
    for (size_t i = 0; i < k->count; i++) {
        struct symint_kernel_entry e = k->entries[i];
        uint64_t limit = e.start >= l->stext && e.start < l->etext           ? l->etext
                         : e.start >= l->init_start && e.start < l->init_end ? l->init_end
                                                                             : 0;
        if (limit == 0)
            continue;
        e.end = e.end < limit ? e.end : limit;
        k->entries[kept++] = e;
    }
    k->count = kept;
}

int symint_sysmap_parse(struct symint_kernel *k, char *text, size_t size,
                        const struct sym_kernel *kernel, enum sym_kernel_state *state,
                        const char **why)
{
    struct symint_kernel_layout layout = {0};
    bool found = false;
    uint64_t shift = 0;
    *why = "";
    int rc = symint_kernel_parse(k, text, size, NULL, state);
    bool usable = rc == 0 && *state == SYM_KERNEL_OK && read_layout(k, size, &layout);
    *state = SYM_KERNEL_NONE;
    if (usable) {
        keep_code(k, &layout);
        rc = symint_kaslr_find(k, &layout, kernel, &found, &shift, why);
        *state = found ? SYM_KERNEL_OK : SYM_KERNEL_UNKNOWN_SHIFT;
    }
    if (rc == 0 && found) {
        k->shift = shift;
        k->sysmap = true;
        rc = symint_kernel_thin(k, kernel->needed, kernel->needed_count);
    }
    if (rc != 0 || !found)
        symint_kernel_free(k);
    return rc;
}

/* ---- which file ---- */

/* Tries one file. *state NONE: it is not there or no map. */
static int try_file(struct symint_kernel *k, struct symint_root root, const char *path,
                    const struct sym_kernel *kernel, enum sym_kernel_state *state)
{
    int fd;
    int error;
    enum sym_miss miss;
    char *text;
    size_t size;
    const char *why;
    const char *archive = root.archive != NULL ? root.path : "";
    *state = SYM_KERNEL_NONE;
    int rc = symint_root_open_regular(root, path, &fd, &miss, &error);
    if (rc != 0 || fd < 0)
        return rc;
    rc = symint_read_all(fd, MAX_MAP, &text, &size);
    close(fd);
    if (rc != 0)
        return rc == SYM_ERR_NOMEM ? rc : 0;
    rc = symint_sysmap_parse(k, text, size, kernel, state, &why);
    if (rc != 0)
        return rc;
    if (*state == SYM_KERNEL_OK)
        snprintf(k->detail, sizeof(k->detail), "%.256s%.256s: moved by 0x%llx", archive, path,
                 (unsigned long long)k->shift);
    else if (*state == SYM_KERNEL_UNKNOWN_SHIFT)
        snprintf(k->detail, sizeof(k->detail), "%.256s%.256s: %s", archive, path, why);
    return 0;
}

int symint_sysmap_load(struct symint_kernel *k, const struct sym_kernel *kernel,
                       const struct symint_search_options *options, enum sym_kernel_state *state)
{
    /* A folder and what stands on both sides of the release. */
    static const char *const places[][2] = {{"/boot/System.map-", ""},
                                            {"/lib/modules/", "/System.map"},
                                            {"/lib/modules/", "/build/System.map"},
                                            {"/usr/lib/debug/boot/System.map-", ""},
                                            {"/usr/lib/debug/lib/modules/", "/System.map"}};
    static const char *const archived[2] = {"/System.map-", ""};
    const size_t place_count = sizeof(places) / sizeof(places[0]);
    const char *release = kernel->release;
    char unknown[sizeof(k->detail)] = "";
    *k = (struct symint_kernel){0};
    *state = SYM_KERNEL_NONE;
    if (kernel->needed_count == 0 || release == NULL)
        return 0;
    if (!symint_is_release(release)) {
        snprintf(k->detail, sizeof(k->detail), "the recorded kernel release is not a valid one");
        return 0;
    }
    size_t archives = options->archive_count;
    for (size_t i = 0; i < archives + place_count; i++) {
        char path[512];
        bool own = i < archives;
        const char *const *place = own ? archived : places[i - archives];
        snprintf(path, sizeof(path), "%s%s%s", place[0], release, place[1]);
        int rc = try_file(
            k, own ? symint_in_archive(options->archives[i]) : symint_in_folder(options->sysroot),
            path, kernel, state);
        if (rc != 0 || *state == SYM_KERNEL_OK)
            return rc;
        if (*state == SYM_KERNEL_UNKNOWN_SHIFT && unknown[0] == '\0')
            memcpy(unknown, k->detail, sizeof(unknown));
    }
    *k = (struct symint_kernel){0};
    if (unknown[0] != '\0') {
        *state = SYM_KERNEL_UNKNOWN_SHIFT;
        memcpy(k->detail, unknown, sizeof(unknown));
    } else {
        snprintf(k->detail, sizeof(k->detail),
                 "no System.map of %s in /boot, /lib/modules/%s and /usr/lib/debug%s", release,
                 release, archives > 0 ? ", nor in the symbol folders" : "");
    }
    return 0;
}
