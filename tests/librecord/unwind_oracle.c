/* SPDX-License-Identifier: MIT */
/*
 * unwind_oracle [SAMPLES]: interrupts itself, keeps registers and stack bytes, and unwinds each sample through
 * the caches, without them, and with libdw: all three must have the same frames. Then the same with bytes
 * changed at random, where libdw is not asked. Prints what it did; exits with 1 at the first difference.
 */
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "unwind.h"
#include "unwind_workload.h"

#define COPY_MAX 65528u
#define POOL_BYTES (192u << 20)
#define RANGES_MAX 128
#define FRAMES 1024
#define RED_ZONE 128
#define STEPPED_MAX 4000
#define NO_ASAN __attribute__((no_sanitize("address")))

struct sample {
    struct regs regs;
    uint64_t *stack;
    size_t size;
    uint64_t red_zone[RED_ZONE /
                      8]; /* below the stack pointer, for libdw, which forgets a register that an
                                        epilogue has popped unless its place can be read */
    bool on_other_stack;  /* a signal handler's own: the walk cannot leave it */
};

static struct sample *samples;
static volatile size_t sample_count;
static size_t sample_max;
static uint64_t *pool, *pool_end;
static __thread uint64_t stack_top; /* where this thread's stack ends */
static uint64_t other_stack_low, other_stack_top;
static volatile sig_atomic_t sampling;

static void die(const char *what)
{
    fprintf(stderr, "unwind_oracle: %s: %s\n", what, strerror(errno));
    exit(2);
}

/* ---- taking samples ---- */

static void registers(const ucontext_t *context, struct regs *out)
{
#if defined(__x86_64__)
    static const int from[] = {REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI,
                               REG_RBP, REG_RSP, REG_R8,  REG_R9,  REG_R10, REG_R11,
                               REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP};

    out->known = 0;
    for (unsigned i = 0; i < sizeof from / sizeof from[0]; i++)
        reg_set(out, i, (uint64_t)context->uc_mcontext.gregs[from[i]]);
#else
    out->known = 0;
    for (unsigned i = 0; i < 31; i++)
        reg_set(out, i, context->uc_mcontext.regs[i]);
    reg_set(out, REG_A64_SP, context->uc_mcontext.sp);
    reg_set(out, REG_A64_PC, context->uc_mcontext.pc);
#endif
}

NO_ASAN static void take(const ucontext_t *context)
{
    struct sample *s = &samples[sample_count];
    uint64_t sp, top = stack_top;
    volatile const uint64_t *from;

    if (sample_count == sample_max || pool + COPY_MAX / 8 > pool_end)
        return;
    registers(context, &s->regs);
    sp = s->regs.value[reg_sp(ARCH_NATIVE)];
    s->on_other_stack = sp > other_stack_low && sp < other_stack_top;
    if (s->on_other_stack)
        top = other_stack_top;
    s->size = top - sp < COPY_MAX ? (size_t)(top - sp) & ~(size_t)7 : COPY_MAX;
    s->stack = pool;
    from = (const uint64_t *)sp;
    for (size_t i = 0; i < s->size / 8; i++)
        *pool++ = from[i];
    from = (const uint64_t *)(sp - RED_ZONE);
    for (size_t i = 0; i < RED_ZONE / 8; i++)
        s->red_zone[i] = from[i];
    sample_count++;
}

static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;

static void on_timer(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)info;
    if (sampling != 0 && stack_top != 0 && pthread_mutex_trylock(&one_at_a_time) == 0) {
        take(context);
        pthread_mutex_unlock(&one_at_a_time);
    }
}

static void on_signal(int number)
{
    (void)number;
    workload_run(30);
}

static void on_signal_elsewhere(int number)
{
    (void)number;
    workload_run(10);
}

/* Every instruction is a sample: prologues, epilogues, PLT, the dynamic linker. Each at most twice. */
static uint64_t stepped[2 * STEPPED_MAX];

static volatile sig_atomic_t stepping;

static void on_step(int number, siginfo_t *info, void *context)
{
#ifdef __x86_64__
    ucontext_t *c = context;
    uint64_t pc = (uint64_t)c->uc_mcontext.gregs[REG_RIP];
    size_t i = (pc * UINT64_C(0x9e3779b97f4a7c15) >> 40) % STEPPED_MAX * 2;

    (void)number;
    (void)info;
    c->uc_mcontext.gregs[REG_EFL] &= ~0x100LL;
    c->uc_mcontext.gregs[REG_EFL] |= stepping != 0 ? 0x100 : 0; /* trap flag */
    if (stepped[i] == pc && stepped[i + 1] == pc)
        return;
    stepped[i + 1] = stepped[i];
    stepped[i] = pc;
    take(context);
#else
    (void)number;
    (void)info;
    (void)context;
#endif
}

static void step_through(void)
{
    stepping = 1;
    raise(SIGTRAP);
    workload_run(1);
    stepping = 0;
}

/* Interrupts the calling thread every half millisecond. Timers of processor time would do so once a tick only. */
static timer_t interrupts(void)
{
    struct itimerspec spec = {{0, 500000}, {0, 500000}};
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGPROF};
    timer_t timer;

    event._sigev_un._tid = gettid();
    if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0 ||
        timer_settime(timer, 0, &spec, NULL) != 0)
        die("timer_create");
    return timer;
}

static void *thread_main(void *unused)
{
    pthread_attr_t attributes;
    timer_t timer;
    void *low;
    size_t size;

    pthread_getattr_np(pthread_self(), &attributes);
    pthread_attr_getstack(&attributes, &low, &size);
    pthread_attr_destroy(&attributes);
    stack_top = (uint64_t)low + size;
    timer = interrupts();
    while (sampling != 0)
        workload_run(100);
    timer_delete(timer);
    stack_top = 0;
    return unused;
}

static void handle(int number, void *handler, int flags)
{
    struct sigaction action;

    memset(&action, 0, sizeof action);
    action.sa_flags = flags;
    if ((flags & SA_SIGINFO) != 0)
        action.sa_sigaction = (void (*)(int, siginfo_t *, void *))handler;
    else
        action.sa_handler = (void (*)(int))handler;
    sigaction(number, &action, NULL);
}

static void sample_all(bool steps)
{
    stack_t other = {0};
    pthread_t thread;
    timer_t timer;
    size_t wanted = sample_max;

    other.ss_size = 256 << 10;
    other.ss_sp =
        mmap(NULL, other.ss_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (other.ss_sp == MAP_FAILED || sigaltstack(&other, NULL) != 0)
        die("sigaltstack");
    other_stack_low = (uint64_t)other.ss_sp;
    other_stack_top = other_stack_low + other.ss_size;
    handle(SIGPROF, (void *)on_timer, SA_SIGINFO | SA_RESTART);
    handle(SIGTRAP, (void *)on_step, SA_SIGINFO);
    handle(SIGUSR1, (void *)on_signal, 0);
    handle(SIGUSR2, (void *)on_signal_elsewhere, SA_ONSTACK);

    if (steps) {
        sample_max = wanted / 2;
        step_through();
        printf("%zu samples of single steps\n", sample_count);
        sample_max = wanted;
    }
    sampling = 1;
    if (pthread_create(&thread, NULL, thread_main, NULL) != 0)
        die("pthread_create");
    timer = interrupts();
    while (sample_count < sample_max && pool + COPY_MAX / 8 <= pool_end) {
        workload_run(100);
        workload_raise(25, SIGUSR1);
        workload_raise(15, SIGUSR2);
    }
    timer_delete(timer);
    sampling = 0;
    pthread_join(thread, NULL);
    printf("%zu samples\n", sample_count);
}

/* ---- what is mapped ---- */

struct mapping_list {
    struct unwind_range range[RANGES_MAX];
    char path[RANGES_MAX][256];
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

static struct image *open_image(const char *path, uint64_t start, uint64_t end)
{
    struct image *image = NULL;
    int fd;

    if (strcmp(path, "[vdso]") == 0) {
        recordint_image_open_memory((const void *)start, (size_t)(end - start), &image);
        return image;
    }
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        recordint_image_open_fd(fd, &image);
        close(fd);
    }
    return image;
}

static void read_maps(struct mapping_list *list)
{
    FILE *f = fopen("/proc/self/maps", "re");
    char line[512];

    if (f == NULL)
        die("/proc/self/maps");
    while (list->count < RANGES_MAX && fgets(line, sizeof line, f) != NULL) {
        struct unwind_range *r = &list->range[list->count];
        char mode[8], *path = list->path[list->count];

        path[0] = '\0';
        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %*s %*s %255[^\n]", &r->start,
                   &r->end, mode, &r->file_offset, path) < 4 ||
            strchr(mode, 'x') == NULL)
            continue;
        r->module = (uint32_t)list->count++;
        r->file = path[0] == '/' || strcmp(path, "[vdso]") == 0;
        r->image = r->file ? open_image(path, r->start, r->end) : NULL;
        r->rules = r->image != NULL ? recordint_rule_table_new() : NULL;
        for (size_t i = 0; r->image != NULL && i < list->count - 1; i++) {
            if (strcmp(list->path[i], path) == 0 && list->range[i].rules != NULL) {
                recordint_rule_table_free(r->rules); /* one file, one table */
                recordint_image_free(r->image);
                r->rules = list->range[i].rules;
                r->image = list->range[i].image;
            }
        }
    }
    fclose(f);
}

/* ---- libdw ---- */

struct libdw_walk {
    const struct sample *sample;
    struct unwind_frame frame[FRAMES];
    size_t count;
    bool complete;
};

static pid_t next_thread(Dwfl *dwfl, void *user, void **thread)
{
    (void)dwfl;
    if (*thread != NULL)
        return 0;
    *thread = user;
    return getpid();
}

static bool get_thread(Dwfl *dwfl, pid_t tid, void *user, void **thread)
{
    (void)dwfl;
    (void)tid;
    *thread = user;
    return true;
}

static bool read_memory(Dwfl *dwfl, Dwarf_Addr address, Dwarf_Word *out, void *user)
{
    const struct libdw_walk *w = user;
    uint64_t sp = w->sample->regs.value[reg_sp(ARCH_NATIVE)];

    (void)dwfl;
    if (address - (sp - RED_ZONE) <= RED_ZONE - 8) {
        memcpy(out, (const uint8_t *)w->sample->red_zone + (address - (sp - RED_ZONE)), 8);
        return true;
    }
    if (address - sp > w->sample->size - 8 || w->sample->size < 8)
        return false;
    memcpy(out, (const uint8_t *)w->sample->stack + (address - sp), 8);
    return true;
}

static bool initial_registers(Dwfl_Thread *thread, void *user)
{
    const struct libdw_walk *w = user;

#ifdef __aarch64__
    dwfl_thread_state_register_pc(thread, w->sample->regs.value[REG_A64_PC]);
    return dwfl_thread_state_registers(thread, 0, 32, w->sample->regs.value);
#else
    return dwfl_thread_state_registers(thread, 0, 17, w->sample->regs.value);
#endif
}

static int one_frame(Dwfl_Frame *state, void *user)
{
    struct libdw_walk *w = user;
    bool exact;
    Dwarf_Addr pc;

    if (w->count == FRAMES || !dwfl_frame_pc(state, &pc, &exact))
        return DWARF_CB_ABORT;
    w->frame[w->count++].address = exact ? pc : pc - 1;
    return DWARF_CB_OK;
}

static int no_debuginfo(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base,
                        const char *file, const char *link, GElf_Word crc, char **out)
{
    (void)module, (void)data, (void)name, (void)base, (void)file, (void)link, (void)crc, (void)out;
    return -1;
}

static Dwfl *open_libdw(struct libdw_walk *w)
{
    static const Dwfl_Callbacks callbacks = {.find_elf = dwfl_linux_proc_find_elf,
                                             .find_debuginfo = no_debuginfo};
    static const Dwfl_Thread_Callbacks threads = {.next_thread = next_thread,
                                                  .get_thread = get_thread,
                                                  .memory_read = read_memory,
                                                  .set_initial_registers = initial_registers};
    Dwfl *dwfl = dwfl_begin(&callbacks);

    if (dwfl == NULL || dwfl_linux_proc_report(dwfl, getpid()) != 0 ||
        dwfl_report_end(dwfl, NULL, NULL) != 0 ||
        !dwfl_attach_state(dwfl, NULL, getpid(), &threads, w)) {
        fprintf(stderr, "unwind_oracle: libdw: %s\n", dwfl_errmsg(-1));
        exit(2);
    }
    return dwfl;
}

/* ---- comparing ---- */

struct walked {
    struct unwind_frame frame[FRAMES];
    struct unwind_result result;
};

static void walk(struct unwind_space *space, const struct sample *s, struct walked *out)
{
    struct unwind_input input = {ARCH_NATIVE, s->regs, (const uint8_t *)s->stack, s->size, 0};

    recordint_unwind(space, &input, out->frame, FRAMES, &out->result);
}

static void print_frames(const char *who, const struct unwind_frame *frame, size_t count)
{
    fprintf(stderr, "%s:", who);
    for (size_t i = 0; i < count && i < 100; i++)
        fprintf(stderr, " %" PRIx64, frame[i].address);
    fprintf(stderr, "\n");
}

static bool same(const struct walked *a, const struct walked *b, size_t index)
{
    bool equal = a->result.count == b->result.count && a->result.end == b->result.end &&
                 a->result.guessed == b->result.guessed && a->result.signal == b->result.signal;

    for (size_t i = 0; equal && i < a->result.count; i++)
        equal =
            a->frame[i].address == b->frame[i].address && a->frame[i].module == b->frame[i].module;
    if (!equal) {
        fprintf(stderr, "sample %zu: cached ends with %d, uncached with %d\n", index,
                (int)a->result.end, (int)b->result.end);
        print_frames("cached", a->frame, a->result.count);
        print_frames("uncached", b->frame, b->result.count);
    }
    return equal;
}

/* Where libdw reaches the end we must too, by the same frames; where it fails we may know more. libdw takes a
 * register that it does not know for the end too, and of rbx it knows less than the ABI says (its table has
 * rax in rbx's place, at least up to 0.188): there we must reach an end that other samples have. */
static bool same_as_libdw(const struct walked *a, const struct libdw_walk *w, size_t index,
                          size_t *shorter)
{
    static uint64_t known_end[8];
    static size_t known_ends;
    uint64_t last = a->result.count != 0 ? a->frame[a->result.count - 1].address : 0;
    bool equal = a->result.count >= w->count, is_known = false;

    for (size_t i = 0; equal && i < w->count; i++)
        equal = a->frame[i].address == w->frame[i].address;
    for (size_t i = 0; i < known_ends; i++)
        is_known = is_known || known_end[i] == last;
    if (equal && w->complete && !w->sample->on_other_stack) {
        equal = a->result.end == UNWIND_COMPLETE;
        if (a->result.count > w->count) {
            equal = equal && is_known;
            ++*shorter;
        } else if (!is_known && known_ends < 8) {
            known_end[known_ends++] = last;
        }
    }
    if (!equal) {
        fprintf(stderr, "sample %zu: cached ends with %d, libdw %s\n", index, (int)a->result.end,
                w->complete ? "at the end" : dwfl_errmsg(-1));
        print_frames("cached", a->frame, a->result.count);
        print_frames("libdw", w->frame, w->count);
    }
    return equal;
}

static bool compare_all(struct unwind_space *cached, struct unwind_space *uncached)
{
    static struct walked a, b;
    static struct libdw_walk w;
    size_t ends[UNWIND_NO_REGISTERS + 1] = {0};
    size_t frames = 0, signals = 0, guessed = 0, elsewhere = 0, lost = 0, shorter = 0,
           libdw_complete = 0, wrong = 0;
    Dwfl *dwfl;

    w.sample = &samples[0];
    dwfl = open_libdw(&w);
    for (size_t i = 0; i < sample_count && wrong < 10; i++) {
        walk(cached, &samples[i], &a);
        walk(uncached, &samples[i], &b);
        w.sample = &samples[i];
        w.count = 0;
        w.complete = dwfl_getthread_frames(dwfl, getpid(), one_frame, &w) == 0;
        wrong += !same(&a, &b, i) || !same_as_libdw(&a, &w, i, &shorter);
        libdw_complete += w.complete;
        ends[a.result.end]++;
        frames += a.result.count;
        signals += a.result.signal;
        guessed += a.result.guessed;
        if (samples[i].on_other_stack) {
            elsewhere++;
            if (a.result.end != UNWIND_STACK_READ || !a.result.signal) {
                fprintf(stderr, "sample %zu, on another stack, ends with %d\n", i,
                        (int)a.result.end);
                wrong++;
            }
        } else if (a.result.end != UNWIND_COMPLETE) {
            fprintf(stderr, "sample %zu ends with %d (libdw: %s)\n", i, (int)a.result.end,
                    w.complete ? "complete" : dwfl_errmsg(-1));
            print_frames("cached", a.frame, a.result.count);
            lost++;
        }
    }
    dwfl_end(dwfl);
    printf("%zu frames; %zu stacks with signal frames, %zu of them on another stack; %zu with "
           "guesses\n",
           frames, signals, elsewhere, guessed);
    for (size_t i = 0; i <= UNWIND_NO_REGISTERS; i++)
        if (ends[i] != 0)
            printf("end %zu: %zu\n", i, ends[i]);
    printf("complete with libdw: %zu, %zu of them too early\n", libdw_complete, shorter);
    return wrong == 0 && shorter < sample_count / 50 && lost == 0 && signals > sample_count / 50 &&
           elsewhere > 0;
}

/* Registers and stack bytes that no program has left: the quick and the slow way must fail alike. */
static bool compare_damaged(struct unwind_space *cached, struct unwind_space *uncached,
                            size_t rounds)
{
    static struct walked a, b;
    static uint64_t stack[COPY_MAX / 8];
    uint64_t seed = 1;
    size_t wrong = 0, ends[UNWIND_NO_REGISTERS + 1] = {0};

    for (size_t round = 0; round < rounds && wrong < 10; round++) {
        struct sample s = samples[round % sample_count];
        uint64_t sp = s.regs.value[reg_sp(ARCH_NATIVE)];

        memcpy(stack, s.stack, s.size);
        s.stack = stack;
        for (int i = 0; i < 6 && s.size >= 8; i++) {
            uint64_t value;

            seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
            value = (seed >> 20 & 3) == 0   ? seed
                    : (seed >> 20 & 3) == 1 ? sp + (seed >> 32) % s.size
                    : (seed >> 20 & 3) == 2
                        ? 0
                        : samples[(seed >> 32) % sample_count].regs.value[reg_pc(ARCH_NATIVE)];
            seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
            if ((seed >> 60 & 3) == 0)
                s.regs.value[(seed >> 32) % 17] = value;
            else
                stack[(seed >> 32) % (s.size / 8 < 200 ? s.size / 8 : 200)] = value;
            if ((seed >> 40 & 31) == 0)
                s.size = (seed >> 48) % s.size & ~(size_t)7;
        }
        walk(cached, &s, &a);
        walk(uncached, &s, &b);
        wrong += !same(&a, &b, round);
        ends[a.result.end]++;
    }
    printf("%zu damaged samples, by end:", rounds);
    for (size_t i = 0; i <= UNWIND_NO_REGISTERS; i++)
        printf(" %zu", ends[i]);
    printf("\n");
    return wrong == 0;
}

#define CACHE_GROWTHS 6 /* from 2^10 to 2^16 entries */

static double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t); /* the machine may have other work */
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static bool measure(const char *name, struct unwind_space *space, int passes)
{
    static struct walked a;
    size_t frames = 0, before = mallinfo2().uordblks;
    double best = 1e9;

    for (int pass = 0; pass < passes; pass++) {
        double start = seconds(), took;

        frames = 0;
        for (size_t i = 0; i < sample_count; i++) {
            walk(space, &samples[i], &a);
            frames += a.result.count;
        }
        took = seconds() - start;
        if (took < best)
            best = took;
    }
    printf("%s: %.1f ns per frame, %.1f frames per stack\n", name, best * 1e9 / (double)frames,
           (double)frames / (double)sample_count);
    return mallinfo2().uordblks == before;
}

int main(int argc, char **argv)
{
    static struct mapping_list list;
    struct unwind_space cached = {find, &list, NULL, 1, NULL};
    struct unwind_space uncached = cached;
    bool good;
    FILE *f;
    char line[512];

    sample_max = argc > 1 ? (size_t)atol(argv[1]) : 3000;
    samples = calloc(sample_max, sizeof *samples);
    pool = mmap(NULL, POOL_BYTES, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (samples == NULL || sample_max == 0 || pool == MAP_FAILED)
        die("memory");
    pool_end = pool + POOL_BYTES / 8;
    f = fopen("/proc/self/maps", "re");
    while (f != NULL && fgets(line, sizeof line, f) != NULL)
        if (strstr(line, "[stack]") != NULL)
            sscanf(line, "%*x-%" SCNx64, &stack_top);
    if (f != NULL)
        fclose(f);
    setvbuf(stdout, NULL, _IOLBF, 0);

    sample_all(getenv("NO_STEPS") == NULL);
    read_maps(&list);
    cached.cache = recordint_unwind_cache_new();
    good = compare_all(&cached, &uncached);
    good = compare_damaged(&cached, &uncached, sample_count * 10) && good;
    /* Addresses that share a slot make the cache grow now and then, at most CACHE_GROWTHS times. */
    for (int growths = 0; !measure("cached", &cached, 9); growths++) {
        if (growths < CACHE_GROWTHS)
            continue;
        fprintf(stderr, "unwind_oracle: memory is allocated for stacks that are known\n");
        good = false;
        break;
    }
    measure("uncached", &uncached, 1);

    recordint_unwind_cache_free(cached.cache);
    for (size_t i = 0; i < list.count; i++) {
        for (size_t j = i + 1; j < list.count; j++)
            if (list.range[j].image == list.range[i].image) {
                list.range[j].image = NULL;
                list.range[j].rules = NULL;
            }
        recordint_rule_table_free(list.range[i].rules);
        recordint_image_free(list.range[i].image);
    }
    free(samples);
    return good ? 0 : 1;
}
