// SPDX-License-Identifier: BSD-2-Clause
// A capture has every header where it was, whatever of the payload was not carried.
#include "sim/capture.h"

#include "base/tests/test.h"
#include "sim/packet_gaps.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HEADER = 12, PIECE = 100, ROOM = 1024, LENGTH = 2 * (HEADER + PIECE) };

// Two segments in one packet: each a header of the engine's, and payload of a program's.
static struct alb_sim_packet *two_segments(struct alb_sim_packet_pool *pool)
{
    static uint8_t own[2 * HEADER], payload[PIECE];
    static struct iovec iov[4] = {{own, HEADER}, {payload, PIECE}, {own + HEADER, HEADER}, {payload, PIECE}};
    const struct alb_tx tx = {.iov = iov, .bytes = own, .bytes_capacity = sizeof(own)};
    const struct alb_segment segment = {0, 4, LENGTH};
    memset(own, 'a', HEADER);
    memset(own + HEADER, 'b', HEADER);
    memset(payload, 'p', PIECE);
    return alb_sim_packet_of(pool, &tx, &segment, true);
}

static void capture_add__zeros_where_payload_was(void **state)
{
    uint8_t file[4096], expected[LENGTH] = {0};
    char path[] = "/tmp/albedo-capture-XXXXXX";
    struct alb_sim_packet_pool pool;
    struct alb_sim_capture capture;
    close(mkstemp(path));
    alb_sim_packet_pool_init(&pool, ROOM);
    struct alb_sim_packet *packet = two_segments(&pool);
    assert_int_equal(alb_sim_capture_open(&capture, path), 0);
    alb_sim_capture_add(&capture, packet, 0);
    assert_int_equal(alb_sim_capture_close(&capture), 0);
    FILE *from = fopen(path, "rb");
    size_t length = fread(file, 1, sizeof(file), from);
    fclose(from);
    unlink(path);
    memset(expected, 'a', HEADER);
    memset(expected + HEADER + PIECE, 'b', HEADER);
    size_t at = 0;
    while (at + LENGTH < length && memcmp(file + at, expected, LENGTH) != 0)
        at++;
    assert_memory_equal(file + at, expected, LENGTH);
    alb_sim_packet_put(&pool, packet);
    alb_sim_packet_pool_fini(&pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(capture_add__zeros_where_payload_was)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
