/* SPDX-License-Identifier: MIT */
/*
 * What bears on a refusal, looked up after it: permissions, limits, whose process it is.
 */
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "event_refusal.h"
#include "kernel_limits.h"

#ifndef CAP_PERFMON
#define CAP_PERFMON 38
#endif

/* A line "NAME:\tVALUE..." of a status file, its value in the given base. */
static bool status_number(const char *path, const char *name, int base, uint64_t *value)
{
    FILE *file = fopen(path, "re");
    const size_t length = strlen(name);
    char line[1024];
    bool found = false;

    if (file == NULL)
        return false;
    while (!found && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, name, length) == 0 && line[length] == ':') {
            *value = strtoull(line + length + 1, NULL, base);
            found = true;
        }
    (void)fclose(file); /* nothing was written */
    return found;
}

static enum event_owner owner_of(pid_t tid, uid_t *uid)
{
    const uid_t ours = getuid(); /* the kernel compares with the real one */
    char path[64];
    uint64_t real;
    struct stat st;

    if (tid == 0)
        return EVENT_OWNER_US;
    snprintf(path, sizeof path, "/proc/%ld/status", (long)tid);
    if (tid < 0 || !status_number(path, "Uid", 10, &real))
        return EVENT_OWNER_UNKNOWN;
    if ((uid_t)real != ours) {
        *uid = (uid_t)real;
        return EVENT_OWNER_OTHER;
    }
    /* The kernel gives the files of a process that may not be looked into to root. */
    snprintf(path, sizeof path, "/proc/%ld/environ", (long)tid);
    if (stat(path, &st) != 0)
        return EVENT_OWNER_UNKNOWN;
    return st.st_uid == ours ? EVENT_OWNER_US : EVENT_OWNER_HIDDEN;
}

static bool is_offline(int cpu)
{
    int *cpus;
    size_t count;
    bool found = false;

    if (cpu < 0)
        return false;
    count = recordint_limits_online_cpus(&cpus);
    if (count == 0)
        return false;
    for (size_t i = 0; i < count; i++)
        found = found || cpus[i] == cpu;
    free(cpus);
    return !found;
}

/* Root of another user namespace has every capability there and none that counts here. */
static bool is_initial_user_namespace(void)
{
    FILE *file = fopen("/proc/self/uid_map", "re");
    unsigned long inside = 1, outside = 1, count = 0;
    bool initial;

    if (file == NULL)
        return true; /* a kernel without user namespaces */
    /* NOLINTNEXTLINE(cert-err34-c): three numbers of 32 bits, written by the kernel */
    initial = fscanf(file, "%lu %lu %lu", &inside, &outside, &count) == 3 && inside == 0 &&
              outside == 0 && count == UINT32_MAX;
    (void)fclose(file); /* nothing was written */
    return initial;
}

void recordint_event_facts(pid_t tid, int cpu, struct event_facts *out)
{
    const uint64_t capable = (uint64_t)1 << CAP_PERFMON | (uint64_t)1 << CAP_SYS_ADMIN;
    uint64_t capabilities = 0, seccomp = 0;
    struct rlimit files;

    memset(out, 0, sizeof *out);
    out->has_paranoid = recordint_limits_sysctl("perf_event_paranoid", &out->paranoid);
    out->has_rate_limit =
        recordint_limits_sysctl("perf_event_max_sample_rate", &out->rate_limit_hz);
    status_number("/proc/thread-self/status", "CapEff", 16, &capabilities);
    status_number("/proc/thread-self/status", "Seccomp", 10, &seccomp);
    out->privileged = (capabilities & capable) != 0 && is_initial_user_namespace();
    out->seccomp = seccomp == 2;
    out->cpu_offline = is_offline(cpu);
    if (getrlimit(RLIMIT_NOFILE, &files) == 0)
        out->file_limit = files.rlim_cur;
    out->owner = owner_of(tid, &out->owner_uid);
}
