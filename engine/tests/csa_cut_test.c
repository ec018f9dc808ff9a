// SPDX-License-Identifier: BSD-2-Clause
// How long segments are: as long as a packet, or such that bursts can be of them.
#include "engine/tests/csa_pair.h"

#include "engine/csa_cut.h"

enum {
    MOST = 1384, // what a packet of 1,500 bytes carries of a WRITE
    LONGER_BY = 32,
    EVEN_PACKETS = 32,
};

static void send_bursts(struct alb_engine_config *config)
{
    config->sends_bursts = true;
}

static void cut__fills_packets_where_there_are_no_bursts(void **state)
{
    struct csa_pair *c = *state;
    assert_int_equal(alb_csa_cut(c->engines[0], 2048, MOST, 0), MOST);
    assert_int_equal(alb_csa_cut(c->engines[0], 100, MOST, 0), MOST);
}

static void cut__messages_of_some_packets_evenly(void **state)
{
    struct csa_pair *c = csa_pair_new(send_bursts, NULL);
    const struct {
        uint32_t length, each;
    } cuts[] = {
        {0, MOST},        {MOST, MOST},       {MOST + 8, MOST / 2 + 4},
        {2048, 1024},     {4096, 1024},       {8192, 1024},
        {16384, 1024},    {32768, 1024},      {65536, MOST}, // fills bursts by itself
        {2044, MOST},                                        // 511 words: 7 times 73
        {2045, 1024},                                        // and three bytes of pad
        {3 * MOST, MOST}, {UINT32_MAX, MOST},
    };
    for (size_t i = 0; i < ALB_COUNT(cuts); i++)
        assert_int_equal(alb_csa_cut(c->engines[0], cuts[i].length, MOST, 0), cuts[i].each);
    csa_pair_free(c);
}

// All packets are of one length, at most a third more of them, or three instead of two; the last one carries something.
static void expect_even(const struct alb_engine *engine, uint32_t length, uint32_t longer_by)
{
    uint32_t most = MOST - longer_by, each = alb_csa_cut(engine, length, most, longer_by);
    uint32_t fewest = (length + most - 1) / most, packets = (length + each - 1) / each;
    assert_true(each % 8 == 0 && each > 0 && each <= most);
    if (each == most)
        return;
    uint32_t last = length - (packets - 1) * each;
    assert_true(packets > 1 && fewest <= EVEN_PACKETS && packets <= fewest + ALB_MAX(fewest / 3, 1u));
    assert_int_equal((last + longer_by + 3) & ~3u, each);
}

static void cut__any_length(void **state)
{
    struct csa_pair *c = csa_pair_new(send_bursts, NULL);
    for (uint32_t length = 1; length < 50000; length++) {
        expect_even(c->engines[0], length, 0);
        expect_even(c->engines[0], length, LONGER_BY);
    }
    csa_pair_free(c);
}

// Whatever a packet carries, no segment ends within an aligned unit of 8 bytes.
static void payload__in_whole_units(void **state)
{
    static const struct {
        enum alb_csa_type type;
        uint8_t op, flags;
    } kinds[] = {{ALB_CSA_REQUEST, ALB_CSA_SEND, 0},
                 {ALB_CSA_REQUEST, ALB_CSA_WRITE, 0},
                 {ALB_CSA_REQUEST, ALB_CSA_WRITE, ALB_CSA_REFLECT},
                 {ALB_CSA_RESPONSE, ALB_CSA_READ_DATA, 0}};
    struct alb_assoc assoc = {0};
    for (size_t i = 0; i < ALB_COUNT(kinds); i++) {
        for (assoc.payload_max = 1000; assoc.payload_max < 1100; assoc.payload_max++) {
            uint32_t bytes = alb_csa_segment_payload(&assoc, kinds[i].type, kinds[i].op, kinds[i].flags);
            uint32_t header_bytes = alb_csa_segment_header_bytes(kinds[i].type, kinds[i].op, kinds[i].flags);
            uint32_t all = ALB_CSA_OUTER_BYTES + header_bytes + bytes + ALB_ICRC_BYTES;
            assert_int_equal(bytes % 8, 0);
            assert_in_range(assoc.payload_max - all, 0, 7);
        }
    }
}

// Returns how many packets leave in the first burst.
static uint32_t send_burst(struct csa_pair *c)
{
    alb_engine_bells(c->engines[0], c->pair->now);
    assert_true(pair_send_batch(c->pair, 0) > 0);
    return c->pair->hosts[0].bursts[0].segment_count;
}

// Requests of bytes at the start of both memories.
static void settle(struct csa_pair *c, uint32_t requests, uint32_t bytes)
{
    pair_settle(c->pair);
    for (uint32_t i = 0; i < requests; i++)
        csa_pair_expect(c, 0, 1, ALB_WC_SUCCESS);
    assert_memory_equal(c->pair->hosts[0].memory, c->pair->hosts[1].memory, bytes);
}

// Five and a half segments, five times: 30 packets of one length.
static void burst__of_several_messages(void **state)
{
    struct csa_pair *c = csa_pair_new(send_bursts, NULL);
    csa_pair_greet(c);
    for (uint32_t i = 0; i < 5; i++)
        csa_pair_ask(c, ALB_WR_RDMA_WRITE, 1, ALB_SEND_SIGNALED, 5 * CSA_PAIR_SEGMENT + 544);
    assert_int_equal(send_burst(c), 30);
    settle(c, 5, 5 * CSA_PAIR_SEGMENT + 544);
    csa_pair_free(c);
}

// What is small does not make the packet before it longer than the burst's others, else it would begin another one.
static void burst__ends_with_what_is_small(void **state)
{
    struct csa_pair *c = csa_pair_new(send_bursts, NULL);
    struct csa_seen seen;
    csa_pair_greet(c);
    csa_pair_ask(c, ALB_WR_RDMA_WRITE, 1, ALB_SEND_SIGNALED, 3 * CSA_PAIR_SEGMENT / 2);
    csa_pair_ask(c, ALB_WR_RDMA_WRITE, 1, ALB_SEND_SIGNALED, 8);
    assert_int_equal(send_burst(c), 3);
    csa_pair_look(c, 0, 2, &seen);
    assert_int_equal(seen.count, 1);
    assert_int_equal(seen.frames[0].segment.total_bytes, 8);
    settle(c, 2, 3 * CSA_PAIR_SEGMENT / 2);
    csa_pair_free(c);
}

// A report goes in a short packet behind, of the class of those before it.
static void burst__ends_with_a_report(void **state)
{
    struct csa_pair *c = csa_pair_new(send_bursts, NULL);
    struct csa_seen seen;
    csa_pair_greet(c);
    assert_int_equal(pair_ask(c->pair, c->qps[1], ALB_WR_RDMA_WRITE, 1, ALB_SEND_SIGNALED, 0, 8), 0);
    pair_send(c->pair, 1);
    pair_deliver_all(c->pair, 1);
    csa_pair_ask(c, ALB_WR_RDMA_WRITE, 1, ALB_SEND_SIGNALED, 3 * CSA_PAIR_SEGMENT / 2);
    assert_int_equal(send_burst(c), 3);
    csa_pair_look(c, 0, 2, &seen);
    assert_int_equal(seen.frames[seen.count - 1].type, ALB_CSA_REPORT);
    pair_settle(c->pair);
    csa_pair_expect(c, 0, 1, ALB_WC_SUCCESS);
    csa_pair_expect(c, 1, 1, ALB_WC_SUCCESS);
    csa_pair_free(c);
}

static void set_class(struct alb_qp_attr *attr, int side)
{
    attr->av.traffic_class = 0x48;
}

// Behind what is short, it may: here a packet that had to end, since the next request is of another traffic class.
static void burst__of_short_packets_does_not_bound_those_behind(void **state)
{
    struct csa_pair *c = csa_pair_new(send_bursts, NULL);
    struct alb_qp *others[2];
    csa_pair_greet(c);
    pair_connect(c->pair, ALB_QPT_RC, others, set_class);
    csa_pair_ask(c, ALB_WR_RDMA_WRITE, 1, ALB_SEND_SIGNALED, 8);
    for (uint32_t i = 0; i < 8; i++)
        assert_int_equal(pair_ask(c->pair, others[0], ALB_WR_RDMA_WRITE, 1, ALB_SEND_SIGNALED, 0, 8), 0);
    assert_int_equal(pair_send(c->pair, 0), 2);
    settle(c, 9, 8);
    csa_pair_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CSA_PAIR_TEST(cut__fills_packets_where_there_are_no_bursts),
        cmocka_unit_test(cut__messages_of_some_packets_evenly),
        cmocka_unit_test(cut__any_length),
        cmocka_unit_test(payload__in_whole_units),
        cmocka_unit_test(burst__of_several_messages),
        cmocka_unit_test(burst__ends_with_what_is_small),
        cmocka_unit_test(burst__ends_with_a_report),
        cmocka_unit_test(burst__of_short_packets_does_not_bound_those_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
