// SPDX-License-Identifier: BSD-2-Clause
#include "sim/collective.h"

#include <stdlib.h>
#include <string.h>

// What a rank waits for before its next send, and the number of the step that it is in.
struct state {
    struct alb_schedule *schedule;
    const struct alb_collective_config *config;
    uint32_t *held; // by place: the task that brings what is sent next, or ALB_TASK_NONE
    uint32_t step;  // of all that came before
};

// The part of piece i when bytes are divided by n: the first ones take what is left over.
static uint64_t part_of(uint64_t bytes, uint32_t n, uint32_t i)
{
    return bytes / n + (i < bytes % n);
}

static uint32_t rank_at(const struct state *state, uint32_t place)
{
    return state->config->ranks[place % state->config->rank_count];
}

// What must be done before what the receipt brought can go on.
static uint32_t think(struct state *state, uint32_t place, uint32_t receipt)
{
    if (state->config->think == 0)
        return receipt;
    uint32_t calc = alb_schedule_calc(state->schedule, rank_at(state, place), state->config->think, 0);
    alb_schedule_require(state->schedule, calc, receipt, false);
    return calc;
}

static uint32_t send(struct state *state, uint32_t from, uint32_t to, uint64_t bytes, uint32_t step)
{
    uint32_t task =
        alb_schedule_send(state->schedule, rank_at(state, from), rank_at(state, to), bytes, step, state->config->at);
    state->schedule->tasks[task].step = step;
    return task;
}

static uint32_t receive(struct state *state, uint32_t at, uint32_t from, uint64_t bytes, uint32_t step)
{
    uint32_t task = alb_schedule_recv(state->schedule, rank_at(state, at), rank_at(state, from), bytes, step);
    state->schedule->tasks[task].step = step;
    return task;
}

static void require(struct state *state, uint32_t task, uint32_t other)
{
    if (other != ALB_TASK_NONE)
        alb_schedule_require(state->schedule, task, other, false);
}

// ---- ring -----------------------------------------------------------------------------------------------------------

// One step: each place sends on what it got last, to the next. Part numbers go round with the places, so that each
// part travels the whole ring.
static void ring_step(struct state *state, uint32_t shift)
{
    uint32_t n = state->config->rank_count;
    uint32_t *got = malloc(n * sizeof(*got));
    alb_assert(got);
    for (uint32_t place = 0; place < n; place++) {
        uint64_t bytes = part_of(state->config->bytes, n, (place + n - shift % n) % n);
        uint32_t next = (place + 1) % n;
        require(state, send(state, place, next, bytes, state->step), state->held[place]);
        uint32_t receipt = receive(state, next, place, bytes, state->step);
        require(state, receipt, state->held[next]); // it is waited for from then on
        got[next] = think(state, next, receipt);
    }
    memcpy(state->held, got, n * sizeof(*got));
    free(got);
    state->step++;
}

static void ring(struct state *state, uint32_t passes)
{
    for (uint32_t shift = 0; shift < passes * (state->config->rank_count - 1); shift++)
        ring_step(state, shift);
}

// ---- tree -----------------------------------------------------------------------------------------------------------

enum {
    CHILDREN = 2,
};

static uint32_t parent_of(uint32_t place)
{
    return (place - 1) / CHILDREN;
}

// What brings a place its children's data of one piece.
struct arrivals {
    uint32_t tasks[CHILDREN];
    uint32_t count;
};

// Tasks by place: those of the piece before, or ALB_TASK_NONE, until those of this one are added.
struct tree {
    struct arrivals *up;
    uint32_t *down;              // the task that brings what goes on down
    uint32_t *sent_up;           // to its parent
    uint32_t *got_up, *got_down; // receipts of what comes from it at its parent, from its parent there
};

static uint32_t *no_tasks(uint32_t n)
{
    uint32_t *tasks = malloc(n * sizeof(*tasks));
    alb_assert(tasks);
    memset(tasks, 0xff, n * sizeof(*tasks)); // ALB_TASK_NONE
    return tasks;
}

static void require_all(struct state *state, uint32_t task, const struct arrivals *arrivals)
{
    for (uint32_t i = 0; i < arrivals->count; i++)
        require(state, task, arrivals->tasks[i]);
}

static void tree_up(struct state *state, uint64_t bytes, struct tree *tree)
{
    memset(tree->up, 0, state->config->rank_count * sizeof(*tree->up));
    for (uint32_t place = state->config->rank_count - 1; place > 0; place--) {
        uint32_t parent = parent_of(place);
        uint32_t sent = tree->sent_up[place] = send(state, place, parent, bytes, state->step);
        require_all(state, sent, &tree->up[place]);
        require(state, sent, state->held[place]);
        uint32_t receipt = receive(state, parent, place, bytes, state->step);
        require(state, receipt, state->held[parent]);
        require(state, receipt, tree->got_up[place]); // one after the other, so that each is announced
        tree->got_up[place] = receipt;
        tree->up[parent].tasks[tree->up[parent].count++] = think(state, parent, receipt);
    }
    state->step++;
}

// A piece is waited for from when it was sent up, and the one before has come.
static void tree_down(struct state *state, uint64_t bytes, struct tree *tree)
{
    for (uint32_t place = 1; place < state->config->rank_count; place++) {
        uint32_t parent = parent_of(place);
        uint32_t sent = send(state, parent, place, bytes, state->step);
        if (parent == 0)
            require_all(state, sent, &tree->up[0]);
        else
            require(state, sent, tree->down[parent]);
        uint32_t receipt = receive(state, place, parent, bytes, state->step);
        alb_schedule_require(state->schedule, receipt, tree->sent_up[place], true);
        require(state, receipt, tree->got_down[place]);
        tree->got_down[place] = receipt;
        tree->down[place] = think(state, place, receipt);
    }
    state->step++;
}

// Piece by piece, so that the levels of the tree work at the same time. A rank sends a piece up when both children's
// have come, and down when the parent's has.
static void tree(struct state *state)
{
    uint32_t n = state->config->rank_count;
    struct tree tree = {malloc(n * sizeof(*tree.up)), no_tasks(n), no_tasks(n), no_tasks(n), no_tasks(n)};
    alb_assert(tree.up);
    for (uint32_t piece = 0; piece < state->config->pieces; piece++) {
        uint64_t bytes = part_of(state->config->bytes, state->config->pieces, piece);
        tree_up(state, bytes, &tree);
        tree_down(state, bytes, &tree);
    }
    // The round's end at the root, but for the other child's last piece.
    tree.down[0] = tree.up[0].tasks[tree.up[0].count - 1];
    memcpy(state->held, tree.down, n * sizeof(*tree.down));
    free(tree.up);
    free(tree.down);
    free(tree.sent_up);
    free(tree.got_up);
    free(tree.got_down);
}

// ---- all to all -----------------------------------------------------------------------------------------------------

static void all_to_all(struct state *state)
{
    uint32_t n = state->config->rank_count;
    uint32_t *got = malloc(n * sizeof(*got)), *sent = malloc(n * sizeof(*sent));
    alb_assert(got && sent);
    memset(sent, 0xff, n * sizeof(*sent));
    for (uint32_t shift = 1; shift < n; shift++) {
        for (uint32_t place = 0; place < n; place++) {
            uint32_t to = (place + shift) % n;
            uint64_t bytes = part_of(state->config->bytes, n, to);
            uint32_t task = send(state, place, to, bytes, state->step);
            require(state, task, state->held[place]);
            require(state, task, sent[place]);
            uint32_t receipt = receive(state, to, place, bytes, state->step);
            require(state, receipt, state->held[to]);
            got[to] = think(state, to, receipt);
            sent[place] = task;
        }
        memcpy(state->held, got, n * sizeof(*got));
        state->step++;
    }
    free(got);
    free(sent);
}

void alb_collective_add(struct alb_schedule *schedule, const char *name, const struct alb_collective_config *config)
{
    alb_assert(config->rank_count >= 2 && config->pieces >= 1);
    struct state state = {.schedule = schedule, .config = config};
    uint32_t work = schedule->work_count;
    alb_schedule_begin(schedule, name);
    state.held = malloc(config->rank_count * sizeof(*state.held));
    alb_assert(state.held);
    memset(state.held, 0xff, config->rank_count * sizeof(*state.held));
    for (uint32_t round = 0; round < config->rounds; round++) {
        switch (config->kind) {
        case ALB_COLLECTIVE_ALL_REDUCE_RING:
            ring(&state, 2);
            break;
        case ALB_COLLECTIVE_ALL_GATHER:
        case ALB_COLLECTIVE_REDUCE_SCATTER:
            ring(&state, 1);
            break;
        case ALB_COLLECTIVE_ALL_REDUCE_TREE:
            tree(&state);
            break;
        default:
            all_to_all(&state);
        }
    }
    schedule->works[work].steps = state.step;
    schedule->works[work].rank_count = config->rank_count;
    schedule->works[work].is_collective = true;
    free(state.held);
}
