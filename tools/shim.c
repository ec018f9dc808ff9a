// SPDX-License-Identifier: BSD-2-Clause
// libalbedo-shim.so, preloaded by `albedo run`: shows programs the files of a device they look for.
//
// UCX takes a verbs device only if /dev/infiniband/<dev_name> is a character device that may be read and written. The
// verbs door needs no such node, and creating one needs root. So the calls that look at a file are answered for these
// few names as if they were /dev/null, which is such a device; every other name goes to the C library untouched.
//
// Mooncake takes one only if realpath(3) knows the folder two above /sys/class/infiniband/<name>, where it looks for
// the PCI address and the NUMA node. The kernel keeps devices without a bus, as Soft-RoCE's, in
// VIRTUAL_FOLDER/infiniband. NCCL and its kin ask for the place of /sys/class/infiniband/<name>/device, which the
// kernel gives only those that have a bus: NCCL warns where there is none, a plugin of it ends by a segmentation fault.
// What they are told is no PCI address, which they provide for, and differs by device, or two would be ports of one.
//
// NCCL reads which version of RoCE an entry of the GID table belongs to, where several of its addresses would do, and
// gives the connection up if it cannot. UCX (1.23) reads which interface has the entry's address, takes no peer for
// reachable if it cannot, and the next time takes what it has not read for the answer. The kernel has a file of a line
// for each (shim_gid.c).
// Both names of a call are defined here, which these macros would make one.
#undef _FILE_OFFSET_BITS
#undef _TIME_BITS
#include "base/types.h"
#include "tools/shim_gid.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SHIM_EXPORT __attribute__((visibility("default")))

#define NODE_FOLDER    "/dev/infiniband/"
#define CLASS_FOLDER   "/sys/class/infiniband/"
#define VIRTUAL_FOLDER "/sys/devices/virtual"

// The name and dev_name that the verbs door gives each device.
static const char *const places[][2] = {
    {CLASS_FOLDER "roce0/../..", VIRTUAL_FOLDER},
    {CLASS_FOLDER "albedo0/../..", VIRTUAL_FOLDER},
    {CLASS_FOLDER "roce0/device", VIRTUAL_FOLDER "/infiniband/roce0/device"},
    {CLASS_FOLDER "albedo0/device", VIRTUAL_FOLDER "/infiniband/albedo0/device"},
};
static const char *const nodes[] = {"uverbs0", "uverbs1"};

// The name to use instead of path.
static const char *shown(const char *path)
{
    if (path == NULL || strncmp(path, NODE_FOLDER, sizeof(NODE_FOLDER) - 1) != 0)
        return path;
    for (size_t i = 0; i < ALB_COUNT(nodes); i++) {
        if (strcmp(path + sizeof(NODE_FOLDER) - 1, nodes[i]) == 0)
            return "/dev/null";
    }
    return path;
}

// What realpath is to say of path; NULL: what is there.
static const char *place_of(const char *path)
{
    for (size_t i = 0; path != NULL && i < ALB_COUNT(places); i++) {
        if (strcmp(path, places[i][0]) == 0)
            return places[i][1];
    }
    return NULL;
}

// Calls the next library's function of the same name; where it has none, failed and ENOSYS.
#define CALL_NEXT_OR(failed, name, ...)                                        \
    ({                                                                         \
        static __typeof__(name) *next;                                         \
        __typeof__(name) *function = __atomic_load_n(&next, __ATOMIC_RELAXED); \
        if (function == NULL) {                                                \
            *(void **)&function = dlsym(RTLD_NEXT, #name);                     \
            __atomic_store_n(&next, function, __ATOMIC_RELAXED);               \
        }                                                                      \
        function != NULL ? function(__VA_ARGS__) : (errno = ENOSYS, (failed)); \
    })
#define CALL_NEXT(name, ...) CALL_NEXT_OR(-1, name, __VA_ARGS__)

SHIM_EXPORT int stat(const char *restrict path, struct stat *restrict buffer)
{
    return CALL_NEXT(stat, shown(path), buffer);
}

SHIM_EXPORT int stat64(const char *restrict path, struct stat64 *restrict buffer)
{
    return CALL_NEXT(stat64, shown(path), buffer);
}

SHIM_EXPORT int lstat(const char *restrict path, struct stat *restrict buffer)
{
    return CALL_NEXT(lstat, shown(path), buffer);
}

SHIM_EXPORT int lstat64(const char *restrict path, struct stat64 *restrict buffer)
{
    return CALL_NEXT(lstat64, shown(path), buffer);
}

SHIM_EXPORT int fstatat(int folder, const char *restrict path, struct stat *restrict buffer, int flags)
{
    return CALL_NEXT(fstatat, folder, shown(path), buffer, flags);
}

SHIM_EXPORT int fstatat64(int folder, const char *restrict path, struct stat64 *restrict buffer, int flags)
{
    return CALL_NEXT(fstatat64, folder, shown(path), buffer, flags);
}

SHIM_EXPORT int statx(int folder, const char *restrict path, int flags, unsigned int mask,
                      struct statx *restrict buffer)
{
    return CALL_NEXT(statx, folder, shown(path), flags, mask, buffer);
}

// What programs built before glibc 2.33 call for stat and lstat.
SHIM_EXPORT int __xstat(int version, const char *path, struct stat *buffer);
SHIM_EXPORT int __xstat64(int version, const char *path, struct stat64 *buffer);

SHIM_EXPORT int __xstat(int version, const char *path, struct stat *buffer)
{
    return CALL_NEXT(__xstat, version, shown(path), buffer);
}

SHIM_EXPORT int __xstat64(int version, const char *path, struct stat64 *buffer)
{
    return CALL_NEXT(__xstat64, version, shown(path), buffer);
}

SHIM_EXPORT int access(const char *path, int mode)
{
    return CALL_NEXT(access, shown(path), mode);
}

SHIM_EXPORT int eaccess(const char *path, int mode)
{
    return CALL_NEXT(eaccess, shown(path), mode);
}

SHIM_EXPORT int euidaccess(const char *path, int mode)
{
    return CALL_NEXT(euidaccess, shown(path), mode);
}

SHIM_EXPORT int faccessat(int folder, const char *path, int mode, int flags)
{
    return CALL_NEXT(faccessat, folder, shown(path), mode, flags);
}

SHIM_EXPORT char *realpath(const char *restrict path, char *restrict resolved)
{
    const char *place = place_of(path);
    if (place != NULL)
        return resolved != NULL ? strcpy(resolved, place) : strdup(place);
    return CALL_NEXT_OR(NULL, realpath, path, resolved);
}

// What programs built with _FORTIFY_SOURCE call for realpath.
SHIM_EXPORT char *__realpath_chk(const char *path, char *resolved, size_t resolved_bytes);

SHIM_EXPORT char *__realpath_chk(const char *path, char *resolved, size_t resolved_bytes)
{
    if (place_of(path) != NULL && resolved_bytes >= PATH_MAX) // with less room the next one ends the process
        return realpath(path, resolved);
    return CALL_NEXT_OR(NULL, __realpath_chk, path, resolved, resolved_bytes);
}

// The mode that open takes as an argument only when it may create a file.
#define MODE_OF(flags, mode)                                             \
    do {                                                                 \
        if (((flags)&O_CREAT) || ((flags)&__O_TMPFILE) == __O_TMPFILE) { \
            va_list arguments;                                           \
            va_start(arguments, flags);                                  \
            mode = (mode_t)va_arg(arguments, unsigned int);              \
            va_end(arguments);                                           \
        }                                                                \
    } while (0)

SHIM_EXPORT int open(const char *path, int flags, ...)
{
    mode_t mode = 0;
    MODE_OF(flags, mode);
    if (alb_shim_is_gid_file(path, flags))
        return alb_shim_open_gid_file(path, flags);
    return CALL_NEXT(open, shown(path), flags, mode);
}

SHIM_EXPORT int open64(const char *path, int flags, ...)
{
    mode_t mode = 0;
    MODE_OF(flags, mode);
    if (alb_shim_is_gid_file(path, flags))
        return alb_shim_open_gid_file(path, flags);
    return CALL_NEXT(open64, shown(path), flags, mode);
}

SHIM_EXPORT int openat(int folder, const char *path, int flags, ...)
{
    mode_t mode = 0;
    MODE_OF(flags, mode);
    if (alb_shim_is_gid_file(path, flags))
        return alb_shim_open_gid_file(path, flags);
    return CALL_NEXT(openat, folder, shown(path), flags, mode);
}

SHIM_EXPORT int openat64(int folder, const char *path, int flags, ...)
{
    mode_t mode = 0;
    MODE_OF(flags, mode);
    if (alb_shim_is_gid_file(path, flags))
        return alb_shim_open_gid_file(path, flags);
    return CALL_NEXT(openat64, folder, shown(path), flags, mode);
}
