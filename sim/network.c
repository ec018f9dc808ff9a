// SPDX-License-Identifier: BSD-2-Clause
#include "sim/network.h"

#include "wire/roce.h"

#include <string.h>

enum {
    PACKET_BYTES_MAX = ALB_ROCE_HEADER_MAX + ALB_ROCE_PAYLOAD_MAX + 8,
};

void alb_sim_network_init(struct alb_sim_network *network, uint64_t seed, bool carries_payload)
{
    *network = (struct alb_sim_network){.carries_payload = carries_payload};
    alb_sim_queue_init(&network->queue);
    alb_sim_packet_pool_init(&network->packets, PACKET_BYTES_MAX);
    alb_prng_init(&network->prng, seed);
    alb_list_init(&network->hosts);
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
}

void alb_sim_network_link(struct alb_sim_network *network, struct alb_sim_link *link, struct alb_sim_node *to,
                          const struct alb_sim_link_config *config)
{
    alb_sim_link_init(link, &network->queue, &network->packets, to, config);
}

void alb_sim_network_run_until(struct alb_sim_network *network, alb_sim_time until)
{
    alb_sim_queue_run(&network->queue, until, UINT64_MAX);
    alb_sim_queue_advance(&network->queue, until);
}

void alb_sim_network_run_for(struct alb_sim_network *network, alb_sim_time span)
{
    alb_sim_network_run_until(network, network->queue.now + span);
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

void alb_sim_network_note(struct alb_sim_network *network, uint64_t at, uint64_t what, const void *bytes,
                          uint32_t length)
{
    const uint8_t *from = bytes;
    mix(&network->trace_hash, at);
    mix(&network->trace_hash, what << 32 | length);
    for (; length > 0; length -= ALB_MIN(length, 8u), from += 8) {
        uint64_t word = 0;
        memcpy(&word, from, ALB_MIN(length, 8u));
        mix(&network->trace_hash, word);
    }
}
