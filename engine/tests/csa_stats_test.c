// SPDX-License-Identifier: BSD-2-Clause
// What associations show of themselves to a reader of the driver's memory.
#include "engine/tests/csa_pair.h"

#define MS ALB_NS_PER_MS

static struct alb_peer_stats shown[2][2]; // of each side

static void show(struct alb_engine_config *config)
{
    static int side; // of the engine that is made now
    config->path_max = 4;
    config->path = "spray";
    config->peer_stats = shown[side++ % 2];
    config->peer_stats_max = 2;
}

static void show_none(struct alb_engine_config *config)
{
    show(config);
    config->peer_stats_max = 0;
}

static int setup(void **state)
{
    memset(shown, 0, sizeof(shown));
    *state = csa_pair_new(show, NULL);
    return 0;
}

static void write_once(struct csa_pair *c, uint64_t wr_id)
{
    csa_pair_ask(c, ALB_WR_RDMA_WRITE, wr_id, ALB_SEND_SIGNALED, 8 * CSA_PAIR_SEGMENT);
    pair_settle(c->pair);
    csa_pair_expect(c, 0, wr_id, ALB_WC_SUCCESS);
}

static void show__from_the_start(void **state)
{
    struct csa_pair *c = *state;
    const struct alb_peer_stats *peer = &shown[0][0];
    assert_true(peer->is_known);
    assert_false(peer->is_awake);
    assert_int_equal(peer->path_count, 0);
    assert_memory_equal(peer->peer, c->pair->hosts[1].addr.bytes, sizeof(peer->peer));
    assert_memory_equal(peer->local, c->pair->hosts[0].addr.bytes, sizeof(peer->local));
    assert_int_equal(peer->payload_max, c->csa[0]->assoc->payload_max);
    assert_false(shown[0][1].is_known);
}

static void show__what_the_sweep_sees(void **state)
{
    struct csa_pair *c = *state;
    const struct alb_peer_stats *peer = &shown[0][0];
    csa_pair_greet(c);
    for (uint32_t i = 1; i < 20; i++) {
        write_once(c, i);
        pair_pass(c->pair, 10 * MS);
    }
    const struct alb_assoc_live *live = csa_pair_live(c, 0);
    assert_true(peer->is_awake);
    assert_int_equal(peer->epoch, csa_pair_epoch(c, 1));
    assert_int_equal(peer->window_bytes, live->congestion.window_bytes);
    assert_int_equal(peer->inflight_bytes, 0);
    assert_int_equal(peer->rate_bytes_per_s, 0);
    assert_int_equal(peer->path_count, 4);
    uint32_t arrived = 0, fates_known = 0;
    for (uint32_t i = 0; i < 4; i++) {
        assert_string_equal(alb_path_state_name(peer->paths[i].state), "good");
        assert_int_equal(peer->paths[i].recent_lost, 0);
        arrived += peer->paths[i].arrived_pkts;
        fates_known += peer->paths[i].recent_pkts;
    }
    assert_true(arrived > 15 * 8 && arrived <= 19 * 8 + 1);
    assert_int_equal(arrived, fates_known);
}

static void show__what_is_left_and_under_way(void **state)
{
    struct csa_pair *c = *state;
    csa_pair_greet(c);
    struct alb_assoc_live *live = csa_pair_live(c, 0);
    alb_path_set_state(live->paths, 2, ALB_PATH_LEFT);
    live->paths->path[2].recent_sent = 40;
    live->paths->path[2].recent_lost = 30;
    live->paths->path[3].rtt_ns = 12345;
    csa_pair_ask(c, ALB_WR_RDMA_WRITE, 1, ALB_SEND_SIGNALED, 8 * CSA_PAIR_SEGMENT);
    pair_send(c->pair, 0);
    alb_assoc_show(c->engines[0], live->assoc);
    const struct alb_path_stats *paths = shown[0][0].paths;
    assert_string_equal(alb_path_state_name(paths[2].state), "left");
    assert_int_equal(paths[2].recent_pkts, 40);
    assert_int_equal(paths[2].recent_lost, 30);
    assert_int_equal(paths[3].rtt_ns, 12345);
    assert_int_equal(shown[0][0].inflight_bytes, 8 * CSA_PAIR_CHARGE);
    uint64_t sum = 0;
    for (uint32_t i = 0; i < 4; i++)
        sum += paths[i].inflight_bytes;
    assert_true(sum > 0 && sum <= shown[0][0].inflight_bytes);
    pair_settle(c->pair);
    csa_pair_expect(c, 0, 1, ALB_WC_SUCCESS);
}

static void show_a_rate(struct alb_engine_config *config)
{
    show(config);
    config->congestion = "dcqcn";
}

static void show__the_rate_where_there_is_one(void **state)
{
    memset(shown, 0, sizeof(shown));
    struct csa_pair *c = csa_pair_new(show_a_rate, NULL);
    csa_pair_greet(c);
    struct alb_assoc_live *live = csa_pair_live(c, 0);
    const struct alb_congestion_ops *congestion = c->engines[0]->congestion;
    alb_congestion_on_mark(congestion, &live->congestion, 1, c->pair->now); // until then there is none
    uint64_t rate = alb_congestion_rate_bytes_per_s(congestion, &live->congestion);
    alb_assoc_show(c->engines[0], live->assoc);
    assert_true(rate > 0);
    assert_int_equal(shown[0][0].rate_bytes_per_s, rate);
    csa_pair_free(c);
}

// At rest the last of what was seen stays to be read.
static void show__at_rest(void **state)
{
    struct csa_pair *c = *state;
    csa_pair_greet(c);
    write_once(c, 1);
    pair_pass(c->pair, 3000 * MS);
    assert_null(csa_pair_live(c, 0));
    assert_true(shown[0][0].is_known);
    assert_false(shown[0][0].is_awake);
    assert_int_equal(shown[0][0].path_count, 4);
}

static void show__a_new_path_mtu(void **state)
{
    struct csa_pair *c = *state;
    const struct alb_endpoint peer = {.addr = c->pair->hosts[1].addr, .port = ALB_ROCE_PORT + c->csa[0]->assoc->slot};
    uint32_t before = shown[0][0].payload_max;
    alb_engine_path_mtu(c->engines[0], &peer, 800, c->pair->now);
    assert_true(before > 800);
    assert_int_equal(shown[0][0].payload_max, 800);
}

static void hide__when_it_ends(void **state)
{
    struct csa_pair *c = csa_pair_new(show, NULL);
    csa_pair_greet(c);
    csa_pair_free(c);
    assert_false(shown[0][0].is_known);
    assert_false(shown[1][0].is_known);
}

static void show__only_as_many_as_there_is_room_for(void **state)
{
    memset(shown, 0, sizeof(shown));
    struct csa_pair *c = csa_pair_new(show_none, NULL);
    csa_pair_greet(c);
    pair_pass(c->pair, 100 * MS);
    assert_false(shown[0][0].is_known);
    csa_pair_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(show__from_the_start, setup, csa_pair_teardown),
        cmocka_unit_test_setup_teardown(show__what_the_sweep_sees, setup, csa_pair_teardown),
        cmocka_unit_test_setup_teardown(show__what_is_left_and_under_way, setup, csa_pair_teardown),
        cmocka_unit_test_setup_teardown(show__at_rest, setup, csa_pair_teardown),
        cmocka_unit_test_setup_teardown(show__a_new_path_mtu, setup, csa_pair_teardown),
        cmocka_unit_test(show__the_rate_where_there_is_one),
        cmocka_unit_test(hide__when_it_ends),
        cmocka_unit_test(show__only_as_many_as_there_is_room_for),
    };
    return cmocka_run_group_tests_name("csa_stats", tests, NULL, NULL);
}
