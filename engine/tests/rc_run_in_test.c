// SPDX-License-Identifier: BSD-2-Clause
// What is taken in runs is what is taken packet by packet: the same packets, whatever happened to them on the way, come
// to one engine together and to another one by one.
#include "engine/rc.h"

#include "engine/tests/packet_batch.h"
#include "engine/tests/pair_expect.h"
#include "wire/bytes.h"

#include <stdlib.h>

enum {
    MTU = 1024,
    RECEIVE_BYTES = 60 * MTU,
    HEADERS = ALB_BTH_BYTES + 4,
    SEEDS = 400,
};

struct both {
    struct pair_qps of[2];
    struct packet_batch batches[2];
    int from; // whose packets they are
};

static struct both *begin(void)
{
    struct both *both = calloc(1, sizeof(*both));
    for (int i = 0; i < 2; i++) {
        struct pair_qps *c = &both->of[i];
        c->pair = pair_new(NULL);
        pair_connect(c->pair, ALB_QPT_RC, c->qps, NULL);
        pair_fill(c->pair);
        assert_int_equal(pair_ask(c->pair, c->qps[0], ALB_WR_RDMA_WRITE, 7, ALB_SEND_SIGNALED, 0, 8), 0);
        pair_settle(c->pair);
        pair_expect(c->pair, 0, 7, ALB_WC_SUCCESS);
    }
    return both;
}

static void end(struct both *both)
{
    for (int i = 0; i < 2; i++)
        pair_free(both->of[i].pair);
    free(both);
}

// Entries of so many bytes, one behind the other with a gap between them.
static uint32_t lay_out(const struct pair *pair, int side, struct alb_sge *sge, uint32_t length, uint32_t entries)
{
    uint32_t at = 0;
    for (uint32_t i = 0; i < entries; i++) {
        uint32_t part = length / entries + (i < length % entries);
        sge[i] = pair_sge(pair, side, at, part);
        at += part + 5;
    }
    return entries;
}

// Side 0 asks for it; its packets, or those of the answer, wait in the batches.
static void ask(struct both *both, enum alb_wr_opcode opcode, uint32_t length, uint32_t entries)
{
    both->from = opcode == ALB_WR_RDMA_READ;
    for (int i = 0; i < 2; i++) {
        const struct pair_qps *c = &both->of[i];
        struct alb_sge sge[4];
        const struct alb_send_wr wr = {
            .wr_id = 1,
            .opcode = opcode,
            .flags = ALB_SEND_SIGNALED,
            .sge = sge,
            .sge_count = lay_out(c->pair, 0, sge, length, entries),
            .remote_addr = pair_va(c->pair, 1, 16),
            .rkey = alb_region_key(c->pair->hosts[1].mr),
        };
        assert_int_equal(pair_post(c->pair, c->qps[0], &wr), 0);
        pair_send(c->pair, 0);
        if (both->from == 1) {
            pair_deliver_all(c->pair, 0);
            pair_send(c->pair, 1);
        }
        packet_batch_collect(&both->batches[i], c->pair, both->from);
    }
    assert_int_equal(both->batches[0].count, both->batches[1].count);
}

static void receive(struct both *both, uint32_t length, uint32_t entries)
{
    for (int i = 0; i < 2; i++) {
        const struct pair_qps *c = &both->of[i];
        struct alb_sge sge[4];
        bool bell;
        uint32_t count = lay_out(c->pair, 1, sge, length, entries);
        assert_int_equal(alb_qp_recv_post(c->qps[1], 2, sge, count, &bell), 0);
        if (bell)
            alb_engine_bell_ring(c->qps[1]);
    }
}

static void arrive(struct both *both)
{
    packet_batch_arrive(&both->batches[0], both->of[0].pair, both->from);
    packet_batch_arrive_apart(&both->batches[1], both->of[1].pair, both->from);
}

static void assert_same_completions(const struct both *both, int side)
{
    struct alb_wc a, b;
    bool has_a, has_b;
    do {
        has_a = pair_poll(both->of[0].pair, side, &a);
        has_b = pair_poll(both->of[1].pair, side, &b);
        assert_int_equal(has_a, has_b);
        if (has_a) {
            assert_int_equal(a.wr_id, b.wr_id);
            assert_int_equal(a.status, b.status);
            assert_int_equal(a.byte_len, b.byte_len);
        }
    } while (has_a);
}

static void assert_same(const struct both *both)
{
    for (int side = 0; side < 2; side++) {
        const struct pair_host *a = &both->of[0].pair->hosts[side], *b = &both->of[1].pair->hosts[side];
        const struct alb_rc *rc_a = alb_rc_of(both->of[0].qps[side]), *rc_b = alb_rc_of(both->of[1].qps[side]);
        assert_memory_equal(&a->stats, &b->stats, sizeof(a->stats));
        assert_memory_equal(a->memory, b->memory, PAIR_MEMORY_BYTES);
        assert_int_equal(alb_qp_state_of(both->of[0].qps[side]), alb_qp_state_of(both->of[1].qps[side]));
        assert_int_equal(rc_a->expected, rc_b->expected);
        assert_int_equal(rc_a->una, rc_b->una);
        assert_int_equal(rc_a->inflight_bytes, rc_b->inflight_bytes);
        assert_int_equal(rc_a->assembly.offset, rc_b->assembly.offset);
        assert_same_completions(both, side);
    }
}

// What side sends next is the same, and reaches the other side.
static void answer(const struct both *both, int side)
{
    struct pair *a = both->of[0].pair, *b = both->of[1].pair;
    uint32_t count = pair_send(a, side);
    assert_int_equal(pair_send(b, side), count);
    for (uint32_t i = 0; i < pair_count(a, side); i++) {
        const struct pair_packet *one = pair_peek(a, side, i), *other = pair_peek(b, side, i);
        assert_int_equal(one->roce.opcode, other->roce.opcode);
        assert_int_equal(one->roce.psn, other->roce.psn);
        assert_int_equal(one->roce.syndrome, other->roce.syndrome);
        assert_int_equal(one->roce.ackreq, other->roce.ackreq);
    }
    pair_deliver_all(a, side);
    pair_deliver_all(b, side);
}

// So many of the batch's packets are taken as a run behind the one at index.
static uint32_t run_behind(const struct both *both, uint32_t index)
{
    const struct pair_qps *c = &both->of[0];
    const struct packet_batch *batch = &both->batches[0];
    struct alb_engine *engine = c->pair->hosts[!both->from].engine;
    for (uint32_t i = 0; i <= index; i++)
        alb_engine_rx(engine, &batch->datagrams[i], 1, c->pair->now);
    return alb_rc_run_in(engine, &batch->datagrams[index], batch->count - index, c->pair->now);
}

static void rc_run_in__takes_the_middle(void **state)
{
    static const enum alb_wr_opcode opcodes[] = {ALB_WR_RDMA_WRITE, ALB_WR_SEND, ALB_WR_RDMA_READ};
    for (uint32_t i = 0; i < ALB_COUNT(opcodes); i++) {
        struct both *both = begin();
        receive(both, RECEIVE_BYTES, 1);
        ask(both, opcodes[i], 12 * MTU, 1);
        assert_int_equal(both->batches[0].count, 12);
        assert_int_equal(run_behind(both, 0), 0); // behind the first packet of a message the general way goes on
        end(both);
        both = begin();
        receive(both, RECEIVE_BYTES, 1);
        ask(both, opcodes[i], 12 * MTU, 1);
        assert_int_equal(run_behind(both, 1), 9); // all but the last
        end(both);
    }
}

static void rc_run_in__a_whole_message(void **state)
{
    static const enum alb_wr_opcode opcodes[] = {ALB_WR_RDMA_WRITE, ALB_WR_SEND, ALB_WR_RDMA_READ};
    for (uint32_t i = 0; i < ALB_COUNT(opcodes); i++) {
        struct both *both = begin();
        receive(both, RECEIVE_BYTES, 1);
        ask(both, opcodes[i], 40 * MTU + 4, 1);
        arrive(both);
        assert_same(both);
        answer(both, !both->from);
        assert_same(both);
        assert_memory_equal(both->of[0].pair->hosts[1].memory + 16, both->of[0].pair->hosts[0].memory,
                            opcodes[i] == ALB_WR_SEND ? 0 : 40 * MTU);
        end(both);
    }
}

// Packets that pretend to be of the middle, made from the one at index: so many behind those that there are up to it.
static void pretend(struct both *both, uint32_t index, uint32_t more)
{
    for (int i = 0; i < 2; i++) {
        struct packet_batch *batch = &both->batches[i];
        uint32_t psn = alb_get_be24(batch->bytes[index] + 9);
        for (uint32_t k = 1; k <= more; k++) {
            uint8_t *bytes = batch->bytes[index + k];
            memcpy(bytes, batch->bytes[index], batch->datagrams[index].length);
            alb_put_be24(bytes + 9, alb_psn_add(psn, (int32_t)k));
            batch->datagrams[index + k] = batch->datagrams[index];
            batch->datagrams[index + k].bytes = bytes;
        }
        batch->count = index + 1 + more;
    }
}

static void rc_run_in__no_more_than_was_said_or_asked_for(void **state)
{
    static const enum alb_wr_opcode opcodes[] = {ALB_WR_RDMA_WRITE, ALB_WR_SEND, ALB_WR_RDMA_READ};
    for (uint32_t i = 0; i < 2 * ALB_COUNT(opcodes); i++) {
        struct both *both = begin();
        receive(both, (i % 2 ? 20 : 6) * MTU, 1);
        ask(both, opcodes[i / 2], 12 * MTU, 1);
        pretend(both, 5, 30);
        arrive(both);
        assert_same(both);
        answer(both, !both->from);
        assert_same(both);
        end(both);
    }
}

// A READ is asked for in pieces; the last packet of a piece is not of the middle.
static void rc_run_in__no_answer_before_it_is_asked_for(void **state)
{
    struct both *both = begin();
    ask(both, ALB_WR_RDMA_READ, 200 * MTU, 1);
    uint32_t asked = both->batches[0].count;
    assert_true(asked < PACKET_BATCH_MAX - 8);
    pretend(both, 5, asked - 6 + 8);
    arrive(both);
    assert_same(both);
    assert_int_equal(both->of[0].pair->hosts[0].stats.dropped[ALB_DROP_STALE_RESPONSE], 8);
    end(both);
}

// The short end of one answer is said to be of its middle, and so is what should begin the next one.
static void rc_run_in__no_short_packet(void **state)
{
    struct both *both = begin();
    for (int i = 0; i < 2; i++)
        assert_int_equal(pair_ask(both->of[i].pair, both->of[i].qps[0], ALB_WR_RDMA_READ, 3, 0, 0, 11 * MTU + 4), 0);
    ask(both, ALB_WR_RDMA_READ, 12 * MTU, 1);
    pretend(both, 5, 12);
    for (int i = 0; i < 2; i++)
        for (uint32_t k = 11; k < 18; k++)
            both->batches[i].datagrams[k].length = ALB_BTH_BYTES + 4;
    arrive(both);
    assert_same(both);
    assert_int_equal(both->of[0].pair->hosts[0].stats.dropped[ALB_DROP_BAD_RESPONSE], 6);
    end(both);
}

// The padded end of one answer, as long as a full packet, is said to be of its middle, and so is what should begin the
// next one.
static void rc_run_in__no_padded_packet(void **state)
{
    struct both *both = begin();
    for (int i = 0; i < 2; i++)
        assert_int_equal(pair_ask(both->of[i].pair, both->of[i].qps[0], ALB_WR_RDMA_READ, 3, 0, 0, 8 * MTU - 3), 0);
    ask(both, ALB_WR_RDMA_READ, 12 * MTU, 1);
    pretend(both, 5, 10);
    for (int i = 0; i < 2; i++)
        for (uint32_t k = 7; k < 16; k++)
            both->batches[i].bytes[k][1] |= 3 << 4;
    arrive(both);
    assert_same(both);
    assert_int_equal(both->of[0].pair->hosts[0].stats.dropped[ALB_DROP_BAD_RESPONSE], 8);
    end(both);
}

// What is too short for a header is not read as one.
static void rc_run_in__no_byte_beyond_a_packet(void **state)
{
    struct both *both = begin();
    uint8_t *byte = calloc(1, 1);
    ask(both, ALB_WR_RDMA_WRITE, 12 * MTU, 1);
    for (int i = 0; i < 2; i++) {
        both->batches[i].datagrams[4].bytes = byte;
        both->batches[i].datagrams[4].length = 1;
    }
    arrive(both);
    assert_same(both);
    assert_int_equal(both->of[0].pair->hosts[1].stats.dropped[ALB_DROP_TRUNCATED], 1);
    free(byte);
    end(both);
}

static void rc_run_in__marks_are_counted(void **state)
{
    struct both *both = begin();
    ask(both, ALB_WR_RDMA_WRITE, 12 * MTU, 1);
    for (uint32_t i = 0; i < 24; i++)
        both->batches[i % 2].datagrams[i / 2].traffic_class = ALB_ECN_CE;
    arrive(both);
    assert_same(both);
    end(both);
}

static void take_rights(struct pair *pair, int side)
{
    assert_int_equal(alb_mr_change(pair->hosts[side].mr, NULL, NULL, 0, 0, 0), 0);
}

static void take_queue_pair(struct pair *pair, struct alb_qp *qp)
{
    const struct alb_qp_attr attr = {.state = ALB_QPS_ERR};
    assert_int_equal(alb_qp_modify(qp, &attr, ALB_QP_STATE, pair->now), 0);
}

// In the middle of a message its memory may no longer be written, or its queue pair is in error.
static void rc_run_in__nothing_without_rights(void **state)
{
    static const enum alb_wr_opcode opcodes[] = {ALB_WR_RDMA_WRITE, ALB_WR_SEND, ALB_WR_RDMA_READ};
    for (uint32_t i = 0; i < 2 * ALB_COUNT(opcodes); i++) {
        struct both *both = begin();
        const struct pair_qps *c = &both->of[0];
        receive(both, RECEIVE_BYTES, 1);
        ask(both, opcodes[i / 2], 12 * MTU, 1);
        int to = !both->from;
        struct alb_engine *engine = c->pair->hosts[to].engine;
        for (uint32_t k = 0; k < 3; k++)
            alb_engine_rx(engine, &both->batches[0].datagrams[k], 1, c->pair->now);
        if (i % 2)
            take_rights(c->pair, to);
        else
            take_queue_pair(c->pair, c->qps[to]);
        assert_int_equal(alb_rc_run_in(engine, &both->batches[0].datagrams[2], 10, c->pair->now), 0);
        end(both);
    }
}

static void ask_for_something(struct both *both, struct alb_prng *prng)
{
    static const enum alb_wr_opcode opcodes[] = {ALB_WR_RDMA_WRITE, ALB_WR_SEND, ALB_WR_RDMA_READ};
    uint32_t length = 1 + (uint32_t)alb_prng_below(prng, 50 * MTU), entries = 1 + (uint32_t)alb_prng_below(prng, 3);
    enum alb_wr_opcode opcode = opcodes[alb_prng_below(prng, ALB_COUNT(opcodes))];
    bool is_short = alb_prng_below(prng, 8) == 0;
    if (opcode == ALB_WR_SEND && alb_prng_below(prng, 8))
        receive(both, is_short ? length / 2 : RECEIVE_BYTES, entries);
    ask(both, opcode, length, 1 + (uint32_t)alb_prng_below(prng, 3));
}

static bool is_alive(const struct both *both)
{
    return alb_qp_state_of(both->of[0].qps[0]) == ALB_QPS_RTS && alb_qp_state_of(both->of[0].qps[1]) == ALB_QPS_RTS;
}

// A few things happen to each batch; whatever they are, both engines end alike, and so does a queue pair that fails.
static void try_spoilt(uint64_t seed)
{
    struct alb_prng prng;
    struct both *both = begin();
    alb_prng_init(&prng, seed);
    for (uint32_t round = 0; round < 4 && is_alive(both); round++) {
        uint32_t troubles = (uint32_t)alb_prng_below(&prng, 3);
        ask_for_something(both, &prng);
        for (uint32_t k = 0; k < troubles && both->batches[0].count > 0; k++) {
            for (int i = 0; i < 2; i++)
                packet_batch_spoil(&both->batches[i], prng, HEADERS, 1);
            alb_prng_u64(&prng);
        }
        if (alb_prng_below(&prng, 20) == 0)
            for (int i = 0; i < 2; i++)
                take_rights(both->of[i].pair, !both->from);
        arrive(both);
        assert_same(both);
        for (uint32_t k = 0; k < 6; k++) {
            for (int side = 0; side < 2; side++)
                answer(both, side);
            assert_same(both);
            for (int i = 0; i < 2; i++)
                pair_pass(both->of[i].pair, 5 * ALB_NS_PER_MS);
        }
        assert_same(both);
    }
    end(both);
}

static void rc_run_in__whatever_comes(void **state)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++)
        try_spoilt(seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rc_run_in__takes_the_middle),
        cmocka_unit_test(rc_run_in__a_whole_message),
        cmocka_unit_test(rc_run_in__no_more_than_was_said_or_asked_for),
        cmocka_unit_test(rc_run_in__no_answer_before_it_is_asked_for),
        cmocka_unit_test(rc_run_in__no_short_packet),
        cmocka_unit_test(rc_run_in__no_padded_packet),
        cmocka_unit_test(rc_run_in__no_byte_beyond_a_packet),
        cmocka_unit_test(rc_run_in__marks_are_counted),
        cmocka_unit_test(rc_run_in__nothing_without_rights),
        cmocka_unit_test(rc_run_in__whatever_comes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
