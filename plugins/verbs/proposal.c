// SPDX-License-Identifier: BSD-2-Clause
#include "plugins/verbs/proposal.h"

#include "engine/region.h"
#include "plugins/verbs/dv.h"

#include <stdlib.h>

static struct {
    pthread_mutex_t lock;
    pthread_cond_t rested; // a validator has returned
    struct alb_list checkers, proposals;
} all = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .rested = PTHREAD_COND_INITIALIZER,
    .checkers = {&all.checkers, &all.checkers},
    .proposals = {&all.proposals, &all.proposals},
};

void alb_door_proposals_after_fork(void)
{
    alb_list_init(&all.checkers);
    alb_list_init(&all.proposals);
    pthread_mutex_init(&all.lock, NULL);
    pthread_cond_init(&all.rested, NULL);
}

// ---- checkers -------------------------------------------------------------------------------------------------------

static void put_checker(struct alb_door_checker *checker)
{
    if (--checker->refs == 0)
        free(checker);
}

bool alb_door_checker_run(struct alb_door_checker *checker)
{
    pthread_mutex_lock(&all.lock);
    checker->is_running = !checker->is_closed;
    bool may_run = checker->is_running;
    pthread_mutex_unlock(&all.lock);
    return may_run;
}

void alb_door_checker_rest(struct alb_door_checker *checker)
{
    pthread_mutex_lock(&all.lock);
    checker->is_running = false;
    pthread_cond_broadcast(&all.rested);
    pthread_mutex_unlock(&all.lock);
}

static struct alb_door_checker *find_checker(const struct alb_region *region)
{
    for (struct alb_list *link = all.checkers.next; link != &all.checkers; link = link->next) {
        struct alb_door_checker *checker = ALB_LIST_ENTRY(link, struct alb_door_checker, link);
        if (checker->mr->region == region)
            return checker;
    }
    return NULL;
}

// ---- a proposal -----------------------------------------------------------------------------------------------------

static struct alb_txn_id id_of(const struct alb_door_proposal *proposal)
{
    return (struct alb_txn_id){.initiator = proposal->proposal.initiator, .number = proposal->proposal.number};
}

// Has the checker asked whose turn it is. A channel is busy from here on: a thread may be taking the proposal.
static void ask(struct alb_door_proposal *proposal)
{
    struct alb_door_checker *checker = proposal->checkers[proposal->asked];
    if (checker->channel)
        checker->channel->refs++;
    proposal->proposal.context = checker->context;
    proposal->raised++;
    alb_notices_raise(checker->queue, &proposal->notice);
}

static void discard(struct alb_door_proposal *proposal)
{
    alb_list_remove(&proposal->link);
    for (uint32_t i = 0; i < proposal->checker_count; i++)
        put_checker(proposal->checkers[i]);
    free(proposal->checkers);
    free((void *)proposal->proposal.parts);
    free(proposal);
}

static bool has_checker(const struct alb_door_proposal *proposal, const struct alb_door_checker *checker)
{
    for (uint32_t i = 0; i < proposal->checker_count; i++)
        if (proposal->checkers[i] == checker)
            return true;
    return false;
}

static void find_checkers(struct alb_door_proposal *proposal, const struct alb_proposal *engine)
{
    for (uint32_t i = 0; i < engine->part_count; i++) {
        const struct alb_region *region = engine->parts[i].region;
        struct alb_door_checker *checker = region ? find_checker(region) : NULL;
        if (!checker || has_checker(proposal, checker))
            continue;
        checker->refs++;
        proposal->checkers[proposal->checker_count++] = checker;
    }
}

static struct albdv_part part_from(const struct alb_txn_part *engine)
{
    struct alb_region *region = engine->region;
    struct albdv_part part = {.length = engine->length, .bytes = engine->bytes};
    if (region) {
        struct alb_door_mr *mr = alb_region_user(region);
        part.mr = &mr->mr;
        part.address = region->host + engine->offset;
    }
    return part;
}

// NULL if there is no memory.
static struct alb_door_proposal *make(const struct alb_proposal *engine)
{
    struct alb_door_proposal *proposal = calloc(1, sizeof(*proposal));
    struct alb_door_checker **checkers = calloc(engine->part_count, sizeof(struct alb_door_checker *));
    struct albdv_part *parts = calloc(engine->part_count, sizeof(*parts));
    if (!proposal || !checkers || !parts) {
        free(proposal);
        free(checkers);
        free(parts);
        return NULL;
    }
    for (uint32_t i = 0; i < engine->part_count; i++)
        parts[i] = part_from(&engine->parts[i]);
    proposal->proposal = (struct albdv_proposal){
        .initiator = engine->id.initiator,
        .number = engine->id.number,
        .has_imm = engine->notify,
        .imm_data = engine->imm_data,
        .part_count = engine->part_count,
        .parts = parts,
    };
    proposal->checkers = checkers;
    alb_notice_init(&proposal->notice, proposal, 0);
    return proposal;
}

// A proposal without a validator to ask is rejected.
static void take(struct alb_engine *engine, const struct alb_proposal *proposed)
{
    struct alb_door_proposal *proposal = make(proposed);
    bool is_asked = false;
    pthread_mutex_lock(&all.lock);
    if (proposal) {
        find_checkers(proposal, proposed);
        alb_list_push_back(&all.proposals, &proposal->link);
        is_asked = proposal->checker_count > 0;
        if (is_asked) {
            proposal->context = alb_door_context(proposal->checkers[0]->mr->mr.context);
            ask(proposal);
        } else {
            discard(proposal);
        }
    }
    pthread_mutex_unlock(&all.lock);
    if (!is_asked)
        alb_engine_proposal_answer(engine, &proposed->id, false, alb_device_now());
}

void alb_door_on_proposal(struct alb_device *device)
{
    struct alb_engine *engine = alb_device_engine(device);
    struct alb_proposal proposed;
    while (alb_engine_proposal(engine, &proposed))
        take(engine, &proposed);
}

// True if there is another one to ask.
static bool ask_next(struct alb_door_proposal *proposal)
{
    pthread_mutex_lock(&all.lock);
    bool is_asked =
        proposal->asked + 1 < proposal->checker_count && !proposal->checkers[proposal->asked + 1]->is_closed;
    if (is_asked) {
        proposal->asked++;
        ask(proposal);
    }
    pthread_mutex_unlock(&all.lock);
    return is_asked;
}

int alb_door_proposal_answer(struct alb_door_proposal *proposal, bool accept)
{
    struct alb_door_context *context = proposal->context;
    struct alb_txn_id id = id_of(proposal);
    if (alb_door_is_forked(context))
        return ENODEV;
    if (accept && ask_next(proposal))
        return 0;
    accept = accept && proposal->asked + 1 == proposal->checker_count;
    int error = alb_door_lock(context);
    if (error)
        return error;
    error = alb_engine_proposal_answer(context->engine, &id, accept, alb_device_now());
    alb_door_unlock(context);
    pthread_mutex_lock(&all.lock);
    discard(proposal);
    pthread_mutex_unlock(&all.lock);
    return error;
}

// ---- a region begins and ends to be checked -------------------------------------------------------------------------

static int set_checked(struct alb_door_mr *mr, bool checked)
{
    struct alb_door_context *context = alb_door_context(mr->mr.context);
    int error = alb_door_lock(context);
    if (error)
        return error;
    error = alb_mr_set_checked(mr->region, checked, checked ? mr : NULL);
    alb_door_unlock(context);
    return error;
}

// The checker is known before the first proposal can come.
static int open_checker(struct alb_door_mr *mr, const struct alb_door_checker *checker)
{
    struct alb_door_checker *opened = malloc(sizeof(*opened));
    if (!opened)
        return ENOMEM;
    *opened = *checker;
    opened->mr = mr;
    opened->refs = 1;
    pthread_mutex_lock(&all.lock);
    alb_list_push_back(&all.checkers, &opened->link);
    pthread_mutex_unlock(&all.lock);
    int error = set_checked(mr, true);
    if (!error) {
        mr->checker = opened;
        return 0;
    }
    pthread_mutex_lock(&all.lock);
    alb_list_remove(&opened->link);
    put_checker(opened);
    pthread_mutex_unlock(&all.lock);
    return error;
}

// Moves the proposals that wait in the checker's queue, which no thread has taken or will take, to another list.
static void withdraw(struct alb_door_checker *checker, struct alb_list *withdrawn)
{
    struct alb_list *link = all.proposals.next;
    while (link != &all.proposals) {
        struct alb_door_proposal *proposal = ALB_LIST_ENTRY(link, struct alb_door_proposal, link);
        link = link->next;
        if (proposal->checkers[proposal->asked] != checker)
            continue;
        alb_notices_forget(checker->queue, &proposal->notice);
        if (proposal->notice.delivered == proposal->raised)
            continue; // a thread has taken it
        if (checker->channel)
            checker->channel->refs--;
        alb_list_remove(&proposal->link);
        alb_list_push_back(withdrawn, &proposal->link);
    }
}

void alb_door_checker_close(struct alb_door_mr *mr)
{
    struct alb_door_checker *checker = mr->checker;
    struct alb_list withdrawn, *link;
    if (!checker)
        return;
    bool is_own_thread = alb_door_is_validating(alb_door_context(mr->mr.context));
    mr->checker = NULL;
    alb_list_init(&withdrawn);
    pthread_mutex_lock(&all.lock);
    checker->is_closed = true;
    alb_list_remove(&checker->link);
    withdraw(checker, &withdrawn);
    while (checker->is_running && !is_own_thread)
        pthread_cond_wait(&all.rested, &all.lock);
    if (checker->channel)
        checker->channel->refs--;
    put_checker(checker);
    pthread_mutex_unlock(&all.lock);
    while ((link = alb_list_pop(&withdrawn)))
        alb_door_proposal_answer(ALB_LIST_ENTRY(link, struct alb_door_proposal, link), false);
}

// True in the checker's own validator, while it runs.
static bool is_called_by(const struct alb_door_checker *checker, const struct alb_door_context *context)
{
    pthread_mutex_lock(&all.lock);
    bool is_running = checker->is_running;
    pthread_mutex_unlock(&all.lock);
    return is_running && alb_door_is_validating(context);
}

int alb_door_set_validator(struct ibv_mr *outer, albdv_validate *validate, void *context)
{
    struct alb_door_mr *mr = alb_door_mr(outer);
    struct alb_door_context *door = alb_door_context(outer->context);
    struct alb_door_checker checker = {.validate = validate, .context = context};
    if (!alb_door_has_reflection(door))
        return EOPNOTSUPP;
    if (alb_door_is_forked(door)) // before a thread is started for it
        return ENODEV;
    if (mr->checker && (validate || mr->checker->channel))
        return EBUSY;
    if (validate) {
        int error = alb_door_validators_queue(door, &checker.queue);
        return error ? error : open_checker(mr, &checker);
    }
    if (!mr->checker)
        return 0;
    if (is_called_by(mr->checker, door))
        return EDEADLK;
    int error = set_checked(mr, false);
    if (!error)
        alb_door_checker_close(mr);
    return error;
}

// ---- channels -------------------------------------------------------------------------------------------------------

static struct alb_door_channel_of_proposals *door_channel(struct albdv_proposal_channel *channel)
{
    return ALB_CONTAINER_OF(channel, struct alb_door_channel_of_proposals, channel);
}

struct albdv_proposal_channel *alb_door_create_proposal_channel(struct ibv_context *context)
{
    struct alb_door_context *door = alb_door_context(context);
    if (!alb_door_has_reflection(door))
        return alb_door_fail(EOPNOTSUPP);
    if (alb_door_is_forked(door))
        return alb_door_fail(ENODEV);
    struct alb_door_channel_of_proposals *channel = calloc(1, sizeof(*channel));
    if (!channel)
        return alb_door_fail(ENOMEM);
    int error = alb_notices_init(&channel->notices, NULL);
    if (error) {
        free(channel);
        return alb_door_fail(error);
    }
    channel->channel = (struct albdv_proposal_channel){.context = context, .fd = channel->notices.file.fd};
    alb_door_remember(door, ALB_DOOR_PROPOSAL_CHANNEL, &channel->link);
    return &channel->channel;
}

int alb_door_proposal_channel_release(struct alb_door_channel_of_proposals *channel)
{
    alb_door_forget(alb_door_context(channel->channel.context), &channel->link);
    if (alb_notices_fini(&channel->notices))
        free(channel);
    return 0;
}

int alb_door_destroy_proposal_channel(struct albdv_proposal_channel *outer)
{
    struct alb_door_channel_of_proposals *channel = door_channel(outer);
    if (alb_door_is_forked(alb_door_context(outer->context)))
        return 0;
    pthread_mutex_lock(&all.lock);
    bool is_used = channel->refs > 0;
    pthread_mutex_unlock(&all.lock);
    return is_used ? alb_door_refuse(EBUSY) : alb_door_proposal_channel_release(channel);
}

int alb_door_set_proposal_channel(struct ibv_mr *outer, struct albdv_proposal_channel *channel, void *context)
{
    struct alb_door_mr *mr = alb_door_mr(outer);
    if (!alb_door_has_reflection(alb_door_context(outer->context)))
        return EOPNOTSUPP;
    if (alb_door_is_forked(alb_door_context(outer->context)))
        return ENODEV;
    if (mr->checker && (channel || mr->checker->validate))
        return EBUSY;
    if (channel && channel->context != outer->context)
        return EINVAL;
    if (channel) {
        struct alb_door_channel_of_proposals *door = door_channel(channel);
        const struct alb_door_checker checker = {.queue = &door->notices, .channel = door, .context = context};
        int error = open_checker(mr, &checker);
        if (!error) {
            pthread_mutex_lock(&all.lock);
            door->refs++;
            pthread_mutex_unlock(&all.lock);
        }
        return error;
    }
    if (!mr->checker)
        return 0;
    int error = set_checked(mr, false);
    if (!error)
        alb_door_checker_close(mr);
    return error;
}

struct albdv_proposal *alb_door_get_proposal(struct albdv_proposal_channel *channel)
{
    if (alb_door_is_forked(alb_door_context(channel->context))) // the descriptor is the parent's, too
        return alb_door_fail(ENODEV);
    struct alb_notice *notice = alb_notices_take(&door_channel(channel)->notices);
    return notice ? &((struct alb_door_proposal *)notice->owner)->proposal : NULL;
}

int alb_door_answer_proposal(struct albdv_proposal *outer, int accept)
{
    struct alb_door_proposal *proposal = ALB_CONTAINER_OF(outer, struct alb_door_proposal, proposal);
    pthread_mutex_lock(&all.lock);
    proposal->checkers[proposal->asked]->channel->refs--;
    pthread_mutex_unlock(&all.lock);
    return alb_door_proposal_answer(proposal, accept != 0);
}

// ---- a context ends -------------------------------------------------------------------------------------------------

// What its program has taken and not answered.
void alb_door_proposals_end(struct alb_door_context *context)
{
    for (;;) {
        struct alb_door_proposal *found = NULL;
        pthread_mutex_lock(&all.lock);
        for (struct alb_list *link = all.proposals.next; link != &all.proposals && !found; link = link->next) {
            struct alb_door_proposal *proposal = ALB_LIST_ENTRY(link, struct alb_door_proposal, link);
            if (proposal->context == context)
                found = proposal;
        }
        pthread_mutex_unlock(&all.lock);
        if (!found)
            return;
        alb_door_proposal_answer(found, false);
    }
}
