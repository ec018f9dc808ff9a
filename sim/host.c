// SPDX-License-Identifier: BSD-2-Clause
#include "sim/host.h"

#include "sim/network.h"

#include <stdlib.h>
#include <string.h>

enum {
    BURSTS = 16,
    SEGMENTS = 64,
    IOVS = SEGMENTS * 8 + ALB_MAX_SGE,
    SEGMENT_BYTES = 1024, // headers of what is gathered into one, and what is copied between them
    HEADER_BYTES = ALB_ROCE_HEADER_MAX + 8,
    IPV4_UDP_BYTES = 28,
    IPV6_UDP_BYTES = 48,
    FRAME_BYTES = 38, // Ethernet: preamble 8, header 14, FCS 4, gap 12
};

// ---- life
// --------------------------------------------------------------------------------------------------------------

void alb_sim_host_config_default(struct alb_sim_host_config *config, const struct alb_addr *addr)
{
    *config = (struct alb_sim_host_config){.addr = *addr, .burst_segments_max = 1, .ahead_bytes = 16384};
    alb_engine_config_default(&config->engine);
    config->engine.region_max = 4096;
    config->engine.qp_max = 1024;
    config->engine.peer_max = 64;
    config->engine.csa_pool_bytes = 2 << 20;
    config->engine.csa_early_bytes_max = 1 << 20;
}

static void init_tx(struct alb_sim_host *host, uint32_t burst_segments_max)
{
    size_t bursts = BURSTS * sizeof(struct alb_burst);
    size_t segments = SEGMENTS * sizeof(struct alb_segment);
    size_t iovs = IOVS * sizeof(struct iovec);
    host->tx_memory = calloc(1, iovs + bursts + segments + SEGMENTS * SEGMENT_BYTES);
    alb_assert(host->tx_memory);
    host->tx = (struct alb_tx){
        .iov = (struct iovec *)host->tx_memory,
        .bursts = (struct alb_burst *)(host->tx_memory + iovs),
        .segments = (struct alb_segment *)(host->tx_memory + iovs + bursts),
        .bytes = host->tx_memory + iovs + bursts + segments,
        .iov_capacity = IOVS,
        .burst_capacity = BURSTS,
        .segment_capacity = SEGMENTS,
        .bytes_capacity = SEGMENTS * SEGMENT_BYTES,
        .burst_segments_max = burst_segments_max,
        .burst_bytes_max = 65507,
    };
}

static void on_wake(struct alb_sim_event *event, alb_sim_time now);
static void receive(struct alb_sim_node *node, struct alb_sim_packet *packet, alb_sim_time now);

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
        .node.receive = receive,
        .network = network,
        .addr = config->addr,
        .port = (uint16_t)(ALB_ROCE_PORT + config->engine.slot),
        .is_csa = strcmp(config->engine.transport, "csa") == 0,
        .ahead_bytes = config->ahead_bytes,
    };
    alb_sim_memory_init(&host->memory);
    alb_sim_event_init(&host->wake, on_wake);
    host->config = config->engine;
    host->config.memory = alb_sim_memory_interface(&host->memory);
    host->config.stats = &host->stats;
    host->config.csa_payload_bytes = ALB_MIN(host->config.csa_payload_bytes, network->packets.packet_bytes_max & ~3u);
    int error = create_engine(host);
    if (error)
        return error;
    init_tx(host, config->burst_segments_max);
    host->scratch = calloc(1, network->packets.packet_bytes_max);
    alb_assert(host->scratch);
    host->number = network->host_count++;
    alb_list_push_back(&network->hosts, &host->link);
    return 0;
}

static void destroy_engine(struct alb_sim_host *host)
{
    alb_sim_queue_cancel(&host->network->queue, &host->wake);
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
    free(host->tx_memory);
    free(host->scratch);
    free(host->icrc_peers);
}

alb_time alb_sim_host_now(const struct alb_sim_host *host)
{
    return alb_sim_to_ns(host->network->queue.now);
}

// ---- sending
// -----------------------------------------------------------------------------------------------------------

static void copy_segment(struct alb_sim_packet *packet, const struct alb_tx *tx, const struct alb_segment *segment,
                         bool with_payload)
{
    uint32_t count = with_payload ? segment->iov_count : 1;
    packet->stored_bytes = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct iovec *iov = &tx->iov[segment->iov_first + i];
        memcpy(packet->bytes + packet->stored_bytes, iov->iov_base, iov->iov_len);
        packet->stored_bytes += (uint32_t)iov->iov_len;
    }
    packet->length = segment->length;
}

static void send_segment(struct alb_sim_host *host, const struct alb_burst *burst, const struct alb_endpoint *source,
                         const struct alb_segment *segment, alb_sim_time now)
{
    struct alb_sim_network *network = host->network;
    struct alb_sim_packet *packet = alb_sim_packet_get(&network->packets);
    alb_assert(segment->length <= network->packets.packet_bytes_max);
    packet->source = *source;
    packet->destination = burst->peer;
    packet->path = burst->path;
    packet->traffic_class = burst->traffic_class;
    packet->is_cut = burst->fragment_bytes != 0;
    packet->hop_limit = burst->hop_limit ? burst->hop_limit : 64;
    copy_segment(packet, &host->tx, segment, network->carries_payload);
    packet->wire_bytes =
        packet->length + FRAME_BYTES + (alb_addr_is_ipv4(&source->addr) ? IPV4_UDP_BYTES : IPV6_UDP_BYTES);
    alb_sim_network_note(network, now, host->number, packet->bytes, packet->stored_bytes);
    if (host->capture)
        alb_sim_capture_add(host->capture, packet, now);
    if (host->out)
        alb_sim_link_send(host->out, packet, now);
    else
        alb_sim_packet_put(&network->packets, packet);
}

static void send_burst(struct alb_sim_host *host, const struct alb_burst *burst, alb_sim_time now)
{
    struct alb_endpoint source = burst->local;
    if (source.port == 0)
        source.port = burst->path ? (uint16_t)(ALB_SIM_PATH_PORT + burst->path) : host->port;
    if (host->network->carries_payload)
        alb_icrc_seal(&host->sent_flow, &host->tx, burst, &source,
                      host->is_csa ? ALB_ICRC_IDENT_ONES : ALB_ICRC_IDENT_ZERO);
    for (uint32_t i = 0; i < burst->segment_count; i++)
        send_segment(host, burst, &source, &host->tx.segments[burst->segment_first + i], now);
}

static bool is_far_ahead(const struct alb_sim_host *host, alb_sim_time now)
{
    return host->out && host->ahead_bytes && alb_sim_link_queued_bytes(host->out, now) >= host->ahead_bytes;
}

// True if the engine has nothing more to send now.
static bool send_all(struct alb_sim_host *host, alb_sim_time now)
{
    while (!is_far_ahead(host, now)) {
        if (alb_engine_tx(host->engine, &host->tx, alb_sim_to_ns(now)) == 0)
            return true;
        for (uint32_t i = 0; i < host->tx.burst_count; i++)
            send_burst(host, &host->tx.bursts[i], now);
    }
    return !alb_engine_wants_tx(host->engine);
}

// ---- the engine's turn
// -------------------------------------------------------------------------------------------------

static void drain_trace(struct alb_sim_host *host)
{
    struct alb_trace_record record;
    char line[ALB_TRACE_LINE_MAX];
    while (alb_engine_trace(host->engine, &record)) {
        alb_sim_network_note(host->network, record.at, record.kind ^ record.qpn, &record.psn, sizeof(record.psn));
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

static void schedule_wake(struct alb_sim_host *host, bool sent_all, alb_sim_time now)
{
    alb_sim_time at = alb_sim_from_ns(alb_engine_deadline(host->engine));
    if (!sent_all) { // when the link has sent enough of what waits for it
        alb_sim_time backlog = alb_sim_link_time_of(host->out, host->ahead_bytes);
        at = ALB_MIN(at, ALB_MAX(host->out->free_at, now + backlog) - backlog);
        at = ALB_MAX(at, now + 1);
    }
    alb_sim_queue_schedule(&host->network->queue, &host->wake, ALB_MAX(at, now));
}

static void run(struct alb_sim_host *host, alb_sim_time now)
{
    host->memory.is_data_path = true;
    alb_engine_bells(host->engine, alb_sim_to_ns(now));
    if (alb_engine_deadline(host->engine) <= alb_sim_to_ns(now))
        alb_engine_tick(host->engine, alb_sim_to_ns(now));
    bool sent_all = send_all(host, now);
    host->memory.is_data_path = false;
    drain_trace(host);
    drain_events(host);
    schedule_wake(host, sent_all, now);
    if (host->after)
        host->after(host, now);
}

static void on_wake(struct alb_sim_event *event, alb_sim_time now)
{
    run(ALB_CONTAINER_OF(event, struct alb_sim_host, wake), now);
}

void alb_sim_host_poke(struct alb_sim_host *host)
{
    run(host, host->network->queue.now);
}

// ---- receiving
// ---------------------------------------------------------------------------------------------------------

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
    uint16_t identification;
    if (!host->network->carries_payload)
        return !packet->is_corrupt;
    if (host->is_csa)
        return alb_icrc_check_ones(&host->received_flow, datagram);
    return alb_icrc_check(&host->received_flow, datagram, icrc_peer(host, &packet->source.addr), &identification, now);
}

static const uint8_t *bytes_of(struct alb_sim_host *host, const struct alb_sim_packet *packet)
{
    if (packet->stored_bytes == packet->length)
        return packet->bytes;
    memcpy(host->scratch, packet->bytes, packet->stored_bytes);
    memset(host->scratch + packet->stored_bytes, 0, HEADER_BYTES); // of what longer headers have left there
    return host->scratch;
}

static void receive(struct alb_sim_node *node, struct alb_sim_packet *packet, alb_sim_time now)
{
    struct alb_sim_host *host = ALB_CONTAINER_OF(node, struct alb_sim_host, node);
    if (host->capture)
        alb_sim_capture_add(host->capture, packet, now);
    struct alb_datagram datagram = {
        .peer = packet->source,
        .local = packet->destination,
        .traffic_class = packet->traffic_class,
        .hop_limit = packet->hop_limit,
        .bytes = bytes_of(host, packet),
        .length = packet->length,
    };
    host->memory.is_data_path = true;
    if (check_icrc(host, packet, &datagram, alb_sim_to_ns(now))) {
        datagram.length -= ALB_ICRC_BYTES;
        alb_engine_rx(host->engine, &datagram, 1, alb_sim_to_ns(now));
    } else {
        alb_engine_count_drop(host->engine, ALB_DROP_BAD_ICRC);
    }
    host->memory.is_data_path = false;
    alb_sim_packet_put(&host->network->packets, packet);
    run(host, now);
}
