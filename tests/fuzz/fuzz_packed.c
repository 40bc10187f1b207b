/* SPDX-License-Identifier: MIT */
/* Any bytes as packed symbols, with a checksum that is made right: every lookup ends, and what is found is in bounds. */
#include "elf_private.h"
#include "packed.h"
#include "packed_format.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look(struct symint_packed *p, struct symint_strings *strings, uint64_t vaddr)
{
    struct sym_options few = {.size = sizeof(few), .no_inlines = true, .no_lines = true};
    const struct sym_options *options[] = {NULL, &few};
    struct symint_facts f;
    for (int i = 0; i < 2; i++) {
        if (symint_packed_exact(p, strings, options[i], vaddr, &f) > 0 &&
            (f.chain.count > PACKED_MAX_LEVELS || f.vaddr != vaddr))
            abort();
    }
    if (symint_packed_around(p, vaddr, &f) > 0 &&
        (vaddr < f.extent_start || vaddr >= f.extent_end || !f.has_symbol))
        abort();
    (void)symint_facts_named(&f);
    (void)symint_packed_vaddr(p, 0x1000, 0x20000, vaddr, &vaddr);
}

/* The file and one of nothing make one that opens. */
static void merge(const struct symint_packed *p, const uint8_t *bytes, size_t size)
{
    static const uint8_t some_id[] = {0xab};
    const struct symint_elf *elf = symint_packed_elf(p);
    struct symint_packer *packer = symint_packer_new(SYM_LEVEL_LINES, elf, 0);
    struct sym_piece pieces[2] = {{.data = bytes, .size_bytes = size}};
    struct sym_merged merged[1];
    size_t count;
    uint8_t *nothing;
    if (packer == NULL || symint_packer_finish(packer, &nothing, &pieces[1].size_bytes) != 0)
        abort();
    pieces[1].data = nothing;
    const uint8_t *id = elf->build_id_size > 0 ? elf->build_id : some_id;
    if (sym_pack_merge(pieces, 2, id, elf->build_id_size > 0 ? elf->build_id_size : 1, merged,
                       &count) != 0)
        abort();
    if (count > 0) {
        struct symint_packed *again;
        const char *why;
        if (merged[0].lines != NULL &&
            (symint_packed_open(merged[0].lines, merged[0].lines_bytes, &again, &why) != 0 ||
             again == NULL))
            abort();
        if (merged[0].lines != NULL)
            symint_packed_free(again);
        free(merged[0].names);
    }
    free(nothing);
    symint_packer_free(packer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct symint_strings strings = {0};
    struct symint_packed *p;
    const char *why;
    uint8_t *bytes = malloc(size + 1);
    if (bytes == NULL)
        return 0;
    if (size > 0)
        memcpy(bytes, data, size);
    if (size >= PACKED_HEADER_BYTES) {
        packed_put64(bytes + PACKED_AT_SIZE, size);
        packed_put32(bytes + PACKED_AT_CRC, symint_packed_checksum(bytes, size));
    }
    if (symint_packed_open(bytes, size, &p, &why) == 0 && p != NULL) {
        for (uint64_t at = 0x12000; at < 0x12100; at += 16)
            look(p, &strings, at);
        look(p, &strings, 0);
        look(p, &strings, UINT64_MAX);
        merge(p, bytes, size);
        symint_packed_free(p);
    }
    symint_strings_free(&strings);
    return 0;
}
