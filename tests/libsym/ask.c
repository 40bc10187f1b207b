/* SPDX-License-Identifier: MIT */
/*
 * ask [OPTION]... PATH OFFSET...: resolves file offsets of a module through the public API, for
 * tests/libsym/files.sh. Prints "OFFSET NAME START ORIGIN [unverified]" a line, "-" for what is
 * unknown, then "state TEXT: DETAIL".
 *   --sysroot DIR, --symbols DIR, --debug-dir DIR   as the tools' options
 *   --build-id HEX   recorded build id
 *   --map OFFSET SIZE   the mapping's file offset and size; default: the whole file
 *   --live PID START END   a process of the present boot, and where it has the file mapped
 *   --inode N        recorded inode
 *   --debuginfod     servers may be asked, --no-download: not for this module
 *   --same-boot      the capture was made just now
 */
#include "origin_name.h"
#include "spool/sym.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static size_t parse_hex(const char *text, uint8_t *bytes, size_t room)
{
    size_t size = 0;
    for (; size < room && text[0] != '\0' && text[1] != '\0'; text += 2) {
        char digits[3] = {text[0], text[1], '\0'};
        bytes[size++] = (uint8_t)strtoul(digits, NULL, 16);
    }
    return size;
}

int main(int argc, char **argv)
{
    const char *symbol_dirs[8];
    const char *debug_dirs[8];
    uint8_t id[64];
    bool now = false;
    struct sym_options options = {.size = sizeof(options),
                                  .no_inlines = true, /* which file is asked is the question */
                                  .symbol_dirs = symbol_dirs,
                                  .debug_dirs = debug_dirs,
                                  .perf_maps = SYM_PERF_MAPS_NONE};
    struct sym_module m = {.size = sizeof(m), .end = UINT64_C(1) << 40};
    int at = 1;
    for (; at + 1 < argc && strncmp(argv[at], "--", 2) == 0; at++) {
        const char *o = argv[at];
        if (strcmp(o, "--same-boot") == 0) {
            now = true;
        } else if (strcmp(o, "--debuginfod") == 0) {
            options.debuginfod = true;
        } else if (strcmp(o, "--no-download") == 0) {
            m.no_download = true;
        } else if (strcmp(o, "--sysroot") == 0) {
            options.sysroot = argv[++at];
        } else if (strcmp(o, "--symbols") == 0 && options.symbol_dir_count < 8) {
            symbol_dirs[options.symbol_dir_count++] = argv[++at];
        } else if (strcmp(o, "--debug-dir") == 0 && options.debug_dir_count < 8) {
            debug_dirs[options.debug_dir_count++] = argv[++at];
        } else if (strcmp(o, "--build-id") == 0) {
            m.build_id = id;
            m.build_id_size = parse_hex(argv[++at], id, sizeof(id));
        } else if (strcmp(o, "--inode") == 0) {
            m.inode = strtoull(argv[++at], NULL, 10);
        } else if (strcmp(o, "--map") == 0 && at + 2 < argc) {
            m.file_offset = strtoull(argv[++at], NULL, 16);
            m.start = UINT64_C(1) << 46;
            m.end = m.start + strtoull(argv[++at], NULL, 16);
        } else if (strcmp(o, "--live") == 0 && at + 3 < argc) {
            m.pid = atoi(argv[++at]);
            m.start = strtoull(argv[++at], NULL, 16);
            m.end = strtoull(argv[++at], NULL, 16);
            now = true;
        } else {
            fprintf(stderr, "ask: %s?\n", o);
            return 2;
        }
    }
    if (at >= argc)
        return 2;
    m.path = argv[at++];

    struct sym_context *c = sym_context_new();
    uint32_t module;
    int rc = c == NULL ? SYM_ERR_NOMEM : sym_context_open(c, &options);
    if (rc == 0 && now) {
        uint64_t time_us = (uint64_t)time(NULL) * 1000000;
        struct sym_capture capture = {.size = sizeof(capture),
                                      .has_start_time = true,
                                      .start_time_us = time_us,
                                      .has_end_time = true,
                                      .end_time_us = time_us};
        rc = sym_capture_begin(c, &capture);
    }
    if (rc == 0)
        rc = sym_module_add(c, &m, &module);
    for (; rc == 0 && at < argc; at++) {
        const struct sym_frame *f;
        size_t count;
        struct sym_query q = {.module = module, .pid = m.pid, .rel = strtoull(argv[at], NULL, 16)};
        q.abs = q.rel - m.file_offset + m.start;
        rc = sym_resolve(c, &q, &f, &count);
        if (rc == 0)
            printf("%" PRIx64 " %s %" PRIx64 " %s%s\n", q.rel, f->name != NULL ? f->name : "-",
                   f->function_start, origin_name(f->origin),
                   f->flags & SYM_FLAG_UNVERIFIED ? " unverified" : "");
    }
    if (rc == 0) {
        const char *detail;
        enum sym_miss miss = sym_module_state(c, module, &detail);
        printf("state %s: %s\n", sym_miss_text(miss), detail);
    } else {
        fprintf(stderr, "ask: %s\n", c != NULL ? sym_context_error(c) : sym_error_text(rc));
    }
    sym_context_free(c);
    return rc != 0;
}
