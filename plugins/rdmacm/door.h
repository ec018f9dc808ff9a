// SPDX-License-Identifier: BSD-2-Clause
// The rdma_cm door: what stands behind the structures of <rdma/rdma_cma.h>. It has no thread of its own. Engine events
// are turned into rdma_cm events by the device's driver (home.c) and wait at an event channel; what follows from them
// for queue pairs is done by the thread that takes them (rdma_get_cm_event).
//
// Locks, outermost first: that of an id's queue pair, the device's driver token, a channel's lock, an id's lock.
#pragma once

#include "base/list.h"
#include "device/cancel.h"
#include "device/cm_claim.h"
#include "device/device.h"
#include "device/event_file.h"
#include "engine/cm.h"

#include <errno.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>

#define RDMACM_HOP_LIMIT 64
#define RDMACM_PORT      1

// Timeout codes that we put into requests (4.096 us * 2^code): 268 ms to answer, 67 ms for the way there and back.
// Linux says 20 and 19 (tests/vectors/rdmacm_rping.pcap); the latter is 2.1 s, which is also what the loss of a last
// packet then costs. RDMA_OPTION_ID_ACK_TIMEOUT is for whose peers are slower.
#define RDMACM_RESPONSE_CODE 16
#define RDMACM_ACK_CODE      14
#define RDMACM_CM_RETRIES    15

#define RDMACM_RD_ATOMIC_MAX 128

// Programs (perftest) listen, talk, end the listener, and listen at the same port again while their peer already calls:
// through a kernel, connecting takes long enough for that.
#define RDMACM_REFUSALS 7

struct rdmacm_channel {
    struct rdma_event_channel channel;
    struct alb_event_file file; // the channel's descriptor is its
    struct alb_list link;       // among those that have not been destroyed
    struct alb_device *device;
    pthread_mutex_t lock;
    struct alb_list events; // struct rdmacm_event; the descriptor is readable while there is one
    struct alb_list ids;    // struct rdmacm_id, whose events come here
    uint32_t waiting;       // calls of rdma_get_cm_event
    bool is_destroyed;      // and kept for the ids that the program has not destroyed
};

struct rdmacm_id {
    struct rdma_cm_id id;
    struct alb_list link;      // at its channel
    struct alb_device *device; // the process's when it was created
    struct alb_cm_id *cm;      // while it listens, connects or is connected
    struct alb_cm_claim claim;
    bool is_bound; // to a port
    bool is_any;   // to any address
    bool is_sync;  // has a channel of its own, and calls wait
    bool is_listening;
    bool is_resolved; // rdma_resolve_addr has succeeded
    bool has_route;   // and so has rdma_resolve_route
    bool is_one_family;
    bool is_reusable; // may share its port with others that say so, until one of them listens
    bool has_ack_timeout;
    bool owns_cqs;
    bool has_disconnected; // rdma_disconnect was called
    bool has_failed;       // CONNECT_ERROR was reported; by lock
    bool is_unaccepted;    // a request, of which the program hears no more until it has accepted it
    bool is_timewait_over; // and the program has not been told
    uint8_t tos;
    uint8_t ack_timeout;
    uint32_t gid_index;
    struct alb_av av; // once the peer is known
    pthread_mutex_t qp_lock;
    pthread_mutex_t lock;
    pthread_cond_t acknowledged;
    uint32_t taken, completed;  // events
    struct alb_list reserve;    // struct rdmacm_event, for what becomes of a connection
    struct alb_list multicasts; // groups it has joined, struct rdmacm_multicast

    // Of the connection to be, or that is.
    uint8_t responder_resources, initiator_depth; // that the peer has offered
    uint8_t retry_count, rnr_retry_count, timeout_code;
    uint8_t mtu_code;
    uint32_t rq_psn, sq_psn; // each side's message says where the other begins: rq_psn is ours to say
    uint32_t remote_qpn, qkey;
    bool knows_peer; // its message has come: what it says of its queue pair is here
    uint8_t rd_atomic, dest_rd_atomic;
    uint32_t qpn;                     // of a queue pair that is not the id's own
    struct ibv_qp_init_attr *ep_attr; // rdma_create_ep of a listener: for the queue pairs of its requests
    void *ep_data;                    // rdma_create_ep: what goes before the program's private data (ai_connect)
    uint32_t ep_data_bytes;
    struct ibv_pd *ep_pd;
    struct ibv_sa_path_rec path;
    struct alb_cm_ece local_ece, remote_ece;
    struct ibv_cq *srq_cq; // made for its XRC shared receive queue, and ends with it
    struct ibv_comp_channel *srq_channel;
};

struct rdmacm_multicast;

struct rdmacm_event {
    struct rdma_cm_event event;
    struct rdmacm_id *id;               // whose acknowledgement is waited for: the listener's for a request
    struct rdmacm_id *fresh;            // of a request: the new id
    struct rdmacm_multicast *multicast; // that was joined; not to be looked at once the event has been taken
    struct alb_list link;
    uint8_t private_data[ALB_CM_PRIVATE_MAX];
    bool is_response; // the queue pair has to be moved
};

static inline struct rdmacm_id *rdmacm_id(struct rdma_cm_id *id)
{
    return ALB_CONTAINER_OF(id, struct rdmacm_id, id);
}

static inline struct rdmacm_channel *rdmacm_channel(struct rdma_event_channel *channel)
{
    return ALB_CONTAINER_OF(channel, struct rdmacm_channel, channel);
}

// In a child of the process that made it: everything is refused with ENODEV, no lock is waited for (a thread that is
// not here may hold it), and destroying it does nothing: its memory ends with the child.
static inline bool rdmacm_is_forked(const struct rdmacm_id *id)
{
    return alb_device_is_forked(id->device);
}

static inline bool rdmacm_channel_is_forked(const struct rdmacm_channel *channel)
{
    return alb_device_is_forked(channel->device);
}

// errno is set, -1 returned.
static inline int rdmacm_fail(int error)
{
    errno = error;
    return -1;
}

// 0 or -1 with errno, from an error number.
static inline int rdmacm_result(int error)
{
    return error ? rdmacm_fail(error) : 0;
}

// ---- home.c: the process's device

// Opens the device once, a forked child its own; NULL with errno.
struct ibv_context *rdmacm_context(void);
struct alb_device *rdmacm_device(void);
// When the process begins to exit: from then on, asking a destroyed channel for an event blocks until the end.
void rdmacm_begin_to_end(void);
struct alb_engine *rdmacm_engine(void);
void rdmacm_lock(void);
void rdmacm_unlock(void);
// The IBV_MTU_ code of the device's MTU.
uint8_t rdmacm_mtu_code(void);
// A default protection domain of the process.
struct ibv_pd *rdmacm_default_pd(void);

// ---- channel.c

// NULL with errno.
struct rdmacm_channel *rdmacm_channel_create(void);
// From here on the id's events come to the channel; until it leaves, the channel is kept. An id that others know
// changes its channel with the token held.
void rdmacm_channel_join(struct rdmacm_channel *channel, struct rdmacm_id *id);
void rdmacm_channel_leave(struct rdmacm_id *id);
// EBADF when the program has destroyed the id's channel: then nothing may begin that ends in an event.
int rdmacm_channel_error(struct rdmacm_id *id);
// Reserves memory for the events of a connection, which could not be reported without: how it was answered, that it
// ended, that its numbers are free. ENOMEM.
int rdmacm_event_reserve(struct rdmacm_id *id);
void rdmacm_event_unreserve(struct rdmacm_id *id);
// A new event, out of that memory first; NULL: there is none.
struct rdmacm_event *rdmacm_event_new(struct rdmacm_id *id, enum rdma_cm_event_type type, int status);
// With the token held, so that the id keeps its channel: queues an event for it. The event is the channel's, and
// dropped when the channel is destroyed.
void rdmacm_post(struct rdmacm_id *id, struct rdmacm_event *event);
// Likewise one that says only its type and status; ENOMEM, EBADF.
int rdmacm_post_plain(struct rdmacm_id *id, enum rdma_cm_event_type type, int status);
// With the token held, or where nobody else knows the id: moves the events of an id that were not taken yet into a
// list; those of one multicast join, or all (NULL).
void rdmacm_take_events(struct rdmacm_id *id, const struct rdmacm_multicast *multicast, struct alb_list *taken);
// Forgets the events of an id that were not taken yet; new ids in them are destroyed.
void rdmacm_forget_events(struct rdmacm_id *id);
// An event that the program has taken is from here on the id's to acknowledge: id->event.
void rdmacm_keep(struct rdmacm_id *id, struct rdma_cm_event *event);
// Acknowledges it, if there is one.
void rdmacm_drop_kept(struct rdmacm_id *id);
// In synchronous mode waits for the next event and keeps it in id->event: its error, or 0. Otherwise 0 at once.
int rdmacm_complete(struct rdmacm_id *id);

// ---- id.c

// NULL with errno.
struct rdmacm_id *rdmacm_id_new(struct rdmacm_channel *channel, void *context, enum rdma_port_space ps,
                                enum ibv_qp_type type);
void rdmacm_id_free(struct rdmacm_id *id);
// True while it listens, connects or is connected. Another thread may be destroying it meanwhile, and wait for the
// event that this one has not acknowledged: who goes on with it looks again.
bool rdmacm_is_begun(const struct rdmacm_id *id);

// ---- bind.c

// Of an id that does not listen and is not connected. EADDRINUSE: it is bound to any address, and its port is another's
// in the family that it had not; nothing has changed then.
int rdmacm_set_one_family(struct rdmacm_id *id, bool is_one_family);
// The id's path record, once its addresses and type of service are known.
void rdmacm_set_path(struct rdmacm_id *id, uint8_t mtu_code, uint8_t ack_code);

// ---- address.c

extern const struct alb_addr rdmacm_any, rdmacm_any_ipv4;
bool rdmacm_is_any(const struct alb_addr *addr);
void rdmacm_set_sockaddr(struct sockaddr_storage *out, const struct alb_addr *addr, uint16_t port);
bool rdmacm_get_sockaddr(const struct sockaddr *sockaddr, struct alb_addr *addr, uint16_t *port);
uint16_t rdmacm_port(const struct sockaddr_storage *storage);
// ENODEV: it is an address of this host, but not of the device; else what alb_address_find says.
int rdmacm_find_gid(const struct alb_addr *addr, uint32_t *index);
// Binds to the device: the id's address is one of its. Errors of rdmacm_find_gid.
int rdmacm_attach(struct rdmacm_id *id, const struct alb_addr *local, uint16_t port);
// The same, and how the peer is reached.
int rdmacm_learn_av(struct rdmacm_id *id, const struct alb_addr *local, const struct alb_addr *peer);

// ---- route.c

// The address that an id connects from. What stands for any address in *peer becomes one of the device. Errors:
// ENODEV: the device has none of that family; EAFNOSUPPORT: the id is bound to one of the other; those of socket(2),
// bind(2) and connect(2).
int rdmacm_route(const struct rdmacm_id *id, struct alb_addr *peer, struct alb_addr *local);

// ---- qp.c

// Until it is unlocked the id's queue pair, if it has one, is not destroyed: the thread that takes an event of the id
// moves it, while another one may destroy it. The thread is not cancelled meanwhile; returns what unlocking needs.
static inline int rdmacm_qp_lock(struct rdmacm_id *id)
{
    int cancel = alb_cancel_off();
    pthread_mutex_lock(&id->qp_lock);
    return cancel;
}

static inline void rdmacm_qp_unlock(struct rdmacm_id *id, int cancel)
{
    pthread_mutex_unlock(&id->qp_lock);
    alb_cancel_back(cancel);
}

// What the program says of a queue pair of its own counts where the id has none. With its lock held.
uint32_t rdmacm_qp_number(const struct rdmacm_id *id, const struct rdma_conn_param *param);
bool rdmacm_qp_has_srq(const struct rdmacm_id *id, const struct rdma_conn_param *param);
int rdmacm_qp_connect(struct rdmacm_id *id); // to RTR and RTS, if there is one; with its lock held
int rdmacm_qp_error(struct rdmacm_id *id);

// ---- xrc.c

// The domain of the process, for ids that bring none; NULL with errno.
struct ibv_xrcd *rdmacm_default_xrcd(void);
void rdmacm_xrcd_after_fork(void);
// A completion queue for the id's XRC shared receive queue; an errno.
int rdmacm_srq_cq_create(struct rdmacm_id *id, uint32_t entries);
void rdmacm_srq_cq_destroy(struct rdmacm_id *id);

// ---- target.c

// On this host the listener's slot is known, so that the request does not depend on the holder of port 4791: that may
// be another user's process, which does not see our claims, or none. A service without a claim may be another user's;
// if no process holds the port, our own slot refuses it at once.
struct alb_cm_target rdmacm_target_of(const struct rdmacm_id *id);

// ---- manager.c

// What an event of the engine is for the program. Called with the token held.
void rdmacm_on_engine_event(const struct alb_cm_event *event);

// TIMEWAIT_EXIT, once TIMEWAIT is over and the program has disconnected. Called with the token held.
void rdmacm_tell_timewait_exit(struct rdmacm_id *id);

// ---- why.c

// Each says once in a process, at level warning, what may be wrong and what to do: about the peer whose address could
// not be resolved (the errno), the one that has not answered, and the one that has no listener there.
void rdmacm_why_no_address(const struct alb_addr *peer, uint16_t port, int error);
void rdmacm_why_no_answer(const struct rdmacm_id *id);
void rdmacm_why_nobody_listens(const struct rdmacm_id *id);

// ---- connect.c

uint32_t rdmacm_random_psn(void);
// What a response that has come in asks for: the queue pair to RTS, and the RTU. An errno. With its lock held.
int rdmacm_on_response(struct rdmacm_id *id);
// Rejects the request or the response that waits. EINVAL: none does, or the data are too long.
int rdmacm_reject(struct rdmacm_id *id, enum alb_cm_rej_reason reason, const void *private_data, uint8_t length);

// ---- multicast.c

// A join's event is being taken: attaches the id's queue pair.
void rdmacm_on_join(struct rdmacm_event *event);
// It will not be taken.
void rdmacm_on_join_unheard(struct rdmacm_multicast *multicast);
// The id's queue pair is about to go. With its lock held.
void rdmacm_multicast_detach(struct rdmacm_id *id);
// The id is about to go; none of its events is left.
void rdmacm_multicast_leave_all(struct rdmacm_id *id);
