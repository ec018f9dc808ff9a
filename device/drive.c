// SPDX-License-Identifier: BSD-2-Clause
// One turn of the engine, and what takes the token for control calls.
#include "device/drive.h"

#include "device/cancel.h"
#include "device/crash.h"
#include "device/durable.h"
#include "device/failure.h"

// Timers that fire so late fire because no thread drove.
#define LATE_NS         (5 * ALB_NS_PER_MS)
#define CATCH_UP_ROUNDS 64
#define READ_OUT_BYTES  (4u << 20)

// If nobody has looked at the sockets for so long, more may lie there than one look takes.
#define HALT_NS ALB_NS_PER_MS

// How often a poller looks at the socket that had something last before it looks at all of them.
#define HOT_LOOKS 8

static void note_look(struct alb_port *port, alb_time now)
{
    port->is_behind |= now - ALB_MIN(port->read_at, now) >= HALT_NS;
    port->read_at = now;
}

static uint32_t receive_from(struct alb_device *device, struct alb_socket *sock, alb_time *now)
{
    uint32_t messages = alb_rx_receive(&device->rx, sock, now);
    if (messages > 0)
        alb_port_note_found(&device->port, sock);
    return messages;
}

// One that was not ready, or was read out, when all of them were looked at last time was empty then. One that had as
// much as was asked for keeps the time from before that.
static void note_empty(const struct alb_port *port, struct alb_socket *sock)
{
    if (!sock->rx_was_full)
        sock->empty_at = ALB_MAX(sock->empty_at, port->looked_at);
}

static uint32_t receive_from_all(struct alb_device *device, const struct alb_port_news *news, alb_time *now)
{
    struct alb_port *port = &device->port;
    struct alb_socket *ready[2 * ALB_DEVICE_ADDRESSES_MAX];
    alb_time looked_at = news && news->is_known ? news->looked_at : *now;
    uint32_t messages = 0, count = alb_port_ready(port, news, ready, ALB_COUNT(ready));
    bool is_read_out = count < ALB_COUNT(ready);
    if (count > 0)
        atomic_store_explicit(&device->rouse.stirred, true, memory_order_relaxed);
    for (uint32_t i = 0; i < count; i++) {
        note_empty(port, ready[i]);
        messages += receive_from(device, ready[i], now);
        is_read_out &= !ready[i]->rx_was_full;
    }
    port->is_behind &= !is_read_out;
    if (count < ALB_COUNT(ready)) // else others may be ready, too
        port->looked_at = looked_at;
    port->looks = 0;
    return messages;
}

static uint32_t note_received(struct alb_device *device, uint32_t messages, alb_time now)
{
    if (messages > 0) {
        atomic_store_explicit(&device->active_at, now, memory_order_relaxed);
        atomic_store_explicit(&device->rouse.stirred, true, memory_order_relaxed);
    }
    return messages;
}

uint32_t alb_drive_receive(struct alb_device *device, const struct alb_port_news *news, alb_time *now)
{
    note_look(&device->port, *now);
    uint32_t messages = receive_from_all(device, news, now);
    return note_received(device, messages, *now);
}

uint32_t alb_drive_receive_hot(struct alb_device *device, alb_time *now)
{
    note_look(&device->port, *now);
    uint32_t messages = ++device->port.looks < HOT_LOOKS ? receive_from(device, device->port.hot, now)
                                                         : receive_from_all(device, NULL, now);
    return note_received(device, messages, *now);
}

static void deliver_events(struct alb_device *device)
{
    struct alb_event event;
    while (alb_engine_event(device->engine, &event)) {
        if (event.type == ALB_EVENT_QP_FAILED)
            alb_failure_log(event.qp, &event.failure, &device->board.header->edge_stats);
        if (event.type == ALB_EVENT_JOURNAL)
            alb_durables_take_requests(device->engine);
        if (device->on_event)
            device->on_event(device->event_context, &event);
    }
}

static void watch_paths(struct alb_device *device, alb_time now)
{
    struct alb_outbox *outbox = &device->sender.outbox;
    const struct alb_tx *tx = &device->sender.tx;
    for (uint32_t i = 0; i < tx->burst_count; i++)
        alb_mtu_watch_sent(&device->mtu_watch, &tx->bursts[i].local.addr, &tx->bursts[i].peer, now);
    if (outbox->has_too_big)
        alb_mtu_watch_refused(&device->mtu_watch, &outbox->too_big_local.addr, &outbox->too_big_peer, now);
    outbox->has_too_big = false;
}

static bool send_batches(struct alb_device *device, uint32_t batches_max, alb_time now)
{
    bool sent = false;
    for (uint32_t i = 0; i < batches_max && alb_engine_wants_tx(device->engine); i++) {
        if (alb_engine_tx(device->engine, &device->sender.tx, now) == 0)
            break;
        alb_crash_at_batch(ALB_CRASH_TX, &device->sender.tx);
        alb_sender_send(&device->sender, now);
        alb_crash_at_batch(ALB_CRASH_SENT, &device->sender.tx);
        if (device->kind->finds_path_mtu)
            watch_paths(device, now);
        sent = true;
    }
    if (alb_sender_deadline(&device->sender) <= now)
        sent |= alb_sender_send_due(&device->sender, now) > 0;
    return sent;
}

void alb_drive_hear(struct alb_device *device)
{
    deliver_events(device);
    if (device->has_trace)
        alb_trace_file_drain(&device->trace, device->engine);
}

// What a timer misses may lie unread in a socket: after a halt behind more than a single read takes. (Whoever receives
// as fast as he can is always behind by more than that, and must send in between: LESSONS 152.) After a while without a
// driver there may also be peers, or queue pairs of our own, that wait for us.
static void look_before_judging(struct alb_device *device, alb_time deadline, alb_time *now)
{
    uint64_t bytes_before = device->rx.counts.bytes;
    bool is_late = *now - deadline >= LATE_NS, worked = alb_drive_receive(device, NULL, now) > 0;
    for (uint32_t i = 0; i < CATCH_UP_ROUNDS && device->port.is_behind; i++) {
        if (device->rx.counts.bytes - bytes_before > READ_OUT_BYTES) // they come as fast as they are read
            break;
        worked |= alb_drive_receive(device, NULL, now) > 0;
    }
    device->port.is_behind = false;
    for (uint32_t i = 0; i < CATCH_UP_ROUNDS && worked && is_late; i++) {
        worked = send_batches(device, ALB_DRIVE_BATCHES, *now);
        worked |= alb_drive_receive(device, NULL, now) > 0;
    }
}

void alb_drive_tick(struct alb_device *device, alb_time *now)
{
    alb_time deadline = alb_engine_deadline(device->engine);
    if (deadline > *now)
        return;
    look_before_judging(device, deadline, now);
    alb_engine_tick(device->engine, *now);
    alb_drive_hear(device);
}

// Whoever holds the token publishes the deadline before giving it back.
bool alb_drive_is_due(const struct alb_device *device, alb_time now)
{
    return alb_engine_bell_is_rung(device->engine) ||
           atomic_load_explicit(&device->deadline, memory_order_relaxed) <= now;
}

static void answer_bells(struct alb_device *device, alb_time now)
{
    atomic_store_explicit(&device->kicks_left, 0, memory_order_relaxed);
    if (alb_engine_bell_is_rung(device->engine))
        alb_engine_bells(device->engine, now);
}

static bool send_and_hear(struct alb_device *device, uint32_t batches_max, alb_time now)
{
    bool sent = send_batches(device, batches_max, now);
    alb_drive_hear(device);
    if (sent)
        atomic_store_explicit(&device->active_at, now, memory_order_relaxed);
    return sent;
}

bool alb_drive_send(struct alb_device *device, uint32_t batches_max, alb_time now)
{
    answer_bells(device, now);
    return send_and_hear(device, batches_max, now);
}

bool alb_drive_pump(struct alb_device *device, uint32_t batches_max, alb_time now)
{
    answer_bells(device, now);
    alb_drive_tick(device, &now);
    return send_and_hear(device, batches_max, now);
}

// tx_by: when what waits to be sent has to go at the latest.
static void publish_deadline(struct alb_device *device, alb_time tx_by)
{
    alb_time deadline = ALB_MIN(alb_engine_deadline(device->engine), alb_sender_deadline(&device->sender));
    if (alb_engine_wants_tx(device->engine))
        deadline = ALB_MIN(deadline, tx_by);
    // Only the holder of the token writes it.
    if (deadline != atomic_load_explicit(&device->deadline, memory_order_relaxed))
        atomic_store(&device->deadline, deadline);
}

static void wake_thread_if_late(struct alb_device *device)
{
    alb_time armed_until = atomic_load(&device->armed_until);
    if (atomic_load(&device->deadline) >= armed_until)
        return;
    // Only the first one to notice wakes it.
    if (atomic_compare_exchange_strong(&device->armed_until, &armed_until, 0)) {
        // Not under the token, so others may count beside us.
        __atomic_fetch_add(&device->board.header->edge_stats.counter[ALB_EDGE_thread_wakes], 1, __ATOMIC_RELAXED);
        alb_port_wake(&device->port);
    }
}

void alb_drive_leave_to_thread(struct alb_device *device)
{
    atomic_store(&device->polled_at, 0);
    if (atomic_load(&device->naps) && atomic_exchange(&device->naps, false))
        alb_port_wake(&device->port);
}

static void publish_and_release(struct alb_device *device, alb_time tx_by)
{
    publish_deadline(device, tx_by);
    alb_token_release(&device->token);
    wake_thread_if_late(device);
}

// A thread that rang a bell while we held the token relies on us to serve it.
static void serve_bells(struct alb_device *device, alb_time tx_by)
{
    while (alb_unlikely(alb_engine_bell_is_rung(device->engine)) && alb_token_retake(&device->token)) {
        alb_drive_pump(device, ALB_DRIVE_BATCHES, alb_clock_now());
        publish_and_release(device, tx_by);
    }
}

void alb_drive_release_until(struct alb_device *device, alb_time tx_by)
{
    publish_and_release(device, tx_by);
    serve_bells(device, tx_by);
}

void alb_drive_release_unchanged(struct alb_device *device, alb_time tx_by)
{
    alb_token_release(&device->token);
    serve_bells(device, tx_by);
}

void alb_drive_release(struct alb_device *device)
{
    alb_drive_release_until(device, 0);
}

// A thread that waits for a token, or has one, is not cancelled: what it does with it may be a long way.
static _Thread_local struct {
    uint32_t tokens;
    int cancel; // as it was before the first of them
} locked;

void alb_device_lock(struct alb_device *device)
{
    int cancel = alb_cancel_off();
    if (locked.tokens++ == 0)
        locked.cancel = cancel;
    alb_token_lock(&device->token);
    alb_engine_set_now(device->engine, alb_clock_now());
}

void alb_device_catch_up(struct alb_device *device)
{
    alb_drive_pump(device, ALB_DRIVE_BATCHES, alb_clock_now());
}

void alb_device_unlock(struct alb_device *device)
{
    alb_device_catch_up(device);
    alb_drive_release(device);
    if (--locked.tokens == 0)
        alb_cancel_back(locked.cancel);
}

bool alb_drive_until(struct alb_device *device, bool (*is_done)(struct alb_device *device, void *context, alb_time now),
                     void *context, alb_time until)
{
    const struct timespec pause = alb_timespec(20 * ALB_NS_PER_US);
    int cancel = alb_cancel_off();
    alb_time now = alb_clock_now();
    bool done = false;
    while (!done && now < until && alb_token_lock_for(&device->token, until - now)) {
        now = alb_clock_now();
        atomic_store_explicit(&device->polled_at, now, memory_order_relaxed);
        bool worked = alb_drive_receive(device, NULL, &now) > 0;
        worked |= alb_drive_pump(device, ALB_DRIVE_BATCHES, now);
        done = is_done(device, context, now);
        alb_drive_release(device);
        if (!done && !worked)
            nanosleep(&pause, NULL);
        now = alb_clock_now();
    }
    alb_cancel_back(cancel);
    return done;
}
