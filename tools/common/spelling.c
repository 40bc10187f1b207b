/* SPDX-License-Identifier: MIT */
/* Nearness is the number of letters added, left out, replaced or swapped with their neighbour. */
#include "spelling.h"

#include <stdbool.h>
#include <string.h>

/* A third of the letters may be wrong; what is as short as "to" is no slip for anything. */
static size_t farthest(size_t size)
{
    return size < 3 || size > SPELLING_MAX ? 0 : size / 3;
}

void spelling_begin(struct spelling *s, const char *word, size_t size)
{
    *s = (struct spelling){.word = word, .size = size, .distance = farthest(size) + 1};
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t distance(const char *a, size_t a_size, const char *b, size_t b_size)
{
    size_t rows[3][SPELLING_MAX + 1];
    size_t *before = rows[0], *above = rows[1], *row = rows[2];

    for (size_t j = 0; j <= b_size; j++)
        above[j] = before[j] = j;
    for (size_t i = 1; i <= a_size; i++) {
        size_t *spare = before;

        row[0] = i;
        for (size_t j = 1; j <= b_size; j++) {
            row[j] =
                smaller(smaller(above[j], row[j - 1]) + 1, above[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = smaller(row[j], before[j - 2] + 1);
        }
        before = above;
        above = row;
        row = spare;
    }
    return above[b_size];
}

static bool is_negated(const char *word, size_t size)
{
    return size >= 3 && memcmp(word, "no-", 3) == 0;
}

/* Other programs take the beginning of an option for it. */
static bool begins(const struct spelling *s, const char *whole, size_t size)
{
    return s->size >= 3 && s->size < size && memcmp(s->word, whole, s->size) == 0;
}

void spelling_offer(struct spelling *s, const char *prefix, const char *name, size_t name_size)
{
    char whole[SPELLING_MAX + 1];
    size_t prefix_size = strlen(prefix), size = prefix_size + name_size, far;

    if (s->size > SPELLING_MAX || size > SPELLING_MAX)
        return;
    memcpy(whole, prefix, prefix_size);
    memcpy(whole + prefix_size, name, name_size);
    whole[size] = '\0';
    if (is_negated(s->word, s->size) != is_negated(whole, size))
        return; /* nobody means the opposite */
    far = distance(s->word, s->size, whole, size);
    if (far < s->distance && far < size)
        s->distance = far;
    else if (s->best[0] != '\0' || !begins(s, whole, size))
        return;
    memcpy(s->best, whole, size + 1);
}
