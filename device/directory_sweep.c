// SPDX-License-Identifier: BSD-2-Clause
// Removes from the host directory what ended processes have left there: the files of boards and claims that nobody has
// locked. A process that ends by a signal leaves its files, so each that comes looks at a few.
#include "device/directory_file.h"

#include "base/prng.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    SOME = 8,        // so many are opened
    LOOKED_AT = 1024 // of so many names
};

// Takes the lock that every process has that lives; a claim has its own one before that. Who has made the file and
// waits for the lock sees then that it was removed, and makes it again. A file that has no name any more was removed by
// another one, and its name may be a living process's by now.
static bool is_left(int fd)
{
    struct stat status;
    struct flock claim = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    return flock(fd, LOCK_EX | LOCK_NB) == 0 && fcntl(fd, F_OFD_GETLK, &claim) == 0 && claim.l_type == F_UNLCK &&
           fstat(fd, &status) == 0 && status.st_nlink > 0;
}

// True if it was removed.
static bool sweep_one(int folder, const char *name)
{
    int fd = openat(folder, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return false;
    bool is_removed = is_left(fd) && unlinkat(folder, name, 0) == 0;
    close(fd);
    return is_removed;
}

static bool is_ours(const char *name)
{
    return strlen(name) < ALB_DIRECTORY_NAME_MAX && (name[0] != '.' || strncmp(name, ".cm-", 4) == 0);
}

bool alb_directory_sweep(int folder)
{
    DIR *dir = alb_directory_open_names(folder);
    bool is_any_removed = false;
    struct dirent *listed;
    while (dir && (listed = readdir(dir)))
        is_any_removed |= is_ours(listed->d_name) && sweep_one(folder, listed->d_name);
    if (dir)
        closedir(dir);
    return is_any_removed;
}

// Each name is as likely as another to be among the chosen: those of living processes do not hide what is left.
static unsigned choose(DIR *dir, char chosen[SOME][ALB_DIRECTORY_NAME_MAX])
{
    uint64_t seed = 0, seen = 0;
    struct alb_prng prng;
    struct dirent *listed;
    if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
        seed = (uint64_t)getpid();
    alb_prng_init(&prng, seed);
    while (seen < LOOKED_AT && (listed = readdir(dir))) {
        if (!is_ours(listed->d_name))
            continue;
        uint64_t place = seen < SOME ? seen : alb_prng_below(&prng, seen + 1);
        seen++;
        if (place < SOME)
            snprintf(chosen[place], ALB_DIRECTORY_NAME_MAX, "%s", listed->d_name);
    }
    return (unsigned)ALB_MIN(seen, (uint64_t)SOME);
}

void alb_directory_sweep_some(int folder)
{
    char chosen[SOME][ALB_DIRECTORY_NAME_MAX];
    DIR *dir = alb_directory_open_names(folder);
    unsigned count = dir ? choose(dir, chosen) : 0;
    for (unsigned i = 0; i < count; i++)
        sweep_one(folder, chosen[i]);
    if (dir)
        closedir(dir);
}

bool alb_directory_make_room(int error)
{
    char path[ALB_DIRECTORY_FOLDER_MAX];
    int folder = error == ENOSPC || error == EDQUOT ? alb_directory_open_folder((uint32_t)geteuid(), path, false) : -1;
    bool is_any_removed = folder >= 0 && alb_directory_sweep(folder);
    if (folder >= 0)
        close(folder);
    return is_any_removed;
}
