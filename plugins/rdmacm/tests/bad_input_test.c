// SPDX-License-Identifier: BSD-2-Clause
// What programs and peers do wrong: the event or errno that the manual pages name, and nothing is left of it.
#include "fixture.h"

#include "device/device.h"
#include "device/directory_file.h"
#include "engine/cm.h"
#include "plugins/verbs/bridge.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { HALF_OPEN = 1000, PATIENCE_S = 60 };

static struct {
    pid_t pid;
    int to, from; // pipes
} doomed;

// ---- counting -------------------------------------------------------------------------------------------------------

struct counts {
    uint32_t ids;    // of the engine's connection manager
    uint32_t claims; // in the host directory
    uint32_t files;  // open
};

static uint32_t count_names(const char *path, const char *prefix)
{
    DIR *dir = opendir(path);
    uint32_t count = 0;
    struct dirent *listed;
    while (dir && (listed = readdir(dir)))
        count += strncmp(listed->d_name, prefix, strlen(prefix)) == 0;
    if (dir)
        closedir(dir);
    return count;
}

static struct counts take_counts(void)
{
    char folder[ALB_DIRECTORY_FOLDER_MAX];
    int devices;
    struct ibv_context **list = rdma_get_devices(&devices);
    struct alb_device *device = albedo_bridge_device(list[0]);
    rdma_free_devices(list);
    alb_device_lock(device);
    uint32_t ids = alb_cm_id_count(alb_device_engine(device));
    alb_device_unlock(device);
    assert_non_null(alb_directory_folder((uint32_t)geteuid(), folder));
    return (struct counts){ids, count_names(folder, ".cm-"), count_names("/proc/self/fd", "")};
}

// Ids linger for ten seconds where a peer may ask again.
static void expect_counts(const struct counts *wanted)
{
    struct counts now = take_counts();
    for (int i = 0; i < PATIENCE_S * 10 && now.ids != wanted->ids; i++) {
        nanosleep(&(struct timespec){.tv_nsec = 100 * 1000 * 1000}, NULL);
        now = take_counts();
    }
    assert_int_equal(now.ids, wanted->ids);
    assert_int_equal(now.claims, wanted->claims);
    assert_int_equal(now.files, wanted->files);
}

// ---- a peer in another process --------------------------------------------------------------------------------------

// Connects without a queue pair of rdma_cm's, and dies when it is to say that it is ready.
static void die_between_request_and_ready(void)
{
    uint16_t port;
    if (read(doomed.to, &port, sizeof(port)) != sizeof(port))
        _exit(0);
    struct rdma_event_channel *channel = rdma_create_event_channel();
    struct rdma_cm_id *id = fixture_resolved(channel, RDMA_PS_TCP, port);
    struct rdma_conn_param param = {.qp_num = 99};
    struct rdma_cm_event *event;
    if (rdma_connect(id, &param) == 0 && rdma_get_cm_event(channel, &event) == 0 &&
        event->event == RDMA_CM_EVENT_CONNECT_RESPONSE)
        raise(SIGKILL);
    _exit(1);
}

// Forked before the device is there.
static int setup(void **state)
{
    int pipes[2];
    fixture_setup(state);
    assert_int_equal(pipe(pipes), 0);
    doomed.pid = fork();
    doomed.to = pipes[doomed.pid != 0];
    close(pipes[doomed.pid == 0]);
    if (doomed.pid == 0)
        die_between_request_and_ready();
    return doomed.pid > 0 ? 0 : -1;
}

// ---- tests ----------------------------------------------------------------------------------------------------------

static void peer__dies_before_it_is_ready(void **state)
{
    struct counts before = take_counts();
    struct rdma_event_channel *channel = rdma_create_event_channel();
    uint16_t port;
    struct rdma_cm_id *listener = fixture_listener(channel, RDMA_PS_TCP, &port);
    assert_int_equal(write(doomed.to, &port, sizeof(port)), sizeof(port));
    struct rdma_cm_event *event = expect_event(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
    struct rdma_cm_id *id = event->id;
    assert_int_equal(rdma_ack_cm_event(event), 0);
    fixture_create_qp(id);
    struct rdma_conn_param param = {.responder_resources = 1, .initiator_depth = 1};
    assert_int_equal(rdma_accept(id, &param), 0);
    event = expect_event(channel, RDMA_CM_EVENT_UNREACHABLE);
    assert_ptr_equal(event->id, id);
    assert_int_equal(event->status, -ETIMEDOUT);
    assert_int_equal(rdma_ack_cm_event(event), 0);
    int status;
    assert_int_equal(waitpid(doomed.pid, &status, 0), doomed.pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    rdma_destroy_qp(id);
    assert_int_equal(rdma_destroy_id(id), 0);
    assert_int_equal(rdma_destroy_id(listener), 0);
    rdma_destroy_event_channel(channel);
    expect_counts(&before);
}

// An address of this host where no process has a device.
static void peer__never_answers(void **state)
{
    struct counts before = take_counts();
    struct rdma_event_channel *channel = rdma_create_event_channel();
    struct sockaddr_storage here = fixture_sockaddr(fixture_address, 0), there = fixture_sockaddr("127.254.253.252", 9);
    struct rdma_cm_id *id;
    assert_int_equal(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), 0);
    assert_int_equal(rdma_resolve_addr(id, (struct sockaddr *)&here, (struct sockaddr *)&there, 100), 0);
    pass_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
    assert_int_equal(rdma_resolve_route(id, 100), 0);
    pass_event(channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
    fixture_create_qp(id);
    assert_int_equal(rdma_connect(id, NULL), 0);
    struct rdma_cm_event *event = expect_event(channel, RDMA_CM_EVENT_UNREACHABLE);
    assert_int_equal(event->status, -ETIMEDOUT);
    assert_int_equal(rdma_ack_cm_event(event), 0);
    rdma_destroy_qp(id);
    assert_int_equal(rdma_destroy_id(id), 0);
    rdma_destroy_event_channel(channel);
    expect_counts(&before);
}

// The requests are not answered, and then both sides are destroyed.
static void requests__a_thousand_half_open(void **state)
{
    static struct rdma_cm_id *clients[HALF_OPEN], *servers[HALF_OPEN];
    struct counts before = take_counts();
    struct rdma_event_channel *channels[2] = {rdma_create_event_channel(), rdma_create_event_channel()};
    uint16_t port;
    struct sockaddr_storage here = fixture_sockaddr(fixture_address, 0);
    struct rdma_cm_id *listener;
    assert_int_equal(rdma_create_id(channels[0], &listener, NULL, RDMA_PS_TCP), 0);
    assert_int_equal(rdma_bind_addr(listener, (struct sockaddr *)&here), 0);
    assert_int_equal(rdma_listen(listener, HALF_OPEN), 0);
    port = ntohs(rdma_get_src_port(listener));
    for (uint32_t i = 0; i < HALF_OPEN; i++) {
        struct rdma_conn_param param = {.qp_num = 0x1000 + i};
        clients[i] = fixture_resolved(channels[1], RDMA_PS_TCP, port);
        assert_int_equal(rdma_connect(clients[i], &param), 0);
    }
    for (uint32_t i = 0; i < HALF_OPEN; i++) {
        struct rdma_cm_event *event = expect_event(channels[0], RDMA_CM_EVENT_CONNECT_REQUEST);
        servers[i] = event->id;
        assert_int_equal(rdma_ack_cm_event(event), 0);
    }
    assert_true(take_counts().ids >= before.ids + 2 * HALF_OPEN);
    for (uint32_t i = 0; i < HALF_OPEN; i++)
        assert_int_equal(rdma_destroy_id(clients[i]), 0);
    for (uint32_t i = 0; i < HALF_OPEN; i++)
        assert_int_equal(rdma_destroy_id(servers[i]), 0);
    assert_int_equal(rdma_destroy_id(listener), 0);
    for (int i = 0; i < 2; i++)
        rdma_destroy_event_channel(channels[i]);
    expect_counts(&before);
}

// A port in use, an address that is not local, private data that are too long: refused, and nothing has changed.
static void calls__that_are_refused_leave_nothing(void **state)
{
    static char bytes[255];
    struct counts before = take_counts();
    struct rdma_event_channel *channel = rdma_create_event_channel();
    uint16_t port;
    struct rdma_cm_id *listener = fixture_listener(channel, RDMA_PS_TCP, &port), *id;
    struct counts between = take_counts();
    struct sockaddr_storage taken = fixture_sockaddr(fixture_address, port), far = fixture_sockaddr("192.0.2.1", 0);
    struct rdma_conn_param param = {.private_data = bytes, .private_data_len = 57};
    for (int i = 0; i < 100; i++) {
        assert_int_equal(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), 0);
        expect_errno(rdma_bind_addr(id, (struct sockaddr *)&taken), EADDRINUSE);
        expect_errno(rdma_bind_addr(id, (struct sockaddr *)&far), EADDRNOTAVAIL);
        assert_int_equal(rdma_destroy_id(id), 0);
        id = fixture_resolved(channel, RDMA_PS_TCP, port);
        expect_errno(rdma_connect(id, &param), EINVAL);
        assert_int_equal(rdma_destroy_id(id), 0);
    }
    expect_counts(&between);
    assert_int_equal(rdma_destroy_id(listener), 0);
    rdma_destroy_event_channel(channel);
    expect_counts(&before);
}

// rping's thread asks for one event more when its channel is gone.
static void calls__with_a_channel_that_is_gone(void **state)
{
    struct counts before = take_counts();
    struct rdma_event_channel *channel = rdma_create_event_channel();
    struct rdma_cm_event *event;
    rdma_destroy_event_channel(channel);
    expect_errno(rdma_get_cm_event(channel, &event), EBADF);
    rdma_destroy_event_channel(channel);
    expect_counts(&before);
}

static atomic_bool ends;

static void take_long_to_end(void)
{
    atomic_store(&ends, true);
    usleep(200000);
    _exit(0); // before a sanitizer looks for leaks, which a child cannot judge
}

static void *ask_while_it_ends(void *channel)
{
    struct rdma_cm_event *event;
    while (!atomic_load(&ends))
        usleep(1000);
    rdma_get_cm_event(channel, &event);
    _exit(9);
}

// What such a thread makes of an error must not become the exit status of a program that has succeeded.
static void calls__with_a_channel_that_is_gone_while_the_process_ends(void **state)
{
    int status;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        pthread_t thread;
        atexit(take_long_to_end);
        struct rdma_event_channel *channel = rdma_create_event_channel();
        rdma_destroy_event_channel(channel);
        exit(channel && pthread_create(&thread, NULL, ask_while_it_ends, channel) == 0 ? 0 : 8);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void calls__without_an_address(void **state)
{
    struct counts before = take_counts();
    struct rdma_event_channel *channel = rdma_create_event_channel();
    struct rdma_addrinfo info = {.ai_flags = RAI_PASSIVE, .ai_port_space = RDMA_PS_TCP, .ai_qp_type = IBV_QPT_RC};
    struct rdma_cm_id *id;
    assert_int_equal(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), 0);
    expect_errno(rdma_bind_addr(id, NULL), EINVAL);
    expect_errno(rdma_resolve_addr(id, NULL, NULL, 1), EINVAL);
    assert_int_equal(rdma_destroy_id(id), 0);
    rdma_destroy_event_channel(channel);
    expect_errno(rdma_create_ep(&id, &info, NULL, NULL), EINVAL); // a listener's
    info.ai_flags = 0;
    expect_errno(rdma_create_ep(&id, &info, NULL, NULL), EINVAL);
    expect_counts(&before);
}

// An id in synchronous mode has a channel, and that a descriptor. Whether an address that the device does not have is
// the host's takes one, too.
static void calls__without_descriptors(void **state)
{
    struct counts before = take_counts();
    struct rdma_event_channel *channel = rdma_create_event_channel();
    struct sockaddr_storage host = fixture_sockaddr("127.0.0.1", 0);
    struct rdma_cm_id *id, *second;
    struct rlimit usual, none;
    assert_int_equal(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), 0);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &usual), 0);
    none = usual;
    none.rlim_cur = 0;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    expect_errno(rdma_create_id(NULL, &second, NULL, RDMA_PS_TCP), EMFILE);
    expect_errno(rdma_migrate_id(id, NULL), EMFILE);
    expect_errno(rdma_bind_addr(id, (struct sockaddr *)&host), EMFILE);
    assert_null(rdma_create_event_channel());
    assert_int_equal(errno, EMFILE);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &usual), 0);
    expect_errno(rdma_bind_addr(id, (struct sockaddr *)&host), ENODEV);
    assert_ptr_equal(id->channel, channel);
    assert_int_equal(rdma_destroy_id(id), 0);
    rdma_destroy_event_channel(channel);
    expect_counts(&before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(peer__dies_before_it_is_ready),
        cmocka_unit_test(peer__never_answers),
        cmocka_unit_test(requests__a_thousand_half_open),
        cmocka_unit_test(calls__that_are_refused_leave_nothing),
        cmocka_unit_test(calls__with_a_channel_that_is_gone),
        cmocka_unit_test(calls__with_a_channel_that_is_gone_while_the_process_ends),
        cmocka_unit_test(calls__without_an_address),
        cmocka_unit_test(calls__without_descriptors),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
