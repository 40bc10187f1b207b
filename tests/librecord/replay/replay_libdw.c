/* SPDX-License-Identifier: MIT */
/* The walk by libdw's rows: files by mapping, the row of an address, and a row applied to registers and stack. */
#include "replay_libdw.h"

#include <elfutils/libdw.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "replay_expression.h"
#include "rule.h"

struct segment {
    uint64_t offset;
    uint64_t size;
    uint64_t address;
};

struct file {
    bool tried;
    int fd;
    char *copy; /* of the vdso */
    Elf *elf;
    Dwarf *dwarf;
    Dwarf_CFI *eh_frame;
    Dwarf_CFI *debug_frame; /* the dwarf's */
    struct segment *code;   /* executable segments */
    size_t code_count;
};

struct libdw_files {
    const struct replay *replay;
    struct file *files;
};

struct libdw_files *libdw_files_new(const struct replay *replay)
{
    struct libdw_files *files = calloc(1, sizeof *files);

    elf_version(EV_CURRENT);
    if (files != NULL)
        files->files = calloc(replay->path_count + 1, sizeof *files->files);
    if (files == NULL || files->files == NULL) {
        fprintf(stderr, "unwind_replay: no memory\n");
        exit(2);
    }
    files->replay = replay;
    return files;
}

void libdw_files_free(struct libdw_files *files)
{
    for (size_t i = 0; i < files->replay->path_count; i++) {
        struct file *f = &files->files[i];

        if (f->eh_frame != NULL)
            dwarf_cfi_end(f->eh_frame);
        if (f->dwarf != NULL)
            dwarf_end(f->dwarf);
        if (f->elf != NULL)
            elf_end(f->elf);
        if (f->tried && f->fd >= 0)
            close(f->fd);
        free(f->copy);
        free(f->code);
    }
    free(files->files);
    free(files);
}

static void read_segments(struct file *f)
{
    size_t count = 0;

    if (elf_getphdrnum(f->elf, &count) != 0)
        return;
    f->code = calloc(count + 1, sizeof *f->code);
    for (size_t i = 0; f->code != NULL && i < count; i++) {
        GElf_Phdr header;

        if (gelf_getphdr(f->elf, (int)i, &header) == NULL || header.p_type != PT_LOAD ||
            (header.p_flags & PF_X) == 0)
            continue;
        f->code[f->code_count].offset = header.p_offset;
        f->code[f->code_count].size = header.p_filesz;
        f->code[f->code_count++].address = header.p_vaddr;
    }
}

static void open_file(struct file *f, const char *path)
{
    f->tried = true;
    f->fd = -1;
    if (strcmp(path, "[vdso]") == 0) {
        size_t size = 0;
        const void *vdso = replay_vdso(&size);

        f->copy = vdso != NULL ? malloc(size) : NULL;
        if (f->copy == NULL)
            return;
        memcpy(f->copy, vdso, size);
        f->elf = elf_memory(f->copy, size);
    } else if (path[0] == '/' && path[1] != '/') {
        f->fd = open(path, O_RDONLY | O_CLOEXEC);
        if (f->fd >= 0)
            f->elf = elf_begin(f->fd, ELF_C_READ_MMAP, NULL);
    }
    if (f->elf == NULL || elf_kind(f->elf) != ELF_K_ELF)
        return;
    f->eh_frame = dwarf_getcfi_elf(f->elf);
    f->dwarf = dwarf_begin_elf(f->elf, DWARF_C_READ, NULL);
    f->debug_frame = f->dwarf != NULL ? dwarf_getcfi(f->dwarf) : NULL;
    read_segments(f);
}

/* What is mapped at the address; NULL: nothing. *image_address: the file's own, 0: none. */
static struct file *place(struct libdw_files *files, const struct replay_view *view,
                          uint64_t address, uint64_t *image_address)
{
    const struct replay_mapping *mapping = replay_mapping_at(view, address);
    struct file *f;

    if (mapping == NULL)
        return NULL;
    f = &files->files[mapping->module];
    if (!f->tried)
        open_file(f, files->replay->paths[mapping->module]);
    *image_address = 0;
    for (size_t i = 0; i < f->code_count; i++) {
        uint64_t offset = address - mapping->start + mapping->file_offset;

        if (offset - f->code[i].offset < f->code[i].size)
            *image_address = offset - f->code[i].offset + f->code[i].address;
    }
    return f;
}

/* The row at an address, to be freed; NULL: there is none. */
static Dwarf_Frame *row_at(struct libdw_files *files, const struct replay_view *view,
                           uint64_t address, bool *mapped, uint64_t *bias)
{
    uint64_t image_address = 0;
    struct file *f = place(files, view, address, &image_address);
    Dwarf_Frame *row = NULL;

    *mapped = f != NULL;
    *bias = address - image_address;
    if (f == NULL || image_address == 0)
        return NULL;
    if (f->eh_frame != NULL && dwarf_cfi_addrframe(f->eh_frame, image_address, &row) == 0)
        return row;
    if (f->debug_frame != NULL && dwarf_cfi_addrframe(f->debug_frame, image_address, &row) == 0)
        return row;
    return NULL;
}

static bool is_signal_row(Dwarf_Frame *row)
{
    bool signal = false;

    if (row != NULL)
        dwarf_frame_info(row, NULL, NULL, &signal);
    return signal;
}

/* A register of the caller: its value, none (EXPRESSION_UNDEFINED), or why it cannot be told. */
static enum expression_result caller_register(Dwarf_Frame *row, struct expression *e, unsigned reg,
                                              uint64_t *out)
{
    Dwarf_Op memory[3], *ops;
    size_t count;

    if (dwarf_frame_register(row, (int)reg, memory, &ops, &count) != 0)
        return EXPRESSION_BAD;
    if (count == 0) {
        bool same = ops == NULL;

#if defined(__x86_64__)
        /* libdw's table of what the ABI keeps has rax in rbx's place (at least up to 0.188). */
        same = (same && reg != 0) || reg == REG_X86_RBX;
#endif
        if (!same)
            return EXPRESSION_UNDEFINED;
        *out = e->regs->value[reg];
        return reg_is_known(e->regs, reg) ? EXPRESSION_VALUE : EXPRESSION_REGISTER;
    }
    return expression_location(e, ops, count, out);
}

/* Moves regs to the caller. -1: done, else an enum libdw_end. */
static int step(Dwarf_Frame *row, struct expression *e, struct regs *regs, uint64_t *last_cfa,
                bool leaf, bool signal)
{
    unsigned sp = reg_sp(ARCH_NATIVE), return_column;
    struct regs caller = {{0}, 0};
    enum expression_result result, returns;
    uint64_t cfa = 0, return_address = 0;
    Dwarf_Op *ops;
    size_t count;

    return_column = (unsigned)dwarf_frame_info(row, NULL, NULL, NULL);
    result = dwarf_frame_cfa(row, &ops, &count) != 0 || count == 0
                 ? EXPRESSION_BAD
                 : expression_value(e, ops, count, &cfa);
    e->has_cfa = result == EXPRESSION_VALUE;
    e->cfa = cfa;
    returns = caller_register(row, e, return_column, &return_address);
    if (returns == EXPRESSION_UNDEFINED)
        return LIBDW_COMPLETE;
    if (result != EXPRESSION_VALUE)
        return result == EXPRESSION_READ ? LIBDW_READ : LIBDW_EXPRESSION;
    if (!signal && cfa <= *last_cfa && !(leaf && cfa == *last_cfa))
        return LIBDW_STUCK;
    if (returns != EXPRESSION_VALUE)
        return returns == EXPRESSION_READ ? LIBDW_READ : LIBDW_EXPRESSION;
    if (return_address == 0 && !signal)
        return LIBDW_COMPLETE;
    for (unsigned reg = 0; reg < rule_register_count(ARCH_NATIVE); reg++) {
        uint64_t value;

        /* Of others, calls leave nothing: no row speaks of them but a signal frame's. */
        if (!signal && reg != sp && !rule_is_callee_saved(ARCH_NATIVE, reg))
            continue;
        result = caller_register(row, e, reg, &value);
        if (result == EXPRESSION_VALUE)
            reg_set(&caller, reg, value);
        else if (result == EXPRESSION_READ && reg_is_known(regs, reg))
            reg_set(&caller, reg, regs->value[reg]); /* what cannot be read keeps its value */
    }
    reg_set(&caller, reg_pc(ARCH_NATIVE), return_address);
    *regs = caller;
    *last_cfa = signal ? regs->value[sp] : cfa;
    return -1;
}

void libdw_files_walk(struct libdw_files *files, const struct replay_sample *sample,
                      struct libdw_walk *out)
{
    const struct perf_event *event = sample->event;
    struct regs regs = event->sample.regs;
    unsigned pc = reg_pc(ARCH_NATIVE);
    struct expression e = {&regs,
                           event->sample.stack,
                           event->sample.regs.value[reg_sp(ARCH_NATIVE)],
                           event->sample.stack_size,
                           0,
                           0,
                           false};
    uint64_t last_cfa = e.stack_start;
    bool leaf = true;
    int end = -1;

    out->count = 0;
    while (end < 0) {
        uint64_t address = regs.value[pc] - (leaf ? 0 : 1);
        bool mapped, signal;
        Dwarf_Frame *row = row_at(files, sample->view, address, &mapped, &e.bias);

        signal = is_signal_row(row);
        if (!leaf && (signal || row == NULL)) { /* the byte before a signal frame is no one's */
            bool exact_mapped;
            uint64_t exact_bias;
            Dwarf_Frame *exact =
                row_at(files, sample->view, address + 1, &exact_mapped, &exact_bias);

            if (is_signal_row(exact)) {
                free(row);
                row = exact;
                e.bias = exact_bias;
                mapped = signal = true;
                address++;
            } else {
                free(exact);
            }
        }
        if (!mapped && !leaf) {
            end = LIBDW_UNMAPPED;
        } else if (out->count == REPLAY_FRAMES) {
            end = LIBDW_DEPTH;
        } else {
            if (out->state != NULL)
                out->state[out->count] = (struct libdw_state){regs, last_cfa, leaf, signal};
            out->address[out->count++] = address;
            e.has_cfa = false;
            end = row == NULL ? LIBDW_NO_CFI : step(row, &e, &regs, &last_cfa, leaf, signal);
        }
        leaf = signal;
        free(row);
    }
    out->end = (enum libdw_end)end;
}
