// SPDX-License-Identifier: BSD-2-Clause
// A connection's words: saying, hearing, waiting.
#include "tools/files_link.h"

#include "tools/files_meet.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

// How often a word is said so that a peer that is gone is noticed.
#define PING_NS (2 * ALB_NS_PER_S)

// A peer that is there has heard them by then; one that is not must not keep others waiting.
#define LAST_WORDS_NS (2 * ALB_NS_PER_S)

alb_time files_link_now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * ALB_NS_PER_S + (uint64_t)time.tv_nsec;
}

bool files_link_post_receive(struct files_link *link, uint32_t index)
{
    struct ibv_sge sge = {
        .addr = (uintptr_t)link->buffers + (1 + index) * FILES_MESSAGE_BYTES,
        .length = FILES_MESSAGE_BYTES,
        .lkey = link->buffers_mr->lkey,
    };
    struct ibv_recv_wr wr = {.wr_id = FILES_WR_HEAR + index, .sg_list = &sge, .num_sge = 1}, *bad;
    return ibv_post_recv(link->id->qp, &wr, &bad) == 0;
}

static void take_message(struct files_link *link, const struct ibv_wc *wc)
{
    uint32_t index = (uint32_t)(wc->wr_id - FILES_WR_HEAR);
    struct files_message message;
    bool is_good = files_message_decode(link->buffers + (1 + index) * FILES_MESSAGE_BYTES, wc->byte_len, &message);
    // A peer that sends more than there are receives for breaks the protocol.
    if (!is_good || link->inbox_count == FILES_RECEIVES)
        link->is_lost = true;
    else if (message.kind != FILES_PING)
        link->inbox[link->inbox_count++] = message;
    link->is_established = true;
    link->is_lost |= !files_link_post_receive(link, index);
}

// The peer has gone. What it said before that is in the queue already, behind what this side said perhaps.
static void end(struct files_link *link)
{
    struct ibv_wc wc;
    while (!link->is_lost && ibv_poll_cq(link->cq, 1, &wc) > 0)
        if (wc.wr_id >= FILES_WR_HEAR && wc.status == IBV_WC_SUCCESS)
            take_message(link, &wc);
    link->is_lost = true;
}

static void heed_events(struct files_link *link)
{
    struct rdma_cm_event *event;
    struct pollfd ready = {.fd = link->channel->fd, .events = POLLIN};
    while (poll(&ready, 1, 0) > 0 && rdma_get_cm_event(link->channel, &event) == 0) {
        bool is_over = event->event != RDMA_CM_EVENT_ESTABLISHED;
        link->is_established |= !is_over;
        rdma_ack_cm_event(event);
        if (is_over)
            end(link);
    }
}

static void sleep_until_event(struct files_link *link, int timeout_ms)
{
    struct pollfd ready[2] = {{.fd = link->completions->fd, .events = POLLIN},
                              {.fd = link->channel->fd, .events = POLLIN}};
    struct ibv_cq *cq;
    void *context;
    poll(ready, 2, timeout_ms);
    if (ready[0].revents & POLLIN && ibv_get_cq_event(link->completions, &cq, &context) == 0)
        ibv_ack_cq_events(cq, 1);
    if (ready[1].revents & POLLIN)
        heed_events(link);
}

static bool post_words(struct files_link *link, const struct files_message *message)
{
    struct ibv_sge sge = {
        .addr = (uintptr_t)link->buffers, .length = FILES_MESSAGE_BYTES, .lkey = link->buffers_mr->lkey};
    struct ibv_send_wr wr = {
        .wr_id = FILES_WR_SAY, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
    struct ibv_send_wr *bad;
    files_message_encode(message, link->buffers);
    link->said_at = files_link_now();
    link->is_saying = ibv_post_send(link->id->qp, &wr, &bad) == 0;
    link->is_lost |= !link->is_saying;
    return link->is_saying;
}

// 1: the caller's; 0: it was the link's own, or there is none; -1: lost.
static int take_completion(struct files_link *link, struct ibv_wc *wc)
{
    int count = ibv_poll_cq(link->cq, 1, wc);
    if (count < 0)
        link->is_lost = true;
    if (count <= 0 || link->is_lost)
        return link->is_lost ? -1 : 0;
    if (wc->wr_id < FILES_WR_SAY && wc->status != IBV_WC_WR_FLUSH_ERR)
        return 1; // transactions fail without ending the connection
    if (wc->status != IBV_WC_SUCCESS)
        link->is_lost = true;
    else if (wc->wr_id == FILES_WR_SAY)
        link->is_saying = false;
    else
        take_message(link, wc);
    return link->is_lost ? -1 : 0;
}

void files_link_quote(const struct files_link *link, const struct files_message *message, char why[FILES_WHY_MAX])
{
    snprintf(why, FILES_WHY_MAX, "%s: %.480s", link->peer, message->text);
}

void files_link_part(struct files_link *link)
{
    link->ends_at = files_link_now() + LAST_WORDS_NS;
}

int files_link_wait(struct files_link *link, struct ibv_wc *wc, int timeout_ms)
{
    const struct files_message ping = {.kind = FILES_PING};
    if (link->is_lost || (atomic_load(&link->is_cancelled) && files_link_now() >= link->ends_at))
        return -1;
    uint32_t heard = link->inbox_count;
    int got = take_completion(link, wc);
    if (got != 0 || link->inbox_count != heard)
        return got;
    if (link->is_established && !link->is_saying && files_link_now() - link->said_at > PING_NS)
        post_words(link, &ping);
    ibv_req_notify_cq(link->cq, 0);
    got = take_completion(link, wc); // what came before it was asked to notify
    if (got == 0 && link->inbox_count == heard && timeout_ms > 0) {
        sleep_until_event(link, timeout_ms);
        got = take_completion(link, wc);
    }
    return got;
}

bool files_link_reach(struct files_link *link)
{
    struct ibv_wc wc;
    while (link->is_saying)
        if (files_link_wait(link, &wc, 100) < 0)
            return false;
    return !link->is_lost;
}

bool files_link_say(struct files_link *link, const struct files_message *message)
{
    return files_link_reach(link) && post_words(link, message);
}

bool files_link_hear(struct files_link *link, struct files_message *message)
{
    struct ibv_wc wc;
    while (link->inbox_count == 0)
        if (files_link_wait(link, &wc, 100) < 0 && link->inbox_count == 0)
            return false;
    *message = link->inbox[0];
    link->inbox_count--;
    memmove(link->inbox, link->inbox + 1, link->inbox_count * sizeof(link->inbox[0]));
    return true;
}
