// SPDX-License-Identifier: BSD-2-Clause
// What a digest covers is what docs/PROTOCOL.md says: written out by hand here, and digested in one piece.
#include "engine/tests/reflect_pair.h"

struct text {
    uint8_t bytes[1024];
    size_t length;
};

static void put64(struct text *text, uint64_t value)
{
    for (uint32_t i = 0; i < 8; i++)
        text->bytes[text->length++] = (uint8_t)(value >> 8 * i);
}

static void put(struct text *text, const char *bytes)
{
    memcpy(text->bytes + text->length, bytes, strlen(bytes));
    text->length += strlen(bytes);
}

static const struct alb_txn_id id = {.initiator = 0x1122334455667788, .number = 9};

static struct alb_digest ours(const struct alb_csa_proposal *proposal)
{
    struct alb_digest_state state;
    alb_txn_digest_begin(&state, &id);
    alb_txn_digest_part(&state, 0x99, 0x1000, 5);
    alb_digest_add(&state, "hello", 5);
    alb_txn_digest_part(&state, 0x98, 0x2000, 0);
    return alb_txn_digest_end(&state, proposal);
}

static void digest__is_that_of_the_specification(void **state)
{
    const struct alb_csa_proposal proposal = {
        .notifies = true,
        .imm_be = 7,
        .compare_count = 1,
        .compares = {{.va = 0x3000, .expected = 1, .mask = 3, .rkey = 0x97}},
    };
    struct text text = {.length = 0};
    put64(&text, id.initiator), put64(&text, id.number);
    put64(&text, 0x99), put64(&text, 0x1000), put64(&text, 5), put(&text, "hello");
    put64(&text, 0x98), put64(&text, 0x2000), put64(&text, 0);
    put64(&text, 0x97), put64(&text, 0x3000), put64(&text, 1), put64(&text, 3);
    put64(&text, 2), put64(&text, 7); // notify; the immediate
    struct alb_digest digest = ours(&proposal), expected = alb_digest_of(text.bytes, text.length);
    assert_true(alb_digest_is_equal(&digest, &expected));
}

static void digest__leaves_an_immediate_that_nobody_hears_out(void **state)
{
    struct alb_csa_proposal proposal = {.imm_be = 7};
    struct alb_digest one = ours(&proposal);
    proposal.imm_be = 8;
    struct alb_digest other = ours(&proposal);
    assert_true(alb_digest_is_equal(&one, &other));
    proposal.is_in_place = true;
    other = ours(&proposal);
    assert_false(alb_digest_is_equal(&one, &other));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(digest__is_that_of_the_specification),
        cmocka_unit_test(digest__leaves_an_immediate_that_nobody_hears_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
