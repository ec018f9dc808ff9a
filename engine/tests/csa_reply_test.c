// SPDX-License-Identifier: BSD-2-Clause
// Answers to refused packets: one small packet each, and nothing else is kept.
#include "engine/csa_reply.h"

#include "engine/tests/csa_pair.h"

static void ask(struct csa_pair *c, uint32_t epoch, uint32_t slot, uint32_t length)
{
    const struct csa_made made = {.bytes = {0}};
    const struct alb_csa_header header = {.source_slot = slot, .source_epoch = 77, .destination_epoch = epoch};
    const struct alb_datagram datagram = {
        .peer = {c->pair->hosts[0].addr, 12345},
        .local = {c->pair->hosts[1].addr, ALB_ROCE_PORT},
        .bytes = made.bytes,
        .length = length,
    };
    alb_csa_reply_reset(c->engines[1], &datagram, &header);
}

static void reset__goes_to_the_engine_that_asked(void **state)
{
    struct csa_pair *c = *state;
    struct csa_seen seen;
    ask(c, 55, 3, 200);
    assert_int_equal(pair_send(c->pair, 1), 1);
    csa_pair_look(c, 1, 0, &seen);
    assert_int_equal(seen.header.dest_slot, 3);
    assert_int_equal(seen.header.destination_epoch, 77);
    assert_int_equal(seen.count, 1);
    assert_int_equal(seen.frames[0].type, ALB_CSA_RESET);
    assert_int_equal(seen.frames[0].reset.epoch, 55);
    assert_int_equal(c->pair->hosts[1].bursts[0].peer.port, ALB_ROCE_PORT + 3); // not where it says it came from
    pair_lose(c->pair, 1);
}

static void reset__is_never_longer_than_the_question(void **state)
{
    struct csa_pair *c = *state;
    uint32_t answer = ALB_CSA_OUTER_BYTES + 8;
    ask(c, 55, 0, answer - 4);
    assert_int_equal(pair_send(c->pair, 1), 0);
    ask(c, 55, 0, answer);
    assert_int_equal(pair_send(c->pair, 1), 1);
    assert_int_equal(pair_peek(c->pair, 1, 0)->datagram.length, answer);
    pair_lose(c->pair, 1);
}

// Those that find no room go unanswered; the others keep their order over batches that are too small.
static void replies__wait_in_a_ring(void **state)
{
    struct csa_pair *c = *state;
    for (uint32_t round = 0; round < 3; round++) {
        for (uint32_t i = 0; i < ALB_CSA_REPLIES + 10; i++)
            ask(c, 1000 * (round + 1) + i, 0, 200);
        c->pair->hosts[1].tx.segment_capacity = 5;
        assert_int_equal(pair_send(c->pair, 1), ALB_CSA_REPLIES);
        for (uint32_t i = 0; i < ALB_CSA_REPLIES; i++) {
            struct csa_seen seen;
            csa_pair_look(c, 1, 0, &seen);
            assert_int_equal(seen.frames[0].reset.epoch, 1000 * (round + 1) + i);
            pair_lose(c->pair, 1);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CSA_GREETED_TEST(reset__goes_to_the_engine_that_asked),
        CSA_GREETED_TEST(reset__is_never_longer_than_the_question),
        CSA_GREETED_TEST(replies__wait_in_a_ring),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
