// SPDX-License-Identifier: BSD-2-Clause
// What a thread of the program does when it polls or posts, and what it leaves to its next poll.
#include "device/clock.h"
#include "device/drive.h"

#include "device/tests/pair.h"

#include <unistd.h>

// The device thread must not take over from a program whose polls take long because they send much.
static void alb_device_poll__is_one_as_long_as_it_sends(void **state)
{
    struct pair pair;
    pair_open(&pair, "127.92.2.1", "127.92.2.1", NULL);
    struct side *a = &pair.side[0], *b = &pair.side[1];
    struct alb_device *device = a->device;
    const struct alb_edge_stats *edge = &device->board.header->edge_stats;
    bool has_sent = false;
    for (int i = 0; i < 1000 && !has_sent; i++) {
        alb_token_lock(&b->device->token); // so that no answer comes in that poll, which would count as active later
        alb_token_lock(&device->token);    // so that the post is left to the poll
        side_write(a, b, 0, 1 << 20);
        uint64_t messages = alb_edge_counted(edge, ALB_EDGE_tx_messages);
        uint64_t drives = alb_edge_counted(edge, ALB_EDGE_drives_by_thread);
        alb_token_release(&device->token);
        alb_device_poll(device);
        alb_token_lock(&device->token);
        alb_time polled_at = atomic_load(&device->polled_at), began_at = atomic_load(&device->active_at);
        const struct alb_tx *last = &device->sender.tx; // its batch may be what was left, which takes no time
        has_sent = alb_edge_counted(edge, ALB_EDGE_tx_messages) > messages + 1 &&
                   alb_edge_counted(edge, ALB_EDGE_drives_by_thread) == drives && last->burst_count > 0 &&
                   last->bursts->segment_count * last->bursts->segment_bytes >= 16384;
        alb_token_release(&device->token);
        alb_token_release(&b->device->token);
        assert_true(!has_sent || polled_at > began_at);
        assert_int_equal(side_wait(a).status, ALB_WC_SUCCESS);
    }
    assert_true(has_sent);
    pair_close(&pair);
}

// A moment to come is recent however long the test waits for a processor, and for its system calls.
static void be_poller(struct alb_device *device)
{
    atomic_store(&device->polled_at, alb_clock_now() + 50 * ALB_NS_PER_MS);
}

// Posts while nothing can leave. True if that was left to a poll.
static bool is_left_to_poll(struct pair *pair, alb_time polled_at, alb_time poller_kicked_at)
{
    struct alb_device *device = pair->side[0].device;
    atomic_store(&device->armed_until, 0);
    atomic_store(&device->polled_at, polled_at);
    atomic_store(&device->poller_kicked_at, poller_kicked_at);
    uint32_t left = atomic_load(&device->kicks_left);
    side_write(&pair->side[0], &pair->side[1], 0, 8);
    return atomic_load(&device->kicks_left) == left + 1;
}

// Moments to come are recent however long the test waits for a processor.
static void alb_device_kick__is_left_to_a_poller(void **state)
{
    struct pair pair;
    pair_open(&pair, "127.92.2.1", "127.92.2.1", NULL);
    struct alb_device *device = pair.side[0].device;
    const alb_time recent = alb_clock_now() + 100 * ALB_NS_PER_S, long_ago = 1;
    alb_token_lock(&device->token);
    assert_false(is_left_to_poll(&pair, 0, 0));
    assert_false(is_left_to_poll(&pair, long_ago, long_ago));
    assert_int_equal(atomic_load(&device->poller_kicked_at), 0);
    assert_true(is_left_to_poll(&pair, recent, 0));
    assert_int_not_equal(atomic_load(&device->poller_kicked_at), 0);
    assert_true(is_left_to_poll(&pair, long_ago, recent));
    atomic_store(&device->polled_at, 0);
    alb_drive_release(device);
    for (int i = 0; i < 4; i++)
        assert_int_equal(side_wait(&pair.side[0]).status, ALB_WC_SUCCESS);
    pair_close(&pair);
}

// Who polls a queue that is armed is about to sleep: what is posted next leaves at once.
static void alb_device_poll_once__is_none_that_another_follows(void **state)
{
    struct pair pair;
    pair_open(&pair, "127.92.2.1", "127.92.2.1", NULL);
    struct alb_device *device = pair.side[0].device;
    side_receive(&pair.side[1], 0, 64);
    alb_device_poll(device);
    assert_int_not_equal(atomic_load(&device->polled_at), 0);
    alb_device_poll_once(device, false);
    assert_int_equal(atomic_load(&device->polled_at), 0);
    side_send(&pair.side[0], 0, 64);
    assert_int_equal(atomic_load(&device->poller_kicked_at), 0);
    alb_time until = alb_clock_now() + 10 * ALB_NS_PER_S;
    while (alb_cq_is_empty(pair.side[0].cq) && alb_clock_now() < until) { // also by looking at what has come
        alb_device_poll_once(device, false);
        assert_int_equal(atomic_load(&device->polled_at), 0);
    }
    assert_int_equal(side_wait(&pair.side[0]).status, ALB_WC_SUCCESS);
    pair_close(&pair);
}

// A poll whose timers are due looks at the sockets before they judge; what it finds there is acknowledged with what the
// program posts next, as what any other poll finds.
static void alb_device_poll__does_not_answer_what_a_timer_has_looked_for(void **state)
{
    struct pair pair;
    pair_open(&pair, "127.92.2.1", "127.92.2.1", NULL);
    struct side *a = &pair.side[0], *b = &pair.side[1];
    const struct alb_edge_stats *edge = &b->device->board.header->edge_stats;
    pair_write_and_check(&pair, 64, side_wait);
    bool has_left_it = false;
    for (int i = 0; i < 100 && !has_left_it; i++) {
        alb_token_lock(&b->device->token);
        be_poller(b->device); // or the thread waits for the token
        memset(a->memory, i + 1, 64);
        side_write(a, b, 0, 64);
        side_pass_by(a);
        while (alb_engine_deadline(b->device->engine) > alb_clock_now())
            usleep(100);
        uint64_t drives = alb_edge_counted(edge, ALB_EDGE_drives_by_thread);
        uint64_t sent = alb_edge_counted(edge, ALB_EDGE_tx_messages);
        bool had_nothing = !alb_engine_wants_tx(b->device->engine);
        alb_token_release(&b->device->token);
        alb_device_poll(b->device);
        alb_token_lock(&b->device->token);
        has_left_it = had_nothing && memcmp(a->memory, b->memory, 64) == 0 && alb_engine_wants_tx(b->device->engine) &&
                      alb_edge_counted(edge, ALB_EDGE_tx_messages) == sent &&
                      alb_edge_counted(edge, ALB_EDGE_drives_by_thread) == drives;
        alb_token_release(&b->device->token);
        side_pass_by(b);
        assert_int_equal(side_wait(a).status, ALB_WC_SUCCESS);
    }
    assert_true(has_left_it);
    pair_close(&pair);
}

// So that the receiver's next poll takes it in, as a rule, and not its device thread.
static void send_to_poller(struct side *from, struct side *to)
{
    alb_token_lock(&to->device->token);
    side_send(from, 0, 64);
    side_pass_by(from);
    be_poller(to->device);
    alb_token_release(&to->device->token);
}

static void arm(struct alb_device *device)
{
    alb_device_note_armed(device, false);
}

static void poll_once(struct alb_device *device)
{
    alb_device_poll_once(device, false);
}

// Polls as a program does that has the device to itself; whether anything was sent by that, and nothing by the thread.
static bool poll_sends(struct side *side, void (*poll)(struct alb_device *), bool *is_alone)
{
    const struct alb_edge_stats *edge = &side->device->board.header->edge_stats;
    uint64_t drives = alb_edge_counted(edge, ALB_EDGE_drives_by_thread);
    uint64_t sent = alb_edge_counted(edge, ALB_EDGE_tx_messages);
    poll(side->device);
    alb_token_lock(&side->device->token);
    bool has_sent = alb_edge_counted(edge, ALB_EDGE_tx_messages) != sent;
    *is_alone &= alb_edge_counted(edge, ALB_EDGE_drives_by_thread) == drives;
    if (side->device->answered_until != 0)
        side->device->answered_until += ALB_NS_PER_S; // however long the test waits for a processor
    alb_token_release(&side->device->token);
    return has_sent;
}

// A program that polls until nothing is left, and answers then. One that does not answer polls again, or arms the queue
// and sleeps. (On a busy host the time may be over before.)
static void alb_device_poll__leaves_an_acknowledgement_to_the_answer(void **state)
{
    enum { ANSWERS, POLLS_AGAIN, ARMS, WAYS };
    struct pair pair;
    pair_open(&pair, "127.92.2.1", "127.92.2.1", NULL);
    struct side *a = &pair.side[0], *b = &pair.side[1];
    pair_write_and_check(&pair, 64, side_wait);
    uint32_t seen[WAYS] = {0};
    for (int i = 0; i < 1000 && (!seen[ANSWERS] || !seen[POLLS_AGAIN] || !seen[ARMS]); i++) {
        int way = i % WAYS, answers = way == ANSWERS;
        bool is_alone = true;
        side_receive(a, 64, 64);
        side_receive(b, 0, 64);
        send_to_poller(a, b);
        bool sends = poll_sends(b, alb_device_poll, &is_alone) || alb_cq_is_empty(b->cq) ||
                     poll_sends(b, alb_device_poll, &is_alone);
        if (answers)
            side_send(b, 64, 64);
        bool sends_then = poll_sends(b, way == ARMS ? arm : alb_device_poll, &is_alone);
        seen[way] += is_alone && !sends && sends_then;
        for (int j = 0; j < 1 + answers; j++)
            assert_int_equal(side_wait(b).status, ALB_WC_SUCCESS);
        for (int j = 0; j < 1 + answers; j++)
            assert_int_equal(side_wait(a).status, ALB_WC_SUCCESS);
        if (!answers) { // its receive stays for the next one
            side_send(b, 64, 64);
            assert_int_equal(side_wait(b).status, ALB_WC_SUCCESS);
            assert_int_equal(side_wait(a).status, ALB_WC_SUCCESS);
        }
    }
    assert_true(seen[ANSWERS] && seen[POLLS_AGAIN] && seen[ARMS]);
    pair_close(&pair);
}

// Only the second of two polls is there to find nothing, and only if another one is to follow.
static void alb_device_poll_once__looks_and_sends(void **state)
{
    struct pair pair;
    pair_open(&pair, "127.92.2.1", "127.92.2.1", NULL);
    struct side *a = &pair.side[0], *b = &pair.side[1];
    pair_write_and_check(&pair, 64, side_wait);
    bool has_sent = false;
    for (int i = 0; i < 1000 && !has_sent; i++) {
        bool is_alone = true;
        side_receive(b, 0, 64);
        send_to_poller(a, b);
        has_sent = !poll_sends(b, alb_device_poll, &is_alone) && !alb_cq_is_empty(b->cq) &&
                   poll_sends(b, poll_once, &is_alone) && is_alone;
        assert_int_equal(side_wait(b).status, ALB_WC_SUCCESS);
        assert_int_equal(side_wait(a).status, ALB_WC_SUCCESS);
    }
    assert_true(has_sent);
    pair_close(&pair);
}

// What was posted behind a poll waits for the next one; the program may sleep instead.
static void alb_device_note_armed__sends_what_was_left_to_a_poll(void **state)
{
    struct pair pair;
    pair_open(&pair, "127.92.2.1", "127.92.2.1", NULL);
    struct side *a = &pair.side[0], *b = &pair.side[1];
    pair_write_and_check(&pair, 64, side_wait);
    bool has_sent = false;
    for (int i = 0; i < 1000 && !has_sent; i++) {
        bool is_alone = true;
        side_receive(b, 0, 64);
        alb_device_poll(a->device);
        be_poller(a->device);
        side_send(a, 64, 64);
        has_sent = poll_sends(a, arm, &is_alone) && is_alone;
        assert_int_equal(side_wait(a).status, ALB_WC_SUCCESS);
        assert_int_equal(side_wait(b).status, ALB_WC_SUCCESS);
    }
    assert_true(has_sent);
    pair_close(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alb_device_poll__is_one_as_long_as_it_sends),
        cmocka_unit_test(alb_device_kick__is_left_to_a_poller),
        cmocka_unit_test(alb_device_poll_once__is_none_that_another_follows),
        cmocka_unit_test(alb_device_poll__does_not_answer_what_a_timer_has_looked_for),
        cmocka_unit_test(alb_device_poll__leaves_an_acknowledgement_to_the_answer),
        cmocka_unit_test(alb_device_poll_once__looks_and_sends),
        cmocka_unit_test(alb_device_note_armed__sends_what_was_left_to_a_poll),
    };
    pair_device_name = "albedo0";
    return cmocka_run_group_tests_name("poll", tests, NULL, NULL);
}
