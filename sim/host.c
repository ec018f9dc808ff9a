// SPDX-License-Identifier: BSD-2-Clause
#include "sim/host.h"

#include "sim/ecmp.h"
#include "sim/network.h"
#include "sim/packet_gaps.h"

#include <stdlib.h>
#include <string.h>

enum {
    IPV4_UDP_BYTES = 28,
    IPV6_UDP_BYTES = 48,
    HOT_PACKETS = 31, // after so many it is looked up anew what an engine needs
    LOAD_LINES = 3,   // of a packet without payload
    FRAME_BYTES = 38, // Ethernet: preamble 8, header 14, FCS 4, gap 12
};

#define RECEIVED (1u << 31) // in the trace hash, beside the number of the host

_Static_assert(offsetof(struct alb_sim_host, hot) == ALB_SIM_HOST_LINES * ALB_SIM_LINE_BYTES &&
                   sizeof(((struct alb_sim_host *)0)->hot[0]) == (ALB_SIM_HOT_LINES + 1) * ALB_SIM_LINE_BYTES,
               "what every packet needs, and behind it what the engine does");

// ---- life -----------------------------------------------------------------------------------------------------------

void alb_sim_host_config_default(struct alb_sim_host_config *config, const struct alb_addr *addr)
{
    *config = (struct alb_sim_host_config){.addr = *addr,
                                           .burst_segments_max = 1,
                                           .ahead_bytes = 16384,
                                           .batch = ALB_SIM_BATCH_MAX,
                                           .has_trace_hashed = true};
    alb_engine_config_default(&config->engine);
    config->engine.region_max = 4096;
    config->engine.qp_max = 1024;
    config->engine.peer_max = 64;
    config->engine.csa_pool_bytes = 2 << 20;
    config->engine.txn_staging_bytes = 1 << 20;
    config->engine.txn_record_max = 1024;
    config->engine.csa_early_bytes_max = 1 << 20;
}

static void on_wake(struct alb_sim_event *event, alb_sim_time now);
static void wake_soon(const struct alb_sim_event *event, uint32_t stage);
static void soon(struct alb_sim_node *node, const struct alb_sim_packet *packet);
static void on_poll(struct alb_sim_event *event, alb_sim_time now);
static void receive(struct alb_sim_node *node, struct alb_sim_packet *packet, alb_sim_time now);
static void on_departed(struct alb_sim_node *node, struct alb_sim_link *link, struct alb_sim_packet *packet,
                        alb_sim_time now);

static int create_engine(struct alb_sim_host *host)
{
    for (size_t i = 0; i < sizeof(host->config.seed); i++)
        host->config.seed[i] = (uint8_t)alb_prng_u64(&host->network->prng);
    return alb_engine_create(&host->config, &host->engine);
}

int alb_sim_host_init(struct alb_sim_host *host, struct alb_sim_network *network,
                      const struct alb_sim_host_config *config)
{
    *host = (struct alb_sim_host){
        .node = {receive, on_departed, soon},
        .network = network,
        .addr = config->addr,
        .port = (uint16_t)(ALB_ROCE_PORT + config->engine.slot),
        .is_csa = strcmp(config->engine.transport, "csa") == 0,
        .ahead_bytes = config->ahead_bytes,
        .poll_delay = config->poll_delay,
        .has_trace_hashed = config->has_trace_hashed,
        .burst_segments_max = config->burst_segments_max,
        .batch = (uint8_t)config->batch,
        .wake_at = ALB_SIM_NEVER,
        .wake_due = ALB_SIM_NEVER,
    };
    alb_sim_memory_init(&host->memory);
    host->memory.huge = network->huge;
    alb_sim_event_init(&host->wake, on_wake);
    host->wake.soon = wake_soon;
    alb_sim_event_init(&host->poll, on_poll);
    host->config = config->engine;
    host->config.memory = alb_sim_memory_interface(&host->memory);
    host->config.stats = &host->stats;
    host->config.csa_payload_bytes = ALB_MIN(host->config.csa_payload_bytes, network->packets.packet_bytes_max & ~3u);
    int error = create_engine(host);
    if (error)
        return error;
    host->number = network->host_count++;
    alb_list_push_back(&network->hosts, &host->link);
    return 0;
}

static void destroy_engine(struct alb_sim_host *host)
{
    alb_sim_queue_cancel(&host->network->queue, &host->wake);
    alb_sim_queue_cancel(&host->network->queue, &host->poll);
    while (host->inbox.first)
        alb_sim_packet_put(&host->network->packets, alb_sim_line_pop(&host->inbox));
    if (host->engine)
        alb_engine_destroy(host->engine);
    host->engine = NULL;
    alb_assert(host->memory.blocks == 0 && host->memory.bytes == 0);
}

int alb_sim_host_restart(struct alb_sim_host *host)
{
    destroy_engine(host);
    host->icrc_peer_count = 0;
    return create_engine(host);
}

void alb_sim_host_fini(struct alb_sim_host *host)
{
    alb_list_remove(&host->link);
    destroy_engine(host);
    free(host->icrc_peers);
}

alb_time alb_sim_host_now(const struct alb_sim_host *host)
{
    return alb_sim_to_ns(host->network->queue.now);
}

// ---- sending --------------------------------------------------------------------------------------------------------

// Of the host with that address: those of a cluster are 10.0.0.1 and up, in order.
static uint32_t number_of(const struct alb_addr *addr)
{
    const uint8_t *bytes = addr->bytes;
    if (!alb_addr_is_ipv4(addr) || bytes[12] != 10)
        return ALB_SIM_NOWHERE;
    return ((uint32_t)bytes[13] << 16 | (uint32_t)bytes[14] << 8 | bytes[15]) - 1;
}

static uint32_t dest_qpn_of(const struct alb_sim_packet *packet)
{
    const uint8_t *bth = alb_sim_load(packet)->bytes;
    return (uint32_t)bth[5] << 16 | (uint32_t)bth[6] << 8 | bth[7];
}

static void ask_for_more(struct alb_sim_host *host, alb_sim_time now);

static void on_fetched_to_send(struct alb_sim_event *event, alb_sim_time now)
{
    struct alb_sim_packet *packet = ALB_CONTAINER_OF(event, struct alb_sim_packet, event);
    struct alb_sim_host *host = ALB_CONTAINER_OF(packet->on->feeder, struct alb_sim_host, node);
    host->rnic_bytes -= packet->wire_bytes;
    alb_sim_link_send(host->out, packet, now);
    ask_for_more(host, now);
}

// It waits for the context of its queue pair, or for those before it.
static void fetch_to_send(struct alb_sim_host *host, struct alb_sim_packet *packet, alb_sim_time now)
{
    alb_sim_time at = alb_rnic_out(host->rnic, packet->to, dest_qpn_of(packet), now);
    if (at == now && host->rnic_bytes == 0) {
        alb_sim_link_send(host->out, packet, now);
        return;
    }
    host->rnic_bytes += packet->wire_bytes;
    packet->on = host->out;
    packet->event.fire = on_fetched_to_send;
    alb_sim_queue_schedule(&host->network->queue, &packet->event, at);
}

static void send_segment(struct alb_sim_host *host, const struct alb_burst *burst, const struct alb_endpoint *source,
                         const struct alb_segment *segment, alb_sim_time now)
{
    struct alb_sim_network *network = host->network;
    alb_assert(segment->length <= network->packets.packet_bytes_max);
    struct alb_sim_packet *packet =
        alb_sim_packet_of(&network->packets, &network->tx, segment, !network->carries_payload);
    struct alb_sim_load *load = alb_sim_load(packet);
    load->source = *source;
    load->destination = burst->peer;
    alb_assert(burst->path <= UINT8_MAX);
    packet->path = (uint8_t)burst->path;
    packet->traffic_class = burst->traffic_class;
    packet->is_cut = burst->may_be_cut;
    packet->hop_limit = burst->hop_limit ? burst->hop_limit : 64;
    packet->flow_hash = alb_ecmp_hash(source, &burst->peer);
    packet->to = number_of(&burst->peer.addr);
    packet->wire_bytes =
        load->length + FRAME_BYTES + (alb_addr_is_ipv4(&source->addr) ? IPV4_UDP_BYTES : IPV6_UDP_BYTES);
    alb_sim_note(&host->trace_hash, now, host->number, load->bytes, load->stored_bytes);
    if (host->capture)
        alb_sim_capture_add(host->capture, packet, now);
    host->sent++;
    if (!host->out)
        alb_sim_packet_put(&network->packets, packet);
    else if (host->rnic)
        fetch_to_send(host, packet, now);
    else
        alb_sim_link_send(host->out, packet, now);
}

static void send_burst(struct alb_sim_host *host, const struct alb_burst *burst, alb_sim_time now)
{
    struct alb_endpoint source = burst->local;
    if (source.port == 0)
        source.port = burst->path ? (uint16_t)(ALB_SIM_PATH_PORT + burst->path) : host->port;
    if (host->network->carries_payload)
        alb_icrc_seal(&host->sent_flow, &host->network->tx, burst, &source,
                      host->is_csa ? ALB_ICRC_IDENT_ONES : ALB_ICRC_IDENT_ZERO);
    for (uint32_t i = 0; i < burst->segment_count; i++)
        send_segment(host, burst, &source, &host->network->tx.segments[burst->segment_first + i], now);
}

static bool is_far_ahead(const struct alb_sim_host *host)
{
    return host->out && host->ahead_bytes && host->out->waiting_bytes + host->rnic_bytes >= host->ahead_bytes;
}

// True if the engine has nothing more to send now.
static bool send_all(struct alb_sim_host *host, alb_sim_time now)
{
    struct alb_tx *tx = &host->network->tx;
    tx->burst_segments_max = host->burst_segments_max;
    tx->burst_capacity = host->batch;
    while (!is_far_ahead(host)) {
        if (alb_engine_tx(host->engine, tx, alb_sim_to_ns(now)) == 0)
            return true;
        for (uint32_t i = 0; i < tx->burst_count; i++)
            send_burst(host, &tx->bursts[i], now);
    }
    return !alb_engine_wants_tx(host->engine);
}

// ---- what the engine will need --------------------------------------------------------------------------------------

static void fetch_hot(const struct alb_engine_hot *hot)
{
    for (uint32_t i = 0; i < hot->line_count; i++)
        alb_sim_fetch(hot->lines[i], 1);
}

// For packets of a kind, once for all those of a window that is passed node by node.
static void fetch_for(struct alb_sim_host *host, bool is_report)
{
    const struct alb_sim_windows *windows = &host->network->queue.windows;
    uint32_t until = (uint32_t)alb_sim_to_ns(windows->ends[0]);
    if (windows->by_node && host->fetched_until[is_report] == until)
        return;
    host->fetched_until[is_report] = until;
    fetch_hot(&host->hot[is_report].of);
}

static void soon(struct alb_sim_node *node, const struct alb_sim_packet *packet)
{
    struct alb_sim_host *host = ALB_CONTAINER_OF(node, struct alb_sim_host, node);
    if (!packet) {
        if (host->waits_for_link)
            fetch_for(host, true);
        return;
    }
    bool is_report = alb_sim_packet_is_report(packet);
    const struct alb_engine_hot *hot = &host->hot[is_report].of;
    alb_sim_fetch(&alb_sim_load(packet)->source, LOAD_LINES);
    fetch_for(host, is_report);
    if (hot->paths && packet->path < hot->path_count)
        alb_sim_fetch((const char *)hot->paths + packet->path * hot->path_bytes, 1);
}

static void wake_soon(const struct alb_sim_event *event, uint32_t stage)
{
    struct alb_sim_host *host = ALB_CONTAINER_OF(event, struct alb_sim_host, wake);
    if (stage == 1)
        alb_sim_fetch_host(&host->node, true);
    else if (stage == 2 && host->wake_at <= host->wake_due)
        fetch_for(host, true);
}

// ---- the engine's turn ----------------------------------------------------------------------------------------------

static void drain_trace(struct alb_sim_host *host)
{
    struct alb_trace_record record;
    char line[ALB_TRACE_LINE_MAX];
    while (alb_engine_trace(host->engine, &record)) {
        if (host->has_trace_hashed)
            alb_sim_note(&host->trace_hash, record.at, record.kind ^ record.qpn, &record.psn, sizeof(record.psn));
        if (host->trace)
            fwrite(line, 1, alb_trace_format(&record, line), host->trace);
    }
}

static void drain_events(struct alb_sim_host *host)
{
    struct alb_event event;
    while (alb_engine_event(host->engine, &event)) {
        host->events[event.type]++;
        if (event.type == ALB_EVENT_QP_FAILED)
            host->failure = event.failure;
        if (host->on_event)
            host->on_event(host, &event);
    }
}

// The event is moved only to an earlier moment: most deadlines are put off before they are due.
static void wake_at(struct alb_sim_host *host, alb_sim_time at)
{
    host->wake_at = at;
    bool is_scheduled = alb_sim_event_is_scheduled(&host->wake);
    if (at == ALB_SIM_NEVER) {
        alb_sim_queue_cancel(&host->network->queue, &host->wake);
    } else if (!is_scheduled || at < host->wake_due) {
        host->wake_due = at;
        alb_sim_queue_schedule_for(&host->network->queue, &host->wake, at, host->sim_node);
    }
}

static void run(struct alb_sim_host *host, alb_sim_time now)
{
    alb_time now_ns = alb_sim_to_ns(now);
    host->is_running = true;
    host->memory.is_data_path = true;
    alb_engine_bells(host->engine, now_ns);
    if (alb_engine_deadline(host->engine) <= now_ns)
        alb_engine_tick(host->engine, now_ns);
    host->waits_for_link = !send_all(host, now);
    host->memory.is_data_path = false;
    host->is_running = false;
    drain_trace(host);
    drain_events(host);
    wake_at(host, ALB_MAX(alb_sim_from_ns(alb_engine_deadline(host->engine)), now));
    if (host->after)
        host->after(host, now);
}

static void on_wake(struct alb_sim_event *event, alb_sim_time now)
{
    struct alb_sim_host *host = ALB_CONTAINER_OF(event, struct alb_sim_host, wake);
    if (host->wake_at > now)
        wake_at(host, host->wake_at);
    else
        run(host, now);
}

void alb_sim_host_poke(struct alb_sim_host *host)
{
    run(host, host->network->queue.now);
}

void alb_sim_host_ring(struct alb_sim_host *host)
{
    wake_at(host, host->network->queue.now);
}

// There may be room for what the engine holds back.
static void ask_for_more(struct alb_sim_host *host, alb_sim_time now)
{
    if (host->waits_for_link && !host->is_running &&
        host->out->waiting_bytes + host->rnic_bytes <= host->ahead_bytes / 2)
        run(host, now);
}

static void on_departed(struct alb_sim_node *node, struct alb_sim_link *link, struct alb_sim_packet *packet,
                        alb_sim_time now)
{
    ask_for_more(ALB_CONTAINER_OF(node, struct alb_sim_host, node), now);
}

void alb_sim_host_set_out(struct alb_sim_host *host, struct alb_sim_link *out)
{
    host->out = out;
    out->feeder = &host->node;
}

// ---- receiving ------------------------------------------------------------------------------------------------------

static struct alb_icrc_peer *icrc_peer(struct alb_sim_host *host, const struct alb_addr *addr)
{
    for (uint32_t i = 0; i < host->icrc_peer_count; i++)
        if (alb_addr_equals(&host->icrc_peers[i].addr, addr))
            return &host->icrc_peers[i].state;
    host->icrc_peers = realloc(host->icrc_peers, (host->icrc_peer_count + 1) * sizeof(*host->icrc_peers));
    alb_assert(host->icrc_peers);
    struct alb_sim_icrc_peer *peer = &host->icrc_peers[host->icrc_peer_count++];
    *peer = (struct alb_sim_icrc_peer){.addr = *addr};
    return &peer->state;
}

// True if the ICRC is good. What carries no payload has none; then the link says what it did.
static bool check_icrc(struct alb_sim_host *host, const struct alb_sim_packet *packet,
                       const struct alb_datagram *datagram, alb_time now)
{
    uint16_t identification = 0;
    if (!host->network->carries_payload)
        return !packet->is_corrupt;
    if (host->is_csa)
        return alb_icrc_check_ones(&host->received_flow, datagram);
    return alb_icrc_check(&host->received_flow, datagram, icrc_peer(host, &alb_sim_load(packet)->source.addr),
                          &identification, now);
}

// To the engine, which runs afterwards.
static void hand_over(struct alb_sim_host *host, struct alb_sim_packet *packet, alb_sim_time now)
{
    const struct alb_sim_load *load = alb_sim_load(packet);
    struct alb_datagram datagram = {
        .peer = load->source,
        .local = load->destination,
        .traffic_class = packet->traffic_class,
        .hop_limit = packet->hop_limit,
        .bytes = alb_sim_packet_bytes(packet, host->network->scratch, !host->config.has_no_payload),
        .length = load->length,
    };
    host->memory.is_data_path = true;
    bool is_cut = packet->is_trimmed && load->length > ALB_SIM_TRIM_TO;
    if (is_cut && packet->is_corrupt) { // the check of the frame, as there is no ICRC left
        alb_engine_count_drop(host->engine, ALB_DROP_BAD_ICRC);
    } else if (is_cut) {
        host->trimmed++;
        datagram.length = ALB_SIM_TRIM_TO;
        alb_engine_rx_trimmed(host->engine, &datagram, alb_sim_to_ns(now));
    } else if (check_icrc(host, packet, &datagram, alb_sim_to_ns(now))) {
        datagram.length -= ALB_ICRC_BYTES;
        alb_engine_rx(host->engine, &datagram, 1, alb_sim_to_ns(now));
        if (host->hot_age++ % HOT_PACKETS == 0)
            alb_engine_hot(host->engine, &host->hot[alb_sim_packet_is_report(packet)].of);
    } else {
        alb_engine_count_drop(host->engine, ALB_DROP_BAD_ICRC);
    }
    host->memory.is_data_path = false;
    alb_sim_packet_put(&host->network->packets, packet);
}

static void on_poll(struct alb_sim_event *event, alb_sim_time now)
{
    struct alb_sim_host *host = ALB_CONTAINER_OF(event, struct alb_sim_host, poll);
    while (host->inbox.first)
        hand_over(host, alb_sim_line_pop(&host->inbox), now);
    run(host, now);
}

static void deliver(struct alb_sim_host *host, struct alb_sim_packet *packet, alb_sim_time now)
{
    if (host->poll_delay == 0) {
        hand_over(host, packet, now);
        run(host, now);
        return;
    }
    alb_sim_line_push(&host->inbox, packet);
    if (!alb_sim_event_is_scheduled(&host->poll))
        alb_sim_queue_schedule(&host->network->queue, &host->poll, now + host->poll_delay);
}

static void on_fetched_to_receive(struct alb_sim_event *event, alb_sim_time now)
{
    struct alb_sim_packet *packet = ALB_CONTAINER_OF(event, struct alb_sim_packet, event);
    struct alb_sim_host *host = ALB_CONTAINER_OF(packet->on->to, struct alb_sim_host, node);
    host->rnic_waiting--;
    deliver(host, packet, now);
}

static void receive(struct alb_sim_node *node, struct alb_sim_packet *packet, alb_sim_time now)
{
    struct alb_sim_host *host = ALB_CONTAINER_OF(node, struct alb_sim_host, node);
    alb_sim_note(&host->trace_hash, now, RECEIVED | host->number, NULL, 0);
    host->received++;
    if (host->capture)
        alb_sim_capture_add(host->capture, packet, now);
    alb_sim_time at = host->rnic ? alb_rnic_in(host->rnic, dest_qpn_of(packet) & 0xffff, now) : now;
    if (at == now && host->rnic_waiting == 0) {
        deliver(host, packet, now);
        return;
    }
    host->rnic_waiting++;
    packet->event.fire = on_fetched_to_receive;
    alb_sim_queue_schedule(&host->network->queue, &packet->event, at);
}
