// SPDX-License-Identifier: BSD-2-Clause
// Bandwidth and message rate of plain UDP: the sender keeps a window of bytes in flight, the receiver only counts, and
// tells its count when a burst asks for it (four times a window).
#include "bench/raw.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATIENCE_NS  (20 * ALB_NS_PER_MS) // no credit for so long: something was lost, ask what did arrive
#define IDLE_NS      (20 * ALB_NS_PER_S)  // a receiver whose sender has gone ends by itself
#define RECEIVED_MAX 32

struct sender {
    const struct alb_raw_options *options;
    struct alb_raw_socket socket;
    struct alb_raw_burst burst;
    struct alb_raw_received received[RECEIVED_MAX];
    uint8_t *message;
    uint32_t offset; // into the message
    uint64_t sent_bytes, credited_bytes, lost_bytes, uncredited_bytes, probed_sent_bytes, send_calls;
    uint32_t nonce;
    alb_time heard, probed;
    struct alb_raw_header report;
    bool is_reported;
};

static void take_answer(struct sender *s, const struct alb_raw_header *header, alb_time now)
{
    s->heard = now;
    if (header->kind == ALB_RAW_REPORT) {
        s->report = *header;
        s->is_reported = true;
    } else if (header->kind == ALB_RAW_CREDIT) {
        s->credited_bytes = ALB_MAX(s->credited_bytes, header->bytes);
        // Paths are FIFO: what was sent before the probe and is not counted in its answer is gone.
        if (header->nonce && header->nonce == s->nonce)
            s->lost_bytes = s->probed_sent_bytes - header->bytes;
    }
}

static uint64_t inflight_bytes(const struct sender *s)
{
    return s->sent_bytes - s->credited_bytes - s->lost_bytes;
}

// Asks how much has arrived of what was sent so far.
static void probe(struct sender *s, alb_time now)
{
    s->nonce++;
    s->probed_sent_bytes = s->sent_bytes;
    s->probed = now;
    alb_raw_send_header(&s->socket, &(struct alb_raw_header){.kind = ALB_RAW_PROBE, .nonce = s->nonce});
}

static void listen_for_credit(struct sender *s, bool wait)
{
    bool block = wait && s->options->wait == ALB_RAW_BLOCK;
    uint32_t count = alb_raw_receive(&s->socket, s->received, block, 20);
    alb_time now = alb_raw_now();
    for (uint32_t i = 0; i < count; i++) {
        struct alb_raw_header header;
        memcpy(&header, s->received[i].bytes, sizeof(header));
        take_answer(s, &header, now);
    }
    if (count || !wait)
        return;
    if (now - ALB_MAX(s->heard, s->probed) > PATIENCE_NS)
        probe(s, now);
    else
        sched_yield();
}

static void fill_burst(struct sender *s)
{
    const struct alb_raw_options *o = s->options;
    for (;;) {
        uint32_t bytes = ALB_MIN(o->payload_bytes, o->message_bytes - s->offset);
        if (!alb_raw_burst_add(&s->burst, &s->socket, s->message + s->offset, bytes))
            return;
        s->offset += bytes;
        if (s->offset == o->message_bytes)
            s->offset = 0;
    }
}

static void send_burst(struct sender *s)
{
    struct alb_raw_burst *burst = &s->burst;
    uint32_t bytes = burst->bytes;
    s->uncredited_bytes += bytes;
    if (s->uncredited_bytes >= s->options->window_bytes / 4) {
        burst->headers[burst->segment_count - 1].wants_credit = 1;
        s->uncredited_bytes = 0;
    }
    alb_raw_burst_send(burst, &s->socket);
    s->sent_bytes += bytes;
    s->send_calls++;
}

// The receiver starts when it starts: probe until it answers, so that its birth is not counted as loss.
static void find_receiver(struct sender *s)
{
    alb_time give_up = alb_raw_now() + 10 * ALB_NS_PER_S;
    while (s->heard == 0) {
        if (alb_raw_now() > give_up) {
            errno = ETIMEDOUT;
            alb_raw_die("no receiver");
        }
        listen_for_credit(s, true);
    }
}

static void finish(struct sender *s)
{
    alb_time give_up = alb_raw_now() + 10 * ALB_NS_PER_S;
    // The last bursts may have asked for no credit; to wait until patience ends would count as time that sending took.
    if (inflight_bytes(s) > 0)
        probe(s, alb_raw_now());
    while (inflight_bytes(s) > 0 && alb_raw_now() < give_up) {
        s->uncredited_bytes = 0;
        listen_for_credit(s, true);
    }
    for (alb_time asked = 0; !s->is_reported;) {
        alb_time now = alb_raw_now();
        if (now > give_up) {
            errno = ETIMEDOUT;
            alb_raw_die("no report");
        }
        if (now - asked > PATIENCE_NS) {
            asked = s->probed = now;
            alb_raw_send_header(&s->socket, &(struct alb_raw_header){.kind = ALB_RAW_FIN});
        }
        listen_for_credit(s, true);
    }
}

static void print_result(const struct sender *s, double elapsed, double cpu_send)
{
    const struct alb_raw_options *o = s->options;
    // Whole datagrams only arrive or do not, so the share of payload is the same in what arrived as in what was sent.
    double datagrams_a_message = (double)((o->message_bytes + o->payload_bytes - 1) / o->payload_bytes);
    double wire_a_message = o->message_bytes + datagrams_a_message * ALB_RAW_OVERHEAD_BYTES;
    double messages = (double)s->report.bytes / wire_a_message;
    double payload = messages * o->message_bytes;
    printf("{\"mode\":\"bandwidth\",\"message_bytes\":%u,\"payload_bytes\":%u,\"window_bytes\":%u,\"gso\":%s,\"wait\":"
           "\"%s\","
           "\"seconds\":%.6f,\"bytes_per_s\":%.0f,\"messages_per_s\":%.0f,\"datagrams_per_s\":%.0f,\"lost_share\":%.6f,"
           "\"cpu_send_s\":%.6f,\"cpu_receive_s\":%.6f,\"cpu_s_per_gb\":%.4f,\"send_calls\":%llu,\"receive_calls\":%u,"
           "\"receive_buffer_bytes\":%d,\"send_buffer_bytes\":%d}\n",
           o->message_bytes, o->payload_bytes, o->window_bytes, o->gso ? "true" : "false",
           o->wait == ALB_RAW_SPIN ? "spin" : "block", elapsed, payload / elapsed, messages / elapsed,
           messages * datagrams_a_message / elapsed,
           s->sent_bytes ? (double)s->lost_bytes / (double)s->sent_bytes : 0.0, cpu_send,
           (double)s->report.cpu_ns * 1e-9,
           payload > 0 ? (cpu_send + (double)s->report.cpu_ns * 1e-9) / (payload * 1e-9) : 0.0,
           (unsigned long long)s->send_calls, s->report.recv_calls, s->socket.receive_buffer_bytes,
           s->socket.send_buffer_bytes);
}

void alb_raw_stream_send(const struct alb_raw_options *options)
{
    static struct sender s;
    s.options = options;
    s.message = malloc(options->message_bytes);
    if (!s.message)
        alb_raw_die("malloc");
    memset(s.message, 0x5a, options->message_bytes);
    alb_raw_socket_open(&s.socket, options);
    find_receiver(&s);

    uint64_t cpu = alb_raw_cpu_ns();
    alb_time start = alb_raw_now(), end = start + (alb_time)(options->seconds * 1e9);
    while (alb_raw_now() < end) {
        if (!s.burst.segment_count)
            fill_burst(&s);
        bool is_open = inflight_bytes(&s) == 0 || inflight_bytes(&s) + s.burst.bytes <= options->window_bytes;
        if (is_open)
            send_burst(&s);
        else
            listen_for_credit(&s, true);
    }
    s.burst.segment_count = 0;
    finish(&s);
    print_result(&s, (double)(alb_raw_now() - start) * 1e-9, (double)(alb_raw_cpu_ns() - cpu) * 1e-9);
}

struct receiver {
    struct alb_raw_socket socket;
    uint64_t bytes, cpu_start_ns;
    uint32_t recv_calls;
    bool is_started, is_finished;
};

static void take(struct receiver *r, const struct alb_raw_received *received)
{
    struct alb_raw_header header;
    // Only the last segment of a buffer is looked at: the sender puts its wishes there.
    uint32_t last = (received->length - 1) / received->segment_bytes * received->segment_bytes;
    memcpy(&header, received->bytes + last, sizeof(header));
    struct alb_raw_header answer = {.kind = ALB_RAW_CREDIT, .nonce = header.nonce};
    if (header.kind == ALB_RAW_DATA) {
        if (!r->is_started) {
            r->is_started = true;
            r->cpu_start_ns = alb_raw_cpu_ns();
        }
        r->bytes += received->length;
        r->recv_calls++;
        if (!header.wants_credit)
            return;
    } else if (header.kind == ALB_RAW_FIN) {
        answer.kind = ALB_RAW_REPORT;
        answer.cpu_ns = r->is_started ? alb_raw_cpu_ns() - r->cpu_start_ns : 0;
        answer.recv_calls = r->recv_calls;
        r->is_finished = true;
    }
    answer.bytes = r->bytes;
    alb_raw_send_header(&r->socket, &answer);
}

void alb_raw_stream_receive(const struct alb_raw_options *options)
{
    static struct receiver r;
    struct alb_raw_received received[RECEIVED_MAX];
    alb_raw_socket_open(&r.socket, options);
    alb_time heard = alb_raw_now(), linger = ALB_TIME_NEVER;
    // After FIN stay a little: the report may be asked for again.
    for (alb_time now = heard; now < linger && now - heard < IDLE_NS; now = alb_raw_now()) {
        uint32_t count = alb_raw_receive(&r.socket, received, options->wait == ALB_RAW_BLOCK || r.is_finished, 20);
        for (uint32_t i = 0; i < count; i++)
            take(&r, &received[i]);
        if (count)
            heard = alb_raw_now();
        else
            sched_yield();
        if (r.is_finished && linger == ALB_TIME_NEVER)
            linger = alb_raw_now() + 5 * PATIENCE_NS;
    }
}
