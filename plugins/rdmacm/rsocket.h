// SPDX-License-Identifier: BSD-2-Clause
// Rsockets: the calls of <rdma/rsocket.h>, sockets whose bytes travel by RDMA. What all of them have, whatever their
// type: a number, a lock, and the way in which threads wait.
//
// An rsocket's number is a real descriptor, so that no other thing gets it: an epoll descriptor, readable when
// something may have happened to the rsocket. In it are the completion channels and an eventfd by which threads wake
// each other.
//
// Locks, outermost first: that of an epoll instance; an rsocket's lock; that of the listener it came from; those of
// door.h; the table's.
#pragma once

#include "plugins/rdmacm/door.h"
#include "plugins/rdmacm/rsocket_ring.h"

#include <poll.h>
#include <rdma/rsocket.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/socket.h>

// What rsetsockopt can say before a connection is there.
struct rsocket_settings {
    uint32_t receive_bytes, send_bytes;
    uint32_t receive_queue, send_queue, inline_bytes, iomap_count;
    int polling_us; // how long a call polls before it sleeps
};

struct rsocket;

// What the types do differently. All but free are called with the rsocket's lock held. Errors are numbers; transfers
// return them negated.
struct rsocket_ops {
    int (*bind)(struct rsocket *rs, const struct sockaddr *address, socklen_t length);
    int (*connect)(struct rsocket *rs, const struct sockaddr *address, socklen_t length);
    ssize_t (*send)(struct rsocket *rs, struct rsocket_cursor *from, int flags, const struct sockaddr *to,
                    socklen_t length);
    // from->ss_family stays 0 where the sender goes without saying.
    ssize_t (*receive)(struct rsocket *rs, struct rsocket_cursor *to, int flags, struct sockaddr_storage *from);
    int (*shutdown)(struct rsocket *rs, int how);
    // Takes what has completed; true if something has changed that a thread may wait for.
    bool (*progress)(struct rsocket *rs);
    // Sees to it that the number becomes readable with the next change; false: something has changed already.
    bool (*arm)(struct rsocket *rs);
    // Of poll(2): all that hold.
    short (*events)(struct rsocket *rs);
    // The service thread found service_fd readable; false: it is not to be watched until asked for again.
    bool (*serve)(struct rsocket *rs);
    // [service, now and then] Finds out whether the peer is still there. NULL: there is no peer to ask.
    void (*probe)(struct rsocket *rs);
    // Last words, and waits for them if it must, until the time that it is given.
    void (*close)(struct rsocket *rs, alb_time until);
    int (*address)(struct rsocket *rs, bool is_peer, struct sockaddr_storage *out);
    int (*set_option)(struct rsocket *rs, int level, int name, const void *value, socklen_t length);
    int (*get_option)(struct rsocket *rs, int level, int name, void *value, socklen_t *length);
    void (*free)(struct rsocket *rs); // without the lock: no other reference is left
};

struct rsocket {
    const struct rsocket_ops *ops;
    int fd;         // its number
    int wake_fd;    // the eventfd in it
    int service_fd; // what the service thread watches, or -1
    int domain, type;
    _Atomic uint32_t references;
    _Atomic uint32_t watchers; // instances of rsocket_epoll.c that it is in
    pthread_mutex_t lock;
    uint32_t waiters; // threads that sleep, or are on their way to or from it
    uint32_t woken;   // of those, by the last wake; wake_fd is readable until they have all left
    uint64_t wakes;
    bool is_closed;
    int status_flags;     // of fcntl: O_NONBLOCK
    int error;            // of SO_ERROR
    uint64_t flags_on[3]; // options that are remembered and ask nothing of us: SOL_SOCKET, IPPROTO_TCP, IPPROTO_IPV6
    struct linger linger;
    struct rsocket_settings settings;
};

// ---- rsocket_base.c

// Sets up what all have; the rsocket is in the table afterwards, and the table holds its one reference. An error
// number.
int rsocket_init(struct rsocket *rs, const struct rsocket_ops *ops, int domain, int type);
// Undoes it, last.
void rsocket_fini(struct rsocket *rs);
// Adds a descriptor to those that make the number readable.
int rsocket_listen_to(struct rsocket *rs, int fd);
void rsocket_set_blocking(int fd, bool is_blocking);
void rsocket_lock(struct rsocket *rs);
bool rsocket_lock_until(struct rsocket *rs, alb_time until); // false: another thread has it still, or an abandoned call
void rsocket_unlock(struct rsocket *rs);
// With a reference and locked, and the thread is not cancelled meanwhile: what every call begins with. NULL: EBADF in
// errno.
struct rsocket *rsocket_take(int fd);
// What it ends with.
void rsocket_give(struct rsocket *rs);

// ---- rsocket_table.c

// With a reference, or NULL.
struct rsocket *rsocket_get(int fd);
struct rsocket *rsocket_ref(struct rsocket *rs);
void rsocket_put(struct rsocket *rs);
int rsocket_table_add(struct rsocket *rs);
// Gives a descriptor that a call has just returned the number of an rsocket, which is above those that the program has
// for other things (docs/COMPATIBILITY.md); where none can be had, and for a negative one, nothing changes.
int rsocket_number(int fd);
// Gives it a number that is free now instead of its own. False: there was none, and it keeps its own.
bool rsocket_table_renumber(struct rsocket *rs);
// Takes it out of the table; the table's reference is the caller's. NULL: it is not there (any more).
struct rsocket *rsocket_table_take(int fd);
// The lowest number at or above one, with a reference, or NULL.
struct rsocket *rsocket_table_next(int fd);
// False: by then no call had left it.
bool rsocket_table_can_be_had(alb_time until);
// A forked child has none of its parent's rsockets.
void rsocket_table_after_fork(void);

// ---- rsocket_cancel.c

// The calling thread is not cancelled between these two, which may be nested, and runs no handler of a signal, but
// where it sleeps.
void rsocket_cancel_off(void);
void rsocket_cancel_back(void);
// As ppoll(2), within them; an error is negative. If the thread is cancelled here, clean_up gives back what it has.
int rsocket_cancellable_poll(struct pollfd *fds, nfds_t count, const struct timespec *timeout,
                             void (*clean_up)(void *argument), void *argument);
// The same, but the thread is not cancelled.
int rsocket_plain_poll(struct pollfd *fds, nfds_t count, const struct timespec *timeout);
// A thread that looks again and again instead of sleeping, and has no lock now: handlers have their turn now and then.
void rsocket_between_spins(uint32_t *rounds);

// ---- rsocket_signals.c

// Keeps the calling thread from handlers of signals. False: the program seems to have none, and nothing has changed.
bool rsocket_signals_hold(sigset_t *before);
// True if a handler of the process ends calls (without SA_RESTART).
bool rsocket_signals_end_calls(void);

// ---- rsocket_wait.c

// Lets the type make progress, and wakes threads that the outcome may concern.
void rsocket_progress(struct rsocket *rs);
// Among the flags of a call: wait, although the rsocket does not block.
#define RSOCKET_WAIT (1 << 30)
// Something has changed: sleepers look again.
void rsocket_wake(struct rsocket *rs);
// Waits, with progress, until the condition holds: 0; EAGAIN (flags: MSG_DONTWAIT; or the rsocket does not block),
// EINTR, EBADF (it was closed), ETIMEDOUT. The lock is held, and given up while waiting. A thread that is cancelled
// gives back its lock and its reference; with RSOCKET_WAIT it is not.
int rsocket_wait(struct rsocket *rs, bool (*is_met)(struct rsocket *), int flags, alb_time until);
// For polling several: sleeping is prepared. False: something has changed, do not sleep. In both cases rsocket_leave
// follows, with what was stored in *entered.
bool rsocket_enter(struct rsocket *rs, uint64_t *entered);
void rsocket_leave(struct rsocket *rs, uint64_t entered);

// ---- rsocket_poll.c

// What of that holds now.
short rsocket_look(struct rsocket *rs, short asked);
// As poll(2), within rsocket_cancel_off: how many are ready, or an error, which is negative.
int rsocket_poll_until(struct pollfd *fds, nfds_t count, alb_time until);

// ---- rsocket_epoll.c

// As <rdma/rsocket.h> of rdma-core 65 declares them.
int repoll_create(int flags);
int repoll_ctl(int instance, int operation, int fd, struct epoll_event *event);
int repoll_wait(int instance, struct epoll_event *events, int capacity, int timeout_ms);

bool rsocket_is_epoll(const struct rsocket *rs);
// Out of all instances: it has been closed.
void rsocket_epoll_forget(const struct rsocket *rs);

// ---- rsocket_service.c: a thread that sees to what has to go on while the program does something else

// Watches rs->service_fd.
int rsocket_service_watch(struct rsocket *rs);
// Again, after serve has returned false.
void rsocket_service_again(struct rsocket *rs);
// A forked child has no such thread, and may start its own.
void rsocket_service_after_fork(void);

// ---- rsocket_settings.c

struct rsocket_settings rsocket_settings_default(void);
int rsocket_set_setting(struct rsocket_settings *settings, int name, const void *value, socklen_t length);
int rsocket_get_setting(const struct rsocket_settings *settings, int name, void *value, socklen_t *length);
// An int out of a program's option; EINVAL.
int rsocket_option_int(const void *value, socklen_t length, int *out);
// Hands a value out, cut to *length.
int rsocket_option_give(const void *from, size_t bytes, void *value, socklen_t *length);

// ---- rsocket_calls.c

// Copies an address that a program gives, which must be a whole one of the rsocket's family. An error number.
int rsocket_take_address(const struct rsocket *rs, const struct sockaddr *address, socklen_t length,
                         struct sockaddr_storage *copy);
// Hands an address out, cut to *length, which then is that of the whole; either may be NULL.
void rsocket_give_address(const struct sockaddr_storage *from, struct sockaddr *address, socklen_t *length);

// ---- rsocket_stream.c, rsocket_datagram.c

int rsocket_stream_create(int domain, struct rsocket **out);
int rsocket_datagram_create(int domain, struct rsocket **out);

// ---- rsocket_close.c

// When the process ends.
void rsocket_close_all(void);
