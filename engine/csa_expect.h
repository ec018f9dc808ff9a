// SPDX-License-Identifier: BSD-2-Clause
// What a program has announced that it will receive (alb_qp_expect). A message of which every packet is lost leaves no
// gap that its receiver could see; an expected one is missed all the same. And a receiver that knows that others wait
// for one message asks for that one first.
//
// Members of a group are in one step of a common operation, on queue pairs of one engine. A member has finished when
// all that it expects has come. Once half of the members of a step have finished, the others hold it back: what they
// miss is asked for sooner, and before all other frames to that peer.
#pragma once

#include "base/list.h"
#include "engine/deadline.h"
#include "engine/verbs.h"

struct alb_csa;
struct alb_csa_segment;

// One step of a group.
struct alb_expect_group {
    struct alb_list link; // among the engine's
    uint32_t group, step;
    uint32_t open, finished; // members
    struct alb_list members; // that are open
};

// What is expected at one queue pair.
struct alb_expect {
    struct alb_csa *csa;
    struct alb_expect_group *group;    // NULL: of none
    struct alb_list link;              // among its group's open members
    uint32_t group_number, step;       // group_number 0: of none
    int64_t bytes_left, messages_left; // still to come; below zero: that came before they were announced
    bool has_bytes, has_messages;      // announced, and counted from the beginning; else from the step's end on
    alb_time announced_at, asked_at;
    uint32_t asks;      // since something came
    uint32_t deferrals; // likewise: times that the stream had to ask first
    struct alb_deadline timer;
};

// A segment of the request stream has come that had not come before.
void alb_expect_note(struct alb_csa *csa, const struct alb_csa_segment *segment, alb_time now);
// True if others wait for what this queue pair misses.
bool alb_expect_is_pressing(const struct alb_csa *csa);
// Nothing is expected any more.
void alb_expect_drop(struct alb_csa *csa);
