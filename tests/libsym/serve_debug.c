/* SPDX-License-Identifier: MIT */
/*
 * serve_debug MODE FOLDER LOG: an HTTP server on a port of its own on 127.0.0.1, which it prints; for
 * tests/libsym/debuginfod.sh. Each request becomes a line of LOG. It ends after two minutes.
 *   files    /buildid/HEX/debuginfo is FOLDER/HEX, else there is nothing
 *   silent   takes connections and requests, and says nothing
 *   drip     sends a file a byte a tenth of a second
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static void send_all(int to, const char *bytes, size_t size)
{
    while (size > 0) {
        ssize_t n = send(to, bytes, size, MSG_NOSIGNAL);
        if (n <= 0)
            return;
        bytes += n;
        size -= (size_t)n;
    }
}

static void send_file(int to, const char *folder, const char *id, int slow)
{
    char path[4096];
    char piece[4096];
    struct stat st;
    snprintf(path, sizeof(path), "%s/%s", folder, id);
    int fd = open(path, O_RDONLY);
    if (fd < 0 || fstat(fd, &st) != 0) {
        const char *text =
            "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
        send_all(to, text, strlen(text));
        return;
    }
    int n = snprintf(piece, sizeof(piece),
                     "HTTP/1.1 200 OK\r\nContent-Length: %lld\r\nConnection: close\r\n\r\n",
                     (long long)st.st_size);
    send_all(to, piece, (size_t)n);
    for (ssize_t got; (got = read(fd, piece, slow ? 1 : sizeof(piece))) > 0;) {
        send_all(to, piece, (size_t)got);
        if (slow)
            usleep(100000);
    }
    close(fd);
}

static void answer(int connection, const char *mode, const char *folder, FILE *log)
{
    char request[8192];
    size_t size = 0;
    while (size + 1 < sizeof(request)) {
        ssize_t n = recv(connection, request + size, sizeof(request) - 1 - size, 0);
        if (n <= 0)
            return;
        size += (size_t)n;
        request[size] = '\0';
        if (strstr(request, "\r\n\r\n") != NULL)
            break;
    }
    fprintf(log, "%.*s\n", (int)strcspn(request, "\r"), request);
    fflush(log);
    char id[256] = "";
    sscanf(request, "GET /buildid/%255[0-9a-f]/debuginfo ", id);
    if (strcmp(mode, "silent") == 0)
        pause();
    else
        send_file(connection, folder, id[0] != '\0' ? id : "none", strcmp(mode, "drip") == 0);
}

int main(int argc, char **argv)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof(address);
    if (argc != 4)
        return 2;
    FILE *log = fopen(argv[3], "a");
    int listening = socket(AF_INET, SOCK_STREAM, 0);
    if (log == NULL || listening < 0 ||
        bind(listening, (struct sockaddr *)&address, sizeof(address)) != 0 ||
        listen(listening, 16) != 0 ||
        getsockname(listening, (struct sockaddr *)&address, &size) != 0)
        return 1;
    printf("%d\n", ntohs(address.sin_port));
    fclose(stdout);
    alarm(120);
    for (;;) {
        int connection = accept(listening, NULL, NULL);
        if (connection < 0)
            return 1;
        pid_t child = fork();
        if (child == 0) {
            alarm(30);
            answer(connection, argv[1], argv[2], log);
            _exit(0);
        }
        close(connection);
    }
}
