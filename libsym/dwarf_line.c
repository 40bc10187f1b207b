/* SPDX-License-Identifier: MIT */
/* The program of a line table: its rows, and the one in force at an address. */
#include "dwarf_line_private.h"

#include "segments.h"

#include <stdlib.h>

enum { /* DW_LNS_ */
       COPY = 1,
       ADVANCE_PC,
       ADVANCE_LINE,
       SET_FILE,
       SET_COLUMN,
       NEGATE_STMT,
       SET_BASIC_BLOCK,
       CONST_ADD_PC,
       FIXED_ADVANCE_PC,
       SET_PROLOGUE_END,
       SET_EPILOGUE_BEGIN,
       SET_ISA
};

enum { /* DW_LNE_ */
       END_SEQUENCE = 1,
       SET_ADDRESS,
       DEFINE_FILE
};

/* What a row says is packed into a number while rows are compared. None is NOTHING: a wide one has column 0. */
#define NOTHING UINT64_MAX

/* The machine's registers: apart from the rest, so that a compiler keeps them in its own. */
struct registers {
    uint64_t address;
    uint32_t operation;
    uint32_t file, line, column;
};

/* A run of the program. Of rows at one address the last one counts, so that a row waits until the address changes. */
struct run {
    struct symint_line_table *t;
    const uint8_t *begin; /* of the table */
    const uint8_t *lengths;
    uint32_t reciprocal; /* of line_range: a division costs as much as the rest of a row */
    uint32_t const_add_pc;
    int status;

    struct symint_line_scratch *scratch;
    struct line_row *rows; /* in it */
    uint32_t row_count;
    size_t capacity;

    bool waits; /* a row does; the sequence has begun */
    uint64_t waiting_address;
    uint64_t waiting; /* what it says */
    uint64_t kept;    /* what the last row of this piece says */
    uint64_t base;    /* of this piece */
    uint32_t piece_row;

    /* Of the sequence. */
    uint64_t start, lowest, highest;
    uint32_t sequence_row, sequence_wide, sequence_piece;

    size_t sequence_capacity, wide_capacity;
};

/* Room for one more of `count`. False: there is none, and the run ends. */
static bool grow(struct run *r, void **array, uint32_t count, size_t *capacity, size_t first,
                 size_t item_size)
{
    void *larger =
        count < UINT32_MAX / 2 ? symint_grow(*array, count, capacity, item_size, first) : NULL;
    if (larger == NULL) {
        r->status = SYM_ERR_NOMEM;
        return false;
    }
    *array = larger;
    return true;
}

__attribute__((noinline)) static bool grow_rows(struct run *r)
{
    struct symint_line_scratch *s = r->scratch;
    /* A row takes some four bytes of program; at worst one. */
    size_t more = (size_t)(r->t->size - r->t->program) / 4 + 1024;
    if (more < s->capacity * 2)
        more = s->capacity * 2;
    struct line_row *rows =
        r->row_count < UINT32_MAX / 2 ? symint_scratch_alloc(more, sizeof(*rows)) : NULL;
    if (rows == NULL) {
        r->status = SYM_ERR_NOMEM;
        return false;
    }
    if (r->row_count > 0)
        memcpy(rows, s->rows, r->row_count * sizeof(*rows));
    free(s->rows);
    s->rows = r->rows = rows;
    s->capacity = r->capacity = more;
    return true;
}

static inline uint64_t pack(uint32_t file, uint32_t line, uint32_t column)
{
    return line | (uint64_t)file << 32 | (uint64_t)column << 48;
}

/* Numbers that a row has no room for. */
static uint64_t pack_wide(struct run *r, uint32_t file, uint32_t line, uint32_t column)
{
    struct symint_line_table *t = r->t;
    void *wide = t->wide;
    bool ok = grow(r, &wide, t->wide_count, &r->wide_capacity, 16, sizeof(*t->wide));
    t->wide = wide;
    if (!ok)
        return 0;
    t->wide[t->wide_count] = (struct symint_line_row){file, line, column};
    return pack(LINE_WIDE_FILE, t->wide_count++, 0);
}

/* Keeps the row that waits in rows[row_count], if there are addresses behind it for which it says something new. Without
 * a branch: no processor guesses well which rows those are. */
static inline void keep_row(struct run *r, bool further)
{
    bool keeps = further & (r->waiting != r->kept);
    r->row_count += keeps;
    r->kept = keeps ? r->waiting : r->kept;
}

static inline void set_waiting(struct run *r, uint64_t address, uint64_t says)
{
    r->waiting_address = address;
    r->waiting = says;
    r->rows[r->row_count] = (struct line_row){
        .distance = (uint32_t)(address - r->base),
        .line = (uint32_t)says,
        .file = (uint16_t)(says >> 32),
        .column = (uint16_t)(says >> 48),
    };
}

static void begin_piece(struct run *r, uint64_t address)
{
    r->base = address;
    r->piece_row = r->row_count;
    r->kept = NOTHING;
}

/* The rows since begin_piece cover the addresses up to `end`. */
static void end_piece(struct run *r, uint64_t end)
{
    struct symint_line_table *t = r->t;
    uint32_t count = r->row_count - r->piece_row;
    if (count == 0 || r->status != 0)
        return;
    void *sequences = t->sequences;
    bool ok =
        grow(r, &sequences, t->sequence_count, &r->sequence_capacity, 4, sizeof(*t->sequences));
    t->sequences = sequences;
    if (!ok)
        return;
    t->sequences[t->sequence_count++] =
        (struct line_sequence){r->base, end, r->base, r->piece_row, count};
    r->lowest = r->base < r->lowest ? r->base : r->lowest;
    r->highest = end > r->highest ? end : r->highest;
}

static void begin_sequence(struct run *r, uint64_t address)
{
    r->waits = true;
    r->start = r->lowest = r->highest = address;
    r->sequence_row = r->row_count;
    r->sequence_wide = r->t->wide_count;
    r->sequence_piece = r->t->sequence_count;
    begin_piece(r, address);
}

/* Addresses that go back, or on by more than a row can say, begin a new piece: the rows before it end there. */
static void split_sequence(struct run *r, uint64_t address)
{
    bool back = address < r->waiting_address;
    keep_row(r, !back);
    end_piece(r, back ? r->waiting_address : address);
    begin_piece(r, address);
}

/* The first row of a sequence or a piece, one that is wide, or one for which there is no room yet. */
__attribute__((noinline)) static void put_special_row(struct run *r, uint64_t address,
                                                      uint32_t file, uint32_t line, uint32_t column)
{
    if (!r->waits)
        begin_sequence(r, address);
    else if (address < r->waiting_address || address - r->base > UINT32_MAX)
        split_sequence(r, address);
    else
        keep_row(r, address != r->waiting_address);
    if (r->row_count == r->capacity && !grow_rows(r))
        return;
    bool wide = file >= LINE_WIDE_FILE || column > LINE_LAST_COLUMN;
    set_waiting(r, address, wide ? pack_wide(r, file, line, column) : pack(file, line, column));
}

static inline void put_row(struct run *r, const struct registers *m)
{
    uint64_t further = m->address - r->waiting_address;
    bool usual = r->waits && r->row_count + 1 < r->capacity &&
                 further <= UINT32_MAX - (r->waiting_address - r->base) &&
                 m->file < LINE_WIDE_FILE && m->column <= LINE_LAST_COLUMN;
    if (!usual) {
        put_special_row(r, m->address, m->file, m->line, m->column);
        return;
    }
    keep_row(r, further != 0);
    set_waiting(r, m->address, pack(m->file, m->line, m->column));
}

/* Ends without the rows of the sequence that is not at its end, or not of code. */
static void forget_sequence(struct run *r)
{
    r->row_count = r->sequence_row;
    r->t->wide_count = r->sequence_wide;
    r->t->sequence_count = r->sequence_piece;
}

static void end_sequence(struct run *r, uint64_t address)
{
    if (!r->waits)
        return;
    bool back = address < r->waiting_address;
    keep_row(r, address > r->waiting_address);
    end_piece(r, back ? r->waiting_address : address);
    if (r->start >= address || !symint_debug_is_code(r->t->sections, r->lowest, r->highest))
        forget_sequence(r);
    r->waits = false;
}

static inline struct registers initial_registers(void)
{
    return (struct registers){.file = 1, .line = 1};
}

static inline void advance(const struct symint_line_table *t, struct registers *m,
                           uint64_t operations)
{
    if (t->operations_per_instruction > 1) {
        operations += m->operation;
        m->operation = (uint32_t)(operations % t->operations_per_instruction);
        operations /= t->operations_per_instruction;
    }
    m->address += t->min_instruction_length * operations;
}

static void define_file(struct run *r, struct symint_cursor c)
{
    r->status = symint_line_add_file(r->t, &c, r->t->offset + (uint64_t)(c.at - r->begin));
}

static uint32_t clamp(uint64_t number)
{
    return number < UINT32_MAX ? (uint32_t)number : UINT32_MAX;
}

/* What follows an opcode 0. */
static inline void run_extended(struct run *r, struct symint_cursor *c, struct registers *m)
{
    uint64_t size = cursor_uleb(c);
    struct symint_cursor operation = *c;
    cursor_skip(c, size);
    if (c->failed || size == 0)
        return;
    operation.end = c->at;
    switch (cursor_u8(&operation)) {
    case END_SEQUENCE:
        end_sequence(r, m->address);
        *m = initial_registers();
        break;
    case SET_ADDRESS:
        m->address = cursor_sized(&operation, (unsigned)cursor_left(&operation));
        m->operation = 0;
        if (operation.failed)
            cursor_fail(c);
        break;
    case DEFINE_FILE:
        define_file(r, operation);
        break;
    default: /* mostly discriminators */
        break;
    }
}

/* Steps of less than 64 lines are the rule. */
static inline int64_t read_sleb(struct symint_cursor *c)
{
    if (c->at < c->end && *c->at < 0x80) {
        int64_t low = *c->at++;
        return (low ^ 0x40) - 0x40;
    }
    return cursor_sleb(c);
}

static void run_program(struct run *r, struct symint_cursor c)
{
    const struct symint_line_table *t = r->t;
    struct registers m = initial_registers();
    const unsigned opcode_base = t->opcode_base;
    while (c.at < c.end && r->status == 0) {
        unsigned opcode = *c.at++;
        if (opcode >= opcode_base) {
            unsigned adjusted = opcode - opcode_base;
            unsigned operations = adjusted * r->reciprocal >> 16;
            advance(t, &m, operations);
            m.line += (uint32_t)(t->line_base + (int)(adjusted - operations * t->line_range));
            put_row(r, &m);
            continue;
        }
        switch (opcode) {
        case 0:
            run_extended(r, &c, &m);
            break;
        case COPY:
            put_row(r, &m);
            break;
        case ADVANCE_PC:
            advance(t, &m, cursor_uleb(&c));
            break;
        case ADVANCE_LINE:
            m.line += (uint32_t)read_sleb(&c);
            break;
        case SET_FILE:
            m.file = clamp(cursor_uleb(&c));
            break;
        case SET_COLUMN:
            m.column = clamp(cursor_uleb(&c));
            break;
        case CONST_ADD_PC:
            advance(t, &m, r->const_add_pc);
            break;
        case FIXED_ADVANCE_PC:
            m.address += cursor_u16(&c);
            m.operation = 0;
            break;
        case NEGATE_STMT:
        case SET_BASIC_BLOCK:
        case SET_PROLOGUE_END:
        case SET_EPILOGUE_BEGIN:
            break;
        default: /* also SET_ISA */
            for (unsigned i = opcode == SET_ISA ? 1 : r->lengths[opcode - 1]; i > 0; i--)
                cursor_skip_leb(&c);
        }
    }
    if (r->waits)
        forget_sequence(r);
}

/* By start; at one start the longest first, and of equal ones the first of the program last: the last one that
 * contains an address is the one that counts. */
static int compare_sequences(const void *a, const void *b)
{
    const struct line_sequence *x = a;
    const struct line_sequence *y = b;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    if (x->end != y->end)
        return x->end > y->end ? -1 : 1;
    return x->row > y->row ? -1 : x->row < y->row;
}

/* Cuts overlapping sequences, which are sorted, so that each address is in one: that of the latest start. */
static int flatten(struct symint_line_table *t)
{
    struct symint_segments segments = {0};
    struct symint_sweep sweep;
    if (symint_sweep_start(&sweep, &segments, t->sequence_count) != 0)
        return SYM_ERR_NOMEM;
    for (uint32_t i = 0; i < t->sequence_count; i++) {
        symint_sweep_advance(&sweep, t->sequences[i].start);
        symint_sweep_push(&sweep, t->sequences[i].start, t->sequences[i].end, i);
    }
    symint_sweep_finish(&sweep);
    struct line_sequence *flat = malloc((segments.count + 1) * sizeof(*flat));
    if (flat == NULL) {
        symint_segments_free(&segments);
        return SYM_ERR_NOMEM;
    }
    uint32_t count = 0;
    for (size_t i = 0; i + 1 < segments.count; i++) { /* the last one is a gap */
        if (segments.owner[i] == SYMINT_NO_OWNER)
            continue;
        flat[count] = t->sequences[segments.owner[i]];
        flat[count].start = segments.start[i];
        flat[count++].end = segments.start[i + 1];
    }
    symint_segments_free(&segments);
    free(t->sequences);
    t->sequences = flat;
    t->sequence_count = count;
    return 0;
}

static int sort_sequences(struct symint_line_table *t)
{
    bool sorted = true;
    for (uint32_t i = 1; i < t->sequence_count && sorted; i++)
        sorted = t->sequences[i - 1].end <= t->sequences[i].start;
    if (sorted)
        return 0;
    qsort(t->sequences, t->sequence_count, sizeof(*t->sequences), compare_sequences);
    for (uint32_t i = 1; i < t->sequence_count; i++)
        if (t->sequences[i - 1].end > t->sequences[i].start)
            return flatten(t);
    return 0;
}

/* An array without the room that it does not need. */
static void *settle(void *array, size_t count, size_t item_size)
{
    if (count == 0) {
        free(array);
        return NULL;
    }
    void *smaller = realloc(array, count * item_size);
    return smaller != NULL ? smaller : array;
}

static int keep_rows(struct run *r)
{
    struct symint_line_table *t = r->t;
    int status = r->status != 0 ? r->status : sort_sequences(t);
    if (status == 0 && r->row_count > 0) {
        t->rows = symint_table_alloc(r->row_count, sizeof(*t->rows));
        if (t->rows == NULL)
            status = SYM_ERR_NOMEM;
        else
            memcpy(t->rows, r->rows, r->row_count * sizeof(*t->rows));
    }
    t->row_count = r->row_count;
    if (status != 0)
        t->row_count = t->sequence_count = t->wide_count = 0;
    t->sequences = settle(t->sequences, t->sequence_count, sizeof(*t->sequences));
    t->wide = settle(t->wide, t->wide_count, sizeof(*t->wide));
    return status;
}

int symint_line_rows_with(struct symint_line_table *t, struct symint_line_scratch *scratch)
{
    if (t->ran)
        return 0;
    const uint8_t *begin = symint_debug_bytes(t->sections, DEBUG_LINE, t->offset, t->size);
    if (begin == NULL) {
        t->ran = true;
        return 0;
    }
    size_t files = t->files.count;
    struct symint_line_scratch own = {NULL, 0};
    struct run r = {
        .t = t,
        .begin = begin,
        .lengths = begin + t->lengths,
        .reciprocal = 65536u / t->line_range + 1,
        .const_add_pc = (255u - t->opcode_base) / t->line_range,
        .scratch = scratch != NULL ? scratch : &own,
    };
    r.rows = r.scratch->rows;
    r.capacity = r.scratch->capacity;
    run_program(&r, (struct symint_cursor){begin + t->program, begin + t->size, t->sections->swap,
                                           false});
    int status = keep_rows(&r);
    symint_line_scratch_free(&own);
    if (status != 0)
        t->files.count = files;
    t->ran = status == 0;
    return status;
}

int symint_line_rows(struct symint_line_table *t)
{
    return symint_line_rows_with(t, NULL);
}

void symint_line_scratch_free(struct symint_line_scratch *s)
{
    free(s->rows);
    *s = (struct symint_line_scratch){NULL, 0};
}

bool symint_line_find(const struct symint_line_table *t, uint64_t vaddr,
                      struct symint_line_row *out)
{
    if (t->sequence_count == 0 || vaddr < t->sequences[0].start)
        return false;
    /* Without branches on comparisons: half of those would be mispredicted. */
    const struct line_sequence *s = t->sequences;
    for (uint32_t count = t->sequence_count; count > 1; count -= count / 2)
        s = s[count / 2].start <= vaddr ? s + count / 2 : s;
    if (vaddr >= s->end)
        return false;
    const struct line_row *row = t->rows + s->row; /* the first one has distance 0 */
    uint64_t distance = vaddr - s->base;
    for (uint32_t count = s->count; count > 1; count -= count / 2)
        row = row[count / 2].distance <= distance ? row + count / 2 : row;
    if (row->file == LINE_WIDE_FILE)
        *out = t->wide[row->line];
    else
        *out = (struct symint_line_row){row->file, row->line, row->column};
    return true;
}
