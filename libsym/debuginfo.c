/* SPDX-License-Identifier: MIT */
/*
 * What a stripped file says about its symbols: .gnu_debuglink names another file and its checksum,
 * .gnu_debugdata is a small ELF file packed by xz. Finding the other file is locate.c's work,
 * reading either one's symbols symtab.c's. Nothing else here knows zlib or liblzma.
 */
#include "debuginfo.h"
#include "elf_private.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#ifdef SPOOL_HAVE_LZMA
#include <lzma.h>
#endif

/* ---- .gnu_debuglink ---- */

/* The name becomes the last part of a path: it must not lead anywhere else. */
static bool is_base_name(const char *name, size_t size)
{
    return size > 0 && size <= SYMINT_MAX_LINK_NAME && memchr(name, '/', size) == NULL &&
           strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

bool symint_debug_link_read(const struct symint_elf *e, struct symint_debug_link *out)
{
    uint8_t bytes[sizeof(out->name) + sizeof(out->crc32)]; /* of the longest name that counts */
    const struct section *s = symint_elf_section(e, ".gnu_debuglink");
    if (s == NULL || s->type == SHT_NOBITS || s->compressed)
        return false;
    size_t size = s->size < sizeof(bytes) ? (size_t)s->size : sizeof(bytes);
    if (symint_elf_read(&e->input, s->offset, size, bytes) != READ_OK)
        return false;
    const uint8_t *end = memchr(bytes, 0, size);
    if (end == NULL)
        return false;
    size_t name_size = (size_t)(end - bytes);
    size_t crc_at = (name_size + 1 + 3) / 4 * 4;
    if (!is_base_name((const char *)bytes, name_size) || size < crc_at + sizeof(out->crc32))
        return false;
    memcpy(out->name, bytes, name_size + 1);
    out->crc32 = get32(e, bytes + crc_at);
    return true;
}

/* A sparse file can claim any size. No debug file is this large, and reading that much takes a
 * minute already; nor is one nearly all holes. */
#define MAX_CRC_BYTES ((off_t)64 * 1024 * 1024 * 1024)
#define CRC_PIECE_BYTES 65536 /* larger reads gain nothing */

bool symint_file_crc32(int fd, uint32_t *out)
{
    uint8_t piece[CRC_PIECE_BYTES];
    struct stat st;
    if (fstat(fd, &st) != 0 || st.st_size < 0 || st.st_size > MAX_CRC_BYTES)
        return false;
    /* One without any block has no header to be found by, either. */
    struct symint_input all = {.stored_bytes = st.st_blocks > 0 ? (uint64_t)st.st_blocks * 512 : 1};
    if (symint_elf_is_hole(&all, (uint64_t)st.st_size))
        return false;
    uLong crc = crc32(0, NULL, 0);
    /* To the size it has now: a file that grows as fast as it is read has no end. */
    for (off_t at = 0; at < st.st_size;) {
        off_t left = st.st_size - at;
        ssize_t n = pread(fd, piece, left < CRC_PIECE_BYTES ? (size_t)left : CRC_PIECE_BYTES, at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        crc = crc32(crc, piece, (uInt)n);
        at += n;
    }
    *out = (uint32_t)crc;
    return true;
}

/* ---- .gnu_debugdata ---- */

#ifdef SPOOL_HAVE_LZMA

/* What the decoder may take, which is mostly the dictionary that the data ask for. xz -9 makes
 * files that need 65 MiB. */
#define MAX_DECODER_BYTES ((uint64_t)256 * 1024 * 1024)
#define PIECE_BYTES 16384
#define FIRST_ROOM_BYTES 65536

struct unpacked {
    uint8_t *data;
    size_t size;
    size_t capacity;
};

static void *decoder_alloc(void *user, size_t count, size_t size)
{
    (void)user;
    if (size > 0 && count > SIZE_MAX / size)
        return NULL;
    return malloc(count * size);
}

static void decoder_free(void *user, void *memory)
{
    (void)user;
    free(memory);
}

static const lzma_allocator decoder_memory = {decoder_alloc, decoder_free, NULL};

/* Room for a byte at least. It follows what was really produced, not what the data claim, and goes
 * one beyond the limit: that byte tells what is too large from what just fits. */
static bool make_room(struct unpacked *u)
{
    if (u->size < u->capacity)
        return true;
    size_t capacity = u->capacity == 0 ? FIRST_ROOM_BYTES : u->capacity * 2;
    if (capacity > SYMINT_MAX_MINIDEBUG)
        capacity = SYMINT_MAX_MINIDEBUG + 1;
    uint8_t *data = realloc(u->data, capacity);
    if (data == NULL)
        return false;
    u->data = data;
    u->capacity = capacity;
    return true;
}

/* The section as one xz file, of one stream or several. The result is liblzma's: STREAM_END when
 * all is well, PROG_ERROR when *why says it already. */
static lzma_ret run_decoder(lzma_stream *stream, const struct symint_input *input,
                            const struct section *s, struct unpacked *u, const char **why)
{
    uint8_t piece[PIECE_BYTES];
    uint64_t at = 0;
    lzma_ret ret = lzma_stream_decoder(stream, MAX_DECODER_BYTES, LZMA_CONCATENATED);
    while (ret == LZMA_OK) {
        if (stream->avail_in == 0 && at < s->size) {
            size_t n = s->size - at < PIECE_BYTES ? (size_t)(s->size - at) : PIECE_BYTES;
            if (symint_elf_read(input, s->offset + at, n, piece) != READ_OK) {
                *why = "its .gnu_debugdata cannot be read";
                return LZMA_PROG_ERROR;
            }
            at += n;
            stream->next_in = piece;
            stream->avail_in = n;
        }
        if (!make_room(u))
            return LZMA_MEM_ERROR;
        stream->next_out = u->data + u->size;
        stream->avail_out = u->capacity - u->size;
        ret = lzma_code(stream, at == s->size ? LZMA_FINISH : LZMA_RUN);
        u->size = u->capacity - stream->avail_out;
        if (u->size > SYMINT_MAX_MINIDEBUG) {
            *why = "its .gnu_debugdata unpacks to more than 256 MiB";
            return LZMA_PROG_ERROR;
        }
    }
    return ret;
}

static const char *decoder_text(lzma_ret ret)
{
    switch (ret) {
    case LZMA_FORMAT_ERROR:
        return "its .gnu_debugdata is not an xz file";
    case LZMA_OPTIONS_ERROR:
        return "its .gnu_debugdata is packed in an unknown way";
    case LZMA_MEMLIMIT_ERROR:
        return "unpacking its .gnu_debugdata would take too much memory";
    case LZMA_BUF_ERROR:
        return "its .gnu_debugdata is cut off";
    default:
        return "its .gnu_debugdata is damaged";
    }
}

static int unpack(const struct symint_elf *e, const struct section *s, struct unpacked *u,
                  const char **why)
{
    lzma_stream stream = LZMA_STREAM_INIT;
    stream.allocator = &decoder_memory;
    lzma_ret ret = run_decoder(&stream, &e->input, s, u, why);
    lzma_end(&stream);
    if (ret == LZMA_MEM_ERROR)
        return SYM_ERR_NOMEM;
    if (ret == LZMA_STREAM_END && u->size == 0)
        *why = "its .gnu_debugdata is empty";
    else if (ret != LZMA_STREAM_END && ret != LZMA_PROG_ERROR)
        *why = decoder_text(ret);
    return 0;
}

int symint_minidebug_read(const struct symint_elf *e, uint8_t **data, size_t *size,
                          const char **why)
{
    *data = NULL;
    *size = 0;
    *why = "";
    const struct section *s = symint_elf_section(e, ".gnu_debugdata");
    if (s == NULL || s->type == SHT_NOBITS)
        return 0;
    if (s->offset > e->input.size || s->size > e->input.size - s->offset) {
        *why = "its .gnu_debugdata is not inside the file";
        return 0;
    }
    if (s->compressed) { /* once more, by the other way of packing sections */
        *why = decoder_text(LZMA_FORMAT_ERROR);
        return 0;
    }
    /* Padding between streams is input without output: the output's limit bounds the input, too. */
    if (s->size > SYMINT_MAX_MINIDEBUG) {
        *why = "its .gnu_debugdata is larger than 256 MiB";
        return 0;
    }
    struct unpacked u = {0};
    int rc = unpack(e, s, &u, why);
    if (rc != 0 || **why != '\0') {
        free(u.data);
        return rc;
    }
    *data = u.data;
    *size = u.size;
    return 0;
}

#else

int symint_minidebug_read(const struct symint_elf *e, uint8_t **data, size_t *size,
                          const char **why)
{
    const struct section *s = symint_elf_section(e, ".gnu_debugdata");
    *data = NULL;
    *size = 0;
    *why = s == NULL || s->type == SHT_NOBITS ? ""
                                              : "it has .gnu_debugdata, and xz is not compiled in";
    return 0;
}

#endif
