/* SPDX-License-Identifier: MIT */
/* Debug sections of relocatable files (kernel modules, .o), whose addresses and offsets are still to be filled in. */
#ifndef SYMINT_RELOCATE_H
#define SYMINT_RELOCATE_H

#include "elf.h"

/* Whether a section of a relocatable file has relocations. In other files, whose linker may have left some behind, they
 * were applied already: false. The section headers are read. */
bool symint_has_relocations(const struct symint_elf *e, uint32_t section);

/* Applies them to the section's bytes, with addresses as sections[].addr says. NULL, or why that cannot be done
 * (static); then some may be applied. */
const char *symint_relocate(const struct symint_elf *e, uint32_t section, uint8_t *bytes,
                            uint64_t size);

#endif
