// SPDX-License-Identifier: BSD-2-Clause
#include "device/file_limit.h"

#include <errno.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/stat.h>

bool alb_file_limit_allows(int fd, uint64_t bytes)
{
    struct rlimit limit;
    struct stat status;
    if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || fstat(fd, &status) != 0 ||
        !S_ISREG(status.st_mode))
        return true;
    if (bytes <= limit.rlim_cur && (uint64_t)status.st_size <= limit.rlim_cur - bytes)
        return true;
    errno = EFBIG;
    return false;
}

void alb_file_limit_hold(sigset_t *before)
{
    sigset_t signal;
    sigemptyset(&signal);
    sigaddset(&signal, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &signal, before);
}

void alb_file_limit_release(const sigset_t *before)
{
    const struct timespec at_once = {0};
    sigset_t signal;
    sigemptyset(&signal);
    sigaddset(&signal, SIGXFSZ);
    if (!sigismember(before, SIGXFSZ))
        sigtimedwait(&signal, NULL, &at_once); // of ours, if there is one
    pthread_sigmask(SIG_SETMASK, before, NULL);
}
