/* SPDX-License-Identifier: MIT */
/* What the --verbose report says of names, line by line: merged by file, in their order. */
#include "../spool2folded/make_spool.h"

#include "cli.h"
#include "stacks.h"

static uint32_t take_label(void *user, const struct out_frame *frame)
{
    (void)user;
    (void)frame;
    return 0;
}

static uint32_t take_root(void *user, struct otree *tree, const struct source *source)
{
    (void)user;
    (void)tree;
    (void)source;
    return OTREE_ROOT;
}

/* The lines about names that a run over the spool gives. */
static void expect_lines(struct maker *m, enum sym_perf_maps perf_maps, const char *expected)
{
    struct stacks_hooks hooks = {.label = take_label, .root = take_root};
    struct tool_options options = {.verbose = true, .progress = PROGRESS_NEVER, .input_count = 1};
    const char *inputs[] = {m->path}, *lines;
    struct stacks s;

    options.inputs = inputs;
    options.symbols.sysroot = "/absent";
    options.symbols.no_kernel_symbols = true; /* nothing of this machine */
    options.symbols.perf_maps = perf_maps;
    options.symbols.perf_map_dir = perf_maps == SYM_PERF_MAPS_NONE ? NULL : "/absent";
    assert_int_equal(stacks_init(&s, &options, &hooks, &(struct stacks_options){0}), 0);
    assert_int_equal(stacks_run(&s), 0);
    lines = strstr(s.report_lines.data, "stacks truncated\n");
    assert_non_null(lines);
    assert_string_equal(lines + strlen("stacks truncated\n"), expected);
    stacks_free(&s);
}

static void a_file_is_one_line_for_all_processes_and_mappings(void **state)
{
    struct maker m;

    (void)state;
    maker_open(&m, 0);
    maker_module(&m, 1, 0x1000, 0x1000, "/lib/c");  /* 0 */
    maker_module(&m, 1, 0x3000, 0x1000, "/lib/c");  /* 1 */
    maker_module(&m, 2, 0x1000, 0x1000, "/lib/c");  /* 2 */
    maker_module(&m, 2, 0x5000, 0x1000, "/bin/b");  /* 3 */
    maker_module(&m, 2, 0x7000, 0x1000, "/bin/aa"); /* 4 */
    maker_module(&m, 2, 0x9000, 0x1000, "/bin/a");  /* 5 */
    maker_put(&m, 1, 1, 1, "1+10;0+10;1+20");
    maker_put(&m, 2, 2, 2, "2+10;3+10");
    maker_put(&m, 3, 2, 2, "2+10;4+10");
    maker_put(&m, 4, 2, 2, "5+10");
    maker_finish(&m);
    expect_lines(&m, SYM_PERF_MAPS_AUTO,
                 "no symbols: /lib/c (/absent/lib/c: No such file or directory): 3 samples\n"
                 "no symbols: /bin/a (/absent/bin/a: No such file or directory): 1 sample\n"
                 "no symbols: /bin/aa (/absent/bin/aa: No such file or directory): 1 sample\n"
                 "no symbols: /bin/b (/absent/bin/b: No such file or directory): 1 sample\n");
    maker_close(&m);
}

static void builds_of_one_path_are_several_files(void **state)
{
    struct maker m;

    (void)state;
    maker_open(&m, 0);
    for (int32_t pid = 1; pid <= 4; pid++)
        maker_module(&m, pid, 0x1000, 0x1000, "/lib/c");
    maker_note(&m, 1, "build-id", "0 aa01");
    maker_note(&m, 2, "build-id", "1 aa02");
    maker_note(&m, 3, "build-id", "2 aa01");
    for (int32_t pid = 1; pid <= 4; pid++)
        maker_put(&m, (uint64_t)pid, pid, (uint64_t)pid, "$1010");
    maker_finish(&m);
    expect_lines(&m, SYM_PERF_MAPS_AUTO,
                 "no symbols: /lib/c (/absent/lib/c: No such file or directory): 2 samples\n"
                 "no symbols: /lib/c (/absent/lib/c: No such file or directory): 1 sample\n"
                 "no symbols: /lib/c (/absent/lib/c: No such file or directory): 1 sample\n");
    maker_close(&m);
}

static void generated_code_has_the_reason_of_its_process(void **state)
{
    struct maker m;

    (void)state;
    maker_open(&m, 0);
    maker_module(&m, 1, 0x1000, 0x1000, "//anon");
    maker_module(&m, 1, 0x3000, 0x1000, "//anon");
    maker_module(&m, 2, 0x1000, 0x1000, "//anon");
    maker_put(&m, 1, 1, 1, "$1010;$3010");
    maker_put(&m, 2, 2, 2, "$1010");
    maker_put(&m, 3, 2, 2, "$1010");
    maker_put(&m, 4, 2, 2, "$9010;@ffffffff81000010");
    maker_finish(&m);
    expect_lines(&m, SYM_PERF_MAPS_AUTO,
                 "no symbols: //anon (/absent/perf-2.map: no such file): 2 samples\n"
                 "no symbols: //anon (/absent/perf-1.map: no such file): 1 sample\n"
                 "no symbols: [kernel.kallsyms] (names are switched off): 1 sample\n"
                 "no symbols: [unknown] (the address is in no module): 1 sample\n");
    /* The same reason for all: one line. */
    expect_lines(&m, SYM_PERF_MAPS_NONE,
                 "no symbols: //anon (perf maps are not used for this process): 3 samples\n"
                 "no symbols: [kernel.kallsyms] (names are switched off): 1 sample\n"
                 "no symbols: [unknown] (the address is in no module): 1 sample\n");
    maker_close(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_is_one_line_for_all_processes_and_mappings),
        cmocka_unit_test(builds_of_one_path_are_several_files),
        cmocka_unit_test(generated_code_has_the_reason_of_its_process),
    };

    cli_set_program("test", false);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
