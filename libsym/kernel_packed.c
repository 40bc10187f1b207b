/* SPDX-License-Identifier: MIT */
/*
 * Packed symbols as a source of kernel names. Nothing about this machine matters to them: the id of the capture says
 * that they are its own.
 */
#include "kernel_packed.h"

#include "archive.h"
#include "words.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

int symint_kernel_packed_load(struct sym_context *c)
{
    symint_packed_set_free(&c->kernel_packed);
    c->kernel_packed = (struct symint_packed_set){0};
    if (c->capture.id == NULL || c->search.archive_count == 0)
        return 0;
    int rc = symint_packed_load_kernel(&c->kernel_packed, c->search.archives,
                                       c->search.archive_count, c->capture.id);
    return rc == 0 ? symint_keep_packed_fault(&c->registry, &c->strings.arena, &c->kernel_packed)
                   : rc;
}

/* The first archive that has a file. */
static const char *path_of(const struct sym_context *c, const char *name)
{
    for (size_t i = 0; i < c->search.archive_count; i++) {
        enum sym_miss miss;
        int error;
        int fd;
        if (symint_archive_open_regular(c->search.archives[i], name, &fd, &miss, &error) != 0 ||
            fd < 0)
            continue;
        close(fd);
        return symint_archive_path(c->search.archives[i]);
    }
    return "an archive";
}

void symint_kernel_packed_tell(struct sym_context *c)
{
    const struct symint_packed_set *set = &c->kernel_packed;
    char *detail = c->kernel.detail;
    const size_t room = sizeof(c->kernel.detail);
    if (set->count > 0 && c->kernel_state != SYM_KERNEL_OK) {
        /* Why nothing else may be used matters no more. */
        char name[256];
        snprintf(name, sizeof(name), "captures/%.200s/kernel.syms", c->capture.id);
        c->kernel_state = SYM_KERNEL_OK;
        int used = snprintf(detail, room, "%.600s/%s", path_of(c, name), name);
        if (set->count == 1)
            snprintf(detail + used, room - (size_t)used, ": %u addresses",
                     symint_packed_count(set->items[0]));
        else
            snprintf(detail + used, room - (size_t)used, " and %zu more of them", set->count - 1);
    }
    if (set->damaged_count > 0)
        symint_append(detail, room, "%s", set->detail);
}
