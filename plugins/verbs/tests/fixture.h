// SPDX-License-Identifier: BSD-2-Clause
// What most tests of the door need: roce0 open, a protection domain, a registered buffer, and queue pairs connected to
// each other over loopback in one process.
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <string.h>

enum { FIXTURE_BYTES = 64 * 1024 };

struct fixture {
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_mr *mr;
    uint8_t *memory; // FIXTURE_BYTES, all that mr covers
};

// cmocka's setup and teardown.
int fixture_setup(void **state);
int fixture_teardown(void **state);

#define FIXTURE_TEST(function) cmocka_unit_test_setup_teardown(function, fixture_setup, fixture_teardown)

// A queue pair with 16 requests each way and 64 bytes inline, both its completions on f->cq.
struct ibv_qp *fixture_qp(struct fixture *f, enum ibv_qp_type type);
struct ibv_qp_init_attr fixture_qp_init(struct fixture *f, enum ibv_qp_type type);
// The same with ibv_wr_*.
struct ibv_qp_ex *fixture_qp_ex(struct fixture *f, enum ibv_qp_type type, uint64_t ops);

// RESET -> INIT, RTR, RTS with the attributes that its type needs.
void fixture_to_init(struct ibv_qp *qp);
void fixture_to_rtr(struct ibv_qp *qp, uint32_t dest_qpn);
void fixture_to_rts(struct ibv_qp *qp);
// Both all the way, connected to each other (UD: each on its own).
void fixture_connect(struct ibv_qp *a, struct ibv_qp *b);

// Attributes of an address handle to this host.
struct ibv_ah_attr fixture_ah_attr(struct fixture *f);

// The bytes [offset, offset + length) of f->memory.
struct ibv_sge fixture_sge(const struct fixture *f, size_t offset, uint32_t length);
void fixture_post_recv(struct fixture *f, struct ibv_qp *qp, uint64_t wr_id, size_t offset, uint32_t length);
// A signalled SEND.
void fixture_post_send(struct fixture *f, struct ibv_qp *qp, uint64_t wr_id, size_t offset, uint32_t length);

// Polls until a completion comes.
struct ibv_wc fixture_wait(struct ibv_cq *cq);
// Polls until the completion with this wr_id comes; others are dropped.
struct ibv_wc fixture_wait_for(struct ibv_cq *cq, uint64_t wr_id);

// The state of one of our threads as proc(5) has it: the letter after the name in parentheses.
char fixture_thread_state(pid_t thread);
