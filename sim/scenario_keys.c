// SPDX-License-Identifier: BSD-2-Clause
#include "sim/scenario_keys.h"

#include "sim/cluster.h"
#include "sim/host.h"
#include "sim/scenario.h"

static const char *const shapes[] = {"star", "leaf-spine", "fat-tree", "two-sites", "file", NULL};
static const char *const stages[] = {"ci", "nightly", NULL};
static const char *const orders[] = {"time", "host", "window", NULL};
static const char *const controls[] = {"none", "pfc", "credits", NULL};
static const char *const spreads[] = {"ecmp", "spray", NULL};
static const char *const transports[] = {"rc", "csa", NULL};
static const char *const kinds[] = {"permutation", "incast",         "all-to-all",       "poisson",
                                    "pairs",       "goal",           "all-reduce-ring",  "all-reduce-tree",
                                    "all-gather",  "reduce-scatter", "all-to-all-steps", NULL};
static const char *const ops[] = {"write", "send", "read", NULL};
static const char *const ways[] = {"both", "up", "down", NULL};
static const char *const faults[] = {"loss", "corrupt", "rate", "delay", "death", "repair", "pause", "resume", NULL};

#define AT(type, member) offsetof(struct type, member)

static const struct alb_field scenario_fields[] = {
    {"title", ALB_FIELD_TEXT, AT(alb_scenario, title), .text = "what it shows, in a line"},
    {"source", ALB_FIELD_TEXT, AT(alb_scenario, source), .text = "the work that found or claims it"},
    {"expected", ALB_FIELD_TEXT, AT(alb_scenario, expected), .text = "the result, in words"},
    {"stage", ALB_FIELD_CHOICE, AT(alb_scenario, stage), .choices = stages,
     .text = "when `make scenarios` runs it (ci)"},
    {"seed", ALB_FIELD_BIG_COUNT, AT(alb_scenario, seed), .text = "of all that is drawn (1)"},
    {"end", ALB_FIELD_TIME, AT(alb_scenario, end), 1,
     .text = "simulated time at which the run ends, done or not (none)"},
    {"interval", ALB_FIELD_TIME, AT(alb_scenario, interval), 1,
     .text = "between two columns of the heat map, doubled as often as there would be more than 128 (1us)"},
    {"order", ALB_FIELD_CHOICE, AT(alb_scenario, order), .choices = orders,
     .text =
         "of events: time; host, within what the shortest delay allows; window, for the same result by time (time)"},
};

static const struct alb_field network_fields[] = {
    {"topology", ALB_FIELD_CHOICE, AT(alb_topology_spec, shape), .choices = shapes, .text = "its shape"},
    {"hosts", ALB_FIELD_COUNT, AT(alb_topology_spec, hosts), 1, ALB_SCENARIO_HOSTS_MAX,
     .text = "star, two-sites: in all; leaf-spine: of each leaf; a switch has 65536 at most"},
    {"leaves", ALB_FIELD_COUNT, AT(alb_topology_spec, leaves), 1, 65536, .text = "of a leaf-spine"},
    {"spines", ALB_FIELD_COUNT, AT(alb_topology_spec, spines), 1, 65536, .text = "of a leaf-spine"},
    {"k", ALB_FIELD_COUNT, AT(alb_topology_spec, k), 2, 128,
     .text = "ports of a switch of a fat-tree, which has k^3/4 hosts"},
    {"oversubscription", ALB_FIELD_COUNT, AT(alb_topology_spec, oversubscription), 1, 64,
     .text = "of a fat-tree's edges"},
    {"long_cables", ALB_FIELD_COUNT, AT(alb_topology_spec, long_cables), 1, 4096, .text = "between two sites"},
    {"rate", ALB_FIELD_RATE, AT(alb_topology_spec, host_bits_per_s), 1, 100000000000000, .text = "of hosts' links"},
    {"core_rate", ALB_FIELD_RATE, AT(alb_topology_spec, core_bits_per_s), 1, 100000000000000,
     .text = "of links between switches"},
    {"long_rate", ALB_FIELD_RATE, AT(alb_topology_spec, long_bits_per_s), 1, 100000000000000,
     .text = "of links between sites"},
    {"delay", ALB_FIELD_TIME, AT(alb_topology_spec, host_delay), .max = 10000000000,
     .text = "of hosts' links, one way"},
    {"core_delay", ALB_FIELD_TIME, AT(alb_topology_spec, core_delay), .max = 10000000000,
     .text = "of links between switches"},
    {"long_delay", ALB_FIELD_TIME, AT(alb_topology_spec, long_delay), .max = 10000000000,
     .text = "of links between sites"},
};

static const struct alb_field network_more[] = {
    {"file", ALB_FIELD_TEXT, AT(alb_scenario, network_file), .text = "of topology = file, beside the scenario"},
};

static const struct alb_field switch_fields[] = {
    {"buffer", ALB_FIELD_BYTES, AT(alb_switch_config, buffer_bytes), .max = 1ull << 40,
     .text = "shared by a switch's ports; 0: no limit"},
    {"alpha", ALB_FIELD_SIXTEENTHS, AT(alb_switch_config, alpha_16ths), .max = 16 * 1024,
     .text = "a port may hold so many times what is free; 0: no such limit"},
    {"port_buffer", ALB_FIELD_BYTES, AT(alb_switch_config, port_bytes_max), .max = 1ull << 40,
     .text = "of one port, with the packet on its wire unless there is buffer or trim; 0: no such limit"},
    {"mark_min", ALB_FIELD_BYTES, AT(alb_switch_config, mark_min_bytes), .max = 1ull << 40,
     .text = "queue below which no packet is marked (ECN)"},
    {"mark_max", ALB_FIELD_BYTES, AT(alb_switch_config, mark_max_bytes), .max = 1ull << 40,
     .text = "queue above which every packet is; 0: no marks"},
    {"mark_chance", ALB_FIELD_MILLIONTHS, AT(alb_switch_config, mark_per_million), .max = 1000000,
     .text = "just below mark_max"},
    {"flow_control", ALB_FIELD_CHOICE, AT(alb_switch_config, flow_control), .choices = controls,
     .text = "what keeps buffers from overflowing"},
    {"pfc_xoff", ALB_FIELD_BYTES, AT(alb_switch_config, pfc_xoff_bytes), .max = 1ull << 40,
     .text = "pause above it; 0: by alpha"},
    {"pfc_xon_gap", ALB_FIELD_BYTES, AT(alb_switch_config, pfc_xon_gap_bytes), .max = 1ull << 40,
     .text = "resume so far below"},
    {"pfc_headroom", ALB_FIELD_BYTES, AT(alb_switch_config, pfc_headroom_bytes), .max = 1ull << 40,
     .text = "beside the shared buffer, for each port; 0: as its link needs"},
    {"credit_buffer", ALB_FIELD_BYTES, AT(alb_switch_config, credit_bytes), .max = 1ull << 40,
     .text = "of each port, with credits; 0: as its link needs"},
    {"trim", ALB_FIELD_FLAG, AT(alb_switch_config, trims), .text = "a packet without room goes on as a header"},
    {"trim_buffer", ALB_FIELD_BYTES, AT(alb_switch_config, trim_bytes_max), .max = 1ull << 40,
     .text = "of trimmed packets at one port"},
    {"spread", ALB_FIELD_CHOICE, AT(alb_switch_config, spread), .choices = spreads,
     .text = "over equal ports: by flow or by packet"},
    {"latency", ALB_FIELD_TIME, AT(alb_switch_config, latency), .max = 1000000000,
     .text = "of a packet through the switch"},
};

#define ENGINE(member) offsetof(struct alb_engine_config, member)

static const struct alb_field engine_fields[] = {
    {"loss", ALB_FIELD_TEXT, ENGINE(loss), .text = "policy (docs/POLICIES.md)"},
    {"congestion", ALB_FIELD_TEXT, ENGINE(congestion), .text = "policy"},
    {"path", ALB_FIELD_TEXT, ENGINE(path), .text = "policy"},
    {"credit", ALB_FIELD_TEXT, ENGINE(credit), .text = "policy"},
    {"paths", ALB_FIELD_COUNT, ENGINE(path_max), 1, ALB_PATH_NUMBERS, .text = "to a peer (UDP source ports)"},
    {"window_start", ALB_FIELD_BYTES_32, ENGINE(window_start_bytes), .text = "in flight to a peer, to begin with"},
    {"window_min", ALB_FIELD_BYTES_32, ENGINE(window_min_bytes), .text = "at least"},
    {"window_max", ALB_FIELD_BYTES_32, ENGINE(window_max_bytes), .text = "at most"},
    {"rtt_target", ALB_FIELD_NS, ENGINE(rtt_target_ns), 1, 100000000000,
     .text = "of congestion = window: a round trip up to it shows no congestion; above an idle one"},
    {"receive_budget", ALB_FIELD_BYTES_32, ENGINE(receive_budget_bytes), .text = "all peers together; 0: none"},
    {"grant_min", ALB_FIELD_BYTES_32, ENGINE(grant_min_bytes), .text = "each of them"},
    {"credit_interval", ALB_FIELD_NS, ENGINE(credit_interval_ns), ALB_NS_PER_US, ALB_CREDIT_INTERVAL_MAX_NS,
     .text = "how long a peer is watched"},
    {"credit_aging", ALB_FIELD_BYTE_RATE, ENGINE(credit_aging_bytes_per_s), 1000, ALB_CREDIT_AGING_MAX,
     .text = "of credit = shortest: what a message gains on others by waiting"},
    {"ack_timeout_min", ALB_FIELD_NS, ENGINE(ack_timeout_min_ns), .text = "floor of the acknowledgement timeout"},
    {"window_segments", ALB_FIELD_COUNT, ENGINE(csa_window_segments), .text = "of csa: of a stream, a power of two"},
    {"margin_min", ALB_FIELD_NS_32, ENGINE(csa_margin_min_ns), .text = "of csa: lateness that is not missed"},
    {"probe_min", ALB_FIELD_NS_32, ENGINE(csa_probe_min_ns), .text = "of csa: silence that is acted upon"},
    {"pool", ALB_FIELD_BYTES_32, ENGINE(csa_pool_bytes), .text = "of csa: state in flight, a power of two"},
    {"early", ALB_FIELD_BYTES_32, ENGINE(csa_early_bytes_max), .text = "of csa: segments that wait for their turn"},
    {"queue_pair_max", ALB_FIELD_COUNT, ENGINE(qp_max), 17, 65536, .text = "of a host, 16 of them the engine's own"},
    {"peer_max", ALB_FIELD_COUNT, ENGINE(peer_max), 1, ALB_PEERS_MAX, .text = "of a host"},
    {"dcqcn_rate_max", ALB_FIELD_BYTE_RATE, ENGINE(dcqcn.rate_max_bytes_per_s), 0, ALB_DCQCN_RATE_MAX_BYTES_PER_S,
     .text = "of congestion = dcqcn, at most, from the first mark on; 0b/s: the rate of the host's link"},
    {"dcqcn_rate_min", ALB_FIELD_BYTE_RATE, ENGINE(dcqcn.rate_min_bytes_per_s), 1, ALB_DCQCN_RATE_MAX_BYTES_PER_S,
     .text = "at least"},
    {"dcqcn_additive", ALB_FIELD_BYTE_RATE, ENGINE(dcqcn.additive_bytes_per_s), 0, ALB_DCQCN_RATE_MAX_BYTES_PER_S,
     .text = "R_AI"},
    {"dcqcn_hyper", ALB_FIELD_BYTE_RATE, ENGINE(dcqcn.hyper_bytes_per_s), 0, ALB_DCQCN_RATE_MAX_BYTES_PER_S,
     .text = "R_HAI"},
    {"dcqcn_gain_log2", ALB_FIELD_COUNT, ENGINE(dcqcn.gain_log2), 1, 16, .text = "g is 2 to the minus this"},
    {"dcqcn_recovery", ALB_FIELD_COUNT, ENGINE(dcqcn.recovery_steps), .max = UINT16_MAX - 1, .text = "F"},
    {"dcqcn_counter", ALB_FIELD_BYTES_32, ENGINE(dcqcn.counter_bytes), .min = 1, .text = "B"},
    {"dcqcn_increase", ALB_FIELD_NS, ENGINE(dcqcn.increase_ns), .min = ALB_NS_PER_US, .text = "T"},
    {"dcqcn_alpha", ALB_FIELD_NS, ENGINE(dcqcn.alpha_ns), .min = ALB_NS_PER_US, .text = "K"},
    {"dcqcn_cnp", ALB_FIELD_NS, ENGINE(dcqcn.cnp_ns), .text = "N, between two CNPs"},
    {"dcqcn_burst", ALB_FIELD_NS, ENGINE(dcqcn.burst_ns), .max = ALB_DCQCN_BURST_MAX_NS,
     .text = "what a late sender may catch up with"},
};

static const struct alb_field host_fields[] = {
    {"transport", ALB_FIELD_CHOICE, AT(alb_scenario_host, transport), .choices = transports,
     .text = "csa, or rc as in RoCEv2"},
    {"cache_entries", ALB_FIELD_COUNT, AT(alb_scenario_host, cache_entries),
     .text = "queue pairs in a NIC's cache, with rc; 0: no model"},
    {"miss_penalty", ALB_FIELD_TIME, AT(alb_scenario_host, miss_penalty), .max = 1000000000,
     .text = "of a queue pair that is not in it"},
    {"latency", ALB_FIELD_TIME, AT(alb_scenario_host, latency), .max = 1000000000,
     .text = "of a packet in a host, each way"},
    {"ahead", ALB_FIELD_BYTES_32, AT(alb_scenario_host, ahead_bytes), .min = 1,
     .text = "that may wait for the host's own link"},
    {"batch", ALB_FIELD_COUNT, AT(alb_scenario_host, batch), 1, ALB_SIM_BATCH_MAX,
     .text = "bursts that the engine is asked for at a time"},
    {"mtu", ALB_FIELD_COUNT, AT(alb_scenario_host, mtu_bytes), 256, 4096, .text = "path MTU of queue pairs, with rc"},
    {"payload", ALB_FIELD_COUNT, AT(alb_scenario_host, payload_bytes), 512, 65504,
     .text = "UDP payload that links carry"},
    {"receives", ALB_FIELD_COUNT, AT(alb_scenario_host, receives), .max = 1 << 20,
     .text = "posted at a host, for sends and what it is told of; 0: for all that may be under way to it"},
    {"real_bytes", ALB_FIELD_FLAG, AT(alb_scenario_host, has_real_bytes),
     .text = "packets carry every byte, sealed and checked"},
    {"memory", ALB_FIELD_BYTES, AT(alb_scenario_host, memory_bytes), .min = 4096, .max = 1ull << 32,
     .text = "of each host, with real bytes"},
};

static const struct alb_field workload_fields[] = {
    {"kind", ALB_FIELD_CHOICE, AT(alb_scenario_workload, kind), .choices = kinds, .text = "what is sent to whom"},
    {"hosts", ALB_FIELD_TEXT, AT(alb_scenario_workload, hosts),
     .text = "the hosts that take part: all, 3, 0..7, 0..62/2, with commas (all)"},
    {"to", ALB_FIELD_TEXT, AT(alb_scenario_workload, to), .text = "incast, pairs: receivers"},
    {"size", ALB_FIELD_BYTES, AT(alb_scenario_workload, bytes), 0, 1ull << 42,
     .text = "of a message, or of a collective's data"},
    {"sizes", ALB_FIELD_TEXT, AT(alb_scenario_workload, sizes),
     .text = "data file with a distribution, instead of size"},
    {"load", ALB_FIELD_BILLIONTHS, AT(alb_scenario_workload, load_per_billion), 1, 1000000000,
     .text = "poisson: of each host's link (of h0's, if they differ), headers not counted"},
    {"flows", ALB_FIELD_COUNT, AT(alb_scenario_workload, flows), 1, 10000000,
     .text = "poisson: how many, instead of end"},
    {"start", ALB_FIELD_TIME, AT(alb_scenario_workload, start), .text = "nothing is sent before (0)"},
    {"end", ALB_FIELD_TIME, AT(alb_scenario_workload, end), .text = "poisson: no flow begins after"},
    {"gap", ALB_FIELD_TIME, AT(alb_scenario_workload, gap), .text = "each further sender begins so much later (0)"},
    {"messages", ALB_FIELD_COUNT, AT(alb_scenario_workload, messages), 1, 10000000,
     .text = "of each pair, one after the other (1)"},
    {"depth", ALB_FIELD_COUNT, AT(alb_scenario_workload, depth), 1, 1000, .text = "so many of them at a time (1)"},
    {"queue_pairs", ALB_FIELD_COUNT, AT(alb_scenario_workload, queue_pairs), 1, 1024,
     .text = "of each pair, which messages take in turn (1)"},
    {"rounds", ALB_FIELD_COUNT, AT(alb_scenario_workload, rounds), 1, 100000, .text = "of a collective (1)"},
    {"pieces", ALB_FIELD_COUNT, AT(alb_scenario_workload, pieces), 1, 65536,
     .text = "of all-reduce-tree's pipeline (8)"},
    {"think", ALB_FIELD_TIME, AT(alb_scenario_workload, think),
     .text = "calculation of a collective's rank between receipt and send (0)"},
    {"op", ALB_FIELD_CHOICE, AT(alb_scenario_workload, op), .choices = ops, .text = "RDMA operation (write)"},
    {"unreliable", ALB_FIELD_FLAG, AT(alb_scenario_workload, is_unreliable), .text = "by UC queue pairs (no)"},
    {"partial", ALB_FIELD_TIME, AT(alb_scenario_workload, partial), .max = 1000000000000,
     .text = "UC over csa, writes: of partial completion, what is missing so long after is sent again; 0: not (0)"},
    {"timeout", ALB_FIELD_OCTET, AT(alb_scenario_workload, timeout), 0, 31,
     .text = "of queue pairs: 4.096 us * 2^timeout, 0: for ever (14)"},
    {"retries", ALB_FIELD_OCTET, AT(alb_scenario_workload, retries), 0, 7, .text = "of queue pairs (7)"},
    {"file", ALB_FIELD_TEXT, AT(alb_scenario_workload, file), .text = "goal: the trace, beside the scenario"},
};

static const struct alb_field fault_fields[] = {
    {"at", ALB_FIELD_TIME, AT(alb_scenario_fault, at), .text = "when (0)"},
    {"until", ALB_FIELD_TIME, AT(alb_scenario_fault, until), 1, .text = "repaired then (never)"},
    {"cables", ALB_FIELD_TEXT, AT(alb_scenario_fault, cables),
     .text = "which: tier:1, tier:2:8 (the first 8), p0a*-c*, h3-*"},
    {"way", ALB_FIELD_CHOICE, AT(alb_scenario_fault, way), .choices = ways, .text = "which of a cable's links (both)"},
    {"kind", ALB_FIELD_CHOICE, AT(alb_scenario_fault, kind), .choices = faults, .text = "what happens"},
    {"value", ALB_FIELD_TEXT, AT(alb_scenario_fault, value),
     .text = "loss, corrupt: chance; rate: of the link; delay; death: until routes know"},
};

#define TABLE(table) .fields = (table), .count = ALB_COUNT(table)

const struct alb_scenario_section alb_scenario_sections[ALB_SECTIONS] = {
    [ALB_SECTION_SCENARIO] = {"scenario", "the run as a whole", TABLE(scenario_fields)},
    [ALB_SECTION_NETWORK] = {"network", "hosts, switches and links", TABLE(network_fields), network_more,
                             ALB_COUNT(network_more)},
    [ALB_SECTION_SWITCH] = {"switch", "every switch", TABLE(switch_fields)},
    [ALB_SECTION_HOST] = {"host",
                          "every host; [host LIST] changes some, but only keys from \"loss\" to \"dcqcn_burst\"",
                          TABLE(engine_fields), host_fields, ALB_COUNT(host_fields)},
    [ALB_SECTION_WORKLOAD] = {"workload", "what runs; [workload NAME], as many as there are", TABLE(workload_fields)},
    [ALB_SECTION_FAULT] = {"fault", "what goes wrong; [fault NAME]", TABLE(fault_fields)},
    [ALB_SECTION_EXPECT] = {"expect", "what must come out: metric = low..high, <=high or >=low", .fields = NULL},
    [ALB_SECTION_VARIANT] = {"variant", "[variant NAME]: keys with their sections, otherwise than above",
                             .fields = NULL},
};
