/* SPDX-License-Identifier: MIT */
/* A folder that looks like /proc, for tests of what depends on running processes. Its machine was
 * booted in the second FAKE_BOOT_S. */
#ifndef FAKE_PROC_H
#define FAKE_PROC_H

#include "boot.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FAKE_BOOT_S 1700000000
#define FAKE_BOOT_ID "11111111-2222-3333-4444-555555555555"

static char fake_folder[64]; /* of a test's files; PROC is its `proc` */
static struct symint_system fake_system;

/* A path in the folder; eight of them are valid at a time. */
static const char *at(const char *format, ...) __attribute__((format(printf, 1, 2)));
static const char *at(const char *format, ...)
{
    static char paths[8][512];
    static unsigned next;
    char *path = paths[next++ % 8];
    int n = snprintf(path, sizeof(paths[0]), "%s/", fake_folder);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(path + n, sizeof(paths[0]) - (size_t)n, format, arguments);
    va_end(arguments);
    return path;
}

static void put_text(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, strlen(text), f), strlen(text));
    assert_int_equal(fclose(f), 0);
}

static void put_folder(const char *path)
{
    assert_true(mkdir(path, 0755) == 0 || errno == EEXIST);
}

static void put_link(const char *target, const char *path)
{
    unlink(path);
    assert_int_equal(symlink(target, path), 0);
}

struct fake_process {
    int32_t pid;
    const char *comm;   /* NULL: `prog` */
    char state;         /* 0: S */
    double start_s;     /* after the boot */
    const char *pids;   /* of NSpid; NULL: no such line */
    int32_t group;      /* 0: pid */
    const char *root;   /* NULL: the folder `ours`; "": nobody may look at it */
    const char *mounts; /* NULL: `mnt:[1]` */
};

/* Makes or replaces a process. */
static void put_process(const struct fake_process *p)
{
    char text[512];
    char who[16];
    snprintf(who, sizeof(who), "%d", (int)p->pid);
    put_folder(at("proc/%s", who));
    put_folder(at("proc/%s/ns", who));
    snprintf(text, sizeof(text),
             "%s (%s) %c 1 2 3 4 -1 4194560 9 10 11 12 13 14 15 16 20 0 1 0 %llu 1000 200 300\n",
             who, p->comm != NULL ? p->comm : "prog", p->state != 0 ? p->state : 'S',
             (unsigned long long)(p->start_s * (double)sysconf(_SC_CLK_TCK)));
    put_text(at("proc/%s/stat", who), text);
    int n = snprintf(text, sizeof(text), "Name:\tprog\nTgid:\t%d\nNgid:\t0\nPid:\t%s\n",
                     (int)(p->group != 0 ? p->group : p->pid), who);
    if (p->pids != NULL)
        snprintf(text + n, sizeof(text) - (size_t)n, "NStgid:\t1\nNSpid:\t%s\nNSpgid:\t1\n",
                 p->pids);
    put_text(at("proc/%s/status", who), text);
    const char *root = p->root != NULL ? p->root : "ours";
    if (root[0] == '\0')
        unlink(at("proc/%s/root", who));
    else
        put_link(at("%s", root), at("proc/%s/root", who));
    put_link(p->mounts != NULL ? p->mounts : "mnt:[1]", at("proc/%s/ns/mnt", who));
}

static inline void remove_process(int32_t pid)
{
    static const char *const names[] = {"stat", "status", "root", "ns/mnt"};
    for (size_t i = 0; i < 4; i++)
        unlink(at("proc/%d/%s", (int)pid, names[i]));
}

static int make_proc(void **state)
{
    static char texts[3][96];
    (void)state;
    strcpy(fake_folder, "/tmp/fake_proc.XXXXXX");
    if (mkdtemp(fake_folder) == NULL)
        return -1;
    put_folder(at("proc"));
    put_folder(at("proc/self"));
    put_folder(at("proc/self/ns"));
    put_folder(at("ours"));
    put_folder(at("theirs"));
    put_folder(at("theirs/tmp"));
    put_link(at("ours"), at("proc/self/root"));
    put_link("mnt:[1]", at("proc/self/ns/mnt"));
    put_text(at("boot_id"), FAKE_BOOT_ID "\n");
    put_text(at("stat"), "cpu 1 2 3\nbtime 1700000000\nprocesses 7\n");
    fake_system = symint_system;
    fake_system.proc = strcpy(texts[0], at("proc"));
    fake_system.boot_id = strcpy(texts[1], at("boot_id"));
    fake_system.stat = strcpy(texts[2], at("stat"));
    return 0;
}

static int remove_proc(void **state)
{
    char command[128];
    (void)state;
    snprintf(command, sizeof(command), "rm -rf '%s'", fake_folder);
    return system(command);
}

#endif
