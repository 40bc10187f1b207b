/* SPDX-License-Identifier: MIT */
/* Which kernel symbols may be used: vmlinux for the kernel proper; for all that it does not cover
 * the kallsyms the user vouches for, by name or in an archive, or /proc/kallsyms of the same boot and kernel; without both
 * the System.map of the release. */
#include "kernel.h"

#include "openfile.h"
#include "sysmap.h"
#include "vmlinux.h"
#include "words.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_KALLSYMS ((size_t)1024 * 1024 * 1024)

/* Takes the open file of kallsyms. 0 and *state; else as sym_kernel_load for a file it was given. */
static int take_kallsyms(struct symint_kernel *k, int fd, const struct sym_kernel *kernel,
                         enum sym_kernel_state *state, int *error)
{
    char *text;
    size_t size;
    int rc = symint_read_all(fd, MAX_KALLSYMS, &text, &size);
    *error = rc == SYM_ERR_IO ? errno : 0;
    close(fd);
    if (rc != 0)
        return rc == SYM_ERR_LIMIT ? SYM_ERR_FORMAT : rc;
    rc = symint_kernel_parse(k, text, size, kernel, state);
    if (rc == 0 && k->lines == 0) {
        symint_kernel_free(k);
        return SYM_ERR_FORMAT;
    }
    return rc;
}

static int read_kallsyms(struct symint_kernel *k, const char *path, const struct sym_kernel *kernel,
                         enum sym_kernel_state *state, int *error)
{
    enum sym_miss miss;
    int fd;
    *state = SYM_KERNEL_UNREADABLE;
    int rc = symint_open_system(path, &fd, &miss, error);
    if (rc != 0)
        return rc;
    if (fd < 0)
        return miss == SYM_MISS_NO_FILE ? SYM_ERR_NOT_FOUND : SYM_ERR_IO;
    return take_kallsyms(k, fd, kernel, state, error);
}

/* The running kernel's, if it is the one that was sampled. 0 or SYM_ERR_NOMEM. */
static int load_running(struct symint_kernel *k, const struct sym_kernel *kernel,
                        enum symint_boot boot, const struct symint_system *system,
                        enum sym_kernel_state *state, int *error)
{
    const char *what;
    if (boot != SYMINT_BOOT_SAME) {
        *state = boot == SYMINT_BOOT_OTHER ? SYM_KERNEL_OTHER_BOOT : SYM_KERNEL_UNKNOWN_BOOT;
        return 0;
    }
    if (symint_boot_other_kernel(system, kernel->release, kernel->build_id, kernel->build_id_size,
                                 &what)) {
        *state = SYM_KERNEL_OTHER_BOOT;
        snprintf(k->detail, sizeof(k->detail), "the running kernel has another %s", what);
        return 0;
    }
    int rc = read_kallsyms(k, system->kallsyms, kernel, state, error);
    if (rc == SYM_ERR_FORMAT)
        *state = SYM_KERNEL_EMPTY;
    return symint_is_shortage(rc) ? rc : 0;
}

/* Those of an archive, which is as good as naming them. 1: they are used; 0, and why they cannot be is told;
 * SYM_ERR_NOMEM. */
static int try_archived(struct symint_kernel *k, const struct sym_archive *archive,
                        const char *name, const struct sym_kernel *kernel, char *said, size_t room)
{
    enum sym_kernel_state state = SYM_KERNEL_UNREADABLE;
    enum sym_miss miss;
    int error;
    int fd;
    int rc = symint_archive_open_regular(archive, name, &fd, &miss, &error);
    if (rc != 0 || miss == SYM_MISS_NO_FILE)
        return rc;
    if (fd >= 0) {
        rc = take_kallsyms(k, fd, kernel, &state, &error);
        if (rc == SYM_ERR_NOMEM || (rc == 0 && state == SYM_KERNEL_OK))
            return rc < 0 ? rc : 1;
    }
    symint_kernel_free(k);
    *k = (struct symint_kernel){0};
    symint_append(said, room, "%.300s/%s: %s", symint_archive_path(archive), name,
                  rc == SYM_ERR_FORMAT  ? "no line of it is a kernel symbol"
                  : rc == SYM_ERR_LIMIT ? sym_error_text(rc)
                  : error != 0          ? strerror(error)
                  : fd < 0              ? sym_miss_text(miss)
                                        : sym_kernel_state_text(state));
    return 0;
}

/* Those of the capture are looked for before those that an archive has for whatever it is used with. */
static int load_archived(struct symint_kernel *k, const struct sym_kernel *kernel,
                         const struct symint_search_options *options, char *said, size_t room)
{
    char name[128];
    int rc = 0;
    for (int own = options->capture_id != NULL ? 1 : 0; own >= 0 && rc == 0; own--) {
        snprintf(name, sizeof(name), "%s%.64s%skallsyms", own != 0 ? "captures/" : "",
                 own != 0 ? options->capture_id : "", own != 0 ? "/" : "");
        for (size_t i = 0; i < options->archive_count && rc == 0; i++)
            rc = try_archived(k, options->archives[i], name, kernel, said, room);
    }
    return rc;
}

/* Kallsyms: the file the user vouches for, those of an archive, or the running kernel's. */
static int load_kallsyms(struct symint_kernel *k, const struct sym_kernel *kernel,
                         const struct symint_search_options *options, enum symint_boot boot,
                         const struct symint_system *system, enum sym_kernel_state *state,
                         int *error, char *said, size_t room)
{
    if (kernel->kallsyms != NULL)
        return read_kallsyms(k, kernel->kallsyms, kernel, state, error);
    int rc = load_archived(k, kernel, options, said, room);
    if (rc != 0) {
        *state = SYM_KERNEL_OK;
        return rc < 0 ? rc : 0;
    }
    return load_running(k, kernel, boot, system, state, error);
}

/* The map of the release, when there are no kallsyms. */
static int load_map(struct symint_kernel *k, const struct sym_kernel *kernel,
                    const struct symint_search_options *options, enum sym_kernel_state *state)
{
    struct symint_kernel map;
    enum sym_kernel_state map_state;
    int rc = symint_sysmap_load(&map, kernel, options, &map_state);
    if (rc != 0)
        return rc;
    if (map_state != SYM_KERNEL_NONE) {
        *state = map_state;
        symint_kernel_free(k);
        *k = map;
    } else if (map.detail[0] != '\0') {
        symint_append(k->detail, sizeof(k->detail), "%s", map.detail);
    }
    return 0;
}

/* Finds where the file of the kernel lies in memory, and says it. Without kallsyms it names the
 * kernel proper alone. */
static int place_vmlinux(const struct symint_kernel *k, struct symint_vmlinux *v,
                         const struct sym_kernel *kernel, enum sym_kernel_state *state, char *said,
                         size_t room)
{
    const char *how;
    int rc = symint_vmlinux_place(v, kernel, *state == SYM_KERNEL_OK ? k : NULL, &how);
    if (rc != 0)
        return rc;
    if (v->detail[0] != '\0')
        symint_append(said, room, "%s", v->detail);
    if (v->elf != NULL && v->placed)
        symint_append(said, room, "%.400s: moved by 0x%llx, %s%s", v->path,
                      (unsigned long long)v->shift, how,
                      v->unverified ? "; no build id was recorded to check it" : "");
    else if (v->elf != NULL)
        symint_append(said, room, "%.400s: %s", v->path, how);
    if (v->placed && *state != SYM_KERNEL_OK) {
        symint_append(said, room, "modules have no names: %s", sym_kernel_state_text(*state));
        *state = SYM_KERNEL_OK;
    }
    return 0;
}

int symint_kernel_load(struct symint_kernel *k, struct symint_vmlinux *v,
                       const struct sym_kernel *kernel, const struct symint_search_options *options,
                       enum symint_boot boot, const struct symint_system *system,
                       enum sym_kernel_state *state, int *error)
{
    char said[sizeof(k->detail)] = "";
    *k = (struct symint_kernel){0};
    *error = 0;
    int rc = load_kallsyms(k, kernel, options, boot, system, state, error, said, sizeof(said));
    if (rc != 0)
        return rc;
    rc = place_vmlinux(k, v, kernel, state, said, sizeof(said));
    if (rc == 0 && *state != SYM_KERNEL_OK && kernel->kallsyms == NULL)
        rc = load_map(k, kernel, options, state);
    if (rc != 0) {
        symint_kernel_free(k);
        return rc;
    }
    if (v->elf != NULL && *state != SYM_KERNEL_OK && kernel->needed_count > 0)
        *state = SYM_KERNEL_UNKNOWN_SHIFT;
    if (said[0] != '\0') {
        if (k->detail[0] != '\0')
            symint_append(said, sizeof(said), "%s", k->detail);
        memcpy(k->detail, said, sizeof(said));
    }
    return 0;
}
