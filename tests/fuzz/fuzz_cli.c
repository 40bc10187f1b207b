/* SPDX-License-Identifier: MIT */
/*
 * Any arguments, which NULs separate, for the tool that the first byte says: they are refused in one line with status 2,
 * or taken, and then the options are what they may be. Values are also read by the functions for them alone.
 */
#include <regex.h>
#include <stdint.h>

#include "select.h"
#include "tool_process.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define ARGUMENTS_MAX 64

static const struct {
    const char *name;
    tool_main *run;
} tools[] = {{"spool2folded", main_of_spool2folded},
             {"spool2pprof", main_of_spool2pprof},
             {"spool2speedscope", main_of_spool2speedscope},
             {"spoolcat", main_of_spoolcat},
             {"spoolpack", main_of_spoolpack},
             {"spoolrecord", main_of_spoolrecord}};

/* ---- values alone ---- */

static void check_time(const char *text)
{
    char exact[40];
    uint64_t ns, again;

    if (cli_parse_time(text, &ns) != CLI_VALUE_OK)
        return;
    snprintf(exact, sizeof exact, "%lluns", (unsigned long long)ns);
    CHECK(cli_parse_time(exact, &again) == CLI_VALUE_OK && again == ns);
}

static void check_numbers(const char *text)
{
    char exact[40];
    uint64_t number, again;

    if (cli_parse_size(text, &number) == CLI_VALUE_OK) {
        snprintf(exact, sizeof exact, "%llu", (unsigned long long)number);
        CHECK(cli_parse_size(exact, &again) == CLI_VALUE_OK && again == number);
    }
    if (cli_parse_u64(text, &number) == CLI_VALUE_OK)
        CHECK(number == strtoull(text, NULL, 10));
}

/* ---- what was taken ---- */

static void check_list(const struct number_list *list)
{
    for (size_t i = 1; i < list->count; i++)
        CHECK(list->items[i - 1] < list->items[i]);
}

static void try_regex(bool has, const regex_t *regex)
{
    if (has)
        (void)!regexec(regex, "std::f<int>(char)", 0, NULL, 0);
}

static bool look(const struct tool_options *o)
{
    const struct shape_options *shape = &o->shape;

    check_list(&o->select.pids);
    check_list(&o->select.tids);
    check_list(&o->symbols.perf_map_pids);
    CHECK(!o->select.has_from || !o->select.has_to || o->select.from_ns < o->select.to_ns);
    CHECK(!shape->has_max_depth || shape->max_depth > 0);
    CHECK(o->output == NULL || o->output[0] != '\0');
    try_regex(shape->has_frame_filter, &shape->frame_filter);
    try_regex(shape->has_root_at, &shape->root_at);
    try_regex(shape->has_skip_below, &shape->skip_below);
    for (size_t i = 0; i < shape->trim_paths.count; i++)
        CHECK(shape->trim_paths.items[i].old_size > 0);
    (void)select_names(&o->select, "app", NULL);
    (void)select_names(&o->select, "app", "worker [1]");
    return true;
}

/* The C library copies what is repeated, so repetitions of repetitions multiply: the user's own time, not ours. */
static bool multiplies(const uint8_t *data, size_t size)
{
    size_t braces = 0;

    for (size_t i = 0; i < size; i++) {
        braces += data[i] == '{';
        if (i > 0 && data[i] != '\0' && strchr("*+?{", data[i]) && strchr("*+?})", data[i - 1]) &&
            data[i - 1] != '\0')
            return true;
    }
    return braces > 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *argv[ARGUMENTS_MAX + 2] = {NULL};
    struct tool_result result;
    size_t which;
    int argc = 0;

    if (size == 0 || multiplies(data, size))
        return 0;
    which = data[0] % (sizeof tools / sizeof tools[0]);
    data++;
    size--;
    argv[argc++] = strdup(tools[which].name);
    while (size > 0 && argc <= ARGUMENTS_MAX) {
        size_t length = strnlen((const char *)data, size);
        char *argument = malloc(length + 1);

        CHECK(argument != NULL);
        memcpy(argument, data, length);
        argument[length] = '\0';
        argv[argc++] = argument;
        check_time(argument);
        check_numbers(argument);
        length += length < size;
        data += length;
        size -= length;
    }
    result = tool_run(tools[which].run, look, argc, argv);
    if (result.parsed) {
        CHECK(result.status == 0 && result.messages_size == 0 && result.printed == 0);
    } else if (result.status == EXIT_OK) { /* --help, --version */
        CHECK(result.messages_size == 0 && result.printed > 0);
    } else {
        size_t name = strlen(tools[which].name);

        CHECK(result.status == EXIT_USAGE && result.printed == 0);
        CHECK(tool_check_lines(result.messages, result.messages_size) == 1);
        CHECK(strncmp(result.messages, tools[which].name, name) == 0);
        CHECK(strncmp(result.messages + name, ": ", 2) == 0);
        CHECK(result.messages_size > 14);
        CHECK(strcmp(result.messages + result.messages_size - 14, " (see --help)\n") == 0);
    }
    while (argc > 0)
        free(argv[--argc]);
    return 0;
}
