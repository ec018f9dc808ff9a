// SPDX-License-Identifier: BSD-2-Clause
// Whole devices over loopback: data moves whichever thread drives, with and without faults; opening and closing.
#include "device/device.h"

#include "base/log.h"
#include "device/clock.h"
#include "device/drive.h"

#include "device/tests/network_namespace.h"
#include "device/tests/pair.h"
#include "device/tests/said.h"

#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

static bool is_albedo(void)
{
    return strcmp(pair_device_name, "albedo0") == 0;
}

static void write_sizes(struct pair *pair, struct alb_wc (*wait)(struct side *))
{
    static const uint32_t sizes[] = {0, 1, 8, 4095, 4096, 4097, 65536, 1 << 20, PAIR_BYTES};
    for (size_t i = 0; i < ALB_COUNT(sizes); i++)
        pair_write_and_check(pair, sizes[i], wait);
}

static void alb_device__writes_while_polled(void **state)
{
    struct pair pair;
    pair_open(&pair, "127.92.0.1", "127.92.0.1", NULL);
    assert_int_equal(alb_device_slot(pair.side[0].device), 0);
    assert_int_equal(alb_device_slot(pair.side[1].device), 1);
    write_sizes(&pair, side_wait);
    const struct alb_edge_stats *edge = &pair.side[0].device->board.header->edge_stats;
    // Bursts did leave whole, or datagrams were as large as bursts: however often the window was small and how much
    // went again, which depends on the machine.
    assert_true(alb_edge_counted(edge, ALB_EDGE_tx_messages) < alb_edge_counted(edge, ALB_EDGE_tx_datagrams) ||
                is_albedo());
    assert_true(alb_edge_counted(edge, ALB_EDGE_tx_datagrams) < 1000 || !is_albedo());
    pair_close(&pair);
}

static void alb_device__writes_while_nobody_polls(void **state)
{
    struct pair pair;
    pair_open(&pair, "127.92.0.2", "127.92.0.3", NULL);
    write_sizes(&pair, side_wait_idle);
    pair_close(&pair);
}

static struct alb_rx_counts counts_of(struct side *side)
{
    alb_token_lock(&side->device->token);
    struct alb_rx_counts counts = side->device->rx.counts;
    alb_token_release(&side->device->token);
    return counts;
}

// The device thread tells by them what a program that looks at its memory may wait for, and what its peer waits for.
static void alb_rx__counts_what_programs_do_not_hear_of(void **state)
{
    struct pair pair;
    pair_open(&pair, "127.92.0.1", "127.92.0.2", NULL);
    struct side *a = &pair.side[0], *b = &pair.side[1];
    side_receive(b, 0, 64);
    side_send(a, 0, 64);
    assert_int_equal(side_wait(a).status, ALB_WC_SUCCESS);
    assert_true(counts_of(b).bytes > 64);
    assert_int_equal(counts_of(b).writes + counts_of(b).fetches, 0);
    side_write(a, b, 0, 64);
    assert_int_equal(side_wait(a).status, ALB_WC_SUCCESS);
    assert_true(counts_of(b).writes > 0);
    assert_int_equal(counts_of(b).fetches, 0);
    side_write(a, b, 0, 200000);
    assert_int_equal(side_wait(a).status, ALB_WC_SUCCESS);
    assert_false(counts_of(b).is_amid_write);
    side_read(a, b, 0, 64);
    assert_int_equal(side_wait(a).status, ALB_WC_SUCCESS);
    assert_true(counts_of(b).fetches > 0);
    pair_close(&pair);
}

enum { PILED_UP = 20 }; // WRITEs, of which one look takes one

// Opens a pair, locks side 1 and lets WRITEs pile up in its socket, which it seems to have looked at for the last time
// read_before_ns before a timer is due. Then that timer fires.
static void pump_with_writes_piled_up(struct pair *pair, alb_time read_before_ns)
{
    pair_open(pair, "127.92.0.1", "127.92.0.1", NULL);
    struct side *a = &pair->side[0], *b = &pair->side[1];
    pair_write_and_check(pair, 64, side_wait);
    alb_device_lock(b->device);
    memset(a->memory, 7, PILED_UP * 64);
    for (uint32_t i = 0; i < PILED_UP; i++) {
        side_write(a, b, i * 64, 64);
        side_pass_by(a); // it has left then, whichever thread drove
    }
    alb_time due = alb_engine_deadline(b->device->engine); // something always is while a peer is known
    while (alb_clock_now() <= due)
        usleep(100);
    b->device->port.own[0].rx_batch = 1;
    b->device->port.is_behind = false;
    b->device->port.read_at = due + 1 - read_before_ns;
    alb_drive_pump(b->device, 1, due + 1);
}

static void end_with_writes_piled_up(struct pair *pair)
{
    struct side *a = &pair->side[0], *b = &pair->side[1];
    alb_device_unlock(b->device);
    for (uint32_t i = 0; i < PILED_UP; i++)
        assert_int_equal(side_wait(a).status, ALB_WC_SUCCESS);
    assert_memory_equal(a->memory, b->memory, PILED_UP * 64);
    pair_close(pair);
}

// A timer that says that something is late is due, and what it misses lies in a socket, behind other datagrams.
static void alb_drive_pump__reads_all_before_a_timer_judges_after_a_halt(void **state)
{
    struct pair pair;
    pump_with_writes_piled_up(&pair, ALB_NS_PER_MS);
    assert_memory_equal(pair.side[0].memory, pair.side[1].memory, PILED_UP * 64);
    end_with_writes_piled_up(&pair);
}

// Who is not halted and has more to read than one look takes receives as fast as he can. What he has to say about it
// does not wait until he has read all.
static void alb_drive_pump__does_not_read_all_when_looks_follow_each_other(void **state)
{
    struct pair pair;
    pump_with_writes_piled_up(&pair, ALB_NS_PER_MS - 1);
    assert_memory_not_equal(pair.side[0].memory, pair.side[1].memory, PILED_UP * 64);
    end_with_writes_piled_up(&pair);
}

// No thread drives for longer than a sender's timeouts allow: the peer was not silent, its answers were not read. Here
// it is a queue pair of the same device, so that even its answer is still to be given.
static void alb_drive_pump__catches_up_before_a_timer_judges(void **state)
{
    struct alb_device_options *options = pair_options("127.92.0.13");
    struct side a, b;
    side_open(&a, options, ALB_QPT_RC);
    free(options);
    b = a;
    struct alb_qp_init init = {
        .type = ALB_QPT_RC, .send_cq = a.cq, .recv_cq = a.cq, .cap = {.send_wr_max = 1, .send_sge_max = 1}};
    alb_device_lock(a.device);
    assert_int_equal(alb_qp_create(b.pd, &init, &b.qp), 0);
    alb_device_unlock(a.device);
    side_connect(&a, &b, 1, 0); // 10 ms, the least there is
    side_connect(&b, &a, 1, 0);
    memset(a.memory, 7, 64);
    alb_device_lock(a.device);
    side_write_to(&a, (uintptr_t)a.memory + 4096, alb_region_key(a.mr), 0, 64);
    alb_drive_pump(a.device, 1, alb_clock_now()); // it is on its way
    usleep(50 * 1000);
    alb_device_unlock(a.device);
    assert_int_equal(side_wait(&a).status, ALB_WC_SUCCESS);
    alb_device_lock(a.device);
    assert_int_equal(a.memory[4096 + 63], 7);
    assert_int_equal(alb_qp_destroy(b.qp), 0);
    alb_device_unlock(a.device);
    side_close(&a);
}

static void alb_device__writes_over_ipv6(void **state)
{
    struct pair pair;
    struct alb_device_options *options = pair_options("::1");
    struct alb_device *device;
    int error = alb_device_create("roce0", options, &device);
    free(options);
    if (error == EADDRNOTAVAIL)
        skip(); // a host without IPv6
    assert_int_equal(error, 0);
    alb_device_destroy(device);
    pair_open(&pair, "::1", "::1", NULL);
    write_sizes(&pair, side_wait);
    pair_close(&pair);
}

static void alb_device__sends_both_ways(void **state)
{
    struct pair pair;
    pair_open(&pair, "127.92.0.4", "127.92.0.5", NULL);
    for (int round = 0; round < 200; round++) {
        for (int from = 0; from < 2; from++) {
            struct side *a = &pair.side[from], *b = &pair.side[1 - from];
            side_receive(b, 4096, 4096);
            pair_fill(a->memory, 4096, (uint8_t)round);
            side_send(a, 0, 4096);
            assert_int_equal(side_wait(b).status, ALB_WC_SUCCESS);
            assert_memory_equal(a->memory, b->memory + 4096, 4096);
            assert_int_equal(side_wait(a).status, ALB_WC_SUCCESS);
        }
    }
    pair_close(&pair);
}

// What an engine counts has one writer, the token's holder.
static uint64_t counted(struct side *side, const uint64_t *counter)
{
    alb_device_lock(side->device);
    uint64_t count = *counter;
    alb_device_unlock(side->device);
    return count;
}

static void alb_device__faults_lose_nothing(void **state)
{
    struct alb_faults_spec faults;
    char error[ALB_FAULTS_ERROR_MAX];
    struct pair pair;
    const char *spec = is_albedo() // which sends few and large datagrams
                           ? "loss=8%,duplicate=8%,reorder=8%,corrupt=8%,delay=10us..200us"
                           : "loss=1%,duplicate=1%,reorder=1%,corrupt=1%,delay=10us..200us";
    assert_true(alb_faults_parse(spec, &faults, error, sizeof(error)));
    pair_open(&pair, "127.92.0.6", "127.92.0.7", &faults);
    write_sizes(&pair, side_wait);
    const struct alb_board_header *a = pair.side[0].device->board.header, *b = pair.side[1].device->board.header;
    assert_true(alb_edge_counted(&a->edge_stats, ALB_EDGE_fault_lost) > 0);
    assert_true(alb_edge_counted(&a->edge_stats, ALB_EDGE_fault_duplicated) > 0);
    assert_true(alb_edge_counted(&a->edge_stats, ALB_EDGE_fault_corrupted) > 0);
    assert_true(alb_edge_counted(&a->edge_stats, ALB_EDGE_fault_reordered) > 0);
    assert_true(counted(&pair.side[1], &b->device_stats.dropped[ALB_DROP_BAD_ICRC]) > 0);
    assert_true(counted(&pair.side[0], &a->device_stats.sum.counter[ALB_STAT_retransmitted_pkts]) > 0);
    pair_close(&pair);
}

static void alb_device__death_of_the_peer_is_told(void **state)
{
    struct pair pair;
    pair_open(&pair, "127.92.0.8", "127.92.0.9", NULL);
    struct alb_qp_attr attr = {.timeout = 1, .retry_cnt = 1};
    struct side *a = &pair.side[0];
    pair_write_and_check(&pair, 100, side_wait);
    alb_device_lock(a->device);
    assert_int_equal(
        alb_qp_modify(a->qp, &(struct alb_qp_attr){.state = ALB_QPS_RESET}, ALB_QP_STATE, alb_device_now()), 0);
    alb_device_unlock(a->device);
    side_connect(a, &pair.side[1], attr.timeout, attr.retry_cnt);
    struct side gone = pair.side[1];
    side_close(&gone);
    alb_log_set_level(ALB_LOG_ERROR); // the warning about it is expected
    side_write(a, a, 0, 100);
    assert_int_equal(side_wait_idle(a).status, ALB_WC_RETRY_EXC_ERR);
    side_close(a);
}

// A device that has never moved a packet does not destroy its queue pairs at the beginning of time.
static void alb_device_lock__tells_the_engine_the_time(void **state)
{
    struct alb_device_options *options = pair_options("127.92.0.10");
    struct side side;
    char path[] = "/tmp/albedo-device-XXXXXX";
    unsigned long long at = 0;
    close(mkstemp(path));
    strcpy(options->trace_path, path);
    alb_time before = alb_clock_now();
    side_open(&side, options, ALB_QPT_RC);
    side_close(&side);
    FILE *trace = fopen(path, "r");
    assert_int_equal(fscanf(trace, "{\"at\":%llu,\"event\":\"state\"", &at), 1);
    assert_true(at >= before && at <= alb_clock_now());
    fclose(trace);
    unlink(path);
    free(options);
}

static void alb_device_open__shares_by_name(void **state)
{
    struct alb_device_options *options = pair_options("127.92.0.10");
    struct alb_device *first, *second;
    assert_int_equal(alb_device_open("roce1", options, &first), ENODEV);
    assert_int_equal(alb_device_open("roce0", options, &first), 0);
    assert_int_equal(alb_device_open("roce0", options, &second), 0);
    assert_ptr_equal(first, second);
    alb_device_close(second);
    assert_int_equal(alb_device_mtu_bytes(first), 4096);
    assert_non_null(alb_device_gid(first, 0));
    assert_null(alb_device_gid(first, 1));
    assert_true(alb_device_gid_ifindex(first, 0) > 0);
    alb_device_close(first);
    free(options);
}

static void alb_device_open__address_not_local(void **state)
{
    struct alb_device_options *options = pair_options("203.0.113.77");
    struct alb_device *device;
    alb_log_set_level(ALB_LOG_ERROR);
    assert_int_equal(alb_device_open("roce0", options, &device), EADDRNOTAVAIL);
    options->address_count = 0; // a host without a loopback interface
    assert_int_equal(alb_device_open("roce0", options, &device), EADDRNOTAVAIL);
    free(options);
}

// A device that has no descriptor left for its second address gives back what it opened, and nothing of the program's.
static void alb_device_open__without_descriptors(void **state)
{
    struct alb_device_options *options = pair_options("127.92.0.13");
    struct alb_device *device;
    struct rlimit before, tight;
    assert_true(alb_addr_parse("127.92.0.14", &options->addresses[options->address_count++]));
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    int next = open("/dev/null", O_RDONLY);
    if (next == STDIN_FILENO) // it was closed
        next = open("/dev/null", O_RDONLY);
    assert_true(next > STDIN_FILENO);
    tight = before;
    tight.rlim_cur = (rlim_t)next + 1; // one descriptor, which is what looking at the addresses takes
    close(next);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &tight), 0);
    assert_int_equal(alb_device_open("roce0", options, &device), EMFILE);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_true(fcntl(STDIN_FILENO, F_GETFD) >= 0);
    free(options);
}

static void alb_device_open__all_slots_taken(void **state)
{
    static struct alb_socket others[ALB_SLOTS];
    struct alb_device_options *options = pair_options("127.92.0.15");
    struct alb_device *device;
    struct said said;
    char text[512];
    uint8_t slot;
    for (uint32_t i = 0; i < ALB_SLOTS; i++)
        assert_int_equal(alb_slot_claim(options->addresses, 1, &others[i], &slot), 0);
    said_begin(&said);
    int error = alb_device_open("roce0", options, &device);
    said_end(&said, text, sizeof(text));
    assert_int_equal(error, EADDRINUSE);
    assert_non_null(strstr(text, "all 256 process slots"));
    assert_non_null(strstr(text, "4791 to 5046"));
    for (uint32_t i = 0; i < ALB_SLOTS; i++)
        alb_socket_close(&others[i]);
    free(options);
}

// While it is checked for duplicates, say.
static bool says_which_address_cannot_be_bound(void)
{
    network_namespace_shell("ip link add ca type veth peer name cb && ip link set ca up && "
                            "ip address add 10.7.0.1/24 dev ca && ip address add fd01::1/64 dev ca");
    struct alb_device_options *options = pair_options("10.7.0.1");
    struct alb_device *device;
    struct said said;
    char text[512];
    options->address_count = 2;
    assert_true(alb_addr_parse("fd01::1", &options->addresses[1]));
    said_begin(&said);
    int error = alb_device_open("roce0", options, &device);
    said_end(&said, text, sizeof(text));
    free(options);
    return error == EADDRNOTAVAIL && strstr(text, "fd01::1 cannot be bound") && strstr(text, "`ip address`");
}

static void alb_device_open__an_address_that_cannot_be_bound(void **state)
{
    assert_true(network_namespace_run(says_which_address_cannot_be_bound));
}

static bool refuses_random;
ssize_t __real_getrandom(void *bytes, size_t size, unsigned flags);
ssize_t __wrap_getrandom(void *bytes, size_t size, unsigned flags);

// The linker puts it before getrandom (--wrap).
ssize_t __wrap_getrandom(void *bytes, size_t size, unsigned flags)
{
    if (!refuses_random)
        return __real_getrandom(bytes, size, flags);
    errno = ENOSYS;
    return -1;
}

static void alb_device_open__without_random_numbers(void **state)
{
    struct alb_device_options *options = pair_options("127.92.0.15");
    struct alb_device *device;
    struct said said;
    char text[512];
    said_begin(&said);
    refuses_random = true;
    int error = alb_device_open("roce0", options, &device);
    refuses_random = false;
    said_end(&said, text, sizeof(text));
    assert_int_equal(error, ENOSYS);
    assert_non_null(strstr(text, "roce0: getrandom(2): Function not implemented"));
    free(options);
}

// An address of this host that others can reach; false: it has none. Nothing is sent to it.
static bool find_reachable(char *text)
{
    struct ifaddrs *all = NULL;
    bool found = false;
    assert_int_equal(getifaddrs(&all), 0);
    for (const struct ifaddrs *one = all; one && !found; one = one->ifa_next)
        found = one->ifa_addr && one->ifa_addr->sa_family == AF_INET && !(one->ifa_flags & IFF_LOOPBACK) &&
                getnameinfo(one->ifa_addr, sizeof(struct sockaddr_in), text, NI_MAXHOST, NULL, 0, NI_NUMERICHOST) == 0;
    freeifaddrs(all);
    return found;
}

// What foreign peers send arrives at port 4791, also when a program does nothing but poll.
static void alb_device__takes_the_front_while_polled(void **state)
{
    char address[NI_MAXHOST];
    struct pair pair;
    if (!find_reachable(address))
        skip();
    pair_open(&pair, address, address, NULL);
    struct side *owner = &pair.side[0], *other = &pair.side[1];
    const struct alb_edge_stats *edge = &other->device->board.header->edge_stats;
    assert_int_equal(alb_device_slot(other->device), 1);
    atomic_store(&other->device->poller_drives, true);     // for as long as this test lasts
    atomic_store(&other->device->has_foreign_peers, true); // so that it is tried each 50 ms
    usleep(300000);
    assert_int_equal(alb_edge_counted(edge, ALB_EDGE_relay_takeovers), 0); // while somebody has it
    side_close(owner);
    alb_time until = alb_clock_now() + 30 * ALB_NS_PER_S; // it is tried each second at least
    while (alb_edge_counted(edge, ALB_EDGE_relay_takeovers) == 0 && alb_clock_now() < until)
        usleep(1000);
    assert_int_equal(alb_edge_counted(edge, ALB_EDGE_relay_takeovers), 1);
    atomic_store(&other->device->poller_drives, false);
    side_close(other);
}

static void alb_device_resolve__same_host(void **state)
{
    struct alb_device_options *options = pair_options("127.92.0.11");
    struct alb_device *device;
    struct alb_av av = {.sl = 3};
    struct alb_addr peer;
    assert_int_equal(alb_device_open("roce0", options, &device), 0);
    assert_true(alb_addr_parse("127.1.1.1", &peer));
    assert_int_equal(alb_device_resolve(device, 1, &peer, &av), EINVAL);
    assert_int_equal(alb_device_resolve(device, 0, &peer, &av), 0);
    assert_true(av.same_host);
    assert_int_equal(av.sl, 3);
    assert_true(alb_addr_equals(&av.local, &options->addresses[0]));
    assert_true(alb_addr_parse("203.0.113.77", &peer));
    assert_int_equal(alb_device_resolve(device, 0, &peer, &av), 0);
    assert_false(av.same_host);
    assert_true(alb_addr_parse("fd99::1", &peer));
    assert_int_equal(alb_device_resolve(device, 0, &peer, &av), ENETUNREACH);
    alb_device_close(device);
    free(options);
}

// The port of an albedo0 follows from the queue pair number wherever it is, but for groups.
static void alb_device_resolve__albedo0(void **state)
{
    struct alb_device_options *options = pair_options("127.92.0.12");
    struct alb_device *device;
    struct alb_av av = {0};
    struct alb_addr peer;
    assert_int_equal(alb_device_open("albedo0", options, &device), 0);
    assert_true(alb_addr_parse("127.1.1.1", &peer));
    assert_int_equal(alb_device_resolve(device, 0, &peer, &av), 0);
    assert_true(av.same_host && av.peer_has_slots);
    assert_int_equal(av.path_payload_max, ALB_UDP_PAYLOAD_MAX);
    assert_true(alb_addr_parse("203.0.113.77", &peer));
    assert_int_equal(alb_device_resolve(device, 0, &peer, &av), 0);
    assert_true(!av.same_host && av.peer_has_slots);
    assert_true(alb_addr_parse("239.1.2.3", &peer));
    assert_int_equal(alb_device_resolve(device, 0, &peer, &av), 0);
    assert_false(av.peer_has_slots);
    alb_device_close(device);
    free(options);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alb_device__writes_while_polled),
        cmocka_unit_test(alb_device__writes_while_nobody_polls),
        cmocka_unit_test(alb_device__takes_the_front_while_polled),
        cmocka_unit_test(alb_device__writes_over_ipv6),
        cmocka_unit_test(alb_device__sends_both_ways),
        cmocka_unit_test(alb_device__faults_lose_nothing),
        cmocka_unit_test(alb_rx__counts_what_programs_do_not_hear_of),
        cmocka_unit_test(alb_device__death_of_the_peer_is_told),
        cmocka_unit_test(alb_device_lock__tells_the_engine_the_time),
        cmocka_unit_test(alb_device_open__shares_by_name),
        cmocka_unit_test(alb_device_open__address_not_local),
        cmocka_unit_test(alb_device_open__without_descriptors),
        cmocka_unit_test(alb_device_open__all_slots_taken),
        cmocka_unit_test(alb_device_open__an_address_that_cannot_be_bound),
        cmocka_unit_test(alb_device_open__without_random_numbers),
        cmocka_unit_test(alb_device_resolve__same_host),
    };
    const struct CMUnitTest albedo_tests[] = {
        cmocka_unit_test(alb_device__writes_while_polled),
        cmocka_unit_test(alb_device__writes_while_nobody_polls),
        cmocka_unit_test(alb_device__writes_over_ipv6),
        cmocka_unit_test(alb_device__sends_both_ways),
        cmocka_unit_test(alb_device__faults_lose_nothing),
        cmocka_unit_test(alb_rx__counts_what_programs_do_not_hear_of),
        cmocka_unit_test(alb_device__death_of_the_peer_is_told),
        cmocka_unit_test(alb_drive_pump__reads_all_before_a_timer_judges_after_a_halt),
        cmocka_unit_test(alb_drive_pump__does_not_read_all_when_looks_follow_each_other),
        cmocka_unit_test(alb_drive_pump__catches_up_before_a_timer_judges),
        cmocka_unit_test(alb_device_resolve__albedo0),
    };
    int failed = cmocka_run_group_tests_name("device", tests, NULL, NULL);
    pair_device_name = "albedo0";
    return failed + cmocka_run_group_tests_name("device albedo0", albedo_tests, NULL, NULL);
}
