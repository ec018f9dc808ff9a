// SPDX-License-Identifier: BSD-2-Clause
// A binary heap of due datagrams and a short list of held ones.
#include "device/line.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int alb_line_init(struct alb_line *line)
{
    *line = (struct alb_line){.heap = calloc(ALB_LINE_DATAGRAMS_MAX, sizeof(line->heap[0]))};
    alb_list_init(&line->held);
    return line->heap ? 0 : ENOMEM;
}

void alb_line_fini(struct alb_line *line)
{
    struct alb_list *node;
    while ((node = alb_list_pop(&line->held)))
        free(ALB_LIST_ENTRY(node, struct alb_line_datagram, link));
    for (uint32_t i = 0; i < line->heap_count; i++)
        free(line->heap[i]);
    free(line->heap);
    line->heap = NULL;
    line->heap_count = line->held_count = 0;
}

struct alb_line_datagram *alb_line_copy(struct alb_line *line, const struct alb_tx *tx, const struct alb_burst *burst,
                                        const struct alb_segment *segment, struct alb_socket *socket)
{
    if (line->heap_count + line->held_count >= ALB_LINE_DATAGRAMS_MAX ||
        line->bytes + segment->length > ALB_LINE_BYTES_MAX)
        return NULL;
    struct alb_line_datagram *datagram = malloc(sizeof(*datagram) + segment->length);
    if (!datagram)
        return NULL;
    alb_list_init(&datagram->link);
    datagram->peer = burst->peer;
    datagram->socket = socket;
    datagram->traffic_class = burst->traffic_class;
    datagram->is_whole = burst->is_whole;
    datagram->may_be_cut = burst->may_be_cut;
    datagram->hop_limit = burst->hop_limit;
    datagram->length = segment->length;
    uint8_t *out = datagram->bytes;
    for (uint32_t i = 0; i < segment->iov_count; i++) {
        const struct iovec *part = &tx->iov[segment->iov_first + i];
        memcpy(out, part->iov_base, part->iov_len);
        out += part->iov_len;
    }
    alb_assert(out == datagram->bytes + datagram->length);
    line->bytes += datagram->length;
    return datagram;
}

void alb_line_free(struct alb_line *line, struct alb_line_datagram *datagram)
{
    line->bytes -= datagram->length;
    free(datagram);
}

static bool is_before(const struct alb_line_datagram *a, const struct alb_line_datagram *b)
{
    return a->due != b->due ? a->due < b->due : a->order < b->order;
}

void alb_line_add(struct alb_line *line, struct alb_line_datagram *datagram, alb_time due)
{
    alb_assert(line->heap_count < ALB_LINE_DATAGRAMS_MAX);
    datagram->due = due;
    datagram->order = line->order++;
    uint32_t i = line->heap_count++;
    for (; i > 0 && is_before(datagram, line->heap[(i - 1) / 2]); i = (i - 1) / 2)
        line->heap[i] = line->heap[(i - 1) / 2];
    line->heap[i] = datagram;
}

static struct alb_line_datagram *pop(struct alb_line *line)
{
    struct alb_line_datagram *top = line->heap[0], *last = line->heap[--line->heap_count];
    uint32_t i = 0, child;
    while ((child = 2 * i + 1) < line->heap_count) {
        if (child + 1 < line->heap_count && is_before(line->heap[child + 1], line->heap[child]))
            child++;
        if (!is_before(line->heap[child], last))
            break;
        line->heap[i] = line->heap[child];
        i = child;
    }
    line->heap[i] = last;
    return top;
}

void alb_line_hold(struct alb_line *line, struct alb_line_datagram *datagram, uint32_t pass, alb_time delay_ns,
                   alb_time now)
{
    datagram->pass = pass;
    datagram->delay_ns = delay_ns;
    datagram->due = now + ALB_FAULTS_HOLD_NS_MAX;
    alb_list_push_back(&line->held, &datagram->link);
    line->held_count++;
}

static void let_go(struct alb_line *line, struct alb_line_datagram *datagram, alb_time now)
{
    alb_list_remove(&datagram->link);
    line->held_count--;
    alb_line_add(line, datagram, now + datagram->delay_ns);
}

void alb_line_passed(struct alb_line *line, alb_time now)
{
    ALB_LIST_FOR_EACH (&line->held, node) {
        struct alb_line_datagram *datagram = ALB_LIST_ENTRY(node, struct alb_line_datagram, link);
        if (--datagram->pass == 0)
            let_go(line, datagram, now);
    }
}

struct alb_line_datagram *alb_line_pop_due(struct alb_line *line, alb_time now)
{
    while (line->held_count > 0) { // held in order, all for the same span: the first one's time is over first
        struct alb_line_datagram *first = ALB_LIST_ENTRY(line->held.next, struct alb_line_datagram, link);
        if (first->due > now)
            break;
        let_go(line, first, first->due);
    }
    return line->heap_count > 0 && line->heap[0]->due <= now ? pop(line) : NULL;
}

alb_time alb_line_next_due(const struct alb_line *line)
{
    alb_time due = line->heap_count > 0 ? line->heap[0]->due : ALB_TIME_NEVER;
    if (line->held_count > 0)
        due = ALB_MIN(due, ALB_LIST_ENTRY(line->held.next, struct alb_line_datagram, link)->due);
    return due;
}
