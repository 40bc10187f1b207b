/* SPDX-License-Identifier: MIT */
/*
 * container PID [FOLDER]: names address 0x1010 of a process, for tests/libsym/container.sh. The
 * capture is one of this boot that has ended now, with FOLDER beside it. Prints "NAME (MISS)
 * PATH": "-" for no name, and the perf map that was used or missed.
 */
#include "spool/sym.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char *miss_name(enum sym_miss miss)
{
    switch (miss) {
    case SYM_MISS_NONE:
        return "NONE";
    case SYM_MISS_NO_FILE:
        return "NO_FILE";
    case SYM_MISS_STALE:
        return "STALE";
    default:
        return sym_miss_text(miss);
    }
}

int main(int argc, char **argv)
{
    char boot_id[64] = "";
    struct timespec now;
    const struct sym_frame *f;
    struct sym_perf_map_state s;
    size_t count;
    if (argc != 2 && argc != 3) {
        fprintf(stderr, "usage: container PID [FOLDER]\n");
        return 2;
    }
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "r");
    if (file == NULL || fgets(boot_id, sizeof(boot_id), file) == NULL) {
        fprintf(stderr, "container: no boot id\n");
        return 1;
    }
    fclose(file);
    clock_gettime(CLOCK_REALTIME, &now);
    struct sym_capture capture = {.size = sizeof(capture), .boot_id = boot_id};
    capture.has_start_time = capture.has_end_time = true;
    capture.start_time_us = capture.end_time_us =
        (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
    capture.folder = argc == 3 ? argv[2] : NULL;
    struct sym_query q = {.module = SYM_NO_MODULE, .pid = atoi(argv[1]), .abs = 0x1010};
    struct sym_context *c = sym_context_new();
    int rc = c == NULL ? SYM_ERR_NOMEM : sym_context_open(c, NULL);
    if (rc == 0)
        rc = sym_capture_begin(c, &capture);
    if (rc == 0)
        rc = sym_resolve(c, &q, &f, &count);
    if (rc == 0 && sym_perf_map_state(c, q.pid, &s) == 1)
        printf("%s (%s) %s\n", f->name != NULL ? f->name : "-", miss_name(s.miss), s.path);
    else
        fprintf(stderr, "container: %s\n", c != NULL ? sym_context_error(c) : sym_error_text(rc));
    sym_context_free(c);
    return rc != 0;
}
