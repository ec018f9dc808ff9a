// SPDX-License-Identifier: BSD-2-Clause
// The choice among many paths, eight at a time, for vectors of 256 bits; compiled with -mavx2. Fields of 32 bits are
// looked at eight to a vector, costs of 64 four to one: low and high. What does not fill a vector goes path by path.
#include "engine/path_choice.h"

#include <immintrin.h>

enum {
    LANES = 8,
    DELAY_MAX_TICKS = ALB_PATH_DELAY_MAX_NS >> 10,
};

_Static_assert(sizeof(struct alb_path_load) == 8 && sizeof(struct alb_path_pace) == 8, "a word each");
_Static_assert(offsetof(struct alb_path_load, weight) == 4 && offsetof(struct alb_path_load, state) == 5 &&
                   offsetof(struct alb_path_pace, since) == 4 && ALB_PATH_GOOD == 0,
               "fields are where they are looked for");

// A struct of two words of 32 bits for each of eight paths, word by word. Their order is that of unpacking: low() has
// the first four paths again.
struct words {
    __m256i first, second;
};

static inline __m256i load_words(const void *at)
{
    return _mm256_loadu_si256(at);
}

static inline struct words words_of(const void *structs)
{
    __m256 a = _mm256_castsi256_ps(load_words(structs));
    __m256 b = _mm256_castsi256_ps(load_words((const char *)structs + sizeof(a)));
    return (struct words){_mm256_castps_si256(_mm256_shuffle_ps(a, b, 0x88)),
                          _mm256_castps_si256(_mm256_shuffle_ps(a, b, 0xdd))};
}

static inline __m256i path_numbers(void)
{
    return _mm256_setr_epi32(0, 1, 4, 5, 2, 3, 6, 7);
}

// Four words each with another word above them.
static inline __m256i low(__m256i words, __m256i above)
{
    return _mm256_unpacklo_epi32(words, above);
}

static inline __m256i high(__m256i words, __m256i above)
{
    return _mm256_unpackhi_epi32(words, above);
}

static inline __m256i all(uint32_t word)
{
    return _mm256_set1_epi32((int32_t)word);
}

// The mask of a flag: that bit in all places.
static inline __m256i flag(__m256i words, int bit)
{
    return _mm256_srai_epi32(_mm256_slli_epi32(words, 31 - bit), 31);
}

// By the second word of loads.
static inline __m256i are_good(__m256i loads)
{
    return _mm256_cmpeq_epi32(_mm256_and_si256(loads, all(0xff00)), _mm256_setzero_si256());
}

static inline __m256i recent_ns_of(__m256i paces)
{
    return _mm256_and_si256(paces, all(ALB_PATH_RECENT_NS_MAX));
}

// ---- the mean -------------------------------------------------------------------------------------------------------

// Lane by lane, paths that are not good left out.
struct mean {
    __m256i sum_ns, known; // 64 and 32 bits
};

static inline struct mean mean_none(void)
{
    return (struct mean){_mm256_setzero_si256(), _mm256_setzero_si256()};
}

static inline void add_to_mean(struct mean *mean, __m256i recent_ns, __m256i good, __m256i late_ns)
{
    __m256i zero = _mm256_setzero_si256(), ns = _mm256_and_si256(_mm256_min_epu32(recent_ns, late_ns), good);
    mean->sum_ns = _mm256_add_epi64(mean->sum_ns, _mm256_add_epi64(low(ns, zero), high(ns, zero)));
    mean->known = _mm256_sub_epi32(mean->known, _mm256_and_si256(_mm256_cmpgt_epi32(recent_ns, zero), good));
}

static uint32_t mean_of(const struct mean *mean, const struct alb_paths_out *paths, uint32_t from, uint64_t late_ns)
{
    uint64_t sums_ns[LANES / 2], sum_ns = 0;
    uint32_t knowns[LANES], known = 0;
    _mm256_storeu_si256((void *)sums_ns, mean->sum_ns);
    _mm256_storeu_si256((void *)knowns, mean->known);
    for (uint32_t i = 0; i < LANES; i++) {
        sum_ns += i < LANES / 2 ? sums_ns[i] : 0;
        known += knowns[i];
    }
    for (uint32_t path = from; path < paths->count; path++)
        if (alb_path_load(paths, path)->state == ALB_PATH_GOOD) {
            uint32_t recent_ns = alb_path_pace(paths, path)->recent_ns;
            sum_ns += ALB_MIN((uint64_t)recent_ns, late_ns);
            known += recent_ns > 0;
        }
    return known ? (uint32_t)(sum_ns / known) : 0;
}

// No delay is more.
static inline __m256i limit_late(uint64_t late_ns)
{
    return all((uint32_t)ALB_MIN(late_ns, (uint64_t)INT32_MAX));
}

// ---- the cheapest ---------------------------------------------------------------------------------------------------

// What the delays and costs of all paths follow from.
struct outlook {
    __m256i unknown_ns, late_ns, tick, bytes;
};

// As alb_path_offer_of has it.
static inline __m256i delays_of(const struct words *paces, const struct outlook *outlook)
{
    __m256i recent_ns = recent_ns_of(paces->first), is_unknown = _mm256_cmpeq_epi32(recent_ns, _mm256_setzero_si256());
    __m256i ns = _mm256_or_si256(recent_ns, _mm256_and_si256(is_unknown, outlook->unknown_ns));
    __m256i ticks = _mm256_min_epu32(_mm256_sub_epi32(outlook->tick, paces->second), all(DELAY_MAX_TICKS));
    __m256i waited_ns = _mm256_and_si256(_mm256_slli_epi32(ticks, 10), flag(paces->first, 31));
    ns = _mm256_min_epu32(_mm256_max_epu32(ns, waited_ns), all(ALB_PATH_DELAY_MAX_NS));
    __m256i is_late = _mm256_or_si256(_mm256_cmpgt_epi32(ns, outlook->late_ns), flag(paces->first, 30));
    ns = _mm256_sllv_epi32(ns, _mm256_and_si256(is_late, all(ALB_PATH_LATE_SHIFT)));
    return _mm256_add_epi32(_mm256_srli_epi32(ns, 6), all(1));
}

// Offers of a lane each, of 64 bits. A place stands above its weight, so that both go by one comparison of places, and
// only the weight by one product of low halves. A cost counts by its low half: see are_small.
struct offers {
    __m256i cost, place_and_weight;
};

static inline __m256i are_better(const struct offers *a, const struct offers *b)
{
    __m256i left = _mm256_mul_epu32(a->cost, b->place_and_weight);
    __m256i right = _mm256_mul_epu32(b->cost, a->place_and_weight);
    __m256i is_sooner = _mm256_cmpgt_epi64(b->place_and_weight, a->place_and_weight);
    return _mm256_or_si256(_mm256_cmpgt_epi64(right, left),
                           _mm256_and_si256(_mm256_cmpeq_epi64(left, right), is_sooner));
}

static inline void take(struct offers *best, const struct offers *offers, __m256i good)
{
    __m256i is_better = _mm256_and_si256(are_better(offers, best), good);
    best->cost = _mm256_blendv_epi8(best->cost, offers->cost, is_better);
    best->place_and_weight = _mm256_blendv_epi8(best->place_and_weight, offers->place_and_weight, is_better);
}

static inline struct offers offers_none(void)
{
    return (struct offers){_mm256_set1_epi64x(UINT32_MAX), _mm256_set1_epi64x((int64_t)INT32_MAX << 32 | 1)};
}

// The bytes there and those that would come, each by the low half of the delay.
static inline __m256i costs_of(__m256i loads, __m256i delays, const struct outlook *outlook)
{
    return _mm256_add_epi64(_mm256_mul_epu32(loads, delays), _mm256_mul_epu32(outlook->bytes, delays));
}

// Nearly always: more would be gigabytes by microseconds.
static inline bool are_small(__m256i costs)
{
    return _mm256_testz_si256(costs, _mm256_set1_epi64x(-(1ll << 32)));
}

static struct alb_path_offer first_of(const struct offers *offers)
{
    struct alb_path_offer best = alb_path_offer_none();
    uint64_t costs[LANES / 2], places_and_weights[LANES / 2];
    _mm256_storeu_si256((void *)costs, offers->cost);
    _mm256_storeu_si256((void *)places_and_weights, offers->place_and_weight);
    for (uint32_t i = 0; i < LANES / 2; i++) {
        const struct alb_path_offer offer = {costs[i], places_and_weights[i] & UINT32_MAX, places_and_weights[i] >> 32};
        best = alb_path_offer_is_better(&offer, &best) ? offer : best;
    }
    return best;
}

static uint16_t cheapest(const struct alb_paths_out *paths, const struct alb_path_outlook *outlook, uint32_t bytes,
                         uint32_t *typical_ns)
{
    const struct alb_path_load *loads = alb_path_load(paths, 0);
    const struct alb_path_pace *paces = alb_path_pace(paths, 0);
    uint32_t first = paths->current + 1u, count = paths->count, path = 0;
    const struct outlook at = {all((uint32_t)ALB_MIN(outlook->unknown_ns, (uint64_t)ALB_PATH_DELAY_MAX_NS)),
                               limit_late(outlook->late_ns), all(outlook->tick), all(bytes)};
    __m256i place = _mm256_sub_epi32(path_numbers(), all(first)), costs = _mm256_setzero_si256();
    struct offers best_low = offers_none(), best_high = best_low;
    struct mean mean = mean_none();
    for (; path + LANES <= count; path += LANES, place = _mm256_add_epi32(place, all(LANES))) {
        const struct words load = words_of(&loads[path]), pace = words_of(&paces[path]);
        __m256i delays = delays_of(&pace, &at), good = are_good(load.second);
        __m256i behind = _mm256_add_epi32(place, _mm256_and_si256(flag(place, 31), all(count)));
        __m256i weight = _mm256_and_si256(load.second, all(0xff));
        const struct offers lows = {costs_of(low(load.first, delays), low(delays, delays), &at), low(weight, behind)};
        const struct offers highs = {costs_of(high(load.first, delays), high(delays, delays), &at),
                                     high(weight, behind)};
        take(&best_low, &lows, low(good, good));
        take(&best_high, &highs, high(good, good));
        costs = _mm256_or_si256(costs, _mm256_or_si256(lows.cost, highs.cost));
        add_to_mean(&mean, recent_ns_of(pace.first), good, at.late_ns);
    }
    if (alb_unlikely(!are_small(costs)))
        return alb_path_chooser_plain.cheapest(paths, outlook, bytes, typical_ns);
    take(&best_low, &best_high, all(UINT32_MAX));
    struct alb_path_offer best = first_of(&best_low);
    *typical_ns = mean_of(&mean, paths, path, outlook->late_ns);
    for (; path < count; path++) {
        const struct alb_path_offer offer = alb_path_offer_of(paths, path, outlook, bytes);
        if (loads[path].state == ALB_PATH_GOOD && alb_path_offer_is_better(&offer, &best))
            best = offer;
    }
    alb_assert(best.place < count);
    return (uint16_t)(best.place + first < count ? best.place + first : best.place + first - count);
}

// ---- the others -----------------------------------------------------------------------------------------------------

static uint32_t typical(const struct alb_paths_out *paths, uint64_t late_ns)
{
    const struct alb_path_load *loads = alb_path_load(paths, 0);
    const struct alb_path_pace *paces = alb_path_pace(paths, 0);
    __m256i late = limit_late(late_ns);
    struct mean mean = mean_none();
    uint32_t path = 0;
    for (; path + LANES <= paths->count; path += LANES) {
        const struct words load = words_of(&loads[path]), pace = words_of(&paces[path]);
        add_to_mean(&mean, recent_ns_of(pace.first), are_good(load.second), late);
    }
    return mean_of(&mean, paths, path, late_ns);
}

// The highest bit of each: of the difference of times, and the one that says that it waits.
static bool has_waited(const struct alb_paths_out *paths, uint32_t first, uint32_t past, alb_path_tick since)
{
    const struct alb_path_pace *paces = alb_path_pace(paths, 0);
    __m256i any = _mm256_setzero_si256(), later = all(since);
    uint32_t path = first;
    for (; path + LANES <= past; path += LANES) {
        const struct words pace = words_of(&paces[path]);
        any = _mm256_or_si256(any, _mm256_and_si256(_mm256_sub_epi32(pace.second, later), pace.first));
    }
    bool is_any = _mm256_movemask_ps(_mm256_castsi256_ps(any)) != 0;
    for (; path < past; path++)
        is_any |= alb_path_waits_since(&paces[path], since);
    return is_any;
}

const struct alb_path_chooser alb_path_chooser_avx2 = {"avx2", cheapest, typical, has_waited};
