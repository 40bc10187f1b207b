/* SPDX-License-Identifier: MIT */
/*
 * Packed debug sections. The size that a section claims to have unpacked is what its memory is made by, so it is held
 * against the packed bytes first. Nothing else here knows zlib, libdeflate or zstd.
 */
#include "unpack.h"

#include "elf_private.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>
#ifdef SPOOL_HAVE_LIBDEFLATE
#include <libdeflate.h>
#else
#include <zlib.h>
#endif
#ifdef SPOOL_HAVE_ZSTD
#include <zstd.h>
#endif

#define ZSTD_CHDR 2 /* ELFCOMPRESS_ZSTD, which older <elf.h> lack */

#define MAX_UNPACKED ((uint64_t)4 * 1024 * 1024 * 1024)

/* Deflate makes at most 1,032 bytes of one. zstd has no such bound: 4 bytes can be 128 KiB. Debug information of linked
 * files shrinks to a tenth at best, so the same bound does; but sections of object files can be all zeros before
 * relocation, which is why some unpacked memory is always granted. */
#define MAX_RATIO 1032
#define ALWAYS_GRANTED ((uint64_t)16 * 1024 * 1024)

static const char damaged[] = "a packed debug section is damaged";
static const char other_size[] = "a packed debug section has another size than it claims";
const char symint_unpack_no_memory[] = "no memory for a debug section";
const char symint_unpack_unreadable[] = "a debug section cannot be read";

/* ---- heads ---- */

/* "ZLIB" and the size in big endian, in files of either byte order. */
static bool read_old_head(const struct symint_elf *e, const struct section *s,
                          struct symint_packed *out)
{
    uint8_t head[12];
    if (s->size < sizeof(head) ||
        symint_elf_read(&e->input, s->offset, sizeof(head), head) != READ_OK ||
        memcmp(head, "ZLIB", 4) != 0)
        return false;
    for (int i = 4; i < 12; i++)
        out->size = out->size << 8 | head[i];
    out->packing = PACKING_ZLIB;
    out->offset = s->offset + sizeof(head);
    out->packed_size = s->size - sizeof(head);
    return true;
}

static bool read_head(const struct symint_elf *e, const struct section *s,
                      struct symint_packed *out, uint32_t *type)
{
    uint8_t head[sizeof(Elf64_Chdr)];
    size_t size = e->wide ? sizeof(Elf64_Chdr) : sizeof(Elf32_Chdr);
    if (s->size < size || symint_elf_read(&e->input, s->offset, size, head) != READ_OK)
        return false;
    *type = get32(e, head);
    out->size = get_word(e, head, 4, 8);
    out->offset = s->offset + size;
    out->packed_size = s->size - size;
    return true;
}

const char *symint_packed_head(const struct symint_elf *e, const struct section *s,
                               struct symint_packed *out)
{
    uint32_t type = ELFCOMPRESS_ZLIB;
    *out = (struct symint_packed){0};
    if (!(s->compressed ? read_head(e, s, out, &type) : read_old_head(e, s, out)))
        return damaged;
    if (type != ELFCOMPRESS_ZLIB && type != ZSTD_CHDR)
        return "a debug section is packed in an unknown way";
    out->packing = type == ZSTD_CHDR ? PACKING_ZSTD : PACKING_ZLIB;
#ifndef SPOOL_HAVE_ZSTD
    if (out->packing == PACKING_ZSTD)
        return "its debug sections are packed by zstd, which is not compiled in";
#endif
    if (out->size > MAX_UNPACKED)
        return "a packed debug section is larger than 4 GiB";
    uint64_t granted = out->packing == PACKING_ZSTD ? ALWAYS_GRANTED : 0;
    if (out->size > granted && (out->size - granted) / MAX_RATIO > out->packed_size)
        return "a packed debug section claims more than its bytes can be";
    return NULL;
}

/* ---- unpacking ---- */

/* Several streams behind each other are one section: some linkers join packed sections so. */
#ifdef SPOOL_HAVE_LIBDEFLATE

static const char *unpack_zlib(const uint8_t *in, size_t in_size, uint8_t *out, size_t out_size)
{
    struct libdeflate_decompressor *d = libdeflate_alloc_decompressor();
    const char *why = NULL;
    if (d == NULL)
        return symint_unpack_no_memory;
    while (in_size > 0 && why == NULL) {
        size_t used = 0;
        size_t made = 0;
        enum libdeflate_result result =
            libdeflate_zlib_decompress_ex(d, in, in_size, out, out_size, &used, &made);
        if (result == LIBDEFLATE_INSUFFICIENT_SPACE) {
            why = other_size;
        } else if (result != LIBDEFLATE_SUCCESS || used == 0) {
            why = damaged;
        } else {
            in += used;
            in_size -= used;
            out += made;
            out_size -= made;
        }
    }
    libdeflate_free_decompressor(d);
    return why == NULL && out_size > 0 ? other_size : why;
}

#else

/* zlib counts what is left in 32 bits. */
static uInt piece(size_t left)
{
    return left < (1u << 30) ? (uInt)left : 1u << 30;
}

static const char *unpack_zlib(const uint8_t *in, size_t in_size, uint8_t *out, size_t out_size)
{
    z_stream z = {0};
    uint8_t beyond; /* what does not fit */
    if (inflateInit(&z) != Z_OK)
        return symint_unpack_no_memory;
    const char *why = NULL;
    bool ended = in_size == 0;
    while (why == NULL && (in_size > 0 || !ended)) {
        bool full = out_size == 0;
        uInt room = full ? 1 : piece(out_size);
        z.next_in = (Bytef *)(uintptr_t)in; /* whose type is not const everywhere */
        z.avail_in = piece(in_size);
        z.next_out = full ? &beyond : out;
        z.avail_out = room;
        size_t used = z.avail_in;
        int ret = inflate(&z, Z_NO_FLUSH);
        used -= z.avail_in;
        size_t made = room - z.avail_out;
        ended = ret == Z_STREAM_END;
        if (full && made > 0)
            why = other_size;
        else if (ret == Z_MEM_ERROR)
            why = symint_unpack_no_memory;
        else if ((ret != Z_OK && !ended) || used + made == 0 || (ended && inflateReset(&z) != Z_OK))
            why = damaged;
        in += used;
        in_size -= used;
        if (!full) {
            out += made;
            out_size -= made;
        }
    }
    inflateEnd(&z);
    return why == NULL && out_size > 0 ? other_size : why;
}

#endif

#ifdef SPOOL_HAVE_ZSTD

/* In one go, not as a stream: that needs no window beside the output, whatever size the frames ask for. Output is
 * written as it is made. Frames behind each other are one section. */
static const char *unpack_zstd(const uint8_t *in, size_t in_size, uint8_t *out, size_t out_size)
{
    ZSTD_DCtx *d = ZSTD_createDCtx();
    if (d == NULL)
        return symint_unpack_no_memory;
    size_t made = ZSTD_decompressDCtx(d, out, out_size, in, in_size);
    ZSTD_freeDCtx(d);
    if (ZSTD_isError(made))
        return damaged;
    return made != out_size ? other_size : NULL;
}

#endif

const char *symint_unpack(const struct symint_input *in, const struct symint_packed *packed,
                          uint8_t *out)
{
    uint8_t *loaded = NULL;
    const uint8_t *bytes;
    enum sym_miss miss = SYM_MISS_DAMAGED;
    if (in->fd >= 0) {
        if (symint_elf_load(in, packed->offset, packed->packed_size, &loaded, &miss) != 0)
            return symint_unpack_no_memory;
        bytes = loaded;
    } else {
        bytes = in->memory + packed->offset;
    }
    if (bytes == NULL)
        return miss == SYM_MISS_UNREADABLE ? symint_unpack_unreadable : damaged;
    const char *why = NULL;
    if (packed->packing == PACKING_ZLIB)
        why = unpack_zlib(bytes, (size_t)packed->packed_size, out, (size_t)packed->size);
#ifdef SPOOL_HAVE_ZSTD
    else
        why = unpack_zstd(bytes, (size_t)packed->packed_size, out, (size_t)packed->size);
#endif
    free(loaded);
    return why;
}
