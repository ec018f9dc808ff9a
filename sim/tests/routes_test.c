// SPDX-License-Identifier: BSD-2-Clause
// Shortest ways through a fat-tree, and what is left of them when cables are closed.
#include "sim/routes.h"

#include "base/tests/test.h"

#include <errno.h>
#include <stdlib.h>

struct bench {
    struct alb_topology topology;
    struct alb_routes routes;
};

static void bench_init(struct bench *bench)
{
    struct alb_topology_spec spec;
    char error[ALB_TOPOLOGY_ERROR_MAX];
    alb_topology_spec_default(&spec);
    spec.shape = ALB_TOPOLOGY_FAT_TREE;
    spec.k = 4;
    assert_true(alb_topology_build(&bench->topology, &spec, error));
    assert_int_equal(alb_routes_init(&bench->routes, &bench->topology, error), 0);
    assert_int_equal(alb_routes_bytes(&bench->topology), 4 * 20 * 8); // switches, leaves
}

static void bench_fini(struct bench *bench)
{
    alb_routes_fini(&bench->routes);
    alb_topology_free(&bench->topology);
}

static uint32_t ways(const struct bench *bench, const char *from, uint32_t to_host)
{
    const struct alb_routes *routes = &bench->routes;
    uint32_t node = alb_topology_find(&bench->topology, from);
    uint32_t row = (node - bench->topology.host_count) * routes->leaf_count;
    return routes->sets[routes->set_of[row + routes->host_leaf[to_host]]].count;
}

static void find__equal_ways(void **state)
{
    struct bench b;
    bench_init(&b);
    assert_int_equal(b.routes.leaf_count, 8);
    assert_int_equal(ways(&b, "p0e0", 15), 2); // up, to either aggregation
    assert_int_equal(ways(&b, "p0a0", 15), 2); // up, to either core
    assert_int_equal(ways(&b, "c0", 15), 1);
    assert_int_equal(ways(&b, "p3a0", 15), 1);
    uint32_t cables[8];
    uint32_t common;
    assert_int_equal(alb_routes_way(&b.routes, 0, 15, cables, 8, &common), 6);
    assert_int_equal(common, 1);
    assert_int_equal(alb_routes_way(&b.routes, 0, 1, cables, 8, &common), 2);
    assert_int_equal(common, 2);
    cables[5] = UINT32_MAX;
    assert_int_equal(alb_routes_way(&b.routes, 0, 15, cables, 5, NULL), 6);
    assert_int_equal(cables[5], UINT32_MAX);
    bench_fini(&b);
}

static void find__around_closed_cables(void **state)
{
    struct bench b;
    uint32_t cable, cables[8];
    bench_init(&b);
    bool *is_closed = calloc(b.topology.cable_count, sizeof(*is_closed));
    assert_int_equal(alb_topology_select(&b.topology, "p0e0-p0a0", &cable, 1), 1);
    is_closed[cable] = true;
    alb_routes_find(&b.routes, is_closed);
    assert_int_equal(ways(&b, "p0e0", 15), 1);
    assert_int_equal(alb_topology_select(&b.topology, "p0e0-p0a1", &cable, 1), 1);
    is_closed[cable] = true;
    alb_routes_find(&b.routes, is_closed);
    assert_int_equal(ways(&b, "p0e0", 15), 0);
    assert_int_equal(ways(&b, "c0", 0), 0);
    assert_int_equal(alb_routes_way(&b.routes, 0, 15, cables, 8, NULL), 0);
    alb_routes_find(&b.routes, NULL);
    assert_int_equal(ways(&b, "p0e0", 15), 2);
    free(is_closed);
    bench_fini(&b);
}

static alb_sim_time time_of(const void *context, uint32_t link)
{
    const uint32_t *slow = context;
    return link == 2 * *slow ? 100 : 1;
}

static void least__by_the_fastest_way(void **state)
{
    struct bench b;
    uint32_t slow;
    bench_init(&b);
    uint32_t from = alb_topology_find(&b.topology, "p0e0");
    alb_topology_select(&b.topology, "p0e0-p0a0", &slow, 1);
    assert_int_equal(alb_routes_least(&b.routes, from, 15, time_of, &slow), 4);
    assert_int_equal(alb_routes_least(&b.routes, from, 0, time_of, &slow), 0); // whose leaf it is
    assert_int_equal(alb_routes_least(&b.routes, alb_topology_find(&b.topology, "p0a0"), 2, time_of, &slow), 1);
    alb_topology_select(&b.topology, "c0-p3a0", &slow, 1);
    assert_int_equal(alb_routes_least(&b.routes, alb_topology_find(&b.topology, "c0"), 15, time_of, &slow), 2);
    bench_fini(&b);
}

static void rates__of_all_cables_of_a_hop(void **state)
{
    struct bench b;
    uint64_t rates[4], rate = 100000000000;
    bench_init(&b);
    alb_routes_rates(&b.routes, alb_topology_find(&b.topology, "p0e0"), 15, rates, 4);
    assert_int_equal(rates[0], 2 * rate);
    assert_int_equal(rates[1], 4 * rate); // of either aggregation to two cores
    assert_int_equal(rates[2], 4 * rate);
    assert_int_equal(rates[3], 2 * rate);
    bench_fini(&b);
}

static void init__a_host_without_a_switch_is_refused(void **state)
{
    struct alb_topology_node nodes[3] = {{"h0", 2}, {"h1", 1}, {"s0", 1}};
    struct alb_topology_cable cables[2] = {{0, 2, 0, 1, 1}, {0, 1, 0, 1, 1}};
    const struct alb_topology topology = {2, 3, 2, 1, nodes, cables, false};
    struct alb_routes routes;
    char error[ALB_TOPOLOGY_ERROR_MAX];
    assert_int_equal(alb_routes_init(&routes, &topology, error), EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(find__equal_ways),
        cmocka_unit_test(find__around_closed_cables),
        cmocka_unit_test(least__by_the_fastest_way),
        cmocka_unit_test(rates__of_all_cables_of_a_hop),
        cmocka_unit_test(init__a_host_without_a_switch_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
