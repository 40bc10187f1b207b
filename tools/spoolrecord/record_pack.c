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

/* What is made anew is written beside its name and renamed. */
static int check_parent(const char *output)
{
    size_t size = strlen(output);
    struct text_buffer parent = {0};
    int rc;

    while (size > 1 && output[size - 1] == '/')
        size--;
    while (size > 0 && output[size - 1] != '/')
        size--;
    text_append(&parent, size > 0 ? output : ".", size > 0 ? size : 1);
    rc = faccessat(AT_FDCWD, parent.data, W_OK | X_OK, AT_EACCESS);
    if (rc != 0)
        cli_error("--pack %s: %s: %s", output, parent.data, strerror(errno));
    text_free(&parent);
    return rc;
}

int record_pack_check(const char *output, bool force)
{
    bool tar = archive_name_is_tar(output);
    struct stat status;

    if (strcmp(output, "-") == 0)
        return 0;
    if (stat(output, &status) != 0) {
        if (errno != ENOENT)
            return refuse(output, strerror(errno));
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
