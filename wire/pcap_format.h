// SPDX-License-Identifier: BSD-2-Clause
// Numbers of the pcap file format and of the headers in it, for writer and reader.
#pragma once

#define PCAP_MAGIC_US 0xa1b2c3d4u
#define PCAP_MAGIC_NS 0xa1b23c4du

#define PCAP_LINKTYPE_ETHERNET 1
#define PCAP_LINKTYPE_RAW      101 // IPv4 or IPv6, by the first four bits

#define PCAP_SNAP_BYTES   262144 // most bytes of a packet, as others write it
#define PCAP_RECORD_BYTES 16
#define PCAP_ETHER_BYTES  14
#define PCAP_IPV4_BYTES   20
#define PCAP_IPV6_BYTES   40
#define PCAP_UDP_BYTES    8

#define PCAP_ETHERTYPE_IPV4 0x0800
#define PCAP_ETHERTYPE_IPV6 0x86dd
#define PCAP_PROTOCOL_UDP   17
