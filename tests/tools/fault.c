/* SPDX-License-Identifier: MIT */
/*
 * fault COUNTS SYSCALL FAULT N COMMAND [ARG]...
 *
 * Runs a command in which the N-th call of a system call goes wrong; with "N+" the later ones, too; with 0 the first,
 * third and so on. SYSCALL "any" stands for all. FAULT is an errno's name, "short" (the call is asked for one byte), "zero"
 * (it does nothing and answers 0), or a signal's name: it is sent where the call begins. N beyond the last call disturbs nothing. Calls count from the program's entry point on: those of the dynamic
 * loader are not its own. Its threads count, processes that it starts do not. Writes to standard error are neither counted
 * nor disturbed, or no message could be seen.
 *
 * Into the file COUNTS go lines "NAME CALLS" of all calls that were made, and "fired N" with the number of faults. The exit
 * status is the command's (128 + signal when killed), or 77 with a message where processes cannot be traced. A command that
 * runs for over 20 seconds is killed, as is this one (SIGALRM).
 */
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

/* A name stands for all calls that do its work. Those not listed are counted by their number. */
static const struct call {
    const char *name;
    uint64_t number;
} calls[] = {
    /* clang-format off */
    {"read", SYS_read}, {"pread64", SYS_pread64}, {"readv", SYS_readv}, {"write", SYS_write},
    {"pwrite64", SYS_pwrite64}, {"writev", SYS_writev}, {"openat", SYS_openat},
    {"openat", SYS_openat2}, {"close", SYS_close}, {"lseek", SYS_lseek}, {"mmap", SYS_mmap},
    {"munmap", SYS_munmap}, {"mremap", SYS_mremap}, {"mprotect", SYS_mprotect},
    {"madvise", SYS_madvise}, {"brk", SYS_brk}, {"fstat", SYS_fstat}, {"fstat", SYS_newfstatat},
    {"fstat", SYS_statx}, {"statfs", SYS_statfs}, {"statfs", SYS_fstatfs},
    {"access", SYS_faccessat}, {"access", SYS_faccessat2}, {"getdents64", SYS_getdents64},
    {"rename", SYS_renameat}, {"rename", SYS_renameat2}, {"link", SYS_linkat},
    {"unlink", SYS_unlinkat}, {"mkdir", SYS_mkdirat}, {"readlink", SYS_readlinkat},
    {"fsync", SYS_fsync}, {"fsync", SYS_fdatasync}, {"fsync", SYS_syncfs},
    {"ftruncate", SYS_ftruncate}, {"fallocate", SYS_fallocate}, {"fchmod", SYS_fchmod},
    {"fchmod", SYS_fchmodat}, {"chown", SYS_fchown}, {"utimensat", SYS_utimensat},
    {"flock", SYS_flock}, {"fcntl", SYS_fcntl}, {"dup", SYS_dup}, {"dup", SYS_dup3},
    {"pipe2", SYS_pipe2}, {"fadvise", SYS_fadvise64}, {"copy_file_range", SYS_copy_file_range},
    {"sendfile", SYS_sendfile}, {"getrandom", SYS_getrandom}, {"ioctl", SYS_ioctl},
    {"ppoll", SYS_ppoll}, {"perf_event_open", SYS_perf_event_open}, {"wait", SYS_wait4},
    {"wait", SYS_waitid}, {"clone", SYS_clone}, {"clone", SYS_clone3},
    {"process_vm_readv", SYS_process_vm_readv}, {"pidfd", SYS_pidfd_open},
    {"prlimit64", SYS_prlimit64}, {"futex", SYS_futex}, {"clock_nanosleep", SYS_clock_nanosleep},
    {"kill", SYS_kill}, {"kill", SYS_tgkill}, {"uname", SYS_uname},
    {"sigaction", SYS_rt_sigaction}, {"sigprocmask", SYS_rt_sigprocmask},
    {"sigreturn", SYS_rt_sigreturn}, {"exit", SYS_exit}, {"exit", SYS_exit_group},
    {"getpid", SYS_getpid}, {"getpid", SYS_gettid}, {"getuid", SYS_getuid},
    {"getuid", SYS_geteuid}, {"getuid", SYS_getgid}, {"getuid", SYS_getegid}, {"umask", SYS_umask},
    {"sched", SYS_sched_getaffinity}, {"sched", SYS_sched_yield}, {"sysinfo", SYS_sysinfo},
    {"sendmsg", SYS_sendto}, {"sendmsg", SYS_sendmsg}, {"recvmsg", SYS_recvfrom},
    {"recvmsg", SYS_recvmsg}, {"socketpair", SYS_socketpair}, {"memfd_create", SYS_memfd_create},
    {"setpriority", SYS_getpriority}, {"setpriority", SYS_setpriority},
    {"restart", SYS_restart_syscall},
#ifdef SYS_open
    {"openat", SYS_open}, {"fstat", SYS_stat}, {"fstat", SYS_lstat}, {"access", SYS_access},
    {"rename", SYS_rename}, {"link", SYS_link}, {"unlink", SYS_unlink}, {"unlink", SYS_rmdir},
    {"mkdir", SYS_mkdir}, {"readlink", SYS_readlink}, {"fchmod", SYS_chmod}, {"chown", SYS_chown},
    {"dup", SYS_dup2}, {"ppoll", SYS_poll}, {"clone", SYS_vfork},
#endif
    /* clang-format on */
};
#define CALL_COUNT (sizeof calls / sizeof calls[0])

enum kind { ERROR, SHORT, ZERO, SIGNAL };

static const struct fault {
    const char *name;
    enum kind kind;
    int number; /* errno or signal */
} faults[] = {
    {"EIO", ERROR, EIO},        {"ENOSPC", ERROR, ENOSPC},    {"EDQUOT", ERROR, EDQUOT},
    {"EINTR", ERROR, EINTR},    {"EAGAIN", ERROR, EAGAIN},    {"ENOMEM", ERROR, ENOMEM},
    {"EMFILE", ERROR, EMFILE},  {"EACCES", ERROR, EACCES},    {"EPERM", ERROR, EPERM},
    {"EINVAL", ERROR, EINVAL},  {"ENOSYS", ERROR, ENOSYS},    {"ENOENT", ERROR, ENOENT},
    {"EPIPE", ERROR, EPIPE},    {"ENODEV", ERROR, ENODEV},    {"short", SHORT, 0},
    {"zero", ZERO, 0},          {"SIGKILL", SIGNAL, SIGKILL}, {"SIGTERM", SIGNAL, SIGTERM},
    {"SIGINT", SIGNAL, SIGINT}, {"SIGHUP", SIGNAL, SIGHUP},   {"SIGPIPE", SIGNAL, SIGPIPE},
};

enum pending { NOTHING, RESULT, SIZE };

/* A thread of the command. Its calls begin and end in turns. */
struct thread {
    pid_t tid; /* 0: free */
    bool inside;
    enum pending pending; /* what the end of the call has to set */
    uint64_t size;        /* what was asked for */
};
static struct thread threads[64];

static unsigned long made[1024];  /* calls by their number */
static unsigned long seen, fired; /* those of the chosen name, and the disturbed ones */

static void fail(const char *what)
{
    fprintf(stderr, "fault: %s: %s\n", what, strerror(errno));
    exit(errno == EPERM || errno == EACCES || errno == ENOSYS ? 77 : 125);
}

/* ---- registers ------------------------------------------------------------------------------- */

#ifdef __x86_64__
#define REGISTER_RESULT regs.rax
#define REGISTER_SIZE regs.rdx
#define REGISTER_PC regs.rip
#define BREAKPOINT 0xccUL
#define BREAKPOINT_MASK 0xffUL
#define PC_AFTER 1
#elif defined __aarch64__
#define REGISTER_RESULT regs.regs[0]
#define REGISTER_SIZE regs.regs[2]
#define REGISTER_PC regs.pc
#define BREAKPOINT 0xd4200000UL
#define BREAKPOINT_MASK 0xffffffffUL
#define PC_AFTER 0
#else
#error "registers of another machine"
#endif

/* Sets one register of a stopped thread. */
#define SET_REGISTER(tid, which, value)                            \
    do {                                                           \
        struct user_regs_struct regs;                              \
        struct iovec room = {&regs, sizeof regs};                  \
        ptrace(PTRACE_GETREGSET, tid, (void *)NT_PRSTATUS, &room); \
        which = (value);                                           \
        ptrace(PTRACE_SETREGSET, tid, (void *)NT_PRSTATUS, &room); \
    } while (0)

/* The call that is about to begin does not happen. */
static void cancel_call(pid_t tid)
{
#ifdef __x86_64__
    ptrace(PTRACE_POKEUSER, tid, (void *)offsetof(struct user_regs_struct, orig_rax), (void *)-1L);
#else
    int none = -1;
    struct iovec room = {&none, sizeof none};

    ptrace(PTRACE_SETREGSET, tid, (void *)NT_ARM_SYSTEM_CALL, &room);
#endif
}

/* ---- the start ------------------------------------------------------------------------------- */

static uintptr_t entry_point(pid_t pid)
{
    char path[64];
    uint64_t pair[2];
    int fd;

    snprintf(path, sizeof path, "/proc/%d/auxv", (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    while (fd >= 0 && read(fd, pair, sizeof pair) == sizeof pair) {
        if (pair[0] == AT_ENTRY) {
            close(fd);
            return pair[1];
        }
    }
    fail(path);
    return 0;
}

/* Runs the command up to its entry point. */
static pid_t start(char **command)
{
    pid_t pid = fork();
    uintptr_t at;
    long word;
    int status = 0;

    if (pid == 0) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
            fail("cannot be traced");
        execvp(command[0], command);
        fail(command[0]);
    }
    if (pid < 0 || waitpid(pid, &status, 0) < 0)
        fail("fork");
    if (WIFEXITED(status))
        exit(WEXITSTATUS(status));
    if (ptrace(PTRACE_SETOPTIONS, pid, NULL,
               (void *)(PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL | PTRACE_O_TRACECLONE)) != 0)
        fail("trace");
    at = entry_point(pid);
    word = ptrace(PTRACE_PEEKTEXT, pid, (void *)at, NULL);
    ptrace(PTRACE_POKETEXT, pid, (void *)at,
           (void *)(((unsigned long)word & ~BREAKPOINT_MASK) | BREAKPOINT));
    ptrace(PTRACE_CONT, pid, NULL, NULL);
    if (waitpid(pid, &status, 0) < 0 || !WIFSTOPPED(status) || WSTOPSIG(status) != SIGTRAP) {
        fprintf(stderr, "fault: %s does not reach its entry point\n", command[0]);
        exit(125);
    }
    ptrace(PTRACE_POKETEXT, pid, (void *)at, (void *)word);
    SET_REGISTER(pid, REGISTER_PC, REGISTER_PC - PC_AFTER);
    threads[0].tid = pid;
    return pid;
}

/* ---- calls ----------------------------------------------------------------------------------- */

static bool is_named(uint64_t number, const char *name)
{
    for (size_t i = 0; i < CALL_COUNT; i++) {
        if (calls[i].number == number && strcmp(calls[i].name, name) == 0)
            return true;
    }
    return false;
}

/* Which calls are disturbed. */
struct choice {
    const char *name;
    unsigned long n;
    bool on; /* and the later ones */
};

/* Whether the call begins now that is to be disturbed. */
static bool chosen(const struct __ptrace_syscall_info *info, const struct choice *which)
{
    uint64_t number = info->entry.nr;

    if ((number == SYS_write || number == SYS_writev) && info->entry.args[0] == STDERR_FILENO)
        return false;
    if (number < sizeof made / sizeof made[0])
        made[number]++;
    if (strcmp(which->name, "any") != 0 && !is_named(number, which->name))
        return false;
    seen++;
    return which->n == 0 ? seen % 2 == 1 : seen == which->n || (which->on && seen > which->n);
}

static void at_call(struct thread *t, const struct choice *which, const struct fault *fault)
{
    struct __ptrace_syscall_info info;

    if (ptrace(PTRACE_GET_SYSCALL_INFO, t->tid, (void *)sizeof info, &info) <= 0)
        return;
    t->inside = !t->inside;
    if (t->inside) {
        t->pending = NOTHING;
        if (info.op != PTRACE_SYSCALL_INFO_ENTRY || !chosen(&info, which))
            return;
        fired++;
        if (fault->kind == SIGNAL) {
            kill(t->tid, fault->number);
        } else if (fault->kind == SHORT) { /* the third argument of all that have a size */
            t->pending = SIZE;
            t->size = info.entry.args[2];
            if (t->size > 1)
                SET_REGISTER(t->tid, REGISTER_SIZE, 1);
        } else {
            t->pending = RESULT;
            if (info.entry.nr != SYS_close) /* which frees the descriptor whatever it answers */
                cancel_call(t->tid);
        }
    } else if (t->pending == RESULT) {
        SET_REGISTER(t->tid, REGISTER_RESULT, (unsigned long)-(long)fault->number);
    } else if (t->pending == SIZE) {
        SET_REGISTER(t->tid, REGISTER_SIZE, t->size); /* no call changes it, and compilers know */
    }
}

/* That of a thread, and whether it is a new one. */
static struct thread *find_thread(pid_t tid, bool *is_new)
{
    struct thread *unused = NULL;

    *is_new = false;
    for (size_t i = 0; i < sizeof threads / sizeof threads[0]; i++) {
        if (threads[i].tid == tid)
            return &threads[i];
        if (threads[i].tid == 0 && unused == NULL)
            unused = &threads[i];
    }
    if (unused == NULL) {
        errno = ENOMEM;
        fail("threads");
    }
    *is_new = true;
    *unused = (struct thread){.tid = tid};
    return unused;
}

/* Until the command has ended: its exit status. */
static int trace(pid_t pid, const struct choice *which, const struct fault *fault)
{
    int status, result = 125;
    pid_t tid = pid;
    long signal_number = 0;

    for (;;) {
        struct thread *t;
        bool is_new;

        ptrace(PTRACE_SYSCALL, tid, NULL, (void *)signal_number);
        do {
            tid = waitpid(-1, &status, __WALL);
            if (tid < 0)
                return result;
            t = find_thread(tid, &is_new);
            if (WIFSTOPPED(status))
                break;
            t->tid = 0;
            if (tid == pid)
                result = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        } while (true);

        signal_number = WSTOPSIG(status);
        if (signal_number == (SIGTRAP | 0x80)) {
            at_call(t, which, fault);
            signal_number = 0;
        } else if (status >> 16 != 0 || (is_new && signal_number == SIGSTOP)) {
            signal_number = 0; /* a thread was made; it begins */
        }
    }
}

static void report(const char *path)
{
    FILE *file = fopen(path, "w");

    if (file == NULL)
        fail(path);
    for (size_t number = 0; number < sizeof made / sizeof made[0]; number++) {
        const char *name = NULL;

        for (size_t i = 0; i < CALL_COUNT; i++) {
            if (calls[i].number == number)
                name = calls[i].name;
        }
        if (made[number] > 0 && name != NULL)
            fprintf(file, "%s %lu\n", name, made[number]);
        else if (made[number] > 0)
            fprintf(file, "%zu %lu\n", number, made[number]);
    }
    fprintf(file, "fired %lu\n", fired);
    if (fclose(file) != 0)
        fail(path);
}

int main(int argc, char **argv)
{
    const struct fault *fault = NULL;
    struct choice which;
    char *end;
    int status;

    for (size_t i = 0; argc > 5 && i < sizeof faults / sizeof faults[0]; i++) {
        if (strcmp(argv[3], faults[i].name) == 0)
            fault = &faults[i];
    }
    if (fault == NULL) {
        fprintf(stderr,
                "usage: fault COUNTS SYSCALL ERRNO|SIGNAL|short|zero N[+] COMMAND [ARG]...\n");
        return 125;
    }
    alarm(20);
    which.name = argv[2];
    which.n = strtoul(argv[4], &end, 10);
    which.on = *end == '+';
    status = trace(start(argv + 5), &which, fault);
    report(argv[1]);
    return status;
}
