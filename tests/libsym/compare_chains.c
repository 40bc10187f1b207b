/* SPDX-License-Identifier: MIT */
/*
 * compare_chains [-l] LABEL SYMBOLS ADDRESSES THEIRS OURS: compares what llvm-symbolizer --verbose and `chains -v` say.
 * SYMBOLS is from `nm -aS` of the file. A difference is explained if one of the rules below holds for it, which are about
 * what llvm-symbolizer does otherwise on purpose; all others count, and more than one address in 2,000 fails.
 *   -l  the library has no debug information of names here: lines alone are compared
 *
 *   qualified  without a linkage name, we say `A::f`, and they say `f`
 *   alias      two names of one address of the symbol table: libsym chooses by its own rule (symtab.c)
 *   label      a symbol without a size inside of one with a size: libsym keeps the latter, and the
 *              former ends nowhere behind it
 *   own-file   they take a file name from the symbol table where debug information has none; no line comes with it
 *   no-line    they keep the column of a row whose line is 0
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ENTRIES = 256, MOST_SHOWN = 12 };

struct entry {
    const char *name, *file;
    unsigned long line, column, start_line;
};

struct symbol {
    uint64_t start, size;
    const char *name;
    bool code;
};

struct reader {
    char *at; /* the rest of a text */
};

static struct symbol *symbols;
static size_t symbol_count;

static void die(const char *what, const char *which)
{
    fprintf(stderr, "compare_chains: %s: %s\n", which, what);
    exit(2);
}

static char *read_all(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (f == NULL || fseek(f, 0, SEEK_END) != 0)
        die("cannot be opened", path);
    size_t size = (size_t)ftell(f);
    rewind(f);
    char *text = malloc(size + 1);
    if (text == NULL || fread(text, 1, size, f) != size)
        die("cannot be read", path);
    text[size] = '\0';
    fclose(f);
    return text;
}

/* The next line without its end; NULL at the end of the text. */
static char *next_line(struct reader *r)
{
    char *line = r->at;
    if (*line == '\0')
        return NULL;
    char *end = strchr(line, '\n');
    if (end != NULL) {
        *end = '\0';
        r->at = end + 1;
    } else {
        r->at = line + strlen(line);
    }
    return line;
}

/* ---- symbols ---- */

static int by_start(const void *a, const void *b)
{
    const struct symbol *x = a, *y = b;
    return x->start < y->start ? -1 : x->start > y->start;
}

/* Lines `VALUE [SIZE] TYPE NAME`. */
static void read_symbols(const char *path)
{
    struct reader r = {read_all(path)};
    size_t room = 0;
    for (char *line; (line = next_line(&r)) != NULL;) {
        char *at = line;
        struct symbol s = {.start = strtoull(at, &at, 16)};
        if (at == line || *at != ' ')
            continue;
        if (at[1] != '\0' && at[2] != ' ')
            s.size = strtoull(at + 1, &at, 16);
        if (at[0] != ' ' || at[1] == '\0' || at[2] != ' ')
            continue;
        s.code = strchr("tTwWiu", at[1]) != NULL;
        s.name = at + 3;
        char *version = strchr(at + 3, '@');
        if (version != NULL)
            *version = '\0';
        if (symbol_count == room) {
            room = room * 2 + 256;
            symbols = realloc(symbols, room * sizeof(*symbols));
            if (symbols == NULL)
                die("out of memory", path);
        }
        symbols[symbol_count++] = s;
    }
    if (symbols != NULL)
        qsort(symbols, symbol_count, sizeof(*symbols), by_start);
}

/* Number of symbols that start at or before an address. */
static size_t symbols_until(uint64_t address)
{
    size_t low = 0, high = symbol_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (symbols[middle].start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool covers(const struct symbol *s, uint64_t address)
{
    return s->code && s->start <= address && (s->size == 0 || address - s->start < s->size);
}

/* A symbol of that name that covers the address; NULL: there is none. */
static const struct symbol *symbol_of(const char *name, uint64_t address)
{
    for (size_t i = symbols_until(address); i-- > 0;)
        if (covers(&symbols[i], address) && strcmp(symbols[i].name, name) == 0)
            return &symbols[i];
    return NULL;
}

/* Whether a symbol with a size covers an address. */
static bool is_inside(uint64_t address)
{
    for (size_t i = symbols_until(address); i-- > 0;)
        if (symbols[i].size > 0 && covers(&symbols[i], address))
            return true;
    return false;
}

/* ---- answers ---- */

static size_t next_chain(struct reader *r, struct entry *out)
{
    size_t count = 0;
    for (char *line; (line = next_line(r)) != NULL && *line != '\0';) {
        if (line[0] != ' ') {
            if (count == MOST_ENTRIES)
                die("a chain without an end", "answers");
            out[count++] = (struct entry){.name = line, .file = "??"};
            continue;
        }
        if (count == 0)
            die("an answer without a name", line);
        struct entry *e = &out[count - 1];
        if (strncmp(line, "  Filename: ", 12) == 0)
            e->file = line + 12;
        else if (strncmp(line, "  Function start line: ", 23) == 0)
            e->start_line = strtoul(line + 23, NULL, 10);
        else if (strncmp(line, "  Line: ", 8) == 0)
            e->line = strtoul(line + 8, NULL, 10);
        else if (strncmp(line, "  Column: ", 10) == 0)
            e->column = strtoul(line + 10, NULL, 10);
    }
    return count;
}

/* One step of a path, without `.` and doubled slashes. */
static const char *path_step(const char *at, size_t *size)
{
    for (;;) {
        at += strspn(at, "/");
        if (at[0] != '.' || (at[1] != '/' && at[1] != '\0'))
            break;
        at++;
    }
    *size = strcspn(at, "/");
    return at;
}

static bool same_path(const char *a, const char *b)
{
    if ((*a == '/') != (*b == '/'))
        return false;
    for (;;) {
        size_t x, y;
        a = path_step(a, &x);
        b = path_step(b, &y);
        if (x != y || memcmp(a, b, x) != 0)
            return false;
        if (x == 0)
            return true;
        a += x;
        b += y;
    }
}

/* ---- rules ---- */

enum rule { EQUAL, QUALIFIED, ALIAS, LABEL, OWN_FILE, NO_LINE, UNEXPLAINED, RULES };
static const char *const rule_names[RULES] = {"equal",    "qualified", "alias",      "label",
                                              "own-file", "no-line",   "UNEXPLAINED"};

static bool ends_with_name(const char *ours, const char *theirs)
{
    size_t a = strlen(ours), b = strlen(theirs);
    return a > b + 2 && strcmp(ours + a - b, theirs) == 0 && memcmp(ours + a - b - 2, "::", 2) == 0;
}

static enum rule explain_name(const char *theirs, const char *ours, bool physical, uint64_t address)
{
    if (strcmp(theirs, ours) == 0)
        return EQUAL;
    if (ends_with_name(ours, theirs))
        return QUALIFIED;
    if (!physical)
        return UNEXPLAINED;
    const struct symbol *t = symbol_of(theirs, address), *o = symbol_of(ours, address);
    if (t != NULL && o == NULL && strcmp(ours, "??") == 0 && t->size == 0 && is_inside(t->start))
        return LABEL;
    if (t == NULL || o == NULL)
        return UNEXPLAINED;
    if (t->start == o->start)
        return ALIAS;
    if (t->start > o->start && t->size == 0 && o->size > 0)
        return LABEL;
    return UNEXPLAINED;
}

static enum rule explain(const struct entry *theirs, size_t their_count, const struct entry *ours,
                         size_t our_count, uint64_t address, bool lines_only)
{
    enum rule worst = EQUAL;
    if (their_count != our_count)
        return UNEXPLAINED;
    for (size_t i = 0; i < our_count; i++) {
        const struct entry *t = &theirs[i], *o = &ours[i];
        enum rule name =
            lines_only ? EQUAL : explain_name(t->name, o->name, i + 1 == our_count, address);
        if (name == UNEXPLAINED)
            return UNEXPLAINED;
        if (t->line != o->line)
            return UNEXPLAINED;
        if (t->column != o->column) {
            if (i > 0 || t->line != 0 || o->column != 0)
                return UNEXPLAINED;
            name = NO_LINE;
        }
        if (t->start_line != o->start_line)
            return UNEXPLAINED;
        if (!same_path(t->file, o->file)) {
            if (strcmp(o->file, "??") != 0 || t->line != 0 || strchr(t->file, '/') != NULL)
                return UNEXPLAINED;
            name = OWN_FILE;
        }
        if (name > worst)
            worst = name;
    }
    return worst;
}

static void show(const char *who, const struct entry *e, size_t count)
{
    for (size_t i = 0; i < count; i++)
        printf("    %s %s %s:%lu:%lu, from %lu\n", i == 0 ? who : "      ", e[i].name, e[i].file,
               e[i].line, e[i].column, e[i].start_line);
}

int main(int argc, char **argv)
{
    static struct entry theirs[MOST_ENTRIES], ours[MOST_ENTRIES];
    unsigned long counts[RULES] = {0};
    unsigned long total = 0, shown = 0;
    char last[4096] = "";
    bool lines_only = argc == 7 && strcmp(argv[1], "-l") == 0;
    char **arguments = argv + (lines_only ? 2 : 1);
    if (argc != 6 && !lines_only) {
        fprintf(stderr, "usage: compare_chains [-l] LABEL SYMBOLS ADDRESSES THEIRS OURS\n");
        return 2;
    }
    read_symbols(arguments[1]);
    struct reader addresses = {read_all(arguments[2])};
    struct reader their_text = {read_all(arguments[3])}, our_text = {read_all(arguments[4])};
    for (char *line; (line = next_line(&addresses)) != NULL; total++) {
        uint64_t address = strtoull(line, NULL, 16);
        size_t their_count = next_chain(&their_text, theirs),
               our_count = next_chain(&our_text, ours);
        enum rule rule = explain(theirs, their_count, ours, our_count, address, lines_only);
        if (our_count == 0 || their_count == 0)
            die("answers are missing", arguments[0]);
        if (rule == UNEXPLAINED && shown < MOST_SHOWN && strcmp(last, theirs[0].name) != 0) {
            shown++;
            snprintf(last, sizeof(last), "%s", theirs[0].name); /* one of each function */
            printf("  %s 0x%" PRIx64 "\n", arguments[0], address);
            show("theirs", theirs, their_count);
            show("ours  ", ours, our_count);
        }
        counts[rule]++;
    }
    printf("%-28s %6lu addresses", arguments[0], total);
    for (size_t i = 0; i < RULES; i++)
        if (counts[i] > 0 && i != EQUAL)
            printf(", %lu %s", counts[i], rule_names[i]);
    bool failed = total == 0 || counts[UNEXPLAINED] * 2000 > total;
    printf("%s\n", failed ? ": FAIL" : "");
    free(symbols);
    return failed;
}
