// SPDX-License-Identifier: BSD-2-Clause
// What was said before a connection ended is seen, however late the thread looks: queues and events are made here.
#include "tools/files_link.h"

#include "base/tests/test.h"

#include <stdlib.h>
#include <unistd.h>

enum { WORDS_MAX = 4 };

static struct {
    struct ibv_wc words[WORDS_MAX];
    uint32_t count, polled;
    int events[2]; // a pipe with a byte for each event of the connection
    bool is_over;  // the last words and the end of the connection come together, while the thread sleeps
} peer;

static int poll_queue(struct ibv_cq *cq, int count, struct ibv_wc *wc)
{
    if (!peer.is_over || peer.polled == peer.count)
        return 0;
    *wc = peer.words[peer.polled++];
    return count;
}

static int notify(struct ibv_cq *cq, int solicited_only)
{
    peer.is_over = true;
    return 0;
}

static int post_receive(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    return 0;
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
    return 0;
}

int rdma_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **event)
{
    static struct rdma_cm_event gone = {.event = RDMA_CM_EVENT_DISCONNECTED};
    char byte;
    *event = &gone;
    return read(channel->fd, &byte, 1) == 1 ? 0 : -1;
}

int rdma_ack_cm_event(struct rdma_cm_event *event)
{
    return 0;
}

int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **context)
{
    return -1;
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned count)
{
}

static struct ibv_context context = {
    .ops = {.poll_cq = poll_queue, .req_notify_cq = notify, .post_recv = post_receive, .post_send = post_send}};
static struct ibv_cq cq = {.context = &context};
static struct ibv_qp qp = {.context = &context};
static struct ibv_mr mr;
static struct rdma_cm_id id = {.qp = &qp};
static struct rdma_event_channel channel;
static struct ibv_comp_channel completions;
static uint8_t buffers[(1 + FILES_RECEIVES) * FILES_MESSAGE_BYTES];

static void say(uint64_t wr_id, enum ibv_wc_status status)
{
    peer.words[peer.count++] =
        (struct ibv_wc){.wr_id = wr_id, .status = status, .byte_len = FILES_MESSAGE_BYTES, .opcode = IBV_WC_RECV};
}

static void open_link(struct files_link *link)
{
    const struct files_message verified = {.kind = FILES_VERIFIED};
    peer.count = peer.polled = 0;
    peer.is_over = false;
    assert_int_equal(pipe(peer.events), 0);
    assert_int_equal(write(peer.events[1], "x", 1), 1);
    channel.fd = peer.events[0];
    completions.fd = -1;
    files_message_encode(&verified, buffers + FILES_MESSAGE_BYTES);
    *link = (struct files_link){.channel = &channel,
                                .id = &id,
                                .completions = &completions,
                                .cq = &cq,
                                .buffers = buffers,
                                .buffers_mr = &mr,
                                .is_saying = true};
}

static void close_link(void)
{
    close(peer.events[0]);
    close(peer.events[1]);
}

static void files_link_hear__what_was_said_before_the_end(void **state)
{
    struct files_link link;
    struct files_message message;
    open_link(&link);
    say(FILES_WR_SAY, IBV_WC_SUCCESS);
    say(FILES_WR_HEAR, IBV_WC_SUCCESS);
    say(FILES_WR_HEAR + 1, IBV_WC_WR_FLUSH_ERR);
    assert_true(files_link_hear(&link, &message));
    assert_int_equal(message.kind, FILES_VERIFIED);
    assert_false(files_link_hear(&link, &message));
    assert_true(link.is_lost);
    close_link();
}

static void files_link_hear__nothing_was_said(void **state)
{
    struct files_link link;
    struct files_message message;
    open_link(&link);
    say(FILES_WR_SAY, IBV_WC_SUCCESS);
    say(FILES_WR_HEAR, IBV_WC_WR_FLUSH_ERR);
    assert_false(files_link_hear(&link, &message));
    assert_true(link.is_lost);
    close_link();
}

static void files_link_reach__a_peer_that_is_there(void **state)
{
    struct files_link link;
    char byte;
    open_link(&link);
    assert_int_equal(read(peer.events[0], &byte, 1), 1); // no event
    say(FILES_WR_SAY, IBV_WC_SUCCESS);
    assert_true(files_link_reach(&link));
    close_link();
}

static void files_link_reach__a_peer_that_is_gone(void **state)
{
    struct files_link link;
    open_link(&link);
    say(FILES_WR_SAY, IBV_WC_RETRY_EXC_ERR);
    assert_false(files_link_reach(&link));
    assert_false(files_link_reach(&link));
    close_link();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_link_hear__what_was_said_before_the_end),
        cmocka_unit_test(files_link_hear__nothing_was_said),
        cmocka_unit_test(files_link_reach__a_peer_that_is_there),
        cmocka_unit_test(files_link_reach__a_peer_that_is_gone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
