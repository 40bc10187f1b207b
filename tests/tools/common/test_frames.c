/* SPDX-License-Identifier: MIT */
/* What a resolved frame is called: symbols, addresses, placeholders, pseudo modules, and the
 * options that match. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "frames.h"

static struct frame_names names;
static struct shape_options plain;

static struct spool_module module_of(const char *path)
{
    return (struct spool_module){
        .start = 0x400000, .end = 0x500000, .path = path, .path_size = strlen(path)};
}

static void expect(const struct out_frame *out, const char *name, const char *module)
{
    assert_non_null(out->name);
    assert_string_equal(out->name, name);
    assert_int_equal(out->name_size, strlen(name));
    if (!module) {
        assert_null(out->module);
        return;
    }
    assert_string_equal(out->module, module);
    assert_int_equal(out->module_size, strlen(module));
}

static void a_symbol_gives_name_source_and_flags(void **state)
{
    struct spool_module m = module_of("/usr/lib/libfoo.so.1");
    struct sym_frame s = {.name = "foo(int)",
                          .raw_name = "_Z3fooi",
                          .file = "/src/foo.cc",
                          .line = 7,
                          .column = 3,
                          .start_line = 5,
                          .offset = 0x10,
                          .origin = SYM_ORIGIN_SYMTAB};
    struct resolved r = {.module = &m,
                         .module_id = 3,
                         .abs = 0x401234,
                         .rel = 0x1234,
                         .frames = &s,
                         .frame_count = 1};
    struct out_frame out;

    (void)state;
    assert_int_equal(frames_count(&r, &plain), 1);
    frames_name(&names, &r, 0, &plain, &out);
    expect(&out, "foo(int)", "libfoo.so.1");
    assert_string_equal(out.linkage, "_Z3fooi");
    assert_string_equal(out.file, "/src/foo.cc");
    assert_int_equal(out.line, 7);
    assert_int_equal(out.column, 3);
    assert_int_equal(out.start_line, 5);
    assert_int_equal(out.abs, 0x401234);
    assert_int_equal(out.rel, 0x1234);
    assert_int_equal(out.offset, 0x10);
    assert_int_equal(out.flags, FRAME_NAMED);
    assert_int_equal(out.origin, SYM_ORIGIN_SYMTAB);
    assert_ptr_equal(out.source_module, &m);
}

static void texts_are_cleaned(void **state)
{
    struct spool_module m = module_of("/x/lib\xff\nfoo.so");
    struct sym_frame s = {
        .name = " a\tb\xc3(\x7f ", .raw_name = "\xed\xa0\x80", .file = "\x1b[2J\xc2\x85x"};
    struct resolved r = {.module = &m, .frames = &s, .frame_count = 1};
    struct out_frame out;

    (void)state;
    frames_name(&names, &r, 0, &plain, &out);
    expect(&out, "a b\xef\xbf\xbd(", "lib\xef\xbf\xbd foo.so");
    assert_string_equal(out.linkage, "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
    assert_string_equal(out.file, "[2J x");
}

static void a_name_is_never_empty(void **state)
{
    struct spool_module m = module_of("/x/ ");
    struct sym_frame s = {.name = ""};
    struct resolved r = {.module = &m, .rel = 0xab, .frames = &s, .frame_count = 1};
    struct out_frame out;

    (void)state;
    frames_name(&names, &r, 0, &plain, &out);
    expect(&out, "[unnamed]", "[unnamed]");
    s.name = "\n \t";
    frames_name(&names, &r, 0, &plain, &out);
    expect(&out, "[unnamed]", "[unnamed]");
    s.name = NULL;
    frames_name(&names, &r, 0, &plain, &out);
    expect(&out, "[unnamed]+0xab", "[unnamed]");
}

static void without_a_symbol_the_address_is_the_name(void **state)
{
    static const struct {
        const char *path, *name, *module, *whole;
    } cases[] = {
        {"/opt/app/lib/libfoo.so", "libfoo.so+0x1abc", "libfoo.so", "[libfoo.so]"},
        {"/x/app (deleted)", "app+0x1abc", "app", "[app]"},
        {"[vdso]", "[vdso]+0x1abc", "[vdso]", "[vdso]"},
        {"//anon", "//anon+0x1abc", "//anon", "[//anon]"},
        {"", "[unnamed]+0x1abc", "[unnamed]", "[unnamed]"},
        {"name", "name+0x1abc", "name", "[name]"},
        {"/x/a%s%n", "a%s%n+0x1abc", "a%s%n", "[a%s%n]"},
    };
    struct shape_options whole = {.unresolved_module = true};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct spool_module m = module_of(cases[i].path);
        struct sym_frame s = {.miss = SYM_MISS_NO_FILE};
        struct resolved r = {.module = &m, .abs = 0x401abc, .rel = 0x1ABC};
        struct out_frame out;

        frames_name(&names, &r, 0, &plain, &out); /* --no-symbols: nothing was asked */
        expect(&out, cases[i].name, cases[i].module);
        assert_int_equal(out.flags, 0);
        assert_null(out.sym);
        r.frames = &s;
        r.frame_count = 1;
        frames_name(&names, &r, 0, &plain, &out);
        expect(&out, cases[i].name, cases[i].module);
        assert_int_equal(out.miss, SYM_MISS_NO_FILE);
        frames_name(&names, &r, 0, &whole, &out);
        expect(&out, cases[i].whole, cases[i].module);
    }
}

static void addresses_of_a_function_that_only_unwind_data_know_are_one_frame(void **state)
{
    struct spool_module m = module_of("/usr/lib/libfoo.so");
    struct shape_options whole = {.unresolved_module = true};
    struct sym_frame s = {.origin = SYM_ORIGIN_FDE, .miss = SYM_MISS_NO_SYMBOL};
    struct out_frame out;

    (void)state;
    for (uint64_t offset = 0; offset < 0x30; offset += 0x10) {
        struct resolved r = {.module = &m,
                             .abs = 0x401200 + offset,
                             .rel = 0x1200 + offset,
                             .frames = &s,
                             .frame_count = 1};

        s.function_start = 0x1200;
        s.offset = offset;
        frames_name(&names, &r, 0, &plain, &out);
        expect(&out, "libfoo.so+0x1200", "libfoo.so");
        assert_int_equal(out.flags & FRAME_NAMED, 0); /* a start is no name */
        assert_int_equal(out.abs, 0x401200 + offset);
        assert_int_equal(out.rel, 0x1200 + offset);
        assert_int_equal(out.miss, SYM_MISS_NO_SYMBOL);
        frames_name(&names, &r, 0, &whole, &out);
        expect(&out, "[libfoo.so]", "libfoo.so");
        s.name = "f";
        frames_name(&names, &r, 0, &plain, &out);
        expect(&out, "f", "libfoo.so");
        s.name = NULL;
    }
}

static void outside_every_module_the_absolute_address_is_the_name(void **state)
{
    struct shape_options whole = {.unresolved_module = true};
    struct resolved r = {.module_id = SPOOL_NO_ID, .abs = 0x7fffDEADBEEF};
    struct out_frame out;

    (void)state;
    frames_name(&names, &r, 0, &plain, &out);
    expect(&out, "0x7fffdeadbeef", "[unknown]");
    frames_name(&names, &r, 0, &whole, &out);
    expect(&out, "[unknown]", "[unknown]");
    r.kernel = true;
    r.abs = UINT64_MAX;
    frames_name(&names, &r, 0, &plain, &out);
    expect(&out, "0xffffffffffffffff", "[kernel.kallsyms]");
    assert_int_equal(out.flags, FRAME_KERNEL);
    frames_name(&names, &r, 0, &whole, &out);
    expect(&out, "[kernel.kallsyms]", "[kernel.kallsyms]");
}

static void kernel_frames_come_from_the_mode_and_not_from_a_name(void **state)
{
    struct spool_module driver = module_of("/lib/modules/6.1/nvidia.ko"),
                        vdso = module_of("[vdso]");
    struct sym_frame s = {
        .name = "nv_open", .kind = SYM_KIND_KERNEL, .origin = SYM_ORIGIN_KALLSYMS};
    struct resolved r = {.module = &driver, .kernel = true, .frames = &s, .frame_count = 1};
    struct out_frame out;

    (void)state;
    frames_name(&names, &r, 0, &plain, &out);
    expect(&out, "nv_open", "nvidia.ko");
    assert_int_equal(out.flags, FRAME_KERNEL | FRAME_NAMED);
    r = (struct resolved){.module = &vdso, .rel = 5};
    frames_name(&names, &r, 0, &plain, &out);
    assert_int_equal(out.flags, 0);
}

static void generated_code_has_pseudo_modules(void **state)
{
    struct spool_module jit = module_of("[jit-1-7f00-1000]"), anon = module_of("//anon");
    struct sym_frame s = {
        .name = "LazyCompile:~f", .origin = SYM_ORIGIN_PERF_MAP, .flags = SYM_FLAG_JIT};
    struct resolved r = {.frames = &s, .frame_count = 1, .abs = 0x7f00, .module_id = SPOOL_NO_ID};
    struct out_frame out;

    (void)state;
    frames_name(&names, &r, 0, &plain, &out);
    expect(&out, "LazyCompile:~f", "[perf-map]");
    assert_int_equal(out.flags, FRAME_JIT | FRAME_NAMED);
    r.module = &anon;
    frames_name(&names, &r, 0, &plain, &out);
    expect(&out, "LazyCompile:~f", "//anon");
    jit.jit = true;
    r.module = &jit;
    frames_name(&names, &r, 0, &plain, &out);
    expect(&out, "LazyCompile:~f", "[jit]");
    /* What has no name must not become one with that of other generated code. */
    r.frame_count = 0;
    r.rel = 0x20;
    frames_name(&names, &r, 0, &plain, &out);
    expect(&out, "[jit-1-7f00-1000]+0x20", "[jit]");
    assert_int_equal(out.flags, FRAME_JIT);
}

static void an_inline_chain_is_several_frames(void **state)
{
    struct spool_module m = module_of("/bin/app");
    struct sym_frame s[] = {{.name = "g", .line = 3, .inlined = true}, {.name = "f", .line = 9}};
    struct resolved r = {.module = &m, .frames = s, .frame_count = 2};
    struct out_frame out;

    (void)state;
    assert_int_equal(frames_count(&r, &plain), 2);
    frames_name(&names, &r, 0, &plain, &out);
    expect(&out, "g", "app");
    assert_int_equal(out.line, 3);
    assert_int_equal(out.flags, FRAME_NAMED | FRAME_INLINED);
    frames_name(&names, &r, 1, &plain, &out);
    expect(&out, "f", "app");
    assert_int_equal(out.line, 9);
    assert_int_equal(out.flags, FRAME_NAMED);
}

static void without_inlines_the_function_itself_is_the_frame(void **state)
{
    struct shape_options shape = {.no_inlines = true};
    struct spool_module m = module_of("/bin/app");
    struct sym_frame s[] = {{.name = "g", .line = 3, .inlined = true}, {.name = "f", .line = 9}};
    struct resolved r = {.module = &m, .frames = s, .frame_count = 2}, none = {.module = &m};
    struct out_frame out;

    (void)state;
    assert_int_equal(frames_count(&r, &shape), 1);
    frames_name(&names, &r, 0, &shape, &out);
    expect(&out, "f", "app");
    assert_int_equal(out.line, 9);
    assert_int_equal(out.level, 0);
    assert_int_equal(out.level_count, 1);
    assert_int_equal(out.flags, FRAME_NAMED);
    frames_name(&names, &none, 0, &shape, &out); /* --no-symbols */
    expect(&out, "app+0x0", "app");
    assert_int_equal(frames_count(&none, &shape), 1);
}

static void prefixes_of_sources_and_modules_are_replaced(void **state)
{
    struct trim_rule rules[] = {{"/src/", 5, ""}, {"/opt/app-1.2", 12, "/x;\n"}};
    struct shape_options shape = {.trim_paths = {rules, 2}};
    struct spool_module m = module_of("/opt/app-1.2/lib/libfoo.so"),
                        anonymous = module_of("//anon");
    struct sym_frame s = {.name = "f", .file = "/src/f.c"};
    struct resolved r = {.module = &m, .rel = 16, .frames = &s, .frame_count = 1};
    struct out_frame out;

    (void)state;
    frames_name(&names, &r, 0, &shape, &out);
    assert_string_equal(out.file, "f.c");
    assert_int_equal(out.module_path_size, strlen("/x;\n/lib/libfoo.so"));
    assert_memory_equal(out.module_path, "/x;\n/lib/libfoo.so", out.module_path_size);
    expect(&out, "f", "libfoo.so");
    /* The name of a module is that of the path as it is shown. */
    r.frame_count = 0;
    rules[1] = (struct trim_rule){"/opt/app-1.2/lib/lib", 20, "a\n"};
    frames_name(&names, &r, 0, &shape, &out);
    expect(&out, "a foo.so+0x10", "a foo.so");
    r.module = &anonymous;
    rules[1] = (struct trim_rule){"/", 1, "a"};
    frames_name(&names, &r, 0, &shape, &out);
    expect(&out, "//anon+0x10", "//anon");
}

static void python_and_the_interpreter_are_told_apart(void **state)
{
    struct spool_module m = module_of("/usr/lib/libpython3.12.so.1.0");
    struct sym_frame python = {.name = "fib",
                               .file = "/srv/app.py",
                               .kind = SYM_KIND_PYTHON,
                               .origin = SYM_ORIGIN_PERF_MAP,
                               .flags = SYM_FLAG_JIT};
    struct sym_frame machinery = {.flags = SYM_FLAG_PYTHON_RUNTIME};
    struct resolved r = {.frames = &python, .frame_count = 1};
    struct out_frame out;

    (void)state;
    frames_name(&names, &r, 0, &plain, &out);
    expect(&out, "fib", "[perf-map]");
    assert_string_equal(out.file, "/srv/app.py");
    assert_int_equal(out.flags, FRAME_PYTHON | FRAME_JIT | FRAME_NAMED);
    r = (struct resolved){.module = &m, .rel = 16, .frames = &machinery, .frame_count = 1};
    frames_name(&names, &r, 0, &plain, &out);
    expect(&out, "libpython3.12.so.1.0+0x10", "libpython3.12.so.1.0");
    assert_int_equal(out.flags, FRAME_MACHINERY);
}

static void the_marker_is_a_placeholder(void **state)
{
    struct resolved r = {.truncated = true, .module_id = SPOOL_NO_ID};
    struct out_frame out;

    (void)state;
    frames_name(&names, &r, 0, &plain, &out);
    expect(&out, "[truncated]", NULL);
    assert_int_equal(out.flags, FRAME_PLACEHOLDER | FRAME_TRUNCATED);
    assert_int_equal(out.abs, 0);
    frames_placeholder(&names, "[12 frames omitted]", &plain, &out);
    expect(&out, "[12 frames omitted]", NULL);
    assert_int_equal(out.flags, FRAME_PLACEHOLDER);
    assert_null(out.file);
    assert_null(out.linkage);
}

static void options_match_the_clean_name(void **state)
{
    struct shape_options shape = {
        .has_frame_filter = true, .has_root_at = true, .has_skip_below = true};
    struct spool_module m = module_of("/bin/app");
    struct sym_frame s = {.name = "std::sort\n<int>"};
    struct resolved r = {.module = &m, .frames = &s, .frame_count = 1}, t = {.truncated = true};
    struct out_frame out;

    (void)state;
    assert_int_equal(regcomp(&shape.frame_filter, "^std::", REG_EXTENDED | REG_NOSUB), 0);
    assert_int_equal(regcomp(&shape.root_at, "sort <(int|long)>$", REG_EXTENDED | REG_NOSUB), 0);
    assert_int_equal(regcomp(&shape.skip_below, "^\\[truncated\\]$", REG_EXTENDED | REG_NOSUB), 0);
    frames_name(&names, &r, 0, &shape, &out);
    assert_int_equal(out.flags, FRAME_NAMED | FRAME_FILTER | FRAME_ROOT_AT);
    frames_name(&names, &t, 0, &shape, &out);
    assert_int_equal(out.flags, FRAME_PLACEHOLDER | FRAME_TRUNCATED | FRAME_SKIP_BELOW);
    regfree(&shape.frame_filter);
    regfree(&shape.root_at);
    regfree(&shape.skip_below);
}

static int free_names(void **state)
{
    (void)state;
    frame_names_free(&names);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_symbol_gives_name_source_and_flags),
        cmocka_unit_test(texts_are_cleaned),
        cmocka_unit_test(a_name_is_never_empty),
        cmocka_unit_test(without_a_symbol_the_address_is_the_name),
        cmocka_unit_test(addresses_of_a_function_that_only_unwind_data_know_are_one_frame),
        cmocka_unit_test(outside_every_module_the_absolute_address_is_the_name),
        cmocka_unit_test(kernel_frames_come_from_the_mode_and_not_from_a_name),
        cmocka_unit_test(generated_code_has_pseudo_modules),
        cmocka_unit_test(an_inline_chain_is_several_frames),
        cmocka_unit_test(without_inlines_the_function_itself_is_the_frame),
        cmocka_unit_test(prefixes_of_sources_and_modules_are_replaced),
        cmocka_unit_test(python_and_the_interpreter_are_told_apart),
        cmocka_unit_test(the_marker_is_a_placeholder),
        cmocka_unit_test(options_match_the_clean_name),
    };

    return cmocka_run_group_tests(tests, NULL, free_names);
}
