// SPDX-License-Identifier: BSD-2-Clause
// Faults on demand, between engine and socket: they act on the datagrams that this device sends, one by one, after the
// ICRC has been sealed. base/faults.h decides, reproducibly for a given sequence of datagrams; here its verdicts are
// carried out.
#pragma once

#include "base/faults.h"
#include "device/edge_stats.h"
#include "device/line.h"

struct alb_fault_line {
    struct alb_faults faults;
    struct alb_line line; // copies on their way to the socket
    struct alb_edge_stats *stats;
};

// ENOMEM.
int alb_fault_line_init(struct alb_fault_line *line, const struct alb_faults_spec *spec, uint64_t seed,
                        struct alb_edge_stats *stats);
void alb_fault_line_fini(struct alb_fault_line *line);

// Decides on the next datagram and counts.
struct alb_fault_verdict alb_fault_line_decide(struct alb_fault_line *line, uint32_t datagram_bytes);

// True if the datagram goes its way untouched and at once.
static inline bool alb_fault_verdict_is_none(const struct alb_fault_verdict *verdict)
{
    return verdict->copies == 1 && !verdict->is_corrupt && verdict->pass == 0 && verdict->delay_ns[0] == 0;
}

// Puts the copies of a burst's only segment, sealed for the socket, on the line as the verdict says; those that are not
// delayed are due now.
void alb_fault_line_take(struct alb_fault_line *line, const struct alb_fault_verdict *verdict, const struct alb_tx *tx,
                         const struct alb_burst *burst, struct alb_socket *socket, alb_time now);
