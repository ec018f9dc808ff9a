// SPDX-License-Identifier: BSD-2-Clause
// Reading the host directory, and other processes' boards.
#include "device/directory_file.h"

#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static int is_listed(const struct dirent *file)
{
    return file->d_name[0] != '.';
}

int alb_directory_open(struct alb_directory *directory, uint32_t uid)
{
    char path[ALB_DIRECTORY_FOLDER_MAX];
    *directory = (struct alb_directory){.dir_fd = -1};
    int fd = alb_directory_open_folder(uid, path, false);
    if (fd < 0)
        return errno == ENOENT ? 0 : errno;
    alb_directory_sweep(fd);
    // Names begin with a process id, which is compared as a number.
    directory->count = scandirat(fd, ".", &directory->names, is_listed, versionsort);
    if (directory->count < 0) {
        int error = errno;
        close(fd);
        return error;
    }
    directory->dir_fd = fd;
    return 0;
}

void alb_directory_close(struct alb_directory *directory)
{
    for (int i = 0; i < directory->count; i++)
        free(directory->names[i]);
    free(directory->names);
    if (directory->dir_fd >= 0)
        close(directory->dir_fd);
    *directory = (struct alb_directory){.dir_fd = -1};
}

static bool take_text(char *text, size_t size)
{
    if (memchr(text, 0, size) == NULL)
        return false;
    alb_text_disarm(text); // a program may give itself any name, and this one is shown on a terminal
    return true;
}

static bool has_our_counters(const struct alb_board_header *header)
{
    return header->stat_count == ALB_STAT_COUNT && header->drop_count == ALB_DROP_COUNT &&
           header->edge_count == ALB_EDGE_COUNT && header->qp_bytes == sizeof(struct alb_qp_stats) &&
           header->peer_bytes == sizeof(struct alb_peer_stats);
}

// Whether a mapped board makes sense. It is copied first: its writer may change what has been checked.
static bool validate(struct alb_directory_board *board)
{
    struct alb_board_header *header = &board->header;
    memcpy(header, board->live, sizeof(*header));
    if (header->magic != ALB_BOARD_MAGIC || header->version != ALB_BOARD_VERSION ||
        header->header_bytes != sizeof(*header) || header->address_count > ALB_DEVICE_ADDRESSES_MAX)
        return false;
    return take_text(header->device, sizeof(header->device)) && take_text(header->program, sizeof(header->program)) &&
           take_text(header->faults, sizeof(header->faults));
}

// Maps an open file, if its size is one that cannot change and holds at least the header.
static bool map(int fd, uint64_t device, uint64_t inode, struct alb_directory_board *board)
{
    struct stat status;
    if (fstat(fd, &status) != 0 || (uint64_t)status.st_dev != device || (uint64_t)status.st_ino != inode ||
        status.st_size < (off_t)sizeof(struct alb_board_header))
        return false;
    int seals = fcntl(fd, F_GET_SEALS);
    if (seals < 0 || !(seals & F_SEAL_SHRINK))
        return false;
    void *memory = mmap(NULL, sizeof(struct alb_board_header), PROT_READ, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED)
        return false;
    board->live = memory;
    if (validate(board) && (!has_our_counters(&board->header) ||
                            alb_board_rows_read(fd, (uint64_t)status.st_size, &board->header, &board->rows)))
        return true;
    alb_directory_unmap(board);
    return false;
}

bool alb_directory_map(int pid, int board_fd, uint64_t device, uint64_t inode, struct alb_directory_board *board)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, board_fd);
    *board = (struct alb_directory_board){0};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return false;
    bool is_mapped = map(fd, device, inode, board);
    close(fd);
    return is_mapped;
}

void alb_directory_unmap(struct alb_directory_board *board)
{
    if (board->live)
        munmap((void *)(uintptr_t)board->live, sizeof(*board->live));
    alb_board_rows_release(&board->rows);
    *board = (struct alb_directory_board){0};
}

static bool is_locked(int fd)
{
    return flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

// The board of a listed file whose process lives.
static bool map_entry(struct alb_directory *directory, int fd, struct alb_directory_board *board)
{
    struct alb_directory_file file;
    if (!is_locked(fd) || pread(fd, &file, sizeof(file), 0) != (ssize_t)sizeof(file) ||
        file.magic != ALB_DIRECTORY_MAGIC)
        return false;
    if (alb_directory_map(file.pid, file.board_fd, file.board_device, file.board_inode, board))
        return true;
    directory->unreadable += is_locked(fd); // else it has ended meanwhile
    return false;
}

bool alb_directory_next(struct alb_directory *directory, struct alb_directory_board *board)
{
    bool is_mapped = false;
    *board = (struct alb_directory_board){0};
    while (!is_mapped && directory->next < directory->count) {
        const char *name = directory->names[directory->next++]->d_name;
        int fd = openat(directory->dir_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
        if (fd < 0)
            continue;
        is_mapped = map_entry(directory, fd, board);
        close(fd);
    }
    return is_mapped;
}
