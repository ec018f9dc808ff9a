// SPDX-License-Identifier: BSD-2-Clause
// Holding a peer to the IPv4 identifications it has shown. This guards against corruption, not against an attacker,
// which can compute an ICRC. A packet that only its identification speaks against is far more likely to come from a
// peer with habits of its own than to be corrupt, so a peer is given up on after a few.
#include "wire/icrc.h"

enum habit {
    HABIT_UNHEARD,  // nothing has come from it
    HABIT_LOW,      // only low identifications: places in a burst, or a counter that stands there
    HABIT_PLACE,    // place in a burst, always below ALB_ICRC_BURST_IDENT
    HABIT_COUNTING, // going up, by more after a pause
    HABIT_ANY,      // none that we know
};

// The Linux kernel takes identifications from a counter per destination (shared by hash) that goes up by one for each
// packet, and by a random number of up to the clock ticks since it was last used: at most one a millisecond. The window
// also covers that many packets lost in a row, or sent to others.
#define WINDOW_AHEAD  256
#define WINDOW_BEHIND 64

#define REPEATS_OF_PLACE 4 // low identifications that did not go up, until a peer is known to number by place
#define MISSES_TO_RESYNC 3
#define STRANGENESS_MISS 32
#define STRANGENESS_MAX  192

static bool is_near(uint16_t identification, uint16_t reference, uint32_t elapsed_ms)
{
    uint16_t ahead = (uint16_t)(identification - reference);
    uint16_t behind = (uint16_t)(reference - identification);
    return ahead <= (uint64_t)WINDOW_AHEAD + elapsed_ms || behind <= WINDOW_BEHIND;
}

static bool is_low(uint16_t identification)
{
    return identification < ALB_ICRC_BURST_IDENT;
}

static bool is_expected(const struct alb_icrc_peer *peer, uint16_t identification, uint32_t elapsed_ms)
{
    switch ((enum habit)peer->habit) {
    case HABIT_LOW:
        return is_low(identification) || is_near(identification, peer->last, elapsed_ms);
    case HABIT_PLACE:
        return is_low(identification);
    case HABIT_COUNTING:
        return is_near(identification, peer->last, elapsed_ms);
    case HABIT_UNHEARD:
    case HABIT_ANY:
        break;
    }
    return true;
}

// What the peer's habit is after one more identification that was expected.
static enum habit next_habit(struct alb_icrc_peer *peer, uint16_t identification)
{
    switch ((enum habit)peer->habit) {
    case HABIT_UNHEARD:
        peer->repeats = 0;
        return is_low(identification) ? HABIT_LOW : HABIT_COUNTING;
    case HABIT_LOW:
        if (!is_low(identification))
            return HABIT_COUNTING;
        peer->repeats += identification <= peer->last;
        return peer->repeats == REPEATS_OF_PLACE ? HABIT_PLACE : HABIT_LOW;
    case HABIT_PLACE:
    case HABIT_COUNTING:
    case HABIT_ANY:
        break;
    }
    return (enum habit)peer->habit;
}

static void on_expected(struct alb_icrc_peer *peer, uint16_t identification, uint32_t now_ms)
{
    peer->habit = next_habit(peer, identification);
    peer->last = identification;
    peer->heard_ms = now_ms;
    peer->misses = 0;
    if (peer->strangeness)
        peer->strangeness--;
}

// Returns true if the peer is to be followed to where it has gone.
static bool on_unexpected(struct alb_icrc_peer *peer, uint16_t identification, uint32_t elapsed_ms)
{
    bool is_consistent = peer->misses && is_near(identification, peer->candidate, elapsed_ms);
    peer->misses = is_consistent ? peer->misses + 1 : 1;
    peer->candidate = identification;
    peer->strangeness += STRANGENESS_MISS;

    if (peer->strangeness >= STRANGENESS_MAX)
        peer->habit = HABIT_ANY;
    else if (peer->misses < MISSES_TO_RESYNC)
        return false;
    else
        peer->habit = HABIT_UNHEARD;
    return true;
}

uint16_t alb_icrc_peer_expects(const struct alb_icrc_peer *peer, uint16_t place)
{
    return peer->habit == HABIT_COUNTING ? (uint16_t)(peer->last + 1) : place;
}

bool alb_icrc_peer_admits(struct alb_icrc_peer *peer, uint16_t identification, alb_time now)
{
    uint32_t now_ms = (uint32_t)(now / ALB_NS_PER_MS);
    uint32_t elapsed_ms = now_ms - peer->heard_ms;
    if (alb_unlikely(!is_expected(peer, identification, elapsed_ms)) &&
        !on_unexpected(peer, identification, elapsed_ms))
        return false;
    on_expected(peer, identification, now_ms);
    return true;
}
