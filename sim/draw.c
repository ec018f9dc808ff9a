// SPDX-License-Identifier: BSD-2-Clause
#include "sim/draw.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct draw {
    struct alb_prng prng;
    struct alb_drawn *drawn;
    char *text;
    size_t length;
    uint32_t hosts;
    bool is_csa;
    bool has_core, has_ways; // cables between switches that have a rate of their own; more than one way
    bool is_lossless;        // switches keep buffers from overflowing
    const char *credit;      // of the hosts that nothing else is said of
    const char *congestion;  // of the section before, or the default
};

__attribute__((format(printf, 2, 3))) static void say(struct draw *draw, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(draw->text + draw->length, ALB_DRAW_TEXT_MAX - draw->length, format, arguments);
    va_end(arguments);
    draw->length += (size_t)length;
    alb_assert(draw->length < ALB_DRAW_TEXT_MAX);
}

static uint32_t below(struct draw *draw, uint32_t n)
{
    return (uint32_t)alb_prng_below(&draw->prng, n);
}

static bool percent(struct draw *draw, uint32_t chance)
{
    return below(draw, 100) < chance;
}

#define ONE_OF(draw, ...)                                                    \
    ({                                                                       \
        static const char *const words_[] = {__VA_ARGS__};                   \
        words_[below(draw, (uint32_t)(sizeof(words_) / sizeof(words_[0])))]; \
    })

// Small numbers more often: of each order of magnitude alike.
static uint32_t size(struct draw *draw, uint32_t bits)
{
    return 1 + (uint32_t)alb_prng_below(&draw->prng, 1ull << below(draw, bits + 1));
}

// ---- network --------------------------------------------------------------------------------------------------------

static void draw_network(struct draw *draw)
{
    uint32_t a = 2 + below(draw, 3), b = 1 + below(draw, 3), kind = below(draw, 4);
    draw->has_ways = kind != 0;
    draw->has_core = kind == 1 || kind == 2;
    switch (kind) {
    case 0:
        draw->hosts = 2 + below(draw, 8);
        say(draw, "[network]\ntopology = star\nhosts = %" PRIu32 "\n", draw->hosts);
        break;
    case 1:
        draw->hosts = a * (1 + b);
        say(draw, "[network]\ntopology = leaf-spine\nhosts = %" PRIu32 "\nleaves = %" PRIu32 "\nspines = %" PRIu32 "\n",
            1 + b, a, 1 + below(draw, 4));
        break;
    case 2:
        draw->hosts = 16;
        say(draw, "[network]\ntopology = fat-tree\nk = 4\noversubscription = %" PRIu32 "\n", 1 + below(draw, 2));
        break;
    default:
        draw->hosts = 2 * a;
        say(draw,
            "[network]\ntopology = two-sites\nhosts = %" PRIu32 "\nlong_cables = %" PRIu32 "\nlong_delay = %sus\n",
            draw->hosts, 1 + below(draw, 3), ONE_OF(draw, "10", "100", "1000"));
    }
    if (percent(draw, 60))
        say(draw, "rate = %sGb/s\n", ONE_OF(draw, "1", "10", "25", "400"));
    if (draw->has_core && percent(draw, 40))
        say(draw, "core_rate = %sGb/s\n", ONE_OF(draw, "1", "40", "100"));
    if (percent(draw, 40))
        say(draw, "delay = %" PRIu32 "ns\n", size(draw, 14));
}

// Every drawn topology goes up and then down, so that no pause waits for itself. A headroom that is too short for a
// link loses packets, which are sent again; the buffer holds that of ten ports.
static void draw_pfc(struct draw *draw)
{
    uint32_t headroom = 20000 + size(draw, 17), buffer = 10 * headroom + 20000 + size(draw, 20);
    say(draw, "flow_control = pfc\npfc_headroom = %" PRIu32 "\nbuffer = %" PRIu32 "\n", headroom, buffer);
    if (percent(draw, 50))
        say(draw, "alpha = %s\n", ONE_OF(draw, "0.0625", "0.5", "1", "8"));
    if (percent(draw, 50))
        say(draw, "pfc_xoff = %" PRIu32 "\n", ALB_MIN(5000 + size(draw, 18), buffer));
}

// What bounds a buffer that nothing keeps from overflowing.
static void draw_room(struct draw *draw)
{
    if (percent(draw, 50))
        say(draw, "port_buffer = %" PRIu32 "\n", 20000 + size(draw, 20));
    if (percent(draw, 25))
        say(draw, "buffer = %" PRIu32 "\nalpha = %s\n", 100000 + size(draw, 20), ONE_OF(draw, "0.5", "1", "8"));
    // rc knows nothing of trimming: to it they are lost, and take others' room.
    if (draw->is_csa && percent(draw, 20))
        say(draw, "trim = yes\ntrim_buffer = %" PRIu32 "\n", 1000 + size(draw, 13)); // else headers may fill a link
}

static void draw_switches(struct draw *draw)
{
    uint32_t control = below(draw, 100);
    draw->is_lossless = control < 32;
    say(draw, "[switch]\n");
    if (control < 20)
        draw_pfc(draw);
    else if (control < 32)
        say(draw, "flow_control = credits\n");
    else
        draw_room(draw);
    if (percent(draw, 40))
        say(draw, "mark_min = %" PRIu32 "\nmark_max = %" PRIu32 "\nmark_chance = 20%%\n", size(draw, 17),
            140000 + size(draw, 18));
    if (draw->has_ways && percent(draw, 25))
        say(draw, "spread = spray\n");
}

// What each engine chooses for itself. Its credit, as it is then.
static const char *draw_policies(struct draw *draw, const char *credit)
{
    if (percent(draw, 60))
        say(draw, "loss = %s\n", ONE_OF(draw, "csa", "go-back-n", "irn", "fixed", "sleek"));
    if (percent(draw, 40)) {
        draw->congestion = ONE_OF(draw, "window", "dcqcn", "fixed", "none");
        say(draw, "congestion = %s\n", draw->congestion);
    }
    if (percent(draw, 60))
        say(draw, "path = %s\n", ONE_OF(draw, "adaptive", "single", "spray"));
    if (percent(draw, 60))
        say(draw, "paths = %" PRIu32 "\n", size(draw, 5));
    if (percent(draw, 60)) {
        credit = ONE_OF(draw, "end-to-end", "shortest", "shortest", "off");
        say(draw, "credit = %s\n", credit);
    }
    if (credit[0] != 'o' && percent(draw, 40))
        say(draw, "receive_budget = %" PRIu32 "\n", 65536 + size(draw, 20));
    if (credit[0] == 's' && percent(draw, 40))
        say(draw, "credit_aging = %sGb/s\n", ONE_OF(draw, "0.1", "1", "100"));
    uint32_t window_bytes = percent(draw, 30) ? 65536 + size(draw, 20) : 0;
    if (window_bytes && strcmp(draw->congestion, "none") != 0)
        say(draw, "window_max = %" PRIu32 "\n", window_bytes);
    return credit;
}

// Those of some hosts may be others than those of the rest.
static void draw_some_hosts(struct draw *draw)
{
    uint32_t first = below(draw, draw->hosts), last = first + below(draw, draw->hosts - first);
    say(draw, "[host %" PRIu32 "..%" PRIu32 "]\n", first, last);
    draw_policies(draw, draw->credit);
}

static void draw_hosts(struct draw *draw)
{
    say(draw, "[host]\nreal_bytes = yes\ntransport = %s\n", draw->is_csa ? "csa" : "rc");
    if (!draw->is_csa) {
        if (percent(draw, 60)) // without any, and where buffers overflow, the retries do not last
            say(draw, "congestion = %s\n", draw->is_lossless ? ONE_OF(draw, "aimd", "fixed", "none") : "aimd");
        if (percent(draw, 60))
            say(draw, "mtu = %" PRIu32 "\n", 256u << below(draw, 5));
        return;
    }
    draw->credit = draw_policies(draw, "end-to-end");
    if (percent(draw, 30))
        say(draw, "window_segments = %" PRIu32 "\n", 4u << below(draw, 8));
    if (percent(draw, 30))
        say(draw, "payload = %" PRIu32 "\n", 512 + 4 * below(draw, 2000));
    if (percent(draw, 50))
        say(draw, "pool = %sM\nearly = %sK\n", ONE_OF(draw, "1", "4"), ONE_OF(draw, "16", "128", "512"));
    if (percent(draw, 30))
        draw_some_hosts(draw);
}

// ---- what runs ------------------------------------------------------------------------------------------------------

static void draw_collective(struct draw *draw)
{
    say(draw, "kind = %s\nsize = %" PRIu32 "\nop = %s\nrounds = %" PRIu32 "\n",
        ONE_OF(draw, "all-reduce-ring", "all-reduce-tree", "all-gather", "reduce-scatter", "all-to-all-steps"),
        size(draw, 16), ONE_OF(draw, "write", "send"), 1 + below(draw, 3));
}

static void draw_goal(struct draw *draw)
{
    if (!draw->drawn->trace[0])
        alb_draw_trace(&draw->prng, draw->hosts, draw->drawn->trace);
    say(draw, "kind = goal\nfile = %s\nop = %s\n", draw->drawn->trace_name, ONE_OF(draw, "write", "send"));
}

static void draw_size(struct draw *draw)
{
    if (percent(draw, 75)) {
        say(draw, "size = %" PRIu32 "\n", size(draw, 16));
        return;
    }
    if (!draw->drawn->sizes[0])
        alb_draw_sizes(&draw->prng, draw->drawn->sizes);
    say(draw, "sizes = %s\n", draw->drawn->sizes_name);
}

static void draw_pairs(struct draw *draw, const char *kind)
{
    bool is_pairs = kind[0] == 'p' && kind[1] == 'a';
    if (kind[0] == 'i' || is_pairs) {
        uint32_t to = below(draw, draw->hosts), from = (to + 1 + below(draw, draw->hosts - 1)) % draw->hosts;
        if (is_pairs)
            say(draw, "hosts = %" PRIu32 "\n", from);
        say(draw, "to = %" PRIu32 "\n", to);
    }
    if (kind[0] == 'p' && kind[1] == 'o')
        say(draw, "load = %s\nflows = %" PRIu32 "\n", ONE_OF(draw, "1%", "30%", "80%", "100%"), size(draw, 6));
    else
        say(draw, "messages = %" PRIu32 "\ndepth = %" PRIu32 "\n", size(draw, 4), size(draw, 4));
}

static void draw_flows(struct draw *draw)
{
    const char *kind = ONE_OF(draw, "permutation", "incast", "all-to-all", "pairs", "poisson");
    bool is_unreliable = percent(draw, 20), is_partial = is_unreliable && draw->is_csa && percent(draw, 60);
    say(draw, "kind = %s\n", kind);
    draw_size(draw);
    draw_pairs(draw, kind);
    if (is_unreliable)
        say(draw, "unreliable = yes\nop = %s\n", is_partial || percent(draw, 50) ? "write" : "send");
    else
        say(draw, "op = %s\n", ONE_OF(draw, "write", "write", "send", "read"));
    if (is_partial)
        say(draw, "partial = %" PRIu32 "us\n", 1 + size(draw, 9));
    if (percent(draw, 30))
        say(draw, "queue_pairs = %" PRIu32 "\n", 1 + below(draw, 4));
}

static void draw_workload(struct draw *draw, uint32_t number)
{
    uint32_t kind = below(draw, 100);
    bool is_trace = kind >= 35 && kind < 50; // which begins with the run
    say(draw, "[workload w%" PRIu32 "]\n", number);
    if (!is_trace)
        say(draw, "start = %" PRIu32 "us\n", below(draw, 200));
    if (kind < 35)
        draw_collective(draw);
    else if (is_trace)
        draw_goal(draw);
    else
        draw_flows(draw);
}

// Short enough for the retries of every queue pair. Much work is over soon, so that half begin early: at each order of
// magnitude alike.
static void draw_fault(struct draw *draw, uint32_t number)
{
    const char *kind = ONE_OF(draw, "loss", "corrupt", "rate", "delay", "death");
    uint32_t at = percent(draw, 50) ? size(draw, 19) : 1000 * below(draw, 500), span = 1000 * (1 + below(draw, 5000));
    say(draw, "[fault f%" PRIu32 "]\nkind = %s\nat = %" PRIu32 "ns\nuntil = %" PRIu32 "ns\n", number, kind, at,
        at + span);
    if (percent(draw, 50))
        say(draw, "cables = h%" PRIu32 "-*\n", below(draw, draw->hosts));
    else
        say(draw, "cables = tier:0:%" PRIu32 "\n", 1 + below(draw, draw->hosts));
    say(draw, "way = %s\n", ONE_OF(draw, "both", "up", "down"));
    if (kind[0] == 'l' || kind[0] == 'c')
        say(draw, "value = %s\n", ONE_OF(draw, "0.1%", "1%", "10%", "50%"));
    else if (kind[0] == 'r')
        say(draw, "value = %sMb/s\n", ONE_OF(draw, "100", "1000", "10000"));
    else if (kind[1] == 'e' && kind[2] == 'l')
        say(draw, "value = %" PRIu32 "us\n", size(draw, 8));
}

void alb_draw_scenario(uint64_t seed, struct alb_drawn *drawn)
{
    struct draw draw = {.drawn = drawn, .text = drawn->text, .congestion = "window"};
    drawn->sizes[0] = drawn->trace[0] = '\0';
    snprintf(drawn->sizes_name, sizeof(drawn->sizes_name), "search-%" PRIu64 ".sizes", seed);
    snprintf(drawn->trace_name, sizeof(drawn->trace_name), "search-%" PRIu64 ".goal", seed);
    alb_prng_init(&draw.prng, seed);
    draw.is_csa = percent(&draw, 75);
    say(&draw, "[scenario]\nseed = %" PRIu64 "\norder = %s\n", seed, ONE_OF(&draw, "time", "host", "window"));
    draw_network(&draw);
    draw_switches(&draw);
    draw_hosts(&draw);
    for (uint32_t i = 0, count = 1 + below(&draw, 3); i < count; i++)
        draw_workload(&draw, i);
    for (uint32_t i = 0, count = below(&draw, 5); i < count; i++)
        draw_fault(&draw, i);
}
