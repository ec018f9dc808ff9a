// SPDX-License-Identifier: BSD-2-Clause
// The header of a management datagram.
#include "wire/mad.h"

#include "wire/bytes.h"

bool alb_mad_decode(const uint8_t *bytes, uint32_t length, struct alb_mad *out)
{
    if (length != ALB_MAD_BYTES || bytes[0] != ALB_MAD_BASE_VERSION)
        return false;
    *out = (struct alb_mad){
        .base_version = bytes[0],
        .management_class = bytes[1],
        .class_version = bytes[2],
        .method = bytes[3],
        .status = alb_get_be16(bytes + 4),
        .class_specific = alb_get_be16(bytes + 6),
        .transaction = alb_get_be64(bytes + 8),
        .attribute = alb_get_be16(bytes + 16),
        .modifier = alb_get_be32(bytes + 20),
    };
    return true;
}

void alb_mad_encode(const struct alb_mad *mad, uint8_t *out)
{
    out[0] = mad->base_version;
    out[1] = mad->management_class;
    out[2] = mad->class_version;
    out[3] = mad->method;
    alb_put_be16(out + 4, mad->status);
    alb_put_be16(out + 6, mad->class_specific);
    alb_put_be64(out + 8, mad->transaction);
    alb_put_be16(out + 16, mad->attribute);
    alb_put_be16(out + 18, 0);
    alb_put_be32(out + 20, mad->modifier);
}
