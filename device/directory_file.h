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

// The path of a user's folder: albedo-UID, with the user's number outside of the user namespace. Where that is
// another's, or there is no such number, the namespace's inode is behind it. NULL with errno; path is what is known of
// it then. ENAMETOOLONG: there is no room for its files' names. EMFILE, ENFILE, ENOMEM: the numbers outside cannot be
// read.
char *alb_directory_folder(uint32_t uid, char path[ALB_DIRECTORY_FOLDER_MAX]);

// Opens that folder, and makes it before if need be. -1 with errno; EPERM: it is another's, others can write to it,
// or this user cannot.
int alb_directory_open_folder(uint32_t uid, char path[ALB_DIRECTORY_FOLDER_MAX], bool makes);

// A file of the folder, for reading and writing, that is made if it is not there. All of the user's processes may open
// it. -1 with errno.
int alb_directory_open_file(int folder, const char *name);

// The line for people when it cannot be used; what says what is missed by that.
void alb_directory_complain(int error, const char *what);

// Reads the folder's names through a descriptor of its own, which has a position of its own. NULL with errno.
DIR *alb_directory_open_names(int folder);

// Removes the files that ended processes have left in the folder. True if there was one.
bool alb_directory_sweep(int folder);
// Looks at a few, whichever: cheap enough for every start of a program, and sees to it that what is left does not
// become much more than what lives.
void alb_directory_sweep_some(int folder);
// For an error of writing in this user's folder: true if it was that there is no room, and there is some now.
bool alb_directory_make_room(int error);
