// SPDX-License-Identifier: BSD-2-Clause
// Carrying IPv6 multicast over the loopback interface: which datagrams, their header, and there and back.
#include "device/carrier.h"

#include "base/tests/test.h"
#include "wire/datagram.h"

#include <net/if.h>
#include <string.h>

static struct alb_addr addr_of(const char *text)
{
    struct alb_addr addr;
    assert_true(alb_addr_parse(text, &addr));
    return addr;
}

static struct alb_endpoint endpoint(const char *text, uint16_t port)
{
    return (struct alb_endpoint){addr_of(text), port};
}

static void alb_carrier_is_needed__ipv6_groups_from_loopback_only(void **state)
{
    static const struct {
        const char *local, *peer;
        bool is_needed;
    } cases[] = {
        {"::1", "ff0e::1", true},      {"::1", "ff01::1", true},          {"::1", "::1", false},
        {"fd00::1", "ff0e::1", false}, {"127.0.0.1", "239.0.0.1", false},
    };
    for (size_t i = 0; i < ALB_COUNT(cases); i++) {
        const struct alb_addr local = addr_of(cases[i].local), peer = addr_of(cases[i].peer);
        assert_int_equal(alb_carrier_is_needed(&local, &peer), cases[i].is_needed);
    }
}

static void alb_carrier_decode__round_trip(void **state)
{
    const struct alb_carried before = {addr_of("ff0e::1234"), 4793, 0x48, 7};
    const struct alb_endpoint peer = endpoint("127.0.0.1", 40000);
    uint8_t bytes[ALB_CARRIER_HEADER_BYTES + 1] = {0};
    struct alb_carried after;
    alb_carrier_encode(&before, bytes);
    assert_true(alb_carrier_decode(&peer, &before.group, bytes, sizeof(bytes), &after));
    assert_true(alb_addr_equals(&after.group, &before.group));
    assert_int_equal(after.source_port, 4793);
    assert_int_equal(after.traffic_class, 0x48);
    assert_int_equal(after.hop_limit, 7);
}

static void alb_carrier_decode__hostile(void **state)
{
    const struct alb_carried good = {addr_of("ff0e::1234"), 4793, 0, 1};
    const struct alb_addr other_group = addr_of("ff0e::1:1234");
    const struct alb_endpoint peer = endpoint("127.0.0.1", 40000);
    uint8_t bytes[ALB_CARRIER_HEADER_BYTES + 1] = {0};
    struct alb_carried out;
    alb_carrier_encode(&good, bytes);
    static const char *const strangers[] = {"10.0.0.1", "::1", "fd00::1"};
    for (size_t i = 0; i < ALB_COUNT(strangers); i++) {
        const struct alb_endpoint stranger = endpoint(strangers[i], 40000);
        assert_false(alb_carrier_decode(&stranger, &good.group, bytes, sizeof(bytes), &out));
    }
    assert_false(alb_carrier_decode(&peer, &other_group, bytes, sizeof(bytes), &out)); // it shares the carrier
    for (uint32_t length = 0; length <= ALB_CARRIER_HEADER_BYTES; length++)
        assert_false(alb_carrier_decode(&peer, &good.group, bytes, length, &out));
    for (uint32_t i = 0; i < 5; i++) { // mark and version
        bytes[i] ^= 1;
        assert_false(alb_carrier_decode(&peer, &good.group, bytes, sizeof(bytes), &out));
        bytes[i] ^= 1;
    }
    assert_true(alb_carrier_decode(&peer, &good.group, bytes, sizeof(bytes), &out));
}

static void alb_carrier_send__arrives_where_the_group_is_heard(void **state)
{
    struct alb_socket from, members[2];
    const struct alb_carried carried = {addr_of("ff0e::93:1"), 4791, 0, 1};
    const struct iovec iov[] = {{(void *)(uintptr_t) "abc", 3}, {(void *)(uintptr_t) "defgh", 5}};
    uint32_t loopback = if_nametoindex("lo");
    assert_int_equal(alb_carrier_open(&from, loopback), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(alb_carrier_open_group(&members[i], &carried.group, loopback), 0);
        assert_true(members[i].is_group && members[i].is_carrier);
        assert_true(alb_addr_equals(&members[i].local.addr, &carried.group));
        assert_int_equal(members[i].local.port, ALB_ROCE_PORT);
    }
    assert_int_equal(alb_carrier_send(&from, &carried, iov, 2), 0);
    for (int i = 0; i < 2; i++) {
        uint8_t bytes[64];
        union alb_sockaddr name;
        socklen_t length = sizeof(name);
        struct alb_endpoint peer;
        struct alb_carried out;
        ssize_t got = recvfrom(members[i].fd, bytes, sizeof(bytes), 0, &name.any, &length);
        assert_int_equal(got, ALB_CARRIER_HEADER_BYTES + 8);
        assert_true(alb_sockaddr_decode(&name, &peer));
        assert_true(alb_carrier_decode(&peer, &carried.group, bytes, (uint32_t)got, &out));
        assert_memory_equal(bytes + ALB_CARRIER_HEADER_BYTES, "abcdefgh", 8);
        alb_socket_close(&members[i]);
    }
    alb_socket_close(&from);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alb_carrier_is_needed__ipv6_groups_from_loopback_only),
        cmocka_unit_test(alb_carrier_decode__round_trip),
        cmocka_unit_test(alb_carrier_decode__hostile),
        cmocka_unit_test(alb_carrier_send__arrives_where_the_group_is_heard),
    };
    return cmocka_run_group_tests_name("carrier", tests, NULL, NULL);
}
