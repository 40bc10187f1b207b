/* SPDX-License-Identifier: MIT */
/* One recording, one id, however much of it is there; another recording, another id. */
#include "../spool2folded/make_spool.h"

#include "capture_id.h"
#include "inputs.h"

struct recording {
    struct spool_header header;
    struct spool_module module;
};

static const struct recording plain = {
    .header = {.version = 4,
               .start_us = 1700000000000000,
               .interval_ns = 10000000,
               .has_origin = true,
               .origin = {.monotonic_ns = 5, .sign = 1, .seconds = 1700000000, .nanoseconds = 7}},
    .module = {.pid = 12,
               .start = 0x1000,
               .end = 0x3000,
               .file_offset = 0x1000,
               .inode = 3,
               .dev_major = 8,
               .dev_minor = 1,
               .path = "/usr/bin/something",
               .path_size = 18},
};

static size_t write_spool(const struct recording *r, uint8_t *data, size_t capacity)
{
    int fd = memfd_create("spool", MFD_CLOEXEC);
    struct spool_writer *w = spool_writer_new();
    struct spool_module other = r->module;
    struct spool_writer_frame frame = {.module_id = 1, .address = r->module.file_offset + 1};
    ssize_t size;

    other.start += 0x10000;
    other.end += 0x10000;
    assert_true(fd >= 0 && w);
    assert_int_equal(spool_writer_open_fd(w, fd, &r->header), 0);
    assert_int_equal(spool_writer_annotate(w, 1, "host", "Linux 6.1.0 x86_64 here"), 0);
    assert_int_equal(spool_writer_module(w, &r->module, NULL), 0);
    assert_int_equal(spool_writer_module(w, &other, NULL), 0);
    assert_int_equal(spool_writer_sample(w, 100, r->module.pid, 12, &frame, 1), 0);
    assert_int_equal(spool_writer_finish(w), 0);
    spool_writer_free(w);
    size = pread(fd, data, capacity, 0);
    assert_true(size > 0 && (size_t)size < capacity);
    close(fd);
    return (size_t)size;
}

/* What the id is after reading so many bytes; false: there is none. */
static bool id_of(const uint8_t *data, size_t size, char id[CAPTURE_ID_SIZE])
{
    struct spool_reader *r = spool_reader_new();
    struct spool_record rec;
    bool known = false;

    assert_non_null(r);
    if (spool_reader_open_memory(r, data, size) == 0) {
        while (spool_reader_next(r, &rec) > 0)
            ;
        known = capture_id(r, id);
    }
    spool_reader_free(r);
    return known;
}

static void id_of_recording(const struct recording *r, char id[CAPTURE_ID_SIZE])
{
    uint8_t data[1024];

    assert_true(id_of(data, write_spool(r, data, sizeof data), id));
}

static void every_beginning_of_a_recording_has_its_id_or_none(void **state)
{
    uint8_t data[1024];
    char id[CAPTURE_ID_SIZE], cut[CAPTURE_ID_SIZE];
    size_t size = write_spool(&plain, data, sizeof data), known = 0;

    (void)state;
    assert_true(id_of(data, size, id));
    assert_int_equal(strspn(id, "0123456789abcdef"), 32);
    assert_int_equal(strlen(id), 32);
    for (size_t n = 0; n < size; n++) {
        if (!id_of(data, n, cut)) {
            assert_int_equal(known, 0);
            continue;
        }
        assert_string_equal(cut, id);
        known++;
    }
    assert_in_range(known, 10, size - 40);
}

static void the_id_stays_what_it_was_in_other_versions(void **state)
{
    char id[CAPTURE_ID_SIZE];

    (void)state;
    id_of_recording(&plain, id);
    assert_string_equal(id, "c45fcf702d84953192eec072472de365"); /* archives are full of them */
}

static void whatever_differs_makes_another_id(void **state)
{
    struct recording all[16];
    char ids[16][CAPTURE_ID_SIZE];
    size_t n = 0;

    (void)state;
    for (size_t i = 0; i < 16; i++)
        all[i] = plain;
    n++;
    all[n++].header.start_us++;
    all[n++].header.interval_ns++;
    all[n++].header.has_origin = false;
    all[n++].header.origin.monotonic_ns++;
    all[n++].header.origin.sign = -1;
    all[n++].header.origin.seconds++;
    all[n++].header.origin.nanoseconds++;
    all[n++].module.pid++;
    all[n++].module.start++;
    all[n++].module.end++;
    all[n++].module.file_offset++;
    all[n++].module.inode++;
    all[n++].module.dev_major++;
    all[n++].module.dev_minor++;
    all[n++].module.path = "/usr/bin/somethinh";
    assert_int_equal(n, 16);
    for (size_t i = 0; i < n; i++) {
        id_of_recording(&all[i], ids[i]);
        for (size_t k = 0; k < i; k++) {
            assert_string_not_equal(ids[i], ids[k]);
            assert_memory_not_equal(ids[i], ids[k], 16); /* nor half of it */
            assert_memory_not_equal(ids[i] + 16, ids[k] + 16, 16);
        }
    }
}

static void without_a_mapping_there_is_no_id(void **state)
{
    struct maker m;
    struct tool_input in;
    struct spool_record rec;
    char id[CAPTURE_ID_SIZE];

    (void)state;
    maker_open(&m, 0);
    maker_note(&m, 1, "host", "Linux");
    maker_put(&m, 1, 1, 1, "$18");
    maker_finish(&m);
    assert_int_equal(inputs_open(m.path, &in), 0);
    while (spool_reader_next(in.reader, &rec) > 0)
        ;
    assert_false(capture_id(in.reader, id));
    assert_string_equal(id, "");
    inputs_close(&in);
    maker_close(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_beginning_of_a_recording_has_its_id_or_none),
        cmocka_unit_test(the_id_stays_what_it_was_in_other_versions),
        cmocka_unit_test(whatever_differs_makes_another_id),
        cmocka_unit_test(without_a_mapping_there_is_no_id),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
