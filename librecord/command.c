/* SPDX-License-Identifier: MIT */
/*
 * Starting a command in two steps: forked, and exec'd when it is told to.
 *
 *     caller                                   child
 *     fork                                     signals, standard output, makes the status pipe
 *     prepare returns      <- control: ready, the pipe's read end
 *     run                  -> control: go      execvp
 *     run returns          <- status: errno, or the end when exec closed it
 *
 * Only the child has the pipe's write end. Were the pipe made before the fork, a fork of another thread at the
 * same time could take a copy with it, and run would wait until that process ends as well.
 */
#include "spool/record.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define EXIT_NOT_RUN 127 /* as of shells */

enum phase { PHASE_NEW, PHASE_PREPARED, PHASE_RUN };

struct record_command {
    enum phase phase;
    pid_t pid;
    int control_fd;
    int status_fd;
    int error;  /* errno value of the latest ERR_COMMAND */
    bool ended; /* and reaped */
    int wait_status;
};

/* ---- descriptors ---- */

/* A descriptor that is not 0, 1 or 2, in place of fd, which is closed if it was. Returns -1 with errno. Those three
 * may be closed in the caller, and are the command's. */
static int above_standard(int fd)
{
    if (fd < 0 || fd > 2)
        return fd;
    int above = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    int error = errno;
    close(fd);
    errno = error;
    return above;
}

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* Both ends of something, above 2 or closed. Returns 0 or an errno value. */
static int settle_pair(int fds[2])
{
    fds[0] = above_standard(fds[0]);
    int error = fds[0] < 0 ? errno : 0;
    fds[1] = above_standard(fds[1]);
    if (fds[1] < 0 && error == 0)
        error = errno;
    if (error != 0) {
        close_fd(&fds[0]);
        close_fd(&fds[1]);
    }
    return error;
}

/* ---- the child: no function that is not async-signal-safe, as the caller may have threads ---- */

struct launch {
    char *const *argv;
    int stdout_fd;
    bool default_signals;
    int control[2]; /* the caller's end, the child's */
    int caller_fd;  /* pidfd of the caller, -1: the kernel gives none */
    sigset_t mask;  /* the caller's */
};

/* What exec does to signals, done before: until then no handler of the caller may run in its copy. */
static void set_signals(const struct launch *l)
{
    sigset_t mask = l->mask;
    struct sigaction action;
    for (int number = 1; number < NSIG; number++) {
        bool by_default =
            l->default_signals && (number == SIGINT || number == SIGTERM || number == SIGPIPE);
        if (sigaction(number, NULL, &action) == 0 && (by_default || action.sa_handler != SIG_IGN)) {
            memset(&action, 0, sizeof(action));
            action.sa_handler = SIG_DFL;
            sigaction(number, &action, NULL);
        }
    }
    if (l->default_signals)
        sigemptyset(&mask);
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
}

static int set_stdout(int fd)
{
    int rc = fd == STDOUT_FILENO ? fcntl(fd, F_SETFD, 0) : dup2(fd, STDOUT_FILENO);
    return rc < 0 ? errno : 0;
}

/* Tells the caller that all is ready, with a descriptor, or why not. */
static bool send_ready(int control, int error, int fd)
{
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } ancillary;
    struct iovec data = {.iov_base = &error, .iov_len = sizeof(error)};
    struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1};
    ssize_t n;
    if (error == 0) {
        memset(&ancillary, 0, sizeof(ancillary));
        message.msg_control = ancillary.bytes;
        message.msg_controllen = sizeof(ancillary.bytes);
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof(fd));
        memcpy(CMSG_DATA(header), &fd, sizeof(fd));
    }
    do
        n = sendmsg(control, &message, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    return n == (ssize_t)sizeof(error) && error == 0;
}

/* Waits for the word to go. Returns false when the caller has ended or dropped the command. The pidfd is for
 * when another process holds a copy of the caller's end and keeps it open. */
static bool wait_for_go(int control, int caller_fd)
{
    struct pollfd fds[2] = {{.fd = control, .events = POLLIN}, {.fd = caller_fd, .events = POLLIN}};
    for (;;) {
        char go;
        if (poll(fds, 2, -1) < 0) {
            if (errno != EINTR)
                return false;
        } else if (fds[0].revents != 0) {
            ssize_t n = read(control, &go, 1);
            if (n >= 0 || errno != EINTR)
                return n == 1;
        } else if (fds[1].revents != 0) {
            return false;
        }
    }
}

static _Noreturn void be_child(const struct launch *l)
{
    int status[2] = {-1, -1};
    close(l->control[0]); /* our copy would hide the caller's end from us, were there no pidfd */
    set_signals(l);
    int error = l->stdout_fd > 0 ? set_stdout(l->stdout_fd) : 0;
    if (error == 0)
        error = pipe2(status, O_CLOEXEC) != 0 ? errno : settle_pair(status);
    if (!send_ready(l->control[1], error, status[0]) || !wait_for_go(l->control[1], l->caller_fd))
        _exit(EXIT_NOT_RUN);

    /* POSIX does not list execvp as async-signal-safe, because it reads the environment; glibc (since 2.24)
     * and musl allocate nothing in it. Searching PATH ahead of the fork would lose what it does with a file
     * that appears meanwhile, EACCES along the way, and scripts without "#!" (run by /bin/sh). */
    execvp(l->argv[0], l->argv);
    error = errno;
    while (write(status[1], &error, sizeof(error)) < 0 && errno == EINTR)
        ;
    _exit(EXIT_NOT_RUN);
}

/* ---- the caller ---- */

struct record_command *record_command_new(void)
{
    struct record_command *c = calloc(1, sizeof(*c));
    if (c != NULL) {
        c->control_fd = -1;
        c->status_fd = -1;
    }
    return c;
}

/* Waits for a child that ends by itself or was killed. */
static void reap(struct record_command *c)
{
    c->wait_status = EXIT_NOT_RUN << 8; /* stays when somebody else reaps our children */
    while (waitpid(c->pid, &c->wait_status, 0) < 0 && errno == EINTR)
        ;
    c->ended = true;
}

void record_command_free(struct record_command *c)
{
    if (c == NULL)
        return;
    if (c->phase == PHASE_PREPARED && !c->ended) {
        kill(c->pid, SIGKILL);
        reap(c);
    }
    close_fd(&c->control_fd);
    close_fd(&c->status_fd);
    free(c);
}

/* The child's send_ready. Returns 0 and the descriptor, or an errno value. */
static int receive_ready(int control, int *fd)
{
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } ancillary;
    int error = 0;
    struct iovec data = {.iov_base = &error, .iov_len = sizeof(error)};
    struct msghdr message = {.msg_iov = &data,
                             .msg_iovlen = 1,
                             .msg_control = ancillary.bytes,
                             .msg_controllen = sizeof(ancillary.bytes)};
    ssize_t n;
    do
        n = recvmsg(control, &message, MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return errno;
    if (n != (ssize_t)sizeof(error))
        return ECHILD; /* killed before it was ready */
    if (error != 0)
        return error;
    const struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    if (header == NULL || header->cmsg_type != SCM_RIGHTS)
        return EMFILE; /* the kernel leaves out a descriptor that we have no room for */
    memcpy(fd, CMSG_DATA(header), sizeof(*fd));
    *fd = above_standard(*fd);
    return *fd < 0 ? errno : 0;
}

/* Returns 0 or an errno value; l->control[0] stays open after 0. */
static int start_child(struct record_command *c, struct launch *l)
{
    sigset_t all;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, l->control) != 0)
        return errno;
    int error = settle_pair(l->control);
    if (error != 0)
        return error;
    l->caller_fd = above_standard((int)syscall(SYS_pidfd_open, getpid(), 0));

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &l->mask);
    pid_t pid = fork();
    if (pid == 0)
        be_child(l);
    error = errno;
    pthread_sigmask(SIG_SETMASK, &l->mask, NULL);
    close_fd(&l->control[1]);
    close_fd(&l->caller_fd);
    if (pid > 0) {
        c->pid = pid;
        error = receive_ready(l->control[0], &c->status_fd);
        if (error != 0) {
            kill(pid, SIGKILL);
            reap(c);
        }
    }
    if (error != 0)
        close_fd(&l->control[0]);
    return error;
}

/* Reads the options that the caller's version of the struct has. */
static bool read_options(const struct record_command_options *options, struct launch *l)
{
    struct record_command_options o = {0};
    if (options != NULL) {
        if (options->size < sizeof(options->size) || options->size > sizeof(o))
            return false;
        memcpy(&o, options, options->size);
    }
    l->stdout_fd = o.stdout_fd;
    l->default_signals = o.default_signals;
    return o.stdout_fd >= -1;
}

int record_command_prepare(struct record_command *c, char *const argv[],
                           const struct record_command_options *options)
{
    struct launch l = {.argv = argv};
    if (c->phase != PHASE_NEW || argv == NULL || argv[0] == NULL || !read_options(options, &l))
        return RECORD_ERR_MISUSE;
    int error = start_child(c, &l);
    if (error != 0) { /* as new */
        *c = (struct record_command){.control_fd = -1, .status_fd = -1, .error = error};
        return RECORD_ERR_COMMAND;
    }
    c->control_fd = l.control[0];
    c->phase = PHASE_PREPARED;
    return 0;
}

pid_t record_command_pid(const struct record_command *c)
{
    return c->pid;
}

int record_command_run(struct record_command *c)
{
    int error = 0;
    ssize_t n;
    if (c->phase != PHASE_PREPARED)
        return RECORD_ERR_MISUSE;
    c->phase = PHASE_RUN;
    /* One killed meanwhile refuses the byte and closes the pipe: as if it had been killed right after
     * its exec, which its wait status says. */
    do
        n = send(c->control_fd, "", 1, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    close_fd(&c->control_fd);
    do
        n = read(c->status_fd, &error, sizeof(error));
    while (n < 0 && errno == EINTR);
    close_fd(&c->status_fd);
    if (n != (ssize_t)sizeof(error))
        return 0;
    c->error = error;
    if (!c->ended)
        reap(c);
    return RECORD_ERR_COMMAND;
}

int record_command_errno(const struct record_command *c)
{
    return c->error;
}

static int collect(struct record_command *c, int flags, int *status)
{
    if (!c->ended) {
        pid_t pid = waitpid(c->pid, &c->wait_status, flags);
        if (pid < 0)
            return errno == EINTR ? 0 : RECORD_ERR_NO_PROCESS; /* the caller reaped it */
        if (pid == 0)
            return 0;
        c->ended = true;
    }
    if (status != NULL)
        *status = c->wait_status;
    return 1;
}

int record_command_try_wait(struct record_command *c, int *status)
{
    return c->phase == PHASE_NEW ? RECORD_ERR_MISUSE : collect(c, WNOHANG, status);
}

int record_command_wait(struct record_command *c, int *status)
{
    /* One that was not told to run would never end. */
    return c->phase != PHASE_RUN ? RECORD_ERR_MISUSE : collect(c, 0, status);
}
