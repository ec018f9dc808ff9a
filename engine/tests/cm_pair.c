// SPDX-License-Identifier: BSD-2-Clause
#include "engine/tests/cm_pair.h"

#include <stdlib.h>

struct alb_engine *cm_engine(struct cm_pair *cm, int side)
{
    return cm->pair->hosts[side].engine;
}

struct cm_pair *cm_pair_new(void)
{
    struct cm_pair *cm = calloc(1, sizeof(*cm));
    assert_non_null(cm);
    cm->pair = pair_new(NULL);
    for (int side = 0; side < 2; side++)
        assert_int_equal(alb_cm_create(cm_engine(cm, side), CM_IDS, cm), 0);
    struct alb_cm_listen listen = {.service_id = alb_cm_service_id(ALB_CM_PS_TCP, CM_PORT), .backlog = CM_BACKLOG};
    assert_int_equal(alb_cm_id_create(cm_engine(cm, 1), cm, &cm->listener), 0);
    assert_int_equal(alb_cm_listen(cm->listener, &listen), 0);
    return cm;
}

void cm_pair_free(struct cm_pair *cm)
{
    for (int side = 0; side < 2; side++)
        if (cm->ids[side])
            alb_cm_id_destroy(cm->ids[side], cm->pair->now);
    if (cm->listener)
        alb_cm_id_destroy(cm->listener, cm->pair->now);
    for (unsigned i = 0; i < 40; i++) {
        pair_settle(cm->pair);
        pair_pass(cm->pair, ALB_NS_PER_S);
    }
    for (int side = 0; side < 2; side++) {
        cm_expect_no_event(cm, side);
        assert_int_equal(alb_cm_id_count(cm_engine(cm, side)), 0);
        assert_int_equal(alb_map_count(&cm_engine(cm, side)->cm->peers), 0);
        assert_int_equal(alb_map_count(&cm_engine(cm, side)->cm->listeners), 0);
        assert_true(alb_engine_deadline(cm_engine(cm, side)) == ALB_TIME_NEVER);
        alb_cm_destroy(cm_engine(cm, side));
    }
    pair_free(cm->pair);
    free(cm);
}

struct alb_cm_target cm_target(const struct cm_pair *cm, int side)
{
    return (struct alb_cm_target){
        .av = {.local = cm->pair->hosts[side].addr, .peer = cm->pair->hosts[!side].addr},
        .gsi_qpn = ALB_GSI_QPN,
    };
}

struct alb_cm_req cm_req(const struct cm_pair *cm, alb_qpn qpn)
{
    return (struct alb_cm_req){
        .service_id = alb_cm_service_id(ALB_CM_PS_TCP, CM_PORT),
        .ca_guid = 0x0102030405060708,
        .qpn = qpn,
        .responder_resources = 4,
        .initiator_depth = 5,
        .remote_response_timeout = CM_RESPONSE_CODE,
        .local_response_timeout = CM_RESPONSE_CODE,
        .starting_psn = 0x123456,
        .max_cm_retries = CM_RETRIES,
        .pkey = ALB_PKEY_DEFAULT,
        .mtu = 3,
        .primary = {.local_lid = 0xffff,
                    .remote_lid = 0xffff,
                    .local_gid = cm->pair->hosts[0].addr,
                    .remote_gid = cm->pair->hosts[1].addr,
                    .ack_timeout = CM_ACK_CODE},
    };
}

struct alb_cm_rep cm_rep(alb_qpn qpn)
{
    return (struct alb_cm_rep){.qpn = qpn, .starting_psn = 0x654321, .responder_resources = 5, .initiator_depth = 4};
}

void cm_connect(struct cm_pair *cm)
{
    struct alb_cm_target target = cm_target(cm, 0);
    struct alb_cm_req req = cm_req(cm, 100);
    struct alb_cm_private data = {"knock", 6};
    if (!cm->ids[0])
        assert_int_equal(alb_cm_id_create(cm_engine(cm, 0), cm, &cm->ids[0]), 0);
    assert_int_equal(alb_cm_connect(cm->ids[0], &target, &req, &data, cm->pair->now), 0);
    cm_expect_state(cm, 0, ALB_CM_REQ_SENT);
}

void cm_take_request(struct cm_pair *cm)
{
    cm_expect_sent(cm, 0, ALB_CM_REQ);
    cm_deliver(cm, 0);
    struct alb_cm_event event = cm_expect_event(cm, 1, ALB_CM_EVENT_REQUEST);
    assert_ptr_equal(event.listener, cm->listener);
    assert_ptr_equal(event.listener_user, cm);
    assert_int_equal(event.message.req.qpn, 100);
    assert_string_equal((char *)event.message.private_data, "knock");
    cm->ids[1] = event.id;
    cm_expect_state(cm, 1, ALB_CM_REQ_RECEIVED);
}

void cm_accept(struct cm_pair *cm)
{
    struct alb_cm_rep rep = cm_rep(200);
    struct alb_cm_private data = {"come in", 8};
    assert_int_equal(alb_cm_accept(cm->ids[1], &rep, &data, cm->pair->now), 0);
    cm_expect_state(cm, 1, ALB_CM_REP_SENT);
}

void cm_establish(struct cm_pair *cm)
{
    cm_connect(cm);
    cm_take_request(cm);
    cm_accept(cm);
    cm_expect_sent(cm, 1, ALB_CM_REP);
    cm_deliver(cm, 1);
    struct alb_cm_event event = cm_expect_event(cm, 0, ALB_CM_EVENT_RESPONSE);
    assert_int_equal(event.message.rep.qpn, 200);
    assert_string_equal((char *)event.message.private_data, "come in");
    assert_int_equal(alb_cm_establish(cm->ids[0], NULL, cm->pair->now), 0);
    cm_expect_sent(cm, 0, ALB_CM_RTU);
    cm_deliver(cm, 0);
    cm_expect_event(cm, 1, ALB_CM_EVENT_ESTABLISHED);
    for (int side = 0; side < 2; side++) {
        cm_expect_state(cm, side, ALB_CM_ESTABLISHED);
        cm_expect_nothing_sent(cm, side);
        cm_expect_no_event(cm, side);
    }
}

bool cm_take_event(struct cm_pair *cm, int side, struct alb_cm_event *event)
{
    bool has_come = alb_cm_event(cm_engine(cm, side), event);
    if (has_come && event->listener)
        alb_cm_request_taken(event->listener);
    return has_come;
}

struct alb_cm_event cm_expect_event(struct cm_pair *cm, int side, enum alb_cm_event_type type)
{
    struct alb_cm_event event;
    if (!cm_take_event(cm, side, &event))
        fail_msg("side %d has no event, not %s", side, alb_cm_event_name(type));
    assert_string_equal(alb_cm_event_name(event.type), alb_cm_event_name(type));
    return event;
}

void cm_expect_no_event(struct cm_pair *cm, int side)
{
    struct alb_cm_event event;
    if (alb_cm_event(cm_engine(cm, side), &event))
        fail_msg("side %d has an event: %s", side, alb_cm_event_name(event.type));
    assert_false(alb_cm_has_event(cm_engine(cm, side)));
}

struct alb_cm_message cm_expect_sent(struct cm_pair *cm, int side, enum alb_cm_type type)
{
    struct alb_cm_message message;
    pair_send(cm->pair, side);
    assert_int_equal(pair_count(cm->pair, side), 1);
    struct pair_packet *packet = pair_peek(cm->pair, side, 0);
    assert_int_equal(packet->roce.qkey, ALB_GSI_QKEY);
    assert_int_equal(packet->payload_bytes, ALB_MAD_BYTES);
    assert_true(alb_cm_decode(packet->bytes + packet->payload_offset, packet->payload_bytes, &message));
    assert_string_equal(alb_cm_type_name(message.type), alb_cm_type_name(type));
    return message;
}

void cm_expect_nothing_sent(struct cm_pair *cm, int side)
{
    pair_send(cm->pair, side);
    assert_int_equal(pair_count(cm->pair, side), 0);
}

void cm_deliver(struct cm_pair *cm, int side)
{
    pair_deliver(cm->pair, side);
}

void cm_lose(struct cm_pair *cm, int side)
{
    pair_lose(cm->pair, side);
}

void cm_inject(struct cm_pair *cm, int side, const struct alb_cm_message *message)
{
    uint8_t bytes[ALB_MAD_BYTES];
    struct alb_roce roce = {
        .opcode = ALB_UD_SEND_ONLY,
        .pkey = ALB_PKEY_DEFAULT,
        .dest_qpn = ALB_GSI_QPN,
        .qkey = ALB_GSI_QKEY,
        .src_qpn = ALB_GSI_QPN,
    };
    alb_cm_encode(message, bytes);
    pair_inject(cm->pair, side, &roce, bytes, sizeof(bytes));
}

uint64_t cm_dropped(const struct cm_pair *cm, int side, enum alb_drop reason)
{
    return cm->pair->hosts[side].stats.dropped[reason];
}

int cm_setup(void **state)
{
    *state = cm_pair_new();
    return 0;
}

int cm_teardown(void **state)
{
    cm_pair_free(*state);
    return 0;
}
