// SPDX-License-Identifier: BSD-2-Clause
// The end of a process on demand.
#include "device/crash.h"

#include "device/outbox.h"

#include "base/log.h"
#include "wire/csa.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// The order is that of the enumerations.
static const char *const places[] = {"rx", "tx", "sent", "append", "written", "safe"};
static const char *const kinds[] = {"prepare", "commit", "abort"};
static const char *const commands[] = {"", "ask", "commit", "abort"};
static const char *const verdicts[] = {"", "pending", "reflected", "committed", "aborted", "corrupt", "unknown"};

bool alb_crash_is_set;

static struct {
    enum alb_crash_place place;
    char what[16];
    _Atomic long left;
} crash;

static bool parse(const char *text)
{
    char place[16];
    long count;
    if (sscanf(text, "%15[a-z]:%15[a-z]:%ld", place, crash.what, &count) != 3 || count < 1)
        return false;
    for (size_t i = 0; i < ALB_COUNT(places); i++) {
        if (strcmp(place, places[i]) != 0)
            continue;
        crash.place = (enum alb_crash_place)i;
        atomic_store(&crash.left, count);
        return true;
    }
    return false;
}

static void init_once(void)
{
    const char *text = getenv("ALBEDO_CRASH");
    if (!text || !*text)
        return;
    alb_crash_is_set = parse(text);
    if (!alb_crash_is_set)
        alb_log(ALB_LOG_ERROR, "ALBEDO_CRASH is \"%s\", not PLACE:WHAT:N", text);
}

void alb_crash_init(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, init_once);
}

bool alb_crash_is_armed(enum alb_crash_place place)
{
    return alb_crash_is_set && crash.place == place;
}

static void happen(const char *what)
{
    if (strcmp(what, crash.what) == 0 && atomic_fetch_sub(&crash.left, 1) == 1)
        kill(getpid(), SIGKILL);
}

static const char *segment_name(const struct alb_csa_segment *segment)
{
    if (segment->op == ALB_CSA_TXN_WRITE)
        return "write";
    if (segment->op == ALB_CSA_TXN_END)
        return "end";
    return segment->flags & ALB_CSA_REFLECT ? "message" : "";
}

static const char *frame_name(const struct alb_csa_frame *frame)
{
    switch (frame->type) {
    case ALB_CSA_REQUEST:
        return segment_name(&frame->segment);
    case ALB_CSA_TXN:
        return commands[frame->txn.command < ALB_COUNT(commands) ? frame->txn.command : 0];
    case ALB_CSA_VERDICT:
        return verdicts[frame->verdict.state < ALB_COUNT(verdicts) ? frame->verdict.state : 0];
    default:
        return "";
    }
}

void alb_crash_look_at_packet(enum alb_crash_place place, const uint8_t *bytes, uint32_t length)
{
    struct alb_csa_header header;
    struct alb_csa_cursor cursor;
    struct alb_csa_frame frame;
    enum alb_drop drop = ALB_DROP_NONE;
    if (!alb_crash_is_armed(place) || length < ALB_ICRC_BYTES || !alb_csa_is_packet(bytes, length - ALB_ICRC_BYTES) ||
        alb_csa_decode(bytes, length - ALB_ICRC_BYTES, &header, &cursor) != ALB_DROP_NONE)
        return;
    while (alb_csa_next(&cursor, &frame, &drop))
        happen(frame_name(&frame));
}

static void gather(const struct alb_tx *tx, const struct alb_segment *segment, uint8_t *bytes)
{
    uint32_t length = 0;
    for (const struct iovec *iov = &tx->iov[segment->iov_first]; length < segment->length; iov++) {
        memcpy(bytes + length, iov->iov_base, iov->iov_len);
        length += (uint32_t)iov->iov_len;
    }
}

// The threads of programs come here, whose stacks may be small: a packet's bytes are not put on them.
void alb_crash_look_at_batch(enum alb_crash_place place, const struct alb_tx *tx)
{
    if (!alb_crash_is_armed(place))
        return;
    uint8_t *bytes = malloc(ALB_UDP_PAYLOAD_MAX);
    alb_assert(bytes != NULL);
    for (uint32_t b = 0; b < tx->burst_count; b++) {
        const struct alb_burst *burst = &tx->bursts[b];
        for (uint32_t s = 0; s < burst->segment_count; s++) {
            const struct alb_segment *segment = &tx->segments[burst->segment_first + s];
            gather(tx, segment, bytes);
            alb_crash_look_at_packet(place, bytes, segment->length);
        }
    }
    free(bytes);
}

void alb_crash_at_journal(enum alb_crash_place place, enum alb_journal_kind kind)
{
    if (alb_crash_is_armed(place))
        happen(kinds[kind]);
}
