// SPDX-License-Identifier: BSD-2-Clause
// Topologies from numbers and from text, and cables by name.
#include "sim/topology.h"

#include "base/tests/test.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

static void build(struct alb_topology *topology, const struct alb_topology_spec *spec)
{
    char error[ALB_TOPOLOGY_ERROR_MAX];
    assert_true(alb_topology_build(topology, spec, error));
}

static uint32_t count(const struct alb_topology *topology, const char *pattern)
{
    return alb_topology_select(topology, pattern, NULL, 0);
}

static void build__fat_tree_of_16_ports(void **state)
{
    struct alb_topology topology;
    struct alb_topology_spec spec;
    alb_topology_spec_default(&spec);
    spec.shape = ALB_TOPOLOGY_FAT_TREE;
    spec.k = 16;
    build(&topology, &spec);
    assert_int_equal(topology.host_count, 1024);
    assert_int_equal(topology.node_count, 1024 + 16 * 8 + 16 * 8 + 64);
    assert_int_equal(topology.cable_count, 3 * 1024);
    for (uint32_t i = topology.host_count; i < topology.node_count; i++)
        assert_int_equal(topology.nodes[i].cable_count, 16);
    assert_int_equal(count(&topology, "tier:0"), 1024);
    assert_int_equal(count(&topology, "tier:2:8"), 8);
    assert_int_equal(count(&topology, "c5-*"), 16);
    assert_int_equal(count(&topology, "p3a*-p3e*"), 64);
    assert_int_equal(count(&topology, "p3a1-h*"), 0);
    alb_topology_free(&topology);
}

static void build__oversubscription_takes_uplinks_away(void **state)
{
    struct alb_topology topology;
    struct alb_topology_spec spec;
    char error[ALB_TOPOLOGY_ERROR_MAX];
    alb_topology_spec_default(&spec);
    spec.shape = ALB_TOPOLOGY_FAT_TREE;
    spec.k = 16;
    spec.oversubscription = 4;
    build(&topology, &spec);
    assert_int_equal(topology.host_count, 1024);
    assert_int_equal(count(&topology, "p0e0-p0a*"), 2);
    assert_int_equal(count(&topology, "p0a0-c*"), 8);
    alb_topology_free(&topology);
    spec.oversubscription = 3;
    assert_false(alb_topology_build(&topology, &spec, error));
    assert_non_null(strstr(error, "divides k / 2"));
}

static void build__others(void **state)
{
    struct alb_topology topology;
    struct alb_topology_spec spec;
    alb_topology_spec_default(&spec);
    spec.shape = ALB_TOPOLOGY_LEAF_SPINE;
    spec.hosts = 3;
    build(&topology, &spec);
    assert_int_equal(topology.host_count, 12);
    assert_int_equal(count(&topology, "l*-s*"), 16);
    alb_topology_free(&topology);
    spec.shape = ALB_TOPOLOGY_TWO_SITES;
    spec.hosts = 7;
    spec.long_cables = 2;
    build(&topology, &spec);
    assert_int_equal(topology.nodes[alb_topology_find(&topology, "s0")].cable_count, 4 + 2);
    assert_int_equal(topology.nodes[alb_topology_find(&topology, "s1")].cable_count, 3 + 2);
    alb_topology_free(&topology);
}

static void build__impossible_is_refused_in_words(void **state)
{
    struct alb_topology topology;
    struct alb_topology_spec spec;
    char error[ALB_TOPOLOGY_ERROR_MAX];
    static const struct {
        enum alb_topology_shape shape;
        uint32_t hosts, k;
        const char *key, *says;
    } cases[] = {
        {ALB_TOPOLOGY_STAR, 0, 4, "hosts", "1 to 65536 hosts"},
        {ALB_TOPOLOGY_FAT_TREE, 16, 7, "k", "even"},
        {ALB_TOPOLOGY_FAT_TREE, 16, 1000, "k", "2 to 128"},
        {ALB_TOPOLOGY_TWO_SITES, 1, 4, "hosts", "2 to 65536"},
        {ALB_TOPOLOGY_LEAF_SPINE, 100000, 4, "hosts", "65536 ports"},
        {ALB_TOPOLOGY_FILE, 16, 4, "topology", "numbers"},
    };
    alb_topology_spec_default(&spec);
    spec.shape = ALB_TOPOLOGY_LEAF_SPINE;
    spec.hosts = 1;
    spec.leaves = spec.spines = 16000;
    assert_false(alb_topology_build(&topology, &spec, error));
    assert_non_null(strstr(error, "4194304 cables"));
    for (uint32_t i = 0; i < ALB_COUNT(cases); i++) {
        alb_topology_spec_default(&spec);
        spec.shape = cases[i].shape;
        spec.hosts = cases[i].hosts;
        spec.k = cases[i].k;
        assert_false(alb_topology_build(&topology, &spec, error));
        assert_non_null(strstr(error, cases[i].says));
        assert_string_equal(alb_topology_find_fault(&spec).key, cases[i].key);
    }
}

static bool read_text(struct alb_topology *topology, const char *text, char *error)
{
    FILE *file = fmemopen((void *)(uintptr_t)text, strlen(text), "r");
    assert_non_null(file);
    bool is_good = alb_topology_read(topology, file, "net", error);
    fclose(file);
    return is_good;
}

static void read__a_ring(void **state)
{
    struct alb_topology topology;
    char error[ALB_TOPOLOGY_ERROR_MAX];
    assert_true(read_text(&topology,
                          "# a ring\n"
                          "hosts 3\nswitch a\nswitch b\nswitch c\n"
                          "cable h0 a 100Gb/s 1us\ncable b h1 100Gb/s 1us # turned round\ncable h2 c 100Gb/s 1us\n"
                          "cable a b 40Gb/s 600ns x2\ncable b c 40Gb/s 600ns\ncable c a 40Gb/s 25ms\n",
                          error));
    assert_int_equal(topology.cable_count, 7);
    assert_int_equal(topology.tier_count, 2);
    assert_int_equal(count(&topology, "a-b"), 2);
    assert_int_equal(count(&topology, "tier:1"), 4);
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(topology.cables[i].a, i);
    assert_int_equal(topology.cables[6].delay, ALB_SIM_MS(25));
    assert_int_equal(topology.cables[3].bits_per_s, 40000000000);
    assert_true(topology.has_unlike_ways);
    alb_topology_free(&topology);
    assert_true(read_text(&topology,
                          "hosts 2\nswitch a\nswitch b\ncable h0 a 10Gb/s 1us\ncable h1 b 1Gb/s 1us\n"
                          "cable a b 40Gb/s 600ns x2\n",
                          error));
    assert_false(topology.has_unlike_ways); // between the switches all are alike
    alb_topology_free(&topology);
}

static void assert_sides(const struct alb_topology *topology)
{
    uint8_t *sides = alb_topology_sides(topology);
    assert_non_null(sides);
    for (uint32_t i = 0; i < topology->host_count; i++)
        assert_int_equal(sides[i], 0);
    for (uint32_t i = 0; i < topology->cable_count; i++)
        assert_int_equal(sides[topology->cables[i].a] + sides[topology->cables[i].b], 1);
    free(sides);
}

static void sides__where_every_cable_can_join_both(void **state)
{
    static const enum alb_topology_shape shapes[] = {ALB_TOPOLOGY_STAR, ALB_TOPOLOGY_LEAF_SPINE, ALB_TOPOLOGY_FAT_TREE};
    struct alb_topology_spec spec;
    struct alb_topology topology;
    alb_topology_spec_default(&spec);
    for (uint32_t i = 0; i < ALB_COUNT(shapes); i++) {
        spec.shape = shapes[i];
        build(&topology, &spec);
        assert_sides(&topology);
        alb_topology_free(&topology);
    }
    spec.shape = ALB_TOPOLOGY_TWO_SITES; // two switches, both with hosts, joined
    build(&topology, &spec);
    assert_null(alb_topology_sides(&topology));
    alb_topology_free(&topology);
}

static void read__errors_say_where_and_what(void **state)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"", "hosts N"},
        {"hosts 0\n", "net:1: expected: hosts N"},
        {"hosts 2\nhosts 2\n", "net:2: hosts are given once, before everything else"},
        {"switch a\n", "net:1: expected first: hosts N"},
        {"hosts 2\nswitch a\nswitch a\n", "net:3: there is a node"},
        {"hosts 2\nswitch a-b\n", "net:2: expected: switch NAME"},
        {"hosts 2\ncable h0 q 100Gb/s 1us\n", "net:2: no host or switch is called \"q\""},
        {"hosts 2\nswitch a\ncable h0 a 100 1us\n", "net:3: "},
        {"hosts 2\nswitch a\ncable h0 a 100Gb/s never\n", "net:3: "},
        {"hosts 2\nswitch a\ncable h0 a 100Gb/s 1us y3\n", "net:3: expected xN"},
        {"hosts 2\nswitch a\ncable h0 a 100Gb/s\n", "net:3: expected: cable"},
        {"hosts 2\nswitch a\ncable h0 h0 100Gb/s 1us\n", "net:3: a cable joins two nodes"},
        {"hosts 2\nswitch a\ncable h0 a 100Gb/s 1us\n", "host h1 has 0 cables"},
        {"hosts 2\ncable h0 h1 100Gb/s 1us\n", "to a host"},
        {"hosts 2\nswitch a\nswitch b\ncable h0 a 1Gb/s 1us\ncable h1 b 1Gb/s 1us\n",
         "net:5: no cables lead from host h0 to host h1"},
        {"hosts 2\nwires\n", "net:2: expected hosts, switch or cable, not \"wires\""},
    };
    struct alb_topology topology;
    char error[ALB_TOPOLOGY_ERROR_MAX];
    for (uint32_t i = 1; i < ALB_COUNT(cases); i++) {
        assert_false(read_text(&topology, cases[i].text, error));
        if (!strstr(error, cases[i].says))
            fail_msg("said \"%s\", not \"%s\"", error, cases[i].says);
    }
}

// Each cable's nodes are found at once, not among all: that would be three thousand million comparisons.
static void read__many_hosts(void **state)
{
    enum { HOSTS = 60000 };
    struct alb_topology topology;
    char error[ALB_TOPOLOGY_ERROR_MAX], *text = malloc(40 * (HOSTS + 2));
    assert_non_null(text);
    size_t length = (size_t)sprintf(text, "hosts %d\nswitch a\n", HOSTS);
    for (uint32_t i = 0; i < HOSTS; i++)
        length += (size_t)sprintf(text + length, "cable h%u a 100Gb/s 1us\n", i);
    clock_t begun = clock();
    assert_true(read_text(&topology, text, error));
    assert_true(clock() - begun < 5 * CLOCKS_PER_SEC);
    assert_int_equal(topology.cables[HOSTS - 1].a, HOSTS - 1);
    alb_topology_free(&topology);
    free(text);
}

static void select__nonsense_selects_nothing(void **state)
{
    struct alb_topology topology;
    struct alb_topology_spec spec;
    uint32_t cables[2];
    alb_topology_spec_default(&spec);
    build(&topology, &spec);
    assert_int_equal(count(&topology, "tier:"), 0);
    assert_int_equal(count(&topology, "tier:0:x"), 0);
    assert_int_equal(count(&topology, "h1"), 0);
    assert_int_equal(alb_topology_select(&topology, "h1*-s0", cables, 2), 7); // h1, h10 to h15
    assert_int_equal(cables[0], 1);
    assert_int_equal(cables[1], 10);
    alb_topology_free(&topology);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(build__fat_tree_of_16_ports),
        cmocka_unit_test(build__oversubscription_takes_uplinks_away),
        cmocka_unit_test(build__others),
        cmocka_unit_test(build__impossible_is_refused_in_words),
        cmocka_unit_test(read__a_ring),
        cmocka_unit_test(sides__where_every_cable_can_join_both),
        cmocka_unit_test(read__errors_say_where_and_what),
        cmocka_unit_test(read__many_hosts),
        cmocka_unit_test(select__nonsense_selects_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
