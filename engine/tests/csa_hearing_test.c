// SPDX-License-Identifier: BSD-2-Clause
// When a stream may ask a peer that is silent as a whole. The round-trip time is a millisecond, and a silence two.
#include "engine/tests/csa_pair.h"

#define US         ALB_NS_PER_US
#define MS         ALB_NS_PER_MS
#define SILENCE_NS (2 * MS)
#define HALT_NS    (4 * MS) // that one may last, on a host where no thread waits

// Times are rounded up to ticks of 1.024 us.
#define ASSERT_ABOUT(at, expected) assert_in_range(at, (expected), (expected) + 4 * US)

static struct alb_assoc_live *heard_at(struct csa_pair *c, alb_time now)
{
    struct alb_assoc_live *live = alb_assoc_wake(c->engines[0], c->csa[0]->assoc);
    live->rtt_ns = MS;
    for (alb_time at = now - 600 * US; at <= now; at += 200 * US)
        alb_assoc_heard(live, at);
    return live;
}

static void ask__at_once_while_the_peer_is_heard(void **state)
{
    struct alb_assoc_live *live = heard_at(*state, 100 * MS);
    assert_int_equal(alb_assoc_ask_at(live, 100 * MS, SILENCE_NS, 100 * MS), 100 * MS);
    alb_assoc_asked(live, SILENCE_NS, 100 * MS + 240 * US);
    assert_int_equal(alb_assoc_ask_at(live, 101 * MS, SILENCE_NS, 101 * MS), 101 * MS);
}

// Ticks of 1.024 us, modulo 2^32: half of them are over after 37 minutes.
static void ask__at_once_whatever_the_clock_says(void **state)
{
    struct csa_pair *c = csa_pair_new(NULL, NULL);
    const alb_time now = 50 * 60 * ALB_NS_PER_S;
    alb_engine_set_now(c->engines[0], now);
    assert_null(c->csa[0]->assoc->live);
    struct alb_assoc_live *live = alb_assoc_wake(c->engines[0], c->csa[0]->assoc);
    assert_int_equal(alb_assoc_ask_at(live, now, SILENCE_NS, now), now);
    live->ask_from -= 1u << 30; // as after 18 minutes without a gap
    alb_assoc_heard(live, now);
    const alb_time later = now + ((alb_time)((1u << 30) + 100) << 10); // 18 more of them
    assert_int_equal(alb_assoc_ask_at(live, later, SILENCE_NS, later), later);
    csa_pair_free(c);
}

// A thread's clock may be from before another one received.
static void ask__is_not_put_off_by_an_earlier_time(void **state)
{
    struct alb_assoc_live *live = heard_at(*state, 100 * MS);
    alb_assoc_asked(live, SILENCE_NS, 100 * MS - 10 * US);
    assert_int_equal(alb_assoc_ask_at(live, 100 * MS, SILENCE_NS, 100 * MS), 100 * MS);
}

static void ask__when_the_probe_of_another_stream_is_not_answered(void **state)
{
    struct alb_assoc_live *live = heard_at(*state, 100 * MS);
    alb_assoc_asked(live, MS, 103 * MS);
    ASSERT_ABOUT(alb_assoc_ask_at(live, 103 * MS, MS, 103 * MS), 104 * MS);
    assert_int_equal(alb_assoc_ask_at(live, 103 * MS, MS, 104 * MS + 2 * US), 103 * MS); // overdue
    alb_assoc_asked(live, MS, 104 * MS);
    ASSERT_ABOUT(alb_assoc_ask_at(live, 103 * MS, MS, 104 * MS), 106 * MS); // twice as long after each
}

// Many streams ask at once where each has lost something: that says nothing of the peer.
static void ask__no_later_for_probes_while_the_peer_was_heard(void **state)
{
    struct alb_assoc_live *live = heard_at(*state, 100 * MS);
    for (uint32_t i = 0; i < 16; i++)
        alb_assoc_asked(live, MS, 100 * MS + 100 * US);
    alb_assoc_asked(live, MS, 102 * MS);
    ASSERT_ABOUT(alb_assoc_ask_at(live, 102 * MS, MS, 102 * MS), 103 * MS);
}

static void ask__when_a_halt_would_be_over(void **state)
{
    struct csa_pair *c = *state;
    struct alb_assoc_live *live = heard_at(c, 100 * MS);
    for (uint32_t i = 0; i < 300; i++)
        alb_assoc_asked(live, SILENCE_NS, 103 * MS);
    assert_int_equal(alb_assoc_ask_at(live, 103 * MS, SILENCE_NS, 103 * MS), 103 * MS + HALT_NS);
    assert_int_equal(alb_assoc_ask_at(live, 103 * MS, 10 * MS, 103 * MS), 113 * MS);
    alb_engine_note_host_load(c->engines[0], 3 * ALB_HOST_LOAD_ONE); // each thread waits for others
    assert_int_equal(alb_assoc_ask_at(live, 103 * MS, SILENCE_NS, 103 * MS), 103 * MS + 3 * HALT_NS);
    alb_engine_note_host_load(c->engines[0], 0);
}

// Its first packet after a gap: it has been halted, and the others are behind it.
static void ask__a_quarter_of_a_round_trip_after_a_gap(void **state)
{
    struct alb_assoc_live *live = heard_at(*state, 100 * MS);
    alb_assoc_asked(live, SILENCE_NS, 103 * MS);
    alb_assoc_heard(live, 104 * MS);
    ASSERT_ABOUT(alb_assoc_ask_at(live, 103 * MS, SILENCE_NS, 104 * MS), 104 * MS + 250 * US);
    alb_assoc_heard(live, 104 * MS + 100 * US); // no gap: it is not put off further
    ASSERT_ABOUT(alb_assoc_ask_at(live, 103 * MS, SILENCE_NS, 104 * MS + 100 * US), 104 * MS + 250 * US);
    alb_assoc_asked(live, SILENCE_NS, 104 * MS + 300 * US);
    assert_int_equal(alb_assoc_ask_at(live, 104 * MS, SILENCE_NS, 104 * MS + 300 * US), 104 * MS);
}

static void ask__half_of_the_least_silence_after_a_gap(void **state)
{
    struct csa_pair *c = *state;
    struct alb_assoc_live *live = heard_at(c, 100 * MS);
    c->engines[0]->config.csa_probe_min_ns = 800 * US;
    alb_assoc_heard(live, 104 * MS);
    ASSERT_ABOUT(alb_assoc_ask_at(live, 103 * MS, SILENCE_NS, 104 * MS), 104 * MS + 400 * US);
    c->engines[0]->config.csa_probe_min_ns = 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CSA_PAIR_TEST(ask__at_once_while_the_peer_is_heard),
        cmocka_unit_test(ask__at_once_whatever_the_clock_says),
        CSA_PAIR_TEST(ask__is_not_put_off_by_an_earlier_time),
        CSA_PAIR_TEST(ask__when_the_probe_of_another_stream_is_not_answered),
        CSA_PAIR_TEST(ask__no_later_for_probes_while_the_peer_was_heard),
        CSA_PAIR_TEST(ask__when_a_halt_would_be_over),
        CSA_PAIR_TEST(ask__a_quarter_of_a_round_trip_after_a_gap),
        CSA_PAIR_TEST(ask__half_of_the_least_silence_after_a_gap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
