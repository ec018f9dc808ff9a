// SPDX-License-Identifier: BSD-2-Clause
#include "engine/inbound.h"

#include "base/corruption.h"
#include "engine/impl.h"
#include "engine/region_claim.h"
#include "engine/region_version.h"

// ---- stores that other threads watch --------------------------------------------------------------------------------

static void store8(uint8_t *to, const uint8_t *from)
{
    uint64_t word;
    memcpy(&word, from, sizeof(word));
    __atomic_store_n((uint64_t *)to, word, __ATOMIC_RELEASE);
}

static void store4(uint8_t *to, const uint8_t *from)
{
    uint32_t word;
    memcpy(&word, from, sizeof(word));
    __atomic_store_n((uint32_t *)to, word, __ATOMIC_RELEASE);
}

static void store2(uint8_t *to, const uint8_t *from)
{
    uint16_t word;
    memcpy(&word, from, sizeof(word));
    __atomic_store_n((uint16_t *)to, word, __ATOMIC_RELEASE);
}

// The n < 8 bytes in front of an 8-byte boundary: naturally aligned pieces of growing size.
static void store_head(uint8_t *to, const uint8_t *from, uint64_t n)
{
    if (n & 1) {
        __atomic_store_n(to, *from, __ATOMIC_RELEASE);
        to++;
        from++;
    }
    if (n & 2) {
        store2(to, from);
        to += 2;
        from += 2;
    }
    if (n & 4)
        store4(to, from);
}

// The n < 8 bytes behind an 8-byte boundary: naturally aligned pieces of shrinking size, so that the last byte comes
// last.
static void store_tail(uint8_t *to, const uint8_t *from, uint64_t n)
{
    if (n & 4) {
        store4(to, from);
        to += 4;
        from += 4;
    }
    if (n & 2) {
        store2(to, from);
        to += 2;
        from += 2;
    }
    if (n & 1)
        __atomic_store_n(to, *from, __ATOMIC_RELEASE);
}

// Whole 8-byte units. The thread sanitizer does not know what memcpy does on these processors.
static void copy_units(uint8_t *to, const uint8_t *from, uint64_t n)
{
#ifdef __SANITIZE_THREAD__
    for (uint64_t i = 0; i < n; i += 8)
        store8(to + i, from + i);
#else
    memcpy(to, from, n);
#endif
}

// Between 8-byte boundaries memcpy may move what it likes in what order it likes: on the processors that Albedo runs on
// its stores are 8 bytes or more, at multiples of 8 from an aligned start, so that no aligned 8-byte unit is ever seen
// half written.
void alb_store_release(uint8_t *to, const uint8_t *from, uint64_t n)
{
    uint64_t head = -(uintptr_t)to & 7;
    if (head > n) { // within one unit
        for (uint64_t i = 0; i < n; i++)
            __atomic_store_n(to + i, from[i], __ATOMIC_RELEASE);
        return;
    }
    store_head(to, from, head);
    to += head;
    from += head;
    n -= head;
    uint64_t tail = n & 7;
    uint64_t bulk = n - tail;
    if (bulk > 0) {
        copy_units(to, from, bulk - 8);
        store8(to + bulk - 8, from + bulk - 8);
    }
    store_tail(to + bulk, from + bulk, tail);
}

// What is misplaced on demand may go anywhere else in the memory.
static void store_within(const struct alb_engine *engine, uint8_t *memory, uint64_t memory_bytes, uint8_t *to,
                         const uint8_t *from, uint64_t n)
{
    struct alb_corruption *corruption = engine->config.corruption;
    to = alb_corrupt_aim(corruption, to, n, memory, memory_bytes);
    if (alb_unlikely(!to || engine->config.has_no_payload))
        return;
    alb_store_release(to, from, n);
    alb_corrupt(corruption, ALB_CORRUPT_PACKET, to, n);
}

void alb_store_payload(const struct alb_engine *engine, uint8_t *to, const uint8_t *from, uint64_t n)
{
    store_within(engine, to, n, to, from, n);
}

// ---- messages -------------------------------------------------------------------------------------------------------

enum alb_outcome alb_inbound_send(struct alb_qp *qp, struct alb_target *target)
{
    if (!alb_qp_take_receive(qp))
        return ALB_OUTCOME_RNR;
    *target = (struct alb_target){.kind = ALB_TARGET_RECEIVE, .length = qp->recv->length};
    return ALB_OUTCOME_OK;
}

// What the queue pair does not allow at all is an invalid request; what a key does not allow is an access error
// (9.7.5.2.3, .4).
static enum alb_outcome find(struct alb_qp *qp, uint32_t rkey, uint64_t va, uint64_t length, uint32_t access,
                             struct alb_region **region, uint8_t **host)
{
    if (!(qp->attr.access & access))
        return ALB_OUTCOME_INVALID_REQUEST;
    return alb_region_find_remote(qp, rkey, va, length, access, region, host) == ALB_ACCESS_OK ? ALB_OUTCOME_OK
                                                                                               : ALB_OUTCOME_ACCESS;
}

// What is to be changed may be bound by a transaction, until that has ended.
static enum alb_outcome find_free(struct alb_qp *qp, uint32_t rkey, uint64_t va, uint64_t length, uint32_t access,
                                  struct alb_region **region, uint8_t **host)
{
    enum alb_outcome outcome = find(qp, rkey, va, length, access, region, host);
    if (outcome == ALB_OUTCOME_OK && length > 0 && alb_region_is_claimed(*region, va, length))
        return ALB_OUTCOME_RNR;
    return outcome;
}

enum alb_outcome alb_inbound_write(struct alb_qp *qp, uint32_t rkey, uint64_t va, uint64_t length,
                                   struct alb_target *target)
{
    struct alb_region *region;
    uint8_t *host;
    enum alb_outcome outcome = find_free(qp, rkey, va, length, ALB_ACCESS_REMOTE_WRITE, &region, &host);
    if (outcome == ALB_OUTCOME_OK)
        *target = (struct alb_target){.kind = ALB_TARGET_REGION, .rkey = rkey, .va = va, .length = length};
    return outcome;
}

#define FETCH_AHEAD     4096 // bytes from what is placed to what is fetched
#define FETCH_STEP      64   // bytes of a cache line
#define FETCH_LEVEL     2    // as in wire/icrc.c
#define FETCH_BYTES_MAX 2048

// The memory of a segment to come is fetched while this one is copied; left: bytes of the message from this one on.
// Always inline: GCC takes a function that only prefetches for one without effect (LESSONS 70).
__attribute__((always_inline)) static inline void fetch_next(const struct alb_engine *engine, const uint8_t *to,
                                                             uint32_t length, uint64_t left)
{
    if (length > FETCH_BYTES_MAX || left < FETCH_AHEAD + length || engine->config.has_no_payload)
        return;
    for (uint32_t at = 0; at < length; at += FETCH_STEP)
        __builtin_prefetch(to + FETCH_AHEAD + at, 1, FETCH_LEVEL);
}

// A shared receive's keys are its queue's (10.2.9.1).
static const struct alb_pd *pd_of_receives(const struct alb_qp *qp)
{
    const struct alb_srq *srq = alb_qp_srq(qp);
    return srq ? srq->pd : qp->pd;
}

static enum alb_outcome place_in_receive(struct alb_qp *qp, const struct alb_recv_wqe *recv, uint32_t access,
                                         uint64_t offset, const uint8_t *bytes, uint32_t length)
{
    const struct alb_pd *pd = pd_of_receives(qp);
    if (offset > recv->length || length > recv->length - offset)
        return ALB_OUTCOME_TOO_LONG;
    for (const struct alb_sge *sge = recv->sge; length > 0; sge++) {
        if (offset >= sge->length) {
            offset -= sge->length;
            continue;
        }
        uint32_t part = ALB_MIN(length, (uint32_t)(sge->length - offset));
        uint8_t *host;
        if (alb_region_local(qp->engine, pd, sge->lkey, sge->addr + offset, part, access, &host) != ALB_ACCESS_OK)
            return ALB_OUTCOME_OPERATIONAL;
        fetch_next(qp->engine, host, part, sge->length - offset);
        alb_store_payload(qp->engine, host, bytes, part);
        bytes += part;
        length -= part;
        offset = 0;
    }
    return ALB_OUTCOME_OK;
}

static void store_in_region(struct alb_region *region, uint64_t va, uint8_t *host, const uint8_t *bytes,
                            uint32_t length)
{
    bool is_transactional = alb_region_is_transactional(region);
    if (alb_unlikely(is_transactional))
        alb_region_hold_readers(region, va, length);
    store_within(region->engine, region->host, region->length, host, bytes, length);
    if (alb_unlikely(is_transactional))
        alb_region_let_readers(region, va, length);
}

enum alb_outcome alb_place(struct alb_qp *qp, const struct alb_target *target, uint64_t offset, const uint8_t *bytes,
                           uint32_t length)
{
    if (length == 0)
        return ALB_OUTCOME_OK;
    if (target->kind == ALB_TARGET_DISCARD)
        return ALB_OUTCOME_OK;
    if (target->kind == ALB_TARGET_RECEIVE)
        return place_in_receive(qp, qp->recv, ALB_ACCESS_LOCAL_WRITE, offset, bytes, length);
    if (target->kind == ALB_TARGET_NONE || offset > target->length || length > target->length - offset)
        return ALB_OUTCOME_INVALID_REQUEST;
    uint64_t left = target->length - offset;
    if (target->kind == ALB_TARGET_STAGE) {
        fetch_next(qp->engine, target->stage + offset, length, left);
        store_within(qp->engine, target->stage, target->length, target->stage + offset, bytes, length);
        return ALB_OUTCOME_OK;
    }
    if (target->kind == ALB_TARGET_CONTROL) {
        memcpy(target->stage + offset, bytes, length);
        return ALB_OUTCOME_OK;
    }
    struct alb_region *region;
    uint8_t *host;
    uint64_t va = target->va + offset;
    enum alb_outcome outcome = find_free(qp, target->rkey, va, length, ALB_ACCESS_REMOTE_WRITE, &region, &host);
    if (outcome == ALB_OUTCOME_OK) {
        fetch_next(qp->engine, host, length, left);
        store_in_region(region, va, host, bytes, length);
    }
    return outcome;
}

// ---- piece behind piece ---------------------------------------------------------------------------------------------

static bool begin_in_receive(const struct alb_qp *qp, uint64_t offset, struct alb_room *room)
{
    const struct alb_sge *sge = qp->recv->sge;
    if (offset >= qp->recv->length)
        return false;
    uint64_t left = qp->recv->length - offset;
    for (; offset >= sge->length; sge++)
        offset -= sge->length;
    room->left = ALB_MIN(sge->length - offset, left);
    return alb_region_local(qp->engine, pd_of_receives(qp), sge->lkey, sge->addr + offset, room->left,
                            ALB_ACCESS_LOCAL_WRITE, &room->at) == ALB_ACCESS_OK;
}

static bool begin_in_region(struct alb_qp *qp, const struct alb_target *target, uint64_t offset, struct alb_room *room)
{
    struct alb_region *region;
    return find_free(qp, target->rkey, target->va + offset, room->left, ALB_ACCESS_REMOTE_WRITE, &region, &room->at) ==
               ALB_OUTCOME_OK &&
           !alb_region_is_transactional(region);
}

bool alb_place_begin(struct alb_qp *qp, const struct alb_target *target, uint64_t offset, struct alb_room *room)
{
    const struct alb_engine_config *config = &qp->engine->config;
    if (config->corruption || config->has_no_payload)
        return false;
    if (target->kind == ALB_TARGET_RECEIVE)
        return begin_in_receive(qp, offset, room);
    if (offset >= target->length)
        return false;
    room->left = target->length - offset;
    if (target->kind == ALB_TARGET_REGION)
        return begin_in_region(qp, target, offset, room);
    room->at = target->stage + offset;
    return target->kind == ALB_TARGET_STAGE;
}

void alb_place_next(const struct alb_engine *engine, struct alb_room *room, const uint8_t *bytes, uint32_t length)
{
    fetch_next(engine, room->at, length, room->left);
    alb_store_release(room->at, bytes, length);
    room->at += length;
    room->left -= length;
}

// ---- before their turn ----------------------------------------------------------------------------------------------

bool alb_place_early_in_region(struct alb_qp *qp, const struct alb_target *target, uint64_t offset,
                               const uint8_t *bytes, uint32_t length)
{
    const uint32_t access = ALB_ACCESS_REMOTE_WRITE | ALB_ACCESS_RELAXED_ORDERING;
    struct alb_region *region;
    uint8_t *host;
    if (!(qp->attr.access & ALB_ACCESS_REMOTE_WRITE) || qp->xrcd || length == 0)
        return false;
    if (find_free(qp, target->rkey, target->va, target->length, access, &region, &host) != ALB_OUTCOME_OK ||
        alb_region_is_transactional(region))
        return false;
    alb_store_payload(qp->engine, host + offset, bytes, length);
    return true;
}

// The receive that the queue pair will take after that many others. For a shared queue it cannot be known.
static const struct alb_recv_wqe *receive_behind(const struct alb_qp *qp, uint32_t behind)
{
    if (alb_qp_srq(qp) || qp->xrcd)
        return NULL;
    if (!qp->recv_is_taken)
        return alb_recv_queue_peek(&qp->rq, behind);
    return behind == 0 ? qp->recv : alb_recv_queue_peek(&qp->rq, behind - 1);
}

bool alb_place_early_in_receive(struct alb_qp *qp, uint32_t behind, uint64_t total, uint64_t offset,
                                const uint8_t *bytes, uint32_t length)
{
    const uint32_t access = ALB_ACCESS_LOCAL_WRITE | ALB_ACCESS_RELAXED_ORDERING;
    const struct alb_recv_wqe *recv = receive_behind(qp, behind);
    return recv && length > 0 && total <= recv->length &&
           place_in_receive(qp, recv, access, offset, bytes, length) == ALB_OUTCOME_OK;
}

// ---- reads and atomics ----------------------------------------------------------------------------------------------

enum alb_outcome alb_inbound_read(struct alb_qp *qp, uint32_t rkey, uint64_t va, uint64_t length, const uint8_t **bytes)
{
    struct alb_region *region;
    uint8_t *host;
    enum alb_outcome outcome = find(qp, rkey, va, length, ALB_ACCESS_REMOTE_READ, &region, &host);
    if (outcome == ALB_OUTCOME_OK)
        *bytes = host;
    return outcome;
}

enum alb_outcome alb_inbound_begin_read(struct alb_qp *qp, uint32_t rkey, uint64_t va, uint64_t length,
                                        const uint8_t **bytes, struct alb_region **transactional)
{
    struct alb_region *region;
    uint8_t *host;
    *transactional = NULL;
    enum alb_outcome outcome = find(qp, rkey, va, length, ALB_ACCESS_REMOTE_READ, &region, &host);
    if (outcome != ALB_OUTCOME_OK)
        return outcome;
    *bytes = host;
    if (alb_unlikely(region && alb_region_is_transactional(region)))
        *transactional = region;
    return ALB_OUTCOME_OK;
}

static uint64_t execute(enum alb_atomic atomic, uint64_t *word, uint64_t operand, uint64_t compare)
{
    switch (atomic) {
    case ALB_ATOMIC_CMP_SWAP:
        __atomic_compare_exchange_n(word, &compare, operand, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
        return compare; // what the word held, whether or not it was equal
    case ALB_ATOMIC_FETCH_ADD:
        return __atomic_fetch_add(word, operand, __ATOMIC_SEQ_CST);
    case ALB_ATOMIC_WRITE:
        __atomic_store_n(word, operand, __ATOMIC_SEQ_CST);
        return 0; // the right to write does not let the peer read what it held
    }
    return 0;
}

// An atomic write is a write as far as rights go (annex A19).
enum alb_outcome alb_inbound_atomic(struct alb_qp *qp, enum alb_atomic atomic, uint32_t rkey, uint64_t va,
                                    uint64_t operand, uint64_t compare, uint64_t *original)
{
    uint32_t access = atomic == ALB_ATOMIC_WRITE ? ALB_ACCESS_REMOTE_WRITE : ALB_ACCESS_REMOTE_ATOMIC;
    struct alb_region *region;
    uint8_t *host;
    if (va % sizeof(uint64_t) != 0)
        return ALB_OUTCOME_INVALID_REQUEST;
    enum alb_outcome outcome = find_free(qp, rkey, va, sizeof(uint64_t), access, &region, &host);
    if (outcome != ALB_OUTCOME_OK)
        return outcome;
    if ((uintptr_t)host % sizeof(uint64_t) != 0) // an iova that is aligned otherwise than the memory behind it
        return ALB_OUTCOME_INVALID_REQUEST;
    alb_region_hold_readers(region, va, sizeof(uint64_t));
    *original = execute(atomic, (uint64_t *)host, operand, compare);
    alb_region_let_readers(region, va, sizeof(uint64_t));
    return ALB_OUTCOME_OK;
}

enum alb_outcome alb_inbound_complete(struct alb_qp *qp, const struct alb_inbound_end *end, alb_time now)
{
    struct alb_wc wc = {
        .status = ALB_WC_SUCCESS,
        .opcode = end->opcode,
        .byte_len = end->byte_len,
        .imm_data = end->imm_data,
        .flags = end->wc_flags,
        .src_qpn = end->src_qpn,
        .sl = end->sl,
    };
    if (end->wc_flags & ALB_WC_WITH_INV) {
        if (!alb_region_invalidate_remote(qp, end->invalidate_rkey))
            return ALB_OUTCOME_ACCESS;
        wc.invalidated_rkey = end->invalidate_rkey;
    }
    alb_qp_complete_receive(qp, &wc, end->solicited, now);
    return ALB_OUTCOME_OK;
}

static enum alb_wc_status status_of(enum alb_outcome outcome)
{
    switch (outcome) {
    case ALB_OUTCOME_TOO_LONG:
        return ALB_WC_LOC_LEN_ERR;
    case ALB_OUTCOME_OPERATIONAL:
        return ALB_WC_LOC_PROT_ERR;
    case ALB_OUTCOME_ACCESS:
        return ALB_WC_LOC_ACCESS_ERR;
    case ALB_OUTCOME_INVALID_REQUEST:
        return ALB_WC_REM_INV_REQ_ERR;
    default:
        return ALB_WC_GENERAL_ERR;
    }
}

void alb_inbound_fail(struct alb_qp *qp, enum alb_outcome outcome, alb_time now)
{
    if (!qp->recv_is_taken)
        return;
    struct alb_wc wc = {.status = status_of(outcome), .opcode = ALB_WC_RECV};
    alb_qp_complete_receive(qp, &wc, true, now);
}

const struct alb_refusal *alb_inbound_refusal(enum alb_outcome outcome)
{
    static const struct alb_refusal refusals[] = {
        [ALB_OUTCOME_INVALID_REQUEST] = {ALB_NAK_INVALID_REQUEST, ALB_STAT_resp_remote_invalid_request,
                                         ALB_EVENT_QP_REQ_ERR, ALB_WC_REM_INV_REQ_ERR, ALB_DROP_BAD_REQUEST,
                                         "the peer sent a request that is not allowed here"},
        [ALB_OUTCOME_ACCESS] = {ALB_NAK_REMOTE_ACCESS_ERROR, ALB_STAT_resp_remote_access_errors,
                                ALB_EVENT_QP_ACCESS_ERR, ALB_WC_REM_ACCESS_ERR, ALB_DROP_ACCESS,
                                "the peer asked for memory that it may not use"},
        [ALB_OUTCOME_OPERATIONAL] = {ALB_NAK_REMOTE_OPERATIONAL_ERROR, ALB_STAT_resp_remote_op_errors,
                                     ALB_EVENT_QP_FATAL, ALB_WC_REM_OP_ERR, ALB_DROP_ACCESS,
                                     "a local key does not cover the posted receive"},
        [ALB_OUTCOME_TOO_LONG] = {ALB_NAK_INVALID_REQUEST, ALB_STAT_resp_remote_invalid_request, ALB_EVENT_QP_REQ_ERR,
                                  ALB_WC_REM_INV_REQ_ERR, ALB_DROP_RECEIVE_TOO_SHORT,
                                  "the peer's message is longer than the posted receive"},
        [ALB_OUTCOME_TOO_LARGE] = {ALB_NAK_REMOTE_OPERATIONAL_ERROR, ALB_STAT_resp_remote_op_errors, ALB_EVENT_QP_FATAL,
                                   ALB_WC_REM_OP_ERR, ALB_DROP_NO_RESOURCES,
                                   "the peer asked for more of a transactional region than is answered at once"},
        [ALB_OUTCOME_TOO_NARROW] = {ALB_NAK_REMOTE_OPERATIONAL_ERROR, ALB_STAT_resp_remote_op_errors,
                                    ALB_EVENT_QP_FATAL, ALB_WC_REM_OP_ERR, ALB_DROP_NO_RESOURCES,
                                    "the path is too narrow for an answer under way"},
        [ALB_OUTCOME_FORGOTTEN] = {ALB_NAK_REMOTE_OPERATIONAL_ERROR, ALB_STAT_resp_remote_op_errors, ALB_EVENT_QP_FATAL,
                                   ALB_WC_REM_OP_ERR, ALB_DROP_NO_RESOURCES,
                                   "the peer was silent, and others needed what was kept for it"},
    };
    return &refusals[outcome];
}
