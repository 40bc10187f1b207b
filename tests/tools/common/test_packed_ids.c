/* SPDX-License-Identifier: MIT */
/* Build ids from the manifests of a capture: whom to believe, and what a damaged one costs. */
#include "../spool2folded/make_spool.h"

#include "cli.h"
#include "manifests.h"
#include "packed_ids.h"

#include <sys/stat.h>

#define CAPTURE "0123456789abcdef0123456789abcdef"
#define OTHER "fedcba9876543210fedcba9876543210"
#define SHA "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

static char folder[64];

static void make(const char *name)
{
    char path[256];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_int_equal(mkdir(path, 0700), 0);
}

static void put(const char *name, const char *capture, const char *modules)
{
    char path[256];
    FILE *f;

    snprintf(path, sizeof path, "%s/%s", folder, name);
    f = fopen(path, "w");
    assert_non_null(f);
    fprintf(
        f,
        "{\"version\": 1, \"capture\": \"%s\", \"level\": \"lines\", \"spool\": {\"sha256\": \"" SHA
        "\"}, \"modules\": [%s]}\n",
        capture, modules);
    assert_int_equal(fclose(f), 0);
}

static int make_archives(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/test_packed_ids.XXXXXX");
    if (mkdtemp(folder) == NULL)
        return -1;
    make("a");
    make("a/captures");
    make("a/captures/" CAPTURE);
    make("b");
    make("b/captures");
    make("b/captures/" CAPTURE);
    put("a/captures/" CAPTURE "/manifest-1.json", CAPTURE,
        "{\"path\": \"/x\", \"key\": \"0a1b\", \"unverified\": true, \"module_ids\": [3, 5]},"
        "{\"path\": \"/y\", \"build_id\": \"11\", \"key\": \"11\", \"module_ids\": [4]},"
        "{\"path\": \"/z\", \"key\": null, \"module_ids\": [7]}");
    put("a/captures/" CAPTURE "/manifest-2.json", OTHER, "");
    put("a/captures/" CAPTURE "/manifest-3.json", CAPTURE, "{\"path\": 1}");
    put("b/captures/" CAPTURE "/manifest-1.json", CAPTURE,
        "{\"path\": \"/x\", \"key\": \"0c\", \"module_ids\": [5, 4294967294]},"
        "{\"path\": \"/x\", \"key\": \"0d\", \"unverified\": true, \"module_ids\": [3]}");
    return 0;
}

static int remove_archives(void **state)
{
    char command[128];

    (void)state;
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}

static void assert_id(const struct packed_ids *p, uint32_t module, uint8_t last, bool unverified)
{
    const struct packed_id *id = packed_ids_find(p, module);

    assert_non_null(id);
    assert_int_equal(id->bytes[id->size_bytes - 1], last);
    assert_int_equal(id->unverified, unverified);
}

static void a_verified_one_is_believed_then_the_first(void **state)
{
    char a[80], b[80], expected[1024];
    const char *paths[2] = {a, b};
    char *said;
    struct text_list archives = {.items = paths, .count = 2};
    struct sym_options options = {
        .size = sizeof options, .symbol_dirs = archives.items, .symbol_dir_count = 2};
    struct sym_context *c = sym_context_new();
    struct packed_ids *p;
    struct capture stderr_of;

    (void)state;
    snprintf(a, sizeof a, "%s/a", folder);
    snprintf(b, sizeof b, "%s/b", folder);
    assert_int_equal(sym_context_open(c, &options), 0);
    capture_begin(&stderr_of);
    p = packed_ids_read(c, &archives, CAPTURE);
    said = capture_end(&stderr_of);
    snprintf(expected, sizeof expected,
             "%s: %s: captures/" CAPTURE "/manifest-2.json: it is of capture " OTHER
             "; it is not used\n"
             "%s: %s: captures/" CAPTURE "/manifest-3.json: byte %zu: a text is wanted here"
             "; it is not used\n",
             cli_program(), a, cli_program(), a,
             strlen("{\"version\": 1, \"capture\": \"" CAPTURE
                    "\", \"level\": \"lines\", \"spool\": {\"sha256\": \"" SHA
                    "\"}, \"modules\": [{\"path\": "));
    assert_string_equal(said, expected);
    free(said);
    assert_id(p, 3, 0x1b, true); /* the first of two that are not */
    assert_int_equal(packed_ids_find(p, 3)->size_bytes, 2);
    assert_id(p, 5, 0x0c, false);
    assert_id(p, UINT32_MAX - 1, 0x0c, false);
    assert_null(packed_ids_find(p, 4)); /* the spool has its build id */
    assert_null(packed_ids_find(p, 7));
    assert_null(packed_ids_find(p, 6));
    packed_ids_free(p);
    assert_null(packed_ids_read(c, &archives, OTHER));
    assert_null(packed_ids_find(NULL, 3));
    packed_ids_free(NULL);
    sym_context_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_verified_one_is_believed_then_the_first),
    };

    return cmocka_run_group_tests(tests, make_archives, remove_archives);
}
