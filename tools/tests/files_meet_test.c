// SPDX-License-Identifier: BSD-2-Clause
// Connections that do not come about: rdma_cm is made here.
#include "tools/files_link.h"

#include "base/tests/test.h"

#include <errno.h>
#include <string.h>

static struct {
    bool has_no_channel;
    char rejected[FILES_REFUSAL_MAX + 1]; // with these words
    int destroyed;
    int error; // of resolving an address
} cm;

static struct rdma_cm_id id;
static struct rdma_event_channel channel;

struct rdma_event_channel *rdma_create_event_channel(void)
{
    errno = EMFILE;
    return cm.has_no_channel ? NULL : &channel;
}

void rdma_destroy_event_channel(struct rdma_event_channel *there)
{
}

int rdma_reject(struct rdma_cm_id *there, const void *words, uint8_t length)
{
    assert_int_equal(cm.destroyed, 0);
    assert_true(length <= FILES_REFUSAL_MAX);
    memcpy(cm.rejected, words, length);
    return 0;
}

int rdma_destroy_id(struct rdma_cm_id *there)
{
    cm.destroyed++;
    return 0;
}

int rdma_create_id(struct rdma_event_channel *there, struct rdma_cm_id **made, void *context,
                   enum rdma_port_space space)
{
    *made = &id;
    return 0;
}

int rdma_resolve_addr(struct rdma_cm_id *there, struct sockaddr *from, struct sockaddr *to, int timeout_ms)
{
    return 0;
}

int rdma_get_cm_event(struct rdma_event_channel *there, struct rdma_cm_event **event)
{
    static struct rdma_cm_event failed = {.event = RDMA_CM_EVENT_ADDR_ERROR};
    failed.status = -cm.error;
    *event = &failed;
    return 0;
}

int rdma_ack_cm_event(struct rdma_cm_event *event)
{
    return 0;
}

static int setup(void **state)
{
    memset(&cm, 0, sizeof(cm));
    return 0;
}

static void files_link_accept__tells_the_client_why_not(void **state)
{
    struct files_link link;
    char why[FILES_WHY_MAX];
    cm.has_no_channel = true;
    assert_false(files_link_accept(&link, &id, why));
    assert_string_equal(why, "cannot use rdma_cm: Too many open files");
    assert_string_equal(cm.rejected, "the server cannot take the connection: cannot use rdma_cm: Too many open files");
    assert_int_equal(cm.destroyed, 1);
}

static void files_link_connect__what_no_address_reaches_is_not_tried_again(void **state)
{
    static const struct {
        int error;
        enum files_result result;
    } cases[] = {
        {EADDRNOTAVAIL, FILES_FAILED}, {ENODEV, FILES_FAILED},       {EAFNOSUPPORT, FILES_FAILED},
        {ENETUNREACH, FILES_FAILED},   {EHOSTUNREACH, FILES_FAILED}, {ETIMEDOUT, FILES_LOST},
    };
    const struct sockaddr_storage address = {.ss_family = AF_INET};
    for (size_t i = 0; i < ALB_COUNT(cases); i++) {
        struct files_link link;
        char why[FILES_WHY_MAX];
        cm.error = cases[i].error;
        assert_int_equal(files_link_connect(&link, &address, FILES_ACK_TIMEOUT, why), cases[i].result);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(files_link_accept__tells_the_client_why_not, setup),
        cmocka_unit_test_setup(files_link_connect__what_no_address_reaches_is_not_tried_again, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
