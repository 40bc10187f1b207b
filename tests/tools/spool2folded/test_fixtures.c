/* SPDX-License-Identifier: MIT */
/*
 * The recorded spools against what stackpulse's own symbolizer said about them when they were
 * recorded: equal stacks of the demo's functions, of the kernel's and of Python's, equally often.
 */
#include "make_spool.h"

#include <zlib.h>

#include "cli.h"
#include "folded.h"
#include "text.h"

#define STACKPULSE FIXTURES_DIR "/stackpulse/"

/* ---- stacks and how often they were seen ---- */

struct table {
    char **keys;
    uint64_t *counts;
    size_t count;
};

static void add(struct table *t, const char *key, uint64_t count)
{
    for (size_t i = 0; i < t->count; i++) {
        if (strcmp(t->keys[i], key) == 0) {
            t->counts[i] += count;
            return;
        }
    }
    t->keys = realloc(t->keys, (t->count + 1) * sizeof *t->keys);
    t->counts = realloc(t->counts, (t->count + 1) * sizeof *t->counts);
    assert_non_null(t->keys);
    assert_non_null(t->counts);
    t->keys[t->count] = strdup(key);
    t->counts[t->count++] = count;
}

static uint64_t count_of(const struct table *t, const char *key)
{
    for (size_t i = 0; i < t->count; i++)
        if (strcmp(t->keys[i], key) == 0)
            return t->counts[i];
    return 0;
}

static void free_table(struct table *t)
{
    for (size_t i = 0; i < t->count; i++)
        free(t->keys[i]);
    free(t->keys);
    free(t->counts);
}

static void expect_equal(const char *what, const struct table *theirs, const struct table *ours)
{
    size_t different = 0;

    for (size_t i = 0; i < theirs->count; i++) {
        uint64_t count = count_of(ours, theirs->keys[i]);

        if (count == theirs->counts[i])
            continue;
        printf("%s: expected %llu, got %llu: %s\n", what, (unsigned long long)theirs->counts[i],
               (unsigned long long)count, theirs->keys[i]);
        different++;
    }
    for (size_t i = 0; i < ours->count; i++) {
        if (count_of(theirs, ours->keys[i]) > 0)
            continue;
        printf("%s: not expected, %llu times: %s\n", what, (unsigned long long)ours->counts[i],
               ours->keys[i]);
        different++;
    }
    assert_int_equal(different, 0);
}

/* ---- which frames are compared, and by which name ---- */

enum { DEMO = 1, KERNEL = 2, PYTHON = 4 };

static bool is_demo(const char *module)
{
    return strcmp(module, "ladder-O0") == 0 || strcmp(module, "ladder-O2") == 0 ||
           strcmp(module, "plugin.so") == 0;
}

/* Symbols that stand at one address: the reference takes the last of them, we the one that libsym(3),
 * "Kernel", prefers. */
static const struct {
    const char *theirs, *ours;
} aliases[] = {
    {"__pi_memcpy",
     "memcpy"}, /* ffffffff821f3a60, with __memcpy; all are global: fewest underscores */
};

static const char *canonical(const char *name)
{
    for (size_t i = 0; i < sizeof aliases / sizeof aliases[0]; i++)
        if (strcmp(name, aliases[i].theirs) == 0)
            return aliases[i].ours;
    return name;
}

static void append_frame(struct text_buffer *stack, const char *name)
{
    text_printf(stack, "%s%s", stack->size ? ";" : "", name);
}

/* ---- the reference ---- */

/* The value of a key inside one frame's object, without quotes; "" when it is not there. */
static void get(const char *object, const char *end, const char *key, char *value, size_t size)
{
    char pattern[32];
    const char *at;
    size_t length;

    snprintf(pattern, sizeof pattern, "\"%s\":", key);
    at = memmem(object, (size_t)(end - object), pattern, strlen(pattern));
    value[0] = '\0';
    if (!at)
        return;
    at += strlen(pattern);
    length = strcspn(at, *at == '"' ? "" : ",}]");
    if (*at == '"')
        length = strcspn(++at, "\"");
    assert_true(length < size);
    memcpy(value, at, length);
    value[length] = '\0';
}

/* The name that a frame of the reference is compared by; false when it is not compared. */
static bool reference_name(const char *object, const char *end, unsigned kinds, char *name,
                           size_t size)
{
    char kind[16], module[128], depth[16], *offset;

    get(object, end, "k", kind, sizeof kind);
    get(object, end, "name", name, size);
    get(object, end, "module", module, sizeof module);
    get(object, end, "inline_depth", depth, sizeof depth);
    if (strcmp(kind, "python") == 0)
        return kinds & PYTHON;
    if (strcmp(kind, "kernel") == 0) {
        offset = strstr(name, "+0x");
        if (offset)
            *offset = '\0';
        return kinds & KERNEL;
    }
    /* inlined functions are not ours to show yet */
    return kinds & DEMO && is_demo(module) && strcmp(depth, "0") == 0;
}

static void read_reference(const char *path, unsigned kinds, struct table *t)
{
    gzFile f = gzopen(path, "rb");
    static char line[1 << 20];

    assert_non_null(f);
    while (gzgets(f, line, sizeof line)) {
        const char *frames = strstr(line, "\"frames\":["), *count = strstr(line, "\"count\":");
        struct text_buffer stack = {0};
        size_t n = 0;
        char names[512][128];

        assert_non_null(frames);
        assert_non_null(count);
        for (const char *object = strchr(frames, '{'); object;) {
            const char *end = strchr(object, '}');

            assert_non_null(end);
            assert_true(n < 512);
            n += reference_name(object, end, kinds, names[n], sizeof names[n]);
            object = end[1] == ',' ? end + 2 : NULL;
        }
        text_append(&stack, "", 0);
        while (n > 0)
            append_frame(&stack, canonical(names[--n]));
        add(t, stack.data, strtoull(count + 8, NULL, 10));
        text_free(&stack);
    }
    gzclose(f);
    assert_true(t->count > 0);
}

/* ---- ours ---- */

static struct tool_options options_for(const char **spool, const char *kallsyms,
                                       const char *perf_maps)
{
    struct tool_options o = {.inputs = spool, .input_count = 1, .progress = PROGRESS_NEVER};

    o.symbols.sysroot = FIXTURES_DIR "/sysroot";
    o.symbols.kallsyms = kallsyms;
    o.symbols.perf_map_dir = perf_maps ? perf_maps : "/nonexistent";
    o.symbols.no_kernel_symbols = !kallsyms;
    return o;
}

/* The document; malloc'ed. */
static char *convert(const struct tool_options *o, const struct folded_options *folded)
{
    char path[] = "/tmp/test_fixtures_XXXXXX", *text;
    int fd = mkstemp(path);
    struct tool_output out;
    FILE *f;
    long size;

    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(output_open(&out, path, false), 0);
    assert_int_equal(folded_convert(o, folded, &out), 0);
    assert_int_equal(output_commit(&out), 0);
    f = fopen(path, "r");
    assert_non_null(f);
    fseek(f, 0, SEEK_END);
    size = ftell(f);
    rewind(f);
    text = calloc(1, (size_t)size + 1);
    assert_non_null(text);
    assert_int_equal(fread(text, 1, (size_t)size, f), size);
    fclose(f);
    unlink(path);
    return text;
}

/* A frame `name (module)_[k]`, cut into its name; false when it is not compared. */
static bool our_name(char *frame, unsigned kinds)
{
    char *kernel = strstr(frame, "_[k]"), *module = strrchr(frame, '('), *end;

    if (!module) /* a placeholder */
        return false;
    end = strrchr(module, ')');
    assert_non_null(end);
    *end = '\0';
    assert_true(module > frame && module[-1] == ' ');
    module[-1] = '\0';
    module++;
    if (kernel)
        return kinds & KERNEL;
    if (strcmp(module, "[perf-map]") == 0 || strcmp(module, "//anon") == 0)
        return kinds & PYTHON;
    return kinds & DEMO && is_demo(module);
}

/* wholesym drops one leading underscore of every name from an ELF file that is not mangled. */
static const char *as_reference(const char *name, bool elf)
{
    return elf && name[0] == '_' ? name + 1 : name;
}

static void read_ours(const struct tool_options *o, unsigned kinds, struct table *t)
{
    struct folded_options folded = {.with_modules = true, .annotate = true};
    char *text = convert(o, &folded), *rest = text, *line;

    while ((line = strsep(&rest, "\n")) != NULL && *line) {
        struct text_buffer stack = {0};
        char *blank = strrchr(line, ' '), *frames = line, *frame;
        uint64_t count = strtoull(blank + 1, NULL, 10);

        *blank = '\0';
        text_append(&stack, "", 0);
        while ((frame = strsep(&frames, ";")) != NULL) {
            bool elf = !strstr(frame, "_[k]") && !strstr(frame, "_[j]");

            if (our_name(frame, kinds))
                append_frame(&stack, as_reference(frame, elf));
        }
        add(t, stack.data, count);
        text_free(&stack);
    }
    free(text);
}

static void compare(const char *name, unsigned kinds, const char *kallsyms, const char *perf_maps)
{
    char spool[256], reference[256];
    const char *input = spool;
    struct table theirs = {0}, ours = {0};
    struct tool_options o = options_for(&input, kallsyms, perf_maps);

    snprintf(spool, sizeof spool, STACKPULSE "%s.spool", name);
    snprintf(reference, sizeof reference, STACKPULSE "%s.frames.jsonl.gz", name);
    o.shape.show_runtime = true;
    o.shape.no_inlines = true; /* the reference knows symbols only */
    read_reference(reference, kinds, &theirs);
    read_ours(&o, kinds, &ours);
    expect_equal(name, &theirs, &ours);
    free_table(&theirs);
    free_table(&ours);
}

/* ---- the captures ---- */

static const char *const ladders[] = {"ladder/ladder-O0",      "ladder/ladder-O2",
                                      "ladder/ladder-O2-fork", "ladder/ladder-O2-smallstack",
                                      "ladder/exec-chain",     "ladder/attach-O2"};

static void functions_of_the_ladder_are_those_of_the_reference(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof ladders / sizeof ladders[0]; i++)
        compare(ladders[i], DEMO, NULL, NULL);
}

static void no_address_is_left_in_the_demo_and_stacks_begin_at_start(void **state)
{
    struct folded_options folded = {.root = FOLDED_ROOT_PROCESS};

    (void)state;
    for (size_t i = 0; i < sizeof ladders / sizeof ladders[0]; i++) {
        char spool[256], *text, *rest, *line;
        const char *input = spool;
        struct tool_options o = options_for(&input, NULL, NULL);
        size_t from_start = 0;

        snprintf(spool, sizeof spool, STACKPULSE "%s.spool", ladders[i]);
        rest = text = convert(&o, &folded);
        assert_null(strstr(text, "ladder-O0+0x"));
        assert_null(strstr(text, "ladder-O2+0x"));
        assert_null(strstr(text, "plugin.so+0x"));
        while ((line = strsep(&rest, "\n")) != NULL && *line) {
            char *first = strchr(line, ';') + 1;

            assert_true(strncmp(line, "ladder-O", 8) == 0);
            if (strncmp(first, "_start;", 7) == 0) {
                from_start++;
                assert_non_null(strstr(first, ";main;"));
            } else if (strncmp(first, "[truncated];", 12) != 0) {
                /* a thread begins in libc's clone3, which is not at hand here */
                assert_memory_equal(first, "libc.so.6+0x", 12);
                assert_non_null(strstr(first, ";worker;a;b;c"));
            }
        }
        assert_true(from_start > 0);
        free(text);
    }
}

static void kernel_functions_are_those_of_the_reference(void **state)
{
    (void)state;
    compare("kernel/syscalls-O2", DEMO | KERNEL, STACKPULSE "kernel/kallsyms.txt", NULL);
}

static void several_kernel_functions_are_named_without_a_kernel_module(void **state)
{
    struct folded_options folded = {.with_modules = true, .annotate = true};
    const char *input = STACKPULSE "kernel/syscalls-O2.spool";
    struct tool_options o = options_for(&input, STACKPULSE "kernel/kallsyms.txt", NULL);
    char *text = convert(&o, &folded);

    (void)state;
    /* O26 */
    assert_non_null(strstr(text, ";do_syscall_64 ([kernel.kallsyms])_[k]"));
    assert_non_null(strstr(text, ";do_sys_openat2 ([kernel.kallsyms])_[k]"));
    assert_non_null(strstr(text, "entry_SYSCALL_64_after_hwframe ([kernel.kallsyms])_[k]"));
    assert_null(strstr(text, "0xffffffff"));
    free(text);
}

static void python_functions_are_those_of_the_reference(void **state)
{
    (void)state;
    compare("python/py312", PYTHON, NULL, STACKPULSE "python");
    compare("python/py313", PYTHON, NULL, STACKPULSE "python");
}

static void python_captures_show_their_functions_and_hide_the_interpreter(void **state)
{
    static const char *const spools[] = {STACKPULSE "python/py312.spool",
                                         STACKPULSE "python/py313.spool"};
    struct folded_options folded = {.root = FOLDED_ROOT_NONE};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        const char *input = spools[i];
        struct tool_options o = options_for(&input, NULL, STACKPULSE "python");
        char *text = convert(&o, &folded), *rest = text, *line;
        uint64_t fib = 0, hidden = 0;

        while ((line = strsep(&rest, "\n")) != NULL && *line) {
            bool python = strstr(line, ";fib") || strstr(line, ";inner") || strstr(line, ";key") ||
                          strstr(line, ";sort_work") || strstr(line, ";<listcomp>");

            if (strstr(line, ";fib"))
                fib += strtoull(strrchr(line, ' '), NULL, 10);
            if (python && strstr(line, "libpython"))
                fail_msg("the interpreter is shown: %s", line);
            hidden += python;
        }
        assert_true(fib > 50);
        assert_true(hidden >= 3);
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions_of_the_ladder_are_those_of_the_reference),
        cmocka_unit_test(no_address_is_left_in_the_demo_and_stacks_begin_at_start),
        cmocka_unit_test(kernel_functions_are_those_of_the_reference),
        cmocka_unit_test(several_kernel_functions_are_named_without_a_kernel_module),
        cmocka_unit_test(python_functions_are_those_of_the_reference),
        cmocka_unit_test(python_captures_show_their_functions_and_hide_the_interpreter),
    };

    cli_set_program("test", false);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
