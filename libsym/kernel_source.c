/* SPDX-License-Identifier: MIT */
/* Which kernel symbols may be used: the file the user vouches for, /proc/kallsyms of the same
 * boot and kernel, else the System.map of the release. */
#include "kernel.h"

#include "openfile.h"
#include "sysmap.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_KALLSYMS ((size_t)1024 * 1024 * 1024)

/* Reads a file of kallsyms. 0 and *state; else as sym_kernel_load for a file it was given. */
static int read_kallsyms(struct symint_kernel *k, const char *path, const struct sym_kernel *kernel,
                         enum sym_kernel_state *state, int *error)
{
    enum sym_miss miss;
    char *text;
    size_t size;
    int fd;
    *state = SYM_KERNEL_UNREADABLE;
    int rc = symint_open_regular(NULL, path, &fd, &miss, error);
    if (rc != 0)
        return rc;
    if (fd < 0)
        return miss == SYM_MISS_NO_FILE ? SYM_ERR_NOT_FOUND : SYM_ERR_IO;
    rc = symint_read_all(fd, MAX_KALLSYMS, &text, &size);
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
    return rc == SYM_ERR_NOMEM ? rc : 0;
}

int symint_kernel_load(struct symint_kernel *k, const struct sym_kernel *kernel,
                       const struct sym_options *options, enum symint_boot boot,
                       const struct symint_system *system, enum sym_kernel_state *state, int *error)
{
    struct symint_kernel map;
    enum sym_kernel_state map_state;
    *k = (struct symint_kernel){0};
    *error = 0;
    if (kernel->kallsyms != NULL)
        return read_kallsyms(k, kernel->kallsyms, kernel, state, error);
    int rc = load_running(k, kernel, boot, system, state, error);
    if (rc != 0 || *state == SYM_KERNEL_OK)
        return rc;
    rc = symint_sysmap_load(&map, kernel, options, &map_state);
    if (rc != 0) {
        symint_kernel_free(k);
        return rc;
    }
    if (map_state != SYM_KERNEL_NONE) {
        *state = map_state;
        symint_kernel_free(k);
        *k = map;
    } else if (map.detail[0] != '\0') {
        size_t used = strlen(k->detail);
        snprintf(k->detail + used, sizeof(k->detail) - used, "%s%s", used > 0 ? "; " : "",
                 map.detail);
    }
    return 0;
}
