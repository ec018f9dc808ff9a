// SPDX-License-Identifier: BSD-2-Clause
// Two threads and one id: what one of them takes away, the other one is about to use. Each round sets both off at the
// same moment, and lets one of them wait a little longer than in the round before.
#include "fixture.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define GROUP "239.97.3.1"

enum { DELAYS = 40, DELAY_STEP = 400, JOIN_ROUNDS = TEST_SOME(800), CONNECT_ROUNDS = TEST_SOME(300) };

struct duel {
    pthread_barrier_t barrier;
    void (*other)(struct duel *duel); // what the other thread does in a round
    int rounds;
    struct rdma_event_channel *channel;
    struct rdma_cm_id *id;
    enum rdma_cm_event_type type; // of the event that it took
    int result;
};

static void *run_other(void *argument)
{
    struct duel *duel = argument;
    for (int i = 0; i < duel->rounds; i++) {
        pthread_barrier_wait(&duel->barrier);
        duel->other(duel);
        pthread_barrier_wait(&duel->barrier);
    }
    return NULL;
}

static pthread_t begin(struct duel *duel, int rounds, void (*other)(struct duel *))
{
    pthread_t thread;
    *duel = (struct duel){.rounds = rounds, .other = other, .channel = rdma_create_event_channel()};
    assert_non_null(duel->channel);
    assert_int_equal(pthread_barrier_init(&duel->barrier, NULL, 2), 0);
    assert_int_equal(pthread_create(&thread, NULL, run_other, duel), 0);
    return thread;
}

static void end(struct duel *duel, pthread_t thread)
{
    assert_int_equal(pthread_join(thread, NULL), 0);
    pthread_barrier_destroy(&duel->barrier);
    rdma_destroy_event_channel(duel->channel);
}

static void wait_a_little(int round)
{
    for (volatile int i = round % DELAYS * DELAY_STEP; i > 0; i--)
        ;
}

static void take_event(struct duel *duel)
{
    struct rdma_cm_event *event;
    duel->result = rdma_get_cm_event(duel->channel, &event);
    if (duel->result)
        return;
    duel->type = event->event;
    duel->result = rdma_ack_cm_event(event);
}

static struct rdma_cm_id *joined(struct rdma_event_channel *channel, struct ibv_cq **cq)
{
    struct sockaddr_storage here = fixture_sockaddr(fixture_address, 0), group = fixture_sockaddr(GROUP, 0);
    struct ibv_qp_init_attr attr = {.cap = {.max_send_wr = 4, .max_recv_wr = 4}, .qp_type = IBV_QPT_UD};
    struct rdma_cm_id *id;
    assert_int_equal(rdma_create_id(channel, &id, NULL, RDMA_PS_UDP), 0);
    assert_int_equal(rdma_bind_addr(id, (struct sockaddr *)&here), 0);
    *cq = attr.send_cq = attr.recv_cq = ibv_create_cq(id->verbs, 8, NULL, NULL, 0);
    assert_non_null(*cq);
    assert_int_equal(rdma_create_qp(id, NULL, &attr), 0);
    assert_int_equal(rdma_join_multicast(id, (struct sockaddr *)&group, NULL), 0);
    return id;
}

// A queue pair that was left over would still need its completion queue.
static void expect_no_qp(struct rdma_cm_id *id, struct ibv_cq *cq)
{
    assert_null(id->qp);
    assert_int_equal(ibv_destroy_cq(cq), 0);
    assert_int_equal(rdma_destroy_id(id), 0);
}

// Taking the event attaches the queue pair to the group.
static void destroy_qp__while_a_join_is_heard(void **state)
{
    struct duel duel;
    struct ibv_cq *cq;
    pthread_t thread = begin(&duel, JOIN_ROUNDS, take_event);
    for (int i = 0; i < JOIN_ROUNDS; i++) {
        duel.id = joined(duel.channel, &cq);
        pthread_barrier_wait(&duel.barrier);
        wait_a_little(i);
        rdma_destroy_qp(duel.id);
        pthread_barrier_wait(&duel.barrier);
        assert_int_equal(duel.result, 0);
        assert_int_equal(duel.type, RDMA_CM_EVENT_MULTICAST_JOIN);
        expect_no_qp(duel.id, cq);
    }
    end(&duel, thread);
}

static void leave_group(struct duel *duel)
{
    struct sockaddr_storage group = fixture_sockaddr(GROUP, 0);
    duel->result = rdma_leave_multicast(duel->id, (struct sockaddr *)&group);
}

// Both detach it.
static void destroy_qp__while_a_group_is_left(void **state)
{
    struct duel duel;
    struct ibv_cq *cq;
    pthread_t thread = begin(&duel, JOIN_ROUNDS, leave_group);
    for (int i = 0; i < JOIN_ROUNDS; i++) {
        duel.id = joined(duel.channel, &cq);
        pass_event(duel.channel, RDMA_CM_EVENT_MULTICAST_JOIN);
        pthread_barrier_wait(&duel.barrier);
        wait_a_little(i);
        rdma_destroy_qp(duel.id);
        pthread_barrier_wait(&duel.barrier);
        assert_int_equal(duel.result, 0);
        expect_no_qp(duel.id, cq);
    }
    end(&duel, thread);
}

// An id whose request was accepted: the event that says so has come, or will.
static struct rdma_cm_id *accepted(struct rdma_event_channel *channel, struct rdma_event_channel *of_listener,
                                   uint16_t port, struct rdma_cm_id **server)
{
    struct rdma_conn_param param = {.responder_resources = 1, .initiator_depth = 1, .retry_count = 7};
    struct rdma_cm_id *id = fixture_resolved(channel, RDMA_PS_TCP, port);
    fixture_create_qp(id);
    assert_int_equal(rdma_connect(id, &param), 0);
    struct rdma_cm_event *event = expect_event(of_listener, RDMA_CM_EVENT_CONNECT_REQUEST);
    *server = event->id;
    assert_int_equal(rdma_ack_cm_event(event), 0);
    fixture_create_qp(*server);
    assert_int_equal(rdma_accept(*server, &param), 0);
    return id;
}

// Taking the event connects the queue pair.
static void destroy_qp__while_a_response_is_heard(void **state)
{
    struct duel duel;
    uint16_t port;
    struct rdma_event_channel *of_listener = rdma_create_event_channel();
    struct rdma_cm_id *listener = fixture_listener(of_listener, RDMA_PS_TCP, &port), *server;
    pthread_t thread = begin(&duel, CONNECT_ROUNDS, take_event);
    for (int i = 0; i < CONNECT_ROUNDS; i++) {
        duel.id = accepted(duel.channel, of_listener, port, &server);
        pthread_barrier_wait(&duel.barrier);
        wait_a_little(i);
        rdma_destroy_qp(duel.id);
        pthread_barrier_wait(&duel.barrier);
        assert_int_equal(duel.result, 0);
        // Without a queue pair it is the program that answers.
        assert_true(duel.type == RDMA_CM_EVENT_ESTABLISHED || duel.type == RDMA_CM_EVENT_CONNECT_RESPONSE);
        assert_int_equal(rdma_destroy_id(duel.id), 0);
        rdma_destroy_qp(server);
        assert_int_equal(rdma_destroy_id(server), 0);
    }
    end(&duel, thread);
    assert_int_equal(rdma_destroy_id(listener), 0);
    rdma_destroy_event_channel(of_listener);
}

static void disconnect(struct duel *duel)
{
    duel->result = rdma_disconnect(duel->id);
}

// As handlers do that have heard of the peer's end.
static void destroy_qp__while_a_handler_disconnects(void **state)
{
    struct duel duel;
    uint16_t port;
    struct rdma_event_channel *of_listener = rdma_create_event_channel();
    struct rdma_cm_id *listener = fixture_listener(of_listener, RDMA_PS_TCP, &port), *server;
    pthread_t thread = begin(&duel, CONNECT_ROUNDS, disconnect);
    for (int i = 0; i < CONNECT_ROUNDS; i++) {
        duel.id = accepted(duel.channel, of_listener, port, &server);
        pass_event(duel.channel, RDMA_CM_EVENT_ESTABLISHED);
        pthread_barrier_wait(&duel.barrier);
        wait_a_little(i);
        rdma_destroy_qp(duel.id);
        pthread_barrier_wait(&duel.barrier);
        assert_int_equal(duel.result, 0);
        assert_int_equal(rdma_destroy_id(duel.id), 0);
        rdma_destroy_qp(server);
        assert_int_equal(rdma_destroy_id(server), 0);
    }
    end(&duel, thread);
    assert_int_equal(rdma_destroy_id(listener), 0);
    rdma_destroy_event_channel(of_listener);
}

static void *wait_for_event(void *channel)
{
    struct rdma_cm_event *event;
    rdma_get_cm_event(channel, &event);
    return NULL;
}

// Until it sleeps in its call.
static pthread_t begin_to_wait(struct rdma_event_channel *channel)
{
    static const struct timespec pause = {.tv_nsec = 50 * 1000 * 1000};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, wait_for_event, channel), 0);
    nanosleep(&pause, NULL);
    return thread;
}

// What is opened next must not get the descriptor's number: the thread would read it instead.
static void migrate(struct duel *duel)
{
    duel->result = rdma_migrate_id(duel->id, duel->channel);
}

// Whichever comes first, the event is where the id is.
static void migrate_id__while_an_address_is_resolved(void **state)
{
    struct rdma_event_channel *from = rdma_create_event_channel();
    struct sockaddr_storage there = fixture_sockaddr(fixture_address, 9);
    struct rdma_cm_event *event;
    struct duel duel;
    pthread_t thread = begin(&duel, JOIN_ROUNDS, migrate);
    assert_non_null(from);
    assert_int_equal(fcntl(from->fd, F_SETFL, O_NONBLOCK), 0);
    for (int i = 0; i < JOIN_ROUNDS; i++) {
        assert_int_equal(rdma_create_id(from, &duel.id, NULL, RDMA_PS_TCP), 0);
        pthread_barrier_wait(&duel.barrier);
        wait_a_little(i);
        assert_int_equal(rdma_resolve_addr(duel.id, NULL, (struct sockaddr *)&there, 1000), 0);
        pthread_barrier_wait(&duel.barrier);
        assert_int_equal(duel.result, 0);
        assert_ptr_equal(duel.id->channel, duel.channel);
        pass_event(duel.channel, RDMA_CM_EVENT_ADDR_RESOLVED);
        assert_int_equal(rdma_get_cm_event(from, &event), -1);
        assert_int_equal(rdma_destroy_id(duel.id), 0);
    }
    rdma_destroy_event_channel(from);
    end(&duel, thread);
}

static void destroy_event_channel__while_a_thread_waits(void **state)
{
    struct rdma_event_channel *channel = rdma_create_event_channel();
    int fd = channel->fd;
    pthread_t thread = begin_to_wait(channel);
    rdma_destroy_event_channel(channel);
    int next = dup(STDERR_FILENO);
    assert_int_not_equal(next, fd);
    assert_int_equal(close(next), 0);
    assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
    assert_int_equal(pthread_cancel(thread), 0); // it waits until the process ends, if it is left alone
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(fcntl(fd, F_GETFD), -1);
}

// A thread that is cancelled does not wait any more.
static void destroy_event_channel__whose_thread_was_cancelled(void **state)
{
    struct rdma_event_channel *channel = rdma_create_event_channel();
    int fd = channel->fd;
    pthread_t thread = begin_to_wait(channel);
    assert_int_equal(pthread_cancel(thread), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    rdma_destroy_event_channel(channel);
    assert_int_equal(fcntl(fd, F_GETFD), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(destroy_qp__while_a_join_is_heard),
        cmocka_unit_test(destroy_qp__while_a_group_is_left),
        cmocka_unit_test(destroy_qp__while_a_response_is_heard),
        cmocka_unit_test(destroy_qp__while_a_handler_disconnects),
        cmocka_unit_test(migrate_id__while_an_address_is_resolved),
        cmocka_unit_test(destroy_event_channel__while_a_thread_waits),
        cmocka_unit_test(destroy_event_channel__whose_thread_was_cancelled),
    };
    return cmocka_run_group_tests(tests, fixture_setup, NULL);
}
