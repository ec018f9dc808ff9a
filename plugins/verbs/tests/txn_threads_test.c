// SPDX-License-Identifier: BSD-2-Clause
// Transactions are posted by one thread while others let the device work, and ask about and decide what was posted: the
// place of what has ended belongs to the posts at once. Tells most under the thread sanitizer.
#include "txn_ends.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { TRANSACTIONS = 3000, PLACES = 2, BACK = 4 };

struct stage {
    struct ends e;
    _Atomic uint64_t newest; // number
    atomic_int posted, completed, failures;
    atomic_bool is_over;
};

static struct ends ends_with_few_places(struct fixture *f)
{
    const struct albdv_qp_attr attr = {.in_flight_max = PLACES};
    struct ends e = {.f = f, .initiator = fixture_qp(f, IBV_QPT_RC), .target = fixture_qp(f, IBV_QPT_RC)};
    e.dv = albdv_extend_qp(e.initiator, &attr);
    assert_non_null(e.dv);
    e.ex = ibv_qp_to_qp_ex(e.initiator);
    fixture_connect(e.initiator, e.target);
    return e;
}

// A reflected one completes before it has ended.
static void *post(void *argument)
{
    struct stage *stage = argument;
    while (stage->posted < TRANSACTIONS) {
        begin(&stage->e, (uint64_t)stage->posted, stage->posted % 2 ? ALBDV_COMMITTED : ALBDV_REFLECTED, 0);
        add(&stage->e, TARGET + 64 * (size_t)(stage->posted % PLACES), 8); // what is not over has another
        uint64_t number = albdv_wr_txn_end(stage->e.dv);
        int error = ibv_wr_complete(stage->e.ex);
        if (error == ENOMEM)
            continue;
        stage->failures += error != 0;
        stage->newest = number;
        stage->posted++;
    }
    return NULL;
}

static void *take(void *argument)
{
    struct stage *stage = argument;
    struct ibv_wc wc;
    while (stage->completed < TRANSACTIONS)
        if (ibv_poll_cq(stage->e.f->cq, 1, &wc) == 1) {
            bool is_next = wc.wr_id == (uint64_t)stage->completed;
            bool is_told = wc.status == IBV_WC_SUCCESS || albdv_wc_reason(&wc) == ALBDV_WITHDRAWN;
            stage->failures += !is_next || !is_told;
            stage->completed++;
        }
    stage->is_over = true;
    return NULL;
}

static void *ask_and_decide(void *argument)
{
    struct stage *stage = argument;
    for (uint64_t turn = 0; !stage->is_over; turn++) {
        struct albdv_txn_status status;
        uint64_t newest = stage->newest, number = newest > turn % BACK ? newest - turn % BACK : newest;
        int error = albdv_query_txn(stage->e.dv, number, &status, sizeof(status));
        if (error ? error != ENOENT : status.token.number != number)
            stage->failures++;
        error = turn % 8 ? 0 : albdv_decide_txn(stage->e.dv, number, ALBDV_ABORT);
        if (error && error != ENOENT && error != EALREADY)
            stage->failures++;
    }
    return NULL;
}

// Posting looks for its region, in its own thread, to take a digest of what is there. So does a channel's end for the
// thread of validators.
static void *register_and_ask(void *argument)
{
    struct stage *stage = argument;
    struct fixture *f = stage->e.f;
    struct albdv_proposal_channel *channel = albdv_create_proposal_channel(f->context);
    while (!stage->is_over) {
        struct ibv_mr *mr = ibv_reg_mr(f->pd, f->memory, 4096, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
        stage->failures += !mr || albdv_set_proposal_channel(mr, channel, NULL) || ibv_dereg_mr(mr);
    }
    stage->failures += albdv_destroy_proposal_channel(channel) != 0;
    return NULL;
}

static int accept_all(const struct albdv_proposal *proposal)
{
    return 1;
}

static void *validate(void *argument)
{
    struct stage *stage = argument;
    struct fixture *f = stage->e.f;
    struct ibv_mr *mr = ibv_reg_mr(f->pd, f->memory, 4096, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    while (stage->newest < TRANSACTIONS / 4)
        sched_yield();
    stage->failures += !mr || albdv_set_validator(mr, accept_all, NULL) || ibv_dereg_mr(mr);
    return NULL;
}

static void txn__posts_beside_questions_and_decisions(void **state)
{
    void *(*const works[])(void *) = {post, take, ask_and_decide, register_and_ask, validate};
    enum { WORKS = sizeof(works) / sizeof(*works) };
    pthread_t threads[WORKS];
    struct stage stage = {.e = ends_with_few_places(*state)};
    for (int i = 0; i < WORKS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, works[i], &stage), 0);
    for (int i = 0; i < WORKS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(stage.failures, 0);
    tear_down(&stage.e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(txn__posts_beside_questions_and_decisions),
    };
    setenv("ALBEDO_DEVICES", "albedo0", 1);
    return cmocka_run_group_tests_name("txn_threads", tests, NULL, NULL);
}
