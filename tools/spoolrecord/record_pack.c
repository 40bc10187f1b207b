/* SPDX-License-Identifier: MIT */
/* Finding and running spoolpack. */
#include "record_pack.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "archive_name.h"
#include "cli.h"
#include "record_signals.h"
#include "text.h"

/* Makes *path the spoolpack in this folder. Whether it can be run. */
static bool is_in(struct text_buffer *path, const char *folder, size_t size)
{
    struct stat found;

    path->size = 0;
    text_append(path, size > 0 ? folder : ".", size > 0 ? size : 1); /* "" in PATH: here */
    text_printf(path, "/spoolpack");
    return stat(path->data, &found) == 0 && S_ISREG(found.st_mode) && access(path->data, X_OK) == 0;
}

char *record_pack_find(void)
{
    struct text_buffer path = {0};
    char self[PATH_MAX];
    ssize_t size = readlink("/proc/self/exe", self, sizeof self);
    const char *at = getenv("PATH");

    while (size > 0 && self[size - 1] != '/')
        size--;
    if (size > 1 && is_in(&path, self, (size_t)size - 1))
        return path.data;
    while (at != NULL) {
        size_t length = strcspn(at, ":");

        if (is_in(&path, at, length))
            return path.data;
        at = at[length] == ':' ? at + length + 1 : NULL;
    }
    text_free(&path);
    return NULL;
}

static int refuse(const char *output, const char *why)
{
    cli_error("--pack %s: %s", output, why);
    return -1;
}

/* The folder that a path is in. Returns where its last part begins; *size is that of the part. */
static const char *split(const char *path, struct text_buffer *parent, size_t *size)
{
    size_t end = strlen(path), begin;

    while (end > 1 && path[end - 1] == '/')
        end--;
    for (begin = end; begin > 0 && path[begin - 1] != '/';)
        begin--;
    text_append(parent, begin > 0 ? path : ".", begin > 0 ? begin : 1);
    *size = end - begin;
    return path + begin;
}

/* Whether two paths lead to the same, which need not be there yet. */
static bool is_same_place(const char *a, const char *b)
{
    struct text_buffer a_parent = {0}, b_parent = {0};
    struct stat a_status, b_status;
    size_t a_size, b_size;
    const char *a_name = split(a, &a_parent, &a_size), *b_name = split(b, &b_parent, &b_size);
    bool a_there = stat(a, &a_status) == 0, b_there = stat(b, &b_status) == 0;
    bool same = a_there == b_there;

    if (same && !a_there)
        same = a_size == b_size && memcmp(a_name, b_name, a_size) == 0 &&
               stat(a_parent.data, &a_status) == 0 && stat(b_parent.data, &b_status) == 0;
    text_free(&a_parent);
    text_free(&b_parent);
    return same && a_status.st_dev == b_status.st_dev && a_status.st_ino == b_status.st_ino;
}

/* What is made anew is written beside its name and renamed. */
static int check_parent(const char *output)
{
    struct text_buffer parent = {0};
    size_t size;
    int rc;

    split(output, &parent, &size);
    rc = faccessat(AT_FDCWD, parent.data, W_OK | X_OK, AT_EACCESS);
    if (rc != 0)
        cli_error("--pack %s: %s: %s", output, parent.data, strerror(errno));
    text_free(&parent);
    return rc;
}

int record_pack_check(const char *output, const char *spool, bool force)
{
    bool tar = archive_name_is_tar(output);
    struct stat status;

    if (strcmp(output, "-") == 0)
        return 0;
    if (is_same_place(output, spool))
        return refuse(output, "is the spool's own name: -o or --pack names another");
    if (stat(output, &status) != 0) {
        if (errno != ENOENT)
            return refuse(output, strerror(errno));
        if (!tar && lstat(output, &status) == 0)
            return refuse(output, "is a symbolic link to nothing");
        return archive_name_misleads(output)
                   ? refuse(output, "would become a folder (" ARCHIVE_NAME_RULE ")")
                   : check_parent(output);
    }
    if (tar && S_ISDIR(status.st_mode))
        return refuse(output, "is a directory");
    if (!tar && !S_ISDIR(status.st_mode))
        return refuse(output, "is there and is no folder (" ARCHIVE_NAME_RULE ")");
    if (S_ISREG(status.st_mode))
        return force ? check_parent(output)
                     : refuse(output, "exists: --pack names another, --force replaces it");
    if (faccessat(AT_FDCWD, output, tar ? W_OK : W_OK | X_OK, AT_EACCESS) != 0)
        return refuse(output, strerror(errno));
    return 0;
}

/* 0 with *pid set, or an errno. The pipe that we may not die of and the signals that we keep for a moment are not its
 * business. */
static int spawn(const char *spoolpack, const char *const *args, const sigset_t *mask, pid_t *pid)
{
    posix_spawnattr_t attributes;
    sigset_t defaults;
    int error = posix_spawnattr_init(&attributes);

    if (error != 0)
        return error;
    sigemptyset(&defaults);
    sigaddset(&defaults, SIGPIPE);
    posix_spawnattr_setsigdefault(&attributes, &defaults);
    posix_spawnattr_setsigmask(&attributes, mask);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
    /* execve does not write to its arguments, whatever its type says. */
    error = posix_spawn(pid, spoolpack, NULL, &attributes, (char *const *)(uintptr_t)args, environ);
    posix_spawnattr_destroy(&attributes);
    return error;
}

/* 0 with *status set, or an errno. A child that has ended keeps its number until signals are no longer passed to it. */
static int wait_for(pid_t pid, int *status)
{
    siginfo_t info;

    while (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT) < 0 && errno == EINTR)
        ;
    record_signals_pass(0);
    while (waitpid(pid, status, 0) < 0)
        if (errno != EINTR)
            return errno;
    return 0;
}

int record_pack_run(const struct record_pack *pack)
{
    const char *args[9] = {"spoolpack"};
    sigset_t all, before;
    size_t count = 1;
    pid_t pid = 0;
    int error, status;

    if (pack->quiet)
        args[count++] = "-q";
    if (pack->verbose)
        args[count++] = "-v";
    /* Elsewhere there is nothing to replace, and it would be a usage error. */
    if (pack->force && archive_name_is_tar(pack->output) && strcmp(pack->output, "-") != 0)
        args[count++] = "--force";
    args[count++] = "-o";
    args[count++] = pack->output;
    args[count++] = "--";
    args[count] = pack->spool;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &before);
    error = spawn(pack->spoolpack, args, &before, &pid);
    if (error == 0)
        record_signals_pass(pid);
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (error == 0)
        error = wait_for(pid, &status);
    if (error != 0) {
        cli_error("%s: %s", pack->spoolpack, strerror(error));
        return -1;
    }
    if (WIFSIGNALED(status))
        cli_error("%s: symbols were not packed: spoolpack was ended by signal %d", pack->spool,
                  WTERMSIG(status));
    else if (WEXITSTATUS(status) != 0)
        cli_error("%s: symbols were not packed: spoolpack ended with status %d", pack->spool,
                  WEXITSTATUS(status));
    return status == 0 ? 0 : -1;
}
