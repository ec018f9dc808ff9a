// SPDX-License-Identifier: BSD-2-Clause
// Captures that Wireshark opens: building the bytes of a pcap file around datagrams, and walking through such bytes. No
// files here: the owner of the datagrams (device, simulator) writes the bytes.
//
// Times have nanoseconds (magic 0xa1b23c4d); the link type is raw IP, so that no link layer is made up. Wireshark takes
// UDP port 4791 for RoCEv2 by itself; dissector/albedo_csa.lua tells it of the ports of other process slots.
#pragma once

#include "wire/datagram.h"

#define ALB_PCAP_FILE_HEADER_BYTES 24
#define ALB_PCAP_HEAD_MAX          (16 + 40 + 8) // record header, IPv6 header, UDP header

// What the IP and UDP headers around a datagram said. hop_limit 0 stands for 64.
struct alb_pcap_packet {
    alb_time time; // since 1970 for Wireshark to show a date
    struct alb_endpoint source;
    struct alb_endpoint destination;
    uint8_t traffic_class;
    uint8_t hop_limit;
    uint16_t identification; // IPv4; the ICRC covers it
};

// Writes the header that a capture begins with.
void alb_pcap_file_header(uint8_t out[ALB_PCAP_FILE_HEADER_BYTES]);

// Writes what stands before a datagram's bytes in a capture (record header, IP, UDP) and returns its length; the
// datagram itself, the first length bytes in iov, is to follow. Its bytes are read for the UDP checksum of IPv6, which
// must not be zero. The datagram fits in an IP packet, and the two addresses are of one family.
uint32_t alb_pcap_head(uint8_t out[ALB_PCAP_HEAD_MAX], const struct alb_pcap_packet *packet, const struct iovec *iov,
                       uint32_t length);

// A walk through the bytes of a capture.
struct alb_pcap_reader {
    const uint8_t *next;
    const uint8_t *end;
    uint32_t linktype;
    bool is_swapped; // written by a machine of the other byte order
    bool is_nanoseconds;
};

// False if the bytes are no capture of a kind that is read here: pcap (not pcapng), Ethernet or raw IP.
bool alb_pcap_reader_init(struct alb_pcap_reader *reader, const void *bytes, size_t length);

// The next UDP datagram, whole; others are passed over. False at the end or where the bytes stop making sense.
// payload points into the capture.
bool alb_pcap_next(struct alb_pcap_reader *reader, struct alb_pcap_packet *packet, const uint8_t **payload,
                   uint32_t *length);
