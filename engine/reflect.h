// SPDX-License-Identifier: BSD-2-Clause
// Reflection inside the engine: transactions and levels over the delivery layer csa (docs/REFLECTION.md).
//
// Data and proposals are messages of the queue pair's request stream; commands and verdicts are frames of their own,
// which may be lost, and which the initiator repeats.
//
//     reflect_state.c    names and legal moves          reflect_digest.c  what a digest covers
//     reflect_post.c     [ring] requests with a number  reflect_ring.c    what the initiator keeps of each
//     reflect_out.c      the initiator                  reflect_in.c      the target: commands and decisions
//     reflect_propose.c  the target, up to the verdict  reflect_overlap.c  parts that lie upon each other
//     reflect_apply.c    from staging to the regions    reflect_table.c   what the target keeps of each
//     reflect_journal.c  durable regions                reflect_level.c   ordinary messages that want a verdict
//     reflect_frames.c   commands and verdicts          reflect_stages.c  when an operation reached which stage
#pragma once

#include "base/buddy.h"
#include "base/digest.h"
#include "base/list.h"
#include "base/map.h"
#include "engine/deadline.h"
#include "engine/event.h"
#include "engine/region_claim.h"
#include "engine/transaction.h"
#include "wire/csa.h"

struct alb_assoc;
struct alb_csa;
struct alb_csa_packet;
struct alb_reflect_in;
struct alb_reflect_out;
struct alb_send_wqe;

// A sender of frames, in its association's line.
struct alb_reflect_source {
    struct alb_list link;
    // Adds its frames; false: the batch is full.
    bool (*add)(struct alb_reflect_source *source, struct alb_csa_packet *packet, alb_time now);
};

// Memory that is there from the beginning, of which only the pages in use are ever touched.
struct alb_reflect_arena {
    struct alb_buddy buddy;
    void *memory, *bookkeeping; // NULL: there is none, and nothing can be had
    size_t bytes;
};

// What an engine has once. Records stay when what was staged has gone: among it they would leave no large block whole.
struct alb_reflect_engine {
    struct alb_reflect_arena staging;     // ranges of transactions under way, and lists of their parts
    struct alb_reflect_arena table;       // records, initiators, vouchers
    uint64_t keeper;                      // our identity as the keeper of volatile transactions
    struct alb_map *records, *initiators; // id -> struct alb_txn_in, struct alb_txn_initiator; NULL: staging is off
    struct alb_map *journals;             // keeper -> regions that have that journal; NULL: none ever had one
    struct alb_list orphans;              // initiators whose queue pair has ended, the oldest first
    struct alb_list connected;            // the others, in the order in which they were last heard
    struct alb_list proposals;            // of struct alb_txn_in: the driver has not taken them yet
    struct alb_list journal;              // of struct alb_txn_in: requests that the driver has not taken yet
    struct alb_event_node event;
};

// Fills engine->reflect. 0 or ENOMEM; what was made until then alb_reflect_engine_destroy frees.
int alb_reflect_engine_create(struct alb_engine *engine);
void alb_reflect_engine_destroy(struct alb_engine *engine);

// ---- states ---------------------------------------------------------------------------------------------------------

// The only writers of a state: they assert that the move is legal, and trace it.
struct alb_txn_out;
struct alb_txn_in;
void alb_txn_out_set_state(struct alb_txn_out *txn, enum alb_txn_state state, alb_time now);
void alb_txn_in_set_state(struct alb_txn_in *txn, enum alb_txn_state state, alb_time now);

// ---- digests --------------------------------------------------------------------------------------------------------

// A digest is computed over its beginning, for each part a header and the payload (which the caller adds), and an end.
void alb_txn_digest_begin(struct alb_digest_state *state, const struct alb_txn_id *id);
void alb_txn_digest_part(struct alb_digest_state *state, uint32_t rkey, uint64_t va, uint64_t length);
struct alb_digest alb_txn_digest_end(struct alb_digest_state *state, const struct alb_csa_proposal *proposal);

static inline struct alb_csa_digest alb_digest_to_wire(struct alb_digest digest)
{
    return (struct alb_csa_digest){.low = digest.low, .high = digest.high};
}

static inline bool alb_digest_is_wire(const struct alb_digest *digest, const struct alb_csa_digest *wire)
{
    return digest->low == wire->low && digest->high == wire->high;
}

// ---- the initiator --------------------------------------------------------------------------------------------------

// An operation that has a number.
struct alb_txn_out {
    _Atomic uint64_t number; // first; 0 while a post takes the place
    struct alb_reflect_out *out;
    enum alb_txn_state state;
    enum alb_txn_reason reason;
    uint8_t level;            // enum alb_level
    bool is_message;          // an ordinary message with a level or stages
    bool is_question;         // a reconciliation: of the transaction asked about, by another's number
    bool holds;               // the program wants to decide itself (alb_qp_txn_decide)
    bool is_unwanted;         // it was aborted before it began
    bool has_committed;       // COMMIT was sent, or stood ready to be
    bool is_overdue;          // held beyond its lease, and the target has not said what became of it
    bool is_delivered;        // the peer has executed its request, so that commands cannot overtake it
    bool is_completed;        // the request's completion has been, or may be, generated
    uint32_t wqe_index;       // send queue index of its request
    uint8_t command;          // enum alb_csa_command, due while linked
    uint8_t gaps_counted;     // bits: those between stages
    struct alb_txn_id asked;  // the transaction: its own id, or what a question is about
    uint64_t keeper;          // who keeps its record: from the first verdict of a target that has one; 0: not known
    struct alb_digest digest; // of the bytes as they were when it was posted
    uint64_t deadline_ns;     // 0: none
    uint64_t lease_ns;        // how long the target stays bound without a command; 0: it binds nothing
    alb_time asked_at;        // when a command last left
    alb_time interval_ns;     // until it is repeated
    struct alb_list due;      // its command is to be sent
    struct alb_stages stages;
    uint32_t proposal_bytes;
    uint8_t proposal[ALB_CSA_PROPOSAL_BYTES_MAX];
};

// What is known of the target's clock: it is ahead of ours (modulo 2^64) by least ... least + span.
struct alb_reflect_clock {
    uint64_t least, span_ns; // span_ns: UINT64_MAX: nothing is known
    alb_time at;             // when that was so: clocks drift apart
};

// What an initiating queue pair has: a ring of operations by number. ended <= begun <= posted <= staged.
struct alb_reflect_out {
    struct alb_reflect_source source;
    struct alb_csa *csa;
    uint64_t initiator;      // our identity in the ids of its transactions
    uint32_t capacity;       // a power of two
    uint64_t staged;         // [ring] next number to be given
    _Atomic uint64_t posted; // [ring] numbers before it are handed over
    uint64_t begun;          // numbers before it are the engine's
    _Atomic uint64_t ended;  // every number before it has ended: the low-water mark
    struct alb_list due;
    struct alb_deadline timer; // repeats commands, and watches deadlines
    struct alb_reflect_clock clock;
    struct alb_txn_out ring[];
};

static inline struct alb_txn_out *alb_txn_out_at(struct alb_reflect_out *out, uint64_t number)
{
    return &out->ring[number & (out->capacity - 1)];
}

// What has ended may be read until a post takes its place, which may be at any time: what was read between these two is
// of that number if both are true.
static inline bool alb_txn_out_has(const struct alb_txn_out *txn, uint64_t number)
{
    return number != 0 && atomic_load_explicit(&txn->number, memory_order_acquire) == number;
}
static inline bool alb_txn_out_still_has(struct alb_txn_out *txn, uint64_t number)
{
    // Changes nothing: a load alone could come before what was read.
    return atomic_fetch_or_explicit(&txn->number, 0, memory_order_release) == number;
}

// The low-water mark moves behind what has ended, whose places are the posts' then: not to be touched any more.
void alb_reflect_out_advance(struct alb_reflect_out *out);
// The operation of that number; NULL: it has not begun, or has ended.
struct alb_txn_out *alb_txn_out_find(struct alb_reflect_out *out, uint64_t number);
// The transaction of that number, begun or not, ended or not; NULL: it is not posted, or forgotten, or something else.
struct alb_txn_out *alb_txn_out_find_posted(struct alb_reflect_out *out, uint64_t number);
// The request is the next one to be sent.
void alb_reflect_out_begin(struct alb_reflect_out *out, const struct alb_send_wqe *wqe, alb_time now);
// A segment of a request with a number has left for the first time.
void alb_reflect_out_sent(struct alb_reflect_out *out, const struct alb_send_wqe *wqe, bool is_last, alb_time now);
// The peer has executed that request.
void alb_reflect_out_delivered(struct alb_reflect_out *out, const struct alb_send_wqe *wqe, alb_time now);
// A verdict has come, about an operation of this queue pair or one that it asks about; others are ignored. May complete
// requests, and so end the queue pair.
void alb_reflect_out_verdict(struct alb_reflect_out *out, const struct alb_csa_verdict *verdict, alb_time now);
// The queue pair cannot go on: what is not decided is aborted or in doubt.
void alb_reflect_out_stop(struct alb_reflect_out *out, alb_time now);
// The queue pair begins anew, as another initiator: forgets all operations.
void alb_reflect_out_reset(struct alb_reflect_out *out);
// True if every operation that has begun has ended.
bool alb_reflect_out_is_quiet(const struct alb_reflect_out *out);
// True if an answer of the target is awaited: silence is then no rest.
bool alb_reflect_out_is_waiting(const struct alb_reflect_out *out);
void alb_reflect_out_destroy(struct alb_reflect_out *out);
bool alb_reflect_out_add(struct alb_reflect_source *source, struct alb_csa_packet *packet, alb_time now);
void alb_reflect_out_on_timer(struct alb_deadline *deadline, alb_time now);

// reflect_stages.c
// The verdict says when the target had placed, read and decided: in our clock, and in order.
void alb_txn_out_note_stages(struct alb_txn_out *txn, const struct alb_csa_verdict *verdict, alb_time now);
// It has completed, or ended otherwise than with its queue pair: adds each gap between its stages that is known by now
// to the device's histograms, in powers of two ns, once.
void alb_txn_out_count_gaps(struct alb_txn_out *txn);

// ---- the target -----------------------------------------------------------------------------------------------------

// One range of a transaction: a part, or what is only compared, which has no bytes. From the staging memory.
struct alb_txn_range {
    struct alb_list link;
    struct alb_txn_in *txn;
    struct alb_claim claim;
    bool is_claimed;
    bool is_compare;
    bool is_placed;            // in place: what stood there is to be put back, and readers are held out
    struct alb_region *region; // while it is claimed
    uint8_t *host;             // likewise
    uint64_t va, length;       // va, rkey: as the initiator gave them
    uint32_t rkey;
    uint64_t expected, mask;
    uint64_t staged_bytes;
    uint8_t bytes[]; // staged; in place: what stood there before
};

// What the target knows of an initiator.
struct alb_txn_initiator {
    uint64_t id;
    uint64_t low_water;        // numbers below have ended, and are not known any more
    uint64_t next;             // the least number that may come
    struct alb_reflect_in *in; // NULL: its queue pair has ended
    struct alb_list line;      // in the engine's orphans, or its connected
    alb_time heard_at;         // while it is connected
    struct alb_list records;   // of struct alb_txn_in, by number
    bool is_restored;          // known by journals alone
    struct alb_list vouchers;  // of struct alb_txn_voucher: those journals
};

// A journal that knew an initiator when it was opened: what it has no word of, it never bound.
struct alb_txn_voucher {
    struct alb_list link;
    uint64_t keeper;
};

// The target's record of a transaction.
struct alb_txn_in {
    struct alb_engine *engine;
    struct alb_txn_id id;
    struct alb_txn_initiator *initiator; // NULL: not proposed yet
    struct alb_list of_initiator;
    struct alb_list due;       // its verdict is to be sent: in the due list of its queue pair
    struct alb_list queue;     // in the engine's proposals or journal
    struct alb_reflect_in *in; // until it is proposed: the queue pair that its parts come by
    enum alb_txn_state state;
    enum alb_txn_reason reason; // TENTATIVE: why it cannot succeed
    bool is_in_place, notifies, is_solicited;
    bool is_taken;        // the driver looks at its parts
    bool wants_abort;     // as soon as the journal has answered
    bool lost_region;     // while it was being committed
    bool has_notice;      // a place for its notification is kept
    bool is_message;      // an ordinary one that wanted a verdict
    uint8_t journal_kind; // enum alb_journal_kind + 1 of the request under way; 0: none
    uint32_t imm_be;
    uint32_t part_count;
    uint64_t came; // of its parts, when it was last looked at while they come: grows with each segment
    uint64_t bytes;
    uint64_t block_bytes; // of the staging memory, for its parts
    uint64_t lease_ns;
    uint64_t keeper;            // of the journal, or the engine's for volatile ones
    void *store;                // the driver's journal; NULL: volatile
    void *user;                 // of the region that has it checked
    struct alb_list ranges;     // parts, then what is compared
    struct alb_txn_part *parts; // for the driver
    struct alb_digest digest;   // proposed
    struct alb_deadline lease;
    alb_time placed_at, decided_at, visible_at; // decided: bound; 0: has not been
};

// Of a transaction that is exposed: what the program's receive will say of it.
struct alb_reflect_notice {
    uint32_t imm_be;
    uint32_t byte_len;
    bool is_solicited;
};

// The word is what a range that is only compared asks for.
static inline bool alb_txn_range_agrees(const struct alb_txn_range *range, uint64_t word)
{
    return (word & range->mask) == (range->expected & range->mask);
}

#define ALB_REFLECT_NOTICES 64
#define ALB_REFLECT_STRAYS  64

// What a receiving queue pair has, from its first transaction, message that wants a verdict, or command on.
struct alb_reflect_in {
    struct alb_reflect_source source;
    struct alb_csa *csa;
    struct alb_txn_initiator *initiator;               // NULL: none has proposed anything yet
    struct alb_txn_in *receiving;                      // its parts come
    struct alb_txn_range *range;                       // of the part that comes
    uint64_t refused_number;                           // of the transaction for whose record there was no memory
    struct alb_list due;                               // of struct alb_txn_in: their verdicts are to be sent
    struct alb_csa_verdict strays[ALB_REFLECT_STRAYS]; // a ring: answers about another's, or without a record
    uint32_t stray_first, stray_count;
    struct alb_reflect_notice notices[ALB_REFLECT_NOTICES]; // a ring: notifications that wait for a receive
    uint32_t notice_first, notice_count;
    uint32_t notices_promised; // places taken: notice_count, and those of transactions that are not decided
    struct alb_deadline notice_timer;
    alb_time notice_wait_ns; // between the last two looks
    uint8_t proposal[ALB_CSA_PROPOSAL_BYTES_MAX];
};

// The segments of TXN_WRITE and TXN_END, as the responder calls it: begin gives where the payload goes.
enum alb_outcome;
struct alb_target;
enum alb_outcome alb_reflect_in_begin(struct alb_csa *csa, const struct alb_csa_segment *segment,
                                      struct alb_target *target, alb_time now);
enum alb_outcome alb_reflect_in_end(struct alb_csa *csa, const struct alb_csa_segment *last, alb_time now);
// An ordinary message that wants a verdict is in place, and has not completed its receive yet.
void alb_reflect_in_message(struct alb_csa *csa, const struct alb_csa_segment *last, alb_time now);
// A command has come: does it, if its state allows that, and owes a verdict in any case.
void alb_reflect_in_command(struct alb_csa *csa, const struct alb_csa_txn *command, alb_time now);
// Completes receives for the notifications that wait, as many as there are. May end the queue pair.
void alb_reflect_in_notify(struct alb_csa *csa, alb_time now);
// The queue pair has ended.
void alb_reflect_in_stop(struct alb_csa *csa, alb_time now);
// True if no verdict is to be sent, and no transaction is coming.
bool alb_reflect_in_is_quiet(const struct alb_reflect_in *in);
bool alb_reflect_in_add(struct alb_reflect_source *source, struct alb_csa_packet *packet, alb_time now);

// Between the target's files.
// Takes the room for what a new queue pair may have. It is not of the staging memory: whoever finds that full is to be
// told so. ENOMEM.
int alb_reflect_in_reserve(struct alb_csa *csa);
// The queue pair's, begun if need be; NULL: no room was taken.
struct alb_reflect_in *alb_reflect_in_get(struct alb_csa *csa);
// A record without an id, for parts that begin to come; NULL: no memory.
struct alb_txn_in *alb_txn_in_create(struct alb_engine *engine);
void alb_txn_in_destroy(struct alb_txn_in *txn);
// NULL: there is no record.
struct alb_txn_in *alb_txn_in_find(struct alb_engine *engine, const struct alb_txn_id *id);
// Gives it its id, in initiator's records. ALB_TXN_OK; NO_MEMORY; MALFORMED: an id that cannot be.
enum alb_txn_reason alb_txn_in_name(struct alb_txn_in *txn, struct alb_txn_initiator *initiator, uint64_t number);
// The same for what a journal has, in whatever order; EEXIST: known already.
int alb_txn_in_name_again(struct alb_txn_in *txn, struct alb_txn_initiator *initiator, uint64_t number);
// The initiator by its id, made for that queue pair (NULL: a restored one) if it is new; NULL: no room, or another's.
struct alb_txn_initiator *alb_txn_initiator_get(struct alb_engine *engine, uint64_t id, struct alb_reflect_in *in);
// NULL: it is not known.
struct alb_txn_initiator *alb_txn_initiator_find(struct alb_engine *engine, uint64_t id);
// The initiator knows the outcome of all numbers below: those records that have ended are forgotten.
void alb_txn_initiator_pass(struct alb_txn_initiator *initiator, uint64_t low_water);
// That journal knows the initiator. ENOMEM.
int alb_txn_initiator_vouch(struct alb_txn_initiator *initiator, struct alb_engine *engine, uint64_t keeper);
bool alb_txn_initiator_is_vouched(const struct alb_txn_initiator *initiator, uint64_t keeper);
// A command of it has come.
void alb_txn_initiator_heard(struct alb_engine *engine, struct alb_txn_initiator *initiator);
// Its queue pair has ended.
void alb_txn_initiator_orphan(struct alb_engine *engine, struct alb_txn_initiator *initiator);
// True if nothing moves on from that state.
bool alb_txn_state_is_end(enum alb_txn_state state);

// What its record says now.
struct alb_csa_verdict alb_txn_in_verdict(const struct alb_txn_in *txn);
// A verdict for one who asks about what is not of this queue pair, or has no record, is to be sent; *verdict is copied.
// While as many wait as may it is dropped: who asks will ask again.
void alb_reflect_in_owe_stray(struct alb_reflect_in *in, const struct alb_csa_verdict *verdict);
// Its verdict is to be sent, if the initiator's queue pair is connected; else the initiator asks.
void alb_txn_in_owe_verdict(struct alb_txn_in *txn);
// Copies the staged bytes into their regions and ends the transaction. False: the digest afterwards was wrong, and it
// is ABORTED or CORRUPT.
bool alb_txn_in_expose(struct alb_txn_in *txn, alb_time now);
// True if that journal is open here.
bool alb_reflect_has_journal(const struct alb_engine *engine, uint64_t keeper);
// The region has no journal from now on, if it had one.
void alb_reflect_leave_journal(struct alb_region *mr);
// Ends it as ABORTED, at once or when the journal has answered; nothing if it is decided.
void alb_txn_in_abort(struct alb_txn_in *txn, enum alb_txn_reason reason, alb_time now);
// It has passed all checks: bound from now on, until its lease ends.
void alb_txn_in_bind(struct alb_txn_in *txn, alb_time now);
// The lease timer; while parts come, the time in which some more must.
void alb_txn_in_on_lease(struct alb_deadline *deadline, alb_time now);
// Ends it in that state: memory and claims go back, and a verdict is owed.
void alb_txn_in_finish(struct alb_txn_in *txn, enum alb_txn_state state, enum alb_txn_reason reason, alb_time now);
// Memory and claims go back; what the driver looks at stays until it has answered.
void alb_txn_in_release(struct alb_txn_in *txn);
// There will be no notification: its place is free again.
void alb_txn_in_drop_notice(struct alb_txn_in *txn);
// The memory behind one of its ranges is about to go.
void alb_txn_in_lost_region(struct alb_txn_in *txn);
void alb_reflect_in_on_notice_timer(struct alb_deadline *deadline, alb_time now);
// A range with so many bytes of staging, last in the list; NULL: no memory.
struct alb_txn_range *alb_txn_range_create(struct alb_txn_in *txn, uint64_t length);
// The array of its parts that drivers look at; false: no memory.
bool alb_txn_in_list_parts(struct alb_txn_in *txn);
// Queues a request to the driver's journal; its answer comes through alb_engine_journaled.
void alb_txn_in_request_journal(struct alb_txn_in *txn, enum alb_journal_kind kind);

// reflect_overlap.c
// Staged parts, before what is compared is among its ranges. It compares no more bytes than they have.
bool alb_txn_in_contradicts_itself(struct alb_txn_in *txn);

// reflect_apply.c
struct alb_digest alb_txn_in_digest(const struct alb_txn_in *txn, bool is_exposed);
// Its parts lie in memory, where corruption on demand finds them.
void alb_txn_in_corrupt(struct alb_txn_in *txn);
// False: what is exposed stayed different.
bool alb_txn_in_apply(struct alb_txn_in *txn);
void alb_txn_range_hold_readers(const struct alb_txn_range *range);
// Its claim was made through a window that is about to be unbound, and is not any more: it is made of the region behind
// the window instead. False: the region itself goes.
bool alb_txn_range_claim_root(struct alb_txn_range *range);
// In place: what stood there is put back, and readers see it. Once.
void alb_txn_in_undo(struct alb_txn_in *txn);

// ---- frames ---------------------------------------------------------------------------------------------------------

struct alb_assoc_live;
struct alb_csa_arrival;
// Adds all commands and verdicts that are due; false: the batch is full, and some still are.
bool alb_reflect_add(struct alb_assoc_live *live, struct alb_csa_packet *packet, alb_time now);
// A frame has come. Returns why it was dropped.
enum alb_drop alb_reflect_on_command(struct alb_csa_arrival *arrival, const struct alb_csa_txn *command, alb_time now);
enum alb_drop alb_reflect_on_verdict(struct alb_csa_arrival *arrival, const struct alb_csa_verdict *verdict,
                                     alb_time now);
