/* SPDX-License-Identifier: MIT */
/*
 * Demangling by libiberty. Names come from files nobody vouches for, so the calls are fenced in:
 * bounded input, bounded output, and a deep name never runs on the caller's stack.
 */
#include "demangle.h"

#include <libiberty/demangle.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define MAX_INPUT ((size_t)64 * 1024)
#define MAX_OUTPUT ((size_t)1024 * 1024)
/* What a name of so many bytes may come to: it can ask for an output that grows exponentially, and every name is kept. */
#define MAX_RATIO ((size_t)64)
#define SMALL_OUTPUT ((size_t)4 * 1024) /* that any name may have */

/* libiberty's parsers call themselves for every level of a name, up to one level per byte and
 * some 130 bytes of stack per level. The fence: short names run where we are, others on a stack
 * made for the worst case. */
#define MAX_DIRECT_LEVELS ((size_t)4 * 1024)
#define MAX_LEVELS ((size_t)64 * 1024)
#define D_LEVEL_ROOM 64 /* bytes of memory for what D's printer makes of one */
#define DEEP_STACK_SIZE ((size_t)64 * 1024 * 1024)

/* libiberty refuses names with more bytes than half of this unless the limit is lifted. */
#define MAX_PLAIN_INPUT (DEMANGLE_RECURSION_LIMIT / 2)

#define OPTIONS (DMGL_PARAMS | DMGL_ANSI)

struct job {
    const char *name; /* NUL-terminated */
    size_t size;
    bool brief;
    bool nomem;
    bool done; /* text holds the answer */
    bool rust;
    char *text;
    size_t text_size;
    size_t capacity;
    size_t limit;  /* of text_size */
    size_t levels; /* what a printer may come to */
    void *tree;    /* what libiberty wants freed */
    jmp_buf stop;
};

size_t symint_cut_version(const char *name, size_t size)
{
    const char *at = size > 1 ? memchr(name + 1, '@', size - 1) : NULL;
    return at != NULL ? (size_t)(at - name) : size;
}

/* The length of the clone suffix at p, 0 when there is none. */
static size_t clone_suffix(const char *p, size_t size)
{
    static const struct {
        const char *text;
        bool number; /* needed */
    } suffixes[] = {
        {".cold", false}, {".part", true},     {".constprop", true},
        {".isra", true},  {".lto_priv", true}, {".llvm", true},
    };
    for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
        size_t n = strlen(suffixes[i].text);
        if (size < n || memcmp(p, suffixes[i].text, n) != 0)
            continue;
        size_t d = n + 1;
        while (d < size && p[d] >= '0' && p[d] <= '9')
            d++;
        if (n < size && p[n] == '.' && d > n + 1)
            n = d;
        else if (suffixes[i].number)
            continue;
        if (n == size || p[n] == '.')
            return n;
    }
    return 0;
}

size_t symint_cut_clones(const char *name, size_t size)
{
    const char *end = name + size;
    const char *p = size > 1 ? memchr(name + 1, '.', size - 1) : NULL;
    /* The first dot from which clone suffixes reach to the end. */
    for (; p != NULL; p = memchr(p + 1, '.', (size_t)(end - p - 1))) {
        const char *q = p;
        size_t n;
        while (q < end && (n = clone_suffix(q, (size_t)(end - q))) > 0)
            q += n;
        if (q == end)
            return (size_t)(p - name);
        if (q > p)
            p = q - 1; /* nothing in between can reach the end either */
    }
    return size;
}

/* ---- collecting libiberty's output ---- */

/* Room for `size` more bytes and a NUL. False: out of memory. */
static bool make_room(struct job *job, size_t size)
{
    if (job->text_size + size + 1 <= job->capacity)
        return true;
    size_t capacity = (job->text_size + size + 1) * 2;
    char *grown = realloc(job->text, capacity);
    if (grown == NULL) {
        job->nomem = true;
        return false;
    }
    job->text = grown;
    job->capacity = capacity;
    return true;
}

static void put(struct job *job, const char *text, size_t size)
{
    memcpy(job->text + job->text_size, text, size);
    job->text_size += size;
}

/* Called out of libiberty, which offers no way to stop it: a name can stand for an output that
 * grows exponentially. Its printers hold nothing on the heap (but for a punycode buffer, lost in
 * that one case), so jumping out of them is safe. */
static void append(const char *text, size_t size, void *opaque)
{
    struct job *job = opaque;
    if (size == 0) /* text is NULL then, now and again */
        return;
    if (size > job->limit - job->text_size || !make_room(job, size))
        longjmp(job->stop, 1);
    put(job, text, size);
}

/* ---- short names ---- */

static bool is_method_qualifier(enum demangle_component_type type)
{
    switch (type) {
    case DEMANGLE_COMPONENT_RESTRICT_THIS:
    case DEMANGLE_COMPONENT_VOLATILE_THIS:
    case DEMANGLE_COMPONENT_CONST_THIS:
    case DEMANGLE_COMPONENT_REFERENCE_THIS:
    case DEMANGLE_COMPONENT_RVALUE_REFERENCE_THIS:
    case DEMANGLE_COMPONENT_TRANSACTION_SAFE:
    case DEMANGLE_COMPONENT_NOEXCEPT:
    case DEMANGLE_COMPONENT_THROW_SPEC:
        return true;
    default:
        return false;
    }
}

/* Takes parameters and template arguments out of a tree, which it changes: components may be
 * shared, and a change made twice is the same change. Depth is bounded: what lies deeper stays
 * as it is. */
static struct demangle_component *shorten(struct demangle_component *c, unsigned depth)
{
    while (c != NULL) {
        if (c->type == DEMANGLE_COMPONENT_TYPED_NAME || c->type == DEMANGLE_COMPONENT_TEMPLATE ||
            is_method_qualifier(c->type)) {
            c = c->u.s_binary.left;
            continue;
        }
        break;
    }
    if (c == NULL || depth == 0)
        return c;
    switch (c->type) {
    case DEMANGLE_COMPONENT_QUAL_NAME:
    case DEMANGLE_COMPONENT_LOCAL_NAME:
        c->u.s_binary.left = shorten(c->u.s_binary.left, depth - 1);
        c->u.s_binary.right = shorten(c->u.s_binary.right, depth - 1);
        break;
    case DEMANGLE_COMPONENT_TAGGED_NAME:
    case DEMANGLE_COMPONENT_CLONE:
    case DEMANGLE_COMPONENT_VTABLE:
    case DEMANGLE_COMPONENT_VTT:
    case DEMANGLE_COMPONENT_TYPEINFO:
    case DEMANGLE_COMPONENT_TYPEINFO_NAME:
    case DEMANGLE_COMPONENT_TYPEINFO_FN:
    case DEMANGLE_COMPONENT_THUNK:
    case DEMANGLE_COMPONENT_VIRTUAL_THUNK:
    case DEMANGLE_COMPONENT_COVARIANT_THUNK:
    case DEMANGLE_COMPONENT_GUARD:
    case DEMANGLE_COMPONENT_TLS_INIT:
    case DEMANGLE_COMPONENT_TLS_WRAPPER:
    case DEMANGLE_COMPONENT_REFTEMP:
    case DEMANGLE_COMPONENT_HIDDEN_ALIAS:
    case DEMANGLE_COMPONENT_TRANSACTION_CLONE:
    case DEMANGLE_COMPONENT_NONTRANSACTION_CLONE:
        c->u.s_binary.left = shorten(c->u.s_binary.left, depth - 1);
        break;
    default:
        break;
    }
    return c;
}

/* Moves past a balanced group that begins at p with `open`. */
static size_t skip_group(const char *text, size_t size, size_t p, char open, char close)
{
    size_t depth = 0;
    for (; p < size; p++) {
        if (text[p] == open) {
            depth++;
        } else if (text[p] == close && !(p > 0 && close == '>' && text[p - 1] == '-')) {
            if (--depth == 0)
                return p + 1;
        }
    }
    return size;
}

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           (unsigned char)c >= 0x80;
}

/* Takes generic arguments out of a Rust path: those of `a::b::<T>` and `Vec<T>`, not the
 * brackets of `<Type as Trait>::f`, which begin a path. */
static size_t shorten_rust(char *text, size_t size)
{
    size_t out = 0;
    for (size_t p = 0; p < size;) {
        if (text[p] == '<' && out > 0) {
            if (out >= 2 && text[out - 1] == ':' && text[out - 2] == ':') {
                out -= 2;
                p = skip_group(text, size, p, '<', '>');
                continue;
            }
            if (is_word(text[out - 1])) {
                p = skip_group(text, size, p, '<', '>');
                continue;
            }
        }
        text[out++] = text[p++];
    }
    return out;
}

/* Takes `!(arguments)`, `!argument` and parameters out of a D name. */
static size_t shorten_d(char *text, size_t size)
{
    size_t out = 0;
    for (size_t p = 0; p < size;) {
        if (text[p] == '!') {
            p++;
            if (p < size && text[p] == '(')
                continue;
            while (p < size && is_word(text[p]))
                p++;
        } else if (text[p] == '(') {
            p = skip_group(text, size, p, '(', ')');
        } else {
            text[out++] = text[p++];
        }
    }
    while (out > 0 && text[out - 1] == ' ')
        out--;
    return out;
}

/* ---- the calls ---- */

static size_t output_limit(size_t size)
{
    size_t limit = SMALL_OUTPUT + size * MAX_RATIO; /* size is at most MAX_INPUT */
    return limit < MAX_OUTPUT ? limit : MAX_OUTPUT;
}

/* What an output of libiberty's D printer can come to: each back reference to a type repeats at
 * most all that lies between its target and itself. The printer has no limit of its own and ends
 * the process when memory runs out, so a name that may explode is left as it is. */
static size_t d_levels(const char *name, size_t size)
{
    size_t *grown = malloc((size + 1) * sizeof(*grown));
    if (grown == NULL)
        return 0;
    grown[0] = 0;
    size_t total = 0;
    for (size_t i = 0; i < size; i++) {
        total++;
        if (name[i] == 'Q') {
            size_t back = 0;
            size_t k = i + 1;
            while (k < size && name[k] >= 'A' && name[k] <= 'Z' && back <= size)
                back = back * 26 + (size_t)(name[k++] - 'A');
            if (k < size && name[k] >= 'a' && name[k] <= 'z') {
                back = back * 26 + (size_t)(name[k] - 'a');
                bool type =
                    back > 0 && back <= i && !(name[i - back] >= '0' && name[i - back] <= '9');
                total += type ? grown[i] - grown[i - back] + size : 0;
            }
        }
        if (total > MAX_LEVELS) {
            total = SIZE_MAX;
            break;
        }
        grown[i + 1] = total;
    }
    free(grown);
    return total;
}

/* The printer ends the process when memory runs out. That there was enough a moment before is not all, but what can
 * be done: what it writes is at most a word for each level, and doubles its room as it grows. */
static bool d_has_room(const struct job *job)
{
    void *volatile room =
        malloc(job->levels * D_LEVEL_ROOM); /* volatile: or compilers leave both calls out */
    bool enough = room != NULL;
    free(room);
    return enough;
}

static void run_d(struct job *job)
{
    if (!d_has_room(job)) {
        job->nomem = true;
        return;
    }
    char *text = dlang_demangle(job->name, OPTIONS);
    if (text == NULL)
        return;
    size_t size = strlen(text);
    if (job->brief)
        size = shorten_d(text, size);
    free(job->text);
    job->text = text;
    job->text_size = size;
    job->capacity = size + 1;
    job->done = size > 0 && size <= job->limit;
}

/* C++ of any length, and short C++ names of every length. The tree is on the heap, unlike that of
 * cplus_demangle_v3_callback, whose stack use is why libiberty limits its input. */
static void run_tree(struct job *job)
{
    struct demangle_component *tree = cplus_demangle_v3_components(job->name, OPTIONS, &job->tree);
    if (tree == NULL)
        return;
    if (job->brief) {
        struct demangle_component *brief = shorten(tree, 256);
        if (brief != NULL)
            tree = brief;
    }
    job->done = cplus_demangle_print_callback(OPTIONS, tree, append, job) != 0;
}

/* libiberty reads a C++ name to its end before it knows that it is not Rust's. Those of the older
 * Rust mangling end in a hash of 17 characters that begins with h; the newer ones begin with _R. */
static bool may_be_rust(const char *name, size_t size)
{
    return name[1] == 'R' || memmem(name, size, "17h", 3) != NULL;
}

/* The order of cplus_demangle in its automatic style, with output that can be stopped. */
static void run_auto(struct job *job)
{
    if (may_be_rust(job->name, job->size) &&
        rust_demangle_callback(job->name, OPTIONS, append, job)) {
        job->rust = true;
        job->done = true;
        return;
    }
    job->text_size = 0;
    if (!job->brief && job->size <= MAX_PLAIN_INPUT) {
        job->done = cplus_demangle_v3_callback(job->name, OPTIONS, append, job) != 0;
        return;
    }
    run_tree(job);
    if (!job->done && job->brief && job->size <= MAX_PLAIN_INPUT) {
        /* A tree that lost its template arguments may be unprintable: `operator T`. */
        job->text_size = 0;
        job->done = cplus_demangle_v3_callback(job->name, OPTIONS, append, job) != 0;
    }
}

static void run(struct job *job)
{
    if (setjmp(job->stop) == 0) {
        if (job->name[1] == 'D')
            run_d(job);
        else
            run_auto(job);
    } else {
        job->done = false;
    }
    free(job->tree);
    job->tree = NULL;
    if (job->done && job->rust && job->brief)
        job->text_size = shorten_rust(job->text, job->text_size);
}

static void *run_thread(void *job)
{
    run(job);
    return NULL;
}

/* Runs a job on a stack large enough for the deepest name. No thread, no demangled name. */
static void run_deep(struct job *job)
{
    pthread_t thread;
    pthread_attr_t attributes;
    sigset_t all;
    sigset_t before;
    if (pthread_attr_init(&attributes) != 0)
        return;
    /* The thread must not take a signal that is meant for the caller's threads. */
    sigfillset(&all);
    if (pthread_attr_setstacksize(&attributes, DEEP_STACK_SIZE) == 0 &&
        pthread_sigmask(SIG_SETMASK, &all, &before) == 0) {
        int rc = pthread_create(&thread, &attributes, run_thread, job);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        if (rc == 0)
            pthread_join(thread, NULL);
    }
    pthread_attr_destroy(&attributes);
}

static bool looks_mangled(const char *name, size_t size)
{
    return size > 2 && name[0] == '_' &&
           (name[1] == 'Z' || name[1] == 'R' || name[1] == 'D' ||
            (size > 11 && memcmp(name, "_GLOBAL_", 8) == 0));
}

/* ` [clone .cold]` for every suffix in [p, end). False: out of memory. */
static bool append_clones(struct job *job, const char *p, const char *end)
{
    /* A suffix has at least five bytes, its brackets add nine. */
    if (!make_room(job, (size_t)(end - p) * 3))
        return false;
    while (p < end) {
        size_t n = clone_suffix(p, (size_t)(end - p));
        put(job, " [clone ", 8);
        put(job, p, n);
        put(job, "]", 1);
        p += n;
    }
    return true;
}

/* A buffer for texts that grows; data is NULL at first. */
struct buffer {
    char *data;
    size_t capacity;
};

/* The display name of a name that has a NUL behind it if `terminated`, into the buffer, with a NUL
 * behind it too. 1 with *out_size set; 0: it does not differ from the name; SYM_ERR_NOMEM. */
static int demangle(const char *name, size_t size, bool terminated, enum sym_demangle mode,
                    struct buffer *buffer, size_t *out_size)
{
    if (mode == SYM_DEMANGLE_NONE || size > MAX_INPUT)
        return 0;
    size_t stem = symint_cut_clones(name, size);
    bool mangled = looks_mangled(name, stem);
    if (!mangled && stem == size)
        return 0;

    char *copy = NULL;
    struct job job = {.name = name,
                      .size = stem,
                      .brief = mode == SYM_DEMANGLE_SHORT,
                      .text = buffer->data,
                      .capacity = buffer->capacity,
                      .limit = output_limit(stem)};
    if (mangled && !(terminated && stem == size)) {
        copy = malloc(stem + 1);
        if (copy == NULL)
            return SYM_ERR_NOMEM;
        memcpy(copy, name, stem);
        copy[stem] = '\0';
        job.name = copy;
    }
    if (mangled) {
        size_t levels = name[1] == 'D' ? d_levels(job.name, stem) : stem;
        job.levels = levels;
        if (levels == 0)
            job.nomem = true;
        else if (levels <= MAX_DIRECT_LEVELS)
            run(&job);
        else if (levels <= MAX_LEVELS)
            run_deep(&job);
    }
    free(copy);
    int rc = job.done || stem < size;
    if (!job.nomem && !job.done) {
        job.text_size = 0;
        if (rc != 0 && make_room(&job, stem))
            put(&job, name, stem);
    }
    if (!job.nomem && stem < size)
        (void)append_clones(&job, name + stem, name + size);
    if (!job.nomem && rc != 0 && make_room(&job, 0))
        job.text[job.text_size] = '\0';
    buffer->data = job.text;
    buffer->capacity = job.capacity;
    *out_size = job.text_size;
    return job.nomem ? SYM_ERR_NOMEM : rc;
}

char *symint_demangle(const char *name, size_t size, enum sym_demangle mode, bool *changed)
{
    struct buffer buffer = {0};
    size_t ignored;
    int rc = demangle(name, size, false, mode, &buffer, &ignored);
    *changed = rc != 0;
    if (rc == 1)
        return buffer.data;
    free(buffer.data);
    return NULL;
}

const char *symint_display(struct symint_strings *s, struct symint_text *t, enum sym_demangle mode)
{
    if (t->display != NULL)
        return t->display;
    struct buffer buffer = {.data = s->scratch, .capacity = s->scratch_capacity};
    size_t size;
    int rc = demangle(t->text, t->size, true, mode, &buffer, &size);
    s->scratch = buffer.data;
    s->scratch_capacity = buffer.capacity;
    if (rc < 0)
        return NULL;
    if (rc == 0 || (size == t->size && memcmp(s->scratch, t->text, size) == 0))
        t->display = t->text;
    else /* not interned: different names seldom have the same display name */
        t->display = symint_arena_copy(&s->arena, s->scratch, size);
    return t->display;
}

char *sym_demangle_name(const char *raw_name, enum sym_demangle mode)
{
    if (raw_name == NULL)
        raw_name = "";
    size_t size = symint_cut_version(raw_name, strlen(raw_name));
    bool changed;
    char *text = symint_demangle(raw_name, size, mode, &changed);
    if (text != NULL || changed)
        return text;
    text = malloc(size + 1);
    if (text != NULL) {
        memcpy(text, raw_name, size);
        text[size] = '\0';
    }
    return text;
}

/* ---- names that are not mangled ---- */

/* Whether a `<` at `at` belongs to an operator's name, or begins a name (`<lambda(int)>`). */
static bool is_name_bracket(const char *name, size_t at)
{
    static const char word[] = "operator";
    size_t size = sizeof(word) - 1;
    if (at == 0 || name[at - 1] == ':' || name[at - 1] == ' ')
        return true;
    while (at > 0 && name[at - 1] == '<')
        at--;
    return at >= size && memcmp(name + at - size, word, size) == 0;
}

size_t symint_shorten(const char *name, size_t size, char *out)
{
    size_t n = 0;
    size_t depth = 0;
    for (size_t i = 0; i < size; i++) {
        if (name[i] == '<' && (depth > 0 || !is_name_bracket(name, i)))
            depth++;
        else if (depth == 0)
            out[n++] = name[i];
        else if (name[i] == '>' && name[i - 1] != '-')
            depth--;
    }
    if (depth == 0 && n > 0)
        return n;
    memcpy(out, name, size);
    return size;
}
