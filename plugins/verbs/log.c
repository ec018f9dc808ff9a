// SPDX-License-Identifier: BSD-2-Clause
// Why a queue pair went into error, in one line: "transport retry counter exceeded" alone helps nobody.
#include "base/log.h"
#include "plugins/verbs/door.h"

void alb_door_log_failure(const struct alb_qp *qp, const struct alb_qp_failure *failure)
{
    char peer[ALB_ENDPOINT_TEXT_MAX];
    if (!alb_log_is_shown(ALB_LOG_WARNING))
        return;
    alb_log(ALB_LOG_WARNING,
            "queue pair 0x%06x to %s queue pair 0x%06x failed: %s (%s%s); last PSN 0x%06x, awaited 0x%06x, "
            "tried again %u of %u times",
            alb_qp_number(qp), alb_endpoint_format(&failure->peer, peer), failure->dest_qpn,
            failure->reason ? failure->reason : "no reason noted",
            ibv_wc_status_str((enum ibv_wc_status)failure->status), failure->at_responder ? ", the peer's request" : "",
            failure->last_psn, failure->awaited_psn, failure->retries, failure->retry_limit);
}
