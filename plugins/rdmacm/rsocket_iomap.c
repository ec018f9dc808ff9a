// SPDX-License-Identifier: BSD-2-Clause
// riomap, riounmap, riowrite: buffers of the program that the peer writes to directly, under offsets that both agree
// on. A mapping is an entry in the peer's table; one that was removed is announced with length 0.
#include "plugins/rdmacm/rsocket_stream.h"

#include <stdlib.h>

// A buffer that is registered here and no entry of the peer's.
struct local_map {
    struct ibv_mr *mr;
    struct alb_list link;
};

static int make_table(struct rsocket_stream *stream)
{
    if (!stream->iomaps && stream->peer.iomap_count > 0)
        stream->iomaps = calloc(stream->peer.iomap_count, sizeof(struct rsocket_iomap));
    return stream->iomaps ? 0 : ENOMEM;
}

static int map_for_peer(struct rsocket_stream *stream, void *buffer, size_t length, uint64_t offset)
{
    int error = make_table(stream);
    if (error)
        return error;
    struct rsocket_iomap *free_map = NULL;
    for (uint32_t i = 0; i < stream->peer.iomap_count && !free_map; i++)
        if (!stream->iomaps[i].mr)
            free_map = &stream->iomaps[i];
    if (!free_map)
        return ENOMEM;
    struct ibv_mr *mr = ibv_reg_mr(stream->id->pd, buffer, length, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    if (!mr)
        return errno;
    *free_map = (struct rsocket_iomap){.mr = mr, .offset = offset, .is_news = true};
    stream->has_iomap_news = true;
    return 0;
}

static int map_locally(struct rsocket_stream *stream, void *buffer, size_t length)
{
    struct local_map *map = calloc(1, sizeof(*map));
    if (!map)
        return ENOMEM;
    map->mr = ibv_reg_mr(stream->id->pd, buffer, length, IBV_ACCESS_LOCAL_WRITE);
    if (!map->mr) {
        int error = errno;
        free(map);
        return error;
    }
    alb_list_push_back(&stream->local_iomaps, &map->link);
    return 0;
}

static bool may_announce(struct rsocket *rs)
{
    return rsocket_flow_can_announce(rs) || rsocket_stream(rs)->state != RSOCKET_OPEN;
}

static void announce(struct rsocket_stream *stream, uint32_t index)
{
    struct rsocket_iomap *map = &stream->iomaps[index];
    struct rsocket_mapping mapping = {.offset = map->offset};
    if (map->mr)
        mapping.place = (struct rsocket_place){(uintptr_t)map->mr->addr, map->mr->rkey, (uint32_t)map->mr->length};
    map->is_news = false;
    rsocket_flow_announce(stream, index, mapping);
}

// Round and round, until one round has found nothing: while this waits, other threads announce, and make news.
int rsocket_iomap_flush(struct rsocket_stream *stream, int flags)
{
    uint32_t count = stream->peer.iomap_count;
    for (uint32_t i = 0, quiet = 0; stream->has_iomap_news; i = (i + 1) % count) {
        stream->has_iomap_news = stream->iomaps[i].is_news || ++quiet < count;
        if (!stream->iomaps[i].is_news)
            continue;
        int error = rsocket_wait(&stream->rs, may_announce, flags, ALB_TIME_NEVER);
        if (error)
            return error;
        if (stream->state != RSOCKET_OPEN)
            return 0; // nobody needs to know
        quiet = 0;
        if (stream->iomaps[i].is_news) // not announced by another thread meanwhile
            announce(stream, i);
    }
    return 0;
}

static struct rsocket_iomap *find_map(struct rsocket_stream *stream, const void *buffer, size_t length)
{
    for (uint32_t i = 0; stream->iomaps && i < stream->peer.iomap_count; i++) {
        struct rsocket_iomap *map = &stream->iomaps[i];
        if (map->mr && map->mr->addr == buffer && map->mr->length == length)
            return map;
    }
    return NULL;
}

static int unmap(struct rsocket_stream *stream, const void *buffer, size_t length)
{
    struct rsocket_iomap *map = find_map(stream, buffer, length);
    if (map) {
        ibv_dereg_mr(map->mr);
        *map = (struct rsocket_iomap){.is_news = true};
        stream->has_iomap_news = true;
        return 0;
    }
    ALB_LIST_FOR_EACH (&stream->local_iomaps, node) {
        struct local_map *local = ALB_LIST_ENTRY(node, struct local_map, link);
        if (local->mr->addr != buffer || local->mr->length != length)
            continue;
        alb_list_remove(node);
        ibv_dereg_mr(local->mr);
        free(local);
        return 0;
    }
    return EINVAL;
}

void rsocket_iomap_free(struct rsocket_stream *stream)
{
    struct alb_list *node;
    for (uint32_t i = 0; stream->iomaps && i < stream->peer.iomap_count; i++)
        if (stream->iomaps[i].mr)
            ibv_dereg_mr(stream->iomaps[i].mr);
    free(stream->iomaps);
    stream->iomaps = NULL;
    while ((node = alb_list_pop(&stream->local_iomaps))) {
        struct local_map *local = ALB_LIST_ENTRY(node, struct local_map, link);
        ibv_dereg_mr(local->mr);
        free(local);
    }
}

// The entry that the peer has written for an offset, copied before it is believed.
static bool find_target(const struct rsocket_stream *stream, uint64_t offset, struct rsocket_mapping *found)
{
    for (uint32_t i = 0; i < stream->rs.settings.iomap_count; i++) {
        const _Atomic uint64_t *shared = &stream->mappings[i * sizeof(struct rsocket_mapping) / sizeof(*shared)];
        struct rsocket_mapping mapping = {.place = rsocket_place_load(shared + 1)};
        mapping.offset = atomic_load_explicit(shared, memory_order_relaxed);
        if (offset >= mapping.offset && offset - mapping.offset < mapping.place.length) {
            *found = mapping;
            return true;
        }
    }
    return false;
}

static bool may_write(struct rsocket *rs)
{
    const struct rsocket_stream *stream = rsocket_stream(rs);
    return rsocket_flow_can_write(rs) || stream->has_ended_out || stream->state != RSOCKET_OPEN;
}

static int write_once(struct rsocket_stream *stream, struct rsocket_cursor *from, uint64_t *offset, int flags)
{
    struct rsocket_mapping target;
    int error = rsocket_wait(&stream->rs, may_write, flags, ALB_TIME_NEVER);
    if (error)
        return error;
    if (!rsocket_flow_can_write(&stream->rs))
        return rsocket_stream_why_not_sent(&stream->rs);
    if (!find_target(stream, *offset, &target))
        return EFAULT;
    uint64_t into = *offset - target.offset;
    uint32_t length = (uint32_t)ALB_MIN((uint64_t)(target.place.length - into), (uint64_t)from->left);
    size_t before = from->left;
    rsocket_flow_write(stream, from, length, target.place.addr + into, target.place.key);
    *offset += before - from->left;
    return stream->state == RSOCKET_FAILED ? ECONNRESET : 0;
}

static ssize_t write_all(struct rsocket_stream *stream, struct rsocket_cursor *from, uint64_t offset, int flags)
{
    size_t length = from->left;
    int error = stream->state == RSOCKET_OPEN ? rsocket_iomap_flush(stream, flags) : ENOTCONN;
    while (!error && from->left > 0)
        error = write_once(stream, from, &offset, flags);
    return from->left < length ? (ssize_t)(length - from->left) : -error;
}

static struct rsocket_stream *get_stream(int socket)
{
    struct rsocket *rs = rsocket_take(socket);
    if (!rs || rs->type == SOCK_STREAM)
        return rs ? rsocket_stream(rs) : NULL;
    rsocket_give(rs);
    errno = EOPNOTSUPP;
    return NULL;
}

static void put_stream(struct rsocket_stream *stream)
{
    rsocket_give(&stream->rs);
}

off_t riomap(int socket, void *buffer, size_t length, int prot, int flags, off_t offset)
{
    struct rsocket_stream *stream = get_stream(socket);
    if (!stream)
        return -1;
    uint64_t at = offset == -1 ? (uintptr_t)buffer : (uint64_t)offset;
    int error = 0;
    if ((prot & ~PROT_WRITE) || offset < -1 || length == 0 || length > UINT32_MAX)
        error = EINVAL;
    else if (!stream->cq)
        error = ENOTCONN;
    else
        error = prot & PROT_WRITE ? map_for_peer(stream, buffer, length, at) : map_locally(stream, buffer, length);
    put_stream(stream);
    return error ? rdmacm_fail(error) : (off_t)at;
}

int riounmap(int socket, void *buffer, size_t length)
{
    struct rsocket_stream *stream = get_stream(socket);
    if (!stream)
        return -1;
    int error = unmap(stream, buffer, length);
    put_stream(stream);
    return rdmacm_result(error);
}

size_t riowrite(int socket, const void *buffer, size_t count, off_t offset, int flags)
{
    struct rsocket_stream *stream = get_stream(socket);
    struct iovec iov = {(void *)buffer, count};
    struct rsocket_cursor from;
    if (!stream)
        return (size_t)-1;
    int error = rsocket_cursor_init(&from, &iov, 1);
    ssize_t done = error ? -error : write_all(stream, &from, (uint64_t)offset, flags);
    put_stream(stream);
    return done < 0 ? (size_t)rdmacm_fail((int)-done) : (size_t)done;
}
