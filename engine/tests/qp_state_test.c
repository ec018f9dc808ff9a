// SPDX-License-Identifier: BSD-2-Clause
// The table of ibv_modify_qp(3), written down a second time as a list of sentences, and held against the one in the
// engine with every attribute bit for every pair of states.
#include "engine/qp_state.h"

#include "base/tests/test.h"

#define STATES (ALB_QPS_ERR + 1)

#define ALL_BITS                                                                                                      \
    (ALB_QP_STATE | ALB_QP_CUR_STATE | ALB_QP_EN_SQD_ASYNC_NOTIFY | ALB_QP_ACCESS_FLAGS | ALB_QP_PKEY_INDEX |         \
     ALB_QP_PORT | ALB_QP_QKEY | ALB_QP_AV | ALB_QP_PATH_MTU | ALB_QP_TIMEOUT | ALB_QP_RETRY_CNT | ALB_QP_RNR_RETRY | \
     ALB_QP_RQ_PSN | ALB_QP_MAX_QP_RD_ATOMIC | ALB_QP_ALT_PATH | ALB_QP_MIN_RNR_TIMER | ALB_QP_SQ_PSN |               \
     ALB_QP_MAX_DEST_RD_ATOMIC | ALB_QP_PATH_MIG_STATE | ALB_QP_CAP | ALB_QP_DEST_QPN | ALB_QP_RATE_LIMIT)

struct sentence {
    enum alb_qp_type type;
    enum alb_qp_state from, to;
    uint32_t required;
    uint32_t optional;
};

// Every legal move but those to RESET and ERR, which need nothing but the state.
static const struct sentence sentences[] = {
    {ALB_QPT_RC, ALB_QPS_RESET, ALB_QPS_INIT, ALB_QP_PKEY_INDEX | ALB_QP_PORT | ALB_QP_ACCESS_FLAGS, 0},
    {ALB_QPT_UC, ALB_QPS_RESET, ALB_QPS_INIT, ALB_QP_PKEY_INDEX | ALB_QP_PORT | ALB_QP_ACCESS_FLAGS, 0},
    {ALB_QPT_UD, ALB_QPS_RESET, ALB_QPS_INIT, ALB_QP_PKEY_INDEX | ALB_QP_PORT | ALB_QP_QKEY, 0},

    {ALB_QPT_RC, ALB_QPS_INIT, ALB_QPS_INIT, 0, ALB_QP_PKEY_INDEX | ALB_QP_PORT | ALB_QP_ACCESS_FLAGS},
    {ALB_QPT_UC, ALB_QPS_INIT, ALB_QPS_INIT, 0, ALB_QP_PKEY_INDEX | ALB_QP_PORT | ALB_QP_ACCESS_FLAGS},
    {ALB_QPT_UD, ALB_QPS_INIT, ALB_QPS_INIT, 0, ALB_QP_PKEY_INDEX | ALB_QP_PORT | ALB_QP_QKEY},

    {ALB_QPT_RC, ALB_QPS_INIT, ALB_QPS_RTR,
     ALB_QP_AV | ALB_QP_PATH_MTU | ALB_QP_DEST_QPN | ALB_QP_RQ_PSN | ALB_QP_MAX_DEST_RD_ATOMIC | ALB_QP_MIN_RNR_TIMER,
     ALB_QP_ALT_PATH | ALB_QP_ACCESS_FLAGS | ALB_QP_PKEY_INDEX},
    {ALB_QPT_UC, ALB_QPS_INIT, ALB_QPS_RTR, ALB_QP_AV | ALB_QP_PATH_MTU | ALB_QP_DEST_QPN | ALB_QP_RQ_PSN,
     ALB_QP_ALT_PATH | ALB_QP_ACCESS_FLAGS | ALB_QP_PKEY_INDEX},
    {ALB_QPT_UD, ALB_QPS_INIT, ALB_QPS_RTR, 0, ALB_QP_PKEY_INDEX | ALB_QP_QKEY},

    {ALB_QPT_RC, ALB_QPS_RTR, ALB_QPS_RTS,
     ALB_QP_TIMEOUT | ALB_QP_RETRY_CNT | ALB_QP_RNR_RETRY | ALB_QP_SQ_PSN | ALB_QP_MAX_QP_RD_ATOMIC,
     ALB_QP_CUR_STATE | ALB_QP_ALT_PATH | ALB_QP_ACCESS_FLAGS | ALB_QP_MIN_RNR_TIMER | ALB_QP_PATH_MIG_STATE},
    {ALB_QPT_UC, ALB_QPS_RTR, ALB_QPS_RTS, ALB_QP_SQ_PSN,
     ALB_QP_CUR_STATE | ALB_QP_ALT_PATH | ALB_QP_ACCESS_FLAGS | ALB_QP_PATH_MIG_STATE},
    {ALB_QPT_UD, ALB_QPS_RTR, ALB_QPS_RTS, ALB_QP_SQ_PSN, ALB_QP_CUR_STATE | ALB_QP_QKEY},

    {ALB_QPT_RC, ALB_QPS_RTS, ALB_QPS_RTS, 0,
     ALB_QP_CUR_STATE | ALB_QP_ACCESS_FLAGS | ALB_QP_ALT_PATH | ALB_QP_PATH_MIG_STATE | ALB_QP_MIN_RNR_TIMER},
    {ALB_QPT_UC, ALB_QPS_RTS, ALB_QPS_RTS, 0,
     ALB_QP_CUR_STATE | ALB_QP_ACCESS_FLAGS | ALB_QP_ALT_PATH | ALB_QP_PATH_MIG_STATE},
    {ALB_QPT_UD, ALB_QPS_RTS, ALB_QPS_RTS, 0, ALB_QP_CUR_STATE | ALB_QP_QKEY},

    {ALB_QPT_RC, ALB_QPS_RTS, ALB_QPS_SQD, 0, ALB_QP_EN_SQD_ASYNC_NOTIFY},
    {ALB_QPT_UC, ALB_QPS_RTS, ALB_QPS_SQD, 0, ALB_QP_EN_SQD_ASYNC_NOTIFY},
    {ALB_QPT_UD, ALB_QPS_RTS, ALB_QPS_SQD, 0, ALB_QP_EN_SQD_ASYNC_NOTIFY},

    {ALB_QPT_RC, ALB_QPS_SQD, ALB_QPS_RTS, 0,
     ALB_QP_CUR_STATE | ALB_QP_ALT_PATH | ALB_QP_ACCESS_FLAGS | ALB_QP_MIN_RNR_TIMER | ALB_QP_PATH_MIG_STATE},
    {ALB_QPT_UC, ALB_QPS_SQD, ALB_QPS_RTS, 0,
     ALB_QP_CUR_STATE | ALB_QP_ALT_PATH | ALB_QP_ACCESS_FLAGS | ALB_QP_PATH_MIG_STATE},
    {ALB_QPT_UD, ALB_QPS_SQD, ALB_QPS_RTS, 0, ALB_QP_CUR_STATE | ALB_QP_QKEY},

    {ALB_QPT_RC, ALB_QPS_SQD, ALB_QPS_SQD, 0,
     ALB_QP_PORT | ALB_QP_AV | ALB_QP_TIMEOUT | ALB_QP_RETRY_CNT | ALB_QP_RNR_RETRY | ALB_QP_MAX_QP_RD_ATOMIC |
         ALB_QP_MAX_DEST_RD_ATOMIC | ALB_QP_ALT_PATH | ALB_QP_ACCESS_FLAGS | ALB_QP_PKEY_INDEX | ALB_QP_MIN_RNR_TIMER |
         ALB_QP_PATH_MIG_STATE},
    {ALB_QPT_UC, ALB_QPS_SQD, ALB_QPS_SQD, 0,
     ALB_QP_AV | ALB_QP_ALT_PATH | ALB_QP_ACCESS_FLAGS | ALB_QP_PKEY_INDEX | ALB_QP_PATH_MIG_STATE},
    {ALB_QPT_UD, ALB_QPS_SQD, ALB_QPS_SQD, 0, ALB_QP_PKEY_INDEX | ALB_QP_QKEY},

    // A reliable queue pair never comes to SQE.
    {ALB_QPT_UC, ALB_QPS_SQE, ALB_QPS_RTS, 0, ALB_QP_CUR_STATE | ALB_QP_ACCESS_FLAGS},
    {ALB_QPT_UD, ALB_QPS_SQE, ALB_QPS_RTS, 0, ALB_QP_CUR_STATE | ALB_QP_QKEY},

    // Either half of XRC is also given what only the other needs.
    {ALB_QPT_XRC_SEND, ALB_QPS_RESET, ALB_QPS_INIT, ALB_QP_PKEY_INDEX | ALB_QP_PORT | ALB_QP_ACCESS_FLAGS, 0},
    {ALB_QPT_XRC_SEND, ALB_QPS_INIT, ALB_QPS_INIT, 0, ALB_QP_PKEY_INDEX | ALB_QP_PORT | ALB_QP_ACCESS_FLAGS},
    {ALB_QPT_XRC_SEND, ALB_QPS_INIT, ALB_QPS_RTR, ALB_QP_AV | ALB_QP_PATH_MTU | ALB_QP_DEST_QPN | ALB_QP_RQ_PSN,
     ALB_QP_ALT_PATH | ALB_QP_ACCESS_FLAGS | ALB_QP_PKEY_INDEX | ALB_QP_MAX_DEST_RD_ATOMIC | ALB_QP_MIN_RNR_TIMER},
    {ALB_QPT_XRC_SEND, ALB_QPS_RTR, ALB_QPS_RTS,
     ALB_QP_TIMEOUT | ALB_QP_RETRY_CNT | ALB_QP_RNR_RETRY | ALB_QP_SQ_PSN | ALB_QP_MAX_QP_RD_ATOMIC,
     ALB_QP_CUR_STATE | ALB_QP_ALT_PATH | ALB_QP_ACCESS_FLAGS | ALB_QP_MIN_RNR_TIMER | ALB_QP_PATH_MIG_STATE},

    {ALB_QPT_XRC_RECV, ALB_QPS_RESET, ALB_QPS_INIT, ALB_QP_PKEY_INDEX | ALB_QP_PORT | ALB_QP_ACCESS_FLAGS, 0},
    {ALB_QPT_XRC_RECV, ALB_QPS_INIT, ALB_QPS_INIT, 0, ALB_QP_PKEY_INDEX | ALB_QP_PORT | ALB_QP_ACCESS_FLAGS},
    {ALB_QPT_XRC_RECV, ALB_QPS_INIT, ALB_QPS_RTR,
     ALB_QP_AV | ALB_QP_PATH_MTU | ALB_QP_DEST_QPN | ALB_QP_RQ_PSN | ALB_QP_MAX_DEST_RD_ATOMIC | ALB_QP_MIN_RNR_TIMER,
     ALB_QP_ALT_PATH | ALB_QP_ACCESS_FLAGS | ALB_QP_PKEY_INDEX},
    {ALB_QPT_XRC_RECV, ALB_QPS_RTR, ALB_QPS_RTS, ALB_QP_TIMEOUT | ALB_QP_SQ_PSN,
     ALB_QP_CUR_STATE | ALB_QP_ALT_PATH | ALB_QP_ACCESS_FLAGS | ALB_QP_MIN_RNR_TIMER | ALB_QP_PATH_MIG_STATE |
         ALB_QP_RETRY_CNT | ALB_QP_RNR_RETRY | ALB_QP_MAX_QP_RD_ATOMIC},

    {ALB_QPT_XRC_SEND, ALB_QPS_RTS, ALB_QPS_RTS, 0,
     ALB_QP_CUR_STATE | ALB_QP_ACCESS_FLAGS | ALB_QP_ALT_PATH | ALB_QP_PATH_MIG_STATE | ALB_QP_MIN_RNR_TIMER},
    {ALB_QPT_XRC_SEND, ALB_QPS_RTS, ALB_QPS_SQD, 0, ALB_QP_EN_SQD_ASYNC_NOTIFY},
    {ALB_QPT_XRC_SEND, ALB_QPS_SQD, ALB_QPS_RTS, 0,
     ALB_QP_CUR_STATE | ALB_QP_ALT_PATH | ALB_QP_ACCESS_FLAGS | ALB_QP_MIN_RNR_TIMER | ALB_QP_PATH_MIG_STATE},
    {ALB_QPT_XRC_SEND, ALB_QPS_SQD, ALB_QPS_SQD, 0,
     ALB_QP_PORT | ALB_QP_AV | ALB_QP_TIMEOUT | ALB_QP_RETRY_CNT | ALB_QP_RNR_RETRY | ALB_QP_MAX_QP_RD_ATOMIC |
         ALB_QP_MAX_DEST_RD_ATOMIC | ALB_QP_ALT_PATH | ALB_QP_ACCESS_FLAGS | ALB_QP_PKEY_INDEX | ALB_QP_MIN_RNR_TIMER |
         ALB_QP_PATH_MIG_STATE},

    {ALB_QPT_XRC_RECV, ALB_QPS_RTS, ALB_QPS_RTS, 0,
     ALB_QP_CUR_STATE | ALB_QP_ACCESS_FLAGS | ALB_QP_ALT_PATH | ALB_QP_PATH_MIG_STATE | ALB_QP_MIN_RNR_TIMER},
    {ALB_QPT_XRC_RECV, ALB_QPS_RTS, ALB_QPS_SQD, 0, ALB_QP_EN_SQD_ASYNC_NOTIFY},
    {ALB_QPT_XRC_RECV, ALB_QPS_SQD, ALB_QPS_RTS, 0,
     ALB_QP_CUR_STATE | ALB_QP_ALT_PATH | ALB_QP_ACCESS_FLAGS | ALB_QP_MIN_RNR_TIMER | ALB_QP_PATH_MIG_STATE},
    {ALB_QPT_XRC_RECV, ALB_QPS_SQD, ALB_QPS_SQD, 0,
     ALB_QP_PORT | ALB_QP_AV | ALB_QP_TIMEOUT | ALB_QP_RETRY_CNT | ALB_QP_RNR_RETRY | ALB_QP_MAX_QP_RD_ATOMIC |
         ALB_QP_MAX_DEST_RD_ATOMIC | ALB_QP_ALT_PATH | ALB_QP_ACCESS_FLAGS | ALB_QP_PKEY_INDEX | ALB_QP_MIN_RNR_TIMER |
         ALB_QP_PATH_MIG_STATE},
};

static const enum alb_qp_type types[] = {ALB_QPT_RC, ALB_QPT_UC, ALB_QPT_UD, ALB_QPT_XRC_SEND, ALB_QPT_XRC_RECV};

static const struct sentence *find(enum alb_qp_type type, enum alb_qp_state from, enum alb_qp_state to)
{
    static const struct sentence bare = {0};
    // From everywhere to RESET; to ERR from everywhere but RESET.
    if (to == ALB_QPS_RESET || (to == ALB_QPS_ERR && from != ALB_QPS_RESET))
        return &bare;
    for (size_t i = 0; i < ALB_COUNT(sentences); i++)
        if (sentences[i].type == type && sentences[i].from == from && sentences[i].to == to)
            return &sentences[i];
    return NULL;
}

// Calls check for every type, every two states, and what the sentences say about them (NULL: not legal).
static void for_each_move(void (*check)(enum alb_qp_type, enum alb_qp_state, enum alb_qp_state,
                                        const struct sentence *))
{
    for (size_t t = 0; t < ALB_COUNT(types); t++)
        for (enum alb_qp_state from = 0; from < STATES; from++)
            for (enum alb_qp_state to = 0; to < STATES; to++)
                check(types[t], from, to, find(types[t], from, to));
}

static void check_least(enum alb_qp_type type, enum alb_qp_state from, enum alb_qp_state to, const struct sentence *s)
{
    uint32_t least = ALB_QP_STATE | (s ? s->required : 0);
    if (alb_qp_state_can_move(type, from, to, least) != (s != NULL))
        fail_msg("type %d, %s to %s", type, alb_qp_state_name(from), alb_qp_state_name(to));
}

static void alb_qp_state_can_move__legal_moves_with_what_they_require(void **state)
{
    for_each_move(check_least);
}

static void check_missing(enum alb_qp_type type, enum alb_qp_state from, enum alb_qp_state to, const struct sentence *s)
{
    for (uint32_t bit = 1; s && bit; bit <<= 1)
        if (s->required & bit && alb_qp_state_can_move(type, from, to, ALB_QP_STATE | (s->required & ~bit)))
            fail_msg("type %d, %s to %s without %#x", type, alb_qp_state_name(from), alb_qp_state_name(to), bit);
}

static void alb_qp_state_can_move__refuses_each_required_attribute_missing(void **state)
{
    for_each_move(check_missing);
}

static void check_extra(enum alb_qp_type type, enum alb_qp_state from, enum alb_qp_state to, const struct sentence *s)
{
    for (uint32_t bit = 1; s && bit; bit <<= 1) {
        if ((s->required | ALB_QP_STATE) & bit)
            continue;
        bool is_allowed = s->optional & bit;
        if (alb_qp_state_can_move(type, from, to, ALB_QP_STATE | s->required | bit) != is_allowed)
            fail_msg("type %d, %s to %s with %#x", type, alb_qp_state_name(from), alb_qp_state_name(to), bit);
    }
}

static void alb_qp_state_can_move__allows_each_optional_attribute_and_no_other(void **state)
{
    for_each_move(check_extra);
}

static void check_most(enum alb_qp_type type, enum alb_qp_state from, enum alb_qp_state to, const struct sentence *s)
{
    if (s)
        assert_true(alb_qp_state_can_move(type, from, to, ALB_QP_STATE | s->required | s->optional));
    assert_false(alb_qp_state_can_move(type, from, to, ALL_BITS));
}

static void alb_qp_state_can_move__all_optional_attributes_at_once(void **state)
{
    for_each_move(check_most);
}

static void alb_qp_state_can_move__unknown_types_and_states(void **state)
{
    assert_false(alb_qp_state_can_move(8, ALB_QPS_RTS, ALB_QPS_ERR, ALB_QP_STATE));
    assert_false(alb_qp_state_can_move(0, ALB_QPS_RESET, ALB_QPS_RESET, ALB_QP_STATE));
    assert_false(alb_qp_state_can_move(ALB_QPT_RC, STATES, ALB_QPS_RESET, ALB_QP_STATE));
    assert_false(alb_qp_state_can_move(ALB_QPT_RC, ALB_QPS_RESET, STATES, ALB_QP_STATE));
    assert_false(alb_qp_state_can_move(ALB_QPT_RC, ALB_QPS_RTS, (enum alb_qp_state) - 1, ALB_QP_STATE));
}

static void alb_qp_state_name__each(void **state)
{
    static const char *const names[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};
    for (enum alb_qp_state i = 0; i < STATES; i++)
        assert_string_equal(alb_qp_state_name(i), names[i]);
    assert_string_equal(alb_qp_state_name(STATES), "invalid");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alb_qp_state_can_move__legal_moves_with_what_they_require),
        cmocka_unit_test(alb_qp_state_can_move__refuses_each_required_attribute_missing),
        cmocka_unit_test(alb_qp_state_can_move__allows_each_optional_attribute_and_no_other),
        cmocka_unit_test(alb_qp_state_can_move__all_optional_attributes_at_once),
        cmocka_unit_test(alb_qp_state_can_move__unknown_types_and_states),
        cmocka_unit_test(alb_qp_state_name__each),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
