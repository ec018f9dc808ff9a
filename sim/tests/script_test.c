// SPDX-License-Identifier: BSD-2-Clause
// Scripts that look into CSA's packets, frame by frame. (What a link does by RoCE's headers: link_test.c.)
#include "sim/script.h"

#include "base/tests/test.h"

#include <string.h>

// Tests name what matters and leave the rest zero.
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

struct packet {
    uint8_t bytes[512];
    uint32_t length;
};

static struct packet packet_on(uint8_t path)
{
    struct packet packet = {.length = ALB_CSA_OUTER_BYTES};
    struct alb_csa_header header = {.source_epoch = 1, .sequence = 77, .path = path};
    alb_csa_encode(&header, packet.bytes);
    return packet;
}

static void add_segment(struct packet *packet, enum alb_csa_type type, alb_psn psn, uint32_t index)
{
    struct alb_csa_segment segment = {
        .op = type == ALB_CSA_REQUEST ? ALB_CSA_WRITE : ALB_CSA_READ_DATA,
        .flags = index == 3 ? ALB_CSA_LAST : 0,
        .dest_qpn = 17,
        .psn = psn,
        .index = index,
        .total_bytes = 16,
        .payload_bytes = 4,
    };
    packet->length += alb_csa_encode_segment(type, &segment, packet->bytes + packet->length) + 4;
}

static void add_report(struct packet *packet, alb_qpn qpn)
{
    packet->length += alb_csa_encode_report(&(struct alb_csa_report){.qpn = qpn}, packet->bytes + packet->length);
}

static bool is_lost(struct alb_sim_script *script, const struct packet *packet)
{
    struct alb_sim_verdict verdict = {0};
    struct alb_roce roce;
    uint32_t offset, payload;
    assert_int_equal(alb_roce_decode(packet->bytes, packet->length, &roce, &offset, &payload), ALB_DROP_NONE);
    alb_sim_script_decide(script, &roce, packet->bytes, packet->length, &verdict);
    return verdict.is_lost;
}

static bool segment_is_lost(struct alb_sim_script *script, alb_psn psn, uint32_t index)
{
    struct packet packet = packet_on(0);
    add_segment(&packet, ALB_CSA_REQUEST, psn, index);
    return is_lost(script, &packet);
}

static struct alb_sim_script script_of(struct alb_sim_rule rule)
{
    struct alb_sim_script script = {0};
    alb_sim_script_add(&script, &rule);
    return script;
}

static void frame__type_count_and_any_place_in_the_packet(void **state)
{
    struct alb_sim_script script =
        script_of((struct alb_sim_rule){.by = ALB_SIM_BY_FRAME, .frame = ALB_CSA_REPORT, .from = 2});
    struct packet first = packet_on(0), second = packet_on(0);
    add_report(&first, 17);
    add_segment(&second, ALB_CSA_REQUEST, 5, 0);
    add_report(&second, 18);
    assert_false(segment_is_lost(&script, 4, 3));
    assert_false(is_lost(&script, &first));
    assert_true(is_lost(&script, &second));
    assert_false(is_lost(&script, &first));
    assert_true(alb_sim_script_is_done(&script));
}

static void frame__two_frames_that_have_half_each_do_not_match(void **state)
{
    struct alb_sim_script script =
        script_of((struct alb_sim_rule){.by = ALB_SIM_BY_FRAME | ALB_SIM_BY_QPN, .frame = ALB_CSA_REPORT, .qpn = 17});
    struct packet packet = packet_on(0);
    add_report(&packet, 18);
    add_segment(&packet, ALB_CSA_REQUEST, 5, 0); // of queue pair 17
    assert_false(is_lost(&script, &packet));
    add_report(&packet, 17);
    assert_true(is_lost(&script, &packet));
}

static void segment__index_message_psn_and_op(void **state)
{
    struct alb_sim_script index = script_of((struct alb_sim_rule){.by = ALB_SIM_BY_INDEX, .index = 2});
    assert_false(segment_is_lost(&index, 0xffffff, 1));
    assert_true(segment_is_lost(&index, 0, 2));
    struct alb_sim_script message =
        script_of((struct alb_sim_rule){.by = ALB_SIM_BY_MESSAGE, .message = 0xfffffe, .times = UINT32_MAX});
    assert_true(segment_is_lost(&message, 0xfffffe, 0));
    assert_true(segment_is_lost(&message, 1, 3));
    assert_false(segment_is_lost(&message, 2, 0));
    struct alb_sim_script psn =
        script_of((struct alb_sim_rule){.by = ALB_SIM_BY_FRAME | ALB_SIM_BY_PSN, .frame = ALB_CSA_REQUEST, .psn = 9});
    assert_false(segment_is_lost(&psn, 77, 0)); // the packet's own number
    assert_true(segment_is_lost(&psn, 9, 0));
    struct alb_sim_script op = script_of((struct alb_sim_rule){.by = ALB_SIM_BY_OP, .op = ALB_CSA_READ_DATA});
    struct packet answer = packet_on(0);
    add_segment(&answer, ALB_CSA_RESPONSE, 3, 0);
    assert_false(segment_is_lost(&op, 9, 0));
    assert_true(is_lost(&op, &answer));
}

static void segment__new_or_sent_again_by_stream(void **state)
{
    struct alb_sim_script again = script_of((struct alb_sim_rule){.by = ALB_SIM_BY_AGAIN});
    assert_false(segment_is_lost(&again, 0xffffff, 0));
    assert_false(segment_is_lost(&again, 0, 1));
    struct packet answer = packet_on(0);
    add_segment(&answer, ALB_CSA_RESPONSE, 0xffffff, 0); // another stream
    assert_false(is_lost(&again, &answer));
    assert_true(segment_is_lost(&again, 0xffffff, 0));
    assert_false(segment_is_lost(&again, 0, 1)); // once
    struct alb_sim_script new = script_of((struct alb_sim_rule){.by = ALB_SIM_BY_NEW, .from = 2});
    assert_false(segment_is_lost(&new, 5, 0));
    assert_false(segment_is_lost(&new, 5, 0));
    assert_true(segment_is_lost(&new, 6, 1));
}

static void path__of_the_packet(void **state)
{
    struct alb_sim_script script = script_of((struct alb_sim_rule){.by = ALB_SIM_BY_PATH, .path = 3});
    struct packet other = packet_on(2), ours = packet_on(3);
    add_report(&other, 1);
    add_report(&ours, 1);
    assert_false(is_lost(&script, &other));
    assert_true(is_lost(&script, &ours));
}

static void not_csa__rules_of_frames_do_not_match(void **state)
{
    struct alb_sim_script script =
        script_of((struct alb_sim_rule){.by = ALB_SIM_BY_FRAME, .frame = ALB_CSA_REQUEST, .times = UINT32_MAX});
    struct packet packet = {0};
    struct alb_roce roce = {.opcode = ALB_RC_ACK, .psn = 1, .syndrome = ALB_AETH_SYNDROME_ACK(31)};
    packet.length = alb_roce_encode(&roce, packet.bytes);
    assert_false(is_lost(&script, &packet));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frame__type_count_and_any_place_in_the_packet),
        cmocka_unit_test(frame__two_frames_that_have_half_each_do_not_match),
        cmocka_unit_test(segment__index_message_psn_and_op),
        cmocka_unit_test(segment__new_or_sent_again_by_stream),
        cmocka_unit_test(path__of_the_packet),
        cmocka_unit_test(not_csa__rules_of_frames_do_not_match),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
