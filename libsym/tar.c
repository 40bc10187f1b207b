/* SPDX-License-Identifier: MIT */
/*
 * Reading tar files: the formats of V7, POSIX (ustar, pax) and GNU. A header is a block of 512 bytes, the bytes of the
 * member follow in blocks; its name may stand in a member of its own before it. All it says is a claim: sizes are
 * compared with what the file can hold before anything is read or allocated.
 *
 * What gzip packed is unpacked once, into a file that has no name, and only as far as it is of regular files.
 */
#include "tar.h"

#include "openfile.h"
#include "spool/sym.h"
#include "tarextension.h"
#include "tarinput.h"
#include "words.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BLOCK 512u
#define MAX_EXTENSION ((size_t)1024 * 1024) /* of a name or pax records before a member */
#define MAX_BEHIND \
    ((size_t)1024 * 1024) /* bytes behind the end that are unpacked for the checksum */

/* Where things are in a header, and how long they are. */
enum {
    NAME = 0,
    NAME_SIZE = 100,
    SIZE = 124,
    TIME = 136,
    NUMBER_SIZE = 12,
    CHECKSUM = 148,
    CHECKSUM_SIZE = 8,
    TYPE = 156,
    LINK = 157,
    LINK_SIZE = 100,
    MAGIC = 257,
    PREFIX = 345,
    PREFIX_SIZE = 155,
    SPARSE_GOES_ON = 482, /* more blocks of GNU's list of pieces follow ... */
    SPARSE_BLOCK_GOES_ON = 504
};

struct parsing {
    struct symint_tar *t;
    struct symint_tar_input in;
    struct symint_tar_extension next;
    uint64_t header_at; /* byte of the tar file where the present header is */
    uint64_t kept;      /* bytes of `unpacked` */
    bool no_room;       /* for them; errno says why */
    size_t hostile, sparse, other;
    uint8_t header[BLOCK];
};

enum { GO_ON = 1, END = 0 }; /* below: SYM_ERR_NOMEM, SYM_ERR_IO */

/* ---- words ---- */

static void tell(struct parsing *p, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void tell(struct parsing *p, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    symint_append_list(p->t->fault, sizeof(p->t->fault), format, arguments);
    va_end(arguments);
}

static void tell_left_out(struct parsing *p, size_t dangling)
{
    if (p->hostile > 0)
        tell(p, "%zu member%s left out: named nothing, or something outside the archive",
             p->hostile, p->hostile > 1 ? "s" : "");
    if (p->sparse > 0)
        tell(p, "%zu sparse file%s left out", p->sparse, p->sparse > 1 ? "s" : "");
    if (p->other > 0)
        tell(p, "%zu member%s of an unknown kind left out", p->other, p->other > 1 ? "s" : "");
    if (dangling > 0)
        tell(p, "%zu hard link%s left out: to nothing that comes before", dangling,
             dangling > 1 ? "s" : "");
}

/* The end of what can be used. */
static int stop(struct parsing *p, const char *what)
{
    const char *unit = p->in.packed ? " of the unpacked file" : "";
    tell(p, "the member at byte %" PRIu64 "%s %s", p->header_at, unit, what);
    return END;
}

/* The input ended too early, or is damaged. */
static int stop_short(struct parsing *p)
{
    if (p->in.damage != NULL) {
        tell(p, "byte %" PRIu64 " of the unpacked file (about %" PRIu64 " packed): %s", p->in.at,
             p->in.file_at, p->in.damage);
        return END;
    }
    return stop(p, "is cut off");
}

/* ---- numbers ---- */

/* Octal digits, or GNU's big-endian binary with the uppermost bit set. False: neither, or it does not fit. */
static bool parse_number(const uint8_t *field, size_t size, uint64_t *out)
{
    uint64_t value = field[0] & 0x7f;
    size_t i = 0;
    if ((field[0] & 0x80) != 0) {
        for (i = 1; i < size; i++) {
            if (value >> 55 != 0)
                return false;
            value = value << 8 | field[i];
        }
        *out = value;
        return true;
    }
    value = 0;
    while (i < size && field[i] == ' ')
        i++;
    for (; i < size && field[i] >= '0' && field[i] <= '7'; i++)
        value = value << 3 | (uint64_t)(field[i] - '0'); /* 12 digits fit */
    *out = value;
    return i == size || field[i] == ' ' || field[i] == '\0';
}

static bool is_zero(const uint8_t *block)
{
    for (size_t i = 0; i < BLOCK; i++)
        if (block[i] != 0)
            return false;
    return true;
}

/* The sum of all bytes, the field itself taken for blanks; some summed signed ones. */
static bool has_checksum(const uint8_t *block)
{
    uint64_t stated;
    int64_t sum = 0;
    int64_t signed_sum = 0;
    for (size_t i = 0; i < BLOCK; i++) {
        uint8_t byte = i >= CHECKSUM && i < CHECKSUM + CHECKSUM_SIZE ? ' ' : block[i];
        sum += byte;
        signed_sum += (int8_t)byte;
    }
    return parse_number(block + CHECKSUM, CHECKSUM_SIZE, &stated) &&
           ((int64_t)stated == sum || (int64_t)stated == signed_sum);
}

/* ---- members ---- */

static uint64_t padded(uint64_t size)
{
    return (size + BLOCK - 1) / BLOCK * BLOCK;
}

/* Leaves bytes out that must be there. */
static int skip(struct parsing *p, uint64_t size)
{
    bool done;
    int rc = symint_tar_input_skip(&p->in, size, &done);
    return rc != 0 ? rc : done ? GO_ON : stop_short(p);
}

/* That the last one is not there, the next header will tell. */
static int skip_padding(struct parsing *p, uint64_t size)
{
    bool done;
    int rc = symint_tar_input_skip(&p->in, padded(size) - size, &done);
    return rc != 0 ? rc : GO_ON;
}

/* Reads an extension whose padding is left out. GO_ON with *bytes NULL: it is longer than any that counts. */
static int read_extension(struct parsing *p, uint64_t size, char **bytes)
{
    size_t got = 0;
    *bytes = NULL;
    if (size > MAX_EXTENSION) {
        p->next.unusable = true;
        return skip(p, padded(size));
    }
    *bytes = malloc((size_t)size + 1);
    if (*bytes == NULL)
        return SYM_ERR_NOMEM;
    int rc = symint_tar_input_read(&p->in, *bytes, (size_t)size, &got);
    if (rc == 0)
        rc = got < size ? stop_short(p) : skip_padding(p, size);
    if (rc != GO_ON) {
        free(*bytes);
        *bytes = NULL;
        return rc;
    }
    (*bytes)[size] = '\0';
    return rc;
}

/* Takes what a member says about the next one. */
static int take_extension(struct parsing *p, char type, uint64_t size)
{
    char *bytes;
    int rc = read_extension(p, size, &bytes);
    if (rc != GO_ON || bytes == NULL)
        return rc;
    rc = symint_tar_extension_take(&p->next, type, bytes, (size_t)size);
    free(bytes);
    return rc == 0 ? stop(p, "has damaged pax records") : rc;
}

/* Copies the bytes of a file to where it is kept unpacked. */
static int unpack(struct parsing *p, uint64_t size)
{
    uint8_t bytes[65536];
    size_t got;
    if (p->t->unpacked < 0 && (p->t->unpacked = symint_temporary_file()) < 0) {
        p->no_room = true;
        return SYM_ERR_IO;
    }
    while (size > 0) {
        size_t part = size < sizeof(bytes) ? (size_t)size : sizeof(bytes);
        int rc = symint_tar_input_read(&p->in, bytes, part, &got);
        if (rc != 0)
            return rc;
        if (got < part)
            return stop_short(p);
        for (size_t done = 0; done < part;) {
            ssize_t n = pwrite(p->t->unpacked, bytes + done, part - done, (off_t)p->kept);
            if (n < 0 && errno == EINTR)
                continue;
            if (n <= 0) {
                p->no_room = true;
                return SYM_ERR_IO;
            }
            done += (size_t)n;
            p->kept += (uint64_t)n;
        }
        size -= part;
    }
    return GO_ON;
}

/* Keeps the bytes of a file. *offset: where. */
static int take_bytes(struct parsing *p, uint64_t size, uint64_t *offset)
{
    *offset = p->in.packed ? p->kept : p->in.at;
    return p->in.packed && size > 0 ? unpack(p, size) : skip(p, size);
}

/* The name in a header, NUL-terminated. */
static void header_name(const uint8_t *h, char name[PREFIX_SIZE + NAME_SIZE + 2])
{
    size_t size = 0;
    if (memcmp(h + MAGIC, "ustar", 6) == 0 && h[PREFIX] != '\0') {
        size = strnlen((const char *)h + PREFIX, PREFIX_SIZE);
        memcpy(name, h + PREFIX, size);
        name[size++] = '/';
    }
    size_t rest = strnlen((const char *)h + NAME, NAME_SIZE);
    memcpy(name + size, h + NAME, rest);
    name[size + rest] = '\0';
}

static bool ends_in_slash(const char *name)
{
    size_t size = strlen(name);
    return size > 0 && name[size - 1] == '/';
}

static enum symint_tar_kind kind_of(char type, const char *name)
{
    return type == '1'                          ? SYMINT_TAR_HARD_LINK
           : type == '2'                        ? SYMINT_TAR_LINK
           : type == '5' || ends_in_slash(name) ? SYMINT_TAR_FOLDER
                                                : SYMINT_TAR_FILE;
}

static bool is_known(char type)
{
    return type != '\0' && strchr("01257", type) != NULL;
}

/* Describes the member of the header. False: there is no file in it that we can use. */
static bool describe(struct parsing *p, char type, struct symint_tar_member *m, char *name,
                     char *link)
{
    struct symint_tar_extension *e = &p->next;
    const uint8_t *h = p->header;
    uint64_t seconds;
    if (e->name == NULL)
        header_name(h, name);
    else
        memcpy(name, e->name, strlen(e->name) + 1);
    size_t size = strnlen((const char *)h + LINK, LINK_SIZE);
    memcpy(link, h + LINK, size);
    link[size] = '\0';
    if (e->link != NULL)
        memcpy(link, e->link, strlen(e->link) + 1);
    *m = (struct symint_tar_member){.kind = kind_of(type, name), .name = name};
    if (m->kind == SYMINT_TAR_LINK || m->kind == SYMINT_TAR_HARD_LINK)
        m->link = link;
    if (parse_number(h + TIME, NUMBER_SIZE, &seconds) && seconds <= INT64_MAX / 2)
        m->mtime_s = (int64_t)seconds;
    if (e->has_time) {
        m->mtime_s = e->mtime_s;
        m->mtime_ns = e->mtime_ns;
    }
    if (type == '3' || type == '4' || type == '6' || type == 'V')
        return false; /* devices, FIFOs, the name of the volume: no files, as in a folder */
    if (type == 'S' || e->sparse)
        p->sparse++;
    else if (!is_known(type))
        p->other++;
    else if (e->unusable || !symint_tar_normalize(name) || (m->link != NULL && link[0] == '\0') ||
             (m->kind == SYMINT_TAR_HARD_LINK && !symint_tar_normalize(link)))
        p->hostile++;
    else
        return name[0] != '\0';
    return false;
}

/* Leaves GNU's further lists of pieces out. */
static int skip_pieces(struct parsing *p)
{
    uint8_t block[BLOCK];
    size_t got;
    bool more = p->header[SPARSE_GOES_ON] != 0;
    while (more) {
        int rc = symint_tar_input_read(&p->in, block, sizeof(block), &got);
        if (rc != 0 || got < sizeof(block))
            return rc != 0 ? rc : stop_short(p);
        more = block[SPARSE_BLOCK_GOES_ON] != 0;
    }
    return GO_ON;
}

static int take_member(struct parsing *p, char type, uint64_t size)
{
    struct symint_tar_member m;
    char name[SYMINT_TAR_NAME_BYTES];
    char link[SYMINT_TAR_NAME_BYTES];
    bool usable = describe(p, type, &m, name, link);
    int rc = type == 'S' ? skip_pieces(p) : GO_ON;
    if (rc == GO_ON && usable && m.kind == SYMINT_TAR_FILE) {
        m.size_bytes = size;
        rc = take_bytes(p, size, &m.offset);
    } else if (rc == GO_ON) {
        rc = skip(p, size);
    }
    if (rc == GO_ON && usable) {
        rc = symint_tar_index_add(&p->t->index, &m);
        if (rc == SYM_ERR_LIMIT)
            return stop(p, "and what follows is left out: there are too many");
        rc = rc == 0 ? GO_ON : rc;
    }
    return rc == GO_ON ? skip_padding(p, size) : rc;
}

/* Links, devices and folders have no bytes, whatever their size says. */
static bool has_bytes(char type)
{
    return type < '1' || type > '6';
}

/* Takes the member whose header was read. */
static int take_header(struct parsing *p)
{
    const uint8_t *h = p->header;
    char type = h[TYPE] == '\0' ? '0' : (char)h[TYPE];
    uint64_t size;
    if (!has_checksum(h))
        return stop(p, "has a damaged header");
    bool known = parse_number(h + SIZE, NUMBER_SIZE, &size);
    if (type != 'g' && !symint_tar_is_extension(type) && p->next.has_size) {
        size = p->next.size;
        known = true;
    }
    if (!has_bytes(type))
        size = 0;
    else if (!known || size > INT64_MAX - BLOCK)
        return stop(p, "has a damaged size");
    if (size > p->in.most_bytes - (p->in.at < p->in.most_bytes ? p->in.at : p->in.most_bytes))
        return stop(p, p->in.packed ? "states more bytes than can be in it" : "is cut off");
    if (type == 'g')
        return skip(p, padded(size));
    if (symint_tar_is_extension(type))
        return take_extension(p, type, size);
    int rc = take_member(p, type, size);
    symint_tar_extension_forget(&p->next);
    return rc;
}

/* The checksum of what gzip packed is behind the padding of the last record. */
static int check_rest(struct parsing *p)
{
    bool done;
    if (!p->in.packed)
        return END;
    int rc = symint_tar_input_skip(&p->in, MAX_BEHIND, &done);
    return rc == 0 && p->in.damage != NULL ? stop_short(p) : rc;
}

/* Reads a block. GO_ON, or END at the end of what there is. */
static int read_block(struct parsing *p)
{
    size_t got;
    p->header_at = p->in.at;
    int rc = symint_tar_input_read(&p->in, p->header, BLOCK, &got);
    if (rc != 0 || got == BLOCK)
        return rc != 0 ? rc : GO_ON;
    if (got > 0 || p->in.damage != NULL)
        return stop_short(p);
    tell(p, "it ends at byte %" PRIu64 " without an end mark", p->in.at);
    return END;
}

/* A block of zeros begins the end mark. A file that begins with it is an empty tar file only if a second follows. */
static int take_end(struct parsing *p, bool *is_tar)
{
    if (!*is_tar) {
        int rc = read_block(p);
        if (rc != GO_ON)
            return rc;
        *is_tar = is_zero(p->header);
    }
    return check_rest(p);
}

static int parse(struct parsing *p, bool *is_tar)
{
    int rc;
    *is_tar = false;
    while ((rc = read_block(p)) == GO_ON) {
        if (is_zero(p->header))
            return take_end(p, is_tar);
        *is_tar = *is_tar || has_checksum(p->header);
        rc = take_header(p);
        if (rc != GO_ON)
            break;
    }
    return rc;
}

/* ---- for archive.c ---- */

void symint_tar_free(struct symint_tar *t)
{
    if (t == NULL)
        return;
    symint_tar_index_free(&t->index);
    if (t->fd >= 0)
        close(t->fd);
    if (t->unpacked >= 0)
        close(t->unpacked);
    free(t);
}

int symint_tar_data(const struct symint_tar *t)
{
    return t->unpacked >= 0 ? t->unpacked : t->fd;
}

int symint_tar_open(int fd, struct symint_tar **out, char *why, size_t room)
{
    struct parsing p = {.t = calloc(1, sizeof(*p.t))};
    bool is_tar = false;
    size_t dangling = 0;
    *out = NULL;
    if (p.t == NULL) {
        close(fd);
        return SYM_ERR_NOMEM;
    }
    p.t->fd = fd;
    p.t->unpacked = -1;
    int rc = symint_tar_input_open(&p.in, fd);
    if (rc == 0)
        rc = parse(&p, &is_tar);
    if (rc == 0)
        rc = symint_tar_index_finish(&p.t->index, &dangling);
    int error = errno;
    if (rc == SYM_ERR_IO && p.no_room) {
        snprintf(why, room, "temporary file in %s: %s", symint_temporary_folder(), strerror(error));
    } else if (rc == SYM_ERR_IO) {
        snprintf(why, room, "%s", strerror(error));
    } else if (rc == 0 && !is_tar && p.in.damage == NULL) {
        snprintf(why, room, "neither a folder nor a tar file");
        rc = SYM_ERR_FORMAT;
    } else if (rc == 0 && p.t->index.count == 0 && p.t->fault[0] != '\0') {
        snprintf(why, room, "%s", p.t->fault);
        rc = SYM_ERR_FORMAT;
    }
    if (rc == 0)
        tell_left_out(&p, dangling);
    symint_tar_extension_forget(&p.next);
    symint_tar_input_close(&p.in);
    if (rc == 0)
        *out = p.t;
    else
        symint_tar_free(p.t);
    errno = error;
    return rc;
}
