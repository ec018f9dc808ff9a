// SPDX-License-Identifier: BSD-2-Clause
// Captures as files.
#include "device/capture.h"

#include "base/tests/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void add_datagram(struct alb_capture *capture)
{
    uint8_t bytes[64] = {0};
    const struct iovec iov = {bytes, sizeof(bytes)};
    struct alb_pcap_packet packet = {.time = 1};
    assert_true(alb_addr_parse("127.0.0.1", &packet.source.addr));
    packet.destination = packet.source;
    alb_capture_datagram(capture, &packet, &iov, sizeof(bytes));
}

static uint32_t count_datagrams(const char *path)
{
    static uint8_t bytes[4096];
    FILE *file = fopen(path, "rb");
    size_t length = fread(bytes, 1, sizeof(bytes), file);
    fclose(file);
    struct alb_pcap_reader reader;
    struct alb_pcap_packet packet;
    const uint8_t *payload;
    uint32_t payload_bytes, count = 0;
    assert_true(alb_pcap_reader_init(&reader, bytes, length));
    while (alb_pcap_next(&reader, &packet, &payload, &payload_bytes))
        count++;
    return count;
}

// A capture has one header, however many devices of the process write to it, one after the other.
static void alb_capture_open__goes_on_behind_an_earlier_device(void **state)
{
    static struct alb_capture capture;
    char path[] = "/tmp/albedo-capture-XXXXXX";
    close(mkstemp(path));
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(alb_capture_open(&capture, path), 0);
        add_datagram(&capture);
        alb_capture_close(&capture);
        assert_int_equal(count_datagrams(path), i + 1);
    }
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alb_capture_open__goes_on_behind_an_earlier_device),
    };
    return cmocka_run_group_tests_name("capture", tests, NULL, NULL);
}
