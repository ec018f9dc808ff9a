// SPDX-License-Identifier: BSD-2-Clause
// Names, locks, and whole reads and writes, for a region's file and its journal.
#pragma once

#include "base/types.h"

#include <sys/uio.h>

// The last part of a path: the file's name in its folder.
const char *alb_file_name(const char *path);

// One at a time has it. The lock belongs to the open file, so that it holds within a process, too, and ends with it.
// EBUSY: another one has it.
int alb_file_lock(int fd);

// Writes all of it from that place on. An errno; part of it may have been written then. The vectors are used up.
int alb_file_write(int fd, struct iovec *vectors, uint32_t count, uint64_t at);
// EIO: the file ends before.
int alb_file_read(int fd, void *bytes, uint64_t length, uint64_t at);
