// SPDX-License-Identifier: BSD-2-Clause
// Enhanced connection establishment: programs that own their queue pairs pass on what the queue pairs' makers want to
// agree on. Our device has no such options itself, so an id with a queue pair of its own has none to show.
#include "plugins/rdmacm/door.h"

#define VENDOR_MAX 0xffffffu // the field in the messages has 24 bits

int rdma_set_local_ece(struct rdma_cm_id *outer, struct ibv_ece *ece)
{
    if (!outer || !ece || outer->qp || ece->comp_mask || ece->vendor_id == 0 || ece->vendor_id > VENDOR_MAX)
        return rdmacm_fail(EINVAL);
    rdmacm_id(outer)->local_ece = (struct alb_cm_ece){.vendor_id = ece->vendor_id, .options = ece->options};
    return 0;
}

int rdma_get_remote_ece(struct rdma_cm_id *outer, struct ibv_ece *ece)
{
    if (!outer || !ece || outer->qp)
        return rdmacm_fail(EINVAL);
    const struct alb_cm_ece *remote = &rdmacm_id(outer)->remote_ece;
    *ece = (struct ibv_ece){.vendor_id = remote->vendor_id, .options = remote->options};
    return 0;
}

int rdma_reject_ece(struct rdma_cm_id *outer, const void *private_data, uint8_t length)
{
    return rdmacm_result(rdmacm_reject(rdmacm_id(outer), ALB_CM_REJ_VENDOR_OPTION, private_data, length));
}
