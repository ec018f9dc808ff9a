// SPDX-License-Identifier: BSD-2-Clause
// An initiator (side 0) and a target (side 1) of transactions, over two hosts that speak CSA.
#pragma once

#include "engine/tests/csa_pair.h"
#include "engine/transaction.h"

enum {
    REFLECT_PAIR_IN_FLIGHT = 8,
};

// Setup and teardown as csa_pair's; transactions are enabled on side 0, and nothing has gone between the two.
int reflect_pair_setup(void **state);
#define REFLECT_PAIR_TEST(test) cmocka_unit_test_setup_teardown(test, reflect_pair_setup, csa_pair_teardown)

// A transaction of one write of length bytes at that offset of both memories; change what is to be different.
struct reflect_made {
    struct alb_txn_wr wr;
    struct alb_txn_write writes[4];
    struct alb_sge sge[4];
    struct alb_txn_compare compares[2];
};
void reflect_pair_make(struct csa_pair *c, struct reflect_made *made, uint64_t wr_id, uint32_t offset, uint32_t length);
// One more write.
void reflect_pair_add(struct csa_pair *c, struct reflect_made *made, uint32_t offset, uint32_t length);
// A word that must be equal.
void reflect_pair_compare(struct csa_pair *c, struct reflect_made *made, uint32_t offset, uint64_t expected);
// Posts it with the bell; its number.
uint64_t reflect_pair_post(struct csa_pair *c, struct reflect_made *made);
// The oldest completion is that of wr_id, with that reason (0: success).
void reflect_pair_expect(struct csa_pair *c, uint64_t wr_id, enum alb_txn_reason reason);
enum alb_txn_state reflect_pair_state(struct csa_pair *c, uint64_t number);
// The target's record of the transaction with that number, or NULL.
struct alb_txn_in *reflect_pair_record(struct csa_pair *c, uint64_t number);
// True if the target's memory holds the initiator's bytes there; false: it holds its own, as it was filled.
bool reflect_pair_is_exposed(struct csa_pair *c, uint32_t offset, uint32_t length);
// The target has no memory for transactions any more.
void reflect_pair_fill_staging(struct csa_pair *c);
// Packets arrive, and time passes where nothing else happens, until that side sends one with a frame of that type,
// which is lost.
void reflect_pair_lose(struct csa_pair *c, int side, enum alb_csa_type type);
