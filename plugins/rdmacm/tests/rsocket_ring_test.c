// SPDX-License-Identifier: BSD-2-Clause
#include "plugins/rdmacm/rsocket_ring.h"

#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void cursor__over_pieces(void **state)
{
    char a[3] = "abc", b[4] = "defg", out[8] = "";
    struct iovec iov[] = {{a, 3}, {NULL, 0}, {b, 4}};
    struct rsocket_cursor cursor;
    assert_int_equal(rsocket_cursor_init(&cursor, iov, 3), 0);
    assert_int_equal(cursor.left, 7);
    rsocket_cursor_gather(&cursor, out, 2);
    rsocket_cursor_gather(&cursor, out + 2, 4);
    assert_string_equal(out, "abcdef");
    assert_int_equal(cursor.left, 1);
    assert_int_equal(rsocket_cursor_init(&cursor, iov, 3), 0);
    rsocket_cursor_scatter(&cursor, "1234567", 7);
    assert_memory_equal(a, "123", 3);
    assert_memory_equal(b, "4567", 4);
}

static void cursor__too_much(void **state)
{
    struct iovec iov[] = {{NULL, SSIZE_MAX}, {NULL, 1}};
    struct rsocket_cursor cursor;
    assert_int_equal(rsocket_cursor_init(&cursor, iov, 2), EINVAL);
    assert_int_equal(rsocket_cursor_init(&cursor, iov, IOV_MAX + 1), EINVAL);
}

static size_t read_some(struct rsocket_inbox *inbox, char *to, size_t length, bool is_peek)
{
    struct iovec iov = {to, length};
    struct rsocket_cursor cursor;
    assert_int_equal(rsocket_cursor_init(&cursor, &iov, 1), 0);
    return rsocket_inbox_read(inbox, &cursor, is_peek);
}

static void inbox__given_by_halves(void **state)
{
    uint8_t bytes[9] = "01234567";
    char out[9] = "";
    struct rsocket_inbox inbox;
    rsocket_inbox_init(&inbox, bytes, 8);
    assert_true(rsocket_inbox_can_grant(&inbox)); // the second half is free from the first
    assert_int_equal(rsocket_inbox_grant(&inbox), 4);
    assert_false(rsocket_inbox_can_grant(&inbox));
    assert_true(rsocket_inbox_take(&inbox, 6));
    assert_int_equal(read_some(&inbox, out, 5, true), 5);
    assert_string_equal(out, "01234");
    assert_int_equal(read_some(&inbox, out, 5, false), 5);
    assert_true(rsocket_inbox_can_grant(&inbox));
    assert_int_equal(rsocket_inbox_grant(&inbox), 0);
    assert_true(rsocket_inbox_take(&inbox, 4)); // around the end
    memset(out, 0, sizeof(out));
    assert_int_equal(read_some(&inbox, out, 8, false), 5);
    assert_string_equal(out, "56701");
}

static void inbox__more_than_was_given(void **state)
{
    uint8_t bytes[8];
    struct rsocket_inbox inbox;
    rsocket_inbox_init(&inbox, bytes, 8);
    assert_false(rsocket_inbox_take(&inbox, 5));
    assert_false(rsocket_inbox_take(&inbox, UINT32_MAX));
    assert_true(rsocket_inbox_take(&inbox, 4));
    assert_false(rsocket_inbox_take(&inbox, 1));
}

static void outbox__around_the_end(void **state)
{
    uint8_t bytes[8];
    struct iovec iov = {"abcdefghij", 10};
    struct rsocket_cursor from;
    struct rsocket_outbox outbox = {.bytes = bytes, .size = 8};
    assert_int_equal(rsocket_cursor_init(&from, &iov, 1), 0);
    assert_int_equal(rsocket_outbox_put(&outbox, &from, 6).count, 1);
    assert_int_equal(rsocket_outbox_room(&outbox), 2);
    rsocket_outbox_release(&outbox, 6);
    struct rsocket_pieces pieces = rsocket_outbox_put(&outbox, &from, 4);
    assert_int_equal(pieces.count, 2);
    assert_ptr_equal(pieces.piece[0].iov_base, bytes + 6);
    assert_int_equal(pieces.piece[0].iov_len, 2);
    assert_memory_equal(bytes + 6, "gh", 2);
    assert_memory_equal(bytes, "ij", 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cursor__over_pieces),    cmocka_unit_test(cursor__too_much),
        cmocka_unit_test(inbox__given_by_halves), cmocka_unit_test(inbox__more_than_was_given),
        cmocka_unit_test(outbox__around_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
