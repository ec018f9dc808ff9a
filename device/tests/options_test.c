// SPDX-License-Identifier: BSD-2-Clause
// Device options from the environment: what is accepted, and what is said about what is not.
#include "device/device.h"

#include "base/tests/test.h"
#include "device/dad.h"
#include "device/tests/network_namespace.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>

static const char *const variables[] = {"ALBEDO_NET",        "ALBEDO_FAULTS", "ALBEDO_SEED",   "ALBEDO_PCAP",
                                        "ALBEDO_TRACE",      "ALBEDO_STATS",  "ALBEDO_PATHS",  "ALBEDO_LOSS",
                                        "ALBEDO_CONGESTION", "ALBEDO_PATH",   "ALBEDO_CREDIT", "ALBEDO_DIRECTORY"};
static struct alb_device_options options;
static char error[ALB_DEVICE_ERROR_MAX];

static int parse(const char *name, const char *value)
{
    for (size_t i = 0; i < ALB_COUNT(variables); i++)
        unsetenv(variables[i]);
    if (name)
        setenv(name, value, 1);
    error[0] = 0;
    return alb_device_options_from_environment(&options, error, sizeof(error));
}

static const char *address(uint32_t i)
{
    static char text[ALB_ADDR_TEXT_MAX];
    return alb_addr_format(&options.addresses[i], text);
}

static void options__loopback_by_default(void **state)
{
    assert_int_equal(parse(NULL, NULL), 0);
    assert_in_range(options.address_count, 1, 2);
    assert_string_equal(address(0), "127.0.0.1");
    if (options.address_count == 2)
        assert_string_equal(address(1), "::1");
    assert_true(alb_faults_spec_is_none(&options.faults));
    assert_string_equal(options.pcap_path, "");
    assert_string_equal(options.trace_path, "");
    assert_string_equal(options.stats_path, "");
    assert_int_equal(parse("ALBEDO_NET", ""), 0);
    assert_string_equal(address(0), "127.0.0.1");
}

// Else the device would do without that address for as long as it is open.
static void options__loopback_without_descriptors(void **state)
{
    struct rlimit before, none;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = (struct rlimit){.rlim_cur = 0, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    int result = parse(NULL, NULL);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(result, EMFILE);
    assert_non_null(strstr(error, strerror(EMFILE)));
}

static void options__addresses_in_order(void **state)
{
    assert_int_equal(parse("ALBEDO_NET", "10.0.0.2,fd99::1,10.0.0.1,10.0.0.2"), 0);
    assert_int_equal(options.address_count, 3); // each once
    assert_string_equal(address(0), "10.0.0.2");
    assert_string_equal(address(1), "fd99::1");
    assert_string_equal(address(2), "10.0.0.1");
}

static void options__interfaces(void **state)
{
    assert_int_equal(parse("ALBEDO_NET", "10.0.0.2,lo"), 0);
    assert_true(options.address_count >= 2);
    assert_string_equal(address(1), "127.0.0.1");
}

#define PAIR "ip link add ca type veth peer name cb && ip link set ca up && ip link set cb up && "

static bool takes_addresses_that_are_checked(void)
{
    network_namespace_shell(PAIR "ip address add 10.7.0.1/24 dev ca && ip address add fd01::1/64 dev ca");
    return parse("ALBEDO_NET", "ca") == 0 && options.address_count == 2 && strcmp(address(1), "fd01::1") == 0 &&
           alb_dad_await(&options.addresses[1], 0) == ALB_DAD_OVER && options.left_out[0] == 0;
}

// Bound while they are, they would be EADDRNOTAVAIL.
static void options__interfaces_whose_addresses_are_being_checked(void **state)
{
    assert_true(network_namespace_run(takes_addresses_that_are_checked));
}

static bool leaves_out_what_stays_unchecked(void)
{
    network_namespace_shell("ip link add ca type veth peer name cb && ip link set ca up && " // without its peer no link
                            "ip address add 10.7.0.1/24 dev ca && ip address add fd01::1/64 dev ca");
    bool is_taken = parse("ALBEDO_NET", "ca") == 0 && options.address_count == 1 &&
                    strstr(options.left_out, "fd01::1 is left out: it cannot be used yet") != NULL;
    network_namespace_shell("ip address delete 10.7.0.1/24 dev ca");
    return is_taken && parse("ALBEDO_NET", "ca") == EINVAL && strstr(error, "\"ca\": fd01::1 is left out") &&
           parse("ALBEDO_NET", "fd01::1") == EINVAL && strstr(error, "fd01::1 cannot be used yet");
}

static void options__interfaces_whose_addresses_stay_unchecked(void **state)
{
    assert_true(network_namespace_run(leaves_out_what_stays_unchecked));
}

static bool takes_the_first_of_many(void)
{
    network_namespace_shell("ip link set lo up && for i in $(seq 20); do ip address add 10.7.0.$i/32 dev lo; done");
    return parse("ALBEDO_NET", "lo") == 0 && options.address_count == ALB_DEVICE_ADDRESSES_MAX &&
           strstr(options.left_out, "lo has ") && strstr(options.left_out, "are left out");
}

static void options__an_interface_of_more_addresses_than_fit(void **state)
{
    assert_true(network_namespace_run(takes_the_first_of_many));
}

static bool refuses_ipv6;
int __real_socket(int family, int type, int protocol);
int __wrap_socket(int family, int type, int protocol);
int __wrap_socket(int family, int type, int protocol)
{
    if (!refuses_ipv6 || family != AF_INET6)
        return __real_socket(family, type, protocol);
    errno = EAFNOSUPPORT;
    return -1;
}

// A sandbox may have none, while lo has ::1 all the same.
static void options__loopback_without_ipv6_sockets(void **state)
{
    assert_int_equal(parse(NULL, NULL), 0);
    uint32_t count = options.address_count;
    refuses_ipv6 = true;
    int result = parse(NULL, NULL);
    refuses_ipv6 = false;
    assert_int_equal(result, 0);
    assert_int_equal(options.address_count, 1);
    assert_string_equal(address(0), "127.0.0.1");
    if (count == 2)
        assert_non_null(strstr(options.left_out, "::1 is left out"));
}

static void refuses(const char *name, const char *value, const char *hint)
{
    const struct alb_device_options before = options;
    assert_int_equal(parse(name, value), EINVAL);
    assert_non_null(strstr(error, name));
    assert_non_null(strstr(error, hint));
    assert_memory_equal(&before, &options, sizeof(options));
}

static void options__wrong_addresses(void **state)
{
    refuses("ALBEDO_NET", "no-such-interface", "\"no-such-interface\"");
    refuses("ALBEDO_NET", "10.0.0.300", "eth0");
    refuses("ALBEDO_NET", "0.0.0.0", "one by one");
    refuses("ALBEDO_NET", "::", "one by one");
    refuses("ALBEDO_NET", "fe80::1", "link-local");
    refuses("ALBEDO_NET", ",", "no address");
    char many[1200] = "10.0.0.1";
    for (int i = 2; i <= ALB_DEVICE_ADDRESSES_MAX + 1; i++)
        snprintf(many + strlen(many), sizeof(many) - strlen(many), ",10.0.0.%d", i);
    refuses("ALBEDO_NET", many, "more than");
    memset(many, '1', sizeof(many) - 1);
    many[sizeof(many) - 1] = 0;
    refuses("ALBEDO_NET", many, "longer");
}

static void options__faults_and_seed(void **state)
{
    assert_int_equal(parse("ALBEDO_FAULTS", "loss=1%"), 0);
    assert_int_equal(options.faults.loss, 10000000);
    assert_int_equal(options.fault_seed, 1); // as albedo-run(1) says
    assert_int_equal(parse("ALBEDO_SEED", "0x10"), 0);
    assert_int_equal(options.fault_seed, 16);
    refuses("ALBEDO_FAULTS", "loss", "loss");
    refuses("ALBEDO_SEED", "seven", "seven");
}

static void options__paths(void **state)
{
    assert_int_equal(parse("ALBEDO_PCAP", "/tmp/x-%p.pcap"), 0);
    assert_string_equal(options.pcap_path, "/tmp/x-%p.pcap");
    assert_int_equal(parse("ALBEDO_TRACE", "t"), 0);
    assert_string_equal(options.trace_path, "t");
    assert_int_equal(parse("ALBEDO_STATS", "s"), 0);
    assert_string_equal(options.stats_path, "s");
    static char longer[5000];
    memset(longer, 'x', sizeof(longer) - 1);
    refuses("ALBEDO_PCAP", longer, "longer");
}

static void options__one_file_for_two(void **state)
{
    parse("ALBEDO_PCAP", "/tmp/x-%p");
    setenv("ALBEDO_STATS", "/tmp/x-%p", 1);
    assert_int_equal(alb_device_options_from_environment(&options, error, sizeof(error)), EINVAL);
    assert_string_equal(error, "ALBEDO_STATS: \"/tmp/x-%p\" is the file of ALBEDO_PCAP, too");
    parse("ALBEDO_PCAP", "/dev/null");
    setenv("ALBEDO_STATS", "/dev/null", 1); // what is no file takes both
    assert_int_equal(alb_device_options_from_environment(&options, error, sizeof(error)), 0);
}

static void options__path_max(void **state)
{
    assert_int_equal(parse(NULL, NULL), 0);
    assert_int_equal(options.path_max, 0);
    assert_int_equal(parse("ALBEDO_PATHS", "128"), 0);
    assert_int_equal(options.path_max, 128);
    static const char *const wrong[] = {"0", "129", "-1", "many", "4 "};
    for (size_t i = 0; i < ALB_COUNT(wrong); i++) {
        assert_int_equal(parse("ALBEDO_PATHS", wrong[i]), EINVAL);
        assert_non_null(strstr(error, "ALBEDO_PATHS"));
    }
}

// Each path is a socket.
static void options__path_max_beyond_descriptors(void **state)
{
    struct rlimit before, few;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    few = (struct rlimit){.rlim_cur = 100, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    assert_int_equal(parse("ALBEDO_PATHS", "99"), 0);
    refuses("ALBEDO_PATHS", "100", "(ulimit -n)");
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

static void options__policies(void **state)
{
    assert_int_equal(parse("ALBEDO_LOSS", "irn"), 0);
    assert_string_equal(options.policies[ALB_POLICY_LOSS], "irn");
    assert_string_equal(options.policies[ALB_POLICY_CONGESTION], "");
    assert_int_equal(parse("ALBEDO_LOSS", "fixed:interval=200us"), 0);
    assert_string_equal(options.policies[ALB_POLICY_LOSS], "fixed:interval=200us");
    assert_int_equal(parse("ALBEDO_CONGESTION", "dcqcn"), 0);
    assert_string_equal(options.policies[ALB_POLICY_CONGESTION], "dcqcn");
    assert_int_equal(parse("ALBEDO_CONGESTION", "dcqcn:gain_log2=4,alpha=55us"), 0);
    assert_int_equal(parse("ALBEDO_PATH", "spray"), 0);
    assert_int_equal(parse("ALBEDO_CREDIT", "shortest:aging=64Gb/s,budget=1MiB"), 0);
    assert_int_equal(parse("ALBEDO_CREDIT", "off"), 0);
    assert_string_equal(options.policies[ALB_POLICY_CREDIT], "off");
    assert_int_equal(parse("ALBEDO_CREDIT", ""), 0);
    assert_string_equal(options.policies[ALB_POLICY_CREDIT], "");
}

static void options__policies_that_are_none(void **state)
{
    assert_int_equal(parse("ALBEDO_LOSS", "gone"), EINVAL);
    assert_string_equal(error, "ALBEDO_LOSS: \"gone\" is none of csa, go-back-n, irn, fixed, sleek");
    assert_int_equal(parse("ALBEDO_CONGESTION", "dcqc"), EINVAL);
    assert_non_null(strstr(error, "window, dcqcn, fixed, none"));
    assert_int_equal(parse("ALBEDO_PATH", "single path"), EINVAL);
    assert_int_equal(parse("ALBEDO_CREDIT", ":off"), EINVAL);
    assert_int_equal(parse("ALBEDO_LOSS", "irn:interval=1s"), EINVAL);
    assert_string_equal(
        error, "ALBEDO_LOSS: \"irn:interval=1s\": irn has low=1us..high (100us), "
               "high=low..10s (320us), few=0..1048576, threshold=1..1048576; each once, times and rates with a unit");
    assert_int_equal(parse("ALBEDO_CONGESTION", "dcqcn:gain_log2=17"), EINVAL);
    assert_non_null(strstr(error, "burst=0..50ms (100us); each once, times and rates with a unit"));
    assert_int_equal(parse("ALBEDO_PATH", "spray:many=yes"), EINVAL);
    assert_string_equal(error, "ALBEDO_PATH: \"spray:many=yes\": spray has no parameters that can be set");
    assert_int_equal(parse("ALBEDO_CREDIT", "end-to-end:aging=1Gb/s"), EINVAL);
    assert_string_equal(error, "ALBEDO_CREDIT: \"end-to-end:aging=1Gb/s\": end-to-end has "
                               "budget=0..1GiB (half of the socket's buffer), min=1..1GiB (4KiB), "
                               "interval=1us..4s (1ms); each once, times and rates with a unit");
    char endless[4096];
    memset(endless, 'x', sizeof(endless));
    memcpy(endless, "irn:", 4);
    endless[sizeof(endless) - 1] = 0;
    assert_int_equal(parse("ALBEDO_LOSS", endless), EINVAL);
    assert_string_equal(error, "ALBEDO_LOSS: longer than 255 bytes");
    endless[256] = 0;
    assert_int_equal(parse("ALBEDO_LOSS", endless), EINVAL);
    assert_string_equal(error, "ALBEDO_LOSS: longer than 255 bytes");
    endless[255] = 0;
    assert_int_equal(parse("ALBEDO_LOSS", endless), EINVAL);
    assert_null(strstr(error, "longer"));
}

// However long what is wrong, its message ends with what would be right.
static void options__errors_are_whole(void **state)
{
    static const char *const quoting[] = {"ALBEDO_NET",  "ALBEDO_FAULTS",     "ALBEDO_SEED", "ALBEDO_PATHS",
                                          "ALBEDO_LOSS", "ALBEDO_CONGESTION", "ALBEDO_PATH", "ALBEDO_CREDIT"};
    char value[5000];
    for (size_t i = 0; i < ALB_COUNT(quoting); i++) {
        for (size_t length = 1; length < sizeof(value); length += 1 + length / 4) {
            memset(value, 'x', length);
            value[length] = 0;
            assert_int_equal(parse(quoting[i], value), EINVAL);
            assert_in_range(strlen(error), 1, sizeof(error) - 2);
            assert_non_null(strstr(error, quoting[i]));
        }
    }
    memset(value, 'x', 800);
    value[800] = 0;
    assert_int_equal(parse("ALBEDO_NET", value), EINVAL);
    assert_non_null(strstr(error, "separated by commas"));
    struct alb_device_selection selection;
    value[200] = 0;
    setenv("ALBEDO_DEVICES", value, 1);
    assert_int_equal(alb_device_selection_from_environment(&selection, error, sizeof(error)), EINVAL);
    unsetenv("ALBEDO_DEVICES");
    assert_non_null(strstr(error, "there are roce0 and albedo0"));
}

// Processes in other folders would look for the device elsewhere.
static void options__a_host_directory_by_an_absolute_path(void **state)
{
    assert_int_equal(parse("ALBEDO_DIRECTORY", "/nowhere"), 0);
    assert_int_equal(parse("ALBEDO_DIRECTORY", ""), 0);
    assert_int_equal(parse("ALBEDO_DIRECTORY", "here/it"), EINVAL);
    assert_string_equal(error, "ALBEDO_DIRECTORY: \"here/it\" is no absolute path");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options__errors_are_whole),
        cmocka_unit_test(options__loopback_by_default),
        cmocka_unit_test(options__loopback_without_descriptors),
        cmocka_unit_test(options__addresses_in_order),
        cmocka_unit_test(options__interfaces),
        cmocka_unit_test(options__interfaces_whose_addresses_are_being_checked),
        cmocka_unit_test(options__interfaces_whose_addresses_stay_unchecked),
        cmocka_unit_test(options__an_interface_of_more_addresses_than_fit),
        cmocka_unit_test(options__loopback_without_ipv6_sockets),
        cmocka_unit_test(options__wrong_addresses),
        cmocka_unit_test(options__faults_and_seed),
        cmocka_unit_test(options__paths),
        cmocka_unit_test(options__one_file_for_two),
        cmocka_unit_test(options__path_max),
        cmocka_unit_test(options__path_max_beyond_descriptors),
        cmocka_unit_test(options__policies),
        cmocka_unit_test(options__policies_that_are_none),
        cmocka_unit_test(options__a_host_directory_by_an_absolute_path),
    };
    return cmocka_run_group_tests_name("options", tests, NULL, NULL);
}
