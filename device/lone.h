// SPDX-License-Identifier: BSD-2-Clause
// A message that leaves alone. Of two programs that exchange small messages each sends the same kind to the same peer
// again and again, so its socket takes over what they have in common: the size of segments and, where it only sends,
// the peer. A message that has nothing to say but its bytes leaves by a cheaper system call.
#pragma once

#include "device/socket.h"

// peer NULL: the socket is not to be connected. segment_bytes: as the header says it; 0: one datagram. Returns what
// sendmsg(2) does, with its errno.
ssize_t alb_lone_send(struct alb_socket *socket, const struct alb_endpoint *peer, uint32_t segment_bytes,
                      const struct msghdr *header);
