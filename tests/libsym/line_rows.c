/* SPDX-License-Identifier: MIT */
/*
 * line_rows FILE: compares every line table of a file with what libdw reads: for tests/libsym/lines.sh.
 * line_rows -t FILE: prints how long both take for all of them.
 *
 * Both ends of what each row of libdw's covers are looked up, and the addresses covered are counted. Where a
 * linker folded functions, sequences overlap and the two may differ.
 */
#include "dwarf_line.h"
#include "elf_private.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static struct symint_elf *elf;
static struct symint_debug_sections sections;
static struct symint_strings strings;
static struct symint_line_scratch scratch;
static unsigned long tables, rows, differences;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static bool open_sections(const char *path)
{
    enum sym_miss miss;
    const char *why = "";
    struct stat st;
    int fd = open(path, O_RDONLY);
    if (fd < 0 || fstat(fd, &st) != 0)
        return false;
    struct symint_input input = {.fd = fd, .size = (uint64_t)st.st_size};
    return symint_elf_open(&input, &elf, &miss, &why) == 0 && elf != NULL &&
           symint_elf_read_sections(elf, &miss, &why) == 0 &&
           symint_debug_open(elf, false, &sections) == 0;
}

/* Without "." and empty components, in place. */
static const char *normal(char *path)
{
    char *to = path;
    for (const char *from = path; *from != '\0';) {
        bool first = to == path || to[-1] == '/';
        if (first && from[0] == '.' && from[1] == '/')
            from += 2;
        else if (first && from[0] == '/' && to != path)
            from++;
        else
            *to++ = *from++;
    }
    *to = '\0';
    return path;
}

static void differ(const char *what, uint64_t address, const char *ours, const char *theirs)
{
    if (++differences <= 5)
        printf("%" PRIx64 ": %s is %s, libdw says %s\n", address, what, ours, theirs);
}

struct theirs {
    uint64_t start, end;
    int line, column;
    char path[8192];
};

static void compare_at(struct symint_line_table *t, const char *comp_dir, uint64_t address,
                       const struct theirs *want)
{
    struct symint_line_row row;
    char ours[64], theirs[64];
    const char *path;
    if (!symint_line_find(t, address, &row)) {
        differ("the row", address, "none", want->path);
        return;
    }
    snprintf(ours, sizeof(ours), "%u:%u", row.line, row.column);
    snprintf(theirs, sizeof(theirs), "%d:%d", want->line, want->column);
    if (strcmp(ours, theirs) != 0)
        differ("the line", address, ours, theirs);
    if (symint_line_path(t, &strings, comp_dir, row.file, &path) != 0)
        exit(2);
    if (strcmp(path != NULL ? path : "???", want->path) != 0)
        differ("the file", address, path != NULL ? path : "none", want->path);
}

/* How many addresses of a gap the table covers; of a large one the first ones are looked at. */
static uint64_t covered(const struct symint_line_table *t, uint64_t start, uint64_t end)
{
    struct symint_line_row row;
    uint64_t n = 0;
    for (uint64_t a = start; a < end && a < start + 4096; a++)
        n += symint_line_find(t, a, &row);
    return n;
}

static void compare(struct symint_line_table *t, const char *comp_dir, Dwarf_Lines *lines,
                    size_t count)
{
    uint64_t gap_start = UINT64_MAX;
    for (size_t i = 0; i + 1 < count; i++) {
        Dwarf_Line *line = dwarf_onesrcline(lines, i);
        bool end;
        struct theirs want = {0};
        dwarf_lineendsequence(line, &end);
        dwarf_lineaddr(line, &want.start);
        dwarf_lineaddr(dwarf_onesrcline(lines, i + 1), &want.end);
        if (end)
            gap_start = want.start;
        if (!symint_debug_is_code(&sections, want.start, want.end))
            continue;
        if (end) {
            if (covered(t, want.start, want.end) > 0)
                differ("a gap", want.start, "covered", "it is none");
            continue;
        }
        /* libdw sorts the end of a sequence before its last row, when that is at the same address. */
        if (gap_start == want.start && covered(t, want.start, want.end) == 0)
            continue;
        dwarf_lineno(line, &want.line);
        dwarf_linecol(line, &want.column);
        const char *path = dwarf_linesrc(line, NULL, NULL);
        /* libdw gives a relative directory without that of the compiler. */
        bool relative = path != NULL && path[0] != '/' && comp_dir != NULL;
        snprintf(want.path, sizeof(want.path), "%s%s%s", relative ? comp_dir : "",
                 relative ? "/" : "", path != NULL ? path : "???");
        normal(want.path);
        compare_at(t, comp_dir, want.start, &want);
        compare_at(t, comp_dir, want.end - 1, &want);
        rows++;
    }
}

static bool table_of(Dwarf_Die *unit, uint64_t *offset)
{
    Dwarf_Attribute a;
    Dwarf_Word value;
    if (dwarf_attr(unit, DW_AT_stmt_list, &a) == NULL || dwarf_formudata(&a, &value) != 0)
        return false;
    *offset = value;
    return true;
}

static void compare_unit(Dwarf_Die *unit, uint64_t offset)
{
    Dwarf_Attribute a;
    Dwarf_Lines *lines;
    size_t count;
    const char *comp_dir = dwarf_formstring(dwarf_attr(unit, DW_AT_comp_dir, &a));
    struct symint_line_table *t;
    if (dwarf_getsrclines(unit, &lines, &count) != 0) {
        differ("the table", offset, "there", dwarf_errmsg(-1));
        return;
    }
    if (symint_line_open(&sections, offset, 8, &t) != 0 || t == NULL || symint_line_rows(t) != 0) {
        differ("the table", offset, "damaged", "it is not");
        return;
    }
    tables++;
    compare(t, comp_dir, lines, count);
    symint_line_free(t);
}

/* Each table of the file once. */
static void each_table(Dwarf *dwarf, void (*call)(Dwarf_Die *, uint64_t))
{
    Dwarf_CU *cu = NULL;
    Dwarf_Die unit;
    uint8_t type;
    uint64_t offset, before = UINT64_MAX;
    while (dwarf_get_units(dwarf, cu, &cu, NULL, &type, &unit, NULL) == 0)
        if (table_of(&unit, &offset) && offset != before) {
            call(&unit, offset);
            before = offset;
        }
}

static uint64_t ours_bytes, ours_rows;

static void run_ours(Dwarf_Die *unit, uint64_t offset)
{
    struct symint_line_table *t;
    (void)unit;
    if (symint_line_open(&sections, offset, 8, &t) != 0 || t == NULL ||
        symint_line_rows_with(t, &scratch) != 0)
        exit(2);
    ours_bytes += symint_line_bytes(t);
    tables++;
    symint_line_free(t);
}

static void run_theirs(Dwarf_Die *unit, uint64_t offset)
{
    Dwarf_Lines *lines;
    size_t count;
    (void)offset;
    if (dwarf_getsrclines(unit, &lines, &count) == 0)
        ours_rows += count;
}

static void nothing(Dwarf_Die *unit, uint64_t offset)
{
    (void)unit;
    (void)offset;
}

static void time_both(Dwarf *dwarf)
{
    each_table(dwarf, nothing);
    double start = now();
    each_table(dwarf, run_theirs);
    double theirs = now() - start;
    double best = 1e18;
    for (int i = 0; i < 6; i++) { /* the first one reads the file */
        tables = ours_bytes = 0;
        start = now();
        each_table(dwarf, run_ours);
        double ours = now() - start;
        if (i == 0)
            printf("libsym with reading: %.2f ns a row\n", ours / (double)ours_rows);
        else if (ours < best)
            best = ours;
    }
    printf("%lu tables, %" PRIu64
           " rows\nlibdw: %.2f ns a row\nlibsym: %.2f ns and %.2f bytes a row\n",
           tables, ours_rows, theirs / (double)ours_rows, best / (double)ours_rows,
           (double)ours_bytes / (double)ours_rows);
}

int main(int argc, char **argv)
{
    bool timed = argc == 3 && strcmp(argv[1], "-t") == 0;
    const char *path = argv[argc - 1];
    if (argc != 2 && !timed)
        return 2;
    int fd = open(path, O_RDONLY);
    Dwarf *dwarf = fd >= 0 ? dwarf_begin(fd, DWARF_C_READ) : NULL;
    if (dwarf == NULL || !open_sections(path)) {
        fprintf(stderr, "line_rows: %s: cannot be read\n", path);
        return 2;
    }
    if (timed) {
        time_both(dwarf);
    } else {
        each_table(dwarf, compare_unit);
        printf("%lu tables, %lu rows, %lu differences\n", tables, rows, differences);
    }
    dwarf_end(dwarf);
    close(fd);
    symint_debug_close(&sections);
    symint_elf_free(elf);
    symint_strings_free(&strings);
    symint_line_scratch_free(&scratch);
    return timed || (differences == 0 && rows > 0) ? 0 : 1;
}
