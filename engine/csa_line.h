// SPDX-License-Identifier: BSD-2-Clause
// The line of an association: its senders that have something to send take turns, and those that the window holds back
// wait behind them.
#pragma once

#include "base/types.h"

struct alb_assoc_live;
struct alb_stream_out;

enum alb_line_place {
    ALB_LINE_NONE,
    ALB_LINE_READY,   // it may have something to send
    ALB_LINE_WAITING, // the window holds it back
};

// A sender of an association that is awake joins the line: behind those that wait, unless what it has to send is
// urgent: a probe, or what was lost. One that stands in it already gets the place that it would have now.
void alb_line_join(struct alb_stream_out *out, bool is_urgent);
// One that waits goes before the others that do: it has to mend what was lost.
void alb_line_hasten(struct alb_stream_out *out);
// It leaves the line, or whatever list it is in.
void alb_line_leave(struct alb_stream_out *out);
// It has had its turn: the others follow.
void alb_line_pass(struct alb_stream_out *out);
// Its turn was cut short: it goes on before the others.
void alb_line_go_on(struct alb_stream_out *out);
// What it has to send did not fit into the window: it waits behind the others, or, if that is urgent, before them.
void alb_line_wait(struct alb_stream_out *out, bool is_urgent);
// So many bytes are not in flight any more: as many of those that wait may try as that is room for.
void alb_line_open(struct alb_assoc_live *live, uint32_t freed_bytes);
// The first one that is ready; NULL: none. When none is, as many of those that wait follow as there is room for.
struct alb_stream_out *alb_line_next(struct alb_assoc_live *live);
