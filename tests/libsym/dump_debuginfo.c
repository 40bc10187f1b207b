/* SPDX-License-Identifier: MIT */
/* dump_debuginfo FILE DIRECTORY: prints the debug link of a file and whether the file of that name
 * in the folder has its checksum; writes what .gnu_debugdata unpacks to into DIRECTORY/unpacked, or
 * prints why not. For debuginfo.sh. */
#include "debuginfo.h"
#include "elf_private.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *matches(const char *folder, const struct symint_debug_link *link)
{
    char path[4096];
    uint32_t crc32;
    snprintf(path, sizeof(path), "%s/%s", folder, link->name);
    int fd = open(path, O_RDONLY);
    if (fd < 0)
        return "absent";
    bool read = symint_file_crc32(fd, &crc32);
    close(fd);
    return !read ? "unreadable" : crc32 == link->crc32 ? "same" : "other";
}

static int write_unpacked(const char *folder, const uint8_t *data, size_t size)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/unpacked", folder);
    FILE *f = fopen(path, "w");
    if (f == NULL)
        return 1;
    size_t written = fwrite(data, 1, size, f);
    return fclose(f) != 0 || written != size;
}

int main(int argc, char **argv)
{
    struct symint_elf *e;
    struct symint_debug_link link;
    enum sym_miss miss;
    const char *why;
    uint8_t *data;
    size_t size;
    struct stat st;
    int fd = argc == 3 ? open(argv[1], O_RDONLY) : -1;
    if (fd < 0 || fstat(fd, &st) != 0)
        return 1;
    struct symint_input input = {.fd = fd, .size = (uint64_t)st.st_size};
    if (symint_elf_open(&input, &e, &miss, &why) != 0 || e == NULL ||
        symint_elf_read_sections(e, &miss, &why) != 0)
        return 1;
    if (symint_debug_link_read(e, &link))
        printf("link: %s, %s\n", link.name, matches(argv[2], &link));
    if (symint_minidebug_read(e, &data, &size, &why) != 0)
        return 1;
    int rc = 0;
    if (data != NULL)
        rc = write_unpacked(argv[2], data, size);
    else if (why[0] != '\0')
        printf("%s\n", why);
    free(data);
    symint_elf_free(e);
    close(fd);
    return rc;
}
