// SPDX-License-Identifier: BSD-2-Clause
// The line about a failed queue pair names everything that helps.
#include "device/failure.h"

#include "device/tests/pair.h"

#include <stdio.h>

static struct alb_qp_failure failure_of(const struct side *side)
{
    struct alb_qp_failure failure = {
        .status = ALB_WC_RETRY_EXC_ERR,
        .peer = {.addr = *alb_device_gid(side->device, 0), .port = 4793},
        .dest_qpn = 0x20123,
        .last_psn = 1234,
        .awaited_psn = 1200,
        .retries = 7,
        .retry_limit = 7,
        .opcode = ALB_WR_RDMA_READ,
        .reason = "no acknowledgement",
    };
    return failure;
}

static void assert_names(const char *text, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!strstr(text, words[i]))
            fail_msg("\"%s\" is not in \"%s\"", words[i], text);
    }
}

static void alb_failure_format__at_requester(void **state)
{
    static const char *const words[] = {
        "RC", "127.96.0.1:4793", "0x020123", "1234", "1200", "READ", "no acknowledgement", "retried 7 times of 7"};
    struct alb_device_options *options = pair_options("127.96.0.1");
    struct side side;
    char text[ALB_FAILURE_TEXT_MAX], number[16];
    side_open(&side, options, ALB_QPT_RC);
    struct alb_qp_failure failure = failure_of(&side);
    assert_ptr_equal(alb_failure_format(side.qp, &failure, text), text);
    assert_names(text, words, ALB_COUNT(words));
    snprintf(number, sizeof(number), "0x%06x", alb_qp_number(side.qp));
    assert_non_null(strstr(text, number));
    assert_null(strchr(text, '\n'));
    side_close(&side);
    free(options);
}

static void alb_failure_format__how_often_by_what_decided(void **state)
{
    struct alb_device_options *options = pair_options("127.96.0.1");
    struct side side;
    char text[ALB_FAILURE_TEXT_MAX];
    side_open(&side, options, ALB_QPT_RC);
    struct alb_qp_failure failure = failure_of(&side);
    failure.retry_limit = 0;
    assert_non_null(strstr(alb_failure_format(side.qp, &failure, text), "retried 7 times, syndrome"));
    failure.reason = "no sign of life";
    failure.retries = 21;
    failure.silence_ns = 2147483648;
    assert_non_null(strstr(alb_failure_format(side.qp, &failure, text), "asked again 21 times in 2147 ms, syndrome"));
    side_close(&side);
    free(options);
}

static void alb_failure_format__what_does_not_pass_a_router(void **state)
{
    static const char hint[] = "no acknowledgement (its hop limit is 1, with which no packet passes a router); ";
    struct alb_device_options *options = pair_options("127.96.0.1");
    struct side side;
    char text[ALB_FAILURE_TEXT_MAX];
    side_open(&side, options, ALB_QPT_RC);
    struct alb_qp_failure failure = failure_of(&side);
    failure.peer.addr = alb_addr_from_ipv4((const uint8_t[]){192, 0, 2, 7});
    failure.hop_limit = 1;
    assert_non_null(strstr(alb_failure_format(side.qp, &failure, text), hint));
    failure.hop_limit = 64;
    assert_null(strstr(alb_failure_format(side.qp, &failure, text), "hop limit"));
    failure.hop_limit = 1;
    failure.status = ALB_WC_REM_ACCESS_ERR; // it was answered
    assert_null(strstr(alb_failure_format(side.qp, &failure, text), "hop limit"));
    side_close(&side);
    free(options);
}

// Of two hosts that were both started without --net each takes the other for itself, and no router is between them.
static void alb_failure_format__a_peer_by_a_loopback_address(void **state)
{
    struct alb_device_options *options = pair_options("127.96.0.1");
    struct side side;
    char text[ALB_FAILURE_TEXT_MAX];
    side_open(&side, options, ALB_QPT_RC);
    struct alb_qp_failure failure = failure_of(&side);
    failure.hop_limit = 1;
    alb_failure_format(side.qp, &failure, text);
    assert_non_null(strstr(text, "no acknowledgement (that address is taken to be on this host; "));
    assert_non_null(strstr(text, "start both by `albedo run --net`); last PSN"));
    assert_non_null(strstr(text, "syndrome 0x00")); // it is whole
    assert_null(strstr(text, "router"));
    failure.status = ALB_WC_REM_ACCESS_ERR; // it was answered
    assert_null(strstr(alb_failure_format(side.qp, &failure, text), "--net"));
    side_close(&side);
    free(options);
}

static void alb_failure_format_unsent__says_what_and_why(void **state)
{
    struct alb_edge_stats stats = {0};
    char text[ALB_UNSENT_TEXT_MAX];
    assert_string_equal(alb_failure_format_unsent(&stats, text), "");
    stats.counter[ALB_EDGE_tx_too_big] = 1839;
    assert_string_equal(alb_failure_format_unsent(&stats, text),
                        "; datagrams that did not leave this host: 1839 (larger than the path's MTU)");
    stats.counter[ALB_EDGE_tx_refused] = stats.counter[ALB_EDGE_tx_no_socket] = UINT64_MAX;
    stats.counter[ALB_EDGE_tx_no_buffer] = stats.counter[ALB_EDGE_tx_too_big] = UINT64_MAX;
    assert_non_null(strstr(alb_failure_format_unsent(&stats, text), " 18446744073709551615 (no buffer space)"));
}

static void alb_failure_format__at_responder(void **state)
{
    static const char *const words[] = {"a request of peer 127.96.0.1:4793", "0x020123", "expected PSN 1200",
                                        "unknown reason"};
    struct alb_device_options *options = pair_options("127.96.0.1");
    struct side side;
    char text[ALB_FAILURE_TEXT_MAX];
    side_open(&side, options, ALB_QPT_RC);
    struct alb_qp_failure failure = failure_of(&side);
    failure.at_responder = true;
    failure.reason = NULL;
    alb_failure_format(side.qp, &failure, text);
    assert_names(text, words, ALB_COUNT(words));
    side_close(&side);
    free(options);
}

static void alb_failure_format__with_nothing_under_way(void **state)
{
    static const char *const words[] = {"failed with nothing under way: peer 127.96.0.1:4793 QPN 0x020123: gone"};
    struct alb_device_options *options = pair_options("127.96.0.1");
    struct side side;
    char text[ALB_FAILURE_TEXT_MAX];
    side_open(&side, options, ALB_QPT_RC);
    struct alb_qp_failure failure = failure_of(&side);
    failure.is_idle = true;
    failure.reason = "gone";
    alb_failure_format(side.qp, &failure, text);
    assert_names(text, words, ALB_COUNT(words));
    side_close(&side);
    free(options);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alb_failure_format__at_requester),
        cmocka_unit_test(alb_failure_format__how_often_by_what_decided),
        cmocka_unit_test(alb_failure_format__what_does_not_pass_a_router),
        cmocka_unit_test(alb_failure_format__a_peer_by_a_loopback_address),
        cmocka_unit_test(alb_failure_format_unsent__says_what_and_why),
        cmocka_unit_test(alb_failure_format__at_responder),
        cmocka_unit_test(alb_failure_format__with_nothing_under_way),
    };
    return cmocka_run_group_tests_name("failure", tests, NULL, NULL);
}
