// SPDX-License-Identifier: BSD-2-Clause
#include "base/tests/test.h"
#include "small_run.h"

static struct small_run small;

// What is missing goes before the next message, though that waits for the same place in the send queue.
static void alb_run_partial__sends_again_behind_a_full_send_queue(void **state)
{
    small_run_go(&small,
                 "[network]\nhosts = 2\n[switch]\nport_buffer = 0\n[host]\npaths = 1\n"
                 "[workload]\nkind = pairs\nhosts = 0\nto = 1\nsize = 1M\nmessages = 200\ndepth = 40\n"
                 "unreliable = yes\npartial = 50us\nretries = 1\n"
                 "[fault loss]\ncables = h0-*\nway = up\nkind = loss\nvalue = 1e-3\n",
                 false);
    assert_int_equal(small.run.end, ALB_RUN_DONE);
    assert_int_equal(small.run.tasks_failed, 0);
    small_run_end(&small);
}

// Hundreds of messages leave within the time after which the sender looks at the first.
static void alb_run_partial__forgets_no_message_that_is_not_whole(void **state)
{
    small_run_go(&small,
                 "[network]\nhosts = 2\n[workload]\nkind = pairs\nhosts = 0\nto = 1\nsize = 1000\nmessages = 1000\n"
                 "depth = 500\nunreliable = yes\npartial = 50us\n"
                 "[fault loss]\ncables = h0-*\nway = up\nkind = loss\nvalue = 5%\n",
                 false);
    assert_int_equal(small.run.end, ALB_RUN_DONE);
    assert_int_equal(small.run.tasks_failed, 0);
    small_run_end(&small);
}

// With a retry each is sent twice, when it has been asked for.
static void alb_run_partial__gives_up_when_it_has_sent_again(void **state)
{
    small_run_go(&small,
                 "[network]\nhosts = 2\n[workload]\nkind = pairs\nhosts = 0\nto = 1\nsize = 1000\nmessages = 100\n"
                 "depth = 100\nunreliable = yes\npartial = 20us\nretries = 1\n"
                 "[fault]\nkind = death\ncables = h0-*\nat = 0us\n",
                 false);
    assert_int_equal(small.run.end, ALB_RUN_DONE);
    assert_int_equal(small.run.tasks_failed, 100);
    assert_int_equal(small.run.resent, 100);
    small_run_end(&small);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alb_run_partial__sends_again_behind_a_full_send_queue),
        cmocka_unit_test(alb_run_partial__forgets_no_message_that_is_not_whole),
        cmocka_unit_test(alb_run_partial__gives_up_when_it_has_sent_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
