// SPDX-License-Identifier: BSD-2-Clause
// The life of a device, and what is known of its addresses.
#include "device/address.h"
#include "device/crash.h"
#include "device/drain.h"
#include "device/drive.h"
#include "device/leak_checker.h"
#include "device/memory.h"
#include "device/registry.h"
#include "device/report.h"
#include "device/thread.h"
#include "engine/cm.h"

#include "base/log.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

// A software peer may be off its processor for some time slices: waiting less only sends things twice.
#define ACK_TIMEOUT_MIN_NS (10 * ALB_NS_PER_MS)

// csa reckons in round trips; a thread that is off its processor for a moment is neither late nor silent.
#define MARGIN_MIN_NS (100 * ALB_NS_PER_US)
#define PROBE_MIN_NS  (500 * ALB_NS_PER_US)

// DCQCN's timers must be longer than the time between two congestion notifications, else the rate is back before the
// next one comes. NICs send these each 50 us; here as often as a thread looks at its sockets: some 0.4 ms under load,
// 2 ms after a turn without a processor (LESSONS 123).
#define DCQCN_TIMER_NS (2 * ALB_NS_PER_MS)

// Communication ids: listeners, connections and what is left of them. Those not used cost no memory.
#define CM_IDS_MAX 8192

static void take_datagrams(void *context, const struct alb_datagram *datagrams, uint32_t count, alb_time now)
{
    alb_engine_rx(context, datagrams, count, now);
}

static void take_drop(void *context, enum alb_drop reason)
{
    alb_engine_count_drop(context, reason);
}

static void take_path_mtu(void *context, const struct alb_endpoint *peer, uint32_t payload_max, alb_time now)
{
    alb_engine_path_mtu(context, peer, payload_max, now);
}

static void *get_pages(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

static void put_pages(void *memory, size_t bytes)
{
    if (memory)
        munmap(memory, bytes);
}

static int refuse_address(const struct alb_device *device, const struct alb_addr *addr, int error)
{
    char text[ALB_ADDR_TEXT_MAX], reason[ALB_ADDRESS_REASON_MAX];
    if (error == EADDRNOTAVAIL)
        snprintf(reason, sizeof(reason), "%s is not an address of this host", alb_addr_format(addr, text));
    else
        alb_address_explain(error, reason, sizeof(reason));
    alb_log(ALB_LOG_ERROR, "%s: %s", device->name, reason);
    return error;
}

static int learn_addresses(struct alb_device *device, const struct alb_device_options *options)
{
    device->mtu_bytes = ALB_ROCE_PAYLOAD_MAX;
    if (options->address_count > ALB_DEVICE_ADDRESSES_MAX)
        return EINVAL;
    if (options->address_count == 0) {
        alb_log(ALB_LOG_ERROR, "%s: there is no loopback address (`ip link set lo up`), and no other was asked for",
                device->name);
        return EADDRNOTAVAIL;
    }
    for (uint32_t i = 0; i < options->address_count; i++) {
        struct alb_address_info info;
        char text[ALB_ADDR_TEXT_MAX];
        int error = alb_address_find(&options->addresses[i], &info);
        if (error)
            return refuse_address(device, &options->addresses[i], error);
        uint32_t mtu_bytes = alb_address_roce_mtu(&info.addr, info.mtu_bytes);
        device->ifindexes[i] = info.ifindex;
        device->mtu_bytes = ALB_MIN(device->mtu_bytes, mtu_bytes);
        if (mtu_bytes == 0) {
            alb_log(ALB_LOG_ERROR, "%s: the interface of %s has an MTU of %u bytes, too small for any path MTU of RoCE",
                    device->name, alb_addr_format(&info.addr, text), info.mtu_bytes);
            return EADDRNOTAVAIL;
        }
    }
    return 0;
}

// Says which address it was that could not be bound.
static void complain_of_bind(const struct alb_device *device, const struct alb_device_options *options, int error)
{
    for (uint32_t i = 0; i < options->address_count; i++) {
        const struct alb_endpoint any_port = {.addr = options->addresses[i]};
        char text[ALB_ADDR_TEXT_MAX];
        struct alb_socket sock;
        int refusal = alb_socket_open(&sock, &any_port);
        if (!refusal)
            alb_socket_close(&sock);
        if (refusal != error)
            continue;
        alb_log(ALB_LOG_ERROR, "%s: %s cannot be bound: %s; %s", device->name, alb_addr_format(&any_port.addr, text),
                strerror(error),
                error == EADDRNOTAVAIL ? "`ip address` shows whether the host has it, or is still checking it"
                                       : "a sandbox must allow it, or --net (ALBEDO_NET) name other addresses");
        return;
    }
}

static int open_port(struct alb_device *device, const struct alb_device_options *options)
{
    int error = alb_port_open(&device->port, options->addresses, options->address_count);
    if (error == EADDRINUSE)
        alb_log(ALB_LOG_ERROR,
                "%s: all %d process slots are taken: each of UDP ports %d to %d is in use on one of its addresses",
                device->name, ALB_SLOTS, alb_slot_port(0), alb_slot_port(ALB_SLOTS - 1));
    else if (error == EADDRNOTAVAIL || error == EAFNOSUPPORT || error == EACCES || error == EPERM)
        complain_of_bind(device, options, error);
    uint32_t ifindexes[ALB_DEVICE_ADDRESSES_MAX];
    for (uint32_t i = 0; i < ALB_DEVICE_ADDRESSES_MAX; i++)
        ifindexes[i] = device->ifindexes[i];
    return error ? error : alb_port_set_interfaces(&device->port, ifindexes);
}

static int open_files(struct alb_device *device, const struct alb_device_options *options)
{
    int error = 0;
    if (options->pcap_path[0]) {
        error = alb_capture_open(&device->capture, options->pcap_path);
        device->has_capture = !error;
        if (error)
            alb_log(ALB_LOG_ERROR, "%s: capture %s: %s", device->name, options->pcap_path, strerror(error));
    }
    if (!error && options->trace_path[0]) {
        error = alb_trace_file_open(&device->trace, options->trace_path);
        device->has_trace = !error;
        if (error)
            alb_log(ALB_LOG_ERROR, "%s: trace %s: %s", device->name, options->trace_path, strerror(error));
    }
    return error;
}

static int open_board(struct alb_device *device, const struct alb_device_options *options,
                      const struct alb_engine_config *config)
{
    const struct alb_board_identity identity = {
        .device = device->name,
        .slot = device->port.slot,
        .mtu_bytes = device->mtu_bytes,
        .addresses = options->addresses,
        .address_count = options->address_count,
        .faults = &options->faults,
    };
    int error = alb_board_create(&device->board, &identity, config->qp_max);
    if (error)
        return error;
    device->port.paths.ports = device->board.header->path_ports;
    for (uint32_t i = 0; i < options->address_count; i++)
        device->port.paths.ports[i][0] = ALB_ROCE_PORT + device->port.slot;
    alb_directory_enter(&device->directory, &device->board);
    return 0;
}

static int fill_at_random(const struct alb_device *device, void *bytes, size_t size)
{
    if (getrandom(bytes, size, 0) == (ssize_t)size)
        return 0;
    int error = errno;
    alb_log(ALB_LOG_ERROR, "%s: getrandom(2): %s; a sandbox must allow it", device->name, strerror(error));
    return error;
}

static int open_edge(struct alb_device *device, const struct alb_device_options *options)
{
    struct alb_edge_stats *stats = &device->board.header->edge_stats;
    struct alb_siphash_key hash_key;
    uint8_t *buffers = get_pages(ALB_RX_MESSAGES * ALB_RX_BUFFER_BYTES);
    bool icrc_ones = device->kind->icrc_ones; // nothing is to be learnt of peers then
    void *idents = icrc_ones ? NULL : get_pages(alb_idents_bytes());
    int error = buffers && (idents || icrc_ones) ? fill_at_random(device, &hash_key, sizeof(hash_key)) : ENOMEM;
    if (!error)
        error =
            alb_sender_init(&device->sender, &device->port, stats, icrc_ones, &options->faults, options->fault_seed);
    if (error) {
        put_pages(buffers, ALB_RX_MESSAGES * ALB_RX_BUFFER_BYTES);
        put_pages(idents, alb_idents_bytes());
        return error;
    }
    const struct alb_rx_taker taker = {.context = device->engine, .datagrams = take_datagrams, .drop = take_drop};
    device->idents = idents ? alb_idents_init(idents, &hash_key) : NULL;
    alb_rx_init(&device->rx, &taker, stats, device->idents, device->port.slot, buffers);
    device->mtu_watch.ask = alb_path_payload_max;
    device->mtu_watch.tell = take_path_mtu;
    device->mtu_watch.context = device->engine;
    device->rx.capture = device->sender.capture = device->has_capture ? &device->capture : NULL;
    return 0;
}

static void close_edge(struct alb_device *device)
{
    if (!device->rx.buffers)
        return;
    alb_sender_fini(&device->sender);
    put_pages(device->rx.buffers, ALB_RX_MESSAGES * ALB_RX_BUFFER_BYTES);
    put_pages(device->idents, alb_idents_bytes());
    device->rx.buffers = NULL;
}

// Its numbers are others than those of faults to datagrams, so that asking for one changes nothing about the other.
static int open_corruption(struct alb_device *device, const struct alb_device_options *options)
{
    uint64_t *counters = device->board.header->edge_stats.counter;
    const struct alb_corruption_spec *spec = &options->faults.corruption;
    if (alb_corruption_spec_is_none(spec))
        return 0;
    device->corruption = get_pages(sizeof(*device->corruption));
    if (!device->corruption)
        return ENOMEM;
    alb_corruption_init(device->corruption, spec, ~options->fault_seed, counters + ALB_EDGE_fault_source);
    return 0;
}

static int open_engine(struct alb_device *device, const struct alb_device_options *options)
{
    struct alb_engine_config config;
    alb_engine_config_default(&config);
    config.memory = alb_device_memory();
    config.slot = device->port.slot;
    alb_device_configure(device->kind->name, options, &config);
    device->port.paths.limit = device->kind->has_choice ? config.path_max : 1;
    config.group_max = ALB_GROUPS_MAX;
    config.mtu_max_bytes = device->mtu_bytes;
    config.sends_bursts = alb_faults_spec_spares_datagrams(&options->faults); // as alb_sender_init has it
    config.ack_timeout_min_ns = ACK_TIMEOUT_MIN_NS;
    config.csa_margin_min_ns = MARGIN_MIN_NS;
    config.csa_probe_min_ns = PROBE_MIN_NS;
    config.dcqcn.increase_ns = config.dcqcn.alpha_ns = DCQCN_TIMER_NS;
    config.receive_budget_bytes = alb_socket_receive_bytes(&device->port.own[0]);
    config.trace_records = device->has_trace ? ALB_TRACE_FILE_RECORDS : 0;
    int error = fill_at_random(device, config.seed, sizeof(config.seed));
    if (!error)
        error = open_board(device, options, &config);
    if (error)
        return error;
    error = open_corruption(device, options);
    if (error)
        return error;
    config.corruption = device->corruption;
    config.stats = &device->board.header->device_stats;
    config.qp_stats = device->board.qps;
    config.peer_stats = device->board.peers;
    config.peer_stats_max = ALB_BOARD_PEER_MAX;
    error = alb_engine_create(&config, &device->engine);
    return error ? error : alb_cm_create(device->engine, CM_IDS_MAX, NULL);
}

// Undoes as much of open_parts as was done.
static void close_parts(struct alb_device *device)
{
    alb_thread_stop(device);
    close_edge(device);
    if (device->engine) {
        alb_cm_destroy(device->engine);
        alb_engine_destroy(device->engine);
    }
    put_pages(device->corruption, sizeof(*device->corruption));
    alb_directory_leave(&device->directory);
    if (device->board.header)
        alb_board_destroy(&device->board);
    if (device->has_trace)
        alb_trace_file_close(&device->trace);
    if (device->has_capture)
        alb_capture_close(&device->capture);
    alb_port_close(&device->port);
}

static int open_parts(struct alb_device *device, const struct alb_device_options *options)
{
    if (options->left_out[0])
        alb_log(ALB_LOG_WARNING, "%s: %s", device->name, options->left_out);
    int error = learn_addresses(device, options);
    if (!error)
        error = open_port(device, options);
    if (!error)
        error = open_files(device, options);
    if (!error)
        error = open_engine(device, options);
    if (!error)
        error = open_edge(device, options);
    if (error)
        return error;
    error = alb_thread_start(device);
    if (error)
        alb_log(ALB_LOG_ERROR, "%s: no thread for it: %s; `ulimit -u` bounds how many there may be", device->name,
                strerror(error));
    return error;
}

static void give_back(struct alb_device *device)
{
    close_parts(device);
    alb_rouse_fini(&device->rouse);
    alb_leak_checker_hide(device, sizeof(*device));
    put_pages(device, sizeof(*device));
}

int alb_device_create(const char *name, const struct alb_device_options *options, struct alb_device **out)
{
    const struct alb_device_kind *kind = alb_device_kind_find(name);
    if (!kind)
        return ENODEV;
    alb_crash_init();
    struct alb_device *device = get_pages(sizeof(*device));
    if (!device)
        return ENOMEM;
    alb_leak_checker_show(device, sizeof(*device));
    device->options = *options; // the engine goes on referring to them
    device->kind = kind;
    device->name = kind->name;
    device->directory.fd = -1;
    device->port.epoll_fd = device->port.rouses_fd = device->port.wake_fd = -1;
    device->port.carrier.fd = device->port.links.fd = -1;
    alb_token_init(&device->token);
    alb_rouse_init(&device->rouse);
    atomic_init(&device->deadline, ALB_TIME_NEVER);
    int error = open_parts(device, &device->options);
    if (error) {
        give_back(device);
        return error;
    }
    *out = device;
    return 0;
}

void alb_device_destroy(struct alb_device *device)
{
    alb_device_drain(device);
    alb_thread_stop(device); // it counts, too
    if (device->options.stats_path[0])
        alb_report_to_file(&device->board, device->options.stats_path);
    give_back(device);
}

// ---- what is known of it --------------------------------------------------------------------------------------------

struct alb_engine *alb_device_engine(struct alb_device *device)
{
    return device->engine;
}

alb_time alb_device_now(void)
{
    return alb_clock_now();
}

uint8_t alb_device_slot(const struct alb_device *device)
{
    return device->port.slot;
}

uint32_t alb_device_mtu_bytes(const struct alb_device *device)
{
    return device->mtu_bytes;
}

const struct alb_addr *alb_device_gid(const struct alb_device *device, uint32_t index)
{
    return index < device->port.address_count ? &device->port.addresses[index] : NULL;
}

uint32_t alb_device_gid_ifindex(const struct alb_device *device, uint32_t index)
{
    return index < device->port.address_count ? device->ifindexes[index] : 0;
}

int alb_device_resolve(struct alb_device *device, uint32_t gid_index, const struct alb_addr *peer, struct alb_av *av)
{
    const struct alb_addr *local = alb_device_gid(device, gid_index);
    if (!local)
        return EINVAL;
    if (alb_addr_is_ipv4(local) != alb_addr_is_ipv4(peer))
        return ENETUNREACH;
    av->local = *local;
    av->peer = *peer;
    av->gid_index = (uint8_t)gid_index;
    av->same_host = alb_address_is_local(peer);
    if (device->kind->finds_path_mtu)
        av->path_payload_max = alb_path_payload_max(local, peer);
    av->peer_has_slots = device->kind->peers_have_slots && !alb_addr_is_multicast(peer);
    if (!av->same_host && !alb_addr_is_multicast(peer)) // a group has no need of port 4791 of ours
        atomic_store_explicit(&device->has_foreign_peers, true, memory_order_relaxed);
    return 0;
}

void alb_device_set_event_handler(struct alb_device *device,
                                  void (*on_event)(void *context, const struct alb_event *event), void *context)
{
    alb_token_lock(&device->token);
    device->on_event = on_event;
    device->event_context = context;
    alb_drive_release(device);
}

void alb_device_set_port_handler(struct alb_device *device, void (*on_port)(void *context, bool is_up), void *context)
{
    alb_token_lock(&device->token);
    device->on_port = on_port;
    device->port_context = context;
    alb_drive_release(device);
}

bool alb_device_is_up(const struct alb_device *device)
{
    bool is_up = atomic_load_explicit(&device->was_up, memory_order_relaxed);
    if (device->port.links.fd < 0) // else the thread knows, and the caller may be in another network namespace by now
        alb_address_any_is_up(device->port.addresses, device->port.address_count, &is_up);
    return is_up;
}

bool alb_device_is_forked(const struct alb_device *device)
{
    return atomic_load_explicit(&device->is_forked, memory_order_relaxed);
}
