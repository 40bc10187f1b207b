/* SPDX-License-Identifier: MIT */
/* The words for every code, state, reason and origin of the API, and for what was compiled in. Needs nothing else of the
 * library: a program that asks for no names gets no more than this. */
#include "spool/sym.h"

#ifdef SPOOL_HAVE_LZMA
#define LZMA_WORD " lzma"
#else
#define LZMA_WORD ""
#endif
#ifdef SPOOL_HAVE_ZSTD
#define ZSTD_WORD " zstd"
#else
#define ZSTD_WORD ""
#endif
#ifdef SPOOL_HAVE_LIBDEFLATE
#define LIBDEFLATE_WORD " libdeflate"
#else
#define LIBDEFLATE_WORD ""
#endif
#ifdef SPOOL_HAVE_DEBUGINFOD
#define DEBUGINFOD_WORD " debuginfod"
#else
#define DEBUGINFOD_WORD ""
#endif

static const struct {
    int code;
    const char *name;
    const char *text;
} errors[] = {
    {0, "SYM_OK", "no error"},
    {SYM_ERR_NOMEM, "SYM_ERR_NOMEM", "out of memory"},
    {SYM_ERR_IO, "SYM_ERR_IO", "a file could not be read"},
    {SYM_ERR_FORMAT, "SYM_ERR_FORMAT", "a file is not of the expected format"},
    {SYM_ERR_LIMIT, "SYM_ERR_LIMIT", "a limit was exceeded"},
    {SYM_ERR_MISUSE, "SYM_ERR_MISUSE",
     "a function was called with arguments or in an order that it does not allow"},
    {SYM_ERR_NOT_FOUND, "SYM_ERR_NOT_FOUND", "a file does not exist"},
    {SYM_ERR_OPEN_FILES, "SYM_ERR_OPEN_FILES", "too many open files (ulimit -n)"},
};

const char *sym_error_name(int code)
{
    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
        if (errors[i].code == code)
            return errors[i].name;
    return "SYM_ERR_UNKNOWN";
}

const char *sym_error_text(int code)
{
    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
        if (errors[i].code == code)
            return errors[i].text;
    return "unknown error";
}

const char *sym_kernel_state_text(enum sym_kernel_state state)
{
    switch (state) {
    case SYM_KERNEL_NONE:
        return "no kernel symbols were loaded";
    case SYM_KERNEL_OK:
        return "kernel symbols are loaded";
    case SYM_KERNEL_OTHER_BOOT:
        return "the capture is from another boot, kernel or machine";
    case SYM_KERNEL_UNKNOWN_BOOT:
        return "the capture does not say in which boot it was made";
    case SYM_KERNEL_RESTRICTED:
        return "every kernel address reads as 0 (kernel.kptr_restrict)";
    case SYM_KERNEL_EMPTY:
        return "no usable kernel symbol";
    case SYM_KERNEL_UNREADABLE:
        return "the kernel symbols cannot be read";
    case SYM_KERNEL_UNKNOWN_SHIFT:
        return "how far the kernel was moved when it started (KASLR) is unknown";
    }
    return "unknown state of the kernel symbols";
}

const char *sym_miss_text(enum sym_miss miss)
{
    switch (miss) {
    case SYM_MISS_NONE:
        return "found";
    case SYM_MISS_NO_FILE:
        return "no such file";
    case SYM_MISS_UNREADABLE:
        return "the file cannot be read";
    case SYM_MISS_NOT_REGULAR:
        return "not a regular file";
    case SYM_MISS_NOT_ELF:
        return "not an ELF file";
    case SYM_MISS_DAMAGED:
        return "the file is damaged";
    case SYM_MISS_BUILD_ID:
        return "the file is another build than the recorded one";
    case SYM_MISS_NO_SYMBOLS:
        return "the file has no symbols";
    case SYM_MISS_OUTSIDE:
        return "the address is outside the file's code";
    case SYM_MISS_NO_SYMBOL:
        return "no symbol covers the address";
    case SYM_MISS_NO_PERF_MAP:
        return "generated code, and the process has no perf map";
    case SYM_MISS_NOT_IN_PERF_MAP:
        return "the perf map has no entry for the address";
    case SYM_MISS_NO_JIT_NAME:
        return "no recorded name for this generated code";
    case SYM_MISS_KERNEL:
        return "no kernel symbols";
    case SYM_MISS_NO_MODULE:
        return "the address is in no module";
    case SYM_MISS_DISABLED:
        return "names are switched off";
    case SYM_MISS_TOO_LARGE:
        return "too large";
    case SYM_MISS_STALE:
        return "written by another process that had this id";
    }
    return "unknown reason";
}

const char *sym_origin_text(enum sym_origin origin)
{
    switch (origin) {
    case SYM_ORIGIN_DWARF:
    case SYM_ORIGIN_SYMTAB:
    case SYM_ORIGIN_DYNSYM:
    case SYM_ORIGIN_MINIDEBUG:
    case SYM_ORIGIN_PLT:
        return "elf";
    case SYM_ORIGIN_PERF_MAP:
        return "perf-map";
    case SYM_ORIGIN_KALLSYMS:
    case SYM_ORIGIN_SYSMAP:
    case SYM_ORIGIN_VMLINUX:
        return "kernel";
    case SYM_ORIGIN_JIT:
        return "jit";
    case SYM_ORIGIN_FDE:
    case SYM_ORIGIN_ADDRESS:
        break;
    }
    return "address";
}

const char *sym_features(void)
{
    /* Each word with a blank in front of it; the first one's is skipped. */
    static const char words[] = LZMA_WORD ZSTD_WORD LIBDEFLATE_WORD DEBUGINFOD_WORD;
    return words[0] == ' ' ? words + 1 : words;
}
