// SPDX-License-Identifier: BSD-2-Clause
// flow: messages of one size from many senders to one receiver, over verbs, TCP or libfabric by the same loops, so that
// their goodput and their times can be set side by side. The receiver counts what has arrived whole; times are one way,
// since both sides read one clock (they run on one machine).
#pragma once

#include "base/types.h"

#define ALB_FLOW_ANSWER_BYTES   8
#define ALB_FLOW_BLOB_BYTES     256
#define ALB_FLOW_WORD_MAX       0xffffffu // of the word that comes with a message
#define ALB_FLOW_WARM_EXCHANGES 50        // not measured
#define ALB_FLOW_ANSWERS        64        // beside the window: answers that came, but of which that is not known yet
#define ALB_FLOW_SENDERS_MAX    200
#define ALB_FLOW_INTERVALS_MAX  100000
#define ALB_FLOW_EVENTS_MAX     32

struct alb_flow_ops;

struct alb_flow_options {
    const struct alb_flow_ops *ops;
    const char *device; // verbs: name; fabric: provider
    const char *local;  // numeric address
    const char *peer;   // of the receiver; NULL: this is the receiver
    uint16_t port;      // TCP, where the two sides meet
    uint32_t bytes;     // of a message
    uint32_t window;    // most messages in flight
    uint32_t list;      // messages that are posted together, and of which the last alone is reported; 1: each by itself
    uint32_t senders;   // that the receiver waits for before all start
    uint32_t messages;  // exchange: how often
    uint32_t interval_ms; // of the receiver's counts; 0: none
    uint8_t ack_timeout;  // verbs: the queue pairs' code
    double warm_s, measure_s;
    bool is_exchange; // one message, one answer, the next message; else a stream
    bool is_event;    // sleep for completions; else poll
    bool is_verified; // exchange: every byte is checked
};

// What one side tells the other before they connect.
struct alb_flow_blob {
    uint32_t bytes;
    uint8_t data[ALB_FLOW_BLOB_BYTES];
};

enum alb_flow_kind {
    ALB_FLOW_SENT, // a message of ours, or a list of them, needs no more care
    ALB_FLOW_CAME, // a whole message, or list, is here
};

struct alb_flow_event {
    struct alb_flow_link *link;
    enum alb_flow_kind kind;
    uint32_t word;
    const uint8_t *data; // CAME: its beginning, until the next call
};

// One sender and one receiver, as either side sees it. A transport embeds it at the start of its own.
struct alb_flow_link {
    uint8_t *memory; // a sender's message, the receiver's slot 0; NULL: the transport has no such place
    int meeting;     // TCP socket: set-up, start, end
    uint32_t number;
    uint64_t count, counted; // messages that came; of them in the measured time
    uint64_t told;           // how many the sender says it sent
    bool is_told, is_over;   // over: and all of them came
};

// A transport. Everything exits with a message on failure.
struct alb_flow_ops {
    const char *name;
    void (*open)(const struct alb_flow_options *options);
    struct alb_flow_link *(*create)(uint32_t number, struct alb_flow_blob *mine);
    void (*connect)(struct alb_flow_link *link, const struct alb_flow_blob *theirs);
    // A message, or a list into as many slots. False: no room at the moment; the same again goes on with what is left.
    // slot: of the receiver's memory, below the window; payload: its first bytes.
    bool (*send)(struct alb_flow_link *link, uint32_t bytes, uint32_t slot, uint32_t word, uint64_t payload);
    uint32_t (*progress)(struct alb_flow_event *events); // ALB_FLOW_EVENTS_MAX
    // To sleep: the descriptor that becomes readable; -1: there is something already.
    int (*arm)(void);
};

extern const struct alb_flow_ops alb_flow_tcp, alb_flow_verbs, alb_flow_fabric;

// Set-up over TCP (flow_meet.c).
int alb_flow_listen(const struct alb_flow_options *options, uint16_t port);
uint16_t alb_flow_port_of(int fd);
int alb_flow_dial(const struct alb_flow_options *options, uint16_t port);
int alb_flow_accept(int listener);
void alb_flow_exchange(int fd, const struct alb_flow_blob *mine, struct alb_flow_blob *theirs);
// Sleeps until the transport has something, or the time; polling transports return at once.
void alb_flow_rest(const struct alb_flow_options *options, int timeout_ms);

void alb_flow_send_run(const struct alb_flow_options *options);
void alb_flow_receive_run(const struct alb_flow_options *options);

// What message number `word` holds behind its stamp, eight bytes at a time; a rest of fewer stays as it is.
void alb_flow_fill(uint8_t *message, uint32_t bytes, uint32_t word);
bool alb_flow_is_right(const uint8_t *message, uint32_t bytes, uint32_t word);

// Times in nanoseconds, for percentiles.
struct alb_flow_times {
    uint64_t *ns;
    uint32_t count, room;
};
void alb_flow_times_add(struct alb_flow_times *times, uint64_t ns);
void alb_flow_times_print(struct alb_flow_times *times, const char *name); // as fields of JSON, with a comma in front

alb_time alb_flow_now(void);
_Noreturn void alb_flow_die(const char *what);                   // with errno
_Noreturn void alb_flow_fail(const char *what, const char *why); // with words
