// SPDX-License-Identifier: BSD-2-Clause
// Names, locks, and whole reads and writes, for a region's file and its journal.
#pragma once

#include "base/types.h"

#include <sys/types.h>
#include <sys/uio.h>

// The last part of a path: the file's name in its folder.
const char *alb_file_name(const char *path);

// Which file it is, whatever its name.
struct alb_file_id {
    dev_t device;
    ino_t inode;
};

int alb_file_identify(int fd, struct alb_file_id *id);
// 0: the name there is that file's; ESTALE: another's (or a symbolic link's); ENOENT: nobody's; those of fstatat(2).
int alb_file_check_name(int folder_fd, const char *name, const struct alb_file_id *id);

// One at a time has it. The lock belongs to the open file, so that it holds within a process, too, and ends with it.
// EBUSY: another one has it.
int alb_file_lock(int fd);

// Writes all of it from that place on. An errno; part of it may have been written then. The vectors are used up.
int alb_file_write(int fd, struct iovec *vectors, uint32_t count, uint64_t at);
// EIO: the file ends before.
int alb_file_read(int fd, void *bytes, uint64_t length, uint64_t at);
