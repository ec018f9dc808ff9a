// SPDX-License-Identifier: BSD-2-Clause
// What leaves in runs is what leaves packet by packet: two pairs do the same, one in bursts of many packets, one in
// bursts of one, which have no runs.
#include "engine/tests/csa_pair.h"

struct both {
    struct csa_pair *c[2];
};

static void begin(struct both *both)
{
    for (int i = 0; i < 2; i++) {
        both->c[i] = csa_pair_new(NULL, NULL);
        csa_pair_greet(both->c[i]);
    }
    both->c[1]->pair->hosts[0].tx.burst_segments_max = 1;
}

static void end(struct both *both)
{
    for (int i = 0; i < 2; i++) {
        void *state = both->c[i];
        csa_pair_teardown(&state);
    }
}

// But for addresses: the two pairs' memory lies in different places.
static void look(const struct csa_pair *c, uint32_t index, struct csa_seen *seen)
{
    memset(seen, 0, sizeof(*seen));
    csa_pair_look(c, 0, index, seen);
    for (uint32_t i = 0; i < seen->count; i++) {
        seen->frames[i].segment.va = 0;
        seen->frames[i].segment.payload = NULL;
    }
}

static void assert_same_packet(const struct both *both, uint32_t index)
{
    const struct pair_packet *a = pair_peek(both->c[0]->pair, 0, index), *b = pair_peek(both->c[1]->pair, 0, index);
    static struct csa_seen seen[2];
    assert_int_equal(a->datagram.length, b->datagram.length);
    for (int i = 0; i < 2; i++)
        look(both->c[i], index, &seen[i]);
    assert_memory_equal(&seen[0], &seen[1], sizeof(seen[0]));
}

// Both send what they have; returns how many packets that are.
static uint32_t send(const struct both *both)
{
    uint32_t count = pair_send(both->c[0]->pair, 0);
    assert_int_equal(pair_send(both->c[1]->pair, 0), count);
    for (uint32_t i = 0; i < count; i++)
        assert_same_packet(both, i);
    assert_memory_equal(&both->c[0]->pair->hosts[0].stats.sum, &both->c[1]->pair->hosts[0].stats.sum,
                        sizeof(both->c[0]->pair->hosts[0].stats.sum));
    assert_int_equal(csa_pair_live(both->c[0], 0)->inflight_bytes, csa_pair_live(both->c[1], 0)->inflight_bytes);
    return count;
}

static void ask(const struct both *both, enum alb_wr_opcode opcode, uint32_t flags, uint32_t length)
{
    for (int i = 0; i < 2; i++)
        csa_pair_ask(both->c[i], opcode, 1, flags, length);
}

static void csa_run_out__a_message(void **state)
{
    struct both both;
    begin(&both);
    ask(&both, ALB_WR_RDMA_WRITE, ALB_SEND_SIGNALED, 40 * CSA_PAIR_SEGMENT + 4);
    assert_int_equal(send(&both), 41);
    for (int i = 0; i < 2; i++) {
        pair_settle(both.c[i]->pair);
        csa_pair_expect(both.c[i], 0, 1, ALB_WC_SUCCESS);
    }
    end(&both);
}

// Several of any length, with losses and repetitions, until all are complete.
static void csa_run_out__many_messages_with_losses(void **state)
{
    struct alb_prng prng;
    struct both both;
    alb_prng_init(&prng, 5);
    begin(&both);
    for (uint32_t round = 0; round < 60; round++) {
        uint32_t requests = 1 + alb_prng_below(&prng, 4), losses = alb_prng_below(&prng, 3);
        for (uint32_t i = 0; i < requests; i++)
            ask(&both, ALB_WR_RDMA_WRITE, ALB_SEND_SIGNALED, alb_prng_below(&prng, 30 * CSA_PAIR_SEGMENT));
        for (uint32_t steps = 0; steps < 100; steps++) {
            uint32_t count = send(&both);
            for (uint32_t i = 0; i < count; i++) {
                bool is_lost = losses > 0 && alb_prng_below(&prng, 20) < losses;
                for (int k = 0; k < 2; k++)
                    (is_lost ? pair_lose : pair_deliver)(both.c[k]->pair, 0);
            }
            for (int k = 0; k < 2; k++) {
                pair_send(both.c[k]->pair, 1);
                pair_deliver_all(both.c[k]->pair, 1);
                pair_pass(both.c[k]->pair, 200 * ALB_NS_PER_US);
            }
        }
        for (uint32_t i = 0; i < requests; i++)
            for (int k = 0; k < 2; k++)
                csa_pair_expect(both.c[k], 0, 1, ALB_WC_SUCCESS);
    }
    end(&both);
}

// A key that covers the message's first half only, as when the region was changed since: the run does not begin, and
// the request fails where it would without.
static void csa_run_out__a_key_that_ends(void **state)
{
    struct both both;
    begin(&both);
    for (int i = 0; i < 2; i++) {
        csa_pair_ask(both.c[i], ALB_WR_RDMA_WRITE, 1, ALB_SEND_SIGNALED, 8 * CSA_PAIR_SEGMENT);
        // Taken up, but not sent: one packet's window is all there is.
        struct alb_assoc_live *live = csa_pair_live(both.c[i], 0);
        live->congestion.window_bytes = 2 * CSA_PAIR_CHARGE;
    }
    assert_int_equal(send(&both), 2);
    for (int i = 0; i < 2; i++) {
        both.c[i]->pair->hosts[0].mr->length = 4 * CSA_PAIR_SEGMENT;
        csa_pair_live(both.c[i], 0)->congestion.window_bytes = 64 * CSA_PAIR_CHARGE;
        pair_deliver_all(both.c[i]->pair, 0);
        pair_send(both.c[i]->pair, 1);
        pair_deliver_all(both.c[i]->pair, 1);
    }
    assert_int_equal(send(&both), 2);
    for (int i = 0; i < 2; i++) {
        csa_pair_expect(both.c[i], 0, 1, ALB_WC_LOC_PROT_ERR);
        both.c[i]->pair->hosts[0].mr->length = PAIR_MEMORY_BYTES;
    }
    end(&both);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(csa_run_out__a_message),
        cmocka_unit_test(csa_run_out__many_messages_with_losses),
        cmocka_unit_test(csa_run_out__a_key_that_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
