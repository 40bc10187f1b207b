/* SPDX-License-Identifier: MIT */
/*
 * Small files of /proc about a process and its threads. Mappings and descendants have files of their own.
 */
#include "procfs.h"

#include "procfs_text.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- bytes ---- */

static int open_file(const char *path, int *fd)
{
    *fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    return *fd < 0 ? errno : 0;
}

/* Reads until the buffer is full or the file ends. */
static int read_some(int fd, char *buffer, size_t size, size_t *got)
{
    *got = 0;
    while (*got < size) {
        ssize_t n = read(fd, buffer + *got, size - *got);
        if (n == 0)
            break;
        if (n > 0)
            *got += (size_t)n;
        else if (errno != EINTR)
            return errno;
    }
    return 0;
}

/* The beginning of a file, as much of it as fits. */
static int read_start(const char *path, char *buffer, size_t size, size_t *got)
{
    int fd;
    int rc = open_file(path, &fd);
    if (rc != 0)
        return rc;
    rc = read_some(fd, buffer, size, got);
    close(fd);
    return rc;
}

int recordint_procfs_read(const char *path, size_t limit, char **text, size_t *size)
{
    char *bytes = NULL;
    size_t room = 0;
    size_t used = 0;
    int fd;
    int rc = open_file(path, &fd);
    if (rc != 0)
        return rc;
    do { /* room for limit + 1 bytes tells a file of the limit's size from a larger one */
        size_t got;
        room = room == 0 ? 4096 : room * 2;
        if (room > limit + 1)
            room = limit + 1;
        char *larger = realloc(bytes, room + 1);
        if (larger == NULL) {
            rc = ENOMEM;
            break;
        }
        bytes = larger;
        rc = read_some(fd, bytes + used, room - used, &got);
        used += got;
    } while (rc == 0 && used == room && used <= limit);
    close(fd);
    if (rc == 0 && used > limit)
        rc = EFBIG;
    if (rc != 0) {
        free(bytes);
        return rc;
    }
    bytes[used] = '\0';
    *text = bytes;
    *size = used;
    return 0;
}

/* ---- texts ---- */

/* Moves *at over a number, or over its first character when it is none that a pid_t holds. */
static bool take_pid(const char **at, pid_t *pid)
{
    char *end;
    if (**at >= '0' && **at <= '9') {
        errno = 0;
        long value = strtol(*at, &end, 10);
        *at = end;
        *pid = (pid_t)value;
        return errno == 0 && value <= INT_MAX;
    }
    ++*at;
    return false;
}

#define KERNEL_THREAD 0x00200000u /* PF_KTHREAD of the kernel's task flags */

int recordint_procfs_parse_stat(const char *text, struct procfs_stat *out)
{
    const char *at = strrchr(text, ')'); /* what follows holds no further one */
    char *end;
    if (at == NULL || at[1] != ' ' || at[2] == '\0' || at[3] != ' ')
        return EBADMSG;
    out->state = at[2];
    at += 4;
    if (!take_pid(&at, &out->parent)) /* field 4 */
        return EBADMSG;
    for (int field = 5; field <= 22; field++) {
        at = strchr(at, ' ');
        if (at == NULL)
            return EBADMSG;
        at++;
        if (field == 9)
            out->kernel = (strtoull(at, NULL, 10) & KERNEL_THREAD) != 0;
        if (field == 20)
            out->threads = strtoull(at, NULL, 10);
    }
    errno = 0;
    out->start_ticks = strtoull(at, &end, 10);
    return end == at || errno != 0 ? EBADMSG : 0;
}

pid_t recordint_procfs_parse_status(const char *text, const char *key)
{
    size_t key_size = strlen(key);
    pid_t last = 0;
    /* A name with newlines cannot pose as another line: the kernel escapes them in this file. */
    while (text != NULL && strncmp(text, key, key_size) != 0) {
        text = strchr(text, '\n');
        if (text != NULL)
            text++;
    }
    if (text == NULL)
        return 0;
    for (text += key_size; *text != '\0' && *text != '\n';) {
        pid_t pid;
        if (take_pid(&text, &pid))
            last = pid;
    }
    return last;
}

/* ---- arguments ---- */

static bool is_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c != '\0' && strchr("0123456789%+,-./:=@_", c) != NULL);
}

/* One argument into at most room bytes; returns its length, 0 when it does not fit (none is empty when quoted). */
static size_t quote_one(const char *argument, bool first, char *text, size_t room)
{
    size_t used = 0;
    size_t plain = 0;
    while (is_plain(argument[plain]) && (argument[plain] != '=' || !first)) /* a=b: a variable */
        plain++;
    if (plain > 0 && argument[plain] == '\0') {
        if (plain <= room)
            memcpy(text, argument, plain);
        return plain <= room ? plain : 0;
    }
    if (room < 2)
        return 0;
    text[used++] = '\'';
    for (; *argument != '\0'; argument++) {
        const char *as = "'\\''";
        size_t size = 4;
        if (*argument != '\'') {
            as = argument;
            size = 1;
        }
        if (size >= room - used) /* the closing quote needs one as well */
            return 0;
        memcpy(text + used, as, size);
        used += size;
    }
    text[used++] = '\'';
    return used;
}

void recordint_procfs_quote(const char *arguments, size_t arguments_size, char *text, size_t size)
{
    size_t used = 0;
    /* A program that writes a title over its arguments leaves NULs behind it: no arguments. */
    while (arguments_size > 1 && arguments[arguments_size - 1] == '\0' &&
           arguments[arguments_size - 2] == '\0')
        arguments_size--;
    text[0] = '\0';
    for (size_t at = 0; at < arguments_size;) {
        size_t length = strnlen(arguments + at, arguments_size - at);
        size_t blank = at > 0 ? 1 : 0;
        if (at + length == arguments_size || size - used < blank + 1)
            return;
        size_t quoted =
            quote_one(arguments + at, at == 0, text + used + blank, size - used - blank - 1);
        if (quoted == 0) {
            text[used] = '\0'; /* the first one's beginning stands there */
            return;
        }
        if (blank != 0)
            text[used] = ' ';
        used += blank + quoted;
        text[used] = '\0';
        at += length + 1;
    }
}

int recordint_procfs_cmdline(pid_t pid, char *text, size_t size)
{
    char path[64];
    size_t got;
    if (size == 0)
        return EINVAL;
    /* Quoting shortens nothing: `size` bytes are all that can fit. The last argument may lack its NUL
     * (a title again); it gets one. */
    char *arguments = malloc(size + 1);
    if (arguments == NULL)
        return ENOMEM;
    snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pid);
    int rc = read_start(path, arguments, size, &got);
    if (rc == 0) {
        if (got > 0 && arguments[got - 1] != '\0')
            arguments[got++] = '\0';
        recordint_procfs_quote(arguments, got, text, size);
    }
    free(arguments);
    return rc;
}

/* ---- processes and threads ---- */

/* /proc/PID/NAME, or /proc/PID/task/TID/NAME. */
static void make_path(char path[64], pid_t pid, pid_t tid, const char *name)
{
    if (tid == 0)
        snprintf(path, 64, "/proc/%d/%s", (int)pid, name);
    else
        snprintf(path, 64, "/proc/%d/task/%d/%s", (int)pid, (int)tid, name);
}

int recordint_procfs_stat_of(const char *path, struct procfs_stat *out)
{
    char text[2048]; /* 52 numbers of at most 21 bytes, a name of at most 64 */
    size_t got;
    int rc = read_start(path, text, sizeof(text) - 1, &got);
    if (rc != 0)
        return rc;
    text[got] = '\0';
    return recordint_procfs_parse_stat(text, out);
}

int recordint_procfs_stat(pid_t pid, pid_t tid, struct procfs_stat *out)
{
    char path[64];
    make_path(path, pid, tid, "stat");
    return recordint_procfs_stat_of(path, out);
}

int recordint_procfs_comm(pid_t pid, pid_t tid, char name[64])
{
    char path[64];
    size_t got;
    make_path(path, pid, tid, "comm");
    int rc = read_start(path, name, 63, &got);
    if (rc != 0)
        return rc;
    if (got > 0 && name[got - 1] == '\n')
        got--;
    name[got] = '\0';
    return 0;
}

/* Without memory, so that a shortage makes no process of a thread: of the lines before, only the name's has a length to
 * speak of, four times 64 bytes at most. */
pid_t recordint_procfs_process_of(pid_t tid)
{
    char path[64], text[1024];
    size_t got;
    make_path(path, tid, 0, "status");
    if (read_start(path, text, sizeof(text) - 1, &got) != 0)
        return 0;
    text[got] = '\0';
    return recordint_procfs_parse_status(text, "Tgid:");
}

static int compare_pids(const void *a, const void *b)
{
    pid_t x = *(const pid_t *)a;
    pid_t y = *(const pid_t *)b;
    return (x > y) - (x < y);
}

ssize_t recordint_procfs_numbers(const char *folder, pid_t **numbers)
{
    pid_t *list = NULL;
    size_t count = 0;
    size_t capacity = 0;
    int error = 0;
    DIR *d = opendir(folder);
    if (d == NULL)
        return -1;
    for (;;) {
        errno = 0;
        const struct dirent *entry = readdir(d);
        if (entry == NULL) {
            error = errno;
            break;
        }
        const char *at = entry->d_name;
        pid_t number;
        if (!take_pid(&at, &number) || *at != '\0')
            continue;
        if (count == capacity) {
            capacity = capacity == 0 ? 64 : capacity * 2;
            pid_t *larger = realloc(list, capacity * sizeof(*list));
            if (larger == NULL) {
                error = ENOMEM;
                break;
            }
            list = larger;
        }
        list[count++] = number;
    }
    closedir(d);
    if (error != 0) {
        free(list);
        errno = error;
        return -1;
    }
    if (count > 1)
        qsort(list, count, sizeof(*list), compare_pids);
    *numbers = list;
    return (ssize_t)count;
}

ssize_t recordint_procfs_threads(pid_t pid, pid_t **tids)
{
    char path[64];
    make_path(path, pid, 0, "task");
    ssize_t count = recordint_procfs_numbers(path, tids);
    if (count == 0) { /* ended after the folder was opened */
        errno = ESRCH;
        return -1;
    }
    return count;
}
