// The wall clock of a process, moved by as many microseconds as the file that MOVED_CLOCK names says.
//
// It steps between two turns of the server's loop, and not within a script: a server older than 7.2, which does not stop
// the time in scripts, would take what the script has just written for expired (redis/redis#10300). With
// MOVED_CLOCK_AT_ONCE it steps at once, as it has to for a server of several processes or threads.
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile long long *wanted;
static volatile long long ahead;
static int at_once;

__attribute__((constructor)) static void open_clock(void) {
    int file = open(getenv("MOVED_CLOCK"), O_RDONLY);
    void *page = mmap(NULL, sizeof *wanted, PROT_READ, MAP_SHARED, file, 0);
    if (page == MAP_FAILED) abort();
    wanted = page;
    ahead = *wanted;
    at_once = getenv("MOVED_CLOCK_AT_ONCE") != NULL;
    close(file);
}

int epoll_wait(int poll, struct epoll_event *events, int most, int timeout) {
    int result = syscall(SYS_epoll_pwait, poll, events, most, timeout, NULL, 8);
    if (wanted) ahead = *wanted;
    return result;
}

int clock_gettime(clockid_t id, struct timespec *time) {
    int result = syscall(SYS_clock_gettime, id, time);
    if (wanted && at_once) ahead = *wanted;
    if (result == 0 && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) {
        long long micros = time->tv_sec * 1000000LL + time->tv_nsec / 1000 + ahead;
        time->tv_sec = micros / 1000000;
        time->tv_nsec = micros % 1000000 * 1000;
    }
    return result;
}

// A wait until a moment of the moved clock ends then, too.
int pthread_cond_timedwait(pthread_cond_t *restrict wakeup, pthread_mutex_t *restrict mutex,
                           const struct timespec *restrict until) {
    struct timespec moment = *until;
    long long micros = moment.tv_sec * 1000000LL + moment.tv_nsec / 1000 - ahead;
    moment.tv_sec = micros / 1000000;
    moment.tv_nsec = micros % 1000000 * 1000;
    return pthread_cond_clockwait(wakeup, mutex, CLOCK_REALTIME, &moment);
}

int gettimeofday(struct timeval *restrict time, void *restrict zone) {
    (void)zone;
    struct timespec now;
    int result = clock_gettime(CLOCK_REALTIME, &now);
    time->tv_sec = now.tv_sec;
    time->tv_usec = now.tv_nsec / 1000;
    return result;
}

time_t time(time_t *seconds) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (seconds) *seconds = now.tv_sec;
    return now.tv_sec;
}
