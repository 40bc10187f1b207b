/* SPDX-License-Identifier: MIT */
/*
 * fetch FILE_MS RUN_MS ID...: asks for the debug files of build ids, in one run, within limits; for
 * tests/libsym/debuginfod.sh. Prints "BYTES bytes" or why there is none for each.
 */
#include "debuginfod.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    struct symint_debuginfod_limits limits = {.file_ms = (uint32_t)atoi(argv[1]),
                                              .run_ms = (uint32_t)atoi(argv[2])};
    struct symint_debuginfod *d = symint_debuginfod_new(&limits);
    int rc = d == NULL;
    for (int i = 3; i < argc && rc == 0; i++) {
        uint8_t id[64];
        size_t size = 0;
        int fd;
        char *path;
        const char *why = "";
        for (const char *hex = argv[i]; size < sizeof(id) && hex[0] != '\0' && hex[1] != '\0';
             hex += 2) {
            char digits[3] = {hex[0], hex[1], '\0'};
            id[size++] = (uint8_t)strtoul(digits, NULL, 16);
        }
        rc = symint_debuginfod_find(d, id, size, &fd, &path, &why);
        if (rc == 0 && fd >= 0) {
            printf("%lld bytes\n", (long long)lseek(fd, 0, SEEK_END));
            close(fd);
            free(path);
        } else {
            printf("%s\n", why);
        }
    }
    symint_debuginfod_free(d);
    return rc != 0;
}
