/* SPDX-License-Identifier: MIT */
/*
 * ask_kernel [OPTION]... ADDRESS...: resolves kernel addresses through the public API, for
 * tests/libsym/vmlinux.sh. Prints for each frame "ADDRESS NAME+OFFSET ORIGIN FILE:LINE", with `(inlined)`
 * and `(unverified)` behind, "-" for what is unknown, then "state TEXT: DETAIL".
 *   --sysroot DIR, --symbols DIR, --debug-dir DIR, --kallsyms FILE, --vmlinux FILE
 *                                       as the tools' options
 *   --release TEXT, --build-id HEX      what was recorded of the kernel
 *   --range START END OFFSET NAME       a recorded range
 *   --ksymbol ADDRESS LENGTH NAME       a BPF program that came before the first sample
 *   --module START END PATH HEX         the recorded mapping that the addresses are in, its build id
 *   --also ADDRESS                      a sampled address that is not asked for
 *   --whole                             no list of sampled addresses
 *   --no-inlines, --no-lines
 *   --capture ID                        what the capture is called in symbol archives
 *   --pack LEVEL FILE, --pack-kallsyms FILE
 *                                       packs the addresses (names or lines) into a file
 */
#include "origin_name.h"
#include "spool/sym.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX 20000

static size_t parse_hex(const char *text, uint8_t *bytes, size_t room)
{
    size_t size = 0;
    for (; size < room && text[0] != '\0' && text[1] != '\0'; text += 2) {
        char digits[3] = {text[0], text[1], '\0'};
        bytes[size++] = (uint8_t)strtoul(digits, NULL, 16);
    }
    return size;
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static const char *kernel_origin(enum sym_origin origin)
{
    return origin == SYM_ORIGIN_VMLINUX    ? "vmlinux"
           : origin == SYM_ORIGIN_KALLSYMS ? "kallsyms"
           : origin == SYM_ORIGIN_SYSMAP   ? "sysmap"
                                           : origin_name(origin);
}

static void print_frame(uint64_t address, const struct sym_frame *f)
{
    const char *base = f->file != NULL ? strrchr(f->file, '/') : NULL;
    printf("%" PRIx64 " %s+0x%" PRIx64 " %s %s:%u%s%s\n", address, f->name != NULL ? f->name : "-",
           f->offset, kernel_origin(f->origin),
           f->file == NULL ? "-"
           : base != NULL  ? base + 1
                           : f->file,
           f->line, f->inlined ? " (inlined)" : "",
           f->flags & SYM_FLAG_UNVERIFIED ? " (unverified)" : "");
}

static bool write_file(const char *path, const struct sym_packed *packed)
{
    FILE *f = fopen(path, "wb");
    bool good = f != NULL && fwrite(packed->data, 1, packed->size_bytes, f) == packed->size_bytes;
    return f != NULL && fclose(f) == 0 && good;
}

struct packs {
    const char *level, *file; /* NULL: none */
    const char *kallsyms;
};

/* Packs all of the queries as it is asked for. */
static int pack(struct sym_context *c, const struct packs *p, const struct sym_query *queries,
                size_t count)
{
    struct sym_packed packed = {0};
    struct sym_pack_options options = {.size = sizeof(options), .level = SYM_LEVEL_LINES};
    int rc = 0;
    if (p->file != NULL) {
        if (strcmp(p->level, "names") == 0)
            options.level = SYM_LEVEL_NAMES;
        rc = sym_pack_kernel(c, queries, count, &options, &packed);
        if (rc == 0 && (packed.data == NULL || !write_file(p->file, &packed)))
            rc = SYM_ERR_IO;
        free(packed.data);
    }
    if (rc == 0 && p->kallsyms != NULL) {
        rc = sym_pack_kallsyms(c, queries, count, &packed);
        if (rc == 0 && (packed.data == NULL || !write_file(p->kallsyms, &packed)))
            rc = SYM_ERR_IO;
        free(packed.data);
    }
    return rc;
}

int main(int argc, char **argv)
{
    static struct sym_query queries[MAX];
    size_t query_count = 0;
    struct packs packs = {0};
    const char *capture = NULL;
    static uint64_t needed[MAX];
    size_t needed_count = 0;
    bool whole = false;
    const char *symbol_dirs[8];
    const char *debug_dirs[8];
    struct sym_kernel_range ranges[8];
    struct sym_ksymbol ksymbols[8];
    uint8_t id[64];
    uint8_t module_id[64];
    struct sym_options options = {
        .size = sizeof(options), .symbol_dirs = symbol_dirs, .debug_dirs = debug_dirs};
    struct sym_kernel k = {.size = sizeof(k), .ranges = ranges, .ksymbols = ksymbols};
    struct sym_module m = {.size = sizeof(m), .kernel = true};
    int at = 1;
    for (; at < argc && strncmp(argv[at], "--", 2) == 0; at++) {
        const char *o = argv[at];
        int left = argc - at - 1;
        if (strcmp(o, "--whole") == 0) {
            whole = true;
        } else if (strcmp(o, "--no-inlines") == 0) {
            options.no_inlines = true;
        } else if (strcmp(o, "--no-lines") == 0) {
            options.no_lines = true;
        } else if (left < 1) {
            return 2;
        } else if (strcmp(o, "--sysroot") == 0) {
            options.sysroot = argv[++at];
        } else if (strcmp(o, "--symbols") == 0 && options.symbol_dir_count < 8) {
            symbol_dirs[options.symbol_dir_count++] = argv[++at];
        } else if (strcmp(o, "--debug-dir") == 0 && options.debug_dir_count < 8) {
            debug_dirs[options.debug_dir_count++] = argv[++at];
        } else if (strcmp(o, "--kallsyms") == 0) {
            k.kallsyms = argv[++at];
        } else if (strcmp(o, "--vmlinux") == 0) {
            k.vmlinux = argv[++at];
        } else if (strcmp(o, "--release") == 0) {
            k.release = argv[++at];
        } else if (strcmp(o, "--build-id") == 0) {
            k.build_id = id;
            k.build_id_size = parse_hex(argv[++at], id, sizeof(id));
        } else if (strcmp(o, "--capture") == 0) {
            capture = argv[++at];
        } else if (strcmp(o, "--pack") == 0 && left >= 2) {
            packs.level = argv[++at];
            packs.file = argv[++at];
        } else if (strcmp(o, "--pack-kallsyms") == 0) {
            packs.kallsyms = argv[++at];
        } else if (strcmp(o, "--also") == 0 && needed_count < MAX) {
            needed[needed_count++] = strtoull(argv[++at], NULL, 16);
        } else if (strcmp(o, "--range") == 0 && left >= 4 && k.range_count < 8) {
            struct sym_kernel_range *r = &ranges[k.range_count++];
            *r = (struct sym_kernel_range){.start = strtoull(argv[at + 1], NULL, 16),
                                           .end = strtoull(argv[at + 2], NULL, 16),
                                           .file_offset = strtoull(argv[at + 3], NULL, 16),
                                           .name = argv[at + 4]};
            at += 4;
        } else if (strcmp(o, "--ksymbol") == 0 && left >= 3 && k.ksymbol_count < 8) {
            ksymbols[k.ksymbol_count++] =
                (struct sym_ksymbol){.address = strtoull(argv[at + 1], NULL, 16),
                                     .length_bytes = strtoull(argv[at + 2], NULL, 16),
                                     .name = argv[at + 3]};
            at += 3;
        } else if (strcmp(o, "--module") == 0 && left >= 4) {
            m.start = strtoull(argv[at + 1], NULL, 16);
            m.end = strtoull(argv[at + 2], NULL, 16);
            m.path = argv[at + 3];
            m.build_id = module_id;
            m.build_id_size = parse_hex(argv[at + 4], module_id, sizeof(module_id));
            at += 4;
        } else {
            fprintf(stderr, "ask_kernel: %s?\n", o);
            return 2;
        }
    }
    for (int i = at; i < argc && needed_count < MAX; i++)
        needed[needed_count++] = strtoull(argv[i], NULL, 16);
    qsort(needed, needed_count, sizeof(*needed), compare);
    if (!whole) {
        k.needed = needed;
        k.needed_count = needed_count;
    }
    if (options.debug_dir_count == 0)
        options.debug_dirs = NULL;

    struct sym_context *c = sym_context_new();
    uint32_t module = SYM_NO_MODULE;
    int status = 0;
    int rc = c == NULL ? SYM_ERR_NOMEM : sym_context_open(c, &options);
    if (rc == 0 && capture != NULL)
        rc = sym_capture_begin(c, &(struct sym_capture){.size = sizeof(struct sym_capture),
                                                        .id = capture});
    if (rc == 0 && m.path != NULL)
        rc = sym_module_add(c, &m, &module);
    if (rc == 0) {
        rc = sym_kernel_load(c, &k);
        if (rc == SYM_ERR_NOT_FOUND || rc == SYM_ERR_FORMAT || rc == SYM_ERR_IO) {
            printf("warning %s\n", sym_context_error(c));
            rc = 0;
        }
    }
    for (; at < argc && query_count < MAX; at++) {
        uint64_t address = strtoull(argv[at], NULL, 16);
        queries[query_count++] = (struct sym_query){
            .module = module, .kernel = true, .abs = address, .rel = address - m.start, .time = 1};
    }
    for (size_t q = 0; rc == 0 && q < query_count; q++) {
        const struct sym_frame *f;
        size_t count;
        rc = sym_resolve(c, &queries[q], &f, &count);
        for (size_t i = 0; rc == 0 && i < count; i++)
            print_frame(queries[q].abs, &f[i]);
    }
    if (rc == 0)
        rc = pack(c, &packs, queries, query_count);
    if (rc == 0) {
        printf("state %s: %s\n", sym_kernel_state_text(sym_kernel_state(c)), sym_kernel_detail(c));
    } else {
        fprintf(stderr, "ask_kernel: %s\n", c != NULL ? sym_context_error(c) : sym_error_text(rc));
        status = 1;
    }
    sym_context_free(c);
    return status;
}
