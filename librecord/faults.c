/* SPDX-License-Identifier: MIT */
/*
 * Why stacks were not walked to their roots: counts, names, the report, and what is told of it while recording.
 */
#include <inttypes.h>
#include <stdio.h>

#include "session.h"

#define LOG_EVERY_NS UINT64_C(1000000000)

static const struct {
    const char *name;
    const char *text;
} faults[] = {
    [RECORD_FAULT_REGISTERS_MISSING] = {"registers_missing", "no user registers in the sample"},
    [RECORD_FAULT_REGISTER_CAPTURE] = {"register_capture",
                                       "a 32-bit program, whose registers are not read"},
    [RECORD_FAULT_STACK_READ] = {"stack_read", "an address outside the stack was needed"},
    [RECORD_FAULT_STACK_TRUNCATED] = {"stack_truncated", "the copied part of the stack ended"},
    [RECORD_FAULT_NO_PROGRESS] = {"no_progress", "the same frame came again"},
    [RECORD_FAULT_NULL_RETURN_ADDRESS] = {"null_return_address",
                                          "a return address of 0 before the root"},
    [RECORD_FAULT_MOVED_BACKWARDS] = {"moved_backwards",
                                      "a caller's frame lies below its callee's"},
    [RECORD_FAULT_OVERFLOW] = {"overflow", "an address beyond 64 bits"},
    [RECORD_FAULT_DEPTH_LIMIT] = {"depth_limit", "more frames than are walked"},
    [RECORD_FAULT_NO_RULE] = {"no_rule",
                              "no unwind information, and no frame pointer to be trusted"},
    [RECORD_FAULT_UPROBE] = {"uprobe", "a return address replaced by a uretprobe"},
};
_Static_assert(sizeof faults / sizeof faults[0] == RECORD_FAULT_COUNT, "a text for each fault");
_Static_assert(RECORD_FAULT_COUNT <= RECORD_FAULTS_MAX, "room in struct record_faults");

uint64_t record_faults_get(const struct record_faults *f, enum record_fault fault)
{
    return (unsigned)fault < RECORD_FAULT_COUNT ? f->count[fault] : 0;
}

uint64_t record_faults_total(const struct record_faults *f)
{
    uint64_t total = 0;

    for (unsigned i = 0; i < RECORD_FAULT_COUNT; i++)
        total += f->count[i];
    return total;
}

bool record_faults_any(const struct record_faults *f)
{
    return record_faults_total(f) > 0;
}

void record_faults_reset(struct record_faults *f)
{
    *f = (struct record_faults){{0}};
}

int record_faults_next(const struct record_faults *f, unsigned *at, enum record_fault *fault,
                       uint64_t *count)
{
    while (*at < RECORD_FAULT_COUNT) {
        unsigned i = (*at)++;

        if (f->count[i] > 0) {
            *fault = (enum record_fault)i;
            *count = f->count[i];
            return 1;
        }
    }
    return 0;
}

const char *record_fault_name(enum record_fault fault)
{
    return (unsigned)fault < RECORD_FAULT_COUNT ? faults[fault].name : "unknown";
}

const char *record_fault_text(enum record_fault fault)
{
    return (unsigned)fault < RECORD_FAULT_COUNT ? faults[fault].text : "unknown";
}

/* Hundredths of a percent, rounded; printf's own point would be the locale's comma. */
static uint64_t share(uint64_t count, uint64_t samples)
{
    for (; count > UINT64_MAX / 20000; samples /= 2)
        count /= 2;
    return samples > 0 ? (count * 10000 + samples / 2) / samples : 0;
}

size_t record_faults_report(const struct record_faults *f, uint64_t samples, char *text,
                            size_t size)
{
    bool told[RECORD_FAULT_COUNT] = {false};
    size_t length = 0;

    if (size > 0)
        text[0] = '\0';
    for (;;) {
        unsigned most = RECORD_FAULT_COUNT;
        uint64_t percent;
        int n;

        for (unsigned i = 0; i < RECORD_FAULT_COUNT; i++)
            if (!told[i] && f->count[i] > 0 &&
                (most == RECORD_FAULT_COUNT || f->count[i] > f->count[most]))
                most = i;
        if (most == RECORD_FAULT_COUNT)
            return length;
        told[most] = true;
        percent = share(f->count[most], samples);
        n = snprintf(length < size ? text + length : NULL, length < size ? size - length : 0,
                     "%" PRIu64 " (%" PRIu64 ".%02u %%): %s\n", f->count[most], percent / 100,
                     (unsigned)(percent % 100), faults[most].text);
        if (n > 0)
            length += (size_t)n;
    }
}

/* Where in which file, or else where. */
static void describe_address(struct record_session *s, pid_t pid, uint64_t address, char *text,
                             size_t size)
{
    struct spool_module m;

    if (spool_mappings_find(s->mappings, pid, false, address, &m) == 0)
        snprintf(text, size, "0x%" PRIx64 ", where nothing is mapped", address);
    else if (!recordint_image_files_is_file(m.path))
        snprintf(text, size, "0x%" PRIx64 " in memory without a file (%.100s)", address, m.path);
    else
        snprintf(text, size, "%.300s+0x%" PRIx64, m.path, address - m.start + m.file_offset);
}

void recordint_fault(struct record_session *s, enum record_fault fault, const struct perfrec *rec,
                     uint64_t address)
{
    char place[400];
    uint64_t now;

    s->counts.faults.count[fault]++;
    if (s->log == NULL)
        return;
    now = recordint_now_ns();
    if (s->fault_logged_ns[fault] != 0 && now - s->fault_logged_ns[fault] < LOG_EVERY_NS)
        return;
    s->fault_logged_ns[fault] = now;
    describe_address(s, rec->pid, address, place, sizeof place);
    recordint_log(s, RECORD_LOG_DEBUG, "a stack of thread %d ends at %s: %s (%" PRIu64 " so far)",
                  (int)rec->tid, place, faults[fault].text, s->counts.faults.count[fault]);
}
