/* SPDX-License-Identifier: MIT */
/* Manifests: what is written is read back; what others wrote is not trusted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "manifest.h"

#define SHA "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define CAPTURE "0123456789abcdef0123456789abcdef"
#define SPOOL "\"spool\":{\"sha256\":\"" SHA "\"}"
#define HEAD "{\"version\":1,\"capture\":\"" CAPTURE "\",\"level\":\"lines\"," SPOOL

static struct manifest_file file_made(const char *name)
{
    struct manifest_file f = {.name = strdup(name), .size_bytes = UINT64_MAX};

    memcpy(f.sha256, SHA, sizeof f.sha256);
    return f;
}

static struct manifest_files files_made(const char *a, const char *b)
{
    struct manifest_files f = {.items = calloc(2, sizeof *f.items), .count = b ? 2 : 1};

    assert_non_null(f.items);
    f.items[0] = file_made(a);
    if (b)
        f.items[1] = file_made(b);
    return f;
}

static void fill(struct manifest *m)
{
    *m = (struct manifest){.capture = strdup(CAPTURE),
                           .spool_name = strdup("a \"b\"\n.spool"),
                           .spool_bytes = 12345,
                           .samples = 678,
                           .start_us = 1700000000000000,
                           .host = strdup("Linux 6.1.0 x86_64 h\xc3\xb6st"),
                           .kernel_release = strdup("6.1.0"),
                           .packed_at = strdup("2026-11-30T13:45:00Z"),
                           .level = MANIFEST_FULL,
                           .kernel_address_count = 9,
                           .kernel_named_count = 8};
    memcpy(m->spool_sha256, SHA, sizeof m->spool_sha256);
    m->modules = calloc(2, sizeof *m->modules);
    m->maps = calloc(2, sizeof *m->maps);
    assert_true(m->modules && m->maps);
    m->module_count = m->map_count = 2;
    m->modules[0] = (struct manifest_module){.path = strdup("/usr/bin/foo (deleted)"),
                                             .build_id = strdup("abcd"),
                                             .key = strdup("abcd"),
                                             .level = MANIFEST_FULL,
                                             .unverified = true,
                                             .module_ids = calloc(3, sizeof(uint32_t)),
                                             .module_id_count = 3,
                                             .samples = 5,
                                             .address_count = 4,
                                             .named_count = 3,
                                             .missing = strdup("no lines")};
    memcpy(m->modules[0].module_ids, (uint32_t[]){0, 7, UINT32_MAX - 1}, 12);
    m->modules[0].files =
        files_made(".build-id/ab/cd.syms/01.lines", ".build-id/ab/cd.syms/02.names");
    m->modules[1] = (struct manifest_module){.missing = strdup("no such file")};
    m->maps[0] = (struct manifest_map){.pid = INT32_MAX, .address_count = 1};
    m->maps[0].files = files_made("captures/" CAPTURE "/perf-2147483647.map", NULL);
    m->maps[1] = (struct manifest_map){.pid = -1, .missing = strdup("gone")};
    m->kernel_files = files_made("captures/" CAPTURE "/kernel.syms", NULL);
}

static void assert_read(const char *text, struct manifest *m)
{
    const char *why = "";
    size_t offset = 0;

    if (manifest_read(text, strlen(text), m, &why, &offset) != 0)
        fail_msg("byte %zu: %s", offset, why);
}

static void what_is_written_is_read_back(void **state)
{
    struct manifest m, again;
    struct text_buffer first = {0}, second = {0};

    (void)state;
    fill(&m);
    manifest_append(&m, &first);
    assert_read(first.data, &again);
    manifest_append(&again, &second);
    assert_string_equal(first.data, second.data);
    assert_string_equal(again.spool_name, m.spool_name);
    assert_string_equal(again.host, m.host);
    assert_null(again.boot_id);
    assert_int_equal(again.level, MANIFEST_FULL);
    assert_int_equal(again.module_count, 2);
    assert_int_equal(again.modules[0].level, MANIFEST_FULL);
    assert_true(again.modules[0].unverified);
    assert_int_equal(again.modules[0].module_id_count, 3);
    assert_int_equal(again.modules[0].module_ids[2], UINT32_MAX - 1);
    assert_int_equal(again.modules[0].files.count, 2);
    assert_true(again.modules[0].files.items[1].size_bytes == UINT64_MAX);
    assert_string_equal(again.modules[0].files.items[1].name, ".build-id/ab/cd.syms/02.names");
    assert_null(again.modules[1].key);
    assert_null(again.modules[1].path);
    assert_string_equal(again.modules[1].missing, "no such file");
    assert_int_equal(again.maps[0].pid, INT32_MAX);
    assert_int_equal(again.maps[1].pid, -1);
    assert_int_equal(again.kernel_files.count, 1);
    text_free(&first);
    text_free(&second);
    manifest_free(&again);
    manifest_free(&m);
    assert_null(m.modules);
}

static void it_looks_like_this(void **state)
{
    struct manifest m = {.level = MANIFEST_LINES};
    struct text_buffer out = {0};

    (void)state;
    m.capture = strdup(CAPTURE);
    memcpy(m.spool_sha256, SHA, sizeof m.spool_sha256);
    m.kernel_files = files_made("captures/" CAPTURE "/kernel.syms", NULL);
    m.kernel_files.items[0].size_bytes = 3;
    manifest_append(&m, &out);
    assert_string_equal(out.data, "{\n"
                                  "  \"version\": 1,\n"
                                  "  \"capture\": \"" CAPTURE "\",\n"
                                  "  \"packed_at\": null,\n"
                                  "  \"level\": \"lines\",\n"
                                  "  \"spool\": {\n"
                                  "    \"name\": null,\n"
                                  "    \"sha256\": \"" SHA "\",\n"
                                  "    \"bytes\": 0,\n"
                                  "    \"samples\": 0,\n"
                                  "    \"start_us\": 0\n"
                                  "  },\n"
                                  "  \"machine\": {\n"
                                  "    \"host\": null,\n"
                                  "    \"kernel_release\": null,\n"
                                  "    \"kernel_build_id\": null,\n"
                                  "    \"boot_id\": null\n"
                                  "  },\n"
                                  "  \"modules\": [],\n"
                                  "  \"perf_maps\": [],\n"
                                  "  \"kernel\": {\n"
                                  "    \"addresses\": 0,\n"
                                  "    \"named\": 0,\n"
                                  "    \"files\": [\n"
                                  "      {\"name\": \"captures/" CAPTURE
                                  "/kernel.syms\", \"bytes\": 3, \"sha256\": \"" SHA "\"}\n"
                                  "    ],\n"
                                  "    \"missing\": null\n"
                                  "  }\n"
                                  "}\n");
    out.size = 0;
    manifest_append_line(&m, "a.json", &out);
    assert_null(strpbrk(out.data, " "));
    assert_ptr_equal(strchr(out.data, '\n'), out.data + out.size - 1);
    assert_memory_equal(out.data, "{\"file\":\"a.json\",\"version\":1,", 29);
    text_free(&out);
    manifest_free(&m);
}

static void unknown_keys_are_left_out(void **state)
{
    struct manifest m;

    (void)state;
    assert_read(
        HEAD ",\"new\":{\"version\":[1.5,{\"a\":null}]},\"modules\":[{\"path\":\"\",\"x\":-1e9}]}",
        &m);
    assert_int_equal(m.module_count, 1);
    manifest_free(&m);
}

static void what_is_no_manifest_is_refused_with_its_byte(void **state)
{
    static const struct {
        const char *text;
        const char *at; /* what stands at the byte at fault */
        const char *why;
    } cases[] = {
        {"", "", "it ends too early"},
        {"[]", "[]", "an object is wanted here"},
        {"{}", "}", "the object that ends here lacks a key"},
        {HEAD "} x", "x", "something follows the value"},
        {HEAD ",\"version\":1}", "\"version\":1}", "a key that was there before"},
        {"{\"version\":2}", "2}", "a version of the manifest that is not known here"},
        {"{\"version\":-1}", "-1}", "not a number as it is wanted here"},
        {"{\"capture\":\"../../etc\"}", "\"../", "not the id of a capture"},
        {"{\"capture\":null}", "null}", "a text is wanted here"},
        {"{\"level\":\"all\"}", "\"all\"}", "not a level"},
        {"{\"spool\":{\"sha256\":\"12\"}}", "\"12\"}}", "not a SHA-256"},
        {"{\"spool\":{\"name\":\"a\\u0000b\"}}", "\"a\\u0000b\"}}", "a NUL in a text"},
        {"{\"modules\":{}}", "{}}", "a list is wanted here"},
        {"{\"modules\":[{\"path\":null},1]}", "1]}", "an object is wanted here"},
        {"{\"modules\":[{}]}", "}]}", "the object that ends here lacks a key"},
        {"{\"modules\":[{\"key\":\"abc\"}]}", "\"abc\"}]}", "not a build id"},
        {"{\"modules\":[{\"key\":\"\"}]}", "\"\"}]}", "not a build id"},
        {"{\"modules\":[{\"key\":\"..\"}]}", "\"..\"}]}", "not a build id"},
        {"{\"modules\":[{\"samples\":1.5}]}", "1.5}]}", "not a number as it is wanted here"},
        {"{\"modules\":[{\"module_ids\":[2,2]}]}", "2]}]}", "module ids are not ascending"},
        {"{\"modules\":[{\"module_ids\":[4294967295]}]}", "4294967295]}]}",
         "not a number as it is wanted here"},
        {"{\"modules\":[{\"unverified\":1}]}", "1}]}", "true or false is wanted here"},
        {"{\"perf_maps\":[{\"pid\":2147483648}]}", "2147483648}]}", "not a process id"},
        {"{\"perf_maps\":[{\"pid\":1,\"files\":[{\"name\":\"a\"}]}]}", "}]}]}",
         "the object that ends here lacks a key"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct manifest m;
        const char *why = NULL;
        size_t offset = 0;

        assert_int_equal(manifest_read(cases[i].text, strlen(cases[i].text), &m, &why, &offset),
                         -1);
        assert_string_equal(why, cases[i].why);
        assert_int_equal(strncmp(cases[i].text + offset, cases[i].at, strlen(cases[i].at)), 0);
        assert_null(m.modules);
    }
}

static void names_of_files_do_not_lead_out(void **state)
{
    static const char *const bad[] = {"",     "/a",     "a/",  "a//b", ".",     "..",
                                      "../a", "a/../b", "./a", "a/.",  "a/./b", "a/.."};
    static const char *const good[] = {"a", "a/b", "..a/b..", "...", ".build-id/ab/cd.debug"};

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char text[128];
        const char *why = NULL;
        size_t offset;
        struct manifest m;

        assert_false(manifest_name_is_safe(bad[i]));
        snprintf(text, sizeof text, "{\"kernel\":{\"files\":[{\"name\":\"%s\"}]}}", bad[i]);
        assert_int_equal(manifest_read(text, strlen(text), &m, &why, &offset), -1);
        assert_string_equal(why, "the name of a file that is not in the archive");
    }
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_true(manifest_name_is_safe(good[i]));
}

/* And with a byte changed it is refused or read; the sanitizers watch. */
static void a_manifest_cut_anywhere_is_refused(void **state)
{
    struct manifest m, again;
    struct text_buffer whole = {0};
    const char *why;
    size_t offset;

    (void)state;
    fill(&m);
    manifest_append(&m, &whole);
    manifest_free(&m);
    for (size_t size = 0; size + 1 < whole.size; size++) { /* the last is the line break */
        char *cut = malloc(size > 0 ? size : 1);

        assert_non_null(cut);
        memcpy(cut, whole.data, size);
        assert_int_equal(manifest_read(cut, size, &again, &why, &offset), -1);
        assert_true(offset <= size && *why);
        free(cut);
    }
    for (size_t i = 0; i < whole.size; i++) {
        char byte = whole.data[i];

        whole.data[i] = (char)(i % 3 == 0 ? byte ^ 0x80 : i % 3 == 1 ? '"' : byte + 1);
        if (manifest_read(whole.data, whole.size, &again, &why, &offset) == 0)
            manifest_free(&again);
        whole.data[i] = byte;
    }
    text_free(&whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read_back),
        cmocka_unit_test(it_looks_like_this),
        cmocka_unit_test(unknown_keys_are_left_out),
        cmocka_unit_test(what_is_no_manifest_is_refused_with_its_byte),
        cmocka_unit_test(names_of_files_do_not_lead_out),
        cmocka_unit_test(a_manifest_cut_anywhere_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
