// SPDX-License-Identifier: BSD-2-Clause
#include "fixture.h"

#include "device/tests/network_namespace.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

// Takes events until one of that type comes; others are acknowledged.
static struct ibv_async_event wait_for(struct fixture *f, enum ibv_event_type type)
{
    for (;;) {
        struct ibv_async_event event;
        assert_int_equal(ibv_get_async_event(f->context, &event), 0);
        if (event.event_type == type)
            return event;
        ibv_ack_async_event(&event);
    }
}

static void get_async_event__nonblocking(void **state)
{
    struct fixture *f = *state;
    struct ibv_async_event event;
    struct pollfd poller = {.fd = f->context->async_fd, .events = POLLIN | POLLOUT};
    assert_int_equal(poll(&poller, 1, 0), 0);
    assert_int_equal(fcntl(f->context->async_fd, F_SETFL, O_NONBLOCK), 0);
    errno = 0;
    assert_int_equal(ibv_get_async_event(f->context, &event), -1);
    assert_int_equal(errno, EAGAIN);
    assert_int_equal(ibv_get_async_event(NULL, &event), -1);
    ibv_ack_async_event(NULL);
}

static struct ibv_srq *make_srq(struct fixture *f)
{
    struct ibv_srq_init_attr init = {.srq_context = f, .attr = {.max_wr = 16, .max_sge = 1}};
    struct ibv_srq *srq = ibv_create_srq(f->pd, &init);
    assert_non_null(srq);
    return srq;
}

static struct ibv_qp *qp_with(struct fixture *f, struct ibv_srq *srq)
{
    struct ibv_qp_init_attr init = fixture_qp_init(f, IBV_QPT_RC);
    init.srq = srq;
    struct ibv_qp *qp = ibv_create_qp(f->pd, &init);
    assert_non_null(qp);
    return qp;
}

// One of two receives is taken, by what comes from that queue pair.
static struct ibv_async_event reach_limit(struct fixture *f, struct ibv_srq *srq, struct ibv_qp *from)
{
    struct ibv_srq_attr attr = {.srq_limit = 2};
    struct ibv_sge sge = fixture_sge(f, 4096, 100);
    struct ibv_recv_wr wr = {.wr_id = 7, .sg_list = &sge, .num_sge = 1}, *bad;
    assert_int_equal(ibv_post_srq_recv(srq, &wr, &bad), 0);
    assert_int_equal(ibv_post_srq_recv(srq, &wr, &bad), 0);
    assert_int_equal(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT), 0);
    fixture_post_send(f, from, 1, 0, 10);
    assert_int_equal(fixture_wait_for(f->cq, 7).status, IBV_WC_SUCCESS);
    return wait_for(f, IBV_EVENT_SRQ_LIMIT_REACHED);
}

static void srq__limit_and_last_wqe(void **state)
{
    struct fixture *f = *state;
    struct ibv_srq *srq = make_srq(f);
    struct ibv_qp *a = fixture_qp(f, IBV_QPT_RC), *b = qp_with(f, srq);
    struct ibv_srq_attr attr;
    fixture_connect(a, b);
    struct ibv_async_event event = reach_limit(f, srq, a);
    assert_ptr_equal(event.element.srq, srq);
    ibv_ack_async_event(&event);
    assert_int_equal(ibv_query_srq(srq, &attr), 0);
    assert_int_equal(attr.srq_limit, 0); // disarmed

    struct ibv_qp_attr qp_attr = {.qp_state = IBV_QPS_ERR};
    assert_int_equal(ibv_modify_qp(b, &qp_attr, IBV_QP_STATE), 0);
    event = wait_for(f, IBV_EVENT_QP_LAST_WQE_REACHED);
    assert_ptr_equal(event.element.qp, b);
    ibv_ack_async_event(&event);
    assert_int_equal(ibv_destroy_srq(srq), EBUSY);
    assert_int_equal(ibv_destroy_qp(a), 0);
    assert_int_equal(ibv_destroy_qp(b), 0);
    assert_int_equal(ibv_destroy_srq(srq), 0);
}

static void modify_srq__limits_that_cannot_be(void **state)
{
    struct fixture *f = *state;
    struct ibv_srq *srq = make_srq(f);
    struct ibv_srq_attr attr = {.srq_limit = 3};
    assert_int_equal(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT), 0);
    attr.srq_limit = 17; // of 16
    assert_int_equal(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT), EINVAL);
    attr.srq_limit = UINT32_MAX;
    assert_int_equal(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT), EINVAL);
    assert_int_equal(ibv_query_srq(srq, &attr), 0);
    assert_int_equal(attr.srq_limit, 3);
    assert_int_equal(ibv_destroy_srq(srq), 0);
}

static void *acknowledge(void *argument)
{
    ibv_ack_async_event(argument);
    return NULL;
}

static void destroy_qp__waits_for_what_was_handed_out(void **state)
{
    struct fixture *f = *state;
    struct ibv_srq *srq = make_srq(f);
    struct ibv_qp *qp = qp_with(f, srq);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    pthread_t thread;
    fixture_to_init(qp);
    assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
    struct ibv_async_event event = wait_for(f, IBV_EVENT_QP_LAST_WQE_REACHED);
    assert_int_equal(pthread_create(&thread, NULL, acknowledge, &event), 0);
    assert_int_equal(ibv_destroy_qp(qp), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(ibv_destroy_srq(srq), 0);
}

static void *destroy_qp(void *qp)
{
    return (void *)(intptr_t)ibv_destroy_qp(qp);
}

static void *destroy_srq(void *srq)
{
    return (void *)(intptr_t)ibv_destroy_srq(srq);
}

static pthread_t while_destroyed(void *(*destroy)(void *), void *object)
{
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, destroy, object), 0);
    usleep(20000); // it waits, as a rule
    return thread;
}

static void expect_destroyed(pthread_t thread, struct ibv_async_event *event)
{
    void *error;
    ibv_ack_async_event(event);
    assert_int_equal(pthread_join(thread, &error), 0);
    assert_null(error);
}

// Handlers use what their event is of.
static void destroy__while_an_event_is_handled(void **state)
{
    struct fixture *f = *state;
    struct ibv_srq *srq = make_srq(f);
    struct ibv_qp *a = fixture_qp(f, IBV_QPT_RC), *b = qp_with(f, srq);
    struct ibv_srq_attr found = {0};
    struct ibv_sge sge = fixture_sge(f, 4096, 100);
    struct ibv_recv_wr wr = {.wr_id = 7, .sg_list = &sge, .num_sge = 1}, *bad;
    fixture_connect(a, b);
    struct ibv_async_event limit = reach_limit(f, srq, a);
    struct ibv_qp_attr qp_attr = {.qp_state = IBV_QPS_ERR};
    struct ibv_qp_init_attr init = {0};
    assert_int_equal(ibv_modify_qp(b, &qp_attr, IBV_QP_STATE), 0);
    struct ibv_async_event last = wait_for(f, IBV_EVENT_QP_LAST_WQE_REACHED);

    pthread_t thread = while_destroyed(destroy_qp, b);
    assert_int_equal(ibv_query_qp(b, &qp_attr, IBV_QP_STATE, &init), 0);
    assert_ptr_equal(init.srq, srq);
    expect_destroyed(thread, &last);
    thread = while_destroyed(destroy_srq, srq);
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(ibv_post_srq_recv(srq, &wr, &bad), 0);
    assert_int_equal(ibv_query_srq(srq, &found), 0);
    assert_true(found.max_wr >= 3 && found.max_sge >= 1);
    expect_destroyed(thread, &limit);
    assert_int_equal(ibv_destroy_qp(a), 0);
}

static void *destroy_cq(void *cq)
{
    return (void *)(intptr_t)ibv_destroy_cq(cq);
}

static void destroy_cq__while_an_event_is_handled(void **state)
{
    struct fixture *f = *state;
    struct ibv_cq *plain = f->cq;
    struct ibv_comp_channel *channel = ibv_create_comp_channel(f->context);
    struct ibv_cq *cq = f->cq = ibv_create_cq(f->context, 8, NULL, channel, 0), *of;
    struct ibv_qp *qp = fixture_qp(f, IBV_QPT_RC);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    struct ibv_wc wc;
    void *context, *error;
    fixture_to_init(qp);
    assert_int_equal(ibv_req_notify_cq(cq, 0), 0);
    fixture_post_recv(f, qp, 1, 0, 10);
    assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
    assert_int_equal(ibv_get_cq_event(channel, &of, &context), 0);
    assert_int_equal(ibv_poll_cq(cq, 1, &wc), 1);
    assert_int_equal(ibv_destroy_qp(qp), 0);
    pthread_t thread = while_destroyed(destroy_cq, cq);
    assert_int_equal(ibv_req_notify_cq(cq, 0), 0);
    assert_int_equal(ibv_poll_cq(cq, 1, &wc), 0);
    ibv_ack_cq_events(cq, 1);
    assert_int_equal(pthread_join(thread, &error), 0);
    assert_null(error);
    assert_int_equal(ibv_destroy_comp_channel(channel), 0);
    f->cq = plain;
}

// An event that is not taken goes with its object.
static void destroy_qp__untaken_events(void **state)
{
    struct fixture *f = *state;
    struct ibv_srq *srq = make_srq(f);
    struct ibv_qp *qp = qp_with(f, srq);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    struct ibv_async_event event;
    fixture_to_init(qp);
    assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
    assert_int_equal(ibv_destroy_qp(qp), 0);
    assert_int_equal(fcntl(f->context->async_fd, F_SETFL, O_NONBLOCK), 0);
    assert_int_equal(ibv_get_async_event(f->context, &event), -1);
    assert_int_equal(errno, EAGAIN);
    assert_int_equal(ibv_destroy_srq(srq), 0);
}

// Each time that completions are lost, not only the first.
static void cq__overrun(void **state)
{
    struct fixture *f = *state;
    struct ibv_cq *plain = f->cq;
    f->cq = ibv_create_cq(f->context, 1, NULL, NULL, 0);
    struct ibv_qp *qp = fixture_qp(f, IBV_QPT_RC);
    struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR}, reset = {.qp_state = IBV_QPS_RESET};
    alarm(60); // an event that does not come ends the test
    for (int round = 0; round < 3; round++) {
        fixture_to_init(qp);
        for (int i = 0; i < 4; i++)
            fixture_post_recv(f, qp, 1, 0, 10);
        assert_int_equal(ibv_modify_qp(qp, &error, IBV_QP_STATE), 0); // four flushed receives into room for fewer
        struct ibv_async_event event = wait_for(f, IBV_EVENT_CQ_ERR);
        assert_ptr_equal(event.element.cq, f->cq);
        ibv_ack_async_event(&event);
        assert_int_equal(ibv_modify_qp(qp, &reset, IBV_QP_STATE), 0);
    }
    alarm(0);
    assert_int_equal(ibv_destroy_qp(qp), 0);
    assert_int_equal(ibv_destroy_cq(f->cq), 0);
    f->cq = plain;
}

// Where a thread waits for events for ever, closing the context must not wait for it.
static _Atomic pid_t waiter;

static void *wait_for_ever(void *argument)
{
    struct ibv_async_event event;
    waiter = gettid();
    ibv_get_async_event(argument, &event);
    return NULL;
}

static void close_device__under_a_reader(void **state)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_context *context = ibv_open_device(list[0]);
    pthread_t thread;
    ibv_free_device_list(list);
    assert_int_equal(pthread_create(&thread, NULL, wait_for_ever, context), 0);
    assert_int_equal(pthread_detach(thread), 0);
    while (waiter == 0 || fixture_thread_state(waiter) != 'S')
        sched_yield();
    assert_int_equal(ibv_close_device(context), 0);
}

// All contexts of a device hear of its port.
static bool hears(struct ibv_context *const contexts[2], enum ibv_event_type type, enum ibv_port_state state)
{
    bool hears = true;
    for (int i = 0; i < 2; i++) {
        struct ibv_async_event event;
        struct ibv_port_attr attr;
        hears &=
            ibv_get_async_event(contexts[i], &event) == 0 && event.event_type == type && event.element.port_num == 1;
        ibv_ack_async_event(&event);
        hears &= ibv_query_port(contexts[i], 1, &attr) == 0 && attr.state == state;
    }
    return hears;
}

static bool port_goes_down_and_up(void)
{
    network_namespace_set_link("lo", true);
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_context *const contexts[] = {ibv_open_device(list[0]), ibv_open_device(list[0])};
    ibv_free_device_list(list);
    network_namespace_set_link("lo", false);
    bool is_told = hears(contexts, IBV_EVENT_PORT_ERR, IBV_PORT_DOWN);
    network_namespace_set_link("lo", true);
    is_told &= hears(contexts, IBV_EVENT_PORT_ACTIVE, IBV_PORT_ACTIVE);
    network_namespace_set_link("lo", false); // and nobody takes that
    return ibv_close_device(contexts[0]) == 0 && ibv_close_device(contexts[1]) == 0 && is_told;
}

static void port__goes_down_and_up(void **state)
{
    (void)state;
    assert_true(network_namespace_run(port_goes_down_and_up));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(get_async_event__nonblocking),       FIXTURE_TEST(srq__limit_and_last_wqe),
        FIXTURE_TEST(modify_srq__limits_that_cannot_be),  FIXTURE_TEST(destroy_qp__waits_for_what_was_handed_out),
        FIXTURE_TEST(destroy__while_an_event_is_handled), FIXTURE_TEST(destroy_cq__while_an_event_is_handled),
        FIXTURE_TEST(destroy_qp__untaken_events),         FIXTURE_TEST(cq__overrun),
        cmocka_unit_test(port__goes_down_and_up),         cmocka_unit_test(close_device__under_a_reader),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
