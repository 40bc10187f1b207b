/* SPDX-License-Identifier: MIT */
/*
 * step_oracle [OPTION]... PROGRAM [ARGUMENT]...: runs a program instruction by instruction and unwinds its stack at
 * each, as a recorder would from a copy of 32 KB. The truth comes from the processor: a call puts the address
 * behind it on the stack, and it is one until the stack pointer is above. A frame that is not so is false,
 * and so is a stack that claims to be complete and is not.
 *
 *   --start        from the program's first instruction; else between marks (step_mark.h)
 *   --signals      sends a signal at each instruction that is met for the first time, and another one in its handler
 *   --least N      percent of the stacks that must be complete (default 100)
 *   --most N       percent that may be (default 100): in what cannot be whole, a whole stack is a lie
 *   --gaps N       percent of the stacks that may lack frames between others (default 0): libgcc overwrites what it
 *                  unwinds through shortly before it jumps
 *   --visits N     how often an instruction is looked at under the same caller (default 2)
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "step_mark.h"
#include "unwind.h"

#define COPY_BYTES 32768
#define FRAMES 1024
#define CALLS_MAX 4096
#define STACKS_MAX 8
#define RANGES_MAX 256
#define SEEN_MAX (1u << 18)
#define STEPS_MAX 20000000
#define UCONTEXT_RSP (8 + 40 + 15 * 8) /* from where a handler finds its return address */
#define UCONTEXT_RIP (8 + 40 + 16 * 8)

/* What lies on a stack: a return address, or all that a signal left. */
struct call {
    uint64_t slot; /* of the return address */
    uint64_t returns_to;
    bool signal;
    uint64_t interrupted_pc;
    uint64_t interrupted_sp;
    bool elsewhere; /* the handler has a stack of its own */
};

struct stack {
    uint64_t low, high; /* of all but the first */
    uint64_t last;      /* what the first function may seem to return to */
    struct call call[CALLS_MAX];
    size_t count;
};

static struct stack stacks[STACKS_MAX];
static size_t stack_count = 1;
static struct unwind_range ranges[RANGES_MAX];
static char paths[RANGES_MAX][256];
static size_t range_count;
static struct unwind_frame believed[FRAMES]; /* callers of what made the first mark */
static size_t believed_count;
static uint32_t seen[SEEN_MAX];
static uint8_t seen_count[SEEN_MAX];

static pid_t pid;
static int memory = -1;
static size_t steps, walks, completes, frames_total, false_frames, false_ends, differing,
    signals_sent;
static size_t ends[UNWIND_NO_REGISTERS + 1];
static const char *const end_names[] = {"complete",  "truncated",   "stack_read",  "no_progress",
                                        "backwards", "null_return", "overflow",    "depth",
                                        "no_rule",   "uprobe",      "no_registers"};

static void die(const char *what)
{
    fprintf(stderr, "step_oracle: %s: %s\n", what, strerror(errno));
    if (pid > 0)
        kill(pid, SIGKILL);
    exit(2);
}

static uint64_t word_at(uint64_t address)
{
    uint64_t value = 0;

    if (pread(memory, &value, sizeof value, (off_t)address) != sizeof value)
        return 0;
    return value;
}

/* ---- what is mapped ---- */

static struct image *open_image(const char *path, uint64_t start, uint64_t end)
{
    struct image *image = NULL;

    if (path[0] == '[') {
        size_t size = (size_t)(end - start);
        uint8_t *bytes = malloc(size);

        if (bytes != NULL && pread(memory, bytes, size, (off_t)start) == (ssize_t)size)
            recordint_image_open_memory(bytes, size, &image);
        free(bytes);
    } else {
        int fd = open(path, O_RDONLY | O_CLOEXEC);

        if (fd >= 0) {
            recordint_image_open_fd(fd, &image);
            close(fd);
        }
    }
    return image;
}

/* Images and rule tables stay: the program unloads nothing. */
static void read_maps(void)
{
    char line[512], name[64];
    FILE *f;

    snprintf(name, sizeof name, "/proc/%d/maps", (int)pid);
    f = fopen(name, "re");
    if (f == NULL)
        die(name);
    while (range_count < RANGES_MAX && fgets(line, sizeof line, f) != NULL) {
        struct unwind_range *r = &ranges[range_count];
        char mode[8], *path = paths[range_count];
        size_t i;

        path[0] = '\0';
        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %*s %*s %255[^\n]", &r->start,
                   &r->end, mode, &r->file_offset, path) < 4 ||
            strchr(mode, 'x') == NULL)
            continue;
        for (i = 0; i < range_count && ranges[i].start != r->start; i++)
            ;
        if (i < range_count)
            continue;
        r->module = (uint32_t)range_count;
        r->file = path[0] == '/' || strcmp(path, "[vdso]") == 0;
        r->image = r->file ? open_image(path, r->start, r->end) : NULL;
        r->rules = r->image != NULL ? recordint_rule_table_new() : NULL;
        range_count++;
    }
    fclose(f);
}

static bool find_known(uint64_t address, struct unwind_range *out)
{
    for (size_t i = 0; i < range_count; i++)
        if (address >= ranges[i].start && address < ranges[i].end) {
            *out = ranges[i];
            return true;
        }
    return false;
}

static bool find(void *user, uint64_t address, struct unwind_range *out)
{
    static uint64_t missed[64];
    uint64_t *place = &missed[address % 64];

    (void)user;
    if (find_known(address, out))
        return true;
    if (*place == address)
        return false;
    *place = address;
    read_maps();
    return find_known(address, out);
}

static size_t read_code(void *user, uint64_t address, void *out, size_t size)
{
    ssize_t n = pread(memory, out, size, (off_t)address);

    (void)user;
    return n > 0 ? (size_t)n : 0;
}

/* ---- the truth ---- */

static struct stack *stack_of(uint64_t sp)
{
    for (size_t i = 1; i < stack_count; i++)
        if (sp >= stacks[i].low && sp <= stacks[i].high)
            return &stacks[i];
    return &stacks[0];
}

static void push_call(struct stack *s, const struct call *c)
{
    if (s->count == CALLS_MAX)
        die("calls are too deep");
    s->call[s->count++] = *c;
}

static uint64_t distance(uint64_t a, uint64_t b)
{
    return a > b ? a - b : b - a;
}

/* Calls that are over; a signal is when what it interrupted goes on, or is left itself. */
static void pop_calls(struct stack *s, uint64_t sp)
{
    while (s->count > 0) {
        const struct call *c = &s->call[s->count - 1];
        bool over = c->slot < sp;

        if (c->signal)
            over = c->elsewhere ? distance(sp, c->interrupted_sp) < distance(sp, c->slot)
                                : sp >= c->interrupted_sp;
        if (!over)
            break;
        s->count--;
    }
}

/* After one instruction. */
static void follow(const struct user_regs_struct *before, const struct user_regs_struct *now)
{
    struct stack *s = stack_of(now->rsp);
    struct call c = {.slot = now->rsp};

    if (now->rsp != before->rsp && word_at(now->rsp + UCONTEXT_RSP) == before->rsp &&
        before->rip - word_at(now->rsp + UCONTEXT_RIP) <= 2 && now->rip != before->rip) {
        uint64_t distance = before->rsp - now->rsp;

        c.returns_to = word_at(now->rsp);
        c.signal = true;
        c.interrupted_pc = word_at(now->rsp + UCONTEXT_RIP);
        c.interrupted_sp = before->rsp;
        c.elsewhere = distance > 8192;
        push_call(stack_of(before->rsp), &c);
        return;
    }
    if (now->rsp == before->rsp - 8) {
        c.returns_to = word_at(now->rsp);
        if (c.returns_to - before->rip >= 2 && c.returns_to - before->rip <= 9) {
            push_call(s, &c);
            return;
        }
    }
    pop_calls(s, now->rsp);
}

/* Lookup addresses of all frames there are, the believed ones and what the first function of another stack seems
 * to return to. */
static size_t truth(const struct user_regs_struct *now, uint64_t *out, bool *whole)
{
    const struct stack *s = stack_of(now->rsp);
    size_t count = 0;

    *whole = s == &stacks[0];
    out[count++] = now->rip;
    for (size_t i = s->count; i-- > 0;) {
        if (s->call[i].signal) {
            if (i != s->count - 1 ||
                s->call[i].slot >= now->rsp) /* else the handler has returned */
                out[count++] = s->call[i].returns_to;
            out[count++] = s->call[i].interrupted_pc;
        } else {
            out[count++] = s->call[i].returns_to - 1;
        }
    }
    if (s != &stacks[0]) {
        *whole = s->last != 0;
        if (s->last > 1)
            out[count++] = s->last;
        return count;
    }
    for (size_t i = 0; i < believed_count; i++)
        out[count++] = believed[i].address;
    return count;
}

/* ---- the walk ---- */

static void copy_stack(const struct user_regs_struct *now, struct unwind_input *in)
{
    static const uint8_t from[] = {10, 12, 11, 5, 13, 14, 4, 19, 9, 8, 7, 6, 3, 2, 1, 0, 16};
    static uint8_t bytes[COPY_BYTES];
    const unsigned long long *r = (const unsigned long long *)now;
    struct iovec local = {bytes, sizeof bytes}, remote[9];
    uint64_t at = now->rsp;
    size_t pieces = 0;
    ssize_t n;

    memset(in, 0, sizeof *in);
    in->arch = ARCH_X86_64;
    for (unsigned i = 0; i < sizeof from; i++)
        reg_set(&in->regs, i, r[from[i]]);
    /* Whole pages: what lies before one that is not there is copied. */
    for (uint64_t end = at + sizeof bytes; at < end && pieces < 9; pieces++) {
        uint64_t next = (at | 4095) + 1;

        next = next < end ? next : end;
        remote[pieces].iov_base = (void *)(uintptr_t)at;
        remote[pieces].iov_len = (size_t)(next - at);
        at = next;
    }
    n = process_vm_readv(pid, &local, 1, remote, pieces, 0);
    in->stack = bytes;
    in->stack_size = n > 0 ? (size_t)n & ~(size_t)7 : 0;
}

static void print_stack(const char *who, const uint64_t *address, size_t count)
{
    fprintf(stderr, "  %s:", who);
    for (size_t i = 0; i < count && i < 40; i++) {
        struct unwind_range r;
        const char *name = "";

        if (find_known(address[i], &r) && r.module < RANGES_MAX) {
            name = strrchr(paths[r.module], '/');
            name = name != NULL ? name + 1 : paths[r.module];
            fprintf(stderr, " %s+%" PRIx64, name, address[i] - r.start + r.file_offset);
        } else {
            fprintf(stderr, " %" PRIx64, address[i]);
        }
    }
    fprintf(stderr, "\n");
}

/* One by its position, and what it came from: enough to see all states of an instruction that differ. */
static bool seen_often(const struct user_regs_struct *now, unsigned most)
{
    const struct stack *s = stack_of(now->rsp);
    uint64_t key = now->rip ^ (s->count != 0 ? s->call[s->count - 1].returns_to << 7 : 0);
    uint32_t i = (uint32_t)((key *= UINT64_C(0x9e3779b97f4a7c15)) >> 40) % SEEN_MAX;
    uint32_t tag = (uint32_t)(key >> 8) | 1;

    if (seen[i] != tag) {
        seen[i] = tag;
        seen_count[i] = 0;
    }
    return seen_count[i] >= most || seen_count[i]++ >= most;
}

/* longjmp and the exception unwinder say, by their unwind data, where they are about to go: a stack that is one
 * step ahead of the truth is none that is false, if it comes true. */
static struct {
    uint64_t walked[FRAMES], truth[2 * CALLS_MAX + FRAMES + 4];
    size_t walked_count, truth_count;
    enum unwind_end end;
    unsigned steps_left; /* 0: there is none */
} ahead;
static size_t came_true, gaps;

/* Whether what was walked is in the truth, in this order, but not all of it. */
static bool has_gap(const uint64_t *walked, size_t walked_count, const uint64_t *expected,
                    size_t expected_count)
{
    size_t at = 0;

    for (size_t i = 0; i < expected_count && at < walked_count; i++)
        at += walked[at] == expected[i];
    return at == walked_count;
}

static void print_false(const uint64_t *walked, size_t walked_count, enum unwind_end end,
                        const uint64_t *expected, size_t expected_count)
{
    if (has_gap(walked, walked_count, expected, expected_count)) {
        gaps++;
        if (getenv("STEP_SHOW") == NULL)
            return;
        false_frames--;
    }
    if (++false_frames > 3)
        return;
    fprintf(stderr, "false, ends with %s\n", end_names[end]);
    print_stack("walked", walked, walked_count);
    print_stack("truth ", expected, expected_count);
}

static void settle(bool is_true)
{
    if (ahead.steps_left == 0)
        return;
    if (is_true)
        came_true++;
    else
        print_false(ahead.walked, ahead.walked_count, ahead.end, ahead.truth, ahead.truth_count);
    ahead.steps_left = 0;
}

/* After each step: whether what was ahead is true now. */
static void compare_ahead(const struct user_regs_struct *now)
{
    static uint64_t expected[2 * CALLS_MAX + FRAMES + 4];
    bool whole;
    size_t count;

    if (ahead.steps_left == 0)
        return;
    if (now->rip == ahead.walked[1] + 1 || now->rip == ahead.walked[1]) {
        count = truth(now, expected, &whole);
        if ((count == ahead.walked_count - 1 ||
             (count >= ahead.walked_count && ahead.end != UNWIND_COMPLETE)) &&
            memcmp(expected + 1, ahead.walked + 2, (ahead.walked_count - 2) * sizeof expected[0]) ==
                0) {
            settle(true);
            return;
        }
    }
    if (ahead.steps_left == 1)
        settle(false);
    else
        ahead.steps_left--;
}

static void look(struct unwind_space *cached, struct unwind_space *uncached,
                 const struct user_regs_struct *now)
{
    static struct unwind_frame frame[FRAMES], again[FRAMES];
    static uint64_t expected[2 * CALLS_MAX + FRAMES + 4], got[FRAMES];
    struct unwind_result result, result_again;
    struct unwind_input in;
    bool may_be_whole, bad = false;
    size_t count = truth(now, expected, &may_be_whole), same = 0;

    copy_stack(now, &in);
    recordint_unwind(cached, &in, frame, FRAMES, &result);
    for (size_t i = 0; i < result.count; i++)
        got[i] = frame[i].address;
    while (same < result.count && same < count && got[same] == expected[same])
        same++;
    walks++;
    frames_total += result.count;
    ends[result.end]++;
    completes += result.end == UNWIND_COMPLETE;
    if (same == 1 && result.count > 1) {
        /* of several, the last: they are of one jump */
        ahead.steps_left = 64;
        ahead.end = result.end;
        ahead.walked_count = result.count;
        ahead.truth_count = count;
        memcpy(ahead.walked, got, result.count * sizeof got[0]);
        memcpy(ahead.truth, expected, count * sizeof expected[0]);
    } else if (same < result.count) {
        print_false(got, result.count, result.end, expected, count);
    } else if (result.end == UNWIND_COMPLETE && (!may_be_whole || count != result.count)) {
        false_ends++;
        bad = true;
    }
    if (walks % 8 == 0 || bad) {
        recordint_unwind(uncached, &in, again, FRAMES, &result_again);
        if (result_again.count != result.count || result_again.end != result.end) {
            differing++;
            bad = true;
        }
    }
    if (bad ? false_ends + differing <= 3
            : getenv("STEP_SHOW") != NULL && result.end != UNWIND_COMPLETE &&
                  ends[result.end] <= 5) {
        fprintf(stderr, "%s, ends with %s\n", bad ? "false" : "cut", end_names[result.end]);
        print_stack("walked", got, result.count);
        print_stack("truth ", expected, count);
    }
}

/* What called the function with the first mark. */
static void believe(struct unwind_space *space, const struct user_regs_struct *now)
{
    struct unwind_result result;
    struct unwind_input in;
    struct unwind_range r;
    uint64_t entry;

    copy_stack(now, &in);
    recordint_unwind(space, &in, believed, FRAMES, &result);
    believed_count = result.count - 1;
    memmove(believed, believed + 1, believed_count * sizeof believed[0]);
    entry = believed_count > 0 && find_known(believed[believed_count - 1].address, &r) &&
                    r.image != NULL
                ? recordint_image_entry(r.image)
                : 0;
    if (result.end != UNWIND_COMPLETE || entry == 0 ||
        ((believed[believed_count - 1].address - entry) & 4095) > 64) {
        fprintf(stderr,
                "step_oracle: the first mark is not reached from the entry: %s after %zu frames\n",
                end_names[result.end], result.count);
        exit(1);
    }
}

static void add_stack(const struct user_regs_struct *now)
{
    struct stack *s = NULL;

    for (size_t i = 1; i < stack_count; i++)
        if (stacks[i].low == now->rsi)
            s = &stacks[i];
    if (s == NULL && stack_count == STACKS_MAX)
        die("stacks");
    if (s == NULL)
        s = &stacks[stack_count++];
    s->low = now->rsi;
    s->high = now->rdx;
    s->last = now->rcx;
    s->count = 0;
}

/* ---- running ---- */

struct options {
    bool from_start;
    bool signals;
    double least, most, gaps;
    unsigned visits;
};

static void start(char **arguments)
{
    char name[64];
    int status;

    cpu_set_t cpu;

    /* They run in turns: on one processor no other has to wake up. */
    CPU_ZERO(&cpu);
    CPU_SET(sched_getcpu(), &cpu);
    sched_setaffinity(0, sizeof cpu, &cpu);
    pid = fork();
    if (pid < 0)
        die("fork");
    if (pid == 0) {
        personality(ADDR_NO_RANDOMIZE);
        if (ptrace(PTRACE_TRACEME, 0, 0, 0) != 0)
            _exit(126);
        execv(arguments[0], arguments);
        _exit(127);
    }
    if (waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status)) {
        printf("skipped: programs cannot be traced here, or there is no %s\n", arguments[0]);
        exit(WIFEXITED(status) && WEXITSTATUS(status) == 126 ? 77 : 2);
    }
    ptrace(PTRACE_SETOPTIONS, pid, 0, (void *)(uintptr_t)PTRACE_O_EXITKILL);
    snprintf(name, sizeof name, "/proc/%d/mem", (int)pid);
    memory = open(name, O_RDONLY | O_CLOEXEC);
    if (memory < 0)
        die(name);
}

/* Returns the exit status of the program. */
static int run(const struct options *o)
{
    struct unwind_space cached = {
        .find = find,
        .cache = recordint_unwind_cache_new(),
        .generation = 1,
        .read_code = read_code,
        .code_rules = recordint_rule_table_new(),
        .code_round = 1,
    };
    struct unwind_space uncached = cached;
    struct user_regs_struct before = {0}, now;
    bool stepping = o->from_start, known = false;
    int status = 0, deliver = 0;

    uncached.cache = NULL;
    while (steps < STEPS_MAX) {
        bool marked = false;

        if (ptrace(stepping ? PTRACE_SINGLESTEP : PTRACE_CONT, pid, 0,
                   (void *)(uintptr_t)deliver) != 0 ||
            waitpid(pid, &status, 0) != pid)
            die("ptrace");
        if (!WIFSTOPPED(status))
            break;
        deliver = 0;
        if (ptrace(PTRACE_GETREGS, pid, 0, &now) != 0)
            die("registers");
        if (WSTOPSIG(status) != SIGTRAP) {
            deliver = WSTOPSIG(status); /* nothing was run */
            continue;
        }
        if (now.rax == STEP_MARK_MAGIC) {
            uint8_t byte = 0;

            marked = read_code(NULL, now.rip - 1, &byte, 1) == 1 && byte == 0xcc;
        }
        if (marked && now.rdi == MARK_BEGIN && !o->from_start) {
            stepping = true;
            read_maps();
            believe(&uncached, &now);
        } else if (marked && now.rdi == MARK_END && !o->from_start) {
            stepping = known = false;
            continue;
        } else if (marked && now.rdi == MARK_STACK) {
            add_stack(&now);
        }
        if (!stepping)
            continue;
        if (known)
            follow(&before, &now);
        known = true;
        before = now;
        steps++;
        compare_ahead(&now);
        if (!seen_often(&now, o->visits)) {
            const struct stack *s = stack_of(now.rsp);
            unsigned depth = 0;

            look(&cached, &uncached, &now);
            for (size_t i = 0; i < s->count; i++)
                depth += s->call[i].signal;
            if (o->signals && depth < 2) {
                deliver = depth == 0 ? SIGUSR1 : SIGUSR2;
                signals_sent++;
            }
        }
        if (differing + false_frames + false_ends > 1000)
            break;
    }
    settle(false);
    recordint_unwind_cache_free(cached.cache);
    recordint_rule_table_free(cached.code_rules);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

int main(int argc, char **argv)
{
    struct options o = {.least = 100, .most = 100, .visits = 2};
    int i = 1, status;
    double whole;

    for (; i < argc && strncmp(argv[i], "--", 2) == 0; i++) {
        if (strcmp(argv[i], "--start") == 0)
            o.from_start = true;
        else if (strcmp(argv[i], "--signals") == 0)
            o.signals = true;
        else if (strcmp(argv[i], "--least") == 0 && i + 1 < argc)
            o.least = atof(argv[++i]);
        else if (strcmp(argv[i], "--most") == 0 && i + 1 < argc)
            o.most = atof(argv[++i]);
        else if (strcmp(argv[i], "--gaps") == 0 && i + 1 < argc)
            o.gaps = atof(argv[++i]);
        else if (strcmp(argv[i], "--visits") == 0 && i + 1 < argc)
            o.visits = (unsigned)atoi(argv[++i]);
    }
    if (i >= argc)
        return 2;
    start(argv + i);
    status = run(&o);
    whole = walks != 0 ? 100.0 * (double)completes / (double)walks : 0;
    for (; i < argc; i++)
        printf("%s ", strrchr(argv[i], '/') != NULL ? strrchr(argv[i], '/') + 1 : argv[i]);
    printf(
        "(%zu steps): %zu stacks, %zu frames, %.2f %% complete, %zu false frames, %zu false ends",
        steps, walks, frames_total, whole, false_frames, false_ends);
    if (gaps != 0)
        printf(", %zu with gaps", gaps);
    if (came_true != 0)
        printf(", %zu ahead", came_true);
    if (o.signals)
        printf(", %zu signals", signals_sent);
    for (size_t end = 1; end <= UNWIND_NO_REGISTERS; end++)
        if (ends[end] != 0)
            printf(", %s %zu", end_names[end], ends[end]);
    printf("\n");
    for (size_t r = 0; r < range_count; r++) {
        recordint_rule_table_free(ranges[r].rules);
        recordint_image_free(ranges[r].image);
    }
    if (status != 0)
        printf("the program ends with status %d\n", status);
    return status != 0 || walks == 0 || differing + false_frames + false_ends != 0 ||
           (double)gaps * 100 > o.gaps * (double)walks || whole < o.least || whole > o.most;
}
