// SPDX-License-Identifier: BSD-2-Clause
// Management datagrams: the 24 bytes that begin each of them (InfiniBand specification, volume 1, 13.4.2), and what the
// general services interface, queue pair 1, is known by (13.5.1, 10.2.5).
#pragma once

#include "base/types.h"

#define ALB_MAD_BYTES        256
#define ALB_MAD_HEADER_BYTES 24

#define ALB_GSI_QPN 1
#define ALB_GSI_ALBEDO_QPN \
    3 // that of a device that speaks CSA, so that a host's two kinds of devices can be distinguished
#define ALB_GSI_QKEY 0x80010000u

#define ALB_MAD_BASE_VERSION 1

// Management classes and the version of each that is spoken here.
#define ALB_MAD_CLASS_CM     0x07
#define ALB_CM_CLASS_VERSION 2

enum alb_mad_method {
    ALB_MAD_GET = 0x01,
    ALB_MAD_SET = 0x02,
    ALB_MAD_SEND = 0x03,
    ALB_MAD_GET_RESPONSE = 0x81,
};

struct alb_mad {
    uint8_t base_version;
    uint8_t management_class;
    uint8_t class_version;
    uint8_t method; // enum alb_mad_method
    uint16_t status;
    uint16_t class_specific;
    uint64_t transaction;
    uint16_t attribute;
    uint32_t modifier;
};

// Reads a header. False if the datagram has not the length of a MAD, or another base version.
bool alb_mad_decode(const uint8_t *bytes, uint32_t length, struct alb_mad *out);

// Writes ALB_MAD_HEADER_BYTES.
void alb_mad_encode(const struct alb_mad *mad, uint8_t *out);
