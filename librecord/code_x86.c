/* SPDX-License-Identifier: MIT */
/*
 * The x86-64 instructions of frames and their release, and a few that move results about. All others stop.
 */
#include <string.h>

#include "code_state.h"

enum {
    REX_B = 1, /* extends the register in ModRM.rm or in the opcode */
    REX_X = 2,
    REX_R = 4, /* extends ModRM.reg */
    REX_W = 8
};

struct instruction {
    const uint8_t *code;
    size_t size;
    size_t at; /* bytes read */
    unsigned rex;
};

/* The numbers of instructions and of DWARF differ for the first eight. */
static unsigned dwarf_number(unsigned number, bool extended)
{
    static const uint8_t first[8] = {0, 2, 1, REG_X86_RBX, REG_X86_RSP, REG_X86_RBP, 4, 5};

    return extended ? number + 8 : first[number];
}

static bool take(struct instruction *in, uint8_t *out)
{
    if (in->at >= in->size)
        return false;
    *out = in->code[in->at++];
    return true;
}

/* A signed number of one or four bytes. */
static bool take_number(struct instruction *in, bool is_byte, int32_t *out)
{
    if (in->size - in->at < (is_byte ? 1 : 4))
        return false;
    if (is_byte)
        /* NOLINTNEXTLINE(bugprone-signed-char-misuse,cert-str34-c): it has a sign */
        *out = (int8_t)in->code[in->at];
    else
        memcpy(out, in->code + in->at, sizeof *out);
    in->at += is_byte ? 1 : 4;
    return true;
}

struct operands {
    unsigned reg;    /* ModRM.reg, by DWARF number */
    unsigned opcode; /* the same bits as part of the opcode */
    bool in_memory;
    unsigned rm;   /* the register, or the base register of the memory */
    bool has_base; /* the memory is at base + displacement */
    int32_t displacement;
};

static bool take_operands(struct instruction *in, struct operands *out)
{
    uint8_t modrm, sib = 0x24;
    unsigned mod, rm;

    if (!take(in, &modrm))
        return false;
    mod = modrm >> 6;
    rm = modrm & 7;
    out->opcode = modrm >> 3 & 7;
    out->reg = dwarf_number(out->opcode, in->rex & REX_R);
    out->in_memory = mod != 3;
    out->has_base = true;
    out->displacement = 0;
    if (out->in_memory && rm == 4) {
        if (!take(in, &sib))
            return false;
        rm = sib & 7;
        if ((sib & 0x38) != 0x20 || (in->rex & REX_X) != 0)
            out->has_base = false; /* an index as well */
    }
    out->rm = dwarf_number(rm, in->rex & REX_B);
    if (mod == 0 && rm == 5) /* rip or nothing + 4 bytes */
        out->has_base = false;
    if (mod == 1 || mod == 2 || (mod == 0 && rm == 5))
        return take_number(in, mod == 1, &out->displacement);
    return true;
}

static enum code_step on_if(bool followed)
{
    return followed ? CODE_ON : CODE_STOP;
}

static enum code_step push(struct code_state *s, unsigned reg)
{
    return on_if(reg != REG_X86_RSP && recordint_code_add(s, REG_X86_RSP, REG_X86_RSP, -8) &&
                 recordint_code_store(s, REG_X86_RSP, 0, reg));
}

static enum code_step pop(struct code_state *s, unsigned reg)
{
    return on_if(recordint_code_load(s, reg, REG_X86_RSP, 0) &&
                 recordint_code_add(s, REG_X86_RSP, REG_X86_RSP, 8));
}

static enum code_step leave(struct code_state *s)
{
    return recordint_code_add(s, REG_X86_RSP, REG_X86_RBP, 0) ? pop(s, REG_X86_RBP) : CODE_STOP;
}

/* mov, lea and arithmetic of 64 bits; of 32 bits only between registers. */
static enum code_step move(struct code_state *s, const struct operands *o, bool wide, bool to_rm)
{
    unsigned from = to_rm ? o->reg : o->rm, to = to_rm ? o->rm : o->reg;

    if (o->in_memory) {
        if (!wide || !o->has_base)
            return CODE_STOP;
        return on_if(to_rm ? recordint_code_store(s, o->rm, o->displacement, o->reg)
                           : recordint_code_load(s, o->reg, o->rm, o->displacement));
    }
    if (wide)
        return on_if(recordint_code_add(s, to, from, 0));
    code_forget(s, to);
    return on_if(to != REG_X86_RSP);
}

static enum code_step add_number(struct code_state *s, struct instruction *in, bool is_byte)
{
    struct operands o;
    int32_t number;

    if (!take_operands(in, &o) || !take_number(in, is_byte, &number) || o.in_memory ||
        (in->rex & REX_W) == 0 || (o.opcode != 0 && o.opcode != 5) || number == INT32_MIN)
        return CODE_STOP;
    return on_if(recordint_code_add(s, o.rm, o.rm, o.opcode == 0 ? number : -number));
}

/* Opcodes that begin with 0x0f: only those that do nothing. */
static enum code_step two_byte(struct instruction *in, bool repeated)
{
    struct operands o;
    uint8_t opcode, modrm;

    if (!take(in, &opcode))
        return CODE_STOP;
    if (repeated && opcode == 0x1e) /* endbr64 */
        return take(in, &modrm) && modrm == 0xfa ? CODE_ON : CODE_STOP;
    return opcode == 0x1f && take_operands(in, &o) ? CODE_ON : CODE_STOP; /* nop with operands */
}

static enum code_step one_byte(struct code_state *s, struct instruction *in, uint8_t opcode)
{
    bool wide = (in->rex & REX_W) != 0;
    unsigned in_opcode = dwarf_number(opcode & 7, in->rex & REX_B);
    struct operands o;
    int32_t number;

    switch (opcode) {
    case 0x89: /* mov reg, rm */
    case 0x8b: /* mov rm, reg */
        return take_operands(in, &o) ? move(s, &o, wide, opcode == 0x89) : CODE_STOP;
    case 0x8d: /* lea */
        if (!take_operands(in, &o) || !wide || !o.in_memory || !o.has_base)
            return CODE_STOP;
        return on_if(recordint_code_add(s, o.reg, o.rm, o.displacement));
    case 0x31: /* xor reg, rm: a register cleared */
        if (!take_operands(in, &o) || o.in_memory || o.rm == REG_X86_RSP)
            return CODE_STOP;
        code_forget(s, o.rm);
        return CODE_ON;
    case 0x81:
    case 0x83:
        return add_number(s, in, opcode == 0x83);
    case 0x90:
        return CODE_ON;
    case 0xc2: /* ret that drops arguments: no C function does */
        return CODE_STOP;
    case 0xc3:
        return CODE_RETURNS;
    case 0xc9:
        return leave(s);
    case 0xe8:
        return on_if(take_number(in, false, &number) && recordint_code_call(s));
    case 0xff: /* call *rm */
        if (!take_operands(in, &o) || o.opcode != 2)
            return CODE_STOP;
        return on_if(recordint_code_call(s));
    default:
        break;
    }
    if (opcode >= 0x50 && opcode < 0x58)
        return push(s, in_opcode);
    if (opcode >= 0x58 && opcode < 0x60)
        return pop(s, in_opcode);
    if (opcode >= 0xb8 && opcode < 0xc0 && !wide && in_opcode != REG_X86_RSP) { /* mov $n, reg */
        code_forget(s, in_opcode);
        return on_if(take_number(in, false, &number));
    }
    return CODE_STOP;
}

enum code_step recordint_code_step_x86(struct code_state *s, const uint8_t *code, size_t size,
                                       size_t *length)
{
    static const uint8_t vzeroupper[] = {0xc5, 0xf8, 0x77};
    struct instruction in = {code, size, 0, 0};
    enum code_step step;
    bool repeated = false, short_operand = false;
    uint8_t byte;

    *length = sizeof vzeroupper;
    if (size >= sizeof vzeroupper && memcmp(code, vzeroupper, sizeof vzeroupper) == 0)
        return CODE_ON;
    if (!take(&in, &byte))
        return CODE_STOP;
    while (byte == 0x66 || byte == 0xf3 || byte == 0x2e) { /* nops are padded with them */
        short_operand |= byte == 0x66;
        repeated |= byte == 0xf3;
        if (!take(&in, &byte))
            return CODE_STOP;
    }
    if ((byte & 0xf0) == 0x40) {
        in.rex = byte & 0x0f;
        if (!take(&in, &byte))
            return CODE_STOP;
    }
    if (byte == 0x0f)
        step = two_byte(&in, repeated);
    else if ((short_operand && byte != 0x90) || (repeated && byte != 0xc3)) /* "rep ret" */
        step = CODE_STOP;
    else
        step = one_byte(s, &in, byte);
    *length = in.at;
    return step;
}
