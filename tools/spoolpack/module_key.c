/* SPDX-License-Identifier: MIT */
/*
 * The recorded build id, else that of the file that was found, else the first 40 digits of the file's hash. A file is
 * hashed once, however many processes have mapped it.
 */
#include "module_key.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"
#include "store_private.h"

#define HASHED_KEY_DIGITS 40

struct hashed_file {
    struct stat status;
    char key[HASHED_KEY_DIGITS + 1];
};

struct module_keys {
    struct symbols *symbols;
    struct hashed_file *files;
    size_t count;
};

struct module_keys *module_keys_new(struct symbols *symbols)
{
    struct module_keys *k = cli_zeroed(1, sizeof *k);

    k->symbols = symbols;
    return k;
}

void module_keys_free(struct module_keys *k)
{
    if (!k)
        return;
    free(k->files);
    free(k);
}

static bool is_same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static int hash_file(struct module_keys *k, const struct sym_file *file, char *key)
{
    struct store_source source = {.fd = file->fd, .path = file->path};
    struct hashed_file *h;
    struct stat status;
    char hex[PACK_HASH_SIZE];

    if (fstat(file->fd, &status) != 0)
        return 0;
    for (size_t i = 0; i < k->count; i++) {
        if (is_same_file(&k->files[i].status, &status)) {
            strcpy(key, k->files[i].key);
            return 0;
        }
    }
    source.size_bytes = (uint64_t)status.st_size;
    if (store_hash(&source, hex) < 0)
        return -1;
    k->files = cli_realloc(k->files, k->count + 1, sizeof *k->files);
    h = &k->files[k->count++];
    h->status = status;
    memcpy(h->key, hex, HASHED_KEY_DIGITS);
    h->key[HASHED_KEY_DIGITS] = '\0';
    strcpy(key, h->key);
    return 0;
}

/* The key of a file without a build id; "" when there is no file. */
static int find_hash(struct module_keys *k, uint32_t handle, struct collected_file *out)
{
    struct sym_file files[SYM_FILES_MAX];
    int count = sym_module_files(symbols_context(k->symbols), handle, files, SYM_FILES_MAX), rc = 0;

    if (count < 0) {
        cli_error("symbols: %s", sym_context_error(symbols_context(k->symbols)));
        return -1;
    }
    for (int i = 0; i < count; i++) {
        if (rc == 0 && files[i].kind == SYM_FILE_PROGRAM)
            rc = hash_file(k, &files[i], out->key);
        close(files[i].fd);
        free(files[i].path);
    }
    out->hashed = out->key[0] != '\0';
    return rc;
}

int module_key_find(struct module_keys *k, const struct spool_module *module,
                    const struct notes *notes, struct collected_file *out)
{
    struct sym_context *context = symbols_context(k->symbols);
    struct sym_identity identity;
    size_t size;
    const uint8_t *recorded = notes_build_id(notes, module->id, &size);

    out->path = module->path;
    out->path_size = module->path_size;
    if (symbols_module_handle(k->symbols, module->id, &out->handle) < 0)
        return -1;
    /* The first byte names a folder, the others what is in it. */
    if (recorded && size > 1) {
        text_write_hex(out->build_id, recorded, size);
        strcpy(out->key, out->build_id);
        return 0; /* the file may not be needed */
    }
    if (sym_module_identity(context, out->handle, &identity) < 0) {
        cli_error("symbols: %s", sym_context_error(context));
        return -1;
    }
    out->unverified = identity.unverified;
    if (identity.build_id_size <= 1)
        return find_hash(k, out->handle, out);
    text_write_hex(out->key, identity.build_id, identity.build_id_size);
    return 0;
}
