// SPDX-License-Identifier: BSD-2-Clause
// Sealing bursts and checking them as a receiver would, and that every covered field is covered.
#include "wire/icrc.h"
#include "wire/roce.h"

#include "base/tests/test.h"

#define SEGMENTS 64
#define ROOM     (64 + 4096 + 8)

// A burst of SEND segments whose payload stands in two pieces, as gathered from user memory.
struct fixture {
    struct alb_segment segments[SEGMENTS];
    struct iovec iov[4 * SEGMENTS];
    uint8_t bytes[SEGMENTS * 32];
    uint8_t payload[SEGMENTS * 4096];
    struct alb_burst burst;
    struct alb_tx tx;
    struct alb_endpoint source;
    struct alb_icrc_flow flow;
};

static struct fixture fixture;

static struct alb_endpoint endpoint(const char *text, uint16_t port)
{
    struct alb_endpoint result = {.port = port};
    assert_true(alb_addr_parse(text, &result.addr));
    return result;
}

static void add_segment(struct fixture *f, uint32_t place, uint32_t payload_bytes)
{
    uint8_t *header = f->bytes + 32 * place;
    uint8_t *payload = f->payload + 4096 * place;
    struct iovec *iov = &f->iov[4 * place];
    struct alb_roce roce = {.opcode = ALB_RC_SEND_ONLY_IMM,
                            .pad = alb_roce_pad(payload_bytes),
                            .dest_qpn = 0x123,
                            .psn = 77 + place,
                            .imm_be = place};
    uint32_t header_bytes = alb_roce_encode(&roce, header);
    for (uint32_t i = 0; i < payload_bytes; i++)
        payload[i] = (uint8_t)(i * 7 + place);
    iov[0] = (struct iovec){.iov_base = header, .iov_len = header_bytes};
    iov[1] = (struct iovec){.iov_base = payload, .iov_len = payload_bytes / 3};
    iov[2] = (struct iovec){.iov_base = payload + payload_bytes / 3, .iov_len = payload_bytes - payload_bytes / 3};
    iov[3] = (struct iovec){.iov_base = header + header_bytes, .iov_len = roce.pad + ALB_ICRC_BYTES};
    memset(iov[3].iov_base, 0, iov[3].iov_len);
    f->segments[place] = (struct alb_segment){
        .iov_first = 4 * place, .iov_count = 4, .length = header_bytes + payload_bytes + roce.pad + ALB_ICRC_BYTES};
}

static struct fixture *make_burst(const char *from, const char *to, uint32_t segments, uint32_t payload_bytes,
                                  uint32_t last_bytes)
{
    struct fixture *f = &fixture;
    *f = (struct fixture){.source = endpoint(from, 50000)};
    f->burst = (struct alb_burst){.peer = endpoint(to, ALB_ROCE_PORT), .segment_count = segments};
    f->tx = (struct alb_tx){.segments = f->segments, .iov = f->iov, .bytes = f->bytes};
    for (uint32_t place = 0; place < segments; place++)
        add_segment(f, place, place + 1 < segments ? payload_bytes : last_bytes);
    f->burst.segment_bytes = f->segments[0].length;
    return f;
}

// The datagram as it arrives: gathered, and seen from the other side.
static struct alb_datagram receive(const struct fixture *f, uint32_t place, uint8_t bytes[ROOM])
{
    const struct alb_segment *segment = &f->segments[place];
    struct alb_datagram datagram = {
        .peer = f->source, .local = f->burst.peer, .bytes = bytes, .length = segment->length};
    for (uint32_t i = 0; i < segment->iov_count; i++) {
        const struct iovec *iov = &f->iov[segment->iov_first + i];
        memcpy(bytes, iov->iov_base, iov->iov_len);
        bytes += iov->iov_len;
    }
    return datagram;
}

static const struct {
    const char *from, *to;
} families[] = {{"10.0.0.1", "10.0.0.2"}, {"fd99::1", "fd99::2"}};

static void icrc_seal__every_segment_checks_with_its_place_as_identification(void **state)
{
    for (unsigned i = 0; i < ALB_COUNT(families); i++) {
        struct fixture *f = make_burst(families[i].from, families[i].to, SEGMENTS, 1024, 333);
        struct alb_icrc_peer peer = {0};
        alb_icrc_seal(&f->flow, &f->tx, &f->burst, &f->source, ALB_ICRC_IDENT_PLACE);
        for (uint32_t packet = 0; packet < 2 * SEGMENTS; packet++) { // found at its place, and anywhere
            uint32_t place = packet % SEGMENTS;
            uint8_t bytes[ROOM];
            uint16_t identification = packet < SEGMENTS ? (uint16_t)place : 9999;
            struct alb_datagram datagram = receive(f, place, bytes);
            assert_true(alb_icrc_check(&f->flow, &datagram, &peer, &identification, place));
            assert_int_equal(identification, i == 0 ? place : 0);
        }
    }
}

static void icrc_seal__numbers_nothing_when_segments_travel_alone(void **state)
{
    struct fixture *f = make_burst("10.0.0.1", "10.0.0.2", SEGMENTS, 256, 256);
    struct alb_icrc_peer peer = {0};
    alb_icrc_seal(&f->flow, &f->tx, &f->burst, &f->source, ALB_ICRC_IDENT_ZERO);
    for (uint32_t place = 0; place < SEGMENTS; place++) {
        uint8_t bytes[ROOM];
        uint16_t identification = 9999;
        struct alb_datagram datagram = receive(f, place, bytes);
        assert_true(alb_icrc_check(&f->flow, &datagram, &peer, &identification, place));
        assert_int_equal(identification, 0);
    }
}

static void icrc__every_payload_length_checks(void **state)
{
    for (unsigned i = 0; i < ALB_COUNT(families); i++) {
        for (uint32_t length = 0; length <= 4096; length += length < 200 ? 1 : 61) {
            struct fixture *f = make_burst(families[i].from, families[i].to, 1, 0, length);
            struct alb_icrc_peer peer = {0};
            uint8_t bytes[ROOM];
            uint16_t identification = 0;
            alb_icrc_seal(&f->flow, &f->tx, &f->burst, &f->source, ALB_ICRC_IDENT_PLACE);
            struct alb_datagram datagram = receive(f, 0, bytes);
            assert_true(alb_icrc_check(&f->flow, &datagram, &peer, &identification, 0));
        }
    }
}

// Over IPv4 the 16 bits of the identification are solved for, wherever the packet ends.
static void icrc_check__finds_any_identification(void **state)
{
    struct fixture *f = make_burst("10.0.0.1", "10.0.0.2", 1, 0, 100);
    struct alb_icrc_prefix prefix;
    alb_icrc_prefix_init(&prefix, &f->source, &f->burst.peer);
    for (uint32_t identification = 0; identification <= UINT16_MAX; identification += 15) {
        uint8_t bytes[ROOM];
        uint16_t found = (uint16_t)(identification % 2 ? 0 : identification * 7); // where it is looked for first
        struct alb_icrc_peer peer = {0};
        struct alb_datagram datagram = receive(f, 0, bytes);
        uint32_t length = datagram.length - ALB_ICRC_BYTES;
        struct iovec iov = {.iov_base = bytes, .iov_len = length};
        uint32_t icrc = alb_icrc_compute(&prefix, (uint16_t)identification, &iov, length);
        for (unsigned i = 0; i < 4; i++)
            bytes[length + i] = (uint8_t)(icrc >> 8 * i);
        assert_true(alb_icrc_check(&f->flow, &datagram, &peer, &found, 0));
        assert_int_equal(found, identification);
    }
}

static void icrc_check__covers_addresses_ports_and_length(void **state)
{
    for (unsigned i = 0; i < ALB_COUNT(families); i++) {
        struct fixture *f = make_burst(families[i].from, families[i].to, 1, 0, 64);
        struct alb_icrc_peer peer = {0};
        uint8_t bytes[ROOM];
        uint16_t identification = 0;
        alb_icrc_seal(&f->flow, &f->tx, &f->burst, &f->source, ALB_ICRC_IDENT_PLACE);
        struct alb_datagram good = receive(f, 0, bytes);
        for (unsigned n = 0; n < 10; n++)
            assert_true(alb_icrc_check(&f->flow, &good, &peer, &identification, 0));

        struct alb_datagram bad[] = {good, good, good, good, good};
        bad[0].peer.port++;
        bad[1].local.port++;
        bad[2].peer.addr.bytes[15]++;
        bad[3].local.addr.bytes[15]++;
        bad[4].length -= 4;
        for (unsigned n = 0; n < ALB_COUNT(bad); n++) {
            struct alb_icrc_peer known = peer;
            assert_false(alb_icrc_check(&f->flow, &bad[n], &known, &identification, 0));
        }
        bytes[4] ^= 0xff; // congestion marks and reserved bits are not
        assert_true(alb_icrc_check(&f->flow, &good, &peer, &identification, 0));
    }
}

static void icrc_check__refuses_what_cannot_be_roce(void **state)
{
    struct alb_icrc_flow flow = {0};
    static uint8_t bytes[65536];
    struct alb_icrc_peer peer = {0};
    uint16_t identification = 0;
    struct alb_datagram datagram = {.peer = endpoint("10.0.0.1", 1), .local = endpoint("10.0.0.2", 2), .bytes = bytes};
    static const uint32_t lengths[] = {0, 1, 3, 4, 12, 15, 17, 4145, 4148, 65504};
    for (unsigned i = 0; i < ALB_COUNT(lengths); i++) {
        datagram.length = lengths[i];
        assert_false(alb_icrc_check(&flow, &datagram, &peer, &identification, 0));
    }
    // A mixture of families cannot come from a socket; it must do no harm either.
    datagram.length = 64;
    datagram.local = endpoint("fd99::1", 2);
    assert_false(alb_icrc_check(&flow, &datagram, &peer, &identification, 0));
}

// Random garbage passes as often as the header's comment says: from a known peer, never in as many tries as these.
static void icrc_check__random_corruption_is_refused(void **state)
{
    struct fixture *f = make_burst("10.0.0.1", "10.0.0.2", 1, 0, 64);
    struct alb_icrc_peer peer = {0};
    uint8_t bytes[ROOM];
    uint16_t identification = 0;
    uint32_t random = 3, first_contact = 0;
    alb_icrc_seal(&f->flow, &f->tx, &f->burst, &f->source, ALB_ICRC_IDENT_PLACE);
    struct alb_datagram datagram = receive(f, 0, bytes);
    for (unsigned n = 0; n < 10; n++)
        assert_true(alb_icrc_check(&f->flow, &datagram, &peer, &identification, 0));
    for (unsigned n = 0; n < 1000000; n++) {
        struct alb_icrc_peer known = peer, unknown = {0};
        random = random * 1664525 + 1013904223;
        uint32_t noise = random ^ random >> 16;
        memcpy(bytes + 40, &noise, 4);
        assert_false(alb_icrc_check(&f->flow, &datagram, &known, &identification, 0));
        first_contact += alb_icrc_check(&f->flow, &datagram, &unknown, &identification, 0);
    }
    assert_in_range(first_contact, 2, 60); // 15 expected
}

// With the identification as ones neither the place in a burst nor how it was cut matters.
static void icrc_check_ones__every_segment_checks(void **state)
{
    for (unsigned i = 0; i < ALB_COUNT(families); i++) {
        struct fixture *f = make_burst(families[i].from, families[i].to, SEGMENTS, 1024, 333);
        struct alb_icrc_prefix prefix;
        alb_icrc_prefix_init(&prefix, &f->source, &f->burst.peer);
        alb_icrc_seal(&f->flow, &f->tx, &f->burst, &f->source, ALB_ICRC_IDENT_ONES);
        for (uint32_t place = 0; place < SEGMENTS; place++) {
            uint8_t bytes[ROOM];
            struct alb_datagram datagram = receive(f, place, bytes);
            struct iovec iov = {.iov_base = bytes, .iov_len = datagram.length - ALB_ICRC_BYTES};
            uint32_t icrc = htole32(alb_icrc_compute(&prefix, 0xffff, &iov, datagram.length - ALB_ICRC_BYTES));
            assert_memory_equal(bytes + iov.iov_len, &icrc, ALB_ICRC_BYTES);
            assert_true(alb_icrc_check_ones(&f->flow, &datagram));
        }
    }
}

// The ICRC that every segment of the sealed burst must have, reckoned from nothing.
static void expect_sealed(const struct fixture *f, enum alb_icrc_ident ident)
{
    struct alb_icrc_prefix prefix;
    alb_icrc_prefix_init(&prefix, &f->source, &f->burst.peer);
    for (uint32_t place = 0; place < f->burst.segment_count; place++) {
        uint8_t bytes[ROOM];
        uint32_t covered = receive(f, place, bytes).length - ALB_ICRC_BYTES;
        struct iovec iov = {.iov_base = bytes, .iov_len = covered};
        uint32_t identification = ident == ALB_ICRC_IDENT_ONES ? UINT16_MAX : ident == ALB_ICRC_IDENT_PLACE ? place : 0;
        uint32_t icrc = htole32(alb_icrc_compute(&prefix, (uint16_t)identification, &iov, covered));
        assert_memory_equal(bytes + covered, &icrc, ALB_ICRC_BYTES);
    }
}

// A burst that is sealed into a copy is what it would have been gathered as, and nothing behind it is written.
static void icrc_seal_copy__is_the_sealed_burst_in_one_piece(void **state)
{
    static const uint32_t lengths[] = {0, 3, 60, 1024, 1396};
    for (unsigned n = 0; n < 2 * ALB_COUNT(lengths) * ALB_COUNT(lengths); n++) {
        const char *from = families[n % 2].from, *to = families[n % 2].to;
        uint32_t last = lengths[n / 2 % ALB_COUNT(lengths)], each = lengths[n / 2 / ALB_COUNT(lengths)];
        struct fixture *f = make_burst(from, to, SEGMENTS, each, ALB_MIN(last, each));
        static uint8_t copy[SEGMENTS * ROOM];
        uint8_t *at = copy;
        memset(copy, 0xa5, sizeof(copy));
        alb_icrc_seal_copy(&f->flow, &f->tx, &f->burst, &f->source, ALB_ICRC_IDENT_PLACE, copy);
        expect_sealed(f, ALB_ICRC_IDENT_PLACE);
        for (uint32_t place = 0; place < SEGMENTS; place++) {
            uint8_t bytes[ROOM];
            uint32_t length = receive(f, place, bytes).length;
            assert_memory_equal(at, bytes, length);
            at += length;
        }
        assert_int_equal(*at, 0xa5);
    }
}

// A flow remembers what the packet before had in common with this one: peer, length and kind of identification change
// one by one and together, and what was remembered must not show.
static void icrc_seal__a_flow_forgets_what_no_longer_holds(void **state)
{
    static const uint32_t lengths[] = {8, 1024, 8, 333};
    static const enum alb_icrc_ident idents[] = {ALB_ICRC_IDENT_ZERO, ALB_ICRC_IDENT_ONES, ALB_ICRC_IDENT_PLACE};
    struct alb_icrc_flow flow = {0};
    uint32_t random = 5;
    for (unsigned n = 0; n < 2000; n++) {
        random = random * 1664525 + 1013904223;
        unsigned family = random >> 16 & 1;
        enum alb_icrc_ident ident = idents[(random >> 20) % ALB_COUNT(idents)];
        struct fixture *f =
            make_burst(families[family].from, families[family].to, 3, lengths[random >> 30], lengths[random >> 28 & 3]);
        f->source.port += (uint16_t)(random >> 24 & 1);
        alb_icrc_seal(&flow, &f->tx, &f->burst, &f->source, ident);
        expect_sealed(f, ident);
    }
}

// The same for checking: an identification of zero is solved for, ones are compared.
static void icrc_check__a_flow_forgets_what_no_longer_holds(void **state)
{
    static const uint32_t lengths[] = {8, 1024, 8, 333};
    struct alb_icrc_flow flow = {0};
    uint32_t random = 7;
    for (unsigned n = 0; n < 2000; n++) {
        random = random * 1664525 + 1013904223;
        unsigned family = random >> 16 & 1;
        bool is_ones = random >> 20 & 1;
        struct fixture *f = make_burst(families[family].from, families[family].to, 1, 0, lengths[random >> 30]);
        struct alb_icrc_peer peer = {0};
        uint8_t bytes[ROOM];
        uint16_t identification = 0;
        alb_icrc_seal(&f->flow, &f->tx, &f->burst, &f->source, is_ones ? ALB_ICRC_IDENT_ONES : ALB_ICRC_IDENT_ZERO);
        struct alb_datagram datagram = receive(f, 0, bytes);
        bool damaged = random >> 25 & 1;
        bytes[ALB_BTH_BYTES + 1] ^= damaged;
        bool is_good = is_ones ? alb_icrc_check_ones(&flow, &datagram)
                               : alb_icrc_check(&flow, &datagram, &peer, &identification, n) && identification == 0;
        assert_int_equal(is_good, !damaged);
    }
}

// What one kind of device seals is not good for the other over IPv4, and over IPv6 there is no difference.
static void icrc_check_ones__refuses_other_identifications(void **state)
{
    static const enum alb_icrc_ident others[] = {ALB_ICRC_IDENT_ZERO, ALB_ICRC_IDENT_PLACE};
    for (unsigned i = 0; i < ALB_COUNT(families); i++) {
        for (unsigned n = 0; n < ALB_COUNT(others); n++) {
            struct fixture *f = make_burst(families[i].from, families[i].to, 1, 100, 100);
            uint8_t bytes[ROOM];
            alb_icrc_seal(&f->flow, &f->tx, &f->burst, &f->source, others[n]);
            struct alb_datagram datagram = receive(f, 0, bytes);
            assert_int_equal(alb_icrc_check_ones(&f->flow, &datagram), i == 1);
        }
    }
}

// Seals one datagram of any length as its sender would, up to the longest.
static struct alb_datagram large(uint8_t *bytes, uint32_t length, const char *from, const char *to)
{
    struct alb_datagram datagram = {
        .peer = endpoint(from, 1), .local = endpoint(to, 2), .bytes = bytes, .length = length};
    struct alb_segment segment = {.iov_count = 1, .length = length};
    struct iovec iov = {.iov_base = bytes, .iov_len = length};
    struct alb_tx tx = {.segments = &segment, .iov = &iov};
    struct alb_burst burst = {.peer = datagram.local, .segment_count = 1, .segment_bytes = length};
    struct alb_icrc_flow flow = {0};
    alb_icrc_seal(&flow, &tx, &burst, &datagram.peer, ALB_ICRC_IDENT_ONES);
    return datagram;
}

static void icrc_check_ones__takes_datagrams_up_to_the_largest(void **state)
{
    static uint8_t bytes[65536];
    struct alb_icrc_flow flow = {0};
    for (unsigned i = 0; i < ALB_COUNT(families); i++) {
        for (uint32_t length = 16; length <= ALB_ICRC_UDP_MAX; length += length < 300 ? 4 : 1024) {
            struct alb_datagram datagram = large(bytes, length, families[i].from, families[i].to);
            assert_true(alb_icrc_check_ones(&flow, &datagram));
        }
        struct alb_datagram datagram = large(bytes, 65504, families[i].from, families[i].to);
        assert_true(alb_icrc_check_ones(&flow, &datagram));
        bytes[40000] ^= 1;
        assert_false(alb_icrc_check_ones(&flow, &datagram));
        static const uint32_t bad[] = {0, 4, 8, 12, 15, 17, 65503, 65507, 65508, 65532};
        for (unsigned n = 0; n < ALB_COUNT(bad); n++) {
            datagram.length = bad[n];
            assert_false(alb_icrc_check_ones(&flow, &datagram));
        }
    }
}

// Every single bit but those of the BTH that routers may set.
static void icrc_check_ones__notices_every_bit(void **state)
{
    static uint8_t bytes[200];
    struct alb_icrc_flow flow = {0};
    struct alb_datagram datagram = large(bytes, sizeof(bytes), "10.0.0.1", "10.0.0.2");
    for (unsigned bit = 0; bit < 8 * sizeof(bytes); bit++) {
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_int_equal(alb_icrc_check_ones(&flow, &datagram), bit / 8 == 4);
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    assert_true(alb_icrc_check_ones(&flow, &datagram));
    datagram.peer.port++;
    assert_false(alb_icrc_check_ones(&flow, &datagram));
}

// All 32 bits check, from a stranger too: of a million random corruptions none passes.
static void icrc_check_ones__random_corruption_is_refused(void **state)
{
    static uint8_t bytes[64];
    struct alb_icrc_flow flow = {0};
    uint32_t random = 3;
    struct alb_datagram datagram = large(bytes, sizeof(bytes), "10.0.0.1", "10.0.0.2");
    for (unsigned n = 0; n < 1000000; n++) {
        random = random * 1664525 + 1013904223;
        memcpy(bytes + 40, &random, 4);
        bytes[44] = (uint8_t)(random >> 5 | 1); // never what it was
        assert_false(alb_icrc_check_ones(&flow, &datagram));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(icrc_seal__every_segment_checks_with_its_place_as_identification),
        cmocka_unit_test(icrc_seal_copy__is_the_sealed_burst_in_one_piece),
        cmocka_unit_test(icrc_seal__numbers_nothing_when_segments_travel_alone),
        cmocka_unit_test(icrc__every_payload_length_checks),
        cmocka_unit_test(icrc_check__finds_any_identification),
        cmocka_unit_test(icrc_check__covers_addresses_ports_and_length),
        cmocka_unit_test(icrc_check__refuses_what_cannot_be_roce),
        cmocka_unit_test(icrc_check__random_corruption_is_refused),
        cmocka_unit_test(icrc_check_ones__every_segment_checks),
        cmocka_unit_test(icrc_seal__a_flow_forgets_what_no_longer_holds),
        cmocka_unit_test(icrc_check__a_flow_forgets_what_no_longer_holds),
        cmocka_unit_test(icrc_check_ones__refuses_other_identifications),
        cmocka_unit_test(icrc_check_ones__takes_datagrams_up_to_the_largest),
        cmocka_unit_test(icrc_check_ones__notices_every_bit),
        cmocka_unit_test(icrc_check_ones__random_corruption_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
