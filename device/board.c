// SPDX-License-Identifier: BSD-2-Clause
// Making a board.
#include "device/board.h"

#include "base/log.h"
#include "device/descriptor.h"
#include "device/file_limit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

uint64_t alb_board_net_namespace(void)
{
    struct stat status;
    return stat("/proc/self/ns/net", &status) == 0 ? (uint64_t)status.st_ino : 0;
}

// A memfd of that size that can neither shrink nor grow, or -1.
static int create_file(size_t bytes)
{
    int fd = alb_descriptor_aside(memfd_create("albedo-board", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (fd < 0)
        return -1;
    if (!alb_file_limit_allows(fd, bytes) || ftruncate(fd, (off_t)bytes) != 0 ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

static int map(struct alb_board *board)
{
    int flags = board->fd >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS;
    void *memory = mmap(NULL, board->bytes, PROT_READ | PROT_WRITE, flags | MAP_NORESERVE, board->fd, 0);
    if (memory == MAP_FAILED)
        return ENOMEM;
    board->header = memory;
    return 0;
}

static void describe(struct alb_board_header *header, const struct alb_board_identity *identity)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    header->pid = (int32_t)getpid();
    header->uid = (uint32_t)geteuid();
    header->net_namespace = alb_board_net_namespace();
    header->started_ns = (uint64_t)now.tv_sec * ALB_NS_PER_S + (uint64_t)now.tv_nsec;
    header->slot = identity->slot;
    header->mtu_bytes = identity->mtu_bytes;
    header->address_count = identity->address_count;
    for (uint32_t i = 0; i < identity->address_count; i++)
        header->addresses[i] = identity->addresses[i];
    snprintf(header->device, sizeof(header->device), "%s", identity->device);
    snprintf(header->program, sizeof(header->program), "%s", program_invocation_short_name);
    alb_faults_format(identity->faults, header->faults);
}

int alb_board_create(struct alb_board *board, const struct alb_board_identity *identity, uint32_t qp_max)
{
    const size_t qp_offset = (sizeof(struct alb_board_header) + 4095) & ~(size_t)4095;
    const size_t peer_offset = qp_offset + (size_t)qp_max * sizeof(struct alb_qp_stats);
    board->bytes = peer_offset + ALB_BOARD_PEER_MAX * sizeof(struct alb_peer_stats);
    board->fd = create_file(board->bytes);
    if (board->fd < 0)
        alb_log(ALB_LOG_WARNING, "no shared memory for counters (%s): \"albedo stat\" will not show this process",
                strerror(errno));
    int error = map(board);
    if (error) {
        if (board->fd >= 0)
            close(board->fd);
        return error;
    }
    struct alb_board_header *header = board->header;
    board->qps = (struct alb_qp_stats *)((uint8_t *)header + qp_offset);
    board->peers = (struct alb_peer_stats *)((uint8_t *)header + peer_offset);
    header->version = ALB_BOARD_VERSION;
    header->header_bytes = sizeof(*header);
    header->stat_count = ALB_STAT_COUNT;
    header->drop_count = ALB_DROP_COUNT;
    header->edge_count = ALB_EDGE_COUNT;
    header->qp_bytes = sizeof(struct alb_qp_stats);
    header->qp_max = qp_max;
    header->peer_bytes = sizeof(struct alb_peer_stats);
    header->peer_max = ALB_BOARD_PEER_MAX;
    header->total_bytes = board->bytes;
    header->qp_offset = qp_offset;
    header->peer_offset = peer_offset;
    describe(header, identity);
    header->magic = ALB_BOARD_MAGIC; // last: a reader takes it as the sign that the rest is there
    return 0;
}

void alb_board_destroy(struct alb_board *board)
{
    munmap(board->header, board->bytes);
    if (board->fd >= 0)
        close(board->fd);
    board->fd = -1;
    board->header = NULL;
}
