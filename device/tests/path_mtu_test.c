// SPDX-License-Identifier: BSD-2-Clause
// What routes say of path MTUs, and when they are asked.
#include "device/path_mtu.h"

#include "base/tests/test.h"
#include "device/socket.h"

#include <string.h>

static struct alb_addr address(const char *text)
{
    struct alb_addr addr;
    assert_true(alb_addr_parse(text, &addr));
    return addr;
}

static void path_payload_max__loopback(void **state)
{
    struct alb_addr local = address("127.0.0.1"), peer = address("127.9.9.9");
    assert_int_equal(alb_path_payload_max(&local, &peer), ALB_UDP_PAYLOAD_MAX);
    local = peer = address("::1");
    uint32_t payload_max = alb_path_payload_max(&local, &peer);
    assert_true(payload_max == 0 || payload_max == ALB_UDP_PAYLOAD_MAX); // 0: a host without IPv6
}

static void path_payload_max__no_route(void **state)
{
    struct alb_addr local = address("203.0.113.77"), peer = address("203.0.113.78"), loopback = address("127.0.0.1");
    assert_int_equal(alb_path_payload_max(&local, &peer), 0);
    assert_int_equal(alb_path_payload_max(&loopback, &peer) % 4, 0);
}

// ---- a network that says what the test wants ------------------------------------------------------------------------

static struct {
    uint32_t payload_max;
    uint32_t asked;
    uint32_t told, told_payload_max;
    struct alb_endpoint told_peer;
} network;

static uint32_t ask(const struct alb_addr *local, const struct alb_addr *peer)
{
    network.asked++;
    return network.payload_max;
}

static void tell(void *context, const struct alb_endpoint *peer, uint32_t payload_max, alb_time now)
{
    assert_ptr_equal(context, &network);
    network.told++;
    network.told_payload_max = payload_max;
    network.told_peer = *peer;
}

static struct alb_mtu_watch watch;
static struct alb_addr local;
static struct alb_endpoint peer;

static int setup(void **state)
{
    memset(&network, 0, sizeof(network));
    network.payload_max = 1472;
    watch = (struct alb_mtu_watch){.ask = ask, .tell = tell, .context = &network};
    local = address("203.0.113.1");
    peer = (struct alb_endpoint){.addr = address("203.0.113.2"), .port = 4791};
    return 0;
}

static void mtu_watch__seldom(void **state)
{
    const alb_time start = 1000;
    for (alb_time now = start; now < start + ALB_MTU_WATCH_AGE_NS; now += ALB_MTU_WATCH_AGE_NS / 10)
        alb_mtu_watch_sent(&watch, &local, &peer, now);
    assert_int_equal(network.asked, 0);
    alb_mtu_watch_sent(&watch, &local, &peer, start + ALB_MTU_WATCH_AGE_NS);
    alb_mtu_watch_sent(&watch, &local, &peer, start + ALB_MTU_WATCH_AGE_NS + 1);
    assert_int_equal(network.asked, 1);
    assert_int_equal(network.told, 1);
    assert_int_equal(network.told_payload_max, 1472);
    assert_true(alb_endpoint_equals(&network.told_peer, &peer));
    alb_mtu_watch_sent(&watch, &local, &peer, start + 2 * ALB_MTU_WATCH_AGE_NS);
    assert_int_equal(network.asked, 2);
    assert_int_equal(network.told, 1); // nothing new
    network.payload_max = 1372;
    alb_mtu_watch_sent(&watch, &local, &peer, start + 3 * ALB_MTU_WATCH_AGE_NS);
    assert_int_equal(network.told, 2);
    assert_int_equal(network.told_payload_max, 1372);
    network.payload_max = 0; // no route: that says nothing of its MTU
    alb_mtu_watch_sent(&watch, &local, &peer, start + 4 * ALB_MTU_WATCH_AGE_NS);
    assert_int_equal(network.told, 2);
}

static void mtu_watch__at_once_when_refused(void **state)
{
    network.payload_max = 1372;
    alb_mtu_watch_sent(&watch, &local, &peer, 1000);
    alb_mtu_watch_refused(&watch, &local, &peer, 1001);
    assert_int_equal(network.told, 1);
    assert_int_equal(network.told_payload_max, 1372);
    alb_mtu_watch_refused(&watch, &local, &peer, 1002);
    assert_int_equal(network.told, 2); // the engine has not understood yet
}

static void mtu_watch__not_on_this_host(void **state)
{
    local = peer.addr = address("127.0.0.1");
    for (alb_time now = 1000; now < 10 * ALB_MTU_WATCH_AGE_NS; now += ALB_MTU_WATCH_AGE_NS)
        alb_mtu_watch_sent(&watch, &local, &peer, now);
    assert_int_equal(network.asked, 0);
}

// More peers than there are places: each is looked at no more often, and those that stay are still looked at.
static void mtu_watch__many_peers(void **state)
{
    for (alb_time second = 0; second < 3; second++) {
        for (uint32_t i = 0; i < 10 * ALB_MTU_WATCH_PEERS; i++) {
            peer.port = (uint16_t)(4791 + i % 256);
            peer.addr.bytes[14] = (uint8_t)(i / 256);
            alb_mtu_watch_sent(&watch, &local, &peer, 1000 + second * ALB_MTU_WATCH_AGE_NS);
        }
    }
    assert_in_range(network.asked, 0, 2 * 10 * ALB_MTU_WATCH_PEERS);
    uint32_t before = network.asked;
    for (alb_time second = 10; second < 13; second++)
        alb_mtu_watch_sent(&watch, &local, &peer, 1000 + second * ALB_MTU_WATCH_AGE_NS);
    assert_in_range(network.asked - before, 2, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(path_payload_max__loopback),
        cmocka_unit_test(path_payload_max__no_route),
        cmocka_unit_test_setup(mtu_watch__seldom, setup),
        cmocka_unit_test_setup(mtu_watch__at_once_when_refused, setup),
        cmocka_unit_test_setup(mtu_watch__not_on_this_host, setup),
        cmocka_unit_test_setup(mtu_watch__many_peers, setup),
    };
    return cmocka_run_group_tests_name("path_mtu", tests, NULL, NULL);
}
