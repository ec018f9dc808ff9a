// SPDX-License-Identifier: BSD-2-Clause
// A peer that is no rsocket, or a bad one, against an rsocket that listens.
#include "fixture.h"

#include <arpa/inet.h>
#include <poll.h>
#include <rdma/rsocket.h>
#include <string.h>
#include <unistd.h>

struct bad_peer {
    int listener;
    struct rdma_event_channel *channel;
    struct rdma_cm_id *id;
};

// What a good one would say: version 1, 16 credits, tables and buffer somewhere.
static const uint8_t good_hello[40] = {
    [0] = 1, [3] = 16, [8] = 1, [19] = 1, [23] = 2, [24] = 1, [36] = 1,
};

static int listen_at(uint16_t port)
{
    int listener = rsocket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_storage here = fixture_sockaddr(fixture_address, port);
    assert_true(listener >= 0);
    assert_int_equal(rbind(listener, (struct sockaddr *)&here, sizeof(struct sockaddr_in)), 0);
    assert_int_equal(rlisten(listener, 1), 0);
    return listener;
}

static uint16_t port_of(int socket)
{
    struct sockaddr_in here;
    socklen_t length = sizeof(here);
    assert_int_equal(rgetsockname(socket, (struct sockaddr *)&here, &length), 0);
    return ntohs(here.sin_port);
}

static struct bad_peer open_peer(const uint8_t *hello, uint8_t length)
{
    struct bad_peer peer = {.listener = listen_at(0), .channel = rdma_create_event_channel()};
    struct rdma_conn_param param = {
        .private_data = hello, .private_data_len = length, .retry_count = 7, .rnr_retry_count = 7};
    assert_non_null(peer.channel);
    peer.id = fixture_resolved(peer.channel, RDMA_PS_TCP, port_of(peer.listener));
    fixture_create_qp(peer.id);
    for (int i = 0; i < 4; i++) {
        struct ibv_recv_wr *bad, wr = {0};
        assert_int_equal(ibv_post_recv(peer.id->qp, &wr, &bad), 0);
    }
    assert_int_equal(rdma_connect(peer.id, &param), 0);
    return peer;
}

static void close_peer(struct bad_peer *peer)
{
    rdma_destroy_qp(peer->id);
    assert_int_equal(rdma_destroy_id(peer->id), 0);
    rdma_destroy_event_channel(peer->channel);
    assert_int_equal(rclose(peer->listener), 0);
}

static void hello__rejected(const uint8_t *hello, uint8_t length)
{
    struct bad_peer peer = open_peer(hello, length);
    pass_event(peer.channel, RDMA_CM_EVENT_REJECTED);
    close_peer(&peer);
}

static void hello__bad(void **state)
{
    uint8_t hello[40];
    hello__rejected(NULL, 0);
    memcpy(hello, good_hello, sizeof(hello));
    hello[0] = 7;
    hello__rejected(hello, sizeof(hello));
    memset(hello + 20, 0, 4);
    hello[0] = 1;
    hello__rejected(hello, sizeof(hello));
}

static void post(struct bad_peer *peer, enum ibv_wr_opcode opcode, uint32_t immediate)
{
    struct ibv_send_wr *bad, wr = {.opcode = opcode, .imm_data = htonl(immediate)};
    assert_int_equal(ibv_post_send(peer->id->qp, &wr, &bad), 0);
}

static void message__ends_the_connection(enum ibv_wr_opcode opcode, uint32_t immediate, int error)
{
    char byte;
    struct bad_peer peer = open_peer(good_hello, sizeof(good_hello));
    pass_event(peer.channel, RDMA_CM_EVENT_ESTABLISHED);
    int fd = raccept(peer.listener, NULL, NULL);
    assert_true(fd >= 0);
    post(&peer, opcode, immediate);
    expect_errno(rrecv(fd, &byte, 1, 0), error);
    assert_int_equal(rrecv(fd, &byte, 1, 0), 0);
    expect_errno(rsend(fd, &byte, 1, 0), EPIPE);
    assert_int_equal(rclose(fd), 0);
    close_peer(&peer);
}

static void message__bad(void **state)
{
    message__ends_the_connection(IBV_WR_RDMA_WRITE_WITH_IMM, 0x1fffffff, EPROTO); // more than it was given
    message__ends_the_connection(IBV_WR_RDMA_WRITE_WITH_IMM, 0x20000000, EPROTO); // no such message
    message__ends_the_connection(IBV_WR_SEND, 0, EPROTO);                         // no message at all
}

// It says where it receives, and there is nothing: what we write there ends the connection.
static void target__not_there(void **state)
{
    char byte;
    struct bad_peer peer = open_peer(good_hello, sizeof(good_hello));
    pass_event(peer.channel, RDMA_CM_EVENT_ESTABLISHED);
    int fd = raccept(peer.listener, NULL, NULL);
    assert_true(fd >= 0);
    rsend(fd, "x", 1, 0);
    expect_errno(rrecv(fd, &byte, 1, 0), ECONNRESET);
    assert_int_equal(rclose(fd), 0);
    close_peer(&peer);
}

// It has gone before the program takes it.
static void accept__names_a_peer_that_has_gone(void **state)
{
    struct sockaddr_in name = {0};
    socklen_t length = sizeof(name);
    struct bad_peer peer = open_peer(good_hello, sizeof(good_hello));
    struct pollfd poller = {.fd = peer.listener, .events = POLLIN};
    pass_event(peer.channel, RDMA_CM_EVENT_ESTABLISHED);
    assert_int_equal(rpoll(&poller, 1, -1), 1);
    assert_int_equal(rdma_disconnect(peer.id), 0);
    pass_event(peer.channel, RDMA_CM_EVENT_DISCONNECTED);
    usleep(100000); // the stream has heard of it
    int fd = raccept(peer.listener, (struct sockaddr *)&name, &length);
    assert_true(fd >= 0);
    assert_int_equal(length, sizeof(name));
    assert_memory_equal(&name, rdma_get_local_addr(peer.id), sizeof(name));
    assert_int_equal(rclose(fd), 0);
    close_peer(&peer);
}

// It never says that it is ready; the listener's port is free nevertheless as soon as rclose returns.
static void close__ends_a_listener_that_a_peer_is_calling(void **state)
{
    struct bad_peer peer = {.listener = listen_at(0), .channel = rdma_create_event_channel()};
    struct rdma_conn_param param = {
        .private_data = good_hello, .private_data_len = sizeof(good_hello), .qp_num = 0x123456};
    assert_non_null(peer.channel);
    uint16_t port = port_of(peer.listener);
    peer.id = fixture_resolved(peer.channel, RDMA_PS_TCP, port);
    assert_int_equal(rdma_connect(peer.id, &param), 0);
    pass_event(peer.channel, RDMA_CM_EVENT_CONNECT_RESPONSE);
    assert_int_equal(rclose(peer.listener), 0);
    peer.listener = listen_at(port);
    close_peer(&peer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hello__bad),
        cmocka_unit_test(message__bad),
        cmocka_unit_test(target__not_there),
        cmocka_unit_test(accept__names_a_peer_that_has_gone),
        cmocka_unit_test(close__ends_a_listener_that_a_peer_is_calling),
    };
    return cmocka_run_group_tests(tests, fixture_setup, NULL);
}
