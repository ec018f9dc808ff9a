// SPDX-License-Identifier: BSD-2-Clause
// Threads of the program that drive, since they poll or have posted something.
#include "device/drive.h"
#include "device/share.h"

#include <sched.h>

// A poller comes back at once and should read its sockets in between, before it sends megabytes more (LESSONS 101).
#define BATCHES_OF_POLL 1

// A burst of so many bytes is of long messages.
#define LONG_BURST_BYTES 16384

// A program that has polled within this time polls again at once: what it posts is left to that poll, so that several
// messages leave in one burst (LESSONS 16), and what it posts close behind that. But no more than so many of them, and
// only while the device thread looks again soon.
#define POLLER_NS      (20 * ALB_NS_PER_US)
#define CLOSE_NS       (2 * ALB_NS_PER_US)
#define KICKS_LEFT_MAX 32

// Who asks for an event does not wait longer for another thread that drives.
#define LOOK_MAX_NS ALB_NS_PER_MS

// A program that polls until nothing is left does so within this time.
#define ANSWER_NS (10 * ALB_NS_PER_US)

static bool is_within(alb_time now, alb_time ns, const _Atomic alb_time *moment)
{
    alb_time at = atomic_load_explicit(moment, memory_order_relaxed);
    return at != 0 && now - ALB_MIN(at, now) < ns;
}

// True while it follows a poll, or a kick that did.
static bool is_of_poller(struct alb_device *device, alb_time now)
{
    bool is = is_within(now, POLLER_NS, &device->polled_at) || is_within(now, CLOSE_NS, &device->poller_kicked_at);
    atomic_store_explicit(&device->poller_kicked_at, is ? now : 0, memory_order_relaxed);
    return is;
}

static bool may_leave_to_poller(struct alb_device *device, alb_time now)
{
    if (!is_of_poller(device, now) || atomic_load(&device->armed_until) != 0)
        return false;
    // Of threads that post at the same time one may not be counted, which is cheaper than to lock the count.
    uint32_t left = atomic_load_explicit(&device->kicks_left, memory_order_relaxed);
    atomic_store_explicit(&device->kicks_left, left + 1, memory_order_relaxed);
    return left < KICKS_LEFT_MAX;
}

// Unless another thread sets it meanwhile: a poller that has left must not come back by this.
static void move(_Atomic alb_time *moment, alb_time from, alb_time to)
{
    if (from != 0)
        atomic_compare_exchange_strong(moment, &from, to);
}

static void put_off(_Atomic alb_time *moment, alb_time ns)
{
    alb_time at = atomic_load_explicit(moment, memory_order_relaxed);
    move(moment, at, at + ns);
}

// A poller does not stop being one while it sends: it would send each message by itself, which takes longer still.
static void pass_time_of(struct alb_device *device, alb_time sending_ns)
{
    put_off(&device->polled_at, sending_ns);
    put_off(&device->poller_kicked_at, sending_ns);
}

// Programs answer a message, or a few, when they have found that no more are there.
static bool is_answered(const struct alb_rx_counts *before, const struct alb_rx_counts *now)
{
    return now->receives != before->receives && now->fetches == before->fetches &&
           now->bytes - before->bytes < LONG_BURST_BYTES;
}

// True for a poll that is there to find that no more are: it finds that without looking, and what is to be acknowledged
// goes with the answer, which saves system calls on both ends (LESSONS 154).
static bool is_before_answer(const struct alb_device *device, alb_time now)
{
    return now < device->answered_until && !alb_drive_is_due(device, now);
}

// After a look at the sockets; until 0: to nothing that it took in.
static void expect_answer(struct alb_device *device, alb_time until)
{
    device->answered_until = until;
    atomic_store_explicit(&device->owes_a_poll, false, memory_order_relaxed);
}

// The program is one that its sockets rouse.
static bool is_roused(const struct alb_device *device)
{
    return atomic_load_explicit(&device->rouse.came_at, memory_order_relaxed) != 0;
}

static void note_came(struct alb_device *device, alb_time now)
{
    move(&device->rouse.came_at, atomic_load_explicit(&device->rouse.came_at, memory_order_relaxed), now);
    atomic_store_explicit(&device->awaited_at, now, memory_order_relaxed);
}

void alb_device_kick(struct alb_device *device, struct alb_qp *qp)
{
    alb_engine_bell_ring(qp);
    alb_time now = alb_clock_now();
    if (may_leave_to_poller(device, now) || !alb_token_try(&device->token))
        return;
    bool is_poller = is_within(now, ALB_TAKEOVER_NS, &device->polled_at);
    atomic_store_explicit(&device->poller_drives, is_poller, memory_order_relaxed);
    expect_answer(device, 0);
    if (alb_drive_pump(device, ALB_DRIVE_BATCHES, now))
        pass_time_of(device, alb_clock_now() - now);
    atomic_store_explicit(&device->poller_drives, false, memory_order_relaxed);
    alb_drive_release(device);
    if (is_poller && atomic_load(&device->polled_at) == 0) // it has left, and the device thread naps for our sake
        alb_drive_leave_to_thread(device);
}

// The poll that has begun has not ended yet.
static void go_on_polling(struct alb_device *device, alb_time now)
{
    move(&device->polled_at, atomic_load_explicit(&device->polled_at, memory_order_relaxed), now);
}

// One that its sockets rouse is awake now, and polls until nothing is left. What it posts meanwhile goes with such a
// poll, or when it arms its queue: if it went at once, each small message would leave by itself.
static void note_taken_in(struct alb_device *device, alb_time now)
{
    if (is_roused(device))
        atomic_store_explicit(&device->polled_at, now, memory_order_relaxed);
    else
        go_on_polling(device, now);
}

static _Thread_local struct alb_share share = ALB_SHARE_INIT;

// The poll ends when the core is back: what the program posts behind it need not fear that no poll follows.
static void share_core(struct alb_device *device)
{
    if (!alb_share_found_none(&share))
        return;
    alb_time before = alb_clock_now();
    if (!alb_share_yields(&share, before))
        return;
    sched_yield();
    alb_time after = alb_clock_now();
    if (alb_share_yielded(&share, before, after, alb_engine_host_load(device->engine)))
        go_on_polling(device, after);
}

// True if a pump would find nothing: nothing is posted, due, or waits to be sent.
static bool is_at_rest(const struct alb_device *device, alb_time now)
{
    return !alb_drive_is_due(device, now) && !alb_engine_wants_tx(device->engine);
}

// Of the batch that was sent last, the first burst stands for all.
static bool was_bulk(const struct alb_tx *tx)
{
    return tx->burst_count > 0 && tx->bursts->segment_count * tx->bursts->segment_bytes >= LONG_BURST_BYTES;
}

// To send megabytes may take longer than a poller may be silent, and the device thread must not take over for that.
// Small messages take next to nothing, and are not worth a look at the clock.
static bool send_as_poller(struct alb_device *device, alb_time now)
{
    bool sent = alb_drive_send(device, BATCHES_OF_POLL, now);
    if (sent && was_bulk(&device->sender.tx))
        go_on_polling(device, alb_clock_now());
    return sent;
}

// With the token, which it gives back. Returns true if there was anything to do.
static bool drive_as_poller(struct alb_device *device, bool goes_on, bool at_all, alb_time now)
{
    bool rests = is_at_rest(device, now);
    struct alb_rx_counts before = device->rx.counts;
    expect_answer(device, 0);
    atomic_store_explicit(&device->poller_drives, true, memory_order_relaxed);
    // Sends before it receives, be it for a timer, so that a completion is not kept waiting for the acknowledgement of
    // its message to leave: that goes with what the program posts next, with one of its next two polls, or by the
    // device thread if neither comes.
    bool worked = !rests && send_as_poller(device, now);
    if (!rests)
        alb_drive_tick(device, &now);
    bool had_more = alb_engine_wants_tx(device->engine);
    if ((at_all ? alb_drive_receive(device, NULL, &now) : alb_drive_receive_hot(device, &now)) > 0) {
        if (goes_on && !had_more && is_answered(&before, &device->rx.counts))
            expect_answer(device, now + ANSWER_NS);
        alb_drive_hear(device);
        worked = true;
        note_taken_in(device, now);
    }
    atomic_store_explicit(&device->poller_drives, false, memory_order_relaxed);
    if (!rests || worked)
        alb_drive_release_until(device, now + ALB_TAKEOVER_NS);
    else
        alb_drive_release_unchanged(device, now + ALB_TAKEOVER_NS);
    return worked;
}

// goes_on: it is one of many.
static bool poll(struct alb_device *device, bool goes_on, alb_time now)
{
    if (!alb_token_try(&device->token))
        return false;
    if (!goes_on || !is_before_answer(device, now))
        return drive_as_poller(device, goes_on, false, now);
    device->answered_until = 0;
    atomic_store_explicit(&device->owes_a_poll, true, memory_order_relaxed);
    alb_drive_release_unchanged(device, now + ALB_TAKEOVER_NS);
    return false;
}

static void poll_and_share(struct alb_device *device, bool goes_on, alb_time now)
{
    if (poll(device, goes_on, now))
        alb_share_found(&share);
    else
        share_core(device);
}

void alb_device_poll(struct alb_device *device)
{
    alb_time now = alb_clock_now();
    atomic_store_explicit(&device->polled_at, now, memory_order_relaxed);
    poll_and_share(device, true, now);
}

void alb_device_poll_once(struct alb_device *device, bool by_roused)
{
    alb_time now = alb_clock_now();
    atomic_store_explicit(&device->polled_at, 0, memory_order_relaxed);
    if (by_roused)
        note_came(device, now);
    poll_and_share(device, false, now);
}

bool alb_drive_look(struct alb_device *device)
{
    if (!alb_token_lock_for(&device->token, LOOK_MAX_NS))
        return false;
    drive_as_poller(device, true, true, alb_clock_now());
    return true;
}

static bool leaves_something(const struct alb_device *device)
{
    return alb_drive_is_due(device, alb_clock_now() + ALB_TAKEOVER_NS);
}

// The device thread naps while a program that its sockets rouse sleeps: nothing is left to it.
static void go_to_sleep(struct alb_device *device)
{
    atomic_store(&device->polled_at, 0); // who posts from now on sends
    if (leaves_something(device))
        alb_device_poll_once(device, true);
    atomic_store(&device->polled_at, 0);
    if (leaves_something(device) && alb_token_try(&device->token)) { // by what that has taken in
        alb_drive_pump(device, ALB_DRIVE_BATCHES, alb_clock_now());
        alb_drive_release(device);
    }
}

void alb_device_note_armed(struct alb_device *device, bool by_roused)
{
    if (by_roused)
        go_to_sleep(device);
    else if (alb_unlikely(atomic_load_explicit(&device->owes_a_poll, memory_order_relaxed) ||
                          alb_engine_bell_is_rung(device->engine)))
        alb_device_poll_once(device, false);
}
