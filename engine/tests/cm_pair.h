// SPDX-License-Identifier: BSD-2-Clause
// Two hosts with their connection managers, the messages between them in the hand of a test. Side 1 listens, side 0
// connects.
#pragma once

#include "base/tests/test.h"
#include "engine/cm_impl.h"
#include "engine/tests/pair.h"

enum {
    CM_IDS = 64,
    CM_BACKLOG = 8,
    CM_PORT = 7174,
    CM_RETRIES = 3,
    CM_RESPONSE_CODE = 16, // 268.435456 ms
    CM_ACK_CODE = 14,      // 67.108864 ms
};

// Between two copies of a REQ or REP, and how long TIMEWAIT lasts, with the codes above.
#define CM_TIMEOUT_NS  (268435456ull + 67108864ull)
#define CM_TIMEWAIT_NS 67108864ull

struct cm_pair {
    struct pair *pair;
    struct alb_cm_id *listener;
    struct alb_cm_id *ids[2]; // of the connection
};

struct cm_pair *cm_pair_new(void);
// Destroys what the test left, lets all time pass that ids linger, and checks that none is left.
void cm_pair_free(struct cm_pair *cm);

struct alb_engine *cm_engine(struct cm_pair *cm, int side);
struct alb_cm_target cm_target(const struct cm_pair *cm, int side);
struct alb_cm_req cm_req(const struct cm_pair *cm, alb_qpn qpn);
struct alb_cm_rep cm_rep(alb_qpn qpn);
// Side 0 begins a connection, as ids[0].
void cm_connect(struct cm_pair *cm);
// Delivers the REQ; side 1 takes the event, as ids[1].
void cm_take_request(struct cm_pair *cm);
void cm_accept(struct cm_pair *cm);
// The whole of it, ESTABLISHED on both sides and no event left.
void cm_establish(struct cm_pair *cm);

// The side's next event must be of that type; it is returned.
bool cm_take_event(struct cm_pair *cm, int side, struct alb_cm_event *event);
struct alb_cm_event cm_expect_event(struct cm_pair *cm, int side, enum alb_cm_event_type type);
void cm_expect_no_event(struct cm_pair *cm, int side);
#define cm_expect_state(cm, side, wanted) assert_int_equal(alb_cm_id_state((cm)->ids[side]), (wanted))

// Lets the side send; exactly one message of that type must be on its way, which is returned.
struct alb_cm_message cm_expect_sent(struct cm_pair *cm, int side, enum alb_cm_type type);
void cm_expect_nothing_sent(struct cm_pair *cm, int side);
void cm_deliver(struct cm_pair *cm, int side);
void cm_lose(struct cm_pair *cm, int side);
// A message arrives from that side which it has not sent.
void cm_inject(struct cm_pair *cm, int side, const struct alb_cm_message *message);
uint64_t cm_dropped(const struct cm_pair *cm, int side, enum alb_drop reason);

int cm_setup(void **state);
int cm_teardown(void **state);
#define CM_TEST(test) cmocka_unit_test_setup_teardown(test, cm_setup, cm_teardown)
