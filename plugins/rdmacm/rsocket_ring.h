// SPDX-License-Identifier: BSD-2-Clause
// The two rings of bytes of a stream, as numbers only. The inbox is the memory into which the peer writes: it is given
// to the peer by halves, filled by it in order, and a half that the program has read can be given again. The outbox
// holds what has been sent and not yet acknowledged. And a reader and writer over what programs hand in as vectors.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

// ---- vectors

struct rsocket_cursor {
    const struct iovec *iov;
    size_t count, offset, left; // vectors; into the first of them; bytes in all
    bool is_short;              // of a datagram that was longer
};

// EINVAL: more vectors or bytes than a call may have.
int rsocket_cursor_init(struct rsocket_cursor *cursor, const struct iovec *iov, size_t count);
// length is at most cursor->left.
void rsocket_cursor_gather(struct rsocket_cursor *cursor, void *to, size_t length);
void rsocket_cursor_scatter(struct rsocket_cursor *cursor, const void *from, size_t length);

// ---- inbox

struct rsocket_inbox {
    uint8_t *bytes;
    uint32_t size;     // even
    uint32_t read_at;  // of what has come and was not read
    uint32_t unread;   //
    uint32_t granted;  // that the peer may still write
    uint32_t free;     // neither
    uint32_t grant_at; // the half to be given next
};

// The first half counts as given.
void rsocket_inbox_init(struct rsocket_inbox *inbox, uint8_t *bytes, uint32_t size);
// The peer says that it has written so much. False: it was not given that much.
bool rsocket_inbox_take(struct rsocket_inbox *inbox, uint32_t length);
static inline bool rsocket_inbox_can_grant(const struct rsocket_inbox *inbox)
{
    return inbox->free >= inbox->size / 2;
}
// Where the half begins that the peer is given: size / 2 bytes.
uint32_t rsocket_inbox_grant(struct rsocket_inbox *inbox);
// Copies what there is, as far as there is room; how much. peek: leaves it unread.
size_t rsocket_inbox_read(struct rsocket_inbox *inbox, struct rsocket_cursor *to, bool is_peek);

// ---- outbox

struct rsocket_outbox {
    uint8_t *bytes;
    uint32_t size;
    uint32_t write_at;
    uint32_t used;
};

// One or two pieces.
struct rsocket_pieces {
    struct iovec piece[2];
    int count;
};

static inline uint32_t rsocket_outbox_room(const struct rsocket_outbox *outbox)
{
    return outbox->size - outbox->used;
}
// Copies length bytes, for which there is room, and says where they lie.
struct rsocket_pieces rsocket_outbox_put(struct rsocket_outbox *outbox, struct rsocket_cursor *from, uint32_t length);
// The oldest length bytes are needed no more.
void rsocket_outbox_release(struct rsocket_outbox *outbox, uint32_t length);
