/* SPDX-License-Identifier: MIT */
/* Names of Python runtimes, of their evaluation loop and of their perf map entries. */
#include "python.h"
#include "spool/sym.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void names_of_python_runtimes_are_known(void **state)
{
    (void)state;
    static const char *const yes[] = {"python",
                                      "python3",
                                      "python2.7",
                                      "python3.11",
                                      "python3.13t",
                                      "python3.13d",
                                      "python3.13td",
                                      "libpython3.so",
                                      "libpython3.11.so",
                                      "libpython2.7.so.1.0",
                                      "libpython3.13t.so.1.0",
                                      "libpython3.13d.so.1.0"};
    for (size_t i = 0; i < sizeof(yes) / sizeof(yes[0]); i++)
        if (!sym_is_python_runtime(yes[i]))
            fail_msg("%s", yes[i]);
}

static void other_names_are_not_python_runtimes(void **state)
{
    (void)state;
    static const char *const no[] = {"",
                                     "pythonx",
                                     "python3.",
                                     "python3.x",
                                     "python-config",
                                     "python3.11-config",
                                     "libpython.so",
                                     "libpython3.11.a",
                                     "libpython3",
                                     "ipython3",
                                     "bpython",
                                     "python3.13dt",
                                     "libpythonx.so",
                                     "Python"};
    for (size_t i = 0; i < sizeof(no) / sizeof(no[0]); i++)
        if (sym_is_python_runtime(no[i]))
            fail_msg("%s", no[i]);
    assert_false(sym_is_python_runtime(NULL));
}

static void the_evaluation_loop_has_several_names(void **state)
{
    (void)state;
    assert_true(symint_is_python_eval("_PyEval_EvalFrameDefault"));
    assert_true(symint_is_python_eval("_PyEval_EvalFrameDefault.cold"));
    assert_true(symint_is_python_eval("_PyEval_EvalFrameDefault.constprop.0"));
    assert_true(symint_is_python_eval("PyEval_EvalFrameEx"));
    assert_true(symint_is_python_eval("_TAIL_CALL_LOAD_FAST"));
    assert_false(symint_is_python_eval("PyEval_EvalCode"));
    assert_false(symint_is_python_eval("_PyEval_EvalFrame"));
    assert_false(symint_is_python_eval("_PyEval_EvalFrameDefaultX"));
    assert_false(symint_is_python_eval(""));
}

static void check_split(const char *entry, const char *name, const char *file)
{
    const char *n;
    const char *f;
    size_t n_size;
    size_t f_size;
    assert_true(symint_split_python(entry, strlen(entry), &n, &n_size, &f, &f_size));
    assert_int_equal(n_size, strlen(name));
    assert_memory_equal(n, name, n_size);
    assert_int_equal(f_size, strlen(file));
    if (f_size > 0)
        assert_memory_equal(f, file, f_size);
}

static void entries_of_python_are_split_at_the_first_colon(void **state)
{
    (void)state;
    check_split("py::main:/home/u/a.py", "main", "/home/u/a.py");
    check_split("py::<module>:/a b/c:d.py", "<module>", "/a b/c:d.py");
    check_split("py::A.B.<locals>.f:<frozen importlib._bootstrap>", "A.B.<locals>.f",
                "<frozen importlib._bootstrap>");
    check_split("py::alone", "alone", "");
    check_split("py::empty:", "empty", "");
}

static void other_entries_are_not_split(void **state)
{
    (void)state;
    static const char *const no[] = {
        "", "py:", "py::", "py:::x", "python::f:x", "LazyCompile:~f a.js:1"};
    const char *n;
    const char *f;
    size_t n_size;
    size_t f_size;
    for (size_t i = 0; i < sizeof(no) / sizeof(no[0]); i++)
        if (symint_split_python(no[i], strlen(no[i]), &n, &n_size, &f, &f_size))
            fail_msg("%s", no[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_of_python_runtimes_are_known),
        cmocka_unit_test(other_names_are_not_python_runtimes),
        cmocka_unit_test(the_evaluation_loop_has_several_names),
        cmocka_unit_test(entries_of_python_are_split_at_the_first_colon),
        cmocka_unit_test(other_entries_are_not_split),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
