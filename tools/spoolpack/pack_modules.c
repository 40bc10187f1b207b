/* SPDX-License-Identifier: MIT */
/* Packing the files that frames lie in: packed symbols, at level full the debug files too. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "pack_private.h"
#include "piece_name.h"
#include "progress.h"
#include "report.h"

/* Where the files of a build id are: ".build-id/xx/yyyy". */
static void append_base(struct text_buffer *out, const char *key)
{
    text_printf(out, ".build-id/%.2s/%s", key, key + 2);
}

/* ---- packed symbols ---- */

static int put_piece(struct packing *p, const char *key, const struct sym_packed *packed,
                     struct stored *out)
{
    struct text_buffer name = {0};
    char hex[PACK_HASH_SIZE];
    int rc;

    pack_hash_of(packed->data, packed->size_bytes, hex);
    append_base(&name, key);
    text_printf(&name, PIECE_FOLDER_END "/%.*s.%s", PIECE_DIGITS, hex,
                p->level == MANIFEST_NAMES ? "names" : "lines");
    rc = store_put(p->store, name.data, packed->data, packed->size_bytes, out);
    text_free(&name);
    return rc;
}

/* Looks for the file of modules with a recorded build id, if that was not done, and notes whether anything says that it
 * is the recorded one. 0, or -1 after an error message. */
static int verify(struct packing *p, const struct collected_file *f, struct manifest_module *m)
{
    for (size_t i = 0; i < f->module_id_count; i++) {
        struct sym_identity identity;
        uint32_t handle;

        if (symbols_module_handle(p->symbols, f->module_ids[i], &handle) < 0)
            return -1;
        if (sym_module_identity(symbols_context(p->symbols), handle, &identity) < 0)
            return pack_symbols_error(p);
        m->unverified |= identity.unverified;
    }
    return 0;
}

/* Packs what is new of the addresses. 0, or -1 after an error message. */
static int pack_symbols(struct packing *p, const struct collected_file *f,
                        struct manifest_module *m, bool *is_new)
{
    const struct sym_archive *const known[] = {p->known};
    struct sym_pack_options options = {
        .size = sizeof options,
        .level = p->level == MANIFEST_NAMES ? SYM_LEVEL_NAMES : SYM_LEVEL_LINES,
        .known = known,
        .known_count = p->known != NULL,
    };
    struct sym_packed packed = {0};
    struct stored stored;
    int rc;

    if (sym_pack_files(symbols_context(p->symbols), f->queries, f->query_count, &options, &packed) <
        0)
        return pack_symbols_error(p);
    m->address_count = packed.address_count;
    m->named_count = packed.named_count;
    rc = p->level == MANIFEST_FULL || packed.known_count < packed.address_count ? verify(p, f, m)
                                                                                : 0;
    if (rc == 0 && packed.data) { /* of unnamed ones it tells where their functions begin */
        rc = put_piece(p, f->key, &packed, &stored);
        *is_new |= rc == 0 && !stored.was_there;
    }
    free(packed.data);
    return rc;
}

/* All packed symbols of a build id: whoever has its names needs them all. */
static int add_pieces(struct packing *p, struct manifest_module *m)
{
    struct text_buffer name = {0};
    struct store_names names;
    size_t folder_size;
    int rc;

    append_base(&name, m->key);
    text_printf(&name, PIECE_FOLDER_END);
    rc = store_list(p->store, name.data, &names);
    text_append_byte(&name, '/');
    folder_size = name.size;
    for (size_t i = 0; i < names.count && rc == 0; i++) {
        const char *dot = strrchr(names.items[i], '.');

        if (!dot || (strcmp(dot, ".names") != 0 && strcmp(dot, ".lines") != 0))
            continue;
        name.size = folder_size;
        text_append(&name, names.items[i], strlen(names.items[i]));
        rc = pack_add_existing(p, &m->files, name.data);
    }
    store_free_names(&names);
    text_free(&name);
    return rc;
}

/* ---- whole files ---- */

static bool has_kind(const struct sym_file *files, int count, enum sym_file_kind kind)
{
    for (int i = 0; i < count; i++)
        if (files[i].kind == kind)
            return true;
    return false;
}

/* The name of a file in the store; false: it is not needed there, or could not be found again. */
static bool name_file(const struct packing *p, const struct collected_file *f,
                      const struct sym_file *files, int count, int index, struct text_buffer *name)
{
    const struct sym_file *file = &files[index];
    const char *detail;

    name->size = 0;
    switch (file->kind) {
    case SYM_FILE_PROGRAM:
        if (has_kind(files, count, SYM_FILE_DEBUG) ||
            sym_module_state(symbols_context(p->symbols), f->handle, &detail) != SYM_MISS_NONE)
            return false;
        break;
    case SYM_FILE_DEBUG:
    case SYM_FILE_PACKAGE:
        break;
    case SYM_FILE_SUPPLEMENTARY:
        if (file->build_id_size < 2)
            return false;
        text_printf(name, ".build-id/%02x/", file->build_id[0]);
        text_append_hex(name, file->build_id + 1, file->build_id_size - 1);
        text_append(name, ".debug", 6);
        return true;
    default:
        return false;
    }
    append_base(name, f->key);
    text_printf(name, ".debug%s", file->kind == SYM_FILE_PACKAGE ? ".dwp" : "");
    return true;
}

static int pack_debug_files(struct packing *p, const struct collected_file *f,
                            struct manifest_module *m, bool *is_new)
{
    struct sym_file files[SYM_FILES_MAX];
    int count = sym_module_files(symbols_context(p->symbols), f->handle, files, SYM_FILES_MAX),
        rc = 0;
    struct text_buffer name = {0};

    if (count < 0)
        return pack_symbols_error(p);
    for (int i = 0; i < count; i++) {
        struct stored stored;

        if (rc == 0 && name_file(p, f, files, count, i, &name)) {
            rc = store_put_file(p->store, name.data, files[i].fd, files[i].path, &stored);
            if (rc == 0) {
                pack_add_file(&m->files, name.data, &stored);
                *is_new |= !stored.was_there;
            }
        }
        close(files[i].fd);
        free(files[i].path);
    }
    text_free(&name);
    return rc;
}

static enum manifest_level level_of(const char *name)
{
    const char *end = strrchr(name, '.');

    if (!end)
        return MANIFEST_NOTHING;
    return strcmp(end, ".debug") == 0   ? MANIFEST_FULL
           : strcmp(end, ".lines") == 0 ? MANIFEST_LINES
           : strcmp(end, ".names") == 0 ? MANIFEST_NAMES
                                        : MANIFEST_NOTHING;
}

static enum manifest_level stored_level(const struct manifest_module *m)
{
    enum manifest_level most = MANIFEST_NOTHING;

    for (size_t i = 0; i < m->files.count; i++) {
        enum manifest_level level = level_of(m->files.items[i].name);

        most = level > most ? level : most;
    }
    return most;
}

/* ---- one file ---- */

/* What an earlier pack found, and this one did not. */
static int add_earlier(struct packing *p, struct manifest_module *m)
{
    const struct manifest_module *old = earlier_module(&p->earlier, m->path, m->build_id, m->key);
    int rc = 0;

    if (!old)
        return 0;
    if (!m->key) {
        m->key = pack_copy(old->key);
        m->unverified = true; /* the path alone says that it is the same file */
        m->named_count = old->named_count < m->address_count ? old->named_count : m->address_count;
        rc = add_pieces(p, m);
    }
    for (size_t i = 0; i < old->files.count && rc == 0; i++)
        rc = pack_add_existing(p, &m->files, old->files.items[i].name);
    return rc;
}

/* Why there are no names; malloc'ed. */
static char *why_missing(const struct packing *p, const struct collected_file *f)
{
    const char *detail, *why = symbols_miss_text(p->symbols, f->module_ids[0], &detail);

    if (!why)
        why = sym_miss_text(SYM_MISS_NO_SYMBOL);
    return pack_copy(*detail ? detail : why);
}

static void find_missing(struct packing *p, const struct collected_file *f,
                         struct manifest_module *m)
{
    const char *debug = symbols_debug_text(p->symbols, f->module_ids[0]);

    if (m->named_count == 0)
        m->missing = why_missing(p, f);
    else if (debug)
        m->missing = pack_copy(debug);
    else if (p->level == MANIFEST_FULL && f->hashed)
        m->missing = pack_copy("a file without a build id cannot be found again");
    else if (p->level == MANIFEST_FULL && m->level < MANIFEST_FULL)
        m->missing = pack_copy("no debug file");
}

static int pack_module(struct packing *p, const struct collected_file *f, struct manifest_module *m)
{
    bool is_new = false;
    int rc = 0;

    m->path = text_copy(f->path, f->path_size);
    m->build_id = *f->build_id ? pack_copy(f->build_id) : NULL;
    m->key = *f->key ? pack_copy(f->key) : NULL;
    m->unverified = f->unverified;
    m->module_ids = cli_realloc(NULL, f->module_id_count, sizeof *m->module_ids);
    memcpy(m->module_ids, f->module_ids, f->module_id_count * sizeof *m->module_ids);
    m->module_id_count = f->module_id_count;
    m->samples = f->samples;
    if (m->key) {
        /* First, for this makes pieces young: a prune that goes on takes none whose addresses are left out below. */
        rc = add_pieces(p, m);
        if (rc == 0)
            rc = pack_symbols(p, f, m, &is_new);
        if (rc == 0)
            rc = add_pieces(p, m);
        if (rc == 0 && p->level == MANIFEST_FULL && !f->hashed)
            rc = pack_debug_files(p, f, m, &is_new);
    } else {
        m->address_count = f->address_count;
    }
    if (rc == 0)
        rc = add_earlier(p, m);
    if (rc < 0)
        return -1;
    m->level = stored_level(m);
    find_missing(p, f, m);
    p->files_there += m->files.count > 0 && !is_new;
    return 0;
}

static void report_missing(struct packing *p, const struct collected_file *f,
                           const struct manifest_module *m)
{
    bool mapped = f->path_size > 0 && f->path[0] == '/'; /* not so: [vdso] */

    p->files.count += mapped;
    if (m->named_count > 0)
        return;
    p->files.missing += mapped;
    report_miss(&p->report, f->path, f->path_size, m->missing, m->missing, m->samples);
}

int pack_modules(struct packing *p)
{
    struct manifest *m = &p->manifest;

    m->modules = cli_zeroed(p->collected.file_count, sizeof *m->modules);
    for (size_t i = 0; i < p->collected.file_count; i++) {
        m->module_count++;
        progress_work("packing symbols of files", i, p->collected.file_count);
        if (pack_module(p, &p->collected.files[i], &m->modules[i]) < 0)
            return -1;
        report_missing(p, &p->collected.files[i], &m->modules[i]);
    }
    return 0;
}
