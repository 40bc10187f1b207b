/* SPDX-License-Identifier: MIT */
/* The public API but for lookups (resolve.c): options, captures, kernel symbols, modules. */
#include "context.h"
#include "debuginfo.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#define MAX_FOLDERS 1024
#define DEFAULT_MEMORY_LIMIT_BYTES ((uint64_t)512 * 1024 * 1024)

int symint_fail(struct sym_context *c, int code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(c->error, sizeof(c->error), format, arguments);
    va_end(arguments);
    return code;
}

int symint_fail_plain(struct sym_context *c, int code)
{
    return symint_fail(c, code, "%s", sym_error_text(code));
}

/* Copies a struct of another version of the header: what it lacks is 0, what we do not know must
 * be 0. */
static bool copy_sized(void *to, size_t size, const void *from, size_t from_size)
{
    const unsigned char *bytes = from;
    if (from_size < sizeof(size_t))
        return false;
    for (size_t i = size; i < from_size; i++)
        if (bytes[i] != 0)
            return false;
    memset(to, 0, size);
    memcpy(to, from, from_size < size ? from_size : size);
    return true;
}

/* ---- lifetime ---- */

struct sym_context *sym_context_new(void)
{
    struct sym_context *c = calloc(1, sizeof(*c));
    if (c == NULL)
        return NULL;
    c->system = &symint_system;
    /* 16 bytes that the kernel drew for this process: nobody can prepare keys that collide in
     * our tables. */
    uintptr_t random = getauxval(AT_RANDOM);
    const void *bytes = NULL;
    memcpy(&bytes, &random, sizeof(bytes));
    if (bytes != NULL)
        memcpy(&c->strings.seed, bytes, sizeof(c->strings.seed));
    return c;
}

void sym_context_free(struct sym_context *c)
{
    if (c == NULL)
        return;
    symint_processes_free(&c->processes);
    symint_registry_free(&c->registry);
    symint_kernel_free(&c->kernel);
    symint_ksymbols_free(&c->ksymbols);
    symint_strings_free(&c->strings);
    free(c->pids);
    free(c->answers);
    free(c->native_frames);
    free(c);
}

int symint_compare_pids(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a;
    int32_t y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

static int copy_option(struct sym_context *c, const char **text)
{
    if (*text == NULL)
        return 0;
    *text = symint_arena_copy(&c->strings.arena, *text, strlen(*text));
    return *text == NULL ? SYM_ERR_NOMEM : 0;
}

static int copy_list(struct sym_context *c, const char *const **list, size_t count)
{
    const char **copy = symint_arena_alloc(&c->strings.arena, (count + 1) * sizeof(*copy));
    if (copy == NULL)
        return SYM_ERR_NOMEM;
    for (size_t i = 0; i < count; i++) {
        copy[i] = (*list)[i];
        if (copy_option(c, &copy[i]) != 0)
            return SYM_ERR_NOMEM;
    }
    *list = copy;
    return 0;
}

/* Checks and copies the lists of folders. */
static int copy_folders(struct sym_context *c, struct sym_options *o)
{
    if ((o->symbol_dir_count > 0 && o->symbol_dirs == NULL) ||
        (o->debug_dir_count > 0 && o->debug_dirs == NULL))
        return symint_fail(c, SYM_ERR_MISUSE, "a number of folders but no list of them");
    if (o->symbol_dir_count > MAX_FOLDERS || o->debug_dir_count > MAX_FOLDERS)
        return symint_fail(c, SYM_ERR_LIMIT, "more than %d folders", MAX_FOLDERS);
    if (copy_list(c, &o->symbol_dirs, o->symbol_dir_count) != 0 ||
        copy_list(c, &o->debug_dirs, o->debug_dir_count) != 0)
        return symint_fail_plain(c, SYM_ERR_NOMEM);
    return 0;
}

int sym_context_open(struct sym_context *c, const struct sym_options *options)
{
    if (c->open)
        return symint_fail(c, SYM_ERR_MISUSE, "the context is open already");
    struct sym_options o = {.size = sizeof(o)};
    if (options != NULL && !copy_sized(&o, sizeof(o), options, options->size))
        return symint_fail(c, SYM_ERR_MISUSE, "options of an unknown size: %zu bytes",
                           options->size);
    if (o.demangle > SYM_DEMANGLE_NONE || o.perf_maps > SYM_PERF_MAPS_LIST)
        return symint_fail(c, SYM_ERR_MISUSE, "an option has a value that does not exist");
    if (o.perf_map_pid_count > 0 && o.perf_map_pids == NULL)
        return symint_fail(c, SYM_ERR_MISUSE, "%zu process ids but no list of them",
                           o.perf_map_pid_count);
    if (o.sysroot != NULL && o.sysroot[0] == '\0')
        o.sysroot = NULL;
    if (copy_option(c, &o.sysroot) != 0 || copy_option(c, &o.perf_map_dir) != 0)
        return symint_fail_plain(c, SYM_ERR_NOMEM);
    int rc = copy_folders(c, &o);
    if (rc != 0)
        return rc;
    if (o.perf_map_pid_count > 0) {
        if (o.perf_map_pid_count > SIZE_MAX / sizeof(*c->pids))
            return symint_fail_plain(c, SYM_ERR_NOMEM);
        size_t size = o.perf_map_pid_count * sizeof(*c->pids);
        c->pids = malloc(size);
        if (c->pids == NULL)
            return symint_fail_plain(c, SYM_ERR_NOMEM);
        memcpy(c->pids, o.perf_map_pids, size);
        qsort(c->pids, o.perf_map_pid_count, sizeof(*c->pids), symint_compare_pids);
        o.perf_map_pids = c->pids;
    }
    c->options = o;
    c->search = (struct symint_search_options){
        .sysroot = o.sysroot,
        .symbol_dirs = o.symbol_dirs,
        .symbol_dir_count = o.symbol_dir_count,
        .debug_dirs = o.debug_dirs,
        .debug_dir_count = o.debug_dir_count,
        .system = c->system,
    };
    c->registry.memory_limit_bytes =
        o.memory_limit_bytes > 0 ? o.memory_limit_bytes : DEFAULT_MEMORY_LIMIT_BYTES;
    c->open = true;
    return 0;
}

const char *sym_context_error(const struct sym_context *c)
{
    return c->error[0] != '\0' ? c->error : sym_error_text(0);
}

/* ---- captures ---- */

int sym_capture_begin(struct sym_context *c, const struct sym_capture *capture)
{
    struct sym_capture t;
    if (!c->open)
        return symint_fail(c, SYM_ERR_MISUSE, "the context is not open");
    if (capture == NULL || !copy_sized(&t, sizeof(t), capture, capture->size))
        return symint_fail(c, SYM_ERR_MISUSE, "no capture, or one of an unknown size");
    if (copy_option(c, &t.boot_id) != 0 || copy_option(c, &t.release) != 0 ||
        copy_option(c, &t.folder) != 0)
        return symint_fail_plain(c, SYM_ERR_NOMEM);
    /* Process ids are a capture's own. */
    symint_processes_free(&c->processes);
    c->capture = t;
    c->capture_generation++;
    c->boot = symint_boot_compare(&t, c->system);
    c->live_pid = 0;
    c->search.boot = c->boot;
    c->search.boot_certain = t.boot_id != NULL;
    c->search.has_capture_time = t.has_start_time;
    c->search.capture_time_us = t.start_time_us;
    return 0;
}

/* ---- kernel ---- */

int sym_kernel_load(struct sym_context *c, const struct sym_kernel *kernel)
{
    struct sym_kernel k;
    int error;
    if (!c->open)
        return symint_fail(c, SYM_ERR_MISUSE, "the context is not open");
    if (kernel == NULL || !copy_sized(&k, sizeof(k), kernel, kernel->size))
        return symint_fail(c, SYM_ERR_MISUSE,
                           "no description of the kernel, or one of an unknown size");
    if ((k.needed == NULL && k.needed_count > 0) || (k.ranges == NULL && k.range_count > 0) ||
        (k.ksymbols == NULL && k.ksymbol_count > 0) || (k.build_id == NULL && k.build_id_size > 0))
        return symint_fail(c, SYM_ERR_MISUSE,
                           "a description of the kernel has a count without a list");
    symint_kernel_free(&c->kernel);
    symint_ksymbols_free(&c->ksymbols);
    c->kernel_state = SYM_KERNEL_NONE;
    c->kernel_generation++;
    int rc = symint_ksymbols_build(&c->ksymbols, k.ksymbols, k.ksymbol_count);
    if (rc == 0)
        rc = symint_kernel_load(&c->kernel, &k, &c->options, c->boot, c->system, &c->kernel_state,
                                &error);
    switch (rc) {
    case 0:
        return 0;
    case SYM_ERR_NOMEM:
        symint_ksymbols_free(&c->ksymbols);
        c->kernel_state = SYM_KERNEL_NONE;
        return symint_fail_plain(c, rc);
    case SYM_ERR_FORMAT:
        return symint_fail(c, rc, "%s: no line of it is a kernel symbol", k.kallsyms);
    default:
        return symint_fail(c, rc, "%s: %s", k.kallsyms,
                           error != 0 ? strerror(error) : "not a regular file");
    }
}

enum sym_kernel_state sym_kernel_state(const struct sym_context *c)
{
    return c->kernel_state;
}

const char *sym_kernel_detail(const struct sym_context *c)
{
    return c->kernel.detail;
}

/* ---- modules ---- */

int sym_module_add(struct sym_context *c, const struct sym_module *module, uint32_t *handle)
{
    struct sym_module m;
    if (!c->open)
        return symint_fail(c, SYM_ERR_MISUSE, "the context is not open");
    if (module == NULL || handle == NULL || !copy_sized(&m, sizeof(m), module, module->size))
        return symint_fail(c, SYM_ERR_MISUSE, "no module, or one of an unknown size");
    struct symint_live nobody = {0};
    bool ask = m.pid > 0 && !m.kernel && c->boot == SYMINT_BOOT_SAME && !c->options.no_native;
    if (ask && m.pid != c->live_pid) {
        symint_live_read(c->system, &c->capture, c->boot, m.pid, &c->live);
        c->live_pid = m.pid;
    }
    int rc = symint_registry_add(&c->registry, &c->strings, &m, ask ? &c->live : &nobody,
                                 c->boot == SYMINT_BOOT_SAME ? c->capture_generation : 0, handle);
    return rc == 0 ? 0 : symint_fail_plain(c, rc);
}

enum sym_miss sym_module_state(const struct sym_context *c, uint32_t handle, const char **detail)
{
    const struct symint_image *image = NULL;
    if (handle < c->registry.count)
        image = c->registry.files[c->registry.modules[handle].file]->image;
    if (detail != NULL)
        *detail = image != NULL ? image->located.detail : "";
    return image != NULL ? image->located.miss : SYM_MISS_NONE;
}

int sym_module_invalidate(struct sym_context *c, uint32_t handle)
{
    if (handle >= c->registry.count)
        return symint_fail(c, SYM_ERR_MISUSE, "module %u of %u", handle, c->registry.count);
    symint_file_invalidate(&c->registry, c->registry.files[c->registry.modules[handle].file]);
    return 0;
}

uint64_t sym_context_table_bytes(const struct sym_context *c)
{
    return c->registry.table_bytes;
}
