// SPDX-License-Identifier: BSD-2-Clause
// The verbs door: what stands behind the structures of <infiniband/verbs.h>. Every verbs object is the public structure
// followed by the engine's object and what the door itself keeps (locks, events, counts); this header is private to
// plugins/verbs.
//
// Locks, outermost first: the lock of the XRC domains, completion queues' poll locks, a queue pair's send and receive
// locks, the device's driver token (alb_device_lock), an object's public mutex, a notice queue's lock. The program
// itself may hold the former two kinds while it calls other verbs: whoever wants the token and some of them takes all
// at once (alb_door_lock_with).
#pragma once

#include "albedo/albedodv.h"
#include "base/list.h"
#include "device/device.h"
#include "engine/partial.h"
#include "engine/transaction.h"
#include "plugins/verbs/notice.h"
#include "plugins/verbs/spinlock.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

// These stand in the public header as macros around inline functions; the library defines the functions.
#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

#define ALB_DOOR_PORT    1                        // the only port
#define ALB_DOOR_GIDS    ALB_DEVICE_ADDRESSES_MAX // length of the GID table, empty entries included
#define ALB_DOOR_PKEY    0xffff                   // the only partition key: full member of the default partition
#define ALB_DOOR_VENDOR  0x02a1be                 // locally administered, so it is no IEEE OUI
#define ALB_DOOR_VERSION "0.1.0"

// IBV_ACCESS_FLUSH_GLOBAL and IBV_ACCESS_FLUSH_PERSISTENT, which an older <infiniband/verbs.h> has not.
#define ALB_DOOR_ACCESS_FLUSH (3u << 8)

// ---- devices --------------------------------------------------------------------------------------------------------

struct alb_door_device {
    struct ibv_device device;
    // Provider libraries look behind the public structure for their own operations table, to see whether a device is
    // theirs. They find zeros there.
    void *zeros[16];
};

// The vendor's part: 1 for roce0, 2 for albedo0.
uint32_t alb_door_part_id(const struct ibv_device *device);
__be64 alb_door_device_guid(const struct ibv_device *device);

struct alb_door_checks;
struct alb_door_checker;
struct alb_door_td;
struct alb_door_pd;
struct alb_door_mr;
struct alb_door_mw;
struct alb_door_channel;
struct alb_door_cq;
struct alb_door_srq;
struct alb_door_ah;
struct alb_door_qp;
struct alb_door_xrcd;
struct alb_door_region;
struct alb_durable;
struct alb_door_channel_of_proposals;

// ---- contexts -------------------------------------------------------------------------------------------------------

// Objects of a context, in the order in which closing it destroys what the program left.
enum alb_door_kind {
    ALB_DOOR_QP,
    ALB_DOOR_MW,
    ALB_DOOR_AH,
    ALB_DOOR_SRQ,
    ALB_DOOR_XRCD,
    ALB_DOOR_MR,
    ALB_DOOR_PROPOSAL_CHANNEL,
    ALB_DOOR_CQ,
    ALB_DOOR_CHANNEL,
    ALB_DOOR_PARENT_DOMAIN,
    ALB_DOOR_PD,
    ALB_DOOR_TD,
    ALB_DOOR_KINDS
};

enum { ALB_DOOR_PORT_NOTICES = 2 };

struct alb_door_context {
    struct alb_list link; // among those that are open (fork.c)
    struct alb_device *device;
    struct alb_engine *engine;
    const struct alb_engine_config *limits;
    struct alb_notices async;
    struct alb_notice notices[ALB_DOOR_PORT_NOTICES]; // of the port
    struct alb_list objects[ALB_DOOR_KINDS];          // under verbs.context.mutex
    _Atomic uint32_t next_handle;
    _Atomic alb_time no_wait_until;         // destroying a queue pair waits for no peer before then
    enum alb_level level;                   // that completes the WRITEs and SENDs of RC posted here, if they name none
    struct alb_door_checks *_Atomic checks; // the thread of validators; NULL: none was set
    struct verbs_context verbs;             // last, and its last member is what programs hold
};

static inline struct alb_door_context *alb_door_context(struct ibv_context *context)
{
    return ALB_CONTAINER_OF(context, struct alb_door_context, verbs.context);
}

// Puts an object into its context's books; alb_door_forget takes it out.
uint32_t alb_door_remember(struct alb_door_context *context, enum alb_door_kind kind, struct alb_list *link);
void alb_door_forget(struct alb_door_context *context, struct alb_list *link);

// Ends an object: the engine's part, its place in the books and its memory. Nothing is waited for. The errno of the
// engine's refusal, and then nothing has changed.
int alb_door_release(enum alb_door_kind kind, struct alb_list *link);

// True in a child of the process that opened the device: nothing may be asked of the engine, no lock may be waited for
// (a thread that is not here may hold it), and destroying something does nothing: its memory ends with the child.
static inline bool alb_door_is_forked(const struct alb_door_context *context)
{
    return alb_device_is_forked(context->device);
}

// From here on a child that is forked is refused what it posts to the context's objects and polls of them.
void alb_door_fork_add(struct alb_door_context *context);
void alb_door_fork_remove(struct alb_door_context *context);
// Of the contexts between the two, under their lock.
void alb_door_for_each_context(void (*visit)(struct alb_door_context *context, void *argument), void *argument);

// False: a device of another transport than csa.
static inline bool alb_door_has_reflection(const struct alb_door_context *context)
{
    return strcmp(context->limits->transport, "csa") == 0;
}

// Where a call of libalbedodv is refused (EOPNOTSUPP) because the device is of another transport, says so once in a
// process: the program has taken the first device, which mostly is roce0. region.c.
void alb_door_say_refused(const struct alb_door_context *context, const char *call, int error);

// Takes the driver token for a control call. ENODEV in a forked child; the token is then not held.
int alb_door_lock(struct alb_door_context *context);
void alb_door_unlock(struct alb_door_context *context);

// What the program holds while it polls or posts.
struct alb_door_locks {
    struct alb_spinlock *of[4];
    uint32_t count;
};

static inline void alb_door_locks_add(struct alb_door_locks *locks, struct alb_spinlock *lock)
{
    locks->of[locks->count++] = lock;
}

// Takes the token and the locks, all of them at once: a thread that has one may wait for the token meanwhile. What the
// caller keeps, between ibv_start_poll and ibv_end_poll, it has already.
void alb_door_lock_with(struct alb_door_context *context, const struct alb_door_locks *locks);
void alb_door_unlock_with(struct alb_door_context *context, const struct alb_door_locks *locks);

// Fills the slots of the context's tables (each file knows its own verbs).
void alb_door_fill_query(struct verbs_context *verbs);
void alb_door_fill_pd(struct verbs_context *verbs);
void alb_door_fill_mw(struct verbs_context *verbs);
void alb_door_fill_cq(struct verbs_context *verbs);
void alb_door_fill_cq_ex(struct verbs_context *verbs);
void alb_door_fill_srq(struct verbs_context *verbs);
void alb_door_fill_qp(struct verbs_context *verbs);
void alb_door_fill_post(struct verbs_context *verbs);
void alb_door_fill_xrc(struct verbs_context *verbs);

// Sets errno to a positive error number and returns NULL.
static inline void *alb_door_fail(int error)
{
    errno = error;
    return NULL;
}

// The errno that a call returns is in errno, too, as a system call would leave it: programs print that one.
static inline int alb_door_refuse(int error)
{
    errno = error;
    return error;
}

// What a call ends with: as above, or 0, which leaves errno alone.
static inline int alb_door_answer(int error)
{
    return error ? alb_door_refuse(error) : 0;
}

int alb_door_qp_release(struct alb_door_qp *qp);
int alb_door_mw_release(struct alb_door_mw *mw);
int alb_door_ah_release(struct alb_door_ah *ah);
int alb_door_srq_release(struct alb_door_srq *srq);
int alb_door_xrcd_release(struct alb_door_xrcd *xrcd);
int alb_door_mr_release(struct alb_door_mr *mr);
int alb_door_proposal_channel_release(struct alb_door_channel_of_proposals *channel);
int alb_door_cq_release(struct alb_door_cq *cq);
int alb_door_channel_release(struct alb_door_channel *channel);
int alb_door_pd_release(struct alb_door_pd *pd);
int alb_door_td_release(struct alb_door_td *td);

// ---- events ---------------------------------------------------------------------------------------------------------

// Where the device delivers the engine's events; holds the driver token, calls nothing but notices and, to reject what
// has no validator to ask, the engine.
void alb_door_on_event(void *device, const struct alb_event *event);
void alb_door_on_port(void *device, bool is_up);

// Passes ALB_EVENT_CM on to the rdma_cm library, if the program has it.
void alb_door_on_cm(void *user);

// Hands the engine's proposals to their validators.
void alb_door_on_proposal(struct alb_device *device);
// The context ends, and its regions have ended: so do the thread of their validators, and what the program has taken
// and not answered.
void alb_door_validators_stop(struct alb_door_context *context);
void alb_door_proposals_end(struct alb_door_context *context);
void alb_door_proposals_after_fork(void);

void alb_door_port_notices_init(struct alb_door_context *context);
void alb_door_qp_notices_init(struct alb_door_qp *qp);
void alb_door_srq_notices_init(struct alb_door_srq *srq);
// Forgets the asynchronous events of an object that were not taken; returns how many have been, and are owed an
// acknowledgement.
uint32_t alb_door_notices_forget(struct ibv_context *context, struct alb_notice *notices, int count);

// Waits until every event handed out has been acknowledged, or says whether it has. The comparison is signed: some
// programs acknowledge more than they got.
bool alb_door_is_acknowledged(pthread_mutex_t *mutex, const uint32_t *completed, uint32_t delivered);
void alb_door_wait_acknowledged(pthread_mutex_t *mutex, pthread_cond_t *cond, const uint32_t *completed,
                                uint32_t delivered);

// ---- protection domains ---------------------------------------------------------------------------------------------

struct alb_door_td {
    struct ibv_td td;
    struct alb_list link;
    _Atomic uint32_t refs;
};

struct alb_door_pd {
    struct ibv_pd pd;
    struct alb_list link;
    struct alb_pd *engine_pd;
    struct alb_door_pd *base; // of a parent domain: the protection domain it extends; else NULL
    struct alb_door_td *td;
    _Atomic uint32_t refs; // objects created with it
};

static inline struct alb_door_pd *alb_door_pd(struct ibv_pd *pd)
{
    return ALB_CONTAINER_OF(pd, struct alb_door_pd, pd);
}

static inline struct alb_pd *alb_door_engine_pd(struct ibv_pd *pd)
{
    return alb_door_pd(pd)->engine_pd;
}

static inline void alb_door_pd_get(struct ibv_pd *pd)
{
    atomic_fetch_add(&alb_door_pd(pd)->refs, 1);
}

static inline void alb_door_pd_put(struct ibv_pd *pd)
{
    atomic_fetch_sub(&alb_door_pd(pd)->refs, 1);
}

// ---- memory ---------------------------------------------------------------------------------------------------------

struct alb_door_mr {
    struct ibv_mr mr;
    struct alb_list link;
    struct alb_region *region;
    uint32_t access;                       // enum alb_access, as registered
    struct alb_door_region *transactional; // or NULL
    struct alb_door_checker *checker;      // or NULL
    struct alb_durable *durable;           // what the region is of; NULL: of the program's memory
};

struct alb_door_mw {
    struct ibv_mw mw;
    struct alb_list link;
    struct alb_region *region;
    struct alb_spinlock bind_lock; // type 1: each bind that is posted, on whichever queue pair, gets the next key
};

static inline struct alb_door_mr *alb_door_mr(struct ibv_mr *mr)
{
    return ALB_CONTAINER_OF(mr, struct alb_door_mr, mr);
}

static inline struct alb_door_mw *alb_door_mw(struct ibv_mw *mw)
{
    return ALB_CONTAINER_OF(mw, struct alb_door_mw, mw);
}

// The engine's form of a bind. A window opens memory to peers only, so that IBV_ACCESS_LOCAL_WRITE, which programs add
// out of habit, says nothing about it and is dropped.
struct alb_mw_bind alb_door_bind(const struct ibv_mw *mw, const struct ibv_mw_bind_info *info, uint32_t rkey);

// The region is not known to the engine any more: its version words are freed, its validators no longer asked.
void alb_door_region_forget(struct alb_door_mr *mr);
void alb_door_checker_close(struct alb_door_mr *mr);

// A program's access flags as the engine's. EINVAL, EOPNOTSUPP.
int alb_door_access(unsigned int flags, uint32_t *access);
// A durable region as programs see it; NULL: no memory.
struct ibv_mr *alb_door_mr_from_durable(struct ibv_pd *pd, struct alb_durable *durable, uint32_t access);

// EFAULT unless every page of the range is mapped, readable, and writable if asked, and the files that are mapped there
// are long enough.
int alb_door_check_mapped(const void *address, size_t length, bool writable);

// ---- completion queues ----------------------------------------------------------------------------------------------

struct alb_door_channel {
    struct ibv_comp_channel channel;
    struct alb_list link;
    struct alb_notices notices;
    _Atomic bool will_poll; // an event was taken, and none of the channel's queues has been polled since
};

struct alb_door_cq {
    union {
        struct ibv_cq cq;
        struct ibv_cq_ex ex;
    };
    struct alb_list link;
    struct alb_cq *engine_cq;
    struct alb_door_pd *parent_domain; // or NULL
    struct alb_spinlock poll_lock;
    struct alb_wc shown;          // between ibv_start_poll and ibv_end_poll: what is read
    uint64_t wall_distance;       // from the device's clock, when a completion's wall clock was last read
    struct alb_notice completion; // to the channel
    struct alb_notice overrun;    // asynchronous
};

static inline struct alb_door_cq *alb_door_cq(struct ibv_cq *cq)
{
    return ALB_CONTAINER_OF(cq, struct alb_door_cq, cq);
}

static inline struct alb_door_channel *alb_door_channel(struct ibv_comp_channel *channel)
{
    return ALB_CONTAINER_OF(channel, struct alb_door_channel, channel);
}

// To be called when a queue is polled.
static inline void alb_door_note_poll(struct ibv_comp_channel *channel)
{
    struct alb_door_channel *of = channel ? alb_door_channel(channel) : NULL;
    if (of && atomic_load_explicit(&of->will_poll, memory_order_relaxed))
        atomic_store_explicit(&of->will_poll, false, memory_order_relaxed);
}

// A poll found the queue empty: drives the device. Not to be called with the queue's poll_lock.
void alb_door_drive(const struct alb_door_cq *cq);

// Creates either kind of completion queue; NULL with errno set.
struct alb_door_cq *alb_door_cq_create(struct ibv_context *context, int entries, void *cq_context,
                                       struct ibv_comp_channel *channel, int vector);

// ---- shared receive queues, address handles -------------------------------------------------------------------------

enum { ALB_DOOR_SRQ_NOTICES = 2 };

struct alb_door_srq {
    struct ibv_srq srq;
    struct alb_list link;
    struct alb_srq *engine_srq;
    struct alb_door_xrcd *xrcd; // NULL: not one of XRC
    struct alb_spinlock post_lock;
    struct alb_notice notices[ALB_DOOR_SRQ_NOTICES];
};

static inline struct alb_door_srq *alb_door_srq(struct ibv_srq *srq)
{
    return ALB_CONTAINER_OF(srq, struct alb_door_srq, srq);
}

struct alb_door_ah {
    struct ibv_ah ah;
    struct alb_list link;
    struct alb_ah *engine_ah;
};

static inline struct alb_door_ah *alb_door_ah(struct ibv_ah *ah)
{
    return ALB_CONTAINER_OF(ah, struct alb_door_ah, ah);
}

// The engine's address vector for ibv's attributes. EINVAL: no GRH, another port, an empty or absent source GID, a
// destination that is none; ENETUNREACH: the two are of different families.
int alb_door_av_from_attr(struct alb_door_context *context, const struct ibv_ah_attr *attr, struct alb_av *av);
void alb_door_av_to_attr(const struct alb_av *av, struct ibv_ah_attr *attr);

// ---- XRC ------------------------------------------------------------------------------------------------------------

struct alb_door_domain;
struct alb_door_target;

// A handle on a domain.
struct alb_door_xrcd {
    struct ibv_xrcd xrcd;
    struct alb_list link;
    struct alb_door_domain *domain;
    _Atomic uint32_t refs; // objects created with this handle
};

static inline struct alb_door_xrcd *alb_door_xrcd(struct ibv_xrcd *xrcd)
{
    return ALB_CONTAINER_OF(xrcd, struct alb_door_xrcd, xrcd);
}

struct alb_xrcd *alb_door_engine_xrcd(struct ibv_xrcd *xrcd);
void alb_door_domains_after_fork(void);

// ---- queue pairs ----------------------------------------------------------------------------------------------------

enum { ALB_DOOR_QP_NOTICES = 6 };

struct alb_door_builder;
struct alb_door_txn;

struct alb_door_qp {
    struct ibv_qp_ex ex; // its first member is the struct ibv_qp
    struct alb_list link;
    struct alb_qp *engine_qp;
    struct alb_spinlock send_lock;
    struct alb_spinlock recv_lock;
    struct alb_door_builder *builder; // ibv_wr_*: only if created with send_ops_flags, or extended
    struct alb_door_txn *txn;         // extended (albdv_extend_qp(3))
    bool has_numbers;                 // operations of the engine's queue pair may have numbers
    struct ibv_xrcd *xrcd;            // XRC_RECV
    struct alb_door_target *target;   // XRC_RECV: the queue pair that this is a handle on
    struct alb_list of_target;        // XRC_RECV: among the handles
    struct alb_notice notices[ALB_DOOR_QP_NOTICES];
};

static inline struct alb_door_qp *alb_door_qp(struct ibv_qp *qp)
{
    return ALB_CONTAINER_OF(qp, struct alb_door_qp, ex.qp_base);
}

// What keeps polling out: the locks of its completion queues, each once.
struct alb_door_locks alb_door_qp_poll_locks(const struct ibv_qp *qp);
// Ends the queue pair of the engine, or this handle on it. Its completions go with it.
void alb_door_qp_destroy_engine(struct alb_door_qp *qp);
struct ibv_qp_cap alb_door_qp_cap_from(const struct alb_qp_cap *cap);

// A receiving queue pair of XRC may have several handles (ibv_open_qp(3)), and ends with the last one. These are called
// with the driver token held; qp->xrcd is set.
//
// Makes qp the first handle on a new queue pair of the engine.
int alb_door_target_create(struct alb_door_qp *qp, struct alb_qp_init *init);
// Makes it another handle on the one with that number. EINVAL: there is none in the domain.
int alb_door_target_open(struct alb_door_qp *qp, uint32_t number);
// True if qp has a target, and is not the only handle on it.
bool alb_door_target_is_shared(const struct alb_door_qp *qp);
// Takes the handle away, and with the last one the queue pair of the engine.
void alb_door_target_leave(struct alb_door_qp *qp);
// Lets every handle hear of an event.
void alb_door_target_raise(struct alb_door_target *target, void (*raise)(struct alb_door_qp *, enum ibv_event_type),
                           enum ibv_event_type type);

// ibv_qp_attr <-> alb_qp_attr. From: EINVAL for unknown mask bits; errors of alb_door_av_from_attr. An MTU code that
// is none becomes 0 bytes, which the engine refuses.
int alb_door_qp_attr_from(struct alb_door_context *context, const struct ibv_qp_attr *attr, int mask,
                          struct alb_qp_attr *engine_attr);
void alb_door_qp_attr_to(const struct alb_qp_attr *engine_attr, struct ibv_qp_attr *attr);

// The ibv_wr_* slots for send_ops_flags. EOPNOTSUPP: an operation that this type of queue pair or the device has not;
// ENOMEM.
int alb_door_builder_create(struct alb_door_qp *qp, uint64_t send_ops_flags, const struct ibv_qp_cap *cap);
void alb_door_builder_destroy(struct alb_door_qp *qp);
// The send_ops_flags that a type of queue pair has.
uint64_t alb_door_builder_ops(enum ibv_qp_type type);

// For queue pairs and requests of a context whose level is raised.
int alb_door_raise_level_of_qp(struct alb_door_qp *qp, const struct ibv_qp_cap *cap);
void alb_door_raise_level_of_wr(struct alb_send_wr *wr, enum alb_level level);
static inline void alb_door_raise_level(const struct alb_door_qp *qp, struct alb_send_wr *wr)
{
    const struct alb_door_context *context = alb_door_context(qp->ex.qp_base.context);
    if (alb_unlikely(context->level != ALB_LEVEL_DELIVERED) && qp->has_numbers)
        alb_door_raise_level_of_wr(wr, context->level);
}
