/* SPDX-License-Identifier: MIT */
/* Parse, open, convert, commit. */
#include "converter.h"

#include "symbols.h"

int converter_main(const struct cli_tool *tool, int argc, char **argv, void *own, bool binary,
                   converter_fn *convert)
{
    struct tool_options options;
    struct tool_output out;
    int rc;

    cli_parse(tool, argc, argv, &options, own);
    rc = symbols_check_folders(&options.symbols);
    if (rc == 0)
        rc = output_open(&out, options.output, binary);
    if (rc == 0) {
        rc = convert(&options, own, &out);
        if (rc == 0)
            rc = output_commit(&out);
        else
            output_abort(&out);
    }
    cli_free(&options);
    return rc == 0 ? EXIT_OK : EXIT_FAILED;
}
