// SPDX-License-Identifier: BSD-2-Clause
// The receiving side of flow: waits for its senders, lets them go at once, and counts what arrives whole.
#include "bench/flow.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define LOOK_EVERY_NS (10 * ALB_NS_PER_MS) // at the meetings: a system call for each

struct receiver {
    const struct alb_flow_options *options;
    struct alb_flow_link *links[ALB_FLOW_SENDERS_MAX];
    uint32_t over;
    alb_time start, measure_from, measure_to;
    uint64_t total; // messages
    uint64_t *intervals;
    uint32_t interval_count;
    struct alb_flow_times one_way;
    double cpu_s;
};

static double cpu_s(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

// What this process has taken of memory at most, in KiB. Not ru_maxrss, which begins with the parent's.
static long peak_kib(void)
{
    char line[256];
    long kib = -1;
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof(line), status)) {
        if (sscanf(line, "VmHWM: %ld kB", &kib) == 1)
            break;
    }
    if (!status || kib < 0)
        alb_flow_fail("/proc/self/status", "does not say VmHWM");
    fclose(status);
    return kib;
}

static void gather(struct receiver *r)
{
    const struct alb_flow_options *o = r->options;
    int listener = alb_flow_listen(o, o->port);
    char byte;
    for (uint32_t i = 0; i < o->senders; i++) {
        struct alb_flow_blob mine = {0}, theirs;
        int meeting = alb_flow_accept(listener);
        r->links[i] = o->ops->create(i, &mine);
        r->links[i]->meeting = meeting;
        alb_flow_exchange(meeting, &mine, &theirs);
        o->ops->connect(r->links[i], &theirs);
    }
    for (uint32_t i = 0; i < o->senders; i++) {
        if (recv(r->links[i]->meeting, &byte, 1, 0) != 1)
            alb_flow_fail("start", "a sender went away");
    }
    r->start = alb_flow_now();
    r->measure_from = r->start + (alb_time)(o->warm_s * 1e9);
    r->measure_to = r->measure_from + (alb_time)(o->measure_s * 1e9);
    for (uint32_t i = 0; i < o->senders; i++) {
        if (send(r->links[i]->meeting, "g", 1, MSG_NOSIGNAL) != 1)
            alb_flow_fail("start", "a sender went away");
    }
    close(listener);
}

static void take(struct receiver *r, const struct alb_flow_event *event, alb_time now)
{
    const struct alb_flow_options *o = r->options;
    struct alb_flow_link *link = event->link;
    link->count += o->list;
    r->total += o->list;
    if (now >= r->measure_from && now < r->measure_to)
        link->counted += o->list;
    if (r->intervals) {
        uint64_t index = (now - r->start) / (o->interval_ms * ALB_NS_PER_MS);
        if (index < ALB_FLOW_INTERVALS_MAX) {
            r->intervals[index] += o->list;
            r->interval_count = (uint32_t)index + 1;
        }
    }
    if (o->is_exchange) {
        uint64_t stamp;
        if (o->is_verified && !alb_flow_is_right(event->data, o->bytes, event->word))
            alb_flow_fail("verify", "a message is not what was sent");
        memcpy(&stamp, event->data, sizeof(stamp));
        if (link->count > ALB_FLOW_WARM_EXCHANGES)
            alb_flow_times_add(&r->one_way, now - stamp);
        if (!o->ops->send(link, ALB_FLOW_ANSWER_BYTES, 0, event->word, stamp))
            alb_flow_fail("answer", "there is no room for it");
    }
}

// Which senders have ended: those that have said how much they sent, when all of it is here.
static void look_at_meetings(struct receiver *r)
{
    for (uint32_t i = 0; i < r->options->senders; i++) {
        struct alb_flow_link *link = r->links[i];
        if (link->is_over)
            continue;
        if (!link->is_told) {
            ssize_t got = recv(link->meeting, &link->told, sizeof(link->told), MSG_DONTWAIT);
            if (got < 0 && errno == EAGAIN)
                continue;
            if (got != (ssize_t)sizeof(link->told))
                alb_flow_fail("end", "a sender went away");
            link->is_told = true;
        }
        if (link->count == link->told) {
            link->is_over = true;
            r->over++;
        }
    }
}

static void print_results(struct receiver *r, long peak_before_kib)
{
    const struct alb_flow_options *o = r->options;
    uint64_t counted = 0;
    printf("{\"role\":\"receive\",\"transport\":\"%s\",\"message_bytes\":%u,\"start_ns\":%llu,\"messages\":%llu,"
           "\"seconds\":%.6f,\"cpu_s\":%.6f,\"peak_before_kib\":%ld,\"peak_kib\":%ld,\"senders\":[",
           o->ops->name, o->bytes, (unsigned long long)r->start, (unsigned long long)r->total, o->measure_s, r->cpu_s,
           peak_before_kib, peak_kib());
    for (uint32_t i = 0; i < o->senders; i++) {
        printf("%s%llu", i ? "," : "", (unsigned long long)r->links[i]->counted * o->bytes);
        counted += r->links[i]->counted;
    }
    printf("],\"bytes_per_s\":%.0f,\"messages_per_s\":%.0f", (double)counted * o->bytes / o->measure_s,
           (double)counted / o->measure_s);
    if (r->intervals) {
        printf(",\"interval_ms\":%u,\"intervals\":[", o->interval_ms);
        for (uint32_t i = 0; i < r->interval_count; i++)
            printf("%s%llu", i ? "," : "", (unsigned long long)r->intervals[i] * o->bytes);
        printf("]");
    }
    alb_flow_times_print(&r->one_way, "one_way");
    printf("}\n");
    fflush(stdout);
}

void alb_flow_receive_run(const struct alb_flow_options *o)
{
    struct alb_flow_event events[ALB_FLOW_EVENTS_MAX];
    struct receiver *r = calloc(1, sizeof(*r));
    if (!r)
        alb_flow_die("calloc");
    r->options = o;
    if (o->interval_ms && !(r->intervals = calloc(ALB_FLOW_INTERVALS_MAX, sizeof(*r->intervals))))
        alb_flow_die("calloc");
    o->ops->open(o);
    gather(r);
    double cpu = cpu_s();
    long peak = peak_kib();
    alb_time looked = 0;
    while (r->over < o->senders) {
        uint32_t count = o->ops->progress(events);
        alb_time now = alb_flow_now();
        for (uint32_t i = 0; i < count; i++) {
            if (events[i].kind == ALB_FLOW_CAME)
                take(r, &events[i], now);
        }
        if (now - looked >= LOOK_EVERY_NS) {
            looked = now;
            look_at_meetings(r);
        }
        if (!count)
            alb_flow_rest(o, 20);
    }
    r->cpu_s = cpu_s() - cpu;
    print_results(r, peak);
}
