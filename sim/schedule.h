// SPDX-License-Identifier: BSD-2-Clause
// What is to be done on a cluster, and what waits for what: sends, receipts and calculations of ranks, and edges
// between those of one rank. Workloads, collectives and traces (sim/workload.h, sim/collective.h, sim/goal.h) all write
// schedules; sim/run.h carries them out.
//
// A send is matched with a receipt as in MPI: of the same two ranks and the same tag, in order. A send whose tag is
// ALB_TASK_UNHEARD has no receipt.
#pragma once

#include "sim/complaint.h"
#include "sim/time.h"

#define ALB_TASK_ANY     UINT32_MAX // of a receipt: from any rank, with any tag
#define ALB_TASK_UNHEARD (UINT32_MAX - 1)
#define ALB_TASK_NONE    UINT32_MAX // no task

#define ALB_SCHEDULE_TIME_MAX \
    ((alb_sim_time)INT64_MAX) // 106 days: what is planned, so that what follows has a time, too

enum alb_task_kind {
    ALB_TASK_SEND,
    ALB_TASK_RECV,
    ALB_TASK_CALC,
};

struct alb_task {
    enum alb_task_kind kind : 8;
    uint16_t work;    // part of the schedule that it belongs to (alb_schedule_begin)
    uint32_t rank;    // that does it
    uint32_t peer;    // the other one, of SEND and RECV
    uint32_t tag;     // CALC: the processor of its rank
    uint32_t line;    // in a trace; 0: none
    uint32_t waits;   // edges to it that are not settled
    uint32_t matched; // the receipt of a send, the send of a receipt, once sealed; ALB_TASK_NONE: found while it runs
    uint32_t step;    // of a collective: its receipts of one step are announced together
    uint64_t bytes;
    alb_sim_time at; // it does not begin before; CALC: and lasts for so long from when it begins
};

struct alb_task_edge {
    uint32_t from, to;
    bool at_start; // to waits for from to begin, not to be done
};

enum alb_work_op {
    ALB_WORK_WRITE,
    ALB_WORK_SEND,
    ALB_WORK_READ, // the sender's bytes come from the peer
};

// A part of a schedule, reported apart.
struct alb_work {
    char name[64];
    enum alb_work_op op;
    bool is_unreliable;       // by UC
    alb_sim_time partial;     // UC: what is missing so long after a message has left is sent again; 0: it is not
    uint8_t timeout, retries; // of queue pairs
    uint32_t queue_pairs;     // of each pair of ranks, which messages take in turn
    uint32_t depth;           // messages of such a pair that the work has under way at a time
    uint32_t first_task, task_count;
    uint32_t rank_count; // that take part
    uint32_t steps;      // of a collective, which expects each; 0: not one
    bool is_collective;  // its time is from its first task to the last receipt or calculation
};

struct alb_schedule {
    struct alb_task *tasks;
    struct alb_task_edge *edges;
    struct alb_work *works;
    uint32_t task_count, task_capacity;
    uint32_t edge_count, edge_capacity;
    uint32_t work_count;
    uint32_t rank_count;
    uint32_t *first_edge; // once sealed: edges of task t are first_edge[t] up to first_edge[t + 1]
};

void alb_schedule_init(struct alb_schedule *schedule, uint32_t rank_count);
void alb_schedule_fini(struct alb_schedule *schedule);

// Tasks added from now on belong to it. Up to 65,535 of them. It writes, by one queue pair of RC, timeout 14, 7
// retries, unless its members are changed. Valid until the next one begins.
struct alb_work *alb_schedule_begin(struct alb_schedule *schedule, const char *name);
// Each returns the task's number. bytes may be 0.
uint32_t alb_schedule_send(struct alb_schedule *schedule, uint32_t rank, uint32_t to, uint64_t bytes, uint32_t tag,
                           alb_sim_time at);
uint32_t alb_schedule_recv(struct alb_schedule *schedule, uint32_t rank, uint32_t from, uint64_t bytes, uint32_t tag);
uint32_t alb_schedule_calc(struct alb_schedule *schedule, uint32_t rank, alb_sim_time span, uint32_t processor);
// task waits for the other one, of the same rank, to be done (at_start: to begin).
void alb_schedule_require(struct alb_schedule *schedule, uint32_t task, uint32_t other, bool at_start);

// Adds all works of another one (sealed or not; this one is not): its rank r is ranks[r] here.
void alb_schedule_append(struct alb_schedule *schedule, const struct alb_schedule *other, const uint32_t *ranks);

// Matches sends and receipts, counts what each task waits for, and checks that it can end: every receipt has a send and
// the other way round, of the same size, and nothing waits for itself, through messages either. False: the complaint
// names file and line. Works with receipts from any rank or with any tag are matched while they run, and checked as far
// as that allows.
bool alb_schedule_seal(struct alb_schedule *schedule, const char *file, struct alb_complaint *complaint);
