// SPDX-License-Identifier: BSD-2-Clause
// UC over CSA: what leaves, which senders are trusted, and when packets are counted.
#include "engine/csa_loose.h"

#include "engine/tests/csa_pair.h"

#include <stdlib.h>

static struct pair *pair;
static struct alb_qp *qps[2];

enum {
    SEGMENT = 1016, // payload of a WRITE's
};

static void transport_csa(struct alb_engine_config *config)
{
    assert_int_equal(alb_engine_config_transport(config, "csa"), 0);
    config->txn_staging_bytes = 256 << 10;
    config->path = "single";
    config->path_max = 4;
    config->csa_payload_bytes = ALB_CSA_OUTER_BYTES + 32 + SEGMENT + 8 + ALB_ICRC_BYTES;
}

static int set_up_with(void (*change)(struct alb_engine_config *config))
{
    pair = pair_new(change);
    pair_fill(pair);
    pair_connect(pair, ALB_QPT_UC, qps, NULL);

    for (int side = 0; side < 2; side++) // as if the routes had reported it
        alb_mtu_set_route(pair->hosts[side].engine, alb_csa_uc_of(qps[side])->assoc,
                          pair->hosts[side].engine->config.csa_payload_bytes);
    return 0;
}

static int set_up(void **state)
{
    return set_up_with(transport_csa);
}

static void paced(struct alb_engine_config *config)
{
    transport_csa(config);
    config->congestion = "dcqcn";
}

static void small_pool(struct alb_engine_config *config)
{
    transport_csa(config);
    config->csa_pool_bytes = 512 << 10;
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

static void ask(int side, enum alb_wr_opcode opcode, uint64_t wr_id, uint32_t length)
{
    assert_int_equal(pair_ask(pair, qps[side], opcode, wr_id, ALB_SEND_SIGNALED, 0, length), 0);
}

static uint64_t dropped(int side, enum alb_drop reason)
{
    return pair->hosts[side].stats.dropped[reason];
}

// The packet at index that a side has on the wire.
static uint32_t look(int side, uint32_t index, struct alb_csa_header *header, struct alb_csa_frame *frames,
                     uint32_t max)
{
    const struct pair_packet *packet = pair_peek(pair, side, index);
    struct alb_csa_cursor cursor;
    enum alb_drop drop;
    uint32_t count = 0;
    assert_non_null(packet);
    assert_int_equal(alb_csa_decode(packet->datagram.bytes, packet->datagram.length, header, &cursor), ALB_DROP_NONE);
    while (count < max && alb_csa_next(&cursor, &frames[count], &drop))
        count++;
    return count;
}

static void expect_copied(uint32_t length)
{
    assert_memory_equal(pair->hosts[1].memory, pair->hosts[0].memory, length);
}

// Nothing has come from the peer yet: an uncounted packet, with a request that makes the peer ask for our epoch.
static void first_packets__are_not_counted_and_ask(void **state)
{
    struct alb_csa_header header;
    struct alb_csa_frame frames[4];
    ask(0, ALB_WR_RDMA_WRITE, 1, 2 * SEGMENT);
    assert_int_equal(pair_send(pair, 0), 2);
    assert_int_equal(look(0, 0, &header, frames, 4), 2);
    assert_int_equal(header.path, 255);
    assert_int_equal(header.destination_epoch, 0);
    assert_int_equal(frames[0].type, ALB_CSA_REQUEST);
    assert_int_equal(frames[0].segment.payload_bytes, SEGMENT);
    assert_int_equal(frames[0].segment.psn, PAIR_PSN);
    assert_int_equal(frames[1].type, ALB_CSA_PING);
    assert_int_equal(look(0, 1, &header, frames, 4), 1);
    assert_int_equal(frames[0].segment.flags, ALB_CSA_UC | ALB_CSA_LAST);
    pair_settle(pair);
    expect_copied(2 * SEGMENT);
    pair_expect(pair, 0, 1, ALB_WC_SUCCESS);
}

// Nothing is written beyond the batch, whether packets are counted or not.
static void batch__that_is_full_leaves_the_rest_to_the_next_one(void **state)
{
    pair->hosts[0].tx.segment_capacity = 1;
    for (uint32_t i = 0; i < 2; i++) {
        ask(0, ALB_WR_RDMA_WRITE, i, 2 * SEGMENT);
        alb_engine_bells(pair->hosts[0].engine, pair->now);
        for (uint32_t k = 0; k < 2; k++) {
            assert_int_equal(pair_send_batch(pair, 0), 1);
            pair_deliver(pair, 0);
        }
        pair_settle(pair);
        pair_expect(pair, 0, i, ALB_WC_SUCCESS);
        expect_copied(2 * SEGMENT);
    }
}

// Once both know each other, packets have a number on one path, and one of many asks for news of it.
static void later_packets__are_counted_and_asked_for(void **state)
{
    struct alb_csa_header header;
    struct alb_csa_frame frames[4];
    ask(0, ALB_WR_RDMA_WRITE, 1, 8);
    pair_settle(pair);
    pair_expect(pair, 0, 1, ALB_WC_SUCCESS);
    assert_int_equal(alb_csa_uc_of(qps[0])->assoc->peer_epoch,
                     alb_assoc_epoch(pair->hosts[1].engine->csa, alb_csa_uc_of(qps[1])->assoc));
    uint32_t path = 255, pings = 0;
    alb_psn sequence = 0;
    for (uint32_t i = 0; i < 70; i++) {
        ask(0, ALB_WR_RDMA_WRITE, 2, SEGMENT);
        assert_int_equal(pair_send(pair, 0), 1);
        pings += look(0, 0, &header, frames, 4) - 1;
        if (i > 0)
            assert_int_equal(header.sequence, alb_psn_next(sequence));
        assert_true(header.path < 4 && (i == 0 || header.path == path));
        path = header.path;
        sequence = header.sequence;
        pair_deliver(pair, 0);
        pair_send(pair, 0);
        pair_expect(pair, 0, 2, ALB_WC_SUCCESS);
    }
    assert_int_equal(pings, 1);
    pair_settle(pair);
    const struct alb_path_out *out = &alb_csa_uc_of(qps[0])->assoc->live->paths->path[path];
    assert_in_range(alb_psn_diff(out->next, out->settled), 0, 10);
}

// The way is down for longer than is waited for. The peer hears of what is counted only, and tells of nothing else.
static void after_an_outage__packets_are_counted_again(void **state)
{
    struct alb_csa_header header;
    struct alb_csa_frame frames[2];
    ask(0, ALB_WR_RDMA_WRITE, 1, 8);
    pair_settle(pair);
    pair_expect(pair, 0, 1, ALB_WC_SUCCESS);
    const struct alb_assoc *assoc = alb_csa_uc_of(qps[0])->assoc;
    for (uint32_t i = 0; i < (1 << 16) + 1000; i++) {
        ask(0, ALB_WR_RDMA_WRITE, 2, 8);
        pair_send(pair, 0);
        while (pair_count(pair, 0))
            pair_lose(pair, 0);
        pair_expect(pair, 0, 2, ALB_WC_SUCCESS);
    }
    for (uint32_t i = 0; i < 70; i++) {
        ask(0, ALB_WR_RDMA_WRITE, 2, 8);
        pair_settle(pair);
        pair_expect(pair, 0, 2, ALB_WC_SUCCESS);
    }
    const struct alb_paths_out *paths = assoc->live->paths;
    for (uint32_t i = 0; i < paths->count; i++)
        assert_true(alb_psn_diff(paths->path[i].next, paths->path[i].settled) <= 70);
    ask(0, ALB_WR_RDMA_WRITE, 3, 8);
    pair_send(pair, 0);
    look(0, 0, &header, frames, 2);
    assert_int_not_equal(header.path, 0xff);
}

static void adaptive(struct alb_engine_config *config)
{
    transport_csa(config);
    config->path = "adaptive";
}

static int set_up_adaptive(void **state)
{
    return set_up_with(adaptive);
}

// Nothing but UC may ever come by it again.
static void path_that_was_left__is_tried_and_taken_back(void **state)
{
    struct alb_csa_header header;
    struct alb_csa_frame frames[2];
    ask(0, ALB_WR_RDMA_WRITE, 1, 8);
    pair_settle(pair);
    pair_expect(pair, 0, 1, ALB_WC_SUCCESS);
    ask(0, ALB_WR_RDMA_WRITE, 1, 8);
    pair_send(pair, 0);
    look(0, 0, &header, frames, 2);
    uint16_t own = header.path;
    pair_settle(pair);
    pair_expect(pair, 0, 1, ALB_WC_SUCCESS);
    struct alb_paths_out *paths = alb_csa_uc_of(qps[0])->assoc->live->paths;
    alb_path_set_state(paths, own, ALB_PATH_LEFT);
    paths->path[own].settled = paths->path[own].next;
    uint32_t others = 0;
    for (uint32_t i = 0; i < 1000 && alb_path_load(paths, own)->state != ALB_PATH_GOOD; i++) {
        ask(0, ALB_WR_RDMA_WRITE, 2, 8);
        pair_send(pair, 0);
        look(0, 0, &header, frames, 2);
        others += header.path != own;
        pair_settle(pair);
        pair_expect(pair, 0, 2, ALB_WC_SUCCESS);
        pair_pass(pair, 10000);
    }
    assert_int_equal(alb_path_load(paths, own)->state, ALB_PATH_GOOD);
    assert_true(others > 0); // while what tried it was under way
}

static void small_messages__share_a_packet(void **state)
{
    struct alb_csa_header header;
    struct alb_csa_frame frames[8];
    for (uint32_t i = 0; i < 5; i++)
        ask(0, ALB_WR_RDMA_WRITE, i, 16);
    assert_int_equal(pair_send(pair, 0), 1);
    assert_int_equal(look(0, 0, &header, frames, 8), 6);
    pair_settle(pair);
    for (uint32_t i = 0; i < 5; i++)
        pair_expect(pair, 0, i, ALB_WC_SUCCESS);
}

// What follows a lost first message proves nothing: anyone could have sent it. It is answered with a cookie.
static void first_message_lost__others_are_taken_once_a_cookie_has_come_back(void **state)
{
    ask(0, ALB_WR_RDMA_WRITE, 1, SEGMENT);
    ask(0, ALB_WR_RDMA_WRITE, 2, SEGMENT);
    assert_int_equal(pair_send(pair, 0), 2);
    pair_lose(pair, 0);
    pair_deliver(pair, 0);
    assert_int_equal(dropped(1, ALB_DROP_NOT_PROVEN), 1);
    assert_int_equal(alb_csa_uc_of(qps[1])->assoc->peer_epoch, 0);
    pair_settle(pair);
    assert_int_equal(alb_csa_uc_of(qps[1])->assoc->peer_epoch,
                     alb_assoc_epoch(pair->hosts[0].engine->csa, alb_csa_uc_of(qps[0])->assoc));
    ask(0, ALB_WR_RDMA_WRITE, 3, SEGMENT);
    pair_settle(pair);
    expect_copied(SEGMENT);
    assert_int_equal(alb_csa_uc_of(qps[1])->bound_epoch,
                     alb_assoc_epoch(pair->hosts[0].engine->csa, alb_csa_uc_of(qps[0])->assoc));
}

// A segment, as if the queue pair had sent it, from a life that may be another.
static struct alb_csa_segment segment_of(int32_t offset, uint32_t index, uint32_t flags, uint32_t total,
                                         uint32_t length)
{
    return (struct alb_csa_segment){
        .op = ALB_CSA_WRITE,
        .flags = (uint8_t)(ALB_CSA_UC | flags),
        .dest_qpn = alb_qp_number(qps[1]),
        .psn = alb_psn_add(PAIR_PSN, offset),
        .index = index,
        .total_bytes = total,
        .payload_bytes = length,
        .va = pair_va(pair, 1, 0),
        .rkey = alb_region_key(pair->hosts[1].mr),
    };
}

static void arrive_segment(uint32_t epoch, const struct alb_csa_segment *segment, uint8_t value)
{
    uint8_t bytes[4096] = {0};
    const struct alb_csa_header header = {.source_epoch = epoch, .path = 255};
    alb_csa_encode(&header, bytes);
    uint32_t at = ALB_CSA_OUTER_BYTES;
    at += alb_csa_encode_segment(ALB_CSA_REQUEST, segment, bytes + at);
    memset(bytes + at, value, segment->payload_bytes);
    at += segment->payload_bytes;
    alb_csa_set_pad(bytes, alb_roce_pad(at));
    const struct alb_datagram datagram = {
        .peer = {pair->hosts[0].addr, ALB_ROCE_PORT},
        .local = {pair->hosts[1].addr, ALB_ROCE_PORT},
        .bytes = bytes,
        .length = at + alb_roce_pad(at),
    };
    alb_engine_rx(pair->hosts[1].engine, &datagram, 1, pair->now);
}

static void arrive(uint32_t epoch, int32_t offset, uint32_t index, uint32_t flags, uint32_t total, uint32_t length)
{
    const struct alb_csa_segment segment = segment_of(offset, index, flags, total, length);
    arrive_segment(epoch, &segment, (uint8_t)(offset + 1));
}

static void another_life__is_not_taken_once_bound(void **state)
{
    arrive(77, 0, 0, ALB_CSA_LAST, 8, 8);
    assert_int_equal(alb_csa_uc_of(qps[1])->bound_epoch, 77);
    arrive(78, 1, 0, ALB_CSA_LAST, 8, 8);
    assert_int_equal(dropped(1, ALB_DROP_BAD_EPOCH), 1);
    assert_int_equal(pair->hosts[1].memory[0], 1);
    arrive(77, 2, 0, ALB_CSA_LAST, 8, 8);
    assert_int_equal(pair->hosts[1].memory[0], 3);
}

static void before_the_first__nobody_is_believed(void **state)
{
    arrive(77, -1, 0, ALB_CSA_LAST, 8, 8);
    assert_int_equal(dropped(1, ALB_DROP_NOT_PROVEN), 1);
}

static void numbers__begin_where_the_program_says(void **state)
{
    struct alb_qp_attr attr = pair_attr(pair, 1, qps[0]);
    struct alb_qp *qp = pair_qp(pair, 1, ALB_QPT_UC);
    attr.rq_psn = 12345;
    assert_int_equal(pair_move(pair, qp, ALB_QPS_RTR, &attr), 0);
    assert_int_equal(alb_csa_uc_of(qp)->u.expected, 12345);
    assert_int_equal(alb_csa_uc_of(qp)->in.first, 12345);
}

static void numbers__that_stay_leave_what_has_begun(void **state)
{
    struct alb_qp_attr attr = pair_attr(pair, 1, qps[0]);
    arrive(77, 0, 0, 0, 16, 8);
    assert_int_equal(alb_qp_modify(qps[1], &attr, ALB_QP_ACCESS_FLAGS, pair->now), 0);
    assert_true(alb_csa_uc_of(qps[1])->in.is_open);
    arrive(77, 1, 1, ALB_CSA_LAST, 16, 8);
    assert_true(alb_csa_uc_of(qps[1])->in.is_whole);
    assert_int_equal(pair->hosts[1].memory[8], 2);
}

// A queue pair of RC had the number before: neither service takes the other's.
static void segment_of_rc__is_not_taken(void **state)
{
    struct alb_csa_segment segment = segment_of(0, 0, ALB_CSA_LAST, 8, 8);
    segment.flags &= (uint8_t)~ALB_CSA_UC;
    arrive_segment(77, &segment, 1);
    assert_int_equal(dropped(1, ALB_DROP_BAD_SERVICE), 1);
    assert_int_equal(alb_csa_uc_of(qps[1])->bound_epoch, 0);
}

// A message of 130 segments: its bits are the pool's, and given back.
static void segments__in_any_order_but_the_last(void **state)
{
    struct alb_csa_uc *uc = alb_csa_uc_of(qps[1]);
    for (int32_t i = 128; i >= 0; i--)
        arrive(77, i, (uint32_t)i, 0, 1040, 8);
    assert_int_equal(uc->in.placed, 129);
    arrive(77, 64, 64, 0, 1040, 8);
    assert_int_equal(dropped(1, ALB_DROP_DUPLICATE), 1);
    arrive(77, 129, 129, ALB_CSA_LAST, 1040, 8);
    assert_true(uc->in.is_whole);
    for (uint32_t i = 0; i < 130; i++)
        assert_int_equal(pair->hosts[1].memory[8 * i], i + 1);
    arrive(77, 129, 129, ALB_CSA_LAST, 1040, 8);
    assert_int_equal(dropped(1, ALB_DROP_DUPLICATE), 2);
}

// PSNs are compared within half of their numbers, and what is late within a quarter.
static void late__up_to_2_to_the_22_before_the_end(void **state)
{
    arrive(77, 0, 0, ALB_CSA_LAST, 8, 8);
    arrive(77, 1 - (1 << 22), 0, ALB_CSA_LAST, 8, 8);
    assert_int_equal(dropped(1, ALB_DROP_OUT_OF_SEQUENCE), 1);
    assert_int_equal(pair->hosts[1].memory[0], 1);
    arrive(77, -(1 << 22), 0, ALB_CSA_LAST, 8, 8);
    assert_int_equal(dropped(1, ALB_DROP_OUT_OF_SEQUENCE), 1);
}

static void last_before_others__loses_the_message(void **state)
{
    struct alb_csa_uc *uc = alb_csa_uc_of(qps[1]);
    arrive(77, 0, 0, 0, 24, 8);
    arrive(77, 2, 2, ALB_CSA_LAST, 24, 8);
    arrive(77, 1, 1, 0, 24, 8);
    assert_false(uc->in.is_whole);
    assert_int_equal(dropped(1, ALB_DROP_OUT_OF_SEQUENCE), 2);
    arrive(77, 3, 0, ALB_CSA_LAST, 8, 8);
    assert_int_equal(pair->hosts[1].memory[0], 4);
    arrive(77, 1, 1, 0, 24, 8); // of a message that is over
    assert_int_equal(dropped(1, ALB_DROP_OUT_OF_SEQUENCE), 3);
}

static void contradictions__lose_the_message(void **state)
{
    arrive(77, 0, 0, 0, 24, 8);
    arrive(77, 1, 1, 0, 24, 4);
    assert_int_equal(dropped(1, ALB_DROP_BAD_REQUEST), 1);
    arrive(77, 3, 0, 0, 24, 8);
    arrive(77, 4, 1, 0, 32, 8);
    assert_int_equal(dropped(1, ALB_DROP_BAD_REQUEST), 2);
    assert_int_equal(alb_qp_current_state(qps[1]), ALB_QPS_RTS);
}

// ---- bits of long messages ------------------------------------------------------------------------------------------

enum {
    BYTES_EACH = 4,
    PARTS = 3, // of bits
    MANY = PARTS * ALB_CSA_UC_PART,
};

// A segment of a WRITE of so many to that region, each of four bytes: the second message.
static void arrive_one_of_many(const struct alb_region *mr, uint32_t key, uint32_t index, uint8_t value)
{
    uint32_t flags = index == MANY - 1 ? ALB_CSA_LAST : 0;
    struct alb_csa_segment segment = segment_of(1 + (int32_t)index, index, flags, MANY * BYTES_EACH, BYTES_EACH);
    segment.va = mr->iova;
    segment.rkey = key;
    arrive_segment(77, &segment, value);
}

static struct alb_region *create_long_region(void)
{
    uint8_t *memory = calloc(MANY, BYTES_EACH);
    struct alb_region *mr;
    assert_non_null(memory);
    assert_int_equal(
        alb_mr_create(pair->hosts[1].pd, memory, (uint64_t)MANY * BYTES_EACH, (uintptr_t)memory, PAIR_ACCESS_ALL, &mr),
        0);
    return mr;
}

static void destroy_long_region(struct alb_region *mr)
{
    uint8_t *memory = mr->host;
    assert_int_equal(alb_mr_destroy(mr), 0);
    free(memory);
}

// Takes every block of the pool in which the bits of such a message had room.
static uint32_t drain_pool(void *blocks[32], size_t sizes[32])
{
    struct alb_engine *engine = pair->hosts[1].engine;
    uint32_t count = 0;
    for (size_t bytes = engine->config.csa_pool_bytes; bytes >= MANY / 8; bytes /= 2)
        while ((blocks[count] = alb_buddy_get(&engine->csa->pool, bytes)))
            sizes[count++] = bytes;
    return count;
}

static void fill_pool(void *blocks[32], const size_t sizes[32], uint32_t count)
{
    while (count-- > 0)
        alb_buddy_put(&pair->hosts[1].engine->csa->pool, blocks[count], sizes[count]);
}

// With no memory for the bits.
static void arrive_first_of_many(const struct alb_region *mr, uint32_t key)
{
    void *blocks[32];
    size_t sizes[32];
    arrive(77, 0, 0, ALB_CSA_LAST, 8, 8);
    uint32_t count = drain_pool(blocks, sizes);
    arrive_one_of_many(mr, key, 0, 1);
    fill_pool(blocks, sizes, count);
}

// What may not be written costs no memory: that there is none is not even noticed.
static void wrong_key__is_seen_before_the_bits_are_taken(void **state)
{
    struct alb_region *mr = create_long_region();
    arrive_first_of_many(mr, alb_region_key(mr) + 1);
    assert_int_equal(dropped(1, ALB_DROP_ACCESS), 1);
    assert_int_equal(dropped(1, ALB_DROP_NO_RESOURCES), 0);
    destroy_long_region(mr);
}

static void no_memory_for_the_bits__loses_the_message(void **state)
{
    struct alb_region *mr = create_long_region();
    arrive_first_of_many(mr, alb_region_key(mr));
    assert_int_equal(dropped(1, ALB_DROP_NO_RESOURCES), 1);
    arrive_one_of_many(mr, alb_region_key(mr), 1, 1);
    assert_int_equal(dropped(1, ALB_DROP_OUT_OF_SEQUENCE), 1);
    assert_int_equal(mr->host[BYTES_EACH], 0);
    destroy_long_region(mr);
}

// A segment of four bytes may begin a message of 2^22, and who connects next needs memory as well.
static void bits__take_an_eighth_of_the_pool(void **state)
{
    enum { FIT = 2, MORE = 2 };
    struct alb_engine *engine = pair->hosts[1].engine;
    struct alb_region *mr = create_long_region();
    struct alb_qp *others[FIT + MORE][2];
    assert_int_equal(engine->config.csa_pool_bytes / 8, FIT * alb_buddy_block_bytes(MANY / 8));
    for (uint32_t i = 0; i < FIT + MORE; i++) {
        pair_connect(pair, ALB_QPT_UC, others[i], NULL);
        struct alb_csa_segment segment = segment_of(0, 0, 0, MANY * BYTES_EACH, BYTES_EACH);
        segment.dest_qpn = alb_qp_number(others[i][1]);
        segment.va = mr->iova;
        segment.rkey = alb_region_key(mr);
        arrive_segment(77, &segment, 1);
        assert_int_equal(alb_csa_uc_of(others[i][1])->in.is_open, i < FIT);
    }
    assert_int_equal(dropped(1, ALB_DROP_NO_RESOURCES), MORE);
    arrive(77, 0, 0, 0, 24, 8); // needs none
    assert_true(alb_csa_uc_of(qps[1])->in.is_open);
    alb_csa_uc_begin(alb_csa_uc_of(qps[1]), PAIR_PSN);
    arrive_one_of_many(mr, alb_region_key(mr), 0, 1);
    assert_false(alb_csa_uc_of(qps[1])->in.is_open);
    alb_csa_uc_begin(alb_csa_uc_of(qps[1]), PAIR_PSN);
    alb_csa_uc_close(alb_csa_uc_of(others[0][1]));
    arrive_one_of_many(mr, alb_region_key(mr), 0, 1);
    assert_true(alb_csa_uc_of(qps[1])->in.is_open);
    destroy_long_region(mr);
}

// The memory that the bits are going to have holds something else before.
static void spoil_pool(void)
{
    struct alb_buddy *pool = &pair->hosts[1].engine->csa->pool;
    void *block = alb_buddy_get(pool, MANY / 8);
    assert_non_null(block);
    memset(block, 0xff, MANY / 8);
    alb_buddy_put(pool, block, MANY / 8);
}

// A part of them is cleared when its first segment comes, so that none of a long message costs much.
static void bits__are_cleared_part_by_part(void **state)
{
    const struct alb_buddy *pool = &pair->hosts[1].engine->csa->pool;
    const struct alb_csa_uc_message *in = &alb_csa_uc_of(qps[1])->in;
    struct alb_region *mr = create_long_region();
    arrive(77, 0, 0, ALB_CSA_LAST, 8, 8);
    spoil_pool();
    arrive_one_of_many(mr, alb_region_key(mr), ALB_CSA_UC_PART, 1);
    size_t used = alb_buddy_used(pool);
    assert_int_equal(in->placed, 1);
    assert_int_equal(in->held[0], UINT64_MAX);
    assert_int_equal(in->held[ALB_CSA_UC_PART / 64], 1);
    assert_int_equal(in->held[2 * ALB_CSA_UC_PART / 64 - 1], 0);
    assert_int_equal(in->held[2 * ALB_CSA_UC_PART / 64], UINT64_MAX);
    for (uint32_t i = 1; i <= 2; i++) // all but the last, those with odd numbers first
        for (uint32_t index = i % 2; index < MANY - 1; index += 2)
            arrive_one_of_many(mr, alb_region_key(mr), index, (uint8_t)(index % 251 + 1));
    assert_int_equal(dropped(1, ALB_DROP_DUPLICATE), 1);
    assert_int_equal(in->placed, MANY - 1);
    arrive_one_of_many(mr, alb_region_key(mr), MANY - 1, 2);
    assert_true(in->is_whole);
    assert_int_equal(alb_buddy_used(pool), used - alb_buddy_block_bytes(MANY / 8));
    for (uint32_t index = 0; index < MANY - 1; index++)
        assert_int_equal(mr->host[BYTES_EACH * index], index == ALB_CSA_UC_PART ? 1 : index % 251 + 1);
    destroy_long_region(mr);
}

// ---- requests that fail half way
// ---------------------------------------------------------------------------------------------------------------------

// A WRITE of 16 segments leaves in part, then its memory goes.
static void break_write(uint64_t wr_id)
{
    struct pair_host *host = &pair->hosts[0];
    struct alb_region *mr;
    assert_int_equal(alb_mr_create(host->pd, host->memory, 65536, 0, 0, &mr), 0);
    struct alb_sge sge = {.addr = 0, .length = 16 * SEGMENT, .lkey = alb_region_key(mr)};
    struct alb_send_wr wr = {
        .wr_id = wr_id,
        .opcode = ALB_WR_RDMA_WRITE,
        .sge = &sge,
        .sge_count = 1,
        .remote_addr = pair_va(pair, 1, 0),
        .rkey = alb_region_key(pair->hosts[1].mr),
    };
    assert_int_equal(pair_post(pair, qps[0], &wr), 0);
    alb_engine_bells(host->engine, pair->now);
    host->tx.segment_capacity = 4;
    assert_int_equal(pair_send_batch(pair, 0), 4);
    host->tx.segment_capacity = PAIR_SEGMENTS;
    assert_int_equal(alb_mr_destroy(mr), 0);
    assert_int_equal(pair_send(pair, 0), 0);
    pair_expect(pair, 0, wr_id, ALB_WC_LOC_PROT_ERR);
    assert_int_equal(alb_qp_current_state(qps[0]), ALB_QPS_SQE);
}

// What follows does not look like a late part of it.
static void write__behind_one_that_broke_arrives(void **state)
{
    const struct alb_qp_attr attr = {.state = ALB_QPS_RTS, .cur_state = ALB_QPS_SQE};
    struct alb_qp_attr now;
    struct alb_qp_init init;
    break_write(1);
    pair_settle(pair);
    assert_int_equal(alb_csa_uc_of(qps[1])->in.placed, 4);
    assert_int_equal(alb_qp_modify(qps[0], &attr, ALB_QP_STATE | ALB_QP_CUR_STATE, pair->now), 0);
    alb_qp_query(qps[0], &now, &init);
    assert_int_equal(now.sq_psn, alb_psn_add(PAIR_PSN, 16));
    memset(pair->hosts[1].memory, 0, 8);
    ask(0, ALB_WR_RDMA_WRITE, 2, 8);
    pair_settle(pair);
    pair_expect(pair, 0, 2, ALB_WC_SUCCESS);
    expect_copied(8);
    assert_int_equal(dropped(1, ALB_DROP_OUT_OF_SEQUENCE), 0);
}

// ---- rates ----------------------------------------------------------------------------------------------------------

// A rate that the peer's marks have cut is for what is not acknowledged too.
static void marked__the_rate_holds(void **state)
{
    pair_free(pair);
    pair = pair_new(paced);
    pair_connect(pair, ALB_QPT_UC, qps, NULL);
    ask(0, ALB_WR_RDMA_WRITE, 1, 8);
    pair_settle(pair);
    pair_expect(pair, 0, 1, ALB_WC_SUCCESS);
    struct alb_assoc_live *live = alb_csa_uc_of(qps[0])->assoc->live;
    for (uint32_t i = 0; i < 8; i++) {
        alb_congestion_on_mark(live->engine->congestion, &live->congestion, 0, pair->now);
        pair_pass(pair, 100 * ALB_NS_PER_US);
    }
    for (uint32_t i = 0; i < 8; i++)
        ask(0, ALB_WR_RDMA_WRITE, 2 + i, 32 << 10);
    uint32_t before = 0, sent;
    while ((sent = pair_send(pair, 0)) > 0)
        before += sent;
    assert_in_range(before, 1, 100);
    for (uint32_t i = 0; i < 100; i++) {
        pair_pass(pair, 100 * ALB_NS_PER_US);
        pair_settle(pair);
    }
    for (uint32_t i = 0; i < 8; i++)
        pair_expect(pair, 0, 2 + i, ALB_WC_SUCCESS);
}

static void frames_of_other_services__are_dropped(void **state)
{
    struct alb_roce roce = {.opcode = ALB_UC_SEND_ONLY, .pkey = ALB_PKEY_DEFAULT, .dest_qpn = alb_qp_number(qps[1])};
    pair_inject(pair, 0, &roce, "abcd", 4);
    assert_int_equal(dropped(1, ALB_DROP_BAD_SERVICE), 1);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(first_packets__are_not_counted_and_ask),
        CASE(batch__that_is_full_leaves_the_rest_to_the_next_one),
        CASE(later_packets__are_counted_and_asked_for),
        CASE(after_an_outage__packets_are_counted_again),
        CASE(small_messages__share_a_packet),
        CASE(first_message_lost__others_are_taken_once_a_cookie_has_come_back),
        CASE(another_life__is_not_taken_once_bound),
        CASE(before_the_first__nobody_is_believed),
        CASE(numbers__begin_where_the_program_says),
        CASE(numbers__that_stay_leave_what_has_begun),
        CASE(segment_of_rc__is_not_taken),
        CASE(segments__in_any_order_but_the_last),
        CASE(last_before_others__loses_the_message),
        CASE(late__up_to_2_to_the_22_before_the_end),
        CASE(contradictions__lose_the_message),
        CASE(wrong_key__is_seen_before_the_bits_are_taken),
        CASE(no_memory_for_the_bits__loses_the_message),
        cmocka_unit_test_setup_teardown(bits__take_an_eighth_of_the_pool, set_up_small, tear_down),
        CASE(bits__are_cleared_part_by_part),
        CASE(write__behind_one_that_broke_arrives),
        CASE(marked__the_rate_holds),
        CASE(frames_of_other_services__are_dropped),
        cmocka_unit_test_setup_teardown(path_that_was_left__is_tried_and_taken_back, set_up_adaptive, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
