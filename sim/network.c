// SPDX-License-Identifier: BSD-2-Clause
#include "sim/network.h"

#include "wire/roce.h"

#include <stdlib.h>
#include <string.h>

enum {
    PACKET_BYTES_MAX = ALB_ROCE_HEADER_MAX + ALB_ROCE_PAYLOAD_MAX + 8,
    SCRATCH_BYTES = 65536, // the longest packet that can be
    SEGMENTS = 64,
    IOVS = SEGMENTS * 8 + ALB_MAX_SGE,
    SEGMENT_BYTES = 1024, // headers of what is gathered into one, and what is copied between them
};

static void init_tx(struct alb_sim_network *network)
{
    size_t bursts = ALB_SIM_BATCH_MAX * sizeof(struct alb_burst);
    size_t segments = SEGMENTS * sizeof(struct alb_segment);
    size_t iovs = IOVS * sizeof(struct iovec);
    network->tx_memory = calloc(1, iovs + bursts + segments + SEGMENTS * SEGMENT_BYTES);
    alb_assert(network->tx_memory);
    network->tx = (struct alb_tx){
        .iov = (struct iovec *)network->tx_memory,
        .bursts = (struct alb_burst *)(network->tx_memory + iovs),
        .segments = (struct alb_segment *)(network->tx_memory + iovs + bursts),
        .bytes = network->tx_memory + iovs + bursts + segments,
        .iov_capacity = IOVS,
        .burst_capacity = ALB_SIM_BATCH_MAX,
        .segment_capacity = SEGMENTS,
        .bytes_capacity = SEGMENTS * SEGMENT_BYTES,
        .burst_bytes_max = 65507,
    };
}

void alb_sim_network_init(struct alb_sim_network *network, uint64_t seed, bool carries_payload)
{
    *network = (struct alb_sim_network){.carries_payload = carries_payload};
    alb_sim_queue_init(&network->queue);
    alb_sim_packet_pool_init(&network->packets, PACKET_BYTES_MAX);
    alb_prng_init(&network->prng, seed);
    alb_list_init(&network->hosts);
    init_tx(network);
    network->scratch = calloc(1, SCRATCH_BYTES);
    alb_assert(network->scratch);
}

void alb_sim_network_set_packet_max(struct alb_sim_network *network, uint32_t bytes)
{
    alb_assert(alb_list_is_empty(&network->hosts) && bytes >= PACKET_BYTES_MAX && bytes <= 65507);
    network->packets.packet_bytes_max = bytes;
}

void alb_sim_network_fini(struct alb_sim_network *network)
{
    alb_assert(alb_list_is_empty(&network->hosts));
    alb_sim_queue_fini(&network->queue);
    alb_sim_packet_pool_fini(&network->packets);
    free(network->tx_memory);
    free(network->scratch);
}

void alb_sim_network_link(struct alb_sim_network *network, struct alb_sim_link *link, struct alb_sim_node *to,
                          const struct alb_sim_link_config *config)
{
    alb_sim_link_init(link, &network->queue, &network->packets, to, config);
}

void alb_sim_network_run_for(struct alb_sim_network *network, alb_sim_time span)
{
    alb_sim_time until = network->queue.now + span;
    alb_sim_queue_run(&network->queue, until, UINT64_MAX);
    alb_sim_queue_advance(&network->queue, until);
}

bool alb_sim_network_run_idle(struct alb_sim_network *network, alb_sim_time limit)
{
    alb_sim_queue_run(&network->queue, limit, UINT64_MAX);
    return alb_sim_queue_count(&network->queue) == 0;
}

static void mix(uint64_t *hash, uint64_t word)
{
    *hash = (*hash ^ word) * 0x9e3779b97f4a7c15ull;
    *hash ^= *hash >> 29;
}

uint64_t alb_sim_network_trace_hash(const struct alb_sim_network *network)
{
    uint64_t hash = 0;
    ALB_LIST_FOR_EACH (&network->hosts, node)
        mix(&hash, ALB_LIST_ENTRY(node, struct alb_sim_host, link)->trace_hash);
    return hash;
}

void alb_sim_note(uint64_t *trace_hash, uint64_t at, uint64_t what, const void *bytes, uint32_t length)
{
    const uint8_t *from = bytes;
    uint64_t hash = *trace_hash;
    mix(&hash, at);
    mix(&hash, what << 32 | length);
    for (; length >= 8; length -= 8, from += 8) {
        uint64_t word;
        memcpy(&word, from, 8);
        mix(&hash, word);
    }
    if (length > 0) {
        uint64_t word = 0;
        memcpy(&word, from, length);
        mix(&hash, word);
    }
    *trace_hash = hash;
}
