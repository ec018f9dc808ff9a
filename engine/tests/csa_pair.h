// SPDX-License-Identifier: BSD-2-Clause
// Two hosts that speak CSA (engine/tests/pair.h), and a look into the packets between them. One path, a window that
// stays open, segments of 1024 bytes for a WRITE, unless a test changes it.
#pragma once

#include "engine/tests/pair_expect.h"

#include "engine/csa.h"

enum {
    CSA_PAIR_SEGMENT = 1024,        // payload of a WRITE's segment
    CSA_PAIR_ANSWER_SEGMENT = 1032, // of an answer's, and of a SEND's
    CSA_PAIR_WINDOW = 128,          // segments
    CSA_PAIR_FRAMES = 32,
    CSA_PAIR_CHARGE = CSA_PAIR_SEGMENT + ALB_CSA_SEGMENT_OVERHEAD, // what a full segment counts toward the window
    CSA_PAIR_SMALL_CHARGE = 8 + ALB_CSA_SEGMENT_OVERHEAD,          // a WRITE of eight bytes
};

// *state of setup and teardown is one.
struct csa_pair {
    struct pair *pair;
    struct alb_qp *qps[2];
    struct alb_csa *csa[2];
    struct alb_engine *engines[2];
};

struct csa_pair *csa_pair_new(void (*change)(struct alb_engine_config *config),
                              void (*change_attr)(struct alb_qp_attr *attr, int side));
void csa_pair_free(struct csa_pair *c);
// A first request, which has taken offset 0 of its stream: both know each other's epoch, nothing is in flight, and no
// completion waits.
void csa_pair_greet(struct csa_pair *c);

int csa_pair_setup(void **state);
int csa_pair_setup_greeted(void **state);
int csa_pair_teardown(void **state);
#define CSA_PAIR_TEST(test)    cmocka_unit_test_setup_teardown(test, csa_pair_setup, csa_pair_teardown)
#define CSA_GREETED_TEST(test) cmocka_unit_test_setup_teardown(test, csa_pair_setup_greeted, csa_pair_teardown)

// Posts a request of side 0 over memory at offset 0.
void csa_pair_ask(struct csa_pair *c, enum alb_wr_opcode opcode, uint64_t wr_id, uint32_t flags, uint32_t length);
// Likewise, with entries of these lengths, each at an offset of its own.
enum { CSA_PAIR_ENTRY_BYTES_MAX = 64 << 10 };
void csa_pair_ask_in_entries(struct csa_pair *c, enum alb_wr_opcode opcode, uint64_t wr_id, uint32_t flags,
                             const uint32_t *lengths, uint32_t count);
// The oldest completion of a side.
void csa_pair_expect(struct csa_pair *c, int side, uint64_t wr_id, enum alb_wc_status status);
void csa_pair_expect_none(struct csa_pair *c, int side);
uint64_t csa_pair_stat(const struct csa_pair *c, int side, enum alb_stat stat);
uint64_t csa_pair_drops(const struct csa_pair *c, int side, enum alb_drop drop);
struct alb_assoc_live *csa_pair_live(const struct csa_pair *c, int side);
// That of a side for the other one.
uint32_t csa_pair_epoch(const struct csa_pair *c, int side);

// ---- the requests of side 0 -----------------------------------------------------------------------------------------

struct alb_stream_out *csa_pair_out(const struct csa_pair *c);
// So many WRITEs of eight bytes leave, and are lost on the wire.
void csa_pair_send_lost(struct csa_pair *c, uint32_t count);
// Of the segment at that offset from the first PSN.
enum alb_sent_state csa_pair_state(const struct csa_pair *c, int32_t offset);
// Its numbers go on as if so many more segments had left and been executed. Nothing is in flight.
void csa_pair_skip(struct csa_pair *c, uint32_t segments);
// The stream, the window and the only path agree on what is in flight.
void csa_pair_expect_inflight(const struct csa_pair *c, uint32_t bytes);

// ---- packets on the wire --------------------------------------------------------------------------------------------

// What a packet says. Payload points into the packet on the wire.
struct csa_seen {
    struct alb_csa_header header;
    uint32_t count;
    struct alb_csa_frame frames[CSA_PAIR_FRAMES];
};

// The packet at index that side has on the wire.
void csa_pair_look(const struct csa_pair *c, int side, uint32_t index, struct csa_seen *seen);
// Both pairs have the same packet there, but for addresses: their memories lie in different places, and hold the same.
void csa_pair_assert_same_packet(const struct csa_pair *a, const struct csa_pair *b, int side, uint32_t index);
// How many frames of that type side has on the wire; the last one is copied unless last is NULL.
uint32_t csa_pair_count(const struct csa_pair *c, int side, enum alb_csa_type type, struct alb_csa_frame *last);
// The frame of that type with number index among all on the wire; it must be there.
void csa_pair_frame(const struct csa_pair *c, int side, enum alb_csa_type type, uint32_t index,
                    struct alb_csa_frame *frame);

// ---- packets that no engine has sent --------------------------------------------------------------------------------

// A packet from that side to the other, with the epochs and the sequence that the engines have now. Change what is to
// be wrong, add frames, let it arrive.
struct csa_made {
    struct alb_csa_header header;
    struct alb_endpoint peer, local;
    uint8_t traffic_class;
    uint32_t length;
    uint8_t bytes[4096];
};

void csa_pair_make(const struct csa_pair *c, int side, struct csa_made *made);
void csa_pair_add_segment(struct csa_made *made, enum alb_csa_type type, const struct alb_csa_segment *segment,
                          const void *payload);
void csa_pair_add_report(struct csa_made *made, const struct alb_csa_report *report);
void csa_pair_add_paths(struct csa_made *made, const struct alb_csa_paths *paths);
void csa_pair_add_probe(struct csa_made *made, const struct alb_csa_probe *probe);
void csa_pair_add_bytes(struct csa_made *made, const void *bytes, uint32_t length);
void csa_pair_arrive(struct csa_pair *c, int side, struct csa_made *made);

// A segment of a WRITE to the start of the receiver's memory by the connected queue pair of that side: offset is the
// PSN's, from the first one of the stream.
struct alb_csa_segment csa_pair_write(const struct csa_pair *c, int side, int32_t offset, uint32_t index,
                                      uint32_t total_bytes, uint32_t payload_bytes, uint32_t flags);
// That segment alone in a packet, with bytes of the given value.
void csa_pair_arrive_segment(struct csa_pair *c, int side, const struct alb_csa_segment *segment, uint8_t value);
// A report of that side alone in a packet, about the other's request stream: first is the offset of its cumulative PSN.
void csa_pair_arrive_report(struct csa_pair *c, int side, uint16_t number, int32_t cumulative, uint64_t held,
                            uint8_t syndrome);
// The first PSN of a side's request stream, and of its answers.
alb_psn csa_pair_psn(int side);
