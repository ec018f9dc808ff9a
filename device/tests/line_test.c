// SPDX-License-Identifier: BSD-2-Clause
// The delay line: order, holding, bounds.
#include "device/line.h"

#include "base/tests/test.h"

#include <string.h>

// A burst of one segment whose bytes are one letter.
static struct alb_line_datagram *datagram(struct alb_line *line, char letter)
{
    char text[3] = {letter, letter, letter};
    struct iovec iov[] = {{text, 1}, {text + 1, 2}};
    struct alb_segment segment = {.iov_first = 0, .iov_count = 2, .length = 3};
    struct alb_burst burst = {.segment_count = 1};
    struct alb_tx tx = {.iov = iov, .segments = &segment};
    struct alb_line_datagram *copy = alb_line_copy(line, &tx, &burst, &segment, NULL);
    assert_non_null(copy);
    assert_int_equal(copy->length, 3);
    assert_memory_equal(copy->bytes, text, 3);
    return copy;
}

// The letters that are due, in order.
static const char *due(struct alb_line *line, alb_time now)
{
    static char letters[64];
    size_t count = 0;
    struct alb_line_datagram *copy;
    while ((copy = alb_line_pop_due(line, now))) {
        letters[count++] = (char)copy->bytes[0];
        alb_line_free(line, copy);
    }
    letters[count] = 0;
    return letters;
}

static void alb_line__by_time_then_order(void **state)
{
    struct alb_line line;
    assert_int_equal(alb_line_init(&line), 0);
    assert_int_equal(alb_line_next_due(&line), ALB_TIME_NEVER);
    alb_line_add(&line, datagram(&line, 'c'), 30);
    alb_line_add(&line, datagram(&line, 'a'), 10);
    alb_line_add(&line, datagram(&line, 'd'), 30);
    alb_line_add(&line, datagram(&line, 'b'), 20);
    alb_line_add(&line, datagram(&line, 'e'), 30);
    assert_int_equal(alb_line_next_due(&line), 10);
    assert_string_equal(due(&line, 9), "");
    assert_string_equal(due(&line, 20), "ab");
    assert_int_equal(alb_line_next_due(&line), 30);
    assert_string_equal(due(&line, 100), "cde");
    assert_int_equal(line.bytes, 0);
    alb_line_fini(&line);
}

static void alb_line_hold__until_passed(void **state)
{
    struct alb_line line;
    assert_int_equal(alb_line_init(&line), 0);
    alb_line_hold(&line, datagram(&line, 'x'), 2, 0, 100);
    alb_line_hold(&line, datagram(&line, 'y'), 1, 50, 100);
    alb_line_passed(&line, 110);
    assert_string_equal(due(&line, 110), ""); // y is let go, and delayed by 50 from now on
    alb_line_passed(&line, 120);
    assert_string_equal(due(&line, 120), "x");
    assert_int_equal(alb_line_next_due(&line), 160);
    assert_string_equal(due(&line, 160), "y");
    alb_line_fini(&line);
}

static void alb_line_hold__not_for_ever(void **state)
{
    struct alb_line line;
    assert_int_equal(alb_line_init(&line), 0);
    alb_line_hold(&line, datagram(&line, 'x'), 4, 7, 100);
    assert_int_equal(alb_line_next_due(&line), 100 + ALB_FAULTS_HOLD_NS_MAX);
    assert_string_equal(due(&line, 100 + ALB_FAULTS_HOLD_NS_MAX), ""); // its delay begins now
    assert_string_equal(due(&line, 107 + ALB_FAULTS_HOLD_NS_MAX), "x");
    alb_line_fini(&line);
}

static void alb_line_copy__is_bounded(void **state)
{
    struct alb_line line;
    assert_int_equal(alb_line_init(&line), 0);
    for (uint32_t i = 0; i < ALB_LINE_DATAGRAMS_MAX; i++)
        alb_line_add(&line, datagram(&line, 'z'), 1000 - i % 1000);
    struct alb_segment segment = {.iov_count = 0};
    struct alb_burst burst = {.segment_count = 1};
    struct alb_tx tx = {.segments = &segment};
    assert_null(alb_line_copy(&line, &tx, &burst, &segment, NULL));
    struct alb_line_datagram *first = alb_line_pop_due(&line, 2000);
    alb_line_free(&line, first);
    alb_line_add(&line, datagram(&line, 'z'), 5);
    alb_time before = 0; // what comes out is ordered
    for (uint32_t i = 0; i < ALB_LINE_DATAGRAMS_MAX; i++) {
        struct alb_line_datagram *next = alb_line_pop_due(&line, 2000);
        assert_non_null(next);
        assert_true(next->due >= before);
        before = next->due;
        alb_line_free(&line, next);
    }
    assert_null(alb_line_pop_due(&line, 2000));
    alb_line_fini(&line);
}

static void alb_line_fini__forgets(void **state)
{
    struct alb_line line;
    assert_int_equal(alb_line_init(&line), 0);
    alb_line_add(&line, datagram(&line, 'a'), 1);
    alb_line_hold(&line, datagram(&line, 'b'), 1, 0, 1);
    alb_line_fini(&line); // the leak checker watches
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alb_line__by_time_then_order), cmocka_unit_test(alb_line_hold__until_passed),
        cmocka_unit_test(alb_line_hold__not_for_ever),  cmocka_unit_test(alb_line_copy__is_bounded),
        cmocka_unit_test(alb_line_fini__forgets),
    };
    return cmocka_run_group_tests_name("line", tests, NULL, NULL);
}
