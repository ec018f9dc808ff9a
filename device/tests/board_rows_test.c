// SPDX-License-Identifier: BSD-2-Clause
// Rows of a board, copied without those that were never used.
#include "device/board_rows.h"

#include "base/tests/test.h"

#include <string.h>
#include <sys/stat.h>

enum { QP_MAX = 4096 };

static struct alb_board board;

static int setup(void **state)
{
    static const struct alb_addr addr;
    static const struct alb_faults_spec none;
    const struct alb_board_identity identity = {
        .device = "roce0", .mtu_bytes = 1024, .addresses = &addr, .address_count = 1, .faults = &none};
    return alb_board_create(&board, &identity, QP_MAX);
}

static int teardown(void **state)
{
    alb_board_destroy(&board);
    return 0;
}

static void read_rows(struct alb_board_rows *rows)
{
    assert_true(alb_board_rows_read(board.fd, board.bytes, board.header, rows));
}

// Uses every row whose index is a multiple of the step, and expects them all, in their order.
static void expect_rows(uint32_t step)
{
    struct alb_board_rows rows;
    uint32_t next = 0;
    for (uint32_t i = 0; i < QP_MAX; i += step)
        board.qps[i] = (struct alb_qp_stats){.qpn = i + 1, .dest_qpn = ~i};
    read_rows(&rows);
    for (uint32_t i = 0; i < rows.qp_count; i++) {
        if (rows.qps[i].qpn == 0)
            continue;
        assert_int_equal(rows.qps[i].qpn, next + 1);
        assert_int_equal(rows.qps[i].dest_qpn, ~next);
        next += step;
    }
    assert_int_equal((next + step - 1) / step, (QP_MAX + step - 1) / step);
    alb_board_rows_release(&rows);
}

static void alb_board_rows_read__nothing_used(void **state)
{
    struct alb_board_rows rows;
    read_rows(&rows);
    assert_int_equal(rows.peer_count, 0);
    assert_true(rows.qp_count * sizeof(*rows.qps) <= 4096); // the page of the header may reach there
    alb_board_rows_release(&rows);
}

static void alb_board_rows_read__leaves_holes(void **state)
{
    struct stat before, after;
    struct alb_board_rows rows;
    board.qps[QP_MAX / 2].qpn = 7;
    assert_int_equal(fstat(board.fd, &before), 0);
    read_rows(&rows);
    assert_in_range(rows.qp_count, 1, 2 * 4096 / sizeof(*rows.qps) + 2);
    alb_board_rows_release(&rows);
    assert_int_equal(fstat(board.fd, &after), 0);
    assert_int_equal(after.st_blocks, before.st_blocks);
}

static void alb_board_rows_read__few(void **state)
{
    expect_rows(1000);
}

static void alb_board_rows_read__some(void **state)
{
    expect_rows(13);
}

static void alb_board_rows_read__all(void **state)
{
    expect_rows(1);
}

static void alb_board_rows_read__last_peer(void **state)
{
    struct alb_board_rows rows;
    board.peers[ALB_BOARD_PEER_MAX - 1].slot = 9;
    read_rows(&rows);
    assert_true(rows.peer_count > 0);
    assert_int_equal(rows.peers[rows.peer_count - 1].slot, 9);
    alb_board_rows_release(&rows);
}

static void refuse(const struct alb_board_header *header, uint64_t file_bytes)
{
    struct alb_board_rows rows;
    assert_false(alb_board_rows_read(board.fd, file_bytes, header, &rows));
    assert_null(rows.qps);
    assert_null(rows.peers);
}

static void alb_board_rows_read__tables_that_do_not_fit(void **state)
{
    struct alb_board_header header = *board.header;
    refuse(&header, board.bytes - 1);
    header.qp_max++;
    refuse(&header, board.bytes);
    header.qp_max = UINT32_MAX;
    refuse(&header, board.bytes);
    header.qp_max = 0;
    refuse(&header, board.bytes);
    header.qp_max = QP_MAX;
    header.qp_offset = 0;
    refuse(&header, board.bytes);
    header.qp_offset = UINT64_MAX - 4;
    refuse(&header, board.bytes);
    header.qp_offset = board.header->qp_offset;
    header.peer_offset = board.bytes;
    refuse(&header, board.bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(alb_board_rows_read__nothing_used, setup, teardown),
        cmocka_unit_test_setup_teardown(alb_board_rows_read__leaves_holes, setup, teardown),
        cmocka_unit_test_setup_teardown(alb_board_rows_read__few, setup, teardown),
        cmocka_unit_test_setup_teardown(alb_board_rows_read__some, setup, teardown),
        cmocka_unit_test_setup_teardown(alb_board_rows_read__all, setup, teardown),
        cmocka_unit_test_setup_teardown(alb_board_rows_read__last_peer, setup, teardown),
        cmocka_unit_test_setup_teardown(alb_board_rows_read__tables_that_do_not_fit, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
