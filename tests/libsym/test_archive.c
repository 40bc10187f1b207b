/* SPDX-License-Identifier: MIT */
/* Symbol archives, folders and tar files: what is found, what is listed, and that nothing leads out. */
#include "archive.h"
#include "tar_image.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[] = "/tmp/test_archive.XXXXXX";
static struct tar_image image;
static char why[512];

static const char *at(const char *name)
{
    static char paths[4][512];
    static unsigned next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof(paths[0]), "%s/%s", folder, name);
    return path;
}

static void put(const char *name, const char *text)
{
    FILE *f = fopen(at(name), "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    fclose(f);
}

static int make_folder(void **state)
{
    (void)state;
    if (mkdtemp(folder) == NULL || mkdir(at("in"), 0700) != 0 || mkdir(at("in/d"), 0700) != 0 ||
        mkdir(at("in/d-e"), 0700) != 0)
        return -1;
    put("outside", "secret");
    put("in/a", "A");
    put("in/d/b", "B");
    char far[512];
    snprintf(far, sizeof(far), "%s/outside", folder);
    return symlink("../../outside", at("in/d/climbs")) != 0 ||
           symlink("/a", at("in/d/root")) != 0 || symlink(far, at("in/far")) != 0 ||
           symlink("loop", at("in/loop")) != 0 || symlink("d", at("in/to_d")) != 0 ||
           mkfifo(at("in/fifo"), 0600) != 0;
}

static int remove_folder(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof(command), "rm -rf '%s'", folder);
    return system(command);
}

static void begin(void)
{
    image.size = 0;
}

/* An open archive; NULL with the code, and `why` tells. */
static int open_archive(const char *path, struct sym_archive **a)
{
    *a = sym_archive_new();
    assert_non_null(*a);
    int rc = sym_archive_open(*a, path);
    if (rc == 0)
        return 0;
    snprintf(why, sizeof(why), "%s", sym_archive_error(*a));
    sym_archive_free(*a);
    *a = NULL;
    return rc;
}

/* The image as an archive, packed or not. */
static int open_image(bool gzip, struct sym_archive **a)
{
    const char *path = at("image");
    if (gzip)
        tar_image_write_gzip(&image, path);
    else
        tar_image_write(&image, path);
    return open_archive(path, a);
}

/* What is in a file; "!CODE" for an error. */
static const char *text_of(const struct sym_archive *a, const char *name)
{
    static char text[4096];
    struct stat st;
    int fd;
    int rc = sym_archive_open_file(a, name, &fd);
    if (rc != 0) {
        snprintf(text, sizeof(text), "!%s", sym_error_name(rc));
        return text;
    }
    assert_int_equal(fstat(fd, &st), 0);
    assert_true(S_ISREG(st.st_mode));
    assert_true((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
    ssize_t n = read(fd, text, sizeof(text) - 1);
    assert_int_equal(n, st.st_size);
    close(fd);
    text[n] = '\0';
    return text;
}

static int add_name(void *user, const char *name, bool is_folder)
{
    strcat(user, name);
    strcat(user, is_folder ? "/ " : " ");
    return 0;
}

static const char *list(const struct sym_archive *a, const char *name)
{
    static char text[4096];
    text[0] = '\0';
    assert_int_equal(sym_archive_list(a, name, add_name, text), 0);
    return text;
}

static int stop_at_once(void *user, const char *name, bool is_folder)
{
    (void)user, (void)name, (void)is_folder;
    return 7;
}

/* The tree of make_folder. */
static void add_tree(void)
{
    begin();
    tar_image_file(&image, "./a", "A", 1);
    tar_image_member(&image, "./d/", '5', "", "", 0);
    tar_image_file(&image, ".//d/./b", "B", 1);
    tar_image_member(&image, "d-e", '5', "", "", 0);
    tar_image_member(&image, "d/climbs", '2', "../../outside", "", 0);
    tar_image_member(&image, "d/root", '2', "/a", "", 0);
    tar_image_member(&image, "far", '2', "/tmp/outside", "", 0);
    tar_image_member(&image, "fifo", '6', "", "", 0);
    tar_image_member(&image, "loop", '2', "loop", "", 0);
    tar_image_member(&image, "to_d", '2', "d", "", 0);
    tar_image_end(&image);
}

/* The same, whatever kind of archive it is. */
static void check_tree(const struct sym_archive *a)
{
    assert_string_equal(text_of(a, "a"), "A");
    assert_string_equal(text_of(a, "/a"), "A");
    assert_string_equal(text_of(a, "d//./b"), "B");
    assert_string_equal(text_of(a, "d/../a"), "A");
    assert_string_equal(text_of(a, "to_d/b"), "B");
    assert_string_equal(text_of(a, "to_d/../a"), "A");
    assert_string_equal(text_of(a, "d/root"), "A");
    assert_string_equal(text_of(a, "none"), "!SYM_ERR_NOT_FOUND");
    assert_string_equal(text_of(a, "none/../a"), "!SYM_ERR_NOT_FOUND");
    assert_string_equal(text_of(a, "a/b"), "!SYM_ERR_NOT_FOUND");
    assert_string_equal(text_of(a, "d"), "!SYM_ERR_FORMAT");
    assert_string_equal(text_of(a, "loop"), "!SYM_ERR_FORMAT");
    /* Out of it. */
    assert_string_equal(text_of(a, "../outside"), "!SYM_ERR_NOT_FOUND");
    assert_string_equal(text_of(a, "../a"), "A");
    assert_string_equal(text_of(a, "d/climbs"), "!SYM_ERR_NOT_FOUND");
    assert_string_equal(text_of(a, "far"), "!SYM_ERR_NOT_FOUND");
    assert_string_equal(text_of(a, at("outside")), "!SYM_ERR_NOT_FOUND");
    /* Lists. */
    assert_string_equal(list(a, "d"), "b climbs root ");
    assert_string_equal(list(a, "to_d"), "b climbs root ");
    assert_string_equal(list(a, "d-e"), "");
    assert_string_equal(list(a, "none"), "");
    assert_string_equal(list(a, "a"), "");
    assert_string_equal(list(a, "loop"), "");
    assert_string_equal(list(a, ".."), list(a, ""));
    assert_int_equal(sym_archive_list(a, "", stop_at_once, NULL), 7);
    char *link = symint_archive_read_link(a, "/to_d/root");
    assert_string_equal(link, "/a");
    free(link);
    assert_null(symint_archive_read_link(a, "a"));
    assert_null(symint_archive_read_link(a, "none"));
}

static void a_folder_is_an_archive(void **state)
{
    (void)state;
    struct sym_archive *a;
    assert_int_equal(open_archive(at("in"), &a), 0);
    assert_string_equal(sym_archive_fault(a), "");
    check_tree(a);
    assert_string_equal(list(a, ""), "a d/ d-e/ far fifo loop to_d ");
    assert_string_equal(text_of(a, "fifo"), "!SYM_ERR_FORMAT");
    sym_archive_free(a);
    sym_archive_free(NULL);
}

static void a_tar_file_is_an_archive_packed_or_not(void **state)
{
    (void)state;
    for (int gzip = 0; gzip < 2; gzip++) {
        struct sym_archive *a;
        add_tree();
        assert_int_equal(open_image(gzip, &a), 0);
        assert_string_equal(sym_archive_fault(a), "");
        check_tree(a);
        assert_string_equal(list(a, ""), "a d/ d-e/ far loop to_d ");
        sym_archive_free(a);
    }
}

static void an_archive_is_opened_once_and_before_it_is_read(void **state)
{
    (void)state;
    struct sym_archive *a = sym_archive_new();
    int fd;
    assert_non_null(a);
    assert_string_equal(sym_archive_error(a), "no error");
    assert_string_equal(sym_archive_fault(a), "");
    assert_int_equal(sym_archive_open_file(a, "a", &fd), SYM_ERR_MISUSE);
    assert_int_equal(sym_archive_list(a, "", NULL, NULL), SYM_ERR_MISUSE);
    assert_int_equal(sym_archive_open(a, at("in")), 0);
    assert_string_equal(sym_archive_error(a), "no error");
    assert_int_equal(sym_archive_open(a, at("in")), SYM_ERR_MISUSE);
    assert_non_null(strstr(sym_archive_error(a), "in: the archive was opened before"));
    check_tree(a);
    sym_archive_free(a);
    a = sym_archive_new();
    assert_non_null(a);
    assert_int_equal(sym_archive_open(a, at("none")), SYM_ERR_NOT_FOUND);
    assert_int_equal(sym_archive_open(a, at("in")), SYM_ERR_MISUSE);
    assert_non_null(strstr(sym_archive_error(a), "No such file")); /* the first error stays */
    assert_int_equal(sym_archive_open_file(a, "a", &fd), SYM_ERR_MISUSE);
    sym_archive_free(a);
}

static void what_is_neither_is_refused(void **state)
{
    (void)state;
    struct sym_archive *a;
    assert_int_equal(open_archive(at("none"), &a), SYM_ERR_NOT_FOUND);
    assert_string_equal(strrchr(why, '/'), "/none: No such file or directory");
    assert_int_equal(open_archive(at("in/fifo"), &a), SYM_ERR_FORMAT);
    assert_int_equal(open_archive("/dev/null", &a), SYM_ERR_FORMAT);
    assert_int_equal(open_archive(at("outside"), &a), SYM_ERR_FORMAT);
    assert_string_equal(strrchr(why, '/'), "/outside: neither a folder nor a tar file");
    begin();
    memset(image.bytes, 0, 512);
    memset(image.bytes + 512, 'x', 512); /* a disk, perhaps */
    image.size = 1024;
    assert_int_equal(open_image(false, &a), SYM_ERR_FORMAT);
    assert_null(a);
    begin();
    tar_image_end(&image);
    assert_int_equal(open_image(false, &a), 0);
    assert_string_equal(list(a, ""), "");
    sym_archive_free(a);
}

static void names_that_lead_out_are_left_out(void **state)
{
    (void)state;
    struct sym_archive *a;
    begin();
    tar_image_file(&image, "/absolute", "x", 1);
    tar_image_file(&image, "../up", "x", 1);
    tar_image_file(&image, "d/../../up", "x", 1);
    tar_image_file(&image, "d/..", "x", 1);
    tar_image_file(&image, "..d/f..", "good", 4);
    tar_image_member(&image, "h", '1', "../../etc/passwd", "", 0);
    tar_image_member(&image, "h2", '1', "/etc/passwd", "", 0);
    tar_image_end(&image);
    assert_int_equal(open_image(false, &a), 0);
    assert_string_equal(list(a, ""), "..d/ ");
    assert_string_equal(text_of(a, "..d/f.."), "good");
    assert_string_equal(sym_archive_fault(a),
                        "6 members left out: named nothing, or something outside the archive");
    sym_archive_free(a);
}

static void the_last_member_of_a_name_counts(void **state)
{
    (void)state;
    for (int gzip = 0; gzip < 2; gzip++) {
        struct sym_archive *a;
        begin();
        tar_image_file(&image, "a", "first", 5);
        tar_image_member(&image, "h", '1', "./a", "", 0);
        tar_image_member(&image, "hh", '1', "h", "", 0);
        tar_image_file(&image, "./a", "second", 6);
        tar_image_member(&image, "self", '1', "self", "", 0);
        tar_image_member(&image, "early", '1', "late", "", 0);
        tar_image_file(&image, "late", "x", 1);
        tar_image_end(&image);
        assert_int_equal(open_image(gzip, &a), 0);
        assert_string_equal(text_of(a, "a"), "second");
        /* A hard link is to what was there when it was made. */
        assert_string_equal(text_of(a, "h"), "first");
        assert_string_equal(text_of(a, "hh"), "first");
        assert_string_equal(list(a, ""), "a h hh late ");
        assert_string_equal(sym_archive_fault(a),
                            "2 hard links left out: to nothing that comes before");
        sym_archive_free(a);
    }
}

static void long_names_and_records_of_pax_are_read(void **state)
{
    (void)state;
    struct sym_archive *a;
    struct stat st;
    char name[300];
    char wanted[310];
    int fd;
    begin();
    memset(name, 'n', 299);
    name[299] = '\0';
    memcpy(name, "dir/", 4);
    tar_image_member(&image, "././@LongLink", 'L', "", name, 300);
    tar_image_file(&image, "cut", "long", 4);
    tar_image_member(&image, "././@LongLink", 'K', "", name, 300);
    tar_image_member(&image, "to_long", '2', "cut", "", 0);
    static const char global[] = "15 path=global\n";
    tar_image_member(&image, "g", 'g', "", global, sizeof(global) - 1);
    static const char records[] = "16 path=records\n12 size=005\n23 mtime=1500000000.25\n";
    tar_image_member(&image, "x", 'x', "", records, sizeof(records) - 1);
    tar_image_header(&image, "cut", '0', "", 0);
    memset(image.bytes + image.size, 0, 512);
    memcpy(image.bytes + image.size, "12345", 5);
    image.size += 512;
    /* A prefix, and a size in binary. */
    size_t h = tar_image_file(&image, "f", "p", 1);
    memcpy(image.bytes + h + 345, "pre/fix", 7);
    memset(image.bytes + h + 124, 0, 12);
    image.bytes[h + 124] = 0x80;
    image.bytes[h + 135] = 1;
    tar_image_sum(&image, h);
    h = tar_image_file(&image, "old/", "", 0); /* as V7 had folders */
    memset(image.bytes + h + 257, 0, 255);
    tar_image_sum(&image, h);
    tar_image_end(&image);
    assert_int_equal(open_image(false, &a), 0);
    assert_string_equal(sym_archive_fault(a), "");
    assert_string_equal(text_of(a, name), "long");
    assert_string_equal(text_of(a, "to_long"), "long");
    assert_string_equal(text_of(a, "records"), "12345");
    assert_int_equal(sym_archive_open_file(a, "records", &fd), 0);
    assert_int_equal(fstat(fd, &st), 0);
    assert_int_equal(st.st_mtim.tv_sec, 1500000000);
    assert_int_equal(st.st_mtim.tv_nsec, 250000000);
    close(fd);
    assert_string_equal(text_of(a, "pre/fix/f"), "p");
    snprintf(wanted, sizeof(wanted), "dir/ old/ pre/ records to_long ");
    assert_string_equal(list(a, ""), wanted);
    sym_archive_free(a);
}

static void sparse_files_are_left_out_and_said(void **state)
{
    (void)state;
    struct sym_archive *a;
    begin();
    size_t h = tar_image_header(&image, "gnu", 'S', "", 512);
    image.bytes[h + 482] = 1; /* one more block of pieces */
    tar_image_sum(&image, h);
    memset(image.bytes + image.size, 0, 1024);
    image.size += 1024;
    static const char records[] = "22 GNU.sparse.major=1\n";
    tar_image_member(&image, "x", 'x', "", records, sizeof(records) - 1);
    tar_image_file(&image, "pax", "x", 1);
    tar_image_file(&image, "whole", "x", 1);
    tar_image_end(&image);
    assert_int_equal(open_image(false, &a), 0);
    assert_string_equal(list(a, ""), "whole ");
    assert_string_equal(sym_archive_fault(a), "2 sparse files left out");
    sym_archive_free(a);
}

/* ---- damage ---- */

/* Whatever an archive is, it can be asked. */
static void ask_all(const struct sym_archive *a)
{
    static const char *const names[] = {"one", "two", "d/three", "l"};
    list(a, "");
    list(a, "d");
    for (size_t i = 0; i < 4; i++) {
        const char *text = text_of(a, names[i]);
        assert_true(text[0] == '!' || strlen(text) <= 700);
    }
}

static void add_small(void)
{
    static char bytes[700];
    memset(bytes, '2', sizeof(bytes));
    begin();
    tar_image_file(&image, "one", "1", 1);
    tar_image_file(&image, "two", bytes, sizeof(bytes));
    tar_image_file(&image, "d/three", "3", 1);
    tar_image_member(&image, "l", '2', "d/three", "", 0);
    tar_image_end(&image);
}

static void put_bytes(const uint8_t *bytes, size_t size)
{
    unlink(at("image")); /* a file that is cut is written to disk at once */
    FILE *f = fopen(at("image"), "w");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, size, f), size);
    fclose(f);
}

static uint8_t *small_image(bool gzip, size_t *size)
{
    add_small();
    if (gzip)
        tar_image_write_gzip(&image, at("image"));
    else
        tar_image_write(&image, at("image"));
    FILE *f = fopen(at("image"), "r");
    uint8_t *bytes = malloc(sizeof(image.bytes));
    assert_non_null(f);
    assert_non_null(bytes);
    *size = fread(bytes, 1, sizeof(image.bytes), f);
    fclose(f);
    return bytes;
}

static void what_is_before_a_cut_can_be_used(void **state)
{
    (void)state;
    for (int gzip = 0; gzip < 2; gzip++) {
        size_t size;
        uint8_t *bytes = small_image(gzip, &size);
        for (size_t cut = 0; cut < size; cut++) {
            struct sym_archive *a;
            put_bytes(bytes, cut);
            int rc = open_archive(at("image"), &a);
            if (rc != 0) {
                assert_int_equal(rc, SYM_ERR_FORMAT);
                assert_true(why[0] != '\0');
                assert_true(gzip || cut < 513);
                continue;
            }
            ask_all(a);
            if (!gzip) {
                assert_string_equal(text_of(a, "one"), "1");
                assert_int_equal(text_of(a, "two")[0] == '2', cut >= 1024 + 512 + 700);
                assert_string_equal(text_of(a, "d/three"),
                                    cut >= 1024 + 1536 + 513 ? "3" : "!SYM_ERR_NOT_FOUND");
                assert_int_equal(sym_archive_fault(a)[0] != '\0', cut < size - 512);
            } else {
                assert_true(sym_archive_fault(a)[0] != '\0');
            }
            sym_archive_free(a);
        }
        free(bytes);
    }
}

static void flipped_bits_do_no_harm(void **state)
{
    (void)state;
    for (int gzip = 0; gzip < 2; gzip++) {
        size_t size;
        uint8_t *bytes = small_image(gzip, &size);
        for (size_t i = 0; i < size * 8; i += gzip ? 1 : 5) {
            struct sym_archive *a;
            bytes[i / 8] ^= (uint8_t)(1u << i % 8);
            put_bytes(bytes, size);
            int rc = open_archive(at("image"), &a);
            if (rc == 0) {
                ask_all(a);
                /* Other bits may stand for the same bytes; else the checksum tells. */
                if (gzip && sym_archive_fault(a)[0] == '\0') {
                    assert_string_equal(text_of(a, "one"), "1");
                    assert_string_equal(text_of(a, "l"), "3");
                    assert_int_equal(strspn(text_of(a, "two"), "2"), 700);
                }
            } else {
                assert_int_equal(rc, SYM_ERR_FORMAT);
            }
            sym_archive_free(a);
            bytes[i / 8] ^= (uint8_t)(1u << i % 8);
        }
        free(bytes);
    }
}

static void a_fault_says_where_it_is(void **state)
{
    (void)state;
    struct sym_archive *a;
    add_small();
    image.bytes[1024] ^= 1;
    assert_int_equal(open_image(false, &a), 0);
    assert_string_equal(sym_archive_fault(a), "the member at byte 1024 has a damaged header");
    sym_archive_free(a);
    assert_int_equal(open_image(true, &a), 0);
    assert_string_equal(sym_archive_fault(a),
                        "the member at byte 1024 of the unpacked file has a damaged header");
    sym_archive_free(a);
    add_small();
    image.size -= 1024;
    assert_int_equal(open_image(false, &a), 0);
    assert_string_equal(sym_archive_fault(a), "it ends at byte 4096 without an end mark");
    sym_archive_free(a);
}

static void sizes_are_claims(void **state)
{
    (void)state;
    static const unsigned long long sizes[] = {200000000, 077777777777, 2000};
    for (size_t i = 0; i < 3; i++)
        for (int gzip = 0; gzip < 2; gzip++) {
            struct sym_archive *a;
            begin();
            tar_image_file(&image, "one", "1", 1);
            tar_image_header(&image, "liar", '0', "", sizes[i]);
            tar_image_end(&image);
            assert_int_equal(open_image(gzip, &a), 0);
            assert_string_equal(text_of(a, "one"), "1");
            assert_string_equal(list(a, ""), "one ");
            assert_true(strstr(sym_archive_fault(a), "the member at byte 1024") != NULL);
            sym_archive_free(a);
        }
    /* The same before names and records. */
    for (int kind = 0; kind < 3; kind++) {
        struct sym_archive *a;
        begin();
        tar_image_file(&image, "one", "1", 1);
        tar_image_header(&image, "x", "LKx"[kind], "", 077777777777);
        tar_image_end(&image);
        assert_int_equal(open_image(kind != 0, &a), 0);
        assert_true(sym_archive_fault(a)[0] != '\0');
        sym_archive_free(a);
    }
}

static void records_that_contradict_themselves_end_it(void **state)
{
    (void)state;
    static const char *const records[] = {
        "3 path=x\n",   "99 path=x\n",   "x path=x\n",
        "9 path=xy",    "10 pathxxxx\n", " path=x\n",
        "11 size=1x\n", "path",          "99999999999999999999 a=b\n"};
    for (size_t i = 0; i < sizeof(records) / sizeof(records[0]); i++) {
        struct sym_archive *a;
        begin();
        tar_image_file(&image, "one", "1", 1);
        tar_image_member(&image, "x", 'x', "", records[i], strlen(records[i]));
        tar_image_file(&image, "two", "2", 1);
        tar_image_end(&image);
        assert_int_equal(open_image(false, &a), 0);
        assert_string_equal(sym_archive_fault(a),
                            "the member at byte 1024 has damaged pax records");
        assert_string_equal(list(a, ""), "one ");
        sym_archive_free(a);
    }
}

/* 20 MiB of zeros behind the end, and a member that unpacks into as many: neither is memory. */
static void what_gzip_blows_up_is_not_kept(void **state)
{
    (void)state;
    static uint8_t zeros[1 << 20];
    struct sym_archive *a;
    struct stat st;
    int fd;
    for (int inside = 0; inside < 2; inside++) {
        begin();
        tar_image_file(&image, "one", "1", 1);
        tar_image_header(&image, "zeros", inside ? '0' : 'Z', "", (unsigned long long)20 << 20);
        gzFile f = gzopen(at("image"), "wb1");
        assert_non_null(f);
        assert_int_equal(gzwrite(f, image.bytes, (unsigned)image.size), image.size);
        for (int i = 0; i < 22; i++)
            assert_int_equal(gzwrite(f, zeros, sizeof(zeros)), sizeof(zeros));
        assert_int_equal(gzclose(f), Z_OK);
        assert_int_equal(open_archive(at("image"), &a), 0);
        assert_string_equal(sym_archive_fault(a),
                            inside ? "" : "1 member of an unknown kind left out");
        assert_int_equal(sym_archive_open_file(a, "zeros", &fd), inside ? 0 : SYM_ERR_NOT_FOUND);
        if (inside) {
            assert_int_equal(fstat(fd, &st), 0);
            assert_int_equal(st.st_size, 20 << 20);
            close(fd);
        }
        sym_archive_free(a);
    }
}

static void without_a_temporary_folder_gzip_cannot_be_read(void **state)
{
    (void)state;
    struct sym_archive *a;
    const char *old = getenv("TMPDIR");
    add_small();
    tar_image_write_gzip(&image, at("image"));
    char path[512];
    snprintf(path, sizeof(path), "%s", at("image"));
    setenv("TMPDIR", "/nowhere", 1);
    assert_int_equal(open_archive(path, &a), SYM_ERR_IO);
    assert_non_null(strstr(why, ": temporary file in /nowhere: No such file or directory"));
    if (old != NULL)
        setenv("TMPDIR", old, 1);
    else
        unsetenv("TMPDIR");
}

/* ---- contexts ---- */

static void a_context_opens_its_archives(void **state)
{
    (void)state;
    char first[128];
    char second[128];
    const char *paths[] = {first, second};
    struct sym_options o = {.size = sizeof(o), .symbol_dirs = paths, .symbol_dir_count = 2};
    struct sym_context *c = sym_context_new();
    snprintf(first, sizeof(first), "%s", at("in"));
    snprintf(second, sizeof(second), "%s", at("absent"));
    assert_int_equal(sym_context_open(c, &o), SYM_ERR_NOT_FOUND);
    assert_non_null(strstr(sym_context_error(c), "absent: No such file or directory"));
    snprintf(second, sizeof(second), "%s", at("outside"));
    assert_int_equal(sym_context_open(c, &o), SYM_ERR_FORMAT);
    assert_non_null(strstr(sym_context_error(c), "outside: neither a folder nor a tar file"));
    add_tree();
    tar_image_write(&image, at("image"));
    snprintf(second, sizeof(second), "%s", at("image"));
    assert_int_equal(sym_context_open(c, &o), 0);
    assert_string_equal(text_of(sym_context_archive(c, 0), "a"), "A");
    assert_string_equal(symint_archive_path(sym_context_archive(c, 1)), second);
    assert_null(sym_context_archive(c, 2));
    sym_context_free(c);
}

static void an_id_is_the_name_of_a_folder(void **state)
{
    (void)state;
    char longest[66];
    memset(longest, 'x', 65);
    longest[65] = '\0';
    const char *const bad[] = {"", "..", "a/b", "a.b", "a b", longest};
    struct sym_context *c = sym_context_new();
    struct sym_capture capture = {.size = sizeof(capture)};
    assert_int_equal(sym_context_open(c, NULL), 0);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        capture.id = bad[i];
        assert_int_equal(sym_capture_begin(c, &capture), SYM_ERR_MISUSE);
    }
    capture.id = longest + 1;
    assert_int_equal(sym_capture_begin(c, &capture), 0);
    capture.id = "20260101-host_1";
    assert_int_equal(sym_capture_begin(c, &capture), 0);
    sym_context_free(c);
}

static const char *kernel_name(struct sym_context *c)
{
    const struct sym_frame *f;
    size_t count;
    struct sym_query q = {.module = SYM_NO_MODULE, .kernel = true, .abs = 0xffffffff81000010};
    assert_int_equal(sym_resolve(c, &q, &f, &count), 0);
    return f->name != NULL ? f->name : "-";
}

static const char *map_name(struct sym_context *c)
{
    const struct sym_frame *f;
    size_t count;
    struct sym_query q = {.pid = 42, .abs = 0x1010, .rel = 0x1010};
    struct sym_module m = {.size = sizeof(m), .path = "//anon", .end = 0x10000};
    assert_int_equal(sym_module_add(c, &m, &q.module), 0);
    assert_int_equal(sym_resolve(c, &q, &f, &count), 0);
    return f->name != NULL ? f->name : "-";
}

static void files_of_a_capture_are_found_by_its_id(void **state)
{
    (void)state;
    static const char one[] = "ffffffff81000000 T one\nffffffff81001000 T end\n";
    static const char any[] = "ffffffff81000000 T any\nffffffff81001000 T end\n";
    char path[128];
    const char *paths[] = {path};
    struct sym_options o = {.size = sizeof(o), .symbol_dirs = paths, .symbol_dir_count = 1};
    struct sym_capture capture = {.size = sizeof(capture), .boot_id = "another"};
    struct sym_kernel kernel = {.size = sizeof(kernel)};
    struct sym_perf_map_state map;
    begin();
    tar_image_file(&image, "captures/one/kallsyms", one, sizeof(one) - 1);
    tar_image_file(&image, "captures/bad/kallsyms", "text\n", 5);
    tar_image_file(&image, "captures/bad/perf-42.map", "text\n", 5);
    tar_image_file(&image, "captures/zero/kallsyms", "0 T f\n", 6);
    tar_image_file(&image, "captures/one/perf-42.map", "1000 100 mine\n", 14);
    tar_image_file(&image, "perf-42.map", "1000 100 theirs\n", 16);
    tar_image_file(&image, "kallsyms", any, sizeof(any) - 1);
    tar_image_end(&image);
    tar_image_write(&image, at("image"));
    snprintf(path, sizeof(path), "%s", at("image"));
    static const struct {
        const char *id, *kernel, *map, *detail, *map_path;
    } rows[] = {{NULL, "any", "theirs", "", "/perf-42.map"},
                {"one", "one", "mine", "", "/captures/one/perf-42.map"},
                {"two", "any", "theirs", "", "/perf-42.map"},
                {"bad", "any", "-", "/captures/bad/kallsyms: no line of it is a kernel symbol",
                 "/captures/bad/perf-42.map"},
                {"zero", "any", "theirs", "/captures/zero/kallsyms: ", "/perf-42.map"}};
    struct sym_context *c = sym_context_new();
    assert_int_equal(sym_context_open(c, &o), 0);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        capture.id = rows[i].id;
        assert_int_equal(sym_capture_begin(c, &capture), 0);
        assert_int_equal(sym_kernel_load(c, &kernel), 0);
        assert_int_equal(sym_kernel_state(c), SYM_KERNEL_OK);
        assert_string_equal(kernel_name(c), rows[i].kernel);
        assert_string_equal(map_name(c), rows[i].map);
        assert_int_equal(sym_perf_map_state(c, 42, &map), 1);
        assert_int_equal(strncmp(map.path, path, strlen(path)), 0);
        assert_string_equal(map.path + strlen(path), rows[i].map_path);
        const char *detail = sym_kernel_detail(c);
        assert_int_equal(detail[0] != '\0', rows[i].detail[0] != '\0');
        assert_non_null(strstr(detail, rows[i].detail));
    }
    /* A file that was named is the only one. */
    kernel.kallsyms = "/dev/null";
    assert_int_equal(sym_kernel_load(c, &kernel), SYM_ERR_IO);
    sym_context_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_folder_is_an_archive),
        cmocka_unit_test(a_tar_file_is_an_archive_packed_or_not),
        cmocka_unit_test(an_archive_is_opened_once_and_before_it_is_read),
        cmocka_unit_test(what_is_neither_is_refused),
        cmocka_unit_test(names_that_lead_out_are_left_out),
        cmocka_unit_test(the_last_member_of_a_name_counts),
        cmocka_unit_test(long_names_and_records_of_pax_are_read),
        cmocka_unit_test(sparse_files_are_left_out_and_said),
        cmocka_unit_test(what_is_before_a_cut_can_be_used),
        cmocka_unit_test(flipped_bits_do_no_harm),
        cmocka_unit_test(a_fault_says_where_it_is),
        cmocka_unit_test(sizes_are_claims),
        cmocka_unit_test(records_that_contradict_themselves_end_it),
        cmocka_unit_test(what_gzip_blows_up_is_not_kept),
        cmocka_unit_test(without_a_temporary_folder_gzip_cannot_be_read),
        cmocka_unit_test(a_context_opens_its_archives),
        cmocka_unit_test(an_id_is_the_name_of_a_folder),
        cmocka_unit_test(files_of_a_capture_are_found_by_its_id),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
