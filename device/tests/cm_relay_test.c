// SPDX-License-Identifier: BSD-2-Clause
// Connections between processes of one host (here: devices in slots of their own), over real sockets: a request goes to
// port 4791, whose holder passes it on to the process that listens, and what follows finds its way by communication
// ids.
#include "device/cm_claim.h"
#include "device/tests/own_directory.h"
#include "device/tests/pair.h"
#include "engine/cm.h"

#include <stdio.h>
#include <unistd.h>

enum {
    DEVICES = 3,
    PORT = 7174,
    WAIT_ROUNDS = 2000, // of a few milliseconds
};

struct node {
    struct alb_device *device;
    struct alb_cm_id *id;
    struct alb_cm_id *listener;
    struct alb_cm_claim claim;
};

static struct node nodes[DEVICES];

static uint8_t gsi_index(const struct node *node)
{
    return node->device->kind->gsi_index;
}

static int open_nodes(const char *const names[DEVICES])
{
    own_directory_setup(NULL);
    // An address of this test's own: on others another user's process may hold port 4791, which does not see our
    // claims.
    char address[32];
    snprintf(address, sizeof(address), "127.%d.%d.%d", 64 + getpid() / 65536 % 64, getpid() / 256 % 256,
             getpid() % 255 + 1);
    struct alb_device_options *options = pair_options(address);
    for (int i = 0; i < DEVICES; i++) {
        nodes[i] = (struct node){.claim.fd = -1};
        assert_int_equal(alb_device_create(names[i], options, &nodes[i].device), 0);
    }
    free(options);
    assert_int_equal(alb_device_slot(nodes[0].device), 0);
    return 0;
}

static int setup(void **state)
{
    return open_nodes((const char *const[]){"roce0", "roce0", "roce0"});
}

static int setup_albedo(void **state)
{
    return open_nodes((const char *const[]){"albedo0", "albedo0", "albedo0"});
}

// The port is held by a device of another kind than those that talk.
static int setup_roce_in_front(void **state)
{
    return open_nodes((const char *const[]){"roce0", "albedo0", "albedo0"});
}

static int setup_albedo_in_front(void **state)
{
    return open_nodes((const char *const[]){"albedo0", "roce0", "roce0"});
}

static int teardown(void **state)
{
    for (int i = 0; i < DEVICES; i++) {
        struct node *node = &nodes[i];
        alb_device_lock(node->device);
        if (node->id)
            alb_cm_id_destroy(node->id, alb_device_now());
        if (node->listener)
            alb_cm_id_destroy(node->listener, alb_device_now());
        alb_device_unlock(node->device);
        alb_cm_claim_end(&node->claim);
        alb_device_destroy(node->device);
    }
    return own_directory_teardown(state);
}

static uint64_t service(void)
{
    return alb_cm_service_id(ALB_CM_PS_TCP, PORT);
}

static void listen_at(struct node *node)
{
    struct alb_cm_listen listen = {.service_id = service(), .backlog = 4};
    struct alb_cm_place place = {
        .gsi_index = gsi_index(node), .service_id = service(), .slot = alb_device_slot(node->device)};
    assert_int_equal(alb_cm_claim(&node->claim, &place), 0);
    assert_int_equal(alb_cm_claim_listen(&node->claim), 0);
    alb_device_lock(node->device);
    assert_int_equal(alb_cm_id_create(alb_device_engine(node->device), node, &node->listener), 0);
    assert_int_equal(alb_cm_listen(node->listener, &listen), 0);
    alb_device_unlock(node->device);
}

static void connect_from(struct node *node)
{
    struct alb_cm_req req = {
        .service_id = service(),
        .qpn = (alb_qpn)alb_device_slot(node->device) << 16 | 100,
        .remote_response_timeout = 16,
        .local_response_timeout = 16,
        .max_cm_retries = 15,
        .primary.ack_timeout = 10,
    };
    struct alb_cm_target target = {.gsi_qpn = gsi_index(node)};
    assert_int_equal(alb_device_resolve(node->device, 0, alb_device_gid(node->device, 0), &target.av), 0);
    assert_true(target.av.same_host);
    alb_device_lock(node->device);
    assert_int_equal(alb_cm_id_create(alb_device_engine(node->device), node, &node->id), 0);
    assert_int_equal(alb_cm_connect(node->id, &target, &req, NULL, alb_device_now()), 0);
    alb_device_unlock(node->device);
}

// Waits for the next event of a node, which must be of that type.
static struct alb_cm_event wait_for(struct node *node, enum alb_cm_event_type type)
{
    struct alb_cm_event event;
    for (int i = 0; i < WAIT_ROUNDS; i++) {
        alb_device_lock(node->device);
        bool has_come = alb_cm_event(alb_device_engine(node->device), &event);
        if (has_come && event.listener)
            alb_cm_request_taken(event.listener);
        alb_device_unlock(node->device);
        if (has_come) {
            assert_string_equal(alb_cm_event_name(event.type), alb_cm_event_name(type));
            return event;
        }
        usleep(5000);
    }
    fail_msg("no event, not %s", alb_cm_event_name(type));
    return event;
}

static void connect_and_part(struct node *from, struct node *to)
{
    struct alb_cm_rep rep = {.qpn = 200};
    listen_at(to);
    connect_from(from);
    to->id = wait_for(to, ALB_CM_EVENT_REQUEST).id;
    alb_device_lock(to->device);
    assert_int_equal(alb_cm_accept(to->id, &rep, NULL, alb_device_now()), 0);
    alb_device_unlock(to->device);
    assert_int_equal(wait_for(from, ALB_CM_EVENT_RESPONSE).message.rep.qpn, 200);
    alb_device_lock(from->device);
    assert_int_equal(alb_cm_establish(from->id, NULL, alb_device_now()), 0);
    alb_device_unlock(from->device);
    wait_for(to, ALB_CM_EVENT_ESTABLISHED);
    alb_device_lock(to->device);
    assert_int_equal(alb_cm_disconnect(to->id, NULL, alb_device_now()), 0);
    alb_device_unlock(to->device);
    wait_for(from, ALB_CM_EVENT_DISCONNECTED);
    wait_for(to, ALB_CM_EVENT_DISCONNECTED);
    wait_for(from, ALB_CM_EVENT_TIMEWAIT_OVER);
    wait_for(to, ALB_CM_EVENT_TIMEWAIT_OVER);
}

static void relay__from_the_first_slot_to_another(void **state)
{
    connect_and_part(&nodes[0], &nodes[2]);
}

static void relay__between_two_that_do_not_hold_the_port(void **state)
{
    connect_and_part(&nodes[1], &nodes[2]);
}

static void relay__to_the_holder_itself(void **state)
{
    connect_and_part(&nodes[2], &nodes[0]);
}

static void relay__listeners_of_both_kinds(void **state)
{
    listen_at(&nodes[0]);
    connect_and_part(&nodes[2], &nodes[1]);
    assert_null(nodes[0].id);
}

static void relay__nobody_listens(void **state)
{
    connect_from(&nodes[1]);
    struct alb_cm_event event = wait_for(&nodes[1], ALB_CM_EVENT_REJECTED);
    assert_int_equal(event.message.rej.reason, ALB_CM_REJ_INVALID_SERVICE_ID);
}

// The driver learns it from an engine event.
static void on_event(void *context, const struct alb_event *event)
{
    if (event->type == ALB_EVENT_CM && event->user == context)
        atomic_fetch_add((_Atomic int *)context, 1);
}

static void event__reaches_the_devices_handler(void **state)
{
    static _Atomic int told;
    atomic_store(&told, 0);
    alb_device_lock(nodes[1].device);
    alb_cm_set_user(alb_device_engine(nodes[1].device), (void *)&told);
    alb_device_unlock(nodes[1].device);
    alb_device_set_event_handler(nodes[1].device, on_event, (void *)&told);
    connect_from(&nodes[1]);
    wait_for(&nodes[1], ALB_CM_EVENT_REJECTED);
    assert_int_equal(atomic_load(&told), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(relay__from_the_first_slot_to_another, setup, teardown),
        cmocka_unit_test_setup_teardown(relay__between_two_that_do_not_hold_the_port, setup, teardown),
        cmocka_unit_test_setup_teardown(relay__between_two_that_do_not_hold_the_port, setup_albedo, teardown),
        cmocka_unit_test_setup_teardown(relay__between_two_that_do_not_hold_the_port, setup_roce_in_front, teardown),
        cmocka_unit_test_setup_teardown(relay__between_two_that_do_not_hold_the_port, setup_albedo_in_front, teardown),
        cmocka_unit_test_setup_teardown(relay__to_the_holder_itself, setup, teardown),
        cmocka_unit_test_setup_teardown(relay__to_the_holder_itself, setup_albedo, teardown),
        cmocka_unit_test_setup_teardown(relay__listeners_of_both_kinds, setup_roce_in_front, teardown),
        cmocka_unit_test_setup_teardown(relay__nobody_listens, setup, teardown),
        cmocka_unit_test_setup_teardown(relay__nobody_listens, setup_albedo, teardown),
        cmocka_unit_test_setup_teardown(event__reaches_the_devices_handler, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
