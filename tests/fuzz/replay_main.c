/* SPDX-License-Identifier: MIT */
/*
 * Runs a fuzz target over files without a fuzzer: replay_NAME FILE_OR_FOLDER... Each input lies in a block
 * of exactly its own size, so that a sanitizer sees the first byte read behind it. No input at all is a failure:
 * a corpus that went missing must not look like a passed test.
 */
#include <errno.h>
#include <ftw.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned long inputs;

static int replay(const char *path, const struct stat *st, int kind, struct FTW *walk)
{
    FILE *file;
    uint8_t *data;
    size_t size;

    (void)walk;
    if (kind == FTW_D)
        return 0;
    if (kind != FTW_F || !S_ISREG(st->st_mode)) {
        fprintf(stderr, "%s: not a regular file\n", path);
        return 1;
    }
    size = (size_t)st->st_size;
    data = malloc(size);
    file = fopen(path, "rb");
    if ((size > 0 && !data) || !file || fread(data, 1, size, file) != size) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        if (file)
            fclose(file);
        free(data);
        return 1;
    }
    fclose(file);

    /* On standard error and before the run: the last line names the input of a crash. */
    fprintf(stderr, "%s (%zu bytes)\n", path, size);
    LLVMFuzzerTestOneInput(data, size);
    free(data);
    inputs++;
    return 0;
}

int main(int argc, char **argv)
{
    int i;

    LLVMFuzzerTestOneInput((const uint8_t *)"", 0); /* fuzzers begin with nothing */
    for (i = 1; i < argc; i++) {
        int rc = nftw(argv[i], replay, 16, FTW_PHYS);

        if (rc < 0)
            fprintf(stderr, "%s: %s\n", argv[i], strerror(errno));
        if (rc != 0)
            return 1;
    }
    if (inputs == 0) {
        fprintf(stderr, "no inputs\n");
        return 1;
    }
    printf("%lu inputs replayed\n", inputs);
    return 0;
}
