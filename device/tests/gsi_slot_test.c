// SPDX-License-Identifier: BSD-2-Clause
#include "device/gsi_slot.h"

#include "base/log.h"
#include "base/tests/test.h"
#include "device/cm_claim.h"
#include "device/tests/own_directory.h"
#include "device/tests/said.h"
#include "wire/cm.h"
#include "wire/datagram.h"

#include <string.h>
#include <sys/resource.h>

#define DATAGRAM_BYTES (12 + 8 + ALB_MAD_BYTES + ALB_ICRC_BYTES)

static alb_qpn gsi_qpn = ALB_GSI_QPN;
static struct alb_gsi_finder finder;
static alb_time now;

static void write_datagram(const struct alb_cm_message *message, uint8_t bytes[DATAGRAM_BYTES])
{
    const struct alb_roce roce = {.opcode = ALB_UD_SEND_ONLY, .dest_qpn = gsi_qpn, .qkey = ALB_GSI_QKEY};
    memset(bytes, 0, DATAGRAM_BYTES);
    alb_cm_encode(message, bytes + alb_roce_encode(&roce, bytes));
}

// The slot of a message that comes to 10.0.0.1 now, -1: it does not say; -2: it cannot be told.
static int slot_now(const struct alb_cm_message *message)
{
    uint8_t bytes[DATAGRAM_BYTES], slot;
    struct alb_addr local = alb_addr_from_ipv4((const uint8_t[4]){10, 0, 0, 1});
    write_datagram(message, bytes);
    enum alb_gsi_place place = alb_gsi_slot(&finder, bytes, sizeof(bytes), &local, now, &slot);
    return place == ALB_GSI_SLOT ? slot : place == ALB_GSI_HOLDER ? -1 : -2;
}

// Likewise when nothing is remembered any more.
static int slot_of(const struct alb_cm_message *message)
{
    now += ALB_GSI_PERIOD_NS;
    return slot_now(message);
}

static void slot__of_a_request_is_its_listeners(void **state)
{
    struct alb_cm_message req = {.type = ALB_CM_REQ, .local_id = 0x05000000, .req = {.service_id = 7}};
    struct alb_cm_message sidr = {.type = ALB_CM_SIDR_REQ, .local_id = 0x05000000, .sidr_req = {.service_id = 7}};
    struct alb_cm_place place = {
        .gsi_index = ALB_GSI_QPN, .service_id = 7, .addr = {{[10] = 0xff, [11] = 0xff}}, .slot = 200};
    struct alb_cm_claim claim;
    assert_int_equal(slot_of(&req), -1);
    assert_int_equal(slot_of(&sidr), -1);
    assert_int_equal(alb_cm_claim(&claim, &place), 0);
    assert_int_equal(alb_cm_claim_listen(&claim), 0);
    assert_int_equal(slot_of(&req), 200);
    assert_int_equal(slot_of(&sidr), 200);
    alb_cm_claim_end(&claim);
}

// Without descriptors to look with a listener is not refused in another process's name; one's own is known.
static void slot__of_a_request_without_descriptors(void **state)
{
    struct alb_cm_message here = {.type = ALB_CM_REQ, .req = {.service_id = 7}}, elsewhere = here;
    struct alb_cm_place place = {
        .gsi_index = ALB_GSI_QPN, .service_id = 7, .addr = {{[10] = 0xff, [11] = 0xff}}, .slot = 200};
    struct alb_cm_claim claim;
    struct rlimit usual, none;
    struct said said;
    char text[ALB_LOG_LINE_MAX];
    elsewhere.req.service_id = 8;
    assert_int_equal(alb_cm_claim(&claim, &place), 0);
    assert_int_equal(alb_cm_claim_listen(&claim), 0);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &usual), 0);
    none = usual;
    none.rlim_cur = 0;
    said_begin(&said);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    int own = slot_of(&here), others = slot_of(&elsewhere);
    slot_of(&elsewhere);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &usual), 0);
    said_end(&said, text, sizeof(text));
    assert_non_null(strstr(text, "Too many open files: requests to connect by rdma_cm stay unanswered; `ulimit -n`"));
    assert_ptr_equal(strchr(text, '\n'), strrchr(text, '\n')); // once
    assert_int_equal(own, 200);
    assert_int_equal(others, -2);
    assert_int_equal(slot_of(&elsewhere), -1);
    alb_cm_claim_end(&claim);
}

// Anybody may send requests for services that there are not, and each lookup costs system calls.
static void slot__of_requests_is_looked_up_so_many_times(void **state)
{
    struct alb_cm_message here = {.type = ALB_CM_REQ, .req = {.service_id = 7}}, forged = here;
    struct alb_cm_place place = {
        .gsi_index = ALB_GSI_QPN, .service_id = 7, .addr = {{[10] = 0xff, [11] = 0xff}}, .slot = 200};
    struct alb_cm_claim claim;
    now += ALB_GSI_PERIOD_NS;
    for (unsigned i = 0; i < ALB_GSI_LOOKUPS; i++) {
        forged.req.service_id = 1000 + i;
        assert_int_equal(slot_now(&forged), -1);
    }
    forged.req.service_id++;
    assert_int_equal(slot_now(&forged), -2);
    assert_int_equal(alb_cm_claim(&claim, &place), 0);
    assert_int_equal(alb_cm_claim_listen(&claim), 0);
    assert_int_equal(slot_now(&here), -2);
    now += ALB_GSI_PERIOD_NS;
    for (unsigned i = 0; i < 2 * ALB_GSI_LOOKUPS; i++)
        assert_int_equal(slot_now(&here), 200); // remembered
    assert_int_equal(slot_now(&forged), -1);
    alb_cm_claim_end(&claim);
    now += ALB_GSI_FOUND_NS;
    assert_int_equal(slot_now(&here), -1);
    assert_int_equal(alb_cm_claim(&claim, &place), 0);
    assert_int_equal(alb_cm_claim_listen(&claim), 0);
    assert_int_equal(slot_now(&here), 200); // that there was none is not
    alb_cm_claim_end(&claim);
}

// One service, listened for at a device of each kind.
static void slot__of_a_request_by_kind(void **state)
{
    struct alb_cm_message req = {.type = ALB_CM_REQ, .local_id = 0x05000000, .req = {.service_id = 7}};
    struct alb_cm_place roce = {
        .gsi_index = ALB_GSI_QPN, .service_id = 7, .addr = {{[10] = 0xff, [11] = 0xff}}, .slot = 20};
    struct alb_cm_place albedo = roce;
    struct alb_cm_claim claims[2];
    albedo.gsi_index = ALB_GSI_ALBEDO_QPN;
    albedo.slot = 30;
    assert_int_equal(alb_cm_claim(&claims[0], &roce), 0);
    assert_int_equal(alb_cm_claim_listen(&claims[0]), 0);
    gsi_qpn = ALB_GSI_ALBEDO_QPN;
    assert_int_equal(slot_of(&req), -1);
    assert_int_equal(alb_cm_claim(&claims[1], &albedo), 0);
    assert_int_equal(alb_cm_claim_listen(&claims[1]), 0);
    assert_int_equal(slot_of(&req), 30);
    gsi_qpn = ALB_GSI_QPN;
    assert_int_equal(slot_of(&req), 20);
    alb_cm_claim_end(&claims[0]);
    assert_int_equal(slot_of(&req), -1);
    alb_cm_claim_end(&claims[1]);
}

static void slot__of_the_rest_is_the_ids(void **state)
{
    static const enum alb_cm_type types[] = {ALB_CM_MRA,  ALB_CM_REJ,  ALB_CM_REP, ALB_CM_RTU,
                                             ALB_CM_DREQ, ALB_CM_DREP, ALB_CM_APR};
    for (unsigned i = 0; i < ALB_COUNT(types); i++) {
        struct alb_cm_message message = {.type = types[i], .local_id = 0x05000000, .remote_id = 0x11223344};
        assert_int_equal(slot_of(&message), 0x11);
    }
    struct alb_cm_message answer = {.type = ALB_CM_SIDR_REP, .local_id = 0xfe000001};
    assert_int_equal(slot_of(&answer), 0xfe);
    struct alb_cm_message timeout = {.type = ALB_CM_REJ, .local_id = 0x05000000};
    assert_int_equal(slot_of(&timeout), -1);
}

static void slot__of_what_is_no_message(void **state)
{
    uint8_t bytes[DATAGRAM_BYTES], slot;
    struct alb_addr local = {0};
    struct alb_cm_message message = {.type = ALB_CM_RTU, .remote_id = 0x11223344};
    write_datagram(&message, bytes);
    for (uint32_t length = 0; length < sizeof(bytes); length++)
        assert_int_equal(alb_gsi_slot(&finder, bytes, length, &local, now, &slot), ALB_GSI_HOLDER);
    assert_int_equal(alb_gsi_slot(&finder, bytes, sizeof(bytes), &local, now, &slot), ALB_GSI_SLOT);
    bytes[21] = 4; // another management class
    assert_int_equal(alb_gsi_slot(&finder, bytes, sizeof(bytes), &local, now, &slot), ALB_GSI_HOLDER);
    write_datagram(&message, bytes);
    bytes[0] = ALB_RC_SEND_ONLY;
    assert_int_equal(alb_gsi_slot(&finder, bytes, sizeof(bytes), &local, now, &slot), ALB_GSI_HOLDER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(slot__of_a_request_is_its_listeners, own_directory_setup,
                                        own_directory_teardown),
        cmocka_unit_test_setup_teardown(slot__of_a_request_without_descriptors, own_directory_setup,
                                        own_directory_teardown),
        cmocka_unit_test_setup_teardown(slot__of_requests_is_looked_up_so_many_times, own_directory_setup,
                                        own_directory_teardown),
        cmocka_unit_test_setup_teardown(slot__of_a_request_by_kind, own_directory_setup, own_directory_teardown),
        cmocka_unit_test_setup_teardown(slot__of_the_rest_is_the_ids, own_directory_setup, own_directory_teardown),
        cmocka_unit_test(slot__of_what_is_no_message),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
