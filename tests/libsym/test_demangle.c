/* SPDX-License-Identifier: MIT */
/* Display names: C++, Rust, D, clone suffixes, short forms, and names that are out to do harm. */
#include "demangle.h"
#include "spool/sym.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void check(const char *raw, enum sym_demangle mode, const char *expected)
{
    char *text = sym_demangle_name(raw, mode);
    assert_non_null(text);
    if (strcmp(text, expected) != 0)
        fail_msg("%s: got \"%s\", expected \"%s\"", raw, text, expected);
    free(text);
}

static void plain_names_stay_as_they_are(void **state)
{
    (void)state;
    static const char *const names[] = {"",          "_",      "_Z",      "main",      "_D",
                                        "_Dfoo",     "_R",     "_Rx",     "_Z1",       "a.b",
                                        ".cold",     "x.part", "x.cold.", "x.coldest", "_start",
                                        "_GLOBAL_x", "$x"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        for (int mode = SYM_DEMANGLE_FULL; mode <= SYM_DEMANGLE_NONE; mode++)
            check(names[i], (enum sym_demangle)mode, names[i]);
}

static void cpp_names_are_demangled(void **state)
{
    (void)state;
    check("_ZN3foo3barEi", SYM_DEMANGLE_FULL, "foo::bar(int)");
    check("_ZNK3foo3barEv", SYM_DEMANGLE_FULL, "foo::bar() const");
    check("_ZSt4sortIPiEvT_S1_", SYM_DEMANGLE_FULL, "void std::sort<int*>(int*, int*)");
    check("_GLOBAL__sub_I_main", SYM_DEMANGLE_FULL, "_GLOBAL__sub_I_main");
    check("_ZTV3foo", SYM_DEMANGLE_FULL, "vtable for foo");
}

static void short_names_have_no_parameters_and_no_template_arguments(void **state)
{
    (void)state;
    check("_ZN3foo3barEi", SYM_DEMANGLE_SHORT, "foo::bar");
    check("_ZNK3foo3barEv", SYM_DEMANGLE_SHORT, "foo::bar");
    check("_ZSt4sortIPiEvT_S1_", SYM_DEMANGLE_SHORT, "std::sort");
    check("_ZN5space3BoxIiE1fEi", SYM_DEMANGLE_SHORT, "space::Box::f");
    check("_ZN5space3BoxIiEC2Ei", SYM_DEMANGLE_SHORT, "space::Box::Box");
    check("_ZNSt6vectorIiSaIiEE9push_backERKi", SYM_DEMANGLE_SHORT, "std::vector::push_back");
    check("_ZZ4mainENKUliE_clEi", SYM_DEMANGLE_SHORT, "main::{lambda(int)#1}::operator()");
    check("_Z3fooi.cold", SYM_DEMANGLE_SHORT, "foo [clone .cold]");
}

static void rust_names_are_demangled_without_their_hash(void **state)
{
    (void)state;
    check("_ZN4core3fmt9Formatter3pad17h0123456789abcdefE", SYM_DEMANGLE_FULL,
          "core::fmt::Formatter::pad");
    check("_RNvC6_123foo3bar", SYM_DEMANGLE_FULL, "123foo::bar");
    check("_RNvNtC4core3fmt3pad", SYM_DEMANGLE_FULL, "core::fmt::pad");
    check("_ZN4core3fmt9Formatter3pad17h0123456789abcdefE.llvm.123", SYM_DEMANGLE_FULL,
          "core::fmt::Formatter::pad [clone .llvm.123]");
    check("_ZN66_$LT$alloc..vec..Vec$LT$T$GT$$u20$as$u20$core..ops..drop..Drop$GT$"
          "4drop17h0123456789abcdefE",
          SYM_DEMANGLE_SHORT, "<alloc::vec::Vec as core::ops::drop::Drop>::drop");
}

static void d_names_are_demangled(void **state)
{
    (void)state;
    check("_D3std5stdio7writelnFZv", SYM_DEMANGLE_FULL, "std.stdio.writeln()");
    check("_Dmain", SYM_DEMANGLE_FULL, "D main");
    check("_D3std5stdio7writelnFiZv", SYM_DEMANGLE_SHORT, "std.stdio.writeln");
}

static void clone_suffixes_become_tags(void **state)
{
    (void)state;
    check("_Z3foov.cold", SYM_DEMANGLE_FULL, "foo() [clone .cold]");
    check("_Z3foov.part.0.cold", SYM_DEMANGLE_FULL, "foo() [clone .part.0] [clone .cold]");
    check("foo.cold", SYM_DEMANGLE_FULL, "foo [clone .cold]");
    check("foo.cold.12", SYM_DEMANGLE_FULL, "foo [clone .cold.12]");
    check("foo.constprop.0.isra.0", SYM_DEMANGLE_FULL, "foo [clone .constprop.0] [clone .isra.0]");
    check("foo.lto_priv.7", SYM_DEMANGLE_FULL, "foo [clone .lto_priv.7]");
    check("foo.llvm.1234567890", SYM_DEMANGLE_FULL, "foo [clone .llvm.1234567890]");
    check("foo.bar.cold", SYM_DEMANGLE_FULL, "foo.bar [clone .cold]");
    check("foo.cold", SYM_DEMANGLE_NONE, "foo.cold");
    check("foo.cold.bar", SYM_DEMANGLE_FULL, "foo.cold.bar");
}

static void versions_are_cut(void **state)
{
    (void)state;
    check("write@@GLIBC_2.2.5", SYM_DEMANGLE_FULL, "write");
    check("_ZN3foo3barEi@V1", SYM_DEMANGLE_FULL, "foo::bar(int)");
    check("write@V", SYM_DEMANGLE_NONE, "write");
    check("@x", SYM_DEMANGLE_NONE, "@x");
}

static char *repeated(const char *prefix, const char *piece, size_t count, const char *suffix)
{
    size_t n = strlen(piece);
    char *text = malloc(strlen(prefix) + n * count + strlen(suffix) + 1);
    assert_non_null(text);
    char *p = stpcpy(text, prefix);
    for (size_t i = 0; i < count; i++)
        p = stpcpy(p, piece);
    strcpy(p, suffix);
    return text;
}

static void a_name_of_sixty_kilobytes_is_demangled(void **state)
{
    (void)state;
    char *name = repeated("_ZN60000", "a", 60000, "1bEv");
    char *text = sym_demangle_name(name, SYM_DEMANGLE_FULL);
    assert_non_null(text);
    assert_int_equal(strlen(text), 60000 + strlen("::b()"));
    free(text);
    free(name);
    name = repeated("_ZN70000", "a", 70000, "1bEv");
    check(name, SYM_DEMANGLE_FULL, name);
    free(name);
}

static void deep_names_do_not_exhaust_the_stack(void **state)
{
    (void)state;
    static const char *const pieces[] = {"P",    "FvP", "K",  "S0_I", "Xsz",
                                         "N1aI", "A1_", "Dp", "U1a"};
    for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
        char *name = repeated("_Z1f", pieces[i], 60000 / strlen(pieces[i]), "i");
        free(sym_demangle_name(name, SYM_DEMANGLE_FULL));
        free(sym_demangle_name(name, SYM_DEMANGLE_SHORT));
        free(name);
    }
    static const char *const d_pieces[] = {"P", "A", "H", "DFP", "S1f", "x"};
    for (size_t i = 0; i < sizeof(d_pieces) / sizeof(d_pieces[0]); i++) {
        /* Shorter: libiberty copies what it has at every level, which takes minutes under a
         * sanitizer. */
        char *name = repeated("_D1fF", d_pieces[i], 9000 / strlen(d_pieces[i]), "iZv");
        free(sym_demangle_name(name, SYM_DEMANGLE_FULL));
        free(name);
    }
    char *name = repeated("_RI", "RNvC1a1b", 7000, "E");
    free(sym_demangle_name(name, SYM_DEMANGLE_FULL));
    free(name);
}

static void names_that_would_explode_are_left_alone(void **state)
{
    (void)state;
    /* Each pair doubles the one before: 2^40 ints. */
    char name[2000] = "_Z1fSt4pairIiiE";
    for (int i = 0; i < 40; i++) {
        char piece[64];
        if (i < 1)
            strcpy(piece, "S_IS0_S0_E");
        else if (i < 36)
            snprintf(piece, sizeof(piece), "S_IS%c_S%c_E",
                     "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[i],
                     "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[i]);
        else
            snprintf(piece, sizeof(piece), "S_IS1%c_S1%c_E", "0123456789"[i - 36],
                     "0123456789"[i - 36]);
        strcat(name, piece);
    }
    char *text = sym_demangle_name(name, SYM_DEMANGLE_FULL);
    assert_non_null(text);
    assert_true(strlen(text) <= 1024 * 1024);
    free(text);

    /* D: a table of tables, each key and value the one before. */
    char d[4000] = "_D1fFHii";
    size_t before = 6; /* where the last type begins */
    for (int i = 0; i < 40; i++) {
        size_t here = strlen(d);
        size_t first = here + 1 - before;
        size_t second = first + (first >= 26 ? 3 : 2);
        char piece[64] = "H";
        for (int k = 0; k < 2; k++) {
            size_t back = k == 0 ? first : second;
            size_t n = strlen(piece);
            piece[n++] = 'Q';
            if (back >= 26)
                piece[n++] = (char)('A' + back / 26);
            piece[n++] = (char)('a' + back % 26);
            piece[n] = '\0';
        }
        strcat(d, piece);
        before = here;
    }
    strcat(d, "Zv");
    text = sym_demangle_name(d, SYM_DEMANGLE_FULL);
    assert_non_null(text);
    assert_true(strlen(text) <= 1024 * 1024);
    free(text);
}

static void every_distinct_name_is_demangled_once(void **state)
{
    (void)state;
    struct symint_strings s = {0};
    struct symint_text *t = symint_intern_name(&s, "_ZN3foo3barEi", 13);
    assert_non_null(t);
    assert_null(t->display);
    const char *display = symint_display(&s, t, SYM_DEMANGLE_FULL);
    assert_string_equal(display, "foo::bar(int)");
    assert_ptr_equal(symint_intern_name(&s, "_ZN3foo3barEi", 13), t);
    assert_ptr_equal(symint_display(&s, t, SYM_DEMANGLE_FULL), display);
    t = symint_intern_name(&s, "main", 4);
    assert_ptr_equal(symint_display(&s, t, SYM_DEMANGLE_FULL), t->text);
    t = symint_intern_name(&s, "a\0b", 3);
    assert_string_equal(t->text, "a b");
    symint_strings_free(&s);
}

static void short_names_of_debug_information_have_no_template_arguments(void **state)
{
    static const char *const names[][2] = {
        {"vector<int, std::allocator<int> >::push_back", "vector::push_back"},
        {"f<(E)1>", "f"},
        {"A<B<C>, D>::operator<<", "A::operator<<"},
        {"operator-><int>", "operator->"},
        {"std::operator-<A*, B<C> >", "std::operator-"},
        {"X::<lambda(int)>::operator()", "X::<lambda(int)>::operator()"},
        {"each<decltype (a->b)>", "each"},
        {"broken<int", "broken<int"},
        {"plain", "plain"},
    };
    char out[128];

    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        size_t size = symint_shorten(names[i][0], strlen(names[i][0]), out);
        out[size] = '\0';
        assert_string_equal(out, names[i][1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(short_names_of_debug_information_have_no_template_arguments),
        cmocka_unit_test(plain_names_stay_as_they_are),
        cmocka_unit_test(cpp_names_are_demangled),
        cmocka_unit_test(short_names_have_no_parameters_and_no_template_arguments),
        cmocka_unit_test(rust_names_are_demangled_without_their_hash),
        cmocka_unit_test(d_names_are_demangled),
        cmocka_unit_test(clone_suffixes_become_tags),
        cmocka_unit_test(versions_are_cut),
        cmocka_unit_test(a_name_of_sixty_kilobytes_is_demangled),
        cmocka_unit_test(deep_names_do_not_exhaust_the_stack),
        cmocka_unit_test(names_that_would_explode_are_left_alone),
        cmocka_unit_test(every_distinct_name_is_demangled_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
