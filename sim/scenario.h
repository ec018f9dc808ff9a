// SPDX-License-Identifier: BSD-2-Clause
// Scenarios: a network, what its hosts and switches do, what runs on it, what goes wrong, and what must come out. Read
// from a file of sections (sim/document.h); docs/SCENARIOS.md explains every key.
#pragma once

#include "engine/engine.h"
#include "sim/collective.h"
#include "sim/document.h"
#include "sim/scenario_field.h"
#include "sim/switch_config.h"
#include "sim/topology.h"

enum {
    ALB_SCENARIO_WORKLOADS_MAX = 32,
    ALB_SCENARIO_FAULTS_MAX = 256,
    ALB_SCENARIO_HOSTS_MAX = 1 << 20,
    ALB_SCENARIO_PATH_MAX = 4096,
    ALB_SCENARIO_POOL_MIN = 4 << 10, // of a host with one peer and one path
};

enum alb_workload_kind {
    ALB_WORKLOAD_PERMUTATION,
    ALB_WORKLOAD_INCAST,
    ALB_WORKLOAD_ALL_TO_ALL,
    ALB_WORKLOAD_POISSON,
    ALB_WORKLOAD_PAIRS,
    ALB_WORKLOAD_GOAL,
    ALB_WORKLOAD_COLLECTIVE, // and those behind it: enum alb_collective
};

// Texts lie in the document.
struct alb_scenario_workload {
    const char *name;
    const struct alb_document_entry *where; // its section
    enum alb_workload_kind kind;
    const char *hosts, *to; // lists
    uint64_t bytes;
    const char *sizes, *file; // data files
    uint32_t load_per_billion;
    uint32_t flows, messages, depth, queue_pairs, rounds, pieces;
    alb_sim_time start, end, gap, think;
    enum alb_work_op op;
    bool is_unreliable;   // UC
    alb_sim_time partial; // UC: what is missing so long after a message has left is sent again; 0: it is not
    uint8_t timeout, retries;
};

struct alb_scenario_fault {
    const struct alb_document_entry *where;
    alb_sim_time at;
    alb_sim_time until; // repaired then; 0: never
    const char *cables; // a pattern (alb_topology_select)
    uint32_t way;       // 0: both, 1: up, from a to b, 2: down
    uint32_t kind;      // enum alb_cluster_fault_kind
    const char *value;
};

// What a host is beside its engine.
struct alb_scenario_host {
    uint32_t transport; // 0: rc, 1: csa
    uint32_t cache_entries;
    uint32_t receives; // posted at a host; 0: for all that may be under way to it
    alb_sim_time miss_penalty;
    alb_sim_time latency;
    uint32_t ahead_bytes, batch, mtu_bytes, payload_bytes;
    bool has_real_bytes;
    uint64_t memory_bytes;
};

// A data file that is not on disk.
struct alb_scenario_data {
    char name[ALB_DOCUMENT_WORD_MAX];
    char *text;
};

struct alb_scenario {
    struct alb_document document;      // its own
    struct alb_document_entry nowhere; // of a section that is not there: the file alone
    const char *directory;             // that data files are looked for in; the caller's
    const char *title, *source, *expected;
    uint32_t stage; // 0: ci, 1: nightly
    uint64_t seed;
    uint32_t order;        // enum alb_cluster_order
    alb_sim_time end;      // the run ends then at the latest; ALB_SIM_NEVER
    alb_sim_time interval; // of the heat map, to begin with; 0: 1 us
    struct alb_topology_spec network;
    const char *network_file;
    struct alb_switch_config switches;
    struct alb_scenario_host host;
    struct alb_engine_config engine; // of every host, but for what [host LIST] changes
    struct alb_scenario_workload workloads[ALB_SCENARIO_WORKLOADS_MAX];
    struct alb_scenario_fault faults[ALB_SCENARIO_FAULTS_MAX];
    uint32_t workload_count, fault_count;
    uint32_t traced_host; // whose engine keeps a trace (alb_cluster_watch), if has_trace; the caller's to say
    bool has_trace;
    const struct alb_scenario_data *data; // data files by name, before those of the directory; the caller's to say
    uint32_t data_count;
    uint64_t memory_bytes; // that there are, the caller's to say; 0: unknown
    // The caller's to say: whether memory will do for all of these (hosts, connections) when so many have been made,
    // none or a power of two, else why not. NULL: nobody looks.
    bool (*has_room)(const char *what, uint32_t made, uint32_t all, char *why, size_t size);
};

// Makes a scenario of a document, of which it keeps a copy: with the lines of [variant NAME] put in their places if
// variant is not NULL, but for keys that --set has given. False: the complaint says where and what was expected. Then
// there is nothing to free.
bool alb_scenario_read(struct alb_scenario *scenario, const struct alb_document *document, const char *variant,
                       const char *directory, struct alb_complaint *complaint);
void alb_scenario_fini(struct alb_scenario *scenario);

// Sections are some that there are, and are called so that they can be spoken of; variants change only what a run looks
// at.
bool alb_scenario_check_sections(const struct alb_document *document, struct alb_complaint *complaint);

// The name of variant number index of a document, or NULL.
const char *alb_scenario_variant(const struct alb_document *document, uint32_t index);

// What [host LIST] sections say of one host, put into its engine's configuration.
void alb_scenario_change_host(const struct alb_scenario *scenario, uint32_t host, struct alb_engine_config *engine);

// Whether there are policies that are called so, with such parameters (scenario_policy.c).
bool alb_scenario_policies_agree(const struct alb_scenario *scenario, const char *name,
                                 const struct alb_engine_config *engine, struct alb_complaint *complaint);
// Whether values of the section, or of [host LIST] with that name ("": [host]), agree with each other
// (scenario_agree.c).
bool alb_scenario_engine_agrees(const struct alb_scenario *scenario, const char *name,
                                const struct alb_engine_config *engine, struct alb_complaint *complaint);
bool alb_scenario_host_agrees(const struct alb_scenario *scenario, struct alb_complaint *complaint);
// Whether those agree that several [host LIST] sections together say of each host.
bool alb_scenario_host_lists_agree(const struct alb_scenario *scenario, uint32_t host_count,
                                   struct alb_complaint *complaint);
// After the hosts have been read: their packets must pass.
bool alb_scenario_switches_agree(const struct alb_scenario *scenario, struct alb_complaint *complaint);

// Whether what a scenario of that document says has an effect (scenario_effect.c): all of it if there are no variants,
// what the variant itself gives if there are, and nothing is asked where the document has a setting of --set.
bool alb_scenario_keys_have_effect(const struct alb_scenario *scenario, const struct alb_document *document,
                                   const char *variant, struct alb_complaint *complaint);

// Where that key of the section stands; if it is not there, where the section begins. Its line is 0 if neither is
// there.
const struct alb_document_entry *alb_scenario_place(const struct alb_scenario *scenario, const char *section,
                                                    const char *name, const char *key);

// The hosts of a list: "all", "3", "0..7", "0..62/2" (each second), with commas between. Each number is below
// host_count. Returns how many, in order, and allocates *hosts; 0: complained.
uint32_t alb_scenario_hosts(const char *list, uint32_t host_count, const struct alb_document_entry *where,
                            uint32_t **hosts, struct alb_complaint *complaint);

// Whether such a list, one that alb_scenario_hosts takes, has that host.
bool alb_scenario_lists(const char *list, uint32_t host);

// Where a data file is.
const char *alb_scenario_path(const struct alb_scenario *scenario, const char *name, char path[ALB_SCENARIO_PATH_MAX]);

// The whole of a data file, as a string of *length bytes that the caller frees; NULL: complained.
char *alb_scenario_file(const struct alb_scenario *scenario, const char *name, const struct alb_document_entry *where,
                        size_t *length, struct alb_complaint *complaint);

// Writes every section with its keys and their meaning.
void alb_scenario_print_keys(FILE *to);
