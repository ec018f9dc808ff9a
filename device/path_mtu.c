// SPDX-License-Identifier: BSD-2-Clause
// Asking routes: a UDP socket that is connected to the peer knows its path MTU, and nothing is sent for that.
#include "device/path_mtu.h"

#include "device/address.h"
#include "device/cancel.h"
#include "device/socket.h"

#include <netinet/in.h>
#include <netinet/ip.h>
#include <unistd.h>

#define UDP_HEADER_BYTES 8
#define WAYS             4 // places a peer may stand at

static bool connect_there(int fd, const struct alb_addr *local, const struct alb_addr *peer)
{
    const struct alb_endpoint from = {.addr = *local}, to = {.addr = *peer, .port = 9}; // any port will do
    union alb_sockaddr name;
    socklen_t length = alb_sockaddr_encode(&from, &name);
    if (bind(fd, &name.any, length) != 0)
        return false;
    length = alb_sockaddr_encode(&to, &name);
    return connect(fd, &name.any, length) == 0;
}

static uint32_t ask_for_payload_max(const struct alb_addr *local, const struct alb_addr *peer)
{
    bool is_ipv4 = alb_addr_is_ipv4(peer);
    const int overhead = (is_ipv4 ? 20 : 40) + UDP_HEADER_BYTES;
    int mtu = 0;
    socklen_t length = sizeof(mtu);
    int fd = socket(is_ipv4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, IPPROTO_UDP);
    if (fd < 0)
        return 0;
    bool is_known = connect_there(fd, local, peer) && getsockopt(fd, is_ipv4 ? IPPROTO_IP : IPPROTO_IPV6,
                                                                 is_ipv4 ? IP_MTU : IPV6_MTU, &mtu, &length) == 0;
    close(fd);
    if (!is_known || mtu <= overhead)
        return 0;
    return ALB_MIN((uint32_t)(mtu - overhead), (uint32_t)ALB_UDP_PAYLOAD_MAX) & ~3u;
}

uint32_t alb_path_payload_max(const struct alb_addr *local, const struct alb_addr *peer)
{
    int cancel = alb_cancel_off();
    uint32_t bytes = ask_for_payload_max(local, peer);
    alb_cancel_back(cancel);
    return bytes;
}

// FNV-1a over what differs between peers. A peer that chooses addresses which collide only has them looked at more
// often.
static uint32_t hash(const struct alb_endpoint *peer)
{
    uint32_t value = 0x811c9dc5u ^ peer->port;
    for (size_t i = 0; i < sizeof(peer->addr.bytes); i++)
        value = (value ^ peer->addr.bytes[i]) * 0x01000193u;
    return value;
}

static bool is_of(const struct alb_mtu_watch_peer *entry, const struct alb_addr *local, const struct alb_endpoint *peer)
{
    return alb_endpoint_equals(&entry->peer, peer) && alb_addr_equals(&entry->local, local);
}

// The peer's place, or the one that it shall have.
static struct alb_mtu_watch_peer *find(struct alb_mtu_watch *watch, const struct alb_addr *local,
                                       const struct alb_endpoint *peer)
{
    struct alb_mtu_watch_peer *set = &watch->peers[hash(peer) % (ALB_MTU_WATCH_PEERS / WAYS) * WAYS], *oldest = set;
    for (uint32_t i = 0; i < WAYS; i++) {
        if (is_of(&set[i], local, peer))
            return &set[i];
        if (set[i].due < oldest->due)
            oldest = &set[i];
    }
    return oldest;
}

static void look(struct alb_mtu_watch *watch, struct alb_mtu_watch_peer *entry, bool always, alb_time now)
{
    entry->due = now + ALB_MTU_WATCH_AGE_NS;
    uint32_t payload_max = watch->ask(&entry->local, &entry->peer.addr);
    if (payload_max == 0 || (payload_max == entry->payload_max && !always))
        return;
    entry->payload_max = payload_max;
    watch->tell(watch->context, &entry->peer, payload_max, now);
}

static struct alb_mtu_watch_peer *find_or_enter(struct alb_mtu_watch *watch, const struct alb_addr *local,
                                                const struct alb_endpoint *peer, alb_time now)
{
    if (alb_likely(watch->last && is_of(watch->last, local, peer)))
        return watch->last;
    struct alb_mtu_watch_peer *entry = watch->last = find(watch, local, peer);
    if (is_of(entry, local, peer))
        return entry;
    *entry = (struct alb_mtu_watch_peer){
        .peer = *peer,
        .local = *local,
        .is_here = alb_address_is_local(&peer->addr),
        .due = now + ALB_MTU_WATCH_AGE_NS, // its address vector has just reported the route's MTU
    };
    return entry;
}

void alb_mtu_watch_sent(struct alb_mtu_watch *watch, const struct alb_addr *local, const struct alb_endpoint *peer,
                        alb_time now)
{
    struct alb_mtu_watch_peer *entry = find_or_enter(watch, local, peer, now);
    if (now >= entry->due && !entry->is_here)
        look(watch, entry, false, now);
}

void alb_mtu_watch_refused(struct alb_mtu_watch *watch, const struct alb_addr *local, const struct alb_endpoint *peer,
                           alb_time now)
{
    look(watch, find_or_enter(watch, local, peer, now), true, now);
}
