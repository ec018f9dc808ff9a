// SPDX-License-Identifier: BSD-2-Clause
// What sockets take over of messages that leave alone, and that others still come as they were meant.
#include "device/lone.h"

#include "device/tests/end.h"

#include <errno.h>
#include <string.h>

#define MANY 20

static void add(struct end *from, const struct end *to, uint32_t segments, uint32_t bytes, uint32_t last_bytes)
{
    struct alb_endpoint peer = end_endpoint(to);
    end_add_burst(from, &peer, (uint32_t)to->port.slot << 16 | 0x100, segments, bytes, last_bytes);
}

static void send_each(struct end *from, const struct end *to, uint32_t times, uint32_t segments, uint32_t bytes,
                      uint32_t last_bytes)
{
    for (uint32_t i = 0; i < times; i++) {
        add(from, to, segments, bytes, last_bytes);
        end_send(from, 1);
    }
}

// So many datagrams, all of them good, the last of which has that payload.
static void expect(struct end *end, uint32_t count, uint32_t last_bytes)
{
    end_receive_all(end);
    assert_int_equal(end->count, count);
    assert_int_equal(end->taken[count - 1].length, ALB_BTH_BYTES + last_bytes);
    end_clear(end);
}

static void bursts_of_one_size(const char *address_a, const char *address_b)
{
    struct end *a = end_open(address_a), *b = end_open(address_b);
    const struct alb_socket *own = &a->port.own[0];
    send_each(a, b, MANY, 2, 8, 4);
    expect(b, 2 * MANY, 4);
    assert_int_equal(own->segment_bytes, ALB_BTH_BYTES + 8 + ALB_ICRC_BYTES);
    send_each(a, b, MANY, 1, 0, 4); // shorter: it is not cut
    expect(b, MANY, 4);
    assert_int_equal(own->segment_bytes, ALB_BTH_BYTES + 8 + ALB_ICRC_BYTES);
    send_each(a, b, 2, 1, 0, 4096); // longer: nor is it
    send_each(a, b, 2, 3, 64, 64);
    expect(b, 8, 64);
    add(a, b, 1, 0, 4096);
    add(a, b, 2, 8, 4);
    add(a, b, 4, 1000, 4);
    add(a, b, 1, 0, 4);
    end_send(a, 1);
    expect(b, 8, 4);
    send_each(a, b, MANY, 1, 0, 4096);
    expect(b, MANY, 4096);
    assert_int_equal(own->segment_bytes, 0);
    assert_int_equal(a->stats.counter[ALB_EDGE_tx_datagrams], 2 * MANY + MANY + 8 + 8 + MANY);
    end_close(a);
    end_close(b);
}

static void lone__bursts_of_one_size(void **state)
{
    bursts_of_one_size("127.94.1.1", "127.94.1.2");
    if (end_has_ipv6())
        bursts_of_one_size("::1", "::1");
}

// The kernel refuses more than 128 segments: each then goes by itself, also from a socket that would cut it.
static void lone__segments_one_by_one(void **state)
{
    struct end *a = end_open("127.94.1.3"), *b = end_open("127.94.1.4");
    send_each(a, b, MANY, 2, 8, 4);
    expect(b, 2 * MANY, 4);
    send_each(a, b, 1, 150, 64, 64);
    expect(b, 150, 64);
    end_close(a);
    end_close(b);
}

static void lone__large_segments_are_said_each_time(void **state)
{
    struct end *a = end_open("127.94.1.5"), *b = end_open("127.94.1.6");
    send_each(a, b, MANY, 2, 1024, 4);
    expect(b, 2 * MANY, 4);
    assert_int_equal(a->port.own[0].segment_bytes, 0);
    end_close(a);
    end_close(b);
}

static void send_by_path(struct end *from, const struct end *to, uint32_t times)
{
    for (uint32_t i = 0; i < times; i++) {
        add(from, to, 1, 0, 8);
        from->sender->tx.bursts[0].path = 1;
        end_send(from, 1);
    }
}

static void lone__a_socket_that_only_sends_is_connected(void **state)
{
    struct end *a = end_open_with("127.94.1.7", 0, true, NULL), *b = end_open_with("127.94.1.8", 0, true, NULL),
               *c = end_open_with("127.94.1.9", 0, true, NULL);
    struct alb_endpoint to_b = end_endpoint(b), to_c = end_endpoint(c);
    a->port.paths.limit = 2;
    send_by_path(a, b, MANY);
    expect(b, MANY, 8);
    const struct alb_socket *sender = &a->port.paths.sockets[1];
    assert_true(alb_endpoint_equals(&sender->peer, &to_b));
    for (uint32_t i = 0; i < MANY; i++) { // another peer now and then: it stays connected
        send_by_path(a, c, 1);
        send_by_path(a, b, 1);
    }
    send_by_path(a, c, 2);
    expect(b, MANY, 8);
    expect(c, MANY + 2, 8);
    send_by_path(a, c, MANY);
    expect(c, MANY, 8);
    assert_true(alb_endpoint_equals(&sender->peer, &to_c));
    send_each(a, b, MANY, 1, 0, 8); // by the first path, where others' datagrams come in
    expect(b, MANY, 8);
    assert_int_equal(a->port.own[0].peer.port, 0);
    end_close(a);
    end_close(b);
    end_close(c);
}

// Its ICRCs cover the identification, which a connected socket would count.
static void lone__a_roce_socket_is_not_connected(void **state)
{
    struct end *a = end_open("127.94.1.13"), *b = end_open("127.94.1.14");
    a->port.paths.limit = 2;
    send_by_path(a, b, MANY);
    expect(b, MANY, 8);
    assert_int_equal(a->port.paths.sockets[1].peer.port, 0);
    end_close(a);
    end_close(b);
}

// What the kernel says of a peer that has gone costs no datagram to another one.
static void lone__a_peer_that_has_gone(void **state)
{
    struct end *a = end_open_with("127.94.1.10", 0, true, NULL), *b = end_open_with("127.94.1.11", 0, true, NULL),
               *c = end_open_with("127.94.1.12", 0, true, NULL);
    a->port.paths.limit = 2;
    send_by_path(a, b, MANY);
    add(a, b, 1, 0, 8); // as it would be sent later
    a->sender->tx.bursts[0].path = 1;
    end_close(b);
    end_send(a, 1);
    send_by_path(a, c, MANY / 2);
    expect(c, MANY / 2, 8);
    assert_int_equal(a->stats.counter[ALB_EDGE_tx_refused], 0);
    assert_int_equal(a->stats.counter[ALB_EDGE_tx_datagrams], MANY + 1 + MANY / 2);
    end_close(a);
    end_close(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lone__bursts_of_one_size),
        cmocka_unit_test(lone__segments_one_by_one),
        cmocka_unit_test(lone__large_segments_are_said_each_time),
        cmocka_unit_test(lone__a_socket_that_only_sends_is_connected),
        cmocka_unit_test(lone__a_roce_socket_is_not_connected),
        cmocka_unit_test(lone__a_peer_that_has_gone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
