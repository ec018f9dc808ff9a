// SPDX-License-Identifier: BSD-2-Clause
#include "engine/tests/reflect_pair.h"

int reflect_pair_setup(void **state)
{
    struct csa_pair *c = csa_pair_new(NULL, NULL);
    assert_int_equal(alb_qp_txn_enable(c->qps[0], REFLECT_PAIR_IN_FLIGHT), 0);
    *state = c;
    return 0;
}

void reflect_pair_make(struct csa_pair *c, struct reflect_made *made, uint64_t wr_id, uint32_t offset, uint32_t length)
{
    *made = (struct reflect_made){.wr = {
                                      .wr_id = wr_id,
                                      .flags = ALB_SEND_SIGNALED,
                                      .writes = made->writes,
                                      .compares = made->compares,
                                      .level = ALB_LEVEL_COMMITTED,
                                      .submitted = c->pair->now,
                                  }};
    reflect_pair_add(c, made, offset, length);
}

void reflect_pair_add(struct csa_pair *c, struct reflect_made *made, uint32_t offset, uint32_t length)
{
    uint32_t i = made->wr.write_count++;
    made->sge[i] = pair_sge(c->pair, 0, offset, length);
    made->writes[i] = (struct alb_txn_write){
        .remote_addr = pair_va(c->pair, 1, offset),
        .rkey = alb_region_key(c->pair->hosts[1].mr),
        .sge = &made->sge[i],
        .sge_count = 1,
    };
}

void reflect_pair_compare(struct csa_pair *c, struct reflect_made *made, uint32_t offset, uint64_t expected)
{
    made->compares[made->wr.compare_count++] = (struct alb_txn_compare){
        .remote_addr = pair_va(c->pair, 1, offset),
        .expected = expected,
        .mask = UINT64_MAX,
        .rkey = alb_region_key(c->pair->hosts[1].mr),
    };
}

uint64_t reflect_pair_post(struct csa_pair *c, struct reflect_made *made)
{
    uint64_t number;
    assert_int_equal(alb_qp_txn_stage(c->qps[0], &made->wr, &number), 0);
    alb_qp_send_commit(c->qps[0]);
    alb_engine_bell_ring(c->qps[0]);
    return number;
}

void reflect_pair_expect(struct csa_pair *c, uint64_t wr_id, enum alb_txn_reason reason)
{
    struct alb_wc wc;
    assert_true(pair_poll(c->pair, 0, &wc));
    assert_int_equal(wc.wr_id, wr_id);
    assert_int_equal(wc.vendor_err, reason);
    assert_int_equal(wc.status == ALB_WC_SUCCESS, reason == ALB_TXN_OK);
    assert_int_equal(alb_qp_current_state(c->qps[0]), ALB_QPS_RTS);
}

enum alb_txn_state reflect_pair_state(struct csa_pair *c, uint64_t number)
{
    struct alb_txn_status status;
    assert_int_equal(alb_qp_txn_query(c->qps[0], number, &status), 0);
    return status.state;
}

struct alb_txn_in *reflect_pair_record(struct csa_pair *c, uint64_t number)
{
    const struct alb_txn_id id = {.initiator = c->csa[0]->reflect_out->initiator, .number = number};
    return alb_txn_in_find(c->engines[1], &id);
}

bool reflect_pair_is_exposed(struct csa_pair *c, uint32_t offset, uint32_t length)
{
    return memcmp(c->pair->hosts[0].memory + offset, c->pair->hosts[1].memory + offset, length) == 0;
}

void reflect_pair_fill_staging(struct csa_pair *c)
{
    struct alb_reflect_engine *reflect = c->engines[1]->reflect;
    while (alb_buddy_get(&reflect->staging.buddy, 1) || alb_buddy_get(&reflect->table.buddy, 1))
        ;
}

void reflect_pair_lose(struct csa_pair *c, int side, enum alb_csa_type type)
{
    for (uint32_t rounds = 0; rounds < 100; rounds++) {
        if (pair_send(c->pair, 0) + pair_send(c->pair, 1) == 0)
            pair_pass(c->pair, ALB_NS_PER_MS);
        pair_deliver_all(c->pair, !side);
        while (pair_count(c->pair, side)) {
            struct csa_seen seen;
            bool has_it = false;
            csa_pair_look(c, side, 0, &seen);
            for (uint32_t i = 0; i < seen.count; i++)
                has_it |= seen.frames[i].type == type;
            if (has_it) {
                pair_lose(c->pair, side);
                return;
            }
            pair_deliver(c->pair, side);
        }
    }
    fail();
}
