// SPDX-License-Identifier: BSD-2-Clause
// Listing a process in the host directory.
#include "device/directory_file.h"

#include "device/descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

// Creates and locks a file that was not removed as stale in between. Returns -1 with errno.
static int create_locked(int folder, const char *name)
{
    int error = 0;
    for (int attempt = 0; attempt < 16; attempt++) {
        struct stat status;
        int fd = alb_directory_open_file(folder, name);
        if (fd < 0)
            return -1;
        error = flock(fd, LOCK_EX) == 0 ? 0 : errno;
        if (!error && fstat(fd, &status) == 0 && status.st_nlink > 0)
            return fd;
        if (error)
            unlinkat(folder, name, 0); // where nothing can be locked, nobody could tell that it is stale
        close(fd);
        if (error && error != EINTR && error != EWOULDBLOCK)
            break;
    }
    errno = error ? error : EBUSY;
    return -1;
}

static int write_file(int fd, const struct alb_board *board)
{
    struct stat status;
    if (fstat(board->fd, &status) != 0)
        return errno;
    const struct alb_directory_file file = {
        .magic = ALB_DIRECTORY_MAGIC,
        .pid = (int32_t)getpid(),
        .board_fd = board->fd,
        .board_device = (uint64_t)status.st_dev,
        .board_inode = (uint64_t)status.st_ino,
    };
    ssize_t wrote = pwrite(fd, &file, sizeof(file), 0);
    return wrote == (ssize_t)sizeof(file) ? 0 : wrote < 0 ? errno : ENOSPC;
}

static int enter(struct alb_directory_entry *entry, const struct alb_board *board)
{
    char folder_path[ALB_DIRECTORY_FOLDER_MAX], name[ALB_DIRECTORY_NAME_MAX - 1];
    int folder = alb_directory_open_folder((uint32_t)geteuid(), folder_path, true);
    if (folder < 0)
        return errno;
    alb_directory_sweep_some(folder);
    // Two PID namespaces may share the folder, and so a process id: the board's inode tells them apart.
    struct stat status;
    if (fstat(board->fd, &status) != 0)
        status.st_ino = 0;
    snprintf(name, sizeof(name), "%d-%llu", (int)getpid(), (unsigned long long)status.st_ino);
    snprintf(entry->path, sizeof(entry->path), "%s/%s", folder_path, name);
    entry->fd = alb_descriptor_aside(create_locked(folder, name));
    int error = entry->fd < 0 ? errno : write_file(entry->fd, board);
    if (error)
        alb_directory_leave(entry);
    close(folder);
    return error;
}

void alb_directory_enter(struct alb_directory_entry *entry, const struct alb_board *board)
{
    *entry = (struct alb_directory_entry){.fd = -1};
    if (board->fd < 0)
        return; // said already
    int error = enter(entry, board);
    if (alb_directory_make_room(error))
        error = enter(entry, board);
    if (error)
        alb_directory_complain(
            error, "\"albedo stat\" will not show this process, and rdma_cm can neither bind nor listen in it");
}

void alb_directory_leave(struct alb_directory_entry *entry)
{
    if (entry->fd < 0)
        return;
    unlink(entry->path);
    close(entry->fd);
    entry->fd = -1;
}
