// SPDX-License-Identifier: BSD-2-Clause
// The peers of a datagram rsocket: for each address and port the queue pair of ours that is used toward it, and its
// own, once it is known. Any sender can make us keep an entry; so there is a bound, and the oldest entry is replaced.
#include "plugins/rdmacm/rsocket_datagram.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum { RESOLVE_MS = 2000 };

socklen_t rsocket_peer_name(const struct rsocket *rs, const struct rsocket_peer_key *key, struct sockaddr_storage *name)
{
    if (rs->domain == AF_INET) {
        rdmacm_set_sockaddr(name, &key->addr, key->port);
        return sizeof(struct sockaddr_in);
    }
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons(key->port)};
    memcpy(&in6.sin6_addr, key->addr.bytes, sizeof(in6.sin6_addr));
    memset(name, 0, sizeof(*name));
    memcpy(name, &in6, sizeof(in6));
    return sizeof(in6);
}

int rsocket_peers_init(struct rsocket_datagram *datagram)
{
    struct alb_siphash_key hash_key;
    if (getrandom(&hash_key, sizeof(hash_key), 0) != sizeof(hash_key))
        return EIO;
    datagram->map_memory = calloc(1, alb_map_bytes(RSOCKET_PEERS_MAX, sizeof(struct rsocket_peer_key)));
    if (!datagram->map_memory)
        return ENOMEM;
    alb_map_init_zeroed(&datagram->peer_map, RSOCKET_PEERS_MAX, sizeof(struct rsocket_peer_key), datagram->map_memory,
                        &hash_key);
    return 0;
}

static void forget(struct rsocket_datagram *datagram, uint32_t index)
{
    struct rsocket_peer *peer = datagram->peers[index];
    if (!peer)
        return;
    alb_map_remove(&datagram->peer_map, &peer->key, NULL);
    if (peer->ah)
        ibv_destroy_ah(peer->ah);
    free(peer);
    datagram->peers[index] = NULL;
}

void rsocket_peers_fini(struct rsocket_datagram *datagram)
{
    for (uint32_t i = 0; i < RSOCKET_PEERS_MAX; i++)
        forget(datagram, i);
    free(datagram->map_memory);
}

// The address of ours that is used toward a peer: what it has written to, what the rsocket is bound to, or what the
// host would take.
static int resolve(struct rsocket_datagram *datagram, struct rdma_cm_id *id, const struct rsocket_peer_key *key,
                   const struct alb_addr *local)
{
    static const struct alb_addr any, any_ipv4 = {{[10] = 0xff, [11] = 0xff}};
    struct sockaddr_storage bound, to;
    socklen_t length = sizeof(bound);
    struct alb_addr addr;
    uint16_t port;
    if (local)
        return rdmacm_learn_av(rdmacm_id(id), local, &key->addr);
    if (!getsockname(datagram->udp_fd, (struct sockaddr *)&bound, &length) &&
        rdmacm_get_sockaddr((struct sockaddr *)&bound, &addr, &port) && !alb_addr_equals(&addr, &any) &&
        !alb_addr_equals(&addr, &any_ipv4))
        return rdmacm_learn_av(rdmacm_id(id), &addr, &key->addr);
    rdmacm_set_sockaddr(&to, &key->addr, key->port);
    return rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, RESOLVE_MS) ? errno : 0;
}

static struct rsocket_dpair *find_pair(struct rsocket_datagram *datagram, const struct alb_addr *local)
{
    ALB_LIST_FOR_EACH (&datagram->pairs, node) {
        struct rsocket_dpair *pair = ALB_LIST_ENTRY(node, struct rsocket_dpair, link);
        if (alb_addr_equals(&pair->local, local))
            return pair;
    }
    return NULL;
}

// The id becomes the pair's if a new one is made, and is over otherwise.
static int choose_pair(struct rsocket_datagram *datagram, struct rdma_cm_id *id, struct rsocket_peer *peer)
{
    struct alb_addr local;
    memcpy(local.bytes, id->route.addr.addr.ibaddr.sgid.raw, sizeof(local.bytes));
    peer->gid_index = rdmacm_id(id)->gid_index;
    peer->pair = find_pair(datagram, &local);
    if (peer->pair) {
        rdma_destroy_id(id);
        return 0;
    }
    int error = rsocket_dpair_open(datagram, id, &peer->pair);
    if (error)
        rdma_destroy_id(id);
    else
        peer->pair->local = local;
    return error;
}

static int fill(struct rsocket_datagram *datagram, struct rsocket_peer *peer, const struct alb_addr *local)
{
    struct rdma_cm_id *id;
    if (rdma_create_id(NULL, &id, NULL, RDMA_PS_UDP))
        return errno;
    int error = resolve(datagram, id, &peer->key, local);
    if (!error)
        return choose_pair(datagram, id, peer);
    rdma_destroy_id(id);
    return error;
}

int rsocket_peer_get(struct rsocket_datagram *datagram, const struct rsocket_peer_key *key,
                     const struct alb_addr *local, struct rsocket_peer **out)
{
    *out = alb_map_find_pointer(&datagram->peer_map, key);
    if (*out)
        return 0;
    struct rsocket_peer *peer = calloc(1, sizeof(*peer));
    if (!peer)
        return ENOMEM;
    peer->key = *key;
    int error = fill(datagram, peer, local);
    if (error) {
        free(peer);
        return error;
    }
    uint32_t index = datagram->next_peer++ % RSOCKET_PEERS_MAX;
    forget(datagram, index);
    datagram->peers[index] = peer;
    alb_map_insert(&datagram->peer_map, key, (uintptr_t)peer);
    *out = peer;
    return 0;
}

void rsocket_peer_learn(struct rsocket_peer *peer, uint32_t qpn)
{
    struct ibv_ah_attr attr = {
        .is_global = 1,
        .port_num = RDMACM_PORT,
        .grh = {.sgid_index = (uint8_t)peer->gid_index, .hop_limit = RDMACM_HOP_LIMIT},
    };
    memcpy(attr.grh.dgid.raw, peer->key.addr.bytes, sizeof(attr.grh.dgid.raw));
    peer->qpn = qpn;
    if (!peer->ah)
        peer->ah = ibv_create_ah(peer->pair->id->pd, &attr); // without one, datagrams keep going through UDP
}
