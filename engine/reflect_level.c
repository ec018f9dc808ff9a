// SPDX-License-Identifier: BSD-2-Clause
// The target of an ordinary message that wants more than an acknowledgement: once it is in place the digest is read
// back from where it was put. On our device what is in place is visible: its memory is the host's.
#include "engine/impl.h"
#include "engine/inbound.h"

static bool add_receive(struct alb_digest_state *state, struct alb_qp *qp, uint64_t length)
{
    const struct alb_srq *srq = alb_qp_srq(qp);
    const struct alb_pd *pd = srq ? srq->pd : qp->pd;
    for (const struct alb_sge *sge = qp->recv->sge; length > 0; sge++) {
        uint64_t part = ALB_MIN(length, (uint64_t)sge->length);
        uint8_t *host;
        if (alb_region_local(qp->engine, pd, sge->lkey, sge->addr, part, ALB_ACCESS_LOCAL_WRITE, &host) !=
            ALB_ACCESS_OK)
            return false;
        alb_digest_add(state, host, part);
        length -= part;
    }
    return true;
}

static bool add_region(struct alb_digest_state *state, struct alb_qp *qp, const struct alb_csa_segment *last)
{
    struct alb_region *region;
    uint8_t *host;
    if (last->total_bytes == 0)
        return true;
    if (alb_region_find_remote(qp, last->rkey, last->va, last->total_bytes, ALB_ACCESS_REMOTE_WRITE, &region, &host) !=
        ALB_ACCESS_OK)
        return false;
    alb_digest_add(state, host, last->total_bytes);
    return true;
}

static bool read_back(struct alb_qp *qp, const struct alb_csa_segment *last, struct alb_digest *digest)
{
    const struct alb_txn_id id = {.initiator = last->txn.initiator, .number = last->txn.number};
    bool is_write = last->op == ALB_CSA_WRITE || last->op == ALB_CSA_WRITE_IMM;
    struct alb_digest_state state;
    alb_txn_digest_begin(&state, &id);
    alb_txn_digest_part(&state, is_write ? last->rkey : 0, is_write ? last->va : 0, last->total_bytes);
    if (is_write ? !add_region(&state, qp, last) : !add_receive(&state, qp, last->total_bytes))
        return false;
    *digest = alb_digest_end(&state);
    return true;
}

// With a record, so that it can be asked for again; without memory for one it is said once.
static void say(struct alb_reflect_in *in, const struct alb_csa_segment *last, const struct alb_digest *digest,
                bool is_good, alb_time now)
{
    struct alb_engine *engine = in->csa->qp->engine;
    if (!in->initiator)
        in->initiator = alb_txn_initiator_get(engine, last->txn.initiator, in);
    struct alb_txn_in *txn = alb_txn_in_create(engine);
    bool is_kept = txn && in->initiator && in->initiator->id == last->txn.initiator &&
                   alb_txn_in_name(txn, in->initiator, last->txn.number) == ALB_TXN_OK;
    if (is_kept) {
        alb_txn_initiator_pass(in->initiator, last->txn_low_water);
        txn->digest = *digest;
        txn->placed_at = txn->decided_at = txn->visible_at = now;
        txn->is_message = true;
        alb_txn_in_finish(txn, is_good ? ALB_TXN_COMMITTED : ALB_TXN_CORRUPT, is_good ? ALB_TXN_OK : ALB_TXN_DIGEST,
                          now);
        return;
    }
    if (txn)
        alb_txn_in_destroy(txn);
    alb_reflect_in_owe_stray(in, &(struct alb_csa_verdict){
                                     .state = is_good ? ALB_CSA_VERDICT_COMMITTED : ALB_CSA_VERDICT_CORRUPT,
                                     .reason = is_good ? ALB_TXN_OK : ALB_TXN_DIGEST,
                                     .id = last->txn,
                                     .digest = alb_digest_to_wire(*digest),
                                     .placed_at = now,
                                     .decided_at = now,
                                     .visible_at = now,
                                 });
}

void alb_reflect_in_message(struct alb_csa *csa, const struct alb_csa_segment *last, alb_time now)
{
    struct alb_reflect_in *in = alb_reflect_in_get(csa);
    bool is_wanted = last->digest.low != 0 || last->digest.high != 0;
    struct alb_digest digest = {0, 0};
    if (!in)
        return; // this device has no transactions
    bool is_good = !is_wanted || (read_back(csa->qp, last, &digest) && alb_digest_is_wire(&digest, &last->digest));
    if (!is_good)
        csa->qp->engine->stats->sum.counter[ALB_STAT_digest_mismatches]++;
    say(in, last, &digest, is_good, now);
}
