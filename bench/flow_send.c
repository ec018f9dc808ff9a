// SPDX-License-Identifier: BSD-2-Clause
// The sending side of flow: keeps a window of messages in flight for a time, or exchanges a number of them.
#include "bench/flow.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>

#define LOOK_AT_CLOCK 64                      // polls
#define OVERTIME_S    0.2                     // senders go on for longer than the receiver measures
#define PATIENCE_NS   (120ull * ALB_NS_PER_S) // to say goodbye

static double cpu_s(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static uint64_t stream(const struct alb_flow_options *o, struct alb_flow_link *link)
{
    struct alb_flow_event events[ALB_FLOW_EVENTS_MAX];
    uint64_t posted = 0, sent = 0; // lists, which are messages where nothing else is asked for
    uint32_t window = o->window / o->list;
    alb_time end = alb_flow_now() + (alb_time)((o->warm_s + o->measure_s + OVERTIME_S) * 1e9);
    bool is_over = false;
    for (uint32_t round = 0; !is_over || sent < posted; round++) {
        bool moved = false;
        while (!is_over && posted - sent < window &&
               o->ops->send(link, o->bytes, (uint32_t)(posted % window) * o->list,
                            (uint32_t)(posted & ALB_FLOW_WORD_MAX), 0)) {
            posted++;
            moved = true;
        }
        uint32_t count = o->ops->progress(events);
        for (uint32_t i = 0; i < count; i++)
            sent += events[i].kind == ALB_FLOW_SENT;
        if (!count && !moved)
            alb_flow_rest(o, 20);
        if (o->is_event || round % LOOK_AT_CLOCK == 0)
            is_over = is_over || alb_flow_now() >= end;
    }
    return sent * o->list;
}

// One message and its answer. The time is that until the answer.
static uint64_t exchange(const struct alb_flow_options *o, struct alb_flow_link *link, uint32_t word)
{
    struct alb_flow_event events[ALB_FLOW_EVENTS_MAX];
    if (o->is_verified)
        alb_flow_fill(link->memory, o->bytes, word);
    alb_time start = alb_flow_now();
    while (!o->ops->send(link, o->bytes, 0, word, start)) {
        if (o->ops->progress(events) == 0)
            alb_flow_rest(o, 20);
    }
    for (bool is_answered = false, is_sent = false; !is_answered || !is_sent;) {
        uint32_t count = o->ops->progress(events);
        for (uint32_t i = 0; i < count; i++) {
            is_answered |= events[i].kind == ALB_FLOW_CAME;
            is_sent |= events[i].kind == ALB_FLOW_SENT;
        }
        if (!count)
            alb_flow_rest(o, 20);
    }
    return alb_flow_now() - start;
}

void alb_flow_send_run(const struct alb_flow_options *o)
{
    struct alb_flow_blob mine = {0}, theirs;
    o->ops->open(o);
    struct alb_flow_link *link = o->ops->create(0, &mine);
    if (o->is_verified && !link->memory)
        alb_flow_fail("--verify", "not with this transport");
    link->meeting = alb_flow_dial(o, o->port);
    alb_flow_exchange(link->meeting, &mine, &theirs);
    o->ops->connect(link, &theirs);
    // Ready, and go when all are.
    char byte = 'r';
    if (send(link->meeting, &byte, 1, MSG_NOSIGNAL) != 1 || recv(link->meeting, &byte, 1, 0) != 1)
        alb_flow_fail("start", "the receiver went away");

    struct alb_flow_times round_trips = {0};
    double cpu = cpu_s();
    alb_time start = alb_flow_now();
    uint64_t sent = 0;
    if (o->is_exchange) {
        // By number or by time, whichever is over first: where much is lost an exchange may take long.
        alb_time end = start + (alb_time)((o->warm_s + o->measure_s) * 1e9);
        for (uint64_t ns; sent < o->messages + ALB_FLOW_WARM_EXCHANGES && alb_flow_now() < end; sent++) {
            ns = exchange(o, link, (uint32_t)sent & ALB_FLOW_WORD_MAX);
            if (sent >= ALB_FLOW_WARM_EXCHANGES)
                alb_flow_times_add(&round_trips, ns);
        }
    } else {
        sent = stream(o, link);
    }
    double elapsed = (double)(alb_flow_now() - start) / 1e9;
    printf("{\"role\":\"send\",\"messages\":%llu,\"seconds\":%.6f,\"cpu_s\":%.6f", (unsigned long long)sent, elapsed,
           cpu_s() - cpu);
    alb_flow_times_print(&round_trips, "round_trip");
    printf("}\n");
    fflush(stdout);
    // How much there was, and stay until the receiver goes: what it still asks for can be answered.
    if (send(link->meeting, &sent, sizeof(sent), MSG_NOSIGNAL) != (ssize_t)sizeof(sent))
        alb_flow_fail("end", "the receiver went away");
    struct alb_flow_event events[ALB_FLOW_EVENTS_MAX];
    alb_time give_up = alb_flow_now() + PATIENCE_NS;
    while (recv(link->meeting, &byte, 1, MSG_DONTWAIT) < 0 && alb_flow_now() < give_up) {
        o->ops->progress(events);
        nanosleep(&(struct timespec){.tv_nsec = ALB_NS_PER_MS}, NULL);
    }
}
