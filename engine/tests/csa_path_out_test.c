// SPDX-License-Identifier: BSD-2-Clause
#include "engine/csa_path.h"

#include "base/prng.h"
#include "base/tests/test.h"

#include <stdlib.h>
#include <string.h>

#define US ALB_NS_PER_US
#define MS ALB_NS_PER_MS

// A policy that records its calls.
static struct {
    uint32_t news, silences, lost;
    uint16_t path;
} told;

static uint16_t pick(struct alb_paths_out *paths, uint32_t flow_hash, uint32_t bytes, alb_time now)
{
    return (uint16_t)(flow_hash % paths->count);
}

static void on_news(struct alb_paths_out *paths, uint16_t path, const struct alb_path_news *news, alb_time now)
{
    told.news++;
    told.path = path;
}

static void on_silence(struct alb_paths_out *paths, uint16_t path, uint32_t lost, alb_time now)
{
    told.silences++;
    told.path = path;
    told.lost = lost;
}

static const struct alb_path_ops ops = {.name = "test", .pick = pick, .on_news = on_news, .on_silence = on_silence};

// Of one frame that tells of all paths.
static struct alb_path_scope scope;

static struct alb_paths_out *paths_new(uint32_t count, alb_psn next)
{
    struct alb_paths_out *paths = malloc(alb_paths_out_bytes(count));
    assert_non_null(paths);
    scope = (struct alb_path_scope){.past = ALB_PATHS_MAX};
    memset(&told, 0, sizeof(told));
    alb_paths_out_init(paths, count, next);
    return paths;
}

static void send(struct alb_paths_out *paths, uint16_t path, uint32_t count, alb_time now)
{
    for (uint32_t i = 0; i < count; i++)
        alb_path_sent(paths, path, 1000, now);
}

// The packet that left at echo came, and the peer tells of it after delay.
static struct alb_path_news hear(struct alb_paths_out *paths, uint8_t path, alb_psn settled, uint32_t received,
                                 alb_time echo, uint32_t delay_ns, alb_time now)
{
    struct alb_csa_path_entry entry = {
        .path = path,
        .settled = settled & ALB_PSN_MASK,
        .received = received,
        .echo = (uint32_t)echo,
        .delay_ns = delay_ns,
    };
    struct alb_path_news news = alb_path_heard(paths, &ops, &entry, now);
    if (news.is_new)
        alb_path_scope_heard(&scope, &entry, now);
    return news;
}

static bool judge(struct alb_paths_out *paths, alb_time now)
{
    struct alb_path_set silent;
    bool is_found = alb_paths_find_silent(paths, &scope, &silent);
    for (uint32_t i = is_found ? alb_path_set_next(&silent, 0) : ALB_PATHS_MAX; i < ALB_PATHS_MAX;
         i = alb_path_set_next(&silent, i + 1))
        assert_true(alb_path_silent(paths, &ops, (uint16_t)i, now));
    return is_found;
}

static void sent__numbers_each_path(void **state)
{
    struct alb_paths_out *paths = paths_new(3, 0xfffffe);
    assert_int_equal(alb_path_sent(paths, 1, 100, MS), 0xfffffe);
    assert_int_equal(alb_path_sent(paths, 1, 100, MS), 0xffffff);
    assert_int_equal(alb_path_sent(paths, 1, 100, MS), 0);
    assert_int_equal(alb_path_sent(paths, 2, 50, MS), 0xfffffe);
    assert_int_equal(alb_path_load(paths, 1)->inflight_bytes, 300);
    alb_path_done(paths, 1, 200);
    assert_int_equal(alb_path_load(paths, 1)->inflight_bytes, 100);
    assert_int_equal(alb_paths_out_last(paths), 1);
    assert_false(alb_path_is_settled(paths, 1, 0xfffffe));
    free(paths);
}

// Nothing is ever told of it: its numbers come round, and what leaves now is not taken for settled.
static void sent__numbers_that_come_round(void **state)
{
    struct alb_paths_out *paths = paths_new(1, 0);
    for (uint32_t i = 0; i < (1u << 24) + 1000; i++) {
        alb_psn sequence = alb_path_sent(paths, 0, 0, MS);
        if (alb_path_is_settled(paths, 0, sequence))
            fail_msg("packet %u", i);
    }
    assert_int_equal(paths->waiting, 1);
    free(paths);
}

static void waiting__counts_paths_that_have_something_under_way(void **state)
{
    struct alb_paths_out *paths = paths_new(3, 0xfffffe);
    assert_int_equal(paths->waiting, 0);
    send(paths, 0, 3, MS);
    send(paths, 2, 1, MS);
    assert_int_equal(paths->waiting, 2);
    hear(paths, 0, 0xffffff, 1, MS, 0, 2 * MS);
    assert_int_equal(paths->waiting, 2);
    hear(paths, 0, 1, 3, MS, 0, 2 * MS);
    hear(paths, 0, 1, 3, MS, 0, 2 * MS); // says nothing new
    assert_int_equal(paths->waiting, 1);
    assert_true(alb_path_silent(paths, &ops, 2, 3 * MS));
    assert_false(alb_path_silent(paths, &ops, 2, 3 * MS));
    assert_int_equal(paths->waiting, 0);
    free(paths);
}

static void choose__asks_the_policy_if_there_is_a_choice(void **state)
{
    struct alb_paths_out *paths = paths_new(3, 0);
    assert_int_equal(alb_paths_choose(paths, &ops, 5, 100, MS), 2);
    assert_int_equal(paths->current, 2);
    assert_int_equal(paths->turn, 1);
    assert_int_equal(alb_path_burst_bytes(paths, 2, 300000), 100000); // its part of the window
    assert_int_equal(alb_path_burst_bytes(paths, 2, 4096), ALB_PATH_TRY_BYTES);
    alb_path_set_state(paths, 0, ALB_PATH_LEFT);
    assert_int_equal(alb_path_burst_bytes(paths, 2, 300000), 150000);
    alb_path_set_state(paths, 2, ALB_PATH_TRYING);
    assert_int_equal(alb_path_burst_bytes(paths, 2, UINT32_MAX), ALB_PATH_TRY_BYTES);
    free(paths);
    paths = paths_new(1, 0);
    assert_int_equal(alb_paths_choose(paths, &ops, 5, 100, MS), 0);
    free(paths);
}

static void heard__settles_and_counts_losses(void **state)
{
    struct alb_paths_out *paths = paths_new(2, 0xfffff0);
    send(paths, 1, 20, MS);
    struct alb_path_news news = hear(paths, 1, 0xfffff0 + 10, 9, MS, 0, 2 * MS);
    assert_true(news.is_new && news.is_settled_newer);
    assert_int_equal(news.settled, 10);
    assert_int_equal(news.received, 9);
    assert_int_equal(news.lost, 1);
    assert_int_equal(told.news, 1);
    assert_int_equal(told.path, 1);
    assert_true(alb_path_is_settled(paths, 1, 0xfffff9));
    assert_false(alb_path_is_settled(paths, 1, 0xfffffa));
    assert_int_equal(paths->path[1].recent_sent, 10);
    assert_int_equal(paths->path[1].recent_lost, 1);
    news = hear(paths, 1, 0xfffff0 + 20, 19, MS, 0, 3 * MS);
    assert_int_equal(news.settled, 10);
    assert_int_equal(news.lost, 0);
    assert_true(alb_path_is_settled(paths, 1, 3));
    assert_false(alb_path_is_waiting(&paths->path[1]));
    free(paths);
}

static void heard__packets_behind_a_gap(void **state)
{
    struct alb_paths_out *paths = paths_new(2, 0);
    send(paths, 0, 30, MS);
    // 10 is missing, 11 to 19 have come.
    struct alb_path_news news = hear(paths, 0, 10, 19, MS, 0, 2 * MS);
    assert_int_equal(news.lost, 0);
    assert_int_equal(paths->path[0].ahead, 9);
    // Its gap is given up.
    news = hear(paths, 0, 20, 19, MS, 0, 3 * MS);
    assert_true(news.is_new);
    assert_int_equal(news.received, 0);
    assert_int_equal(news.lost, 1);
    assert_int_equal(paths->path[0].ahead, 0);
    // It comes after all: that makes up for a packet that is lost later.
    news = hear(paths, 0, 20, 20, MS, 0, 4 * MS);
    assert_true(news.is_new && !news.is_settled_newer);
    assert_int_equal(news.received, 1);
    news = hear(paths, 0, 30, 29, MS, 0, 5 * MS);
    assert_int_equal(news.lost, 0);
    assert_int_equal(paths->path[0].recent_lost, 1);
    free(paths);
}

static void heard__old_and_impossible_words(void **state)
{
    struct alb_paths_out *paths = paths_new(2, 0);
    send(paths, 0, 30, MS);
    assert_true(hear(paths, 0, 20, 18, MS, 0, 2 * MS).is_new);
    struct alb_path_out before = paths->path[0];
    assert_false(hear(paths, 0, 20, 18, MS, 0, 3 * MS).is_new); // reported again
    assert_false(hear(paths, 0, 10, 9, MS, 0, 3 * MS).is_new);  // overtaken
    assert_false(hear(paths, 0, 31, 30, MS, 0, 3 * MS).is_new); // of packets that have not left
    assert_false(hear(paths, 0, 20 + (1 << 22), 30, MS, 0, 3 * MS).is_new);
    assert_false(hear(paths, 2, 20, 30, MS, 0, 3 * MS).is_new);
    assert_false(hear(paths, 255, 20, 30, MS, 0, 3 * MS).is_new);
    assert_memory_equal(&before, &paths->path[0], sizeof(before));
    assert_int_equal(told.news, 1);
    free(paths);
}

static void heard__counters_that_begin_anew(void **state)
{
    struct alb_paths_out *paths = paths_new(2, 0);
    send(paths, 0, 30, MS);
    hear(paths, 0, 30, 30, MS, 0, 2 * MS);
    // The peer forgets the path while it is idle.
    send(paths, 0, 10, 100 * MS);
    struct alb_path_news news = hear(paths, 0, 40, 9, 100 * MS, 0, 101 * MS);
    assert_int_equal(news.received, 9);
    assert_int_equal(news.lost, 0); // it may have been reported by none, as what nobody answers
    send(paths, 0, 10, 102 * MS);
    assert_int_equal(hear(paths, 0, 50, 18, 102 * MS, 0, 103 * MS).lost, 1);
    free(paths);

    // The next flight may be as long as all before: then the counters do not run backward.
    paths = paths_new(2, 0);
    send(paths, 0, 8, MS);
    hear(paths, 0, 8, 8, MS, 0, 2 * MS);
    send(paths, 0, 8, 1000 * MS);
    news = hear(paths, 0, 16, 8, 1000 * MS, 0, 1001 * MS);
    assert_int_equal(news.received, 8);
    assert_int_equal(news.lost, 0);
    send(paths, 0, 8, 1002 * MS); // without a rest nobody forgets
    assert_int_equal(hear(paths, 0, 24, 8, 1002 * MS, 0, 1003 * MS).lost, 8);
    free(paths);

    // We forget it: the peer's counters are those of a former life, and so is its settled mark at first.
    paths = paths_new(2, 100);
    send(paths, 0, 10, 200 * MS);
    news = hear(paths, 0, 100, 5000, 100 * MS, 0, 200 * MS);
    assert_false(news.is_settled_newer);
    news = hear(paths, 0, 110, 5009, 200 * MS, 0, 201 * MS);
    assert_true(news.is_settled_newer);
    assert_in_range(news.lost, 0, 1);
    free(paths);
}

static void heard__marks(void **state)
{
    struct alb_paths_out *paths = paths_new(1, 0);
    send(paths, 0, 30, MS);
    struct alb_csa_path_entry entry = {.settled = 10, .received = 10, .marked = 4, .echo = (uint32_t)MS};
    assert_int_equal(alb_path_heard(paths, &ops, &entry, 2 * MS).marked, 4);
    entry.settled = entry.received = 20;
    assert_int_equal(alb_path_heard(paths, &ops, &entry, 3 * MS).marked, 0);
    assert_int_equal(paths->path[0].recent_marked, 4);
    entry.settled = entry.received = 25;
    entry.marked = 1000; // more than came
    assert_int_equal(alb_path_heard(paths, &ops, &entry, 3 * MS).marked, 5);
    entry.settled = entry.received = 30;
    entry.marked = 999;
    assert_int_equal(alb_path_heard(paths, &ops, &entry, 3 * MS).marked, 0);
    free(paths);
}

static void heard__round_trip_times(void **state)
{
    struct alb_paths_out *paths = paths_new(1, 0);
    const struct alb_path_out *out = &paths->path[0];
    alb_time now = (3ull << 32) - 2 * MS; // timestamps wrap meanwhile
    uint32_t count = 0;
    for (; count < 100; now += MS) {
        send(paths, 0, 1, now);
        count++;
        struct alb_path_news news = hear(paths, 0, count, count, now, 7 * US, now + 107 * US);
        assert_int_equal(news.rtt_sample_ns, 100 * US);
    }
    assert_int_equal(out->rtt_ns, 100 * US);
    assert_int_equal(out->rtt_min_ns, 100 * US);
    assert_in_range(out->rtt_var_ns, 0, 6 * US);
    send(paths, 0, 1, now);
    count++;
    hear(paths, 0, count, count, now, 0, now + 180 * US);
    assert_int_equal(out->rtt_ns, 110 * US);
    assert_in_range(out->rtt_var_ns, US, 8 * US);
    // Long under way, but believed: the delay counts in full.
    now += 10 * ALB_NS_PER_S;
    send(paths, 0, 1, now);
    count++;
    struct alb_path_news news = hear(paths, 0, count, count, now, 4000 * MS, now + 4001 * MS);
    assert_int_equal(news.rtt_sample_ns, MS);
    free(paths);
}

static void heard__the_smallest_round_trip(void **state)
{
    struct alb_paths_out *paths = paths_new(1, 0);
    const struct alb_path_out *out = &paths->path[0];
    send(paths, 0, 3, MS);
    hear(paths, 0, 1, 1, MS, 0, MS + 100 * US);
    assert_int_equal(out->rtt_min_ns, 100 * US);
    assert_int_equal(out->rtt_var_ns, 25 * US);
    hear(paths, 0, 2, 2, MS, 0, MS + 60 * US);
    assert_int_equal(out->rtt_min_ns, 60 * US);
    assert_int_equal(out->rtt_ns, 95 * US);
    hear(paths, 0, 3, 3, MS, 0, MS + 100 * US);
    assert_in_range(out->rtt_min_ns, 60 * US, 61 * US);
    free(paths);
}

// As many samples as there are packets: only four a round trip count in full.
static void heard__many_samples_a_round_trip(void **state)
{
    struct alb_paths_out *paths = paths_new(1, 0);
    send(paths, 0, 41, MS);
    hear(paths, 0, 1, 1, MS, 0, MS + 100 * US);
    hear(paths, 0, 2, 2, MS, 0, MS + 180 * US);
    assert_int_equal(paths->path[0].rtt_ns, 101 * US);
    free(paths);
}

static void heard__losses_and_marks_are_forgotten(void **state)
{
    struct alb_paths_out *paths = paths_new(1, 0);
    struct alb_csa_path_entry entry = {.echo = (uint32_t)MS};
    send(paths, 0, 4000, MS);
    for (uint32_t i = 1; i <= 40; i++) {
        entry.settled = i * 100;
        entry.received += i <= 5 ? 90 : 100;
        entry.marked += i <= 5 ? 50 : 0;
        alb_path_heard(paths, &ops, &entry, 2 * MS);
        if (i == 5) {
            assert_int_equal(paths->path[0].recent_lost, 50);
            assert_int_equal(paths->path[0].recent_marked, 250);
        }
    }
    assert_in_range(paths->path[0].recent_sent, 256, 512);
    assert_int_equal(paths->path[0].recent_lost, 0);
    assert_in_range(paths->path[0].recent_marked, 0, 1);
    free(paths);
}

static void heard__no_more_than_can_have_come(void **state)
{
    struct alb_paths_out *paths = paths_new(1, 0);
    send(paths, 0, 300, MS);
    assert_int_equal(hear(paths, 0, 100, 100000, MS, 0, 2 * MS).received, 300);
    assert_int_equal(paths->path[0].ahead, ALB_PATH_AHEAD_MAX);
    assert_int_equal(hear(paths, 0, 200, 200000, MS, 0, 2 * MS).received, 200 + ALB_PATH_AHEAD_MAX);
    free(paths);
}

static void heard__the_smallest_round_trip_ages(void **state)
{
    struct alb_paths_out *paths = paths_new(1, 0);
    alb_time now = MS;
    for (uint32_t count = 1; count <= 12000; count++, now += MS) {
        send(paths, 0, 1, now);
        hear(paths, 0, count, count, now, 0, now + (count < 10 ? 50 : 200) * US);
        if (count == 50)
            assert_in_range(paths->path[0].rtt_min_ns, 50 * US, 80 * US);
    }
    assert_in_range(paths->path[0].rtt_min_ns, 190 * US, 200 * US);
    free(paths);
}

static void heard__times_that_cannot_be(void **state)
{
    struct alb_paths_out *paths = paths_new(1, 0);
    alb_time now = 100 * MS;
    send(paths, 0, 10, now);
    assert_int_equal(hear(paths, 0, 1, 1, now + MS, 0, now).rtt_sample_ns, 0);          // from the future
    assert_int_equal(hear(paths, 0, 2, 2, now, 2 * MS, now + MS).rtt_sample_ns, 0);     // waited longer than it can
    assert_int_equal(hear(paths, 0, 3, 3, now, UINT32_MAX, now + MS).rtt_sample_ns, 0); // longer than can be said
    assert_int_equal(hear(paths, 0, 3, 3, now, 0, now + MS).rtt_sample_ns, 0);          // nothing came
    assert_int_equal(hear(paths, 0, 4, 4, now, 0, now + MS).rtt_sample_ns, MS);
    free(paths);
}

// Four paths in use, one round trip of 100 us each, and the last one dies.
static void find_silent__a_path_that_nothing_is_heard_of(void **state)
{
    struct alb_paths_out *paths = paths_new(4, 0);
    alb_time now = MS;
    uint32_t round, silent_at = 0;
    for (round = 1; round <= 40; round++, now += 100 * US) {
        for (uint16_t p = 0; p < 4; p++)
            send(paths, p, 5, now);
        bool is_dead = round > 20;
        for (uint8_t p = 0; p < 4 - is_dead; p++)
            hear(paths, p, round * 5, round * 5, now, 0, now + 99 * US);
        bool is_settled = judge(paths, now + 99 * US);
        assert_int_equal(is_settled, told.silences > 0 && told.path == 3 && paths->path[3].is_silent &&
                                         !alb_path_is_waiting(&paths->path[3]));
        if (is_settled)
            break;
    }
    silent_at = round - 20;
    assert_in_range(silent_at, 3, 5);
    assert_int_equal(told.path, 3);
    assert_int_equal(told.lost, 5 * silent_at);
    assert_true(alb_path_is_settled(paths, 3, 20 * 5));
    assert_int_equal(paths->path[3].recent_lost, 5 * silent_at);

    // What comes after all is a sign of life.
    struct alb_path_news news = hear(paths, 3, 20 * 5 + 3, 20 * 5 + 3, now - MS, 0, now + 99 * US);
    assert_true(news.is_new && !news.is_settled_newer);
    assert_int_equal(news.received, 3);
    assert_false(paths->path[3].is_silent);
    free(paths);
}

static void find_silent__the_last_packet_of_a_path(void **state)
{
    // A single packet, the last one of its path: what left on another path three round trips later brings it to light.
    struct alb_paths_out *paths = paths_new(2, 0);
    alb_time now = MS;
    for (uint32_t i = 1; i <= 30; i++, now += 100 * US)
        for (uint8_t p = 0; p < 2; p++) {
            send(paths, p, 1, now);
            hear(paths, p, i, i, now, 0, now + 50 * US);
        }
    send(paths, 0, 1, now);
    for (uint32_t i = 31; told.silences == 0; i++, now += 10 * US) {
        assert_true(i < 50);
        send(paths, 1, 1, now);
        hear(paths, 1, i, i, now, 0, now + 50 * US);
        judge(paths, now + 50 * US);
    }
    assert_int_equal(told.lost, 1);
    assert_true(alb_path_is_settled(paths, 0, 30));
    free(paths);
}

static void find_silent__a_path_that_is_not_measured(void **state)
{
    // Eight round trips of the slowest other path, and a little.
    struct alb_paths_out *paths = paths_new(3, 0);
    send(paths, 0, 1, MS);
    send(paths, 1, 1, MS);
    send(paths, 2, 1, MS);
    hear(paths, 1, 1, 1, MS, 0, MS + 50 * US);
    hear(paths, 2, 1, 1, MS, 0, MS + 100 * US);
    send(paths, 1, 1, MS + 815 * US);
    hear(paths, 1, 2, 2, MS + 815 * US, 0, MS + 865 * US);
    assert_false(judge(paths, MS + 865 * US));
    send(paths, 1, 1, MS + 825 * US);
    send(paths, 2, 1, MS + 825 * US);
    hear(paths, 1, 3, 3, MS + 825 * US, 0, MS + 875 * US);
    hear(paths, 2, 2, 2, MS, 775 * US, MS + 875 * US); // of one that left long before: what is newest stays
    assert_true(judge(paths, MS + 875 * US));
    assert_int_equal(told.silences, 1);
    assert_int_equal(told.path, 0);
    free(paths);
}

static void find_silent__what_came_behind_a_gap_is_not_lost(void **state)
{
    struct alb_paths_out *paths = paths_new(2, 0);
    send(paths, 0, 10, MS);
    hear(paths, 0, 3, 7, MS, 0, 2 * MS); // 3 is missing, 4 to 7 have come
    assert_true(alb_path_silent(paths, &ops, 0, 5 * MS));
    assert_int_equal(told.lost, 3);
    free(paths);
}

static void find_silent__all_silent_is_nobodys_fault(void **state)
{
    struct alb_paths_out *paths = paths_new(4, 0);
    for (uint16_t p = 0; p < 4; p++)
        send(paths, p, 5, MS);
    assert_false(judge(paths, MS + 100 * US));
    for (uint8_t p = 0; p < 4; p++)
        hear(paths, p, 5, 5, MS, 0, MS + 100 * US);
    for (uint16_t p = 0; p < 4; p++)
        send(paths, p, 5, 2 * MS);
    assert_false(judge(paths, 1000 * MS));
    free(paths);
}

static void find_silent__paths_of_unequal_delay(void **state)
{
    // Seven times as long, but never silent.
    struct alb_paths_out *paths = paths_new(2, 0);
    uint32_t came[2] = {0};
    for (alb_time now = 3 * MS; now < 100 * MS; now += 10 * US) {
        static const alb_time rtt[2] = {100 * US, 700 * US};
        for (uint8_t p = 0; p < 2; p++) {
            send(paths, p, 1, now);
            if (now - 3 * MS < rtt[p])
                continue;
            came[p]++;
            hear(paths, p, came[p], came[p], now - rtt[p], 0, now);
            assert_false(judge(paths, now));
        }
    }
    assert_int_equal(told.silences, 0);
    free(paths);
}

// All paths of a set and nothing else: 100 and 127 say nothing more, and neither do 10 and 63.
static struct alb_paths_out *paths_with_silent_ones(void)
{
    static const uint16_t silent[] = {10, 63, 100, 127};
    struct alb_paths_out *paths = paths_new(128, 0);
    for (uint8_t p = 0; p < 128; p++) {
        send(paths, p, 1, MS);
        hear(paths, p, 1, 1, MS, 0, MS + 50 * US);
    }
    for (uint32_t i = 0; i < ALB_COUNT(silent); i++)
        send(paths, silent[i], 1, 2 * MS);
    send(paths, 40, 1, 3 * MS);
    send(paths, 120, 1, 3 * MS);
    scope = (struct alb_path_scope){.past = ALB_PATHS_MAX};
    return paths;
}

static bool is_silent(const struct alb_paths_out *paths, uint32_t path)
{
    return paths->path[path].is_silent;
}

static void find_silent__only_paths_in_scope(void **state)
{
    struct alb_paths_out *paths = paths_with_silent_ones();
    scope.past = 64;
    hear(paths, 40, 2, 2, 3 * MS, 0, 3 * MS + 50 * US);
    assert_true(judge(paths, 3 * MS + 50 * US));
    assert_true(is_silent(paths, 10) && is_silent(paths, 63));
    assert_false(is_silent(paths, 100) || is_silent(paths, 127));
    scope = (struct alb_path_scope){.first = 64, .past = 127};
    hear(paths, 120, 2, 2, 3 * MS, 0, 3 * MS + 60 * US);
    assert_true(judge(paths, 3 * MS + 60 * US));
    assert_true(is_silent(paths, 100));
    assert_false(is_silent(paths, 127));
    free(paths);

    paths = paths_with_silent_ones();
    scope = (struct alb_path_scope){.first = 200, .past = 128};
    hear(paths, 40, 2, 2, 3 * MS, 0, 3 * MS + 50 * US);
    assert_false(judge(paths, 3 * MS + 50 * US));
    free(paths);
}

// A frame that was written before does not know what another one tells: its silence says nothing of that time.
static void find_silent__by_what_the_frame_itself_tells(void **state)
{
    struct alb_paths_out *paths = paths_with_silent_ones();
    hear(paths, 40, 2, 2, 3 * MS, 0, 3 * MS + 50 * US);
    scope = (struct alb_path_scope){.first = 64, .past = ALB_PATHS_MAX};
    assert_false(judge(paths, 3 * MS + 60 * US));
    hear(paths, 120, 1, 1, MS, 0, 3 * MS + 60 * US); // nothing new
    assert_false(judge(paths, 3 * MS + 60 * US));
    assert_false(is_silent(paths, 100));
    free(paths);
}

static void silent__settles_unless_it_is_the_only_path(void **state)
{
    struct alb_paths_out *paths = paths_new(1, 0);
    send(paths, 0, 3, MS);
    assert_false(alb_path_silent(paths, &ops, 0, 2 * MS));
    assert_false(alb_path_is_settled(paths, 0, 0));
    free(paths);
    paths = paths_new(2, 0);
    assert_false(alb_path_silent(paths, &ops, 0, 2 * MS));
    send(paths, 0, 3, MS);
    assert_true(alb_path_silent(paths, &ops, 0, 2 * MS));
    assert_true(alb_path_is_settled(paths, 0, 2));
    assert_int_equal(told.lost, 3);
    free(paths);
}

// Whatever the peer says: nothing is settled that has not left, and what is counted stays within bounds.
static void heard__anything(void **state)
{
    struct alb_prng prng;
    alb_prng_init(&prng, 5);
    for (int run = 0; run < 300; run++) {
        struct alb_paths_out *paths = paths_new(3, (alb_psn)alb_prng_below(&prng, 1 << 24));
        alb_time now = alb_prng_u64(&prng) >> 20;
        for (int i = 0; i < 300; i++) {
            uint8_t p = (uint8_t)alb_prng_below(&prng, 4);
            now += alb_prng_below(&prng, 100 * US);
            if (p < 3)
                send(paths, p, (uint32_t)alb_prng_below(&prng, 4), now);
            struct alb_path_out *out = &paths->path[p % 3];
            bool wild = alb_prng_below(&prng, 2);
            struct alb_csa_path_entry entry = {
                .path = p,
                .settled = alb_psn_add(out->settled, (int32_t)(alb_prng_u64(&prng) >> (wild ? 40 : 60))),
                .received = out->received_seen + (uint32_t)(alb_prng_u64(&prng) >> (wild ? 32 : 60)),
                .marked = (uint32_t)alb_prng_u64(&prng),
                .echo = (uint32_t)now - (uint32_t)(alb_prng_u64(&prng) >> (wild ? 32 : 48)),
                .delay_ns = (uint32_t)(alb_prng_u64(&prng) >> (wild ? 32 : 50)),
            };
            struct alb_path_news news = alb_path_heard(paths, &ops, &entry, now);
            alb_path_scope_heard(&scope, &entry, now);
            judge(paths, now);
            assert_in_range((out->next - out->settled) & ALB_PSN_MASK, 0, 1200);
            assert_true(out->recent_sent <= 512 && out->recent_lost <= out->recent_sent &&
                        out->recent_marked <= out->recent_sent && out->ahead <= ALB_PATH_AHEAD_MAX);
            assert_true(news.lost <= news.settled && news.marked <= news.received);
            assert_true(out->rtt_ns < 2000000000 && out->rtt_var_ns < 2000000000);
        }
        free(paths);
    }
}

static void path_out__is_small(void **state)
{
    assert_true(sizeof(struct alb_path_out) <= 48);
    assert_true(alb_paths_out_bytes(4) + 4 * sizeof(struct alb_path_in) <= 416);
}

// The policy is told, but what left by it may still come; other paths' news settles it, however little later that left.
static void unanswered__settles_nothing_before_another_path_is_heard(void **state)
{
    struct alb_paths_out *paths = paths_new(2, 0);
    alb_path_unanswered(paths, &ops, 0, MS);
    assert_int_equal(told.silences, 0);
    send(paths, 0, 3, MS);
    hear(paths, 0, 0, 1, MS, 0, 2 * MS); // one of them, behind a gap
    alb_path_unanswered(paths, &ops, 0, 3 * MS);
    assert_int_equal(told.silences, 1);
    assert_int_equal(told.lost, 2);
    assert_false(alb_path_is_settled(paths, 0, 0));
    assert_int_equal(paths->waiting, 1);
    send(paths, 1, 1, 2 * MS + 100 * US);
    hear(paths, 1, 1, 1, 2 * MS + 100 * US, 0, 3 * MS);
    assert_true(judge(paths, 3 * MS));
    assert_true(alb_path_is_settled(paths, 0, 2));
    assert_int_equal(told.lost, 2);
    free(paths);

    paths = paths_new(2, 0);
    send(paths, 0, 3, MS);
    alb_path_unanswered(paths, &ops, 0, 2 * MS);
    hear(paths, 0, 1, 1, MS, 0, 3 * MS); // the peer was halted
    assert_false(paths->path[0].is_silent);
    assert_false(alb_path_is_settled(paths, 0, 1));
    free(paths);

    paths = paths_new(1, 0);
    send(paths, 0, 3, MS);
    alb_path_unanswered(paths, &ops, 0, 2 * MS);
    assert_int_equal(told.silences, 0);
    free(paths);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sent__numbers_each_path),
        cmocka_unit_test(sent__numbers_that_come_round),
        cmocka_unit_test(waiting__counts_paths_that_have_something_under_way),
        cmocka_unit_test(choose__asks_the_policy_if_there_is_a_choice),
        cmocka_unit_test(heard__settles_and_counts_losses),
        cmocka_unit_test(heard__packets_behind_a_gap),
        cmocka_unit_test(heard__old_and_impossible_words),
        cmocka_unit_test(heard__counters_that_begin_anew),
        cmocka_unit_test(heard__marks),
        cmocka_unit_test(heard__round_trip_times),
        cmocka_unit_test(heard__the_smallest_round_trip),
        cmocka_unit_test(heard__many_samples_a_round_trip),
        cmocka_unit_test(heard__losses_and_marks_are_forgotten),
        cmocka_unit_test(heard__no_more_than_can_have_come),
        cmocka_unit_test(heard__the_smallest_round_trip_ages),
        cmocka_unit_test(heard__times_that_cannot_be),
        cmocka_unit_test(heard__anything),
        cmocka_unit_test(find_silent__a_path_that_nothing_is_heard_of),
        cmocka_unit_test(find_silent__the_last_packet_of_a_path),
        cmocka_unit_test(find_silent__a_path_that_is_not_measured),
        cmocka_unit_test(find_silent__what_came_behind_a_gap_is_not_lost),
        cmocka_unit_test(find_silent__all_silent_is_nobodys_fault),
        cmocka_unit_test(find_silent__paths_of_unequal_delay),
        cmocka_unit_test(find_silent__only_paths_in_scope),
        cmocka_unit_test(find_silent__by_what_the_frame_itself_tells),
        cmocka_unit_test(silent__settles_unless_it_is_the_only_path),
        cmocka_unit_test(unanswered__settles_nothing_before_another_path_is_heard),
        cmocka_unit_test(path_out__is_small),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
