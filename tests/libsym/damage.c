/* SPDX-License-Identifier: MIT */
/*
 * damage SEED RUNS FILE...: gives tests/fuzz/fuzz_dwarf.c each file cut off at places all over it, with bits flipped all
 * over it, and with numbers set to extreme values: RUNS of each kind for each file. Every run must end within seconds; one
 * that does not ends the program by SIGALRM, and the last line names it. Memory is limited from outside.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_SECONDS = 20 }; /* for one run; it takes a millisecond */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t state;

static size_t below(size_t limit)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return limit > 0 ? (size_t)((state >> 33) % limit) : 0;
}

/* In a block of exactly its size, so that a sanitizer sees the first byte read behind it. */
static void run(const char *name, const char *how, size_t at, const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size > 0 ? size : 1);
    if (copy == NULL)
        exit(2);
    memcpy(copy, data, size);
    fprintf(stderr, "%s: %s %zu\n", name, how, at);
    alarm(MOST_SECONDS);
    LLVMFuzzerTestOneInput(copy, size);
    alarm(0);
    free(copy);
}

static void cut(const char *name, const uint8_t *data, size_t size, size_t runs)
{
    for (size_t i = 0; i < runs && i < size; i++) {
        size_t at = runs >= size ? i : size / runs * i + below(size / runs);
        run(name, "cut at", at, data, at);
    }
}

static void flip(const char *name, uint8_t *data, size_t size, size_t runs)
{
    for (size_t i = 0; i < runs; i++) {
        size_t at = size * i / runs + below(size / runs + 1);
        at = at < size ? at : size - 1;
        uint8_t bit = (uint8_t)(1u << below(8));
        data[at] ^= bit;
        run(name, "bit at", at, data, size);
        data[at] ^= bit;
    }
}

static void set(const char *name, uint8_t *data, size_t size, size_t runs)
{
    static const uint8_t values[] = {0, 1, 0x7f, 0x80, 0xff};
    for (size_t i = 0; i < runs; i++) {
        uint8_t saved[8];
        size_t at[2] = {below(size), below(size)};
        size_t length = (size_t)1 << below(4);
        length = length <= size - at[0] ? length : size - at[0];
        memcpy(saved, data + at[0], length);
        memset(data + at[0], values[below(sizeof(values))], length);
        uint8_t other = data[at[1]];
        data[at[1]] = (uint8_t)below(256);
        run(name, "numbers at", at[0], data, size);
        data[at[1]] = other;
        memcpy(data + at[0], saved, length);
    }
}

int main(int argc, char **argv)
{
    if (argc < 4)
        return 2;
    state = strtoull(argv[1], NULL, 10);
    size_t runs = strtoull(argv[2], NULL, 10);
    for (int i = 3; i < argc; i++) {
        FILE *f = fopen(argv[i], "rb");
        if (f == NULL || fseek(f, 0, SEEK_END) != 0)
            return 2;
        size_t size = (size_t)ftell(f);
        uint8_t *data = malloc(size);
        rewind(f);
        if (size == 0 || data == NULL || fread(data, 1, size, f) != size)
            return 2;
        fclose(f);
        cut(argv[i], data, size, runs);
        flip(argv[i], data, size, runs);
        set(argv[i], data, size, runs);
        free(data);
    }
    return 0;
}
