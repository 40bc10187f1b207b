/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as the manifest of a packed capture, as JSON, and as a spool that has the id of a capture. What was read
 * and written reads as the same; every text that is a manifest is one JSON value.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture_id.h"
#include "json_read.h"
#include "manifest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_files(const struct manifest_files *files)
{
    for (size_t i = 0; i < files->count; i++)
        if (!manifest_name_is_safe(files->items[i].name) || strlen(files->items[i].sha256) != 64)
            abort();
}

static void check(const struct manifest *m)
{
    if (m->capture == NULL || strlen(m->capture) != CAPTURE_ID_SIZE - 1)
        abort();
    check_files(&m->kernel_files);
    for (size_t i = 0; i < m->module_count; i++) {
        const struct manifest_module *module = &m->modules[i];

        check_files(&module->files);
        for (size_t k = 1; k < module->module_id_count; k++)
            if (module->module_ids[k - 1] >= module->module_ids[k])
                abort();
    }
    for (size_t i = 0; i < m->map_count; i++)
        check_files(&m->maps[i].files);
}

/* Whether it is one JSON value; tokens stay inside the text. */
static bool is_json(const char *text, size_t size)
{
    struct json_reader r;
    enum json_token token;

    json_read_start(&r, text, size);
    while ((token = json_read_next(&r)) > 0) {
        if (r.begin > r.at || r.at > size || r.depth > JSON_DEPTH_MAX)
            abort();
        if ((token == JSON_KEY || token == JSON_STRING) && r.string.data[r.string.size] != '\0')
            abort();
    }
    if (json_read_next(&r) != token || r.at > size || (token < 0) != (r.fault != NULL))
        abort();
    json_read_free(&r);
    return token == JSON_END;
}

/* A second reader skips the value as a whole, to the same verdict. */
static bool can_be_skipped(const char *text, size_t size)
{
    struct json_reader r;
    bool whole;

    json_read_start(&r, text, size);
    whole = json_read_skip(&r, json_read_next(&r)) && json_read_next(&r) == JSON_END;
    json_read_free(&r);
    return whole;
}

static void read_manifest(const char *text, size_t size)
{
    struct manifest m, again;
    struct text_buffer out = {0}, line = {0}, second = {0};
    const char *why = NULL;
    size_t offset = 0;

    if (manifest_read(text, size, &m, &why, &offset) != 0) {
        if (why == NULL || offset > size)
            abort();
        return;
    }
    check(&m);
    if (!is_json(text, size))
        abort();
    manifest_append(&m, &out);
    manifest_append_line(&m, "store\n\xff", &line);
    if (!is_json(out.data, out.size) || !is_json(line.data, line.size) ||
        memchr(line.data, '\n', line.size) != line.data + line.size - 1)
        abort();
    if (manifest_read(out.data, out.size, &again, &why, &offset) != 0)
        abort();
    manifest_append(&again, &second);
    if (out.size != second.size || memcmp(out.data, second.data, out.size) != 0)
        abort();
    manifest_free(&again);
    manifest_free(&m);
    text_free(&out);
    text_free(&line);
    text_free(&second);
}

/* Once there is an id it stays. */
static void read_id(const uint8_t *data, size_t size)
{
    struct spool_reader *r = spool_reader_new();
    struct spool_record rec;
    char id[CAPTURE_ID_SIZE] = "", first[CAPTURE_ID_SIZE] = "";

    if (r == NULL)
        abort();
    if (spool_reader_open_memory(r, data, size) == 0) {
        for (unsigned i = 0; i < 64 && spool_reader_next(r, &rec) > 0; i++) {
            if (!capture_id(r, id))
                continue;
            if (strspn(id, "0123456789abcdef") != CAPTURE_ID_SIZE - 1 ||
                (first[0] != '\0' && strcmp(first, id) != 0))
                abort();
            memcpy(first, id, sizeof id);
        }
    }
    spool_reader_free(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;

    if (is_json(text, size) != can_be_skipped(text, size))
        abort();
    read_manifest(text, size);
    read_id(data, size);
    return 0;
}
