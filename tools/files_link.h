// SPDX-License-Identifier: BSD-2-Clause
// A connection between `albedo cp` and `albedo serve`: an RC queue pair with transactions, made by rdma_cm, and small
// messages beside them. A peer that is gone is noticed, since each side says a word now and then.
#pragma once

#include "tools/files_message.h"

#include <albedo/albedodv.h>
#include <rdma/rdma_cma.h>
#include <stdatomic.h>
#include <sys/socket.h>

#define FILES_IN_FLIGHT   8
#define FILES_WHY_MAX     512
#define FILES_REFUSAL_MAX 148 // what fits a REJ

// wr_id of a transaction: below FILES_IN_FLIGHT.
enum { FILES_WR_READ = FILES_IN_FLIGHT, FILES_WR_SAY, FILES_WR_HEAR };

enum { FILES_RECEIVES = 4 };

enum files_result {
    FILES_OK,
    FILES_LOST,    // the connection: try again, what was committed stays
    FILES_CHANGED, // the source, while it was copied
    FILES_FAILED,  // trying again is of no use
};

struct files_link {
    struct rdma_event_channel *channel;
    struct rdma_cm_id *id;
    const char *peer; // what messages call the other side
    struct ibv_pd *pd;
    struct ibv_comp_channel *completions;
    struct ibv_cq *cq;
    struct albdv_qp_ex *qp;
    uint8_t *buffers; // one to say, FILES_RECEIVES to hear
    struct ibv_mr *buffers_mr;
    struct files_message inbox[FILES_RECEIVES];
    uint32_t inbox_count;
    bool is_saying;
    bool is_lost;
    bool is_established; // the peer has answered: until then nothing is said to it
    alb_time said_at;
    _Atomic bool is_cancelled; // from another thread: the connection is to end
    alb_time ends_at;          // although it is cancelled it goes on until then, for last words; 0: it does not
};

#define FILES_ADDRESSES_MAX 8u

// The addresses of a server, and how many. 0 with why.
uint32_t files_link_find(const char *host, const char *port, struct sockaddr_storage addresses[FILES_ADDRESSES_MAX],
                         char why[FILES_WHY_MAX]);
// A client's queue pair gives a silent peer eight times 4.096 us * 2^n: two seconds, or 34.
#define FILES_ACK_TIMEOUT     16
#define FILES_ACK_TIMEOUT_MAX 20

// Connects to it. Else why says why not, with what to do, and the link is closed; LOST: it may be worth another try;
// FAILED: the device cannot be used, or has no address that reaches it.
enum files_result files_link_connect(struct files_link *link, const struct sockaddr_storage *address,
                                     uint8_t ack_timeout, char why[FILES_WHY_MAX]);
// Takes over a connection request. Else why says why not, to the peer, too.
bool files_link_accept(struct files_link *link, struct rdma_cm_id *id, char why[FILES_WHY_MAX]);
// Does not, and tells the peer why.
void files_link_refuse(struct rdma_cm_id *id, const char why[FILES_REFUSAL_MAX]);
void files_link_close(struct files_link *link);

// Time by the monotonic clock.
alb_time files_link_now(void);

// False: the connection is lost.
bool files_link_say(struct files_link *link, const struct files_message *message);
// Waits until the peer has what was said. False: the connection is lost.
bool files_link_reach(struct files_link *link);
// Waits for a message. False: the connection is lost.
bool files_link_hear(struct files_link *link, struct files_message *message);

// The peer will not go on: writes why, and that it is the peer who says so.
void files_link_quote(const struct files_link *link, const struct files_message *message, char why[FILES_WHY_MAX]);

// What is said from here on are last words: they have two seconds, even if the connection is cancelled.
void files_link_part(struct files_link *link);

// Waits, about so long at most, for the completion of a transaction or a READ. 1: *wc; 0: none, or a message has come;
// -1: the connection is lost.
int files_link_wait(struct files_link *link, struct ibv_wc *wc, int timeout_ms);
