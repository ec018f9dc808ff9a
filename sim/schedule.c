// SPDX-License-Identifier: BSD-2-Clause
#include "sim/schedule.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- growth ---------------------------------------------------------------------------------------------------------

static void *grown(void *array, uint32_t count, uint32_t *capacity, size_t bytes)
{
    if (count < *capacity)
        return array;
    *capacity = *capacity ? 2 * *capacity : 64;
    array = realloc(array, *capacity * bytes);
    alb_assert(array);
    return array;
}

void alb_schedule_init(struct alb_schedule *schedule, uint32_t rank_count)
{
    *schedule = (struct alb_schedule){.rank_count = rank_count};
}

void alb_schedule_fini(struct alb_schedule *schedule)
{
    free(schedule->tasks);
    free(schedule->edges);
    free(schedule->works);
    free(schedule->first_edge);
    *schedule = (struct alb_schedule){0};
}

struct alb_work *alb_schedule_begin(struct alb_schedule *schedule, const char *name)
{
    alb_assert(schedule->work_count < UINT16_MAX);
    schedule->works = realloc(schedule->works, (schedule->work_count + 1) * sizeof(*schedule->works));
    alb_assert(schedule->works);
    struct alb_work *work = &schedule->works[schedule->work_count++];
    *work = (struct alb_work){.first_task = schedule->task_count,
                              .rank_count = schedule->rank_count,
                              .timeout = 14,
                              .retries = 7,
                              .queue_pairs = 1};
    snprintf(work->name, sizeof(work->name), "%s", name);
    return work;
}

static uint32_t add(struct alb_schedule *schedule, const struct alb_task *task)
{
    alb_assert(schedule->work_count > 0 && task->rank < schedule->rank_count);
    schedule->tasks = grown(schedule->tasks, schedule->task_count, &schedule->task_capacity, sizeof(*schedule->tasks));
    struct alb_task *own = &schedule->tasks[schedule->task_count];
    *own = *task;
    own->work = (uint16_t)(schedule->work_count - 1);
    own->matched = ALB_TASK_NONE;
    schedule->works[own->work].task_count++;
    return schedule->task_count++;
}

uint32_t alb_schedule_send(struct alb_schedule *schedule, uint32_t rank, uint32_t to, uint64_t bytes, uint32_t tag,
                           alb_sim_time at)
{
    return add(schedule, &(struct alb_task){
                             .kind = ALB_TASK_SEND, .rank = rank, .peer = to, .bytes = bytes, .tag = tag, .at = at});
}

uint32_t alb_schedule_recv(struct alb_schedule *schedule, uint32_t rank, uint32_t from, uint64_t bytes, uint32_t tag)
{
    return add(schedule,
               &(struct alb_task){.kind = ALB_TASK_RECV, .rank = rank, .peer = from, .bytes = bytes, .tag = tag});
}

uint32_t alb_schedule_calc(struct alb_schedule *schedule, uint32_t rank, alb_sim_time span, uint32_t processor)
{
    return add(schedule,
               &(struct alb_task){.kind = ALB_TASK_CALC, .rank = rank, .peer = rank, .tag = processor, .at = span});
}

void alb_schedule_require(struct alb_schedule *schedule, uint32_t task, uint32_t other, bool at_start)
{
    alb_assert(task < schedule->task_count && other < schedule->task_count);
    schedule->edges = grown(schedule->edges, schedule->edge_count, &schedule->edge_capacity, sizeof(*schedule->edges));
    schedule->edges[schedule->edge_count++] = (struct alb_task_edge){.from = other, .to = task, .at_start = at_start};
}

void alb_schedule_append(struct alb_schedule *schedule, const struct alb_schedule *other, const uint32_t *ranks)
{
    uint32_t first = schedule->task_count;
    for (uint32_t w = 0; w < other->work_count; w++) {
        struct alb_work *work = alb_schedule_begin(schedule, other->works[w].name);
        *work = other->works[w];
        work->first_task = schedule->task_count;
        work->task_count = 0;
        for (uint32_t i = 0; i < other->works[w].task_count; i++) {
            struct alb_task task = other->tasks[other->works[w].first_task + i];
            task.rank = ranks[task.rank];
            if (task.peer != ALB_TASK_ANY)
                task.peer = ranks[task.peer];
            task.waits = 0;
            add(schedule, &task);
        }
    }
    for (uint32_t e = 0; e < other->edge_count; e++) {
        const struct alb_task_edge *edge = &other->edges[e];
        alb_schedule_require(schedule, first + edge->to, first + edge->from, edge->at_start);
    }
}

// ---- dependencies ---------------------------------------------------------------------------------------------------

// Orders the edges by the task that they come from, keeping the order of those of one task.
static void sort_edges(struct alb_schedule *schedule)
{
    uint32_t *first = calloc(schedule->task_count + 2u, sizeof(*first));
    struct alb_task_edge *sorted = malloc((schedule->edge_count + 1u) * sizeof(*sorted));
    alb_assert(first && sorted);
    for (uint32_t i = 0; i < schedule->edge_count; i++)
        first[schedule->edges[i].from + 2]++;
    for (uint32_t i = 2; i < schedule->task_count + 2; i++)
        first[i] += first[i - 1];
    for (uint32_t i = 0; i < schedule->edge_count; i++) {
        sorted[first[schedule->edges[i].from + 1]++] = schedule->edges[i];
        schedule->tasks[schedule->edges[i].to].waits++;
    }
    free(schedule->edges);
    schedule->edges = sorted;
    schedule->edge_capacity = schedule->edge_count + 1;
    schedule->first_edge = first;
}

// ---- sends and receipts ---------------------------------------------------------------------------------------------

// A task and what must agree for a match, in order.
struct half {
    uint32_t work, from, to, tag, task;
};

static int compare_halves(const void *left, const void *right)
{
    const struct half *a = left, *b = right;
    const uint32_t keys[][2] = {
        {a->work, b->work}, {a->from, b->from}, {a->to, b->to}, {a->tag, b->tag}, {a->task, b->task}};
    for (size_t i = 0; i < ALB_COUNT(keys); i++)
        if (keys[i][0] != keys[i][1])
            return keys[i][0] < keys[i][1] ? -1 : 1;
    return 0;
}

static bool has_wildcard(const struct alb_schedule *schedule, const struct alb_work *work)
{
    for (uint32_t i = work->first_task; i < work->first_task + work->task_count; i++) {
        const struct alb_task *task = &schedule->tasks[i];
        if (task->kind == ALB_TASK_RECV && (task->peer == ALB_TASK_ANY || task->tag == ALB_TASK_ANY))
            return true;
    }
    return false;
}

// Whoever it is from, each message is one receipt's of its rank. The first task to, or of, a rank for which the numbers
// differ, of those that are too many; or ALB_TASK_NONE.
static uint32_t find_surplus(const struct alb_schedule *schedule, const struct alb_work *work)
{
    int64_t *missing = calloc(schedule->rank_count + 1u, sizeof(*missing)); // receipts, by rank
    uint32_t end = work->first_task + work->task_count, surplus = ALB_TASK_NONE;
    alb_assert(missing);
    for (uint32_t i = work->first_task; i < end; i++) {
        const struct alb_task *task = &schedule->tasks[i];
        if (task->kind == ALB_TASK_SEND && task->tag != ALB_TASK_UNHEARD)
            missing[task->peer]++;
        else if (task->kind == ALB_TASK_RECV)
            missing[task->rank]--;
    }
    for (uint32_t i = work->first_task; i < end && surplus == ALB_TASK_NONE; i++) {
        const struct alb_task *task = &schedule->tasks[i];
        bool is_surplus = (task->kind == ALB_TASK_SEND && task->tag != ALB_TASK_UNHEARD && missing[task->peer] > 0) ||
                          (task->kind == ALB_TASK_RECV && missing[task->rank] < 0);
        surplus = is_surplus ? i : ALB_TASK_NONE;
    }
    free(missing);
    return surplus;
}

// Of works whose sends and receipts find each other while they run.
static bool count_wild(const struct alb_schedule *schedule, const char *file, struct alb_complaint *complaint)
{
    for (uint32_t w = 0; w < schedule->work_count; w++) {
        const struct alb_work *work = &schedule->works[w];
        uint32_t surplus = has_wildcard(schedule, work) ? find_surplus(schedule, work) : ALB_TASK_NONE;
        if (surplus == ALB_TASK_NONE)
            continue;
        const struct alb_task *task = &schedule->tasks[surplus];
        bool sends = task->kind == ALB_TASK_SEND;
        return alb_complain(complaint, file, task->line,
                            "rank %" PRIu32 " has %s receipts than are sent to it; expected as many sends as receipts",
                            sends ? task->peer : task->rank, sends ? "fewer" : "more");
    }
    return true;
}

static uint32_t collect(const struct alb_schedule *schedule, enum alb_task_kind kind, struct half *halves)
{
    uint32_t count = 0;
    for (uint32_t w = 0; w < schedule->work_count; w++) {
        const struct alb_work *work = &schedule->works[w];
        if (has_wildcard(schedule, work))
            continue;
        for (uint32_t i = work->first_task; i < work->first_task + work->task_count; i++) {
            const struct alb_task *task = &schedule->tasks[i];
            if (task->kind != kind || task->tag == ALB_TASK_UNHEARD)
                continue;
            bool sends = kind == ALB_TASK_SEND;
            halves[count++] =
                (struct half){w, sends ? task->rank : task->peer, sends ? task->peer : task->rank, task->tag, i};
        }
    }
    qsort(halves, count, sizeof(*halves), compare_halves);
    return count;
}

static bool complain_unmatched(const struct alb_schedule *schedule, uint32_t index, const char *file,
                               struct alb_complaint *complaint)
{
    const struct alb_task *task = &schedule->tasks[index];
    bool sends = task->kind == ALB_TASK_SEND;
    return alb_complain(complaint, file, task->line,
                        "rank %" PRIu32 " %s rank %" PRIu32 " with tag %" PRIu32 ", which has no such %s; expected as "
                        "many sends as receipts",
                        task->rank, sends ? "sends to" : "receives from", task->peer, task->tag,
                        sends ? "receipt" : "send");
}

static bool complain_of_sizes(const struct alb_schedule *schedule, uint32_t send, const char *file,
                              struct alb_complaint *complaint)
{
    const struct alb_task *task = &schedule->tasks[send], *recv = &schedule->tasks[task->matched];
    return alb_complain(complaint, file, task->line,
                        "rank %" PRIu32 " sends %" PRIu64 " bytes to rank %" PRIu32 ", whose receipt in line %" PRIu32
                        " is of %" PRIu64 "; expected one size for both",
                        task->rank, task->bytes, task->peer, recv->line, recv->bytes);
}

// A send whose receipt is of another size, or ALB_TASK_NONE.
static uint32_t find_uneven(const struct alb_schedule *schedule)
{
    for (uint32_t i = 0; i < schedule->task_count; i++) {
        const struct alb_task *task = &schedule->tasks[i];
        if (task->kind == ALB_TASK_SEND && task->matched != ALB_TASK_NONE &&
            schedule->tasks[task->matched].bytes != task->bytes)
            return i;
    }
    return ALB_TASK_NONE;
}

static bool match(struct alb_schedule *schedule, const char *file, struct alb_complaint *complaint)
{
    size_t bytes = (schedule->task_count + 1u) * sizeof(struct half);
    struct half *sends = malloc(bytes), *recvs = malloc(bytes);
    alb_assert(sends && recvs);
    uint32_t send_count = collect(schedule, ALB_TASK_SEND, sends);
    uint32_t recv_count = collect(schedule, ALB_TASK_RECV, recvs);
    uint32_t unmatched = ALB_TASK_NONE;
    for (uint32_t i = 0; i < ALB_MAX(send_count, recv_count) && unmatched == ALB_TASK_NONE; i++) {
        if (i == send_count || i == recv_count) {
            unmatched = i == send_count ? recvs[i].task : sends[i].task;
            break;
        }
        struct half send = sends[i], recv = recvs[i];
        send.task = recv.task = 0;
        int order = compare_halves(&send, &recv);
        if (order) {
            unmatched = order < 0 ? sends[i].task : recvs[i].task;
            break;
        }
        schedule->tasks[sends[i].task].matched = recvs[i].task;
        schedule->tasks[recvs[i].task].matched = sends[i].task;
    }
    free(sends);
    free(recvs);
    if (unmatched != ALB_TASK_NONE)
        return complain_unmatched(schedule, unmatched, file, complaint);
    uint32_t uneven = find_uneven(schedule);
    return uneven == ALB_TASK_NONE || complain_of_sizes(schedule, uneven, file, complaint);
}

// ---- cycles ---------------------------------------------------------------------------------------------------------

// What can happen: task t begins (2 t) and is done (2 t + 1), which of a receipt is when its message has come, too.
static uint32_t begin_of(uint32_t task)
{
    return 2 * task;
}

static uint32_t end_of(uint32_t task)
{
    return 2 * task + 1;
}

struct moments {
    const struct alb_schedule *schedule;
    uint32_t *waits, *ready; // of each moment what it waits for; those that wait for nothing, in order
    uint32_t ready_count;
};

// Calls handle for each moment that waits for this one.
static void for_each_behind(struct moments *moments, uint32_t moment,
                            void (*handle)(struct moments *, uint32_t behind, uint32_t moment))
{
    const struct alb_schedule *schedule = moments->schedule;
    uint32_t index = moment / 2;
    const struct alb_task *task = &schedule->tasks[index];
    bool begins = moment == begin_of(index);
    for (uint32_t e = schedule->first_edge[index]; e < schedule->first_edge[index + 1]; e++)
        if (schedule->edges[e].at_start == begins)
            handle(moments, begin_of(schedule->edges[e].to), moment);
    if (begins)
        handle(moments, end_of(index), moment);
    if (begins && task->kind == ALB_TASK_SEND && task->matched != ALB_TASK_NONE)
        handle(moments, end_of(task->matched), moment);
}

static void settle(struct moments *moments, uint32_t behind, uint32_t moment)
{
    (void)moment;
    if (--moments->waits[behind] == 0)
        moments->ready[moments->ready_count++] = behind;
}

// ready is done with: it holds of each moment that was not reached one that it waits for.
static void note_before(struct moments *moments, uint32_t behind, uint32_t moment)
{
    moments->ready[behind] = moment;
}

// A task that waits for itself, or ALB_TASK_NONE. Follows edges and messages from what waits for nothing; what is never
// reached is on a cycle or behind one, and going back among it from anywhere ends on one.
static uint32_t find_cycle(const struct alb_schedule *schedule)
{
    uint32_t count = 2 * schedule->task_count, found = ALB_TASK_NONE;
    struct moments moments = {.schedule = schedule,
                              .waits = malloc((count + 1u) * sizeof(uint32_t)),
                              .ready = malloc((count + 1u) * sizeof(uint32_t))};
    alb_assert(moments.waits && moments.ready);
    for (uint32_t i = 0; i < schedule->task_count; i++) {
        const struct alb_task *task = &schedule->tasks[i];
        moments.waits[begin_of(i)] = task->waits;
        moments.waits[end_of(i)] = 1 + (task->kind == ALB_TASK_RECV && task->matched != ALB_TASK_NONE);
        if (task->waits == 0)
            moments.ready[moments.ready_count++] = begin_of(i);
    }
    for (uint32_t done = 0; done < moments.ready_count; done++)
        for_each_behind(&moments, moments.ready[done], settle);
    if (moments.ready_count < count) {
        for (uint32_t moment = 0; moment < count; moment++) {
            if (moments.waits[moment] == 0)
                continue;
            found = moment;
            for_each_behind(&moments, moment, note_before);
        }
        for (uint32_t i = 0; i < count; i++)
            found = moments.ready[found];
        found /= 2;
    }
    free(moments.waits);
    free(moments.ready);
    return found;
}

bool alb_schedule_seal(struct alb_schedule *schedule, const char *file, struct alb_complaint *complaint)
{
    sort_edges(schedule);
    if (!count_wild(schedule, file, complaint) || !match(schedule, file, complaint))
        return false;
    uint32_t found = find_cycle(schedule);
    if (found == ALB_TASK_NONE)
        return true;
    const struct alb_task *task = &schedule->tasks[found];
    static const char *const verbs[] = {"send", "receipt", "calculation"};
    return alb_complain(complaint, file, task->line,
                        "a %s of rank %" PRIu32 " waits for itself in a cycle; expected an order in which all can be "
                        "done",
                        verbs[task->kind], task->rank);
}
