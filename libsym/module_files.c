/* SPDX-License-Identifier: MIT */
/* The files that the names and lines of a module come from, handed over as descriptors. */
#include "context.h"
#include "debug_paths.h"
#include "elf_private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

struct module_files {
    struct symint_found found;
    struct symint_debug_file supplementary;
    struct symint_debug_file package;
};

static void close_files(struct module_files *f)
{
    symint_debug_file_close(&f->found.program);
    symint_debug_file_close(&f->found.debug);
    symint_debug_file_close(&f->supplementary);
    symint_debug_file_close(&f->package);
    free(f->found.beside);
    f->found.beside = NULL;
}

/* Whether parts of the debug information may lie in split files: their addresses do not. */
static bool may_be_split(const struct symint_elf *e)
{
    return symint_elf_section(e, ".debug_addr") != NULL ||
           symint_elf_section(e, ".zdebug_addr") != NULL;
}

/* Finds what a file is wanted to be. 0 or SYM_ERR_NOMEM; *f is to be closed in either case. */
static int find_files(struct sym_context *c, const struct symint_file *file, struct module_files *f)
{
    const char *why;
    *f = (struct module_files){.supplementary = {.fd = -1}, .package = {.fd = -1}};
    struct symint_arena *arena = &c->strings.arena;
    int rc = symint_locate_files(arena, &c->search, &file->wanted, &f->found);
    const struct symint_debug_file *info =
        f->found.debug.elf != NULL ? &f->found.debug : &f->found.program;
    if (rc != 0 || info->elf == NULL || info->fd < 0 || !symint_elf_has_debug_info(info->elf))
        return rc;
    rc = symint_find_supplementary(arena, &c->search, info, &f->supplementary, &why);
    if (rc == 0 && may_be_split(info->elf))
        rc = symint_find_package(arena, &c->search, info, f->found.beside, &f->package, &why);
    return rc;
}

/* The file by which the module's image was found: other paths may lead to files of that build. */
static const struct symint_file *finder(const struct symint_file *file)
{
    const struct symint_image *image = file->image;
    if (image == NULL && file->shared != NULL)
        image = file->shared->image;
    return image != NULL && image->by != NULL ? image->by : file;
}

static int find_module_files(struct sym_context *c, const struct symint_file *file,
                             struct module_files *f)
{
    const struct symint_file *by = finder(file);
    int rc = find_files(c, by, f);
    if (rc != 0 || by == file || f->found.program.elf != NULL || f->found.debug.elf != NULL)
        return rc;
    close_files(f);
    return find_files(c, file, f);
}

/* ---- handing over ---- */

/* A file with these bytes. -1: there can be none. */
static int file_of_memory(const uint8_t *bytes, uint64_t size)
{
    int fd = memfd_create("vdso", MFD_CLOEXEC);
    while (fd >= 0 && size > 0) {
        ssize_t n = write(fd, bytes, (size_t)size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            close(fd);
            return -1;
        }
        bytes += n;
        size -= (uint64_t)n;
    }
    return fd;
}

/* Hands a file over, if there is one. */
static int hand_over(struct symint_debug_file *f, enum sym_file_kind kind, struct sym_file *files,
                     size_t capacity, int *count)
{
    if (f->elf == NULL || (size_t)*count == capacity)
        return 0;
    struct sym_file *out = &files[*count];
    size_t size;
    const uint8_t *id = symint_elf_build_id(f->elf, &size);
    *out = (struct sym_file){.kind = kind, .fd = f->fd, .build_id_size = size};
    if (size > 0)
        memcpy(out->build_id, id, size);
    out->path = symint_join("%s%s", symint_shown_root(f->root), f->path);
    if (out->path == NULL)
        return SYM_ERR_NOMEM;
    if (f->fd < 0 && (out->fd = file_of_memory(f->elf->input.memory, f->elf->input.size)) < 0 &&
        symint_is_shortage(symint_shortage(errno))) {
        int rc = symint_shortage(errno);
        free(out->path);
        return rc;
    }
    f->fd = -1;
    /* Nothing else uses the descriptor, but who opened it may have read from it. */
    if (out->fd < 0 || lseek(out->fd, 0, SEEK_SET) != 0 ||
        fcntl(out->fd, F_SETFD, FD_CLOEXEC) != 0) {
        if (out->fd >= 0)
            close(out->fd);
        free(out->path);
        return 0;
    }
    (*count)++;
    return 0;
}

int sym_module_files(struct sym_context *c, uint32_t handle, struct sym_file *files,
                     size_t capacity)
{
    if (!c->open)
        return symint_fail(c, SYM_ERR_MISUSE, "the context is not open");
    if (handle >= c->registry.count)
        return symint_fail(c, SYM_ERR_MISUSE, "module %u of %u", handle, c->registry.count);
    if (files == NULL && capacity > 0)
        return symint_fail(c, SYM_ERR_MISUSE, "room for %zu files but no list of them", capacity);
    const struct symint_module *m = &c->registry.modules[handle];
    if (m->kernel || m->jit || m->anonymous || c->options.no_native || c->options.native != NULL)
        return 0; /* no file is asked */
    struct module_files f;
    int count = 0;
    int rc = find_module_files(c, c->registry.files[m->file], &f);
    if (rc == 0)
        rc = hand_over(&f.found.program, SYM_FILE_PROGRAM, files, capacity, &count);
    if (rc == 0)
        rc = hand_over(&f.found.debug, SYM_FILE_DEBUG, files, capacity, &count);
    if (rc == 0)
        rc = hand_over(&f.supplementary, SYM_FILE_SUPPLEMENTARY, files, capacity, &count);
    if (rc == 0)
        rc = hand_over(&f.package, SYM_FILE_PACKAGE, files, capacity, &count);
    close_files(&f);
    if (rc == 0)
        return count;
    while (count-- > 0) {
        close(files[count].fd);
        free(files[count].path);
    }
    return symint_fail_plain(c, rc);
}
