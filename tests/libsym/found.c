/* SPDX-License-Identifier: MIT */
/*
 * found [OPTION]... PATH: the files that sym_module_files hands over of a module, for
 * tests/libsym/module_files.sh: "KIND BUILD-ID SIZE PATH" a line. Offsets in it that are on standard
 * input are resolved, a line for each level of a chain.
 *   --symbols DIR, --debug-dir DIR, --sysroot DIR   as the tools' options
 *   --build-id HEX           recorded build id
 *   --map OFFSET SIZE        the mapping's file offset and size, hexadecimal
 *   --live PID START END     a process of the present boot, and where it has the file mapped
 *   --store DIR              copies them into a symbol archive
 *   --chains                 tells only the answers
 */
#include "spool/sym.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static void die(const char *what)
{
    fprintf(stderr, "found: %s\n", what);
    exit(1);
}

static void hex_of(const uint8_t *bytes, size_t size, char *text)
{
    for (size_t i = 0; i < size; i++)
        sprintf(text + 2 * i, "%02x", bytes[i]);
    text[2 * size] = '\0';
}

static void copy(int fd, const char *path)
{
    char buffer[65536];
    ssize_t n;
    FILE *out = fopen(path, "w");
    if (out == NULL)
        die(path);
    while ((n = read(fd, buffer, sizeof(buffer))) > 0)
        if (fwrite(buffer, 1, (size_t)n, out) != (size_t)n)
            die("short write");
    if (n < 0 || fclose(out) != 0)
        die("copying failed");
}

/* `owner` is the build id of what a package belongs to, `alone` that there is no other debug file. */
static void store(const char *dir, const struct sym_file *f, const char *owner, bool alone)
{
    char id[2 * 64 + 1];
    char path[4096];
    hex_of(f->build_id, f->build_id_size, id);
    const char *name = f->kind == SYM_FILE_PACKAGE ? owner : id;
    const char *ending = f->kind == SYM_FILE_PACKAGE             ? ".debug.dwp"
                         : f->kind == SYM_FILE_PROGRAM && !alone ? ""
                                                                 : ".debug";
    if (strlen(name) < 4)
        die("no build id to store a file by");
    mkdir(dir, 0777);
    snprintf(path, sizeof(path), "%s/.build-id", dir);
    mkdir(path, 0777);
    snprintf(path, sizeof(path), "%s/.build-id/%.2s", dir, name);
    mkdir(path, 0777);
    snprintf(path, sizeof(path), "%s/.build-id/%.2s/%s%s", dir, name, name + 2, ending);
    copy(f->fd, path);
}

static void check_descriptor(int fd)
{
    if (lseek(fd, 0, SEEK_CUR) != 0)
        die("a descriptor is not at the beginning");
    if ((fcntl(fd, F_GETFD) & FD_CLOEXEC) == 0)
        die("a descriptor would be inherited");
    if ((fcntl(fd, F_GETFL) & O_ACCMODE) == O_WRONLY)
        die("a descriptor is not for reading");
}

static void print_files(struct sym_context *c, uint32_t module, const char *dir)
{
    static const char *const kinds[] = {"", "program", "debug", "supplementary", "package"};
    struct sym_file files[SYM_FILES_MAX];
    char owner[2 * 64 + 1] = "";
    int count = sym_module_files(c, module, files, SYM_FILES_MAX);
    if (count < 0)
        die(sym_context_error(c));
    bool alone = count < 2 || files[1].kind != SYM_FILE_DEBUG;
    for (int i = 0; i < count; i++) {
        char id[2 * 64 + 1];
        struct stat st;
        check_descriptor(files[i].fd);
        hex_of(files[i].build_id, files[i].build_id_size, id);
        if (files[i].kind <= SYM_FILE_DEBUG)
            memcpy(owner, id, sizeof(id));
        if (fstat(files[i].fd, &st) != 0)
            die("fstat");
        printf("%s %s %" PRIu64 " %s\n", kinds[files[i].kind], id[0] != '\0' ? id : "-",
               (uint64_t)st.st_size, files[i].path);
        if (dir != NULL)
            store(dir, &files[i], owner, alone);
        close(files[i].fd);
        free(files[i].path);
    }
}

static void print_chains(struct sym_context *c, struct sym_query *q, const struct sym_module *m)
{
    char line[64];
    while (fgets(line, sizeof(line), stdin) != NULL) {
        const struct sym_frame *f;
        size_t count;
        q->rel = strtoull(line, NULL, 16);
        q->abs = q->rel - m->file_offset + m->start;
        if (sym_resolve(c, q, &f, &count) != 0)
            die(sym_context_error(c));
        for (size_t i = 0; i < count; i++)
            printf("%" PRIx64 " %s %s:%u:%u from %u, %" PRIx64 "%s, %s, flags %x\n", q->rel,
                   f[i].name != NULL ? f[i].name : "-", f[i].file != NULL ? f[i].file : "-",
                   f[i].line, f[i].column, f[i].start_line, f[i].function_start,
                   f[i].inlined ? ", inlined" : "", sym_origin_text(f[i].origin), f[i].flags);
    }
}

static void check_misuse(struct sym_context *c)
{
    struct sym_file files[SYM_FILES_MAX];
    struct sym_context *closed = sym_context_new();
    if (closed == NULL || sym_module_files(closed, 0, files, SYM_FILES_MAX) != SYM_ERR_MISUSE ||
        sym_module_files(c, 7, files, SYM_FILES_MAX) != SYM_ERR_MISUSE)
        die("misuse is accepted");
    sym_context_free(closed);
}

int main(int argc, char **argv)
{
    const char *symbol_dir;
    const char *debug_dir = "/nowhere";
    const char *store_dir = NULL;
    bool only_chains = false;
    uint8_t id[64];
    struct sym_options options = {.size = sizeof(options),
                                  .symbol_dirs = &symbol_dir,
                                  .debug_dirs = &debug_dir,
                                  .debug_dir_count = 1,
                                  .perf_maps = SYM_PERF_MAPS_NONE};
    struct sym_module m = {.size = sizeof(m), .end = UINT64_C(1) << 40};
    int at = 1;
    for (; at + 1 < argc && strncmp(argv[at], "--", 2) == 0; at++) {
        const char *o = argv[at];
        if (strcmp(o, "--chains") == 0) {
            only_chains = true;
        } else if (strcmp(o, "--symbols") == 0) {
            symbol_dir = argv[++at];
            options.symbol_dir_count = 1;
        } else if (strcmp(o, "--debug-dir") == 0) {
            debug_dir = argv[++at];
        } else if (strcmp(o, "--sysroot") == 0) {
            options.sysroot = argv[++at];
        } else if (strcmp(o, "--store") == 0) {
            store_dir = argv[++at];
        } else if (strcmp(o, "--build-id") == 0) {
            m.build_id = id;
            for (const char *p = argv[++at]; p[0] != '\0' && p[1] != '\0'; p += 2)
                if (m.build_id_size < sizeof(id))
                    id[m.build_id_size++] = (uint8_t)strtoul((char[]){p[0], p[1], '\0'}, NULL, 16);
        } else if (strcmp(o, "--map") == 0 && at + 2 < argc) {
            m.file_offset = strtoull(argv[++at], NULL, 16);
            m.start = UINT64_C(1) << 46;
            m.end = m.start + strtoull(argv[++at], NULL, 16);
        } else if (strcmp(o, "--live") == 0 && at + 3 < argc) {
            m.pid = atoi(argv[++at]);
            m.start = strtoull(argv[++at], NULL, 16);
            m.end = strtoull(argv[++at], NULL, 16);
        } else {
            die(o);
        }
    }
    if (at >= argc)
        die("no path");
    m.path = argv[at];

    uint64_t time_us = (uint64_t)time(NULL) * 1000000;
    struct sym_capture capture = {.size = sizeof(capture),
                                  .has_start_time = true,
                                  .start_time_us = time_us,
                                  .has_end_time = true,
                                  .end_time_us = time_us};
    struct sym_context *c = sym_context_new();
    uint32_t module = SYM_NO_MODULE;
    if (c == NULL || sym_context_open(c, &options) != 0 || sym_capture_begin(c, &capture) != 0 ||
        sym_module_add(c, &m, &module) != 0)
        die(c == NULL ? "out of memory" : sym_context_error(c));
    check_misuse(c);
    if (!only_chains)
        print_files(c, module, store_dir);
    print_chains(c, &(struct sym_query){.module = module, .pid = m.pid}, &m);
    sym_context_free(c);
    return 0;
}
