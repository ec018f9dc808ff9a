// SPDX-License-Identifier: BSD-2-Clause
// Random transactions and what stands in their way, passed to the model and posted; and the answers of the target's
// program.
#include "sim/search_txn.h"

#include <errno.h>
#include <stdlib.h>

// ---- room -----------------------------------------------------------------------------------------------------------

static uint64_t *take_scratch(struct alb_search_txn_side *side, uint32_t words)
{
    if (side->scratch_used + words > SEARCH_TXN_SCRATCH_WORDS)
        return NULL;
    side->scratch_used += words;
    return &side->scratch[side->scratch_used - words];
}

static struct alb_search_txn_work *new_work(struct alb_search_txn *search, enum alb_search_txn_kind kind, uint32_t side,
                                            uint32_t index)
{
    if (search->work_count == search->work_capacity) {
        search->work_capacity = search->work_capacity ? 2 * search->work_capacity : 256;
        search->works = realloc(search->works, search->work_capacity * sizeof(*search->works));
        alb_assert(search->works);
    }
    struct alb_search_txn_work *work = &search->works[search->work_count++];
    *work = (struct alb_search_txn_work){
        .kind = kind,
        .side = side,
        .index = index,
        .life = search->model.memory[1 - side].life,
        .is_open = true,
    };
    return work;
}

static bool can_post(const struct alb_search_txn *search, uint32_t side, uint32_t index)
{
    enum alb_qp_state state = alb_qp_current_state(alb_search_txn_qp(search, side, index));
    return state == ALB_QPS_RTS || state == ALB_QPS_SQD;
}

static void hand_over(struct alb_search_txn *search, uint32_t side, uint32_t index)
{
    alb_qp_send_commit(alb_search_txn_qp(search, side, index));
    alb_engine_bell_ring(alb_search_txn_qp(search, side, index));
    alb_sim_host_poke(search->base.sides[side].host);
}

// ---- transactions ---------------------------------------------------------------------------------------------------

static bool overlaps(const struct alb_model_txn_op *op, struct alb_model_txn_span span)
{
    for (uint32_t i = 0; i < op->span_count; i++)
        if (span.at < op->spans[i].at + op->spans[i].count && op->spans[i].at < span.at + span.count)
            return true;
    return false;
}

// Half of all that is done is done in a corner, so that it meets.
static uint32_t draw_place(struct alb_search *base, uint32_t count)
{
    const uint32_t corner = 24;
    bool is_crowded = count <= corner && alb_search_percent(base, 50);
    return alb_search_below(base, (is_crowded ? corner : SEARCH_TXN_WORDS) - count + 1);
}

static void draw_spans(struct alb_search *base, struct alb_model_txn_op *op)
{
    uint32_t wanted = 1 + alb_search_below(base, ALB_MODEL_TXN_SPANS_MAX);
    uint32_t longest = alb_search_percent(base, 20) ? SEARCH_TXN_WORDS / 2 : 12;
    for (uint32_t tries = 0; op->span_count < wanted && tries < 2 * wanted; tries++) {
        struct alb_model_txn_span span = {.count = 1 + alb_search_below(base, longest)};
        span.at = draw_place(base, span.count);
        if (!overlaps(op, span))
            op->spans[op->span_count++] = span;
    }
}

// Words as they are now, or were: an optimistic program's.
static void draw_compares(struct alb_search_txn *search, struct alb_model_txn_op *op)
{
    struct alb_search *base = &search->base;
    for (uint32_t n = alb_search_below(base, ALB_MODEL_TXN_COMPARES_MAX + 1); n > 0; n--) {
        uint32_t at = draw_place(base, 1);
        uint64_t seen = search->model.memory[op->target].seen[at];
        op->compares[op->compare_count++] =
            (struct alb_model_txn_compare){at, alb_search_percent(base, 90) ? seen : alb_model_txn_word(0, at)};
    }
}

// The bytes of one span, of one or two pieces.
static bool fill_write(struct alb_search_txn *search, uint32_t side, uint32_t number, struct alb_model_txn_span span,
                       struct alb_txn_write *write, struct alb_sge sge[2])
{
    struct alb_search_txn_side *own = &search->sides[side], *peer = &search->sides[1 - side];
    uint64_t *words = take_scratch(own, span.count);
    if (!words)
        return false;
    for (uint32_t i = 0; i < span.count; i++)
        words[i] = alb_model_txn_word(number, span.at + i);
    uint32_t cut = search->base.sge_max > 1 ? alb_search_below(&search->base, span.count) : 0;
    sge[0] = (struct alb_sge){(uintptr_t)words, cut * 8, alb_region_key(own->scratch_mr)};
    sge[1] = (struct alb_sge){(uintptr_t)(words + cut), (span.count - cut) * 8, alb_region_key(own->scratch_mr)};
    *write = (struct alb_txn_write){
        .remote_addr = peer->iova + span.at * 8,
        .rkey = alb_region_key(peer->mr),
        .sge = cut ? sge : sge + 1,
        .sge_count = cut ? 2 : 1,
    };
    return true;
}

static int stage(struct alb_search_txn *search, struct alb_search_txn_work *work, const struct alb_model_txn_op *op,
                 struct alb_txn_wr *wr)
{
    struct alb_sge sge[ALB_MODEL_TXN_SPANS_MAX][2];
    struct alb_txn_write writes[ALB_MODEL_TXN_SPANS_MAX];
    struct alb_txn_compare compares[ALB_MODEL_TXN_COMPARES_MAX];
    const struct alb_search_txn_side *peer = &search->sides[1 - work->side];
    for (uint32_t i = 0; i < op->span_count; i++)
        if (!fill_write(search, work->side, work->op, op->spans[i], &writes[i], sge[i]))
            return ENOMEM;
    for (uint32_t i = 0; i < op->compare_count; i++)
        compares[i] = (struct alb_txn_compare){
            .remote_addr = peer->iova + op->compares[i].at * 8,
            .rkey = alb_region_key(peer->mr),
            .expected = op->compares[i].expected,
            .mask = UINT64_MAX,
        };
    wr->writes = writes;
    wr->write_count = op->span_count;
    wr->compares = compares;
    wr->compare_count = op->compare_count;
    return alb_qp_txn_stage(alb_search_txn_qp(search, work->side, work->index), wr, &work->number);
}

static void post_transaction(struct alb_search_txn *search, uint32_t side, uint32_t index)
{
    struct alb_search *base = &search->base;
    struct alb_model_txn_op op = {.target = 1 - side};
    op.is_in_place = search->has_in_place && alb_search_percent(base, 30);
    bool holds = alb_search_percent(base, 25);
    op.may_commit = !holds;
    draw_spans(base, &op);
    draw_compares(search, &op);
    struct alb_search_txn_work *work = new_work(search, SEARCH_TXN_TRANSACTION, side, index);
    work->holds = holds;
    work->has_decided = !holds;
    work->level = alb_search_percent(base, 80) ? ALB_LEVEL_COMMITTED : ALB_LEVEL_REFLECTED;
    work->op = alb_model_txn_post(&search->model, &op);
    bool is_fenced = alb_search_percent(base, 10);
    work->notifies = alb_search_percent(base, 20);
    struct alb_txn_wr wr = {
        .wr_id = search->work_count - 1,
        .flags = ALB_SEND_SIGNALED | (is_fenced ? ALB_SEND_FENCE : 0),
        .level = work->level,
        .in_place = op.is_in_place,
        .notify = work->notifies,
        .hold = holds,
        .imm_data = work->op,
        .lease_ns = alb_search_percent(base, 50) ? 0 : 1000u << alb_search_below(base, 14),
        .deadline_ns = alb_search_percent(base, 80) ? 0 : 1000u << alb_search_below(base, 12),
        .submitted = alb_sim_host_now(base->sides[side].host),
    };
    if (stage(search, work, &op, &wr) != 0) {
        search->work_count--;
        search->model.count--;
        return;
    }
    struct alb_txn_status status;
    alb_assert(alb_qp_txn_query(alb_search_txn_qp(search, side, index), work->number, &status) == 0);
    work->token = status.token;
    work->is_followed = true;
    search->result->transactions++;
    hand_over(search, side, index);
}

bool alb_search_txn_write_agreed(struct alb_search_txn *search, uint32_t side, uint32_t index, uint32_t at)
{
    struct alb_model_txn_op op = {.target = 1 - side, .may_commit = true, .spans = {{at, 1}}, .span_count = 1};
    if (!can_post(search, side, index))
        return false;
    struct alb_search_txn_work *work = new_work(search, SEARCH_TXN_TRANSACTION, side, index);
    work->has_decided = true;
    work->level = ALB_LEVEL_COMMITTED;
    work->op = alb_model_txn_post(&search->model, &op);
    struct alb_txn_wr wr = {
        .wr_id = search->work_count - 1,
        .flags = ALB_SEND_SIGNALED,
        .level = work->level,
        .lease_ns = ALB_NS_PER_S, // as long as may be: the usual one may end while COMMIT waits for a slow link
    };
    if (stage(search, work, &op, &wr) != 0) {
        search->work_count--;
        search->model.count--;
        return false;
    }
    search->result->transactions++;
    hand_over(search, side, index);
    return true;
}

// ---- plain operations on the same memory ----------------------------------------------------------------------------

bool alb_search_txn_write(struct alb_search_txn *search, uint32_t side, uint32_t index, uint32_t at)
{
    struct alb_search_txn_side *own = &search->sides[side], *peer = &search->sides[1 - side];
    struct alb_model_txn_op op = {
        .target = 1 - side, .is_plain = true, .may_commit = true, .spans = {{at, 1}}, .span_count = 1};
    uint64_t *word = take_scratch(own, 1);
    if (!word || !can_post(search, side, index))
        return false;
    struct alb_search_txn_work *work = new_work(search, SEARCH_TXN_WRITE, side, index);
    work->op = alb_model_txn_post(&search->model, &op);
    *word = alb_model_txn_word(work->op, at);
    struct alb_sge sge = {(uintptr_t)word, 8, alb_region_key(own->scratch_mr)};
    struct alb_send_wr wr = {
        .wr_id = search->work_count - 1,
        .opcode = ALB_WR_RDMA_WRITE,
        .flags = ALB_SEND_SIGNALED,
        .sge = &sge,
        .sge_count = 1,
        .remote_addr = peer->iova + at * 8,
        .rkey = alb_region_key(peer->mr),
        .level = alb_search_percent(&search->base, 40) ? ALB_LEVEL_VISIBLE : ALB_LEVEL_DELIVERED,
    };
    if (alb_qp_send_stage(alb_search_txn_qp(search, side, index), &wr) != 0) {
        search->work_count--;
        search->model.count--;
        return false;
    }
    search->result->plain++;
    hand_over(search, side, index);
    return true;
}

static void post_read(struct alb_search_txn *search, uint32_t side, uint32_t index)
{
    struct alb_search_txn_side *own = &search->sides[side], *peer = &search->sides[1 - side];
    struct alb_model_txn_span span = {.count = 1 + alb_search_below(&search->base, 100)};
    span.at = alb_search_below(&search->base, SEARCH_TXN_WORDS - span.count + 1);
    uint64_t *words = take_scratch(own, span.count);
    if (!words)
        return;
    struct alb_search_txn_work *work = new_work(search, SEARCH_TXN_READ, side, index);
    work->span = span;
    work->read = words;
    work->version = search->model.memory[1 - side].version;
    struct alb_sge sge = {(uintptr_t)words, span.count * 8, alb_region_key(own->scratch_mr)};
    struct alb_send_wr wr = {
        .wr_id = search->work_count - 1,
        .opcode = ALB_WR_RDMA_READ,
        .flags = ALB_SEND_SIGNALED,
        .sge = &sge,
        .sge_count = 1,
        .remote_addr = peer->iova + span.at * 8,
        .rkey = alb_region_key(peer->mr),
    };
    if (alb_qp_send_stage(alb_search_txn_qp(search, side, index), &wr) != 0) {
        search->work_count--;
        return;
    }
    search->result->reads++;
    hand_over(search, side, index);
}

void alb_search_txn_post(struct alb_search_txn *search, uint32_t side, uint32_t index)
{
    uint32_t choice = alb_search_below(&search->base, 100);
    if (!can_post(search, side, index))
        return;
    if (choice < 60 || !search->has_plain)
        post_transaction(search, side, index);
    else if (choice < 80)
        alb_search_txn_write(search, side, index, draw_place(&search->base, 1));
    else
        post_read(search, side, index);
}

// ---- questions and decisions ----------------------------------------------------------------------------------------

// One at random of those that the side's program may ask about.
static struct alb_search_txn_work *pick(struct alb_search_txn *search, uint32_t side, bool only_doubts)
{
    uint32_t start = search->work_count ? alb_search_below(&search->base, search->work_count) : 0;
    for (uint32_t i = 0; i < search->work_count; i++) {
        struct alb_search_txn_work *work = &search->works[(start + i) % search->work_count];
        if (work->kind == SEARCH_TXN_TRANSACTION && work->side == side && (work->is_in_doubt || !only_doubts))
            return work;
    }
    return NULL;
}

// A decision for COMMIT that has lost its queue pair may be sent again.
static enum alb_txn_decision draw_decision(struct alb_search_txn *search, const struct alb_search_txn_work *about)
{
    uint32_t choice = alb_search_below(&search->base, 10);
    if (about->is_in_doubt && about->holds && about->has_decided && choice < 4)
        return ALB_TXN_COMMIT;
    return choice < 7 ? ALB_TXN_ASK : ALB_TXN_ABORT;
}

bool alb_search_txn_ask(struct alb_search_txn *search, uint32_t side, uint32_t index, bool only_doubts)
{
    struct alb_search_txn_work *about = pick(search, side, only_doubts);
    if (!about || !can_post(search, side, index))
        return false;
    uint32_t of = (uint32_t)(about - search->works);
    enum alb_txn_decision decision = draw_decision(search, about);
    struct alb_txn_token token = about->token;
    struct alb_search_txn_work *work = new_work(search, SEARCH_TXN_QUESTION, side, index);
    work->about = of;
    work->token = token;
    work->op = search->works[of].op;
    if (alb_qp_txn_reconcile_stage(alb_search_txn_qp(search, side, index), search->work_count - 1, ALB_SEND_SIGNALED,
                                   &token, decision) != 0) {
        search->work_count--;
        return false;
    }
    search->result->questions++;
    hand_over(search, side, index);
    return true;
}

void alb_search_txn_decide(struct alb_search_txn *search, bool all)
{
    for (uint32_t i = 0; i < search->work_count && !alb_search_txn_has_failed(search); i++) {
        struct alb_search_txn_work *work = &search->works[i];
        if (work->kind != SEARCH_TXN_TRANSACTION || !work->is_followed || !work->holds || work->has_decided ||
            (!all && !alb_search_percent(&search->base, 20)))
            continue;
        struct alb_sim_host *host = search->base.sides[work->side].host;
        struct alb_qp *qp = alb_search_txn_qp(search, work->side, work->index);
        bool commits = alb_search_percent(&search->base, 75);
        // Its program writes down what it decides before it says so.
        bool before = search->model.ops[work->op].may_commit;
        search->model.ops[work->op].may_commit = commits;
        if (alb_qp_txn_decide(qp, work->number, commits, alb_sim_host_now(host)) == 0) {
            work->has_decided = commits;
            work->holds = commits;
        } else {
            search->model.ops[work->op].may_commit = before;
        }
        alb_sim_host_poke(host);
    }
}

// ---- the target's program -------------------------------------------------------------------------------------------

void alb_search_txn_answer(struct alb_search_txn *search, uint32_t side, bool all)
{
    struct alb_search_txn_side *own = &search->sides[side];
    struct alb_sim_host *host = search->base.sides[side].host;
    struct alb_proposal proposal;
    while (own->answer_count < SEARCH_TXN_ANSWERS && alb_engine_proposal(host->engine, &proposal))
        own->answers[own->answer_count++] = proposal.id;
    for (uint32_t i = own->answer_count; i > 0; i--) {
        if (!all && alb_search_percent(&search->base, 30))
            continue; // thinks about it
        struct alb_txn_id id = own->answers[i - 1];
        own->answers[i - 1] = own->answers[--own->answer_count];
        (void)alb_engine_proposal_answer(host->engine, &id, alb_search_percent(&search->base, 85),
                                         alb_sim_host_now(host)); // ENOENT: it has ended meanwhile
    }
    alb_sim_host_poke(host);
}

void alb_search_txn_receive(struct alb_search_txn *search, uint32_t side, uint32_t index)
{
    bool bell = false;
    struct alb_qp *qp = alb_search_txn_qp(search, side, index);
    if (alb_qp_current_state(qp) == ALB_QPS_RESET)
        return;
    while (alb_qp_recv_post(qp, 0, NULL, 0, &bell) == 0)
        ;
    if (bell)
        alb_engine_bell_ring(qp);
    alb_sim_host_poke(search->base.sides[side].host);
}
