/* SPDX-License-Identifier: MIT */
/*
 * Every check of every record in the order of its fields: a row's bytes end with the field that
 * decides, so that each shorter piece must be short and nothing behind it may matter. And decoders
 * against encoders on random records.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "record.h"
#include "spool_bytes.h"
#include "table.h"

#define OFFSET 100 /* where records stand in these tests; messages count from it */

#define V1 (1u << 1)
#define V2 (1u << 2)
#define V3 (1u << 3)
#define V4 (1u << 4)
#define V123 (V1 | V2 | V3)
#define ALL (V123 | V4)

#define OK DECODE_OK
#define BAD SPOOL_ERR_CORRUPT
#define LIMIT DECODE_TOO_LONG

#define OVER "80 80 80 80 80 80 80 80 80 02" /* 2^64 */
#define TWO_32 "80 80 80 80 10"              /* 2^32, as a signed number 2^31 */
#define NONE "ff ff ff ff 0f"                /* 2^32 - 1 */
#define MAX "ff ff ff ff ff ff ff ff ff 01"  /* 2^64 - 1 */

struct row {
    unsigned versions;
    const char *hex;
    int expected;
    const char *text; /* behind "NAME record at byte 100 "; all of the text when it begins so */
};

/* 5 modules, 3 frames, 2 stack nodes, 2 threads, 4 samples of which the last stands at 1000 ns. */
static void init_table(struct table *t, uint32_t version)
{
    static const struct spool_module modules[] = {
        {.id = 0, .pid = 7, .start = 0x1000, .end = 0x2000, .file_offset = 0x100},
        {.id = 1, .pid = -1, .start = UINT64_MAX - 0xfff, .end = UINT64_MAX, .kernel = true},
        {.id = 2, .pid = 7, .start = 0x5000, .end = 0x4000},
        {.id = 3, .pid = 7, .start = 0x6000, .end = 0x6000},
        {.id = 4, .pid = 8, .start = 0, .end = UINT64_MAX},
    };
    struct spool_frame frame = {.kind = SPOOL_FRAME_UNPINNED, .module_id = SPOOL_NO_ID};
    struct spool_stack root = {.prefix = SPOOL_NO_ID, .depth = 1};
    struct spool_stack leaf = {.id = 1, .prefix = 0, .frame = 1, .depth = 2};

    spoolint_table_init(t);
    t->version = version;
    for (size_t i = 0; i < sizeof modules / sizeof modules[0]; i++) {
        struct spool_record rec = {.type = SPOOL_RECORD_MODULE, .module = modules[i]};

        rec.module.path = "/p";
        rec.module.path_size = 2;
        rec.module.retired_at_frame = SPOOL_NOT_RETIRED;
        assert_int_equal(spoolint_table_add_module(t, &rec), 0);
    }
    for (; frame.id < 3; frame.id++)
        assert_int_equal(spoolint_table_add_frame(t, &frame), 0);
    assert_int_equal(spoolint_table_add_stack(t, &root), 0);
    assert_int_equal(spoolint_table_add_stack(t, &leaf), 0);
    for (uint32_t i = 0; i < 2; i++)
        assert_int_equal(
            spoolint_table_add_thread(t, &(struct spool_thread){.id = i, .pid = 7, .tid = 11 + i}),
            0);
    t->sample_count = 4;
    t->first_time_ns = 900;
    t->time_ns = 1000;
}

struct decoded {
    int rc;
    size_t used;
    struct spool_record rec;
    uint64_t needed_bytes;
    struct error_state error;
    struct jit_scratch jit; /* holds the symbols of rec */
};

static void decode(struct decoded *d, const struct table *t, const void *data, size_t size,
                   uint64_t offset_bytes)
{
    const uint8_t *p = data;
    struct cursor c = {.at = p, .end = p + size};

    memset(d, 0, sizeof *d);
    d->rc =
        spoolint_record_decode(&c, offset_bytes, t, &d->jit, &d->rec, &d->needed_bytes, &d->error);
    d->used = (size_t)(c.at - p);
}

static void decoded_free(struct decoded *d)
{
    free(d->jit.symbols);
}

static void assert_decodes(const struct table *t, const void *data, size_t size, int expected,
                           const char *text)
{
    struct decoded d;
    /* A block of its own size, so that a sanitizer sees a byte read behind it. */
    uint8_t *exact = malloc(size > 0 ? size : 1);

    assert_non_null(exact);
    memcpy(exact, data, size);
    decode(&d, t, exact, size, OFFSET);
    if (d.rc != expected)
        fail_msg("got %d (%s) instead of %d", d.rc, spoolint_error_get(&d.error), expected);
    assert_int_equal(d.error.code, expected < 0 ? expected : 0);
    assert_string_equal(spoolint_error_get(&d.error), text ? text : "no error");
    if (expected == OK)
        assert_int_equal(d.used, size);
    decoded_free(&d);
    free(exact);
}

static void check_row(const struct row *row, const char *name, uint32_t version)
{
    struct bytes b = {0};
    char text[300];
    size_t decisive;
    struct table t;

    init_table(&t, version);
    bytes_hex(&b, row->hex);
    decisive = b.size;
    if (row->text && strncmp(row->text, "record at", 9) != 0)
        snprintf(text, sizeof text, "%s record at byte %d %s", name, OFFSET, row->text);
    else if (row->text)
        snprintf(text, sizeof text, row->text, version);
    for (size_t cut = 0; cut < decisive; cut++)
        assert_decodes(&t, b.data, cut, DECODE_SHORT, NULL);
    assert_decodes(&t, b.data, decisive, row->expected, row->text ? text : NULL);
    if (row->expected < 0) { /* what comes behind does not matter */
        for (unsigned fill = 0; fill < 256; fill += 85) {
            for (size_t i = 0; i < 40; i++)
                bytes_byte(&b, fill);
            assert_decodes(&t, b.data, b.size, row->expected, text);
            b.size = decisive;
        }
    }
    bytes_free(&b);
    spoolint_table_free(&t);
}

static void check_rows(const struct row *rows, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++) {
        for (uint32_t version = 1; version <= 4; version++) {
            if (rows[i].versions >> version & 1) {
                /* On standard error: cmocka says which test failed, this which row. */
                if (getenv("TEST_VERBOSE"))
                    fprintf(stderr, "version %u: %s\n", version, rows[i].hex);
                check_row(&rows[i], name, version);
            }
        }
    }
}

#define CHECK(name, ...)                                         \
    do {                                                         \
        static const struct row rows_[] = {__VA_ARGS__};         \
        check_rows(rows_, sizeof rows_ / sizeof rows_[0], name); \
    } while (0)

/* ---- tags ---- */

static void a_tag_is_judged_before_anything_behind_it(void **state)
{
    struct bytes b = {0};
    struct table t;
    char text[100];

    (void)state;
    for (uint32_t version = 1; version <= 4; version++) {
        init_table(&t, version);
        for (unsigned tag = 0; tag < 256; tag++) {
            unsigned last = version == 1 ? 7 : version < 4 ? 8 : 9;

            b.size = 0;
            bytes_byte(&b, tag);
            if (tag >= 1 && tag <= last) {
                assert_decodes(&t, b.data, 1, DECODE_SHORT, NULL);
                continue;
            }
            snprintf(text, sizeof text,
                     "record at byte 100 has tag %u, which version %u does not have", tag, version);
            assert_decodes(&t, b.data, 1, BAD, text);
            for (unsigned i = 0; i < 63; i++)
                bytes_byte(&b, tag);
            assert_decodes(&t, b.data, b.size, BAD, text);
        }
        spoolint_table_free(&t);
    }
    bytes_free(&b);
}

/* ---- modules ---- */

static void a_module_without_identity_is_checked_field_by_field(void **state)
{
    (void)state;
    CHECK("module", //
          {V1 | V2, "01 05 0e 8020 8040 00 63 00 06 2f62696e2f78", OK, NULL},
          {V1 | V2, "01 05 0e 8040 8020 00 63 ff 00", OK, NULL}, /* end below start, empty path */
          {V1 | V2, "01 05 00 8020 8040 00 63 00 02 00 7f", OK, NULL}, /* process 0, NUL */
          {V1 | V2, "01 05 " NONE " 00 00 00 00 00 00", OK, NULL},     /* INT32_MIN */
          {V1 | V2, "01 05 feffffff0f 00 00 00 00 00 00", OK, NULL},   /* INT32_MAX */
          {V1 | V2, "01 04", BAD, "has id 4 instead of 5"},
          {V1 | V2, "01 06", BAD, "has id 6 instead of 5"},
          {V1 | V2, "01 85 80 80 80 10", BAD, "has id 4294967301 instead of 5"},
          {V1 | V2, "01 " MAX, BAD, "has id 18446744073709551615 instead of 5"},
          {V1 | V2, "01 " OVER, BAD, "has a number of more than 64 bits at byte 101"},
          {V1 | V2, "01 05 " TWO_32, BAD, "has process id 2147483648, which is no 32-bit number"},
          {V1 | V2, "01 05 81 80 80 80 10", BAD,
           "has process id -2147483649, which is no 32-bit number"},
          {V1 | V2, "01 05 " OVER, BAD, "has a number of more than 64 bits at byte 102"},
          {V1 | V2, "01 05 0e " OVER, BAD, "has a number of more than 64 bits at byte 103"},
          {V1 | V2, "01 05 0e 01 " OVER, BAD, "has a number of more than 64 bits at byte 104"},
          {V1 | V2, "01 05 0e 01 01 " OVER, BAD, "has a number of more than 64 bits at byte 105"},
          {V1 | V2, "01 05 0e 01 01 01 " OVER, BAD,
           "has a number of more than 64 bits at byte 106"},
          {V1 | V2, "01 05 0e 01 01 01 01 00 " OVER, BAD,
           "has a number of more than 64 bits at byte 108"}, );
}

static void a_module_with_identity_is_checked_field_by_field(void **state)
{
    (void)state;
    CHECK("module", //
          {V3 | V4, "01 05 0e 8020 8040 00 63 08 02 11 00 06 2f62696e2f78", OK, NULL},
          {V3 | V4, "01 05 0e " MAX MAX MAX MAX NONE NONE MAX "00 00", OK, NULL},
          {V3, "01 05 01 00 00 00 00 00 00 00 00 00", OK, NULL}, /* process -1 */
          {V3, "01 05 00 00 00 00 00 00 00 00 00 00", OK, NULL},
          {V4, "01 05 01 00 00 00 00 00 00 00 01 00", OK, NULL}, /* the kernel's may be -1 */
          {V4, "01 05 00 00 00 00 00 00 00 00 80 00", OK, NULL},
          {V3 | V4, "01 04", BAD, "has id 4 instead of 5"},
          {V3 | V4, "01 85 80 80 80 10", BAD, "has id 4294967301 instead of 5"},
          {V3 | V4, "01 05 " TWO_32, BAD, "has process id 2147483648, which is no 32-bit number"},
          {V3 | V4, "01 05 0e 00 00 00 00 " TWO_32, BAD,
           "has device major 4294967296, which is no 32-bit number"},
          {V3 | V4, "01 05 0e 00 00 00 00 " NONE MAX, BAD,
           "has device minor 18446744073709551615, which is no 32-bit number"},
          {V3 | V4, "01 05 0e 00 00 00 00 00 00 " OVER, BAD,
           "has a number of more than 64 bits at byte 109"},
          {V4, "01 05 00 00 00 00 00 00 00 00 00", BAD, "has process id 0, which is not positive"},
          {V4, "01 05 01 00 00 00 00 00 00 00 00", BAD, "has process id -1, which is not positive"},
          {V4, "01 05 01 00 00 00 00 " TWO_32, BAD, /* the device stands before the flag */
           "has device major 4294967296, which is no 32-bit number"},
          {V4, "01 05 " TWO_32, BAD, "has process id 2147483648, which is no 32-bit number"}, );
}

static void a_path_is_utf8_before_version_4_and_anything_in_it(void **state)
{
    static const struct {
        const char *path; /* with its length */
        int at;           /* the first byte that is not UTF-8 */
    } bad[] = {
        {"01 ff", 0},
        {"01 80", 0},
        {"02 c0 80", 0},
        {"02 61 c3", 1},
        {"03 ed a0 80", 0},
        {"03 e0 80 af", 0},
        {"04 f4 90 80 80", 0},
        {"05 2f f0 8f bf bf", 1},
        {"06 2f 61 2f e2 82 41", 3},
    };
    static const char *const good[] = {
        "00", "01 00", "02 c3 a9", "03 ed 9f bf", "03 ee 80 80", "03 ef bf bf", "04 f4 8f bf bf",
    };
    char hex[200], text[100];

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        snprintf(text, sizeof text, "has a path that is not UTF-8 at its byte %d", bad[i].at);
        snprintf(hex, sizeof hex, "01 05 0e 8020 8040 00 63 00 %s", bad[i].path);
        check_rows(&(struct row){V1 | V2, hex, BAD, text}, 1, "module");
        snprintf(hex, sizeof hex, "01 05 0e 8020 8040 00 63 08 02 11 00 %s", bad[i].path);
        check_rows(&(struct row){V3, hex, BAD, text}, 1, "module");
        check_rows(&(struct row){V4, hex, OK, NULL}, 1, "module");
    }
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        snprintf(hex, sizeof hex, "01 05 0e 8020 8040 00 63 00 %s", good[i]);
        check_rows(&(struct row){V1 | V2, hex, OK, NULL}, 1, "module");
        snprintf(hex, sizeof hex, "01 05 0e 8020 8040 00 63 08 02 11 00 %s", good[i]);
        check_rows(&(struct row){V3 | V4, hex, OK, NULL}, 1, "module");
    }
}

#define MODULE_TO_PATH "01 05 0e 00 00 00 00 00 00 00 00 "

static void a_path_length_may_not_lead_beyond_64_bits_nor_make_anyone_allocate(void **state)
{
    struct bytes b = {0};
    struct table t;
    struct decoded d;
    /* The bytes in front of the path when its length has ten bytes. */
    const uint64_t front = 11 + 10;

    (void)state;
    CHECK("module", //
          {V3 | V4, MODULE_TO_PATH MAX, BAD,
           "has a path of 18446744073709551615 bytes, which leads beyond 2^64-1"},
          {V3 | V4, MODULE_TO_PATH OVER, BAD, "has a number of more than 64 bits at byte 111"},
          {V3 | V4, MODULE_TO_PATH "80 80 80 80 80 80 80 80 80 01", LIMIT, NULL}, /* 2^63 ... */
          /* ... and one byte above 64 MiB */
          {V3 | V4, MODULE_TO_PATH "81 80 80 20", LIMIT, NULL}, );

    init_table(&t, 3);
    for (int beyond = 0; beyond < 2; beyond++) { /* exactly to 2^64-1, and one further */
        b.size = 0;
        bytes_hex(&b, MODULE_TO_PATH);
        bytes_uv(&b, UINT64_MAX - OFFSET - front + (uint64_t)beyond);
        assert_int_equal(b.size, front);
        decode(&d, &t, b.data, b.size, OFFSET);
        assert_int_equal(d.rc, beyond ? BAD : LIMIT);
        if (!beyond)
            assert_int_equal(d.needed_bytes, UINT64_MAX - OFFSET);
        decoded_free(&d);
    }
    b.size = 0;
    bytes_hex(&b, MODULE_TO_PATH "80 80 80 20"); /* 64 MiB are still kept */
    decode(&d, &t, b.data, b.size, OFFSET);
    assert_int_equal(d.rc, DECODE_SHORT);
    decoded_free(&d);
    bytes_free(&b);
    spoolint_table_free(&t);
}

/* ---- JIT modules ---- */

/* Process 7, 0x8000-0x8100. */
#define JIT "09 05 0e 808002 808202 00 00 00 00 00 00 01 6a "
#define F_TO_NAME "808002 c08002 " /* 0x8000-0x8040 */
#define G_TO_NAME "c08002 808202 " /* 0x8040-0x8100 */

static void a_jit_module_is_checked_field_by_field(void **state)
{
    (void)state;
    CHECK("JIT module", //
          {V4, JIT "00", OK, NULL}, {V4, JIT "01 " F_TO_NAME "01 66", OK, NULL},
          {V4, JIT "02 " F_TO_NAME "01 66 " G_TO_NAME "01 67", OK, NULL},
          {V4, JIT "02 " F_TO_NAME "00 " F_TO_NAME "00", OK, NULL},   /* one start, no names */
          {V4, JIT "02 808002 808202 00 c08002 c18002 00", OK, NULL}, /* one inside the other */
          {V4, "09 04", BAD, "has id 4 instead of 5"},
          {V4, "09 05 00 00 00 00 00 00 00 00 00", BAD, "has process id 0, which is not positive"},
          {V4, JIT "c1843d", BAD, "has 1000001 symbols, above 1000000"},
          {V4, JIT MAX, BAD, "has 18446744073709551615 symbols, above 1000000"},
          {V4, JIT OVER, BAD, "has a number of more than 64 bits at byte 117"},
          {V4, "09 05 0e 808002 808202 00 00 00 00 00 01 01 6a 00", BAD, "is a kernel module"},
          {V4, "09 05 01 00 00 00 00 00 00 00 01 00 c1843d", BAD,
           "has 1000001 symbols, above 1000000"},
          {V4, JIT "01 808002 808002", BAD,
           "has symbol 0 at 0x8000-0x8000, not inside 0x8000-0x8100"},
          {V4, JIT "01 818002 808002", BAD,
           "has symbol 0 at 0x8001-0x8000, not inside 0x8000-0x8100"},
          {V4, JIT "01 ffff01 c08002", BAD,
           "has symbol 0 at 0x7fff-0x8040, not inside 0x8000-0x8100"},
          {V4, JIT "01 808002 818202", BAD,
           "has symbol 0 at 0x8000-0x8101, not inside 0x8000-0x8100"},
          {V4, JIT "01 " OVER, BAD, "has a number of more than 64 bits at byte 118"},
          {V4, JIT "01 808002 " OVER, BAD, "has a number of more than 64 bits at byte 121"},
          {V4, JIT "01 " F_TO_NAME "818040", BAD, "has a name of 1048577 bytes, above 1048576"},
          {V4, JIT "01 " F_TO_NAME MAX, BAD,
           "has a name of 18446744073709551615 bytes, above 1048576"},
          {V4, JIT "01 " F_TO_NAME "02 66 ff", BAD, "has a name that is not UTF-8 at its byte 1"},
          {V4, JIT "02 " G_TO_NAME "01 67 " F_TO_NAME "01 66", BAD,
           "has symbol 1 at 0x8000, before symbol 0 at 0x8040"},
          {V4, JIT "02 " G_TO_NAME "01 67 " F_TO_NAME "01 ff", BAD, /* the name comes first */
           "has a name that is not UTF-8 at its byte 0"},
          {V4, JIT "02 " F_TO_NAME "01 66 808002 808002", BAD,
           "has symbol 1 at 0x8000-0x8000, not inside 0x8000-0x8100"}, );
}

static void a_jit_modules_names_are_kept_in_order(void **state)
{
    struct bytes b = {0};
    struct table t;
    struct decoded d;
    const struct spool_module *m = &d.rec.module;

    (void)state;
    init_table(&t, 4);
    bytes_hex(&b, JIT "02 " F_TO_NAME "01 66 " G_TO_NAME "02 67 00");
    decode(&d, &t, b.data, b.size, OFFSET);
    assert_int_equal(d.rc, OK);
    assert_int_equal(d.rec.type, SPOOL_RECORD_JIT_MODULE);
    assert_true(m->jit);
    assert_false(m->kernel);
    assert_int_equal(m->start, 0x8000);
    assert_int_equal(m->end, 0x8100);
    assert_int_equal(m->jit_symbol_count, 2);
    assert_int_equal(m->jit_symbols[0].start, 0x8000);
    assert_int_equal(m->jit_symbols[0].end, 0x8040);
    assert_int_equal(m->jit_symbols[0].name_size, 1);
    assert_memory_equal(m->jit_symbols[0].name, "f", 1);
    assert_int_equal(m->jit_symbols[1].start, 0x8040);
    assert_int_equal(m->jit_symbols[1].name_size, 2);
    assert_memory_equal(m->jit_symbols[1].name, "g\0", 2);
    decoded_free(&d);
    bytes_free(&b);
    spoolint_table_free(&t);
}

/* ---- frames ---- */

static void a_frame_is_judged_when_code_and_address_are_there(void **state)
{
    (void)state;
    CHECK("frame", //
          {ALL, "02 03 01 00", OK, NULL}, {ALL, "02 03 03 " MAX, OK, NULL},
          {ALL, "02 03 05 00", OK, NULL}, {ALL, "02 03 07 01", OK, NULL},
          {ALL, "02 03 09 01", OK, NULL}, {ALL, "02 03 " MAX " 01", OK, NULL},
          {ALL, "02 03 00 8002", OK, NULL}, /* the module's first byte */
          {ALL, "02 03 00 ff21", OK, NULL}, /* and its last */
          {ALL, "02 03 02 fe1f", OK, NULL}, /* of the kernel's */
          {ALL, "02 03 08 feffffffffffffffff01", OK, NULL},
          {ALL, "02 02", BAD, "has id 2 instead of 3"},
          {ALL, "02 83 80 80 80 10", BAD, "has id 4294967299 instead of 3"},
          {ALL, "02 " OVER, BAD, "has a number of more than 64 bits at byte 101"},
          {ALL, "02 03 " OVER, BAD, "has a number of more than 64 bits at byte 102"},
          {ALL, "02 03 ff01 " OVER, BAD, "has a number of more than 64 bits at byte 104"},
          {ALL, "02 03 05 01", BAD, "is a truncated-stack marker with address 0x1"},
          {ALL, "02 03 05 " MAX, BAD,
           "is a truncated-stack marker with address 0xffffffffffffffff"},
          {ALL, "02 03 0a 00", BAD, "refers to module 5 of 5"},
          {ALL, "02 03 80 80 80 80 20 80 02", BAD, "refers to module 4294967296 of 5"},
          {ALL, "02 03 feffffffffffffffff01 00", BAD, "refers to module 9223372036854775807 of 5"},
          {ALL, "02 03 00 ff01", BAD, "has address 0xff below file offset 0x100 of module 0"},
          {ALL, "02 03 00 00", BAD, "has address 0x0 below file offset 0x100 of module 0"},
          {ALL, "02 03 00 8022", BAD,
           "has address 0x1100 beyond the end of module 0 (file offset 0x100, size 0x1000)"},
          {ALL, "02 03 04 00", BAD,
           "refers to module 2, which ends at 0x4000 before its start 0x5000"},
          {ALL, "02 03 06 00", BAD,
           "has address 0x0 beyond the end of module 3 (file offset 0x0, size 0x0)"},
          {ALL, "02 03 08 " MAX, BAD,
           "has address 0xffffffffffffffff beyond the end of module 4 (file offset 0x0, size "
           "0xffffffffffffffff)"}, );
}

static void a_frames_kind_mode_and_addresses_follow_from_its_code(void **state)
{
    static const struct {
        const char *hex;
        struct spool_frame expected;
    } rows[] = {
        {"02 03 01 9022", {3, SPOOL_FRAME_UNPINNED, false, SPOOL_NO_ID, 0x1110, 0x1110}},
        {"02 03 03 9022", {3, SPOOL_FRAME_UNPINNED, true, SPOOL_NO_ID, 0x1110, 0x1110}},
        {"02 03 05 00", {3, SPOOL_FRAME_TRUNCATED, false, SPOOL_NO_ID, 0, 0}},
        {"02 03 07 05", {3, SPOOL_FRAME_UNPINNED, true, SPOOL_NO_ID, 5, 5}},
        {"02 03 09 05", {3, SPOOL_FRAME_UNPINNED, false, SPOOL_NO_ID, 5, 5}},
        {"02 03 0b 05", {3, SPOOL_FRAME_UNPINNED, true, SPOOL_NO_ID, 5, 5}},
        {"02 03 0d 05", {3, SPOOL_FRAME_UNPINNED, false, SPOOL_NO_ID, 5, 5}},
        {"02 03 85 80 80 80 10 05", {3, SPOOL_FRAME_UNPINNED, false, SPOOL_NO_ID, 5, 5}},
        {"02 03 00 9002", {3, SPOOL_FRAME_PINNED, false, 0, 0x110, 0x1010}},
        {"02 03 02 fe1f", {3, SPOOL_FRAME_PINNED, true, 1, 0xffe, UINT64_MAX - 1}},
        {"02 03 08 05", {3, SPOOL_FRAME_PINNED, false, 4, 5, 5}},
    };
    struct table t;

    (void)state;
    init_table(&t, 3);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct spool_frame *want = &rows[i].expected;
        struct bytes b = {0};
        struct decoded d;

        bytes_hex(&b, rows[i].hex);
        decode(&d, &t, b.data, b.size, OFFSET);
        assert_int_equal(d.rc, OK);
        assert_int_equal(d.rec.type, SPOOL_RECORD_FRAME);
        assert_int_equal(d.rec.offset_bytes, OFFSET);
        assert_int_equal(d.rec.frame.id, want->id);
        assert_int_equal(d.rec.frame.kind, want->kind);
        assert_int_equal(d.rec.frame.kernel, want->kernel);
        assert_int_equal(d.rec.frame.module_id, want->module_id);
        assert_int_equal(d.rec.frame.rel, want->rel);
        assert_int_equal(d.rec.frame.abs, want->abs);
        decoded_free(&d);
        bytes_free(&b);
    }
    spoolint_table_free(&t);
}

/* ---- the other records ---- */

static void a_stack_node_is_checked_field_by_field(void **state)
{
    (void)state;
    CHECK("stack", //
          {ALL, "03 02 " NONE " 00", OK, NULL}, {ALL, "03 02 00 02", OK, NULL},
          {ALL, "03 02 01 00", OK, NULL}, {ALL, "03 01", BAD, "has id 1 instead of 2"},
          {ALL, "03 82 80 80 80 10", BAD, "has id 4294967298 instead of 2"},
          {ALL, "03 " OVER, BAD, "has a number of more than 64 bits at byte 101"},
          {ALL, "03 02 02", BAD, "refers to prefix 2 of 2"}, /* itself */
          {ALL, "03 02 feffffff0f", BAD, "refers to prefix 4294967294 of 2"},
          {ALL, "03 02 " TWO_32, BAD, "refers to prefix 4294967296 of 2"},
          {ALL, "03 02 " MAX, BAD, "refers to prefix 18446744073709551615 of 2"},
          {ALL, "03 02 " OVER, BAD, "has a number of more than 64 bits at byte 102"},
          {ALL, "03 02 00 03", BAD, "refers to frame 3 of 3"},
          {ALL, "03 02 00 " NONE, BAD, "refers to frame 4294967295 of 3"},
          {ALL, "03 02 00 " TWO_32, BAD, "refers to frame 4294967296 of 3"},
          {ALL, "03 02 00 " OVER, BAD, "has a number of more than 64 bits at byte 103"}, );
}

static void a_thread_is_checked_field_by_field(void **state)
{
    (void)state;
    CHECK("thread", //
          {ALL, "04 02 0e 01", OK, NULL}, {ALL, "04 02 feffffff0f ffffffff07", OK, NULL},
          {V123, "04 02 00 00", OK, NULL}, {V123, "04 02 " NONE " " MAX, OK, NULL},
          {ALL, "04 01", BAD, "has id 1 instead of 2"},
          {ALL, "04 82 80 80 80 10", BAD, "has id 4294967298 instead of 2"},
          {ALL, "04 02 " TWO_32, BAD, "has process id 2147483648, which is no 32-bit number"},
          {ALL, "04 02 " MAX, BAD,
           "has process id -9223372036854775808, which is no 32-bit number"},
          {ALL, "04 02 " OVER, BAD, "has a number of more than 64 bits at byte 102"},
          {V4, "04 02 00", BAD, "has process id 0, which is not positive"},
          {V4, "04 02 01", BAD, "has process id -1, which is not positive"},
          {ALL, "04 02 0e " OVER, BAD, "has a number of more than 64 bits at byte 103"},
          {V4, "04 02 0e 00", BAD, "has thread id 0, which is not in 1 to 2147483647"},
          {V4, "04 02 0e 8080808008", BAD,
           "has thread id 2147483648, which is not in 1 to 2147483647"},
          {V4, "04 02 0e 81 80 80 80 10", BAD,
           "has thread id 4294967297, which is not in 1 to 2147483647"}, );
}

static void a_sample_is_checked_field_by_field(void **state)
{
    (void)state;
    CHECK("sample",                                                         //
          {ALL, "05 00 00 00", OK, NULL}, {ALL, "05 cf0f 01 01", OK, NULL}, /* -1000: time 0 */
          {ALL, "05 feffffffffffffffff01 00 00", OK, NULL},                 /* INT64_MAX */
          {ALL, "05 d10f", BAD, "has a time delta of -1001 ns after time 1000 ns"},
          {ALL, "05 " MAX, BAD, "has a time delta of -9223372036854775808 ns after time 1000 ns"},
          {ALL, "05 " OVER, BAD, "has a number of more than 64 bits at byte 101"},
          {ALL, "05 00 02", BAD, "refers to thread 2 of 2"},
          {ALL, "05 00 " TWO_32, BAD, "refers to thread 4294967296 of 2"},
          {ALL, "05 00 " OVER, BAD, "has a number of more than 64 bits at byte 102"},
          {ALL, "05 00 00 02", BAD, "refers to stack 2 of 2"},
          {ALL, "05 00 00 " NONE, BAD, "refers to stack 4294967295 of 2"},
          {ALL, "05 00 00 " TWO_32, BAD, "refers to stack 4294967296 of 2"},
          {ALL, "05 00 00 " OVER, BAD, "has a number of more than 64 bits at byte 103"}, );
}

static void sample_times_stay_within_64_bits(void **state)
{
    static const struct {
        uint64_t last;
        int64_t delta;
        int expected;
    } rows[] = {
        {0, 0, OK},
        {0, -1, BAD},
        {0, INT64_MAX, OK},
        {0, INT64_MIN, BAD},
        {1, -1, OK},
        {UINT64_MAX, 0, OK},
        {UINT64_MAX, 1, BAD},
        {UINT64_MAX, INT64_MAX, BAD},
        {UINT64_MAX, INT64_MIN, OK},
        {UINT64_MAX - 1, 1, OK},
        {(uint64_t)INT64_MAX, INT64_MIN, BAD},
        {(uint64_t)INT64_MAX + 1, INT64_MIN, OK},
        {(uint64_t)INT64_MAX + 1, INT64_MAX, OK},
        {(uint64_t)INT64_MAX + 2, INT64_MAX, BAD},
    };
    struct table t;

    (void)state;
    init_table(&t, 3);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct bytes b = {0};
        struct decoded d;
        char text[120];

        t.time_ns = rows[i].last;
        bytes_sample(&b, rows[i].delta, 1, 0);
        decode(&d, &t, b.data, b.size, OFFSET);
        assert_int_equal(d.rc, rows[i].expected);
        if (d.rc == OK) {
            const struct spool_sample *s = &d.rec.sample;

            assert_true(s->delta_ns == rows[i].delta);
            assert_int_equal(s->time_ns, rows[i].last + (uint64_t)rows[i].delta);
            assert_int_equal(s->index, 4);
            assert_int_equal(s->thread, 1);
            assert_int_equal(s->stack, 0);
            assert_int_equal(s->pid, 7);
            assert_int_equal(s->tid, 12);
        } else {
            snprintf(text, sizeof text,
                     "sample record at byte 100 has a time delta of %" PRId64
                     " ns after time %" PRIu64 " ns",
                     rows[i].delta, rows[i].last);
            assert_string_equal(d.error.text, text);
        }
        bytes_free(&b);
        decoded_free(&d);
    }
    spoolint_table_free(&t);
}

static void a_python_record_is_checked_field_by_field(void **state)
{
    (void)state;
    CHECK("python", //
          {ALL, "06 00 0e 00", OK, NULL}, {ALL, "06 " MAX " feffffff0f ff", OK, NULL},
          {V123, "06 00 " NONE " 01", OK, NULL}, {V123, "06 00 00 01", OK, NULL},
          {ALL, "06 " OVER, BAD, "has a number of more than 64 bits at byte 101"},
          {ALL, "06 00 " TWO_32, BAD, "has process id 2147483648, which is no 32-bit number"},
          {ALL, "06 00 " OVER, BAD, "has a number of more than 64 bits at byte 102"},
          {V4, "06 00 00", BAD, "has process id 0, which is not positive"},
          {V4, "06 00 0d", BAD, "has process id -7, which is not positive"}, );
}

static void deactivations_are_checked(void **state)
{
    (void)state;
    CHECK("process deactivation",                                   //
          {ALL, "07 0e", OK, NULL}, {ALL, "07 aa aa 01", OK, NULL}, /* an unknown process */
          {V123, "07 00", OK, NULL}, {V123, "07 " NONE, OK, NULL},
          {ALL, "07 " TWO_32, BAD, "has process id 2147483648, which is no 32-bit number"},
          {ALL, "07 " OVER, BAD, "has a number of more than 64 bits at byte 101"},
          {V4, "07 00", BAD, "has process id 0, which is not positive"}, );
    CHECK("module deactivation", //
          {V2 | V3 | V4, "08 00", OK, NULL}, {V2 | V3 | V4, "08 04", OK, NULL},
          {V2 | V3 | V4, "08 05", BAD, "refers to module 5 of 5"},
          {V2 | V3 | V4, "08 " TWO_32, BAD, "refers to module 4294967296 of 5"},
          {V2 | V3 | V4, "08 " OVER, BAD, "has a number of more than 64 bits at byte 101"},
          {V1, "08", BAD, "record at byte 100 has tag 8, which version %u does not have"}, );
}

static void padded_numbers_mean_the_same(void **state)
{
    (void)state;
    CHECK("thread", {ALL, "04 8280808080808080 8000 8e80808000 818000", OK, NULL}, );
    CHECK("frame", {ALL, "02 8300 858000 80808080808080808000", OK, NULL}, );
    CHECK("stack", {ALL, "03 8200 ffffffff8f808000 808000", OK, NULL}, );
    CHECK("sample", {ALL, "05 8000 818000 8100", OK, NULL}, );
}

static void ids_end_at_the_largest_one(void **state)
{
    static const struct {
        uint8_t tag;
        const char *name;
    } rows[] = {{1, "module"}, {2, "frame"}, {3, "stack"}, {4, "thread"}, {9, "JIT module"}};
    struct bytes b = {0};
    char text[120];

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct table t; /* the numbers alone: the id is judged before anything is looked up */

        spoolint_table_init(&t);
        t.version = 4;
        b.size = 0;
        bytes_byte(&b, rows[i].tag);
        bytes_uv(&b, UINT32_MAX - 1);
        t.module_count = t.frame_count = t.stack_count = t.thread_count = UINT32_MAX - 1;
        assert_decodes(&t, b.data, b.size, DECODE_SHORT, NULL);

        b.size = 1;
        bytes_uv(&b, UINT32_MAX);
        t.module_count = t.frame_count = t.stack_count = t.thread_count = UINT32_MAX;
        snprintf(text, sizeof text,
                 "%s record at byte 100 has id 4294967295, beyond the largest id 4294967294",
                 rows[i].name);
        assert_decodes(&t, b.data, b.size, BAD, text);
        spoolint_table_init(&t);
    }
    bytes_free(&b);
}

/* ---- headers ---- */

/* The header behind the magic. */
static void check_header(uint32_t version, const char *hex, int expected, const char *text)
{
    struct bytes b = {0};
    size_t decisive;

    bytes_hex(&b, hex);
    decisive = b.size;
    for (unsigned i = 0; i < 40; i++)
        bytes_byte(&b, 0xff);
    for (size_t size = 0; size <= b.size; size++) {
        struct spool_header h = {.version = version};
        struct error_state e = {0};
        struct cursor c = {.at = b.data, .end = b.data + size};
        int rc = spoolint_record_decode_header(&c, &h, &e);

        assert_int_equal(rc, size < decisive ? DECODE_SHORT : expected);
        assert_string_equal(spoolint_error_get(&e), rc < 0 ? text : "no error");
        if (rc == OK)
            assert_ptr_equal(c.at, b.data + decisive);
    }
    bytes_free(&b);
}

static void a_header_is_checked_field_by_field(void **state)
{
    static const char overlong[] = "header has a number of more than 64 bits";

    (void)state;
    for (uint32_t version = 1; version <= 3; version++) {
        check_header(version, "7b 0a", OK, NULL);
        check_header(version, MAX MAX, OK, NULL);
        check_header(version, "8000 808000", OK, NULL);
        check_header(version, OVER, BAD, overlong);
        check_header(version, "00 " OVER, BAD, overlong);
    }
    check_header(4, "00 00 00", OK, NULL);
    check_header(4, MAX MAX "00", OK, NULL);
    check_header(4, "00 92c2e804 01 80a8d6b907 02 80e2cfaa06 05", OK, NULL);
    check_header(4, OVER, BAD, overlong);
    check_header(4, "00 " OVER, BAD, overlong);
    check_header(4, "00 00 02", BAD, "header has clock origin selector 2 instead of 0 or 1");
    check_header(4, "00 00 " TWO_32, BAD,
                 "header has clock origin selector 4294967296 instead of 0 or 1");
    check_header(4, "00 00 " OVER, BAD, overlong);
    check_header(4, "00 00 01 " OVER, BAD, overlong);
    check_header(4, "00 00 01 00 00", BAD, "header has clock origin sign 0 instead of 1 or -1");
    check_header(4, "00 00 01 00 03", BAD, "header has clock origin sign -2 instead of 1 or -1");
    check_header(4, "00 00 01 00 04", BAD, "header has clock origin sign 2 instead of 1 or -1");
    check_header(4, "00 00 01 00 82 80 80 80 20", BAD, /* 2^32 + 1 */
                 "header has clock origin sign 4294967297 instead of 1 or -1");
    check_header(4, "00 00 01 00 " OVER, BAD, overlong);
    check_header(4, "00 00 01 00 02 " OVER, BAD, overlong);
    check_header(4, "00 00 01 00 02 00 " OVER, BAD, overlong);
    check_header(4, "00 00 01 00 02 00 ff93ebdc03", OK, NULL); /* 999999999 */
    check_header(4, "00 00 01 00 02 00 8094ebdc03", BAD,
                 "header has 1000000000 nanoseconds in its clock origin");
    check_header(4, "00 00 01 00 02 00 " TWO_32, BAD,
                 "header has 4294967296 nanoseconds in its clock origin");
}

#define TWO_63 "80808080808080808001 "
#define MAX_63 "ffffffffffffffff7f "

static void a_headers_wall_time_fits_64_bits_of_seconds(void **state)
{
    static const char beyond[] =
        "header has a clock origin 9223372036854775808 seconds from 1970, beyond 64 bits";

    (void)state;
    check_header(4, "00 00 01 00 02 " MAX_63 "ff93ebdc03", OK, NULL);
    check_header(4, "00 00 01 00 01 " MAX_63 "ff93ebdc03", OK, NULL);
    check_header(4, "00 00 01 00 01 " TWO_63 "00", OK, NULL);
    check_header(4, "00 00 01 00 01 " TWO_63 "01", BAD, beyond);
    check_header(4, "00 00 01 00 02 " TWO_63 "00", BAD, beyond);
    check_header(
        4, "00 00 01 00 01 " MAX "00", BAD,
        "header has a clock origin 18446744073709551615 seconds from 1970, beyond 64 bits");
}

static void header_fields_come_back_from_what_was_encoded(void **state)
{
    uint64_t seed = 4;

    (void)state;
    for (unsigned i = 0; i < 20000; i++) {
        struct byte_buffer b = {0};
        struct error_state e = {0};
        struct spool_header h = {.version = 1 + i % 4}, got = {.version = 1 + i % 4};
        struct cursor c;

        h.start_us = random_magnitude(&seed);
        if (h.version < 4) {
            h.interval_us = random_magnitude(&seed);
            h.interval_ns = h.interval_us > UINT64_MAX / 1000 ? UINT64_MAX : h.interval_us * 1000;
        } else {
            h.interval_ns = random_magnitude(&seed);
            h.has_origin = random_u64(&seed) & 1;
        }
        if (h.has_origin) {
            h.origin.monotonic_ns = random_magnitude(&seed);
            h.origin.sign = random_u64(&seed) & 1 ? 1 : -1;
            h.origin.seconds = random_magnitude(&seed) >> 1;
            h.origin.nanoseconds = (uint32_t)(random_u64(&seed) % 1000000000);
        }
        spoolint_record_encode_header(&b, &h);
        assert_false(b.failed);
        assert_memory_equal(b.data, "SPULSE", 6);
        assert_int_equal(b.data[6], '0' + h.version);
        assert_int_equal(b.data[7], 0);
        c = (struct cursor){.at = b.data + 8, .end = b.data + b.size};
        assert_int_equal(spoolint_record_decode_header(&c, &got, &e), OK);
        assert_ptr_equal(c.at, c.end);
        assert_int_equal(got.start_us, h.start_us);
        assert_int_equal(got.interval_us, h.interval_us);
        assert_int_equal(got.interval_ns, h.interval_ns);
        assert_int_equal(got.has_origin, h.has_origin);
        assert_int_equal(got.origin.monotonic_ns, h.origin.monotonic_ns);
        assert_int_equal(got.origin.sign, h.origin.sign);
        assert_int_equal(got.origin.seconds, h.origin.seconds);
        assert_int_equal(got.origin.nanoseconds, h.origin.nanoseconds);
        free(b.data);
    }
}

/* ---- round trips ---- */

static int32_t random_pid(uint64_t *seed, uint32_t version)
{
    if (version >= 4)
        return 1 + (int32_t)(random_magnitude(seed) % INT32_MAX);
    return (int32_t)(uint32_t)random_magnitude(seed);
}

static void random_module(uint64_t *seed, uint32_t version, struct spool_module *m)
{
    static const char *const paths[] = {"", "/bin/x", "/opt/\xc5\xbc", "a\0b", "[spool:x] not one"};
    static struct spool_jit_symbol symbols[3];
    size_t pick = random_u64(seed) % 5;

    *m = (struct spool_module){.pid = random_pid(seed, version),
                               .kernel = random_u64(seed) & 1,
                               .start = random_magnitude(seed),
                               .end = random_magnitude(seed),
                               .file_offset = random_magnitude(seed),
                               .inode = random_magnitude(seed),
                               .path = paths[pick],
                               .path_size = pick == 3 ? 3 : strlen(paths[pick])};
    if (version >= 3) {
        m->dev_major = (uint32_t)random_magnitude(seed);
        m->dev_minor = (uint32_t)random_magnitude(seed);
        m->inode_gen = random_magnitude(seed);
    }
    if (version < 4 || random_u64(seed) % 3 != 0)
        return;
    m->jit = true;
    m->kernel = false;
    if (m->end <= m->start)
        return;
    m->jit_symbols = symbols;
    m->jit_symbol_count = random_u64(seed) % 4;
    for (size_t i = 0; i < m->jit_symbol_count; i++) {
        uint64_t from = i == 0 ? m->start : symbols[i - 1].start;

        symbols[i].start = from + random_magnitude(seed) % (m->end - from);
        symbols[i].end =
            symbols[i].start + 1 + random_magnitude(seed) % (m->end - symbols[i].start);
        symbols[i].name = paths[(pick + i) % 5];
        symbols[i].name_size = (pick + i) % 5 == 3 ? 3 : strlen(symbols[i].name);
    }
}

/* A frame of any kind: pinned ones where the table has a module that can hold one. */
static void random_frame(uint64_t *seed, const struct table *t, struct spool_frame *f)
{
    const struct spool_module *m =
        t->module_count > 0 ? &t->modules[random_u64(seed) % t->module_count] : NULL;
    uint64_t room = m && m->end > m->start ? m->end - m->start : 0;

    *f = (struct spool_frame){.kind = SPOOL_FRAME_TRUNCATED, .module_id = SPOOL_NO_ID};
    if (room > UINT64_MAX - (m ? m->file_offset : 0))
        room = UINT64_MAX - m->file_offset;
    if (room > 0 && random_u64(seed) % 2 == 0) {
        uint64_t inside = random_magnitude(seed) % room;

        f->kind = SPOOL_FRAME_PINNED;
        f->module_id = m->id;
        f->kernel = m->kernel;
        f->rel = m->file_offset + inside;
        f->abs = m->start + inside;
    } else if (random_u64(seed) % 8 != 0) {
        f->kind = SPOOL_FRAME_UNPINNED;
        f->kernel = random_u64(seed) & 1;
        f->rel = f->abs = random_magnitude(seed);
    }
}

static void random_record(uint64_t *seed, const struct table *t, struct spool_record *rec)
{
    uint32_t version = t->version;

    memset(rec, 0, sizeof *rec);
    switch (random_u64(seed) % 9) {
    case 0:
        random_module(seed, version, &rec->module);
        rec->type = rec->module.jit ? SPOOL_RECORD_JIT_MODULE : SPOOL_RECORD_MODULE;
        rec->module.id = t->module_count;
        return;
    case 1:
    case 2:
        rec->type = SPOOL_RECORD_FRAME;
        random_frame(seed, t, &rec->frame);
        rec->frame.id = t->frame_count;
        return;
    case 3:
        if (t->frame_count == 0)
            break;
        rec->type = SPOOL_RECORD_STACK;
        rec->stack.id = t->stack_count;
        rec->stack.frame = (uint32_t)(random_u64(seed) % t->frame_count);
        rec->stack.prefix = t->stack_count > 0 && random_u64(seed) % 4 > 0
                                ? (uint32_t)(random_u64(seed) % t->stack_count)
                                : SPOOL_NO_ID;
        rec->stack.depth = rec->stack.prefix == SPOOL_NO_ID ? 1 : 1 + t->depths[rec->stack.prefix];
        return;
    case 4:
        rec->type = SPOOL_RECORD_THREAD;
        rec->thread.id = t->thread_count;
        rec->thread.pid = random_pid(seed, version);
        rec->thread.tid =
            version >= 4 ? 1 + random_magnitude(seed) % INT32_MAX : random_magnitude(seed);
        return;
    case 5:
        if (t->thread_count == 0 || t->stack_count == 0)
            break;
        rec->type = SPOOL_RECORD_SAMPLE;
        rec->sample.index = t->sample_count;
        rec->sample.thread = (uint32_t)(random_u64(seed) % t->thread_count);
        rec->sample.stack = (uint32_t)(random_u64(seed) % t->stack_count);
        rec->sample.pid = t->threads[rec->sample.thread].pid;
        rec->sample.tid = t->threads[rec->sample.thread].tid;
        rec->sample.delta_ns = (int64_t)(random_magnitude(seed) >> 1);
        if ((uint64_t)rec->sample.delta_ns > UINT64_MAX - t->time_ns)
            rec->sample.delta_ns =
                -(int64_t)((uint64_t)rec->sample.delta_ns % (t->time_ns / 2 + 1));
        rec->sample.time_ns = t->time_ns + (uint64_t)rec->sample.delta_ns;
        return;
    case 6:
        if (version < 2 || t->module_count == 0)
            break;
        rec->type = SPOOL_RECORD_DEACTIVATE_MODULE;
        rec->deactivated_module = (uint32_t)(random_u64(seed) % t->module_count);
        return;
    case 7:
        rec->type = SPOOL_RECORD_DEACTIVATE_PROCESS;
        rec->deactivated_pid = random_pid(seed, version);
        return;
    default:
        break;
    }
    rec->type = SPOOL_RECORD_PYTHON;
    rec->python.time_ns = random_magnitude(seed);
    rec->python.pid = random_pid(seed, version);
    rec->python.on = random_u64(seed) & 1;
}

static void assert_same_module(const struct spool_module *a, const struct spool_module *b)
{
    assert_int_equal(a->id, b->id);
    assert_int_equal(a->pid, b->pid);
    assert_int_equal(a->kernel, b->kernel);
    assert_int_equal(a->jit, b->jit);
    assert_int_equal(a->start, b->start);
    assert_int_equal(a->end, b->end);
    assert_int_equal(a->file_offset, b->file_offset);
    assert_int_equal(a->inode, b->inode);
    assert_int_equal(a->dev_major, b->dev_major);
    assert_int_equal(a->dev_minor, b->dev_minor);
    assert_int_equal(a->inode_gen, b->inode_gen);
    assert_int_equal(a->path_size, b->path_size);
    assert_memory_equal(a->path, b->path, b->path_size);
    assert_int_equal(a->retired_at_frame, SPOOL_NOT_RETIRED);
    assert_int_equal(a->jit_symbol_count, b->jit_symbol_count);
    for (size_t i = 0; i < a->jit_symbol_count; i++) {
        const struct spool_jit_symbol *s = &a->jit_symbols[i], *want = &b->jit_symbols[i];

        assert_int_equal(s->start, want->start);
        assert_int_equal(s->end, want->end);
        assert_int_equal(s->name_size, want->name_size);
        assert_memory_equal(s->name, want->name, want->name_size);
    }
}

static void assert_same_record(const struct spool_record *a, const struct spool_record *b)
{
    assert_int_equal(a->type, b->type);
    switch (b->type) {
    case SPOOL_RECORD_MODULE:
    case SPOOL_RECORD_JIT_MODULE:
        assert_same_module(&a->module, &b->module);
        break;
    case SPOOL_RECORD_FRAME:
        assert_int_equal(a->frame.id, b->frame.id);
        assert_int_equal(a->frame.kind, b->frame.kind);
        assert_int_equal(a->frame.kernel, b->frame.kernel);
        assert_int_equal(a->frame.module_id, b->frame.module_id);
        assert_int_equal(a->frame.rel, b->frame.rel);
        assert_int_equal(a->frame.abs, b->frame.abs);
        break;
    case SPOOL_RECORD_STACK:
        assert_int_equal(a->stack.id, b->stack.id);
        assert_int_equal(a->stack.prefix, b->stack.prefix);
        assert_int_equal(a->stack.frame, b->stack.frame);
        assert_int_equal(a->stack.depth, b->stack.depth);
        break;
    case SPOOL_RECORD_THREAD:
        assert_int_equal(a->thread.id, b->thread.id);
        assert_int_equal(a->thread.pid, b->thread.pid);
        assert_int_equal(a->thread.tid, b->thread.tid);
        break;
    case SPOOL_RECORD_SAMPLE:
        assert_int_equal(a->sample.index, b->sample.index);
        assert_int_equal(a->sample.delta_ns, b->sample.delta_ns);
        assert_int_equal(a->sample.time_ns, b->sample.time_ns);
        assert_int_equal(a->sample.thread, b->sample.thread);
        assert_int_equal(a->sample.stack, b->sample.stack);
        assert_int_equal(a->sample.pid, b->sample.pid);
        assert_int_equal(a->sample.tid, b->sample.tid);
        break;
    case SPOOL_RECORD_PYTHON:
        assert_int_equal(a->python.time_ns, b->python.time_ns);
        assert_int_equal(a->python.pid, b->python.pid);
        assert_int_equal(a->python.on, b->python.on);
        break;
    case SPOOL_RECORD_DEACTIVATE_PROCESS:
        assert_int_equal(a->deactivated_pid, b->deactivated_pid);
        break;
    default:
        assert_int_equal(a->deactivated_module, b->deactivated_module);
        break;
    }
}

static void add(struct table *t, struct spool_record *rec)
{
    switch (rec->type) {
    case SPOOL_RECORD_MODULE:
    case SPOOL_RECORD_JIT_MODULE:
        assert_int_equal(spoolint_table_add_module(t, rec), 0);
        break;
    case SPOOL_RECORD_FRAME:
        assert_int_equal(spoolint_table_add_frame(t, &rec->frame), 0);
        break;
    case SPOOL_RECORD_STACK:
        assert_int_equal(spoolint_table_add_stack(t, &rec->stack), 0);
        break;
    case SPOOL_RECORD_THREAD:
        assert_int_equal(spoolint_table_add_thread(t, &rec->thread), 0);
        break;
    case SPOOL_RECORD_SAMPLE:
        t->sample_count++;
        t->time_ns = rec->sample.time_ns;
        break;
    default:
        break;
    }
}

static void every_record_comes_back_from_what_was_encoded(void **state)
{
    uint64_t seed = 5;

    (void)state;
    for (uint32_t version = 1; version <= 4; version++) {
        struct byte_buffer b = {0};
        struct table t;

        spoolint_table_init(&t);
        t.version = version;
        for (unsigned i = 0; i < 20000; i++) {
            struct spool_record rec;
            struct decoded d;

            random_record(&seed, &t, &rec);
            b.size = 0;
            spoolint_record_encode(&b, version, &rec);
            assert_false(b.failed);
            decode(&d, &t, b.data, b.size, i);
            if (d.rc != OK)
                fail_msg("%s", d.error.text);
            assert_int_equal(d.used, b.size);
            assert_int_equal(d.rec.offset_bytes, i);
            assert_same_record(&d.rec, &rec);
            add(&t, &d.rec);
            decoded_free(&d);
            if (i % 16 == 0) { /* no field is missing from the encoding */
                for (size_t cut = 0; cut < b.size; cut++) {
                    struct table before = t;

                    before.module_count -=
                        rec.type == SPOOL_RECORD_MODULE || rec.type == SPOOL_RECORD_JIT_MODULE;
                    before.frame_count -= rec.type == SPOOL_RECORD_FRAME;
                    before.stack_count -= rec.type == SPOOL_RECORD_STACK;
                    before.thread_count -= rec.type == SPOOL_RECORD_THREAD;
                    if (rec.type == SPOOL_RECORD_SAMPLE)
                        before.time_ns -= (uint64_t)rec.sample.delta_ns;
                    decode(&d, &before, b.data, cut, i);
                    assert_int_equal(d.rc, DECODE_SHORT);
                    decoded_free(&d);
                }
            }
        }
        free(b.data);
        spoolint_table_free(&t);
    }
}

static void an_annotation_is_encoded_as_its_module(void **state)
{
    struct spool_record note = {.type = SPOOL_RECORD_ANNOTATION};
    struct spool_record module = {.type = SPOOL_RECORD_MODULE};
    struct byte_buffer a = {0}, b = {0};

    (void)state;
    module.module =
        (struct spool_module){.id = 3, .pid = 7, .path = "[spool:comm] x", .path_size = 14};
    note.annotation.module = module.module;
    for (uint32_t version = 1; version <= 4; version++) {
        a.size = b.size = 0;
        spoolint_record_encode(&a, version, &note);
        spoolint_record_encode(&b, version, &module);
        assert_int_equal(a.size, b.size);
        assert_memory_equal(a.data, b.data, a.size);
    }
    free(a.data);
    free(b.data);
}

static void every_record_type_has_a_name(void **state)
{
    (void)state;
    for (unsigned type = SPOOL_RECORD_MODULE; type <= SPOOL_RECORD_JIT_MODULE; type++)
        assert_string_not_equal(spoolint_record_name((enum spool_record_type)type), "unknown");
    assert_string_equal(spoolint_record_name(SPOOL_RECORD_ANNOTATION), "annotation");
    assert_string_equal(spoolint_record_name((enum spool_record_type)0), "unknown");
    assert_string_equal(spoolint_record_name((enum spool_record_type)10), "unknown");
    assert_string_equal(spoolint_record_name((enum spool_record_type)255), "unknown");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tag_is_judged_before_anything_behind_it),
        cmocka_unit_test(a_module_without_identity_is_checked_field_by_field),
        cmocka_unit_test(a_module_with_identity_is_checked_field_by_field),
        cmocka_unit_test(a_path_is_utf8_before_version_4_and_anything_in_it),
        cmocka_unit_test(a_path_length_may_not_lead_beyond_64_bits_nor_make_anyone_allocate),
        cmocka_unit_test(a_jit_module_is_checked_field_by_field),
        cmocka_unit_test(a_jit_modules_names_are_kept_in_order),
        cmocka_unit_test(a_frame_is_judged_when_code_and_address_are_there),
        cmocka_unit_test(a_frames_kind_mode_and_addresses_follow_from_its_code),
        cmocka_unit_test(a_stack_node_is_checked_field_by_field),
        cmocka_unit_test(a_thread_is_checked_field_by_field),
        cmocka_unit_test(a_sample_is_checked_field_by_field),
        cmocka_unit_test(sample_times_stay_within_64_bits),
        cmocka_unit_test(a_python_record_is_checked_field_by_field),
        cmocka_unit_test(deactivations_are_checked),
        cmocka_unit_test(padded_numbers_mean_the_same),
        cmocka_unit_test(ids_end_at_the_largest_one),
        cmocka_unit_test(a_header_is_checked_field_by_field),
        cmocka_unit_test(a_headers_wall_time_fits_64_bits_of_seconds),
        cmocka_unit_test(header_fields_come_back_from_what_was_encoded),
        cmocka_unit_test(every_record_comes_back_from_what_was_encoded),
        cmocka_unit_test(an_annotation_is_encoded_as_its_module),
        cmocka_unit_test(every_record_type_has_a_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
