/* SPDX-License-Identifier: MIT */
/* ELF files as the recorder sees them: what is opened, addresses, build ids, bytes. */
#include "frame_image.h"
#include "image.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

static struct bytes file;

static struct image *open_bytes(void)
{
    struct image *image = NULL;
    assert_int_equal(recordint_image_open_memory(file.data, file.size, &image), 0);
    return image;
}

static int file_of_bytes(void)
{
    int fd = memfd_create("image", MFD_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, file.data, file.size), file.size);
    return fd;
}

static void assert_refused(int expected)
{
    struct image *image;
    errno = 0;
    assert_int_equal(recordint_image_open_memory(file.data, file.size, &image), -1);
    assert_int_equal(errno, expected);
}

static void put_note(struct bytes *b, const char *name, uint32_t type, const char *desc,
                     size_t size, size_t align)
{
    put(b, strlen(name) + 1, 4);
    put(b, size, 4);
    put(b, type, 4);
    put_bytes(b, name, strlen(name) + 1);
    put_align(b, align);
    put_bytes(b, desc, size);
    put_align(b, align);
}

static void both_machines_are_known(void **state)
{
    (void)state;
    frame_build(&(struct frame_file){0}, &file);
    struct image *image = open_bytes();
    assert_int_equal(recordint_image_arch(image), ARCH_X86_64);
    recordint_image_free(image);
    frame_build(&(struct frame_file){.machine = EM_AARCH64}, &file);
    image = open_bytes();
    assert_int_equal(recordint_image_arch(image), ARCH_AARCH64);
    recordint_image_free(image);
    recordint_image_free(NULL);
}

static void what_is_no_elf_file_of_a_known_machine_is_refused(void **state)
{
    static const struct {
        size_t at;
        uint8_t value;
    } changes[] = {{0, 'x'},     {EI_CLASS, ELFCLASS32}, {EI_DATA, ELFDATA2MSB},
                   {16, ET_REL}, {16, ET_CORE},          {18, EM_RISCV},
                   {19, 1}};
    (void)state;
    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
        frame_build(&(struct frame_file){0}, &file);
        file.data[changes[i].at] = changes[i].value;
        assert_refused(ENOEXEC);
    }
    frame_build(&(struct frame_file){0}, &file);
    file.size = sizeof(Elf64_Ehdr) - 1;
    assert_refused(ENOEXEC);
    file.size = 0;
    assert_refused(ENOEXEC);
}

static void what_is_no_regular_file_is_refused(void **state)
{
    struct image *image;
    int pipe_fds[2];
    (void)state;
    int fd = open("/", O_RDONLY | O_DIRECTORY);
    assert_int_equal(recordint_image_open_fd(fd, &image), -1);
    assert_int_equal(errno, ENOEXEC);
    close(fd);
    assert_int_equal(pipe(pipe_fds), 0);
    assert_int_equal(recordint_image_open_fd(pipe_fds[0], &image), -1);
    assert_int_equal(errno, ENOEXEC);
    close(pipe_fds[0]);
    close(pipe_fds[1]);
    assert_int_equal(recordint_image_open_fd(-1, &image), -1);
    assert_int_equal(errno, EBADF);
}

static void the_descriptor_stays_the_callers(void **state)
{
    struct image *image;
    uint8_t byte;
    (void)state;
    frame_build(&(struct frame_file){0}, &file);
    int fd = file_of_bytes();
    assert_int_equal(recordint_image_open_fd(fd, &image), 0);
    assert_int_equal(close(fd), 0);
    assert_int_equal(recordint_image_read(image, FRAME_TEXT + 7, &byte, 1), 1);
    assert_int_equal(byte, 7);
    recordint_image_free(image);
}

static void an_offset_of_code_has_an_address(void **state)
{
    uint64_t address;
    (void)state;
    frame_build(&(struct frame_file){0}, &file);
    struct image *image = open_bytes();
    assert_true(recordint_image_address(image, FRAME_TEXT_OFFSET, &address));
    assert_int_equal(address, FRAME_TEXT);
    assert_true(recordint_image_address(image, FRAME_TEXT_OFFSET + 0x7ff, &address));
    assert_int_equal(address, FRAME_TEXT + 0x7ff);
    /* The kernel maps the rest of the page as well. */
    assert_true(recordint_image_address(image, FRAME_TEXT_OFFSET + 0xfff, &address));
    assert_int_equal(address, FRAME_TEXT + 0xfff);
    assert_false(recordint_image_address(image, FRAME_TEXT_OFFSET + 0x1000, &address));
    assert_false(recordint_image_address(image, FRAME_TEXT_OFFSET - 1, &address));
    assert_false(recordint_image_address(image, UINT64_MAX, &address));
    recordint_image_free(image);
}

static void a_segment_begins_inside_its_first_page(void **state)
{
    uint64_t address;
    size_t first = sizeof(Elf64_Ehdr);
    (void)state;
    frame_build(&(struct frame_file){0}, &file);
    set(&file, first + 8, 0x1400, 8); /* offset */
    set(&file, first + 16, 0x7400, 8);
    set(&file, first + 32, 0x100, 8);
    struct image *image = open_bytes();
    assert_true(recordint_image_address(image, 0x1400, &address));
    assert_int_equal(address, 0x7400);
    assert_true(recordint_image_address(image, 0x1000, &address));
    assert_int_equal(address, 0x7000);
    assert_false(recordint_image_address(image, 0xfff, &address));
    recordint_image_free(image);
    /* No address lies below 0. */
    set(&file, first + 16, 0x200, 8);
    image = open_bytes();
    assert_true(recordint_image_address(image, 0x1200, &address));
    assert_int_equal(address, 0);
    assert_false(recordint_image_address(image, 0x11ff, &address));
    recordint_image_free(image);
}

static void where_segments_share_a_page_the_byte_decides(void **state)
{
    uint64_t address;
    size_t second = sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr);
    (void)state;
    frame_build(&(struct frame_file){0}, &file);
    set(&file, second + 4, PF_R | PF_X, 4);
    set(&file, second + 8, FRAME_TEXT_OFFSET + FRAME_TEXT_SIZE, 8);
    set(&file, second + 16, 0x9800, 8);
    set(&file, second + 32, 0x10, 8);
    struct image *image = open_bytes();
    assert_true(recordint_image_address(image, FRAME_TEXT_OFFSET + 0x7ff, &address));
    assert_int_equal(address, FRAME_TEXT + 0x7ff);
    assert_true(recordint_image_address(image, FRAME_TEXT_OFFSET + 0x80f, &address));
    assert_int_equal(address, 0x980f);
    recordint_image_free(image);
}

static void code_can_be_read_as_far_as_it_lies_in_the_file(void **state)
{
    uint8_t out[16];
    (void)state;
    frame_build(&(struct frame_file){.header = &(struct bytes){.size = 16}}, &file);
    struct image *image = open_bytes();
    assert_int_equal(recordint_image_read(image, FRAME_TEXT + 0x10, out, 16), 16);
    assert_int_equal(out[15], 0x1f);
    assert_int_equal(recordint_image_read(image, FRAME_TEXT + 0x7fd, out, 16), 3);
    assert_int_equal(out[2], 0xff);
    assert_int_equal(recordint_image_read(image, FRAME_TEXT + 0x800, out, 16), 0);
    assert_int_equal(recordint_image_read(image, FRAME_TEXT - 1, out, 16), 0);
    /* What may be written to may have changed. */
    assert_int_equal(recordint_image_read(image, FRAME_HEADER, out, 1), 0);
    recordint_image_free(image);
    /* A segment that claims more than the file has. */
    set(&file, sizeof(Elf64_Ehdr) + 32, UINT64_MAX - 1, 8);
    image = open_bytes();
    uint64_t end = FRAME_TEXT + file.size - FRAME_TEXT_OFFSET;
    assert_int_equal(recordint_image_read(image, end - 2, out, 16), 2);
    assert_int_equal(recordint_image_read(image, end, out, 16), 0);
    recordint_image_free(image);
}

static void a_file_that_shrinks_is_read_as_far_as_it_goes(void **state)
{
    struct image *image;
    uint8_t out[16];
    uint8_t id[IMAGE_BUILD_ID_MAX];
    (void)state;
    frame_build(&(struct frame_file){0}, &file);
    int fd = file_of_bytes();
    assert_int_equal(recordint_image_open_fd(fd, &image), 0);
    assert_int_equal(ftruncate(fd, FRAME_TEXT_OFFSET + 8), 0);
    assert_int_equal(recordint_image_read(image, FRAME_TEXT + 4, out, 16), 0);
    assert_int_equal(recordint_image_read(image, FRAME_TEXT + 4, out, 4), 4);
    assert_int_equal(ftruncate(fd, 0), 0);
    assert_int_equal(recordint_image_read(image, FRAME_TEXT, out, 1), 0);
    assert_int_equal(recordint_image_build_id(image, id), 0);
    recordint_image_free(image);
    close(fd);
}

static void assert_build_id(const struct frame_file *f, size_t align, const char *expected)
{
    uint8_t id[IMAGE_BUILD_ID_MAX];
    frame_build(f, &file);
    if (align == 8 && !f->note_section)
        set(&file, sizeof(Elf64_Ehdr) + 5 * sizeof(Elf64_Phdr) + 48, 8, 8);
    struct image *image = open_bytes();
    size_t size = recordint_image_build_id(image, id);
    assert_int_equal(size, strlen(expected));
    assert_memory_equal(id, expected, size);
    recordint_image_free(image);
}

static void the_build_id_is_a_note(void **state)
{
    struct bytes notes = {.size = 0};
    struct frame_file f = {.notes = &notes};
    (void)state;
    put_note(&notes, "stapsdt", 3, "abc", 3, 4);
    put_note(&notes, "GNU", 1, "abcdefgh", 8, 4);
    put_note(&notes, "GNU", 3, "twenty bytes of hash", 20, 4);
    assert_build_id(&f, 4, "twenty bytes of hash");
    f.note_section = true;
    assert_build_id(&f, 4, "twenty bytes of hash");
    f.no_sections = true;
    assert_build_id(&f, 4, "");
    notes.size = 0;
    f = (struct frame_file){.notes = &notes};
    put_note(&notes, "GNU", 5, "abcd", 4, 8);
    put_note(&notes, "GNU", 3, "hash", 4, 8);
    assert_build_id(&f, 8, "hash");
}

static void notes_that_lie_have_no_build_id(void **state)
{
    struct bytes notes = {.size = 0};
    struct frame_file f = {.notes = &notes};
    static const char large[65];
    (void)state;
    put_note(&notes, "GNU", 3, large, 65, 4);
    assert_build_id(&f, 4, "");
    notes.size = 0;
    put_note(&notes, "GNU", 3, "", 0, 4);
    assert_build_id(&f, 4, "");
    put_note(&notes, "GNU", 3, "hash", 4, 4);
    assert_build_id(&f, 4, "hash");
    struct bytes all = notes;
    for (notes.size = 0; notes.size < all.size; notes.size++)
        assert_build_id(&f, 4, "");
    set(&notes, 16 + 4, 5, 4); /* one more than there is */
    assert_build_id(&f, 4, "");
    set(&notes, 16, UINT32_MAX, 4);
    assert_build_id(&f, 4, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_machines_are_known),
        cmocka_unit_test(what_is_no_elf_file_of_a_known_machine_is_refused),
        cmocka_unit_test(what_is_no_regular_file_is_refused),
        cmocka_unit_test(the_descriptor_stays_the_callers),
        cmocka_unit_test(an_offset_of_code_has_an_address),
        cmocka_unit_test(a_segment_begins_inside_its_first_page),
        cmocka_unit_test(where_segments_share_a_page_the_byte_decides),
        cmocka_unit_test(code_can_be_read_as_far_as_it_lies_in_the_file),
        cmocka_unit_test(a_file_that_shrinks_is_read_as_far_as_it_goes),
        cmocka_unit_test(the_build_id_is_a_note),
        cmocka_unit_test(notes_that_lie_have_no_build_id),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
