// SPDX-License-Identifier: BSD-2-Clause
// From a place in a context's books to the object that stands there, for closing a context that still has some.
#include "plugins/verbs/proposal.h"

int alb_door_release(enum alb_door_kind kind, struct alb_list *link)
{
    switch (kind) {
    case ALB_DOOR_QP:
        return alb_door_qp_release(ALB_LIST_ENTRY(link, struct alb_door_qp, link));
    case ALB_DOOR_MW:
        return alb_door_mw_release(ALB_LIST_ENTRY(link, struct alb_door_mw, link));
    case ALB_DOOR_AH:
        return alb_door_ah_release(ALB_LIST_ENTRY(link, struct alb_door_ah, link));
    case ALB_DOOR_SRQ:
        return alb_door_srq_release(ALB_LIST_ENTRY(link, struct alb_door_srq, link));
    case ALB_DOOR_XRCD:
        return alb_door_xrcd_release(ALB_LIST_ENTRY(link, struct alb_door_xrcd, link));
    case ALB_DOOR_MR:
        return alb_door_mr_release(ALB_LIST_ENTRY(link, struct alb_door_mr, link));
    case ALB_DOOR_PROPOSAL_CHANNEL:
        return alb_door_proposal_channel_release(ALB_LIST_ENTRY(link, struct alb_door_channel_of_proposals, link));
    case ALB_DOOR_CQ:
        return alb_door_cq_release(ALB_LIST_ENTRY(link, struct alb_door_cq, link));
    case ALB_DOOR_CHANNEL:
        return alb_door_channel_release(ALB_LIST_ENTRY(link, struct alb_door_channel, link));
    case ALB_DOOR_PARENT_DOMAIN:
    case ALB_DOOR_PD:
        return alb_door_pd_release(ALB_LIST_ENTRY(link, struct alb_door_pd, link));
    case ALB_DOOR_TD:
        return alb_door_td_release(ALB_LIST_ENTRY(link, struct alb_door_td, link));
    case ALB_DOOR_KINDS:
        break;
    }
    return EINVAL;
}
