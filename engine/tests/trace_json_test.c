// SPDX-License-Identifier: BSD-2-Clause
#include "engine/qp_state.h"
#include "engine/trace.h"
#include "engine/verbs.h"
#include "wire/aeth.h"
#include "wire/csa.h"
#include "wire/drop.h"
#include "wire/opcode.h"

#include "base/tests/test.h"

#include <ctype.h>
#include <string.h>

static void expect(enum alb_trace_kind kind, uint64_t a, uint64_t b, const char *text)
{
    struct alb_trace_record record = {.at = 12, .kind = kind, .qpn = 17, .psn = 3, .a = a, .b = b};
    char line[ALB_TRACE_LINE_MAX];
    uint32_t length = alb_trace_format(&record, line);
    assert_int_equal(length, strlen(line));
    assert_string_equal(line, text);
}

static void trace_format__names_what_has_a_name(void **state)
{
    expect(ALB_TRACE_state, ALB_QPS_RESET, ALB_QPS_INIT,
           "{\"at\":12,\"event\":\"state\",\"qpn\":17,\"psn\":3,\"old\":\"RESET\",\"new\":\"INIT\"}\n");
    expect(ALB_TRACE_send, ALB_WR_RDMA_READ, 4096,
           "{\"at\":12,\"event\":\"send\",\"qpn\":17,\"psn\":3,\"request\":\"rdma_read\",\"bytes\":4096}\n");
    expect(ALB_TRACE_receive, ALB_RC_SEND_ONLY, 0,
           "{\"at\":12,\"event\":\"receive\",\"qpn\":17,\"psn\":3,\"opcode\":\"RC SEND Only\",\"bytes\":0}\n");
    expect(ALB_TRACE_drop, ALB_DROP_BAD_PKEY, 0x1f,
           "{\"at\":12,\"event\":\"drop\",\"qpn\":17,\"psn\":3,\"reason\":\"bad_pkey\",\"opcode\":\"invalid\"}\n");
    expect(ALB_TRACE_receive, ALB_TRACE_CSA_OP(ALB_CSA_WRITE), 0,
           "{\"at\":12,\"event\":\"receive\",\"qpn\":17,\"psn\":3,\"opcode\":\"WRITE\",\"bytes\":0}\n");
    expect(ALB_TRACE_drop, ALB_DROP_NOT_PROVEN, ALB_TRACE_CSA_TYPE(ALB_CSA_PROBE),
           "{\"at\":12,\"event\":\"drop\",\"qpn\":17,\"psn\":3,\"reason\":\"not_proven\",\"opcode\":\"PROBE\"}\n");
    expect(ALB_TRACE_receive, ALB_TRACE_CSA_OP(0xff), 0,
           "{\"at\":12,\"event\":\"receive\",\"qpn\":17,\"psn\":3,\"opcode\":\"invalid\",\"bytes\":0}\n");
    expect(ALB_TRACE_ack, ALB_AETH_SYNDROME_ACK(31), 5,
           "{\"at\":12,\"event\":\"ack\",\"qpn\":17,\"psn\":3,\"syndrome\":\"ack\",\"msn\":5}\n");
    expect(ALB_TRACE_report, ALB_AETH_SYNDROME_ACK(31), 1,
           "{\"at\":12,\"event\":\"report\",\"qpn\":17,\"psn\":3,\"syndrome\":\"ack\",\"words\":1}\n");
    expect(ALB_TRACE_silence, 2, 1000,
           "{\"at\":12,\"event\":\"silence\",\"qpn\":17,\"psn\":3,\"times\":2,\"rtt_ns\":1000}\n");
    expect(ALB_TRACE_go_back, 2, 9,
           "{\"at\":12,\"event\":\"go_back\",\"qpn\":17,\"psn\":3,\"cause\":\"timeout\",\"packets\":9}\n");
    expect(ALB_TRACE_complete_send, ALB_WC_RETRY_EXC_ERR, UINT64_MAX,
           "{\"at\":12,\"event\":\"complete_send\",\"qpn\":17,\"psn\":3,\"status\":\"retry_exc_err\","
           "\"wr_id\":18446744073709551615}\n");
}

// Whatever a record holds, its line is whole and printable.
static void trace_format__survives_any_value(void **state)
{
    static const uint64_t values[] = {0, 1, 5, 12, 255, 256, UINT32_MAX, UINT64_MAX};
    for (uint32_t kind = 0; kind < ALB_TRACE_COUNT; kind++)
        for (size_t i = 0; i < ALB_COUNT(values) * ALB_COUNT(values); i++) {
            struct alb_trace_record record = {.at = UINT64_MAX,
                                              .kind = kind,
                                              .qpn = UINT32_MAX,
                                              .psn = UINT32_MAX,
                                              .a = values[i % ALB_COUNT(values)],
                                              .b = values[i / ALB_COUNT(values)]};
            char line[ALB_TRACE_LINE_MAX];
            uint32_t length = alb_trace_format(&record, line);
            assert_int_equal(length, strlen(line));
            assert_int_equal(line[0], '{');
            assert_string_equal(line + length - 2, "}\n");
            for (uint32_t k = 0; k < length - 1; k++)
                assert_true(isprint((unsigned char)line[k]));
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trace_format__names_what_has_a_name),
        cmocka_unit_test(trace_format__survives_any_value),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
