/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What Albedo's devices can do beside verbs (albedodv(7)). Programs link libalbedodv, which is there with or without
 * Albedo's libibverbs.so.1: over another one its calls say EOPNOTSUPP.
 *
 * A call that returns int returns 0 or an errno; one that returns a pointer returns NULL and sets errno. Structures
 * grow at their end: those that a program fills have a comp_mask, those that it has filled are given with their size.
 * Two have neither and stay as they are, struct albdv_expectation and struct albdv_token.
 *
 * Threads: every call may be made by any thread, and by several at once, but for these. From ibv_wr_start to
 * ibv_wr_complete or ibv_wr_abort a queue pair's albdv_wr_* are for the thread that has called ibv_wr_start; another
 * one's ibv_wr_start waits until then. Calls that extend the same queue pair, or make or end something of the same
 * memory region, are made one after the other, and nothing that is destroyed is in use elsewhere.
 */
#pragma once

#include <errno.h>
#include <infiniband/verbs.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Non-zero if the libibverbs.so.1 of this process is Albedo's, and so all of its devices are. */
int albdv_is_supported(void);

/* ---- albdv_expect(3) -------------------------------------------------------------------------------------------- */

/* What is known to come to a queue pair by SEND or RDMA WRITE, besides what has come already. */
struct albdv_expectation {
    uint64_t bytes;    /* of payload; 0: not known */
    uint32_t messages; /* 0: not known */
    uint32_t group;    /* members of a group of queue pairs work in steps, together; 0: of none */
    uint32_t step;     /* which of how many; of no group: both 0 */
    uint32_t steps;
};

/*
 * Announces it, instead of what was announced before: a message is then missed and asked for even if every packet of it
 * is lost, and one that holds back others of the group is asked for first. It promises nothing and changes no
 * completion. Bytes and messages 0: nothing is expected any more.
 *
 * EOPNOTSUPP: the device, its loss policy or the kind of queue pair has no use for it; EINVAL: the queue pair cannot
 * receive yet, or there is no such step; ENOMEM.
 */
int albdv_expect(struct ibv_qp *qp, const struct albdv_expectation *expectation);

/* ---- albdv_txn(3): transactions --------------------------------------------------------------------------------- */

/* What a completion says. */
enum albdv_level {
    ALBDV_DELIVERED, /* the peer's transport has it: an ordinary completion */
    ALBDV_VISIBLE,   /* a processor of the target reads the new bytes, and their digest is ours */
    ALBDV_REFLECTED, /* a transaction: checked at the target and bound until its lease ends, not yet exposed */
    ALBDV_COMMITTED, /* exposed at the target, digest equal, known to both */
};

enum albdv_txn_state {
    ALBDV_TXN_IDLE, /* described, and not posted yet */
    ALBDV_TXN_TENTATIVE,
    ALBDV_TXN_PROPOSED,
    ALBDV_TXN_PREPARING,
    ALBDV_TXN_REFLECTING,
    ALBDV_TXN_COMMITTING,
    ALBDV_TXN_COMMITTED,
    ALBDV_TXN_ABORTING,
    ALBDV_TXN_ABORTED,
    ALBDV_TXN_IN_DOUBT, /* its commit was asked for, and the peer is lost */
    ALBDV_TXN_UNKNOWN,  /* the outcome can no longer be known */
    ALBDV_TXN_CORRUPT,  /* what is exposed is not what was agreed; the region is poisoned */
};

/* Why it did not do what was asked: vendor_err of its completion. */
enum albdv_reason {
    ALBDV_OK,
    ALBDV_DIGEST,       /* what arrived is not what was posted: post it again; in place also what MALFORMED says */
    ALBDV_BUSY,         /* overlaps another one that is bound; or 64 notifications wait at the target */
    ALBDV_PRECONDITION, /* a compared word differs */
    ALBDV_REJECTED,     /* the validator or the program of the target said no */
    ALBDV_ACCESS,       /* key, bounds or rights */
    ALBDV_TOO_LARGE,    /* for the target's staging memory, ever */
    ALBDV_NO_MEMORY,    /* for it, now */
    ALBDV_MALFORMED,    /* its writes contradict each other where they overlap (in place: DIGEST), or parts do */
    ALBDV_UNSUPPORTED,  /* in place on a durable region; regions of several journals */
    ALBDV_LEASE,        /* the lease ended before the decision came */
    ALBDV_DEADLINE,     /* the deadline passed */
    ALBDV_WITHDRAWN,    /* the program aborted it */
    ALBDV_REGION_GONE,  /* deregistered or invalidated meanwhile */
    ALBDV_JOURNAL,      /* could not be written */
    ALBDV_PEER_GONE,    /* the connection or the peer ended before it was decided */
    ALBDV_COPY,         /* the exposed bytes stayed different */
    ALBDV_LOST,         /* the peer is lost: in doubt, or unknown */
};

/* A name ("COMMITTED") and a phrase ("a compared word differs"); "unknown" for any other value. */
const char *albdv_txn_state_str(enum albdv_txn_state state);
const char *albdv_reason_str(enum albdv_reason reason);

/* All that is needed to ask later what became of a transaction, from another queue pair or another process. */
struct albdv_token {
    uint64_t initiator;
    uint64_t number;
    uint64_t keeper; /* who has the record; 0: not known when the token was taken, and it may have committed since */
};

enum albdv_decision {
    ALBDV_ASK,
    ALBDV_COMMIT,
    ALBDV_ABORT,
};

enum albdv_txn_flags {
    ALBDV_TXN_IN_PLACE = 1 << 0, /* written to its place as it comes, readers held out meanwhile */
    ALBDV_TXN_HOLD = 1 << 1,     /* once bound it waits for albdv_decide_txn */
};

/*
 * A queue pair with transactions and levels (RC), or with messages of partial completion (UC). Work requests are
 * added between ibv_wr_start(qp) and ibv_wr_complete(qp), as with ibv_wr_post(3). The members are for the functions
 * below; later versions have more of them.
 */
struct albdv_qp_ex {
    uint64_t comp_mask;
    struct ibv_qp_ex *qp;
    void (*wr_txn)(struct albdv_qp_ex *qp, enum albdv_level level, uint32_t flags);
    void (*wr_txn_write)(struct albdv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr);
    void (*wr_txn_compare)(struct albdv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr, uint64_t expected,
                           uint64_t mask);
    void (*wr_txn_notify)(struct albdv_qp_ex *qp, __be32 imm_data);
    void (*wr_txn_lease)(struct albdv_qp_ex *qp, uint64_t lease_ns);
    void (*wr_txn_deadline)(struct albdv_qp_ex *qp, uint64_t deadline_ns);
    uint64_t (*wr_txn_end)(struct albdv_qp_ex *qp);
    void (*wr_reconcile)(struct albdv_qp_ex *qp, const struct albdv_token *token, enum albdv_decision decision);
    void (*wr_set_level)(struct albdv_qp_ex *qp, enum albdv_level level);
    void (*wr_set_stages)(struct albdv_qp_ex *qp);
    uint32_t (*wr_set_partial)(struct albdv_qp_ex *qp);
    void (*wr_resend)(struct albdv_qp_ex *qp, uint32_t number, uint32_t rkey, uint64_t remote_addr);
};

struct albdv_qp_attr {
    uint64_t comp_mask;     /* 0 */
    uint32_t in_flight_max; /* operations with a number at a time, each way */
};

/*
 * Extends a queue pair, in any state; one that was created without ibv_wr_* has it from then on (all operations of its
 * type, ibv_qp_to_qp_ex). It ends with the queue pair. attr NULL: as many in flight as the send queue has room for, at
 * most 64.
 *
 * EOPNOTSUPP: the library is not Albedo's, the device has no reflection (roce0), or the type is neither RC nor UC;
 * EINVAL: comp_mask, in_flight_max; EALREADY: it is extended; ENOMEM.
 */
struct albdv_qp_ex *albdv_extend_qp(struct ibv_qp *qp, const struct albdv_qp_attr *attr);
/* That of a queue pair that is extended. EINVAL: it is not. */
struct albdv_qp_ex *albdv_qp_ex_from_ibv_qp_ex(struct ibv_qp_ex *qp);

/*
 * Begins a transaction with the wr_id and wr_flags set in the ibv_qp_ex (SIGNALED, FENCE; SOLICITED: of the
 * notification). level: REFLECTED or COMMITTED.
 */
static inline void albdv_wr_txn(struct albdv_qp_ex *qp, enum albdv_level level, uint32_t flags)
{
    qp->wr_txn(qp, level, flags);
}

/* One of its writes, at most 64; ibv_wr_set_sge or ibv_wr_set_sge_list says what is written. */
static inline void albdv_wr_txn_write(struct albdv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr)
{
    qp->wr_txn_write(qp, rkey, remote_addr);
}

/*
 * A precondition, at most 8: in the aligned 8-byte word there, as a processor there reads it, the bits of mask are as
 * in expected, from the verdict to the end.
 */
static inline void albdv_wr_txn_compare(struct albdv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr, uint64_t expected,
                                        uint64_t mask)
{
    qp->wr_txn_compare(qp, rkey, remote_addr, expected, mask);
}

/* The target completes a receive with imm_data once it is exposed. */
static inline void albdv_wr_txn_notify(struct albdv_qp_ex *qp, __be32 imm_data)
{
    qp->wr_txn_notify(qp, imm_data);
}

/* How long the target is bound, in place of the default. */
static inline void albdv_wr_txn_lease(struct albdv_qp_ex *qp, uint64_t lease_ns)
{
    qp->wr_txn_lease(qp, lease_ns);
}

/* So long after now it is aborted, unless its commit has been asked for. */
static inline void albdv_wr_txn_deadline(struct albdv_qp_ex *qp, uint64_t deadline_ns)
{
    qp->wr_txn_deadline(qp, deadline_ns);
}

/*
 * Ends the transaction's description and takes the digest of what its memory holds now. The number that it is called
 * by; 0: something is wrong with it, ibv_wr_complete says what.
 */
static inline uint64_t albdv_wr_txn_end(struct albdv_qp_ex *qp)
{
    return qp->wr_txn_end(qp);
}

/*
 * Asks for the outcome of a transaction of another queue pair, possibly of a process that has ended (EINVAL: of this
 * one; albdv_query_txn knows), and with COMMIT or ABORT decides it if it is still bound. Completes with success if it
 * is committed, and else as that transaction would. COMMIT is for a program that had recorded this decision before it
 * first made it: the target obeys any holder of the token, and another one could expose what was reported to the
 * transaction's own program as aborted.
 */
static inline void albdv_wr_reconcile(struct albdv_qp_ex *qp, const struct albdv_token *token,
                                      enum albdv_decision decision)
{
    qp->wr_reconcile(qp, token, decision);
}

/* For the WRITE or SEND begun last (RC): completes at DELIVERED or VISIBLE. */
static inline void albdv_wr_set_level(struct albdv_qp_ex *qp, enum albdv_level level)
{
    qp->wr_set_level(qp, level);
}

/*
 * COMMIT or ABORT for one with ALBDV_TXN_HOLD; ABORT for any whose commit has not been asked for. ENOENT: there is
 * none, or it is forgotten; EALREADY: it is decided, or has ended; EINVAL: neither of the two; ENODEV: in a forked
 * child. COMMIT of one without ALBDV_TXN_HOLD changes nothing: 0, or EALREADY.
 */
int albdv_decide_txn(struct albdv_qp_ex *qp, uint64_t number, enum albdv_decision decision);

/* ---- albdv_stages(3) -------------------------------------------------------------------------------------------- */

#define ALBDV_TIME_NEVER UINT64_MAX /* not reached, or not known */

/* When an operation reached each stage, in ns of this host's CLOCK_MONOTONIC. */
struct albdv_stages {
    uint64_t submitted;      /* t1: posted */
    uint64_t placed;         /* t2: handed to the network */
    uint64_t transmitted;    /* t3: its last segment has left for the first time */
    uint64_t remote_placed;  /* t4: all of it is in the target's memory */
    uint64_t delivered;      /* t5: acknowledged by the transport */
    uint64_t visible;        /* t6: a processor of the target reads it */
    uint64_t agreed;         /* t7: taken into the target's state */
    uint64_t clock_error_ns; /* t4, t6 and t7 may be wrong by so much; 0 on one host */
};

struct albdv_txn_status {
    enum albdv_txn_state state;
    enum albdv_reason reason;
    struct albdv_token token;
    struct albdv_stages stages;
};

/* For the WRITE or SEND begun last (RC): its stages are measured. Those of transactions always are. */
static inline void albdv_wr_set_stages(struct albdv_qp_ex *qp)
{
    qp->wr_set_stages(qp);
}

/* The number of the operation that a completion of a send queue is about; 0: it has none. */
static inline uint64_t albdv_wc_number(const struct ibv_wc *wc)
{
    return wc->opcode & IBV_WC_RECV ? 0 : (uint64_t)wc->src_qp << 32 | wc->imm_data;
}

/* Why its operation did not do what was asked for. */
static inline enum albdv_reason albdv_wc_reason(const struct ibv_wc *wc)
{
    return (enum albdv_reason)wc->vendor_err;
}

/* The number, between ibv_start_poll and ibv_end_poll. */
uint64_t albdv_wc_read_number(struct ibv_cq_ex *cq);

/*
 * What is known of an operation with a number. size: of *status. ENOENT: forgotten, since as many newer ones have begun
 * as may be in flight, or there is none; EINVAL; ENODEV. Not to be called between ibv_start_poll and ibv_end_poll.
 */
int albdv_query_txn(struct albdv_qp_ex *qp, uint64_t number, struct albdv_txn_status *status, size_t size);
/* The stages of the operation that a completion is about. size: of *stages. Errors as above. */
int albdv_wc_stages(struct albdv_qp_ex *qp, const struct ibv_wc *wc, struct albdv_stages *stages, size_t size);

/* ---- albdv_region(3): regions that are read whole --------------------------------------------------------------- */

/*
 * A transactional region: one version word for each stride bytes says whether they are being changed. The members are
 * for the functions below.
 */
struct albdv_region {
    struct ibv_mr *mr;
    const uint8_t *address;
    uint64_t length;
    uint64_t stride;
    const uint64_t *words;
};

enum albdv_region_attr_mask {
    ALBDV_REGION_ATTR_WORDS = 1 << 0,
};

struct albdv_region_attr {
    uint64_t comp_mask; /* enum albdv_region_attr_mask */
    uint64_t stride;    /* a power of two from 64; 0: the whole region */
    uint64_t *words;    /* of the program's, zeroed, one for each stride: for readers in other processes, too */
};

/*
 * Makes a region transactional; it ends with albdv_destroy_region or with ibv_dereg_mr. attr NULL: one word for all of
 * it. EOPNOTSUPP: not Albedo, or roce0; EINVAL: comp_mask, stride; EBUSY: it is transactional, or a transaction in
 * place is writing there; ENOMEM.
 */
struct albdv_region *albdv_create_region(struct ibv_mr *mr, const struct albdv_region_attr *attr);
/* EBUSY: a transaction is changing it. No reader may use it any more. */
int albdv_destroy_region(struct albdv_region *region);
/*
 * Non-zero: a transaction has left bytes there that were never agreed on (CORRUPT). The region must not be used any
 * more; a program that has repaired its content deregisters it and registers it anew.
 */
int albdv_region_is_poisoned(const struct albdv_region *region);

struct albdv_read {
    const uint64_t *words;
    uint64_t count;
    uint64_t sum; /* of the words when it began: they only grow */
};

/*
 * Begins to read length bytes at address, which are in the region. EBUSY: they are being changed; try again, or ask
 * whether the region is poisoned. What is copied before albdv_read_retry has said 0 may be torn: do not follow it.
 */
static inline int albdv_read_begin(const struct albdv_region *region, const void *address, size_t length,
                                   struct albdv_read *read)
{
    uint64_t offset = (uint64_t)((const uint8_t *)address - region->address);
    uint64_t first = offset / region->stride;
    read->words = region->words + first;
    read->count = length ? (offset + length - 1) / region->stride - first + 1 : 0;
    read->sum = 0;
    for (uint64_t i = 0; i < read->count; i++) {
        uint64_t word = __atomic_load_n(&read->words[i], __ATOMIC_ACQUIRE);
        if (word & 1)
            return EBUSY;
        read->sum += word;
    }
    return 0;
}

/* Non-zero: what was read since may be of several versions. Read it again. */
static inline int albdv_read_retry(const struct albdv_read *read)
{
    uint64_t sum = 0;
#ifndef __SANITIZE_THREAD__ /* it knows no fences */
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
#endif
    for (uint64_t i = 0; i < read->count; i++)
        sum += __atomic_load_n(&read->words[i], __ATOMIC_RELAXED);
    return sum != read->sum;
}

enum albdv_durable_flags {
    ALBDV_DURABLE_PAGE_CACHE = 1 << 0, /* no fdatasync: survives the process, not the machine */
    ALBDV_DURABLE_ONLY_NAME = 1 << 1,  /* no symbolic link (ELOOP), and no file that has other names (EMLINK) */
};

/*
 * Registers a region that is a file, with a journal beside it: what a transaction committed there is there after a
 * crash. length 0: that of the file. mr->addr is where it is mapped. It ends with ibv_dereg_mr.
 *
 * EBUSY: open already, or the journal of one that is, or its journal is open as a region; EBADMSG: the journal is
 * damaged (the log says where); EINVAL: length, access, flags; ENOSPC; EOPNOTSUPP: not Albedo, or roce0; those of
 * open(2).
 */
struct ibv_mr *albdv_reg_durable(struct ibv_pd *pd, const char *path, size_t length, int access, uint32_t flags);

/* ---- albdv_validator(3): the target's program has a say --------------------------------------------------------- */

/* What a transaction would write to one range. */
struct albdv_part {
    struct ibv_mr *mr; /* NULL: the part has no bytes, and is nowhere */
    void *address;     /* where it would go */
    uint64_t length;
    const void *bytes;
};

struct albdv_proposal {
    uint64_t initiator; /* of the transaction's token */
    uint64_t number;
    void *context; /* of the validator or the channel */
    int has_imm;
    __be32 imm_data; /* of the notification */
    uint32_t part_count;
    const struct albdv_part *parts;
};

/* Non-zero: the transaction may commit. */
typedef int albdv_validate(const struct albdv_proposal *proposal);

/*
 * Every transaction that writes to the region is shown to validate before it is bound, in a thread of the library that
 * holds no lock; one at a time. NULL: not any more, and none is running when this returns (EDEADLK: called from
 * validate). EOPNOTSUPP: not Albedo, or roce0; EBUSY: the region has another one, or a channel; EINVAL; ENOMEM, EAGAIN:
 * no thread.
 */
int albdv_set_validator(struct ibv_mr *mr, albdv_validate *validate, void *context);

/* Proposals as events instead: fd is readable when there is one. */
struct albdv_proposal_channel {
    struct ibv_context *context;
    int fd;
};

/* EOPNOTSUPP: not Albedo, or roce0; EMFILE; ENOMEM. */
struct albdv_proposal_channel *albdv_create_proposal_channel(struct ibv_context *context);
/* EBUSY: a region names it, or a proposal has not been answered. */
int albdv_destroy_proposal_channel(struct albdv_proposal_channel *channel);
/* NULL: not any more; proposals not yet taken are rejected. EBUSY: the region has a validator or another one. */
int albdv_set_proposal_channel(struct ibv_mr *mr, struct albdv_proposal_channel *channel, void *context);
/* The oldest one, waiting for it unless the descriptor does not block (EAGAIN). NULL with errno. */
struct albdv_proposal *albdv_get_proposal(struct albdv_proposal_channel *channel);
/* Every proposal is answered, once. ENOENT: the transaction has ended meanwhile. */
int albdv_answer_proposal(struct albdv_proposal *proposal, int accept);

/* ---- albdv_partial(3): what has come of a message that is not whole --------------------------------------------- */

/* For the RDMA WRITE, with or without immediate, begun last (UC): its number, by which both ends call it. */
static inline uint32_t albdv_wr_set_partial(struct albdv_qp_ex *qp)
{
    return qp->wr_set_partial(qp);
}

/*
 * Begins a request that sends what the peer has not said to hold of that message again; it has the same data, and the
 * same place.
 */
static inline void albdv_wr_resend(struct albdv_qp_ex *qp, uint32_t number, uint32_t rkey, uint64_t remote_addr)
{
    qp->wr_resend(qp, number, rkey, remote_addr);
}

enum albdv_side {
    ALBDV_SENDING,
    ALBDV_RECEIVING,
};

struct albdv_partial {
    uint64_t remote_addr; /* where it goes; 0: a SEND */
    uint32_t number;      /* RC: 0 */
    uint32_t total_bytes;
    uint32_t chunk_bytes; /* what one bit stands for */
    uint32_t chunks;
    uint32_t held;        /* chunks that have come; sending: that the peer has said to hold */
    uint32_t is_complete; /* all of it has come, and what it completes is completed */
};

/*
 * What has come of a message. UC: that with the number, or with 0 the newest; RC: the oldest one that is not complete,
 * number 0. chunk_bytes of *partial is looked at: bytes per bit that are wanted; 0: of the segments it travels in. Bit
 * i of bitmap, which has room for words * 64, is set if all of chunk i has come; bitmap may be NULL.
 *
 * ENOENT: there is no such message (any more), or nothing of it has come; ENOSPC: bitmap is too short, *partial is
 * filled in; EINVAL; EOPNOTSUPP: not albedo0, or neither RC nor UC; ENODEV.
 */
int albdv_query_partial(struct ibv_qp *qp, enum albdv_side side, uint32_t number, struct albdv_partial *partial,
                        size_t size, uint64_t *bitmap, uint32_t words);
/* Has the peer asked what it holds of a message that was sent (UC); the answer may be lost. ENOENT; EINVAL. */
int albdv_ask_partial(struct albdv_qp_ex *qp, uint32_t number);

#ifdef __cplusplus
}
#endif
