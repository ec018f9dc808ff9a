// SPDX-License-Identifier: BSD-2-Clause
// The engine: the whole protocol of one device as a state machine without clock, socket, thread, file or allocator. A
// driver (device/ with sockets, sim/ with a virtual network) feeds it datagrams and time and takes datagrams and
// deadlines from it:
//
//     alb_engine_rx(engine, datagrams, count, now);     what came in
//     alb_engine_bells(engine, now);                    what was posted
//     alb_engine_tick(engine, now);                     what is due
//     while (alb_engine_tx(engine, tx, now) > 0) ...    what goes out
//     while (alb_engine_event(engine, &event)) ...      what the owner must know
//     alb_engine_deadline(engine)                       when to come back
//
// One thread at a time holds the engine; calls that may run beside it are marked [ring] or [any thread]. The only
// symbols it takes from outside are memcpy, memmove, memset, memcmp, strcmp, those of base/ and wire/, in
// trace_json.c alone snprintf, and in policy_text.c alone strcspn, strlen and strncmp; tests/walls checks that.
#pragma once

#include "base/types.h"
#include "engine/dcqcn.h"
#include "engine/stats.h"
#include "engine/verbs.h"
#include "wire/datagram.h"

// Where an engine's memory comes from. get returns zeroed memory aligned to 64 bytes, or NULL; neither is called on the
// data path.
struct alb_memory {
    void *(*get)(void *context, size_t bytes);
    void (*put)(void *context, void *memory, size_t bytes);
    void *context;
};

// Indexes 0 to 15 of each slot: 0 and 1 as in the specification, 2 the CSA engine, 3 its connection manager.
#define ALB_QPN_RESERVED 16

// Limits and policies. alb_engine_config_default fills everything but memory, seed and statistics.
#define ALB_CREDIT_AGING_MAX       1000000000000 // bytes per second
#define ALB_CREDIT_INTERVAL_MAX_NS (4 * ALB_NS_PER_S)
#define ALB_PEERS_MAX              (1u << 20)

struct alb_engine_config {
    struct alb_memory memory;
    // What is read for every packet, in one cache line.
    uint8_t slot;      // process slot: the high 8 bits of every QPN
    uint8_t gsi_index; // of the connection manager's queue pair: ALB_GSI_QPN, ALB_GSI_ALBEDO_QPN
    // Received payload is counted, checked and acknowledged, but not stored: for simulations that carry none.
    bool has_no_payload;
    bool sends_bursts;                 // the driver: of packets of one length, in one call; csa cuts for it (csa_cut.h)
    uint32_t qp_max;                   // indexes, the reserved ones included
    uint32_t csa_window_segments;      // a power of two: segments of a stream that may be unacknowledged
    struct alb_corruption *corruption; // of the driver; NULL: none is asked for (base/corruption.h)

    uint8_t seed[32]; // of all randomness: QPNs, PSNs, keys
    uint32_t pd_max, region_max, cq_max, srq_max, xrcd_max, ah_max;
    uint32_t cqe_max, send_wr_max, recv_wr_max, srq_wr_max, sge_max, inline_max_bytes;
    uint32_t rd_atomic_max; // outstanding READs and atomics per queue pair, each way
    uint32_t group_max;     // multicast groups with attached queue pairs; 0: none can be attached
    uint32_t group_qp_max;  // queue pairs attached to one group
    uint32_t peer_max;      // distinct remote endpoints with connected queue pairs, at most ALB_PEERS_MAX
    uint32_t mtu_max_bytes; // largest path_mtu accepted
    uint32_t window_start_bytes, window_min_bytes, window_max_bytes; // in flight per peer
    uint64_t rtt_target_ns; // congestion "window": round trips up to here show no queue; best 5 to 10 times an idle one
    struct alb_dcqcn_config dcqcn;     // congestion "dcqcn"
    uint64_t unreliable_bytes_per_s;   // rate limit of UC and UD, which are not acknowledged; 0: none
    uint64_t ack_timeout_min_ns;       // floor of the local ACK timeout (a software peer may be descheduled)
    const char *transport;             // of connected queue pairs: "rc" (RoCEv2), "csa"
    const char *loss;                  // "go-back-n"; csa: "csa", "irn", "fixed", "sleek", "go-back-n"
    const char *congestion;            // "aimd", "fixed", "none"; csa also "window", "dcqcn"; parameters: see below
    const char *path;                  // "single"; csa also "spray", "adaptive"
    const char *credit;                // "off"; csa also "end-to-end", "shortest"; likewise
    uint32_t receive_budget_bytes;     // what all peers together may have in flight to us; 0: no limit
    uint32_t grant_min_bytes;          // at least this much for each of them
    uint64_t credit_interval_ns;       // how long a peer is measured to see what it needs: some round trips
    uint64_t credit_aging_bytes_per_s; // "shortest": what a message gains on others by waiting
    uint32_t csa_payload_bytes;        // largest UDP payload of a packet, whatever the path carries
    bool csa_trusts_routes;       // no way carries less than its route says, as in a virtual network: nothing is tried
    uint32_t csa_pool_bytes;      // a power of two: state of what is in flight, and segments that wait for their turn
    uint32_t csa_early_bytes_max; // of the latter, in whole blocks
    // Of that memory, half of it at most: what READs of transactional regions are answered from. There is a quarter
    // more of this for peers that find it taken by others.
    uint32_t reflect_snapshot_bytes_max;
    uint32_t csa_margin_min_ns; // floor of the margin by which something may be late before it counts as missing
    uint32_t csa_probe_min_ns;  // floor of the silence after which a stream probes
    uint32_t txn_out_max;       // numbered operations that a queue pair may have at a time, at most
    uint32_t txn_record_max;    // outcomes that a target keeps, and initiators that it knows
    uint32_t txn_staging_bytes; // a power of two: staged bytes of transactions at a target; 0: it accepts none
    uint32_t txn_copies_max;    // attempts to copy exposed data again when its digest differs
    uint64_t txn_lease_ns, txn_lease_ns_max; // how long a target is bound: where nothing is said, and at most
    uint32_t path_max;                       // paths to a peer (source ports), where the transport uses several
    struct alb_device_stats *stats;          // required
    struct alb_qp_stats *qp_stats;           // qp_max entries by index; NULL: the queue pairs keep their own
    struct alb_peer_stats *peer_stats;       // of the first peers that csa has; NULL: none are kept
    uint32_t peer_stats_max;                 // entries
    uint32_t trace_records;                  // 0: no trace
};

void alb_engine_config_default(struct alb_engine_config *config);
// Sets the limits that the parameters of its policies give, as alb_engine_create does by itself. False: a policy or a
// parameter is unknown.
bool alb_engine_config_apply(struct alb_engine_config *config);
// Sets the transport, and the policies and windows that suit it best; the default is "rc". EINVAL: no such transport.
int alb_engine_config_transport(struct alb_engine_config *config, const char *transport);

// EINVAL: a limit out of range or a policy of unknown name; ENOMEM.
int alb_engine_create(const struct alb_engine_config *config, struct alb_engine **engine);
// Every object must have been destroyed before.
void alb_engine_destroy(struct alb_engine *engine);
const struct alb_engine_config *alb_engine_configuration(const struct alb_engine *engine);

// Takes received datagrams, ICRC checked and cut off. The bytes are used during the call only.
void alb_engine_rx(struct alb_engine *engine, const struct alb_datagram *datagrams, uint32_t count, alb_time now);

// A datagram that a switch has trimmed to about its first ALB_CSA_TRIMMED_BYTES; its ICRC cannot be checked. It is
// dropped; if it says which packet of csa it was, that is reported to the peer, which sends it again. A driver with
// sockets cannot call this: there a trimmed datagram cannot be distinguished from a damaged one (docs/PROTOCOL.md).
void alb_engine_rx_trimmed(struct alb_engine *engine, const struct alb_datagram *datagram, alb_time now);

// Which memory the next datagram will most likely need, if it is like the last one: for a driver of more engines than
// its caches hold, which prefetches it.
struct alb_engine_hot {
    uint32_t line_count;
    uint32_t path_bytes, path_count;
    const void *paths;     // first path's entry; path_bytes are needed for the path that the datagram comes by
    const void *lines[64]; // cache lines
};

void alb_engine_hot(const struct alb_engine *engine, struct alb_engine_hot *hot);

// Fills tx with what may leave now and returns the number of bursts; 0: nothing more. Payload references stay valid
// until the engine is entered again.
uint32_t alb_engine_tx(struct alb_engine *engine, struct alb_tx *tx, alb_time now);

// True if alb_engine_tx would find something to send.
bool alb_engine_wants_tx(const struct alb_engine *engine);

// By the host's routes UDP datagrams of up to that many bytes reach the peer unfragmented, on all its paths. Also set
// by the address vectors of its queue pairs (path_payload_max).
void alb_engine_path_mtu(struct alb_engine *engine, const struct alb_endpoint *peer, uint32_t udp_payload_max,
                         alb_time now);

// Fires the timers that are due.
void alb_engine_tick(struct alb_engine *engine, alb_time now);

// When alb_engine_tick is due next, or ALB_TIME_NEVER.
alb_time alb_engine_deadline(struct alb_engine *engine);

// [any thread] Notes that the queue pair has new work; the next alb_engine_bells finds it.
void alb_engine_bell_ring(struct alb_qp *qp);
// [any thread] True if a bell has rung that alb_engine_bells has not answered.
bool alb_engine_bell_is_rung(const struct alb_engine *engine);
// Serves every queue pair whose bell has rung.
void alb_engine_bells(struct alb_engine *engine, alb_time now);

// [any thread] How many threads want to run for each processor of the host, in parts of ALB_HOST_LOAD_ONE: with more
// than one each of them waits, and what waits for them is no congestion of the network. Until it is told: one.
#define ALB_HOST_LOAD_ONE 8
#define ALB_HOST_LOAD_MAX UINT8_MAX
void alb_engine_note_host_load(struct alb_engine *engine, uint32_t load);
uint32_t alb_engine_host_load(const struct alb_engine *engine);

// Tells the time to control calls that have no argument for it. All calls above that have one tell it, too.
void alb_engine_set_now(struct alb_engine *engine, alb_time now);

// Counts a drop that the driver decided (a bad ICRC, a relay without a taker).
void alb_engine_count_drop(struct alb_engine *engine, enum alb_drop reason);

// True if every queue pair is quiet (alb_qp_is_quiet), and the connection manager: nothing would be lost by closing
// now.
bool alb_engine_is_quiet(const struct alb_engine *engine);

// ---- policies -------------------------------------------------------------------------------------------------------

enum alb_policy {
    ALB_POLICY_LOSS,
    ALB_POLICY_CONGESTION,
    ALB_POLICY_PATH,
    ALB_POLICY_CREDIT,
    ALB_POLICIES,
};

// The names that a policy of a device with that transport can have, the default first; NULL behind the last. Behind a
// name a configuration may hold a colon and parameters.
const char *alb_engine_policy_name(const char *transport, enum alb_policy policy, uint32_t index);
// True if it is such a name, with parameters that it has, each of which can be what is given.
bool alb_engine_policy_is_known(const char *transport, enum alb_policy policy, const char *text);
// True if moreover they agree with each other and with the defaults of what is not given.
bool alb_engine_policy_is_valid(const char *transport, enum alb_policy policy, const char *text);
// The parameters that the policy with that name has, and in *bounds what they can be, such as "1us..10s"; NULL behind
// the last.
const char *alb_engine_policy_parameter(const char *transport, enum alb_policy policy, const char *name, uint32_t index,
                                        const char **bounds);

// Memory that an engine keeps per peer and per queue pair, without the rings (the program chooses their sizes) and
// without what is in flight.
struct alb_engine_state_sizes {
    uint32_t association_idle_bytes;    // a peer without traffic for some seconds
    uint32_t association_resting_bytes; // one without traffic, whose window, times and paths are still kept
    uint32_t association_active_bytes;  // one with traffic, all paths in use both ways
    uint32_t qp_bytes;
};

// EINVAL: no such transport.
int alb_engine_state_sizes(const struct alb_engine_config *config, struct alb_engine_state_sizes *sizes);

// ---- events ---------------------------------------------------------------------------------------------------------

enum alb_event_type {
    ALB_EVENT_CQ_NOTIFY,           // an armed completion queue has a completion
    ALB_EVENT_CQ_ERR,              // a completion queue has overrun
    ALB_EVENT_QP_FATAL,            // local work queue error
    ALB_EVENT_QP_REQ_ERR,          // invalid request
    ALB_EVENT_QP_ACCESS_ERR,       // local access violation
    ALB_EVENT_COMM_EST,            // first packet while in RTR
    ALB_EVENT_SQ_DRAINED,          // SQD: all that was started is done
    ALB_EVENT_QP_LAST_WQE_REACHED, // with a shared receive queue: in error, no more receives will be used
    ALB_EVENT_SRQ_LIMIT_REACHED,
    ALB_EVENT_SRQ_ERR,
    ALB_EVENT_CM,        // the connection manager has something to say (alb_cm_event), and had nothing before
    ALB_EVENT_PROPOSAL,  // alb_engine_proposal has something, and had nothing before
    ALB_EVENT_JOURNAL,   // alb_engine_journal has
    ALB_EVENT_QP_FAILED, // a queue pair went into error by itself: failure says why, for a log line
};

// Why a queue pair went into error.
struct alb_qp_failure {
    enum alb_wc_status status;
    uint8_t syndrome;  // of the NAK, if one decided
    bool at_responder; // it was the peer's request that failed here
    bool is_idle;      // no request of ours was under way
    struct alb_endpoint peer;
    alb_qpn dest_qpn;
    uint8_t hop_limit;         // of our packets
    uint32_t last_psn;         // last one sent
    uint32_t awaited_psn;      // oldest one unacknowledged (at the responder: the one expected)
    uint32_t retries;          // how often it was tried again, or asked about
    uint32_t retry_limit;      // 0: not by number
    alb_time silence_ns;       // nothing was received for so long; 0: that is not why
    enum alb_wr_opcode opcode; // of the request that failed
    const char *reason;        // one short phrase: "no acknowledgement", "remote key not valid", ...
};

struct alb_event {
    enum alb_event_type type;
    void *user; // of the completion queue, queue pair, shared receive queue or connection manager
    struct alb_cq *cq;
    struct alb_qp *qp;
    struct alb_srq *srq;
    struct alb_qp_failure failure; // ALB_EVENT_QP_FAILED
};

// The next event, oldest first. Events of an object end with it.
bool alb_engine_event(struct alb_engine *engine, struct alb_event *event);
