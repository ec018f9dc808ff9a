// SPDX-License-Identifier: BSD-2-Clause
// Lanes side by side: which packet takes which, and that each lane is a link of its own.
#include "sim/fabric.h"

#include "base/tests/test.h"

#include <string.h>

enum {
    LANES = 4,
    ARRIVALS_MAX = 1024,
};

struct bench {
    struct alb_sim_node node;
    struct alb_sim_queue queue;
    struct alb_sim_packet_pool pool;
    struct alb_sim_fabric fabric;
    struct {
        alb_sim_time at;
        uint16_t port;
    } arrivals[ARRIVALS_MAX];
    uint32_t count;
};

static void arrive(struct alb_sim_node *node, struct alb_sim_packet *packet, alb_sim_time now)
{
    struct bench *bench = ALB_CONTAINER_OF(node, struct bench, node);
    assert_true(bench->count < ARRIVALS_MAX);
    bench->arrivals[bench->count].at = now;
    bench->arrivals[bench->count++].port = alb_sim_load(packet)->source.port;
    alb_sim_packet_put(&bench->pool, packet);
}

static void bench_init(struct bench *bench, const struct alb_sim_link_config *lanes)
{
    memset(bench, 0, sizeof(*bench));
    bench->node.receive = arrive;
    alb_sim_queue_init(&bench->queue);
    alb_sim_packet_pool_init(&bench->pool, 256);
    alb_sim_fabric_init(&bench->fabric, &bench->queue, &bench->pool, &bench->node, lanes, LANES);
}

static void bench_fini(struct bench *bench)
{
    alb_sim_fabric_fini(&bench->fabric);
    alb_sim_queue_fini(&bench->queue);
    alb_sim_packet_pool_fini(&bench->pool);
}

static struct alb_sim_packet *packet_from(struct bench *bench, uint16_t port)
{
    struct alb_sim_packet *packet = alb_sim_packet_get(&bench->pool, bench->pool.packet_bytes_max);
    alb_sim_load(packet)->source = (struct alb_endpoint){alb_addr_from_ipv4((const uint8_t[4]){10, 0, 0, 1}), port};
    alb_sim_load(packet)->destination =
        (struct alb_endpoint){alb_addr_from_ipv4((const uint8_t[4]){10, 0, 0, 2}), 4791};
    alb_sim_load(packet)->length = alb_sim_load(packet)->stored_bytes = 20;
    packet->wire_bytes = 100;
    packet->traffic_class = 0;
    return packet;
}

static uint32_t lane_of(struct bench *bench, uint16_t port)
{
    struct alb_sim_packet *packet = packet_from(bench, port);
    uint32_t lane = alb_sim_fabric_lane_of(&bench->fabric, packet);
    alb_sim_packet_put(&bench->pool, packet);
    return lane;
}

static void lane_of__exact__follows_the_path(void **state)
{
    struct bench b;
    bench_init(&b, (struct alb_sim_link_config[LANES]){0});
    assert_int_equal(lane_of(&b, 4791), 0); // path 0 has the slot's own port
    assert_int_equal(lane_of(&b, 4800), 0);
    for (uint16_t path = 1; path < 64; path++)
        assert_int_equal(lane_of(&b, ALB_SIM_PATH_PORT + path), path % LANES);
    bench_fini(&b);
}

static void lane_of__hash__spreads_and_is_steady(void **state)
{
    struct bench b;
    bench_init(&b, (struct alb_sim_link_config[LANES]){0});
    b.fabric.spread = ALB_SIM_SPREAD_HASH;
    uint32_t with[LANES] = {0}, moved = 0;
    for (uint16_t path = 0; path < 256; path++) {
        uint32_t lane = lane_of(&b, ALB_SIM_PATH_PORT + path);
        assert_int_equal(lane, lane_of(&b, ALB_SIM_PATH_PORT + path));
        with[lane]++;
        b.fabric.hash_seed = 77;
        moved += lane != lane_of(&b, ALB_SIM_PATH_PORT + path);
        b.fabric.hash_seed = 0;
    }
    for (uint32_t i = 0; i < LANES; i++)
        assert_in_range(with[i], 40, 90);
    assert_in_range(moved, 150, 230); // another switch spreads otherwise
    bench_fini(&b);
}

static void lanes__differ_and_change_by_themselves(void **state)
{
    struct bench b;
    struct alb_sim_link_config lanes[LANES];
    for (uint32_t i = 0; i < LANES; i++)
        lanes[i] = (struct alb_sim_link_config){.delay = ALB_SIM_US(LANES - i)};
    bench_init(&b, lanes);
    alb_sim_link_set_dead(&b.fabric.lanes[1], true);
    for (uint16_t i = 0; i < LANES; i++)
        b.fabric.node.receive(&b.fabric.node, packet_from(&b, ALB_SIM_PATH_PORT + i), 0);
    while (alb_sim_queue_step(&b.queue))
        ;
    static const uint16_t order[] = {3, 2, 0};
    assert_int_equal(b.count, ALB_COUNT(order));
    for (uint32_t i = 0; i < ALB_COUNT(order); i++) {
        assert_int_equal(b.arrivals[i].port, ALB_SIM_PATH_PORT + order[i]);
        assert_int_equal(b.arrivals[i].at, ALB_SIM_US(LANES - order[i]));
    }
    assert_int_equal(b.fabric.lanes[1].stats.lost, 1);
    bench_fini(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lane_of__exact__follows_the_path),
        cmocka_unit_test(lane_of__hash__spreads_and_is_steady),
        cmocka_unit_test(lanes__differ_and_change_by_themselves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
