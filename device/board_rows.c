// SPDX-License-Identifier: BSD-2-Clause
#include "device/board_rows.h"

#include "base/types.h"

#include <sys/mman.h>
#include <unistd.h>

struct table {
    uint64_t offset;
    uint32_t rows;
    size_t row_bytes;
};

// Copies the rows that lie, at least in part, where the file has been written. Returns how many.
static uint32_t copy_written(int fd, const struct table *table, uint8_t *to)
{
    uint32_t row = 0, count = 0;
    while (row < table->rows) {
        off_t data = lseek(fd, (off_t)(table->offset + row * table->row_bytes), SEEK_DATA);
        off_t hole = data < 0 ? -1 : lseek(fd, data, SEEK_HOLE);
        if (hole <= data)
            break;
        uint64_t first = ((uint64_t)data - table->offset) / table->row_bytes;
        uint64_t end = ((uint64_t)hole - table->offset + table->row_bytes - 1) / table->row_bytes;
        end = ALB_MIN(end, table->rows);
        if (first >= end)
            break;
        size_t bytes = (end - first) * table->row_bytes;
        ssize_t got =
            pread(fd, to + count * table->row_bytes, bytes, (off_t)(table->offset + first * table->row_bytes));
        if (got != (ssize_t)bytes)
            break;
        count += (uint32_t)(end - first);
        row = (uint32_t)end;
    }
    return count;
}

// NULL: it does not end before the file, or the next table, does, or there is no memory.
static void *read_table(int fd, const struct table *table, uint64_t end, uint32_t *count, size_t *bytes)
{
    if (table->offset < sizeof(struct alb_board_header) || table->offset > end || table->rows == 0 ||
        (end - table->offset) / table->row_bytes < table->rows)
        return NULL;
    *bytes = table->rows * table->row_bytes;
    void *copy = mmap(NULL, *bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (copy == MAP_FAILED)
        return NULL;
    *count = copy_written(fd, table, copy);
    return copy;
}

bool alb_board_rows_read(int fd, uint64_t file_bytes, const struct alb_board_header *header,
                         struct alb_board_rows *rows)
{
    const struct table peers = {header->peer_offset, header->peer_max, sizeof(struct alb_peer_stats)};
    const struct table qps = {header->qp_offset, header->qp_max, sizeof(struct alb_qp_stats)};
    *rows = (struct alb_board_rows){0};
    rows->peers = read_table(fd, &peers, file_bytes, &rows->peer_count, &rows->peer_bytes);
    if (rows->peers)
        rows->qps = read_table(fd, &qps, header->peer_offset, &rows->qp_count, &rows->qp_bytes);
    if (!rows->qps)
        alb_board_rows_release(rows);
    return rows->qps != NULL;
}

void alb_board_rows_release(struct alb_board_rows *rows)
{
    if (rows->qps)
        munmap((void *)(uintptr_t)rows->qps, rows->qp_bytes);
    if (rows->peers)
        munmap((void *)(uintptr_t)rows->peers, rows->peer_bytes);
    *rows = (struct alb_board_rows){0};
}
