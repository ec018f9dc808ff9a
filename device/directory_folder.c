// SPDX-License-Identifier: BSD-2-Clause
// Which folder of the host directory is a user's. Users in user namespaces share small numbers: most are 0 in there. So
// the number in a name is the one outside, by which processes of one user find each other inside and outside; who has
// none, or finds another's folder in that place, goes by the namespace.
#include "device/directory_file.h"

#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define INITIAL_USER_NAMESPACE 0xeffffffdull // its inode, in every kernel

// 0 without /proc.
static uint64_t user_namespace(void)
{
    struct stat status;
    return stat("/proc/self/ns/user", &status) == 0 ? (uint64_t)status.st_ino : 0;
}

// A user's number outside the namespace. False if there is none. What cannot be read for lack of descriptors or memory
// is an error: others, who can read it, would use another folder.
static int find_outside(uint32_t uid, uint32_t *outside, bool *is_mapped)
{
    uint32_t first, first_outside, count;
    *is_mapped = false;
    FILE *map = fopen("/proc/self/uid_map", "re");
    if (!map)
        return errno == EMFILE || errno == ENFILE || errno == ENOMEM ? errno : 0;
    while (!*is_mapped && fscanf(map, "%" SCNu32 "%" SCNu32 "%" SCNu32, &first, &first_outside, &count) == 3) {
        *is_mapped = uid >= first && uid - first < count;
        if (*is_mapped)
            *outside = first_outside + (uid - first);
    }
    fclose(map);
    return 0;
}

static bool is_others(const char *path, uint32_t uid)
{
    struct stat status;
    return lstat(path, &status) == 0 && status.st_uid != uid;
}

// For tests, and for containers without /dev/shm. NULL: it is not set.
static const char *chosen_base(void)
{
    const char *base = getenv("ALBEDO_DIRECTORY");
    return base && *base ? base : NULL;
}

int alb_directory_check(char *error, size_t error_size)
{
    const char *base = chosen_base();
    if (!base || *base == '/')
        return 0;
    snprintf(error, error_size, "ALBEDO_DIRECTORY: \"%.200s\" is no absolute path", base);
    return EINVAL;
}

// namespace 0: the plain name.
static int write_path(char path[ALB_DIRECTORY_FOLDER_MAX], uint32_t uid, uint64_t namespace)
{
    const char *base = chosen_base();
    char suffix[24] = "";
    if (namespace != 0)
        snprintf(suffix, sizeof(suffix), "-%" PRIu64, namespace);
    int length = snprintf(path, ALB_DIRECTORY_FOLDER_MAX, "%s/albedo-%u%s", base ? base : "/dev/shm", uid, suffix);
    return length < ALB_DIRECTORY_FOLDER_MAX ? 0 : ENAMETOOLONG;
}

char *alb_directory_folder(uint32_t uid, char path[ALB_DIRECTORY_FOLDER_MAX])
{
    uint64_t namespace = user_namespace();
    uint32_t outside = uid;
    bool is_mapped = true;
    int map_error = 0;
    if (namespace != 0 && namespace != INITIAL_USER_NAMESPACE)
        map_error = find_outside(uid, &outside, &is_mapped);
    int error = write_path(path, outside, 0);
    if (!error)
        error = map_error;
    if (!error && namespace != 0 && (!is_mapped || is_others(path, uid)))
        error = write_path(path, outside, namespace);
    if (!error)
        return path;
    errno = error;
    return NULL;
}

// Another folder is of use where this one is at fault, not the process or the host that has run out of something.
static bool is_of_the_place(int error)
{
    return error != EMFILE && error != ENFILE && error != ENOMEM;
}

void alb_directory_complain(int error, const char *what)
{
    char folder[ALB_DIRECTORY_FOLDER_MAX];
    alb_directory_folder((uint32_t)geteuid(), folder);
    const char *advice = error == EMFILE          ? "; `ulimit -n` bounds how many descriptors there may be"
                         : is_of_the_place(error) ? "; ALBEDO_DIRECTORY names another place"
                                                  : "";
    alb_log(ALB_LOG_WARNING, "host directory %s: %s: %s%s", folder, strerror(error), what, advice);
}

static int check_folder(int fd, uint32_t uid)
{
    struct stat status;
    if (fstat(fd, &status) != 0)
        return errno;
    if (status.st_uid != uid || (status.st_mode & 022) != 0)
        return EPERM;
    // All who have no number in a user namespace have the same one there: another's may not be written.
    return faccessat(fd, ".", W_OK | X_OK, AT_EACCESS) == 0 || errno != EACCES ? 0 : EPERM;
}

static int make_folder(const char *path)
{
    if (mkdir(path, 0700) != 0)
        return errno == EEXIST ? 0 : -1;
    // Whatever the process's umask is: its user's later processes come there, too. What cannot be set stays.
    int error = fchmodat(AT_FDCWD, path, 0700, AT_SYMLINK_NOFOLLOW);
    if (error != 0 && errno == EOPNOTSUPP) // an older C library's, or no /proc
        error = chmod(path, 0700);
    (void)error;
    return 0;
}

int alb_directory_open_folder(uint32_t uid, char path[ALB_DIRECTORY_FOLDER_MAX], bool makes)
{
    if (!alb_directory_folder(uid, path))
        return -1;
    if (makes && make_folder(path) != 0)
        return -1;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int error = fd < 0 ? 0 : check_folder(fd, uid);
    if (error) {
        close(fd);
        errno = error;
        return -1;
    }
    return fd;
}

int alb_directory_open_file(int folder, const char *name)
{
    int fd = openat(folder, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd >= 0)
        fchmod(fd, 0600);
    return fd;
}

DIR *alb_directory_open_names(int folder)
{
    int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir && fd >= 0) {
        int error = errno;
        close(fd);
        errno = error;
    }
    return dir;
}
