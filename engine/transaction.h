// SPDX-License-Identifier: BSD-2-Clause
// Reflection: completions that mean more than "the bytes were placed" (docs/REFLECTION.md). A transaction is one or
// more writes that become visible together or not at all; its completion is given after the target has stated what it
// holds, and, at level COMMITTED, after both sides have agreed to it. Ordinary messages can ask for a level, too.
//
// Threads and errors are as in engine/verbs.h.
#pragma once

#include "base/digest.h"
#include "engine/verbs.h"

// What a completion says.
enum alb_level {
    ALB_LEVEL_DELIVERED, // t5: the peer's transport has it (an ordinary completion)
    ALB_LEVEL_VISIBLE,   // t6: a processor of the target reads the new bytes, and their digest is ours
    ALB_LEVEL_REFLECTED, // a transaction: whole, checked and bound until its lease ends, not yet exposed
    ALB_LEVEL_COMMITTED, // t7: exposed at the target, digest equal, known to both
};

// A transaction's state, the same names on both sides; which moves are legal: engine/reflect_state.c.
enum alb_txn_state {
    ALB_TXN_IDLE,
    ALB_TXN_TENTATIVE,  // on its way; nothing is exposed
    ALB_TXN_PROPOSED,   // target: the program is asked
    ALB_TXN_PREPARING,  // target: being written to the journal
    ALB_TXN_REFLECTING, // bound: initiator knows the verdict, target waits for the decision
    ALB_TXN_COMMITTING, // target: the decision is being written to the journal
    ALB_TXN_COMMITTED,
    ALB_TXN_ABORTING, // initiator: has said so
    ALB_TXN_ABORTED,
    ALB_TXN_IN_DOUBT, // initiator: COMMIT was sent, and the association is lost
    ALB_TXN_UNKNOWN,  // initiator: the outcome can no longer be known
    ALB_TXN_CORRUPT,  // what is exposed is not what was agreed; the region is poisoned
    ALB_TXN_STATES,
};

// Why a transaction did not commit: vendor_err of its completion (0: it did what it was asked for).
enum alb_txn_reason {
    ALB_TXN_OK,
    ALB_TXN_DIGEST,       // what arrived is not what was posted: may be sent again
    ALB_TXN_BUSY,         // overlaps another one that is bound
    ALB_TXN_PRECONDITION, // a compared word differs
    ALB_TXN_REJECTED,     // the validator or the program said no
    ALB_TXN_ACCESS,       // key, bounds or rights
    ALB_TXN_TOO_LARGE,    // for the target's staging memory, ever
    ALB_TXN_NO_MEMORY,    // for it, now
    ALB_TXN_MALFORMED,    // parts and proposal contradict each other
    ALB_TXN_UNSUPPORTED,  // in place on a durable region; regions of several journals
    ALB_TXN_LEASE,        // the lease ended before the decision came
    ALB_TXN_DEADLINE,     // the initiator's deadline passed
    ALB_TXN_WITHDRAWN,    // the initiator's program aborted it
    ALB_TXN_REGION_GONE,  // deregistered or invalidated meanwhile
    ALB_TXN_JOURNAL,      // could not be written
    ALB_TXN_PEER_GONE,    // queue pair or engine ended before it was decided
    ALB_TXN_COPY,         // CORRUPT: the exposed bytes stayed different
    ALB_TXN_LOST,         // IN_DOUBT or UNKNOWN
    ALB_TXN_REASONS,
};

const char *alb_txn_state_name(enum alb_txn_state state);
const char *alb_txn_reason_text(enum alb_txn_reason reason);

struct alb_txn_id {
    uint64_t initiator; // random, of a queue pair
    uint64_t number;    // from 1
};

// What is needed to ask for the outcome later, by another queue pair, from another process.
struct alb_txn_token {
    struct alb_txn_id id;
    uint64_t keeper; // the engine that has the record; 0: not known, so never bound
};

// ---- the initiator --------------------------------------------------------------------------------------------------

#define ALB_TXN_WRITES_MAX   64
#define ALB_TXN_COMPARES_MAX 8

struct alb_txn_write {
    uint64_t remote_addr;
    uint32_t rkey;
    const struct alb_sge *sge;
    uint32_t sge_count;
    bool is_inline; // copied when it is staged: no local key is looked at, and any number of pieces may come
};

// The 8-byte word at remote_addr, in the target's byte order, and'ed with mask, must equal expected from the verdict to
// the end.
struct alb_txn_compare {
    uint64_t remote_addr;
    uint64_t expected, mask;
    uint32_t rkey;
};

struct alb_txn_wr {
    uint64_t wr_id;
    uint32_t flags; // enum alb_send_flags: SIGNALED, FENCE, SOLICITED (of the notification)
    const struct alb_txn_write *writes;
    const struct alb_txn_compare *compares;
    uint32_t write_count, compare_count;
    enum alb_level level; // REFLECTED or COMMITTED
    bool in_place;        // placed as it comes, readers held out meanwhile
    bool notify;          // the target completes a receive with imm_data when it is exposed
    bool hold;            // after the verdict it waits for alb_qp_txn_decide
    uint32_t imm_data;
    uint64_t lease_ns;    // how long the target is bound; 0: the default
    uint64_t deadline_ns; // after submitted: aborted unless COMMIT was sent before; 0: none
    alb_time submitted;   // t1
};

// Lets a queue pair have transactions and levels, so many at a time at most (rounded up to a power of two). Any state;
// EOPNOTSUPP: not RC of a transport with reflection; EINVAL: 0, beyond the limit, or enabled already; ENOMEM.
int alb_qp_txn_enable(struct alb_qp *qp, uint32_t in_flight_max);

// [ring: send] Stages it, all or nothing, with the digest taken now. It needs write_count + 1 places of the send queue.
// *number: of its id. ENOMEM: send queue or transactions full; EINVAL: not enabled, counts, level, lengths, a local
// key.
int alb_qp_txn_stage(struct alb_qp *qp, const struct alb_txn_wr *wr, uint64_t *number);

// [ring: send] Stages a question: completes with success if the transaction is known to be committed, else with
// vendor_err and a status as the transaction itself would have. decision COMMIT or ABORT drives a bound one there.
enum alb_txn_decision {
    ALB_TXN_ASK,
    ALB_TXN_COMMIT,
    ALB_TXN_ABORT,
};
int alb_qp_txn_reconcile_stage(struct alb_qp *qp, uint64_t wr_id, uint32_t flags, const struct alb_txn_token *token,
                               enum alb_txn_decision decision);

// Decides one on hold, or withdraws one whose COMMIT has not been sent, begun or not. ENOENT: ended long ago, or never
// posted; EALREADY: it is decided, or has ended.
int alb_qp_txn_decide(struct alb_qp *qp, uint64_t number, bool commit, alb_time now);

// The stages of one operation in the engine's time; ALB_TIME_NEVER: not reached, or not known.
struct alb_stages {
    alb_time submitted;      // t1
    alb_time placed;         // t2
    alb_time transmitted;    // t3
    alb_time remote_placed;  // t4
    alb_time delivered;      // t5
    alb_time visible;        // t6
    alb_time agreed;         // t7
    uint64_t clock_error_ns; // how wrong t4, t6 and t7 may be: 0 on one host
};

struct alb_txn_status {
    enum alb_txn_state state;
    enum alb_txn_reason reason;
    struct alb_txn_token token;
    struct alb_stages stages;
};

// What is known of an operation of this queue pair that has a number; IDLE: it is staged only. ENOENT: forgotten (as
// many newer ones have begun as the queue pair may have), or never was.
int alb_qp_txn_query(const struct alb_qp *qp, uint64_t number, struct alb_txn_status *status);

// ---- the target -----------------------------------------------------------------------------------------------------

// One range of a transaction, for the validator or the journal.
struct alb_txn_part {
    struct alb_region *region; // NULL: it is empty, and nowhere
    uint64_t offset;           // in the region
    uint64_t length;
    uint64_t va; // as the initiator named it: the digest covers both
    uint32_t rkey;
    const uint8_t *bytes; // proposed
};

// Valid until it is answered, also if its transaction ends before.
struct alb_proposal {
    struct alb_txn_id id;
    void *user; // of the region that has it checked
    uint32_t part_count;
    const struct alb_txn_part *parts;
    uint32_t imm_data;
    bool notify;
};

// Transactions that touch the region are proposed to the program before they are bound (ALB_EVENT_PROPOSAL, then
// alb_engine_proposal). user comes back in proposals; checked false: not any more.
int alb_mr_set_checked(struct alb_region *mr, bool checked, void *user);
// The oldest proposal that has not been taken.
bool alb_engine_proposal(struct alb_engine *engine, struct alb_proposal *proposal);
// ENOENT: it has ended meanwhile (lease, abort).
int alb_engine_proposal_answer(struct alb_engine *engine, const struct alb_txn_id *id, bool accept, alb_time now);

// Durable regions: what is decided is written by the driver before it is said.
enum alb_journal_kind {
    ALB_JOURNAL_PREPARE, // parts and digest, before REFLECTED
    ALB_JOURNAL_COMMIT,  // before it is exposed
    ALB_JOURNAL_ABORT,   // before it is said
};

// A word that a durable transaction compares, in one of its journal's regions.
struct alb_txn_condition {
    struct alb_region *region;
    uint64_t offset; // in the region
    uint64_t va;     // as the initiator named it
    uint64_t expected, mask;
    uint32_t rkey;
};

struct alb_journal_request {
    enum alb_journal_kind kind;
    void *store; // of the regions
    struct alb_txn_id id;
    struct alb_digest digest;
    uint64_t low_water; // records of this initiator below it may be dropped
    uint64_t lease_ns;
    uint32_t part_count;
    const struct alb_txn_part *parts; // PREPARE; valid until alb_engine_journaled
    // PREPARE: what else the digest covers, and what holds until the end.
    uint32_t condition_count;
    struct alb_txn_condition conditions[ALB_TXN_COMPARES_MAX];
    uint32_t imm_be;
    bool notifies, is_solicited;
};

// The region's transactions are written to a journal. store and keeper name it (keeper: not 0, the same after a
// restart). store NULL: to none. ENOMEM: nothing has changed.
int alb_mr_set_store(struct alb_region *mr, void *store, uint64_t keeper);
// The oldest request that has not been taken (ALB_EVENT_JOURNAL says that there is one).
bool alb_engine_journal(struct alb_engine *engine, struct alb_journal_request *request);
// It is written as safely as the journal promises. error: an errno, and it is certainly not written, nor will a restart
// find it: the transaction aborts. To be called only when that is certain. ABORT has no error. True: what is committed
// stands in its region. If not, since the region has gone or its copy is not what was agreed, the journal keeps it.
bool alb_engine_journaled(struct alb_engine *engine, const struct alb_txn_id *id, enum alb_journal_kind kind, int error,
                          alb_time now);
// What was asked for will not be answered, since the journal has been closed, and has it or has not: the outcome is
// unknown until it is opened again.
void alb_engine_journal_unknown(struct alb_engine *engine, const struct alb_txn_id *id, alb_time now);
// After a restart: an initiator that the journal knows, of whose transactions it has dropped those below low_water.
// What was unknown of it and was not restored before was aborted. ENOMEM; EBUSY: it is connected.
int alb_engine_restore_initiator(struct alb_engine *engine, uint64_t id, uint64_t low_water, uint64_t keeper);
// After a restart: one transaction of the journal, COMMITTED (redone by the driver already) or to be bound again with a
// fresh lease; all before alb_engine_restore_initiator. ENOMEM, EINVAL (parts outside of the region), EBUSY (overlap;
// its initiator is connected), EEXIST (known already).
int alb_engine_restore(struct alb_engine *engine, const struct alb_journal_request *prepared, bool is_committed,
                       uint64_t keeper, alb_time now);
