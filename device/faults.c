// SPDX-License-Identifier: BSD-2-Clause
// Carrying out verdicts on copies, so that no fault ever touches the program's own memory.
#include "device/faults.h"

int alb_fault_line_init(struct alb_fault_line *line, const struct alb_faults_spec *spec, uint64_t seed,
                        struct alb_edge_stats *stats)
{
    alb_faults_init(&line->faults, spec, seed);
    line->stats = stats;
    return alb_line_init(&line->line);
}

void alb_fault_line_fini(struct alb_fault_line *line)
{
    alb_line_fini(&line->line);
}

struct alb_fault_verdict alb_fault_line_decide(struct alb_fault_line *line, uint32_t datagram_bytes)
{
    struct alb_fault_verdict verdict = alb_faults_decide(&line->faults, datagram_bytes);
    alb_edge_set(line->stats, ALB_EDGE_fault_lost, line->faults.lost);
    alb_edge_set(line->stats, ALB_EDGE_fault_duplicated, line->faults.duplicated);
    alb_edge_set(line->stats, ALB_EDGE_fault_corrupted, line->faults.corrupted);
    alb_edge_set(line->stats, ALB_EDGE_fault_reordered, line->faults.reordered);
    alb_edge_set(line->stats, ALB_EDGE_fault_delayed, line->faults.delayed);
    return verdict;
}

static void take_copy(struct alb_fault_line *line, const struct alb_fault_verdict *verdict, uint32_t which,
                      struct alb_line_datagram *copy, alb_time now)
{
    if (which == 0 && verdict->is_corrupt)
        copy->bytes[verdict->corrupt_bit / 8] ^= (uint8_t)(1u << (verdict->corrupt_bit % 8));
    if (which == 0 && verdict->pass > 0)
        alb_line_hold(&line->line, copy, verdict->pass, verdict->delay_ns[0], now);
    else
        alb_line_add(&line->line, copy, now + verdict->delay_ns[which]);
}

void alb_fault_line_take(struct alb_fault_line *line, const struct alb_fault_verdict *verdict, const struct alb_tx *tx,
                         const struct alb_burst *burst, struct alb_socket *socket, alb_time now)
{
    const struct alb_segment *segment = &tx->segments[burst->segment_first];
    for (uint32_t which = 0; which < verdict->copies; which++) {
        struct alb_line_datagram *copy = alb_line_copy(&line->line, tx, burst, segment, socket);
        if (copy)
            take_copy(line, verdict, which, copy, now);
        else
            alb_edge_count(line->stats, ALB_EDGE_fault_overflow, 1);
    }
}
