// SPDX-License-Identifier: BSD-2-Clause
// Socket limits of this host, and a trial of segmentation and receive offload over loopback.
#include "tools/host.h"

#include <arpa/inet.h>
#include <netinet/udp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define TRIAL_SEGMENTS      4
#define TRIAL_SEGMENT_BYTES 1000

static uint64_t number_in(const char *path)
{
    unsigned long long value = 0;
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return 0;
    if (fscanf(file, "%llu", &value) != 1)
        value = 0;
    fclose(file);
    return value;
}

// Whether the next datagram comes with a segment size, so as a run.
static bool arrives_as_run(int fd)
{
    uint8_t bytes[TRIAL_SEGMENTS * TRIAL_SEGMENT_BYTES];
    char control[CMSG_SPACE(sizeof(int))];
    struct iovec iov = {.iov_base = bytes, .iov_len = sizeof(bytes)};
    struct msghdr message = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};
    struct pollfd readable = {.fd = fd, .events = POLLIN};
    if (poll(&readable, 1, 1000) != 1 || recvmsg(fd, &message, MSG_DONTWAIT) <= TRIAL_SEGMENT_BYTES)
        return false;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&message); c != NULL; c = CMSG_NXTHDR(&message, c)) {
        int size;
        if (c->cmsg_level != SOL_UDP || c->cmsg_type != UDP_GRO)
            continue;
        memcpy(&size, CMSG_DATA(c), sizeof(size));
        return size == TRIAL_SEGMENT_BYTES;
    }
    return false;
}

static void try_offload(int sender, int receiver, struct host_sockets *sockets)
{
    static const uint8_t run[TRIAL_SEGMENTS * TRIAL_SEGMENT_BYTES];
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(to);
    int on = 1, segment = TRIAL_SEGMENT_BYTES;
    if (bind(receiver, (struct sockaddr *)&to, sizeof(to)) != 0 ||
        getsockname(receiver, (struct sockaddr *)&to, &length) != 0)
        return;
    bool gro = setsockopt(receiver, SOL_UDP, UDP_GRO, &on, sizeof(on)) == 0;
    if (setsockopt(sender, SOL_UDP, UDP_SEGMENT, &segment, sizeof(segment)) != 0)
        return;
    if (sendto(sender, run, sizeof(run), 0, (struct sockaddr *)&to, sizeof(to)) != (ssize_t)sizeof(run))
        return;
    sockets->has_gso = true;
    sockets->has_gro = gro && arrives_as_run(receiver);
}

void host_sockets_probe(struct host_sockets *sockets)
{
    *sockets = (struct host_sockets){
        .receive_default_bytes = number_in("/proc/sys/net/core/rmem_default"),
        .receive_max_bytes = number_in("/proc/sys/net/core/rmem_max"),
        .send_default_bytes = number_in("/proc/sys/net/core/wmem_default"),
        .send_max_bytes = number_in("/proc/sys/net/core/wmem_max"),
    };
    int sender = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    int receiver = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (sender >= 0 && receiver >= 0)
        try_offload(sender, receiver, sockets);
    if (sender >= 0)
        close(sender);
    if (receiver >= 0)
        close(receiver);
}
