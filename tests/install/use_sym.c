/* SPDX-License-Identifier: MIT */
/* A consumer of component sym. Also compiled as C++. */
#include <spool/sym.h>
#include <stdio.h>
#include <stdlib.h>

int main(void)
{
    struct sym_context *c = sym_context_new();
    char *name = NULL;
    int rc = 1;

    if (!c)
        return 1;
    if (sym_context_open(c, NULL) < 0) {
        fprintf(stderr, "%s\n", sym_context_error(c));
    } else {
        name = sym_demangle_name("_ZN5spool4readEi", SYM_DEMANGLE_FULL);
        if (name) {
            printf("%s\n", name);
            rc = 0;
        }
    }
    free(name);
    sym_context_free(c);
    return rc;
}
