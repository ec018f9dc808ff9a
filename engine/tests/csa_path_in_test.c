// SPDX-License-Identifier: BSD-2-Clause
#include "engine/csa_path.h"

#include "base/prng.h"
#include "base/tests/test.h"

#include <string.h>

#define US ALB_NS_PER_US
#define MS ALB_NS_PER_MS

static uint32_t lost_now; // by the last packet

static enum alb_path_arrival come(struct alb_path_in *in, alb_psn sequence, alb_time sent, alb_time now)
{
    return alb_path_in_packet(in, sequence & ALB_PSN_MASK, (uint32_t)sent, false, now, &lost_now);
}

// count packets from first on, 1 us apart, each 50 us under way.
static alb_time flow(struct alb_path_in *in, alb_psn first, uint32_t count, alb_time now)
{
    for (uint32_t i = 0; i < count; i++, now += US)
        assert_int_equal(come(in, first + i, now - 50 * US, now), ALB_PATH_ARRIVAL_NEXT);
    return now;
}

static void packet__in_order(void **state)
{
    struct alb_path_in in = {0};
    assert_false(alb_path_in_has_news(&in));
    assert_int_equal(alb_path_in_deadline(&in), ALB_TIME_NEVER);
    flow(&in, 0xfffff0, 1000, MS);
    assert_int_equal(in.settled, (0xfffff0 + 1000) & ALB_PSN_MASK);
    assert_int_equal(in.received, 1000);
    assert_int_equal(in.came, 0);
    assert_int_equal(alb_path_in_deadline(&in), ALB_TIME_NEVER);
    assert_true(alb_path_in_has_news(&in));
}

// What was given up without having been in the window at all is remembered as lost, too, and may still come: once.
static void packet__far_behind_a_gap(void **state)
{
    enum { UNSEEN = 5 }; // beyond the 64 that the window has shown
    struct alb_path_in in = {0};
    alb_time now = flow(&in, 100, 10, MS);
    in.lateness_ns = MS;
    assert_int_equal(come(&in, 110 + 63 + 64 + UNSEEN, now - 50 * US, now), ALB_PATH_ARRIVAL_GAP);
    assert_int_equal(lost_now, 64 + UNSEEN);
    assert_int_equal(in.settled, 110 + 64 + UNSEEN);
    for (alb_psn sequence = in.settled - 32; sequence != in.settled; sequence++) {
        assert_int_equal(come(&in, sequence, now, now), ALB_PATH_ARRIVAL_LATE);
        assert_int_equal(come(&in, sequence, now, now), ALB_PATH_ARRIVAL_AGAIN);
    }
}

static void packet__a_gap_is_lost_at_once(void **state)
{
    struct alb_path_in in = {0};
    alb_time now = flow(&in, 100, 10, MS);
    assert_int_equal(come(&in, 113, now - 50 * US, now), ALB_PATH_ARRIVAL_GAP);
    assert_int_equal(lost_now, 3);
    assert_int_equal(in.settled, 114);
    assert_int_equal(alb_path_in_deadline(&in), ALB_TIME_NEVER);
    assert_int_equal(come(&in, 114, now, now), ALB_PATH_ARRIVAL_NEXT);
    assert_int_equal(lost_now, 0);
}

static void packet__what_came_late_teaches_patience(void **state)
{
    struct alb_path_in in = {0};
    alb_time now = flow(&in, 0, 10, MS);
    assert_int_equal(come(&in, 11, now - 50 * US, now), ALB_PATH_ARRIVAL_GAP);
    assert_int_equal(lost_now, 1);
    // Sent 1 us before the other one, it comes 40 us after it: had it not been late, it would have come 1 us before.
    assert_int_equal(come(&in, 10, now - 51 * US, now + 40 * US), ALB_PATH_ARRIVAL_LATE);
    assert_int_equal(lost_now, 0);
    assert_int_equal(in.lateness_ns, 41 * US * 5 / 4);
    assert_int_equal(in.received, 12);

    // The next gap waits as long.
    now += 100 * US;
    assert_int_equal(come(&in, 13, now - 50 * US, now), ALB_PATH_ARRIVAL_GAP);
    assert_int_equal(lost_now, 0);
    assert_int_equal(in.settled, 12);
    assert_int_equal(alb_path_in_deadline(&in), now + in.lateness_ns);
    assert_int_equal(come(&in, 14, now - 49 * US, now + US), ALB_PATH_ARRIVAL_NEXT);
    assert_int_equal(alb_path_in_deadline(&in), now + in.lateness_ns);
    assert_int_equal(alb_path_in_settle(&in, now + in.lateness_ns - 1), 0);
    assert_int_equal(alb_path_in_settle(&in, now + in.lateness_ns), 1);
    assert_int_equal(in.settled, 15);
    assert_int_equal(alb_path_in_deadline(&in), ALB_TIME_NEVER);
}

static void packet__a_waiting_gap_is_filled(void **state)
{
    struct alb_path_in in = {.lateness_ns = 100 * US};
    alb_time now = flow(&in, 0, 10, MS);
    assert_int_equal(come(&in, 12, now - 48 * US, now), ALB_PATH_ARRIVAL_GAP);
    assert_int_equal(come(&in, 10, now - 50 * US, now + 10 * US), ALB_PATH_ARRIVAL_LATE);
    assert_int_equal(in.settled, 11);
    assert_int_equal(alb_path_in_deadline(&in), now + in.lateness_ns);
    assert_int_equal(in.lateness_ns, 100 * US); // 12 us late is less than that
    assert_int_equal(come(&in, 11, now - 49 * US, now + 90 * US), ALB_PATH_ARRIVAL_LATE);
    assert_int_equal(in.lateness_ns, 91 * US * 5 / 4);
    assert_int_equal(in.settled, 13);
    assert_int_equal(in.came, 0);
    assert_int_equal(alb_path_in_deadline(&in), ALB_TIME_NEVER);
}

static void packet__a_younger_gap_waits_for_itself(void **state)
{
    struct alb_path_in in = {.lateness_ns = 100 * US};
    alb_time now = flow(&in, 0, 10, MS);
    assert_int_equal(come(&in, 11, now, now), ALB_PATH_ARRIVAL_GAP);
    assert_int_equal(come(&in, 13, now + 60 * US, now + 60 * US), ALB_PATH_ARRIVAL_GAP);
    assert_int_equal(alb_path_in_settle(&in, now + 100 * US), 1);
    assert_int_equal(in.settled, 12);
    assert_int_equal(alb_path_in_deadline(&in), now + 160 * US);
    // A driver that comes late settles all that is due.
    assert_int_equal(come(&in, 15, now + 120 * US, now + 120 * US), ALB_PATH_ARRIVAL_GAP);
    assert_int_equal(alb_path_in_settle(&in, now + MS), 2);
    assert_int_equal(in.settled, 16);
}

static void packet__again(void **state)
{
    struct alb_path_in in = {.lateness_ns = 100 * US};
    alb_time now = flow(&in, 0, 40, MS);
    uint32_t received = in.received;
    assert_int_equal(come(&in, 39, now, now), ALB_PATH_ARRIVAL_AGAIN);
    assert_int_equal(come(&in, 40 - 32, now, now), ALB_PATH_ARRIVAL_AGAIN);
    assert_int_equal(come(&in, 42, now, now), ALB_PATH_ARRIVAL_GAP);
    assert_int_equal(come(&in, 42, now, now), ALB_PATH_ARRIVAL_AGAIN);
    assert_int_equal(come(&in, 40, now, now), ALB_PATH_ARRIVAL_LATE);
    assert_int_equal(come(&in, 40, now, now), ALB_PATH_ARRIVAL_AGAIN);
    assert_int_equal(in.lateness_ns, 100 * US);
    assert_int_equal(in.received, received + 2);
    // Late after its gap was settled, and then once more.
    assert_int_equal(alb_path_in_settle(&in, now + MS), 1);
    assert_int_equal(come(&in, 41, now, now), ALB_PATH_ARRIVAL_LATE);
    assert_int_equal(come(&in, 41, now, now), ALB_PATH_ARRIVAL_AGAIN);
    assert_int_equal(in.received, received + 3);
}

static void packet__first_ones_swapped(void **state)
{
    struct alb_path_in in = {0};
    assert_int_equal(come(&in, 1, MS, MS + 50 * US), ALB_PATH_ARRIVAL_NEXT);
    assert_int_equal(come(&in, 0, MS, MS + 52 * US), ALB_PATH_ARRIVAL_LATE);
    assert_int_equal(come(&in, 0, MS, MS + 52 * US), ALB_PATH_ARRIVAL_AGAIN);
    assert_int_equal(in.settled, 2);
    assert_int_equal(in.received, 2);
}

static void packet__jump_beyond_the_window(void **state)
{
    struct alb_path_in in = {.lateness_ns = 100 * US};
    alb_time now = flow(&in, 0, 10, MS);
    come(&in, 11, now, now);
    come(&in, 12, now, now);
    assert_int_equal(come(&in, 10 + 70, now, now), ALB_PATH_ARRIVAL_GAP);
    // 10 and 13 to 16 fell out of the window that ends with 80.
    assert_int_equal(lost_now, 5);
    assert_int_equal(in.settled, 17);
    assert_int_equal(come(&in, 16, now, now), ALB_PATH_ARRIVAL_LATE);
    assert_int_equal(come(&in, 12, now, now), ALB_PATH_ARRIVAL_AGAIN);
    assert_int_equal(come(&in, 17, now, now), ALB_PATH_ARRIVAL_LATE);
    assert_int_equal(in.settled, 18);
    assert_int_equal(come(&in, 1018, now, now), ALB_PATH_ARRIVAL_GAP);
    assert_int_equal(lost_now, 1018 - 63 - 18 - 1);
    assert_int_equal(alb_path_in_settle(&in, now + MS), 63);
    assert_int_equal(in.settled, 1019);
}

static void packet__jump_over_what_has_come(void **state)
{
    struct alb_path_in in = {.lateness_ns = 100 * US};
    alb_time now = flow(&in, 0, 10, MS);
    for (alb_psn sequence = 11; sequence < 30; sequence++)
        come(&in, sequence, now, now);
    assert_int_equal(come(&in, 10 + 64, now, now), ALB_PATH_ARRIVAL_GAP);
    assert_int_equal(lost_now, 1);
    assert_int_equal(in.settled, 30);
    assert_int_equal(come(&in, 30, now, now), ALB_PATH_ARRIVAL_LATE);
    assert_int_equal(in.settled, 31);
    assert_int_equal(alb_path_in_settle(&in, now + MS), 74 - 31);
    assert_int_equal(in.settled, 75);
}

static void packet__jump_at_the_edge_of_memory(void **state)
{
    // Of what left the window the last 32 are remembered, whether they lay in it or beyond it.
    struct alb_path_in in = {0};
    alb_time now = flow(&in, 0, 10, MS);
    in.lateness_ns = MS;
    for (alb_psn sequence = 11; sequence < 74; sequence++)
        come(&in, sequence, now, now);
    assert_int_equal(come(&in, 10 + 64 + 63 + 10, now, now), ALB_PATH_ARRIVAL_GAP);
    assert_int_equal(in.settled, 84);
    assert_int_equal(lost_now, 1 + 10);
    assert_int_equal(come(&in, 74, now, now), ALB_PATH_ARRIVAL_LATE);
    assert_int_equal(come(&in, 73, now, now), ALB_PATH_ARRIVAL_AGAIN);
    assert_int_equal(come(&in, 84 - 32, now, now), ALB_PATH_ARRIVAL_AGAIN);
    // As many beyond it as are remembered: none of those in it is.
    assert_int_equal(come(&in, 84 + 64 + 63 + 32, now, now), ALB_PATH_ARRIVAL_GAP);
    assert_int_equal(in.settled, 84 + 64 + 32 + 64 - 64);
    assert_int_equal(come(&in, in.settled - 32, now, now), ALB_PATH_ARRIVAL_LATE);
}

static void packet__jump_that_is_just_not_remembered(void **state)
{
    struct alb_path_in in = {0};
    flow(&in, 0, 64, MS);
    in.lateness_ns = MS;
    for (alb_psn sequence = 65; sequence < 128; sequence++)
        come(&in, sequence, MS, MS);
    assert_int_equal(come(&in, 64 + 64 + 32 + 63, MS, 2 * MS), ALB_PATH_ARRIVAL_GAP);
    assert_int_equal(lost_now, 1 + 32);
    assert_int_equal(in.lost, UINT32_MAX); // the 32 that lie between what came and the new window
}

static void packet__fills_the_gap_before_a_full_window(void **state)
{
    struct alb_path_in in = {.lateness_ns = MS};
    alb_time now = flow(&in, 0, 10, MS);
    for (alb_psn sequence = 11; sequence < 10 + 64; sequence++)
        come(&in, sequence, now, now);
    assert_int_equal(in.settled, 10);
    assert_int_equal(come(&in, 10, now, now), ALB_PATH_ARRIVAL_LATE);
    assert_int_equal(in.settled, 10 + 64);
    assert_int_equal(in.came, 0);
    assert_int_equal(alb_path_in_deadline(&in), ALB_TIME_NEVER);
}

// The age of a gap stops at four seconds, and does not begin anew.
static void packet__a_gap_that_nobody_settled(void **state)
{
    struct alb_path_in in = {.lateness_ns = MS};
    alb_time now = flow(&in, 0, 10, MS);
    come(&in, 11, now, now);
    come(&in, 12, now, now + 3000 * MS);
    come(&in, 13, now, now + 6000 * MS);
    assert_int_equal(in.gap_age_ns, UINT32_MAX);
    assert_int_equal(alb_path_in_settle(&in, now + 6000 * MS), 1);
}

static void packet__far_behind_teaches_nothing(void **state)
{
    struct alb_path_in in = {0};
    alb_time now = flow(&in, 0, 5000, MS);
    assert_int_equal(come(&in, 5000 - 4097, now - MS, now), ALB_PATH_ARRIVAL_LATE);
    assert_int_equal(in.lateness_ns, 0);
    assert_int_equal(come(&in, 5000 - 4096, now - MS, now), ALB_PATH_ARRIVAL_LATE);
    assert_in_range(in.lateness_ns, MS, 2 * MS);
    assert_int_equal(in.received, 5001);
}

static void packet__far_behind_damages_nothing(void **state)
{
    struct alb_path_in in = {0};
    alb_time now = flow(&in, 0, 100, MS);
    struct alb_path_in before = in;
    assert_int_equal(come(&in, 100 - 5000, now, now), ALB_PATH_ARRIVAL_LATE);
    assert_int_equal(come(&in, 100 - (1 << 22), now, now), ALB_PATH_ARRIVAL_LATE);
    assert_int_equal(come(&in, 100 - (1 << 23), now, now), ALB_PATH_ARRIVAL_LATE);
    assert_int_equal(lost_now, 0);
    before.has_stray = in.has_stray;
    before.stray_next = in.stray_next;
    assert_memory_equal(&in, &before, sizeof(in));
}

// The peer has connected again, and its numbers are others.
static void packet__two_in_a_row_far_behind_begin_anew(void **state)
{
    struct alb_path_in in = {0};
    alb_time now = flow(&in, 10000, 100, MS);
    assert_int_equal(come(&in, 300, now, now), ALB_PATH_ARRIVAL_LATE);
    assert_int_equal(come(&in, 302, now, now), ALB_PATH_ARRIVAL_LATE); // none of them is the one behind the other
    assert_int_equal(come(&in, 10100, now, now), ALB_PATH_ARRIVAL_NEXT);
    assert_int_equal(come(&in, 303, now, now), ALB_PATH_ARRIVAL_LATE); // nor do they come in a row
    assert_int_equal(in.received, 101);
    assert_int_equal(come(&in, 304, now, now), ALB_PATH_ARRIVAL_GAP);
    assert_int_equal(lost_now, 0);
    assert_int_equal(in.settled, 305);
    assert_int_equal(in.received, 102);
    assert_int_equal(come(&in, 305, now, now), ALB_PATH_ARRIVAL_NEXT);
}

// A straggler of the old numbers is one alone again, though its own follows that of the two.
static void packet__far_behind_after_it_has_begun_anew(void **state)
{
    struct alb_path_in in = {0};
    alb_time now = flow(&in, 1 << 20, 100, MS);
    assert_int_equal(come(&in, 1 << 18, now, now), ALB_PATH_ARRIVAL_LATE);
    assert_int_equal(come(&in, (1 << 18) + 1, now, now), ALB_PATH_ARRIVAL_GAP);
    assert_int_equal(come(&in, (1 << 16) + 2, now, now), ALB_PATH_ARRIVAL_LATE);
    assert_int_equal(in.settled, (1 << 18) + 2);
}

static void packet__far_ahead_begins_anew(void **state)
{
    struct alb_path_in in = {0};
    alb_time now = flow(&in, 0, 100, MS);
    alb_psn far = 101 + (1 << 22);
    assert_int_equal(come(&in, far, now, now), ALB_PATH_ARRIVAL_GAP);
    assert_int_equal(lost_now, 0);
    assert_int_equal(in.settled, far + 1);
    assert_int_equal(in.received, 101);
    assert_int_equal(come(&in, far + 1, now, now), ALB_PATH_ARRIVAL_NEXT);
    // Also with a gap that waits.
    in = (struct alb_path_in){.lateness_ns = MS};
    now = flow(&in, 0, 10, MS);
    come(&in, 12, now, now);
    assert_int_equal(come(&in, far, now, now), ALB_PATH_ARRIVAL_GAP);
    assert_int_equal(in.settled, far + 1);
    assert_int_equal(alb_path_in_deadline(&in), ALB_TIME_NEVER);
    assert_int_equal(come(&in, far + 2, now, now), ALB_PATH_ARRIVAL_GAP);
    assert_int_equal(alb_path_in_settle(&in, now + MS), 1);
    assert_int_equal(in.settled, far + 3);
    // One less is a loss.
    in = (struct alb_path_in){0};
    now = flow(&in, 0, 100, MS);
    assert_int_equal(come(&in, 100 + (1 << 22), now, now), ALB_PATH_ARRIVAL_GAP);
    assert_int_equal(lost_now, 1 << 22);
}

static void packet__lateness_is_bounded(void **state)
{
    struct alb_path_in in = {0};
    alb_time now = flow(&in, 0, 100, MS);
    come(&in, 101, now, now);
    come(&in, 100, now, now + 45 * MS);
    assert_int_equal(in.lateness_ns, 50 * MS);
    in.lateness_ns = 0;
    come(&in, 103, now, now);
    come(&in, 102, now, now + 51 * MS); // too long to have been waited for
    assert_int_equal(in.lateness_ns, 0);
    in = (struct alb_path_in){0};
    flow(&in, 0, 100, MS);
    come(&in, 101, now, now);
    come(&in, 100, now, now + 50 * MS); // just not
    assert_int_equal(in.lateness_ns, 50 * MS);
    in.lateness_ns = 0;
    come(&in, 105, now + MS, now + MS);
    come(&in, 104, now + MS, now + MS); // in the same run of received packets
    assert_in_range(in.lateness_ns, 1, 20 * US);
    // A timestamp that makes no sense.
    in.lateness_ns = 0;
    come(&in, 107, 5, now);
    come(&in, 106, 5 + (1ull << 30), now);
    assert_in_range(in.lateness_ns, 1, 20 * US);
}

static void packet__patience_wears_off(void **state)
{
    struct alb_path_in in = {.lateness_ns = MS};
    alb_time now = flow(&in, 0, 1000, MS);
    assert_int_equal(in.lateness_ns, MS);
    now = flow(&in, 1000, 10000, now);
    assert_in_range(in.lateness_ns, MS / 3, MS * 2 / 3);
    flow(&in, 11000, 100000, now);
    assert_int_equal(in.lateness_ns, 0);
}

// Each 64 times 16 packets take a sixteenth off, until it is less than can be measured.
static void packet__patience_wears_off_in_steps(void **state)
{
    struct alb_path_in in = {.lateness_ns = 16 * US};
    alb_time now = flow(&in, 0, 64 * 16 - 1, MS);
    assert_int_equal(in.lateness_ns, 16 * US);
    now = flow(&in, 64 * 16 - 1, 1, now);
    assert_int_equal(in.lateness_ns, 15 * US);
    in = (struct alb_path_in){.lateness_ns = 10667}; // what is left is 10,001 ns
    now = flow(&in, 0, 64 * 16, now);
    assert_int_equal(in.lateness_ns, 10001);
    flow(&in, 64 * 16, 64 * 16, now);
    assert_int_equal(in.lateness_ns, 0);
    in = (struct alb_path_in){.lateness_ns = 10666}; // 10,000: it can just be measured
    flow(&in, 0, 64 * 16, now);
    assert_int_equal(in.lateness_ns, 10000);
}

static void packet__that_is_late_begins_the_steps_anew(void **state)
{
    struct alb_path_in in = {.lateness_ns = MS};
    alb_time now = flow(&in, 0, 64 * 16 - 2, MS);
    come(&in, 64 * 16 - 1, now - 50 * US, now);
    come(&in, 64 * 16 - 2, now - 50 * US, now + 10 * US);
    assert_int_equal(in.lateness_ns, MS);
    now = flow(&in, 64 * 16, 63 * 16 - 1, now + 20 * US); // the late one was the last of a step
    assert_int_equal(in.lateness_ns, MS);
    flow(&in, 127 * 16 - 1, 1, now);
    assert_int_equal(in.lateness_ns, MS - MS / 16);
}

static void packet__waiting_in_vain_wears_it_off_sooner(void **state)
{
    struct alb_path_in lossless = {.lateness_ns = MS}, lossy = {.lateness_ns = MS};
    alb_time now = 10 * MS;
    for (alb_psn sequence = 0; sequence < 4000; sequence++, now += 100 * US) {
        come(&lossless, sequence, now, now);
        if (sequence % 20 != 0)
            come(&lossy, sequence, now, now);
        alb_path_in_settle(&lossy, now);
    }
    assert_true(lossy.lateness_ns < lossless.lateness_ns);
}

// 3 % of the packets are passed by up to eight others: nearly nothing is taken for lost.
static void packet__steady_reordering_costs_little(void **state)
{
    struct alb_path_in in = {0};
    struct alb_prng prng;
    alb_prng_init(&prng, 7);
    alb_psn held = 0;
    uint32_t wait = 0, lost = 0, late = 0;
    alb_time now = MS, held_at = 0;
    const uint32_t count = 300000;
    for (alb_psn sequence = 0; sequence < count; sequence++, now += 10 * US) {
        lost += alb_path_in_settle(&in, now);
        if (wait == 0 && alb_prng_below(&prng, 100) < 3) {
            held = sequence;
            held_at = now;
            wait = 1 + (uint32_t)alb_prng_below(&prng, 8);
            continue;
        }
        come(&in, sequence, now, now);
        lost += lost_now;
        if (wait > 0 && --wait == 0) {
            assert_int_equal(come(&in, held, held_at, now), ALB_PATH_ARRIVAL_LATE);
            late++;
        }
    }
    assert_true(late > count / 100);
    assert_true(lost < count / 1000);
    assert_true(in.lateness_ns > 0);
}

// Whatever comes, the window keeps its shape, and each packet is counted once at most.
static void packet__any_sequence(void **state)
{
    struct alb_prng prng;
    alb_prng_init(&prng, 3);
    for (int run = 0; run < 200; run++) {
        struct alb_path_in in = {.lateness_ns = run % 2 ? 50 * US : 0};
        alb_time now = alb_prng_below(&prng, 1000);
        alb_psn next = (alb_psn)alb_prng_below(&prng, 1 << 24);
        for (int i = 0; i < 500; i++) {
            alb_psn before = in.settled;
            bool was_known = in.is_known;
            uint32_t received = in.received;
            int32_t step = (int32_t)alb_prng_below(&prng, 140) - 70;
            next = alb_psn_add(next, alb_prng_below(&prng, 4) ? 1 : step);
            now += alb_prng_below(&prng, 20000);
            come(&in, next, now - 1000, now);
            if (alb_prng_below(&prng, 4) == 0)
                alb_path_in_settle(&in, now);
            assert_int_equal(in.came & 1, 0);
            assert_int_equal(in.ahead, in.came ? 64 - __builtin_clzll(in.came) : 0);
            assert_true(in.old <= in.ahead);
            assert_int_equal(in.old > 0, in.came != 0);
            assert_true(!was_known || !alb_psn_is_before(in.settled, before));
            assert_in_range(in.received - received, 0, 1);
            assert_true(in.ahead > 0 || alb_path_in_deadline(&in) == ALB_TIME_NEVER);
        }
    }
}

static void tell__says_what_came(void **state)
{
    struct alb_path_in in = {0};
    struct alb_csa_path_entry entry;
    flow(&in, 10, 5, MS);
    alb_path_in_packet(&in, 15, 4711, true, 2 * MS, &lost_now);
    alb_path_in_report(&in, 3, 2 * MS + 700, &entry);
    assert_int_equal(entry.path, 3);
    assert_int_equal(entry.settled, 16);
    assert_int_equal(entry.echo, 4711);
    assert_int_equal(entry.delay_ns, 700);
    assert_int_equal(entry.received, 6);
    assert_int_equal(entry.marked, 1);
    alb_path_in_report(&in, 3, 2 * MS + (1ull << 40), &entry);
    assert_int_equal(entry.delay_ns, UINT32_MAX);
}

static void tell__a_few_times(void **state)
{
    struct alb_path_in in = {0};
    struct alb_csa_path_entry entry;
    come(&in, 0, MS, MS);
    for (int i = 0; i < 3; i++) {
        assert_true(alb_path_in_has_news(&in));
        alb_path_in_report(&in, 0, MS, &entry);
    }
    assert_false(alb_path_in_has_news(&in));
    alb_path_in_report(&in, 0, MS, &entry);
    assert_false(alb_path_in_has_news(&in));
    come(&in, 0, MS, MS); // again: no news
    assert_false(alb_path_in_has_news(&in));
    come(&in, 1, MS, MS);
    assert_true(alb_path_in_has_news(&in));
}

static void path_in__is_small(void **state)
{
    assert_true(sizeof(struct alb_path_in) <= 48);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packet__in_order),
        cmocka_unit_test(packet__far_behind_a_gap),
        cmocka_unit_test(packet__a_gap_is_lost_at_once),
        cmocka_unit_test(packet__what_came_late_teaches_patience),
        cmocka_unit_test(packet__a_waiting_gap_is_filled),
        cmocka_unit_test(packet__a_younger_gap_waits_for_itself),
        cmocka_unit_test(packet__again),
        cmocka_unit_test(packet__first_ones_swapped),
        cmocka_unit_test(packet__jump_beyond_the_window),
        cmocka_unit_test(packet__jump_over_what_has_come),
        cmocka_unit_test(packet__jump_at_the_edge_of_memory),
        cmocka_unit_test(packet__jump_that_is_just_not_remembered),
        cmocka_unit_test(packet__fills_the_gap_before_a_full_window),
        cmocka_unit_test(packet__a_gap_that_nobody_settled),
        cmocka_unit_test(packet__far_behind_teaches_nothing),
        cmocka_unit_test(packet__far_behind_damages_nothing),
        cmocka_unit_test(packet__far_ahead_begins_anew),
        cmocka_unit_test(packet__two_in_a_row_far_behind_begin_anew),
        cmocka_unit_test(packet__far_behind_after_it_has_begun_anew),
        cmocka_unit_test(packet__lateness_is_bounded),
        cmocka_unit_test(packet__patience_wears_off),
        cmocka_unit_test(packet__patience_wears_off_in_steps),
        cmocka_unit_test(packet__that_is_late_begins_the_steps_anew),
        cmocka_unit_test(packet__waiting_in_vain_wears_it_off_sooner),
        cmocka_unit_test(packet__steady_reordering_costs_little),
        cmocka_unit_test(packet__any_sequence),
        cmocka_unit_test(tell__says_what_came),
        cmocka_unit_test(tell__a_few_times),
        cmocka_unit_test(path_in__is_small),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
