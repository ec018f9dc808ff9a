// SPDX-License-Identifier: BSD-2-Clause
// The host directory: which processes of this user have devices open, and where their boards are. A folder in /dev/shm
// (one per user, writable by that user only) holds a small file for each device. Its process keeps it locked as long as
// it lives, which holds across PID namespaces and ends with any kind of death; a file that is not locked is stale.
// Readers remove all of those, and each process that is listed, or claims a service, a few.
//
// Reading takes nothing on trust: another process's file and board may hold anything.
#pragma once

#include "device/board_rows.h"

#include <dirent.h>
#include <limits.h>

#define ALB_DIRECTORY_NAME_MAX   100 // of a file, with the slash before it
#define ALB_DIRECTORY_FOLDER_MAX (PATH_MAX - ALB_DIRECTORY_NAME_MAX)

// Whether ALBEDO_DIRECTORY says where it may be: below an absolute path, since processes work in different folders, and
// go to others. 0, or EINVAL with what is wrong.
int alb_directory_check(char *error, size_t error_size);

// ---- for the process that is listed ---------------------------------------------------------------------------------

struct alb_directory_entry {
    int fd; // locked; -1: not listed
    char path[PATH_MAX];
};

// Lists a board. Without /dev/shm, or when it is full of what lives, warns and leaves the process unlisted.
void alb_directory_enter(struct alb_directory_entry *entry, const struct alb_board *board);
void alb_directory_leave(struct alb_directory_entry *entry);

// ---- for readers ----------------------------------------------------------------------------------------------------

// A board of another process (or of this one).
struct alb_directory_board {
    struct alb_board_header header;      // as it was when it was mapped, checked
    const struct alb_board_header *live; // mapped for reading only: fresh counters, but nothing in there is checked
    struct alb_board_rows rows;          // as they were when it was mapped; none: another version of Albedo wrote them
};

struct alb_directory {
    int dir_fd;            // -1: there is no folder, and so no device is listed
    struct dirent **names; // of the folder's files, sorted
    int count, next;
    int unreadable; // devices that are open, but whose boards cannot be read from here; complete at the end
};

// Opens the directory of a user (usually geteuid()), and removes what is stale in it. Errors: EACCES for another
// user's; a missing one is empty. EPERM: the folder is not that user's.
int alb_directory_open(struct alb_directory *directory, uint32_t uid);
void alb_directory_close(struct alb_directory *directory);

// The next living process's board, by process ids, false at the end. What is stale or broken is passed over, and what
// is not accessible counted: that of a process in another PID namespace, where its number means another one. The board
// is to be given back by alb_directory_unmap.
bool alb_directory_next(struct alb_directory *directory, struct alb_directory_board *board);
void alb_directory_unmap(struct alb_directory_board *board);

// Maps the board open in another process as file descriptor fd, if it is one of the file system place (device, inode)
// and makes sense.
bool alb_directory_map(int pid, int fd, uint64_t device, uint64_t inode, struct alb_directory_board *board);
