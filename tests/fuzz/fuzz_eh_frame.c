/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as .eh_frame of a file that is otherwise sound, of every class, byte order and place; by the first byte the
 * bytes are entries, whose lengths and pointers to CIEs are made right. Ranges are ascending and inside the code, and
 * the same from a descriptor as from memory.
 */
#include "../libsym/eh_image.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define BEHIND_MAX 64

struct input {
    const uint8_t *at;
    const uint8_t *end;
};

static uint8_t take(struct input *in)
{
    return in->at < in->end ? *in->at++ : 0;
}

static size_t take_bytes(struct input *in, size_t size, const uint8_t **bytes)
{
    size_t left = (size_t)(in->end - in->at);
    *bytes = in->at;
    if (size > left)
        size = left;
    in->at += size;
    return size;
}

static void copy(struct image_buffer *b, const uint8_t *bytes, size_t size)
{
    if (size > 0)
        memcpy(b->data + b->size, bytes, size);
    b->size += size;
}

/* An entry as its first byte says: a CIE with letters and any data, an FDE of one of the CIEs so far with a start in the
 * code or with any bytes, a terminator. An entry of the input takes at most 100 bytes. */
static void put_entry(struct input *in, const struct eh_file *f, struct image_buffer *b,
                      size_t cies[8], size_t *cie_count, uint8_t *encoding)
{
    static const char *const letters[] = {"zR", "zPLR", "zPR", "zRS", "zLRB", "eh", "", "zRG"};
    uint8_t kind = take(in);
    struct eh_style style = {.long_length = (kind & 8) != 0, .id_bytes = (kind & 16) != 0 ? 8 : 4};
    const uint8_t *bytes;
    switch (kind & 3) {
    case 0: {
        size_t at = eh_entry_begin(b, &style);
        cies[(*cie_count)++ % 8] = at;
        image_put(b, 0, style.id_bytes);
        uint8_t version = take(in);
        image_put(b,
                  version % 8 == 0   ? version
                  : version % 2 != 0 ? 1
                  : version % 4 != 0 ? 3
                                     : 4,
                  1);
        eh_text(b, letters[take(in) & 7]);
        size_t size = take_bytes(in, take(in) & 31, &bytes);
        copy(b, bytes, size);
        if (size > 0)
            *encoding = bytes[size - 1];
        eh_entry_end(b, &style, at);
        break;
    }
    case 1:
    case 2: {
        uint8_t which = take(in) & 7;
        size_t cie = cies[which < *cie_count ? which : 0];
        style.encoding = *encoding;
        if ((kind & 3) == 1) {
            uint64_t start = EH_TEXT + take(in) * 16u;
            eh_fde(b, f, &style, cie, start, take(in));
            break;
        }
        size_t at = eh_entry_begin(b, &style);
        image_put(b, b->size - cie, style.id_bytes);
        size_t size = take_bytes(in, take(in) & 63, &bytes);
        copy(b, bytes, size);
        eh_entry_end(b, &style, at);
        break;
    }
    default:
        image_put(b, 0, 4);
        break;
    }
}

static void check(const struct symint_fdes *f, const struct eh_file *file)
{
    uint64_t text = file->text == 0 ? EH_TEXT : file->text - 1;
    if (file->no_segments) /* relocatable: code is named by its place in the file */
        text = EH_TEXT_OFFSET;
    for (size_t i = 0; i < f->count; i++) {
        if (f->start[i] >= f->end[i] || (i > 0 && f->start[i - 1] >= f->start[i]))
            abort();
        if (f->start[i] < text || f->end[i] > text + EH_TEXT_SIZE)
            abort();
        if (symint_fdes_end(f, f->start[i]) != f->end[i])
            abort();
        if (i > 0 && f->start[i] - 1 != f->start[i - 1] && symint_fdes_end(f, f->start[i] - 1) != 0)
            abort();
    }
    if (symint_fdes_end(f, 0) != 0 || symint_fdes_end(f, UINT64_MAX) != 0)
        abort();
}

static struct symint_fdes read_all(const struct symint_input *input)
{
    struct symint_elf *e;
    struct symint_fdes fdes = {0};
    enum sym_miss miss;
    const char *why;
    if (symint_elf_open(input, &e, &miss, &why) != 0)
        abort();
    if (e == NULL)
        return fdes;
    if (symint_elf_read_sections(e, &miss, &why) != 0 || symint_fdes_read(e, &fdes) != 0)
        abort();
    symint_elf_free(e);
    return fdes;
}

static void run(const struct eh_file *f, const struct image_buffer *frames)
{
    static int fd = -1;
    size_t size;
    uint8_t *made = eh_build(f, frames, &size);
    uint8_t *file = malloc(size); /* of exactly the size */
    if (fd < 0)
        fd = memfd_create("eh_frame", MFD_CLOEXEC);
    if (file == NULL || fd < 0 || ftruncate(fd, 0) != 0 ||
        pwrite(fd, made, size, 0) != (ssize_t)size)
        abort();
    memcpy(file, made, size);
    free(made);
    struct symint_fdes memory =
        read_all(&(struct symint_input){.fd = -1, .memory = file, .size = size});
    struct symint_fdes read = read_all(&(struct symint_input){.fd = fd, .size = size});
    check(&memory, f);
    if (memory.count != read.count)
        abort();
    for (size_t i = 0; i < memory.count; i++)
        if (memory.start[i] != read.start[i] || memory.end[i] != read.end[i])
            abort();
    symint_fdes_free(&memory);
    symint_fdes_free(&read);
    free(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint64_t places[] = {EH_BELOW, EH_ABOVE, 0xffffffff80000000, 0x3001};
    struct input in = {data, data + size};
    uint8_t flags = take(&in);
    uint8_t more = take(&in);
    struct eh_file f = {.narrow = (flags & 1) != 0,
                        .big = (flags & 2) != 0,
                        .no_sections = (flags & 4) != 0,
                        .no_got = (flags & 8) != 0,
                        .vaddr = places[more & 3],
                        .text = (more & 4) != 0 ? UINT64_MAX - 0xfff : 0,
                        .type = (more & 8) != 0 ? SHT_X86_64_UNWIND : 0,
                        .no_segments = (more & 16) != 0,
                        .header_version = (more & 32) != 0 ? 2 : 0,
                        .header_encoding = take(&in)};
    struct image_buffer frames = eh_begin(&f, 128 * size + 1024);
    uint8_t split = take(&in);
    if ((flags & 32) != 0)
        f.behind_size = take_bytes(&in, take(&in) % BEHIND_MAX, &f.behind);
    if ((flags & 16) != 0) {
        size_t cies[8] = {0};
        size_t cie_count = 0;
        uint8_t encoding = 0x1b;
        while (in.at < in.end)
            put_entry(&in, &f, &frames, cies, &cie_count, &encoding);
    } else {
        copy(&frames, in.at, (size_t)(in.end - in.at));
    }
    if ((flags & 64) != 0 && frames.size > 0)
        f.split = split % frames.size;
    run(&f, &frames);
    free(frames.data);
    return 0;
}
