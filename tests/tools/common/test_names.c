/* SPDX-License-Identifier: MIT */
/* Which names and which Python state the samples of a process and a thread get, whatever comes
 * first in the file. */
#include "../spool2folded/make_spool.h"

#include "names.h"

/* Reads a finished spool through names; sources[i] gets the source of sample i. The reader must
 * live as long. */
struct reading {
    struct spool_reader *reader;
    struct names *names;
    uint32_t sources[64];
    size_t count;
    int fd;
};

static void read_all(struct reading *r, struct maker *m, bool per_thread)
{
    struct spool_record rec;
    int rc;

    maker_finish(m);
    memset(r, 0, sizeof *r);
    assert_int_equal(lseek(m->fd, 0, SEEK_SET), 0);
    r->reader = spool_reader_new();
    assert_int_equal(spool_reader_open_fd(r->reader, m->fd), 0);
    r->names = names_new(per_thread);
    while ((rc = spool_reader_next(r->reader, &rec)) > 0) {
        if (rec.type != SPOOL_RECORD_SAMPLE) {
            names_record(r->names, &rec);
            continue;
        }
        assert_true(r->count < 64);
        r->sources[r->count++] = names_source(r->names, &rec.sample);
    }
    assert_int_equal(rc, 0);
}

static void end(struct reading *r, struct maker *m)
{
    names_free(r->names);
    spool_reader_free(r->reader);
    maker_close(m);
}

static void expect_text(const char *data, size_t size, const char *expected)
{
    if (!expected) {
        assert_null(data);
        assert_int_equal(size, 0);
        return;
    }
    assert_non_null(data);
    assert_int_equal(size, strlen(expected));
    assert_memory_equal(data, expected, size);
}

static void expect_comm(const struct reading *r, size_t sample, const char *comm)
{
    struct source s;

    assert_true(sample < r->count);
    names_get_source(r->names, r->sources[sample], &s);
    expect_text(s.comm, s.comm_size, comm);
}

static void expect_thread(const struct reading *r, size_t sample, uint64_t tid, const char *thread)
{
    struct source s;

    assert_true(sample < r->count);
    names_get_source(r->names, r->sources[sample], &s);
    assert_int_equal(s.tid, tid);
    expect_text(s.thread, s.thread_size, thread);
}

static bool python(const struct reading *r, size_t sample)
{
    struct source s;

    assert_true(sample < r->count);
    names_get_source(r->names, r->sources[sample], &s);
    return s.python;
}

static void a_process_without_anything_has_no_name(void **state)
{
    struct maker m;
    struct reading r;
    size_t size;

    (void)state;
    maker_open(&m, 0);
    maker_put(&m, 1, 5, 5, "$10");
    read_all(&r, &m, false);
    expect_comm(&r, 0, NULL);
    assert_int_equal(names_source_count(r.names), 1);
    assert_null(names_of_process(r.names, 5, &size));
    assert_null(names_of_process(r.names, 6, &size));
    assert_null(names_of_thread(r.names, 5, 5, &size));
    assert_int_equal(size, 0);
    assert_false(names_has_python_marks(r.names));
    end(&r, &m);
}

static void without_annotations_the_first_file_gives_the_name(void **state)
{
    struct maker m;
    struct reading r;
    size_t size;
    const char *name;

    (void)state;
    maker_open(&m, 0);
    maker_put(&m, 1, 5, 5, "$10"); /* before any module: served by what comes later */
    maker_module(&m, 6, 0x1000, 0x1000, "/other/process");
    maker_module(&m, 5, 0x1000, 0x1000, "");
    maker_module(&m, 5, 0x2000, 0x1000, "//anon");
    maker_module(&m, 5, 0x3000, 0x1000, "[vdso]");
    maker_module(&m, 5, 0x4000, 0x1000, "/memfd:x (deleted)");
    maker_kernel_module(&m, 0x5000, 0x1000, "/lib/k.ko");
    maker_module(&m, 5, 0x6000, 0x1000, "/usr/bin/app (deleted)");
    maker_module(&m, 5, 0x7000, 0x1000, "/usr/lib/libc.so.6");
    maker_put(&m, 2, 5, 5, "$10");
    read_all(&r, &m, false);
    expect_comm(&r, 0, "app");
    expect_comm(&r, 1, "app");
    assert_int_equal(r.sources[0], r.sources[1]);
    name = names_of_process(r.names, 5, &size);
    expect_text(name, size, "app");
    name = names_of_process(r.names, 6, &size);
    expect_text(name, size, "process");
    end(&r, &m);
}

static void a_deactivated_process_takes_the_name_of_its_next_first_file(void **state)
{
    struct maker m;
    struct reading r;

    (void)state;
    maker_open(&m, 0);
    maker_module(&m, 5, 0x1000, 0x1000, "/bin/sh");
    maker_put(&m, 1, 5, 5, "$10");
    assert_int_equal(spool_writer_deactivate_process(m.writer, 5), 0);
    maker_put(&m, 2, 5, 5, "$20"); /* before the modules of the new program */
    maker_module(&m, 5, 0x1000, 0x1000, "/bin/ls");
    maker_put(&m, 3, 5, 5, "$30");
    assert_int_equal(spool_writer_deactivate_process(m.writer, 5), 0);
    maker_put(&m, 4, 5, 5, "$40"); /* after its end: the last name stays */
    assert_int_equal(spool_writer_deactivate_process(m.writer, 5), 0);
    maker_put(&m, 5, 5, 5, "$50");
    read_all(&r, &m, false);
    expect_comm(&r, 0, "sh");
    expect_comm(&r, 1, "ls");
    expect_comm(&r, 2, "ls");
    expect_comm(&r, 3, "ls");
    expect_comm(&r, 4, "ls");
    end(&r, &m);
}

static void samples_before_the_first_module_take_the_name_of_a_later_program(void **state)
{
    struct maker m;
    struct reading r;

    (void)state;
    maker_open(&m, 0);
    maker_put(&m, 1, 5, 5, "$10");
    assert_int_equal(spool_writer_deactivate_process(m.writer, 5), 0);
    maker_module(&m, 5, 0x1000, 0x1000, "/bin/ls");
    maker_module(&m, 5, 0x2000, 0x1000, "/lib/libc.so.6");
    read_all(&r, &m, false);
    expect_comm(&r, 0, "ls");
    end(&r, &m);
}

static void retiring_a_single_module_changes_no_name(void **state)
{
    struct maker m;
    struct reading r;
    uint32_t id;

    (void)state;
    maker_open(&m, 0);
    id = maker_module(&m, 5, 0x1000, 0x1000, "/bin/app");
    assert_int_equal(spool_writer_deactivate_module(m.writer, id), 0);
    maker_module(&m, 5, 0x1000, 0x1000, "/lib/plugin.so");
    maker_put(&m, 1, 5, 5, "$10");
    read_all(&r, &m, false);
    expect_comm(&r, 0, "app");
    end(&r, &m);
}

static void the_latest_annotation_before_a_sample_names_its_process(void **state)
{
    struct maker m;
    struct reading r;
    const char *name;
    size_t size;

    (void)state;
    maker_open(&m, 0);
    maker_module(&m, 5, 0x1000, 0x1000, "/bin/file");
    maker_put(&m, 1, 5, 5, "$10"); /* the first after it */
    maker_note(&m, 5, "comm", "one");
    maker_put(&m, 2, 5, 5, "$10");
    maker_note(&m, 6, "comm", "other");
    maker_put(&m, 3, 5, 5, "$10");
    maker_note(&m, 5, "comm", "two");
    maker_put(&m, 4, 5, 6, "$10");
    maker_note(&m, 5, "comm", "two");
    maker_put(&m, 5, 5, 5, "$10");
    maker_note(&m, 5, "comm", "never used");
    read_all(&r, &m, false);
    expect_comm(&r, 0, "one");
    expect_comm(&r, 1, "one");
    expect_comm(&r, 2, "one");
    expect_comm(&r, 3, "two");
    expect_comm(&r, 4, "two");
    assert_int_equal(r.sources[1], r.sources[2]);
    assert_int_equal(r.sources[3], r.sources[4]); /* no thread, and no new name */
    assert_int_equal(names_source_count(r.names), 3);
    name = names_of_process(r.names, 5, &size);
    expect_text(name, size, "never used");
    end(&r, &m);
}

static void an_annotation_is_no_file_and_a_malformed_one_is_no_name(void **state)
{
    struct maker m;
    struct reading r;
    struct spool_module malformed = {.pid = 5, .path = "[spool:thread] five x"};

    (void)state;
    maker_open(&m, 0);
    malformed.path_size = strlen(malformed.path);
    assert_int_equal(spool_writer_module(m.writer, &malformed, NULL), 0);
    maker_note(&m, 5, "later-key", "value");
    maker_put(&m, 1, 5, 5, "$10");
    read_all(&r, &m, true);
    expect_comm(&r, 0, NULL);
    expect_thread(&r, 0, 5, NULL);
    end(&r, &m);
}

static void threads_have_the_name_that_holds_for_the_sample(void **state)
{
    struct maker m;
    struct reading r;
    const char *name;
    size_t size;

    (void)state;
    maker_open(&m, 0);
    maker_put(&m, 1, 5, 5, "$10");
    maker_put(&m, 2, 5, 6, "$10");
    maker_note(&m, 5, "thread", "6 worker 1");
    maker_put(&m, 3, 5, 5, "$10");
    maker_put(&m, 4, 5, 6, "$10");
    maker_note(&m, 7, "thread", "6 not this process");
    maker_note(&m, 5, "thread", "6 idle");
    maker_put(&m, 5, 5, 6, "$10");
    maker_put(&m, 6, 5, 5, "$10");
    read_all(&r, &m, true);
    expect_thread(&r, 0, 5, NULL);
    expect_thread(&r, 1, 6, "worker 1");
    expect_thread(&r, 2, 5, NULL);
    expect_thread(&r, 3, 6, "worker 1");
    expect_thread(&r, 4, 6, "idle");
    expect_thread(&r, 5, 5, NULL);
    name = names_of_thread(r.names, 5, 6, &size);
    expect_text(name, size, "idle");
    end(&r, &m);
}

static void a_renamed_thread_makes_no_new_source_of_its_siblings(void **state)
{
    struct maker m;
    struct reading r;

    (void)state;
    maker_open(&m, 0);
    for (unsigned i = 0; i < 20; i++) {
        char value[32];

        snprintf(value, sizeof value, "%u worker-%u", 6 + i, i);
        maker_note(&m, 5, "thread", value);
        maker_put(&m, 2 * i, 5, 6 + i, "$10");
        maker_put(&m, 2 * i + 1, 5, 5, "$10");
    }
    read_all(&r, &m, true);
    assert_int_equal(names_source_count(r.names), 21);
    for (size_t i = 1; i < 40; i += 2)
        assert_int_equal(r.sources[i], r.sources[1]);
    end(&r, &m);
}

static void thread_names_do_not_split_a_process(void **state)
{
    struct maker m;
    struct reading r;
    struct source s;

    (void)state;
    maker_open(&m, 0);
    maker_note(&m, 5, "comm", "app");
    maker_note(&m, 5, "thread", "5 one");
    maker_put(&m, 1, 5, 5, "$10");
    maker_note(&m, 5, "thread", "5 two");
    maker_put(&m, 2, 5, 5, "$10");
    maker_put(&m, 3, 5, 6, "$10");
    read_all(&r, &m, false);
    assert_int_equal(names_source_count(r.names), 1);
    names_get_source(r.names, 0, &s);
    assert_null(s.thread);
    expect_comm(&r, 2, "app");
    end(&r, &m);
}

static void two_thread_records_with_the_same_ids_share_their_name(void **state)
{
    struct maker m;
    struct reading r;
    struct spool_record thread = {.type = SPOOL_RECORD_THREAD}, rec;

    (void)state;
    maker_open(&m, 0);
    rec = (struct spool_record){.type = SPOOL_RECORD_FRAME};
    rec.frame.kind = SPOOL_FRAME_UNPINNED;
    rec.frame.module_id = SPOOL_NO_ID;
    rec.frame.abs = rec.frame.rel = 16;
    assert_int_equal(spool_writer_put(m.writer, &rec), 0);
    rec = (struct spool_record){.type = SPOOL_RECORD_STACK};
    rec.stack.prefix = SPOOL_NO_ID;
    assert_int_equal(spool_writer_put(m.writer, &rec), 0);
    for (uint32_t i = 0; i < 2; i++) {
        thread.thread = (struct spool_thread){.id = i, .pid = 5, .tid = 6};
        assert_int_equal(spool_writer_put(m.writer, &thread), 0);
    }
    for (uint32_t i = 0; i < 4; i++) {
        rec = (struct spool_record){.type = SPOOL_RECORD_SAMPLE};
        rec.sample.time_ns = i;
        rec.sample.thread = i % 2;
        assert_int_equal(spool_writer_put(m.writer, &rec), 0);
        if (i == 1)
            maker_note(&m, 5, "thread", "6 late");
    }
    read_all(&r, &m, true);
    for (size_t i = 0; i < 4; i++)
        expect_thread(&r, i, 6, "late");
    end(&r, &m);
}

static void python_holds_from_its_record_on(void **state)
{
    struct maker m;
    struct reading r;

    (void)state;
    maker_open(&m, 0);
    maker_module(&m, 5, 0x1000, 0x1000, "/bin/python3");
    maker_put(&m, 1, 5, 5, "$10");
    assert_int_equal(spool_writer_python(m.writer, 0, 5, true), 0);
    maker_put(&m, 2, 5, 5, "$10");
    maker_put(&m, 3, 6, 6, "$10");
    assert_int_equal(spool_writer_python(m.writer, 9, 5, true), 0);
    maker_put(&m, 4, 5, 5, "$10");
    read_all(&r, &m, false);
    assert_true(names_has_python_marks(r.names));
    assert_false(python(&r, 0));
    assert_true(python(&r, 1));
    assert_false(python(&r, 2));
    assert_true(python(&r, 3));
    assert_int_equal(r.sources[1], r.sources[3]);
    end(&r, &m);
}

static void an_exit_leaves_a_process_python_and_an_exec_does_not(void **state)
{
    struct maker m;
    struct reading r;

    (void)state;
    maker_open(&m, 0);
    for (int32_t pid = 5; pid <= 7; pid++)
        assert_int_equal(spool_writer_python(m.writer, 0, pid, true), 0);
    for (int32_t pid = 5; pid <= 7; pid++)
        assert_int_equal(spool_writer_python(m.writer, 9, pid, false), 0);
    maker_put(&m, 1, 5, 5, "$10");
    maker_note(&m, 5, "comm", "an annotation is no module");
    maker_put(&m, 2, 5, 5, "$10");
    maker_put(&m, 3, 6, 6, "$10"); /* between off and the modules of the next program */
    maker_module(&m, 6, 0x1000, 0x1000, "/bin/ls");
    maker_put(&m, 4, 6, 6, "$10");
    assert_int_equal(spool_writer_python(m.writer, 9, 7, true), 0); /* on again: the off is void */
    maker_module(&m, 7, 0x1000, 0x1000, "/bin/python3");
    maker_put(&m, 5, 7, 7, "$10");
    maker_module(&m, 5, 0x1000, 0x1000, "[vdso]"); /* any module of the process counts */
    maker_put(&m, 6, 5, 5, "$10");
    assert_int_equal(spool_writer_python(m.writer, 9, 5, true), 0);
    maker_put(&m, 7, 5, 5, "$10");
    read_all(&r, &m, false);
    assert_true(python(&r, 0));
    assert_true(python(&r, 1));
    assert_true(python(&r, 2));
    assert_false(python(&r, 3));
    assert_true(python(&r, 4));
    assert_false(python(&r, 5));
    assert_true(python(&r, 6));
    end(&r, &m);
}

static void off_alone_is_a_mark_too(void **state)
{
    struct maker m;
    struct reading r;

    (void)state;
    maker_open(&m, 0);
    assert_int_equal(spool_writer_python(m.writer, 0, 5, false), 0);
    maker_put(&m, 1, 5, 5, "$10");
    read_all(&r, &m, true);
    assert_true(names_has_python_marks(r.names));
    assert_false(python(&r, 0));
    end(&r, &m);
}

static void many_processes_and_threads_are_all_found_again(void **state)
{
    struct names *n = names_new(true);
    struct spool_record rec;
    char texts[500][16];

    (void)state;
    for (int32_t i = 0; i < 500; i++) {
        rec = (struct spool_record){.type = SPOOL_RECORD_THREAD};
        rec.thread = (struct spool_thread){
            .id = (uint32_t)i, .pid = i * 64 - 3000, .tid = (uint64_t)i << 32};
        names_record(n, &rec);
        snprintf(texts[i], sizeof texts[i], "t%d", i);
        rec = (struct spool_record){.type = SPOOL_RECORD_ANNOTATION};
        rec.annotation.pid = i * 64 - 3000;
        rec.annotation.key = SPOOL_NOTE_THREAD;
        rec.annotation.number[0] = (uint64_t)i << 32;
        rec.annotation.text = texts[i];
        rec.annotation.text_size = strlen(texts[i]);
        names_record(n, &rec);
    }
    for (int32_t i = 0; i < 500; i++) {
        struct spool_sample sample = {.thread = (uint32_t)i};
        struct source s;
        uint32_t source = names_source(n, &sample);

        assert_int_equal(source, names_source(n, &sample));
        names_get_source(n, source, &s);
        assert_int_equal(s.pid, i * 64 - 3000);
        assert_true(s.tid == (uint64_t)i << 32);
        expect_text(s.thread, s.thread_size, texts[i]);
    }
    names_free(n);
    names_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_process_without_anything_has_no_name),
        cmocka_unit_test(without_annotations_the_first_file_gives_the_name),
        cmocka_unit_test(a_deactivated_process_takes_the_name_of_its_next_first_file),
        cmocka_unit_test(samples_before_the_first_module_take_the_name_of_a_later_program),
        cmocka_unit_test(retiring_a_single_module_changes_no_name),
        cmocka_unit_test(the_latest_annotation_before_a_sample_names_its_process),
        cmocka_unit_test(an_annotation_is_no_file_and_a_malformed_one_is_no_name),
        cmocka_unit_test(threads_have_the_name_that_holds_for_the_sample),
        cmocka_unit_test(a_renamed_thread_makes_no_new_source_of_its_siblings),
        cmocka_unit_test(thread_names_do_not_split_a_process),
        cmocka_unit_test(two_thread_records_with_the_same_ids_share_their_name),
        cmocka_unit_test(python_holds_from_its_record_on),
        cmocka_unit_test(an_exit_leaves_a_process_python_and_an_exec_does_not),
        cmocka_unit_test(off_alone_is_a_mark_too),
        cmocka_unit_test(many_processes_and_threads_are_all_found_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
