/* SPDX-License-Identifier: MIT */
/* A consumer of component record: works where nothing may be recorded too. Also compiled as C++. */
#include <spool/record.h>
#include <stdio.h>

static int count_bytes(void *user, const void *data, size_t size)
{
    (void)data;
    *(size_t *)user += size;
    return 0;
}

int main(void)
{
    struct record_session *s = record_session_new();
    struct record_options options;
    uint32_t hz = 0;
    size_t bytes = 0;
    int rc = 1;

    if (!s)
        return 1;
    record_options_init(&options, sizeof options);
    options.frequency_hz = 1;
    options.has_start = true;
    options.start_us = 123;
    options.has_interval = true;
    options.interval_us = 10;
    if (!record_max_sample_rate(&hz))
        hz = 0;
    if (record_session_open_callback(s, count_bytes, &bytes, &options) < 0 ||
        record_session_poll(s, 0) < 0) {
        fprintf(stderr, "%s\n", record_session_error(s));
    } else {
        printf("librecord %s: %u bytes, at most %lu Hz\n", record_version(), (unsigned)bytes,
               (unsigned long)hz);
        rc = 0;
    }
    record_session_free(s);
    return rc;
}
