// SPDX-License-Identifier: BSD-2-Clause
// ibv_attach_mcast(3) and ibv_detach_mcast(3). A multicast GID is an IP multicast address, so there is no subnet
// administrator to be asked first and the LID means nothing.
#include "plugins/verbs/door.h"

static int begin(const struct ibv_qp *qp, const union ibv_gid *gid, struct alb_addr *group)
{
    if (!qp || !gid)
        return EINVAL;
    if (alb_door_is_forked(alb_door_context(qp->context)))
        return ENODEV;
    memcpy(group->bytes, gid->raw, sizeof(group->bytes));
    return 0;
}

int ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
    struct alb_addr group;
    int error = begin(qp, gid, &group);
    (void)lid;
    if (!error)
        error = alb_device_attach(alb_door_context(qp->context)->device, alb_door_qp(qp)->engine_qp, &group);
    return alb_door_answer(error);
}

int ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
    struct alb_addr group;
    int error = begin(qp, gid, &group);
    (void)lid;
    if (!error)
        error = alb_device_detach(alb_door_context(qp->context)->device, alb_door_qp(qp)->engine_qp, &group);
    return alb_door_answer(error);
}
