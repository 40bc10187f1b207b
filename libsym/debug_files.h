/* SPDX-License-Identifier: MIT */
/* Finding the files that debug information lies in beside the program's own (symbolization.md 4, 2 to 4): supplementary
 * files (dwz), split files and packages of them. */
#ifndef SYMINT_DEBUG_FILES_H
#define SYMINT_DEBUG_FILES_H

#include "archive.h"
#include "elf.h"
#include "strtab.h"

struct symint_search_options;

/* An ELF file that holds debug information. Its section headers are read. */
struct symint_debug_file {
    int fd;                            /* -1: none */
    char *path;                        /* malloc'ed, in terms of root */
    char *root;                        /* in which the path lies, malloc'ed; NULL: ours */
    const struct sym_archive *archive; /* whose path root is; NULL: it is a folder's */
    struct symint_elf *elf;            /* NULL: none */
};
/* Where f->path lies. Valid as long as f. */
struct symint_root symint_debug_file_root(const struct symint_debug_file *f);
/* What stands in front of f->path for a person where roots are not shown: the archive; "": none. */
const char *symint_debug_file_archive(const struct symint_debug_file *f);
void symint_debug_file_close(struct symint_debug_file *f);

/* Opens a regular file inside a root and reads its headers; takes path, malloc'ed or
 * NULL for out of memory. 0 with out->elf set and *miss NONE, or with *miss and *why telling what is wrong
 * (out is to be closed all the same), and errno what kept it from being opened, 0: something else did; SYM_ERR_NOMEM. */
int symint_debug_file_open(struct symint_root root, char *path, struct symint_debug_file *out,
                           enum sym_miss *miss, const char **why);
/* The headers of f->fd. As above. */
int symint_debug_file_read(struct symint_debug_file *f, enum sym_miss *miss, const char **why);
/* The same file once more, with a descriptor of its own. 0 with out->elf NULL, and nothing to close: it cannot be read
 * any more; SYM_ERR_NOMEM. */
int symint_debug_file_again(const struct symint_debug_file *from, struct symint_debug_file *out);

/* All of these: a name is looked for inside the root of `from`; 0 with out->elf set, or NULL and *why (in
 * the arena) telling what was tried, "" when there is nothing to say; SYM_ERR_NOMEM. out is the
 * caller's to close, whatever is returned. */

/* The dwz file that `from` names in its .gnu_debugaltlink (DWARF 5: .debug_sup), beside the file
 * that symbolic links to `from` lead to, else by build id where debug files are. Its build id is
 * the one that `from` states. *why is "" when `from` names none. */
int symint_find_supplementary(struct symint_arena *arena,
                              const struct symint_search_options *options,
                              const struct symint_debug_file *from, struct symint_debug_file *out,
                              const char **why);

/* The package of split files beside `from` (FILE.dwp, also without the ending .debug of FILE).
 * `program`: the path of the program in the same root, whose package counts too; NULL: that of
 * from. *why is "" when there is none: nothing says that there must be one. */
int symint_find_package(struct symint_arena *arena, const struct symint_search_options *options,
                        const struct symint_debug_file *from, const char *program,
                        struct symint_debug_file *out, const char **why);

/* Whether a split file is the one that is looked for, by its dwo id. 1: it is, and was taken; 0 with *why (static), and
 * it is as it was; SYM_ERR_NOMEM. */
typedef int symint_take_split_fn(void *user, struct symint_debug_file *f, const char **why);

/* A split file by what its skeleton says: DW_AT_dwo_name relative to DW_AT_comp_dir (NULL or
 * relative: to the folder of the program), then by its base name beside the program and `from` and
 * in symbol directories. The first one that is taken. 0, and *why is "" if one was; SYM_ERR_NOMEM. */
int symint_find_split(struct symint_arena *arena, const struct symint_search_options *options,
                      const struct symint_debug_file *from, const char *program,
                      const char *comp_dir, const char *dwo_name, symint_take_split_fn *take,
                      void *user, const char **why);

#endif
