// SPDX-License-Identifier: BSD-2-Clause
// The frames that carry no message, there and back, and hostile counts.
#include "wire/tests/csa_packet.h"

static void csa_report__comes_back_with_any_number_of_words(void **state)
{
    for (uint32_t words = 0; words <= ALB_CSA_BITMAP_WORDS; words++) {
        struct packet *p = begin();
        struct alb_csa_report in = draw_report(words);
        uint32_t bytes = alb_csa_encode_report(&in, place(p));
        assert_int_equal(bytes, alb_csa_report_bytes(words));
        p->length += bytes;
        struct alb_csa_cursor cursor = finish(p);
        struct alb_csa_frame frame = next(&cursor);
        assert_int_equal(frame.type, ALB_CSA_REPORT);
        assert_int_equal(frame.report.is_response, in.is_response);
        assert_int_equal(frame.report.is_overdue, in.is_overdue);
        assert_int_equal(frame.report.is_full, in.is_full);
        assert_int_equal(frame.report.number, in.number);
        assert_int_equal(frame.report.syndrome, in.syndrome);
        assert_int_equal(frame.report.qpn, in.qpn);
        assert_int_equal(frame.report.cumulative, in.cumulative);
        assert_int_equal(frame.report.page, in.page);
        assert_int_equal(frame.report.word_count, words);
        assert_memory_equal(frame.report.held, in.held, 8 * words);
        assert_end(&cursor);
    }
}

static void csa_report__refuses_more_words_than_there_are(void **state)
{
    for (unsigned words = 0; words < 256; words++) {
        struct packet *p = begin();
        struct alb_csa_report report = draw_report(2);
        p->length += alb_csa_encode_report(&report, place(p));
        p->bytes[ALB_CSA_OUTER_BYTES + 2] = (uint8_t)words;
        struct alb_csa_cursor cursor = finish(p);
        struct alb_csa_frame frame;
        enum alb_drop drop;
        assert_int_equal(alb_csa_next(&cursor, &frame, &drop), words <= 2);
        assert_int_equal(drop, words <= 2                      ? ALB_DROP_NONE
                               : words <= ALB_CSA_BITMAP_WORDS ? ALB_DROP_TRUNCATED
                                                               : ALB_DROP_BAD_LENGTH);
    }
}

static void csa_holds__comes_back_with_any_number_of_words(void **state)
{
    for (uint32_t words = 0; words <= ALB_CSA_BITMAP_WORDS; words++) {
        struct packet *p = begin();
        struct alb_csa_holds in = {
            .is_question = draw() & 1,
            .is_complete = draw() & 1,
            .dest_qpn = draw() & ALB_QPN_MASK,
            .message = (uint32_t)draw(),
            .first = (uint32_t)draw(),
            .word_count = words,
        };
        for (uint32_t i = 0; i < words; i++)
            in.held[i] = draw();
        uint32_t bytes = alb_csa_encode_holds(&in, place(p));
        assert_int_equal(bytes, alb_csa_holds_bytes(words));
        p->length += bytes;
        p->bytes[ALB_CSA_OUTER_BYTES + 1] |= 0xfc; // reserved
        p->bytes[ALB_CSA_OUTER_BYTES + 3] = p->bytes[ALB_CSA_OUTER_BYTES + 7] = 0xff;
        struct alb_csa_cursor cursor = finish(p);
        struct alb_csa_frame frame = next(&cursor);
        assert_int_equal(frame.type, ALB_CSA_HOLDS);
        assert_int_equal(frame.holds.is_question, in.is_question);
        assert_int_equal(frame.holds.is_complete, in.is_complete);
        assert_int_equal(frame.holds.dest_qpn, in.dest_qpn);
        assert_int_equal(frame.holds.message, in.message);
        assert_int_equal(frame.holds.first, in.first);
        assert_int_equal(frame.holds.word_count, words);
        assert_memory_equal(frame.holds.held, in.held, 8 * words);
        assert_end(&cursor);
    }
}

static void csa_holds__refuses_more_words_than_there_are(void **state)
{
    for (unsigned words = 0; words < 256; words++) {
        struct packet *p = begin();
        const struct alb_csa_holds holds = {.word_count = 2};
        p->length += alb_csa_encode_holds(&holds, place(p));
        p->bytes[ALB_CSA_OUTER_BYTES + 2] = (uint8_t)words;
        assert_int_equal(reason(p), words < 2                       ? ALB_DROP_UNKNOWN_OPCODE // of what is left of it
                                    : words == 2                    ? ALB_DROP_NONE
                                    : words <= ALB_CSA_BITMAP_WORDS ? ALB_DROP_TRUNCATED
                                                                    : ALB_DROP_BAD_LENGTH);
    }
}

static void csa_paths__comes_back_with_any_number_of_entries(void **state)
{
    for (uint32_t count = 0; count <= ALB_CSA_PATHS_ENTRIES; count++) {
        struct packet *p = begin();
        struct alb_csa_paths in = draw_paths(count);
        in.first = (uint8_t)draw();
        in.has_more = count > 0 && (draw() & 1);
        uint32_t bytes = alb_csa_encode_paths(&in, place(p));
        assert_int_equal(bytes, alb_csa_paths_bytes(count));
        p->length += bytes;
        struct alb_csa_cursor cursor = finish(p);
        struct alb_csa_frame frame = next(&cursor);
        assert_int_equal(frame.type, ALB_CSA_PATHS);
        assert_int_equal(frame.paths.credit_bytes, in.credit_bytes);
        assert_int_equal(frame.paths.share, in.share);
        assert_int_equal(frame.paths.first, in.first);
        assert_int_equal(frame.paths.has_more, in.has_more);
        assert_int_equal(frame.paths.count, count);
        for (uint32_t i = 0; i < count; i++) {
            const struct alb_csa_path_entry *a = &in.entries[i], *b = &frame.paths.entries[i];
            assert_int_equal(a->path, b->path);
            assert_int_equal(a->settled, b->settled);
            assert_int_equal(a->echo, b->echo);
            assert_int_equal(a->delay_ns, b->delay_ns);
            assert_int_equal(a->received, b->received);
            assert_int_equal(a->marked, b->marked);
        }
        assert_end(&cursor);
    }
}

static void csa_paths__refuses_more_entries_than_there_are(void **state)
{
    for (unsigned count = 0; count < 256; count++) {
        struct packet *p = begin();
        struct alb_csa_paths paths = draw_paths(3);
        p->length += alb_csa_encode_paths(&paths, place(p));
        p->bytes[ALB_CSA_OUTER_BYTES + 1] = (uint8_t)count;
        struct alb_csa_cursor cursor = finish(p);
        struct alb_csa_frame frame;
        enum alb_drop drop;
        unsigned entries = count & ~(unsigned)ALB_CSA_PATHS_MORE;
        bool is_bad = entries > ALB_CSA_PATHS_ENTRIES || count == ALB_CSA_PATHS_MORE; // more behind none
        assert_int_equal(alb_csa_next(&cursor, &frame, &drop), entries <= 3 && !is_bad);
        assert_int_equal(drop, is_bad ? ALB_DROP_BAD_LENGTH : entries <= 3 ? ALB_DROP_NONE : ALB_DROP_TRUNCATED);
    }
}

static void csa_frames__small_ones_come_back(void **state)
{
    static const uint8_t cookie[ALB_CSA_COOKIE_BYTES] = "0123456789abcde";
    struct alb_csa_probe probe = {.is_response = true, .dest_qpn = 0xa1b2c3, .next = 0xd4e5f6};
    struct alb_csa_trimmed trimmed = {
        .is_response = true, .dest_qpn = 0xc1b2a3, .psn = 0x123456, .path = 63, .sequence = 0xfedcba};
    struct packet *p = begin();
    p->length += alb_csa_encode_probe(&probe, place(p));
    p->length += alb_csa_encode_trimmed(&trimmed, place(p));
    p->length += alb_csa_encode_ping(7, place(p)) + 7;
    p->length += alb_csa_encode_pong(65507, place(p));
    p->length += alb_csa_encode_reset(ALB_CSA_RESET_UNKNOWN, 0x01020304, place(p));
    uint32_t without = alb_csa_encode_hello(NULL, place(p));
    p->length += without;
    p->length += alb_csa_encode_hello(cookie, place(p));
    uint32_t answer = alb_csa_encode_cookie(cookie, place(p));
    p->length += answer;
    p->length += alb_csa_encode_cnp(place(p));
    assert_true(answer <= without);

    struct alb_csa_cursor cursor = finish(p);
    struct alb_csa_frame frame = next(&cursor);
    assert_int_equal(frame.type, ALB_CSA_PROBE);
    assert_int_equal(frame.probe.is_response, true);
    assert_int_equal(frame.probe.dest_qpn, 0xa1b2c3);
    assert_int_equal(frame.probe.next, 0xd4e5f6);
    frame = next(&cursor);
    assert_int_equal(frame.type, ALB_CSA_TRIMMED);
    assert_int_equal(frame.trimmed.is_response, true);
    assert_int_equal(frame.trimmed.dest_qpn, 0xc1b2a3);
    assert_int_equal(frame.trimmed.psn, 0x123456);
    assert_int_equal(frame.trimmed.path, 63);
    assert_int_equal(frame.trimmed.sequence, 0xfedcba);
    frame = next(&cursor);
    assert_int_equal(frame.type, ALB_CSA_PING);
    assert_int_equal(frame.ping_padding, 7);
    frame = next(&cursor);
    assert_int_equal(frame.type, ALB_CSA_PONG);
    assert_int_equal(frame.pong_bytes, 65507);
    frame = next(&cursor);
    assert_int_equal(frame.type, ALB_CSA_RESET);
    assert_int_equal(frame.reset.reason, ALB_CSA_RESET_UNKNOWN);
    assert_int_equal(frame.reset.epoch, 0x01020304);
    frame = next(&cursor);
    assert_int_equal(frame.type, ALB_CSA_HELLO);
    assert_false(frame.hello.has_cookie);
    frame = next(&cursor);
    assert_int_equal(frame.type, ALB_CSA_HELLO);
    assert_true(frame.hello.has_cookie);
    assert_memory_equal(frame.hello.cookie, cookie, sizeof(cookie));
    frame = next(&cursor);
    assert_int_equal(frame.type, ALB_CSA_COOKIE);
    assert_memory_equal(frame.hello.cookie, cookie, sizeof(cookie));
    frame = next(&cursor);
    assert_int_equal(frame.type, ALB_CSA_CNP);
    assert_end(&cursor);
}

static void csa_hello__refuses_cookies_of_another_size(void **state)
{
    static const uint8_t cookie[ALB_CSA_COOKIE_BYTES];
    for (uint32_t bytes = 0; bytes < 40; bytes++) {
        struct packet *p = begin();
        p->length += alb_csa_encode_hello(cookie, place(p));
        p->bytes[ALB_CSA_OUTER_BYTES + 3] = (uint8_t)bytes;
        assert_int_equal(reason(p), bytes == 0 || bytes == 16 ? ALB_DROP_NONE : ALB_DROP_BAD_LENGTH);
        p->bytes[ALB_CSA_OUTER_BYTES] = ALB_CSA_COOKIE;
        assert_int_equal(reason(p), bytes == 16 ? ALB_DROP_NONE : ALB_DROP_BAD_LENGTH);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(csa_report__comes_back_with_any_number_of_words),
        cmocka_unit_test(csa_report__refuses_more_words_than_there_are),
        cmocka_unit_test(csa_holds__comes_back_with_any_number_of_words),
        cmocka_unit_test(csa_holds__refuses_more_words_than_there_are),
        cmocka_unit_test(csa_paths__comes_back_with_any_number_of_entries),
        cmocka_unit_test(csa_paths__refuses_more_entries_than_there_are),
        cmocka_unit_test(csa_frames__small_ones_come_back),
        cmocka_unit_test(csa_hello__refuses_cookies_of_another_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
