/* SPDX-License-Identifier: MIT */
/*
 * From registers and copied stack bytes to return addresses: finds the mapping of each pc, the rule of its
 * file there (cached), and applies it. Knows nothing of perf events, processes or spools: the caller
 * says what is mapped where. Nothing is allocated for a stack once the caches have grown.
 */
#ifndef RECORD_UNWIND_H
#define RECORD_UNWIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arch.h"
#include "image.h"

#define UNWIND_NO_MODULE UINT32_MAX

/* What is mapped at an address. */
struct unwind_range {
    uint64_t start; /* [start, end) */
    uint64_t end;
    uint64_t file_offset;     /* of start */
    uint32_t module;          /* the caller's number for it, handed back in frames */
    struct image *image;      /* NULL: memory without an ELF file that could be opened */
    struct rule_table *rules; /* of the image; NULL exactly when image is */
    bool file;       /* a file or the vdso is mapped; false: anonymous memory (generated code) */
    bool trampoline; /* [uprobes]: return addresses that point here were replaced */
};

/* Rules of one image, by its own addresses (the second level): shared by all processes that map it. At most
 * 4 MiB of addresses and 1.5 MiB of rules. May be freed once no space through which it was found is walked
 * any more without a change of its generation. */
struct rule_table;
struct rule_table *recordint_rule_table_new(void); /* NULL: out of memory */
void recordint_rule_table_free(struct rule_table *t);

/* Answers by runtime address (the first level): 32 KiB that grow to 2 MiB while addresses are in each other's way, and 64 KiB
 * for return addresses of code without unwind data. One cache may serve many spaces, which is what bounds the
 * memory for hundreds of processes: an entry is good for an address and a generation, so the spaces that share it
 * must draw their generations from one counter and never use a number twice. generation must be changed by the
 * caller when a mapping was replaced or removed; one that was added to free space need not, since "no mapping" is
 * never kept. Nor is "file without an image". */
struct unwind_cache;
struct unwind_cache *recordint_unwind_cache_new(void); /* NULL: out of memory */
void recordint_unwind_cache_free(struct unwind_cache *c);

struct unwind_space {
    /* The executable mapping that contains the address. Returns true and *out, or false. May change what is
     * mapped (a rescan); it then raises *generation as said above. */
    bool (*find)(void *user, uint64_t address, struct unwind_range *out);
    void *user;
    struct unwind_cache *cache; /* NULL: uncached */
    uint64_t generation;        /* of the mappings; may be changed by find through user */
    /* Reads the target's code at an address; returns how many of size bytes, the first ones. NULL: only images
     * are looked at. */
    size_t (*read_code)(void *user, uint64_t address, void *out, size_t size);
    /* With a cache: what is made from instructions is kept there and in code_rules, of its own; NULL: nothing is.
     * Generated code may change without a word: it is read again when code_round, not 0, is another. */
    struct rule_table *code_rules;
    uint32_t code_round;
};

struct unwind_input {
    enum arch arch;
    struct regs regs;
    const uint8_t *stack; /* copied bytes; stack[0] is at the stack pointer in regs; NULL: none */
    size_t stack_size;
    uint64_t pac_mask; /* AArch64: bits of a code address that are not address; 0 elsewhere */
};

/* How a walk ended. All but COMPLETE end in the truncated marker in a spool. A return address where nothing
 * executable is mapped makes no frame: the walk ends before it. */
enum unwind_end {
    UNWIND_COMPLETE =
        0,            /* return address undefined, or 0 by unwind data; without: frame pointer 0 */
    UNWIND_TRUNCATED, /* needed bytes behind the copied part */
    UNWIND_STACK_READ, /* needed bytes below the stack pointer, more than 64 MiB away, or on the stack that a
                            signal handler with a stack of its own interrupted: a larger copy has none of them */
    UNWIND_NO_PROGRESS, /* same (pc, CFA) again */
    UNWIND_BACKWARDS,   /* CFA not above the old one */
    UNWIND_NULL_RETURN, /* return address 0 by frame pointer, although the frame has a caller by it */
    UNWIND_OVERFLOW,    /* an address beyond 64 bits */
    UNWIND_DEPTH,       /* frames is full */
    UNWIND_NO_RULE,     /* neither unwind data nor a frame pointer that holds */
    UNWIND_UPROBE,      /* a return address replaced by a uretprobe */
    UNWIND_NO_REGISTERS /* pc or sp is not known */
};

struct unwind_frame {
    uint64_t
        address; /* lookup address: pc of the first frame, of a signal frame and of what it interrupted; pc - 1 else */
    uint32_t module; /* of the mapping it lies in, UNWIND_NO_MODULE: none */
};

struct unwind_result {
    size_t count; /* frames stored, leaf first */
    enum unwind_end end;
    bool
        guessed; /* a frame was found by frame pointer or at the top of the stack, without unwind data */
    bool by_code; /* a frame was found by its function's instructions, without unwind data */
    bool signal;  /* a signal frame was crossed */
};

/* Walks one stack, storing at most max frames (>= 1). Always returns with at least the first frame when the
 * pc is known. */
void recordint_unwind(struct unwind_space *space, const struct unwind_input *input,
                      struct unwind_frame *frames, size_t max, struct unwind_result *out);

#endif
