/* SPDX-License-Identifier: MIT */
/*
 * From a sample of the kernel to a sample in the spool: kernel frames as they come, user frames by walking the
 * copied stack, the marker where that did not reach the root.
 */
#include <inttypes.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/auxv.h>

#include "session.h"

/* How long generated code is trusted to be what it was: about as long as it takes till a sample is looked at. */
#define CODE_ROUND_NS UINT64_C(100000000)

/* Of a process; at RESCANS_A_SECOND, minutes. */
#define UNKNOWN_PAGES_MAX 4096

/* What the unwinder's questions are about. */
struct sample_walk {
    struct record_session *s;
    struct process *p;
    struct unwind_space space;
    uint64_t time_ns;
    int error; /* of the spool, met while mappings were read */
};

/* One number for a process and what it maps at a time. */
static uint64_t generation(const struct sample_walk *w)
{
    uint64_t mapped = spool_mappings_generation(w->s->mappings, w->p->pid);

    if (mapped != w->p->mapped_generation) {
        w->p->mapped_generation = mapped;
        recordint_process_renew(w->s, w->p);
    }
    return w->p->epoch;
}

/* Nothing is mapped there as far as we know: mremap and a few others happen without a record, so the maps are
 * read again, once a page until mappings change. */
static bool rescan(struct sample_walk *w, uint64_t address)
{
    struct process *p = w->p;
    uint32_t page = (uint32_t)(address >> 12 ^ address >> 44);
    bool added = false;

    page = page == 0 ? 1 : page;
    if (p->unknown_pages.count >= UNKNOWN_PAGES_MAX)
        recordint_idmap_free(&p->unknown_pages);
    if (p->rescans_left == 0 || recordint_idmap_get(&p->unknown_pages, page) != NULL)
        return false;
    p->rescans_left--;
    w->s->counts.rescans++;
    w->error = recordint_process_read_maps(w->s, p, false, w->time_ns, &added);
    if (w->error == 0 && recordint_idmap_put(&p->unknown_pages, page, p) < 0)
        w->error = recordint_out_of_memory(w->s);
    return added && w->error == 0;
}

static void tell_refusal(struct record_session *s)
{
    if (!recordint_image_files_refused(s->files) || s->files_refusal_told)
        return;
    s->files_refusal_told = true;
    recordint_log(
        s, RECORD_LOG_WARNING,
        "files cannot be opened for their unwind tables, so that stacks end in them: the limit of "
        "%" PRIu64 " open files (RLIMIT_NOFILE, ulimit -n) is reached",
        s->files_limit);
}

static bool find_range(void *user, uint64_t address, struct unwind_range *out)
{
    struct sample_walk *w = user;
    struct record_session *s = w->s;
    const struct image_file *file;
    struct spool_module m;

    if (w->error < 0)
        return false;
    if (spool_mappings_find(s->mappings, w->p->pid, false, address, &m) == 0 &&
        (!rescan(w, address) ||
         spool_mappings_find(s->mappings, w->p->pid, false, address, &m) == 0))
        return false;
    *out = (struct unwind_range){
        .start = m.start,
        .end = m.end,
        .file_offset = strcmp(m.path, "[vdso]") == 0 ? 0 : m.file_offset,
        .module = m.id,
        .file = recordint_image_files_is_file(m.path),
        .trampoline = strcmp(m.path, "[uprobes]") == 0,
    };
    file = recordint_image_files_get(s->files, &m, s->first_pid);
    if (file != NULL) {
        out->image = file->image;
        out->rules = file->rules;
        if (file->image == NULL)
            tell_refusal(s);
        if (file->build_id[0] != '\0')
            w->error = recordint_note_build_id(s, m.pid, m.id, file->build_id);
    }
    w->space.generation = generation(w);
    return true;
}

static size_t read_code(void *user, uint64_t address, void *out, size_t size)
{
    struct sample_walk *w = user;

    return recordint_code_pages_read(w->s->code_pages, w->p->pid, generation(w),
                                     w->space.code_round, address, out, size);
}

static enum record_fault fault_of(enum unwind_end end, const struct perfrec_sample *sample)
{
    switch (end) {
    case UNWIND_COMPLETE:
        break;
    case UNWIND_TRUNCATED:
        /* Where the kernel copied less than was asked for, the stack itself ended there. */
        return sample->stack_full ? RECORD_FAULT_STACK_TRUNCATED : RECORD_FAULT_STACK_READ;
    case UNWIND_STACK_READ:
        return RECORD_FAULT_STACK_READ;
    case UNWIND_NO_PROGRESS:
        return RECORD_FAULT_NO_PROGRESS;
    case UNWIND_BACKWARDS:
        return RECORD_FAULT_MOVED_BACKWARDS;
    case UNWIND_NULL_RETURN:
        return RECORD_FAULT_NULL_RETURN_ADDRESS;
    case UNWIND_OVERFLOW:
        return RECORD_FAULT_OVERFLOW;
    case UNWIND_DEPTH:
        return RECORD_FAULT_DEPTH_LIMIT;
    case UNWIND_NO_RULE:
        return RECORD_FAULT_NO_RULE;
    case UNWIND_UPROBE:
        return RECORD_FAULT_UPROBE;
    case UNWIND_NO_REGISTERS:
        return RECORD_FAULT_REGISTERS_MISSING;
    }
    return RECORD_FAULT_NO_RULE;
}

/* Kernel frames, leaf first: all but the first are return addresses. Returns their number. */
static size_t kernel_frames(struct record_session *s, const struct perfrec_sample *sample)
{
    size_t count = 0;
    bool kernel = false, user = false;

    for (size_t i = 0; i < sample->callchain_count; i++) {
        uint64_t ip = sample->callchain[i];

        if (ip >= (uint64_t)PERF_CONTEXT_MAX) {
            kernel = ip == (uint64_t)PERF_CONTEXT_KERNEL;
            user = ip == (uint64_t)PERF_CONTEXT_USER;
        } else if (user) {
            s->counts.ignored_user_callchain++;
        } else if (kernel && count < RECORD_DEPTH_MAX) {
            s->frames[count] = (struct spool_writer_frame){
                .kind = SPOOL_FRAME_UNPINNED,
                .kernel = true,
                .address = count == 0 || ip == 0 ? ip : ip - 1,
            };
            count++;
        }
    }
    return count;
}

static size_t add_marker(struct record_session *s, size_t count)
{
    s->frames[count] = (struct spool_writer_frame){.kind = SPOOL_FRAME_TRUNCATED};
    s->counts.truncated_stacks++;
    return count + 1;
}

static size_t add_user_frame(struct record_session *s, const struct process *p, uint64_t address,
                             size_t count)
{
    spool_mappings_frame(s->mappings, p->pid, false, address, &s->frames[count]);
    return count + 1;
}

/* User frames behind the kernel's. Returns the number of all, or an error. */
static int user_frames(struct record_session *s, struct process *p, const struct perfrec *rec,
                       size_t count)
{
    const struct perfrec_sample *sample = &rec->sample;
    struct sample_walk w = {.s = s, .p = p, .time_ns = rec->time_ns};
    struct unwind_input input = {
        .arch = s->layout.arch,
        .regs = sample->regs,
        .stack = sample->stack,
        .stack_size = sample->stack_size,
        /* The name of our program lies above our stack, and all have the same address space. */
        .pac_mask = arch_pac_mask(s->layout.arch, getauxval(AT_EXECFN)),
    };
    struct unwind_result result;

    if (sample->regs_abi == PERF_SAMPLE_REGS_ABI_NONE) {
        recordint_fault(s, RECORD_FAULT_REGISTERS_MISSING, rec, sample->ip);
        return (int)count;
    }
    if (sample->regs_abi != PERF_SAMPLE_REGS_ABI_64) {
        recordint_fault(s, RECORD_FAULT_REGISTER_CAPTURE, rec, sample->ip);
        if ((sample->misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_USER)
            count = add_user_frame(s, p, sample->ip, count);
        return (int)(count > 0 ? add_marker(s, count) : 0);
    }
    if (count == RECORD_DEPTH_MAX) {
        recordint_fault(s, RECORD_FAULT_DEPTH_LIMIT, rec, sample->ip);
        return (int)add_marker(s, count);
    }
    w.space = (struct unwind_space){
        .find = find_range,
        .user = &w,
        .cache = s->cache,
        .generation = generation(&w),
        .read_code = read_code,
        .code_rules = s->code_rules,
        .code_round = (uint32_t)(rec->time_ns / CODE_ROUND_NS) + 1,
    };
    recordint_unwind(&w.space, &input, s->unwound, RECORD_DEPTH_MAX - count, &result);
    if (w.error < 0)
        return w.error;
    for (size_t i = 0; i < result.count; i++)
        count = add_user_frame(s, p, s->unwound[i].address, count);
    s->counts.guessed_stacks += result.guessed;
    if (result.end != UNWIND_COMPLETE) {
        recordint_fault(s, fault_of(result.end, sample), rec,
                        result.count > 0 ? s->unwound[result.count - 1].address : sample->ip);
        if (count > 0)
            count = add_marker(s, count);
    }
    return (int)count;
}

/* Whether the sample says whose it is and when; counts what is missing. */
static bool is_usable(struct record_session *s, const struct perfrec *rec)
{
    if (rec->pid <= 0)
        s->counts.missing_pid++;
    else if (rec->tid < 0)
        s->counts.missing_tid++;
    else if (rec->tid == 0)
        s->counts.idle_tid++;
    else if (!rec->has_time)
        s->counts.missing_timestamp++;
    else
        return true;
    return false;
}

/* Whether a sample of a process that is not known is of one whose fork was lost. Else it has ended: what is sampled
 * then is the kernel's own work, and nothing could be said of its addresses. */
static bool is_unknown_child(const struct record_session *s, const struct perfrec *rec)
{
    return s->threads_unsure && record_process_exists(rec->pid);
}

int recordint_sample(struct record_session *s, const struct perfrec *rec)
{
    struct process *p = recordint_process_find(s, rec->pid);
    struct thread *t;
    size_t kernel;
    int count, rc;

    /* Of all processes, and the idle ones of CPUs, only those recorded count; without a system-wide event all are. */
    if (p == NULL && s->counts.mode == RECORD_MODE_SYSTEM_WIDE)
        return 0;
    if (p != NULL && p->muted)
        return 0;
    s->counts.sample_events++;
    if (!is_usable(s, rec))
        return 0;
    if (p == NULL && !is_unknown_child(s, rec)) {
        s->counts.missing_pid++;
        return 0;
    }
    if (p == NULL) {
        p = recordint_process_new(s, rec->pid);
        if (p == NULL)
            return recordint_out_of_memory(s);
        p->mode = RECORD_MODE_INHERIT; /* or it would not be sampled */
        p->on = true;
        p->rescan_due = true;
        rc = recordint_recover(s);
        if (rc < 0)
            return rc;
    }
    t = recordint_thread_get(s, p, rec->tid);
    if (t == NULL)
        return recordint_out_of_memory(s);
    recordint_processes_sweep_files(s);
    kernel = kernel_frames(s, &rec->sample);
    count = user_frames(s, p, rec, kernel);
    if (count < 0)
        return count;
    if (count == 0) {
        if ((rec->sample.misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL &&
            !s->config.kernel)
            s->counts.excluded_kernel++;
        else
            s->counts.empty_stack++;
        return 0;
    }
    if (!t->noted && t->name[0] != '\0') {
        rc = recordint_note_thread(s, t);
        if (rc < 0)
            return rc;
    }
    rc = recordint_spool_result(s,
                                spool_writer_sample(s->writer, rec->time_ns, rec->pid,
                                                    (uint64_t)rec->tid, s->frames, (size_t)count));
    if (rc < 0)
        return rc;
    s->counts.samples++;
    s->counts.threads += !t->sampled;
    t->sampled = true;
    return 0;
}
