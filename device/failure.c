// SPDX-License-Identifier: BSD-2-Clause
// The line about a failed queue pair.
#include "device/failure.h"

#include "base/log.h"
#include "device/address.h"

#include <stdio.h>

static const char *request_name(enum alb_wr_opcode opcode)
{
    switch (opcode) {
    case ALB_WR_RDMA_WRITE:
        return "WRITE";
    case ALB_WR_RDMA_WRITE_WITH_IMM:
        return "WRITE with immediate";
    case ALB_WR_SEND:
        return "SEND";
    case ALB_WR_SEND_WITH_IMM:
        return "SEND with immediate";
    case ALB_WR_RDMA_READ:
        return "READ";
    case ALB_WR_ATOMIC_CMP_AND_SWP:
        return "compare-and-swap";
    case ALB_WR_ATOMIC_FETCH_AND_ADD:
        return "fetch-and-add";
    case ALB_WR_LOCAL_INV:
        return "local invalidate";
    case ALB_WR_BIND_MW:
        return "memory window bind";
    case ALB_WR_SEND_WITH_INV:
        return "SEND with invalidate";
    case ALB_WR_ATOMIC_WRITE:
        return "ATOMIC WRITE";
    case ALB_WR_TXN_WRITE:
    case ALB_WR_TXN_END:
        return "transaction";
    case ALB_WR_TXN_ASK:
        return "reconciliation";
    }
    return "request";
}

static const char *kind_name(const struct alb_qp *qp)
{
    static const char *const names[] = {[ALB_QPT_RC] = "RC",
                                        [ALB_QPT_UC] = "UC",
                                        [ALB_QPT_UD] = "UD",
                                        [ALB_QPT_XRC_SEND] = "XRC_SEND",
                                        [ALB_QPT_XRC_RECV] = "XRC_RECV"};
    return names[alb_qp_kind(qp)];
}

// What the address of a peer that does not answer gives away. A loopback address came from a host that was started
// without --net, this one or another. Programs (ibv_rc_pingpong) ask for a hop limit of 1, which is enough for a
// network without routers only.
static const char *address_hint(const struct alb_qp_failure *failure)
{
    if (failure->status != ALB_WC_RETRY_EXC_ERR)
        return "";
    if (alb_address_is_loopback(&failure->peer.addr))
        return " (that address is taken to be on this host; for a peer on another one start both by "
               "`albedo run --net`)";
    return failure->hop_limit == 1 ? " (its hop limit is 1, with which no packet passes a router)" : "";
}

#define EFFORT_MAX 64

// What was done before it was given up.
static void effort_format(const struct alb_qp_failure *failure, char text[EFFORT_MAX])
{
    if (failure->silence_ns)
        snprintf(text, EFFORT_MAX, "asked again %u times in %llu ms", failure->retries,
                 (unsigned long long)(failure->silence_ns / ALB_NS_PER_MS));
    else if (failure->retry_limit)
        snprintf(text, EFFORT_MAX, "retried %u times of %u", failure->retries, failure->retry_limit);
    else
        snprintf(text, EFFORT_MAX, "retried %u times", failure->retries);
}

char *alb_failure_format(const struct alb_qp *qp, const struct alb_qp_failure *failure, char text[ALB_FAILURE_TEXT_MAX])
{
    char peer[ALB_ENDPOINT_TEXT_MAX], effort[EFFORT_MAX];
    const char *reason = failure->reason ? failure->reason : "unknown reason";
    alb_endpoint_format(&failure->peer, peer);
    effort_format(failure, effort);
    if (failure->at_responder)
        snprintf(text, ALB_FAILURE_TEXT_MAX,
                 "%s queue pair 0x%06x failed: a request of peer %s QPN 0x%06x: %s; expected PSN %u", kind_name(qp),
                 alb_qp_number(qp), peer, failure->dest_qpn, reason, failure->awaited_psn);
    else if (failure->is_idle)
        snprintf(text, ALB_FAILURE_TEXT_MAX,
                 "%s queue pair 0x%06x failed with nothing under way: peer %s QPN 0x%06x: %s", kind_name(qp),
                 alb_qp_number(qp), peer, failure->dest_qpn, reason);
    else
        snprintf(text, ALB_FAILURE_TEXT_MAX,
                 "%s queue pair 0x%06x failed: %s to peer %s QPN 0x%06x: %s%s; last PSN sent %u, awaited an answer to "
                 "PSN %u, "
                 "%s, syndrome 0x%02x",
                 kind_name(qp), alb_qp_number(qp), request_name(failure->opcode), peer, failure->dest_qpn, reason,
                 address_hint(failure), failure->last_psn, failure->awaited_psn, effort, failure->syndrome);
    return text;
}

char *alb_failure_format_unsent(const struct alb_edge_stats *stats, char text[ALB_UNSENT_TEXT_MAX])
{
    static const struct {
        enum alb_edge_stat stat;
        const char *why;
    } kinds[] = {
        {ALB_EDGE_tx_refused, "forbidden by a packet filter, or no route"},
        {ALB_EDGE_tx_too_big, "larger than the path's MTU"},
        {ALB_EDGE_tx_no_socket, "no socket for their address"},
        {ALB_EDGE_tx_no_buffer, "no buffer space"},
    };
    size_t length = 0;
    text[0] = '\0';
    for (size_t i = 0; i < ALB_COUNT(kinds); i++) {
        uint64_t count = alb_edge_counted(stats, kinds[i].stat);
        if (count > 0)
            length += (size_t)snprintf(
                text + length, ALB_UNSENT_TEXT_MAX - length, "%s %llu (%s)",
                length ? "," : "; datagrams that did not leave this host:", (unsigned long long)count, kinds[i].why);
    }
    return text;
}

void alb_failure_log(const struct alb_qp *qp, const struct alb_qp_failure *failure, const struct alb_edge_stats *stats)
{
    char text[ALB_FAILURE_TEXT_MAX], unsent[ALB_UNSENT_TEXT_MAX] = "";
    if (!alb_log_is_shown(ALB_LOG_WARNING))
        return;
    if (failure->status == ALB_WC_RETRY_EXC_ERR && !failure->at_responder)
        alb_failure_format_unsent(stats, unsent);
    alb_log(ALB_LOG_WARNING, "%s%s", alb_failure_format(qp, failure, text), unsent);
}
