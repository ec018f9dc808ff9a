// SPDX-License-Identifier: BSD-2-Clause
// Memory registered with relaxed ordering: bytes are placed as they come, each once, and completions keep their order.
// Side 0 asks, side 1 has such memory, unless a test says otherwise.
#include "engine/region_claim.h"
#include "engine/tests/csa_pair.h"

#include <stdlib.h>

#define MS ALB_NS_PER_MS

enum {
    SEGMENT = CSA_PAIR_SEGMENT,
    RECV_AT = 64 << 10, // where receives are
};

struct relaxed {
    struct csa_pair *c;
    struct alb_region *mr[2]; // all of a side's memory, relaxed
};

static void make_relaxed(struct relaxed *r)
{
    for (int side = 0; side < 2; side++) {
        struct pair_host *host = &r->c->pair->hosts[side];
        assert_int_equal(alb_mr_create(host->pd, host->memory, PAIR_MEMORY_BYTES, (uintptr_t)host->memory,
                                       PAIR_ACCESS_ALL | ALB_ACCESS_RELAXED_ORDERING, &r->mr[side]),
                         0);
    }
}

static int setup(void **state)
{
    struct relaxed *r = calloc(1, sizeof(*r));
    assert_non_null(r);
    r->c = csa_pair_new(NULL, NULL);
    csa_pair_greet(r->c); // offset 0 is done
    make_relaxed(r);
    *state = r;
    return 0;
}

static int teardown(void **state)
{
    struct relaxed *r = *state;
    csa_pair_free(r->c);
    free(r);
    return 0;
}
#define TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

static uint8_t *memory(const struct relaxed *r, int side)
{
    return r->c->pair->hosts[side].memory;
}

// The segment of a WRITE to that offset of side 1's relaxed memory, with that PSN offset.
static struct alb_csa_segment relaxed_write(const struct relaxed *r, uint32_t at, int32_t psn, uint32_t index,
                                            uint32_t total, uint32_t bytes)
{
    bool is_last = index * SEGMENT + bytes == total;
    struct alb_csa_segment segment = csa_pair_write(r->c, 0, psn, index, total, bytes, is_last ? ALB_CSA_LAST : 0);
    segment.va = pair_va(r->c->pair, 1, at);
    segment.rkey = alb_region_key(r->mr[1]);
    return segment;
}

static void arrive(struct relaxed *r, const struct alb_csa_segment *segment, uint8_t value)
{
    csa_pair_arrive_segment(r->c, 0, segment, value);
}

static void expect_bytes(const struct relaxed *r, uint32_t at, uint32_t length, uint8_t value)
{
    for (uint32_t i = 0; i < length; i++)
        assert_int_equal(memory(r, 1)[at + i], value);
}

static void receive(struct relaxed *r, uint64_t wr_id, uint32_t at, uint32_t length, const struct alb_region *mr)
{
    struct alb_sge sge = {pair_va(r->c->pair, 1, at), length, alb_region_key(mr)};
    bool bell;
    assert_int_equal(alb_qp_recv_post(r->c->qps[1], wr_id, &sge, 1, &bell), 0);
}

// ---- WRITEs ---------------------------------------------------------------------------------------------------------

static void write__of_a_later_message_is_placed_at_once_and_only_once(void **state)
{
    struct relaxed *r = *state;
    const struct alb_stream_in *in = &r->c->csa[1]->in_requests;
    struct alb_csa_segment first = relaxed_write(r, 0, 1, 0, 8, 8), later = relaxed_write(r, 512, 2, 0, 100, 100);
    arrive(r, &later, 0x22);
    expect_bytes(r, 512, 100, 0x22);
    assert_true(in->cumulative == alb_psn_add(csa_pair_psn(0), 1)); // and is not executed
    assert_true(in->early_bytes < 100 + sizeof(struct alb_early));
    memset(memory(r, 1) + 512, 0x33, 100); // the memory's owner has gone on
    arrive(r, &later, 0x22);
    arrive(r, &first, 0x11);
    expect_bytes(r, 0, 8, 0x11);
    expect_bytes(r, 512, 100, 0x33);
    assert_true(in->cumulative == alb_psn_add(csa_pair_psn(0), 3));
    assert_int_equal(in->early_bytes, 0);
}

static void write__last_segment_does_not_wait_for_the_others(void **state)
{
    struct relaxed *r = *state;
    struct alb_csa_segment segments[3];
    for (uint32_t i = 0; i < 3; i++)
        segments[i] = relaxed_write(r, 0, 1 + (int32_t)i, i, 2 * SEGMENT + 5, i < 2 ? SEGMENT : 5);
    arrive(r, &segments[2], 3);
    expect_bytes(r, 2 * SEGMENT, 5, 3);
    arrive(r, &segments[0], 1);
    memset(memory(r, 1) + 2 * SEGMENT, 0x77, 5);
    arrive(r, &segments[1], 2);
    expect_bytes(r, 0, SEGMENT, 1);
    expect_bytes(r, SEGMENT, SEGMENT, 2);
    expect_bytes(r, 2 * SEGMENT, 5, 0x77);
    assert_true(r->c->csa[1]->in_requests.cumulative == alb_psn_add(csa_pair_psn(0), 4));
}

static void write__elsewhere_waits(void **state)
{
    struct relaxed *r = *state;
    struct alb_csa_segment first = relaxed_write(r, 0, 1, 0, 8, 8), later = relaxed_write(r, 512, 2, 0, 100, 100);
    later.rkey = alb_region_key(r->c->pair->hosts[1].mr);
    memset(memory(r, 1) + 512, 0, 100);
    arrive(r, &later, 0x22);
    expect_bytes(r, 512, 100, 0);
    arrive(r, &first, 0x11);
    expect_bytes(r, 512, 100, 0x22);
}

// Nothing of a message is placed whose turn would end in a refusal; it is refused then, and not before.
static void write__that_may_not_be_is_refused_in_its_turn(void **state)
{
    static const struct {
        uint32_t rkey_change, at;
    } cases[] = {{0x100, 0}, {0, PAIR_MEMORY_BYTES - 50}};
    for (uint32_t i = 0; i < ALB_COUNT(cases); i++) {
        void *all;
        setup(&all);
        struct relaxed *r = all;
        struct alb_csa_segment first = relaxed_write(r, 0, 1, 0, 8, 8);
        struct alb_csa_segment later = relaxed_write(r, cases[i].at, 2, 0, 2 * SEGMENT, SEGMENT);
        later.rkey ^= cases[i].rkey_change;
        later.payload_bytes = 40;
        later.total_bytes = 80;
        memset(memory(r, 1) + PAIR_MEMORY_BYTES - 50, 0, 50);
        arrive(r, &later, 0x22);
        expect_bytes(r, PAIR_MEMORY_BYTES - 50, 50, 0);
        assert_int_equal(alb_qp_current_state(r->c->qps[1]), ALB_QPS_RTS);
        arrive(r, &first, 0x11);
        assert_int_equal(alb_qp_current_state(r->c->qps[1]), ALB_QPS_ERR);
        teardown(&all);
    }
}

// Nor is the region's permission enough before its turn: the queue pair must give it, too.
static void write__that_the_queue_pair_does_not_allow_changes_nothing(void **state)
{
    struct relaxed *r = *state;
    struct alb_csa_segment first = relaxed_write(r, 0, 1, 0, SEGMENT + 100, SEGMENT);
    struct alb_csa_segment second = relaxed_write(r, 0, 2, 1, SEGMENT + 100, 100);
    r->c->qps[1]->attr.access = ALB_ACCESS_LOCAL_WRITE | ALB_ACCESS_RELAXED_ORDERING;
    memset(memory(r, 1), 0x33, SEGMENT + 100);
    arrive(r, &second, 0x22);
    expect_bytes(r, 0, SEGMENT + 100, 0x33);
    arrive(r, &first, 0x11);
    expect_bytes(r, 0, SEGMENT + 100, 0x33);
    assert_int_equal(alb_qp_current_state(r->c->qps[1]), ALB_QPS_ERR);
}

static void write__into_a_claimed_range_waits(void **state)
{
    struct relaxed *r = *state;
    struct alb_claim claim;
    struct alb_csa_segment first = relaxed_write(r, 0, 1, 0, 8, 8), later = relaxed_write(r, 512, 2, 0, 100, 100);
    alb_claim_init(&claim, r, NULL);
    assert_true(alb_region_claim(r->mr[1], &claim, pair_va(r->c->pair, 1, 600), 4));
    memset(memory(r, 1) + 512, 0, 100);
    arrive(r, &later, 0x22);
    expect_bytes(r, 512, 100, 0);
    alb_region_unclaim(&claim);
    arrive(r, &first, 0x11);
    expect_bytes(r, 512, 100, 0x22);
}

// The pool bounds what waits; that is headers only, here.
static void write__of_many_messages_needs_no_room_for_their_bytes(void **state)
{
    struct relaxed *r = *state;
    uint32_t room = r->c->engines[1]->config.csa_early_bytes_max, count = 100;
    assert_true(count * SEGMENT > room && count * sizeof(struct alb_early) < room);
    for (uint32_t i = 0; i < count; i++) {
        struct alb_csa_segment segment = relaxed_write(r, i * SEGMENT, 2 + (int32_t)i, 0, SEGMENT, SEGMENT);
        arrive(r, &segment, (uint8_t)i);
    }
    assert_int_equal(csa_pair_drops(r->c, 1, ALB_DROP_NO_RESOURCES), 0);
    struct alb_csa_segment first = relaxed_write(r, count * SEGMENT, 1, 0, 8, 8);
    arrive(r, &first, 0x11);
    for (uint32_t i = 0; i < count; i++)
        expect_bytes(r, i * SEGMENT, SEGMENT, (uint8_t)i);
    assert_true(r->c->csa[1]->in_requests.cumulative == alb_psn_add(csa_pair_psn(0), 2 + (int32_t)count));
}

// What is dropped comes again: had it been placed before, it would be so twice.
static void write__with_no_room_for_its_header_is_not_placed(void **state)
{
    struct relaxed *r = *state;
    const struct alb_stream_in *in = &r->c->csa[1]->in_requests;
    struct alb_csa_segment first = relaxed_write(r, 0, 1, 0, 8, 8), later = relaxed_write(r, 512, 2, 0, 100, 100);
    memset(memory(r, 1) + 512, 0x33, 100);
    r->c->engines[1]->config.csa_early_bytes_max = 0;
    arrive(r, &later, 0x22);
    assert_int_equal(csa_pair_drops(r->c, 1, ALB_DROP_NO_RESOURCES), 1);
    expect_bytes(r, 512, 100, 0x33);
    arrive(r, &first, 0x11);
    arrive(r, &later, 0x22);
    expect_bytes(r, 512, 100, 0x22);
    assert_true(in->cumulative == alb_psn_add(csa_pair_psn(0), 3));
}

// What must wait does so, if there is room for all of it.
static void write__that_cannot_be_placed_needs_room_for_its_bytes(void **state)
{
    struct relaxed *r = *state;
    const struct alb_stream_in *in = &r->c->csa[1]->in_requests;
    struct alb_csa_segment later = relaxed_write(r, 512, 2, 0, 512, 512);
    later.rkey = alb_region_key(r->c->pair->hosts[1].mr);
    r->c->engines[1]->config.csa_early_bytes_max = 512;
    arrive(r, &later, 0x22);
    assert_int_equal(csa_pair_drops(r->c, 1, ALB_DROP_NO_RESOURCES), 1);
    assert_int_equal(in->early_bytes, 0);
    assert_int_equal(r->c->engines[1]->csa->waiting_bytes, 0);
}

// ---- SENDs ----------------------------------------------------------------------------------------------------------

static struct alb_csa_segment relaxed_send(const struct relaxed *r, uint32_t number, int32_t psn, uint32_t bytes)
{
    struct alb_csa_segment segment = csa_pair_write(r->c, 0, psn, 0, bytes, bytes, ALB_CSA_LAST);
    segment.op = ALB_CSA_SEND;
    segment.recv_number = number;
    return segment;
}

static void send__into_the_receive_that_it_names(void **state)
{
    struct relaxed *r = *state;
    for (uint32_t i = 0; i < 4; i++)
        receive(r, i, RECV_AT + 256 * i, 256, r->mr[1]);
    memset(memory(r, 1) + RECV_AT, 0, 1024);
    for (uint32_t i = 3; i > 0; i--) { // the last one first
        struct alb_csa_segment segment = relaxed_send(r, i, 1 + (int32_t)i, 100);
        arrive(r, &segment, (uint8_t)i);
        expect_bytes(r, RECV_AT + 256 * i, 100, (uint8_t)i);
        csa_pair_expect_none(r->c, 1);
    }
    expect_bytes(r, RECV_AT, 256, 0);
    struct alb_csa_segment first = relaxed_send(r, 0, 1, 100);
    arrive(r, &first, 9);
    for (uint32_t i = 0; i < 4; i++)
        csa_pair_expect(r->c, 1, i, ALB_WC_SUCCESS);
    for (uint32_t i = 0; i < 4; i++)
        expect_bytes(r, RECV_AT + 256 * i, 100, i ? (uint8_t)i : 9);
}

// A message of several segments has taken its receive; the one behind it takes the next.
static void send__behind_one_that_has_begun(void **state)
{
    struct relaxed *r = *state;
    receive(r, 0, RECV_AT, 4096, r->mr[1]);
    receive(r, 1, RECV_AT + 4096, 256, r->mr[1]);
    struct alb_csa_segment part = csa_pair_write(r->c, 0, 1, 0, SEGMENT + 4, SEGMENT, 0);
    struct alb_csa_segment last = csa_pair_write(r->c, 0, 2, 1, SEGMENT + 4, 4, ALB_CSA_LAST);
    part.op = last.op = ALB_CSA_SEND;
    arrive(r, &part, 1);
    struct alb_csa_segment later = relaxed_send(r, 1, 3, 50);
    arrive(r, &later, 2);
    expect_bytes(r, RECV_AT + 4096, 50, 2);
    csa_pair_expect_none(r->c, 1);
    arrive(r, &last, 3);
    csa_pair_expect(r->c, 1, 0, ALB_WC_SUCCESS);
    csa_pair_expect(r->c, 1, 1, ALB_WC_SUCCESS);
    expect_bytes(r, RECV_AT, SEGMENT, 1);
    expect_bytes(r, RECV_AT + SEGMENT, 4, 3);
}

// No receive that is not posted, not relaxed, or too short.
static void send__that_waits(void **state)
{
    struct relaxed *r = *state;
    receive(r, 0, RECV_AT, 64, r->mr[1]);
    receive(r, 1, RECV_AT + 256, 64, r->c->pair->hosts[1].mr);
    memset(memory(r, 1) + RECV_AT, 0, 1024);
    struct alb_csa_segment strict = relaxed_send(r, 1, 2, 50), absent = relaxed_send(r, 2, 3, 50);
    arrive(r, &strict, 1);
    arrive(r, &absent, 2);
    expect_bytes(r, RECV_AT, 1024, 0);
    receive(r, 2, RECV_AT + 512, 64, r->mr[1]);
    struct alb_csa_segment first = relaxed_send(r, 0, 1, 50);
    arrive(r, &first, 3);
    for (uint32_t i = 0; i < 3; i++)
        csa_pair_expect(r->c, 1, i, ALB_WC_SUCCESS);
    expect_bytes(r, RECV_AT, 50, 3);
    expect_bytes(r, RECV_AT + 256, 50, 1);
    expect_bytes(r, RECV_AT + 512, 50, 2);
}

static void send__too_long_for_its_receive_is_refused_in_its_turn(void **state)
{
    struct relaxed *r = *state;
    receive(r, 0, RECV_AT, 64, r->mr[1]);
    receive(r, 1, RECV_AT + 64, 64, r->mr[1]);
    memset(memory(r, 1) + RECV_AT, 0, 256);
    struct alb_csa_segment later = relaxed_send(r, 1, 2, 65), first = relaxed_send(r, 0, 1, 8);
    arrive(r, &later, 1);
    expect_bytes(r, RECV_AT, 256, 0);
    arrive(r, &first, 2);
    csa_pair_expect(r->c, 1, 0, ALB_WC_SUCCESS);
    csa_pair_expect(r->c, 1, 1, ALB_WC_LOC_LEN_ERR);
}

// ---- READs ----------------------------------------------------------------------------------------------------------

static struct alb_csa_segment read_data(const struct relaxed *r, int32_t psn, int32_t request, uint32_t bytes)
{
    return (struct alb_csa_segment){
        .op = ALB_CSA_READ_DATA,
        .flags = ALB_CSA_LAST,
        .dest_qpn = alb_qp_number(r->c->qps[0]),
        .psn = alb_psn_add(csa_pair_psn(0), psn),
        .request_psn = alb_psn_add(csa_pair_psn(0), request),
        .total_bytes = bytes,
        .payload_bytes = bytes,
    };
}

static void ask_read(struct relaxed *r, uint64_t wr_id, uint32_t at, const struct alb_region *mr)
{
    struct alb_sge sge = {pair_va(r->c->pair, 0, at), 8, alb_region_key(mr)};
    struct alb_send_wr wr = {
        .wr_id = wr_id,
        .opcode = ALB_WR_RDMA_READ,
        .flags = ALB_SEND_SIGNALED,
        .sge = &sge,
        .sge_count = 1,
        .remote_addr = pair_va(r->c->pair, 1, 0),
        .rkey = alb_region_key(r->c->pair->hosts[1].mr),
    };
    assert_int_equal(pair_post(r->c->pair, r->c->qps[0], &wr), 0);
}

static void read__answers_are_placed_as_they_come(void **state)
{
    struct relaxed *r = *state;
    ask_read(r, 1, 0, r->mr[0]);
    ask_read(r, 2, 64, r->mr[0]);
    ask_read(r, 3, 128, r->c->pair->hosts[0].mr);
    pair_send(r->c->pair, 0);
    memset(memory(r, 0), 0, 256);
    struct alb_csa_segment third = read_data(r, 2, 3, 8), second = read_data(r, 1, 2, 8), first = read_data(r, 0, 1, 8);
    csa_pair_arrive_segment(r->c, 1, &third, 3);
    assert_int_equal(memory(r, 0)[128], 0); // not there
    csa_pair_arrive_segment(r->c, 1, &second, 2);
    assert_int_equal(memory(r, 0)[64], 2);
    memory(r, 0)[64] = 0x55;
    csa_pair_expect_none(r->c, 0);
    csa_pair_arrive_segment(r->c, 1, &first, 1);
    csa_pair_arrive_report(r->c, 1, 50, 4, 0, ALB_AETH_SYNDROME_ACK(ALB_AETH_CREDIT_NO_LIMIT));
    for (uint64_t i = 1; i <= 3; i++)
        csa_pair_expect(r->c, 0, i, ALB_WC_SUCCESS);
    assert_int_equal(memory(r, 0)[0], 1);
    assert_int_equal(memory(r, 0)[64], 0x55);
    assert_int_equal(memory(r, 0)[128], 3);
}

static void read__an_answer_with_no_room_for_its_header_is_not_placed(void **state)
{
    struct relaxed *r = *state;
    ask_read(r, 1, 0, r->mr[0]);
    ask_read(r, 2, 64, r->mr[0]);
    pair_send(r->c->pair, 0);
    memset(memory(r, 0), 0, 256);
    r->c->engines[0]->config.csa_early_bytes_max = 0;
    struct alb_csa_segment second = read_data(r, 1, 2, 8);
    csa_pair_arrive_segment(r->c, 1, &second, 2);
    assert_int_equal(csa_pair_drops(r->c, 0, ALB_DROP_NO_RESOURCES), 1);
    assert_int_equal(memory(r, 0)[64], 0);
}

// What fits no request is found out when it is its turn.
static void read__an_answer_that_fits_nothing_is_not_placed(void **state)
{
    struct relaxed *r = *state;
    ask_read(r, 1, 0, r->mr[0]);
    ask_read(r, 2, 64, r->mr[0]);
    pair_send(r->c->pair, 0);
    memset(memory(r, 0), 0, 256);
    struct alb_csa_segment wrong = read_data(r, 1, 9, 8), longer = read_data(r, 2, 2, 16);
    csa_pair_arrive_segment(r->c, 1, &wrong, 3);
    csa_pair_arrive_segment(r->c, 1, &longer, 3);
    for (uint32_t i = 0; i < 256; i++)
        assert_int_equal(memory(r, 0)[i], 0);
    struct alb_csa_segment first = read_data(r, 0, 1, 8);
    csa_pair_arrive_segment(r->c, 1, &first, 1);
    csa_pair_expect(r->c, 0, 1, ALB_WC_SUCCESS);
    csa_pair_expect(r->c, 0, 2, ALB_WC_BAD_RESP_ERR);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(write__of_a_later_message_is_placed_at_once_and_only_once),
        TEST(write__last_segment_does_not_wait_for_the_others),
        TEST(write__elsewhere_waits),
        cmocka_unit_test(write__that_may_not_be_is_refused_in_its_turn),
        TEST(write__that_the_queue_pair_does_not_allow_changes_nothing),
        TEST(write__into_a_claimed_range_waits),
        TEST(write__of_many_messages_needs_no_room_for_their_bytes),
        TEST(write__with_no_room_for_its_header_is_not_placed),
        TEST(write__that_cannot_be_placed_needs_room_for_its_bytes),
        TEST(send__into_the_receive_that_it_names),
        TEST(send__behind_one_that_has_begun),
        TEST(send__that_waits),
        TEST(send__too_long_for_its_receive_is_refused_in_its_turn),
        TEST(read__answers_are_placed_as_they_come),
        TEST(read__an_answer_with_no_room_for_its_header_is_not_placed),
        TEST(read__an_answer_that_fits_nothing_is_not_placed),
    };
    return cmocka_run_group_tests_name("csa_relaxed", tests, NULL, NULL);
}
