/* SPDX-License-Identifier: MIT */
/* Any bytes as .gnu_debugdata of a file, what is unpacked as an ELF file of its own, and the same
 * bytes as .gnu_debuglink. */
#include "debuginfo.h"
#include "elf_private.h"

#include "../libsym/section_image.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct symint_elf *open_memory(const uint8_t *data, size_t size)
{
    struct symint_input input = {.fd = -1, .memory = data, .size = size};
    struct symint_elf *e;
    enum sym_miss miss;
    const char *why;
    return symint_elf_open(&input, &e, &miss, &why) == 0 ? e : NULL;
}

static struct symint_elf *open_section(const char *name, const uint8_t *data, size_t size,
                                       uint8_t **file)
{
    struct section_image image = {.name = name, .data = data, .size = size};
    size_t file_size;
    *file = section_image_build(&image, &file_size);
    struct symint_elf *e = open_memory(*file, file_size);
    enum sym_miss miss;
    const char *why;
    if (e == NULL || symint_elf_read_sections(e, &miss, &why) != 0)
        abort();
    return e;
}

static void unpack(const uint8_t *data, size_t size)
{
    uint8_t *file, *unpacked;
    size_t unpacked_size;
    const char *why;
    struct symint_elf *e = open_section(".gnu_debugdata", data, size, &file);
    if (symint_minidebug_read(e, &unpacked, &unpacked_size, &why) == 0) {
        if ((unpacked == NULL) != (why[0] != '\0') || unpacked_size > SYMINT_MAX_MINIDEBUG)
            abort();
        struct symint_elf *inner = unpacked != NULL ? open_memory(unpacked, unpacked_size) : NULL;
        enum sym_miss miss;
        const char *note;
        if (inner != NULL)
            (void)!symint_elf_index(inner, NULL, &miss, &why, &note);
        symint_elf_free(inner);
        free(unpacked);
    }
    symint_elf_free(e);
    free(file);
}

static void follow(const uint8_t *data, size_t size)
{
    uint8_t *file;
    struct symint_debug_link link;
    struct symint_elf *e = open_section(".gnu_debuglink", data, size, &file);
    if (symint_debug_link_read(e, &link) &&
        (link.name[0] == '\0' || strchr(link.name, '/') != NULL ||
         strlen(link.name) > SYMINT_MAX_LINK_NAME || strcmp(link.name, "..") == 0))
        abort();
    symint_elf_free(e);
    free(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    unpack(data, size);
    follow(data, size);
    return 0;
}
