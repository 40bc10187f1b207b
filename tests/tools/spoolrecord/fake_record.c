/* SPDX-License-Identifier: MIT */
/*
 * Stands in for librecord under spoolrecord, so that what goes wrong in a kernel can be made to: commands are run and
 * waited for as the library does, but nobody is sampled, and the spool is lines of text that say what was asked for.
 *
 *     FAKE_OPEN, FAKE_ATTACH, FAKE_FINISH       CODE TEXT    the call fails so
 *     FAKE_ENABLE, FAKE_PREPARE                 CODE
 *     FAKE_POLL         N CODE TEXT             the Nth poll fails so
 *     FAKE_POLL_BYTES   N                       each poll writes so many bytes
 *     FAKE_LOG          LEVEL TEXT              is said when the session opens
 *     FAKE_CHILDREN     N                       so many followed children never end
 *     FAKE_DESCENDANTS  N                       so many processes below each run already, which are no targets
 *     FAKE_SUMMARY      lost|cut|missing|kernel|bad   counters
 *     FAKE_STOP         FILE                    a poll waits until this file is there (the output's other end is slow)
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "spool/record.h"

struct record_session {
    struct record_options options;
    record_write_fn *write;
    void *user;
    record_log_fn *log;
    void *log_user;
    pid_t targets[64];
    size_t target_count;
    uint64_t bytes, polls, begun_ns, ended_ns;
    char error[512];
};

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

/* "CODE TEXT" of a variable becomes the session's error. 0: not set. */
static int scripted(struct record_session *s, const char *script)
{
    char *text;
    long code;

    if (script == NULL)
        return 0;
    code = strtol(script, &text, 10);
    if (s != NULL)
        snprintf(s->error, sizeof s->error, "%s", *text == ' ' ? text + 1 : text);
    return (int)code;
}

static int put(struct record_session *s, const char *format, ...)
{
    char line[1024];
    va_list args;
    int size, error;

    va_start(args, format);
    size = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    error = s->write(s->user, line, (size_t)size);
    if (error != 0) {
        snprintf(s->error, sizeof s->error, "writing failed with errno %d", error);
        return RECORD_ERR_IO;
    }
    s->bytes += (uint64_t)size;
    return 0;
}

void record_options_init(struct record_options *options, size_t size)
{
    *options = (struct record_options){
        .size = size, .frequency_hz = 999, .stack_size_bytes = 32768, .spool_version = 3};
}

struct record_session *record_session_new(void)
{
    struct record_session *s = calloc(1, sizeof *s);

    if (s != NULL)
        strcpy(s->error, "no error");
    return s;
}

void record_session_free(struct record_session *s)
{
    free(s);
}

void record_session_set_log(struct record_session *s, record_log_fn *log, void *user)
{
    s->log = log;
    s->log_user = user;
}

int record_session_open_callback(struct record_session *s, record_write_fn *write, void *user,
                                 const struct record_options *o)
{
    const char *log = getenv("FAKE_LOG");
    int rc = scripted(s, getenv("FAKE_OPEN"));

    s->options = *o;
    s->write = write;
    s->user = user;
    if (rc < 0)
        return rc;
    if (log != NULL)
        s->log(s->log_user, (enum record_log_level)(log[0] - '0'), log + 2);
    return put(s,
               "open frequency=%" PRIu32 " stack=%" PRIu32
               " event=%d kernel=%d no_inherit=%d ring=%" PRIu64 " version=%" PRIu32
               " plain=%d start=%d,%" PRIu64 " interval=%d,%" PRIu64 "\n",
               o->frequency_hz, o->stack_size_bytes, (int)o->event, o->kernel, o->no_inherit,
               o->ring_size_bytes, o->spool_version, o->plain, o->has_start, o->start_us,
               o->has_interval, o->interval_us);
}

int record_session_attach(struct record_session *s, pid_t pid, unsigned flags)
{
    int rc = scripted(s, getenv("FAKE_ATTACH"));

    if (rc < 0)
        return rc;
    if (!record_process_exists(pid)) {
        snprintf(s->error, sizeof s->error, "process %d does not exist", (int)pid);
        return RECORD_ERR_NO_PROCESS;
    }
    s->targets[s->target_count++] = pid;
    s->begun_ns = now_ns();
    return put(s, "attach flags=%u\n", flags);
}

int record_session_attach_command(struct record_session *s, struct record_command *c)
{
    int rc = scripted(s, getenv("FAKE_ATTACH"));

    if (rc < 0)
        return rc;
    s->targets[s->target_count++] = record_command_pid(c);
    s->begun_ns = now_ns();
    return put(s, "command\n");
}

int record_session_enable(struct record_session *s)
{
    int rc = scripted(s, getenv("FAKE_ENABLE"));

    return rc < 0 ? rc : put(s, "enable\n");
}

int record_session_poll(struct record_session *s, int timeout_ms)
{
    const char *script = getenv("FAKE_POLL"), *bytes = getenv("FAKE_POLL_BYTES");
    const char *stop = getenv("FAKE_STOP");
    char *rest;

    s->polls++;
    if (script != NULL && strtoull(script, &rest, 10) == s->polls)
        return scripted(s, rest + 1);
    while (stop != NULL && access(stop, F_OK) != 0)
        usleep(10000);
    for (unsigned long left = bytes != NULL ? strtoul(bytes, NULL, 10) : 0; left > 0; left--) {
        int rc = put(s, "%s", left == 1 ? "\n" : ".");

        if (rc < 0)
            return rc;
    }
    poll(NULL, 0, timeout_ms);
    return 0;
}

size_t record_session_process_count(struct record_session *s, pid_t except)
{
    const char *children = getenv("FAKE_CHILDREN");
    size_t count = children != NULL ? strtoul(children, NULL, 10) : 0;

    for (size_t i = 0; i < s->target_count; i++)
        count += s->targets[i] != except && record_process_exists(s->targets[i]);
    return count;
}

int record_session_process_active(struct record_session *s, pid_t pid)
{
    for (size_t i = 0; i < s->target_count; i++)
        if (s->targets[i] == pid)
            return 1;
    return 0;
}

size_t record_descendants(pid_t pid, pid_t *pids, size_t max)
{
    const char *descendants = getenv("FAKE_DESCENDANTS");
    size_t count = descendants != NULL ? strtoul(descendants, NULL, 10) : 0;

    for (size_t i = 0; i < count && i < max; i++)
        pids[i] = pid + 5000000 + (pid_t)i;
    return count;
}

int record_session_finish(struct record_session *s)
{
    int rc = scripted(s, getenv("FAKE_FINISH"));

    s->ended_ns = now_ns();
    return rc < 0 ? rc : put(s, "finish\n");
}

const char *record_session_error(const struct record_session *s)
{
    return s->error;
}

void record_session_summary(const struct record_session *s, struct record_summary *out)
{
    const char *kind = getenv("FAKE_SUMMARY");

    *out =
        (struct record_summary){.sample_events = 1234,
                                .samples = 1234,
                                .event = "cpu-clock",
                                .frequency_hz = s->options.frequency_hz,
                                .bytes = s->bytes,
                                .duration_ns = (s->ended_ns ? s->ended_ns : now_ns()) - s->begun_ns,
                                .processes = (uint32_t)s->target_count,
                                .threads = 2,
                                .mode = RECORD_MODE_INHERIT,
                                .ring_size_bytes = 1 << 20};
    if (kind != NULL && strcmp(kind, "lost") == 0) {
        out->lost_events = 1300;
        out->lost_samples = 1000;
    }
    if (kind != NULL && strcmp(kind, "cut") == 0) {
        out->truncated_stacks = 40;
        out->faults.count[RECORD_FAULT_STACK_TRUNCATED] = 30;
        out->faults.count[RECORD_FAULT_NO_RULE] = 10;
    }
}

/* ---- words ----------------------------------------------------------------------------------- */

uint64_t record_faults_get(const struct record_faults *f, enum record_fault fault)
{
    return (unsigned)fault < RECORD_FAULT_COUNT ? f->count[fault] : 0;
}

bool record_faults_any(const struct record_faults *f)
{
    for (unsigned i = 0; i < RECORD_FAULT_COUNT; i++) {
        if (f->count[i] > 0)
            return true;
    }
    return false;
}

const char *record_fault_name(enum record_fault fault)
{
    static const char *const names[] = {"registers_missing",
                                        "register_capture",
                                        "stack_read",
                                        "stack_truncated",
                                        "no_progress",
                                        "null_return_address",
                                        "moved_backwards",
                                        "overflow",
                                        "depth_limit",
                                        "no_rule",
                                        "uprobe"};

    return (unsigned)fault < RECORD_FAULT_COUNT ? names[fault] : "unknown";
}

size_t record_faults_report(const struct record_faults *f, uint64_t samples, char *text,
                            size_t size)
{
    size_t length = 0;

    for (unsigned i = 0; i < RECORD_FAULT_COUNT; i++) {
        if (f->count[i] > 0)
            length +=
                (size_t)snprintf(length < size ? text + length : NULL,
                                 length < size ? size - length : 0,
                                 "%s: %" PRIu64 " of %" PRIu64 "\n",
                                 record_fault_name((enum record_fault)i), f->count[i], samples);
    }
    return length;
}

const char *record_mode_name(enum record_mode mode)
{
    static const char *const names[] = {"none", "inherit", "per-thread", "system-wide"};

    return names[mode];
}

const char *record_error_text(int code)
{
    return code == RECORD_ERR_NOMEM ? "out of memory" : "it failed";
}

/* ---- commands -------------------------------------------------------------------------------- */

struct record_command {
    pid_t pid;
    int go, said; /* pipes: a byte lets it exec, and errno comes back when it cannot */
    int error, status;
    bool run, ended;
};

struct record_command *record_command_new(void)
{
    return calloc(1, sizeof(struct record_command));
}

void record_command_free(struct record_command *c)
{
    if (c != NULL && c->pid > 0 && !c->run) {
        kill(c->pid, SIGKILL);
        waitpid(c->pid, NULL, 0);
    }
    free(c);
}

int record_command_prepare(struct record_command *c, char *const argv[],
                           const struct record_command_options *options)
{
    int go[2], said[2], rc = scripted(NULL, getenv("FAKE_PREPARE"));
    char byte;

    if (rc < 0)
        return rc;
    if (pipe2(go, O_CLOEXEC) != 0 || pipe2(said, O_CLOEXEC) != 0)
        return RECORD_ERR_COMMAND;
    c->pid = fork();
    if (c->pid == 0) {
        close(go[1]);
        if (options->stdout_fd > 0)
            dup2(options->stdout_fd, 1);
        if (read(go[0], &byte, 1) == 1) {
            int error;

            execvp(argv[0], argv);
            error = errno;
            if (write(said[1], &error, sizeof error) < 0)
                _exit(99);
        }
        _exit(98);
    }
    close(go[0]);
    close(said[1]);
    c->go = go[1];
    c->said = said[0];
    return 0;
}

pid_t record_command_pid(const struct record_command *c)
{
    return c->pid;
}

int record_command_run(struct record_command *c)
{
    if (write(c->go, "", 1) != 1)
        return RECORD_ERR_COMMAND;
    c->run = true;
    if (read(c->said, &c->error, sizeof c->error) == (ssize_t)sizeof c->error) {
        waitpid(c->pid, NULL, 0);
        return RECORD_ERR_COMMAND;
    }
    return 0;
}

int record_command_errno(const struct record_command *c)
{
    return c->error;
}

static int reap(struct record_command *c, int *status, int flags)
{
    if (!c->ended && waitpid(c->pid, &c->status, flags) == c->pid)
        c->ended = true;
    *status = c->status;
    return c->ended;
}

int record_command_try_wait(struct record_command *c, int *status)
{
    return reap(c, status, WNOHANG);
}

int record_command_wait(struct record_command *c, int *status)
{
    return reap(c, status, 0);
}

/* ---- helpers --------------------------------------------------------------------------------- */

int record_process_exists(pid_t pid)
{
    char path[64], text[512];
    FILE *file;
    size_t size;

    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    file = fopen(path, "r");
    if (file == NULL)
        return 0;
    size = fread(text, 1, sizeof text - 1, file);
    text[size] = '\0';
    fclose(file);
    return strstr(text, ") Z ") == NULL;
}

int record_exit_fd_open(pid_t pid)
{
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);

    return fd >= 0 ? fd : RECORD_ERR_UNSUPPORTED;
}

int record_exit_fd_wait(int fd, int timeout_ms)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    return poll(&p, 1, timeout_ms) > 0;
}
