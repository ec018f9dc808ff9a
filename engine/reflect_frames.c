// SPDX-License-Identifier: BSD-2-Clause
// Commands and verdicts as frames: they leave with the packets of their association, behind its reports.
#include "engine/csa_admit.h"
#include "engine/csa_packet.h"
#include "engine/impl.h"

// ---- out ------------------------------------------------------------------------------------------------------------

bool alb_reflect_add(struct alb_assoc_live *live, struct alb_csa_packet *packet, alb_time now)
{
    struct alb_list *node;
    while ((node = alb_list_pop(&live->reflections))) {
        struct alb_reflect_source *source = ALB_LIST_ENTRY(node, struct alb_reflect_source, link);
        if (!source->add(source, packet, now)) {
            alb_list_push_front(&live->reflections, node);
            return false;
        }
    }
    return true;
}

bool alb_reflect_out_add(struct alb_reflect_source *source, struct alb_csa_packet *packet, alb_time now)
{
    struct alb_reflect_out *out = ALB_CONTAINER_OF(source, struct alb_reflect_out, source);
    struct alb_csa *csa = out->csa;
    while (!alb_list_is_empty(&out->due)) {
        struct alb_txn_out *txn = ALB_LIST_ENTRY(out->due.next, struct alb_txn_out, due);
        const struct alb_csa_txn command = {
            .command = txn->command,
            .dest_qpn = csa->qp->attr.dest_qpn,
            .id = {.initiator = txn->asked.initiator, .number = txn->asked.number},
            .keeper = txn->keeper,
            .low_water = txn->is_question ? 0 : atomic_load_explicit(&out->ended, memory_order_relaxed),
        };
        if (!alb_csa_control(packet, ALB_CSA_TXN, &command))
            return false;
        alb_list_remove(&txn->due);
        txn->asked_at = now;
        alb_csa_watch_life(csa, now);
    }
    return true;
}

static uint8_t state_of(const struct alb_txn_in *txn)
{
    switch (txn->state) {
    case ALB_TXN_REFLECTING:
        return ALB_CSA_VERDICT_REFLECTED;
    case ALB_TXN_COMMITTED:
        return ALB_CSA_VERDICT_COMMITTED;
    case ALB_TXN_ABORTED:
        return ALB_CSA_VERDICT_ABORTED;
    case ALB_TXN_CORRUPT:
        return ALB_CSA_VERDICT_CORRUPT;
    case ALB_TXN_UNKNOWN:
        return ALB_CSA_VERDICT_UNKNOWN;
    default:
        return ALB_CSA_VERDICT_PENDING;
    }
}

struct alb_csa_verdict alb_txn_in_verdict(const struct alb_txn_in *txn)
{
    // Of what was refused it may cover memory that was not written.
    static const struct alb_digest none = {0, 0};
    return (struct alb_csa_verdict){
        .state = state_of(txn),
        .reason = alb_txn_state_is_end(txn->state) ? (uint8_t)txn->reason : ALB_TXN_OK,
        .id = {.initiator = txn->id.initiator, .number = txn->id.number},
        .keeper = txn->keeper,
        .digest = alb_digest_to_wire(txn->state == ALB_TXN_ABORTED ? none : txn->digest),
        .placed_at = txn->placed_at,
        .decided_at = txn->decided_at,
        .visible_at = txn->visible_at,
    };
}

static bool send_verdict(struct alb_reflect_in *in, struct alb_csa_verdict verdict, struct alb_csa_packet *packet,
                         alb_time now)
{
    verdict.dest_qpn = in->csa->qp->attr.dest_qpn;
    verdict.now = now;
    return alb_csa_control(packet, ALB_CSA_VERDICT, &verdict);
}

bool alb_reflect_in_add(struct alb_reflect_source *source, struct alb_csa_packet *packet, alb_time now)
{
    struct alb_reflect_in *in = ALB_CONTAINER_OF(source, struct alb_reflect_in, source);
    for (; in->stray_count > 0; in->stray_count--) {
        if (!send_verdict(in, in->strays[in->stray_first], packet, now))
            return false;
        in->stray_first = (in->stray_first + 1) % ALB_REFLECT_STRAYS;
    }
    while (!alb_list_is_empty(&in->due)) {
        struct alb_txn_in *txn = ALB_LIST_ENTRY(in->due.next, struct alb_txn_in, due);
        if (!send_verdict(in, alb_txn_in_verdict(txn), packet, now))
            return false;
        alb_list_remove(&txn->due);
    }
    return true;
}

// ---- in -------------------------------------------------------------------------------------------------------------

// The queue pair that a frame names, if it may act for it: in a packet that shows that its sender knows our life.
// Numbers of transactions are random: they say as much as the numbers of a stream.
static enum alb_drop admit(struct alb_csa_arrival *arrival, alb_qpn qpn, struct alb_csa **csa)
{
    enum alb_drop drop = alb_csa_find_qp(arrival, qpn, csa);
    if (drop == ALB_DROP_NONE && !arrival->is_proven)
        drop = ALB_DROP_NOT_PROVEN;
    if (drop == ALB_DROP_NONE)
        drop = alb_csa_admit(arrival, *csa, NULL, true);
    if (drop == ALB_DROP_NONE && alb_qp_state_of((*csa)->qp) == ALB_QPS_ERR)
        drop = ALB_DROP_WRONG_QP_STATE;
    if (drop == ALB_DROP_NONE && (*csa)->qp->type != ALB_QPT_RC)
        drop = ALB_DROP_BAD_SERVICE;
    return drop;
}

enum alb_drop alb_reflect_on_command(struct alb_csa_arrival *arrival, const struct alb_csa_txn *command, alb_time now)
{
    struct alb_csa *csa;
    enum alb_drop drop = admit(arrival, command->dest_qpn, &csa);
    if (drop != ALB_DROP_NONE)
        return drop;
    alb_csa_heard(csa, now);
    alb_reflect_in_command(csa, command, now);
    return ALB_DROP_NONE;
}

enum alb_drop alb_reflect_on_verdict(struct alb_csa_arrival *arrival, const struct alb_csa_verdict *verdict,
                                     alb_time now)
{
    struct alb_csa *csa;
    enum alb_drop drop = admit(arrival, verdict->dest_qpn, &csa);
    if (drop != ALB_DROP_NONE)
        return drop;
    if (!csa->reflect_out)
        return ALB_DROP_BAD_REQUEST;
    alb_csa_heard(csa, now);
    alb_reflect_out_verdict(csa->reflect_out, verdict, now);
    return ALB_DROP_NONE;
}
