// SPDX-License-Identifier: BSD-2-Clause
// Headers there and back for every opcode, and every way in which bytes can be wrong.
#include "wire/roce.h"

#include "base/tests/test.h"

#include <string.h>

static uint64_t random_state = 1;

// xorshift64*: what is drawn need only be different, and the same in every run.
static uint64_t draw(void)
{
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    return random_state * 0x2545f4914f6cdd1dull;
}

static void draw_fields(struct alb_roce *roce, uint8_t opcode)
{
    const struct alb_opcode_info *info = alb_opcode_info(opcode);
    *roce = (struct alb_roce){
        .opcode = opcode,
        .solicited = draw() & 1,
        .migreq = draw() & 1,
        .fecn = draw() & 1,
        .becn = draw() & 1,
        .ackreq = draw() & 1,
        .pkey = (uint16_t)draw(),
        .dest_qpn = draw() & ALB_QPN_MASK,
        .psn = draw() & ALB_PSN_MASK,
    };
    if (info->headers & ALB_HEADER_DETH) {
        roce->qkey = (uint32_t)draw();
        roce->src_qpn = draw() & ALB_QPN_MASK;
    }
    if (info->headers & (ALB_HEADER_RETH | ALB_HEADER_ATOMIC)) {
        roce->va = draw();
        roce->rkey = (uint32_t)draw();
    }
    if (info->headers & ALB_HEADER_RETH)
        roce->length = (uint32_t)draw();
    if (info->headers & ALB_HEADER_ATOMIC) {
        roce->swap_add = draw();
        roce->compare = draw();
    }
    if (info->headers & ALB_HEADER_AETH) {
        roce->syndrome = (uint8_t)draw();
        roce->msn = draw() & ALB_PSN_MASK;
    }
    if (info->headers & ALB_HEADER_ATOMIC_ACK)
        roce->atomic_original = draw();
    if (info->headers & ALB_HEADER_IMM)
        roce->imm_be = (uint32_t)draw();
    if (info->headers & ALB_HEADER_IETH)
        roce->invalidate_rkey = (uint32_t)draw();
    if (info->headers & ALB_HEADER_XRCETH)
        roce->xrc_srqn = draw() & ALB_PSN_MASK;
}

// Field by field, since the struct has holes.
static void assert_same(const struct alb_roce *a, const struct alb_roce *b)
{
#define SAME(field) assert_int_equal(a->field, b->field)
    SAME(opcode), SAME(pad), SAME(version), SAME(solicited), SAME(migreq), SAME(fecn), SAME(becn), SAME(ackreq);
    SAME(pkey), SAME(dest_qpn), SAME(psn), SAME(qkey), SAME(src_qpn), SAME(va), SAME(rkey), SAME(length);
    SAME(swap_add), SAME(compare), SAME(syndrome), SAME(msn), SAME(atomic_original), SAME(imm_be);
    SAME(invalidate_rkey), SAME(xrc_srqn);
#undef SAME
}

static void roce__every_opcode_comes_back_as_it_was_encoded(void **state)
{
    for (unsigned opcode = 0; opcode < 256; opcode++) {
        const struct alb_opcode_info *info = alb_opcode_info((uint8_t)opcode);
        if (!info)
            continue;
        for (unsigned round = 0; round < 200; round++) {
            struct alb_roce in, out = {0};
            uint8_t bytes[ALB_ROCE_HEADER_MAX + 4096];
            uint32_t payload = info->flags & ALB_OPCODE_PAYLOAD ? draw() % 4093 : 0;
            uint32_t offset, payload_seen;
            draw_fields(&in, (uint8_t)opcode);
            in.pad = alb_roce_pad(payload);
            assert_int_equal((payload + in.pad) % 4, 0);
            assert_int_equal(alb_roce_encode(&in, bytes), info->header_bytes);
            assert_int_equal(
                alb_roce_decode(bytes, info->header_bytes + payload + in.pad, &out, &offset, &payload_seen),
                ALB_DROP_NONE);
            assert_int_equal(offset, info->header_bytes);
            assert_int_equal(payload_seen, payload);
            assert_same(&in, &out);
        }
    }
}

static void roce_decode__fills_only_what_the_opcode_has(void **state)
{
    struct alb_roce in = {.opcode = ALB_RC_ACK, .syndrome = 0x1f, .msn = 9}, out;
    uint8_t bytes[ALB_ROCE_HEADER_MAX];
    uint32_t offset, payload;
    memset(&out, 0x5a, sizeof(out));
    assert_int_equal(alb_roce_encode(&in, bytes), 16);
    assert_int_equal(alb_roce_decode(bytes, 16, &out, &offset, &payload), ALB_DROP_NONE);
    assert_int_equal(out.msn, 9);
    assert_int_equal(out.va, 0x5a5a5a5a5a5a5a5a);
    assert_int_equal(out.qkey, 0x5a5a5a5a);
}

// The layout, spelt out once by hand so that encoder and decoder cannot be wrong in the same way.
static void roce_encode__lays_bytes_out_as_the_specification_does(void **state)
{
    struct alb_roce write = {.opcode = ALB_RC_WRITE_ONLY_IMM,
                             .solicited = true,
                             .pad = 3,
                             .pkey = 0x8001,
                             .becn = true,
                             .dest_qpn = 0x123456,
                             .ackreq = true,
                             .psn = 0xabcdef,
                             .va = 0x1122334455667788,
                             .rkey = 0x99aabbcc,
                             .length = 0xddeeff00,
                             .imm_be = 0x04030201};
    static const uint8_t expected[] = {0x0b, 0xb0, 0x80, 0x01, 0x40, 0x12, 0x34, 0x56, 0x80, 0xab, 0xcd,
                                       0xef, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xaa,
                                       0xbb, 0xcc, 0xdd, 0xee, 0xff, 0x00, 0x01, 0x02, 0x03, 0x04};
    uint8_t bytes[ALB_ROCE_HEADER_MAX];
    assert_int_equal(alb_roce_encode(&write, bytes), sizeof(expected));
    assert_memory_equal(bytes, expected, sizeof(expected));

    struct alb_roce swap = {.opcode = ALB_RC_CMP_SWAP,
                            .migreq = true,
                            .pkey = 0xffff,
                            .fecn = true,
                            .dest_qpn = 0x11,
                            .psn = 2,
                            .va = 0x10,
                            .rkey = 0x20,
                            .swap_add = 0x30,
                            .compare = 0x40};
    static const uint8_t expected_swap[] = {0x13, 0x40, 0xff, 0xff, 0x80, 0,    0, 0x11, 0, 0,    0, 2,   0, 0,
                                            0,    0,    0,    0,    0,    0x10, 0, 0,    0, 0x20, 0, 0,   0, 0,
                                            0,    0,    0,    0x30, 0,    0,    0, 0,    0, 0,    0, 0x40};
    assert_int_equal(alb_roce_encode(&swap, bytes), sizeof(expected_swap));
    assert_memory_equal(bytes, expected_swap, sizeof(expected_swap));
}

static enum alb_drop decode(const uint8_t *bytes, uint32_t length)
{
    struct alb_roce out;
    uint32_t offset, payload;
    return alb_roce_decode(bytes, length, &out, &offset, &payload);
}

static void roce_decode__says_what_is_wrong(void **state)
{
    struct alb_roce roce = {.opcode = ALB_RC_WRITE_ONLY};
    uint8_t bytes[64] = {0};
    alb_roce_encode(&roce, bytes);

    for (uint32_t length = 0; length < 28; length++)
        assert_int_equal(decode(bytes, length), ALB_DROP_TRUNCATED);
    assert_int_equal(decode(bytes, 28), ALB_DROP_NONE);
    assert_int_equal(decode(bytes, 29), ALB_DROP_BAD_LENGTH); // not a multiple of four
    assert_int_equal(decode(bytes, 32), ALB_DROP_NONE);

    bytes[1] = 3 << 4;
    assert_int_equal(decode(bytes, 28), ALB_DROP_BAD_LENGTH); // three bytes of pad in none
    assert_int_equal(decode(bytes, 32), ALB_DROP_NONE);
    bytes[1] = 1;
    assert_int_equal(decode(bytes, 28), ALB_DROP_BAD_VERSION);
    bytes[1] = 0;
    bytes[0] = 0x15;
    assert_int_equal(decode(bytes, 28), ALB_DROP_UNKNOWN_OPCODE);
    bytes[0] = ALB_RC_ACK;
    assert_int_equal(decode(bytes, 16), ALB_DROP_NONE);
    assert_int_equal(decode(bytes, 20), ALB_DROP_BAD_LENGTH); // payload where there is none
}

static void roce_decode__leaves_the_bth_of_an_unknown_opcode(void **state)
{
    static const uint8_t bytes[12] = {0x1f, 0, 0xff, 0xff, 0, 1, 2, 3, 0x80, 4, 5, 6};
    struct alb_roce out;
    uint32_t offset, payload;
    assert_int_equal(alb_roce_decode(bytes, 12, &out, &offset, &payload), ALB_DROP_UNKNOWN_OPCODE);
    assert_int_equal(out.dest_qpn, 0x010203);
    assert_int_equal(out.psn, 0x040506);
    assert_true(out.ackreq);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(roce__every_opcode_comes_back_as_it_was_encoded),
        cmocka_unit_test(roce_decode__fills_only_what_the_opcode_has),
        cmocka_unit_test(roce_encode__lays_bytes_out_as_the_specification_does),
        cmocka_unit_test(roce_decode__says_what_is_wrong),
        cmocka_unit_test(roce_decode__leaves_the_bth_of_an_unknown_opcode),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
