// SPDX-License-Identifier: BSD-2-Clause
// The edge between engine and sockets without an engine: bursts out, datagrams in, and whatever a hostile network
// sends.
#include "device/rx.h"
#include "device/tx.h"

#include "base/tests/test.h"
#include "wire/icrc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TAKEN_MAX 512

// One end: a port with its edges, and what came in.
struct end {
    struct alb_port port;
    struct alb_edge_stats stats;
    struct alb_sender *sender;
    struct alb_rx *rx;
    uint64_t dropped[ALB_DROP_COUNT];
    uint32_t count;
    struct alb_datagram taken[TAKEN_MAX];
    uint8_t *bytes[TAKEN_MAX];
    void *idents;
    uint8_t *buffers;
};

static void take(void *context, const struct alb_datagram *datagrams, uint32_t count, alb_time now)
{
    struct end *end = context;
    for (uint32_t i = 0; i < count; i++) {
        assert_true(end->count < TAKEN_MAX);
        end->bytes[end->count] = malloc(datagrams[i].length + 1);
        memcpy(end->bytes[end->count], datagrams[i].bytes, datagrams[i].length);
        end->taken[end->count++] = datagrams[i];
    }
}

static void drop(void *context, enum alb_drop reason)
{
    ((struct end *)context)->dropped[reason]++;
}

static void *zeroed(size_t bytes)
{
    void *memory = aligned_alloc(64, (bytes + 63) & ~(size_t)63);
    return memset(memory, 0, bytes);
}

static struct end *end_open_at(const char *address, int slot, const struct alb_faults_spec *faults)
{
    static const struct alb_faults_spec none;
    static const struct alb_siphash_key key = {{1, 2}};
    struct end *end = zeroed(sizeof(*end));
    struct alb_addr addr;
    assert_true(alb_addr_parse(address, &addr));
    struct alb_socket before[8]; // taken while ours is claimed, so that we get the slot wanted
    uint8_t unused;
    for (int i = 0; i < slot; i++)
        assert_int_equal(alb_slot_claim(&addr, 1, &before[i], &unused), 0);
    assert_int_equal(alb_port_open(&end->port, &addr, 1), 0);
    for (int i = 0; i < slot; i++)
        alb_socket_close(&before[i]);
    end->sender = zeroed(sizeof(*end->sender));
    end->rx = zeroed(sizeof(*end->rx));
    end->idents = zeroed(alb_idents_bytes());
    end->buffers = zeroed(ALB_RX_MESSAGES * ALB_RX_BUFFER_BYTES);
    assert_int_equal(alb_sender_init(end->sender, &end->port, &end->stats, faults ? faults : &none, 7), 0);
    const struct alb_rx_taker taker = {.context = end, .datagrams = take, .drop = drop};
    alb_rx_init(end->rx, &taker, &end->stats, alb_idents_init(end->idents, &key), end->port.slot, end->buffers);
    return end;
}

static struct end *end_open(const char *address)
{
    return end_open_at(address, 0, NULL);
}

static void end_clear(struct end *end)
{
    while (end->count > 0)
        free(end->bytes[--end->count]);
}

static void end_close(struct end *end)
{
    end_clear(end);
    alb_sender_fini(end->sender);
    alb_port_close(&end->port);
    free(end->sender);
    free(end->rx);
    free(end->idents);
    free(end->buffers);
    free(end);
}

static uint32_t receive_all(struct end *end)
{
    struct alb_socket *ready[8];
    uint32_t messages = 0, count;
    for (int i = 0; i < 50; i++) {
        while ((count = alb_port_ready(&end->port, ready, ALB_COUNT(ready))) > 0)
            for (uint32_t k = 0; k < count; k++)
                messages += alb_rx_receive(end->rx, ready[k], 1000);
    }
    return messages;
}

static void put_headers(uint8_t *out, alb_qpn qpn, uint32_t psn)
{
    const struct alb_roce roce = {.opcode = ALB_RC_SEND_ONLY, .pkey = ALB_PKEY_DEFAULT, .dest_qpn = qpn, .psn = psn};
    assert_int_equal(alb_roce_encode(&roce, out), ALB_BTH_BYTES);
}

// Puts one burst of segments into the sender's batch: payload_bytes each but the last, which has last_bytes.
static void add_burst(struct end *from, const struct alb_endpoint *peer, alb_qpn qpn, uint32_t segments,
                      uint32_t payload_bytes, uint32_t last_bytes)
{
    static uint8_t payload[8192];
    struct alb_tx *tx = &from->sender->tx;
    struct alb_burst *burst = &tx->bursts[tx->burst_count++];
    *burst = (struct alb_burst){
        .peer = *peer,
        .local = {.addr = from->port.addresses[0]},
        .traffic_class = 0x02,
        .segment_first = tx->segment_count,
        .segment_count = segments,
        .segment_bytes = ALB_BTH_BYTES + (segments > 1 ? payload_bytes : last_bytes) + ALB_ICRC_BYTES,
    };
    for (size_t i = 0; i < sizeof(payload); i++)
        payload[i] = (uint8_t)(i * 13);
    for (uint32_t i = 0; i < segments; i++) {
        uint32_t bytes = i + 1 < segments ? payload_bytes : last_bytes;
        uint8_t *header = tx->bytes + tx->bytes_count;
        tx->bytes_count += 32;
        put_headers(header, qpn, tx->segment_count);
        tx->segments[tx->segment_count++] = (struct alb_segment){
            .iov_first = tx->iov_count, .iov_count = 3, .length = ALB_BTH_BYTES + bytes + ALB_ICRC_BYTES};
        tx->iov[tx->iov_count++] = (struct iovec){header, ALB_BTH_BYTES};
        tx->iov[tx->iov_count++] = (struct iovec){payload, bytes};
        tx->iov[tx->iov_count++] = (struct iovec){header + 16, ALB_ICRC_BYTES};
    }
}

static void send_batch(struct end *from, alb_time now)
{
    struct alb_tx *tx = &from->sender->tx;
    alb_sender_send(from->sender, now);
    tx->burst_count = tx->segment_count = tx->iov_count = tx->bytes_count = 0;
}

static struct alb_endpoint endpoint_of(const struct end *end)
{
    return end->port.own[0].local;
}

static bool has_ipv6(void)
{
    struct alb_endpoint local = {.port = 40000};
    struct alb_socket sock;
    assert_true(alb_addr_parse("::1", &local.addr));
    if (alb_socket_open(&sock, &local) != 0)
        return false;
    alb_socket_close(&sock);
    return true;
}

static void alb_edge__bursts_arrive_in_order(const char *address_a, const char *address_b)
{
    struct end *a = end_open(address_a), *b = end_open(address_b);
    struct alb_endpoint peer = endpoint_of(b);
    alb_qpn qpn = (uint32_t)b->port.slot << 16 | 0x100;
    add_burst(a, &peer, qpn, 1, 8, 8);
    add_burst(a, &peer, qpn, 15, 4096, 4096);
    add_burst(a, &peer, qpn, 64, 1000, 4);
    add_burst(a, &peer, qpn, 1, 0, 0);
    add_burst(a, &peer, qpn, 2, 8, 4); // small ones are sent in one piece
    send_batch(a, 1);
    assert_int_equal(receive_all(b), 5); // each burst as one message
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
        struct alb_endpoint from = endpoint_of(a);
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
    struct alb_endpoint peer = endpoint_of(b);
    for (uint32_t batch = 0; batch < 3; batch++) {
        for (uint32_t i = 0; i < ALB_COUNT(limits); i++) {
            add_burst(a, &peer, (uint32_t)b->port.slot << 16 | 0x100, 1, 8, 8);
            a->sender->tx.bursts[a->sender->tx.burst_count - 1].hop_limit = limits[i];
        }
        send_batch(a, 1);
    }
    receive_all(b);
    assert_int_equal(b->count, 3 * ALB_COUNT(limits));
    for (uint32_t i = 0; i < b->count; i++) {
        uint8_t limit = limits[i % ALB_COUNT(limits)];
        assert_int_equal(b->taken[i].hop_limit, limit ? limit : 64); // 0 leaves it to the system
    }
    end_close(a);
    end_close(b);
}

// DSCP and ECN, CE too: what a router marked looks the same.
static void alb_edge__every_datagram_has_its_traffic_class(const char *address_a, const char *address_b)
{
    static const uint8_t classes[] = {0, 2, 2, 2, 3, 3, 2, 0xbb, 1, 0, 0, 0, 2, 2, 0xb8};
    struct end *a = end_open(address_a), *b = end_open(address_b);
    struct alb_endpoint peer = endpoint_of(b);
    for (uint32_t batch = 0; batch < 3; batch++) {
        for (uint32_t i = 0; i < ALB_COUNT(classes); i++) {
            add_burst(a, &peer, (uint32_t)b->port.slot << 16 | 0x100, 1 + i % 2, 8, 8);
            a->sender->tx.bursts[a->sender->tx.burst_count - 1].traffic_class = classes[i];
        }
        send_batch(a, 1);
    }
    receive_all(b);
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
    alb_edge__every_datagram_has_its_traffic_class("127.94.0.1", "127.94.0.2");
}

static void alb_edge__traffic_class_ipv6(void **state)
{
    if (!has_ipv6())
        skip();
    alb_edge__every_datagram_has_its_traffic_class("::1", "::1");
}

// Sends a burst by each path from 0 to 5, where there are 4.
static void send_by_six_paths(struct end *a, struct end *b)
{
    struct alb_endpoint peer = endpoint_of(b);
    for (uint16_t path = 0; path < 6; path++) {
        add_burst(a, &peer, (uint32_t)b->port.slot << 16 | 0x100, a->sender->has_faults ? 1 : 3, 1000, 1000);
        a->sender->tx.bursts[a->sender->tx.burst_count - 1].path = path;
    }
    send_batch(a, 1);
    alb_sender_send_due(a->sender, ALB_NS_PER_MS);
    receive_all(b);
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
        assert_int_equal(ports[0], endpoint_of(a).port);
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
    paths_have_ports("127.94.0.22", "127.94.0.23", NULL);
    if (has_ipv6())
        paths_have_ports("::1", "::1", NULL);
}

static void alb_edge__paths_with_faults(void **state)
{
    struct alb_faults_spec faults;
    char why[ALB_FAULTS_ERROR_MAX];
    assert_true(alb_faults_parse("delay=1us..1us", &faults, why, sizeof(why)));
    paths_have_ports("127.94.0.22", "127.94.0.23", &faults);
}

static void alb_edge__hop_limit_ipv4(void **state)
{
    alb_edge__every_datagram_has_its_hop_limit("127.94.0.1", "127.94.0.2");
}

static void alb_edge__hop_limit_ipv6(void **state)
{
    if (!has_ipv6())
        skip();
    alb_edge__every_datagram_has_its_hop_limit("::1", "::1");
}

static void alb_edge__ipv6(void **state)
{
    if (!has_ipv6())
        skip();
    alb_edge__bursts_arrive_in_order("::1", "::1");
}

static void alb_edge__without_gso(void **state)
{
    struct end *a = end_open("127.94.0.3"), *b = end_open("127.94.0.4");
    struct alb_endpoint peer = endpoint_of(b);
    a->port.own[0].gso_works = false;
    add_burst(a, &peer, 0x100, 15, 1024, 100);
    send_batch(a, 1);
    assert_int_equal(receive_all(b), 15);
    assert_int_equal(b->count, 15);
    end_close(a);
    end_close(b);
}

// The kernel takes no burst of more than 128 segments: it must go out one by one, sealed for that.
static void alb_edge__burst_that_the_kernel_refuses(void **state)
{
    struct end *a = end_open("127.94.0.5"), *b = end_open("127.94.0.6");
    struct alb_endpoint peer = endpoint_of(b);
    add_burst(a, &peer, 0x100, 150, 64, 64);
    send_batch(a, 1);
    receive_all(b);
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
    add_burst(a, &nobody, 0x100, 2, 64, 64);
    add_burst(a, &elsewhere, 0x100, 2, 64, 64);
    add_burst(a, &nobody, 0x100, 1, 64, 64);
    a->sender->tx.bursts[2].local.addr = nobody.addr; // no socket of ours
    send_batch(a, 1);
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
    struct alb_endpoint peer = endpoint_of(b);
    uint8_t bytes[64];
    srand(5);
    for (int i = 0; i < 200; i++) {
        for (size_t k = 0; k < sizeof(bytes); k++)
            bytes[k] = (uint8_t)rand();
        bytes[5] = 0; // of the receiver's slot, or the relay would have it
        bytes[6] = 1;
        send_raw(a, &peer, bytes, (size_t)(rand() % 65));
    }
    receive_all(b);
    assert_int_equal(b->count, 0);
    assert_int_equal(b->dropped[ALB_DROP_TRUNCATED] + b->dropped[ALB_DROP_BAD_ICRC], 200);
    assert_true(b->dropped[ALB_DROP_TRUNCATED] > 0);
    end_close(a);
    end_close(b);
}

// ---- the relay ---------------------------------------------------------------------------------------------------

// A foreign peer's burst to port 4791 for a queue pair of slot 3 ends up there, as if it had come directly.
static void alb_edge__relay_to_another_slot(void **state)
{
    struct end *foreign = end_open("127.94.0.10"), *owner = end_open("127.94.0.11");
    struct end *third = end_open_at("127.94.0.11", 2, NULL);
    assert_int_equal(third->port.slot, 3);
    struct alb_endpoint front = endpoint_of(owner), source = endpoint_of(foreign);
    add_burst(foreign, &front, 0x030100, 15, 4096, 8);
    add_burst(foreign, &front, 0x000100, 1, 8, 8); // for the owner itself
    add_burst(foreign, &front, 0x050100, 1, 8, 8); // for a slot that nobody has
    add_burst(foreign, &front, 0x000001, 1, 8, 8); // connection management
    send_batch(foreign, 1);
    receive_all(owner);
    assert_int_equal(owner->count, 2);
    assert_int_equal(owner->stats.counter[ALB_EDGE_relay_out], 16);
    assert_int_equal(receive_all(third), 1);
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

static void alb_edge__only_the_front_may_relay(void **state)
{
    struct end *owner = end_open("127.94.0.12"), *third = end_open_at("127.94.0.12", 2, NULL);
    struct end *other_slot = end_open("127.94.0.12"), *other_host = end_open("127.94.0.13");
    struct alb_endpoint target = endpoint_of(third);
    assert_int_equal(other_slot->port.slot, 1);
    struct alb_envelope envelope = {.peer = endpoint_of(other_host), .segment_bytes = 24};
    uint8_t bytes[ALB_ENVELOPE_BYTES + 24] = {0};
    alb_envelope_encode(&envelope, bytes);
    send_raw(other_slot, &target, bytes, sizeof(bytes)); // from another port of the address
    send_raw(other_host, &target, bytes, sizeof(bytes)); // from port 4791 of another address
    receive_all(third);
    assert_int_equal(third->dropped[ALB_DROP_NOT_ROCE], 2);
    send_raw(owner, &target, bytes, sizeof(bytes)); // believed, but its inside is as hostile as ever
    receive_all(third);
    assert_int_equal(third->dropped[ALB_DROP_NOT_ROCE], 2);
    assert_int_equal(third->dropped[ALB_DROP_BAD_ICRC], 1);
    alb_envelope_encode(&envelope, bytes + ALB_ENVELOPE_BYTES - 8); // an envelope in an envelope
    memcpy(bytes + ALB_ENVELOPE_BYTES, bytes, 24);
    send_raw(owner, &target, bytes, sizeof(bytes));
    struct alb_endpoint front = endpoint_of(owner);
    send_raw(third, &front, bytes, sizeof(bytes)); // to the front itself
    receive_all(third);
    receive_all(owner);
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
    struct alb_endpoint front = endpoint_of(owner);
    assert_false(alb_port_take_front(&second->port));
    assert_true(alb_port_is_front(&owner->port));
    assert_false(alb_port_take_front(&owner->port)); // has it already
    end_close(owner);
    assert_true(alb_port_take_front(&second->port));
    assert_true(alb_port_is_front(&second->port));
    assert_int_equal(second->port.slot, 1);
    assert_false(alb_port_take_front(&third->port));
    add_burst(foreign, &front, 0x020100, 3, 100, 100); // third's
    add_burst(foreign, &front, 0x010100, 1, 100, 100); // second's own
    add_burst(foreign, &front, 0x000100, 1, 100, 100); // of the one that is gone
    send_batch(foreign, 1);
    receive_all(second);
    receive_all(third);
    assert_int_equal(second->count, 1);
    assert_int_equal(third->count, 3);
    assert_int_equal(second->dropped[ALB_DROP_UNKNOWN_QP], 1);
    end_close(foreign);
    end_close(second);
    end_close(third);
}

// ---- faults ------------------------------------------------------------------------------------------------------

// Sends datagrams over a faulty edge and returns a hash of what arrived in which order.
static uint64_t faulty_run(const char *text, uint32_t datagrams, struct alb_edge_stats *stats, uint64_t *bad)
{
    struct alb_faults_spec spec;
    char error[ALB_FAULTS_ERROR_MAX];
    assert_true(alb_faults_parse(text, &spec, error, sizeof(error)));
    struct end *a = end_open_at("127.94.0.16", 0, &spec), *b = end_open("127.94.0.17");
    struct alb_endpoint peer = endpoint_of(b);
    uint64_t hash = 14695981039346656037u, uncovered = 0;
    alb_time now = 1000;
    for (uint32_t i = 0; i < datagrams; i++, now += 10 * ALB_NS_PER_US) {
        add_burst(a, &peer, 0x100, 1, 64, 64);
        put_headers(a->sender->tx.iov[0].iov_base, 0x100, i);
        send_batch(a, now);
        alb_sender_send_due(a->sender, now);
        receive_all(b);
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
    receive_all(b);
    assert_int_equal(alb_sender_deadline(a->sender), ALB_TIME_NEVER); // nothing is left in the line
    *stats = a->stats;
    // A datagram whose slot was hit by the corruption looks like one for the relay.
    *bad = uncovered + b->dropped[ALB_DROP_BAD_ICRC] + b->stats.counter[ALB_EDGE_relay_out];
    stats->counter[ALB_EDGE_rx_datagrams] =
        b->stats.counter[ALB_EDGE_rx_datagrams] + b->stats.counter[ALB_EDGE_relay_out];
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

// ---- captures ----------------------------------------------------------------------------------------------------

static void alb_edge__captures_both_ways(void **state)
{
    struct end *a = end_open("127.94.0.18"), *b = end_open("127.94.0.19");
    struct alb_endpoint peer = endpoint_of(b), source = endpoint_of(a);
    struct alb_capture captures[2];
    char paths[2][64];
    for (int i = 0; i < 2; i++) {
        snprintf(paths[i], sizeof(paths[i]), "/tmp/albedo-edge-%d-%d.pcap", (int)getpid(), i);
        assert_int_equal(alb_capture_open(&captures[i], paths[i]), 0);
    }
    a->sender->capture = &captures[0];
    b->rx->capture = &captures[1];
    add_burst(a, &peer, 0x100, 10, 1024, 100);
    add_burst(a, &peer, 0x100, 1, 8, 8);
    send_batch(a, 1);
    receive_all(b);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alb_edge__ipv4),
        cmocka_unit_test(alb_edge__ipv6),
        cmocka_unit_test(alb_edge__hop_limit_ipv4),
        cmocka_unit_test(alb_edge__hop_limit_ipv6),
        cmocka_unit_test(alb_edge__traffic_class_ipv4),
        cmocka_unit_test(alb_edge__traffic_class_ipv6),
        cmocka_unit_test(alb_edge__paths_have_ports),
        cmocka_unit_test(alb_edge__paths_with_faults),
        cmocka_unit_test(alb_edge__without_gso),
        cmocka_unit_test(alb_edge__burst_that_the_kernel_refuses),
        cmocka_unit_test(alb_edge__what_cannot_be_sent_is_counted),
        cmocka_unit_test(alb_edge__corruption_is_dropped),
        cmocka_unit_test(alb_edge__relay_to_another_slot),
        cmocka_unit_test(alb_edge__only_the_front_may_relay),
        cmocka_unit_test(alb_edge__takeover_of_the_front),
        cmocka_unit_test(alb_edge__faults_are_counted_and_reproducible),
        cmocka_unit_test(alb_edge__no_faults_no_copies),
        cmocka_unit_test(alb_edge__captures_both_ways),
    };
    return cmocka_run_group_tests_name("edge", tests, NULL, NULL);
}
