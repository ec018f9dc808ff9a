// SPDX-License-Identifier: BSD-2-Clause
// The captures of tests/vectors as the tests walk through them. Tests run at the top of the tree.
#pragma once

#include "wire/pcap.h"

#include "base/tests/test.h"

#include <stdio.h>
#include <stdlib.h>

static const char *const capture_names[] = {
    "rc_cmp_swap",    "rc_fetch_add",  "rc_read",       "rc_read_lat", "rc_read_lossy",
    "rc_send_ipv6",   "rc_send_lossy", "rc_send_small", "rc_vectors",  "rc_write",
    "rc_write_lossy", "rdmacm_rping",  "uc_send",       "uc_write",    "ud_send_odd",
};

struct capture {
    uint8_t *bytes;
    struct alb_pcap_reader reader;
};

static inline void capture_open(struct capture *capture, const char *name)
{
    char path[128];
    snprintf(path, sizeof(path), "tests/vectors/%s.pcap", name);
    FILE *file = fopen(path, "rb");
    if (!file)
        fail_msg("%s is not there", path);
    const size_t room = 1 << 20;
    capture->bytes = malloc(room);
    assert_non_null(capture->bytes);
    size_t length = fread(capture->bytes, 1, room, file);
    fclose(file);
    assert_in_range(length, ALB_PCAP_FILE_HEADER_BYTES + 1, room - 1);
    assert_true(alb_pcap_reader_init(&capture->reader, capture->bytes, length));
}

// The next packet, as the edge would see it. False at the end.
static inline bool capture_next(struct capture *capture, struct alb_datagram *datagram, struct alb_pcap_packet *packet)
{
    *datagram = (struct alb_datagram){0};
    if (!alb_pcap_next(&capture->reader, packet, &datagram->bytes, &datagram->length))
        return false;
    datagram->peer = packet->source;
    datagram->local = packet->destination;
    datagram->traffic_class = packet->traffic_class;
    datagram->hop_limit = packet->hop_limit;
    return true;
}

static inline void capture_close(struct capture *capture)
{
    assert_ptr_equal(capture->reader.next, capture->reader.end); // nothing was left over
    free(capture->bytes);
}
