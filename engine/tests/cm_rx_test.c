// SPDX-License-Identifier: BSD-2-Clause
// Repetitions, forgeries and strangers.
#include "base/prng.h"
#include "engine/tests/cm_pair.h"

// Delivers side 0's only message twice.
static void deliver_twice(struct cm_pair *cm, int side, const struct alb_cm_message *message)
{
    cm_deliver(cm, side);
    cm_inject(cm, side, message);
}

static void req__again_before_the_user_answers_gets_patience(void **state)
{
    struct cm_pair *cm = *state;
    cm_connect(cm);
    struct alb_cm_message req = cm_expect_sent(cm, 0, ALB_CM_REQ);
    deliver_twice(cm, 0, &req);
    assert_int_equal(cm_dropped(cm, 1, ALB_DROP_DUPLICATE), 1);
    assert_int_equal(cm_expect_sent(cm, 1, ALB_CM_MRA).mra.answers, ALB_CM_ANSWERS_REQ);
    cm_deliver(cm, 1);
    cm->ids[1] = cm_expect_event(cm, 1, ALB_CM_EVENT_REQUEST).id;
    cm_expect_no_event(cm, 1);
    assert_int_equal(alb_cm_id_count(cm_engine(cm, 1)), 2);
}

static void req__again_after_the_answer_gets_it_again(void **state)
{
    struct cm_pair *cm = *state;
    cm_connect(cm);
    struct alb_cm_message req = cm_expect_sent(cm, 0, ALB_CM_REQ);
    cm_take_request(cm);
    cm_accept(cm);
    cm_expect_sent(cm, 1, ALB_CM_REP);
    cm_lose(cm, 1);
    cm_inject(cm, 0, &req);
    cm_expect_sent(cm, 1, ALB_CM_REP);
    cm_deliver(cm, 1);
    cm_expect_event(cm, 0, ALB_CM_EVENT_RESPONSE);
    assert_int_equal(alb_cm_establish(cm->ids[0], NULL, cm->pair->now), 0);
    pair_deliver_all(cm->pair, 0);
    pair_send(cm->pair, 0);
    pair_deliver_all(cm->pair, 0);
    cm_expect_event(cm, 1, ALB_CM_EVENT_ESTABLISHED);
    cm_inject(cm, 0, &req); // very late
    cm_expect_state(cm, 1, ALB_CM_ESTABLISHED);
    cm_expect_nothing_sent(cm, 1);
}

static void rep__again_gets_ready_to_use_again(void **state)
{
    struct cm_pair *cm = *state;
    cm_connect(cm);
    cm_take_request(cm);
    cm_accept(cm);
    struct alb_cm_message rep = cm_expect_sent(cm, 1, ALB_CM_REP);
    deliver_twice(cm, 1, &rep); // the user has not taken it yet
    assert_int_equal(cm_expect_sent(cm, 0, ALB_CM_MRA).mra.answers, ALB_CM_ANSWERS_REP);
    cm_lose(cm, 0);
    cm_expect_event(cm, 0, ALB_CM_EVENT_RESPONSE);
    assert_int_equal(alb_cm_establish(cm->ids[0], NULL, cm->pair->now), 0);
    cm_expect_sent(cm, 0, ALB_CM_RTU);
    cm_lose(cm, 0);
    pair_pass(cm->pair, CM_TIMEOUT_NS);
    cm_expect_sent(cm, 1, ALB_CM_REP);
    cm_deliver(cm, 1);
    struct alb_cm_message rtu = cm_expect_sent(cm, 0, ALB_CM_RTU);
    deliver_twice(cm, 0, &rtu);
    cm_expect_event(cm, 1, ALB_CM_EVENT_ESTABLISHED);
    cm_expect_no_event(cm, 1);
    cm_expect_no_event(cm, 0);
}

static void dreq__again_is_agreed_to_again(void **state)
{
    struct cm_pair *cm = *state;
    cm_establish(cm);
    assert_int_equal(alb_cm_disconnect(cm->ids[0], NULL, cm->pair->now), 0);
    struct alb_cm_message dreq = cm_expect_sent(cm, 0, ALB_CM_DREQ);
    cm_deliver(cm, 0);
    cm_expect_sent(cm, 1, ALB_CM_DREP);
    cm_lose(cm, 1);
    for (int i = 0; i < 2; i++) { // in TIMEWAIT; at last by who has a new connection with that number
        dreq.dreq_qpn *= !i;
        cm_inject(cm, 0, &dreq);
        cm_expect_sent(cm, 1, ALB_CM_DREP);
        cm_lose(cm, 1);
    }
    cm_expect_event(cm, 1, ALB_CM_EVENT_DISCONNECTED);
    pair_pass(cm->pair, CM_TIMEWAIT_NS);
    cm_expect_event(cm, 1, ALB_CM_EVENT_TIMEWAIT_OVER);
    cm_inject(cm, 0, &dreq); // when nothing is left of it
    struct alb_cm_message drep = cm_expect_sent(cm, 1, ALB_CM_DREP);
    assert_int_equal(drep.remote_id, alb_cm_id_number(cm->ids[0]));
    deliver_twice(cm, 1, &drep);
    cm_expect_event(cm, 0, ALB_CM_EVENT_DISCONNECTED);
    cm_expect_no_event(cm, 0);
}

static void dreq__from_both_sides_at_once(void **state)
{
    struct cm_pair *cm = *state;
    cm_establish(cm);
    for (int side = 0; side < 2; side++)
        assert_int_equal(alb_cm_disconnect(cm->ids[side], NULL, cm->pair->now), 0);
    pair_settle(cm->pair);
    for (int side = 0; side < 2; side++) {
        cm_expect_event(cm, side, ALB_CM_EVENT_DISCONNECTED);
        cm_expect_no_event(cm, side);
        cm_expect_state(cm, side, ALB_CM_TIMEWAIT);
    }
    pair_pass(cm->pair, CM_TIMEWAIT_NS);
    for (int side = 0; side < 2; side++)
        cm_expect_event(cm, side, ALB_CM_EVENT_TIMEWAIT_OVER);
}

// The RTU was lost, and the peer has already had enough: it was established nevertheless.
static void dreq__stands_for_a_lost_ready_to_use(void **state)
{
    struct cm_pair *cm = *state;
    cm_connect(cm);
    cm_take_request(cm);
    cm_accept(cm);
    cm_expect_sent(cm, 1, ALB_CM_REP);
    cm_deliver(cm, 1);
    cm_expect_event(cm, 0, ALB_CM_EVENT_RESPONSE);
    assert_int_equal(alb_cm_establish(cm->ids[0], NULL, cm->pair->now), 0);
    cm_expect_sent(cm, 0, ALB_CM_RTU);
    cm_lose(cm, 0);
    assert_int_equal(alb_cm_disconnect(cm->ids[0], NULL, cm->pair->now), 0);
    pair_settle(cm->pair);
    cm_expect_event(cm, 1, ALB_CM_EVENT_ESTABLISHED);
    cm_expect_event(cm, 1, ALB_CM_EVENT_DISCONNECTED);
    cm_expect_event(cm, 0, ALB_CM_EVENT_DISCONNECTED);
}

static void req__that_nobody_can_take(void **state)
{
    struct cm_pair *cm = *state;
    struct alb_cm_message req = {.type = ALB_CM_REQ, .local_id = 77, .transaction = 99, .req = cm_req(cm, 5)};
    req.req.service_id++;
    cm_inject(cm, 0, &req);
    struct alb_cm_message rej = cm_expect_sent(cm, 1, ALB_CM_REJ);
    assert_int_equal(rej.rej.reason, ALB_CM_REJ_INVALID_SERVICE_ID);
    assert_int_equal(rej.remote_id, 77);
    assert_int_equal(rej.transaction, 99);
    cm_lose(cm, 1);
    req.req.service_id--;
    req.req.transport = ALB_CM_TRANSPORT_EXTENDED;
    cm_inject(cm, 0, &req);
    assert_int_equal(cm_expect_sent(cm, 1, ALB_CM_REJ).rej.reason, ALB_CM_REJ_INVALID_TRANSPORT_TYPE);
    cm_lose(cm, 1);
    assert_int_equal(alb_cm_id_count(cm_engine(cm, 1)), 1);
}

// A listener that comes a moment later is found, if the request is repeated.
static void refusal__is_borne_for_a_while(void **state)
{
    struct cm_pair *cm = *state;
    struct alb_cm_target target = cm_target(cm, 0);
    struct alb_cm_req req = cm_req(cm, 100);
    struct alb_cm_private knock = {"knock", 6};
    struct alb_cm_listen listen = cm->listener->listen;
    target.refusals = 2;
    alb_cm_id_destroy(cm->listener, cm->pair->now);
    assert_int_equal(alb_cm_id_create(cm_engine(cm, 0), cm, &cm->ids[0]), 0);
    for (int is_late = 0; is_late < 2; is_late++) {
        assert_int_equal(alb_cm_connect(cm->ids[0], &target, &req, &knock, cm->pair->now), 0);
        for (unsigned i = 0; i < 2; i++) {
            cm_expect_sent(cm, 0, ALB_CM_REQ);
            cm_deliver(cm, 0);
            cm_expect_sent(cm, 1, ALB_CM_REJ);
            cm_deliver(cm, 1);
            cm_expect_no_event(cm, 0);
            pair_pass(cm->pair, ALB_CM_REFUSED_NS - 1);
            cm_expect_nothing_sent(cm, 0);
            pair_pass(cm->pair, 1);
        }
        if (is_late)
            break;
        cm_expect_sent(cm, 0, ALB_CM_REQ);
        cm_deliver(cm, 0);
        cm_expect_sent(cm, 1, ALB_CM_REJ);
        cm_deliver(cm, 1);
        cm_expect_event(cm, 0, ALB_CM_EVENT_REJECTED);
    }
    assert_int_equal(alb_cm_id_create(cm_engine(cm, 1), cm, &cm->listener), 0);
    assert_int_equal(alb_cm_listen(cm->listener, &listen), 0);
    cm_take_request(cm);
}

// Side 0 asks for packets of 4096 bytes; side 1 takes 1024 and says so, by the message that is returned.
static struct alb_cm_message request_with_too_long_packets(struct cm_pair *cm)
{
    struct alb_cm_target target = cm_target(cm, 0);
    struct alb_cm_req req = cm_req(cm, 100);
    struct alb_cm_private knock = {"knock", 6};
    req.mtu = 5;
    cm_engine(cm, 1)->config.mtu_max_bytes = 1024;
    assert_int_equal(alb_cm_id_create(cm_engine(cm, 0), cm, &cm->ids[0]), 0);
    assert_int_equal(alb_cm_connect(cm->ids[0], &target, &req, &knock, cm->pair->now), 0);
    assert_int_equal(cm_expect_sent(cm, 0, ALB_CM_REQ).req.mtu, 5);
    cm_deliver(cm, 0);
    cm_expect_no_event(cm, 1);
    assert_int_equal(alb_cm_id_count(cm_engine(cm, 1)), 1); // the listener
    struct alb_cm_message rej = cm_expect_sent(cm, 1, ALB_CM_REJ);
    assert_int_equal(rej.rej.answers, ALB_CM_ANSWERS_REQ);
    assert_int_equal(rej.rej.reason, ALB_CM_REJ_INVALID_MTU);
    assert_int_equal(alb_cm_rej_mtu(&rej.rej), 3);
    return rej;
}

static void req__with_too_long_packets_is_sent_again_for_shorter_ones(void **state)
{
    struct cm_pair *cm = *state;
    struct alb_cm_message rej = request_with_too_long_packets(cm);
    cm_deliver(cm, 1);
    cm_expect_no_event(cm, 0);
    struct alb_cm_message again = cm_expect_sent(cm, 0, ALB_CM_REQ);
    assert_int_equal(again.req.mtu, 3);
    assert_int_equal(again.local_id, rej.remote_id);
    assert_true(again.transaction != rej.transaction);
    cm_take_request(cm);
    cm_accept(cm);
    cm_expect_sent(cm, 1, ALB_CM_REP);
    cm_deliver(cm, 1);
    assert_int_equal(alb_cm_reject(cm->ids[0], ALB_CM_REJ_CONSUMER_DEFINED, NULL, cm->pair->now), 0);
    cm_expect_event(cm, 0, ALB_CM_EVENT_RESPONSE);
    assert_int_equal(alb_cm_id_mtu(cm->ids[0]), 3); // whatever was sent before its user hears of the response
}

// The rejection may be lost, come twice or late, and so may the request.
static void req__with_too_long_packets_whose_rejection_is_lost_and_comes_twice(void **state)
{
    struct cm_pair *cm = *state;
    struct alb_cm_message late = {.type = ALB_CM_REQ, .req = cm_req(cm, 100)};
    struct alb_cm_message rej = request_with_too_long_packets(cm);
    cm_lose(cm, 1);
    pair_pass(cm->pair, CM_TIMEOUT_NS);
    assert_int_equal(cm_expect_sent(cm, 0, ALB_CM_REQ).req.mtu, 5);
    cm_deliver(cm, 0);
    cm_expect_sent(cm, 1, ALB_CM_REJ);
    cm_deliver(cm, 1);
    assert_int_equal(cm_expect_sent(cm, 0, ALB_CM_REQ).req.mtu, 3);
    cm_inject(cm, 1, &rej);
    cm_expect_state(cm, 0, ALB_CM_REQ_SENT);
    assert_int_equal(cm_dropped(cm, 0, ALB_DROP_STALE_RESPONSE), 1);
    cm_take_request(cm);
    late.req.mtu = 5;
    late.local_id = rej.remote_id;
    late.transaction = rej.transaction;
    cm_inject(cm, 0, &late);
    cm_expect_sent(cm, 1, ALB_CM_REJ);
    cm_deliver(cm, 1);
    cm_expect_state(cm, 0, ALB_CM_REQ_SENT);
    cm_expect_state(cm, 1, ALB_CM_REQ_RECEIVED);
    assert_int_equal(cm_dropped(cm, 0, ALB_DROP_STALE_RESPONSE), 2);
    cm_expect_no_event(cm, 0);
}

// A peer that names no MTU, or one that is no shorter, is not asked again: there is an end to it.
static void rej__of_an_mtu_that_leads_nowhere(void **state)
{
    struct cm_pair *cm = *state;
    for (unsigned i = 0; i < 3; i++) {
        cm_connect(cm);
        struct alb_cm_message req = cm_expect_sent(cm, 0, ALB_CM_REQ);
        struct alb_cm_message rej = {
            .type = ALB_CM_REJ, .transaction = req.transaction, .local_id = 0, .remote_id = req.local_id};
        rej.rej.reason = ALB_CM_REJ_INVALID_MTU;
        if (i > 0)
            alb_cm_rej_set_mtu(&rej.rej, (uint8_t)(req.req.mtu + i - 1));
        cm_lose(cm, 0);
        cm_inject(cm, 1, &rej);
        assert_int_equal(cm_expect_event(cm, 0, ALB_CM_EVENT_REJECTED).message.rej.reason, ALB_CM_REJ_INVALID_MTU);
        cm_expect_nothing_sent(cm, 0);
        cm_expect_state(cm, 0, ALB_CM_IDLE);
    }
}

// Side 1 gets a request that names side 0's connected queue pair: it rejects it, and asks side 0 what is true of it.
static void request_with_connected_queue_pair(struct cm_pair *cm, const struct alb_cm_message *req)
{
    struct alb_cm_message rej;
    cm_inject(cm, 0, req);
    pair_send(cm->pair, 1);
    assert_int_equal(pair_count(cm->pair, 1), 2);
    struct pair_packet *packet = pair_peek(cm->pair, 1, 0);
    assert_true(alb_cm_decode(packet->bytes + packet->payload_offset, ALB_MAD_BYTES, &rej));
    assert_int_equal(rej.rej.reason, ALB_CM_REJ_STALE_CONNECTION);
    cm_lose(cm, 1);
    assert_int_equal(cm_expect_sent(cm, 1, ALB_CM_DREQ).dreq_qpn, 0);
    cm_expect_state(cm, 1, ALB_CM_ESTABLISHED);
}

// Anybody can say so in the peer's name.
static void req__with_a_connected_queue_pair_changes_nothing_if_the_peer_has_it(void **state)
{
    struct cm_pair *cm = *state;
    cm_establish(cm);
    struct alb_cm_message req = {.type = ALB_CM_REQ, .local_id = 77, .req = cm_req(cm, 100)};
    struct alb_cm_message drep = {
        .type = ALB_CM_DREP, .local_id = alb_cm_id_number(cm->ids[0]), .remote_id = alb_cm_id_number(cm->ids[1])};
    cm_inject(cm, 0, &drep); // nobody has asked
    cm_expect_state(cm, 1, ALB_CM_ESTABLISHED);
    request_with_connected_queue_pair(cm, &req);
    cm_inject(cm, 0, &req); // asked already
    while (pair_send(cm->pair, 1))
        ;
    assert_int_equal(pair_count(cm->pair, 1), 2);
    pair_settle(cm->pair);
    pair_pass(cm->pair, ALB_CM_DOUBT_NS);
    request_with_connected_queue_pair(cm, &req);
    pair_settle(cm->pair);
    pair_pass(cm->pair, 100 * CM_TIMEOUT_NS);
    for (int side = 0; side < 2; side++) {
        cm_expect_state(cm, side, ALB_CM_ESTABLISHED);
        cm_expect_no_event(cm, side);
    }
}

// The peer has come back without its connection and uses the same queue pair number.
static void req__with_a_connected_queue_pair_ends_the_connection_that_the_peer_has_lost(void **state)
{
    struct cm_pair *cm = *state;
    cm_establish(cm);
    alb_cm_id_destroy(cm->ids[0], cm->pair->now);
    cm->ids[0] = NULL;
    alb_cm_destroy(cm_engine(cm, 0)); // without a word
    assert_int_equal(alb_cm_create(cm_engine(cm, 0), CM_IDS, cm), 0);
    struct alb_cm_message req = {.type = ALB_CM_REQ, .local_id = 77, .req = cm_req(cm, 100)};
    request_with_connected_queue_pair(cm, &req);
    cm_deliver(cm, 1);
    cm_expect_sent(cm, 0, ALB_CM_DREP);
    cm_deliver(cm, 0);
    cm_expect_event(cm, 1, ALB_CM_EVENT_DISCONNECTED);
    cm_expect_state(cm, 1, ALB_CM_TIMEWAIT);
    req.local_id++;
    cm_inject(cm, 0, &req);
    assert_int_equal(cm_expect_sent(cm, 1, ALB_CM_REJ).rej.reason, ALB_CM_REJ_STALE_CONNECTION);
    cm_lose(cm, 1);
    pair_pass(cm->pair, CM_TIMEWAIT_NS);
    cm_expect_event(cm, 1, ALB_CM_EVENT_TIMEWAIT_OVER);
    cm_inject(cm, 0, &req); // packets of the old one are gone: now it may
    alb_cm_id_destroy(cm_expect_event(cm, 1, ALB_CM_EVENT_REQUEST).id, cm->pair->now);
}

// It was the only one, and was lost: the peer takes the connection for established.
static void rtu__for_what_was_rejected_gets_the_rejection_again(void **state)
{
    struct cm_pair *cm = *state;
    cm_connect(cm);
    cm_take_request(cm);
    cm_accept(cm);
    cm_expect_sent(cm, 1, ALB_CM_REP);
    cm_deliver(cm, 1);
    cm_expect_event(cm, 0, ALB_CM_EVENT_RESPONSE);
    alb_cm_id_destroy(cm->ids[1], cm->pair->now);
    cm->ids[1] = NULL;
    cm_expect_sent(cm, 1, ALB_CM_REJ);
    cm_lose(cm, 1);
    assert_int_equal(alb_cm_establish(cm->ids[0], NULL, cm->pair->now), 0);
    cm_expect_sent(cm, 0, ALB_CM_RTU);
    cm_deliver(cm, 0);
    assert_int_equal(cm_dropped(cm, 1, ALB_DROP_DUPLICATE), 1);
    cm_expect_sent(cm, 1, ALB_CM_REJ);
    cm_deliver(cm, 1);
    cm_expect_event(cm, 0, ALB_CM_EVENT_DISCONNECTED);
}

// A peer that gives up without our number has not been connected.
static void rej__without_our_number_ends_no_connection(void **state)
{
    struct cm_pair *cm = *state;
    cm_establish(cm);
    struct alb_cm_message rej = {.type = ALB_CM_REJ,
                                 .local_id = alb_cm_id_number(cm->ids[0]),
                                 .rej = {.answers = ALB_CM_ANSWERS_REQ, .reason = ALB_CM_REJ_TIMEOUT}};
    cm_inject(cm, 0, &rej);
    assert_int_equal(cm_dropped(cm, 1, ALB_DROP_STALE_RESPONSE), 1);
    cm_expect_state(cm, 1, ALB_CM_ESTABLISHED);
    cm_expect_no_event(cm, 1);
}

// Another request that has the number of side 0's id, and a queue pair of its own.
static struct alb_cm_message req_of_same_number(struct cm_pair *cm)
{
    return (struct alb_cm_message){
        .type = ALB_CM_REQ, .local_id = alb_cm_id_number(cm->ids[0]), .transaction = 99, .req = cm_req(cm, 300)};
}

static void req__with_the_number_of_a_rejected_one_is_new(void **state)
{
    struct cm_pair *cm = *state;
    cm_connect(cm);
    cm_take_request(cm);
    assert_int_equal(alb_cm_reject(cm->ids[1], ALB_CM_REJ_CONSUMER_DEFINED, NULL, cm->pair->now), 0);
    cm_expect_sent(cm, 1, ALB_CM_REJ);
    cm_deliver(cm, 1);
    cm_expect_event(cm, 0, ALB_CM_EVENT_REJECTED);
    struct alb_cm_message req = req_of_same_number(cm);
    cm_inject(cm, 0, &req);
    struct alb_cm_id *id = cm_expect_event(cm, 1, ALB_CM_EVENT_REQUEST).id;
    assert_ptr_not_equal(id, cm->ids[1]);
    cm_inject(cm, 0, &req);
    assert_int_equal(cm_dropped(cm, 1, ALB_DROP_DUPLICATE), 1);
    alb_cm_id_destroy(id, cm->pair->now);
}

static void req__with_the_number_of_a_connection_that_is_over_is_new(void **state)
{
    struct cm_pair *cm = *state;
    cm_establish(cm);
    assert_int_equal(alb_cm_disconnect(cm->ids[1], NULL, cm->pair->now), 0);
    pair_settle(cm->pair);
    cm_expect_event(cm, 0, ALB_CM_EVENT_DISCONNECTED);
    cm_expect_event(cm, 1, ALB_CM_EVENT_DISCONNECTED);
    struct alb_cm_message req = req_of_same_number(cm);
    cm_inject(cm, 0, &req);
    alb_cm_id_destroy(cm_expect_event(cm, 1, ALB_CM_EVENT_REQUEST).id, cm->pair->now);
    cm_expect_state(cm, 1, ALB_CM_TIMEWAIT);
}

static void req__with_the_number_of_a_connection_is_stale(void **state)
{
    struct cm_pair *cm = *state;
    cm_establish(cm);
    struct alb_cm_message req = req_of_same_number(cm);
    cm_inject(cm, 0, &req);
    assert_int_equal(cm_expect_sent(cm, 1, ALB_CM_REJ).rej.reason, ALB_CM_REJ_STALE_CONNECTION);
    cm_lose(cm, 1);
    cm_expect_state(cm, 1, ALB_CM_ESTABLISHED);
    cm_expect_no_event(cm, 1);
}

static void rep__for_nobody_is_rejected(void **state)
{
    struct cm_pair *cm = *state;
    struct alb_cm_message rep = {.type = ALB_CM_REP, .local_id = 5, .remote_id = 0x00ff0000, .rep = cm_rep(3)};
    cm_inject(cm, 0, &rep);
    struct alb_cm_message rej = cm_expect_sent(cm, 1, ALB_CM_REJ);
    assert_int_equal(rej.rej.reason, ALB_CM_REJ_INVALID_COMM_ID);
    assert_int_equal(rej.rej.answers, ALB_CM_ANSWERS_REP);
    assert_int_equal(rej.remote_id, 5);
    cm_deliver(cm, 1);
    assert_int_equal(cm_dropped(cm, 0, ALB_DROP_STALE_RESPONSE), 1);
    cm_expect_nothing_sent(cm, 0); // a rejection is not answered
}

// Only a message with both ids acts on a connection, and what answers a request needs its transaction, too.
static void forged__messages_change_nothing(void **state)
{
    struct cm_pair *cm = *state;
    cm_connect(cm);
    struct alb_cm_message req = cm_expect_sent(cm, 0, ALB_CM_REQ);
    static const enum alb_cm_type answers[] = {ALB_CM_REP, ALB_CM_REJ, ALB_CM_MRA};
    for (unsigned i = 0; i < ALB_COUNT(answers); i++) {
        struct alb_cm_message forged = {
            .type = answers[i], .local_id = 9, .remote_id = req.local_id, .transaction = req.transaction + 1};
        cm_inject(cm, 1, &forged);
        cm_expect_state(cm, 0, ALB_CM_REQ_SENT);
    }
    while (pair_send(cm->pair, 0))
        ;
    while (pair_count(cm->pair, 0) > 1) // the rejections of the forged REP
        pair_hurry(cm->pair, 0, 1), cm_lose(cm, 0);
    cm_take_request(cm);
    cm_accept(cm);
    struct alb_cm_message rep = cm_expect_sent(cm, 1, ALB_CM_REP);
    cm_deliver(cm, 1);
    cm_expect_event(cm, 0, ALB_CM_EVENT_RESPONSE);
    assert_int_equal(alb_cm_establish(cm->ids[0], NULL, cm->pair->now), 0);
    cm_expect_sent(cm, 0, ALB_CM_RTU);
    cm_deliver(cm, 0);
    cm_expect_event(cm, 1, ALB_CM_EVENT_ESTABLISHED);
    static const enum alb_cm_type later[] = {ALB_CM_RTU, ALB_CM_REJ, ALB_CM_MRA,      ALB_CM_DREQ,     ALB_CM_DREP,
                                             ALB_CM_LAP, ALB_CM_APR, ALB_CM_SIDR_REP, ALB_CM_SIDR_REQ, ALB_CM_REP};
    for (unsigned i = 0; i < ALB_COUNT(later); i++) {
        struct alb_cm_message forged = {.type = later[i], .local_id = rep.remote_id ^ 1, .remote_id = rep.local_id};
        if (later[i] != ALB_CM_LAP)
            cm_inject(cm, 0, &forged);
        forged.local_id = rep.remote_id;
        forged.remote_id = rep.local_id ^ 1 << 16;
        if (later[i] != ALB_CM_LAP)
            cm_inject(cm, 0, &forged);
    }
    struct alb_cm_message wrong_qpn = {
        .type = ALB_CM_DREQ, .local_id = rep.remote_id, .remote_id = rep.local_id, .dreq_qpn = 201};
    cm_inject(cm, 0, &wrong_qpn);
    for (int side = 0; side < 2; side++) {
        cm_expect_state(cm, side, ALB_CM_ESTABLISHED);
        cm_expect_no_event(cm, side);
    }
    while (pair_send(cm->pair, 1))
        ;
    while (pair_count(cm->pair, 1))
        cm_lose(cm, 1);
}

// The field has room for one answer more than there are messages to be answered. An id that waits for nothing has no
// deadline that could be moved.
static void mra__for_what_is_no_message_moves_nothing(void **state)
{
    struct cm_pair *cm = *state;
    cm_connect(cm);
    cm_take_request(cm);
    struct alb_cm_message mra = {.type = ALB_CM_MRA,
                                 .local_id = alb_cm_id_number(cm->ids[0]),
                                 .remote_id = alb_cm_id_number(cm->ids[1]),
                                 .mra = {.answers = 3, .service_timeout = 8}};
    cm_inject(cm, 0, &mra);
    assert_int_equal(cm_dropped(cm, 1, ALB_DROP_STALE_RESPONSE), 1);
    pair_pass(cm->pair, 2 * CM_TIMEWAIT_NS);
    cm_expect_state(cm, 1, ALB_CM_REQ_RECEIVED);
}

static void lap__is_refused(void **state)
{
    struct cm_pair *cm = *state;
    cm_establish(cm);
    uint8_t bytes[ALB_MAD_BYTES];
    struct alb_cm_message message = {
        .type = ALB_CM_APR, .local_id = alb_cm_id_number(cm->ids[0]), .remote_id = alb_cm_id_number(cm->ids[1])};
    struct alb_roce roce = {.opcode = ALB_UD_SEND_ONLY,
                            .pkey = ALB_PKEY_DEFAULT,
                            .dest_qpn = ALB_GSI_QPN,
                            .qkey = ALB_GSI_QKEY,
                            .src_qpn = ALB_GSI_QPN};
    alb_cm_encode(&message, bytes);
    bytes[17] = ALB_CM_LAP;
    pair_inject(cm->pair, 0, &roce, bytes, sizeof(bytes));
    assert_int_equal(cm_expect_sent(cm, 1, ALB_CM_APR).apr.status, ALB_CM_APR_UNSUPPORTED);
    cm_deliver(cm, 1);
    assert_int_equal(cm_dropped(cm, 0, ALB_DROP_BAD_REQUEST), 1);
    cm_expect_state(cm, 1, ALB_CM_ESTABLISHED);
}

// However quickly their user hears of them.
static void req__those_that_wait_for_the_program_are_bounded(void **state)
{
    struct cm_pair *cm = *state;
    struct alb_cm_event event = {0};
    struct alb_cm_id *listener = NULL;
    for (uint32_t i = 0; i < CM_BACKLOG + 3; i++) {
        struct alb_cm_message req = {.type = ALB_CM_REQ, .local_id = 5000 + i, .req = cm_req(cm, 1000 + i)};
        cm_inject(cm, 0, &req);
        bool has_come = alb_cm_event(cm_engine(cm, 1), &event);
        assert_int_equal(has_come, i < CM_BACKLOG);
        if (has_come) {
            listener = event.listener;
            alb_cm_id_destroy(event.id, cm->pair->now); // its event may wait nevertheless
        } else {
            assert_int_equal(cm_dropped(cm, 1, ALB_DROP_NO_RESOURCES), i - CM_BACKLOG + 1);
        }
    }
    alb_cm_request_taken(listener);
    struct alb_cm_message req = {.type = ALB_CM_REQ, .local_id = 6000, .req = cm_req(cm, 2000)};
    cm_inject(cm, 0, &req);
    alb_cm_id_destroy(cm_expect_event(cm, 1, ALB_CM_EVENT_REQUEST).id, cm->pair->now);
}

// A thousand strangers ask at once, and none of them comes back.
static void req__a_thousand_half_open_are_bounded_and_leave_nothing(void **state)
{
    struct cm_pair *cm = *state;
    struct alb_cm_id *taken[1000];
    struct alb_cm_event event;
    uint32_t count = 0;
    uint64_t gets = cm->pair->hosts[1].gets;
    for (uint32_t i = 0; i < 1000; i++) {
        struct alb_cm_message req = {.type = ALB_CM_REQ, .local_id = 5000 + i, .req = cm_req(cm, 1000 + i)};
        cm_inject(cm, 0, &req);
        if (i % 3 == 0) // a user that takes some, and never answers
            while (cm_take_event(cm, 1, &event))
                taken[count++] = event.id;
    }
    uint32_t held = alb_cm_id_count(cm_engine(cm, 1));
    assert_in_range(held, CM_BACKLOG, CM_IDS - CM_IDS / 8);
    assert_int_equal(cm_dropped(cm, 1, ALB_DROP_NO_RESOURCES), 1000 - (held - 1));
    struct alb_cm_id *own; // there is still room for the user itself
    assert_int_equal(alb_cm_id_create(cm_engine(cm, 1), NULL, &own), 0);
    alb_cm_id_destroy(own, cm->pair->now);
    while (cm_take_event(cm, 1, &event))
        taken[count++] = event.id;
    struct alb_cm_rep rep = cm_rep(200);
    for (uint32_t i = 0; i < count; i++) // half of them accepts in vain
        if (i % 2)
            assert_int_equal(alb_cm_accept(taken[i], &rep, NULL, cm->pair->now), 0);
        else
            alb_cm_id_destroy(taken[i], cm->pair->now);
    for (unsigned i = 0; i < 20; i++) {
        pair_pass(cm->pair, CM_TIMEOUT_NS);
        while (pair_send(cm->pair, 1))
            ;
        while (pair_count(cm->pair, 1))
            cm_lose(cm, 1);
    }
    uint32_t timed_out = 0;
    while (cm_take_event(cm, 1, &event)) {
        assert_int_equal(event.type, ALB_CM_EVENT_TIMED_OUT);
        alb_cm_id_destroy(event.id, cm->pair->now);
        timed_out++;
    }
    assert_int_equal(timed_out, count / 2);
    pair_pass(cm->pair, ALB_CM_LINGER_NS);
    assert_int_equal(alb_cm_id_count(cm_engine(cm, 1)), 1); // the listener
    assert_true(cm->pair->hosts[1].gets == gets);           // no memory was asked for
}

// Whatever bytes come: no crash, and the tables stay within their bounds.
static void rx__random_messages(void **state)
{
    struct cm_pair *cm = *state;
    struct alb_prng prng;
    struct alb_cm_event event;
    uint32_t salt = cm_engine(cm, 1)->cm->salt;
    alb_prng_init(&prng, 11);
    for (unsigned i = 0; i < 20000; i++) {
        struct alb_cm_message message = {.type = (enum alb_cm_type)(ALB_CM_REQ + alb_prng_below(&prng, 11))};
        if (message.type == ALB_CM_LAP)
            continue;
        message.req.service_id = alb_cm_service_id(ALB_CM_PS_TCP, CM_PORT);
        message.local_id = (uint32_t)alb_prng_below(&prng, 40);
        message.remote_id = (uint32_t)alb_prng_below(&prng, 3) << 16 | ((uint32_t)alb_prng_below(&prng, CM_IDS) ^ salt);
        if (message.type == ALB_CM_REQ)
            message.req.qpn = (uint32_t)alb_prng_below(&prng, 40);
        if (message.type == ALB_CM_MRA) // short, so that what it moves is due within the test
            message.mra = (struct alb_cm_mra){.answers = alb_prng_below(&prng, 4) & 3, .service_timeout = i % 12};
        if (alb_prng_below(&prng, 2) && cm_engine(cm, 1)->cm->ids_touched) { // one that names an id of ours
            uint32_t n = (uint32_t)alb_prng_below(&prng, cm_engine(cm, 1)->cm->ids_touched);
            message.remote_id = cm_engine(cm, 1)->cm->ids[n].local_id;
            message.local_id = cm_engine(cm, 1)->cm->ids[n].remote_id;
        }
        cm_inject(cm, 0, &message);
        while (cm_take_event(cm, 1, &event)) {
            struct alb_cm_rep rep = cm_rep(200);
            if (event.type == ALB_CM_EVENT_REQUEST && alb_prng_below(&prng, 3))
                alb_cm_accept(event.id, &rep, NULL, cm->pair->now);
            else if (event.type == ALB_CM_EVENT_SIDR_REQUEST && alb_prng_below(&prng, 3))
                alb_cm_answer(event.id, ALB_CM_SIDR_VALID, 1, 2, NULL, cm->pair->now);
            else if (event.type != ALB_CM_EVENT_ESTABLISHED)
                alb_cm_id_destroy(event.id, cm->pair->now);
        }
        while (pair_send(cm->pair, 1))
            ;
        while (pair_count(cm->pair, 1))
            cm_lose(cm, 1);
        pair_pass(cm->pair, alb_prng_below(&prng, 10 * ALB_NS_PER_MS));
        assert_true(alb_cm_id_count(cm_engine(cm, 1)) <= CM_IDS);
    }
    for (uint32_t i = 0; i < cm_engine(cm, 1)->cm->ids_touched; i++) {
        struct alb_cm_id *id = &cm_engine(cm, 1)->cm->ids[i];
        if (id->is_used && !id->is_orphan && id != cm->listener && !id->listener)
            alb_cm_id_destroy(id, cm->pair->now);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CM_TEST(req__again_before_the_user_answers_gets_patience),
        CM_TEST(req__again_after_the_answer_gets_it_again),
        CM_TEST(rep__again_gets_ready_to_use_again),
        CM_TEST(dreq__again_is_agreed_to_again),
        CM_TEST(dreq__from_both_sides_at_once),
        CM_TEST(dreq__stands_for_a_lost_ready_to_use),
        CM_TEST(req__that_nobody_can_take),
        CM_TEST(refusal__is_borne_for_a_while),
        CM_TEST(req__with_too_long_packets_is_sent_again_for_shorter_ones),
        CM_TEST(req__with_too_long_packets_whose_rejection_is_lost_and_comes_twice),
        CM_TEST(rej__of_an_mtu_that_leads_nowhere),
        CM_TEST(req__with_a_connected_queue_pair_changes_nothing_if_the_peer_has_it),
        CM_TEST(req__with_a_connected_queue_pair_ends_the_connection_that_the_peer_has_lost),
        CM_TEST(req__with_the_number_of_a_rejected_one_is_new),
        CM_TEST(req__with_the_number_of_a_connection_that_is_over_is_new),
        CM_TEST(req__with_the_number_of_a_connection_is_stale),
        CM_TEST(rep__for_nobody_is_rejected),
        CM_TEST(forged__messages_change_nothing),
        CM_TEST(mra__for_what_is_no_message_moves_nothing),
        CM_TEST(rtu__for_what_was_rejected_gets_the_rejection_again),
        CM_TEST(rej__without_our_number_ends_no_connection),
        CM_TEST(lap__is_refused),
        CM_TEST(req__those_that_wait_for_the_program_are_bounded),
        CM_TEST(req__a_thousand_half_open_are_bounded_and_leave_nothing),
        CM_TEST(rx__random_messages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
