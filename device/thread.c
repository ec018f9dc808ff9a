// SPDX-License-Identifier: BSD-2-Clause
// The device thread. While a program polls, it only looks every now and then whether that is still so; when polling
// stops, it takes over. Having driven something it goes on for a short while if a core is free, then sleeps on the
// sockets until something comes or is due.
#include "device/thread.h"

#include "device/address.h"
#include "device/cancel.h"
#include "device/cores.h"
#include "device/drive.h"
#include "device/memory_watch.h"
#include "device/multicast.h"
#include "device/nap.h"
#include "device/spawn.h"

#include <sched.h>
#include <stdio.h>
#include <sys/prctl.h>

// Of one drive. Few, so that a poller that comes back need not wait: two threads that alternate in driving waste two
// cores.
#define BATCHES_OF_DRIVE 2

// After so many bytes in one turn more are likely to follow within the time one burst takes, and sleeping in between
// would cost both ends more than it gives to other threads: go on for so long, even if no core is free.
#define BULK_BYTES   16384
#define BULK_SPIN_NS (30 * ALB_NS_PER_US)

// The answer to a longer WRITE is not waited for: the peer wants to know what has come.
#define LONG_WRITE_BYTES 131072

// On a busy host a poller is away for longer, as it waits for a processor. Who takes over too soon takes the processor
// from other pollers, which take over from each other then (LESSONS 147).
#define TAKEOVER_MAX_NS (16 * ALB_TAKEOVER_NS)

// A program that has waited for an event in so long does so again.
#define AWAITED_NS (10 * ALB_NS_PER_MS)

// While there is traffic we wake at least so often, so that deadlines further away need no wake-up of their own.
#define LAZY_NS   (10 * ALB_NS_PER_MS)
#define ACTIVE_NS ALB_NS_PER_S

// How often a process that does not hold port 4791 looks whether it is orphaned: seldom, unless it talks with foreign
// peers, which can reach it by that port only.
#define FRONT_TRY_NS        (50 * ALB_NS_PER_MS)
#define FRONT_TRY_SELDOM_NS ALB_NS_PER_S

// How often links are looked at while the thread is awake, and how long it sleeps on after news of them.
#define LINKS_NS (100 * ALB_NS_PER_MS)

struct state {
    struct alb_device *device;
    bool can_be_orphaned; // has an address that foreign peers can reach
    struct alb_nap nap;   // is on while the driving is left to a poller
    struct alb_memory_watch watch;
    alb_time traffic_at;
    alb_time bulk_at;
    alb_time front_tried_at;
    alb_time links_at;         // when to look at them again
    bool had_links_news;       // the last time
    struct alb_port_news news; // of the sleep that the last turn ended with
    bool owes_look;            // there was news, and no descriptor or memory to look by
};

static alb_time takeover_ns(const struct alb_device *device)
{
    alb_time ns = ALB_TAKEOVER_NS * alb_engine_host_load(device->engine) / ALB_HOST_LOAD_ONE;
    return ALB_MIN(ns, TAKEOVER_MAX_NS);
}

// When a program last polled, or one that its sockets rouse came by.
static alb_time last_poll(const struct alb_device *device)
{
    alb_time polled_at = atomic_load(&device->polled_at), came_at = atomic_load(&device->rouse.came_at);
    return ALB_MAX(polled_at, came_at);
}

static bool is_within_takeover(const struct alb_device *device, alb_time at, alb_time now)
{
    return at != 0 && now - ALB_MIN(at, now) < takeover_ns(device);
}

static bool is_driven_by_poller(const struct alb_device *device, alb_time now)
{
    return is_within_takeover(device, atomic_load(&device->polled_at), now) ||
           atomic_load_explicit(&device->poller_drives, memory_order_relaxed);
}

// One that is roused comes by for what lies at the sockets, not for what is due.
static bool is_polled(const struct alb_device *device, alb_time now)
{
    return is_driven_by_poller(device, now) ||
           (is_within_takeover(device, atomic_load(&device->rouse.came_at), now) && !alb_drive_is_due(device, now));
}

// It is away each time it has its event: naps last no longer for it than for one that has just begun to poll.
static bool waits_for_events(const struct alb_device *device, alb_time now)
{
    alb_time at = atomic_load_explicit(&device->awaited_at, memory_order_relaxed);
    return at != 0 && now - ALB_MIN(at, now) < AWAITED_NS;
}

// Until polling must have begun again, or the device thread has to take over.
static void nap(struct state *state, alb_time now)
{
    struct alb_device *device = state->device;
    bool is_driving = atomic_load_explicit(&device->poller_drives, memory_order_relaxed);
    alb_time from = is_driving ? now : last_poll(device);
    alb_time share_max_ns = waits_for_events(device, now) ? 0 : ALB_NAP_MAX_NS;
    alb_time until = from + alb_nap_begin(&state->nap, takeover_ns(device), TAKEOVER_MAX_NS, share_max_ns, now);
    if (!is_driven_by_poller(device, now))
        until = ALB_MIN(until, atomic_load(&device->deadline));
    atomic_store(&device->naps, true);
    if (is_polled(device, now)) // who has left it to us before he could see that we nap did not wake us
        alb_port_nap(&device->port, until);
    atomic_store(&device->naps, false);
}

struct taken {
    bool something, writes, fetches, is_bulk;
    bool is_whole; // no WRITE goes on behind it, nor is one that began before it long
};

static struct taken taken_since(const struct alb_rx_counts *before, const struct alb_rx_counts *now)
{
    uint64_t since = before->is_amid_write ? now->write_since : before->bytes;
    return (struct taken){
        .something = now->bytes != before->bytes,
        .writes = now->writes != before->writes,
        .fetches = now->fetches != before->fetches,
        .is_bulk = now->bytes - before->bytes >= BULK_BYTES,
        .is_whole = !now->is_amid_write && now->bytes - since < LONG_WRITE_BYTES,
    };
}

// Until when what is to be sent may wait for the program's answer to what was taken in; 0: it may not.
static alb_time answer_by(struct state *state, const struct taken *taken, alb_time polled_at, alb_time now)
{
    if (!taken->something)
        return alb_memory_watch_took_nothing(&state->watch, now);
    bool only_writes = taken->writes && !taken->fetches && taken->is_whole;
    return alb_memory_watch_took(&state->watch, only_writes, polled_at, now);
}

// Returns when it did, having waited for the token: a time from before that would be an old one to the engine.
static alb_time drive(struct state *state)
{
    struct alb_device *device = state->device;
    alb_token_lock(&device->token);
    alb_time now = alb_clock_now(), polled_at = atomic_load_explicit(&device->polled_at, memory_order_relaxed);
    struct alb_rx_counts before = device->rx.counts;
    bool sent = alb_memory_watch_expects_answer(&state->watch, polled_at) && alb_drive_is_due(device, now) &&
                alb_drive_send(device, BATCHES_OF_DRIVE, now);
    alb_time others_by = alb_engine_wants_tx(device->engine) ? atomic_load(&device->deadline) : ALB_TIME_NEVER;
    if (alb_drive_receive(device, &state->news, &now) > 0)
        alb_drive_hear(device); // who is woken by that wakes while we send
    state->news.is_known = false;
    struct taken taken = taken_since(&before, &device->rx.counts);
    alb_time tx_by = ALB_MIN(others_by, answer_by(state, &taken, polled_at, now));
    sent |= alb_drive_pump(device, tx_by > now ? 0 : BATCHES_OF_DRIVE, now);
    alb_edge_count(&device->board.header->edge_stats, ALB_EDGE_drives_by_thread, 1);
    alb_drive_release_until(device, tx_by);
    if (taken.something || sent)
        state->traffic_at = now;
    if (taken.is_bulk)
        state->bulk_at = alb_clock_now();
    if ((taken.writes || taken.fetches) && alb_nap_is_on(&state->nap) && polled_at != 0) // 0: it sleeps
        alb_memory_watch_begin(&state->watch, now);
    alb_nap_end(&state->nap);
    return now;
}

static alb_time front_try_at(const struct state *state)
{
    if (!state->can_be_orphaned)
        return ALB_TIME_NEVER;
    bool often = atomic_load_explicit(&state->device->has_foreign_peers, memory_order_relaxed);
    return state->front_tried_at + (often ? FRONT_TRY_NS : FRONT_TRY_SELDOM_NS);
}

static void try_front(struct state *state, alb_time now)
{
    struct alb_device *device = state->device;
    if (now < front_try_at(state))
        return;
    alb_token_lock(&device->token);
    if (alb_port_take_front(&device->port))
        alb_edge_count(&device->board.header->edge_stats, ALB_EDGE_relay_takeovers, 1);
    state->can_be_orphaned = !alb_port_is_front(&device->port);
    alb_token_release(&device->token);
    state->front_tried_at = now;
}

// Programs learn that the port goes down, or comes up again.
static void look_at_links(struct state *state, alb_time now)
{
    struct alb_device *device = state->device;
    if (now < state->links_at)
        return;
    state->links_at = now + LINKS_NS;
    state->had_links_news = alb_links_took_news(&device->port.links) || state->owes_look;
    if (!state->had_links_news)
        return;
    bool was_up = device->was_up, is_up = was_up;
    int error = alb_multicast_review(device);
    state->owes_look = alb_address_any_is_up(device->port.addresses, device->port.address_count, &is_up) || error;
    if (is_up == was_up)
        return;
    device->was_up = is_up;
    alb_token_lock(&device->token);
    void (*on_port)(void *context, bool is_up) = device->on_port;
    void *context = device->port_context;
    alb_drive_release(device);
    if (on_port)
        on_port(context, is_up);
}

static void flush_files(struct alb_device *device)
{
    if ((device->has_capture || device->has_trace) && alb_token_try(&device->token)) {
        if (device->has_capture)
            alb_outfile_flush(&device->capture.file);
        if (device->has_trace)
            alb_outfile_flush(&device->trace.file);
        alb_drive_release(device);
    }
}

static alb_time next_look(const struct state *state, alb_time now)
{
    const struct alb_device *device = state->device;
    alb_time active_at = atomic_load_explicit(&device->active_at, memory_order_relaxed);
    alb_time until = front_try_at(state);
    if (active_at != 0 && now - ALB_MIN(active_at, now) < ACTIVE_NS)
        until = ALB_MIN(until, now + LAZY_NS);
    return until;
}

static void rest(struct state *state)
{
    struct alb_device *device = state->device;
    flush_files(device);
    alb_time now = alb_clock_now(), until = ALB_MIN(next_look(state, now), atomic_load(&device->deadline));
    bool for_links = !state->had_links_news || now >= state->links_at;
    if (!for_links)
        until = ALB_MIN(until, state->links_at);
    atomic_store(&device->armed_until, until);
    // A thread that moved the deadline forward, or left a bell to us, before it could see that we sleep did not wake
    // us.
    if (atomic_load(&device->deadline) >= until && !alb_engine_bell_is_rung(device->engine) &&
        !atomic_load(&device->stops)) {
        alb_edge_count(&device->board.header->edge_stats, ALB_EDGE_thread_sleeps, 1);
        alb_cancel_back(PTHREAD_CANCEL_ENABLE);
        state->news = alb_port_sleep(&device->port, until, for_links);
        if (state->news.of_links)
            state->links_at = 0;
        alb_cancel_off();
    }
    atomic_store(&device->armed_until, 0);
}

static void note_cores(struct state *state, alb_time now)
{
    struct alb_device *device = state->device;
    alb_engine_note_host_load(device->engine, alb_cores_load(&device->cores, now));
    atomic_store_explicit(&device->has_room, alb_cores_have_room(&device->cores), memory_order_relaxed);
}

static void turn(struct state *state)
{
    alb_time now = alb_clock_now();
    try_front(state, now); // a program that polls is reached by that port, too
    look_at_links(state, now);
    note_cores(state, now);
    alb_rouse_review(state->device, now);
    if (is_polled(state->device, now) && !alb_memory_watch_is_on(&state->watch, now)) {
        state->news.is_known = false;
        nap(state, now);
        return;
    }
    now = drive(state);
    bool has_traffic = state->traffic_at != 0 && now - state->traffic_at < ALB_LOOK_ON_NS;
    if (state->bulk_at != 0 && now - ALB_MIN(state->bulk_at, now) < BULK_SPIN_NS)
        return;
    if (!has_traffic || !alb_cores_has_free(&state->device->cores, now))
        rest(state);
    else if (state->traffic_at != now)
        sched_yield();
}

static bool has_reachable_address(const struct alb_port *port)
{
    bool found = false;
    for (uint32_t i = 0; i < port->address_count; i++)
        found |= !alb_address_is_loopback(&port->addresses[i]);
    return found;
}

static void *run(void *argument)
{
    struct alb_device *device = argument;
    struct state state = {.device = device};
    alb_cancel_off();                 // but where it sleeps
    prctl(PR_SET_TIMERSLACK, 1000ul); // the usual 50 us would double the takeover time
    state.can_be_orphaned = has_reachable_address(&device->port) && !alb_port_is_front(&device->port);
    while (!atomic_load(&device->stops))
        turn(&state);
    return NULL;
}

int alb_thread_start(struct alb_device *device)
{
    char name[16];
    snprintf(name, sizeof(name), "albedo/%.8s", device->name);
    bool is_up = true;
    alb_address_any_is_up(device->port.addresses, device->port.address_count, &is_up);
    device->was_up = is_up;
    alb_cores_init(&device->cores);
    int error = alb_spawn(&device->thread, name, run, device);
    device->has_thread = error == 0;
    if (error)
        alb_cores_fini(&device->cores);
    return error;
}

void alb_thread_stop(struct alb_device *device)
{
    if (!device->has_thread || pthread_equal(device->thread, pthread_self()))
        return;
    atomic_store(&device->stops, true);
    if (alb_port_is_open(&device->port))
        alb_port_wake(&device->port);
    else // it cannot be woken; what it sleeps on is closed for others only
        pthread_cancel(device->thread);
    pthread_join(device->thread, NULL);
    alb_cores_fini(&device->cores);
    device->has_thread = false;
}
