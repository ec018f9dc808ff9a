// SPDX-License-Identifier: BSD-2-Clause
// Datagrams: SOCK_DGRAM over unreliable datagram queue pairs. A UDP socket stands for the address and port. The first
// datagrams to a peer go through it, with a header that tells our queue pair; the peer tells its own in the same way,
// and from then on they go from queue pair to queue pair.
#pragma once

#include "base/map.h"
#include "plugins/rdmacm/rsocket.h"
#include "plugins/rdmacm/rsocket_wire.h"

enum {
    RSOCKET_PEERS_MAX = 4096,    // that are remembered; the oldest is forgotten for a new one
    RSOCKET_DATAGRAM_MAX = 2048, // with its header: what peers have room for
};

struct rsocket_datagram;
struct rsocket_dpair;

// A datagram that has come, until it is read: in the buffer of a receive, or in memory of its own.
struct rsocket_arrival {
    struct alb_list link;
    struct rsocket_dpair *pair; // NULL: through UDP
    struct rsocket_datagram_header from;
    uint8_t *bytes;
    uint32_t length;
};

// A queue pair: one for each address of ours that is used.
struct rsocket_dpair {
    struct alb_list link;
    struct alb_addr local;
    struct rdma_cm_id *id;
    struct ibv_comp_channel *completions;
    struct ibv_cq *cq;
    bool is_armed;
    struct ibv_mr *mr;
    uint8_t *memory; // the buffers of receives, and behind them those of sends
    struct rsocket_arrival *receives;
    uint32_t receive_count, send_count;
    uint32_t *free_sends, free_send_count;
    uint32_t payload_max_bytes; // header included
};

struct rsocket_peer_key {
    struct alb_addr addr;
    uint16_t port;
};

struct rsocket_peer {
    struct rsocket_peer_key key;
    struct rsocket_dpair *pair;
    uint32_t gid_index;
    struct ibv_ah *ah; // NULL: its queue pair is not known yet
    uint32_t qpn;
};

struct rsocket_datagram {
    struct rsocket rs;
    int udp_fd;
    bool is_connected, has_ended_in, has_ended_out;
    struct rsocket_peer_key connected;
    struct alb_list pairs;
    struct alb_list arrivals;
    uint32_t udp_arrivals; // of these, in memory of their own
    struct rsocket_peer *peers[RSOCKET_PEERS_MAX];
    uint32_t next_peer;
    struct alb_map peer_map;
    void *map_memory;
};

static inline struct rsocket_datagram *rsocket_datagram(struct rsocket *rs)
{
    return ALB_CONTAINER_OF(rs, struct rsocket_datagram, rs);
}

// ---- rsocket_dpair.c

int rsocket_dpair_open(struct rsocket_datagram *datagram, struct rdma_cm_id *id, struct rsocket_dpair **out);
void rsocket_dpair_close(struct rsocket_dpair *pair);
// Takes completions: arrivals are listed, sends give their buffers back. True: something has changed.
bool rsocket_dpair_progress(struct rsocket_datagram *datagram, struct rsocket_dpair *pair);
// Sends what the cursor holds; a buffer is free. An error number.
int rsocket_dpair_send(struct rsocket_dpair *pair, const struct rsocket_peer *peer,
                       const struct rsocket_datagram_header *header, struct rsocket_cursor *from);
// An arrival has been read.
void rsocket_dpair_again(struct rsocket_datagram *datagram, struct rsocket_arrival *arrival);

// ---- rsocket_peers.c

// The peer of an address, found or made. local: the address of ours that it has written to, or NULL. An error number.
int rsocket_peer_get(struct rsocket_datagram *datagram, const struct rsocket_peer_key *key,
                     const struct alb_addr *local, struct rsocket_peer **out);
// It has given its queue pair's number.
void rsocket_peer_learn(struct rsocket_peer *peer, uint32_t qpn);
// A peer's name in the family of the rsocket, where an IPv4 address may be a mapped one; its length.
socklen_t rsocket_peer_name(const struct rsocket *rs, const struct rsocket_peer_key *key,
                            struct sockaddr_storage *name);
int rsocket_peers_init(struct rsocket_datagram *datagram);
void rsocket_peers_fini(struct rsocket_datagram *datagram);

// ---- rsocket_udp.c

// [service] Takes a datagram that came through UDP; false: there is none.
bool rsocket_udp_receive(struct rsocket_datagram *datagram);
// Sends through UDP, from the peer's address of ours, with our queue pair in front. An error number.
int rsocket_udp_send(struct rsocket_datagram *datagram, const struct rsocket_peer *peer, enum rsocket_udp_op op,
                     struct rsocket_cursor *from);
