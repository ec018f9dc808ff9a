// SPDX-License-Identifier: BSD-2-Clause
// The connection manager's own structs and the calls between its files.
#pragma once

#include "base/map.h"
#include "engine/cm.h"
#include "engine/gsi.h"
#include "engine/impl.h"

#define ALB_CM_TIME_MAX         (60 * ALB_NS_PER_S)   // of anything a message may make us wait for
#define ALB_CM_STRANGER_NS      (20 * ALB_NS_PER_S)   // an answer waits for a peer that has not shown that it is there
#define ALB_CM_STRANGER_RETRIES 7                     // and is sent so many times more
#define ALB_CM_TIME_MIN         ALB_NS_PER_MS         // between two copies of a message
#define ALB_CM_LINGER_NS        (20 * ALB_NS_PER_S)   // how long an answer is kept at least
#define ALB_CM_DOUBT_NS         (100 * ALB_NS_PER_MS) // between two questions whether the peer has a connection
#define ALB_CM_PATIENCE_CODE    22                    // service timeout of our MRAs at most: 17 s
// Of the first one 1 s, and twice as much of each that follows: the answer behind it may be lost, and only a question
// that comes again shows that. But four times what the peer waits by itself: Linux heeds one MRA only.
#define ALB_CM_PATIENCE_FIRST_CODE 18
#define ALB_CM_PATIENCE_STEPS      2

struct alb_cm_id {
    struct alb_engine *engine;
    void *user;
    enum alb_cm_state state;
    bool is_used;         // it stands for something; else it is free
    bool is_orphan;       // the user has destroyed it
    bool is_question;     // a SIDR_REQ brought it: remote_id is a request id
    bool is_remote_known; // remote_id is in the map of peers
    bool is_qpn_known;    // and remote_qpn
    bool is_delayed;      // the peer has asked for time since sent was due; once each time, else there were no end
    bool is_doubted;      // the peer was asked, at doubted_at, whether it has the connection
    uint32_t local_id, remote_id;
    alb_qpn local_qpn, remote_qpn;
    uint64_t transaction; // of the MADs
    struct alb_av av;     // to the peer
    alb_qpn gsi_qpn;      // the peer's management queue pair
    struct alb_cm_ece ece;

    struct alb_deadline deadline; // its meaning follows from state
    alb_time timeout_ns;          // until a message is sent again
    alb_time timewait_ns;         // how long TIMEWAIT lasts
    alb_time doubted_at;
    uint8_t retries, retries_left;
    uint8_t mtu;                               // code, of the newest REQ that was sent
    uint8_t mras;                              // sent
    uint8_t refusals_left;                     // that are answered by asking again (alb_cm_retries_after_refusal)
    bool is_refused;                           // and the deadline asks again
    alb_qpn (*find)(void *user, alb_qpn last); // where to, or NULL
    struct alb_cm_message sent;     // what the deadline sends again, or a question that comes again brings back
    struct alb_cm_message received; // of the event pending

    uint32_t pending; // bit per enum alb_cm_event_type
    struct alb_list event_link;
    struct alb_list link; // free, or lingering

    struct alb_cm_listen listen;
    struct alb_list untaken; // a listener's ids whose request the user has not heard of yet
    uint32_t untaken_count;
    struct alb_cm_id *listener; // whose list this id stands in, by sibling
    struct alb_list sibling;
};

struct alb_cm {
    void *user;
    struct alb_event_node event;
    struct alb_gsi gsi;
    struct alb_cm_id *ids;
    uint32_t ids_max;
    uint16_t salt;        // on an id's place, in its number
    uint32_t ids_touched; // ids below were used once and stand in free, lingering or nowhere
    uint32_t used;
    uint32_t parting; // ids in DREQ_SENT
    uint32_t lingering_count;
    struct alb_list free;
    struct alb_list lingering; // orphans that only wait for their peers, oldest first: they give way
    struct alb_list events;
    struct alb_map peers;     // peer_key -> id
    struct alb_map listeners; // listen_key -> id
    void *peers_memory, *listeners_memory;
};

// ---- cm_table.c

// A new idle id, NULL if the table is full. Orphans that linger give way, the oldest first.
struct alb_cm_id *alb_cm_take(struct alb_engine *engine);
// True if a stranger may have an id: some are always kept for the user.
bool alb_cm_has_room_for_strangers(const struct alb_cm *cm);
// Gives an idle id back.
void alb_cm_release(struct alb_cm_id *id);
// Its peer's numbers, by which repetitions are recognised. False if another id has them.
bool alb_cm_learn_remote(struct alb_cm_id *id, uint32_t remote_id);
bool alb_cm_learn_qpn(struct alb_cm_id *id, alb_qpn qpn);
// And forgotten: its id, its queue pair, or both.
void alb_cm_forget_remote(struct alb_cm_id *id);
void alb_cm_forget_peer(struct alb_cm_id *id);
void alb_cm_forget_qpn(struct alb_cm_id *id);
// The id with that number of ours (whose peer has that address), of the peer's, of a question of the peer's, with that
// queue pair of the peer's, and the listener for a service at a local address. NULL: there is none.
struct alb_cm_id *alb_cm_find_local(struct alb_engine *engine, uint32_t local_id, const struct alb_addr *peer);
struct alb_cm_id *alb_cm_find_remote(struct alb_engine *engine, uint32_t remote_id, const struct alb_addr *peer);
struct alb_cm_id *alb_cm_find_question(struct alb_engine *engine, uint32_t request_id, const struct alb_addr *peer);
struct alb_cm_id *alb_cm_find_qpn(struct alb_engine *engine, alb_qpn qpn, const struct alb_addr *peer);
struct alb_cm_id *alb_cm_find_listener(struct alb_engine *engine, uint64_t service_id, const struct alb_addr *local);
// A listener stops listening, and is IDLE; the requests that it holds are the caller's.
void alb_cm_unlisten(struct alb_cm_id *id);

// ---- cm_state.c

// The only writer of state. Entering IDLE forgets the peer, and an orphan ends: id is then gone.
void alb_cm_set_state(struct alb_cm_id *id, enum alb_cm_state state);
// True if the move is legal.
bool alb_cm_state_can_move(enum alb_cm_state from, enum alb_cm_state to);

// ---- cm_event.c

// The id's user is to hear of that, once, if it is there.
void alb_cm_raise(struct alb_cm_id *id, enum alb_cm_event_type type);
// What was raised and not taken is not to be any more.
void alb_cm_forget_events(struct alb_cm_id *id);
// Takes an untaken request out of its listener's list.
void alb_cm_leave_listener(struct alb_cm_id *id);

// ---- cm_send.c

// A message on its way in: what an answer to it needs.
struct alb_cm_arrival {
    const struct alb_cm_message *message;
    struct alb_av av;
    alb_qpn gsi_qpn;
};

// The span of a timeout code: 4.096 us * 2^code, within what we are ready to wait.
alb_time alb_cm_code_ns(uint8_t code);

// What the id asks next goes there, by a transaction of its own.
void alb_cm_aim(struct alb_cm_id *id, const struct alb_cm_target *target);
// Fills id->sent with a message of that type to the id's peer, private data included. EINVAL: it is too long.
int alb_cm_compose(struct alb_cm_id *id, enum alb_cm_type type, const struct alb_cm_private *data);
// Sends id->sent, and again when id->timeout_ns has passed, id->retries times.
void alb_cm_send_until_answered(struct alb_cm_id *id, alb_time now);
// The peer knows no such service. True if the question will be repeated soon: its listener may be about to start.
bool alb_cm_retries_after_refusal(struct alb_cm_id *id, alb_time now);
// The peer takes no packets as long as those that id->sent, a REQ, asks for. True if it was sent anew, for shorter
// ones.
bool alb_cm_asks_for_less(struct alb_cm_id *id, const struct alb_cm_rej *rej, alb_time now);
// Sends id->sent once (again).
void alb_cm_send(struct alb_cm_id *id);
// Sends a message to the id's peer without remembering it. An MRA answers the REQ or REP that waits for our user.
void alb_cm_send_mra(struct alb_cm_id *id);
void alb_cm_send_drep(struct alb_cm_id *id);
// Asks the id's peer whether it has the connection, by a DREQ for a queue pair that no connection has: who has the
// connection drops it, and who knows of none answers with a DREP as to any DREQ.
void alb_cm_send_doubt(struct alb_cm_id *id);
// Rejects what an id has sent or received without remembering it: reason TIMEOUT carries the sender's GUID.
void alb_cm_send_rej(struct alb_cm_id *id, enum alb_cm_rej_reason reason);
// The longest packets that our queue pairs may have, as an MTU's code.
uint8_t alb_cm_mtu_max(const struct alb_engine *engine);
// Answers to messages that no id stands for. Reason INVALID_MTU says that MTU, too.
void alb_cm_answer_rej(struct alb_engine *engine, const struct alb_cm_arrival *arrival, enum alb_cm_answered answers,
                       enum alb_cm_rej_reason reason);
void alb_cm_answer_drep(struct alb_engine *engine, const struct alb_cm_arrival *arrival);
void alb_cm_answer_apr(struct alb_engine *engine, const struct alb_cm_arrival *arrival);
void alb_cm_answer_sidr(struct alb_engine *engine, const struct alb_cm_arrival *arrival,
                        enum alb_cm_sidr_status status);

// ---- cm_timer.c

void alb_cm_timer_init(struct alb_cm_id *id);
// The deadline is in so many ns, instead of what it was; and is none.
void alb_cm_arm(struct alb_cm_id *id, alb_time after_ns, alb_time now);
void alb_cm_disarm(struct alb_cm_id *id);
// The connection is over: TIMEWAIT, for timewait_ns.
void alb_cm_enter_timewait(struct alb_cm_id *id, alb_time now);
// Keeps the answer in id->sent for a while in that state (REJECTED or SIDR_ANSWERED).
void alb_cm_linger(struct alb_cm_id *id, enum alb_cm_state state, alb_time now);
// An orphan that lingers may give way to others.
void alb_cm_note_lingering(struct alb_cm_id *id);

// ---- cm_rx.c, cm_sidr.c

// True if the request is a copy of the one that the id holds; false: its number has been used again.
bool alb_cm_is_repeated(const struct alb_cm_id *id, const struct alb_cm_arrival *arrival);
// A message has come. Returns ALB_DROP_NONE, or why it was dropped.
enum alb_drop alb_cm_rx(struct alb_engine *engine, const struct alb_cm_arrival *arrival, alb_time now);
enum alb_drop alb_cm_rx_sidr_req(struct alb_engine *engine, const struct alb_cm_arrival *arrival);
enum alb_drop alb_cm_rx_sidr_rep(struct alb_engine *engine, const struct alb_cm_arrival *arrival, alb_time now);
// A new id for a request that a stranger has sent to a listener, with its message; NULL if there is no room.
struct alb_cm_id *alb_cm_admit(struct alb_cm_id *listener, const struct alb_cm_arrival *arrival);
