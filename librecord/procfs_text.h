/* SPDX-License-Identifier: MIT */
/*
 * What the files behind procfs.h share: parsers that take the text of a file, and readers that are told where the
 * file is, so that tests can hand them what no kernel here prints.
 */
#ifndef RECORD_PROCFS_TEXT_H
#define RECORD_PROCFS_TEXT_H

#include "procfs.h"

/* The numbers among the names of a folder, ascending; *numbers is the caller's to free, NULL when there are none.
 * Returns how many, -1 with errno. */
ssize_t recordint_procfs_numbers(const char *folder, pid_t **numbers);

/* As recordint_procfs_stat, of that file. */
int recordint_procfs_stat_of(const char *path, struct procfs_stat *out);

/* A stat file. The name in it may hold anything but a NUL. Returns 0, EBADMSG. */
int recordint_procfs_parse_stat(const char *text, struct procfs_stat *out);

/* The last number in the line of a status file that begins with key ("Tgid:"), 0 when there is none. */
pid_t recordint_procfs_parse_status(const char *text, const char *key);

/* Arguments that each end with a NUL, quoted for a shell into at most size bytes (>= 1) with the NUL. Those
 * that no longer fit are left out, so that what is there can be pasted. */
void recordint_procfs_quote(const char *arguments, size_t arguments_size, char *text, size_t size);

/* A line of a maps file without its newline, which is changed: out->path points into it. Returns false when it
 * is none. */
bool recordint_procfs_parse_map(char *line, struct procfs_map *out);

/* As recordint_procfs_maps_open, of that file. */
int recordint_procfs_maps_open_path(const char *path, struct procfs_maps **out);

/* As recordint_procfs_descendants, where /proc is that folder. */
ssize_t recordint_procfs_descendants_in(const char *proc, pid_t pid, pid_t **pids);

#endif
