/* SPDX-License-Identifier: MIT */
/*
 * --completion: the table of options as a script for a shell. For bash, what the table says goes in
 * front of complete.bash, which the build makes part of the tool; zsh has functions of its own that
 * understand a table.
 */
#include "cli.h"
#include "cli_shared.h"
#include "text.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "complete_bash.h" /* complete_bash[], by the build */

#define SPOOL_FILES "*.spool|*.spool.gz"

enum { SHELL_BASH, SHELL_ZSH }; /* as the words of --completion */

/* Calls `print` for every option of the tool. */
static void each_option(const struct cli_tool *tool, struct tool_output *out,
                        void (*print)(struct tool_output *out, const struct cli_option *option))
{
    struct cli_shared_group groups[CLI_GROUPS_MAX];
    size_t count = cli_groups(tool, groups);

    for (size_t i = 0; i < count; i++) {
        for (const struct cli_option *o = groups[i].options; o->name != NULL; o++) {
            if (cli_takes(tool, o))
                print(out, o);
        }
    }
}

/* Inside of single quotes, where both shells have only those to be careful about. */
static void in_quotes(struct tool_output *out, const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '\'')
            output_text(out, "'\\''");
        else
            output_byte(out, *text);
    }
}

/* "a|b" as 'a' 'b'. */
static void quoted_words(struct tool_output *out, const char *words)
{
    struct text_buffer word = {0};

    for (const char *at = words; *at != '\0'; at += *at == '|') {
        size_t size = strcspn(at, "|");

        text_append(&word, at, size);
        output_text(out, at == words ? "'" : " '");
        in_quotes(out, word.data);
        output_byte(out, '\'');
        at += size;
        text_free(&word);
    }
}

/* ---- bash ------------------------------------------------------------------------------------ */

static void bash_option(struct tool_output *out, const struct cli_option *o)
{
    output_text(out, "       ");
    if (o->short_name != 0)
        output_printf(out, " -%c", o->short_name);
    output_printf(out, " --%s", o->name);
    if (o->negatable)
        output_printf(out, " --no-%s", o->name);
    output_byte(out, '\n');
}

static void bash_value(struct tool_output *out, const struct cli_option *o)
{
    static const char *const kinds[] = {
        [CLI_KIND_TEXT] = "text", [CLI_KIND_WORD] = "word",     [CLI_KIND_WORD_LIST] = "list",
        [CLI_KIND_FILE] = "file", [CLI_KIND_FOLDER] = "folder", [CLI_KIND_PID_LIST] = "pids"};

    if (o->value == NULL)
        return;
    output_text(out, "    ");
    if (o->short_name != 0)
        output_printf(out, "-%c | ", o->short_name);
    output_printf(out, "--%s) kind='%s'", o->name, kinds[o->kind]);
    if (o->words != NULL) {
        output_text(out, " words=(");
        quoted_words(out, o->words);
        output_byte(out, ')');
    }
    output_text(out, " ;;\n");
}

static void print_bash(const struct cli_tool *tool, struct tool_output *out)
{
    const char *text = complete_bash;

    output_printf(out, "# Completion of %s for bash, as %s --completion=bash prints it.\n\n",
                  tool->name, tool->name);
    output_printf(out, "_%s_table()\n{\n", tool->name);
    if (tool->command) {
        output_text(out, "    command=1\n    files=()\n");
    } else {
        output_text(out, "    files=(");
        quoted_words(out, tool->files != NULL ? tool->files : SPOOL_FILES);
        output_text(out, ")\n");
    }
    output_text(out, "    options=(\n");
    each_option(tool, out, bash_option);
    output_printf(out, "    )\n}\n\n_%s_value()\n{\n    words=()\n    case $1 in\n", tool->name);
    each_option(tool, out, bash_value);
    output_text(out, "    *) return 1 ;;\n    esac\n}\n\n");
    for (const char *at; (at = strstr(text, "TOOL")) != NULL; text = at + strlen("TOOL")) {
        output_write(out, text, (size_t)(at - text));
        output_text(out, tool->name);
    }
    output_text(out, text);
}

/* ---- zsh ------------------------------------------------------------------------------------- */

/* Part of a specification of _arguments, in single quotes. */
static void zsh_part(struct tool_output *out, const char *text)
{
    struct text_buffer part = {0};

    for (; *text != '\0'; text++) {
        if (strchr("\\[]:", *text) != NULL)
            text_append_byte(&part, '\\');
        text_append_byte(&part, *text);
    }
    if (part.size > 0)
        in_quotes(out, part.data);
    text_free(&part);
}

/* The words one after another, for a shell that reads them once more. */
static void zsh_words(struct tool_output *out, const char *words)
{
    struct text_buffer list = {0};

    for (; *words != '\0'; words++) {
        bool plain = isalnum((unsigned char)*words) || strchr("-_|", *words) != NULL;

        if (!plain)
            text_append_byte(&list, '\\');
        text_append_byte(&list, *words == '|' ? ' ' : *words);
    }
    in_quotes(out, list.data);
    text_free(&list);
}

static void zsh_action(struct tool_output *out, const struct cli_option *o)
{
    switch (o->kind) {
    case CLI_KIND_TEXT:
    case CLI_KIND_WORD:
        if (o->words == NULL) {
            output_byte(out, ' '); /* a message, nothing to offer */
        } else {
            output_byte(out, '(');
            zsh_words(out, o->words);
            output_byte(out, ')');
        }
        break;
    case CLI_KIND_WORD_LIST:
        output_printf(out, "_values -s , %s ", o->value);
        zsh_words(out, o->words);
        break;
    case CLI_KIND_FILE:
        output_text(out, "_files");
        break;
    case CLI_KIND_FOLDER:
        output_text(out, "_files -/");
        break;
    case CLI_KIND_PID_LIST:
        output_text(out, "_sequence _pids");
        break;
    }
}

/* One name of an option; the star: it may stand there already. */
static void zsh_name(struct tool_output *out, const struct cli_option *o, const char *name,
                     const char *before_value)
{
    output_printf(out, "        '*%s%s[", name, o->value != NULL ? before_value : "");
    zsh_part(out, o->help);
    output_byte(out, ']');
    if (o->value != NULL) {
        output_byte(out, ':');
        zsh_part(out, o->value);
        output_byte(out, ':');
        zsh_action(out, o);
    }
    output_text(out, "' \\\n");
}

static void zsh_option(struct tool_output *out, const struct cli_option *o)
{
    struct text_buffer name = {0};

    if (o->short_name != 0)
        zsh_name(out, o, (const char[]){'-', o->short_name, '\0'}, "+");
    text_printf(&name, "--%s", o->name);
    zsh_name(out, o, name.data, "=");
    text_free(&name);
    if (o->negatable)
        output_printf(out, "        '*--no-%s[opposite of --%s]' \\\n", o->name, o->name);
}

static void print_zsh(const struct cli_tool *tool, struct tool_output *out)
{
    output_printf(out,
                  "#compdef %s\n# Completion of %s for zsh, as %s --completion=zsh prints it.\n\n",
                  tool->name, tool->name, tool->name);
    output_printf(out, "_%s()\n{\n    _arguments -s -S%s \\\n", tool->name,
                  tool->command ? " -A '-*'" : "");
    each_option(tool, out, zsh_option);
    if (tool->command)
        output_text(out, "        '(-):COMMAND:_command_names -e' \\\n        '*::ARG:_normal'\n");
    else
        output_printf(out, "        '*:SPOOL:_files -g \"(%s)(-.)\"'\n",
                      tool->files != NULL ? tool->files : SPOOL_FILES);
    /* A file in fpath is the function itself, a text for eval only defines it. */
    output_printf(out,
                  "}\n\nif [ \"${funcstack[1]}\" = _%s ]; then\n    _%s \"$@\"\nelse\n    compdef "
                  "_%s %s\nfi\n",
                  tool->name, tool->name, tool->name, tool->name);
}

void cli_print_completion(const struct cli_tool *tool, int shell, struct tool_output *out)
{
    if (shell == SHELL_BASH)
        print_bash(tool, out);
    else
        print_zsh(tool, out);
}
