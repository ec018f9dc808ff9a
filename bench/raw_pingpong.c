// SPDX-License-Identifier: BSD-2-Clause
// Latency of plain UDP: one message there, one back, by spinning on the socket or by sleeping in poll().
#include "bench/raw.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WARM_UP      500
#define RESEND_NS    ALB_NS_PER_S
#define IDLE_NS      (20 * ALB_NS_PER_S)
#define RECEIVED_MAX 32

static void send_message(struct alb_raw_socket *s, const uint8_t *message, uint32_t number,
                         const struct alb_raw_options *options)
{
    static struct alb_raw_burst burst;
    uint32_t offset = 0;
    do {
        uint32_t bytes = ALB_MIN(options->payload_bytes, options->message_bytes - offset);
        if (!alb_raw_burst_add(&burst, s, message + offset, bytes)) {
            alb_raw_burst_send(&burst, s);
            continue;
        }
        burst.headers[burst.segment_count - 1].nonce = number;
        offset += bytes;
    } while (offset < options->message_bytes);
    alb_raw_burst_send(&burst, s);
}

static uint32_t message_wire_bytes(const struct alb_raw_options *o)
{
    uint32_t datagrams = (o->message_bytes + o->payload_bytes - 1) / o->payload_bytes;
    return o->message_bytes + ALB_MAX(datagrams, 1u) * ALB_RAW_OVERHEAD_BYTES;
}

// What of a message has come. Its datagrams all have its number, and those of its answer have, too: an answer that
// comes late, when another message was sent in its place, is not taken for that one's.
struct arrival {
    uint32_t number, bytes;
    bool is_answer; // to this number; else another number begins another message
    bool has_come;  // something has, be it of another number
};

static void take(struct arrival *a, const struct alb_raw_received *received, const struct alb_raw_header *header,
                 uint32_t offset)
{
    a->has_come = true;
    if (header->nonce != a->number) {
        if (a->is_answer)
            return;
        a->number = header->nonce;
        a->bytes = 0;
    }
    a->bytes += ALB_MIN(received->segment_bytes, received->length - offset);
}

// False when nothing came until give_up, or on FIN.
static bool wait_message(struct alb_raw_socket *s, const struct alb_raw_options *options, struct arrival *a,
                         uint64_t patience_ns)
{
    struct alb_raw_received received[RECEIVED_MAX];
    uint32_t expected = message_wire_bytes(options), empty = 0;
    alb_time start = 0;
    while (a->bytes < expected) {
        uint32_t count = alb_raw_receive(s, received, options->wait == ALB_RAW_BLOCK, 100);
        for (uint32_t i = 0; i < count; i++) {
            for (uint32_t at = 0; at < received[i].length; at += received[i].segment_bytes) {
                struct alb_raw_header header;
                memcpy(&header, received[i].bytes + at, sizeof(header));
                if (header.kind == ALB_RAW_FIN)
                    return false;
                take(a, &received[i], &header, at);
            }
        }
        // The clock is read now and then only: it would be part of every empty poll.
        if (!count && (options->wait == ALB_RAW_BLOCK || ++empty % 1024 == 0)) {
            alb_time now = alb_raw_now();
            if (!start)
                start = now;
            else if (now - start > patience_ns)
                return false;
        }
    }
    return true;
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void print_result(const struct alb_raw_options *o, uint64_t *rtt_ns, uint32_t count, uint32_t lost, double cpu)
{
    qsort(rtt_ns, count, sizeof(*rtt_ns), compare);
    double sum = 0;
    for (uint32_t i = 0; i < count; i++)
        sum += (double)rtt_ns[i];
    // Half of a round trip, as perftest prints it.
    printf(
        "{\"mode\":\"latency\",\"message_bytes\":%u,\"payload_bytes\":%u,\"wait\":\"%s\",\"iterations\":%u,\"lost\":%u,"
        "\"half_rtt_us_min\":%.3f,\"half_rtt_us_p50\":%.3f,\"half_rtt_us_avg\":%.3f,\"half_rtt_us_p99\":%.3f,"
        "\"cpu_ask_s\":%.6f}\n",
        o->message_bytes, o->payload_bytes, o->wait == ALB_RAW_SPIN ? "spin" : "block", count, lost,
        (double)rtt_ns[0] / 2e3, (double)rtt_ns[count / 2] / 2e3, sum / count / 2e3,
        (double)rtt_ns[(uint64_t)count * 99 / 100] / 2e3, cpu);
}

void alb_raw_pingpong_ask(const struct alb_raw_options *options)
{
    struct alb_raw_socket s;
    uint8_t *message = calloc(1, options->message_bytes + 1);
    uint64_t *rtt_ns = calloc(options->iterations, sizeof(*rtt_ns));
    if (!message || !rtt_ns)
        alb_raw_die("calloc");
    alb_raw_socket_open(&s, options);
    uint32_t early = 0, lost = 0, answered = 0, count = 0;
    bool is_there = false;
    for (uint32_t number = 1; count < options->iterations; number++) {
        bool is_warm = answered >= WARM_UP;
        struct arrival answer = {.number = number, .is_answer = true};
        alb_time start = alb_raw_now();
        send_message(&s, message, number, options);
        // The first ones may come before the other side is there.
        bool is_answered = wait_message(&s, options, &answer, is_there ? RESEND_NS : 20 * ALB_NS_PER_MS);
        if (is_answered && is_warm)
            rtt_ns[count++] = alb_raw_now() - start;
        else if (is_answered)
            answered++;
        else if (++*(is_warm ? &lost : &early) > 500) {
            errno = ETIMEDOUT;
            alb_raw_die("no answer");
        }
        is_there |= answer.has_come;
    }
    for (int i = 0; i < 3; i++)
        alb_raw_send_header(&s, &(struct alb_raw_header){.kind = ALB_RAW_FIN});
    print_result(options, rtt_ns, count, lost, (double)alb_raw_cpu_ns() * 1e-9);
    free(rtt_ns);
    free(message);
}

void alb_raw_pingpong_answer(const struct alb_raw_options *options)
{
    struct alb_raw_socket s;
    uint8_t *message = calloc(1, options->message_bytes + 1);
    if (!message)
        alb_raw_die("calloc");
    alb_raw_socket_open(&s, options);
    struct arrival question = {0};
    while (wait_message(&s, options, &question, IDLE_NS)) {
        send_message(&s, message, question.number, options);
        question.bytes = 0;
    }
    free(message);
}
