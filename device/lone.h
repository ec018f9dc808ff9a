// SPDX-License-Identifier: BSD-2-Clause
// A message that leaves alone. Of two programs that exchange small messages each sends the same kind to the same peer
// again and again, so its socket takes over what they have in common: the size of segments and, where it only sends,
// the peer. A message that has nothing to say but its bytes leaves by a cheaper system call.
#pragma once

#include "device/socket.h"
#include "wire/datagram.h"

// peer NULL: the socket is not to be connected. segment_bytes: as the header says it; 0: one datagram. Returns what
// sendmsg(2) does, with its errno.
ssize_t alb_lone_send(struct alb_socket *socket, const struct alb_endpoint *peer, uint32_t segment_bytes,
                      const struct msghdr *header);

// True if the burst is short and has nothing to say but its bytes: hop limit, traffic class and segments are those that
// the socket gives by itself, and nothing is left that it could take over.
bool alb_lone_is_usual(struct alb_socket *socket, const struct alb_burst *burst, uint32_t bytes_max);
// Sends such a burst, which lies in one piece. Returns what sendto(2) does, with its errno.
ssize_t alb_lone_send_usual(struct alb_socket *socket, const struct alb_endpoint *peer, union alb_sockaddr *name,
                            const struct iovec *piece);
