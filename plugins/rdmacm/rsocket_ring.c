// SPDX-License-Identifier: BSD-2-Clause
#include "plugins/rdmacm/rsocket_ring.h"

#include "base/types.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

// ---- vectors

int rsocket_cursor_init(struct rsocket_cursor *cursor, const struct iovec *iov, size_t count)
{
    *cursor = (struct rsocket_cursor){.iov = iov, .count = count};
    if (count > IOV_MAX)
        return EINVAL;
    for (size_t i = 0; i < count; i++) {
        if (iov[i].iov_len > SSIZE_MAX - cursor->left)
            return EINVAL;
        cursor->left += iov[i].iov_len;
    }
    return 0;
}

// The next piece of at most length bytes; the cursor moves behind it.
static struct iovec next_piece(struct rsocket_cursor *cursor, size_t length)
{
    while (cursor->offset == cursor->iov->iov_len) {
        cursor->iov++;
        cursor->offset = 0;
    }
    struct iovec piece = {(char *)cursor->iov->iov_base + cursor->offset,
                          ALB_MIN(length, cursor->iov->iov_len - cursor->offset)};
    cursor->offset += piece.iov_len;
    cursor->left -= piece.iov_len;
    return piece;
}

void rsocket_cursor_gather(struct rsocket_cursor *cursor, void *to, size_t length)
{
    alb_assert(length <= cursor->left);
    for (size_t done = 0; done < length;) {
        struct iovec piece = next_piece(cursor, length - done);
        memcpy((char *)to + done, piece.iov_base, piece.iov_len);
        done += piece.iov_len;
    }
}

void rsocket_cursor_scatter(struct rsocket_cursor *cursor, const void *from, size_t length)
{
    alb_assert(length <= cursor->left);
    for (size_t done = 0; done < length;) {
        struct iovec piece = next_piece(cursor, length - done);
        memcpy(piece.iov_base, (const char *)from + done, piece.iov_len);
        done += piece.iov_len;
    }
}

// ---- inbox

void rsocket_inbox_init(struct rsocket_inbox *inbox, uint8_t *bytes, uint32_t size)
{
    alb_assert(size > 0 && size % 2 == 0);
    *inbox = (struct rsocket_inbox){
        .bytes = bytes, .size = size, .granted = size / 2, .free = size / 2, .grant_at = size / 2};
}

bool rsocket_inbox_take(struct rsocket_inbox *inbox, uint32_t length)
{
    if (length > inbox->granted)
        return false;
    inbox->granted -= length;
    inbox->unread += length;
    return true;
}

uint32_t rsocket_inbox_grant(struct rsocket_inbox *inbox)
{
    uint32_t half = inbox->size / 2, at = inbox->grant_at;
    alb_assert(inbox->free >= half);
    inbox->free -= half;
    inbox->granted += half;
    inbox->grant_at = at == 0 ? half : 0;
    return at;
}

size_t rsocket_inbox_read(struct rsocket_inbox *inbox, struct rsocket_cursor *to, bool is_peek)
{
    uint32_t length = (uint32_t)ALB_MIN((size_t)inbox->unread, to->left);
    uint32_t first = ALB_MIN(length, inbox->size - inbox->read_at);
    rsocket_cursor_scatter(to, inbox->bytes + inbox->read_at, first);
    rsocket_cursor_scatter(to, inbox->bytes, length - first);
    if (is_peek)
        return length;
    inbox->read_at = (inbox->read_at + length) % inbox->size;
    inbox->unread -= length;
    inbox->free += length;
    return length;
}

// ---- outbox

struct rsocket_pieces rsocket_outbox_put(struct rsocket_outbox *outbox, struct rsocket_cursor *from, uint32_t length)
{
    alb_assert(length <= rsocket_outbox_room(outbox));
    uint32_t first = ALB_MIN(length, outbox->size - outbox->write_at);
    struct rsocket_pieces pieces = {
        .piece = {{outbox->bytes + outbox->write_at, first}, {outbox->bytes, length - first}},
        .count = length > first ? 2 : 1,
    };
    for (int i = 0; i < pieces.count; i++)
        rsocket_cursor_gather(from, pieces.piece[i].iov_base, pieces.piece[i].iov_len);
    outbox->write_at = (outbox->write_at + length) % outbox->size;
    outbox->used += length;
    return pieces;
}

void rsocket_outbox_release(struct rsocket_outbox *outbox, uint32_t length)
{
    alb_assert(length <= outbox->used);
    outbox->used -= length;
}
