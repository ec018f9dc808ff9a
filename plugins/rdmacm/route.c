// SPDX-License-Identifier: BSD-2-Clause
// From which address to which an id connects.
#include "plugins/rdmacm/door.h"

#include "device/address.h"

#include <sys/socket.h>
#include <unistd.h>

// The address that the host would send from; what a socket connected there says. from NULL: whichever it chooses; else
// whether it sends from that one.
static int ask_kernel(const struct alb_addr *from, const struct alb_addr *peer, struct alb_addr *local)
{
    struct sockaddr_storage source, storage;
    socklen_t length = sizeof(storage);
    uint16_t port;
    rdmacm_set_sockaddr(&storage, peer, 1);
    int fd = socket(storage.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return errno;
    socklen_t bytes = storage.ss_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
    if (from)
        rdmacm_set_sockaddr(&source, from, 0);
    int error = (from && bind(fd, (struct sockaddr *)&source, bytes)) ||
                        connect(fd, (struct sockaddr *)&storage, bytes) ||
                        getsockname(fd, (struct sockaddr *)&storage, &length)
                    ? errno
                    : 0;
    close(fd);
    return error ? error : rdmacm_get_sockaddr((struct sockaddr *)&storage, local, &port) ? 0 : EAFNOSUPPORT;
}

// The host prefers an address that it got after the device was opened, as IPv6 gives out new ones for privacy. One of
// the device's on the same interface does as well; else *local stays, as where the peer is this host by an address that
// the device does not have.
static void prefer_own(const struct alb_addr *peer, struct alb_addr *local)
{
    struct alb_address_info chosen, info;
    const struct alb_addr *gid;
    uint32_t index;
    if (rdmacm_find_gid(local, &index) == 0 || alb_addr_equals(local, peer) || alb_address_find(local, &chosen) != 0)
        return;
    for (uint32_t i = 0; (gid = alb_device_gid(rdmacm_device(), i)); i++) {
        struct alb_addr from;
        if (alb_addr_is_ipv4(gid) == alb_addr_is_ipv4(peer) && alb_address_find(gid, &info) == 0 &&
            info.ifindex == chosen.ifindex && ask_kernel(gid, peer, &from) == 0) {
            *local = *gid;
            return;
        }
    }
}

// What stands for this host: an address of the device of that family, one of the loopback interface if it has any.
static int own_of_family(bool is_ipv4, struct alb_addr *own)
{
    const struct alb_addr *gid;
    int error = ENODEV;
    for (uint32_t i = 0; (gid = alb_device_gid(rdmacm_device(), i)); i++) {
        if (alb_addr_is_ipv4(gid) != is_ipv4 || (!error && !alb_address_is_loopback(gid)))
            continue;
        *own = *gid;
        error = 0;
        if (alb_address_is_loopback(gid))
            break;
    }
    return error;
}

int rdmacm_route(const struct rdmacm_id *id, struct alb_addr *peer, struct alb_addr *local)
{
    uint16_t port;
    uint32_t index;
    bool is_bound = id->is_bound && !id->is_any;
    if (is_bound && !rdmacm_get_sockaddr(&id->id.route.addr.src_addr, local, &port))
        return EINVAL;
    if (rdmacm_is_any(peer)) {
        bool is_ipv4 = alb_addr_is_ipv4(peer);
        int error = !is_bound ? own_of_family(is_ipv4, local) : alb_addr_is_ipv4(local) == is_ipv4 ? 0 : EAFNOSUPPORT;
        *peer = *local;
        return error;
    }
    if (is_bound)
        return 0;
    if (rdmacm_find_gid(peer, &index) == 0) { // ourselves
        *local = *peer;
        return 0;
    }
    int error = ask_kernel(NULL, peer, local);
    if (!error)
        prefer_own(peer, local);
    return error;
}
