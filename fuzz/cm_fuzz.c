// SPDX-License-Identifier: BSD-2-Clause
// Decoding the messages of the communication manager. Input: a management datagram; a shorter one is filled with zeros,
// so that its length is no obstacle.
#include "fuzz/fuzz.h"

#include "wire/cm.h"

static void check_ip_header(const uint8_t *bytes)
{
    struct alb_cm_ip_header header, again;
    uint8_t encoded[ALB_CM_IP_HEADER_BYTES];
    if (!alb_cm_ip_header_decode(bytes, &header))
        return;
    alb_cm_ip_header_encode(&header, encoded);
    alb_assert(alb_cm_ip_header_decode(encoded, &again));
    alb_assert(again.source_port == header.source_port && alb_addr_equals(&again.destination, &header.destination));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct alb_cm_message message, again;
    uint8_t bytes[ALB_MAD_BYTES] = {0}, first[ALB_MAD_BYTES], second[ALB_MAD_BYTES];
    alb_cm_decode(data, (uint32_t)ALB_MIN(size, (size_t)UINT32_MAX), &message);
    memcpy(bytes, data, ALB_MIN(size, sizeof(bytes)));
    if (!alb_cm_decode(bytes, sizeof(bytes), &message))
        return 0;
    alb_assert(alb_cm_private_bytes(message.type) > 0);
    check_ip_header(message.private_data);
    if (message.type == ALB_CM_LAP)
        return 0;
    // Reserved bits are lost the first time, and nothing after that.
    alb_cm_encode(&message, first);
    alb_assert(alb_cm_decode(first, sizeof(first), &again));
    alb_cm_encode(&again, second);
    alb_assert(memcmp(first, second, sizeof(first)) == 0);
    return 0;
}
