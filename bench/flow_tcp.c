// SPDX-License-Identifier: BSD-2-Clause
// flow over plain TCP: one connection a sender, messages with their length in front.
#include "bench/flow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define INPUT_BYTES (256u << 10)
#define STAMP_BYTES 8

struct frame {
    uint32_t bytes, word;
};

struct tcp_link {
    struct alb_flow_link base;
    int listener, fd;
    // Going out: one message at a time, the kernel's buffer is the window.
    struct frame out;
    uint64_t out_stamp;
    uint32_t out_done, out_total; // frame included; equal: nothing under way
    bool is_sent_untold, wants_room;
    // Coming in: how much of the current message, frame included, is here.
    struct frame in;
    uint8_t stamp[STAMP_BYTES];
    uint32_t in_done;
    uint8_t *input;
    uint32_t input_at, input_end;
};

static const struct alb_flow_options *options;
static struct tcp_link *links[ALB_FLOW_SENDERS_MAX];
static uint32_t link_count;
static uint8_t *payload;
static int epoll = -1;

static void tcp_open(const struct alb_flow_options *o)
{
    options = o;
    payload = calloc(1, ALB_MAX(o->bytes, (uint32_t)ALB_FLOW_ANSWER_BYTES));
    epoll = epoll_create1(EPOLL_CLOEXEC);
    if (!payload || epoll < 0)
        alb_flow_die("open");
}

static struct alb_flow_link *tcp_create(uint32_t number, struct alb_flow_blob *mine)
{
    struct tcp_link *l = calloc(1, sizeof(*l));
    if (!l || !(l->input = malloc(INPUT_BYTES)))
        alb_flow_die("create");
    l->base.number = number;
    l->listener = -1;
    if (!options->peer) {
        l->listener = alb_flow_listen(options, 0);
        uint16_t port = alb_flow_port_of(l->listener);
        mine->bytes = sizeof(port);
        memcpy(mine->data, &port, sizeof(port));
    }
    links[link_count++] = l;
    return &l->base;
}

static void tcp_connect(struct alb_flow_link *link, const struct alb_flow_blob *theirs)
{
    struct tcp_link *l = (struct tcp_link *)link;
    if (l->listener >= 0) {
        l->fd = alb_flow_accept(l->listener);
        close(l->listener);
    } else {
        uint16_t port;
        memcpy(&port, theirs->data, sizeof(port));
        l->fd = alb_flow_dial(options, port);
    }
    struct epoll_event wish = {.events = EPOLLIN, .data.ptr = l};
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, l->fd, &wish) != 0)
        alb_flow_die("epoll_ctl");
}

static void push(struct tcp_link *l)
{
    while (l->out_done < l->out_total) {
        uint32_t frame_left = l->out_done < sizeof(l->out) ? (uint32_t)sizeof(l->out) - l->out_done : 0;
        uint32_t at = l->out_done - ((uint32_t)sizeof(l->out) - frame_left);
        struct iovec iov[2] = {{(uint8_t *)&l->out + sizeof(l->out) - frame_left, frame_left},
                               {payload + at, l->out.bytes - at}};
        struct msghdr message = {.msg_iov = iov, .msg_iovlen = 2};
        memcpy(payload, &l->out_stamp, sizeof(l->out_stamp));
        ssize_t sent = sendmsg(l->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent < 0) {
            if (errno != EAGAIN)
                alb_flow_die("sendmsg");
            return;
        }
        l->out_done += (uint32_t)sent;
    }
}

static bool tcp_send(struct alb_flow_link *link, uint32_t bytes, uint32_t slot, uint32_t word, uint64_t stamp)
{
    struct tcp_link *l = (struct tcp_link *)link;
    (void)slot;
    if (l->out_done < l->out_total || l->is_sent_untold)
        return false;
    l->out = (struct frame){bytes, word};
    l->out_stamp = stamp;
    l->out_done = 0;
    l->out_total = bytes + (uint32_t)sizeof(l->out);
    l->is_sent_untold = true;
    push(l);
    return true;
}

// One message out of what has been received; false: more is needed.
static bool take_message(struct tcp_link *l, struct alb_flow_event *event)
{
    while (l->input_at < l->input_end) {
        uint32_t left = l->input_end - l->input_at;
        const uint8_t *from = l->input + l->input_at;
        uint32_t frame = sizeof(l->in), taken;
        if (l->in_done < frame) {
            taken = ALB_MIN(left, frame - l->in_done);
            memcpy((uint8_t *)&l->in + l->in_done, from, taken);
        } else if (l->in_done < frame + STAMP_BYTES && l->in.bytes >= STAMP_BYTES) {
            taken = ALB_MIN(left, frame + STAMP_BYTES - l->in_done);
            memcpy(l->stamp + l->in_done - frame, from, taken);
        } else {
            taken = ALB_MIN(left, frame + l->in.bytes - l->in_done);
        }
        l->in_done += taken;
        l->input_at += taken;
        if (l->in_done >= frame && l->in_done == frame + l->in.bytes) {
            *event = (struct alb_flow_event){&l->base, ALB_FLOW_CAME, l->in.word, l->stamp};
            l->in_done = 0;
            return true;
        }
    }
    return false;
}

static void pull(struct tcp_link *l)
{
    if (l->input_at < l->input_end)
        return;
    ssize_t got = recv(l->fd, l->input, INPUT_BYTES, MSG_DONTWAIT);
    if (got < 0 && errno != EAGAIN)
        alb_flow_die("recv");
    l->input_at = 0;
    l->input_end = got > 0 ? (uint32_t)got : 0;
}

static uint32_t tcp_progress(struct alb_flow_event *events)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < link_count && count < ALB_FLOW_EVENTS_MAX - 1; i++) {
        struct tcp_link *l = links[i];
        push(l);
        if (l->is_sent_untold && l->out_done == l->out_total) {
            l->is_sent_untold = false;
            events[count++] = (struct alb_flow_event){&l->base, ALB_FLOW_SENT, l->out.word, NULL};
        }
        pull(l);
        while (count < ALB_FLOW_EVENTS_MAX && take_message(l, &events[count]))
            count++;
    }
    return count;
}

static int tcp_arm(void)
{
    for (uint32_t i = 0; i < link_count; i++) {
        struct tcp_link *l = links[i];
        if (l->input_at < l->input_end)
            return -1;
        bool wants_room = l->out_done < l->out_total;
        if (wants_room == l->wants_room)
            continue;
        struct epoll_event wish = {.events = wants_room ? EPOLLIN | EPOLLOUT : EPOLLIN, .data.ptr = l};
        if (epoll_ctl(epoll, EPOLL_CTL_MOD, l->fd, &wish) != 0)
            alb_flow_die("epoll_ctl");
        l->wants_room = wants_room;
    }
    return epoll;
}

const struct alb_flow_ops alb_flow_tcp = {"tcp", tcp_open, tcp_create, tcp_connect, tcp_send, tcp_progress, tcp_arm};
