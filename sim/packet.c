// SPDX-License-Identifier: BSD-2-Clause
#include "sim/packet.h"

#include "sim/memory.h"

#include <stdlib.h>
#include <string.h>

enum {
    SMALL_BYTES = 256, // room that headers mostly find enough
    CHUNK_BYTES = 32 << 10,
    CHUNK_BYTES_MAX = 2 << 20, // when there are many
    ALIGNMENT = 64,
};

_Static_assert(offsetof(struct alb_sim_packet, source) == 64, "a hop looks at one cache line of a packet");

void alb_sim_packet_pool_init(struct alb_sim_packet_pool *pool, uint32_t packet_bytes_max)
{
    *pool = (struct alb_sim_packet_pool){.packet_bytes_max = packet_bytes_max};
}

void alb_sim_packet_pool_fini(struct alb_sim_packet_pool *pool)
{
    while (pool->chunks) {
        void *chunk = pool->chunks;
        memcpy(&pool->chunks, chunk, sizeof(pool->chunks));
        free(chunk);
    }
    pool->free_small = pool->free_large = NULL;
}

static void add_chunk(struct alb_sim_packet_pool *pool, uint32_t room_bytes, bool is_small)
{
    size_t each = (sizeof(struct alb_sim_packet) + room_bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    size_t bytes = pool->memory_bytes < CHUNK_BYTES_MAX ? CHUNK_BYTES : CHUNK_BYTES_MAX;
    uint32_t count = is_small ? (uint32_t)((bytes - ALIGNMENT) / each) : 1;
    bytes = is_small ? bytes : ALIGNMENT + each;
    uint8_t *chunk = alb_sim_big(bytes);
    memcpy(chunk, &pool->chunks, sizeof(pool->chunks));
    pool->chunks = chunk;
    pool->memory_bytes += bytes;
    struct alb_sim_packet **head = is_small ? &pool->free_small : &pool->free_large;
    for (uint32_t i = 0; i < count; i++) {
        struct alb_sim_packet *packet = (struct alb_sim_packet *)(chunk + ALIGNMENT + i * each);
        alb_list_init(&packet->link);
        packet->is_small = is_small;
        packet->next = *head;
        *head = packet;
    }
}

struct alb_sim_packet *alb_sim_packet_get(struct alb_sim_packet_pool *pool, uint32_t bytes)
{
    bool is_small = bytes <= SMALL_BYTES;
    struct alb_sim_packet **head = is_small ? &pool->free_small : &pool->free_large;
    alb_assert(bytes <= ALB_MAX(pool->packet_bytes_max, (uint32_t)SMALL_BYTES));
    if (!*head)
        add_chunk(pool, is_small ? SMALL_BYTES : pool->packet_bytes_max, is_small);
    struct alb_sim_packet *packet = *head;
    *head = packet->next;
    alb_sim_event_init(&packet->event, NULL);
    packet->next = NULL;
    packet->on = packet->from = NULL;
    packet->flow_hash = 0;
    packet->to = ALB_SIM_NOWHERE;
    packet->is_corrupt = packet->is_cut = packet->is_trimmed = packet->in_headroom = false;
    packet->gap_count = 0;
    packet->pass = 0;
    packet->delay = 0;
    pool->outstanding++;
    return packet;
}

void alb_sim_packet_put(struct alb_sim_packet_pool *pool, struct alb_sim_packet *packet)
{
    struct alb_sim_packet **head = packet->is_small ? &pool->free_small : &pool->free_large;
    alb_assert(!alb_sim_event_is_scheduled(&packet->event));
    alb_list_remove(&packet->link);
    packet->next = *head;
    *head = packet;
    pool->outstanding--;
}

struct alb_sim_packet *alb_sim_packet_copy(struct alb_sim_packet_pool *pool, const struct alb_sim_packet *packet)
{
    struct alb_sim_packet *copy = alb_sim_packet_get(pool, packet->is_small ? 0 : pool->packet_bytes_max);
    bool is_small = copy->is_small;
    size_t from = offsetof(struct alb_sim_packet, on);
    memcpy((char *)copy + from, (const char *)packet + from, offsetof(struct alb_sim_packet, bytes) - from);
    memcpy(copy->bytes, packet->bytes, packet->stored_bytes);
    alb_list_init(&copy->link);
    copy->is_small = is_small;
    return copy;
}
