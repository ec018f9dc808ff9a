// SPDX-License-Identifier: BSD-2-Clause
// A segment of the engine: header, payload of the program in pieces, trailer.
#include "sim/packet_gaps.h"

#include "base/tests/test.h"

#include <string.h>

enum { PIECES_MAX = 6, HEADER = 12, PIECE = 100, TRAILER = 4, ROOM = 1024 };

struct fixture {
    struct alb_sim_packet_pool pool;
    uint8_t own[HEADER + TRAILER];
    uint8_t payload[PIECES_MAX][PIECE];
    struct iovec iov[PIECES_MAX + 2];
    struct alb_tx tx;
    struct alb_segment segment;
    uint8_t scratch[ROOM];
};

static void begin(struct fixture *f, uint16_t pieces)
{
    memset(f, 0, sizeof(*f));
    alb_sim_packet_pool_init(&f->pool, ROOM);
    memset(f->own, 'h', HEADER);
    memset(f->own + HEADER, 't', TRAILER);
    f->iov[0] = (struct iovec){f->own, HEADER};
    for (uint16_t i = 0; i < pieces; i++) {
        memset(f->payload[i], 'a' + i, PIECE);
        f->iov[i + 1] = (struct iovec){f->payload[i], PIECE};
    }
    f->iov[pieces + 1] = (struct iovec){f->own + HEADER, TRAILER};
    f->tx = (struct alb_tx){.iov = f->iov, .bytes = f->own, .bytes_capacity = sizeof(f->own)};
    f->segment = (struct alb_segment){0, (uint16_t)(pieces + 2), HEADER + pieces * PIECE + TRAILER};
}

static struct alb_sim_packet *packet_of(struct fixture *f, bool without_payload)
{
    struct alb_sim_packet *packet = alb_sim_packet_of(&f->pool, &f->tx, &f->segment, without_payload);
    assert_int_equal(alb_sim_load(packet)->length, f->segment.length);
    return packet;
}

static void end(struct fixture *f, struct alb_sim_packet *packet)
{
    alb_sim_packet_put(&f->pool, packet);
    assert_int_equal(f->pool.outstanding, 0);
    alb_sim_packet_pool_fini(&f->pool);
}

static void assert_is_whole(const struct fixture *f, const uint8_t *bytes)
{
    for (uint32_t i = 0, at = 0; i < f->segment.iov_count; at += (uint32_t)f->iov[i++].iov_len)
        assert_memory_equal(bytes + at, f->iov[i].iov_base, f->iov[i].iov_len);
}

static void packet__with_payload_has_every_byte(void **state)
{
    struct fixture f;
    begin(&f, 2);
    struct alb_sim_packet *packet = packet_of(&f, false);
    assert_int_equal(alb_sim_load(packet)->stored_bytes, alb_sim_load(packet)->length);
    assert_ptr_equal(alb_sim_packet_bytes(packet, f.scratch, true), alb_sim_load(packet)->bytes);
    assert_is_whole(&f, alb_sim_load(packet)->bytes);
    end(&f, packet);
}

static void packet__without_payload_has_headers_in_their_places(void **state)
{
    struct fixture f;
    begin(&f, ALB_SIM_GAPS_MAX);
    struct alb_sim_packet *packet = packet_of(&f, true);
    assert_int_equal(alb_sim_load(packet)->stored_bytes, HEADER + TRAILER);
    assert_int_equal(alb_sim_load(packet)->gap_count, ALB_SIM_GAPS_MAX);
    memset(f.scratch, 'x', sizeof(f.scratch));
    const uint8_t *bytes = alb_sim_packet_bytes(packet, f.scratch, true);
    assert_memory_equal(bytes, f.own, HEADER);
    for (uint32_t i = HEADER; i < alb_sim_load(packet)->length - TRAILER; i++)
        assert_int_equal(bytes[i], 0);
    assert_memory_equal(bytes + alb_sim_load(packet)->length - TRAILER, f.own + HEADER, TRAILER);
    assert_int_equal(f.scratch[alb_sim_load(packet)->length], 'x');
    end(&f, packet);
}

static void packet__gaps_that_nobody_reads_are_not_filled(void **state)
{
    struct fixture f;
    begin(&f, 1);
    struct alb_sim_packet *packet = packet_of(&f, true);
    memset(f.scratch, 'x', sizeof(f.scratch));
    const uint8_t *bytes = alb_sim_packet_bytes(packet, f.scratch, false);
    assert_int_equal(bytes[HEADER], 'x');
    assert_memory_equal(bytes + HEADER + PIECE, f.own + HEADER, TRAILER);
    end(&f, packet);
}

static void packet__of_too_many_pieces_is_whole(void **state)
{
    struct fixture f;
    begin(&f, ALB_SIM_GAPS_MAX + 1);
    struct alb_sim_packet *packet = packet_of(&f, true);
    assert_int_equal(alb_sim_load(packet)->gap_count, 0);
    assert_is_whole(&f, alb_sim_packet_bytes(packet, f.scratch, true));
    end(&f, packet);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packet__with_payload_has_every_byte),
        cmocka_unit_test(packet__without_payload_has_headers_in_their_places),
        cmocka_unit_test(packet__gaps_that_nobody_reads_are_not_filled),
        cmocka_unit_test(packet__of_too_many_pieces_is_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
