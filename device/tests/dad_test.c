// SPDX-License-Identifier: BSD-2-Clause
// Duplicate address detection, by the two ends of a pair of interfaces.
#include "device/dad.h"

#include "base/tests/test.h"
#include "device/clock.h"
#include "device/tests/network_namespace.h"

#include <stdlib.h>

#define PAIR  "ip link add ca type veth peer name cb && ip link set ca up && ip link set cb up"
#define AWAIT (10 * ALB_NS_PER_S)

static struct alb_addr address(const char *text)
{
    struct alb_addr addr;
    if (!alb_addr_parse(text, &addr))
        abort();
    return addr;
}

static enum alb_dad await(const char *text, alb_time span)
{
    struct alb_addr addr = address(text);
    return alb_dad_await(&addr, alb_clock_now() + span);
}

static bool new_address_is_under_way(void)
{
    network_namespace_shell(PAIR " && ip link set cb down"); // it does not begin before there is a link
    network_namespace_shell("ip address add 10.7.0.1/24 dev ca && ip address add fd01::1/64 dev ca");
    bool is_under_way = await("fd01::1", 0) == ALB_DAD_UNDER_WAY && await("10.7.0.1", 0) == ALB_DAD_OVER &&
                        await("fd01::2", 0) == ALB_DAD_OVER;
    network_namespace_shell("ip link set cb up");
    return is_under_way && await("fd01::1", AWAIT) == ALB_DAD_OVER;
}

static void alb_dad_await__until_it_is_over(void **state)
{
    assert_true(network_namespace_run(new_address_is_under_way));
}

#define UNTIL_FAILED "timeout 10 sh -c 'until ip address show dev cb dadfailed | grep -q fd01; do sleep 0.1; done'"

static bool second_one_fails(void)
{
    network_namespace_shell(PAIR " && ip address add fd01::1/64 dev ca nodad && ip address add fd01::1/64 dev cb");
    network_namespace_shell(UNTIL_FAILED);
    bool is_first_over = await("fd01::1", 0) == ALB_DAD_OVER;
    network_namespace_shell("ip address delete fd01::1/64 dev ca");
    return is_first_over && await("fd01::1", AWAIT) == ALB_DAD_FAILED;
}

static void alb_dad_await__failed(void **state)
{
    assert_true(network_namespace_run(second_one_fails));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alb_dad_await__until_it_is_over),
        cmocka_unit_test(alb_dad_await__failed),
    };
    return cmocka_run_group_tests_name("dad", tests, NULL, NULL);
}
