// SPDX-License-Identifier: BSD-2-Clause
// Attaching queue pairs to multicast groups: the engine knows the members, the port hears the groups that have some.
#include "device/impl.h"

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
