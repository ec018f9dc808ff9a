// SPDX-License-Identifier: BSD-2-Clause
// Attaching queue pairs to multicast groups: the engine knows the members, the port hears the groups that have some.
#include "device/multicast.h"

#include "device/address.h"

#include <errno.h>

// With the token.
static int attach(struct alb_device *device, struct alb_qp *qp, const struct alb_addr *group)
{
    bool is_heard = alb_engine_has_group(device->engine, group);
    int error = alb_qp_attach(qp, group);
    if (error || is_heard)
        return error;
    error = alb_groups_join(&device->port.groups, group, device->port.epoll_fd);
    if (error)
        alb_qp_detach(qp, group);
    return error;
}

// With the token.
static int detach(struct alb_device *device, struct alb_qp *qp, const struct alb_addr *group)
{
    int error = alb_qp_detach(qp, group);
    if (!error && !alb_engine_has_group(device->engine, group))
        alb_port_leave_group(&device->port, group);
    return error;
}

int alb_device_attach(struct alb_device *device, struct alb_qp *qp, const struct alb_addr *group)
{
    alb_device_lock(device);
    int error = attach(device, qp, group);
    alb_device_unlock(device);
    return error;
}

int alb_device_detach(struct alb_device *device, struct alb_qp *qp, const struct alb_addr *group)
{
    alb_device_lock(device);
    int error = detach(device, qp, group);
    alb_device_unlock(device);
    return error;
}

void alb_device_detach_all(struct alb_device *device, struct alb_qp *qp)
{
    struct alb_addr group;
    alb_device_lock(device);
    while (alb_qp_group(qp, &group))
        detach(device, qp, &group);
    alb_device_unlock(device);
}

// The interfaces that carry the addresses now. One that has lost its address keeps its index for the time.
static int find_interfaces(const struct alb_device *device, uint32_t *ifindexes, bool *have_changed)
{
    *have_changed = false;
    for (uint32_t i = 0; i < device->port.address_count; i++) {
        struct alb_address_info info;
        const struct alb_addr *addr = &device->port.addresses[i];
        uint32_t before = device->ifindexes[i];
        int error = alb_address_is_loopback(addr) ? EADDRNOTAVAIL : alb_address_find(addr, &info);
        if (error && error != EADDRNOTAVAIL)
            return error;
        ifindexes[i] = error ? before : info.ifindex;
        *have_changed |= ifindexes[i] != before;
    }
    return 0;
}

int alb_multicast_review(struct alb_device *device)
{
    uint32_t ifindexes[ALB_DEVICE_ADDRESSES_MAX];
    bool have_changed;
    int error = find_interfaces(device, ifindexes, &have_changed);
    if (error || !have_changed)
        return error;
    alb_device_lock(device);
    error = alb_port_change_interfaces(&device->port, ifindexes);
    alb_device_unlock(device);
    for (uint32_t i = 0; i < device->port.address_count && !error; i++)
        device->ifindexes[i] = ifindexes[i];
    return error;
}
