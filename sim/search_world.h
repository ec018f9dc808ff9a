// SPDX-License-Identifier: BSD-2-Clause
// The world of one search: what was drawn from the seed, and the objects of both sides.
#pragma once

#include "sim/model.h"
#include "sim/pair.h"
#include "sim/search.h"

enum {
    SEARCH_SLOTS = 64, // stretches of memory of a side that receives, READs and atomics are given
    SEARCH_SLOTS_SHORT = 48,
    SEARCH_GAP = 32, // at most, between the pieces of a slot
};

// The owner of a slot.
struct alb_search_slot {
    bool is_taken, is_recv;
    struct alb_model_qp *qp;       // of a request
    struct alb_model_recvs *recvs; // of a receive
    uint32_t number;
};

// A window of type 2 that a side opens over where the peer's queue pair writes.
enum alb_search_window_state {
    SEARCH_WINDOW_CLOSED,
    SEARCH_WINDOW_OPENING, // a bind is posted
    SEARCH_WINDOW_OPEN,    // the peer may use its key
    SEARCH_WINDOW_CLOSING, // LOCAL_INV is posted here, or SEND_WITH_INV there
};

struct alb_search_window {
    struct alb_region *mw;
    enum alb_search_window_state state;
    uint32_t key;
    bool is_used; // the peer has posted something with its key
};

struct alb_search_qp {
    struct alb_qp *qp;
    struct alb_model_qp *model;
    struct alb_qp_cap cap;
    uint32_t access; // what it lets its peer do
    bool is_connected;
    bool is_over; // connected with a side that has begun anew since
    uint32_t psn; // the first one that it sent with
    struct alb_search_window window;
};

struct alb_search_side {
    struct alb_sim_host *host;
    struct alb_pd *pd, *other_pd;
    struct alb_cq *cq;
    struct alb_srq *srq;
    struct alb_xrcd *xrcd;
    struct alb_srq *named[ALB_MODEL_NAMED];  // what XRC queue pairs name, by the rest of their index
    struct alb_region *mr, *closed_mr;       // over the arena: with all rights; with none for the peer
    struct alb_region *fleeting_mr;          // with all rights, but not for long
    struct alb_region *foreign_mr;           // with all rights, of the other protection domain
    struct alb_region *read_mr, *written_mr; // that the peer may only read, or only write
    struct alb_ah *ah;
    uint8_t *arena;
    uint64_t iova;
    // Of the peer's lives: whether it has had an answer from the present one, and had when the phase began, so that
    // every packet names that one; and when one has ended, whether it knows so, and takes nothing from it any more.
    bool knows_life, knew_life, may_learn, has_learnt;
    struct alb_search_qp qps[ALB_MODEL_QPS_MAX];
    struct alb_search_slot slots[SEARCH_SLOTS];
};

struct alb_search {
    struct alb_prng prng;
    struct alb_prng
        more; // what was thought of later draws from this one, so that what else a seed draws stays as it is
    struct alb_sim_pair pair;
    struct alb_model model;
    struct alb_search_side sides[ALB_MODEL_SIDES];
    struct alb_search_result *result;
    bool is_csa;               // else RC
    bool is_elsewhere;         // what is posted is another model's to judge (sim/model_txn.h)
    bool is_short;             // few steps, small messages, small memory
    uint32_t path_payload_max; // the route's MTU as given to the engines; 0: not given

    // Drawn from the seed.
    uint32_t qp_count;
    uint32_t mtu_bytes, message_max;
    enum alb_qp_type types[ALB_MODEL_QPS_MAX]; // of side 0; of XRC the other side has the other half
    bool is_shared;                            // with a shared receive queue on each side
    bool is_same_host;                         // UDP ports follow from the process slots
    uint32_t send_wr_max, recv_wr_max, sge_max, inline_max, rd_atomic;
    bool has_errors;      // requests that must fail are posted
    bool has_short_recvs; // and receives too short
    bool has_lifecycle;   // queue pairs are reset, put into error, drained in the middle of work
    bool has_partitions;  // the network is cut for a while
    bool has_restarts;    // a side's program ends and begins anew
    bool comes_back;   // and is connected again at once, with the numbers that it had where the epochs tell them apart
    bool repeats;      // what is over is connected with the PSNs that it had
    bool has_repeated; // in this phase: an engine remembers one life that is over, so that no other may end now
    bool may_lose_much;
    bool may_duplicate;
    uint32_t patience; // doublings of the timeouts: what waits in front of a slow lane is no silence
    struct alb_faults_spec faults;

    // The arena, the same on both sides.
    uint32_t source_bytes; // from 0: what is sent, and what READs may ask for; never changes
    uint32_t words_at, slices_at, slice_bytes, slice_stride, slots_at, slot_bytes, slot_count, arena_bytes;
};

static inline uint32_t alb_search_below(struct alb_search *search, uint32_t n)
{
    return (uint32_t)alb_prng_below(&search->prng, n);
}

static inline void alb_search_must(int error)
{
    alb_assert(error == 0);
}

static inline bool alb_search_percent(struct alb_search *search, uint32_t percent)
{
    return alb_search_below(search, 100) < percent;
}

// search_world.c
// In two steps, for a search that changes what was drawn; or in one.
void alb_search_draw(struct alb_search *search, uint64_t seed, struct alb_sim_pair_config *config);
void alb_search_build(struct alb_search *search, uint64_t seed, const struct alb_sim_pair_config *config);
void alb_search_open(struct alb_search *search, uint64_t seed);
void alb_search_close(struct alb_search *search);
// A side's program ends without a word and begins anew, with all objects that it had, none of them connected.
void alb_search_restart(struct alb_search *search, uint32_t side);
// Connects number index of both sides anew; everything of it has been polled.
// is_quiet: no packet of its former life is under way; else only chance keeps the new PSNs away from the old ones, or
// where one side has begun anew and the other one knows so, epochs keep them apart, and the PSNs are the old ones.
void alb_search_connect(struct alb_search *search, uint32_t index, bool is_quiet);

// search_csa.c
// Draws what only CSA has: policies, paths, lanes, partitions, restarts. After everything else has been drawn.
void alb_search_draw_csa(struct alb_search *search, struct alb_sim_pair_config *config);

// search_life.c
void alb_search_life_begin_phase(struct alb_search *search);
// A request of the queue pair that the peer had to answer has succeeded.
void alb_search_life_answered(struct alb_search *search, const struct alb_search_qp *qp);
// The queue pair is about to be reset.
void alb_search_life_reset(struct alb_search *search, uint32_t side, uint32_t index);
// The side has begun anew. May connect queue pairs.
void alb_search_life_end(struct alb_search *search, uint32_t side);
// Between two steps: a side may end with packets under way, come back at once, and be known to have.
void alb_search_life_come_back(struct alb_search *search);
// Whether number index may be connected with the PSNs that it had.
bool alb_search_life_repeats(const struct alb_search *search, uint32_t index);

// search_window.c
// Draws a request that opens or closes a window of this side; false if there is none to draw.
bool alb_search_draw_window(struct alb_search *search, uint32_t side, uint32_t index, struct alb_send_wr *wr);
// A request about windows was posted, or completed.
void alb_search_window_posted(struct alb_search_window *window, enum alb_wr_opcode opcode);
void alb_search_window_done(struct alb_search_qp *qp, const struct alb_model_op *op, enum alb_wc_status status);
// The queue pair begins anew.
void alb_search_window_end(struct alb_search_window *window);

// Registers the fleeting region anew: requests that use its old key fail, unless they are done.
void alb_search_renew_fleeting(struct alb_search *search, uint32_t side);

// search_work.c
// Posts a request, if there is room and memory for it.
void alb_search_post(struct alb_search *search, uint32_t side, uint32_t index);
// Posts a receive; is_whole: long enough for any message. True if it was posted.
bool alb_search_post_recv(struct alb_search *search, uint32_t side, uint32_t index, bool is_whole);
// Shows the model all completions of a side; returns how many.
uint32_t alb_search_poll(struct alb_search *search, uint32_t side);
// A free slot, or NULL.
struct alb_search_slot *alb_search_find_slot(const struct alb_search *search, struct alb_search_side *side);
// Gives back the slots of what has completed.
void alb_search_reclaim_slots(struct alb_search_side *side);
