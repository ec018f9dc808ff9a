// SPDX-License-Identifier: BSD-2-Clause
// Proposals: transactions that the target's program is asked about before they are bound (albdv_validator(3)). A
// checker is what a region has them checked by, a validator or a channel; a transaction that touches several such
// regions is shown to each of their checkers in turn, and bound if all accept.
//
// Proposals and checkers of a process are guarded by one lock, inside the driver token; the queues they wait in have
// locks of their own, inside it.
#pragma once

#include "plugins/verbs/door.h"

struct alb_door_checker {
    struct alb_list link; // among the open ones
    struct alb_door_mr *mr;
    struct alb_notices *queue;
    albdv_validate *validate; // NULL: a channel's
    struct alb_door_channel_of_proposals *channel;
    void *context;
    bool is_closed;
    bool is_running;
    uint32_t refs; // of proposals, and of the region
};

struct alb_door_proposal {
    struct albdv_proposal proposal;
    struct alb_list link; // among all that are not answered
    struct alb_notice notice;
    uint32_t raised; // how often, compared with notice.delivered, it shows whether a thread has taken it
    struct alb_door_context *context;
    struct alb_door_checker **checkers;
    uint32_t checker_count;
    uint32_t asked; // whose turn it is
};

struct alb_door_channel_of_proposals {
    struct albdv_proposal_channel channel;
    struct alb_list link;
    struct alb_notices notices;
    uint32_t refs; // regions that name it, and proposals that wait in it or have been taken from it and not answered
};

// Answers a proposal that the caller has taken, once, with no lock held. ENOENT: the transaction has ended meanwhile.
int alb_door_proposal_answer(struct alb_door_proposal *proposal, bool accept);
// Whether the checker whose turn it is may still be asked: then it is running until alb_door_checker_rest.
bool alb_door_checker_run(struct alb_door_checker *checker);
void alb_door_checker_rest(struct alb_door_checker *checker);

// The queue of the context's thread that runs validators, which is started if need be. An errno.
int alb_door_validators_queue(struct alb_door_context *context, struct alb_notices **queue);
// True in that thread.
bool alb_door_is_validating(const struct alb_door_context *context);
