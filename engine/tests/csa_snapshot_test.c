// SPDX-License-Identifier: BSD-2-Clause
// READs of transactional regions: one version, whatever becomes of the memory and of the packets. Side 0 reads, side 1
// has the region.
#include "engine/csa_snapshot.h"

#include "base/prng.h"
#include "engine/region_version.h"
#include "engine/tests/csa_pair.h"

#include <stdlib.h>
#include <sys/mman.h>

enum {
    ENTRY = 3000,
    STRIDE = 4096,
    WORDS = PAIR_MEMORY_BYTES / STRIDE,
};

static _Atomic uint64_t words[WORDS];

static void wait_for_ever(struct alb_qp_attr *attr, int side)
{
    attr->rnr_retry = 7;
    attr->min_rnr_timer = 5; // 60 us
    attr->timeout = 0;
}

static int transactional(void **state)
{
    struct csa_pair *c = csa_pair_new(NULL, wait_for_ever);
    for (int i = 0; i < WORDS; i++)
        words[i] = 0;
    assert_int_equal(alb_mr_set_versions(c->pair->hosts[1].mr, words, STRIDE), 0);
    csa_pair_greet(c);
    *state = c;
    return 0;
}
#define SNAPSHOT_TEST(test) cmocka_unit_test_setup_teardown(test, transactional, csa_pair_teardown)

static uint64_t held_bytes(struct csa_pair *c)
{
    return c->engines[1]->csa->snapshot_bytes;
}

static void hold(struct csa_pair *c)
{
    alb_region_hold_readers(c->pair->hosts[1].mr, pair_va(c->pair, 1, 0), ENTRY);
}

static void let(struct csa_pair *c)
{
    alb_region_let_readers(c->pair->hosts[1].mr, pair_va(c->pair, 1, 0), ENTRY);
}

static void change(struct csa_pair *c, uint8_t value)
{
    hold(c);
    memset(c->pair->hosts[1].memory, value, ENTRY);
    let(c);
}

static void read(struct csa_pair *c, uint64_t wr_id, uint32_t length)
{
    csa_pair_ask(c, ALB_WR_RDMA_READ, wr_id, ALB_SEND_SIGNALED, length);
}

static void check_entry(struct csa_pair *c, uint8_t value)
{
    for (uint32_t i = 0; i < ENTRY; i++)
        assert_int_equal(c->pair->hosts[0].memory[i], value);
}

static void lose_all(struct csa_pair *c, int side)
{
    while (pair_count(c->pair, side))
        pair_lose(c->pair, side);
}

// All of the answer is lost, the entry changes, and the answer goes again.
static void read__of_the_version_at_its_execution(void **state)
{
    struct csa_pair *c = *state;
    change(c, 1);
    read(c, 1, ENTRY);
    pair_send(c->pair, 0);
    pair_deliver_all(c->pair, 0);
    assert_int_equal(held_bytes(c), 4096);
    pair_send(c->pair, 1);
    lose_all(c, 1);
    change(c, 2);
    for (uint32_t i = 0; i < 100 && held_bytes(c); i++) {
        pair_settle(c->pair);
        pair_pass(c->pair, ALB_NS_PER_MS);
    }
    csa_pair_expect(c, 0, 1, ALB_WC_SUCCESS);
    check_entry(c, 1);
    assert_int_equal(held_bytes(c), 0);
    assert_true(csa_pair_stat(c, 1, ALB_STAT_retransmitted_pkts) >= 3);
    assert_int_equal(csa_pair_stat(c, 1, ALB_STAT_read_snapshots), 1);
}

// A READ that has to wait for other answers has no copy yet, or there would be another one each time it is looked at.
static void read__no_room_for_its_answer__has_no_copy(void **state)
{
    struct csa_pair *c = *state;
    struct alb_csa *csa = c->csa[1];
    alb_psn answer_psn = csa->answer_psn;
    change(c, 1);
    csa->answer_psn = alb_psn_add(csa->responses.una, ALB_PSN_MASK / 2);
    read(c, 1, ENTRY);
    pair_send(c->pair, 0);
    pair_deliver_all(c->pair, 0);
    assert_true(csa->in_requests.waits_rnr);
    assert_int_equal(held_bytes(c), 0);
    csa->answer_psn = answer_psn;
    pair_pass(c->pair, ALB_NS_PER_MS);
    pair_settle(c->pair);
    pair_pass(c->pair, ALB_NS_PER_MS);
    pair_settle(c->pair);
    csa_pair_expect(c, 0, 1, ALB_WC_SUCCESS);
    check_entry(c, 1);
}

// Nor does it matter that the key is gone by then: when it was executed it was there.
static void read__outlives_the_region(void **state)
{
    struct csa_pair *c = *state;
    static uint8_t memory[64];
    struct alb_region *mr;
    memset(memory, 0x5a, sizeof(memory));
    assert_int_equal(
        alb_mr_create(c->pair->hosts[1].pd, memory, sizeof(memory), (uintptr_t)memory, ALB_ACCESS_REMOTE_READ, &mr), 0);
    assert_int_equal(alb_mr_set_versions(mr, words, sizeof(memory)), 0);
    struct alb_sge sge = pair_sge(c->pair, 0, 0, sizeof(memory));
    const struct alb_send_wr wr = {
        .wr_id = 1,
        .opcode = ALB_WR_RDMA_READ,
        .flags = ALB_SEND_SIGNALED,
        .sge = &sge,
        .sge_count = 1,
        .remote_addr = (uintptr_t)memory,
        .rkey = alb_region_key(mr),
    };
    assert_int_equal(pair_post(c->pair, c->qps[0], &wr), 0);
    pair_send(c->pair, 0);
    pair_deliver_all(c->pair, 0);
    assert_int_equal(alb_mr_destroy(mr), 0);
    memset(memory, 0, sizeof(memory));
    pair_settle(c->pair);
    csa_pair_expect(c, 0, 1, ALB_WC_SUCCESS);
    assert_int_equal(c->pair->hosts[0].memory[63], 0x5a);
}

static void read__waits_while_readers_are_held_out(void **state)
{
    struct csa_pair *c = *state;
    change(c, 1);
    hold(c);
    memset(c->pair->hosts[1].memory, 2, ENTRY / 2);
    read(c, 1, ENTRY);
    for (uint32_t i = 0; i < 20; i++) {
        pair_settle(c->pair);
        pair_pass(c->pair, 100 * ALB_NS_PER_US);
    }
    csa_pair_expect_none(c, 0);
    assert_int_equal(c->csa[1]->answer_count, 0);
    memset(c->pair->hosts[1].memory, 2, ENTRY);
    let(c);
    pair_pass(c->pair, 100 * ALB_NS_PER_US);
    pair_settle(c->pair);
    csa_pair_expect(c, 0, 1, ALB_WC_SUCCESS);
    check_entry(c, 2);
    assert_true(csa_pair_stat(c, 1, ALB_STAT_read_snapshot_waits) > 1);
    assert_int_equal(csa_pair_stat(c, 0, ALB_STAT_retransmitted_pkts), 0);
}

// There are receives, but it is not for them that it waits: the bell rings once, in case one has just been posted. Each
// report that says so is counted where it leaves, and where it is heard.
static void read__waits_beside_receives(void **state)
{
    struct csa_pair *c = *state;
    struct alb_sge sge = pair_sge(c->pair, 1, 0, 64);
    bool bell;
    assert_int_equal(alb_qp_recv_post(c->qps[1], 1, &sge, 1, &bell), 0);
    hold(c);
    read(c, 1, ENTRY);
    pair_send(c->pair, 0);
    pair_deliver_all(c->pair, 0);
    pair_send(c->pair, 1);
    assert_false(alb_engine_bell_is_rung(c->engines[1]));
    for (uint32_t i = 0; i < 20; i++) {
        pair_settle(c->pair);
        pair_pass(c->pair, 100 * ALB_NS_PER_US);
    }
    csa_pair_expect_none(c, 0);
    assert_in_range(csa_pair_stat(c, 1, ALB_STAT_send_rnr_err), 1, 20);
    assert_int_equal(csa_pair_stat(c, 0, ALB_STAT_rcvd_rnr_err), csa_pair_stat(c, 1, ALB_STAT_send_rnr_err));
    let(c);
    pair_pass(c->pair, 100 * ALB_NS_PER_US);
    pair_settle(c->pair);
    csa_pair_expect(c, 0, 1, ALB_WC_SUCCESS);
}

static uint64_t waits(struct csa_pair *c)
{
    return csa_pair_stat(c, 1, ALB_STAT_read_snapshot_waits);
}

static struct alb_csa_segment request(struct csa_pair *c)
{
    return (struct alb_csa_segment){
        .op = ALB_CSA_READ,
        .flags = ALB_CSA_LAST,
        .dest_qpn = alb_qp_number(c->qps[1]),
        .psn = c->csa[1]->in_requests.cumulative,
        .total_bytes = ENTRY,
        .va = pair_va(c->pair, 1, 0),
        .rkey = alb_region_key(c->pair->hosts[1].mr),
        .acked = c->csa[1]->responses.una,
    };
}

enum { FRAMES = 50 };

static void arrive_requests(struct csa_pair *c)
{
    const struct alb_csa_segment segment = request(c);
    struct csa_made made;
    csa_pair_make(c, 0, &made);
    for (uint32_t i = 0; i < FRAMES; i++)
        csa_pair_add_segment(&made, ALB_CSA_REQUEST, &segment, NULL);
    csa_pair_arrive(c, 0, &made);
}

static void arrive_probes(struct csa_pair *c)
{
    const struct alb_csa_probe probe = {
        .dest_qpn = alb_qp_number(c->qps[1]),
        .next = alb_psn_next(c->csa[1]->in_requests.cumulative),
    };
    struct csa_made made;
    csa_pair_make(c, 0, &made);
    for (uint32_t i = 0; i < FRAMES; i++)
        csa_pair_add_probe(&made, &probe);
    csa_pair_arrive(c, 0, &made);
}

// To try again may be to look through many words, and a packet has room for thousands of frames.
static void wait__is_tried_again_once_for_a_packet(void **state)
{
    struct csa_pair *c = *state;
    hold(c);
    arrive_requests(c);
    assert_int_equal(waits(c), 1);
    arrive_probes(c);
    assert_int_equal(waits(c), 2);
    arrive_requests(c);
    assert_int_equal(waits(c), 3);
    let(c);
    arrive_probes(c);
    assert_int_equal(waits(c), 3);
    assert_int_equal(c->csa[1]->answer_count, 1);
}

static void wait__without_memory_is_tried_once_for_a_packet(void **state)
{
    struct csa_pair *c = *state;
    c->engines[1]->config.csa_early_bytes_max = 0;
    hold(c);
    arrive_requests(c);
    assert_int_equal(csa_pair_drops(c, 1, ALB_DROP_NO_RECEIVE), FRAMES);
    assert_int_equal(waits(c), 1);
    arrive_requests(c);
    assert_int_equal(waits(c), 2);
    let(c);
    arrive_requests(c);
    assert_int_equal(waits(c), 2);
    assert_int_equal(c->csa[1]->answer_count, 1);
}

static void wait__is_tried_at_each_bell(void **state)
{
    struct csa_pair *c = *state;
    hold(c);
    arrive_probes(c);
    arrive_requests(c);
    for (uint32_t i = 1; i <= 3; i++) {
        assert_int_equal(waits(c), i);
        alb_engine_bell_ring(c->qps[1]);
        alb_engine_bells(c->engines[1], c->pair->now);
    }
    let(c);
    alb_engine_bell_ring(c->qps[1]);
    alb_engine_bells(c->engines[1], c->pair->now);
    assert_int_equal(c->csa[1]->answer_count, 1);
}

// The limit is all peers' together. What finds it reached waits until answers are acknowledged.
static void limit__reached(void **state)
{
    struct csa_pair *c = *state;
    c->engines[1]->config.reflect_snapshot_bytes_max = 10000;
    for (uint32_t i = 0; i < 4; i++)
        read(c, i, ENTRY);
    pair_send(c->pair, 0);
    pair_deliver_all(c->pair, 0);
    assert_int_equal(held_bytes(c), 8192);
    assert_int_equal(c->csa[1]->answer_count, 2);
    for (uint32_t i = 0; i < 20; i++) {
        pair_settle(c->pair);
        pair_pass(c->pair, 100 * ALB_NS_PER_US);
    }
    for (uint32_t i = 0; i < 4; i++)
        csa_pair_expect(c, 0, i, ALB_WC_SUCCESS);
    assert_int_equal(csa_pair_stat(c, 1, ALB_STAT_read_snapshots), 4);
}

static void read__of_nothing_takes_none(void **state)
{
    struct csa_pair *c = *state;
    read(c, 1, 0);
    pair_settle(c->pair);
    csa_pair_expect(c, 0, 1, ALB_WC_SUCCESS);
    assert_int_equal(csa_pair_stat(c, 1, ALB_STAT_read_snapshots), 0);
}

static void limit__never_enough(void **state)
{
    struct csa_pair *c = *state;
    struct alb_event event;
    c->engines[1]->config.reflect_snapshot_bytes_max = 4096;
    read(c, 1, 4096);
    pair_settle(c->pair);
    csa_pair_expect(c, 0, 1, ALB_WC_SUCCESS);
    read(c, 2, 4097);
    pair_settle(c->pair);
    csa_pair_expect(c, 0, 2, ALB_WC_REM_OP_ERR);
    assert_true(pair_event(c->pair, 1, ALB_EVENT_QP_FATAL, &event));
}

// However many version words the range has, and whatever they say, none of them is looked at.
static void limit__never_enough_is_no_wait(void **state)
{
    struct csa_pair *c = *state;
    c->engines[1]->config.reflect_snapshot_bytes_max = 4096;
    hold(c);
    read(c, 1, 4097);
    pair_settle(c->pair);
    csa_pair_expect(c, 0, 1, ALB_WC_REM_OP_ERR);
    assert_int_equal(csa_pair_stat(c, 1, ALB_STAT_read_snapshot_waits), 0);
    let(c);
}

static void send_request(struct csa_pair *c, uint64_t wr_id)
{
    read(c, wr_id, ENTRY);
    pair_send(c->pair, 0);
    pair_deliver_all(c->pair, 0);
}

static void limit__reached_looks_at_no_words(void **state)
{
    struct csa_pair *c = *state;
    struct alb_region *mr = c->pair->hosts[1].mr;
    size_t bytes = WORDS * sizeof(words[0]);
    void *own = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(own, MAP_FAILED);
    assert_int_equal(alb_mr_set_versions(mr, NULL, 0), 0);
    assert_int_equal(alb_mr_set_versions(mr, own, STRIDE), 0);
    c->engines[1]->config.reflect_snapshot_bytes_max = 4096;
    send_request(c, 1);
    assert_int_equal(mprotect(own, bytes, PROT_NONE), 0);
    send_request(c, 2);
    assert_int_equal(csa_pair_stat(c, 1, ALB_STAT_read_snapshot_waits), 1);
    assert_int_equal(mprotect(own, bytes, PROT_READ | PROT_WRITE), 0);
    for (uint32_t i = 0; i < 20; i++) {
        pair_settle(c->pair);
        pair_pass(c->pair, 100 * ALB_NS_PER_US);
    }
    csa_pair_expect(c, 0, 1, ALB_WC_SUCCESS);
    csa_pair_expect(c, 0, 2, ALB_WC_SUCCESS);
    assert_int_equal(alb_mr_set_versions(mr, NULL, 0), 0);
    munmap(own, bytes);
}

// Whatever may be configured, what is in flight needs memory as well.
static void limit__half_of_the_pool(void **state)
{
    struct csa_pair *c = *state;
    c->engines[1]->config.reflect_snapshot_bytes_max = UINT32_MAX;
    read(c, 1, 128 << 10);
    pair_settle(c->pair);
    csa_pair_expect(c, 0, 1, ALB_WC_SUCCESS);
    read(c, 2, (128 << 10) + 1);
    pair_settle(c->pair);
    csa_pair_expect(c, 0, 2, ALB_WC_REM_OP_ERR);
}

// No block that is large enough may be free though the limit is not reached.
static void limit__pool_is_in_use(void **state)
{
    struct csa_pair *c = *state;
    struct alb_buddy *pool = &c->engines[1]->csa->pool;
    void *blocks[4096];
    uint32_t count = 0;
    while ((blocks[count] = alb_buddy_get(pool, 2048)))
        count++;
    change(c, 1);
    read(c, 1, ENTRY);
    pair_settle(c->pair);
    csa_pair_expect_none(c, 0);
    while (count > 0)
        alb_buddy_put(pool, blocks[--count], 2048);
    pair_pass(c->pair, 100 * ALB_NS_PER_US);
    pair_settle(c->pair);
    csa_pair_expect(c, 0, 1, ALB_WC_SUCCESS);
    check_entry(c, 1);
}

static void read_by(struct csa_pair *c, struct alb_qp *qp, uint64_t wr_id)
{
    assert_int_equal(pair_ask(c->pair, qp, ALB_WR_RDMA_READ, wr_id, ALB_SEND_SIGNALED, 0, ENTRY), 0);
}

// One requester dies with its answer under way: others wait until it has been silent for long, and no longer.
static void limit__held_by_one_who_is_gone(void **state)
{
    struct csa_pair *c = *state;
    struct alb_qp_attr error = {.state = ALB_QPS_ERR};
    struct alb_qp *others[2];
    pair_connect(c->pair, ALB_QPT_RC, others, NULL);
    c->engines[1]->config.reflect_snapshot_bytes_max = 4096;
    read(c, 1, ENTRY);
    pair_send(c->pair, 0);
    pair_deliver_all(c->pair, 0);
    assert_int_equal(alb_qp_modify(c->qps[0], &error, ALB_QP_STATE, c->pair->now), 0);
    csa_pair_expect(c, 0, 1, ALB_WC_WR_FLUSH_ERR);
    for (uint32_t i = 0; i < 100 && !alb_csa_has_given_up_answers(c->csa[1]); i++) {
        pair_send(c->pair, 0);
        pair_send(c->pair, 1);
        lose_all(c, 0);
        lose_all(c, 1);
        pair_pass(c->pair, 500 * ALB_NS_PER_MS);
    }
    assert_int_equal(held_bytes(c), 4096); // as long as nobody else wants the memory
    read_by(c, others[0], 2);
    pair_settle(c->pair);
    csa_pair_expect(c, 0, 2, ALB_WC_SUCCESS);
    assert_int_equal(held_bytes(c), 0);
}

enum {
    LIMIT = 32768,
    RESERVE = LIMIT / 4,
};

// A queue pair whose peer is another host, which is never heard but for what arrive_by_other sends in its name.
static struct alb_qp *other_reader(struct csa_pair *c)
{
    struct alb_qp *qp = pair_qp(c->pair, 1, ALB_QPT_RC);
    struct alb_qp_attr attr = pair_attr(c->pair, 1, c->qps[0]);
    attr.av.peer = alb_addr_from_ipv4((const uint8_t[]){10, 0, 0, 9});
    assert_int_equal(pair_move(c->pair, qp, ALB_QPS_RTS, &attr), 0);
    return qp;
}

static void arrive_by_other(struct csa_pair *c, struct alb_qp *qp, uint32_t length)
{
    struct csa_made made;
    struct alb_csa_segment segment = request(c);
    segment.dest_qpn = alb_qp_number(qp);
    segment.psn = alb_csa_of(qp)->in_requests.cumulative;
    segment.acked = alb_csa_of(qp)->responses.una;
    segment.total_bytes = length;
    csa_pair_make(c, 0, &made);
    made.header.source_epoch = 4711;
    made.header.destination_epoch = alb_assoc_epoch(c->engines[1]->csa, alb_csa_of(qp)->assoc);
    made.header.path = 255;
    made.peer.addr = qp->attr.av.peer;
    csa_pair_add_segment(&made, ALB_CSA_REQUEST, &segment, NULL);
    csa_pair_arrive(c, 0, &made);
}

// A peer that takes its time to acknowledge what it reads holds up its own READs, not those of others. It still had all
// that one may have.
static void limit__taken_by_one_leaves_others_some(void **state)
{
    struct csa_pair *c = *state;
    struct alb_qp *slow = other_reader(c);
    struct alb_csa *csa = alb_csa_of(slow);
    struct alb_qp_attr reset = {.state = ALB_QPS_RESET};
    c->engines[1]->config.reflect_snapshot_bytes_max = LIMIT;
    arrive_by_other(c, slow, LIMIT);
    assert_int_equal(held_bytes(c), LIMIT);
    arrive_by_other(c, slow, 8);
    assert_true(csa->in_requests.waits_rnr);
    for (uint32_t i = 0; i < 4; i++)
        read(c, i, ENTRY);
    pair_send(c->pair, 0);
    pair_deliver_all(c->pair, 0);
    assert_int_equal(held_bytes(c), LIMIT + RESERVE / 2); // as much as it leaves
    assert_int_equal(c->csa[1]->answer_count, 1);
    for (uint32_t i = 0; i < 20; i++) {
        pair_settle(c->pair);
        pair_pass(c->pair, 100 * ALB_NS_PER_US);
    }
    for (uint32_t i = 0; i < 4; i++)
        csa_pair_expect(c, 0, i, ALB_WC_SUCCESS);
    assert_int_equal(csa->answer_count, 1);
    assert_int_equal(held_bytes(c), LIMIT);
    assert_int_equal(csa->assoc->snapshot_bytes, LIMIT);
    assert_int_equal(c->csa[1]->assoc->snapshot_bytes, 0);
    assert_int_equal(alb_qp_modify(slow, &reset, ALB_QP_STATE, c->pair->now), 0);
    assert_int_equal(held_bytes(c), 0);
}

// What is too much for that is not refused: it waits.
static void limit__taken_by_one_and_much_is_wanted(void **state)
{
    struct csa_pair *c = *state;
    struct alb_qp *slow = other_reader(c);
    struct alb_qp_attr reset = {.state = ALB_QPS_RESET};
    c->engines[1]->config.reflect_snapshot_bytes_max = LIMIT;
    arrive_by_other(c, slow, LIMIT);
    read(c, 1, RESERVE / 2 + 1);
    pair_settle(c->pair);
    csa_pair_expect_none(c, 0);
    assert_int_equal(alb_qp_modify(slow, &reset, ALB_QP_STATE, c->pair->now), 0);
    for (uint32_t i = 0; i < 20; i++) {
        pair_settle(c->pair);
        pair_pass(c->pair, 100 * ALB_NS_PER_US);
    }
    csa_pair_expect(c, 0, 1, ALB_WC_SUCCESS);
}

static void forget_snapshots__a_reader_that_comes_back_is_refused(void **state)
{
    struct csa_pair *c = *state;
    struct alb_event event;
    read(c, 1, ENTRY);
    pair_send(c->pair, 0);
    pair_deliver_all(c->pair, 0);
    alb_csa_forget_snapshots(c->csa[1]);
    assert_int_equal(held_bytes(c), 0);
    pair_settle(c->pair);
    csa_pair_expect(c, 0, 1, ALB_WC_REM_OP_ERR);
    assert_true(pair_event(c->pair, 1, ALB_EVENT_QP_FATAL, &event));
}

static void put__with_the_queue_pair(void **state)
{
    for (enum alb_qp_state next = ALB_QPS_RESET; next <= ALB_QPS_ERR; next += ALB_QPS_ERR) {
        struct csa_pair *c = next == ALB_QPS_RESET ? *state : csa_pair_new(NULL, NULL);
        struct alb_qp_attr attr = {.state = next};
        if (next == ALB_QPS_ERR) {
            assert_int_equal(alb_mr_set_versions(c->pair->hosts[1].mr, words, STRIDE), 0);
            csa_pair_greet(c);
        }
        read(c, 1, ENTRY);
        read(c, 2, 8);
        pair_send(c->pair, 0);
        pair_deliver_all(c->pair, 0);
        assert_int_equal(held_bytes(c), 4096 + 64);
        assert_int_equal(alb_qp_modify(c->qps[1], &attr, ALB_QP_STATE, c->pair->now), 0);
        assert_int_equal(held_bytes(c), 0);
        if (next == ALB_QPS_ERR)
            csa_pair_free(c);
    }
}

static void read__of_other_regions_takes_none(void **state)
{
    struct csa_pair *c = *state;
    assert_int_equal(alb_mr_set_versions(c->pair->hosts[1].mr, NULL, 0), 0);
    read(c, 1, ENTRY);
    read(c, 2, 0);
    pair_send(c->pair, 0);
    pair_deliver_all(c->pair, 0);
    assert_int_equal(c->csa[1]->answer_count, 2);
    assert_int_equal(held_bytes(c), 0);
    assert_int_equal(csa_pair_stat(c, 1, ALB_STAT_read_snapshots), 0);
}

// The entry changes all the time, at once or over a while, one packet in five is lost: what is read is always whole.
static void read__never_torn_with_losses(void **state)
{
    enum { READS = 600 };
    struct csa_pair *c = *state;
    struct alb_prng prng;
    uint32_t asked = 0, done = 0;
    uint8_t value = 1, last = 1;
    bool is_held = false;
    alb_prng_init(&prng, 5);
    change(c, value);
    for (uint32_t round = 0; round < 200000 && done < READS; round++) {
        struct alb_wc wc;
        if (is_held) {
            memset(c->pair->hosts[1].memory, value, ENTRY);
            let(c);
            is_held = false;
        } else if (alb_prng_below(&prng, 3) == 0) {
            is_held = true;
            hold(c);
            memset(c->pair->hosts[1].memory, ++value, ENTRY / 2); // the rest comes a round later
        } else {
            change(c, ++value);
        }
        if (asked == done)
            read(c, asked++, ENTRY);
        pair_exchange(c->pair, &prng, 5);
        pair_pass(c->pair, 30 * ALB_NS_PER_US);
        while (pair_poll(c->pair, 0, &wc)) {
            assert_int_equal(wc.status, ALB_WC_SUCCESS);
            assert_int_equal(wc.wr_id, done++);
            check_entry(c, c->pair->hosts[0].memory[0]);
            last = c->pair->hosts[0].memory[0];
        }
    }
    assert_int_equal(done, READS);
    assert_int_not_equal(last, 1);
    assert_true(csa_pair_stat(c, 1, ALB_STAT_retransmitted_pkts) > 100);
    assert_true(csa_pair_stat(c, 1, ALB_STAT_read_snapshot_waits) > 50);
    if (is_held)
        let(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SNAPSHOT_TEST(read__of_the_version_at_its_execution),
        SNAPSHOT_TEST(read__no_room_for_its_answer__has_no_copy),
        SNAPSHOT_TEST(read__outlives_the_region),
        SNAPSHOT_TEST(read__waits_while_readers_are_held_out),
        SNAPSHOT_TEST(read__waits_beside_receives),
        SNAPSHOT_TEST(wait__is_tried_again_once_for_a_packet),
        SNAPSHOT_TEST(wait__without_memory_is_tried_once_for_a_packet),
        SNAPSHOT_TEST(wait__is_tried_at_each_bell),
        SNAPSHOT_TEST(read__of_nothing_takes_none),
        SNAPSHOT_TEST(limit__reached),
        SNAPSHOT_TEST(limit__never_enough),
        SNAPSHOT_TEST(limit__never_enough_is_no_wait),
        SNAPSHOT_TEST(limit__reached_looks_at_no_words),
        SNAPSHOT_TEST(limit__half_of_the_pool),
        SNAPSHOT_TEST(limit__pool_is_in_use),
        SNAPSHOT_TEST(limit__held_by_one_who_is_gone),
        SNAPSHOT_TEST(limit__taken_by_one_leaves_others_some),
        SNAPSHOT_TEST(limit__taken_by_one_and_much_is_wanted),
        SNAPSHOT_TEST(forget_snapshots__a_reader_that_comes_back_is_refused),
        SNAPSHOT_TEST(put__with_the_queue_pair),
        SNAPSHOT_TEST(read__of_other_regions_takes_none),
        SNAPSHOT_TEST(read__never_torn_with_losses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
