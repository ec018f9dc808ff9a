// SPDX-License-Identifier: BSD-2-Clause
#include "engine/assembly.h"

#include "engine/tests/pair.h"

#include "base/tests/test.h"

#include <stdlib.h>

enum {
    MTU = 1024,
};

struct context {
    struct pair *pair;
    struct alb_qp *qp;
    struct alb_assembly assembly;
    uint8_t payload[MTU * 2];
};

static int setup(void **state)
{
    struct context *c = calloc(1, sizeof(*c));
    struct alb_qp *qps[2];
    c->pair = pair_new(NULL);
    pair_connect(c->pair, ALB_QPT_RC, qps, NULL);
    c->qp = qps[0];
    for (uint32_t i = 0; i < sizeof(c->payload); i++)
        c->payload[i] = (uint8_t)(i * 7 + 1);
    *state = c;
    return 0;
}

static int teardown(void **state)
{
    struct context *c = *state;
    pair_free(c->pair);
    free(c);
    return 0;
}

// What a packet says beside its opcode and payload: a WRITE of length bytes to offset of the memory.
static struct alb_roce to(struct context *c, uint8_t opcode, uint32_t offset, uint32_t length)
{
    return (struct alb_roce){
        .opcode = opcode,
        .va = pair_va(c->pair, 0, offset),
        .rkey = alb_region_key(c->pair->hosts[0].mr),
        .length = length,
    };
}

static enum alb_outcome add_roce(struct context *c, const struct alb_roce *roce, uint32_t payload_bytes)
{
    struct alb_datagram datagram = {0};
    struct alb_packet packet = {
        .datagram = &datagram,
        .info = alb_opcode_info(roce->opcode),
        .roce = *roce,
        .payload = c->payload,
        .payload_bytes = payload_bytes,
    };
    return alb_assembly_add(c->qp, &c->assembly, &packet, c->pair->now);
}

static enum alb_outcome add(struct context *c, uint8_t opcode, uint32_t payload_bytes)
{
    struct alb_roce roce = to(c, opcode, 0, 0);
    return add_roce(c, &roce, payload_bytes);
}

static void receive(struct context *c, uint64_t wr_id, uint32_t length)
{
    assert_int_equal(pair_receive(c->pair, c->qp, wr_id, 0, length), 0);
}

static void alb_assembly_add__send_in_three_packets(void **state)
{
    struct context *c = *state;
    struct alb_wc wc;
    receive(c, 1, 3 * MTU);
    assert_int_equal(add(c, ALB_RC_SEND_FIRST, MTU), ALB_OUTCOME_OK);
    assert_int_equal(add(c, ALB_RC_SEND_MIDDLE, MTU), ALB_OUTCOME_OK);
    assert_false(pair_poll(c->pair, 0, &wc));
    assert_int_equal(add(c, ALB_RC_SEND_LAST, 5), ALB_OUTCOME_OK);
    assert_true(pair_poll(c->pair, 0, &wc));
    assert_int_equal(wc.byte_len, 2 * MTU + 5);
    assert_memory_equal(c->pair->hosts[0].memory, c->payload, MTU);
    assert_memory_equal(c->pair->hosts[0].memory + MTU, c->payload, MTU);
    assert_memory_equal(c->pair->hosts[0].memory + 2 * MTU, c->payload, 5);
    assert_int_equal(c->pair->hosts[0].memory[2 * MTU + 5], 0);
}

static void alb_assembly_add__send_of_nothing(void **state)
{
    struct context *c = *state;
    struct alb_wc wc;
    receive(c, 1, 0);
    assert_int_equal(add(c, ALB_RC_SEND_ONLY, 0), ALB_OUTCOME_OK);
    assert_true(pair_poll(c->pair, 0, &wc));
    assert_int_equal(wc.byte_len, 0);
}

// Every opcode of SEND and WRITE, while no message, a SEND or a WRITE is in progress: which may come (9.7.4.1.1 to .3).
static void alb_assembly_add__every_opcode_in_every_place(void **state)
{
    enum {
        NOTHING,
        SEND,
        WRITE,
        PLACES,
    };
    static const struct {
        uint8_t opcode;
        bool fits[PLACES];
    } rows[] = {
        {ALB_RC_SEND_FIRST, {true, false, false}},  {ALB_RC_SEND_MIDDLE, {false, true, false}},
        {ALB_RC_SEND_LAST, {false, true, false}},   {ALB_RC_SEND_LAST_IMM, {false, true, false}},
        {ALB_RC_SEND_ONLY, {true, false, false}},   {ALB_RC_SEND_ONLY_IMM, {true, false, false}},
        {ALB_RC_WRITE_FIRST, {true, false, false}}, {ALB_RC_WRITE_MIDDLE, {false, false, true}},
        {ALB_RC_WRITE_LAST, {false, false, true}},  {ALB_RC_WRITE_LAST_IMM, {false, false, true}},
        {ALB_RC_WRITE_ONLY, {true, false, false}},  {ALB_RC_WRITE_ONLY_IMM, {true, false, false}},
    };
    struct context *c = *state;
    for (size_t i = 0; i < ALB_COUNT(rows); i++)
        for (int place = 0; place < PLACES; place++) {
            struct alb_wc wc;
            receive(c, 1, 4 * MTU);
            receive(c, 2, 4 * MTU);
            alb_assembly_abandon(&c->assembly);
            c->qp->recv_is_taken = false;
            struct alb_roce begin = to(c, place == SEND ? ALB_RC_SEND_FIRST : ALB_RC_WRITE_FIRST, 0, 2 * MTU);
            if (place != NOTHING)
                assert_int_equal(add_roce(c, &begin, MTU), ALB_OUTCOME_OK);
            uint32_t flags = alb_opcode_info(rows[i].opcode)->flags;
            bool is_middle = !(flags & ALB_OPCODE_FIRST) && !(flags & ALB_OPCODE_LAST);
            if (place == WRITE && is_middle) // has room for one more
                c->assembly.target.length = 3 * MTU;
            struct alb_roce roce = to(c, rows[i].opcode, 0, (flags & ALB_OPCODE_LAST) ? MTU : 2 * MTU);
            assert_int_equal(add_roce(c, &roce, MTU),
                             rows[i].fits[place] ? ALB_OUTCOME_OK : ALB_OUTCOME_INVALID_REQUEST);
            while (pair_poll(c->pair, 0, &wc))
                ;
            alb_recv_queue_clear(&c->qp->rq);
        }
}

// First and Middle are full, a Last carries something, nothing is longer than the path MTU (9.7.4.1.7 and .8).
static void alb_assembly_add__lengths(void **state)
{
    struct context *c = *state;
    receive(c, 1, 4 * MTU);
    assert_int_equal(add(c, ALB_RC_SEND_FIRST, MTU - 1), ALB_OUTCOME_INVALID_REQUEST);
    assert_int_equal(add(c, ALB_RC_SEND_FIRST, MTU + 4), ALB_OUTCOME_INVALID_REQUEST);
    assert_int_equal(add(c, ALB_RC_SEND_ONLY, MTU + 1), ALB_OUTCOME_INVALID_REQUEST);
    assert_int_equal(add(c, ALB_RC_SEND_FIRST, MTU), ALB_OUTCOME_OK);
    assert_int_equal(add(c, ALB_RC_SEND_MIDDLE, MTU - 1), ALB_OUTCOME_INVALID_REQUEST);
    assert_int_equal(add(c, ALB_RC_SEND_LAST, 0), ALB_OUTCOME_INVALID_REQUEST);
    assert_int_equal(add(c, ALB_RC_SEND_LAST, MTU + 1), ALB_OUTCOME_INVALID_REQUEST);
    assert_int_equal(add(c, ALB_RC_SEND_LAST, MTU), ALB_OUTCOME_OK);
}

// A WRITE brings what its first packet has announced, no more and no less.
static void alb_assembly_add__write_length_is_kept(void **state)
{
    struct context *c = *state;
    struct alb_roce first = to(c, ALB_RC_WRITE_FIRST, 0, MTU + 10);
    assert_int_equal(add_roce(c, &first, MTU), ALB_OUTCOME_OK);
    assert_int_equal(add(c, ALB_RC_WRITE_LAST, 11), ALB_OUTCOME_INVALID_REQUEST);
    assert_int_equal(add(c, ALB_RC_WRITE_LAST, 9), ALB_OUTCOME_INVALID_REQUEST);
    assert_int_equal(add(c, ALB_RC_WRITE_MIDDLE, MTU), ALB_OUTCOME_INVALID_REQUEST);
    assert_int_equal(add(c, ALB_RC_WRITE_LAST, 10), ALB_OUTCOME_OK);
    struct alb_roce only = to(c, ALB_RC_WRITE_ONLY, 0, 8);
    assert_int_equal(add_roce(c, &only, 7), ALB_OUTCOME_INVALID_REQUEST);
    assert_int_equal(add_roce(c, &only, 8), ALB_OUTCOME_OK);
    first = to(c, ALB_RC_WRITE_FIRST, 0, MTU); // would have been an Only
    assert_int_equal(add_roce(c, &first, MTU), ALB_OUTCOME_INVALID_REQUEST);
}

static void alb_assembly_add__write_is_checked_before_a_byte_is_placed(void **state)
{
    struct context *c = *state;
    struct alb_roce first = to(c, ALB_RC_WRITE_FIRST, PAIR_MEMORY_BYTES - MTU - 9, MTU + 10);
    assert_int_equal(add_roce(c, &first, MTU), ALB_OUTCOME_ACCESS);
    first.rkey++;
    assert_int_equal(add_roce(c, &first, MTU), ALB_OUTCOME_ACCESS);
    first = to(c, ALB_RC_WRITE_FIRST, 0, ALB_MAX_MESSAGE + 1);
    assert_int_equal(add_roce(c, &first, MTU), ALB_OUTCOME_INVALID_REQUEST);
    for (uint32_t i = 0; i < PAIR_MEMORY_BYTES; i++)
        assert_int_equal(c->pair->hosts[0].memory[i], 0);
}

static void alb_assembly_add__write_of_nothing_needs_no_key(void **state)
{
    struct context *c = *state;
    struct alb_roce only = {.opcode = ALB_RC_WRITE_ONLY, .va = 1, .rkey = 0xffffffff};
    assert_int_equal(add_roce(c, &only, 0), ALB_OUTCOME_OK);
}

static void alb_assembly_add__plain_write_takes_no_receive(void **state)
{
    struct context *c = *state;
    struct alb_wc wc;
    receive(c, 1, 16);
    struct alb_roce only = to(c, ALB_RC_WRITE_ONLY, 64, 100);
    assert_int_equal(add_roce(c, &only, 100), ALB_OUTCOME_OK);
    assert_memory_equal(c->pair->hosts[0].memory + 64, c->payload, 100);
    assert_false(pair_poll(c->pair, 0, &wc));
    assert_false(c->qp->recv_is_taken);
}

static void alb_assembly_add__write_with_immediate_tells_how_much(void **state)
{
    struct context *c = *state;
    struct alb_wc wc;
    receive(c, 1, 0); // its receive gets no bytes
    struct alb_roce first = to(c, ALB_RC_WRITE_FIRST, 0, MTU + 10);
    assert_int_equal(add_roce(c, &first, MTU), ALB_OUTCOME_OK);
    assert_false(c->qp->recv_is_taken);
    struct alb_roce last = {.opcode = ALB_RC_WRITE_LAST_IMM, .imm_be = 77};
    assert_int_equal(add_roce(c, &last, 10), ALB_OUTCOME_OK);
    assert_true(pair_poll(c->pair, 0, &wc));
    assert_int_equal(wc.opcode, ALB_WC_RECV_RDMA_WITH_IMM);
    assert_int_equal(wc.byte_len, MTU + 10);
    assert_int_equal(wc.imm_data, 77);
    assert_int_equal(wc.flags, ALB_WC_WITH_IMM);
}

// After RNR nothing has changed: the same packet may come again.
static void alb_assembly_add__no_receive_leaves_no_trace(void **state)
{
    struct context *c = *state;
    assert_int_equal(add(c, ALB_RC_SEND_FIRST, MTU), ALB_OUTCOME_RNR);
    assert_false(c->assembly.is_open);
    struct alb_roce first = to(c, ALB_RC_WRITE_FIRST, 0, MTU + 10);
    assert_int_equal(add_roce(c, &first, MTU), ALB_OUTCOME_OK);
    struct alb_roce last = {.opcode = ALB_RC_WRITE_LAST_IMM};
    assert_int_equal(add_roce(c, &last, 10), ALB_OUTCOME_RNR);
    assert_int_equal(c->pair->hosts[0].memory[MTU], 0);
    assert_true(c->assembly.is_open);
    receive(c, 1, 0);
    assert_int_equal(add_roce(c, &last, 10), ALB_OUTCOME_OK);
    assert_int_equal(c->pair->hosts[0].memory[MTU], c->payload[0]);
}

static void alb_assembly_add__too_long_for_the_receive(void **state)
{
    struct context *c = *state;
    receive(c, 1, MTU + 4);
    assert_int_equal(add(c, ALB_RC_SEND_FIRST, MTU), ALB_OUTCOME_OK);
    assert_int_equal(add(c, ALB_RC_SEND_LAST, 5), ALB_OUTCOME_TOO_LONG);
}

static void alb_assembly_add__receive_without_memory_behind_it(void **state)
{
    struct context *c = *state;
    struct alb_sge sge = {.addr = 8, .length = 64, .lkey = 12345};
    bool bell;
    assert_int_equal(alb_qp_recv_post(c->qp, 1, &sge, 1, &bell), 0);
    assert_int_equal(add(c, ALB_RC_SEND_ONLY, 5), ALB_OUTCOME_OPERATIONAL);
}

static void alb_assembly_add__invalidates_before_it_completes(void **state)
{
    struct context *c = *state;
    struct alb_wc wc;
    struct alb_region *mw;
    assert_int_equal(alb_mw_create(c->pair->hosts[0].pd, ALB_MW_TYPE_2, &mw), 0);
    struct alb_mw_bind bind = {
        .mw = mw,
        .mr = c->pair->hosts[0].mr,
        .addr = pair_va(c->pair, 0, 0),
        .length = 64,
        .access = ALB_ACCESS_REMOTE_READ,
        .rkey = alb_region_key(mw),
    };
    struct alb_send_wr wr = {.opcode = ALB_WR_BIND_MW, .bind = bind};
    assert_int_equal(pair_post(c->pair, c->qp, &wr), 0);
    pair_settle(c->pair);
    receive(c, 1, 64);
    struct alb_roce roce = {.opcode = ALB_RC_SEND_ONLY_INVALIDATE, .invalidate_rkey = alb_region_key(mw)};
    assert_int_equal(add_roce(c, &roce, 4), ALB_OUTCOME_OK);
    assert_true(pair_poll(c->pair, 0, &wc));
    assert_int_equal(wc.flags, ALB_WC_WITH_INV);
    assert_int_equal(wc.invalidated_rkey, alb_region_key(mw));
    receive(c, 2, 64);
    assert_int_equal(add_roce(c, &roce, 4), ALB_OUTCOME_ACCESS); // it is invalid by now
    assert_false(pair_poll(c->pair, 0, &wc));
}

static void alb_assembly_abandon__the_receive_serves_the_next_message(void **state)
{
    struct context *c = *state;
    struct alb_wc wc;
    receive(c, 1, 4 * MTU);
    assert_int_equal(add(c, ALB_RC_SEND_FIRST, MTU), ALB_OUTCOME_OK);
    alb_assembly_abandon(&c->assembly);
    assert_int_equal(add(c, ALB_RC_SEND_ONLY, 3), ALB_OUTCOME_OK);
    assert_true(pair_poll(c->pair, 0, &wc));
    assert_int_equal(wc.wr_id, 1);
    assert_int_equal(wc.byte_len, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(alb_assembly_add__send_in_three_packets, setup, teardown),
        cmocka_unit_test_setup_teardown(alb_assembly_add__send_of_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(alb_assembly_add__every_opcode_in_every_place, setup, teardown),
        cmocka_unit_test_setup_teardown(alb_assembly_add__lengths, setup, teardown),
        cmocka_unit_test_setup_teardown(alb_assembly_add__write_length_is_kept, setup, teardown),
        cmocka_unit_test_setup_teardown(alb_assembly_add__write_is_checked_before_a_byte_is_placed, setup, teardown),
        cmocka_unit_test_setup_teardown(alb_assembly_add__write_of_nothing_needs_no_key, setup, teardown),
        cmocka_unit_test_setup_teardown(alb_assembly_add__plain_write_takes_no_receive, setup, teardown),
        cmocka_unit_test_setup_teardown(alb_assembly_add__write_with_immediate_tells_how_much, setup, teardown),
        cmocka_unit_test_setup_teardown(alb_assembly_add__no_receive_leaves_no_trace, setup, teardown),
        cmocka_unit_test_setup_teardown(alb_assembly_add__too_long_for_the_receive, setup, teardown),
        cmocka_unit_test_setup_teardown(alb_assembly_add__receive_without_memory_behind_it, setup, teardown),
        cmocka_unit_test_setup_teardown(alb_assembly_add__invalidates_before_it_completes, setup, teardown),
        cmocka_unit_test_setup_teardown(alb_assembly_abandon__the_receive_serves_the_next_message, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
