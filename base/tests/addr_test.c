// SPDX-License-Identifier: BSD-2-Clause
// Text forms of addresses, there and back.
#include "base/addr.h"
#include "base/tests/test.h"

static struct alb_addr parsed(const char *text)
{
    struct alb_addr addr;
    memset(&addr, 0xaa, sizeof(addr));
    assert_true(alb_addr_parse(text, &addr));
    return addr;
}

static void alb_addr_parse__ipv4_is_mapped(void **state)
{
    struct alb_addr addr = parsed("10.1.2.3");
    static const uint8_t expected[16] = {[10] = 0xff, [11] = 0xff, [12] = 10, [13] = 1, [14] = 2, [15] = 3};
    assert_memory_equal(addr.bytes, expected, sizeof(expected));
    assert_true(alb_addr_is_ipv4(&addr));

    struct alb_addr same = alb_addr_from_ipv4((const uint8_t[]){10, 1, 2, 3});
    assert_true(alb_addr_equals(&addr, &same));
    same = parsed("::ffff:10.1.2.3");
    assert_true(alb_addr_equals(&addr, &same));
    same = parsed("10.1.2.4");
    assert_false(alb_addr_equals(&addr, &same));
}

static void alb_addr_parse__ipv6(void **state)
{
    struct alb_addr addr = parsed("fd99::1");
    static const uint8_t expected[16] = {[0] = 0xfd, [1] = 0x99, [15] = 1};
    assert_memory_equal(addr.bytes, expected, sizeof(expected));
    assert_false(alb_addr_is_ipv4(&addr));
}

static void alb_addr_parse__refuses_and_leaves_alone(void **state)
{
    static const char *const wrong[] = {"",         "10.0.0",    "10.0.0.256",  "10.0.0.1 ",
                                        "fd99:::1", "localhost", "fe80::1%eth0"};
    struct alb_addr addr = parsed("1.2.3.4");
    const struct alb_addr before = addr;
    for (size_t i = 0; i < ALB_COUNT(wrong); i++) {
        assert_false(alb_addr_parse(wrong[i], &addr));
        assert_true(alb_addr_equals(&addr, &before));
    }
}

static void alb_addr_format__round_trip(void **state)
{
    static const char *const texts[] = {
        "0.0.0.0", "127.0.0.1", "255.255.255.255", "::", "::1", "fd99::1", "1234:5678:9abc:def0:1234:5678:9abc:def0",
    };
    for (size_t i = 0; i < ALB_COUNT(texts); i++) {
        struct alb_addr addr = parsed(texts[i]);
        char text[ALB_ADDR_TEXT_MAX];
        assert_ptr_equal(alb_addr_format(&addr, text), text);
        assert_string_equal(text, texts[i]);
    }
}

static void alb_endpoint_format__both_families(void **state)
{
    char text[ALB_ENDPOINT_TEXT_MAX];
    struct alb_endpoint endpoint = {.addr = parsed("10.0.0.1"), .port = 4791};
    assert_string_equal(alb_endpoint_format(&endpoint, text), "10.0.0.1:4791");
    endpoint.addr = parsed("fd99::1");
    assert_string_equal(alb_endpoint_format(&endpoint, text), "[fd99::1]:4791");
    memset(endpoint.addr.bytes, 0x88, 16);
    endpoint.port = 65535;
    assert_string_equal(alb_endpoint_format(&endpoint, text), "[8888:8888:8888:8888:8888:8888:8888:8888]:65535");
}

static void alb_endpoint_equals__port_and_address(void **state)
{
    struct alb_endpoint a = {.addr = parsed("10.0.0.1"), .port = 4791}, b = a;
    assert_true(alb_endpoint_equals(&a, &b));
    b.port++;
    assert_false(alb_endpoint_equals(&a, &b));
    b = a;
    b.addr.bytes[15]++;
    assert_false(alb_endpoint_equals(&a, &b));
}

static void alb_addr_is_multicast__both_families(void **state)
{
    static const struct {
        const char *text;
        bool is_multicast;
    } cases[] = {
        {"224.0.0.0", true},  {"239.255.255.255", true}, {"223.255.255.255", false},
        {"240.0.0.0", false}, {"0.0.0.0", false},        {"ff00::", true},
        {"ff0e::1", true},    {"fe80::1", false},        {"::e0:1", false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct alb_addr addr;
        assert_true(alb_addr_parse(cases[i].text, &addr));
        assert_int_equal(alb_addr_is_multicast(&addr), cases[i].is_multicast);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alb_addr_parse__ipv4_is_mapped),
        cmocka_unit_test(alb_addr_parse__ipv6),
        cmocka_unit_test(alb_addr_parse__refuses_and_leaves_alone),
        cmocka_unit_test(alb_addr_format__round_trip),
        cmocka_unit_test(alb_endpoint_format__both_families),
        cmocka_unit_test(alb_endpoint_equals__port_and_address),
        cmocka_unit_test(alb_addr_is_multicast__both_families),
    };
    return cmocka_run_group_tests_name("addr", tests, NULL, NULL);
}
