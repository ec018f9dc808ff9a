// SPDX-License-Identifier: BSD-2-Clause
// Bounded waiting for quiet.
#include "device/drain.h"

#include "device/drive.h"

// A peer that is gone is not waited for longer than this.
#define QUIET_NS_MAX ALB_NS_PER_S

// No thread that runs holds the token for so long.
#define TOKEN_NS_MAX ALB_NS_PER_S

// Our last acknowledgement may have been lost; then the peer asks again after its timeout (67 ms is what most programs
// set), and must find us still there. So where datagrams do get lost we stay until no request has come for a while.
#define LINGER_NS     (200 * ALB_NS_PER_MS)
#define LINGER_NS_MAX (2 * ALB_NS_PER_S)

struct wait {
    bool has_seen_loss;
    uint64_t datagrams;
    alb_time silent_since;
};

static bool has_seen_loss(const struct alb_device *device)
{
    const struct alb_board_header *board = device->board.header;
    static const enum alb_stat signs[] = {ALB_STAT_retransmitted_pkts, ALB_STAT_duplicate_request,
                                          ALB_STAT_out_of_seq_request, ALB_STAT_implied_nak_seq_err,
                                          ALB_STAT_local_ack_timeout_err};
    uint64_t seen = board->edge_stats.counter[ALB_EDGE_fault_lost] + board->device_stats.dropped[ALB_DROP_BAD_ICRC];
    for (size_t i = 0; i < ALB_COUNT(signs); i++)
        seen += board->device_stats.sum.counter[signs[i]];
    return seen != 0 || device->sender.has_faults;
}

static bool is_done(struct alb_device *device, void *context, alb_time now)
{
    struct wait *wait = context;
    bool is_quiet = alb_engine_is_quiet(device->engine);
    uint64_t datagrams = device->board.header->edge_stats.counter[ALB_EDGE_rx_datagrams];
    if (!is_quiet || datagrams != wait->datagrams) {
        wait->datagrams = datagrams;
        wait->silent_since = now;
        wait->has_seen_loss = has_seen_loss(device);
    }
    if (!is_quiet)
        return false;
    return !wait->has_seen_loss || now - wait->silent_since >= LINGER_NS;
}

bool alb_device_can_drain(struct alb_device *device)
{
    bool is_had = alb_token_lock_for(&device->token, TOKEN_NS_MAX);
    if (is_had)
        alb_token_release(&device->token);
    return is_had && alb_port_is_open(&device->port);
}

bool alb_device_drain(struct alb_device *device)
{
    alb_time now = alb_clock_now();
    struct wait wait = {.silent_since = now};
    if (!alb_device_can_drain(device))
        return false;
    alb_device_lock(device);
    wait.has_seen_loss = has_seen_loss(device);
    alb_device_unlock(device);
    alb_drive_until(device, is_done, &wait, now + (wait.has_seen_loss ? LINGER_NS_MAX : QUIET_NS_MAX));
    return true;
}
