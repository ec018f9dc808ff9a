// SPDX-License-Identifier: BSD-2-Clause
#include "sim/packet.h"

#include "sim/memory.h"

#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof(struct alb_sim_packet) == 64 && offsetof(struct alb_sim_load, source) == 64 &&
                   offsetof(struct alb_sim_load, bytes) == 128,
               "a hop looks at one cache line of a packet, its ends at two and the headers");

void alb_sim_packet_pool_init(struct alb_sim_packet_pool *pool, uint32_t packet_bytes_max)
{
    *pool = (struct alb_sim_packet_pool){.packet_bytes_max = packet_bytes_max, .chunk_used = ALB_SIM_PACKETS};
}

void alb_sim_packet_pool_fini(struct alb_sim_packet_pool *pool)
{
    while (pool->chunks) {
        void *chunk = pool->chunks;
        memcpy(&pool->chunks, chunk, sizeof(pool->chunks));
        free(chunk);
    }
    pool->free_small = pool->free_large = NULL;
    pool->chunk_used = ALB_SIM_PACKETS;
}

// Its packets begin a line behind its own beginning.
static struct alb_sim_packet *add_chunk(struct alb_sim_packet_pool *pool, void *chunk)
{
    memcpy(chunk, &pool->chunks, sizeof(pool->chunks));
    pool->chunks = chunk;
    return (struct alb_sim_packet *)chunk + 1;
}

// The first chunk is mostly the only one, and little of it used: not worth a huge page.
static struct alb_sim_packet *new_small(struct alb_sim_packet_pool *pool)
{
    if (pool->chunk_used == ALB_SIM_PACKETS) {
        void *chunk =
            pool->chunk ? alb_sim_big(ALB_SIM_PACKET_CHUNK) : aligned_alloc(ALB_SIM_PACKET_CHUNK, ALB_SIM_PACKET_CHUNK);
        alb_assert(chunk);
        pool->chunk = add_chunk(pool, chunk);
        pool->chunk_used = 0;
    }
    struct alb_sim_packet *packet = &pool->chunk[pool->chunk_used++];
    pool->memory_bytes += sizeof(*packet) + ALB_SIM_PACKET_LOAD;
    packet->is_small = true;
    return packet;
}

static struct alb_sim_packet *new_large(struct alb_sim_packet_pool *pool)
{
    size_t bytes = 2 * sizeof(struct alb_sim_packet) + sizeof(struct alb_sim_load) + pool->packet_bytes_max;
    struct alb_sim_packet *packet = add_chunk(pool, alb_sim_big(bytes));
    pool->memory_bytes += bytes;
    packet->is_small = false;
    return packet;
}

struct alb_sim_packet *alb_sim_packet_get(struct alb_sim_packet_pool *pool, uint32_t bytes)
{
    bool is_small = bytes <= ALB_SIM_PACKET_SMALL;
    struct alb_sim_packet **head = is_small ? &pool->free_small : &pool->free_large, *packet = *head;
    alb_assert(bytes <= ALB_MAX(pool->packet_bytes_max, (uint32_t)ALB_SIM_PACKET_SMALL));
    if (packet)
        *head = packet->next;
    else
        packet = is_small ? new_small(pool) : new_large(pool);
    alb_sim_event_init(&packet->event, NULL);
    packet->next = NULL;
    packet->on = packet->from = NULL;
    packet->flow_hash = 0;
    packet->to = ALB_SIM_NOWHERE;
    packet->is_corrupt = packet->is_cut = packet->is_trimmed = packet->is_held = false;
    packet->is_lost = false;
    alb_sim_load(packet)->gap_count = 0;
    pool->outstanding++;
    return packet;
}

void alb_sim_packet_put(struct alb_sim_packet_pool *pool, struct alb_sim_packet *packet)
{
    struct alb_sim_packet **head = packet->is_small ? &pool->free_small : &pool->free_large;
    alb_assert(!alb_sim_event_is_scheduled(&packet->event));
    if (alb_unlikely(packet->is_held))
        alb_list_remove(&alb_sim_load(packet)->link);
    packet->next = *head;
    *head = packet;
    pool->outstanding--;
}

struct alb_sim_packet *alb_sim_packet_copy(struct alb_sim_packet_pool *pool, const struct alb_sim_packet *packet)
{
    struct alb_sim_packet *copy = alb_sim_packet_get(pool, packet->is_small ? 0 : pool->packet_bytes_max);
    bool is_small = copy->is_small;
    size_t from = offsetof(struct alb_sim_packet, on), load_from = offsetof(struct alb_sim_load, source);
    memcpy((char *)copy + from, (const char *)packet + from, sizeof(*copy) - from);
    copy->is_small = is_small;
    copy->is_held = false;
    memcpy((char *)alb_sim_load(copy) + load_from, (const char *)alb_sim_load(packet) + load_from,
           sizeof(struct alb_sim_load) - load_from + alb_sim_load(packet)->stored_bytes);
    return copy;
}
