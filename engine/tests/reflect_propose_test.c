// SPDX-License-Identifier: BSD-2-Clause
// Up to the verdict: what speaks against a transaction condemns it, and nothing else.
#include "engine/tests/reflect_pair.h"

static void expect_refused(struct csa_pair *c, uint64_t number, enum alb_txn_reason reason)
{
    uint64_t refused = csa_pair_stat(c, 1, ALB_STAT_txn_refused);
    pair_settle(c->pair);
    reflect_pair_expect(c, 7, reason);
    assert_int_equal(reflect_pair_state(c, number), ALB_TXN_ABORTED);
    assert_int_equal(csa_pair_stat(c, 1, ALB_STAT_txn_refused), refused + 1);
    assert_false(reflect_pair_is_exposed(c, 0, 64));
    assert_false(alb_region_is_claimed(c->pair->hosts[1].mr, pair_va(c->pair, 1, 0), PAIR_MEMORY_BYTES));
    struct reflect_made made; // and the next one is as good as ever
    reflect_pair_make(c, &made, 8, 4096, 64);
    reflect_pair_post(c, &made);
    pair_settle(c->pair);
    reflect_pair_expect(c, 8, ALB_TXN_OK);
}

static void access__key_that_there_is_not(void **state)
{
    struct csa_pair *c = *state;
    struct reflect_made made;
    reflect_pair_make(c, &made, 7, 0, 64);
    reflect_pair_add(c, &made, 1000, 3000);
    made.writes[1].rkey ^= 0x100;
    expect_refused(c, reflect_pair_post(c, &made), ALB_TXN_ACCESS);
}

static void access__beyond_the_region(void **state)
{
    struct csa_pair *c = *state;
    struct reflect_made made;
    reflect_pair_make(c, &made, 7, 0, 64);
    made.writes[0].remote_addr = pair_va(c->pair, 1, PAIR_MEMORY_BYTES - 63);
    expect_refused(c, reflect_pair_post(c, &made), ALB_TXN_ACCESS);
}

static void access__queue_pair_that_takes_no_writes(void **state)
{
    struct csa_pair *c = *state;
    struct reflect_made made;
    const struct alb_qp_attr attr = {.access = ALB_ACCESS_REMOTE_READ};
    assert_int_equal(alb_qp_modify(c->qps[1], &attr, ALB_QP_ACCESS_FLAGS, c->pair->now), 0);
    reflect_pair_make(c, &made, 7, 0, 64);
    uint64_t number = reflect_pair_post(c, &made);
    pair_settle(c->pair);
    reflect_pair_expect(c, 7, ALB_TXN_ACCESS);
    assert_int_equal(reflect_pair_state(c, number), ALB_TXN_ABORTED);
}

static void size__larger_than_the_staging_memory(void **state)
{
    struct csa_pair *c = *state;
    struct reflect_made made;
    reflect_pair_make(c, &made, 7, 0, 64);
    reflect_pair_add(c, &made, 0, 200 << 10);
    expect_refused(c, reflect_pair_post(c, &made), ALB_TXN_TOO_LARGE);
}

// What it takes is counted in blocks: of 256 KiB they leave none for anything else.
static void size__blocks_larger_than_the_staging_memory(void **state)
{
    struct csa_pair *c = *state;
    struct reflect_made made;
    reflect_pair_make(c, &made, 7, 0, 100 << 10);
    reflect_pair_add(c, &made, 100 << 10, 60 << 10);
    reflect_pair_add(c, &made, 200 << 10, 50 << 10);
    expect_refused(c, reflect_pair_post(c, &made), ALB_TXN_TOO_LARGE);
}

static void size__blocks_that_just_fit(void **state)
{
    struct csa_pair *c = *state;
    struct reflect_made made;
    reflect_pair_make(c, &made, 7, 0, 20 << 10);
    reflect_pair_add(c, &made, 20 << 10, 100 << 10);
    reflect_pair_add(c, &made, 120 << 10, 8);
    reflect_pair_add(c, &made, 128 << 10, 60 << 10);
    reflect_pair_post(c, &made);
    pair_settle(c->pair);
    reflect_pair_expect(c, 7, ALB_TXN_OK);
}

static void size__staging_memory_in_use(void **state)
{
    struct csa_pair *c = *state;
    struct reflect_made made;
    reflect_pair_make(c, &made, 1, 100 << 10, 100 << 10);
    made.wr.hold = true;
    uint64_t held = reflect_pair_post(c, &made);
    pair_settle(c->pair);
    reflect_pair_make(c, &made, 2, 0, 90 << 10);
    reflect_pair_post(c, &made);
    pair_settle(c->pair);
    assert_int_equal(alb_qp_txn_decide(c->qps[0], held, false, c->pair->now), 0);
    pair_settle(c->pair);
    reflect_pair_expect(c, 1, ALB_TXN_WITHDRAWN);
    struct alb_wc wc;
    assert_true(pair_poll(c->pair, 0, &wc));
    assert_true(wc.vendor_err == ALB_TXN_NO_MEMORY || wc.vendor_err == ALB_TXN_OK);
    reflect_pair_make(c, &made, 7, 0, 90 << 10);
    reflect_pair_post(c, &made);
    pair_settle(c->pair);
    reflect_pair_expect(c, 7, ALB_TXN_OK);
}

// There was no room when its first part came, and there is when the second one does.
static void size__staging_memory_in_use_for_a_moment(void **state)
{
    struct csa_pair *c = *state;
    struct alb_buddy *staging = &c->engines[1]->reflect->staging.buddy;
    struct reflect_made made;
    void *blocks[8192];
    uint32_t taken = 0;
    reflect_pair_make(c, &made, 1, 0, 2000);
    reflect_pair_post(c, &made);
    pair_settle(c->pair);
    reflect_pair_expect(c, 1, ALB_TXN_OK); // side 1 knows its initiator
    while ((blocks[taken] = alb_buddy_get(staging, 1)))
        taken++;
    reflect_pair_make(c, &made, 2, 0, 2000);
    reflect_pair_add(c, &made, 2000, 2000);
    reflect_pair_post(c, &made);
    pair_send(c->pair, 0);
    pair_deliver(c->pair, 0);
    while (taken > 0)
        alb_buddy_put(staging, blocks[--taken], 1);
    pair_settle(c->pair);
    reflect_pair_expect(c, 2, ALB_TXN_NO_MEMORY);
    assert_false(reflect_pair_is_exposed(c, 2000, 2000));
}

static void overlap__second_is_busy(void **state)
{
    struct csa_pair *c = *state;
    struct reflect_made made;
    reflect_pair_make(c, &made, 1, 1000, 100);
    made.wr.hold = true;
    uint64_t first = reflect_pair_post(c, &made);
    reflect_pair_make(c, &made, 2, 1099, 10);
    reflect_pair_post(c, &made);
    reflect_pair_make(c, &made, 3, 1100, 10);
    reflect_pair_post(c, &made);
    pair_settle(c->pair);
    assert_int_equal(alb_qp_txn_decide(c->qps[0], first, true, c->pair->now), 0);
    pair_settle(c->pair);
    reflect_pair_expect(c, 1, ALB_TXN_OK);
    reflect_pair_expect(c, 2, ALB_TXN_BUSY);
    reflect_pair_expect(c, 3, ALB_TXN_OK);
}

static void overlap__with_itself_is_allowed(void **state)
{
    struct csa_pair *c = *state;
    struct reflect_made made;
    reflect_pair_make(c, &made, 1, 1000, 100);
    reflect_pair_add(c, &made, 1050, 100);
    reflect_pair_post(c, &made);
    pair_settle(c->pair);
    // The digest covers each part as it was meant, and the second has written over the first: they were the same bytes.
    reflect_pair_expect(c, 1, ALB_TXN_OK);
    assert_true(reflect_pair_is_exposed(c, 1000, 150));
}

// Then no digest of what is exposed could be that of what was agreed.
static void overlap__with_itself_that_contradicts_itself(void **state)
{
    struct csa_pair *c = *state;
    struct reflect_made made;
    reflect_pair_make(c, &made, 1, 1000, 100);
    reflect_pair_add(c, &made, 3001, 100);
    made.writes[1].remote_addr = pair_va(c->pair, 1, 1050);
    reflect_pair_post(c, &made);
    pair_settle(c->pair);
    reflect_pair_expect(c, 1, ALB_TXN_MALFORMED);
    assert_false(alb_region_is_poisoned(c->pair->hosts[1].mr));
}

static void compare__holds_or_not(void **state)
{
    struct csa_pair *c = *state;
    struct reflect_made made;
    uint64_t word;
    memcpy(&word, c->pair->hosts[1].memory + 8192, sizeof(word));
    reflect_pair_make(c, &made, 1, 2000, 64);
    reflect_pair_compare(c, &made, 8192, word);
    reflect_pair_post(c, &made);
    pair_settle(c->pair);
    reflect_pair_expect(c, 1, ALB_TXN_OK);
    reflect_pair_make(c, &made, 7, 0, 64);
    reflect_pair_compare(c, &made, 8192, word);
    reflect_pair_compare(c, &made, 8200, 1);
    expect_refused(c, reflect_pair_post(c, &made), ALB_TXN_PRECONDITION);
}

static void compare__only_what_the_mask_has(void **state)
{
    struct csa_pair *c = *state;
    struct reflect_made made;
    uint64_t word;
    memcpy(&word, c->pair->hosts[1].memory + 8192, sizeof(word));
    reflect_pair_make(c, &made, 1, 2000, 64);
    reflect_pair_compare(c, &made, 8192, word ^ 0xff00);
    made.compares[0].mask = ~0xff00ull;
    reflect_pair_post(c, &made);
    pair_settle(c->pair);
    reflect_pair_expect(c, 1, ALB_TXN_OK);
}

static void compare__of_what_is_not_aligned(void **state)
{
    struct csa_pair *c = *state;
    struct reflect_made made;
    reflect_pair_make(c, &made, 7, 0, 64);
    reflect_pair_compare(c, &made, 8193, 1);
    expect_refused(c, reflect_pair_post(c, &made), ALB_TXN_ACCESS);
}

static void compare__word_is_bound_until_the_end(void **state)
{
    struct csa_pair *c = *state;
    struct reflect_made made;
    uint64_t word;
    memcpy(&word, c->pair->hosts[1].memory + 8192, sizeof(word));
    reflect_pair_make(c, &made, 1, 2000, 64);
    reflect_pair_compare(c, &made, 8192, word);
    made.wr.hold = true;
    uint64_t number = reflect_pair_post(c, &made);
    reflect_pair_make(c, &made, 2, 8192, 8);
    reflect_pair_post(c, &made);
    pair_settle(c->pair);
    assert_int_equal(alb_qp_txn_decide(c->qps[0], number, true, c->pair->now), 0);
    pair_settle(c->pair);
    reflect_pair_expect(c, 1, ALB_TXN_OK);
    reflect_pair_expect(c, 2, ALB_TXN_BUSY);
}

static void digest__changed_after_the_post_is_found(void **state)
{
    struct csa_pair *c = *state;
    struct reflect_made made;
    reflect_pair_make(c, &made, 7, 0, 64);
    uint64_t number = reflect_pair_post(c, &made);
    c->pair->hosts[0].memory[63] ^= 1;
    expect_refused(c, number, ALB_TXN_DIGEST);
    assert_int_equal(csa_pair_stat(c, 1, ALB_STAT_digest_mismatches), 1);
}

static void checked__program_accepts(void **state)
{
    struct csa_pair *c = *state;
    struct reflect_made made;
    struct alb_event event;
    struct alb_proposal proposal;
    int user;
    assert_int_equal(alb_mr_set_checked(c->pair->hosts[1].mr, true, &user), 0);
    reflect_pair_make(c, &made, 1, 0, 64);
    made.wr.notify = true;
    made.wr.imm_data = 77;
    assert_int_equal(pair_receive(c->pair, c->qps[1], 5, 0, 0), 0);
    reflect_pair_post(c, &made);
    pair_settle(c->pair);
    csa_pair_expect_none(c, 0);
    assert_true(pair_event(c->pair, 1, ALB_EVENT_PROPOSAL, &event));
    assert_true(alb_engine_proposal(c->engines[1], &proposal));
    assert_ptr_equal(proposal.user, &user);
    assert_int_equal(proposal.part_count, 1);
    assert_int_equal(proposal.parts[0].length, 64);
    assert_int_equal(proposal.imm_data, 77);
    assert_memory_equal(proposal.parts[0].bytes, c->pair->hosts[0].memory, 64);
    struct alb_proposal other;
    assert_false(alb_engine_proposal(c->engines[1], &other));
    assert_false(reflect_pair_is_exposed(c, 0, 64));
    assert_int_equal(alb_engine_proposal_answer(c->engines[1], &proposal.id, true, c->pair->now), 0);
    assert_int_equal(alb_engine_proposal_answer(c->engines[1], &proposal.id, true, c->pair->now), ENOENT);
    pair_settle(c->pair);
    reflect_pair_expect(c, 1, ALB_TXN_OK);
    assert_true(reflect_pair_is_exposed(c, 0, 64));
}

static void checked__program_refuses(void **state)
{
    struct csa_pair *c = *state;
    struct reflect_made made;
    struct alb_proposal proposal;
    assert_int_equal(alb_mr_set_checked(c->pair->hosts[1].mr, true, NULL), 0);
    reflect_pair_make(c, &made, 1, 0, 64);
    reflect_pair_post(c, &made);
    pair_settle(c->pair);
    assert_true(alb_engine_proposal(c->engines[1], &proposal));
    assert_int_equal(alb_engine_proposal_answer(c->engines[1], &proposal.id, false, c->pair->now), 0);
    pair_settle(c->pair);
    reflect_pair_expect(c, 1, ALB_TXN_REJECTED);
    assert_false(reflect_pair_is_exposed(c, 0, 64));
}

static void checked__program_that_never_answers(void **state)
{
    struct csa_pair *c = *state;
    struct reflect_made made;
    struct alb_proposal proposal;
    assert_int_equal(alb_mr_set_checked(c->pair->hosts[1].mr, true, NULL), 0);
    reflect_pair_make(c, &made, 1, 0, 64);
    made.wr.lease_ns = 20 * ALB_NS_PER_MS;
    uint64_t number = reflect_pair_post(c, &made);
    pair_settle(c->pair);
    assert_true(alb_engine_proposal(c->engines[1], &proposal));
    for (uint32_t i = 0; i < 25; i++) { // the initiator asks on, and hears that it is pending
        pair_pass(c->pair, ALB_NS_PER_MS);
        pair_settle(c->pair);
    }
    reflect_pair_expect(c, 1, ALB_TXN_LEASE);
    assert_int_equal(reflect_pair_record(c, number)->state, ALB_TXN_ABORTED);
    assert_memory_equal(proposal.parts[0].bytes, c->pair->hosts[0].memory, 64); // may still be looked at
    assert_int_equal(alb_engine_proposal_answer(c->engines[1], &proposal.id, true, c->pair->now), ENOENT);
    assert_false(reflect_pair_is_exposed(c, 0, 64));
}

// Its initiator may be gone: what came is given up, and closing need not wait for the rest.
// The initiator has a queue pair with room for so many parts and a proposal.
static void use_deep_queue(struct csa_pair *c)
{
    struct alb_qp *qps[2];
    for (int side = 0; side < 2; side++) {
        struct alb_qp_init init = {.type = ALB_QPT_RC,
                                   .cap = {.send_wr_max = ALB_TXN_WRITES_MAX + 1, .send_sge_max = 1}};
        qps[side] = pair_qp_with(c->pair, side, &init);
    }
    for (int side = 0; side < 2; side++) {
        struct alb_qp_attr attr = pair_attr(c->pair, side, qps[!side]);
        assert_int_equal(pair_move(c->pair, qps[side], ALB_QPS_RTS, &attr), 0);
    }
    c->qps[0] = qps[0];
    assert_int_equal(alb_qp_txn_enable(c->qps[0], REFLECT_PAIR_IN_FLIGHT), 0);
}

static void parts__as_many_as_there_may_be(void **state)
{
    struct csa_pair *c = *state;
    struct reflect_made made;
    struct alb_txn_write writes[ALB_TXN_WRITES_MAX];
    struct alb_sge sge[ALB_TXN_WRITES_MAX];
    use_deep_queue(c);
    reflect_pair_make(c, &made, 1, 0, 10);
    for (uint32_t i = 0; i < ALB_TXN_WRITES_MAX; i++) {
        sge[i] = pair_sge(c->pair, 0, 10 * i, 10);
        writes[i] = made.writes[0];
        writes[i].sge = &sge[i];
        writes[i].remote_addr = pair_va(c->pair, 1, 10 * i);
    }
    made.wr.writes = writes;
    made.wr.write_count = ALB_TXN_WRITES_MAX;
    reflect_pair_post(c, &made);
    pair_settle(c->pair);
    reflect_pair_expect(c, 1, ALB_TXN_OK);
    assert_true(reflect_pair_is_exposed(c, 0, 10 * ALB_TXN_WRITES_MAX));
}

static void parts__that_nobody_proposes(void **state)
{
    struct csa_pair *c = *state;
    struct reflect_made made;
    reflect_pair_make(c, &made, 1, 0, 3000);
    reflect_pair_post(c, &made);
    pair_send(c->pair, 0);
    pair_deliver(c->pair, 0);
    while (pair_count(c->pair, 0) > 0)
        pair_lose(c->pair, 0);
    assert_false(alb_reflect_in_is_quiet(c->csa[1]->reflect_in));
    const struct alb_qp_attr attr = {.state = ALB_QPS_RESET};
    assert_int_equal(alb_qp_modify(c->qps[0], &attr, ALB_QP_STATE, c->pair->now), 0);
    for (uint32_t i = 0; i < 2; i++) {
        pair_pass(c->pair, c->engines[1]->config.txn_lease_ns);
        pair_settle(c->pair);
    }
    assert_true(alb_reflect_in_is_quiet(c->csa[1]->reflect_in));
}

// Over a slow way a transaction takes longer than a lease to arrive.
static void parts__that_come_slowly(void **state)
{
    struct csa_pair *c = *state;
    struct reflect_made made;
    c->engines[1]->config.txn_lease_ns = 2 * ALB_NS_PER_MS; // less than the initiator's patience
    reflect_pair_make(c, &made, 1, 0, 3000);
    reflect_pair_post(c, &made);
    pair_send(c->pair, 0);
    assert_true(pair_count(c->pair, 0) >= 3);
    for (uint32_t i = 0; i < 3; i++) {
        pair_deliver(c->pair, 0);
        pair_pass(c->pair, c->engines[1]->config.txn_lease_ns * 9 / 10);
    }
    pair_settle(c->pair);
    reflect_pair_expect(c, 1, ALB_TXN_OK);
    assert_true(reflect_pair_is_exposed(c, 0, 3000));
}

static void in_place__readers_are_held_out_from_the_first_byte(void **state)
{
    struct csa_pair *c = *state;
    struct reflect_made made;
    static _Atomic uint64_t words[1];
    words[0] = 0;
    assert_int_equal(alb_mr_set_versions(c->pair->hosts[1].mr, words, PAIR_MEMORY_BYTES), 0);
    reflect_pair_make(c, &made, 1, 0, 3000);
    made.wr.in_place = true;
    uint64_t number = reflect_pair_post(c, &made);
    pair_send(c->pair, 0);
    pair_deliver(c->pair, 0);
    assert_true(words[0] & 1);
    assert_true(reflect_pair_is_exposed(c, 0, 1000));
    pair_settle(c->pair);
    reflect_pair_expect(c, 1, ALB_TXN_OK);
    assert_false(words[0] & 1);
    assert_int_equal(reflect_pair_state(c, number), ALB_TXN_COMMITTED);
}

static void in_place__abort_puts_back_what_stood_there(void **state)
{
    struct csa_pair *c = *state;
    struct reflect_made made;
    static uint8_t before[3000];
    static _Atomic uint64_t words[1];
    words[0] = 0;
    assert_int_equal(alb_mr_set_versions(c->pair->hosts[1].mr, words, PAIR_MEMORY_BYTES), 0);
    memcpy(before, c->pair->hosts[1].memory, sizeof(before));
    reflect_pair_make(c, &made, 1, 0, 3000);
    made.wr.in_place = true;
    made.wr.hold = true;
    uint64_t number = reflect_pair_post(c, &made);
    pair_settle(c->pair);
    assert_true(reflect_pair_is_exposed(c, 0, 3000) && (words[0] & 1));
    assert_int_equal(alb_qp_txn_decide(c->qps[0], number, false, c->pair->now), 0);
    pair_settle(c->pair);
    reflect_pair_expect(c, 1, ALB_TXN_WITHDRAWN);
    assert_memory_equal(before, c->pair->hosts[1].memory, sizeof(before));
    assert_false(words[0] & 1);
}

// What the transaction's own parts have put there is not what it asks for.
static void in_place__compares_what_stood_there_before(void **state)
{
    struct csa_pair *c = *state;
    struct reflect_made made;
    uint64_t before, after;
    memcpy(&before, c->pair->hosts[1].memory + 64, sizeof(before));
    memcpy(&after, c->pair->hosts[0].memory + 64, sizeof(after));
    assert_int_not_equal(before, after);
    for (uint32_t i = 0; i < 2; i++) {
        reflect_pair_make(c, &made, i, 0, 68); // half of the word
        reflect_pair_add(c, &made, 66, 30);    // the rest, and some of it once more
        reflect_pair_compare(c, &made, 64, i == 0 ? after : before);
        made.wr.in_place = true;
        reflect_pair_post(c, &made);
        pair_settle(c->pair);
        reflect_pair_expect(c, i, i == 0 ? ALB_TXN_PRECONDITION : ALB_TXN_OK);
        assert_int_equal(reflect_pair_is_exposed(c, 0, 96), i == 1);
    }
}

static void make_in_place_overlap(struct csa_pair *c, struct reflect_made *made)
{
    reflect_pair_make(c, made, 1, 0, 3000);
    reflect_pair_add(c, made, 1000, 1500);
    reflect_pair_add(c, made, 2000, 2000);
    made->wr.in_place = true;
    made->wr.hold = true;
}

static void in_place__abort_puts_back_what_stood_under_several_parts(void **state)
{
    struct csa_pair *c = *state;
    struct reflect_made made;
    static uint8_t before[4000];
    memcpy(before, c->pair->hosts[1].memory, sizeof(before));
    make_in_place_overlap(c, &made);
    uint64_t number = reflect_pair_post(c, &made);
    pair_settle(c->pair);
    assert_true(reflect_pair_is_exposed(c, 0, 4000));
    assert_int_equal(alb_qp_txn_decide(c->qps[0], number, false, c->pair->now), 0);
    pair_settle(c->pair);
    reflect_pair_expect(c, 1, ALB_TXN_WITHDRAWN);
    assert_memory_equal(before, c->pair->hosts[1].memory, sizeof(before));
}

// All of it goes back with the first part that is lost, once, and readers see it again.
static void in_place__region_that_goes_under_several_parts(void **state)
{
    struct csa_pair *c = *state;
    struct reflect_made made;
    struct alb_region *mr;
    struct pair_host *host = &c->pair->hosts[1];
    static uint8_t before[4000];
    static _Atomic uint64_t words[1];
    words[0] = 0;
    memcpy(before, host->memory, sizeof(before));
    for (uint32_t is_bound = 0; is_bound < 2; is_bound++) {
        assert_int_equal(alb_mr_create(host->pd, host->memory, 8192, (uintptr_t)host->memory, PAIR_ACCESS_ALL, &mr), 0);
        assert_int_equal(alb_mr_set_versions(mr, words, 8192), 0);
        make_in_place_overlap(c, &made);
        for (uint32_t i = 0; i < 3; i++)
            made.writes[i].rkey = alb_region_key(mr);
        reflect_pair_post(c, &made);
        if (is_bound) {
            pair_settle(c->pair);
        } else {
            pair_send(c->pair, 0);
            while (!reflect_pair_is_exposed(c, 0, 3500))
                pair_deliver(c->pair, 0);
        }
        assert_true(words[0] & 1);
        assert_int_equal(alb_mr_destroy(mr), 0);
        assert_memory_equal(before, host->memory, sizeof(before));
        assert_false(words[0] & 1);
        pair_settle(c->pair);
        reflect_pair_expect(c, 1, ALB_TXN_REGION_GONE);
        assert_memory_equal(before, host->memory, sizeof(before));
        assert_false(words[0] & 1);
    }
}

static void parts__that_stop_coming_are_given_up(void **state)
{
    struct csa_pair *c = *state;
    struct alb_csa_segment part = csa_pair_write(c, 0, 0, 0, 5000, 1024, 0);
    part.op = ALB_CSA_TXN_WRITE;
    part.txn.number = 1;
    part.txn_mode = ALB_CSA_TXN_IN_PLACE;
    static uint8_t before[5000];
    memcpy(before, c->pair->hosts[1].memory, sizeof(before));
    csa_pair_arrive_segment(c, 0, &part, 0x11);
    assert_int_equal(c->pair->hosts[1].memory[0], 0x11);
    pair_pass(c->pair, 2 * ALB_NS_PER_S);
    assert_memory_equal(before, c->pair->hosts[1].memory, sizeof(before));
    part = csa_pair_write(c, 0, 1, 1, 5000, 1024, 0);
    part.op = ALB_CSA_TXN_WRITE;
    part.txn.number = 1;
    part.txn_mode = ALB_CSA_TXN_IN_PLACE;
    csa_pair_arrive_segment(c, 0, &part, 0x22);
    assert_memory_equal(before, c->pair->hosts[1].memory, sizeof(before));
}

static void proposal__that_is_none_is_an_invalid_request(void **state)
{
    struct csa_pair *c = *state;
    struct alb_csa_segment end = csa_pair_write(c, 0, 0, 0, 60, 60, ALB_CSA_LAST);
    end.op = ALB_CSA_TXN_END;
    csa_pair_arrive_segment(c, 0, &end, 0);
    assert_int_equal(alb_qp_current_state(c->qps[1]), ALB_QPS_ERR);
    assert_int_equal(csa_pair_stat(c, 1, ALB_STAT_resp_remote_invalid_request), 1);
}

// What came in place before a proposal that does not fit is taken back with it.
static void proposal__of_other_parts_than_came(void **state)
{
    struct csa_pair *c = *state;
    struct csa_made made;
    struct alb_csa_proposal proposal = {
        .id = {.initiator = 5, .number = 2}, .bytes = 1000, .part_count = 1, .is_in_place = true};
    uint8_t bytes[512];
    static uint8_t before[1000];
    static _Atomic uint64_t words[1];
    words[0] = 0;
    assert_int_equal(alb_mr_set_versions(c->pair->hosts[1].mr, words, PAIR_MEMORY_BYTES), 0);
    memcpy(before, c->pair->hosts[1].memory, sizeof(before));
    struct alb_csa_segment part = csa_pair_write(c, 0, 0, 0, 1000, 1000, ALB_CSA_LAST);
    part.op = ALB_CSA_TXN_WRITE;
    part.txn.number = 1;
    part.txn_mode = ALB_CSA_TXN_IN_PLACE;
    csa_pair_arrive_segment(c, 0, &part, 0x11);
    assert_int_equal(c->pair->hosts[1].memory[0], 0x11);
    assert_true(words[0] & 1);
    uint32_t length = alb_csa_encode_proposal(&proposal, bytes);
    struct alb_csa_segment end = csa_pair_write(c, 0, 1, 0, length, length, ALB_CSA_LAST);
    end.op = ALB_CSA_TXN_END;
    csa_pair_make(c, 0, &made);
    csa_pair_add_segment(&made, ALB_CSA_REQUEST, &end, bytes);
    csa_pair_arrive(c, 0, &made);
    assert_memory_equal(before, c->pair->hosts[1].memory, sizeof(before));
    assert_false(words[0] & 1);
    struct alb_csa_frame frame;
    pair_send(c->pair, 1);
    assert_int_equal(csa_pair_count(c, 1, ALB_CSA_VERDICT, &frame), 1);
    assert_int_equal(frame.verdict.state, ALB_CSA_VERDICT_ABORTED);
    assert_int_equal(frame.verdict.reason, ALB_TXN_MALFORMED);
    assert_int_equal(frame.verdict.id.number, 2);
}

// A part of a transaction, where there are none, is an invalid request.
static void expect_invalid(struct csa_pair *c, const struct alb_qp *qp, struct alb_csa_segment *part)
{
    part->op = ALB_CSA_TXN_WRITE;
    part->txn.number = 1;
    csa_pair_arrive_segment(c, 0, part, 0x11);
    assert_int_equal(alb_qp_current_state(qp), ALB_QPS_ERR);
    assert_int_equal(csa_pair_stat(c, 1, ALB_STAT_resp_remote_invalid_request), 1);
}

static void without_staging(struct alb_engine_config *config)
{
    config->txn_staging_bytes = 0;
}

static void parts__at_a_device_without_transactions(void **state)
{
    struct csa_pair *c = csa_pair_new(without_staging, NULL);
    struct alb_csa_segment part = csa_pair_write(c, 0, 0, 0, 8, 8, ALB_CSA_LAST);
    expect_invalid(c, c->qps[1], &part);
    csa_pair_free(c);
}

static void parts__for_a_queue_pair_of_xrc(void **state)
{
    struct csa_pair *c = *state;
    const struct pair_host *host = &c->pair->hosts[1];
    struct alb_xrcd *xrcd;
    struct alb_srq *srq;
    assert_int_equal(alb_xrcd_create(c->engines[1], &xrcd), 0);
    assert_int_equal(alb_srq_create_xrc(host->pd, xrcd, host->cq, 4, 1, 0, NULL, &srq), 0);
    struct alb_qp_init init = {.type = ALB_QPT_XRC_RECV, .xrcd = xrcd};
    struct alb_qp *qp = pair_qp_with(c->pair, 1, &init);
    struct alb_qp_attr attr = pair_attr(c->pair, 1, c->qps[0]);
    assert_int_equal(pair_move(c->pair, qp, ALB_QPS_RTR, &attr), 0);
    struct alb_csa_segment part = csa_pair_write(c, 0, 0, 0, 8, 8, ALB_CSA_LAST | ALB_CSA_XRC);
    part.dest_qpn = alb_qp_number(qp);
    part.xrc_srqn = alb_srq_number(srq);
    expect_invalid(c, qp, &part);
    assert_int_equal(alb_qp_destroy(qp), 0);
    assert_int_equal(alb_srq_destroy(srq), 0);
    assert_int_equal(alb_xrcd_destroy(xrcd), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        REFLECT_PAIR_TEST(access__key_that_there_is_not),
        REFLECT_PAIR_TEST(access__beyond_the_region),
        REFLECT_PAIR_TEST(access__queue_pair_that_takes_no_writes),
        REFLECT_PAIR_TEST(size__larger_than_the_staging_memory),
        REFLECT_PAIR_TEST(size__blocks_larger_than_the_staging_memory),
        REFLECT_PAIR_TEST(size__blocks_that_just_fit),
        REFLECT_PAIR_TEST(size__staging_memory_in_use),
        REFLECT_PAIR_TEST(size__staging_memory_in_use_for_a_moment),
        REFLECT_PAIR_TEST(overlap__second_is_busy),
        REFLECT_PAIR_TEST(overlap__with_itself_is_allowed),
        REFLECT_PAIR_TEST(compare__holds_or_not),
        REFLECT_PAIR_TEST(compare__only_what_the_mask_has),
        REFLECT_PAIR_TEST(compare__of_what_is_not_aligned),
        REFLECT_PAIR_TEST(compare__word_is_bound_until_the_end),
        REFLECT_PAIR_TEST(digest__changed_after_the_post_is_found),
        REFLECT_PAIR_TEST(checked__program_accepts),
        REFLECT_PAIR_TEST(checked__program_refuses),
        REFLECT_PAIR_TEST(checked__program_that_never_answers),
        REFLECT_PAIR_TEST(parts__as_many_as_there_may_be),
        REFLECT_PAIR_TEST(parts__that_nobody_proposes),
        REFLECT_PAIR_TEST(parts__that_come_slowly),
        REFLECT_PAIR_TEST(in_place__readers_are_held_out_from_the_first_byte),
        REFLECT_PAIR_TEST(in_place__abort_puts_back_what_stood_there),
        REFLECT_PAIR_TEST(in_place__compares_what_stood_there_before),
        REFLECT_PAIR_TEST(parts__that_stop_coming_are_given_up),
        REFLECT_PAIR_TEST(proposal__that_is_none_is_an_invalid_request),
        REFLECT_PAIR_TEST(proposal__of_other_parts_than_came),
        cmocka_unit_test(parts__at_a_device_without_transactions),
        REFLECT_PAIR_TEST(parts__for_a_queue_pair_of_xrc),
        REFLECT_PAIR_TEST(overlap__with_itself_that_contradicts_itself),
        REFLECT_PAIR_TEST(in_place__abort_puts_back_what_stood_under_several_parts),
        REFLECT_PAIR_TEST(in_place__region_that_goes_under_several_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
