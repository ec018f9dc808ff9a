// SPDX-License-Identifier: BSD-2-Clause
// rc, runs in: packets of the middle of one long message, or answer, that come one behind the other as their sender
// made them. What was proved of the first one - whose packet it is, what it belongs to - holds for those that repeat
// its bytes but for the PSN, which must rise by one. They are as hostile as any: each byte of a header is compared.
#include "engine/impl.h"
#include "engine/outbound.h"
#include "engine/rc.h"
#include "wire/bytes.h"

#define ACKREQ   (1u << 31) // in the sequence of a BTH
#define PAD_BITS (3u << 4)  // in its second byte

static alb_psn psn_of(const struct alb_datagram *datagram)
{
    return alb_get_be32(datagram->bytes + ALB_BTH_SEQUENCE) & ALB_PSN_MASK;
}

static bool continues(const struct alb_datagram *datagram, const struct alb_datagram *first, alb_psn psn)
{
    return alb_datagram_is_like(datagram, first) && memcmp(datagram->bytes, first->bytes, ALB_BTH_SEQUENCE) == 0 &&
           (alb_get_be32(datagram->bytes + ALB_BTH_SEQUENCE) & ~ACKREQ) == psn;
}

static bool asks_for_ack(const struct alb_datagram *datagram)
{
    return alb_get_be32(datagram->bytes + ALB_BTH_SEQUENCE) & ACKREQ;
}

// How many of the datagrams continue the first one, at most the given number: to the first that asks for an
// acknowledgement, if one does.
static uint32_t count_next(const struct alb_datagram *datagrams, uint32_t count, uint64_t most)
{
    alb_psn psn = psn_of(datagrams);
    for (uint32_t next = 1; next < count && next <= most; next++) {
        psn = alb_psn_next(psn);
        if (!continues(&datagrams[next], datagrams, psn))
            return next - 1;
        if (asks_for_ack(&datagrams[next]))
            return next;
    }
    return (uint32_t)ALB_MIN((uint64_t)count - 1, most);
}

// ---- of a message ---------------------------------------------------------------------------------------------------

// Whether it was taken as the one before the next that is expected.
static bool is_request_taken(const struct alb_rc *rc, const struct alb_datagram *first)
{
    uint8_t opcode = rc->assembly.is_send ? ALB_RC_SEND_MIDDLE : ALB_RC_WRITE_MIDDLE;
    return rc->assembly.is_open && first->bytes[0] == opcode && rc->expected == alb_psn_next(psn_of(first));
}

static uint32_t take_requests(struct alb_rc *rc, const struct alb_datagram *datagrams, uint32_t count)
{
    struct alb_qp *qp = rc->qp;
    struct alb_assembly *assembly = &rc->assembly;
    uint32_t length = qp->attr.path_mtu_bytes;
    struct alb_room room;
    if (!alb_place_begin(qp, &assembly->target, assembly->offset, &room))
        return 0;
    // The last packet of a WRITE, which has a byte at least, is none of these; how long a SEND is only its last one
    // says.
    count = count_next(datagrams, count, (room.left - !assembly->is_send) / length);
    for (uint32_t i = 1; i <= count; i++)
        alb_place_next(qp->engine, &room, datagrams[i].bytes + ALB_BTH_BYTES, length);
    assembly->offset += (uint64_t)count * length;
    if (count > 0)
        alb_rc_note_executed(rc, count, false, asks_for_ack(&datagrams[count]));
    return count;
}

// ---- of an answer to a READ -----------------------------------------------------------------------------------------

// The READ whose answer it was, and that is to be answered next; or NULL.
static const struct alb_send_wqe *answered(const struct alb_rc *rc, const struct alb_datagram *first)
{
    uint32_t head = atomic_load_explicit(&rc->qp->sq.head, memory_order_relaxed);
    if (first->bytes[0] != ALB_RC_READ_RESPONSE_MIDDLE || head == rc->started || rc->una != alb_psn_next(psn_of(first)))
        return NULL;
    const struct alb_send_wqe *wqe = alb_rc_wqe(rc, head);
    bool is_within = alb_psn_is_within(rc->una, wqe->first_psn, wqe->packets);
    return wqe->opcode == ALB_WR_RDMA_READ && is_within ? wqe : NULL;
}

// They acknowledge together, as one packet may that acknowledges many.
static uint32_t take_answers(struct alb_rc *rc, const struct alb_send_wqe *wqe, const struct alb_datagram *datagrams,
                             uint32_t count, alb_time now)
{
    struct alb_qp *qp = rc->qp;
    uint32_t length = qp->attr.path_mtu_bytes, taken = 0;
    uint32_t k = (uint32_t)alb_psn_diff(rc->una, wqe->first_psn);
    count = count_next(datagrams, count, (uint32_t)alb_psn_diff(rc->high, rc->una));
    while (taken < count && alb_outbound_scatter(qp, wqe, (uint64_t)(k + taken) * length,
                                                 datagrams[taken + 1].bytes + ALB_BTH_BYTES, length) == ALB_WC_SUCCESS)
        taken++;
    if (taken > 0)
        alb_rc_acknowledge(rc, alb_psn_add(rc->una, (int32_t)taken), now);
    return taken;
}

// A full packet, and nothing to be told about it.
static bool is_plain(const struct alb_qp *qp, const struct alb_datagram *first)
{
    return first->length == ALB_BTH_BYTES + qp->attr.path_mtu_bytes && (first->bytes[1] & PAD_BITS) == 0 &&
           !alb_datagram_is_marked(first) && qp->engine->trace.capacity == 0;
}

uint32_t alb_rc_run_in(struct alb_engine *engine, const struct alb_datagram *datagrams, uint32_t count, alb_time now)
{
    struct alb_qp *qp = alb_engine_find_qp(engine, alb_get_be24(datagrams->bytes + ALB_BTH_DEST_QPN));
    if (!qp || qp->type != ALB_QPT_RC || !is_plain(qp, datagrams))
        return 0;
    struct alb_rc *rc = alb_rc_of(qp);
    const struct alb_send_wqe *wqe;
    uint32_t taken = 0;
    if (is_request_taken(rc, datagrams))
        taken = take_requests(rc, datagrams, count);
    else if ((wqe = answered(rc, datagrams)))
        taken = take_answers(rc, wqe, datagrams, count, now);
    alb_qp_count(qp, ALB_STAT_rcvd_pkts, taken);
    alb_qp_count(qp, ALB_STAT_rcvd_bytes, (uint64_t)taken * (datagrams->length + ALB_ICRC_BYTES));
    return taken;
}
