/* SPDX-License-Identifier: MIT */
/* Lines of collapsed stacks: their order, what may stand in a frame, root frames, time order and
 * the mirrored form. */
#include "make_spool.h"

#include <sys/stat.h>

#include "cli.h"
#include "folded.h"

/* What a conversion is asked for. */
struct task {
    const char *inputs[4];
    struct tool_options options;
    struct folded_options folded;
};

/* The document; NULL when the conversion failed. malloc'ed. */
static char *convert(struct task *task)
{
    struct tool_output out;
    char path[] = "/tmp/test_folded_XXXXXX", *text = NULL;
    int fd = mkstemp(path), rc;
    struct stat status;

    assert_true(fd >= 0);
    task->options.inputs = task->inputs;
    for (task->options.input_count = 0;
         task->options.input_count < 4 && task->inputs[task->options.input_count];)
        task->options.input_count++;
    task->options.progress = PROGRESS_NEVER;
    assert_int_equal(output_open(&out, path, false), 0);
    rc = folded_convert(&task->options, &task->folded, &out);
    if (rc == 0)
        rc = output_commit(&out);
    else
        output_abort(&out);
    close(fd);
    if (rc == 0) {
        FILE *f = fopen(path, "r");

        assert_non_null(f);
        assert_int_equal(fstat(fileno(f), &status), 0);
        text = calloc(1, (size_t)status.st_size + 1);
        assert_non_null(text);
        assert_int_equal(fread(text, 1, (size_t)status.st_size, f), status.st_size);
        assert_int_equal(strlen(text), status.st_size);
        fclose(f);
    }
    unlink(path);
    return text;
}

static void expect(struct task *t, const char *expected)
{
    char *text = convert(t);

    assert_non_null(text);
    assert_string_equal(text, expected);
    free(text);
}

/* One process 40 "app" whose one sample has the stack of these names; converted with these
 * options. */
static void expect_line(const char *const *names, size_t count, struct folded_options folded,
                        const char *expected)
{
    struct task t = {.folded = folded};
    struct spool_writer_frame frames[16];
    struct maker m;

    maker_open(&m, 0);
    maker_names(&m, names, count);
    maker_note(&m, 40, "comm", "app");
    for (size_t i = 0; i < count; i++)
        frames[count - 1 - i] = maker_name_frame(&m, i);
    assert_int_equal(spool_writer_sample(m.writer, 1, 40, 41, frames, count), 0);
    maker_finish(&m);
    t.inputs[0] = m.path;
    expect(&t, expected);
    maker_close(&m);
}

/* A single frame without root frames. */
static void expect_frame(const char *name, const char *expected)
{
    char line[256];

    snprintf(line, sizeof line, "%s 1\n", expected);
    expect_line(&name, 1, (struct folded_options){0}, line);
}

static const char *const letters[] = {"a", "b", "c", "d", "main", "run", "f", "g"};

#define LETTERS letters, sizeof letters / sizeof letters[0]

/* ---- frames ---- */

static void the_worked_example_comes_out_as_written(void **state)
{
    struct task t = {.folded = {.root = FOLDED_ROOT_PROCESS}};
    struct maker m;

    (void)state;
    maker_open(&m, 10000000);
    maker_names(&m, LETTERS);
    maker_note(&m, 40, "comm", "app");
    maker_note(&m, 40, "thread", "41 worker 1");
    maker_put(&m, 10000000, 40, 41, "main;run;f");
    maker_put(&m, 20000000, 40, 41, "main;run;f;g");
    maker_put(&m, 60000000, 40, 41, "main;run");
    maker_finish(&m);
    t.inputs[0] = m.path;
    expect(&t, "app;main;run 1\napp;main;run;f 1\napp;main;run;f;g 1\n");
    t.folded.time = true;
    expect(&t, "app;main;run 10000\napp;main;run;f 10000\napp;main;run;f;g 10000\n");
    t.folded.root = FOLDED_ROOT_THREAD;
    t.folded.time = false;
    expect(&t, "app-40;worker_1-41;main;run 1\napp-40;worker_1-41;main;run;f 1\n"
               "app-40;worker_1-41;main;run;f;g 1\n");
    maker_close(&m);
}

static void names_are_not_cut(void **state)
{
    (void)state;
    expect_frame("f<(E)1>::g(int)", "f<(E)1>::g(int)"); /* O1 */
    expect_frame("operator->", "operator->");
    expect_frame("Lcom/a/B;::m()V", "Lcom/a/B:::m()V"); /* O3 */
    expect_frame("F[int]", "F[int]");                   /* O6 */
    expect_frame("v<int>::p(int)", "v<int>::p(int)");
    expect_frame("<module>", "<module>");
    expect_frame("py::<module>:/srv/x.py", "<module>"); /* split by libsym: O6 is about pprof */
    expect_frame("f(int)::{lambda()#1}", "f(int)::{lambda()#1}");
    expect_frame("a|b/c\\d\"e'f", "a|b/c\\d\"e'f");
}

/* A function of ours with a Rust name: symbols come from this very program. */
void rust_function(void) __asm__("_RNvCs1234_7mycrate3foo");
__attribute__((noinline)) void rust_function(void)
{
    __asm__ volatile("");
}

static void symbols_are_demangled(void **state)
{
    uint64_t address = (uint64_t)(uintptr_t)&rust_function, start, end, offset;
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[1024], path[512];
    bool found = false;
    struct task t = {0};
    struct maker m;

    (void)state;
    assert_non_null(maps);
    maker_open(&m, 0);
    while (!found && fgets(line, sizeof line, maps)) {
        struct spool_module module = {.pid = 1, .path = path};
        unsigned long long begin, stop, from;

        if (sscanf(line, "%llx-%llx %*s %llx %*s %*s %511s", &begin, &stop, &from, path) != 4)
            continue;
        start = begin;
        end = stop;
        offset = from;
        found = address >= start && address < end;
        module.start = start;
        module.end = end;
        module.file_offset = offset;
        module.path_size = strlen(path);
        if (found)
            assert_int_equal(spool_writer_module(m.writer, &module, NULL), 0);
    }
    fclose(maps);
    assert_true(found);
    snprintf(line, sizeof line, "$%llx", (unsigned long long)address);
    maker_put(&m, 1, 1, 1, line);
    maker_finish(&m);
    t.inputs[0] = m.path;
    expect(&t, "mycrate::foo 1\n"); /* O7 */
    t.options.shape.demangle = SYM_DEMANGLE_NONE;
    expect(&t, "_RNvCs1234_7mycrate3foo 1\n");
    maker_close(&m);
}

static void a_semicolon_is_a_colon_and_a_line_break_a_blank(void **state)
{
    static const char *const names[] = {"a;b", "a:b", "a b", "x\ny\rz", ";"};

    (void)state;
    expect_line(names, 5, (struct folded_options){0}, "a:b;a:b;a b;x y z;: 1\n");
}

static void bytes_that_are_no_text_are_replaced(void **state)
{
    struct task t = {0};
    struct maker m;

    (void)state;
    maker_open(&m, 0);
    maker_module(&m, 1, 0x1000, 0x1000,
                 "/x/lib\xff\xfe;\n 7"); /* version 4 has any bytes in paths */
    maker_put(&m, 1, 1, 1, "0+10");
    maker_finish(&m);
    t.inputs[0] = m.path;
    expect(&t, "lib\xef\xbf\xbd\xef\xbf\xbd:  7+0x10 1\n");
    t.options.shape.unresolved_module = true;
    t.folded.root = FOLDED_ROOT_PROCESS;
    expect(&t, "lib\xef\xbf\xbd\xef\xbf\xbd:__7;[lib\xef\xbf\xbd\xef\xbf\xbd:  7] 1\n");
    maker_close(&m);
    expect_frame("\x01\x02 x \x7f", "x");
    expect_frame("\xe2\x80\xa8", "[unnamed]"); /* U+2028 */
}

static void a_frame_must_not_end_in_a_second_count(void **state)
{
    (void)state;
    expect_frame("worker 12", "worker_12"); /* O2 */
    expect_frame("worker 12.5", "worker_12.5");
    expect_frame("worker 12.", "worker_12.");
    expect_frame("worker .5", "worker .5");
    expect_frame("worker 1.2.3", "worker 1.2.3");
    expect_frame("worker 0x12", "worker 0x12");
    expect_frame("worker -12", "worker -12");
    expect_frame("worker  12", "worker _12");
    expect_frame("a 1 2", "a 1_2");
    expect_frame("12", "12");
    expect_frame(" 12", "12"); /* blanks at the ends are gone before */
    expect_frame("worker12", "worker12");
    expect_frame("x;1 2", "x:1_2");
}

static void the_rule_holds_behind_suffixes_and_inside_the_line(void **state)
{
    static const char *const names[] = {"main", "worker 12", "leaf 3"};

    (void)state;
    expect_line(names, 3, (struct folded_options){0}, "main;worker_12;leaf_3 1\n");
    expect_line(names, 3, (struct folded_options){.annotate = true},
                "main_[j];worker 12_[j];leaf 3_[j] 1\n");
    expect_line(names, 3, (struct folded_options){.with_modules = true},
                "main ([jit]);worker 12 ([jit]);leaf 3 ([jit]) 1\n");
    expect_line(names, 3, (struct folded_options){.with_addresses = true},
                "main 0x10000001;worker 12 0x10000011;leaf 3 0x10000021 1\n");
    expect_line(
        names, 3,
        (struct folded_options){.with_addresses = true, .with_modules = true, .annotate = true},
        "main ([jit]) 0x10000001_[j];worker 12 ([jit]) 0x10000011_[j];"
        "leaf 3 ([jit]) 0x10000021_[j] 1\n");
}

static void a_line_begins_neither_with_a_hash_nor_with_a_brace(void **state)
{
    static const char *const hash[] = {"#main", "#x", "{y"}, *const brace[] = {"{main}", "f"};
    static const char *const names[] = {"#a", "_#a"};
    struct task t = {0};
    struct maker m;

    (void)state;
    expect_line(hash, 3, (struct folded_options){0}, "_#main;#x;{y 1\n");
    expect_line(hash, 3, (struct folded_options){.reverse = true}, "_{y;#x;#main 1\n");
    expect_line(hash, 3, (struct folded_options){.timeline = true}, "_#main;#x;{y 1\n");
    expect_line(hash, 3, (struct folded_options){.timeline = true, .reverse = true},
                "_{y;#x;#main 1\n");
    expect_line(hash, 3, (struct folded_options){.root = FOLDED_ROOT_PROCESS},
                "app;#main;#x;{y 1\n");
    expect_line(hash, 3, (struct folded_options){.root = FOLDED_ROOT_PROCESS, .reverse = true},
                "_{y;#x;#main;app 1\n");
    expect_line(brace, 2, (struct folded_options){0}, "_{main};f 1\n");

    maker_open(&m, 0); /* what becomes equal is one line */
    maker_names(&m, names, 2);
    maker_note(&m, 1, "comm", "{json}");
    maker_put(&m, 1, 1, 1, "#a");
    maker_put(&m, 2, 1, 1, "_#a");
    maker_put(&m, 3, 1, 1, "#a;#a");
    maker_finish(&m);
    t.inputs[0] = m.path;
    expect(&t, "_#a 2\n_#a;#a 1\n");
    t.folded.reverse = true;
    expect(&t, "_#a 2\n_#a;#a 1\n");
    t.folded.reverse = false;
    t.options.shape.fold_recursion = true;
    expect(&t, "_#a 3\n");
    t.folded.root = FOLDED_ROOT_PROCESS;
    expect(&t, "_{json};#a 2\n_{json};_#a 1\n");
    maker_close(&m);
}

/* ---- root frames ---- */

static void root_frames_have_no_blanks_and_say_who(void **state)
{
    struct task t = {0};
    struct maker m;

    (void)state;
    maker_open(&m, 0);
    maker_names(&m, LETTERS);
    maker_note(&m, 1, "comm", "Web Content; 12");
    maker_note(&m, 1, "thread", "3 V8 Worker 3");
    maker_put(&m, 1, 1, 3, "main");
    maker_put(&m, 2, 1, 4, "main");
    maker_put(&m, 3, 1, 1, "[truncated];main");
    maker_finish(&m);
    t.inputs[0] = m.path;
    expect(&t, "[truncated];main 1\nmain 2\n");
    t.folded.root = FOLDED_ROOT_PROCESS;
    expect(&t, "Web_Content:_12;[truncated];main 1\nWeb_Content:_12;main 2\n");
    t.folded.root = FOLDED_ROOT_PID;
    expect(&t, "Web_Content:_12-1;[truncated];main 1\nWeb_Content:_12-1;main 2\n");
    t.folded.root = FOLDED_ROOT_THREAD; /* O4; without a name the id alone */
    expect(&t, "Web_Content:_12-1;1;[truncated];main 1\nWeb_Content:_12-1;4;main 1\n"
               "Web_Content:_12-1;V8_Worker_3-3;main 1\n");
    t.options.shape.has_max_depth = true;
    t.options.shape.max_depth = 1;
    expect(&t, "Web_Content:_12-1;1;[1 frames omitted];main 1\nWeb_Content:_12-1;4;main 1\n"
               "Web_Content:_12-1;V8_Worker_3-3;main 1\n");
    maker_close(&m);
}

static void a_renamed_thread_leaves_the_root_to_the_process(void **state)
{
    struct task t = {.folded = {.root = FOLDED_ROOT_PROCESS}};
    struct maker m;

    (void)state;
    maker_open(&m, 0);
    maker_names(&m, LETTERS);
    maker_note(&m, 1, "comm", "server");
    maker_put(&m, 1, 1, 2, "main");
    maker_note(&m, 1, "thread", "2 pool-1");
    maker_put(&m, 2, 1, 2, "main");
    maker_note(&m, 1, "thread", "2 pool-2");
    maker_put(&m, 3, 1, 2, "main");
    maker_finish(&m);
    t.inputs[0] = m.path;
    expect(&t, "server;main 3\n");      /* O31 */
    t.folded.root = FOLDED_ROOT_THREAD; /* the first name also serves what was before it */
    expect(&t, "server-1;pool-1-2;main 2\nserver-1;pool-2-2;main 1\n");
    maker_close(&m);
}

static void a_process_after_exec_is_another_root(void **state)
{
    struct task t = {.folded = {.root = FOLDED_ROOT_PID}};
    struct maker m;

    (void)state;
    maker_open(&m, 0);
    maker_names(&m, LETTERS);
    maker_note(&m, 1, "comm", "sh");
    maker_put(&m, 1, 1, 1, "main");
    maker_note(&m, 1, "comm", "ls");
    maker_put(&m, 2, 1, 1, "main");
    maker_put(&m, 3, 2, 2, "main"); /* nothing is known of it */
    maker_put(&m, 4, 1, 1, "main");
    maker_finish(&m);
    t.inputs[0] = m.path;
    expect(&t, "[unknown]-2;main 1\nls-1;main 2\nsh-1;main 1\n");
    maker_close(&m);
}

/* ---- annotations ---- */

static void kernel_comes_from_the_mode_of_the_frame(void **state)
{
    struct task t = {.folded = {.annotate = true}};
    struct maker m;

    (void)state;
    maker_open(&m, 0);
    maker_names(&m, LETTERS);
    maker_module(&m, 1, 0x5000, 0x1000, "[vdso]");
    maker_kernel_module(&m, 0x9000, 0x1000, "/lib/nvidia.ko");
    maker_put(&m, 1, 1, 1, "main;$5010");
    maker_put(&m, 2, 1, 1, "[truncated];main;@9010;@50");
    maker_finish(&m);
    t.inputs[0] = m.path;
    t.options.symbols.no_symbols = true;
    /* O30 */
    expect(&t, "[jit-0-10000000-1000]+0x41_[j];[vdso]+0x10 1\n"
               "[truncated];[jit-0-10000000-1000]+0x41_[j];nvidia.ko+0x10_[k];0x50_[k] 1\n");
    t.folded.with_modules = true;
    expect(&t, "[jit-0-10000000-1000]+0x41 ([jit])_[j];[vdso]+0x10 ([vdso]) 1\n"
               "[truncated];[jit-0-10000000-1000]+0x41 ([jit])_[j];nvidia.ko+0x10 (nvidia.ko)_[k];"
               "0x50 ([kernel.kallsyms])_[k] 1\n");
    maker_close(&m);
}

static void placeholders_have_no_address_and_no_module(void **state)
{
    struct task t = {.folded = {.with_modules = true, .with_addresses = true, .annotate = true}};
    struct maker m;

    (void)state;
    maker_open(&m, 0);
    maker_put(&m, 1, 1, 1, "[truncated];@10");
    maker_put(&m, 2, 1, 1, "@10");
    maker_finish(&m);
    t.inputs[0] = m.path;
    t.options.shape.kernel = KERNEL_DROP;
    expect(&t, "[no frames] 1\n[truncated] 1\n");
    maker_close(&m);
}

/* ---- counts ---- */

static void microseconds_are_rounded_down_once_a_line_and_never_zero(void **state)
{
    static const struct {
        uint64_t interval_ns;
        const char *expected;
    } cases[] = {
        {1, "a 1\nb 1\n"},    {499, "a 1\nb 1\n"},
        {999, "a 1\nb 2\n"},  {1000, "a 1\nb 3\n"},
        {1999, "a 1\nb 5\n"}, {UINT64_C(2000000000000000), "a 2000000000000\nb 6000000000000\n"}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct task t = {.folded = {.time = true}};
        struct maker m;

        maker_open(&m, cases[i].interval_ns);
        maker_names(&m, LETTERS);
        maker_put(&m, 1, 1, 1, "a");
        for (uint64_t k = 2; k < 5; k++)
            maker_put(&m, k, 1, 1, "b");
        maker_finish(&m);
        t.inputs[0] = m.path;
        expect(&t, cases[i].expected);
        t.folded.timeline = true;
        expect(&t, cases[i].expected);
        t.folded.reverse = true;
        expect(&t, cases[i].expected);
        t.folded.timeline = false;
        expect(&t, cases[i].expected);
        maker_close(&m);
    }
}

static void sums_near_2_63_are_an_error_and_never_negative(void **state)
{
    (void)state;
    for (unsigned form = 0; form < 4; form++) { /* O18 */
        struct task t = {.folded = {.time = true, .timeline = form & 1, .reverse = form & 2}};
        struct capture c;
        struct maker m;
        char *text, *errors;

        maker_open(&m, INT64_MAX);
        maker_names(&m, LETTERS);
        maker_put(&m, 1, 1, 1, "a");
        maker_finish(&m);
        t.inputs[0] = m.path;
        expect(&t, "a 9223372036854775\n");
        t.inputs[1] = m.path;
        capture_begin(&c);
        text = convert(&t);
        errors = capture_end(&c);
        assert_null(text);
        assert_non_null(strstr(errors, "the sum of sample times exceeds 2^63-1 ns"));
        free(errors);
        t.folded.time = false;
        expect(&t, form & 1 ? "a 1\na 1\n" : "a 2\n");
        maker_close(&m);
    }
}

static void no_samples_are_no_lines(void **state)
{
    (void)state;
    for (unsigned form = 0; form < 4; form++) { /* O25 */
        struct task t = {
            .folded = {.root = FOLDED_ROOT_PROCESS, .timeline = form & 1, .reverse = form & 2}};
        struct maker m;

        maker_open(&m, 0);
        maker_names(&m, LETTERS);
        maker_finish(&m);
        t.inputs[0] = m.path;
        expect(&t, "");
        maker_close(&m);
    }
}

/* ---- order ---- */

static int compare_lines(const void *a, const void *b)
{
    const char *const *x = a, *const *y = b;

    return strcmp(*x, *y); /* as unsigned bytes, the shorter first */
}

/* The lines without their counts, as LC_ALL=C sort has them. */
static void expect_sorted(const char *text)
{
    char *copy = strdup(text), *rest = copy, *line;
    char **lines = calloc(strlen(text) + 1, sizeof *lines), **sorted;
    size_t n = 0;

    assert_non_null(copy);
    assert_non_null(lines);
    while ((line = strsep(&rest, "\n")) != NULL && *line) {
        char *blank = strrchr(line, ' ');

        assert_non_null(blank);
        assert_true(strtoull(blank + 1, NULL, 10) > 0);
        assert_int_equal(strspn(blank + 1, "0123456789"), strlen(blank + 1));
        *blank = '\0';
        lines[n++] = line;
    }
    assert_null(rest); /* the text ended with a line break */
    sorted = calloc(n + 1, sizeof *sorted);
    memcpy(sorted, lines, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, compare_lines);
    for (size_t i = 0; i < n; i++) {
        assert_ptr_equal(sorted[i], lines[i]);
        assert_true(i == 0 || strcmp(lines[i - 1], lines[i]) != 0);
    }
    free(sorted);
    free(lines);
    free(copy);
}

static uint64_t total(const char *text)
{
    uint64_t sum = 0;

    for (const char *line = text, *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
        const char *blank = end;

        while (*blank != ' ')
            blank--;
        sum += strtoull(blank + 1, NULL, 10);
    }
    return sum;
}

static void lines_are_sorted_as_bytes(void **state)
{
    static const char bytes[] = " !#09:;<=A_a{~\xc3\xa9";
    enum { NAMES = 60, SAMPLES = 1500 };

    (void)state;
    for (uint64_t seed = 1; seed <= 8; seed++) {
        static char texts[NAMES][16];
        const char *names[NAMES];
        uint64_t random = seed;
        struct maker m;

        for (size_t i = 0; i < NAMES; i++) {
            size_t size = random_below(&random, 5);

            names[i] = texts[i];
            memset(texts[i], 0, sizeof texts[i]);
            if (i > 0 && random_below(&random, 2)) /* a prefix of another one, or it and more */
                strcpy(texts[i], texts[random_below(&random, (uint32_t)i)]);
            if (strlen(texts[i]) > 5) { /* cut at a character */
                size_t at = 1 + random_below(&random, 4);

                while (((unsigned char)texts[i][at] & 0xc0) == 0x80)
                    at--;
                texts[i][at] = '\0';
            }
            while (size-- > 0) {
                char byte = bytes[random_below(&random, sizeof bytes - 1)];

                if ((unsigned char)byte >= 0x80)
                    strcat(texts[i], "\xc3\xa9");
                else
                    strncat(texts[i], &byte, 1);
            }
        }
        maker_open(&m, 1000);
        maker_names(&m, names, NAMES);
        for (size_t i = 0; i < SAMPLES; i++) {
            struct spool_writer_frame frames[6];
            size_t depth = 1 + random_below(&random, 6);

            if (random_below(&random, 20) == 0)
                maker_note(&m, 1 + (int32_t)random_below(&random, 3), "comm",
                           names[random_below(&random, NAMES)]);
            for (size_t k = 0; k < depth; k++)
                frames[k] = maker_name_frame(&m, random_below(&random, k % 2 ? NAMES : NAMES / 6));
            assert_int_equal(spool_writer_sample(m.writer, i, 1 + (int32_t)random_below(&random, 3),
                                                 random_below(&random, 3) + 1, frames, depth),
                             0);
        }
        maker_finish(&m);
        for (unsigned form = 0; form < 32; form++) {
            struct task t = {.inputs = {m.path},
                             .folded = {.root = (enum folded_root)(form % 4),
                                        .reverse = form / 4 & 1,
                                        .time = form / 8 & 1,
                                        .with_modules = form / 16 & 1}};
            char *text = convert(&t), *lines;

            assert_non_null(text);
            expect_sorted(text);
            assert_int_equal(total(text), SAMPLES);
            /* the same in time order: other lines, the same total of every line */
            t.folded.timeline = true;
            lines = convert(&t);
            assert_non_null(lines);
            assert_int_equal(total(lines), SAMPLES);
            free(lines);
            free(text);
        }
        maker_close(&m);
    }
}

static void neighbours_of_the_semicolon_are_in_their_places(void **state)
{
    static const char *const names[] = {"a", "a:", "a!", "a<", "a b", "ab", "a\xc3\xa9"};
    struct task t = {0};
    struct maker m;

    (void)state;
    maker_open(&m, 0);
    maker_names(&m, names, 7);
    for (unsigned i = 0; i < 7; i++) {
        char stack[16];

        snprintf(stack, sizeof stack, "%%%u", i);
        maker_put(&m, 1, 1, 1, stack);
        snprintf(stack, sizeof stack, "%%%u;%%0", i);
        maker_put(&m, 1, 1, 1, stack);
    }
    maker_finish(&m);
    t.inputs[0] = m.path;
    expect(&t,
           "a 1\na b 1\na b;a 1\na! 1\na!;a 1\na: 1\na:;a 1\na;a 1\na< 1\na<;a 1\nab 1\nab;a 1\n"
           "a\xc3\xa9 1\na\xc3\xa9;a 1\n");
    maker_close(&m);
}

static void reversed_lines_are_leaf_first_with_the_root_frames_last(void **state)
{
    struct task t = {.folded = {.root = FOLDED_ROOT_THREAD, .reverse = true}};
    struct maker m;

    (void)state;
    maker_open(&m, 0);
    maker_names(&m, LETTERS);
    maker_note(&m, 1, "comm", "x");
    maker_put(&m, 1, 1, 2, "main;run;f");
    maker_put(&m, 2, 1, 2, "main;f");
    maker_put(&m, 3, 1, 2, "main;run;f");
    maker_put(&m, 4, 1, 3, "main;run;f");
    maker_put(&m, 5, 1, 2, "[truncated];f");
    maker_finish(&m);
    t.inputs[0] = m.path;
    expect(&t, "f;[truncated];2;x-1 1\nf;main;2;x-1 1\nf;run;main;2;x-1 2\nf;run;main;3;x-1 1\n");
    t.folded.root = FOLDED_ROOT_NONE;
    expect(&t, "f;[truncated] 1\nf;main 1\nf;run;main 3\n");
    t.options.shape.has_max_depth = true;
    t.options.shape.max_depth = 1;
    expect(&t, "f;[1 frames omitted] 2\nf;[2 frames omitted] 3\n");
    maker_close(&m);
}

static void a_timeline_is_by_thread_and_by_time(void **state)
{
    struct task t = {.folded = {.root = FOLDED_ROOT_THREAD, .timeline = true}};
    struct maker m;

    (void)state;
    maker_open(&m, 1500);
    maker_names(&m, LETTERS);
    maker_note(&m, 1, "comm", "x");
    maker_put(&m, 30, 1, 7, "main;a");
    maker_put(&m, 40, 1, 6, "main;a");
    maker_put(&m, 35, 1, 7, "main;b"); /* O16 */
    maker_put(&m, 31, 1, 7, "main;a");
    maker_put(&m, 50, 1, 6, "main;a");
    maker_put(&m, 36, 1, 7, "main;a");
    maker_finish(&m);
    t.inputs[0] = m.path;
    expect(&t, "x-1;7;main;a 2\nx-1;7;main;b 1\nx-1;7;main;a 1\nx-1;6;main;a 2\n");
    t.folded.time = true;
    expect(&t, "x-1;7;main;a 3\nx-1;7;main;b 1\nx-1;7;main;a 1\nx-1;6;main;a 3\n");
    t.folded.time = false;
    t.folded.reverse = true;
    expect(&t, "a;main;7;x-1 2\nb;main;7;x-1 1\na;main;7;x-1 1\na;main;6;x-1 2\n");
    t.folded.reverse = false;
    t.folded.root = FOLDED_ROOT_PROCESS; /* threads stay apart: neighbours are those of a thread */
    expect(&t, "x;main;a 2\nx;main;b 1\nx;main;a 1\nx;main;a 2\n");
    maker_close(&m);
}

static void several_inputs_merge_into_one_document(void **state)
{
    struct task t = {.folded = {.root = FOLDED_ROOT_PROCESS}};
    struct maker a, b;

    (void)state;
    maker_open(&a, 0);
    maker_names(&a, LETTERS);
    maker_note(&a, 1, "comm", "x");
    maker_put(&a, 1, 1, 1, "main;a");
    maker_finish(&a);
    maker_open(&b, 0);
    maker_names(&b, LETTERS);
    maker_note(&b, 2, "comm", "x");
    maker_note(&b, 1, "comm", "y");
    maker_put(&b, 1, 1, 1, "main;a");
    maker_put(&b, 2, 2, 2, "main;a");
    maker_finish(&b);
    t.inputs[0] = a.path;
    t.inputs[1] = b.path;
    expect(&t, "x;main;a 2\ny;main;a 1\n");
    t.inputs[0] = b.path;
    t.inputs[1] = a.path;
    expect(&t, "x;main;a 2\ny;main;a 1\n");
    t.folded.timeline = true; /* one file after the other */
    expect(&t, "y;main;a 1\nx;main;a 1\nx;main;a 1\n");
    maker_close(&a);
    maker_close(&b);
}

static void a_stack_a_million_deep_is_one_line_both_ways(void **state)
{
    enum { DEPTH = 1000000 };
    struct spool_writer_frame *frames = calloc(DEPTH, sizeof *frames);
    struct maker m;

    (void)state;
    assert_non_null(frames);
    maker_open(&m, 0);
    maker_names(&m, LETTERS);
    for (size_t i = 0; i < DEPTH; i++)
        frames[i] = maker_name_frame(&m, i % 2);
    assert_int_equal(spool_writer_sample(m.writer, 1, 1, 1, frames, DEPTH), 0);
    free(frames);
    maker_finish(&m);
    for (unsigned form = 0; form < 4; form++) {
        struct task t = {.inputs = {m.path}, .folded = {.reverse = form & 1, .timeline = form & 2}};
        char *text = convert(&t);

        assert_non_null(text);
        assert_int_equal(strlen(text), 2 * DEPTH - 1 + 3);
        assert_memory_equal(text, form & 1 ? "a;b;a" : "b;a;b", 5);
        assert_string_equal(text + 2 * DEPTH - 4, form & 1 ? "a;b 1\n" : "b;a 1\n");
        free(text);
    }
    maker_close(&m);
}

/* ---- flamegraph.pl ---- */

static const char *const scripts[] = {"/usr/share/perl5/Devel/NYTProf/flamegraph.pl",
                                      "/usr/bin/flamegraph.pl", "/usr/local/bin/flamegraph.pl"};

static void flame_graphs_count_what_we_count(void **state)
{
    static const char *const names[] = {"main", "worker 12",       "a;b",
                                        "#x",   "f<(E)1>::g(int)", "x 7.5"};
    const char *script = NULL;
    struct task t = {0};
    char path[] = "/tmp/test_folded_XXXXXX", command[256], line[4096], *text;
    bool worker = false, all = false, template = false, colon = false, point = false;
    struct maker m;
    FILE *f;
    int fd;

    (void)state;
    for (size_t i = 0; i < sizeof scripts / sizeof scripts[0]; i++)
        if (!script && access(scripts[i], R_OK) == 0)
            script = scripts[i];
    if (!script) {
        printf("flamegraph.pl is not installed\n");
        skip();
    }
    maker_open(&m, 0);
    maker_names(&m, names, 6);
    maker_put(&m, 1, 1, 1, "main;worker 12");
    maker_put(&m, 2, 1, 1, "main;worker 12");
    maker_put(&m, 3, 1, 1, "main;%2;worker 12");
    maker_put(&m, 4, 1, 1, "#x;f<(E)1>::g(int)");
    maker_put(&m, 5, 1, 1, "main;x 7.5");
    maker_finish(&m);
    t.inputs[0] = m.path;
    text = convert(&t);
    maker_close(&m);
    assert_non_null(text);
    fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
    free(text);
    snprintf(command, sizeof command, "perl %s %s 2>&1", script, path);
    f = popen(command, "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f)) {
        all |= strstr(line, "<title>all (5 samples, 100%)") != NULL;
        worker |= strstr(line, "<title>worker_12 (2 samples, 40.00%)") != NULL;
        colon |= strstr(line, "<title>a:b (1 samples, 20.00%)") != NULL;
        /* old versions write '<' as '(' */
        template |= strstr(line, "<title>f&lt;(E)1&gt;::g(int) (1 samples, 20.00%)") ||
                    strstr(line, "<title>f((E)1)::g(int) (1 samples, 20.00%)");
        point |= strstr(line, "<title>x_7.5 (1 samples, 20.00%)") != NULL;
        if (strstr(line, "Ignored"))
            fail_msg("flamegraph.pl says: %s", line);
    }
    assert_int_equal(pclose(f), 0);
    unlink(path);
    assert_true(all);
    assert_true(worker); /* O2: a number at the end is no second count */
    assert_true(colon);
    assert_true(template);
    assert_true(point);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_worked_example_comes_out_as_written),
        cmocka_unit_test(names_are_not_cut),
        cmocka_unit_test(symbols_are_demangled),
        cmocka_unit_test(a_semicolon_is_a_colon_and_a_line_break_a_blank),
        cmocka_unit_test(bytes_that_are_no_text_are_replaced),
        cmocka_unit_test(a_frame_must_not_end_in_a_second_count),
        cmocka_unit_test(the_rule_holds_behind_suffixes_and_inside_the_line),
        cmocka_unit_test(a_line_begins_neither_with_a_hash_nor_with_a_brace),
        cmocka_unit_test(root_frames_have_no_blanks_and_say_who),
        cmocka_unit_test(a_renamed_thread_leaves_the_root_to_the_process),
        cmocka_unit_test(a_process_after_exec_is_another_root),
        cmocka_unit_test(kernel_comes_from_the_mode_of_the_frame),
        cmocka_unit_test(placeholders_have_no_address_and_no_module),
        cmocka_unit_test(microseconds_are_rounded_down_once_a_line_and_never_zero),
        cmocka_unit_test(sums_near_2_63_are_an_error_and_never_negative),
        cmocka_unit_test(no_samples_are_no_lines),
        cmocka_unit_test(lines_are_sorted_as_bytes),
        cmocka_unit_test(neighbours_of_the_semicolon_are_in_their_places),
        cmocka_unit_test(reversed_lines_are_leaf_first_with_the_root_frames_last),
        cmocka_unit_test(a_timeline_is_by_thread_and_by_time),
        cmocka_unit_test(several_inputs_merge_into_one_document),
        cmocka_unit_test(a_stack_a_million_deep_is_one_line_both_ways),
        cmocka_unit_test(flame_graphs_count_what_we_count),
    };

    cli_set_program("test", false);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
