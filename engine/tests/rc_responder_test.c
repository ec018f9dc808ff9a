// SPDX-License-Identifier: BSD-2-Clause
// What the responder does with requests: takes them in order, once; refuses; remembers. Side 0 asks by hand, side 1
// answers.
#include "engine/rc.h"

#include "engine/tests/pair_expect.h"

enum {
    MTU = 1024,
};

static const uint8_t payload[MTU * 2] = {1, 2, 3, 4, 5, 6, 7, 8};

static void arrive(struct pair_qps *c, const struct alb_roce *roce, uint32_t payload_bytes)
{
    pair_inject(c->pair, 0, roce, payload, payload_bytes);
}

static void write_at(struct pair_qps *c, int32_t psn_offset)
{
    struct alb_roce roce = pair_request(c, ALB_RC_WRITE_ONLY, psn_offset, 8);
    arrive(c, &roce, 8);
}

static void send_at(struct pair_qps *c, int32_t psn_offset)
{
    struct alb_roce roce = pair_request(c, ALB_RC_SEND_ONLY, psn_offset, 0);
    arrive(c, &roce, 8);
}

// What side 1 sends next, or NULL.
static const struct alb_roce *answer(struct pair_qps *c)
{
    while (pair_count(c->pair, 1) > 0)
        pair_lose(c->pair, 1);
    pair_send(c->pair, 1);
    const struct pair_packet *packet = pair_peek(c->pair, 1, 0);
    return packet ? &packet->roce : NULL;
}

static void expect_ack(struct pair_qps *c, int32_t psn_offset, uint8_t syndrome)
{
    const struct alb_roce *roce = answer(c);
    assert_non_null(roce);
    assert_int_equal(pair_count(c->pair, 1), 1);
    assert_int_equal(roce->opcode, ALB_RC_ACK);
    assert_int_equal(roce->psn, alb_psn_add(PAIR_PSN, psn_offset));
    assert_int_equal(roce->syndrome, syndrome);
    assert_int_equal(roce->dest_qpn, alb_qp_number(c->qps[0]));
}

static uint64_t counted(const struct pair_qps *c, enum alb_stat stat)
{
    return c->pair->hosts[1].stats.sum.counter[stat];
}

static uint64_t dropped(const struct pair_qps *c, enum alb_drop reason)
{
    return c->pair->hosts[1].stats.dropped[reason];
}

#define ACK       ALB_AETH_SYNDROME_ACK(ALB_AETH_CREDIT_NO_LIMIT)
#define NAK(code) ALB_AETH_SYNDROME_NAK(code)

static void responder__acknowledges_when_asked(void **state)
{
    struct pair_qps *c = *state;
    struct alb_roce roce = pair_request(c, ALB_RC_WRITE_ONLY, 0, 8);
    roce.ackreq = false;
    arrive(c, &roce, 8);
    assert_null(answer(c));
    write_at(c, 1);
    expect_ack(c, 1, ACK);
    assert_null(answer(c));
    assert_memory_equal(c->pair->hosts[1].memory, payload, 8);
}

// The message sequence number counts requests that are complete (9.7.7.1).
static void responder__counts_messages(void **state)
{
    struct pair_qps *c = *state;
    struct alb_roce first = pair_request(c, ALB_RC_WRITE_FIRST, 0, MTU + 8);
    arrive(c, &first, MTU);
    assert_int_equal(answer(c)->msn, 0);
    struct alb_roce last = pair_request(c, ALB_RC_WRITE_LAST, 1, 0);
    arrive(c, &last, 8);
    assert_int_equal(answer(c)->msn, 1);
    write_at(c, 2);
    assert_int_equal(answer(c)->msn, 2);
    write_at(c, 2); // a duplicate is no message
    assert_int_equal(answer(c)->msn, 2);
}

static void responder__a_duplicate_is_acknowledged_and_not_executed(void **state)
{
    struct pair_qps *c = *state;
    assert_int_equal(pair_receive(c->pair, c->qps[1], 1, 0, 64), 0);
    assert_int_equal(pair_receive(c->pair, c->qps[1], 2, 64, 64), 0);
    send_at(c, 0);
    write_at(c, 1);
    pair_expect(c->pair, 1, 1, ALB_WC_SUCCESS);
    c->pair->hosts[1].memory[0] = 99;
    send_at(c, 0);
    write_at(c, 1);
    expect_ack(c, 1, ACK);
    struct alb_wc wc;
    assert_false(pair_poll(c->pair, 1, &wc));
    assert_int_equal(c->pair->hosts[1].memory[0], 99);
    assert_int_equal(counted(c, ALB_STAT_duplicate_request), 2);
    assert_int_equal(dropped(c, ALB_DROP_DUPLICATE), 2);
}

// A gap is reported once; what follows it is dropped until the missing packet is there (9.7.5.2.8).
static void responder__reports_a_gap_once(void **state)
{
    struct pair_qps *c = *state;
    write_at(c, 0);
    write_at(c, 2);
    expect_ack(c, 1, NAK(ALB_NAK_PSN_SEQUENCE_ERROR));
    write_at(c, 3);
    write_at(c, 2);
    assert_null(answer(c));
    write_at(c, 1);
    expect_ack(c, 1, ACK);
    write_at(c, 3);
    expect_ack(c, 2, NAK(ALB_NAK_PSN_SEQUENCE_ERROR));
    assert_int_equal(counted(c, ALB_STAT_out_of_seq_request), 4);
    assert_int_equal(counted(c, ALB_STAT_sent_seq_err), 2);
}

static void responder__the_far_half_is_behind(void **state)
{
    struct pair_qps *c = *state;
    write_at(c, 0x7fffff);
    expect_ack(c, 0, NAK(ALB_NAK_PSN_SEQUENCE_ERROR));
    write_at(c, -0x800000);
    expect_ack(c, -1, ACK);
}

static void responder__not_ready(void **state)
{
    struct pair_qps *c = *state;
    send_at(c, 0);
    expect_ack(c, 0, ALB_AETH_SYNDROME_RNR(1));
    assert_int_equal(counted(c, ALB_STAT_send_rnr_err), 1);
    write_at(c, 1); // was on its way behind it
    assert_null(answer(c));
    assert_int_equal(pair_receive(c->pair, c->qps[1], 1, 0, 64), 0);
    send_at(c, 0);
    pair_expect(c->pair, 1, 1, ALB_WC_SUCCESS);
    write_at(c, 1);
    expect_ack(c, 1, ACK);
}

struct refusal {
    struct alb_roce roce;
    uint32_t payload_bytes;
    uint8_t nak;
    enum alb_event_type event;
    enum alb_wc_status of_receive; // of a receive that was taken; else SUCCESS: it is flushed
};

static enum alb_stat stat_of(uint8_t nak)
{
    return nak == ALB_NAK_INVALID_REQUEST       ? ALB_STAT_resp_remote_invalid_request
           : nak == ALB_NAK_REMOTE_ACCESS_ERROR ? ALB_STAT_resp_remote_access_errors
                                                : ALB_STAT_resp_remote_op_errors;
}

static enum alb_drop drop_of(const struct refusal *refusal)
{
    if (refusal->of_receive == ALB_WC_LOC_LEN_ERR)
        return ALB_DROP_RECEIVE_TOO_SHORT;
    return refusal->nak == ALB_NAK_INVALID_REQUEST ? ALB_DROP_BAD_REQUEST : ALB_DROP_ACCESS;
}

static void check_refusal(struct pair_qps *c, const struct refusal *refusal)
{
    const uint64_t *dropped = &c->pair->hosts[1].stats.dropped[drop_of(refusal)], dropped_before = *dropped;
    struct alb_event event;
    bool has_event = false, has_failure = false;
    const uint64_t *count = &c->pair->hosts[1].stats.sum.counter[stat_of(refusal->nak)], before = *count;
    arrive(c, &refusal->roce, refusal->payload_bytes);
    assert_int_equal(*count, before + 1);
    assert_int_equal(*dropped, dropped_before + 1);
    assert_int_equal(alb_qp_current_state(c->qps[1]), ALB_QPS_ERR);
    pair_expect(c->pair, 1, 7, refusal->of_receive == ALB_WC_SUCCESS ? ALB_WC_WR_FLUSH_ERR : refusal->of_receive);
    while (alb_engine_event(c->pair->hosts[1].engine, &event)) {
        has_event |= event.type == refusal->event;
        if (event.type == ALB_EVENT_QP_FAILED) {
            has_failure = true;
            assert_true(event.failure.at_responder);
            assert_int_equal(event.failure.syndrome, NAK(refusal->nak));
        }
    }
    assert_true(has_event && has_failure);
    assert_false(alb_qp_is_quiet(c->qps[1]));
    expect_ack(c, 0, NAK(refusal->nak));
    assert_null(answer(c));
    assert_true(alb_qp_is_quiet(c->qps[1]));
    write_at(c, 0);
    assert_null(answer(c));
}

// Whatever is refused: the peer learns why, the program learns it too, and the queue pair is in error (9.9.3).
static void responder__refusals(void **state)
{
    enum {
        WRONG_KEY,
        BEYOND,
        BAD_ORDER,
        TOO_LONG_A_PACKET,
        TOO_LONG_FOR_RECEIVE,
        MISALIGNED,
        ATOMIC_WRITE_OF_FOUR,
        READ_KEY,
        ATOMIC_KEY,
        BAD_INVALIDATE,
        COUNT,
    };
    struct pair_qps *c = *state;
    for (int i = 0; i < COUNT; i++) {
        struct refusal refusal = {.payload_bytes = 8};
        pair_connect(c->pair, ALB_QPT_RC, c->qps, NULL);
        assert_int_equal(pair_receive(c->pair, c->qps[1], 7, 0, 64), 0);
        struct alb_roce roce = pair_request(c, ALB_RC_WRITE_ONLY, 0, 8);
        refusal.nak = ALB_NAK_INVALID_REQUEST;
        switch (i) {
        case WRONG_KEY:
            roce.rkey ^= 1;
            refusal.nak = ALB_NAK_REMOTE_ACCESS_ERROR;
            break;
        case BEYOND:
            roce.va = pair_va(c->pair, 1, PAIR_MEMORY_BYTES - 7);
            refusal.nak = ALB_NAK_REMOTE_ACCESS_ERROR;
            break;
        case BAD_ORDER:
            roce.opcode = ALB_RC_WRITE_LAST;
            break;
        case TOO_LONG_A_PACKET:
            roce.length = refusal.payload_bytes = MTU + 4;
            break;
        case TOO_LONG_FOR_RECEIVE:
            roce.opcode = ALB_RC_SEND_ONLY;
            refusal.payload_bytes = 65;
            refusal.of_receive = ALB_WC_LOC_LEN_ERR;
            break;
        case MISALIGNED:
            roce.opcode = ALB_RC_FETCH_ADD;
            roce.va += 4;
            refusal.payload_bytes = 0;
            break;
        case ATOMIC_WRITE_OF_FOUR:
            roce.opcode = ALB_RC_ATOMIC_WRITE;
            roce.length = refusal.payload_bytes = 4;
            break;
        case READ_KEY:
            roce.opcode = ALB_RC_READ_REQUEST;
            roce.rkey ^= 1;
            refusal.payload_bytes = 0;
            refusal.nak = ALB_NAK_REMOTE_ACCESS_ERROR;
            break;
        case ATOMIC_KEY:
            roce.opcode = ALB_RC_CMP_SWAP;
            roce.rkey ^= 1;
            refusal.payload_bytes = 0;
            refusal.nak = ALB_NAK_REMOTE_ACCESS_ERROR;
            break;
        case BAD_INVALIDATE:
            roce.opcode = ALB_RC_SEND_ONLY_INVALIDATE;
            roce.invalidate_rkey = alb_region_key(c->pair->hosts[1].mr);
            refusal.nak = ALB_NAK_REMOTE_ACCESS_ERROR;
            refusal.of_receive = ALB_WC_LOC_ACCESS_ERR;
            break;
        }
        refusal.event = refusal.nak == ALB_NAK_INVALID_REQUEST ? ALB_EVENT_QP_REQ_ERR : ALB_EVENT_QP_ACCESS_ERR;
        refusal.roce = roce;
        check_refusal(c, &refusal);
    }
}

static void responder__a_broken_receive(void **state)
{
    struct pair_qps *c = *state;
    struct alb_sge sge = {.addr = 8, .length = 64, .lkey = 12345};
    bool bell;
    assert_int_equal(alb_qp_recv_post(c->qps[1], 7, &sge, 1, &bell), 0);
    struct refusal refusal = {
        .roce = pair_request(c, ALB_RC_SEND_ONLY, 0, 0),
        .payload_bytes = 8,
        .nak = ALB_NAK_REMOTE_OPERATIONAL_ERROR,
        .event = ALB_EVENT_QP_FATAL,
        .of_receive = ALB_WC_LOC_PROT_ERR,
    };
    check_refusal(c, &refusal);
}

// The program can't learn of the second message, so its sender may not believe that it has: the NAK stands in place of
// the first one's acknowledgement.
static void responder__completion_queue_overruns(void **state)
{
    struct pair_qps *c = *state;
    struct alb_wc wc = {0};
    for (uint32_t i = 0; i < 2; i++)
        assert_int_equal(pair_receive(c->pair, c->qps[1], i, 0, 64), 0);
    send_at(c, 0);
    while (alb_cq_push(c->pair->hosts[1].cq, &wc, false, c->pair->now))
        ;
    send_at(c, 1);
    assert_int_equal(alb_qp_current_state(c->qps[1]), ALB_QPS_ERR);
    expect_ack(c, 1, NAK(ALB_NAK_REMOTE_OPERATIONAL_ERROR));
    assert_null(answer(c));
}

// What was asked before has its answer first.
static void responder__completion_queue_overruns_behind_a_read(void **state)
{
    struct pair_qps *c = *state;
    struct alb_wc wc = {0};
    assert_int_equal(pair_receive(c->pair, c->qps[1], 1, 8192, 64), 0);
    while (alb_cq_push(c->pair->hosts[1].cq, &wc, false, c->pair->now))
        ;
    assert_int_equal(pair_ask(c->pair, c->qps[0], ALB_WR_RDMA_READ, 1, ALB_SEND_SIGNALED, 0, 64), 0);
    assert_int_equal(pair_ask(c->pair, c->qps[0], ALB_WR_SEND, 2, ALB_SEND_SIGNALED, 0, 8), 0);
    pair_settle(c->pair);
    pair_expect(c->pair, 0, 1, ALB_WC_SUCCESS);
    pair_expect(c->pair, 0, 2, ALB_WC_REM_OP_ERR);
}

// What the queue pair does not allow at all is an invalid request, whatever the key says (9.7.4.1.5).
static void responder__rights_of_the_queue_pair(void **state)
{
    static const struct {
        uint8_t opcode;
        uint32_t right;
        uint32_t payload_bytes;
    } rows[] = {
        {ALB_RC_WRITE_ONLY, ALB_ACCESS_REMOTE_WRITE, 8},   {ALB_RC_READ_REQUEST, ALB_ACCESS_REMOTE_READ, 0},
        {ALB_RC_FETCH_ADD, ALB_ACCESS_REMOTE_ATOMIC, 0},   {ALB_RC_CMP_SWAP, ALB_ACCESS_REMOTE_ATOMIC, 0},
        {ALB_RC_ATOMIC_WRITE, ALB_ACCESS_REMOTE_WRITE, 8},
    };
    struct pair_qps *c = *state;
    for (size_t i = 0; i < ALB_COUNT(rows); i++)
        for (int allowed = 0; allowed < 2; allowed++) {
            pair_connect(c->pair, ALB_QPT_RC, c->qps, NULL);
            c->qps[1]->attr.access = allowed ? rows[i].right : PAIR_ACCESS_ALL & ~rows[i].right;
            struct alb_roce roce = pair_request(c, rows[i].opcode, 0, 8);
            arrive(c, &roce, rows[i].payload_bytes);
            assert_int_equal(alb_qp_current_state(c->qps[1]), allowed ? ALB_QPS_RTS : ALB_QPS_ERR);
        }
}

static void no_reads(struct alb_qp_attr *attr, int side)
{
    attr->max_dest_rd_atomic = 0;
}

static void responder__no_reads_agreed(void **state)
{
    static const uint8_t opcodes[] = {ALB_RC_READ_REQUEST, ALB_RC_FETCH_ADD, ALB_RC_CMP_SWAP};
    struct pair_qps *c = *state;
    for (size_t i = 0; i < ALB_COUNT(opcodes); i++) {
        pair_connect(c->pair, ALB_QPT_RC, c->qps, no_reads);
        struct alb_roce roce = pair_request(c, opcodes[i], 0, 8);
        arrive(c, &roce, 0);
        expect_ack(c, 0, NAK(ALB_NAK_INVALID_REQUEST));
    }
}

static void responder__more_reads_than_agreed(void **state)
{
    struct pair_qps *c = *state;
    for (int32_t i = 0; i < 5; i++) {
        struct alb_roce roce = pair_request(c, ALB_RC_READ_REQUEST, i, 8);
        assert_int_equal(alb_qp_current_state(c->qps[1]), ALB_QPS_RTS);
        arrive(c, &roce, 0);
    }
    assert_int_equal(alb_qp_current_state(c->qps[1]), ALB_QPS_ERR);
    assert_int_equal(pair_send(c->pair, 1), 5); // the four are answered first
    assert_int_equal(pair_peek(c->pair, 1, 3)->roce.opcode, ALB_RC_READ_RESPONSE_ONLY);
    assert_int_equal(pair_peek(c->pair, 1, 4)->roce.syndrome, NAK(ALB_NAK_INVALID_REQUEST));
}

static void responder__no_read_in_the_middle_of_a_message(void **state)
{
    struct pair_qps *c = *state;
    struct alb_roce first = pair_request(c, ALB_RC_WRITE_FIRST, 0, MTU + 8);
    arrive(c, &first, MTU);
    struct alb_roce roce = pair_request(c, ALB_RC_READ_REQUEST, 1, 8);
    arrive(c, &roce, 0);
    expect_ack(c, 1, NAK(ALB_NAK_INVALID_REQUEST));
}

// ---- what comes again -----------------------------------------------------------------------------------------------

static void responder__a_read_is_executed_again(void **state)
{
    struct pair_qps *c = *state;
    struct alb_roce roce = pair_request(c, ALB_RC_READ_REQUEST, 0, 3 * MTU);
    arrive(c, &roce, 0);
    assert_int_equal(pair_send(c->pair, 1), 3);
    memset(c->pair->hosts[1].memory, 0x77, 3 * MTU);
    roce.psn = alb_psn_add(PAIR_PSN, 1); // from its second packet on
    roce.va += MTU;
    roce.length = 2 * MTU;
    arrive(c, &roce, 0);
    assert_int_equal(answer(c)->opcode, ALB_RC_READ_RESPONSE_FIRST);
    const struct pair_packet *packet = pair_peek(c->pair, 1, 0);
    assert_int_equal(packet->roce.psn, alb_psn_add(PAIR_PSN, 1));
    assert_int_equal(packet->bytes[packet->payload_offset], 0x77);
    assert_int_equal(pair_count(c->pair, 1), 2);
    assert_int_equal(alb_rc_of(c->qps[1])->expected, alb_psn_add(PAIR_PSN, 3));
}

static void responder__no_more_of_a_read_than_was_granted(void **state)
{
    struct pair_qps *c = *state;
    struct alb_roce roce = pair_request(c, ALB_RC_READ_REQUEST, 0, 3 * MTU);
    arrive(c, &roce, 0);
    pair_send(c->pair, 1);
    roce.length = 3 * MTU + 1;
    arrive(c, &roce, 0);
    assert_null(answer(c));
    roce.length = 0xffffffff;
    arrive(c, &roce, 0);
    assert_null(answer(c));
    assert_int_equal(dropped(c, ALB_DROP_DUPLICATE), 2);
    assert_int_equal(alb_qp_current_state(c->qps[1]), ALB_QPS_RTS);
}

// The answer to an atomic that comes again is the one it got the first time, and the word is not touched (9.4.5).
static void responder__an_atomic_is_remembered(void **state)
{
    struct pair_qps *c = *state;
    uint64_t *word = (uint64_t *)c->pair->hosts[1].memory;
    *word = 100;
    for (int32_t i = 0; i < 4; i++) {
        struct alb_roce roce = pair_request(c, ALB_RC_FETCH_ADD, i, 0);
        roce.swap_add = 1;
        arrive(c, &roce, 0);
        assert_int_equal(answer(c)->atomic_original, 100 + i);
    }
    for (int32_t i = 3; i >= 0; i--) {
        struct alb_roce roce = pair_request(c, ALB_RC_FETCH_ADD, i, 0);
        roce.swap_add = 1;
        arrive(c, &roce, 0);
        assert_int_equal(answer(c)->atomic_original, 100 + i);
    }
    assert_int_equal(*word, 104);
    struct alb_roce fifth = pair_request(c, ALB_RC_FETCH_ADD, 4, 0);
    arrive(c, &fifth, 0);
    answer(c);
    struct alb_roce roce =
        pair_request(c, ALB_RC_FETCH_ADD, 0, 0); // four may be outstanding: this one can't be any more
    arrive(c, &roce, 0);
    assert_null(answer(c));
}

// Numbers come round: of two results under one number the later one is meant.
static void responder__of_two_atomics_with_one_number_the_later_one(void **state)
{
    struct pair_qps *c = *state;
    uint64_t *word = (uint64_t *)c->pair->hosts[1].memory;
    struct alb_roce roce = pair_request(c, ALB_RC_FETCH_ADD, 0, 0);
    *word = 1;
    arrive(c, &roce, 0);
    assert_int_equal(answer(c)->atomic_original, 1);
    alb_rc_of(c->qps[1])->expected = PAIR_PSN; // as after 2^24 packets
    *word = 2;
    arrive(c, &roce, 0);
    assert_int_equal(answer(c)->atomic_original, 2);
    arrive(c, &roce, 0);
    assert_int_equal(answer(c)->atomic_original, 2);
}

// The results are still there when the number of places changes between two packets of a draining queue pair.
static void responder__remembers_atomics_in_another_number_of_places(void **state)
{
    struct pair_qps *c = *state;
    uint64_t *word = (uint64_t *)c->pair->hosts[1].memory;
    struct alb_qp_attr attr = {.state = ALB_QPS_SQD};
    *word = 50;
    for (int32_t i = 0; i < 6; i++) {
        struct alb_roce roce = pair_request(c, ALB_RC_FETCH_ADD, i, 0);
        roce.swap_add = 1;
        arrive(c, &roce, 0);
        answer(c);
    }
    assert_int_equal(alb_qp_modify(c->qps[1], &attr, ALB_QP_STATE, c->pair->now), 0);
    static const uint8_t places[] = {3, 9};
    for (size_t k = 0; k < ALB_COUNT(places); k++) {
        attr.max_dest_rd_atomic = places[k];
        assert_int_equal(alb_qp_modify(c->qps[1], &attr, ALB_QP_STATE | ALB_QP_MAX_DEST_RD_ATOMIC, c->pair->now), 0);
        for (int32_t i = 3; i < 6; i++) {
            struct alb_roce roce = pair_request(c, ALB_RC_FETCH_ADD, i, 0);
            arrive(c, &roce, 0);
            assert_int_equal(answer(c)->atomic_original, 50 + i);
        }
        struct alb_roce roce = pair_request(c, ALB_RC_FETCH_ADD, 2, 0);
        arrive(c, &roce, 0);
        assert_null(answer(c));
    }
    // And nothing of them when the queue pair begins again.
    attr.state = ALB_QPS_RESET;
    assert_int_equal(alb_qp_modify(c->qps[1], &attr, ALB_QP_STATE, c->pair->now), 0);
    attr = pair_attr(c->pair, 1, c->qps[0]);
    attr.rq_psn = alb_psn_add(PAIR_PSN, 6);
    assert_int_equal(pair_move(c->pair, c->qps[1], ALB_QPS_RTS, &attr), 0);
    struct alb_roce roce = pair_request(c, ALB_RC_FETCH_ADD, 5, 0);
    arrive(c, &roce, 0);
    assert_null(answer(c));
}

// ---- shared receives ------------------------------------------------------------------------------------------------

// Keys of receives are those of the shared queue's protection domain, which need not be the queue pair's.
static void responder__a_shared_queue_of_another_domain(void **state)
{
    struct pair_qps *c = *state;
    struct pair_host *host = &c->pair->hosts[1];
    struct alb_pd *pd;
    struct alb_srq *srq;
    struct alb_region *mr;
    assert_int_equal(alb_pd_create(host->engine, &pd), 0);
    assert_int_equal(alb_srq_create(pd, 4, 1, 0, NULL, &srq), 0);
    assert_int_equal(alb_mr_create(pd, host->memory, 64, (uintptr_t)host->memory, ALB_ACCESS_LOCAL_WRITE, &mr), 0);
    struct alb_sge sge = {.addr = pair_va(c->pair, 1, 0), .length = 64, .lkey = alb_region_key(mr)};
    assert_int_equal(alb_srq_post(srq, 5, &sge, 1), 0);
    struct alb_qp_init init = {.type = ALB_QPT_RC, .srq = srq};
    c->qps[1] = pair_qp_with(c->pair, 1, &init);
    struct alb_qp_attr attr = pair_attr(c->pair, 1, c->qps[0]);
    assert_int_equal(pair_move(c->pair, c->qps[1], ALB_QPS_RTS, &attr), 0);
    send_at(c, 0);
    pair_expect(c->pair, 1, 5, ALB_WC_SUCCESS);
    assert_memory_equal(host->memory, payload, 8);
    assert_int_equal(alb_qp_destroy(c->qps[1]), 0);
    assert_int_equal(alb_srq_destroy(srq), 0);
    assert_int_equal(alb_mr_destroy(mr), 0);
    assert_int_equal(alb_pd_destroy(pd), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PAIR_RC_TEST(responder__acknowledges_when_asked),
        PAIR_RC_TEST(responder__counts_messages),
        PAIR_RC_TEST(responder__a_duplicate_is_acknowledged_and_not_executed),
        PAIR_RC_TEST(responder__reports_a_gap_once),
        PAIR_RC_TEST(responder__the_far_half_is_behind),
        PAIR_RC_TEST(responder__not_ready),
        PAIR_RC_TEST(responder__refusals),
        PAIR_RC_TEST(responder__a_broken_receive),
        PAIR_RC_TEST(responder__completion_queue_overruns),
        PAIR_RC_TEST(responder__completion_queue_overruns_behind_a_read),
        PAIR_RC_TEST(responder__rights_of_the_queue_pair),
        PAIR_RC_TEST(responder__no_reads_agreed),
        PAIR_RC_TEST(responder__more_reads_than_agreed),
        PAIR_RC_TEST(responder__no_read_in_the_middle_of_a_message),
        PAIR_RC_TEST(responder__a_read_is_executed_again),
        PAIR_RC_TEST(responder__no_more_of_a_read_than_was_granted),
        PAIR_RC_TEST(responder__an_atomic_is_remembered),
        PAIR_RC_TEST(responder__of_two_atomics_with_one_number_the_later_one),
        PAIR_RC_TEST(responder__remembers_atomics_in_another_number_of_places),
        PAIR_RC_TEST(responder__a_shared_queue_of_another_domain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
