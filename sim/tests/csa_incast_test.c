// SPDX-License-Identifier: BSD-2-Clause
// CSA when 32 senders meet at one receiver behind a link of 1 Gb/s: together they get through what one gets through,
// each gets its share, and the receiver's memory does not grow.
#include "base/tests/test.h"

#include "base/prng.h"
#include "star.h"

enum {
    KB = 1024,
    SENDERS = 32,
};

static const char *congestion, *credit;
static uint32_t queue_bytes = 256 * KB;
static alb_sim_time begin_apart; // the senders, one after the other

static void change(struct alb_engine_config *engine)
{
    int error = alb_engine_config_transport(engine, "csa");
    alb_assert(error == 0);
    engine->path_max = 1;
    if (congestion)
        engine->congestion = congestion;
    if (credit)
        engine->credit = credit;
}

static struct star *new_star(uint32_t senders, uint64_t mark_above_bytes)
{
    struct star_config config;
    star_config_default(&config, senders + 1);
    config.is_wheel = false;
    config.up.bits_per_s = 10000000000;
    config.down =
        (struct alb_sim_link_config){.bits_per_s = 1000000000, .delay = ALB_SIM_US(10), .queue_bytes_max = queue_bytes};
    config.down.mark_above_bytes = mark_above_bytes;
    config.path_payload_max = 1472;
    config.change = change;
    struct star *star = star_new(&config);
    for (uint32_t i = 1; i <= senders; i++) {
        star_flow(star, i, 0, 16 * KB, 16, UINT64_MAX);
        alb_sim_network_run_for(&star->network, begin_apart);
    }
    return star;
}

struct shares {
    uint64_t sum, least, most;
};

// What completes in that time.
static struct shares measure(struct star *star, alb_sim_time span)
{
    uint64_t before[SENDERS + 1];
    struct shares shares = {.least = UINT64_MAX};
    for (uint32_t i = 1; i < star->count; i++)
        before[i] = star->hosts[i].flow.done_bytes;
    alb_sim_network_run_for(&star->network, span);
    for (uint32_t i = 1; i < star->count; i++) {
        uint64_t share = star->hosts[i].flow.done_bytes - before[i];
        shares.sum += share;
        shares.least = ALB_MIN(shares.least, share);
        shares.most = ALB_MAX(shares.most, share);
    }
    return shares;
}

static void end(struct star *star)
{
    for (uint32_t i = 1; i < star->count; i++)
        flow_stop(&star->hosts[i].flow);
    star_run(star);
    for (uint32_t i = 1; i < star->count; i++)
        assert_true(star_is_done(star, i));
    star_free(star);
}

// Marks one packet in so many on its way to a node, whatever the queues are like.
struct marker {
    struct alb_sim_node node, *to;
    struct alb_prng prng;
    uint32_t one_in;
};

static void mark_and_pass_on(struct alb_sim_node *node, struct alb_sim_packet *packet, alb_sim_time now)
{
    struct marker *marker = ALB_CONTAINER_OF(node, struct marker, node);
    if (alb_prng_below(&marker->prng, marker->one_in) == 0)
        packet->traffic_class |= ALB_ECN_CE;
    marker->to->receive(marker->to, packet, now);
}

static void set_marker(struct star *star, struct marker *marker, uint32_t one_in)
{
    *marker = (struct marker){.node = {mark_and_pass_on}, .to = star->hosts[0].down.to, .one_in = one_in};
    alb_prng_init(&marker->prng, 4);
    star->hosts[0].down.to = &marker->node;
}

static void incast(uint64_t mark_above_bytes, uint32_t mark_one_in, alb_sim_time apart, alb_sim_time span)
{
    struct star *one = new_star(1, mark_above_bytes);
    struct marker marker_of_one, marker;
    if (mark_one_in)
        set_marker(one, &marker_of_one, mark_one_in);
    alb_sim_network_run_for(&one->network, ALB_SIM_MS(200));
    struct shares alone = measure(one, ALB_SIM_S(1));
    end(one);
    assert_true(alone.sum > 100000000); // bytes, of the 125 MB that a second has

    struct star *star = new_star(SENDERS, mark_above_bytes);
    if (mark_one_in)
        set_marker(star, &marker, mark_one_in);
    for (uint32_t i = 1; i <= SENDERS; i++)
        alb_sim_link_set_delay(&star->hosts[i].up, ALB_SIM_US(1) + i * apart);
    uint64_t memory_bytes = star->hosts[0].host.memory.bytes;
    alb_sim_network_run_for(&star->network, ALB_SIM_MS(200));
    struct shares shares = measure(star, span);
    assert_int_equal(star->hosts[0].host.memory.bytes, memory_bytes);
    uint64_t expected = alone.sum * (span / ALB_SIM_MS(1)) / 1000;
    if (shares.sum < expected / 10 * 9)
        fail_msg("%llu bytes by %u senders, %llu by one", (unsigned long long)shares.sum, SENDERS,
                 (unsigned long long)expected);
    if (shares.least < shares.most / 10 * 8)
        fail_msg("the smallest share is %llu bytes, the largest %llu", (unsigned long long)shares.least,
                 (unsigned long long)shares.most);
    end(star);
}

static void incast__with_marks(void **state)
{
    incast(32 * KB, 0, 0, ALB_SIM_S(TEST_SOME(10)));
}

// Longer than what the first windows of all fill: who begins among others sees no short round trip, and would take it
// for a long path's.
static void incast__behind_a_long_queue(void **state)
{
    queue_bytes = 1024 * KB;
    for (begin_apart = 0; begin_apart <= ALB_SIM_MS(4); begin_apart += ALB_SIM_MS(2))
        incast(0, 0, 0, ALB_SIM_S(TEST_SOME(10)));
    queue_bytes = 256 * KB;
    begin_apart = 0;
}

static void incast__marked_at_random(void **state)
{
    incast(0, 100, 0, ALB_SIM_S(TEST_SOME(10)));
}

static void incast__from_far_and_near(void **state)
{
    incast(0, 0, ALB_SIM_US(10), ALB_SIM_S(TEST_SOME(10)));
}

static void incast__without_marks(void **state)
{
    incast(0, 0, 0, ALB_SIM_S(TEST_SOME(10)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(incast__with_marks),          cmocka_unit_test(incast__without_marks),
        cmocka_unit_test(incast__behind_a_long_queue), cmocka_unit_test(incast__marked_at_random),
        cmocka_unit_test(incast__from_far_and_near),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
