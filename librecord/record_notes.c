/* SPDX-License-Identifier: MIT */
/*
 * What the format has no record for goes into annotations: names, build ids, the machine, the clock, losses.
 * With the plain option libspool's writer leaves them out.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

#include "procfs.h"
#include "session.h"

static int annotate(struct record_session *s, pid_t pid, const char *key, const char *value)
{
    return recordint_spool_result(s, spool_writer_annotate(s->writer, pid, key, value));
}

static int annotate_session(struct record_session *s, const char *key, const char *value)
{
    return s->first_pid > 0 ? annotate(s, s->first_pid, key, value) : 0;
}

static uint64_t realtime_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* The build id in the kernel's ELF notes, hex; "-" when there is none to read. False: out of memory. */
static bool kernel_build_id(char *hex, size_t size)
{
    char *notes = NULL;
    size_t length = 0, at = 0;
    int system = recordint_procfs_read("/sys/kernel/notes", 1 << 20, &notes, &length);

    snprintf(hex, size, "-");
    if (system != 0)
        return system != ENOMEM;
    while (length - at >= 12) {
        uint32_t head[3]; /* size of the name, size of the value, type */
        size_t name_size, value_size;

        memcpy(head, notes + at, sizeof head);
        at += sizeof head;
        name_size = ((size_t)head[0] + 3) & ~(size_t)3;
        value_size = ((size_t)head[1] + 3) & ~(size_t)3;
        if (name_size > length - at || value_size > length - at - name_size)
            break;
        if (head[2] == 3 && head[0] == 4 && memcmp(notes + at, "GNU", 4) == 0 && head[1] > 0 &&
            2 * (size_t)head[1] < size) {
            for (size_t i = 0; i < head[1]; i++)
                snprintf(hex + 2 * i, 3, "%02x", (uint8_t)notes[at + name_size + i]);
            break;
        }
        at += name_size + value_size;
    }
    free(notes);
    return true;
}

static bool boot_id(char *text, size_t size)
{
    char *read = NULL;
    size_t length = 0;
    int system = recordint_procfs_read("/proc/sys/kernel/random/boot_id", 4096, &read, &length);

    snprintf(text, size, "-");
    if (system != 0)
        return system != ENOMEM;
    read[strcspn(read, "\n")] = '\0';
    if (read[0] != '\0')
        snprintf(text, size, "%s", read);
    free(read);
    return true;
}

static int note_kernel(struct record_session *s, const struct utsname *names)
{
    char id[2 * 64 + 1], boot[64], value[512];

    if (!kernel_build_id(id, sizeof id) || !boot_id(boot, sizeof boot))
        return recordint_out_of_memory(s);
    snprintf(value, sizeof value, "%s %s %s", names->release, id, boot);
    return annotate_session(s, "kernel", value);
}

int recordint_note_session(struct record_session *s, pid_t pid)
{
    struct utsname names;
    char value[512];
    int rc;

    if (s->first_pid > 0)
        return 0;
    s->first_pid = pid;
    snprintf(value, sizeof value, "%s %u", recordint_event_name(&s->config),
             s->options.frequency_hz);
    rc = annotate_session(s, "event", value);
    if (rc == 0) {
        snprintf(value, sizeof value, "%" PRIu64 " %" PRIu64, recordint_now_ns(), realtime_ns());
        rc = annotate_session(s, "clock", value);
    }
    if (rc < 0 || uname(&names) != 0)
        return rc;
    snprintf(value, sizeof value, "%s %s %s %s", names.sysname, names.release, names.machine,
             names.nodename);
    rc = annotate_session(s, "host", value);
    return rc == 0 && s->config.kernel ? note_kernel(s, &names) : rc;
}

int recordint_note_comm(struct record_session *s, const struct process *p)
{
    return annotate(s, p->pid, "comm", p->name);
}

int recordint_note_thread(struct record_session *s, struct thread *t)
{
    char value[128];

    t->noted = true;
    snprintf(value, sizeof value, "%d %s", (int)t->tid, t->name);
    return annotate(s, t->process->pid, "thread", value);
}

int recordint_note_cmdline(struct record_session *s, const struct process *p, const char *text)
{
    char read[4096]; /* no annotation has room for more */

    if (text == NULL) {
        int system = recordint_procfs_cmdline(p->pid, read, sizeof read);

        if (system == ENOMEM)
            return recordint_out_of_memory(s);
        if (system != 0 || read[0] == '\0')
            return 0;
        text = read;
    }
    return annotate(s, p->pid, "cmdline", text);
}

int recordint_note_build_id(struct record_session *s, pid_t pid, uint32_t module, const char *hex)
{
    char value[2 * IMAGE_BUILD_ID_MAX + 16];
    size_t byte = module / 8;

    if (byte >= s->noted_build_ids_size) {
        size_t size = byte < 512 ? 1024 : 2 * byte;
        uint8_t *grown = realloc(s->noted_build_ids, size);

        if (grown == NULL)
            return recordint_out_of_memory(s);
        memset(grown + s->noted_build_ids_size, 0, size - s->noted_build_ids_size);
        s->noted_build_ids = grown;
        s->noted_build_ids_size = size;
    }
    if (s->noted_build_ids[byte] >> module % 8 & 1)
        return 0;
    s->noted_build_ids[byte] |= (uint8_t)(1u << module % 8);
    snprintf(value, sizeof value, "%" PRIu32 " %s", module, hex);
    return annotate(s, pid, "build-id", value);
}

int recordint_note_ksymbol(struct record_session *s, uint64_t address, uint32_t size,
                           const char *name)
{
    char value[600];

    snprintf(value, sizeof value, "0x%" PRIx64 " %" PRIu32 " %.500s", address, size, name);
    return annotate_session(s, "ksymbol", value);
}

int recordint_note_lost(struct record_session *s)
{
    char value[32];
    uint64_t lost = recordint_attach_lost(s);

    if (lost == s->lost_noted)
        return 0;
    s->lost_noted = lost;
    s->threads_unsure = true; /* no LOST may follow that says so */
    snprintf(value, sizeof value, "%" PRIu64, lost);
    return annotate_session(s, "lost", value);
}

int recordint_note_end(struct record_session *s)
{
    char value[96];

    snprintf(value, sizeof value, "%" PRIu64 " %" PRIu64 " %" PRIu64, s->counts.samples,
             recordint_attach_lost(s), s->counts.truncated_stacks);
    return annotate_session(s, "end", value);
}
