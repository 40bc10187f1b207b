/* SPDX-License-Identifier: MIT */
/* cost COMMAND...: runs it, and says on descriptor 3 how many ms of the processor and KiB of memory it took at most.
 * Ends with its exit status. */
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static long ms(struct timeval t)
{
    return t.tv_sec * 1000 + t.tv_usec / 1000;
}

int main(int argc, char **argv)
{
    struct rusage usage;
    int status;
    pid_t pid = fork();

    if (argc < 2 || pid < 0)
        return 125;
    if (pid == 0) {
        execvp(argv[1], argv + 1);
        _exit(127);
    }
    if (wait4(pid, &status, 0, &usage) != pid)
        return 125;
    dprintf(3, "%ld %ld\n", ms(usage.ru_utime) + ms(usage.ru_stime), usage.ru_maxrss);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 124;
}
