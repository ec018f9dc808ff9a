// SPDX-License-Identifier: BSD-2-Clause
// The end of a process on demand, as kill -9 brings it about, at a chosen message of reflection or step of a journal:
// what tests of crashes set. ALBEDO_CRASH is PLACE:WHAT:N, the N-th time (from 1):
//
//   PLACE  rx       it has come, and nothing has been made of it yet
//          tx       it is about to be sent, and what led to it has happened
//          sent     it has been sent
//   WHAT   write, end, message (parts and proposals of transactions, ordinary messages that want a verdict),
//          ask, commit, abort (commands), pending, reflected, committed, aborted, corrupt, unknown (verdicts)
//
//   PLACE  append   nothing of it is in the journal
//          written  it is in the file, and not made safe
//          safe     it is safe, and has not been answered
//   WHAT   prepare, commit, abort
#pragma once

#include "engine/transaction.h"
#include "wire/datagram.h"

enum alb_crash_place {
    ALB_CRASH_RX,
    ALB_CRASH_TX,
    ALB_CRASH_SENT,
    ALB_CRASH_APPEND,
    ALB_CRASH_WRITTEN,
    ALB_CRASH_SAFE,
};

// Reads ALBEDO_CRASH, once; what is not understood is reported and ignored.
void alb_crash_init(void);
bool alb_crash_is_armed(enum alb_crash_place place);

// If it is armed for the place: the end of the process, perhaps.
void alb_crash_look_at_packet(enum alb_crash_place place, const uint8_t *bytes, uint32_t length);
void alb_crash_look_at_batch(enum alb_crash_place place, const struct alb_tx *tx);
void alb_crash_at_journal(enum alb_crash_place place, enum alb_journal_kind kind);

extern bool alb_crash_is_set; // for any place, which all but tests can leave it at

static inline void alb_crash_at_packet(enum alb_crash_place place, const uint8_t *bytes, uint32_t length)
{
    if (alb_unlikely(alb_crash_is_set))
        alb_crash_look_at_packet(place, bytes, length);
}

static inline void alb_crash_at_batch(enum alb_crash_place place, const struct alb_tx *tx)
{
    if (alb_unlikely(alb_crash_is_set))
        alb_crash_look_at_batch(place, tx);
}
