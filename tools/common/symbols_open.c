/* SPDX-License-Identifier: MIT */
/* What options say of symbol files, as libsym takes it, and complaints about those that are not there. */
#include "symbols_open.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"
#include "symbols.h"
#include "text.h"

/* Why a path is no folder, or, with `archive`, neither that nor a file that may be one; NULL when it is. */
static const char *folder_fault(const char *path, bool archive)
{
    struct stat status;

    if (stat(path, &status) != 0)
        return strerror(errno);
    if (S_ISDIR(status.st_mode))
        return NULL;
    if (!archive)
        return "not a folder";
    if (!S_ISREG(status.st_mode))
        return "neither a folder nor a tar file";
    return access(path, R_OK) == 0 ? NULL : strerror(errno);
}

/* There may be nothing of what was recorded: no reason to fail. But it may be a slip, too. */
static void warn_folder(const char *option, const char *path)
{
    const char *fault = folder_fault(path, false);

    if (fault)
        cli_warn("%s %s: %s", option, path, fault);
}

/* What else may be wrong with it, libsym says. */
const char *symbols_vmlinux_fault(const char *path)
{
    struct stat status;

    if (stat(path, &status) != 0)
        return strerror(errno);
    if (!S_ISREG(status.st_mode))
        return "not a regular file";
    return access(path, R_OK) == 0 ? NULL : strerror(errno);
}

int symbols_check_folders(const struct symbol_options *o)
{
    for (size_t i = 0; i < o->symbol_dirs.count; i++) {
        const char *fault = folder_fault(o->symbol_dirs.items[i], true);

        if (fault) {
            cli_error("--symbols %s: %s", o->symbol_dirs.items[i], fault);
            return -1;
        }
    }
    if (o->sysroot)
        warn_folder("--sysroot", o->sysroot);
    for (size_t i = 0; i < o->debug_dirs.count; i++)
        warn_folder("--debug-dir", o->debug_dirs.items[i]);
    if (o->perf_map_dir)
        warn_folder("--perf-map-dir", o->perf_map_dir);
    if (o->vmlinux && symbols_vmlinux_fault(o->vmlinux))
        cli_warn("--vmlinux %s: %s; it is not used", o->vmlinux, symbols_vmlinux_fault(o->vmlinux));
    return 0;
}

static bool has_file(const struct sym_archive *a, const char *name)
{
    int fd;

    if (!a || sym_archive_open_file(a, name, &fd) < 0)
        return false;
    close(fd);
    return true;
}

bool symbols_archive_has(const struct sym_context *context, const struct symbol_options *o,
                         const char *capture, const char *name)
{
    struct text_buffer path = {0};
    bool found = false;

    text_printf(&path, "captures/%s/%s", capture, name);
    for (size_t i = 0; i < o->symbol_dirs.count && !found; i++) {
        const struct sym_archive *a = sym_context_archive(context, i);

        found = (*capture && has_file(a, path.data)) || has_file(a, name);
    }
    text_free(&path);
    return found;
}

static int is_any(void *user, const char *name, bool is_folder)
{
    (void)user;
    (void)name;
    (void)is_folder;
    return 1;
}

static bool has_any(const struct sym_archive *a, const char *folder)
{
    return sym_archive_list(a, folder, is_any, NULL) != 0;
}

/* It may be meant so: files of the same builds are in it all the same. */
void symbols_warn_foreign(const struct sym_context *context, const struct symbol_options *o,
                          const char *capture, const char *name)
{
    for (size_t i = 0; i < o->symbol_dirs.count; i++) {
        const struct sym_archive *a = sym_context_archive(context, i);
        struct text_buffer folder = {0};

        text_printf(&folder, "captures/%s", capture);
        if (a && has_any(a, "captures") && !has_any(a, folder.data))
            cli_warn("--symbols %s: was not packed for %s; only files of the same builds are used",
                     o->symbol_dirs.items[i], name);
        text_free(&folder);
    }
}

/* Large ones are read once: so it is here, not where symbols_check_folders is, that what is in them is judged. */
static void warn_damaged(const struct sym_context *context, const struct text_list *archives)
{
    for (size_t i = 0; i < archives->count; i++) {
        const struct sym_archive *a = sym_context_archive(context, i);
        const char *fault = a ? sym_archive_fault(a) : "";

        if (*fault)
            cli_warn("--symbols %s: %s; what is before is used", archives->items[i], fault);
    }
}

static void say_error(const char *error, const struct text_list *archives)
{
    for (size_t i = 0; i < archives->count; i++)
        if (strncmp(error, archives->items[i], strlen(archives->items[i])) == 0) {
            cli_error("--symbols %s", error);
            return;
        }
    cli_error("symbols: %s", error);
}

/* Takes the folders out of a colon-separated text, which is cut in pieces for that. */
static void split_folders(char *text, struct text_list *list)
{
    char *folder;

    while ((folder = strsep(&text, ":")) != NULL) {
        if (*folder == '\0')
            continue;
        list->items = cli_realloc(list->items, list->count + 1, sizeof *list->items);
        list->items[list->count++] = folder;
    }
}

int symbols_open_context(struct sym_context *context, const struct symbol_options *o,
                         const struct shape_options *shape)
{
    const char *environment = getenv("SPOOL_DEBUG_DIRS");
    char *folders = NULL;
    struct text_list from_environment = {0};
    const struct text_list *debug_dirs = &o->debug_dirs;
    int32_t *pids = cli_realloc(NULL, o->perf_map_pids.count, sizeof *pids);
    struct sym_options options = {
        .size = sizeof options,
        .sysroot = o->sysroot,
        .demangle = shape->demangle,
        .perf_maps = o->perf_maps,
        .perf_map_dir = o->perf_map_dir,
        .symbol_dirs = (const char *const *)o->symbol_dirs.items,
        .symbol_dir_count = o->symbol_dirs.count,
        .no_inlines = shape->no_inlines,
        .no_lines = o->no_lines,
        .debuginfod = o->debuginfod,
    };
    int rc;

    if (debug_dirs->count == 0 && environment) {
        folders = text_copy(environment, strlen(environment));
        split_folders(folders, &from_environment);
        debug_dirs = &from_environment;
    }
    options.debug_dirs = (const char *const *)debug_dirs->items;
    options.debug_dir_count = debug_dirs->count;
    for (size_t i = 0; i < o->perf_map_pids.count; i++)
        pids[i] = (int32_t)o->perf_map_pids.items[i];
    if (o->perf_map_pids.count > 0) {
        options.perf_map_pids = pids;
        options.perf_map_pid_count = o->perf_map_pids.count;
    }
    rc = sym_context_open(context, &options);
    free(pids);
    free(from_environment.items);
    free(folders);
    if (rc < 0)
        say_error(sym_context_error(context), &o->symbol_dirs);
    else
        warn_damaged(context, &o->symbol_dirs);
    return rc < 0 ? -1 : 0;
}
