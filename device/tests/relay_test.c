// SPDX-License-Identifier: BSD-2-Clause
// Envelopes and the way from port 4791 to another slot.
#include "device/relay.h"

#include "base/tests/test.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <poll.h>
#include <string.h>

static struct alb_endpoint endpoint(const char *text, uint16_t port)
{
    struct alb_endpoint result = {.port = port};
    assert_true(alb_addr_parse(text, &result.addr));
    return result;
}

static void alb_envelope__round_trip(void **state)
{
    const struct alb_envelope before = {
        .peer = endpoint("fd99::1234", 0xabcd),
        .traffic_class = 0x6b,
        .hop_limit = 63,
        .segment_bytes = 1060,
    };
    struct alb_envelope after;
    uint8_t bytes[ALB_ENVELOPE_BYTES + 4] = {0};
    alb_envelope_encode(&before, bytes);
    assert_true(alb_envelope_decode(bytes, sizeof(bytes), &after));
    assert_true(alb_endpoint_equals(&before.peer, &after.peer));
    assert_int_equal(after.traffic_class, 0x6b);
    assert_int_equal(after.hop_limit, 63);
    assert_int_equal(after.segment_bytes, 1060);
}

static void alb_envelope_decode__refuses(void **state)
{
    struct alb_envelope envelope = {.peer = endpoint("10.0.0.1", 1), .segment_bytes = 1};
    uint8_t bytes[ALB_ENVELOPE_BYTES];
    alb_envelope_encode(&envelope, bytes);
    assert_false(alb_envelope_decode(bytes, sizeof(bytes) - 1, &envelope));
    assert_false(alb_envelope_decode(bytes, 0, &envelope));
    for (int i = 0; i < 5; i++) { // mark and version
        bytes[i] ^= 1;
        assert_false(alb_envelope_decode(bytes, sizeof(bytes), &envelope));
        bytes[i] ^= 1;
    }
    assert_true(alb_envelope_decode(bytes, sizeof(bytes), &envelope));
    bytes[26] = bytes[27] = 0; // datagrams of no size
    assert_false(alb_envelope_decode(bytes, sizeof(bytes), &envelope));
}

static void alb_envelope_encode__is_no_roce(void **state)
{
    struct alb_envelope envelope = {.segment_bytes = 1};
    uint8_t bytes[ALB_ENVELOPE_BYTES];
    alb_envelope_encode(&envelope, bytes);
    assert_null(alb_opcode_info(bytes[0]));
}

struct relayed {
    struct alb_socket front, slot3;
    struct alb_edge_stats stats;
    struct alb_relay relay;
};

static void open_sockets(struct relayed *r, const char *address)
{
    memset(r, 0, sizeof(*r));
    struct alb_endpoint local = endpoint(address, ALB_ROCE_PORT);
    assert_int_equal(alb_socket_open(&r->front, &local), 0);
    local.port = alb_slot_port(3);
    assert_int_equal(alb_socket_open(&r->slot3, &local), 0);
    alb_relay_init(&r->relay, &r->stats);
}

static void close_sockets(struct relayed *r)
{
    alb_socket_close(&r->front);
    alb_socket_close(&r->slot3);
}

// Segments that were sent in one call reach a socket that takes them coalesced as they left, and it is told their size.
static bool is_cut(struct msghdr *message)
{
    for (struct cmsghdr *control = CMSG_FIRSTHDR(message); control; control = CMSG_NXTHDR(message, control)) {
        if (control->cmsg_level == IPPROTO_UDP && control->cmsg_type == UDP_GRO)
            return true;
    }
    return false;
}

// The next message at slot 3, one datagram; its length, or -1 if there is none.
static ssize_t next(struct relayed *r, uint8_t *bytes, size_t size, struct alb_envelope *envelope)
{
    union alb_sockaddr name;
    uint8_t controls[256];
    struct iovec iov = {.iov_base = bytes, .iov_len = size};
    struct msghdr message = {.msg_name = &name,
                             .msg_namelen = sizeof(name),
                             .msg_iov = &iov,
                             .msg_iovlen = 1,
                             .msg_control = controls,
                             .msg_controllen = sizeof(controls)};
    ssize_t length = recvmsg(r->slot3.fd, &message, MSG_DONTWAIT);
    struct alb_endpoint from;
    if (length < 0)
        return -1;
    assert_false(is_cut(&message));
    assert_true(alb_sockaddr_decode(&name, &from));
    assert_true(alb_endpoint_equals(&from, &r->front.local)); // what the receiver trusts
    assert_true(alb_envelope_decode(bytes, (uint32_t)length, envelope));
    return length;
}

static void alb_relay_add__joins_runs(void **state)
{
    struct relayed r;
    open_sockets(&r, "127.93.0.1");
    static uint8_t datagrams[2500], got[65536];
    for (size_t i = 0; i < sizeof(datagrams); i++)
        datagrams[i] = (uint8_t)(i * 7);
    struct alb_envelope from_a = {.peer = endpoint("10.0.0.1", 5000), .traffic_class = 2};
    struct alb_envelope from_b = {.peer = endpoint("10.0.0.1", 5001), .traffic_class = 2};
    alb_relay_add(&r.relay, &r.front, 3, &from_a, datagrams, 1000);
    alb_relay_add(&r.relay, &r.front, 3, &from_a, datagrams + 1000, 1000);
    alb_relay_add(&r.relay, &r.front, 3, &from_a, datagrams + 2000, 500); // shorter: the last of its run
    alb_relay_add(&r.relay, &r.front, 3, &from_b, datagrams, 1000);       // another source
    assert_int_equal(next(&r, got, sizeof(got), &from_b), -1);            // nothing leaves before the flush
    alb_relay_flush(&r.relay);

    struct alb_envelope envelope;
    assert_int_equal(next(&r, got, sizeof(got), &envelope), ALB_ENVELOPE_BYTES + 2500);
    assert_int_equal(envelope.segment_bytes, 1000);
    assert_int_equal(envelope.peer.port, 5000);
    assert_memory_equal(got + ALB_ENVELOPE_BYTES, datagrams, 2500);
    assert_int_equal(next(&r, got, sizeof(got), &envelope), ALB_ENVELOPE_BYTES + 1000);
    assert_int_equal(envelope.peer.port, 5001);
    assert_int_equal(next(&r, got, sizeof(got), &envelope), -1);
    assert_int_equal(r.stats.counter[ALB_EDGE_relay_out], 4);
    close_sockets(&r);
}

static void alb_relay_add__does_not_join_across(void **state)
{
    struct relayed r;
    open_sockets(&r, "127.93.0.2");
    static uint8_t datagrams[4000], got[65536];
    struct alb_envelope from = {.peer = endpoint("10.0.0.1", 5000)}, marked = from, envelope;
    marked.traffic_class = ALB_ECN_CE;
    alb_relay_add(&r.relay, &r.front, 3, &from, datagrams, 1000);
    alb_relay_add(&r.relay, &r.front, 3, &from, datagrams + 1500, 1000);   // not behind the one before
    alb_relay_add(&r.relay, &r.front, 3, &marked, datagrams + 2500, 1000); // the mark must not be lost
    alb_relay_add(&r.relay, &r.front, 4, &marked, datagrams + 3500, 500);  // another slot, which is unused
    alb_relay_flush(&r.relay);
    assert_int_equal(next(&r, got, sizeof(got), &envelope), ALB_ENVELOPE_BYTES + 1000);
    assert_int_equal(next(&r, got, sizeof(got), &envelope), ALB_ENVELOPE_BYTES + 1000);
    assert_int_equal(envelope.traffic_class, 0);
    assert_int_equal(next(&r, got, sizeof(got), &envelope), ALB_ENVELOPE_BYTES + 1000);
    assert_int_equal(envelope.traffic_class, ALB_ECN_CE);
    assert_int_equal(next(&r, got, sizeof(got), &envelope), -1);
    close_sockets(&r);
}

// The holder of the port has messages of its own, of which its socket has learned a size of segments.
static void alb_relay_flush__is_not_cut_by_the_socket(void **state)
{
    struct relayed r;
    open_sockets(&r, "127.93.0.4");
    static uint8_t datagrams[1500], got[65536];
    struct alb_envelope from = {.peer = endpoint("10.0.0.1", 5000)}, envelope;
    assert_true(alb_socket_set_segment_bytes(&r.front, 48));
    for (int i = 0; i < 3; i++)
        alb_relay_add(&r.relay, &r.front, 3, &from, datagrams + i * 500, 500);
    alb_relay_add(&r.relay, &r.front, 3, &from, datagrams, 16);
    alb_relay_flush(&r.relay);
    assert_int_equal(next(&r, got, sizeof(got), &envelope), ALB_ENVELOPE_BYTES + 1500);
    assert_int_equal(envelope.segment_bytes, 500);
    assert_int_equal(next(&r, got, sizeof(got), &envelope), ALB_ENVELOPE_BYTES + 16);
    assert_int_equal(next(&r, got, sizeof(got), &envelope), -1);
    close_sockets(&r);
}

static void alb_relay_add__more_than_fit(void **state)
{
    struct relayed r;
    open_sockets(&r, "127.93.0.3");
    static uint8_t datagrams[65536], got[65536];
    struct alb_envelope from = {.peer = endpoint("10.0.0.1", 5000)}, envelope;
    for (int i = 0; i < 16; i++) // 64 KiB: one UDP datagram cannot hold that and an envelope
        alb_relay_add(&r.relay, &r.front, 3, &from, datagrams + i * 4096, 4096);
    alb_relay_add(&r.relay, &r.front, 3, &from, datagrams, 65507); // nor this one
    alb_relay_flush(&r.relay);
    assert_int_equal(next(&r, got, sizeof(got), &envelope), ALB_ENVELOPE_BYTES + 15 * 4096);
    assert_int_equal(next(&r, got, sizeof(got), &envelope), ALB_ENVELOPE_BYTES + 4096);
    assert_int_equal(next(&r, got, sizeof(got), &envelope), -1);
    assert_int_equal(r.stats.counter[ALB_EDGE_relay_lost], 1);
    for (int i = 0; i < ALB_RELAY_RUNS_MAX + 1; i++) // more runs than wait at once
        alb_relay_add(&r.relay, &r.front, 3, &from, datagrams, 16);
    alb_relay_flush(&r.relay);
    for (int i = 0; i < ALB_RELAY_RUNS_MAX + 1; i++)
        assert_int_equal(next(&r, got, sizeof(got), &envelope), ALB_ENVELOPE_BYTES + 16);
    assert_int_equal(next(&r, got, sizeof(got), &envelope), -1);
    close_sockets(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alb_envelope__round_trip),
        cmocka_unit_test(alb_envelope_decode__refuses),
        cmocka_unit_test(alb_envelope_encode__is_no_roce),
        cmocka_unit_test(alb_relay_add__joins_runs),
        cmocka_unit_test(alb_relay_add__does_not_join_across),
        cmocka_unit_test(alb_relay_flush__is_not_cut_by_the_socket),
        cmocka_unit_test(alb_relay_add__more_than_fit),
    };
    return cmocka_run_group_tests_name("relay", tests, NULL, NULL);
}
