/* SPDX-License-Identifier: MIT */
/*
 * unwind_self [SAMPLES]: interrupts itself, keeps registers and stack bytes and what libgcc's unwinder says then and
 * there, and unwinds each sample through the caches and without them: all three must have the same frames. Needs no
 * library but the C library, so that it can be built for another machine and run in an emulator.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>

#include "unwind_chain.h"
#include "unwind_workload.h"
#include "unwinder.h" /* librecord's unwind.h, under a name that <unwind.h> has not */

#define COPY_MAX (160u << 10) /* more than a recorder has: chain_run's frames are large */
#define POOL_BYTES (256u << 20)
#define RANGES_MAX 64
#define FRAMES 512

#ifdef __aarch64__
#define PAC_MASK UINT64_C(0xff7f000000000000)
#else
#define PAC_MASK UINT64_C(0)
#endif

struct sample {
    struct regs regs;
    uint64_t *stack;
    size_t size;
    uint64_t *truth;
    size_t truth_count;
    bool on_other_stack; /* a signal handler's own: the walk cannot leave it */
    bool chain;
};

static struct sample *samples;
static volatile size_t sample_count;
static size_t sample_max;
static uint64_t *pool, *pool_end;
static __thread uint64_t stack_top;
static uint64_t other_stack_low, other_stack_top;
static volatile sig_atomic_t sampling;

static void die(const char *what)
{
    fprintf(stderr, "unwind_self: %s: %s\n", what, strerror(errno));
    exit(2);
}

/* ---- taking samples ---- */

static void registers(const ucontext_t *context, struct regs *out)
{
    out->known = 0;
#if defined(__x86_64__)
    static const int from[] = {REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI,
                               REG_RBP, REG_RSP, REG_R8,  REG_R9,  REG_R10, REG_R11,
                               REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP};

    for (unsigned i = 0; i < sizeof from / sizeof from[0]; i++)
        reg_set(out, i, (uint64_t)context->uc_mcontext.gregs[from[i]]);
#else
    for (unsigned i = 0; i < 31; i++)
        reg_set(out, i, context->uc_mcontext.regs[i]);
    reg_set(out, REG_A64_SP, context->uc_mcontext.sp);
    reg_set(out, REG_A64_PC, context->uc_mcontext.pc);
#endif
}

struct backtrace {
    struct sample *sample;
    bool inside; /* the handler's own frames are passed */
};

static _Unwind_Reason_Code one_frame(struct _Unwind_Context *context, void *user)
{
    struct backtrace *b = user;
    struct sample *s = b->sample;
    int exact;
    uint64_t pc = _Unwind_GetIPInfo(context, &exact);

    b->inside = b->inside || (exact != 0 && pc == s->regs.value[reg_pc(ARCH_NATIVE)]);
    if (b->inside && pc != 0 && s->truth_count < FRAMES && pool < pool_end) {
        s->truth[s->truth_count++] = exact != 0 ? pc : pc - 1;
        pool++;
    }
    return _URC_NO_REASON;
}

/* libgcc reads wherever registers point to. */
static __thread volatile sig_atomic_t taking_truth;
static __thread sigjmp_buf truth_failed;

static void on_bad_read(int number)
{
    if (taking_truth == 0)
        signal(number, SIG_DFL);
    else
        siglongjmp(truth_failed, 1);
}

static void take(const ucontext_t *context, bool chain, bool with_truth)
{
    struct sample *s = &samples[sample_count];
    struct backtrace b = {s, false};
    uint64_t sp, top = stack_top;
    const uint64_t *from;

    if (sample_count == sample_max || pool + COPY_MAX / 8 + FRAMES > pool_end)
        return;
    registers(context, &s->regs);
    sp = s->regs.value[reg_sp(ARCH_NATIVE)];
    s->chain = chain;
    s->on_other_stack = sp > other_stack_low && sp < other_stack_top;
    if (s->on_other_stack)
        top = other_stack_top;
    s->size = top - sp < COPY_MAX ? (size_t)(top - sp) & ~(size_t)7 : COPY_MAX;
    s->stack = pool;
    from = (const uint64_t *)sp;
    for (size_t i = 0; i < s->size / 8; i++)
        *pool++ = from[i];
    s->truth = pool;
    if (with_truth && sigsetjmp(truth_failed, 1) == 0) {
        taking_truth = 1;
        _Unwind_Backtrace(one_frame, &b);
    }
    taking_truth = 0;
    sample_count++;
}

static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;

static void on_timer(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)info;
    if (sampling != 0 && stack_top != 0 && pthread_mutex_trylock(&one_at_a_time) == 0) {
        take(context, false, true);
        pthread_mutex_unlock(&one_at_a_time);
    }
}

static void on_chain(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)info;
    take(context, true, true);
}

/* Where libgcc would be led astray. */
static void on_chain_alone(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)info;
    take(context, true, false);
}

static void on_signal(int number)
{
    (void)number;
    workload_run(2);
}

/* Deep code inside a handler inside deep code. */
static void on_signal_chain(int number)
{
    chain_run(number == SIGHUP ? SIGTRAP : SIGSYS);
}

static void *thread_main(void *unused)
{
    pthread_attr_t attributes;
    void *low;
    size_t size;

    pthread_getattr_np(pthread_self(), &attributes);
    pthread_attr_getstack(&attributes, &low, &size);
    pthread_attr_destroy(&attributes);
    stack_top = (uint64_t)low + size;
    while (sampling != 0)
        workload_run(3);
    stack_top = 0;
    return unused;
}

/* ---- signals ---- */

#ifdef __aarch64__
/* The kernel's two instructions: as a vdso has them, without unwind data and with what older kernels say, which leads
 * past the interrupted function. */
__asm__(".text\n"
        ".globl plain_sigreturn, described_sigreturn\n"
        ".balign 16\n"
        "\tnop\n"
        "plain_sigreturn:\n"
        "\tmov x8, #139\n"
        "\tsvc #0\n"
        ".balign 16\n"
        "\t.cfi_startproc\n"
        "\t.cfi_signal_frame\n"
        "\t.cfi_def_cfa x29, 0\n"
        "\t.cfi_offset x29, 0\n"
        "\t.cfi_offset x30, 8\n"
        "\tnop\n"
        "described_sigreturn:\n"
        "\tmov x8, #139\n"
        "\tsvc #0\n"
        "\t.cfi_endproc\n");
extern void plain_sigreturn(void), described_sigreturn(void);

#define KERNEL_SA_RESTORER 0x04000000

struct kernel_sigaction {
    void *handler;
    unsigned long flags;
    void (*restorer)(void);
    unsigned long mask;
};
#endif

static void handle(int number, void *handler, int flags, bool described)
{
#ifdef __aarch64__
    struct kernel_sigaction action = {handler, (unsigned long)flags | KERNEL_SA_RESTORER,
                                      described ? described_sigreturn : plain_sigreturn, 0};

    if (syscall(SYS_rt_sigaction, number, &action, NULL, 8) != 0)
        die("rt_sigaction");
#else
    struct sigaction action;

    (void)described;
    memset(&action, 0, sizeof action);
    action.sa_flags = flags;
    action.sa_sigaction = (void (*)(int, siginfo_t *, void *))handler;
    if (sigaction(number, &action, NULL) != 0)
        die("sigaction");
#endif
}

static void sample_all(bool chain_is_described)
{
    struct itimerval timer = {{0, 700}, {0, 700}}, off = {{0, 0}, {0, 0}};
    stack_t other = {0};
    pthread_t thread;

    other.ss_size = 256 << 10;
    other.ss_sp =
        mmap(NULL, other.ss_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (other.ss_sp == MAP_FAILED || sigaltstack(&other, NULL) != 0)
        die("sigaltstack");
    other_stack_low = (uint64_t)other.ss_sp;
    other_stack_top = other_stack_low + other.ss_size;
    handle(SIGSEGV, (void *)on_bad_read, 0, false);
    handle(SIGBUS, (void *)on_bad_read, 0, false);
    handle(SIGPROF, (void *)on_timer, SA_SIGINFO | SA_RESTART, false);
    handle(SIGTRAP, (void *)on_chain, SA_SIGINFO, false);
    handle(SIGSYS, (void *)on_chain_alone, SA_SIGINFO, false);
    handle(SIGUSR1, (void *)on_signal, 0, false);
    handle(SIGUSR2, (void *)on_signal, SA_ONSTACK, false);
    handle(SIGHUP, (void *)on_signal_chain, 0, false);
    handle(SIGURG, (void *)on_signal_chain, 0, true);

    chain_run(SIGTRAP);
    if (chain_is_described) { /* frame pointers do not lead across a signal frame */
        workload_raise(3, SIGHUP);
        workload_raise(3, SIGURG);
    }

    sampling = 1;
    if (pthread_create(&thread, NULL, thread_main, NULL) != 0)
        die("pthread_create");
    setitimer(ITIMER_PROF, &timer, NULL);
    while (sample_count < sample_max && pool + COPY_MAX / 8 + FRAMES <= pool_end) {
        workload_run(2);
        workload_raise(5, SIGUSR1);
        workload_raise(5, SIGUSR2);
    }
    setitimer(ITIMER_PROF, &off, NULL);
    sampling = 0;
    pthread_join(thread, NULL);
}

/* ---- what is mapped ---- */

struct mapping_list {
    struct unwind_range range[RANGES_MAX];
    size_t count;
};

static bool find(void *user, uint64_t address, struct unwind_range *out)
{
    const struct mapping_list *list = user;

    for (size_t i = 0; i < list->count; i++) {
        if (address >= list->range[i].start && address < list->range[i].end) {
            *out = list->range[i];
            return true;
        }
    }
    return false;
}

static void read_maps(struct mapping_list *list)
{
    FILE *f = fopen("/proc/self/maps", "re");
    char line[1024];

    while (f != NULL && list->count < RANGES_MAX && fgets(line, sizeof line, f) != NULL) {
        struct unwind_range *r = &list->range[list->count];
        char path[512] = "", mode[8];
        int fd;

        memset(r, 0, sizeof *r);
        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %*s %*s %511s", &r->start,
                   &r->end, mode, &r->file_offset, path) < 4 ||
            strchr(mode, 'x') == NULL)
            continue;
        r->module = (uint32_t)list->count++;
        r->file = path[0] == '/';
        fd = r->file ? open(path, O_RDONLY | O_CLOEXEC) : -1;
        if (fd >= 0 && recordint_image_open_fd(fd, &r->image) == 0)
            r->rules = recordint_rule_table_new();
        if (fd >= 0)
            close(fd);
    }
    if (f != NULL)
        fclose(f);
}

/* ---- comparing ---- */

struct walked {
    struct unwind_frame frame[FRAMES];
    struct unwind_result result;
};

static void walk(struct unwind_space *space, const struct sample *s, struct walked *out)
{
    struct unwind_input input = {ARCH_NATIVE, s->regs, (const uint8_t *)s->stack, s->size,
                                 PAC_MASK};

    recordint_unwind(space, &input, out->frame, FRAMES, &out->result);
}

static void print_walked(const char *who, const struct walked *w)
{
    fprintf(stderr, "  %s, end %d:", who, (int)w->result.end);
    for (size_t i = 0; i < w->result.count; i++)
        fprintf(stderr, " %" PRIx64, w->frame[i].address);
    fprintf(stderr, "\n");
}

static bool differ(const char *what, size_t index, const struct walked *a, const struct walked *b)
{
    fprintf(stderr, "unwind_self: sample %zu of %zu: %s\n", index, (size_t)sample_count, what);
    print_walked("cached", a);
    print_walked("uncached", b);
    fprintf(stderr, "  libgcc:");
    for (size_t i = 0; i < samples[index].truth_count; i++)
        fprintf(stderr, " %" PRIx64, samples[index].truth[i]);
    fprintf(stderr, "\n");
    return false;
}

static bool same(const struct walked *a, const struct walked *b)
{
    if (a->result.count != b->result.count || a->result.end != b->result.end ||
        a->result.guessed != b->result.guessed || a->result.signal != b->result.signal)
        return false;
    for (size_t i = 0; i < a->result.count; i++)
        if (a->frame[i].address != b->frame[i].address || a->frame[i].module != b->frame[i].module)
            return false;
    return true;
}

static bool is_in_chain(size_t function, uint64_t address)
{
    uint64_t begin = (uint64_t)chain_function[function];

    return address >= begin && address < (uint64_t)chain_function[function + 1];
}

/* The functions of the chain follow each other without a gap; those that the signal was raised through lie below. */
static bool has_chain(const struct walked *a)
{
    size_t i = 0;

    while (i < a->result.count && !is_in_chain(chain_count - 1, a->frame[i].address))
        i++;
    for (size_t function = chain_count; function-- > 0; i++)
        if (i >= a->result.count || !is_in_chain(function, a->frame[i].address))
            return false;
    return true;
}

/* How many of the frames are libgcc's, from the leaf on; it takes a trampoline for a function that made a call. */
static size_t common(const struct walked *a, const struct sample *s)
{
    size_t i = 0;

    while (i < a->result.count && i < s->truth_count &&
           (a->frame[i].address == s->truth[i] ||
            (a->result.signal && a->frame[i].address == s->truth[i] + 1)))
        i++;
    return i;
}

/* Where stacks end on which all agree: at the starts of the program and of threads. */
static uint64_t known_end[8];
static size_t known_ends;

static bool truth_is_complete(const struct sample *s)
{
    bool known = false;

    for (size_t i = 0; i < known_ends && s->truth_count > 0; i++)
        known = known || known_end[i] == s->truth[s->truth_count - 1];
    return known;
}

static void learn_end(const struct sample *s)
{
    if (!truth_is_complete(s) && known_ends < 8)
        known_end[known_ends++] = s->truth[s->truth_count - 1];
}

static bool compare_all(struct unwind_space *cached, struct unwind_space *uncached,
                        bool chain_is_described)
{
    static struct walked a, b;
    size_t frames = 0, signals = 0, guessed = 0, elsewhere = 0, longer = 0, lost = 0, wrong = 0;

    for (size_t i = 0; i < sample_count && wrong < 5; i++) {
        const struct sample *s = &samples[i];
        enum unwind_end end = s->on_other_stack ? UNWIND_STACK_READ : UNWIND_COMPLETE;
        size_t shared;

        walk(cached, s, &a);
        walk(uncached, s, &b);
        shared = common(&a, s);
        frames += a.result.count;
        signals += a.result.signal;
        guessed += a.result.guessed;
        elsewhere += s->on_other_stack;
        if (!same(&a, &b))
            wrong += !differ("cached and uncached", i, &a, &b);
        else if (a.result.end != end && !s->chain && !truth_is_complete(s))
            lost++; /* in longjmp, whose unwind data leads astray: glibc hides the addresses that it restores */
        else if (a.result.end != end)
            wrong += !differ("another end", i, &a, &b);
        else if (s->chain && !has_chain(&a))
            wrong += !differ("functions are missing", i, &a, &b);
        else if (shared < a.result.count && shared < s->truth_count &&
                 (!s->chain || chain_is_described))
            wrong += !differ("other frames than libgcc", i, &a, &b);
        else if (!s->on_other_stack && shared == a.result.count && shared < s->truth_count)
            wrong += !differ("fewer frames than libgcc", i, &a, &b);
        else if (shared < a.result.count)
            longer++;
        else if (a.result.end == UNWIND_COMPLETE)
            learn_end(s);
    }
    printf("%zu samples, %zu frames; %zu stacks with signal frames, %zu of them on another stack; "
           "%zu with guesses; %zu longer than libgcc's; %zu lost with libgcc\n",
           (size_t)sample_count, frames, signals, elsewhere, guessed, longer, lost);
    return wrong == 0 && known_ends > 0 && longer <= sample_count / 5 &&
           lost <= 1 + sample_count / 50 && signals > sample_count / 50 && elsewhere > 0;
}

int main(int argc, char **argv)
{
    static struct mapping_list list;
    struct unwind_space cached = {find, &list, NULL, 1, NULL};
    struct unwind_space uncached = cached;
    bool good;

    sample_max = argc > 1 ? (size_t)atol(argv[1]) : 500;
    samples = calloc(sample_max + 8, sizeof *samples);
    pool = mmap(NULL, POOL_BYTES, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (samples == NULL || sample_max == 0 || pool == MAP_FAILED)
        die("memory");
    pool_end = pool + POOL_BYTES / 8;
    stack_top = (uint64_t)environ & ~UINT64_C(7);
    read_maps(&list);
    {
        struct sample first = {.truth = pool, .truth_count = FRAMES};
        struct backtrace b = {&first, false};

        _Unwind_Backtrace(one_frame, &b); /* which allocates, once */
    }
    sample_all(argc < 3);
    cached.cache = recordint_unwind_cache_new();
    good = compare_all(&cached, &uncached, argc < 3);
    recordint_unwind_cache_free(cached.cache);
    for (size_t i = 0; i < list.count; i++) {
        recordint_rule_table_free(list.range[i].rules);
        recordint_image_free(list.range[i].image);
    }
    free(samples);
    return good ? 0 : 1;
}
