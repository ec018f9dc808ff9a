// SPDX-License-Identifier: BSD-2-Clause
// The edge between engine and sockets without an engine: bursts out, datagrams in, and whatever a hostile network
// sends.
#include "device/clock.h"
#include "device/tests/cancelled.h"
#include "device/tests/end.h"

#include "wire/icrc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void alb_edge__bursts_arrive_in_order(const char *address_a, const char *address_b)
{
    struct end *a = end_open(address_a), *b = end_open(address_b);
    struct alb_endpoint peer = end_endpoint(b);
    alb_qpn qpn = (uint32_t)b->port.slot << 16 | 0x100;
    end_add_burst(a, &peer, qpn, 1, 8, 8);
    end_add_burst(a, &peer, qpn, 15, 4096, 4096);
    end_add_burst(a, &peer, qpn, 64, 1000, 4);
    end_add_burst(a, &peer, qpn, 1, 0, 0);
    end_add_burst(a, &peer, qpn, 2, 8, 4); // small ones are sent in one piece
    end_send(a, 1);
    assert_int_equal(end_receive_all(b), 5); // each burst as one message
    assert_int_equal(b->count, 83);
    assert_int_equal(a->stats.counter[ALB_EDGE_tx_datagrams], 83);
    assert_int_equal(a->stats.counter[ALB_EDGE_tx_messages], 5);
    assert_int_equal(b->stats.counter[ALB_EDGE_rx_datagrams], 83);
    for (uint32_t i = 0; i < b->count; i++) {
        struct alb_roce roce;
        uint32_t offset, bytes;
        assert_int_equal(alb_roce_decode(b->bytes[i], b->taken[i].length, &roce, &offset, &bytes), ALB_DROP_NONE);
        assert_int_equal(roce.psn, i);
        for (uint32_t k = 0; k < bytes; k++)
            assert_int_equal(b->bytes[i][offset + k], (uint8_t)(k * 13));
        struct alb_endpoint from = end_endpoint(a);
        assert_true(alb_endpoint_equals(&b->taken[i].peer, &from));
        assert_true(alb_endpoint_equals(&b->taken[i].local, &peer));
        assert_int_equal(b->taken[i].traffic_class, 0x02);
        assert_true(b->taken[i].hop_limit > 0);
    }
    end_close(a);
    end_close(b);
}

static void alb_edge__ipv4(void **state)
{
    alb_edge__bursts_arrive_in_order("127.94.0.1", "127.94.0.2");
}

static void alb_edge__every_datagram_has_its_hop_limit(const char *address_a, const char *address_b)
{
    static const uint8_t limits[] = {1, 1, 1, 7, 9, 9, 9, 7, 1, 1, 0, 0, 64, 255};
    struct end *a = end_open(address_a), *b = end_open(address_b);
    struct alb_endpoint peer = end_endpoint(b);
    for (uint32_t batch = 0; batch < 3; batch++) {
        for (uint32_t i = 0; i < ALB_COUNT(limits); i++) {
            end_add_burst(a, &peer, (uint32_t)b->port.slot << 16 | 0x100, 1, 8, 8);
            a->sender->tx.bursts[a->sender->tx.burst_count - 1].hop_limit = limits[i];
        }
        end_send(a, 1);
    }
    end_receive_all(b);
    assert_int_equal(b->count, 3 * ALB_COUNT(limits));
    for (uint32_t i = 0; i < b->count; i++) {
        uint8_t limit = limits[i % ALB_COUNT(limits)];
        assert_int_equal(b->taken[i].hop_limit, limit ? limit : 64); // 0 leaves it to the system
    }
    end_close(a);
    end_close(b);
}

static void alb_edge__hop_limit_ipv4(void **state)
{
    alb_edge__every_datagram_has_its_hop_limit("127.94.0.1", "127.94.0.2");
}

static void alb_edge__hop_limit_ipv6(void **state)
{
    if (!end_has_ipv6())
        skip();
    alb_edge__every_datagram_has_its_hop_limit("::1", "::1");
}

static void alb_edge__ipv6(void **state)
{
    if (!end_has_ipv6())
        skip();
    alb_edge__bursts_arrive_in_order("::1", "::1");
}

static void alb_edge__without_gso(void **state)
{
    struct end *a = end_open("127.94.0.3"), *b = end_open("127.94.0.4");
    struct alb_endpoint peer = end_endpoint(b);
    a->port.own[0].gso_works = false;
    end_add_burst(a, &peer, 0x100, 15, 1024, 100);
    end_send(a, 1);
    assert_int_equal(end_receive_all(b), 15);
    assert_int_equal(b->count, 15);
    end_close(a);
    end_close(b);
}

// The kernel takes no burst of more than 128 segments: it must go out one by one, sealed for that.
static void alb_edge__burst_that_the_kernel_refuses(void **state)
{
    struct end *a = end_open("127.94.0.5"), *b = end_open("127.94.0.6");
    struct alb_endpoint peer = end_endpoint(b);
    end_add_burst(a, &peer, 0x100, 150, 64, 64);
    end_send(a, 1);
    end_receive_all(b);
    assert_int_equal(b->count, 150);
    assert_int_equal(a->stats.counter[ALB_EDGE_tx_datagrams], 150);
    end_close(a);
    end_close(b);
}

static void alb_edge__what_cannot_be_sent_is_counted(void **state)
{
    struct end *a = end_open("127.94.0.7");
    struct alb_endpoint nobody = {.port = 4791}, elsewhere = {.port = 4791};
    assert_true(alb_addr_parse("127.94.0.99", &nobody.addr));
    assert_true(alb_addr_parse("203.0.113.1", &elsewhere.addr)); // not from a loopback address
    end_add_burst(a, &nobody, 0x100, 2, 64, 64);
    end_add_burst(a, &elsewhere, 0x100, 2, 64, 64);
    end_add_burst(a, &nobody, 0x100, 1, 64, 64);
    a->sender->tx.bursts[2].local.addr = nobody.addr; // no socket of ours
    end_send(a, 1);
    assert_int_equal(a->stats.counter[ALB_EDGE_tx_datagrams], 2); // lost on the way, which is the network's matter
    assert_int_equal(a->stats.counter[ALB_EDGE_tx_refused], 2);
    assert_int_equal(a->stats.counter[ALB_EDGE_tx_no_socket], 1);
    end_close(a);
}

static void send_raw(struct end *from, const struct alb_endpoint *to, const void *bytes, size_t length)
{
    union alb_sockaddr name;
    socklen_t name_bytes = alb_sockaddr_encode(to, &name);
    assert_int_equal(sendto(from->port.own[0].fd, bytes, length, 0, &name.any, name_bytes), length);
}

static void alb_edge__corruption_is_dropped(void **state)
{
    struct end *a = end_open("127.94.0.8"), *b = end_open("127.94.0.9");
    struct alb_endpoint peer = end_endpoint(b);
    uint8_t bytes[64];
    srand(5);
    for (int i = 0; i < 200; i++) {
        for (size_t k = 0; k < sizeof(bytes); k++)
            bytes[k] = (uint8_t)rand();
        bytes[5] = 0; // of the receiver's slot, or the relay would have it
        bytes[6] = 1;
        send_raw(a, &peer, bytes, (size_t)(rand() % 65));
    }
    end_receive_all(b);
    assert_int_equal(b->count, 0);
    assert_int_equal(b->dropped[ALB_DROP_TRUNCATED] + b->dropped[ALB_DROP_BAD_ICRC], 200);
    assert_true(b->dropped[ALB_DROP_TRUNCATED] > 0);
    end_close(a);
    end_close(b);
}

static void alb_edge__nothing_comes_before_it_was_sent(void **state)
{
    struct end *a = end_open("127.94.0.43"), *b = end_open("127.94.0.44");
    struct alb_endpoint peer = end_endpoint(b);
    alb_time before = alb_clock_now();
    end_add_burst(a, &peer, 0x100, 1, 8, 8);
    end_send(a, before);
    assert_int_equal(end_receive_all(b), 1);
    assert_int_equal(b->count, 1);
    assert_true(b->came_at >= before);
    end_close(a);
    end_close(b);
}

// ---- the relay ------------------------------------------------------------------------------------------------------

// A foreign peer's burst to port 4791 for a queue pair of slot 3 ends up there, as if it had come directly.
static void alb_edge__relay_to_another_slot(void **state)
{
    struct end *foreign = end_open("127.94.0.10"), *owner = end_open("127.94.0.11");
    struct end *third = end_open_at("127.94.0.11", 2, NULL);
    assert_int_equal(third->port.slot, 3);
    struct alb_endpoint front = end_endpoint(owner), source = end_endpoint(foreign);
    end_add_burst(foreign, &front, 0x030100, 15, 4096, 8);
    end_add_burst(foreign, &front, 0x000100, 1, 8, 8); // for the owner itself
    end_add_burst(foreign, &front, 0x050100, 1, 8, 8); // for an unused slot
    end_add_burst(foreign, &front, 0x000001, 1, 8, 8); // connection management
    end_send(foreign, 1);
    end_receive_all(owner);
    assert_int_equal(owner->count, 2);
    assert_int_equal(owner->stats.counter[ALB_EDGE_relay_out], 15);
    assert_int_equal(owner->dropped[ALB_DROP_UNKNOWN_QP], 1);
    assert_int_equal(end_receive_all(third), 1);
    assert_int_equal(third->count, 15);
    assert_int_equal(third->stats.counter[ALB_EDGE_relay_in], 15);
    for (uint32_t i = 0; i < third->count; i++) {
        assert_true(alb_endpoint_equals(&third->taken[i].peer, &source));
        assert_true(alb_endpoint_equals(&third->taken[i].local, &front));
        assert_int_equal(third->taken[i].traffic_class, 0x02);
    }
    end_close(foreign);
    end_close(owner);
    end_close(third);
}

// Not any bytes that somebody sends, but packets, of either kind of device.
static void alb_edge__relays_what_has_a_good_icrc(void **state)
{
    struct end *roce = end_open("127.94.0.45"), *albedo = end_open_with("127.94.0.46", 0, true, NULL);
    struct end *owner = end_open("127.94.0.47"), *third = end_open_at("127.94.0.47", 2, NULL);
    struct alb_endpoint front = end_endpoint(owner);
    uint8_t bytes[64] = {[0] = ALB_RC_SEND_ONLY, [5] = 3, [6] = 1};
    send_raw(roce, &front, bytes, sizeof(bytes));
    send_raw(roce, &front, bytes, ALB_BTH_BYTES);
    end_receive_all(owner);
    assert_int_equal(owner->stats.counter[ALB_EDGE_relay_out], 0);
    assert_int_equal(owner->stats.counter[ALB_EDGE_rx_datagrams], 2);
    assert_int_equal(owner->dropped[ALB_DROP_BAD_ICRC], 1);
    assert_int_equal(owner->dropped[ALB_DROP_TRUNCATED], 1);
    end_add_burst(roce, &front, 0x030100, 3, 64, 64);
    end_send(roce, 1);
    end_add_burst(albedo, &front, 0x030100, 3, 64, 64);
    end_send(albedo, 1);
    end_receive_all(owner);
    assert_int_equal(owner->stats.counter[ALB_EDGE_relay_out], 6);
    end_receive_all(third);
    assert_int_equal(third->stats.counter[ALB_EDGE_relay_in], 6);
    end_close(roce);
    end_close(albedo);
    end_close(owner);
    end_close(third);
}

static void receive_all(void *end)
{
    end_receive_all(end);
}

// A program's thread that polls may be cancelled, and has the driver token while it passes on what is others'.
static void alb_edge__a_cancelled_thread_relays(void **state)
{
    struct end *foreign = end_open("127.94.0.41"), *owner = end_open("127.94.0.42");
    struct end *third = end_open_at("127.94.0.42", 2, NULL);
    struct alb_endpoint front = end_endpoint(owner);
    end_add_burst(foreign, &front, (alb_qpn)third->port.slot << 16 | 0x100, 1, 8, 8);
    end_send(foreign, 1);
    cancelled_call(receive_all, owner);
    assert_int_equal(owner->stats.counter[ALB_EDGE_relay_out], 1);
    end_receive_all(third);
    assert_int_equal(third->count, 1);
    end_close(foreign);
    end_close(owner);
    end_close(third);
}

static void alb_edge__only_the_front_may_relay(void **state)
{
    struct end *owner = end_open("127.94.0.12"), *third = end_open_at("127.94.0.12", 2, NULL);
    struct end *other_slot = end_open("127.94.0.12"), *other_host = end_open("127.94.0.13");
    struct alb_endpoint target = end_endpoint(third);
    assert_int_equal(other_slot->port.slot, 1);
    struct alb_envelope envelope = {.peer = end_endpoint(other_host), .segment_bytes = 24};
    uint8_t bytes[ALB_ENVELOPE_BYTES + 24] = {0};
    alb_envelope_encode(&envelope, bytes);
    send_raw(other_slot, &target, bytes, sizeof(bytes)); // from another port of the address
    send_raw(other_host, &target, bytes, sizeof(bytes)); // from port 4791 of another address
    end_receive_all(third);
    assert_int_equal(third->dropped[ALB_DROP_NOT_ROCE], 2);
    send_raw(owner, &target, bytes, sizeof(bytes)); // believed, but its inside is as hostile as ever
    end_receive_all(third);
    assert_int_equal(third->dropped[ALB_DROP_NOT_ROCE], 2);
    assert_int_equal(third->dropped[ALB_DROP_BAD_ICRC], 1);
    alb_envelope_encode(&envelope, bytes + ALB_ENVELOPE_BYTES - 8); // an envelope in an envelope
    memcpy(bytes + ALB_ENVELOPE_BYTES, bytes, 24);
    send_raw(owner, &target, bytes, sizeof(bytes));
    struct alb_endpoint front = end_endpoint(owner);
    send_raw(third, &front, bytes, sizeof(bytes)); // to the front itself
    end_receive_all(third);
    end_receive_all(owner);
    assert_int_equal(third->count + owner->count, 0);
    assert_int_equal(owner->dropped[ALB_DROP_NOT_ROCE], 1);
    end_close(owner);
    end_close(third);
    end_close(other_slot);
    end_close(other_host);
}

static void alb_edge__takeover_of_the_front(void **state)
{
    struct end *foreign = end_open("127.94.0.14"), *owner = end_open("127.94.0.15");
    struct end *second = end_open("127.94.0.15"), *third = end_open("127.94.0.15");
    struct alb_endpoint front = end_endpoint(owner);
    assert_false(alb_port_take_front(&second->port));
    assert_true(alb_port_is_front(&owner->port));
    assert_false(alb_port_take_front(&owner->port)); // has it already
    end_close(owner);
    assert_true(alb_port_take_front(&second->port));
    assert_true(alb_port_is_front(&second->port));
    assert_int_equal(second->port.slot, 1);
    assert_false(alb_port_take_front(&third->port));
    end_add_burst(foreign, &front, 0x020100, 3, 100, 100); // third's
    end_add_burst(foreign, &front, 0x010100, 1, 100, 100); // second's own
    end_add_burst(foreign, &front, 0x000100, 1, 100, 100); // of the one that is gone
    end_send(foreign, 1);
    end_receive_all(second);
    end_receive_all(third);
    assert_int_equal(second->count, 1);
    assert_int_equal(third->count, 3);
    assert_int_equal(second->dropped[ALB_DROP_UNKNOWN_QP], 1);
    end_close(foreign);
    end_close(second);
    end_close(third);
}

static void alb_edge__takeover_of_the_front_with_an_address_that_is_gone(void **state)
{
    struct end *owner = end_open("127.94.0.15"), *second = end_open("127.94.0.15");
    assert_true(alb_addr_parse("203.0.113.77", &second->port.addresses[1]));
    second->port.own[1].fd = -1;
    second->port.address_count = 2;
    end_close(owner);
    assert_true(alb_port_take_front(&second->port));
    end_close(second);
}

// ---- faults ---------------------------------------------------------------------------------------------------------

// Sends datagrams over a faulty edge and returns a hash of what arrived in which order.
static uint64_t faulty_run(const char *text, uint32_t datagrams, struct alb_edge_stats *stats, uint64_t *bad)
{
    struct alb_faults_spec spec;
    char error[ALB_FAULTS_ERROR_MAX];
    assert_true(alb_faults_parse(text, &spec, error, sizeof(error)));
    struct end *a = end_open_at("127.94.0.16", 0, &spec), *b = end_open("127.94.0.17");
    struct alb_endpoint peer = end_endpoint(b);
    uint64_t hash = 14695981039346656037u, uncovered = 0;
    alb_time now = 1000;
    for (uint32_t i = 0; i < datagrams; i++, now += 10 * ALB_NS_PER_US) {
        end_add_burst(a, &peer, 0x100, 1, 64, 64);
        end_put_headers(a->sender->tx.iov[0].iov_base, 0x100, i);
        end_send(a, now);
        alb_sender_send_due(a->sender, now);
        end_receive_all(b);
        for (uint32_t k = 0; k < b->count; k++) {
            uint32_t psn = (uint32_t)b->bytes[k][9] << 16 | (uint32_t)b->bytes[k][10] << 8 | b->bytes[k][11];
            hash = (hash ^ psn) * 1099511628211u;
            uncovered += b->bytes[k][4] != 0; // the one byte that the ICRC leaves out
        }
        end_clear(b);
    }
    assert_true(alb_sender_deadline(a->sender) > now - 10 * ALB_NS_PER_US); // what was due has gone
    alb_sender_send_due(a->sender, now + 10 * ALB_NS_PER_S);
    alb_sender_send_due(a->sender, now + 20 * ALB_NS_PER_S);
    end_receive_all(b);
    assert_int_equal(alb_sender_deadline(a->sender), ALB_TIME_NEVER); // nothing is left in the line
    *stats = a->stats;
    *bad = uncovered + b->dropped[ALB_DROP_BAD_ICRC];
    stats->counter[ALB_EDGE_rx_datagrams] = b->stats.counter[ALB_EDGE_rx_datagrams];
    end_close(a);
    end_close(b);
    return hash;
}

static void alb_edge__faults_are_counted_and_reproducible(void **state)
{
    const char *text = "loss=5%,duplicate=4%,reorder=3%,corrupt=2%,delay=50us..500us";
    struct alb_edge_stats first, second;
    uint64_t bad_first, bad_second;
    uint64_t hash = faulty_run(text, 2000, &first, &bad_first);
    assert_int_equal(faulty_run(text, 2000, &second, &bad_second), hash);
    assert_memory_equal(&first, &second, sizeof(first));
    const uint64_t *c = first.counter;
    assert_in_range(c[ALB_EDGE_fault_lost], 60, 140);
    assert_in_range(c[ALB_EDGE_fault_duplicated], 40, 120);
    assert_in_range(c[ALB_EDGE_fault_reordered], 30, 90);
    assert_in_range(c[ALB_EDGE_fault_corrupted], 20, 60);
    assert_int_equal(c[ALB_EDGE_tx_datagrams], 2000 - c[ALB_EDGE_fault_lost] + c[ALB_EDGE_fault_duplicated]);
    assert_int_equal(c[ALB_EDGE_rx_datagrams], c[ALB_EDGE_tx_datagrams]);
    assert_int_equal(bad_first, c[ALB_EDGE_fault_corrupted]);
}

static void alb_edge__no_faults_no_copies(void **state)
{
    struct alb_edge_stats stats;
    uint64_t bad;
    faulty_run("loss=50%", 200, &stats, &bad);
    assert_int_equal(stats.counter[ALB_EDGE_tx_datagrams] + stats.counter[ALB_EDGE_fault_lost], 200);
    assert_int_equal(bad, 0);
}

// ---- captures -------------------------------------------------------------------------------------------------------

static void alb_edge__captures_both_ways(void **state)
{
    struct end *a = end_open("127.94.0.18"), *b = end_open("127.94.0.19");
    struct alb_endpoint peer = end_endpoint(b), source = end_endpoint(a);
    struct alb_capture captures[2];
    char paths[2][64];
    for (int i = 0; i < 2; i++) {
        snprintf(paths[i], sizeof(paths[i]), "/tmp/albedo-edge-%d-%d.pcap", (int)getpid(), i);
        assert_int_equal(alb_capture_open(&captures[i], paths[i]), 0);
    }
    a->sender->capture = &captures[0];
    b->rx->capture = &captures[1];
    end_add_burst(a, &peer, 0x100, 10, 1024, 100);
    end_add_burst(a, &peer, 0x100, 1, 8, 8);
    end_send(a, 1);
    end_receive_all(b);
    for (int i = 0; i < 2; i++) {
        static uint8_t bytes[1 << 16];
        alb_capture_close(&captures[i]);
        FILE *file = fopen(paths[i], "rb");
        size_t length = fread(bytes, 1, sizeof(bytes), file);
        fclose(file);
        unlink(paths[i]);
        struct alb_pcap_reader reader;
        struct alb_pcap_packet packet;
        const uint8_t *payload;
        uint32_t payload_bytes, count = 0;
        assert_true(alb_pcap_reader_init(&reader, bytes, length));
        while (alb_pcap_next(&reader, &packet, &payload, &payload_bytes)) {
            struct alb_icrc_prefix prefix;
            const struct iovec iov = {(void *)(uintptr_t)payload, payload_bytes};
            uint32_t icrc;
            assert_true(alb_endpoint_equals(&packet.source, &source));
            assert_true(alb_endpoint_equals(&packet.destination, &peer));
            assert_int_equal(packet.identification, count < 10 ? count : 0);
            alb_icrc_prefix_init(&prefix, &source, &peer);
            memcpy(&icrc, payload + payload_bytes - ALB_ICRC_BYTES, sizeof(icrc));
            assert_int_equal(alb_icrc_compute(&prefix, packet.identification, &iov, payload_bytes - ALB_ICRC_BYTES),
                             icrc);
            count++;
        }
        assert_int_equal(count, 11);
    }
    end_close(a);
    end_close(b);
}

static alb_time receive_one(struct end *end, alb_time asked_at)
{
    alb_time now = asked_at;
    assert_int_equal(alb_rx_receive(end->rx, &end->port.own[0], &now), 1);
    return now;
}

static void alb_edge__tells_how_long_a_datagram_may_have_lain_unread(void **state)
{
    struct end *a = end_open("127.94.0.5"), *b = end_open("127.94.0.6");
    struct alb_endpoint peer = end_endpoint(b);
    alb_time empty_at = alb_clock_now(), asked_at = empty_at, came_at;
    assert_int_equal(alb_rx_receive(b->rx, &b->port.own[0], &asked_at), 0);
    for (uint32_t i = 0; i < 3; i++)
        end_add_burst(a, &peer, (uint32_t)b->port.slot << 16 | 0x100, 1, 8, 8);
    end_send(a, 1);
    // One is asked for, twice, and each time more may be there; then two, and there is one.
    for (uint32_t i = 0; i < 3; i++) {
        came_at = receive_one(b, empty_at + 1);
        assert_int_equal(b->taken[i].unread_ns, came_at - empty_at);
    }
    end_add_burst(a, &peer, (uint32_t)b->port.slot << 16 | 0x100, 1, 8, 8);
    end_send(a, 1);
    came_at = receive_one(b, alb_clock_now());
    assert_int_equal(b->taken[3].unread_ns, came_at - (empty_at + 1));
    end_close(a);
    end_close(b);
}

static void send_one_as(struct end *a, struct end *b, uint8_t opcode)
{
    struct alb_endpoint peer = end_endpoint(b);
    end_add_burst(a, &peer, (uint32_t)b->port.slot << 16 | 0x100, 1, 8, 8);
    *(uint8_t *)a->sender->tx.iov[0].iov_base = opcode;
    end_send(a, 1);
    end_receive_all(b);
}

static void alb_edge__tells_whether_a_write_goes_on(void **state)
{
    static const struct {
        uint8_t opcode;
        bool is_write, goes_on;
    } steps[] = {
        {ALB_RC_WRITE_FIRST, true, true}, {ALB_RC_SEND_ONLY, false, true},   {ALB_RC_WRITE_MIDDLE, true, true},
        {ALB_RC_WRITE_LAST, true, false}, {ALB_RC_SEND_FIRST, false, false}, {ALB_RC_WRITE_FIRST, true, true},
        {ALB_RC_WRITE_ONLY, true, false},
    };
    struct end *a = end_open("127.91.0.1"), *b = end_open("127.91.0.2");
    uint64_t since = 0;
    for (size_t i = 0; i < ALB_COUNT(steps); i++) {
        uint64_t writes = b->rx->counts.writes;
        bool was_amid = b->rx->counts.is_amid_write;
        send_one_as(a, b, steps[i].opcode);
        assert_int_equal(b->rx->counts.writes - writes, steps[i].is_write);
        assert_int_equal(b->rx->counts.is_amid_write, steps[i].goes_on);
        since = steps[i].goes_on && !was_amid ? b->rx->counts.bytes : since;
        assert_int_equal(b->rx->counts.write_since, since);
    }
    end_close(a);
    end_close(b);
}

// The acknowledgement ends the burst, and comes first, unless an answer to a READ is among what it would overtake.
static void alb_edge__an_acknowledgement_overtakes_requests_of_its_burst(void **state)
{
    static const struct {
        uint8_t opcodes[2];
        uint32_t psns[3]; // as they come
    } cases[] = {
        {{ALB_RC_WRITE_ONLY, ALB_RC_SEND_ONLY}, {2, 0, 1}},
        {{ALB_RC_SEND_ONLY, ALB_RC_READ_RESPONSE_ONLY}, {0, 1, 2}},
        {{ALB_RC_SEND_ONLY, 0x3f}, {0, 1, 2}}, // of no kind
    };
    struct end *a = end_open("127.91.0.1"), *b = end_open("127.91.0.2");
    struct alb_endpoint peer = end_endpoint(b);
    for (uint32_t i = 0; i < ALB_COUNT(cases); i++) {
        const struct alb_tx *tx = &a->sender->tx;
        uint32_t before = b->count;
        end_add_burst(a, &peer, (uint32_t)b->port.slot << 16 | 0x100, 3, 8, 4);
        for (uint32_t k = 0; k < 3; k++)
            *(uint8_t *)tx->iov[3 * k].iov_base = k < 2 ? cases[i].opcodes[k] : ALB_RC_ACK;
        end_send(a, 1);
        assert_int_equal(end_receive_all(b), 1);
        assert_int_equal(b->count - before, 3);
        for (uint32_t k = 0; k < 3; k++)
            assert_int_equal(alb_get_be32(b->bytes[before + k] + ALB_BTH_SEQUENCE) & ALB_PSN_MASK, cases[i].psns[k]);
    }
    end_close(a);
    end_close(b);
}

static void alb_edge__tells_whether_a_receive_ends(void **state)
{
    static const struct {
        uint8_t opcode;
        bool ends_receive, fetches;
    } steps[] = {
        {ALB_RC_SEND_FIRST, false, false}, {ALB_RC_SEND_LAST, true, false},      {ALB_RC_SEND_ONLY_IMM, true, false},
        {ALB_RC_WRITE_ONLY, false, false}, {ALB_RC_WRITE_LAST_IMM, true, false}, {ALB_RC_READ_REQUEST, false, true},
        {ALB_RC_ACK, false, false},
    };
    struct end *a = end_open("127.91.0.1"), *b = end_open("127.91.0.2");
    for (size_t i = 0; i < ALB_COUNT(steps); i++) {
        uint64_t receives = b->rx->counts.receives, fetches = b->rx->counts.fetches;
        send_one_as(a, b, steps[i].opcode);
        assert_int_equal(b->rx->counts.receives - receives, steps[i].ends_receive);
        assert_int_equal(b->rx->counts.fetches - fetches, steps[i].fetches);
    }
    end_close(a);
    end_close(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alb_edge__ipv4),
        cmocka_unit_test(alb_edge__ipv6),
        cmocka_unit_test(alb_edge__tells_how_long_a_datagram_may_have_lain_unread),
        cmocka_unit_test(alb_edge__tells_whether_a_write_goes_on),
        cmocka_unit_test(alb_edge__an_acknowledgement_overtakes_requests_of_its_burst),
        cmocka_unit_test(alb_edge__tells_whether_a_receive_ends),
        cmocka_unit_test(alb_edge__hop_limit_ipv4),
        cmocka_unit_test(alb_edge__hop_limit_ipv6),
        cmocka_unit_test(alb_edge__without_gso),
        cmocka_unit_test(alb_edge__burst_that_the_kernel_refuses),
        cmocka_unit_test(alb_edge__what_cannot_be_sent_is_counted),
        cmocka_unit_test(alb_edge__corruption_is_dropped),
        cmocka_unit_test(alb_edge__nothing_comes_before_it_was_sent),
        cmocka_unit_test(alb_edge__relay_to_another_slot),
        cmocka_unit_test(alb_edge__relays_what_has_a_good_icrc),
        cmocka_unit_test(alb_edge__a_cancelled_thread_relays),
        cmocka_unit_test(alb_edge__only_the_front_may_relay),
        cmocka_unit_test(alb_edge__takeover_of_the_front),
        cmocka_unit_test(alb_edge__takeover_of_the_front_with_an_address_that_is_gone),
        cmocka_unit_test(alb_edge__faults_are_counted_and_reproducible),
        cmocka_unit_test(alb_edge__no_faults_no_copies),
        cmocka_unit_test(alb_edge__captures_both_ways),
    };
    return cmocka_run_group_tests_name("edge", tests, NULL, NULL);
}
