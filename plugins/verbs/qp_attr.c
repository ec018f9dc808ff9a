// SPDX-License-Identifier: BSD-2-Clause
// Queue pair attributes between their two forms.
#include "plugins/verbs/door.h"
#include "wire/aeth.h"

static const unsigned int ignored_access =
    (IBV_ACCESS_OPTIONAL_RANGE & ~IBV_ACCESS_RELAXED_ORDERING) | ALB_DOOR_ACCESS_FLUSH;

static const int known_mask =
    IBV_QP_STATE | IBV_QP_CUR_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX |
    IBV_QP_PORT | IBV_QP_QKEY | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
    IBV_QP_RQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_ALT_PATH | IBV_QP_MIN_RNR_TIMER | IBV_QP_SQ_PSN |
    IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_PATH_MIG_STATE | IBV_QP_CAP | IBV_QP_DEST_QPN | IBV_QP_RATE_LIMIT;

// Only what the mask names is looked at: programs leave the rest of the structure as it comes from the stack. Of the
// RNR timer five bits count, since the drivers of common NICs take no more: DLSlime asks for 32. They ignore access by
// FLUSH, too, where the device has no such operation: no region gives it.
int alb_door_qp_attr_from(struct alb_door_context *context, const struct ibv_qp_attr *attr, int mask,
                          struct alb_qp_attr *to)
{
    *to = (struct alb_qp_attr){
        .state = (enum alb_qp_state)attr->qp_state,
        .cur_state = (enum alb_qp_state)attr->cur_qp_state,
        .en_sqd_async_notify = attr->en_sqd_async_notify,
        .access = attr->qp_access_flags & ~ignored_access,
        .pkey_index = attr->pkey_index,
        .port = attr->port_num,
        .qkey = attr->qkey,
        .path_mtu_bytes = alb_mtu_bytes(attr->path_mtu),
        .timeout = attr->timeout,
        .retry_cnt = attr->retry_cnt,
        .rnr_retry = attr->rnr_retry,
        .min_rnr_timer = attr->min_rnr_timer & 31,
        .max_rd_atomic = attr->max_rd_atomic,
        .max_dest_rd_atomic = attr->max_dest_rd_atomic,
        .rq_psn = attr->rq_psn & 0xffffff,
        .sq_psn = attr->sq_psn & 0xffffff,
        .dest_qpn = attr->dest_qp_num & 0xffffff,
    };
    if (mask & ~known_mask)
        return EINVAL;
    if (mask & IBV_QP_AV)
        return alb_door_av_from_attr(context, &attr->ah_attr, &to->av);
    return 0;
}

void alb_door_qp_attr_to(const struct alb_qp_attr *from, struct ibv_qp_attr *attr)
{
    *attr = (struct ibv_qp_attr){
        .qp_state = (enum ibv_qp_state)from->state,
        .cur_qp_state = (enum ibv_qp_state)from->cur_state,
        .path_mtu = (enum ibv_mtu)alb_mtu_code(from->path_mtu_bytes),
        .path_mig_state = IBV_MIG_MIGRATED,
        .qkey = from->qkey,
        .rq_psn = from->rq_psn,
        .sq_psn = from->sq_psn,
        .dest_qp_num = from->dest_qpn,
        .qp_access_flags = from->access,
        .pkey_index = from->pkey_index,
        .en_sqd_async_notify = from->en_sqd_async_notify,
        .sq_draining = from->sq_draining,
        .max_rd_atomic = from->max_rd_atomic,
        .max_dest_rd_atomic = from->max_dest_rd_atomic,
        .min_rnr_timer = from->min_rnr_timer,
        .port_num = from->port,
        .timeout = from->timeout,
        .retry_cnt = from->retry_cnt,
        .rnr_retry = from->rnr_retry,
    };
    static const struct alb_addr none;
    if (!alb_addr_equals(&from->av.peer, &none))
        alb_door_av_to_attr(&from->av, &attr->ah_attr);
}
