// SPDX-License-Identifier: BSD-2-Clause
// The messages of a kernel's rdma_cm, byte by byte, and those that its capture does not show against the tables of the
// specification.
#include "wire/cm.h"

#include "wire/tests/capture.h"

#include <string.h>

// The n-th datagram to queue pair 1 in the capture of rping, decoded.
static void captured(unsigned n, struct alb_cm_message *message, uint8_t bytes[ALB_MAD_BYTES])
{
    struct capture capture;
    struct alb_datagram datagram;
    struct alb_pcap_packet packet;
    struct alb_roce roce;
    uint32_t offset, payload;
    unsigned found = 0;
    capture_open(&capture, "rdmacm_rping");
    while (capture_next(&capture, &datagram, &packet)) {
        assert_int_equal(alb_roce_decode(datagram.bytes, datagram.length - 4, &roce, &offset, &payload), ALB_DROP_NONE);
        if (roce.dest_qpn != ALB_GSI_QPN || found++ != n)
            continue;
        assert_int_equal(payload, ALB_MAD_BYTES);
        memcpy(bytes, datagram.bytes + offset, ALB_MAD_BYTES);
        assert_true(alb_cm_decode(bytes, payload, message));
    }
    assert_int_equal(found, 5);
    capture_close(&capture);
}

static void capture__messages_encode_to_the_same_bytes(void **state)
{
    static const enum alb_cm_type types[] = {ALB_CM_REQ, ALB_CM_REP, ALB_CM_RTU, ALB_CM_DREQ, ALB_CM_DREP};
    for (unsigned n = 0; n < ALB_COUNT(types); n++) {
        struct alb_cm_message message;
        uint8_t bytes[ALB_MAD_BYTES], encoded[ALB_MAD_BYTES];
        captured(n, &message, bytes);
        assert_int_equal(message.type, types[n]);
        assert_true(message.transaction == 0x21ccda08c);
        memset(encoded, 0xff, sizeof(encoded));
        alb_cm_encode(&message, encoded);
        assert_memory_equal(encoded, bytes, ALB_MAD_BYTES);
    }
}

static struct alb_addr addr(const char *text)
{
    struct alb_addr result;
    assert_true(alb_addr_parse(text, &result));
    return result;
}

static void capture__request_says_who_wants_what(void **state)
{
    struct alb_cm_message message;
    uint8_t bytes[ALB_MAD_BYTES];
    captured(0, &message, bytes);
    const struct alb_cm_req *req = &message.req;
    struct alb_addr client = addr("10.99.0.2"), server = addr("10.99.0.3");
    assert_int_equal(message.local_id, 0x8ca0cd1c);
    assert_int_equal(message.remote_id, ALB_CM_NEVER_REMOTE);
    assert_true(req->service_id == alb_cm_service_id(ALB_CM_PS_TCP, 7174));
    assert_true(req->ca_guid == 0x505400fffe990001);
    assert_int_equal(req->qpn, 0x1e);
    assert_int_equal(req->starting_psn, 0x60eec7);
    assert_int_equal(req->responder_resources, 1);
    assert_int_equal(req->initiator_depth, 1);
    assert_int_equal(req->remote_response_timeout, 20);
    assert_int_equal(req->local_response_timeout, 20);
    assert_int_equal(req->transport, ALB_CM_TRANSPORT_RC);
    assert_int_equal(req->retry_count, 7);
    assert_int_equal(req->rnr_retry_count, 7);
    assert_int_equal(req->max_cm_retries, 15);
    assert_int_equal(req->mtu, 3);
    assert_int_equal(req->pkey, ALB_PKEY_DEFAULT);
    assert_true(alb_addr_equals(&req->primary.local_gid, &client));
    assert_true(alb_addr_equals(&req->primary.remote_gid, &server));
    assert_int_equal(req->primary.flow_label, 0xa85c7);
    assert_int_equal(req->primary.hop_limit, 64);
    assert_int_equal(req->primary.ack_timeout, 19);

    struct alb_cm_ip_header header;
    assert_true(alb_cm_ip_header_decode(message.private_data, &header));
    assert_int_equal(header.source_port, 55839);
    assert_true(alb_addr_equals(&header.source, &client));
    assert_true(alb_addr_equals(&header.destination, &server));
    uint8_t encoded[ALB_CM_IP_HEADER_BYTES];
    alb_cm_ip_header_encode(&header, encoded);
    assert_memory_equal(encoded, message.private_data, sizeof(encoded));
}

static void capture__reply_and_disconnect(void **state)
{
    struct alb_cm_message message;
    uint8_t bytes[ALB_MAD_BYTES];
    captured(1, &message, bytes);
    assert_int_equal(message.local_id, 0x7c972789);
    assert_int_equal(message.remote_id, 0x8ca0cd1c);
    assert_int_equal(message.rep.qpn, 0x1e);
    assert_int_equal(message.rep.starting_psn, 0x16ed16);
    assert_int_equal(message.rep.target_ack_delay, 15);
    assert_int_equal(message.rep.rnr_retry_count, 7);
    assert_false(message.rep.has_srq);
    captured(3, &message, bytes);
    assert_int_equal(message.local_id, 0x8ca0cd1c);
    assert_int_equal(message.dreq_qpn, 0x1e);
}

// Fills a struct's bytes by type, so that every bit of every field is used, then looks at each byte that the tables
// name.
static struct alb_cm_message sample(enum alb_cm_type type)
{
    struct alb_cm_message message = {
        .type = type,
        .transaction = 0x1122334455667788,
        .local_id = 0xa1a2a3a4,
        .remote_id = 0xb1b2b3b4,
    };
    for (uint32_t i = 0; i < alb_cm_private_bytes(type); i++)
        message.private_data[i] = (uint8_t)(i + 1);
    return message;
}

static void expect_round_trip(struct alb_cm_message *message, uint8_t bytes[ALB_MAD_BYTES])
{
    struct alb_cm_message decoded;
    uint8_t again[ALB_MAD_BYTES];
    alb_cm_encode(message, bytes);
    assert_true(alb_cm_decode(bytes, ALB_MAD_BYTES, &decoded));
    alb_cm_encode(&decoded, again);
    assert_memory_equal(again, bytes, ALB_MAD_BYTES);
    assert_int_equal(decoded.type, message->type);
    assert_int_equal(decoded.local_id, message->local_id);
    assert_memory_equal(decoded.private_data, message->private_data, ALB_CM_PRIVATE_MAX);
}

static void expect_bytes(const uint8_t *mad, uint32_t offset, const void *expected, uint32_t count)
{
    assert_memory_equal(mad + ALB_MAD_HEADER_BYTES + offset, expected, count);
}

static void reject__as_table_12_6_7(void **state)
{
    uint8_t bytes[ALB_MAD_BYTES];
    struct alb_cm_message message = sample(ALB_CM_REJ);
    message.rej = (struct alb_cm_rej){.answers = ALB_CM_ANSWERS_OTHER,
                                      .reason = ALB_CM_REJ_CONSUMER_DEFINED,
                                      .info_bytes = 8,
                                      .info = {9, 8, 7, 6, 5, 4, 3, 2}};
    expect_round_trip(&message, bytes);
    expect_bytes(bytes, 0, "\xa1\xa2\xa3\xa4\xb1\xb2\xb3\xb4\x80\x10\0\x1c\x09\x08", 14);
    expect_bytes(bytes, 84, "\1\2\3", 3);
    assert_int_equal(bytes[255], 148);
    assert_int_equal(alb_cm_private_bytes(ALB_CM_REJ), 148);
}

static void reject__says_which_mtu(void **state)
{
    uint8_t bytes[ALB_MAD_BYTES];
    struct alb_cm_message message = sample(ALB_CM_REJ);
    message.rej = (struct alb_cm_rej){.reason = ALB_CM_REJ_INVALID_MTU};
    assert_int_equal(alb_cm_rej_mtu(&message.rej), 0);
    alb_cm_rej_set_mtu(&message.rej, 3);
    assert_int_equal(alb_cm_rej_mtu(&message.rej), 3);
    expect_round_trip(&message, bytes);
    expect_bytes(bytes, 8, "\0\x02\0\x1a\x30\0", 6);
}

static void mra__as_table_12_6_6(void **state)
{
    uint8_t bytes[ALB_MAD_BYTES];
    struct alb_cm_message message = sample(ALB_CM_MRA);
    message.mra = (struct alb_cm_mra){.answers = ALB_CM_ANSWERS_REP, .service_timeout = 24};
    expect_round_trip(&message, bytes);
    expect_bytes(bytes, 4, "\xb1\xb2\xb3\xb4\x40\xc0\1\2", 8);
    assert_int_equal(bytes[255], 222);
}

static void sidr__as_tables_12_11(void **state)
{
    uint8_t bytes[ALB_MAD_BYTES];
    struct alb_cm_message message = sample(ALB_CM_SIDR_REQ);
    message.remote_id = 0;
    message.sidr_req = (struct alb_cm_sidr_req){.pkey = 0xffff, .service_id = alb_cm_service_id(ALB_CM_PS_UDP, 0x1234)};
    expect_round_trip(&message, bytes);
    expect_bytes(bytes, 0, "\xa1\xa2\xa3\xa4\xff\xff\0\0\0\0\0\0\x01\x11\x12\x34\1\2", 18);
    assert_int_equal(bytes[255], 216);

    message = sample(ALB_CM_SIDR_REP);
    message.remote_id = 0;
    message.sidr_rep = (struct alb_cm_sidr_rep){.status = ALB_CM_SIDR_REJECTED,
                                                .qpn = 0x010203,
                                                .service_id = alb_cm_service_id(ALB_CM_PS_UDP, 0x1234),
                                                .qkey = 0x01234567,
                                                .info_bytes = 2,
                                                .info = {7, 8}};
    expect_round_trip(&message, bytes);
    expect_bytes(bytes, 0, "\xa1\xa2\xa3\xa4\2\2\0\0\1\2\3\0\0\0\0\0\x01\x11\x12\x34\x01\x23\x45\x67\7\x8", 26);
    expect_bytes(bytes, 96, "\1\2", 2);
    assert_int_equal(bytes[255], 136);
}

static void alternate_path__only_its_refusal_is_sent(void **state)
{
    uint8_t bytes[ALB_MAD_BYTES];
    struct alb_cm_message message = sample(ALB_CM_APR);
    message.apr = (struct alb_cm_apr){.status = ALB_CM_APR_UNSUPPORTED, .info_bytes = 1, .info = {5}};
    expect_round_trip(&message, bytes);
    expect_bytes(bytes, 4, "\xb1\xb2\xb3\xb4\1\2\0\0\5\0", 10);

    bytes[17] = ALB_CM_LAP;
    assert_true(alb_cm_decode(bytes, ALB_MAD_BYTES, &message));
    assert_int_equal(message.type, ALB_CM_LAP);
    assert_int_equal(message.remote_id, 0xb1b2b3b4);
}

// Every field of a request and a reply at its greatest value, one at a time: none spills into its neighbours.
static void req_and_rep__fields_do_not_touch_each_other(void **state)
{
#define EACH(message_type, member, field, value)                                       \
    do {                                                                               \
        struct alb_cm_message m = {.type = message_type}, decoded, cleared;            \
        uint8_t bytes[ALB_MAD_BYTES];                                                  \
        m.member.field = (value);                                                      \
        alb_cm_encode(&m, bytes);                                                      \
        assert_true(alb_cm_decode(bytes, ALB_MAD_BYTES, &decoded));                    \
        assert_true(decoded.member.field == (__typeof__(m.member.field))(value));      \
        cleared = (struct alb_cm_message){.type = message_type};                       \
        decoded.member.field = 0;                                                      \
        assert_memory_equal(&decoded.member, &cleared.member, sizeof(cleared.member)); \
    } while (0)
    EACH(ALB_CM_REQ, req, service_id, UINT64_MAX);
    EACH(ALB_CM_REQ, req, ca_guid, UINT64_MAX);
    EACH(ALB_CM_REQ, req, qkey, UINT32_MAX);
    EACH(ALB_CM_REQ, req, qpn, 0xffffff);
    EACH(ALB_CM_REQ, req, responder_resources, 255);
    EACH(ALB_CM_REQ, req, initiator_depth, 255);
    EACH(ALB_CM_REQ, req, remote_response_timeout, 31);
    EACH(ALB_CM_REQ, req, local_response_timeout, 31);
    EACH(ALB_CM_REQ, req, transport, 3);
    EACH(ALB_CM_REQ, req, extended_transport, 7);
    EACH(ALB_CM_REQ, req, flow_control, 1);
    EACH(ALB_CM_REQ, req, starting_psn, 0xffffff);
    EACH(ALB_CM_REQ, req, retry_count, 7);
    EACH(ALB_CM_REQ, req, rnr_retry_count, 7);
    EACH(ALB_CM_REQ, req, pkey, 0xffff);
    EACH(ALB_CM_REQ, req, mtu, 15);
    EACH(ALB_CM_REQ, req, max_cm_retries, 15);
    EACH(ALB_CM_REQ, req, has_srq, 1);
    EACH(ALB_CM_REQ, req, primary.local_lid, 0xffff);
    EACH(ALB_CM_REQ, req, primary.remote_lid, 0xffff);
    EACH(ALB_CM_REQ, req, primary.flow_label, 0xfffff);
    EACH(ALB_CM_REQ, req, primary.packet_rate, 63);
    EACH(ALB_CM_REQ, req, primary.traffic_class, 255);
    EACH(ALB_CM_REQ, req, primary.hop_limit, 255);
    EACH(ALB_CM_REQ, req, primary.sl, 15);
    EACH(ALB_CM_REQ, req, primary.subnet_local, 1);
    EACH(ALB_CM_REQ, req, primary.ack_timeout, 31);
    EACH(ALB_CM_REQ, req, alternate.local_lid, 0xffff);
    EACH(ALB_CM_REQ, req, alternate.ack_timeout, 31);
    EACH(ALB_CM_REP, rep, qkey, UINT32_MAX);
    EACH(ALB_CM_REP, rep, qpn, 0xffffff);
    EACH(ALB_CM_REP, rep, eecn, 0xffffff);
    EACH(ALB_CM_REP, rep, starting_psn, 0xffffff);
    EACH(ALB_CM_REP, rep, responder_resources, 255);
    EACH(ALB_CM_REP, rep, initiator_depth, 255);
    EACH(ALB_CM_REP, rep, target_ack_delay, 31);
    EACH(ALB_CM_REP, rep, failover_accepted, 3);
    EACH(ALB_CM_REP, rep, flow_control, 1);
    EACH(ALB_CM_REP, rep, rnr_retry_count, 7);
    EACH(ALB_CM_REP, rep, has_srq, 1);
    EACH(ALB_CM_REP, rep, ca_guid, UINT64_MAX);
#undef EACH
}

static void ece__stands_in_what_was_reserved(void **state)
{
    static const struct {
        enum alb_cm_type type;
        unsigned at[3];
    } places[] = {{ALB_CM_REQ, {5, 6, 7}}, {ALB_CM_REP, {15, 19, 23}}, {ALB_CM_SIDR_REP, {6, 7, 11}}};
    for (unsigned i = 0; i < ALB_COUNT(places); i++) {
        uint8_t plain[ALB_MAD_BYTES], bytes[ALB_MAD_BYTES];
        struct alb_cm_message message = sample(places[i].type);
        if (places[i].type != ALB_CM_REP)
            message.remote_id = 0;
        alb_cm_encode(&message, plain);
        message.ece = (struct alb_cm_ece){.vendor_id = 0x123456, .options = 0x789abcde};
        expect_round_trip(&message, bytes);
        assert_memory_equal(bytes + 20, "\x78\x9a\xbc\xde", 4);
        for (unsigned j = 0; j < 3; j++) {
            assert_int_equal(bytes[ALB_MAD_HEADER_BYTES + places[i].at[j]], 0x12 + 0x22 * j);
            bytes[ALB_MAD_HEADER_BYTES + places[i].at[j]] = 0;
        }
        memset(bytes + 20, 0, 4);
        assert_memory_equal(bytes, plain, ALB_MAD_BYTES);
    }
}

static void decode__refuses_what_is_no_message(void **state)
{
    uint8_t bytes[ALB_MAD_BYTES];
    struct alb_cm_message message = sample(ALB_CM_RTU), decoded;
    static const struct {
        unsigned at;
        uint8_t value;
    } wrong[] = {{0, 2}, {1, 3}, {2, 1}, {3, 1}, {3, 0x81}, {16, 1}, {17, 0x0f}, {17, 0x1b}};
    for (unsigned i = 0; i < ALB_COUNT(wrong); i++) {
        alb_cm_encode(&message, bytes);
        bytes[wrong[i].at] = wrong[i].value;
        assert_false(alb_cm_decode(bytes, ALB_MAD_BYTES, &decoded));
    }
    alb_cm_encode(&message, bytes);
    assert_false(alb_cm_decode(bytes, ALB_MAD_BYTES - 1, &decoded));
}

static void decode__more_information_than_fits_is_cut(void **state)
{
    uint8_t bytes[ALB_MAD_BYTES];
    struct alb_cm_message message = sample(ALB_CM_REJ);
    alb_cm_encode(&message, bytes);
    bytes[ALB_MAD_HEADER_BYTES + 9] = 127 << 1;
    assert_true(alb_cm_decode(bytes, ALB_MAD_BYTES, &message));
    assert_int_equal(message.rej.info_bytes, ALB_CM_INFO_MAX);
}

static void ip_header__ipv6_and_what_is_none(void **state)
{
    struct alb_cm_ip_header header = {.source_port = 0xfedc, .source = addr("fd99::2"), .destination = addr("fd99::3")};
    struct alb_cm_ip_header decoded;
    uint8_t bytes[ALB_CM_IP_HEADER_BYTES];
    alb_cm_ip_header_encode(&header, bytes);
    assert_memory_equal(bytes, "\0\x60\xfe\xdc\xfd\x99", 6);
    assert_true(alb_cm_ip_header_decode(bytes, &decoded));
    assert_memory_equal(&decoded, &header, sizeof(header));
    bytes[0] = 1;
    assert_false(alb_cm_ip_header_decode(bytes, &decoded));
    bytes[0] = 0;
    bytes[1] = 0x50;
    assert_false(alb_cm_ip_header_decode(bytes, &decoded));
}

static void type_name__has_one_for_every_type(void **state)
{
    assert_string_equal(alb_cm_type_name(ALB_CM_REQ), "req");
    assert_string_equal(alb_cm_type_name(ALB_CM_APR), "apr");
    assert_string_equal(alb_cm_type_name((enum alb_cm_type)0x0f), "invalid");
    assert_int_equal(alb_cm_private_bytes((enum alb_cm_type)0x1b), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(capture__messages_encode_to_the_same_bytes),
        cmocka_unit_test(capture__request_says_who_wants_what),
        cmocka_unit_test(capture__reply_and_disconnect),
        cmocka_unit_test(reject__as_table_12_6_7),
        cmocka_unit_test(reject__says_which_mtu),
        cmocka_unit_test(mra__as_table_12_6_6),
        cmocka_unit_test(sidr__as_tables_12_11),
        cmocka_unit_test(alternate_path__only_its_refusal_is_sent),
        cmocka_unit_test(req_and_rep__fields_do_not_touch_each_other),
        cmocka_unit_test(ece__stands_in_what_was_reserved),
        cmocka_unit_test(decode__refuses_what_is_no_message),
        cmocka_unit_test(decode__more_information_than_fits_is_cut),
        cmocka_unit_test(ip_header__ipv6_and_what_is_none),
        cmocka_unit_test(type_name__has_one_for_every_type),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
