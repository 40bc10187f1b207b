/* SPDX-License-Identifier: MIT */
/*
 * ELF files of a kernel. What the index of a file (elf_index.c) does not tell is here: where a
 * symbol of some name is, whatever its type.
 */
#include "kernel_elf.h"

#include "elf_private.h"
#include "openfile.h"

#include <elf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- files ---- */

void symint_kernel_elf_close(struct symint_debug_file *f)
{
    symint_elf_free(f->elf);
    if (f->fd >= 0)
        close(f->fd);
    free(f->path);
    free(f->root);
    *f = (struct symint_debug_file){.fd = -1};
}

/* Reads the headers of f->fd. */
static int read_headers(struct symint_debug_file *f, enum sym_miss *miss, const char **why)
{
    struct stat st;
    *miss = SYM_MISS_UNREADABLE;
    *why = "its size is unknown";
    if (fstat(f->fd, &st) != 0 || st.st_size < 0)
        return 0;
    struct symint_input input = {
        .fd = f->fd, .size = (uint64_t)st.st_size, .stored_bytes = (uint64_t)st.st_blocks * 512};
    int rc = symint_elf_open(&input, &f->elf, miss, why);
    if (rc == 0 && f->elf != NULL)
        rc = symint_elf_read_sections(f->elf, miss, why);
    if (rc == 0 && f->elf != NULL && *miss != SYM_MISS_NONE) {
        symint_elf_free(f->elf);
        f->elf = NULL;
    }
    return rc;
}

int symint_kernel_elf_open(struct symint_root root, const char *path, struct symint_debug_file *f,
                           enum sym_miss *miss, const char **why, int *error)
{
    *f = (struct symint_debug_file){.fd = -1, .archive = root.archive};
    *why = "";
    int rc = symint_root_open_regular(root, path, &f->fd, miss, error);
    if (rc == 0 && f->fd < 0) {
        *why = sym_miss_text(*miss);
        return 0;
    }
    if (rc == 0) {
        f->path = strdup(path);
        f->root = root.path != NULL ? strdup(root.path) : NULL;
        rc = f->path == NULL || (root.path != NULL && f->root == NULL) ? SYM_ERR_NOMEM
                                                                       : read_headers(f, miss, why);
    }
    if (rc != 0 || f->elf == NULL)
        symint_kernel_elf_close(f);
    return rc;
}

int symint_kernel_elf_again(const struct symint_debug_file *from, struct symint_debug_file *f)
{
    enum sym_miss miss;
    const char *why;
    *f = (struct symint_debug_file){.fd = fcntl(from->fd, F_DUPFD_CLOEXEC, 0),
                                    .archive = from->archive};
    if (f->fd < 0) /* too many are open: as good as no memory for one more */
        return SYM_ERR_NOMEM;
    f->path = strdup(from->path);
    f->root = from->root != NULL ? strdup(from->root) : NULL;
    int rc = f->path == NULL || (from->root != NULL && f->root == NULL)
                 ? SYM_ERR_NOMEM
                 : read_headers(f, &miss, &why);
    if (rc != 0 || f->elf == NULL)
        symint_kernel_elf_close(f);
    return rc;
}

bool symint_kernel_elf_has_dwarf(const struct symint_elf *e)
{
    const struct section *s = symint_elf_section(e, ".debug_info");
    if (s == NULL)
        s = symint_elf_section(e, ".zdebug_info");
    return s != NULL && s->type != SHT_NOBITS && s->size > 0;
}

bool symint_kernel_elf_is_relocatable(const struct symint_elf *e)
{
    uint8_t type[2];
    return symint_elf_read(&e->input, EI_NIDENT, sizeof(type), type) == READ_OK &&
           get16(e, type) == ET_REL;
}

/* ---- symbols ---- */

int symint_kernel_names_read(const struct symint_elf *e, struct symint_kernel_names *out)
{
    struct symint_table_place place;
    enum sym_miss miss;
    *out = (struct symint_kernel_names){.elf = e};
    int rc = symint_symtab_place(e, SYMTAB, &place);
    if (rc != 0 || !place.found)
        return rc;
    rc = symint_elf_load(&e->input, place.symbols_offset, place.symbols_size, &out->symbols, &miss);
    if (rc == 0 && out->symbols != NULL)
        rc = symint_elf_load(&e->input, place.strings_offset, place.strings_size, &out->strings,
                             &miss);
    if (rc != 0 || out->strings == NULL) {
        symint_kernel_names_free(out);
        return rc;
    }
    out->strings_size = place.strings_size;
    out->count = place.symbols_size / (e->wide ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym));
    return 0;
}

void symint_kernel_names_free(struct symint_kernel_names *n)
{
    free(n->symbols);
    free(n->strings);
    *n = (struct symint_kernel_names){0};
}

bool symint_kernel_names_at(const struct symint_kernel_names *n, uint64_t i,
                            struct symint_kernel_name *out)
{
    const struct symint_elf *e = n->elf;
    const uint8_t *p = n->symbols + i * (e->wide ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym));
    uint32_t name = get32(e, p);
    uint8_t info = p[e->wide ? 4 : 12];
    uint8_t type = ELF64_ST_TYPE(info);
    uint16_t section = get16(e, p + (e->wide ? 6 : 14));
    bool absolute = section == SHN_ABS; /* as old linkers leave the labels of a script */
    if (section == SHN_UNDEF ||
        (!absolute && (section >= e->section_count || section >= SHN_LORESERVE)) ||
        name >= n->strings_size || n->strings[name] == '\0' || type == STT_SECTION ||
        type == STT_FILE || type == STT_TLS)
        return false;
    *out = (struct symint_kernel_name){
        .name = (const char *)n->strings + name,
        .value = get_word(e, p, 4, 8),
        .size = get_word(e, p, 8, 16),
        .section_offset = absolute                         ? 0
                          : e->sections[section].addr != 0 ? e->sections[section].addr
                                                           : e->sections[section].offset,
        .code = !absolute && e->sections[section].executable && type != STT_OBJECT &&
                type != STT_COMMON,
        .global = ELF64_ST_BIND(info) != STB_LOCAL,
    };
    return true;
}

uint64_t symint_kernel_names_value(const struct symint_kernel_names *n, const char *name)
{
    struct symint_kernel_name s;
    for (uint64_t i = 1; i < n->count; i++)
        if (symint_kernel_names_at(n, i, &s) && strcmp(s.name, name) == 0)
            return s.value;
    return 0;
}
