// SPDX-License-Identifier: BSD-2-Clause
// Grants by themselves, then senders that keep to them, in virtual time.
#include "engine/credit.h"
#include "engine/engine.h"

#include "base/prng.h"
#include "base/tests/test.h"

#include <stdlib.h>

enum {
    KB = 1024,
    BUDGET_BYTES = 200 * KB,
    SENDERS = 32,
    PACKET_BYTES = 1500,
    RTT_NS = 50000,
};

static const alb_time interval_ns = ALB_NS_PER_MS;

static const struct alb_engine_config config = {
    .receive_budget_bytes = BUDGET_BYTES,
    .grant_min_bytes = 2 * KB,
    .credit_interval_ns = ALB_NS_PER_MS,
};

static struct alb_credit_pool pool;
static struct alb_credit_in senders[SENDERS];

static int setup(void **state)
{
    alb_credit_pool_init(&pool, &alb_credit_end_to_end, &config);
    for (size_t i = 0; i < SENDERS; i++)
        alb_credit_in_init(&senders[i]);
    return 0;
}

static void heard(uint32_t i, uint32_t bytes, alb_time now)
{
    alb_credit_on_packet(&pool, &senders[i], bytes, RTT_NS, now);
}

static uint32_t grant(uint32_t i, alb_time now)
{
    return alb_credit_grant(&pool, &senders[i], now);
}

static void alb_credit_find__by_name(void **state)
{
    assert_ptr_equal(alb_credit_find("end-to-end"), &alb_credit_end_to_end);
    assert_ptr_equal(alb_credit_find("shortest"), &alb_credit_shortest);
    assert_ptr_equal(alb_credit_find("off"), &alb_credit_off);
    assert_ptr_equal(alb_credit_find("shortest:aging=64Gb/s"), &alb_credit_shortest);
    assert_null(alb_credit_find("end"));
    assert_null(alb_credit_find(NULL));
}

static void alb_credit_in__is_small(void **state)
{
    assert_true(sizeof(struct alb_credit_in) <= 48);
}

static void alb_credit_grant__without_a_limit(void **state)
{
    struct alb_engine_config unlimited = config;
    unlimited.receive_budget_bytes = 0;
    alb_credit_pool_init(&pool, &alb_credit_end_to_end, &unlimited);
    heard(0, PACKET_BYTES, 0);
    assert_int_equal(grant(0, 0), ALB_CSA_CREDIT_NONE);
    alb_credit_pool_init(&pool, &alb_credit_off, &config);
    heard(0, PACKET_BYTES, 0);
    assert_int_equal(grant(0, 0), ALB_CSA_CREDIT_NONE);
    assert_int_equal(pool.count, 0);
}

static void alb_credit_grant__one_sender_has_it_all(void **state)
{
    assert_int_equal(grant(0, 0), BUDGET_BYTES);
    heard(0, PACKET_BYTES, 0);
    assert_int_equal(grant(0, 0), BUDGET_BYTES);
    for (alb_time now = 0; now < 10 * interval_ns; now += 1000)
        heard(0, PACKET_BYTES, now);
    assert_int_equal(grant(0, 10 * interval_ns), BUDGET_BYTES);
}

static void alb_credit_grant__bulk_senders_have_equal_shares(void **state)
{
    for (uint32_t count = 1; count <= SENDERS; count++) {
        setup(state);
        alb_time now = 0;
        for (; now < 2 * interval_ns; now += 1000)
            for (uint32_t i = 0; i < count; i++)
                heard(i, 65536 / count, now);
        for (uint32_t i = 0; i < count; i++)
            assert_int_equal(grant(i, now), BUDGET_BYTES / count);
    }
}

static void alb_credit_grant__no_less_than_the_smallest(void **state)
{
    struct alb_engine_config large = config;
    large.grant_min_bytes = 64 * KB;
    alb_credit_pool_init(&pool, &alb_credit_end_to_end, &large);
    for (alb_time now = 0; now < 2 * interval_ns; now += 1000)
        for (uint32_t i = 0; i < SENDERS; i++)
            heard(i, PACKET_BYTES, now);
    assert_int_equal(grant(3, 2 * interval_ns), 64 * KB);
}

static void alb_credit_grant__small_talk_costs_a_bulk_sender_little(void **state)
{
    alb_time now = 0;
    for (uint32_t step = 0; now < 10 * interval_ns; now += 1000, step++) {
        heard(0, 4 * PACKET_BYTES, now);
        if (step % 50 == 0)
            for (uint32_t i = 1; i < SENDERS; i++)
                heard(i, 100, now);
    }
    assert_in_range(grant(0, now), BUDGET_BYTES * 9 / 10, BUDGET_BYTES);
    assert_in_range(grant(1, now), BUDGET_BYTES * 4 / 10, BUDGET_BYTES / 2); // may begin to send much
}

static void alb_credit_grant__who_needs_more_than_a_share_gets_one(void **state)
{
    // 20 KB in flight of each of eight, and one that takes what there is: 200 KB / 9 are more than 20 KB.
    alb_time now = 0;
    for (uint32_t step = 0; now < 10 * interval_ns; now += RTT_NS, step++) {
        heard(0, 150 * KB, now);
        for (uint32_t i = 1; i < 9; i++)
            heard(i, 9 * KB, now);
    }
    assert_in_range(grant(0, now), 50 * KB, 60 * KB); // what eight times 18 KB leave
    // 40 KB each: equal shares.
    for (uint32_t step = 0; now < 20 * interval_ns; now += RTT_NS, step++)
        for (uint32_t i = 0; i < 9; i++)
            heard(i, 40 * KB, now);
    for (uint32_t i = 0; i < 9; i++)
        assert_int_equal(grant(i, now), BUDGET_BYTES / 9);
}

static void alb_credit_grant__who_stops_gives_back(void **state)
{
    alb_time now = 0;
    for (; now < 2 * interval_ns; now += 1000)
        for (uint32_t i = 0; i < 4; i++)
            heard(i, PACKET_BYTES, now);
    assert_int_equal(grant(0, now), BUDGET_BYTES / 4);
    alb_credit_in_fini(&pool, &senders[3]);
    assert_int_equal(grant(0, now), BUDGET_BYTES / 3);
    alb_time until = now + 6 * interval_ns;
    for (; now < until; now += 1000)
        heard(0, PACKET_BYTES, now);
    assert_int_equal(grant(0, now), BUDGET_BYTES);
    assert_int_equal(pool.count, 1);
    grant(0, now + ALB_NS_PER_S);
    assert_int_equal(pool.count, 0);
    assert_int_equal(pool.bulk_count, 0);
    assert_int_equal(pool.reserved_bytes, 0);
}

static void alb_credit_grant__by_a_clock_that_was_read_before(void **state)
{
    alb_time now = ALB_NS_PER_S;
    for (alb_time until = now + 2 * interval_ns; now < until; now += 1000)
        for (uint32_t i = 0; i < 4; i++)
            heard(i, PACKET_BYTES, now);
    assert_int_equal(grant(0, now - 2 * interval_ns), BUDGET_BYTES / 4);
    assert_int_equal(pool.count, 4);
}

static void alb_credit__books_stay_right_whatever_comes(void **state)
{
    struct alb_prng prng;
    alb_prng_init(&prng, 1);
    alb_time now = 0;
    for (uint32_t step = 0; step < 200000; step++) {
        uint32_t i = (uint32_t)alb_prng_below(&prng, SENDERS);
        now += alb_prng_below(&prng, 1ull << alb_prng_below(&prng, 24));
        if (alb_prng_below(&prng, 1000) == 0)
            alb_credit_in_fini(&pool, &senders[i]);
        uint32_t rtt_ns = (uint32_t)alb_prng_u64(&prng) >> alb_prng_below(&prng, 32);
        alb_credit_on_packet(&pool, &senders[i], (uint32_t)alb_prng_below(&prng, 65536), rtt_ns, now);
        uint64_t reserved_bytes = 0, rates = 0, squares = 0;
        uint32_t count = 0, bulk_count = 0;
        ALB_LIST_FOR_EACH (&pool.senders, node) {
            struct alb_credit_in *in = ALB_LIST_ENTRY(node, struct alb_credit_in, link);
            count++;
            rates += in->rate;
            squares += (uint64_t)in->rate * in->rate;
            if (in->reserved_bytes == ALB_CSA_CREDIT_NONE)
                bulk_count++;
            else
                reserved_bytes += in->reserved_bytes;
        }
        assert_int_equal(pool.count, count);
        assert_int_equal(pool.bulk_count, bulk_count);
        assert_int_equal(pool.reserved_bytes, reserved_bytes);
        assert_int_equal(pool.rates, rates);
        assert_int_equal(pool.squares, squares);
        assert_in_range(grant(i, now), BUDGET_BYTES / SENDERS, BUDGET_BYTES);
    }
}

// ---- shares ---------------------------------------------------------------------------------------------------------

// Sender i sends so many bytes each 10 us.
static void send_for(const uint32_t bytes[SENDERS], alb_time ns)
{
    for (alb_time now = 0; now < ns; now += 10000)
        for (uint32_t i = 0; i < SENDERS; i++)
            if (bytes[i])
                heard(i, bytes[i], now);
}

// An eighth of it is what came last, if that was an interval.
static void alb_credit_rate__is_smoothed_over_eight_intervals(void **state)
{
    const alb_time later = 1000 * 1024; // a little more than an interval, in whole ticks
    heard(0, 100000, 0);
    uint32_t first = senders[0].rate;
    assert_in_range(first, 104000, 105000); // 2^-20 bytes a ns, as if it had taken an interval
    heard(0, 1, later);
    assert_in_range(senders[0].rate, (uint64_t)first * 87 / 100, (uint64_t)first * 88 / 100);
    heard(0, 100000, 2 * later);
    assert_in_range(senders[0].rate, (uint64_t)first * 88 / 100, (uint64_t)first * 90 / 100);
}

static uint32_t share(uint32_t i)
{
    return alb_credit_share(&pool, &senders[i], 0);
}

static void alb_credit_share__says_who_has_more(void **state)
{
    assert_int_equal(share(0), 0); // nothing has come
    heard(0, 1500, 0);
    assert_int_equal(share(0), 0); // no other has come
    setup(state);
    send_for((uint32_t[SENDERS]){1500, 1500, 1500, 1500}, 20 * interval_ns);
    for (uint32_t i = 0; i < 4; i++)
        assert_in_range(share(i), ALB_CSA_SHARE_EVEN, ALB_CSA_SHARE_EVEN + 1);
    setup(state);
    send_for((uint32_t[SENDERS]){1500, 1000, 1000, 1000, 1000}, 20 * interval_ns);
    assert_in_range(share(0), ALB_CSA_SHARE_EVEN * 5 / 4, ALB_CSA_SHARE_EVEN * 3 / 2);
    assert_int_equal(share(1), ALB_CSA_SHARE_EVEN);
    setup(state);
    send_for((uint32_t[SENDERS]){60000, 1, 1, 1, 1, 1, 1, 1}, 20 * interval_ns); // small talk does not count
    assert_int_equal(share(0), 0);
    assert_int_equal(share(1), 0); // nor is it told to answer less
    setup(state);
    send_for((uint32_t[SENDERS]){1500, 1500}, 20 * interval_ns); // two are a crowd
    assert_in_range(share(0), ALB_CSA_SHARE_EVEN, ALB_CSA_SHARE_EVEN + 1);
}

static void alb_credit_share__without_a_limit_too(void **state)
{
    struct alb_engine_config unlimited = config;
    unlimited.receive_budget_bytes = 0;
    alb_credit_pool_init(&pool, &alb_credit_end_to_end, &unlimited);
    send_for((uint32_t[SENDERS]){3000, 1000, 1000}, 20 * interval_ns);
    assert_true(share(0) > ALB_CSA_SHARE_EVEN);
    setup(state);
    alb_credit_pool_init(&pool, &alb_credit_off, &config);
    send_for((uint32_t[SENDERS]){3000, 1000, 1000}, 20 * interval_ns);
    assert_int_equal(share(0), 0);
}

static void alb_credit_share__who_stops_is_not_compared_with(void **state)
{
    send_for((uint32_t[SENDERS]){4500, 1500, 1500}, 20 * interval_ns);
    assert_true(share(0) > ALB_CSA_SHARE_EVEN * 5 / 4);
    for (alb_time now = 20 * interval_ns; now < 30 * interval_ns; now += 10000)
        heard(0, 4500, now);
    assert_int_equal(share(0), 0);
    assert_int_equal(share(1), 0);
}

// ---- senders that keep to it ----------------------------------------------------------------------------------------

struct packet {
    uint32_t sender;
    uint32_t grant_bytes;
    alb_time sent_at, at;
};

struct incast {
    struct packet queue[1 << 14], answers[1 << 14];
    uint32_t queue_head, queue_tail, answers_head, answers_tail;
    uint32_t inflight_bytes[SENDERS], grant_bytes[SENDERS];
    uint32_t rtt_ns[SENDERS];
    uint64_t came_bytes[SENDERS];
    uint32_t peak_bytes;
};

// A packet passes a link of 1 Gb/s each step; what it brings back takes the base round trip.
static void run(struct incast *s, uint32_t count, alb_time from, alb_time until)
{
    uint64_t step = from / 12000;
    for (alb_time now = from; now < until; now = ++step * 12000) {
        if (s->queue_head != s->queue_tail) {
            struct packet packet = s->queue[s->queue_head++ % ALB_COUNT(s->queue)];
            alb_credit_on_packet(&pool, &senders[packet.sender], PACKET_BYTES, s->rtt_ns[packet.sender], now);
            packet.grant_bytes = grant(packet.sender, now);
            packet.at = now + RTT_NS;
            s->came_bytes[packet.sender] += PACKET_BYTES;
            s->answers[s->answers_tail++ % ALB_COUNT(s->answers)] = packet;
        }
        while (s->answers_head != s->answers_tail && s->answers[s->answers_head % ALB_COUNT(s->answers)].at <= now) {
            struct packet packet = s->answers[s->answers_head++ % ALB_COUNT(s->answers)];
            s->inflight_bytes[packet.sender] -= PACKET_BYTES;
            s->grant_bytes[packet.sender] = packet.grant_bytes;
            s->rtt_ns[packet.sender] = (uint32_t)(now - packet.sent_at);
        }
        uint32_t all_bytes = 0;
        for (uint32_t i = 0; i < count; i++) {
            uint32_t sender = (uint32_t)((i + step) % count);
            uint32_t *inflight = &s->inflight_bytes[sender];
            for (; *inflight == 0 || *inflight + PACKET_BYTES <= s->grant_bytes[sender]; *inflight += PACKET_BYTES)
                s->queue[s->queue_tail++ % ALB_COUNT(s->queue)] = (struct packet){.sender = sender, .sent_at = now};
            all_bytes += *inflight;
        }
        s->peak_bytes = ALB_MAX(s->peak_bytes, all_bytes);
    }
}

static void alb_credit__an_incast_stays_within_the_budget(void **state)
{
    for (uint32_t count = 1; count <= SENDERS; count *= 2) {
        setup(state);
        struct incast *s = calloc(1, sizeof(*s));
        assert_non_null(s);
        for (uint32_t i = 0; i < count; i++)
            s->grant_bytes[i] = 64 * KB;      // nothing is known yet
        run(s, count, 0, 30 * ALB_NS_PER_MS); // until what the first burst left is gone
        s->peak_bytes = 0;
        for (uint32_t i = 0; i < count; i++)
            s->came_bytes[i] = 0;
        run(s, count, 30 * ALB_NS_PER_MS, 1030 * ALB_NS_PER_MS);
        uint64_t sum = 0, least = UINT64_MAX, most = 0;
        for (uint32_t i = 0; i < count; i++) {
            sum += s->came_bytes[i];
            least = ALB_MIN(least, s->came_bytes[i]);
            most = ALB_MAX(most, s->came_bytes[i]);
        }
        assert_true(s->peak_bytes <= BUDGET_BYTES);
        assert_in_range(sum, 124000000, 125100000);
        assert_true(least * 100 >= most * 95);
        free(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(alb_credit_find__by_name, setup),
        cmocka_unit_test_setup(alb_credit_in__is_small, setup),
        cmocka_unit_test_setup(alb_credit_grant__without_a_limit, setup),
        cmocka_unit_test_setup(alb_credit_grant__one_sender_has_it_all, setup),
        cmocka_unit_test_setup(alb_credit_grant__bulk_senders_have_equal_shares, setup),
        cmocka_unit_test_setup(alb_credit_grant__no_less_than_the_smallest, setup),
        cmocka_unit_test_setup(alb_credit_grant__small_talk_costs_a_bulk_sender_little, setup),
        cmocka_unit_test_setup(alb_credit_grant__who_needs_more_than_a_share_gets_one, setup),
        cmocka_unit_test_setup(alb_credit_grant__who_stops_gives_back, setup),
        cmocka_unit_test_setup(alb_credit_grant__by_a_clock_that_was_read_before, setup),
        cmocka_unit_test_setup(alb_credit__books_stay_right_whatever_comes, setup),
        cmocka_unit_test_setup(alb_credit_rate__is_smoothed_over_eight_intervals, setup),
        cmocka_unit_test_setup(alb_credit_share__says_who_has_more, setup),
        cmocka_unit_test_setup(alb_credit_share__without_a_limit_too, setup),
        cmocka_unit_test_setup(alb_credit_share__who_stops_is_not_compared_with, setup),
        cmocka_unit_test_setup(alb_credit__an_incast_stays_within_the_budget, setup),
    };
    return cmocka_run_group_tests_name("credit", tests, NULL, NULL);
}
