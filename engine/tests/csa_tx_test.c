// SPDX-License-Identifier: BSD-2-Clause
// What leaves, in which packets, and in which order.
#include "engine/tests/csa_pair.h"

#include <stdlib.h>

// A further connection beside the first.
static void connect(struct csa_pair *c, struct alb_qp *qps[2], void (*change)(struct alb_qp_attr *attr, int side))
{
    pair_connect(c->pair, ALB_QPT_RC, qps, change);
    pair_settle(c->pair);
}

static void ask(struct csa_pair *c, struct alb_qp *qp, uint32_t length)
{
    assert_int_equal(pair_ask(c->pair, qp, ALB_WR_RDMA_WRITE, 1, ALB_SEND_SIGNALED, 0, length), 0);
}

static uint64_t counted(const struct alb_qp *qp, enum alb_stat stat)
{
    return qp->stats->stats.counter[stat];
}

static void lose_all(struct csa_pair *c, int side)
{
    while (pair_count(c->pair, side))
        pair_lose(c->pair, side);
}

// ---- gathering ------------------------------------------------------------------------------------------------------

static void gather__small_requests_share_a_packet(void **state)
{
    struct csa_pair *c = *state;
    struct csa_seen seen;
    for (uint32_t i = 0; i < 10; i++)
        csa_pair_ask(c, ALB_WR_RDMA_WRITE, i, ALB_SEND_SIGNALED, 8);
    assert_int_equal(pair_send(c->pair, 0), 1);
    csa_pair_look(c, 0, 0, &seen);
    assert_int_equal(seen.count, 10);
    for (uint32_t i = 0; i < 10; i++)
        assert_int_equal(seen.frames[i].segment.psn, alb_psn_add(csa_pair_psn(0), 1 + (int32_t)i));
    pair_settle(c->pair);
    for (uint32_t i = 0; i < 10; i++)
        csa_pair_expect(c, 0, i, ALB_WC_SUCCESS);
}

static void gather__requests_of_several_queue_pairs(void **state)
{
    struct csa_pair *c = *state;
    struct csa_seen seen;
    struct alb_qp *others[2];
    uint64_t greeting = counted(c->qps[0], ALB_STAT_sent_bytes);
    connect(c, others, NULL);
    ask(c, c->qps[0], 8);
    ask(c, others[0], 8);
    assert_int_equal(pair_send(c->pair, 0), 1);
    csa_pair_look(c, 0, 0, &seen);
    assert_int_equal(seen.count, 2);
    assert_int_equal(seen.frames[0].segment.dest_qpn, alb_qp_number(c->qps[1]));
    assert_int_equal(seen.frames[1].segment.dest_qpn, alb_qp_number(others[1]));
    assert_int_equal(counted(c->qps[0], ALB_STAT_sent_bytes), 8 + greeting);
    assert_int_equal(counted(others[0], ALB_STAT_sent_bytes), 8);
    assert_int_equal(counted(others[1], ALB_STAT_rcvd_bytes), 0);
    pair_settle(c->pair);
    assert_int_equal(counted(others[1], ALB_STAT_rcvd_bytes), 8);
}

static void gather__lengths_that_are_no_multiple_of_four(void **state)
{
    struct csa_pair *c = *state;
    struct csa_seen seen;
    static const uint32_t lengths[] = {1, 2, 3, 5, 7, 0, 13};
    for (uint32_t i = 0; i < ALB_COUNT(lengths); i++)
        csa_pair_ask(c, ALB_WR_RDMA_WRITE, i, ALB_SEND_SIGNALED, lengths[i]);
    assert_int_equal(pair_send(c->pair, 0), 1);
    csa_pair_look(c, 0, 0, &seen);
    assert_int_equal(seen.count, ALB_COUNT(lengths));
    for (uint32_t i = 0; i < ALB_COUNT(lengths); i++) {
        assert_int_equal(seen.frames[i].segment.payload_bytes, lengths[i]);
        assert_memory_equal(seen.frames[i].segment.payload, c->pair->hosts[0].memory, lengths[i]);
    }
    assert_int_equal(pair_peek(c->pair, 0, 0)->datagram.length % 4, 0);
    pair_settle(c->pair);
    assert_memory_equal(c->pair->hosts[1].memory, c->pair->hosts[0].memory, 13);
}

static void gather__no_packet_is_longer_than_the_path_carries(void **state)
{
    struct csa_pair *c = *state;
    for (uint32_t i = 0; i < 16; i++)
        csa_pair_ask(c, i % 3 ? ALB_WR_RDMA_WRITE : ALB_WR_RDMA_READ, i, ALB_SEND_SIGNALED, 100 + 211 * i);
    for (uint32_t round = 0; round < 20; round++) {
        for (int side = 0; side < 2; side++) {
            pair_send(c->pair, side);
            for (uint32_t i = 0; i < pair_count(c->pair, side); i++)
                assert_true(pair_peek(c->pair, side, i)->datagram.length + ALB_ICRC_BYTES <=
                            c->csa[side]->assoc->payload_max);
            pair_deliver_all(c->pair, side);
        }
    }
    for (uint32_t i = 0; i < 16; i++)
        csa_pair_expect(c, 0, i, ALB_WC_SUCCESS);
}

// Two of 480 bytes fill a packet nearly, and what follows in the same burst may be no longer: two again.
static void gather__as_many_in_each_packet_of_a_burst(void **state)
{
    struct csa_pair *c = *state;
    struct csa_seen seen;
    for (uint32_t i = 0; i < 8; i++)
        csa_pair_ask(c, ALB_WR_RDMA_WRITE, i, ALB_SEND_SIGNALED, 480);
    assert_int_equal(pair_send(c->pair, 0), 4);
    for (uint32_t i = 0; i < 4; i++) {
        csa_pair_look(c, 0, i, &seen);
        assert_int_equal(seen.count, 2);
    }
    assert_int_equal(c->pair->hosts[0].bursts[0].segment_count, 4);
}

static void set_class(struct alb_qp_attr *attr, int side)
{
    attr->av.traffic_class = 0x48;
    attr->av.hop_limit = 3;
}

// A packet has one traffic class and hop limit.
static void gather__not_across_traffic_classes(void **state)
{
    struct csa_pair *c = *state;
    struct alb_qp *others[2];
    connect(c, others, set_class);
    ask(c, c->qps[0], 8);
    ask(c, others[0], 8);
    ask(c, c->qps[0], 8);
    assert_int_equal(pair_send(c->pair, 0), 2);
    uint32_t with_class = pair_peek(c->pair, 0, 0)->datagram.traffic_class >> 2 == 0x12 ? 0 : 1;
    assert_int_equal(pair_peek(c->pair, 0, with_class)->datagram.traffic_class, 0x48 | ALB_ECN_ECT0);
    assert_int_equal(pair_peek(c->pair, 0, with_class)->datagram.hop_limit, 3);
    assert_int_equal(pair_peek(c->pair, 0, !with_class)->datagram.traffic_class, ALB_ECN_ECT0);
    assert_int_equal(pair_peek(c->pair, 0, !with_class)->datagram.hop_limit, 64);
}

// ---- what is said about the other direction -------------------------------------------------------------------------

// Paths stand before the reports that are judged by them; one report tells all that was asked for.
static void control__goes_with_data(void **state)
{
    struct csa_pair *c = *state;
    struct csa_seen seen;
    for (uint32_t i = 0; i < 3; i++)
        csa_pair_ask(c, ALB_WR_RDMA_WRITE, i, ALB_SEND_SIGNALED, 8);
    assert_int_equal(pair_ask(c->pair, c->qps[1], ALB_WR_RDMA_WRITE, 9, ALB_SEND_SIGNALED, 4096, 8), 0);
    pair_send(c->pair, 0);
    pair_deliver_all(c->pair, 0);
    assert_int_equal(pair_send(c->pair, 1), 1);
    csa_pair_look(c, 1, 0, &seen);
    assert_int_equal(seen.count, 3);
    assert_int_equal(seen.frames[0].type, ALB_CSA_REQUEST);
    assert_int_equal(seen.frames[1].type, ALB_CSA_PATHS);
    assert_int_equal(seen.frames[2].type, ALB_CSA_REPORT);
    assert_int_equal(seen.frames[2].report.cumulative, alb_psn_add(csa_pair_psn(0), 4));
}

// ---- a batch that is too small --------------------------------------------------------------------------------------

// Whatever runs out first, all of it leaves in the end, in whole packets.
static void batch__full_in_every_place(void **state)
{
    for (uint32_t bytes = 640; bytes < 1600; bytes += 24)
        for (uint32_t iovs = 12; iovs < 40; iovs += 9) {
            struct csa_pair *c = csa_pair_new(NULL, NULL);
            csa_pair_greet(c);
            for (int side = 0; side < 2; side++) {
                c->pair->hosts[side].tx.bytes_capacity = bytes;
                c->pair->hosts[side].tx.iov_capacity = iovs;
                c->pair->hosts[side].tx.segment_capacity = 1 + bytes / 24 % 3;
            }
            for (uint32_t i = 0; i < 12; i++)
                csa_pair_ask(c, i % 4 == 3 ? ALB_WR_RDMA_READ : ALB_WR_RDMA_WRITE, i, ALB_SEND_SIGNALED,
                             1 + i * 37 % 300 + (i % 5 == 0 ? 1500 : 0));
            pair_settle(c->pair);
            pair_pass(c->pair, 2 * ALB_NS_PER_MS);
            pair_settle(c->pair);
            for (uint32_t i = 0; i < 12; i++)
                csa_pair_expect(c, 0, i, ALB_WC_SUCCESS);
            assert_int_equal(csa_pair_live(c, 0)->inflight_bytes, 0);
            assert_int_equal(alb_path_load(csa_pair_live(c, 0)->paths, 0)->inflight_bytes, 0);
            assert_int_equal(csa_pair_stat(c, 0, ALB_STAT_retransmitted_pkts), 0);
            csa_pair_free(c);
        }
}

static void use_go_back_n(struct alb_engine_config *config)
{
    config->loss = "go-back-n";
}

// What a report has to say is not forgotten when the batch has no room for it.
static void batch__full_for_a_report(void **state)
{
    struct csa_pair *c = csa_pair_new(use_go_back_n, NULL);
    struct alb_csa_frame frame;
    csa_pair_greet(c);
    struct alb_csa_segment segment = csa_pair_write(c, 0, 2, 0, 8, 8, ALB_CSA_LAST);
    csa_pair_arrive_segment(c, 0, &segment, 1);
    uint16_t number = c->csa[1]->in_requests.report_number;
    struct alb_tx *tx = &c->pair->hosts[1].tx;
    uint32_t bytes = tx->bytes_capacity;
    tx->bytes_capacity = ALB_ROCE_HEADER_MAX + 8 + 20; // for the PATHS, or less
    for (uint32_t i = 0; i < 5; i++)
        alb_engine_tx(c->engines[1], tx, c->pair->now);
    tx->bytes_capacity = bytes;
    pair_send(c->pair, 1);
    assert_int_equal(csa_pair_count(c, 1, ALB_CSA_REPORT, &frame), 1);
    assert_int_equal(frame.report.number, (uint8_t)(number + 1));
    assert_int_equal(frame.report.syndrome, ALB_AETH_SYNDROME_NAK(ALB_NAK_PSN_SEQUENCE_ERROR));
    assert_int_equal(csa_pair_count(c, 1, ALB_CSA_PATHS, &frame), 1);
    assert_int_equal(frame.paths.count, 1); // and so are the news of paths
    csa_pair_free(c);
}

// ---- news of many paths ---------------------------------------------------------------------------------------------

// Side 0 has sent something new by each of so many paths, and asks what has come.
static void come_by(struct csa_pair *c, uint32_t paths, int32_t round)
{
    static const uint8_t ping[4] = {ALB_CSA_PING};
    struct csa_made made;
    for (uint32_t p = 0; p < paths; p++) {
        csa_pair_make(c, 0, &made);
        made.header.path = (uint8_t)p;
        made.header.sequence = alb_psn_add(made.header.sequence, round);
        csa_pair_add_bytes(&made, ping, sizeof(ping));
        csa_pair_arrive(c, 0, &made);
    }
}

// The frames on the wire of side 1, of which each tells of the paths from the end of the one before on; returns how
// many they are.
static uint32_t check_parts(const struct csa_pair *c, uint32_t paths)
{
    uint32_t frames = csa_pair_count(c, 1, ALB_CSA_PATHS, NULL), next = 0;
    for (uint32_t i = 0; i < frames; i++) {
        struct alb_csa_frame frame;
        csa_pair_frame(c, 1, ALB_CSA_PATHS, i, &frame);
        assert_int_equal(frame.paths.first, next);
        assert_int_equal(frame.paths.has_more, i + 1 < frames);
        for (uint32_t e = 0; e < frame.paths.count; e++)
            assert_int_equal(frame.paths.entries[e].path, next++);
    }
    assert_int_equal(next, paths);
    return frames;
}

static void paths__as_many_frames_as_news_need(void **state)
{
    struct csa_pair *c = *state;
    uint32_t payload_max = c->csa[1]->assoc->payload_max;
    uint32_t most = (payload_max - ALB_CSA_OUTER_BYTES - ALB_ICRC_BYTES - 8) / 20;
    assert_in_range(most, 10, ALB_CSA_PATHS_ENTRIES - 1);
    int32_t round = 0;
    for (uint32_t paths = most - 1; paths <= ALB_PATHS_MAX; paths += paths <= most ? 1 : 27) {
        come_by(c, paths, round++);
        pair_send(c->pair, 1);
        assert_int_equal(check_parts(c, paths), (paths + most - 1) / most);
        for (uint32_t i = 0; i < pair_count(c->pair, 1); i++)
            assert_true(pair_peek(c->pair, 1, i)->datagram.length + ALB_ICRC_BYTES <= payload_max);
        lose_all(c, 1);
    }
}

// A report of a whole message; but not if it answers a probe, for then the one before may have been lost on its way.
static void paths__one_is_chosen_for_what_is_awaited(void **state)
{
    struct csa_pair *c = *state;
    const struct alb_paths_out *paths = csa_pair_live(c, 1)->paths;
    for (int32_t half = 0; half < 2; half++) {
        struct alb_csa_segment segment =
            csa_pair_write(c, 0, 1 + half, (uint32_t)half, 2 * CSA_PAIR_SEGMENT, CSA_PAIR_SEGMENT,
                           half ? ALB_CSA_LAST | ALB_CSA_REPORT_NOW : ALB_CSA_REPORT_NOW);
        csa_pair_arrive_segment(c, 0, &segment, 1);
        pair_send(c->pair, 1);
        assert_int_equal(csa_pair_count(c, 1, ALB_CSA_REPORT, NULL), 1);
        assert_int_equal(paths->is_awaited, half);
        lose_all(c, 1);
    }
    struct csa_made made;
    const struct alb_csa_probe probe = {.dest_qpn = alb_qp_number(c->qps[1]), .next = alb_psn_add(csa_pair_psn(0), 3)};
    csa_pair_make(c, 0, &made);
    csa_pair_add_probe(&made, &probe);
    csa_pair_arrive(c, 0, &made);
    pair_send(c->pair, 1);
    assert_int_equal(csa_pair_count(c, 1, ALB_CSA_REPORT, NULL), 1);
    assert_false(paths->is_awaited);
    lose_all(c, 1);
}

// Whoever only answers learns of its own paths from the sender of data.
static void paths__go_with_data_now_and_then(void **state)
{
    struct csa_pair *c = *state;
    uint32_t frames = 0;
    for (uint32_t i = 0; i < 1000; i++) {
        csa_pair_ask(c, ALB_WR_RDMA_WRITE, i, ALB_SEND_SIGNALED, 8);
        pair_send(c->pair, 0);
        frames += csa_pair_count(c, 0, ALB_CSA_PATHS, NULL);
        pair_settle(c->pair);
        csa_pair_expect(c, 0, i, ALB_WC_SUCCESS);
        pair_pass(c->pair, ALB_NS_PER_MS / 10);
    }
    assert_in_range(frames, 9, 11); // of 100 ms
    const struct alb_path_out *out = &csa_pair_live(c, 1)->paths->path[0];
    assert_true(alb_psn_diff(out->next, out->settled) <= 101);
}

static void use_long_packets(struct alb_engine_config *config)
{
    config->csa_payload_bytes = 8192;
}

static void paths__no_frame_has_more_entries_than_there_are(void **state)
{
    struct csa_pair *c = csa_pair_new(use_long_packets, NULL);
    csa_pair_greet(c);
    c->csa[1]->assoc->payload_max = 8192;
    come_by(c, ALB_CSA_PATHS_ENTRIES, 0);
    pair_send(c->pair, 1);
    assert_int_equal(check_parts(c, ALB_CSA_PATHS_ENTRIES), 1);
    lose_all(c, 1);
    come_by(c, ALB_CSA_PATHS_ENTRIES + 1, 1);
    pair_send(c->pair, 1);
    assert_int_equal(check_parts(c, ALB_CSA_PATHS_ENTRIES + 1), 2);
    lose_all(c, 1);
    csa_pair_free(c);
}

// ---- a window that many share ---------------------------------------------------------------------------------------

static void use_a_small_window(struct alb_engine_config *config)
{
    config->window_start_bytes = config->window_min_bytes = config->window_max_bytes = CSA_PAIR_CHARGE;
}

static uint32_t turns_of(const struct csa_pair *c, struct alb_qp *qp)
{
    return (uint32_t)alb_psn_diff(alb_csa_of(qp)->requests.next, csa_pair_psn(0));
}

// Each time there is room for one segment, another queue pair gets it.
static void window__is_shared_fairly(void **state)
{
    struct csa_pair *c = csa_pair_new(use_a_small_window, NULL);
    struct alb_qp *qps[3][2] = {{c->qps[0], c->qps[1]}};
    csa_pair_greet(c);
    connect(c, qps[1], NULL);
    connect(c, qps[2], NULL);
    uint32_t before[3];
    for (uint32_t i = 0; i < 3; i++) {
        before[i] = turns_of(c, qps[i][0]);
        ask(c, qps[i][0], 20 * CSA_PAIR_SEGMENT);
    }
    for (uint32_t i = 0; i < 30; i++) {
        assert_int_equal(pair_send(c->pair, 0), 1);
        pair_deliver_all(c->pair, 0);
        pair_send(c->pair, 1);
        pair_deliver_all(c->pair, 1);
    }
    for (uint32_t i = 0; i < 3; i++) {
        uint32_t turns = turns_of(c, qps[i][0]) - before[i];
        assert_in_range(turns, 9, 11);
    }
    pair_settle(c->pair);
    for (uint32_t i = 0; i < 3; i++)
        csa_pair_expect(c, 0, 1, ALB_WC_SUCCESS);
    assert_true(csa_pair_stat(c, 0, ALB_STAT_window_stalls) > 0);
    csa_pair_free(c);
}

// Full packets are given out in turn as well: without bursts one by one, with them in runs (csa_run_out_test.c).
static void packets__go_round(void **state)
{
    struct csa_pair *c = *state;
    struct csa_seen seen;
    struct alb_qp *others[2];
    connect(c, others, NULL);
    c->pair->hosts[0].tx.burst_segments_max = 1;
    ask(c, c->qps[0], 4 * CSA_PAIR_SEGMENT);
    ask(c, others[0], 4 * CSA_PAIR_SEGMENT);
    assert_int_equal(pair_send(c->pair, 0), 8);
    for (uint32_t i = 0; i < 8; i++) {
        csa_pair_look(c, 0, i, &seen);
        assert_int_equal(seen.frames[0].segment.dest_qpn, alb_qp_number(i % 2 ? others[1] : c->qps[1]));
    }
    lose_all(c, 0);
}

// ---- bursts ---------------------------------------------------------------------------------------------------------

static void prefer_short(struct alb_engine_config *config)
{
    config->credit = "shortest";
    config->credit_aging_bytes_per_s = ALB_NS_PER_S;
}

// The message that a burst begins with ends in it, and then another queue pair's is due before its sender's next one.
static void burst__goes_on_with_what_is_due_first_then(void **state)
{
    enum { QPS = 3, FIRST = 2 * CSA_PAIR_SEGMENT };
    static const uint32_t bytes[QPS] = {60 * 1024, 50 * 1024, 20 * 1024};
    struct csa_pair *c = csa_pair_new(prefer_short, NULL);
    struct alb_qp *qps[QPS][2];
    struct csa_seen seen;
    csa_pair_greet(c);
    c->engines[0]->config.window_start_bytes = CSA_PAIR_SEGMENT; // what is longer is not short
    for (uint32_t i = 0; i < QPS; i++)
        pair_connect(c->pair, ALB_QPT_RC, qps[i], NULL);
    ask(c, qps[0][0], FIRST);
    for (uint32_t i = 0; i < QPS; i++)
        ask(c, qps[i][0], bytes[i]);
    assert_true(pair_send(c->pair, 0) > 3);
    for (uint32_t i = 0; i < 3; i++) {
        csa_pair_look(c, 0, i, &seen);
        assert_int_equal(seen.frames[0].segment.dest_qpn, alb_qp_number(qps[i < 2 ? 0 : QPS - 1][1]));
    }
    lose_all(c, 0);
    csa_pair_free(c);
}

static void use_two_paths(struct alb_engine_config *config)
{
    config->path = "spray";
    config->path_max = 2;
    config->window_start_bytes = config->window_max_bytes = 1 << 20;
}

// What a path is chosen for is a whole burst: it ends before one of the rest would begin.
static void burst__a_path_gets_a_whole_one(void **state)
{
    enum { BURST = 5, PACKET_MAX = CSA_PAIR_SEGMENT + 128 };
    struct csa_pair *c = csa_pair_new(use_two_paths, NULL);
    struct csa_seen seen;
    csa_pair_greet(c);
    c->pair->hosts[0].tx.burst_bytes_max = BURST * PACKET_MAX;
    ask(c, c->qps[0], 4 * BURST * CSA_PAIR_SEGMENT);
    assert_int_equal(pair_send(c->pair, 0), 4 * BURST);
    csa_pair_look(c, 0, 0, &seen);
    uint8_t first = seen.header.path;
    for (uint32_t i = 0; i < 4 * BURST; i++) {
        csa_pair_look(c, 0, i, &seen);
        assert_int_equal(seen.header.path, i / BURST % 2 ? 1 - first : first);
    }
    lose_all(c, 0);
    csa_pair_free(c);
}

static void use_two_paths_in_bursts(struct alb_engine_config *config)
{
    use_two_paths(config);
    config->sends_bursts = true;
}

// Side 1 owes a report when it answers with a message of so many segments, in bursts of five: in which of the packets
// the report leaves.
static uint32_t report_beside(struct csa_pair *c, uint32_t segments, uint32_t messages)
{
    struct csa_seen seen;
    csa_pair_greet(c);
    csa_pair_ask(c, ALB_WR_RDMA_WRITE, 0, ALB_SEND_SIGNALED, 8);
    pair_send(c->pair, 0);
    pair_deliver_all(c->pair, 0);
    c->pair->hosts[1].tx.burst_segments_max = 5;
    for (uint32_t i = 0; i < messages; i++)
        ask(c, c->qps[1], segments * CSA_PAIR_SEGMENT);
    uint32_t count = pair_send(c->pair, 1), found = UINT32_MAX;
    for (uint32_t i = 0; i < count; i++) {
        csa_pair_look(c, 1, i, &seen);
        if (found == UINT32_MAX && seen.frames[seen.count - 1].type == ALB_CSA_REPORT)
            found = i;
    }
    pair_settle(c->pair);
    csa_pair_expect(c, 0, 0, ALB_WC_SUCCESS);
    csa_pair_free(c);
    return found;
}

static void news__wait_for_the_end_of_a_short_message(void **state)
{
    enum { LONG = 100 };
    assert_in_range(report_beside(csa_pair_new(use_two_paths_in_bursts, NULL), 12, 1), 11, 12);
    assert_in_range(report_beside(csa_pair_new(use_two_paths_in_bursts, NULL), 12, 3), 4, 6); // others are behind it
    assert_in_range(report_beside(csa_pair_new(use_two_paths_in_bursts, NULL), LONG, 1), 4, 6);
    assert_in_range(report_beside(csa_pair_new(use_two_paths, NULL), 12, 1), 4, 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CSA_GREETED_TEST(gather__small_requests_share_a_packet),
        CSA_GREETED_TEST(gather__requests_of_several_queue_pairs),
        CSA_GREETED_TEST(gather__lengths_that_are_no_multiple_of_four),
        CSA_GREETED_TEST(gather__no_packet_is_longer_than_the_path_carries),
        CSA_GREETED_TEST(gather__as_many_in_each_packet_of_a_burst),
        CSA_GREETED_TEST(gather__not_across_traffic_classes),
        CSA_GREETED_TEST(control__goes_with_data),
        cmocka_unit_test(batch__full_in_every_place),
        cmocka_unit_test(batch__full_for_a_report),
        cmocka_unit_test(window__is_shared_fairly),
        CSA_GREETED_TEST(packets__go_round),
        CSA_GREETED_TEST(paths__as_many_frames_as_news_need),
        CSA_GREETED_TEST(paths__go_with_data_now_and_then),
        CSA_GREETED_TEST(paths__one_is_chosen_for_what_is_awaited),
        cmocka_unit_test(paths__no_frame_has_more_entries_than_there_are),
        cmocka_unit_test(burst__a_path_gets_a_whole_one),
        cmocka_unit_test(burst__goes_on_with_what_is_due_first_then),
        cmocka_unit_test(news__wait_for_the_end_of_a_short_message),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
