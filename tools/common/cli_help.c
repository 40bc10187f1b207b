/* SPDX-License-Identifier: MIT */
/*
 * --help and --version. Help fits a screen: one line an option or a few that belong together, and
 * nothing is wrapped here; the manual page has the rest. A test counts lines and columns.
 */
#include "cli.h"
#include "cli_shared.h"
#include "text.h"

#include <string.h>

#include "spool/sym.h"

#define HELP_COLUMN 28 /* where texts begin, unless there are many options on the line */

static void option_name(struct text_buffer *left, const struct cli_option *option)
{
    if (option->short_name != 0)
        text_printf(left, "-%c, ", option->short_name);
    text_printf(left, "--%s%s", option->negatable ? "[no-]" : "", option->name);
    if (option->value != NULL)
        text_printf(left, " %s", option->value);
}

/* What it is for, with the words that may be its value: "colored text: auto, always, never". */
static void option_text(struct text_buffer *right, const struct cli_option *option)
{
    text_printf(right, "%s", option->help);
    if (option->words == NULL)
        return;
    text_printf(right, option->kind == CLI_KIND_TEXT ? "; or " : ": ");
    for (const char *at = option->words; *at != '\0'; at++) {
        if (*at == '|')
            text_append(right, ", ", 2);
        else
            text_append_byte(right, *at);
    }
}

static void end_line(struct tool_output *out, struct text_buffer *left, struct text_buffer *right)
{
    if (left->size > 0) {
        int gap = HELP_COLUMN - 2 - (int)left->size;

        output_printf(out, "  %s%*s%s\n", left->data, gap > 2 ? gap : 2, "", right->data);
    }
    text_free(left);
    text_free(right);
}

static void help_group(const struct cli_tool *tool, struct tool_output *out,
                       const struct cli_option *option)
{
    struct text_buffer left = {0}, right = {0};

    for (; option->name != NULL; option++) {
        if (option->name[0] == '\0') {
            end_line(out, &left, &right);
            output_printf(out, "%s:\n", option->help);
        }
        if (!cli_takes(tool, option))
            continue;
        if (!option->joined)
            end_line(out, &left, &right);
        if (left.size > 0) {
            text_append(&left, ", ", 2);
            text_append(&right, "; ", 2);
        }
        option_name(&left, option);
        option_text(&right, option);
    }
    end_line(out, &left, &right);
}

void cli_print_help(const struct cli_tool *tool, struct tool_output *out)
{
    struct cli_shared_group groups[CLI_GROUPS_MAX];
    size_t count = cli_groups(tool, groups);

    for (size_t i = 0; tool->usage[i] != NULL; i++)
        output_printf(out, "%s %s %s\n", i == 0 ? "Usage:" : "      ", tool->name, tool->usage[i]);
    output_printf(out, "%s: %s\n", tool->name, tool->purpose);
    if ((tool->groups & CLI_COMMON) != 0)
        output_text(out,
                    "Without a SPOOL, or with -, standard input is read. Spools may be gzip'd.\n");
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || strcmp(groups[i].title, groups[i - 1].title) != 0)
            output_printf(out, "%s:\n", groups[i].title);
        help_group(tool, out, groups[i].options);
    }
    for (size_t i = 0; tool->examples != NULL && tool->examples[i] != NULL; i++)
        output_printf(out, "%-9s %s\n", i == 0 ? "Examples:" : "", tool->examples[i]);
    if (tool->note != NULL)
        output_printf(out, "%s\n", tool->note);
    else
        output_text(out, "Exit status: 0 done, 1 failed, 2 usage. ");
    output_printf(out, "All of it: man %s\n", tool->name);
}

void cli_print_version(const struct cli_tool *tool, struct tool_output *out)
{
    const char *features = sym_features();

    output_printf(out, "%s %s\n", tool->name, SPOOLTOOLS_VERSION);
    if (tool->command) {
        output_text(out, "spool versions written: 3 4\n");
        return;
    }
    output_text(out, "spool versions read: 1 2 3 4\nspool versions written: 3 4\n");
    output_printf(out, "optional features: %s\n", features[0] != '\0' ? features : "none");
}
