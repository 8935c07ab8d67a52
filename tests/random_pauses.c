/* Adds random pauses to the system calls by which processes interact, so that tests see orders of events that are rare
 * on a quiet machine. `make test-random PAUSES=1` preloads it (LD_PRELOAD) into pytest and the programs it starts,
 * except those that get an environment of their own, as the scan of the guard and the gateway.
 *
 * One call in ten waits for up to 15 ms before or after the real one; one pause in a hundred takes up to 450 ms. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h> /* rename */
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static __thread uint64_t state;

/* xorshift64; a thread's seed is its id and the time of its first call. */
static uint64_t number(void) {
    if (!state) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        state = (((uint64_t)syscall(SYS_gettid) << 32) ^ ((uint64_t)now.tv_nsec * 2654435761u)) | 1; /* never 0 */
    }
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static void pause_at_random(void) {
    int kept = errno;
    uint64_t chance = number();
    if (chance % 20 == 0) {
        long microseconds = (long)((chance >> 20) % 15000);
        if ((chance >> 50) % 100 == 0) microseconds *= 30;
        struct timespec length = {microseconds / 1000000, microseconds % 1000000 * 1000};
        syscall(SYS_nanosleep, &length, 0); /* a signal ends it, as it would end a call that waits */
    }
    errno = kept;
}

#define SLOW(result, name, parameters, arguments)           \
    result name parameters {                                \
        static result(*real) parameters;                    \
        if (!real) real = dlsym(RTLD_NEXT, #name);          \
        pause_at_random();                                  \
        result returned = real arguments;                   \
        pause_at_random();                                  \
        return returned;                                    \
    }

SLOW(int, accept, (int fd, struct sockaddr *address, socklen_t *size), (fd, address, size))
SLOW(int, accept4, (int fd, struct sockaddr *address, socklen_t *size, int flags), (fd, address, size, flags))
SLOW(int, close, (int fd), (fd))
SLOW(int, connect, (int fd, const struct sockaddr *address, socklen_t size), (fd, address, size))
SLOW(int, epoll_wait, (int fd, struct epoll_event *events, int most, int timeout), (fd, events, most, timeout))
SLOW(int, execve, (const char *path, char *const argv[], char *const envp[]), (path, argv, envp))
SLOW(int, flock, (int fd, int operation), (fd, operation))
SLOW(int, kill, (pid_t pid, int signum), (pid, signum))
SLOW(int, killpg, (pid_t group, int signum), (group, signum))
SLOW(int, link, (const char *from, const char *to), (from, to))
SLOW(int, listen, (int fd, int backlog), (fd, backlog))
SLOW(int, mkdir, (const char *path, mode_t mode), (path, mode))
SLOW(int, poll, (struct pollfd *events, nfds_t count, int timeout), (events, count, timeout))
SLOW(ssize_t, read, (int fd, void *data, size_t size), (fd, data, size))
SLOW(ssize_t, recv, (int fd, void *data, size_t size, int flags), (fd, data, size, flags))
SLOW(ssize_t, recvmsg, (int fd, struct msghdr *message, int flags), (fd, message, flags))
SLOW(int, rename, (const char *from, const char *to), (from, to))
SLOW(ssize_t, send, (int fd, const void *data, size_t size, int flags), (fd, data, size, flags))
SLOW(ssize_t, sendmsg, (int fd, const struct msghdr *message, int flags), (fd, message, flags))
SLOW(int, shutdown, (int fd, int how), (fd, how))
SLOW(int, unlink, (const char *path), (path))
SLOW(pid_t, waitpid, (pid_t pid, int *status, int options), (pid, status, options))
SLOW(ssize_t, write, (int fd, const void *data, size_t size), (fd, data, size))
