// SPDX-License-Identifier: BSD-2-Clause
// What albedo0 asks of the edge beside what roce0 does: marks on every packet, paths, an ICRC that leaves the
// identification out, and the largest datagrams there are.
#include "device/tests/end.h"
#include "device/tests/said.h"

#include "wire/icrc.h"

#include <string.h>

// DSCP and ECN, CE too: what a router marked looks the same.
static void alb_edge__every_datagram_has_its_traffic_class(const char *address_a, const char *address_b)
{
    static const uint8_t classes[] = {0, 2, 2, 2, 3, 3, 2, 0xbb, 1, 0, 0, 0, 2, 2, 0xb8};
    struct end *a = end_open(address_a), *b = end_open(address_b);
    struct alb_endpoint peer = end_endpoint(b);
    for (uint32_t batch = 0; batch < 3; batch++) {
        for (uint32_t i = 0; i < ALB_COUNT(classes); i++) {
            end_add_burst(a, &peer, (uint32_t)b->port.slot << 16 | 0x100, 1 + i % 2, 8, 8);
            a->sender->tx.bursts[a->sender->tx.burst_count - 1].traffic_class = classes[i];
        }
        end_send(a, 1);
    }
    end_receive_all(b);
    uint32_t taken = 0;
    for (uint32_t i = 0; i < 3 * ALB_COUNT(classes); i++)
        for (uint32_t k = 0; k < 1 + i % ALB_COUNT(classes) % 2; k++)
            assert_int_equal(b->taken[taken++].traffic_class, classes[i % ALB_COUNT(classes)]);
    assert_int_equal(b->count, taken);
    end_close(a);
    end_close(b);
}

static void alb_edge__traffic_class_ipv4(void **state)
{
    alb_edge__every_datagram_has_its_traffic_class("127.98.0.1", "127.98.0.2");
}

static void alb_edge__traffic_class_ipv6(void **state)
{
    if (!end_has_ipv6())
        skip();
    alb_edge__every_datagram_has_its_traffic_class("::1", "::1");
}

// Sends a burst by each path from 0 to 5, where there are 4.
static void send_by_six_paths(struct end *a, struct end *b)
{
    struct alb_endpoint peer = end_endpoint(b);
    for (uint16_t path = 0; path < 6; path++) {
        end_add_burst(a, &peer, (uint32_t)b->port.slot << 16 | 0x100, a->sender->has_faults ? 1 : 3, 1000, 1000);
        a->sender->tx.bursts[a->sender->tx.burst_count - 1].path = path;
    }
    end_send(a, 1);
    alb_sender_send_due(a->sender, ALB_NS_PER_MS);
    end_receive_all(b);
}

static void paths_have_ports(const char *address_a, const char *address_b, const struct alb_faults_spec *faults)
{
    struct end *a = end_open_at(address_a, 0, faults), *b = end_open(address_b);
    uint32_t each = faults ? 1 : 3;
    a->port.paths.limit = 4;
    for (uint32_t round = 0; round < 2; round++) {
        send_by_six_paths(a, b);
        assert_int_equal(b->count, 6 * each); // none with a bad ICRC: it covers the port
        uint16_t ports[6];
        for (uint32_t i = 0; i < 6; i++) {
            ports[i] = b->taken[i * each].peer.port;
            assert_int_equal(b->taken[i * each + each - 1].peer.port, ports[i]);
            assert_true(alb_addr_equals(&b->taken[i * each].peer.addr, &a->port.addresses[0]));
        }
        assert_int_equal(ports[0], end_endpoint(a).port);
        assert_int_equal(ports[4], ports[0]); // beyond the limit
        assert_int_equal(ports[5], ports[0]);
        for (uint32_t i = 0; i < 4; i++)
            for (uint32_t k = 0; k < i; k++)
                assert_int_not_equal(ports[i], ports[k]);
        assert_int_equal(a->stats.counter[ALB_EDGE_tx_path_fallback], 2 * each * (round + 1));
        end_clear(b);
    }
    end_close(a);
    end_close(b);
}

static void alb_edge__paths_have_ports(void **state)
{
    paths_have_ports("127.98.0.22", "127.98.0.23", NULL);
    if (end_has_ipv6())
        paths_have_ports("::1", "::1", NULL);
}

static void alb_edge__paths_with_faults(void **state)
{
    struct alb_faults_spec faults;
    char why[ALB_FAULTS_ERROR_MAX];
    assert_true(alb_faults_parse("delay=1us..1us", &faults, why, sizeof(why)));
    paths_have_ports("127.98.0.22", "127.98.0.23", &faults);
}

// Bursts, single datagrams and large ones, with and without GSO, sealed as albedo0 does; a device of the other kind
// hears nothing of them.
static void ones_arrive(const char *address_a, const char *address_b)
{
    struct end *a = end_open_with(address_a, 0, true, NULL), *b = end_open_with(address_b, 0, true, NULL);
    struct alb_endpoint peer = end_endpoint(b);
    alb_qpn qpn = (uint32_t)b->port.slot << 16 | 0x100;
    for (int round = 0; round < 2; round++) {
        end_add_burst(a, &peer, qpn, 1, 8, 8);
        end_add_burst(a, &peer, qpn, 5, 8000, 4);
        end_add_burst(a, &peer, qpn, 1, 8192, 8192);
        end_send(a, 1);
        end_receive_all(b);
        a->port.own[0].gso_works = false;
    }
    assert_int_equal(b->count, 14);
    assert_int_equal(b->dropped[ALB_DROP_BAD_ICRC], 0);
    end_close(a);
    end_close(b);
}

static void alb_edge__icrc_of_ones(void **state)
{
    ones_arrive("127.98.0.24", "127.98.0.25");
    if (end_has_ipv6())
        ones_arrive("::1", "::1");
}

static void alb_edge__icrc_of_ones_is_not_the_other(void **state)
{
    struct end *a = end_open_with("127.98.0.24", 0, true, NULL), *b = end_open("127.98.0.25");
    struct alb_endpoint to_a = end_endpoint(a), to_b = end_endpoint(b);
    struct said said;
    char text[2000];
    said_begin(&said);
    for (uint32_t i = 0; i < 20; i++) {
        end_add_burst(a, &to_b, 0x100, 1, 8, 8);
        end_send(a, 1);
        end_add_burst(b, &to_a, 0x100, 1, 8, 8);
        end_send(b, 1);
        end_receive_all(a);
        end_receive_all(b);
    }
    said_end(&said, text, sizeof(text));
    assert_non_null(
        strstr(text, "16 datagrams in a row had a wrong checksum (ICRC), the last one from 127.98.0.25 port "));
    assert_int_equal(a->count, 0);
    assert_int_equal(a->dropped[ALB_DROP_BAD_ICRC], 20);
    assert_true(b->dropped[ALB_DROP_BAD_ICRC] + b->count == 20);
    end_close(a);
    end_close(b);
}

static uint8_t payload[ALB_ICRC_UDP_MAX];

// Sends one datagram of length bytes, a multiple of four, whose payload is given by that many references.
static void add_large(struct end *a, struct end *b, uint32_t length, uint32_t parts)
{
    struct alb_tx *tx = &a->sender->tx;
    uint32_t bytes = length - ALB_BTH_BYTES - ALB_ICRC_BYTES, each = bytes / parts;
    uint8_t *header = tx->bytes;
    for (uint32_t i = 0; i < sizeof(payload); i++)
        payload[i] = (uint8_t)(i * 7);
    end_put_headers(header, 0x100, 5);
    tx->iov[tx->iov_count++] = (struct iovec){header, ALB_BTH_BYTES};
    for (uint32_t i = 0; i < parts; i++)
        tx->iov[tx->iov_count++] = (struct iovec){payload + i * each, i + 1 < parts ? each : bytes - i * each};
    tx->iov[tx->iov_count++] = (struct iovec){header + 16, ALB_ICRC_BYTES};
    tx->segments[tx->segment_count++] = (struct alb_segment){.iov_count = (uint16_t)tx->iov_count, .length = length};
    tx->bursts[tx->burst_count++] = (struct alb_burst){
        .peer = end_endpoint(b),
        .local = {.addr = a->port.addresses[0]},
        .segment_count = 1,
        .segment_bytes = length,
    };
}

static void send_added(struct end *a, struct end *b)
{
    end_send(a, 1);
    end_receive_all(b);
}

static void send_large(struct end *a, struct end *b, uint32_t length, uint32_t parts)
{
    add_large(a, b, length, parts);
    send_added(a, b);
}

// The largest datagram there is comes whole, as one reference and as a thousand.
static void alb_edge__largest_datagram(void **state)
{
    struct end *a = end_open_with("127.98.0.24", 0, true, NULL), *b = end_open_with("127.98.0.25", 0, true, NULL);
    for (uint32_t parts = 1; parts <= 1022; parts += 1021) {
        send_large(a, b, ALB_UDP_PAYLOAD_MAX, parts);
        assert_int_equal(b->count, 1);
        assert_int_equal(b->taken[0].length, ALB_UDP_PAYLOAD_MAX - ALB_ICRC_BYTES);
        assert_memory_equal(b->bytes[0] + ALB_BTH_BYTES, payload, b->taken[0].length - ALB_BTH_BYTES);
        end_clear(b);
    }
    assert_int_equal(a->stats.counter[ALB_EDGE_tx_fragmented], 0);
    end_close(a);
    end_close(b);
}

// What is larger than the path's MTU, as what was cut before that shrank, comes in fragments, and that is reported.
static void alb_edge__larger_than_the_path(void **state)
{
    const uint32_t length = 65504; // IPv6 over the loopback interface has room for 65488
    if (!end_has_ipv6())
        skip();
    struct end *a = end_open_with("::1", 0, true, NULL), *b = end_open_with("::1", 0, true, NULL);
    for (uint32_t i = 0; i < 2; i++) {
        send_large(a, b, length, 1);
        assert_int_equal(b->count, i + 1);
        assert_int_equal(b->taken[i].length, length - ALB_ICRC_BYTES);
        assert_int_equal(a->stats.counter[ALB_EDGE_tx_fragmented], i + 1);
        struct alb_endpoint to = end_endpoint(b);
        assert_true(a->sender->outbox.has_too_big);
        assert_true(alb_endpoint_equals(&a->sender->outbox.too_big_peer, &to));
    }
    end_close(a);
    end_close(b);
}

// What is there to try a size is lost if it is too large: fragments would prove nothing.
static void alb_edge__whole_or_not_at_all(void **state)
{
    if (!end_has_ipv6())
        skip();
    struct end *a = end_open_with("::1", 0, true, NULL), *b = end_open_with("::1", 0, true, NULL);
    add_large(a, b, 65504, 1);
    a->sender->tx.bursts[0].is_whole = true;
    send_added(a, b);
    assert_int_equal(b->count, 0);
    assert_true(a->sender->outbox.has_too_big);
    assert_int_equal(a->stats.counter[ALB_EDGE_tx_too_big], 1);
    assert_int_equal(a->stats.counter[ALB_EDGE_tx_fragmented], 0);
    end_close(a);
    end_close(b);
}

// What the engine believes to be too large for the path, and the kernel does not, arrives, whoever is right.
static void that_may_be_cut(const char *address)
{
    struct end *a = end_open_with(address, 0, true, NULL), *b = end_open_with(address, 0, true, NULL);
    struct alb_endpoint peer = end_endpoint(b);
    for (uint32_t i = 0; i < 2; i++) {
        add_large(a, b, 8000, 1);
        a->sender->tx.bursts[0].may_be_cut = true;
        send_added(a, b);
        assert_int_equal(b->taken[b->count - 1].length, 8000 - ALB_ICRC_BYTES);
        assert_int_equal(a->stats.counter[ALB_EDGE_tx_fragmented], 4 * i + 1);
        end_add_burst(a, &peer, (uint32_t)b->port.slot << 16 | 0x100, 3, 8000, 4); // GSO too
        a->sender->tx.bursts[0].may_be_cut = true;
        send_added(a, b);
        assert_int_equal(b->count, 4 * i + 4);
        assert_int_equal(a->stats.counter[ALB_EDGE_tx_fragmented], 4 * i + 4);
    }
    assert_int_equal(b->dropped[ALB_DROP_BAD_ICRC], 0);
    end_close(a);
    end_close(b);
}

static void alb_edge__datagrams_that_may_be_cut(void **state)
{
    that_may_be_cut("127.98.0.26");
    if (end_has_ipv6())
        that_may_be_cut("::1");
}

// The other device's ICRC covers an identification that fragments do not leave alone.
static void alb_edge__no_fragments_of_roce(void **state)
{
    if (!end_has_ipv6())
        skip();
    struct end *a = end_open("::1"), *b = end_open("::1");
    send_large(a, b, 65504, 1);
    assert_int_equal(b->count, 0);
    assert_int_equal(a->stats.counter[ALB_EDGE_tx_too_big], 1);
    assert_int_equal(a->stats.counter[ALB_EDGE_tx_fragmented], 0);
    end_close(a);
    end_close(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alb_edge__traffic_class_ipv4),
        cmocka_unit_test(alb_edge__traffic_class_ipv6),
        cmocka_unit_test(alb_edge__paths_have_ports),
        cmocka_unit_test(alb_edge__paths_with_faults),
        cmocka_unit_test(alb_edge__icrc_of_ones),
        cmocka_unit_test(alb_edge__icrc_of_ones_is_not_the_other),
        cmocka_unit_test(alb_edge__largest_datagram),
        cmocka_unit_test(alb_edge__larger_than_the_path),
        cmocka_unit_test(alb_edge__no_fragments_of_roce),
        cmocka_unit_test(alb_edge__whole_or_not_at_all),
        cmocka_unit_test(alb_edge__datagrams_that_may_be_cut),
    };
    return cmocka_run_group_tests_name("edge_albedo", tests, NULL, NULL);
}
