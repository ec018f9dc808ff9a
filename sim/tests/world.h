// SPDX-License-Identifier: BSD-2-Clause
// Two connected ends over a scripted network, for tests that read as a specification: what is posted, what the network
// does, what completes when.
#pragma once

#include "flow.h"

#include "base/tests/test.h"

#include "sim/pair.h"

#include <string.h>

// Tests name what matters in a rule or a work request and leave the rest zero.
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

enum {
    A = ALB_SIM_A,
    B = ALB_SIM_B,
    MEMORY = 1 << 18,
    LOG_MAX = 8192,
    FRAMES_MAX = 16384,
    QPS_MAX = 8,
};

#define ACCESS_ALL                                                                                          \
    (ALB_ACCESS_LOCAL_WRITE | ALB_ACCESS_REMOTE_WRITE | ALB_ACCESS_REMOTE_READ | ALB_ACCESS_REMOTE_ATOMIC | \
     ALB_ACCESS_MW_BIND)

// A packet as it was given to a link.
struct sent {
    alb_sim_time at;
    struct alb_roce roce;
    uint32_t payload_bytes;
};

// A frame of a CSA packet, as far as tests look at it.
struct sent_frame {
    alb_sim_time at;
    enum alb_csa_type type;
    enum alb_csa_op op;
    uint8_t path, flags, syndrome;
    alb_qpn qpn;
    alb_psn psn; // of a segment; of a REPORT what is cumulative
    uint32_t index, payload_bytes;
    bool is_again;   // a segment that was sent before
    uint32_t packet; // in the log
};

struct stream {
    bool is_known;
    enum alb_csa_type type;
    alb_qpn qpn;
    alb_psn next;
};

struct end {
    struct alb_sim_host *host;
    struct alb_pd *pd;
    struct alb_cq *cq;      // of sends
    struct alb_cq *recv_cq; // of receives
    struct alb_srq *srq;
    struct alb_region *mr; // over all of memory
    struct alb_qp *qps[QPS_MAX];
    struct alb_qp *qp; // the first of them
    uint8_t *memory;
    struct sent *log; // what this end has sent
    uint32_t log_count;
    struct sent_frame *frames; // of CSA
    uint32_t frame_count;
    struct stream streams[4 * QPS_MAX];
    uint64_t segments, segments_again; // of CSA, sent in all, and sent before
    bool is_log_closed;                // nothing is written any more, only counted
};

struct options {
    struct alb_sim_pair_config pair;
    enum alb_qp_type type;
    uint32_t qps; // 1
    uint32_t mtu_bytes;
    uint8_t timeout, retry_cnt, rnr_retry, min_rnr_timer, rd_atomic;
    uint32_t psn[2]; // that each side starts sending with
    uint32_t access; // that queue pairs allow
    uint32_t mr_access;
    uint32_t send_wr_max, recv_wr_max, cq_entries, recv_cq_entries;
    uint32_t srq_wr_max, srq_limit; // of B; 0: none
    uint32_t qkey;
    uint32_t qpn_index;        // of the first queue pair of each side; 0: any
    uint32_t path_payload_max; // the route's MTU as given to the engines; 0: not given
    bool is_b_in_rtr;          // B stays in RTR
    bool is_unconnected;       // leave the queue pairs in RESET
};

struct world {
    struct options options;
    struct alb_sim_pair pair;
    struct end a, b;
};

// What options_default asks for: "rc" at first.
extern const char *world_transport;

// RC, PMTU 1024, timeout 14 (67.108864 ms), 7 retries, RNR timer 12 (0.64 ms), 7 RNR retries.
void options_default(struct options *options);
struct world *world_new(const struct options *options);
// Also checks that nothing leaked and nothing was allocated on the data path.
void world_free(struct world *world);
// WRITEs from a's memory to the second half of b's; see struct flow.
struct flow world_flow(struct world *world, uint32_t message_bytes, uint32_t depth, uint64_t end_bytes);
// That side's program ends and begins anew: objects as before, in place of the old ones, unconnected. Memory stays.
void world_restart(struct world *world, struct end *end);
// A world of the default options, filled memory.
struct world *world_default(void);

struct end *end_of(struct world *world, enum alb_sim_side side);
// Connects a queue pair of each side; both are in RESET.
void connect_qps(struct world *world, struct alb_qp *a, struct alb_qp *b);

// The network's script toward B (requests of A) or toward A (answers to A): one rule.
void on_way_to_b(struct world *world, struct alb_sim_rule rule);
void on_way_to_a(struct world *world, struct alb_sim_rule rule);

#define OPCODE(number) .by = ALB_SIM_BY_OPCODE, .opcode = (number)
#define NTH(n)         .from = (n)
#define ALWAYS         .times = UINT32_MAX

// ---- work -----------------------------------------------------------------------------------------------------------

struct work {
    enum alb_wr_opcode opcode;
    uint64_t id;
    uint32_t from; // offset in own memory
    uint32_t length;
    uint32_t to;    // offset in the peer's memory
    uint32_t flags; // besides ALB_SEND_SIGNALED
    bool is_unsignaled;
    uint32_t imm;
    uint32_t rkey;        // 0: the peer's region
    uint64_t remote_addr; // 0: from .to
    uint64_t compare_add, swap;
    uint32_t invalidate;
    const struct alb_sge *sge;
    uint32_t sge_count; // instead of from and length
    struct alb_mw_bind bind;
    const struct alb_ah *ah;
    alb_qpn remote_qpn;
    uint32_t remote_qkey;
};

struct end *peer_of(struct world *world, const struct end *end);
// Posts without a poke, so that several requests start together.
int stage_on(struct world *world, struct end *end, struct alb_qp *qp, struct work work);
// Posts to the first queue pair and lets the engine run; 0 or an errno.
int post(struct world *world, struct end *end, struct work work);
int post_on(struct world *world, struct end *end, struct alb_qp *qp, struct work work);
void receive(struct end *end, uint64_t id, uint32_t at, uint32_t length);
void receive_on(struct end *end, struct alb_qp *qp, uint64_t id, uint32_t at, uint32_t length);

// ---- what happened --------------------------------------------------------------------------------------------------

// The next completion must be this one.
void expect_wc_at(struct alb_cq *cq, uint64_t id, enum alb_wc_status status, struct alb_wc *out, const char *file,
                  int line);
void expect_none_at(struct alb_cq *cq, const char *file, int line);
#define expect_wc(cq, id, status)         expect_wc_at((cq), (id), (status), NULL, __FILE__, __LINE__)
#define expect_wc_as(cq, id, status, out) expect_wc_at((cq), (id), (status), (out), __FILE__, __LINE__)
#define expect_none(cq)                   expect_none_at((cq), __FILE__, __LINE__)
#define expect_state(end, wanted)         assert_int_equal(alb_qp_current_state((end)->qp), (wanted))
// How many packets of that opcode the end has sent.
uint32_t sent_of(const struct end *end, uint8_t opcode);
// The n-th of them (from 1), or NULL.
const struct sent *nth_sent(const struct end *end, uint8_t opcode, uint32_t n);
// How many frames of that type the end has sent, and the n-th of them (from 1), or NULL.
uint32_t frames_of(const struct end *end, enum alb_csa_type type);
const struct sent_frame *nth_frame(const struct end *end, enum alb_csa_type type, uint32_t n);
uint64_t stat(const struct end *end, enum alb_stat stat);
// Own memory [from, +length) of one end equals [to, +length) of the other's.
void expect_copied(const struct end *source, uint32_t from, const struct end *target, uint32_t to, uint32_t length);
// Fills memory with bytes that differ by place and seed.
void fill(struct end *end, uint32_t seed);
// Runs until nothing is due; fails if that takes more than ten virtual seconds.
void run_idle(struct world *world);
void run_for(struct world *world, alb_sim_time span);
alb_sim_time now_of(const struct world *world);
