/* SPDX-License-Identifier: MIT */
/* The list of temporary files, and the handlers that remove them. */
#include "temporary.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "text.h"

/* Changed only while the signals below are blocked. */
static struct temporary *listed;

/* Every signal that ends a process by default and that a user, a terminal, a pipe or a resource
 * limit sends. SIGPIPE is one of them: standard error may be a pipe. */
static const int fatal_signals[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGPIPE, SIGALRM,
                                    SIGTERM, SIGXCPU, SIGXFSZ, SIGUSR1, SIGUSR2};

static void unlink_all(void)
{
    for (const struct temporary *t = listed; t != NULL; t = t->next)
        unlink(t->path);
}

static void on_signal(int number)
{
    unlink_all();
    /* It is blocked while this runs and ends the process on return. */
    signal(number, SIG_DFL);
    raise(number);
}

static void block_signals(sigset_t *before)
{
    sigset_t set;

    sigemptyset(&set);
    for (size_t i = 0; i < sizeof fatal_signals / sizeof fatal_signals[0]; i++)
        sigaddset(&set, fatal_signals[i]);
    sigprocmask(SIG_BLOCK, &set, before);
}

static void unblock_signals(const sigset_t *before)
{
    sigprocmask(SIG_SETMASK, before, NULL);
}

/* Once: handlers for what would end the process, and the same for exit(3). What was inherited as
 * ignored (nohup, SIGPIPE of some parents) stays ignored. */
static void install_handlers(void)
{
    static bool done;
    struct sigaction action = {.sa_handler = on_signal};

    if (done)
        return;
    done = true;
    sigfillset(&action.sa_mask);
    for (size_t i = 0; i < sizeof fatal_signals / sizeof fatal_signals[0]; i++) {
        struct sigaction old;

        if (sigaction(fatal_signals[i], NULL, &old) == 0 && old.sa_handler == SIG_DFL)
            sigaction(fatal_signals[i], &action, NULL);
    }
    atexit(unlink_all);
}

int temporary_make(struct temporary *t, char *pattern)
{
    sigset_t before;
    int fd, error;

    *t = (struct temporary){0};
    install_handlers();
    block_signals(&before);
    fd = mkostemp(pattern, O_CLOEXEC);
    error = errno;
    if (fd >= 0) {
        t->path = pattern;
        t->next = listed;
        listed = t;
    }
    unblock_signals(&before);
    if (fd < 0)
        free(pattern);
    errno = error;
    return fd;
}

void temporary_forget(struct temporary *t)
{
    int error = errno;
    sigset_t before;

    if (t->path == NULL)
        return;
    block_signals(&before);
    for (struct temporary **at = &listed; *at != NULL; at = &(*at)->next) {
        if (*at == t) {
            *at = t->next;
            break;
        }
    }
    unblock_signals(&before);
    free(t->path);
    t->path = NULL;
    errno = error;
}

const char *temporary_folder(void)
{
    const char *folder = getenv("TMPDIR");

    return folder != NULL && *folder != '\0' ? folder : "/tmp";
}

int temporary_open_unlinked(void)
{
    struct text_buffer path = {0};
    int fd = open(temporary_folder(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

    if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL))
        return fd;
    text_printf(&path, "%s/spooltools-XXXXXX", temporary_folder());
    fd = mkostemp(path.data, O_CLOEXEC);
    if (fd >= 0)
        unlink(path.data);
    text_free(&path);
    return fd;
}
