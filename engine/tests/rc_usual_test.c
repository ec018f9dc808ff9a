// SPDX-License-Identifier: BSD-2-Clause
// What is taken by its headers comes to the same as what is decoded, and what is made from the packet before it is the
// same as what is built. The same happens to two pairs; one of them keeps a trace and could corrupt, for which all
// packets go the general way.
#include "engine/rc.h"

#include "base/corruption.h"
#include "engine/segmenter.h"
#include "engine/tests/pair_expect.h"
#include "engine/tx.h"

#define SEEDS 400
#define STEPS 60

enum {
    REGION = 64, // bytes of each message's place
    LONG_BYTES = 9000,
    SEEN_BYTES = 32 * REGION + LONG_BYTES,
    HEADER_BYTES = ALB_BTH_BYTES + 16 + 8, // of a WRITE, and the room behind it
};

struct worlds {
    struct pair_qps of[2]; // [1] keeps a trace
    struct alb_prng prng;
    uint64_t next_wr_id;
};

static struct alb_corruption no_corruption;

static void generally(struct alb_engine_config *config)
{
    static const struct alb_corruption_spec none;
    static uint64_t counts[ALB_CORRUPT_PLACES];
    alb_corruption_init(&no_corruption, &none, 1, counts);
    config->trace_records = 64;
    config->corruption = &no_corruption;
}

static void open_worlds(struct worlds *w, uint64_t seed)
{
    alb_prng_init(&w->prng, seed);
    w->next_wr_id = 1;
    for (int i = 0; i < 2; i++) {
        w->of[i].pair = pair_new(i == 0 ? NULL : generally);
        pair_connect(w->of[i].pair, ALB_QPT_RC, w->of[i].qps, NULL);
        pair_fill(w->of[i].pair);
    }
}

// All that can be seen from outside.
static void compare(struct worlds *w)
{
    for (int side = 0; side < 2; side++) {
        struct pair_host *a = &w->of[0].pair->hosts[side], *b = &w->of[1].pair->hosts[side];
        assert_memory_equal(&a->stats.sum, &b->stats.sum, sizeof(a->stats.sum));
        assert_memory_equal(a->stats.dropped, b->stats.dropped, sizeof(a->stats.dropped));
        assert_memory_equal(a->memory, b->memory, SEEN_BYTES);
        assert_int_equal(alb_qp_state_of(w->of[0].qps[side]), alb_qp_state_of(w->of[1].qps[side]));
        struct alb_wc wc_a, wc_b;
        bool has_a, has_b;
        do {
            has_a = pair_poll(w->of[0].pair, side, &wc_a);
            has_b = pair_poll(w->of[1].pair, side, &wc_b);
            assert_int_equal(has_a, has_b);
            if (!has_a)
                break;
            assert_int_equal(wc_a.wr_id, wc_b.wr_id);
            assert_int_equal(wc_a.status, wc_b.status);
            assert_int_equal(wc_a.opcode, wc_b.opcode);
            assert_int_equal(wc_a.byte_len, wc_b.byte_len);
            assert_int_equal(wc_a.src_qpn, wc_b.src_qpn);
        } while (has_a);
    }
}

// What side has sent: the same but for keys and addresses, which are each world's own.
static void compare_sent(const struct worlds *w, int side)
{
    uint32_t count = pair_count(w->of[0].pair, side);
    assert_int_equal(count, pair_count(w->of[1].pair, side));
    for (uint32_t i = 0; i < count; i++) {
        const struct pair_packet *a = pair_peek(w->of[0].pair, side, i), *b = pair_peek(w->of[1].pair, side, i);
        assert_int_equal(a->roce.opcode, b->roce.opcode);
        assert_int_equal(a->roce.psn, b->roce.psn);
        assert_int_equal(a->roce.ackreq, b->roce.ackreq);
        assert_int_equal(a->roce.syndrome, b->roce.syndrome);
        assert_int_equal(a->roce.msn, b->roce.msn);
        assert_int_equal(a->roce.length, b->roce.length);
        assert_int_equal(a->payload_bytes, b->payload_bytes);
        assert_memory_equal(a->bytes + a->payload_offset, b->bytes + b->payload_offset, a->payload_bytes);
    }
}

static void ask(struct worlds *w, int side)
{
    static const enum alb_wr_opcode opcodes[] = {ALB_WR_SEND,       ALB_WR_SEND,      ALB_WR_RDMA_WRITE,
                                                 ALB_WR_RDMA_WRITE, ALB_WR_RDMA_READ, ALB_WR_SEND_WITH_IMM};
    enum alb_wr_opcode opcode = opcodes[alb_prng_below(&w->prng, ALB_COUNT(opcodes))];
    uint32_t flags = alb_prng_below(&w->prng, 4) ? ALB_SEND_SIGNALED : ALB_SEND_SIGNALED | ALB_SEND_SOLICITED;
    uint32_t offset = (uint32_t)alb_prng_below(&w->prng, 16) * REGION;
    uint32_t length = (uint32_t)alb_prng_below(&w->prng, alb_prng_below(&w->prng, 3) ? 20 : LONG_BYTES);
    uint64_t wr_id = w->next_wr_id++;
    for (int i = 0; i < 2; i++)
        pair_ask(w->of[i].pair, w->of[i].qps[side], opcode, wr_id, flags, offset, length);
}

static void receive(struct worlds *w, int side)
{
    uint32_t offset = (uint32_t)(16 + alb_prng_below(&w->prng, 16)) * REGION;
    uint32_t length = alb_prng_below(&w->prng, 30) ? LONG_BYTES : 8;
    uint64_t wr_id = w->next_wr_id++;
    for (int i = 0; i < 2; i++)
        pair_receive(w->of[i].pair, w->of[i].qps[side], wr_id, offset, length);
}

// A packet that no engine has sent, of a kind that may be taken by its headers, with something strange about it.
static void inject(struct worlds *w, int side)
{
    static const uint8_t opcodes[] = {ALB_RC_SEND_ONLY,   ALB_RC_WRITE_ONLY,   ALB_RC_ACK,        ALB_RC_WRITE_FIRST,
                                      ALB_RC_SEND_MIDDLE, ALB_RC_WRITE_MIDDLE, ALB_RC_SEND_FIRST, ALB_RC_WRITE_LAST};
    static const uint8_t payload[1100] = {1, 2, 3};
    uint8_t opcode = opcodes[alb_prng_below(&w->prng, ALB_COUNT(opcodes))];
    int32_t psn_offset = alb_prng_below(&w->prng, 3) ? 0 : (int32_t)alb_prng_below(&w->prng, 5) - 2;
    uint32_t kind = (uint32_t)alb_prng_below(&w->prng, 24);
    bool is_middle = opcode == ALB_RC_SEND_MIDDLE || opcode == ALB_RC_WRITE_MIDDLE;
    bool is_whole = opcode == ALB_RC_SEND_ONLY || opcode == ALB_RC_WRITE_ONLY || opcode == ALB_RC_WRITE_LAST;
    uint32_t length = opcode == ALB_RC_ACK     ? kind == 9 ? 4 : 0
                      : kind == 0              ? 1100
                      : is_middle && kind > 15 ? 1004 + kind
                      : !is_whole && kind != 9 ? 1024
                                               : kind % 12;
    for (int i = 0; i < 2; i++) {
        struct pair *pair = w->of[i].pair;
        const struct alb_qp *to = w->of[i].qps[1 - side];
        struct alb_roce roce = {
            .opcode = opcode,
            .pkey = kind == 1   ? 0x7fff
                    : kind == 2 ? 0x1234
                                : 0xffff,
            .dest_qpn = alb_qp_number(to),
            .psn = alb_psn_add(opcode == ALB_RC_ACK ? alb_rc_of(to)->una : alb_rc_of(to)->expected, psn_offset),
            .ackreq = kind % 2,
            .solicited = kind == 3,
            .becn = kind == 4,
            .va = pair_va(pair, 1 - side, 0),
            .rkey = alb_region_key(pair->hosts[1 - side].mr) + (kind == 5),
            .length = opcode == ALB_RC_WRITE_FIRST ? 1024 * (kind % 4) + 1024 * (kind % 3 == 0)
                      : kind == 6                  ? length + 1
                                                   : length,
            .syndrome = kind == 7   ? 0x60
                        : kind == 8 ? 0x2c
                                    : 0x1f,
            .msn = 1,
        };
        pair_inject(pair, side, &roce, payload, length);
    }
}

static void step(struct worlds *w)
{
    int side = (int)alb_prng_below(&w->prng, 2);
    uint64_t what = alb_prng_below(&w->prng, 100);
    if (what < 30)
        ask(w, side);
    else if (what < 55)
        receive(w, side);
    else if (what < 62)
        inject(w, side);
    else if (what < 64)
        for (int i = 0; i < 2; i++)
            pair_pass(w->of[i].pair, 5 * ALB_NS_PER_MS);
    else if (what < 80)
        for (int i = 0; i < 2; i++)
            pair_settle(w->of[i].pair);
    else {
        for (int i = 0; i < 2; i++)
            pair_send(w->of[i].pair, side);
        compare_sent(w, side);
        uint32_t before = (uint32_t)alb_prng_below(&w->prng, 6);
        for (int i = 0; i < 2; i++) {
            for (uint32_t k = 0; k < before && pair_count(w->of[i].pair, side) > 0; k++)
                pair_deliver(w->of[i].pair, side);
            if (what < 90 && pair_count(w->of[i].pair, side) > 0)
                pair_lose(w->of[i].pair, side);
            pair_deliver_all(w->of[i].pair, side);
        }
    }
}

static void usual__comes_to_the_same(void **state)
{
    uint64_t taken = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct worlds w;
        open_worlds(&w, seed);
        for (uint32_t i = 0; i < STEPS; i++) {
            step(&w);
            compare(&w);
        }
        taken += w.of[0].pair->hosts[0].stats.sum.counter[ALB_STAT_rdma_recvs];
        pair_free(w.of[0].pair);
        pair_free(w.of[1].pair);
    }
    assert_true(taken > SEEDS);
}

// A packet that the address of somebody else has sent is not taken.
static void usual__only_from_the_peer(void **state)
{
    struct pair_qps *c = *state;
    assert_int_equal(pair_receive(c->pair, c->qps[1], 1, 0, 64), 0);
    assert_int_equal(pair_receive(c->pair, c->qps[1], 2, 0, 64), 0);
    assert_int_equal(pair_ask(c->pair, c->qps[0], ALB_WR_SEND, 3, ALB_SEND_SIGNALED, 0, 8), 0);
    pair_settle(c->pair);
    pair_expect(c->pair, 1, 1, ALB_WC_SUCCESS);
    assert_int_equal(pair_ask(c->pair, c->qps[0], ALB_WR_SEND, 4, ALB_SEND_SIGNALED, 0, 8), 0);
    pair_send(c->pair, 0);
    pair_peek(c->pair, 0, 0)->datagram.peer.addr.bytes[15]++;
    pair_deliver(c->pair, 0);
    pair_expect_none(c->pair, 1);
    assert_int_equal(c->pair->hosts[1].stats.dropped[ALB_DROP_WRONG_PEER], 1);
}

// Whether the oldest packet that side has sent is taken by its headers. Else it is lost.
static bool is_taken(const struct pair_qps *c, int side)
{
    const struct pair_packet *packet = pair_peek(c->pair, side, 0);
    assert_non_null(packet);
    bool is = alb_rc_rx_usual(c->qps[1 - side], &packet->datagram, c->pair->now);
    pair_lose(c->pair, side);
    return is;
}

// Asks for it, and says whether its one packet is taken.
static bool is_request_taken(const struct pair_qps *c, enum alb_wr_opcode opcode, uint32_t flags, uint32_t length)
{
    assert_int_equal(pair_ask(c->pair, c->qps[0], opcode, 1, ALB_SEND_SIGNALED | flags, 0, length), 0);
    assert_int_equal(pair_send(c->pair, 0), 1);
    return is_taken(c, 0);
}

// After the packet that establishes the connection.
static void establish(const struct pair_qps *c)
{
    assert_int_equal(pair_ask(c->pair, c->qps[0], ALB_WR_RDMA_WRITE, 1, ALB_SEND_SIGNALED, 0, 8), 0);
    pair_settle(c->pair);
    pair_expect(c->pair, 0, 1, ALB_WC_SUCCESS);
}

static void usual__is_taken(void **state)
{
    static const uint32_t lengths[] = {0, 1, 8, 1023, 1024}; // the path MTU is 1024
    const struct pair_qps *c = *state;
    establish(c);
    for (uint32_t i = 0; i < ALB_COUNT(lengths); i++) {
        assert_int_equal(pair_receive(c->pair, c->qps[1], 2, 0, 2048), 0);
        assert_true(is_request_taken(c, ALB_WR_SEND, 0, lengths[i]));
        pair_expect(c->pair, 1, 2, ALB_WC_SUCCESS);
        assert_true(is_request_taken(c, ALB_WR_RDMA_WRITE, 0, lengths[i]));
        assert_memory_equal(c->pair->hosts[1].memory, c->pair->hosts[0].memory, lengths[i]);
        assert_int_equal(pair_send(c->pair, 1), 1);
        assert_true(is_taken(c, 1)); // the acknowledgement of both
        pair_expect(c->pair, 0, 1, ALB_WC_SUCCESS);
        pair_expect(c->pair, 0, 1, ALB_WC_SUCCESS);
    }
}

// The kernel's Soft-RoCE sends no MigReq.
static void usual__is_taken_without_migreq(void **state)
{
    const struct pair_qps *c = *state;
    establish(c);
    assert_int_equal(pair_ask(c->pair, c->qps[0], ALB_WR_RDMA_WRITE, 1, ALB_SEND_SIGNALED, 0, 8), 0);
    assert_int_equal(pair_send(c->pair, 0), 1);
    struct pair_packet *packet = pair_peek(c->pair, 0, 0);
    assert_true(packet->bytes[1] & ALB_BTH_MIGREQ);
    packet->bytes[1] ^= ALB_BTH_MIGREQ;
    assert_true(is_taken(c, 0));
}

// Its packets but the first and the last are, and on their way out those behind the second are made from it.
static void usual__middle_is_taken(void **state)
{
    static const enum alb_wr_opcode opcodes[] = {ALB_WR_SEND, ALB_WR_RDMA_WRITE};
    const struct pair_qps *c = *state;
    establish(c);
    for (uint32_t i = 0; i < ALB_COUNT(opcodes); i++) {
        pair_fill(c->pair);
        assert_int_equal(pair_receive(c->pair, c->qps[1], 2, 0, 16384), 0);
        assert_int_equal(pair_ask(c->pair, c->qps[0], opcodes[i], 1, ALB_SEND_SIGNALED, 0, 16 * 1024 - 8), 0);
        assert_int_equal(pair_send(c->pair, 0), 16);
        for (uint32_t k = 0; k < 16; k++)
            assert_int_equal(pair_peek(c->pair, 0, k)->roce.ackreq, k == 15);
        pair_deliver(c->pair, 0);
        for (uint32_t k = 1; k < 15; k++)
            assert_true(is_taken(c, 0));
        assert_int_equal(alb_rc_of(c->qps[1])->assembly.offset, 15 * 1024);
        pair_settle(c->pair);
        pair_expect(c->pair, 0, 1, ALB_WC_SUCCESS);
        assert_memory_equal(c->pair->hosts[1].memory, c->pair->hosts[0].memory, 16 * 1024 - 8);
    }
    pair_expect(c->pair, 1, 2, ALB_WC_SUCCESS);
}

// The header of a request of one packet as it is written at once (false: it is not), or as it is encoded field by
// field.
static bool write_header(const struct pair_qps *c, const struct alb_send_wqe *wqe, bool is_usual, uint8_t *header)
{
    struct alb_rc *rc = alb_rc_of(c->qps[0]);
    struct alb_tx *tx = &c->pair->hosts[0].tx;
    struct alb_tx_builder builder;
    struct alb_roce roce;
    tx->burst_count = tx->segment_count = tx->iov_count = tx->bytes_count = 0;
    alb_tx_builder_init(&builder, tx);
    memset(tx->bytes, 0xee, HEADER_BYTES);
    if (is_usual && !alb_rc_begin_usual(rc, wqe, &builder, true))
        return false;
    if (!is_usual) {
        alb_segmenter_header(c->qps[0], wqe, rc->opcode_base, 0, &roce);
        roce.psn = rc->next;
        roce.ackreq = true;
        alb_tx_begin(&builder, &c->qps[0]->flow, &roce, wqe->length);
    }
    memcpy(header, tx->bytes, HEADER_BYTES);
    return true;
}

static void usual__is_written_as_any_other(void **state)
{
    static const struct {
        enum alb_wr_opcode opcode;
        uint32_t flags, packets;
        bool is_usual;
    } cases[] = {
        {ALB_WR_SEND, 0, 1, true},
        {ALB_WR_RDMA_WRITE, 0, 1, true},
        {ALB_WR_SEND, ALB_SEND_SOLICITED, 1, false},
        {ALB_WR_SEND_WITH_IMM, 0, 1, false},
        {ALB_WR_RDMA_WRITE_WITH_IMM, 0, 1, false},
        {ALB_WR_SEND, 0, 2, false},
    };
    const struct pair_qps *c = *state;
    establish(c);
    for (uint32_t i = 0; i < ALB_COUNT(cases); i++)
        for (uint32_t length = 0; length < 8; length++) {
            const struct alb_send_wqe wqe = {
                .opcode = (uint8_t)cases[i].opcode,
                .flags = (uint8_t)cases[i].flags,
                .length = length,
                .packets = cases[i].packets,
                .remote_addr = pair_va(c->pair, 1, 16),
                .rkey = alb_region_key(c->pair->hosts[1].mr),
            };
            uint8_t at_once[HEADER_BYTES], by_field[HEADER_BYTES];
            assert_int_equal(write_header(c, &wqe, true, at_once), cases[i].is_usual);
            write_header(c, &wqe, false, by_field);
            if (cases[i].is_usual)
                assert_memory_equal(at_once, by_field, HEADER_BYTES);
        }
}

// A program need not bring a queue pair to RTS that is only written to.
static void usual__is_taken_in_rtr(void **state)
{
    struct pair_qps c = {.pair = pair_new(NULL)};
    for (int side = 0; side < 2; side++)
        c.qps[side] = pair_qp(c.pair, side, ALB_QPT_RC);
    for (int side = 0; side < 2; side++) {
        struct alb_qp_attr attr = pair_attr(c.pair, side, c.qps[1 - side]);
        assert_int_equal(pair_move(c.pair, c.qps[side], side == 0 ? ALB_QPS_RTS : ALB_QPS_RTR, &attr), 0);
    }
    assert_false(is_request_taken(&c, ALB_WR_RDMA_WRITE, 0, 8)); // it establishes the connection
    pair_pass(c.pair, 100 * ALB_NS_PER_MS);
    pair_settle(c.pair);
    assert_true(is_request_taken(&c, ALB_WR_RDMA_WRITE, 0, 8));
    assert_int_equal(alb_qp_state_of(c.qps[1]), ALB_QPS_RTR);
    pair_free(c.pair);
}

static void unusual__middle_of_another_length(void **state)
{
    const struct pair_qps *c = *state;
    uint8_t bytes[ALB_BTH_BYTES + 1028] = {0};
    establish(c);
    assert_int_equal(pair_ask(c->pair, c->qps[0], ALB_WR_RDMA_WRITE, 1, ALB_SEND_SIGNALED, 0, 4096), 0);
    assert_int_equal(pair_send(c->pair, 0), 4);
    pair_deliver(c->pair, 0);
    struct alb_datagram middle = pair_peek(c->pair, 0, 0)->datagram;
    assert_int_equal(middle.length, ALB_BTH_BYTES + 1024);
    memcpy(bytes, middle.bytes, middle.length);
    middle.bytes = bytes;
    for (int longer = -4; longer <= 4; longer += 8) {
        middle.length = (uint32_t)(ALB_BTH_BYTES + 1024 + longer);
        assert_false(alb_rc_rx_usual(c->qps[1], &middle, c->pair->now));
    }
    bytes[1] |= 2 << 4; // so much of it is said to be padding
    middle.length = ALB_BTH_BYTES + 1024;
    assert_false(alb_rc_rx_usual(c->qps[1], &middle, c->pair->now));
    middle.length = ALB_BTH_BYTES + 1026;
    assert_false(alb_rc_rx_usual(c->qps[1], &middle, c->pair->now));
    assert_true(is_taken(c, 0));
}

static void unusual__is_left_alone(void **state)
{
    const struct pair_qps *c = *state;
    establish(c);
    alb_psn expected = alb_rc_of(c->qps[1])->expected;
    assert_false(is_request_taken(c, ALB_WR_SEND, 0, 8)); // there is no receive
    assert_false(is_request_taken(c, ALB_WR_SEND, ALB_SEND_SOLICITED, 8));
    assert_false(is_request_taken(c, ALB_WR_RDMA_WRITE, 0, 8)); // those before it have not come
    assert_false(is_request_taken(c, ALB_WR_RDMA_READ, 0, 8));
    assert_int_equal(alb_rc_of(c->qps[1])->expected, expected);
    pair_expect_none(c->pair, 1);
}

// An acknowledgement may say that an answer was lost.
static void unusual__acknowledges_what_wants_an_answer(void **state)
{
    const struct pair_qps *c = *state;
    establish(c);
    assert_int_equal(pair_ask(c->pair, c->qps[0], ALB_WR_RDMA_READ, 1, ALB_SEND_SIGNALED, 0, 8), 0);
    assert_int_equal(pair_ask(c->pair, c->qps[0], ALB_WR_RDMA_WRITE, 2, ALB_SEND_SIGNALED, 0, 8), 0);
    assert_int_equal(pair_send(c->pair, 0), 2);
    pair_deliver_all(c->pair, 0);
    assert_int_equal(pair_send(c->pair, 1), 2);
    pair_lose(c->pair, 1); // the answer
    assert_false(is_taken(c, 1));
    pair_expect_none(c->pair, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(usual__comes_to_the_same),
        PAIR_RC_TEST(usual__only_from_the_peer),
        PAIR_RC_TEST(usual__is_taken),
        PAIR_RC_TEST(usual__is_taken_without_migreq),
        PAIR_RC_TEST(usual__middle_is_taken),
        PAIR_RC_TEST(usual__is_written_as_any_other),
        cmocka_unit_test(usual__is_taken_in_rtr),
        PAIR_RC_TEST(unusual__middle_of_another_length),
        PAIR_RC_TEST(unusual__is_left_alone),
        PAIR_RC_TEST(unusual__acknowledges_what_wants_an_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
