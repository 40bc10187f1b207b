/* SPDX-License-Identifier: MIT */
/* A consumer of component spool: reads the smallest spool there is. Also compiled as C++. */
#include <spool/spool.h>
#include <stdio.h>

static const unsigned char empty[] = {'S', 'P', 'U', 'L', 'S', 'E', '3', 0, 0x7b, 0x0a};

int main(void)
{
    struct spool_reader *r = spool_reader_new();
    struct spool_record rec;
    const struct spool_header *header;
    int rc = 1;

    if (!r)
        return 1;
    if (spool_reader_open_memory(r, empty, sizeof empty) < 0 || spool_reader_next(r, &rec) != 0) {
        fprintf(stderr, "%s\n", spool_reader_error(r));
    } else {
        header = spool_reader_header(r);
        printf("libspool %s: version %u, start %llu us\n", spool_version(),
               (unsigned)header->version, (unsigned long long)header->start_us);
        rc = 0;
    }
    spool_reader_free(r);
    return rc;
}
