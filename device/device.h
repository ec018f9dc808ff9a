// SPDX-License-Identifier: BSD-2-Clause
// A device: one engine with its sockets, its thread, its process slot and its locks. A process has at most one per
// device name, shared by all callers that open it: "roce0" speaks RoCEv2, "albedo0" CSA. An unopened one costs nothing.
//
// Driving: the holder of the driver token may call the engine. A thread that polls an empty completion queue takes it
// (alb_device_poll), posting tries it (alb_device_kick), control calls wait for it (alb_device_lock), and the device's
// own thread takes over when no thread polls: within 100 to 400 us, after long polling within 2 ms.
#pragma once

#include "base/faults.h"
#include "engine/engine.h"

#define ALB_DEVICE_ADDRESSES_MAX 16
#define ALB_DEVICE_NAMES         2
#define ALB_DEVICE_POLICY_MAX    256
#define ALB_DEVICE_ERROR_MAX     640 // room for what is said of options

struct alb_device;

// The names of devices, in the order in which programs see them; NULL behind the last.
const char *alb_device_name(uint32_t index);

// The devices that programs are shown, as indexes of alb_device_name.
struct alb_device_selection {
    uint32_t count;
    uint32_t index[ALB_DEVICE_NAMES];
};

// Reads names separated by commas. On EINVAL error says what is wrong.
int alb_device_select(const char *list, struct alb_device_selection *selection, char *error, size_t error_size);
// Those of ALBEDO_DEVICES, which `albedo run` sets; unset or empty: all, or those that have the level of completions
// which ALBEDO_COMPLETIONS raises. Errors as above; also a device that does not have it.
int alb_device_selection_from_environment(struct alb_device_selection *selection, char *error, size_t error_size);
// A line of warning for each ALBEDO_ variable that means nothing; returns how many there are. NULL ends the list, or is
// none.
uint32_t alb_device_warn_of_variables(char *const *environment);

struct alb_device_options {
    struct alb_addr addresses[ALB_DEVICE_ADDRESSES_MAX]; // GID table, in order
    uint32_t address_count;
    char left_out[ALB_DEVICE_ERROR_MAX]; // what was asked for is not among them, and why; "": nothing
    struct alb_faults_spec faults;
    uint64_t fault_seed;
    // Of albedo0; roce0 leaves them alone.
    uint32_t path_max;                                  // 0: the engine's default
    char policies[ALB_POLICIES][ALB_DEVICE_POLICY_MAX]; // a name, perhaps with ":" and parameters; "": the default
    uint8_t completions;   // enum alb_level that completes a program's WRITEs and SENDs on RC
    char pcap_path[4096];  // "": none; %p becomes the process id, %d the device's name
    char trace_path[4096]; // likewise
    char stats_path[4096]; // likewise: the counters as JSON, written when the device closes or the process exits
};

// Options from the environment, which `albedo run` sets: ALBEDO_NET (addresses or interface names, comma-separated;
// unset: 127.0.0.1 and, where it exists, ::1), ALBEDO_FAULTS, ALBEDO_SEED, ALBEDO_PCAP, ALBEDO_TRACE, ALBEDO_STATS,
// ALBEDO_PATHS, ALBEDO_LOSS, ALBEDO_CONGESTION, ALBEDO_PATH, ALBEDO_CREDIT, ALBEDO_COMPLETIONS. ALBEDO_DIRECTORY is no
// option, but checked with them. On EINVAL error says what is wrong and what would be right, if error_size is
// ALB_DEVICE_ERROR_MAX. Other errors (EMFILE, ENOMEM, ...) are the host's; some leave error as it was.
int alb_device_options_from_environment(struct alb_device_options *options, char *error, size_t error_size);

// enum alb_level of ALBEDO_COMPLETIONS; unset or empty: delivered. Errors as above.
int alb_device_level_from_environment(uint8_t *level, char *error, size_t error_size);

// Sets what these options give the engine of a device of that name: transport, policies, paths. config refers to the
// options' strings from then on. ENODEV: no such device.
int alb_device_configure(const char *name, const struct alb_device_options *options, struct alb_engine_config *config);

// Opens the process's device of that name, or takes another reference to it; options count for the first open only. The
// first device that a process opens writes the files that they name; another one appends "." and its name to theirs.
// ENODEV: no such device; EADDRNOTAVAIL: an address is not local; EADDRINUSE: no process slot is free; EMFILE and
// the like.
int alb_device_open(const char *name, const struct alb_device_options *options, struct alb_device **device);
// Drops a reference. The last one waits (bounded) until the engine is quiet, then stops the thread and frees the slot.
void alb_device_close(struct alb_device *device);

struct alb_engine *alb_device_engine(struct alb_device *device);
// The engine's time: CLOCK_MONOTONIC in nanoseconds.
alb_time alb_device_now(void);
uint8_t alb_device_slot(const struct alb_device *device);
// Largest RoCE MTU that every address's interface carries: 256 to 4096.
uint32_t alb_device_mtu_bytes(const struct alb_device *device);
// NULL beyond the end of the GID table.
const struct alb_addr *alb_device_gid(const struct alb_device *device, uint32_t index);
// The IPv4 or IPv6 interface index that carries a GID, 0 if unknown.
uint32_t alb_device_gid_ifindex(const struct alb_device *device, uint32_t index);

// Fills the address vector for sending from a GID of this device to peer: local, peer, same_host. EINVAL: no such
// index; ENETUNREACH: the two are of different families.
int alb_device_resolve(struct alb_device *device, uint32_t gid_index, const struct alb_addr *peer, struct alb_av *av);

// Waits for the driver token; control calls on the engine stand between lock and unlock. Unlock sends what they left to
// send and delivers events. Not recursive.
void alb_device_lock(struct alb_device *device);
void alb_device_unlock(struct alb_device *device);

// Between the two: takes up what has been posted, which a poller may have left for its next poll. What completes by
// being sent has completed then, as far as the sockets took it.
void alb_device_catch_up(struct alb_device *device);

// Attaches a queue pair to a multicast group (alb_qp_attach) and receives what is sent there, on every interface that
// carries an address of the device: from this host, and through any interface but loopback from others. To be called
// without the token. Errors: those of alb_qp_attach and alb_groups_join.
int alb_device_attach(struct alb_device *device, struct alb_qp *qp, const struct alb_addr *group);
// EINVAL: it is not attached.
int alb_device_detach(struct alb_device *device, struct alb_qp *qp, const struct alb_addr *group);
void alb_device_detach_all(struct alb_device *device, struct alb_qp *qp);

// Work was posted to the queue pair: rings its bell and, if the token is free, drives the engine so that it leaves at
// once.
void alb_device_kick(struct alb_device *device, struct alb_qp *qp);

// A completion queue was found empty: drives the engine once if the token is free (else returns: its holder drives).
// But not right after a poll that took in what programs answer: this one is there to find that no more has come.
void alb_device_poll(struct alb_device *device);
// Likewise for one that is armed: the program is about to sleep, and does not count as one that polls. by_roused: it is
// one that its sockets rouse (alb_device_ask), which does if this takes something in.
void alb_device_poll_once(struct alb_device *device, bool by_roused);

// A completion queue was armed: if no other poll follows, what the last one left to an answer is sent now; by_roused:
// everything that is due soon.
void alb_device_note_armed(struct alb_device *device, bool by_roused);

// A thread waits for something that the device raises: drives it, as a poller would, while the host has a core for it
// and the network was in use a moment ago, for 100 us at most, and ends as soon as is_raised says so, which is asked
// before each turn. Not to be called with a lock, nor by several threads at a time: one that returns leaves the others
// to naps.
void alb_device_await(struct alb_device *device, bool (*is_raised)(void *context), void *context);
// A thread that has polled goes to sleep: what it posted is sent, and the device's own thread drives from now on.
void alb_device_leave(struct alb_device *device);

enum alb_roused {
    ALB_ROUSED_NOT,     // by nothing but events
    ALB_ROUSED_QUIET,   // its file is readable while something lies at the sockets; nothing did since it last asked
    ALB_ROUSED_STIRRED, // something did
};

// A thread asked, without waiting, for an event that the device raises, and none is there. fd: of an epoll instance
// that is readable while one is; had_one: it has had one since it last asked in vain. From a program that does so again
// and again what lies at the sockets is taken in, and fd is readable while something lies there. Who has found it
// readable takes it for an error if there is no event then, and is owed one even if none was raised: on
// ALB_ROUSED_STIRRED, and on ALB_ROUSED_NOT if the answer before was another.
enum alb_roused alb_device_ask(struct alb_device *device, int fd, bool had_one);
// It will be closed.
void alb_device_forget_file(struct alb_device *device, int fd);

// Where engine events go: called with the token held, by whichever thread drives; it must not call back into the
// device. Set by the door before the first object is created.
void alb_device_set_event_handler(struct alb_device *device,
                                  void (*on_event)(void *context, const struct alb_event *event), void *context);

// Where the port's changes go: called by the device's thread, without the token. Set like the handler of events.
void alb_device_set_port_handler(struct alb_device *device, void (*on_port)(void *context, bool is_up), void *context);
// Whether an interface of the device is up: one that has an address of the GID table.
bool alb_device_is_up(const struct alb_device *device);

// True in a process that was forked from the one that opened the device: it must not touch it (ibv_fork_init(3)).
bool alb_device_is_forked(const struct alb_device *device);
