/* SPDX-License-Identifier: MIT */
/* The public API but for lookups (resolve.c): options, captures, kernel symbols, modules. */
#include "context.h"
#include "debuginfod.h"
#include "kernel_packed.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define MAX_FOLDERS 1024
#define MAX_DWARF_FILES 64
#define MAX_CAPTURE_ID 64

/* What debuginfod servers may take: libsym(3), "Debug information". */
static const struct symint_debuginfod_limits download_limits = {.file_ms = 10000, .run_ms = 30000};
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
    c->strings.seed = symint_random_seed();
    return c;
}

static void close_archives(struct sym_context *c)
{
    for (size_t i = 0; i < c->search.archive_count; i++)
        sym_archive_free(c->archives[i]);
    free(c->archives);
    c->archives = NULL;
    c->search.archive_count = 0;
}

void sym_context_free(struct sym_context *c)
{
    if (c == NULL)
        return;
    symint_processes_free(&c->processes);
    symint_registry_free(&c->registry);
    symint_debuginfod_free(c->debuginfod);
    symint_kernel_free(&c->kernel);
    symint_vmlinux_free(&c->vmlinux);
    symint_kmodules_free(&c->kmodules);
    symint_ksymbols_free(&c->ksymbols);
    symint_packed_set_free(&c->kernel_packed);
    free(c->kernel_pieces);
    symint_strings_free(&c->strings);
    close_archives(c);
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

/* Opens all of symbol_dirs. */
static int open_archives(struct sym_context *c, const struct sym_options *o)
{
    close_archives(c); /* of a call that failed */
    c->archives = calloc(o->symbol_dir_count + 1, sizeof(*c->archives));
    if (c->archives == NULL)
        return symint_fail_plain(c, SYM_ERR_NOMEM);
    c->search.archives = (const struct sym_archive *const *)c->archives;
    for (size_t i = 0; i < o->symbol_dir_count; i++) {
        struct sym_archive *a = sym_archive_new();
        if (a == NULL)
            return symint_fail_plain(c, SYM_ERR_NOMEM);
        int rc = sym_archive_open(a, o->symbol_dirs[i]);
        if (rc != 0) {
            symint_fail(c, rc, "%s", sym_archive_error(a));
            sym_archive_free(a);
            return rc;
        }
        c->archives[c->search.archive_count++] = a;
    }
    return 0;
}

/* Each file with debug information stays open: how many there may be. */
static uint32_t dwarf_limit(void)
{
    struct rlimit descriptors;
    if (getrlimit(RLIMIT_NOFILE, &descriptors) != 0 || descriptors.rlim_cur / 4 >= MAX_DWARF_FILES)
        return MAX_DWARF_FILES;
    return descriptors.rlim_cur >= 4 ? (uint32_t)(descriptors.rlim_cur / 4) : 1;
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
    if (rc == 0)
        rc = open_archives(c, &o);
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
    if (o.debuginfod && (c->debuginfod = symint_debuginfod_new(&download_limits)) == NULL)
        return symint_fail_plain(c, SYM_ERR_NOMEM);
    c->options = o;
    c->search = (struct symint_search_options){
        .sysroot = o.sysroot,
        .archives = c->search.archives,
        .archive_count = c->search.archive_count,
        .debug_dirs = o.debug_dirs,
        .debug_dir_count = o.debug_dir_count,
        .system = c->system,
        .debuginfod = c->debuginfod,
    };
    c->registry.memory_limit_bytes =
        o.memory_limit_bytes > 0 ? o.memory_limit_bytes : DEFAULT_MEMORY_LIMIT_BYTES;
    c->registry.dwarf_limit = dwarf_limit();
    c->open = true;
    return 0;
}

const char *sym_context_error(const struct sym_context *c)
{
    return c->error[0] != '\0' ? c->error : sym_error_text(0);
}

const struct sym_archive *sym_context_archive(const struct sym_context *c, size_t index)
{
    return index < c->search.archive_count ? c->archives[index] : NULL;
}

/* ---- captures ---- */

static bool is_capture_id(const char *id)
{
    size_t size = strspn(id, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_-");
    return size > 0 && size <= MAX_CAPTURE_ID && id[size] == '\0';
}

int sym_capture_begin(struct sym_context *c, const struct sym_capture *capture)
{
    struct sym_capture t;
    if (!c->open)
        return symint_fail(c, SYM_ERR_MISUSE, "the context is not open");
    if (capture == NULL || !copy_sized(&t, sizeof(t), capture, capture->size))
        return symint_fail(c, SYM_ERR_MISUSE, "no capture, or one of an unknown size");
    if (t.id != NULL && !is_capture_id(t.id))
        return symint_fail(c, SYM_ERR_MISUSE, "the id of a capture is no name for a folder");
    if (copy_option(c, &t.boot_id) != 0 || copy_option(c, &t.release) != 0 ||
        copy_option(c, &t.folder) != 0 || copy_option(c, &t.id) != 0)
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
    c->search.capture_id = t.id;
    return 0;
}

/* ---- kernel ---- */

static int check_kernel(struct sym_context *c, const struct sym_kernel *kernel,
                        struct sym_kernel *k)
{
    if (!c->open)
        return symint_fail(c, SYM_ERR_MISUSE, "the context is not open");
    if (kernel == NULL || !copy_sized(k, sizeof(*k), kernel, kernel->size))
        return symint_fail(c, SYM_ERR_MISUSE,
                           "no description of the kernel, or one of an unknown size");
    if ((k->needed == NULL && k->needed_count > 0) || (k->ranges == NULL && k->range_count > 0) ||
        (k->ksymbols == NULL && k->ksymbol_count > 0) ||
        (k->build_id == NULL && k->build_id_size > 0))
        return symint_fail(c, SYM_ERR_MISUSE,
                           "a description of the kernel has a count without a list");
    return 0;
}

/* What a file that the user named cannot be used for. */
static int fail_kernel(struct sym_context *c, int rc, const char *path, int error,
                       const char *format_text)
{
    if (symint_is_shortage(rc))
        return symint_fail_plain(c, rc);
    if (rc == SYM_ERR_FORMAT)
        return symint_fail(c, rc, "%s: %s", path, format_text);
    return symint_fail(c, rc, "%s: %s", path, error != 0 ? strerror(error) : "not a regular file");
}

int sym_kernel_load(struct sym_context *c, const struct sym_kernel *kernel)
{
    struct sym_kernel k;
    int error = 0;
    int vmlinux_error = 0;
    int vmlinux = 0;
    int rc = check_kernel(c, kernel, &k);
    if (rc != 0)
        return rc;
    symint_kernel_free(&c->kernel);
    symint_ksymbols_free(&c->ksymbols);
    c->kernel_state = SYM_KERNEL_NONE;
    c->kernel_generation++;
    symint_kmodules_begin(&c->kmodules, k.release, c->registry.memory_limit_bytes);
    rc = symint_ksymbols_build(&c->ksymbols, k.ksymbols, k.ksymbol_count);
    if (rc == 0)
        rc = symint_kernel_packed_load(c);
    if (rc == 0) {
        vmlinux =
            symint_vmlinux_find(&c->vmlinux, &c->strings.arena, &c->search, &k, &vmlinux_error);
        rc = symint_is_shortage(vmlinux) ? vmlinux : 0;
    }
    if (c->vmlinux.dwarf != NULL)
        symint_dwarf_limit(c->vmlinux.dwarf, c->registry.memory_limit_bytes);
    if (rc == 0)
        rc = symint_kernel_load(&c->kernel, &c->vmlinux, &k, &c->search, c->boot, c->system,
                                &c->kernel_state, &error);
    if (rc == 0)
        symint_kernel_packed_tell(c);
    if (symint_is_shortage(rc)) {
        symint_ksymbols_free(&c->ksymbols);
        c->kernel_state = SYM_KERNEL_NONE;
    }
    if (rc != 0)
        return fail_kernel(c, rc, k.kallsyms, error, "no line of it is a kernel symbol");
    if (vmlinux != 0)
        return fail_kernel(c, vmlinux, k.vmlinux, vmlinux_error, "not an ELF file");
    return 0;
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
        *detail = image != NULL ? image->detail : "";
    return image != NULL ? image->located.miss : SYM_MISS_NONE;
}

const char *sym_packed_fault(const struct sym_context *c, size_t index)
{
    return index < c->registry.fault_count ? c->registry.faults[index] : NULL;
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
