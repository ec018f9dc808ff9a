// SPDX-License-Identifier: BSD-2-Clause
#include "sim/packet.h"

#include <stdlib.h>
#include <string.h>

void alb_sim_packet_pool_init(struct alb_sim_packet_pool *pool, uint32_t packet_bytes_max)
{
    alb_list_init(&pool->free);
    alb_list_init(&pool->all);
    pool->packet_bytes_max = packet_bytes_max;
    pool->outstanding = 0;
}

void alb_sim_packet_pool_fini(struct alb_sim_packet_pool *pool)
{
    struct alb_list *node;
    while ((node = alb_list_pop(&pool->all)))
        free(ALB_LIST_ENTRY(node, struct alb_sim_packet, all));
}

static struct alb_sim_packet *new_packet(struct alb_sim_packet_pool *pool)
{
    struct alb_sim_packet *packet = malloc(sizeof(*packet) + pool->packet_bytes_max);
    alb_assert(packet);
    alb_list_init(&packet->link);
    alb_list_push_back(&pool->all, &packet->all);
    return packet;
}

struct alb_sim_packet *alb_sim_packet_get(struct alb_sim_packet_pool *pool)
{
    struct alb_list *node = alb_list_pop(&pool->free);
    struct alb_sim_packet *packet = node ? ALB_LIST_ENTRY(node, struct alb_sim_packet, link) : new_packet(pool);
    alb_sim_event_init(&packet->event, NULL);
    packet->on = NULL;
    packet->is_corrupt = packet->is_cut = false;
    packet->pass = 0;
    packet->delay = 0;
    packet->gone_at = 0;
    pool->outstanding++;
    return packet;
}

void alb_sim_packet_put(struct alb_sim_packet_pool *pool, struct alb_sim_packet *packet)
{
    alb_assert(!alb_sim_event_is_scheduled(&packet->event));
    alb_list_remove(&packet->link);
    alb_list_push_front(&pool->free, &packet->link);
    pool->outstanding--;
}

struct alb_sim_packet *alb_sim_packet_copy(struct alb_sim_packet_pool *pool, const struct alb_sim_packet *packet)
{
    struct alb_sim_packet *copy = alb_sim_packet_get(pool);
    size_t from = offsetof(struct alb_sim_packet, on);
    memcpy((char *)copy + from, (const char *)packet + from, offsetof(struct alb_sim_packet, bytes) - from);
    memcpy(copy->bytes, packet->bytes, packet->stored_bytes);
    return copy;
}
