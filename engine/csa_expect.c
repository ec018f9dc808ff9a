// SPDX-License-Identifier: BSD-2-Clause
#include "engine/csa_expect.h"

#include "engine/impl.h"

#include <errno.h>

enum {
    ASKS_MAX = 8,      // without anything coming; then it is the sender's to probe
    DEFERRALS_MAX = 8, // that make the wait twice as long: a receive may not be posted for as long as a program likes
};

// ---- groups ---------------------------------------------------------------------------------------------------------

static struct alb_expect_group *find_group(struct alb_csa_engine *csa, uint32_t number, uint32_t step)
{
    ALB_LIST_FOR_EACH (&csa->expect_groups, node) {
        struct alb_expect_group *group = ALB_LIST_ENTRY(node, struct alb_expect_group, link);
        if (group->group == number && group->step == step)
            return group;
    }
    return NULL;
}

// NULL: the pool is empty.
static struct alb_expect_group *get_group(struct alb_csa_engine *csa, uint32_t number, uint32_t step)
{
    struct alb_expect_group *group = find_group(csa, number, step);
    if (group)
        return group;
    group = alb_buddy_get(&csa->pool, sizeof(*group));
    if (!group)
        return NULL;
    *group = (struct alb_expect_group){.group = number, .step = step};
    alb_list_init(&group->members);
    alb_list_init(&group->link);
    alb_list_push_back(&csa->expect_groups, &group->link);
    return group;
}

static bool is_pressing(const struct alb_expect_group *group)
{
    return group->finished > 0 && group->finished >= group->open;
}

static bool is_open(const struct alb_expect *expect)
{
    return expect->bytes_left > 0 || expect->messages_left > 0;
}

bool alb_expect_is_pressing(const struct alb_csa *csa)
{
    const struct alb_expect *expect = csa->expect;
    return expect && expect->group && is_open(expect) && is_pressing(expect->group);
}

// ---- patience -------------------------------------------------------------------------------------------------------

// What left when the announcement was made needs half a round trip. While this one is waited for no more than the
// others, its sender gets a round trip to begin in.
static alb_time patience_ns(const struct alb_expect *expect)
{
    const struct alb_csa *csa = expect->csa;
    alb_time rtt_ns = alb_assoc_rtt_ns(csa->assoc);
    alb_time margin_ns = ALB_MAX(rtt_ns / 4, (alb_time)csa->qp->engine->config.csa_margin_min_ns);
    if (expect->asks > 0)
        return (rtt_ns + margin_ns) << (expect->asks - 1);
    bool is_alone = !expect->group || expect->group->open + expect->group->finished == 1;
    return rtt_ns / 2 + margin_ns + (is_alone || is_pressing(expect->group) ? 0 : rtt_ns);
}

static alb_time due_at(const struct alb_expect *expect)
{
    alb_time since = ALB_MAX(expect->announced_at, expect->asked_at);
    return ALB_MAX(since, expect->csa->in_requests.came_at) + patience_ns(expect);
}

static void arm(struct alb_expect *expect, alb_time now)
{
    alb_wheel_arm(&expect->csa->qp->engine->wheel, &expect->timer.timer, ALB_MAX(due_at(expect), now + 1));
}

// The members that are left wait no longer than they must.
static void press(struct alb_expect_group *group, alb_time now)
{
    ALB_LIST_FOR_EACH (&group->members, node) {
        struct alb_expect *expect = ALB_LIST_ENTRY(node, struct alb_expect, link);
        if (expect->asks < ASKS_MAX)
            arm(expect, now);
    }
}

// Those that are left may be the ones that all wait for now.
static void leave(struct alb_expect *expect)
{
    struct alb_expect_group *group = expect->group;
    if (!group)
        return;
    bool was_pressing = is_pressing(group);
    if (alb_list_is_linked(&expect->link))
        group->open--;
    else
        group->finished--;
    alb_list_remove(&expect->link);
    expect->group = NULL;
    if (!was_pressing && is_pressing(group))
        press(group, expect->csa->qp->engine->now);
    if (group->open + group->finished > 0)
        return;
    alb_list_remove(&group->link);
    alb_buddy_put(&expect->csa->qp->engine->csa->pool, group, sizeof(*group));
}

static void ask(struct alb_expect *expect, alb_time now)
{
    struct alb_csa *csa = expect->csa;
    struct alb_stream_in *in = &csa->in_requests;
    expect->asks++;
    expect->asked_at = now;
    if (csa->assoc->peer_epoch == 0)
        return; // a peer that does not know us would drop it
    alb_qp_count(csa->qp, ALB_STAT_expected_asks, 1);
    in->is_overdue = true;
    alb_stream_in_owe_report(in);
    if (csa->assoc->live && alb_expect_is_pressing(csa)) {
        alb_list_remove(&in->report_link);
        alb_list_push_front(&csa->assoc->live->reports, &in->report_link);
    }
}

static void on_timer(struct alb_deadline *deadline, alb_time now)
{
    struct alb_expect *expect = ALB_CONTAINER_OF(deadline, struct alb_expect, timer);
    const struct alb_stream_in *in = &expect->csa->in_requests;
    if (!is_open(expect) || expect->asks >= ASKS_MAX)
        return;                                      // an arrival, or another announcement, begins again
    if (alb_stream_in_misses(in) || in->waits_rnr) { // then the stream itself knows what to ask for
        alb_time wait_ns = patience_ns(expect) << expect->deferrals;
        expect->deferrals += expect->deferrals < DEFERRALS_MAX;
        alb_wheel_arm(&expect->csa->qp->engine->wheel, &deadline->timer, now + wait_ns);
        return;
    }
    if (due_at(expect) <= now)
        ask(expect, now);
    arm(expect, now);
}

// ---- what comes -----------------------------------------------------------------------------------------------------

static void finish(struct alb_expect *expect, alb_time now)
{
    struct alb_expect_group *group = expect->group;
    alb_wheel_disarm(&expect->csa->qp->engine->wheel, &expect->timer.timer);
    if (!group)
        return;
    bool was_pressing = is_pressing(group);
    alb_list_remove(&expect->link);
    group->open--;
    group->finished++;
    if (!was_pressing && is_pressing(group))
        press(group, now);
}

void alb_expect_note(struct alb_csa *csa, const struct alb_csa_segment *segment, alb_time now)
{
    struct alb_expect *expect = csa->expect;
    if (!expect || !alb_csa_is_message(segment->op))
        return;
    bool was_open = is_open(expect);
    if (expect->has_bytes || !was_open)
        expect->bytes_left -= segment->payload_bytes;
    if (expect->has_messages || !was_open)
        expect->messages_left -= (segment->flags & ALB_CSA_LAST) != 0;
    bool has_waited = expect->asks > 0 || expect->deferrals > 0; // patience begins anew
    expect->asks = expect->deferrals = 0;
    if (was_open && !is_open(expect))
        finish(expect, now);
    else if (was_open && has_waited)
        arm(expect, now);
}

// ---- announcements --------------------------------------------------------------------------------------------------

void alb_expect_drop(struct alb_csa *csa)
{
    struct alb_expect *expect = csa->expect;
    if (!expect)
        return;
    alb_wheel_disarm(&csa->qp->engine->wheel, &expect->timer.timer);
    leave(expect);
    csa->expect = NULL;
    alb_buddy_put(&csa->qp->engine->csa->pool, expect, sizeof(*expect));
}

static int check(const struct alb_qp *qp, const struct alb_expectation *expectation)
{
    if (qp->delivery != &alb_csa_ops || qp->type == ALB_QPT_XRC_SEND || !qp->engine->csa->loss.ops->watches_tail)
        return EOPNOTSUPP;
    enum alb_qp_state state = alb_qp_state_of(qp);
    if (state != ALB_QPS_RTR && state != ALB_QPS_RTS && state != ALB_QPS_SQD)
        return EINVAL;
    if (expectation->bytes > INT64_MAX)
        return EINVAL;
    bool is_step =
        expectation->group ? expectation->step < expectation->steps : expectation->step == 0 && expectation->steps == 0;
    return is_step ? 0 : EINVAL;
}

static struct alb_expect *get_expect(struct alb_csa *csa)
{
    if (csa->expect)
        return csa->expect;
    struct alb_expect *expect = alb_buddy_get(&csa->qp->engine->csa->pool, sizeof(*expect));
    if (!expect)
        return NULL;
    *expect = (struct alb_expect){.csa = csa};
    alb_list_init(&expect->link);
    alb_deadline_init(&expect->timer, on_timer);
    csa->expect = expect;
    return expect;
}

// What came of this step before it was announced counts. What the step before still lacked is forgotten: its segments
// are watched if any of them has come.
static void count(struct alb_expect *expect, const struct alb_expectation *expectation)
{
    bool follows = expectation->group && expectation->group == expect->group_number && expectation->step > 0 &&
                   expectation->step - 1 == expect->step;
    int64_t bytes_early = follows ? ALB_MIN(expect->bytes_left, 0) : 0;
    int64_t messages_early = follows ? ALB_MIN(expect->messages_left, 0) : 0;
    expect->bytes_left = expectation->bytes ? (int64_t)expectation->bytes + bytes_early : 0;
    expect->messages_left = expectation->messages ? (int64_t)expectation->messages + messages_early : 0;
    expect->has_bytes = expectation->bytes != 0;
    expect->has_messages = expectation->messages != 0;
    expect->group_number = expectation->group;
    expect->step = expectation->step;
}

// Enters the step of its group, if it has one. False: the pool is empty.
static bool join(struct alb_expect *expect, const struct alb_expectation *expectation)
{
    count(expect, expectation);
    if (!expectation->group)
        return true;
    struct alb_expect_group *group = get_group(expect->csa->qp->engine->csa, expectation->group, expectation->step);
    if (!group)
        return false;
    expect->group = group;
    if (is_open(expect)) {
        group->open++;
        alb_list_push_back(&group->members, &expect->link);
    } else {
        group->finished++;
    }
    return true;
}

int alb_qp_expect(struct alb_qp *qp, const struct alb_expectation *expectation, alb_time now)
{
    int error = check(qp, expectation);
    if (error)
        return error;
    struct alb_csa *csa = alb_csa_of(qp);
    bool is_none = expectation->bytes == 0 && expectation->messages == 0;
    struct alb_expect *expect = is_none ? NULL : get_expect(csa);
    if (expect)
        leave(expect);
    if (!expect || !join(expect, expectation)) {
        alb_expect_drop(csa);
        return is_none ? 0 : ENOMEM;
    }
    expect->announced_at = now;
    expect->asked_at = 0;
    expect->asks = expect->deferrals = 0;
    if (is_open(expect))
        arm(expect, now);
    if (expect->group && is_pressing(expect->group))
        press(expect->group, now);
    return 0;
}
