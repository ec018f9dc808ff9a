// SPDX-License-Identifier: BSD-2-Clause
// The device's own struct, shared by its parts.
#pragma once

#include "device/board.h"
#include "device/clock.h"
#include "device/cores.h"
#include "device/device.h"
#include "device/directory.h"
#include "device/kind.h"
#include "device/path_mtu.h"
#include "device/port.h"
#include "device/rouse.h"
#include "device/rx.h"
#include "device/token.h"
#include "device/trace_file.h"
#include "device/tx.h"

#include <pthread.h>

// A program counts as polling for so long after it last did; then the device thread takes over.
#define ALB_TAKEOVER_NS (100 * ALB_NS_PER_US)

// How long to go on looking after the last traffic, if a core is free: to wake a thread that sleeps on an idle core
// costs more than most round trips.
#define ALB_LOOK_ON_NS (100 * ALB_NS_PER_US)

struct alb_device {
    const struct alb_device_kind *kind;
    const char *name;
    uint32_t refs; // guarded by the registry's mutex
    _Atomic bool is_forked;
    struct alb_engine *engine;
    uint32_t mtu_bytes;
    _Atomic uint32_t ifindexes[ALB_DEVICE_ADDRESSES_MAX]; // written by who opened, then by the thread
    struct alb_device_options options;
    void (*on_event)(void *context, const struct alb_event *event);
    void *event_context;
    void (*on_port)(void *context, bool is_up);
    void *port_context;

    struct alb_port port;
    struct alb_board board;
    struct alb_directory_entry directory;
    struct alb_capture capture;
    struct alb_trace_file trace;
    bool has_capture;
    bool has_trace;

    // The token guards everything the engine, the sockets and the files need.
    _Alignas(64) struct alb_token token;
    alb_time answered_until;  // the last poll took in what programs answer, as a rule by then; else 0
    _Atomic bool owes_a_poll; // one did not look, for that reason, and none has since
    // When a thread last found a completion queue empty, or drove while it waited for an event: when that poll began,
    // or when it ended if it took its time. 0: who polled does not go on.
    _Alignas(64) _Atomic alb_time polled_at;
    _Atomic alb_time awaited_at;       // when one last drove that lives by events (device/await.c, device/rouse.h)
    _Atomic bool poller_drives;        // such a thread holds the token: that may take longer than the takeover time
    _Atomic alb_time poller_kicked_at; // the last kick, if it was a poller's; else 0
    _Alignas(64) _Atomic alb_time deadline; // when to drive at the latest; written by the token's holder
    _Atomic alb_time armed_until; // when the device thread wakes by itself; 0: it is awake, or naps (device/nap.h)
    _Atomic bool naps;            // it sleeps without looking at sockets, since a program polls; not woken yet
    _Atomic uint32_t kicks_left;  // kicks since the last pump that were left to a poller
    _Atomic alb_time active_at;   // when something was last sent or received
    _Atomic bool has_foreign_peers;
    struct alb_rouse rouse;

    pthread_t thread;
    bool has_thread;
    _Atomic bool was_up;    // the port, when it was last looked at: by the thread, first by who opened
    struct alb_cores cores; // the thread's
    _Atomic bool has_room;  // alb_cores_have_room, when it last looked
    _Atomic bool stops;

    struct alb_mtu_watch mtu_watch; // unused where path MTUs are the program's to set
    struct alb_idents *idents;
    struct alb_sender sender;
    struct alb_corruption *corruption; // NULL: none is asked for
    struct alb_rx rx;
};
