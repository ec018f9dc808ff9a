// SPDX-License-Identifier: BSD-2-Clause
#include "fixture.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

// A connected pair whose completions notify a channel; the fixture's own queue stays aside.
struct pair {
    struct fixture *f;
    struct ibv_comp_channel *channel;
    struct ibv_cq *plain;
    struct ibv_qp *a, *b;
};

static struct pair make_pair(struct fixture *f)
{
    struct pair pair = {.f = f, .plain = f->cq, .channel = ibv_create_comp_channel(f->context)};
    assert_non_null(pair.channel);
    f->cq = ibv_create_cq(f->context, 64, &pair, pair.channel, 0);
    assert_non_null(f->cq);
    pair.a = fixture_qp(f, IBV_QPT_RC);
    pair.b = fixture_qp(f, IBV_QPT_RC);
    fixture_connect(pair.a, pair.b);
    return pair;
}

static void end_pair(struct pair *pair)
{
    struct fixture *f = pair->f;
    assert_int_equal(ibv_destroy_qp(pair->a), 0);
    assert_int_equal(ibv_destroy_qp(pair->b), 0);
    assert_int_equal(ibv_destroy_cq(f->cq), 0);
    assert_int_equal(ibv_destroy_comp_channel(pair->channel), 0);
    f->cq = pair->plain;
}

// A kernel's descriptor is never writable.
static bool is_readable(int fd, int timeout_ms)
{
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN | POLLOUT};
    return poll(&poll_fd, 1, timeout_ms) == 1;
}

static void send_one(struct pair *pair, uint64_t wr_id)
{
    fixture_post_recv(pair->f, pair->b, wr_id, 4096, 100);
    fixture_post_send(pair->f, pair->a, wr_id + 1000, 0, 10);
}

static void take_event(struct pair *pair)
{
    struct ibv_cq *cq = NULL;
    void *context = NULL;
    assert_int_equal(ibv_get_cq_event(pair->channel, &cq, &context), 0);
    assert_ptr_equal(cq, pair->f->cq);
    assert_ptr_equal(context, cq->cq_context);
}

static void get_cq_event__once_per_arm(void **state)
{
    struct fixture *f = *state;
    struct pair pair = make_pair(f);
    struct ibv_wc wc;
    assert_int_equal(ibv_req_notify_cq(f->cq, 0), 0);
    assert_false(is_readable(pair.channel->fd, 0));
    send_one(&pair, 1);
    take_event(&pair); // blocks until it is there
    ibv_ack_cq_events(f->cq, 1);
    while (ibv_poll_cq(f->cq, 1, &wc) == 0 || wc.wr_id != 1001)
        ;
    send_one(&pair, 2); // not armed: nothing
    while (ibv_poll_cq(f->cq, 1, &wc) == 0 || wc.wr_id != 1002)
        ;
    assert_false(is_readable(pair.channel->fd, 0));
    end_pair(&pair);
}

static void get_cq_event__nonblocking(void **state)
{
    struct fixture *f = *state;
    struct pair pair = make_pair(f);
    struct ibv_cq *cq;
    void *context;
    assert_int_equal(fcntl(pair.channel->fd, F_SETFL, O_NONBLOCK), 0);
    errno = 0;
    assert_int_equal(ibv_get_cq_event(pair.channel, &cq, &context), -1);
    assert_int_equal(errno, EAGAIN);
    assert_int_equal(ibv_req_notify_cq(f->cq, 0), 0);
    send_one(&pair, 1);
    assert_true(is_readable(pair.channel->fd, -1));
    take_event(&pair);
    ibv_ack_cq_events(f->cq, 1);
    assert_int_equal(ibv_get_cq_event(pair.channel, &cq, &context), -1);
    assert_int_equal(ibv_get_cq_event(NULL, &cq, &context), -1);
    assert_int_equal(errno, EINVAL);
    end_pair(&pair);
}

static bool try_to_take_event(struct pair *pair)
{
    struct ibv_cq *cq = NULL;
    void *context = NULL;
    if (ibv_get_cq_event(pair->channel, &cq, &context) != 0) {
        assert_int_equal(errno, EAGAIN);
        return false;
    }
    assert_ptr_equal(cq, pair->f->cq);
    ibv_ack_cq_events(cq, 1);
    return true;
}

static uint32_t poll_all(struct pair *pair)
{
    struct ibv_wc wc[8];
    uint32_t found = 0;
    int count;
    while ((count = ibv_poll_cq(pair->f->cq, 8, wc)) > 0) {
        for (int i = 0; i < count; i++)
            assert_int_equal(wc[i].status, IBV_WC_SUCCESS);
        found += (uint32_t)count;
    }
    assert_int_equal(count, 0);
    return found;
}

// Another thread's messages, which raise no event. A poll may be made by either thread: the sockets are one device's.
struct others {
    struct fixture *f;
    struct ibv_cq *cq;
    struct ibv_qp *a, *b;
    _Atomic bool ends;
};

static void *send_others(void *argument)
{
    struct others *others = argument;
    struct ibv_wc wc;
    while (!others->ends) {
        fixture_post_recv(others->f, others->b, 1, 4200, 10);
        fixture_post_send(others->f, others->a, 2, 0, 10);
        for (uint32_t completions = 0; completions < 2;)
            completions += ibv_poll_cq(others->cq, 1, &wc) == 1 && wc.status == IBV_WC_SUCCESS;
        usleep(50);
    }
    return NULL;
}

static void wait_as_libfabric_does(struct pair *pair)
{
    for (uint32_t completions = 0; completions < 2;) {
        while (try_to_take_event(pair))
            ;
        assert_int_equal(ibv_req_notify_cq(pair->f->cq, 0), 0);
        completions += poll_all(pair);
        if (completions < 2) {
            assert_true(is_readable(pair->channel->fd, 20000));
            assert_true(try_to_take_event(pair));
            completions += poll_all(pair);
        }
    }
}

// libfabric's fi_cq_sread takes all events and arms the queue before it sleeps; and for an error if the descriptor is
// readable then and no event is there. The sockets rouse it after some messages (device/rouse.h).
static void get_cq_event__there_is_one_whenever_the_descriptor_is_readable(void **state)
{
    struct fixture *f = *state;
    struct others others = {.f = f, .cq = f->cq, .a = fixture_qp(f, IBV_QPT_RC), .b = fixture_qp(f, IBV_QPT_RC)};
    struct pair pair = make_pair(f);
    pthread_t thread;
    fixture_connect(others.a, others.b);
    assert_int_equal(fcntl(pair.channel->fd, F_SETFL, O_NONBLOCK), 0);
    assert_int_equal(pthread_create(&thread, NULL, send_others, &others), 0);
    for (uint32_t i = 0; i < 2000; i++) {
        send_one(&pair, i);
        wait_as_libfabric_does(&pair);
    }
    others.ends = true;
    assert_int_equal(pthread_join(thread, NULL), 0);
    end_pair(&pair);
    assert_int_equal(ibv_destroy_qp(others.a), 0);
    assert_int_equal(ibv_destroy_qp(others.b), 0);
}

// Flushes two receives, and so leaves two completions in the queue; they are there when it returns.
static void leave_two(struct pair *pair)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    fixture_post_recv(pair->f, pair->b, 1, 0, 10);
    fixture_post_recv(pair->f, pair->b, 2, 0, 10);
    assert_int_equal(ibv_modify_qp(pair->b, &attr, IBV_QP_STATE), 0);
}

// A program that has polled and then arms the queue sleeps until the next event.
static void req_notify_cq__of_what_came_before(void **state)
{
    struct pair pair = make_pair(*state);
    struct ibv_wc wc;
    leave_two(&pair);
    assert_false(is_readable(pair.channel->fd, 0));
    assert_int_equal(ibv_req_notify_cq(pair.f->cq, 0), 0);
    take_event(&pair);
    assert_int_equal(ibv_poll_cq(pair.f->cq, 1, &wc), 1);
    assert_int_equal(ibv_req_notify_cq(pair.f->cq, 0), 0);
    take_event(&pair);
    ibv_ack_cq_events(pair.f->cq, 2);
    end_pair(&pair);
}

// One that takes an event, arms the queue and then polls it finds everything: another event would be about nothing.
static void req_notify_cq__before_the_poll(void **state)
{
    struct pair pair = make_pair(*state);
    struct ibv_wc wc;
    assert_int_equal(ibv_req_notify_cq(pair.f->cq, 0), 0);
    leave_two(&pair);
    take_event(&pair);
    assert_int_equal(ibv_req_notify_cq(pair.f->cq, 0), 0);
    assert_false(is_readable(pair.channel->fd, 0));
    assert_int_equal(ibv_poll_cq(pair.f->cq, 1, &wc), 1);
    ibv_ack_cq_events(pair.f->cq, 1);
    end_pair(&pair);
}

// UCX takes the events of both its queues, polls one of them, and arms both.
static void req_notify_cq__after_a_poll_of_another(void **state)
{
    struct pair pair = make_pair(*state);
    struct ibv_cq *other = ibv_create_cq(pair.f->context, 8, NULL, pair.channel, 0);
    struct ibv_wc wc;
    assert_non_null(other);
    assert_int_equal(ibv_req_notify_cq(pair.f->cq, 0), 0);
    leave_two(&pair);
    take_event(&pair);
    assert_int_equal(ibv_poll_cq(other, 1, &wc), 0);
    assert_int_equal(ibv_req_notify_cq(other, 0), 0);
    assert_int_equal(ibv_req_notify_cq(pair.f->cq, 0), 0);
    take_event(&pair);
    ibv_ack_cq_events(pair.f->cq, 2);
    assert_int_equal(ibv_destroy_cq(other), 0);
    end_pair(&pair);
}

// Armed for solicited completions, an ordinary one leaves the queue asleep and a solicited one wakes it.
static void req_notify_cq__solicited(void **state)
{
    struct fixture *f = *state;
    struct pair pair = make_pair(f);
    struct ibv_wc wc;
    assert_int_equal(ibv_req_notify_cq(f->cq, 1), 0);
    send_one(&pair, 1);
    for (int count = 0; count < 2;)
        count += ibv_poll_cq(f->cq, 1, &wc);
    assert_false(is_readable(pair.channel->fd, 0));

    struct ibv_sge sge = fixture_sge(f, 0, 10);
    struct ibv_send_wr wr = {.wr_id = 5,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_SEND,
                             .send_flags = IBV_SEND_SIGNALED | IBV_SEND_SOLICITED},
                       *bad;
    fixture_post_recv(f, pair.b, 2, 4096, 100);
    assert_int_equal(ibv_post_send(pair.a, &wr, &bad), 0);
    take_event(&pair);
    ibv_ack_cq_events(f->cq, 1);
    end_pair(&pair);
}

// Flushed requests notify: tear-down waits for them.
static void req_notify_cq__flush(void **state)
{
    struct fixture *f = *state;
    struct pair pair = make_pair(f);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    fixture_post_recv(f, pair.b, 1, 0, 10);
    assert_int_equal(ibv_req_notify_cq(f->cq, 1), 0);
    assert_int_equal(ibv_modify_qp(pair.b, &attr, IBV_QP_STATE), 0);
    take_event(&pair);
    ibv_ack_cq_events(f->cq, 1);
    assert_int_equal(fixture_wait(f->cq).status, IBV_WC_WR_FLUSH_ERR);
    end_pair(&pair);
}

static void *acknowledge(void *argument)
{
    struct pair *pair = argument;
    ibv_ack_cq_events(pair->f->cq, 1);
    return NULL;
}

static void destroy_cq__waits_for_what_was_handed_out(void **state)
{
    struct fixture *f = *state;
    struct pair pair = make_pair(f);
    pthread_t thread;
    assert_int_equal(ibv_req_notify_cq(f->cq, 0), 0);
    send_one(&pair, 1);
    take_event(&pair);
    assert_int_equal(pthread_create(&thread, NULL, acknowledge, &pair), 0);
    end_pair(&pair); // returns only once the other thread has acknowledged
    assert_int_equal(pthread_join(thread, NULL), 0);
}

static void destroy_cq__ignores_what_nobody_took(void **state)
{
    struct fixture *f = *state;
    struct pair pair = make_pair(f);
    assert_int_equal(ibv_req_notify_cq(f->cq, 0), 0);
    send_one(&pair, 1);
    assert_true(is_readable(pair.channel->fd, -1));
    assert_int_equal(ibv_destroy_comp_channel(pair.channel), EBUSY);
    assert_int_equal(ibv_destroy_qp(pair.a), 0);
    assert_int_equal(ibv_destroy_qp(pair.b), 0);
    assert_int_equal(ibv_destroy_cq(f->cq), 0);
    assert_false(is_readable(pair.channel->fd, 0)); // its event went with it
    assert_int_equal(ibv_destroy_comp_channel(pair.channel), 0);
    f->cq = pair.plain;
}

// Some programs acknowledge once per completion, so more often than there were events.
static void destroy_cq__acknowledged_too_often(void **state)
{
    struct fixture *f = *state;
    struct pair pair = make_pair(f);
    assert_int_equal(ibv_req_notify_cq(f->cq, 0), 0);
    send_one(&pair, 1);
    take_event(&pair);
    ibv_ack_cq_events(f->cq, 5);
    end_pair(&pair);
}

// The event is the parent's, and so is the descriptor that tells of it.
static void get_cq_event__in_a_forked_child(void **state)
{
#ifdef __SANITIZE_THREAD__
    skip(); // it cannot follow such a child
#endif
    enum { HUNG_S = 10 };
    struct pair pair = make_pair(*state);
    int status;
    assert_int_equal(ibv_req_notify_cq(pair.f->cq, 0), 0);
    send_one(&pair, 1);
    assert_true(is_readable(pair.channel->fd, 10000));
    pid_t child = fork();
    if (child == 0) {
        struct ibv_cq *cq;
        struct ibv_async_event event;
        void *context;
        struct ibv_wc wc;
        alarm(HUNG_S);
        bool is_refused = ibv_get_cq_event(pair.channel, &cq, &context) == -1 && errno == ENODEV;
        is_refused &= ibv_get_async_event(pair.f->context, &event) == -1 && errno == ENODEV;
        is_refused &= !ibv_create_comp_channel(pair.f->context) && errno == ENODEV;
        ibv_ack_cq_events(pair.f->cq, 1);
        ibv_poll_cq(pair.f->cq, 1, &wc);
        _exit(is_refused ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_true(is_readable(pair.channel->fd, 0));
    take_event(&pair);
    ibv_ack_cq_events(pair.f->cq, 1);
    end_pair(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(get_cq_event__once_per_arm),
        FIXTURE_TEST(get_cq_event__nonblocking),
        FIXTURE_TEST(get_cq_event__there_is_one_whenever_the_descriptor_is_readable),
        FIXTURE_TEST(req_notify_cq__of_what_came_before),
        FIXTURE_TEST(req_notify_cq__before_the_poll),
        FIXTURE_TEST(req_notify_cq__after_a_poll_of_another),
        FIXTURE_TEST(req_notify_cq__solicited),
        FIXTURE_TEST(req_notify_cq__flush),
        FIXTURE_TEST(destroy_cq__waits_for_what_was_handed_out),
        FIXTURE_TEST(destroy_cq__ignores_what_nobody_took),
        FIXTURE_TEST(destroy_cq__acknowledged_too_often),
        FIXTURE_TEST(get_cq_event__in_a_forked_child),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
