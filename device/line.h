// SPDX-License-Identifier: BSD-2-Clause
// The delay line of the faults: copies of datagrams that leave later, because they are delayed or because others are to
// pass them. Bounded in number and bytes.
#pragma once

#include "base/faults.h"
#include "base/list.h"
#include "wire/datagram.h"

#define ALB_LINE_DATAGRAMS_MAX 16384
#define ALB_LINE_BYTES_MAX     (64u << 20)

struct alb_socket;

// A datagram as bytes of its own, sealed.
struct alb_line_datagram {
    struct alb_list link; // among those held for others to pass
    alb_time due;
    uint64_t order;    // of those due at the same time
    uint32_t pass;     // held: how many have still to go on
    alb_time delay_ns; // held: to be added when it is let go
    struct alb_endpoint peer;
    struct alb_socket *socket; // that it leaves by, and was sealed for
    uint8_t traffic_class;
    uint8_t hop_limit;
    bool is_whole, may_be_cut; // as the burst's
    uint32_t length;
    uint8_t bytes[];
};

struct alb_line {
    struct alb_line_datagram **heap; // by (due, order)
    uint32_t heap_count;
    uint32_t held_count;
    uint64_t bytes;
    uint64_t order;
    struct alb_list held;
};

// ENOMEM.
int alb_line_init(struct alb_line *line);
// Forgets what is still in it.
void alb_line_fini(struct alb_line *line);

// A copy of segment i of a burst that is in neither heap nor list yet; NULL if the line is full.
struct alb_line_datagram *alb_line_copy(struct alb_line *line, const struct alb_tx *tx, const struct alb_burst *burst,
                                        const struct alb_segment *segment, struct alb_socket *socket);
// Gives up a copy that is in neither heap nor list.
void alb_line_free(struct alb_line *line, struct alb_line_datagram *datagram);

// Lets it be due at that time.
void alb_line_add(struct alb_line *line, struct alb_line_datagram *datagram, alb_time due);
// Holds it until pass others have gone on, at most ALB_FAULTS_HOLD_NS_MAX.
void alb_line_hold(struct alb_line *line, struct alb_line_datagram *datagram, uint32_t pass, alb_time delay_ns,
                   alb_time now);
// Another datagram has gone on: those that enough have passed are released.
void alb_line_passed(struct alb_line *line, alb_time now);

// The next one that is due, taken out (alb_line_free it), or NULL.
struct alb_line_datagram *alb_line_pop_due(struct alb_line *line, alb_time now);
// When the next one is due, ALB_TIME_NEVER if none is in it.
alb_time alb_line_next_due(const struct alb_line *line);
