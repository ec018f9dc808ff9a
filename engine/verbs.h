// SPDX-License-Identifier: BSD-2-Clause
// The verbs objects of an engine: protection domains, memory regions and windows, completion queues, shared receive
// queues, address handles and queue pairs. Semantics are those of the InfiniBand Architecture Specification, volume 1
// (chapters 9 to 11), and of the rdma-core manual pages; enumerators have the values of <infiniband/verbs.h>, which the
// verbs door asserts.
//
// Threads. A call marked [ring] touches one ring only: it may run beside anything else, as long as calls on the same
// ring exclude each other. Every other call must be made by the holder of the engine (the device's driver token).
//
// Errors. A call that can fail returns 0 or a positive errno and changes nothing when it fails.
#pragma once

#include "base/addr.h"
#include "base/types.h"

struct alb_engine;
struct alb_pd;
struct alb_region; // a memory region or a memory window
struct alb_cq;
struct alb_srq;
struct alb_ah;
struct alb_qp;
struct alb_xrcd; // an XRC domain

typedef uint32_t alb_qpn; // 24 bits: process slot (8) | index (16)

#define ALB_MAX_SGE     32
#define ALB_MAX_INLINE  512
#define ALB_MAX_MESSAGE (1u << 31)
#define ALB_GRH_BYTES   40

#define ALB_MULTICAST_QPN 0xffffff // destination of datagrams to a multicast group (volume 1, 10.5)

// ---- protection domains ---------------------------------------------------------------------------------------------

// ENOMEM at the configured limit.
int alb_pd_create(struct alb_engine *engine, struct alb_pd **pd);
// EBUSY while anything belongs to it.
int alb_pd_destroy(struct alb_pd *pd);

// ---- memory regions and windows -------------------------------------------------------------------------------------

enum alb_access {
    ALB_ACCESS_LOCAL_WRITE = 1 << 0,
    ALB_ACCESS_REMOTE_WRITE = 1 << 1,
    ALB_ACCESS_REMOTE_READ = 1 << 2,
    ALB_ACCESS_REMOTE_ATOMIC = 1 << 3,
    ALB_ACCESS_MW_BIND = 1 << 4,
    ALB_ACCESS_ZERO_BASED = 1 << 5,
    ALB_ACCESS_RELAXED_ORDERING = 1 << 20,
};

enum alb_mw_type {
    ALB_MW_TYPE_1 = 1,
    ALB_MW_TYPE_2 = 2, // type 2B: bound to one queue pair
};

// Registers length bytes at address. iova is the address that work requests and peers use for the first byte. The
// memory must stay mapped until the region is destroyed. With ALB_ACCESS_ZERO_BASED iova is taken as 0. EINVAL: remote
// write or atomic without local write, unknown access, wrap-around, no address; ENOMEM at the configured limit.
int alb_mr_create(struct alb_pd *pd, void *address, uint64_t length, uint64_t iova, uint32_t access,
                  struct alb_region **mr);
// ibv_rereg_mr: each of pd, (address, length, iova), access may be left as it is (NULL, NULL, UINT32_MAX). The keys
// stay, since peers may hold them. EINVAL as above; EBUSY while memory windows are bound to it, and another address or
// length while it is transactional.
int alb_mr_change(struct alb_region *mr, struct alb_pd *pd, void *address, uint64_t length, uint64_t iova,
                  uint32_t access);
// EBUSY while memory windows are bound to it.
int alb_mr_destroy(struct alb_region *mr);

// Makes a region transactional: readers in this process see by its version words, one for each stride bytes, whether
// what was read belongs together (engine/region_version.h); a READ by a peer is answered from one version. stride: a
// power of two from 64, or the region's whole length. The words are the caller's and stay there as long as the region
// does; what they hold is where versions begin. words NULL: not transactional any more. EINVAL: a window, no length,
// stride; EBUSY: a transaction stands there in place, or words are set already; EOPNOTSUPP: not a device with
// reflection.
int alb_mr_set_versions(struct alb_region *mr, _Atomic uint64_t *words, uint64_t stride);

// EINVAL: no such type; ENOMEM at the configured limit, which windows and regions share.
int alb_mw_create(struct alb_pd *pd, enum alb_mw_type type, struct alb_region **mw);
// A window that is bound is unbound before.
int alb_mw_destroy(struct alb_region *mw);

// Local and remote key of a region are one number. That of a window changes with every bind of type 1; of type 2 its
// low byte is the caller's (ibv_inc_rkey).
uint32_t alb_region_key(const struct alb_region *region);
// What the owner of a region knows it by; NULL as long as none was set.
void alb_region_set_user(struct alb_region *region, void *user);
void *alb_region_user(const struct alb_region *region);

// ---- completion queues ----------------------------------------------------------------------------------------------

enum alb_wc_status {
    ALB_WC_SUCCESS,
    ALB_WC_LOC_LEN_ERR,
    ALB_WC_LOC_QP_OP_ERR,
    ALB_WC_LOC_EEC_OP_ERR,
    ALB_WC_LOC_PROT_ERR,
    ALB_WC_WR_FLUSH_ERR,
    ALB_WC_MW_BIND_ERR,
    ALB_WC_BAD_RESP_ERR,
    ALB_WC_LOC_ACCESS_ERR,
    ALB_WC_REM_INV_REQ_ERR,
    ALB_WC_REM_ACCESS_ERR,
    ALB_WC_REM_OP_ERR,
    ALB_WC_RETRY_EXC_ERR,
    ALB_WC_RNR_RETRY_EXC_ERR,
    ALB_WC_LOC_RDD_VIOL_ERR,
    ALB_WC_REM_INV_RD_REQ_ERR,
    ALB_WC_REM_ABORT_ERR,
    ALB_WC_INV_EECN_ERR,
    ALB_WC_INV_EEC_STATE_ERR,
    ALB_WC_FATAL_ERR,
    ALB_WC_RESP_TIMEOUT_ERR,
    ALB_WC_GENERAL_ERR,
};

enum alb_wc_opcode {
    ALB_WC_SEND = 0,
    ALB_WC_RDMA_WRITE = 1,
    ALB_WC_RDMA_READ = 2,
    ALB_WC_COMP_SWAP = 3,
    ALB_WC_FETCH_ADD = 4,
    ALB_WC_BIND_MW = 5,
    ALB_WC_LOCAL_INV = 6,
    ALB_WC_ATOMIC_WRITE = 9,
    ALB_WC_RECV = 1 << 7,
    ALB_WC_RECV_RDMA_WITH_IMM = (1 << 7) + 1,
};

enum alb_wc_flags {
    ALB_WC_GRH = 1 << 0,
    ALB_WC_WITH_IMM = 1 << 1,
    ALB_WC_WITH_INV = 1 << 3,
};

struct alb_wc {
    uint64_t wr_id;
    alb_time timestamp; // when it was pushed, in the engine's time
    uint32_t status;    // enum alb_wc_status
    uint32_t opcode;    // enum alb_wc_opcode; undefined unless status is success
    uint32_t vendor_err;
    uint32_t byte_len;
    union {
        uint32_t imm_data; // network byte order
        uint32_t invalidated_rkey;
    };
    alb_qpn qpn;
    alb_qpn src_qpn;
    uint16_t flags; // enum alb_wc_flags
    uint8_t sl;
    uint8_t dlid_path_bits;
    struct alb_qp *qp; // NULL: a receive of XRC, which outlives the queue pair that it came by
};

enum alb_cq_arm {
    ALB_CQ_ARM_NONE,
    ALB_CQ_ARM_SOLICITED, // solicited and error completions
    ALB_CQ_ARM_NEXT,
};

// A queue for at least entries completions. user comes back in events. EINVAL: 0 or more than the configured limit.
int alb_cq_create(struct alb_engine *engine, uint32_t entries, void *user, struct alb_cq **cq);
// Keeps what is queued. EINVAL: fewer entries than are queued, or beyond the limit. The caller also excludes [ring]
// calls on it.
int alb_cq_resize(struct alb_cq *cq, uint32_t entries);
// EBUSY while a queue pair uses it.
int alb_cq_destroy(struct alb_cq *cq);
bool alb_cq_is_used(const struct alb_cq *cq);
uint32_t alb_cq_entries(const struct alb_cq *cq);

// [ring] The oldest completion, or NULL; valid until it is popped.
const struct alb_wc *alb_cq_peek(struct alb_cq *cq);
// [any thread] True if nothing was queued a moment ago.
bool alb_cq_is_empty(const struct alb_cq *cq);
// [ring] Drops what alb_cq_peek returned.
void alb_cq_pop(struct alb_cq *cq);
// [ring] Asks for one ALB_EVENT_CQ_NOTIFY, of the next completion. Any thread, at any time. True: there are such
// already, of which alb_cq_tell tells.
bool alb_cq_arm(struct alb_cq *cq, enum alb_cq_arm arm);
// [any thread] True if the next completion raises an event: who asked for it is about to sleep.
bool alb_cq_is_armed(const struct alb_cq *cq);
// Raises the event now, if the queue is still armed.
void alb_cq_tell(struct alb_cq *cq);
// For a queue whose notifications cannot be received: arming it has no effect from now on, and each completion costs
// one full barrier less. To be called before the queue is used.
void alb_cq_set_silent(struct alb_cq *cq);
// True once it has overrun: completions were lost, its queue pairs are in error.
bool alb_cq_is_overrun(const struct alb_cq *cq);

// ---- scatter/gather -------------------------------------------------------------------------------------------------

struct alb_sge {
    uint64_t addr;
    uint32_t length;
    uint32_t lkey;
};

// ---- extended reliable connected service (annex A14) ----------------------------------------------------------------
//
// An XRC_SEND queue pair asks, an XRC_RECV one executes. Every request names a shared receive queue of the same domain
// as the executing queue pair: a SEND is received there, and the memory that a request may touch is that of the shared
// receive queue's protection domain.

// ENOMEM at the configured limit.
int alb_xrcd_create(struct alb_engine *engine, struct alb_xrcd **xrcd);
// EBUSY while a shared receive queue or a queue pair belongs to it.
int alb_xrcd_destroy(struct alb_xrcd *xrcd);

// ---- shared receive queues ------------------------------------------------------------------------------------------

// ENOMEM/EINVAL beyond the configured limits.
int alb_srq_create(struct alb_pd *pd, uint32_t wr_max, uint32_t sge_max, uint32_t limit, void *user,
                   struct alb_srq **srq);
// One that requests of the domain can name; what it receives completes in cq.
int alb_srq_create_xrc(struct alb_pd *pd, struct alb_xrcd *xrcd, struct alb_cq *cq, uint32_t wr_max, uint32_t sge_max,
                       uint32_t limit, void *user, struct alb_srq **srq);
// What requests name it by, 24 bits; 0: it is not one of XRC.
uint32_t alb_srq_number(const struct alb_srq *srq);
// resize: wr_max, or 0 to leave it; limit: UINT32_MAX to leave it. The caller also excludes [ring] calls on it.
int alb_srq_modify(struct alb_srq *srq, uint32_t wr_max, uint32_t limit);
// EBUSY while a queue pair is attached. A request that names one of XRC is refused from now on, in the middle of a
// message too.
int alb_srq_destroy(struct alb_srq *srq);
bool alb_srq_is_used(const struct alb_srq *srq);
// What it was created with, or resized to, and its limit (0: not armed).
void alb_srq_query(const struct alb_srq *srq, uint32_t *wr_max, uint32_t *sge_max, uint32_t *limit);
// [ring] ENOMEM: full; EINVAL: too many entries. Keys are checked when the receive is used.
int alb_srq_post(struct alb_srq *srq, uint64_t wr_id, const struct alb_sge *sge, uint32_t sge_count);

// ---- address vectors and handles ------------------------------------------------------------------------------------

struct alb_av {
    struct alb_addr local; // source GID
    struct alb_addr peer;  // destination GID
    uint8_t gid_index;     // of local, for queries
    uint8_t traffic_class;
    uint8_t hop_limit; // 0: the system's default
    uint8_t sl;
    uint32_t flow_label;
    bool same_host;            // peer is an address of this host: its UDP port follows from the QPN (4791 + slot)
    bool peer_has_slots;       // it does so wherever the peer is; else the port of a foreign one is 4791
    uint32_t path_payload_max; // bytes of UDP payload that reach the peer whole; 0: not known
};

// *av is copied. ENOMEM.
int alb_ah_create(struct alb_pd *pd, const struct alb_av *av, struct alb_ah **ah);
int alb_ah_destroy(struct alb_ah *ah);
const struct alb_av *alb_ah_av(const struct alb_ah *ah);

// ---- queue pairs ----------------------------------------------------------------------------------------------------

enum alb_qp_type {
    ALB_QPT_RC = 2,
    ALB_QPT_UC = 3,
    ALB_QPT_UD = 4,
    ALB_QPT_XRC_SEND = 9,
    ALB_QPT_XRC_RECV = 10,
};

enum alb_qp_state {
    ALB_QPS_RESET,
    ALB_QPS_INIT,
    ALB_QPS_RTR,
    ALB_QPS_RTS,
    ALB_QPS_SQD,
    ALB_QPS_SQE,
    ALB_QPS_ERR,
};

enum alb_qp_attr_mask {
    ALB_QP_STATE = 1 << 0,
    ALB_QP_CUR_STATE = 1 << 1,
    ALB_QP_EN_SQD_ASYNC_NOTIFY = 1 << 2,
    ALB_QP_ACCESS_FLAGS = 1 << 3,
    ALB_QP_PKEY_INDEX = 1 << 4,
    ALB_QP_PORT = 1 << 5,
    ALB_QP_QKEY = 1 << 6,
    ALB_QP_AV = 1 << 7,
    ALB_QP_PATH_MTU = 1 << 8,
    ALB_QP_TIMEOUT = 1 << 9,
    ALB_QP_RETRY_CNT = 1 << 10,
    ALB_QP_RNR_RETRY = 1 << 11,
    ALB_QP_RQ_PSN = 1 << 12,
    ALB_QP_MAX_QP_RD_ATOMIC = 1 << 13,
    ALB_QP_ALT_PATH = 1 << 14,
    ALB_QP_MIN_RNR_TIMER = 1 << 15,
    ALB_QP_SQ_PSN = 1 << 16,
    ALB_QP_MAX_DEST_RD_ATOMIC = 1 << 17,
    ALB_QP_PATH_MIG_STATE = 1 << 18,
    ALB_QP_CAP = 1 << 19,
    ALB_QP_DEST_QPN = 1 << 20,
    ALB_QP_RATE_LIMIT = 1 << 25,
};

struct alb_qp_attr {
    enum alb_qp_state state;
    enum alb_qp_state cur_state;
    bool en_sqd_async_notify; // of the latest move to SQD
    bool sq_draining;         // of a query: in SQD, and what was begun has not ended
    uint32_t access;          // remote access that the queue pair allows (enum alb_access)
    uint16_t pkey_index;
    uint8_t port;
    uint32_t qkey;
    struct alb_av av;
    uint32_t path_mtu_bytes; // 256, 512, 1024, 2048 or 4096
    uint8_t timeout;         // 4.096 us * 2^timeout; 0: for ever
    uint8_t retry_cnt;       // 0 to 7
    uint8_t rnr_retry;       // 7: for ever
    uint8_t min_rnr_timer;
    uint8_t max_rd_atomic;
    uint8_t max_dest_rd_atomic;
    uint32_t rq_psn;
    uint32_t sq_psn;
    alb_qpn dest_qpn;
};

struct alb_qp_cap {
    uint32_t send_wr_max, recv_wr_max;
    uint32_t send_sge_max, recv_sge_max;
    uint32_t inline_max_bytes;
};

struct alb_qp_init {
    enum alb_qp_type type;
    struct alb_cq *send_cq, *recv_cq;
    struct alb_srq *srq;   // NULL: a receive queue of its own
    struct alb_xrcd *xrcd; // XRC_RECV
    struct alb_qp_cap cap;
    bool sq_sig_all;
    void *user;
    alb_qpn qpn; // 0: a random one (the usual); else that one, for CM and the simulator
};

// cap is rounded up in place of what was asked. EINVAL beyond the limits, or attached to a shared receive queue of XRC;
// EOPNOTSUPP: no such type; ENOMEM when no number is free; EADDRINUSE: the one asked for is taken, or of another slot.
// An XRC_SEND queue pair has no receive side (recv_cq and srq are not looked at), an XRC_RECV one has nothing but its
// domain: pd is NULL, no queue is looked at.
int alb_qp_create(struct alb_pd *pd, struct alb_qp_init *init, struct alb_qp **qp);
// The state table and masks of ibv_modify_qp(3). EINVAL: move or mask not allowed or attribute out of range;
// EOPNOTSUPP: path migration, rate limits. A move to RESET forgets the queued completions (ibv_modify_qp(3)): the
// caller then also excludes [ring] calls on the completion queues.
int alb_qp_modify(struct alb_qp *qp, const struct alb_qp_attr *attr, uint32_t mask, alb_time now);
void alb_qp_query(const struct alb_qp *qp, struct alb_qp_attr *attr, struct alb_qp_init *init);
// EBUSY while it is attached to a multicast group. Its queued completions are forgotten (but receives of XRC, which are
// the shared queue's): the caller also excludes [ring] calls on the completion queues.
int alb_qp_destroy(struct alb_qp *qp);

alb_qpn alb_qp_number(const struct alb_qp *qp);
enum alb_qp_state alb_qp_current_state(const struct alb_qp *qp); // any thread
enum alb_qp_type alb_qp_kind(const struct alb_qp *qp);
void *alb_qp_user(const struct alb_qp *qp);
// The program is about to destroy it or to end its connection: what the peer may still wait for is acknowledged more
// than once, since a lost acknowledgement cannot be asked for again.
void alb_qp_farewell(struct alb_qp *qp);
// Nothing sent is unacknowledged and nothing that must be answered is unanswered: what close and exit wait for.
bool alb_qp_is_quiet(const struct alb_qp *qp);

// What a program knows will come: by SEND or RDMA WRITE, besides what has come already.
struct alb_expectation {
    uint64_t bytes;       // of payload; 0: not known
    uint32_t messages;    // 0: not known
    uint32_t group;       // members of a group work in steps, together; 0: of none
    uint32_t step, steps; // which of how many; of no group: 0
};

// Announces it, instead of what was announced before: a message is then missed even if nothing of it comes. What came
// since the end of the group's step before counts toward the next one. Bytes and messages 0: nothing is expected any
// more. EOPNOTSUPP: not a queue pair of csa that receives, or not with this loss policy; EINVAL: state, step; ENOMEM.
int alb_qp_expect(struct alb_qp *qp, const struct alb_expectation *expectation, alb_time now);

// Attaches a queue pair to a multicast group: it gets a copy of each datagram that the driver receives at the group's
// address, also of what was sent from this host or by itself. Attached twice is attached once. EINVAL: not of UD, or
// not a multicast address; ENOMEM: too many groups, or queue pairs in this one.
int alb_qp_attach(struct alb_qp *qp, const struct alb_addr *group);
// EINVAL: it is not attached to this group.
int alb_qp_detach(struct alb_qp *qp, const struct alb_addr *group);
// A group that the queue pair is attached to. False if there is none.
bool alb_qp_group(const struct alb_qp *qp, struct alb_addr *group);
// True if a queue pair is attached to the group: the driver has to receive at its address.
bool alb_engine_has_group(const struct alb_engine *engine, const struct alb_addr *group);

enum alb_wr_opcode {
    ALB_WR_RDMA_WRITE = 0,
    ALB_WR_RDMA_WRITE_WITH_IMM = 1,
    ALB_WR_SEND = 2,
    ALB_WR_SEND_WITH_IMM = 3,
    ALB_WR_RDMA_READ = 4,
    ALB_WR_ATOMIC_CMP_AND_SWP = 5,
    ALB_WR_ATOMIC_FETCH_AND_ADD = 6,
    ALB_WR_LOCAL_INV = 7,
    ALB_WR_BIND_MW = 8,
    ALB_WR_SEND_WITH_INV = 9,
    ALB_WR_ATOMIC_WRITE = 15,
    ALB_WR_TXN_WRITE = 16, // made by alb_qp_txn_stage and alb_qp_txn_reconcile_stage only
    ALB_WR_TXN_END = 17,
    ALB_WR_TXN_ASK = 18,
};

enum alb_send_flags {
    ALB_SEND_FENCE = 1 << 0,
    ALB_SEND_SIGNALED = 1 << 1,
    ALB_SEND_SOLICITED = 1 << 2,
    ALB_SEND_INLINE = 1 << 3,
};

struct alb_mw_bind {
    struct alb_region *mw;
    struct alb_region *mr;
    uint64_t addr;
    uint64_t length; // 0 unbinds a window of type 1
    uint32_t access;
    uint32_t rkey; // the low byte of the new key; type 1: the whole of it, or 0, and the low byte goes up by one
};

struct alb_send_wr {
    uint64_t wr_id;
    enum alb_wr_opcode opcode;
    uint32_t flags; // enum alb_send_flags
    const struct alb_sge *sge;
    uint32_t sge_count;
    uint32_t imm_data;        // network byte order
    uint32_t invalidate_rkey; // SEND_WITH_INV, LOCAL_INV
    uint64_t remote_addr;
    uint32_t rkey;
    uint64_t compare_add; // compare value, or what to add; ATOMIC_WRITE: the 8 bytes come from the sge
    uint64_t swap;
    const struct alb_ah *ah; // UD
    alb_qpn remote_qpn;      // UD
    uint32_t remote_qkey;    // UD
    uint32_t remote_srqn;    // XRC_SEND: the peer's shared receive queue
    struct alb_mw_bind bind; // BIND_MW
    uint8_t level;           // enum alb_level (engine/transaction.h) that completes it: DELIVERED (0), VISIBLE
    bool wants_stages;       // its stages are asked for
    bool is_resend;          // of that message only what the peer has not said to hold (engine/partial.h)
    uint32_t partial;        // UC: WRITE of partial completion with that number; 0: an ordinary one
    alb_time submitted;      // t1, of one with level or stages
};

// [ring: send] Copies the request (and inline data) behind those posted before it; nothing is sent before
// alb_qp_send_commit. ENOMEM: queue full; EINVAL: state, opcode for this type, flags, number of entries, inline length,
// address handle.
int alb_qp_send_stage(struct alb_qp *qp, const struct alb_send_wr *wr);
// [ring: send] Hands over all that was staged. The caller then rings the queue pair's bell (alb_engine_bell_ring).
void alb_qp_send_commit(struct alb_qp *qp);
// [ring: send] Forgets what was staged since the last commit.
void alb_qp_send_abort(struct alb_qp *qp);
// [ring: receive] ENOMEM: full; EINVAL: too many entries, no receive queue of its own, state is RESET. When *bell comes
// back true (a message waits for a receive, or the queue pair is in error and must flush it) the caller rings the queue
// pair's bell.
int alb_qp_recv_post(struct alb_qp *qp, uint64_t wr_id, const struct alb_sge *sge, uint32_t sge_count, bool *bell);
