// SPDX-License-Identifier: BSD-2-Clause
// The thread of a context that runs its regions' validators, one proposal at a time, with no lock held.
#include "device/cancel.h"
#include "device/spawn.h"
#include "plugins/verbs/proposal.h"

#include <stdlib.h>

struct alb_door_checks {
    struct alb_notices queue;
    struct alb_notice stop;
    pthread_t thread;
};

static void check(struct alb_door_proposal *proposal)
{
    struct alb_door_checker *checker = proposal->checkers[proposal->asked];
    bool accept = false;
    if (alb_door_checker_run(checker)) {
        accept = checker->validate(&proposal->proposal) != 0;
        alb_door_checker_rest(checker);
    }
    alb_door_proposal_answer(proposal, accept);
}

static void *run(void *argument)
{
    struct alb_door_checks *checks = argument;
    for (;;) {
        struct alb_notice *notice = alb_notices_take(&checks->queue);
        if (notice == &checks->stop)
            return NULL;
        if (notice)
            check(notice->owner);
    }
}

static int create(struct alb_door_checks *_Atomic *created)
{
    struct alb_door_checks *checks = calloc(1, sizeof(*checks));
    if (!checks)
        return ENOMEM;
    int error = alb_notices_init(&checks->queue, NULL);
    if (error) {
        free(checks);
        return error;
    }
    alb_notice_init(&checks->stop, checks, 0);
    error = alb_spawn_for_program(&checks->thread, "albedo/validate", run, checks);
    if (error) {
        alb_notices_fini(&checks->queue);
        free(checks);
        return error;
    }
    atomic_store(created, checks); // another thread may look for it: alb_door_is_validating
    return 0;
}

int alb_door_validators_queue(struct alb_door_context *context, struct alb_notices **queue)
{
    pthread_mutex_t *mutex = &context->verbs.context.mutex;
    int cancel = alb_cancel_off();
    pthread_mutex_lock(mutex);
    int error = context->checks ? 0 : create(&context->checks);
    pthread_mutex_unlock(mutex);
    alb_cancel_back(cancel);
    if (!error)
        *queue = &context->checks->queue;
    return error;
}

bool alb_door_is_validating(const struct alb_door_context *context)
{
    const struct alb_door_checks *checks = atomic_load(&context->checks);
    return checks && pthread_equal(checks->thread, pthread_self());
}

void alb_door_validators_stop(struct alb_door_context *context)
{
    struct alb_door_checks *checks = context->checks;
    if (!checks)
        return;
    alb_notices_raise(&checks->queue, &checks->stop);
    pthread_join(checks->thread, NULL);
    alb_notices_fini(&checks->queue);
    free(checks);
    context->checks = NULL;
}
