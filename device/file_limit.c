// SPDX-License-Identifier: BSD-2-Clause
#include "device/file_limit.h"

#include <errno.h>
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
