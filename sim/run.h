// SPDX-License-Identifier: BSD-2-Clause
// A run of a scenario: its cluster is built, its schedule carried out, and what happened to each task is kept, with the
// bytes that each link carried over time.
#pragma once

#include "base/list.h"
#include "sim/cluster.h"
#include "sim/scenario.h"
#include "sim/schedule.h"

enum {
    ALB_HEAT_COLUMNS_MAX = 128,
    ALB_HEAT_CELLS_MAX = 4 << 20,
    ALB_RUN_PARTIAL_MESSAGES = 64, // of partial completion, known to a queue pair each way
};

enum alb_run_end {
    ALB_RUN_DONE,   // every task is done, or can never be since its queue pair has failed
    ALB_RUN_STUCK,  // nothing happens any more, and tasks are not done
    ALB_RUN_TIME,   // the scenario's end, or the caller's
    ALB_RUN_EVENTS, // so many events have happened, or some more to the end of their window
};

// Of one task.
struct alb_task_times {
    alb_sim_time begun;   // posted, waited for, or calculated; ALB_SIM_NEVER
    alb_sim_time arrived; // whole at its receiver, if that hears of it
    alb_sim_time done;
};

// Messages of partial completion that a side of a channel has posted, and wants to.
struct alb_run_partial_side {
    struct alb_run_partial *oldest, *newest; // oldest: of those that are neither whole nor given up, or one before
    struct alb_run_partial *waiting;         // what is to be sent again, and found the send queue full
};

// Two hosts and a queue pair between them, which works of either way use.
struct alb_run_channel {
    uint32_t low, high; // hosts; side 0 is low
    uint32_t index;     // among those of this pair
    uint16_t work;
    struct alb_channel *channel;
    uint32_t waiting_first[2], waiting_last[2]; // tasks that the send queue had no room for
};

// What goes over a channel, by side.
struct alb_run_traffic {
    uint32_t messages[2];
    uint32_t heard[2]; // those of them that take a receive of the peer
};

// Limits of one engine that suffice for its queue pairs, and the rate of its host's link.
struct alb_run_needs {
    uint32_t qps, peers, last_peer;
    uint32_t receives; // for all that may be under way to it
    uint64_t bits_per_s;
};

// A part of a host's memory, with real bytes.
struct alb_run_stretch {
    uint64_t at, bytes;
};

// What a channel has of the memory of both its hosts, by side; stretches are counted from at.
struct alb_run_arena {
    uint64_t at[2], bytes;
    struct alb_run_stretch constant[2]; // what is sent, or asked for; and where READs bring it
    struct alb_run_stretch targets[2];  // where the peer's WRITEs go
    struct alb_run_stretch landing[2];  // for the largest SEND that comes
};

// What a rank has still to begin at its time: some of the run's starts.
struct alb_run_start {
    struct alb_sim_event event; // of the next
    struct alb_run *run;
    uint32_t rank, first, end;
};

// Tasks that wait, oldest first, by run->next.
struct alb_run_line {
    uint32_t first, last; // first: ALB_TASK_NONE if there are none
};

// Bytes that left by each link in each interval.
struct alb_heat {
    struct alb_sim_event event;
    alb_sim_time interval; // doubled when columns are used up
    alb_sim_time end;      // of the last column, which may be shorter
    uint32_t columns, columns_max, links;
    uint64_t *bytes;  // of column c and link l: bytes[c * links + l]
    uint64_t *before; // by link, all that had left when it was looked at
    uint64_t *since;  // by link, what left between the last two looks
};

struct alb_run_progress {
    alb_sim_time now, until; // until: when the run ends at the latest; ALB_SIM_NEVER: there is no limit
    uint64_t events;
    uint64_t bytes_done, bytes; // of messages; done: about, those under way included
    uint64_t tasks_done, tasks;
};

struct alb_run_options {
    alb_sim_time until;  // ALB_SIM_NEVER: no limit of the caller's
    uint64_t events_max; // UINT64_MAX: likewise
    bool has_heat;
    uint64_t progress_events; // between two calls of on_progress
    void (*on_progress)(void *context, const struct alb_run_progress *progress);
    void *context;
};

struct alb_run {
    const struct alb_scenario *scenario; // the caller's
    struct alb_topology topology;
    struct alb_schedule schedule;
    struct alb_cluster *cluster;
    struct alb_run_channel *channels;
    uint32_t channel_count;
    struct alb_run_traffic *traffic;
    struct alb_run_needs *needs;  // by host
    uint32_t *channel_of;         // by task; ALB_TASK_NONE
    struct alb_task_times *times; // by task
    uint32_t *next;               // by task: in the line that it waits in
    uint8_t *state;               // by task
    uint32_t *ready;              // tasks to begin, in order
    uint32_t ready_first, ready_count, ready_capacity;
    bool is_draining;
    uint32_t *starts;                  // tasks that wait for nothing but their time: by rank, and in that order
    struct alb_run_start *rank_starts; // by rank
    alb_sim_time *processors;          // by rank and processor: busy until then
    uint32_t processor_count;          // of each rank
    struct alb_run_line *wild;         // by rank: receipts from any rank that wait, oldest first
    struct alb_run_line *unclaimed;    // by rank: messages that came before a task waited for them
    struct alb_list calculations;      // under way, or waiting for their processor
    struct alb_heat heat;
    uint64_t tasks_done, tasks_failed, bytes_done, bytes;
    uint64_t expectations_refused;
    struct alb_run_partial **partials;          // by task; NULL: no work has partial completion
    struct alb_run_partial_side *partial_sides; // by channel and side, likewise
    uint64_t resent;                            // parts of them that were sent again
    struct alb_run_place *places;               // by task, with real bytes
    struct alb_run_arena *arenas;               // by channel, likewise
    struct alb_run_model *models;               // by channel, likewise
    uint64_t memory_used;                       // of a host, likewise: beyond it lie the receives
    uint32_t receive_bytes;                     // with real bytes: of each receive
    char too_large[100];                        // why it is, for memory
    char violation[300];                        // the first broken promise, with real bytes; empty: none
    const char *promise;                        // that was broken: its sentence without names and numbers
    bool is_at_rest;                            // nothing was left to happen when it ended
    alb_sim_time ended_at;                      // when the last task was done
    enum alb_run_end end;
};

// Builds all that the scenario says. False: complained, with file and line; then there is nothing to free.
bool alb_run_init(struct alb_run *run, const struct alb_scenario *scenario, struct alb_complaint *complaint);
void alb_run_fini(struct alb_run *run);
// Whether that would succeed, as far as it can be known without a cluster: which takes memory, and where limits of
// [host] and the headroom of pfc show.
bool alb_run_check(const struct alb_scenario *scenario, struct alb_complaint *complaint);
// Once.
enum alb_run_end alb_run_go(struct alb_run *run, const struct alb_run_options *options);
// How long it took: until its last task was done, or, if some were not or none was, until its clock stood still.
alb_sim_time alb_run_time(const struct alb_run *run);

// A task that was not done when the run ended, or ALB_TASK_NONE.
uint32_t alb_run_first_open(const struct alb_run *run);
// Its queue pair was in error, or what it was to do was refused.
bool alb_run_task_failed(const struct alb_run *run, uint32_t task);
// Of a send: when it has come through, by UC at its receiver; ALB_SIM_NEVER: it has not, so far.
alb_sim_time alb_run_task_end(const struct alb_run *run, uint32_t task);
bool alb_run_task_has_come(const struct alb_run *run, uint32_t task);

// About how many bytes of messages have arrived, also of those that are not whole: by what the hosts have received,
// which has reports and copies in it. As many as there are only when all are done.
uint64_t alb_run_bytes_arrived(const struct alb_run *run);

// Payload of a full packet of that work, and what travels beside it, on the wire.
void alb_run_packet(const struct alb_run *run, const struct alb_work *work, uint32_t *payload_bytes,
                    uint32_t *overhead_bytes);
// The shortest time from a task's beginning to its completion on an idle network. Plain sends: there and back.
alb_sim_time alb_run_ideal(const struct alb_run *run, uint32_t task);

// Of run_bytes.c, with real bytes.
// A place for each message. False: that channel has more than 4 GiB of them.
bool alb_run_bytes_layout(struct alb_run *run, uint32_t *too_large);
void alb_run_bytes_fill(struct alb_run *run);
void alb_run_bytes_place(const struct alb_run *run, uint32_t task, struct alb_message *message);
void alb_run_bytes_check(struct alb_run *run, uint32_t task, uint64_t offset, const char *when);
// A receive has completed, and is about to be posted again: behind the message it is as it was.
void alb_run_bytes_end_receive(struct alb_run *run, const struct alb_cluster_completion *completion);
void alb_run_bytes_fini(struct alb_run *run);
// A promise is broken: the run ends.
void alb_run_violate(struct alb_run *run, const char *format, ...) __attribute__((format(printf, 2, 3)));

// Of run_model.c, with real bytes.
void alb_run_model_begin(struct alb_run *run);
void alb_run_model_fini(struct alb_run *run);
// Before a message is posted to a side of that channel, and after.
void alb_run_model_post(struct alb_run *run, uint32_t channel, uint32_t side, const struct alb_message *message);
void alb_run_model_posted(struct alb_run *run, uint32_t channel, uint32_t side, bool is_posted);
void alb_run_model_complete(struct alb_run *run, const struct alb_cluster_completion *completion);
// Whether memory is as it must be. At rest: and whether all has completed that had to.
void alb_run_model_end(struct alb_run *run, bool is_at_rest);

// Of run_faults.c. Schedules them; without a cluster they are only looked at. False: complained.
bool alb_run_faults(struct alb_run *run, struct alb_complaint *complaint);

// Of run_partial.c.
bool alb_run_partial_init(struct alb_run *run);
void alb_run_partial_fini(struct alb_run *run);
// Gives the message of a task its number, if its work is of partial completion.
void alb_run_partial_describe(struct alb_run *run, uint32_t task, struct alb_message *message);
// Whether the message may be posted: the queue pair keeps all older ones that it has to.
bool alb_run_partial_has_turn(struct alb_run *run, uint32_t task);
// What waited for the send queue is sent again. False: not all of it.
bool alb_run_partial_post_waiting(struct alb_run *run, uint32_t channel, uint32_t side);
// The message, or what was missing of it, has left.
void alb_run_partial_left(struct alb_run *run, uint32_t task, alb_sim_time now);

// Of run_heat.c.
void alb_heat_init(struct alb_run *run, alb_sim_time interval);
void alb_heat_fini(struct alb_run *run);
// What a link carried in a column, as part of its rate.
double alb_heat_load(const struct alb_run *run, uint32_t column, uint32_t link);
// The last column, not whole.
void alb_heat_end(struct alb_run *run);

// Of run_tasks.c.
bool alb_run_tasks_init(struct alb_run *run);
void alb_run_tasks_fini(struct alb_run *run);
void alb_run_lose(struct alb_run *run);
// A task has nothing more to wait for; alb_run_drain begins it.
void alb_run_push_ready(struct alb_run *run, uint32_t task);
void alb_run_drain(struct alb_run *run, alb_sim_time now);
void alb_run_on_complete(void *context, const struct alb_cluster_completion *completion, alb_sim_time now);

// There may be room for those that wait to be posted, of the side that this task's message is posted at.
void alb_run_post_waiting(struct alb_run *run, uint32_t task, alb_sim_time now);
// Whether its message takes a receive where it arrives.
bool alb_run_is_heard(const struct alb_run *run, uint32_t task);
// Posts a message of that task, whose op, immediate and numbers are given. The errno of alb_cluster_post.
int alb_run_post(struct alb_run *run, uint32_t task, struct alb_message *message);

// Of run_starts.c. Finds the tasks that wait for nothing but their time; schedules them. False: no memory.
bool alb_run_starts_init(struct alb_run *run);
void alb_run_starts_fini(struct alb_run *run);
void alb_run_starts_begin(struct alb_run *run);
