// SPDX-License-Identifier: BSD-2-Clause
// Local addresses and what their interfaces carry.
#include "device/address.h"

#include "base/tests/test.h"
#include "device/device.h"
#include "device/tests/cancelled.h"
#include "device/tests/network_namespace.h"

#include <errno.h>
#include <net/if.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static struct alb_addr address(const char *text)
{
    struct alb_addr addr;
    assert_true(alb_addr_parse(text, &addr));
    return addr;
}

static void alb_address_find__loopback(void **state)
{
    struct alb_addr addr = address("127.0.0.1");
    struct alb_address_info info;
    assert_int_equal(alb_address_find(&addr, &info), 0);
    assert_int_equal(info.ifindex, if_nametoindex("lo"));
    assert_true(info.mtu_bytes >= 1280);
    uint32_t ifindex = info.ifindex;

    addr = address("127.3.4.5"); // all of 127/8 is local
    assert_int_equal(alb_address_find(&addr, &info), 0);
    assert_int_equal(info.ifindex, ifindex);
    assert_true(alb_addr_equals(&info.addr, &addr));

    addr = address("203.0.113.77");
    assert_int_equal(alb_address_find(&addr, &info), EADDRNOTAVAIL);
}

// A process without descriptors left is not told that 127.0.0.1 is not there.
static void alb_address_find__without_descriptors(void **state)
{
    char reason[ALB_ADDRESS_REASON_MAX], error[ALB_DEVICE_ERROR_MAX];
    struct alb_addr addr = address("127.0.0.1"), addresses[4];
    struct alb_address_info info;
    uint32_t count;
    struct rlimit before, none;
    static struct alb_device_options options;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = (struct rlimit){.rlim_cur = 0, .rlim_max = before.rlim_max};
    setenv("ALBEDO_NET", "lo", 1);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    int find_error = alb_address_find(&addr, &info);
    int interface_error = alb_address_of_interface("lo", addresses, 4, &count);
    int options_error = alb_device_options_from_environment(&options, error, sizeof(error));
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    unsetenv("ALBEDO_NET");
    assert_int_equal(find_error, EMFILE);
    assert_int_equal(interface_error, EMFILE);
    assert_int_equal(options_error, EMFILE);
    alb_address_explain(EMFILE, reason, sizeof(reason));
    assert_string_equal(error, reason);
}

static void alb_address_explain__says_what_helps(void **state)
{
    char reason[ALB_ADDRESS_REASON_MAX];
    static const int shortages[] = {EMFILE, ENFILE, ENOMEM, ENOBUFS};
    for (size_t i = 0; i < ALB_COUNT(shortages); i++) {
        alb_address_explain(shortages[i], reason, sizeof(reason));
        assert_non_null(strstr(reason, strerror(shortages[i])));
        assert_null(strstr(reason, "sandbox"));
    }
    alb_address_explain(EAFNOSUPPORT, reason, sizeof(reason));
    assert_non_null(strstr(reason, "sandbox"));
}

static void alb_address_is_local__rules(void **state)
{
    static const struct {
        const char *text;
        bool local;
    } cases[] = {
        {"127.0.0.1", true}, {"127.255.0.9", true}, {"::1", true}, {"203.0.113.77", false}, {"fd99::77", false}};
    for (size_t i = 0; i < ALB_COUNT(cases); i++) {
        struct alb_addr addr = address(cases[i].text);
        assert_int_equal(alb_address_is_local(&addr), cases[i].local);
    }
}

static void alb_address_is_loopback__rules(void **state)
{
    struct alb_addr addr = address("127.9.9.9");
    assert_true(alb_address_is_loopback(&addr));
    addr = address("::1");
    assert_true(alb_address_is_loopback(&addr));
    addr = address("::7f00:1"); // 127.0.0.1 in the last four bytes, but not mapped
    assert_false(alb_address_is_loopback(&addr));
    addr = address("128.0.0.1");
    assert_false(alb_address_is_loopback(&addr));
}

static void alb_address_of_interface__lo(void **state)
{
    struct alb_addr addresses[4], loopback = address("127.0.0.1");
    uint32_t count;
    assert_int_equal(alb_address_of_interface("lo", addresses, 4, &count), 0);
    assert_true(count >= 1);
    assert_true(alb_addr_equals(&addresses[0], &loopback));
    assert_int_equal(alb_address_of_interface("no-such-if", addresses, 4, &count), 0);
    assert_int_equal(count, 0);
    addresses[0] = address("1.2.3.4");
    struct alb_addr before = addresses[0];
    assert_int_equal(alb_address_of_interface("lo", addresses, 0, &count), 0);
    assert_true(count >= 1);
    assert_true(alb_addr_equals(&addresses[0], &before));
}

static void alb_address_roce_mtu__fits(void **state)
{
    struct alb_addr ipv4 = address("10.0.0.1"), ipv6 = address("fd99::1");
    assert_int_equal(alb_address_roce_mtu(&ipv4, 65536), 4096);
    assert_int_equal(alb_address_roce_mtu(&ipv4, 9000), 4096);
    assert_int_equal(alb_address_roce_mtu(&ipv4, 1500), 1024);
    assert_int_equal(alb_address_roce_mtu(&ipv6, 1500), 1024);
    assert_int_equal(alb_address_roce_mtu(&ipv4, 4096 + 64), 4096);
    assert_int_equal(alb_address_roce_mtu(&ipv4, 4096 + 63), 2048);
    assert_int_equal(alb_address_roce_mtu(&ipv6, 4096 + 84), 4096);
    assert_int_equal(alb_address_roce_mtu(&ipv6, 4096 + 83), 2048);
    assert_int_equal(alb_address_roce_mtu(&ipv4, 319), 0);
    assert_int_equal(alb_address_roce_mtu(&ipv4, 0), 0);
}

static void look_up(void *found)
{
    struct alb_addr foreign = address("203.0.113.77");
    *(bool *)found = alb_address_is_local(&foreign);
}

// The first caller reads the list under a lock that all others wait for.
static void alb_address_is_local__in_a_cancelled_thread(void **state)
{
    bool found = true;
    cancelled_call(look_up, &found);
    assert_false(found);
    look_up(&found);
    assert_false(found);
}

static _Atomic bool stops;

static void *ask_on(void *unused)
{
    struct alb_addr foreign = address("203.0.113.77");
    while (!stops)
        alb_address_is_local(&foreign);
    return NULL;
}

// The list's mutex may be held by a thread that a child has not.
static void alb_address_is_local__in_a_forked_child(void **state)
{
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
    skip(); // the one cannot follow such a child, the other's allocator is not guarded at a fork
#endif
    enum { CHILDREN = 50, HUNG_S = 10 };
    struct alb_addr foreign = address("203.0.113.77");
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, ask_on, NULL), 0);
    for (int i = 0; i < CHILDREN; i++) {
        int status;
        pid_t child = fork();
        if (child == 0) {
            alarm(HUNG_S);
            _exit(alb_address_is_local(&foreign));
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
    }
    stops = true;
    pthread_join(thread, NULL);
}

static bool lo_goes_up_and_down(void)
{
    const struct alb_addr both[] = {address("203.0.113.77"), address("127.0.0.9")};
    bool before, up, foreign, after;
    int error = alb_address_any_is_up(both, 2, &before);
    network_namespace_set_link("lo", true);
    error |= alb_address_any_is_up(both, 2, &up) | alb_address_any_is_up(both, 1, &foreign);
    network_namespace_set_link("lo", false);
    error |= alb_address_any_is_up(both, 2, &after);
    return !error && !before && up && !foreign && !after;
}

static void alb_address_any_is_up__follows_the_interface(void **state)
{
    (void)state;
    assert_true(network_namespace_run(lo_goes_up_and_down));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alb_address_is_local__in_a_cancelled_thread), // first: nothing is known yet
        cmocka_unit_test(alb_address_find__loopback),
        cmocka_unit_test(alb_address_find__without_descriptors),
        cmocka_unit_test(alb_address_explain__says_what_helps),
        cmocka_unit_test(alb_address_any_is_up__follows_the_interface),
        cmocka_unit_test(alb_address_is_local__rules),
        cmocka_unit_test(alb_address_is_local__in_a_forked_child),
        cmocka_unit_test(alb_address_is_loopback__rules),
        cmocka_unit_test(alb_address_of_interface__lo),
        cmocka_unit_test(alb_address_roce_mtu__fits),
    };
    return cmocka_run_group_tests_name("address", tests, NULL, NULL);
}
