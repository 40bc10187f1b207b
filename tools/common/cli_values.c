/* SPDX-License-Identifier: MIT */
/* The forms that values of options have, and what is wrong with those that have another. */
#include "cli.h"
#include "text.h"

#include <stdlib.h>
#include <string.h>

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Appends a digit to a number; false when it does not fit. */
static bool add_digit(uint64_t *number, char digit)
{
    return !__builtin_mul_overflow(*number, UINT64_C(10), number) &&
           !__builtin_add_overflow(*number, (uint64_t)(digit - '0'), number);
}

enum cli_value_result cli_parse_u64(const char *text, uint64_t *number)
{
    bool fits = true;

    *number = 0;
    if (*text == '\0')
        return CLI_VALUE_BAD;
    for (; *text != '\0'; text++) {
        if (!is_digit(*text))
            return CLI_VALUE_BAD;
        fits = fits && add_digit(number, *text);
    }
    return fits ? CLI_VALUE_OK : CLI_VALUE_TOO_LARGE;
}

/* No floating point: 0.1s is 100,000,000 ns, and the largest time is exact, too. */
enum cli_value_result cli_parse_time(const char *text, uint64_t *ns)
{
    static const struct {
        const char *suffix;
        uint64_t unit_ns;
    } units[] = {{"", 1000000000}, {"s", 1000000000}, {"ms", 1000000}, {"us", 1000}, {"ns", 1}};
    size_t whole = strspn(text, "0123456789");
    const char *fraction = text + whole + (text[whole] == '.');
    size_t digits = text[whole] == '.' ? strspn(fraction, "0123456789") : 0;
    uint64_t unit_ns = 0;
    bool fits = true, exact = true;

    *ns = 0;
    if (whole + digits == 0)
        return CLI_VALUE_BAD;
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (strcmp(fraction + digits, units[i].suffix) == 0)
            unit_ns = units[i].unit_ns;
    }
    if (unit_ns == 0)
        return CLI_VALUE_BAD;
    for (size_t i = 0; i < whole; i++)
        fits = fits && add_digit(ns, text[i]);
    fits = fits && !__builtin_mul_overflow(*ns, unit_ns, ns);
    for (size_t i = 0; i < digits; i++) {
        unit_ns /= 10; /* a power of ten, so 0 once it is finer than a nanosecond */
        exact = exact && (unit_ns > 0 || fraction[i] == '0');
        fits = fits && !__builtin_add_overflow(*ns, unit_ns * (uint64_t)(fraction[i] - '0'), ns);
    }
    if (!fits)
        return CLI_VALUE_TOO_LARGE;
    return exact ? CLI_VALUE_OK : CLI_VALUE_TOO_FINE;
}

enum cli_value_result cli_parse_size(const char *text, uint64_t *size_bytes)
{
    size_t digits = strspn(text, "0123456789");
    uint64_t unit = 1;
    bool fits = true;

    *size_bytes = 0;
    if (digits == 0)
        return CLI_VALUE_BAD;
    if (text[digits] != '\0') {
        const char *suffix = strchr("KkMmGg", text[digits]);

        if (suffix == NULL || text[digits + 1] != '\0')
            return CLI_VALUE_BAD;
        unit = *suffix == 'K' || *suffix == 'k'   ? 1024
               : *suffix == 'M' || *suffix == 'm' ? 1024 * 1024
                                                  : 1024 * 1024 * 1024;
    }
    for (size_t i = 0; i < digits; i++)
        fits = fits && add_digit(size_bytes, text[i]);
    fits = fits && !__builtin_mul_overflow(*size_bytes, unit, size_bytes);
    return fits ? CLI_VALUE_OK : CLI_VALUE_TOO_LARGE;
}

uint64_t cli_time_value(const struct cli_arg *arg)
{
    uint64_t ns;

    switch (cli_parse_time(arg->value, &ns)) {
    case CLI_VALUE_OK:
        return ns;
    case CLI_VALUE_TOO_LARGE:
        cli_usage("%s: time '%s' is too large", arg->shown, arg->value);
    case CLI_VALUE_TOO_FINE:
        cli_usage("%s: time '%s' is finer than a nanosecond", arg->shown, arg->value);
    default:
        cli_usage("%s: '%s' is not a time like 2.5s, 250ms, 30us, 12ns or a number of seconds",
                  arg->shown, arg->value);
    }
}

uint64_t cli_size_value(const struct cli_arg *arg)
{
    uint64_t size;

    switch (cli_parse_size(arg->value, &size)) {
    case CLI_VALUE_OK:
        return size;
    case CLI_VALUE_TOO_LARGE:
        cli_usage("%s: size '%s' is too large", arg->shown, arg->value);
    default:
        cli_usage("%s: '%s' is not a size like 65528, 32K or 1M", arg->shown, arg->value);
    }
}

uint64_t cli_number_value(const struct cli_arg *arg, uint64_t min, uint64_t max)
{
    uint64_t number;
    enum cli_value_result result = cli_parse_u64(arg->value, &number);

    if (result == CLI_VALUE_BAD)
        cli_usage("%s: '%s' is not a number", arg->shown, arg->value);
    if (result != CLI_VALUE_OK || number < min || number > max)
        cli_usage("%s: '%s' is not in %llu to %llu", arg->shown, arg->value,
                  (unsigned long long)min, (unsigned long long)max);
    return number;
}

static int compare_numbers(const void *a, const void *b)
{
    const uint64_t *left = a, *right = b;

    return (*left > *right) - (*left < *right);
}

void cli_numbers_value(const struct cli_arg *arg, int64_t min, uint64_t max,
                       struct number_list *list)
{
    size_t kept = 0;

    for (const char *at = arg->value;;) {
        size_t size = strcspn(at, ",");
        bool negative = at[0] == '-';
        char *item = text_copy(at, size);
        uint64_t number = 0;
        enum cli_value_result result;
        bool in_range;

        result = cli_parse_u64(item + negative, &number);
        free(item);
        if (result == CLI_VALUE_BAD)
            cli_usage("%s: '%.*s' in '%s' is not a number", arg->shown, (int)size, at, arg->value);
        in_range = result == CLI_VALUE_OK;
        if (negative)
            in_range = in_range && min < 0 && number <= 0 - (uint64_t)min;
        else
            in_range = in_range && number <= max && (min < 0 || number >= (uint64_t)min);
        if (!in_range)
            cli_usage("%s: '%.*s' is not in %lld to %llu", arg->shown, (int)size, at,
                      (long long)min, (unsigned long long)max);
        list->items = cli_realloc(list->items, list->count + 1, sizeof *list->items);
        list->items[list->count++] = negative ? 0 - number : number;
        at += size;
        if (*at == '\0')
            break;
        at++;
    }
    qsort(list->items, list->count, sizeof *list->items, compare_numbers);
    for (size_t i = 0; i < list->count; i++) {
        if (kept == 0 || list->items[kept - 1] != list->items[i])
            list->items[kept++] = list->items[i];
    }
    list->count = kept;
}

/* ---- regular expressions ---- */

/*
 * What a pattern may cost, for glibc's regcomp recurses into groups until the stack ends, and
 * copies what a repeat counts: a{9} becomes nine a, and in (a{9}){9} they multiply. Its time for
 * copies that may be left out, as in a{0,9}, grows with their square, so those count four times.
 * The limits are far above what patterns for names need. They are no measure of time: a pattern
 * of the user's own may still be slow, but neither crash nor take all memory.
 */
#define REGEX_BYTES_MAX 4096u
#define REGEX_DEPTH_MAX 100u
#define REGEX_COPIES_MAX 10000u /* characters when all repeats are copied out */

/* Behind the bracket expression whose '[' is at p: a ']' that comes first is a member, and
 * [: :], [. .] and [= =] may hold one. */
static const char *skip_bracket(const char *p)
{
    p += p[1] == '^' ? 2 : 1;
    if (*p == ']')
        p++;
    while (*p != '\0' && *p != ']') {
        if (p[0] == '[' && (p[1] == ':' || p[1] == '.' || p[1] == '=')) {
            const char end[] = {p[1], ']', '\0'};
            const char *found = strstr(p + 2, end);

            p = found != NULL ? found + 1 : p;
        }
        p++;
    }
    return *p == ']' ? p + 1 : p;
}

static uint64_t repeat_bound(const char **p)
{
    uint64_t bound = 0;

    for (; is_digit(**p); ++*p) {
        if (bound <= REGEX_COPIES_MAX)
            bound = bound * 10 + (uint64_t)(**p - '0');
    }
    return bound;
}

/* How many copies the bounds at *p, behind '{', make; moves behind the '}'. Other texts than bounds
 * regcomp will refuse. */
static uint64_t repeat_copies(const char **p)
{
    uint64_t least = repeat_bound(p), most = least, sure;

    if (**p == ',') {
        ++*p;
        most = is_digit(**p) ? repeat_bound(p) : least + 1; /* x{9,} is nine x and x* */
    }
    *p += **p == '}';
    sure = least > 0 ? least : 1;
    return most > sure ? sure + 4 * (most - sure) : sure;
}

/* Why regcomp should not see the pattern; NULL when it may. */
static const char *regex_excess(const char *p)
{
    /* Sizes in characters when repeats are copied out: what stands before each open group in the
     * one around it, the present group so far, and its last item, which a repeat multiplies. */
    uint64_t before[REGEX_DEPTH_MAX], size = 0, last = 0;
    size_t depth = 0;

    if (strlen(p) > REGEX_BYTES_MAX)
        return "the pattern is longer than 4096 bytes";
    while (*p != '\0') {
        char c = *p;

        if (c == '(') {
            if (depth == REGEX_DEPTH_MAX)
                return "the pattern nests groups deeper than 100";
            before[depth++] = size + last;
            size = last = 0;
            p++;
        } else if (c == ')' && depth > 0) {
            last = size + last > 0 ? size + last : 1;
            size = before[--depth];
            p++;
        } else if (c == '*' || c == '?') {
            p++;
        } else if (c == '+') { /* x+ is xx* */
            last *= 2;
            p++;
        } else if (c == '{') {
            p++;
            last *= repeat_copies(&p);
        } else {
            size += last;
            last = 1;
            p = c == '[' ? skip_bracket(p) : c == '\\' && p[1] != '\0' ? p + 2 : p + 1;
        }
        if (size + last > REGEX_COPIES_MAX)
            return "the repeats in the pattern multiply to more than 10000";
    }
    return NULL;
}

void cli_regex_value(const struct cli_arg *arg, regex_t *regex)
{
    const char *excess = regex_excess(arg->value);
    int code;

    if (excess != NULL)
        cli_usage("%s: %s", arg->shown, excess);
    code = regcomp(regex, arg->value, REG_EXTENDED | REG_NOSUB);
    if (code != 0) {
        char text[200];

        regerror(code, regex, text, sizeof text);
        cli_usage("%s: '%s' is no regular expression: %s", arg->shown, arg->value, text);
    }
}

void cli_text_value(const struct cli_arg *arg, struct text_list *list)
{
    list->items = cli_realloc(list->items, list->count + 1, sizeof *list->items);
    list->items[list->count++] = arg->value;
}
