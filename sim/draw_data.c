// SPDX-License-Identifier: BSD-2-Clause
// Data files drawn for scenarios: distributions of sizes and traces.
#include "sim/draw.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

enum {
    RANKS_MAX = 6,
    MESSAGES_MAX = 24,
};

struct text {
    char *at;
    size_t length;
};

__attribute__((format(printf, 2, 3))) static void say(struct text *text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text->at + text->length, ALB_DRAW_TEXT_MAX - text->length, format, arguments);
    va_end(arguments);
    text->length += (size_t)length;
    alb_assert(text->length < ALB_DRAW_TEXT_MAX);
}

static uint32_t below(struct alb_prng *prng, uint32_t n)
{
    return (uint32_t)alb_prng_below(prng, n);
}

// ---- sizes ----------------------------------------------------------------------------------------------------------

void alb_draw_sizes(struct alb_prng *prng, char to[ALB_DRAW_TEXT_MAX])
{
    struct text text = {.at = to};
    uint32_t percent = 0, bytes = below(prng, 200);
    to[0] = '\0';
    say(&text, "%" PRIu32 " 0\n", bytes);
    for (uint32_t i = 0, points = below(prng, 4); i < points; i++) {
        percent += 1 + below(prng, 30);
        bytes += below(prng, 1u << below(prng, 15));
        say(&text, "%" PRIu32 " %" PRIu32 " # point %" PRIu32 "\n", bytes, percent, i);
    }
    say(&text, "%" PRIu32 " 100\n", bytes + 1 + below(prng, 60000));
}

// ---- traces ---------------------------------------------------------------------------------------------------------

// One may wait for what its ranks do of those before it, and of no others, so that all can be done in this order.
struct message {
    uint32_t from, to, bytes, tag;
    uint32_t calc_ns;                   // before it is sent; 0: none
    uint32_t send_after, receive_after; // number of a message before it plus one; 0: none
    bool at_start;
};

struct trace {
    struct message messages[MESSAGES_MAX];
    uint32_t count, ranks;
    bool is_wild; // receipts are from any rank, with any tag
};

// A message before this one in which the rank takes part, plus one; 0: none.
static uint32_t draw_before(struct alb_prng *prng, const struct trace *trace, uint32_t number, uint32_t rank)
{
    uint32_t before = number ? below(prng, number) : 0;
    const struct message *message = &trace->messages[before];
    return number && (message->from == rank || message->to == rank) ? before + 1 : 0;
}

// The newest receipt of that rank, plus one.
static uint32_t last_receipt(const struct trace *trace, uint32_t number, uint32_t rank)
{
    while (number > 0 && trace->messages[number - 1].to != rank)
        number--;
    return number;
}

static void draw_message(struct alb_prng *prng, struct trace *trace, uint32_t number)
{
    struct message *message = &trace->messages[number];
    message->from = below(prng, trace->ranks);
    message->to = (message->from + 1 + below(prng, trace->ranks - 1)) % trace->ranks;
    message->bytes = below(prng, 1u << below(prng, 17));
    message->tag = below(prng, 3);
    message->calc_ns = below(prng, 3) == 0 ? 1 + below(prng, 100000) : 0;
    message->send_after = draw_before(prng, trace, number, message->from);
    message->at_start = below(prng, 4) == 0;
    // Receipts that take whatever comes are done one after the other: else one that waits for nothing might take what
    // an earlier one needs, and nothing would ever come for that.
    message->receive_after =
        trace->is_wild ? last_receipt(trace, number, message->to) : draw_before(prng, trace, number, message->to);
}

// What a rank does for a message has a label: s or r, and the message's number.
static void say_after(struct text *text, const struct trace *trace, char label, uint32_t number, const char *how)
{
    const struct message *message = &trace->messages[number];
    uint32_t rank = label == 's' ? message->from : message->to;
    uint32_t after = (label == 's' ? message->send_after : message->receive_after) - 1;
    bool goes_with_message = trace->is_wild && label == 'r';
    say(text, "%c%" PRIu32 " %s %c%" PRIu32 " // ", label, number, how, trace->messages[after].from == rank ? 's' : 'r',
        after);
    if (goes_with_message)
        say(text, "%" PRIu32 "\n", number);
    else
        say(text, "%c%" PRIu32 " waits\n", label, number);
}

static void say_send(struct text *text, const struct trace *trace, uint32_t number)
{
    const struct message *message = &trace->messages[number];
    if (message->calc_ns)
        say(text, "c%" PRIu32 ": calc %" PRIu32 " // %" PRIu32 "\n", number, message->calc_ns, number);
    say(text, "s%" PRIu32 ": send %" PRIu32 "b to %" PRIu32 " tag %" PRIu32 " // %" PRIu32 "\n", number, message->bytes,
        message->to, message->tag, number);
    if (message->calc_ns)
        say(text, "s%" PRIu32 " requires c%" PRIu32 " // %" PRIu32 "\n", number, number, number);
    if (message->send_after)
        say_after(text, trace, 's', number, message->at_start ? "irequires" : "requires");
}

static void say_receipt(struct text *text, const struct trace *trace, uint32_t number)
{
    const struct message *message = &trace->messages[number];
    if (trace->is_wild)
        say(text, "r%" PRIu32 ": recv %" PRIu32 "b from -1 tag -1 // %" PRIu32 "\n", number, message->bytes, number);
    else
        say(text, "r%" PRIu32 ": recv %" PRIu32 "b from %" PRIu32 " tag %" PRIu32 " // %" PRIu32 "\n", number,
            message->bytes, message->from, message->tag, number);
    if (message->receive_after)
        say_after(text, trace, 'r', number, "requires");
}

void alb_draw_trace(struct alb_prng *prng, uint32_t ranks_max, char to[ALB_DRAW_TEXT_MAX])
{
    struct trace trace = {.count = 1 + below(prng, MESSAGES_MAX), .is_wild = below(prng, 3) == 0};
    struct text text = {.at = to};
    trace.ranks = 2 + below(prng, ALB_MIN(ranks_max, (uint32_t)RANKS_MAX) - 1);
    for (uint32_t i = 0; i < trace.count; i++)
        draw_message(prng, &trace, i);
    say(&text, "num_ranks %" PRIu32 "\n", trace.ranks);
    for (uint32_t rank = 0; rank < trace.ranks; rank++) {
        say(&text, "rank %" PRIu32 " {\n", rank);
        for (uint32_t i = 0; i < trace.count; i++) {
            if (trace.messages[i].from == rank)
                say_send(&text, &trace, i);
            if (trace.messages[i].to == rank)
                say_receipt(&text, &trace, i);
        }
        say(&text, "}\n");
    }
}
