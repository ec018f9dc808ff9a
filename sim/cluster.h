// SPDX-License-Identifier: BSD-2-Clause
// A cluster: a topology come to life. Every host runs the engine of the product, every switch has a shared buffer,
// marks, pauses or hands out credits as configured, links have a rate, a delay and faults at scheduled times. What runs
// on it (scenarios, workloads, collectives) uses this header alone:
//
//     alb_cluster_config_default(&config, "csa");
//     alb_cluster_create(&config, &topology, &cluster);
//     alb_cluster_connect(cluster, &connection, &channel);       queue pairs of two hosts, connected
//     alb_cluster_post(cluster, channel, side, &message);        completions come to config.on_complete
//     alb_cluster_run(cluster, until, events_max);
//     alb_cluster_link_stats, alb_cluster_switch_stats, alb_cluster_host_stats, alb_cluster_totals
//     alb_cluster_destroy(cluster);
//
// Nothing depends on anything but the arguments: the same calls with the same seed give the same trace hash, whatever
// the compiler. Events of the caller's own (arrivals of flows) go into alb_cluster_queue, or to a host
// (alb_cluster_schedule). Callbacks may call everything here but alb_cluster_run and alb_cluster_destroy.
#pragma once

#include "engine/engine.h"
#include "sim/capture.h"
#include "sim/event_queue.h"
#include "sim/switch_config.h"
#include "sim/topology.h"

struct alb_cluster;
struct alb_channel; // two connected queue pairs

// ---- configuration --------------------------------------------------------------------------------------------------

// Queue-pair contexts in the cache of an RNIC: a packet whose queue pair is not in it makes the whole pipeline (one
// each way) wait. Only for transport "rc": csa needs one context of a datagram queue pair.
struct alb_rnic_config {
    uint32_t cache_entries; // 0: no model
    alb_sim_time miss_penalty;
};

struct alb_cluster_completion {
    struct alb_channel *channel;
    uint32_t side;    // of the channel, where it completed
    bool is_received; // a message has come (SEND, WRITE_IMM); else one that was posted is done
    enum alb_wc_status status;
    uint64_t user;   // posted: of the message; received: none, 0
    uint32_t imm;    // received: of the message
    uint64_t bytes;  // of the message
    uint64_t offset; // received by SEND, with real bytes: where it lies in the host's memory until on_complete returns
    const struct alb_wc *wc; // as the engine gave it; posted: wr_id is the message's number at that side, from 0
};

// What happens within the shortest delay of a link, which cannot affect another host within it, need not happen in the
// order of time: a large cluster runs faster host by host, with the same result. Then a callback on behalf of a host
// may look at and change only what is that host's own, and alb_cluster_run ends with such a window; where hosts and
// switches take turns (sim/event_windows.c), with one of the hosts.
enum alb_cluster_order {
    ALB_CLUSTER_BY_TIME,         // event by event
    ALB_CLUSTER_BY_HOST,         // where all links have a delay (100 ns) and none has credit
    ALB_CLUSTER_WINDOWS_BY_TIME, // by time, with the result of ALB_CLUSTER_BY_HOST
};

struct alb_cluster_config {
    uint64_t seed;
    enum alb_cluster_order order;
    // Of every host: alb_engine_config_transport and then whatever is to be otherwise (loss, congestion, path, credit,
    // their parameters, limits). memory, seed and stats are the cluster's to fill in.
    struct alb_engine_config engine;
    // May change the engine's configuration of one host. NULL: all are alike.
    void (*host_config)(void *context, uint32_t host, struct alb_engine_config *engine);
    struct alb_switch_config switches; // all alike
    struct alb_rnic_config rnic;       // of every host
    alb_sim_time host_latency;         // what a packet spends in a host before the wire, and after it
    // What comes within so long after a packet is handed to the engine together with it, as by a driver that polls: a
    // large cluster runs faster so. 0: each packet at once.
    alb_sim_time host_poll;
    uint32_t ahead_bytes;       // the engine is asked for more while less waits for the host's port
    uint32_t batch;             // bursts that it is asked for at a time, ALB_SIM_BATCH_MAX at most
    uint32_t mtu_bytes;         // path MTU of connections, payload of a segment of rc
    uint32_t payload_max_bytes; // UDP payload that the links carry: csa's packets fill it
    // True: hosts have memory_bytes of memory each, which messages are sent from and come to, packets carry all bytes,
    // sealed and checked. False: lengths travel, bytes do not.
    bool has_real_bytes;
    uint64_t memory_bytes;
    uint32_t receives;      // posted at every host at all times, for SEND and WRITE_IMM
    uint32_t receive_bytes; // with real bytes: of each; they take the last receives * receive_bytes of the memory
    // May say another number of one host. NULL: all have as many.
    uint32_t (*host_receives)(void *context, uint32_t host);
    void (*on_complete)(void *context, const struct alb_cluster_completion *completion, alb_sim_time now);
    // Asked while hosts are made, when none are made and each time their number is a power of two. False: the cluster
    // is too large (ENOMEM). NULL: it never is.
    bool (*has_room)(void *context, uint32_t hosts);
    void *context;
    // May be NULL: what the headroom of a switch's ports takes, where its buffer is not larger (EINVAL).
    uint64_t *headroom_bytes;
};

// The transport's defaults for a data centre: one packet a burst, limits for 512 KiB a host. EINVAL: no such transport.
int alb_cluster_config_default(struct alb_cluster_config *config, const char *transport);

// ---- life -----------------------------------------------------------------------------------------------------------

// The topology is copied. EINVAL: what alb_engine_create says of the engine's configuration, or one that contradicts
// itself (a buffer smaller than the headroom of its ports, memory smaller than what the receives take); ENOMEM.
int alb_cluster_create(const struct alb_cluster_config *config, const struct alb_topology *topology,
                       struct alb_cluster **cluster);
void alb_cluster_destroy(struct alb_cluster *cluster);

enum alb_cluster_end {
    ALB_CLUSTER_IDLE,    // nothing is left to happen
    ALB_CLUSTER_UNTIL,   // that time has come, and all that is due then has happened
    ALB_CLUSTER_EVENTS,  // so many events have happened, or some more to the end of their window
    ALB_CLUSTER_STOPPED, // alb_cluster_stop was called
};

// Lets time pass until then (ALB_SIM_NEVER: no limit), or for so many events (UINT64_MAX: no limit).
enum alb_cluster_end alb_cluster_run(struct alb_cluster *cluster, alb_sim_time until, uint64_t events_max);
// From a callback: the run ends after this event, or its window.
void alb_cluster_stop(struct alb_cluster *cluster);

alb_sim_time alb_cluster_now(const struct alb_cluster *cluster);
// For the caller's own events, which belong to no node: with windows they are not scheduled by what a host does.
struct alb_sim_queue *alb_cluster_queue(struct alb_cluster *cluster);
// An event on behalf of a host.
void alb_cluster_schedule(struct alb_cluster *cluster, uint32_t host, struct alb_sim_event *event, alb_sim_time at);
const struct alb_topology *alb_cluster_topology(const struct alb_cluster *cluster);
// The smallest time that so many bytes of payload need from host to host, in packets of so much payload and overhead
// (of the wire: with UDP, IP and frame), stored and forwarded at every switch, on the shortest ways of the idle network
// as built, which packets share as they like: as many at a time as each hop has cables. Where some ways are faster each
// packet has the fastest one, but together they have no more than all cables of a hop carry. What slowdowns are
// measured against. 0: there is no way.
alb_sim_time alb_cluster_ideal_time(const struct alb_cluster *cluster, uint32_t from, uint32_t to, uint64_t bytes,
                                    uint32_t payload_bytes, uint32_t overhead_bytes);

// ---- channels -------------------------------------------------------------------------------------------------------

struct alb_connection {
    uint32_t host[2];      // side 0 and side 1
    enum alb_qp_type type; // RC or UC
    uint8_t traffic_class; // DSCP; ECN is set to ECT(0)
    uint8_t timeout;       // of alb_qp_attr: 4.096 us * 2^timeout; 0: for ever
    uint8_t retry_cnt;
    uint32_t send_depth;       // messages posted to a side at a time
    uint32_t partial_messages; // UC over csa: of partial completion, so many are known each way; 0: none
    uint64_t user[2];          // of the caller, each side
};

// RC, timeout 14 (67 ms), retry_cnt 7, send_depth 16.
void alb_connection_default(struct alb_connection *connection, uint32_t from, uint32_t to);

// Two queue pairs, ready to send both ways without a packet. ENOMEM: a limit of an engine; EINVAL: no such host,
// one with itself, or no send_depth.
int alb_cluster_connect(struct alb_cluster *cluster, const struct alb_connection *connection,
                        struct alb_channel **channel);
// Ends it, whatever is under way: nothing of it completes any more. Not from on_complete of this very channel.
void alb_cluster_disconnect(struct alb_cluster *cluster, struct alb_channel *channel);
// What it was made from.
const struct alb_connection *alb_channel_connection(const struct alb_channel *channel);
struct alb_qp *alb_channel_qp(const struct alb_channel *channel, uint32_t side);

enum alb_message_op {
    ALB_MESSAGE_WRITE,     // the peer hears nothing
    ALB_MESSAGE_WRITE_IMM, // the peer has a completion
    ALB_MESSAGE_SEND,      // likewise
    ALB_MESSAGE_READ,      // from the peer; RC only
};

// The request that is posted for it.
enum alb_wr_opcode alb_message_opcode(enum alb_message_op op);

struct alb_message {
    enum alb_message_op op;
    uint64_t bytes; // up to ALB_MAX_MESSAGE; 0 is possible
    uint64_t user;
    uint32_t imm;
    uint32_t partial; // a WRITE of partial completion with that number (engine/partial.h); 0: an ordinary one
    bool is_resend;   // of that message only what the peer has not said to hold
    // With real bytes: where it lies in the poster's memory and, but for SEND, in the peer's. Else not looked at.
    uint64_t local_offset, remote_offset;
};

// Posts a message at one side of a channel; the host's engine runs within the same moment. ENOMEM: send_depth are
// under way; EINVAL: too long, not within the memory, or the channel has failed.
int alb_cluster_post(struct alb_cluster *cluster, struct alb_channel *channel, uint32_t side,
                     const struct alb_message *message);
// alb_qp_partial_ask for that side.
int alb_cluster_partial_ask(struct alb_cluster *cluster, struct alb_channel *channel, uint32_t side, uint32_t number);
// alb_qp_expect for that side.
int alb_cluster_expect(struct alb_cluster *cluster, struct alb_channel *channel, uint32_t side,
                       const struct alb_expectation *expectation);
// memory_bytes of that host; NULL without real bytes.
uint8_t *alb_cluster_memory(struct alb_cluster *cluster, uint32_t host);

// ---- faults ---------------------------------------------------------------------------------------------------------

enum alb_cluster_fault_kind {
    ALB_FAULT_LOSS,    // value: chance in parts per billion, of each packet
    ALB_FAULT_CORRUPT, // likewise; a packet is dropped where its check fails
    ALB_FAULT_RATE,    // value: bits per second from now on; 0: as built
    ALB_FAULT_DELAY,   // value: picoseconds that the cable takes from now on
    ALB_FAULT_DEATH,   // loses what it carries and what it is given; value: 0, or picoseconds after which switches
                       // that are next to it and those behind stop to route over it
    ALB_FAULT_REPAIR,  // as built: alive, its rate and delay, no loss; routed over again
    ALB_FAULT_PAUSE,   // the far end pauses it permanently (a storm of pause frames)
    ALB_FAULT_RESUME,
    ALB_FAULT_KINDS,
};

struct alb_cluster_fault {
    alb_sim_time at;
    uint32_t cable; // of the topology
    bool ways[2];   // which of its links: a to b, b to a
    enum alb_cluster_fault_kind kind;
    uint64_t value;
    bool ends; // what the kind has changed is as built again, and nothing else; value means nothing
};

// Happens at that time, or at once if that has passed. What waits for the link when this is called, where nothing but a
// fault could hold it up (sim/link.h), leaves as if there were none. With windows not from what a host does. EINVAL: no
// such cable, or a value out of range; with windows a delay that is shorter than one is.
int alb_cluster_fault(struct alb_cluster *cluster, const struct alb_cluster_fault *fault);
// The shortest delay that a fault may give a link: what hosts are simulated ahead of each other.
alb_sim_time alb_cluster_delay_min(const struct alb_cluster *cluster);
// "loss", "corrupt", "rate", "delay", "death", "repair", "pause", "resume".
const char *alb_cluster_fault_name(enum alb_cluster_fault_kind kind);

// ---- counters -------------------------------------------------------------------------------------------------------

// Of one link, since the beginning.
struct alb_cluster_link_stats {
    uint64_t packets; // that went on to the wire, or wait for it where nothing can hold them up
    uint64_t bytes;   // that have left
    uint64_t lost;    // by fault or death
    uint64_t dropped; // for want of buffer
    uint64_t marked, trimmed, corrupted;
    uint64_t pauses;       // times it was paused
    alb_sim_time paused;   // how long it could not send for pause or want of credit, though it had something to send
    uint64_t queued_bytes; // waiting now
    uint64_t queued_bytes_peak;
};

struct alb_cluster_switch_stats {
    uint64_t buffered_bytes, buffered_bytes_peak; // shared buffer in use; the most of it
    uint64_t headroom_bytes_peak;
    uint64_t lost; // for want of a way, where cables are dead
    uint64_t dropped, trimmed, marked;
    uint64_t pauses_sent;
};

struct alb_cluster_totals {
    uint64_t packet_hops;                    // packets of all links
    uint64_t packets_sent, packets_received; // by hosts
    uint64_t dropped, lost, trimmed, marked, pauses;
    uint64_t cache_hits, cache_misses; // of RNICs' caches
    uint64_t events;
    uint64_t packets_under_way;
    uint64_t engine_bytes; // memory of all engines now
    uint64_t bytes;        // of the whole cluster, engines included
};

// Link of cable c: 2c + way. link_count is twice cable_count of the topology.
void alb_cluster_link_stats(const struct alb_cluster *cluster, uint32_t link, struct alb_cluster_link_stats *stats);
// Bytes that have left by it so far: cheap, for a heat map.
uint64_t alb_cluster_link_bytes(const struct alb_cluster *cluster, uint32_t link);
// node: of the topology, a switch.
void alb_cluster_switch_stats(const struct alb_cluster *cluster, uint32_t node, struct alb_cluster_switch_stats *stats);
// The engine's own counters (retransmitted_pkts, duplicate_request: what came again, ...).
const struct alb_device_stats *alb_cluster_host_stats(const struct alb_cluster *cluster, uint32_t host);
void alb_cluster_totals(const struct alb_cluster *cluster, struct alb_cluster_totals *totals);
// Of every packet that a host sent or received, with the time.
uint64_t alb_cluster_trace_hash(const struct alb_cluster *cluster);
// From now on what one host sends and receives goes into a capture, and its engine's trace into a file, as JSON lines;
// either may be NULL. There is a trace if host_config has given that engine trace_records. Nothing happens otherwise
// for being watched.
void alb_cluster_watch(struct alb_cluster *cluster, uint32_t host, struct alb_sim_capture *capture, FILE *trace);
