/* SPDX-License-Identifier: MIT */
/* Finding and running spoolpack. */
#include "record_pack.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli.h"
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

int record_pack_run(const char *spoolpack, const char *spool, const char *folder)
{
    const char *args[] = {"spoolpack", "-o", folder, "--", spool, NULL};
    posix_spawnattr_t attributes;
    sigset_t defaults;
    pid_t pid;
    int error, status;

    sigemptyset(&defaults);
    sigaddset(&defaults, SIGPIPE);
    error = posix_spawnattr_init(&attributes);
    if (error == 0) {
        posix_spawnattr_setsigdefault(&attributes, &defaults);
        posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
        /* execve does not write to its arguments, whatever its type says. */
        error = posix_spawn(&pid, spoolpack, NULL, &attributes, (char *const *)(uintptr_t)args,
                            environ);
        posix_spawnattr_destroy(&attributes);
    }
    if (error != 0) {
        cli_error("%s: %s", spoolpack, strerror(error));
        return -1;
    }
    while (waitpid(pid, &status, 0) < 0) {
        if (errno != EINTR) {
            cli_error("%s: %s", spoolpack, strerror(errno));
            return -1;
        }
    }
    if (WIFSIGNALED(status))
        cli_error("%s: symbols were not packed: spoolpack was ended by signal %d", spool,
                  WTERMSIG(status));
    else if (WEXITSTATUS(status) != 0)
        cli_error("%s: symbols were not packed: spoolpack ended with status %d", spool,
                  WEXITSTATUS(status));
    return status == 0 ? 0 : -1;
}
