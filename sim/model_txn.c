// SPDX-License-Identifier: BSD-2-Clause
#include "sim/model_txn.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- words ----------------------------------------------------------------------------------------------------------

uint64_t alb_model_txn_word(uint32_t number, uint32_t at)
{
    return (uint64_t)number << 32 | at;
}

static uint32_t number_of(uint64_t word)
{
    return (uint32_t)(word >> 32);
}

static bool writes(const struct alb_model_txn_op *op, uint32_t at)
{
    for (uint32_t i = 0; i < op->span_count; i++)
        if (at - op->spans[i].at < op->spans[i].count)
            return true;
    return false;
}

void alb_model_txn_fail(struct alb_model_txn *model, const char *format, ...)
{
    va_list args;
    if (model->failure[0])
        return;
    va_start(args, format);
    vsnprintf(model->failure, sizeof(model->failure), format, args);
    va_end(args);
}

// ---- life -----------------------------------------------------------------------------------------------------------

static void fill(struct alb_model_txn *model, uint32_t side)
{
    struct alb_model_txn_memory *memory = &model->memory[side];
    for (uint32_t at = 0; at < model->word_count; at++) {
        memory->words[at] = memory->seen[at] = alb_model_txn_word(0, at);
        memory->bases[at] = (struct alb_model_txn_base){.version = memory->version, .word = memory->words[at]};
    }
}

void alb_model_txn_init(struct alb_model_txn *model, uint64_t *const words[ALB_MODEL_TXN_SIDES], uint32_t word_count,
                        bool (*is_held)(void *context, uint32_t side, uint32_t at), void *context)
{
    *model = (struct alb_model_txn){.word_count = word_count, .is_held = is_held, .context = context, .count = 1};
    model->capacity = 256;
    model->ops = calloc(model->capacity, sizeof(*model->ops));
    alb_assert(model->ops);
    for (uint32_t side = 0; side < ALB_MODEL_TXN_SIDES; side++) {
        model->memory[side].words = words[side];
        model->memory[side].seen = calloc(word_count, sizeof(uint64_t));
        model->memory[side].concealed = calloc(word_count, sizeof(bool));
        model->memory[side].bases = calloc(word_count, sizeof(struct alb_model_txn_base));
        model->memory[side].covers = calloc(word_count, sizeof(struct alb_model_txn_cover));
        alb_assert(model->memory[side].concealed);
        alb_assert(model->memory[side].seen && model->memory[side].bases && model->memory[side].covers);
        fill(model, side);
    }
}

void alb_model_txn_fini(struct alb_model_txn *model)
{
    for (uint32_t side = 0; side < ALB_MODEL_TXN_SIDES; side++) {
        free(model->memory[side].seen);
        free(model->memory[side].concealed);
        free(model->memory[side].bases);
        free(model->memory[side].covers);
        free(model->memory[side].changes);
    }
    free(model->ops);
}

void alb_model_txn_begin_life(struct alb_model_txn *model, uint32_t side)
{
    struct alb_model_txn_memory *memory = &model->memory[side];
    memory->life++;
    memory->version++;
    memory->change_count = 0;
    memory->is_spoilt = false;
    if (!model->is_durable)
        fill(model, side);
}

uint32_t alb_model_txn_post(struct alb_model_txn *model, const struct alb_model_txn_op *op)
{
    if (model->count == model->capacity) {
        model->capacity *= 2;
        model->ops = realloc(model->ops, model->capacity * sizeof(*model->ops));
        alb_assert(model->ops);
    }
    struct alb_model_txn_op *posted = &model->ops[model->count];
    *posted = *op;
    posted->life = model->memory[op->target].life;
    posted->recoveries = model->memory[op->target].recoveries;
    posted->seen_before = model->memory[op->target].seen[op->spans[0].at];
    posted->posted_at = model->memory[op->target].version;
    return model->count++;
}

// It may become visible in the life that its target has now.
static bool is_of_this_life(const struct alb_model_txn *model, const struct alb_model_txn_op *op)
{
    return (model->is_durable && !op->is_plain) || op->life == model->memory[op->target].life;
}

// ---- what becomes visible -------------------------------------------------------------------------------------------

// The operations that became visible in this moment.
struct fresh {
    uint32_t numbers[ALB_MODEL_TXN_FRESH_MAX];
    uint32_t count;
};

static bool is_fresh(const struct fresh *fresh, uint32_t number)
{
    for (uint32_t i = 0; i < fresh->count; i++)
        if (fresh->numbers[i] == number)
            return true;
    return false;
}

// It stands there, and cannot be seen: placed at once and not decided, or spoilt.
static bool is_concealed(const struct alb_model_txn *model, uint32_t side, uint32_t at)
{
    if (model->has_corruption)
        return model->is_held(model->context, side, at);
    uint32_t number = number_of(model->memory[side].words[at]);
    return number < model->count && model->ops[number].is_in_place && !model->ops[number].is_visible &&
           model->is_held(model->context, side, at);
}

static void note(struct alb_model_txn_memory *memory, uint32_t at, uint64_t after)
{
    if (memory->change_count == memory->change_capacity) {
        memory->change_capacity = memory->change_capacity ? 2 * memory->change_capacity : 256;
        memory->changes = realloc(memory->changes, memory->change_capacity * sizeof(*memory->changes));
        alb_assert(memory->changes);
    }
    memory->changes[memory->change_count++] =
        (struct alb_model_txn_change){.version = memory->version, .at = at, .before = memory->seen[at], .after = after};
}

static bool may_be(struct alb_model_txn *model, uint32_t side, uint32_t at)
{
    const struct alb_model_txn_memory *memory = &model->memory[side];
    uint64_t word = memory->words[at];
    uint32_t number = number_of(word);
    if (number == 0 || number >= model->count || (uint32_t)word != at) {
        alb_model_txn_fail(model, "side %u, word %u: %016llx, which was never written there", side, at,
                           (unsigned long long)word);
        return false;
    }
    const struct alb_model_txn_op *op = &model->ops[number];
    const char *why = op->target != side               ? "is another side's"
                      : !is_of_this_life(model, op)    ? "was for a former life"
                      : !writes(op, at)                ? "does not write there"
                      : op->is_visible                 ? "has been there already"
                      : !op->may_commit                ? "is not decided"
                      : op->is_unseen                  ? NULL
                      : op->fate != ALB_MODEL_TXN_OPEN ? "has ended already"
                                                       : NULL;
    if (why)
        alb_model_txn_fail(model, "side %u, word %u: operation %u can be read, which %s", side, at, number, why);
    return !why;
}

// What stands there may cover the operation.
static bool is_covered(const struct alb_model_txn_memory *memory, uint32_t at, uint32_t number)
{
    return number < memory->covers[at].count && memory->covers[at].word == memory->words[at];
}

static bool is_there(const struct alb_model_txn_memory *memory, const struct alb_model_txn_compare *compare,
                     uint32_t number)
{
    return memory->seen[compare->at] == compare->expected ||
           (is_covered(memory, compare->at, number) && memory->covers[compare->at].beneath == compare->expected);
}

static void check_whole(struct alb_model_txn *model, uint32_t side, const struct fresh *fresh, uint32_t number)
{
    const struct alb_model_txn_op *op = &model->ops[number];
    const struct alb_model_txn_memory *memory = &model->memory[side];
    for (uint32_t i = 0; i < op->span_count; i++)
        for (uint32_t at = op->spans[i].at; at < op->spans[i].at + op->spans[i].count; at++)
            if (memory->words[at] != alb_model_txn_word(number, at) && !is_concealed(model, side, at) &&
                !is_fresh(fresh, number_of(memory->words[at])) && !is_covered(memory, at, number))
                alb_model_txn_fail(model, "side %u: operation %u can be read, but not its word %u", side, number, at);
    for (uint32_t i = 0; i < op->compare_count; i++)
        if (!op->agreed[i] && !is_there(memory, &op->compares[i], number))
            alb_model_txn_fail(model, "side %u: operation %u can be read, though word %u was not what it asked for",
                               side, number, op->compares[i].at);
}

// Of what can be seen in part all is there: where readers are still held out it is because of another transaction,
// which may stand over it already.
static void note_whole(struct alb_model_txn *model, uint32_t side, uint32_t number)
{
    struct alb_model_txn_memory *memory = &model->memory[side];
    const struct alb_model_txn_op *op = &model->ops[number];
    for (uint32_t i = 0; i < op->span_count; i++)
        for (uint32_t at = op->spans[i].at; at < op->spans[i].at + op->spans[i].count; at++) {
            uint64_t word = alb_model_txn_word(number, at);
            bool is_over_others = memory->words[at] == word && model->is_held(model->context, side, at);
            if (is_over_others || is_concealed(model, side, at))
                memory->covers[at] = (struct alb_model_txn_cover){word, memory->seen[at], model->count};
            else if (memory->words[at] != word)
                continue;
            note(memory, at, word);
        }
}

// From now on no recovery goes behind these.
static void note_bases(struct alb_model_txn *model, uint32_t side, uint32_t number)
{
    struct alb_model_txn_memory *memory = &model->memory[side];
    const struct alb_model_txn_op *op = &model->ops[number];
    for (uint32_t i = 0; i < op->span_count && !op->is_plain; i++)
        for (uint32_t at = op->spans[i].at; at < op->spans[i].at + op->spans[i].count; at++) {
            bool is_plain = model->ops[number_of(memory->words[at])].is_plain;
            memory->bases[at] =
                (struct alb_model_txn_base){.version = memory->version, .word = is_plain ? 0 : memory->words[at]};
        }
}

static void become_visible(struct alb_model_txn *model, uint32_t side, const struct fresh *fresh)
{
    struct alb_model_txn_memory *memory = &model->memory[side];
    uint32_t first = memory->change_count;
    memory->version++;
    for (uint32_t i = 0; i < fresh->count; i++) {
        check_whole(model, side, fresh, fresh->numbers[i]);
        note_whole(model, side, fresh->numbers[i]);
    }
    for (uint32_t i = 0; i < fresh->count; i++) {
        model->ops[fresh->numbers[i]].is_visible = true;
        model->ops[fresh->numbers[i]].visible_at = memory->version;
        note_bases(model, side, fresh->numbers[i]);
    }
    for (uint32_t i = first; i < memory->change_count; i++)
        memory->seen[memory->changes[i].at] = memory->changes[i].after;
}

// ---- what stands behind others --------------------------------------------------------------------------------------

// True if it is all there, and cannot be seen because others hold readers of each word out, or stand over it.
static bool stands_behind_others(const struct alb_model_txn *model, const struct alb_model_txn_op *op)
{
    if (!is_of_this_life(model, op) || !op->may_commit)
        return false;
    for (uint32_t i = 0; i < op->span_count; i++)
        for (uint32_t at = op->spans[i].at; at < op->spans[i].at + op->spans[i].count; at++)
            if (!is_concealed(model, op->target, at) &&
                !is_covered(&model->memory[op->target], at, (uint32_t)(op - model->ops)))
                return false;
    return true;
}

// Another one that is placed at once, and cannot be seen, is the reason why readers of that word are held out.
static bool is_held_by_another(const struct alb_model_txn *model, const struct alb_model_txn_op *op, uint32_t at)
{
    uint32_t first = at - at % model->held_words;
    for (uint32_t i = 1; i < model->count; i++) {
        const struct alb_model_txn_op *other = &model->ops[i];
        if (other == op || !other->is_in_place || other->is_visible || other->target != op->target ||
            other->life != op->life)
            continue;
        for (uint32_t word = first; word < first + model->held_words; word++)
            if (writes(other, word))
                return true;
    }
    return false;
}

static bool is_behind_others(const struct alb_model_txn *model, const struct alb_model_txn_op *op)
{
    if (!op->is_in_place || op->is_visible || !stands_behind_others(model, op))
        return false;
    for (uint32_t i = 0; i < op->span_count; i++)
        for (uint32_t at = op->spans[i].at; at < op->spans[i].at + op->spans[i].count; at++)
            if (!is_held_by_another(model, op, at))
                return false;
    return true;
}

// One that is committed while another one holds readers of its words out compares in that moment, and becomes visible
// when the other one ends.
static void note_agreed(struct alb_model_txn *model, uint32_t side)
{
    for (uint32_t number = 1; number < model->count; number++) {
        struct alb_model_txn_op *op = &model->ops[number];
        if (op->target != side || op->compare_count == 0 || !is_behind_others(model, op))
            continue;
        for (uint32_t i = 0; i < op->compare_count; i++)
            op->agreed[i] |= is_there(&model->memory[side], &op->compares[i], number);
    }
}

void alb_model_txn_observe(struct alb_model_txn *model, uint32_t side)
{
    struct alb_model_txn_memory *memory = &model->memory[side];
    struct fresh fresh = {.count = 0};
    if (memory->is_spoilt || model->failure[0] || memcmp(memory->words, memory->seen, model->word_count * 8) == 0)
        return;
    for (uint32_t at = 0; at < model->word_count; at++) {
        uint32_t number = number_of(memory->words[at]);
        bool was_concealed = memory->concealed[at];
        memory->concealed[at] = memory->words[at] != memory->seen[at] && is_concealed(model, side, at);
        if (memory->words[at] == memory->seen[at] || memory->concealed[at])
            continue;
        if (!may_be(model, side, at))
            return;
        model->ops[number].was_under |= was_concealed;
        if (is_fresh(&fresh, number))
            continue;
        alb_assert(fresh.count < ALB_MODEL_TXN_FRESH_MAX);
        fresh.numbers[fresh.count++] = number;
    }
    if (fresh.count > 0)
        become_visible(model, side, &fresh);
    note_agreed(model, side);
}

// ---- recovery -------------------------------------------------------------------------------------------------------

// It stood there before what was seen last, and not before the last transaction's.
static bool may_be_back(const struct alb_model_txn *model, uint32_t side, uint32_t at)
{
    const struct alb_model_txn_memory *memory = &model->memory[side];
    const struct alb_model_txn_base *base = &memory->bases[at];
    uint64_t word = memory->words[at];
    uint32_t number = number_of(word);
    if (word == base->word)
        return true;
    if (number == 0 || number >= model->count || (uint32_t)word != at)
        return false;
    const struct alb_model_txn_op *op = &model->ops[number];
    if (op->target != side || !op->is_visible || !writes(op, at))
        return false;
    return op->is_plain ? op->visible_at >= base->version : base->word == 0 && op->visible_at == base->version;
}

void alb_model_txn_recover(struct alb_model_txn *model, uint32_t side)
{
    struct alb_model_txn_memory *memory = &model->memory[side];
    uint64_t *back = calloc(model->word_count, sizeof(*back));
    alb_assert(back);
    for (uint32_t at = 0; at < model->word_count; at++)
        if (memory->words[at] != memory->seen[at] && may_be_back(model, side, at)) {
            back[at] = memory->words[at];
            memory->words[at] = memory->seen[at]; // what became visible just before did so upon this
        }
    alb_model_txn_observe(model, side);
    for (uint32_t at = 0; at < model->word_count; at++)
        if (back[at]) {
            memory->words[at] = memory->seen[at] = back[at];
            memory->gone_back++;
        }
    memory->recoveries++;
    memory->recovered_at = ++memory->version;
    memory->change_count = 0;
    free(back);
}

// ---- reports --------------------------------------------------------------------------------------------------------

void alb_model_txn_end_life(struct alb_model_txn *model, uint32_t side)
{
    for (uint32_t i = 1; i < model->count; i++)
        model->ops[i].was_behind |= model->ops[i].target == side && is_behind_others(model, &model->ops[i]);
}

// A plain WRITE of a word where something else has been seen since it was posted: that may have come over it before
// anybody looked, or it may have come over that and be there again when what conceals the word goes.
static bool may_have_been_between(const struct alb_model_txn *model, const struct alb_model_txn_op *op)
{
    return op->is_plain && model->memory[op->target].seen[op->spans[0].at] != op->seen_before;
}

static void look_behind_others(struct alb_model_txn *model, uint32_t number)
{
    struct alb_model_txn_op *op = &model->ops[number];
    if (op->is_visible || !stands_behind_others(model, op))
        return;
    if (may_have_been_between(model, op))
        op->is_unseen = true;
    else
        become_visible(model, op->target, &(struct fresh){.numbers = {number}, .count = 1});
}

// True if it may have been visible between two looks: of each word another one that is placed at once, or a plain one,
// has come over it. Those do not need a round trip more.
static bool may_be_gone(const struct alb_model_txn *model, const struct alb_model_txn_op *op)
{
    const struct alb_model_txn_memory *memory = &model->memory[op->target];
    for (uint32_t i = 0; i < op->span_count; i++)
        for (uint32_t at = op->spans[i].at; at < op->spans[i].at + op->spans[i].count; at++) {
            bool is_covered = may_have_been_between(model, op);
            for (uint32_t other = 1; other < model->count && !is_covered; other++) {
                const struct alb_model_txn_op *over = &model->ops[other];
                bool is_there = over->is_visible || memory->words[at] == alb_model_txn_word(other, at);
                bool is_late = over->is_in_place || (over->is_plain && over->visible_at > op->posted_at);
                is_covered = over != op && is_late && over->target == op->target && over->life == op->life &&
                             is_there && writes(over, at);
            }
            if (!is_covered)
                return false;
        }
    return true;
}

void alb_model_txn_committed(struct alb_model_txn *model, uint32_t number)
{
    struct alb_model_txn_op *op = &model->ops[number];
    const struct alb_model_txn_memory *memory = &model->memory[op->target];
    look_behind_others(model, number);
    bool is_unknown = (memory->is_spoilt && memory->life == op->life) || // not looked at any more
                      (op->is_plain && memory->recoveries != op->recoveries);
    if (!op->is_visible && !op->was_behind && !is_unknown && !may_be_gone(model, op))
        alb_model_txn_fail(model, "operation %u was reported as committed, and was never visible", number);
    if (op->fate == ALB_MODEL_TXN_ABORTED)
        alb_model_txn_fail(model, "operation %u was reported as aborted, then as committed", number);
    op->is_unseen |= !op->is_visible && memory->is_spoilt && model->is_durable;
    op->fate = ALB_MODEL_TXN_COMMITTED;
}

void alb_model_txn_aborted(struct alb_model_txn *model, uint32_t number)
{
    struct alb_model_txn_op *op = &model->ops[number];
    if (op->is_visible || op->was_read || op->fate == ALB_MODEL_TXN_COMMITTED)
        alb_model_txn_fail(model, "operation %u was reported as aborted, and had been visible", number);
    op->fate = ALB_MODEL_TXN_ABORTED;
}

void alb_model_txn_refused(struct alb_model_txn *model, uint32_t number, enum alb_txn_reason reason)
{
    const struct alb_model_txn_op *op = &model->ops[number];
    const char *why = reason == ALB_TXN_PRECONDITION && op->compare_count == 0 ? "though it compared nothing"
                      : reason == ALB_TXN_DIGEST && !model->has_corruption     ? "though nothing was corrupted"
                      : reason == ALB_TXN_REJECTED && !model->is_checked       ? "though no program was asked"
                                                                               : NULL;
    if (why)
        alb_model_txn_fail(model, "operation %u was refused %s", number, why);
}

void alb_model_txn_notified(struct alb_model_txn *model, uint32_t side, uint32_t number)
{
    if (number == 0 || number >= model->count || model->ops[number].target != side) {
        alb_model_txn_fail(model, "side %u was notified of %u, which is nothing of its", side, number);
        return;
    }
    struct alb_model_txn_op *op = &model->ops[number];
    look_behind_others(model, number);
    if (!op->is_visible && !model->memory[side].is_spoilt && !may_be_gone(model, op))
        alb_model_txn_fail(model, "side %u was notified of operation %u, which was never visible", side, number);
    if (op->notifications++ > 0)
        alb_model_txn_fail(model, "side %u was notified of operation %u twice", side, number);
}

void alb_model_txn_spoilt(struct alb_model_txn *model, uint32_t number)
{
    struct alb_model_txn_op *op = &model->ops[number];
    if (op->fate != ALB_MODEL_TXN_OPEN)
        alb_model_txn_fail(model, "operation %u was reported before, and then as corrupt", number);
}

// ---- READs ----------------------------------------------------------------------------------------------------------

// A word that came and went between two looks: it is of one moment, which is unknown. It was not aborted.
static bool is_fleeting(struct alb_model_txn *model, uint32_t side, uint64_t word, uint32_t at)
{
    uint32_t number = number_of(word);
    struct alb_model_txn_op *op = number > 0 && number < model->count ? &model->ops[number] : NULL;
    if (!op || (op->is_visible && !op->was_under) || !op->may_commit || op->target != side ||
        !is_of_this_life(model, op) || op->fate == ALB_MODEL_TXN_ABORTED || !writes(op, at) || (uint32_t)word != at)
        return false;
    op->was_read = true;
    return true;
}

static bool was_read(const struct alb_model_txn_span *span, const uint64_t *words, uint32_t number)
{
    for (uint32_t i = 0; i < span->count; i++)
        if (words[i] == alb_model_txn_word(number, span->at + i))
            return true;
    return false;
}

// What was read is memory after some of the operations of one moment (changes from first to past), in some order, each
// whole.
static bool is_between(const struct alb_model_txn *model, const struct alb_model_txn_memory *memory,
                       const uint64_t *before, uint32_t first, uint32_t past, const struct alb_model_txn_span *span,
                       const uint64_t *words)
{
    for (uint32_t k = 0; k < span->count; k++) {
        uint32_t at = span->at + k;
        bool is_new = false, must_be_new = false;
        for (uint32_t i = first; i < past; i++) {
            uint32_t number = number_of(memory->changes[i].after);
            if (!writes(&model->ops[number], at))
                continue;
            is_new |= words[k] == alb_model_txn_word(number, at);
            must_be_new |= was_read(span, words, number);
        }
        if (!is_new && (must_be_new || words[k] != before[at]))
            return false;
    }
    return true;
}

void alb_model_txn_read(struct alb_model_txn *model, uint32_t side, uint32_t version, struct alb_model_txn_span span,
                        const uint64_t *words)
{
    const struct alb_model_txn_memory *memory = &model->memory[side];
    if (version < memory->recovered_at)
        return; // what stood there before is unknown
    uint64_t *state = malloc(model->word_count * sizeof(*state));
    alb_assert(state);
    memcpy(state, memory->seen, model->word_count * sizeof(*state));
    for (uint32_t i = 0; i < span.count; i++)
        if (is_fleeting(model, side, words[i], span.at + i)) {
            free(state);
            return;
        }
    uint32_t first = memory->change_count;
    for (; first > 0 && memory->changes[first - 1].version > version; first--)
        state[memory->changes[first - 1].at] = memory->changes[first - 1].before;
    bool is_good = memory->is_spoilt || memcmp(&state[span.at], words, span.count * sizeof(*words)) == 0;
    while (!is_good && first < memory->change_count) {
        uint32_t past = first;
        while (past < memory->change_count && memory->changes[past].version == memory->changes[first].version)
            past++;
        is_good = is_between(model, memory, state, first, past, &span, words);
        for (; first < past; first++)
            state[memory->changes[first].at] = memory->changes[first].after;
    }
    if (!is_good)
        alb_model_txn_fail(model, "side %u: a READ of %u words from %u saw what never stood there at once", side,
                           span.count, span.at);
    free(state);
}
