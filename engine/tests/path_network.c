// SPDX-License-Identifier: BSD-2-Clause
#include "engine/tests/path_network.h"

#include "engine/tests/path_reported.h"

#include <stdlib.h>
#include <string.h>

enum {
    FRAME_PACKETS = 16,
    FRAME_NS = 10000,
    PROBE_RTTS = 20,
};

#define STALL_EVERY_NS (20 * ALB_NS_PER_MS)

static const uint64_t RATE = 1250000000; // bytes per second
static const alb_time RTT_NS = 100000;

struct network *network_new(const struct alb_path_ops *ops, uint32_t count, uint64_t seed)
{
    struct network *network = calloc(1, sizeof(*network));
    assert_non_null(network);
    network->paths = malloc(alb_paths_out_bytes(count));
    assert_non_null(network->paths);
    network->ops = ops;
    network->count = count;
    network->now = ALB_NS_PER_S;
    network->heard_at = network->now;
    network->frame_due = ALB_TIME_NEVER;
    network->back_ns = RTT_NS / 2;
    network->burst_packets = NETWORK_BURST_PACKETS;
    network->window_max_bytes = count * RATE * RTT_NS / ALB_NS_PER_S * 3 / 2;
    network->window_bytes = network->window_max_bytes / 2;
    alb_prng_init(&network->prng, seed);
    alb_psn next = (alb_psn)alb_prng_below(&network->prng, 1 << 24);
    alb_paths_out_init(network->paths, count, next);
    for (uint32_t i = 0; i < count; i++) {
        network->path[i].bytes_per_s = RATE;
        network->path[i].delay_ns = RTT_NS / 2;
        network->path[i].limit_bytes = 250000;
    }
    network_measure(network);
    return network;
}

void network_free(struct network *network)
{
    free(network->paths);
    free(network);
}

void network_measure(struct network *network)
{
    network->since = network->now;
    network->came_bytes = 0;
    network->lost = network->spurious = 0;
    for (uint32_t i = 0; i < network->count; i++) {
        network->path[i].sent = 0;
        network->path[i].left_ns = 0;
    }
}

void network_set_rate(struct network *network, uint32_t path, uint64_t bytes_per_s)
{
    struct network_path *p = &network->path[path];
    alb_time queued_ns = ALB_MAX(p->busy_until, network->now) - network->now;
    p->busy_until = network->now + queued_ns / 1000 * (p->bytes_per_s / 1000) / (bytes_per_s / 1000) * 1000;
    p->bytes_per_s = bytes_per_s;
    for (uint32_t i = p->coming; i != p->next; i++) {
        struct network_packet *packet = &p->packets[i % NETWORK_PACKETS];
        if (packet->comes_at != ALB_TIME_NEVER)
            packet->comes_at = ALB_MIN(packet->comes_at, p->busy_until + p->delay_ns);
    }
    p->last_comes_at = ALB_MIN(p->last_comes_at, p->busy_until + p->delay_ns);
}

uint32_t network_percent_of(const struct network *network, uint32_t paths)
{
    uint64_t could_bytes = paths * RATE / 1000 * ((network->now - network->since) / ALB_NS_PER_US) / 1000;
    return (uint32_t)(network->came_bytes * 100 / could_bytes);
}

uint32_t network_share_percent(const struct network *network, uint32_t path)
{
    uint64_t sent = 0;
    for (uint32_t i = 0; i < network->count; i++)
        sent += network->path[i].sent;
    return sent ? (uint32_t)(network->path[path].sent * 100ull / sent) : 0;
}

uint32_t network_good(const struct network *network)
{
    uint32_t good = 0;
    for (uint32_t i = 0; i < network->count; i++)
        good += alb_path_load(network->paths, i)->state == ALB_PATH_GOOD;
    return good;
}

// ---- sender ---------------------------------------------------------------------------------------------------------

static alb_time arrival(struct network *network, struct network_path *path, uint32_t bytes)
{
    alb_time start = ALB_MAX(path->busy_until, network->now);
    uint64_t queued_bytes = (start - network->now) * path->bytes_per_s / ALB_NS_PER_S;
    if (path->is_dead || queued_bytes + bytes > path->limit_bytes)
        return ALB_TIME_NEVER;
    path->busy_until = start + bytes * ALB_NS_PER_S / path->bytes_per_s;
    if (alb_prng_chance(&network->prng, path->loss_ppb))
        return ALB_TIME_NEVER;
    alb_time comes_at = path->busy_until + path->delay_ns + alb_prng_below(&network->prng, path->jitter_ns + 1);
    path->last_comes_at = ALB_MAX(path->last_comes_at, comes_at);
    return path->last_comes_at;
}

static void send_burst(struct network *network, uint32_t packets)
{
    struct alb_paths_out *paths = network->paths;
    uint16_t p = alb_paths_choose(paths, network->ops, 0, packets * NETWORK_PACKET_BYTES, network->now);
    struct network_path *path = &network->path[p];
    uint32_t bytes = 0, burst_bytes = alb_path_burst_bytes(paths, p, UINT32_MAX);
    path->trials += alb_path_load(paths, p)->state == ALB_PATH_TRYING;
    if (network->inflight_bytes == 0)
        network->heard_at = network->now;
    for (uint32_t i = 0; i < packets && bytes < burst_bytes; i++, bytes += NETWORK_PACKET_BYTES) {
        path->packets[path->next++ % NETWORK_PACKETS] = (struct network_packet){
            .left_at = network->now,
            .sequence = alb_path_sent(paths, p, NETWORK_PACKET_BYTES, network->now),
            .comes_at = arrival(network, path, NETWORK_PACKET_BYTES),
        };
        assert_true(path->next - path->first <= NETWORK_PACKETS);
        path->sent++;
        network->inflight_bytes += NETWORK_PACKET_BYTES;
    }
    network->last_path = p;
    network->next_burst_at = network->now + network->interval_ns;
}

static bool may_send(const struct network *network)
{
    return network->inflight_bytes + network->burst_packets * NETWORK_PACKET_BYTES <= network->window_bytes &&
           network->now >= network->next_burst_at;
}

// What had come when the frame left is acknowledged; what is settled besides is lost.
static void release_path(struct network *network, uint16_t p, alb_time known_at)
{
    struct network_path *path = &network->path[p];
    for (uint32_t i = path->first; i != path->next; i++) {
        struct network_packet *packet = &path->packets[i % NETWORK_PACKETS];
        bool has_come = packet->comes_at <= known_at;
        if (packet->is_released || (!has_come && !alb_path_is_settled(network->paths, p, packet->sequence)))
            continue;
        packet->is_released = true;
        alb_path_done(network->paths, p, NETWORK_PACKET_BYTES);
        network->inflight_bytes -= NETWORK_PACKET_BYTES;
        network->came_bytes += has_come ? NETWORK_PACKET_BYTES : 0;
        network->lost += !has_come;
        network->spurious += !has_come && packet->comes_at != ALB_TIME_NEVER;
    }
    while (path->first != path->coming && path->packets[path->first % NETWORK_PACKETS].is_released)
        path->first++;
}

static void release(struct network *network, alb_time known_at)
{
    for (uint32_t i = 0; i < network->count; i++)
        release_path(network, (uint16_t)i, known_at);
}

static void note_states(struct network *network, const uint8_t *before, alb_time passed_ns)
{
    for (uint32_t i = 0; i < network->count; i++) {
        uint8_t state = alb_path_load(network->paths, i)->state;
        network->path[i].left_ns += before[i] != ALB_PATH_GOOD ? passed_ns : 0;
        if (state == ALB_PATH_LEFT && before[i] == ALB_PATH_GOOD)
            network->path[i].left_at = network->now;
    }
}

static void steer_window(struct network *network, bool has_sample, bool is_congested)
{
    if (has_sample && is_congested)
        network->window_bytes -= network->window_bytes / 32;
    else if (has_sample)
        network->window_bytes += 2 * NETWORK_PACKET_BYTES;
    network->window_bytes = ALB_MIN(network->window_bytes, network->window_max_bytes);
    network->window_bytes = ALB_MAX(network->window_bytes, 16ul * NETWORK_PACKET_BYTES);
}

static void on_frame(struct network *network, const struct network_frame *frame)
{
    bool has_sample = false, is_congested = true;
    struct alb_path_scope scope = {.past = ALB_PATHS_MAX};
    network->heard_at = network->now;
    for (uint32_t i = 0; i < frame->count; i++) {
        const struct alb_csa_path_entry *entry = &frame->entries[i];
        struct alb_path_news news = alb_path_heard(network->paths, network->ops, entry, network->now);
        if (news.is_new)
            alb_path_scope_heard(&scope, entry, network->now);
        has_sample |= news.rtt_sample_ns > 0;
        is_congested &=
            news.rtt_sample_ns == 0 || news.rtt_sample_ns > 2 * network->paths->path[entry->path].rtt_min_ns;
    }
    steer_window(network, has_sample, is_congested);
    struct alb_path_set silent;
    bool is_found = alb_paths_find_silent(network->paths, &scope, &silent);
    for (uint32_t i = is_found ? alb_path_set_next(&silent, 0) : ALB_PATHS_MAX; i < ALB_PATHS_MAX;
         i = alb_path_set_next(&silent, i + 1))
        alb_path_silent(network->paths, network->ops, (uint16_t)i, network->now);
    release(network, frame->sent_at);
}

// Nothing was received for long: a packet asks for an answer.
static void probe(struct network *network)
{
    network->heard_at = network->now;
    alb_path_unanswered(network->paths, network->ops, network->last_path, network->now);
    send_burst(network, 1);
}

// ---- receiver -------------------------------------------------------------------------------------------------------

static void on_packet(struct network *network, struct network_path *path)
{
    const struct network_packet *packet = &path->packets[path->coming++ % NETWORK_PACKETS];
    struct alb_path_in *in = &network->in[path - network->path];
    uint32_t lost;
    alb_path_in_packet(in, packet->sequence, (uint32_t)packet->left_at, false, network->now, &lost);
    if (network->unreported++ == 0)
        network->frame_due = network->now + FRAME_NS;
    if (network->unreported >= FRAME_PACKETS || lost > 0)
        network->frame_due = network->now;
}

static void send_frame(struct network *network)
{
    struct network_frame *frame = &network->frames[network->frame_next % NETWORK_FRAMES];
    *frame = (struct network_frame){.sent_at = network->now, .comes_at = network->now + network->back_ns};
    network->unreported = 0;
    network->frame_due = ALB_TIME_NEVER;
    for (uint32_t i = 0; i < network->count; i++)
        if (alb_path_in_has_news(&network->in[i]))
            alb_path_in_report(&network->in[i], (uint8_t)i, network->now, &frame->entries[frame->count++]);
    network->frame_next += !alb_prng_chance(&network->prng, network->frame_loss_ppb);
    assert_true(network->frame_next - network->frame_first < NETWORK_FRAMES);
}

// ---- time -----------------------------------------------------------------------------------------------------------

// The path whose next packet comes first.
static struct network_path *next_path(struct network *network, alb_time *at)
{
    struct network_path *best = NULL;
    *at = ALB_TIME_NEVER;
    for (uint32_t i = 0; i < network->count; i++) {
        struct network_path *path = &network->path[i];
        while (path->coming != path->next && path->packets[path->coming % NETWORK_PACKETS].comes_at == ALB_TIME_NEVER)
            path->coming++;
        if (path->coming == path->next || path->packets[path->coming % NETWORK_PACKETS].comes_at >= *at)
            continue;
        *at = path->packets[path->coming % NETWORK_PACKETS].comes_at;
        best = path;
    }
    return best;
}

static alb_time frame_at(const struct network *network)
{
    bool has_frame = network->frame_first != network->frame_next;
    return has_frame ? network->frames[network->frame_first % NETWORK_FRAMES].comes_at : ALB_TIME_NEVER;
}

static alb_time probe_at(const struct network *network)
{
    return network->inflight_bytes > 0 ? network->heard_at + PROBE_RTTS * RTT_NS : ALB_TIME_NEVER;
}

static bool is_stalled(const struct network *network)
{
    return network->now % STALL_EVERY_NS >= STALL_EVERY_NS - network->stall_ns;
}

// When something is next to be done but packets that come.
static alb_time wake_at(const struct network *network)
{
    if (is_stalled(network))
        return ALB_MIN(network->frame_due, network->now - network->now % STALL_EVERY_NS + STALL_EVERY_NS);
    alb_time at = ALB_MIN(network->frame_due, frame_at(network));
    at = ALB_MIN(at, probe_at(network));
    return network->next_burst_at > network->now ? ALB_MIN(at, network->next_burst_at) : at;
}

// All that happens now.
static void act(struct network *network)
{
    alb_time at;
    struct network_path *path;
    while ((path = next_path(network, &at)) && at <= network->now)
        on_packet(network, path);
    if (network->frame_due <= network->now)
        send_frame(network);
    if (is_stalled(network))
        return;
    while (frame_at(network) <= network->now)
        on_frame(network, &network->frames[network->frame_first++ % NETWORK_FRAMES]);
    if (probe_at(network) <= network->now)
        probe(network);
    while (may_send(network))
        send_burst(network, network->burst_packets);
}

void network_run(struct network *network, alb_time span_ns)
{
    alb_time until = network->now + span_ns;
    while (network->now < until) {
        uint8_t before[ALB_PATHS_MAX];
        alb_time began = network->now, at;
        for (uint32_t i = 0; i < network->count; i++)
            before[i] = alb_path_load(network->paths, i)->state;
        act(network);
        next_path(network, &at);
        at = ALB_MIN(at, wake_at(network));
        note_states(network, before, ALB_MIN(at, until) - began);
        network->now = ALB_MIN(at, until);
    }
    path_reported_recount(network->paths);
}
