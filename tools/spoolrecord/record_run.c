/* SPDX-License-Identifier: MIT */
/*
 * The run, in this order: everything that can be refused is, before anything is written or anybody sampled; the
 * command starts or the processes are attached to; samples are drained until an end; the spool is finished and, if
 * asked for, its symbols are packed while what was recorded may still run; the command, which goes on whatever
 * happened to the recording, is waited for.
 */
#include "record_run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli.h"
#include "clock.h"
#include "output.h"
#include "progress.h"
#include "record_output.h"
#include "record_pack.h"
#include "record_report.h"
#include "record_signals.h"

#define MS_NS UINT64_C(1000000)
/* What is recorded is in the spool, and what has ended is seen, after about so long. */
#define LOOK_MS 100
/* A command that goes on for longer is said to be waited for. */
#define PATIENCE_MS 500

struct run {
    const struct run_options *o;
    struct record_output output;
    struct record_session *session;
    struct record_command *command; /* NULL: processes that run already */
    char *spoolpack;                /* with --pack */
    int priority;                   /* as we were started */
    bool failed;                    /* the recording, after a message */
    bool unpacked; /* the recording is fine, its symbols were not packed, after a message */
};

static void on_log(void *user, enum record_log_level level, const char *text)
{
    const struct run *r = user;

    if (level >= RECORD_LOG_INFO || r->o->common->verbose)
        cli_warn("%s", text);
}

/* Tells once why the recording failed. */
static void fail(struct run *r, int rc)
{
    if (r->failed)
        return;
    r->failed = true;
    if (r->output.error != 0)
        cli_error("%s: write failed: %s", r->output.name, strerror(r->output.error));
    else if (rc == RECORD_ERR_NOMEM)
        cli_error("out of memory");
    else
        cli_error("%s", record_session_error(r->session));
}

/* ---- beginning: each returns 0, or an exit status after a message ---------------------------- */

static int find_spoolpack(struct run *r)
{
    if (r->o->pack == NULL)
        return 0;
    r->spoolpack = record_pack_find();
    if (r->spoolpack != NULL)
        return record_pack_check(r->o->pack) == 0 ? 0 : STATUS_FAILED;
    cli_error("--pack needs spoolpack, which is not installed");
    return STATUS_FAILED;
}

/* Forks; the command itself does not run yet. It inherits signals as we did, so this comes before ours are changed. */
static int prepare_command(struct run *r)
{
    struct record_command_options options = {.size = sizeof options, .stdout_fd = -1};
    int rc;

    if (r->o->pids.count > 0)
        return 0;
    if (output_is_standard(r->o->output))
        options.stdout_fd = STDERR_FILENO; /* it must not mix with the spool */
    r->command = record_command_new();
    rc = r->command == NULL ? RECORD_ERR_NOMEM
                            : record_command_prepare(r->command, r->o->command, &options);
    if (rc >= 0)
        return 0;
    cli_error("%s: cannot be started: %s", r->o->command[0],
              rc == RECORD_ERR_COMMAND && record_command_errno(r->command) != 0
                  ? strerror(record_command_errno(r->command))
                  : record_error_text(rc));
    return STATUS_FAILED;
}

static int open_output(struct run *r)
{
    if (record_output_open(&r->output, r->o->output, r->o->force) != 0)
        return STATUS_FAILED;
    if (r->o->pack == NULL || r->output.regular)
        return 0;
    cli_error("%s: --pack needs a regular file, which can be read again", r->output.name);
    return STATUS_FAILED;
}

static int open_session(struct run *r)
{
    int rc = RECORD_ERR_NOMEM;

    r->session = record_session_new();
    if (r->session != NULL) {
        record_session_set_log(r->session, on_log, r);
        rc = record_session_open_callback(r->session, record_output_write, &r->output,
                                          &r->o->record);
    }
    if (rc < 0)
        fail(r, rc);
    return rc < 0 ? STATUS_FAILED : 0;
}

/* Children that run already are easily forgotten: a shell does nothing, its commands do. */
static void tell_left_out(struct run *r, pid_t pid)
{
    pid_t pids[64];
    size_t count = record_descendants(pid, pids, sizeof pids / sizeof pids[0]), left = 0;

    for (size_t i = 0; i < count && i < sizeof pids / sizeof pids[0]; i++)
        left += pids[i] != getpid() && !record_session_process_active(r->session, pids[i]);
    if (left > 0)
        cli_warn("process %d has %zu %s, not recorded without --descendants", (int)pid, left,
                 left == 1 ? "child that runs already" : "children that run already");
}

/* All of them, or none is sampled. */
static int attach_processes(struct run *r)
{
    unsigned flags = RECORD_ATTACH_DISABLED | (r->o->descendants ? RECORD_ATTACH_DESCENDANTS : 0);
    int rc;

    for (size_t i = 0; i < r->o->pids.count; i++) {
        pid_t pid = (pid_t)r->o->pids.items[i];

        if (pid == getpid()) { /* it would stop itself to look at itself */
            cli_error("process %d is spoolrecord itself", (int)pid);
            return STATUS_FAILED;
        }
        rc = record_session_attach(r->session, pid, flags);
        if (rc < 0) {
            fail(r, rc);
            return STATUS_FAILED;
        }
    }
    rc = record_session_enable(r->session);
    if (rc < 0)
        fail(r, rc);
    for (size_t i = 0; rc >= 0 && !r->o->descendants && i < r->o->pids.count; i++)
        tell_left_out(r, (pid_t)r->o->pids.items[i]);
    return rc < 0 ? STATUS_FAILED : 0;
}

static int start_command(struct run *r)
{
    int rc = record_session_attach_command(r->session, r->command), error;

    if (rc < 0) {
        fail(r, rc);
        return STATUS_FAILED;
    }
    if (record_signals_caught()) {
        cli_error("interrupted before the recording began");
        return STATUS_FAILED;
    }
    rc = record_command_run(r->command);
    if (rc >= 0)
        return 0;
    error = record_command_errno(r->command);
    if (rc != RECORD_ERR_COMMAND || error == 0) {
        cli_error("%s: %s", r->o->command[0], record_error_text(rc));
        return STATUS_FAILED;
    }
    cli_error("%s: %s", r->o->command[0], strerror(error));
    return error == ENOENT ? STATUS_NOT_FOUND : STATUS_NOT_RUN;
}

static int begin(struct run *r)
{
    int status = find_spoolpack(r);

    if (status == 0)
        status = prepare_command(r);
    if (status == 0) {
        /* With hundreds of threads ready to run, rings overflow before it is our turn. Where that is not permitted it
         * has to do without. The command was forked before. */
        r->priority = getpriority(PRIO_PROCESS, 0);
        (void)setpriority(PRIO_PROCESS, 0, -20);
        record_signals_catch();
        status = open_output(r);
    }
    if (status == 0)
        status = open_session(r);
    if (status == 0)
        status = r->command != NULL ? start_command(r) : attach_processes(r);
    return status;
}

/* ---- recording ------------------------------------------------------------------------------- */

static void progress_line(void *user, struct text_buffer *line)
{
    const struct run *r = user;
    struct record_summary summary;

    record_session_summary(r->session, &summary);
    record_report_progress(line, &summary, r->output.name);
}

static void begin_progress(struct run *r, struct progress *progress)
{
    struct tool_options how = *r->o->common;

    /* A line that is drawn over itself does not mix with what a command prints on the same terminal. */
    if (how.progress == PROGRESS_AUTO && r->command != NULL && isatty(STDOUT_FILENO))
        how.progress = PROGRESS_NEVER;
    progress_begin(progress, &how);
    progress_lines(progress, progress_line, r);
}

/* Whether nothing is left to record. A recording ends with its command, whoever else it left behind. */
static bool targets_ended(struct run *r, uint64_t *looked_ns, uint64_t at_ns)
{
    int status;

    if (r->command != NULL) /* an error is told when it is waited for */
        return record_command_try_wait(r->command, &status) != 0;
    if (at_ns - *looked_ns <
        LOOK_MS * MS_NS) /* a busy ring is read more often; this asks for each process */
        return false;
    *looked_ns = at_ns;
    return record_session_process_count(r->session, 0) == 0;
}

/* Until an end comes. */
static void record(struct run *r)
{
    uint64_t begun_ns = clock_now_ns(), looked_ns = begun_ns, at_ns = begun_ns;
    struct progress progress;

    begin_progress(r, &progress);
    while (!r->failed && !record_signals_caught()) {
        uint64_t left_ms = LOOK_MS;
        int rc;

        if (r->o->duration_ns > 0) {
            if (at_ns - begun_ns >= r->o->duration_ns)
                break;
            left_ms = (r->o->duration_ns - (at_ns - begun_ns) + MS_NS - 1) / MS_NS;
        }
        rc = record_session_poll(r->session, left_ms < LOOK_MS ? (int)left_ms : LOOK_MS);
        if (rc < 0)
            fail(r, rc);
        progress_update(&progress, 0);
        at_ns = clock_now_ns();
        if (targets_ended(r, &looked_ns, at_ns))
            break;
    }
    progress_end(&progress);
}

/* ---- ending ---------------------------------------------------------------------------------- */

/* What has ended is recorded to its end; what was started and goes on is named. */
static void finish(struct run *r)
{
    int status, rc, error;

    if (!r->failed && r->command != NULL && record_command_try_wait(r->command, &status) == 1) {
        size_t left = record_session_process_count(r->session, record_command_pid(r->command));

        if (left > 0)
            cli_warn("%zu %s of the command still %s and %s recorded no longer", left,
                     left == 1 ? "child" : "children", left == 1 ? "runs" : "run",
                     left == 1 ? "is" : "are");
    }
    rc = record_session_finish(r->session);
    if (rc < 0)
        fail(r, rc);
    error = record_output_close(&r->output);
    if (error != 0)
        fail(r, RECORD_ERR_IO);
}

static void report(const struct run *r)
{
    const struct tool_options *common = r->o->common;
    struct report_context context = {.name = r->output.name,
                                     .stack_size_bytes = r->o->record.stack_size_bytes,
                                     .verbose = common->verbose};
    enum run_summary how = r->o->summary;
    struct record_summary summary;
    struct text_buffer lines = {0};

    if (context.stack_size_bytes > RECORD_STACK_SIZE_MAX)
        context.stack_size_bytes = RECORD_STACK_SIZE_MAX;
    if (how == RUN_SUMMARY_DEFAULT)
        how = common->quiet ? RUN_SUMMARY_NONE : RUN_SUMMARY_TEXT;
    record_session_summary(r->session, &summary);
    if (how == RUN_SUMMARY_TEXT)
        record_report_text(&lines, &summary, &context);
    else if (how == RUN_SUMMARY_JSON)
        record_report_json(&lines, &summary);
    else
        record_report_losses(&lines, &summary); /* is said in any case */
    cli_report_lines(&lines);
    text_free(&lines);
}

/* What a deleted file contained can be read only as long as a process has it mapped: nobody is waited for before. */
static void pack(struct run *r)
{
    struct record_pack how = {.spoolpack = r->spoolpack,
                              .spool = r->o->output,
                              .output = r->o->pack,
                              .quiet = r->o->common->quiet,
                              .verbose = r->o->common->verbose};

    (void)setpriority(PRIO_PROCESS, 0, r->priority); /* nothing gets lost any more */
    r->unpacked = record_pack_run(&how) != 0;
}

/* The exit status of the command. */
static int wait_for_command(struct run *r)
{
    int status = 0, rc, fd;

    record_signals_waiting();
    rc = record_command_try_wait(r->command, &status);
    if (rc == 0) {
        fd = record_exit_fd_open(record_command_pid(r->command));
        if (fd >= 0) {
            if (record_exit_fd_wait(fd, PATIENCE_MS) == 0)
                cli_warn("recording has ended, waiting for the command (process %d)",
                         (int)record_command_pid(r->command));
            close(fd);
        }
        while (rc == 0)
            rc = record_command_wait(r->command, &status);
    }
    if (rc < 0) {
        cli_error("waiting for the command failed: %s", record_error_text(rc));
        return STATUS_FAILED;
    }
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int record_run(const struct run_options *o)
{
    struct run r = {.o = o, .output = {.fd = -1}};
    int status = begin(&r);

    if (status == 0) {
        if (record_output_begin(&r.output) != 0)
            fail(&r, RECORD_ERR_IO);
        record(&r);
        finish(&r);
        report(&r);
        record_session_free(r.session); /* sampling costs the command time */
        r.session = NULL;
        if (r.spoolpack != NULL && !r.failed)
            pack(&r);
        if (r.command != NULL)
            status = wait_for_command(&r);
        if (r.failed)
            status = STATUS_FAILED;
        else if (r.unpacked && status == 0)
            status = EXIT_FAILED;
    }
    record_output_close(&r.output);
    record_session_free(r.session);
    record_command_free(r.command);
    free(r.spoolpack);
    return status;
}
