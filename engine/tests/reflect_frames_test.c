// SPDX-License-Identifier: BSD-2-Clause
// Commands and verdicts on the wire: with the data's packets where they can, and of strangers not at all.
#include "engine/tests/reflect_pair.h"

static void small_ones__ride_with_the_data(void **state)
{
    struct csa_pair *c = *state;
    struct reflect_made made;
    struct csa_seen seen;
    reflect_pair_make(c, &made, 1, 0, 64);
    reflect_pair_post(c, &made);
    pair_send(c->pair, 0);
    assert_int_equal(pair_count(c->pair, 0), 1);
    csa_pair_look(c, 0, 0, &seen);
    assert_int_equal(seen.frames[0].segment.op, ALB_CSA_TXN_WRITE);
    assert_int_equal(seen.frames[1].segment.op, ALB_CSA_TXN_END);
    pair_deliver_all(c->pair, 0);
    pair_send(c->pair, 1);
    assert_int_equal(pair_count(c->pair, 1), 1); // paths, report, verdict
    assert_int_equal(csa_pair_count(c, 1, ALB_CSA_VERDICT, NULL), 1);
    assert_int_equal(csa_pair_count(c, 1, ALB_CSA_REPORT, NULL), 1);
}

static void round_trips__two_until_it_is_committed(void **state)
{
    struct csa_pair *c = *state;
    struct reflect_made made;
    reflect_pair_make(c, &made, 1, 0, 64);
    reflect_pair_post(c, &made);
    for (uint32_t trip = 0; trip < 2; trip++) {
        csa_pair_expect_none(c, 0);
        pair_send(c->pair, 0);
        pair_deliver_all(c->pair, 0);
        pair_send(c->pair, 1);
        pair_deliver_all(c->pair, 1);
    }
    reflect_pair_expect(c, 1, ALB_TXN_OK);
}

static struct alb_csa_txn command_of(struct csa_pair *c, uint64_t number, enum alb_csa_command what)
{
    return (struct alb_csa_txn){
        .command = (uint8_t)what,
        .dest_qpn = alb_qp_number(c->qps[1]),
        .id = {c->csa[0]->reflect_out->initiator, number},
    };
}

static void command__of_another_life_or_unproven_is_not_obeyed(void **state)
{
    struct csa_pair *c = *state;
    struct reflect_made made;
    struct csa_made packet;
    uint8_t frame[ALB_CSA_FRAME_MAX];
    reflect_pair_make(c, &made, 1, 0, 64);
    made.wr.hold = true;
    uint64_t number = reflect_pair_post(c, &made);
    pair_settle(c->pair);
    const struct alb_csa_txn commit = command_of(c, number, ALB_CSA_TXN_COMMIT);
    uint32_t bytes = alb_csa_encode_txn(&commit, frame);
    csa_pair_make(c, 0, &packet);
    packet.header.source_epoch++;
    csa_pair_add_bytes(&packet, frame, bytes);
    csa_pair_arrive(c, 0, &packet);
    assert_int_equal(reflect_pair_record(c, number)->state, ALB_TXN_REFLECTING);
    csa_pair_make(c, 0, &packet);
    packet.header.destination_epoch = 0; // who sends it may not know ours
    csa_pair_add_bytes(&packet, frame, bytes);
    csa_pair_arrive(c, 0, &packet);
    assert_int_equal(csa_pair_drops(c, 1, ALB_DROP_NOT_PROVEN), 2);
    assert_int_equal(reflect_pair_record(c, number)->state, ALB_TXN_REFLECTING);
    csa_pair_make(c, 0, &packet);
    csa_pair_add_bytes(&packet, frame, bytes);
    csa_pair_arrive(c, 0, &packet);
    assert_int_equal(reflect_pair_record(c, number)->state, ALB_TXN_COMMITTED);
}

static void command__that_there_is_not_is_dropped(void **state)
{
    struct csa_pair *c = *state;
    struct csa_made packet;
    uint8_t frame[ALB_CSA_FRAME_MAX];
    csa_pair_greet(c);
    struct alb_csa_txn command = command_of(c, 1, ALB_CSA_TXN_ASK);
    uint32_t bytes = alb_csa_encode_txn(&command, frame);
    frame[1] = 99;
    csa_pair_make(c, 0, &packet);
    csa_pair_add_bytes(&packet, frame, bytes);
    csa_pair_arrive(c, 0, &packet);
    assert_int_equal(csa_pair_drops(c, 1, ALB_DROP_BAD_REQUEST), 1);
}

// Transactions are for RC queue pairs.
static void command__to_a_queue_pair_of_xrc_is_dropped(void **state)
{
    struct csa_pair *c = *state;
    struct csa_made packet;
    struct alb_xrcd *xrcd;
    uint8_t frame[ALB_CSA_FRAME_MAX];
    csa_pair_greet(c);
    assert_int_equal(alb_xrcd_create(c->engines[1], &xrcd), 0);
    struct alb_qp_init init = {.type = ALB_QPT_XRC_RECV, .xrcd = xrcd};
    struct alb_qp *qp = pair_qp_with(c->pair, 1, &init);
    struct alb_qp_attr attr = pair_attr(c->pair, 1, c->qps[0]);
    assert_int_equal(pair_move(c->pair, qp, ALB_QPS_RTR, &attr), 0);
    struct alb_csa_txn command = command_of(c, 1, ALB_CSA_TXN_ASK);
    command.dest_qpn = alb_qp_number(qp);
    csa_pair_make(c, 0, &packet);
    csa_pair_add_bytes(&packet, frame, alb_csa_encode_txn(&command, frame));
    csa_pair_arrive(c, 0, &packet);
    assert_int_equal(csa_pair_drops(c, 1, ALB_DROP_BAD_SERVICE), 1);
    assert_null(alb_csa_of(qp)->reflect_in);
    assert_int_equal(alb_qp_destroy(qp), 0);
    assert_int_equal(alb_xrcd_destroy(xrcd), 0);
}

static void verdict__to_one_who_asks_nothing_is_dropped(void **state)
{
    struct csa_pair *c = *state;
    struct csa_made packet;
    uint8_t frame[ALB_CSA_FRAME_MAX];
    csa_pair_greet(c);
    const struct alb_csa_verdict verdict = {.state = ALB_CSA_VERDICT_COMMITTED, .dest_qpn = alb_qp_number(c->qps[1])};
    uint32_t bytes = alb_csa_encode_verdict(&verdict, frame);
    csa_pair_make(c, 0, &packet);
    csa_pair_add_bytes(&packet, frame, bytes);
    csa_pair_arrive(c, 0, &packet);
    assert_int_equal(csa_pair_drops(c, 1, ALB_DROP_BAD_REQUEST), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        REFLECT_PAIR_TEST(small_ones__ride_with_the_data),
        REFLECT_PAIR_TEST(round_trips__two_until_it_is_committed),
        REFLECT_PAIR_TEST(command__of_another_life_or_unproven_is_not_obeyed),
        REFLECT_PAIR_TEST(command__that_there_is_not_is_dropped),
        REFLECT_PAIR_TEST(command__to_a_queue_pair_of_xrc_is_dropped),
        REFLECT_PAIR_TEST(verdict__to_one_who_asks_nothing_is_dropped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
