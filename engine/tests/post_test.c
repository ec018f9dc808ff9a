// SPDX-License-Identifier: BSD-2-Clause
#include "engine/tests/pair.h"

#include "base/tests/test.h"

static int setup(void **state)
{
    *state = pair_new(NULL);
    return 0;
}

static int teardown(void **state)
{
    pair_free(*state);
    return 0;
}

// A request that every queue pair that knows its operation takes: eight bytes, and whatever the operation needs beside
// them.
struct request {
    struct alb_sge sge[6];
    struct alb_send_wr wr;
};

static struct alb_ah *make_ah(struct pair *pair)
{
    struct alb_ah *ah;
    struct alb_av av = {.local = pair->hosts[0].addr, .peer = pair->hosts[1].addr};
    assert_int_equal(alb_ah_create(pair->hosts[0].pd, &av, &ah), 0);
    return ah;
}

static void make_request(struct request *request, struct pair *pair, enum alb_wr_opcode opcode, const struct alb_ah *ah)
{
    *request = (struct request){.wr = {.wr_id = 5, .opcode = opcode, .ah = ah, .remote_qpn = 77}};
    request->sge[0] = pair_sge(pair, 0, 0, 8);
    request->wr.sge = request->sge;
    request->wr.sge_count = 1;
}

static const enum alb_qp_type types[] = {ALB_QPT_RC, ALB_QPT_UC, ALB_QPT_UD};

static struct alb_qp *ready_qp(struct pair *pair, enum alb_qp_type type)
{
    struct alb_qp *qp = pair_qp(pair, 0, type);
    struct alb_qp_attr attr = pair_attr(pair, 0, NULL);
    assert_int_equal(pair_move(pair, qp, ALB_QPS_RTS, &attr), 0);
    return qp;
}

// What ibv_post_send(3) lists for each service, and which of them may be inline.
static void alb_qp_send_stage__operations_by_service(void **state)
{
    static const struct {
        enum alb_wr_opcode opcode;
        bool rc, uc, ud, may_inline;
    } rows[] = {
        {ALB_WR_RDMA_WRITE, true, true, false, true},
        {ALB_WR_RDMA_WRITE_WITH_IMM, true, true, false, true},
        {ALB_WR_SEND, true, true, true, true},
        {ALB_WR_SEND_WITH_IMM, true, true, true, true},
        {ALB_WR_RDMA_READ, true, false, false, false},
        {ALB_WR_ATOMIC_CMP_AND_SWP, true, false, false, false},
        {ALB_WR_ATOMIC_FETCH_AND_ADD, true, false, false, false},
        {ALB_WR_LOCAL_INV, true, true, false, false},
        {ALB_WR_SEND_WITH_INV, true, false, false, true},
        {ALB_WR_ATOMIC_WRITE, true, false, false, true},
        {10, false, false, false, false}, // IBV_WR_TSO
        {14, false, false, false, false}, // IBV_WR_FLUSH
        {16, false, false, false, false},
        {-1, false, false, false, false},
    };
    struct pair *pair = *state;
    struct alb_ah *ah = make_ah(pair);
    for (size_t t = 0; t < ALB_COUNT(types); t++) {
        struct alb_qp *qp = ready_qp(pair, types[t]);
        for (size_t i = 0; i < ALB_COUNT(rows); i++) {
            bool is_known = (const bool[]){rows[i].rc, rows[i].uc, rows[i].ud}[t];
            struct request request;
            make_request(&request, pair, rows[i].opcode, ah);
            assert_int_equal(alb_qp_send_stage(qp, &request.wr), is_known ? 0 : EINVAL);
            request.wr.flags = ALB_SEND_INLINE;
            assert_int_equal(alb_qp_send_stage(qp, &request.wr), is_known && rows[i].may_inline ? 0 : EINVAL);
            alb_qp_send_abort(qp);
        }
    }
    assert_int_equal(alb_ah_destroy(ah), 0);
}

static void alb_qp_send_stage__from_rts_on(void **state)
{
    struct pair *pair = *state;
    struct alb_qp *qp = pair_qp(pair, 0, ALB_QPT_RC);
    struct alb_qp_attr attr = pair_attr(pair, 0, NULL);
    struct request request;
    make_request(&request, pair, ALB_WR_SEND, NULL);
    for (enum alb_qp_state next = ALB_QPS_RESET; next <= ALB_QPS_ERR; next++) {
        attr.state = next;
        if (next == ALB_QPS_SQE) // not of a reliable one
            continue;
        assert_int_equal(alb_qp_modify(qp, &attr, pair_mask(ALB_QPT_RC, next), pair->now), 0);
        assert_int_equal(alb_qp_send_stage(qp, &request.wr), next >= ALB_QPS_RTS ? 0 : EINVAL);
        alb_qp_send_abort(qp);
    }
}

static void alb_qp_send_stage__takes_sge_max_entries(void **state)
{
    struct pair *pair = *state;
    struct alb_qp *qp = ready_qp(pair, ALB_QPT_RC);
    struct request request;
    make_request(&request, pair, ALB_WR_SEND, NULL);
    for (int i = 0; i < 5; i++)
        request.sge[i] = pair_sge(pair, 0, 16, 8);
    request.wr.sge_count = 4;
    assert_int_equal(alb_qp_send_stage(qp, &request.wr), 0);
    request.wr.sge_count = 5;
    assert_int_equal(alb_qp_send_stage(qp, &request.wr), EINVAL);
    request.wr.flags = ALB_SEND_INLINE; // needs no entries, only room: 40 bytes of 64
    assert_int_equal(alb_qp_send_stage(qp, &request.wr), 0);
    request.wr.sge_count = 0;
    request.wr.sge = NULL;
    assert_int_equal(alb_qp_send_stage(qp, &request.wr), 0);
}

static void alb_qp_send_stage__takes_inline_max_bytes(void **state)
{
    struct pair *pair = *state;
    struct alb_qp *qp = ready_qp(pair, ALB_QPT_UC);
    struct request request;
    make_request(&request, pair, ALB_WR_SEND, NULL);
    request.wr.flags = ALB_SEND_INLINE;
    request.sge[0].length = 40;
    request.sge[1] = pair_sge(pair, 0, 100, 24);
    request.wr.sge_count = 2;
    assert_int_equal(alb_qp_send_stage(qp, &request.wr), 0);
    request.sge[1].length = 25;
    assert_int_equal(alb_qp_send_stage(qp, &request.wr), EINVAL);
}

// The sum of the lengths is what counts, and it does not wrap.
static void alb_qp_send_stage__takes_messages_of_two_gigabytes(void **state)
{
    struct pair *pair = *state;
    struct alb_qp *qp = ready_qp(pair, ALB_QPT_RC);
    struct request request;
    make_request(&request, pair, ALB_WR_RDMA_WRITE, NULL);
    request.sge[0].length = ALB_MAX_MESSAGE;
    assert_int_equal(alb_qp_send_stage(qp, &request.wr), 0);
    request.sge[1] = pair_sge(pair, 0, 0, 1);
    request.wr.sge_count = 2;
    assert_int_equal(alb_qp_send_stage(qp, &request.wr), EINVAL);
    request.sge[0].length = UINT32_MAX;
    request.sge[1].length = UINT32_MAX;
    request.wr.sge_count = 2;
    assert_int_equal(alb_qp_send_stage(qp, &request.wr), EINVAL);
}

static void alb_qp_send_stage__atomics_are_of_eight_bytes(void **state)
{
    static const enum alb_wr_opcode atomics[] = {ALB_WR_ATOMIC_CMP_AND_SWP, ALB_WR_ATOMIC_FETCH_AND_ADD,
                                                 ALB_WR_ATOMIC_WRITE};
    struct pair *pair = *state;
    struct alb_qp *qp = ready_qp(pair, ALB_QPT_RC);
    for (size_t i = 0; i < ALB_COUNT(atomics); i++)
        for (uint32_t length = 0; length <= 16; length++) {
            struct request request;
            make_request(&request, pair, atomics[i], NULL);
            request.sge[0].length = length;
            assert_int_equal(alb_qp_send_stage(qp, &request.wr), length == 8 ? 0 : EINVAL);
            alb_qp_send_abort(qp);
        }
}

static void alb_qp_send_stage__datagrams_need_an_address(void **state)
{
    struct pair *pair = *state;
    struct alb_qp *qp = ready_qp(pair, ALB_QPT_UD);
    struct request request;
    make_request(&request, pair, ALB_WR_SEND, NULL);
    assert_int_equal(alb_qp_send_stage(qp, &request.wr), EINVAL);
    struct alb_pd *own = pair->hosts[0].pd;
    assert_int_equal(alb_pd_create(pair->hosts[0].engine, &pair->hosts[0].pd), 0);
    struct alb_ah *foreign = make_ah(pair); // of another protection domain
    make_request(&request, pair, ALB_WR_SEND, foreign);
    assert_int_equal(alb_qp_send_stage(qp, &request.wr), EINVAL);
    assert_int_equal(alb_ah_destroy(foreign), 0);
    assert_int_equal(alb_pd_destroy(pair->hosts[0].pd), 0);
    pair->hosts[0].pd = own;
}

// The handle may go as soon as the request is posted.
static void alb_qp_send_stage__copies_the_address_of_a_datagram(void **state)
{
    struct pair *pair = *state;
    struct alb_qp *qp = ready_qp(pair, ALB_QPT_UD);
    struct alb_ah *ah = make_ah(pair);
    struct request request;
    make_request(&request, pair, ALB_WR_SEND, ah);
    assert_int_equal(pair_post(pair, qp, &request.wr), 0);
    assert_int_equal(alb_ah_destroy(ah), 0);
    assert_int_equal(pair_send(pair, 0), 1);
    assert_memory_equal(&pair_peek(pair, 0, 0)->datagram.local.addr, &pair->hosts[1].addr, sizeof(struct alb_addr));
    assert_int_equal(pair_peek(pair, 0, 0)->roce.dest_qpn, 77);
}

static void alb_qp_send_stage__binds_need_a_window_and_a_region(void **state)
{
    struct pair *pair = *state;
    struct alb_qp *qp = ready_qp(pair, ALB_QPT_RC);
    struct alb_region *mw;
    assert_int_equal(alb_mw_create(pair->hosts[0].pd, ALB_MW_TYPE_1, &mw), 0);
    struct alb_send_wr wr = {.opcode = ALB_WR_BIND_MW, .bind = {.mw = mw, .mr = pair->hosts[0].mr, .length = 8}};
    assert_int_equal(alb_qp_send_stage(qp, &wr), 0);
    wr.bind.mr = NULL;
    assert_int_equal(alb_qp_send_stage(qp, &wr), EINVAL);
    wr.bind.length = 0; // an unbinding one needs no region
    assert_int_equal(alb_qp_send_stage(qp, &wr), 0);
    wr.bind.mw = NULL;
    assert_int_equal(alb_qp_send_stage(qp, &wr), EINVAL);
    assert_int_equal(alb_qp_send_stage(ready_qp(pair, ALB_QPT_UD), &wr), EINVAL);
}

static void alb_qp_send_stage__full_at_capacity(void **state)
{
    struct pair *pair = *state;
    struct alb_qp_init init = {.type = ALB_QPT_RC, .cap = {.send_wr_max = 5, .send_sge_max = 1}};
    struct alb_qp *qp = pair_qp_with(pair, 0, &init);
    struct alb_qp_attr attr = pair_attr(pair, 0, NULL);
    assert_int_equal(pair_move(pair, qp, ALB_QPS_RTS, &attr), 0);
    assert_int_equal(init.cap.send_wr_max, 8); // rounded up, and reported so
    struct request request;
    make_request(&request, pair, ALB_WR_SEND, NULL);
    for (int i = 0; i < 8; i++)
        assert_int_equal(alb_qp_send_stage(qp, &request.wr), 0);
    assert_int_equal(alb_qp_send_stage(qp, &request.wr), ENOMEM);
    alb_qp_send_abort(qp);
    assert_int_equal(alb_qp_send_stage(qp, &request.wr), 0);
}

static struct alb_qp *small_qp(struct pair *pair)
{
    struct alb_qp_init init = {.type = ALB_QPT_UC, .cap = {.send_wr_max = 4, .send_sge_max = 1}};
    struct alb_qp *qp = pair_qp_with(pair, 0, &init);
    struct alb_qp_attr attr = pair_attr(pair, 0, NULL);
    assert_int_equal(pair_move(pair, qp, ALB_QPS_RTS, &attr), 0);
    return qp;
}

static void post_and_send(struct pair *pair, struct alb_qp *qp, uint32_t flags)
{
    struct request request;
    make_request(&request, pair, ALB_WR_SEND, NULL);
    request.wr.flags = flags;
    for (int i = 0; i < 4; i++)
        assert_int_equal(pair_post(pair, qp, &request.wr), 0);
    pair_send(pair, 0); // without acknowledgements: sent is done
}

static int room(struct pair *pair, struct alb_qp *qp)
{
    struct request request;
    make_request(&request, pair, ALB_WR_SEND, NULL);
    int count = 0;
    while (alb_qp_send_stage(qp, &request.wr) == 0)
        count++;
    alb_qp_send_abort(qp);
    return count;
}

// Else a program that polls when its send queue is full would overrun its completion queue.
static void alb_qp_send_stage__a_place_is_free_when_its_completion_is_popped(void **state)
{
    struct pair *pair = *state;
    struct alb_qp *qp = small_qp(pair);
    struct alb_wc wc;
    post_and_send(pair, qp, ALB_SEND_SIGNALED);
    assert_int_equal(room(pair, qp), 0);
    for (int i = 1; i <= 4; i++) {
        assert_true(pair_poll(pair, 0, &wc));
        assert_int_equal(room(pair, qp), i);
    }
    post_and_send(pair, qp, 0);
    assert_int_equal(room(pair, qp), 4);
}

static void alb_qp_send_stage__a_reset_queue_has_all_its_places(void **state)
{
    struct pair *pair = *state;
    struct alb_qp *qp = small_qp(pair);
    struct alb_qp_attr attr = {.state = ALB_QPS_RESET};
    post_and_send(pair, qp, ALB_SEND_SIGNALED);
    assert_int_equal(alb_qp_modify(qp, &attr, ALB_QP_STATE, pair->now), 0);
    assert_null(alb_cq_peek(pair->hosts[0].cq));
    attr = pair_attr(pair, 0, NULL);
    assert_int_equal(pair_move(pair, qp, ALB_QPS_RTS, &attr), 0);
    assert_int_equal(room(pair, qp), 4);
}

static void alb_qp_send_stage__a_queue_without_room_takes_nothing(void **state)
{
    struct pair *pair = *state;
    struct alb_qp_init init = {.type = ALB_QPT_RC};
    struct alb_qp *qp = pair_qp_with(pair, 0, &init);
    struct alb_qp_attr attr = pair_attr(pair, 0, NULL);
    bool bell;
    assert_int_equal(pair_move(pair, qp, ALB_QPS_RTS, &attr), 0);
    struct alb_send_wr wr = {.opcode = ALB_WR_SEND};
    assert_int_equal(alb_qp_send_stage(qp, &wr), ENOMEM);
    assert_int_equal(alb_qp_recv_post(qp, 1, NULL, 0, &bell), ENOMEM);
    pair_settle(pair);
}

static void alb_qp_send_commit__only_what_is_committed_is_sent(void **state)
{
    struct pair *pair = *state;
    struct alb_qp *qps[2];
    pair_connect(pair, ALB_QPT_RC, qps, NULL);
    struct request request;
    make_request(&request, pair, ALB_WR_SEND, NULL);
    assert_int_equal(alb_qp_send_stage(qps[0], &request.wr), 0);
    alb_engine_bell_ring(qps[0]);
    assert_int_equal(pair_send(pair, 0), 0);
    alb_qp_send_abort(qps[0]);
    assert_int_equal(alb_qp_send_stage(qps[0], &request.wr), 0);
    assert_int_equal(alb_qp_send_stage(qps[0], &request.wr), 0);
    alb_qp_send_commit(qps[0]);
    assert_int_equal(alb_qp_send_stage(qps[0], &request.wr), 0);
    alb_qp_send_abort(qps[0]); // takes back what came after the commit only
    alb_engine_bell_ring(qps[0]);
    assert_int_equal(pair_send(pair, 0), 2);
}

static void alb_qp_send_stage__inline_data_is_copied_at_once(void **state)
{
    struct pair *pair = *state;
    struct alb_qp *qps[2];
    pair_connect(pair, ALB_QPT_RC, qps, NULL);
    char first[] = "inline ", second[] = "data";
    struct alb_sge sge[] = {{(uintptr_t)first, 7, 0}, {(uintptr_t)second, 4, 0}}; // no key is needed
    struct alb_send_wr wr = {.opcode = ALB_WR_SEND, .flags = ALB_SEND_INLINE, .sge = sge, .sge_count = 2};
    assert_int_equal(pair_post(pair, qps[0], &wr), 0);
    memset(first, 0, sizeof(first));
    memset(second, 0, sizeof(second));
    assert_int_equal(pair_send(pair, 0), 1);
    const struct pair_packet *packet = pair_peek(pair, 0, 0);
    assert_int_equal(packet->payload_bytes, 11);
    assert_memory_equal(packet->bytes + packet->payload_offset, "inline data", 11);
}

static void alb_qp_recv_post__from_init_on(void **state)
{
    struct pair *pair = *state;
    struct alb_qp *qp = pair_qp(pair, 0, ALB_QPT_RC);
    struct alb_qp_attr attr = pair_attr(pair, 0, NULL);
    bool bell;
    assert_int_equal(alb_qp_recv_post(qp, 1, NULL, 0, &bell), EINVAL);
    assert_int_equal(pair_move(pair, qp, ALB_QPS_INIT, &attr), 0);
    assert_int_equal(alb_qp_recv_post(qp, 1, NULL, 0, &bell), 0);
    assert_false(bell);
}

static void alb_qp_recv_post__limits(void **state)
{
    struct pair *pair = *state;
    struct alb_qp *qp = ready_qp(pair, ALB_QPT_RC);
    struct alb_sge sge[5] = {{0}};
    bool bell;
    assert_int_equal(alb_qp_recv_post(qp, 1, sge, 5, &bell), EINVAL);
    for (int i = 0; i < 16; i++)
        assert_int_equal(alb_qp_recv_post(qp, 1, sge, 4, &bell), 0);
    assert_int_equal(alb_qp_recv_post(qp, 1, sge, 4, &bell), ENOMEM);
}

static void alb_qp_recv_post__refused_beside_a_shared_queue(void **state)
{
    struct pair *pair = *state;
    struct alb_srq *srq;
    bool bell;
    assert_int_equal(alb_srq_create(pair->hosts[0].pd, 4, 1, 0, NULL, &srq), 0);
    struct alb_qp_init init = {.type = ALB_QPT_RC, .srq = srq};
    struct alb_qp *qp = pair_qp_with(pair, 0, &init);
    struct alb_qp_attr attr = pair_attr(pair, 0, NULL);
    assert_int_equal(pair_move(pair, qp, ALB_QPS_RTS, &attr), 0);
    assert_int_equal(alb_qp_recv_post(qp, 1, NULL, 0, &bell), EINVAL);
    assert_int_equal(alb_qp_destroy(qp), 0);
    assert_int_equal(alb_srq_destroy(srq), 0);
}

static void alb_qp_recv_post__in_error_asks_for_the_bell(void **state)
{
    struct pair *pair = *state;
    struct alb_qp *qp = ready_qp(pair, ALB_QPT_RC);
    struct alb_qp_attr attr = {.state = ALB_QPS_ERR};
    struct alb_wc wc;
    bool bell;
    assert_int_equal(alb_qp_modify(qp, &attr, ALB_QP_STATE, pair->now), 0);
    assert_int_equal(alb_qp_recv_post(qp, 42, NULL, 0, &bell), 0);
    assert_true(bell);
    assert_false(pair_poll(pair, 0, &wc));
    alb_engine_bell_ring(qp);
    alb_engine_bells(qp->engine, pair->now);
    assert_true(pair_poll(pair, 0, &wc));
    assert_int_equal(wc.wr_id, 42);
    assert_int_equal(wc.status, ALB_WC_WR_FLUSH_ERR);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(alb_qp_send_stage__operations_by_service, setup, teardown),
        cmocka_unit_test_setup_teardown(alb_qp_send_stage__from_rts_on, setup, teardown),
        cmocka_unit_test_setup_teardown(alb_qp_send_stage__takes_sge_max_entries, setup, teardown),
        cmocka_unit_test_setup_teardown(alb_qp_send_stage__takes_inline_max_bytes, setup, teardown),
        cmocka_unit_test_setup_teardown(alb_qp_send_stage__takes_messages_of_two_gigabytes, setup, teardown),
        cmocka_unit_test_setup_teardown(alb_qp_send_stage__atomics_are_of_eight_bytes, setup, teardown),
        cmocka_unit_test_setup_teardown(alb_qp_send_stage__datagrams_need_an_address, setup, teardown),
        cmocka_unit_test_setup_teardown(alb_qp_send_stage__copies_the_address_of_a_datagram, setup, teardown),
        cmocka_unit_test_setup_teardown(alb_qp_send_stage__binds_need_a_window_and_a_region, setup, teardown),
        cmocka_unit_test_setup_teardown(alb_qp_send_stage__full_at_capacity, setup, teardown),
        cmocka_unit_test_setup_teardown(alb_qp_send_stage__a_place_is_free_when_its_completion_is_popped, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(alb_qp_send_stage__a_reset_queue_has_all_its_places, setup, teardown),
        cmocka_unit_test_setup_teardown(alb_qp_send_stage__a_queue_without_room_takes_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(alb_qp_send_commit__only_what_is_committed_is_sent, setup, teardown),
        cmocka_unit_test_setup_teardown(alb_qp_send_stage__inline_data_is_copied_at_once, setup, teardown),
        cmocka_unit_test_setup_teardown(alb_qp_recv_post__from_init_on, setup, teardown),
        cmocka_unit_test_setup_teardown(alb_qp_recv_post__limits, setup, teardown),
        cmocka_unit_test_setup_teardown(alb_qp_recv_post__refused_beside_a_shared_queue, setup, teardown),
        cmocka_unit_test_setup_teardown(alb_qp_recv_post__in_error_asks_for_the_bell, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
