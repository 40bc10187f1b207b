/* SPDX-License-Identifier: MIT */
/* Files of names that cannot be used: no conversion fails for them, and somebody is told. */
#include "../spool2folded/make_spool.h"

#include "cli.h"
#include "symbols.h"

#include <sys/stat.h>

static char folder[64];

static const char *at(const char *name)
{
    static char paths[4][128];
    static unsigned next;
    char *path = paths[next++ % 4];

    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static void put(const char *name, const char *text)
{
    FILE *f = fopen(at(name), "w");

    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

static int make_files(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/test_symbols.XXXXXX");
    if (mkdtemp(folder) == NULL)
        return -1;
    put("perf-1.map", "10 10 f\n");
    put("perf-2.map", "");
    put("perf-3.map", "10 10 f\n");
    if (truncate(at("perf-3.map"), (off_t)1 << 30) != 0 || mkfifo(at("perf-4.map"), 0600) != 0)
        return -1;
    put("perf-5.map", "nonsense\n");
    put("nonsense", "nonsense\n");
    put("empty", "");
    put("kallsyms", "ffffffff81000000 T start\nffffffff81001000 T end\n");
    return 0;
}

static int remove_files(void **state)
{
    char command[128];

    (void)state;
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}

/* A spool that was read to its end, ready to be resolved. */
struct subject {
    struct maker maker;
    struct tool_input input;
    struct aggregate aggregate;
    struct symbol_options options;
    struct symbols *symbols;
};

static void subject_open(struct subject *s, const struct symbol_options *options)
{
    struct aggregate_options counting = {.epochs = symbols_of_kernel(options)};

    memset(s, 0, sizeof *s);
    maker_open(&s->maker, 0);
    maker_put(&s->maker, 1, 1, 1, "@ffffffff81000010;$18");
    maker_finish(&s->maker);
    assert_int_equal(inputs_open(s->maker.path, &s->input), 0);
    assert_int_equal(aggregate_read(&s->aggregate, &counting, &s->input, NULL), 0);
    assert_int_equal(aggregate_finish(&s->aggregate), 0);
    s->options = *options;
    if (s->options.perf_map_dir == NULL)
        s->options.perf_map_dir = folder;
    s->symbols = symbols_new(&s->options, &(struct shape_options){0});
    assert_non_null(s->symbols);
}

static int subject_begin(struct subject *s)
{
    return symbols_begin(s->symbols, &s->input, &s->aggregate);
}

/* Frame 0 is the kernel's, frame 1 the user's. */
static const char *subject_name(struct subject *s, uint32_t frame, int32_t pid)
{
    struct source source = {.pid = pid};
    struct resolved r;

    assert_int_equal(symbols_resolve(s->symbols, frame, &source, &r), 0);
    return r.frame_count > 0 ? r.frames[0].name : NULL;
}

static void subject_close(struct subject *s)
{
    symbols_free(s->symbols);
    aggregate_free(&s->aggregate);
    inputs_close(&s->input);
    maker_close(&s->maker);
}

static uint32_t kernel_frame(const struct subject *s)
{
    struct spool_frame f;

    return spool_reader_frame(s->input.reader, 0, &f) && f.kernel ? 0 : 1;
}

static void a_perf_map_that_gave_no_names_says_why(void **state)
{
    static const char *const expected[] = {[1] = NULL,
                                           [2] = "no entries",
                                           [3] = "too large",
                                           [4] = "not a regular file",
                                           [5] = "the file is damaged",
                                           [6] = "no such file"};
    struct subject s;
    const char *path;

    (void)state;
    subject_open(&s, &(struct symbol_options){0});
    assert_int_equal(subject_begin(&s), 0);
    for (int32_t pid = 1; pid <= 6; pid++) {
        char name[32];
        const char *why;

        assert_null(symbols_perf_map_text(s.symbols, pid, &path)); /* nobody asked */
        assert_string_equal(path, "");
        if (pid == 1)
            assert_string_equal(subject_name(&s, !kernel_frame(&s), pid), "f");
        else
            assert_null(subject_name(&s, !kernel_frame(&s), pid));
        why = symbols_perf_map_text(s.symbols, pid, &path);
        if (expected[pid] == NULL) {
            assert_null(why);
            assert_string_equal(path, "");
            continue;
        }
        assert_string_equal(why, expected[pid]);
        snprintf(name, sizeof name, "perf-%d.map", (int)pid);
        assert_string_equal(path, at(name));
    }
    subject_close(&s);
    subject_open(&s, &(struct symbol_options){.no_symbols = true});
    assert_int_equal(subject_begin(&s), 0);
    assert_null(symbols_perf_map_text(s.symbols, 1, &path));
    assert_string_equal(path, "");
    subject_close(&s);
}

static void kernel_frames_have_the_names_of_a_kallsyms(void **state)
{
    struct subject s;
    const char *detail;

    (void)state;
    subject_open(&s, &(struct symbol_options){.kallsyms = at("kallsyms")});
    assert_int_equal(subject_begin(&s), 0);
    assert_string_equal(subject_name(&s, kernel_frame(&s), 1), "start");
    assert_null(symbols_kernel_text(s.symbols, &detail));
    subject_close(&s);
}

static void a_kallsyms_that_cannot_be_used_costs_one_warning(void **state)
{
    static const struct {
        const char *name;
        const char *why;
    } cases[] = {{"absent", "No such file or directory"},
                 {"nonsense", "no line of it is a kernel symbol"},
                 {"empty", "no line of it is a kernel symbol"},
                 {"perf-4.map", "not a regular file"},
                 {"", "not a regular file"}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *path = at(cases[i].name);
        struct capture c;
        struct subject s;
        const char *detail;
        char expected[256];
        char *text;

        subject_open(&s, &(struct symbol_options){.kallsyms = path});
        capture_begin(&c);
        for (int inputs = 0; inputs < 3; inputs++) {
            assert_int_equal(subject_begin(&s), 0);
            assert_null(subject_name(&s, kernel_frame(&s), 1));
            assert_non_null(symbols_kernel_text(s.symbols, &detail));
            assert_string_equal(subject_name(&s, !kernel_frame(&s), 1), "f");
        }
        text = capture_end(&c);
        snprintf(expected, sizeof expected, "%s: %s: %s; kernel frames stay addresses\n",
                 cli_program(), path, cases[i].why);
        assert_string_equal(text, expected);
        free(text);
        subject_close(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_perf_map_that_gave_no_names_says_why),
        cmocka_unit_test(kernel_frames_have_the_names_of_a_kallsyms),
        cmocka_unit_test(a_kallsyms_that_cannot_be_used_costs_one_warning),
    };
    return cmocka_run_group_tests(tests, make_files, remove_files);
}
