// SPDX-License-Identifier: BSD-2-Clause
#include "device/lone.h"

#include "device/syscalls.h"

#include <netinet/ip.h>

// Asked for so often in a row, it is taken over.
#define TIMES_TO_LEARN 8

// Larger segments gain nothing, and up to here they fit whatever MTU a path comes to have: the kernel compares a
// socket's segments with that even where nothing is cut.
#define SEGMENT_BYTES_MAX 512

// A datagram that is not longer than the segments needs no other setting.
static void learn_segments(struct alb_socket *sock, uint32_t segment_bytes, size_t length)
{
    if (segment_bytes == sock->segment_bytes || (segment_bytes == 0 && length <= sock->segment_bytes) ||
        segment_bytes > SEGMENT_BYTES_MAX)
        return;
    if (segment_bytes != sock->segment_bytes_last)
        sock->segment_bytes_times = 0;
    sock->segment_bytes_last = (uint16_t)segment_bytes;
    if (++sock->segment_bytes_times < TIMES_TO_LEARN)
        return;
    sock->segment_bytes_times = 0;
    alb_socket_set_segment_bytes(sock, (uint16_t)segment_bytes);
}

// True if the socket is connected to the peer.
static bool learn_peer(struct alb_socket *sock, const struct alb_endpoint *peer)
{
    if (!peer || !sock->only_sends)
        return false;
    if (alb_endpoint_equals(peer, &sock->peer))
        return true;
    if (!alb_endpoint_equals(peer, &sock->peer_last))
        sock->peer_times = 0;
    sock->peer_last = *peer;
    if (++sock->peer_times < TIMES_TO_LEARN || alb_addr_is_multicast(&peer->addr))
        return false;
    sock->peer_times = 0;
    alb_socket_connect(sock, peer);
    return alb_endpoint_equals(peer, &sock->peer);
}

static bool is_said_by_socket(const struct alb_socket *sock, uint32_t segment_bytes, const struct msghdr *header)
{
    if (segment_bytes == 0)
        return header->msg_controllen == 0;
    return segment_bytes == sock->segment_bytes && header->msg_controllen == CMSG_SPACE(sizeof(uint16_t));
}

ssize_t alb_lone_send(struct alb_socket *sock, const struct alb_endpoint *peer, uint32_t segment_bytes,
                      const struct msghdr *header)
{
    bool is_one_piece = header->msg_iovlen == 1; // as all short ones are
    learn_segments(sock, segment_bytes, is_one_piece ? header->msg_iov->iov_len : SIZE_MAX);
    bool is_peer_known = learn_peer(sock, peer);
    if (!is_one_piece || !is_said_by_socket(sock, segment_bytes, header))
        return alb_sys_sendmsg(sock->fd, header);
    return is_peer_known ? alb_sys_sendto(sock->fd, header->msg_iov, NULL, 0)
                         : alb_sys_sendto(sock->fd, header->msg_iov, header->msg_name, header->msg_namelen);
}

bool alb_lone_is_usual(struct alb_socket *sock, const struct alb_burst *burst, uint32_t bytes_max)
{
    uint8_t hop_limit = burst->hop_limit ? burst->hop_limit : IPDEFTTL;
    bool is_uncut = burst->segment_count == 1;
    if (burst->segment_count * burst->segment_bytes > bytes_max || burst->may_be_cut || hop_limit != sock->hop_limit ||
        hop_limit != sock->hop_limit_last || burst->traffic_class != sock->traffic_class ||
        burst->traffic_class != sock->traffic_class_last)
        return false;
    if (is_uncut ? sock->segment_bytes != 0 && burst->segment_bytes > sock->segment_bytes
                 : burst->segment_bytes != sock->segment_bytes || !sock->gso_works)
        return false;
    return sock->only_sends ? alb_endpoint_equals(&burst->peer, &sock->peer)
                            : !alb_addr_is_multicast(&burst->peer.addr);
}

ssize_t alb_lone_send_usual(struct alb_socket *sock, const struct alb_endpoint *peer, union alb_sockaddr *name,
                            const struct iovec *piece)
{
    return sock->only_sends ? alb_sys_sendto(sock->fd, piece, NULL, 0)
                            : alb_sys_sendto(sock->fd, piece, &name->any, alb_sockaddr_encode(peer, name));
}
