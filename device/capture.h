// SPDX-License-Identifier: BSD-2-Clause
// Captures: what the device sends and receives, written as a pcap file without root. Bytes are collected and written
// when there are many or when the device comes to rest, so that little is lost if the process is killed.
#pragma once

#include "device/outfile.h"
#include "wire/pcap.h"

struct alb_capture {
    struct alb_outfile file;
    uint64_t epoch_offset_ns; // from the device's clock to the time since 1970
};

// Errors: those of alb_outfile_open.
int alb_capture_open(struct alb_capture *capture, const char *path);
void alb_capture_close(struct alb_capture *capture);

// Adds one datagram as it is (or would be) on the wire: ICRC included. packet->time is the device's clock.
void alb_capture_datagram(struct alb_capture *capture, const struct alb_pcap_packet *packet, const struct iovec *iov,
                          uint32_t length);
