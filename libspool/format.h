/* SPDX-License-Identifier: MIT */
/*
 * The numbers of the spool format: magics, tags, limits. Nothing else in the library holds one of them.
 * Mirrors spool(5).
 */
#ifndef SPOOLINT_FORMAT_H
#define SPOOLINT_FORMAT_H

/* "SPULSE", the version as one digit, NUL. */
#define FORMAT_MAGIC_STEM "SPULSE"
#define FORMAT_MAGIC_STEM_SIZE 6
#define FORMAT_MAGIC_SIZE 8

#define FORMAT_VERSION_MIN 1
#define FORMAT_VERSION_MAX 4
#define FORMAT_VERSION_MODULE_DEACTIVATION 2 /* first with tag 8 */
#define FORMAT_VERSION_IDENTITY 3            /* first with device and inode generation */
#define FORMAT_VERSION_ORIGIN 4 /* first with nanoseconds, a clock origin, positive ids, tag 9 */

enum {
    FORMAT_TAG_MODULE = 1,
    FORMAT_TAG_FRAME = 2,
    FORMAT_TAG_STACK = 3,
    FORMAT_TAG_THREAD = 4,
    FORMAT_TAG_SAMPLE = 5,
    FORMAT_TAG_PYTHON = 6,
    FORMAT_TAG_DEACTIVATE_PROCESS = 7,
    FORMAT_TAG_DEACTIVATE_MODULE = 8,
    FORMAT_TAG_JIT_MODULE = 9
};

/* Frame codes: even is 2 x module; odd is unpinned, but for the marker. */
#define FORMAT_CODE_USER 1
#define FORMAT_CODE_KERNEL 3
#define FORMAT_CODE_TRUNCATED 5
#define FORMAT_CODE_KERNEL_BIT 2

#define FORMAT_ID_NONE 0xffffffffu /* prefix of a root node */
#define FORMAT_ID_MAX 0xfffffffeu

#define FORMAT_VARINT_MAX_SIZE 10

#define FORMAT_TID_MAX_V4 0x7fffffffu
#define FORMAT_NANOSECONDS_MAX 999999999u

#define FORMAT_JIT_SYMBOLS_MAX 1000000u
#define FORMAT_JIT_NAME_MAX 1048576u

/* Annotations: modules that map nothing, with a path that begins so. */
#define FORMAT_NOTE_STEM "[spool:"
#define FORMAT_NOTE_STEM_SIZE 7
#define FORMAT_NOTE_PATH_MAX 4096

/* Ours, not the format's: a path above this is refused with a clear error, so that one record cannot make a
 * reader hold a file of any size. (PATH_MAX is 4096.) */
#define FORMAT_PATH_LIMIT (64u << 20)
/* Ours: the names of one JIT module together. */
#define FORMAT_JIT_BYTES_LIMIT (512u << 20)

#endif
