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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(files_link_accept__tells_the_client_why_not, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
