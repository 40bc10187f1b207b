/* SPDX-License-Identifier: MIT */
/*
 * cfi_libdw FILE: compares each row of each FDE with libdw's, whose parser shares nothing with ours.
 * Prints how many rows there were; 1: some differ.
 */
#include "cfi.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static unsigned long failures;

static void differs(uint64_t address, const char *what)
{
    if (failures++ < 10)
        fprintf(stderr, "cfi_libdw: %" PRIx64 ": %s\n", address, what);
}

static bool same_offset(const Dwarf_Op *ops, size_t n, int64_t offset, bool value)
{
    size_t count = offset == 0 ? 1 : 2;
    if (n < count || ops[0].atom != DW_OP_call_frame_cfa)
        return false;
    if (offset != 0 && (ops[1].atom != DW_OP_plus_uconst || ops[1].number != (uint64_t)offset))
        return false;
    return value ? n == count + 1 && ops[count].atom == DW_OP_stack_value : n == count;
}

static bool same_expression(const Dwarf_Op *ops, size_t n, const struct cfi_expr *expr, bool value)
{
    return n > 1 && ops[0].atom == DW_OP_call_frame_cfa && expr->size > 0 &&
           ops[1].atom == expr->bytes[0] && (ops[n - 1].atom == DW_OP_stack_value) == value;
}

static bool same_rule(Dwarf_Frame *frame, int reg, const struct cfi_rule *rule)
{
    Dwarf_Op memory[3];
    Dwarf_Op *ops;
    size_t n;
    if (dwarf_frame_register(frame, reg, memory, &ops, &n) != 0)
        return false;
    bool nothing = n == 0;
    switch (rule->kind) {
    case CFI_UNSPECIFIED: /* libdw fills in what the ABI says */
        return nothing || (reg == 7 || reg == 31);
    case CFI_UNDEFINED:
        return nothing && ops != NULL;
    case CFI_SAME_VALUE:
        return nothing && ops == NULL;
    case CFI_OFFSET:
        return same_offset(ops, n, rule->offset, false);
    case CFI_VAL_OFFSET:
        return same_offset(ops, n, rule->offset, true);
    case CFI_REGISTER:
        return n == 1 && ops[0].atom == DW_OP_regx && ops[0].number == rule->reg;
    case CFI_EXPRESSION:
        return same_expression(ops, n, &rule->expr, false);
    case CFI_VAL_EXPRESSION:
        return same_expression(ops, n, &rule->expr, true);
    }
    return false;
}

static bool same_cfa(Dwarf_Frame *frame, const struct cfi_row *row)
{
    Dwarf_Op *ops;
    size_t n;
    if (dwarf_frame_cfa(frame, &ops, &n) != 0 || n == 0)
        return false;
    if (row->cfa_is_expression)
        return ops[0].atom == row->cfa_expr.bytes[0];
    return n == 1 && ops[0].atom == DW_OP_bregx && ops[0].number == row->cfa_reg &&
           ops[0].number2 == (uint64_t)row->cfa_offset;
}

static void compare_row(Dwarf_CFI *cfi, enum arch arch, uint64_t address, const struct cfi_row *row)
{
    Dwarf_Frame *frame;
    Dwarf_Addr start;
    Dwarf_Addr end;
    bool is_signal;
    if (dwarf_cfi_addrframe(cfi, address, &frame) != 0) {
        differs(address, dwarf_errmsg(-1));
        return;
    }
    int column = dwarf_frame_info(frame, &start, &end, &is_signal);
    if (column != (int)row->return_register || is_signal != row->signal_frame)
        differs(address, "another return register or signal flag");
    /* After restore_state libdw has the start of the row that was remembered. */
    if (start > row->start || end != row->end)
        differs(address, "another start or end");
    if (!same_cfa(frame, row))
        differs(address, "another CFA");
    for (int reg = 0; reg < (arch == ARCH_X86_64 ? 17 : 32); reg++)
        if (!same_rule(frame, reg, &row->reg[reg])) {
            differs(address, "another rule");
            if (failures < 10)
                fprintf(stderr, "  of register %d, ours has kind %d\n", reg,
                        (int)row->reg[reg].kind);
        }
    free(frame);
}

int main(int argc, char **argv)
{
    struct image *image;
    static struct cfi_row row;
    uint64_t start;
    uint64_t end;
    unsigned long rows = 0;
    int fd = argc == 2 ? open(argv[1], O_RDONLY) : -1;
    if (fd < 0 || recordint_image_open_fd(fd, &image) != 0) {
        fprintf(stderr, "usage: cfi_libdw FILE\n");
        return 2;
    }
    elf_version(EV_CURRENT);
    Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
    Dwarf *dwarf = dwarf_begin_elf(elf, DWARF_C_READ, NULL);
    Dwarf_CFI *eh = dwarf_getcfi_elf(elf);
    Dwarf_CFI *debug = dwarf == NULL ? NULL : dwarf_getcfi(dwarf);
    for (size_t at = 0; recordint_cfi_next_fde(image, &at, &start, &end);)
        for (uint64_t address = start; address < end; address = row.end) {
            Dwarf_Frame *probe;
            if (recordint_cfi_row(image, address, &row) != CFI_FOUND || row.end <= address) {
                differs(address, "no row");
                break;
            }
            bool in_eh = eh != NULL && dwarf_cfi_addrframe(eh, address, &probe) == 0;
            if (in_eh)
                free(probe);
            compare_row(in_eh ? eh : debug, recordint_image_arch(image), address, &row);
            rows++;
        }
    dwarf_cfi_end(eh);
    dwarf_end(dwarf);
    elf_end(elf);
    recordint_image_free(image);
    close(fd);
    printf("%lu\n", rows);
    return failures > 0 || rows == 0;
}
