// SPDX-License-Identifier: BSD-2-Clause
// Threads post to queue pairs and poll their completion queues at once, as the device lets them: a lock for each ring,
// and one token for the engine, which each thread tries to take. Worth most under the thread sanitizer.
#include "engine/tests/pair.h"

#include "base/prng.h"
#include "base/tests/test.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

enum {
    THREADS = 16,
    QPS = 64,
    CQS = 4, // of each side
    RECEIVES = 512,
    REQUESTS = 3000, // of each thread
    PLACES = 500,    // times that a queue of one place is filled
    DEPTH = 4,
    POSTS = 20000,          // to a queue of so many places
    BUFFER = 2048,          // of each queue pair
    COUNTER = QPS * BUFFER, // offset of the word that all threads add to
};

static struct {
    struct pair *pair;
    pthread_mutex_t token; // of both engines and what lies between them
    struct alb_qp *qps[QPS][2];
    pthread_mutex_t send_locks[QPS];
    struct alb_cq *cqs[2][CQS];
    pthread_mutex_t cq_locks[2][CQS];
    struct alb_srq *srq; // side 1 receives through it
    pthread_mutex_t srq_lock;

    _Atomic uint8_t completed[THREADS * REQUESTS]; // by wr_id
    _Atomic uint32_t completions, receives, sends, additions, events;
    _Atomic bool is_over;
    uint32_t packets; // under the token
} w;

static void begin(void)
{
    memset(&w, 0, sizeof(w));
    w.pair = pair_new(NULL);
    pthread_mutex_init(&w.token, NULL);
    for (int side = 0; side < 2; side++)
        for (int i = 0; i < CQS; i++) {
            assert_int_equal(alb_cq_create(w.pair->hosts[side].engine, 4096, NULL, &w.cqs[side][i]), 0);
            pthread_mutex_init(&w.cq_locks[side][i], NULL);
        }
    assert_int_equal(alb_srq_create(w.pair->hosts[1].pd, RECEIVES, 1, 0, NULL, &w.srq), 0);
    pthread_mutex_init(&w.srq_lock, NULL);
}

static void make_qp(uint32_t i, uint32_t send_wr_max)
{
    for (int side = 0; side < 2; side++) {
        struct alb_qp_init init = {
            .type = ALB_QPT_RC,
            .send_cq = w.cqs[side][i % CQS],
            .recv_cq = w.cqs[side][(i + 1) % CQS],
            .srq = side ? w.srq : NULL,
            .cap = {.send_wr_max = send_wr_max, .send_sge_max = 1, .inline_max_bytes = 64},
        };
        w.qps[i][side] = pair_qp_with(w.pair, side, &init);
    }
    for (int side = 0; side < 2; side++) {
        struct alb_qp_attr attr = pair_attr(w.pair, side, w.qps[i][!side]);
        assert_int_equal(pair_move(w.pair, w.qps[i][side], ALB_QPS_RTS, &attr), 0);
    }
    pthread_mutex_init(&w.send_locks[i], NULL);
}

static void post_receive(void)
{
    struct alb_sge sge = pair_sge(w.pair, 1, COUNTER + 64, 2 * BUFFER);
    pthread_mutex_lock(&w.srq_lock);
    int error = alb_srq_post(w.srq, 0, &sge, 1);
    pthread_mutex_unlock(&w.srq_lock);
    alb_assert(error == 0);
}

// The holder's turn, for a while: what was posted goes, what is on the way arrives, one packet in a hundred does not.
static void drive(void)
{
    uint32_t moved = 0;
    for (int side = 0; side < 2; side++)
        moved += pair_send(w.pair, side);
    for (int side = 0; side < 2; side++)
        while (pair_count(w.pair, side) > 0)
            ++w.packets % 100 == 0 ? pair_lose(w.pair, side) : pair_deliver(w.pair, side);
    if (moved == 0)
        pair_pass(w.pair, ALB_NS_PER_MS);
    struct alb_event event;
    for (int side = 0; side < 2; side++)
        while (alb_engine_event(w.pair->hosts[side].engine, &event)) {
            alb_assert(event.type == ALB_EVENT_CQ_NOTIFY || event.type == ALB_EVENT_COMM_EST);
            atomic_fetch_add(&w.events, event.type == ALB_EVENT_CQ_NOTIFY);
        }
}

static void try_to_drive(void)
{
    if (pthread_mutex_trylock(&w.token) != 0)
        return;
    drive();
    pthread_mutex_unlock(&w.token);
}

static void poll_one(int side, uint32_t i)
{
    struct alb_wc wcs[8];
    uint32_t count = 0;
    pthread_mutex_lock(&w.cq_locks[side][i]);
    const struct alb_wc *wc;
    while (count < ALB_COUNT(wcs) && (wc = alb_cq_peek(w.cqs[side][i]))) {
        wcs[count++] = *wc;
        alb_cq_pop(w.cqs[side][i]);
    }
    pthread_mutex_unlock(&w.cq_locks[side][i]);
    alb_cq_arm(w.cqs[side][i], ALB_CQ_ARM_NEXT);
    for (uint32_t k = 0; k < count; k++) {
        alb_assert(wcs[k].status == ALB_WC_SUCCESS);
        if (wcs[k].opcode & ALB_WC_RECV) {
            atomic_fetch_add(&w.receives, 1);
            post_receive();
        } else {
            alb_assert(atomic_fetch_add(&w.completed[wcs[k].wr_id], 1) == 0);
            atomic_fetch_add(&w.completions, 1);
        }
    }
}

static int post_one(uint32_t i, const struct alb_send_wr *wr)
{
    pthread_mutex_lock(&w.send_locks[i]);
    int error = alb_qp_send_stage(w.qps[i][0], wr);
    if (!error)
        alb_qp_send_commit(w.qps[i][0]);
    pthread_mutex_unlock(&w.send_locks[i]);
    if (!error)
        alb_engine_bell_ring(w.qps[i][0]);
    return error;
}

static int post(struct alb_prng *prng, uint64_t wr_id)
{
    static const enum alb_wr_opcode opcodes[] = {ALB_WR_SEND, ALB_WR_RDMA_WRITE, ALB_WR_RDMA_READ,
                                                 ALB_WR_ATOMIC_FETCH_AND_ADD, ALB_WR_SEND_WITH_IMM};
    uint32_t i = (uint32_t)alb_prng_below(prng, QPS);
    enum alb_wr_opcode opcode = opcodes[alb_prng_below(prng, ALB_COUNT(opcodes))];
    bool is_atomic = opcode == ALB_WR_ATOMIC_FETCH_AND_ADD;
    bool is_send = opcode == ALB_WR_SEND || opcode == ALB_WR_SEND_WITH_IMM;
    uint32_t length = is_atomic ? 8 : 1 + (uint32_t)alb_prng_below(prng, BUFFER);
    struct alb_sge sge = pair_sge(w.pair, 0, i * BUFFER, length);
    struct alb_send_wr wr = {
        .wr_id = wr_id,
        .opcode = opcode,
        .flags = ALB_SEND_SIGNALED,
        .sge = &sge,
        .sge_count = 1,
        .remote_addr = pair_va(w.pair, 1, is_atomic ? COUNTER : i * BUFFER),
        .rkey = alb_region_key(w.pair->hosts[1].mr),
        .compare_add = 1,
    };
    int error = post_one(i, &wr);
    if (error)
        return error;
    atomic_fetch_add(&w.sends, is_send);
    atomic_fetch_add(&w.additions, is_atomic);
    return 0;
}

// Beside the traffic of the others a queue pair comes, sends, and goes in the middle of it.
static void come_and_go(void)
{
    struct alb_qp *qps[2];
    pthread_mutex_lock(&w.token);
    pair_connect(w.pair, ALB_QPT_RC, qps, NULL);
    int error = pair_ask(w.pair, qps[0], ALB_WR_RDMA_WRITE, 0, 0, 0, BUFFER);
    alb_assert(error == 0);
    pair_send(w.pair, 0);
    for (int side = 0; side < 2; side++)
        alb_qp_destroy(qps[side]);
    pthread_mutex_unlock(&w.token);
}

static void *run(void *argument)
{
    uint64_t me = (uintptr_t)argument;
    struct alb_prng prng;
    alb_prng_init(&prng, me + 1);
    for (uint64_t i = 0; i < REQUESTS; i++) {
        while (post(&prng, me * REQUESTS + i) != 0) { // its queue is full
            for (uint32_t k = 0; k < CQS; k++)
                poll_one(0, k);
            try_to_drive();
        }
        poll_one((int)alb_prng_below(&prng, 2), (uint32_t)alb_prng_below(&prng, CQS));
        if (alb_prng_below(&prng, 3) == 0)
            try_to_drive();
        if (alb_prng_below(&prng, 200) == 0)
            come_and_go();
    }
    while (atomic_load(&w.completions) < THREADS * REQUESTS || atomic_load(&w.receives) < atomic_load(&w.sends)) {
        for (uint32_t k = 0; k < 2 * CQS; k++)
            poll_one(k % 2, k / 2);
        try_to_drive();
        sched_yield();
    }
    return NULL;
}

static void end(uint32_t qp_count)
{
    for (uint32_t i = 0; i < qp_count; i++)
        for (int side = 0; side < 2; side++)
            assert_int_equal(alb_qp_destroy(w.qps[i][side]), 0);
    for (int side = 0; side < 2; side++)
        for (int i = 0; i < CQS; i++)
            assert_int_equal(alb_cq_destroy(w.cqs[side][i]), 0);
    assert_int_equal(alb_srq_destroy(w.srq), 0);
    pair_free(w.pair);
}

static void engine__sixteen_threads_and_64_queue_pairs(void **state)
{
    pthread_t threads[THREADS];
    begin();
    for (uint32_t i = 0; i < QPS; i++)
        make_qp(i, 16);
    for (uint32_t i = 0; i < RECEIVES; i++)
        post_receive();
    for (uintptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, run, (void *)i), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (uint32_t i = 0; i < THREADS * REQUESTS; i++)
        assert_int_equal(w.completed[i], 1);
    assert_int_equal(*(uint64_t *)(w.pair->hosts[1].memory + COUNTER), w.additions); // each executed once
    assert_true(w.events > 0);
    end(QPS);
}

static void *drive_on(void *argument)
{
    while (!atomic_load(&w.is_over))
        try_to_drive();
    return NULL;
}

static void *poll_on(void *argument)
{
    while (!atomic_load(&w.is_over))
        poll_one(0, 0);
    return NULL;
}

static struct alb_send_wr small_write(struct alb_sge *sge)
{
    return (struct alb_send_wr){
        .opcode = ALB_WR_RDMA_WRITE,
        .flags = ALB_SEND_SIGNALED,
        .sge = sge,
        .sge_count = 1,
        .remote_addr = pair_va(w.pair, 1, 0),
        .rkey = alb_region_key(w.pair->hosts[1].mr),
    };
}

// One thread looks for room in a queue of one place, which a second one's engine empties and a third one's polling
// gives back: what the engine read there is read before the place is filled again.
static void engine__place_that_another_thread_gives_back(void **state)
{
    pthread_t driver, poller;
    begin();
    make_qp(0, 1);
    assert_int_equal(pthread_create(&driver, NULL, drive_on, NULL), 0);
    assert_int_equal(pthread_create(&poller, NULL, poll_on, NULL), 0);
    struct alb_sge sge = pair_sge(w.pair, 0, 0, 8);
    struct alb_send_wr wr = small_write(&sge);
    for (; wr.wr_id < PLACES; wr.wr_id++)
        while (post_one(0, &wr) != 0)
            sched_yield();
    while (atomic_load(&w.completions) < PLACES)
        sched_yield();
    atomic_store(&w.is_over, true);
    pthread_join(driver, NULL);
    pthread_join(poller, NULL);
    end(1);
}

// Who posts no more than it has seen completed finds room, whatever the engine completes meanwhile.
static void engine__place_for_each_completion_that_was_polled(void **state)
{
    pthread_t driver;
    begin();
    make_qp(0, DEPTH);
    assert_int_equal(pthread_create(&driver, NULL, drive_on, NULL), 0);
    struct alb_sge sge = pair_sge(w.pair, 0, 0, 8);
    struct alb_send_wr wr = small_write(&sge);
    while (wr.wr_id < POSTS) {
        while (wr.wr_id < POSTS && wr.wr_id - atomic_load(&w.completions) < DEPTH) {
            assert_int_equal(post_one(0, &wr), 0);
            wr.wr_id++;
        }
        poll_one(0, 0);
    }
    while (atomic_load(&w.completions) < POSTS)
        poll_one(0, 0);
    atomic_store(&w.is_over, true);
    pthread_join(driver, NULL);
    end(1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(engine__sixteen_threads_and_64_queue_pairs),
        cmocka_unit_test(engine__place_that_another_thread_gives_back),
        cmocka_unit_test(engine__place_for_each_completion_that_was_polled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
