// SPDX-License-Identifier: BSD-2-Clause
// What a file of the host directory holds: where to find its process's board. Shared by the writing and the reading
// half.
#pragma once

#include "device/directory.h"

#define ALB_DIRECTORY_MAGIC 0x416c6265646f4469ull // "AlbedoDi"

struct alb_directory_file {
    uint64_t magic;
    int32_t pid; // as the process itself sees it
    int32_t board_fd;
    uint64_t board_device;
    uint64_t board_inode;
};

// The path of a user's folder. NULL with ENAMETOOLONG: there is no room for its files' names; path is its beginning
// then.
char *alb_directory_folder(uint32_t uid, char path[ALB_DIRECTORY_FOLDER_MAX]);

// 0 if the folder is that user's and only that user can write to it, else EPERM or what fstat(2) says.
int alb_directory_check_folder(int fd, uint32_t uid);
