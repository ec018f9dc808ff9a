// SPDX-License-Identifier: BSD-2-Clause
// What an engine counts, per device and per queue pair. The driver supplies the memory (a device: shared memory that
// `albedo stat` reads), so a counter is a plain 64-bit word with one writer. Names are those of the kernel's rdma
// hw_counters where one exists.
#pragma once

#include "base/types.h"
#include "wire/drop.h"

#define ALB_STATS(X)                                                                            \
    X(sent_pkts, "packets sent")                                                                \
    X(rcvd_pkts, "packets received")                                                            \
    X(sent_bytes, "bytes sent as UDP payload; by queue pairs of albedo0: in segments")          \
    X(rcvd_bytes, "bytes received as UDP payload; on albedo0: in segments")                     \
    X(retransmitted_pkts, "packets of requests and, on albedo0, of answers sent again")         \
    X(duplicate_request, "requests and, on albedo0, answers received again")                    \
    X(out_of_seq_request, "requests received ahead of the one expected")                        \
    X(packet_seq_err, "NAK sequence errors and, on albedo0, reports of a loss received")        \
    X(sent_seq_err, "NAK sequence errors sent")                                                 \
    X(rcvd_rnr_err, "RNR NAKs received")                                                        \
    X(send_rnr_err, "RNR NAKs sent")                                                            \
    X(ack_sent, "acknowledgements sent")                                                        \
    X(ack_deferred, "acknowledgements merged into a later one")                                 \
    X(implied_nak_seq_err, "responses received ahead of the one expected")                      \
    X(local_ack_timeout_err, "transport timeouts")                                              \
    X(retry_exceeded_err, "queue pairs failed: transport retries used up")                      \
    X(retry_rnr_exceeded_err, "queue pairs failed: receiver-not-ready retries used up")         \
    X(req_remote_access_errors, "NAK remote access errors received")                            \
    X(req_remote_invalid_request, "NAK invalid requests received")                              \
    X(req_remote_op_errors, "NAK remote operational errors received")                           \
    X(resp_remote_access_errors, "NAK remote access errors sent")                               \
    X(resp_remote_invalid_request, "NAK invalid requests sent")                                 \
    X(resp_remote_op_errors, "NAK remote operational errors sent")                              \
    X(resp_cqe_error, "completion queue overruns")                                              \
    X(rdma_sends, "SEND messages completed")                                                    \
    X(rdma_recvs, "messages received into a posted receive")                                    \
    X(rdma_writes, "WRITE messages completed")                                                  \
    X(rdma_reads, "READ messages completed")                                                    \
    X(rdma_atomics, "atomic operations completed")                                              \
    X(window_stalls, "times a queue pair waited for its peer's window")                         \
    X(tail_asks, "reports sent because the rest of a message was overdue")                      \
    X(expected_asks, "reports sent because nothing of what was announced has come")             \
    X(tail_probes, "probes sent because nothing was heard")                                     \
    X(trimmed_reported, "packets received without their payload, and reported to their sender") \
    X(trimmed_pkts, "packets that the network cut down to headers, sent again at once")         \
    X(path_mtu_drops, "times long packets had ceased to get through")                           \
    X(read_snapshots, "READs of transactional regions answered from a copy")                    \
    X(read_snapshot_waits, "times one was tried in vain: no memory, or amid a change")          \
    X(ecn_marked_pkts, "packets received with congestion experienced")                          \
    X(np_cnp_sent, "congestion notifications sent")                                             \
    X(rp_cnp_handled, "congestion notifications received")                                      \
    X(txn_committed, "transactions committed")                                                  \
    X(txn_aborted, "transactions aborted")                                                      \
    X(txn_in_doubt, "transactions of which it was not known how they end")                      \
    X(txn_corrupt, "transactions exposed other than agreed")                                    \
    X(txn_unknown, "transactions whose outcome cannot be known")                                \
    X(txn_applied, "transactions of peers exposed")                                             \
    X(txn_refused, "transactions of peers not bound")                                           \
    X(txn_withdrawn, "transactions of peers bound, and then aborted")                           \
    X(txn_expired, "transactions of peers whose lease ended")                                   \
    X(txn_copied_again, "times what was exposed differed and was copied again")                 \
    X(digest_mismatches, "digests of peers' data that were not theirs")

enum alb_stat {
#define X(name, text) ALB_STAT_##name,
    ALB_STATS(X)
#undef X
        ALB_STAT_COUNT
};

struct alb_stats {
    uint64_t counter[ALB_STAT_COUNT];
};

#define ALB_STAGE_GAPS 6 // between t1 (submitted) and t7 (agreed)

// A device's counters: its own sums and the dropped packets by reason.
struct alb_device_stats {
    struct alb_stats sum;
    uint64_t dropped[ALB_DROP_COUNT];
    uint64_t stage_gaps[ALB_STAGE_GAPS][64]; // operations whose gap was 2^i ns or more, and less than 2^(i + 1)
};

// One queue pair's: its identity, so that a reader needs nothing else, and its counters.
struct alb_qp_stats {
    uint32_t qpn;  // 0: no such queue pair
    uint8_t type;  // enum alb_qp_type
    uint8_t state; // enum alb_qp_state
    uint16_t path_mtu_bytes;
    uint32_t dest_qpn;
    uint8_t peer[16];
    struct alb_stats stats;
    uint32_t dropped[ALB_DROP_COUNT]; // of what named it; half the width of a device's, since there are thousands
};

#define ALB_PATH_STATS_MAX 128u

// A path to a peer, one way.
struct alb_path_stats {
    uint32_t rtt_ns, rtt_min_ns; // smoothed, and the least; 0: not measured
    uint32_t inflight_bytes;
    uint32_t arrived_pkts, marked_pkts; // by what the peer has reported; modulo 2^32
    uint16_t recent_pkts, recent_lost;  // whose fate is known, and those lost of them; halved from time to time
    uint8_t state;                      // enum alb_path_state
    uint8_t reserved[3];
};

// What csa knows of a peer, as its sweep last saw it, up to a tenth of a second ago while packets come and go.
struct alb_peer_stats {
    uint8_t peer[16], local[16];
    uint32_t epoch;   // the peer's; 0: not known
    uint8_t is_known; // 0: there is no such peer
    uint8_t is_awake; // packets come and go; else the rest is as it was when they last did
    uint8_t slot;
    uint8_t path_count;          // 0: it has never been awake
    uint32_t payload_max;        // largest UDP payload of a packet to it: by the path MTU
    uint32_t rtt_ns, rtt_min_ns; // smoothed, and the least since it woke; 0: not measured
    uint32_t window_bytes;       // that may be in flight; UINT32_MAX: no bound
    uint32_t credit_bytes;       // that the peer grants; UINT32_MAX: any number
    uint64_t rate_bytes_per_s;   // that bursts leave at; 0: nothing limits it
    uint64_t inflight_bytes;
    struct alb_path_stats paths[ALB_PATH_STATS_MAX];
};

// "good", "left", "trying"; "?" for what is none.
const char *alb_path_state_name(uint8_t state);

// "submitted_placed": from which stage to which.
const char *alb_stage_gap_name(uint32_t gap);

// "sent_pkts" and what it means.
const char *alb_stat_name(enum alb_stat stat);
const char *alb_stat_text(enum alb_stat stat);
