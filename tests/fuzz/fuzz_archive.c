/* SPDX-License-Identifier: MIT */
/* Any bytes as a symbol archive: what is listed can be opened, has no more bytes than the file accounts for, and no name
 * leads out. */
#include "archive.h"
#include "tar.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int visit(void *user, const char *name, bool is_folder)
{
    char *last = user;
    if (name[0] == '\0' || strchr(name, '/') != NULL || strcmp(name, "..") == 0 ||
        strcmp(name, ".") == 0 || strcmp(last, name) >= 0)
        abort();
    (void)is_folder;
    memcpy(last, name, strlen(name) + 1);
    return 0;
}

static void ask(const struct sym_archive *a, const char *name, uint64_t most)
{
    char last[SYMINT_TAR_NAME_BYTES] = "";
    struct stat st;
    int fd;
    if (sym_archive_open_file(a, name, &fd) == 0) {
        if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || (uint64_t)st.st_size > most)
            abort();
        close(fd);
    }
    free(symint_archive_read_link(a, name));
    if (sym_archive_list(a, name, visit, last) != 0)
        abort();
}

/* Makes the checksums of headers right: few inputs have one that is. */
static void repair(uint8_t *bytes, size_t size)
{
    for (size_t at = 0; size - at >= 512; at += 512) {
        uint8_t *h = bytes + at;
        unsigned sum = 0;
        char digits[16];
        if (memcmp(h + 257, "ustar", 5) != 0)
            continue;
        memset(h + 148, ' ', 8);
        for (size_t i = 0; i < 512; i++)
            sum += h[i];
        snprintf(digits, sizeof(digits), "%06o", sum);
        memcpy(h + 148, digits, 7);
    }
}

static void run(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"", "a", "a/b", "/a/../b", "d/l", "./a//c", "l/x"};
    char path[40];
    char why[512];
    struct sym_archive *a = sym_archive_new();
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    if (a == NULL || fd < 0 || write(fd, data, size) != (ssize_t)size)
        abort();
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    int rc = sym_archive_open(a, path);
    if (rc == 0) {
        /* The index of the tar file, member by member. */
        struct symint_tar *t;
        int again = dup(fd);
        uint64_t most = (uint64_t)size * 1032 + ((uint64_t)16 << 20);
        if (again < 0 || symint_tar_open(again, &t, why, sizeof(why)) != 0)
            abort();
        for (size_t i = 0; i < t->index.count && i < 64; i++)
            ask(a, t->index.members[i].name, most);
        symint_tar_free(t);
        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
            ask(a, names[i], most);
    } else if (strcmp(sym_archive_error(a), "no error") == 0) {
        abort();
    }
    sym_archive_free(a);
    close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *bytes = malloc(size + 1);
    if (bytes == NULL)
        return 0;
    memcpy(bytes, data, size);
    run(bytes, size);
    repair(bytes, size);
    run(bytes, size);
    free(bytes);
    return 0;
}
