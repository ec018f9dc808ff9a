// SPDX-License-Identifier: BSD-2-Clause
#include "device/gsi_slot.h"

#include "device/cm_claim.h"
#include "wire/cm.h"
#include "wire/datagram.h"

#include <errno.h>

static enum alb_gsi_place slot_of_id(uint32_t communication_id, uint8_t *slot)
{
    if (communication_id == ALB_CM_NEVER_REMOTE)
        return ALB_GSI_HOLDER;
    *slot = (uint8_t)(communication_id >> 24);
    return ALB_GSI_SLOT;
}

static enum alb_gsi_place slot_of_service(uint8_t gsi_index, uint64_t service_id, const struct alb_addr *local,
                                          uint8_t *slot)
{
    int error = alb_cm_claim_find(gsi_index, service_id, local, slot);
    return !error ? ALB_GSI_SLOT : error == ENOENT ? ALB_GSI_HOLDER : ALB_GSI_UNKNOWN;
}

enum alb_gsi_place alb_gsi_slot(const uint8_t *bytes, uint32_t length, const struct alb_addr *local, uint8_t *slot)
{
    struct alb_roce roce;
    struct alb_cm_message message;
    uint32_t offset, payload_bytes;
    uint8_t gsi_index;
    if (length < ALB_ICRC_BYTES ||
        alb_roce_decode(bytes, length - ALB_ICRC_BYTES, &roce, &offset, &payload_bytes) != ALB_DROP_NONE ||
        roce.opcode != ALB_UD_SEND_ONLY || !alb_cm_decode(bytes + offset, payload_bytes, &message))
        return ALB_GSI_HOLDER;
    gsi_index = (uint8_t)roce.dest_qpn;
    switch (message.type) {
    case ALB_CM_REQ:
        return slot_of_service(gsi_index, message.req.service_id, local, slot);
    case ALB_CM_SIDR_REQ:
        return slot_of_service(gsi_index, message.sidr_req.service_id, local, slot);
    case ALB_CM_SIDR_REP: // its request id is the asker's
        return slot_of_id(message.local_id, slot);
    default:
        return slot_of_id(message.remote_id, slot);
    }
}
