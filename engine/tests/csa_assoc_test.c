// SPDX-License-Identifier: BSD-2-Clause
// The table of associations, and what one knows of its peer.
#include "engine/tests/csa_pair.h"

static struct alb_addr addr(uint8_t last)
{
    return alb_addr_from_ipv4((const uint8_t[]){10, 1, 0, last});
}

static struct alb_assoc *get(struct csa_pair *c, uint8_t local, uint8_t peer, uint8_t slot)
{
    struct alb_addr from = addr(local), to = addr(peer);
    return alb_assoc_get(c->engines[0], &from, &to, slot);
}

static struct alb_assoc *find(struct csa_pair *c, uint8_t local, uint8_t peer, uint8_t slot)
{
    struct alb_addr from = addr(local), to = addr(peer);
    return alb_assoc_find(c->engines[0], &from, &to, slot);
}

static void allow_many_peers(struct alb_engine_config *config)
{
    config->peer_max = 32;
}

static void get__one_for_each_peer_engine(void **state)
{
    struct csa_pair *c = *state;
    struct alb_assoc *a = get(c, 1, 2, 0);
    assert_non_null(a);
    assert_ptr_equal(get(c, 1, 2, 0), a);
    struct alb_assoc *other_slot = get(c, 1, 2, 1), *other_local = get(c, 3, 2, 0), *other_peer = get(c, 1, 4, 0);
    assert_true(a != other_slot && a != other_local && a != other_peer && other_slot != other_local);
    assert_ptr_equal(find(c, 1, 2, 1), other_slot);
    assert_ptr_equal(find(c, 3, 2, 0), other_local);
    assert_null(find(c, 1, 2, 2));
    assert_null(find(c, 9, 2, 0));
    struct alb_assoc *all[] = {a, a, other_slot, other_local, other_peer};
    for (uint32_t i = 0; i < ALB_COUNT(all); i++)
        alb_assoc_put(c->engines[0], all[i]);
    assert_null(find(c, 1, 2, 0));
}

static void get__refuses_beyond_peer_max(void **state)
{
    struct csa_pair *c = *state;
    struct alb_assoc *assocs[8]; // peer_max, one of which is in use
    for (uint8_t i = 0; i < 7; i++) {
        assocs[i] = get(c, 1, (uint8_t)(10 + i), 0);
        assert_non_null(assocs[i]);
    }
    assert_null(get(c, 1, 20, 0));
    alb_assoc_put(c->engines[0], assocs[3]);
    assocs[3] = get(c, 1, 20, 0);
    assert_non_null(assocs[3]);
    for (uint8_t i = 0; i < 7; i++) {
        if (i != 3)
            assert_ptr_equal(find(c, 1, (uint8_t)(10 + i), 0), assocs[i]);
        alb_assoc_put(c->engines[0], assocs[i]);
    }
    assert_int_equal(c->engines[0]->csa->assoc_count, 1);
}

static void get__knows_sixteen_local_addresses_at_a_time(void **state)
{
    struct csa_pair *c = csa_pair_new(allow_many_peers, NULL);
    struct alb_assoc *assocs[15]; // the first address is the host's own
    for (uint8_t i = 0; i < 15; i++) {
        assocs[i] = get(c, (uint8_t)(30 + i), 2, 0);
        assert_non_null(assocs[i]);
    }
    assert_null(get(c, 60, 2, 0));
    struct alb_assoc *second = get(c, 33, 4, 0);
    assert_non_null(second);
    alb_assoc_put(c->engines[0], assocs[3]);
    assert_null(get(c, 60, 2, 0)); // still in use
    alb_assoc_put(c->engines[0], second);
    assocs[3] = get(c, 60, 2, 0);
    assert_non_null(assocs[3]);
    assert_null(find(c, 33, 2, 0));
    assert_ptr_equal(find(c, 60, 2, 0), assocs[3]);
    for (uint8_t i = 0; i < 15; i++)
        alb_assoc_put(c->engines[0], assocs[i]);
    csa_pair_free(c);
}

// One after another there may be any number.
static void get__local_addresses_that_nobody_uses_make_room(void **state)
{
    struct csa_pair *c = *state;
    for (uint8_t i = 0; i < 100; i++) {
        struct alb_assoc *assoc = get(c, (uint8_t)(30 + i), 2, 0);
        assert_non_null(assoc);
        assert_ptr_equal(find(c, (uint8_t)(30 + i), 2, 0), assoc);
        alb_assoc_put(c->engines[0], assoc);
        assert_null(find(c, (uint8_t)(30 + i), 2, 0));
    }
}

static void payload__is_bounded_and_a_multiple_of_four(void **state)
{
    struct csa_pair *c = *state;
    struct alb_assoc *assoc = c->csa[0]->assoc;
    uint32_t most = c->engines[0]->config.csa_payload_bytes;
    alb_mtu_set_route(c->engines[0], assoc, 1000000);
    assert_int_equal(assoc->payload_max, most);
    alb_mtu_set_route(c->engines[0], assoc, 1003);
    assert_int_equal(assoc->payload_max, 1000);
    alb_mtu_set_route(c->engines[0], assoc, 0);
    assert_int_equal(assoc->payload_max, 512);
    const struct alb_endpoint peer = {c->pair->hosts[1].addr, ALB_ROCE_PORT};
    alb_engine_path_mtu(c->engines[0], &peer, 804, c->pair->now);
    assert_int_equal(assoc->payload_max, 804);
}

static void restart__forgets_what_came_by_paths(void **state)
{
    struct csa_pair *c = *state;
    csa_pair_greet(c);
    struct alb_assoc *assoc = c->csa[1]->assoc;
    struct alb_assoc_live *live = assoc->live;
    uint32_t before = assoc->peer_epoch;
    live->credit_bytes = 0;
    live->peer_rtt_ns = 5;
    alb_assoc_restart(c->engines[1], assoc, before + 1);
    assert_int_equal(assoc->peer_epoch, before + 1);
    assert_int_equal(assoc->dead_epoch, before);
    assert_false(live->paths_in[0].is_known);
    assert_int_equal(live->credit_bytes, ALB_CSA_CREDIT_NONE); // that was another's
    assert_int_equal(live->peer_rtt_ns, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CSA_PAIR_TEST(get__one_for_each_peer_engine),
        CSA_PAIR_TEST(get__refuses_beyond_peer_max),
        cmocka_unit_test(get__knows_sixteen_local_addresses_at_a_time),
        CSA_PAIR_TEST(get__local_addresses_that_nobody_uses_make_room),
        CSA_PAIR_TEST(payload__is_bounded_and_a_multiple_of_four),
        CSA_PAIR_TEST(restart__forgets_what_came_by_paths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
