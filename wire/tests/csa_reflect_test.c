// SPDX-License-Identifier: BSD-2-Clause
// Commands, verdicts and proposals keep every field, and what is none of them is refused.
#include "wire/csa.h"
#include "wire/csa_frame.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void txn__keeps_every_field(void **state)
{
    const struct alb_csa_txn txn = {
        .command = ALB_CSA_TXN_COMMIT,
        .dest_qpn = 0x123456,
        .id = {0x1122334455667788, 9},
        .keeper = 0x99aabbccddeeff00,
        .low_water = 7,
    };
    uint8_t bytes[ALB_CSA_FRAME_MAX];
    struct alb_csa_txn decoded;
    assert_int_equal(alb_csa_encode_txn(&txn, bytes), ALB_CSA_TXN_BYTES);
    assert_int_equal(bytes[0], ALB_CSA_TXN);
    assert_int_equal(alb_csa_decode_txn(bytes, &decoded), ALB_DROP_NONE);
    assert_int_equal(decoded.command, txn.command);
    assert_int_equal(decoded.dest_qpn, txn.dest_qpn);
    assert_int_equal(decoded.id.initiator, txn.id.initiator);
    assert_int_equal(decoded.id.number, txn.id.number);
    assert_int_equal(decoded.keeper, txn.keeper);
    assert_int_equal(decoded.low_water, txn.low_water);
}

static void txn__refuses_unknown_commands(void **state)
{
    uint8_t bytes[ALB_CSA_TXN_BYTES] = {ALB_CSA_TXN};
    struct alb_csa_txn decoded;
    for (uint32_t command = 0; command < 256; command++) {
        bool is_known = command >= ALB_CSA_TXN_ASK && command <= ALB_CSA_TXN_ABORT;
        bytes[1] = (uint8_t)command;
        assert_int_equal(alb_csa_decode_txn(bytes, &decoded), is_known ? ALB_DROP_NONE : ALB_DROP_BAD_REQUEST);
    }
}

static void verdict__keeps_every_field(void **state)
{
    const struct alb_csa_verdict verdict = {
        .state = ALB_CSA_VERDICT_ABORTED,
        .reason = 3,
        .dest_qpn = 0xabcdef,
        .id = {1, 0x8000000000000002},
        .keeper = 3,
        .digest = {4, 5},
        .placed_at = 6,
        .decided_at = 7,
        .visible_at = 8,
        .now = 9,
    };
    uint8_t bytes[ALB_CSA_FRAME_MAX];
    struct alb_csa_verdict decoded;
    assert_int_equal(alb_csa_encode_verdict(&verdict, bytes), ALB_CSA_VERDICT_BYTES);
    assert_int_equal(alb_csa_decode_verdict(bytes, &decoded), ALB_DROP_NONE);
    assert_int_equal(decoded.state, verdict.state);
    assert_int_equal(decoded.reason, verdict.reason);
    assert_int_equal(decoded.dest_qpn, verdict.dest_qpn);
    assert_int_equal(decoded.id.initiator, verdict.id.initiator);
    assert_int_equal(decoded.id.number, verdict.id.number);
    assert_int_equal(decoded.keeper, verdict.keeper);
    assert_int_equal(decoded.digest.low, verdict.digest.low);
    assert_int_equal(decoded.digest.high, verdict.digest.high);
    assert_int_equal(decoded.placed_at, verdict.placed_at);
    assert_int_equal(decoded.decided_at, verdict.decided_at);
    assert_int_equal(decoded.visible_at, verdict.visible_at);
    assert_int_equal(decoded.now, verdict.now);
}

static void verdict__refuses_unknown_states(void **state)
{
    uint8_t bytes[ALB_CSA_VERDICT_BYTES] = {ALB_CSA_VERDICT};
    struct alb_csa_verdict decoded;
    for (uint32_t code = 0; code < 256; code++) {
        bool is_known = code >= ALB_CSA_VERDICT_PENDING && code <= ALB_CSA_VERDICT_UNKNOWN;
        bytes[1] = (uint8_t)code;
        assert_int_equal(alb_csa_decode_verdict(bytes, &decoded), is_known ? ALB_DROP_NONE : ALB_DROP_BAD_REQUEST);
    }
}

static struct alb_csa_proposal example(void)
{
    return (struct alb_csa_proposal){
        .id = {11, 12},
        .low_water = 10,
        .digest = {13, 14},
        .bytes = 1ull << 33,
        .lease_us = 250000,
        .part_count = 3,
        .imm_be = 0x01020304,
        .notifies = true,
        .level = 3,
        .compare_count = 2,
        .compares = {{.va = 100, .expected = 1, .mask = UINT64_MAX, .rkey = 5},
                     {.va = 200, .expected = 2, .mask = 0xff, .rkey = 6}},
    };
}

static void proposal__keeps_every_field(void **state)
{
    const struct alb_csa_proposal proposal = example();
    uint8_t bytes[ALB_CSA_PROPOSAL_BYTES_MAX];
    struct alb_csa_proposal decoded;
    uint32_t length = alb_csa_encode_proposal(&proposal, bytes);
    assert_int_equal(length, ALB_CSA_PROPOSAL_BYTES + 2 * ALB_CSA_COMPARE_BYTES);
    assert_true(alb_csa_decode_proposal(bytes, length, &decoded));
    assert_int_equal(decoded.id.initiator, 11);
    assert_int_equal(decoded.id.number, 12);
    assert_int_equal(decoded.low_water, 10);
    assert_int_equal(decoded.digest.low, 13);
    assert_int_equal(decoded.digest.high, 14);
    assert_int_equal(decoded.bytes, 1ull << 33);
    assert_int_equal(decoded.lease_us, 250000);
    assert_int_equal(decoded.part_count, 3);
    assert_int_equal(decoded.imm_be, 0x01020304);
    assert_true(decoded.notifies);
    assert_false(decoded.is_in_place);
    assert_false(decoded.is_solicited);
    assert_int_equal(decoded.level, 3);
    assert_int_equal(decoded.compare_count, 2);
    assert_int_equal(decoded.compares[1].va, 200);
    assert_int_equal(decoded.compares[1].expected, 2);
    assert_int_equal(decoded.compares[1].mask, 0xff);
    assert_int_equal(decoded.compares[1].rkey, 6);
}

static void proposal__refuses_other_lengths(void **state)
{
    const struct alb_csa_proposal proposal = example();
    uint8_t bytes[ALB_CSA_PROPOSAL_BYTES_MAX + 1] = {0};
    struct alb_csa_proposal decoded;
    uint32_t length = alb_csa_encode_proposal(&proposal, bytes);
    for (uint32_t n = 0; n <= sizeof(bytes); n++)
        assert_int_equal(alb_csa_decode_proposal(bytes, n, &decoded), n == length);
    bytes[61] = ALB_CSA_COMPARES_MAX + 1;
    assert_false(alb_csa_decode_proposal(bytes, ALB_CSA_PROPOSAL_BYTES + 9 * ALB_CSA_COMPARE_BYTES, &decoded));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(txn__keeps_every_field),      cmocka_unit_test(txn__refuses_unknown_commands),
        cmocka_unit_test(verdict__keeps_every_field),  cmocka_unit_test(verdict__refuses_unknown_states),
        cmocka_unit_test(proposal__keeps_every_field), cmocka_unit_test(proposal__refuses_other_lengths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
