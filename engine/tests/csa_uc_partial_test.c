// SPDX-License-Identifier: BSD-2-Clause
// Messages of partial completion over a lossy UC: what comes stays, both ends can read what has, and only what is
// missing goes again.
#include "engine/csa_loose.h"
#include "engine/partial.h"

#include "engine/tests/csa_pair.h"

#include <stdlib.h>

static struct pair *pair;
static struct alb_qp *qps[2];

enum {
    SEGMENT = 1000,
    MESSAGES = 4,
};

static void transport_csa(struct alb_engine_config *config)
{
    assert_int_equal(alb_engine_config_transport(config, "csa"), 0);
    config->txn_staging_bytes = 256 << 10;
    config->path = "single";
    config->csa_payload_bytes = ALB_CSA_OUTER_BYTES + 40 + SEGMENT + 8 + ALB_ICRC_BYTES;
}

static int set_up_with(void (*change)(struct alb_engine_config *config))
{
    pair = pair_new(change);
    pair_fill(pair);
    pair_connect(pair, ALB_QPT_UC, qps, NULL);
    for (int side = 0; side < 2; side++) {
        alb_mtu_set_route(pair->hosts[side].engine, alb_csa_uc_of(qps[side])->assoc,
                          pair->hosts[side].engine->config.csa_payload_bytes);
        assert_int_equal(alb_qp_partial_enable(qps[side], MESSAGES), 0);
    }
    return 0;
}

static int set_up(void **state)
{
    return set_up_with(transport_csa);
}

static void small_pool(struct alb_engine_config *config)
{
    transport_csa(config);
    config->csa_pool_bytes = 2 << 20;
}

static int set_up_small(void **state)
{
    return set_up_with(small_pool);
}

static int tear_down(void **state)
{
    pair_free(pair);
    return 0;
}

static void post(enum alb_wr_opcode opcode, uint32_t number, bool is_resend, uint32_t length)
{
    const struct alb_sge sge = pair_sge(pair, 0, 0, length);
    const struct alb_send_wr wr = {
        .wr_id = number,
        .opcode = opcode,
        .flags = ALB_SEND_SIGNALED,
        .sge = &sge,
        .sge_count = 1,
        .imm_data = 77,
        .remote_addr = pair_va(pair, 1, 0),
        .rkey = alb_region_key(pair->hosts[1].mr),
        .partial = number,
        .is_resend = is_resend,
    };
    assert_int_equal(pair_post(pair, qps[0], &wr), 0);
}

static void write(uint32_t number, uint32_t segments)
{
    post(ALB_WR_RDMA_WRITE, number, false, segments * SEGMENT);
}

static void resend(uint32_t number, uint32_t segments)
{
    post(ALB_WR_RDMA_WRITE, number, true, segments * SEGMENT);
}

// Bit i: packet i of those that side 0 has on the wire is lost.
static uint32_t transmit(uint64_t lost)
{
    uint32_t count = pair_send(pair, 0);
    for (uint32_t i = 0; i < count; i++)
        if (lost >> i & 1)
            pair_lose(pair, 0);
        else
            pair_deliver(pair, 0);
    return count;
}

static struct alb_partial look(int side, uint32_t number, uint32_t chunk_bytes, uint64_t *bitmap)
{
    struct alb_partial partial = {.chunk_bytes = chunk_bytes};
    assert_int_equal(alb_qp_partial(qps[side], side == 1, number, &partial, bitmap, 1), 0);
    return partial;
}

static bool is_whole(uint32_t segments)
{
    return memcmp(pair->hosts[0].memory, pair->hosts[1].memory, (size_t)segments * SEGMENT) == 0;
}

// The peers know each other, so that questions are answered.
static void greet(void)
{
    struct alb_wc wc;
    assert_int_equal(pair_ask(pair, qps[0], ALB_WR_RDMA_WRITE, 99, 0, 0, 8), 0);
    pair_settle(pair);
    while (pair_poll(pair, 0, &wc))
        ;
}

static void loss__only_what_is_missing_goes_again(void **state)
{
    uint64_t bitmap[1];
    greet();
    write(1, 10);
    assert_int_equal(transmit(1 << 2 | 1 << 7), 10);
    struct alb_partial came = look(1, 1, 0, bitmap);
    assert_int_equal(came.chunks, 10);
    assert_int_equal(came.chunk_bytes, SEGMENT);
    assert_int_equal(came.held, 8);
    assert_int_equal(bitmap[0], 0x3ff & ~(1 << 2 | 1 << 7));
    assert_false(came.is_complete);
    assert_int_equal(came.remote_addr, pair_va(pair, 1, 0));
    pair_settle(pair); // the answer to the last segment
    struct alb_partial told = look(0, 1, 0, bitmap);
    assert_int_equal(told.held, 8);
    assert_int_equal(bitmap[0], 0x3ff & ~(1 << 2 | 1 << 7));
    assert_false(is_whole(10));
    resend(1, 10);
    assert_int_equal(transmit(0), 2);
    assert_true(is_whole(10));
    assert_true(look(1, 1, 0, bitmap).is_complete);
    pair_settle(pair);
    assert_true(look(0, 1, 0, bitmap).is_complete);
    resend(1, 10);
    assert_int_equal(transmit(0), 0); // there is nothing to send
    struct alb_wc wc;
    for (int i = 0; i < 3; i++) {
        assert_true(pair_poll(pair, 0, &wc));
        assert_int_equal(wc.status, ALB_WC_SUCCESS);
    }
}

static void first_and_last_lost__still_come(void **state)
{
    greet();
    write(1, 5);
    transmit(1 << 0 | 1 << 4);
    pair_settle(pair);
    struct alb_partial told = look(0, 1, 0, NULL);
    assert_int_equal(told.held, 0); // not asked for
    assert_int_equal(alb_qp_partial_ask(qps[0], 1, pair->now), 0);
    pair_settle(pair);
    assert_int_equal(look(0, 1, 0, NULL).held, 3);
    resend(1, 5);
    assert_int_equal(transmit(1), 2);
    resend(1, 5);
    pair_settle(pair);
    assert_true(is_whole(5));
    assert_true(look(0, 1, 0, NULL).is_complete);
}

static void immediate__completes_once_when_all_has_come(void **state)
{
    struct alb_wc wc;
    greet();
    assert_int_equal(pair_receive(pair, qps[1], 5, 0, 0), 0);
    assert_int_equal(pair_receive(pair, qps[1], 6, 0, 0), 0);
    post(ALB_WR_RDMA_WRITE_WITH_IMM, 1, false, 3 * SEGMENT);
    transmit(1 << 0);
    assert_false(pair_poll(pair, 1, &wc));
    pair_settle(pair);
    resend(1, 3);
    pair_settle(pair);
    assert_true(pair_poll(pair, 1, &wc));
    assert_int_equal(wc.wr_id, 5);
    assert_int_equal(wc.opcode, ALB_WC_RECV_RDMA_WITH_IMM);
    assert_int_equal(wc.imm_data, 77);
    assert_int_equal(wc.byte_len, 3 * SEGMENT);
    resend(1, 3);
    pair_settle(pair);
    assert_false(pair_poll(pair, 1, &wc));
}

static void no_receive__the_last_one_waits_for_it(void **state)
{
    struct alb_wc wc;
    greet();
    post(ALB_WR_RDMA_WRITE_WITH_IMM, 1, false, 2 * SEGMENT);
    pair_settle(pair);
    assert_int_equal(look(1, 1, 0, NULL).held, 1);
    assert_int_equal(look(0, 1, 0, NULL).held, 1);
    assert_int_equal(pair_receive(pair, qps[1], 5, 0, 0), 0);
    resend(1, 2);
    assert_int_equal(transmit(0), 1);
    assert_true(pair_poll(pair, 1, &wc));
    assert_int_equal(wc.wr_id, 5);
}

// A SEND in the middle of its way keeps the receive that it has.
static void a_send_on_its_way__keeps_its_receive(void **state)
{
    struct alb_wc wc;
    greet();
    post(ALB_WR_RDMA_WRITE_WITH_IMM, 1, false, 2 * SEGMENT);
    pair_settle(pair); // waits for a receive
    assert_int_equal(pair_receive(pair, qps[1], 5, 8 * SEGMENT, 2 * SEGMENT), 0);
    assert_int_equal(pair_ask(pair, qps[0], ALB_WR_SEND, 50, 0, 0, 2 * SEGMENT), 0);
    pair_send(pair, 0);
    pair_deliver(pair, 0); // its first segment
    resend(1, 2);
    pair_send(pair, 0);
    uint32_t count = pair_count(pair, 0);
    pair_hurry(pair, 0, count - 1);
    pair_deliver(pair, 0);
    assert_int_equal(look(1, 1, 0, NULL).held, 1);
    pair_settle(pair);
    assert_true(pair_poll(pair, 1, &wc));
    assert_int_equal(wc.opcode, ALB_WC_RECV);
    assert_memory_equal(pair->hosts[1].memory + 8 * SEGMENT, pair->hosts[0].memory, 2 * SEGMENT);
}

static void chunks__are_as_large_as_the_program_says(void **state)
{
    uint64_t bitmap[1];
    greet();
    write(1, 10);
    transmit(1 << 2);
    struct alb_partial came = look(1, 1, 2500, bitmap); // segment 2 is in the first and the second
    assert_int_equal(came.chunks, 4);
    assert_int_equal(came.held, 2);
    assert_int_equal(bitmap[0], 0xc);
    came.chunk_bytes = 100;
    assert_int_equal(alb_qp_partial(qps[1], true, 1, &came, bitmap, 1), ENOSPC);
    assert_int_equal(came.chunks, 100);
    assert_int_equal(came.held, 90);
}

// Of whatever size: a chunk is held if every segment is that has a byte of it.
static void chunks__of_any_size(void **state)
{
    static uint64_t segments[1], chunks[ALB_BITMAP_WORDS(10 * SEGMENT)];
    greet();
    write(1, 10);
    transmit(1 << 2 | 1 << 3 | 1 << 7);
    look(1, 1, 0, segments);
    for (uint32_t size = 1; size < 11 * SEGMENT; size += size / 8 + 1) {
        struct alb_partial came = {.chunk_bytes = size};
        uint32_t count = 0;
        assert_int_equal(alb_qp_partial(qps[1], true, 1, &came, chunks, ALB_COUNT(chunks)), 0);
        assert_int_equal(came.chunks, (10 * SEGMENT - 1) / size + 1);
        for (uint32_t i = 0; i < came.chunks; i++) {
            uint32_t last = ALB_MIN((i + 1) * size, 10u * SEGMENT) - 1;
            bool is_held = true;
            for (uint32_t s = i * size / SEGMENT; s <= last / SEGMENT; s++)
                is_held &= alb_bitmap_test(segments, s);
            assert_int_equal(alb_bitmap_test(chunks, i), is_held);
            count += is_held;
        }
        assert_int_equal(came.held, count);
    }
}

static void newer_messages__take_the_place_of_old_ones(void **state)
{
    struct alb_partial partial = {0};
    greet();
    for (uint32_t number = 1; number <= MESSAGES + 1; number++) {
        write(number, 2);
        transmit(1 << 0);
    }
    pair_settle(pair);
    assert_int_equal(alb_qp_partial(qps[1], true, 1, &partial, NULL, 0), ENOENT);
    assert_int_equal(alb_qp_partial(qps[0], false, 1, &partial, NULL, 0), ENOENT);
    assert_int_equal(alb_qp_partial_ask(qps[0], 1, pair->now), ENOENT);
    resend(1, 2);
    assert_int_equal(transmit(0), 0);
    for (uint32_t number = 2; number <= MESSAGES + 1; number++) {
        assert_int_equal(look(1, number, 0, NULL).held, 1);
        resend(number, 2);
        pair_settle(pair);
        assert_true(look(0, number, 0, NULL).is_complete);
    }
    assert_int_equal(look(1, 0, 0, NULL).number, MESSAGES + 1);
}

// ---- what no engine sends -------------------------------------------------------------------------------------------

static struct alb_csa_segment segment_of(uint32_t index, uint32_t flags, uint32_t total, uint32_t bytes)
{
    return (struct alb_csa_segment){
        .op = ALB_CSA_PARTIAL_WRITE,
        .flags = (uint8_t)(ALB_CSA_UC | flags),
        .dest_qpn = alb_qp_number(qps[1]),
        .psn = alb_psn_add(PAIR_PSN, (int32_t)index),
        .index = index,
        .total_bytes = total,
        .payload_bytes = bytes,
        .message = 9,
        .va = pair_va(pair, 1, 0),
        .rkey = alb_region_key(pair->hosts[1].mr),
    };
}

static uint64_t arrive(const struct alb_csa_segment *segment)
{
    static uint8_t bytes[4096];
    const struct alb_csa_header header = {.source_epoch = 77, .path = 255};
    uint32_t at = ALB_CSA_OUTER_BYTES;
    alb_csa_encode(&header, bytes);
    at += alb_csa_encode_segment(ALB_CSA_REQUEST, segment, bytes + at);
    memset(bytes + at, 1, segment->payload_bytes);
    at += segment->payload_bytes;
    alb_csa_set_pad(bytes, alb_roce_pad(at));
    const struct alb_datagram datagram = {
        .peer = {pair->hosts[0].addr, ALB_ROCE_PORT},
        .local = {pair->hosts[1].addr, ALB_ROCE_PORT},
        .bytes = bytes,
        .length = at + alb_roce_pad(at),
    };
    alb_engine_rx(pair->hosts[1].engine, &datagram, 1, pair->now);
    return pair->hosts[1].stats.dropped[ALB_DROP_BAD_REQUEST];
}

static void contradictions__are_dropped(void **state)
{
    struct alb_csa_segment segment = segment_of(0, 0, 24, 8);
    assert_int_equal(arrive(&segment), 0);
    segment.message = 0;
    assert_int_equal(arrive(&segment), 1);
    segment = segment_of(1, 0, 32, 8); // another length
    assert_int_equal(arrive(&segment), 2);
    segment = segment_of(1, 0, 24, 4); // another cut
    assert_int_equal(arrive(&segment), 3);
    segment = segment_of(1, ALB_CSA_LAST, 24, 16); // longer than those before it
    assert_int_equal(arrive(&segment), 4);
    segment = segment_of(2, ALB_CSA_LAST, 15, 8); // which would not be of one length
    assert_int_equal(arrive(&segment), 5);
    segment = segment_of(1, 0, 24, 8);
    segment.va += 8;
    assert_int_equal(arrive(&segment), 6);
    assert_int_equal(look(1, 9, 0, NULL).held, 1);
    segment = segment_of(2, ALB_CSA_LAST, 24, 8);
    arrive(&segment);
    segment = segment_of(1, 0, 24, 8);
    assert_int_equal(arrive(&segment), 6);
    assert_true(look(1, 9, 0, NULL).is_complete);
}

// All segments but the last one have a multiple of four.
static void odd_cut__is_dropped(void **state)
{
    struct alb_csa_segment segment = segment_of(1, ALB_CSA_LAST, 14, 4);
    assert_int_equal(arrive(&segment), 1);
    segment = segment_of(3, ALB_CSA_LAST, 8, 2);
    assert_int_equal(arrive(&segment), 2);
    segment = segment_of(1, ALB_CSA_LAST, 11, 3);
    assert_int_equal(arrive(&segment), 2);
    segment = segment_of(0, ALB_CSA_LAST, 3, 3); // all of it
    segment.message = 10;
    assert_int_equal(arrive(&segment), 2);
    assert_true(look(1, 10, 0, NULL).is_complete);
}

// ---- what a peer may claim ------------------------------------------------------------------------------------------

enum {
    LONG = 1 << 20, // segments, of four bytes each; a sixteenth of the small pool are its bits
    MANY = 4000,    // segments of SEGMENT bytes, which a region of so many bytes has room for
    WORDS = ALB_BITMAP_WORDS(MANY),
};

static void arrive_of_long(const struct alb_region *mr, uint32_t number, uint32_t index)
{
    struct alb_csa_segment segment = segment_of(index, 0, LONG * 4, 4);
    segment.message = number;
    segment.va = mr->iova;
    segment.rkey = alb_region_key(mr);
    assert_int_equal(arrive(&segment), 0);
}

static struct alb_region *create_long_region(int side)
{
    uint8_t *memory = calloc(LONG, 4);
    struct alb_region *mr;
    assert_non_null(memory);
    memset(memory, 1 + side, LONG * 4);
    assert_int_equal(alb_mr_create(pair->hosts[side].pd, memory, LONG * 4, (uintptr_t)memory, PAIR_ACCESS_ALL, &mr), 0);
    return mr;
}

static void write_long(struct alb_region *const mrs[2], bool is_resend)
{
    const struct alb_sge sge = {(uintptr_t)mrs[0]->host, MANY * SEGMENT, alb_region_key(mrs[0])};
    const struct alb_send_wr wr = {
        .opcode = ALB_WR_RDMA_WRITE,
        .sge = &sge,
        .sge_count = 1,
        .remote_addr = mrs[1]->iova,
        .rkey = alb_region_key(mrs[1]),
        .partial = 1,
        .is_resend = is_resend,
    };
    assert_int_equal(pair_post(pair, qps[0], &wr), 0);
}

static void destroy_long_region(struct alb_region *mr)
{
    uint8_t *memory = mr->host;
    assert_int_equal(alb_mr_destroy(mr), 0);
    free(memory);
}

// More segments than one HOLDS frame tells of.
static void many_segments__take_several_frames(void **state)
{
    static uint64_t sent[WORDS], came[WORDS];
    struct alb_region *mrs[] = {create_long_region(0), create_long_region(1)};
    struct alb_partial a = {0}, b = {0};
    greet();
    write_long(mrs, false);
    for (uint32_t n = 0, left = 1; left > 0;) {
        left = pair_send(pair, 0);
        for (uint32_t i = 0; i < left; i++, n++)
            if (n % 3 == 1)
                pair_lose(pair, 0);
            else
                pair_deliver(pair, 0);
    }
    assert_int_equal(alb_qp_partial_ask(qps[0], 1, pair->now), 0);
    pair_settle(pair);
    assert_int_equal(alb_qp_partial(qps[0], false, 1, &a, sent, WORDS), 0);
    assert_int_equal(alb_qp_partial(qps[1], true, 1, &b, came, WORDS), 0);
    assert_int_equal(a.chunks, MANY);
    assert_int_equal(a.held, b.held);
    assert_int_equal(a.held, MANY - (MANY + 1) / 3);
    assert_memory_equal(sent, came, sizeof(sent));
    write_long(mrs, true);
    pair_settle(pair);
    assert_memory_equal(mrs[0]->host, mrs[1]->host, MANY * SEGMENT);
    for (int side = 0; side < 2; side++)
        destroy_long_region(mrs[side]);
}

static void bits__take_an_eighth_of_the_pool(void **state)
{
    const struct alb_buddy *pool = &pair->hosts[1].engine->csa->pool;
    const uint64_t *dropped = pair->hosts[1].stats.dropped;
    struct alb_region *mr = create_long_region(1);
    struct alb_partial partial = {0};
    arrive_of_long(mr, 1, 0);
    size_t used = alb_buddy_used(pool);
    arrive_of_long(mr, 2, 0);
    arrive_of_long(mr, 3, 0);
    assert_int_equal(dropped[ALB_DROP_NO_RESOURCES], 1);
    assert_int_equal(alb_buddy_used(pool), used + LONG / 8);
    assert_int_equal(alb_qp_partial(qps[1], true, 3, &partial, NULL, 0), ENOENT);
    arrive_of_long(mr, 5, 0); // instead of 1
    assert_int_equal(dropped[ALB_DROP_NO_RESOURCES], 1);
    assert_int_equal(look(1, 5, 0, NULL).held, 1);
    struct alb_csa_segment segment = segment_of(0, 0, 24, 8); // needs none, instead of 5
    assert_int_equal(arrive(&segment), 0);
    arrive_of_long(mr, 11, 0);
    assert_int_equal(look(1, 11, 0, NULL).held, 1);
    alb_csa_partials_clear(alb_csa_uc_of(qps[1]));
    assert_int_equal(pair->hosts[1].engine->csa->uc_bits_bytes, 0);
    destroy_long_region(mr);
}

// The memory that the bits are going to have holds something else before. The association has its own already.
static void spoil_pool(void)
{
    struct alb_buddy *pool = &pair->hosts[1].engine->csa->pool;
    struct alb_csa_segment segment = segment_of(0, 0, 24, 8);
    assert_int_equal(arrive(&segment), 0);
    void *block = alb_buddy_get(pool, LONG / 8);
    assert_non_null(block);
    memset(block, 0xff, LONG / 8);
    alb_buddy_put(pool, block, LONG / 8);
}

// So that a segment costs little, whatever it claims.
static void bits__are_cleared_part_by_part(void **state)
{
    struct alb_region *mr = create_long_region(1);
    spoil_pool();
    arrive_of_long(mr, 2, ALB_CSA_UC_PART);
    struct alb_csa_partial *partial = alb_csa_partial_find(alb_csa_uc_of(qps[1]), ALB_PARTIAL_RECEIVING, 2);
    assert_int_equal(partial->held[0], UINT64_MAX);
    assert_int_equal(partial->held[ALB_CSA_UC_PART / 64], 1);
    assert_int_equal(partial->held[2 * ALB_CSA_UC_PART / 64 - 1], 0);
    assert_int_equal(partial->held[2 * ALB_CSA_UC_PART / 64], UINT64_MAX);
    arrive_of_long(mr, 2, 3);
    assert_int_equal(partial->held[0], 1 << 3);
    assert_int_equal(partial->held_count, 2);
    assert_int_equal(look(1, 2, LONG, NULL).held, 0); // chunks of four parts
    assert_int_equal(look(1, 2, 4, NULL).held, 2);
    destroy_long_region(mr);
}

static uint32_t next_page(struct alb_csa_uc *uc)
{
    struct alb_csa_holds holds;
    assert_true(alb_csa_partial_next_due(uc, &holds));
    alb_csa_partial_said(uc, &holds);
    return holds.first;
}

static void bits__are_told_from_the_first_page_whenever_asked(void **state)
{
    struct alb_csa_uc *uc = alb_csa_uc_of(qps[1]);
    struct alb_region *mr = create_long_region(1);
    arrive_of_long(mr, 2, 0);
    struct alb_csa_partial *partial = alb_csa_partial_find(uc, ALB_PARTIAL_RECEIVING, 2);
    alb_csa_partial_owe(uc, partial);
    assert_int_equal(next_page(uc), 0);
    assert_int_equal(next_page(uc), ALB_CSA_PAGE_BITS);
    alb_csa_partial_owe(uc, partial);
    assert_int_equal(next_page(uc), 0);
    destroy_long_region(mr);
}

// What is told of parts of which nothing has come is that.
static void bits__that_were_never_cleared_are_told_as_none(void **state)
{
    struct alb_csa_uc *uc = alb_csa_uc_of(qps[1]);
    struct alb_region *mr = create_long_region(1);
    struct alb_csa_holds holds;
    uint32_t held = 0;
    spoil_pool();
    arrive_of_long(mr, 2, ALB_CSA_UC_PART);
    alb_csa_partial_owe(uc, alb_csa_partial_find(uc, ALB_PARTIAL_RECEIVING, 2));
    while (alb_csa_partial_next_due(uc, &holds)) {
        held += alb_bitmap_count(holds.held, 0, 64 * holds.word_count);
        alb_csa_partial_said(uc, &holds);
    }
    assert_int_equal(held, 1);
    destroy_long_region(mr);
}

static void bad_key__is_dropped_and_takes_no_place(void **state)
{
    struct alb_partial partial = {0};
    struct alb_csa_segment segment = segment_of(0, 0, 24, 8);
    segment.rkey ^= 1;
    arrive(&segment);
    assert_int_equal(pair->hosts[1].stats.dropped[ALB_DROP_ACCESS], 1);
    assert_int_equal(alb_qp_partial(qps[1], true, 9, &partial, NULL, 0), ENOENT);
}

static void holds__of_strangers_and_of_nothing_is_dropped(void **state)
{
    const struct alb_csa_holds holds = {.dest_qpn = alb_qp_number(qps[0]), .message = 1, .is_complete = true};
    struct alb_csa_arrival arrival = {
        .engine = pair->hosts[0].engine,
        .assoc = alb_csa_uc_of(qps[0])->assoc,
        .header = {.source_epoch = 1},
    };
    assert_int_equal(alb_csa_uc_on_holds(&arrival, &holds), ALB_DROP_NOT_PROVEN);
    arrival.is_proven = true;
    assert_int_equal(alb_csa_uc_on_holds(&arrival, &holds), ALB_DROP_STALE_RESPONSE);
    write(1, 3);
    pair_send(pair, 0);
    struct alb_csa_holds beyond = {.dest_qpn = holds.dest_qpn, .message = 1, .word_count = 1, .held = {UINT64_MAX}};
    beyond.first = 64;
    assert_int_equal(alb_csa_uc_on_holds(&arrival, &beyond), ALB_DROP_NONE);
    beyond.first = UINT32_MAX - 63;
    assert_int_equal(alb_csa_uc_on_holds(&arrival, &beyond), ALB_DROP_NONE);
    assert_int_equal(look(0, 1, 0, NULL).held, 0);
    beyond.first = 1;
    assert_int_equal(alb_csa_uc_on_holds(&arrival, &beyond), ALB_DROP_BAD_LENGTH);
    arrival.assoc = NULL;
    assert_int_equal(alb_csa_uc_on_holds(&arrival, &holds), ALB_DROP_WRONG_PEER);
}

static void hear(struct alb_csa_holds holds)
{
    holds.message = 1;
    assert_int_equal(alb_csa_partial_heard(alb_csa_uc_of(qps[0]), &holds), ALB_DROP_NONE);
}

// A frame costs what it says, however many segments the message has.
static void holds__that_say_nothing_look_at_no_bits(void **state)
{
    write(1, 100);
    pair_send(pair, 0);
    struct alb_csa_partial *partial = alb_csa_partial_find(alb_csa_uc_of(qps[0]), ALB_PARTIAL_SENDING, 1);
    uint64_t *held = partial->held;
    hear((struct alb_csa_holds){.word_count = 2, .held = {0x105, UINT64_MAX}});
    assert_int_equal(look(0, 1, 0, NULL).held, 3 + 36); // none beyond the end
    partial->held = NULL;
    hear((struct alb_csa_holds){.word_count = 0});
    hear((struct alb_csa_holds){.word_count = 2, .first = 128, .held = {UINT64_MAX}});
    partial->held = held;
    hear((struct alb_csa_holds){.word_count = 1, .held = {0x103}});
    assert_int_equal(look(0, 1, 0, NULL).held, 4 + 36);
    assert_int_equal(partial->held_count, 4 + 36);
    hear((struct alb_csa_holds){.is_complete = true});
    assert_int_equal(look(0, 1, 0, NULL).held, 100);
    partial->held = NULL;
    hear((struct alb_csa_holds){.is_complete = true});
    partial->held = held;
    assert_true(look(0, 1, 0, NULL).is_complete);
    assert_int_equal(partial->held_count, 100);
}

static void enable__is_of_uc_and_once(void **state)
{
    struct alb_qp *rc = pair_qp(pair, 0, ALB_QPT_RC), *uc = pair_qp(pair, 0, ALB_QPT_UC);
    assert_int_equal(alb_qp_partial_enable(rc, 1), EOPNOTSUPP);
    assert_int_equal(alb_qp_partial_enable(uc, 0), EINVAL);
    assert_int_equal(alb_qp_partial_enable(uc, ALB_PARTIAL_MESSAGES_MAX + 1), EINVAL);
    assert_int_equal(alb_qp_partial_enable(uc, 3), 0);
    assert_int_equal(alb_qp_partial_enable(uc, 3), EINVAL);
    assert_int_equal(alb_qp_partial_ask(uc, 1, pair->now), ENOENT);
    assert_int_equal(alb_qp_partial_ask(rc, 1, pair->now), EINVAL);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(loss__only_what_is_missing_goes_again),
        CASE(first_and_last_lost__still_come),
        CASE(immediate__completes_once_when_all_has_come),
        CASE(no_receive__the_last_one_waits_for_it),
        CASE(a_send_on_its_way__keeps_its_receive),
        CASE(chunks__are_as_large_as_the_program_says),
        CASE(chunks__of_any_size),
        CASE(many_segments__take_several_frames),
        CASE(newer_messages__take_the_place_of_old_ones),
        CASE(contradictions__are_dropped),
        CASE(odd_cut__is_dropped),
        cmocka_unit_test_setup_teardown(bits__take_an_eighth_of_the_pool, set_up_small, tear_down),
        CASE(bits__are_cleared_part_by_part),
        CASE(bits__are_told_from_the_first_page_whenever_asked),
        CASE(bits__that_were_never_cleared_are_told_as_none),
        CASE(bad_key__is_dropped_and_takes_no_place),
        CASE(holds__of_strangers_and_of_nothing_is_dropped),
        CASE(holds__that_say_nothing_look_at_no_bits),
        CASE(enable__is_of_uc_and_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
