// SPDX-License-Identifier: BSD-2-Clause
// The bitmap of an RC message under way, at both of its ends.
#include "engine/partial.h"

#include "engine/tests/csa_pair.h"

enum { SEGMENTS = 8 };

static int query(struct csa_pair *c, int side, uint32_t chunk_bytes, struct alb_partial *partial, uint64_t *bitmap)
{
    *partial = (struct alb_partial){.chunk_bytes = chunk_bytes};
    return alb_qp_partial(c->qps[side], side == 1, 0, partial, bitmap, 1);
}

// Segments of one message, of which some are lost.
static void send_with_loss(struct csa_pair *c, uint32_t lost)
{
    csa_pair_ask(c, ALB_WR_RDMA_WRITE, 1, ALB_SEND_SIGNALED, SEGMENTS * CSA_PAIR_SEGMENT);
    assert_int_equal(pair_send(c->pair, 0), SEGMENTS);
    for (uint32_t i = 0; i < SEGMENTS; i++)
        if (lost >> i & 1)
            pair_lose(c->pair, 0);
        else
            pair_deliver(c->pair, 0);
}

static void rc__both_ends_know_what_has_come(void **state)
{
    struct csa_pair *c = *state;
    struct alb_partial partial;
    uint64_t bitmap = 0;
    csa_pair_greet(c);
    assert_int_equal(query(c, 0, 0, &partial, &bitmap), ENOENT);
    assert_int_equal(query(c, 1, 0, &partial, &bitmap), ENOENT);
    send_with_loss(c, 1 << 1 | 1 << 4);
    assert_int_equal(query(c, 1, 0, &partial, &bitmap), 0);
    assert_int_equal(partial.chunks, SEGMENTS);
    assert_int_equal(partial.chunk_bytes, CSA_PAIR_SEGMENT);
    assert_int_equal(bitmap, 0xff & ~(1 << 1 | 1 << 4));
    assert_int_equal(partial.held, SEGMENTS - 2);
    assert_int_equal(partial.remote_addr, pair_va(c->pair, 1, 0));
    assert_int_equal(query(c, 0, 0, &partial, &bitmap), 0);
    assert_int_equal(bitmap, 0); // not reported yet
    pair_send(c->pair, 1);
    pair_deliver_all(c->pair, 1);
    assert_int_equal(query(c, 0, 0, &partial, &bitmap), 0);
    assert_int_equal(bitmap, 0xff & ~(1 << 1 | 1 << 4));
    assert_int_equal(query(c, 0, 4 * CSA_PAIR_SEGMENT, &partial, &bitmap), 0);
    assert_int_equal(partial.chunks, 2);
    assert_int_equal(bitmap, 0);
    pair_settle(c->pair);
    assert_int_equal(query(c, 0, 0, &partial, &bitmap), ENOENT);
    assert_int_equal(query(c, 1, 0, &partial, &bitmap), ENOENT);
    csa_pair_expect(c, 0, 1, ALB_WC_SUCCESS);
}

// A message longer than the window: records of its own first half, which the peer holds, stand where those of what has
// not left will be.
static void rc__what_has_not_left_is_not_held(void **state)
{
    struct csa_pair *c = *state;
    struct alb_partial partial;
    uint64_t bitmap = 0;
    for (int side = 0; side < 2; side++)
        c->engines[side]->config.csa_window_segments = SEGMENTS / 2;
    csa_pair_greet(c);
    csa_pair_ask(c, ALB_WR_RDMA_WRITE, 1, ALB_SEND_SIGNALED, SEGMENTS * CSA_PAIR_SEGMENT);
    assert_int_equal(pair_send(c->pair, 0), SEGMENTS / 2);
    pair_lose(c->pair, 0);
    pair_deliver_all(c->pair, 0);
    pair_send(c->pair, 1);
    pair_deliver_all(c->pair, 1);
    assert_int_equal(query(c, 0, 0, &partial, &bitmap), 0);
    assert_int_equal(partial.chunks, SEGMENTS);
    assert_int_equal(bitmap, 0xf & ~1);
}

static void others__have_none(void **state)
{
    struct csa_pair *c = *state;
    struct alb_partial partial = {0};
    assert_int_equal(alb_qp_partial(c->qps[0], true, 3, &partial, NULL, 0), EINVAL);
    assert_int_equal(alb_qp_partial(pair_qp(c->pair, 0, ALB_QPT_UD), true, 0, &partial, NULL, 0), EOPNOTSUPP);
    assert_int_equal(alb_qp_partial(pair_qp(c->pair, 0, ALB_QPT_UC), true, 0, &partial, NULL, 0), EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CSA_PAIR_TEST(rc__both_ends_know_what_has_come),
        CSA_PAIR_TEST(rc__what_has_not_left_is_not_held),
        CSA_PAIR_TEST(others__have_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
