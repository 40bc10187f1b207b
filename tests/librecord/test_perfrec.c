/* SPDX-License-Identifier: MIT */
/* The kernel's records: every kind, every optional field, and bytes that no kernel writes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "perf_bytes.h"

static const struct perfrec_layout plain = {PERF_BYTES_TYPE, 0, ARCH_X86_64};
static const struct perfrec_layout full = {PERF_BYTES_TYPE | PERF_SAMPLE_CALLCHAIN |
                                               PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER,
                                           0xff03ff, ARCH_X86_64};
static struct perf_bytes b;
static struct perfrec r;

static int parse(const struct perfrec_layout *layout)
{
    return recordint_perfrec_parse(layout, b.words, b.size, &r);
}

static void end(uint64_t time_ns)
{
    perf_bytes_end_id(&b, 21, 22, time_ns, 5);
}

/* A sample with three frames, registers 100, 101 ... and 64 of 80 stack bytes. */
static void full_sample(uint64_t abi, uint64_t stack_size, uint64_t copied)
{
    perf_bytes_begin_sample(&b, 99);
    perf_bytes_u64(&b, 3);
    perf_bytes_u64(&b, PERF_CONTEXT_KERNEL);
    perf_bytes_u64(&b, 0xffffffff81000000);
    perf_bytes_u64(&b, 0xffffffff82000000);
    perf_bytes_u64(&b, abi);
    if (abi != 0)
        for (unsigned i = 0; i < 18; i++)
            perf_bytes_u64(&b, 100 + i);
    perf_bytes_u64(&b, stack_size);
    for (uint64_t i = 0; i < stack_size; i += 8)
        perf_bytes_u64(&b, i);
    if (stack_size != 0)
        perf_bytes_u64(&b, copied);
    perf_bytes_end(&b);
}

static void a_plain_sample_has_its_fields(void **state)
{
    (void)state;
    perf_bytes_begin_sample(&b, 99);
    perf_bytes_end(&b);
    assert_int_equal(parse(&plain), 0);
    assert_int_equal(r.kind, PERFREC_SAMPLE);
    assert_int_equal(r.pid, 12);
    assert_int_equal(r.tid, 13);
    assert_int_equal(r.cpu, 3);
    assert_true(r.has_time);
    assert_int_equal(r.time_ns, 99);
    assert_int_equal(r.sample.id, 4711);
    assert_int_equal(r.sample.ip, 0x401234);
    assert_int_equal(r.sample.period, 1001001);
    assert_int_equal(r.sample.misc, PERF_RECORD_MISC_USER);
    assert_null(r.sample.callchain);
    assert_null(r.sample.stack);
}

static void a_full_sample_has_callchain_registers_and_stack(void **state)
{
    (void)state;
    full_sample(PERF_SAMPLE_REGS_ABI_64, 80, 64);
    assert_int_equal(parse(&full), 0);
    assert_int_equal(r.sample.callchain_count, 3);
    assert_int_equal(r.sample.callchain[2], 0xffffffff82000000);
    assert_int_equal(r.sample.regs_abi, 2);
    assert_int_equal(r.sample.stack_size, 64);
    assert_false(r.sample.stack_full);
    assert_int_equal(r.sample.stack[8], 8);

    full_sample(PERF_SAMPLE_REGS_ABI_64, 80, 80);
    assert_int_equal(parse(&full), 0);
    assert_int_equal(r.sample.stack_size, 80);
    assert_true(r.sample.stack_full);
}

static void registers_of_x86_64_get_their_dwarf_numbers(void **state)
{
    /* In the kernel's order: ax bx cx dx si di bp sp ip flags r8-r15. */
    static const unsigned dwarf[18] = {0,  3, 2, 1,  4,  5,  6,  7,  16,
                                       99, 8, 9, 10, 11, 12, 13, 14, 15};

    (void)state;
    full_sample(PERF_SAMPLE_REGS_ABI_64, 0, 0);
    assert_int_equal(parse(&full), 0);
    for (unsigned i = 0; i < 18; i++) {
        if (dwarf[i] == 99)
            continue;
        assert_true(reg_is_known(&r.sample.regs, dwarf[i]));
        assert_int_equal(r.sample.regs.value[dwarf[i]], 100 + i);
    }
    assert_int_equal(r.sample.regs.known, 0x1ffff);
}

static void registers_of_aarch64_get_their_dwarf_numbers(void **state)
{
    struct perfrec_layout a64 = {PERF_BYTES_TYPE | PERF_SAMPLE_REGS_USER, 0, ARCH_AARCH64};

    (void)state;
    a64.sample_regs_user = recordint_perfrec_regs_mask(ARCH_AARCH64);
    perf_bytes_begin_sample(&b, 99);
    perf_bytes_u64(&b, PERF_SAMPLE_REGS_ABI_64);
    for (unsigned i = 0; i < 33; i++)
        perf_bytes_u64(&b, 200 + i);
    perf_bytes_end(&b);
    assert_int_equal(parse(&a64), 0);
    assert_int_equal(r.sample.regs.known, ((uint64_t)1 << 33) - 1);
    assert_int_equal(r.sample.regs.value[REG_A64_LR], 230);
    assert_int_equal(r.sample.regs.value[REG_A64_SP], 231);
    assert_int_equal(r.sample.regs.value[REG_A64_PC], 232);
}

static void registers_out_of_our_mask_are_passed_over(void **state)
{
    /* CS (10), r8 (16) and one of the vector registers (32), as well as sp. */
    struct perfrec_layout odd = {PERF_BYTES_TYPE | PERF_SAMPLE_REGS_USER,
                                 1 << 7 | 1 << 10 | 1 << 16 | (uint64_t)1 << 32, ARCH_X86_64};

    (void)state;
    perf_bytes_begin_sample(&b, 99);
    perf_bytes_u64(&b, PERF_SAMPLE_REGS_ABI_64);
    for (unsigned i = 1; i <= 4; i++)
        perf_bytes_u64(&b, i);
    perf_bytes_end(&b);
    assert_int_equal(parse(&odd), 0);
    assert_int_equal(r.sample.regs.known, 1 << REG_X86_RSP | 1 << 8);
    assert_int_equal(r.sample.regs.value[REG_X86_RSP], 1);
    assert_int_equal(r.sample.regs.value[8], 3);
}

static void segment_registers_are_not_asked_for(void **state)
{
    (void)state;
    assert_int_equal(recordint_perfrec_regs_mask(ARCH_X86_64) & 0xf000, 0);
    assert_int_equal(recordint_perfrec_regs_mask(ARCH_X86_64), 0xff03ff);
}

static void a_32_bit_task_has_registers_that_are_not_used(void **state)
{
    (void)state;
    full_sample(PERF_SAMPLE_REGS_ABI_32, 80, 80);
    assert_int_equal(parse(&full), 0);
    assert_int_equal(r.sample.regs_abi, 1);
    assert_int_equal(r.sample.regs.known, 0);
    assert_int_equal(r.sample.stack_size, 80);
}

/* Of AArch64 with as many values; the stack behind them must be found. */
static void a_32_bit_task_of_aarch64_has_registers_that_are_not_used(void **state)
{
    const struct perfrec_layout a64 = {PERF_BYTES_TYPE | PERF_SAMPLE_REGS_USER |
                                           PERF_SAMPLE_STACK_USER,
                                       recordint_perfrec_regs_mask(ARCH_AARCH64), ARCH_AARCH64};

    (void)state;
    perf_bytes_begin_sample(&b, 99);
    perf_bytes_u64(&b, PERF_SAMPLE_REGS_ABI_32);
    for (unsigned i = 0; i < 33; i++)
        perf_bytes_u64(&b, 200 + i);
    perf_bytes_u64(&b, 8);
    perf_bytes_u64(&b, 4711);
    perf_bytes_u64(&b, 8);
    perf_bytes_end(&b);
    assert_int_equal(parse(&a64), 0);
    assert_int_equal(r.sample.regs_abi, 1);
    assert_int_equal(r.sample.regs.known, 0);
    assert_int_equal(r.sample.stack_size, 8);
    assert_int_equal(r.sample.ip, 0x401234);

    perf_bytes_begin_sample(&b, 99);
    perf_bytes_u64(&b, PERF_SAMPLE_REGS_ABI_NONE);
    perf_bytes_u64(&b, 0);
    perf_bytes_end(&b);
    assert_int_equal(parse(&a64), 0);
    assert_int_equal(r.sample.regs_abi, 0);
    assert_null(r.sample.stack);
}

static void a_kernel_thread_has_neither_registers_nor_stack(void **state)
{
    (void)state;
    full_sample(PERF_SAMPLE_REGS_ABI_NONE, 0, 0);
    assert_int_equal(parse(&full), 0);
    assert_int_equal(r.sample.regs_abi, 0);
    assert_int_equal(r.sample.regs.known, 0);
    assert_null(r.sample.stack);
    assert_int_equal(r.sample.stack_size, 0);
    assert_false(r.sample.stack_full);
    assert_int_equal(r.sample.callchain_count, 3);
}

static void more_copied_bytes_than_there_are_is_refused(void **state)
{
    (void)state;
    full_sample(PERF_SAMPLE_REGS_ABI_64, 80, 81);
    assert_int_equal(parse(&full), -1);
}

static void a_callchain_longer_than_its_record_is_refused(void **state)
{
    static const uint64_t counts[] = {27, (uint64_t)1 << 61, UINT64_MAX};
    struct perfrec_layout chain = plain;

    (void)state;
    chain.sample_type |= PERF_SAMPLE_CALLCHAIN;
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        perf_bytes_begin_sample(&b, 99);
        perf_bytes_u64(&b, counts[i]);
        for (unsigned k = 0; k < 26; k++)
            perf_bytes_u64(&b, k);
        perf_bytes_end(&b);
        assert_int_equal(parse(&chain), -1);
    }
}

static void begin_mmap2(uint16_t misc, uint32_t prot, const char *path)
{
    perf_bytes_begin(&b, PERF_RECORD_MMAP2, misc);
    perf_bytes_u32(&b, 31);
    perf_bytes_u32(&b, 32);
    perf_bytes_u64(&b, 0x7f0000001000);
    perf_bytes_u64(&b, 0x3000);
    perf_bytes_u64(&b, 0x2000);
    if ((misc & 1 << 14) != 0) {
        perf_bytes_u32(&b, 20);
        perf_bytes_add(&b, "ABCDEFGHIJKLMNOPQRST", 20);
    } else {
        perf_bytes_u32(&b, 8);
        perf_bytes_u32(&b, 1);
        perf_bytes_u64(&b, 77);
        perf_bytes_u64(&b, 78);
    }
    perf_bytes_u32(&b, prot);
    perf_bytes_u32(&b, MAP_PRIVATE);
    perf_bytes_text(&b, path);
}

static void an_mmap2_names_its_file_by_inode(void **state)
{
    (void)state;
    begin_mmap2(PERF_RECORD_MISC_USER, PROT_READ | PROT_EXEC, "/usr/lib/libm.so.6");
    end(50);
    assert_int_equal(parse(&full), 0);
    assert_int_equal(r.kind, PERFREC_MMAP);
    assert_int_equal(r.pid, 31);
    assert_int_equal(r.tid, 32);
    assert_int_equal(r.time_ns, 50);
    assert_int_equal(r.cpu, 5);
    assert_int_equal(r.mmap.start, 0x7f0000001000);
    assert_int_equal(r.mmap.size, 0x3000);
    assert_int_equal(r.mmap.file_offset, 0x2000);
    assert_int_equal(r.mmap.dev_major, 8);
    assert_int_equal(r.mmap.dev_minor, 1);
    assert_int_equal(r.mmap.inode, 77);
    assert_int_equal(r.mmap.inode_gen, 78);
    assert_int_equal(r.mmap.build_id_size, 0);
    assert_true(r.mmap.executable);
    assert_false(r.mmap.kernel);
    assert_string_equal(r.mmap.path, "/usr/lib/libm.so.6");

    begin_mmap2(PERF_RECORD_MISC_USER, PROT_READ, "/etc/passwd");
    end(50);
    assert_int_equal(parse(&full), 0);
    assert_false(r.mmap.executable);
}

static void an_mmap2_may_carry_a_build_id_instead(void **state)
{
    (void)state;
    begin_mmap2(PERF_RECORD_MISC_USER | 1 << 14, PROT_EXEC, "//anon");
    end(50);
    assert_int_equal(parse(&full), 0);
    assert_int_equal(r.mmap.inode, 0);
    assert_int_equal(r.mmap.dev_major, 0);
    assert_int_equal(r.mmap.build_id_size, 20);
    assert_memory_equal(r.mmap.build_id, "ABCDEFGHIJKLMNOPQRST", 20);
    assert_string_equal(r.mmap.path, "//anon");

    ((uint8_t *)b.words)[40] = 21; /* its size */
    assert_int_equal(parse(&full), -1);
    ((uint8_t *)b.words)[40] = 16;
    assert_int_equal(parse(&full), 0);
    assert_int_equal(r.mmap.build_id_size, 16);
    assert_int_equal(r.mmap.build_id[16], 0);
}

static void an_old_mmap_says_in_its_header_whether_it_is_code(void **state)
{
    (void)state;
    for (unsigned data = 0; data < 2; data++) {
        perf_bytes_begin(&b, PERF_RECORD_MMAP,
                         data != 0 ? PERF_RECORD_MISC_USER | PERF_RECORD_MISC_MMAP_DATA
                                   : PERF_RECORD_MISC_KERNEL);
        perf_bytes_u32(&b, UINT32_MAX);
        perf_bytes_u32(&b, 0);
        perf_bytes_u64(&b, 1);
        perf_bytes_u64(&b, 2);
        perf_bytes_u64(&b, 3);
        perf_bytes_text(&b, "[module]");
        end(51);
        assert_int_equal(parse(&full), 0);
        assert_int_equal(r.kind, PERFREC_MMAP);
        assert_int_equal(r.pid, -1);
        assert_int_equal(r.mmap.executable, data == 0);
        assert_int_equal(r.mmap.kernel, data == 0);
        assert_string_equal(r.mmap.path, "[module]");
    }
}

static void a_path_without_its_nul_is_refused(void **state)
{
    (void)state;
    begin_mmap2(PERF_RECORD_MISC_USER, PROT_EXEC, "1234567");
    ((char *)b.words)[b.size - 1] = 'x';
    end(50);
    assert_int_equal(parse(&full), -1);

    perf_bytes_begin(&b, PERF_RECORD_COMM, 0);
    perf_bytes_u64(&b, 0);
    end(50);
    assert_int_equal(parse(&full), -1);
}

static void a_comm_tells_an_exec_from_a_new_name(void **state)
{
    (void)state;
    for (unsigned exec = 0; exec < 2; exec++) {
        perf_bytes_begin(&b, PERF_RECORD_COMM, exec != 0 ? PERF_RECORD_MISC_COMM_EXEC : 0);
        perf_bytes_u32(&b, 41);
        perf_bytes_u32(&b, 42);
        perf_bytes_text(&b, "worker");
        end(52);
        assert_int_equal(parse(&full), 0);
        assert_int_equal(r.kind, PERFREC_COMM);
        assert_int_equal(r.pid, 41);
        assert_int_equal(r.tid, 42);
        assert_int_equal(r.comm.exec, exec);
        assert_string_equal(r.comm.name, "worker");
    }
}

static void fork_and_exit_name_the_thread_and_its_parent(void **state)
{
    (void)state;
    for (unsigned exit = 0; exit < 2; exit++) {
        perf_bytes_begin(&b, exit != 0 ? PERF_RECORD_EXIT : PERF_RECORD_FORK, 0);
        perf_bytes_u32(&b, 51);
        perf_bytes_u32(&b, 52);
        perf_bytes_u32(&b, 53);
        perf_bytes_u32(&b, 54);
        perf_bytes_u64(&b, 1);
        end(53);
        assert_int_equal(parse(&full), 0);
        assert_int_equal(r.kind, exit != 0 ? PERFREC_EXIT : PERFREC_FORK);
        assert_int_equal(r.pid, 51);
        assert_int_equal(r.tid, 53);
        assert_int_equal(r.task.parent_pid, 52);
        assert_int_equal(r.task.parent_tid, 54);
        assert_int_equal(r.time_ns, 53);
    }
}

static void losses_throttling_and_symbols_are_read(void **state)
{
    (void)state;
    perf_bytes_begin(&b, PERF_RECORD_LOST, 0);
    perf_bytes_u64(&b, 4711);
    perf_bytes_u64(&b, 17);
    end(54);
    assert_int_equal(parse(&full), 0);
    assert_int_equal(r.kind, PERFREC_LOST);
    assert_int_equal(r.lost_count, 17);
    assert_int_equal(r.pid, 21);
    assert_int_equal(r.tid, 22);

    perf_bytes_begin(&b, PERF_RECORD_LOST_SAMPLES, 0);
    perf_bytes_u64(&b, 18);
    end(54);
    assert_int_equal(parse(&full), 0);
    assert_int_equal(r.kind, PERFREC_LOST_SAMPLES);
    assert_int_equal(r.lost_count, 18);

    for (unsigned off = 0; off < 2; off++) {
        perf_bytes_begin(&b, off != 0 ? PERF_RECORD_UNTHROTTLE : PERF_RECORD_THROTTLE, 0);
        for (unsigned i = 0; i < 3; i++)
            perf_bytes_u64(&b, i);
        end(55);
        assert_int_equal(parse(&full), 0);
        assert_int_equal(r.kind, PERFREC_THROTTLE);
        assert_int_equal(r.throttled, off == 0);
    }

    for (unsigned gone = 0; gone < 2; gone++) {
        perf_bytes_begin(&b, PERF_RECORD_KSYMBOL, 0);
        perf_bytes_u64(&b, 0xffffffffc0000000);
        perf_bytes_u32(&b, 300);
        perf_bytes_u16(&b, PERF_RECORD_KSYMBOL_TYPE_BPF);
        perf_bytes_u16(&b, (uint16_t)gone);
        perf_bytes_text(&b, "bpf_prog_1");
        end(56);
        assert_int_equal(parse(&full), 0);
        assert_int_equal(r.kind, PERFREC_KSYMBOL);
        assert_int_equal(r.ksymbol.address, 0xffffffffc0000000);
        assert_int_equal(r.ksymbol.size, 300);
        assert_int_equal(r.ksymbol.registered, gone == 0);
        assert_string_equal(r.ksymbol.name, "bpf_prog_1");
    }
}

static void an_unknown_record_is_of_no_interest(void **state)
{
    (void)state;
    perf_bytes_begin(&b, 4000, 0);
    end(57);
    assert_int_equal(parse(&full), 0);
    assert_int_equal(r.kind, PERFREC_OTHER);
    assert_int_equal(r.time_ns, 57);
}

static void a_layout_that_we_cannot_read_is_refused(void **state)
{
    static const uint64_t wrong[] = {PERF_BYTES_TYPE & ~PERF_SAMPLE_TIME,
                                     PERF_BYTES_TYPE | PERF_SAMPLE_ADDR,
                                     PERF_BYTES_TYPE | PERF_SAMPLE_READ,
                                     PERF_BYTES_TYPE | PERF_SAMPLE_WEIGHT, 0};
    uint64_t time_ns;

    (void)state;
    full_sample(PERF_SAMPLE_REGS_ABI_64, 80, 80);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct perfrec_layout layout = {wrong[i], 0, ARCH_X86_64};

        assert_int_equal(parse(&layout), -1);
        assert_false(recordint_perfrec_time(&layout, b.words, b.size, &time_ns));
    }
}

/* Every kind of record, number by number; false when there are no more. */
static bool make(unsigned number)
{
    switch (number) {
    case 0:
        full_sample(PERF_SAMPLE_REGS_ABI_64, 80, 64);
        return true;
    case 1:
        full_sample(PERF_SAMPLE_REGS_ABI_NONE, 0, 0);
        return true;
    case 2:
        begin_mmap2(PERF_RECORD_MISC_USER, PROT_EXEC, "/bin/true");
        break;
    case 3:
        begin_mmap2(PERF_RECORD_MISC_USER | 1 << 14, PROT_EXEC, "/bin/true");
        break;
    case 4:
        perf_bytes_begin(&b, PERF_RECORD_COMM, 0);
        perf_bytes_u64(&b, 41);
        perf_bytes_text(&b, "worker");
        break;
    case 5:
    case 6:
    case 7:
    case 8:
    case 9:
    case 10: {
        static const uint32_t types[] = {PERF_RECORD_FORK,         PERF_RECORD_EXIT,
                                         PERF_RECORD_LOST,         PERF_RECORD_THROTTLE,
                                         PERF_RECORD_LOST_SAMPLES, PERF_RECORD_NAMESPACES};
        perf_bytes_begin(&b, types[number - 5], 0);
        for (unsigned i = 0; i < 3; i++)
            perf_bytes_u64(&b, i);
        break;
    }
    case 11:
        perf_bytes_begin(&b, PERF_RECORD_KSYMBOL, 0);
        perf_bytes_u64(&b, 1);
        perf_bytes_u64(&b, 2);
        perf_bytes_text(&b, "name");
        break;
    default:
        return false;
    }
    end(60);
    return true;
}

/* Reads all that a decoded record points to: sanitizers and the heap block's end see what is beyond. */
static uint64_t touch(void)
{
    uint64_t sum = 0;

    switch (r.kind) {
    case PERFREC_SAMPLE:
        for (size_t i = 0; i < r.sample.callchain_count; i++)
            sum += r.sample.callchain[i];
        for (size_t i = 0; i < r.sample.stack_size; i++)
            sum += r.sample.stack[i];
        return sum;
    case PERFREC_MMAP:
        return strlen(r.mmap.path) + r.mmap.build_id_size;
    case PERFREC_COMM:
        return strlen(r.comm.name);
    case PERFREC_KSYMBOL:
        return strlen(r.ksymbol.name);
    default:
        return 0;
    }
}

static void parse_block(const void *bytes, size_t size, bool may_succeed)
{
    void *block = malloc(size == 0 ? 1 : size);
    uint64_t time_ns;

    assert_non_null(block);
    memcpy(block, bytes, size);
    if (recordint_perfrec_parse(&full, block, size, &r) == 0) {
        if (!may_succeed)
            fail_msg("%zu bytes were enough", size);
        touch();
    }
    recordint_perfrec_time(&full, block, size, &time_ns);
    free(block);
}

static void a_cut_sample_is_refused_wherever_it_is_cut(void **state)
{
    (void)state;
    for (unsigned number = 0; number < 2; number++) {
        make(number);
        for (size_t size = 0; size < b.size; size++)
            parse_block(b.words, size, false);
    }
}

static void a_cut_record_is_never_read_beyond_its_end(void **state)
{
    (void)state;
    for (unsigned number = 0; make(number); number++)
        for (size_t size = 0; size < b.size; size++)
            parse_block(b.words, size, true);
}

static void every_flipped_bit_is_survived(void **state)
{
    (void)state;
    for (unsigned number = 0; make(number); number++)
        for (size_t bit = 0; bit < b.size * 8; bit++) {
            uint8_t *byte = (uint8_t *)b.words + bit / 8;

            *byte ^= (uint8_t)(1u << bit % 8);
            parse_block(b.words, b.size, true);
            *byte ^= (uint8_t)(1u << bit % 8);
        }
}

static void random_bytes_are_survived(void **state)
{
    uint64_t seed = 5;

    (void)state;
    for (unsigned round = 0; round < 200000; round++) {
        size_t size = 8 * (1 + round % 64);

        for (size_t i = 0; i < size / 8; i++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            b.words[i] = i > 4 && seed >> 63 != 0 ? seed >> 58 : seed;
        }
        b.words[0] = (b.words[0] & 0xffff0000) << 16 | (round % 22);
        parse_block(b.words, size, true);
    }
}

static void the_time_is_found_without_decoding(void **state)
{
    uint64_t time_ns;

    (void)state;
    for (unsigned number = 0; make(number); number++) {
        assert_true(recordint_perfrec_time(&full, b.words, b.size, &time_ns));
        assert_int_equal(time_ns, number < 2 ? 99 : 60);
        assert_int_equal(parse(&full), 0);
        assert_int_equal(r.time_ns, time_ns);
    }
    perf_bytes_begin(&b, PERF_RECORD_COMM, 0);
    perf_bytes_u64(&b, 1);
    assert_false(recordint_perfrec_time(&full, b.words, b.size, &time_ns));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plain_sample_has_its_fields),
        cmocka_unit_test(a_full_sample_has_callchain_registers_and_stack),
        cmocka_unit_test(registers_of_x86_64_get_their_dwarf_numbers),
        cmocka_unit_test(registers_of_aarch64_get_their_dwarf_numbers),
        cmocka_unit_test(registers_out_of_our_mask_are_passed_over),
        cmocka_unit_test(segment_registers_are_not_asked_for),
        cmocka_unit_test(a_32_bit_task_has_registers_that_are_not_used),
        cmocka_unit_test(a_32_bit_task_of_aarch64_has_registers_that_are_not_used),
        cmocka_unit_test(a_kernel_thread_has_neither_registers_nor_stack),
        cmocka_unit_test(more_copied_bytes_than_there_are_is_refused),
        cmocka_unit_test(a_callchain_longer_than_its_record_is_refused),
        cmocka_unit_test(an_mmap2_names_its_file_by_inode),
        cmocka_unit_test(an_mmap2_may_carry_a_build_id_instead),
        cmocka_unit_test(an_old_mmap_says_in_its_header_whether_it_is_code),
        cmocka_unit_test(a_path_without_its_nul_is_refused),
        cmocka_unit_test(a_comm_tells_an_exec_from_a_new_name),
        cmocka_unit_test(fork_and_exit_name_the_thread_and_its_parent),
        cmocka_unit_test(losses_throttling_and_symbols_are_read),
        cmocka_unit_test(an_unknown_record_is_of_no_interest),
        cmocka_unit_test(a_layout_that_we_cannot_read_is_refused),
        cmocka_unit_test(a_cut_sample_is_refused_wherever_it_is_cut),
        cmocka_unit_test(a_cut_record_is_never_read_beyond_its_end),
        cmocka_unit_test(every_flipped_bit_is_survived),
        cmocka_unit_test(random_bytes_are_survived),
        cmocka_unit_test(the_time_is_found_without_decoding),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
