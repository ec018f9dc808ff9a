// SPDX-License-Identifier: BSD-2-Clause
// The connection manager: how two queue pairs that have never met agree to talk (InfiniBand specification, volume 1,
// chapter 12). It owns queue pair 1 of the engine's slot. Like the rest of the engine it has neither clock nor
// callback: time is an argument, what the user must hear is queued (alb_cm_event), and every table has a limit.
//
// A communication id stands for a listener, for one side of a connection, or for a service id resolution (UD). The user
// moves its own queue pair; the manager only carries numbers.
//
//     active   connect -> RESPONSE -> (queue pair to RTS) establish -> ... disconnect -> DISCONNECTED -> TIMEWAIT_OVER
//     passive  listen -> REQUEST -> (queue pair to RTR) accept -> ESTABLISHED -> ... DISCONNECTED -> TIMEWAIT_OVER
//     either   REJECTED or TIMED_OUT instead of what it was waiting for
//
// Lost messages are sent again as the timeouts and counts in the messages say; messages that come twice change nothing
// and are answered as the first time. Calls are made by the holder of the engine. They return 0 or a positive errno and
// then change nothing.
#pragma once

#include "engine/verbs.h"
#include "wire/cm.h"

struct alb_cm_id;

enum alb_cm_state {
    ALB_CM_IDLE,
    ALB_CM_LISTENING,
    ALB_CM_REQ_SENT,
    ALB_CM_REQ_RECEIVED,
    ALB_CM_REP_SENT,
    ALB_CM_REP_RECEIVED,
    ALB_CM_ESTABLISHED,
    ALB_CM_DREQ_SENT,
    ALB_CM_TIMEWAIT, // packets of the ended connection may still be under way
    ALB_CM_REJECTED, // we rejected, and would say so again
    ALB_CM_SIDR_SENT,
    ALB_CM_SIDR_RECEIVED,
    ALB_CM_SIDR_ANSWERED, // we answered, and would do so again
    ALB_CM_STATES,
};

const char *alb_cm_state_name(enum alb_cm_state state);

// ---- the manager ----------------------------------------------------------------------------------------------------

// Opens queue pair 1, with room for that many ids (1 to 65536), all memory taken at once. Before this, or without it,
// MADs are dropped. EINVAL; EBUSY if it is open; ENOMEM. user comes with ALB_EVENT_CM.
int alb_cm_create(struct alb_engine *engine, uint32_t ids_max, void *user);
// Another user, for ALB_EVENT_CM. The manager is open.
void alb_cm_set_user(struct alb_engine *engine, void *user);
// The user has destroyed every id of its own. What only lingered for the peers' sake is forgotten. Harmless if it is
// not open.
void alb_cm_destroy(struct alb_engine *engine);

// Ids in use: the user's, requests not yet taken, and those that linger.
uint32_t alb_cm_id_count(const struct alb_engine *engine);
// False while a peer may not have heard that its connection ends: a DREQ waits for its answer.
bool alb_cm_is_quiet(const struct alb_engine *engine);

// ---- ids ------------------------------------------------------------------------------------------------------------

// ENOMEM: no room; ENODEV: the manager is not open.
int alb_cm_id_create(struct alb_engine *engine, void *user, struct alb_cm_id **id);
// Ends it in any state and says so to the peer: what waits for an answer is rejected, what is connected is
// disconnected. Its events are forgotten; a listener's untaken requests are rejected.
void alb_cm_id_destroy(struct alb_cm_id *id, alb_time now);

enum alb_cm_state alb_cm_id_state(const struct alb_cm_id *id);
void alb_cm_id_set_user(struct alb_cm_id *id, void *user);
// The communication id that peers name it by: slot (8) | random (8) | index (16).
uint32_t alb_cm_id_number(const struct alb_cm_id *id);
// The path MTU (code) of the connection that a RESPONSE offers: the request's, or a smaller one that the peer wanted.
uint8_t alb_cm_id_mtu(const struct alb_cm_id *id);
// Where its messages go, once it has a peer.
const struct alb_av *alb_cm_id_av(const struct alb_cm_id *id);

// Goes with the next request or answer of the id (REQ, REP, SIDR_REP).
void alb_cm_id_set_ece(struct alb_cm_id *id, const struct alb_cm_ece *ece);

struct alb_cm_listen {
    uint64_t service_id;
    struct alb_addr addr; // one address; ::ffff:0.0.0.0: any of IPv4; ::: any
    bool is_one_family;   // :: does not stand for IPv4
    uint32_t backlog;     // requests that wait to be taken; more are dropped, and their senders try again
};

// EADDRINUSE: another listener has that service at such an address; EINVAL: the id is not idle, or backlog is 0.
int alb_cm_listen(struct alb_cm_id *id, const struct alb_cm_listen *listen);
// The program has one more of the listener's requests: once for each event REQUEST or SIDR_REQUEST, however long that
// has waited for the program.
void alb_cm_request_taken(struct alb_cm_id *listener);

// Where a request goes. gsi_qpn is 1 (or 3, as configured), or where slots are known the one of a certain slot. A peer
// that knows no such service is asked again refusals times, ALB_CM_REFUSED_NS apart, before that counts. Each time
// find, if it is given, says by the id's user and the last gsi_qpn where it goes now.
struct alb_cm_target {
    struct alb_av av;
    alb_qpn gsi_qpn;
    uint8_t refusals;
    alb_qpn (*find)(void *user, alb_qpn last);
};

#define ALB_CM_REFUSED_NS (30 * ALB_NS_PER_MS)

// Private data of a message: at most alb_cm_private_bytes of its type, else EINVAL. NULL with 0 bytes: none.
struct alb_cm_private {
    const void *bytes;
    uint32_t length;
};

// Sends a REQ, which is waited for remote_response_timeout and the way there and back (primary.ack_timeout), and sent
// max_cm_retries times more. A peer that takes no packets as long as req->mtu says is asked again for those that it
// does take. EINVAL: the id is not idle; private data too long; neither RC, UC nor XRC.
int alb_cm_connect(struct alb_cm_id *id, const struct alb_cm_target *target, const struct alb_cm_req *req,
                   const struct alb_cm_private *data, alb_time now);
// Answers a request: sends a REP. EINVAL: none is waiting (REQ_RECEIVED), or private data too long.
int alb_cm_accept(struct alb_cm_id *id, const struct alb_cm_rep *rep, const struct alb_cm_private *data, alb_time now);
// Answers a response: sends the RTU. EINVAL: none is waiting (REP_RECEIVED).
int alb_cm_establish(struct alb_cm_id *id, const struct alb_cm_private *data, alb_time now);
// A message on the queue pair came before the RTU: that is as good. EINVAL: not in REP_SENT.
int alb_cm_notice_traffic(struct alb_cm_id *id, alb_time now);
// Rejects a request or a response. EINVAL: none is waiting, or private data too long.
int alb_cm_reject(struct alb_cm_id *id, enum alb_cm_rej_reason reason, const struct alb_cm_private *data, alb_time now);
// Ends a connection: sends a DREQ. EINVAL: it is not established.
int alb_cm_disconnect(struct alb_cm_id *id, const struct alb_cm_private *data, alb_time now);
// The same of all connections that the user has.
void alb_cm_disconnect_all(struct alb_engine *engine, alb_time now);

// Asks which queue pair serves service_id: sends a SIDR_REQ, waited for timeout_ns and sent retries times more. EINVAL:
// not idle; private data too long; no time.
int alb_cm_resolve(struct alb_cm_id *id, const struct alb_cm_target *target, uint64_t service_id,
                   const struct alb_cm_private *data, alb_time timeout_ns, uint8_t retries, alb_time now);
// Answers such a question. EINVAL: none is waiting (SIDR_RECEIVED), or private data too long.
int alb_cm_answer(struct alb_cm_id *id, enum alb_cm_sidr_status status, alb_qpn qpn, uint32_t qkey,
                  const struct alb_cm_private *data, alb_time now);

// ---- what it has to say ---------------------------------------------------------------------------------------------

enum alb_cm_event_type {
    ALB_CM_EVENT_REQUEST,              // passive: message is the REQ, id is new and the user's from now on
    ALB_CM_EVENT_RESPONSE,             // active: message is the REP
    ALB_CM_EVENT_ESTABLISHED,          // passive: the RTU, or traffic
    ALB_CM_EVENT_REJECTED,             // message is the REJ; the id is idle
    ALB_CM_EVENT_TIMED_OUT,            // no answer came; the id is idle
    ALB_CM_EVENT_DISCONNECTED,         // the peer wanted it, or has agreed to it
    ALB_CM_EVENT_DISCONNECT_TIMED_OUT, // its user wanted it, and the peer has not answered
    ALB_CM_EVENT_TIMEWAIT_OVER,        // the id is idle again
    ALB_CM_EVENT_SIDR_REQUEST,         // message is the SIDR_REQ, id is new and the user's from now on
    ALB_CM_EVENT_SIDR_RESPONSE,        // message is the SIDR_REP; the id is idle
    ALB_CM_EVENT_TYPES,
};

const char *alb_cm_event_name(enum alb_cm_event_type type);

struct alb_cm_event {
    enum alb_cm_event_type type;
    struct alb_cm_id *id;
    void *user;                 // of id; of a new one NULL
    struct alb_cm_id *listener; // of a new one, with its user
    void *listener_user;
    struct alb_cm_message message; // REQUEST, RESPONSE, REJECTED, SIDR_REQUEST and SIDR_RESPONSE
};

// An engine event, ALB_EVENT_CM, says that there is one where there was none: take them all then.
//
// The next event, oldest first; those of one id in the order in which they happened. False if there is none, or no
// manager.
bool alb_cm_event(struct alb_engine *engine, struct alb_cm_event *event);
// True if there is one.
bool alb_cm_has_event(const struct alb_engine *engine);
