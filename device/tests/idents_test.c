// SPDX-License-Identifier: BSD-2-Clause
// The table of peers' identification habits: kept apart, bounded, and entered by good packets only.
#include "device/idents.h"

#include "base/tests/test.h"

#include <stdlib.h>
#include <string.h>

static struct alb_idents *create(void)
{
    static const struct alb_siphash_key key = {{3, 4}};
    size_t bytes = (alb_idents_bytes() + 63) & ~(size_t)63;
    return alb_idents_init(memset(aligned_alloc(64, bytes), 0, bytes), &key);
}

// A packet of peer number n with a good ICRC for that identification.
static struct alb_datagram packet(uint32_t n, uint16_t identification, uint8_t bytes[32])
{
    struct alb_datagram datagram = {
        .peer = {.addr = alb_addr_from_ipv4((const uint8_t[]){10, (uint8_t)(n >> 16), (uint8_t)(n >> 8), (uint8_t)n}),
                 .port = 5000},
        .local = {.addr = alb_addr_from_ipv4((const uint8_t[]){10, 255, 0, 1}), .port = 4791},
        .bytes = bytes,
        .length = 32,
    };
    struct alb_icrc_prefix prefix;
    const struct iovec iov = {bytes, 28};
    memset(bytes, 0x11, 32);
    alb_icrc_prefix_init(&prefix, &datagram.peer, &datagram.local);
    uint32_t icrc = alb_icrc_compute(&prefix, identification, &iov, 28);
    memcpy(bytes + 28, &icrc, 4);
    return datagram;
}

static bool check(struct alb_idents *idents, uint32_t n, uint16_t identification, alb_time now)
{
    uint8_t bytes[32];
    uint16_t found = 0;
    struct alb_datagram datagram = packet(n, identification, bytes);
    bool is_good = alb_idents_check(idents, &datagram, &found, now);
    if (is_good)
        assert_int_equal(found, identification);
    return is_good;
}

static void alb_idents_check__peers_are_apart(void **state)
{
    struct alb_idents *idents = create();
    for (uint16_t i = 0; i < 20; i++) { // peer 1 numbers by place, peer 2 counts
        assert_true(check(idents, 1, i % 4, 1000));
        assert_true(check(idents, 2, (uint16_t)(40000 + i), 1000));
    }
    assert_false(check(idents, 1, 40020, 1000)); // what peer 2 may do peer 1 may not
    assert_true(check(idents, 2, 40020, 1000));
    assert_int_equal(alb_map_count(&idents->map), 2);
    free(idents);
}

static void alb_idents_check__bad_packets_enter_nobody(void **state)
{
    struct alb_idents *idents = create();
    uint16_t identification = 0;
    uint8_t bytes[32];
    for (uint32_t n = 0; n < 100; n++) {
        struct alb_datagram datagram = packet(n, 0, bytes);
        datagram.length = n % 16; // too short to be anything
        assert_false(alb_idents_check(idents, &datagram, &identification, 1000));
    }
    assert_int_equal(alb_map_count(&idents->map), 0);
    free(idents);
}

static void alb_idents_check__more_peers_than_fit(void **state)
{
    struct alb_idents *idents = create();
    for (uint32_t n = 0; n < 3 * ALB_IDENTS_MAX; n++)
        assert_true(check(idents, n, 5, (n + 1) * ALB_NS_PER_MS));
    assert_int_equal(alb_map_count(&idents->map), ALB_IDENTS_MAX);
    uint32_t young = 0; // the silent ones went first, by and large
    for (uint32_t i = 0; i < ALB_IDENTS_MAX; i++)
        young += idents->peers[i].heard_ms > 2 * ALB_IDENTS_MAX;
    assert_true(young > ALB_IDENTS_MAX / 2);
    free(idents);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alb_idents_check__peers_are_apart),
        cmocka_unit_test(alb_idents_check__bad_packets_enter_nobody),
        cmocka_unit_test(alb_idents_check__more_peers_than_fit),
    };
    return cmocka_run_group_tests_name("idents", tests, NULL, NULL);
}
