// SPDX-License-Identifier: BSD-2-Clause
// What is taken in runs is what is taken packet by packet: the same packets, whatever happened to them on the way, come
// to one engine together and to another one by one.
#include "engine/csa_run.h"

#include "engine/tests/packet_batch.h"
#include "engine/tests/reflect_pair.h"

#include <stdlib.h>

enum {
    FRAME = ALB_CSA_OUTER_BYTES,
};

struct both {
    struct csa_pair *c[2];
    int from; // whose packets they are
};

static void begin(struct both *both)
{
    both->from = 0;
    for (int i = 0; i < 2; i++) {
        both->c[i] = csa_pair_new(NULL, NULL);
        csa_pair_greet(both->c[i]);
        assert_int_equal(alb_qp_txn_enable(both->c[i]->qps[0], REFLECT_PAIR_IN_FLIGHT), 0);
    }
}

static void end(struct both *both)
{
    for (int i = 0; i < 2; i++)
        csa_pair_free(both->c[i]);
}

static void arrive(const struct both *both, const struct packet_batch *batches)
{
    packet_batch_arrive(&batches[0], both->c[0]->pair, both->from);
    packet_batch_arrive_apart(&batches[1], both->c[1]->pair, both->from);
}

static void assert_same_stream(const struct alb_stream_in *a, const struct alb_stream_in *b)
{
    assert_int_equal(a->cumulative, b->cumulative);
    assert_int_equal(a->highest, b->highest);
    assert_int_equal(a->end, b->end);
    assert_int_equal(a->placed, b->placed);
    assert_memory_equal(a->own, b->own, sizeof(a->own));
}

static void assert_same(const struct both *both)
{
    int to = !both->from;
    const struct pair_host *a = &both->c[0]->pair->hosts[to], *b = &both->c[1]->pair->hosts[to];
    assert_memory_equal(&a->stats, &b->stats, sizeof(a->stats));
    assert_memory_equal(a->memory, b->memory, PAIR_MEMORY_BYTES);
    const struct alb_assoc_live *live_a = csa_pair_live(both->c[0], to), *live_b = csa_pair_live(both->c[1], to);
    assert_non_null(live_a);
    assert_non_null(live_b);
    assert_int_equal(live_a->paths_in_count, live_b->paths_in_count);
    assert_memory_equal(live_a->paths_in, live_b->paths_in, live_a->paths_in_count * sizeof(*live_a->paths_in));
    assert_same_stream(&both->c[0]->csa[to]->in_requests, &both->c[1]->csa[to]->in_requests);
    assert_same_stream(&both->c[0]->csa[to]->in_responses, &both->c[1]->csa[to]->in_responses);
}

// What the receiver answers is the same; the other side hears it.
static void answer(const struct both *both)
{
    int to = !both->from;
    uint32_t count = pair_send(both->c[0]->pair, to);
    assert_int_equal(pair_send(both->c[1]->pair, to), count);
    for (uint32_t i = 0; i < count; i++)
        csa_pair_assert_same_packet(both->c[0], both->c[1], to, i);
    for (int i = 0; i < 2; i++)
        pair_deliver_all(both->c[i]->pair, to);
}

static void complete(const struct both *both, struct packet_batch *batches)
{
    arrive(both, batches);
    assert_same(both);
    answer(both);
    for (int i = 0; i < 2; i++)
        csa_pair_expect(both->c[i], 0, 1, ALB_WC_SUCCESS);
}

// Twelve segments of side 0's request, or of the answer to it.
static void collect_twelve(struct both *both, enum alb_wr_opcode opcode, struct packet_batch *batch)
{
    struct csa_pair *c = both->c[0];
    both->from = opcode == ALB_WR_RDMA_READ;
    pair_receive(c->pair, c->qps[1], 9, 64, 40 * CSA_PAIR_SEGMENT);
    csa_pair_ask(c, opcode, 1, ALB_SEND_SIGNALED, 12 * CSA_PAIR_SEGMENT);
    if (both->from == 1) {
        pair_send(c->pair, 0);
        pair_deliver_all(c->pair, 0);
    }
    pair_send(c->pair, both->from);
    packet_batch_collect(batch, c->pair, both->from);
    assert_int_equal(batch->count, 12);
}

static void csa_run_in__takes_the_middle(void **state)
{
    static const enum alb_wr_opcode opcodes[] = {ALB_WR_RDMA_WRITE, ALB_WR_SEND, ALB_WR_RDMA_READ};
    struct packet_batch *batch = calloc(1, sizeof(*batch));
    for (uint32_t i = 0; i < ALB_COUNT(opcodes); i++) {
        struct both both;
        begin(&both);
        collect_twelve(&both, opcodes[i], batch);
        struct alb_engine *engine = both.c[0]->engines[!both.from];
        alb_time now = both.c[0]->pair->now;
        alb_engine_rx(engine, &batch->datagrams[0], 1, now);
        assert_int_equal(alb_csa_run_in(engine, batch->datagrams, 12, now), 10); // all but the first and the last
        assert_int_equal(alb_csa_run_in(engine, batch->datagrams + 10, 2, now), 0);
        end(&both);
    }
    free(batch);
}

static void csa_run_in__a_message(void **state)
{
    struct both both;
    struct packet_batch *batches = calloc(2, sizeof(*batches));
    begin(&both);
    for (int i = 0; i < 2; i++) {
        csa_pair_ask(both.c[i], ALB_WR_RDMA_WRITE, 1, ALB_SEND_SIGNALED, 40 * CSA_PAIR_SEGMENT + 4);
        pair_send(both.c[i]->pair, 0);
        packet_batch_collect(&batches[i], both.c[i]->pair, both.from);
    }
    assert_int_equal(batches[0].count, 41);
    complete(&both, batches);
    free(batches);
    end(&both);
}

static void csa_run_in__an_answer(void **state)
{
    static const uint32_t lengths[] = {9 * CSA_PAIR_ANSWER_SEGMENT + 5, 30 * CSA_PAIR_ANSWER_SEGMENT};
    struct both both;
    struct packet_batch *batches = calloc(2, sizeof(*batches));
    begin(&both);
    both.from = 1;
    for (int i = 0; i < 2; i++) {
        csa_pair_ask_in_entries(both.c[i], ALB_WR_RDMA_READ, 1, ALB_SEND_SIGNALED, lengths, ALB_COUNT(lengths));
        pair_send(both.c[i]->pair, 0);
        pair_deliver_all(both.c[i]->pair, 0);
        pair_send(both.c[i]->pair, 1);
        packet_batch_collect(&batches[i], both.c[i]->pair, both.from);
    }
    assert_int_equal(batches[0].count, 40);
    complete(&both, batches);
    free(batches);
    end(&both);
}

// One of several parts.
static void propose(struct csa_pair *c, bool is_in_place, const uint32_t *lengths, uint32_t parts)
{
    struct reflect_made made;
    reflect_pair_make(c, &made, 1, 0, lengths[0]);
    for (uint32_t i = 1; i < parts; i++)
        reflect_pair_add(c, &made, i * CSA_PAIR_ENTRY_BYTES_MAX, lengths[i]);
    made.wr.in_place = is_in_place;
    reflect_pair_post(c, &made);
}

static void csa_run_in__a_transaction(void **state)
{
    static const uint32_t lengths[] = {20 * CSA_PAIR_SEGMENT, 10 * CSA_PAIR_SEGMENT + 4};
    struct packet_batch *batches = calloc(2, sizeof(*batches));
    for (int in_place = 0; in_place < 2; in_place++) {
        struct both both;
        begin(&both);
        for (int i = 0; i < 2; i++) {
            propose(both.c[i], in_place, lengths, ALB_COUNT(lengths));
            pair_send(both.c[i]->pair, 0);
            packet_batch_collect(&batches[i], both.c[i]->pair, both.from);
        }
        assert_true(batches[0].count > 30);
        arrive(&both, batches);
        assert_same(&both);
        answer(&both); // REFLECTED
        for (int i = 0; i < 2; i++) {
            pair_settle(both.c[i]->pair);
            csa_pair_expect(both.c[i], 0, 1, ALB_WC_SUCCESS);
            assert_true(reflect_pair_is_exposed(both.c[i], 0, lengths[0]));
        }
        end(&both);
    }
    free(batches);
}

// A request whose packets, or the answer's, are collected.
static void ask(const struct both *both, enum alb_wr_opcode opcode, bool is_in_place, uint32_t length, uint32_t entries)
{
    uint32_t lengths[4];
    for (uint32_t i = 0; i < entries; i++)
        lengths[i] = length * (i + 1) / entries - length * i / entries;
    for (int i = 0; i < 2; i++) {
        struct csa_pair *c = both->c[i];
        if (alb_qp_current_state(c->qps[0]) == ALB_QPS_ERR)
            continue;
        if (opcode == ALB_WR_SEND)
            pair_receive(c->pair, c->qps[1], 9, 64, 40 * CSA_PAIR_SEGMENT);
        if (opcode == ALB_WR_TXN_WRITE)
            propose(c, is_in_place, lengths, entries);
        else
            csa_pair_ask_in_entries(c, opcode, 1, ALB_SEND_SIGNALED, lengths, entries);
        if (opcode == ALB_WR_RDMA_READ) {
            pair_send(c->pair, 0);
            pair_deliver_all(c->pair, 0);
        }
    }
}

static void ask_for_something(const struct both *both, struct alb_prng *prng)
{
    uint32_t length = 1 + alb_prng_below(prng, 30 * CSA_PAIR_SEGMENT), entries = 1 + alb_prng_below(prng, 3);
    static const enum alb_wr_opcode requests[] = {ALB_WR_TXN_WRITE, ALB_WR_RDMA_WRITE, ALB_WR_SEND};
    enum alb_wr_opcode request = requests[alb_prng_below(prng, ALB_COUNT(requests))];
    ask(both, both->from ? ALB_WR_RDMA_READ : request, alb_prng_below(prng, 2), length, entries);
}

// A few things happen to each batch; whatever they are, both engines end alike, and so does a queue pair that fails.
static void try_spoilt(uint64_t seed, struct packet_batch *batches)
{
    struct alb_prng prng;
    struct both both;
    alb_prng_init(&prng, seed);
    begin(&both);
    for (uint32_t round = 0; round < 4; round++) {
        uint32_t troubles = alb_prng_below(&prng, 3);
        both.from = (int)alb_prng_below(&prng, 2);
        ask_for_something(&both, &prng);
        for (int i = 0; i < 2; i++) {
            pair_send(both.c[i]->pair, both.from);
            packet_batch_collect(&batches[i], both.c[i]->pair, both.from);
        }
        if (batches[0].count == 0) // the queue pair has failed
            break;
        for (uint32_t k = 0; k < troubles && batches[0].count > 0; k++) {
            for (int i = 0; i < 2; i++)
                packet_batch_spoil(&batches[i], prng, FRAME + 20, FRAME + 7);
            alb_prng_u64(&prng);
        }
        arrive(&both, batches);
        assert_same(&both);
        answer(&both);
        for (int i = 0; i < 2; i++)
            pair_pass(both.c[i]->pair, 300 * ALB_NS_PER_US);
    }
    end(&both);
}

static void csa_run_in__whatever_comes(void **state)
{
    struct packet_batch *batches = calloc(2, sizeof(*batches));
    for (uint64_t seed = 1; seed <= 300; seed++)
        try_spoilt(seed, batches);
    free(batches);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(csa_run_in__takes_the_middle), cmocka_unit_test(csa_run_in__a_message),
        cmocka_unit_test(csa_run_in__a_transaction),    cmocka_unit_test(csa_run_in__an_answer),
        cmocka_unit_test(csa_run_in__whatever_comes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
